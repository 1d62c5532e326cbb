//! Whose configuration it is. The forks' programs differ in constants without a key; each is
//! here with the file that it is in.

use millpond_core::Time;

use super::config::Config;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    Hpcc,
    Tlt,
    ConWeave,
    SimAi,
    /// The simulator that HPCC's is made of: DCQCN's, without windows or maps by rate.
    Ancestor,
}

impl Fork {
    /// By keys that it alone has.
    pub fn of(config: &Config) -> Fork {
        match () {
            () if config.word("HPCC_WORKLOAD").is_some() => Fork::Tlt,
            () if config.word("LB_MODE").is_some()
                || config.word("FLOWGEN_START_TIME").is_some() =>
            {
                Fork::ConWeave
            }
            () if config.word("MON_START").is_some()
                || config.word("QP_MON_INTERVAL").is_some() =>
            {
                Fork::SimAi
            }
            () if config.word("KMAX_MAP").is_none() && config.word("KMAX").is_some() => {
                Fork::Ancestor
            }
            () => Fork::Hpcc,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Fork::Hpcc => "HPCC's released simulator",
            Fork::Tlt => "TLT's fork of HPCC's simulator",
            Fork::ConWeave => "ConWeave's fork of HPCC's simulator",
            Fork::SimAi => "SimAI's fork of HPCC's simulator",
            Fork::Ancestor => "the simulator that HPCC's is made of",
        }
    }

    /// Whether nothing but a NACK makes a sender send again: then a timer of ours ends the silence
    /// of a flow whose last packets are lost.
    pub fn has_no_timer(self) -> bool {
        matches!(self, Fork::Hpcc | Fork::SimAi | Fork::Ancestor)
    }

    /// Whether its switches have the pools of a Broadcom chip, an egress limit among them
    /// (`switch-mmu.cc`). Otherwise a port has 4 kB of its own, and the rest is shared.
    pub fn has_pools(self) -> bool {
        matches!(self, Fork::Tlt | Fork::ConWeave)
    }

    /// A receiver repeats a NACK after so long (`rdma-hw.cc`).
    pub fn nack_interval(self) -> Time {
        if self == Fork::ConWeave { Time::from_us(4) } else { Time::from_us(500) }
    }

    /// Whether acknowledgements have the highest priority in hosts and switches, whatever a key
    /// has (`AckHighPrio` in its program).
    pub fn answers_first(self) -> bool {
        self == Fork::ConWeave
    }

    /// Whether a NACK reports congestion, too (`ReceiverCheckSeq` in `rdma-hw.cc`).
    pub fn slows_on_reordering(self) -> bool {
        self == Fork::ConWeave
    }

    /// Whether go-back-N acknowledges what comes again (`ReceiverCheckSeq` in `rdma-hw.cc`).
    pub fn answers_duplicates(self) -> bool {
        matches!(self, Fork::Tlt | Fork::ConWeave)
    }

    /// A link goes down so long after this, in seconds.
    pub fn links_begin(self, config: &Config) -> f64 {
        if self == Fork::ConWeave {
            config.number("FLOWGEN_START_TIME").unwrap_or(2.0)
        } else {
            2.0
        }
    }
}
