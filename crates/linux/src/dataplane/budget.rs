//! The part of the worker that a port has in a round, by what its frames cost.
//!
//! Deficit round robin (Shreedhar, Varghese: Efficient Fair Queuing using Deficit Round-Robin,
//! SIGCOMM 1995). The length of a frame is known once it was read, so a port goes on while it has
//! credit, and owes in later rounds what its last frame cost beyond. A frame costs its bytes and
//! two surcharges, in bytes: for the system calls, and for each packet that it is cut into. So 41
//! frames of 64 bytes cost as much as 8 super-segments of 64 KB, and take about as long.
//!
//! Invariant: of two ports that always have frames, one costs at most a quantum and a frame more
//! than the other, over any time.

/// The most that a port may cost in a round. Of super-segments that is half a megabyte, after which
/// their acknowledgements are looked at; with 32 of them one TCP connection was 15 to 25 % slower.
const QUANTUM: i64 = 1 << 20;
/// The surcharge of a frame, for each place that it is written to.
const FRAME: i64 = 24 << 10;
/// The surcharge of a packet.
const PACKET: i64 = 1 << 10;

/// The cost that a port may still cause in this round; negative: what it owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(i64);

impl Default for Budget {
    fn default() -> Budget {
        Budget(QUANTUM)
    }
}

impl Budget {
    /// A round begins. Credit of earlier rounds is not saved.
    pub fn begin(&mut self) {
        self.0 = (self.0 + QUANTUM).min(QUANTUM);
    }
    /// Whether the port may go on in this round.
    pub fn allows(&self) -> bool {
        self.0 > 0
    }
    /// Charges a frame of `bytes` bytes that becomes `packets` packets, for each of the `places`
    /// that it was written to.
    pub fn charge(&mut self, bytes: usize, packets: usize, places: usize) {
        let cost = bytes as i64 + packets as i64 * PACKET + FRAME;
        self.0 -= cost * places.max(1) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How many frames fit into a round's turn, and what is owed then.
    fn turn(budget: &mut Budget, bytes: usize, packets: usize, places: usize) -> usize {
        budget.begin();
        let mut count = 0;
        while budget.allows() {
            budget.charge(bytes, packets, places);
            count += 1;
        }
        count
    }

    #[test]
    fn small_frames_and_super_segments_have_equal_turns() {
        assert_eq!(turn(&mut Budget::default(), 64, 1, 1), 41);
        assert_eq!(turn(&mut Budget::default(), 65_226, 45, 1), 8);
        // A frame for a thousand ports is paid for in rounds without a turn.
        let mut budget = Budget::default();
        let turns: Vec<usize> = (0..30).map(|_| turn(&mut budget, 64, 1, 1000)).collect();
        assert_eq!(turns.iter().sum::<usize>(), 2, "{turns:?}");
    }

    proptest! {
        /// Ports with frames of any kind cost the same.
        #[test]
        fn costs_are_equal(
            ports in proptest::collection::vec((60..65_000usize, 1..300usize), 2..5),
        ) {
            let mut budgets = vec![Budget::default(); ports.len()];
            let mut costs = vec![0i64; ports.len()];
            for _ in 0..200 {
                for (at, (bytes, packets)) in ports.iter().enumerate() {
                    let count = turn(&mut budgets[at], *bytes, *packets, 1) as i64;
                    costs[at] += count * (*bytes as i64 + *packets as i64 * PACKET + FRAME);
                }
                let [least, most] = [costs.iter().min().unwrap(), costs.iter().max().unwrap()];
                prop_assert!(most - least <= QUANTUM, "{costs:?}");
            }
        }
    }
}
