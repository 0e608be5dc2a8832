//! Endpoints of ASP.NET Core that a form of another site cannot misuse, although the check of the
//! antiforgery token is switched off for them.

use super::line_around;
use crate::rules::flow::Flow;

/// Bytes behind an attribute in which the parameters of its method end.
const SIGNATURE: usize = 600;
/// Attributes of one method that are read above and below another one, at most.
const ATTRIBUTES: usize = 12;

/// Returns true if a finding is about an attribute of a method of C# that
///
/// - reads its data from the body of the request, `[FromBody] Order order`: the framework reads
///   such a body only if its type is that of JSON, which a form cannot send;
/// - or answers only `GET`, for which the framework does not check the token.
pub(super) fn is_unreachable(f: &Flow, text: &[u8]) -> bool {
    let Some(sink) = f.sink().filter(|sink| sink.end <= text.len()) else {
        return false;
    };
    let line = line_around(text, sink.start);
    if !is_attribute(&text[line.clone()]) {
        return false;
    }
    let behind = &text[sink.end..text.len().min(sink.end + SIGNATURE)];
    let body = memchr::memchr2(b'{', b';', behind).unwrap_or(behind.len());
    takes_json(&behind[..body]) || answers_only_get(&text[..line.start], &text[line.start..])
}

fn is_attribute(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"[")
}

fn takes_json(signature: &[u8]) -> bool {
    memchr::memmem::find(signature, b"([FromBody] ").is_some()
}

/// Returns true if the attributes at the end of `above` and at the start of `below` name `GET` as
/// the only verb. A route without a verb answers all of them.
fn answers_only_get(above: &[u8], below: &[u8]) -> bool {
    const OTHERS: &[&[u8]] = &[
        b"HttpPost",
        b"HttpPut",
        b"HttpDelete",
        b"HttpPatch",
        b"AcceptVerbs",
        b"Route(",
    ];
    let above = above.strip_suffix(b"\n").unwrap_or(above);
    let above = above.rsplit(|b| *b == b'\n').take(ATTRIBUTES);
    let below = below.split(|b| *b == b'\n').take(ATTRIBUTES);
    let attributes: Vec<&[u8]> = above
        .take_while(|line| is_attribute(line))
        .chain(below.take_while(|line| is_attribute(line)))
        .collect();
    contain(&attributes, b"[HttpGet") && !OTHERS.iter().any(|word| contain(&attributes, word))
}

/// Returns true if one of the lines contains a word.
fn contain(lines: &[&[u8]], word: &[u8]) -> bool {
    lines
        .iter()
        .any(|line| memchr::memmem::find(line, word).is_some())
}

#[cfg(test)]
mod tests {
    use super::{answers_only_get, takes_json};

    #[test]
    fn a_body_of_json_is_told_by_its_parameter() {
        assert!(takes_json(
            b"]\n    public async Task Pay([FromBody] Order order) "
        ));
        assert!(!takes_json(b"]\n    public async Task Pay(Order order) "));
        assert!(!takes_json(
            b"]\n    public async Task Pay([FromForm] Order order) "
        ));
    }

    #[test]
    fn a_method_that_only_reads_is_told_by_all_its_attributes() {
        let own =
            b"    [IgnoreAntiforgeryToken]\n    [AllowAnonymous]\n    public X A() {".as_slice();
        assert!(answers_only_get(b"}\n\n    [HttpGet(\"a\")]\n", own));
        assert!(!answers_only_get(
            b"}\n    [HttpGet]\n    [HttpPost]\n",
            own
        ));
        assert!(!answers_only_get(
            b"    [HttpGet]\n    [Route(\"b\")]\n",
            own
        ));
        assert!(!answers_only_get(
            b"    [HttpGet]\n    public X B() {}\n",
            own
        ));
        assert!(!answers_only_get(b"", own));
    }
}
