//! The warning of open flows that can never end.

use millpond_core::Time;
use millpond_core::switch::pause::PauseTarget;
use millpond_scenario::plan::Plan;
use millpond_scenario::topology::End;
use millpond_sim::standstill::{Cut, Deadlock, Silence, Standstill, Stop};

/// The reason where time ended before the flows.
const END: &str = "virtual time ended";
/// Hosts and stops that a warning names at most.
const NAMED: usize = 8;

/// A warning of open flows that stand still: which, why, and the repair.
pub(crate) fn warning(plan: &Plan, found: &Standstill) -> String {
    let open = if found.open == 1 {
        "1 open flow".to_string()
    } else {
        format!("{} open flows", found.open)
    };
    let mut text = match found.is_end {
        true => format!(
            "the run stalled: at {} {open} could never end, and no other was to come",
            found.at
        ),
        false => format!("{open} at the end, of which some can never end"),
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend((found.cut.flows > 0).then(|| cut(&found.cut)));
    parts.extend(found.deadlock.as_ref().map(|found| deadlock(plan, found)));
    if parts.is_empty() {
        parts.extend(found.silence.as_ref().map_or_else(|| vec![END.into()], silence));
        parts.extend(astray(plan));
    }
    for part in parts {
        text += "; ";
        text += &part;
    }
    text
}

fn cut(cut: &Cut) -> String {
    let names: Vec<String> =
        cut.hosts.iter().take(NAMED).map(|host| format!("host{host}")).collect();
    let more = if cut.hosts.len() > NAMED { ", …" } else { "" };
    let flows =
        if cut.flows == 1 { "1 flow has".to_string() } else { format!("{} flows have", cut.flows) };
    format!(
        "{flows} no working link left between source and destination ({} cut off: {}{more}); give \
         the failure an until",
        if cut.hosts.len() == 1 { "host" } else { "hosts" },
        names.join(", ")
    )
}

fn deadlock(plan: &Plan, found: &Deadlock) -> String {
    let flows = found.flows.len();
    let of = if flows == 1 { "1 flow".to_string() } else { format!("{flows} flows") };
    let mut names: Vec<String> =
        found.cycle.iter().take(NAMED).map(|stop| queue(plan, stop)).collect();
    if found.cycle.len() > NAMED {
        names.push("…".into());
    }
    names.extend(found.cycle.first().map(|stop| queue(plan, stop)));
    let is_pfc = found.cycle.iter().any(|stop| matches!(stop.target, PauseTarget::Priority(_)));
    let repair =
        if is_pfc { ", no deflection, or switch.pause.watchdog" } else { " and no deflection" };
    format!(
        "pauses wait for each other and hold packets of {of} for ever: {}; use routes without a \
         cycle{repair}",
        names.join(" waits for ")
    )
}

/// The name of a link's end.
fn name(plan: &Plan, end: End) -> String {
    match end {
        End::Host(nic) => plan.topology.nic_name(nic),
        End::Switch { switch, .. } => plan.topology.switches[switch as usize].name.clone(),
    }
}

/// The links that are down for good while routes never avoid them.
fn astray(plan: &Plan) -> Option<String> {
    let dead = plan.failures.iter().filter(|failure| {
        failure.is_outage() && failure.until == Time::MAX && failure.converge.is_none()
    });
    let sites = dead.map(|failure| &plan.topology.links[failure.link as usize]);
    let names: Vec<String> = sites
        .take(NAMED)
        .map(|site| format!("{} to {}", name(plan, site.a), name(plan, site.b)))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "routes lead into links that are down for good ({}): give the failure a converge time",
            names.join(", ")
        )
    })
}

/// A stopped queue: whence, whither, and which.
fn queue(plan: &Plan, stop: &Stop) -> String {
    let link = plan.topology.wiring[stop.at.0 as usize][stop.at.1 as usize];
    let site = &plan.topology.links[link as usize];
    let here = End::Switch { switch: stop.at.0, port: stop.at.1 };
    let other = name(plan, if site.a == here { site.b } else { site.a });
    let which = match stop.target {
        PauseTarget::Priority(priority) => format!("priority {priority}"),
        PauseTarget::Flow(number) => format!("flow number {number}"),
    };
    format!("{} port {} to {other} ({which})", name(plan, here), stop.at.1)
}

/// The reasons for which each open flow has no hope.
fn silence(found: &Silence) -> Vec<String> {
    let flows = |count: u64| match count {
        1 => "1 flow".to_string(),
        _ => format!("{count} flows"),
    };
    let mut parts = vec![match found.since {
        Some(since) => format!("no byte was delivered or acknowledged after {since}"),
        None => "no event was due any more".to_string(),
    }];
    parts.extend((found.waiting > 0).then(|| {
        format!("{} waiting for a peer, a pause or a NIC, without a timer", flows(found.waiting))
    }));
    parts.extend(
        (found.timed_out > 0).then(|| {
            format!("{} timed out {} times in vain", flows(found.timed_out), found.rounds)
        }),
    );
    parts
        .extend((found.others > 0).then(|| {
            format!("{} without a timeout that could repair a loss", flows(found.others))
        }));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_names_timeouts_only_if_flows_timed_out() {
        let since = Some(Time::from_us(10));
        let text = |found: Silence| silence(&found).join("; ");
        let waiting = text(Silence { since, waiting: 2, rounds: 32, ..Silence::default() });
        assert!(waiting.contains("2 flows waiting for a peer"), "{waiting}");
        assert!(!waiting.contains("timed out"), "{waiting}");
        let tried = text(Silence { since, timed_out: 1, rounds: 32, ..Silence::default() });
        assert!(tried.contains("1 flow timed out 32 times in vain"), "{tried}");
        assert!(!tried.contains("waiting"), "{tried}");
        let idle = text(Silence { waiting: 1, ..Silence::default() });
        assert!(idle.starts_with("no event was due any more; 1 flow waiting"), "{idle}");
    }

    #[test]
    fn links_that_routes_never_avoid_are_named() {
        let text = |converge: &str, until: &str| {
            let text = format!(
                "duration = \"1ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\n\
                 hosts-per-leaf = 1\n[[traffic]]\nkind = \"permutation\"\nsize = 1\n[[failure]]\n\
                 link = [\"leaf1\", \"spine0\"]\nat = \"0us\"\nuntil = \"{until}\"\nconverge = \
                 \"{converge}\"\n"
            );
            let scenario = millpond_scenario::Scenario::parse("astray", &text).unwrap();
            astray(&scenario.plan(None, &[], None).unwrap())
        };
        let named = text("never", "off").unwrap();
        assert!(named.contains("leaf1 to spine0"), "{named}");
        assert_eq!((text("50us", "off"), text("never", "200us")), (None, None));
    }
}
