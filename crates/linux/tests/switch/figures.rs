//! Measurements, which `make bench-switch` prints: what a path that dies costs, and what a key does.
//!
//! No test: they say what this machine does now, and judge nothing but that connections live.

use super::peers::{four_paths, states};
use super::place::{Place, ip, soon};
use millpond_linux::namespace;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FLOWS: usize = 8;
/// Between two looks at what has arrived.
const STEP: Duration = Duration::from_millis(20);

/// Connections from the first namespace to the second, which send as fast as they can.
struct Load {
    arrived: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<std::io::Result<()>>>,
}

impl Load {
    fn start(place: &Place, port: u16) -> Load {
        let address: SocketAddr = format!("10.98.8.2:{port}").parse().unwrap();
        let listener = namespace::within(Some(place.network(1)), || TcpListener::bind(address)).unwrap().unwrap();
        let (arrived, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut senders = Vec::new();
        for _ in 0..FLOWS {
            let second = Duration::from_secs(5);
            let to = || TcpStream::connect_timeout(&address, second);
            let mut stream = namespace::within(Some(place.network(0)), to).unwrap().unwrap();
            let (mut other, _) = listener.accept().unwrap();
            let (count, ends) = (arrived.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut room = vec![0; 1 << 18];
                while let Ok(n @ 1..) = other.read(&mut room) {
                    count.fetch_add(n as u64, Ordering::Relaxed);
                }
            });
            senders.push(std::thread::spawn(move || {
                let piece = vec![7; 1 << 17];
                stream.set_write_timeout(Some(Duration::from_secs(20)))?;
                while !ends.load(Ordering::Relaxed) {
                    stream.write_all(&piece)?;
                }
                Ok(())
            }));
        }
        Load { arrived, stop, senders }
    }
    /// Gigabits a second over the next so long.
    fn rate(&self, time: Duration) -> f64 {
        let (start, before) = (Instant::now(), self.arrived.load(Ordering::Relaxed));
        std::thread::sleep(time);
        (self.arrived.load(Ordering::Relaxed) - before) as f64 * 8e-9 / start.elapsed().as_secs_f64()
    }
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for sender in self.senders {
            sender.join().unwrap().expect("no connection is lost");
        }
    }
}

/// Frames over this path go nowhere, without a word; or go again.
fn set_dead(place: &Place, path: usize, is_dead: bool) {
    let (address, device) = (format!("10.97.{path}.2"), format!("mpc{path}"));
    let network = place.network(2);
    let done = match is_dead {
        true => ip(&[
            "-n",
            network,
            "neigh",
            "replace",
            &address,
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            &device,
            "nud",
            "permanent",
        ]),
        false => ip(&["-n", network, "neigh", "del", &address, "dev", &device]),
    };
    assert!(done);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_path_that_dies() {
    let Some(place) = Place::new("figures-paths", &["a", "b", "c", "d"]) else { return };
    let [left, right] = four_paths(&place);
    place.apply("left", &left);
    place.apply("right", &right);
    assert!(soon(|| states(&place, "left") == ["used"; 4]));
    println!("{FLOWS} flows over 4 paths, Gb/s of goodput; a path is dead from 0 ms on");
    let mut whole = Vec::new();
    for path in [3, 0, 1] {
        let load = Load::start(&place, 7300 + path as u16);
        std::thread::sleep(Duration::from_millis(700));
        let before = load.rate(Duration::from_secs(1));
        let died = Instant::now();
        set_dead(&place, path, true);
        let (mut again, mut steps) = (None, Vec::new());
        while died.elapsed() < Duration::from_secs(1) {
            let rate = load.rate(STEP);
            if died.elapsed() > 2 * STEP && rate >= 0.7 * before && again.is_none() {
                again = Some(died.elapsed());
            }
            steps.push(rate);
        }
        let after = load.rate(Duration::from_secs(1));
        let again = again.map_or("never".into(), |time| format!("{} ms", time.as_millis()));
        let least = steps.iter().copied().fold(f64::MAX, f64::min);
        println!(
            "path {path}: {before:.2} before, 70 % again after {again}, least of 20 ms {least:.2}, {after:.2} with three"
        );
        load.end();
        let up = super::peers::come_up(place.network(0), place.network(1), &format!("10.98.8.2:{}", 7400 + path), 200);
        println!("path {path} dead: {up} of 200 new connections came up, each within a second");
        set_dead(&place, path, false);
        whole.push(after);
        assert!(soon(|| states(&place, "left") == ["used"; 4]));
    }
    let load = Load::start(&place, 7350);
    std::thread::sleep(Duration::from_millis(700));
    let (start, before) = (Instant::now(), load.arrived.load(Ordering::Relaxed));
    for _ in 0..6 {
        set_dead(&place, 0, true);
        std::thread::sleep(Duration::from_millis(200));
        set_dead(&place, 0, false);
        std::thread::sleep(Duration::from_millis(800));
    }
    let flapping = (load.arrived.load(Ordering::Relaxed) - before) as f64 * 8e-9 / start.elapsed().as_secs_f64();
    let three = median(whole);
    println!("path 0 dead for 200 ms of each second: {flapping:.2}, of three paths alone {:.2}", flapping / three);
    load.end();
}

#[test]
#[ignore = "a measurement: make bench-switch"]
fn figures_of_a_key() {
    use std::os::unix::fs::PermissionsExt;
    let Some(place) = Place::new("figures-key", &["a", "b", "c", "d"]) else { return };
    let key = place.folder.with_extension("key");
    std::fs::write(&key, "a key of two switches").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let plain = four_paths(&place);
    let sealed = plain.clone().map(|text| text + &format!("[[peer]]\nname = \"other\"\nkey = {key:?}\n"));
    let mut rates = [Vec::new(), Vec::new()];
    for turn in 0..10u16 {
        let arm = usize::from(turn % 2);
        let [left, right] = if arm == 1 { &sealed } else { &plain };
        place.apply("left", left);
        place.apply("right", right);
        assert!(soon(|| states(&place, "left") == ["used"; 4]));
        let load = Load::start(&place, 7500 + turn);
        std::thread::sleep(Duration::from_millis(500));
        rates[arm].push(load.rate(Duration::from_secs(2)));
        load.end();
    }
    let [plain, sealed] = rates.map(median);
    println!(
        "{FLOWS} flows, medians of five in turn: plain {plain:.2} Gb/s, sealed {sealed:.2} Gb/s, {:.2}",
        sealed / plain
    );
    std::fs::remove_file(&key).unwrap();
}
