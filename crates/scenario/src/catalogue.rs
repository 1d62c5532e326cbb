//! The catalogue: everything that a scenario can contain, gathered from the declarations. The
//! schema, the explanations and the reference are three views of it.
//!
//! Invariant: what the reader reads is listed here, because both take it from the same descriptors.

use crate::choices::{
    Choices, EdgeChoices, HostChoices, NicChoices, RdmaChoices, SwitchChoices, TransportChoices,
    Visit,
};
use crate::keys::in_table;
use crate::rdma::RdmaParams;
use crate::settings::application::ApplicationCommon;
use crate::settings::capture::CaptureParams;
use crate::settings::failure::FailureParams;
use crate::settings::limit::{LimitCommon, LimitKind};
use crate::settings::program::ProgramParams;
use crate::settings::topology::TopologyParams;
use crate::settings::traffic::{TrafficCommon, TrafficParams};
use crate::settings::{EngineParams, HostParams, NicParams, ReceiveCpuParams, RunParams};
use crate::toml_text::{built_in, value_text};
use crate::transport::{TransportKind, TransportParams};
use millpond_core::host::virtual_switch::ApplicationCosts;
use millpond_core::params::{Key, Params};
use millpond_core::registry::{About, Choice, Mechanism, PathProperty, Place, Signal};
use serde::Deserialize;
use std::sync::LazyLock;

/// A key with all that its declaration has.
#[derive(Clone, Debug)]
pub struct KeyInfo {
    /// Its name in its table, with the group: "min-rto", "host-link.rate".
    pub name: String,
    pub path: String,
    pub key: Key,
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

#[derive(Clone, Debug)]
pub struct KindInfo {
    pub mechanism: Mechanism,
    pub keys: Vec<KeyInfo>,
}

#[derive(Clone, Debug)]
pub struct PlaceInfo {
    pub place: &'static Place,
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

/// The properties and signals of a mechanism, each list by what it does with them.
pub(crate) fn dependences(about: &About) -> [(&'static str, Vec<&'static str>); 5] {
    let properties = |list: &[PathProperty]| list.iter().map(|property| property.name()).collect();
    let signals = |list: &[Signal]| list.iter().map(|signal| signal.name()).collect();
    [
        ("needs", properties(about.needs)),
        ("breaks", properties(about.breaks)),
        ("restores", properties(about.restores)),
        ("provides", signals(about.provides)),
        ("reads", signals(about.reads)),
    ]
}

#[derive(Clone, Debug)]
pub struct TableInfo {
    /// "host"; empty for the keys outside any table.
    pub path: &'static str,
    pub about: &'static str,
    pub keys: Vec<KeyInfo>,
}

fn keys(path: &str, params: &dyn Params) -> Vec<KeyInfo> {
    let info = |(i, key): (usize, &Key)| {
        let name = in_table(key);
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

#[derive(Deserialize)]
struct Subject {
    path: &'static str,
    about: String,
}

static SUBJECTS: LazyLock<Vec<Subject>> =
    LazyLock::new(|| built_in("tables.toml", include_str!("tables.toml")));

/// All tables with fixed keys; the last ones can be several.
pub fn tables() -> Vec<TableInfo> {
    let info = |Subject { path, about }: &'static Subject| TableInfo {
        path,
        about,
        keys: table_keys(path),
    };
    SUBJECTS.iter().map(info).collect()
}

fn table_keys(path: &str) -> Vec<KeyInfo> {
    let of = |params: &dyn Params| keys(path, params);
    match path {
        "" => of(&RunParams::default()),
        "host" => of(&HostParams::default()),
        "host.nic" => of(&NicParams::default()),
        "host.receive-cpu" => of(&ReceiveCpuParams::default()),
        "transport" => {
            let mut all = of(&TransportParams::default());
            all.retain(|key| key.name != "mss");
            all
        }
        "rdma" => of(&RdmaParams::default()),
        "engine" => of(&EngineParams::default()),
        "capture" => of(&CaptureParams::default()),
        "failure" => of(&FailureParams::default()),
        "application" => {
            [of(&ApplicationCommon::default()), of(&ApplicationCosts::default())].concat()
        }
        "program" => of(&ProgramParams::default()),
        "limit" => of(&LimitCommon::default()),
        "traffic" => of(&TrafficCommon::default()),
        _ => unreachable!("{path} is no table"),
    }
}
