//! Parallel links between two switches are links of their own: each has its port, its queue and its
//! rate.

use crate::common::{fingerprint, plan, simulate};
use millpond_core::Time;
use millpond_results::Node;

fn scenario(links: usize) -> String {
    let hosts: String = (0..16)
        .map(|host| {
            let switch = if host < 8 { "left" } else { "right" };
            format!(
                "{{ a = \"host{host}\", b = \"{switch}\", rate = \"10Gbps\", delay = \"1us\" }},\n"
            )
        })
        .collect();
    let between =
        "{ a = \"left\", b = \"right\", rate = \"10Gbps\", delay = \"1us\" },\n".repeat(links);
    let rows: String =
        (0..8).map(|host| format!("[0, {host}, {}, 2000000],\n", host + 8)).collect();
    format!(
        r#"
        name = "parallel"
        until = "flows-complete"
        [topology]
        kind = "file"
        graph = {{ hosts = 16, switches = [{{ name = "left" }}, {{ name = "right" }}], links = [
        {hosts}{between}] }}
        [transport]
        kind = "dctcp"
        [capture]
        queues = {{ every = "20us", ports = ["left"] }}
        [[traffic]]
        kind = "flows"
        rows = [{rows}]
        "#
    )
}

#[test]
fn parallel_links_add_up_and_each_has_a_queue() {
    let end = |links: usize| {
        let plan = plan(&scenario(links), &[]);
        assert_eq!(plan.topology.links.len(), 16 + links);
        assert_eq!(
            plan.topology.switches.iter().map(|s| s.ports as usize).collect::<Vec<_>>(),
            [8 + links, 8 + links]
        );
        let (_, records) = simulate(&plan, 1);
        let last = records.flows.iter().map(|flow| flow.finish.unwrap()).max().unwrap();
        let queued = |port: u16| {
            records
                .queues
                .iter()
                .any(|q| q.node == Node::Switch(0) && q.port == port && q.bytes > 0)
        };
        (last, (8..8 + links as u16).filter(|port| queued(*port)).count())
    };
    let ((one, _), (four, queues)) = (end(1), end(4));
    // Eight flows of 2 MB over 10 Gb/s take 12.8 ms and more; hashed over four links they take the
    // fullest one's time.
    assert!(one > Time::from_us(12_800), "{one}");
    assert!(four < one && queues >= 2, "{four} {queues}");
    let sprayed = plan(&scenario(4), &[("switch.path.kind", "spray")]);
    let (_, records) = simulate(&sprayed, 1);
    let last = records.flows.iter().map(|flow| flow.finish.unwrap()).max().unwrap();
    assert!(
        last < Time::from_us(12_800 / 4 * 2) && last > Time::from_us(3_200),
        "all four carry the load: {last}"
    );
}

#[test]
fn partitions_change_nothing_there() {
    let text = scenario(3);
    let one = fingerprint(&plan(&text, &[]), 1);
    assert!(fingerprint(&plan(&text, &[]), 2) == one);
    assert!(
        fingerprint(&plan(&text, &[("engine.partitions", "one"), ("engine.ports", "general")]), 1)
            == one
    );
}
