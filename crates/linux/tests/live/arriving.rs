//! What arrives from a host that knows of no limit.

use crate::place::{Place, ip};
use millpond_linux::limit::show;
use std::fs;
use std::time::Duration;

/// One connection without ECN, as fast as two namespaces are, into a limit at ingress: beyond `drop`
/// it loses some packets and others pass, and it gets no more than the limit. As published none
/// passes.
#[test]
fn a_connection_behind_a_limit_at_ingress_loses_one_packet_at_a_time() {
    let Some(place) = Place::with_network("arriving") else { return };
    let [sender, receiver] = ["sender", "receiver"].map(|name| place.cgroup.join(name));
    for folder in [&sender, &receiver] {
        fs::create_dir(folder).unwrap();
    }
    assert!(place.networks.iter().all(|network| ip(&["-n", network, "link", "set", "lo", "up"])));
    let limit = "[[limit]]\nname = \"t\"\ncgroup = \"CGROUP/receiver\"\ndirection = \"ingress\"\nrate = \"200Mbps\"\n";
    let run = |more: &str| {
        place.apply(&place.file("a.toml", &format!("{limit}{more}"))).unwrap();
        let mut sink = place.child_at(1, "receive", &[receiver.display().to_string(), String::new()]);
        std::thread::sleep(Duration::from_millis(300));
        let args = [sender.display().to_string(), place.networks[0].clone(), "1".into(), "3000".into()];
        place.child("tcp", &args).wait().unwrap();
        sink.kill().unwrap();
        sink.wait().unwrap();
        let seen = show::read(&place.bpffs, None).unwrap().limits.remove(0);
        millpond_linux::limit::apply::remove_all(&place.bpffs).unwrap();
        let passed = (seen.bytes - seen.dropped_bytes) as f64 * 8e-6 / seen.seconds;
        eprintln!("{more:?}: {passed:.1} of 200 Mb/s, {} of {} packets dropped", seen.dropped, seen.packets);
        assert!(seen.dropped > 0 && passed < 220.0, "{seen:?}");
        seen
    };
    let (spaced, published) = (run(""), run("profile = \"published\"\n"));
    assert!(spaced.bypassed > 0 && published.bypassed == 0, "{spaced:?} {published:?}");
}
