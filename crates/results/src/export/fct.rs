//! `fct.txt` as the simulators of the HPCC family write it, for the scripts that read theirs: a
//! line a completed flow, `sip dip sport dport size start_ns fct_ns ideal_ns`, in the order of
//! completion.
//!
//! Addresses are theirs: node n is 11.(n/256).(n mod 256).1, in hexadecimal. Imported networks and
//! lists keep the numbers of their nodes and destination ports; without any, nodes are hosts, and
//! the port is 100. Flows from one host to another have the source ports 10000 and up, as in their
//! runs.
//!
//! Times are what they mean everywhere here: the FCT ends with the last byte delivered, where the
//! family waits for its acknowledgement, and the ideal one is this program's. So the ratio of the
//! two is the slowdown of `flows.parquet`, but for the rounding to nanoseconds.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use crate::model::{At, Error, FLOWS, Kind, Manifest, Result, Rows, check_files};

/// The first source port of a pair of hosts, and the destination port of lists without ports.
const SOURCE_PORT: u64 = 10_000;
const DESTINATION_PORT: u64 = 100;

/// Writes the completed flows of a run's folder as `fct.txt`. Returns their number. `target` is the
/// name of `out` in errors.
///
/// # Errors
/// [`Error::NoTable`] if the folder is not that of a run with flows, [`Error::Malformed`] if the
/// table is damaged, [`Error::Io`] if it cannot be read or `out` cannot be written.
pub fn write_fct(dir: &Path, out: &mut dyn Write, target: &Path) -> Result<u64> {
    let path = dir.join(FLOWS);
    let manifest = Manifest::read(dir)?;
    if manifest.kind != Kind::Run || !path.is_file() {
        let reason =
            "fct.txt is made of one run's flows.parquet; name the folder of a run".to_string();
        return Err(Error::NoTable { path: dir.to_path_buf(), table: "flows".into(), reason });
    }
    check_files(dir, &|name| name == FLOWS)?;
    let (mut ports, mut lines): (BTreeMap<(u64, u64), u64>, u64) = (BTreeMap::new(), 0);
    let columns = ["src", "dst", "bytes", "start_us", "fct_us", "slowdown", "flow"];
    // Ports follow the order of starts there; a flow's number does here.
    let mut starts: Vec<(u64, (u64, u64))> = Vec::new();
    Rows::open(&path)?.each(["flow", "src", "dst"], |row| {
        let flow = [0, 1, 2].map(|at| row.whole(at));
        starts.extend(flow[0].zip(flow[1].zip(flow[2])));
        Ok(())
    })?;
    starts.sort_unstable();
    let mut port_of: BTreeMap<u64, u64> = BTreeMap::new();
    for (flow, pair) in starts {
        let next = ports.entry(pair).or_insert(SOURCE_PORT);
        port_of.insert(flow, *next);
        *next = (*next + 1) % 65_536;
    }
    Rows::open(&path)?.each(columns, |row| {
        let whole = [0, 1, 2, 6].map(|at| row.whole(at));
        let float = [3, 4, 5].map(|at| row.float(at));
        let [Some(src), Some(dst), Some(bytes), Some(flow)] = whole else { return Ok(()) };
        let [Some(start), Some(fct), Some(slowdown)] = float else { return Ok(()) };
        let ns = |us: f64| (us * 1e3).round() as u64;
        let sport = port_of.get(&flow).copied().unwrap_or(SOURCE_PORT);
        let line = format!(
            "{:08x} {:08x} {sport} {} {bytes} {} {} {}\n",
            address(manifest.number(src)),
            address(manifest.number(dst)),
            manifest.port(flow),
            ns(start),
            ns(fct),
            ns(fct / slowdown).max(1)
        );
        lines += 1;
        out.write_all(line.as_bytes()).at("write", target)
    })?;
    Ok(lines)
}

impl Manifest {
    /// A host's number in the files that the network was imported from; otherwise its own.
    pub(super) fn number(&self, host: u64) -> u64 {
        let number = usize::try_from(host).ok().and_then(|host| self.host_numbers.get(host));
        number.map_or(host, |number| u64::from(*number))
    }

    fn port(&self, flow: u64) -> u64 {
        let until = self.ports.partition_point(|(first, _)| u64::from(*first) <= flow);
        let run = until.checked_sub(1).map(|at| self.ports[at]);
        run.map_or(DESTINATION_PORT, |(_, port)| u64::from(port))
    }
}

fn address(node: u64) -> u64 {
    0x0b00_0001 + (node / 256) * 0x1_0000 + (node % 256) * 0x100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_theirs() {
        assert_eq!(
            [0, 1, 255, 256, 319].map(address),
            [0x0b000001, 0x0b000101, 0x0b00ff01, 0x0b010001, 0x0b013f01]
        );
    }
}
