//! Paths of the book's pages where there is no clone of the repository.

use std::path::Path;

/// A file that each copy of the book has.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The folder of the Debian package.
const PACKAGED: &str = "/usr/share/doc/millpond/";

/// The text with paths such as `docs/results.md` that lead somewhere from the current folder: they
/// stay in a clone, are those of the package where it is installed, and name the page elsewhere.
pub fn located(text: &str) -> String {
    match Path::new(SUMMARY).is_file() {
        true => text.to_string(),
        false if Path::new(PACKAGED).join(SUMMARY).is_file() => {
            replaced(text, &format!("{PACKAGED}docs/"))
        }
        false => replaced(text, "the book's page "),
    }
}

fn replaced(text: &str, folder: &str) -> String {
    let place = |word: &str| match word.strip_prefix("docs/") {
        Some(page) if page.contains(".md") => format!("{folder}{page}"),
        _ => word.to_string(),
    };
    text.split_inclusive([' ', '(', '\n']).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_pages_alone_are_replaced() {
        let text = "see docs/a.md (docs/b/c.md#d), and /x/docs/e.md, docs/f.csv\ndocs/g.md";
        let found = replaced(text, "page ");
        let right = "see page a.md (page b/c.md#d), and /x/docs/e.md, docs/f.csv\npage g.md";
        assert_eq!(found, right);
    }
}
