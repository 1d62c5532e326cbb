//! Dashboards of `packaging/grafana`: each metric that they draw is one that the daemons print.

use std::collections::BTreeSet;

const SWITCH: [&str; 2] = [
    include_str!("../src/switch/show/metrics.rs"),
    include_str!("../src/switch/show/importance.rs"),
];
const LIMIT: [&str; 1] = [include_str!("../src/limit/show.rs")];

/// The names behind `prefix` in a dashboard.
fn drawn(dashboard: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for part in dashboard.split(prefix).skip(1) {
        let end = part.find(|c: char| c != '_' && !c.is_ascii_lowercase()).unwrap_or(part.len());
        names.insert(part[..end].trim_end_matches("_bucket").to_string());
    }
    names
}

#[test]
fn dashboards_draw_what_is_printed() {
    for (dashboard, prefix, sources) in [
        (include_str!("../../../packaging/grafana/switch.json"), "millpond_switch_", &SWITCH[..]),
        (include_str!("../../../packaging/grafana/limit.json"), "millpond_limit_", &LIMIT[..]),
    ] {
        let names = drawn(dashboard, prefix);
        assert!(names.len() >= 7, "{names:?}");
        for name in names {
            let is_printed = |source: &&str| {
                source.contains(&format!("\"{name}\""))
                    || source.contains(&format!("{prefix}{name}\""))
            };
            assert!(sources.iter().any(is_printed), "{prefix}{name}");
        }
    }
}
