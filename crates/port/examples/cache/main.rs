//! A cache and its client, each with TCP of its own over a port of shared memory.
//!
//! ```text
//! cargo run --example cache -- server /run/millpond/cache.sock 10.9.0.1
//! cargo run --example cache -- client /run/millpond/web.sock 10.9.0.2 10.9.0.1
//! ```
//!
//! Clients of the kernel's reach it as well, from a tap of the same switch.

mod client;
mod server;
mod stack;

use millpond_port::Port;
use smoltcp::wire::Ipv4Address;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const REQUESTS: usize = 10_000;

fn run(arguments: &[&str]) -> Result<(), String> {
    let address =
        |text: &str| text.parse::<Ipv4Address>().map_err(|_| format!("{text} is no IPv4 address"));
    let stack = |socket: &str, own: &str| {
        let port = Port::attach(socket).map_err(|e| e.to_string())?;
        Ok::<_, String>(stack::Stack::new(port, address(own)?))
    };
    match arguments {
        ["server", socket, own] => {
            let mut stack = stack(socket, own)?;
            let mut server = server::Server::new(&mut stack);
            loop {
                server.turn(&mut stack);
                stack.turn();
            }
        }
        ["client", socket, own, server] => {
            let mut client = client::Client::new(stack(socket, own)?, address(server)?);
            let start = Instant::now();
            for n in 0..REQUESTS {
                let (key, value) = (format!("key{}", n % 100), vec![n as u8; n % 4000]);
                // Once more over a new connection: the server may have been started anew.
                let mut exchange = || {
                    client.set(&key, &value, PATIENCE)?;
                    match client.get(&key, PATIENCE)? {
                        Some(got) if got == value => Ok(()),
                        _ => Err(format!("{key} is not what was stored")),
                    }
                };
                if let Err(error) = exchange() {
                    eprintln!("{error}; connecting again");
                    client.again();
                    client.set(&key, &value, PATIENCE)?;
                }
            }
            println!(
                "{:.0} requests a second",
                2.0 * REQUESTS as f64 / start.elapsed().as_secs_f64()
            );
            Ok(())
        }
        _ => Err("server SOCKET ADDRESS, or client SOCKET ADDRESS SERVER".into()),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Err(error) = run(&arguments) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
