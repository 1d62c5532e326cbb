//! Any packets, polls and waits: what receive offload gives up is, byte for byte, what it was
//! given. Each packet once; segments contiguous, their packets with equal headers and, but for the
//! last, of equal length; the kernel's rules never reorder a flow; Presto's never wait longer than
//! they may; and drained, nothing is left.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use millpond_core::edge::gro::{
    Arrival, IpId, Labels, Offload, OffloadParams, PrestoGroParams, Released, Rules,
    StockGroParams, tcp,
};
use millpond_core::{Bytes, Time};

#[derive(Arbitrary, Debug)]
struct Input {
    kind: u8,
    held: u16,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Packet {
        flow: u8,
        offset: u16,
        len: u16,
        flowcell: u8,
        flags: u8,
        merge: bool,
        path: bool,
        id: Option<(u8, bool)>,
    },
    Poll,
    Later(u16),
    Evict,
}

/// Polls are no longer than this, as a driver's budget has it.
const BUDGET: usize = 64;
/// The expected delay, which nothing here changes by much.
const DELAY: Time = Time::from_us(100);

/// What was given: the stream's bytes are known by (flow, sequence number).
struct Model {
    given: Vec<(Arrival<u8>, Time)>,
    came_up: Vec<bool>,
    /// Whether flowcells part segments, and whether a flow keeps its order.
    by_cell: bool,
    in_order: bool,
    last_of_flow: [Option<usize>; 4],
    /// When the present poll began.
    poll: Time,
}

impl Model {
    fn check(&mut self, now: Time, released: Released<'_, u8, usize>) {
        let first = self.given[released.packets[0]].0;
        let (mut next, mut bytes, mut latest) = (released.seq, 0, Time::ZERO);
        for (i, number) in released.packets.iter().enumerate() {
            assert!(!std::mem::replace(&mut self.came_up[*number], true), "twice");
            let (arrival, came) = self.given[*number];
            assert_eq!((arrival.flow, arrival.merge), (released.flow, first.merge));
            assert_eq!(arrival.seq, next, "a gap in a segment");
            let is_last = i + 1 == released.packets.len();
            assert!(arrival.len == first.len || (is_last && arrival.len < first.len));
            assert!(!self.by_cell || arrival.flowcell == released.flowcell);
            next = next.wrapping_add(arrival.len);
            bytes += arrival.len;
            latest = latest.max(came);
            if self.in_order {
                assert!(
                    self.last_of_flow[usize::from(arrival.flow)].replace(*number) < Some(*number),
                    "reordered"
                );
            }
        }
        assert_eq!((bytes, first.len), (released.bytes, released.mss));
        assert!(released.packets.len() == 1 || bytes + u32::from(first.headers) <= 65_535);
        let bound =
            (released.first + DELAY * 2).max(latest + DELAY / 2).max(self.poll) + Time::from_ps(1);
        assert!(now <= bound, "{now} is later than {bound}");
    }
}

fuzz_target!(|input: Input| {
    let rules = if input.kind & 4 == 0 { Rules::Literal } else { Rules::Safe };
    let labels = if input.kind & 4 == 0 { Labels::Stripped } else { Labels::Kept };
    let params = match input.kind % 3 {
        0 => OffloadParams::None(Default::default()),
        1 => OffloadParams::Stock(StockGroParams { labels, ..StockGroParams::default() }),
        _ => OffloadParams::Presto(PrestoGroParams {
            rules,
            initial: DELAY,
            min: DELAY,
            max: DELAY,
            flow_held_max: Bytes(u64::from(input.held)),
            held_max: Bytes(u64::from(input.held) * 2),
            idle: Time::from_us(500),
            ..PrestoGroParams::default()
        }),
    };
    let mut offload: Offload<u8, usize> = Offload::new(&params);
    let by_cell = matches!(params, OffloadParams::Presto(_));
    let mut model = Model {
        given: Vec::new(),
        came_up: Vec::new(),
        by_cell,
        in_order: !by_cell && labels == Labels::Stripped,
        last_of_flow: [None; 4],
        poll: Time::ZERO,
    };
    let (mut now, mut of_poll) = (Time::ZERO, 0);
    for step in input.steps {
        match step {
            Step::Packet { flow, offset, len, flowcell, flags, merge, path, id }
                if of_poll < BUDGET =>
            {
                let arrival = Arrival {
                    flow: flow % 4,
                    hash: u32::from(flow % 2),
                    path: u32::from(path),
                    seq: u32::from(offset).wrapping_sub(30_000),
                    len: u32::from(len % 9_000),
                    merge: u64::from(merge),
                    headers: 52,
                    flowcell: u16::from(flowcell).wrapping_sub(128),
                    flags: flags & !tcp::SYN | tcp::ACK,
                    id: id.map_or(IpId::NONE, |(id, whole)| IpId::new(id.into(), whole)),
                    is_whole: flags & tcp::SYN != 0,
                };
                let number = model.given.len();
                model.given.push((arrival, now));
                model.came_up.push(false);
                offload.receive(now, &arrival, number, &mut |released| model.check(now, released));
                of_poll += 1;
            }
            Step::Packet { .. } | Step::Poll => {
                offload.flush(now, &mut |released| model.check(now, released));
                of_poll = 0;
            }
            Step::Later(by) => {
                offload.flush(now, &mut |released| model.check(now, released));
                of_poll = 0;
                let until = now + Time::from_us(u64::from(by));
                while let Some(due) = offload.deadline().filter(|due| *due <= until) {
                    offload.flush(due, &mut |released| model.check(due, released));
                }
                (now, model.poll) = (until, until);
            }
            Step::Evict => {
                offload.evict(now);
            }
        }
    }
    offload.flush(now, &mut |released| model.check(now, released));
    let mut left = 0;
    offload.drain(&mut |released| {
        left += released.packets.len();
        released.packets.iter().for_each(|number| model.came_up[*number] = true);
    });
    assert!(model.came_up.iter().all(|came| *came) && offload.deadline().is_none());
    assert_eq!(offload.counters().packets as usize, model.given.len());
    assert!(left <= model.given.len());
});
