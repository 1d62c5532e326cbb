//! The lab: a scenario's hosts as network namespaces with kernel TCP.
