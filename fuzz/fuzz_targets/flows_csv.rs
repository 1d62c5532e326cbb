//! Any text: a list of flows in the order of time that the network can carry, or an error with its
//! line; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_scenario::settings::flows::FlowTable;

const HOSTS: u32 = 16;

fuzz_target!(|text: &str| match FlowTable::parse(text, HOSTS) {
    Ok(table) => {
        assert!(table.rows.windows(2).all(|w| w[0].start <= w[1].start));
        for row in &table.rows {
            assert!(row.src < HOSTS && row.dst < HOSTS && row.src != row.dst && row.bytes > 0);
            assert!(row.class.is_none_or(|class| usize::from(class) < table.classes.len()));
        }
    }
    Err(error) => assert!(error.line >= 1 && error.line <= text.lines().count().max(1)),
});
