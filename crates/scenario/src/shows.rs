//! The numbers that a scenario shows (`shows`): their names, and the error of a name that means
//! nothing.
//!
//! A name is `CLASS.METRIC.STAT`, such as `queries.qct.p99`, or a number of the network, such as
//! `timeouts`.
//!
//! Invariant: a plan's `shows` names classes of its traffic, and numbers that these have.

use crate::error::{Problem, Report, nearest};
use crate::settings::Settings;
use crate::settings::application::ApplicationSettings;
use crate::settings::traffic::TrafficParams;
use millpond_core::numbers::{Number, metrics, network};

/// Whether some class can have a metric of that name.
pub(crate) fn is_metric(name: &str) -> bool {
    metrics().any(|metric| metric.name == name)
}

fn named(metric: &str) -> Option<Number> {
    metrics().find(|own| own.name == metric)
}

/// The names of a class's metrics.
type Metrics = &'static [&'static str];

const OF_FLOWS: Metrics = &["fct", "slowdown"];
const OF_QUERIES: Metrics = &["fct", "slowdown", "qct"];

/// Everything that a scenario can show.
struct Known<'a> {
    classes: Vec<(&'a str, Metrics)>,
}

impl<'a> Known<'a> {
    /// `classes` are those of the traffic: the traffics in their order, then those of lists of
    /// flows.
    fn of(s: &'a Settings, classes: &'a [String], applications: &'a [String]) -> Known<'a> {
        let mut known: Vec<(&str, Metrics)> = vec![
            ("all", &["fct", "slowdown", "qct", "rtt"]),
            ("mice", OF_FLOWS),
            ("elephants", OF_FLOWS),
        ];
        for (at, class) in classes.iter().enumerate() {
            let metrics: Metrics = match s.traffic.get(at).map(|traffic| &traffic.kind) {
                Some(TrafficParams::Incast(_)) => OF_QUERIES,
                Some(TrafficParams::Rpc(_)) => &["fct", "slowdown", "latency"],
                Some(TrafficParams::Probe(_)) => &["rtt"],
                Some(kind) if kind.is_job() => {
                    &["fct", "slowdown", "collective", "iteration", "exposed", "busbw", "ratio"]
                }
                _ => OF_FLOWS,
            };
            known.push((class, metrics));
        }
        let is_class = |name: &&String| classes.iter().any(|class| class == *name);
        let others = applications.iter().filter(|name| !is_class(name));
        known.extend(others.map(|name| (name.as_str(), OF_QUERIES)));
        Known { classes: known }
    }

    /// The fault of a name, and how to repair it.
    fn check(&self, name: &str) -> Option<(Problem, String)> {
        if network().any(|number| number.name == name) {
            return None;
        }
        let unknown =
            |what: &str, name: &str| Problem::Unknown { what: what.into(), name: name.into() };
        let parts =
            name.rsplit_once('.').and_then(|(rest, stat)| Some((rest.rsplit_once('.')?, stat)));
        let Some(((class, metric), stat)) = parts else {
            let form = "write CLASS.METRIC.STAT, such as \"all.fct.p99\", or one of ";
            return Some((unknown("number to show", name), self.near(name, form)));
        };
        let Some((_, metrics)) = self.classes.iter().find(|(own, _)| *own == class) else {
            let help = self.near(name, "write one of the classes ");
            return Some((unknown("class to show", class), help));
        };
        let Some(metric) = metrics.iter().find_map(|own| named(own).filter(|_| *own == metric))
        else {
            let help =
                format!("class {class:?} has {}{}", metrics.join(", "), self.did_you_mean(name));
            return Some((unknown("metric to show", metric), help));
        };
        let stats = metric.statistics;
        let help = || {
            let (metric, all) = (metric.name, stats.join(", "));
            format!("{class}.{metric} has {all}{}", self.did_you_mean(name))
        };
        (!stats.contains(&stat)).then(|| (unknown("statistic to show", stat), help()))
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let of = |(class, metrics): &(&str, Metrics)| -> Vec<String> {
            let own = metrics.iter().filter_map(|metric| named(metric));
            let stats = own.flat_map(|Number { name, statistics, .. }| {
                statistics.into_iter().map(move |stat| format!("{class}.{name}.{stat}"))
            });
            stats.collect()
        };
        let network = network().map(|number| number.name.to_string());
        let all: Vec<String> = self.classes.iter().flat_map(of).chain(network).collect();
        nearest(name, all.iter().map(String::as_str)).map(String::from)
    }

    fn did_you_mean(&self, name: &str) -> String {
        self.nearest(name).map_or(String::new(), |near| format!("; did you mean `{near}`?"))
    }

    /// The nearest valid name, or what there is.
    fn near(&self, name: &str, otherwise: &str) -> String {
        let names: Vec<&str> = match otherwise.contains("classes") {
            true => self.classes.iter().map(|(class, _)| *class).collect(),
            false => network().map(|number| number.name).collect(),
        };
        self.nearest(name).map_or_else(
            || format!("{otherwise}{}", names.join(", ")),
            |near| format!("did you mean `{near}`?"),
        )
    }
}

/// Reports each name of `shows` that means nothing.
pub(crate) fn check(s: &Settings, classes: &[String], report: &mut Report) {
    let applications: Vec<String> = s.applications.iter().map(ApplicationSettings::name).collect();
    let known = Known::of(s, classes, &applications);
    for name in &s.run.shows {
        if let Some((problem, help)) = known.check(name) {
            report.help(report.at("shows"), problem, &help);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    fn planned(shows: &str) -> Result<Vec<String>, (String, Option<String>)> {
        let text = format!(
            "shows = {shows}\nduration = \"1ms\"\n[topology]\nkind = \"single-switch\"\nhosts = \
             4\n[[traffic]]\nname = \"queries\"\nkind = \"incast\"\ndegree = 2\nresponse = \
             \"1KB\"\n[[traffic]]\nname = \"v2.web\"\nkind = \"rpc\"\nclients = 2\nservers = 2\n"
        );
        match Scenario::parse("x.toml", &text).and_then(|scenario| scenario.plan(None, &[], None)) {
            Ok(plan) => Ok(plan.shows),
            Err(errors) => Err((errors.to_string(), errors.errors[0].help.clone())),
        }
    }

    #[test]
    fn names_of_classes_and_of_the_network_are_taken() {
        let names = [
            "queries.qct.p99",
            "v2.web.latency.p999",
            "all.qct.completed",
            "mice.slowdown.p50",
            "timeouts",
        ];
        assert_eq!(planned(&format!("{names:?}")).unwrap(), names);
        assert!(planned("[]").unwrap().is_empty());
    }

    #[test]
    fn a_wrong_name_is_refused_with_its_place_and_the_nearest() {
        for (wrong, says, near) in [
            (
                "querys.qct.p99",
                "there is no class to show \"querys\"",
                "did you mean `queries.qct.p99`?",
            ),
            (
                "queries.qtc.p99",
                "there is no metric to show \"qtc\"",
                "did you mean `queries.qct.p99`?",
            ),
            (
                "queries.qct.p98",
                "there is no statistic to show \"p98\"",
                "did you mean `queries.qct.p",
            ),
            (
                "v2.web.qct.p99",
                "there is no metric to show \"qct\"",
                "class \"v2.web\" has fct, slowdown, latency",
            ),
            ("timeout", "there is no number to show \"timeout\"", "did you mean `timeouts`?"),
            ("zebra", "there is no number to show \"zebra\"", "write CLASS.METRIC.STAT"),
        ] {
            let (text, help) = planned(&format!("[{wrong:?}]")).unwrap_err();
            assert!(text.starts_with("x.toml:1:") && text.contains(says), "{text}");
            assert!(help.as_deref().is_some_and(|help| help.contains(near)), "{wrong}: {help:?}");
        }
    }
}
