//! Renders the prompt that evaluates the criteria of a contract.

use super::manifest::manifest;
use super::{Brief, PART, context, ending, fenced, is_part, part};
use crate::ai::ask::{Nonce, Prompt};
use crate::ai::material::Group;
use crate::ai::plan::Chunk;
use std::fmt::Write as _;

const SYSTEM: &str = include_str!("criteria.md");
const TASK: &str =
    "Decide each criterion of the task above from the change above, in the given order.\n";

/// Renders the prompt that evaluates the criteria for a chunk.
pub fn criteria(brief: &Brief, group: &Group, chunk: &Chunk, nonce: &Nonce) -> Prompt {
    let mut context = context(brief, &brief.previous);
    list(brief, &mut context);
    let mut task = TASK.to_owned();
    if is_part(group, chunk) {
        task.push_str(PART);
    }
    ending(brief, group.tree.is_some(), nonce, &mut task);
    Prompt {
        system: SYSTEM,
        context,
        manifest: manifest(group, &brief.kept, chunk),
        chunk: part(brief, group, chunk),
        task,
        nonce: nonce.clone(),
    }
}

/// Returns the additional bytes of this prompt compared to a review.
pub(super) fn bytes(brief: &Brief) -> usize {
    if brief.criteria.is_empty() {
        return 0;
    }
    let mut listed = String::new();
    list(brief, &mut listed);
    listed.len() + SYSTEM.len().saturating_sub(super::SYSTEM.len())
}

fn list(brief: &Brief, out: &mut String) {
    let mut text = String::new();
    for c in &brief.criteria {
        let _ = writeln!(text, "id: {}", c.id);
        for line in c.text.lines().filter(|l| !l.trim().is_empty()) {
            let _ = writeln!(text, "> {}", line.trim());
        }
    }
    fenced("criteria", &text, out);
}
