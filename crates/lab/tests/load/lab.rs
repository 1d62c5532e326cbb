//! Hosts in namespaces of their own, and runs on them.

use crate::compared::Records;
use millpond_lab::load::{self, Counts, Error, Place, Settings, Sink};
use millpond_scenario::plan::Plan;
use millpond_worlds::{Namespace, World, namespace};
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub const PORT: u16 = 9000;

/// One at a time: they measure.
static TURN: Mutex<()> = Mutex::new(());

/// Hosts in namespaces of their own, joined by a bridge.
pub struct Lab {
    pub places: Vec<Place>,
    pub hosts: Vec<Namespace>,
    pub congestion: &'static str,
    _world: World,
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    pub fn new(label: &str, hosts: usize) -> Result<Lab, millpond_worlds::Error> {
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let world = World::new(label)?;
        let bridge = world.namespace("bridge")?;
        let labels: Vec<String> = (0..hosts).map(|host| format!("h{host}")).collect();
        let namespaces = world.namespaces(&labels)?;
        let ends: Vec<String> = (0..hosts).map(|host| format!("to{host}")).collect();
        let pairs: Vec<_> = namespaces
            .iter()
            .zip(&ends)
            .map(|(host, end)| [(host, "eth0"), (&bridge, end.as_str())])
            .collect();
        world.veths(&pairs)?;
        let up = |end: &String| format!("link set {end} master br0\nlink set {end} up\n");
        let ports: String = ends.iter().map(up).collect();
        bridge.ip(&format!("link add br0 type bridge\nlink set br0 up\n{ports}"))?;
        let address = |host: usize| Ipv4Addr::new(10, 0, 0, host as u8 + 1);
        for (host, namespace) in namespaces.iter().enumerate() {
            let address = address(host);
            namespace.ip(&format!("addr add {address}/24 dev eth0\nlink set eth0 up"))?;
        }
        let place = |(host, namespace): (usize, &Namespace)| Place {
            namespace: namespace.name().to_string(),
            address: address(host),
        };
        let places = namespaces.iter().enumerate().map(place).collect();
        Ok(Lab { places, hosts: namespaces, congestion: "cubic", _world: world, _turn: turn })
    }

    pub fn run(&self, plan: &Plan) -> (Records, Counts) {
        let mut records = Records::default();
        let counts = self.run_into(plan, &AtomicBool::new(false), &mut records).unwrap();
        (records, counts)
    }

    pub fn run_into(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
        sink: &mut dyn Sink,
    ) -> Result<Counts, Error> {
        let began = Instant::now() + Duration::from_millis(20);
        let places = &self.places;
        let settings =
            Settings { plan, places, congestion: self.congestion, began, port: PORT, cgroups: &[] };
        let before = namespace::own();
        let counts = load::run(&settings, stop, sink);
        assert_eq!(namespace::own(), before, "the thread is back where it was");
        counts
    }

    /// Lines of `ss` with what is left of connections, in any state.
    pub fn sockets_left(&self) -> Vec<String> {
        self.ss("-Htan")
    }

    /// Resets that hosts have sent.
    pub fn resets(&self) -> u64 {
        let of = |host: &Namespace| {
            let snmp = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"));
            let snmp = snmp.unwrap().unwrap();
            let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:"));
            let mut words = || lines.next().unwrap().split(' ');
            let at = words().position(|word| word == "OutRsts").unwrap();
            words().nth(at).unwrap().parse::<u64>().unwrap()
        };
        self.hosts.iter().map(of).sum()
    }

    /// The output of `ss` at all hosts.
    pub fn ss(&self, options: &str) -> Vec<String> {
        let ss = |host: &Namespace| {
            let mut command = std::process::Command::new("ss");
            let output = host.run(|| command.arg(options).output()).unwrap().unwrap();
            String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(ss).collect()
    }
}
