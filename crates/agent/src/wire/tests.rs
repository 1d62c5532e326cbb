//! Round trips of orders and reports, and changed bytes.

use super::*;
use proptest::prelude::*;

fn order() -> impl Strategy<Value = Order> {
    let text = "[a-z0-9/_ ]{0,40}";
    prop_oneof![
        (text, text).prop_map(|(path, value)| Order::Write { path, value }),
        (any::<[u8; 4]>(), any::<u8>(), any::<u16>())
            .prop_map(|(address, prefix, mtu)| Order::Interface { address, prefix, mtu }),
        prop::collection::vec(any::<([u8; 4], [u8; 6])>(), 0..100).prop_map(Order::Neighbours),
        (any::<u32>(), any::<u32>(), any::<bool>(), any::<u32>(), text).prop_map(
            |(initial_window, rto_min, quickack, mss, congestion)| Order::Route {
                initial_window,
                rto_min,
                quickack,
                mss,
                congestion
            }
        ),
        any::<u16>().prop_map(|port| Order::Listen { port }),
        Just(Order::Prepare),
        any::<(u32, u16, [u8; 4], u16, u64, u64, bool)>().prop_map(
            |(connection, from, to, port, send, receive, calls)| Order::Open {
                connection,
                from,
                to,
                port,
                send,
                receive,
                calls
            }
        ),
        any::<(u32, [u8; 4], u16, u16, u64, u64, bool)>().prop_map(
            |(connection, peer, from, port, receive, answer, is_watched)| Order::Await {
                connection,
                peer,
                from,
                port,
                receive,
                answer,
                is_watched
            }
        ),
        any::<(u32, u64, u64, bool)>().prop_map(|(connection, send, receive, is_watched)| {
            Order::Send { connection, send, receive, is_watched }
        }),
        any::<u32>().prop_map(|connection| Order::Cease { connection }),
        any::<u32>().prop_map(|connection| Order::Close { connection }),
        prop::collection::vec(any::<u32>(), 0..300).prop_map(Order::Sample),
        Just(Order::Count),
        (any::<u16>(), text).prop_map(|(program, command)| Order::Run { program, command }),
        any::<(u16, u8)>().prop_map(|(program, signal)| Order::Signal { program, signal }),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let info = || prop::collection::vec(any::<u8>(), 0..INFO);
    prop_oneof![
        Just(Report::Hello),
        Just(Report::Ready),
        "[a-z ]{0,80}".prop_map(Report::Problem),
        any::<u32>().prop_map(|connection| Report::Opened { connection }),
        (any::<u32>(), info()).prop_map(|(connection, info)| Report::Received { connection, info }),
        (any::<u32>(), any::<u64>(), info()).prop_map(|(connection, stamp, info)| {
            Report::Acknowledged { connection, stamp, info }
        }),
        any::<(u32, u32)>().prop_map(|(connection, errno)| Report::Failed { connection, errno }),
        (any::<(u32, bool, u64, u64)>(), info()).prop_map(
            |((connection, is_server, received, unsent), info)| Report::Sampled {
                connection,
                is_server,
                received,
                unsent,
                info
            }
        ),
        Just(Report::SampleEnds),
        prop::collection::vec(("[A-Za-z]{0,20}", any::<u64>()), 0..20).prop_map(Report::Counters),
        (any::<u16>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..BODY_MAX))
            .prop_map(|(program, stream, bytes)| Report::Output { program, stream, bytes }),
        any::<(u16, u32)>().prop_map(|(program, status)| Report::Exited { program, status }),
    ]
}

proptest! {
    #[test]
    fn orders_are_read_as_they_were_written(
        orders in prop::collection::vec(order(), 0..20),
        padding in 0..20usize,
    ) {
        let mut frames = Vec::new();
        orders.iter().for_each(|order| pack(order, &mut frames));
        let mut back = Vec::<Order>::new();
        for mut frame in frames {
            frame.resize(frame.len() + padding, 0);
            let mut rest = &frame[..];
            while let Some(order) = read(&mut rest).unwrap() {
                back.push(order);
            }
        }
        prop_assert_eq!(back, orders);
    }

    #[test]
    fn reports_are_read_as_they_were_written(report in report()) {
        let bytes = bytes(&report);
        prop_assert!(bytes.len() <= FRAME_MAX);
        let mut rest = &bytes[..];
        prop_assert_eq!(read(&mut rest), Ok(Some(report)));
        prop_assert!(rest.is_empty());
        // One zero may be padding.
        for cut in 2..bytes.len() {
            prop_assert!(read::<Report>(&mut &bytes[..cut]).is_err());
        }
    }

    #[test]
    fn changed_bytes_are_refused_or_are_another_message(
        report in report(),
        (at, byte) in any::<(usize, u8)>(),
    ) {
        let mut bytes = bytes(&report);
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(Some(other)) = read::<Report>(&mut &bytes[..]) {
            let again = super::bytes(&other);
            prop_assert_eq!(read(&mut &again[..]), Ok(Some(other)));
        }
    }
}
