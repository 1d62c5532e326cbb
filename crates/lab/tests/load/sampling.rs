//! Samples of connections and of goodput.

use crate::compared::{plan, simulated};
use crate::lab::Lab;
use millpond_core::Time;
use millpond_results::ConnectionRecord;
use millpond_worlds::needs;
use std::collections::BTreeSet;

fn flows(rows: &[ConnectionRecord]) -> BTreeSet<u32> {
    rows.iter().map(|row| row.flow).collect()
}

#[test]
fn samples_are_of_the_first_connections_at_each_period() {
    let lab = needs!(Lab::new("samples", 3));
    let traffic = "[capture]\nconnections = { every = \"10ms\", max = 4 }\ngoodput = \"10ms\"\n\
                   [[traffic]]\nkind = \"rpc\"\npairs = [\"0-1\", \"0-2\", \"1-2\"]\n\
                   request = 3000\nresponse = \"200KB\"";
    let plan = plan("duration = \"305ms\"", 3, traffic);
    let (records, counts) = lab.run(&plan);
    let rows = &records.connections;
    // Requests have the numbers before their responses; the lowest ones are sampled.
    assert_eq!((flows(rows), &counts.sampled), ((0..4).collect(), &(0..4).collect()));
    assert!(rows.is_sorted_by_key(|row| (row.at, row.flow)));
    let times: BTreeSet<Time> = rows.iter().map(|row| row.at).collect();
    assert!((15..=30).contains(&times.len()) && times.iter().all(|at| *at >= Time::from_ms(10)));
    let ends = |flow| {
        let own = rows.iter().filter(move |row| row.flow == flow);
        own.map(|row| (row.src, row.dst)).collect::<BTreeSet<_>>()
    };
    assert_eq!(
        [0, 1, 2, 3].map(|flow| ends(flow).into_iter().collect::<Vec<_>>()),
        [[(0, 1)], [(1, 0)], [(0, 2)], [(2, 0)]]
    );
    // Whole exchanges are acknowledged, but for the one that is under way.
    let last = |flow| rows.iter().rfind(|row| row.flow == flow).unwrap().acked;
    let (asked, answered) = (last(0) / 3000, last(1) / 200_000);
    assert!(last(0).is_multiple_of(3000) && asked > 10, "{} {}", last(0), last(1));
    assert!((answered..=answered + 1).contains(&asked), "{asked} {answered}");
    // The last sample has at most the bytes that receivers have read in all.
    let goodput = &counts.goodput;
    assert_eq!(goodput.len(), 30);
    assert!(goodput.is_sorted() && goodput[29][0] <= counts.bytes_measured);
    assert!(goodput[29][0] > counts.bytes_measured * 8 / 10);
}

#[test]
fn requests_are_sampled_if_they_are_named_and_probes_are_not() {
    let lab = needs!(Lab::new("named", 3));
    // Probes have the numbers up to 5; a request has the one before its response.
    let traffic = |capture: &str| {
        format!(
            "[capture]\nconnections = {{ every = \"2ms\", {capture} }}\n[[traffic]]\n\
             name = \"ask\"\nkind = \"incast\"\ndegree = 2\nresponse = \"20MB\"\n\
             request = \"20MB\"\ncount = 1\nreceiver = 0\n\
             [[traffic]]\nname = \"probe\"\nkind = \"probe\"\nperiod = \"1ms\""
        )
    };
    for (capture, expected) in [
        ("max = 9", &[7, 9][..]),
        ("dst = 0", &[7, 9]),
        ("flows = [6, 7]", &[6, 7]),
        ("src = 0", &[]),
    ] {
        let plan = plan("duration = \"500ms\"", 3, &traffic(capture));
        let (records, counts) = lab.run(&plan);
        let expected: BTreeSet<u32> = expected.iter().copied().collect();
        assert_eq!(flows(&records.connections), expected, "{capture}");
        assert_eq!(counts.sampled, expected, "{capture}");
        for row in &records.connections {
            let host = if row.flow == 6 { row.src } else { row.dst };
            assert!(host == 0 && row.acked <= 20_000_000, "{row:?}");
        }
        // The simulator keeps to the same ones.
        assert_eq!(flows(&simulated(&plan).connections), expected, "{capture}");
    }
}
