//! `[[program]]`: its keys.

use millpond_core::{Time, params};

params! {
    /// One `[[program]]`: a real program on a host of the lab.
    pub struct ProgramParams {
        /// Names the program's output files, and the table for `--set` and variants. Off:
        /// "program".
        pub name: Option<String> = None,
        /// The host that runs it, from 0.
        pub host: u32 = 0,
        /// The command, which `sh -c` runs in the host's network namespace. `{address}` becomes
        /// the address of this host, and `{host3}` that of host 3.
        pub command: String = String::new(),
        /// When it starts. The lab slows this time as it slows the network; times within the
        /// command are wall-clock times.
        pub start: Time = Time::ZERO,
        /// Whether the run lasts until the program exits. Otherwise the program gets SIGTERM when
        /// the run ends, and SIGKILL two seconds later.
        pub awaits: bool = false,
    }
}

impl ProgramParams {
    /// Its own name, or "program".
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "program".to_string())
    }
}
