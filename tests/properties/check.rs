//! The properties, as functions over bytes: a fuzz target in `fuzz/` and a test call the same
//! function.
//!
//! Each returns `Err` with a sentence if the property is violated; a panic of the code under test
//! is a failure too. This file uses only the library and no other test code, so that the fuzz
//! package can include it.

use claude_reviewer::ai::ask::Nonce;
use claude_reviewer::ai::cache::ReplyKey;
use claude_reviewer::ai::reply;
use claude_reviewer::ai::shared::EntryKey;
use claude_reviewer::ai::shared::entry::{self, EntryTerms};
use claude_reviewer::ci::{self, EventChange};
use claude_reviewer::diff::{Body, FileChange, LineKind, RepoPath, code, patch, unified};
use claude_reviewer::env::Env;
use claude_reviewer::error::{ExitStatus, Kind};
use claude_reviewer::finding::Finding;
use claude_reviewer::policy::{self, PolicyFile, ProjectFile, ProjectOrigin, RulesPolicy, Sources};
use claude_reviewer::progress::Silent;
use claude_reviewer::request::{End, Fetching, Input, Overrides, ReviewRequest, Source};
use claude_reviewer::review::{self, World};
use claude_reviewer::rules::{RuleSet, Scope, Suppressions, expand};
use claude_reviewer::stop::Stop;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// A property: `Err` describes the violation.
pub type Property = fn(&[u8]) -> Result<(), String>;

/// All properties, by the name of the fuzz target.
pub const PROPERTIES: &[(&str, Property)] = &[
    ("patch", patch_text),
    ("policy", policy_file),
    ("event", github_event),
    ("reply", model_reply),
    ("suppression", suppression_comment),
    ("content", content_classification),
    ("shared", shared_entry),
];

/// The nonce that [`model_reply`] expects, 32 hexadecimal digits.
pub const NONCE: &str = "000102030405060708090a0b0c0d0e0f";

/// The GitHub events that the first byte of the input of [`github_event`] selects.
pub const EVENTS: &[&str] = &[
    "pull_request",
    "pull_request_target",
    "push",
    "merge_group",
    "workflow_run",
    "schedule",
    "workflow_dispatch",
    "delete",
    "issue_comment",
];

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}

/// A patch is rejected with the number of one of its lines, or each line of its hunks is in the
/// result, and the written result parses to the same.
pub fn patch_text(data: &[u8]) -> Result<(), String> {
    let changes = match patch::parse(data) {
        Ok(changes) => changes,
        Err(e) => {
            ensure!(
                e.kind == Kind::Usage,
                "a malformed patch is not a usage error: {}",
                e.message
            );
            let named = e
                .message
                .strip_prefix("line ")
                .and_then(|rest| rest.split(' ').next());
            let line = named.map(|n| n.parse::<usize>().unwrap_or(0));
            // UTF-16 has other line ends than its bytes suggest.
            let lines = data.len() + 1;
            ensure!(
                line.is_none_or(|n| (1..=lines).contains(&n)),
                "the error names no line: {}",
                e.message
            );
            return Ok(());
        }
    };
    for change in &changes {
        let path = change.path().as_bytes();
        let outside =
            path.starts_with(b"/") || path.split(|b| *b == b'/').any(|part| part == b"..");
        ensure!(
            !outside && !path.is_empty(),
            "a path outside of the tree: {:?}",
            change.path()
        );
    }
    let is_plain = !changes
        .iter()
        .any(|c| matches!(c.body, Body::Submodule { .. }));
    if is_plain
        && !data.starts_with(b"\xff\xfe")
        && !data.starts_with(b"\xfe\xff")
        && !data.starts_with(b"\0\0")
    {
        let (promised, read) = (count_of_headers(data), count_of_changes(&changes));
        ensure!(
            promised == read,
            "the hunk headers promise {promised:?} lines, {read:?} were read"
        );
    }
    // A patch cannot represent the mode of a submodule with abbreviated commits.
    let is_named = |c: &FileChange| {
        let sides = [&c.entry.old, &c.entry.new];
        !matches!(c.body, Body::Submodule { .. })
            || sides.into_iter().flatten().all(|s| s.id.is_some())
    };
    if !changes.iter().all(is_named) {
        return Ok(());
    }
    let mut written = Vec::new();
    changes.iter().for_each(|c| unified::write(c, &mut written));
    let again = patch::parse_kept(&written)
        .map_err(|e| format!("its own output is rejected: {}", e.message))?;
    let (first, second) = (outline(&changes), outline(&again));
    ensure!(
        first == second,
        "it reads differently after it was written:\n{first}\n{second}"
    );
    Ok(())
}

/// Sums up the hunk headers of a patch: removed and added lines, both including context.
fn count_of_headers(patch: &[u8]) -> (u64, u64) {
    let patch = patch.strip_prefix(b"\xef\xbb\xbf").unwrap_or(patch);
    let (mut sum, mut left) = ((0u64, 0u64), (0u64, 0u64));
    for line in patch.split_inclusive(|b| *b == b'\n') {
        match line.first() {
            Some(b'\\') => {}
            Some(b'-') if left.0 > 0 => left.0 -= 1,
            Some(b'+') if left.1 > 0 => left.1 -= 1,
            _ if left != (0, 0) => left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
            _ => {
                if let Some((old, new)) = header_counts(line) {
                    sum = (sum.0 + old, sum.1 + new);
                    left = (old, new);
                }
            }
        }
    }
    sum
}

/// Parses the two counts of `@@ -1,2 +3,4 @@`; `None` for a line of any other form.
fn header_counts(line: &[u8]) -> Option<(u64, u64)> {
    let at = line.windows(3).position(|w| w == b" @@")?;
    let (old, new) = std::str::from_utf8(line[..at].strip_prefix(b"@@ -")?)
        .ok()?
        .split_once(" +")?;
    let number = |digits: &str| -> Option<u64> {
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse().ok())
            .flatten()
    };
    let count = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        number(start).and(number(count))
    };
    Some((count(old)?, count(new)?))
}

/// Counts the old and the new lines in the hunks of the changes.
fn count_of_changes(changes: &[FileChange]) -> (u64, u64) {
    let mut sum = (0, 0);
    for text in changes.iter().filter_map(FileChange::text) {
        for line in text.hunks.iter().flat_map(|h| text.lines(h)) {
            sum.0 += u64::from(line.kind != LineKind::Added);
            sum.1 += u64::from(line.kind != LineKind::Removed);
        }
    }
    sum
}

/// Returns the content of a patch as text: names, modes, numbered lines.
fn outline(changes: &[FileChange]) -> String {
    let mut out = String::new();
    for change in changes {
        let sides = [&change.entry.old, &change.entry.new];
        let sides = sides.map(|s| s.as_ref().map(|s| (s.path.clone(), s.mode)));
        out.push_str(&format!("{:?} {sides:?}", change.entry.kind));
        match &change.body {
            Body::Text(text) => {
                for line in text.hunks.iter().flat_map(|h| text.lines(h)) {
                    let shown = line.text.escape_ascii();
                    out.push_str(&format!(
                        "\n {:?} {:?} {:?} {shown}",
                        line.kind, line.old, line.new
                    ));
                }
            }
            Body::Same => out.push_str(" same"),
            Body::Binary(_) => out.push_str(" binary"),
            Body::Submodule { dirty } => out.push_str(&format!(" submodule {dirty}")),
        }
        out.push('\n');
    }
    out
}

/// A policy file is rejected with problems that name file and line, or its effective values can be
/// written and parsed again with the same result.
pub fn policy_file(data: &[u8]) -> Result<(), String> {
    const NAME: &str = "policy.toml";
    let file = |bytes: &[u8]| ProjectFile {
        from: ProjectOrigin::Worktree,
        file: PolicyFile {
            name: NAME.to_owned(),
            bytes: bytes.to_vec(),
        },
        trusted: true,
    };
    let (env, overrides) = (Env::default(), Overrides::default());
    let check = |project: &ProjectFile| {
        policy::check(&Sources {
            user: None,
            project: Some(project),
            env: &env,
            overrides: &overrides,
        })
    };
    policy::new_instructions(None, Some(data));
    policy::new_instructions(Some(data), None);
    match check(&file(data)) {
        Err(problems) => {
            ensure!(!problems.is_empty(), "rejected without a problem");
            let lines = data.split(|b| *b == b'\n').count();
            for problem in problems {
                let line = problem.line.unwrap_or(0) as usize;
                ensure!(line <= lines, "line {line} of {lines}: {}", problem.message);
                let place = if line == 0 {
                    NAME.to_owned()
                } else {
                    format!("{NAME}:{line}")
                };
                ensure!(
                    problem.message.contains(&place),
                    "{place} is not named: {}",
                    problem.message
                );
            }
            Ok(())
        }
        Ok(loaded) => {
            let written = loaded.policy.to_toml(false);
            let again = match check(&file(written.as_bytes())) {
                Ok(again) => again,
                Err(problems) => {
                    return Err(format!(
                        "its own output is rejected: {problems:?}\n{written}"
                    ));
                }
            };
            let second = again.policy.to_toml(false);
            ensure!(
                written == second,
                "it reads differently after it was written:\n{written}\n{second}"
            );
            Ok(())
        }
    }
}

/// An event names commits by full ids, caps what its author wrote, and says why a range may be
/// empty; or it is a usage error.
pub fn github_event(data: &[u8]) -> Result<(), String> {
    let Some((first, payload)) = data.split_first() else {
        return Ok(());
    };
    let name = EVENTS[usize::from(*first) % EVENTS.len()];
    let pairs = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_EVENT_NAME", name),
        ("GITHUB_REF", "refs/heads/topic"),
    ];
    let sha = ("GITHUB_SHA", "0123456789abcdef0123456789abcdef01234567");
    let env = Env::from_pairs(PathBuf::from("/"), pairs.into_iter().chain([sha]));
    let event = match ci::github_event(&env, payload, Path::new("event.json")) {
        Ok(event) => event,
        Err(e) => {
            ensure!(
                e.kind == Kind::Usage,
                "a malformed event is not a usage error: {}",
                e.message
            );
            ensure!(
                !e.hints.is_empty(),
                "the error names no flags: {}",
                e.message
            );
            return Ok(());
        }
    };
    ensure!(
        event.title.as_ref().is_none_or(|t| t.len() <= 1_100),
        "the title is not capped"
    );
    ensure!(
        event.description.as_ref().is_none_or(|t| t.len() <= 17_000),
        "the description is not capped"
    );
    for name in event.target.iter().chain(&event.fork_head) {
        ensure!(
            !name.starts_with('-') && !name.chars().any(char::is_control),
            "a branch named {name:?}"
        );
    }
    if let EventChange::Between {
        head,
        base,
        instead,
        ..
    } = &event.change
    {
        for end in [Some(head), Some(base), instead.as_ref()]
            .into_iter()
            .flatten()
        {
            is_end(end)?;
        }
    }
    let ends = match event.ends(None, None, Fetching::Never) {
        Ok(ends) => ends,
        Err(e) => {
            ensure!(
                e.kind == Kind::Usage,
                "a change that is not named is not a usage error: {}",
                e.message
            );
            let named = matches!(event.change, EventChange::Between { .. });
            ensure!(
                !named,
                "the event names both ends and they are not taken: {}",
                e.message
            );
            return Ok(());
        }
    };
    ensure!(
        matches!(event.change, EventChange::Between { .. }),
        "a range that no event named: {ends:?}"
    );
    ensure!(!matches!(ends.head, End::Nothing), "nothing is reviewed");
    let may_be_empty = matches!(
        event.kind,
        ci::EventKind::Request | ci::EventKind::Push | ci::EventKind::Tag
    );
    ensure!(
        ends.may_be_empty.is_none() || may_be_empty,
        "a {:?} may be empty",
        event.kind
    );
    Ok(())
}

/// Checks one end of a change: a full ID that is not all zeros, or a name that git cannot mistake
/// for an option.
fn is_end(end: &End) -> Result<(), String> {
    match end {
        End::Id { id, under } => {
            let is_id = matches!(id.len(), 40 | 64)
                && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            ensure!(
                is_id && id.bytes().any(|b| b != b'0'),
                "an end that is not a commit ID: {id:?}"
            );
            ensure!(
                under.as_ref().is_none_or(|u| u.starts_with("refs/")),
                "an end under {under:?}"
            );
        }
        End::Short { id, .. } => return Err(format!("GitHub never abbreviates: {id:?}")),
        End::Branch(name) | End::Rev(name) => {
            ensure!(
                !name.is_empty() && !name.starts_with('-') && !name.contains(".."),
                "an end named {name:?}"
            );
        }
        End::Nothing => {}
    }
    Ok(())
}

/// A reply without the nonce is rejected, the number of findings is bounded, and no prefix of a
/// reply is accepted with fewer findings than the whole.
pub fn model_reply(data: &[u8]) -> Result<(), String> {
    let nonce = Nonce::new(std::array::from_fn(|i| i as u8));
    debug_assert_eq!(nonce.as_str(), NONCE);
    let text = String::from_utf8_lossy(data);
    let Ok(read) = reply::parse(&text, &nonce) else {
        // The other parsers of the same documents.
        let _ = reply::rebuttal(&text, &nonce);
        return Ok(());
    };
    ensure!(
        read.nonce == NONCE,
        "a reply with another nonce: {:?}",
        read.nonce
    );
    let other = reply::parse(&text, &Nonce::new([0xee; 16]));
    ensure!(other.is_err(), "accepted for another nonce");
    ensure!(
        read.findings.len() <= reply::MAX_FINDINGS,
        "{} findings",
        read.findings.len()
    );
    // Every prefix of a short reply, some of a long one.
    let step = text.len() / 400 + 1;
    for cut in (0..text.len())
        .step_by(step)
        .filter(|cut| text.is_char_boundary(*cut))
    {
        let Ok(part) = reply::parse(&text[..cut], &nonce) else {
            continue;
        };
        ensure!(
            part == read,
            "cut at byte {cut} of {}, it is accepted as another reply",
            text.len()
        );
    }
    Ok(())
}

/// Time of [`shared_sample`], in seconds since 1970.
const SIGNED_AT: i64 = 1_800_000_000;

/// Returns the only entry that the signer of [`shared_entry`] ever signed.
pub fn shared_sample() -> Vec<u8> {
    let key = EntryKey::from_seed(&[7; 32]);
    key.map(|key| entry::seal(&shared_question(), "m-1", "no findings", SIGNED_AT, &key))
        .unwrap_or_default()
}

/// Returns the question of [`shared_sample`].
fn shared_question() -> ReplyKey {
    ReplyKey::of_parts(&["property"])
}

/// Returns the terms on which [`shared_sample`] counts.
fn shared_terms() -> EntryTerms {
    EntryTerms {
        signers: EntryKey::from_seed(&[7; 32])
            .map(|key| key.signer("ci"))
            .into_iter()
            .collect(),
        max_age: Duration::from_secs(60),
        max_bytes: 4096,
    }
}

/// The sample itself counts. Otherwise the property could not fail.
pub fn shared_sample_counts() -> Result<(), String> {
    let read = entry::open(
        &shared_sample(),
        &shared_question(),
        &shared_terms(),
        SIGNED_AT,
    );
    let signer = read.map(|read| (read.reply, read.signer));
    ensure!(
        signer == Ok(("no findings".to_owned(), "ci".to_owned())),
        "the sample reads as {signer:?}"
    );
    Ok(())
}

/// Whatever a store returns, it is refused or reads as the one entry that was signed, for its
/// question and in its lifetime; and it is not a lease.
pub fn shared_entry(data: &[u8]) -> Result<(), String> {
    let terms = shared_terms();
    let question = shared_question();
    if let Ok(read) = entry::open(data, &question, &terms, SIGNED_AT) {
        let is_signed = read.reply == "no findings" && read.model == "m-1";
        ensure!(is_signed && read.time == SIGNED_AT, "read {read:?}");
    }
    let other = ReplyKey::of_parts(&["other"]);
    for (key, now) in [
        (&other, SIGNED_AT),
        (&question, SIGNED_AT + 61),
        (&question, SIGNED_AT - 301),
    ] {
        let read = entry::open(data, key, &terms, now);
        ensure!(read.is_err(), "accepted at {now}: {read:?}");
    }
    let lease = entry::open_lease(data, &question, &terms, SIGNED_AT);
    ensure!(lease.is_none(), "accepted as a lease: {lease:?}");
    let strict = EntryTerms {
        signers: Vec::new(),
        ..terms
    };
    let read = entry::open(data, &question, &strict, SIGNED_AT);
    ensure!(read.is_err(), "accepted without signers: {read:?}");
    Ok(())
}

/// The rules, with suppressions that the change adds.
static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).expect("the catalogue is valid");
    rules.with_suppressions(Suppressions { honour_added: true })
});

/// The calls that [`suppression_comment`] tries to suppress: path, start of a comment, the line.
const CALLS: &[(&str, &str, &str)] = &[
    ("a.py", "# ", "eval(input())"),
    ("src/a.c", "// ", "gets(name);"),
    ("app/a.rb", "# ", "eval(params[:code])"),
    (
        "src/main/java/A.java",
        "// ",
        "mapper.enableDefaultTyping();",
    ),
];

/// Text in a comment suppresses nothing two lines away, and no other rule on the next line.
pub fn suppression_comment(data: &[u8]) -> Result<(), String> {
    let Some((first, text)) = data.split_first() else {
        return Ok(());
    };
    let (path, comment, call) = CALLS[usize::from(*first) % CALLS.len()];
    // A line end would move the comment to another line.
    let text: Vec<u8> = text
        .iter()
        .map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b })
        .collect();
    let scan = |parts: &[&[u8]]| {
        let mut findings = Vec::new();
        let change = code::added(RepoPath::from(path), parts.concat());
        RULES.scan(&change, Scope::All, &mut findings);
        let _ = RULES.remarks(&change, claude_reviewer::rules::Seen::Net, &findings);
        findings
    };
    let plain = scan(&[call.as_bytes(), b"\n"]);
    let rules: Vec<&str> = plain.iter().map(Finding::rule_id).collect();
    ensure!(!rules.is_empty(), "{call} is not found");
    // Bytes that are not text may make the file unreadable, which the gate reports differently.
    let text = String::from_utf8_lossy(&text).replace('\0', "");
    let far: [&[u8]; 5] = [
        comment.as_bytes(),
        text.as_bytes(),
        b"\n\n",
        call.as_bytes(),
        b"\n",
    ];
    let near: [&[u8]; 5] = [
        comment.as_bytes(),
        text.as_bytes(),
        b"\n",
        call.as_bytes(),
        b"\n",
    ];
    let below: [&[u8]; 5] = [
        call.as_bytes(),
        b"\n",
        comment.as_bytes(),
        text.as_bytes(),
        b"\n",
    ];
    for (what, parts, line) in [
        ("far above", far, 3),
        ("above", near, 2),
        ("below", below, 1),
    ] {
        let names_rule = rules.iter().any(|r| text.contains(r));
        if what == "above" && names_rule {
            continue;
        }
        let findings = scan(&parts);
        for rule in &rules {
            let on_line = |f: &&Finding| {
                f.rule_id() == *rule && f.lines().is_some_and(|l| l.first.get() == line)
            };
            let found = findings.iter().find(on_line);
            ensure!(found.is_some(), "a comment {what} hides {rule}");
            let excused = found.is_some_and(|f| f.suppressed.is_some());
            ensure!(!excused, "a comment {what} suppresses {rule}");
        }
    }
    Ok(())
}

/// Files that block on their own: path, text. Templates are expanded.
const BLOCKING: &[(&str, &str)] = &[
    ("a.py", "eval(input())"),
    ("src/a.c", "gets(name);"),
    ("run.sh", "eval \"$QUERY_STRING\""),
    (
        "src/main/java/A.java",
        "Runtime.getRuntime().exec(req.getParameter(\"cmd\"));",
    ),
    ("config.yaml", "aws_access_key_id: ${aws-key-id:AKIA}"),
    ("app.properties", "github.token=${github-token:ghp}"),
    (".env", "AWS_ACCESS_KEY_ID=${aws-key-id:AKIA}"),
    ("settings.toml", "token = \"${github-token:ghp}\""),
    ("Dockerfile", "ENV GITHUB_TOKEN=${github-token:ghp}"),
    ("Makefile", "TOKEN = ${github-token:ghp}"),
    ("data.json", "{\"token\": \"${github-token:ghp}\"}"),
    ("a.lua", "token = \"${github-token:ghp}\""),
];

/// Bytes before or after a blocking line never make the review pass: the first byte selects the
/// file, the second one the position of the rest.
pub fn content_classification(data: &[u8]) -> Result<(), String> {
    let [choice, side, bytes @ ..] = data else {
        return Ok(());
    };
    let (path, template) = BLOCKING[usize::from(*choice) % BLOCKING.len()];
    let line = expand(template, "content");
    let before = side % 3 != 1;
    let mut content = Vec::new();
    if before {
        // A quote or the start of a comment would change the meaning of the line.
        content.extend(bytes.iter().copied().filter(|b| !is_syntax(*b)));
        content.push(b'\n');
    }
    content.extend_from_slice(line.as_bytes());
    content.push(b'\n');
    if side % 3 != 0 {
        content.extend_from_slice(bytes);
    }
    let exit = review_of(path, &content)?;
    ensure!(
        matches!(exit, ExitStatus::Block | ExitStatus::Incomplete),
        "{path} passes with {exit:?}"
    );
    Ok(())
}

/// Returns true for bytes that begin or end strings, comments and blocks in some language, and for
/// digits, letters and signs that could select a language (`#!`) or a directive.
pub fn is_syntax(b: u8) -> bool {
    b.is_ascii_punctuation() || b == b'\n' || b == b'\r'
}

/// Reviews one file like the gate, and returns the exit status.
fn review_of(path: &str, content: &[u8]) -> Result<ExitStatus, String> {
    let dir = tempfile::TempDir::new().map_err(|e| format!("no folder: {e}"))?;
    let full = dir.path().join(path);
    std::fs::create_dir_all(full.parent().unwrap_or(dir.path()))
        .map_err(|e| format!("no folder: {e}"))?;
    std::fs::write(&full, content).map_err(|e| format!("no file: {e}"))?;
    let request = ReviewRequest::new(
        Source::Code(vec![Input::File(PathBuf::from(path))]),
        dir.path().to_owned(),
    );
    let none: [(&str, &str); 0] = [];
    let (env, stop) = (
        Env::from_pairs(dir.path().to_owned(), none),
        Stop::default(),
    );
    let world = World {
        env: &env,
        progress: &Silent,
        now: jiff::Timestamp::UNIX_EPOCH,
        stop: &stop,
        script: None,
        agent: None,
        findings: None,
        trackers: None,
    };
    review::run(&request, &world)
        .map(|r| r.exit)
        .map_err(|e| format!("{path}: {}", e.message))
}
