//! The values on the command line: flow sets, sizes, rates, durations. One megabyte is 1,048,576
//! bytes and one kilobyte 1,024, as in the published experiments ("1MB" and "10KB" requests); rates
//! are decimal.

use std::time::Duration;

/// Why something on the command line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Neither digits nor a decimal number where one is needed.
    #[error("`{0}` does not begin with a number")]
    Number(String),
    /// A number with letters behind it that are no unit.
    #[error("`{given}` has no unit that is known here: {known}")]
    Unit {
        /// The given text.
        given: String,
        /// The units that could be.
        known: &'static str,
    },
    /// Zero, or more than can be.
    #[error("`{0}` is out of range")]
    Range(String),
    /// Not COUNTxSIZE, or COUNTxSIZE/TIME.
    #[error("`{0}` is no COUNTxSIZE such as 8x1MB, or COUNTxSIZE/TIME such as 1x10KB/100ms")]
    Class(String),
}

/// Flows whose requests have one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowClass {
    /// How many flows, each with one request outstanding.
    pub flows: usize,
    /// Bytes of a request.
    pub size: u64,
    /// The least time from the begin of a request to that of the next; none: it follows the reply.
    pub every: Option<Duration>,
}

/// Reads `8x1MB,1x10KB`, or `1x10KB/100ms`: a request every 100 ms at most.
pub fn flow_set(text: &str) -> Result<Vec<FlowClass>, UnitError> {
    text.split(',').map(flow_class).collect()
}

fn flow_class(text: &str) -> Result<FlowClass, UnitError> {
    let text = text.trim();
    let (load, every) =
        text.split_once('/').map_or((text, None), |(load, every)| (load, Some(every)));
    let (flows, size) = load.split_once('x').ok_or_else(|| UnitError::Class(text.into()))?;
    let flows: usize = flows.parse().map_err(|_| UnitError::Class(text.into()))?;
    if flows == 0 || flows > 10_000 {
        return Err(UnitError::Range(text.into()));
    }
    let every = every.map(duration).transpose()?;
    if every.is_some_and(|every| every.is_zero()) {
        return Err(UnitError::Range(text.into()));
    }
    Ok(FlowClass { flows, size: bytes(size)?, every })
}

/// Reads `1MB`, `10KB` or `1500B`; at least one byte, at most 1 GB.
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    let units = [("B", 1.0), ("KB", 1024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0)];
    let value = scaled(text, &units, "B, KB, MB, GB")?;
    if (1.0..=1_073_741_824.0).contains(&value) {
        Ok(value as u64)
    } else {
        Err(UnitError::Range(text.into()))
    }
}

/// Reads `950Mbps` or `1.5Gbps`, in bits a second.
pub fn rate(text: &str) -> Result<f64, UnitError> {
    let units = [("bps", 1.0), ("kbps", 1e3), ("mbps", 1e6), ("gbps", 1e9)];
    let value = scaled(&text.to_ascii_lowercase(), &units, "bps, kbps, Mbps, Gbps")?;
    if (1.0..=1e12).contains(&value) { Ok(value) } else { Err(UnitError::Range(text.into())) }
}

/// Reads `5ms`, `3s` or `50us`; at most a day.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let value = scaled(text, &units, "ns, us, ms, s")?;
    if value <= 86_400.0 {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(UnitError::Range(text.into()))
    }
}

fn scaled(text: &str, units: &[(&str, f64)], known: &'static str) -> Result<f64, UnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| UnitError::Number(text.into()))?;
    let (_, scale) = units
        .iter()
        .find(|(name, _)| *name == unit.trim())
        .ok_or_else(|| UnitError::Unit { given: text.into(), known })?;
    Ok(number * scale)
}

/// How a size is shown: as it was written.
pub fn show_bytes(size: u64) -> String {
    match size {
        s if s % 1_048_576 == 0 => format!("{}MB", s / 1_048_576),
        s if s % 1024 == 0 => format!("{}KB", s / 1024),
        s => format!("{s}B"),
    }
}

/// How a flow set is shown: as it was written.
pub fn show_flow_set(classes: &[FlowClass]) -> String {
    let show = |class: &FlowClass| {
        let every = class.every.map(|every| format!("/{every:?}")).unwrap_or_default();
        format!("{}x{}{every}", class.flows, show_bytes(class.size))
    };
    classes.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_sets_are_read_and_shown_alike() {
        let set = flow_set("8x1MB,1x10KB").unwrap();
        let of = |flows, size| FlowClass { flows, size, every: None };
        assert_eq!(set, [of(8, 1_048_576), of(1, 10_240)]);
        assert_eq!(show_flow_set(&set), "8x1MB,1x10KB");
        assert_eq!(show_flow_set(&flow_set("2x1500B").unwrap()), "2x1500B");
        let paused = flow_set("1x10KB/100ms,2x1B/1.5ms").unwrap();
        assert_eq!(
            paused[0],
            FlowClass { every: Some(Duration::from_millis(100)), ..of(1, 10_240) }
        );
        assert_eq!(show_flow_set(&paused), "1x10KB/100ms,2x1B/1.5ms");
    }

    #[test]
    fn what_is_no_flow_set_is_an_error() {
        for text in [
            "",
            "8",
            "8x",
            "x1MB",
            "0x1MB",
            "1x0B",
            "1x1furlong",
            "1x1MB,",
            "-1x1MB",
            "1x2GB",
            "1x1KB/",
            "1x1KB/0ms",
        ] {
            assert!(flow_set(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_durations() {
        assert_eq!(rate("1.5Gbps"), Ok(1.5e9));
        assert_eq!(rate("10gbps"), Ok(1e10));
        assert!(matches!(rate("10 furlongs"), Err(UnitError::Unit { .. })));
        assert_eq!(duration("5ms"), Ok(Duration::from_millis(5)));
        assert!(matches!(duration("fast"), Err(UnitError::Number(_))));
    }
}
