//! What a step takes from the head of a pull request, which an untrusted author writes.

use super::command::ScriptCommand;
use super::expression::dotted;
use crate::rules::pins::ActionUse;
use std::collections::HashMap;
use std::ops::Range;

/// Triggers under which the head of a pull request may be checked out with these rights.
pub(super) const TAKES_HEAD: &[&str] = &["pull_request_target", "workflow_run", "issue_comment"];
/// Triggers under which `actions/checkout` refuses the head of a fork since version 7.0.0, unless
/// `allow-unsafe-pr-checkout` is set: <https://github.com/actions/checkout/pull/2454>.
const REFUSES_FORKS: &[&str] = &["pull_request_target", "workflow_run"];
/// The first major version of `actions/checkout` that refuses forks in each of its releases.
const REFUSES_SINCE: u32 = 7;
/// Commits of the releases 7.0.0 and 7.0.1, and of 2.8.0, 3.7.0, 4.4.0, 5.1.0 and 6.1.0, which
/// refuse forks too. Other commits are not known to do so, whatever a comment beside them says.
const REFUSING_COMMITS: &[&str] = &[
    "9c091bb21b7c1c1d1991bb908d89e4e9dddfe3e0",
    "3d3c42e5aac5ba805825da76410c181273ba90b1",
    "0717577d45739eb3c851188b29f50ed6c0b2194e",
    "a37ce9120846195fa4ece8f58b268e6043cb2f26",
    "11d5960a326750d5838078e36cf38b85af677262",
    "fbc6f3992d24b796d5a048ff273f7fcc4a7b6c09",
    "d23441a48e516b6c34aea4fa41551a30e30af803",
];

/// The kind of name that a text uses for untrusted content. It determines under which triggers the
/// content exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// The fields of a pull request.
    PullRequest,
    /// The fields of the preceding run.
    Run,
    /// The number of a pull request.
    Number,
}

/// Returns true if a version of `actions/checkout` refuses the heads of forks. `uses`: the value of
/// the key.
pub(super) fn refuses_forks(uses: &str) -> bool {
    let Some(of) = ActionUse::of(uses) else {
        return false;
    };
    let tag = of.version.strip_prefix('v').unwrap_or_default();
    let is_tag = tag
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let major = tag
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    is_tag && major.is_some_and(|major| major >= REFUSES_SINCE)
        || REFUSING_COMMITS.contains(&of.version)
}

impl Head {
    /// Returns the kind of name that a text uses for the head of a pull request or of the preceding
    /// run.
    pub(super) fn named(text: &str) -> Option<Self> {
        let text = &dotted(text);
        const HEADS: &[(&str, Head)] = &[
            ("github.event.pull_request.head.sha", Head::PullRequest),
            ("github.event.pull_request.head.ref", Head::PullRequest),
            ("github.event.pull_request.head.repo", Head::PullRequest),
            ("github.head_ref", Head::PullRequest),
            ("github.event.workflow_run.head_sha", Head::Run),
            ("github.event.workflow_run.head_branch", Head::Run),
            ("github.event.workflow_run.head_repository", Head::Run),
            ("refs/pull/", Head::Number),
        ];
        let numbered = text.contains("pull/") && text.contains("github.event");
        HEADS
            .iter()
            .find(|(h, _)| text.contains(h))
            .map(|(_, head)| *head)
            .or(numbered.then_some(Head::Number))
    }

    /// Returns the triggers that run with the rights of the base and provide a value for it.
    pub(super) fn triggers(self) -> &'static [&'static str] {
        match self {
            Self::PullRequest => &["pull_request_target"],
            Self::Run => &["workflow_run"],
            Self::Number => TAKES_HEAD,
        }
    }
}

/// A head that a step puts into the folder of its job.
#[derive(Debug)]
pub(super) struct HeadCheckout {
    pub(super) head: Head,
    pub(super) lines: Range<usize>,
    /// True if the change adds another cause: lines that fetched it before, or the consent to check
    /// out a fork.
    pub(super) is_caused_elsewhere: bool,
    /// True if the action refuses the head of a fork under the triggers of [`REFUSES_FORKS`].
    pub(super) refuses_forks: bool,
}

impl HeadCheckout {
    /// Returns the checkout of a head by a command.
    pub(super) fn by(command: &ScriptCommand, head: Head) -> Self {
        Self {
            head,
            lines: command.lines.clone(),
            is_caused_elsewhere: false,
            refuses_forks: false,
        }
    }

    /// Returns true if a trigger provides a value for the head and the action does not refuse it.
    pub(super) fn is_open_to(&self, trigger: &str) -> bool {
        self.head.triggers().contains(&trigger)
            && !(self.refuses_forks && REFUSES_FORKS.contains(&trigger))
    }
}

/// A head that is among the objects of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetched {
    pub(super) head: Head,
    pub(super) fresh: bool,
}

/// The heads that are among the objects of a job, by their local names.
#[derive(Debug, Default)]
pub(super) struct FetchedHeads {
    pub(super) names: HashMap<String, Fetched>,
    /// By the text before the `*` of a pattern of git, such as `pr/*`.
    pub(super) patterns: HashMap<String, Fetched>,
    /// The bytes of the longest pattern.
    pub(super) longest: usize,
}

impl FetchedHeads {
    /// Adds a head under a plain name or a pattern. The first head with a name remains.
    pub(super) fn insert(&mut self, name: &str, fetched: Fetched) {
        let Some((before, _)) = name.split_once('*') else {
            self.names.entry(name.to_owned()).or_insert(fetched);
            return;
        };
        self.longest = self.longest.max(before.len());
        self.patterns.entry(before.to_owned()).or_insert(fetched);
    }

    /// Returns the head that an argument of git names.
    pub(super) fn find(&self, argument: &str) -> Option<Fetched> {
        let name = local_name(
            argument
                .split(['~', '^', ':', '@'])
                .next()
                .unwrap_or(argument),
        );
        let mut starts = (0..=self.longest.min(name.len())).filter_map(|end| name.get(..end));
        self.names
            .get(name)
            .or_else(|| starts.find_map(|start| self.patterns.get(start)))
            .copied()
    }

    /// Returns the checkout of the first head that the arguments of a command name.
    pub(super) fn checkout(
        &self,
        command: &ScriptCommand,
        arguments: &[&str],
    ) -> Option<HeadCheckout> {
        let found = arguments.iter().find_map(|a| self.find(a))?;
        Some(HeadCheckout {
            is_caused_elsewhere: found.fresh,
            ..HeadCheckout::by(command, found.head)
        })
    }
}

/// Returns the name of a branch without quotes and without its folders.
pub(super) fn local_name(name: &str) -> &str {
    let name = name.trim_matches(['"', '\'', ')', '`']);
    ["refs/heads/", "refs/remotes/", "refs/"]
        .iter()
        .find_map(|p| name.strip_prefix(p))
        .unwrap_or(name)
}
