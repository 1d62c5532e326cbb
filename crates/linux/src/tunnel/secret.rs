//! Secrets that two switches share.
//!
//! A key file has a secret a line, of at least 16 bytes of text; empty lines and those that begin
//! with `#` do not count. The first is what this end seals with, all of them open. So a key is
//! changed without loss in three steps at both ends: add the new one below the old, move it to the
//! top, take the old one away.
//!
//! Invariant: what is derived for one purpose, one direction and one pair of processes is of use
//! for nothing else.

use ring::{aead, hmac};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A secret has at least so many bytes.
pub const LENGTH_LEAST: usize = 16;
pub const SECRETS_MAX: usize = 4;
/// A key file is no larger.
const FILE_MAX: u64 = 4096;

/// The random bytes that a process has drawn when it started.
pub type Nonce = [u8; 16];

/// One secret, as what is derived from it.
#[derive(Clone)]
pub struct Secret {
    root: hmac::Key,
    probes: hmac::Key,
    /// By which the other end finds it.
    pub id: u16,
}

fn key(root: &hmac::Key, purpose: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(root, purpose).as_ref())
}

impl Secret {
    /// From a line of a key file; `None`: it is too short.
    pub fn new(text: &[u8]) -> Option<Secret> {
        if text.len() < LENGTH_LEAST {
            return None;
        }
        let salt = hmac::Key::new(hmac::HMAC_SHA256, b"millpond tunnel 1");
        let root = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&salt, text).as_ref());
        let id = hmac::sign(&root, b"id");
        let id = u16::from_be_bytes([id.as_ref()[0], id.as_ref()[1]]);
        Some(Secret { probes: key(&root, b"probes"), root, id })
    }

    pub(super) fn tag(&self, probe: &[u8]) -> [u8; 16] {
        let tag = hmac::sign(&self.probes, probe);
        std::array::from_fn(|i| tag.as_ref()[i])
    }
    /// Whether this is the tag of a probe. Takes as long whatever is wrong with it.
    pub(super) fn is_tag(&self, probe: &[u8], tag: &[u8; 16]) -> bool {
        let right = self.tag(probe);
        right.iter().zip(tag).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }

    /// The key that authenticates control datagrams from one process to another.
    pub(super) fn overlay(&self, from: &Nonce, to: &Nonce) -> [u8; 32] {
        let purpose = [&b"overlay"[..], from, to].concat();
        let tag = hmac::sign(&self.root, &purpose);
        std::array::from_fn(|i| tag.as_ref()[i])
    }
    /// The key that seals frames from one process to another, and a number by which it is found.
    pub(super) fn frames(&self, from: &Nonce, to: &Nonce) -> (u16, aead::LessSafeKey) {
        let purpose = [&b"frames"[..], from, to].concat();
        let bytes = hmac::sign(&self.root, &purpose);
        let algorithm = &aead::AES_128_GCM;
        let (key, rest) = bytes.as_ref().split_at(algorithm.key_len());
        let key = aead::UnboundKey::new(algorithm, key).expect("a key of the algorithm's length");
        (u16::from_be_bytes([rest[0], rest[1]]), aead::LessSafeKey::new(key))
    }
}

#[derive(Clone, Default)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// Reads the text of a key file: a secret a line.
    ///
    /// # Errors
    /// The line of a secret that is too short or has the number of another; no secret, or too many.
    pub fn parse(text: &str) -> Result<Secrets, String> {
        let mut secrets: Vec<Secret> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let secret = Secret::new(line.as_bytes()).ok_or_else(|| {
                format!("line {number}: a secret has at least {LENGTH_LEAST} bytes")
            })?;
            if secrets.iter().any(|other| other.id == secret.id) {
                return Err(format!(
                    "line {number}: has the number of a secret above; draw another one"
                ));
            }
            secrets.push(secret);
        }
        match secrets.len() {
            0 => Err("there is no secret in it".into()),
            1..=SECRETS_MAX => Ok(Secrets(secrets)),
            _ => Err(format!("it has more than {SECRETS_MAX} secrets")),
        }
    }

    /// Reads a key file that nobody but its owner may read or write.
    ///
    /// # Errors
    /// The file cannot be read, is too long, or is open to others, and the errors of
    /// [`Secrets::parse`].
    pub fn read(path: &Path) -> Result<Secrets, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let file = std::fs::File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() || meta.len() > FILE_MAX {
            return Err(format!(
                "{}: is no key file: those are files of at most {FILE_MAX} bytes",
                path.display()
            ));
        }
        if meta.mode() & 0o077 != 0 {
            let mode = meta.mode() & 0o777;
            return Err(format!(
                "{}: others may read or write it (mode {mode:o}): chmod 600",
                path.display()
            ));
        }
        let text = std::io::read_to_string(file).map_err(failed)?;
        Secrets::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    pub fn first(&self) -> Option<&Secret> {
        self.0.first()
    }
    pub fn find(&self, id: u16) -> Option<&Secret> {
        self.0.iter().find(|secret| secret.id == id)
    }
    pub(super) fn all(&self) -> &[Secret] {
        &self.0
    }
    pub fn is_same(&self, other: &Secrets) -> bool {
        let tags = |secrets: &Secrets| secrets.0.iter().map(|s| s.tag(b"")).collect::<Vec<_>>();
        tags(self) == tags(other)
    }
}

/// Never shown.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn key_files() {
        let good = "# of left and right\n\n  0123456789abcdef \n0123456789abcdeX\n";
        let secrets = Secrets::parse(good).unwrap();
        let first = secrets.first().unwrap();
        assert_eq!(first.id, Secret::new(b"0123456789abcdef").unwrap().id);
        assert!(secrets.find(first.id).is_some() && secrets.find(first.id ^ 1).is_none());
        assert!(
            secrets.is_same(&Secrets::parse(good).unwrap())
                && format!("{secrets:?}") == "2 secrets"
        );
        assert!(!secrets.is_same(&Secrets::parse("0123456789abcdef").unwrap()));
        for (text, what) in [
            ("", "no secret"),
            ("# only\n", "no secret"),
            ("a\nshort", "line 1: a secret has at least 16"),
            ("0123456789abcdef\n0123456789abcdef", "line 2: has the number of a secret above"),
        ] {
            assert!(Secrets::parse(text).unwrap_err().contains(what), "{text:?}");
        }
        let many: String = (0..5).map(|i| format!("0123456789abcde{i}\n")).collect();
        assert!(Secrets::parse(&many).unwrap_err().contains("more than 4"));
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("millpond-key-{}", std::process::id()));
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let mode =
            |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o640);
        assert!(Secrets::read(&path).unwrap_err().contains("mode 640): chmod 600"));
        mode(0o600);
        assert!(Secrets::read(&path).is_ok());
        std::fs::remove_file(&path).unwrap();
        assert!(Secrets::read(&path).unwrap_err().contains("No such file"));
    }

    #[test]
    fn directions_processes_and_purposes_have_keys_of_their_own() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let (a, b) = ([1; 16], [2; 16]);
        let sealed = |(_, key): (u16, aead::LessSafeKey)| {
            let nonce = aead::Nonce::assume_unique_for_key([0; 12]);
            key.seal_in_place_separate_tag(nonce, aead::Aad::empty(), &mut [])
                .unwrap()
                .as_ref()
                .to_vec()
        };
        let all = [secret.frames(&a, &b), secret.frames(&b, &a), secret.frames(&a, &a)].map(sealed);
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
        assert!(secret.is_tag(b"x", &secret.tag(b"x")) && !secret.is_tag(b"y", &secret.tag(b"x")));
    }
}
