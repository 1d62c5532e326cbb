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
    /// Install the limits of a file; remove those that it had before and no longer has
    #[command(after_help = "\
Limits of other files stay as they are. Values change in place: credit, statistics and connections
are untouched, and nothing is detached meanwhile. If the command is killed, either all old limits or
all new ones hold.")]
    Apply(LimitFileArgs),
    /// Check files without a host: no cgroups and no privileges are needed
    #[command(after_help = "\
Files that are applied together are checked together: limits of one may be scopes of another.
Exit codes: 0 no errors, 2 errors, each with its line.")]
    Check {
        /// The limits (TOML)
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Run a command in the cgroup of an installed limit
    #[command(after_help = "\
A socket belongs to the cgroup in which it is made, so a program has to start in the limit's cgroup:
moving it there later leaves the sockets that it has without a limit.

Example: millpond limit run batch -- curl -O https://example.org/backup.tar")]
    Run {
        /// The limit
        name: String,
        /// The command and its arguments
        #[arg(value_name = "COMMAND", required_unless_present = "watch", last = true)]
        command: Vec<std::ffi::OsString>,
        /// Prints a hint if this process's traffic passes the limit by over loopback
        #[arg(long, value_name = "PID", hide = true)]
        watch: Option<u32>,
    },
    /// Count what a file's limits, or one installed limit, would do, and let everything pass
    #[command(after_help = "\
Back in force: millpond limit apply FILE · millpond limit set NAME observe=false")]
    Observe {
        /// A file, or the name of an installed limit
        #[arg(value_name = "FILE|NAME")]
        what: String,
    },
    /// Show what is installed: rates, marks, drops, credit
    Show(ShowArgs),
    /// Change keys of an installed limit: rate=500Mbps mark=60KB
    #[command(after_help = "The file is not changed: the next apply of it brings its values back.")]
    Set {
        /// The limit
        name: String,
        /// Keys with their new values
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = key_value)]
        keys: Vec<(String, String)>,
    },
    /// Remove one limit, or all and every trace of them
    #[command(group = clap::ArgGroup::new("which").required(true).args(["name", "all"]))]
    Remove {
        /// The limit
        name: Option<String>,
        /// All limits, of whatever version of millpond, and every map, link, program and folder
        #[arg(long)]
        all: bool,
    },
    /// Print the limits that the annotations of a Kubernetes node's pods ask for
    #[command(after_help = "\
Reads the output of kubectl get pods -o json, from a file or standard input, and prints a file for
apply. The annotations kubernetes.io/egress-bandwidth and kubernetes.io/ingress-bandwidth, in bits
a second (10M, 1G), become limits of the pods' cgroups. Unreadable ones are noted and left out.

Example: kubectl get pods -A --field-selector spec.nodeName=$NODE -o json > pods.json
         millpond limit pods pods.json > pods.toml
         millpond limit apply pods.toml --wait")]
    Pods {
        /// The list of pods (JSON); - is standard input
        file: PathBuf,
    },
    /// Report what this kernel offers for limits, and what a lack costs
    #[command(after_help = "Exit codes: 0 limits can work, 2 they cannot.")]
    Doctor(JsonArgs),
    /// Answer Prometheus, put limits back on cgroups that are made anew, run the kick, send and
    /// heed notifications
    #[command(after_help = "\
Example: millpond limit serve --metrics 127.0.0.1:9184

Limits hold without it. It applies them again when a cgroup comes back (a unit that restarts), and
runs the kick if a file has kick = \"20ms\". If a file has [[notify]], it notifies the hosts of
senders that limits at ingress cannot mark, and heeds the notifications of other hosts.")]
    Serve {
        /// Where Prometheus asks, at /metrics
        #[arg(long, value_name = "ADDRESS")]
        metrics: Option<std::net::SocketAddr>,
    },
}

/// Arguments of `limit apply`.
#[derive(Args, Debug)]
pub struct LimitFileArgs {
    /// The limits (TOML)
    pub file: PathBuf,
    /// Print what would change, change nothing, and exit as apply would
    #[arg(long)]
    pub dry_run: bool,
    /// Install limits whose cgroups are not there yet, too; they hold once it is applied again
    #[arg(long)]
    pub wait: bool,
    /// Make cgroups that are named by a path and are not there; remove --all removes them
    #[arg(long)]
    pub create: bool,
}
