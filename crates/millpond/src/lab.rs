//! The world of network namespaces with kernel TCP.

pub(crate) mod limits;
pub(crate) mod watched;

use crate::sim::Beside;
use crate::totals::{calls, fairness, goodput_over_time, unsampled};
use crate::{Error, Observer, Plan, Status, Time, Totals, World, WorldKind};
use millpond_lab::kernel::Kernel;
use millpond_lab::load::{Counts, PORT, Place, Settings};
use millpond_lab::{Counted, Lab as Up, Role, check_programs, prepare};
use millpond_lab::{kernel, programs, support};
use millpond_results::{Amount, Audit, RunInfo, peak_rss_bytes};
use millpond_scenario::Scenario as Text;
use millpond_scenario::plan::Plan as Detail;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use watched::Watched;

/// The lab: hosts are network namespaces with kernel TCP, and the network is the simulator's
/// switches in this process, by the clock. Needs root, on Linux.
///
/// ```no_run
/// use millpond::{Lab, Options, Scenario, run};
///
/// let scenario = Scenario::open("incast.toml")?;
/// // A network of 10 Gb/s becomes one of 100 Mb/s, and times are a hundred times as long.
/// let lab = Lab { scale: Some(100) };
/// let summary = run(&scenario.plan(None)?, &Options { world: &lab, ..Options::default() })?;
/// println!("p99 {:?} us", summary.fct_us.get("all").and_then(|fct| fct.p99));
/// # Ok::<(), millpond::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Lab {
    /// By how much the network is slowed: rates are divided by it, times multiplied. Without it
    /// the lab chooses a factor that this machine can follow.
    pub scale: Option<u32>,
}

/// Packets of all hosts in a second that the lab's thread can follow: with their acknowledgements,
/// six hops each over two switches, three quarters of the rate that `make bench-lab` measures.
const PACKETS_A_SECOND: u64 = 60_000;
/// Factors to choose from.
const SCALES: [u32; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
/// Between two looks at whether the run is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Lateness beyond this part of the empty network's round trip, and beyond this part of the median
/// FCT or response time, changes results.
const TOLERATED: f64 = 0.1;

/// The factor that a plan needs on this machine: all its hosts may send at once.
fn choose(plan: &Plan) -> u32 {
    let topology = &plan.detail().topology;
    let hosts = topology.links.iter().take(topology.hosts as usize);
    let bits: u64 = hosts.map(|link| link.rate.bps()).sum();
    let packets = bits / (8 * plan.detail().host.packet_max().max(1));
    let needed = packets.div_ceil(PACKETS_A_SECOND);
    let last = SCALES[SCALES.len() - 1];
    SCALES.into_iter().find(|scale| u64::from(*scale) >= needed).unwrap_or(last)
}

/// Warning that programs measure the slowed network; `None` at scale 1 and without programs.
fn scaled_programs(plan: &Plan, factor: u32) -> Option<String> {
    (factor > 1 && !plan.detail().programs.is_empty()).then(|| {
        format!(
            "lab: programs measure the network slowed by {factor}: multiply the rates that they \
             print by {factor}, divide their times by {factor}, or use --scale 1"
        )
    })
}

/// An error of the lab's parts in a world of kernels; an error of usage if the plan asks for what
/// the world lacks.
pub(crate) fn failed_in(world: &str, error: millpond_lab::Error) -> Error {
    match error {
        millpond_lab::Error::Unsupported { .. } => Error::Usage(format!("{world}: {error}")),
        _ => Error::Runs(format!("{world}: {error}")),
    }
}

fn failed(error: millpond_lab::Error) -> Error {
    failed_in("lab", error)
}

/// A plan of this text with a kernel's values, and the note of these.
pub(crate) fn of_kernel(
    detail: &Detail,
    text: &str,
    kernel: &Kernel,
) -> Result<(Detail, Option<String>), Error> {
    let text = Text::parse(&detail.name, text)?;
    let text = text.with_base(detail.base.as_deref().unwrap_or(Path::new(".")));
    let constants = kernel::constants(&text.plan(None, &[], Some(detail.seed))?, kernel);
    let mut own = text.plan(None, &constants, Some(detail.seed))?;
    own.name.clone_from(&detail.name);
    own.variant.clone_from(&detail.variant);
    Ok((own, kernel::note(&constants, kernel)))
}

impl Lab {
    /// The simulator of what this lab runs: the plan is slowed by the same factor, and has the
    /// kernel's timers. So a result of each differ by their worlds alone.
    ///
    /// ```no_run
    /// use millpond::{Comparison, Lab, Options, Scenario, compare};
    ///
    /// let (scenario, lab) = (Scenario::open("incast.toml")?, Lab::default());
    /// let both = Comparison::across(&scenario, &[], Some(1..=5), &["sim", "lab"])?;
    /// let options =
    ///     Options { world: &lab.simulator(), beside: &[&lab], ..Options::default() };
    /// compare(&both, "out/incast-worlds", &options)?;
    /// # Ok::<(), millpond::Error>(())
    /// ```
    pub fn simulator(self) -> impl World {
        Beside(move |plan: &Plan| self.slow(plan))
    }

    /// The given factor, or the one that the plan needs.
    fn factor(&self, plan: &Plan) -> u32 {
        self.scale.unwrap_or_else(|| choose(plan)).max(1)
    }

    /// The plan as this lab runs it, whoever runs it.
    pub(crate) fn slow(&self, plan: &Plan) -> Result<Plan, Error> {
        let detail = plan.detail();
        support::check(detail).map_err(failed)?;
        let factor = self.factor(plan);
        let text = millpond_scenario::slowed(detail, factor).map_err(Error::Usage)?;
        let (mut slow, note) = of_kernel(detail, &text, &Kernel::of_lab())?;
        let needed = choose(plan);
        if factor < needed {
            slow.warnings.push(format!(
                "lab: at scale {factor} hosts may send more packets than the {PACKETS_A_SECOND} a \
                 second that one thread can follow: if the run is invalid, use --scale {needed}"
            ));
        }
        if factor > 1 {
            let chosen = match self.scale {
                Some(_) => "",
                None => " (chosen by the sum of the hosts' links)",
            };
            slow.warnings.push(format!(
                "lab: scale {factor}{chosen}: rates are divided and times multiplied by it; \
                 delayed acknowledgements and the first RTO of the kernel are not"
            ));
        }
        slow.warnings.extend(note);
        Ok(Plan::new(slow, plan.overrides()))
    }
}

impl World for Lab {
    fn kind(&self) -> WorldKind {
        WorldKind::Lab
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    fn prepare(&self, plan: &Plan) -> Result<Plan, Error> {
        check_programs(plan.detail()).map_err(failed)?;
        let mut detail = self.slow(plan)?.detail().clone();
        detail.warnings.extend(kernel::ignored(plan.detail(), &Kernel::of_lab()));
        detail.warnings.extend(scaled_programs(plan, self.factor(plan)));
        Ok(Plan::new(detail, plan.overrides()))
    }

    fn note(&self, plan: &Plan) -> Option<String> {
        let detail = plan.detail();
        let link = detail.topology.links.iter().map(|link| link.rate).max()?;
        let hosts = detail.topology.hosts;
        let seconds = match detail.horizon {
            Time::END | Time::MAX => {
                let mut arrivals = detail.traffic.arrivals();
                let last = std::iter::from_fn(|| arrivals.next_arrival()).last();
                last.map_or(String::new(), |last| format!(", {:.1} s or more", last.at.as_s_f64()))
            }
            horizon => format!(", {:.1} s", horizon.as_s_f64()),
        };
        Some(format!("lab: {hosts} hosts, links of up to {link}{seconds}"))
    }

    fn run(&self, plan: &Plan, observer: &mut dyn Observer) -> Result<Totals, Error> {
        let detail = plan.detail();
        let mut lab = Up::up(detail).map_err(failed)?;
        let congestion = lab.congestion().to_string();
        let place = |(host, namespace): (u32, &millpond_lab::Namespace)| Place {
            namespace: namespace.name().to_string(),
            address: lab.address(host),
        };
        let places: Vec<Place> = (0..).zip(lab.namespaces()).map(place).collect();
        let (began, stop) = (lab.began(), AtomicBool::new(false));
        let cgroups = lab.cgroups();
        let settings = Settings {
            plan: detail,
            places: &places,
            congestion: &congestion,
            began,
            port: PORT,
            cgroups,
        };
        lab.measure();
        let records = lab.record(detail, began);
        let watched = Watched::new(observer);
        let [load_is_over, is_over] = [const { AtomicBool::new(false) }; 2];
        let (namespaces, folder) = (lab.namespaces(), lab.world().folder());
        let real = programs::Settings { plan: detail, namespaces, began, cgroups, folder };
        let (counts, programs, warm) = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                prepare(Role::Load);
                let counts = millpond_lab::load::run(&settings, &stop, &mut &watched);
                // Without its traffic the run awaits no program.
                if counts.as_ref().map_or(true, |counts| counts.interrupted) {
                    stop.store(true, Relaxed);
                }
                load_is_over.store(true, Relaxed);
                counts
            });
            let programs = scope.spawn(|| {
                prepare(Role::Programs);
                let ended = programs::run(&real, &load_is_over, &stop, &mut &watched);
                is_over.store(true, Relaxed);
                ended
            });
            let warm = began + detail.warm_up.to_duration();
            let warm = watched.look(&lab, &records, warm, &stop, &is_over);
            let counts = load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let programs = programs.join();
            (counts, programs.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), warm)
        });
        let wall = began.elapsed();
        let end = limits_of(&lab);
        let counted = lab.stop();
        while let Some(batch) = records.next(Duration::ZERO) {
            watched.recorded(&batch);
        }
        let median = watched.end()?;
        let mut counts = counts.map_err(|error| Error::Runs(format!("lab: {error}")))?;
        counts.interrupted |= programs.interrupted;
        // Of all sockets, those of programs too.
        (counts.timeouts, counts.retransmitted) = (counted.timeouts, counted.retransmitted);
        let invalid = invalid(plan, median, &counts, &counted);
        let mut totals = totals(plan, &counts, &counted, wall, invalid);
        totals.warnings.extend(programs.warnings);
        totals.programs = programs.programs;
        totals.limits = limits::limits(detail, &warm?, &end?);
        Ok(totals)
    }
}

/// Counts of the lab's limits by now.
fn limits_of(lab: &Up) -> Result<limits::Reading, Error> {
    Ok((Instant::now(), lab.limits().map_err(failed)?))
}

/// Reasons why the run is invalid, a sentence each.
fn invalid(plan: &Plan, median: Time, counts: &Counts, counted: &Counted) -> Vec<String> {
    let parts = [plan.detail().round_trip.as_us_f64(), median.as_us_f64()];
    let tolerated = parts[0].max(parts[1]) * TOLERATED;
    let mut found = Vec::new();
    let late = |what: &str, p99: Time| {
        (p99.as_us_f64() > tolerated).then(|| {
            format!(
                "invalid: {what} {:.0} us late at p99; more than {tolerated:.0} us (a tenth of \
                 the empty network's round trip, or of the median FCT or response time) change \
                 results: use a larger --scale",
                p99.as_us_f64()
            )
        })
    };
    found.extend(late("packets left", counted.late.p99));
    found.extend(late("flows started", counts.lateness.quantile(0.99)));
    if counted.refused > 0 {
        let count = counted.refused;
        found.push(format!("invalid: kernels did not take {count} frames: use a larger --scale"));
    }
    if counted.lost > 0 {
        let count = counted.lost;
        found.push(format!(
            "invalid: hosts' interfaces dropped {count} packets: use a larger --scale"
        ));
    }
    found
}

/// Warnings of failed connections.
pub(crate) fn errors(counts: &Counts) -> impl Iterator<Item = String> + '_ {
    counts.errors.iter().map(|(kind, failure)| {
        format!("lab: {} connections failed: {kind} (first: {})", failure.count, failure.first)
    })
}

/// Warning for packets that captures lack.
pub(crate) fn missed(counted: &Counted) -> Option<String> {
    let count = counted.missed;
    (count > 0).then(|| {
        format!(
            "capture.pcap: {count} packets are missing, since the disk was too slow: use a smaller \
             capture.snaplen"
        )
    })
}

pub(crate) fn totals(
    plan: &Plan,
    counts: &Counts,
    counted: &Counted,
    wall: Duration,
    invalid: Vec<String>,
) -> Totals {
    let detail = plan.detail();
    let measured = counts.ended.saturating_sub(detail.warm_up);
    let dropped: u64 = counted.dropped.iter().map(|(_, count)| count).sum();
    let amount = |packets: u64, bytes: u64| Amount { packets, bytes };
    let [entered, delivered, lost, held] = counted.bytes;
    let wall_s = wall.as_secs_f64();
    Totals {
        status: match (counts.interrupted, invalid.is_empty()) {
            (true, _) => Status::Interrupted,
            (false, false) => Status::Invalid,
            (false, true) => Status::Complete,
        },
        until_complete: detail.until_complete,
        horizon: counts.ended,
        measured,
        bytes_delivered: counts.bytes_measured,
        goodput_over_time: goodput_over_time(detail, &counts.goodput),
        run: RunInfo {
            wall_s,
            setup_s: 0.0,
            simulated_s: counts.ended.as_s_f64(),
            events: 0,
            packet_hops: counted.hops,
            packet_hops_per_s: if wall_s > 0.0 { counted.hops as f64 / wall_s } else { 0.0 },
            peak_rss_bytes: peak_rss_bytes(),
            threads: 2,
        },
        not_started: (counts.waiting.len() + counts.late.len()) as u64,
        sent: counted.entered,
        delivered: counted.delivered,
        dropped_by: counted.dropped.iter().map(|(reason, n)| (reason.name(), *n)).collect(),
        ecn_marked: counted.marked,
        deflected: counted.deflected,
        retransmitted: counts.retransmitted,
        out_of_order: counts.out_of_order,
        timeouts: counts.timeouts,
        fairness_jain: fairness(&counts.pairs, measured),
        mechanisms: mechanisms(counts, counted),
        calls: calls(detail),
        warnings: invalid
            .into_iter()
            .chain(detail.warnings.iter().cloned())
            .chain(errors(counts))
            .chain(unsampled(detail, &counts.sampled))
            .chain(missed(counted))
            .collect(),
        audit: Audit::of(
            amount(counted.entered, entered),
            amount(counted.delivered, delivered),
            amount(dropped, lost),
            amount(counted.held, held),
        ),
        ..Totals::default()
    }
}

/// The lab's own measurements, beside the mechanisms' counters.
fn mechanisms(counts: &Counts, counted: &Counted) -> BTreeMap<String, BTreeMap<String, u64>> {
    let ns = |time: Time| time.as_ps() / 1000;
    let own = [
        ("late_p50_ns", ns(counted.late.p50)),
        ("late_p99_ns", ns(counted.late.p99)),
        ("late_max_ns", ns(counted.late.max)),
        ("round_p99_ns", ns(counted.round.p99)),
        ("start_late_p99_ns", ns(counts.lateness.quantile(0.99))),
        ("failed_connections", counts.errors.values().map(|failure| failure.count).sum()),
        ("refused_frames", counted.refused),
        ("interface_drops", counted.lost),
    ];
    with_own(counted, "lab", &own)
}

/// The mechanisms' counters, and beside them a world's own measurements.
pub(crate) fn with_own(
    counted: &Counted,
    world: &str,
    own: &[(&str, u64)],
) -> BTreeMap<String, BTreeMap<String, u64>> {
    let own = own.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    let mut all = counted.mechanisms.numbers();
    all.insert(world.to_string(), own);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    /// Warnings of two hosts at 10 Gb/s with a flow and these tables besides.
    fn warnings(scale: Option<u32>, rest: &str) -> String {
        let text = format!(
            "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 2\n\
             host-link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [[traffic]]\nkind = \"permutation\"\nsize = 1\n{rest}"
        );
        let plan = Scenario::parse("a", &text).unwrap().plan(None).unwrap();
        Lab { scale }.prepare(&plan).unwrap().warnings().join("\n")
    }

    #[test]
    fn scale_is_a_warning_of_programs_that_measure_the_slowed_network() {
        let program = "[[program]]\nhost = 0\ncommand = \"true\"\n";
        let own = "multiply the rates that they print by 50";
        let chosen = "scale 50 (chosen by the sum of the hosts' links)";
        let automatic = warnings(None, program);
        assert!(automatic.contains(own) && automatic.contains(chosen), "{automatic}");
        let given = warnings(Some(50), program);
        assert!(given.contains(own) && !given.contains("chosen by"), "{given}");
        assert!(!warnings(None, "").contains("multiply the rates"));
        assert!(!warnings(Some(1), program).contains("multiply the rates"));
    }
}
