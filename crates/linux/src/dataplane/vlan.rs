//! Which VLANs a port carries, and the tags of its frames (IEEE 802.1Q).
//!
//! Between ports, and between switches, a frame of a VLAN has that VLAN's tag. A frame from an
//! access port gets it, one to an access port loses it; elsewhere frames stay as they are.
//!
//! Invariant: no frame of a VLAN leaves at a port that does not carry it, and none enters there.

use super::buffers::{Buffers, Frame};
use super::counters::Drop;
use super::outgoing::Outgoing;
use crate::dataplane::frame::vlan::{self, LENGTH, NUMBERS, Tagging};
use crate::dataplane::frame::{View, parse};
use crate::dataplane::port::PIECES_MAX;
use millpond_core::params::{Field, Form, Value, ValueError};
use std::collections::BTreeSet;
use std::io::IoSlice;

/// VLANs by their numbers, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanSet(Vec<u16>);

impl VlanSet {
    pub fn has(&self, vlan: u16) -> bool {
        self.0.binary_search(&vlan).is_ok()
    }
    pub fn numbers(&self) -> &[u16] {
        &self.0
    }
}

impl Field for VlanSet {
    const FORM: Form = Form::List;
    fn to_value(&self) -> Value {
        let next_to = |a: &u16, b: &u16| *b == *a + 1;
        let range = |run: &[u16]| match run {
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        };
        Value::List(self.0.chunk_by(next_to).map(range).collect())
    }
    fn from_value(value: &Value) -> Result<VlanSet, ValueError> {
        let wrong = |message: String| Err(ValueError(message));
        // Each number costs once, however often ranges name it.
        let mut numbers = BTreeSet::new();
        for text in Vec::<String>::from_value(value)? {
            let (first, last) = text.split_once('-').unwrap_or((&text, &text));
            let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<u16>()) else {
                return wrong(format!("{text:?} is no VLAN: {FORM}"));
            };
            if let Some(number) = [first, last].into_iter().find(|number| !NUMBERS.contains(number))
            {
                return wrong(format!("{number} is no VLAN: {FORM}"));
            }
            if first > last {
                return wrong(format!("{text:?} ends before it begins"));
            }
            if let Some(twice) = (first..=last).find(|number| !numbers.insert(*number)) {
                return wrong(format!("{twice} is there twice"));
            }
        }
        if numbers.is_empty() {
            return wrong("a trunk of no VLAN carries nothing".into());
        }
        Ok(VlanSet(numbers.into_iter().collect()))
    }
}

const FORM: &str = "those have numbers from 1 to 4094";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Vlans {
    /// All, and frames of none. Tags stay.
    #[default]
    All,
    /// One, whose frames have no tag there.
    Access(u16),
    /// Some, whose frames have their tags.
    Trunk(VlanSet),
}

impl Vlans {
    /// Whether frames of this VLAN, or of none, leave there.
    #[inline]
    pub fn carries(&self, vlan: Option<u16>) -> bool {
        match (self, vlan) {
            (Vlans::All, _) => true,
            (Vlans::Access(own), vlan) => vlan == Some(*own),
            (Vlans::Trunk(own), vlan) => vlan.is_some_and(|vlan| own.has(vlan)),
        }
    }
    /// The one that frames without a tag are of.
    pub fn access(&self) -> Option<u16> {
        if let Vlans::Access(own) = self { Some(*own) } else { None }
    }
    /// Bytes of a tag that all its frames have in the switch.
    pub fn tag(&self) -> usize {
        if *self == Vlans::All { 0 } else { LENGTH }
    }

    /// Adds the port's tag to a frame that arrived, as the switch needs it. Returns the frame's
    /// view then.
    ///
    /// # Errors
    /// [`Drop::ForeignVlan`] if the port does not carry the frame's VLAN, or the frame must not be
    /// tagged.
    #[inline]
    pub fn admit(
        &self,
        view: View,
        frame: &mut Frame,
        buffers: &mut Buffers,
    ) -> Result<View, Drop> {
        match self {
            Vlans::All => Ok(view),
            Vlans::Trunk(_) if self.carries(view.vlan) => Ok(view),
            Vlans::Trunk(_) => Err(Drop::ForeignVlan),
            Vlans::Access(own) => tag(*own, frame, buffers),
        }
    }
}

/// Puts a frame of an access port into its VLAN.
fn tag(vlan: u16, frame: &mut Frame, buffers: &mut Buffers) -> Result<View, Drop> {
    let room =
        &mut buffers.bytes_mut(frame.buffer)[frame.start - LENGTH..frame.start + frame.length];
    match vlan::tagging(&room[LENGTH..]) {
        Tagging::Untagged => {
            frame.offload = frame.offload.tagged().map_err(|_| Drop::BadOffload)?;
            vlan::insert(room, vlan::ETHERTYPE, vlan);
            (frame.start, frame.length) = (frame.start - LENGTH, frame.length + LENGTH);
        }
        // Its priority is kept.
        Tagging::Priority => vlan::set_number(&mut room[LENGTH..], vlan),
        Tagging::Tagged => return Err(Drop::ForeignVlan),
    }
    parse(frame.bytes(buffers)).ok_or(Drop::Runt)
}

/// Hands on a frame as an access port has it: without its tag, which is in its first piece.
pub(super) fn untagged<T>(
    frame: &Outgoing<'_>,
    put: impl FnOnce(&Outgoing<'_>) -> Result<T, Drop>,
) -> Result<T, Drop> {
    let (first, rest) = frame.pieces.split_first().ok_or(Drop::Runt)?;
    let around =
        vlan::around(first).filter(|_| rest.len() + 2 <= PIECES_MAX).ok_or(Drop::BadInner)?;
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    pieces[..2].copy_from_slice(&around.map(IoSlice::new));
    pieces[2..2 + rest.len()].copy_from_slice(rest);
    let offload = frame.offload.untagged().map_err(|_| Drop::BadOffload)?;
    put(&Outgoing {
        view: frame.view.untagged(),
        offload,
        pieces: &pieces[..2 + rest.len()],
        length: frame.length - LENGTH,
        sender: frame.sender,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Result<VlanSet, String> {
        VlanSet::from_value(&Value::List(texts.iter().map(|text| text.to_string()).collect()))
            .map_err(|e| e.0)
    }

    #[test]
    fn a_trunk_has_each_number_once_and_in_order() {
        let trunk = set(&["20", "1", "4094"]).unwrap();
        assert_eq!(trunk.numbers(), [1, 20, 4094]);
        assert_eq!(VlanSet::from_value(&trunk.to_value()), Ok(trunk.clone()));
        let ranges = set(&["30", "10-12", "13", "4000 - 4001"]).unwrap();
        assert_eq!(ranges.numbers(), [10, 11, 12, 13, 30, 4000, 4001]);
        assert_eq!(
            ranges.to_value(),
            Value::List(["10-13", "30", "4000-4001"].map(String::from).to_vec())
        );
        assert_eq!(VlanSet::from_value(&ranges.to_value()), Ok(ranges));
        for (wrong, said) in [
            (&["0"][..], "0 is no VLAN: those have numbers from 1 to 4094"),
            (&["4095"], "4095 is no VLAN"),
            (&["70000"], "\"70000\" is no VLAN"),
            (&["ten"], "\"ten\" is no VLAN"),
            (&["7", "8", "7"], "7 is there twice"),
            (&["8", "5-9"], "8 is there twice"),
            (&["9-5"], "\"9-5\" ends before it begins"),
            (&["0-9"], "0 is no VLAN"),
            (&["9-5000"], "5000 is no VLAN"),
            (&["5-"], "\"5-\" is no VLAN"),
            (&["1-2-3"], "\"1-2-3\" is no VLAN"),
            (&[], "carries nothing"),
        ] {
            let message = set(wrong).unwrap_err();
            assert!(message.contains(said), "{message}");
        }
        let (all, access, trunk) = (Vlans::All, Vlans::Access(20), Vlans::Trunk(trunk));
        let carried = |vlan| [&all, &access, &trunk].map(|port| port.carries(vlan));
        assert_eq!(carried(None), [true, false, false]);
        assert_eq!((carried(Some(20)), carried(Some(1))), ([true; 3], [true, false, true]));
    }
}
