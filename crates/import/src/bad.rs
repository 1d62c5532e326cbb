//! Seeded damage to texts, for tests that no bad file ends a program.

use millpond_core::random::Stream;

/// Words at the edges of what readers take.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "1e-300",
    "9e15",
    "0.5",
    "nan",
    "inf",
    "1ps",
    "1Tbps",
    "->",
    "0->1",
    "#",
    "é\u{fffd}",
];

/// The text with one to four words, lines or characters changed.
pub(crate) fn damaged(text: &str, random: &mut Stream) -> String {
    let mut below = |bound: usize| random.below(bound.max(1) as u64) as usize;
    let mut text = text.to_string();
    for _ in 0..1 + below(4) {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        let at = below(lines.len());
        match (below(8), lines.get_mut(at)) {
            (_, None) => {}
            (0, _) => drop(lines.remove(at)),
            (1, Some(line)) => {
                let again = line.clone();
                lines.insert(below(at + 1), again);
            }
            (2, Some(line)) => {
                let end = below(line.chars().count() + 1);
                *line = line.chars().take(end).collect();
            }
            (_, Some(line)) => {
                let mut words: Vec<&str> = line.split_whitespace().collect();
                let place = below(words.len());
                if let Some(word) = words.get_mut(place) {
                    *word = WORDS[below(WORDS.len())];
                }
                *line = words.join(" ");
            }
        }
        text = lines.join("\n");
    }
    text
}
