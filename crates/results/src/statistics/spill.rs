//! Data that is too much for memory: items of one length in a temporary file, appended and read
//! again in their order.
//!
//! Invariant: the file has no name for longer than an instant, so nothing is left however the
//! process ends.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::model::{At, Result};

const CHUNK: usize = 1 << 13;

/// Items of `N` bytes. Without any there is no file.
#[derive(Debug)]
pub(crate) struct Spill<const N: usize> {
    file: Option<File>,
    path: PathBuf,
    items: u64,
}

impl<const N: usize> Spill<N> {
    /// The file, where one is needed, is made at `path`.
    pub fn new(path: PathBuf) -> Spill<N> {
        Spill { file: None, path, items: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Appends items.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be created or written.
    pub fn append(&mut self, items: impl Iterator<Item = [u8; N]>) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(nameless(&self.path)?),
        };
        file.seek(SeekFrom::End(0)).at("write", &self.path)?;
        let bytes: Vec<u8> = items.flatten().collect();
        file.write_all(&bytes).at("write", &self.path)?;
        self.items += (bytes.len() / N) as u64;
        Ok(())
    }

    /// Shows every item, in order.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read.
    pub fn each(&mut self, mut visit: impl FnMut(&[u8; N])) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start(0)).at("read", &self.path)?;
        let (mut buffer, mut left) = (vec![0u8; CHUNK * N], self.items);
        while left > 0 {
            let count = left.min(CHUNK as u64);
            let chunk = &mut buffer[..count as usize * N];
            file.read_exact(chunk).at("read", &self.path)?;
            chunk.as_chunks::<N>().0.iter().for_each(&mut visit);
            left -= count;
        }
        Ok(())
    }
}

/// A file to write and read again that is gone when it is closed.
fn nameless(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .at("create", path)?;
    fs::remove_file(path).at("remove", path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_dir;

    #[test]
    fn items_come_back_in_order_and_no_file_is_left() {
        let dir = test_dir("spill");
        let mut spill = Spill::<16>::new(dir.join("spill"));
        let mut found = Vec::new();
        spill.each(|item| found.push(*item)).unwrap();
        assert!(found.is_empty() && spill.is_empty());
        let item = |n: u32| u128::from(n).to_le_bytes();
        spill.append((0..9_000).map(item)).unwrap();
        spill.each(|_| ()).unwrap();
        spill.append((9_000..20_000).map(item)).unwrap();
        spill.each(|item| found.push(*item)).unwrap();
        assert!(found == (0..20_000).map(item).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(&*dir).unwrap().count(), 0, "a spill file is left");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_names_the_spill_file() {
        let mut spill = Spill::<8>::new(PathBuf::from("/elsewhere/spill"));
        spill.file = Some(OpenOptions::new().read(true).write(true).open("/dev/full").unwrap());
        let error = spill.append([[0; 8]; 4].into_iter()).unwrap_err();
        assert!(error.to_string().contains("/elsewhere/spill"), "{error}");
    }
}
