//! `millpond compare`: the variants of a scenario (and of `--vary`) beside each other.

use crate::args::{CompareArgs, Format, WorldName};
use crate::failure::Failure;
use crate::run::{default_out, load};
use crate::say;
use crate::stderr::warn;
use crate::tell;
use crate::watch::{Terminal, catch_interrupts};
use crate::worlds::{world_name, worlds};
use millpond::{Comparison, Options, Status, VariantResult, World};
use millpond_results::{
    Judged, compare_junit, compare_markdown, compare_table, judged_markdown, judged_text,
    read_results, sizes_table,
};

/// Suffix of a compare's results folder: `compare`, `lab`, `virtual` or `worlds`.
fn suffix(worlds: &[WorldName]) -> &'static str {
    match worlds {
        [WorldName::Lab] => "lab",
        [WorldName::Virtual] => "virtual",
        [_] => "compare",
        _ => "worlds",
    }
}

/// Compares.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let scenario = load(&args.scenario, &args.overrides)?;
    let scenario = scenario.shows(&args.shows.names).only(&args.variants)?;
    // Before the runs: a wrong file costs no time.
    let baseline = args.judging.baseline.as_deref();
    if let Some(path) = baseline.filter(|path| !path.exists()) {
        return Err(Failure::Usage(format!("--baseline: there is no {}", path.display())));
    }
    let baseline = baseline.map(read_results).transpose()?;
    let vary: Vec<(&str, &str)> =
        args.vary.iter().map(|(key, values)| (key.as_str(), values.as_str())).collect();
    let worlds = worlds(&args.worlds, args.scale.factor)?;
    let names: Vec<&str> = args.worlds.iter().map(|world| world_name(*world)).collect();
    let comparison = Comparison::across(&scenario, &vary, args.seeds.inclusive(), &names)?;
    if !args.output.quiet {
        warn(comparison.warnings(), args.output.warnings());
    }
    let out = default_out(&args.output.out, comparison.name(), Some(suffix(&args.worlds)));
    let terminal = Terminal::new(args.output.quiet, "");
    catch_interrupts();
    let beside: Vec<&dyn World> = worlds[1..].iter().map(|world| &**world).collect();
    let options = Options {
        world: &*worlds[0],
        beside: &beside,
        threads: args.threads.given,
        force: args.output.force,
        control: &terminal,
    };
    let compared = millpond::compare(&comparison, &out, &options)?;
    let results = &compared.results;
    let judged = judge(args, results, baseline.as_deref())?;
    if args.output.json {
        let text = serde_json::to_string_pretty(results)?;
        say(&text);
    } else if let Some(format) = args.format.name {
        say(&match format {
            Format::Junit => compare_junit(comparison.name(), results),
            Format::Markdown if judged.is_empty() => compare_markdown(results),
            Format::Markdown => {
                format!("{}\n{}", judged_markdown(&judged), compare_markdown(results))
            }
        });
    } else if !args.output.quiet {
        let new = unannounced(results, comparison.warnings());
        say(&compare_table(&new, args.output.warnings()));
        if args.by_size {
            say(&sizes_table(results));
        }
        judged.iter().for_each(|one| say(&judged_text(one)));
        let folder = &compared.folder;
        say(&format!(
            "results: {}\nreport:  {}",
            folder.display(),
            folder.join("report.html").display()
        ));
    }
    match compared.failed {
        Some(failed) => Err(Failure::Audit(format!("{:?}", failed.audit))),
        None => valid(results).and_then(|()| stalled(results)).and_then(|()| tolerated(&judged)),
    }
}

/// The results without the warnings that were printed before the runs.
fn unannounced(results: &[VariantResult], announced: &[String]) -> Vec<VariantResult> {
    let mut results = results.to_vec();
    for result in &mut results {
        let is_new = |text: &String| !announced.iter().any(|line| line.ends_with(&**text));
        result.warnings.retain(is_new);
    }
    results
}

/// Judges the numbers that must not become worse.
fn judge(
    args: &CompareArgs,
    results: &[VariantResult],
    baseline: Option<&[VariantResult]>,
) -> Result<Vec<Judged>, Failure> {
    let mut judged = Vec::new();
    for tolerance in &args.judging.tolerances {
        judged.extend(tolerance.judge(results, baseline).map_err(|error| {
            Failure::Usage(format!("--tolerate {}: {error}", tolerance.number))
        })?);
    }
    if let Some(warning) = baseline.and_then(|baseline| other_seeds(results, baseline)) {
        tell(format_args!("warning: {warning}"));
    }
    Ok(judged)
}

/// Seeds draw the flows, so other seeds than the baseline's are a difference of their own.
fn other_seeds(results: &[VariantResult], baseline: &[VariantResult]) -> Option<String> {
    results.iter().find_map(|result| {
        let before = baseline.iter().find(|before| before.variant == result.variant)?;
        (before.seeds != result.seeds).then(|| {
            format!(
                "{}: the baseline has {} seeds from {:?} on, this comparison {} from {:?} on; \
                 compare the same seeds",
                result.variant,
                before.seeds.len(),
                before.seeds.first().unwrap_or(&0),
                result.seeds.len(),
                result.seeds.first().unwrap_or(&0)
            )
        })
    })
}

/// Fails if a number is worse than is tolerated.
fn tolerated(judged: &[Judged]) -> Result<(), Failure> {
    let worse: Vec<String> = judged.iter().filter(|one| one.is_worse).map(judged_text).collect();
    match worse.is_empty() {
        true => Ok(()),
        false => Err(Failure::Worse(worse.join("; "))),
    }
}

/// The variants that ended so.
fn ended(results: &[VariantResult], status: Status) -> Option<String> {
    let ended = results.iter().filter(|result| result.status == status);
    let names: Vec<&str> = ended.map(|result| result.variant.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Fails if a run of some variant is invalid.
fn valid(results: &[VariantResult]) -> Result<(), Failure> {
    let Some(names) = ended(results, Status::Invalid) else { return Ok(()) };
    let what = "the results are written, and are not those of the scenario";
    Err(Failure::Invalid(format!("invalid: {names}; {what}")))
}

/// Fails if a run of some variant stalled.
fn stalled(results: &[VariantResult]) -> Result<(), Failure> {
    let Some(names) = ended(results, Status::Stalled) else { return Ok(()) };
    let what = "no open flow could end any more; the results are written";
    Err(Failure::Stalled(format!("stalled: {names}: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_results::{Ordered, Tree};

    #[test]
    fn other_seeds_than_the_baselines_are_named() {
        let of = |variant: &str, seeds: &[u64]| VariantResult {
            variant: variant.into(),
            seeds: seeds.to_vec(),
            status: Status::Complete,
            warnings: Vec::new(),
            statistics: Tree::Branch(Ordered::default()),
            differences: None,
            shows: Default::default(),
        };
        let (three, six) = (of("tlt", &[1, 2, 3]), of("tlt", &[1, 2, 3, 4, 5, 6]));
        let warning = other_seeds(std::slice::from_ref(&three), &[six]).unwrap();
        assert!(warning.starts_with("tlt: the baseline has 6 seeds from 1 on"), "{warning}");
        let same = std::slice::from_ref(&three);
        assert_eq!(other_seeds(same, same), None);
        assert_eq!(other_seeds(&[three], &[of("other", &[9])]), None);
    }
}
