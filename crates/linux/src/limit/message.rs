//! The notice from a millpond that receives to one that sends: this flow of yours is too fast. One
//! datagram, one flow.
//!
//! ```text
//! 0   "mpln"                 4
//! 4   version 1, zeros       4
//! 8   nanoseconds since 1970 8
//! 16  the flow              36
//! 52  HMAC-SHA256 of it all 16, the first of 32 bytes
//! ```
//!
//! A host that lacks the secret can repeat what it saw, for [`LIFETIME`]: the flow is then slowed
//! down for so long. A host that has it can do that to flows to itself. NRM's authors leave the
//! channel open (Brakmo, Starovoitov, Linux Plumbers Conference 2018); ECT(1), which they thought
//! of, is RFC 9331's.
//!
//! Invariant: whatever the bytes, decoding gives a flow that somebody with the secret has named
//! lately, or a reason why not.

use super::Error;
use super::layout::Flow;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const BYTES: usize = HEAD + Flow::BYTES + TAG;
/// How old a message may be, and how far clocks may differ.
pub const LIFETIME: Duration = Duration::from_secs(2);
pub const SECRET_LEAST: usize = 16;

const MAGIC: [u8; 8] = *b"mpln\x01\0\0\0";
const HEAD: usize = 16;
const TAG: usize = 16;

/// The secret that hosts share, so that none else can slow their flows down.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

/// Why a datagram is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Form,
    /// Whoever sent it has another secret.
    Forged,
    /// It is too old, or its sender's clock is wrong.
    Stale,
}

impl Secret {
    /// Reads a secret's file, without its last newline.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, is readable by everybody, or is too short.
    pub fn read(path: &Path) -> Result<Secret, Error> {
        let mode = std::fs::metadata(path).map_err(|e| Error::file(path, e))?.permissions().mode();
        if mode & 0o007 != 0 {
            return Err(Error::file(
                path,
                format!("everybody may read this secret: chmod 600 {}", path.display()),
            ));
        }
        let bytes = std::fs::read(path).map_err(|e| Error::file(path, e))?;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        Secret::new(bytes).ok_or_else(|| {
            Error::file(
                path,
                format!("a secret has at least {SECRET_LEAST} bytes, this has {}", bytes.len()),
            )
        })
    }

    /// `None`: too short.
    pub fn new(bytes: &[u8]) -> Option<Secret> {
        (bytes.len() >= SECRET_LEAST)
            .then(|| Hmac::new_from_slice(bytes).ok().map(Secret))
            .flatten()
    }

    fn over(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mut tag = self.0.clone();
        tag.update(bytes);
        tag
    }
}

fn nanoseconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

pub fn encode(flow: Flow, at: SystemTime, secret: &Secret) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..HEAD].copy_from_slice(&nanoseconds(at).to_be_bytes());
    bytes[HEAD..BYTES - TAG].copy_from_slice(&flow.to_bytes());
    let tag = secret.over(&bytes[..BYTES - TAG]).finalize().into_bytes();
    bytes[BYTES - TAG..].copy_from_slice(&tag[..TAG]);
    bytes
}

/// Returns the flow that a datagram names, which arrived at `now`.
///
/// # Errors
/// [`Refused::Form`] if the datagram has another length or version, [`Refused::Forged`] if its tag
/// is of another secret, [`Refused::Stale`] if its time is too far from `now`.
pub fn decode(datagram: &[u8], now: SystemTime, secret: &Secret) -> Result<Flow, Refused> {
    let bytes: &[u8; BYTES] = datagram.try_into().map_err(|_| Refused::Form)?;
    if bytes[..8] != MAGIC {
        return Err(Refused::Form);
    }
    let (signed, tag) = bytes.split_at(BYTES - TAG);
    // In constant time: a comparison that ends early would reveal how much of a tag was guessed.
    secret.over(signed).verify_truncated_left(tag).map_err(|_| Refused::Forged)?;
    let (head, flow) = signed.split_at(HEAD);
    let at = u64::from_be_bytes(head[8..].try_into().map_err(|_| Refused::Form)?);
    if nanoseconds(now).abs_diff(at) > LIFETIME.as_nanos() as u64 {
        return Err(Refused::Stale);
    }
    flow.try_into().map(Flow::from_bytes).map_err(|_| Refused::Form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        Flow {
            source: "10.0.0.1:40000".parse().unwrap(),
            destination: "10.0.0.2:80".parse().unwrap(),
        }
    }

    #[test]
    fn it_arrives_as_it_was_sent() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let now = SystemTime::now();
        let bytes = encode(flow(), now, &secret);
        assert_eq!(bytes.len(), 68);
        assert_eq!(decode(&bytes, now, &secret), Ok(flow()));
        assert_eq!(decode(&bytes, now + Duration::from_secs(1), &secret), Ok(flow()));
        for off in [now + Duration::from_secs(3), now - Duration::from_secs(3), UNIX_EPOCH] {
            assert_eq!(decode(&bytes, off, &secret), Err(Refused::Stale));
        }
    }

    #[test]
    fn what_was_changed_is_refused() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        let (now, other) = (SystemTime::now(), Secret::new(b"0123456789abcdeg").unwrap());
        let good = encode(flow(), now, &secret);
        assert_eq!(decode(&good, now, &other), Err(Refused::Forged));
        for at in 0..BYTES {
            for bit in 0..8 {
                let mut bad = good;
                bad[at] ^= 1 << bit;
                let expected = if at < 8 { Refused::Form } else { Refused::Forged };
                assert_eq!(decode(&bad, now, &secret), Err(expected), "byte {at}, bit {bit}");
            }
            assert_eq!(decode(&good[..at], now, &secret), Err(Refused::Form));
        }
        let mut long = good.to_vec();
        long.push(0);
        assert_eq!(decode(&long, now, &secret), Err(Refused::Form));
    }

    #[test]
    fn short_secrets_are_none() {
        assert!(Secret::new(&[0; SECRET_LEAST - 1]).is_none());
        let path = std::env::temp_dir().join(format!("millpond-secret-{}", std::process::id()));
        let allow =
            |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::write(&path, "fifteen bytes..\n").unwrap();
        allow(0o604);
        assert!(Secret::read(&path).err().unwrap().to_string().contains("chmod 600"));
        allow(0o600);
        assert!(Secret::read(&path).err().unwrap().to_string().contains("this has 15"));
        std::fs::write(&path, "sixteen bytes...\n").unwrap();
        assert!(Secret::read(&path).is_ok());
        std::fs::remove_file(&path).unwrap();
        assert!(Secret::read(&path).is_err());
    }
}
