//! Limits on this machine's own kernel: two network namespaces, a veth pair, and cgroups that each
//! test makes.
//!
//! Skipped, with a message, without root, cgroup v2, eBPF or `ip`. Children are processes of
//! their own (`helpers`), because a socket belongs to the cgroup that its process was in.

mod anew;
mod arriving;
mod congestion;
mod departing;
mod foreign;
mod former;
mod hostile;
mod operating;
mod pacing;
mod place;
mod pods;

use place::{Place, Sink, enter, ip};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use millpond_core::random::Stream;
use millpond_linux::limit::apply::Session;
use millpond_linux::limit::store::{self, Store};
use millpond_linux::limit::{Error, apply, serve, show};
use millpond_worlds::needs;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn the_limit_holds_over_any_second() {
    let place = needs!(Place::with_network("holds"));
    let sink = Sink::new(&place);
    for (mbps, flows, form) in [(50, 1, "credit"), (200, 5, "credit"), (200, 3, "lock-free")] {
        let text = format!(
            "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\npace = false\nrate = \
             \"{mbps}Mbps\"\nform = \"{form}\"\n"
        );
        place.apply(&place.file("a.toml", &text)).unwrap();
        let (most, mean) = sink.watch(place.sender("tcp", &[&flows.to_string(), "3000"]));
        eprintln!(
            "{mbps} Mbps, {flows} flows, {form}: {most:.1} Mbps in the busiest second, {mean:.1} \
             on average"
        );
        assert!(most <= mbps as f64 * 1.03, "{most} Mbps over a second, limit {mbps}");
        assert!(mean > mbps as f64 * 0.02, "{mean} of {mbps} Mbps: nothing gets through");
    }
    // One flow without ECN in a rack: its window cannot be small enough, so it runs into drops and
    // waits for its timer. The kick is for that.
    let text = "kick = \"20ms\"\n[[limit]]\npace = false\nname = \"t\"\ncgroup = \"CGROUP\"\nrate \
                = \"50Mbps\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let bpffs = place.bpffs.clone();
    std::thread::spawn(move || serve::serve(&bpffs, None, &|_| {}));
    let (most, mean) = sink.watch(place.sender("tcp", &["1", "4000"]));
    eprintln!(
        "50 Mbps, 1 flow, with the kick: {most:.1} Mbps in the busiest second, {mean:.1} on \
         average"
    );
    assert!(most <= 50.0 * 1.03, "{most}");
    assert!(mean > 10.0, "{mean}");
    let reading = show::read(&place.bpffs, None).unwrap();
    let q = &reading.limits[0];
    assert!(
        q.packets > 1000
            && q.reduced > 0
            && q.kicks > 0
            && q.rtt_us_mean.is_some()
            && q.cwnd_mean.is_some(),
        "{q:?}"
    );
    assert_eq!(q.backlog_us.iter().sum::<u64>(), q.packets);
}

/// Limits that are removed and applied have other maps, which may come about between two looks of
/// who serves.
#[test]
fn the_kick_goes_on_after_limits_are_removed_and_applied() {
    let place = needs!(Place::with_network("kicked"));
    let sink = Sink::new(&place);
    let text = "kick = \"20ms\"\n[[limit]]\npace = false\nname = \"t\"\ncgroup = \"CGROUP\"\nrate \
                = \"50Mbps\"\n";
    let file = place.file("a.toml", text);
    place.apply(&file).unwrap();
    let bpffs = place.bpffs.clone();
    std::thread::spawn(move || serve::serve(&bpffs, None, &|_| {}));
    std::thread::sleep(Duration::from_millis(1500));
    assert!(apply::remove_all(&place.bpffs).unwrap().is_some());
    place.apply(&file).unwrap();
    sink.watch(place.sender("tcp", &["1", "5000"]));
    let reading = show::read(&place.bpffs, None).unwrap();
    assert!(reading.limits[0].kicks > 0, "{:?}", reading.limits[0]);
}

/// A virtual queue alone cannot limit a flow whose least window is more than its limit.
#[test]
fn a_paced_connection_needs_no_timer() {
    let place = needs!(Place::with_network("pace"));
    let sink = Sink::new(&place);
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"50Mbps\"\n";
    let links = || fs::read_dir(store::folder(&place.bpffs).join("links")).unwrap().count();
    place.apply(&place.file("a.toml", limit)).unwrap();
    assert_eq!(links(), 2, "the packets' and the connections'");
    let (most, mean) = sink.watch(place.sender("tcp", &["1", "3000"]));
    eprintln!("50 Mbps, 1 flow, paced: {most:.1} Mbps in the busiest second, {mean:.1} on average");
    assert!(most <= 50.0 * 1.03, "{most}");
    assert!(mean > 20.0, "{mean}");
    place.apply(&place.file("a.toml", &format!("{limit}pace = false\n"))).unwrap();
    assert_eq!(links(), 1, "pacing that is no longer asked for is gone");
}

/// The count of a `serve` in a namespace under a name.
fn metric(network: &str, name: &str) -> u64 {
    let (network, name) =
        (network.to_string(), format!("millpond_limit_notifications_{name}_total "));
    let asked = std::thread::spawn(move || {
        enter(&network);
        let mut to = TcpStream::connect("127.0.0.1:9184").unwrap();
        to.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        to.read_to_string(&mut text).unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix(&name).map(|n| n.parse().unwrap()))
            .unwrap_or(0)
    });
    asked.join().unwrap()
}

/// The same once it has not changed for a second: what was heeded is counted when the next message
/// comes, or after a while.
fn settled(network: &str, name: &str) -> u64 {
    let (start, mut since, mut seen) = (Instant::now(), Instant::now(), metric(network, name));
    while since.elapsed() < Duration::from_secs(1) {
        assert!(start.elapsed() < Duration::from_secs(20), "{name} has no end");
        std::thread::sleep(Duration::from_millis(50));
        let now = metric(network, name);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
    seen
}

/// Serves the limits of a host, in its network namespace, until the test ends.
fn serve_in(network: &str, bpffs: &Path) {
    assert!(ip(&["-n", network, "link", "set", "lo", "up"]));
    let (network, bpffs) = (network.to_string(), bpffs.to_path_buf());
    std::thread::spawn(move || {
        enter(&network);
        serve::serve(&bpffs, Some("127.0.0.1:9184".parse().unwrap()), &|text| {
            eprintln!("serve: {text}")
        })
    });
}

/// Puts `text`, or nothing, in the place of all limits of a host.
fn replace(place: &Place, bpffs: &Path, text: &str) {
    let _ = apply::remove_all(bpffs);
    if !text.is_empty() {
        let file = place.file("a.toml", text);
        let mut session = Session::open(bpffs).unwrap();
        let sources = session.with(session.read(&file, false).unwrap());
        session.install(sources, false).unwrap();
    }
}

/// Prints what two turns dropped, and the notifications that each host counted.
fn print_turns(place: &Place, without: &show::QueueReading, with: &show::QueueReading) {
    for (name, q) in [("without", without), ("with", with)] {
        let mbps = (q.bytes - q.dropped_bytes) as f64 * 8e-6 / q.seconds;
        eprintln!(
            "{name}: {mbps:.0} Mbps, {} of {} packets dropped, {} notifications",
            q.dropped, q.packets, q.notifications
        );
    }
    let names = ["sent", "unsent", "received", "refused", "heeded"];
    let counted = [0, 1].map(|host| names.map(|name| metric(&place.networks[host], name)));
    eprintln!(
        "{names:?}: of the sender's host {:?}, of the receiver's {:?}",
        counted[0], counted[1]
    );
}

/// A sender without ECN behind a limit at ingress on another host: with the side channel it slows
/// down before it is dropped.
#[test]
fn a_sender_on_another_host_is_told() {
    let place = needs!(Place::with_network("told"));
    let other = place.other_host();
    let [sender, receiver] = ["sender", "receiver"].map(|name| place.cgroup.join(name));
    let secret = place.secret("b.toml", "sixteen bytes or more");
    for folder in [&sender, &receiver] {
        fs::create_dir(folder).unwrap();
    }
    for (network, bpffs) in place.networks.iter().zip([&other, &place.bpffs]) {
        serve_in(network, bpffs);
    }
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/receiver\"\ndirection = \
                 \"ingress\"\nrate = \"1Gbps\"\n";
    let channel =
        |of: &str| format!("[[notify]]\nsecret = \"{}\"\npeers = [\"{of}\"]\n", secret.display());
    let run = |channel: [String; 2], ms: &str| {
        let [here, there] = channel;
        replace(&place, &other, &here);
        replace(&place, &place.bpffs, &format!("{limit}{there}"));
        // Serve follows within a second.
        std::thread::sleep(Duration::from_millis(1500));
        let mut sink =
            place.child_at(1, "receive", &[receiver.display().to_string(), String::new()]);
        let args = [sender.display().to_string(), place.networks[0].clone(), "1".into(), ms.into()];
        assert!(place.child("tcp", &args).wait().unwrap().success());
        sink.kill().unwrap();
        sink.wait().unwrap();
        show::read(&place.bpffs, None).unwrap().limits[0].clone()
    };
    // The veth pair has no rate of its own, at which a window would be gone before a notification
    // could come: pacing stands for one.
    let wire =
        "[[limit]]\nname = \"wire\"\ncgroup = \"CGROUP/sender\"\nrate = \"1200Mbps\"\n".to_string();
    let without = run([wire.clone(), String::new()], "3000");
    assert_eq!((without.notifications, metric(&place.networks[1], "sent")), (0, 0));
    let count = |host: usize, name| metric(&place.networks[host], name);
    let fewer = |with: &show::QueueReading| with.dropped <= without.dropped / 2;
    // A sender that waits for a processor is notified too late: half of the drops, of which pauses
    // may leave none, is demanded where nearly all was heeded.
    let (mut told, mut turns) = (0, 0);
    let (with, is_prompt) = loop {
        let before = [count(1, "sent"), count(0, "heeded")];
        let with =
            run([format!("{wire}{}", channel("10.98.7.2")), channel("10.98.7.0/24")], "3000");
        let [sent, heeded] =
            [count(1, "sent") - before[0], settled(&place.networks[0], "heeded") - before[1]];
        (told, turns) = (told + with.notifications, turns + 1);
        let is_prompt = heeded * 10 >= sent * 9;
        if is_prompt || fewer(&with) || turns == 4 {
            break (with, is_prompt);
        }
        eprintln!("{heeded} of {sent} heeded, {} packets dropped: once more", with.dropped);
    };
    print_turns(&place, &without, &with);
    let [sent, received, heeded] = [count(1, "sent"), count(0, "received"), count(0, "heeded")];
    assert!(with.notifications > 0 && sent > 0 && sent <= told, "{sent} of {told}");
    assert!(
        received > 0 && received <= sent && heeded > 0 && heeded <= received,
        "{sent} sent, {received} received, {heeded} heeded"
    );
    assert!(fewer(&with) || !is_prompt, "{} drops with, {} without", with.dropped, without.dropped);
    // Another secret: nothing is believed. A peer that is none: nothing is sent. Both times there
    // is congestion, which pauses of senders can hold without a drop.
    let other_secret = place.secret("c.toml", "another of sixteen bytes");
    let here =
        channel("10.98.7.2").replace(secret.to_str().unwrap(), other_secret.to_str().unwrap());
    let forged = run([format!("{wire}{here}"), channel("10.98.7.0/24")], "1000");
    let nobody = run([format!("{wire}{}", channel("10.98.7.2")), channel("10.99.0.0/16")], "1000");
    eprintln!(
        "{} and {} packets dropped with another secret and without a peer",
        forged.dropped, nobody.dropped
    );
    assert!(count(0, "refused") > 0 && forged.notifications > 0);
    assert!(count(1, "unsent") >= nobody.notifications && nobody.notifications > 0);
    assert_eq!(settled(&place.networks[0], "heeded"), heeded, "nothing more is heeded");
    fs::remove_dir(&sender).unwrap();
}

#[test]
fn udp_is_dropped_silently() {
    let place = needs!(Place::with_network("udp"));
    place
        .apply(
            &place
                .file("a.toml", "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"1Mbps\"\n"),
        )
        .unwrap();
    let status = place.sender("udp", &[]).wait().unwrap();
    assert!(status.success(), "no EPERM: {status}");
    let reading = show::read(&place.bpffs, None).unwrap();
    assert!(reading.limits[0].dropped > 2000, "{:?}", reading.limits[0]);
    assert_eq!(reading.limits[0].returned[0], 0);
}

const OLD: &str = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"10Mbps\"\nscopes = \
                   [\"up\"]\n[[limit]]\nname = \"up\"\nrate = \"20Mbps\"\n";
const NEW: &str = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"30Mbps\"\ndirection = \
                   \"both\"\nscopes = [\"side\"]\n[[limit]]\nname = \"side\"\nrate = \"40Mbps\"\n";

/// Rates of the scopes that a packet of the cgroup would be charged to now, from the maps alone.
fn in_force(place: &Place) -> Option<Vec<u64>> {
    let store = Store::open(&place.bpffs).unwrap()?;
    let bank = store.head().unwrap().bank & 1;
    let (cgroup, _) = *store.links().first()?;
    let chain = store.attachment(cgroup).unwrap()?.chain[bank as usize][0];
    let map = MapHandle::from_pinned_path(store::map_path(store.folder(), "scopes")).unwrap();
    let rate = |id: &u16| {
        let bytes = map.lookup(&u32::from(*id).to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        let rate = u64::from_ne_bytes(bytes[bank as usize * 80..][..8].try_into().unwrap());
        (rate as f64 * 8e9 / (1u64 << 24) as f64 / 1e6).round() as u64
    };
    Some(chain.scopes[..chain.count as usize].iter().map(rate).collect())
}

#[test]
fn killed_at_any_instant_it_is_the_old_or_the_new() {
    let place = needs!(Place::new("kill"));
    let (old, new) = (place.file("a.toml", OLD), place.file("b.toml", NEW));
    let args: Vec<String> = [&place.bpffs, &old, &new].map(|p| p.display().to_string()).to_vec();
    let mut random = Stream::new(std::process::id() as u64, "kill");
    // How long the first takes here and now: kills fall into all parts of it, and before it and
    // after.
    let begun = Instant::now();
    let mut child = place.child("apply", &[&args[..], &["0".to_string()]].concat());
    while in_force(&place).is_none_or(|rates| rates.is_empty()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is ever in force");
        std::thread::sleep(Duration::from_millis(5));
    }
    let whole = begun.elapsed().as_micros() as u64;
    child.kill().unwrap();
    child.wait().unwrap();
    Session::open(&place.bpffs).unwrap().remove_all().unwrap();
    let (mut seen_old, mut seen_new) = (0, 0);
    for round in 0..90u64 {
        if round >= 24 && seen_old > 2 && seen_new > 2 {
            break;
        }
        let mut all = args.clone();
        all.push((round % 2).to_string());
        let mut child = place.child("apply", &all);
        // A machine that gets busier takes longer to get there.
        std::thread::sleep(Duration::from_micros(random.bits() % (whole * (30 + round) / 20)));
        child.kill().unwrap();
        child.wait().unwrap();
        match in_force(&place) {
            None => assert_eq!(seen_old + seen_new, 0, "nothing is there after {round} kills"),
            Some(rates) if rates.is_empty() => {
                assert_eq!(seen_old + seen_new, 0, "nothing is in force after {round} kills");
            }
            Some(rates) if rates == [10, 20] => seen_old += 1,
            Some(rates) => {
                assert_eq!(rates, [30, 40], "after {round} kills");
                seen_new += 1;
            }
        }
        let sources = Session::open(&place.bpffs).unwrap().sources;
        assert!(sources.len() <= 1, "what was applied can be read: {sources:?}");
    }
    assert!(seen_old > 0 && seen_new > 0, "{seen_old} old, {seen_new} new");
    place.apply(&old).unwrap_err();
    Session::open(&place.bpffs).unwrap().remove_all().unwrap();
    place.apply(&old).unwrap();
    assert_eq!(in_force(&place), Some(vec![10, 20]));
}

#[test]
fn remove_all_leaves_nothing() {
    let place = needs!(Place::new("remove"));
    let text = format!("dctcp = true\n{NEW}");
    place.apply(&place.file("a.toml", &text)).unwrap();
    let folder = store::folder(&place.bpffs);
    let links: Vec<_> =
        fs::read_dir(folder.join("links")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(links.len(), 3, "egress, ingress, pace");
    let links: Vec<(u32, u32)> = links
        .iter()
        .map(|path| {
            let info = Link::open(path).unwrap().info().unwrap();
            (info.id, info.prog_id)
        })
        .collect();
    let map = |name: &str| {
        MapHandle::from_pinned_path(store::map_path(&folder, name)).unwrap().info().unwrap().info.id
    };
    let maps: Vec<u32> = store::MAPS.iter().map(|name| map(name)).collect();
    assert!(apply::remove_all(&place.bpffs).unwrap().is_some());
    assert!(apply::remove_all(&place.bpffs).unwrap().is_none(), "there is nothing more");
    assert_eq!(
        fs::read_dir(&place.bpffs)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name() == "millpond")
            .count(),
        0
    );
    // The kernel frees them when it has time.
    let start = Instant::now();
    let gone = || {
        let programs = links.iter().all(|(_, id)| libbpf_rs::Program::fd_from_id(*id).is_err());
        programs && maps.iter().all(|id| MapHandle::from_map_id(*id).is_err())
    };
    while !gone() {
        assert!(
            start.elapsed().as_secs() < 10,
            "programs {links:?} or maps {maps:?} are still there"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_cgroup_that_is_made_anew() {
    let place = needs!(Place::new("anew"));
    let inner = place.cgroup.join("inner");
    fs::create_dir(&inner).unwrap();
    let file = place
        .file("a.toml", "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/inner\"\nrate = \"10Mbps\"\n");
    place.apply(&file).unwrap();
    let standing = || show::read(&place.bpffs, None).unwrap().limits[0].standing;
    assert_eq!(standing(), show::Standing::Active);
    fs::remove_dir(&inner).unwrap();
    assert_eq!(standing(), show::Standing::Waiting);
    assert!(
        matches!(place.apply(&file), Err(Error::Cgroup { .. })),
        "a cgroup that is not there is an error"
    );
    fs::create_dir(&inner).unwrap();
    assert_eq!(standing(), show::Standing::Recreated);
    place.apply(&file).unwrap();
    assert_eq!(standing(), show::Standing::Active);
    // And by itself, where somebody serves.
    fs::remove_dir(&inner).unwrap();
    fs::create_dir(&inner).unwrap();
    place.serve_until(|| standing() == show::Standing::Active);
    fs::remove_dir(&inner).unwrap();
}

/// A unit that restarts has another cgroup, and its floor with it.
#[test]
fn a_floor_follows_a_cgroup_that_is_made_anew() {
    let place = needs!(Place::new("floors"));
    let inner = place.cgroup.join("ssh");
    fs::create_dir(&inner).unwrap();
    let text = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \
                \"20Mbps\"\n[[floor]]\ncgroup = \"CGROUP/ssh\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let floors = || {
        let limits = show::read(&place.bpffs, None).unwrap().limits;
        let names =
            limits.into_iter().filter(|q| q.standing == show::Standing::Active).map(|q| q.name);
        names.filter(|name| name.starts_with("floor of ")).collect::<Vec<_>>()
    };
    assert_eq!(floors(), [format!("floor of {}", inner.display())]);
    fs::remove_dir(&inner).unwrap();
    fs::create_dir(&inner).unwrap();
    assert!(floors().is_empty());
    place.serve_until(|| !floors().is_empty());
    fs::remove_dir(&inner).unwrap();
}

#[test]
fn two_copies_wait_for_each_other() {
    let place = needs!(Place::new("two"));
    let (old, new) = (place.file("a.toml", OLD), place.file("b.toml", NEW));
    let run = |file: &Path| {
        for _ in 0..15 {
            // The lock promises no order: a copy that it refuses, when the other was lucky for
            // long, tries again.
            let mut session = loop {
                match Session::open(&place.bpffs) {
                    Err(millpond_linux::limit::Error::Busy(_)) => {}
                    session => break session.unwrap(),
                }
            };
            let mut source = session.read(file, false).unwrap();
            source.file = "edited".into();
            let sources = session.with(source);
            session.install(sources, false).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(&old));
        scope.spawn(|| run(&new));
    });
    let rates = in_force(&place).unwrap();
    assert!(rates == [10, 20] || rates == [30, 40], "{rates:?}");
}

#[test]
fn files_that_conflict_and_values_that_change_in_place() {
    let place = needs!(Place::new("files"));
    place.apply(&place.file("a.toml", OLD)).unwrap();
    let second = place
        .file("b.toml", "[[limit]]\nname = \"other\"\ncgroup = \"CGROUP\"\nrate = \"1Mbps\"\n");
    let said = place.apply(&second).unwrap_err().to_string();
    assert!(
        said.contains("have the same cgroup") && said.contains("a.toml") && said.contains("b.toml"),
        "{said}"
    );
    assert_eq!(in_force(&place), Some(vec![10, 20]), "the old ones hold");
    let ids = || {
        let store = Store::open(&place.bpffs).unwrap().unwrap();
        let link = store::link_path(store.folder(), store.links()[0].0, 0);
        (
            Link::open(link).unwrap().info().unwrap().id,
            store.labels(store.head().unwrap().bank).unwrap(),
        )
    };
    let before = ids();
    let mut session = Session::open(&place.bpffs).unwrap();
    let sources = session.set("t", &[("rate".into(), "15Mbps".into())]).unwrap();
    session.install(sources, false).unwrap();
    assert_eq!(in_force(&place), Some(vec![15, 20]));
    assert_eq!(ids(), before, "the same link, the same queues");
    let without = session.without("up").unwrap_err_or_install(&mut session);
    assert!(without.contains("no such limit"), "{without}");
}

/// A removal that must be refused, as text.
trait Refused {
    fn unwrap_err_or_install(self, session: &mut Session) -> String;
}
impl Refused for Result<Vec<millpond_linux::limit::store::Source>, Error> {
    fn unwrap_err_or_install(self, session: &mut Session) -> String {
        self.and_then(|sources| session.install(sources, false)).unwrap_err().to_string()
    }
}

/// The limits that an earlier binary had applied, with the traffic that it had seen; the output of
/// its `show`.
const FORMER: [&str; 2] =
    [include_str!("../state/limit-maps.txt"), include_str!("../state/limit-show.json")];
const FORMER_FILE: &str = "/etc/millpond/limits.toml";
const FORMER_LIMITS: &str = r#"
[[limit]]
name = "batch"
cgroup = "millpond-live-taken-over-0000000"
direction = "both"
scopes = ["uplink"]
rate = "50Mbps"
[[limit]]
name = "uplink"
rate = "200Mbps"
"#;

/// As `apply` of the file that the binary of before had applied.
fn apply_former(place: &Place) {
    let mut session = Session::open(&place.bpffs).unwrap();
    let mut source =
        session.read(&place.file("a.toml", &former::renamed(FORMER_LIMITS)), false).unwrap();
    source.file = FORMER_FILE.into();
    let sources = session.with(source);
    assert_eq!(session.install(sources, false).unwrap().limits, 2);
}

/// The output of `show`, but for what depends on the time at which it is asked.
fn shown(place: &Place) -> serde_json::Value {
    let mut all = serde_json::to_value(show::read(&place.bpffs, None).unwrap()).unwrap();
    for limit in all["limits"].as_array_mut().unwrap() {
        ["credit", "rate_bps"]
            .iter()
            .for_each(|key| drop(limit.as_object_mut().unwrap().remove(*key)));
    }
    all
}

/// Programs and queues of each link, as the kernel numbers them: links, programs, and who has which
/// scope.
fn numbers(place: &Place) -> (Vec<u32>, Vec<u32>, Vec<(u16, String)>) {
    let store = Store::open(&place.bpffs).unwrap().unwrap();
    let path = |(cgroup, direction)| store::link_path(store.folder(), cgroup, direction);
    let links =
        store.links().into_iter().map(|link| Link::open(path(link)).unwrap().info().unwrap());
    let (links, programs) = links.map(|info| (info.id, info.prog_id)).unzip();
    let labels = store.labels(store.head().unwrap().bank & 1).unwrap();
    (links, programs, labels.into_iter().map(|(id, label)| (id, label.name)).collect())
}

#[test]
fn limits_of_an_earlier_version_are_taken_over_under_a_connection() {
    let place = needs!(Place::with_network("taken-over"));
    let sink = Sink::new(&place);
    apply_former(&place);
    former::put_back(&place.bpffs, &place.cgroup, FORMER[0]);
    // All of it is there, and means what it meant.
    let lines = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(lines(&former::dump(&place.bpffs)), lines(FORMER[0]));
    let said: serde_json::Value = serde_json::from_str(&former::renamed(FORMER[1])).unwrap();
    assert_eq!(shown(&place), said);
    let before = numbers(&place);
    let bpffs = place.bpffs.clone();
    let complaints = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = complaints.clone();
    std::thread::spawn(move || {
        serve::serve(&bpffs, None, &|text| heard.lock().unwrap().push(text.to_string()))
    });
    let child = place.sender("tcp", &["1", "5000"]);
    let bytes = || sink.bytes.load(std::sync::atomic::Ordering::Relaxed);
    let ((most, _), at) = std::thread::scope(|scope| {
        let over = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(2500));
            let at = bytes();
            apply_former(&place);
            at
        });
        (sink.watch(child), over.join().unwrap())
    });
    let after = numbers(&place);
    assert_eq!((&after.0, &after.2), (&before.0, &before.2), "the same links, the same queues");
    assert!(
        after.1.iter().zip(&before.1).all(|(new, old)| new != old),
        "other programs: {before:?} {after:?}"
    );
    let rest = bytes() - at;
    eprintln!("{at} bytes before, {rest} after, {most:.1} Mbps in the busiest second");
    assert!(
        at > 3_000_000 && rest > 3_000_000,
        "the connection goes on: {at} bytes before, {rest} after"
    );
    assert!(most <= 50.0 * 1.03, "{most} Mbps over a second");
    let count = |of: &serde_json::Value| of["limits"][0]["bytes"].as_u64().unwrap();
    assert!(count(&shown(&place)) >= count(&said) + at + rest, "counters go on");
    assert_eq!(*complaints.lock().unwrap(), Vec::<String>::new(), "nothing to say for who serves");
}

#[test]
fn a_hundred_cgroups_within_two_seconds() {
    let place = needs!(Place::new("hundred"));
    let mut text = String::new();
    for i in 0..100 {
        fs::create_dir(place.cgroup.join(format!("c{i}"))).unwrap();
        text +=
            &format!("[[limit]]\nname = \"c{i}\"\ncgroup = \"CGROUP/c{i}\"\nrate = \"5Mbps\"\n");
    }
    let file = place.file("a.toml", &text);
    // Of this thread's processor: others may have it for any time.
    let worked = || {
        Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
            .unwrap()
    };
    let (start, before) = (Instant::now(), worked());
    place.apply(&file).unwrap();
    let (first, work) = (start.elapsed(), worked() - before);
    place.apply(&file).unwrap();
    eprintln!("100 cgroups: {first:?}, {work:?} of them work; again {:?}", start.elapsed() - first);
    assert!(work < Duration::from_secs(2) && first < Duration::from_secs(30), "{work:?} {first:?}");
    assert_eq!(show::read(&place.bpffs, None).unwrap().limits.len(), 100);
}

/// A floor inside a limited cgroup: what is within it passes, whatever its slice has used up.
#[test]
fn a_floor_passes_when_its_slice_is_behind() {
    let place = needs!(Place::with_network("floor"));
    let inner = place.cgroup.join("ssh");
    fs::create_dir(&inner).unwrap();
    let text = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \
                \"20Mbps\"\n[[floor]]\ncgroup = \"CGROUP/ssh\"\nrate = \"10Mbps\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let outer = [place.cgroup.display().to_string(), place.networks[0].clone(), "1500".into()];
    let mut greedy = place.child("flood", &outer);
    std::thread::sleep(Duration::from_millis(500));
    let mut protected =
        place.child("udp", &[inner.display().to_string(), place.networks[0].clone()]);
    protected.wait().unwrap();
    greedy.wait().unwrap();
    let store = Store::open(&place.bpffs).unwrap().unwrap();
    let labels = store.labels(store.head().unwrap().bank & 1).unwrap();
    let (id, _) = labels.iter().find(|(_, l)| l.name.starts_with("floor of")).unwrap();
    let floored = store.statistics(*id).unwrap().floored;
    assert!(floored > 5, "{floored} packets passed by the floor");
}

/// A connection behind a floor has the floor's rate, and not a ninth of what nine share; what it
/// leaves is the others'.
#[test]
fn a_floor_is_a_share_of_its_own() {
    let place = needs!(Place::with_network("floor-share"));
    let inner = place.cgroup.join("ssh");
    fs::create_dir(&inner).unwrap();
    let text = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \
                \"200Mbps\"\n[[floor]]\ncgroup = \"CGROUP/ssh\"\nrate = \"100Mbps\"\n";
    place.apply(&place.file("a.toml", text)).unwrap();
    let _sink = place::Sink::new(&place);
    let mut greedy = place::Running(place.sender("tcp", &["8", "3000"]));
    let args = [inner.display().to_string(), place.networks[0].clone(), "1".into(), "3000".into()];
    assert!(place.child("tcp", &args).wait().unwrap().success());
    greedy.0.wait().unwrap();
    let limits = show::read(&place.bpffs, None).unwrap().limits;
    let bytes = |of: &str| limits.iter().find(|l| l.name.starts_with(of)).unwrap().bytes;
    let (floor, all) = (bytes("floor of"), bytes("t"));
    eprintln!("{floor} of {all} bytes behind the floor");
    assert!(3 * floor > all && 3 * floor < 2 * all, "{floor} of {all}");
}
