//! Checksums that find damaged results: XXH64, as 16 hexadecimal digits.
//!
//! `manifest.json` has the checksum of each file beside it. `manifest.json` and `sweep.json` end
//! with a checksum of their own text, their *seal*. Checksums find damage by disks and cables; they
//! do not protect against forgery.
//!
//! Invariant: a checksum depends on the bytes of its file alone.

use std::fs::File;
use std::hash::Hasher;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use twox_hash::XxHash64;

use crate::model::error::{At, Error, Result};

/// Bytes read at a time.
const CHUNK: usize = 1 << 16;
const END: &str = "\n}\n";
/// The text around a seal's digits.
const SEAL: [&str; 2] = [",\n  \"checksum\": \"", "\"\n}\n"];
const DIGITS: usize = 16;

/// The checksum of some bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    format!("{:016x}", XxHash64::oneshot(0, bytes))
}

/// The checksum of a file. Reads it in pieces.
///
/// # Errors
/// If the file cannot be read.
pub fn of_file(path: &Path) -> Result<String> {
    let mut file = File::open(path).at("read", path)?;
    let (mut hasher, mut buffer) = (XxHash64::with_seed(0), vec![0; CHUNK]);
    loop {
        match file.read(&mut buffer).at("read", path)? {
            0 => return Ok(format!("{:016x}", hasher.finish())),
            read => hasher.write(&buffer[..read]),
        }
    }
}

/// An object as indented JSON, sealed.
pub(crate) fn sealed_text<T: Serialize>(value: &T) -> String {
    let mut text = crate::model::files::json_text(value);
    if text.ends_with(END) {
        let seal = of_bytes(text.as_bytes());
        text.truncate(text.len() - END.len());
        text = [&text, SEAL[0], &seal, SEAL[1]].concat();
    }
    text
}

/// The state of a text by its seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// The text is what was written.
    Whole,
    Broken,
    /// It has none: an earlier version wrote it.
    Missing,
}

pub(crate) fn seal_of(text: &[u8]) -> Seal {
    let Some(rest) = text.strip_suffix(SEAL[1].as_bytes()) else { return Seal::Missing };
    let Some((rest, digits)) = rest.len().checked_sub(DIGITS).map(|at| rest.split_at(at)) else {
        return Seal::Missing;
    };
    let Some(object) = rest.strip_suffix(SEAL[0].as_bytes()) else { return Seal::Missing };
    let whole = of_bytes(&[object, END.as_bytes()].concat());
    if whole.as_bytes() == digits { Seal::Whole } else { Seal::Broken }
}

/// Reads a sealed JSON file. Without a seal it is read as it stands.
pub(crate) fn read_sealed<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).at("read", path)?;
    if seal_of(&text) == Seal::Broken {
        return Err(damaged(path));
    }
    serde_json::from_slice(&text).at("read", path)
}

/// The error of a file that does not have its checksum.
pub(crate) fn damaged(path: &Path) -> Error {
    let reason = "is damaged: its checksum is not that of what was written".to_string();
    Error::Malformed { path: path.to_path_buf(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The reference values of the algorithm's specification (github.com/Cyan4973/xxHash, seed 0).
    #[test]
    fn checksums_are_those_of_xxh64() {
        assert_eq!(of_bytes(b""), "ef46db3751d8e999");
        assert_eq!(of_bytes(b"a"), "d24ec4f1a98c6e5b");
        let dir = crate::test_dir("checksum");
        let bytes: Vec<u8> = (0..3 * CHUNK + 5).map(|n| (n % 251) as u8).collect();
        std::fs::write(dir.join("x"), &bytes).unwrap();
        assert_eq!(of_file(&dir.join("x")).unwrap(), of_bytes(&bytes));
    }

    #[test]
    fn a_seal_finds_every_flipped_bit_of_what_it_seals() {
        let object = BTreeMap::from([("name", "x"), ("seed", "7")]);
        let text = sealed_text(&object);
        assert_eq!(seal_of(text.as_bytes()), Seal::Whole);
        let read: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
        assert_eq!((read.len(), read["seed"].as_str()), (3, "7"));
        let sealed = text.len() - SEAL[0].len() - DIGITS - SEAL[1].len();
        for bit in 0..text.len() * 8 {
            let mut bent = text.clone().into_bytes();
            bent[bit / 8] ^= 1 << (bit % 8);
            let seal = seal_of(&bent);
            assert!(
                seal != Seal::Whole && (bit / 8 >= sealed || seal == Seal::Broken),
                "bit {bit}: {seal:?}"
            );
        }
        assert_eq!([seal_of(b""), seal_of(b"{\n}\n")], [Seal::Missing; 2]);
    }
}
