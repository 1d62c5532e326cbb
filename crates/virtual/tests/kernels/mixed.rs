//! Networks of two stacks: kernels and modelled hosts on the same switches.

use crate::{Records, compared, try_run};
use millpond_core::Time;
use millpond_results::FlowRecord;
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_virtual::kernels;
use millpond_worlds::needs;

/// Hosts 0 and 1 are kernels, on a leaf each; the others are modelled.
const NETWORK: &str = "until = \"flows-complete\"\nduration = \"200ms\"\n[topology]\n\
                       kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts-per-leaf = 4\n\
                       host-link = { rate = \"10Gbps\", delay = \"2us\" }\n\
                       fabric-link = { rate = \"10Gbps\", delay = \"2us\" }\n\
                       [host]\nlinux = [\"0\", \"4\"]\n[switch]\nbuffer = { kind = \"per-port\", \
                       size = \"150KB\" }\n[transport]\nkind = \"newreno\"\n";

fn plan(network: &str, traffic: &str) -> Plan {
    let text = format!("{network}{traffic}");
    Scenario::parse("mixed", &text).unwrap().plan(None, &[], None).unwrap()
}

fn sorted(mut flows: Vec<FlowRecord>) -> Vec<FlowRecord> {
    flows.sort_by_key(|record| record.flow);
    flows
}

/// Beside kernels that rest, modelled hosts do what the simulator has them do, to the picosecond.
#[test]
fn beside_idle_kernels_modelled_flows_are_the_simulators() {
    needs!(kernels::find(None));
    let plan = plan(
        &NETWORK.replace("150KB", "40KB"),
        "[[traffic]]\nkind = \"poisson\"\nhosts = [\"1..3\", \"5..7\"]\nsizes = \
         \"50KB\"\nload = 0.8\nstop = \"10ms\"\n[[traffic]]\nkind = \"incast\"\nhosts = \
         [\"1..3\", \"5..7\"]\ndegree = 5\ncount = 4\nrate = 1000.0\n",
    );
    let (outcome, records) = try_run(&plan, 1).unwrap();
    let (own, theirs) = (sorted(records.flows), sorted(compared::simulated(&plan).flows));
    assert!(theirs.len() > 50 && theirs.iter().all(|it| it.finish.is_some()));
    assert!(theirs.iter().any(|it| it.retransmitted > 0), "the network is loaded");
    let other = own.iter().zip(&theirs).find(|(own, theirs)| own != theirs);
    assert!(own.len() == theirs.len() && other.is_none(), "{other:#?}");
    assert_eq!(outcome.counts.completed, theirs.len() as u64);
}

/// A kernel's flow and a modelled one share a port by halves, about; nothing is lost count of, and
/// the result depends on nothing but the plan.
#[test]
fn kernels_and_modelled_hosts_share_a_port() {
    needs!(kernels::find(None));
    let traffic = "[[traffic]]\nname = \"kernels\"\nkind = \"flows\"\n\
                   rows = [{ start = 0, src = 0, dst = 4, bytes = 20000000 }]\n\
                   [[traffic]]\nname = \"modelled\"\nkind = \"flows\"\n\
                   rows = [{ start = 0, src = 1, dst = 5, bytes = 20000000 }]\n";
    let plan = plan(&NETWORK.replace("spines = 2", "spines = 1"), traffic);
    let runs: Vec<_> = [1, 1, 2].map(|parallel| try_run(&plan, parallel).unwrap()).into();
    let of = |(_, records): &(_, Records)| sorted(records.flows.clone());
    let flows = of(&runs[0]);
    assert_eq!(flows.len(), 2);
    assert!(
        runs.iter().all(|run| of(run) == flows),
        "{:#?}",
        runs.iter().map(of).collect::<Vec<_>>()
    );
    for flow in &flows {
        // 20 MB at half of 10 Gb/s take 33 ms: whoever is last has the port alone at the end.
        let took = flow.finish.expect("it ends").saturating_sub(flow.start);
        assert!(Time::from_ms(20) < took && took < Time::from_ms(60), "{flow:?}");
    }
    let counted = &runs[0].0.counted;
    let dropped: u64 = counted.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!(counted.entered, counted.delivered + dropped + counted.held);
    let [entered, delivered, lost, held] = counted.bytes;
    assert_eq!(entered, delivered + lost + held);
    assert!(dropped > 0, "they fill the port");
}

/// A modelled job of ranks, with a transport that Linux has not, beside a kernel's flow.
#[test]
fn modelled_hosts_have_what_the_simulator_has() {
    needs!(kernels::find(None));
    let traffic = "[[traffic]]\nname = \"kernels\"\nkind = \"flows\"\n\
                   rows = [{ start = 0, src = 0, dst = 4, bytes = 2000000 }]\n\
                   [[traffic]]\nname = \"ring\"\nkind = \"collective\"\n\
                   op = \"all-reduce\"\nsize = \"1MB\"\n\
                   transport = { kind = \"dcqcn\" }\nhosts = [\"1..3\", \"5..7\"]\n";
    let plan = plan(NETWORK, traffic);
    let (outcome, records) = try_run(&plan, 1).unwrap();
    let kernels = records.flows.iter().filter(|it| it.class == 0).count();
    assert_eq!(kernels, 1);
    assert!(records.flows.iter().all(|it| it.finish.is_some()));
    assert_eq!(records.collectives, 1);
    assert!(outcome.counts.completed > 1, "{}", outcome.counts.completed);
}
