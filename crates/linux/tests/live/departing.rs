//! Departure times: refused where no interface keeps them, and without loss where `fq` does.

use crate::place::{Place, Running, Sink};
use millpond_linux::limit::{Error, show};
use millpond_worlds::needs;
use std::process::Command;

const LIMIT: &str =
    "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP\"\nrate = \"100Mbps\"\nprofile = \"edt\"\n";

fn fq(place: &Place) -> bool {
    let args = ["-n", &place.networks[0], "qdisc", "replace", "dev", "va", "root", "fq"];
    Command::new("tc").args(args).output().is_ok_and(|out| out.status.success())
}

#[test]
fn a_cgroup_whose_interface_keeps_no_departure_times_is_refused() {
    let place = needs!(Place::with_network("no-fq"));
    let file = place.file("a.toml", LIMIT);
    // The interface that counts is that of the cgroup's processes.
    let _sender = Running(place.sender("flood", &["20000"]));
    let procs = place.cgroup.join("cgroup.procs");
    while std::fs::read_to_string(&procs).unwrap().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let error = place.apply(&file).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, Error::Cgroup { .. }), "{said}");
    for part in ["limit \"t\"", "va has noqueue", "tc qdisc replace dev va root fq", "nsenter"] {
        assert!(said.contains(part), "{part} not in {said}");
    }
    assert!(matches!(show::read(&place.bpffs, None), Err(Error::Nothing)), "nothing is installed");
}

/// 200 Mb/s for a second into a limit of 100: a socket's buffer is full before anything is dropped.
#[test]
fn a_datagram_beyond_the_limit_waits() {
    let place = needs!(Place::with_network("fq"));
    needs!(fq(&place), "sch_fq (tc qdisc add dev va root fq)");
    let sink = Sink::new(&place);
    place.apply(&place.file("a.toml", LIMIT)).unwrap();
    let (most, mean) = sink.watch(place.sender("tcp", &["4", "3000"]));
    assert!(most < 103.0 && mean > 90.0, "{most} Mb/s in the busiest second, {mean} on average");
    let before = show::read(&place.bpffs, None).unwrap().limits[0].dropped;
    assert!(place.sender("udp", &[]).wait().unwrap().success());
    let q = &show::read(&place.bpffs, None).unwrap().limits[0];
    assert!(q.packets > 3000 && q.dropped == before, "{} of {} dropped", q.dropped, q.packets);
}
