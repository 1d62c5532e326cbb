//! Arguments of `millpond lab`.

use crate::args::{JsonArgs, OutputArgs, Overrides, Scale, Seeds, Shows};
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `lab`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct LabArgs {
    #[command(subcommand)]
    pub command: Option<LabCommand>,
    /// The scenario (TOML; - is standard input)
    #[arg(required = true)]
    pub scenario: Option<PathBuf>,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub shows: Shows,
    /// Run this variant of the scenario [default: all, beside each other]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    #[command(flatten)]
    pub scale: Scale,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Commands on a lab that stays up.
#[derive(Subcommand, Debug)]
pub enum LabCommand {
    /// Bring the network of a scenario up, without its traffic, until Ctrl-C or `lab down`
    Up(UpArgs),
    /// End a lab that is up
    Down(WhichLab),
    /// List the labs that are up, and their hosts
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Open a shell on a host of a lab that is up
    Shell {
        /// The host: 3 or host3
        host: String,
        #[command(flatten)]
        which: WhichLab,
    },
    /// Run a command on a host of a lab that is up
    #[command(after_help = "\
Example: millpond lab exec 0 -- iperf3 -c host8

The command can use the names host0, host1, …; its exit code is this command's.")]
    Exec {
        /// The host: 3 or host3
        host: String,
        #[command(flatten)]
        which: WhichLab,
        /// The command and its arguments
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Capture the packets at an end of a link of a lab that is up, as pcapng, until Ctrl-C
    #[command(after_help = "\
Examples: millpond lab capture host3 -w host3.pcapng --seconds 10
          millpond lab capture 'leaf0->spine1' | tcpdump -n -r -

The packets are those of the fabric, both ways and whole, at the times at which they pass.")]
    Capture {
        /// The place, as in `[capture] pcap`: host3, leaf0:4, leaf0->spine1, leaf0 (all its ports)
        place: String,
        #[command(flatten)]
        which: WhichLab,
        /// The file [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        write: Option<PathBuf>,
        /// End after so many seconds
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        seconds: Option<u32>,
    },
    /// List what the worlds lab and virtual find on this machine, and what they lack
    #[command(after_help = "Exit codes: 0 both can work, 2 one of them cannot.")]
    Doctor(JsonArgs),
    /// Ask a memcached or Redis server over and over, and print each response time in microseconds
    #[command(after_help = "\
Example: millpond lab ask memcached-get 10.213.0.3:11211 --connections 8 --size 1KB --for 5s

As a program of a lab's host with `responses = NAME` its lines are in results
(docs/scenario-time.md).")]
    Ask(AskArgs),
}

/// A request of `lab ask`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskRequest {
    /// memcached's get, of a value that the client has stored before
    MemcachedGet,
    /// Redis' GET, of a value that the client has stored before
    RedisGet,
    /// Redis' SET
    RedisSet,
}

/// Arguments of `lab ask`.
#[derive(Args, Debug)]
pub struct AskArgs {
    /// The request
    #[arg(value_enum)]
    pub request: AskRequest,
    /// The server: ADDRESS:PORT
    pub server: std::net::SocketAddr,
    /// Connections, each with one request at a time
    #[arg(long, short, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Size of the value
    #[arg(long, default_value = "1KB")]
    pub size: millpond_core::Bytes,
    /// Ask on all connections at each multiple of this time by the machine's clock [default: on
    /// each as soon as it has its response]
    #[arg(long, value_name = "TIME")]
    pub period: Option<millpond_core::Time>,
    /// How long to ask
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    pub lasts: millpond_core::Time,
}

/// Arguments of `lab up`.
#[derive(Args, Debug)]
pub struct UpArgs {
    /// The scenario (TOML; - is standard input)
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    /// The network of this variant of the scenario
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    #[command(flatten)]
    pub scale: Scale,
    /// Name of the lab [default: the scenario's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Return when the lab is up
    #[arg(long, short)]
    pub detach: bool,
}

/// Selects a lab that is up.
#[derive(Args, Debug)]
pub struct WhichLab {
    /// The lab's name; not needed if one lab is up
    #[arg(long = "lab", value_name = "NAME")]
    pub name: Option<String>,
}
