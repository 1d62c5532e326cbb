//! Flow-size distributions: built-in ones, files, and sampling.
//!
//! A file has two columns, bytes and cumulative probability. ns-2's files have a third one between
//! them, an index, which is not read; Homa's begin with a line of one number, the mean, which is
//! not read either.
//!
//! A distribution is a list of (bytes, cumulative probability). Between two points it is linear, or
//! it is a step: all of the probability between two points belongs to the later one's size. The
//! mean that a load is computed from is that of the same form, in closed form, so it and the
//! samples cannot disagree.
//!
//! Invariant: bytes and probabilities never decrease, and the last probability is 1.

use crate::toml_text::built_in;
use millpond_core::Bytes;
use millpond_core::params::{Field, Form, Value, ValueError};
use millpond_core::random::Stream;
use serde::Deserialize;
use std::sync::{Arc, LazyLock};

/// The form between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// A straight line.
    Linear,
    /// Nothing: sizes are exactly the points'.
    Steps,
}

impl Shape {
    /// The word in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Linear => "linear",
            Shape::Steps => "steps",
        }
    }
    /// From the word.
    pub fn from_name(name: &str) -> Option<Shape> {
        [Shape::Linear, Shape::Steps].into_iter().find(|s| s.name() == name)
    }
}

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    points: Vec<(f64, f64)>,
    shape: Shape,
}

/// Why a list of points is no distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CdfError {
    /// The line, from 1, where the points come from a text; else the point's number, from 1.
    pub line: usize,
    /// The problem there.
    pub message: String,
}

/// A built-in distribution.
#[derive(Clone, Debug, Deserialize)]
pub struct Builtin {
    /// Its name in a scenario.
    pub name: &'static str,
    /// Where its points come from.
    pub source: String,
    shape: Shape,
    points: Vec<(f64, f64)>,
}

/// The built-in distributions.
pub static BUILTIN: LazyLock<Vec<Builtin>> =
    LazyLock::new(|| built_in("builtin.toml", include_str!("cdf/builtin.toml")));

impl Cdf {
    /// Makes a distribution of points (bytes, cumulative probability). Probabilities end at 1 or at
    /// 100; the last one decides.
    ///
    /// # Errors
    /// There is no point, the last probability is neither 1 nor 100, or the size or probability of
    /// a point is out of range or below that of the point before.
    pub fn new(points: Vec<(f64, f64)>, shape: Shape) -> Result<Cdf, CdfError> {
        let lines: Vec<usize> = (1..=points.len()).collect();
        Cdf::checked(points, &lines, shape)
    }

    /// From a text of two columns, bytes and cumulative probability, or of ns-2's three (bytes, an
    /// index, cumulative probability); a first line of one number is a mean, as in Homa's files,
    /// and is not read. `#` starts a comment.
    ///
    /// # Errors
    /// The line where the text is in none of these forms, or where points decrease.
    pub fn parse(text: &str, shape: Shape) -> Result<Cdf, CdfError> {
        let mut points = Vec::new();
        let mut lines = Vec::new();
        // Columns of the first point's line, which all have.
        let mut width = None;
        let mut has_mean = false;
        for (i, line) in text.lines().enumerate() {
            let error = |message: String| CdfError { line: i + 1, message };
            let content = line.split('#').next().unwrap_or("").trim();
            let columns: Vec<&str> = content
                .split(|c: char| c.is_whitespace() || c == ',')
                .filter(|c| !c.is_empty())
                .collect();
            let number = |text: &str| {
                let number = text.parse::<f64>().ok().filter(|x| x.is_finite());
                number.ok_or_else(|| error(format!("{text:?} is not a number")))
            };
            if columns.is_empty() {
                continue;
            }
            if columns.len() == 1 && width.is_none() && !has_mean {
                number(columns[0])?;
                has_mean = true;
                continue;
            }
            let expected = width.unwrap_or(columns.len());
            if columns.len() != expected || !(2..=3).contains(&expected) {
                return Err(error(format!(
                    "expected {}, found {content:?}",
                    match width {
                        Some(3) =>
                            "ns-2's three columns as above, bytes, index and cumulative \
                             probability",
                        Some(_) => "two columns as above, bytes and cumulative probability",
                        None =>
                            "two columns, bytes and cumulative probability, or ns-2's three with \
                             an index between",
                    }
                )));
            }
            width = Some(expected);
            points.push((number(columns[0])?, number(columns[expected - 1])?));
            lines.push(i + 1);
        }
        Cdf::checked(points, &lines, shape)
    }

    fn checked(
        mut points: Vec<(f64, f64)>,
        lines: &[usize],
        shape: Shape,
    ) -> Result<Cdf, CdfError> {
        let fail = |at: usize, message: String| {
            Err(CdfError { line: lines.get(at).copied().unwrap_or(1), message })
        };
        let Some(&(_, top)) = points.last() else {
            return fail(0, "there are no points".into());
        };
        let last = points.len() - 1;
        if top != 1.0 && top != 100.0 {
            let text = "the last cumulative probability must be 1 (or 100 for percent), found";
            return fail(last, format!("{text} {top}"));
        }
        let mut before = (0.0, 0.0);
        for (i, &(bytes, p)) in points.iter().enumerate() {
            if !(0.0..=1e15).contains(&bytes) {
                return fail(i, format!("{bytes} is no size in bytes"));
            }
            if !(0.0..=top).contains(&p) {
                return fail(i, format!("the cumulative probability {p} is outside 0 to {top}"));
            }
            let (x0, p0) = before;
            if bytes < x0 {
                return fail(i, format!("{bytes} bytes after {x0} bytes: sizes must not decrease"));
            }
            if p < p0 {
                let text = "cumulative probabilities must not decrease";
                return fail(i, format!("{p} after {p0}: {text}"));
            }
            before = (bytes, p);
        }
        if top == 100.0 {
            points.iter_mut().for_each(|p| p.1 /= 100.0);
        }
        Ok(Cdf { points, shape })
    }

    /// The built-in distribution of this name.
    pub fn builtin(name: &str) -> Option<Cdf> {
        let b = BUILTIN.iter().find(|b| b.name == name)?;
        Cdf::new(b.points.clone(), b.shape).ok()
    }

    /// The points, with probabilities from 0 to 1.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The form between them.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The mean size in bytes: Σ (pᵢ − pᵢ₋₁) (xᵢ + xᵢ₋₁) / 2 for a linear form, Σ (pᵢ − pᵢ₋₁) xᵢ
    /// for steps. Draws below the first probability have the first size.
    pub fn mean(&self) -> f64 {
        let (mut x0, mut p0) = (self.points[0].0, 0.0);
        let mut mean = 0.0;
        for &(x, p) in &self.points {
            let middle = if self.shape == Shape::Linear { (x + x0) / 2.0 } else { x };
            mean += (p - p0) * middle;
            (x0, p0) = (x, p);
        }
        mean
    }

    /// The size that a share `u` of the flows does not exceed, `u` in [0, 1).
    pub fn quantile(&self, u: f64) -> f64 {
        let i = self.points.partition_point(|&(_, p)| p <= u).min(self.points.len() - 1);
        let (x, p) = self.points[i];
        if i == 0 || self.shape == Shape::Steps {
            return x;
        }
        let (x0, p0) = self.points[i - 1];
        if p > p0 { x0 + (x - x0) * ((u - p0) / (p - p0)) } else { x }
    }

    /// The size of which larger flows carry half of all bytes.
    pub fn half_of_bytes(&self) -> f64 {
        let half = self.mean() / 2.0;
        let (mut x0, mut p0, mut carried) = (self.points[0].0, 0.0, 0.0);
        for &(x, p) in &self.points {
            let middle = if self.shape == Shape::Linear { (x + x0) / 2.0 } else { x };
            let bytes = (p - p0) * middle;
            if carried + bytes >= half {
                let lies_on_line = self.shape == Shape::Linear && x > x0;
                // Up to y a line's flows carry (p − p₀) (y² − x₀²) / 2 (x − x₀).
                let square = x0 * x0 + 2.0 * (half - carried) * (x - x0) / (p - p0);
                return if lies_on_line { square.sqrt() } else { x };
            }
            (x0, p0, carried) = (x, p, carried + bytes);
        }
        x0
    }

    /// Draws a size: the quantile of one uniform number, to the nearest byte and at least 1.
    pub fn sample(&self, random: &mut Stream) -> u64 {
        ((self.quantile(random.unit()) + 0.5) as u64).max(1)
    }
}

/// Flow sizes as a scenario names them.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeSpec {
    /// A built-in distribution.
    Builtin(&'static str),
    /// One size.
    Fixed(Bytes),
    /// A file of two columns.
    File {
        /// As written, relative to the scenario file.
        path: String,
        /// The form between its points.
        shape: Shape,
        /// A hash of the file's text: with it, a file that has changed since is an error.
        digest: Option<String>,
        /// Its points, once it is read.
        points: Option<Arc<Cdf>>,
    },
    /// Points in the scenario itself, or from a file that has few.
    Points(Arc<Cdf>),
}

impl Default for SizeSpec {
    fn default() -> Self {
        SizeSpec::Builtin("web-search")
    }
}

impl Field for SizeSpec {
    const FORM: Form = Form::Text;
    fn to_value(&self) -> Value {
        match self {
            SizeSpec::Builtin(name) => Value::Text((*name).into()),
            SizeSpec::Fixed(bytes) => Value::Bytes(*bytes),
            SizeSpec::File { path, .. } => Value::Text(path.clone()),
            SizeSpec::Points(_) => Value::Text("points".into()),
        }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        let text = match value {
            Value::Int(i) => return Ok(SizeSpec::Fixed(Bytes(*i))),
            Value::Bytes(b) => return Ok(SizeSpec::Fixed(*b)),
            Value::Text(text) => text,
            _ => {
                return Err(ValueError(
                    "expected the name of a distribution, a file or a size".into(),
                ));
            }
        };
        if let Some(b) = BUILTIN.iter().find(|b| b.name == text) {
            return Ok(SizeSpec::Builtin(b.name));
        }
        let error = match text.parse::<Bytes>() {
            Ok(bytes) => return Ok(SizeSpec::Fixed(bytes)),
            Err(e) => e,
        };
        if text.contains(['/', '.']) {
            return Ok(SizeSpec::File {
                path: text.clone(),
                shape: Shape::Linear,
                digest: None,
                points: None,
            });
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(ValueError(error.to_string()));
        }
        let names: Vec<&str> = BUILTIN.iter().map(|b| b.name).collect();
        let near = crate::error::suggestion(text, &names).unwrap_or_default();
        Err(ValueError(format!(
            "{text:?} is no distribution; {near}; a file's name has a dot or a slash"
        )))
    }
}

/// Sizes ready to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Always the same.
    Fixed(u64),
    /// From a distribution.
    Cdf(Arc<Cdf>),
}

impl Sizes {
    /// The mean in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => *bytes as f64,
            Sizes::Cdf(cdf) => cdf.mean(),
        }
    }
    /// The size of which larger flows carry half of all bytes.
    pub fn half_of_bytes(&self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => *bytes as f64,
            Sizes::Cdf(cdf) => cdf.half_of_bytes(),
        }
    }
    /// Draws one; a fixed size draws nothing.
    pub fn sample(&self, random: &mut Stream) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Cdf(cdf) => cdf.sample(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean(name: &str) -> f64 {
        Cdf::builtin(name).unwrap().mean()
    }

    /// By hand: sizes evenly from 0 to 100 carry half of their bytes above 100/√2; of nine flows of
    /// 1 and one of 11 bytes the one carries more than half.
    #[test]
    fn half_of_the_bytes_are_in_the_large_flows() {
        let even = Cdf::new(vec![(0.0, 0.0), (100.0, 1.0)], Shape::Linear).unwrap();
        assert!((even.half_of_bytes() - 100.0 / 2f64.sqrt()).abs() < 1e-9);
        let two = Cdf::new(vec![(1.0, 0.9), (11.0, 1.0)], Shape::Steps).unwrap();
        assert_eq!(two.half_of_bytes(), 11.0);
        let mining = Cdf::builtin("data-mining").unwrap();
        assert!(
            mining.half_of_bytes() > 10.0 * mining.quantile(0.95),
            "{}",
            mining.half_of_bytes()
        );
    }

    /// The means that the distributions' sources give.
    #[test]
    fn means_are_the_published_ones() {
        assert!((mean("web-search") - 1.711e6).abs() < 1e3, "{}", mean("web-search"));
        assert!(
            (mean("web-search-original") - 1.710e6).abs() < 1e3,
            "{}",
            mean("web-search-original")
        );
        assert!((mean("cache-follower") - 610e3).abs() < 5e3, "{}", mean("cache-follower"));
        // The full file's mean is 718,204.9 bytes; its main points come near.
        assert!(
            (mean("cache-follower-intra") - 718_204.9).abs() < 15e3,
            "{}",
            mean("cache-follower-intra")
        );
    }

    #[test]
    fn every_builtin_is_a_distribution_and_samples_its_mean() {
        for b in BUILTIN.iter() {
            let cdf = Cdf::builtin(b.name).unwrap();
            let mut random = Stream::new(1, b.name);
            let n = 400_000;
            let sampled = (0..n).map(|_| cdf.sample(&mut random) as f64).sum::<f64>() / n as f64;
            let tolerance = if b.name == "data-mining" { 0.05 } else { 0.02 };
            assert!(
                (sampled / cdf.mean() - 1.0).abs() < tolerance,
                "{}: {sampled} against {}",
                b.name,
                cdf.mean()
            );
        }
    }

    #[test]
    fn quantiles_by_hand() {
        let cdf =
            Cdf::parse("# bytes p\n100 0.5\n\n200, 0.5 # a jump\n400 1\n", Shape::Linear).unwrap();
        assert_eq!(
            [cdf.quantile(0.0), cdf.quantile(0.49), cdf.quantile(0.5), cdf.quantile(0.75)],
            [100.0, 100.0, 200.0, 300.0]
        );
        assert_eq!(cdf.mean(), 0.5 * 100.0 + 0.5 * 300.0);
        let steps = Cdf::new(vec![(100.0, 50.0), (400.0, 100.0)], Shape::Steps).unwrap();
        assert_eq!([steps.quantile(0.2), steps.quantile(0.6), steps.mean()], [100.0, 400.0, 250.0]);
        assert_eq!(
            Cdf::new(vec![(0.0, 1.0)], Shape::Linear).unwrap().sample(&mut Stream::new(1, "t")),
            1
        );
    }

    #[test]
    fn errors_name_their_line() {
        let line = |text: &str| Cdf::parse(text, Shape::Linear).unwrap_err();
        assert_eq!(line("").line, 1);
        assert_eq!(line("# c\n1 0\n2").line, 3);
        assert_eq!(line("1 0\nx 1").line, 2);
        assert_eq!(line("1 0\n5 0.5\n4 1").line, 3);
        assert_eq!(line("1 0.2\n5 0.1\n9 1").line, 2);
        assert_eq!(line("1 0\n9 0.9").line, 2);
        assert_eq!(line("1 0\n5 50\n9 1").line, 2);
        assert!(line("1 0\n9 nan").message.contains("not a number"));
        assert_eq!(line("-1 0\n9 1").line, 1);
    }

    /// ns-2's three columns, and Homa's two below a mean.
    #[test]
    fn forms_of_other_simulators_are_read() {
        let parse = |text: &str| Cdf::parse(text, Shape::Linear);
        let points = |text: &str| parse(text).unwrap().points().to_vec();
        assert_eq!(points("1000 1 0.1\n2000 1 1.0\n"), [(1000.0, 0.1), (2000.0, 1.0)]);
        assert_eq!(points("4\n10 0.5\n100 1\n"), [(10.0, 0.5), (100.0, 1.0)]);
        let mixed = parse("1000 1 0.1\n2000 1.0\n").unwrap_err();
        assert!(
            mixed.line == 2 && mixed.message.contains("ns-2's three columns as above"),
            "{mixed}"
        );
        let third = parse("10 0.5\n100 1 1\n").unwrap_err();
        assert!(third.line == 2 && third.message.contains("two columns as above"), "{third}");
        let four = parse("1 2 3 1\n").unwrap_err();
        assert!(four.line == 1 && four.message.contains("or ns-2's three"), "{four}");
        assert_eq!(parse("4\n5\n10 1\n").unwrap_err().line, 2);
    }

    #[test]
    fn names_sizes_and_files_are_told_apart() {
        let spec = |t: &str| SizeSpec::from_value(&Value::Text(t.into()));
        assert_eq!(spec("hadoop"), Ok(SizeSpec::Builtin("hadoop")));
        assert_eq!(spec("64KiB"), Ok(SizeSpec::Fixed(Bytes(65_536))));
        assert!(matches!(spec("cdf/x.txt"), Ok(SizeSpec::File { .. })));
        assert!(spec("web-serch").unwrap_err().0.contains("web-search"));
        assert!(spec("10 apples").unwrap_err().0.contains("KiB"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_distribution_or_an_error(text in "[0-9. #,a-e\\-\n]{0,80}") {
            if let Ok(cdf) = Cdf::parse(&text, Shape::Linear) {
                let mut random = Stream::new(1, "t");
                for _ in 0..20 {
                    let (low, high) = (cdf.points[0].0, cdf.points[cdf.points.len() - 1].0);
                    let s = cdf.sample(&mut random) as f64;
                    prop_assert!(s >= (low - 1.0) && s <= (high + 1.0).max(1.0));
                }
            }
        }
    }
}
