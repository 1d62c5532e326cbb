//! The programs that ran on hosts of the lab, with links to their output.
//!
//! Invariant: a run without programs has no such section.

use super::{Variant, has_seeds};
use crate::model::names::output_file;
use crate::model::program::Program;
use crate::model::summary::Summary;
use crate::render::document::{Block, row, section, table};
use crate::render::draw::number::count;
use crate::render::markup::escape;
use std::path::{Path, PathBuf};

pub(super) struct Ran {
    program: Program,
    seed: u64,
    /// From the page's folder to the run's; empty, or with a slash at its end.
    place: String,
}

/// The programs of runs, whose page is in `dir`.
pub(super) fn of_runs(runs: &[PathBuf], summaries: &[Summary], dir: &Path) -> Vec<Ran> {
    let of = |(run, summary): (&PathBuf, &Summary)| {
        let place = run.strip_prefix(dir).unwrap_or(run);
        let parts = place.iter().map(|part| part.to_string_lossy().into_owned() + "/");
        let (place, seed) = (parts.collect::<String>(), summary.seed);
        let programs = summary.programs.iter().cloned();
        programs.map(move |program| Ran { program, seed, place: place.clone() }).collect::<Vec<_>>()
    };
    runs.iter().zip(summaries).flat_map(of).collect()
}

pub(super) fn programs(variants: &[Variant]) -> Option<Block> {
    let has_several = variants.len() > 1 || has_seeds(variants);
    let cells = |variant: &Variant, Ran { program, seed, place }: &Ran| {
        let cells = [
            program.host.to_string(),
            format!("<code>{}</code>", escape(&program.command)),
            escape(&program.status),
            link(program, place, "stdout", program.stdout_bytes),
            link(program, place, "stderr", program.stderr_bytes),
        ];
        let run = has_several.then(|| [variant.name(), seed.to_string()]).into_iter().flatten();
        row(escape(&program.name), cells.into_iter().chain(run))
    };
    let of = |of: &Variant| of.programs.iter().map(|ran| cells(of, ran)).collect::<Vec<_>>();
    let rows: Vec<_> = variants.iter().flat_map(of).collect();
    let run = if has_several { "|variant|seed" } else { "" };
    let head = format!("program|host|command|status|stdout|stderr{run}");
    let table = |rows| section("programs", "Programs", vec![table("", head.as_str(), rows)]);
    (!rows.is_empty()).then(|| table(rows))
}

/// The size of a stream, as a link to its file.
fn link(program: &Program, place: &str, stream: &str, bytes: u64) -> String {
    if bytes == 0 {
        return "empty".to_string();
    }
    let file = encoded(&format!("{place}{}", output_file(&program.name, stream)));
    format!("<a href=\"{file}\">{} bytes</a>", count(Some(bytes as f64)))
}

/// A path as the target of a link (RFC 3986, section 2).
fn encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let one = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_files_of_each_run() {
        let program = Program { name: "a b".into(), stdout_bytes: 3, ..Program::default() };
        let summary = Summary { programs: vec![program], seed: 2, ..Summary::default() };
        let ran = of_runs(&["/r/v/seed-2".into()], &[summary], Path::new("/r"));
        let Ran { program, seed, place } = &ran[0];
        assert_eq!((*seed, place.as_str()), (2, "v/seed-2/"));
        let text = link(program, place, "stdout", program.stdout_bytes);
        assert!(text.starts_with("<a href=\"v/seed-2/programs/a"), "{text}");
        assert_eq!(link(program, place, "stderr", 0), "empty");
    }
}
