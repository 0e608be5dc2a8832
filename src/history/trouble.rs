//! The errors of a store, and their messages.

use crate::error::{Error, Kind};
use rustix::io::Errno;
use std::io;

/// An error of an operation in the store.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The file does not exist.
    Absent,
    /// A newer version wrote it: the file, and its version.
    Future(String, u64),
    /// The content is invalid: the file, and the reason.
    Damaged(String, String),
    /// The file is not opened: a link, a pipe, or another user's file.
    Refused(String, String),
    /// A system error: the operation, and its cause.
    Failed(String, io::Error),
    /// Another process has the lock.
    Locked(String),
}

pub(super) type Result<T> = std::result::Result<T, Trouble>;

impl Trouble {
    /// Converts it to an error. `what` is the operation that failed.
    pub(super) fn error(self, what: impl Into<String>) -> Error {
        let kind = match &self {
            Self::Failed(..) | Self::Locked(_) => Kind::Incomplete,
            Self::Absent | Self::Future(..) | Self::Damaged(..) | Self::Refused(..) => Kind::Usage,
        };
        let error = Error {
            kind,
            causes: vec![self.cause()],
            ..Error::usage(what)
        };
        match self {
            Self::Absent | Self::Damaged(..) => error,
            Self::Future(..) => error.hint("update claude-reviewer; the file stays unchanged"),
            Self::Refused(name, _) => error.hint(format!("ls -la {name}")),
            Self::Failed(act, e) => match hint(&act, &e) {
                Some(Advice { person, agent }) => error
                    .hint_person(person)
                    .hint_agent(agent.unwrap_or(person)),
                None => error,
            },
            Self::Locked(_) => error.hint("wait until it is done, then try again"),
        }
    }

    /// Returns the cause that an error has.
    fn cause(&self) -> String {
        match self {
            Self::Absent => "there is nothing there".to_owned(),
            Self::Future(file, version) => {
                format!(
                    "{file} was written by a newer claude-reviewer: its schema_version is {version}"
                )
            }
            Self::Damaged(file, why) => format!("{file} is damaged: {why}"),
            Self::Refused(..) | Self::Failed(..) | Self::Locked(_) => self.line(),
        }
    }

    /// Formats it on one line.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Absent => "it is missing".to_owned(),
            Self::Future(file, version) => {
                format!("{file} has schema_version {version}, which is newer than this program")
            }
            Self::Damaged(file, why) => format!("{file}: {why}"),
            Self::Refused(name, why) => format!("{name} {why}"),
            Self::Failed(what, e) => format!("{what}: {e}"),
            Self::Locked(holder) => format!("{holder} holds the lock of the store"),
        }
    }
}

/// The hints for a system error.
struct Advice {
    person: &'static str,
    /// `None` if it is the same.
    agent: Option<&'static str>,
}

/// Returns the hints for a system error, if there are any.
fn hint(what: &str, e: &io::Error) -> Option<Advice> {
    let person = match Errno::from_io_error(e)? {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
            let person =
                "make room, or remove old reviews: `claude-reviewer history prune --keep 100`";
            let agent = "report to the user that the disk is full; the user decides which old reviews to remove";
            return Some(Advice {
                person,
                agent: Some(agent),
            });
        }
        Errno::ROFS | Errno::ACCESS | Errno::PERM => {
            "reviews are stored in `.reviews`; `[history] path` in the policy names another folder"
        }
        Errno::XDEV => {
            "everything in the store must lie on one file system: `[history] path` in the policy names another folder"
        }
        Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS if what.contains("lock") => {
            "this file system has no locks: `[history] path` in the policy names a folder on another one"
        }
        _ => return None,
    };
    Some(Advice {
        person,
        agent: None,
    })
}
