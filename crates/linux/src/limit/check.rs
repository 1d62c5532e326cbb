//! Whether files can be applied, without a host: no cgroup, no privilege and no kernel is asked.
//!
//! Invariant: a file with an error here is refused by every `apply`; one without may still name
//! cgroups that a host lacks.

use super::Error;
use super::cgroup::Cgroup;
use super::config::{Config, Target};
use super::plan;
use super::store::Source;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// Reads files that are to be applied together. Their scopes may be limits of any of them.
///
/// # Errors
/// [`Error::File`] if a file cannot be read, [`Error::Config`] if it has errors, and the errors of
/// [`plan`](plan::plan), with a cgroup for each limit.
pub fn check(files: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(|e| Error::file(file, e))?;
        let name = file.to_string_lossy().into_owned();
        let config = match files {
            [_] => Config::parse(&name, &text, &[])?,
            _ => Config::parse_part(&name, &text)?,
        };
        sources.push(Source { file: name, config });
    }
    let known = RefCell::new(HashMap::new());
    plan::plan(&sources, &Vec::new(), &|target| Ok(pretend(target, &mut known.borrow_mut())))?;
    Ok(sources)
}

/// A cgroup as a target could have it: paths lie below each other by their parts, all else lies at
/// the top.
fn pretend(target: &Target, known: &mut HashMap<PathBuf, u64>) -> Cgroup {
    let path = match target {
        Target::Path(path) => PathBuf::from("/").join(path),
        other => PathBuf::from(format!("/{other:?}")),
    };
    let next = known.len() as u64 + 1;
    let id = *known.entry(path.clone()).or_insert(next);
    Cgroup { level: path.components().count() as u32 - 1, path, id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_may_be_in_another_file_that_is_checked_with_it() {
        let folder = std::env::temp_dir().join(format!("millpond-check-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let a = file("a", "[[limit]]\nname = \"a\"\ncgroup = \"x\"\nscopes = [\"up\"]\n");
        let b = file("b", "[[limit]]\nname = \"up\"\n[[floor]]\nunit = \"ssh.service\"\n");
        let said = |files: &[PathBuf]| check(files).unwrap_err().to_string();
        assert!(check(&[a.clone(), b.clone()]).is_ok());
        assert!(matches!(check(std::slice::from_ref(&a)), Err(Error::Config(_))));
        let c = file("c", "[[limit]]\nname = \"c\"\ncgroup = \"/x\"\n");
        assert!(said(&[a.clone(), b, c]).contains("have the same cgroup"));
        assert!(said(&[a.clone(), a]).contains("another name"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
