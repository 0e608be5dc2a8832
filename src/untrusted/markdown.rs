//! Markdown for GitHub, GitLab and Bitbucket.
//!
//! Backslashes and entities prevent markup, but forges decode them before they search the shown
//! text for mentions, references, addresses and emoji. So these are also broken by a zero-width
//! space, written as an entity, as bots that quote release notes do.

use super::Inert;

/// Separates the sign of a mention or reference from its name.
const BREAK: &str = "&#8203;";

/// Escapes text: it is shown unchanged, and no part becomes markup, HTML, a mention, a reference, a
/// quick action, a link, an image or an emoji. Lines stay lines.
pub fn markdown(text: &str) -> String {
    by_line(text, |line, out| escape(line, true, out))
}

/// Escapes prose like [`markdown`]; text between two backticks of a line becomes code.
pub fn prose(text: &str) -> String {
    by_line(text, |line, out| {
        let parts: Vec<&str> = line.split('`').collect();
        let last = parts.len() - 1;
        // Empty parts are longer runs of backticks, and blank ones are not code; with an even
        // number, one backtick is not closed.
        let pairs = last.is_multiple_of(2)
            && parts[1..]
                .iter()
                .take(last.saturating_sub(1))
                .all(|p| !p.trim().is_empty());
        if !pairs {
            return escape(line, true, out);
        }
        for (i, part) in parts.iter().enumerate() {
            match i % 2 {
                0 => escape(part, i == 0, out),
                _ => out.push_str(&code(part)),
            }
        }
    })
}

/// Returns untrusted text as inline code; empty for empty text. Not for table cells.
pub fn code(text: impl AsRef<[u8]>) -> String {
    let text = Inert::new(text);
    let text = text.as_str();
    if text.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Puts lines between fences that are longer than any run of backticks in them. The text is not
/// escaped: the caller has done that. Ends with a line end.
pub fn fenced(info: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{info}\n{text}{end}{fence}\n")
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Escapes text line by line with a function, which gets each line without blanks at its start.
fn by_line(text: &str, write: impl Fn(&str, &mut String)) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for (i, line) in text.lines().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        write(Inert::new(line).as_str().trim_start(), &mut out);
    }
    out
}

/// Escapes a part of a line whose control characters are escaped; `leads` is true for the first
/// part.
fn escape(line: &str, leads: bool, out: &mut String) {
    // These characters start a list, a heading, a rule, a quick action, or a directive; `1.` starts
    // a list too.
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    for (at, c) in line.char_indices() {
        let rest = &line[at + c.len_utf8()..];
        let before = &line[..at];
        let next = rest.bytes().next().unwrap_or(b' ');
        let numbered = next.is_ascii_digit();
        let first = leads
            && (at == 0 && matches!(c, '-' | '+' | '=' | '/' | '.' | ':')
                || at == digits && matches!(c, '.' | ')'));
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '!' | '|' | '~' | '$' | '^' => {
                out.push('\\');
                out.push(c);
            }
            _ if first => {
                out.push('\\');
                out.push(c);
            }
            '.' if ends_in(before, "www") => out.push_str("&#46;"),
            c => out.push(c),
        }
        let named = next.is_ascii_alphanumeric() || next == b'_';
        let broken = match c {
            '@' => named,
            '#' | '!' | '&' | '$' => numbered,
            // GitLab's labels and milestones have names; its `*iteration:1` and `[vulnerability:1]`
            // have a kind.
            '%' | '~' => named || next == b'"',
            '*' | '[' => is_kind(rest),
            '-' => numbered && (ends_in(before, "gh") || ends_in(before, "gl")),
            // `:tada:` is an emoji, and `://` makes the surrounding text an address.
            ':' => rest.starts_with("//") || is_shortcode(rest),
            // Readers that accept any scheme may see an address here too.
            '/' => next == b'/' && before.ends_with(':'),
            '.' => ends_in(before, "www"),
            _ => false,
        };
        if broken {
            out.push_str(BREAK);
        }
    }
}

/// Returns true if a text ends with a word, in either case.
fn ends_in(text: &str, word: &str) -> bool {
    text.len()
        .checked_sub(word.len())
        .and_then(|at| text.get(at..))
        .is_some_and(|t| t.eq_ignore_ascii_case(word))
}

/// Returns true if the rest of a line starts with a word and a colon.
fn is_kind(rest: &str) -> bool {
    let word = rest
        .bytes()
        .take_while(|b| b.is_ascii_alphabetic() || *b == b'_')
        .count();
    word > 0 && rest.as_bytes().get(word) == Some(&b':')
}

/// Returns true if the rest of a line, after a colon, continues with the name of an emoji and a
/// colon.
fn is_shortcode(rest: &str) -> bool {
    let name = rest
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || b"_+-".contains(b))
        .count();
    name > 0 && rest.as_bytes().get(name) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inj_13_markdown_shows_instead_of_acting() {
        for (text, escaped) in [
            ("<img src=x>", "&lt;img src=x&gt;"),
            ("</details><!--", "&lt;/details&gt;&lt;\\!--"),
            ("![a](b)", "\\!\\[a\\](b)"),
            ("[a](javascript:alert(1))", "\\[a\\](javascript:alert(1))"),
            ("@org/team", "&#64;&#8203;org/team"),
            ("mail a@b.example", "mail a&#64;&#8203;b.example"),
            (
                "#12, gh-12, GL-1 and !12",
                "\\#&#8203;12, gh-&#8203;12, GL-&#8203;1 and \\!&#8203;12",
            ),
            ("# head", "\\# head"),
            ("/approve", "\\/approve"),
            ("  /approve", "\\/approve"),
            ("::include{file=x}", "\\::include\\{file=x\\}"),
            ("1. x\n- y", "1\\. x\n\\- y"),
            ("2.5 and a-b", "2\\.5 and a-b"),
            ("```", "\\`\\`\\`"),
            (
                "see https://a.example",
                "see https:&#8203;/&#8203;/a.example",
            ),
            ("at www.a.example: b", "at www&#46;&#8203;a.example: b"),
            ("a :tada: b: c", "a :&#8203;tada: b: c"),
            ("std::mem::swap", "std::&#8203;mem::swap"),
            (
                "~~x~~ $1 &1 %1",
                "\\~\\~&#8203;x\\~\\~ \\$&#8203;1 &amp;&#8203;1 %&#8203;1",
            ),
            (
                "@_a ~bug %v1 ~_x 5% of",
                "&#64;&#8203;\\_a \\~&#8203;bug %&#8203;v1 \\~&#8203;\\_x 5% of",
            ),
            (
                "*iteration:1 [epic:2] [a] a*b",
                "\\*&#8203;iteration:1 \\[&#8203;epic:2\\] \\[a\\] a\\*b",
            ),
        ] {
            assert_eq!(markdown(text), escaped);
        }
    }

    #[test]
    fn inj_13_code_in_prose_is_code_only_where_it_closes() {
        for (text, shown) in [
            ("use `a<b>` here", "use `a<b>` here"),
            ("`@x` and `#1`", "`@x` and `#1`"),
            ("no `end", "no \\`end"),
            ("``a`` b", "\\`\\`a\\`\\` b"),
            ("`a``<b>`", "\\`a\\`\\`&lt;b&gt;\\`"),
            ("```\n<b>\n```", "\\`\\`\\`\n&lt;b&gt;\n\\`\\`\\`"),
            ("` `::error::x", "\\` \\`::&#8203;error::x"),
            ("\\`a`", "\\\\`a`"),
            ("", ""),
        ] {
            assert_eq!(prose(text), shown, "{text}");
        }
    }

    #[test]
    fn inj_13_code_is_closed_by_nothing_in_it() {
        for (text, shown) in [
            ("a", "`a`"),
            ("a`b", "``a`b``"),
            ("`", "`` ` ``"),
            ("x```", "```` x``` ````"),
            ("a\nb", "`a\\nb`"),
            (" ", ""),
        ] {
            assert_eq!(code(text), shown);
        }
    }

    #[test]
    fn inj_15_a_fence_is_longer_than_any_inside() {
        assert_eq!(fenced("", "a"), "```\na\n```\n");
        assert_eq!(
            fenced("suggestion", "```\nb\n"),
            "````suggestion\n```\nb\n````\n"
        );
        assert_eq!(fenced("", ""), "```\n```\n");
    }
}
