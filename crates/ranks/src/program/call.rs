//! Collectives within programs: which ranks do them together.
//!
//! Ranks meet in a collective by their group and its number there, which the program gives.
//!
//! Invariant: the groups of one division share no rank.

use crate::collective::Collective;

/// A division of a job's ranks into groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// By group: its ranks, in their order there.
    members: Vec<Vec<u32>>,
    /// By rank: its group, and its place there.
    places: Vec<(u32, u32)>,
}

impl Groups {
    /// Of so many ranks: each is in the group that `group` gives, in the order of ranks.
    pub fn new(ranks: u32, group: impl Fn(u32) -> u32) -> Groups {
        let mut groups = Groups::default();
        for rank in 0..ranks {
            let at = group(rank);
            if groups.members.len() <= at as usize {
                groups.members.resize(at as usize + 1, Vec::new());
            }
            let members = &mut groups.members[at as usize];
            groups.places.push((at, members.len() as u32));
            members.push(rank);
        }
        groups
    }

    /// A single group of these ranks, in this order, out of so many. Other ranks are in none, and
    /// no operation of theirs may name it.
    pub fn of(ranks: u32, members: Vec<u32>) -> Groups {
        let mut places = vec![(0, 0); ranks as usize];
        for (rank, place) in members.iter().zip(0..) {
            places[*rank as usize] = (0, place);
        }
        Groups { members: vec![members], places }
    }

    /// A rank's place in its group.
    pub fn place(&self, rank: u32) -> u32 {
        self.places[rank as usize].1
    }

    /// The rank at a place of another rank's group.
    pub fn rank_at(&self, of: u32, place: u32) -> u32 {
        let (group, _) = self.places[of as usize];
        self.members[group as usize][place as usize]
    }
}

/// A collective that ranks of a program do.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub collective: Collective,
    /// Which division, by its number in the program: each of its groups does it by itself.
    pub groups: u32,
}
