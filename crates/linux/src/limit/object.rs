//! The compiled eBPF programs, and what loading them has in common.
//!
//! Invariant: libbpf writes nothing to the terminal; what matters of its words comes back as an
//! error.

use super::Error;
use super::capability::PROGRAMS;
use libbpf_rs::{Link, Map, MapCore, Object, ObjectBuilder, OpenMapMut, ProgramMut};

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

/// Loaded programs and maps, with the task that they are for, which errors name.
pub(super) struct Loaded {
    what: &'static str,
    object: Object,
}

/// The error of a part that a compiled file lacks.
fn absent(what: &str, name: &str) -> Error {
    Error::Kernel { what: what.into(), reason: format!("no {name}") }
}

pub(super) fn program<'o>(
    object: &'o Object,
    what: &str,
    name: &str,
) -> Result<ProgramMut<'o>, Error> {
    object.progs_mut().find(|program| program.name() == name).ok_or_else(|| absent(what, name))
}

impl Loaded {
    /// Loads a compiled file. Before, `prepare` is called with each of its maps and its name.
    pub(super) fn new(
        object: &'static Aligned<[u8]>,
        what: &'static str,
        mut prepare: impl FnMut(&mut OpenMapMut<'_>, &str) -> libbpf_rs::Result<()>,
    ) -> Result<Loaded, Error> {
        libbpf_rs::set_print(None);
        let mut load = || {
            let mut open = ObjectBuilder::default().open_memory(&object.0)?;
            for mut map in open.maps_mut() {
                let name = map.name().to_string_lossy().into_owned();
                prepare(&mut map, &name)?;
            }
            open.load()
        };
        Ok(Loaded { what, object: load().map_err(|e| Error::kernel(what, PROGRAMS, &e))? })
    }

    /// Loads a compiled file as it is.
    pub(super) fn plain(
        object: &'static Aligned<[u8]>,
        what: &'static str,
    ) -> Result<Loaded, Error> {
        Loaded::new(object, what, |_, _| Ok(()))
    }

    /// The result of a call of libbpf's.
    pub(super) fn checked<T>(&self, done: libbpf_rs::Result<T>) -> Result<T, Error> {
        done.map_err(|e| Error::kernel(self.what, PROGRAMS, &e))
    }

    pub(super) fn map(&self, name: &str) -> Result<Map<'_>, Error> {
        self.object.maps().find(|map| map.name() == name).ok_or_else(|| absent(self.what, name))
    }

    pub(super) fn program(&self, name: &str) -> Result<ProgramMut<'_>, Error> {
        program(&self.object, self.what, name)
    }

    /// Attaches a program where its section names.
    pub(super) fn attach(&self, name: &str) -> Result<Link, Error> {
        self.checked(self.program(name)?.attach())
    }

    pub(super) fn into_object(self) -> Object {
        self.object
    }
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
