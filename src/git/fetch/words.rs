//! What git says when a fetch fails: a few lines of it, without passwords, and what can be done.

use super::Named;
use super::address::{Scheme, without_password};

/// Lines that are kept, the last ones.
const MAX_LINES: usize = 6;
/// Characters of a line.
const MAX_LINE: usize = 300;

/// Takes the lines that say something, the last ones first cut.
pub(super) fn of(stderr: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stderr);
    let mut lines: Vec<String> = text
        .split(['\n', '\r'])
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .map(|l| without_password(l).chars().take(MAX_LINE).collect())
        .collect();
    lines.drain(..lines.len().saturating_sub(MAX_LINES));
    lines
}

fn says(said: &[String], words: &[&str]) -> bool {
    said.iter().any(|l| words.iter().any(|w| l.contains(w)))
}

/// Tells whether the remote answered, and does not have what was asked for.
pub(super) fn not_there(said: &[String]) -> bool {
    says(said, &["couldn't find remote ref", "not our ref", "unadvertised object", "no such remote ref"])
}

/// Says what can be done.
pub(super) fn hints(said: &[String], remote: &Named) -> Vec<String> {
    let mut hints = Vec::new();
    let refused = [
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "unable to get password",
        "terminal prompts disabled",
        "Permission denied",
        "returned error: 401",
        "returned error: 403",
        "Repository not found",
        "Host key verification failed",
    ];
    if says(said, &refused) {
        let ssh = remote.address.scheme == Scheme::Ssh;
        if ssh && remote.own_ssh {
            hints.push("the repository's own core.sshCommand is not run".to_owned());
            hints.push("GIT_SSH_COMMAND=\"$(git config core.sshCommand)\" claude-reviewer …".to_owned());
        } else if !ssh && remote.own_helper {
            hints
                .push("the repository's own credential.helper is not run; git config --global can name one".to_owned());
        } else if !ssh {
            hints.push(
                "in CI, let the checkout keep its credentials; elsewhere, git config --global credential.helper"
                    .to_owned(),
            );
        }
    }
    if says(said, &["returned error: 30", "redirect"]) {
        hints.push("the remote has moved, and redirects are not followed: git remote set-url NAME URL".to_owned());
    }
    if not_there(said) {
        hints.push("git ls-remote lists what the remote has".to_owned());
    }
    hints
}
