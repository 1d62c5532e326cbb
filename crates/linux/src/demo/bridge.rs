//! The plain switch between two taps, the kernel's bridge between two veth pairs, and the switch in
//! the place of that bridge: the same stream over each, in turn.
//!
//! Both hand super-segments from one kernel TCP to another. A frame crosses the bridge in the
//! sender's own call; it crosses the switch by way of a process, which the kernel has to schedule,
//! and is copied out of the kernel and into it.
//!
//! Invariant: they have their turns by repetition, so what else the machine does meets all.

use super::place::{ADDRESSES, Namespaces, ip, measure, median};
use crate::dataplane::port;
use crate::switch::config::Config;
use crate::switch::control::Asking;
use crate::switch::run::Switch;
use crate::switch::state::State;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The least share of the bridge's throughput that is expected.
const LEAST: f64 = 0.5;

/// The compared values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// The kernel's.
    Bridge,
    /// Ours, between taps.
    Switch,
    /// Ours, by packet sockets at the ends of the bridge's veth pairs.
    AfPacket,
}

impl Arm {
    const ALL: [Arm; 3] = [Arm::Bridge, Arm::Switch, Arm::AfPacket];
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Arm::Bridge => "bridge",
            Arm::Switch => "switch",
            Arm::AfPacket => "af-packet",
        }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Of what.
    pub arm: Arm,
    /// Which turn.
    pub repetition: usize,
    /// Gigabits a second that the receiving application read.
    pub throughput_gbps: f64,
    /// Processor time of this process: the load, TCP, and the switch or the bridge.
    pub cpu_s_per_gb: f64,
    /// Segments that were sent again.
    pub retransmitted: u64,
}

/// All of them.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of this form.
    pub schema: u32,
    /// Every run.
    pub runs: Vec<Run>,
}

/// Runs all arms in turn, for `duration` each, and calls `say` with each run. If `stop` returns
/// true, the report has the runs so far.
///
/// # Errors
/// A namespace, an interface, a bridge or a switch cannot be made, or a stream between namespaces
/// fails.
pub fn demo(
    repetitions: usize,
    duration: Duration,
    stop: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&Run),
) -> Result<Report, port::Error> {
    let mut runs = Vec::new();
    for repetition in 0..repetitions {
        for arm in Arm::ALL {
            if stop() {
                return Ok(Report { schema: 1, runs });
            }
            let namespaces = Namespaces::new(3)?;
            let measured = match arm {
                Arm::Bridge => bridge(&namespaces).and_then(|()| measured(&namespaces, duration)),
                Arm::Switch => switch(&namespaces, &taps(&namespaces), duration),
                Arm::AfPacket => {
                    pairs(&namespaces).and_then(|text| switch(&namespaces, &text, duration))
                }
            };
            let m = measured?;
            let run = Run {
                arm,
                repetition,
                throughput_gbps: m.bytes as f64 * 8e-9 / m.seconds,
                cpu_s_per_gb: m.processor.as_secs_f64() / (m.bytes as f64 * 1e-9).max(1e-9),
                retransmitted: m.retransmitted,
            };
            say(&run);
            runs.push(run);
        }
    }
    Ok(Report { schema: 1, runs })
}

fn measured(
    namespaces: &Namespaces,
    duration: Duration,
) -> Result<super::place::Measured, port::Error> {
    measure(namespaces, duration, None).map_err(|e| port::Error::kernel("the load", e))
}

/// Veth pairs from the third namespace to the others.
fn veth(namespaces: &Namespaces) -> Result<(), port::Error> {
    let third = namespaces.name(2);
    for (end, address) in ADDRESSES.iter().enumerate() {
        let (name, port) = (namespaces.name(end), format!("mpport{end}"));
        ip(&[
            "-n", third, "link", "add", &port, "type", "veth", "peer", "name", "mpdemo", "netns",
            name,
        ])?;
        ip(&["-n", third, "link", "set", &port, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", "mpdemo"])?;
        ip(&["-n", name, "link", "set", "mpdemo", "up"])?;
    }
    Ok(())
}

fn bridge(namespaces: &Namespaces) -> Result<(), port::Error> {
    let third = namespaces.name(2);
    veth(namespaces)?;
    ip(&["-n", third, "link", "add", "mpbridge", "type", "bridge"])?;
    ip(&["-n", third, "link", "set", "mpbridge", "up"])?;
    (0..2).try_for_each(|end| {
        ip(&["-n", third, "link", "set", &format!("mpport{end}"), "master", "mpbridge"])
    })
}

/// A switch between the ends of veth pairs.
fn pairs(namespaces: &Namespaces) -> Result<String, port::Error> {
    veth(namespaces)?;
    let third = namespaces.name(2);
    let port = |end| {
        format!("[[port]]\nname = \"mpport{end}\"\nkind = \"af-packet\"\nnamespace = \"{third}\"\n")
    };
    Ok((0..2).map(port).collect())
}

/// A switch between taps.
fn taps(namespaces: &Namespaces) -> String {
    let port = |end: usize| {
        let (name, address) = (namespaces.name(end), ADDRESSES[end]);
        format!(
            "[[port]]\nname = \"{end}\"\ndevice = \"mpdemo\"\nnamespace = \"{name}\"\naddresses = \
             [\"{address}/24\"]\n"
        )
    };
    (0..2).map(port).collect()
}

fn switch(
    namespaces: &Namespaces,
    text: &str,
    duration: Duration,
) -> Result<super::place::Measured, port::Error> {
    let failed = |e: &dyn std::fmt::Display| port::Error::Kernel {
        what: "the switch".into(),
        reason: e.to_string(),
    };
    let config = Config::parse("demo", text).map_err(|e| failed(&e))?;
    let (asking, requests, wake) = Asking::new().map_err(|e| failed(&e))?;
    let state =
        State::at(&std::env::temp_dir().join(format!("millpond-demo-{}", std::process::id())));
    // Others may write beside it: what is there already is not ours.
    state.create_new().map_err(|e| failed(&e))?;
    let folder = state.clone();
    let moving = std::thread::spawn(move || Switch::new(folder, config, requests, wake).run());
    // The ports are there when it answers.
    let measured =
        asking.show().map_err(|e| failed(&e)).and_then(|_| measured(namespaces, duration));
    let stopped = asking.stop();
    let ended = moving.join().map_err(|_| failed(&"it panicked"))?;
    // Its interfaces end with their namespaces.
    let erased = state.erase();
    stopped.and(ended).and(erased).map_err(|e| failed(&e))?;
    measured
}

impl Report {
    /// Medians for people, and the ratio that is expected.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let of =
            |arm: Arm, f: fn(&Run) -> f64| median(self.runs.iter().filter(|r| r.arm == arm).map(f));
        let _ = writeln!(out, "{:<10} {:>8} {:>10} {:>9}", "", "Gb/s", "CPU-s/GB", "retrans");
        for arm in Arm::ALL {
            let [rate, processor, again] = [
                of(arm, |r| r.throughput_gbps),
                of(arm, |r| r.cpu_s_per_gb),
                of(arm, |r| r.retransmitted as f64),
            ];
            let _ = writeln!(out, "{:<10} {rate:>8.2} {processor:>10.3} {again:>9.0}", arm.name());
        }
        for (arm, ratio) in self.ratios() {
            let holds = if ratio >= LEAST { "holds" } else { "FAILS" };
            let expected = format!("(expected: at least {LEAST})");
            let _ = writeln!(
                out,
                "{holds}: throughput, {} over bridge: {ratio:.3} {expected}",
                arm.name()
            );
        }
        out
    }

    /// Throughput over the kernel's bridge.
    fn ratios(&self) -> impl Iterator<Item = (Arm, f64)> {
        let of =
            |arm: Arm| median(self.runs.iter().filter(|r| r.arm == arm).map(|r| r.throughput_gbps));
        let arms = [Arm::Switch, Arm::AfPacket].into_iter();
        arms.map(move |arm| (arm, of(arm) / of(Arm::Bridge))).filter(|(_, ratio)| ratio.is_finite())
    }

    /// How much of what is expected does not hold.
    pub fn failures(&self) -> usize {
        self.ratios().filter(|(_, ratio)| *ratio < LEAST).count()
    }
}
