//! Small files in htsim's grammar.

use super::*;
use crate::bad::damaged;
use millpond_core::random::Stream;

fn imported(matrix: &str, topology: Option<&str>) -> Result<Imported> {
    let topology = topology.map(|text| Source::of("x.topo", text));
    of("x", &Source::of("x.cm", matrix), topology.as_ref())
}

fn flows(matrix: &str) -> String {
    imported(matrix, None).unwrap().files[1].1.clone()
}

fn fails(matrix: &str) -> String {
    imported(matrix, None).unwrap_err().to_string()
}

const PLAIN: &str =
    "Nodes 16\nConnections 2\n0->5 start 1500000 size 2000000\n5->0 id 7 start 0 size 10\n";

#[test]
fn a_plain_matrix_is_a_list() {
    assert_eq!(flows(PLAIN), "start_us,src,dst,bytes\n1.5,0,5,2000000\n0,5,0,10\n");
    assert_eq!(flows(&PLAIN.replace('\n', "\r\n")), flows(PLAIN), "lines may end as on Windows");
    let all = imported(PLAIN, None).unwrap();
    assert!(
        all.files[0].1.contains("k = 4") && all.keys.is_empty() && all.facts.len() == 3,
        "{all:?}"
    );
}

#[test]
fn triggers_become_after() {
    let barrier = "Nodes 16\nConnections 4\nTriggers 2\n0->1 id 1 start 0 size 10 \
                   send_done_trigger 1\n2->1 id 2 start 5 size 10 recv_done_trigger 1\n1->3 id 3 \
                   trigger 1 size 20 send_done_trigger 2\n3->4 id 4 trigger 2 size 30\ntrigger id \
                   1 barrier count 2\ntrigger id 2 oneshot\n";
    let expected = "start_us,src,dst,bytes,id,after\n0,0,1,10,1,\n0.000005,2,1,10,2,\n0,1,3,20,3,\
                    1 2\n0,3,4,30,4,3\n";
    assert_eq!(flows(barrier), expected);
    let chain = "Nodes 16\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 10 send_done_trigger \
                 9\n0->2 id 2 trigger 9 size 10 send_done_trigger 9\n0->3 id 3 trigger 9 size \
                 10\ntrigger id 9 multishot\n";
    assert!(flows(chain).ends_with("\n0,0,2,10,2,1\n0,0,3,10,3,2\n"));
    // Two at a time: who goes on depends on who is done.
    let two = chain
        .replace("0->3 id 3 trigger 9 size 10", "0->3 id 3 start 0 size 10 send_done_trigger 9");
    assert!(
        fails(&two).starts_with("x.cm:7: trigger 9 is multishot with several flows at a time"),
        "{}",
        fails(&two)
    );
}

#[test]
fn errors_have_their_line() {
    let cases = [
        (
            PLAIN.replace("0->5", "0->16"),
            "x.cm:3: destination: there is no node 16; they are 0 to 15",
        ),
        (
            PLAIN.replace("Connections 2", "Connections 3"),
            "x.cm:2: Connections: 3 are announced, and there are 2",
        ),
        (
            PLAIN.replace("start 0", "start -1"),
            "x.cm:4: start: \"-1\" is not a time in picoseconds",
        ),
        (PLAIN.replace("start 0", ""), "x.cm:4: a flow needs a start or a trigger"),
        (
            PLAIN.replace("size 10", "siez 10"),
            "x.cm:4: a flow needs a size; is \"siez\" meant as \"size\"?",
        ),
        (PLAIN.replace(" size 10", ""), "x.cm:4: a flow needs a size"),
        (PLAIN.replace("size 10", "size"), "x.cm:4: size has no value"),
        (PLAIN.replace("id 7 start 0", "id 7 trigger 3"), "x.cm:4: there is no trigger 3"),
        (PLAIN.replace("Nodes 16\n", ""), "x.cm:1: there is no line `Nodes N`"),
        (
            PLAIN.replace("Nodes 16", "Nodes 17"),
            "x.cm:1: 17 nodes are no fat tree (k³/4: 16, 54, 128, …); give its topology by \
             --topology",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(fails(&text), expected);
    }
    let trigger = |line: &str| {
        format!(
            "Nodes 16\nConnections 1\nTriggers 1\n0->1 id 1 trigger 1 size 9 send_done_trigger \
             1\n{line}\n"
        )
    };
    assert_eq!(
        fails(&trigger("trigger id 1 barrier count 2")),
        "x.cm:5: trigger 1 never fires: it waits for 2 flows, and 1 name it"
    );
    assert_eq!(
        fails(&trigger("trigger id 1 oneshot")),
        "x.cm:4: 0->1 waits for itself, by way of triggers"
    );
    assert_eq!(
        fails(&trigger("trigger id 1")),
        "x.cm:5: a trigger needs to be oneshot, multishot or barrier"
    );
    let nobody = trigger("trigger id 1 oneshot").replace(" send_done_trigger 1", "");
    assert_eq!(fails(&nobody), "x.cm:5: trigger 1 never fires: no flow names it");
}

fn fates(all: &Imported) -> Vec<(&str, &Fate)> {
    all.keys.iter().map(|told| (told.text.as_str(), &told.fate)).collect()
}

#[test]
fn what_is_not_modelled_or_unknown_is_reported() {
    let text = PLAIN
        .replace("size 10", "size 10 prio 3 colour 7")
        .replace("Nodes 16", "Nodes 16\nConections 2");
    let all = imported(&text, None).unwrap();
    let [
        (strange, Fate::Unknown(near)),
        ("prio 3", Fate::Missing(_)),
        ("colour 7", Fate::Unknown(_)),
    ] = fates(&all)[..]
    else {
        panic!("{:?}", all.keys)
    };
    assert!(strange == "Conections 2" && near.contains("did you mean \"Connections\"?"), "{near}");
    assert_eq!(flows(&text), flows(PLAIN));
    let own = PLAIN.replace("0->5", "5->5");
    assert!(matches!(fates(&imported(&own, None).unwrap())[..], [("5->5", Fate::LeftOut(_))]));
    assert_eq!(flows(&own), "start_us,src,dst,bytes\n0,5,0,10\n");
}

#[test]
fn messages_are_flows_and_have_no_order() {
    let fate = |text: &str| {
        imported(text, None).unwrap().keys.iter().map(|told| told.fate.clone()).collect::<Vec<_>>()
    };
    for message in ["msg start", "msg 1 start"] {
        let one = PLAIN.replace("id 7 start", &format!("id 7 {message}"));
        let one = one.replace("1500000", "1.9");
        assert!(matches!(&fate(&one)[..], [Fate::Becomes(_)]), "{:?}", fate(&one));
        assert_eq!(flows(&one), "start_us,src,dst,bytes\n1,0,5,2000000\n0,5,0,10\n");
    }
    // Between the same nodes without an id, and of one id.
    for two in [
        PLAIN.replace("0->5 start", "5->0 msg start").replace("id 7 start", "msg start"),
        PLAIN
            .replace("0->5 start", "5->0 id 7 msg start")
            .replace("id 7 start 0", "id 7 msg start 3"),
    ] {
        let found = fate(&two);
        assert!(matches!(&found[..], [Fate::Missing(_), Fate::Missing(_)]), "{found:?}");
    }
    let others = PLAIN.replace("0->5 start", "0->5 id 7 msg start");
    assert!(fails(&others).ends_with("id 7 is that of line 3 as well"), "{}", fails(&others));
}

#[test]
fn a_flow_without_an_end_ends_with_the_run() {
    let all = imported(&PLAIN.replace("size 10", "size 0"), None).unwrap();
    // The programs' default end is a millisecond.
    assert!(all.files[0].1.contains("duration = \"1001500ns\""), "{}", all.files[0].1);
    assert!(all.files[1].1.ends_with("\n0,5,0,1099511627776\n"), "{}", all.files[1].1);
    assert!(matches!(fates(&all)[..], [("size 0", Fate::Missing(_))]));
}

/// The l-th link of a switch, by htsim's wiring.
#[test]
fn failures_are_of_the_link_that_they_name() {
    let failing = |failure: &str, topology: Option<&str>| {
        let text = PLAIN.replace("Nodes 16", &format!("Nodes 16\nFailures 1\nfailure {failure}"));
        imported(&text, topology)
            .map(|all| all.files[0].1.clone())
            .map_err(|error| error.to_string())
    };
    let link =
        |ends: &str| format!("[[failure]]\nlink = [{ends}]\nat = \"0us\"\nconverge = \"0us\"\n");
    for (failure, ends) in [
        ("switch_type CORE switch_id 0 link_id 1", "\"agg2\", \"core0\""),
        ("switch_type AGG switch_id 1 link_id 1", "\"agg1\", \"core3\""),
        ("switch_type TOR switch_id 3 link_id 0", "\"tor3\", \"agg2\""),
    ] {
        let text = failing(failure, None).unwrap();
        assert!(text.contains(&link(ends)) && text.contains("kind = \"file\""), "{text}");
    }
    let bundled = TWO_TIERS.replace(
        "Radix_Down 4\nDownlink_Latency_ns 500",
        "Radix_Down 8\nBundle 2\nDownlink_Latency_ns 500",
    );
    let text = failing("switch_type TOR switch_id 1 link_id 0", Some(&bundled)).unwrap();
    assert!(text.contains("link = [\"tor1\", \"agg0\"]\nnumber = 0\n"), "{text}");
    for (failure, expected) in [
        ("switch_type AGG switch_id 8 link_id 0", "x.cm:3: there is no agg8: there are 8"),
        ("switch_type AGG switch_id 0 link_id 2", "x.cm:3: agg0 has no link 2 of 2"),
        (
            "switch_type HUB switch_id 0 link_id 2",
            "x.cm:3: switch_type is TOR, AGG or CORE, not \"HUB\"",
        ),
        (
            "switch_type AGG switch_id 0",
            "x.cm:3: a failure needs switch_type, switch_id and link_id",
        ),
    ] {
        assert_eq!(failing(failure, None).unwrap_err(), expected);
    }
}

#[test]
fn queues_of_a_tier_are_its_ports_buffer() {
    let queues = TWO_TIERS
        .replace("Radix_Up 2\n", "Radix_Up 2\nQueue_Up 100\n")
        .replace("Tier 1\n", "Tier 1\nQueue_Down 50\n");
    let all = imported(PLAIN, Some(&queues)).unwrap();
    let buffer = "buffer = { kind = \"per-port\", size = { tier-0 = \"off\", tier-1 = \"off\", \
                  others = \"auto\" }, packets = { tier-0 = 100, tier-1 = 50 } }";
    assert!(all.files[0].1.contains(buffer), "{}", all.files[0].1);
    assert!(all.keys.iter().all(|told| matches!(told.fate, Fate::Becomes(_))), "{:?}", all.keys);
    let unlike = queues.replace("Queue_Up 100\n", "Queue_Up 100\nQueue_Down 80\n");
    let told = imported(PLAIN, Some(&unlike)).unwrap().keys;
    assert_eq!(told.iter().filter(|told| matches!(told.fate, Fate::Missing(_))).count(), 2);
}

const TWO_TIERS: &str = "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps \
                         100\nRadix_Down 4\nRadix_Up 2\nDownlink_Latency_ns \
                         1000\nSwitch_Latency_ns 300\nOversubscribed 2\nTier \
                         1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 500\n";

#[test]
fn tiers_become_switches_and_links() {
    let json = |topology: &str| {
        imported(PLAIN, Some(topology)).map(|all| all.files[2].1.clone()).map_err(|e| e.to_string())
    };
    let text = json(TWO_TIERS).unwrap();
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (list["hosts"].as_u64(), list["links"].as_array().unwrap().len()),
        (Some(16), 16 + 8)
    );
    assert_eq!(
        list["links"][5].to_string(),
        r#"{"a":"host5","b":"tor1","delay":"1150ns","rate":"100Gbps"}"#
    );
    assert_eq!(
        list["links"][16].to_string(),
        r#"{"a":"tor0","b":"agg0","delay":"650ns","rate":"100Gbps"}"#
    );
    // Bundles are parallel links.
    let bundled = TWO_TIERS.replace(
        "Radix_Down 4\nDownlink_Latency_ns 500",
        "Radix_Down 8\nBundle 2\nDownlink_Latency_ns 500",
    );
    let list: serde_json::Value = serde_json::from_str(&json(&bundled).unwrap()).unwrap();
    assert_eq!(
        (list["switches"].as_array().unwrap().len(), list["links"].as_array().unwrap().len()),
        (5, 16 + 8)
    );
    assert_eq!(list["links"][16], list["links"][17]);
    let cases = [
        (TWO_TIERS.replace("Radix_Up 2\n", ""), "x.topo:4: tier 0 needs radix_up"),
        (
            TWO_TIERS.replace("Nodes 16", "Nodes 32"),
            "x.topo:1: 32 nodes, and the connection matrix has 16",
        ),
        (
            TWO_TIERS.replace("Oversubscribed 2\n", ""),
            "x.topo:4: tier 0 is not 1-fold oversubscribed: 400 Gb/s down, 200 up",
        ),
        (
            TWO_TIERS.replace("Radix_Up 2", "Radix_Upp 2"),
            "x.topo:4: tier 0 needs radix_up; is \"Radix_Upp\" in line 7 meant as it?",
        ),
        (
            TWO_TIERS.replace("Radix_Up 2", "Radix_Up x"),
            "x.topo:7: Radix_Up: \"x\" is not a whole number",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(json(&text).unwrap_err(), expected);
    }
}

/// A pod's aggregation switches reach different cores.
#[test]
fn three_tiers_are_a_fat_tree() {
    let tier = |number: u32, down: u32, up: &str| {
        format!(
            "Tier {number}\nDownlink_speed_Gbps 10\nRadix_Down {down}\n{up}Downlink_Latency_ns \
             1000\n"
        )
    };
    let up = "Radix_Up 2\n";
    let topology = format!(
        "Nodes 16\nTiers 3\nPodsize 4\n{}{}{}",
        tier(0, 2, up),
        tier(1, 2, up),
        tier(2, 4, "")
    );
    let all = imported(PLAIN, Some(&topology)).unwrap();
    let list: serde_json::Value = serde_json::from_str(&all.files[2].1).unwrap();
    assert_eq!(list["switches"].as_array().unwrap().len(), 8 + 8 + 4);
    let links = list["links"].as_array().unwrap();
    let of = |agg: &str| {
        links
            .iter()
            .filter(|link| link["a"] == agg)
            .map(|link| link["b"].as_str().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("agg0"), of("agg1"), of("agg2")),
        (vec!["core0", "core2"], vec!["core1", "core3"], vec!["core0", "core2"])
    );
}

/// A matrix without connections is a network that waits for its traffic.
#[test]
fn a_matrix_without_connections_has_no_traffic() {
    let all = imported("Nodes 16\nConnections 0\n", None).unwrap();
    assert!(!all.files[0].1.contains("[[traffic]]") && all.files.len() == 1, "{:?}", all.files);
    assert!(all.facts.iter().any(|fact| fact.contains("has no traffic")), "{:?}", all.facts);
}

/// Damaged matrices and topologies are scenarios or errors.
#[test]
fn damaged_files_are_errors_and_end_no_program() {
    let (mut random, mut taken) = (Stream::from_key(57), 0);
    let matrix = "Nodes 16\nConnections 4\nTriggers 2\nFailures 1\n0->1 id 1 start 0 size 10 \
                  send_done_trigger 1\n2->1 id 2 start 5 size 10 recv_done_trigger 1\n1->3 id 3 \
                  trigger 1 size 20 send_done_trigger 2 prio 1\n3->4 id 4 trigger 2 size \
                  30\ntrigger id 1 barrier count 2\ntrigger id 2 oneshot\nfailure switch_type TOR \
                  switch_id 1 link_id 0\n";
    for round in 0..8_000 {
        let mut texts = [matrix, TWO_TIERS].map(String::from);
        texts[round % 2] = damaged(&texts[round % 2], &mut random);
        let topology = (round % 4 > 0).then_some(&texts[1][..]);
        taken += usize::from(imported(&texts[0], topology).is_ok());
    }
    assert!(taken > 100, "{taken} were taken");
}
