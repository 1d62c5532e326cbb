//! The order of the stages, of a host on which every stage is on.

use super::Stage::{
    Core, FlowQueue, Importance as Mark, Label, Limit, LimitUp, Nic, Offload, Order, Rank, Ring,
};
use super::*;
use crate::packet::TrafficClass;

/// Data is a segment of two packets; a SYN has nothing to mark or rank.
#[test]
fn data_and_syns_leave_through_all_stages_in_order() {
    let (mut host, mut world, mut egress) = (whole(Vec::new()), World::default(), sending());
    passed();
    let leave = host.ask(us(0), &seen(2920));
    assert!(!leave.refused);
    let segment = Segment { first: packet(Body::default()), len: 2920 };
    host.send_staged(us(0), &mut egress, &Untouched, segment, Some(&leave), CUT, &mut world);
    assert_eq!(passed(), [Limit, Mark, Rank, Label, FlowQueue, Nic, Mark, Rank, Nic]);
    let sent: Vec<Packet> = world.sent.iter().map(|(id, _)| world.packets[*id]).collect();
    assert_eq!(
        sent.iter().map(|it| (it.entropy, it.rank, it.seq())).collect::<Vec<_>>(),
        [(7, 100_000, 0), (7, 98_540, 1460)]
    );
    assert!(!sent[0].has(flags::LAST) && sent[1].has(flags::LAST));
    assert!(sent.iter().all(|it| it.class.importance() == Importance::Unimportant));
    assert_eq!(world.departed, [(3, world.sent[1].1)], "the queue hears of the segment's end");

    let leave = host.ask(us(9), &seen(0));
    let segment = Segment { first: packet(SYN), len: 0 };
    host.send_staged(us(9), &mut egress, &Untouched, segment, Some(&leave), CUT, &mut world);
    assert_eq!(passed(), [Limit, Label, FlowQueue, Nic]);
}

#[test]
fn what_is_one_packet_leaves_in_the_same_order() {
    let (mut host, mut world, mut egress, mut ingress) =
        (whole(Vec::new()), World::default(), sending(), answering());
    passed();
    host.answer(us(0), packet(ACK), Some(&mut ingress), || Some(0), &mut world);
    assert_eq!(passed(), [Limit, Label, Nic], "an acknowledgement");
    let segment = Segment { first: packet(Body::default()), len: 1 };
    host.force(
        us(1),
        &mut egress,
        &Untouched,
        segment,
        Importance::Forced,
        || Some(0),
        CUT,
        &mut world,
    );
    assert_eq!(passed(), [Limit, Mark, Rank, Label, Nic], "what is forced out");
    host.put(us(2), packet(SYN_ACK), || Some(0), &mut world);
    assert_eq!(passed(), [Limit, Nic], "the answer to a handshake");
    assert_eq!((world.injected, world.sent.len()), (3, 3));
}

/// A packet that a limit refuses has been stamped by nothing, and was never there.
#[test]
fn a_refusal_comes_before_any_stamp() {
    let mut host = whole(Vec::new());
    host.limit = Some(Box::new(Limiter::new(limits(1, Vec::new()))));
    let (mut world, mut egress, mut ingress) = (World::default(), sending(), answering());
    let full = Seen { in_flight: 9, ..seen(60_000) };
    assert!((0..9).any(|_| host.ask(us(0), &full).refused));
    while !host.ask(us(0), &Seen { in_flight: 9, ..seen(0) }).refused {}
    passed();
    host.answer(us(1), packet(ACK), Some(&mut ingress), || Some(0), &mut world);
    let segment = Segment { first: packet(Body::default()), len: 1000 };
    let leave = host.force(
        us(1),
        &mut egress,
        &Untouched,
        segment,
        Importance::Forced,
        || Some(0),
        CUT,
        &mut world,
    );
    assert!(leave.refused, "the connection's marker needs to know");
    host.put(us(1), packet(SYN_ACK), || Some(0), &mut world);
    assert_eq!(passed(), [Limit, Limit, Limit]);
    assert_eq!((world.injected, world.packets.live()), (0, 0));
}

/// A segment that has a departure time waits for it, cut and stamped.
#[test]
fn what_is_held_has_passed_all_stages_but_the_nic() {
    let (mut host, mut world, mut egress) = (whole(vec![htb()]), World::default(), sending());
    let mut released = Vec::new();
    for n in 0..2 {
        passed();
        let leave = host.ask(us(0), &seen(1460));
        assert_eq!(leave.at > us(0), n == 1, "the first has nothing before it");
        let segment = Segment { first: data(n), len: 1460 };
        host.send_staged(us(0), &mut egress, &Untouched, segment, Some(&leave), CUT, &mut world);
        released.push(leave.at);
    }
    assert_eq!(passed(), [Limit, Mark, Rank, Label, FlowQueue]);
    assert_eq!((host.queued().len(), world.sent.len()), (1, 1));
    let (&(at, _), &call) = world.calls.first_key_value().unwrap();
    assert_eq!((at, call), (released[1], Call::Release(0)));
    host.on_release(at, 0, &mut world);
    assert_eq!(passed(), [Nic]);
    assert_eq!((host.queued().len(), world.sent.len(), world.departed.len()), (0, 2, 2));
}

/// Makes the calls up to `until`, and hands up what comes of them; what went up, as offsets.
fn drive(host: &mut Host, world: &mut World, connection: &mut Connection, until: Time) -> Vec<u64> {
    let mut up = Vec::new();
    while let Some(entry) = world.calls.first_entry().filter(|entry| entry.key().0 <= until) {
        let ((at, _), call) = entry.remove_entry();
        match call {
            Call::Poll(ring) => host.on_poll(at, ring, world),
            Call::Held(ring) => host.on_held(at, ring, world),
            Call::Worked(core) => host.on_worked(core),
            Call::Order(flow) => host.on_order(at, flow, connection, world),
            other => panic!("{other:?}"),
        }
        while let Some(id) = host.hand_up(at, connection, world) {
            let packet = world.packets[id];
            world.packets.remove(id);
            up.push(packet.seq());
            if packet.seq() <= connection.next {
                connection.next = connection.next.max(packet.seq() + u64::from(packet.payload));
            }
        }
    }
    up
}

fn arrive(
    host: &mut Host,
    world: &mut World,
    connection: &mut Connection,
    at: Time,
    packet: Packet,
) -> Vec<u64> {
    let mut up = drive(host, world, connection, at);
    let id = world.packets.insert(packet);
    host.on_arrival(at, id, world);
    assert_eq!(host.hand_up(at, connection, world), None, "it waits for a poll");
    up.extend(drive(host, world, connection, at));
    up
}

#[test]
fn all_kinds_arrive_through_all_stages_in_order() {
    let kinds = [
        (data(0), vec![Ring, Core, Offload, Order, LimitUp]),
        (
            Packet { class: Importance::Forced.into(), ..data(0) },
            vec![Ring, Core, Offload, Order, LimitUp],
        ),
        (packet(ACK), vec![Ring, Core, Offload, LimitUp]),
        (packet(SYN), vec![Ring, Core, Offload, LimitUp]),
        (packet(SYN_ACK), vec![Ring, Core, Offload, LimitUp]),
    ];
    for (packet, stages) in kinds {
        let (mut host, mut world, mut connection) =
            (whole(Vec::new()), World::default(), Connection::default());
        passed();
        assert!(arrive(&mut host, &mut world, &mut connection, us(1), packet).is_empty());
        assert_eq!(drive(&mut host, &mut world, &mut connection, us(99)), [packet.seq()]);
        assert_eq!(passed(), stages, "{packet:?}");
        assert_eq!((world.arrived, world.packets.live(), host.kept()), (1, 0, 0));
    }
}

/// Two segments of one poll: the second is in order because the first was handed up before.
#[test]
fn the_endpoint_sees_one_segment_before_the_next_is_ordered() {
    let (mut host, mut world, mut connection) =
        (whole(Vec::new()), World::default(), Connection::default());
    for n in [0, 1] {
        // Different priorities do not merge.
        let packet = Packet { class: TrafficClass::default().with_priority(n as u8), ..data(n) };
        arrive(&mut host, &mut world, &mut connection, us(1), packet);
    }
    assert_eq!(drive(&mut host, &mut world, &mut connection, us(60)), [0, 1460]);
    assert!(connection.ingress.is_none(), "no buffer was needed");
}

/// An early segment waits behind the offload, and its limit is asked when it is let through.
#[test]
fn what_is_early_is_held_between_offload_and_limit() {
    let (mut host, mut world, mut connection) =
        (whole(Vec::new()), World::default(), Connection::default());
    passed();
    arrive(&mut host, &mut world, &mut connection, us(1), data(1));
    assert!(drive(&mut host, &mut world, &mut connection, us(60)).is_empty());
    assert_eq!(passed(), [Ring, Core, Offload, Order]);
    assert_eq!(connection.ingress.as_ref().unwrap().kept(), 1);
    assert_eq!(drive(&mut host, &mut world, &mut connection, us(300)), [1460], "its time is over");
    assert_eq!(passed(), [LimitUp]);
    // Nothing is held any more when its connection ends with something early.
    arrive(&mut host, &mut world, &mut connection, us(400), data(5));
    drive(&mut host, &mut world, &mut connection, us(450));
    connection.ingress.as_mut().unwrap().close(3, &mut world);
    assert_eq!((world.packets.live(), world.calls.len()), (0, 0));
}

/// The limit sees a merged segment as one, charges all of its packets, and a drop loses them all.
#[test]
fn a_limit_decides_on_what_receive_offload_has_merged() {
    let mut host = Host::new(HostConfig {
        nic: nic(true),
        limit: Some(limits(1, Vec::new())),
        receive: Some(receive(1, None)),
        virtual_switch: None,
        ordering: None,
    });
    let (mut world, mut connection) = (World::default(), Connection::default());
    let mut up = Vec::new();
    for burst in 0..20 {
        for n in 0..5 {
            let at = us(1 + 100 * burst);
            up.extend(arrive(&mut host, &mut world, &mut connection, at, data(5 * burst + n)));
        }
    }
    up.extend(drive(&mut host, &mut world, &mut connection, us(9_000)));
    let counts = host.limiter().unwrap().counts();
    let ingress = counts.iter().find(|(_, ingress, _)| *ingress).unwrap().2;
    assert_eq!(ingress.packets, 20, "segments");
    assert_eq!(ingress.bytes, 20 * 5 * (1500 + 14), "with the headers of each packet");
    assert!(ingress.dropped > 0 && !up.is_empty());
    assert_eq!(up.len() as u64 + ingress.dropped, 20);
    assert!(world.dropped.iter().all(|it| *it == (5, DropReason::Limit)), "{:?}", world.dropped);
    assert_eq!((world.arrived, world.packets.live()), (100, 0));
}
