//! Parts of a change that were not reviewed, each with its cause.

use crate::diff::RepoPath;
use std::fmt;

/// A part of the change that should have been reviewed, and was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageFailure {
    /// `None`: the change as a whole, such as for a backend that did not answer.
    pub file: Option<RepoPath>,
    pub cause: FailureCause,
}

impl CoverageFailure {
    /// Creates a failure of the change as a whole.
    pub fn whole(cause: FailureCause) -> Self {
        Self { file: None, cause }
    }

    /// Creates a failure of one file.
    pub fn in_file(file: RepoPath, cause: FailureCause) -> Self {
        Self {
            file: Some(file),
            cause,
        }
    }

    /// Returns the cause in the words of reports. The text is untrusted: it can contain names and
    /// messages of others.
    pub fn reason(&self) -> String {
        self.cause.to_string()
    }
}

/// The cause of a [`CoverageFailure`]. Its `Display` is the text of reports and of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// `--offline` kept the review from asking a backend.
    NotAsked { backend: String },
    /// As [`FailureCause::NotAsked`], and no receipt of an earlier review replaces the answer.
    NoReceipt { backend: String },
    /// The author's own agent reviewed, and the policy requires a backend.
    AgentReviewed { backend: String },
    /// A backend did not review the part, for this reason.
    Backend { backend: String, reason: String },
    /// A limit kept a part of the file from the models.
    CutOff { limit: String },
    /// A signal or the caller stopped the review.
    Stopped,
    /// The worktree file was another one for the models than for the rules.
    Modified,
    /// The review of the part panicked.
    InternalError,
    /// No report of this shard was given to the merge.
    MissingShard { index: u32, of: u32 },
    /// No report of these shards was given to the merge, the last one included.
    MissingShards { first: u32, last: u32, of: u32 },
    /// The merge was given a second report of this shard, in this file.
    DuplicateShard { index: u32, of: u32, file: String },
    /// The report in this file is not of the merged review; `what` names what differs.
    ForeignShard { file: String, what: String },
    /// The reason in words, such as the message of an error. Nothing is decided by this text.
    Other(String),
}

/// Start of the text of [`FailureCause::CutOff`].
pub const CUT_OFF: &str = "not all of it was asked about:";
/// Texts of the causes without fields.
const STOPPED: &str = "the review was stopped";
const MODIFIED: &str = "it changed while it was reviewed; run the review again";
const INTERNAL: &str = "an internal error";
/// Texts of the causes with only a backend: what precedes its name, and what follows it.
const BACKEND: &str = "backend ";
const NOT_ASKED: &str = " was not asked: --offline";
const NO_RECEIPT: &str = " was not asked, and no receipt covers it";
const AGENT_REVIEWED: &str = " was not asked: the author's own agent reviewed";
/// Texts of the causes about shards: what precedes their numbers, and what follows.
const SHARD: &str = "shard ";
const OF: &str = " of ";
const MISSING: &str = " is missing";
const SHARDS: &str = "shards ";
const TO: &str = " to ";
const ARE_MISSING: &str = " are missing";
const DUPLICATE: &str = " was given a second time: ";
/// The text before the difference, and the text before the name of the file: a name can contain
/// anything.
const FOREIGN: &str = "a shard of another review was given (";
const FOREIGN_FILE: &str = "): ";

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked { backend } => write!(f, "{BACKEND}{backend}{NOT_ASKED}"),
            Self::NoReceipt { backend } => write!(f, "{BACKEND}{backend}{NO_RECEIPT}"),
            Self::AgentReviewed { backend } => write!(f, "{BACKEND}{backend}{AGENT_REVIEWED}"),
            Self::Backend { backend, reason } => write!(f, "{backend}: {reason}"),
            Self::CutOff { limit } => write!(f, "{CUT_OFF} {limit}"),
            Self::Stopped => f.write_str(STOPPED),
            Self::Modified => f.write_str(MODIFIED),
            Self::InternalError => f.write_str(INTERNAL),
            Self::MissingShard { index, of } => write!(f, "{SHARD}{index}{OF}{of}{MISSING}"),
            Self::MissingShards { first, last, of } => {
                write!(f, "{SHARDS}{first}{TO}{last}{OF}{of}{ARE_MISSING}")
            }
            Self::DuplicateShard { index, of, file } => {
                write!(f, "{SHARD}{index}{OF}{of}{DUPLICATE}{file}")
            }
            Self::ForeignShard { file, what } => {
                write!(f, "{FOREIGN}{what}{FOREIGN_FILE}{file}")
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl FailureCause {
    /// Parses the text of a stored review. The `Display` of the result is always `text`. Text that
    /// matches no other cause becomes [`FailureCause::Other`], as does every
    /// [`FailureCause::Backend`]: its text does not show where the name ends.
    pub fn parse(text: &str) -> Self {
        match text {
            STOPPED => return Self::Stopped,
            MODIFIED => return Self::Modified,
            INTERNAL => return Self::InternalError,
            _ => {}
        }
        if let Some(limit) = text
            .strip_prefix(CUT_OFF)
            .and_then(|rest| rest.strip_prefix(' '))
        {
            return Self::CutOff {
                limit: limit.to_owned(),
            };
        }
        if let Some(cause) = about_shard(text) {
            return cause;
        }
        let Some(rest) = text.strip_prefix(BACKEND) else {
            return Self::Other(text.to_owned());
        };
        let name_before = |end| rest.strip_suffix(end).map(str::to_owned);
        if let Some(backend) = name_before(NOT_ASKED) {
            Self::NotAsked { backend }
        } else if let Some(backend) = name_before(NO_RECEIPT) {
            Self::NoReceipt { backend }
        } else if let Some(backend) = name_before(AGENT_REVIEWED) {
            Self::AgentReviewed { backend }
        } else {
            Self::Other(text.to_owned())
        }
    }
}

/// Parses the text of a cause about a shard; `None` for other texts.
fn about_shard(text: &str) -> Option<FailureCause> {
    if let Some(rest) = text.strip_prefix(FOREIGN) {
        let (what, file) = rest.split_once(FOREIGN_FILE)?;
        let (what, file) = (what.to_owned(), file.to_owned());
        return Some(FailureCause::ForeignShard { file, what });
    }
    if let Some(rest) = text.strip_prefix(SHARDS) {
        let (first, rest) = rest.split_once(TO)?;
        let (last, of) = rest.strip_suffix(ARE_MISSING)?.split_once(OF)?;
        let (first, last, of) = (number(first)?, number(last)?, number(of)?);
        return Some(FailureCause::MissingShards { first, last, of });
    }
    let (index, rest) = text.strip_prefix(SHARD)?.split_once(OF)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (of, rest) = rest.split_at(digits);
    let (index, of) = (number(index)?, number(of)?);
    if rest == MISSING {
        return Some(FailureCause::MissingShard { index, of });
    }
    let file = rest.strip_prefix(DUPLICATE)?.to_owned();
    Some(FailureCause::DuplicateShard { index, of, file })
}

/// Parses a number as it is displayed: another spelling would not be written back.
fn number(digits: &str) -> Option<u32> {
    let n: u32 = digits.parse().ok()?;
    (n.to_string() == digits).then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_reason_is_read_as_its_cause_and_written_as_it_was() {
        let backend = || "local".to_owned();
        for (text, cause) in [
            (
                "backend local was not asked: --offline",
                FailureCause::NotAsked { backend: backend() },
            ),
            (
                "backend local was not asked, and no receipt covers it",
                FailureCause::NoReceipt { backend: backend() },
            ),
            (
                "backend local was not asked: the author's own agent reviewed",
                FailureCause::AgentReviewed { backend: backend() },
            ),
            (
                "not all of it was asked about: max_requests = 1",
                FailureCause::CutOff {
                    limit: "max_requests = 1".to_owned(),
                },
            ),
            ("the review was stopped", FailureCause::Stopped),
            (
                "it changed while it was reviewed; run the review again",
                FailureCause::Modified,
            ),
            ("an internal error", FailureCause::InternalError),
            (
                "shard 2 of 4 is missing",
                FailureCause::MissingShard { index: 2, of: 4 },
            ),
            (
                "shards 2 to 9 of 10 are missing",
                FailureCause::MissingShards {
                    first: 2,
                    last: 9,
                    of: 10,
                },
            ),
            (
                "shard 2 of 4 was given a second time: out/a: b.json",
                FailureCause::DuplicateShard {
                    index: 2,
                    of: 4,
                    file: "out/a: b.json".to_owned(),
                },
            ),
            (
                "a shard of another review was given (other policy): x (other): y.json",
                FailureCause::ForeignShard {
                    file: "x (other): y.json".to_owned(),
                    what: "other policy".to_owned(),
                },
            ),
        ] {
            assert_eq!(FailureCause::parse(text), cause);
            assert_eq!(cause.to_string(), text);
        }
        for text in [
            "",
            "local: no answer",
            "backend local was not asked",
            "not all of it was asked about:",
            "an internal error ended the model review",
            "shard 02 of 4 is missing",
            "shard 2 of 4 is missing it",
            "shard 2 of",
            "a shard of another review was given (",
        ] {
            let cause = FailureCause::parse(text);
            assert_eq!(cause, FailureCause::Other(text.to_owned()));
            assert_eq!(cause.to_string(), text);
        }
    }
}
