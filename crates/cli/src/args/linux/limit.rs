//! Arguments of `millpond limit`.

use super::ShowArgs;
use crate::args::{JsonArgs, key_value};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `limit`.
#[derive(Args, Debug)]
pub struct LimitArgs {
    /// The bpf file system in which limits are kept; it is mounted if it is not
    #[arg(long, global = true, value_name = "DIR", default_value = "/sys/fs/bpf")]
    pub bpffs: PathBuf,
    /// The command.
    #[command(subcommand)]
    pub action: LimitAction,
}

/// The commands of `limit`.
#[derive(Subcommand, Debug)]
pub enum LimitAction {
    /// Install what a file says; what it said before and no longer says is removed
    #[command(after_help = "\
Limits of other files stay as they are. Values change in place: credit, statistics and connections
are untouched, and nothing is detached meanwhile. If the command is killed, either all old limits or
all new ones hold.")]
    Apply(LimitFileArgs),
    /// Check files without a host: no cgroups and no privileges are needed
    #[command(after_help = "\
Files that are applied together are checked together: limits of one may be scopes of another.
Exit codes: 0 no errors, 2 errors, each with its line.")]
    Check(LimitCheckArgs),
    /// Run a command in the cgroup of an installed limit
    #[command(after_help = "\
A socket belongs to the cgroup in which it is made, so a program has to start in the limit's cgroup:
moving it there later leaves the sockets that it has without a limit.

Example: millpond limit run batch -- curl -O https://example.org/backup.tar")]
    Run(LimitRunArgs),
    /// Count what a file's limits, or one installed limit, would do, and let everything pass
    #[command(after_help = "\
Back in force: millpond limit apply FILE · millpond limit set NAME observe=false")]
    Observe(LimitObserveArgs),
    /// Show what is installed: rates, marks, drops, credit
    Show(ShowArgs),
    /// Change keys of an installed limit: rate=500Mbps mark=60KB
    #[command(after_help = "The file is not changed: the next apply of it brings its values back.")]
    Set(LimitSetArgs),
    /// Remove one limit, or all and every trace of them
    Remove(LimitRemoveArgs),
    /// Print the limits that the annotations of a Kubernetes node's pods ask for
    #[command(after_help = "\
Reads the output of kubectl get pods -o json, from a file or standard input, and prints a file for
apply. The annotations kubernetes.io/egress-bandwidth and kubernetes.io/ingress-bandwidth, in bits
a second (10M, 1G), become limits of the pods' cgroups. Unreadable ones are noted and left out.

Example: kubectl get pods -A --field-selector spec.nodeName=$NODE -o json > pods.json
         millpond limit pods pods.json > pods.toml
         millpond limit apply pods.toml --wait")]
    Pods(LimitPodsArgs),
    /// Say what this kernel offers for limits, and what a lack costs
    #[command(after_help = "Exit codes: 0 limits can work, 2 they cannot.")]
    Doctor(JsonArgs),
    /// Answer Prometheus, put limits back on cgroups that are made anew, run the kick, send and
    /// heed notifications
    #[command(after_help = "\
Example: millpond limit serve --metrics 127.0.0.1:9184

Limits hold without it. It applies them again when a cgroup comes back (a unit that restarts), and
runs the kick if a file has kick = \"20ms\". If a file has [[notify]], it notifies the hosts of
senders that limits at ingress cannot mark, and heeds the notifications of other hosts.")]
    Serve(LimitServeArgs),
}

/// Arguments of `limit serve`.
#[derive(Args, Debug)]
pub struct LimitServeArgs {
    /// Where Prometheus asks, at /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<std::net::SocketAddr>,
}

/// Arguments of `limit apply`.
#[derive(Args, Debug)]
pub struct LimitFileArgs {
    /// The limits (TOML)
    pub file: PathBuf,
    /// Say what would change, change nothing, and exit as apply would
    #[arg(long)]
    pub dry_run: bool,
    /// Install limits whose cgroups are not there yet, too; they hold once it is applied again
    #[arg(long)]
    pub wait: bool,
    /// Make cgroups that are named by a path and are not there; remove --all removes them
    #[arg(long)]
    pub create: bool,
}

/// Arguments of `limit check`.
#[derive(Args, Debug)]
pub struct LimitCheckArgs {
    /// The limits (TOML)
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// Arguments of `limit run`.
#[derive(Args, Debug)]
pub struct LimitRunArgs {
    /// The limit
    pub name: String,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required_unless_present = "watch", last = true)]
    pub command: Vec<std::ffi::OsString>,
    /// Prints a hint if this process's traffic passes the limit by over loopback
    #[arg(long, value_name = "PID", hide = true)]
    pub watch: Option<u32>,
}

/// Arguments of `limit observe`.
#[derive(Args, Debug)]
pub struct LimitObserveArgs {
    /// A file, or the name of an installed limit
    #[arg(value_name = "FILE|NAME")]
    pub what: String,
}

/// Arguments of `limit pods`.
#[derive(Args, Debug)]
pub struct LimitPodsArgs {
    /// The list of pods (JSON); - is standard input
    pub file: PathBuf,
}

/// Arguments of `limit set`.
#[derive(Args, Debug)]
pub struct LimitSetArgs {
    /// The limit
    pub name: String,
    /// Keys with their new values
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = key_value)]
    pub keys: Vec<(String, String)>,
}

/// Arguments of `limit remove`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["name", "all"]))]
pub struct LimitRemoveArgs {
    /// The limit
    pub name: Option<String>,
    /// All limits, of whatever version of millpond, and every map, link, program and folder
    #[arg(long)]
    pub all: bool,
}
