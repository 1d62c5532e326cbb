//! The state that an earlier version had pinned, as a file of `tests/state`: a line a map with its
//! definition, and below it a line an entry: key and value in hexadecimal, without the zeros at a
//! value's end.
//!
//! A file is written by the tests' helper, for a bpf file system whose limits that version has
//! applied: `target/debug/millpond-linux-helper dump BPFFS`.
//!
//! Invariant: what is put back differs from the file in what no two machines share: the cgroup's id
//! and its name's number, and times, which are as long ago as they were.

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use millpond_linux::limit::layout::NAME_MAX;
use millpond_linux::limit::store::{MAPS, folder, links, map_path};
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where values hold times of the kernel's clock: a queue's last packet, a scope's first and last.
const TIMES: [(&str, &[usize]); 2] = [("queues", &[8]), ("counts", &[200, 208])];
/// The end of the name of the file's cgroup; that of a test has its process's number.
const NUMBER: &str = "-over-0000000";

fn now() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn open(bpffs: &Path, name: &str) -> MapHandle {
    MapHandle::from_pinned_path(map_path(&folder(bpffs), name)).unwrap()
}

/// Type, sizes of key and value, entries, flags.
fn definition(map: &MapHandle) -> String {
    let flags = map.info().unwrap().info.map_flags;
    format!(
        "{:?} {} {} {} {flags}",
        map.map_type(),
        map.key_size(),
        map.value_size(),
        map.max_entries()
    )
}

/// A map's entries; those of one CPU each, where it has them by CPU.
fn entries(name: &str, map: &MapHandle) -> Vec<(Vec<u8>, usize, Vec<u8>)> {
    let flags = if name == "queues" { MapFlags::LOCK } else { MapFlags::ANY };
    let of = |key: Vec<u8>| -> Vec<_> {
        let values = match map.map_type() {
            MapType::RingBuf => Vec::new(),
            MapType::PercpuArray => map.lookup_percpu(&key, MapFlags::ANY).unwrap().unwrap(),
            _ => vec![map.lookup(&key, flags).unwrap().unwrap()],
        };
        values.into_iter().enumerate().map(|(cpu, value)| (key.clone(), cpu, value)).collect()
    };
    let mut all: Vec<_> =
        map.keys().flat_map(of).filter(|(_, _, value)| value.iter().any(|b| *b != 0)).collect();
    all.sort();
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

/// The pinned state, as a file.
pub fn dump(bpffs: &Path) -> String {
    let mut out = format!("clock {}\n", now());
    for (cgroup, direction) in links(&folder(bpffs)) {
        writeln!(out, "link {cgroup} {direction}").unwrap();
    }
    for name in MAPS {
        let map = open(bpffs, name);
        writeln!(out, "map {name} {}", definition(&map)).unwrap();
        for (key, cpu, value) in entries(name, &map) {
            let end = value.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
            writeln!(out, "{} {cpu} {}", hex(&key), hex(&value[..end])).unwrap();
        }
    }
    out
}

/// One that stands in the place of another, wherever that occurs.
fn replace(value: &mut [u8], old: &[u8], new: &[u8]) {
    for at in 0..value.len().saturating_sub(old.len() - 1) {
        if value[at..].starts_with(old) {
            value[at..at + old.len()].copy_from_slice(new);
        }
    }
}

/// Text of the file, with this test's cgroup.
pub fn renamed(text: &str) -> String {
    text.replace(NUMBER, &format!("-over-{:07}", std::process::id()))
}

/// Writes a file's entries into maps that limits of the same cgroup and directions were applied to,
/// which must be defined as the file's are.
pub fn put_back(bpffs: &Path, own: &Path, file: &str) {
    let mut lines = file.lines().filter(|line| !line.starts_with('#')).peekable();
    let clock: u64 = lines.next().unwrap().strip_prefix("clock ").unwrap().parse().unwrap();
    let later = now().wrapping_sub(clock);
    let mut cgroup = 0u64;
    while let Some(link) = lines.next_if(|line| line.starts_with("link ")) {
        cgroup = link.split(' ').nth(1).unwrap().parse().unwrap();
    }
    let ids = [cgroup, own.metadata().unwrap().ino()].map(u64::to_ne_bytes);
    while let Some(head) = lines.next() {
        let (name, defined) = head.strip_prefix("map ").unwrap().split_once(' ').unwrap();
        let map = open(bpffs, name);
        assert_eq!(definition(&map), defined, "another layout of {name} has another number");
        if map.map_type() == MapType::Hash {
            map.keys().collect::<Vec<_>>().iter().for_each(|key| map.delete(key).unwrap());
        }
        while let Some(entry) = lines.next_if(|line| !line.starts_with("map ")) {
            let [key, cpu, value] = entry.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let (mut key, mut value) = (bytes(key), bytes(value));
            value.resize(map.value_size() as usize, 0);
            match name {
                "attachments" | "attached" => replace(&mut key, &ids[0], &ids[1]),
                "labels" => replace(&mut value[NAME_MAX + 1..], &ids[0], &ids[1]),
                "texts" => replace(&mut value, NUMBER.as_bytes(), renamed(NUMBER).as_bytes()),
                _ => {}
            }
            for at in TIMES.iter().filter(|(of, _)| *of == name).flat_map(|(_, at)| *at) {
                let time: &mut [u8; 8] = (&mut value[*at..*at + 8]).try_into().unwrap();
                *time = u64::from_ne_bytes(*time).wrapping_add(later).to_ne_bytes();
            }
            put(&map, name, &key, cpu.parse().unwrap(), value);
        }
    }
}

fn put(map: &MapHandle, name: &str, key: &[u8], cpu: usize, value: Vec<u8>) {
    match map.map_type() {
        MapType::PercpuArray => {
            let mut values = map.lookup_percpu(key, MapFlags::ANY).unwrap().unwrap();
            values[cpu] = value;
            map.update_percpu(key, &values, MapFlags::ANY).unwrap();
        }
        MapType::Hash | MapType::Array => {
            let flags = if name == "queues" { MapFlags::LOCK } else { MapFlags::ANY };
            map.update(key, &value, flags).unwrap();
        }
        // A cgroup's own storage is there as soon as a program is attached.
        _ => map.update(key, &value, MapFlags::EXIST).unwrap(),
    }
}
