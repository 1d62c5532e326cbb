//! The worlds that a command runs in, by their names.

use crate::failure::Failure;
use clap::ValueEnum;
use millpond::World;

/// A world, as commands take it.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorldName {
    /// The simulator: virtual time
    #[default]
    Sim,
    /// Network namespaces with kernel TCP (Linux, root)
    Lab,
    /// Linux kernels in virtual time (Linux on x86_64; `make setup-virtual` builds one)
    Virtual,
}

/// The name of a world, as commands take it.
pub fn world_name(world: WorldName) -> &'static str {
    match world {
        WorldName::Sim => "sim",
        WorldName::Lab => "lab",
        WorldName::Virtual => "virtual",
    }
}

/// Remedy that errors of a build without its Linux part print.
#[cfg(all(not(feature = "linux"), target_os = "linux"))]
pub const REMEDY: &str = "build with --features linux (it needs clang and libelf)";
#[cfg(not(target_os = "linux"))]
pub const REMEDY: &str = "the command needs Linux";

/// The worlds of these names. Beside a lab the simulator and kernels in virtual time run the lab's
/// network; beside kernels the simulator has the kernels' timers.
#[cfg(all(feature = "linux", target_os = "linux"))]
pub fn worlds(names: &[WorldName], scale: Option<u32>) -> Result<Vec<Box<dyn World>>, Failure> {
    use millpond::{Lab, Sim};
    let lab = Lab { scale };
    let has = |name| names.contains(&name);
    let (has_lab, has_virtual) = (has(WorldName::Lab), has(WorldName::Virtual));
    if has_lab {
        need_root()?;
    }
    let world = |name: &WorldName| -> Result<Box<dyn World>, Failure> {
        Ok(match name {
            WorldName::Lab => Box::new(lab),
            WorldName::Virtual => kernels(has_lab.then_some(lab))?,
            WorldName::Sim if has_lab => Box::new(lab.simulator()),
            WorldName::Sim if has_virtual => beside_kernels(),
            WorldName::Sim => Box::new(Sim),
        })
    };
    names.iter().map(world).collect()
}

#[cfg(all(feature = "virtual", target_os = "linux"))]
fn kernels(slowed: Option<millpond::Lab>) -> Result<Box<dyn World>, Failure> {
    Ok(Box::new(millpond::Virtual { slowed, ..Default::default() }))
}

/// The same, with a console from a time on.
#[cfg(all(feature = "virtual", target_os = "linux"))]
pub fn with_console(at: millpond::Time) -> Result<Box<dyn World>, Failure> {
    Ok(Box::new(millpond::Virtual { console: Some(at), ..Default::default() }))
}

/// The same in a build without that world.
///
/// # Errors
/// [`Failure::Usage`] always.
#[cfg(not(all(feature = "virtual", target_os = "linux")))]
pub fn with_console(_: millpond::Time) -> Result<Box<dyn World>, Failure> {
    Err(Failure::Usage("this build has no world virtual".into()))
}

#[cfg(all(feature = "virtual", target_os = "linux"))]
fn beside_kernels() -> Box<dyn World> {
    Box::new(millpond::Virtual::default().simulator())
}

#[cfg(all(feature = "linux", not(feature = "virtual"), target_os = "linux"))]
fn kernels(_: Option<millpond::Lab>) -> Result<Box<dyn World>, Failure> {
    Err(Failure::Usage("this build has no world virtual; build with --features virtual".into()))
}

#[cfg(all(feature = "linux", not(feature = "virtual"), target_os = "linux"))]
fn beside_kernels() -> Box<dyn World> {
    Box::new(millpond::Sim)
}

/// Fails if labs are out of this user's reach.
///
/// # Errors
/// [`Failure::Usage`] for any user but root.
#[cfg(all(feature = "linux", target_os = "linux"))]
pub fn need_root() -> Result<(), Failure> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Failure::Usage("a lab needs root: its hosts are namespaces".into())),
    }
}

/// The simulator, which is the only world of this build.
#[cfg(not(all(feature = "linux", target_os = "linux")))]
pub fn worlds(names: &[WorldName], _: Option<u32>) -> Result<Vec<Box<dyn World>>, Failure> {
    match names.iter().find(|name| **name != WorldName::Sim) {
        Some(name) => {
            let name = world_name(*name);
            Err(Failure::Usage(format!("this build has no world {name}; {REMEDY}")))
        }
        None => Ok(names.iter().map(|_| Box::new(millpond::Sim) as Box<dyn World>).collect()),
    }
}
