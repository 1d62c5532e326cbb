//! The decision in Rust and in C is one: natively on a million random packets, and in the kernel's
//! own execution on more than ten thousand; then the decision table through the programs that are
//! attached in earnest.
//!
//! Tests that need the kernel are skipped, with a message, where it may not load programs.
#![allow(unsafe_code)] // Calls a C function, and looks at values of C as bytes.

use libbpf_rs::btf::types::{self, Linkage};
use libbpf_rs::btf::{Btf, ReferencesType};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use millpond_core::limit::{
    Arrival, Ask, Charge, Form, LimitParams, Loss, Reaction, Settings, Share, State, Verdict,
    adjust, behind, charge, congestion, decide, flags, pause, refund, space, window, wire_bytes,
};
use millpond_core::random::Stream;
use millpond_core::{Bytes, Rate, Time};
use millpond_linux::limit::layout::{self, Head, LAYOUT, LOOPBACK, Scope};
use millpond_worlds::needs;

const LIMIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/limit.bpf.o"));
const HEED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heed.bpf.o"));
const TRIAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trial.bpf.o"));
/// As in trial.h.
const BATCH: usize = 256;

/// struct trial_case.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Case {
    settings: Settings,
    state: State,
    ask: Ask,
    gap: u32,
    now: u64,
    draw: u32,
    segments: u32,
    headers: u32,
    framing: u32,
    share: Share,
    loss: Loss,
    arrival: Arrival,
    charge: Charge,
    charged: State,
    refunded: State,
    adjusted: Share,
    congestion: i64,
    lost: Loss,
    verdict: u32,
    wire: u32,
    spaced: u32,
    window: u32,
    behind: i64,
    pause: u32,
    spare: u32,
}

#[link(name = "millpond_native", kind = "static")]
unsafe extern "C" {
    fn millpond_trial_run(cases: *mut Case, count: u64);
}

impl Case {
    fn bytes(&self) -> &[u8] {
        // SAFETY: it consists of integers without gaps, and is only read.
        unsafe { std::slice::from_raw_parts((self as *const Case).cast(), size_of::<Case>()) }
    }
    fn from_bytes(bytes: &[u8]) -> Case {
        assert_eq!(bytes.len(), size_of::<Case>());
        // SAFETY: the length is right, and any bits are such integers.
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
    }
    /// The results of the Rust core.
    fn run(mut self) -> Case {
        let mut state = self.state;
        self.wire = wire_bytes(self.ask.bytes, self.segments, self.headers, self.framing);
        self.charge = charge(&mut state, &self.settings, self.now, self.ask.charged);
        self.charged = state;
        self.adjusted = self.share;
        adjust(&mut self.adjusted, &self.settings, self.now, self.charge.behind, self.charge.cost);
        refund(&mut state, &self.settings, &self.charge);
        self.refunded = state;
        self.congestion = congestion(&self.settings, self.charge.behind);
        self.verdict = decide(&self.settings, self.charge.behind, &self.ask, self.draw).0;
        self.behind = behind(&self.charged, &self.settings, self.arrival.now);
        self.window =
            window(&self.settings, self.charge.behind, self.arrival.rtt, self.arrival.data);
        self.pause = pause(&self.settings, self.charge.behind);
        self.lost = self.loss;
        let verdict = Verdict(self.verdict);
        self.spaced = space(
            &mut self.lost,
            &self.settings,
            self.charge.behind,
            &self.ask,
            &self.arrival,
            verdict,
        )
        .0;
        self
    }
}

fn settings(r: &mut Stream) -> Settings {
    let pick = |r: &mut Stream, n: u64| r.bits() % n;
    let some =
        |r: &mut Stream, most: u64| r.bits().is_multiple_of(3).then(|| Bytes(r.bits() % most));
    let params = LimitParams {
        rate: Rate(8_000 + (r.bits() >> (24 + pick(r, 40))) % 1_000_000_000_000),
        burst: some(r, 1 << 20),
        mark: some(r, 1 << 18),
        drop: some(r, 1 << 22),
        reserve: Bytes(pick(r, 50_000)),
        form: [Form::Credit, Form::LockFree, Form::Edt][pick(r, 3) as usize],
        reaction: [Reaction::Linear, Reaction::Step, Reaction::RttAware][pick(r, 3) as usize],
        reference_rtt: Time::from_us(pick(r, 1000)),
        cwr: pick(r, 4) != 0,
        bypass: pick(r, 5) as f64,
        mark_only: pick(r, 5) == 0,
        observe: pick(r, 9) == 0,
        ..LimitParams::default()
    };
    let spaced = if pick(r, 2) == 0 { flags::SPACED } else { 0 };
    let held = if pick(r, 2) == 0 { flags::HELD } else { 0 };
    let waits = if pick(r, 2) == 0 { flags::WAITS } else { 0 };
    let settings = params.settings();
    Settings { flags: settings.flags | spaced | held | waits, ..settings }
}

/// Streams of packets through random queues, with clocks that stand still, leap and go back.
struct Cases {
    random: Stream,
    case: Case,
    left: u32,
}

impl Cases {
    fn new(seed: u64) -> Cases {
        Cases { random: Stream::new(seed, "twin"), case: Case::default(), left: 0 }
    }
    /// The next case, with what the core gives for it.
    fn next(&mut self) -> (Case, Case) {
        let r = &mut self.random;
        if self.left == 0 {
            self.left = 64;
            self.case = Case {
                settings: settings(r),
                now: r.bits() >> (2 + r.bits() % 40),
                ..Case::default()
            };
        }
        self.left -= 1;
        let step = r.bits() >> (20 + r.bits() % 44);
        let now = self.case.now;
        self.case.now = if r.bits().is_multiple_of(16) {
            now.saturating_sub(step)
        } else {
            (now + step).min(1 << 62)
        };
        let bytes =
            if r.bits().is_multiple_of(3) { r.bits() % 200 } else { r.bits() % 65_536 } as u32;
        self.case.ask = Ask {
            bytes,
            charged: bytes + (r.bits() % 4_000) as u32,
            in_flight: if r.bits().is_multiple_of(4) { u32::MAX } else { (r.bits() % 4) as u32 },
            rtt: (r.bits() % 2_000) as u32,
            tcp: (r.bits() % 2) as u32,
            ecn: (r.bits() % 4) as u32,
            share: if r.bits().is_multiple_of(2) { 0 } else { (r.bits() % 65_536) as u32 },
        };
        self.case.draw = r.bits() as u32;
        self.case.segments = (r.bits() % 60) as u32;
        self.case.headers = (r.bits() % 100) as u32;
        self.case.framing = (r.bits() % 50) as u32;
        self.case.arrival = Arrival {
            now: self.case.now + r.bits() % 2_000_000_000,
            end: ((r.bits() % 8_000) as u32).wrapping_sub(4_000),
            expected: 0,
            rtt: [0, 20, 999, 1_000, 10_000, u32::MAX][(r.bits() % 6) as usize],
            data: if r.bits().is_multiple_of(8) { 0 } else { 1_448 },
            last: r.bits().is_multiple_of(8) as u32,
            held: (r.bits() % 3) as u32,
        };
        let given = self.case;
        let expected = given.run();
        let dropped = expected.verdict & 1 == 1;
        self.case.state = if dropped { expected.refunded } else { expected.charged };
        self.case.share = expected.adjusted;
        self.case.loss = expected.lost;
        (given, expected)
    }
}

#[test]
fn a_million_packets_natively() {
    let mut cases = Cases::new(1);
    let (mut verdicts, mut seen, mut spared, mut held) =
        (std::collections::BTreeSet::new(), 0, [0; 2], 0);
    while seen < 1_048_576 {
        let batch: Vec<(Case, Case)> = (0..4096).map(|_| cases.next()).collect();
        let mut given: Vec<Case> = batch.iter().map(|(given, _)| *given).collect();
        // SAFETY: as many cases as said, of the layout that trial.h declares.
        unsafe { millpond_trial_run(given.as_mut_ptr(), given.len() as u64) };
        for (ours, (input, expected)) in given.iter().zip(&batch) {
            assert_eq!(ours, expected, "{input:?}");
            verdicts.insert(expected.verdict);
            if input.settings.flags & flags::SPACED != 0 && expected.verdict & Verdict::DROP != 0 {
                held += (expected.window != u32::MAX) as usize;
                spared[(expected.spaced != expected.verdict) as usize] += 1;
            }
        }
        seen += batch.len();
    }
    // Pass, marks, reductions, drops with and without, bypasses, alone and together.
    assert!(verdicts.len() >= 8, "{verdicts:?}");
    assert!(spared.iter().all(|&packets| packets > 500), "dropped and spared: {spared:?}");
    assert!(held > 1_000, "{held}");
}

/// Loads an object, where that is allowed.
fn load(object: &[u8], trial: u32) -> Result<Object, String> {
    libbpf_rs::set_print(None);
    let mut open = ObjectBuilder::default().open_memory(object).expect("an object of ours");
    for mut map in open.maps_mut().filter(|m| m.name().to_string_lossy().ends_with(".rodata")) {
        map.set_initial_value(&trial.to_ne_bytes()).unwrap();
    }
    open.load().map_err(|error| format!("eBPF programs (CAP_BPF, CAP_NET_ADMIN): {error}"))
}

#[test]
fn twelve_thousand_packets_in_the_kernel() {
    let object = needs!(load(TRIAL, 0));
    let map = object.maps().find(|m| m.name() == "cases").unwrap();
    let program = object.progs_mut().find(|p| p.name() == "run_cases").unwrap();
    let mut cases = Cases::new(2);
    for _ in 0..48 {
        let batch: Vec<(Case, Case)> = (0..BATCH).map(|_| cases.next()).collect();
        for (i, (given, _)) in batch.iter().enumerate() {
            map.update(&(i as u32).to_ne_bytes(), given.bytes(), MapFlags::ANY).unwrap();
        }
        let ran = program.test_run(ProgramInput::default()).unwrap();
        assert_eq!(ran.return_value, 0);
        for (i, (given, expected)) in batch.iter().enumerate() {
            let bytes = map.lookup(&(i as u32).to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
            assert_eq!(Case::from_bytes(&bytes), *expected, "{given:?}");
        }
    }
}

/// Our programs over queues that are set at will.
struct Bench {
    object: Object,
}

/// A packet: an Ethernet frame, as BPF_PROG_TEST_RUN wants it.
fn frame(v6: bool, protocol: u8, ecn: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend(if v6 { [0x86, 0xdd] } else { [8, 0] });
    let mut ip = vec![0; len];
    if v6 {
        (ip[0], ip[1]) = (0x60, ecn << 4);
        ip[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
        // Hop-by-hop options of 16 bytes, then destination options of 8, then the transport.
        (ip[6], ip[40], ip[41], ip[56], ip[57]) = (0, 60, 1, protocol, 0);
        ip[64 + 12] = 0x50;
    } else {
        (ip[0], ip[1], ip[9]) = (0x45, ecn, protocol);
        ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        ip[20 + 12] = 0x50;
        let sum: u32 = (0..10).map(|i| u32::from(ip[2 * i]) << 8 | u32::from(ip[2 * i + 1])).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    frame.extend(ip);
    frame
}

impl Bench {
    fn new(scopes: &[LimitParams]) -> Result<Bench, String> {
        let object = load(LIMIT, scopes.len() as u32)?;
        let bench = Bench { object };
        let head = Head { layout: LAYOUT, bank: 0, flags: [LOOPBACK, 0] };
        bench.put("head", 0, &head.to_bytes());
        for (i, params) in scopes.iter().enumerate() {
            let mut both = Scope::new(params).to_bytes();
            both.extend(both.clone());
            bench.put("scopes", i as u32, &both);
        }
        Ok(bench)
    }
    fn put(&self, map: &str, key: u32, value: &[u8]) {
        let map = self.object.maps().find(|m| m.name() == map).unwrap();
        map.update(&key.to_ne_bytes(), value, MapFlags::ANY).unwrap();
    }
    /// Brings a queue to `behind` bytes, as of now.
    fn behind(&self, scope: u32, behind: i64) {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64;
        let mut queue = vec![0u8; layout::QUEUE_BYTES];
        queue[8..16].copy_from_slice(&now.to_ne_bytes());
        queue[16..24].copy_from_slice(&(-behind).to_ne_bytes());
        self.put("queues", scope, &queue);
    }
    fn credit(&self, scope: u32) -> i64 {
        let map = self.object.maps().find(|m| m.name() == "queues").unwrap();
        layout::queue_state(&map.lookup(&scope.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap())
            .credit
    }
    /// Reports of the first scope.
    fn told(&self) -> u64 {
        self.seen().notified
    }
    /// The counts of the first scope.
    fn seen(&self) -> layout::Statistics {
        let map = self.object.maps().find(|m| m.name() == "counts").unwrap();
        let mut sum = layout::Statistics::default();
        map.lookup_percpu(&[0; 4], MapFlags::ANY)
            .unwrap()
            .unwrap()
            .iter()
            .for_each(|bytes| sum.add(bytes));
        sum
    }
    /// The program's return value, and the ECN field that the packet leaves with.
    fn run(&self, direction: &str, frame: &[u8]) -> (u32, u8) {
        let name = format!("limit_{direction}");
        let program = self.object.progs_mut().find(|p| p.name() == name.as_str()).unwrap();
        let mut out = vec![0u8; frame.len() + 64];
        let input = ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..ProgramInput::default()
        };
        let ran = program.test_run(input).unwrap();
        let data = ran.data.unwrap();
        // The output begins with the IP header, or with the frame's.
        let ip = if data.len() == frame.len() { &data[14..] } else { data };
        let ecn = if ip[0] >> 4 == 6 { ip[1] >> 4 & 3 } else { ip[1] & 3 };
        (ran.return_value, ecn)
    }
}

/// So slow that no credit comes in between, with the thresholds of the slides.
fn slow() -> LimitParams {
    LimitParams {
        rate: Rate(8_000),
        burst: Some(Bytes(150_000)),
        mark: Some(Bytes(180_000)),
        drop: Some(Bytes(900_000)),
        length: millpond_core::limit::Length::Ip,
        ..LimitParams::default()
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;

#[test]
fn the_decision_table_in_the_kernel() {
    let bench = needs!(Bench::new(&[slow()]));
    let table = |behind: i64, packet: &[u8]| {
        bench.behind(0, behind);
        bench.run("egress", packet)
    };
    for v6 in [false, true] {
        let packet = |protocol, ecn| frame(v6, protocol, ecn, 1000);
        assert_eq!(table(0, &packet(TCP, 0)).0, 1, "not far behind: passes");
        assert_eq!(table(178_000, &packet(TCP, 2)), (1, 2), "below the mark threshold");
        assert_eq!(table(200_000, &packet(TCP, 2)), (1, 3), "ECN-capable: CE, and passes");
        assert_eq!(table(200_000, &packet(TCP, 1)), (1, 3));
        assert_eq!(table(876_500, &packet(TCP, 0)).0, 3, "at the end of the region: always CWR");
        assert_eq!(table(880_000, &packet(TCP, 0)).0, 2, "dropped, with CWR");
        assert_eq!(table(880_000, &packet(TCP, 2)).0, 0, "dropped, and ECN says nothing more");
        assert_eq!(table(1, &packet(UDP, 0)).0, 2, "UDP is dropped silently: no EPERM");
        assert_eq!(table(200_000, &packet(UDP, 2)), (1, 3), "ECN-capable UDP is marked");
        assert_eq!(
            table(880_000, &frame(v6, TCP, 0, 100)).0,
            3,
            "the reserve is for small packets"
        );
        assert_eq!(table(905_000, &frame(v6, TCP, 0, 100)).0, 2, "and ends");
    }
    // A drop leaves the queue as it was, but for what 1 byte a millisecond brings.
    bench.behind(0, 890_000);
    bench.run("egress", &frame(false, TCP, 0, 1000));
    assert!((-890_000..-889_000).contains(&bench.credit(0)), "{}", bench.credit(0));
    bench.behind(0, 0);
    bench.run("egress", &frame(false, TCP, 0, 1000));
    assert!((-1000..-500).contains(&bench.credit(0)), "{}", bench.credit(0));
}

#[test]
fn ingress_returns_what_the_kernel_takes() {
    let bench = needs!(Bench::new(&[slow()]));
    for (behind, protocol, ecn, expected) in [
        (0, TCP, 0, (1, 0)),
        (200_000, TCP, 2, (1, 3)),
        (870_000, TCP, 0, (1, 0)),
        (880_000, TCP, 0, (0, 0)),
        (1000, UDP, 0, (0, 0)),
    ] {
        bench.behind(0, behind);
        assert_eq!(
            bench.run("ingress", &frame(false, protocol, ecn, 1000)),
            expected,
            "{behind} {protocol} {ecn}"
        );
    }
}

/// Where a hook's return value reaches no sender, its flow is reported: once a millisecond at most,
/// and only if that is asked for.
#[test]
fn flows_that_cannot_be_marked_are_reported() {
    let bench = needs!(Bench::new(&[slow()]));
    let reports = || {
        let (all, map) = (
            std::cell::RefCell::new(Vec::new()),
            bench.object.maps().find(|m| m.name() == "reports").unwrap(),
        );
        let mut ring = libbpf_rs::RingBufferBuilder::new();
        ring.add(&map, |bytes| {
            all.borrow_mut().push(layout::Report::from_bytes(bytes).unwrap());
            0
        })
        .unwrap();
        ring.build().unwrap().consume().unwrap();
        all.into_inner()
    };
    // So far behind that a sender is always notified, and not yet so far that its packet is
    // dropped.
    let packet = |protocol, ecn, port: u16, v6| {
        bench.behind(0, 876_500);
        let mut frame = frame(v6, protocol, ecn, 1000);
        let ip = 14;
        let transport = if v6 { ip + 64 } else { ip + 20 };
        let (from, to) = if v6 { (ip + 8 + 15, ip + 24 + 15) } else { (ip + 12 + 3, ip + 16 + 3) };
        (frame[from], frame[to]) = (1, 2);
        frame[transport..transport + 4]
            .copy_from_slice(&[port.to_be_bytes(), 80u16.to_be_bytes()].concat());
        // The header's checksum is not looked at here.
        bench.run("ingress", &frame)
    };
    assert_eq!(packet(TCP, 0, 7, false).0, 1);
    assert_eq!(reports(), [], "nobody asked for it");
    bench.put(
        "head",
        0,
        &Head { layout: LAYOUT, bank: 0, flags: [LOOPBACK | layout::NOTIFY, 0] }.to_bytes(),
    );
    assert_eq!(packet(TCP, 2, 7, false), (1, 3), "this one is marked");
    packet(UDP, 0, 7, false);
    assert_eq!(reports(), [], "neither of them can be helped");
    for _ in 0..2 {
        packet(TCP, 0, 7, false);
        packet(TCP, 0, 8, true);
    }
    let seen = reports();
    let flow = |from: &str, to: &str| layout::Flow {
        source: from.parse().unwrap(),
        destination: to.parse().unwrap(),
    };
    assert_eq!(seen[0].flow, flow("0.0.0.1:7", "0.0.0.2:80"));
    assert_eq!(seen[1].flow, flow("[::1]:8", "[::2]:80"));
    std::thread::sleep(std::time::Duration::from_millis(2));
    packet(TCP, 0, 7, false);
    assert_eq!(reports().last().unwrap().flow, seen[0].flow, "again, after a while");
    bench.behind(0, 880_000);
    let before = bench.told();
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(bench.run("ingress", &frame(false, TCP, 0, 1000)).0, 0, "dropped, and told as well");
    assert_eq!(bench.told(), before + 1);
    let bench = Bench::new(&[LimitParams { observe: true, ..slow() }]).unwrap();
    bench.put(
        "head",
        0,
        &Head { layout: LAYOUT, bank: 0, flags: [LOOPBACK | layout::NOTIFY, 0] }.to_bytes(),
    );
    bench.behind(0, 880_000);
    bench.run("ingress", &frame(false, TCP, 0, 1000));
    assert_eq!(bench.told(), 0, "what only observes tells nobody");
}

/// A sender is notified by what egress returns, or by a report; at ingress without notifications by
/// nothing.
#[test]
fn what_tells_nobody_is_not_counted_as_telling() {
    for observe in [false, true] {
        let bench = needs!(Bench::new(&[LimitParams { observe, ..slow() }]));
        let run = |direction: &str| {
            bench.behind(0, 876_500);
            bench.run(direction, &frame(false, TCP, 0, 1000));
            bench.seen().counts.reduced
        };
        assert_eq!(run("ingress"), 0, "observe = {observe}: nobody was told");
        assert_eq!(run("egress"), 1, "observe = {observe}: the sender is on this host");
        bench.put(
            "head",
            0,
            &Head { layout: LAYOUT, bank: 0, flags: [LOOPBACK | layout::NOTIFY, 0] }.to_bytes(),
        );
        let told = u64::from(!observe);
        assert_eq!(run("ingress"), 1 + told, "observe = {observe}: its host is");
        assert_eq!(run("ingress"), 1 + told, "observe = {observe}: but not again so soon");
    }
}

/// Floods of reports that nobody reads cost packets nothing, and are not counted.
#[test]
fn reports_that_nobody_reads_are_left_out() {
    let bench = needs!(Bench::new(&[slow()]));
    bench.put(
        "head",
        0,
        &Head { layout: LAYOUT, bank: 0, flags: [LOOPBACK | layout::NOTIFY, 0] }.to_bytes(),
    );
    for port in 0..3000u16 {
        bench.behind(0, 876_500);
        let mut frame = frame(false, TCP, 0, 1000);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        assert_eq!(bench.run("ingress", &frame).0, 1);
    }
    // 64 KB, of 48 bytes and a header of 8.
    assert!((1000..1200).contains(&bench.told()), "{}", bench.told());
}

/// An entry reduces one window, once; an old one, none.
#[test]
fn a_flow_is_slowed_down_once() {
    let object = needs!(load(HEED, 0));
    let map = object.maps().find(|m| m.name() == "reported").unwrap();
    let program = object.progs_mut().find(|p| p.name() == "limit_heed").unwrap();
    let send = |frame: &[u8]| {
        let input = ProgramInput { data_in: Some(frame), ..ProgramInput::default() };
        program.test_run(input).unwrap().return_value
    };
    for v6 in [false, true] {
        let frame = frame(v6, TCP, 0, 1000);
        let nobody = if v6 { "[::]:0" } else { "0.0.0.0:0" }.parse().unwrap();
        let key = layout::Flow { source: nobody, destination: nobody }.to_bytes();
        let write = |until: u64| map.update(&key, &until.to_ne_bytes(), MapFlags::ANY).unwrap();
        assert_eq!(send(&frame), 1, "nothing is written down");
        write(u64::MAX);
        assert_eq!((send(&frame), send(&frame)), (3, 1));
        write(1);
        assert_eq!(send(&frame), 1, "too old");
        assert!(map.lookup(&key, MapFlags::ANY).unwrap().is_none(), "and gone");
        write(u64::MAX);
        let mut other = frame.clone();
        other[14 + if v6 { 64 } else { 20 }] = 1;
        assert_eq!(send(&other), 1, "another port");
        map.delete(&key).unwrap();
    }
    assert_eq!(send(&crate::frame(false, UDP, 0, 1000)), 1);
    let heeded = object.maps().find(|m| m.name() == "heeded").unwrap();
    let counts = heeded.lookup_percpu(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    let sum: u64 = counts.iter().map(|b| u64::from_ne_bytes(b[..8].try_into().unwrap())).sum();
    assert_eq!(sum, 2);
}

#[test]
fn observing_and_marking_only_never_drop() {
    let bench = needs!(Bench::new(&[LimitParams { observe: true, ..slow() }]));
    bench.behind(0, 880_000);
    assert_eq!(bench.run("egress", &frame(false, TCP, 2, 1000)), (1, 2));
    let bench = Bench::new(&[LimitParams { mark_only: true, ..slow() }]).unwrap();
    bench.behind(0, 2_000_000);
    assert_eq!(bench.run("egress", &frame(false, TCP, 2, 1000)), (1, 3));
    assert_eq!(bench.run("ingress", &frame(false, UDP, 0, 1000)), (1, 0));
}

/// Red, green and blue: the most congested of several decides, and a drop refunds all.
#[test]
fn the_most_congested_scope_decides_in_the_kernel() {
    let wide = LimitParams { drop: Some(Bytes(3_600_000)), mark: Some(Bytes(720_000)), ..slow() };
    let bench = needs!(Bench::new(&[slow(), wide, slow()]));
    let all = |behind: [i64; 3]| {
        (0..3).for_each(|i| bench.behind(i as u32, behind[i]));
        bench.run("egress", &frame(false, TCP, 2, 1000))
    };
    assert_eq!(all([0, 500_000, 0]), (1, 2), "more bytes behind, but within its mark");
    assert_eq!(all([0, 800_000, 150_000]), (1, 3), "the wide one is the most congested, and marks");
    assert_eq!(all([0, 800_000, 890_000]).0, 0, "the last is, and drops");
    assert!(bench.credit(0) > -500 && bench.credit(1) > -800_500, "all are refunded");
}

/// A limit that is tried out beside one that holds: that one decides, and each is refunded what it
/// is due, once.
#[test]
fn an_observing_scope_leaves_the_enforced_one_alone_in_the_kernel() {
    let bench = needs!(Bench::new(&[LimitParams { observe: true, ..slow() }, slow()]));
    let both = |observed: i64, enforced: i64, ecn: u8| {
        bench.behind(0, observed);
        bench.behind(1, enforced);
        bench.run("egress", &frame(false, TCP, ecn, 1000))
    };
    assert_eq!(both(890_000, 200_000, 2), (1, 3), "the enforced one marks");
    assert!(
        (-890_000..-889_500).contains(&bench.credit(0)),
        "would have dropped it: {}",
        bench.credit(0)
    );
    assert!(
        (-201_000..-200_500).contains(&bench.credit(1)),
        "has let it pass: {}",
        bench.credit(1)
    );
    for observed in [890_000, 0] {
        assert_eq!(both(observed, 880_000, 0).0, 2, "the enforced one drops");
        let credits = [bench.credit(0) + observed, bench.credit(1) + 880_000];
        assert!(credits.iter().all(|more| (0..500).contains(more)), "{credits:?}");
    }
}

/// The kernel's `__sk_buff`, as far as a test gives and takes it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Context {
    words: [u32; 38],
    tstamp: u64,
    rest: [u32; 8],
}

#[test]
fn a_departure_time_is_written_and_the_senders_own_stays_where_it_is_later() {
    let params = LimitParams { rate: Rate(1_000_000), drop: Some(Bytes(1 << 20)), ..slow() };
    let bench = needs!(Bench::new(&[params.departing()]));
    let program = bench.object.progs_mut().find(|p| p.name() == "limit_egress").unwrap();
    let frame = frame(false, UDP, 0, 1000);
    let leaves = |own: u64| {
        let given = Context { words: [0; 38], tstamp: own, rest: [0; 8] };
        // SAFETY: it consists of integers without gaps, and is only read.
        let given = unsafe {
            std::slice::from_raw_parts((&raw const given).cast::<u8>(), size_of::<Context>())
        };
        let mut given = given.to_vec();
        let mut out = vec![0; given.len()];
        let input = ProgramInput {
            data_in: Some(&frame),
            context_in: Some(&mut given),
            context_out: Some(&mut out),
            ..ProgramInput::default()
        };
        assert_eq!(program.test_run(input).unwrap().return_value, 1);
        u64::from_ne_bytes(out[152..160].try_into().unwrap())
    };
    // The burst is 150 packets; each further one departs 8 ms later than the one before.
    (0..160).for_each(|_| assert!(leaves(0) > 0));
    let (first, second) = (leaves(0), leaves(0));
    assert!((7_900_000..8_200_000).contains(&(second - first)), "{first} {second}");
    let own = second + 1_000_000_000_000;
    assert_eq!(leaves(own), own);
}

/// A kernel without BTF knows no context in a global function.
#[test]
fn no_global_function_takes_the_context() {
    let btf = Btf::from_raw("limit", LIMIT).unwrap().unwrap();
    let takes_context = |of: &types::Func| {
        let proto = types::FuncProto::try_from(of.referenced_type()).unwrap();
        proto.iter().any(|parameter| {
            let pointer = btf.type_by_id::<types::Ptr>(parameter.ty);
            let to = pointer.map(|pointer| pointer.referenced_type().skip_mods_and_typedefs());
            to.is_some_and(|to| to.name().is_some_and(|name| name == "__sk_buff"))
        })
    };
    let functions = || btf.type_by_kind::<types::Func>();
    let of = |linkage: Linkage| {
        let mut names: Vec<&str> = functions()
            .filter(|function| function.linkage() == linkage && takes_context(function))
            .map(|function| function.name().unwrap().to_str().unwrap())
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(of(Linkage::Global), ["limit_egress", "limit_ingress"], "programs alone");
    assert_eq!(of(Linkage::Static), ["largest_of", "report", "space_losses"]);
}

/// A packet that cannot be parsed passes.
#[test]
fn what_cannot_be_parsed_passes() {
    let bench = needs!(Bench::new(&[slow()]));
    let mut packet = frame(true, 0, 0, 100);
    packet[14 + 6] = 43; // Extension headers without end.
    packet[14 + 40..].fill(43);
    bench.behind(0, 0);
    assert_eq!(bench.run("egress", &packet).0, 1);
}
