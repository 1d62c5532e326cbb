//! The arms, their runs in turn, and what came of them.
//!
//! Each run makes its own taps, switches and connection between the same two namespaces.
//! Measurement begins a while after the connection, when its window has opened, and is reported by
//! medians over the repetitions; arms take turns, repetition by repetition.
//!
//! Invariant: the namespaces and all in them are gone when the demo ends, whether it succeeds or
//! not.

use super::fabric::PathSettings;
use super::place::{ADDRESSES, Namespaces, ip, measure, median};
use super::world::World;
use crate::dataplane::port::tap::TapSettings;
use crate::dataplane::port::{self, Tap};
use millpond_core::edge::flowcell::{Opening, Rule};
use millpond_core::edge::gro::{
    Cause, Labels, NoOffloadParams, OffloadParams, PrestoGroParams, Rules, StockGroParams,
};
use millpond_core::edge::schedule::Order;
use millpond_core::{Rate, Time};
use millpond_worlds::namespace;
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A flowcell's largest size.
const THRESHOLD: u64 = 64 << 10;
/// Packets a poll, at most: the kernel's NAPI weight.
const BUDGET: usize = 64;
/// The least delay that the receiver expects. A poll that pushes super-segments runs TCP for them
/// and takes 100 us or more, which looks like reordering; this is no less than twice that.
const DELAY_MIN: Time = Time::from_us(250);

/// The compared values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// One path with the rate of all, no skew, our stock GRO: as good as it gets.
    OnePath,
    /// Four paths, packets go up one by one.
    Off,
    /// Four paths, packets go up one by one, and the kernel's own GRO merges them behind the tap.
    KernelGro,
    /// Four paths, our stock GRO, labels stripped: a flow has one open segment.
    StockGro,
    /// Four paths, our stock GRO, labels kept: a flow has one open segment a path.
    StockGroLabels,
    /// Four paths, Presto's GRO.
    PrestoGro,
}

impl Arm {
    /// All of them.
    pub const ALL: [Arm; 6] = [
        Arm::OnePath,
        Arm::Off,
        Arm::KernelGro,
        Arm::StockGro,
        Arm::StockGroLabels,
        Arm::PrestoGro,
    ];
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Arm::OnePath => "one-path",
            Arm::Off => "off",
            Arm::KernelGro => "kernel-gro",
            Arm::StockGro => "stock-gro",
            Arm::StockGroLabels => "stock-gro-labels",
            Arm::PrestoGro => "presto-gro",
        }
    }
    /// By its name.
    pub fn named(name: &str) -> Option<Arm> {
        Arm::ALL.into_iter().find(|arm| arm.name() == name)
    }
    fn offload(self) -> OffloadParams {
        let budget = BUDGET as u32;
        match self {
            Arm::Off | Arm::KernelGro => OffloadParams::None(NoOffloadParams {}),
            Arm::OnePath | Arm::StockGro => OffloadParams::Stock(StockGroParams {
                budget,
                labels: Labels::Stripped,
                ..Default::default()
            }),
            Arm::StockGroLabels => OffloadParams::Stock(StockGroParams {
                budget,
                labels: Labels::Kept,
                ..Default::default()
            }),
            Arm::PrestoGro => OffloadParams::Presto(PrestoGroParams {
                budget,
                rules: Rules::Safe,
                min: DELAY_MIN,
                initial: DELAY_MIN,
                ..Default::default()
            }),
        }
    }
}

/// The runs to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which arms.
    pub arms: Vec<Arm>,
    /// How often each.
    pub repetitions: usize,
    /// How long each is measured.
    pub duration: Duration,
    /// Paths, and the rate of each.
    pub paths: usize,
    /// See `paths`.
    pub rate: Rate,
    /// Between one path's delay and the next one's; each is run.
    pub skews: Vec<Time>,
    /// Whether TCP may use RACK; each is run.
    pub rack: Vec<bool>,
    /// No faster than this; each is run.
    pub pacing: Vec<Option<Rate>>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            arms: Arm::ALL.to_vec(),
            repetitions: 5,
            duration: Duration::from_secs(3),
            paths: 4,
            rate: Rate::from_gbps(10),
            skews: vec![Time::from_us(50)],
            rack: vec![true],
            pacing: vec![None],
        }
    }
}

/// One run: its settings, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Which arm.
    pub arm: Arm,
    /// Which turn.
    pub repetition: usize,
    /// Between one path's delay and the next one's.
    pub skew_us: f64,
    /// Whether TCP might use RACK.
    pub rack: bool,
    /// The rate that TCP was paced at; null: not at all.
    pub pacing_gbps: Option<f64>,
    /// Gigabits a second that the receiving application read.
    pub throughput_gbps: f64,
    /// Processor time of this process: the switch, both ends' TCP, the load.
    pub cpu_s_per_gb: f64,
    /// Segments that TCP queued because something before them was missing (TCPOFOQueue).
    pub out_of_order: u64,
    /// Segments that TCP was handed (InSegs), at the receiver.
    pub segments: u64,
    /// Payload of what the receiving edge handed up, on average; of the kernel's GRO, of what TCP
    /// was handed.
    pub segment_bytes: f64,
    /// Segments that were sent again (RetransSegs).
    pub retransmitted: u64,
    /// Segments that the receiving edge let wait; of them those whose wait ended in vain.
    pub held: u64,
    /// See `held`.
    pub timed_out: u64,
    /// Packets that found their path full.
    pub path_drops: u64,
    /// Frames that were dropped otherwise.
    pub other_drops: u64,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of this form.
    pub schema: u32,
    /// Every run.
    pub runs: Vec<Run>,
}

/// A tap in one of the namespaces, with its address.
fn tap(namespaces: &Namespaces, end: usize, napi: bool) -> Result<Tap, port::Error> {
    let (name, device) = (namespaces.name(end), "mpdemo");
    let settings = TapSettings { device: device.into(), persistent: false, napi };
    let entering = |e| port::Error::kernel(format!("entering {name}"), e);
    let tap = namespace::within(Some(name), || Tap::open(&settings)).map_err(entering)??;
    ip(&["-n", name, "addr", "add", &format!("{}/24", ADDRESSES[end]), "dev", device])?;
    ip(&["-n", name, "link", "set", device, "up"])?;
    if napi {
        // Each frame that is written is a poll of its own; the kernel merges over polls only where
        // these say so.
        let set = format!(
            "echo 200000 > /sys/class/net/{device}/gro_flush_timeout; echo 100 > \
             /sys/class/net/{device}/napi_defer_hard_irqs"
        );
        ip(&["netns", "exec", name, "sh", "-ec", &set])?;
    }
    Ok(tap)
}

/// Runs the plan, and calls `say` with each run. If `stop` returns true, the report has the runs so
/// far.
///
/// # Errors
/// A namespace, an interface or a switch cannot be made, or a stream between namespaces fails.
pub fn demo(
    plan: &Plan,
    stop: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&Run),
) -> Result<Report, port::Error> {
    let namespaces = Namespaces::new(2)?;
    let mut runs = Vec::new();
    for repetition in 0..plan.repetitions {
        for (&skew, &rack, &pacing) in plan.settings() {
            for &arm in &plan.arms {
                if stop() {
                    return Ok(Report { schema: 1, runs });
                }
                let run = run(&namespaces, plan, arm, repetition, skew, rack, pacing)?;
                say(&run);
                runs.push(run);
            }
        }
    }
    Ok(Report { schema: 1, runs })
}

impl Plan {
    fn settings(&self) -> Vec<(&Time, &bool, &Option<Rate>)> {
        let with_rack =
            self.skews.iter().flat_map(|skew| self.rack.iter().map(move |rack| (skew, rack)));
        with_rack
            .flat_map(|(skew, rack)| self.pacing.iter().map(move |pacing| (skew, rack, pacing)))
            .collect()
    }
    fn paths(&self, arm: Arm, skew: Time) -> Vec<PathSettings> {
        match arm {
            Arm::OnePath => {
                vec![PathSettings {
                    rate: Rate(self.rate.bps() * self.paths as u64),
                    delay: Time::ZERO,
                }]
            }
            _ => {
                let path = |i: usize| PathSettings {
                    rate: self.rate,
                    delay: Time::from_ps(skew.as_ps() * i as u64),
                };
                (0..self.paths).map(path).collect()
            }
        }
    }
}

fn run(
    namespaces: &Namespaces,
    plan: &Plan,
    arm: Arm,
    repetition: usize,
    skew: Time,
    rack: bool,
    pacing: Option<Rate>,
) -> Result<Run, port::Error> {
    let failed = |what: &'static str| move |e: std::io::Error| port::Error::kernel(what, e);
    (0..2).try_for_each(|end| namespaces.set(end, "tcp_recovery", if rack { "1" } else { "0" }))?;
    let taps = [tap(namespaces, 0, false)?, tap(namespaces, 1, arm == Arm::KernelGro)?];
    let rule =
        Rule { opening: Opening::Bytes(THRESHOLD), order: Order::RoundRobin, is_first: false };
    let mut world = World::new(taps, &plan.paths(arm, skew), rule, &arm.offload(), BUDGET)?;
    let stop = Arc::new(AtomicBool::new(false));
    let ends = stop.clone();
    let moving = std::thread::spawn(move || {
        world.run(&ends);
        world
    });
    // Whatever fails from here on, the loop has to end.
    let measured = measure(namespaces, plan.duration, pacing);
    stop.store(true, Ordering::Relaxed);
    let world = moving
        .join()
        .map_err(|_| port::Error::kernel("moving frames", std::io::Error::other("it panicked")))?;
    debug_assert_eq!(world.buffers_in_use(), 0, "a packet was lost, with its buffer");
    let m = measured.map_err(failed("the load"))?;
    let edge = world.offload();
    let bytes = m.bytes as f64;
    let pushed: u64 = edge.segments.iter().sum::<u64>() - edge.of(Cause::Single);
    let segment_bytes = match arm {
        Arm::Off | Arm::KernelGro => bytes / (m.segments.max(1) as f64),
        _ => edge.bytes as f64 / pushed.max(1) as f64,
    };
    Ok(Run {
        arm,
        repetition,
        skew_us: skew.as_us_f64(),
        rack,
        pacing_gbps: pacing.map(|r| r.bps() as f64 / 1e9),
        throughput_gbps: bytes * 8e-9 / m.seconds,
        cpu_s_per_gb: m.processor.as_secs_f64() / (bytes * 1e-9).max(1e-9),
        out_of_order: m.out_of_order,
        segments: m.segments,
        segment_bytes,
        retransmitted: m.retransmitted,
        held: edge.held,
        timed_out: edge.of(Cause::Timeout),
        path_drops: world.path_drops(),
        other_drops: world.other_drops(),
    })
}

/// The settings that runs differ by beside their arms: skew, RACK, pacing.
type Setting = (f64, bool, Option<f64>);

/// One bound on a ratio of two arms' medians.
struct Bound {
    what: &'static str,
    of: fn(&Run) -> f64,
    arms: [Arm; 2],
    least: f64,
    most: f64,
}

impl Bound {
    fn holds(&self, ratio: f64) -> bool {
        (self.least..=self.most).contains(&ratio)
    }
}

static BOUNDS: [Bound; 4] = [
    Bound {
        what: "throughput, Presto GRO over stock GRO",
        of: |r| r.throughput_gbps,
        arms: [Arm::PrestoGro, Arm::StockGro],
        least: 2.0,
        most: f64::INFINITY,
    },
    Bound {
        what: "throughput, Presto GRO over one path",
        of: |r| r.throughput_gbps,
        arms: [Arm::PrestoGro, Arm::OnePath],
        least: 0.7,
        most: f64::INFINITY,
    },
    Bound {
        what: "out-of-order segments a gigabyte, Presto GRO over stock GRO",
        of: |r| r.out_of_order as f64 / r.throughput_gbps,
        arms: [Arm::PrestoGro, Arm::StockGro],
        least: 0.0,
        most: 0.05,
    },
    Bound {
        what: "CPU-seconds a gigabyte, Presto GRO over stock GRO",
        of: |r| r.cpu_s_per_gb,
        arms: [Arm::PrestoGro, Arm::StockGro],
        least: 0.0,
        most: 0.6,
    },
];

impl Report {
    /// The settings that were run, in order.
    fn settings(&self) -> Vec<Setting> {
        let mut all = Vec::new();
        for run in &self.runs {
            let setting = (run.skew_us, run.rack, run.pacing_gbps);
            if !all.contains(&setting) {
                all.push(setting);
            }
        }
        all
    }

    /// An arm's runs in one setting.
    fn of(&self, setting: Setting, arm: Arm) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .filter(move |r| r.arm == arm && (r.skew_us, r.rack, r.pacing_gbps) == setting)
    }

    /// The expectations of an unpaced run, and what was measured.
    fn ratios(&self, setting: Setting) -> impl Iterator<Item = (&'static Bound, f64)> {
        let measured = move |bound: &'static Bound| {
            let [above, below] = bound.arms.map(|arm| median(self.of(setting, arm).map(bound.of)));
            (bound, above / below)
        };
        let is_judged = setting.2.is_none();
        BOUNDS
            .iter()
            .filter(move |_| is_judged)
            .map(measured)
            .filter(|(_, ratio)| ratio.is_finite())
    }

    /// How much of what is expected does not hold.
    pub fn failures(&self) -> usize {
        let ratios = self.settings().into_iter().flat_map(|setting| self.ratios(setting));
        ratios.filter(|(bound, ratio)| !bound.holds(*ratio)).count()
    }

    /// Medians for people, and whether what is expected of an unpaced run holds.
    pub fn table(&self) -> String {
        let mut out = String::new();
        for (skew, rack, pacing) in self.settings() {
            let paced = pacing.map_or("unpaced".to_string(), |r| format!("paced at {r} Gb/s"));
            let _ = writeln!(
                out,
                "skew {skew} us a path, RACK {}, {paced}",
                if rack { "on" } else { "off" }
            );
            let _ = writeln!(
                out,
                "{:<17} {:>4} {:>8} {:>10} {:>13} {:>9} {:>8} {:>9} {:>8} {:>10}",
                "arm",
                "runs",
                "Gb/s",
                "CPU-s/GB",
                "out of order",
                "segments",
                "KB each",
                "retrans",
                "held",
                "timed out"
            );
            let of = |arm: Arm| self.of((skew, rack, pacing), arm);
            for arm in Arm::ALL.into_iter().filter(|arm| of(*arm).next().is_some()) {
                let m = |f: fn(&Run) -> f64| median(of(arm).map(f));
                let _ = writeln!(
                    out,
                    "{:<17} {:>4} {:>8.2} {:>10.3} {:>13.0} {:>9.0} {:>8.1} {:>9.0} {:>8.0} \
                     {:>10.0}",
                    arm.name(),
                    of(arm).count(),
                    m(|r| r.throughput_gbps),
                    m(|r| r.cpu_s_per_gb),
                    m(|r| r.out_of_order as f64),
                    m(|r| r.segments as f64),
                    m(|r| r.segment_bytes / 1e3),
                    m(|r| r.retransmitted as f64),
                    m(|r| r.held as f64),
                    m(|r| r.timed_out as f64),
                );
            }
            for (bound, ratio) in self.ratios((skew, rack, pacing)) {
                let holds = if bound.holds(ratio) { "holds" } else { "FAILS" };
                let expected = match bound.most.is_finite() {
                    true => format!("at most {}", bound.most),
                    false => format!("at least {}", bound.least),
                };
                let _ =
                    writeln!(out, "  {holds}: {}: {ratio:.3} (expected: {expected})", bound.what);
            }
            let _ = writeln!(out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_names() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert!(median(std::iter::empty()).is_nan());
        for arm in Arm::ALL {
            assert_eq!(Arm::named(arm.name()), Some(arm));
            assert_eq!(serde_json::to_string(&arm).unwrap(), format!("\"{}\"", arm.name()));
        }
    }

    #[test]
    fn a_sweep_runs_everything_with_everything() {
        let plan = Plan {
            skews: vec![Time::ZERO, Time::from_us(50)],
            rack: vec![true, false],
            pacing: vec![None, Some(Rate::from_gbps(1))],
            ..Plan::default()
        };
        assert_eq!(plan.settings().len(), 8);
        assert_eq!(plan.paths(Arm::PrestoGro, Time::from_us(50))[3].delay, Time::from_us(150));
        assert_eq!(plan.paths(Arm::OnePath, Time::from_us(50))[0].rate, Rate::from_gbps(40));
    }
}
