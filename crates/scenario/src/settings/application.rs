//! `[[application]]`: its keys.

use crate::settings::hosts::HostSet;
use millpond_core::host::virtual_switch::ApplicationCosts;
use millpond_core::params;

params! {
    /// Whose an application is.
    pub struct ApplicationCommon {
        /// Its name, for variants to set its keys by. Off: "application".
        pub name: Option<String> = None,
        /// The traffics (or classes of a list of flows) that go to it; empty means all that no
        /// application before it has.
        pub traffic: Vec<String> = Vec::new(),
        /// The hosts that have it: "all", a number, or ranges such as "0..7" (both ends count).
        pub hosts: HostSet = HostSet::All,
    }
}

/// One `[[application]]` table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplicationSettings {
    /// Whose it is.
    pub common: ApplicationCommon,
    /// The cost of its cores.
    pub costs: ApplicationCosts,
}

impl ApplicationSettings {
    /// Its own name, or what it is.
    pub(crate) fn name(&self) -> String {
        self.common.name.clone().unwrap_or_else(|| "application".to_string())
    }
}
