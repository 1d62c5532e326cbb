//! The points of a sweep: the cartesian product of `--grid` (and of the scenario's variants), and
//! what they may cost.

use crate::VERSION;
use crate::error::Error;
use millpond_core::Time;
use millpond_results::{Axis, Sweep};
use millpond_scenario::Scenario;
use millpond_scenario::plan::Plan;
use millpond_scenario::traffic::SourceKind;
use std::path::Path;

/// The key under which variants enter the grid.
pub const VARIANT: &str = "variant";

/// More runs than this are taken for a slip of the pen.
const RUNS_MAX: u128 = 1_000_000;

/// The sweep that is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Keys with their values, each once.
    pub grid: Vec<Axis>,
    /// The first and the last; without them the scenario's.
    pub seeds: Option<(u64, u64)>,
    /// Variants of the scenario; none: the scenario as it stands.
    pub variants: Vec<String>,
    pub set: Vec<(String, String)>,
    /// Leave out points that are no valid scenario.
    pub skip_invalid: bool,
    /// Whether to find out how many packet-hops runs make.
    pub estimate: bool,
}

/// How to plan the runs of one point.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    pub variant: Option<String>,
    pub overrides: Vec<(String, String)>,
}

/// Packet-hops of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hops {
    pub count: f64,
    /// The traffic asks for much more than hosts' links carry: what the network lets through is
    /// less, and only a run shows it.
    pub is_bound: bool,
    /// The time in which they are asked for: to the last arrival, or to the end of the run.
    pub span: Time,
}

/// A sweep with what is needed to run it.
#[derive(Clone)]
pub struct Design {
    pub sweep: Sweep,
    pub recipes: Vec<Recipe>,
    /// Packet-hops that a run of each point makes, roughly; `None` where its traffic leaves that
    /// open.
    pub hops: Vec<Option<Hops>>,
    /// The warnings of the points, each text once.
    pub warnings: Vec<String>,
}

impl Design {
    /// With the finished runs of other seeds that `out` has of the same points.
    pub fn grown(&self, out: &Path) -> Design {
        Design { sweep: self.sweep.clone().grown(out), ..self.clone() }
    }
}

/// Plans every point of the grid once, so that a wrong value is an error before anything runs.
///
/// # Errors
/// [`Error::Usage`] if the grid has more than a million runs, or none of its points can be run.
/// [`Error::Scenario`] if the scenario rejects a value and `request.skip_invalid` is off.
pub fn design(scenario: &Scenario, request: &Request) -> Result<Design, Error> {
    let grid = axes(request)?;
    let (mut recipes, mut points, mut hops, mut warnings) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::<String>::new());
    let mut first: Option<(Plan, Recipe)> = None;
    for values in product(&grid) {
        let recipe = recipe(&grid, &values, &request.set);
        // The hash of a point is that of its scenario with seed 0, so that it does not depend on
        // the seeds asked for.
        match scenario.plan(recipe.variant.as_deref(), &recipe.overrides, Some(0)) {
            Ok(plan) => {
                let new: Vec<String> =
                    plan.warnings.iter().filter(|w| !warnings.contains(w)).cloned().collect();
                warnings.extend(new);
                hops.push(if request.estimate { packet_hops(&plan) } else { None });
                points.push((values, Ok(plan.identity())));
                first.get_or_insert_with(|| (plan, recipe.clone()));
            }
            Err(errors) if request.skip_invalid => {
                let reason = errors
                    .errors
                    .iter()
                    .map(|error| error.problem.to_string())
                    .collect::<Vec<_>>()
                    .join("; ");
                hops.push(None);
                points.push((values, Err(reason)));
            }
            Err(errors) => {
                let at: Vec<String> =
                    grid.iter().zip(&values).map(|(a, v)| format!("{}={v}", a.key)).collect();
                return Err(Error::Scenario {
                    at: at.join(" "),
                    errors: errors.given_by("--grid", request.set.len()),
                });
            }
        }
        recipes.push(recipe);
    }
    let Some((plan, recipe)) = first else {
        return Err(Error::Usage("no point of the grid can be run".to_string()));
    };
    let (from, to) = match request.seeds {
        Some(seeds) => seeds,
        None => scenario
            .plan(recipe.variant.as_deref(), &recipe.overrides, None)
            .map(|plan| (plan.seed, plan.seed))?,
    };
    let shows = plan.shows.clone();
    let mut sweep = Sweep::new(&plan.name, VERSION, grid, (from..=to).collect(), points);
    sweep.shows = shows;
    sweep.overrides = request.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Ok(Design { sweep, recipes, hops, warnings })
}

fn axes(request: &Request) -> Result<Vec<Axis>, Error> {
    let mut axes = request.grid.clone();
    if !request.variants.is_empty() {
        axes.insert(0, Axis { key: VARIANT.to_string(), values: request.variants.clone() });
    }
    let points = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()));
    check_runs(points.unwrap_or(usize::MAX), request.seeds)?;
    Ok(axes)
}

/// Checks that so many points in so many seeds are at most a million runs.
///
/// # Errors
/// [`Error::Usage`] if there are more.
pub fn check_runs(points: usize, seeds: Option<(u64, u64)>) -> Result<(), Error> {
    let seeds = seeds.map_or(1, |(first, last)| u128::from(last - first) + 1);
    if points as u128 * seeds <= RUNS_MAX {
        return Ok(());
    }
    Err(Error::Usage(
        "more than a million runs; take a part of the grid or of the seeds at a time".to_string(),
    ))
}

/// All combinations; the last key varies fastest.
fn product(grid: &[Axis]) -> Vec<Vec<String>> {
    let longer = |points: Vec<Vec<String>>, axis: &Axis| {
        let with = |point: Vec<String>| {
            axis.values
                .iter()
                .map(move |value| point.iter().cloned().chain([value.clone()]).collect::<Vec<_>>())
        };
        points.into_iter().flat_map(with).collect::<Vec<_>>()
    };
    grid.iter().fold(vec![Vec::new()], longer)
}

fn recipe(grid: &[Axis], values: &[String], set: &[(String, String)]) -> Recipe {
    let mut recipe = Recipe { variant: None, overrides: set.to_vec() };
    for (axis, value) in grid.iter().zip(values) {
        match axis.key.as_str() {
            VARIANT => recipe.variant = Some(value.clone()),
            key => recipe.overrides.push((key.to_string(), value.clone())),
        }
    }
    recipe
}

/// Packet-hops of a run: data and ACKs over the usual number of links, of what its traffic asks for
/// and hosts' links can carry in its time. `None` for closed loops of calls, and for a traffic of
/// more than 200,000 arrivals in a run without a duration: neither bounds its packets.
pub fn packet_hops(plan: &Plan) -> Option<Hops> {
    const LOOKED_AT: usize = 200_000;
    let links = if plan.topology.switches.len() == 1 { 2.0 } else { 4.0 };
    let payload = f64::from(plan.host.mtu.saturating_sub(40).max(1));
    let packets = |bytes: u64| (bytes as f64 / payload).ceil();
    let horizon = plan.horizon.as_s_f64();
    let mut asked = Asked { sent: vec![0.0; plan.topology.hosts as usize], received: Vec::new() };
    asked.received.clone_from(&asked.sent);
    let (mut last, mut cut) = (Time::ZERO, false);
    let mut arrivals = plan.traffic.arrivals();
    for looked_at in 0.. {
        let Some(arrival) = arrivals.next_arrival().filter(|arrival| arrival.at < plan.horizon)
        else {
            break;
        };
        asked.add(arrival.src, arrival.dst, packets(arrival.bytes));
        asked.add(arrival.dst, arrival.src, packets(arrival.response));
        last = arrival.at;
        if looked_at == LOOKED_AT {
            cut = true;
            break;
        }
    }
    if cut && plan.horizon == Time::MAX {
        return None;
    }
    if cut && last > Time::ZERO {
        let whole = horizon / last.as_s_f64();
        asked.sent.iter_mut().chain(&mut asked.received).for_each(|packets| *packets *= whole);
    }
    if let Some(graph) = &plan.traffic.dependencies {
        // Flows that wait for nothing are among the arrivals.
        for (_, flow) in (0..).zip(&graph.flows).filter(|(node, _)| graph.waits_for(*node) > 0) {
            asked.add(flow.src, flow.dst, packets(flow.bytes));
        }
    }
    for source in &plan.traffic.sources {
        match &source.kind {
            SourceKind::Open => {}
            SourceKind::Shuffle { size, order, .. } => {
                for (src, destinations) in order.iter().enumerate() {
                    destinations.iter().for_each(|dst| asked.add(src as u32, *dst, packets(*size)));
                }
            }
            // A question and an answer each.
            SourceKind::Probe { pairs, period, .. } => {
                let questions = horizon / period.as_s_f64().max(1e-9);
                pairs.iter().for_each(|pair| asked.add(pair.src, pair.dst, 2.0 * questions));
            }
            SourceKind::Rpc { .. } | SourceKind::Job(_) => return None,
        }
    }
    let fits = |host: usize, asked: f64| {
        let bits = f64::from(plan.host.mtu + plan.host.frame_overhead) * 8.0;
        asked.min(plan.topology.links[host].rate.bps() as f64 * horizon / bits)
    };
    let bound = |asked: &[f64]| {
        asked.iter().enumerate().map(|(host, asked)| fits(host, *asked)).sum::<f64>()
    };
    let carried = bound(&asked.sent).min(bound(&asked.received));
    let is_bound = asked.sent.iter().sum::<f64>() > 1.2 * carried;
    let span = if plan.horizon == Time::MAX { last } else { plan.horizon };
    Some(Hops { count: carried * links * 2.0, is_bound, span })
}

/// Packets that a run's traffic asks for, by host.
struct Asked {
    sent: Vec<f64>,
    received: Vec<f64>,
}

impl Asked {
    fn add(&mut self, src: u32, dst: u32, packets: f64) {
        self.sent[src as usize] += packets;
        self.received[dst as usize] += packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_without_wrapping() {
        assert!(check_runs(1_000, Some((1, 1_000))).is_ok() && check_runs(1_000_000, None).is_ok());
        assert!(
            check_runs(1, Some((0, u64::MAX))).is_err()
                && check_runs(usize::MAX, Some((0, u64::MAX))).is_err()
        );
        assert!(check_runs(1_000, Some((1, 1_001))).is_err());
    }

    #[test]
    fn the_last_key_varies_fastest() {
        let axis = |key: &str, values: &[&str]| Axis {
            key: key.into(),
            values: values.iter().map(|v| v.to_string()).collect(),
        };
        let grid = [axis("variant", &["x", "y"]), axis("a.b", &["1", "2"])];
        let points = product(&grid);
        assert_eq!(points, [["x", "1"], ["x", "2"], ["y", "1"], ["y", "2"]]);
        assert_eq!(product(&[]), [Vec::<String>::new()]);
        let recipe = recipe(&grid, &points[1], &[("c".into(), "d".into())]);
        assert_eq!(recipe.variant.as_deref(), Some("x"));
        assert_eq!(
            recipe.overrides,
            [("c".to_string(), "d".to_string()), ("a.b".into(), "2".into())]
        );
    }
}
