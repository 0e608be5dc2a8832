//! Errors for users: a message that names the object, hints with commands, and the exit code.

use std::fmt;

/// The exit status of a run. The only place with numeric exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// The review is complete, and no finding blocks.
    Pass,
    /// A finding blocks.
    Block,
    /// Bad flag, configuration, reference or repository state.
    Usage,
    /// A requested part was not reviewed.
    Incomplete,
    /// Ctrl-C.
    Interrupted,
    /// `SIGTERM` or `SIGHUP`.
    Terminated,
}

impl ExitStatus {
    /// All exit statuses, by code.
    pub const ALL: [Self; 6] = [
        Self::Pass,
        Self::Block,
        Self::Usage,
        Self::Incomplete,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// Returns the meaning of the code, for help and manual.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Pass => "review complete, no finding blocks",
            Self::Block => "at least one finding blocks",
            Self::Usage => "invalid flag, configuration, revision or repository state",
            Self::Incomplete => "review incomplete: a requested part was not reviewed",
            Self::Interrupted => "stopped by Ctrl-C",
            Self::Terminated => "stopped by a signal",
        }
    }

    /// Returns the process exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Block => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

/// Whether the input is wrong or the review is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bad flag, configuration, reference or repository state: exit 2.
    Usage,
    /// A part of the review could not be read: exit 3.
    Incomplete,
}

/// An error that reaches the user.
///
/// The text is a lowercase fragment that names the object. Untrusted text in it is not escaped: the
/// code that prints errors escapes it.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
    /// Causes, the innermost last.
    pub causes: Vec<String>,
    /// Steps for the user: commands if possible.
    pub hints: Vec<String>,
    /// Steps for a coding agent, which calls tools instead of commands of this program.
    pub for_agents: Vec<String>,
}

/// The result of an operation whose error reaches the user.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the message and its causes on one line.
    pub fn on_one_line(&self) -> String {
        let causes = self.causes.iter().flat_map(|c| [": ", c]);
        std::iter::once(self.message.as_str())
            .chain(causes)
            .collect()
    }

    /// Returns an error about the input of the caller.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            for_agents: Vec::new(),
        }
    }

    /// Returns an error about a part that could not be reviewed.
    pub fn incomplete(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Incomplete,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            for_agents: Vec::new(),
        }
    }

    /// Adds the same hint for people and agents. It names no command or flag of this program.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        self.hint_person(hint.clone()).hint_agent(hint)
    }

    /// Adds a hint for people: commands and flags that they can run.
    #[must_use]
    pub fn hint_person(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a hint for coding agents: a tool to call, or a request to the user.
    #[must_use]
    pub fn hint_agent(mut self, hint: impl Into<String>) -> Self {
        self.for_agents.push(hint.into());
        self
    }

    /// Adds an error and its causes.
    #[must_use]
    pub fn caused_by(mut self, cause: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(cause);
        while let Some(e) = next {
            self.causes.push(e.to_string());
            next = e.source();
        }
        self
    }

    /// Returns the exit code of a run that ends with this error.
    pub fn status(&self) -> ExitStatus {
        match self.kind {
            Kind::Usage => ExitStatus::Usage,
            Kind::Incomplete => ExitStatus::Incomplete,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
