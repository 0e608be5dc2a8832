//! What a model may have written around a line: a code fence, a diff marker, line numbers,
//! backticks, an ellipsis.

/// Returns the possible readings of a quoted line: unchanged, without a diff marker, without line
/// numbers, or without backticks. None of them is blank, and the unchanged line comes first.
pub(super) fn readings(line: &str) -> Vec<String> {
    let mut forms = vec![line.trim()];
    if let Some(inner) = line
        .trim()
        .strip_prefix('`')
        .and_then(|l| l.strip_suffix('`'))
    {
        // The line itself may contain backticks.
        forms.push(inner.trim());
        forms.push(inner.trim_matches('`'));
    }
    let mut out: Vec<String> = Vec::new();
    for form in forms {
        let (unmarked, unnumbered) = (without_marker(form), without_columns(form));
        let both = [
            unnumbered.and_then(without_marker),
            unmarked.and_then(without_columns),
        ];
        for text in [Some(form), unmarked, unnumbered]
            .into_iter()
            .chain(both)
            .flatten()
            .map(str::trim)
        {
            if !text.is_empty() && !out.iter().any(|o| o == text) {
                out.push(text.to_owned());
            }
        }
    }
    out
}

/// Removes a diff marker. Returns `None` if the line has none.
fn without_marker(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix(['+', '-'])
}

/// Removes one or two columns of line numbers, and the bar after them. Returns `None` if the line
/// has none.
pub(super) fn without_columns(line: &str) -> Option<&str> {
    let rest = without_number(line)?;
    let rest = match without_number(rest) {
        Some(second)
            if rest.starts_with([' ', '\t']) && second.starts_with([' ', '\t', '|', ':', '│']) =>
        {
            second
        }
        _ => rest,
    };
    let trimmed = rest.trim_start();
    let bar = trimmed.strip_prefix(['|', ':', '│', '>', '+', '-']);
    (bar.is_some() || trimmed.len() < rest.len()).then(|| bar.unwrap_or(trimmed))
}

/// Removes a line number of at most 7 digits, such as `12` or `L12`. Returns `None` if the text
/// does not start with one.
fn without_number(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let text = text.strip_prefix('L').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=7).contains(&digits).then(|| &text[digits..])
}

/// Removes the ellipses at both ends.
pub(super) fn without_ellipsis(text: &str) -> &str {
    text.trim()
        .trim_start_matches(['…', ' '])
        .trim_start_matches("...")
        .trim_end_matches(['…', ' '])
        .trim_end_matches("...")
        .trim()
}
