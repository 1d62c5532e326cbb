//! The probable meaning of an unknown key, from its name and its value.
//!
//! Forks of the family add keys; their programs skip those of others. A reader of the report has to
//! judge whether such a key matters, so each is reported with the nearest guess.

use super::keys::{Form, KEYS, Key, find};
use crate::units;

/// The probable meaning of a key.
pub(super) fn meaning(name: &str, values: &[&str]) -> String {
    let near =
        nearest(name).map(|near| format!(" ({near} is read: is that meant?)")).unwrap_or_default();
    format!("{}{near}", kind(name, values))
}

fn kind(name: &str, values: &[&str]) -> &'static str {
    let upper = name.to_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| upper.contains(part));
    let Some(&value) = values.first() else { return "a word without a value: not read" };
    let is_number = units::number(value).is_some();
    let is_path =
        !is_number && (value.contains('/') || value.contains(".txt") || value.contains(".csv"));
    let records = has(&["MON", "OUTPUT", "TRACE", "DUMP", "LOG", "SAMPLE", "PRINT"]);
    match () {
        () if has(&["FILE", "PATH"]) && !is_number || is_path => {
            match records || has(&["FCT", "_OUT"]) {
                true => "probably a file that it writes: millpond writes its own results",
                false => "probably a file that it reads: what is in it is not in the scenario",
            }
        }
        () if records => {
            "probably when or how often it records: millpond records what [capture] asks for"
        }
        () if has(&["THRESH", "KMIN", "KMAX", "PMAX", "WATERMARK"]) => {
            "probably a threshold of its switches: not in the scenario"
        }
        () if has(&["BUFFER", "ALPHA", "HEADROOM"]) => {
            "probably a size of its switches: not in the scenario"
        }
        () if has(&["RATE", "BANDWIDTH", "_BW", "SPEED"])
            || !is_number && units::rate(value).is_some() =>
        {
            "probably a rate: not in the scenario"
        }
        () if has(&[
            "INTERVAL", "INTV", "TIME", "DELAY", "PERIOD", "_NS", "_US", "_MS", "RTT", "RTO",
        ]) =>
        {
            "probably a time: not in the scenario"
        }
        () if !is_number && units::time(value).is_some() => "probably a time: not in the scenario",
        () if ["0", "1", "true", "false"].contains(&value) => {
            "probably a feature that is on or off: not in the scenario"
        }
        () if is_number => {
            "probably a number of its switches or its transport: not in the scenario"
        }
        () => "not in the scenario",
    }
}

/// Words behind the values of a key.
pub(super) fn surplus(key: &Key, count: usize, values: &[&str]) -> String {
    if key.form == Form::Map {
        let (announced, found) = (count / 2, (values.len() - 1) / 2);
        return format!(
            "{} pairs are announced and {found} are there: the programs read the first \
             {announced}; here the others count for links of their rate",
            announced
        );
    }
    "words behind the value: not read, there as here".into()
}

/// A key that differs in a letter or two.
fn nearest(name: &str) -> Option<&'static str> {
    let upper = name.to_uppercase();
    let all = KEYS.iter().flat_map(|key| &key.names).map(String::as_str);
    let most = if name.len() > 6 { 2 } else { 1 };
    let near = all.map(|known| (strsim::levenshtein(known, &upper), known)).min()?;
    (near.0 <= most && find(name).is_none()).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_tell_the_kind() {
        let of = |name: &str, value: &str| meaning(name, &[value]);
        assert!(of("BW_OUTPUT_FILE", "bw.txt").starts_with("probably a file that it writes"));
        assert!(
            of("FLOW_GRAPH_FILE", "mix/graph.txt").starts_with("probably a file that it reads")
        );
        assert!(
            of("P4THMETER_THRESHOLD", "1000000")
                .starts_with("probably a threshold of its switches")
        );
        assert!(
            of("QLEN_MON_INTV_NS", "1000").starts_with("probably when or how often it records")
        );
        assert!(of("NIC_LIMIT", "40Gbps").starts_with("probably a rate"));
        assert!(of("WAIT", "5us").starts_with("probably a time"));
        assert!(of("FANCY", "1").starts_with("probably a feature"));
        assert!(of("RP_TIMR", "300").ends_with("(RP_TIMER is read: is that meant?)"));
        assert!(!of("BW_OUTPUT_FILE", "bw.txt").contains("FCT_OUTPUT_FILE"));
    }
}
