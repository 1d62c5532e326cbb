//! The image of a guest: a file system of few files, as the archive that a kernel unpacks when it
//! boots (cpio, "newc": `Documentation/driver-api/early-userspace/buffer-format.rst`).
//!
//! Invariant: its bytes depend on the agent alone.

use crate::error::Error;
use std::path::{Path, PathBuf};

pub(crate) const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));

/// Folders that the agent mounts file systems on.
const FOLDERS: [&str; 12] =
    ["dev", "proc", "sys", "run", "tmp", "var", "var/log", "host", "etc", "root", "bin", "usr"];
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;
/// The console's numbers, and those of what discards all.
const CONSOLE: (u32, u32) = (5, 1);
const NULL: (u32, u32) = (1, 3);

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn add(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        // Number, mode, owner, group, links, time, size, the device that has it, the device that
        // it is, length of the name, checksum.
        let numbers = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            content.len() as u32,
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for number in numbers {
            self.bytes.extend_from_slice(format!("{number:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }
}

/// The image's bytes.
pub fn bytes() -> Vec<u8> {
    let mut archive = Archive::default();
    FOLDERS.iter().for_each(|folder| archive.add(folder, FOLDER, (0, 0), &[]));
    archive.add("dev/console", DEVICE, CONSOLE, &[]);
    archive.add("dev/null", DEVICE, NULL, &[]);
    archive.add("init", PROGRAM, (0, 0), AGENT);
    archive.add("TRAILER!!!", 0, (0, 0), &[]);
    archive.bytes.resize(archive.bytes.len().next_multiple_of(512), 0);
    archive.bytes
}

/// Writes the image into a folder; its place.
pub fn write(folder: &Path) -> Result<PathBuf, Error> {
    let place = folder.join("image");
    std::fs::write(&place, bytes()).map_err(|e| Error::system(place.display().to_string(), e))?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_an_archive_that_ends_with_the_agent() {
        let bytes = bytes();
        assert_eq!(bytes, super::bytes());
        assert!(bytes.starts_with(b"070701") && bytes.len().is_multiple_of(512));
        let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        assert!(has(b"init\0") && has(b"TRAILER!!!\0") && has(AGENT));
        assert!(!cfg!(target_arch = "x86_64") || AGENT.starts_with(b"\x7fELF"));
    }
}
