//! Homa's parameters (Montazeri et al., SIGCOMM 2018), and a control law without any answer.
//!
//! The receivers decide how much may be in flight: they grant. The machines that do so are the
//! simulator's (`sim::endpoint::homa`); here is what can be set, and that their family runs it. The
//! defaults are those of PlatformLab/Homa, the authors' user-space implementation. Their simulator
//! (HomaSimulation) and their Linux module (HomaModule) have others, which the keys name.

use super::{Demands, Family, Law, Shared};
use crate::params::{Field, Form, Value, ValueError};
use crate::registry::{About, Signal};
use crate::switch::site::Auto;
use crate::{Bytes, Time};

pub(super) const ABOUT: About = About {
    summary: "receivers grant what may be sent, shortest messages first, and set its priorities",
    source: "Homa, SIGCOMM 2018; PlatformLab/Homa",
    provides: &[Signal::Priorities],
    ..About::PLAIN
};

/// Sizes that ascend, at most six: what is above the last is a class of its own, and of eight
/// priorities one is left for what is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cutoffs(pub Vec<Bytes>);

/// The most cutoffs.
const CUTOFFS_MAX: usize = 6;

impl Default for Cutoffs {
    fn default() -> Cutoffs {
        Cutoffs(vec![Bytes(469), Bytes(5_521), Bytes(15_267)])
    }
}

impl Field for Cutoffs {
    const FORM: Form = Form::List;
    fn to_value(&self) -> Value {
        Value::List(self.0.iter().map(Bytes::to_string).collect())
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        let sizes: Option<Vec<Bytes>> = match value {
            Value::List(list) => list.iter().map(|text| text.trim().parse().ok()).collect(),
            Value::Text(text) if text.trim().is_empty() => Some(Vec::new()),
            Value::Text(text) => text.split(',').map(|text| text.trim().parse().ok()).collect(),
            _ => None,
        };
        let ascend = |sizes: &Vec<Bytes>| {
            let from = sizes.first().is_none_or(|first| *first > Bytes(0));
            from && sizes.len() <= CUTOFFS_MAX && sizes.windows(2).all(|pair| pair[0] < pair[1])
        };
        let message =
            format!("expected up to {CUTOFFS_MAX} sizes that ascend, such as [469, 5521, 15267]");
        sizes.filter(ascend).map(Cutoffs).ok_or(ValueError(message))
    }
}

crate::params! {
    /// The keys of Homa (SIGCOMM 2018).
    pub struct HomaParams {
        /// RTTbytes: how much of a message is sent without a grant, and how much a receiver keeps
        /// granted and not received; rounded up to whole packets. "auto" is what the fastest
        /// host's link carries in the longest round trip of the empty network, of a full packet and
        /// its grant. Source: Homa, SIGCOMM 2018 §3.1; PlatformLab/Homa has 100 KB at 100 Gb/s,
        /// HomaSimulation 10 KB at 10 Gb/s, HomaModule 40 KB at 25 Gb/s.
        #[within(1..)]
        pub homa_rtt_bytes: Auto<Bytes> = Auto::Auto,
        /// A grant goes up to so much beyond what has been received, and the next one follows when
        /// less than RTTbytes of it are left. "auto" is twice RTTbytes. Source: PlatformLab/Homa;
        /// RTTbytes is the paper's rule, a grant for each packet.
        #[within(1..)]
        pub homa_grant_bytes: Auto<Bytes> = Auto::Auto,
        /// Overcommitment: how many messages, each of another sender, may be granted at a time.
        /// Source: 4, PlatformLab/Homa; HomaSimulation has 1 to 7 by workload, HomaModule 8.
        #[within(1..)]
        pub homa_overcommitment: u32 = 4,
        /// Messages up to the first of these sizes have the highest priority for what is sent
        /// without a grant, those up to the next the one below, and so on; what is granted has the
        /// priorities below. Source: PlatformLab/Homa; HomaModule has 200, 2800, 15000, and
        /// HomaSimulation equal bytes for each priority.
        pub homa_unscheduled_cutoffs: Cutoffs = Cutoffs::default(),
        /// Silence after which a receiver asks for what it lacks of a message (RESEND). Source:
        /// 2ms, PlatformLab/Homa; 12ms in the version that Backdraft's authors ran.
        #[within(1_000_000..)]
        pub homa_resend_interval: Time = Time::from_ms(2),
        /// Silence, in resend intervals, after which a sender that may send nothing more asks
        /// whether its message is there (PING). Source: 3, PlatformLab/Homa.
        #[within(1..)]
        pub homa_ping_after: u32 = 3,
        /// Silence, in resend intervals, after which either end gives a message up. Off means
        /// never. Source: 40, PlatformLab/Homa.
        #[within(2..)]
        pub homa_abort_after: Option<u32> = Some(40),
        /// Priority of what is sent again, 0 to 7. Off means that which the message has. Source:
        /// the highest, PlatformLab/Homa.
        #[within(0..=7)]
        pub homa_resend_priority: Option<u32> = Some(7),
    }
}

/// Nothing: a connection's window and rate are its receiver's.
#[derive(Clone, Copy, Debug)]
pub struct Homa;

impl Law for Homa {
    type Params = HomaParams;
    type Constants = ();

    fn demands(_: &HomaParams) -> Demands {
        Demands { family: Family::Homa, ..Demands::default() }
    }
    fn constants(_: &HomaParams) {}
    fn new(_: u64, _: &Shared<()>) -> Homa {
        Homa
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutoffs_are_read_and_written() {
        let text = |t: &str| Value::Text(t.into());
        assert_eq!(Cutoffs::from_value(&text("469, 5521,15267")), Ok(Cutoffs::default()));
        assert_eq!(Cutoffs::from_value(&text("")), Ok(Cutoffs(Vec::new())));
        assert_eq!(Cutoffs::from_value(&Cutoffs::default().to_value()), Ok(Cutoffs::default()));
        for bad in [text("5,5"), text("0,5"), text("1,2,3,4,5,6,7"), text("many"), Value::Int(5)] {
            assert!(Cutoffs::from_value(&bad).is_err(), "{bad:?}");
        }
    }
}
