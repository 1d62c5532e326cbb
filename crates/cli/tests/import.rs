//! `millpond import`: files of other simulators, as scenarios that run.

use crate::common::{self, Dir};
use std::fs;

const TOPOLOGY: &str = "6 2 5\n4 5\n0 4 25Gbps 1us 0\n1 4 25Gbps 1us 0\n2 5 25Gbps 1us 0\n3 5 \
                        25Gbps 1us 0\n4 5 25Gbps 1us 0\n";
const CONFIG: &str = "TOPOLOGY_FILE mix/topo.txt\nFLOW_FILE mix/flow.txt\nCC_MODE \
                      12\nFCT_OUTPUT_FILE mix/fct.txt\nLINK_DELAY 1us\nKMAX_MAP 1 25000000000 \
                      400\nKMIN_MAP 1 25000000000 100\nPMAX_MAP 1 25000000000 \
                      0.2\nSIMULATOR_STOP_TIME 3.0\n";

#[test]
fn hpccs_files_become_a_scenario_that_runs() {
    let dir = Dir::new("import-hpcc");
    fs::create_dir_all(dir.at("mix")).unwrap();
    dir.write("mix/topo.txt", TOPOLOGY);
    dir.write("mix/flow.txt", "2\n0 2 3 100 200000 2\n1 3 3 100 5000 2.00001\n");
    dir.write("config.txt", CONFIG);
    // A congestion control that nobody has is not modelled, and so --strict writes nothing.
    let strict = dir.run(&["import", "hpcc", "config.txt", "--out", "x", "--strict"]).ends(2);
    assert!(
        strict.err.contains("1 not modelled), and --strict is given") && !dir.at("x").exists(),
        "{}",
        strict.err
    );
    let ran = dir.run(&["import", "hpcc", "config.txt", "--out", "x", "--all"]).ends(0);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    assert!(
        ran.out.contains("9 keys and lines: ") && ran.out.contains("config.txt:3  CC_MODE 12"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("run it:  millpond run x/config.toml"), "{}", ran.out);
    let listed = dir.run(&["import", "hpcc", "config.txt", "--out", "j", "--json"]).ends(0);
    let listed = common::json(listed.out.as_bytes());
    assert_eq!(listed["keys"].as_array().unwrap().len(), 9, "{listed}");
    let control = &listed["keys"][2];
    assert_eq!(
        (&control["text"], &control["fate"]),
        (&"CC_MODE 12".into(), &"not modelled".into())
    );
    assert!(control["place"].as_str().unwrap().ends_with("config.txt:3"), "{control}");
    assert_eq!(listed["written"].as_array().unwrap().len(), 3, "{listed}");
    assert_eq!(
        common::names(&dir.at("x")),
        ["config-flows.csv", "config-topology.json", "config.toml"]
    );
    dir.run(&["run", "x/config.toml", "--out", "r", "-q"]).ends(0);
    dir.run(&["export", "r", "fct.txt"]).ends(0);
    let fct = fs::read_to_string(dir.at("fct.txt")).unwrap();
    let flows: Vec<Vec<&str>> = fct.lines().map(|line| line.split(' ').collect()).collect();
    assert!(
        flows.iter().any(|of| of[..6] == ["0b000001", "0b000201", "10000", "100", "200000", "0"]),
        "{fct}"
    );
    assert!(
        flows.iter().any(|of| of[..6] == ["0b000101", "0b000301", "10000", "100", "5000", "10000"]),
        "{fct}"
    );
    let again = dir.run(&["import", "hpcc", "config.txt", "--out", "x"]).ends(2);
    assert!(again.err.contains("is there already; --force"), "{}", again.err);
    dir.run(&["import", "hpcc", "config.txt", "--out", "x", "--force"]).ends(0);
    // A mistake is reported with its place, and nothing is written.
    dir.write("mix/flow.txt", "2\n0 2 3 100 200000 2\n4 3 3 100 5000 2.00001\n");
    let wrong = dir.run(&["import", "hpcc", "config.txt", "--out", "y"]).ends(2);
    assert!(
        wrong.err.contains("mix/flow.txt:3: node 4 is a switch") && !dir.at("y").exists(),
        "{}",
        wrong.err
    );
    dir.run(&["import", "hpcc", "nowhere.txt"]).ends(2);
}

/// Three forks in their own grammar: imported without a key that is lost, run to the end, and what
/// the run says of itself has the values asked for.
#[test]
fn scenarios_of_three_forks_run_with_the_values_asked_for() {
    let base = CONFIG.replace("CC_MODE 12\n", "") + "PACKET_PAYLOAD_SIZE 1000\nRANDOM_SEED 1\n";
    let hpcc = format!(
        "{base}CC_MODE 3\nU_TARGET 0.9\nMI_THRESH 3\nHAS_WIN 1\nVAR_WIN 1\nBUFFER_SIZE 32\n"
    );
    let tlt = format!(
        "{base}CC_MODE 1\nHPCC_WORKLOAD mix/sizes.txt\nLOAD 0.4\nFOREGROUND_RATIO \
         0.1\nNUM_BG_FLOWS 8\nINCAST_FLOW_SIZE 8000\nFOREGROUND_INCAST_FLOW_PER_HOST \
         2\nENABLE_IRN 1\nENABLE_PFC 0\nENABLE_TLT 1\nTLT_MAXBYTES_UIP 200000\nRP_TIMER 900\n"
    );
    let conweave = format!(
        "{base}CC_MODE 1\nLB_MODE 3\nFLOWGEN_START_TIME 2.0\nENABLE_IRN 0\nENABLE_PFC 1\nHAS_WIN \
         0\n"
    );
    let (five, four) = (
        "2\n0 2 3 100 200000 2\n1 3 3 100 5000 2.00001\n",
        "2\n0 2 3 200000 2\n1 3 3 5000 2.00001\n",
    );
    let cases: [(&str, &str, &str, &[&str]); 3] = [
        (
            "hpcc",
            &hpcc,
            five,
            &[
                "kind = \"hpcc\"",
                "hpcc-eta = 0.9",
                "hpcc-max-stage = 3",
                "flow-control = \"rate\"",
                "headroom-rule = \"three-delays\"",
                "per = \"25Gbps\"",
            ],
        ),
        (
            "tlt",
            &tlt,
            five,
            &[
                "dcqcn-increase-timer = \"900us\"",
                "first = \"first\"",
                "bdp-limit = \"18750B\"",
                "notification = \"answers\"",
                "threshold = \"200KB\"",
            ],
        ),
        (
            "conweave",
            &conweave,
            four,
            &[
                "kind = \"conga\", gap = \"100us\"",
                "window = \"250us\"",
                "nack-interval = \"4us\"",
                "cnp-on-reordering = true",
                "flow-control = \"none\"",
            ],
        ),
    ];
    for (name, config, flows, values) in cases {
        runs_with(name, config, flows, values);
    }
}

/// Imports a configuration strictly, runs it, and looks for `values` in the resolved scenario.
fn runs_with(name: &str, config: &str, flows: &str, values: &[&str]) {
    let dir = Dir::new(name);
    fs::create_dir_all(dir.at("mix")).unwrap();
    dir.write("mix/topo.txt", TOPOLOGY);
    dir.write("mix/flow.txt", flows);
    dir.write("mix/sizes.txt", "0 0\n10000 0.5\n20000 1\n");
    dir.write("config.txt", config);
    dir.run(&["import", "hpcc", "config.txt", "--out", "x", "--strict"]).ends(0);
    dir.run(&["run", "x/config.toml", "--out", "r", "-q"]).ends(0);
    let manifest = common::json(&fs::read(dir.at("r/manifest.json")).unwrap());
    let resolved = manifest["scenario"].as_str().expect("the scenario as resolved");
    for value in values {
        assert!(resolved.contains(value), "{name}: {value} in\n{resolved}");
    }
    let flows = &common::summary(&dir.at("r"))["flows"];
    assert_eq!(flows["completed"], flows["started"], "{name}: {flows}");
}

#[test]
fn htsims_triggers_are_flows_that_wait() {
    let dir = Dir::new("import-htsim");
    dir.write(
        "ring.cm",
        "Nodes 16\nConnections 3\nTriggers 2\n0->1 id 1 start 0 size 100000 send_done_trigger \
         1\n1->2 id 2 trigger 1 size 100000 send_done_trigger 2\n2->3 id 3 trigger 2 size \
         100000\ntrigger id 1 oneshot\ntrigger id 2 barrier count 1\n",
    );
    dir.run(&["import", "htsim", "ring.cm", "--strict"]).ends(0);
    dir.run(&["run", "ring.toml", "--out", "r", "-q"]).ends(0);
    let csv = dir.run(&["export", "r"]).ends(0).out;
    let rows: Vec<Vec<f64>> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|field| field.parse().unwrap_or(0.0)).collect())
        .collect();
    assert_eq!(rows.len(), 3);
    for pair in rows.windows(2) {
        let (end, next) = (pair[0][5] + pair[0][6], pair[1][5]);
        // The receiver sends the next as soon as it has all.
        assert!((end - next).abs() < 1e-6, "{csv}");
    }
    let cycle = "Nodes 16\nConnections 2\nTriggers 2\n0->1 id 1 trigger 2 size 9 \
                 send_done_trigger 1\n1->2 id 2 trigger 1 size 9 send_done_trigger 2\ntrigger id \
                 1 oneshot\ntrigger id 2 oneshot\n";
    dir.write("cycle.cm", cycle);
    let wrong = dir.run(&["import", "htsim", "cycle.cm"]).ends(2);
    assert!(wrong.err.contains("cycle.cm:4: 0->1 waits for itself"), "{}", wrong.err);
}

/// The same mistakes in a list of flows, and in traffics, of a scenario.
#[test]
fn cycles_and_strangers_are_refused_with_their_place() {
    let dir = Dir::small("after");
    dir.write(
        "list.csv",
        "start_us,src,dst,bytes,id,after\n0,0,1,5,a,c\n0,1,2,5,b,a\n0,2,3,5,c,b\n",
    );
    let own = "name = \"x\"\nduration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
               4\n[[traffic]]\nname = \"list\"\nkind = \"flows\"\nfile = \"list.csv\"\n";
    dir.write("x.toml", own);
    let wrong = dir.run(&["check", "x.toml"]).ends(2);
    assert!(
        wrong.err.contains("list.csv:2")
            && wrong.err.contains("waits for itself: a after c after b after a"),
        "{}",
        wrong.err
    );
    let list = fs::read_to_string(dir.at("list.csv")).unwrap();
    dir.write("list.csv", &list.replace("a,c", "a,"));
    dir.run(&["run", "x.toml", "--out", "r", "-q"]).ends(0);
    let traffic =
        "[[traffic]]\nname = \"a\"\nkind = \"permutation\"\nsize = \"1KB\"\nafter = [\"lst\"]\n";
    dir.write("x.toml", &format!("{own}{traffic}"));
    let wrong = dir.run(&["check", "x.toml"]).ends(2);
    assert!(
        wrong.err.contains("there is no traffic \"lst\"; did you mean \"list\"?"),
        "{}",
        wrong.err
    );
    dir.write("x.toml", &format!("{own}after = [\"a\"]\n{}", traffic.replace("lst", "list")));
    let wrong = dir.run(&["check", "x.toml"]).ends(2);
    assert!(wrong.err.contains("it waits for itself: list after a after list"), "{}", wrong.err);
    let endless = traffic.replace("lst", "load")
        + "[[traffic]]\nname = \"load\"\nkind = \"poisson\"\nsizes = \"1KB\"\nload = 0.1\n";
    dir.write("x.toml", &format!("{own}{endless}"));
    let wrong = dir.run(&["check", "x.toml"]).ends(2);
    assert!(wrong.err.contains("it is waited for, and has no number of flows"), "{}", wrong.err);
    // A run says what never started.
    dir.write("list.csv", "start_us,src,dst,bytes,id,after\n0,0,1,900000000,a,\n0,1,2,5,b,a\n");
    dir.write("x.toml", own);
    let ran = dir.run(&["run", "x.toml", "--out", "r"]).ends(0);
    assert!(
        ran.out.contains("1 never started")
            && ran.out.contains("wait for flows that were not delivered (flow 1 \"b\")"),
        "{}",
        ran.out
    );
    // The scenario as resolved is the same scenario.
    let resolved = dir.run(&["check", "x.toml", "--resolved"]).ends(0).out;
    assert!(resolved.contains("id = \"b\", after = [\"a\"] }"), "{resolved}");
    dir.write("y.toml", &resolved);
    assert_eq!(dir.run(&["check", "y.toml", "--resolved"]).ends(0).out, resolved);
}
