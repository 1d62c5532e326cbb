//! The class of a packet: its priority, importance and ECN, in a byte.

/// The two ECN bits of the IP header (RFC 3168 §5). ECT(1) is not used: RFC 9331 owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not react to marks; a congested queue can only drop it.
    #[default]
    NotEct = 0,
    Ect = 2,
    Ce = 3,
}

/// The treatment that a color-aware switch may give the packet (srTCM's colors; TLT's unimportant
/// packets are red).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Color {
    /// Dropped only when nothing else can be.
    #[default]
    Green = 0,
    Red = 1,
}

/// The importance of a packet to TLT, and so its color. A host that does not run TLT sends
/// [`Importance::Control`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Importance {
    /// Pure ACKs and handshakes; and everything of a transport without importance.
    #[default]
    Control = 0,
    /// Ordinary data: may be dropped early.
    Unimportant,
    /// The one protected data packet of a flow.
    Important,
    Echo,
    /// Data that was sent only to keep an important packet in flight.
    Forced,
    ForcedEcho,
}

impl Importance {
    /// All importances, from their number 0.
    pub const ALL: [Importance; 6] = [
        Importance::Control,
        Importance::Unimportant,
        Importance::Important,
        Importance::Echo,
        Importance::Forced,
        Importance::ForcedEcho,
    ];
    pub const fn name(self) -> &'static str {
        match self {
            Importance::Control => "control",
            Importance::Unimportant => "unimportant",
            Importance::Important => "important",
            Importance::Echo => "echo",
            Importance::Forced => "forced",
            Importance::ForcedEcho => "forced-echo",
        }
    }
    /// The importance of the acknowledgement that a packet of this importance causes. The
    /// acknowledgement must leave at once where its importance is not [`Importance::Control`]. The
    /// packet counts before its place in the stream does: duplicates, late and early ones are
    /// answered alike; handshake packets are not.
    #[inline]
    pub const fn echo(self) -> Importance {
        match self {
            Importance::Important => Importance::Echo,
            Importance::Forced => Importance::ForcedEcho,
            _ => Importance::Control,
        }
    }
    /// The color that a color-aware switch sees.
    #[inline]
    pub const fn color(self) -> Color {
        match self {
            Importance::Unimportant => Color::Red,
            _ => Color::Green,
        }
    }
}

/// The byte of the IP header for differentiated services and ECN (RFC 2474, RFC 3168): priority and
/// importance where the code point is, and the ECN field.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TrafficClass(u8);

impl TrafficClass {
    const ECN: u8 = 0b11;
    const IMPORTANCE_SHIFT: u32 = 2;
    const PRIORITY_SHIFT: u32 = 5;

    /// Of its parts; `priority` is 0 (lowest) to 7.
    #[inline]
    pub const fn new(priority: u8, importance: Importance, ecn: Ecn) -> TrafficClass {
        TrafficClass(
            (priority & 7) << Self::PRIORITY_SHIFT
                | (importance as u8) << Self::IMPORTANCE_SHIFT
                | ecn as u8,
        )
    }
    /// 0 (lowest) to 7.
    #[inline]
    pub const fn priority(self) -> u8 {
        self.0 >> Self::PRIORITY_SHIFT
    }
    /// The importance of the packet to TLT.
    #[inline]
    pub const fn importance(self) -> Importance {
        match (self.0 >> Self::IMPORTANCE_SHIFT) & 7 {
            1 => Importance::Unimportant,
            2 => Importance::Important,
            3 => Importance::Echo,
            4 => Importance::Forced,
            5 => Importance::ForcedEcho,
            _ => Importance::Control,
        }
    }
    /// The color that a color-aware switch sees.
    #[inline]
    pub const fn color(self) -> Color {
        self.importance().color()
    }
    /// The two bits of ECN.
    #[inline]
    pub const fn ecn(self) -> Ecn {
        match self.0 & Self::ECN {
            0 => Ecn::NotEct,
            3 => Ecn::Ce,
            _ => Ecn::Ect,
        }
    }
    /// The same with another ECN field.
    #[inline]
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> TrafficClass {
        TrafficClass(self.0 & !Self::ECN | ecn as u8)
    }
    #[inline]
    #[must_use]
    pub const fn with_importance(self, importance: Importance) -> TrafficClass {
        TrafficClass::new(self.priority(), importance, self.ecn())
    }
    #[inline]
    #[must_use]
    pub const fn with_priority(self, priority: u8) -> TrafficClass {
        TrafficClass::new(priority, self.importance(), self.ecn())
    }
    /// The byte as the packet holds it.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl std::fmt::Debug for TrafficClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.priority(), self.importance(), self.ecn())
    }
}

impl From<Ecn> for TrafficClass {
    fn from(ecn: Ecn) -> TrafficClass {
        TrafficClass::new(0, Importance::Control, ecn)
    }
}
impl From<Importance> for TrafficClass {
    fn from(importance: Importance) -> TrafficClass {
        TrafficClass::new(0, importance, Ecn::NotEct)
    }
}
