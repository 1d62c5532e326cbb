//! Whatever a limits' file says, there are limits with a plan or errors, and never a panic. The
//! files are those of the fuzz target, bent. And whatever arrives at the port of notifications is a
//! flow that somebody with the secret has named, or refused.

#[path = "../../scenario/tests/bent.rs"]
mod bent;

use bent::bent;
use millpond_linux::limit::cgroup::Cgroup;
use millpond_linux::limit::config::{Config, Target};
use millpond_linux::limit::layout::Flow;
use millpond_linux::limit::message::{BYTES, Secret, decode, encode};
use millpond_linux::limit::numbers::Installed;
use millpond_linux::limit::plan::plan;
use millpond_linux::limit::store::Source;
use proptest::prelude::*;
use std::time::SystemTime;

/// Cgroups are there by their paths, and by nothing else.
fn resolve(target: &Target) -> Result<Cgroup, String> {
    let Target::Path(path) = target else { return Err("not by its path".to_string()) };
    let id = path
        .to_string_lossy()
        .bytes()
        .fold(1, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Ok(Cgroup { path: path.clone(), id, level: path.components().count() as u32 })
}

/// Reads, writes, reads again, sets a key and plans. Whether it was a file of limits.
fn survive(text: &str) -> bool {
    let mut config = match Config::parse("fuzz.toml", text, &[]) {
        Ok(config) => config,
        Err(errors) => {
            assert!(!errors.errors.is_empty() && !errors.to_string().is_empty());
            return false;
        }
    };
    let written = config.to_text();
    assert_eq!(Config::parse("written.toml", &written, &[]).expect(&written), config, "{written}");
    let sources = [Source { file: "fuzz.toml".to_string(), config: config.clone() }];
    if let Ok(plan) = plan(&sources, &Installed::new(), &resolve) {
        assert!(
            plan.hooks
                .iter()
                .flat_map(|hook| &hook.chain)
                .all(|c| c.count as usize <= c.scopes.len())
        );
    }
    if let Some(limit) = config.limits.first_mut() {
        let _ = limit.set(&[("rate".to_string(), "3Mbps".to_string())]);
        assert!(Config::parse("set.toml", &config.to_text(), &[]).is_ok(), "{}", config.to_text());
    }
    true
}

const SEEDS: &[&str] = &[
    include_str!("../../../fuzz/corpus/limits/plain.toml"),
    include_str!("../../../fuzz/corpus/limits/every-key.toml"),
    include_str!("../../../fuzz/corpus/limits/nested.toml"),
];

/// Values that are awkward somewhere.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1",
    "1.5",
    "-0.0",
    "nan",
    "inf",
    "1e308",
    "18446744073709551615",
    "65536",
    "\"\"",
    "\"off\"",
    "\"0\"",
    "\"0us\"",
    "\"1ps\"",
    "\"99999999s\"",
    "\"18446744073709551615B\"",
    "\"8Kbps\"",
    "\"1Tbps\"",
    "\"9999Tbps\"",
    "[]",
    "{}",
    "true",
    "[\"uplink\"]",
    "[\"rack\", \"rack\"]",
    "[\"é\\n\"]",
    "1979-05-27",
    "\"é\"",
    "\"a/b\"",
    "\"a\\u0000b\"",
    "\"\\\"\"",
    "\"both\"",
    "\"edt\"",
    "\"uplink\"",
];

#[test]
fn the_seeds_are_limits() {
    assert!(SEEDS.iter().all(|seed| survive(seed)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survive(&text);
    }

    #[test]
    fn anything_like_toml(
        text in "(\\[\\[limit\\]\\]|\\[\\[floor\\]\\]|name|rate|[a-z\\-]{1,8}|\
                 \\[|\\]|=|,|\"|\n|#|[0-9]{1,3}| ){0,60}",
    ) {
        survive(&text);
    }

    /// Some values exchanged for awkward ones, and some lines gone or doubled.
    #[test]
    fn files_bent(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..VALUES.len() + 2), 1..4),
    ) {
        survive(&bent(SEEDS[seed], changes, VALUES));
    }

    #[test]
    fn any_datagram(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let secret = Secret::new(b"what hosts share").unwrap();
        prop_assert!(decode(&bytes, SystemTime::now(), &secret).is_err());
    }

    #[test]
    fn a_datagram_bent(flow in any::<[u8; Flow::BYTES]>(), at in 0..BYTES, by in 1..=u8::MAX) {
        let (secret, now) = (Secret::new(b"what hosts share").unwrap(), SystemTime::now());
        let mut sent = encode(Flow::from_bytes(&flow), now, &secret);
        prop_assert_eq!(decode(&sent, now, &secret), Ok(Flow::from_bytes(&flow)));
        sent[at] ^= by;
        prop_assert!(decode(&sent, now, &secret).is_err());
    }

    /// Some bytes exchanged, gone or added.
    #[test]
    fn bytes_bent(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
    ) {
        let mut bytes = SEEDS[seed].as_bytes().to_vec();
        for (at, byte, how) in changes {
            let i = at.index(bytes.len());
            match how {
                0 => bytes[i] = byte,
                1 => bytes.insert(i, byte),
                _ => {
                    bytes.remove(i);
                }
            }
        }
        survive(&String::from_utf8_lossy(&bytes));
    }
}
