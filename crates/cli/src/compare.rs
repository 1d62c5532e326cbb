//! `millpond compare`: the variants of a scenario (and of `--vary`) beside each other.

use crate::args::{CompareArgs, Format, WorldName};
use crate::eprint;
use crate::failure::Failure;
use crate::print;
use crate::run::{default_out, introduce, load};
use crate::stderr::{keep_new, warn};
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
    if let Some(warning) = baseline.as_deref().and_then(|it| other_seeds(&comparison, it)) {
        eprint(format_args!("warning: {warning}"));
    }
    if !args.output.quiet && !args.output.json && args.format.name.is_none() {
        let names = comparison.variants().into_iter().zip(comparison.abouts());
        introduce(comparison.about(), names);
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
        print(&text);
    } else if let Some(format) = args.format.name {
        print(&match format {
            Format::Junit => compare_junit(comparison.name(), results),
            Format::Markdown if judged.is_empty() => compare_markdown(results),
            Format::Markdown => {
                format!("{}\n{}", judged_markdown(&judged), compare_markdown(results))
            }
        });
    } else if !args.output.quiet {
        let new = unannounced(results, comparison.warnings());
        print(&compare_table(&new, args.output.warnings()));
        if args.by_size {
            print(&sizes_table(results));
        }
        judged.iter().for_each(|one| print(&judged_text(one)));
        let folder = &compared.folder;
        print(&format!(
            "results: {}\nreport:  {}",
            folder.display(),
            folder.join("report.html").display()
        ));
    }
    match compared.failed {
        Some(failed) => Err(Failure::Audit(format!("{:?}", failed.audit))),
        None => ended(results).and_then(|()| tolerated(&judged)),
    }
}

/// The results without the warnings that were printed before the runs.
fn unannounced(results: &[VariantResult], announced: &[String]) -> Vec<VariantResult> {
    let mut results = results.to_vec();
    for result in &mut results {
        let own = announced.iter().filter_map(|line| text_for(line, &result.variant));
        let own: Vec<String> = own.map(str::to_string).collect();
        keep_new(&mut result.warnings, &own);
    }
    results
}

/// The text of a warning that stands behind names of variants, if this one is among them.
fn text_for<'a>(line: &'a str, variant: &str) -> Option<&'a str> {
    let (names, text) = line.split_once(": ")?;
    let is_named = names == "all" || names.split(", ").any(|name| name == variant);
    is_named.then_some(text)
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
    Ok(judged)
}

/// Seeds draw the flows, so other seeds than the baseline's are a difference of their own.
fn other_seeds(comparison: &Comparison, baseline: &[VariantResult]) -> Option<String> {
    comparison.seeds().find_map(|(variant, seeds)| {
        let before = baseline.iter().find(|before| before.variant == variant)?;
        (before.seeds != seeds).then(|| {
            format!(
                "{variant}: the baseline has {} seeds from {} on, this comparison {} from {} on; \
                 compare the same seeds",
                before.seeds.len(),
                before.seeds.first().unwrap_or(&0),
                seeds.len(),
                seeds.first().unwrap_or(&0)
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

/// Fails if a run of some variant is invalid or stalled.
fn ended(results: &[VariantResult]) -> Result<(), Failure> {
    let of = |status: Status| {
        let ended = results.iter().filter(|result| result.status == status);
        let names: Vec<&str> = ended.map(|result| result.variant.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = of(Status::Invalid) {
        return Err(Failure::invalid(&format!("invalid: {names}")));
    }
    let what = "no open flow could end any more; the results are written";
    let stalled = |names| Err(Failure::Stalled(format!("stalled: {names}: {what}")));
    of(Status::Stalled).map_or(Ok(()), stalled)
}
