//! Topologies from a file, captures and failures: from text to plan, and what is wrong with its
//! place.

use millpond_core::Time;
use millpond_scenario::plan::{ConnectionCapture, QueueCapture};
use millpond_scenario::topology::End;
use millpond_scenario::{Plan, Scenario};
use std::path::{Path, PathBuf};

const RING: &str = r#"{ "hosts": 3, "switches": [{ "name": "a" }, { "name": "b" }, { "name": "c" }],
  "links": [
    { "a": "host0", "b": "a", "rate": "10Gbps", "delay": "1us" },
    { "a": "host1", "b": "b", "rate": "10Gbps", "delay": "1us" },
    { "a": "host2", "b": "c", "rate": "10Gbps", "delay": "1us" },
    { "a": "a", "b": "b", "rate": "40Gbps", "delay": "2us" },
    { "a": "b", "b": "c", "rate": "40Gbps", "delay": "2us" },
    { "a": "c", "b": "a", "rate": "40Gbps", "delay": "2us" } ] }"#;

struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, json: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("millpond-network-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("ring.json"), json).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn plan_in(base: &Path, text: &str) -> Result<Plan, String> {
    let scenario = Scenario::parse("t.toml", text).map_err(|e| e.to_string())?.with_base(base);
    scenario.plan(None, &[], None).map_err(|e| e.to_string())
}

const FILE: &str = "duration = \"1ms\"\n[topology]\nkind = \"file\"\npath = \"ring.json\"\n";

#[test]
fn a_network_from_a_file_is_inlined_in_the_resolved_scenario() {
    let folder = Folder::with("inlined", RING);
    let plan = plan_in(&folder.0, FILE).unwrap();
    assert_eq!(
        (plan.topology.hosts, plan.topology.switches.len(), plan.topology.links.len()),
        (3, 3, 6)
    );
    // a: host0, then the links to b and c.
    assert_eq!(plan.topology.routes[0].towards(1), &[1]);
    assert_eq!(plan.topology.routes[0].towards(2), &[2]);
    let again = plan_in(Path::new("/nowhere"), &plan.resolved)
        .unwrap_or_else(|e| panic!("{e}\n{}", plan.resolved));
    assert_eq!(again.resolved, plan.resolved);
    assert_eq!(format!("{:?}", again.topology), format!("{:?}", plan.topology));
}

#[test]
fn what_is_wrong_in_the_file_is_told_with_file_and_place() {
    let wrong = |name: &str, json: &str, message: &str| {
        let folder = Folder::with(name, json);
        let e = plan_in(&folder.0, FILE).unwrap_err();
        assert!(e.starts_with("t.toml:4:8: ring.json: ") && e.contains(message), "{e}");
    };
    wrong("syntax", &RING.replace("\"hosts\": 3,", "\"hosts\": 3"), "line 1 column");
    wrong(
        "node",
        &RING.replace("\"b\": \"c\", \"rate\": \"40", "\"b\": \"d\", \"rate\": \"40"),
        "links[4].b: there is no node \"d\"",
    );
    wrong("slow", &RING.replacen("40Gbps", "1bps", 1), "too slow");
    let e = plan_in(Path::new("/nowhere"), FILE).unwrap_err();
    assert!(e.contains("ring.json: cannot be read"), "{e}");
    let e =
        plan_in(Path::new("."), "duration = \"1ms\"\n[topology]\nkind = \"file\"\n").unwrap_err();
    assert!(e.contains("[topology] needs `path`"), "{e}");
}

const SMALL: &str = "duration = \"1ms\"\n[topology]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n";

#[test]
fn captures_name_hosts_and_ports() {
    let text = format!(
        "{SMALL}[capture]\nqueues = \"10us\"\npcap = [\"host3\", \"leaf1:3\", \"host3\"]\nsnaplen \
         = \"off\"\ntrace = true\n"
    );
    let plan = plan_in(Path::new("."), &text).unwrap();
    let taps: Vec<(&str, End)> =
        plan.capture.taps.iter().map(|t| (t.name.as_str(), t.end)).collect();
    assert_eq!(taps, [("host3", End::Host(3)), ("leaf1-3", End::Switch { switch: 1, port: 3 })]);
    assert_eq!(
        plan.capture.queues,
        Some(QueueCapture { every: Time::from_us(10), ports: None, flows: false })
    );
    assert_eq!(plan.capture.snaplen, u32::MAX);
    let again = plan_in(Path::new("."), &plan.resolved).unwrap();
    assert_eq!(again.resolved, plan.resolved);
    let scenario = Scenario::parse("t.toml", SMALL).unwrap();
    let set = [("capture.pcap".to_string(), "host0, spine1:0".to_string())];
    assert_eq!(scenario.plan(None, &set, None).unwrap().capture.taps.len(), 2);
}

/// Routes follow a millisecond after a failure unless it says otherwise, and those that follow
/// before the ends of the link have noticed are warned of.
#[test]
fn routes_converge_a_millisecond_after_a_failure() {
    let with = |keys: &str| {
        let text =
            format!("{SMALL}[[failure]]\nlink = [\"leaf0\", \"spine1\"]\nat = \"10us\"\n{keys}\n");
        plan_in(Path::new("."), &text).unwrap()
    };
    let converge = |keys: &str| with(keys).failures[0].converge;
    assert_eq!(converge(""), Some(Time::from_ms(1)));
    assert_eq!(converge("converge = \"20us\""), Some(Time::from_us(20)));
    assert_eq!(converge("converge = \"never\""), None);
    assert_eq!(
        plan_in(Path::new("."), &with("converge = \"never\"").resolved).unwrap().failures[0]
            .converge,
        None
    );
    let warned = |keys: &str| {
        with(keys).warnings.iter().any(|warning| warning.contains("before the switches"))
    };
    assert!(warned("detect = \"2ms\"") && warned("detect = \"20us\"\nconverge = \"0us\""));
    let warnings = with("detect = \"2ms\"").warnings;
    assert!(
        warnings[0].contains("leaf0 to spine1") && warnings[0].contains("after 1ms"),
        "{warnings:?}"
    );
    // Nobody notices a link that is only lossy, and nothing follows.
    for keys in [
        "detect = \"1ms\"",
        "detect = \"2ms\"\nconverge = \"never\"",
        "detect = \"2ms\"\nloss = 0.5",
    ] {
        assert!(!warned(keys), "{keys}");
    }
}

/// Leaf 1 has hosts 2 and 3 at its ports 0 and 1, spines 0 and 1 at its ports 2 and 3.
#[test]
fn ports_are_named_by_number_by_where_they_lead_or_all_at_once() {
    let port = |switch, port| End::Switch { switch, port };
    let ports = |names: &str| {
        let text = format!("{SMALL}[capture]\nqueues = {{ every = \"10us\", ports = {names} }}\n");
        let plan = plan_in(Path::new("."), &text).unwrap();
        let again = plan_in(Path::new("."), &plan.resolved).unwrap();
        assert_eq!(
            (&again.capture.queues, &again.resolved),
            (&plan.capture.queues, &plan.resolved)
        );
        plan.capture.queues.unwrap().ports.unwrap()
    };
    assert_eq!(ports("[\"leaf1->spine0\", \"leaf1->host3\"]"), [port(1, 1), port(1, 2)]);
    assert_eq!(ports("[\"host3\", \"leaf1:0\", \"host3->leaf1\"]"), [End::Host(3), port(1, 0)]);
    assert_eq!(ports("[\"spine1\"]"), [port(3, 0), port(3, 1)]);
    assert_eq!(ports("\"leaf1->host3, spine0->leaf1\""), [port(1, 1), port(2, 1)]);
    let text = format!("{SMALL}[capture]\npcap = [\"leaf1->spine0\", \"leaf1:2\", \"spine1\"]\n");
    let taps = plan_in(Path::new("."), &text).unwrap().capture.taps;
    assert_eq!(
        taps.iter().map(|tap| tap.name.as_str()).collect::<Vec<_>>(),
        ["leaf1-2", "spine1-0", "spine1-1"]
    );
}

#[test]
fn a_period_alone_is_short_for_the_table_and_stays_when_a_member_is_set() {
    let text = format!("{SMALL}[capture]\nqueues = \"10us\"\nconnections = \"20us\"\n");
    let scenario = Scenario::parse("t.toml", &text).unwrap();
    let set = |key: &str, value: &str| {
        scenario.plan(None, &[(key.into(), value.into())], None).unwrap().capture
    };
    let queues =
        |every, ports| Some(QueueCapture { every: Time::from_us(every), ports, flows: false });
    assert_eq!(set("capture.queues", "7us").queues, queues(7, None));
    assert_eq!(set("capture.queues.every", "7us").queues, queues(7, None));
    assert_eq!(set("capture.queues.ports", "host1").queues, queues(10, Some(vec![End::Host(1)])));
    assert_eq!(set("capture.queues", "off").queues, None);
    let connections = set("capture.connections.max", "3").connections.unwrap();
    assert_eq!(
        (connections.every, connections.max, connections.flows),
        (Time::from_us(20), 3, None)
    );
    assert_eq!(set("capture.connections.every", "off").connections, None);
}

#[test]
fn connections_are_chosen_by_flow_traffic_and_hosts() {
    let traffic = "[[traffic]]\nname = \"a\"\nkind = \"flows\"\nrows = [[0, 0, 2, 10], [1, 1, 3, \
                   10, \"b\"]]\n[[traffic]]\nname = \"ping\"\nkind = \"probe\"\n";
    let text = |keys: &str| {
        format!("{SMALL}[capture]\nconnections = {{ every = \"10us\", {keys} }}\n{traffic}")
    };
    let plan = |keys: &str| plan_in(Path::new("."), &text(keys));
    let chosen =
        plan("flows = [0, \"8..9\"], traffic = \"b\", src = \"0..1\", dst = [3]").unwrap().capture;
    let expected = ConnectionCapture {
        every: Time::from_us(10),
        flows: Some(vec![0, 8, 9]),
        classes: Some(vec![2]),
        src: Some(vec![0, 1]),
        dst: Some(vec![3]),
        max: 16,
    };
    assert_eq!(chosen.connections.unwrap(), expected);
    let wrong = |keys: &str, message: &str| {
        let e = plan(keys).unwrap_err();
        assert!(e.starts_with("t.toml:7:") && e.contains(message), "{keys}: {e}");
    };
    wrong("traffic = [\"elephants\"]", "known here: a, ping, b");
    wrong("traffic = [\"pings\"]", "did you mean `ping`");
    wrong("traffic = [\"ping\"]", "makes no flows");
    wrong("src = 4", "4 is no host; there are 4");
    wrong("dst = \"2..1\"", "runs backwards");
    wrong("flows = \"3..2\"", "runs backwards");
    wrong("flows = \"0..16\"", "names 17 flows, and 16 are sampled");
    wrong("flows = [\"x\"]", "the number of a flow");
    wrong("flow = 3", "did you mean `flows`");
    let e = plan_in(Path::new("."), &text("").replace("every = \"10us\",", "max = 3")).unwrap_err();
    assert!(e.contains("t.toml:7:23: capture.connections needs `every`"), "{e}");
    // Where the traffic is known to the last flow, so are its numbers.
    let listed = text("flows = 2").replace("kind = \"probe\"", "kind = \"flows\"\nrows = []");
    let e = plan_in(Path::new("."), &listed).unwrap_err();
    assert!(e.contains("2 is no flow; there are 2, from 0"), "{e}");
}

#[test]
fn failures_name_links() {
    let text = format!(
        "{SMALL}[[failure]]\nlink = [\"spine1\", \"leaf0\"]\nat = \"10us\"\nuntil = \
         \"1ms\"\ndetect = \"5us\"\n[[failure]]\nlink = [\"host1\", \"leaf0\"]\nat = \"0us\"\n"
    );
    let plan = plan_in(Path::new("."), &text).unwrap();
    let links: Vec<u32> = plan.failures.iter().map(|f| f.link).collect();
    assert_eq!(links, [5, 1]);
    assert_eq!(plan.failures[1].until, Time::MAX);
    assert_eq!(plan_in(Path::new("."), &plan.resolved).unwrap().failures, plan.failures);
}

#[test]
fn unknown_nodes_and_links_are_told_with_their_place() {
    let wrong = |extra: &str, message: &str| {
        let e = plan_in(Path::new("."), &format!("{SMALL}{extra}")).unwrap_err();
        assert!(e.starts_with("t.toml:7:") && e.contains(message), "{e}");
    };
    wrong("[capture]\npcap = [\"host4\"]\n", "no node \"host4\"");
    wrong("[capture]\npcap = [\"laef0:1\"]\n", "did you mean `leaf0`");
    wrong("[capture]\npcap = [\"leaf0:4\"]\n", "it has ports 0 to 3");
    wrong(
        "[capture]\nqueues = { every = \"1us\", ports = [\"leaf0->spnie1\"] }\n",
        "did you mean `spine1`",
    );
    wrong(
        "[capture]\nqueues = { every = \"1us\", ports = [\"leaf0->leaf1\"] }\n",
        "no port \"leaf0->leaf1\"",
    );
    wrong(
        "[capture]\nqueues = { every = \"1us\", ports = [\"leaf0->host2\"] }\n",
        "did you mean `leaf0->host0`",
    );
    wrong("[capture]\nqueues = { ports = [\"leaf0\"] }\n", "capture.queues needs `every`");
    wrong("[capture]\nqueues = { every = \"1us\", port = 3 }\n", "did you mean `ports`");
    wrong("[capture]\nsnaplen = 20\n", "do not hold the headers");
    wrong("[capture]\nqueues = \"1ns\"\n", "too short");
    wrong("[capture]\nqueue = \"1us\"\n", "did you mean `queues`");
    wrong("[[failure]]\nlink = [\"leaf0\", \"leaf1\"]\nat = \"1us\"\n", "there is no link between");
    wrong("[[failure]]\nlink = [\"leaf0\", \"spine7\"]\nat = \"1us\"\n", "no node \"spine7\"");
    wrong("[[failure]]\nlink = \"leaf0\"\nat = \"1us\"\n", "there is no link \"leaf0\"");
}
