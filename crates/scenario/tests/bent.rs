//! Texts with mistakes, for readers that must survive all of them.

use proptest::sample::Index;

/// A text with some lines gone (0), doubled (1), or with one of `values` (from 2) after their `=`.
pub fn bent(text: &str, changes: Vec<(Index, usize)>, values: &[&str]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for (at, change) in changes {
        let i = at.index(lines.len());
        match change {
            0 => {
                lines.remove(i);
            }
            1 => {
                let line = lines[i].clone();
                lines.insert(i, line);
            }
            _ => {
                if let Some((key, _)) = lines[i].clone().split_once('=') {
                    lines[i] = format!("{key}= {}", values[change - 2]);
                }
            }
        }
    }
    lines.join("\n")
}
