//! A packet passes the stages in core's one order, whichever driver has its host: the simulator,
//! the lab's edge of Linux, the world of kernels in virtual time.
//!
//! In the last two the limit is in the kernel, before the driver has the packet: there the stages
//! have no more packets of the kernel than the limit has let pass.

#![cfg(all(feature = "virtual", target_os = "linux"))]

use millpond::{Lab, Options, Scenario, Sim, Status, Virtual, World, run};
use millpond_core::host::stage::{Stage, record, recorded};
use millpond_worlds::needs;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Recording is the process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Messages of one packet, more of them than their hosts' limits let pass.
const TEXT: &str = r#"
duration = "100ms"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts-per-leaf = 1
host-link = { rate = "100Mbps", delay = "10us" }
fabric-link = { rate = "100Mbps", delay = "10us" }
[transport]
kind = "newreno"
importance = { kind = "tlt" }
rank = { kind = "attained-service" }
[edge]
load-balancing = { kind = "presto" }
[[traffic]]
kind = "incast"
hosts = "all"
degree = 1
response = 1000
period = "200us"
count = 300
[[limit]]
name = "slow"
hosts = "0..1"
rate = "200Kbps"
"#;
const NRM: &str = "kind = \"nrm\"\nburst = \"3KB\"\nmark = \"3KB\"\ndrop = \"30KB\"\n";
const HTB: &str = "kind = \"htb\"\nqueue = 4\n";

/// Each packet's stages, from what all have passed: limits come first on the way out, and the NIC
/// last.
fn ways(stages: &[Stage]) -> BTreeMap<Vec<Stage>, u64> {
    let (mut ways, mut way) = (BTreeMap::new(), Vec::new());
    for stage in stages.iter().copied().filter(|stage| *stage <= Stage::Nic) {
        if stage == Stage::Limit && !way.is_empty() {
            *ways.entry(std::mem::take(&mut way)).or_insert(0) += 1;
        }
        way.push(stage);
        if stage == Stage::Nic {
            *ways.entry(std::mem::take(&mut way)).or_insert(0) += 1;
        }
    }
    ways
}

/// Runs the scenario with limits of these keys; returns the stages of its packets, and of the
/// limit's packets how many came, and how many it has let pass.
fn passed(world: &dyn World, keys: &str) -> (BTreeMap<Vec<Stage>, u64>, [u64; 2]) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let text = format!("{TEXT}{keys}");
    let plan = Scenario::parse("stages.toml", &text).unwrap().plan(None).unwrap();
    record();
    let options = Options { world, threads: Some(1), ..Options::default() };
    let summary = run(&plan, &options).unwrap();
    let stages = recorded(None);
    assert!(!matches!(summary.status, Status::Interrupted), "{:?}", summary.warnings);
    let (ways, limit) = (ways(&stages), &summary.limits[0]);
    ways.keys().for_each(|way| assert!(way.is_sorted(), "{way:?}"));
    (ways, [limit.packets, limit.packets - limit.local_drops])
}

/// The stages of data, in core's order.
const DATA: [Stage; 4] = [Stage::Importance, Stage::Rank, Stage::Label, Stage::Nic];

/// Of a driver whose kernels have the limits.
fn assert_kernels(world: &dyn World, keys: &str) {
    let (ways, [came, passed]) = passed(world, keys);
    assert!(ways.contains_key(&DATA[..]), "{ways:?}");
    // The shim marks each packet of the kernel, and none of its own.
    let marked = ways.iter().filter(|(way, _)| way.contains(&Stage::Importance));
    let marked: u64 = marked.map(|(_, count)| count).sum();
    // Some pass after the limit's last reading.
    let late = (came - passed) / 2;
    assert!(late > 20 && marked <= passed + late, "{came} came, {passed} passed: {ways:?}");
}

#[test]
fn simulated_packets_pass_all_stages_in_cores_order() {
    for keys in [NRM, HTB] {
        let (ways, [came, _]) = passed(&Sim, keys);
        let data = [Stage::Limit, Stage::Importance, Stage::Rank, Stage::Label, Stage::FlowQueue];
        let is_data = |way: &Vec<Stage>| way.starts_with(&data);
        assert!(came > 0 && ways.keys().any(is_data), "{ways:?}");
    }
}

#[test]
fn packets_of_the_lab_pass_the_stages_in_cores_order() {
    needs!(rustix::process::geteuid().is_root(), "root, for network namespaces");
    assert_kernels(&Lab { scale: Some(1) }, NRM);
}

#[test]
fn packets_of_kernels_in_virtual_time_pass_the_stages_in_cores_order() {
    needs!(millpond_virtual::kernels::find(None));
    assert_kernels(&Virtual::default(), HTB);
}
