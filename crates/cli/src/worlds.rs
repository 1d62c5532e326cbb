//! The worlds that a command runs in, by their names.

use crate::args::WorldName;
use crate::failure::Failure;
use millpond::World;

/// Remedy that errors of a build without its Linux part print.
#[cfg(all(not(feature = "linux"), target_os = "linux"))]
pub const REMEDY: &str = "build with --features linux (it needs clang and libelf)";
/// The same on other systems.
#[cfg(not(target_os = "linux"))]
pub const REMEDY: &str = "the command needs Linux";

/// The worlds of these names. Beside a lab the simulator runs the lab's network.
#[cfg(all(feature = "linux", target_os = "linux"))]
pub fn worlds(names: &[WorldName], scale: Option<u32>) -> Result<Vec<Box<dyn World>>, Failure> {
    use millpond::{Lab, Sim};
    let lab = Lab { scale };
    let has_lab = names.contains(&WorldName::Lab);
    if has_lab {
        need_root()?;
    }
    let world = |name: &WorldName| -> Box<dyn World> {
        match name {
            WorldName::Lab => Box::new(lab),
            WorldName::Sim if has_lab => Box::new(lab.simulator()),
            WorldName::Sim => Box::new(Sim),
        }
    };
    Ok(names.iter().map(world).collect())
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
    match names.contains(&WorldName::Lab) {
        true => Err(Failure::Usage(format!("this build has no lab; {}", REMEDY))),
        false => Ok(names.iter().map(|_| Box::new(millpond::Sim) as Box<dyn World>).collect()),
    }
}
