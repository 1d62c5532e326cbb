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
