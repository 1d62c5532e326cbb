//! Senders behind a tap that are made to wait.
//!
//! A tap takes what its kernel sends and notifies nobody when its queue is full. A queueing
//! discipline before it can: what waits there is charged to the socket that has sent it, so that
//! socket blocks. So a port with `shape` has a token bucket (tbf) before its tap, at that rate.
//! While frames from the port wait because somebody has paused their flows, the bucket has next to
//! no rate.
//!
//! The bucket is the device's: one paused flow slows all that are behind the tap. It is changed by
//! `tc` on a thread of its own, which takes milliseconds; what comes meanwhile must find memory.
//!
//! Invariant: the poll loop never waits for `tc`; a bucket that is left at next to no rate is set
//! anew by the process that opens the port next.

use super::config::PortParams;
use super::error::run;
use crate::dataplane::port;
use millpond_core::Rate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};

const HANDLE: &str = "6d70:";
/// The rate of a bucket for senders that are to wait.
const TRICKLE: Rate = Rate(8_000);
/// Bytes that may wait in it: all that senders' sockets may have under way.
const LIMIT: u64 = 16 << 20;
/// The least that leaves at once at a port's own rate, in bytes.
const BURST_LEAST: u64 = 128 << 10;

type Device = (Option<String>, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    rate: Rate,
    mtu: usize,
    is_slow: bool,
}

#[derive(Default)]
pub struct Shaper {
    /// By device: what it has, or is about to have.
    slow: BTreeSet<Device>,
    orders: Option<Sender<(Device, Order)>>,
}

/// `tc`'s words for a bucket.
pub fn bucket(rate: Rate, mtu: usize, is_slow: bool) -> Vec<String> {
    let (rate, burst) = match is_slow {
        // No less than a packet, which else would be dropped.
        true => (TRICKLE, mtu as u64 + 100),
        false => (rate, (rate.bps() / 8 / 1000).max(BURST_LEAST)),
    };
    let words = [
        "tbf",
        "rate",
        &format!("{}bit", rate.bps()),
        "burst",
        &burst.to_string(),
        "limit",
        &LIMIT.to_string(),
    ];
    words.map(str::to_string).to_vec()
}

/// Does something to the queueing discipline of a device of the calling thread's namespace that is
/// ours.
pub fn discipline(verb: &str, device: &str, words: &[String]) -> Result<(), port::Error> {
    let mut arguments = vec!["qdisc", verb, "dev", device, "root", "handle", HANDLE];
    arguments.extend(words.iter().map(String::as_str));
    let what = format!("the token bucket of {device} with `tc`");
    run("tc", &arguments).map(drop).map_err(|reason| port::Error::Kernel { what, reason })
}

/// Sets buckets, the latest order of each device.
fn work(orders: &std::sync::mpsc::Receiver<(Device, Order)>) {
    while let Ok(first) = orders.recv() {
        let latest: BTreeMap<Device, Order> =
            std::iter::once(first).chain(orders.try_iter()).collect();
        for ((namespace, device), order) in latest {
            let words = bucket(order.rate, order.mtu, order.is_slow);
            let change = || discipline("change", &device, &words);
            if let Err(error) = port::within(namespace.as_deref(), change) {
                log::warn!("the token bucket of {device}: {error}");
            }
        }
    }
}

impl Shaper {
    /// `slowed` are the ports whose senders are to wait; all others that have a bucket have its
    /// rate.
    pub fn set(
        &mut self,
        ports: &[PortParams],
        mtu: impl Fn(usize) -> usize,
        slowed: &BTreeSet<u16>,
    ) {
        for (index, params) in ports.iter().enumerate() {
            let Some(rate) = params.shape else { continue };
            let is_slow = slowed.contains(&(index as u16));
            let device = (params.namespace.clone(), params.device().to_string());
            if is_slow == self.slow.contains(&device) {
                continue;
            }
            if is_slow {
                self.slow.insert(device.clone());
            } else {
                self.slow.remove(&device);
            }
            let sender = self.orders.get_or_insert_with(|| {
                let (sender, orders) = channel();
                std::thread::spawn(move || work(&orders));
                sender
            });
            let _ = sender.send((device, Order { rate, mtu: mtu(index), is_slow }));
        }
    }
    /// Whether a port's senders are made to wait.
    pub fn is_slow(&self, params: &PortParams) -> bool {
        !self.slow.is_empty()
            && self.slow.contains(&(params.namespace.clone(), params.device().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_a_packet_through_at_any_rate() {
        let words = |is_slow| bucket(Rate::from_gbps(1), 9000, is_slow).join(" ");
        assert_eq!(words(false), "tbf rate 1000000000bit burst 131072 limit 16777216");
        assert_eq!(words(true), "tbf rate 8000bit burst 9100 limit 16777216");
    }
}
