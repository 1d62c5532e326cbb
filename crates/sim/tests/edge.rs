//! The edge against numbers that are known without a simulation: what labels, lists and failures do
//! to elephants.

use crate::common::{plan, simulate};
use millpond_core::counters::DropReason;
use millpond_core::edge::gro::Cause;

/// Four leaves, four spines; the four hosts of leaf 0 send to those of leaf 3.
const LEAF_TO_LEAF: &str = r#"
    name = "leaf-to-leaf"
    duration = "60ms"
    warm-up = "20ms"
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 4
    hosts-per-leaf = 4
    host-link = { rate = "10Gbps", delay = "1us" }
    fabric-link = { rate = "10Gbps", delay = "1us" }
    [host]
    receive-offload = { kind = "presto-gro" }
    [switch]
    buffer = { kind = "shared", size = "9MB", alpha = 1.0 }
    path = { kind = "labels" }
    [edge]
    load-balancing = { kind = "presto" }
    [transport]
    kind = "cubic"
    min-rto = "5ms"
    [[traffic]]
    name = "elephant"
    kind = "flows"
    rows = [["0us", 0, 12, 1000000000], ["0us", 1, 13, 1000000000],
            ["0us", 2, 14, 1000000000], ["0us", 3, 15, 1000000000]]
"#;

/// Mean goodput of the four, as a part of what a host link can carry of payload.
fn share(set: &[(&str, &str)]) -> f64 {
    let plan = plan(LEAF_TO_LEAF, set);
    let (outcome, _) = simulate(&plan, 2);
    let bits = outcome.hosts.measured_bytes as f64 * 8.0;
    bits / (outcome.simulated - plan.warm_up).as_s_f64() / 4.0 / (10e9 * 1460.0 / 1500.0)
}

#[test]
fn four_paths_carry_four_hosts() {
    let presto = share(&[]);
    assert!(presto > 0.95, "{presto}");
}

/// Flows that draw one of four paths for good share some of them; found large after 2 ms, each gets
/// one of its own.
#[test]
fn a_scheduler_gives_four_hosts_four_paths() {
    let hedera = [("edge.load-balancing.kind", "hedera"), ("edge.load-balancing.period", "2ms")];
    let (scheduled, drawn) = (share(&hedera), share(&[hedera[0]]));
    assert!(scheduled > 0.95 && drawn < 0.8, "{scheduled} {drawn}");
    let (outcome, _) = simulate(&plan(LEAF_TO_LEAF, &hedera), 2);
    let [rounds, counts @ ..] =
        ["rounds", "large", "placed", "crowded"].map(|name| outcome.counters.get("hedera", name));
    assert_eq!(counts, [4, 4, 0]);
    assert_eq!(rounds, 29, "one each 2 ms of 60, but none at the end");
}

/// One of four uplinks is dead. The switch moves its flowcells onto the next, which so has two of
/// every four: each flow gets a half. Then the controller's lists leave the tree out: three uplinks
/// for four hosts.
#[test]
fn the_stages_of_a_failure_are_a_half_and_three_quarters() {
    let dead = |controller: &str| {
        // Known to the switches at once, and to the controller at the beginning or never.
        let text = LEAF_TO_LEAF.replace(
            "    [[traffic]]",
            "    [[failure]]\n    link = [\"leaf0\", \"spine1\"]\n    at = \"0us\"\n    detect = \
             \"0us\"\n    [[traffic]]",
        );
        let plan = plan(&text, &[("edge.load-balancing.controller-delay", controller)]);
        let (outcome, _) = simulate(&plan, 2);
        let bits = outcome.hosts.measured_bytes as f64 * 8.0;
        bits / (outcome.simulated - plan.warm_up).as_s_f64() / 4.0 / (10e9 * 1460.0 / 1500.0)
    };
    let (failover, weighted) = (dead("off"), dead("0us"));
    println!("failover {failover:.3}, weighted {weighted:.3}");
    assert!((0.45..0.55).contains(&failover), "{failover}");
    assert!((0.675..0.825).contains(&weighted), "{weighted}");
}

/// Three paths of 10 Gb/s and one of 2 between three hosts and three. Spread alike, the whole is
/// held to four times the narrow path, 8 Gb/s; by weight (5, 5, 5, 1) three hosts' 30 would fit.
#[test]
fn a_narrow_path_gets_what_it_can_carry() {
    let links = (0..6).map(|h| {
        format!("{{ a = \"host{h}\", b = \"leaf{}\", rate = \"10Gbps\", delay = \"1us\" }}", h / 3)
    });
    let fabric = (0..8).map(|i| {
        let (leaf, spine) = (i / 4, i % 4);
        let rate = if spine == 3 { "2Gbps" } else { "10Gbps" };
        format!(
            "{{ a = \"leaf{leaf}\", b = \"spine{spine}\", rate = \"{rate}\", delay = \"1us\" }}"
        )
    });
    let links: Vec<String> = links.chain(fabric).collect();
    let names = ["leaf0", "leaf1", "spine0", "spine1", "spine2", "spine3"]
        .map(|name| format!("{{ name = \"{name}\" }}"));
    let graph = format!(
        "{{ hosts = 6, switches = [{}], links = [{}] }}",
        names.join(", "),
        links.join(", ")
    );
    let from = LEAF_TO_LEAF.find("kind = \"leaf-spine\"").unwrap();
    let to = LEAF_TO_LEAF.find("[host]").unwrap();
    let text = format!(
        "{}kind = \"file\"\ngraph = {graph}\n{}",
        &LEAF_TO_LEAF[..from],
        &LEAF_TO_LEAF[to..]
    );
    let rows = text.find("rows =").unwrap();
    let text = format!(
        "{}rows = [[\"0us\", 0, 3, 1000000000], [\"0us\", 1, 4, 1000000000], [\"0us\", 2, 5, \
         1000000000]]\n",
        &text[..rows]
    );
    let gbps = |path: &str| {
        let plan = plan(&text, &[("switch.path.kind", path)]);
        let (outcome, _) = simulate(&plan, 2);
        outcome.hosts.measured_bytes as f64 * 8e-9 / (outcome.simulated - plan.warm_up).as_s_f64()
    };
    let (weighted, alike) = (gbps("labels"), gbps("ecmp"));
    println!("weighted {weighted:.2}, alike {alike:.2}");
    // A flowcell takes five times as long on the narrow path, which TCP does not take quite calmly.
    assert!(weighted > 2.5 * 8.0, "{weighted}");
    assert!(alike < 8.0, "{alike}");
}

/// Stock offload ejects a segment whenever two flowcells interleave; Presto's hands up what was
/// sent.
#[test]
fn offload_by_flowcell_hides_what_stock_offload_shows() {
    let run = |kind: &str| {
        let (outcome, _) = simulate(&plan(LEAF_TO_LEAF, &[("host.receive-offload.kind", kind)]), 2);
        let offload = |name: &str| outcome.counters.get(kind, name);
        let all = Cause::ALL
            .iter()
            .map(|cause| offload(&format!("segments-{}", cause.name())))
            .sum::<u64>();
        (outcome.hosts.out_of_order, offload("segments-ejected"), offload("segments-timeout"), all)
    };
    let ((stock, ejected, _, _), (presto, _, timed_out, all)) =
        (run("stock-gro"), run("presto-gro"));
    assert!(ejected > 1_000);
    assert!(stock > 10 * presto.max(1), "{stock} {presto}");
    assert!(timed_out * 100 < all, "{timed_out} of {all}");
}

/// Switches hash onto a link that is dead, and nobody has found that out: a flow whose label leads
/// there gets through once it has drawn another, and never without that. One packet a flow, since
/// what its acknowledgements meet is another matter. Labels are all that differs, so flows that
/// began well are the same in both.
#[test]
fn a_timeout_takes_a_flow_off_a_dead_path() {
    let rows: Vec<String> =
        (0..64).map(|n| format!("[\"{}us\", {}, {}, 1000]", 20 * n, n % 4, 4 + n % 4)).collect();
    let text = format!(
        "name = \"dead\"\nduration = \"400ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = \
         2\nspines = 4\nhosts-per-leaf = 4\n[edge]\nload-balancing = {{ kind = \"plb\" \
         }}\n[transport]\nkind = \"dctcp\"\nmin-rto = \"5ms\"\ninitial-rto = \"5ms\"\nhandshake = \
         false\n[[failure]]\nlink = [\"leaf0\", \"spine1\"]\nat = \"0us\"\ndetect = \
         \"10s\"\nconverge = \"never\"\n[[traffic]]\nname = \"short\"\nkind = \"flows\"\nrows = \
         [{}]\n",
        rows.join(", ")
    );
    let finished = |redraws: &str| {
        let plan = plan(&text, &[("edge.load-balancing.redraw-on-timeout", redraws)]);
        let (outcome, records) = simulate(&plan, 2);
        assert!(outcome.audit.dropped[DropReason::LinkDown as usize].packets > 10);
        let mut flows: Vec<_> = records.flows.iter().map(|flow| (flow.flow, flow.finish)).collect();
        flows.sort_unstable();
        flows
    };
    let (moved, stuck) = (finished("true"), finished("false"));
    let lost = stuck.iter().filter(|(_, finish)| finish.is_none()).count();
    println!("{lost} of {} never got through", stuck.len());
    assert_eq!((moved.len(), stuck.len()), (64, 64));
    assert!((8..24).contains(&lost), "a fourth has drawn the dead link: {lost}");
    for (with, without) in moved.iter().zip(&stuck) {
        let finish = with.1.expect("it draws until it gets through");
        assert!(
            without.1.is_none_or(|finish_without| finish_without == finish),
            "{with:?} {without:?}"
        );
    }
}
