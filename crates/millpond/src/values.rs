//! The values of a key that a grid or a comparison gives: a list with commas, whose members may be
//! ranges `FROM..TO/STEP`.
//!
//! Invariant: the values of a range are exact decimals, written as a person would: 0.6, never
//! 0.6000000000000001.

/// More values than this are a slip.
const VALUES_MAX: i128 = 10_000;

/// All values of a text.
pub(crate) fn values(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for part in split(text) {
        match range(part)? {
            Some(values) => all.extend(values),
            None => all.push(part.to_string()),
        }
    }
    Ok(all)
}

/// Splits at commas that are outside of brackets, braces and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut from, mut parts) = (0i32, false, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// A decimal number with its unit: 0.25 is 25 of hundredths.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decimal<'a> {
    digits: i128,
    /// How many of the digits stand behind the point.
    places: u32,
    unit: &'a str,
}

impl<'a> Decimal<'a> {
    /// `None` where the text begins with no number.
    fn parse(text: &'a str) -> Option<Decimal<'a>> {
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_' || c == '-'))
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number = number.replace('_', "");
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if whole.trim_start_matches('-').is_empty() || fraction.len() > 12 {
            return None;
        }
        let digits = format!("{whole}{fraction}")
            .parse()
            .ok()
            .filter(|digits: &i128| digits.abs() < 1 << 64)?;
        Some(Decimal { digits, places: fraction.len() as u32, unit: unit.trim() })
    }
    /// Its digits, if so many of them stand behind the point.
    fn at(self, places: u32) -> i128 {
        self.digits * 10i128.pow(places - self.places)
    }
}

/// The values of a range; `None` where the text is none.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let (to, step) = rest.split_once('/').map_or((rest, None), |(to, step)| (to, Some(step)));
    let (Some(from), Some(to)) = (Decimal::parse(from), Decimal::parse(to)) else {
        return Ok(None);
    };
    let step = match step.map(Decimal::parse) {
        Some(Some(step)) => step,
        Some(None) => {
            return Err(format!(
                "{text}: the step is no number; write FROM..TO/STEP, such as 0.2..0.8/0.2"
            ));
        }
        None if from.places.max(to.places) == 0 => Decimal { digits: 1, places: 0, unit: "" },
        None => {
            return Err(format!("{text} has no step; write FROM..TO/STEP, such as 0.2..0.8/0.2"));
        }
    };
    let units = [from.unit, to.unit, step.unit];
    let unit = units.into_iter().find(|unit| !unit.is_empty()).unwrap_or("");
    if units.into_iter().any(|other| !other.is_empty() && other != unit) {
        return Err(format!("{text} mixes units; write all in one, such as 10us..50us/10us"));
    }
    let places = from.places.max(to.places).max(step.places);
    let (first, last, by) = (from.at(places), to.at(places), step.at(places));
    if by <= 0 || last < first {
        return Err(format!(
            "{text} is no range; write FROM..TO/STEP with FROM ≤ TO and a step above 0"
        ));
    }
    if (last - first) / by >= VALUES_MAX {
        return Err(format!("{text} is more than {VALUES_MAX} values"));
    }
    let count = (last - first) / by;
    Ok(Some((0..=count).map(|n| decimal_text(first + n * by, places) + unit).collect()))
}

/// A decimal as a person writes it.
fn decimal_text(digits: i128, places: u32) -> String {
    let one = 10i128.pow(places);
    let sign = if digits < 0 { "-" } else { "" };
    let (whole, fraction) = (digits.abs() / one, digits.abs() % one);
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{fraction:0width$}", width = places as usize);
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        values(text).unwrap()
    }

    #[test]
    fn commas_within_tables_do_not_split() {
        assert_eq!(of("a, b,c"), ["a", "b", "c"]);
        assert_eq!(of("{ kind = \"x\", y = [1, 2] },off"), ["{ kind = \"x\", y = [1, 2] }", "off"]);
    }

    #[test]
    fn ranges_are_exact_and_read_well() {
        assert_eq!(of("0.2..0.8/0.2"), ["0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(of("0.1..0.3/0.1, 0.5"), ["0.1", "0.2", "0.3", "0.5"]);
        assert_eq!(of("0..1/0.25"), ["0", "0.25", "0.5", "0.75", "1"]);
        assert_eq!(of("8..11"), ["8", "9", "10", "11"]);
        assert_eq!(of("10us..50us/20us"), ["10us", "30us", "50us"]);
        assert_eq!(of("10..50us/20"), ["10us", "30us", "50us"]);
        assert_eq!(of("0.2..0.9/0.2").last().unwrap(), "0.8");
        assert_eq!(of("-1..1"), ["-1", "0", "1"]);
        assert_eq!(of("3..3"), ["3"]);
        // All hundredths there are, each as its shortest text.
        let all = of("0.01..1/0.01");
        assert!(
            all.len() == 100
                && all.iter().enumerate().all(|(i, v)| *v == ((i + 1) as f64 / 100.0).to_string())
        );
    }

    #[test]
    fn what_only_looks_like_a_range_is_a_value() {
        assert_eq!(of("a..b,../x.csv,\"0-1\""), ["a..b", "../x.csv", "\"0-1\""]);
    }

    #[test]
    fn slips_are_told() {
        let wrong = |text: &str| values(text).unwrap_err();
        assert!(wrong("0.2..0.8").contains("no step"));
        assert!(wrong("0.8..0.2/0.2").contains("FROM ≤ TO"));
        assert!(wrong("1..2/0").contains("above 0"));
        assert!(wrong("1us..2ms/1us").contains("mixes units"));
        assert!(wrong("1..2/x").contains("step is no number"));
        assert!(wrong("1..1000000000").contains("more than"));
    }
}
