//! Chooses the findings to fix, and says why a finding needs no fix.

use super::super::decide::ListedFinding;
use super::super::named::select;
use super::FixAsk;
use crate::error::{Error, Result};
use crate::wire;

/// The reason for the choice of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The user named them.
    Named,
    /// A person accepted them.
    Accepted,
    /// There are no decisions, and they block.
    Blocking,
}

/// Chooses the findings.
pub(super) fn chosen(
    listed: &[ListedFinding],
    ask: &FixAsk,
) -> Result<(Vec<wire::Finding>, Chosen)> {
    let all: Vec<wire::Finding> = listed.iter().map(|l| l.finding.clone()).collect();
    if !ask.findings.is_empty() {
        let mut named: Vec<wire::Finding> = Vec::new();
        for name in &ask.findings {
            let found = select(&all, name, &ask.session.to_string())?;
            if found.disposition == wire::Disposition::Fixed {
                let error = Error::usage(format!(
                    "{} is fixed, as the last round of review {} found",
                    found.id, ask.session
                ));
                return Err(error
                    .hint_person(format!("claude-reviewer findings {}", ask.session))
                    .hint_agent(format!(
                        "call get_review_history with review_id {}",
                        ask.session
                    )));
            }
            if named.iter().all(|f| f.id != found.id) {
                named.push(found.clone());
            }
        }
        return Ok((named, Chosen::Named));
    }
    let is_decided = listed.iter().any(|l| l.entry.is_some());
    let (wanted, chosen) = match is_decided {
        true => (wire::Disposition::Accepted, Chosen::Accepted),
        false => (wire::Disposition::Pending, Chosen::Blocking),
    };
    let found = all
        .into_iter()
        .filter(|f| f.disposition == wanted && (is_decided || f.blocking));
    let found: Vec<wire::Finding> = found.collect();
    if found.is_empty() {
        let what = if is_decided {
            "no accepted finding"
        } else {
            "no finding that blocks"
        };
        let error = Error::usage(format!("review {} has {what} to fix", ask.session));
        return Err(error
            .hint_person(format!(
                "name findings, which this lists: claude-reviewer findings {}",
                ask.session
            ))
            .hint_agent(format!(
                "name findings, which get_review_history lists with review_id {}",
                ask.session
            )));
    }
    Ok((found, chosen))
}

/// Returns why a model need not fix a finding. `fixed` has the IDs of findings that the rules no
/// longer report.
pub(super) fn why_done(found: &wire::Finding, fixed: &[String]) -> String {
    if fixed.contains(&found.id) {
        return format!("{} is already fixed in the worktree", found.id);
    }
    let line = found
        .line
        .map(|line| format!(":{line}"))
        .unwrap_or_default();
    let at = found
        .file
        .as_ref()
        .map(|file| format!(" at {file}{line}"))
        .unwrap_or_default();
    format!(
        "the lines of {}{at} have changed since the review",
        found.id
    )
}
