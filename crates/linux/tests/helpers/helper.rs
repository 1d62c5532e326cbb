//! Programs that the tests of this crate start, kill, and start again: `millpond-linux-helper ROLE
//! ARGUMENTS`.
//!
//! | role | program |
//! |---|---|
//! | `switch STATE` | the virtual switch of a state folder |
//! | `application SOCKET` | an application that attaches, sends, and reads nothing |
//! | `cache SOCKET` | the server of `crates/port/examples/cache` |
//! | `guest SOCKET` | a virtual machine that sends |
//! | `dump BPFFS` | what limits have pinned, as a file of `tests/state` |
//! | others | senders and receivers of the live tests (`limited`) |

#[allow(dead_code)]
#[path = "../vhost/driver.rs"]
mod driver;
#[allow(dead_code)]
#[path = "../live/former.rs"]
mod former;
mod limited;
#[path = "../../../port/examples/cache/server.rs"]
mod server;
#[allow(dead_code)]
#[path = "../../../port/examples/cache/stack.rs"]
mod stack;

use driver::{Guest, Options};
use millpond_linux::switch::serve;
use millpond_linux::switch::state::State;
use millpond_port::Port;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// Where the cache's server is.
const CACHE: Ipv4Addr = Ipv4Addr::new(10, 98, 9, 1);
const BROADCAST: u8 = 0xff;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [role, rest @ ..] = &args[..] else { panic!("millpond-linux-helper ROLE ARGUMENTS") };
    match (*role, rest) {
        ("switch", [state]) => {
            let state = State::at(Path::new(state));
            serve::serve(&state, None, None, log::LevelFilter::Info).unwrap();
        }
        ("application", [socket]) => application(socket),
        ("cache", [socket]) => cache(socket),
        ("guest", [socket]) => guest(socket),
        ("dump", [bpffs]) => print!("{}", former::dump(Path::new(bpffs))),
        (role, rest) => limited::play(role, rest),
    }
}

/// A frame of 64 bytes from one station to another, with the number 0.
fn frame(to: u8, from: u8) -> [u8; 64] {
    let mut frame = [0; 64];
    let address = |n| if n == BROADCAST { [BROADCAST; 6] } else { [2, 0, 0, 0, 0, n] };
    frame[..6].copy_from_slice(&address(to));
    frame[6..12].copy_from_slice(&address(from));
    frame[12..14].copy_from_slice(&[0x88, 0xb6]);
    frame
}

/// Attaches, or writes why it may not, to a file beside the socket; sends, and reads nothing.
fn application(socket: &str) {
    let mut port = match Port::attach(socket) {
        Ok(port) => port,
        Err(error) => return fs::write(format!("{socket}.refused"), error.to_string()).unwrap(),
    };
    // It is known by its frame, and has a flow of its own that is paused when others are slow.
    port.try_send(0, &frame(BROADCAST, 2)).unwrap();
    loop {
        while port.try_send(1, &frame(1, 2)).is_ok() {}
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn cache(socket: &str) {
    let mut stack = stack::Stack::new(Port::attach(socket).unwrap(), CACHE);
    let mut server = server::Server::new(&mut stack);
    loop {
        server.turn(&mut stack);
        stack.turn();
    }
}

fn guest(socket: &str) {
    let mut guest = Guest::attach(socket.as_ref(), Options::default());
    loop {
        guest.send(&[0; 10], &frame(BROADCAST, 7));
        std::thread::sleep(Duration::from_millis(5));
    }
}
