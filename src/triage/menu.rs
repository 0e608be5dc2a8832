//! The menu: suggested next commands for the state of the repository. Pure.

pub mod view;

use super::Size;
use super::key::KeyPress;
use super::scroll;
use super::state::Leave;
use crate::text::plural;
use crate::wire::stored::Status;

/// Entries that a page key moves by.
const PAGE: usize = 5;
/// Digits of a commit ID.
const SHORT: usize = 12;

/// The situation at the start of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MenuSituation {
    /// The folder, for the title.
    pub folder: String,
    /// `None` without a repository with a worktree; see `outside`.
    pub repo: Option<Repository>,
    /// Reason why there is no repository with a worktree.
    pub outside: Outside,
    /// Reason why the repository cannot be read completely.
    pub problem: Option<String>,
}

/// The reason why a folder cannot be reviewed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// The folder is not in a repository.
    #[default]
    NoRepository,
    /// The repository has no worktree.
    Bare,
    /// The repository cannot be opened: the error and its hints.
    Unreadable(String, Vec<String>),
}

impl Outside {
    /// Returns the state in the first line.
    fn name(&self) -> &'static str {
        match self {
            Self::NoRepository => "not a git repository",
            Self::Bare => "a bare repository",
            Self::Unreadable(..) => "the repository cannot be opened",
        }
    }

    /// Returns a suggestion. `init` of this program needs a worktree, and does not create a
    /// repository.
    fn advice(&self) -> String {
        let at = format!("{} -C FOLDER", crate::NAME);
        match self {
            Self::NoRepository => {
                format!(
                    "To review changes, make this folder a repository (git init) and press R, or start in one: {at}"
                )
            }
            Self::Bare => format!(
                "To review changes, add a worktree (git worktree add FOLDER), and start there: {at}"
            ),
            Self::Unreadable(error, hints) => {
                let hints: Vec<String> = hints.iter().map(|h| format!(" hint: {h}")).collect();
                format!("error: {error}{}", hints.concat())
            }
        }
    }
}

/// Unfinished reviews after commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// The commit under review.
    pub running: Option<String>,
    /// The waiting commit, with the reason if it does not start by itself.
    pub waiting: Option<(String, Option<String>)>,
    /// The commit whose review failed last, with the reason.
    pub failed: Option<(String, String)>,
}

/// The state of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    pub branch: Option<String>,
    /// True before the first commit.
    pub is_unborn: bool,
    /// Number of staged files.
    pub staged: usize,
    /// Number of changed files that are not staged, untracked ones included.
    pub unstaged: usize,
    /// The base of the branch, if the branch has commits that the base lacks.
    pub base: Option<String>,
    pub remotes: Vec<String>,
    /// The newest stored review.
    pub latest: Option<Latest>,
    /// Other stored reviews that are not closed, newest first.
    pub open: Vec<Stored>,
    /// True if a policy file exists.
    pub is_configured: bool,
    /// True if hooks of this program are installed.
    pub has_hooks: bool,
    pub background: Background,
}

/// A stored review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub id: String,
    pub label: String,
}

/// The newest stored review and its decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    pub stored: Stored,
    pub status: Status,
    /// Number of the reviewed pull request.
    pub pull: Option<u64>,
    /// True if the last round blocks. Later decisions count in the next round.
    pub blocks: bool,
    /// True if the reviewed commit is checked out.
    pub is_checked_out: bool,
    /// True if the review is of staged or committed changes.
    pub is_without_worktree: bool,
    pub pending: usize,
    /// IDs of the accepted findings.
    pub accepted: Vec<String>,
    /// Decisions that agents propose.
    pub proposals: usize,
}

/// An open pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    pub number: u64,
    pub title: String,
    pub author: String,
    pub is_draft: bool,
    pub head: String,
    pub base: String,
}

/// The subject of an entry, which determines the entry that is selected after it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    Review,
    Triage,
    Confirm,
    Fix,
    Post,
    FollowUp,
    Complete,
    OpenReview,
    Pulls,
    Remote,
    Pull,
    History,
    Init,
    Hooks,
    Background,
    Doctor,
    Help,
}

/// The action of a selected entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Runs the command of the entry.
    Run,
    /// Shows the remotes.
    Remotes,
    /// Requests the pull requests from the forge of a remote, and shows them.
    Pulls(String),
}

/// An entry of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuEntry {
    pub topic: Topic,
    pub title: String,
    pub about: String,
    /// The command of the entry, without the name of the program.
    pub command: Vec<String>,
    pub act: Act,
}

impl MenuEntry {
    /// Creates an entry that runs a command.
    fn new(
        topic: Topic,
        title: impl Into<String>,
        about: impl Into<String>,
        command: &[&str],
    ) -> Self {
        let command = command.iter().map(|w| (*w).to_owned()).collect();
        Self {
            topic,
            title: title.into(),
            about: about.into(),
            command,
            act: Act::Run,
        }
    }

    /// Returns the entry with another action.
    fn acting(self, act: Act) -> Self {
        Self { act, ..self }
    }
}

/// Returns the entries for the situation, the most useful first.
pub fn entries(surroundings: &MenuSituation) -> Vec<MenuEntry> {
    let mut out = Vec::new();
    if let Some(repo) = &surroundings.repo {
        out.extend(
            repo.latest
                .iter()
                .flat_map(|latest| of_latest(latest, repo)),
        );
        out.extend(of_changes(repo));
        out.extend(of_background(&repo.background));
        if !repo.remotes.is_empty() {
            out.push(of_pulls(repo));
        }
        out.extend(of_open(repo));
        if !repo.is_configured {
            let about = "write .claude-reviewer.toml, and offer hooks and a CI file";
            out.push(MenuEntry::new(
                Topic::Init,
                "Set up this repository",
                about,
                &["init"],
            ));
        } else if !repo.has_hooks {
            let about = "review each commit and push on this machine";
            out.push(MenuEntry::new(
                Topic::Hooks,
                "Install git hooks",
                about,
                &["install-hooks"],
            ));
        }
    }
    out.push(MenuEntry::new(
        Topic::Doctor,
        "Check the installation",
        "programs, keys, policy; shows that the gate can fail",
        &["doctor"],
    ));
    out.push(MenuEntry::new(
        Topic::Help,
        "Help",
        "all commands",
        &["--help"],
    ));
    out
}

/// Returns the entries about the newest stored review.
fn of_latest(latest: &Latest, repo: &Repository) -> Vec<MenuEntry> {
    let Latest {
        stored: Stored { id, label },
        ..
    } = latest;
    let mut out = Vec::new();
    if latest.proposals > 0 {
        let about = format!("decide on what agents propose about {label}");
        let title = format!("Confirm {}", plural(latest.proposals, "proposal"));
        out.push(MenuEntry::new(
            Topic::Confirm,
            title,
            about,
            &["triage", id],
        ));
    }
    if latest.pending > 0 {
        let title = format!("Triage {}", plural(latest.pending, "pending finding"));
        out.push(MenuEntry::new(
            Topic::Triage,
            title,
            format!("accept, reject or defer: {label}"),
            &["triage", id],
        ));
    }
    let is_open = matches!(
        latest.status,
        Status::InProgress | Status::NeedsChanges | Status::Incomplete
    );
    if !latest.accepted.is_empty() {
        let count = plural(latest.accepted.len(), "accepted finding");
        if let Some(number) = latest.pull {
            let about = format!("comment on pull request #{number}; goes to the network");
            out.push(MenuEntry::new(
                Topic::Post,
                format!("Post {count}"),
                about,
                &["post", id],
            ));
        }
        // A fix changes the worktree, which may not contain the pull request.
        if latest.pull.is_none() || latest.is_checked_out {
            let about = "let a model change a copy, verify it, and show the diff";
            let ids = latest.accepted.iter().map(String::as_str);
            let command: Vec<&str> = ["fix"]
                .into_iter()
                .chain(ids)
                .chain(["--session", id.as_str()])
                .collect();
            out.push(MenuEntry::new(
                Topic::Fix,
                format!("Fix {count}"),
                about,
                &command,
            ));
        }
    }
    let is_decided = latest.pending == 0 && latest.accepted.is_empty();
    if is_open && (!is_decided || latest.blocks) {
        out.extend(of_next_round(latest, repo));
    }
    if is_open && is_decided && !latest.blocks {
        let command = ["complete", id, "--status", "approved"];
        let about = format!("close the review of {label} as approved");
        out.push(MenuEntry::new(
            Topic::Complete,
            "Complete the review",
            about,
            &command,
        ));
    }
    out
}

/// Returns the entry for another review; `None` for a pull request that could belong to several
/// remotes.
fn of_next_round(latest: &Latest, repo: &Repository) -> Option<MenuEntry> {
    let about = "review again and compare with the round before";
    let id = latest.stored.id.as_str();
    match (latest.pull, &repo.remotes[..]) {
        // A review of staged or committed changes does not see other edits.
        (None, _) if latest.is_without_worktree && repo.unstaged > 0 => {
            let about = format!("{about}, with the files that are not staged");
            Some(MenuEntry::new(
                Topic::FollowUp,
                "Follow up",
                about,
                &["review", "changes", "--follow-up", id],
            ))
        }
        (None, _) => Some(MenuEntry::new(
            Topic::FollowUp,
            "Follow up",
            about,
            &["review", "--follow-up", id],
        )),
        (Some(number), [remote]) => {
            let number = number.to_string();
            let command = ["review", "pr", &number, "--remote", remote];
            let about = format!("{about}; goes to the network");
            Some(MenuEntry::new(
                Topic::FollowUp,
                format!("Follow up on #{number}"),
                about,
                &command,
            ))
        }
        (Some(_), _) => None,
    }
}

/// Returns the entries for reviewing changes.
fn of_changes(repo: &Repository) -> Vec<MenuEntry> {
    let mut out = Vec::new();
    if repo.staged > 0 {
        let about = format!(
            "{}, as the commit would have them",
            plural(repo.staged, "file")
        );
        out.push(MenuEntry::new(
            Topic::Review,
            "Review staged changes",
            about,
            &["review", "staged"],
        ));
    }
    if repo.unstaged > 0 {
        let about = format!(
            "{} of the worktree that are not staged",
            plural(repo.unstaged, "file")
        );
        let command = ["review", "unstaged", "--untracked"];
        out.push(MenuEntry::new(
            Topic::Review,
            "Review unstaged changes",
            about,
            &command,
        ));
    }
    if let Some(base) = &repo.base {
        let name = repo.branch.as_deref().unwrap_or("HEAD");
        let title = format!("Review branch {name}");
        out.push(MenuEntry::new(
            Topic::Review,
            title,
            format!("its commits against {base}"),
            &["review", "branch"],
        ));
    }
    if out.is_empty() && !repo.is_unborn {
        let about = "nothing has changed; the newest commit is reviewed";
        out.push(MenuEntry::new(
            Topic::Review,
            "Review the newest commit",
            about,
            &["review", "commit", "HEAD"],
        ));
    }
    out
}

/// Returns the entry about unfinished reviews after commits.
fn of_background(background: &Background) -> Option<MenuEntry> {
    let Background {
        running,
        waiting,
        failed,
    } = background;
    let mut states = Vec::new();
    let mut about = Vec::new();
    if let Some(commit) = running {
        states.push("running");
        about.push(format!("reviews commit {}", short(commit)));
    }
    if let Some((commit, held)) = waiting {
        states.push("waiting");
        let why = held
            .as_ref()
            .map(|why| format!(": {why}"))
            .unwrap_or_default();
        about.push(format!("commit {} waits{why}", short(commit)));
    }
    if let Some((commit, why)) = failed {
        states.push("failed");
        about.push(format!("commit {}: {why}", short(commit)));
    }
    let title = format!("Background review: {}", states.join(", "));
    (!states.is_empty())
        .then(|| MenuEntry::new(Topic::Background, title, about.join("; "), &["status"]))
}

/// Returns the first digits of a commit ID.
fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

/// Returns the entry that lists open pull requests, or the remotes if there are several.
fn of_pulls(repo: &Repository) -> MenuEntry {
    let about = "asks the forge of a remote; goes to the network";
    match &repo.remotes[..] {
        [one] => {
            let command = ["pr", "list", "--remote", one];
            MenuEntry::new(Topic::Pulls, "Open pull requests", about, &command)
                .acting(Act::Pulls(one.clone()))
        }
        _ => MenuEntry::new(
            Topic::Pulls,
            "Open pull requests",
            about,
            &["pr", "list", "--remote", "NAME"],
        )
        .acting(Act::Remotes),
    }
}

/// Returns the entries of open reviews, and of the history.
fn of_open(repo: &Repository) -> Vec<MenuEntry> {
    let open = repo.open.iter().map(|Stored { id, label }| {
        MenuEntry::new(
            Topic::OpenReview,
            format!("Open review {id}"),
            label,
            &["triage", id],
        )
    });
    let mut out: Vec<MenuEntry> = open.collect();
    if repo.latest.is_some() {
        out.push(MenuEntry::new(
            Topic::History,
            "History",
            "stored reviews, newest first",
            &["history"],
        ));
    }
    out
}

/// Returns the entries of the remotes.
pub fn remotes(names: &[String]) -> Vec<MenuEntry> {
    names.iter().map(|name| of_remote(name)).collect()
}

/// Returns the entry that lists the pull requests of a remote.
fn of_remote(name: &str) -> MenuEntry {
    let command = ["pr", "list", "--remote", name];
    MenuEntry::new(Topic::Remote, name, "list its open pull requests", &command)
        .acting(Act::Pulls(name.to_owned()))
}

/// Returns the entries of pull requests.
pub fn pulls(remote: &str, all: &[Pull]) -> Vec<MenuEntry> {
    all.iter().map(|p| of_pull(remote, p)).collect()
}

/// Returns the entry that reviews a pull request.
fn of_pull(remote: &str, p: &Pull) -> MenuEntry {
    let draft = if p.is_draft { ", draft" } else { "" };
    let number = p.number.to_string();
    let about = format!("{} into {}, by {}{draft}", p.head, p.base, p.author);
    let command = ["review", "pr", &number, "--remote", remote];
    MenuEntry::new(
        Topic::Pull,
        format!("Review #{number} {}", p.title),
        about,
        &command,
    )
}

/// Returns the useful topics after another one, the best first.
fn after(topic: Topic) -> &'static [Topic] {
    match topic {
        Topic::Review | Topic::Pull | Topic::FollowUp => {
            &[Topic::Confirm, Topic::Triage, Topic::Post, Topic::Complete]
        }
        Topic::Triage | Topic::Confirm | Topic::OpenReview => &[
            Topic::Confirm,
            Topic::Post,
            Topic::Fix,
            Topic::Complete,
            Topic::FollowUp,
        ],
        Topic::Fix => &[Topic::FollowUp, Topic::Review],
        Topic::Post => &[Topic::Fix, Topic::Pulls, Topic::Review],
        Topic::Complete => &[Topic::Review],
        Topic::Init => &[Topic::Hooks, Topic::Doctor],
        Topic::Hooks => &[Topic::Doctor],
        Topic::Background
        | Topic::Doctor
        | Topic::Help
        | Topic::History
        | Topic::Pulls
        | Topic::Remote => &[],
    }
}

/// Returns the index of the entry to select after an entry with this topic ran.
pub fn next(entries: &[MenuEntry], ran: Option<Topic>) -> usize {
    let Some(ran) = ran else { return 0 };
    let stays = matches!(
        ran,
        Topic::Help | Topic::Doctor | Topic::History | Topic::Background
    );
    let mut topics = after(ran).iter().copied().chain(stays.then_some(ran));
    topics
        .find_map(|topic| entries.iter().position(|e| e.topic == topic))
        .unwrap_or(0)
}

/// Events outside of the menu.
#[derive(Clone, Debug)]
pub enum MenuEvent {
    Key(KeyPress),
    Resize(Size),
    /// The repository was read again after an entry with this topic ran.
    Found(Box<MenuSituation>, Option<Topic>),
    /// The forge answered.
    Pulls {
        remote: String,
        all: Vec<Pull>,
    },
    /// An error as text.
    Problem(String),
}

/// An effect for the edge to perform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MenuEffect {
    /// Runs a command of this program, and reads the repository again.
    Run(Vec<String>, Topic),
    /// Requests the pull requests from the forge of a remote.
    Pulls(String),
    Look,
    Redraw,
    Suspend,
    Quit(Leave),
}

/// A list of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuList {
    pub title: String,
    pub entries: Vec<MenuEntry>,
    pub current: usize,
}

/// State of the menu.
#[derive(Clone, Debug)]
pub struct MenuState {
    pub size: Size,
    pub surroundings: MenuSituation,
    /// The open lists; the last one is shown. Never empty.
    lists: Vec<MenuList>,
    pub problem: Option<String>,
}

impl MenuState {
    /// Starts with the main list.
    pub fn new(surroundings: MenuSituation, size: Size) -> Self {
        let list = main(&surroundings, None);
        Self {
            size,
            surroundings,
            lists: vec![list],
            problem: None,
        }
    }

    /// Returns the list on the screen.
    pub fn list(&self) -> Option<&MenuList> {
        self.lists.last()
    }

    /// Returns true if a list is open above the main one.
    pub fn is_nested(&self) -> bool {
        self.lists.len() > 1
    }

    /// Opens a list above the current one.
    fn open(&mut self, title: String, entries: Vec<MenuEntry>) {
        self.lists.push(MenuList {
            title,
            entries,
            current: 0,
        });
    }

    /// Moves the cursor by some entries.
    fn go(&mut self, by: isize) {
        if let Some(list) = self.lists.last_mut() {
            let last = list.entries.len().saturating_sub(1);
            list.current = scroll::moved(list.current, by, last);
        }
    }
}

/// Returns the main list. After a command, its next step is first.
fn main(surroundings: &MenuSituation, ran: Option<Topic>) -> MenuList {
    let entries = entries(surroundings);
    let current = next(&entries, ran);
    MenuList {
        title: "What next?".to_owned(),
        entries,
        current,
    }
}

/// Returns the next state and the effects.
#[must_use]
pub fn step(mut state: MenuState, input: MenuEvent) -> (MenuState, Vec<MenuEffect>) {
    let effects = match input {
        MenuEvent::Key(key) => press(&mut state, key),
        MenuEvent::Resize(size) => {
            state.size = size;
            Vec::new()
        }
        MenuEvent::Found(surroundings, ran) => {
            state.lists = vec![main(&surroundings, ran)];
            state.surroundings = *surroundings;
            Vec::new()
        }
        MenuEvent::Pulls { remote, all } => {
            if all.is_empty() {
                state.problem = Some(format!("{remote} has no open pull request"));
            } else {
                state.open(
                    format!("Open pull requests of {remote}"),
                    pulls(&remote, &all),
                );
            }
            Vec::new()
        }
        MenuEvent::Problem(text) => {
            state.problem = Some(text);
            Vec::new()
        }
    };
    (state, effects)
}

/// Handles a key.
fn press(state: &mut MenuState, key: KeyPress) -> Vec<MenuEffect> {
    match key {
        KeyPress::Ctrl('c') => return vec![MenuEffect::Quit(Leave::Interrupted)],
        KeyPress::Ctrl('z') => return vec![MenuEffect::Suspend],
        KeyPress::Ctrl('l') => return vec![MenuEffect::Redraw],
        KeyPress::Char('q') => return vec![MenuEffect::Quit(Leave::Done)],
        _ if state.size.is_too_small() => return Vec::new(),
        _ => {}
    }
    state.problem = None;
    match key {
        KeyPress::Tab => state.go(1),
        KeyPress::BackTab => state.go(-1),
        KeyPress::Char('R') => return vec![MenuEffect::Look],
        KeyPress::Esc if state.is_nested() => drop(state.lists.pop()),
        KeyPress::Esc => return vec![MenuEffect::Quit(Leave::Done)],
        KeyPress::Char(c @ '1'..='9') => {
            let at = c as usize - '1' as usize;
            if let Some(list) = state.lists.last_mut().filter(|l| at < l.entries.len()) {
                list.current = at;
            }
        }
        KeyPress::Enter | KeyPress::Char(' ' | 'l') => return pick(state),
        KeyPress::Char('?') => {
            return vec![MenuEffect::Run(vec!["--help".to_owned()], Topic::Help)];
        }
        _ => scroll::rows(key, PAGE)
            .into_iter()
            .for_each(|by| state.go(by)),
    }
    Vec::new()
}

/// Handles the choice of the entry under the cursor.
fn pick(state: &mut MenuState) -> Vec<MenuEffect> {
    let Some(entry) = state.list().and_then(|l| l.entries.get(l.current)).cloned() else {
        return Vec::new();
    };
    match entry.act {
        Act::Run => vec![MenuEffect::Run(entry.command, entry.topic)],
        Act::Pulls(remote) => vec![MenuEffect::Pulls(remote)],
        Act::Remotes => {
            let names = state
                .surroundings
                .repo
                .as_ref()
                .map_or(&[][..], |r| &r.remotes);
            state.open("Remotes".to_owned(), remotes(names));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
