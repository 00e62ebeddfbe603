//! Text from outside made harmless: for Markdown, for HTML, for XML.
//!
//! Names, log lines and response bodies may hold anything. What comes out of here shows everything it was given (hidden
//! characters become visible marks) and can never end a cell, open a tag or start a block.

use std::fmt::Write as _;

/// Longest text that is printed in full, in characters.
pub const LONGEST: usize = 600;

/// Makes hidden characters visible and cuts what is very long, with a mark that says how much was cut.
///
/// Line ends become `⏎`; control, bidirectional and invisible characters become `⟨U+202E⟩`.
pub fn visible(text: &str) -> String {
    visible_within(text, LONGEST)
}

/// [`visible`] with a limit in characters of the input.
pub fn visible_within(text: &str, limit: usize) -> String {
    let text = text.trim();
    let mut out = String::with_capacity(text.len().min(4 * limit));
    let mut chars = text.chars().peekable();
    let mut taken = 0;
    while let Some(c) = chars.next() {
        if taken == limit {
            let more = 1 + chars.count();
            let _ = write!(out, "… ({more} more characters)");
            break;
        }
        taken += 1;
        match c {
            '\t' => out.push(' '),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{b}' | '\u{c}' => out.push('⏎'),
            c if is_hidden(c) => {
                let _ = write!(out, "⟨U+{:04X}⟩", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}' | '\u{ffff}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text of several lines on one: `a; b; c`.
pub fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let mut out = String::with_capacity(text.len());
    for (i, line) in lines.iter().enumerate() {
        match out.chars().last() {
            _ if i == 0 => {}
            Some(':' | ';' | ',' | '.') => out.push(' '),
            _ => out.push_str("; "),
        }
        out.push_str(line);
    }
    out
}

/// The head of a long text with a mark, for a place that has room for a glance only.
pub fn glance(text: &str, most: usize) -> String {
    let text = one_line(text);
    if text.chars().count() <= most {
        return text;
    }
    let head: String = text.chars().take(most).collect();
    let cut = head.rfind(' ').filter(|at| *at > most / 2);
    format!(
        "{}…",
        head[..cut.unwrap_or(head.len())].trim_end_matches([',', ';', ':', ' '])
    )
}

/// Text for Markdown: inline, on one line, without any markup of its own; safe in a table's cell and at a line's start.
pub fn markdown(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + 8);
    let letters: Vec<char> = text.chars().collect();
    for (i, &c) in letters.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|j| letters.get(j));
        let after = letters.get(i + 1);
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' => out.push_str("\\|"),
            '$' => out.push_str("&#36;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '[' | ']' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // Inside a word an underscore is only an underscore.
            '_' if before.is_some_and(|c| c.is_ascii_alphanumeric())
                && after.is_some_and(|c| c.is_ascii_alphanumeric()) =>
            {
                out.push('_');
            }
            '_' => out.push_str("\\_"),
            // Bare addresses become links on some sites.
            '/' if after == Some(&'/') && before == Some(&':') => out.push_str("&#47;"),
            '.' if ends_with_www(&letters[..i]) => out.push_str("&#46;"),
            '.' | ')' if starts_a_list(&letters[..i]) && after.is_none_or(|c| *c == ' ') => {
                out.push('\\');
                out.push(c);
            }
            '#' | '+' | '-' | '=' if i == 0 => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn ends_with_www(head: &[char]) -> bool {
    head.len() >= 3
        && head[head.len() - 3..]
            .iter()
            .all(|c| matches!(c, 'w' | 'W'))
}

fn starts_a_list(head: &[char]) -> bool {
    !head.is_empty() && head.len() <= 9 && head.iter().all(char::is_ascii_digit)
}

/// A code span for Markdown: back-ticks where the text allows it, `<code>` with entities where it doesn't.
pub fn markdown_code(text: &str) -> String {
    let text = visible(text);
    if text.is_empty() {
        return String::new();
    }
    let plain = |c: char| !matches!(c, '`' | '|' | '<' | '>' | '&' | '\\');
    if text.chars().all(plain) {
        return format!("`{text}`");
    }
    let mut out = String::from("<code>");
    for c in text.chars() {
        if c.is_ascii_punctuation()
            && !matches!(
                c,
                ',' | ';' | '\'' | '(' | ')' | '%' | '/' | '?' | '=' | '"' | '.' | ':'
            )
            || (c == '/' && out.ends_with(':'))
            || (c == '.' && out.ends_with("www"))
        {
            let _ = write!(out, "&#{};", c as u32);
        } else {
            out.push(c);
        }
    }
    out.push_str("</code>");
    out
}

/// Text for HTML and XML, in an element or a quoted attribute.
pub fn html(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Whether `text` may stand as a link: http or https, and nothing in it that any of our formats reads as markup.
pub fn is_link(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
        && text.len() <= 500
        && text.chars().all(|c| {
            c.is_ascii_alphanumeric()
                || matches!(
                    c,
                    ':' | '/' | '.' | '-' | '_' | '~' | '?' | '#' | '=' | '%' | '+' | ',' | ';'
                )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hidden_characters_become_visible_and_long_lines_are_cut_with_a_mark() {
        assert_eq!(visible("a\0b\u{202e}c\nd\r\ne"), "a⟨U+0000⟩b⟨U+202E⟩c⏎d⏎e");
        let long = "x".repeat(10_000);
        let cut = visible(&long);
        assert!(cut.ends_with("… (9400 more characters)"), "{cut}");
    }

    #[test]
    fn several_lines_become_one_and_a_glance_says_that_it_is_cut() {
        assert_eq!(one_line("differ:\n  a\n\n  b\n"), "differ: a; b");
        assert_eq!(glance("short", 20), "short");
        assert_eq!(glance("a word, another word", 10), "a word…");
        assert_eq!(glance(&"é".repeat(30), 10), format!("{}…", "é".repeat(10)));
    }

    #[test]
    fn markdown_has_no_markup_left() {
        for (text, want) in [
            ("a|b", "a\\|b"),
            ("<script>", "&lt;script&gt;"),
            ("`x`", "\\`x\\`"),
            ("status_5xx _em_", "status_5xx \\_em\\_"),
            ("# head", "\\# head"),
            ("1. item", "1\\. item"),
            ("1.5 s", "1.5 s"),
            ("https://x.y", "https:&#47;/x.y"),
            ("www.x.y", "www&#46;x.y"),
            ("[a](b)", "\\[a\\](b)"),
        ] {
            assert_eq!(markdown(text), want);
        }
    }

    #[test]
    fn code_that_back_ticks_cannot_hold_is_spelled_in_entities() {
        assert_eq!(markdown_code("a == b"), "`a == b`");
        assert_eq!(markdown_code("a|`b"), "<code>a&#124;&#96;b</code>");
    }

    #[test]
    fn only_plain_addresses_are_links() {
        assert!(is_link("https://example.org/a?b=c#d"));
        for bad in [
            "javascript:alert(1)",
            "https://",
            "https://x/)[y](z",
            "https://x/<b>",
            "https://x y",
        ] {
            assert!(!is_link(bad), "{bad}");
        }
    }

    /// Characters that a reader of Markdown takes as markup and that stand without a backslash before them.
    fn bare(text: &str, wanted: char) -> bool {
        let mut escaped = false;
        for c in text.chars() {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == wanted {
                return true;
            }
        }
        false
    }

    proptest! {
        #[test]
        fn nothing_ends_a_cell_or_opens_markup(text in "\\PC*|[|`<>&\\\\\\n\\r\\[\\]*_~\u{0}\u{202e}a ]{0,60}") {
            for out in [markdown(&text), markdown_code(&text)] {
                prop_assert!(!out.contains('\n') && !out.contains('\r'));
                prop_assert!(!out.chars().any(is_hidden));
                prop_assert!(!bare(&out, '|'));
            }
            let out = markdown(&text);
            for c in ['<', '>', '`', '*', '[', ']', '~'] {
                prop_assert!(!bare(&out, c), "{c} in {out}");
            }
            let code = markdown_code(&text);
            let inner = code.strip_prefix("<code>").and_then(|c| c.strip_suffix("</code>"))
                .or_else(|| code.strip_prefix('`').and_then(|c| c.strip_suffix('`')))
                .unwrap_or("");
            for c in ['<', '>', '`', '|', '\\'] {
                prop_assert!(!inner.contains(c), "{c} in {code}");
            }
            let out = html(&text);
            for c in ['<', '>', '"', '\''] {
                prop_assert!(!out.contains(c));
            }
        }
    }
}
