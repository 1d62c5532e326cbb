//! Claims in words and numbers, as tables and pages show them.

use crate::model::{
    Cause, Claim, ClaimKind, IntervalKind, Lies, Noise, Reproduction, Verdict, World,
};
use crate::render::format::{NONE, count, digits, percent, time};

/// The flag of a claim that holds without its mechanism.
pub(crate) const ANYWAY: &str = "also holds with the mechanism off";

/// The claim's name without the paper's.
pub(crate) fn short_id<'a>(of: &Reproduction, claim: &'a Claim) -> &'a str {
    short(&of.paper, claim)
}

fn short<'a>(paper: &str, claim: &'a Claim) -> &'a str {
    claim.id.strip_prefix(paper).and_then(|id| id.strip_prefix('-')).unwrap_or(&claim.id)
}

/// Claims that fail by one cause; without it, their cause is not yet found.
pub struct Failing<'a> {
    pub cause: Option<&'a Cause>,
    pub claims: Vec<&'a Claim>,
}

impl Failing<'_> {
    /// Where the cause lies: `ours`, `the paper's`.
    fn lies(&self) -> Lies {
        self.cause.map_or(Lies::Open, |cause| cause.lies)
    }

    /// `Stalls of 200 ms (ours, 14 claims)`.
    pub fn title(&self) -> String {
        let n = self.claims.len();
        let s = if n == 1 { "" } else { "s" };
        match self.cause {
            Some(cause) => format!("{} ({}, {n} claim{s})", cause.title, lies_text(cause.lies)),
            None => format!("Cause not yet found ({n} claim{s})"),
        }
    }
}

fn lies_text(lies: Lies) -> &'static str {
    match lies {
        Lies::Ours => "ours",
        Lies::Paper => "the paper's",
        Lies::Sources => "undecidable from public sources",
        Lies::Open => "open",
    }
}

/// The claims of a paper that fail, by cause in the order of the causes; last those without one.
pub fn failing<'a>(paper: &str, claims: &[&'a Claim], causes: &'a [Cause]) -> Vec<Failing<'a>> {
    let is_of =
        |cause: &Cause, claim: &Claim| cause.claims.iter().any(|id| id == short(paper, claim));
    let of = |cause: Option<&'a Cause>| {
        let fails = |claim: &&&Claim| claim.status == Verdict::Fails;
        let own = |claim: &&&Claim| match cause {
            Some(cause) => is_of(cause, claim),
            None => !causes.iter().any(|cause| is_of(cause, claim)),
        };
        Failing { cause, claims: claims.iter().filter(fails).filter(own).copied().collect() }
    };
    let all = causes.iter().map(Some).chain([None]).map(of);
    all.filter(|failing| !failing.claims.is_empty()).collect()
}

/// `76 claims fail, by 6 causes: 2 ours, 3 the paper's, 1 open`.
pub fn causes_text(failing: &[Failing<'_>]) -> String {
    let of = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    let known = failing.iter().filter(|failing| failing.cause.is_some());
    let lies = |lies: Lies| {
        let n = known.clone().filter(|failing| failing.lies() == lies).count();
        (n > 0).then(|| format!("{n} {}", lies_text(lies)))
    };
    let parts: Vec<String> = Lies::ALL.into_iter().filter_map(lies).collect();
    let all: usize = failing.iter().map(|failing| failing.claims.len()).sum();
    let unknown = failing.iter().find(|failing| failing.cause.is_none());
    let mut text = of(all, "claim") + if all == 1 { " fails" } else { " fail" };
    if !parts.is_empty() {
        text += &format!(", by {}: {}", of(known.count(), "cause"), parts.join(", "));
    }
    match unknown {
        Some(unknown) => format!("{text}; the cause of {} is not yet found", unknown.claims.len()),
        None => text,
    }
}

pub(crate) fn worlds(claims: &[&Claim]) -> String {
    let has = |world: World| claims.iter().any(|it| it.measured.is_some() && it.world == world);
    let mut names = Vec::new();
    names.extend(has(World::Sim).then_some("simulated"));
    names.extend(has(World::Virtual).then_some("real kernels in virtual time"));
    if names.is_empty() { "simulated".into() } else { names.join("; ") }
}

/// A number in a claim's unit.
pub(crate) fn value(of: Option<f64>, unit: &str) -> String {
    let Some(of) = of.filter(|x| x.is_finite()) else { return NONE.into() };
    match unit {
        "percent" => format!("{of:.1}%"),
        "count" => count(Some(of)),
        "" => digits(of),
        unit => format!("{} {unit}", digits(of)),
    }
}

/// Ours, or that with the mechanism off: of a share of cases their number.
pub(crate) fn measured(claim: &Claim, of: Option<f64>) -> String {
    of.and_then(|of| claim.held(of)).unwrap_or_else(|| value(of, &claim.unit))
}

pub(crate) fn accepted(claim: &Claim) -> String {
    let end = |x: f64| match claim.unit.as_str() {
        "percent" => format!("{x}%"),
        "" | "count" => format!("{x}"),
        unit => format!("{x} {unit}"),
    };
    if let Some(least) = claim.least() {
        return least;
    }
    match claim.accept {
        [None, None] => "anything".into(),
        [Some(low), None] => format!("≥ {}", end(low)),
        [None, Some(high)] => format!("≤ {}", end(high)),
        [Some(low), Some(high)] if low == high => end(low),
        [Some(low), Some(high)] => format!("{low}…{}", end(high)),
    }
}

/// The subject of a claim: `released: DCTCP+TLT as released`.
pub(crate) fn about(claim: &Claim) -> String {
    let schemes = claim.schemes.join(", ");
    match (claim.experiment.is_empty(), schemes.is_empty()) {
        (true, _) => schemes,
        (false, true) => claim.experiment.clone(),
        (false, false) => format!("{}: {schemes}", claim.experiment),
    }
}

/// Of how many points of a sweep a claim's number is the best; empty where it is of one point.
pub(crate) fn best_of(claim: &Claim) -> String {
    let s = if claim.best_of == Some(1) { "" } else { "s" };
    claim.best_of.map_or(String::new(), |points| format!("the best of {points} point{s}"))
}

/// The spread over seeds, with what it is; empty without one.
pub(crate) fn spread(claim: &Claim) -> String {
    let Some(([low, high], kind)) = claim.interval.zip(claim.interval_kind) else {
        return String::new();
    };
    let text = |x: f64| value(Some(x), &claim.unit);
    match kind {
        IntervalKind::Identical => kind.words().to_string(),
        // Each seed has its order or not: the ends of a spread would be none and all of them.
        _ if claim.counted.is_some() => String::new(),
        _ => format!("{} {} to {}", kind.words(), text(low), text(high)),
    }
}

/// The effect of the spread on the verdict, where it makes it doubtful.
pub(crate) fn within(claim: &Claim) -> String {
    match claim.noise {
        Noise::Within if claim.counted.is_some() => "within the noise".to_string(),
        Noise::Within => format!("within the noise: {}", spread(claim)),
        _ => String::new(),
    }
}

/// The numbers that the paper's relative number and ours stand for, in lines; none where there are
/// none.
pub(crate) fn absolutes(claim: &Claim) -> (Vec<String>, Vec<String>) {
    let Some(of) = &claim.absolute else { return (Vec::new(), Vec::new()) };
    let text = |value: f64| {
        let unit = if of.unit == "Gb/s" { " Gb/s" } else { "" };
        format!("{}{unit}", number_text(Some(value), &of.unit))
    };
    let ours = std::iter::once(text(of.measured))
        .chain(of.against.map(|against| format!("vs {}", text(against))));
    (of.paper.map(text).into_iter().collect(), ours.collect())
}

/// A number in its unit; the form of a time and of a share includes it.
pub(crate) fn number_text(of: Option<f64>, unit: &str) -> String {
    match unit {
        "us" => time(of),
        "percent" => percent(of.map(|percent| percent / 100.0)),
        "count" => count(of),
        _ => of.filter(|x| x.is_finite()).map_or(NONE.into(), digits),
    }
}

/// The share of flows or queries that a claim's number is of, where some were open.
pub(crate) fn completed(claim: &Claim) -> String {
    let text = |percent: f64| format!("only {percent:.1}% completed");
    claim.completed_percent().map_or(String::new(), text)
}

/// How the claims of a kind ended.
pub struct KindCounts {
    pub kind: ClaimKind,
    pub all: usize,
    /// Claims that hold, fail, and are not evaluated.
    pub verdicts: [usize; 3],
    pub noise: usize,
    /// Claims that hold without the mechanism, too.
    pub anyway: usize,
}

/// Counts of each kind that occurs.
pub fn kind_counts(claims: &[&Claim]) -> Vec<KindCounts> {
    let of = |kind: ClaimKind| {
        let of: Vec<&&Claim> = claims.iter().filter(|claim| claim.kind == kind).collect();
        let n = |status| of.iter().filter(|claim| claim.status == status).count();
        KindCounts {
            kind,
            all: of.len(),
            verdicts: [Verdict::Holds, Verdict::Fails, Verdict::NotEvaluated].map(n),
            noise: of.iter().filter(|claim| claim.noise == Noise::Within).count(),
            anyway: of.iter().filter(|claim| claim.holds_anyway()).count(),
        }
    };
    ClaimKind::ALL.into_iter().map(of).filter(|of| of.all > 0).collect()
}

/// How many of each kind hold, a line a kind that occurs.
pub(crate) fn tally(claims: &[&Claim]) -> Vec<String> {
    let line = |of: &KindCounts| {
        let KindCounts { kind, all, verdicts: [hold, fail, open], .. } = of;
        let anyway = match of.anyway {
            0 => String::new(),
            n => format!(" ({n} also with the mechanism off)"),
        };
        let noise = if of.noise == 0 { "" } else { &format!("; {} within the noise", of.noise) };
        let name = kind.name();
        format!("{name} {all}: {hold} hold{anyway}, {fail} fail, {open} not evaluated{noise}")
    };
    let lines: Vec<String> = kind_counts(claims).iter().map(line).collect();
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
}
