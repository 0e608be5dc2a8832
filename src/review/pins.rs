//! Finds commits of GitHub Actions on this machine: in the workflows of the base, and in clones of
//! the actions. Finds the owners of the repository too. Uses no network, and trusts nothing from the
//! change itself.

use super::resolved::ChangePart;
use crate::diff::{FileMode, RepoPath};
use crate::git::{Reader, Repo, State};
use crate::rules::{Pins, can_use_actions, unpinned};
use std::collections::BTreeSet;

/// Files that are read on each side, at most.
const MAX_FILES: usize = 200;
/// Bytes of a file, at most.
const MAX_BYTES: usize = 1 << 20;
/// Submodules whose tags are searched, at most.
const MAX_SUBMODULES: usize = 50;
/// Folders of workflows and actions.
const FOLDERS: [&str; 2] = [".github/workflows", ".github/actions"];
const AT_TOP: [&str; 2] = ["action.yml", "action.yaml"];

/// Remotes of the repository itself. Other remotes can be forks of contributors.
const OWN_REMOTES: [&str; 2] = ["origin", "upstream"];

/// Returns the known commits of the actions that changed workflows use by a tag or branch, and the
/// owners of the repository by its remotes. Reads only workflows of parts that have a
/// [`ChangePart::change`].
pub(super) fn known(repo: Option<&Repo>, base: &State, parts: &[ChangePart]) -> Pins {
    let mut pins = Pins::default();
    let Some(repo) = repo else { return pins };
    let mut reader = repo.reader();
    let wanted = wanted(&mut reader, parts);
    if wanted.is_empty() {
        return pins;
    }
    for path in workflows(&mut reader, base) {
        if let Some(text) = text(&mut reader, base, &path) {
            pins.learn(&text);
        }
    }
    for name in OWN_REMOTES {
        for url in repo.remote_urls(name) {
            let project = project(&url).unwrap_or_default();
            if let Some((owner, _)) = project.split_once('/') {
                pins.add_owner(owner);
            }
        }
    }
    for (projects, clone) in clones(repo, &mut reader, base) {
        for (project, version) in wanted
            .iter()
            .filter(|(project, _)| projects.contains(project))
        {
            let repo = clone.as_ref().unwrap_or(repo);
            if let Ok(commit) = repo.resolve(&format!("refs/tags/{version}")) {
                pins.add(project, version, &commit.to_string());
            }
        }
    }
    pins
}

/// Returns the actions and versions that the changed workflows of these parts use.
fn wanted(reader: &mut Reader<'_>, parts: &[ChangePart]) -> BTreeSet<(String, String)> {
    let mut out = BTreeSet::new();
    let changes = parts.iter().filter_map(ChangePart::change);
    let files = changes.flat_map(|c| {
        c.entries
            .iter()
            .filter_map(|e| Some((&c.head, &e.new.as_ref()?.path)))
    });
    for (head, path) in files
        .filter(|(_, path)| can_use_actions(path))
        .take(MAX_FILES)
    {
        out.extend(
            text(reader, head, path)
                .map(|text| unpinned(&text))
                .into_iter()
                .flatten(),
        );
    }
    out
}

fn workflows(reader: &mut Reader<'_>, base: &State) -> Vec<RepoPath> {
    let mut all: Vec<RepoPath> = AT_TOP.into_iter().map(RepoPath::from).collect();
    for folder in FOLDERS {
        all.extend(
            reader
                .below(base, &RepoPath::from(folder), MAX_FILES)
                .map(|(files, _)| files)
                .unwrap_or_default(),
        );
    }
    all
}

/// Reads a file of a state; `None` if it cannot be read or is not UTF-8.
fn text(reader: &mut Reader<'_>, state: &State, path: &RepoPath) -> Option<String> {
    String::from_utf8(reader.read(state, path, MAX_BYTES).ok()??).ok()
}

/// Returns the repositories of actions on this machine, with their projects: the reviewed one
/// (`None`), and the checked-out submodules of the base.
fn clones(
    repo: &Repo,
    reader: &mut Reader<'_>,
    base: &State,
) -> Vec<(BTreeSet<String>, Option<Repo>)> {
    let mut out = vec![(projects(repo), None)];
    let Some(modules) = text(reader, base, &RepoPath::from(".gitmodules")) else {
        return out;
    };
    let paths = modules.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "path").then(|| RepoPath::from(value.trim()))
    });
    for path in paths.take(MAX_SUBMODULES) {
        let is_one = reader
            .mode(base, &path)
            .is_ok_and(|mode| mode == Some(FileMode::Submodule));
        if let Some(nested) = is_one.then(|| repo.submodule(&path)).flatten() {
            out.push((projects(&nested), Some(nested)));
        }
    }
    out
}

/// Returns the GitHub projects of a repository's remotes, in lower case.
fn projects(repo: &Repo) -> BTreeSet<String> {
    let urls = repo
        .remotes()
        .into_iter()
        .flat_map(|name| repo.remote_urls(&name));
    urls.filter_map(|url| project(&url)).collect()
}

/// Returns the project of a GitHub address.
fn project(url: &str) -> Option<String> {
    let lower = url.trim().to_ascii_lowercase();
    let rest = match lower.split_once("://") {
        Some((_, rest)) => rest
            .split_once('@')
            .map_or(rest, |(_, rest)| rest)
            .strip_prefix("github.com")?,
        None => lower.strip_prefix("git@github.com")?,
    };
    let path = rest.strip_prefix([':', '/'])?.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let (owner, name) = path.split_once('/')?;
    (!owner.is_empty() && !name.is_empty() && !name.contains('/')).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_of_github_are_known_by_the_addresses_of_their_clones() {
        for (url, expected) in [
            ("https://github.com/Someone/Deploy", Some("someone/deploy")),
            (
                "https://github.com/someone/deploy.git",
                Some("someone/deploy"),
            ),
            (
                "https://x:y@github.com/someone/deploy/",
                Some("someone/deploy"),
            ),
            ("git@github.com:someone/deploy.git", Some("someone/deploy")),
            (
                "ssh://git@github.com/someone/deploy",
                Some("someone/deploy"),
            ),
            ("https://github.com.example/someone/deploy", None),
            ("https://example.org/github.com/someone/deploy", None),
            ("https://github.com/someone", None),
            ("https://github.com/a/b/c", None),
            ("../deploy", None),
            ("/srv/github.com/someone/deploy", None),
        ] {
            assert_eq!(project(url).as_deref(), expected, "{url}");
        }
    }
}
