//! Waivers: which findings they cover, and who made them.

use super::Note;
use crate::env::Env;
use crate::finding::{Finding, Waiver};
use crate::git::Repo;
use crate::policy::Waive;

/// Marks the findings that waivers cover.
pub(super) fn waive(findings: &mut [Finding], waivers: &[Waive], actor: &str) {
    for w in waivers {
        for f in findings
            .iter_mut()
            .filter(|f| w.covers(f.fingerprint().as_str()))
        {
            f.waived = Some(Waiver {
                reason: w.reason.clone(),
                actor: actor.to_owned(),
                link: None,
            });
        }
    }
}

/// Returns a note for each waiver that covers no finding.
pub(super) fn unused_waivers(findings: &[Finding], waivers: &[Waive]) -> Vec<Note> {
    let unused = unused(findings, waivers);
    unused.iter().map(|f| unused_waiver(f)).collect()
}

/// Returns the fingerprints of the waivers that cover no finding, as they were given.
pub(super) fn unused(findings: &[Finding], waivers: &[Waive]) -> Vec<String> {
    let unused = waivers
        .iter()
        .filter(|w| !findings.iter().any(|f| w.covers(f.fingerprint().as_str())));
    unused.map(|w| w.fingerprint.clone()).collect()
}

/// Returns the note about a waiver that covers no finding.
pub(crate) fn unused_waiver(fingerprint: &str) -> Note {
    let text = format!("the waiver of {fingerprint} matches no finding");
    Note::general("policy", text)
}

/// Returns the name of the person or job that runs the review, from the environment or the git
/// identity.
pub(super) fn actor(env: &Env, repo: Option<&Repo>) -> String {
    [
        "GITHUB_ACTOR",
        "GITLAB_USER_LOGIN",
        "BITBUCKET_STEP_TRIGGERER_UUID",
        "BUILD_REQUESTEDFOR",
    ]
    .iter()
    .find_map(|v| env.var(v).map(str::to_owned))
    .or_else(|| env.var("GIT_AUTHOR_NAME").map(str::to_owned))
    .or_else(|| match repo?.identity() {
        (Some(name), Some(email)) => Some(format!("{name} <{email}>")),
        (name, email) => name.or(email),
    })
    .or_else(|| env.var("USER").map(str::to_owned))
    .unwrap_or_else(|| "unknown".to_owned())
}
