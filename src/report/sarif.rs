//! The SARIF 2.1.0 report, for code scanning. The only user of `serde_sarif`.
//!
//! It follows the OASIS standard and the requirements of GitHub: every result has a position and a
//! stable fingerprint, every rule has a help text, and there are at most [`MAX_RESULTS`] results.
//!
//! Waived and suppressed findings are not results: GitHub does not read `suppressions` and would
//! open an alert, which can fail a change that the gate passed. They are counted in the run's
//! properties and listed in its notifications, with the reason and the person.

mod rule;

use self::rule::sentence;
use super::finding_text::{self, columns, inside, placed, worst};
use super::words::{self, somewhere};
use crate::diff::RepoPath;
use crate::finding::{Also, Finding, FlowStep, LineSpan, Location, Origin, Severity};
use crate::review::Review;
use crate::untrusted;
use serde_json::{Value, json};
use serde_sarif::sarif;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Results that GitHub keeps of a run, by its documentation of SARIF limits. The worst ones are
/// listed.
const MAX_RESULTS: usize = 5_000;
/// Results with a replacement, at most: each takes about 500 bytes, and readers such as the SARIF
/// multitool skip files of more than 10 MB.
const MAX_FIXES: usize = 1_000;
/// Notifications of one run, at most: the list of files that were not reviewed can be as long as
/// the change.
const MAX_NOTIFICATIONS: usize = 1_000;

/// Failed tests that a notification lists, at most.
const MAX_TESTS: usize = 50;

/// The base of relative addresses.
const ROOT: &str = "%SRCROOT%";

/// Writes the SARIF log, indented, with a line end.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    crate::wire::write(&log(vec![run(review)]), out)
}

/// Writes the SARIF log of several repositories: a run for each, with the name of the repository in
/// the ID of the run.
pub(super) fn render_all(
    reviews: &[(&str, Cow<'_, Review>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let runs = reviews.iter().map(|(name, review)| {
        let mut run = run(review);
        run.automation_details = Some(sarif::RunAutomationDetails {
            id: Some(format!("claude-reviewer/{}/", untrusted::plain(name))),
            ..Default::default()
        });
        run
    });
    crate::wire::write(&log(runs.collect()), out)
}

/// Returns the SARIF log of these runs.
fn log(runs: Vec<sarif::Run>) -> sarif::Sarif {
    let mut log = sarif::Sarif::builder().version("2.1.0").runs(runs).build();
    log.schema = Some("https://json.schemastore.org/sarif-2.1.0.json".to_owned());
    log
}

/// Returns the run: the tool with its rules, the results, and the properties of the review.
fn run(review: &Review) -> sarif::Run {
    let kept = worst(review.findings.iter().filter(|f| is_result(f)), MAX_RESULTS);
    let rules = rule::of(&kept);
    let mut driver = sarif::ToolComponent::builder().name(crate::NAME).build();
    driver.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    driver.semantic_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    // The addresses of the package; empty if they are not set.
    let home = [env!("CARGO_PKG_HOMEPAGE"), env!("CARGO_PKG_REPOSITORY")]
        .into_iter()
        .find(|u| !u.is_empty());
    driver.information_uri = home.map(str::to_owned);
    driver.properties = Some(bag(None, [("rulesHash", json!(review.rules_hash))]));
    let named = somewhere(review);
    let fallback = named.unwrap_or_else(|| Location {
        file: RepoPath::from(".claude-reviewer.toml"),
        lines: None,
    });
    let ordinals = ordinals(&review.findings, &kept);
    let mut results: Vec<sarif::Result> = kept
        .iter()
        .zip(ordinals)
        .map(|(f, n)| result(f, n, review, &rules, &fallback))
        .collect();
    results
        .iter_mut()
        .filter(|r| r.fixes.is_some())
        .skip(MAX_FIXES)
        .for_each(|r| r.fixes = None);
    driver.rules = Some(rules);
    let mut run = sarif::Run::builder()
        .tool(sarif::Tool::builder().driver(driver).build())
        .build();
    run.automation_details = Some(sarif::RunAutomationDetails {
        id: Some("claude-reviewer/".to_owned()),
        ..Default::default()
    });
    run.column_kind = Some(json!("unicodeCodePoints"));
    run.language = Some("en".to_owned());
    run.original_uri_base_ids = Some(BTreeMap::from([(
        ROOT.to_owned(),
        sarif::ArtifactLocation {
            description: Some(message("The root of the repository.".to_owned())),
            ..Default::default()
        },
    )]));
    run.invocations = Some(vec![invocation(review, kept.len())]);
    run.results = Some(results);
    run.properties = Some(properties(review));
    run
}

/// Numbers the findings that share a fingerprint, from 1. The same text in two commits has one
/// fingerprint, and GitHub merges alerts with the same rule, file and hash. Waived findings count
/// as well, so that the others keep their numbers.
fn ordinals<'f>(all: &'f [Finding], kept: &[&Finding]) -> Vec<u32> {
    let mut seen: HashMap<&'f str, u32> = HashMap::new();
    let mut kept = kept.iter().peekable();
    let mut out = Vec::with_capacity(kept.len());
    for f in all {
        let n = seen.entry(f.fingerprint().as_str()).or_default();
        *n += 1;
        out.extend(kept.next_if(|k| std::ptr::eq(**k, f)).map(|_| *n));
    }
    out
}

/// Returns the facts of the review that SARIF has no field for.
fn properties(review: &Review) -> sarif::PropertyBag {
    let s = &review.source;
    let facts = [("base", &s.base), ("head", &s.head), ("tree", &s.tree)];
    let ids = facts
        .into_iter()
        .filter_map(|(k, v)| Some((k, json!(v.as_ref()?))));
    let policy = json!({ "origin": review.policy.origin, "hash": review.policy.hash });
    let known = [
        ("source", json!(s.kind.name())),
        ("verdict", json!(review.verdict.name())),
        ("policy", policy),
    ];
    let waived = review
        .findings
        .iter()
        .filter(|f| f.waived.is_some())
        .count();
    let aside = [
        ("suppressed", json!(super::suppressed(review))),
        ("waived", json!(waived)),
        ("dispositioned", json!(super::dispositioned(review))),
    ];
    let usage: Vec<_> = review
        .models
        .usage
        .iter()
        .map(crate::wire::BackendUsage::from)
        .collect();
    let usage = (!usage.is_empty()).then(|| ("usage", json!(usage)));
    let c = &review.coverage;
    let files = [
        ("filesReviewed", json!(c.files_reviewed)),
        ("filesTotal", json!(c.files_total)),
    ];
    let tests = review
        .tests
        .as_ref()
        .map(|t| ("tests", json!(t.outcome.name())));
    let context: Vec<String> = words::context(review)
        .iter()
        .map(|text| untrusted::plain(text))
        .collect();
    let context = (!context.is_empty()).then(|| ("context", json!(context)));
    bag(
        None,
        known
            .into_iter()
            .chain(ids)
            .chain(aside)
            .chain(files)
            .chain(tests)
            .chain(context)
            .chain(usage),
    )
}

/// Returns the invocation: exit code, times and notifications. `kept` is the number of results.
fn invocation(review: &Review, kept: usize) -> sarif::Invocation {
    let told = notifications(review, kept);
    let mut invocation = sarif::Invocation::builder()
        .execution_successful(review.coverage.is_complete())
        .build();
    invocation.exit_code = Some(i64::from(review.exit.code()));
    invocation.start_time_utc = Some(moment(review.timestamp));
    invocation.end_time_utc = review
        .timestamp
        .checked_add(review.duration)
        .ok()
        .map(moment);
    if !told.is_empty() {
        invocation.tool_execution_notifications = Some(told);
    }
    invocation
}

/// Returns a notification for each part that was not reviewed, finding that was let through, and
/// note, and for what is left out.
fn notifications(review: &Review, kept: usize) -> Vec<sarif::Notification> {
    let c = &review.coverage;
    let mut told = Vec::new();
    let all = review.findings.iter().filter(|f| is_result(f)).count() + review.unlisted.total();
    if kept < all {
        let left = all - kept;
        let text = format!("The worst {kept} of {all} findings are listed; {left} are left out.");
        told.push(notification("warning", text, None));
    }
    if let Some(text) = words::failed_tests(review, MAX_TESTS) {
        let level = if words::tests_block(review) {
            "error"
        } else {
            "warning"
        };
        told.push(notification(level, untrusted::plain(&text), None));
    }
    if let Some(text) = words::truncated(review) {
        told.push(notification("warning", untrusted::plain(&text), None));
    }
    for f in &c.failed {
        told.push(notification(
            "error",
            format!("Not reviewed: {}", untrusted::plain(&f.reason())),
            f.file.as_ref(),
        ));
    }
    told.extend(
        review
            .findings
            .iter()
            .filter_map(|f| Some(notification("note", let_through(f)?, f.file()))),
    );
    for (path, skip) in &c.skipped {
        told.push(notification(
            "note",
            format!("Not reviewed: {}", skip.name()),
            Some(path),
        ));
    }
    for n in &review.notes {
        told.push(notification(
            "note",
            untrusted::plain(&n.text),
            n.file.as_ref(),
        ));
    }
    if told.len() > MAX_NOTIFICATIONS {
        let left = told.len() - MAX_NOTIFICATIONS;
        told.truncate(MAX_NOTIFICATIONS);
        told.push(notification(
            "warning",
            format!("{left} further notifications are left out."),
            None,
        ));
    }
    told
}

/// Returns the person who waived or suppressed a finding, and the reason; `None` if the finding is
/// a result.
fn let_through(f: &Finding) -> Option<String> {
    let aside = finding_text::aside(f).filter(|_| !is_result(f))?;
    let text = format!(
        "{}: {} ({}: {})",
        aside.label,
        aside.reason,
        f.rule_id(),
        f.title()
    );
    Some(untrusted::plain(&capitalized(&text)))
}

/// Returns a text with its first letter in upper case.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Returns true for findings that count, and for findings that a person rejected or deferred: these
/// are results with a suppression.
fn is_result(f: &Finding) -> bool {
    f.waived.is_none() && f.suppressed.is_none()
}

/// Returns the suppressions of a result. An empty list states that it is not suppressed; a missing
/// one, that suppressions were not computed.
fn suppressions(f: &Finding) -> Vec<sarif::Suppression> {
    let Some(aside) = finding_text::aside(f) else {
        return Vec::new();
    };
    let text = untrusted::plain(&format!("{}: {}", aside.label, aside.reason));
    let mut suppression = sarif::Suppression::builder()
        .kind(json!("external"))
        .build();
    suppression.status = Some(json!("accepted"));
    suppression.justification = Some(text);
    vec![suppression]
}

/// Returns the replacement of a result's lines; `None` if the code has hidden characters.
fn fix(f: &Finding) -> Option<sarif::Fix> {
    let code = finding_text::applicable(f)?;
    let (path, span) = f.file().zip(f.lines())?;
    let (first, last) = (i64::from(span.first.get()), i64::from(span.last.get()));
    // Deleted lines include their line ends.
    let region = match code.is_empty() {
        true => sarif::Region {
            start_line: Some(first),
            start_column: Some(1),
            end_line: Some(last + 1),
            end_column: Some(1),
            ..Default::default()
        },
        false => sarif::Region {
            start_line: Some(first),
            end_line: Some(last),
            ..Default::default()
        },
    };
    let mut replacement = sarif::Replacement::builder().deleted_region(region).build();
    replacement.inserted_content = Some(sarif::ArtifactContent {
        text: Some(code.to_owned()),
        ..Default::default()
    });
    let location = physical(path).artifact_location?;
    let change = sarif::ArtifactChange::builder()
        .artifact_location(location)
        .replacements(vec![replacement])
        .build();
    Some(sarif::Fix::builder().artifact_changes(vec![change]).build())
}

/// Formats a time with milliseconds, as SARIF requires.
fn moment(t: jiff::Timestamp) -> String {
    t.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Returns a notification of a level, about a file or about the whole change.
fn notification(level: &'static str, text: String, path: Option<&RepoPath>) -> sarif::Notification {
    let mut n = sarif::Notification::builder()
        .message(message(text))
        .build();
    n.level = Some(json!(level));
    n.locations = path.map(|p| vec![location(physical(p))]);
    n
}

/// Returns the result of a finding. `ordinal` numbers findings with one fingerprint from 1;
/// `fallback` is the position of findings without one.
fn result(
    f: &Finding,
    ordinal: u32,
    review: &Review,
    rules: &[sarif::ReportingDescriptor],
    fallback: &Location,
) -> sarif::Result {
    let mut text = sentence(if f.message().is_empty() {
        f.title()
    } else {
        f.message()
    });
    if let Some(said) = inside(f.commit, review) {
        text.push_str(&format!("\n{said}"));
    }
    if let Some(failure) = f.failure() {
        text.push_str(&format!("\nFails when: {}", sentence(failure)));
    }
    if let Some(suggestion) = f.suggestion() {
        text.push_str(&format!("\nHelp: {}", sentence(suggestion)));
    }
    let mut r = sarif::Result::builder().message(message(text)).build();
    r.rule_id = Some(f.rule_id().to_owned());
    r.rule_index = rules
        .iter()
        .position(|d| d.id == f.rule_id())
        .and_then(|i| i64::try_from(i).ok());
    r.level = Some(level(f.severity()));
    r.locations = Some(vec![place(f, review, fallback)]);
    if !f.also().is_empty() {
        r.related_locations = Some(
            (1i64..)
                .zip(f.also())
                .map(|(id, also)| related(id, also))
                .collect(),
        );
    }
    r.code_flows = code_flow(f).map(|flow| vec![flow]);
    let fingerprint = f.fingerprint().as_str();
    r.partial_fingerprints = Some(BTreeMap::from([
        // The name and format that GitHub reads.
        (
            "primaryLocationLineHash".to_owned(),
            format!("{fingerprint}:{ordinal}"),
        ),
        ("claudeReviewer/v1".to_owned(), fingerprint.to_owned()),
    ]));
    r.suppressions = Some(suppressions(f));
    r.fixes = fix(f).map(|fix| vec![fix]);
    let mut facts = vec![
        ("severity", json!(f.severity().name())),
        ("category", json!(f.category().name())),
        ("confidence", json!(f.confidence().name())),
        ("blocking", json!(f.blocking)),
    ];
    if *f.origin() != Origin::Rules {
        facts.push(("origin", json!(untrusted::plain(f.origin().name()))));
    }
    if let Some(commit) = f.commit {
        facts.push(("commit", json!(commit.to_string())));
    }
    if f.file().is_none() {
        facts.push(("wholeChange", json!(true)));
    }
    r.properties = Some(bag(None, facts));
    r
}

/// Returns the level of a severity in SARIF's terms.
fn level(severity: Severity) -> sarif::ResultLevel {
    match severity {
        Severity::Critical | Severity::Major => sarif::ResultLevel::Error,
        Severity::Minor => sarif::ResultLevel::Warning,
        Severity::Suggestion => sarif::ResultLevel::Note,
    }
}

/// Returns the position of a finding with the lines around it.
fn place(f: &Finding, review: &Review, fallback: &Location) -> sarif::Location {
    let own = placed(f, review);
    let at = own.as_ref().unwrap_or(fallback);
    let mut physical = physical(&at.file);
    // Findings about a whole file, or in an earlier commit, are shown at the first line.
    let mut region = sarif::Region {
        start_line: Some(1),
        ..Default::default()
    };
    if let Some(span) = at.lines {
        region.start_line = Some(i64::from(span.first.get()));
        region.end_line = Some(i64::from(span.last.get()));
        if span.first == span.last
            && let Some((start, end, snippet)) = columns(f)
        {
            region.start_column = Some(start);
            region.end_column = Some(end);
            region.snippet = Some(sarif::ArtifactContent {
                text: Some(snippet),
                ..Default::default()
            });
        }
    }
    physical.region = Some(region);
    physical.context_region = own.and_then(|own| context(f, own.lines?));
    location(physical)
}

/// Returns another line that a finding involves.
fn related(id: i64, also: &Also) -> sarif::Location {
    let mut physical = physical(&also.file);
    physical.region = Some(sarif::Region {
        start_line: Some(i64::from(also.line.get())),
        ..Default::default()
    });
    let text = untrusted::plain(&also.quote);
    sarif::Location {
        id: Some(id),
        message: Some(message(text)),
        ..location(physical)
    }
}

/// Returns the path of a value from its source to its sink, if the finding has one.
fn code_flow(f: &Finding) -> Option<sarif::CodeFlow> {
    let path = f.file().filter(|_| !f.flow().is_empty())?;
    let locations: Vec<_> = f.flow().iter().map(|s| flow_location(path, s)).collect();
    let thread = sarif::ThreadFlow::builder().locations(locations).build();
    Some(
        sarif::CodeFlow::builder()
            .thread_flows(vec![thread])
            .build(),
    )
}

/// Returns a step of a data flow as a location of a thread flow.
fn flow_location(path: &RepoPath, step: &FlowStep) -> sarif::ThreadFlowLocation {
    let mut physical = physical(path);
    physical.region = Some(sarif::Region {
        start_line: Some(i64::from(step.line.get())),
        ..Default::default()
    });
    let text = untrusted::plain(&step.quote);
    let at = sarif::Location {
        message: Some(message(text)),
        ..location(physical)
    };
    sarif::ThreadFlowLocation {
        location: Some(at),
        kinds: Some(vec![step.role.name().to_owned()]),
        ..Default::default()
    }
}

/// Returns the lines around a finding, if they are complete and more than the finding's own lines:
/// SARIF requires a proper superset.
fn context(f: &Finding, span: LineSpan) -> Option<sarif::Region> {
    let frame = f
        .frame
        .as_ref()
        .filter(|f| f.lines.iter().all(|l| l.skipped == 0))?;
    let first = frame.first.get();
    let last = first
        .checked_add(u32::try_from(frame.lines.len()).ok()?)?
        .checked_sub(1)?;
    let (own_first, own_last) = (span.first.get(), span.last.get());
    let covers = first <= own_first && own_last <= last;
    if !covers || (first, last) == (own_first, own_last) {
        return None;
    }
    let lines: Vec<_> = frame
        .lines
        .iter()
        .map(|l| String::from_utf8_lossy(&l.text))
        .collect();
    Some(sarif::Region {
        start_line: Some(i64::from(first)),
        end_line: Some(i64::from(last)),
        snippet: Some(sarif::ArtifactContent {
            text: Some(lines.join("\n")),
            ..Default::default()
        }),
        ..Default::default()
    })
}

/// Returns the location of a whole file, relative to the root of the repository.
fn physical(path: &RepoPath) -> sarif::PhysicalLocation {
    let artifact = sarif::ArtifactLocation {
        uri: Some(untrusted::uri(path.as_bytes())),
        uri_base_id: Some(ROOT.to_owned()),
        ..Default::default()
    };
    sarif::PhysicalLocation {
        artifact_location: Some(artifact),
        ..Default::default()
    }
}

/// Returns a location that has only a physical location.
fn location(physical: sarif::PhysicalLocation) -> sarif::Location {
    sarif::Location {
        physical_location: Some(physical),
        ..Default::default()
    }
}

/// Returns a message of plain text, which must be escaped.
fn message(text: String) -> sarif::Message {
    sarif::Message {
        text: Some(text),
        ..Default::default()
    }
}

/// Returns a property bag of tags and further facts.
fn bag(
    tags: Option<Vec<String>>,
    facts: impl IntoIterator<Item = (&'static str, Value)>,
) -> sarif::PropertyBag {
    let additional_properties = facts.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    sarif::PropertyBag {
        tags,
        additional_properties,
    }
}
