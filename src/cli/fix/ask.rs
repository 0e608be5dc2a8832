//! Asks the user on the terminal. A signal ends the question.

use crate::stop::Stop;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Interval at which a question checks for a signal.
const POLL: Duration = Duration::from_millis(50);

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalSubject {
    Plan,
    Change,
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalAnswer {
    Yes,
    Edit,
    Skip,
    No,
    /// The terminal was closed, or a signal ended the run.
    Ended,
}

impl ApprovalSubject {
    fn text(self) -> &'static str {
        match self {
            Self::Plan => "execute this plan? [y]es, [e]dit, [s]kip, [n]o: ",
            Self::Change => "apply this change to the worktree? [y]es, [n]o: ",
        }
    }

    fn answer(self, line: &str) -> Option<ApprovalAnswer> {
        match (line.trim().to_ascii_lowercase().as_str(), self) {
            ("y" | "yes", _) => Some(ApprovalAnswer::Yes),
            ("n" | "no", _) => Some(ApprovalAnswer::No),
            ("e" | "edit", Self::Plan) => Some(ApprovalAnswer::Edit),
            ("s" | "skip", Self::Plan) => Some(ApprovalAnswer::Skip),
            _ => None,
        }
    }
}

/// Asks until there is an answer.
pub(super) fn ask(choice: ApprovalSubject, stop: &Stop) -> ApprovalAnswer {
    loop {
        // If standard error is closed, the input ends too.
        let _ = std::io::stderr()
            .write_all(choice.text().as_bytes())
            .and_then(|()| std::io::stderr().flush());
        match line(stop) {
            None => {
                // The cursor is after the question.
                let _ = std::io::stderr().write_all(b"\n");
                return ApprovalAnswer::Ended;
            }
            Some(line) => {
                if let Some(answer) = choice.answer(&line) {
                    return answer;
                }
            }
        }
    }
}

/// Reads a line; `None` if the input or the run ended. The reading thread ends with the process.
fn line(stop: &Stop) -> Option<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        // After a signal, the receiver is dropped.
        let _ = tell.send(read.ok().filter(|n| *n > 0).map(|_| line));
    });
    loop {
        match told.recv_timeout(POLL) {
            Ok(line) => return line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if stop.signal().is_some() => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_words_or_letters_and_nothing_else_approves() {
        for (line, plan, change) in [
            ("y\n", Some(ApprovalAnswer::Yes), Some(ApprovalAnswer::Yes)),
            ("YES", Some(ApprovalAnswer::Yes), Some(ApprovalAnswer::Yes)),
            ("e", Some(ApprovalAnswer::Edit), None),
            ("skip", Some(ApprovalAnswer::Skip), None),
            ("n", Some(ApprovalAnswer::No), Some(ApprovalAnswer::No)),
            ("", None, None),
            ("yy", None, None),
        ] {
            assert_eq!(
                (
                    ApprovalSubject::Plan.answer(line),
                    ApprovalSubject::Change.answer(line)
                ),
                (plan, change),
                "{line:?}"
            );
        }
    }
}
