//! Any text: a scenario with a plan for every variant, or errors; never a panic. A plan's resolved
//! text gives the plan again, and its arrivals come in the order of time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_scenario::Scenario;
use millpond_scenario::traffic::Event;

/// Networks beyond this are left to the tests: building one is slow, not wrong.
const HOSTS_MAX: u32 = 5_000;

fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::parse("fuzz.toml", text) else { return };
    // A fuzzer must not read whatever file it happens to name.
    let scenario = scenario.with_base(std::path::Path::new("/nonexistent"));
    for variant in scenario.variants().into_iter().map(Some).chain([None]) {
        let plan = match scenario.plan(variant, &[], None) {
            Ok(plan) => plan,
            Err(errors) => {
                assert!(!errors.errors.is_empty());
                let _ = errors.to_string();
                continue;
            }
        };
        let mut before = None;
        for event in plan.traffic.arrivals().take(100) {
            let at = match event {
                Event::Flow(flow) => flow.at,
                Event::Query(query) => query.at,
            };
            assert!(before <= Some(at), "arrivals go back in time");
            before = Some(at);
        }
        if plan.topology.hosts <= HOSTS_MAX {
            let again = Scenario::parse("resolved.toml", &plan.resolved)
                .expect("a resolved text is a scenario");
            let again = again.plan(None, &[], None).expect("a resolved scenario has a plan");
            assert_eq!(plan.resolved, again.resolved);
        }
    }
});
