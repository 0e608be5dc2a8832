//! Reads the attributes of a path from the `.gitattributes` files of a state: `diff`,
//! `linguist-generated`, and those that change the content on checkout.
//!
//! No attribute hides a file: `diff` only decides how git would display it.

use super::tree::{self, TreeEntries};
use super::{Repo, State, gix_id};
use crate::diff::{Attribute, RepoPath};
use crate::error::Result;
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::attrs::{Search, StateRef};
use gix::glob::pattern::Case;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const FILE: &[u8] = b".gitattributes";
const NAMES: [&str; 4] = [
    "diff",
    "linguist-generated",
    "working-tree-encoding",
    "ident",
];
/// Cached trees, at most; bounds the memory for long ranges.
const MAX_TREES: usize = 4096;
/// Git ignores larger attribute files too.
const MAX_FILE: usize = 100 << 20;

/// Looks up attributes, and caches the parsed files of the last path.
#[derive(Default)]
pub(super) struct Attributes {
    trees: HashMap<gix::ObjectId, AttributesFolder>,
    parsed: Option<ParsedAttributes>,
}

/// The attributes of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    pub(super) diff: Attribute,
    /// `linguist-generated`; `None` if it is not set.
    pub(super) generated: Option<bool>,
    /// Value of `working-tree-encoding`.
    pub(super) encoding: Option<String>,
    pub(super) ident: bool,
}

/// The attribute file and the folders of a tree.
#[derive(Clone)]
struct AttributesFolder {
    attributes: Option<gix::ObjectId>,
    folders: Vec<(Box<[u8]>, gix::ObjectId)>,
}

/// The parsed attribute files that apply to a folder.
struct ParsedAttributes {
    chain: Vec<(usize, AttributesSource)>,
    search: Search,
    outcome: Outcome,
}

#[derive(Clone, PartialEq, Eq)]
enum AttributesSource {
    Object(gix::ObjectId),
    Bytes(Vec<u8>),
}

impl Attributes {
    /// Returns the attributes of a path by a state's `.gitattributes` files.
    pub(super) fn of(
        &mut self,
        owner: &Repo,
        repo: &gix::Repository,
        state: &State,
        path: &RepoPath,
        mut worktree: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<Marks> {
        let path = path.as_bytes();
        let mut chain = Vec::new();
        // End positions of the folders' names within the path: "" first.
        let folders = std::iter::once(0).chain(memchr::memchr_iter(b'/', path).map(|i| i + 1));
        match state {
            State::Empty => {}
            State::Commit { tree, .. } => {
                self.chain_of_tree(repo, gix_id(tree), path, &mut chain)?;
            }
            State::Index | State::Worktree => {
                let index = owner.index()?;
                for end in folders {
                    let name = [&path[..end], FILE].concat();
                    let bytes = if *state == State::Worktree {
                        worktree(&name)?
                    } else {
                        None
                    };
                    if let Some(bytes) = bytes {
                        chain.push((end, AttributesSource::Bytes(bytes)));
                    } else if let Some(e) = index.entry_by_path(name.as_slice().into()) {
                        chain.push((end, AttributesSource::Object(e.id)));
                    }
                }
            }
        }
        if chain.is_empty() {
            return Ok(Marks::default());
        }
        if self.parsed.as_ref().is_none_or(|p| p.chain != chain) {
            self.parsed = Some(ParsedAttributes::new(repo, path, chain)?);
        }
        Ok(self
            .parsed
            .as_mut()
            .map_or_else(Marks::default, |p| p.marks(path)))
    }

    fn chain_of_tree(
        &mut self,
        repo: &gix::Repository,
        root: gix::ObjectId,
        path: &[u8],
        chain: &mut Vec<(usize, AttributesSource)>,
    ) -> Result<()> {
        let (mut tree, mut start) = (root, 0);
        loop {
            let folder = self.folder(repo, tree)?;
            if let Some(id) = folder.attributes {
                chain.push((start, AttributesSource::Object(id)));
            }
            let Some(len) = memchr::memchr(b'/', &path[start..]) else {
                return Ok(());
            };
            let name = &path[start..start + len];
            let Some((_, id)) = folder.folders.iter().find(|(n, _)| &**n == name) else {
                return Ok(());
            };
            tree = *id;
            start += len + 1;
        }
    }

    fn folder(&mut self, repo: &gix::Repository, tree: gix::ObjectId) -> Result<&AttributesFolder> {
        if self.trees.len() >= MAX_TREES {
            self.trees.clear();
        }
        match self.trees.entry(tree) {
            std::collections::hash_map::Entry::Occupied(e) => Ok(e.into_mut()),
            std::collections::hash_map::Entry::Vacant(e) => {
                Ok(e.insert(AttributesFolder::read(repo, &tree)?))
            }
        }
    }
}

impl AttributesFolder {
    fn read(repo: &gix::Repository, tree: &gix::oid) -> Result<Self> {
        let mut buf = Vec::new();
        tree::load(repo, tree, gix::objs::Kind::Tree, &mut buf)?;
        let mut folder = Self {
            attributes: None,
            folders: Vec::new(),
        };
        let mut entries = TreeEntries::new(repo, &buf);
        while let Some(e) = entries.next()? {
            if e.mode.is_none() {
                folder.folders.push((e.name.into(), e.id.to_owned()));
            } else if e.name == FILE {
                folder.attributes = Some(e.id.to_owned());
            }
        }
        Ok(folder)
    }
}

impl ParsedAttributes {
    fn new(
        repo: &gix::Repository,
        path: &[u8],
        chain: Vec<(usize, AttributesSource)>,
    ) -> Result<Self> {
        let mut names = MetadataCollection::default();
        // Without files, the search knows only the built-in macro `binary`, and cannot fail.
        let mut search =
            Search::new_globals(None::<PathBuf>, &mut Vec::new(), &mut names).unwrap_or_default();
        for (end, source) in &chain {
            let mut bytes = Vec::new();
            match source {
                AttributesSource::Object(id) => {
                    tree::load(repo, id, gix::objs::Kind::Blob, &mut bytes)?;
                }
                AttributesSource::Bytes(b) => bytes.clone_from(b),
            }
            if bytes.len() > MAX_FILE {
                continue;
            }
            let file = [&path[..*end], FILE].concat();
            let Ok(file) = gix::path::from_bstring(file) else {
                continue;
            };
            // Lines that cannot be parsed are ignored, as in git.
            let _ = search.add_patterns_buffer(
                &bytes,
                file,
                Some(Path::new("")),
                &mut names,
                *end == 0,
            );
        }
        let mut outcome = Outcome::default();
        outcome.initialize_with_selection(&names, NAMES);
        Ok(Self {
            chain,
            search,
            outcome,
        })
    }

    fn marks(&mut self, path: &[u8]) -> Marks {
        self.outcome.reset();
        self.search.pattern_matching_relative_path(
            path.into(),
            Case::Sensitive,
            Some(false),
            &mut self.outcome,
        );
        let mut marks = Marks::default();
        for m in self.outcome.iter_selected() {
            let state = m.assignment.state;
            match (m.assignment.name.as_str(), state) {
                ("diff", StateRef::Set) => marks.diff = Attribute::Text,
                ("diff", StateRef::Unset) => marks.diff = Attribute::Binary,
                ("linguist-generated", StateRef::Set) => marks.generated = Some(true),
                ("linguist-generated", StateRef::Unset) => marks.generated = Some(false),
                ("linguist-generated", StateRef::Value(value)) => {
                    let value = value.as_bstr();
                    marks.generated =
                        (value == "true" || value == "false").then(|| value == "true");
                }
                ("working-tree-encoding", StateRef::Value(value)) => {
                    marks.encoding = Some(value.as_bstr().to_string());
                }
                // Git rejects a missing encoding name.
                ("working-tree-encoding", StateRef::Set) => {
                    marks.encoding = Some("(none)".to_owned());
                }
                ("ident", StateRef::Set) => marks.ident = true,
                _ => {}
            }
        }
        marks
    }
}
