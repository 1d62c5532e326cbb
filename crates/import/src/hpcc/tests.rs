//! Small files in the family's grammar.

use std::path::PathBuf;

use millpond_core::switch::buffer::{BufferParams, EgressLimit, HeadroomRule};
use millpond_core::switch::marking::MarkingParams;
use millpond_core::switch::path::PathParams;
use millpond_core::switch::pause::PauseParams;
use millpond_core::switch::site::{Auto, PortSite};
use millpond_core::{Bytes, Rate};
use millpond_scenario::rdma::{FlowControl, Notification, RateChange, RecoveryParams, Resend};

use super::*;
use crate::bad::damaged;
use crate::{Error, Fate};
use millpond_core::random::Stream;

/// A folder of one test, removed with it.
struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const TOPOLOGY: &str = "7 3 6\n4 5 6\n0 4 25Gbps 1us 0\n1 4 25Gbps 1us 0\n2 5 25Gbps 0.001ms 0\n3 \
                        5 25Gbps 1000ns 0\n4 6 100Gbps 1us 0\n5 6 100Gbps 1us 0\nFirst line: \
                        nodes, switches, links\n";
const FLOWS: &str = "3\n0 2 3 100 200000 2\n1 2 3 100 5000 2.000001\n3 0 3 100 1 2.5\n\nsrc dst \
                     pg port size start\n";
const CONFIG: &str = "\
    ENABLE_QCN 1\n\
    USE_DYNAMIC_PFC_THRESHOLD 1\n\n\
    PACKET_PAYLOAD_SIZE 1000\n\n\
    TOPOLOGY_FILE mix/topo.txt\n\
    FLOW_FILE mix/flow.txt\n\
    TRACE_FILE mix/trace.txt\n\
    FCT_OUTPUT_FILE mix/fct.txt\n\
    SIMULATOR_STOP_TIME 4.00\n\
    ALPHA_RESUME_INTERVAL 1\n\
    RATE_DECREASE_INTERVAL 4\n\
    CLAMP_TARGET_RATE 0\n\
    RP_TIMER 300\n\
    EWMA_GAIN 0.00390625\n\
    FAST_RECOVERY_TIMES 1\n\
    RATE_AI 5Mb/s\n\
    RATE_HAI 50Mb/s\n\
    MIN_RATE 100Mb/s\n\
    DCTCP_RATE_AI 1000Mb/s\n\
    ERROR_RATE_PER_LINK 0.0000\n\
    L2_CHUNK_SIZE 4000\n\
    L2_ACK_INTERVAL 1\n\
    L2_BACK_TO_ZERO 0\n\
    HAS_WIN 1\n\
    GLOBAL_T 1\n\
    VAR_WIN 1\n\
    FAST_REACT 1\n\
    U_TARGET 0.95\n\
    MI_THRESH 0\n\
    INT_MULTI 1\n\
    MULTI_RATE 0\n\
    SAMPLE_FEEDBACK 0\n\
    PINT_LOG_BASE 1.05\n\
    PINT_PROB 1.0\n\
    RATE_BOUND 1\n\
    ACK_HIGH_PRIO 0\n\
    LINK_DOWN 0 0 0\n\
    ENABLE_TRACE 1\n\
    KMAX_MAP 2 25000000000 400 100000000000 1600\n\
    KMIN_MAP 2 25000000000 100 100000000000 400\n\
    PMAX_MAP 2 25000000000 0.2 100000000000 0.2\n\
    BUFFER_SIZE 32\n\
    QLEN_MON_FILE mix/qlen.txt\n\
    QLEN_MON_START 2000000000\n\
    QLEN_MON_END 3000000000\n\
    CC_MODE 1\n";

/// A folder with the three files.
fn dir(name: &str, config: &str, topology: &str, flows: &str) -> Dir {
    let dir = std::env::temp_dir().join(format!("millpond-import-{}-{name}", std::process::id()));
    std::fs::create_dir_all(dir.join("mix")).unwrap();
    for (file, text) in
        [("config.txt", config), ("mix/topo.txt", topology), ("mix/flow.txt", flows)]
    {
        std::fs::write(dir.join(file), text).unwrap();
    }
    Dir(dir)
}

fn imported(name: &str, config: &str, topology: &str, flows: &str) -> Result<Imported> {
    let dir = dir(name, config, topology, flows);
    import(&dir.0.join("config.txt"), Instead::default())
}

fn fails(name: &str, config: &str, topology: &str, flows: &str) -> String {
    match imported(name, config, topology, flows).unwrap_err() {
        Error::Wrong { file, line, message } => {
            format!("{}:{line}: {message}", Path::new(&file).file_name().unwrap().display())
        }
        other => other.to_string(),
    }
}

fn fate<'i>(imported: &'i Imported, key: &str) -> &'i Fate {
    &imported.keys.iter().find(|told| told.text.starts_with(key)).unwrap().fate
}

/// Whether the scenario has a plan, with its files beside it.
fn plan(imported: &Imported, name: &str) -> millpond_scenario::Plan {
    let dir = dir(name, "", "", "");
    imported.files.iter().for_each(|(file, text)| std::fs::write(dir.0.join(file), text).unwrap());
    let scenario = millpond_scenario::Scenario::load(&dir.0.join(&imported.files[0].0));
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}\n{}", imported.files[0].1));
    scenario.plan(None, &[], None).unwrap_or_else(|e| panic!("{e}\n{}", imported.files[0].1))
}

#[test]
fn hpccs_example_becomes_a_scenario() {
    let all = imported("hpcc", CONFIG, TOPOLOGY, FLOWS).unwrap();
    assert_eq!(
        all.keys.len(),
        CONFIG.lines().filter(|line| !line.is_empty()).count(),
        "every key is told of"
    );
    assert!(
        all.keys.iter().all(|told| told.fate != Fate::Missing("nothing here reads it".into())),
        "{:#?}",
        all.keys
    );
    let flows = &all.files.iter().find(|(name, _)| name.ends_with(".csv")).unwrap().1;
    assert_eq!(flows, "start_us,src,dst,bytes\n0,0,2,200000\n1,1,2,5000\n500000,3,0,1\n");
    let plan = plan(&all, "hpcc-plan");
    assert_eq!(
        (plan.topology.hosts, plan.topology.switches.len(), plan.topology.links.len()),
        (4, 3, 6)
    );
    assert_eq!((plan.horizon, plan.until_complete, plan.host.mtu), (Time::from_s(2), true, 1040));
    assert_eq!(fate(&all, "QLEN_MON_FILE"), &Fate::Output);
    assert!(matches!(
        fate(&all, "DCTCP_RATE_AI"),
        Fate::Unused(why) if why.contains("CC_MODE 8, and CC_MODE is 1")
    ));
    assert!(
        matches!(fate(&all, "BUFFER_SIZE"), Fate::Becomes(_))
            && matches!(fate(&all, "RATE_BOUND"), Fate::Becomes(_))
    );
    assert!(!all.keys.iter().any(|told| matches!(told.fate, Fate::LeftOut(_))), "{:?}", all.keys);
    // Lines may end as on Windows.
    let crlf = [CONFIG, TOPOLOGY, FLOWS].map(|text| text.replace('\n', "\r\n"));
    assert_eq!(imported("crlf", &crlf[0], &crlf[1], &crlf[2]).unwrap().files, all.files);
}

#[test]
fn conweaves_flows_have_no_port_and_its_paths_are_known() {
    let config = format!(
        "{CONFIG}LB_MODE 6\nENABLE_PFC 0\nENABLE_IRN 1\nFLOWGEN_START_TIME 2.0\nFLOWGEN_STOP_TIME \
         2.1\nCONWEAVE_TX_EXPIRY_TIME 1000\nLOAD 50\nRANDOM_SEED 7\nCNP_OUTPUT_FILE x\n"
    );
    let flows = "2\n0 2 3 0 2.0\n3 1 3 700 2.000000001\n";
    let all = imported("conweave", &config, TOPOLOGY, flows).unwrap();
    let plan = plan(&all, "conweave-plan");
    assert_eq!(plan.seed, 7);
    assert!(all.files[1].1.ends_with("\n0,0,2,1\n0.001,3,1,700\n"), "{}", all.files[1].1);
    assert!(all.files[0].1.contains("path = { kind = \"letflow\", gap = \"100us\" }"));
    assert!(matches!(fate(&all, "CONWEAVE_TX"), Fate::Unused(why) if why.contains("LB_MODE is 6")));
    let own = imported("lb9", &config.replace("LB_MODE 6", "LB_MODE 9"), TOPOLOGY, flows).unwrap();
    assert!(
        matches!(fate(&own, "LB_MODE"), Fate::Missing(_))
            && matches!(fate(&own, "CONWEAVE_TX"), Fate::Missing(_))
    );
}

#[test]
fn tlts_workload_is_drawn_as_there() {
    let config = CONFIG.replace(
        "FLOW_FILE mix/flow.txt",
        "FLOW_FILE nowhere\nHPCC_WORKLOAD mix/flow.txt\nLOAD 0.5\nFOREGROUND_RATIO \
         0.1\nAPP_START_TIME 0.01\nAPP_STOP_TIME 100\nINCAST_FLOW_SIZE 8000\nNUM_BG_FLOWS \
         1000\nENABLE_IRN 0\nENABLE_PFC 0\nENABLE_TLT 1\nTLT_MAXBYTES_UIP \
         200000\nFOREGROUND_INCAST_FLOW_PER_HOST 5\nIRN_NO_BDPFC 0\nRANDOM_SEED 1",
    );
    let all = imported("tlt", &config, TOPOLOGY, "0 0\n10000 0.5\n20000 1\n").unwrap();
    let text = &all.files[0].1;
    // 50 Gb/s × 0.5 × 0.1 / (8 × 5 × 8000 B × 1.048) / 2 is one in 268.288 us.
    assert!(
        text.contains("period = \"268288ns\"")
            && text.contains("flows-per-server = 5")
            && text.contains("degree = 3"),
        "{text}"
    );
    // 50 Gb/s × 0.5 / 1.048 / 2 × 0.9 of 25 Gb/s.
    assert!(text.contains("load = 0.429389") && text.contains("count = 1000"), "{text}");
    assert!(
        matches!(fate(&all, "FLOW_FILE"), Fate::Unused(_))
            && matches!(fate(&all, "TLT_MAXBYTES_UIP"), Fate::Becomes(_))
    );
    plan(&all, "tlt-plan");
}

#[test]
fn simais_names_are_the_same_keys() {
    let config = "# INPUT\nTOPOLOGY_FILE /elsewhere/simulation/mix/topo.txt\nFLOW_FILE \
                  mix/flow.txt\nMON_START 1\nERROR_RATE_PER_LINK 0.0\nQP_MON_INTERVAL \
                  100\nSIMULATOR_STOP_TIME 40000000000000.00\nHAS_WIN 0\nGLOBAL_T 0\nLINK_DOWN 0 \
                  0 0\nBUFFER_SIZE 32\nKMAX_MAP 2 25000000000 400 100000000000 1600\nKMIN_MAP 2 \
                  25000000000 100 100000000000 400\nPMAX_MAP 2 25000000000 0.2 100000000000 \
                  0.2\nns3::QbbNetDevice::QcnEnabled true\nns3::SwitchNode::PfcEnabled \
                  true\nns3::RdmaHw::Mtu 9000\nns3::RdmaHw::CcMode 3\nns3::RdmaHw::RateAI \
                  5Mb/s\nns3::Hpcc::TargetUtil 0.95\nns3::RdmaHw::VarWin \
                  true\nns3::RdmaHw::NicCoalesceMethod PER_QP\nns3::IbvInterface::SendLatency \
                  8000\nns3::RealDcqcn::F 1\n";
    // Two hosts a server, each with an NVSwitch beside its leaf.
    let topology = "7 2 1 2 8 H100\n6 4 5\n0 6 2400Gbps 0.000025ms 0\n1 6 2400Gbps 0.000025ms \
                    0\n0 4 25Gbps 1us 0\n1 4 25Gbps 1us 0\n2 5 25Gbps 1us 0\n3 5 25Gbps 1us 0\n4 \
                    5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n";
    let all = imported("simai", config, topology, "1\n0 2 3 100 40000000 2\n").unwrap();
    assert!(matches!(
        fate(&all, "SIMULATOR_STOP_TIME"),
        Fate::Unused(why) if why.starts_with("later than any run")
    ));
    let plan = plan(&all, "simai-plan");
    assert_eq!((plan.topology.links.len(), plan.host.mtu, plan.horizon), (8, 9040, Time::END));
    assert!(
        all.facts.iter().any(|fact| fact.starts_with("1 NVSwitches are switches that the hosts")),
        "{:?}",
        all.facts
    );
    assert!(matches!(fate(&all, "ns3::IbvInterface::SendLatency"), Fate::Missing(_)));
    assert!(matches!(fate(&all, "ns3::RdmaHw::NicCoalesce"), Fate::Becomes(_)));
    assert_eq!((plan.topology.hosts, plan.topology.addresses()), (4, 6));
}

#[test]
fn priority_groups_are_reported_with_their_flows_and_lines() {
    let flows = "4\n0 2 3 100 1000 2\n1 2 4 100 1000 2\n0 3 3 100 1000 2\n1 3 3 100 1000 2\n";
    let all = imported("groups", CONFIG, TOPOLOGY, flows).unwrap();
    let Fate::Missing(text) = fate(&all, "FLOW_FILE") else { panic!("{all:?}") };
    assert!(text.contains("(3 has 3 from line 2 on, 4 has 1 from line 3 on)"), "{text}");
}

#[test]
fn losses_and_a_link_that_goes_down_are_failures() {
    let config =
        CONFIG.replace("LINK_DOWN 0 0 0", "LINK_DOWN 100 6 4").replace("LINK 0.0000", "LINK 0.01");
    let topology = TOPOLOGY.replace("0 4 25Gbps 1us 0\n", "0 4 25Gbps 1us 0.5\n");
    let all = imported("failures", &config, &topology, FLOWS).unwrap();
    let text = &all.files[0].1;
    assert!(
        text.contains("link = [\"host0\", \"switch4\"]\nat = \"0us\"\nloss = 0.5\n")
            && text.matches("loss = 0.01\n").count() == 5,
        "{text}"
    );
    assert!(text.contains("link = [\"switch4\", \"switch6\"]\nat = \"100us\"\n"), "{text}");
    assert_eq!(plan(&all, "failures-plan").failures.len(), 7);
    // Parallel links are apart, whichever node is written first; the last one goes down.
    let parallel = topology.replace("7 3 6", "7 3 8").replace(
        "5 6 100Gbps 1us 0\n",
        "5 6 100Gbps 1us 0\n6 4 100Gbps 1us 0.03\n4 6 100Gbps 1us 0.02\n",
    );
    let all =
        imported("parallel", &config.replace("LINK 0.01", "LINK 0"), &parallel, FLOWS).unwrap();
    let plan = plan(&all, "parallel-plan");
    let of = |failure: &millpond_scenario::plan::FailurePlan| (failure.link, failure.loss);
    assert_eq!(
        plan.failures.iter().map(of).collect::<Vec<_>>(),
        [(0, 0.5), (6, 0.03), (7, 0.02), (7, 1.0)]
    );
    assert!(
        all.facts
            .iter()
            .any(|fact| fact.contains("have 3 links between them: the last one goes down")),
        "{all:?}"
    );
    let asked = |all: &Imported| match fate(all, "ERROR_RATE_PER_LINK") {
        Fate::Becomes(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    assert!(asked(&all).contains("of their own alone: 3"), "{}", asked(&all));
    let both = imported("rates", &config, &topology, FLOWS).unwrap();
    assert!(asked(&both).contains("loss = 0.01 on each of 5 links; links"), "{}", asked(&both));
    let neither = imported("no-rates", CONFIG, TOPOLOGY, FLOWS).unwrap();
    assert!(asked(&neither).contains("no [[failure]]"), "{}", asked(&neither));
    let none = CONFIG.replace("LINK_DOWN 0 0 0", "LINK_DOWN 100 0 6");
    assert!(fails("no-link", &none, TOPOLOGY, FLOWS).ends_with("there is no link between 0 and 6"));
}

#[test]
fn errors_have_their_file_and_line() {
    let config = |from: &str, to: &str| fails("config", &CONFIG.replace(from, to), TOPOLOGY, FLOWS);
    assert_eq!(
        config("RP_TIMER 300", "RP_TIMER"),
        "config.txt:14: RP_TIMER has 0 values, and should have 1"
    );
    assert_eq!(
        config("RP_TIMER 300", "RP_TIMER -3"),
        "config.txt:14: RP_TIMER: \"-3\" is not a number from 0"
    );
    assert_eq!(
        config("RATE_AI 5Mb/s", "RATE_AI 5x"),
        "config.txt:17: RATE_AI: \"5x\" is not a rate such as 5Mb/s"
    );
    assert_eq!(
        config("KMIN_MAP 2", "KMIN_MAP 3"),
        "config.txt:41: KMIN_MAP has 5 values, and should have 7"
    );
    assert_eq!(
        config("KMIN_MAP 2 25000000000 100", "KMIN_MAP 2 24000000000 100"),
        "config.txt:41: KMIN_MAP has no threshold for links of 25Gbps"
    );
    assert_eq!(
        config("PMAX_MAP 2 25000000000 0.2", "PMAX_MAP 2 25000000000 20"),
        "config.txt:42: PMAX_MAP: 20 is no probability, from 0 to 1"
    );
    assert!(
        config("mix/topo.txt", "mix/nothing.txt").contains("there is no file \"mix/nothing.txt\"")
    );
    let topology =
        |from: &str, to: &str| fails("topology", CONFIG, &TOPOLOGY.replace(from, to), FLOWS);
    assert_eq!(
        topology("0 4 25Gbps", "9 4 25Gbps"),
        "topo.txt:3: there is no node 9; there are 7, from 0"
    );
    assert_eq!(topology("7 3 6", "8 3 6"), "topo.txt:9: host 7 has no link");
    assert_eq!(
        topology("0 4 25Gbps 1us", "0 4 25Gbps -1us"),
        "topo.txt:3: \"-1us\" is not a delay such as 1000ns"
    );
    assert_eq!(
        topology("7 3 6", "7 3 7"),
        "topo.txt:9: link 7 of 7: \"First\" is not a whole number"
    );
    assert_eq!(
        topology("5 6 100Gbps 1us 0\nFirst line: nodes, switches, links\n", ""),
        "topo.txt:7: the file ends where link 6 of 6 should be"
    );
    assert_eq!(topology("4 5 6\n", "4 5 5\n"), "topo.txt:2: node 5 is named a switch twice");
    let flows = |from: &str, to: &str| fails("flows", CONFIG, TOPOLOGY, &FLOWS.replace(from, to));
    assert_eq!(
        flows("0 2 3", "5 2 3"),
        "flow.txt:2: node 5 is a switch, and sends and receives no flows"
    );
    assert_eq!(flows("0 2 3", "0 22 3"), "flow.txt:2: node 22 is no host of the topology");
    assert_eq!(
        flows("200000 2\n", "200000 -2\n"),
        "flow.txt:2: start: \"-2\" is not a time in seconds, from 0"
    );
    let short = fails("short", CONFIG, TOPOLOGY, "3\n0 2 3 100 200000 2\n");
    assert_eq!(short, "flow.txt:2: the file ends where flow 2 of 3 should be");
}

/// A key that nobody knows, words behind a value, and values in every form of the programs'
/// readers.
#[test]
fn what_the_programs_skip_is_reported_and_the_import_goes_on() {
    let config = CONFIG.replace("RP_TIMER 300", "RP_TIMR 300").replace(
        "CC_MODE 1",
        "NEW_OUTPUT_FILE mix/new.txt\nNEW_KMIN_BYTES 1000\nCC_MODE 1 DCQCN // of course",
    );
    let all = imported("strange", &config, TOPOLOGY, FLOWS).unwrap();
    let unknown: Vec<_> =
        all.keys.iter().filter(|told| matches!(told.fate, Fate::Unknown(_))).collect();
    let texts: Vec<&str> = unknown.iter().map(|told| told.text.as_str()).collect();
    assert_eq!(
        texts,
        ["RP_TIMR 300", "NEW_OUTPUT_FILE mix/new.txt", "NEW_KMIN_BYTES 1000", "CC_MODE … DCQCN"]
    );
    assert!(unknown[0].place.ends_with("config.txt:14"), "{unknown:?}");
    plan(&all, "strange-plan");
    // Two keys on a line, and pairs that no count announces.
    let config = CONFIG
        .replace("RP_TIMER 300\nEWMA_GAIN 0.00390625", "RP_TIMER 300 EWMA_GAIN 0.00390625")
        .replace("KMIN_MAP 2 25000000000 100", "KMIN_MAP 1 25000000000 100");
    let all = imported("crowded", &config, TOPOLOGY, FLOWS).unwrap();
    assert!(matches!(fate(&all, "EWMA_GAIN"), Fate::Becomes(of) if of == "dcqcn-g = 0.00390625"));
    assert!(matches!(
        fate(&all, "KMIN_MAP …"),
        Fate::Unknown(of) if of.contains("1 pairs are announced and 2 are there")
    ));
    plan(&all, "crowded-plan");
}

#[test]
fn values_of_the_programs_readers_are_taken() {
    let config = CONFIG
        .replace("RATE_AI 5Mb/s", "RATE_AI 0Mb/s")
        .replace("RATE_HAI 50Mb/s", "RATE_HAI 5e7")
        .replace("MIN_RATE 100Mb/s", "MIN_RATE 12.5MBps")
        .replace("KMAX_MAP 2 25000000000", "KMAX_MAP 2 2.5e10")
        .replace("BUFFER_SIZE 32", "BUFFER_SIZE 32.0")
        .replace("QLEN_MON_START 2000000000", "QLEN_MON_START soon");
    let topology = TOPOLOGY
        .replace("0 4 25Gbps 1us", "0 4 25000000000.0 1e-6s")
        .replace("5 6 100Gbps", "5 6 12.5GBps");
    let all =
        imported("values", &config, &topology, &FLOWS.replace("2.000001", "2.000001e+00")).unwrap();
    let scenario = &all.files[0].1;
    for line in [
        "dcqcn-additive-increase = \"0bps\"",
        "dcqcn-hyper-increase = \"50Mbps\"",
        "dcqcn-min-rate = \"100Mbps\"",
    ] {
        assert!(scenario.contains(line), "{line} in\n{scenario}");
    }
    let plain = imported("plain-values", CONFIG, TOPOLOGY, FLOWS).unwrap();
    assert_eq!(all.files[1..], plain.files[1..]);
    assert!(matches!(fate(&all, "BUFFER_SIZE"), Fate::Becomes(_)));
    plan(&all, "values-plan");
    let none =
        imported("least", &CONFIG.replace("MIN_RATE 100Mb/s", "MIN_RATE 0"), TOPOLOGY, FLOWS)
            .unwrap();
    assert!(
        none.files[0].1.contains("dcqcn-min-rate = \"1bps\"")
            && matches!(fate(&none, "MIN_RATE"), Fate::Missing(_))
    );
}

/// The forms of the first line: PowerTCP's, Reverie's, SimAI's; and one that fits two of them.
#[test]
fn the_first_line_that_fits_the_file_is_taken() {
    let network = |name: &str, first: &str| {
        let topology = TOPOLOGY.replace("7 3 6\n", &format!("{first}\n"));
        imported(name, CONFIG, &topology, FLOWS)
            .map(|all| (all.files[2].1.clone(), all.facts))
            .map_err(|e| e.to_string())
    };
    let (plain, facts) = network("three", "7 3 6").unwrap();
    assert!(!facts.iter().any(|fact| fact.contains("first line")), "{facts:?}");
    for (name, first) in [("tors", "7 3 2 6"), ("reverie", "7 3 2 6 25000000000 100000000000")] {
        let (json, facts) = network(name, first).unwrap();
        assert_eq!(json, plain);
        assert!(
            facts.iter().any(|fact| fact.contains("first line is `nodes switches tors links`")),
            "{facts:?}"
        );
    }
    let (json, facts) = network("simais", "7 2 0 3 6 H100").unwrap();
    assert_eq!(json, plain);
    assert!(
        facts.iter().any(|fact| fact.contains("`nodes hosts-a-server NVSwitches switches links`")),
        "{facts:?}"
    );
    assert!(network("neither", "7 9 9 9").unwrap_err().contains("topo.txt:1: 9 switches"));
}

/// Lists of 5 to 8 columns, by what makes sense of them.
#[test]
fn columns_are_those_that_make_sense() {
    let flows = |name: &str, config: &str, list: &str| {
        let all = imported(name, config, TOPOLOGY, list).unwrap();
        let csv = all.files.iter().find(|(file, _)| file.ends_with(".csv")).unwrap().1.clone();
        (csv.lines().skip(1).map(str::to_string).collect::<Vec<_>>(), all)
    };
    let conweave = format!("{CONFIG}LB_MODE 0\nFLOWGEN_START_TIME 2.0\n");
    let (rows, all) = flows("six", &conweave, "2\n0 2 3 8192 2 2\n1 2 3 65536 2 1\n");
    assert_eq!(rows, ["0,0,2,8192", "0,1,2,65536"]);
    assert!(
        matches!(fate(&all, "0 2 3 8192"), Fate::Unknown(of) if of.contains("column 6")),
        "{:?}",
        all.keys
    );
    // The same fork's list with ports: no start fits the size.
    let (rows, _) = flows("six-ports", &conweave, "2\n0 2 3 100 8192 2\n1 2 3 100 65536 2.001\n");
    assert_eq!(rows, ["0,0,2,8192", "1000,1,2,65536"]);
    // Either reading fits: the fork's own counts, and the report has both.
    let (rows, all) = flows("either", &conweave, "1\n0 2 3 3 3 3\n");
    assert_eq!(rows, ["0,0,2,3"]);
    let which = "read as `src dst pg bytes start`; `src dst pg port bytes start` would fit as well";
    assert!(all.facts.iter().any(|fact| fact.contains(which)), "{:?}", all.facts);
    let (rows, _) = flows("seven", CONFIG, "2\n0 0 2 3 100 100000 2\n7 1 2 3 100 5 2\n");
    assert_eq!(rows, ["0,0,2,100000,0", "0,1,2,5,7"]);
    let (rows, all) = flows("same", CONFIG, "2\n0 0 2 3 100 100000 2\n0 1 2 3 100 5 2\n");
    assert_eq!(rows, ["0,0,2,100000", "0,1,2,5"]);
    assert!(matches!(fate(&all, "the flow's number"), Fate::Unknown(_)));
    let (rows, all) = flows("surplus", CONFIG, "1\n0 2 3 100 100000 2 tail\n");
    assert_eq!(rows, ["0,0,2,100000"]);
    assert!(matches!(fate(&all, "0 2 3 100"), Fate::Unknown(of) if of.contains("column 7")));
    let (rows, all) =
        flows("left-out", CONFIG, "3\n0 0 3 100 100 2\n0 1 3 100 0 2\n1 0 3 100 7 2\n");
    assert_eq!(rows, ["0,1,0,7"]);
    assert_eq!(all.keys.iter().filter(|told| matches!(told.fate, Fate::LeftOut(_))).count(), 2);
    assert!(
        fails("nothing", CONFIG, TOPOLOGY, "1\n0 0 3 100 100 2\n")
            .ends_with("flow.txt:2: no flow sends anything: all are left out")
    );
}

/// A stop before the first start is not honoured.
#[test]
fn a_stop_before_the_first_flow_is_reported() {
    let all =
        imported("early", &CONFIG.replace("STOP_TIME 4.00", "STOP_TIME 1.5"), TOPOLOGY, FLOWS)
            .unwrap();
    assert!(matches!(
        fate(&all, "SIMULATOR_STOP_TIME"),
        Fate::Missing(why) if why.starts_with("there nothing starts")
    ));
    assert!(!all.files[0].1.contains("duration"), "{}", all.files[0].1);
}

/// Each port has its rate's thresholds, also where they are not in proportion.
#[test]
fn thresholds_out_of_proportion_are_a_table_by_rate() {
    let config = CONFIG.replace("KMIN_MAP 2 25000000000 100", "KMIN_MAP 2 25000000000 10");
    let all = imported("by-rate", &config, TOPOLOGY, FLOWS).unwrap();
    assert!(matches!(fate(&all, "KMIN_MAP"), Fate::Becomes(_)));
    let plan = plan(&all, "by-rate-plan");
    let MarkingParams::Red(red) = plan.switch.marking else { panic!("red") };
    let at = |gbps| {
        let site = PortSite { rate: Rate::from_gbps(gbps), ..PortSite::default() };
        (*red.min_threshold.at(&site), *red.max_threshold.at(&site), *red.max_probability.at(&site))
    };
    assert_eq!(at(25), (Bytes(10_000), Bytes(400_000), 0.2));
    assert_eq!(at(100), (Bytes(400_000), Bytes(1_600_000), 0.2));
}

/// The ancestor's keys: thresholds for links of any rate, and sizes in packets.
#[test]
fn the_ancestors_lists_are_in_packets() {
    let config = "TOPOLOGY_FILE mix/topo.txt\nFLOW_FILE mix/flow.txt\nTCP_FLOW_FILE \
                  mix/none.txt\nKMAX 1000\nKMIN 40\nPMAX 1.0\nPACKET_PAYLOAD_SIZE \
                  1000\nDCTCP_GAIN 0.00390625\nBYTE_COUNTER 300000000\nSIMULATOR_STOP_TIME 3.01\n";
    let all = imported("ancestor", config, TOPOLOGY, "1\n0 2 3 100 2.0 3.0\n").unwrap();
    assert!(all.files[1].1.ends_with("\n0,0,2,100000\n"), "{}", all.files[1].1);
    assert!(
        all.files[0].1.contains("min-threshold = \"40KB\", max-threshold = \"1MB\""),
        "{}",
        all.files[0].1
    );
    assert!(
        matches!(fate(&all, "TCP_FLOW_FILE"), Fate::Missing(_))
            && matches!(fate(&all, "KMIN"), Fate::Becomes(_))
    );
    plan(&all, "ancestor-plan");
    // Beside maps by rate it is HPCC's simulator, which reads FLOW_FILE.
    let beside = format!("{CONFIG}TCP_FLOW_FILE mix/none.txt\n");
    let all = imported("tcp-flows", &beside, TOPOLOGY, FLOWS).unwrap();
    assert_eq!(all.facts[0], "a configuration of HPCC's released simulator");
    assert!(all.files[1].1.ends_with("\n500000,3,0,1\n"), "{}", all.files[1].1);
}

#[test]
fn files_are_given_in_the_place_of_those_that_keys_name() {
    let dir = dir("given", &CONFIG.replace("mix/", "elsewhere/"), TOPOLOGY, FLOWS);
    let (topology, flows) = (dir.0.join("mix/topo.txt"), dir.0.join("mix/flow.txt"));
    let instead = Instead { topology: Some(&topology), flows: Some(&flows), ..Instead::default() };
    let all = import(&dir.0.join("config.txt"), instead).unwrap();
    assert_eq!(all.files.len(), 3);
}

/// A ring of servers that forward, and a host on two switches.
#[test]
fn hosts_have_several_links() {
    let ring = "4 0 4\n0 1 25Gbps 1us 0\n1 2 25Gbps 1us 0\n2 3 25Gbps 1us 0\n3 0 25Gbps 1us 0\n";
    let all = imported("ring", CONFIG, ring, "1\n0 2 3 100 100000 2\n").unwrap();
    let ring = plan(&all, "ring-plan").topology;
    // A NIC for each direct link.
    assert_eq!((ring.hosts, ring.switches.len(), ring.links.len()), (4, 4, 12));
    assert_eq!(ring.routes[ring.leaf_of(0) as usize].towards(2).len(), 2, "both ways round");
    assert!(all.facts.iter().any(|fact| fact.starts_with("4 hosts have links to hosts")));
    let two = TOPOLOGY
        .replace("7 3 6\n", "7 3 7\n")
        .replace("0 4 25Gbps", "0 5 25Gbps 1us 0\n0 4 25Gbps");
    let all = imported("two", CONFIG, &two, FLOWS).unwrap();
    let two = plan(&all, "two-plan").topology;
    assert_eq!((two.hosts, two.addresses()), (4, 5));
    assert_ne!(two.leaf_of(0), two.leaf_of(4));
}

/// ConWeave's configuration in the order of its script's template.
const CONWEAVE: &str = "TOPOLOGY_FILE mix/topo.txt\nFLOW_FILE mix/flow.txt\n\nFLOW_INPUT_FILE \
     o/in.txt\nCNP_OUTPUT_FILE o/cnp.txt\nFCT_OUTPUT_FILE o/fct.txt\nPFC_OUTPUT_FILE \
     o/pfc.txt\nQLEN_MON_FILE o/qlen.txt\nVOQ_MON_FILE o/voq.txt\nVOQ_MON_DETAIL_FILE \
     o/dst.txt\nUPLINK_MON_FILE o/up.txt\nCONN_MON_FILE o/conn.txt\nEST_ERROR_MON_FILE \
     o/err.txt\nQLEN_MON_START 2.0\nQLEN_MON_END 2.1\nSW_MONITORING_INTERVAL \
     10000\nFLOWGEN_START_TIME 2.0\nFLOWGEN_STOP_TIME 2.1\nBUFFER_SIZE 9\nCC_MODE 1\nLB_MODE \
     3\nENABLE_PFC 0\nENABLE_IRN 1\nCONWEAVE_TX_EXPIRY_TIME 300\nCONWEAVE_REPLY_TIMEOUT_EXTRA \
     4\nCONWEAVE_PATH_PAUSE_TIME 16\nCONWEAVE_EXTRA_VOQ_FLUSH_TIME \
     16\nCONWEAVE_DEFAULT_VOQ_WAITING_TIME 200\nALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL \
     4\nCLAMP_TARGET_RATE 0\nRP_TIMER 300\nFAST_RECOVERY_TIMES 1\nEWMA_GAIN 0.00390625\nRATE_AI \
     40.0Mb/s\nRATE_HAI 100.0Mb/s\nMIN_RATE 100Mb/s\nDCTCP_RATE_AI 1000Mb/s\nERROR_RATE_PER_LINK \
     0.0000\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nL2_BACK_TO_ZERO 0\nRATE_BOUND 1\nHAS_WIN \
     0\nVAR_WIN 0\nFAST_REACT 0\nMI_THRESH 0\nINT_MULTI 1\nGLOBAL_T 1\nU_TARGET 0.95\nMULTI_RATE \
     0\nSAMPLE_FEEDBACK 0\nENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\nPACKET_PAYLOAD_SIZE \
     1000\nLINK_DOWN 0 0 0\nKMAX_MAP 2 25000000000 400 100000000000 400\nKMIN_MAP 2 25000000000 \
     100 100000000000 100\nPMAX_MAP 2 25000000000 0.2 100000000000 0.20\nLOAD 40\nRANDOM_SEED 1\n";

/// TLT's configuration in the order of its example.
fn tlts(enable: &str) -> String {
    let base = CONFIG
        .replace("FLOW_FILE mix/flow.txt", "FLOW_FILE mix/none.txt")
        .replace("BUFFER_SIZE 32", "BUFFER_SIZE 0");
    let base: String = base
        .lines()
        .filter(|line| !line.starts_with("PINT_"))
        .map(|line| format!("{line}\n"))
        .collect();
    let base = base.replace("MULTI_RATE 0", "MULTI_RATE 1").replace("RP_TIMER 300", "RP_TIMER 900");
    format!(
        "{base}HPCC_WORKLOAD mix/flow.txt\nLOAD 0.5\nFOREGROUND_RATIO 0.1\nAPP_START_TIME \
         0.01\nAPP_STOP_TIME 100\nINCAST_FLOW_SIZE 8000\nNUM_BG_FLOWS 20\nTLT_MAXBYTES_UIP \
         200000\nFOREGROUND_INCAST_FLOW_PER_HOST 5\nRANDOM_SEED 1\n{enable}"
    )
}

const SIZES: &str = "0 0\n10000 0.5\n20000 1\n";
const PORTLESS: &str = "2\n0 2 3 70000 2.0\n3 1 3 700 2.000000001\n";

/// The examples of three forks: every key has a fate, none is without a reader, and none is lost.
#[test]
fn no_key_of_three_forks_examples_is_unaccounted_for() {
    let tlt = tlts("ENABLE_IRN 1\nENABLE_PFC 1\nENABLE_TLT 1\nIRN_NO_BDPFC 1\n");
    let hpcc = CONFIG.replace("CC_MODE 1", "CC_MODE 3");
    // Memory by ports (BUFFER_SIZE 0) is known where all links are alike, as in TLT's example.
    let alike = TOPOLOGY.replace("100Gbps", "25Gbps");
    for (name, config, topology, flows) in [
        ("of-hpcc", &*hpcc, TOPOLOGY, FLOWS),
        ("of-tlt", &tlt, &alike, SIZES),
        ("of-conweave", CONWEAVE, TOPOLOGY, PORTLESS),
    ] {
        let all = imported(name, config, topology, flows).unwrap();
        let keys = config.lines().filter(|line| !line.is_empty()).count();
        assert_eq!(all.keys.len(), keys, "{name}");
        let lost: Vec<_> = all.keys.iter().filter(|told| told.is_missing()).collect();
        assert!(lost.is_empty(), "{name}: {lost:#?}");
        plan(&all, &format!("{name}-plan"));
    }
}

/// By hand: 4 us of delays each way and 1000 bytes on two links of 25 and two of 100 Gb/s, 8.8 us,
/// of which 25 Gb/s carry 27,500 bytes.
#[test]
fn windows_are_of_the_longest_round_trip() {
    let all = imported("window", CONFIG, TOPOLOGY, FLOWS).unwrap();
    let rdma = plan(&all, "window-plan").rdma;
    assert_eq!(
        (rdma.base_rtt, rdma.window),
        (Auto::Given(Time::from_ns(8_800)), Auto::Given(Bytes(27_500)))
    );
    assert_eq!((rdma.flow_control, rdma.ack_interval), (FlowControl::Rate, 1));
    for (from, to, expected) in [
        ("VAR_WIN 1", "VAR_WIN 0", FlowControl::Static),
        ("HAS_WIN 1", "HAS_WIN 0", FlowControl::None),
    ] {
        let all = imported("window-kind", &CONFIG.replace(from, to), TOPOLOGY, FLOWS).unwrap();
        assert_eq!(plan(&all, "window-kind-plan").rdma.flow_control, expected);
    }
    let each =
        imported("window-each", &CONFIG.replace("GLOBAL_T 1", "GLOBAL_T 0"), TOPOLOGY, FLOWS)
            .unwrap();
    assert!(
        matches!(fate(&each, "GLOBAL_T"), Fate::Missing(why) if why.contains("not each its own"))
    );
}

/// Recovery by fork: NACKs' interval, IRN's timeouts and its bound.
#[test]
fn recoveries_are_those_of_the_forks() {
    let of = |name: &str, config: &str, flows: &str| {
        plan(&imported(name, config, TOPOLOGY, flows).unwrap(), &format!("{name}-plan"))
            .rdma_choices
            .recovery
    };
    let RecoveryParams::GoBackN(p) = of("gbn", CONFIG, FLOWS) else { panic!("go-back-n") };
    // 32 MiB in front of 25 Gb/s are 10.737 ms, and two round trips are 17.6 us.
    assert_eq!((p.nack_interval, p.timeout), (Time::from_us(500), Time::from_us(10_756)));
    assert!(!p.answer_duplicates, "HPCC's answers nothing that comes again, TLT's does");
    let RecoveryParams::GoBackN(p) =
        of("tlt-gbn", &tlts("ENABLE_IRN 0\nENABLE_PFC 0\nENABLE_TLT 0\n"), SIZES)
    else {
        panic!("go-back-n")
    };
    assert!(p.answer_duplicates);
    let irn = |name: &str, config: &str, flows: &str| {
        let RecoveryParams::Selective(p) = of(name, config, flows) else { panic!("selective") };
        assert_eq!(
            (p.few, p.resend),
            (4, Resend::All),
            "three, and the last one, from whose start they count"
        );
        let (low, high) = p.timeouts(Time::ZERO);
        (p.nack_interval.as_ps() / 1_000_000, low, high, p.bdp_limit)
    };
    let (us, ms) = (Time::from_us, Time::from_ms);
    let given = |bytes| Auto::Given(Some(Bytes(bytes)));
    assert_eq!(irn("conweave-irn", CONWEAVE, PORTLESS), (4, us(100), us(320), given(27_500)));
    let tlt = |rest: &str| tlts(&format!("ENABLE_IRN 1\nENABLE_PFC 0\nENABLE_TLT 0\n{rest}"));
    assert_eq!(
        irn("tlt-irn", &tlt("IRN_NO_BDPFC 0\n"), SIZES),
        (500, us(454), us(1930), given(18_750))
    );
    assert_eq!(
        irn("tlt-sack", &tlt("IRN_NO_BDPFC 1\n"), SIZES),
        (500, ms(4), ms(4), Auto::Given(None))
    );
    let simai = format!("{CONFIG}MON_START 1\nns3::RdmaHw::NACKGenerationInterval 7.5\n");
    let RecoveryParams::GoBackN(p) = of("simai-nack", &simai, FLOWS) else { panic!("go-back-n") };
    assert_eq!(p.nack_interval, Time::from_ns(7_500));
}

/// How marks are reported, with which priority, and what is reported of the interval of
/// acknowledgements.
#[test]
fn answers_are_those_of_the_forks() {
    let rdma = |name: &str, config: &str, flows: &str| {
        let all = imported(name, config, TOPOLOGY, flows).unwrap();
        plan(&all, &format!("{name}-plan")).rdma
    };
    let hpcc = rdma("answers", CONFIG, FLOWS);
    assert_eq!(
        (hpcc.notification, hpcc.ack_priority, hpcc.cnp_on_reordering),
        (Notification::Answers, None, false)
    );
    assert_eq!((hpcc.data_header, hpcc.rate_change), (0, RateChange::Law));
    let timely = rdma("answers-timely", &CONFIG.replace("CC_MODE 1", "CC_MODE 7"), FLOWS);
    assert_eq!(timely.data_header, 8, "a timestamp");
    let high = rdma("answers-high", &CONFIG.replace("ACK_HIGH_PRIO 0", "ACK_HIGH_PRIO 1"), FLOWS);
    assert_eq!((high.ack_priority, high.nack_priority), (Some(7), Some(7)));
    let conweave = imported("answers-conweave", CONWEAVE, TOPOLOGY, PORTLESS).unwrap();
    let conweave = plan(&conweave, "answers-conweave-plan");
    assert_eq!((conweave.rdma.ack_priority, conweave.rdma.cnp_on_reordering), (Some(7), true));
    assert!(
        conweave.resolved.contains("queue = { kind = \"strict-priority\""),
        "{}",
        conweave.resolved
    );
    let seldom = imported(
        "seldom",
        &CONFIG.replace("L2_ACK_INTERVAL 1", "L2_ACK_INTERVAL 4000"),
        TOPOLOGY,
        FLOWS,
    )
    .unwrap();
    assert!(matches!(
        fate(&seldom, "L2_ACK_INTERVAL"),
        Fate::Missing(why) if why.contains("first 4000 bytes")
    ));
    assert_eq!(plan(&seldom, "seldom-plan").rdma.ack_interval, 1);
}

/// Memory, pauses and CONGA have the constants of the fork's program.
#[test]
fn switches_are_those_of_the_forks() {
    let all = imported("switch-hpcc", CONFIG, TOPOLOGY, FLOWS).unwrap();
    assert!(matches!(fate(&all, "BUFFER_SIZE"), Fate::Becomes(_)));
    let hpcc = plan(&all, "switch-hpcc-plan").switch;
    let PauseParams::Pfc(pfc) = hpcc.pause else { panic!("pfc") };
    assert_eq!((pfc.alpha, pfc.per, pfc.pause_time), (0.125, Some(Rate::from_gbps(25)), None));
    assert_eq!(pfc.resume_offset, Bytes(8 * 3 * 1024));
    let BufferParams::Pools(pools) = hpcc.buffer else { panic!("pools") };
    assert_eq!(
        (pools.headroom_rule, pools.size.at(0)),
        (HeadroomRule::ThreeDelays, &Bytes(32 << 20))
    );
    assert_eq!(pools.group_min.unwrap().get() + pools.port_min.unwrap().get(), 4096);
    let all = imported(
        "switch-conweave",
        &CONWEAVE.replace("ENABLE_PFC 0", "ENABLE_PFC 1"),
        TOPOLOGY,
        PORTLESS,
    )
    .unwrap();
    let conweave = plan(&all, "switch-conweave-plan").switch;
    let PauseParams::Pfc(pfc) = conweave.pause else { panic!("pfc") };
    assert_eq!((pfc.alpha, pfc.per, pfc.pause_time), (0.0625, None, Some(Time::from_us(5))));
    let BufferParams::Pools(pools) = conweave.buffer else { panic!("pools") };
    assert_eq!(
        (pools.headroom_rule, pools.egress_limit),
        (HeadroomRule::RoundTrip, EgressLimit::Always)
    );
    let PathParams::Conga(conga) = conweave.path else { panic!("conga") };
    let us = Time::from_us;
    assert_eq!((conga.gap, conga.window, conga.age, conga.bits), (us(100), us(250), us(500), 3));
}

/// TLT's keys, of queue pairs as its program has them.
#[test]
fn tlts_keys_mark_from_the_first_packet_on() {
    let all =
        imported("tlt-keys", &tlts("ENABLE_IRN 0\nENABLE_PFC 0\nENABLE_TLT 1\n"), TOPOLOGY, SIZES)
            .unwrap();
    let plan = plan(&all, "tlt-keys-plan");
    assert!(plan.resolved.contains("kind = \"tlt\", first = \"first\""), "{}", plan.resolved);
    assert!(plan.resolved.contains("lost-rounds = \"last\", every = 96"), "{}", plan.resolved);
    assert!(
        plan.resolved.contains("kind = \"color-aware\", threshold = \"200KB\""),
        "{}",
        plan.resolved
    );
    let off =
        imported("tlt-off", &tlts("ENABLE_IRN 0\nENABLE_PFC 0\nENABLE_TLT 0\n"), TOPOLOGY, SIZES)
            .unwrap();
    assert!(
        matches!(fate(&off, "TLT_MAXBYTES_UIP"), Fate::Unused(_))
            && !off.files[0].1.contains("tlt")
    );
}

/// A congestion control that is not modelled runs as the nearest one, and the import says so;
/// parameters of one that is not chosen have no effect there.
#[test]
fn a_congestion_control_that_is_not_modelled_has_a_stand_in() {
    for (mode, stand_in, name) in [
        (10, "hpcc", "HPCC-PINT"),
        (11, "timely", "Swift"),
        (13, "dcqcn", "RealDcqcn"),
        (2, "dcqcn", "not known"),
    ] {
        let all = imported(
            "stand-in",
            &CONFIG.replace("CC_MODE 1", &format!("CC_MODE {mode}")),
            TOPOLOGY,
            FLOWS,
        )
        .unwrap();
        assert!(
            matches!(
                fate(&all, "CC_MODE"),
                Fate::Missing(why) if why.contains(name) && why.contains(stand_in)
            ),
            "{mode}"
        );
        assert!(
            plan(&all, "stand-in-plan")
                .resolved
                .contains(&format!("[transport]\nkind = \"{stand_in}\"")),
            "{mode}"
        );
        let is_pint = mode == 10;
        assert_eq!(matches!(fate(&all, "PINT_PROB"), Fate::Missing(_)), is_pint);
        assert_eq!(matches!(fate(&all, "U_TARGET"), Fate::Becomes(_)), is_pint);
    }
    let simai = format!("{CONFIG}MON_START 1\nns3::RealDcqcn::F 5\n");
    let all = imported("real-unused", &simai, TOPOLOGY, FLOWS).unwrap();
    assert!(
        matches!(fate(&all, "ns3::RealDcqcn::F"), Fate::Unused(why) if why.contains("CC_MODE 13"))
    );
    assert!(matches!(fate(&all, "INT_MULTI"), Fate::Unused(_)), "DCQCN has no telemetry");
    let coarse = CONFIG.replace("CC_MODE 1", "CC_MODE 3").replace("INT_MULTI 1", "INT_MULTI 4");
    let all = imported("coarse", &coarse, TOPOLOGY, FLOWS).unwrap();
    assert!(
        matches!(fate(&all, "INT_MULTI"), Fate::Missing(_))
            && matches!(fate(&all, "SAMPLE_FEEDBACK"), Fate::Becomes(_))
    );
}

/// Damaged configurations, topologies and lists of every fork are scenarios or errors.
#[test]
fn damaged_files_are_errors_and_end_no_program() {
    let mut random = Stream::from_key(57);
    let (simai, numbered) = (
        "7 2 1 2 8 H100\n6 4 5\n0 6 2400Gbps 0.000025ms 0\n1 6 2400Gbps 0.000025ms 0\n0 4 25Gbps \
         1us 0\n1 4 25Gbps 1us 0\n2 5 25Gbps 1us 0\n3 5 25Gbps 1us 0\n4 5 100Gbps 1us 0\n2 3 \
         25Gbps 1us 0\n",
        "2\n0 0 2 3 100 200000 2\n1 1 2 3 100 5000 2.000001\n",
    );
    let (mut taken, tlt) = (0, tlts("ENABLE_TLT 1"));
    for round in 0..6_000 {
        let config = [CONFIG, CONWEAVE, &tlt][round % 3];
        let topology = [TOPOLOGY, simai][round / 3 % 2];
        let flows = [FLOWS, numbered, "1\n0 2 3 100000 2\n"][round / 6 % 3];
        let mut texts = [config, topology, flows].map(String::from);
        let at = round % 4;
        for (text, _) in texts.iter_mut().zip(0..).filter(|(_, place)| at == 3 || at == *place) {
            *text = damaged(text, &mut random);
        }
        let Ok(mut config) = Config::read(Source::of("config.txt", &texts[0])) else { continue };
        config.instead("TOPOLOGY_FILE", Some(Source::of("topo.txt", &texts[1])));
        config.instead("FLOW_FILE", Some(Source::of("flow.txt", &texts[2])));
        config.instead("HPCC_WORKLOAD", Some(Source::of("sizes.txt", "0 0\n9000 0.5\n20000 1\n")));
        taken += usize::from(of("bad", config, None).is_ok());
    }
    assert!(taken > 100, "{taken} were taken");
}
