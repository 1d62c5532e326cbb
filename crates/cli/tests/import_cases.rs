//! `millpond import` of small files as forks and their users write them: each is imported and run
//! unedited, and the run has what the file asks for.

use crate::common::{self, Dir, Ran};
use serde_json::Value;
use std::fs;

const CONFIG: &str = "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nSIMULATOR_STOP_TIME \
                      4\nPACKET_PAYLOAD_SIZE 1000\nCC_MODE 1\nKMAX_MAP 1 100000000000 \
                      1600\nKMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE \
                      32\n";
const TOPOLOGY: &str =
    "5 2 4\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 4 100Gbps 1us 0\n";
const FLOWS: &str = "1\n0 2 3 100 100000 2\n";

/// A folder with the three files of a case.
struct Case {
    dir: Dir,
}

impl Case {
    fn new(name: &str) -> Case {
        let case = Case { dir: Dir::new(name) };
        case.with("config.txt", CONFIG).with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS)
    }
    /// Another file, or another text of one.
    fn with(self, file: &str, text: &str) -> Case {
        self.dir.write(file, text);
        self
    }
    /// A key more.
    fn and(self, line: &str) -> Case {
        self.with("config.txt", &format!("{CONFIG}{line}\n"))
    }
    fn import(&self, more: &[&str]) -> Ran {
        let words = [&["import", "hpcc", "config.txt", "--out", "imp", "--force"], more].concat();
        self.dir.run(&words)
    }
    /// The report of the import, and the summary of the run that follows.
    fn runs(&self) -> (String, Value) {
        let report = self.import(&["--all"]).ends(0).out;
        self.dir.run(&["run", "imp/config.toml", "--out", "r", "-q"]).ends(0);
        (report, common::summary(&self.dir.at("r")))
    }
    /// The same, of a case whose flows all have to be complete.
    fn completes(&self) -> (String, Value) {
        let (report, summary) = self.runs();
        assert_eq!(
            summary["flows"]["completed"], summary["flows"]["started"],
            "{report}\n{summary}"
        );
        (report, summary)
    }
    fn strict_refuses(&self) {
        let refused =
            self.dir.run(&["import", "hpcc", "config.txt", "--out", "never", "--strict"]).ends(2);
        assert!(
            refused.err.contains("--strict is given") && !self.dir.at("never").exists(),
            "{}",
            refused.err
        );
    }
    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.dir.at(name)).unwrap()
    }
    /// A column of flows.parquet as whole numbers, by flow.
    fn column(&self, name: &str) -> Vec<u64> {
        let csv = self.dir.run(&["export", "r"]).ends(0).out;
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let at = header
            .iter()
            .position(|column| *column == name)
            .unwrap_or_else(|| panic!("{name} in {header:?}"));
        // Rows are in the order in which flows ended.
        let row = |line: &str| -> (u64, u64) {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[0].parse().unwrap(), fields[at].parse::<f64>().unwrap() as u64)
        };
        let mut rows: Vec<(u64, u64)> = lines.map(row).collect();
        rows.sort_unstable();
        rows.into_iter().map(|(_, value)| value).collect()
    }
}

/// Four hosts on either side of a bundle of four links.
fn bundle(links: [&str; 4]) -> String {
    let host = |host: u32| format!("{host} {} 100Gbps 1us 0\n", 8 + host / 4);
    let hosts: String = (0..8).map(host).collect();
    format!("10 2 12\n8 9\n{hosts}{}\n", links.join("\n"))
}

/// Sixteen flows across the bundle.
fn across() -> String {
    let flow = |at: u32| format!("{} {} 3 {} 100000 2\n", at % 4, 4 + at % 4, 100 + at);
    format!("16\n{}", (0..16).map(flow).collect::<String>())
}

const WHOLE: &str = "8 9 100Gbps 1us 0";

#[test]
fn a_lossy_link_of_a_bundle_loses_alone() {
    let lossy = [("8 9 100Gbps 1us 0.05", WHOLE), ("9 8 100Gbps 1us 0.05", "9 8 100Gbps 1us 0")];
    for (first, other) in lossy {
        let case = Case::new("parloss")
            .with("topology.txt", &bundle([first, WHOLE, other, WHOLE]))
            .with("flow.txt", &across());
        let (report, _) = case.completes();
        assert_eq!(case.file("imp/config.toml").matches("[[failure]]").count(), 1, "{report}");
        // Flows over the other links lose nothing. Data and answers cross the lossy one each by a
        // hash.
        let again = case.column("retransmitted");
        let whole = again.iter().filter(|packets| **packets == 0).count();
        assert!(
            (8..16).contains(&whole),
            "about a quarter of the flows and of the answers: {again:?}"
        );
        let manifest = common::json(&fs::read(case.dir.at("r/manifest.json")).unwrap());
        assert_eq!(
            (&manifest["failures"][0]["number"], manifest["failures"].as_array().unwrap().len()),
            (&0.into(), 1)
        );
    }
}

/// The same pair written either way round: two links, each with its own loss, and not one with
/// both.
#[test]
fn losses_of_two_parallel_links_do_not_add_up() {
    let topology = bundle(["8 9 100Gbps 1us 0.03", "9 8 100Gbps 1us 0.03", WHOLE, WHOLE]);
    let case = Case::new("twice").with("topology.txt", &topology).with("flow.txt", &across());
    let report = case.import(&[]).ends(0).out;
    let scenario = case.file("imp/config.toml");
    assert!(
        scenario.contains("number = 0\n") && scenario.contains("number = 1\n"),
        "{report}\n{scenario}"
    );
    assert!(
        !case.dir.run(&["check", "imp/config.toml"]).ends(0).out.contains("both together lose")
    );
}

#[test]
fn one_link_of_a_bundle_goes_down_and_the_others_carry_on() {
    let case =
        Case::new("pardown").and("LINK_DOWN 2 8 9").with("topology.txt", &bundle([WHOLE; 4]));
    let case = case.with("flow.txt", &across());
    let (report, summary) = case.completes();
    assert_eq!(summary["flows"]["completed"], 16);
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "4 links between them: the last one goes down, the only one that the program uses"
        ),
        "{report}"
    );
    let failure =
        "link = [\"switch8\", \"switch9\"]\nnumber = 3\nat = \"2us\"\nconverge = \"0us\"\n";
    assert!(case.file("imp/config.toml").contains(failure), "{}", case.file("imp/config.toml"));
}

#[test]
fn rates_and_delays_in_every_form_make_the_same_network() {
    let plain = Case::new("plain");
    plain.completes();
    let json = plain.file("imp/config-topology.json");
    for (name, topology) in [
        ("unitless", TOPOLOGY.replace("100Gbps", "100000000000")),
        ("powertcps", TOPOLOGY.replace("100Gbps", "100000000000.0")),
        ("ratesci", TOPOLOGY.replace("100Gbps", "1e11")),
        ("rateGBps", TOPOLOGY.replace("100Gbps", "12.5GBps")),
        ("delaysci", TOPOLOGY.replace("1us", "1e-6s")),
        ("tubsilent", TOPOLOGY.replace("5 2 4\n", "5 2 1 4\n")),
    ] {
        let case = Case::new(name).with("topology.txt", &topology);
        case.completes();
        assert_eq!(case.file("imp/config-topology.json"), json, "{name}");
    }
}

#[test]
fn no_additive_increase_is_a_rate() {
    let case = Case::new("ai0").and("RATE_AI 0Mb/s\nRATE_HAI 0Mb/s");
    case.completes();
    let scenario = case.file("imp/config.toml");
    assert!(
        scenario.contains("dcqcn-additive-increase = \"0bps\"\ndcqcn-hyper-increase = \"0bps\"\n"),
        "{scenario}"
    );
}

#[test]
fn starts_have_exponents() {
    let case =
        Case::new("sci").with("flow.txt", "2\n0 2 3 100 100000 2\n1 2 3 100 100000 2.00001e+00\n");
    case.completes();
    assert!(case.file("imp/config-flows.csv").ends_with("\n10,1,2,100000\n"));
}

#[test]
fn keys_that_nobody_knows_are_reported_at_once() {
    let keys = "BW_OUTPUT_FILE bw.txt\nQUEUEING_OUTPUT_FILE q.txt\nP4THMETER_THRESHOLD \
                1000000\nQLEN_MON_INTV_NS 1000";
    let case = Case::new("forkkeys").and(keys);
    let (report, _) = case.completes();
    for (line, key) in (10..).zip(keys.lines()) {
        assert!(report.contains(&format!("config.txt:{line}  {key}")), "{report}");
    }
    assert!(
        report.contains("4 unknown") && !report.contains("is read: is that meant?"),
        "{report}"
    );
    for guess in
        ["a file that it writes", "a threshold of its switches", "when or how often it records"]
    {
        assert!(report.contains(guess), "{guess} in\n{report}");
    }
    case.strict_refuses();
}

#[test]
fn comments_are_no_keys_in_any_encoding() {
    let case = Case::new("slashes").and("// a comment of C++");
    case.completes();
    case.import(&["--strict"]).ends(0);
    let case = Case::new("gbk");
    let bytes = [CONFIG.as_bytes(), b"HAS_WIN 1 # \xc4\xac\xc8\xcf\n"].concat();
    fs::write(case.dir.at("config.txt"), bytes).unwrap();
    case.completes();
    case.import(&["--strict"]).ends(0);
}

/// 20 MB over a link of 10 ms: nothing is lost, and nothing is sent again.
#[test]
fn the_stand_in_timer_is_longer_than_a_long_round_trip() {
    let case = Case::new("interdc")
        .with("config.txt", &CONFIG.replace("BUFFER_SIZE 32", "BUFFER_SIZE 1600"))
        .with("topology.txt", &TOPOLOGY.replace("3 4 100Gbps 1us", "3 4 100Gbps 10ms"))
        .with("flow.txt", "1\n0 2 3 100 20000000 2\n");
    let (report, summary) = case.completes();
    assert_eq!(
        (&summary["timeouts"], &summary["packets"]["retransmitted"]),
        (&0.into(), &0.into()),
        "{report}"
    );
}

#[test]
fn lists_of_six_and_seven_columns_have_their_sizes() {
    let case = Case::new("sixcol")
        .and("LB_MODE 0\nFLOWGEN_START_TIME 2.0")
        .with("flow.txt", "2\n0 2 3 8192 2 2\n1 2 3 65536 2 1\n");
    let (report, _) = case.completes();
    assert_eq!(case.column("bytes"), [8_192, 65_536]);
    assert_eq!(case.column("start_us"), [0, 0]);
    assert!(report.contains("column 6 and what follows it are not read"), "{report}");
    let case = Case::new("sevencol").with("flow.txt", "1\n0 0 2 3 100 100000 2\n");
    let (report, _) = case.completes();
    assert_eq!(case.column("bytes"), [100_000]);
    assert!(report.contains("`id src dst pg port bytes start`"), "{report}");
    assert!(case.file("imp/config-flows.csv").ends_with("\n0,0,2,100000,0\n"));
}

#[test]
fn flows_that_send_nothing_are_left_out() {
    for (name, line) in [("zero", "0 2 3 100 0 2"), ("self", "0 0 3 100 100000 2")] {
        let case = Case::new(name).with("flow.txt", &format!("2\n{line}\n1 2 3 100 100000 2\n"));
        let (report, _) = case.completes();
        assert_eq!(case.column("bytes"), [100_000]);
        assert!(
            report.contains("1 left out") && report.contains(&format!("flow.txt:2  {line}")),
            "{report}"
        );
        case.strict_refuses();
    }
}

#[test]
fn flows_of_tcp_beside_others_are_reported_at_their_line() {
    let case = Case::new("ancestor").and("TCP_FLOW_FILE tcp.txt").with("tcp.txt", "0\n");
    let (report, _) = case.completes();
    assert_eq!(case.column("bytes"), [100_000]);
    assert!(report.contains("config.txt:10  TCP_FLOW_FILE tcp.txt"), "{report}");
    assert!(report.contains("a configuration of HPCC's released simulator"), "{report}");
}

#[test]
fn each_port_marks_by_the_thresholds_of_its_rate() {
    let config = CONFIG
        .replace("KMAX_MAP 1", "KMAX_MAP 2 50000000000 400")
        .replace("KMIN_MAP 1", "KMIN_MAP 2 50000000000 10")
        .replace("PMAX_MAP 1", "PMAX_MAP 2 50000000000 0.2");
    let case = Case::new("nonprop")
        .with("config.txt", &config)
        .with("topology.txt", &TOPOLOGY.replace("3 4 100Gbps", "3 4 50Gbps"));
    case.completes();
    let resolved = case.dir.run(&["check", "imp/config.toml", "--resolved"]).ends(0).out;
    assert!(
        resolved.contains(
            "min-threshold = { 50Gbps = \"10KB\", 100Gbps = \"400KB\", others = \"10KB\" }"
        ),
        "{resolved}"
    );
    case.import(&["--strict"]).ends(0);
}

#[test]
fn a_stop_before_the_first_start_is_not_honoured() {
    let case =
        Case::new("early").with("config.txt", &CONFIG.replace("STOP_TIME 4", "STOP_TIME 1.5"));
    let (report, _) = case.completes();
    assert!(
        report.contains("8 honoured, 1 not modelled") && report.contains("there nothing starts"),
        "{report}"
    );
    case.strict_refuses();
}

/// GPUs with direct links beside an NVSwitch: each link is a NIC, and needs no threshold.
#[test]
fn each_direct_link_is_a_nic_of_its_own_rate() {
    let mesh = "5 4 1 0 8 A800\n4\n0 4 1600Gbps 1us 0\n1 4 1600Gbps 1us 0\n0 1 200Gbps 1us 0\n0 2 \
                147Gbps 1us 0\n0 3 400Gbps 1us 0\n1 2 147Gbps 1us 0\n1 3 148Gbps 1us 0\n2 3 \
                400Gbps 1us 0\n";
    // Host 0 sends over three links at once: 1 MB a link, and each takes its own time.
    let flows = "3\n0 1 3 100 1000000 2\n0 2 3 100 1000000 2\n0 3 3 100 1000000 2\n";
    let case = Case::new("mesh").with("topology.txt", mesh).with("flow.txt", flows);
    let (report, _) = case.completes();
    assert!(!report.contains("inner switch"), "{report}");
    let fct = case.column("fct_us");
    let times: Vec<u64> = [147e3, 400e3].map(|rate: f64| (8e6 * 1.048 / rate) as u64).into();
    assert!(fct[1].abs_diff(times[0] + 3) <= 3 && fct[2].abs_diff(times[1] + 3) <= 3, "{fct:?}");
}

/// A flow that direct links alone carry makes hosts forward; each link has a NIC then, too.
#[test]
fn hosts_forward_where_a_flow_has_no_other_way() {
    let ring = "4 0 4\n0 1 100Gbps 1us 0\n1 2 25Gbps 1us 0\n2 3 100Gbps 1us 0\n3 0 25Gbps 1us 0\n";
    let case = Case::new("ring-far").with("topology.txt", ring);
    let (report, _) = case.completes();
    assert!(report.contains("4 hosts have links to hosts"), "{report}");
    let topology = case.file("imp/config-topology.json");
    assert_eq!(topology.matches("\"a\":\"host0\",\"b\":\"inner0\"").count(), 2, "{topology}");
    let near = Case::new("ring-near").with("topology.txt", ring).with("flow.txt", NEAR);
    let (report, _) = near.completes();
    assert!(!report.contains("inner switch"), "{report}");
    assert!(!near.file("imp/config-topology.json").contains("inner0"));
}

const NEAR: &str = "1\n0 1 3 100 100000 2\n";

/// Rails without a spine: flows on a rail run; one between rails is an error of its line.
#[test]
fn pairs_that_traffic_uses_have_to_be_connected() {
    let rails = "6 2 4\n4 5\n0 4 100Gbps 1us 0\n1 5 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 5 100Gbps \
                 1us 0\n";
    let on_rails = "2\n0 2 3 100 1000 2\n1 3 3 100 1000 2\n";
    let case = Case::new("rails").with("topology.txt", rails).with("flow.txt", on_rails);
    case.completes();
    let apart = case.with("flow.txt", "2\n0 2 3 100 1000 2\n1 2 3 100 1000 2\n");
    let refused = apart.import(&[]).ends(2);
    let text = "flow.txt:3: no path leads from node 1 to node 2";
    assert!(refused.err.contains(text), "{}", refused.err);
}

/// A configuration without flows, as ASTRA-sim's: it imports with a warning and the lines that
/// complete it, or with a workload.
#[test]
fn a_network_without_flows_is_completed_by_a_workload() {
    for (name, config, flows) in [
        ("no-file", CONFIG.replace("FLOW_FILE flow.txt", "FLOW_FILE output/flow1.txt"), FLOWS),
        ("no-key", CONFIG.replace("FLOW_FILE flow.txt\n", ""), FLOWS),
        ("zero", CONFIG.to_string(), "0\n"),
    ] {
        let case = Case::new(name).with("config.txt", &config).with("flow.txt", flows);
        let report = case.import(&[]).ends(0).out;
        for part in [
            "the scenario has no traffic",
            "\n[[traffic]]\nkind = \"simai\" # or",
            "--workload FILE",
        ] {
            assert!(report.contains(part), "{name}: {report}");
        }
        case.dir.run(&["check", "imp/config.toml"]).ends(0);
    }
    let config = CONFIG.replace("FLOW_FILE flow.txt", "FLOW_FILE output/flow1.txt");
    let case = Case::new("workload")
        .with("config.txt", &config)
        .with(
            "job.goal",
            "num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n",
        )
        .with(
            "layers.txt",
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 vpp: 1 ga: 1 \
             all_gpus: 2 checkpoints: 0 checkpoint_initiates: 0\n1\nlayer -1 1000 NONE 0 1000 NONE \
             0 1000 ALLREDUCE 100000 100\n",
        );
    for (file, kind) in [("job.goal", "goal"), ("layers.txt", "simai")] {
        case.import(&["--workload", file, "--strict"]).ends(0);
        assert!(case.file("imp/config.toml").contains(&format!("kind = \"{kind}\"")));
        let run = case.dir.run(&["run", "imp/config.toml", "--out", "r", "-q"]).ends(0);
        assert!(!run.err.contains("no traffic"), "{}", run.err);
    }
    let missing = case.import(&["--workload", "nothing.txt"]).ends(2);
    assert!(missing.err.contains("nothing.txt"), "{}", missing.err);
}

/// Exports have the node numbers and ports of the files, also where switches come first.
#[test]
fn exports_give_back_the_numbers_of_the_files() {
    let links: String = (1..5).map(|host| format!("{host} 0 100Gbps 1us 0\n")).collect();
    let first = &format!("5 1 4\n0\n{links}");
    let flows = "3\n1 4 3 100 1000000 2\n3 2 3 101 50000 2.00001\n3 4 3 4791 1000 2.00001\n";
    let case = Case::new("first").with("topology.txt", first).with("flow.txt", flows);
    case.completes();
    let again = case.dir.run(&["check", "imp/config.toml", "--resolved"]).ends(0).out;
    assert!(again.contains("numbers = [1, 2, 3, 4]") && again.contains("port = 4791"), "{again}");
    case.dir.run(&["export", "r", "fct.txt"]).ends(0);
    let fct = case.file("fct.txt");
    let mut lines: Vec<String> =
        fct.lines().map(|line| line.split(' ').take(4).collect::<Vec<_>>().join(" ")).collect();
    lines.sort();
    let expected = [
        "0b000101 0b000401 10000 100",
        "0b000301 0b000201 10000 101",
        "0b000301 0b000401 10000 4791",
    ];
    assert_eq!(lines, expected);
    assert_eq!((case.column("src_node"), case.column("dst_node")), (vec![1, 3, 3], vec![4, 2, 4]));
    // Hosts that come first keep their numbers without a list of them.
    let plain = Case::new("plain");
    plain.completes();
    assert!(!plain.file("imp/config-topology.json").contains("numbers"));
}

/// Lines beyond an announced count are reported; the legend of the released files is none.
#[test]
fn data_beyond_an_announced_count_is_reported() {
    let legend = "First line: nodes, switches, links\nsrc0 dst0 rate\n";
    let clean = Case::new("legend")
        .with("topology.txt", &format!("{TOPOLOGY}{legend}"))
        .with("flow.txt", &format!("{FLOWS}{legend}"));
    clean.completes();
    clean.import(&["--strict"]).ends(0);
    let case = Case::new("surplus")
        .with("topology.txt", &format!("{TOPOLOGY}0 4 100Gbps 1us 0\n{legend}"))
        .with("flow.txt", &format!("{FLOWS}1 2 3 100 1000 2\n1 2 3 100 2000 2\n{legend}"));
    let (report, _) = case.completes();
    for part in ["topology.txt:7  0 4 100Gbps 1us 0", "flow.txt:3  1 2 3 100 1000 2", "flow.txt:4"]
    {
        assert!(report.contains(part), "{part}: {report}");
    }
    case.strict_refuses();
}

/// Files of forks whose servers have two top-of-rack switches, or forward for each other.
#[test]
fn hosts_with_several_links_are_taken() {
    let ring =
        "4 0 4\n0 1 100Gbps 1us 0\n1 2 100Gbps 1us 0\n2 3 100Gbps 1us 0\n3 0 100Gbps 1us 0\n";
    let dual = "6 3 6\n3 4 5\n0 3 100Gbps 1us 0\n0 4 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 4 \
                100Gbps 1us 0\n3 5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n";
    Case::new("ring").with("topology.txt", ring).completes();
    let (report, _) = Case::new("dualtor").with("topology.txt", dual).completes();
    assert!(report.contains("3 hosts, 3 switches, 6 links"), "{report}");
    let dir = Dir::new("dualtor-native");
    let link = |host: u32, tor: u32| {
        format!(
            "{{ \"a\": \"host{host}\", \"b\": \"tor{tor}\", \"rate\": \"100Gbps\", \"delay\": \
             \"1us\" }}"
        )
    };
    let links = [link(0, 0), link(0, 1), link(1, 0), link(1, 1)].join(", ");
    dir.write(
        "dual.json",
        &format!(
            "{{ \"hosts\": 2, \"switches\": [{{ \"name\": \"tor0\" }}, {{ \"name\": \"tor1\" }}], \
             \"links\": [{links}] }}"
        ),
    );
    dir.write(
        "d.toml",
        "until = \"flows-complete\"\n[topology]\nkind = \"file\"\npath = \
         \"dual.json\"\n[[traffic]]\nkind = \"flows\"\nrows = [{ start = \"0us\", src = 0, dst = \
         1, bytes = 1000000 }]\n",
    );
    dir.run(&["run", "d.toml", "--out", "r", "--quiet"]).ends(0);
    assert_eq!(common::summary(&dir.at("r"))["flows"]["completed"], 1);
}

/// A value that the scenario refuses is an error of the user's line, not of a file that nobody
/// sees.
#[test]
fn what_the_scenario_refuses_has_the_users_line() {
    let refused = Case::new("refused").and("EWMA_GAIN 7").import(&[]).ends(2);
    assert!(
        refused.err.contains("config.txt:10: EWMA_GAIN 7 has become")
            && !refused.err.contains(".import-"),
        "{}",
        refused.err
    );
    assert!(!refused.err.contains("config.toml"), "{}", refused.err);
    let timer = Case::new("timer").and("RP_TIMER 0").import(&[]).ends(2);
    assert!(timer.err.contains("config.txt:10: RP_TIMER 0 has become"), "{}", timer.err);
}

#[test]
fn htsims_messages_queues_and_failures_are_taken() {
    let matrix = |failures: &str, connection: &str, rest: &str| {
        format!(
            "Nodes 16\nConnections 1\n{failures}0->1 id 1 {connection} start 0 size 40860\n{rest}"
        )
    };
    let dir = Dir::new("htsim");
    dir.write("msg.cm", &matrix("Triggers 0\n", "msg", ""));
    dir.write("msgn.cm", &matrix("Triggers 0\n", "msg 1", ""));
    dir.write("one.cm", &matrix("", "", ""));
    let failure = "failure switch_type CORE switch_id 0 link_id 1\n";
    dir.write("fail.cm", &matrix("Failures 1\n", "", failure));
    dir.write(
        "q.topo",
        "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up \
         4\nQueue_Up 100\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down \
         4\nQueue_Down 100\nDownlink_Latency_ns 1000\n",
    );
    for (name, more) in
        [("msg", &[][..]), ("msgn", &[]), ("one", &["--topology", "q.topo"]), ("fail", &[])]
    {
        let matrix = format!("{name}.cm");
        let words = [&["import", "htsim", &matrix, "--out", "imp", "--strict"], more].concat();
        dir.run(&words).ends(0);
        let out = format!("r-{name}");
        dir.run(&["run", &format!("imp/{name}.toml"), "--out", &out, "-q"]).ends(0);
        assert_eq!(common::summary(&dir.at(&out))["flows"]["completed"], 1, "{name}");
    }
    let manifest = common::json(&fs::read(dir.at("r-fail/manifest.json")).unwrap());
    assert_eq!(manifest["failures"][0]["link"], serde_json::json!(["agg2", "core0"]));
    let resolved = dir.run(&["check", "imp/one.toml", "--resolved"]).ends(0).out;
    assert!(
        resolved.contains("packets = { tier-0 = 100, tier-1 = 100, others = \"off\" }"),
        "{resolved}"
    );
}

/// Distributions of ns-2, in three columns, and of Homa, below their mean.
#[test]
fn distributions_of_other_simulators_are_sizes() {
    let dir = Dir::new("cdf");
    dir.write("three.txt", "1000 1 0.1\n2000 1 1.0\n");
    dir.write("homa.txt", "4\n10 0.5\n100 1\n");
    for file in ["three.txt", "homa.txt"] {
        dir.write(
            "c.toml",
            &format!(
                "duration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
                 4\n[[traffic]]\nkind = \"poisson\"\nsizes = {{ file = \"{file}\" }}\nload = 0.3\n"
            ),
        );
        dir.run(&["check", "c.toml"]).ends(0);
    }
}
