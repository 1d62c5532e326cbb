//! The names of a job's traces: a file for each rank, by the rank's number in its name.
//!
//! Invariant: the names that are found are those of ranks 0 to n − 1, in this order.

use crate::error::meant;
use std::path::Path;

/// Stands for the rank's number in a path.
const RANK: &str = "{rank}";
/// Behind the prefix of a path without one.
const ENDING: &str = ".{rank}.et";

/// A fault: a file, and why.
type Wrong = (String, String);

/// The traces of a path, which is a prefix or names the rank's place by `{rank}`.
pub(super) fn names(base: &Path, path: &str) -> Result<Vec<String>, Wrong> {
    let form = match path.contains(RANK) {
        true => path.to_string(),
        false => format!("{path}{ENDING}"),
    };
    let (folder, name) = form.rsplit_once('/').map_or(("", form.as_str()), |(folder, name)| {
        if folder.is_empty() { ("/", name) } else { (folder, name) }
    });
    // A scenario in the current folder, or from standard input, has no folder in its own name.
    let folder = Path::new(".").join(base).join(folder);
    let Some((before, after)) = name.split_once(RANK) else {
        return Err((path.into(), format!("{RANK} stands in the name of the file")));
    };
    let entries = std::fs::read_dir(folder)
        .map_err(|error| (path.into(), format!("its folder cannot be read: {error}")))?;
    let found: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let mut ranks: Vec<u32> = found.iter().filter_map(|file| rank(file, before, after)).collect();
    ranks.sort_unstable();
    let full = |rank: u32| form.replacen(RANK, &rank.to_string(), 1);
    let Some(last) = ranks.last() else {
        let mut prefixes: Vec<&str> = found.iter().filter_map(|file| prefix(file)).collect();
        prefixes.sort_unstable();
        let help = meant(before.trim_end_matches('.'), prefixes.iter().copied());
        let reason = match path.ends_with(".et") && !path.contains(RANK) {
            true => "expected the prefix of the traces, without the rank and \".et\"".to_string(),
            false => format!("there is no trace {}{help}", full(0)),
        };
        return Err((path.into(), reason));
    };
    match (0..).zip(&ranks).find(|(expected, rank)| expected != *rank) {
        Some((missing, _)) => {
            Err((full(missing), format!("there is no such trace, but one of rank {last}")))
        }
        None => Ok(ranks.into_iter().map(full).collect()),
    }
}

/// The rank in a file's name: a number without leading zeros.
fn rank(file: &str, before: &str, after: &str) -> Option<u32> {
    let number = file.strip_prefix(before)?.strip_suffix(after)?;
    number.parse::<u32>().ok().filter(|rank| rank.to_string() == number)
}

/// The prefix of a file that could be a trace.
fn prefix(file: &str) -> Option<&str> {
    let (prefix, number) = file.strip_suffix(".et")?.rsplit_once('.')?;
    number.parse::<u32>().is_ok().then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A folder with empty files, which is removed with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[&str]) -> Folder {
            let own = format!("millpond-traces-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(own);
            std::fs::create_dir_all(folder.join("deep")).unwrap();
            files.iter().for_each(|file| std::fs::write(folder.join(file), "").unwrap());
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn traces_are_in_the_order_of_ranks() {
        let many: Vec<String> = (0..11).map(|rank| format!("deep/job.{rank}.et")).collect();
        let mut files: Vec<&str> = many.iter().map(String::as_str).collect();
        files.extend(["deep/job.00.et", "deep/job.x.et", "deep/other.7.et", "r0-a", "r1-a"]);
        let folder = Folder::new("order", &files);
        assert_eq!(names(&folder.0, "deep/job").unwrap(), many);
        assert_eq!(names(&folder.0, "r{rank}-a").unwrap(), ["r0-a", "r1-a"]);
        // Of a scenario that is named without its folder: tests run in their crate's.
        let here = names(Path::new(""), "job").unwrap_err();
        assert_eq!(here.1, "there is no trace job.0.et");
        let absolute = folder.0.join("deep/job");
        let found = names(Path::new("."), absolute.to_str().unwrap()).unwrap();
        assert_eq!(found.len(), 11);
        assert!(found[10].ends_with("deep/job.10.et"));
    }

    #[test]
    fn missing_traces_are_named() {
        let folder = Folder::new("gap", &["job.0.et", "job.1.et", "job.3.et"]);
        let reason = |path: &str| names(&folder.0, path).unwrap_err();
        let gap = ("job.2.et".into(), "there is no such trace, but one of rank 3".into());
        assert_eq!(reason("job"), gap);
        assert_eq!(reason("jop").1, "there is no trace jop.0.et; did you mean \"job\"?");
        assert!(reason("job.0.et").1.starts_with("expected the prefix"));
        assert!(reason("none/job").1.starts_with("its folder cannot be read"));
        assert!(reason("{rank}/job").1.contains("in the name of the file"));
    }
}
