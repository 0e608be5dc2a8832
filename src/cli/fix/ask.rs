//! Asks the user on the terminal. A signal ends the question.

use crate::stop::Stop;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Interval at which a question checks for a signal.
const POLL: Duration = Duration::from_millis(50);

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Plan,
    Change,
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    Edit,
    Skip,
    No,
    /// The terminal was closed, or a signal ended the run.
    Ended,
}

impl Choice {
    fn text(self) -> &'static str {
        match self {
            Self::Plan => "execute this plan? [y]es, [e]dit, [s]kip, [n]o: ",
            Self::Change => "apply this change to the worktree? [y]es, [n]o: ",
        }
    }

    fn answer(self, line: &str) -> Option<Answer> {
        match (line.trim().to_ascii_lowercase().as_str(), self) {
            ("y" | "yes", _) => Some(Answer::Yes),
            ("n" | "no", _) => Some(Answer::No),
            ("e" | "edit", Self::Plan) => Some(Answer::Edit),
            ("s" | "skip", Self::Plan) => Some(Answer::Skip),
            _ => None,
        }
    }
}

/// Asks until there is an answer.
pub(super) fn ask(choice: Choice, stop: &Stop) -> Answer {
    loop {
        // If standard error is closed, the input ends too.
        let _ = std::io::stderr().write_all(choice.text().as_bytes()).and_then(|()| std::io::stderr().flush());
        match line(stop) {
            None => {
                // The cursor is after the question.
                let _ = std::io::stderr().write_all(b"\n");
                return Answer::Ended;
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
            ("y\n", Some(Answer::Yes), Some(Answer::Yes)),
            ("YES", Some(Answer::Yes), Some(Answer::Yes)),
            ("e", Some(Answer::Edit), None),
            ("skip", Some(Answer::Skip), None),
            ("n", Some(Answer::No), Some(Answer::No)),
            ("", None, None),
            ("yy", None, None),
        ] {
            assert_eq!((Choice::Plan.answer(line), Choice::Change.answer(line)), (plan, change), "{line:?}");
        }
    }
}
