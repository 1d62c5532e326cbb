//! The lab: a scenario's hosts as network namespaces with kernel TCP.
//!
//! | module | content |
//! |---|---|
//! | [`load`] | the load generator |

#[cfg(target_os = "linux")]
pub mod load;
