//! Messages of git about a failed fetch: a few lines without passwords, and hints.

use super::NamedRemote;
use super::address::{Scheme, without_password};

/// The most lines that are kept, from the end.
const MAX_LINES: usize = 6;
/// The most characters of a line.
const MAX_LINE: usize = 300;

/// Returns the last non-empty lines.
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

/// Returns true if the remote answered that it does not have the requested object.
pub(super) fn not_there(said: &[String]) -> bool {
    says(
        said,
        &[
            "couldn't find remote ref",
            "not our ref",
            "unadvertised object",
            "no such remote ref",
        ],
    )
}

/// Returns hints for the messages.
pub(super) fn hints(said: &[String], remote: &NamedRemote) -> Vec<String> {
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
            hints.push(
                "the repository's core.sshCommand is not run; if you trust it: \
                 GIT_SSH_COMMAND=\"$(git config core.sshCommand)\" claude-reviewer …"
                    .to_owned(),
            );
        } else if !ssh && remote.own_helper {
            hints.push(
                "the repository's credential.helper is not run; set your own: \
                 git config --global credential.helper HELPER"
                    .to_owned(),
            );
        } else if !ssh {
            hints.push(
                "in CI, make the checkout keep its credentials; elsewhere: git config --global credential.helper HELPER"
                    .to_owned(),
            );
        }
    }
    if says(said, &["returned error: 30", "redirect"]) {
        hints.push("the remote has moved; update its URL: git remote set-url NAME URL".to_owned());
    }
    if not_there(said) {
        hints.push("list the references of the remote: git ls-remote".to_owned());
    }
    hints
}
