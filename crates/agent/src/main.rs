//! The agent: the first process of a host's kernel in world `virtual`.
//!
//! It takes orders from the world and makes reports to it, as Ethernet frames on an interface of
//! their own. The world stops the kernel's clock while it takes a report, so the agent reads no
//! clock.
//!
//! | file | content |
//! |---|---|
//! | `setup` | file systems, interfaces, the route |
//! | `connections` | ends that send and receive |
//! | `programs` | programs of the machine |
//! | `sys` | system calls |
//!
//! Invariant: orders are done in the order in which they come, and what cannot be done is told.

mod connections;
mod programs;
mod setup;
mod sys;
use millpond_agent::wire;

use connections::Connections;
use programs::Programs;
use setup::{CONTROL, LINK, Metrics, Subnet};
use std::io::Result;
use std::os::fd::OwnedFd;
use sys::Poller;
use wire::{Order, Report};

/// The type of the world's frames: one of those for local experiments.
const ETHERTYPE: u16 = 0x88b5;
const ETHERNET: usize = 14;
/// What a poller tells of, beside what `connections` and `programs` name.
const ORDERS: u64 = 0;
const CHILDREN: u64 = 1;

/// The agent's state.
struct Agent {
    poller: Poller,
    control: OwnedFd,
    children: OwnedFd,
    subnet: Subnet,
    connections: Connections,
    programs: Programs,
}

/// Makes a report. The kernel stands still until the world has it.
fn say(control: &OwnedFd, report: &Report) {
    let mut frame = vec![0xff; 6];
    frame.extend_from_slice(&[0x02, 0, 0, 0, 0, 2]);
    frame.extend_from_slice(&ETHERTYPE.to_be_bytes());
    report.write(&mut frame);
    // Its queue can be full, which the world empties within this very instant.
    while let Ok(0) = sys::send(control, &frame) {
        std::thread::yield_now();
    }
}

impl Agent {
    fn new() -> Result<Agent> {
        sys::bring_up("lo", None, None)?;
        sys::bring_up(CONTROL, None, None)?;
        setup::await_carrier(CONTROL)?;
        let control = sys::frames(CONTROL, ETHERTYPE)?;
        let (poller, children) = (Poller::new()?, sys::children()?);
        poller.add(&control, libc::EPOLLIN, ORDERS)?;
        poller.add(&children, libc::EPOLLIN, CHILDREN)?;
        let subnet = Subnet { address: [0; 4], prefix: 0 };
        let (connections, programs) = (Connections::new([0; 4]), Programs::default());
        Ok(Agent { poller, control, children, subnet, connections, programs })
    }

    fn run(mut self) -> Result<()> {
        say(&self.control, &Report::Hello);
        let mut events = Vec::new();
        loop {
            self.poller.wait(&mut events);
            for (data, flags) in events.drain(..) {
                if data == ORDERS {
                    self.obey_frame()?;
                    continue;
                }
                let Agent { poller, control, connections, programs, children, .. } = &mut self;
                let mut say = |report: &Report| say(control, report);
                if data == CHILDREN {
                    sys::read(children, &mut [0; 128]).ok();
                    programs.reap(&mut say);
                } else if let Some(token) = connections::token(data) {
                    connections.serve(poller, token, flags, &mut say);
                } else if let Some((program, stream)) = programs::token(data) {
                    programs.serve(program, stream, &mut say);
                }
            }
        }
    }

    /// Takes a frame of orders, and does them.
    fn obey_frame(&mut self) -> Result<()> {
        let mut frame = [0; 2048];
        let length = sys::read(&self.control, &mut frame)?;
        let mut orders = frame.get(ETHERNET..length).unwrap_or_default();
        loop {
            match Order::read(&mut orders) {
                Ok(Some(order)) => {
                    let what = match &order {
                        Order::Write { path, value } => format!("writing {value:?} into {path}"),
                        other => format!("{other:?}"),
                    };
                    if let Err(error) = self.obey(order) {
                        say(&self.control, &Report::Problem(format!("{what}: {error}")));
                    }
                }
                Ok(None) => return Ok(()),
                Err(wire::Malformed) => {
                    say(&self.control, &Report::Problem("an order is malformed".into()));
                    return Ok(());
                }
            }
        }
    }

    fn obey(&mut self, order: Order) -> Result<()> {
        let Agent { poller, control, connections, programs, .. } = self;
        let mut say = |report: &Report| say(control, report);
        match order {
            Order::Write { path, value } => match std::fs::write(path, value) {
                // A kernel without this key has no other behaviour to switch off.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => done?,
            },
            Order::Interface { address, prefix, mtu } => {
                sys::bring_up(LINK, Some((address, prefix)), Some(mtu))?;
                setup::await_carrier(LINK)?;
                self.subnet = Subnet { address, prefix };
                *connections = Connections::new(address);
            }
            Order::Neighbours(list) => {
                for (address, mac) in list {
                    sys::neighbour(LINK, address, mac)?;
                }
            }
            Order::Route { initial_window, rto_min, quickack, mss, congestion } => {
                let metrics = Metrics { initial_window, rto_min, quickack, mss, congestion };
                setup::route(self.subnet, &metrics)?;
            }
            Order::Listen { port } => connections.listen(poller, port)?,
            Order::Prepare => say(&Report::Ready),
            Order::Sample(which) => connections.sample(&which, &mut say),
            Order::Count => say(&Report::Counters(setup::counters())),
            Order::Run { program, command } => {
                if let Err(error) = programs.run(poller, program, &command) {
                    let bytes = format!("{command}: {error}\n").into_bytes();
                    say(&Report::Output { program, stream: 2, bytes });
                    // As a shell that cannot run a command.
                    say(&Report::Exited { program, status: 126 << 8 });
                }
            }
            Order::Signal { program, signal } => programs.signal(program, signal),
            other => connections.obey(poller, other, &mut say),
        }
        Ok(())
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(programs::RUN) {
        let command = arguments.next().unwrap_or_default();
        eprintln!("{command}: {}", programs::become_command(&command));
        std::process::exit(127);
    }
    let ended = setup::mounts().and_then(|()| Agent::new()).and_then(Agent::run);
    // The kernel stops with its first process, and the world shows the last lines of its console.
    if let Err(error) = ended {
        eprintln!("millpond-agent: {error}");
    }
}
