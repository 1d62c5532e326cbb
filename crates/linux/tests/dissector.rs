//! `packaging/wireshark/millpond.lua` reads what switches write. Needs tshark.

use millpond_core::Time;
use millpond_core::overlay::{FlowKey, Record, Target, Word, wire};
use millpond_linux::encapsulation::Encapsulation;
use millpond_linux::tunnel::probe::Padded;
use millpond_linux::tunnel::secret::Secrets;
use millpond_linux::tunnel::{Probe, Session};
use millpond_worlds::needs;
use std::process::Command;

/// A capture of IPv4 packets, of one datagram each.
fn capture(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    // Magic, version 2.4, zone, accuracy, length of packets, LINKTYPE_RAW.
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    for datagram in datagrams {
        let length = 28 + datagram.len() as u32;
        for word in [0, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        let [high, low] = (length as u16).to_be_bytes();
        file.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let [high, low] = (length as u16 - 20).to_be_bytes();
        file.extend([0xca, 0xfe, 0xca, 0xfe, high, low, 0, 0]);
        file.extend(datagram);
    }
    file
}

/// An Ethernet frame with an ARP request.
fn arp() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 8, 6]);
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    frame.extend([10, 0, 0, 2]);
    frame
}

fn datagrams() -> Vec<Vec<u8>> {
    let stamp = Encapsulation { label: 3, flowcell: 77, partial: true };
    let secrets = Secrets::parse("a secret of sixteen bytes or more\n").unwrap();
    let probe = Probe {
        label: 2,
        from: [1; 16],
        to: [2; 16],
        sent: Time::from_us(7),
        newest: Some(Time::from_us(5)),
        waited: Time::from_us(1),
        padded: Some(Padded { sent: Time::from_us(3), length: 1400 }),
        length: 1400,
    };
    let mut session = Session::new(secrets.clone(), [1; 16]);
    session.greeted([2; 16], [1; 16]);
    let mut sealed = Vec::new();
    assert!(session.seal(&stamp, [&arp(), &[]], &mut sealed));
    let (source, destination) = (0xffff_0a00_0001, 0xffff_0a00_0002);
    let flow =
        FlowKey { source, destination, source_port: 4242, destination_port: 80, protocol: 6 };
    let record = |word, target| Record { word, target, seq: 9, queued: 1500, rate: 0, ttl: 250 };
    let records = [record(Word::Pause, Target::Flow(flow)), record(Word::Grant, Target::Peer)];
    let head = wire::Head { from: 0xa, to: 0xb, epoch: 5, to_epoch: 6, number: 12 };
    let key = wire::Key::new(b"sixteen bytes and more").unwrap();
    vec![
        [&stamp.write()[..], &arp()].concat(),
        probe.write(Some(&secrets)),
        sealed,
        wire::encode(&head, &records, &key),
        wire::encode(&head, &[], &key),
        // Somebody else's.
        b"\x6d\x40 is no datagram of ours".to_vec(),
    ]
}

fn tshark(datagrams: &[Vec<u8>], args: &[&str]) -> Result<String, String> {
    let name = format!("millpond-dissector-{}-{}", std::process::id(), datagrams.len());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let file = folder.join("datagrams.pcap");
    std::fs::write(&file, capture(datagrams)).map_err(|e| e.to_string())?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/wireshark/millpond.lua");
    let mut command = Command::new("tshark");
    command.args(["-X", &format!("lua_script:{script}"), "-r"]).arg(&file).args(args);
    let output = command.output().map_err(|e| format!("tshark (apt-get install tshark): {e}"));
    std::fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
    let output = output?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn wireshark_reads_what_switches_write() {
    let fields = [
        "millpond.version",
        "millpond.label",
        "millpond.flowcell",
        "millpond.probe.padded_length",
        "millpond.number",
        "millpond.overlay.word",
        "millpond.overlay.destination_port",
        "arp.dst.proto_ipv4",
    ];
    let mut args = vec!["-T", "fields", "-E", "separator=;"];
    fields.iter().for_each(|field| args.extend(["-e", field]));
    let text = needs!(tshark(&datagrams(), &args));
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(
        rows,
        [
            "1;3;77;;;;;10.0.0.2",
            "2;2;;1400;;;;",
            "3;3;77;;0;;;",
            ";;;;12;1,5;80,0;",
            ";;;;12;;;",
            ";;;;;;;",
        ]
    );
    let bad = ["-Y", "_ws.malformed || _ws.lua.error"];
    assert_eq!(needs!(tshark(&datagrams(), &bad)), "");
}

/// Whatever the bytes, the script neither fails nor finds more than there is.
#[test]
fn cut_datagrams_are_left_alone() {
    let cut = datagrams().into_iter().flat_map(|it| {
        let lengths = (0..it.len()).step_by(7);
        lengths.map(move |length| it[..length].to_vec()).collect::<Vec<_>>()
    });
    let all: Vec<Vec<u8>> = cut.collect();
    let bad = ["-Y", "_ws.lua.error || (millpond && _ws.malformed && !arp)"];
    assert_eq!(needs!(tshark(&all, &bad)), "");
}
