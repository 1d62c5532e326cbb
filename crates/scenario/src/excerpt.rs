//! The few lines around a place in a text, for a message: the line with the place, cut to what a
//! terminal shows, between its neighbours.
//!
//! Invariant: an excerpt is short however long the text and its lines are, and gives the place's
//! line and column in the whole text.

use crate::source::SourceText;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// Longer lines are cut.
const LINE_MAX: usize = 200;
/// The lengths that are kept of a cut line before its place, of the place, and behind it.
const KEPT: (usize, usize, usize) = (60, 80, 40);

/// Lines of a text.
#[derive(Clone, Debug)]
pub(crate) struct Excerpt {
    pub name: String,
    text: String,
    /// Lines of the whole text before the excerpt.
    before: usize,
    /// The place's column, from 0.
    column: usize,
}

impl Excerpt {
    /// Around the place from `start` to `end`, which is at `line` and `column` (from 1). Gives the
    /// place within the excerpt, too: of a place that is longer than its line, what is in that
    /// line.
    pub fn new(
        source: &SourceText,
        start: usize,
        end: usize,
        line: usize,
        column: usize,
    ) -> (Excerpt, SourceSpan) {
        let text = &*source.text;
        let from = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let to = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let above = (from > 0).then(|| text[..from - 1].rsplit('\n').next().unwrap_or(""));
        let below = (to < text.len()).then(|| text[to + 1..].split('\n').next().unwrap_or(""));
        let mut excerpt = above.map(|line| cut(line).to_string() + "\n").unwrap_or_default();
        let end = end.clamp(start, to);
        let (first, last) = if to - from <= LINE_MAX {
            (from, to)
        } else {
            let first = start.saturating_sub(KEPT.0).max(from);
            (boundary(text, first), boundary(text, (end.min(start + KEPT.1) + KEPT.2).min(to)))
        };
        excerpt.push_str(if first > from { "… " } else { "" });
        let at = excerpt.len() + start - first;
        excerpt.push_str(&text[first..last]);
        let span = SourceSpan::from((at, end.min(last) - start));
        excerpt.push_str(if last < to { " …" } else { "" });
        if let Some(below) = below {
            excerpt.push('\n');
            excerpt.push_str(cut(below));
        }
        let before = line - 1 - usize::from(above.is_some());
        (Excerpt { name: source.name.clone(), text: excerpt, before, column: column - 1 }, span)
    }
}

/// The beginning of a line.
fn cut(line: &str) -> &str {
    if line.len() <= LINE_MAX { line } else { &line[..boundary(line, LINE_MAX)] }
}

/// The last boundary of a character up to `at`.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, lines_before, lines_after)?;
        // A reader of the place alone requests no context.
        let column =
            if lines_before == 0 && lines_after == 0 { self.column } else { inner.column() };
        let (line, count) = (inner.line() + self.before, inner.line_count());
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            line,
            column,
            count,
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Sources, Span};
    use proptest::prelude::*;

    fn of(text: &str, start: usize, end: usize) -> (Excerpt, SourceSpan, (usize, usize)) {
        let mut sources = Sources::default();
        let source = sources.add("t", text);
        let source = sources.get(Span { source, start: 0, end: 0 });
        let place = source.line_column(start);
        let (excerpt, span) = Excerpt::new(source, start, end, place.0, place.1);
        (excerpt, span, place)
    }

    #[test]
    fn short_lines_are_whole() {
        let (excerpt, span, _) = of("a = 1\nbb = 2\nc = 3\nd = 4\n", 11, 12);
        assert_eq!((excerpt.text.as_str(), excerpt.before), ("a = 1\nbb = 2\nc = 3", 0));
        assert_eq!(&excerpt.text[span.offset()..span.offset() + span.len()], "2");
        assert_eq!(of("x", 0, 1).0.text, "x");
        assert_eq!(of("", 0, 0).0.text, "");
    }

    #[test]
    fn a_place_far_to_the_right_keeps_its_column() {
        let text = format!("# é\n{}wrong{}\nnext", "-".repeat(70_000), "+".repeat(70_000));
        let at = text.find("wrong").unwrap();
        let (excerpt, span, place) = of(&text, at, at + 5);
        assert_eq!(place, (2, 70_001));
        assert!(excerpt.text.len() < 400, "{}", excerpt.text);
        assert_eq!(&excerpt.text[span.offset()..span.offset() + span.len()], "wrong");
        let contents = excerpt.read_span(&span, 0, 0).unwrap();
        assert_eq!((contents.line(), contents.column()), (1, 70_000));
    }

    proptest! {
        #[test]
        fn any_place_in_any_text(
            text in "(a|é|\n|-{90}){0,12}",
            from in any::<prop::sample::Index>(),
            len in 0usize..400,
        ) {
            let start = boundary(&text, from.index(text.len() + 1));
            let end = boundary(&text, (start + len).min(text.len()));
            let (excerpt, span, place) = of(&text, start, end);
            prop_assert!(excerpt.text.len() <= 3 * (LINE_MAX + 20));
            prop_assert!(excerpt.text.get(span.offset()..span.offset() + span.len()).is_some());
            prop_assert!(
                text[start..].starts_with(&excerpt.text[span.offset()..span.offset() + span.len()])
            );
            let contents = excerpt.read_span(&span, 0, 0).unwrap();
            prop_assert_eq!((contents.line() + 1, contents.column() + 1), place);
        }
    }
}
