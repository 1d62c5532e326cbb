//! The sizes by which slowdown is reported: so many bins of equal count, or given edges.

use millpond_core::Bytes;
use millpond_core::params::{Field, Form, Value, ValueError};

/// More bins than this show less than the flows themselves.
const BINS_MAX: usize = 1_000;

/// How flow sizes are cut into bins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeBins {
    /// Into so many, with as many flows each as sizes allow.
    Equal(u32),
    Edges(Vec<Bytes>),
}

impl Default for SizeBins {
    fn default() -> Self {
        SizeBins::Equal(20)
    }
}

impl Field for SizeBins {
    const FORM: Form = Form::List;
    fn to_value(&self) -> Value {
        match self {
            SizeBins::Equal(count) => Value::Int(u64::from(*count)),
            SizeBins::Edges(edges) => Value::List(edges.iter().map(Bytes::to_string).collect()),
        }
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        let edges = |texts: Vec<&str>| -> Option<Vec<Bytes>> {
            texts.iter().map(|text| text.trim().parse().ok()).collect()
        };
        let edges = match value {
            Value::Int(count) if (1..=BINS_MAX as u64).contains(count) => {
                return Ok(SizeBins::Equal(*count as u32));
            }
            Value::Text(text) => edges(text.split(',').collect()),
            Value::List(list) => edges(list.iter().map(String::as_str).collect()),
            _ => None,
        };
        let ascend = |edges: &Vec<Bytes>| {
            (1..=BINS_MAX).contains(&edges.len())
                && edges[0] > Bytes(0)
                && edges.windows(2).all(|pair| pair[0] < pair[1])
        };
        let message = format!(
            "expected a number of bins up to {BINS_MAX}, or sizes that ascend such as [\"10KB\", \
             \"100KB\", \"1MB\"]"
        );
        edges.filter(ascend).map(SizeBins::Edges).ok_or(ValueError(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_edges_are_read_and_written() {
        let text = |t: &str| Value::Text(t.into());
        let edges = SizeBins::Edges(vec![Bytes(10_000), Bytes(1_000_000)]);
        assert_eq!(SizeBins::from_value(&text("10KB, 1MB")), Ok(edges.clone()));
        for bins in [edges, SizeBins::Equal(7), SizeBins::default()] {
            assert_eq!(SizeBins::from_value(&bins.to_value()), Ok(bins));
        }
        for bad in [
            Value::Int(0),
            Value::Int(5_000),
            text("1MB,10KB"),
            text("1MB,1MB"),
            text("0B"),
            text("many"),
            Value::Off,
        ] {
            assert!(SizeBins::from_value(&bad).is_err(), "{bad:?}");
        }
    }
}
