//! The keys of the configurations of HPCC's family, in one table: those of HPCC's released
//! simulator, of TLT's and ConWeave's forks of it, and of SimAI's backend, which also knows most of
//! them by their names in ns-3.

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A whole number, or true or false.
    Whole,
    /// A number.
    Number,
    /// A data rate of ns-3.
    Rate,
    /// A word.
    Word,
    /// How many pairs follow, and the pairs of a rate and a number.
    Map,
    /// A time and two nodes.
    Down,
}

/// The part that decides what becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The importer reads it.
    Read,
    /// It is a parameter of one congestion control or of queue pairs: `transport.rs` has it in a
    /// table.
    Transport,
    /// It says what the simulator writes, and where.
    Output,
    /// It has no effect there.
    Unused(&'static str),
    /// It is not modelled, unless it has this value.
    Unless(&'static str, &'static str),
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Its name, and others that it has.
    pub names: &'static [&'static str],
    pub form: Form,
    pub part: Part,
}

const fn key(names: &'static [&'static str], form: Form, part: Part) -> Key {
    Key { names, form, part }
}

const NEVER_READ: Part = Part::Unused("it is read there, and nothing uses it");
const CONWEAVE: Part = Part::Read;
const DUMBBELL: Part = Part::Unless(
    "",
    "TLT's dumbbell program makes its own network and its own flows of these: here they are those \
     of the topology and of HPCC_WORKLOAD",
);
const PATHS: Part =
    Part::Unless("", "m3 reads which flows share a path, for its own results: not in the scenario");
const ANCESTOR: Part =
    Part::Unless("", "a key of the ancestor of HPCC's simulator: its mechanism is not modelled");

/// The table.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    // The simulation.
    key(&["TOPOLOGY_FILE"], Form::Word, Part::Read),
    key(&["FLOW_FILE"], Form::Word, Part::Read),
    key(&["SIMULATOR_STOP_TIME"], Form::Number, Part::Read),
    key(&["ERROR_RATE_PER_LINK"], Form::Number, Part::Read),
    key(&["LINK_DOWN"], Form::Down, Part::Read),
    key(&["DATA_RATE"], Form::Word, NEVER_READ),
    key(&["LINK_DELAY"], Form::Word, NEVER_READ),
    key(&["RANDOM_SEED"], Form::Whole, Part::Read),
    // Packets and switches.
    key(&["PACKET_PAYLOAD_SIZE", "ns3::RdmaHw::Mtu"], Form::Whole, Part::Read),
    key(&["ENABLE_QCN", "ns3::QbbNetDevice::QcnEnabled"], Form::Whole, Part::Read),
    key(&["KMAX_MAP"], Form::Map, Part::Read),
    key(&["KMIN_MAP"], Form::Map, Part::Read),
    key(&["PMAX_MAP"], Form::Map, Part::Read),
    key(&["BUFFER_SIZE"], Form::Whole, Part::Read),
    key(&["ENABLE_PFC", "ns3::SwitchNode::PfcEnabled"], Form::Whole, Part::Read),
    key(&["PAUSE_TIME", "ns3::QbbNetDevice::PauseTime"], Form::Number, Part::Read),
    key(&["USE_DYNAMIC_PFC_THRESHOLD", "ns3::QbbNetDevice::DynamicThreshold"], Form::Whole,
        Part::Unless("1", "pauses follow a dynamic threshold; its static ones are not modelled")),
    key(&["LB_MODE"], Form::Whole, Part::Read),
    key(&["CONWEAVE_TX_EXPIRY_TIME"], Form::Whole, CONWEAVE),
    key(&["CONWEAVE_REPLY_TIMEOUT_EXTRA"], Form::Whole, CONWEAVE),
    key(&["CONWEAVE_PATH_PAUSE_TIME"], Form::Whole, CONWEAVE),
    key(&["CONWEAVE_EXTRA_VOQ_FLUSH_TIME"], Form::Whole, CONWEAVE),
    key(&["CONWEAVE_DEFAULT_VOQ_WAITING_TIME"], Form::Whole, CONWEAVE),
    // Queue pairs.
    key(&["CC_MODE", "ns3::RdmaHw::CcMode"], Form::Whole, Part::Read),
    key(&["ALPHA_RESUME_INTERVAL", "ns3::MellanoxDcqcn::AlphaResumInterval"], Form::Number,
        Part::Transport),
    key(&["RATE_DECREASE_INTERVAL", "ns3::MellanoxDcqcn::RateDecreaseInterval"], Form::Number,
        Part::Transport),
    key(&["CLAMP_TARGET_RATE", "ns3::MellanoxDcqcn::ClampTargetRate"], Form::Whole,
        Part::Transport),
    key(&["RP_TIMER", "ns3::MellanoxDcqcn::RPTimer"], Form::Number, Part::Transport),
    key(&["EWMA_GAIN", "ns3::MellanoxDcqcn::EwmaGain"], Form::Number, Part::Transport),
    key(&["FAST_RECOVERY_TIMES", "ns3::MellanoxDcqcn::FastRecoveryTimes"], Form::Whole,
        Part::Transport),
    key(&["RATE_AI", "ns3::RdmaHw::RateAI"], Form::Rate, Part::Transport),
    key(&["RATE_HAI", "ns3::RdmaHw::RateHAI"], Form::Rate, Part::Transport),
    key(&["MIN_RATE", "ns3::RdmaHw::MinRate"], Form::Rate, Part::Transport),
    key(&["DCTCP_RATE_AI", "ns3::Dctcp::DctcpRateAI"], Form::Rate, Part::Transport),
    key(&["U_TARGET", "ns3::Hpcc::TargetUtil"], Form::Number, Part::Transport),
    key(&["MI_THRESH", "ns3::Hpcc::MiThresh"], Form::Whole, Part::Transport),
    key(&["MULTI_RATE", "ns3::Hpcc::MultiRate"], Form::Whole, Part::Transport),
    key(&["FAST_REACT", "ns3::Hpcc::FastReact"], Form::Whole, Part::Transport),
    key(&["SAMPLE_FEEDBACK", "ns3::Hpcc::SampleFeedback"], Form::Whole, Part::Transport),
    key(&["INT_MULTI"], Form::Whole, Part::Transport),
    key(&["PINT_LOG_BASE"], Form::Number, Part::Transport),
    key(&["PINT_PROB", "ns3::HpccPint::PintProb"], Form::Number, Part::Transport),
    key(&["HAS_WIN"], Form::Whole, Part::Transport),
    key(&["VAR_WIN", "ns3::RdmaHw::VarWin"], Form::Whole, Part::Transport),
    key(&["GLOBAL_T"], Form::Whole, Part::Transport),
    key(&["RATE_BOUND", "ns3::RdmaHw::RateBound"], Form::Whole,
        Part::Unless("1", "NICs pace every queue pair; without a pace is not modelled")),
    key(&["L2_CHUNK_SIZE", "ns3::RdmaHw::L2ChunkSize"], Form::Whole, Part::Transport),
    key(&["L2_ACK_INTERVAL", "ns3::RdmaHw::L2AckInterval"], Form::Whole, Part::Transport),
    key(&["L2_BACK_TO_ZERO", "ns3::RdmaHw::L2BackToZero"], Form::Whole,
        Part::Unless("0", "a loss sends again from where it was, not from the beginning of its \
            chunk")),
    key(&["ACK_HIGH_PRIO"], Form::Whole, Part::Transport),
    key(&["ENABLE_IRN"], Form::Whole, Part::Transport),
    key(&["IRN_NO_BDPFC"], Form::Whole, Part::Transport),
    key(&["ENABLE_TLT"], Form::Whole, Part::Read),
    key(&["TLT_MAXBYTES_UIP"], Form::Number, Part::Read),
    // TLT's workload.
    key(&["HPCC_WORKLOAD"], Form::Word, Part::Read),
    key(&["DUMBBELL_NUMHOST"], Form::Whole, DUMBBELL),
    key(&["DUMBBELL_NUMFLOWPERHOST"], Form::Whole, DUMBBELL),
    key(&["DUMBBELL_FLOWSIZE"], Form::Number, DUMBBELL),
    key(&["DUMBBELL_LINKCAP"], Form::Rate, DUMBBELL),
    key(&["LOAD"], Form::Number, Part::Read),
    key(&["FOREGROUND_RATIO"], Form::Number, Part::Read),
    key(&["INCAST_FLOW_SIZE", "DCTCP_INCAST_SIZE"], Form::Number, Part::Read),
    key(&["FOREGROUND_INCAST_FLOW_PER_HOST"], Form::Whole, Part::Read),
    key(&["NUM_BG_FLOWS", "TCP_FLOW_TOTAL"], Form::Whole, Part::Read),
    key(&["APP_START_TIME"], Form::Number, Part::Unused("the run begins with the first flow")),
    key(&["APP_STOP_TIME"], Form::Number, Part::Unused("the run ends with the last flow")),
    key(&["FLOWGEN_START_TIME"], Form::Number, Part::Unused("the flow file says when flows start")),
    key(&["FLOWGEN_STOP_TIME"], Form::Number,
        Part::Unused("the flow file says when flows start; the run ends with the last")),
    // Hosts of SimAI.
    key(&["ns3::RdmaHw::NicCoalesceMethod"], Form::Word,
        Part::Unless("PER_QP", "a NIC serves its queue pairs one by one")),
    key(&["ns3::RdmaHw::NACKGenerationInterval"], Form::Number, Part::Transport),
    key(&["ns3::RdmaHw::GPUsPerServer"], Form::Whole,
        Part::Unused("every node of the topology is a host")),
    key(&["NIC_TOTAL_PAUSE_TIME", "ns3::RdmaHw::TotalPauseTime"], Form::Whole,
        Part::Unless("0", "NICs are never stopped for so long by themselves")),
    key(&["ns3::IbvInterface::PollTimeInterval"], Form::Whole,
        Part::Unless("0", "applications learn at once of what is complete, without polling")),
    key(&["ns3::IbvInterface::SendLatency"], Form::Whole,
        Part::Unless("0", "what an application sends is at the NIC at once")),
    key(&["ns3::RealDcqcn::EwmaGain"], Form::Number, Part::Transport),
    key(&["ns3::RealDcqcn::F"], Form::Whole, Part::Transport),
    key(&["ns3::RealDcqcn::RateUpdateDelay"], Form::Word, Part::Transport),
    key(&["ns3::RealDcqcn::AlphaUpdateDelay"], Form::Word, Part::Transport),
    key(&["ns3::RealDcqcn::BytesThreshold"], Form::Whole, Part::Transport),
    key(&["ns3::RealDcqcn::Clamp"], Form::Whole, Part::Transport),
    // m3's fork.
    key(&["FLOW_ON_PATH_FILE"], Form::Word, PATHS),
    key(&["FLOW_PATH_MAP_FILE"], Form::Word, PATHS),
    key(&["MAX_RATE"], Form::Rate,
        Part::Unless("", "there no queue pair is faster than it; here the host's link alone \
            bounds it")),
    key(&["TIMELY_T_HIGH"], Form::Number, Part::Transport),
    key(&["TIMELY_T_LOW"], Form::Number, Part::Transport),
    key(&["TIMELY_BETA"], Form::Number, Part::Transport),
    key(&["FIXED_WIN"], Form::Whole, Part::Transport),
    key(&["BASE_RTT"], Form::Number, Part::Transport),
    // The ancestor, DCQCN's simulator.
    key(&["TCP_FLOW_FILE"], Form::Word, Part::Read),
    key(&["KMIN"], Form::Number, Part::Read),
    key(&["KMAX"], Form::Number, Part::Read),
    key(&["PMAX"], Form::Number, Part::Read),
    key(&["DCTCP_GAIN"], Form::Number, Part::Transport),
    key(&["PACKET_LEVEL_ECMP"], Form::Whole,
        Part::Unless("0", "flows keep their path: it is not chosen by packet")),
    key(&["FLOW_LEVEL_ECMP"], Form::Whole, Part::Unless("1", "paths are chosen by ECMP")),
    key(&["SEND_IN_CHUNKS"], Form::Whole, Part::Unless("0", "a flow is one message, not chunks")),
    key(&["CNP_INTERVAL"], Form::Number, ANCESTOR),
    key(&["NP_SAMPLING_INTERVAL"], Form::Number, Part::Unless("0", "marks are reported at once")),
    key(&["CLAMP_TARGET_RATE_AFTER_TIMER"], Form::Whole,
        Part::Unless("0", "the target is not clamped by the timer")),
    key(&["BYTE_COUNTER"], Form::Number, ANCESTOR),
    key(&["L2_WAIT_FOR_ACK"], Form::Whole,
        Part::Unless("0", "senders do not wait for each acknowledgement")),
    // The output.
    key(&["TRACE_FILE"], Form::Word, Part::Output),
    key(&["TRACE_OUTPUT_FILE"], Form::Word, Part::Output),
    key(&["ENABLE_TRACE"], Form::Whole, Part::Output),
    key(&["FCT_OUTPUT_FILE"], Form::Word, Part::Output),
    key(&["PFC_OUTPUT_FILE"], Form::Word, Part::Output),
    key(&["SEND_OUTPUT_FILE"], Form::Word, Part::Output),
    key(&["CNP_OUTPUT_FILE"], Form::Word, Part::Output),
    key(&["FLOW_INPUT_FILE"], Form::Word, Part::Output),
    key(&["QLEN_MON_FILE"], Form::Word, Part::Output),
    key(&["QLEN_MON_START"], Form::Number, Part::Output),
    key(&["QLEN_MON_END"], Form::Number, Part::Output),
    key(&["QLEN_MON_INTERVAL"], Form::Number, Part::Output),
    key(&["SW_MONITORING_INTERVAL"], Form::Number, Part::Output),
    key(&["VOQ_MON_FILE"], Form::Word, Part::Output),
    key(&["VOQ_MON_DETAIL_FILE"], Form::Word, Part::Output),
    key(&["UPLINK_MON_FILE"], Form::Word, Part::Output),
    key(&["CONN_MON_FILE"], Form::Word, Part::Output),
    key(&["EST_ERROR_MON_FILE"], Form::Word, Part::Output),
    key(&["BW_MON_FILE"], Form::Word, Part::Output),
    key(&["BW_MON_INTERVAL"], Form::Number, Part::Output),
    key(&["RATE_MON_FILE"], Form::Word, Part::Output),
    key(&["CNP_MON_FILE"], Form::Word, Part::Output),
    key(&["QP_MON_INTERVAL"], Form::Number, Part::Output),
    key(&["MON_START"], Form::Number, Part::Output),
    key(&["MON_END"], Form::Number, Part::Output),
];

/// The key of a name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_key() {
        let names: Vec<&str> = KEYS.iter().flat_map(|key| key.names).copied().collect();
        let once: std::collections::BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), once.len());
    }
}
