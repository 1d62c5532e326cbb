//! The edge of a switch with peers: the registries' load balancing and receive offload, with the
//! switch's defaults.
//!
//! The keys are those of a scenario's `edge.load-balancing` and `host.receive-offload`. Before they
//! were, a switch had names of its own for some of them; files and state folders that have those
//! are still read ([`FORMER`]).
//!
//! Invariant: what is read from a former name is the same edge as it was, and is written by its
//! present one.

use millpond_core::edge::flowcell::{LoadBalancingParams, Opening, Rule};
use millpond_core::edge::gro::{OffloadParams, Rules};
use millpond_core::edge::schedule::Order;
use millpond_core::params::Params;
use millpond_core::registry::{Choice, Place};
use millpond_core::{Bytes, Time, params};
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

params! {
    /// Names of before.
    pub struct FormerParams {
        /// load-balancing.threshold.
        #[within(1..)]
        pub flowcell: Bytes = Bytes(64 << 10),
        /// load-balancing.order.
        pub order: Order = Order::RoundRobin,
        /// receive-offload.min, and initial where that is more.
        pub delay_min: Time = Time::from_us(250),
        /// receive-offload.flow-held-max.
        #[within(65536..)]
        pub held_max: Bytes = Bytes(1 << 20),
    }
}

/// Each former name with the table and the key that it means.
const FORMER: [(&str, &str, &str); 4] = [
    ("flowcell", "load-balancing", "threshold"),
    ("order", "load-balancing", "order"),
    ("delay-min", "receive-offload", "min"),
    ("held-max", "receive-offload", "flow-held-max"),
];

/// Keys of the registries that a switch answers by itself: its poll loop takes what is there, and
/// it has no controller.
const OTHERS: [&str; 3] =
    ["load-balancing.controller-delay", "receive-offload.budget", "receive-offload.coalescing"];

/// A switch's edge.
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
        let mut former = FormerParams::default();
        // Where none is written, no error names them as keys there are.
        if FORMER.iter().any(|(key, ..)| r.has(key)) {
            r.top(&mut former);
        }
        let mut edge = Edge {
            load_balancing: r.choice("load-balancing").unwrap_or_default(),
            receive_offload: r.choice("receive-offload").unwrap_or_default(),
        };
        for (key, table, name) in FORMER {
            if r.has(key) && r.is_table(table) {
                let help = format!("write {name} in the table {table}");
                r.wrong_at(key, format!("is the former name of {table}.{name}"), Some(help));
            }
        }
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
        if let LoadBalancingParams::Presto(p) = &mut edge.load_balancing.0 {
            p.threshold = if r.has("flowcell") { former.flowcell } else { p.threshold };
            p.order = if r.has("order") { former.order } else { p.order };
        }
        // Beside other kinds these had no effect and were no error.
        if let OffloadParams::Presto(p) = &mut edge.receive_offload.0 {
            if r.has("delay-min") {
                (p.min, p.initial) = (former.delay_min, p.initial.min(former.delay_min));
            }
            p.flow_held_max = if r.has("held-max") { former.held_max } else { p.flow_held_max };
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
    use crate::switch::apply::installed;
    use crate::switch::config::Config;
    use crate::switch::state::State;
    use millpond_core::edge::flowcell::{FlowletParams, PrestoParams};
    use millpond_core::edge::gro::{PrestoGroParams, StockGroParams};

    fn presto(threshold: Bytes, order: Order) -> Spreading {
        Spreading(LoadBalancingParams::Presto(PrestoParams {
            threshold,
            order,
            ..Default::default()
        }))
    }
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

    /// The `config.toml` of a state folder from before the registries' names were the switch's, and
    /// its meaning.
    fn former() -> [(&'static str, Edge); 4] {
        let presto_edge = Edge {
            load_balancing: presto(Bytes(32 << 10), Order::Shuffled),
            receive_offload: presto_gro(|p| {
                (p.min, p.flow_held_max) = (Time::from_us(500), Bytes(2 << 20))
            }),
        };
        let stock_gro = Offloading(OffloadParams::Stock(StockGroParams::default()));
        let soon = presto_gro(|p| (p.min, p.initial) = (Time::from_us(40), Time::from_us(40)));
        [
            (include_str!("../../tests/state/switch-plain.toml"), Edge::default()),
            (include_str!("../../tests/state/switch-presto.toml"), presto_edge),
            (
                include_str!("../../tests/state/switch-stock-gro.toml"),
                Edge { receive_offload: stock_gro, ..Edge::default() },
            ),
            (
                include_str!("../../tests/state/switch-soon.toml"),
                Edge { receive_offload: soon, ..Edge::default() },
            ),
        ]
    }

    #[test]
    fn a_switch_that_was_applied_before_is_taken_over() {
        let state = State::scratch("former");
        for (text, edge) in former() {
            state.write("config.toml", text).unwrap();
            let config = installed(&state).unwrap().unwrap();
            assert_eq!(config.edge, edge, "{text}");
            assert_eq!((config.ports.len(), config.paths.len()), (1, 1));
            assert_eq!((config.ports[0].mtu, config.paths[0].weight), (Some(9000), 3));
            assert_eq!(config.switch.buffers, if text.contains("512") { 512 } else { 2048 });
            // It is written by the present names, and means the same.
            let now = config.to_text();
            assert!(FORMER.iter().all(|(key, ..)| !now.contains(&format!("\n{key} ="))), "{now}");
            assert_eq!(Config::parse("now", &now).unwrap(), config, "{now}");
        }
        state.erase().unwrap();
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
        has(
            "held-max = \"1MB\"\nreceive-offload = { min = \"1ms\" }\n",
            "a.toml:1:12: `held-max`: is the former name of receive-offload.flow-held-max (write \
             flow-held-max",
        );
        has("held-max = 1\n", "a.toml:1:12: `held-max`: expected 64KiB or more");
        has("order = \"sideways\"\n", "a.toml:1:9");
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
