//! The edge of a switch with peers: the registries' load balancing and receive offload, with the
//! switch's defaults.
//!
//! The keys are those of a scenario's `edge.load-balancing` and `host.receive-offload`.
//!
//! Invariant: an edge that is written is read back as the same.

use millpond_core::Time;
use millpond_core::edge::flowcell::{LoadBalancingParams, Opening, Rule};
use millpond_core::edge::gro::{OffloadParams, Rules};
use millpond_core::edge::schedule::Order;
use millpond_core::params::Params;
use millpond_core::registry::{Choice, Place};
use millpond_scenario::document::{DocumentReader, value_text};

/// How flows spread over a peer's paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Spreading(pub LoadBalancingParams);

/// The offload that merges packets from peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offloading(pub OffloadParams);

impl Default for Spreading {
    fn default() -> Self {
        Spreading(LoadBalancingParams::Presto(Default::default()))
    }
}

impl Default for Offloading {
    fn default() -> Self {
        Offloading::new(OffloadParams::Presto(Default::default()))
    }
}

impl Offloading {
    /// With the switch's defaults: its polls are longer than a simulated host's, and a
    /// retransmission may overtake. A flow may hold what all may: 16 MiB is 40 Gb/s for 3 ms of
    /// skew, and what is held has buffers of the switch, which are bounded.
    fn new(mut params: OffloadParams) -> Offloading {
        if let OffloadParams::Presto(p) = &mut params {
            (p.min, p.rules, p.flow_held_max) = (Time::from_us(250), Rules::Safe, p.held_max);
        }
        Offloading(params)
    }
}

/// A choice of a registry that differs from it in its defaults.
macro_rules! choice_of {
    ($Own:ident, $Params:ty, $new:expr) => {
        impl Choice for $Own {
            fn place() -> &'static Place {
                <$Params>::place()
            }
            fn of_kind(kind: &str) -> Option<Self> {
                <$Params>::of_kind(kind).map($new)
            }
            fn kind(&self) -> &'static str {
                self.0.kind()
            }
            fn params(&self) -> &dyn Params {
                self.0.params()
            }
            fn params_mut(&mut self) -> &mut dyn Params {
                self.0.params_mut()
            }
        }
    };
}
choice_of!(Spreading, LoadBalancingParams, Spreading);
choice_of!(Offloading, OffloadParams, Offloading::new);

/// Keys of the registries that a switch answers by itself: its poll loop takes what is there, and
/// it has no controller.
const OTHERS: [&str; 3] =
    ["load-balancing.controller-delay", "receive-offload.budget", "receive-offload.coalescing"];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edge {
    /// How flows spread over a peer's paths.
    pub load_balancing: Spreading,
    /// The offload that merges packets from peers.
    pub receive_offload: Offloading,
}

impl Edge {
    /// Reads its keys, which stand outside of any table.
    pub fn read(r: &mut DocumentReader<'_>) -> Edge {
        let edge = Edge {
            load_balancing: r.choice("load-balancing").unwrap_or_default(),
            receive_offload: r.choice("receive-offload").unwrap_or_default(),
        };
        if matches!(edge.load_balancing.0, LoadBalancingParams::Plb(_)) {
            r.wrong_at(
                "load-balancing",
                "plb is for simulated hosts: a switch does not read acknowledgements",
                None,
            );
        }
        for path in OTHERS.into_iter().filter(|path| r.has(path)).collect::<Vec<_>>() {
            r.wrong_at(path, "is for simulated hosts: a switch has nothing to set there", None);
        }
        if let LoadBalancingParams::Hedera(_) = edge.load_balancing.0 {
            r.wrong_at(
                "load-balancing",
                "hedera is a scheduler of a whole network, and a switch knows its own paths",
                None,
            );
        }
        edge
    }

    /// As lines that are read back as the same.
    pub fn to_text(&self) -> String {
        line("load-balancing", &self.load_balancing)
            + &line("receive-offload", &self.receive_offload)
    }

    /// The rule that opens the next flowcell; without load balancing a flow keeps the path that it
    /// began with.
    pub fn rule(&self) -> Rule {
        let one =
            Rule { opening: Opening::Bytes(u64::MAX), order: Order::RoundRobin, is_first: false };
        self.load_balancing.0.rule().unwrap_or(one)
    }
}

/// A choice with the keys that are not as by default; nothing, where none is.
fn line<C: Choice + PartialEq>(key: &str, choice: &C) -> String {
    if *choice == C::default() {
        return String::new();
    }
    let (params, default) = (choice.params(), C::of_kind(choice.kind()).unwrap_or_default());
    let differs = |i: &usize| params.get(*i) != default.params().get(*i);
    let pair = |i: usize| format!(", {} = {}", params.keys()[i].name(), value_text(&params.get(i)));
    let pairs: String = (0..params.keys().len()).filter(differs).map(pair).collect();
    format!("{key} = {{ kind = \"{}\"{pairs} }}\n", choice.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::config::Config;
    use millpond_core::Bytes;
    use millpond_core::edge::flowcell::FlowletParams;
    use millpond_core::edge::gro::PrestoGroParams;

    fn presto_gro(change: impl FnOnce(&mut PrestoGroParams)) -> Offloading {
        let mut params = PrestoGroParams {
            min: Time::from_us(250),
            rules: Rules::Safe,
            flow_held_max: Bytes(16 << 20),
            ..Default::default()
        };
        change(&mut params);
        Offloading(OffloadParams::Presto(params))
    }

    #[test]
    fn keys_are_the_registries() {
        let read = |text: &str| Config::parse("a.toml", text).unwrap().edge;
        let gap = FlowletParams { gap: Time::from_us(100), ..Default::default() };
        let edge = read(
            "load-balancing = { kind = \"flowlet\", gap = \"100us\" }\nreceive-offload = \
             \"none\"\n",
        );
        assert_eq!(edge.load_balancing, Spreading(LoadBalancingParams::Flowlet(gap)));
        assert_eq!(edge.rule().opening, Opening::Gap(Time::from_us(100)));
        assert_eq!(edge.receive_offload.kind(), "none");
        let edge =
            read("receive-offload = { alpha = 3, rules = \"literal\" }\n[[port]]\nname = \"a\"\n");
        assert_eq!(edge.receive_offload, presto_gro(|p| (p.alpha, p.rules) = (3, Rules::Literal)));
        assert_eq!(
            edge.to_text(),
            "receive-offload = { kind = \"presto-gro\", alpha = 3, rules = \"literal\" }\n"
        );
    }

    #[test]
    fn errors_have_the_places_of_a_scenarios() {
        let has = |text: &str, what: &str| {
            let said = Config::parse("a.toml", text).unwrap_err().to_string();
            assert!(said.contains(what), "{what:?} not in {said}");
        };
        has(
            "load-balancing = { treshold = 1 }\n",
            "a.toml:1:20: unknown key `treshold` in [load-balancing] (did you mean",
        );
        has(
            "load-balancing = { threshold = 0 }\n",
            "a.toml:1:32: `load-balancing.threshold`: expected 1B or more",
        );
        has(
            "load-balancing = \"prestoo\"\n",
            "a.toml:1:18: there is no kind of load-balancing \"prestoo\" (did you",
        );
        has("load-balancing = \"plb\"\n", "a.toml:1:18");
        has(
            "load-balancing = { kind = \"hedera\" }\n",
            "`load-balancing`: hedera is a scheduler of a whole network",
        );
        has("receive-offload = { kind = \"stock-gro\", min = \"1us\" }\n", "a.toml:1:41: `min`");
        has(
            "receive-offload = { budget = 8 }\n",
            "a.toml:1:30: `receive-offload.budget`: is for simulated hosts",
        );
        has(
            "load-balancing = { controller-delay = \"1ms\" }\n",
            "a.toml:1:39: `load-balancing.controller-delay`",
        );
        has("receive-ofload = \"none\"\n", "a.toml:1:1: unknown key `receive-ofload`");
        has("receive-ofload = \"none\"\n", "did you mean `receive-offload`?");
    }

    /// Without load balancing no packet of a flow changes its path.
    #[test]
    fn no_load_balancing_is_one_path_a_flow() {
        let edge = Config::parse("a.toml", "load-balancing = \"none\"\n").unwrap().edge;
        let rule = edge.rule();
        let mut cell = millpond_core::edge::flowcell::Flowcell::new(&rule, 7 << 32, 0);
        let stamps: Vec<_> =
            (0..1000).map(|n| cell.stamp(Time::from_s(n), &rule, 64_000, &[0, 1, 2, 3])).collect();
        assert!(stamps.iter().all(|stamp| *stamp == stamps[0]));
    }
}
