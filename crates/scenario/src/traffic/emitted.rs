//! Items that a source of open-loop flows yields.

use super::Arrival;

/// An item that a source emits, before it has its numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Emitted {
    /// A query with its client and degree.
    Query { client: u32, degree: u32 },
    /// A flow; `of_query` if it belongs to the source's latest query.
    Flow { src: u32, dst: u32, bytes: u64, response: u64, class: u16, of_query: bool },
    /// A flow that has its number already.
    Numbered(Arrival),
}

impl Emitted {
    /// A flow of one direction that belongs to no query.
    pub fn flow(src: u32, dst: u32, bytes: u64, class: u16) -> Emitted {
        Emitted::Flow { src, dst, bytes, response: 0, class, of_query: false }
    }
}
