//! `diff_of`: the change of another file, in the format of the prompt for its part.

use super::argument;
use super::page::{ResultPage, cut};
use crate::ai::anchor::path::ChangedPaths;
use crate::ai::tree::Tree;
use crate::diff::LineKind;
use serde_json::Value;

/// Bytes of a line, at most.
const MAX_LINE: usize = 1_000;
/// Paths that a result lists, at most.
const MAX_PATHS: usize = 40;

pub(super) fn call(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let given = argument::string(arguments, "path")?.trim();
    let change = tree.change();
    if change.is_empty() {
        return Err("the change has no other files".to_owned());
    }
    let Some(file) = ChangedPaths::new(change).find(given).map(|i| &change[i]) else {
        let names: Vec<&str> = change
            .iter()
            .take(MAX_PATHS)
            .map(|f| f.name.as_str())
            .collect();
        let shown = argument::shown(tree, given);
        return Err(format!(
            "{shown} is not part of the change; its files: {}",
            names.join(", ")
        ));
    };
    let mut left = file.hunks.iter().map(|h| h.lines.len()).sum::<usize>();
    let mut has_room = page.say(&format!("file: {}", file.name));
    for hunk in &file.hunks {
        has_room = has_room && page.say(format!("@@ {}", hunk.section).trim_end());
        for line in &hunk.lines {
            let text = cut(&line.text, MAX_LINE);
            let shown = match (line.kind, line.new) {
                (LineKind::Added, Some(n)) => format!("{n}+{text}"),
                (LineKind::Context, Some(n)) => format!("{n} {text}"),
                _ => format!("-{text}"),
            };
            has_room = has_room && page.say(&shown);
            left -= usize::from(has_room);
        }
    }
    if left > 0 {
        page.close(&format!(
            "({left} more lines: read the file with read_lines)"
        ));
    }
    Ok(page)
}
