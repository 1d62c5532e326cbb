//! The compiled eBPF programs, and what loading them has in common.
//!
//! Invariant: libbpf writes nothing to the terminal; what matters of its words comes back as an
//! error.

use super::Error;
use super::capability::PROGRAMS;
use libbpf_rs::{ObjectBuilder, OpenMapMut, OpenObject};

/// A compiled file, aligned as ELF wants it.
#[repr(C, align(8))]
pub(super) struct Aligned<T: ?Sized>(T);

macro_rules! object {
    ($name:ident, $file:literal) => {
        pub(super) static $name: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $file)));
    };
}
object!(LIMIT, "limit.bpf.o");
object!(HEED, "heed.bpf.o");
object!(KICK, "kick.bpf.o");
object!(PACE, "pace.bpf.o");
object!(CONGESTION, "congestion.bpf.o");
object!(FOREIGN, "foreign.bpf.o");
object!(DCTCP, "dctcp.bpf.o");

/// Reads one, ready to be changed and loaded.
pub(super) fn open(object: &'static Aligned<[u8]>, what: &str) -> Result<OpenObject, Error> {
    libbpf_rs::set_print(None);
    ObjectBuilder::default().open_memory(&object.0).map_err(|e| Error::kernel(what, PROGRAMS, &e))
}

/// Sets what a program's constants begin with, if `map` is where they are. libbpf calls it by the
/// file's name and the section's.
pub(super) fn set_constants(map: &mut OpenMapMut<'_>, bytes: &[u8]) {
    if map.name().to_string_lossy().ends_with(".rodata")
        && let Some(data) = map.initial_value_mut()
    {
        data[..bytes.len()].copy_from_slice(bytes);
    }
}
