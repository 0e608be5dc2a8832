//! Checks the secondary locations of a claim against the files that they name.

use super::path;
use super::quote::Quote;
use super::{Context, TreeFiles, text};
use crate::ai::claim::Elsewhere;
use crate::diff::{LineNo, RepoPath};
use crate::finding::Also;
use std::borrow::Cow;

/// Secondary locations of a finding, at most.
const MOST: usize = 5;
/// Secondary locations of a claim that are checked, at most.
const CHECKED: usize = 10;
/// Distance in lines at which a claimed number still selects one of several equal lines.
const NEAR: u32 = 30;
/// Characters of a quote, at most.
const QUOTE: usize = 400;

/// Bytes of a file that is searched, at most.
const SEARCHED: usize = 1 << 20;

/// Number of lookups that remain for one reply. A hostile reply can name thousands of lines.
#[derive(Debug)]
pub(super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(100)
    }
}

/// A line of a file, as sent to models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentLine {
    pub(super) file: RepoPath,
    pub(super) number: LineNo,
    /// Text without surrounding white space.
    pub(super) text: String,
    /// True if no other line matches the quote, or this line has the claimed number.
    pub(super) is_certain: bool,
}

/// Returns the locations that exist, in the order of the claim, without duplicates and without
/// `own`.
pub(super) fn checked(
    cx: &Context<'_>,
    budget: &mut Budget,
    said: &[Elsewhere],
    own: Option<(&RepoPath, LineNo)>,
) -> Vec<Also> {
    let mut out: Vec<Also> = Vec::new();
    for said in said.iter().take(CHECKED) {
        let quote = said.quote.as_deref().and_then(Quote::new);
        let (Some(file), Some(quote)) = (said.file.as_deref(), quote) else {
            continue;
        };
        let number = path::stated_line(said.line, file);
        let Some(line) = find(cx, budget, file, number, &quote) else {
            continue;
        };
        let is_known = out
            .iter()
            .any(|a| (&a.file, a.line) == (&line.file, line.number));
        if !is_known && own != Some((&line.file, line.number)) && out.len() < MOST {
            out.push(line.also());
        }
    }
    out
}

/// Finds the line with the quote in a file of the tree or of the change.
///
/// `number` selects one of several matching lines. Without a number, or with a number that is not
/// near a matching line, only one line may match.
pub(super) fn find(
    cx: &Context<'_>,
    budget: &mut Budget,
    named: &str,
    number: Option<u32>,
    quote: &Quote,
) -> Option<SentLine> {
    budget.0 = budget.0.checked_sub(1)?;
    let file = file(cx, named)?;
    let text = cx.tree.and_then(|tree| tree.text(&file));
    let lines: Vec<(u32, &str)> = match &text {
        Some(text) if text.len() > SEARCHED => return None,
        Some(text) => (1..).zip(text.lines()).collect(),
        None => shown(cx, &file),
    };
    let line = quote.find_line(&lines, number, NEAR)?;
    let text = line.text.trim().to_owned();
    Some(SentLine {
        file,
        number: LineNo::new(line.number)?,
        text,
        is_certain: line.is_certain,
    })
}

/// Resolves a path from a claim to a file of the change or the tree.
fn file(cx: &Context<'_>, named: &str) -> Option<RepoPath> {
    let exact = RepoPath::from(named.trim());
    if cx.tree.is_some_and(|tree| tree.text(&exact).is_some()) {
        return Some(exact);
    }
    if let Some(changed) = path::ChangedPaths::new(&cx.group.files).find(named) {
        return Some(cx.group.files[changed].path().clone());
    }
    let paths = cx.tree.map(TreeFiles::paths).unwrap_or_default();
    let names: Vec<(Cow<'_, str>, usize)> = paths
        .iter()
        .enumerate()
        .map(|(i, p)| (path::text(p), i))
        .collect();
    path::find(named, &names).map(|i| paths[i].clone())
}

/// Returns the lines on the new side of a changed file that the model received, with their numbers.
fn shown<'a>(cx: &Context<'a>, file: &RepoPath) -> Vec<(u32, &'a str)> {
    let file = cx.group.files.iter().find(|f| f.path() == file);
    let lines = file
        .into_iter()
        .flat_map(|f| &f.hunks)
        .flat_map(|h| &h.lines);
    lines
        .filter_map(|l| Some((l.new?.get(), l.text.as_str())))
        .collect()
}

impl SentLine {
    /// Converts the line to a secondary location of a finding.
    pub(super) fn also(self) -> Also {
        Also {
            quote: text::cut(&self.text, QUOTE),
            file: self.file,
            line: self.number,
        }
    }
}
