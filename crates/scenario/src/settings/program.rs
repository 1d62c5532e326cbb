//! `[[program]]`: its keys.

use crate::settings::hosts::HostSet;
use millpond_core::{Time, params};

params! {
    /// One `[[program]]`: a real program on a host of the lab.
    pub struct ProgramParams {
        /// Names the program's output files, and the table for `--set` and variants. Off:
        /// "program".
        pub name: Option<String> = None,
        /// The hosts that run it, from 0: a number, "all", or ranges such as ["0..7", "9"]. On
        /// several hosts each has a program of its own, called "NAME-HOST".
        pub host: HostSet = HostSet::Ranges(vec![(0, 0)]),
        /// The command, which `sh -c` runs in the host's network namespace. `{address}` becomes
        /// the address of this host, and `{host3}` that of host 3.
        pub command: String = String::new(),
        /// Words behind the command, for `--set`, variants and sweeps to change them alone.
        pub arguments: String = String::new(),
        /// When it starts. The lab slows this time as it slows the network; times within the
        /// command are wall-clock times.
        pub start: Time = Time::ZERO,
        /// Whether the run lasts until the program exits, and until its duration if it has one.
        /// Otherwise the program gets SIGTERM when the run ends, and SIGKILL two seconds later.
        pub awaits: bool = false,
        /// The class of the program's response times: each line of its standard output is one, in
        /// microseconds. Programs can share a class. Off: its output is text.
        pub responses: Option<String> = None,
    }
}

impl ProgramParams {
    /// Its own name, or "program".
    pub(crate) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "program".to_string())
    }
}
