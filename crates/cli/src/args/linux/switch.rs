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
    /// Run the switch that a file says, or make the running one what it says
    #[command(after_help = "\
Ports that stay keep their interfaces and counters. A port that cannot be opened is tried again
every second; the exit code is then 1.")]
    Apply(SwitchApplyArgs),
    /// Connect network namespaces, without a file
    #[command(after_help = "\
Each namespace gets an interface mp0 with the next free address of the subnet. Namespaces are added
to the switch that runs, or to a new one.

Examples: millpond switch connect web db
          millpond switch connect cache --subnet 10.1.0.0/24")]
    Connect(SwitchConnectArgs),
    /// Show its ports and paths: frames, rates, drops by reason; its address table, or its flows
    Show(SwitchShowArgs),
    /// Take one port out of it, or end it and remove every trace
    Remove(SwitchRemoveArgs),
    /// Say what this kernel offers for a switch, and what a lack costs
    #[command(after_help = "Exit codes: 0 a switch can work, 2 it cannot.")]
    Doctor(JsonArgs),
    /// Run it in the foreground, as a service; takes the place of the process that runs
    #[command(after_help = "\
Examples: millpond switch serve --config switch.toml --metrics 127.0.0.1:9185
          ExecStart=/usr/local/bin/millpond switch serve")]
    Serve(SwitchServeArgs),
    /// Write what crosses a port, as pcapng, until Ctrl-C
    #[command(after_help = "\
Examples: millpond switch mirror web --write web.pcapng
          millpond switch mirror web | tcpdump -n -r -")]
    Mirror(SwitchMirrorArgs),
    /// Attach a container, as its runtime calls a plugin (CNI 1.0)
    #[command(after_help = "\
Reads CNI_COMMAND (ADD, DEL, CHECK, VERSION) and the other variables of the specification, and the
network's configuration on standard input; prints the result. A runtime calls it by a script of two
lines:
#!/bin/sh
exec /usr/local/bin/millpond switch cni")]
    Cni,
    /// Measure a mechanism against what it replaces, with this kernel's TCP
    Demo(SwitchDemoArgs),
}

/// Arguments of `switch demo`.
#[derive(Args, Debug)]
pub struct SwitchDemoArgs {
    /// Which.
    #[command(subcommand)]
    pub which: SwitchDemo,
}

/// The demos.
#[derive(Subcommand, Debug)]
pub enum SwitchDemo {
    /// Presto: four paths with skew between two namespaces; receive offloads compared
    #[command(after_help = "\
Examples: millpond switch demo presto                                  all arms, five times each
          millpond switch demo presto --skew 0us,50us,100us,200us --arms stock-gro,presto-gro
          millpond switch demo presto --rack on,off --pacing off,2Gbps

Prints medians: throughput, CPU-seconds a gigabyte, segments that TCP received out of order, segment
sizes, retransmissions. CPU is this process's, with the kernel's work for it. Needs root and `ip`.
The two namespaces are removed at the end.")]
    Presto(DemoPrestoArgs),
    /// The plain switch, between taps and by packet sockets, and the kernel's bridge
    Bridge(DemoBridgeArgs),
    /// Backdraft: a fast and a slow application; switches that drop, stop, or pause the senders
    #[command(after_help = "\
Prints medians of the arms: no neighbour, a lossy ring, a ring with backpressure, flow queues with
the overlay. The fast application's clients are the victims. The cost of a loss depends on the
least timeout (Linux: 200 ms), so each arm runs with several. Times are from a request's arrival to
its answer; requests that are open at the end count with their age, and `done %` is the share of the
others. With the defaults it takes five minutes. Needs root and `ip`. The namespaces are removed at
the end.")]
    Backdraft(DemoBackdraftArgs),
}

/// Arguments of `switch demo backdraft`.
#[derive(Args, Debug)]
pub struct DemoBackdraftArgs {
    /// How often each arm, in turn
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub repetitions: u32,
    /// How long each is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub duration: millpond_core::Time,
    /// Hosts with clients
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        value_parser = clap::value_parser!(u8).range(1..=16)
    )]
    pub hosts: u8,
    /// Loads of the slow application, as parts of what it can do
    #[arg(long, value_name = "LOAD,…", value_delimiter = ',', default_value = "0.3,0.6,0.9",
          value_parser = load)]
    pub load: Vec<f64>,
    /// Requests of a burst; bursts of each host come at random
    #[arg(
        long,
        value_name = "N",
        default_value = "384",
        value_parser = clap::value_parser!(u32).range(1..=65536)
    )]
    pub burst: u32,
    /// The slow application's work for a request
    #[arg(long, value_name = "TIME", default_value = "50us")]
    pub work: millpond_core::Time,
    /// The least timeouts of all clients
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', default_value = "1ms,10ms,200ms")]
    pub rto: Vec<millpond_core::Time>,
    /// Between two requests of a victim's client
    #[arg(long, value_name = "TIME", default_value = "500us")]
    pub gap: millpond_core::Time,
    /// The capacity of a ring, of the lossy arm and of that with backpressure
    #[arg(long, value_name = "SIZE", default_value = "256KiB")]
    pub ring: millpond_core::Bytes,
    /// The capacity of flow queues; half is headroom
    #[arg(long, value_name = "SIZE", default_value = "4MiB")]
    pub memory: millpond_core::Bytes,
    /// Print every run as JSON, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse::<f64>().ok().filter(|load| *load >= 0.01 && *load <= 1.0);
    load.ok_or_else(|| "a load is a number from 0.01 to 1".into())
}

/// Arguments of `switch demo bridge`.
#[derive(Args, Debug)]
pub struct DemoBridgeArgs {
    /// How often each, in turn
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub repetitions: u32,
    /// How long each is measured
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub duration: millpond_core::Time,
    /// Print every run as JSON, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `switch demo presto`.
#[derive(Args, Debug)]
pub struct DemoPrestoArgs {
    /// Which arms [default: all]
    #[arg(
        long,
        value_name = "ARM,…",
        value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(arms())
    )]
    pub arms: Vec<String>,
    /// How often each, in turn
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub repetitions: u32,
    /// How long each is measured
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub duration: millpond_core::Time,
    /// Between one path's delay and the next one's; several are run in turn
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', default_value = "50us")]
    pub skew: Vec<millpond_core::Time>,
    /// Paths
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub paths: u16,
    /// The rate of each path
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    pub rate: millpond_core::Rate,
    /// Whether TCP may use RACK: on, off, or both in turn
    #[arg(
        long,
        value_name = "on|off",
        value_delimiter = ',',
        default_value = "on",
        value_parser = ["on", "off"]
    )]
    pub rack: Vec<String>,
    /// No faster than this rate; off: as fast as it goes; several are run in turn
    #[arg(long, value_name = "RATE|off", value_delimiter = ',', default_value = "off")]
    pub pacing: Vec<String>,
    /// Print every run as JSON, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
}

fn arms() -> Vec<&'static str> {
    millpond_linux::demo::Arm::ALL.into_iter().map(|arm| arm.name()).collect()
}

/// Arguments of `switch apply`.
#[derive(Args, Debug)]
pub struct SwitchApplyArgs {
    /// The switch (TOML)
    pub file: PathBuf,
    /// Check the file, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `switch connect`.
#[derive(Args, Debug)]
pub struct SwitchConnectArgs {
    /// Network namespaces (`ip netns`)
    #[arg(required = true, value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// Where their addresses are from
    #[arg(long, value_name = "NETWORK", default_value = "10.88.0.0/24")]
    pub subnet: millpond_linux::switch::connect::Ipv4Net,
    /// Let the namespaces send from any address: for routers, and for addresses added later
    #[arg(long)]
    pub no_source_guard: bool,
}

/// Arguments of `switch show`.
#[derive(Args, Debug)]
pub struct SwitchShowArgs {
    #[command(flatten)]
    pub show: ShowArgs,
    /// Which hardware addresses are behind which port or peer
    #[arg(long, conflicts_with_all = ["flows", "watch", "interval"])]
    pub addresses: bool,
    /// Which TCP flows go to peers, and by which path: the 1,000 that sent last
    #[arg(long, conflicts_with_all = ["watch", "interval"])]
    pub flows: bool,
}

/// Arguments of `switch mirror`.
#[derive(Args, Debug)]
pub struct SwitchMirrorArgs {
    /// The port
    pub name: String,
    /// Where to [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
}

/// Arguments of `switch remove`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["name", "all"]))]
pub struct SwitchRemoveArgs {
    /// The port
    pub name: Option<String>,
    /// The switch, every interface that it made, and its state
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `switch serve`.
#[derive(Args, Debug)]
pub struct SwitchServeArgs {
    /// The switch (TOML) [default: what was applied last]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where Prometheus asks, at /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<std::net::SocketAddr>,
    /// Which events are written to standard error: off, error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: log::LevelFilter,
}
