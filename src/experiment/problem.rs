//! What is wrong with a file, where, and what would be right; and how that is shown.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;

use super::Source;

/// One fault or doubt about an experiment file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// Bytes of the file's text; always inside it.
    pub span: Span,
    /// Whether the file can be used at all.
    pub severity: Severity,
    /// What is wrong, with which thing.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
}

/// Bytes of a text, from `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Span {
            start: range.start,
            end: range.end,
        }
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is started.
    Error,
    /// It runs, but perhaps does not show what it should.
    Warning,
}

impl Problem {
    /// A fault with its remedy.
    pub(super) fn error(
        span: impl Into<Span>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Problem {
        Problem {
            span: span.into(),
            severity: Severity::Error,
            message: message.into(),
            hint: Some(hint.into()).filter(|hint| !hint.is_empty()),
        }
    }

    /// A doubt with what would remove it.
    pub(super) fn warning(
        span: impl Into<Span>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Problem {
        Problem {
            severity: Severity::Warning,
            ..Problem::error(span, message, hint)
        }
    }

    /// The place as `line` and `column`, both from 1; columns count characters.
    pub fn place(&self, source: &Source) -> (usize, usize) {
        let start = floor(&source.text, self.span.start);
        let before = &source.text[..start];
        let line = before.matches('\n').count() + 1;
        let from = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[from..]
            .trim_start_matches('\u{feff}')
            .chars()
            .count()
            + 1;
        (line, column)
    }
}

/// Shows a problem as plain text: `error: …`, `file:line:column`, the line with a caret, the hint.
pub fn render(problem: &Problem, source: &Source) -> String {
    let (line, _) = problem.place(source);
    let text = &source.text;
    let start = floor(text, problem.span.start);
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    // A byte order mark has no width, and would shift the caret.
    let from =
        from + text[from..start].len() - text[from..start].trim_start_matches('\u{feff}').len();
    let shown = text[from..].lines().next().unwrap_or_default();
    let shown = shown.trim_end_matches('\r');
    let caret_from = (start - from).min(shown.len());
    let caret_to = floor(text, problem.span.end.max(start)) - from;
    let caret_to = caret_to.clamp(caret_from, shown.len());
    let path = visible(&source.path.display().to_string());
    let message = visible(&problem.message);
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level.primary_title(message.as_str()).element(
        Snippet::source(shown)
            .line_start(line)
            .path(path.as_str())
            .annotation(AnnotationKind::Primary.span(caret_from..caret_to)),
    );
    let hint = problem.hint.as_deref().map(visible);
    if let Some(hint) = &hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    Renderer::plain().render(&[group])
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Text from a file, with control characters made visible so that it can't drive a terminal.
pub(super) fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = (c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
                .then(|| c.escape_default().to_string());
            escaped
                .unwrap_or_else(|| c.to_string())
                .chars()
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source {
            path: "x.toml".into(),
            text: text.into(),
            sha256: String::new(),
        }
    }

    #[test]
    fn a_problem_shows_its_line_and_a_caret() {
        let source = source("[a]\r\nkey = 1\r\n");
        let problem = Problem::error(5..8, "unknown key `key`", "did you mean `k`?");
        assert_eq!(
            render(&problem, &source),
            "error: unknown key `key`\n --> x.toml:2:1\n  |\n2 | key = 1\n  | ^^^\n  |\n  = help: did you mean `k`?"
        );
    }

    #[test]
    fn a_byte_order_mark_does_not_shift_the_caret() {
        let source = source("\u{feff}key = 1");
        let problem = Problem::error(3..6, "m", "");
        assert_eq!(problem.place(&source), (1, 1));
        assert!(render(&problem, &source).contains("1 | key = 1\n  | ^^^"));
    }

    #[test]
    fn spans_outside_the_text_and_control_characters_do_no_harm() {
        let source = source("é = \"\u{1b}[31m\"");
        for span in [0..1, 1..1, 5..900, 800..900] {
            let shown = render(&Problem::warning(span, "bad \u{1b}[2J", "h\n\ni"), &source);
            assert!(!shown.contains('\u{1b}'), "{shown:?}");
        }
        assert!(
            render(
                &Problem::error(0..0, "empty", ""),
                &super::tests::source("")
            )
            .contains("x.toml:1:1")
        );
    }
}
