//! The workload that TLT's fork draws where others read a flow file: Poisson arrivals between
//! random hosts, with sizes of a distribution, and incasts of all hosts to one at even intervals.
//!
//! It takes links for 50 Gb/s and the leaves for two-fold oversubscribed, whatever the topology is.
//! So does this, since the load means that there.

use millpond_core::{Rate, Time};

use super::config::Config;
use super::topology::Topology;
use crate::{Imported, Result};

const LINK: f64 = 50e9;
const OVERSUBSCRIPTION: f64 = 2.0;
/// Bytes of a packet beside its payload.
const HEADERS: f64 = 48.0;

struct Asked {
    load: f64,
    foreground: f64,
    count: u64,
    /// Of an incast's flow, and its flows from each host.
    bytes: f64,
    each: u64,
}

fn asked(config: &Config) -> Result<Asked> {
    let asked = Asked {
        load: config.number("LOAD").unwrap_or(0.1),
        foreground: config.number("FOREGROUND_RATIO").unwrap_or(0.01),
        count: config.whole("NUM_BG_FLOWS").unwrap_or(0),
        bytes: config.number("INCAST_FLOW_SIZE").unwrap_or(64e3),
        each: config.whole("FOREGROUND_INCAST_FLOW_PER_HOST").unwrap_or(4),
    };
    let wrong = |key: &str, text: &str| config.line(key).fail(format!("{key}: {text}"));
    match asked {
        Asked { load, .. } if !(load > 0.0 && load <= 10.0) => {
            wrong("LOAD", "expected a share above 0")
        }
        Asked { foreground, .. } if !(0.0..1.0).contains(&foreground) => {
            wrong("FOREGROUND_RATIO", "expected a share from 0 to below 1")
        }
        Asked { count: 0, .. } => {
            wrong("NUM_BG_FLOWS", "there are no flows in the background, and so no end")
        }
        asked => Ok(asked),
    }
}

/// The traffic's tables and the file of sizes.
pub(super) fn read(
    config: &Config,
    topology: &Topology,
    payload: u64,
    name: &str,
    imported: &mut Imported,
) -> Result<(String, String)> {
    let sizes = config.file("HPCC_WORKLOAD")?;
    let Asked { load, foreground, count, bytes, each } = asked(config)?;
    let mean = mean(&sizes)?;
    let hosts = topology.network.hosts.len() as f64;
    let capacity: u64 = topology
        .network
        .links
        .iter()
        .filter(|link| is_host_link(topology, link))
        .map(|link| link.rate.bps())
        .sum();
    let wire = (payload as f64 + HEADERS) / payload as f64;
    let per_second =
        LINK * load / (8.0 * mean * wire) / OVERSUBSCRIPTION * hosts * (1.0 - foreground);
    let own_load = per_second * 8.0 * mean / capacity as f64;
    let mut text = format!(
        "[[traffic]]\nname = \"background\"\nkind = \"poisson\"\nsizes = {{ file = \
         \"{name}-sizes.txt\" }}\nload = {own_load:.6}\nload-base = \"host-links\"\ncount = \
         {count}\n"
    );
    for key in ["HPCC_WORKLOAD", "LOAD", "NUM_BG_FLOWS"] {
        config.becomes(key, "the traffic \"background\"");
    }
    let keys = ["FOREGROUND_RATIO", "INCAST_FLOW_SIZE", "FOREGROUND_INCAST_FLOW_PER_HOST"];
    if foreground > 0.0 {
        let incasts =
            LINK * load * foreground / (8.0 * each as f64 * bytes * wire) / OVERSUBSCRIPTION;
        let period = Time::from_ps((1e12 / incasts).round() as u64);
        let queries = (count as f64 / per_second * incasts).floor() as u64;
        text += &incast(topology.network.hosts.len() - 1, each, bytes, period, queries.max(1));
        keys.iter().for_each(|key| config.becomes(key, "the traffic \"foreground\""));
        imported.facts.push(format!(
            "an incast every {period}, {} of them: as many as fit the mean time of {count} \
             arrivals",
            queries.max(1)
        ));
    } else {
        keys.iter().for_each(|key| config.unused(key, "there is no foreground"));
    }
    config.unused("FLOW_FILE", "this fork draws its flows, and reads no flow file");
    let rate = Rate(per_second.round() as u64);
    imported.facts.push(format!(
        "{count} flows in the background, {} a second, with a mean of {mean:.0} bytes; drawn \
         anew, not as there",
        rate.bps()
    ));
    Ok((text, sizes.text().replace('\r', "")))
}

/// The table of the foreground: `queries` incasts, one a `period`, of `each` responses of `bytes`
/// bytes from each of `degree` hosts.
fn incast(degree: usize, each: u64, bytes: f64, period: Time, queries: u64) -> String {
    format!(
        "\n[[traffic]]\nname = \"foreground\"\nkind = \"incast\"\ndegree = \
         {degree}\nflows-per-server = {each}\nresponse = \"{}B\"\nrequest = \"none\"\nperiod = \
         \"{period}\"\nstart = \"{period}\"\ncount = {queries}\n",
        bytes.round()
    )
}

fn is_host_link(topology: &Topology, link: &crate::network::Link) -> bool {
    topology.network.hosts.contains_key(&link.a) || topology.network.hosts.contains_key(&link.b)
}

/// The mean of sizes, linear between the points.
fn mean(source: &crate::source::Source) -> Result<f64> {
    let (mut mean, mut before) = (0.0, (0.0, 0.0));
    for (line, words) in source.lines() {
        let numbers: Vec<f64> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let [size, share] = numbers[..] else {
            return line.fail("expected a size and its share");
        };
        if size < before.0 || share < before.1 || share > 1.0 {
            return line.fail("sizes and shares ascend, and shares end at 1");
        }
        mean += (share - before.1) * (size + before.0) / 2.0;
        before = (size, share);
    }
    if before.1 < 1.0 { source.end().fail("the shares do not end at 1") } else { Ok(mean) }
}
