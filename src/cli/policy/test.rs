//! `policy test`: judges stored reviews by the current policy or another file, with the decisions
//! that apply now.

use super::{Context, PolicyFiles, line};
use crate::cli::format::Format;
use crate::cli::stdout::{eprint, print};
use crate::error::{Error, ExitStatus, Result};
use crate::git::Repo;
use crate::history::SessionId;
use crate::policy::{Loaded, Policy, ProjectFile, RulesPolicy};
use crate::request::{ReviewRequest, Source};
use crate::review::today;
use crate::rounds::decide::{Here, decision, list};
use crate::rounds::replay::Decisions;
use crate::rounds::{self, replay};
use crate::rules::RuleSet;
use crate::untrusted::Inert;
use crate::wire;
use crate::wire::replay::{Because, REPLAY_VERSION, Replay, Replayed};
use crate::wire::stored::{Damaged, Session};
use std::path::Path;

/// Reasons that are printed for a round, at most.
const REASONS: usize = 10;

pub(super) fn run(
    context: &Context,
    file: Option<&Path>,
    (limit, proposals): (usize, bool),
    format: Format,
) -> Result<ExitStatus> {
    let files = match file {
        Some(path) => {
            let here = PolicyFiles::find(context, None)?;
            PolicyFiles {
                project: Some(ProjectFile::from_flag(path, &context.dir)?),
                ..here
            }
        }
        None => PolicyFiles::find(context, None)?,
    };
    let Loaded { policy, notes } = files.load(context)?;
    if format == Format::Human && !context.global.quiet {
        for note in &notes {
            eprint(&format!("note: {}", line(&note.text)));
        }
    }
    let mut request = ReviewRequest::new(Source::Auto, context.dir.clone());
    // The policy that applies here names the store, not the policy under test.
    request.config.clone_from(&context.global.config);
    let (place, store) = rounds::open(&request, &context.env)?;
    let store = store
        .ok_or_else(|| Error::usage("no stored reviews found").hint("claude-reviewer review"))?;
    let (repo, rules) = (
        Repo::open(&context.dir, &context.env)?,
        RuleSet::new(&RulesPolicy::default(), &[])?,
    );
    let now = jiff::Timestamp::now();
    let here = Here {
        repo: &repo,
        place: &place,
        store: &store,
        rules: &rules,
        env: &context.env,
        now,
    };
    let replay = judged(&here, &policy, limit, proposals)?;
    print(&match format {
        Format::Human => human(&replay, &files.label()),
        Format::Json => {
            let mut out = Vec::new();
            wire::write(&replay, &mut out)
                .map_err(|e| Error::incomplete("cannot write the result").caused_by(&e))?;
            String::from_utf8_lossy(&out).into_owned()
        }
    })
}

fn judged(here: &Here<'_>, policy: &Policy, limit: usize, proposals: bool) -> Result<Replay> {
    let history = here.store.list(limit)?;
    let mut out = Replay {
        schema_version: REPLAY_VERSION,
        policy: wire::Policy {
            origin: policy.origin_label().to_owned(),
            hash: policy.hash(),
        },
        rounds: Vec::new(),
        flips: 0,
        damaged: history.damaged,
    };
    for overview in &history.sessions {
        let Some(id) = SessionId::parse(&overview.review_id) else {
            continue;
        };
        match here.store.session(&id) {
            Ok(session) => out
                .rounds
                .extend(replayed(here, &session, policy, proposals)?),
            Err(e) => out.damaged.push(Damaged {
                review_id: id.to_string(),
                why: e.on_one_line(),
                moved_to: None,
            }),
        }
    }
    out.flips = out.rounds.iter().filter(|r| r.flips).count();
    Ok(out)
}

/// Judges the rounds of a session. Decisions apply only to the last round, because the lines of
/// earlier ones are not available.
fn replayed(
    here: &Here<'_>,
    session: &Session,
    policy: &Policy,
    proposals: bool,
) -> Result<Vec<Replayed>> {
    let now = decisions(here, session, proposals)?;
    let before = Decisions::new();
    let last = session.rounds.len();
    let rounds = session.rounds.iter().enumerate();
    let replayed = rounds.map(|(i, round)| {
        let decisions = if i + 1 == last { &now } else { &before };
        replay::round(&round.review, policy, here.rules, decisions)
    });
    Ok(replayed.collect())
}

/// Returns the current decisions for the last round of a session, and the stored ones that have
/// expired. If the lines have changed since, the stored decision applies. In gate mode only the
/// stored decisions at the base count.
fn decisions(here: &Here<'_>, session: &Session, proposals: bool) -> Result<Decisions> {
    let today = today(here.now).to_string();
    let stored = session
        .rounds
        .last()
        .into_iter()
        .flat_map(|r| &r.review.report.findings);
    let expired = stored.filter(|f| {
        f.decided
            .as_ref()
            .and_then(|d| d.expires.as_ref())
            .is_some_and(|d| *d <= today)
    });
    let mut out: Decisions = expired.map(|f| (f.fingerprint.clone(), None)).collect();
    if session.request.asked.gate {
        return Ok(out);
    }
    for l in list(here, session)? {
        if let Some(entry) = l.proposal.filter(|_| proposals).or(l.entry) {
            let decided = (entry.decision.into(), decision(&entry));
            out.insert(l.finding.fingerprint, Some(decided));
        }
    }
    Ok(out)
}

fn human(replay: &Replay, label: &str) -> String {
    let rounds = replay.rounds.len();
    let mut out = format!(
        "{rounds} stored round{} under {label}, hash {}: {} verdict{} would change\n",
        ending(rounds),
        replay.policy.hash,
        replay.flips,
        ending(replay.flips)
    );
    for r in replay.rounds.iter().filter(|r| r.flips) {
        out.push('\n');
        out.push_str(&line(&format!(
            "{} round {}: {} -> {}",
            r.review_id,
            r.round,
            wire::name(&r.was.verdict),
            wire::name(&r.would_be.verdict)
        )));
        for b in r.because.iter().take(REASONS) {
            out.push_str(&format!("  {}", line(&reason(b))));
        }
        if r.because.len() > REASONS {
            out.push_str(&format!("  and {} more\n", r.because.len() - REASONS));
        }
    }
    let unknown = not_known(&replay.rounds);
    if !unknown.is_empty() {
        out.push_str("\nunknown without a new review:\n");
        for (what, count) in unknown {
            out.push_str(&format!(
                "  {}",
                line(&format!("{what} ({count} of {rounds})"))
            ));
        }
    }
    for d in &replay.damaged {
        out.push_str(&format!(
            "damaged: {}",
            line(&format!("{}: {}", d.review_id, d.why))
        ));
    }
    out
}

/// Returns the ending of a noun after a number.
fn ending(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// Returns the unknowns of all rounds, each once, with the number of rounds.
fn not_known(rounds: &[Replayed]) -> Vec<(&str, usize)> {
    let mut out: Vec<(&str, usize)> = Vec::new();
    for text in rounds.iter().flat_map(|r| &r.unknown) {
        match out.iter_mut().find(|(known, _)| known == text) {
            Some((_, count)) => *count += 1,
            None => out.push((text, 1)),
        }
    }
    out
}

fn reason(b: &Because) -> String {
    let place = match (&b.file, b.line) {
        (Some(file), Some(line)) => format!("{}:{line} ", Inert::new(file)),
        (Some(file), None) => format!("{} ", Inert::new(file)),
        (None, _) => String::new(),
    };
    let id =
        b.id.as_ref()
            .map_or_else(String::new, |id| format!("{id} "));
    let rule = b
        .rule_id
        .as_ref()
        .map_or_else(String::new, |r| format!("{r}: "));
    format!("{id}{place}{rule}{}", b.what)
}
