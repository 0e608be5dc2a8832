//! `edit` and `create`: change files of a private copy in memory. Only available for fixes.

use super::argument;
use super::page::ResultPage;
use crate::ai::tree::Tree;
use crate::diff::RepoPath;
use crate::untrusted::Inert;
use serde_json::Value;
use std::rc::Rc;

/// Replaces the only occurrence of a text in a file.
pub(super) fn edit(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let (path, text) = target(tree, arguments)?;
    let name = tree.name(&path);
    let (old, new) = (
        argument::string(arguments, "old")?,
        argument::string(arguments, "new")?,
    );
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() {
        return Err("old is empty: quote the text to replace".to_owned());
    }
    match text.matches(&old).count() {
        0 => {
            return Err(format!(
                "old does not occur in `{name}`: read the lines again and quote them verbatim"
            ));
        }
        1 => {}
        n => {
            return Err(format!(
                "old occurs {n} times in `{name}`: add lines around it until it occurs once"
            ));
        }
    }
    if old == new {
        return Err("old and new are equal".to_owned());
    }
    tree.draft(&path, &text.replacen(&old, &new, 1), new.len())?;
    page.close(&format!("edited `{name}`"));
    Ok(page)
}

/// Creates a file.
pub(super) fn create(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let given = argument::string(arguments, "path")?;
    let shown = argument::shown(tree, given);
    let name = argument::inside(given).map_err(|why| format!("{shown} {why}"))?;
    let text = argument::string(arguments, "text")?.replace("\r\n", "\n");
    let path = RepoPath::from(name);
    let is_free = tree
        .has_room_for(&path)
        .map_err(|e| format!("the tree cannot be listed: {}", Inert::new(e.message)))?;
    if !is_free {
        return Err(format!(
            "{shown} cannot be created: something is there, or the name is not one of a plain file"
        ));
    }
    if text.is_empty() {
        return Err("text is empty".to_owned());
    }
    tree.draft(&path, &text, text.len())?;
    page.close(&format!("created {shown}"));
    Ok(page)
}

/// Returns the file that a call names, and its text. A file that an earlier call created can also
/// be edited.
fn target(tree: &Tree<'_>, arguments: &Value) -> Result<(RepoPath, Rc<str>), String> {
    let given = argument::string(arguments, "path")?.trim();
    let created = argument::inside(given).ok().map(RepoPath::from);
    if let Some(path) = created
        && let Some(text) = tree.drafted(&path)
    {
        return Ok((path, text));
    }
    let path = argument::file(tree, arguments)?;
    let text = tree
        .text(path)
        .map_err(|why| format!("`{}` cannot be edited: {why}", tree.name(path)))?;
    Ok((path.clone(), text))
}
