//! Rings and cores by number.

use super::*;

fn host(rings: u16, cores: u16) -> Host {
    let receive = Some(receive(rings, Some(cores)));
    Host::new(HostConfig {
        nic: nic(true),
        limit: None,
        receive,
        virtual_switch: None,
        ordering: None,
    })
}

/// Sixteen flows send a packet at once; when the last of them went up, and what each core has done.
fn sixteen_flows(rings: u16, cores: u16) -> (Time, Vec<CoreCounts>) {
    let (mut host, mut world, mut connection) =
        (host(rings, cores), World::default(), Connection::default());
    for flow in 0..16 {
        let id = world.packets.insert(Packet { flow, ..data(0) });
        host.on_arrival(us(1), id, &mut world);
    }
    let (mut up, mut last) = (0, Time::ZERO);
    while let Some(((at, _), call)) = world.calls.pop_first() {
        match call {
            Call::Poll(ring) => host.on_poll(at, ring, &mut world),
            Call::Held(ring) => host.on_held(at, ring, &mut world),
            Call::Worked(core) => host.on_worked(core),
            other => panic!("{other:?}"),
        }
        while let Some(id) = host.hand_up(at, &mut connection, &mut world) {
            world.packets.remove(id);
            (up, last) = (up + 1, at);
        }
    }
    assert_eq!((up, world.packets.live(), host.kept()), (16, 0, 0));
    (last, host.receive().unwrap().cores(Time::from_ms(1)).collect())
}

#[test]
fn flows_are_spread_over_rings_and_rings_over_cores() {
    let (one, counts) = sixteen_flows(1, 1);
    assert_eq!((counts.len(), counts[0].packets, counts[0].polls), (1, 16, 1));
    let (shared, counts) = sixteen_flows(4, 1);
    assert_eq!((counts.len(), counts[0].packets, counts[0].polls), (1, 16, 4));
    assert_eq!(one, shared, "one core has as much to do, whatever the rings");
    let (spread, counts) = sixteen_flows(4, 2);
    assert_eq!(counts.iter().map(|core| core.packets).sum::<u64>(), 16);
    assert!(counts.iter().all(|core| core.packets > 0 && core.polls == 2));
    assert!(spread < one, "{spread:?} and {one:?}");
}

/// A ring that is full drops what comes, and no other's.
#[test]
fn a_ring_has_its_own_bound() {
    let mut config = receive(1, Some(1));
    config.cores = Some((1, ReceiveCpuParams { ring: 2, ..ReceiveCpuParams::default() }));
    let mut host = Host::new(HostConfig {
        nic: nic(true),
        limit: None,
        receive: Some(config),
        virtual_switch: None,
        ordering: None,
    });
    let mut world = World::default();
    for n in 0..3 {
        let id = world.packets.insert(data(n));
        host.on_arrival(us(1), id, &mut world);
    }
    assert_eq!((world.arrived, host.kept()), (2, 2));
    assert_eq!(world.dropped, [(1, DropReason::ReceiveRing)]);
}

/// The polls of a host whose interrupts are 10 us apart, and what waits for each, of packets that
/// arrive at these microseconds.
fn polls(arrivals: &[u64]) -> Vec<(u64, usize)> {
    let offload = OffloadParams::default();
    let receive = ReceiveConfig::new(&offload, None, Some(us(10)), Time::ZERO);
    let (nic, virtual_switch) = (nic(true), None);
    let config = HostConfig { nic, limit: None, receive, virtual_switch, ordering: None };
    let mut host = Host::new(config);
    let (mut world, mut connection) = (World::default(), Connection::default());
    let (mut found, mut next) = (Vec::new(), 0);
    loop {
        let due = world.calls.first_key_value().map(|((at, _), _)| *at);
        match arrivals.get(next).map(|at| us(*at)) {
            Some(at) if due.is_none_or(|due| at <= due) => {
                let id = world.packets.insert(data(next as u64));
                host.on_arrival(at, id, &mut world);
                next += 1;
            }
            _ => {
                let Some(((at, _), Call::Poll(ring))) = world.calls.pop_first() else { break };
                found.push((at.as_ps() / 1_000_000, host.kept()));
                host.on_poll(at, ring, &mut world);
                while let Some(id) = host.hand_up(at, &mut connection, &mut world) {
                    world.packets.remove(id);
                }
            }
        }
    }
    assert_eq!((world.packets.live(), host.kept()), (0, 0));
    found
}

#[test]
fn an_interrupt_of_an_idle_host_comes_at_once_and_the_next_a_throttle_later() {
    assert_eq!(polls(&[1, 40]), [(1, 1), (40, 1)]);
    assert_eq!(polls(&[1, 5, 6]), [(1, 1), (11, 2)], "one poll takes both");
    assert_eq!(polls(&[1, 2, 12, 21, 22]), [(1, 1), (11, 1), (21, 2), (31, 1)]);
}
