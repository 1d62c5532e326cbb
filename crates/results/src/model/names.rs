//! Names of folders, and names as text may show them.

use std::path::{Path, PathBuf};

use millpond_core::random::hash_name;

use super::manifest::MANIFEST;
use super::ordered::Ordered;

/// Longest name of a folder in bytes.
const NAME_MAX: usize = 180;

/// A name for a folder: letters, digits and `-_=+,@` and inner dots stay, anything else becomes
/// `%XX`, so that no name leaves the folder or hides, and different names stay different. A name
/// that is too long for a file system (they take 255 bytes) is cut, and ends with a hash of the
/// whole.
pub fn folder_name(name: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for (at, byte) in name.bytes().enumerate() {
        let plain =
            byte.is_ascii_alphanumeric() || b"-_=+,@".contains(&byte) || (byte == b'.' && at > 0);
        if plain {
            encoded.push(byte as char);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    let reserved = [MANIFEST, "progress.json", "compare.json", "report.html", "summary.json"];
    if encoded.is_empty() || reserved.contains(&encoded.as_str()) {
        encoded.push('%');
    }
    if encoded.len() > NAME_MAX {
        encoded.truncate(NAME_MAX - 17);
        let _ = write!(encoded, "-{:016x}", hash_name(name));
    }
    encoded
}

/// Where the run of a variant and seed is, within the folder of a compare: `VARIANT`, or
/// `VARIANT/seed-N` where there are several seeds.
pub fn run_folder(root: &Path, variant: &str, seed: u64, several_seeds: bool) -> PathBuf {
    let folder = root.join(folder_name(variant));
    if several_seeds { folder.join(format!("seed-{seed}")) } else { folder }
}

/// The name of a point's folder.
pub fn point_folder(values: &Ordered<String>) -> String {
    let label: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let label = if label.is_empty() { "base".to_string() } else { label.join(",") };
    folder_name(&label)
}

/// A name without characters that would move the cursor or change colours.
pub(crate) fn clean(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The folder of programs' output, within that of a run.
pub(crate) const PROGRAMS: &str = "programs";

/// The file of a program's stream (`stdout` or `stderr`), relative to the folder of its run.
pub(crate) fn output_file(program: &str, stream: &str) -> String {
    format!("{PROGRAMS}/{}.{stream}", folder_name(program))
}
