//! The expressions of GitHub workflows, `${{ … }}`, and what they take from untrusted users.

/// Returns the expressions `${{ … }}` of a text.
pub(super) fn expressions(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let inner = &rest[rest.find("${{")? + 3..];
        let end = expression_end(inner)?;
        rest = &inner[end + 2..];
        Some(inner[..end].trim())
    })
}

/// Returns the end of an expression: the first `}}` that is not part of a string.
fn expression_end(text: &str) -> Option<usize> {
    const NEAR: usize = 4096;
    let bytes = text.as_bytes();
    let mut quoted = false;
    for (i, b) in bytes.iter().enumerate().take(NEAR) {
        quoted ^= *b == b'\'';
        if !quoted && bytes[i..].starts_with(b"}}") {
            return Some(i);
        }
    }
    text.find("}}")
}

/// Returns a text with members in brackets written with a dot (`github['event']` is
/// `github.event`), without blanks around dots and brackets, and in lower case: all of these
/// spellings mean the same to GitHub.
pub(super) fn dotted(text: &str) -> String {
    let text = without_blanks(&text.to_ascii_lowercase());
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        match member(from) {
            Some((name, length)) => {
                out.push('.');
                out.push_str(name);
                rest = &from[length..];
            }
            None => {
                out.push('[');
                rest = &from[1..];
            }
        }
    }
    out + rest
}

/// Returns a text without blanks around dots and before opening brackets.
fn without_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' ' | '\t' if out.ends_with('.') => {}
            '.' | '[' | '(' => {
                out.truncate(out.trim_end_matches([' ', '\t']).len());
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Parses `['name']` or `["name"]`: the name, and the length of the whole member.
fn member(text: &str) -> Option<(&str, usize)> {
    const NAME_MAX: usize = 100;
    let end = text.bytes().take(NAME_MAX).position(|b| b == b']')?;
    let inner = text.get(1..end)?.trim();
    let name = ['\'', '"']
        .iter()
        .find_map(|quote| inner.strip_prefix(*quote)?.strip_suffix(*quote))?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    is_name.then_some((name, end + 1))
}

/// Returns the parts of an expression that can be its value: without strings, comparisons, and
/// calls of functions that return true or false.
fn yielded(expression: &str) -> String {
    let mut bare = String::with_capacity(expression.len());
    let mut quoted = false;
    for c in expression.chars() {
        if c == '\'' {
            quoted = !quoted;
        } else if !quoted {
            bare.push(c);
        }
    }
    let mut out = String::new();
    yielded_parts(&bare, 0, &mut out);
    out
}

fn yielded_parts(expression: &str, depth: usize, out: &mut String) {
    const DEPTH_MAX: usize = 20;
    const TESTS: &[&str] = &["contains", "startswith", "endswith", "hashfiles"];
    let bytes = expression.as_bytes();
    let (mut start, mut open, mut inside, mut compares) = (0, None, 0usize, false);
    // The end of the text ends the last part.
    for i in 0..=bytes.len() {
        let b = bytes.get(i).copied().unwrap_or(b',');
        match b {
            b'(' => {
                open = open.or(Some(i));
                inside += 1;
            }
            b')' => inside = inside.saturating_sub(1),
            b'=' | b'!' | b'<' | b'>' if inside == 0 => compares = true,
            b'&' | b'|' | b',' if inside == 0 || i == bytes.len() => {
                let part = &expression[start..i];
                let name = open.map_or(part, |at| &expression[start..at]);
                let is_test =
                    compares || (open.is_some() && TESTS.iter().any(|t| name.trim().ends_with(t)));
                match open {
                    _ if is_test => {}
                    Some(at) if depth < DEPTH_MAX => {
                        yielded_parts(
                            expression[at + 1..i].trim_end().trim_end_matches(')'),
                            depth + 1,
                            out,
                        );
                    }
                    _ => out.push_str(part),
                }
                out.push(' ');
                (start, open, compares) = (i + 1, None, false);
            }
            _ => {}
        }
    }
}

/// Returns the context with untrusted text that an expression can yield. `None`: there is none.
pub(super) fn untrusted(expression: &str) -> Option<String> {
    const EXACT: &[&str] = &[
        "github.head_ref",
        "github.event",
        "github.event.issue",
        "github.event.pull_request",
        "github.event.comment",
        "github.event.review",
        "github.event.discussion",
        "github.event.head_commit",
        "github.event.issue.title",
        "github.event.issue.body",
        "github.event.pull_request.title",
        "github.event.pull_request.body",
        "github.event.pull_request.head.ref",
        "github.event.pull_request.head.label",
        "github.event.pull_request.head.repo.default_branch",
        "github.event.comment.body",
        "github.event.review.body",
        "github.event.review_comment.body",
        "github.event.discussion.title",
        "github.event.discussion.body",
        "github.event.head_commit.message",
        "github.event.head_commit.author.email",
        "github.event.head_commit.author.name",
        "github.event.workflow_run.head_branch",
        "github.event.workflow_run.display_title",
        "github.event.workflow_run.head_commit.message",
        "github.event.workflow_run.head_commit.author.email",
        "github.event.workflow_run.head_commit.author.name",
        "github.event.workflow_run.head_repository.description",
    ];
    // For lists, the word ends at an index or `*`.
    const WITHIN: &[(&str, &[&str])] = &[
        (
            "github.event.commits",
            &[".message", ".author.email", ".author.name"],
        ),
        ("github.event.pages", &[".page_name", ".title"]),
        ("github.event.workflow_run.pull_requests", &[".head.ref"]),
    ];
    let expression = yielded(&dotted(expression));
    for context in EXACT {
        let mut found = expression.match_indices(context);
        if found.any(|(i, _)| {
            may_precede(&expression[..i]) && may_follow(&expression[i + context.len()..])
        }) {
            return Some((*context).to_owned());
        }
    }
    for (list, members) in WITHIN {
        if let Some(i) = expression.find(list)
            && members.iter().any(|m| expression[i..].contains(m))
        {
            return Some(expression[i..].trim().to_owned());
        }
    }
    None
}

/// Returns true if a text before a context is not a part of its name.
fn may_precede(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Returns true if a text after a context is not a part of its name.
fn may_follow(rest: &str) -> bool {
    rest.bytes()
        .next()
        .is_none_or(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'[')))
}
