//! Commits of GitHub Actions that are known without network access, for replacements of tags and
//! branches, and owners whose actions the repository trusts. Does no I/O.

use crate::diff::RepoPath;
use std::collections::{BTreeMap, BTreeSet};

/// Hexadecimal digits of a commit ID.
const DIGITS: usize = 40;

/// Names of branches that every push moves.
const BRANCHES: &[&str] = &["main", "master", "develop", "dev", "trunk", "HEAD", "next"];
/// Uses of branches of an owner after which the repository is taken to trust its branches. A single
/// use can be an oversight.
const TRUSTED_USES: u32 = 2;

/// Returns true for the name of a branch that every push moves.
pub(super) fn is_branch(version: &str) -> bool {
    BRANCHES.contains(&version)
}

/// A step that uses an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ActionUse<'a> {
    /// `owner/name`, or `owner/name/folder`.
    pub(super) action: &'a str,
    /// A tag, a branch or a commit ID.
    pub(super) version: &'a str,
    /// Text after ` #`, without white space around it.
    comment: &'a str,
}

impl<'a> ActionUse<'a> {
    /// Parses the value of `uses:`, with the comment after it. `None`: it names no version.
    pub(super) fn of(value: &'a str) -> Option<Self> {
        let (value, comment) = value.split_once(" #").unwrap_or((value, ""));
        let value = value.trim().trim_matches(['"', '\'']);
        let (action, version) = value.rsplit_once('@')?;
        Some(Self {
            action,
            version,
            comment: comment.trim(),
        })
    }

    /// Returns the owner of the action's repository.
    pub(super) fn owner(&self) -> &'a str {
        self.action.split('/').next().unwrap_or_default()
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.version.len() >= DIGITS && self.version.bytes().all(|b| b.is_ascii_hexdigit())
    }

    /// Returns the project of the action, in lower case: `owner/name`. `None`: it is a file or an
    /// image.
    pub(super) fn project(&self) -> Option<String> {
        let mut parts = self.action.split('/');
        let (owner, name) = (parts.next()?, parts.next()?);
        (is_name(owner) && is_name(name)).then(|| format!("{owner}/{name}").to_ascii_lowercase())
    }

    /// Returns the version in the comment after a pinned commit: `# v4.1.2`.
    fn noted(&self) -> Option<&'a str> {
        let word = self.comment.split_whitespace().next()?;
        let word = word
            .strip_prefix("tag=")
            .or_else(|| word.strip_prefix("pin@"))
            .unwrap_or(word);
        let word = word.strip_prefix('@').unwrap_or(word);
        (!word.is_empty()).then_some(word)
    }
}

/// Known commits of actions, and trusted owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// By project and version: the known commits.
    known: BTreeMap<(String, String), BTreeSet<String>>,
    /// Projects that a trusted workflow pins to a commit, in lower case.
    pinned: BTreeSet<String>,
    /// The owners of the repository, in lower case.
    own: BTreeSet<String>,
    /// By owner in lower case: the number of uses of a branch.
    on_branches: BTreeMap<String, u32>,
}

/// The commit to pin an action to, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pin<'a> {
    pub(super) commit: &'a str,
    pub(super) version: &'a str,
}

impl Pins {
    /// Adds the commit of a version of a project, from a clone.
    pub fn add(&mut self, project: &str, version: &str, commit: &str) {
        if commit.len() == DIGITS && commit.bytes().all(|b| b.is_ascii_hexdigit()) {
            let key = (project.to_ascii_lowercase(), version.to_owned());
            self.known
                .entry(key)
                .or_default()
                .insert(commit.to_ascii_lowercase());
        }
    }

    /// Returns true if a trusted workflow pins a project to a commit. `project`: in lower case.
    pub(super) fn has_pin_of(&self, project: &str) -> bool {
        self.pinned.contains(project)
    }

    /// Adds what a trusted workflow shows: the projects that it pins, the commits with the versions
    /// in the comments after them, the owners whose branches it uses, and the owner with whom it compares
    /// the owner of the repository.
    pub fn learn(&mut self, text: &str) {
        for used in uses(text) {
            if is_branch(used.version) && used.project().is_some() {
                let owner = used.owner().to_ascii_lowercase();
                *self.on_branches.entry(owner).or_default() += 1;
            }
            let Some(project) = used.project().filter(|_| used.is_pinned()) else {
                continue;
            };
            if let Some(version) = used.noted() {
                self.add(&project, version, used.version);
            }
            self.pinned.insert(project);
        }
        self.own.extend(compared_owners(text));
    }

    /// Adds an owner of the repository.
    pub fn add_owner(&mut self, owner: &str) {
        self.own.insert(owner.to_ascii_lowercase());
    }

    /// Returns true if an owner of actions is the owner of the repository, or if the repository
    /// uses several of its branches.
    pub(super) fn is_own(&self, owner: &str) -> bool {
        let owner = owner.to_ascii_lowercase();
        self.own.contains(&owner)
            || self
                .on_branches
                .get(&owner)
                .is_some_and(|uses| *uses >= TRUSTED_USES)
    }

    /// Returns the only known commit of a version, or of its only known part: `v4.1.2` for `v4`.
    pub(super) fn find(&self, project: &str, version: &str) -> Option<Pin<'_>> {
        let exact = self
            .known
            .iter()
            .find(|(name, _)| name.0 == project && name.1 == version);
        let parts: Vec<_> = match exact {
            Some(exact) => vec![exact],
            None => self
                .known
                .iter()
                .filter(|(name, _)| name.0 == project && is_part(&name.1, version))
                .collect(),
        };
        let [((_, version), commits)] = parts[..] else {
            return None;
        };
        let mut commits = commits.iter();
        let (commit, None) = (commits.next()?, commits.next()) else {
            return None;
        };
        Some(Pin { commit, version })
    }
}

/// Returns true for the name of an owner or of a repository on GitHub.
fn is_name(part: &str) -> bool {
    !part.is_empty()
        && part != "."
        && part != ".."
        && part
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Returns true if a version is a later part of a shorter one: `v4.1.2` of `v4` and of `v4.1`.
fn is_part(version: &str, of: &str) -> bool {
    let is_number = of
        .trim_start_matches('v')
        .starts_with(|c: char| c.is_ascii_digit());
    is_number
        && version
            .strip_prefix(of)
            .is_some_and(|rest| rest.starts_with('.'))
}

/// Returns true if GitHub reads a file as a workflow or an action.
pub(super) fn is_workflow(path: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(path) else {
        return false;
    };
    let lower = path.to_ascii_lowercase();
    if !(lower.ends_with(".yml") || lower.ends_with(".yaml")) {
        return false;
    }
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    lower.starts_with(".github/workflows/") || name == "action.yml" || name == "action.yaml"
}

/// Returns true if a file can name actions of GitHub.
pub fn can_use_actions(path: &RepoPath) -> bool {
    is_workflow(path.as_bytes())
}

/// Returns the projects and versions of the actions in a workflow that are not pinned.
pub fn unpinned(text: &str) -> Vec<(String, String)> {
    let wanted = uses(text).filter(|u| !u.is_pinned());
    wanted
        .filter_map(|u| Some((u.project()?, u.version.to_owned())))
        .collect()
}

/// Returns the owners, in lower case, with whom a workflow compares the owner of its repository:
/// `github.repository_owner == 'someone'`. Jobs that forks must not run are written in this way.
fn compared_owners(text: &str) -> impl Iterator<Item = String> {
    text.split("github.repository").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix("_owner").unwrap_or(rest).trim_start();
        let rest = rest.strip_prefix("==")?.trim_start().strip_prefix('\'')?;
        let (name, _) = rest.split_once('\'')?;
        let owner = name.split('/').next().filter(|owner| is_name(owner))?;
        Some(owner.to_ascii_lowercase())
    })
}

/// Returns the steps of a workflow that use actions.
fn uses(text: &str) -> impl Iterator<Item = ActionUse<'_>> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let value = line
            .strip_prefix("- ")
            .unwrap_or(line)
            .trim_start()
            .strip_prefix("uses:")?;
        ActionUse::of(value)
    })
}

/// Returns a line with an action pinned to a commit and its version in the comment.
pub(super) fn pinned(line: &str, used: &ActionUse<'_>, pin: &Pin<'_>) -> Option<String> {
    let old = format!("{}@{}", used.action, used.version);
    let (code, comment) = line.split_once(" #").unwrap_or((line, ""));
    let at = code.find(&old)?;
    let rest = code[at + old.len()..].trim_end();
    let comment = comment.trim();
    let comment = if comment.is_empty() || comment == pin.version {
        String::new()
    } else {
        format!(" {comment}")
    };
    Some(format!(
        "{}{}@{}{rest} # {}{comment}",
        &code[..at],
        used.action,
        pin.commit,
        pin.version
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(digit: char) -> String {
        digit.to_string().repeat(DIGITS)
    }

    fn line(action: &str, digit: char, comment: &str) -> String {
        format!("      - uses: {action}@{}{comment}\n", commit(digit))
    }

    fn known() -> Pins {
        let mut pins = Pins::default();
        pins.learn(&line("someone/deploy", 'a', " # v1"));
        pins.learn(&line("Some/Setup/node", 'b', " # v4.1.2 by a bot"));
        pins.learn(
            &line("other/tag", 'c', " # tag=v2.0.0")
                .replace("- uses: ", "  uses: '")
                .replace(" #", "' #"),
        );
        pins.learn(&line("no/comment", 'd', ""));
        pins.learn(&line("two/commits", 'e', " # v1"));
        pins.learn(&line("two/commits", 'f', " # v1"));
        pins.learn(&line("two/parts", 'e', " # v1.0.0"));
        pins.learn(&line("two/parts", 'f', " # v1.1.0"));
        pins.learn("      - uses: short/commit@abcdef1 # v1\n      - uses: ./local\n");
        pins
    }

    #[test]
    fn a_commit_is_known_by_the_version_in_the_comment_behind_it() {
        let pins = known();
        for (project, version, expected) in [
            ("someone/deploy", "v1", Some(('a', "v1"))),
            ("some/setup", "v4", Some(('b', "v4.1.2"))),
            ("some/setup", "v4.1", Some(('b', "v4.1.2"))),
            ("some/setup", "v4.1.2", Some(('b', "v4.1.2"))),
            ("other/tag", "v2.0.0", Some(('c', "v2.0.0"))),
            ("some/setup", "v4.1.20", None),
            ("some/setup", "v", None),
            ("some/setup", "main", None),
            ("no/comment", "v1", None),
            ("two/commits", "v1", None),
            ("two/parts", "v1", None),
            ("two/parts", "v1.1", Some(('f', "v1.1.0"))),
            ("short/commit", "v1", None),
            ("else/where", "v1", None),
        ] {
            let found = pins
                .find(project, version)
                .map(|p| (p.commit.to_owned(), p.version));
            assert_eq!(
                found,
                expected.map(|(digit, v)| (commit(digit), v)),
                "{project}@{version}"
            );
        }
    }

    #[test]
    fn an_owner_is_trusted_by_the_repository_or_by_several_branches() {
        let mut pins = Pins::default();
        pins.learn("      - uses: Some-Org/tools@main\n      - uses: once/only@master\n");
        pins.learn("    uses: some-org/ci/.github/workflows/test.yml@main # shared\n");
        pins.learn("      - uses: by/tag@v1\n      - uses: by/tag@v2\n");
        pins.learn("    if: ${{ github.repository == 'Fork/Base' }}\n");
        pins.learn("    if: github.repository_owner != 'other' && github.repository == x\n");
        pins.add_owner("Remote");
        for (owner, expected) in [
            ("some-org", true),
            ("fork", true),
            ("remote", true),
            ("once", false),
            ("by", false),
            ("other", false),
            ("", false),
        ] {
            assert_eq!(pins.is_own(owner), expected, "{owner}");
        }
    }

    #[test]
    fn a_project_is_known_by_a_pin_of_the_base() {
        let mut pins = Pins::default();
        let pin = format!("      - uses: Some/Action@{}\n", "a".repeat(DIGITS));
        pins.learn(&pin);
        pins.learn("      - uses: other/action@main\n");
        assert!(pins.has_pin_of("some/action"));
        assert!(!pins.has_pin_of("other/action"));
    }

    #[test]
    fn a_line_keeps_its_form() {
        let pins = known();
        for (line, expected) in [
            (
                "      - uses: someone/deploy@v1",
                "      - uses: someone/deploy@AAA # v1",
            ),
            (
                "        uses: 'someone/deploy@v1'  ",
                "        uses: 'someone/deploy@AAA' # v1",
            ),
            (
                "      - uses: someone/deploy@v1 # ships it",
                "      - uses: someone/deploy@AAA # v1 ships it",
            ),
            (
                "      - uses: someone/deploy@v1 # v1",
                "      - uses: someone/deploy@AAA # v1",
            ),
            (
                "      - uses: Someone/Deploy/sub@v1",
                "      - uses: Someone/Deploy/sub@AAA # v1",
            ),
        ] {
            let used = uses(line).next().unwrap();
            let pin = pins.find(&used.project().unwrap(), used.version).unwrap();
            assert_eq!(
                pinned(line, &used, &pin).unwrap(),
                expected.replace("AAA", &commit('a')),
                "{line}"
            );
        }
    }

    #[test]
    fn only_actions_of_projects_need_a_pin() {
        let text = format!(
            "steps:\n  - uses: a/b@v1\n  - uses: ./here@v1\n  - uses: docker://a/b@v1\n  - uses: c/d@{}\n  - uses: ../x/y@v2\n",
            commit('a')
        );
        assert_eq!(unpinned(&text), [("a/b".to_owned(), "v1".to_owned())]);
        assert!(can_use_actions(&RepoPath::from(".github/workflows/a.yml")));
        assert!(!can_use_actions(&RepoPath::from("docs/a.yml")));
    }
}
