//! Renders prompts about documents, independent of a change.

use super::{document, fenced};
use crate::ai::ask::{Manifest, Nonce, Prompt};
use crate::ai::material::Document;

/// A document in a prompt with its kind, such as `proposal` or `contract`.
pub type Exhibit = (&'static str, Document);

/// Renders a prompt about documents. `system` and `task` are constant templates.
pub fn consult(system: &'static str, task: &str, exhibits: &[Exhibit], nonce: &Nonce) -> Prompt {
    let mut chunk = String::new();
    for (kind, exhibit) in exhibits {
        match exhibit.name.is_empty() {
            true => fenced(kind, &exhibit.text, &mut chunk),
            false => document(kind, exhibit, &mut chunk),
        }
    }
    let task = format!("{}\nnonce: {}", task.trim_end(), nonce.as_str());
    Prompt {
        system,
        context: String::new(),
        manifest: Manifest::default(),
        chunk,
        task,
        nonce: nonce.clone(),
    }
}
