//! Whose a claim is, and how many of each kind hold.
//!
//! Invariant: claims of different kinds are never counted together. Only the first kind is the
//! paper's.

use serde::{Deserialize, Serialize};

use crate::model::reproduction::{Claim, Verdict};
use crate::statistics::compare::Noise;

/// Whose a claim is: where its number, its order or its bound comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The paper's, as published.
    #[default]
    Published,
    /// This project's run of the authors' released code gave it. The authors publish no such
    /// number.
    Released,
    /// It follows by arithmetic from published or released numbers.
    Derived,
    /// A parameter was solved from the number: the claim asks whether the model gives it back.
    Fitted,
    /// It is from memory, with no source at hand.
    Remembered,
    /// This project's: its order may be in a paper's words, its bound is not.
    Ours,
}

impl ClaimKind {
    /// All, the paper's first.
    pub const ALL: [ClaimKind; 6] = [
        ClaimKind::Published,
        ClaimKind::Released,
        ClaimKind::Derived,
        ClaimKind::Fitted,
        ClaimKind::Remembered,
        ClaimKind::Ours,
    ];

    /// As in the files.
    pub fn name(self) -> &'static str {
        match self {
            ClaimKind::Published => "published",
            ClaimKind::Released => "released",
            ClaimKind::Derived => "derived",
            ClaimKind::Fitted => "fitted",
            ClaimKind::Remembered => "remembered",
            ClaimKind::Ours => "ours",
        }
    }

    /// What a claim's row says of it; nothing where it is the paper's.
    pub(crate) fn told(self) -> Option<&'static str> {
        (self != ClaimKind::Published).then(|| self.name())
    }
}

/// How many of each kind hold, a line a kind that occurs.
pub(crate) fn tally(claims: &[&Claim]) -> Vec<String> {
    let line = |kind: ClaimKind| {
        let of: Vec<&&Claim> = claims.iter().filter(|claim| claim.kind == kind).collect();
        let n = |status| of.iter().filter(|claim| claim.status == status).count();
        let [hold, fail, open] = [Verdict::Holds, Verdict::Fails, Verdict::NotEvaluated].map(n);
        let anyway = match of.iter().filter(|claim| claim.holds_anyway()).count() {
            0 => String::new(),
            n => format!(" ({n} also with the mechanism off)"),
        };
        let noise = match of.iter().filter(|claim| claim.noise == Noise::Within).count() {
            0 => String::new(),
            n => format!("; {n} within the noise"),
        };
        let (name, all) = (kind.name(), of.len());
        (all > 0).then(|| {
            format!("{name} {all}: {hold} hold{anyway}, {fail} fail, {open} not evaluated{noise}")
        })
    };
    let lines: Vec<String> = ClaimKind::ALL.into_iter().filter_map(line).collect();
    if lines.is_empty() { vec!["no claims".to_string()] } else { lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_by_itself() {
        let claim = |kind, status| Claim { kind, status, ..Claim::default() };
        let all = [
            claim(ClaimKind::Fitted, Verdict::Holds),
            claim(ClaimKind::Published, Verdict::Holds),
            claim(ClaimKind::Published, Verdict::NotEvaluated),
            claim(ClaimKind::Remembered, Verdict::Fails),
            claim(ClaimKind::Fitted, Verdict::Fails),
        ];
        let lines = [
            "published 2: 1 hold, 0 fail, 1 not evaluated",
            "fitted 2: 1 hold, 1 fail, 0 not evaluated",
            "remembered 1: 0 hold, 1 fail, 0 not evaluated",
        ];
        assert_eq!(tally(&all.iter().collect::<Vec<_>>()), lines);
        assert_eq!(tally(&[]), ["no claims"]);
        let anyway = Claim { status: Verdict::Holds, baseline: Verdict::Holds, ..Claim::default() };
        let fails = Claim { status: Verdict::Fails, noise: Noise::Within, ..anyway.clone() };
        let line = "published 2: 1 hold (1 also with the mechanism off), 1 fail, 0 not evaluated; \
                    1 within the noise";
        assert_eq!(tally(&[&anyway, &fails]), [line]);
    }

    #[test]
    fn files_say_the_kind_and_old_ones_are_of_published_claims() {
        for kind in ClaimKind::ALL {
            let text = serde_json::to_string(&Claim { kind, ..Claim::default() }).unwrap();
            assert!(text.contains(&format!("\"kind\":\"{}\"", kind.name())), "{text}");
            assert_eq!(serde_json::from_str::<Claim>(&text).unwrap().kind, kind);
            let old = text.replace(&format!("\"kind\":\"{}\",", kind.name()), "");
            assert!(!old.contains("\"kind\""), "{old}");
            assert_eq!(serde_json::from_str::<Claim>(&old).unwrap().kind, ClaimKind::Published);
        }
    }
}
