//! The catalogue: everything that a scenario can say, gathered from the declarations. The schema,
//! the explanations and the reference are three views of it.
//!
//! Invariant: what the reader reads is listed here, because both take it from the same descriptors.

use crate::choices::{
    Choices, EdgeChoices, HostChoices, NicChoices, RdmaChoices, SwitchChoices, TransportChoices,
    Visit,
};
use crate::keys::grouped;
use crate::rdma::RdmaParams;
use crate::settings::application::ApplicationCommon;
use crate::settings::capture::CaptureParams;
use crate::settings::failure::FailureParams;
use crate::settings::limit::{LimitCommon, LimitKind};
use crate::settings::program::ProgramParams;
use crate::settings::topology::TopologyParams;
use crate::settings::traffic::{TrafficCommon, TrafficParams};
use crate::settings::{EngineParams, HostParams, NicParams, ReceiveCpuParams, RunParams};
use crate::toml_text::value_text;
use crate::transport::{TransportKind, TransportParams};
use millpond_core::host::virtual_switch::ApplicationCosts;
use millpond_core::params::{Key, Params};
use millpond_core::registry::{Choice, Mechanism, Place};

/// A key with everything that there is to say about it.
#[derive(Clone, Debug)]
pub struct KeyInfo {
    /// Its name in its table, with the group: "min-rto", "host-link.rate".
    pub name: String,
    /// Its whole path: "transport.min-rto".
    pub path: String,
    /// Its descriptor.
    pub key: Key,
    /// Its default, as TOML.
    pub default: String,
}

impl KeyInfo {
    /// The meaning, and the source where the declaration gives one.
    pub fn meaning(&self) -> (String, Option<String>) {
        let text = self.key.text();
        match text.split_once("Source:") {
            Some((meaning, source)) => (meaning.trim().into(), Some(source.trim().into())),
            None => (text, None),
        }
    }
}

/// A kind with its keys.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// Its line in the registry.
    pub mechanism: Mechanism,
    /// Its keys.
    pub keys: Vec<KeyInfo>,
}

/// A place with its kinds.
#[derive(Clone, Debug)]
pub struct PlaceInfo {
    /// Its registry.
    pub place: &'static Place,
    /// The kinds that are built.
    pub kinds: Vec<KindInfo>,
}

/// A mechanism's name on pages and in documents: its kind, or `place.kind` where another place has
/// the same kind.
pub fn page_name(mechanism: &Mechanism) -> String {
    let places = places();
    let has =
        |info: &&PlaceInfo| info.kinds.iter().any(|kind| kind.mechanism.kind == mechanism.kind);
    match places.iter().filter(has).count() {
        0 | 1 => mechanism.kind.to_string(),
        _ => whole_name(mechanism),
    }
}

/// A mechanism's name that is its alone: `place.kind`.
pub fn whole_name(mechanism: &Mechanism) -> String {
    format!("{}.{}", mechanism.place, mechanism.kind)
}

/// A table of fixed keys.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// "host"; empty for the keys outside any table.
    pub path: &'static str,
    /// Its subject.
    pub about: &'static str,
    /// Its keys.
    pub keys: Vec<KeyInfo>,
}

fn keys(path: &str, params: &dyn Params) -> Vec<KeyInfo> {
    let info = |(i, key): (usize, &Key)| {
        let full = key.name();
        let name = match grouped(&full) {
            (Some(group), leaf) => format!("{group}.{leaf}"),
            (None, leaf) => leaf.to_string(),
        };
        let whole = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        KeyInfo { path: whole, name, key: *key, default: value_text(&params.get(i)) }
    };
    params.keys().iter().enumerate().map(info).collect()
}

fn place<C: Choice>() -> PlaceInfo {
    let place = C::place();
    let kinds = place.mechanisms.iter().filter_map(|m| {
        let choice = C::of_kind(m.kind)?;
        Some(KindInfo { mechanism: *m, keys: keys(place.path, choice.params()) })
    });
    PlaceInfo { place, kinds: kinds.collect() }
}

impl Visit for Vec<PlaceInfo> {
    fn choice<C: Choice>(&mut self, _: &C) {
        self.push(place::<C>());
    }
}

/// All places where a kind is chosen, along the packet's path.
pub fn places() -> Vec<PlaceInfo> {
    let mut places = vec![place::<TopologyParams>()];
    HostChoices::default().each(&mut places);
    NicChoices::default().each(&mut places);
    SwitchChoices::default().each(&mut places);
    places.push(place::<TransportKind>());
    TransportChoices::default().each(&mut places);
    RdmaChoices::default().each(&mut places);
    EdgeChoices::default().each(&mut places);
    places.extend([place::<LimitKind>(), place::<TrafficParams>()]);
    places
}

fn application_keys() -> Vec<KeyInfo> {
    let mut all = keys("application", &ApplicationCommon::default());
    all.extend(keys("application", &ApplicationCosts::default()));
    all
}

/// All tables with fixed keys.
pub fn tables() -> Vec<TableInfo> {
    let mut transport = keys("transport", &TransportParams::default());
    transport.retain(|k| k.name != "mss");
    let mut all = vec![
        TableInfo { path: "", about: "The run as a whole.", keys: keys("", &RunParams::default()) },
        TableInfo {
            path: "host",
            about: "How hosts send and receive.",
            keys: keys("host", &HostParams::default()),
        },
        TableInfo {
            path: "host.nic",
            about: "A host's transmit queue. `buffer` is \"unlimited\", \"switch\" (as the \
                    switches have) or a table as switch.buffer; `marking` is \"none\", \"switch\" \
                    or a table as switch.marking.",
            keys: keys("host.nic", &NicParams::default()),
        },
        TableInfo {
            path: "host.receive-cpu",
            about: "The cost of receiving for a host's cores: while one works its ring is not \
                    polled. Without this table, or with \"off\" in its place, receiving costs \
                    nothing; { } has the values below.",
            keys: keys("host.receive-cpu", &ReceiveCpuParams::default()),
        },
        TableInfo { path: "transport", about: "The keys of every TCP.", keys: transport },
        TableInfo {
            path: "rdma",
            about: "The keys of all queue pairs, whatever their control law.",
            keys: keys("rdma", &RdmaParams::default()),
        },
        TableInfo {
            path: "engine",
            about: "How the simulator runs it. None of it changes a result.",
            keys: keys("engine", &EngineParams::default()),
        },
        TableInfo {
            path: "capture",
            about: "Records of a run beside its flows. None of it changes another result.",
            keys: keys("capture", &CaptureParams::default()),
        },
    ];
    all.extend(lists());
    all
}

/// Tables of which there can be several.
fn lists() -> [TableInfo; 5] {
    [
        TableInfo {
            path: "failure",
            about: "A link that is down for a while, or loses packets, in both directions; as \
                    many tables as there are failures. A packet is lost (link-down, or by chance \
                    injected) if its link is down at any time between the start of its \
                    transmission and its arrival.",
            keys: keys("failure", &FailureParams::default()),
        },
        TableInfo {
            path: "application",
            about: "An application at the receiving hosts, behind their virtual switch \
                    (edge.virtual-switch): which traffic goes to its cores, and how slow they \
                    are; as many tables as there are applications.",
            keys: application_keys(),
        },
        TableInfo {
            path: "program",
            about: "A real program on a host of the lab (`millpond lab`), in the host's network \
                    namespace; as many tables as there are programs. The simulator runs none. Its \
                    output is kept in programs/NAME.stdout and programs/NAME.stderr of the results \
                    folder.",
            keys: keys("program", &ProgramParams::default()),
        },
        TableInfo {
            path: "limit",
            about: "The keys of every [[limit]], beside those of its kind; as many tables as there \
                    are limits.",
            keys: keys("limit", &LimitCommon::default()),
        },
        TableInfo {
            path: "traffic",
            about: "The keys of every [[traffic]], beside those of its kind. `transport` is a \
                    table as [transport] has for its kind, such as { kind = \"cubic\", cubic-ecn = \
                    true }: this traffic's connections use it instead; the common keys of \
                    [transport] hold for all.",
            keys: keys("traffic", &TrafficCommon::default()),
        },
    ]
}
