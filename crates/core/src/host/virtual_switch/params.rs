//! The kinds of virtual switch that a scenario chooses from, and their keys.
//!
//! Costs of cores, rings, thresholds and watermarks are those of BESS and of the authors' release
//! where these have them; the rest is this project's, marked as ours.

use super::generations::Language;
use crate::params::{Field, Form, Value, ValueError};
use crate::registry::{About, PathProperty, Reason, Signal};
use crate::switch::site::Auto;
use crate::units::{Bytes, Time};

/// How a core learns which of its data queues have something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doorbells {
    /// It does not: it polls all of them.
    Polled,
    /// A queue that becomes busy rings once.
    Armed,
    /// Each batch sends a message with its count, as in the authors' release.
    Counted,
}

impl Field for Doorbells {
    const FORM: Form = Form::Choice(&["true", "false", "counted"]);
    fn to_value(&self) -> Value {
        match self {
            Doorbells::Polled => Value::Bool(false),
            Doorbells::Armed => Value::Bool(true),
            Doorbells::Counted => Value::Text("counted".into()),
        }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Bool(false) => Ok(Doorbells::Polled),
            Value::Bool(true) => Ok(Doorbells::Armed),
            Value::Text(text) => match text.as_str() {
                "true" => Ok(Doorbells::Armed),
                "false" => Ok(Doorbells::Polled),
                "counted" => Ok(Doorbells::Counted),
                _ => {
                    Err(ValueError(format!("expected true, false or \"counted\", found {text:?}")))
                }
            },
            _ => Err(ValueError("expected true, false or \"counted\"".into())),
        }
    }
}

/// Declares a kind's parameters: what all kinds have, and its own.
macro_rules! kind {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        crate::params! {
            $(#[$meta])*
            pub struct $name {
                /// Packets that may wait in a core's receive ring of the NIC; what comes beyond is
                /// dropped (receive-ring). Source: ours.
                #[within(1..=1_000_000)]
                pub ring: u32 = 1024,
                /// Cores of the switch, each with a receive ring of its own; a hash spreads flows
                /// over them. Source: ours, one.
                #[within(1..=64)]
                pub cores: u32 = 1,
                /// Packets that a core takes at a time. Source: BESS, kMaxBurst.
                #[within(1..=4096)]
                pub batch: u32 = 32,
                /// Work of a core to look at a queue, whatever is in it. Source: ours.
                #[within(0..=1_000_000_000)]
                pub poll: Time = Time::from_ns(20),
                /// Work of a core for a packet. Source: ours, 12.5 million packets a second.
                #[within(0..=1_000_000_000)]
                pub per_packet: Time = Time::from_ns(80),
                $($own)*
            }
        }
    };
}

/// Declares a kind with flow queues.
macro_rules! with_queues {
    ($(#[$meta:meta])* $name:ident, $doorbells:expr, { $($own:tt)* }) => {
        kind! {
            $(#[$meta])*
            $name {
                /// How a core learns which queues have something: true, a queue that becomes busy
                /// rings once; "counted", each batch sends a message with its count, as the
                /// authors' release does; false, the core looks at all queues each time.
                pub doorbells: Doorbells = $doorbells,
                /// Work of a core for a doorbell. Source: ours.
                #[within(0..=1_000_000_000)]
                pub doorbell: Time = Time::from_ns(40),
                /// Memory that the queues of one core of an application share. Source: ours.
                #[within(3_000..=1e12)]
                pub memory: Bytes = Bytes(64 << 20),
                /// A flow is asked to pause when its queue has this times the shared memory that is
                /// left. Source: Choudhury and Hahne, 1998; its value is ours.
                #[within(0..=64)]
                pub alpha: f64 = 1.0,
                /// Packets at which a flow is asked to pause, however much memory is left. Source:
                /// the authors' release, 7/8 of 4096.
                #[within(1..=1_000_000_000)]
                pub flow_cap: u32 = 3584,
                /// Queues of one core of an application; further flows share one. Source: ours.
                #[within(1..=1_000_000)]
                pub max_queues: u32 = 4096,
                $($own)*
            }
        }
    };
}

crate::params! {
    /// A host without a virtual switch has no keys.
    pub struct NoVirtualSwitchParams {}
}

kind! {
    /// Tail-drop rings.
    LossyParams {}
}

kind! {
    /// A queue an application's core, with watermarks.
    BackpressureParams {
        /// Packets that a queue holds. Source: BESS, Queue.
        #[within(2..=1_000_000)]
        pub queue: u32 = 1024,
        /// Share of a queue at which the receive rings are polled no more. Source: BESS, 0.90.
        #[within(0..=1)]
        pub high: f64 = 0.9,
        /// Share of a queue at which they are polled again. Source: BESS, 0.15.
        #[within(0..=1)]
        pub low: f64 = 0.15,
    }
}

/// Declares a kind whose switches send each other records, beside its own keys what all of these
/// have.
macro_rules! speaking {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        kind! {
            $(#[$meta])*
            $name {
                $($own)*
                /// Bytes that may wait in a NIC for the switch to hand it more data; up to a
                /// segment may come on top. Source: ours.
                #[within(1..=1e12)]
                pub nic_limit: Bytes = Bytes(64 << 10),
                /// Whether a TCP's retransmission timer stands still while its flow may not send.
                /// Source: ours.
                pub freeze_timers: bool = true,
                /// Priority of the switches' own packets, 0 (lowest) to 7. Source: ours.
                #[within(0..=7)]
                pub priority: u32 = 7,
                /// Share of the switches' own packets that is lost on arrival, at random. Source:
                /// ours, none.
                #[within(0..=1)]
                pub control_loss: f64 = 0.0,
                /// Packets in a row from one switch that may be lost so, at most. Source: ours.
                #[within(0..=1_000_000)]
                pub control_loss_run: u32 = 2,
            }
        }
    };
}

with_queues! {
    /// A queue a flow; where memory is exhausted the receive rings are polled no more.
    FlowQueuesParams, Doorbells::Polled, {}
}

with_queues! {
    /// A queue a flow, and switches that ask each other to pause.
    BackdraftParams, Doorbells::Armed, {
        /// The language in which switches talk to each other: "records", this project's protocol;
        /// "timed" and "episode", those of the authors' release: a pause for a time with a rate
        /// after it, or a word at 70 % of the memory and one at 50 %. Of these, headroom "auto" is
        /// none.
        pub overlay: Language = Language::Records,
        /// Bytes that may wait in a NIC for the switch to hand it more data; up to a segment may
        /// come on top. Source: ours.
        #[within(1..=1e12)]
        pub nic_limit: Bytes = Bytes(64 << 10),
        /// Memory beyond that, for what still comes of flows that were asked to pause. "auto": what
        /// arrives over the host's link in the feedback time and half as much for each of losses,
        /// what the NICs of headroom-senders hosts may have waiting, and headroom-fabric. Source:
        /// ours.
        pub headroom: Auto<Bytes> = Auto::Auto,
        /// Hosts whose NICs headroom "auto" has room for. Source: ours.
        #[within(1..=65_535)]
        pub headroom_senders: u32 = 16,
        /// Bytes waiting in the fabric that headroom "auto" has room for. Source: ours, the ECN
        /// threshold of 100 Gb/s.
        pub headroom_fabric: Bytes = Bytes(200_000),
        /// Pauses in a row whose loss headroom "auto" survives. Source: ours.
        #[within(0..=100)]
        pub losses: u32 = 2,
        /// From asking a flow to pause until nothing more of it arrives. "auto": the longest round
        /// trip of the empty network, at least 20us. Source: ours.
        #[within(1..=1e12)]
        pub feedback: Auto<Time> = Auto::Auto,
        /// How long a pause holds that is not refreshed. "auto": five feedback times, at least 1us.
        /// Source: ours.
        #[within(1_000_000..=1e12)]
        pub ttl: Auto<Time> = Auto::Auto,
        /// With more paused flows than this an application is paused as a whole. Source: ours.
        #[within(0..=1_000_000)]
        pub application_flows: u32 = 16,
        /// Whether a TCP's retransmission timer stands still while its flow is paused. Source:
        /// ours.
        pub freeze_timers: bool = true,
        /// Priority of the switches' own packets, 0 (lowest) to 7. Source: ours.
        #[within(0..=7)]
        pub priority: u32 = 7,
        /// Share of the switches' own packets that is lost on arrival, at random. Source: ours,
        /// none.
        #[within(0..=1)]
        pub control_loss: f64 = 0.0,
        /// Packets in a row from one switch that may be lost so, at most. Source: ours.
        #[within(0..=1_000_000)]
        pub control_loss_run: u32 = 2,
    }
}

speaking! {
    /// A queue a flow, and senders that have in flight what they were granted.
    CreditsParams {
        /// How a core learns which queues have something: true, a queue that becomes busy rings
        /// once; "counted", a message a batch, as in Backdraft's release; false, the core looks at
        /// all queues. Source: Backdraft.
        pub doorbells: Doorbells = Doorbells::Armed,
        /// Work of a core for a doorbell. Source: ours.
        #[within(0..=1_000_000_000)]
        pub doorbell: Time = Time::from_ns(40),
        /// Memory of one core of an application: what is granted of it and what waits in it, in
        /// packets of the largest size. Source: ours.
        #[within(3_000..=1e12)]
        pub memory: Bytes = Bytes(64 << 20),
        /// Queues of one core of an application; further flows share one. Source: ours.
        #[within(1..=1_000_000)]
        pub max_queues: u32 = 4096,
        /// The most that one flow may have been granted that has not come. "auto": what the host's
        /// link carries in the feedback time, and a grant. Source: ours.
        pub window: Auto<Bytes> = Auto::Auto,
        /// Packets that are granted at a time, at most, and a quarter of the memory at most.
        /// Source: ours.
        #[within(1..=1_000_000)]
        pub grant: u32 = 16,
        /// Grants are of so many times the memory; above 1 packets may find no room. Source: ours,
        /// once.
        #[within(1..=1000)]
        pub overcommit: f64 = 1.0,
        /// From a grant until its packet arrives, beside the time that it holds. "auto": the
        /// longest round trip of the empty network, at least 20us. Source: ours.
        #[within(1..=1e12)]
        pub feedback: Auto<Time> = Auto::Auto,
        /// How long a grant holds. "auto": five feedback times, at least 1us. Source: ours.
        #[within(1_000_000..=1e12)]
        pub ttl: Auto<Time> = Auto::Auto,
        /// After so long without a grant a flow asks again. Source: ours.
        #[within(1_000_000..=1e12)]
        pub repeat: Time = Time::from_ms(1),
    }
}

speaking! {
    /// A queue an application's core, and senders that keep the rates that they were given.
    PicnicParams {
        /// Packets that the queue of one core of an application holds; what comes beyond is dropped
        /// (virtual-switch). Source: ours, as of backpressure.
        #[within(1..=1_000_000)]
        pub queue: u32 = 1024,
        /// How often rates are decided and advertised. Source: ours.
        #[within(1_000_000..=1e12)]
        pub period: Time = Time::from_us(50),
        /// How long a packet may wait in the queue for the rate to grow. Source: ours.
        #[within(1..=1e12)]
        pub target: Time = Time::from_us(25),
        /// The part of itself by which a rate grows in a period. Source: ours.
        #[within(0.001..=1)]
        pub increase: f64 = 0.125,
    }
}

/// The least feedback time that follows a network: a switch takes its time to answer, too.
const FEEDBACK: Time = Time::from_us(20);

/// Feedback times for which a record holds.
const HOLDS: u64 = 5;
/// The shortest `ttl` that a scenario may set.
const LEAST_TTL: Time = Time::from_us(1);

macro_rules! feedback {
    ($Params:ident) => {
        impl $Params {
            /// The feedback time in a network with this longest round trip.
            pub fn feedback(&self, round_trip: Time) -> Time {
                self.feedback.or(|| round_trip.max(FEEDBACK))
            }

            /// How long a record holds.
            pub fn ttl(&self, round_trip: Time) -> Time {
                self.ttl.or(|| self.feedback(round_trip).saturating_mul(HOLDS).max(LEAST_TTL))
            }
        }
    };
}
feedback!(BackdraftParams);
feedback!(CreditsParams);

const NONE: About = About { summary: "packets wait in the NIC alone", source: "", ..About::PLAIN };
const LOSSY: About = About {
    summary: "cores move packets from the NIC's ring to applications' rings, and drop what does \
              not fit",
    source: "BESS; Backdraft, NSDI 2022, its baseline",
    breaks: &[PathProperty::NoLossAfterAdmission],
    ..About::PLAIN
};
const BACKPRESSURE: About = About {
    summary: "a queue an application that is nearly full stops the polling of the NIC's ring",
    source: "BESS, Queue with backpressure; Backdraft, NSDI 2022, its second baseline",
    breaks: &[PathProperty::NoLossAfterAdmission],
    answers: Some(Reason::HostDrops),
    ..About::PLAIN
};
const FLOW_QUEUES: About = About {
    summary: "a queue a flow, made and grown on demand and served in turn; polling stops when \
              memory is exhausted",
    source: "Backdraft, NSDI 2022: dynamic per-flow queues and doorbells",
    answers: Some(Reason::HostDrops),
    ..About::PLAIN
};
const BACKDRAFT: About = About {
    summary: "flow queues, and pauses past the fabric: what has no room waits in the senders' \
              memory",
    source: "Sanaee, Shahinfar, Antichi, Stephens: Backdraft: a Lossless Virtual Switch that \
             Prevents the Slow Receiver Problem, NSDI 2022",
    needs: &[PathProperty::ControlNeverWaits],
    provides: &[Signal::Priorities],
    answers: Some(Reason::HostDrops),
    ..About::PLAIN
};

const CREDITS: About = About {
    summary: "flow queues, and senders that have in flight what the receiving switch has granted \
              from its memory",
    source: "Backdraft, NSDI 2022, names it among what it does without; the protocol is ours",
    needs: &[PathProperty::ControlNeverWaits],
    provides: &[Signal::Priorities],
    answers: Some(Reason::HostDrops),
    ..About::PLAIN
};
const PICNIC: About = About {
    summary: "a queue an application, and rates that the receiving switch advertises and the \
              sending one keeps",
    source: "Kumar and others: PicNIC: Predictable Virtualized NIC, SIGCOMM 2019, its parts; \
             their laws are ours",
    breaks: &[PathProperty::NoLossAfterAdmission],
    provides: &[Signal::Priorities],
    answers: Some(Reason::HostDrops),
    ..About::PLAIN
};

crate::registry! {
    /// Which virtual switch the hosts run.
    place: "edge.virtual-switch", question: "where do packets wait in the host?", default: None,
    params: VirtualSwitchParams;
    "none" => None { NoVirtualSwitchParams; NONE },
    "lossy" => Lossy { LossyParams; LOSSY },
    "backpressure" => Backpressure { BackpressureParams; BACKPRESSURE },
    "flow-queues" => FlowQueues { FlowQueuesParams; FLOW_QUEUES },
    "backdraft" => Backdraft { BackdraftParams; BACKDRAFT },
    "credits" => Credits { CreditsParams; CREDITS },
    "picnic" => Picnic { PicnicParams; PICNIC },
}

/// The parameters of all kinds whose switches talk to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speaking {
    /// Bytes that may wait in a NIC for the switch to hand it more.
    pub nic_limit: Bytes,
    /// Whether retransmission timers stand still while a flow may not send.
    pub freeze_timers: bool,
    /// Of the switches' packets.
    pub priority: u32,
    /// The share of them that is lost.
    pub control_loss: f64,
    /// Those of one switch that are lost in a row, at most.
    pub control_loss_run: u32,
}

impl VirtualSwitchParams {
    /// `None`: its switches send no records.
    pub fn speaking(&self) -> Option<Speaking> {
        macro_rules! of {
            ($p:expr) => {
                Some(Speaking {
                    nic_limit: $p.nic_limit,
                    freeze_timers: $p.freeze_timers,
                    priority: $p.priority,
                    control_loss: $p.control_loss,
                    control_loss_run: $p.control_loss_run,
                })
            };
        }
        match self {
            VirtualSwitchParams::Backdraft(p) => of!(p),
            VirtualSwitchParams::Credits(p) => of!(p),
            VirtualSwitchParams::Picnic(p) => of!(p),
            _ => None,
        }
    }

    /// Whether its switches let a segment leave by what others have granted, each anew.
    pub fn admits(&self) -> bool {
        matches!(self, VirtualSwitchParams::Credits(_) | VirtualSwitchParams::Picnic(_))
    }
}
