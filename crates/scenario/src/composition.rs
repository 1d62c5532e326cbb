//! Composition: what each chosen mechanism assumes of the path, and which other one takes it away.
//!
//! It warns and never forbids: to see the damage is a use of the tool. A need that one mechanism
//! breaks and another restores is not a warning, nor is one that the mechanism's own parameters
//! have taken away.
//!
//! Signals are a second kind of dependence: one mechanism writes ranks, colors, labels, marks or
//! priorities on packets, and another one acts upon them. Where one of the two is missing, the
//! other one has no effect, or harms. A [`Half`] is such a mechanism.
//!
//! TLT beside Canary is outside of needs and breaks, which are of two mechanisms: this pair fights
//! only through `color-aware`, which refuses nothing without TLT's colors.

use crate::choices::Visit;
use crate::half::Half;
use crate::rdma::RecoveryParams;
use crate::settings::failure::Losable;
use crate::settings::limit::{EGRESS, INGRESS, IngressMode, LimitKind, LimitSettings, MARKS};
use crate::settings::{NicChoice, Settings};
use crate::topology::Topology;
use crate::transport::TransportKind;
use millpond_core::Time;
use millpond_core::limit::Direction;
use millpond_core::registry::{About, Choice, PathProperty, Reason, Signal};
use millpond_core::switch::marking::MarkingParams;
use millpond_core::switch::pause::PauseParams;
use millpond_core::switch::site::Auto;

/// A mechanism that a scenario has chosen.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    pub place: &'static str,
    pub kind: &'static str,
    pub about: &'static About,
    /// Of what it needs, what it can do without as its parameters are.
    pub spares: &'static [PathProperty],
    /// The keys of the retransmission timers that a pause can outlast; empty if none can.
    pub timers: &'static str,
    /// The consequence of reordering to it, and the repair.
    pub reordering: &'static str,
    /// Of the signals that it provides and reads, what it works without.
    pub alone: &'static [Signal],
    /// Of them, those that its parameters turn off.
    pub ignores: &'static [Signal],
}

impl Chosen {
    fn provides(&self, signal: Signal) -> bool {
        self.about.provides.contains(&signal) && !self.ignores.contains(&signal)
    }
    fn reads(&self, signal: Signal) -> bool {
        self.about.reads.contains(&signal) && !self.ignores.contains(&signal)
    }
}

/// All that is chosen, as the walk meets it.
struct All(Vec<Chosen>);

impl Visit for All {
    fn choice<C: Choice>(&mut self, choice: &C) {
        self.0.push(of(choice));
    }
}

fn of<C: Choice>(choice: &C) -> Chosen {
    let (place, kind, about) = (C::place().path, choice.kind(), choice.about());
    let reordering = PathProperty::FifoPerFlow.consequence();
    let (alone, ignores) = (about.alone, &[]);
    Chosen { place, kind, about, spares: &[], timers: MIN_RTO, reordering, alone, ignores }
}

const MIN_RTO: &str = "transport.min-rto";
const GO_BACK_N: &str = "the receiver drops packets that overtake others, and the sender goes \
                         back; set rdma.recovery.kind = \"selective\", or restore order at the \
                         receiver";
const SELECTIVE: &str = "reordering looks like loss: packets that others overtake are sent again, \
                         once each; the receiver drops nothing for its order";
const TELEMETRY: &str = "acknowledgements report links of several paths, and the rate follows \
                         their mixture; choose paths that keep a flow's order";

/// The consequence of reordering to a place's mechanism.
fn reordering(s: &Settings, place: &str) -> &'static str {
    match &s.rdma_choices.recovery {
        _ if !is_of_pairs(s, place) => PathProperty::FifoPerFlow.consequence(),
        RecoveryParams::GoBackN(_) => GO_BACK_N,
        RecoveryParams::Selective(_) => SELECTIVE,
    }
}

/// Whether a place's mechanism is the queue pairs'.
fn is_of_pairs(s: &Settings, place: &str) -> bool {
    place == RecoveryParams::place().path || place == "transport.importance" && !s.runs_tcp()
}

/// The keys of the timers of a place's mechanism that the longest pause can outlast. The watchdog
/// bounds a pause, and the run does; with timers that the network decides, any can outlast them.
fn timers(s: &Settings, place: &str) -> &'static str {
    let watchdog = match &s.switch.pause {
        PauseParams::Pfc(pfc) => pfc.watchdog,
        _ => None,
    };
    let outlasts = |timer: Option<Time>| {
        timer.is_none_or(|timer| match watchdog {
            Some(pause) => pause >= timer,
            None => s.run.duration.is_none_or(|end| end > timer),
        })
    };
    let given = |timer: Auto<Time>| match timer {
        Auto::Given(time) => Some(time),
        Auto::Auto => None,
    };
    let (of_pairs, keys) = match &s.rdma_choices.recovery {
        RecoveryParams::GoBackN(p) => (Some(p.timeout), "rdma.recovery.timeout"),
        RecoveryParams::Selective(p) => {
            let both = given(p.timeout_low).zip(given(p.timeout_high));
            let keys = "rdma.recovery.timeout-low and rdma.recovery.timeout-high";
            (both.map(|(low, high)| low.min(high)), keys)
        }
    };
    match is_of_pairs(s, place) {
        true if outlasts(of_pairs) => keys,
        false if outlasts(Some(s.transport.min_rto)) => MIN_RTO,
        _ => "",
    }
}

/// A transport for which duplicate acknowledgements never mean loss does not take reordering for
/// it, and one that switches mark for does not wait for a queue to be full.
fn transport(s: &Settings, kind: &TransportKind) -> Chosen {
    let is_tcp = kind.demands().family.is_tcp();
    let patient = is_tcp && s.transport.dupack_threshold.is_none();
    let marked = kind.declares_ecn() && !matches!(s.switch.marking, MarkingParams::None(_));
    let spares: &[PathProperty] = match (patient, marked) {
        (true, true) => &[PathProperty::FifoPerFlow, PathProperty::PhasesMix],
        (true, false) => &[PathProperty::FifoPerFlow],
        (false, true) => &[PathProperty::PhasesMix],
        (false, false) => &[],
    };
    let chosen = of(kind);
    let reordering = if is_tcp { chosen.reordering } else { TELEMETRY };
    let ignores: &[Signal] = if kind.declares_ecn() { &[] } else { &[Signal::Marks] };
    // A network that pauses holds senders back without marks.
    let pauses = s.switch.pause.kind() != "none";
    let alone = if pauses && chosen.alone.is_empty() { &[Signal::Marks] } else { chosen.alone };
    Chosen { spares, reordering, ignores, alone, ..chosen }
}

/// The needs of a limit and what it takes away depend on which packets it sees.
fn limit(limit: &LimitSettings) -> Chosen {
    let chosen = of(&limit.kind);
    let LimitKind::Nrm(p) = &limit.kind else { return chosen };
    let about = match (limit.common.direction, limit.common.ingress_mode) {
        _ if p.mark_only || p.observe => &MARKS,
        (Direction::Ingress, IngressMode::MarkOnly) => &MARKS,
        (Direction::Ingress | Direction::Both, IngressMode::Enforce) => &INGRESS,
        (Direction::Egress, _) | (Direction::Both, IngressMode::MarkOnly) => &EGRESS,
    };
    let alone: &[Signal] = if p.mark_only { &[] } else { chosen.alone };
    let ignores: &[Signal] = if p.observe { &[Signal::Marks] } else { &[] };
    Chosen { about, alone, ignores, ..chosen }
}

/// All mechanisms of a scenario, along the packet's path.
pub fn chosen(s: &Settings) -> Vec<Chosen> {
    let mut all = All(vec![transport(s, &s.transport_kind)]);
    s.each_choice(&mut all);
    let All(mut list) = all;
    list.iter_mut().for_each(|chosen| chosen.timers = timers(s, chosen.place));
    let places = list.iter_mut().filter(|chosen| chosen.place != "transport");
    places.for_each(|chosen| chosen.reordering = reordering(s, chosen.place));
    if let PauseParams::Pfc(pfc) = &s.switch.pause
        && (pfc.watchdog.is_some() || pfc.min_rate.is_some())
    {
        let own = list.iter_mut().filter(|chosen| chosen.place == "switch.pause");
        own.for_each(|chosen| chosen.spares = &[PathProperty::AcyclicWaits]);
    }
    if !s.is_written("switch.marking") {
        let unasked = list.iter_mut().filter(|chosen| chosen.place == "switch.marking");
        unasked.for_each(|chosen| chosen.alone = &[Signal::Marks]);
    }
    if let NicChoice::Own(marking) = &s.nic.marking {
        list.push(of(marking));
    }
    let own = s.traffic.iter().filter_map(|t| t.transport.as_ref());
    list.extend(own.map(|own| Chosen { timers: timers(s, "transport"), ..transport(s, own) }));
    // Limits that assume and take away the same are one mechanism, however many there are.
    let mut limits: Vec<Chosen> = Vec::new();
    for chosen in s.limits.iter().map(limit) {
        let is_same =
            |other: &Chosen| other.kind == chosen.kind && other.about.breaks == chosen.about.breaks;
        if !limits.iter().any(is_same) {
            limits.push(chosen);
        }
    }
    list.extend(limits);
    list
}

/// The properties that the tables outside of any mechanism take away.
pub fn check_hosts(s: &Settings) -> Option<String> {
    let needs = of(&s.edge.load_balancing);
    let is_cut =
        s.host.segment_offload.is_none() && needs.about.needs.contains(&PathProperty::SizeAtEdge);
    is_cut.then(|| {
        format!(
            "{} \"{}\" needs {}, which host.segment-offload \"off\" breaks: {}",
            needs.place,
            needs.kind,
            PathProperty::SizeAtEdge.name(),
            PathProperty::SizeAtEdge.consequence()
        )
    })
}

/// The features of a network that decide whether a mechanism can break anything there.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Some host has several paths to another; otherwise path choice breaks nothing.
    pub multipath: bool,
    /// There are several switches; otherwise no packet can be deflected.
    pub has_detours: bool,
    /// Two hosts have equal links, and there is a third to send to; otherwise exact hosts break
    /// nothing.
    pub has_equals: bool,
}

impl Shape {
    pub fn of(topology: &Topology) -> Shape {
        let hosts = topology.host_links();
        let mut links: Vec<(u64, u64)> =
            hosts.iter().map(|link| (link.rate.bps(), link.delay.as_ps())).collect();
        links.sort_unstable();
        let has_equals = links.len() > 2 && links.windows(2).any(|pair| pair[0] == pair[1]);
        let has_detours = topology.switches.len() > 1;
        Shape { multipath: topology.is_multipath(), has_detours, has_equals }
    }

    /// Whether a mechanism of this place can break anything.
    fn lets_break(self, place: &str) -> bool {
        match place {
            "switch.path" => self.multipath,
            "host.jitter" => self.has_equals,
            _ => true,
        }
    }
}

/// One sentence for each need of a mechanism that another one breaks, with the consequence and the
/// repair; and one for TLT beside Canary.
pub fn check(chosen: &[Chosen], shape: Shape) -> Vec<String> {
    let mut warnings: Vec<String> = fights(chosen).into_iter().collect();
    for needy in chosen {
        for need in needy.about.needs.iter().filter(|need| !needy.spares.contains(need)) {
            let is_outlasted = *need != PathProperty::TimersRun || !needy.timers.is_empty();
            if !is_outlasted || chosen.iter().any(|c| c.about.restores.contains(need)) {
                continue;
            }
            let breaks = |c: &&Chosen| c.about.breaks.contains(need) && shape.lets_break(c.place);
            for breaker in chosen.iter().filter(breaks) {
                warnings.push(format!(
                    "{} \"{}\" needs {}, which {} \"{}\" breaks: {}",
                    needy.place,
                    needy.kind,
                    need.name(),
                    breaker.place,
                    breaker.kind,
                    consequence(*need, needy, breaker)
                ));
            }
        }
    }
    warnings
}

/// Whether a half's mechanism is also in a variant of the scenario that has its counterpart: then
/// the scenario has it for that variant. Paths are the network's, which variants share.
pub(crate) fn is_whole_in(half: &Half, other: &Settings) -> bool {
    let has = |c: &Chosen| (c.place, c.kind) == (half.place, half.kind);
    let shape = Shape { multipath: true, has_detours: true, has_equals: true };
    !matches!(half.signal, Signal::Paths | Signal::Detours)
        && chosen(other).iter().any(has)
        && !halves(other, shape).contains(half)
}

/// A chosen mechanism, and the event that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub place: &'static str,
    pub kind: &'static str,
    pub reason: Reason,
}

/// The mechanisms that answer an event. One that restores order is left out where another one
/// causes the disorder.
pub(crate) fn answers(s: &Settings, shape: Shape) -> Vec<Answer> {
    let all = chosen(s);
    let disorders = all
        .iter()
        .any(|c| c.about.breaks.contains(&PathProperty::FifoPerFlow) && shape.lets_break(c.place));
    let of = |c: &Chosen| {
        let reason = c.about.answers.filter(|of| *of != Reason::Reordering || !disorders)?;
        Some(Answer { place: c.place, kind: c.kind, reason })
    };
    all.iter().filter_map(of).collect()
}

/// The halves of mechanisms in a scenario. Keys outside of any mechanism count as well: priorities
/// of traffic, losses by color, and the paths of the network.
pub(crate) fn halves(s: &Settings, shape: Shape) -> Vec<Half> {
    let runs = |c: &Chosen| {
        let has_traffic = !s.traffic.is_empty() && s.programs.is_empty();
        c.place != "transport" || !has_traffic || s.kinds().any(|kind| kind.kind() == c.kind)
    };
    let mut all = chosen(s);
    all.retain(runs);
    let answers = [s.rdma.ack_priority, s.rdma.nack_priority, s.rdma.cnp_priority];
    let has_priorities =
        || s.traffic.iter().any(|t| t.common.priority > 0) || answers.iter().any(Option::is_some);
    let loses_by_color = || s.failures.iter().any(|f| f.losable == Losable::Unimportant);
    let is_provided = |signal| match signal {
        Signal::Paths => shape.multipath,
        Signal::Detours => shape.has_detours,
        Signal::Priorities if has_priorities() => true,
        _ => all.iter().any(|c| c.provides(signal)),
    };
    let is_read = |signal| {
        signal == Signal::Colors && loses_by_color() || all.iter().any(|c| c.reads(signal))
    };
    let mut halves = Vec::new();
    for c in &all {
        for signal in Signal::ALL.into_iter().filter(|signal| !c.alone.contains(signal)) {
            let half = |reads| Half { place: c.place, kind: c.kind, signal, reads };
            if c.reads(signal) && !is_provided(signal) {
                halves.push(half(true));
            }
            if c.provides(signal) && !is_read(signal) {
                halves.push(half(false));
            }
        }
    }
    halves.dedup();
    halves
}

/// Two repairs of one loss: TLT's threshold refuses packets, and Canary deflects them.
fn fights(chosen: &[Chosen]) -> Option<String> {
    let has = |place, kind| chosen.iter().any(|c| (c.place, c.kind) == (place, kind));
    let both = has("transport.importance", "tlt")
        && has("switch.admission", "color-aware")
        && has("switch.deflection", "canary");
    both.then(|| {
        "switch.admission \"color-aware\" of tlt refuses packets while buffers have room, and \
         switch.deflection \"canary\" sends each of them around: bursts take longer than with \
         one of the two (docs/reproduce-combinations.md); leave one out, or choose \
         switch.admission.kind = \"aifo\""
            .into()
    })
}

/// The consequence of a broken need and its repair, which can depend on both mechanisms.
fn consequence(need: PathProperty, needy: &Chosen, breaker: &Chosen) -> String {
    match (need, breaker.kind) {
        (PathProperty::FifoPerFlow, _) => needy.reordering.into(),
        (PathProperty::TimersRun, "pfc") => format!(
            "{}: set switch.pause.watchdog, and raise {} above it",
            need.consequence(),
            needy.timers
        ),
        (PathProperty::TimersRun, _) => format!("{}: raise {}", need.consequence(), needy.timers),
        _ => need.consequence().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: About =
        About { summary: "", source: "", needs: &[PathProperty::FifoPerFlow], ..About::PLAIN };
    const SPRAY: About =
        About { summary: "", source: "", breaks: &[PathProperty::FifoPerFlow], ..About::PLAIN };
    const ORDER: About =
        About { summary: "", source: "", restores: &[PathProperty::FifoPerFlow], ..About::PLAIN };

    const MANY: Shape = Shape { multipath: true, has_detours: true, has_equals: true };
    const ONE: Shape = Shape { multipath: false, has_detours: false, has_equals: true };

    #[test]
    fn a_broken_need_is_named_unless_restored_or_without_effect() {
        let reordering = PathProperty::FifoPerFlow.consequence();
        let of = |place, kind, about| Chosen {
            place,
            kind,
            about,
            spares: &[],
            timers: MIN_RTO,
            reordering,
            alone: &[],
            ignores: &[],
        };
        let tcp = of("transport", "newreno", &TCP);
        let spray = of("switch.path", "spray", &SPRAY);
        let order = of("transport.ordering", "timeout", &ORDER);
        let warnings = check(&[tcp, spray], MANY);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].contains("newreno")
                && warnings[0].contains("fifo-per-flow")
                && warnings[0].contains("spray")
        );
        assert!(check(&[tcp, spray, order], MANY).is_empty());
        assert!(check(&[tcp, spray], ONE).is_empty());
        assert!(check(&[tcp], MANY).is_empty());
        let patient = Chosen { spares: &[PathProperty::FifoPerFlow], ..tcp };
        assert!(check(&[patient, spray], MANY).is_empty());
        assert_eq!(
            check(&[patient, tcp, spray], MANY).len(),
            1,
            "who spares a need spares nobody else's"
        );
    }

    #[test]
    fn a_transport_that_only_its_timer_tells_of_loss_spares_order() {
        let warnings = |threshold: &str| {
            let text = format!(
                "duration = \"1ms\"\n[topology]\nkind = \"leaf-spine\"\n[switch]\npath = {{ kind \
                 = \"spray\" }}\n[transport]\ndupack-threshold = {threshold}\n[[traffic]]\nname = \
                 \"p\"\nkind = \"permutation\"\nsize = 1000\n"
            );
            crate::Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap().warnings
        };
        assert!(warnings("3").iter().any(|w| w.contains("fifo-per-flow")));
        assert!(
            warnings("50").iter().any(|w| w.contains("fifo-per-flow")),
            "a raised one is still one"
        );
        assert_eq!(warnings("\"off\""), Vec::<String>::new());
    }

    #[test]
    fn reordering_warning_of_queue_pairs_names_their_recovery() {
        let warnings = |kind: &str, rest: &str| {
            let text = format!(
                "duration = \"1ms\"\ntopology = {{ kind = \"leaf-spine\" }}\nswitch.path.kind = \
                 \"spray\"\ntransport.kind = \"{kind}\"\n{rest}\n[[traffic]]\nname = \
                 \"p\"\nkind = \"permutation\"\nsize = 1000\n"
            );
            let plan =
                crate::Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap();
            plan.warnings
        };
        let selective = "rdma.recovery.kind = \"selective\"";
        let goes_back = warnings("dcqcn", "");
        assert_eq!(goes_back.len(), 1, "{goes_back:?}");
        assert!(goes_back[0].contains(&format!("set {selective}")), "{goes_back:?}");
        let repeats = warnings("dcqcn", selective);
        assert!(repeats.len() == 1 && repeats[0].ends_with(SELECTIVE), "{repeats:?}");
        let hpcc = warnings("hpcc", selective).join("\n");
        assert!(hpcc.contains(TELEMETRY) && hpcc.contains(SELECTIVE), "{hpcc}");
        for warning in [goes_back, repeats, vec![hpcc]].concat() {
            assert!(!warning.contains("dupack"), "{warning}");
        }
        assert!(warnings("dctcp", "")[0].contains("transport.dupack-threshold"));
        let ordered = "transport.ordering.kind = \"timeout\"";
        assert_eq!(warnings("dcqcn", ordered), Vec::<String>::new());
    }

    #[test]
    fn pause_warning_names_the_timers_key_and_needs_a_pause_that_can_outlast_it() {
        let warnings = |pause: &str, rest: &str| {
            let text = format!(
                "duration = \"9ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n[switch]\n\
                 buffer = {{ kind = \"pools\" }}\npause = {{ kind = \"pfc\"{pause} }}\n{rest}\n\
                 [[traffic]]\nname = \"p\"\nkind = \"permutation\"\nsize = 1000\n"
            );
            let plan =
                crate::Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap();
            plan.warnings.join("\n")
        };
        let watchdog = ", watchdog = \"2ms\"";
        let tcp = |rto: &str| format!("[transport]\nkind = \"dctcp\"\nmin-rto = \"{rto}\"");
        let irn = |times: &str| {
            format!(
                "[transport]\nkind = \"dcqcn\"\n[rdma]\nrecovery = {{ kind = \
                 \"selective\"{times} }}"
            )
        };
        let given = ", timeout-low = \"3ms\", timeout-high = \"4ms\"";
        let of_tcp = "set switch.pause.watchdog, and raise transport.min-rto above it";
        let of_irn = "raise rdma.recovery.timeout-low and rdma.recovery.timeout-high above it";
        assert!(warnings("", &tcp("3ms")).contains(of_tcp));
        assert!(warnings(watchdog, &tcp("1ms")).contains(of_tcp), "2 ms outlast 1 ms");
        assert!(!warnings(watchdog, &tcp("3ms")).contains("timers-run"));
        assert!(warnings("", &irn(given)).contains(of_irn), "the run bounds a pause");
        let longer = ", timeout-low = \"9ms\", timeout-high = \"1s\"";
        assert!(!warnings("", &irn(longer)).contains("timers-run"), "the run ends first");
        assert!(warnings(watchdog, &irn("")).contains(of_irn), "the network decides the timers");
        let short = ", timeout-low = \"1ms\", timeout-high = \"4ms\"";
        assert!(warnings(watchdog, &irn(short)).contains(of_irn), "the shorter one counts");
        assert!(!warnings(watchdog, &irn(given)).contains("timers-run"));
    }

    #[test]
    fn tlt_beside_canary_is_warned_of_unless_canary_admits() {
        let warnings = |admission: &str| {
            let text = format!(
                "duration = \"1ms\"\ntopology = {{ kind = \"leaf-spine\" }}\nswitch.admission.kind \
                 = \"{admission}\"\nswitch.deflection.kind = \"canary\"\n\
                 transport.importance.kind = \"tlt\"\ntransport.rank.kind = \
                 \"remaining-bytes\"\n[[traffic]]\nname = \"p\"\nkind = \"permutation\"\n"
            );
            let plan =
                crate::Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap();
            plan.warnings.join("\n")
        };
        let page = "docs/reproduce-combinations.md";
        let told = warnings("color-aware");
        assert!(told.contains(page) && told.contains("switch.admission.kind = \"aifo\""), "{told}");
        assert!(!warnings("aifo").contains(page));
    }

    /// Deflected packets wait in paused queues of other switches.
    #[test]
    fn a_pause_beside_a_deflection_is_warned_of_unless_a_watchdog_ends_it() {
        let warnings = |pause: &str, queue: &str, deflection: &str| {
            let buffer = if queue == "fifo" { "pools" } else { "per-port" };
            let text = format!(
                "duration = \"1ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = \
                 2\nhosts-per-leaf = 4\n[switch]\nbuffer = {{ kind = \"{buffer}\" }}\npause = {{ \
                 {pause} }}\nqueue = {{ kind = \"{queue}\" }}\ndeflection = {{ kind = \
                 \"{deflection}\" }}\n[transport]\ndupack-threshold = \"off\"\n[[traffic]]\nname \
                 = \"p\"\nkind = \"permutation\"\nsize = 1000\n"
            );
            let plan =
                crate::Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap();
            plan.warnings
                .iter()
                .filter(|warning| warning.contains("acyclic-waits"))
                .cloned()
                .collect::<Vec<_>>()
        };
        for (pause, queue) in [("kind = \"pfc\"", "fifo"), ("kind = \"bfc\"", "dynamic-queues")] {
            for deflection in ["dibs", "simple"] {
                let told = warnings(pause, queue, deflection);
                assert_eq!(told.len(), 1, "{pause} {deflection}: {told:?}");
                assert!(
                    told[0].contains(deflection)
                        && told[0].contains("wait for each other for ever"),
                    "{told:?}"
                );
            }
            assert_eq!(warnings(pause, queue, "none"), Vec::<String>::new());
        }
        assert_eq!(
            warnings("kind = \"pfc\", watchdog = \"200ms\"", "fifo", "dibs"),
            Vec::<String>::new()
        );
    }

    /// Where hosts are exact and equal, who waits for a full queue can be locked out of it; whom
    /// switches mark for cannot.
    #[test]
    fn exact_hosts_and_transports_without_marks_are_told() {
        let warnings = |jitter: &str, hosts: u32, transport: &str, marking: &str| {
            let text = format!(
                "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
                 {hosts}\n[host]\njitter = {jitter}\n[switch]\nmarking = {{ kind = \"{marking}\" \
                 }}\n[transport]\n{transport}\n[[traffic]]\nname = \"p\"\nkind = \
                 \"permutation\"\nsize = 1000\n"
            );
            let plan =
                crate::Scenario::parse("test", &text).unwrap().plan(None, &[], None).unwrap();
            let mut warnings = plan.warnings;
            warnings.retain(|warning| !warning.contains(", which nothing "));
            warnings
        };
        for transport in ["kind = \"newreno\"", "kind = \"cubic\""] {
            for off in ["\"off\"", "{ kind = \"none\" }"] {
                let told = warnings(off, 3, transport, "ecn");
                assert_eq!(told.len(), 1, "{transport}: {told:?}");
                assert!(
                    told[0].contains("lock") && told[0].contains("turn host.jitter on"),
                    "{told:?}"
                );
            }
            assert_eq!(
                warnings("{ kind = \"uniform\" }", 3, transport, "ecn"),
                Vec::<String>::new()
            );
            assert_eq!(
                warnings("\"off\"", 2, transport, "ecn"),
                Vec::<String>::new(),
                "one sender has no equal"
            );
        }
        for transport in ["kind = \"dctcp\"", "kind = \"cubic\"\ncubic-ecn = true"] {
            assert_eq!(warnings("\"off\"", 3, transport, "ecn"), Vec::<String>::new());
            assert_eq!(warnings("\"off\"", 3, transport, "none").len(), 1, "{transport}");
        }
        assert_eq!(warnings("\"off\"", 3, "kind = \"swift\"", "none"), Vec::<String>::new());
    }
}
