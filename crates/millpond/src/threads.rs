//! How many threads a run has where `--threads` is not given: all cores, or one where windows hold
//! too little to share.
//!
//! The threads of a run meet at the end of each window, which is as long as the shortest link
//! between two parts of the network. A window of few packets is served by one thread alone, and
//! then the partitions that several threads need cost a tenth to a fifth for nothing. The work in a
//! window is estimated before the run, from what the links carry in it and from what the traffic
//! asks for.
//!
//! Invariant: the choice changes the time that a run takes, and no result.

use millpond_claims::packet_hops;
use millpond_scenario::plan::Plan;
use millpond_sim::layout::{Layout, PARTITIONS_MAX};

/// Packet-hops in a window from which on several threads are faster. By `make bench`: 680 (HARD320)
/// and 830 (LS128) run at 0.9 of one thread's speed with two, 6,600 (LS1024) at 1.5.
const WORTH_SHARING: f64 = 2_000.0;

/// Threads, and in words why so many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// At least one.
    pub threads: usize,
    /// For the user: the number, and what it follows from.
    pub reason: String,
}

/// All cores.
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Chooses for a run that has the machine for itself.
pub(crate) fn choose(plan: &Plan) -> Choice {
    of(plan, all_cores())
}

fn of(plan: &Plan, cores: usize) -> Choice {
    let layout = Layout::new(&plan.topology, PARTITIONS_MAX, plan.engine.one_partition);
    let hops = hops_a_window(plan, &layout);
    let is_shared = hops >= WORTH_SHARING && layout.partitions > 1;
    let threads = if is_shared { cores.min(layout.partitions) } else { 1 };
    let reason = match (layout.partitions, cores) {
        (_, 1) => "1 thread: there is one core".to_string(),
        (1, _) => "1 thread: the network has one partition".to_string(),
        _ => {
            let (s, few) = if threads == 1 { ("", ", too few to share") } else { ("s", "") };
            let window = layout.window;
            let hops = if hops < 1.0 { "less than one".into() } else { format!("about {hops:.0}") };
            format!("{threads} thread{s}: {hops} packet-hops in a window of {window}{few}")
        }
    };
    Choice { threads, reason }
}

/// Packet-hops in a window: what links can carry, or what the traffic asks for if that is less.
fn hops_a_window(plan: &Plan, layout: &Layout) -> f64 {
    let packet = plan.host.packet_max() as f64;
    let carried = |rate: millpond_core::Rate| rate.bytes_in(layout.window) as f64 / packet;
    // Both ways, and an acknowledgement for each full packet.
    let most: f64 = plan.topology.links.iter().map(|link| 4.0 * carried(link.rate)).sum();
    let asked = packet_hops(plan).filter(|hops| hops.span > layout.window);
    let asked = asked.map(|hops| hops.count * layout.window.as_s_f64() / hops.span.as_s_f64());
    asked.map_or(most, |asked| asked.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_scenario::Scenario;

    fn choice(leaves: u32, load: f64, delay: &str, cores: usize) -> Choice {
        let text = format!(
            "duration = \"5ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = {leaves}\nspines = \
             4\nhosts-per-leaf = 16\nhost-link = {{ rate = \"10Gbps\", delay = \"1us\" \
             }}\nfabric-link = {{ rate = \"40Gbps\", delay = \"{delay}\" }}\n[[traffic]]\nkind = \
             \"poisson\"\nsizes = \"1MB\"\nload = {load}\n"
        );
        let plan = Scenario::parse("t.toml", &text).unwrap().plan(None, &[], None).unwrap();
        of(&plan, cores)
    }

    #[test]
    fn small_networks_have_one_thread_and_large_ones_all() {
        assert_eq!(choice(8, 0.9, "1us", 4).threads, 1);
        assert_eq!(choice(64, 0.9, "1us", 4).threads, 4);
        assert_eq!(choice(64, 0.9, "1us", 1).threads, 1);
    }

    #[test]
    fn a_light_load_and_a_short_window_leave_little_to_share() {
        assert_eq!(choice(64, 0.05, "1us", 4).threads, 1);
        assert_eq!(choice(8, 0.9, "10us", 4).threads, 4);
        assert_eq!(choice(64, 0.9, "0us", 4).reason, "1 thread: the network has one partition");
        let reason = choice(8, 0.9, "1us", 4).reason;
        assert!(reason.ends_with("packet-hops in a window of 1us, too few to share"), "{reason}");
    }
}
