//! A lab's network under real kernel TCP.

use millpond_core::Time;
use millpond_core::counters::DropReason;
use millpond_lab::load::{self, Counts, Place, Settings, Sink};
use millpond_lab::{Counted, Error, Lab, Role, prepare};
use millpond_results::{ConnectionRecord, FlowRecord, QueryRecord};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_worlds::needs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

fn plan(text: &str) -> Plan {
    planned(text, &[])
}

fn planned(text: &str, set: &[(&str, &str)]) -> Plan {
    let set: Vec<_> = set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Scenario::parse("lab.toml", text).unwrap().plan(None, &set, None).unwrap()
}

/// One lab at a time: several would be late for each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the records of flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Sink for Flows {
    fn flow(&mut self, record: FlowRecord) -> bool {
        self.0.push(record);
        true
    }
    fn query(&mut self, _: QueryRecord) -> bool {
        true
    }
    fn rtt(&mut self, _: Time) -> bool {
        true
    }
    fn connection(&mut self, _: ConnectionRecord) -> bool {
        true
    }
}

/// Runs a scenario with these changes.
fn run(text: &str, set: &[(&str, &str)]) -> Result<(Counts, Counted), Error> {
    run_into(text, set, &mut Flows::default())
}

/// The same, with the records of flows.
fn run_into(
    text: &str,
    set: &[(&str, &str)],
    flows: &mut Flows,
) -> Result<(Counts, Counted), Error> {
    let plan = planned(text, set);
    let _alone = alone();
    let mut lab = Lab::up(&plan)?;
    let place = |host: u32| Place {
        namespace: lab.namespaces()[host as usize].name().to_string(),
        address: lab.address(host),
    };
    let places: Vec<Place> = (0..plan.topology.hosts).map(place).collect();
    let (began, congestion, cgroups) = (lab.began(), lab.congestion().to_string(), lab.cgroups());
    let (of, places, congestion, port) = (&plan, &places, congestion.as_str(), load::PORT);
    let settings = Settings { plan: of, places, congestion, began, port, cgroups };
    let counts = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            prepare(Role::Load);
            load::run(&settings, &AtomicBool::new(false), flows).unwrap()
        });
        load.join().unwrap()
    });
    let counted = lab.stop();
    let dropped: u64 = counted.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!(counted.entered, counted.delivered + dropped + counted.held, "{counted:?}");
    Ok((counts, counted))
}

/// Sends so many bytes from one host to another; how long that took.
fn transfer(lab: &Lab, from: u32, to: u32, bytes: usize) -> f64 {
    let address = SocketAddr::from((lab.address(to), 7000));
    let names = lab.namespaces();
    let listener = names[to as usize].run(|| TcpListener::bind(address)).unwrap().unwrap();
    let sender = names[from as usize].clone();
    std::thread::scope(|scope| {
        let began = Instant::now();
        scope.spawn(move || {
            // It measures the lab, whatever else the machine does.
            prepare(Role::Load);
            let mut socket = sender.run(|| TcpStream::connect(address)).unwrap().unwrap();
            rustix::net::sockopt::set_tcp_congestion(&socket, "cubic").unwrap();
            socket.write_all(&vec![7; bytes]).unwrap();
        });
        prepare(Role::Load);
        let (mut socket, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        socket.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), bytes);
        assert!(all.iter().all(|byte| *byte == 7));
        began.elapsed().as_secs_f64()
    })
}

#[test]
fn a_connection_fills_the_bottleneck_of_a_dumbbell() {
    let plan = plan(
        "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\nhosts-per-side = 2\n\
         host-link = { rate = \"200Mbps\", delay = \"100us\" }\n\
         bottleneck = { rate = \"100Mbps\", delay = \"100us\" }\n[transport]\nkind = \"cubic\"\n\
         [[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"",
    );
    let _alone = alone();
    let mut lab = needs!(Lab::up(&plan));
    let bytes = 10_000_000;
    let seconds = transfer(&lab, 0, 2, bytes);
    let mbps = bytes as f64 * 8e-6 / seconds;
    let counted = lab.stop();
    // 1448 of 1500 bytes are payload.
    assert!((88.0..96.6).contains(&mbps), "{mbps} {counted:?}");
    let dropped: u64 = counted.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!(counted.entered, counted.delivered + dropped + counted.held);
    assert!(dropped > 0 && counted.refused == 0, "{counted:?}");
}

/// Bursts that overflow a port, with the kernel's default timeout.
const BURSTS: &str = "duration = \"20s\"\nuntil = \"flows-complete\"\n\
    [topology]\nkind = \"single-switch\"\nhosts = 9\n\
    host-link = { rate = \"200Mbps\", delay = \"50us\" }\n\
    [switch]\nbuffer = { kind = \"per-port\", size = \"512KB\" }\n\
    [transport]\nkind = \"cubic\"\nmin-rto = \"200ms\"\ninitial-rto = \"1s\"\n\
    [[traffic]]\nkind = \"incast\"\ndegree = 8\nflows-per-server = 16\nresponse = \"8KB\"\n\
    period = \"500ms\"\ncount = 3\n";

#[test]
fn tlt_spares_the_kernels_tcp_its_timeouts() {
    let color = ("switch.admission", "{ kind = \"color-aware\", threshold = \"200KB\" }");
    let (without, dropped) = needs!(run(BURSTS, &[]));
    let (with, marked) = run(BURSTS, &[("transport.importance.kind", "tlt"), color]).unwrap();
    assert_eq!((without.completed, with.completed), (384, 384));
    // A busy machine may stall a host for longer than a timeout.
    assert!(
        without.timeouts >= 20 && with.timeouts <= without.timeouts / 10,
        "{} {}",
        without.timeouts,
        with.timeouts
    );
    let forced = |counted: &Counted| counted.mechanisms.get("tlt", "forced_packets");
    assert!(forced(&marked) > 100 && !dropped.mechanisms.has("tlt"), "{marked:?}");
    assert_eq!(marked.mechanisms.get("tlt", "untracked_flows"), 0);
}

/// Bulk transfers to one host of a switch whose other way leads over a second one.
const DETOUR: &str = "duration = \"20s\"\nuntil = \"flows-complete\"\n\
    [topology]\nkind = \"file\"\n[topology.graph]\nhosts = 4\n\
    switches = [{ name = \"s1\", tier = 0 }, { name = \"s2\", tier = 0 }]\nlinks = [\n\
    { a = \"host0\", b = \"s1\", rate = \"200Mbps\", delay = \"20us\" },\n\
    { a = \"host1\", b = \"s1\", rate = \"200Mbps\", delay = \"20us\" },\n\
    { a = \"host2\", b = \"s1\", rate = \"200Mbps\", delay = \"20us\" },\n\
    { a = \"host3\", b = \"s2\", rate = \"200Mbps\", delay = \"20us\" },\n\
    { a = \"s1\", b = \"s2\", rate = \"200Mbps\", delay = \"500us\" }]\n\
    [switch]\nbuffer = { kind = \"per-port\", size = \"60KB\" }\n\
    [transport]\nkind = \"cubic\"\nmin-rto = \"200ms\"\ninitial-rto = \"1s\"\ntlp = true\n\
    [[traffic]]\nkind = \"flows\"\nrows = [[0, 0, 2, 4000000], [0, 1, 2, 4000000]]\n";

#[test]
fn deflected_packets_arrive_and_the_edge_restores_their_order() {
    let canary = [
        ("switch.deflection.kind", "canary"),
        ("switch.admission.kind", "aifo"),
        ("transport.rank.kind", "attained-service"),
    ];
    let (plain, straight) = needs!(run(DETOUR, &[]));
    assert_eq!((plain.completed, straight.deflected), (2, 0));
    let order = ("transport.ordering", "{ kind = \"timeout\", timeout = \"5ms\" }");
    let [a, b, c] = canary;
    // Losses that synchronize the flows leave little to deflect: how many packets come out of order
    // is a share of those deflected, over several runs.
    let share = |set: &[(&str, &str)]| {
        let (mut out_of_order, mut deflected) = (0, 0);
        for _ in 0..5 {
            let (counts, counted) = run(DETOUR, set).unwrap();
            assert_eq!(counts.completed, 2, "{counted:?}");
            out_of_order += counts.out_of_order;
            deflected += counted.deflected;
        }
        assert!(deflected > 200, "{deflected}");
        out_of_order as f64 / deflected as f64
    };
    let (early, ordered) = (share(&canary), share(&[a, b, c, order]));
    assert!(early > 0.4 && 2.0 * ordered < early, "{early} {ordered}");
}

/// One transfer over two spines of different lengths.
const SPINES: &str = "duration = \"20s\"\nuntil = \"flows-complete\"\n\
    [topology]\nkind = \"file\"\n[topology.graph]\nhosts = 2\nswitches = [\n\
    { name = \"leaf0\", tier = 0 }, { name = \"leaf1\", tier = 0 },\n\
    { name = \"spine0\", tier = 1 }, { name = \"spine1\", tier = 1 }]\nlinks = [\n\
    { a = \"host0\", b = \"leaf0\", rate = \"200Mbps\", delay = \"50us\" },\n\
    { a = \"host1\", b = \"leaf1\", rate = \"200Mbps\", delay = \"50us\" },\n\
    { a = \"leaf0\", b = \"spine0\", rate = \"200Mbps\", delay = \"50us\" },\n\
    { a = \"leaf1\", b = \"spine0\", rate = \"200Mbps\", delay = \"50us\" },\n\
    { a = \"leaf0\", b = \"spine1\", rate = \"200Mbps\", delay = \"1500us\" },\n\
    { a = \"leaf1\", b = \"spine1\", rate = \"200Mbps\", delay = \"1500us\" }]\n\
    [switch]\npath = { kind = \"labels\" }\n[transport]\nkind = \"cubic\"\n\
    min-rto = \"200ms\"\ninitial-rto = \"1s\"\n\
    [[traffic]]\nkind = \"flows\"\nrows = [[0, 0, 1, 8000000]]\n";

#[test]
fn presto_sprays_flowcells_and_its_receive_offload_restores_their_order() {
    let presto = ("edge.load-balancing.kind", "presto");
    let (hashed, _) = needs!(run(SPINES, &[("switch.path.kind", "ecmp")]));
    let (sprayed, _) = run(SPINES, &[presto]).unwrap();
    // Its times are those of 10 Gb/s: as a lab's scale of 50 makes them.
    let times = "{ kind = \"presto-gro\", initial = \"5ms\", min = \"8ms\", max = \"50ms\" }";
    let gro = ("host.receive-offload", times);
    let (merged, _) = run(SPINES, &[presto, gro]).unwrap();
    assert_eq!([hashed.completed, sprayed.completed, merged.completed], [1; 3]);
    let all = [hashed.out_of_order, sprayed.out_of_order, merged.out_of_order];
    assert!(all[0] < 10 && all[1] > 100 && all[2] < all[1] / 4, "{all:?}");
}

/// Six transfers over two spines.
const MANY: &str = "[[traffic]]\nkind = \"flows\"\nrows = [[0, 0, 1, 500000], \
    [0, 0, 1, 500000], [0, 0, 1, 500000], [0, 0, 1, 500000], [0, 0, 1, 500000], \
    [0, 0, 1, 500000]]\n[[failure]]\nlink = [\"leaf0\", \"spine0\"]\nat = \"20ms\"\n";

#[test]
fn a_link_that_goes_down_loses_packets_until_routes_avoid_it() {
    let (spines, _) = SPINES.split_once("[[traffic]]").unwrap();
    let text = format!("{spines}{MANY}").replace("\"labels\"", "\"ecmp\"");
    let text = text.replace("\"20s\"", "\"4s\"");
    let (with, followed) =
        needs!(run(&format!("{text}detect = \"1s\"\nconverge = \"300ms\"\n"), &[]));
    let (without, never) =
        run(&format!("{text}detect = \"100s\"\nconverge = \"never\"\n"), &[]).unwrap();
    let down = |counted: &Counted| {
        let mut all = counted.dropped.iter();
        all.find(|(reason, _)| *reason == DropReason::LinkDown).map_or(0, |(_, count)| *count)
    };
    assert_eq!(with.completed, 6, "{followed:?}");
    assert!(without.completed < 6, "flows over spine0 cannot end: {never:?}");
    assert!(down(&followed) > 0 && down(&never) > 0);
}

#[test]
fn a_controller_takes_the_labels_of_a_broken_path_away() {
    let (spines, _) = SPINES.split_once("[[traffic]]").unwrap();
    let text = format!("{spines}{MANY}detect = \"100s\"\nconverge = \"never\"\n");
    let text = text.replace("\"20s\"", "\"4s\"");
    let presto = ("edge.load-balancing.kind", "presto");
    let delay = |delay| [presto, ("edge.load-balancing.controller-delay", delay)];
    let (with, _) = needs!(run(&text, &delay("100ms")));
    let (without, _) = run(&text, &delay("off")).unwrap();
    assert!(
        with.completed == 6 && without.completed < 6,
        "{} {}",
        with.completed,
        without.completed
    );
}

#[test]
fn a_lossy_link_loses_its_share_both_ways() {
    let (spines, _) = SPINES.split_once("[[traffic]]").unwrap();
    let text = format!(
        "{spines}[[traffic]]\nkind = \"flows\"\nrows = [[0, 0, 1, 3000000]]\n[[failure]]\n\
         link = [\"host0\", \"leaf0\"]\nat = \"0s\"\nloss = 0.03\n"
    );
    let (counts, counted) = needs!(run(&text, &[("switch.path.kind", "ecmp")]));
    let mut drops = counted.dropped.iter();
    let injected = drops.find(|(reason, _)| *reason == DropReason::Injected).unwrap().1;
    let share = injected as f64 / counted.entered as f64;
    assert!(counts.completed == 1 && (0.015..0.045).contains(&share), "{share} {counted:?}");
}

/// Two transfers of a host, of which one is limited.
const LIMITED: &str = "duration = \"20s\"\nuntil = \"flows-complete\"\n\
    [topology]\nkind = \"single-switch\"\nhosts = 3\n\
    host-link = { rate = \"200Mbps\", delay = \"50us\" }\n[transport]\nkind = \"cubic\"\n\
    [[traffic]]\nname = \"bulk\"\nkind = \"flows\"\nrows = [[0, 0, 1, 2000000]]\n\
    [[traffic]]\nname = \"free\"\nkind = \"flows\"\nrows = [[0, 0, 2, 2000000]]\n\
    [[limit]]\nname = \"batch\"\nhosts = 0\ntraffic = [\"bulk\"]\nrate = \"10Mbps\"\n\
    scopes = [\"all\"]\n[[limit]]\nname = \"all\"\nrate = \"100Mbps\"\n";

#[test]
fn a_limit_holds_its_class_of_traffic_and_no_other() {
    let fct = |text: &str| {
        let mut flows = Flows::default();
        run_into(text, &[], &mut flows)?;
        let of = |class: u16| {
            let mut all = flows.0.iter().filter(|flow| flow.class == class);
            all.find_map(FlowRecord::fct).map_or(0.0, |fct| fct.as_us_f64() * 1e-6)
        };
        Ok::<_, Error>([of(0), of(1)])
    };
    let [bulk, free] = needs!(fct(LIMITED));
    let (unlimited, _) = LIMITED.split_once("[[limit]]").unwrap();
    let [before, _] = fct(unlimited).unwrap();
    // 2 MB are 1.67 s at 10 Mb/s with headers, less what may be saved up. Where the kernel waits
    // for its probe timer it is longer.
    assert!(bulk > 1.4 && free < 0.4 && before < 0.4, "{bulk} {free} {before}");
    // Arriving traffic is limited, too, in the receiver's cgroup.
    let arriving = LIMITED.replace("hosts = 0\n", "hosts = 1\ndirection = \"ingress\"\n");
    let [bulk, free] = fct(&arriving).unwrap();
    assert!(bulk > 1.2 && free < 0.4, "{bulk} {free}");
}

#[test]
fn two_limits_of_the_same_traffic_are_refused_by_name() {
    let text = format!("{LIMITED}[[limit]]\nname = \"b\"\nhosts = \"0..2\"\nrate = \"1Mbps\"\n");
    let refused = Lab::up(&plan(&text)).err().unwrap().to_string();
    assert!(refused.contains("limit.hosts") && refused.contains("\"batch\""), "{refused}");
}

/// Eight hosts send to an application that serves a seventh of what its link brings.
const SLOW: &str = "duration = \"20s\"\nuntil = \"flows-complete\"\n\
    [topology]\nkind = \"single-switch\"\nhosts = 9\n\
    host-link = { rate = \"200Mbps\", delay = \"50us\" }\n\
    [switch]\nbuffer = { kind = \"per-port\", size = \"4MB\" }\n\
    queue = { kind = \"strict-priority\" }\n\
    [transport]\nkind = \"cubic\"\nmin-rto = \"200ms\"\ninitial-rto = \"1s\"\n\
    [edge]\nvirtual-switch = { kind = \"lossy\" }\n\
    [[application]]\nname = \"slow\"\ntraffic = [\"bulk\"]\nhosts = 0\nwork = \"400us\"\n\
    ring = 16\n[[traffic]]\nname = \"quick\"\nkind = \"flows\"\nrows = [[0, 1, 0, 20000]]\n\
    [[traffic]]\nname = \"bulk\"\nkind = \"incast\"\nreceiver = 0\ndegree = 8\n\
    response = \"300KB\"\nperiod = \"100ms\"\ncount = 1\n";

#[test]
fn a_slow_receiver_loses_packets_unless_its_virtual_switch_pauses_senders() {
    let drops = |counted: &Counted| counted.dropped.iter().map(|(_, count)| count).sum::<u64>();
    let (lossy, dropped) = needs!(run(SLOW, &[]));
    // Without pauses three quarters of all data would wait here: much more than there is room for.
    let few = [
        ("edge.virtual-switch.kind", "backdraft"),
        ("edge.virtual-switch.memory", "30KB"),
        ("edge.virtual-switch.headroom", "600KB"),
        ("edge.virtual-switch.ring", "128"),
        ("edge.virtual-switch.nic-limit", "3KB"),
        ("edge.virtual-switch.feedback", "20ms"),
    ];
    let (paused, kept) = run(SLOW, &few).unwrap();
    assert_eq!((lossy.completed, paused.completed), (9, 9));
    let of_switch = |counted: &Counted| {
        let mut all = counted.dropped.iter();
        all.find(|(it, _)| *it == DropReason::VirtualSwitch).map_or(0, |(_, count)| *count)
    };
    assert!(of_switch(&dropped) > 50 && drops(&dropped) == of_switch(&dropped), "{dropped:?}");
    assert_eq!(drops(&kept), 0, "{kept:?}");
    let of = |name: &str| kept.mechanisms.get("backdraft", name);
    assert!(of("pauses") > 0 && of("resumes") > 0 && of("held-us") > 0, "{kept:?}");
    assert!(of("peak-bytes") < 630_000 && of("served-bytes") >= 8 * 300_000, "{kept:?}");
}

#[test]
fn arp_and_icmp_cross_two_switches() {
    let plan = plan(DETOUR);
    let _alone = alone();
    let lab = needs!(Lab::up(&plan));
    let (names, to) = (lab.namespaces(), lab.address(3));
    names[0].set("ipv4/ping_group_range", "0 2147483647").unwrap();
    let answered = names[0].run(|| {
        use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto};
        let kind = (AddressFamily::INET, SocketType::DGRAM, Some(ipproto::ICMP));
        let socket = rustix::net::socket(kind.0, kind.1, kind.2).unwrap();
        let wait = Some(Duration::from_secs(3));
        rustix::net::sockopt::set_socket_timeout(
            socket.as_fd(),
            rustix::net::sockopt::Timeout::Recv,
            wait,
        )
        .unwrap();
        let echo = [8, 0, 0, 0, 0, 0, 0, 7, 42];
        let to = SocketAddr::from((to, 0));
        rustix::net::sendto(&socket, &echo, SendFlags::empty(), &to).unwrap();
        let mut answer = [0; 64];
        rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty()).map(|(n, _)| (n, answer[0]))
    });
    assert_eq!(answered.unwrap().unwrap(), (9, 0), "an echo reply");
}

#[test]
fn packets_that_an_interface_drops_are_counted() {
    let plan = plan(DETOUR);
    let _alone = alone();
    let mut lab = needs!(Lab::up(&plan));
    lab.namespaces()[0].ip("link set eth0 txqueuelen 2").unwrap();
    let to = SocketAddr::from((lab.address(2), 9));
    lab.namespaces()[0]
        .run(|| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(300) {
                let _ = socket.send_to(&[0; 1400], to);
            }
        })
        .unwrap();
    assert!(lab.stop().lost > 0);
}
