//! CONGA's header between leaves (Alizadeh and others, SIGCOMM 2014, §3.1), which overlays such as
//! VXLAN have room for.

/// The congestion that a packet has met and what its leaf feeds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongaHeader {
    /// The uplink that its leaf chose (LBTag): the port's number there.
    pub uplink: u16,
    /// The largest measure of the ports on its way (CE).
    pub congestion: u8,
    /// An uplink of the leaf that receives it, and what the way by it measures (FB_LBTag,
    /// FB_Metric).
    pub feedback: Option<(u16, u8)>,
}
