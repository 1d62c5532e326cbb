//! The numbers of results that scenarios name in `shows` and that tables show: those of the
//! network, such as `timeouts`, and of a class `CLASS.METRIC.STAT`, such as `queries.qct.p99`.
//!
//! Invariant: `numbers.txt` has the only list, a line a number: its name, the two lines of its head
//! in tables, its caption, its form, the better side, its places in `summary.json`, and of a metric
//! its statistics.

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Time,
    Ratio,
    Percent,
    Rate,
    Count,
}

impl Form {
    /// Whether tables show the interval beside the number.
    pub fn has_spread(self) -> bool {
        matches!(self, Form::Time | Form::Ratio | Form::Rate)
    }
}

/// A number of the network, or a metric of classes, which has statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    pub name: &'static str,
    pub head: [&'static str; 2],
    pub caption: &'static str,
    pub form: Form,
    /// `None`: neither less nor more of it is better.
    pub less_is_better: Option<bool>,
    /// The first of these that a summary has; `*` is the class.
    pub places: Vec<&'static str>,
    pub statistics: Vec<&'static str>,
}

fn numbers() -> impl Iterator<Item = Number> {
    include_str!("numbers.txt").lines().map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let mut next = || columns.next().unwrap_or_default();
        Number {
            name: next(),
            head: [next(), next()],
            caption: next(),
            form: match next() {
                "time" => Form::Time,
                "ratio" => Form::Ratio,
                "rate" => Form::Rate,
                "count" => Form::Count,
                other => unreachable!("numbers.txt: {other:?} is no form"),
            },
            less_is_better: match next() {
                "less" => Some(true),
                "more" => Some(false),
                "" => None,
                other => unreachable!("numbers.txt: {other:?} is no side"),
            },
            places: next().split(' ').collect(),
            statistics: next().split_whitespace().collect(),
        }
    })
}

/// The numbers of the network.
pub fn network() -> impl Iterator<Item = Number> {
    numbers().filter(|number| number.statistics.is_empty())
}

/// The metrics of classes.
pub fn metrics() -> impl Iterator<Item = Number> {
    numbers().filter(|number| !number.statistics.is_empty())
}

impl Number {
    /// Whether each class has one such number, and no distribution.
    pub fn is_single(&self) -> bool {
        self.statistics == ["mean"]
    }

    /// Where a class's number may be in a summary, as paths with the class in its place.
    pub fn places_of(&self, class: &str) -> Vec<Vec<String>> {
        let is_of_all = |place: &&&str| place.contains('*') != (class == "all");
        let mut own: Vec<&&str> = self.places.iter().filter(is_of_all).collect();
        if own.is_empty() {
            own = self.places.iter().collect();
        }
        let part = |part: &str| if part == "*" { class } else { part }.to_string();
        own.into_iter().map(|place| place.split('.').map(part).collect()).collect()
    }
}
