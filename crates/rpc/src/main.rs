//! `millpond-rpc`: the load of the rigs that measure bandwidth limits with real kernels
//! (notes/limit-bench.md). Thin: reads arguments, calls the modules, prints.

mod client;
mod datagrams;
mod delay;
mod protocol;
mod report;
mod samples;
mod server;
mod socket;
mod units;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Closed-loop RPC load over real TCP, datagrams, and a delay line.
#[derive(Parser)]
#[command(name = "millpond-rpc", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Receive requests, answer each with one byte, and count what arrives
    Server {
        /// Address and port
        listen: SocketAddr,
        /// Congestion control of what is accepted (DCTCP needs it at both ends)
        #[arg(long)]
        cc: Option<String>,
        /// Join this cgroup before listening: limits on what is received look at the receiver's
        /// cgroup
        #[arg(long)]
        cgroup: Option<PathBuf>,
        /// End when one client has ended
        #[arg(long)]
        once: bool,
    },
    /// Send requests over persistent connections, one outstanding on each, and tell rates and
    /// latencies
    Client {
        /// The server's address and port
        to: SocketAddr,
        /// Flows and the sizes of their requests (1MB = 1,048,576 bytes); 1x10KB/100ms: one every
        /// 100 ms at most
        #[arg(long, default_value = "8x1MB,1x10KB")]
        flows: String,
        /// Congestion control; without, the system's default
        #[arg(long)]
        cc: Option<String>,
        /// How long is measured
        #[arg(long, default_value = "5s", value_parser = units::duration)]
        duration: Duration,
        /// How long the flows run before that
        #[arg(long, default_value = "500ms", value_parser = units::duration)]
        warm_up: Duration,
        /// Open the flows' sockets in this cgroup; of several, in turn
        #[arg(long)]
        cgroup: Vec<PathBuf>,
        /// Leave Nagle's algorithm on
        #[arg(long)]
        nagle: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Send datagrams at a constant rate and tell the errors that come back, as one JSON object
    UdpSend {
        /// The sink's address and port
        to: SocketAddr,
        /// Rate of payload
        #[arg(long, default_value = "1Gbps", value_parser = units::rate)]
        rate: f64,
        /// Bytes of a datagram's payload
        #[arg(long, default_value = "1200B", value_parser = units::bytes)]
        size: u64,
        /// Datagrams that are sent at once
        #[arg(long, default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
        burst: u64,
        /// How long
        #[arg(long, default_value = "3s", value_parser = units::duration)]
        duration: Duration,
        /// Join this cgroup first
        #[arg(long)]
        cgroup: Option<PathBuf>,
    },
    /// Count datagrams until none has come for a while, and print one JSON object
    UdpSink {
        /// Address and port
        listen: SocketAddr,
        /// How long none must have come
        #[arg(long, default_value = "1s", value_parser = units::duration)]
        idle: Duration,
    },
    /// Make two TUN interfaces and join them with a constant delay each way, until this process is
    /// ended
    Delay {
        /// Name of one interface
        #[arg(long)]
        left: String,
        /// Name of the other
        #[arg(long)]
        right: String,
        /// Delay each way: half of the round-trip time
        #[arg(long, default_value = "5ms", value_parser = units::duration)]
        delay: Duration,
    },
    /// Put modules into the running kernel (for the guest of the virtual-time rig, which has no
    /// modprobe)
    #[command(hide = true)]
    Insert {
        /// Files, each after those that it needs
        modules: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond-rpc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Server { listen, cc, cgroup, once } => {
            if let Some(path) = cgroup {
                socket::join_cgroup(&path)?;
            }
            let listener = socket::listen_tcp(&listen, cc.as_deref())?;
            server::serve(&listener, once)?;
        }
        Command::Client { to, flows, cc, duration, warm_up, cgroup, nagle, json } => {
            let classes = units::flow_set(&flows)?;
            let load = client::Load {
                to,
                classes,
                congestion: cc,
                duration,
                warm_up,
                cgroups: cgroup,
                nagle,
            };
            let report = client::run(&load)?;
            if json {
                println!("{}", report.json());
            } else {
                print!("{report}");
            }
        }
        Command::UdpSend { to, rate, size, burst, duration, cgroup } => {
            if let Some(path) = cgroup {
                socket::join_cgroup(&path)?;
            }
            let size = size.min(65_507) as usize;
            println!("{}", datagrams::send(to, rate, size, burst, duration)?);
        }
        Command::UdpSink { listen, idle } => {
            println!("{}", datagrams::sink(&UdpSocket::bind(listen)?, idle)?)
        }
        Command::Delay { left, right, delay } => {
            delay::join(&left, &right, delay, || println!("ready"))?
        }
        Command::Insert { modules } => {
            for path in modules {
                let insert = |path| -> Result<(), Box<dyn Error>> {
                    Ok(rustix::system::finit_module(File::open(path)?, c"", 0)?)
                };
                insert(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(())
}
