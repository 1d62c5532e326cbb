//! Limits for the pods of a Kubernetes node, as the annotations of its bandwidth plugin ask for
//! them: `kubernetes.io/egress-bandwidth` and `kubernetes.io/ingress-bandwidth`, bits a second as a
//! quantity ("10M", "1Gi"). The list of pods is what `kubectl get pods -o json` prints.
//!
//! A pod's cgroup has one limit. Where its two rates differ, that has the higher one for both
//! directions, and a scope of the slower direction holds it to the lower one.
//!
//! Invariant: a pod whose annotations cannot be read gets no limit, and a note has the reason; all
//! others get theirs.

use super::Error;
use super::config::{Config, Limit, TargetParams};
use super::layout::NAME_MAX;
use millpond_core::Rate;
use millpond_core::limit::{Direction, LimitParams, RATES};
use serde::Deserialize;
use std::collections::BTreeMap;

const EGRESS: &str = "kubernetes.io/egress-bandwidth";
const INGRESS: &str = "kubernetes.io/ingress-bandwidth";
/// A static pod runs under this uid, and its mirror in the list has another.
const STATIC_UID: &str = "kubernetes.io/config.hash";

#[derive(Deserialize)]
struct List {
    items: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

/// Returns the limits of a list of pods, and notes on pods that have none.
///
/// # Errors
/// [`Error::Request`] with line and column if `text` is no list as `kubectl get pods -o json`
/// prints it.
pub fn config(name: &str, text: &str) -> Result<(Config, Vec<String>), Error> {
    let list: List = serde_json::from_str(text).map_err(|e| {
        Error::Request(format!(
            "{name}:{}:{}: no list of pods as kubectl get pods -o json prints it: {e}",
            e.line(),
            e.column()
        ))
    })?;
    let (mut config, mut notes) = (Config::default(), Vec::new());
    for pod in
        list.items.iter().filter(|pod| !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed"))
    {
        match pod.limits() {
            Ok(limits) => config.limits.extend(limits),
            Err(why) => notes.push(format!(
                "pod {}/{} has no limit: {why}",
                pod.metadata.namespace, pod.metadata.name
            )),
        }
    }
    // The order of names is fixed, and lists come in any.
    config.limits.sort_by(|a, b| a.name().cmp(b.name()));
    Ok((config, notes))
}

impl Pod {
    /// The name of its limit; a long name gives way to its uid.
    fn name(&self) -> String {
        let Metadata { name, namespace, .. } = &self.metadata;
        let full = format!("{namespace}:{name}");
        // Room for the scope of one direction.
        if full.len() + ":ingress".len() <= NAME_MAX { full } else { format!("pod:{}", self.uid()) }
    }

    fn uid(&self) -> &str {
        self.metadata.annotations.get(STATIC_UID).unwrap_or(&self.metadata.uid)
    }

    fn limits(&self) -> Result<Vec<Limit>, String> {
        let rate = |key: &str| {
            let text = self.metadata.annotations.get(key);
            text.map(|text| quantity(text).map_err(|why| format!("{key}: {text:?} {why}")))
                .transpose()
        };
        let limit =
            |rate, target| Limit { target, queue: LimitParams { rate, ..LimitParams::default() } };
        let (name, container) = (self.name(), Some(self.uid().to_string()));
        let of = |direction| TargetParams {
            name: name.clone(),
            container: container.clone(),
            direction: Some(direction),
            ..TargetParams::default()
        };
        Ok(match (rate(EGRESS)?, rate(INGRESS)?) {
            (None, None) => Vec::new(),
            (Some(rate), None) => vec![limit(rate, of(Direction::Egress))],
            (None, Some(rate)) => vec![limit(rate, of(Direction::Ingress))],
            (Some(egress), Some(ingress)) if egress == ingress => {
                vec![limit(egress, of(Direction::Both))]
            }
            (Some(egress), Some(ingress)) => {
                let (direction, suffix) = if egress < ingress {
                    (Direction::Egress, "egress")
                } else {
                    (Direction::Ingress, "ingress")
                };
                let scope = TargetParams {
                    name: format!("{name}:{suffix}"),
                    direction: Some(direction),
                    ..TargetParams::default()
                };
                let both = TargetParams { scopes: vec![scope.name.clone()], ..of(Direction::Both) };
                vec![limit(egress.max(ingress), both), limit(egress.min(ingress), scope)]
            }
        })
    }
}

/// A quantity of Kubernetes, in bits a second.
fn quantity(text: &str) -> Result<Rate, &'static str> {
    const WRONG: &str = "is no quantity such as 10M";
    let (number, scale) = match text.find(|c: char| !c.is_ascii_digit() && c != '.') {
        None => (text, 1.0),
        Some(at) => (&text[..at], scale(&text[at..]).ok_or(WRONG)?),
    };
    let rate = number.parse::<f64>().map_err(|_| WRONG)? * scale;
    let rate = Rate(rate as u64);
    if RATES.contains(&rate.bps()) {
        Ok(rate)
    } else {
        Err("cannot be held: from 8k to 1T bits a second")
    }
}

/// The factor that the end of a quantity stands for.
fn scale(suffix: &str) -> Option<f64> {
    if let Some(exponent) = suffix.strip_prefix(['e', 'E']).filter(|exponent| !exponent.is_empty())
    {
        return exponent
            .parse::<i32>()
            .ok()
            .filter(|exponent| exponent.abs() <= 18)
            .map(|exponent| 10f64.powi(exponent));
    }
    Some(match suffix {
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => f64::from(1 << 10),
        "Mi" => f64::from(1 << 20),
        "Gi" => f64::from(1 << 30),
        "Ti" => (1u64 << 40) as f64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, annotations: &str, phase: &str) -> String {
        format!(
            "{{\"metadata\": {{\"name\": \"{name}\", \"namespace\": \"shop\", \"uid\": \
             \"uid-of-{name}\", \"annotations\": {{{annotations}}}}}, \"status\": {{\"phase\": \
             \"{phase}\"}}}}"
        )
    }

    fn read(pods: &[String]) -> (Config, Vec<String>) {
        config("pods.json", &format!("{{\"items\": [{}]}}", pods.join(", "))).unwrap()
    }

    #[test]
    fn annotations_become_limits_that_can_be_read_back() {
        let both = |egress: &str, ingress: &str| {
            format!("\"{EGRESS}\": \"{egress}\", \"{INGRESS}\": \"{ingress}\"")
        };
        let (config, notes) = read(&[
            pod("web", &both("10M", "1Gi"), "Running"),
            pod("same", &both("1e6", "1000k"), "Pending"),
            pod("out", &format!("\"{EGRESS}\": \"2.5G\""), "Running"),
            pod("in", &format!("\"{INGRESS}\": \"1G\", \"{STATIC_UID}\": \"hash\""), "Running"),
            pod("plain", "\"other\": \"10M\"", "Running"),
            pod("done", &both("10M", "10M"), "Succeeded"),
        ]);
        assert_eq!(notes, Vec::<String>::new());
        let found: Vec<String> = config
            .limits
            .iter()
            .map(|l| {
                let of = l.target.container.as_deref().unwrap_or("none");
                format!(
                    "{} {} {of} {:?} {:?}",
                    l.name(),
                    l.queue.rate,
                    l.target.direction.unwrap(),
                    l.target.scopes
                )
            })
            .collect();
        let expected = [
            "shop:in 1Gbps hash Ingress []",
            "shop:out 2500Mbps uid-of-out Egress []",
            "shop:same 1Mbps uid-of-same Both []",
            "shop:web 1073741824bps uid-of-web Both [\"shop:web:egress\"]",
            "shop:web:egress 10Mbps none Egress []",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            Config::parse("a.toml", &config.to_text(), &[]).unwrap(),
            config,
            "{}",
            config.to_text()
        );
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let egress = |text: &str| format!("\"{EGRESS}\": \"{text}\"");
        let wrong = ["ten", "10Mbit", "1", "1e99", "", "10E", "-5M"]
            .map(|text| pod("a", &egress(text), "Running"));
        let good = pod("b", &egress("1M"), "Running");
        let (config, notes) = read(&[&wrong[..], &[good]].concat());
        assert_eq!((config.limits.len(), notes.len()), (1, wrong.len()), "{notes:?}");
        assert!(notes[0].starts_with(
            "pod shop/a has no limit: kubernetes.io/egress-bandwidth: \"ten\" is no quantity"
        ));
        let said = super::config("pods.json", "{\n\"items\": 3}").unwrap_err().to_string();
        assert!(said.starts_with("pods.json:2:"), "{said}");
        let long = format!("{}, \"{STATIC_UID}\": \"hash\"", egress("1M"));
        assert_eq!(read(&[pod(&"n".repeat(80), &long, "Running")]).0.limits[0].name(), "pod:hash");
    }
}
