//! Names of a scenario that name files and folders of its results.
//!
//! Invariant: a name that passes is one part of a path on every system.

/// The longest name of a file or folder, in bytes. A variant's and a seed's may come beside it.
const NAME_MAX: usize = 100;

/// Whether a name can name a folder of results.
pub(crate) fn check_folder_name(name: &str) -> Result<(), String> {
    check_file_name(name, "a folder of results")
}

/// Whether a name can name `what`.
pub(crate) fn check_file_name(name: &str, what: &str) -> Result<(), String> {
    let bad = |c: char| c.is_control() || "/\\:*?\"<>|".contains(c);
    if name.trim().is_empty() || name == "." || name == ".." {
        return Err(format!("{name:?} cannot name {what}"));
    }
    if name.len() > NAME_MAX {
        return Err(format!(
            "{name:?} cannot name {what}: it has {} bytes, {NAME_MAX} may be",
            name.len()
        ));
    }
    match name.chars().find(|&c| bad(c)) {
        Some(c) => Err(format!("{name:?} cannot name {what} because of {c:?}")),
        None => Ok(()),
    }
}
