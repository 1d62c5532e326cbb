//! Half a mechanism: one that provides a signal which nothing reads, or reads one which nothing
//! provides.

use millpond_core::registry::Signal;

/// A mechanism whose signal nobody reads or provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Half {
    pub place: &'static str,
    pub kind: &'static str,
    pub signal: Signal,
    /// It reads the signal, and nobody provides it; else the other way round.
    pub reads: bool,
}

impl Half {
    /// The sentence with the consequence, the missing key and a value for it.
    pub(crate) fn text(&self) -> String {
        let Half { place, kind, signal, reads } = self;
        let (does, lacks, consequence) = match reads {
            true => ("reads", "nothing provides", signal.missing()),
            false => ("provides", "nothing reads", signal.unread()),
        };
        let name = signal.name();
        format!("{place} \"{kind}\" {does} {name}, which {lacks}: {consequence}")
    }
}
