//! Reports the matches of a block, secrets after all of them are known.

use super::super::report::{self, Sighting, ValueOrigin};
use super::super::secret::overlap::{SecretClaim, knows_issuer};
use super::super::{api_document, catalog, role, secret};
use super::{FileScan, stand_in};
use crate::finding::{LineSpan, Severity};
use std::ops::Range;

/// Bytes of a long line that a quote shows on each side of a match.
const QUOTE_SIDE: usize = 120;
/// Bytes around a quote that are searched for secrets which the quote cuts.
pub(super) const MARGIN: usize = 1024;

/// Lines with an identifier beside a UUID that make it one of a list.
const IDENTIFIERS: usize = 2;
/// Secrets of an OpenAPI document whose surroundings are read, at most. The others keep their
/// severity.
const EXAMPLES_MAX: u32 = 1000;
/// Bytes of a reference to a variable before its default, at most. They are read for each secret of
/// a line, so a long line needs a bound.
const VARIABLE_MAX: usize = 512;
/// Bytes of a line before a value whose words can name it, at most.
const NAME_REACH: usize = 4096;
/// Rule for tokens of a format that every issuer uses.
const WEB_TOKEN: &str = "json-web-token";

/// Rule for passwords of connection strings.
const CONNECTION: &str = "password-in-connection-string";

/// A match of a rule. Ranges are bytes of the current block.
#[derive(Clone, Debug)]
pub(super) struct RuleHit<'d> {
    pub(super) rule: u16,
    pub(super) line: Range<usize>,
    pub(super) line_index: u32,
    pub(super) span: Range<usize>,
    /// Detail that the report adds.
    pub(super) detail: Option<&'d str>,
}

/// The weakness of text of a request in a page.
const MARKUP: u32 = 79;

impl<'a> FileScan<'a> {
    /// Reports a match. A secret is reported after the whole block is read.
    pub(super) fn report(&mut self, hit: RuleHit<'static>) {
        if self.reporter.rules.rule(hit.rule).secret {
            self.secrets.push(hit);
        } else {
            self.report_now(&hit);
        }
    }

    /// Reports the secrets of the block.
    pub(super) fn report_secrets(&mut self) {
        let (secrets, spared) = (
            std::mem::take(&mut self.secrets),
            std::mem::take(&mut self.spared),
        );
        if secrets.is_empty() {
            return;
        }
        let claims: Vec<SecretClaim> = secrets.iter().map(|hit| self.claim(hit)).collect();
        let kept = secret::overlap::kept(&claims, spared);
        for (hit, _) in secrets.iter().zip(kept).filter(|(_, kept)| *kept) {
            self.report_now(hit);
        }
    }

    /// Returns the properties of a match that decide which of several rules reports a secret.
    fn claim(&mut self, hit: &RuleHit<'_>) -> SecretClaim {
        let rules = self.reporter.rules;
        let in_doubt = self.in_doubt(hit.rule);
        let (rule, columns) = (rules.rule(hit.rule), offsets(&hit.span));
        let severity = report::weigh(rules, hit.rule, in_doubt, ValueOrigin::Outside);
        let knowledge = secret::overlap::knowledge(&rule.id);
        SecretClaim {
            line: hit.line_index,
            columns,
            confidence: rule.confidence,
            knowledge,
            severity,
        }
    }

    fn report_now(&mut self, hit: &RuleHit<'_>) {
        let (rule, line, span) = (hit.rule, &hit.line, &hit.span);
        let rules = self.reporter.rules;
        let is_weak = self.is_api_example(rule, span)
            || self.is_default(rule, line, span)
            || self.names_its_use(rule, span)
            || self.is_stand_in(rule, line, span)
            || self.is_of_encoded_data(rule, line, span)
            || self.is_documented(rule)
            || self.is_listed_identifier(rule, span)
            || self.is_chosen(rule, span)
            || self.is_of_library(rules.rule(rule))
            || self.is_of_minified_line(rules.rule(rule), line.len())
            || self.is_in_inline_tests(rules.rule(rule), self.block.first.plus(hit.line_index))
            || self.is_for_this_machine(rule, line, span)
            || self.is_inert_output(rule, span);
        let most = is_weak.then_some(Severity::Suggestion);
        self.report_up_to(most, hit);
    }

    /// Returns true if a match of a rule that does not know the issuer of the secret is in an
    /// example of an OpenAPI document. A key of a known issuer is one wherever it is.
    fn is_api_example(&mut self, rule: u16, span: &Range<usize>) -> bool {
        let rule = self.reporter.rules.rule(rule);
        if !rule.secret || knows_issuer(&rule.id) && rule.id != WEB_TOKEN {
            return false;
        }
        let path = self.file.path().as_bytes();
        let (run, offset) = self.run();
        let is_document = *run
            .is_api_document
            .get_or_insert_with(|| api_document::is_one(path, run.text));
        if !is_document || run.examples_asked >= EXAMPLES_MAX {
            return false;
        }
        run.examples_asked += 1;
        api_document::is_example(run.text, *offset + span.start)
    }

    /// Returns true if a match of a rule that does not know the issuer of the secret is the default
    /// of a variable of the environment: `${DB_PASSWORD:-local}`. Who deploys the program sets it.
    fn is_default(&self, rule: u16, line: &Range<usize>, span: &Range<usize>) -> bool {
        let rule = self.reporter.rules.rule(rule);
        if !rule.secret || knows_issuer(&rule.id) && rule.id != CONNECTION {
            return false;
        }
        let start = line.start.max(span.start.saturating_sub(VARIABLE_MAX));
        let before = &self.block.text[start..span.start];
        // The name of the variable, `:` of Spring or `:-` and `:=` of shells, and the secret.
        let open = memchr::memmem::rfind(before, b"${");
        let is_first = open.is_some_and(|at| !before[..at].contains(&b';'));
        let inner = open.map(|at| &before[at + 2..]);
        inner.is_some_and(|inner| {
            let name = inner.iter().take_while(|b| is_of_variable(**b)).count();
            name > 0
                && (matches!(&inner[name..], b":" | b":-" | b":=" | b":\"" | b":-\"")
                    || rule.id == CONNECTION
                        && is_first
                        && self.is_in_default(&inner[name..], line, span))
        })
    }

    /// Returns true if a password is in the default of a variable of a configuration, which is more
    /// than the password. `before`: the text between the name and the password.
    fn is_in_default(&self, before: &[u8], line: &Range<usize>, span: &Range<usize>) -> bool {
        let after = &self.block.text[span.end.min(line.end)..line.end];
        let close = after.iter().position(|b| !is_of_connection(*b));
        let is_open = before.starts_with(b":-") || before.starts_with(b":=");
        is_open
            && !role::is_program_text(self.file.path().as_bytes())
            && before[2..].iter().all(|b| is_of_connection(*b))
            && close.is_some_and(|at| after[at] == b'}')
    }

    /// Returns true if a match of a rule that knows the secret by its name consists of words that
    /// say what it is and that it is for tests: `shop-e2e-jwt-secret-key-2024`.
    fn names_its_use(&self, rule: u16, span: &Range<usize>) -> bool {
        let rule = self.reporter.rules.rule(rule);
        is_without_issuer(rule)
            && std::str::from_utf8(&self.block.text[span.clone()])
                .is_ok_and(secret::shape::is_label_of_tests)
    }

    /// Returns true if a match of a rule that knows the secret by its name is the value of an
    /// installation for trials: a line near it has the same value as the name of a user or a
    /// database, or the comment above says to replace it.
    fn is_stand_in(&mut self, rule: u16, line: &Range<usize>, span: &Range<usize>) -> bool {
        let rule = self.reporter.rules.rule(rule);
        let path = self.file.path().as_bytes();
        if !is_without_issuer(rule)
            || role::is_program_text(path)
            || line.len() > stand_in::LINE_MAX
        {
            return false;
        }
        let (run, offset) = self.run();
        let span = *offset + span.start..*offset + span.end;
        stand_in::is_name_near(run.text, &span) || stand_in::is_to_be_replaced(run.text, &span)
    }

    /// Returns true if the password of a connection string in a configuration signs in to this
    /// machine only.
    fn is_for_this_machine(&self, rule: u16, line: &Range<usize>, span: &Range<usize>) -> bool {
        let rule = self.reporter.rules.rule(rule);
        let span = span.start - line.start..span.end.min(line.end) - line.start;
        rule.id == CONNECTION
            && !role::is_program_text(self.file.path().as_bytes())
            && stand_in::connects_to_this_machine(&self.block.text[line.clone()], &span)
    }

    /// Returns true if a match of a built-in rule is within a long run of Base64 digits.
    fn is_of_encoded_data(&self, rule: u16, line: &Range<usize>, span: &Range<usize>) -> bool {
        let is_secret = self.reporter.rules.rule(rule).secret;
        let within = span.start - line.start..span.end.min(line.end) - line.start;
        is_secret
            && self.reporter.rules.is_of_catalogue(rule)
            && secret::encoded::is_inside(&self.block.text[line.clone()], &within)
    }

    /// Returns true if a match of a rule that does not know the issuer of the secret is in
    /// documentation: a configuration there is an example.
    fn is_documented(&self, rule: u16) -> bool {
        let rule = self.reporter.rules.rule(rule);
        is_without_issuer(rule) && role::is_prose(self.file.path().as_bytes())
    }

    /// Returns true if a match of a rule that knows the secret by its name is a UUID in a list of
    /// them: lines beside it give UUIDs to names without a word for a secret. A list of identifiers
    /// has such names by chance: `ProtonPass = "50726f74-…"`.
    fn is_listed_identifier(&mut self, rule: u16, span: &Range<usize>) -> bool {
        let rule = self.reporter.rules.rule(rule);
        let is_uuid =
            std::str::from_utf8(&self.block.text[span.clone()]).is_ok_and(secret::shape::is_uuid);
        if !is_without_issuer(rule) || !is_uuid {
            return false;
        }
        let (run, offset) = self.run();
        let start = *offset + span.start;
        !is_named_secret(run.text, start) && identifiers_beside(run.text, start) >= IDENTIFIERS
    }

    /// Returns true if a condition around a match leaves the choice to the settings of the program.
    fn is_chosen(&mut self, rule: u16, span: &Range<usize>) -> bool {
        let Some(compiled) = self.reporter.rules.compiled(rule) else {
            return false;
        };
        if !compiled.judges_conditions() {
            return false;
        }
        let path = self.file.path().as_bytes();
        let (run, offset) = self.run();
        let (text, at) = (run.text, *offset + span.start);
        self.conditions.is_chosen(compiled, path, text, at)
    }

    /// Returns true if a match of a rule about markup in PHP is below a statement that gives the
    /// response a type other than that of a page.
    fn is_inert_output(&mut self, rule: u16, span: &Range<usize>) -> bool {
        let rule = self.reporter.rules.rule(rule);
        if rule.cwe != Some(MARKUP) || !rule.languages.any_of(&["php"]) {
            return false;
        }
        let path = self.file.path().as_bytes();
        let (run, offset) = self.run();
        let (text, at) = (run.text, *offset + span.start);
        let read = self.conditions.read(path, text);
        read.is_some_and(|read| super::flow::content_type::has_inert_type(read, at))
    }

    /// Reports a match with a severity of at most `severity_max`.
    pub(super) fn report_up_to(&mut self, severity_max: Option<Severity>, hit: &RuleHit<'_>) {
        let (rule, line, span) = (hit.rule, &hit.line, &hit.span);
        let lines = self.original_lines(span).unwrap_or_else(|| {
            let number = self.block.first.plus(hit.line_index);
            LineSpan {
                first: number,
                last: number,
                columns: Some(columns(line, span)),
            }
        });
        let shown = quoted(line, span);
        let wide =
            shown.start.saturating_sub(MARGIN).max(line.start)..(shown.end + MARGIN).min(line.end);
        let hide = self
            .reporter
            .rules
            .rule(rule)
            .secret
            .then(|| within(&wide, span));
        let in_doubt = self.in_doubt(rule);
        let is_unknown = self.is_of_unknown_origin(rule, line);
        let sighting = Sighting {
            file: Some(self.file.path()),
            lines: Some(lines),
            quote: &self.block.text[wide.clone()],
            shown: Some(within(&wide, &shown)),
            detail: hit.detail,
            hide,
            in_doubt,
            origin: if is_unknown {
                ValueOrigin::Unknown
            } else {
                ValueOrigin::Outside
            },
            severity_max,
            ..Sighting::default()
        };
        self.reporter.report_index(rule, sighting);
    }

    /// Returns the lines of the file that a span of a joined line covers. `None`: the lines are not
    /// joined.
    fn original_lines(&self, span: &Range<usize>) -> Option<LineSpan> {
        let text = self.file.text().map(|t| &t.new).filter(|t| t.is_joined())?;
        let part = &self.block.text[span.clone()];
        let (first, last) = text
            .joined_lines(part)
            .or_else(|| text.original_line(part).map(|n| (n, n)))?;
        Some(LineSpan {
            first,
            last,
            columns: None,
        })
    }

    /// Returns true if the origin of the value decides about a match, and is unknown.
    fn is_of_unknown_origin(&mut self, rule: u16, line: &Range<usize>) -> bool {
        if !self.reporter.rules.rule(rule).judges_origin {
            return false;
        }
        let (run, offset) = self.run();
        !run.origins
            .is_outside(&(*offset + line.start..*offset + line.end))
    }
}

/// Returns true for a rule about secrets that does not identify their issuer.
fn is_without_issuer(rule: &catalog::Rule) -> bool {
    rule.secret && !knows_issuer(&rule.id)
}

/// Returns true if the line of a byte has a word before it that names a secret itself, such as
/// `CLIENT_SECRET`. The names of the products in a list end with `Pass` and `Key`.
fn is_named_secret(text: &[u8], at: usize) -> bool {
    let at = at.min(text.len());
    let before = &text[at.saturating_sub(NAME_REACH)..at];
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let name = before[start..].to_ascii_lowercase();
    ["secret", "token", "apikey", "api_key", "api-key"]
        .iter()
        .any(|word| memchr::memmem::find(&name, word.as_bytes()).is_some())
}

/// Returns the number of lines near a byte that give a UUID to a name without a word for a secret.
fn identifiers_beside(text: &[u8], at: usize) -> usize {
    /// Lines on each side, at most.
    const LINES: usize = 4;
    /// Bytes of a line that are read, at most.
    const WIDTH: usize = 200;
    let at = at.min(text.len());
    let above = text[..at].rsplit(|b| *b == b'\n').skip(1).take(LINES);
    let below = text[at..].split(|b| *b == b'\n').skip(1).take(LINES);
    above
        .chain(below)
        .filter(|line| line.len() <= WIDTH && is_identifier_line(line))
        .count()
}

/// Returns true if a line gives a UUID in quotes to a name that is neither that of a secret nor that
/// of an ID.
fn is_identifier_line(line: &[u8]) -> bool {
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'');
    let Some(open) = line.iter().position(is_quote) else {
        return false;
    };
    // A comment gives no name a value.
    let is_comment = [b"#".as_slice(), b"//", b"*", b"--"]
        .iter()
        .any(|mark| line.trim_ascii_start().starts_with(mark));
    let before = line[..open].trim_ascii_end();
    let Some(name) = before
        .strip_suffix(b"=")
        .or_else(|| before.strip_suffix(b":"))
    else {
        return false;
    };
    // A client has IDs beside its secret: `TENANT_ID`, `clientId`.
    let is_id = name.trim_ascii_end().to_ascii_lowercase().ends_with(b"id");
    if is_comment || is_id {
        return false;
    }
    let mut parts = line[open..].split(|b| is_quote(b));
    let has_uuid = parts.any(|part| std::str::from_utf8(part).is_ok_and(secret::shape::is_uuid));
    has_uuid && secret::name::named(&line[..open]).is_none()
}

/// Returns true for the bytes of a connection string without quotes.
fn is_of_connection(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'#' | b'{' | b'}')
        || byte == b' '
}

/// Returns true for the bytes of the name of a variable or of a property.
fn is_of_variable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// Returns the range of a part of a block, in bytes of the block. A line that carriage returns
/// divide has several parts with equal columns.
pub(super) fn offsets(span: &Range<usize>) -> (u32, u32) {
    columns(&(0..0), span)
}

/// Returns the columns of a part of a line, in bytes.
pub(super) fn columns(line: &Range<usize>, span: &Range<usize>) -> (u32, u32) {
    let [start, end] =
        [span.start, span.end].map(|at| u32::try_from(at - line.start).unwrap_or(u32::MAX));
    (start, end)
}

/// Returns the range of a part of a quote, in bytes of the quote.
fn within(quote: &Range<usize>, part: &Range<usize>) -> (usize, usize) {
    (
        part.start - quote.start,
        part.end.min(quote.end) - quote.start,
    )
}

/// Returns the line, or the surroundings of the match if the line is long.
pub(super) fn quoted(line: &Range<usize>, span: &Range<usize>) -> Range<usize> {
    if line.len() <= 2 * QUOTE_SIDE + 100 {
        return line.clone();
    }
    let start = span.start.saturating_sub(QUOTE_SIDE).max(line.start);
    let end = (span.end + QUOTE_SIDE)
        .min(line.end)
        .min(start + 4 * QUOTE_SIDE);
    start..end.max(span.start)
}
