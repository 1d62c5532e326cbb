//! Whatever a limits' file says, there are limits with a plan or errors, and never a panic. The files are those of the fuzz target, bent.

use millpond_linux::limit::cgroup::Cgroup;
use millpond_linux::limit::config::{Config, Target};
use millpond_linux::limit::plan::{Installed, plan};
use millpond_linux::limit::store::Source;
use proptest::prelude::*;

/// Cgroups are there by their paths, and by nothing else.
fn resolve(target: &Target) -> Result<Cgroup, String> {
    let Target::Path(path) = target else { return Err("not by its path".to_string()) };
    let id = path.to_string_lossy().bytes().fold(1, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
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
        assert!(plan.hooks.iter().flat_map(|hook| &hook.chain).all(|c| c.count as usize <= c.scopes.len()));
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
    fn anything_like_toml(text in "(\\[\\[limit\\]\\]|\\[\\[floor\\]\\]|name|rate|[a-z\\-]{1,8}|\\[|\\]|=|,|\"|\n|#|[0-9]{1,3}| ){0,60}") {
        survive(&text);
    }

    /// Some values exchanged for awkward ones, and some lines gone or doubled.
    #[test]
    fn files_bent(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..VALUES.len() + 2), 1..4),
    ) {
        let mut lines: Vec<String> = SEEDS[seed].lines().map(str::to_string).collect();
        for (at, change) in changes {
            let i = at.index(lines.len());
            match change {
                0 => { lines.remove(i); }
                1 => { let line = lines[i].clone(); lines.insert(i, line); }
                _ => if let Some((key, _)) = lines[i].clone().split_once('=') {
                    lines[i] = format!("{key}= {}", VALUES[change - 2]);
                },
            }
        }
        survive(&lines.join("\n"));
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
                _ => { bytes.remove(i); }
            }
        }
        survive(&String::from_utf8_lossy(&bytes));
    }
}
