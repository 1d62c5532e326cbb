//! A workload of rank programs, which takes the place of a list of flows.

use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Lines for a scenario that has no traffic yet.
pub(crate) const COMPLETES: [&str; 4] = [
    "the scenario has no traffic; add these lines, as `import hpcc --workload FILE` does:",
    "[[traffic]]",
    "kind = \"simai\" # or \"chakra\", \"goal\"; \"collective\" needs no file",
    "file = \"FILE\"",
];

/// A traffic table, and the files that it names: where each is, and its name beside the scenario.
pub(crate) struct Workload {
    pub table: String,
    pub copies: Vec<(PathBuf, String)>,
}

/// Makes a workload of SimAI, a program of GOAL or the traces of Chakra a traffic. Its content is
/// checked with the scenario's plan.
///
/// Traces are a file for each rank, `NAME.0.et`, `NAME.1.et`, …: any of them or `NAME` stands for
/// all.
///
/// # Errors
/// If there is no such file, or it cannot be read.
pub(crate) fn read(path: &Path, name: &str) -> Result<Workload> {
    let traces = traces(path);
    let (kind, file, copies) = if traces.is_empty() {
        let bytes =
            std::fs::read(path).map_err(|source| Error::Unread { path: path.into(), source })?;
        // The first line of SimAI's has the policy and the groups of the parallelism.
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
        let is_simai = head.contains("parallel_NPU_group") || head.starts_with("HYBRID_");
        let (kind, end) = if is_simai { ("simai", "txt") } else { ("goal", "goal") };
        let file = format!("{name}-workload.{end}");
        (kind, file.clone(), vec![(path.to_path_buf(), file)])
    } else {
        let named = |(rank, path)| (path, format!("{name}-workload.{rank}.et"));
        ("chakra", format!("{name}-workload"), (0..).zip(traces).map(named).collect())
    };
    let table = format!("[[traffic]]\nname = \"workload\"\nkind = \"{kind}\"\nfile = {file:?}\n");
    Ok(Workload { table, copies })
}

/// The traces of all ranks, if these are any.
fn traces(path: &Path) -> Vec<PathBuf> {
    let text = path.to_string_lossy();
    let prefix = match text.strip_suffix(".et").and_then(|text| text.rsplit_once('.')) {
        Some((prefix, rank)) if rank.bytes().all(|byte| byte.is_ascii_digit()) => prefix,
        _ => &text,
    };
    let of = |rank: u32| PathBuf::from(format!("{prefix}.{rank}.et"));
    (0..).map(of).take_while(|path| path.is_file()).collect()
}
