//! Both ends in one process: what is sent arrives, whatever else happens; what is written to the
//! memory by somebody who means harm leads nowhere.

use crate::attached::Attached;
use crate::host::{Host, Next};
use crate::layout::{Descriptor, Layout, Sizes};
use crate::memory::Memory;
use crate::{Frame, Unsent};
use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

const SMALL: Sizes = Sizes { flows: 3, places: 4, buffers: 8, buffer_bytes: 64 };

/// Both ends; a mapping of whoever would write to it; the socket's other end.
fn pair(sizes: Sizes) -> (Host, Attached, Arc<Memory>, OwnedFd) {
    let (host, parts) = Host::new(sizes).unwrap();
    let memory = Memory::map(&parts.memory, Layout::of(sizes).bytes).unwrap();
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    (host, Attached::new(ours, sizes, parts).unwrap(), memory, theirs)
}

/// Takes what there is; flows and buffers of it.
fn take(host: &mut Host) -> Vec<(u32, u32, Vec<u8>)> {
    let (mut room, mut all) = ([0; 4096], Vec::new());
    loop {
        match host.next(&mut room).unwrap() {
            Next::Frame { flow, buffer, length } => {
                host.taken(buffer);
                all.push((flow, buffer, room[..length].to_vec()));
            }
            Next::Nothing => break,
            Next::Again => {}
            Next::Bad => panic!("a bad descriptor"),
        }
    }
    host.flush();
    all
}

#[test]
fn frames_go_both_ways_and_buffers_come_back() {
    let (mut host, mut app, ..) = pair(SMALL);
    assert_eq!(app.send(3, &[0]), Err(Unsent::NoSuchFlow));
    assert_eq!(app.send(0, &[0; 65]), Err(Unsent::TooLong));
    for round in 0..100u8 {
        assert_eq!(app.credits(1), 4);
        app.send(1, &[round; 64]).unwrap();
        app.send(2, &[round, 7]).unwrap();
        let taken = take(&mut host);
        assert_eq!(
            (taken.len(), &taken[0].2[..], &taken[1].2[..]),
            (2, &[round; 64][..], &[round, 7][..])
        );
        assert_eq!(app.in_flight(), 2);
        taken.iter().for_each(|(_, buffer, _)| host.finish(*buffer));
        host.flush();
        assert_eq!(app.in_flight(), 0);

        assert!(host.deliver(&[IoSlice::new(&[round]), IoSlice::new(&[1, 2, 3])], 9));
        let mut frames = vec![Frame::default(); 4];
        assert_eq!(app.receive(&mut frames), 0, "not shown yet");
        host.flush();
        assert_eq!(
            (app.receive(&mut frames), frames[0].bytes(), frames[0].tag()),
            (1, &[round, 1, 2, 3][..], 9)
        );
    }
}

#[test]
fn frames_that_are_sent_together_arrive_as_those_that_are_not() {
    let (mut host, mut app, ..) = pair(Sizes { buffers: 64, ..SMALL });
    let frames: Vec<[u8; 2]> = (0..6).map(|n| [n, 9]).collect();
    let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
    assert_eq!(app.send_all(1, &[&[0; 65], &[1]]), Err(Unsent::TooLong));
    assert_eq!(app.send_all(1, &frames), Ok(4), "the ring has four places");
    assert_eq!(app.send_all(1, &frames), Err(Unsent::WouldBlock));
    assert_eq!(app.send_all(1, &[]), Ok(0));
    let numbers: Vec<u8> = take(&mut host).iter().map(|(_, _, bytes)| bytes[0]).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert_eq!(app.send_all(1, &[&[7], &[0; 65], &[8]]), Ok(1), "up to one that is too long");
    assert_eq!(take(&mut host).len(), 1);
}

/// An application that does not read gets no more than it has buffers; they come back when it does.
#[test]
fn what_is_not_read_waits_with_the_switch() {
    let (mut host, mut app, ..) = pair(SMALL);
    let frame = [IoSlice::new(&[5; 10])];
    assert_eq!((0..20).filter(|_| host.deliver(&frame, 0)).count(), 8);
    host.flush();
    let mut frames = vec![Frame::default(); 3];
    assert_eq!((app.receive(&mut frames), host.has_room()), (3, false));
    assert!(take(&mut host).is_empty() && host.has_room());
    assert_eq!((0..20).filter(|_| host.deliver(&frame, 0)).count(), 3);
}

/// A flow that is paused has at most half of the buffers; another one sends as ever.
#[test]
fn a_paused_flow_blocks_no_other() {
    let sizes = Sizes { places: 64, buffers: 64, ..SMALL };
    let (mut host, mut app, ..) = pair(sizes);
    host.pause(0);
    assert!(app.is_paused(0) && !app.is_paused(1));
    let sent = (0..100).filter(|_| app.send(0, &[0; 20]).is_ok()).count();
    assert_eq!((sent, app.credits(0)), (32, 0));
    for round in 0..100u8 {
        (0..8).for_each(|_| app.send(1, &[round]).unwrap());
        let taken = take(&mut host);
        assert!(taken.len() == 8 && taken.iter().all(|(flow, ..)| *flow == 1));
        taken.iter().for_each(|(_, buffer, _)| host.finish(*buffer));
        host.flush();
    }
    host.resume(0);
    assert!(!app.is_paused(0) && take(&mut host).len() == 32);
}

/// Each end sleeps only when there is nothing, and is woken by what comes.
#[test]
fn who_sleeps_is_woken() {
    let ready = |fd: std::os::fd::BorrowedFd<'_>| {
        let fds = &mut [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        rustix::event::poll(fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap()
            == 1
    };
    let (mut host, mut app, ..) = pair(SMALL);
    for _ in 0..3 {
        assert!(host.may_sleep() && !ready(host.fd()));
        app.send(0, &[1]).unwrap();
        assert!(ready(host.fd()) && !host.may_sleep());
        host.clear();
        host.awake();
        let (_, buffer, _) = take(&mut host).remove(0);
        assert!(app.arm_writable() && app.arm_readable());
        host.finish(buffer);
        host.flush();
        assert!(ready(app.writable().fd()) && !ready(app.readable().fd()) && !app.arm_writable());
        assert!(app.arm_writable() && !ready(app.writable().fd()));
        host.deliver(&[IoSlice::new(&[1])], 0);
        host.flush();
        assert!(ready(app.readable().fd()) && !app.arm_readable());
        assert_eq!(app.receive(&mut [Frame::default()]), 1);
        assert!(app.arm_readable() && !ready(app.readable().fd()));
        assert!(take(&mut host).is_empty());
        app.receive(&mut []);
    }
}

/// A producer and a consumer on threads, with sleep: everything arrives in order.
#[test]
fn nothing_is_lost_between_threads() {
    const EACH: u64 = 30_000;
    let sizes = Sizes { flows: 8, places: 16, buffers: 128, buffer_bytes: 64 };
    let (mut host, mut app, ..) = pair(sizes);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut sent, start) = ([0u64; 8], Instant::now());
            while sent.iter().sum::<u64>() < 8 * EACH {
                for (flow, sent) in (0..).zip(&mut sent) {
                    while *sent < EACH && app.send(flow, &sent.to_le_bytes()).is_ok() {
                        *sent += 1;
                    }
                }
                assert!(start.elapsed() < Duration::from_secs(60), "it stands still: {sent:?}");
                std::thread::yield_now();
            }
        });
        let (mut next, mut room) = ([0u64; 8], [0; 64]);
        while next.iter().sum::<u64>() < 8 * EACH {
            match host.next(&mut room).unwrap() {
                Next::Frame { flow, buffer, length } => {
                    assert_eq!(room[..length], next[flow as usize].to_le_bytes());
                    next[flow as usize] += 1;
                    host.taken(buffer);
                    host.finish(buffer);
                    if next[flow as usize].is_multiple_of(1000) {
                        host.pause(flow);
                        host.resume(flow);
                    }
                }
                Next::Nothing => {
                    host.flush();
                    if host.may_sleep() {
                        let fds = &mut [rustix::event::PollFd::from_borrowed_fd(
                            host.fd(),
                            rustix::event::PollFlags::IN,
                        )];
                        rustix::event::poll(
                            fds,
                            Some(&rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 }),
                        )
                        .unwrap();
                        assert!(!fds[0].revents().is_empty(), "it is not woken");
                        host.clear();
                        host.awake();
                    }
                }
                Next::Again | Next::Bad => unreachable!(),
            }
        }
    });
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Take,
    Keep,
    Finish,
    Pause(u32),
    Resume(u32),
    Deliver,
    Receive,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3u32).prop_map(Step::Send),
        4 => Just(Step::Take),
        1 => Just(Step::Keep),
        3 => Just(Step::Finish),
        1 => (0..3u32).prop_map(Step::Pause),
        2 => (0..3u32).prop_map(Step::Resume),
        2 => Just(Step::Deliver),
        1 => Just(Step::Receive),
    ];
    proptest::collection::vec(step, 0..300)
}

proptest! {
    /// Any order of calls does what queues of a flow each do, with nothing lost, doubled or stuck.
    #[test]
    fn any_calls_do_what_queues_do(steps in steps()) {
        let (mut host, mut app, ..) = pair(SMALL);
        let mut waiting: [VecDeque<u8>; 3] = Default::default();
        let (mut paused, mut posted, mut number) = ([false; 3], VecDeque::new(), 0u8);
        let (mut delivered, mut lent) = (VecDeque::new(), 0);
        let mut room = [0; 64];
        for step in steps {
            number = number.wrapping_add(1);
            match step {
                Step::Send(flow) => {
                    let credits = app.credits(flow);
                    let sent = app.send(flow, &[flow as u8, number]);
                    prop_assert_eq!(sent.is_ok(), credits > 0);
                    if sent.is_ok() {
                        waiting[flow as usize].push_back(number);
                    }
                }
                Step::Take => match host.next(&mut room).unwrap() {
                    Next::Frame { flow, buffer, length } => {
                        prop_assert!(
                            !paused[flow as usize] && length == 2 && room[0] == flow as u8
                        );
                        prop_assert_eq!(waiting[flow as usize].pop_front(), Some(room[1]));
                        host.taken(buffer);
                        posted.push_back(buffer);
                    }
                    Next::Nothing => {
                        let stuck = (0..3).any(|flow| !paused[flow] && !waiting[flow].is_empty());
                        prop_assert!(!stuck);
                    }
                    other => prop_assert!(false, "{:?}", other),
                },
                Step::Keep => {
                    if let Next::Frame { flow, .. } = host.next(&mut room).unwrap() {
                        host.pause(flow);
                        host.kept();
                        paused[flow as usize] = true;
                    }
                }
                Step::Finish => {
                    posted.pop_front().into_iter().for_each(|buffer| host.finish(buffer));
                    host.flush();
                    let there: usize = waiting.iter().map(VecDeque::len).sum();
                    prop_assert_eq!(app.in_flight(), posted.len() + there);
                }
                Step::Pause(flow) => {
                    host.pause(flow);
                    paused[flow as usize] = true;
                }
                Step::Resume(flow) => {
                    host.resume(flow);
                    paused[flow as usize] = false;
                }
                Step::Deliver => {
                    if host.deliver(&[IoSlice::new(&[number])], 0) {
                        delivered.push_back(number);
                        lent += 1;
                        prop_assert!(lent <= 8);
                    }
                    host.flush();
                }
                Step::Receive => {
                    let mut frames = vec![Frame::default(); 3];
                    let count = app.receive(&mut frames);
                    prop_assert_eq!(count, delivered.len().min(3));
                    for frame in &frames[..count] {
                        prop_assert_eq!(frame.bytes(), &[delivered.pop_front().unwrap()]);
                    }
                    lent -= count;
                }
            }
        }
        // At the end everything that may go on does.
        (0..3).for_each(|flow| host.resume(flow));
        for (flow, _, bytes) in take(&mut host) {
            prop_assert_eq!(waiting[flow as usize].pop_front(), Some(bytes[1]));
        }
        prop_assert!(waiting.iter().all(VecDeque::is_empty) && host.paused() == 0);
    }

    /// Words that anybody writes anywhere: the switch's calls end, and give frames of buffers that
    /// there are and that it has not got, or an error. Its loans stay within what it has.
    #[test]
    fn whoever_writes_to_the_memory_harms_himself(
        writes in proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<u32>(), 0..3u8, 0..6u8),
            1..400,
        ),
    ) {
        let (mut host, mut app, memory, _socket) = pair(SMALL);
        let words = memory.words(0, Layout::of(SMALL).bytes / 4 / 8);
        let mut room = [0; 64];
        let mut posted = Vec::new();
        for (at, value, how, what) in writes {
            let value = [value, value % 16, 0][usize::from(how)];
            words.as_ref()[at.index(words.as_ref().len())].store(value, SeqCst);
            match what {
                0 | 1 => match host.next(&mut room) {
                    Ok(Next::Frame { flow, buffer, length }) => {
                        prop_assert!(
                            flow < 3 && buffer < 8 && length <= 64 && !posted.contains(&buffer)
                        );
                        host.taken(buffer);
                        posted.push(buffer);
                    }
                    Ok(_) => {}
                    Err(_) => break,
                },
                2 => posted.pop().into_iter().for_each(|buffer| host.finish(buffer)),
                3 => drop(host.deliver(&[IoSlice::new(&room[..10])], 1)),
                4 if value % 2 == 0 => host.pause(value % 3),
                4 => host.resume(value % 3),
                _ => drop(app.send(value % 3, &room[..(value % 64) as usize])),
            }
            host.flush();
            host.may_sleep();
        }
        let lent =
            std::iter::from_fn(|| host.deliver(&[IoSlice::new(&[1])], 0).then_some(())).count();
        prop_assert!(lent <= 8);
    }
}

/// Lets the host look at everything that rings; frames that it found.
fn take_all(host: &mut Host) -> usize {
    let mut room = [0; 64];
    (0..100).filter(|_| matches!(host.next(&mut room), Ok(Next::Frame { .. }))).count()
}

/// Descriptors and counts that a driver would trip over, each by itself.
#[test]
fn each_bad_word_has_its_answer() {
    let l = Layout::of(SMALL);
    let post = |word: u64, tail: u64| {
        let (mut host, mut app, memory, _socket) = pair(SMALL);
        app.send(0, &[1]).unwrap();
        let ring = l.transmit(&memory, 0);
        ring.as_ref()[16].store(word, SeqCst);
        ring.as_ref()[0].store(tail, SeqCst);
        let mut room = [0; 64];
        host.next(&mut room)
    };
    let word = |buffer, length| Descriptor { buffer, length, tag: 0 }.word();
    assert_eq!(post(word(7, 64), 1), Ok(Next::Frame { flow: 0, buffer: 7, length: 64 }));
    assert_eq!(post(word(8, 1), 1), Ok(Next::Bad));
    assert_eq!(post(word(u32::MAX, 1), 1), Ok(Next::Bad));
    assert_eq!(post(word(0, 65), 1), Ok(Next::Bad));
    assert!(post(word(0, 1), 5).is_err() && post(word(0, 1), u64::MAX).is_err());
    // A buffer that the switch has is not taken twice.
    let (mut host, mut app, memory, _socket) = pair(SMALL);
    app.send(0, &[1]).unwrap();
    app.send(0, &[2]).unwrap();
    let ring = l.transmit(&memory, 0);
    let first = ring.as_ref()[16].load(SeqCst);
    ring.as_ref()[17].store(first, SeqCst);
    let mut room = [0; 64];
    let Ok(Next::Frame { buffer, .. }) = host.next(&mut room) else { panic!("a frame") };
    host.taken(buffer);
    assert_eq!(host.next(&mut room), Ok(Next::Bad));
    // A receive buffer that was not lent is not taken back, nor one twice.
    assert!(host.deliver(&[IoSlice::new(&[1])], 0));
    host.flush();
    assert_eq!(app.receive(&mut [Frame::default()]), 1);
    let lent: u64 = Descriptor::of(l.received(&memory).as_ref()[16].load(SeqCst)).buffer.into();
    let returned = l.returned(&memory);
    let words = [lent, lent, 99, (lent + 1) % 8].into_iter().enumerate();
    words.for_each(|(i, n)| returned.as_ref()[16 + i].store(n, SeqCst));
    returned.as_ref()[0].store(4, SeqCst);
    assert_eq!(take_all(&mut host), 0);
    let delivered = (0..20).filter(|_| host.deliver(&[IoSlice::new(&[1])], 0)).count();
    assert_eq!(delivered, 8);
}
