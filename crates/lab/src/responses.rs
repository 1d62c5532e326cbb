//! Response times in a program's output: a number of microseconds a line.
//!
//! Invariant: memory holds one unfinished line at most, and no more than [`LINE`] bytes of it.

use millpond_core::Time;

/// The longest line that can be a number.
const LINE: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct Responses {
    /// The line that has not ended yet; its first bytes.
    line: Vec<u8>,
    /// Lines that are no number, and the first of them.
    wrong: u64,
    first: String,
}

impl Responses {
    /// Takes output, and passes the times of its complete lines on.
    pub fn read(&mut self, bytes: &[u8], take: &mut dyn FnMut(Time)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.last() != Some(&b'\n') {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let text = String::from_utf8_lossy(&line);
            match text.trim().parse::<f64>() {
                Ok(us) if us.is_finite() && us >= 0.0 => take(Time::from_ps((us * 1e6) as u64)),
                _ if self.wrong == 0 => (self.wrong, self.first) = (1, text.trim().to_string()),
                _ => self.wrong += 1,
            }
        }
    }

    /// The warning of lines that are no response times.
    pub fn warning(&self, program: &str) -> Option<String> {
        let Responses { wrong, first, .. } = self;
        let text = format!(
            "program {program}: {wrong} lines of its output are no response times in microseconds \
             (first: {first:?})"
        );
        (*wrong > 0).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &[&str]) -> (Vec<u64>, Responses) {
        let (mut responses, mut times) = (Responses::default(), Vec::new());
        for part in parts {
            responses.read(part.as_bytes(), &mut |time: Time| times.push(time.as_ps()));
        }
        (times, responses)
    }

    #[test]
    fn lines_are_joined_over_reads() {
        let (times, responses) = read(&["12", ".5\n 3 \n4", "0", "\n7"]);
        assert_eq!(times, [12_500_000, 3_000_000, 40_000_000], "the last line has not ended");
        assert_eq!(responses.warning("a"), None);
    }

    #[test]
    fn other_lines_are_counted_and_the_first_is_quoted() {
        let long = "9".repeat(1000) + "\n";
        let (times, responses) = read(&["hello\n", "-1\nnan\n5\n\n", &long]);
        assert_eq!(times.len(), 2, "9s beyond the line's bound are cut");
        let warning = responses.warning("a").unwrap();
        assert!(warning.contains("4 lines") && warning.contains("\"hello\""), "{warning}");
    }
}
