//! The agent: the first process of a host's kernel in world `virtual`.
//!
//! It takes orders from the world and makes reports to it, as Ethernet frames on an interface of
//! their own. The world stops the kernel's clock while it takes a report, so the agent reads no
//! clock. With `--socket FD` it is an ordinary process that takes orders from that socket, and
//! mounts nothing.
//!
//! | file | content |
//! |---|---|
//! | `control` | the way between world and agent |
//! | `setup` | file systems, interfaces, the route |
//! | `connections` | ends that send and receive |
//! | `programs` | programs of the machine |
//! | `sys` | other system calls; those of sockets are the library's |
//!
//! Invariant: the agent follows orders in the order of their arrival, and reports each failure.

mod connections;
mod control;
mod programs;
mod setup;
mod sys;
use millpond_agent::wire;

use connections::Connections;
use control::Control;
use programs::Programs;
use rustix::event::epoll::EventFlags;
use setup::{Metrics, Subnet};
use std::io::Result;
use std::os::fd::OwnedFd;
use sys::Poller;
use wire::{LINK, Order, Report};

/// Sources of events beside those of `connections` and `programs`.
const ORDERS: u64 = 0;
const CHILDREN: u64 = 1;

struct Agent {
    poller: Poller,
    control: Control,
    children: OwnedFd,
    subnet: Subnet,
    connections: Connections,
    programs: Programs,
}

impl Agent {
    fn of_guest() -> Result<Agent> {
        setup::mounts()?;
        sys::bring_up("lo", None, None)?;
        Agent::new(Control::interface()?)
    }

    fn new(control: Control) -> Result<Agent> {
        let (poller, children) = (Poller::new()?, sys::children()?);
        poller.add(&control, EventFlags::IN, ORDERS)?;
        poller.add(&children, EventFlags::IN, CHILDREN)?;
        let subnet = Subnet { address: [0; 4], prefix: 0 };
        let (connections, programs) = (Connections::new([0; 4]), Programs::default());
        Ok(Agent { poller, control, children, subnet, connections, programs })
    }

    fn run(mut self) -> Result<()> {
        self.control.report(&Report::Hello);
        let mut events = Vec::new();
        loop {
            self.poller.wait(&mut events);
            for (data, flags) in events.drain(..) {
                if data == ORDERS {
                    if !self.obey_frame()? {
                        return Ok(());
                    }
                    continue;
                }
                let Agent { poller, control, connections, programs, children, .. } = &mut self;
                let mut report = |report: &Report| control.report(report);
                if data == CHILDREN {
                    rustix::io::read(children, &mut [0; 128]).ok();
                    programs.reap(&mut report);
                } else if let Some(token) = connections::token(data) {
                    connections.serve(poller, token, flags, &mut report);
                } else if let Some((program, stream)) = programs::token(data) {
                    programs.serve(program, stream, &mut report);
                }
            }
        }
    }

    /// Takes a frame of orders, and does them. Returns whether the world is there.
    fn obey_frame(&mut self) -> Result<bool> {
        let mut frame = [0; 2048];
        let mut orders = self.control.take(&mut frame)?;
        if orders.is_empty() {
            return Ok(false);
        }
        loop {
            match wire::read::<Order>(&mut orders) {
                Ok(Some(order)) => {
                    let what = match &order {
                        Order::Write { path, value } => format!("writing {value:?} into {path}"),
                        other => format!("{other:?}"),
                    };
                    if let Err(error) = self.obey(order) {
                        self.control.report(&Report::problem(format!("{what}: {error}")));
                    }
                }
                Ok(None) => return Ok(true),
                Err(wire::Malformed) => {
                    self.control.report(&Report::Problem("an order is malformed".into()));
                    return Ok(true);
                }
            }
        }
    }

    fn obey(&mut self, order: Order) -> Result<()> {
        let Agent { poller, control, connections, programs, .. } = self;
        let mut report = |report: &Report| control.report(report);
        match order {
            Order::Write { path, value } => match std::fs::write(path, value) {
                // A kernel without this key has no other behaviour to switch off.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => done?,
            },
            Order::Interface { address, prefix, mtu } => {
                sys::bring_up(LINK, Some((address, prefix)), Some(mtu))?;
                if control.is_interface() {
                    setup::await_carrier(LINK)?;
                }
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
            Order::Prepare => report(&Report::Ready),
            Order::Sample(which) => connections.sample(&which, &mut report),
            Order::Count => report(&Report::Counters(setup::counters())),
            Order::Run { program, command } => {
                if let Err(error) = programs.run(poller, program, &command) {
                    let bytes = format!("{command}: {error}\n").into_bytes();
                    report(&Report::Output { program, stream: 2, bytes });
                    // As a shell that cannot run a command.
                    report(&Report::Exited { program, status: 126 << 8 });
                }
            }
            Order::Signal { program, signal } => programs.signal(program, signal),
            other => connections.obey(poller, other, &mut report),
        }
        Ok(())
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let ended = match (arguments.next().as_deref(), arguments.next()) {
        (Some(programs::RUN), command) => {
            let command = command.unwrap_or_default();
            eprintln!("{command}: {}", programs::become_command(&command));
            std::process::exit(127);
        }
        (Some("--socket"), Some(number)) => Control::socket(&number).and_then(Agent::new),
        _ => Agent::of_guest(),
    };
    // The kernel stops with its first process, and the world shows the last lines of its console.
    if let Err(error) = ended.and_then(Agent::run) {
        eprintln!("millpond-agent: {error}");
    }
}
