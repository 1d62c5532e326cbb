//! A sending endpoint, as the stages that stamp its segments ask for it.

/// The questions of stages to the endpoint whose segment they stamp.
#[warn(missing_docs)]
pub trait Stream {
    /// Where what was written ends.
    fn written(&self) -> u64;
    /// Where what is acknowledged ends.
    fn acked(&self) -> u64;
    /// Whether only the NIC keeps it from sending more.
    fn would_send(&self) -> bool;
    /// Whether a message ends at an offset; a stream is one.
    fn ends_message(&self, at: u64) -> bool {
        at == self.written()
    }
}
