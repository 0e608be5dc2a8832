//! From finding to fix: an agent proposes decisions, applies replacements, and checks whether a
//! finding is gone.

use super::answers::{kind, schema};
use super::{McpTool, ToolCall, ToolEffect};
use crate::diff::RepoPath;
use crate::error::{Error, Result};
use crate::finding::Decision;
use crate::git::Repo;
use crate::history::{SessionId, Store};
use crate::mcp::answer::{ToolAnswer, object};
use crate::mcp::args::{Arg, ArgType, shown};
use crate::policy::RulesPolicy;
use crate::request::Source;
use crate::review::{self, StoreLocation};
use crate::rounds::apply::{self, Reviewed, Target, effect, plan};
use crate::rounds::decide::{ChosenDecision, Here, decision, propose};
use crate::rounds::fix::{FixAsk, Fixing};
use crate::rounds::worktree::{self, FindingsToVerify, WorktreeCheck};
use crate::rules::RuleSet;
use crate::wire;
use crate::wire::answer::{
    Applied, ForbiddenFile, OpenFinding, PlannedFix, Proposed, ToFix, VerifiedFix,
};
use crate::wire::stored::Session;
use jiff::civil::Date;

/// Author of the entries that an agent proposes.
const AGENT: &str = "agent (MCP)";

const FINDINGS: Arg = Arg {
    name: "findings",
    about: "IDs such as F3, or fingerprints.",
    kind: ArgType::Texts {
        most: 100,
        bytes: 64,
    },
    required: true,
};
const REVIEW: Arg = Arg {
    name: "review_id",
    about: "The stored review. Default: latest.",
    kind: ArgType::Text(64),
    required: false,
};

pub(super) const TOOLS: &[McpTool] = &[
    McpTool {
        name: "propose_disposition",
        title: "Propose a decision on findings",
        about: "Proposes to accept, reject or defer findings of a stored review. It changes no verdict: a person has to confirm \
            it. Fix findings that are right instead.",
        args: &[
            FINDINGS,
            Arg {
                name: "decision",
                about: "accept: it is right. reject: it is wrong. defer: it is right and fixed later.",
                kind: ArgType::Choice {
                    of: &["accept", "reject", "defer"],
                    default: None,
                },
                required: true,
            },
            Arg {
                name: "reason",
                about: "Why, for the person who confirms it.",
                kind: ArgType::Text(1000),
                required: true,
            },
            Arg {
                name: "until",
                about: "Not with accept: first day on which it is pending again, as 2026-01-31.",
                kind: ArgType::Text(10),
                required: false,
            },
            REVIEW,
        ],
        answers: || schema(&[kind::<Proposed>]),
        effect: ToolEffect::Settles,
        asks: false,
        run: propose_disposition,
        refused: None,
    },
    McpTool {
        name: "apply_finding",
        title: "Apply replacements of findings",
        about: "Writes the replacements of findings into the files, if the lines are as they were reviewed. Nothing is written if one \
            cannot be applied.",
        args: &[FINDINGS, REVIEW],
        answers: || schema(&[kind::<Applied>]),
        effect: ToolEffect::Edits,
        asks: false,
        run: apply_finding,
        refused: None,
    },
    McpTool {
        name: "verify_fix",
        title: "Verify a fix",
        about: "Reviews the worktree as it is: whether findings of a review are gone, and what is new.",
        args: &[FINDINGS, REVIEW],
        answers: || schema(&[kind::<VerifiedFix>]),
        effect: ToolEffect::Reads,
        asks: true,
        run: verify_fix,
        refused: None,
    },
    McpTool {
        name: "plan_fix",
        title: "Plan a fix",
        about: "Returns findings of a stored review with their code, and a plan of the policy's backend if there is one. Edit the files \
            yourself, then call verify_fix. Stores the plan.",
        args: &[FINDINGS, REVIEW],
        answers: || schema(&[kind::<PlannedFix>]),
        effect: ToolEffect::Adds,
        asks: true,
        run: plan_fix,
        refused: None,
    },
];

/// Parses the first day on which a rejected or deferred finding is pending again.
fn until(text: &str) -> Result<Date> {
    text.parse::<Date>().map_err(|_| {
        Error::usage(format!(
            "until: {} is not a date such as 2026-01-31",
            shown(text)
        ))
    })
}

fn propose_disposition(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let reason = call.given.text("reason").unwrap_or_default().trim();
    if reason.is_empty() {
        return Err(Error::usage("reason is empty")
            .hint("say why, for the person who confirms the decision"));
    }
    let choice = ChosenDecision {
        findings: named(call)?,
        decision: match call.given.text("decision") {
            Some("reject") => Decision::Rejected,
            Some("defer") => Decision::Deferred,
            _ => Decision::Accepted,
        },
        reason: Some(reason.to_owned()),
        until: call.given.text("until").map(until).transpose()?,
        owner: Some(AGENT.to_owned()),
        share: false,
    };
    if choice.decision == Decision::Accepted && choice.until.is_some() {
        let error = Error::usage(
            "until does not fit accept: an accepted finding stays accepted until it is fixed",
        );
        return Err(error.hint("leave out until, or propose to defer the finding"));
    }
    let OpenedReview {
        place,
        store,
        id,
        session,
    } = OpenedReview::of(call)?;
    let served = call.fence.repository(None, call.env)?.whole();
    let repo = Repo::open(served.dir(), call.env)?;
    let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
    let here = Here {
        repo: &repo,
        place: &place,
        store: &store,
        rules: &rules,
        env: call.env,
        now: call.now,
    };
    let proposed = propose(&here, &session, &choice)?;
    let ids: Vec<&str> = proposed
        .iter()
        .map(|(finding, _)| finding.id.as_str())
        .collect();
    let confirm = format!("claude-reviewer confirm {} --session {id}", ids.join(" "));
    let name = choice.decision.name();
    let words = format!(
        "proposed as {name}: {}\nNo verdict changes until the user runs: {confirm}\n",
        ids.join(", ")
    );
    let proposals = proposed.iter().map(|(finding, entry)| wire::Proposal {
        id: finding.id.clone(),
        fingerprint: finding.fingerprint.clone(),
        disposition: entry.decision.into(),
        decided: decision(entry),
    });
    let content = Proposed {
        review_id: id.to_string(),
        proposals: proposals.collect(),
        confirm,
    };
    Ok(ToolAnswer::new(object(wire::value(&content)), words))
}

/// The stored review that a call names.
struct OpenedReview {
    place: StoreLocation,
    store: Store,
    id: SessionId,
    session: Session,
}

impl OpenedReview {
    fn of(call: &ToolCall<'_>) -> Result<Self> {
        let (place, store, id) = call.session(call.given.text("review_id").unwrap_or("latest"))?;
        let session = store.session(&id)?;
        Ok(Self {
            place,
            store,
            id,
            session,
        })
    }

    /// Returns the findings of the last round.
    fn findings(&self) -> &[wire::Finding] {
        self.session
            .rounds
            .last()
            .map_or(&[], |r| &r.review.report.findings)
    }
}

/// Returns the IDs of the findings in the call.
fn named(call: &ToolCall<'_>) -> Result<Vec<String>> {
    let names: Vec<String> = call
        .given
        .texts("findings")
        .into_iter()
        .map(str::to_owned)
        .collect();
    match names.is_empty() {
        true => {
            Err(Error::usage("findings is empty").hint("name findings of the review by their id"))
        }
        false => Ok(names),
    }
}

fn apply_finding(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let opened = OpenedReview::of(call)?;
    let change = opened.store.change(
        &opened.id,
        u32::try_from(opened.session.rounds.len()).unwrap_or(u32::MAX),
    )?;
    let review = opened.id.to_string();
    let served = call.fence.repository(None, call.env)?.whole();
    let target = Target::of(&Repo::open(served.dir(), call.env)?, &opened.place.top)?;
    let last = opened
        .session
        .rounds
        .last()
        .map(|r| &r.review.report.source);
    let reviewed = Reviewed {
        id: &review,
        findings: opened.findings(),
        change: &change,
        head: last.and_then(|source| source.head.as_deref()),
        checked_out: opened.place.head.as_deref(),
    };
    let edits = plan(
        &target,
        &reviewed,
        &apply::FindingsToApply::Named(named(call)?),
    )?;
    edits.write()?;
    let mut request = call.stored()?;
    (request.source, request.offline) = (Source::Changes { base: None }, true);
    let effect = effect(
        &edits,
        opened.findings(),
        &review::run(&request, &call.world())?,
    );
    let content = Applied {
        review_id: review,
        applied: edits.applied.clone(),
        files: edits.paths().map(RepoPath::to_wire).collect(),
        patch: edits.shown_patch()?,
        gone: effect.gone,
        still_there: effect.still_there,
        unchecked: effect.unchecked,
        new: effect.new,
    };
    let mut words = format!("applied: {}\n", content.applied.join(", "));
    for (label, list) in [
        ("no longer found by the rules", &content.gone),
        ("still found by the rules", &content.still_there),
        ("claims of models, call verify_fix", &content.unchecked),
        ("new", &content.new),
    ] {
        if !list.is_empty() {
            words.push_str(&format!("{label}: {}\n", list.join(", ")));
        }
    }
    Ok(ToolAnswer::new(object(wire::value(&content)), words))
}

fn verify_fix(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let (_, _, session) = call.session(call.given.text("review_id").unwrap_or("latest"))?;
    let review = session.to_string();
    let wanted = FindingsToVerify {
        request: call.stored()?,
        session,
        findings: named(call)?,
        via: "mcp",
    };
    let WorktreeCheck {
        verified,
        reviewed,
        next,
    } = worktree::look(wanted, &call.world())?;
    let is_fixed = verified.is_fixed();
    let mut words = format!(
        "{}\nreviewed: {reviewed}\n",
        if is_fixed { "FIXED" } else { "NOT FIXED" }
    );
    let open = verified
        .open
        .iter()
        .map(|(id, state)| format!("{id} is {}\n", wire::name(state)));
    words.extend(
        verified
            .fixed
            .iter()
            .map(|id| format!("{id} is gone\n"))
            .chain(open),
    );
    words.extend(verified.new.iter().map(|f| {
        let at = f.file.as_deref().unwrap_or("the change");
        let line = f.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!(
            "new and blocking: {} at {at}{line}: {}\n",
            f.rule_id, f.title
        )
    }));
    words.extend(
        verified
            .unreviewed
            .iter()
            .map(|what| format!("not reviewed: {what}\n")),
    );
    if is_fixed {
        words.push_str(&format!("{next}\n"));
    }
    let content = VerifiedFix {
        review_id: review,
        reviewed,
        is_fixed,
        fixed: verified.fixed,
        open: verified
            .open
            .into_iter()
            .map(|(id, state)| OpenFinding { id, state })
            .collect(),
        new: verified.new,
        unreviewed: verified.unreviewed,
    };
    Ok(ToolAnswer::new(object(wire::value(&content)), words))
}

/// Rules for the agent on what it may not change without the user's consent.
const RULES: &str = "Do not change without the user's consent what checks the code: policy, decisions, hooks, CI files, build and package \
    scripts, configuration of tests and linters, assertions, comments that suppress findings. Deleting or weakening a check is no fix.";

fn plan_fix(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let (_, _, session) = call.session(call.given.text("review_id").unwrap_or("latest"))?;
    let ask = FixAsk {
        request: call.stored()?,
        session,
        findings: named(call)?,
        allowed: Vec::new(),
        flags: Vec::new(),
        via: "mcp",
    };
    let mut fixing = Fixing::open(ask, &call.world())?;
    let no_plan = match fixing.has_backend() {
        true => fixing.plan(&call.world()).err().map(|e| e.on_one_line()),
        false => Some("the policy names no backend".to_owned()),
    };
    let plan = fixing.stored().plan.clone();
    let files = plan
        .iter()
        .flat_map(|p| &p.steps)
        .flat_map(|s| &s.files)
        .map(String::as_str);
    let forbidden = fixing.forbidden(files).into_iter();
    let content = PlannedFix {
        review_id: session.to_string(),
        findings: fixing
            .findings()
            .0
            .iter()
            .map(|f| to_fix(f, &fixing))
            .collect(),
        forbidden: forbidden
            .map(|(file, why)| ForbiddenFile {
                file,
                why: why.to_owned(),
            })
            .collect(),
        plan,
        no_plan,
        rules: RULES.to_owned(),
    };
    let mut words = match (&content.plan, &content.no_plan) {
        (Some(_), _) => format!("plan:\n{}", fixing.plan_text()),
        (None, why) => format!("no plan: {}\n", why.as_deref().unwrap_or_default()),
    };
    for f in &content.findings {
        let place = f.file.as_deref().unwrap_or("the whole change");
        words.push_str(&format!(
            "{} {} at {place}:{}\n{}\n{}",
            f.id,
            f.rule_id,
            f.line.unwrap_or(0),
            f.text,
            f.code
        ));
    }
    words.push_str(&format!("{RULES}\nEdit the files, then call verify_fix.\n"));
    Ok(ToolAnswer::new(object(wire::value(&content)), words))
}

fn to_fix(f: &wire::Finding, fixing: &Fixing) -> ToFix {
    let parts = [
        Some(&f.title),
        Some(&f.message),
        f.failure.as_ref(),
        f.suggestion.as_ref(),
    ];
    let text: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    ToFix {
        id: f.id.clone(),
        rule_id: f.rule_id.clone(),
        file: f.file.clone(),
        line: f.line,
        text: text.join("\n"),
        code: fixing.code(f),
        replacement: f.replacement.clone(),
    }
}
