//! `read_lines`: a part of a file.

use super::argument;
use super::page::{ResultPage, cut};
use crate::ai::material::MAX_LINE;
use crate::ai::tree::Tree;
use crate::diff::LineNo;
use serde_json::Value;

/// Lines of one result, at most.
const MAX_LINES: u32 = 400;

pub(super) fn call(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let path = argument::file(tree, arguments)?;
    let first = argument::line(arguments, "first")?.unwrap_or(LineNo::FIRST);
    let last = argument::line(arguments, "last")?.unwrap_or(LineNo::FIRST.plus(u32::MAX - 1));
    let (first, last) = (first.min(last), first.max(last));
    let name = tree.name(path);
    let text = tree
        .text(path)
        .map_err(|why| format!("`{name}` is not shown: {why}"))?;
    let count = text.lines().count();
    if count == 0 {
        return Err(format!("`{name}` is empty"));
    }
    if first.get() as usize > count {
        return Err(format!("`{name}` has only {count} lines"));
    }
    let end = last
        .get()
        .min(first.get().saturating_add(MAX_LINES - 1))
        .min(u32::try_from(count).unwrap_or(u32::MAX));
    if !page.say(&format!("{name}, lines {first} to {end} of {count}:")) {
        return Err("no room is left to show it: answer now".to_owned());
    }
    let wanted = (end - first.get() + 1) as usize;
    let mut next = first;
    for line in text.lines().skip(first.get() as usize - 1).take(wanted) {
        if !page.show(path, next, &cut(line, MAX_LINE)) {
            break;
        }
        next = next.plus(1);
    }
    if next.get() <= end {
        page.close(&format!(
            "(no room for lines {next} to {end}: ask again with first = {next}, or for less)"
        ));
    } else if end < last.get() && (end as usize) < count {
        page.close(&format!(
            "({} lines follow: ask again with first = {next})",
            count - end as usize
        ));
    }
    Ok(page)
}
