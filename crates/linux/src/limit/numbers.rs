//! The numbers of scopes: of their queues, statistics and settings in the maps.
//!
//! Invariant: a scope keeps its number as long as its limit keeps its name and its queue's form. A
//! number that the bank in force uses is given to another only when no free one is left, and only
//! if its limit goes; then its queue starts anew after the banks have turned.

use super::Error;
use super::layout::{self, Label, SCOPES};
use millpond_core::limit::LimitParams;

#[derive(Clone, Debug)]
pub struct Scope {
    pub id: u16,
    pub label: Label,
    pub settings: layout::Scope,
    pub fresh: bool,
    /// Whether it does so after the banks have turned: its number is another's in the bank in
    /// force.
    pub late: bool,
}

/// The scopes that are installed already: number, label and form of each.
pub type Installed = Vec<(u16, Label, u32)>;

/// Name, direction and form: what makes a scope the one that is installed.
pub(super) type Identity = (String, u32, u32);

pub(super) struct Numbers<'a> {
    installed: &'a Installed,
    free: Vec<u16>,
    leaving: Vec<u16>,
}

impl<'a> Numbers<'a> {
    /// For a plan that has scopes of at most these identities.
    pub(super) fn new(installed: &'a Installed, wanted: &[Identity]) -> Numbers<'a> {
        let stays = |(_, label, form): &&(u16, Label, u32)| {
            wanted.iter().any(|(name, direction, of)| {
                *name == label.name && *direction == label.direction && of == form
            })
        };
        let leaving =
            installed.iter().filter(|scope| !stays(scope)).map(|(id, ..)| *id).rev().collect();
        let is_free = |id: &u16| !installed.iter().any(|(old, ..)| old == id);
        Numbers { installed, free: (0..SCOPES as u16).rev().filter(is_free).collect(), leaving }
    }

    /// The scope of a label; each is asked for once.
    pub(super) fn scope(&mut self, label: Label, params: &LimitParams) -> Result<Scope, Error> {
        let settings = layout::Scope::new(params);
        let same = |(_, old, form): &&(u16, Label, u32)| {
            old.name == label.name
                && old.direction == label.direction
                && *form == settings.settings.form
        };
        if let Some((id, ..)) = self.installed.iter().find(same) {
            return Ok(Scope { id: *id, label, settings, fresh: false, late: false });
        }
        let free = self.free.pop().map(|id| (id, false));
        let given = free.or_else(|| self.leaving.pop().map(|id| (id, true)));
        let (id, late) = given.ok_or_else(|| {
            Error::Request(format!(
                "{SCOPES} queues is all that there is room for (a limit of both directions has \
                 two)"
            ))
        })?;
        Ok(Scope { id, label, settings, fresh: true, late })
    }
}
