//! The sentences of pages and tables.

/// The words of this name in `words.txt`, with values in the places of `{}`.
pub(crate) fn words(name: &str, values: &[&str]) -> String {
    let lines = include_str!("words.txt").lines();
    let found = lines.filter_map(|line| line.split_once(": ")).find(|(own, _)| *own == name);
    debug_assert!(found.is_some(), "no words of the name {name}");
    let mut parts = found.map_or("", |(_, text)| text).split("{}");
    let first = parts.next().unwrap_or_default().to_string();
    let values = values.iter().chain(std::iter::repeat(&""));
    parts.zip(values).fold(first, |text, (part, value)| text + value + part)
}
