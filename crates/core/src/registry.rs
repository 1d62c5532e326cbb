//! The registries: which mechanisms there are at each place of the packet path, and what each
//! assumes of that path.
//!
//! [`registry!`](crate::registry!) is written once in each policy folder, with one line a
//! mechanism. It makes the closed enum that the per-packet path dispatches on (no boxed traits),
//! the enum of parameters that a scenario chooses from, and the list from which the CLI, the
//! schema, the book and the tests learn of the mechanism.
//!
//! Invariant: a mechanism that is in no registry does not exist; one that is has a summary, a
//! source, and its declared needs, breaks and signals.

use crate::params::{Key, Params};

crate::named! {
    /// A property that a mechanism may assume of, or take away from, the path that packets travel.
    pub enum PathProperty {
        /// Packets of a flow arrive in the order sent, losses aside.
        FifoPerFlow = "fifo-per-flow",
        /// Packets of one flowcell arrive in the order sent, losses aside.
        FifoPerFlowcell = "fifo-per-flowcell",
        /// The transport learns of congestion from losses or marks that it can see.
        LossIsSignal = "loss-is-signal",
        /// A packet that entered a queue leaves it.
        NoLossAfterAdmission = "no-loss-after-admission",
        /// Packets marked important are not dropped below the hard bound.
        ImportantSurvives = "important-survives",
        /// A sender's retransmission timer keeps meaning "lost".
        TimersRun = "timers-run",
        /// The next hop follows the label and nothing else.
        LabelFixesPath = "label-fixes-path",
        /// The edge sees segments of up to 64 KB before they are cut.
        SizeAtEdge = "size-at-edge",
        /// Pause, grant and pure-ACK packets are neither dropped, deflected nor held.
        ControlNeverWaits = "control-never-waits",
        /// Packets of equal senders do not meet at the same instants for ever.
        PhasesMix = "phases-mix",
        /// Queues of switches never wait for each other in a circle.
        AcyclicWaits = "acyclic-waits",
    }
}

impl PathProperty {
    /// The consequence for a mechanism that needs this property where another breaks it, and what
    /// repairs it.
    pub fn consequence(self) -> &'static str {
        match self {
            PathProperty::FifoPerFlow => {
                "reordering looks like loss: spurious duplicate ACKs and fast retransmits; raise \
                 transport.dupack-threshold, or restore order at the receiver"
            }
            PathProperty::FifoPerFlowcell => {
                "a gap inside a flowcell is taken for loss at once; deflect whole flowcells"
            }
            PathProperty::LossIsSignal => {
                "the sender does not learn of congestion and does not slow down"
            }
            PathProperty::NoLossAfterAdmission => {
                "a packet can be lost after a lossless hop accepted it; pause instead of dropping"
            }
            PathProperty::ImportantSurvives => {
                "an important packet can be lost, and the timeout that it should have prevented \
                 happens; mark instead of dropping"
            }
            PathProperty::TimersRun => {
                "a long pause fires the retransmission timer: duplicates into a paused queue; keep \
                 pauses below the timer"
            }
            PathProperty::LabelFixesPath => "packets leave the path that their label names",
            PathProperty::SizeAtEdge => {
                "segments are cut before the edge sees them; turn segment-offload on"
            }
            PathProperty::ControlNeverWaits => {
                "control packets wait or are lost with the data; give them rank 0 and a queue of \
                 their own"
            }
            PathProperty::AcyclicWaits => {
                "packets off their way wait in paused queues of other switches, and such queues \
                 can wait for each other for ever; turn one of the two off, or give pfc a watchdog"
            }
            PathProperty::PhasesMix => {
                "packets of equal senders tie to the picosecond, the same one always finds the \
                 last place in a full queue, and one flow can lock all others out; turn \
                 host.jitter on"
            }
        }
    }
}

crate::named! {
    /// A fact that one mechanism writes on packets, or a network has, and that another acts upon.
    pub enum Signal {
        /// How urgent a data packet is.
        Ranks = "ranks",
        /// Which packets must not be dropped early.
        Colors = "colors",
        /// The path that the sending edge has chosen.
        Labels = "labels",
        /// Which packets of a flow share a label.
        Flowcells = "flowcells",
        /// CE, of congestion that a switch or a limit has met.
        Marks = "marks",
        /// The class of a packet, which a port may serve first.
        Priorities = "priorities",
        /// The headers of a packet whose payload a switch has cut off.
        TrimmedHeaders = "trimmed-headers",
        /// Several paths from a host to another, which a network has or lacks.
        Paths = "paths",
        /// Another switch beside the one whose port is full, which a network has or lacks.
        Detours = "detours",
    }
}

impl Signal {
    /// The consequence for its provider where no mechanism reads it, and a reader to choose.
    pub fn unread(self) -> &'static str {
        match self {
            Signal::Ranks => {
                "switches treat all ranks alike; set switch.admission.kind = \"aifo\", \
                 switch.queue.kind = \"srpt\", or switch.deflection.kind = \"canary\""
            }
            Signal::Colors => {
                "switches drop important packets like all others; set switch.admission.kind = \
                 \"color-aware\""
            }
            Signal::Labels => {
                "switches choose paths without the labels; set switch.path.kind = \"labels\""
            }
            Signal::Flowcells => {
                "flowcells overtake each other on their way to the transport; set \
                 host.receive-offload.kind = \"presto-gro\""
            }
            Signal::Marks => {
                "no sender slows down for a mark; set transport.kind = \"dctcp\", or a key such as \
                 transport.cubic-ecn"
            }
            Signal::Priorities => {
                "switches serve all priorities alike, and what is urgent waits behind data; set \
                 switch.queue.kind = \"strict-priority\""
            }
            Signal::TrimmedHeaders => {
                "switches drop the packets of all other transports; set transport.kind = \"uet\""
            }
            Signal::Paths => "flows take paths by their hash; set switch.path.kind",
            Signal::Detours => "a full port drops; set switch.deflection.kind",
        }
    }

    /// The consequence for its reader where no mechanism provides it, and a provider to choose.
    pub fn missing(self) -> &'static str {
        match self {
            Signal::Ranks => {
                "all packets look equally important; set transport.rank.kind = \
                 \"remaining-bytes\""
            }
            Signal::Colors => "all packets have one color; set transport.importance.kind = \"tlt\"",
            Signal::Labels => {
                "each flow keeps one path, as with \"ecmp\"; set edge.load-balancing.kind = \
                 \"presto\""
            }
            Signal::Flowcells => {
                "a flow is one flowcell, in which each gap counts as a loss; set \
                 edge.load-balancing.kind = \"presto\""
            }
            Signal::Marks => {
                "senders get no sign of congestion but losses; set switch.marking.kind = \"ecn\" \
                 or \"red\""
            }
            Signal::Priorities => {
                "all packets have one priority, as in a \"fifo\"; set priority in a [[traffic]], \
                 or choose transport.kind = \"homa\""
            }
            Signal::TrimmedHeaders => {
                "the receiver learns of a loss later; set switch.overflow.kind = \"trim\""
            }
            Signal::Paths => {
                "no flow has a choice; set topology.kind = \"leaf-spine\" with two spines or more"
            }
            Signal::Detours => {
                "a packet of a full port has no other switch to go to; set topology.kind = \
                 \"leaf-spine\""
            }
        }
    }
}

/// An event that a mechanism answers: in a run without the mechanism it has to happen, or the
/// mechanism has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A retransmission timer fires.
    Timeouts,
    /// A switch drops a packet for want of room.
    SwitchDrops,
    /// A receiving host drops a packet for want of room.
    HostDrops,
    /// Packets of a flow overtake each other.
    Reordering,
    /// A switch marks a packet.
    Marks,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 5] = [
        Reason::Timeouts,
        Reason::SwitchDrops,
        Reason::HostDrops,
        Reason::Reordering,
        Reason::Marks,
    ];

    /// The events in a sentence after "no".
    pub fn events(self) -> &'static str {
        match self {
            Reason::Timeouts => "timeouts",
            Reason::SwitchDrops => "drops at switches",
            Reason::HostDrops => "drops at receiving hosts",
            Reason::Reordering => "packets out of order",
            Reason::Marks => "marks",
        }
    }

    /// The verb of the mechanism in a sentence after "has nothing to".
    pub fn verb(self) -> &'static str {
        match self {
            Reason::Timeouts | Reason::SwitchDrops | Reason::HostDrops => "prevent",
            Reason::Reordering => "put in order",
            Reason::Marks => "react to",
        }
    }

    /// The places in `summary.json` of the counters that count the events.
    pub fn counters(self) -> &'static [&'static [&'static str]] {
        match self {
            Reason::Timeouts => &[&["timeouts"]],
            Reason::SwitchDrops => &[
                &["packets", "dropped_by", "queue-full"],
                &["packets", "dropped_by", "shared-buffer"],
                &["packets", "dropped_by", "early"],
                &["packets", "dropped_by", "color"],
                &["packets", "dropped_by", "no-deflection"],
                &["packets", "dropped_by", "evicted"],
            ],
            Reason::HostDrops => &[
                &["packets", "dropped_by", "receive-ring"],
                &["packets", "dropped_by", "virtual-switch"],
            ],
            Reason::Reordering => &[&["packets", "out_of_order"]],
            Reason::Marks => &[&["packets", "ecn_marked"]],
        }
    }
}

/// A mechanism's account of itself.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// One line: what it does.
    pub summary: &'static str,
    /// The paper, RFC or standard, with its section.
    pub source: &'static str,
    /// The properties that it assumes of the path.
    pub needs: &'static [PathProperty],
    /// The properties that it takes away from others.
    pub breaks: &'static [PathProperty],
    /// The properties that it gives back after others broke them.
    pub restores: &'static [PathProperty],
    /// The signals that it gives to other mechanisms.
    pub provides: &'static [Signal],
    /// The signals of other mechanisms that it acts upon.
    pub reads: &'static [Signal],
    /// Of the signals that it provides and reads, those that it works without.
    pub alone: &'static [Signal],
    /// The event that it answers, if without that event it does nothing.
    pub answers: Option<Reason>,
}

impl About {
    /// A mechanism that assumes and changes nothing.
    pub const PLAIN: About = About {
        summary: "",
        source: "",
        needs: &[],
        breaks: &[],
        restores: &[],
        provides: &[],
        reads: &[],
        alone: &[],
        answers: None,
    };
}

/// One line of a registry, as the CLI and the documents see it.
#[derive(Clone, Copy, Debug)]
pub struct Mechanism {
    /// Where it is chosen in a scenario: `"switch.marking"`.
    pub place: &'static str,
    /// The value of `kind` that chooses it.
    pub kind: &'static str,
    /// Its account of itself.
    pub about: &'static About,
    /// Its parameters.
    pub keys: &'static [Key],
}

/// One place on the packet path: the question asked there and the mechanisms that answer it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The scenario table: `"switch.marking"`.
    pub path: &'static str,
    /// The question.
    pub question: &'static str,
    /// The kind that is used where a scenario names none.
    pub default: &'static str,
    /// The answers.
    pub mechanisms: &'static [Mechanism],
}

/// The parameters of one place, as a scenario handles them: a kind, and that kind's keys.
#[warn(missing_docs)]
pub trait Choice: Clone + Default {
    /// The place, with all its kinds.
    fn place() -> &'static Place;
    /// The defaults of the named kind, or `None` if there is no such kind.
    fn of_kind(kind: &str) -> Option<Self>;
    /// The kind chosen.
    fn kind(&self) -> &'static str;
    /// Its parameters.
    fn params(&self) -> &dyn Params;
    /// Its parameters, to set.
    fn params_mut(&mut self) -> &mut dyn Params;
    /// The chosen mechanism's account of itself.
    fn about(&self) -> &'static About {
        let kind = self.kind();
        Self::place()
            .mechanisms
            .iter()
            .find(|m| m.kind == kind)
            .expect("every kind is registered")
            .about
    }
}

/// Makes a registry: the enum of parameters (what a scenario chooses) and, where `policy` is given,
/// the enum of policies with the dispatching functions, and a trait of these (`as trait Name`) with
/// the answers that most policies have (`= value`). Each line: `"kind" => Variant { ParamsType,
/// PolicyType; ABOUT }`.
#[macro_export]
macro_rules! registry {
    (
        $(#[$meta:meta])*
        place: $place:literal, question: $question:literal, default: $default:ident,
        params: $Params:ident
        $(, policy: $Policy:ident $(as $vis:vis trait $Trait:ident)? { $($functions:tt)* })? ;
        $( $kind:literal => $Variant:ident { $params:ty $(, $policy:ty)? ; $about:path } ),+ $(,)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Params {
            $(#[doc = concat!("The parameters of `kind = \"", $kind, "\"`.")] $Variant($params)),+
        }

        impl Default for $Params {
            fn default() -> Self { $Params::$default(Default::default()) }
        }

        impl $crate::registry::Choice for $Params {
            fn place() -> &'static $crate::registry::Place {
                const MECHANISMS: &[$crate::registry::Mechanism] = &[$($crate::registry::Mechanism {
                    place: $place, kind: $kind, about: &$about, keys: <$params>::KEYS,
                }),+];
                const PLACE: $crate::registry::Place = $crate::registry::Place {
                    path: $place, question: $question,
                    default: $crate::registry!(@kind_of $default; $($kind => $Variant),+),
                    mechanisms: MECHANISMS,
                };
                &PLACE
            }
            fn of_kind(kind: &str) -> Option<Self> {
                match kind { $($kind => Some($Params::$Variant(Default::default())),)+ _ => None }
            }
            fn kind(&self) -> &'static str {
                match self { $($Params::$Variant(_) => $kind),+ }
            }
            fn params(&self) -> &dyn $crate::params::Params {
                match self { $($Params::$Variant(p) => p),+ }
            }
            fn params_mut(&mut self) -> &mut dyn $crate::params::Params {
                match self { $($Params::$Variant(p) => p),+ }
            }
        }

        $crate::registry!(
            @policy { $($Policy [$($vis trait $Trait)?] { $($functions)* })? }
            $Params { $($kind $Variant $($policy)?),+ }
        );
    };

    (@kind_of $default:ident; $($kind:literal => $Variant:ident),+) => {{
        #[allow(dead_code)]
        enum K { $($Variant),+ }
        match K::$default { $(K::$Variant => $kind),+ }
    }};

    (@policy {} $($rest:tt)*) => {};
    (
        @policy { $Policy:ident $head:tt { $($functions:tt)* } }
        $Params:ident { $($kind:literal $Variant:ident $policy:ty),+ }
    ) => {
        /// The policy that a switch port or node runs: a closed enum, so that dispatch is a jump
        /// and not a pointer.
        #[derive(Clone, Debug)]
        pub enum $Policy {
            $(#[doc = concat!("The policy of `kind = \"", $kind, "\"`.")] $Variant($policy)),+
        }

        impl $Policy {
            /// The policy with these parameters.
            pub fn new(params: &$Params) -> Self {
                match params { $($Params::$Variant(p) => $Policy::$Variant(<$policy>::new(p))),+ }
            }
            /// The value of `kind` that chooses it.
            pub fn kind(&self) -> &'static str {
                match self { $($Policy::$Variant(_) => $kind),+ }
            }
        }
        $crate::registry!(@functions $Policy { $($Variant),+ } $head {} $($functions)*);
    };

    (@dispatch $this:expr, $Policy:ident, $name:ident, $args:tt, $($Variant:ident),+) => {
        match $this { $($Policy::$Variant(policy) => policy.$name $args),+ }
    };
    (@functions $Policy:ident { $($Variant:ident),+ } [] $trait:tt) => {};
    (@functions $Policy:ident { $($Variant:ident),+ } [$($head:tt)+] { $($trait:tt)* }) => {
        /// The questions of this place, and the answers of a policy that has none of its own.
        #[allow(unused_variables)]
        $($head)+ { $($trait)* }
    };
    (
        @functions $Policy:ident $Variants:tt $head:tt { $($trait:tt)* }
        $(#[$meta:meta])*
        fn $name:ident $args:tt -> $ret:ty;
        $($rest:tt)*
    ) => {
        $crate::registry!(@method $Policy $Variants [$(#[$meta])*] $name $args -> $ret);
        $crate::registry!(
            @functions $Policy $Variants $head
            { $($trait)* $(#[$meta])* fn $name $args -> $ret; } $($rest)*
        );
    };
    (
        @functions $Policy:ident $Variants:tt $head:tt { $($trait:tt)* }
        $(#[$meta:meta])*
        fn $name:ident $args:tt -> $ret:ty = $default:expr;
        $($rest:tt)*
    ) => {
        $crate::registry!(@method $Policy $Variants [$(#[$meta])*] $name $args -> $ret);
        $crate::registry!(
            @functions $Policy $Variants $head
            { $($trait)* $(#[$meta])* fn $name $args -> $ret { $default } } $($rest)*
        );
    };
    (
        @method $Policy:ident { $($Variant:ident),+ } [$(#[$meta:meta])*]
        $name:ident (&self $(, $arg:ident : $type:ty)*) -> $ret:ty
    ) => {
        impl $Policy {
            $(#[$meta])*
            #[inline]
            pub fn $name(&self $(, $arg: $type)*) -> $ret {
                $crate::registry!(@dispatch self, $Policy, $name, ($($arg),*), $($Variant),+)
            }
        }
    };
    (
        @method $Policy:ident { $($Variant:ident),+ } [$(#[$meta:meta])*]
        $name:ident (&mut self $(, $arg:ident : $type:ty)*) -> $ret:ty
    ) => {
        impl $Policy {
            $(#[$meta])*
            #[inline]
            pub fn $name(&mut self $(, $arg: $type)*) -> $ret {
                $crate::registry!(@dispatch self, $Policy, $name, ($($arg),*), $($Variant),+)
            }
        }
    };
}
