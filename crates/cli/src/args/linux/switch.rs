//! Arguments of `millpond switch`.

use super::ShowArgs;
use crate::args::JsonArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `switch`.
#[derive(Args, Debug)]
pub struct SwitchArgs {
    /// The folder that the switch keeps its state in; each folder is a switch of its own
    #[arg(long, global = true, value_name = "DIR", default_value = "/run/millpond/switch")]
    pub state: PathBuf,
    /// The command.
    #[command(subcommand)]
    pub action: SwitchAction,
}

/// The commands of `switch`.
#[derive(Subcommand, Debug)]
pub enum SwitchAction {
    /// Run the switch of a file, or change the running one into it
    #[command(after_help = "\
Ports that stay keep their interfaces and counters. A port that cannot be opened is tried again
every second; the exit code is then 1.")]
    Apply {
        /// The switch (TOML)
        file: PathBuf,
        /// Check the file, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Connect network namespaces, without a file
    #[command(after_help = "\
Each namespace gets an interface mp0 with the next free address of the subnet. Namespaces are added
to the switch that runs, or to a new one.

Examples: millpond switch connect web db
          millpond switch connect cache --subnet 10.1.0.0/24")]
    Connect {
        /// Network namespaces (`ip netns`)
        #[arg(required = true, value_name = "NAMESPACE")]
        namespaces: Vec<String>,
        /// Where their addresses are from
        #[arg(long, value_name = "NETWORK", default_value = "10.88.0.0/24")]
        subnet: millpond_linux::switch::connect::Ipv4Net,
        /// Let the namespaces send from any address: for routers, and for addresses added later
        #[arg(long)]
        no_source_guard: bool,
    },
    /// Show its ports and paths: frames, rates, drops by reason; its address table, or its flows
    Show {
        #[command(flatten)]
        show: ShowArgs,
        /// Show hardware addresses, each with the port or the peer that it is behind
        #[arg(long, conflicts_with_all = ["flows", "watch", "interval"])]
        addresses: bool,
        /// Show the TCP flows that go to peers, each with its path: the 1,000 that sent last
        #[arg(long, conflicts_with_all = ["watch", "interval"])]
        flows: bool,
    },
    /// Take one port out of it, or end it and remove every trace
    #[command(group = clap::ArgGroup::new("which").required(true).args(["name", "all"]))]
    Remove {
        /// The port
        name: Option<String>,
        /// The switch, every interface that it made, and its state
        #[arg(long)]
        all: bool,
    },
    /// Report what this kernel offers for a switch, and what a lack costs
    #[command(after_help = "Exit codes: 0 a switch can work, 2 it cannot.")]
    Doctor(JsonArgs),
    /// Run it in the foreground, as a service; takes the place of the process that runs
    #[command(after_help = "\
Examples: millpond switch serve --config switch.toml --metrics 127.0.0.1:9185
          ExecStart=/usr/local/bin/millpond switch serve")]
    Serve {
        /// The switch (TOML) [default: what was applied last]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Where Prometheus asks, at /metrics
        #[arg(long, value_name = "ADDRESS")]
        metrics: Option<std::net::SocketAddr>,
        /// The least event that standard error gets: off, error, warn, info or debug
        #[arg(long, value_name = "LEVEL", default_value = "info")]
        log: log::LevelFilter,
    },
    /// Write what crosses a port, as pcapng, until Ctrl-C
    #[command(after_help = "\
Examples: millpond switch mirror web --write web.pcapng
          millpond switch mirror web | tcpdump -n -r -")]
    Mirror {
        /// The port
        name: String,
        /// Where to [default: standard output]
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
    /// Attach a container, as its runtime calls a plugin (CNI 1.0)
    #[command(after_help = "\
Reads CNI_COMMAND (ADD, DEL, CHECK, VERSION) and the other variables of the specification, and the
network's configuration on standard input; prints the result. A runtime calls it by a script of two
lines:
#!/bin/sh
exec /usr/local/bin/millpond switch cni")]
    Cni,
}
