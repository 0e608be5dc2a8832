//! Repeats the lookups of a cached answer, and compares their results. Sends no request.

use super::Session;
use crate::ai::ask::{Lookup, LookupSubject};
use crate::ai::tree::Tree;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Lookups that are repeated in order, within the limits of live tools.
#[derive(Debug)]
pub struct Replay<'t, 'r> {
    tree: &'t Tree<'r>,
    session: Session<'t, 'r>,
}

impl<'t, 'r> Replay<'t, 'r> {
    /// Creates a replay with the default limits.
    pub fn new(tree: &'t Tree<'r>) -> Self {
        Self {
            tree,
            session: Session::new(tree),
        }
    }

    /// Repeats a lookup. Returns true if its result is the same.
    pub fn is_same(&mut self, lookup: &Lookup) -> bool {
        if self.session.is_over() {
            return false;
        }
        let Self { tree, session } = self;
        let digest = tree.apart(|| match &lookup.subject {
            LookupSubject::Call { name, arguments } => {
                Some(digest(session.call(name, arguments).as_bytes()))
            }
            LookupSubject::File(_) | LookupSubject::Tree => digest_in(tree, &lookup.subject),
        });
        digest == Some(lookup.digest)
    }
}

impl Lookup {
    /// Records a tool call.
    pub(super) fn call(name: &str, arguments: &Value, result: &str) -> Self {
        let subject = LookupSubject::Call {
            name: name.to_owned(),
            arguments: arguments.clone(),
        };
        Self {
            subject,
            digest: digest(result.as_bytes()),
        }
    }

    /// Records a read of the tree by a program. Returns `None` if it cannot be repeated.
    pub fn in_tree(tree: &Tree<'_>, subject: LookupSubject) -> Option<Self> {
        let digest = digest_in(tree, &subject)?;
        Some(Self { subject, digest })
    }
}

/// Returns the digest of a part of the tree. Returns `None` if the tree has no ID, or the subject
/// is a call.
fn digest_in(tree: &Tree<'_>, subject: &LookupSubject) -> Option<[u8; 32]> {
    match subject {
        LookupSubject::File(path) => Some(
            tree.text(path)
                .map_or([0; 32], |text| digest(text.as_bytes())),
        ),
        LookupSubject::Tree => tree.id().map(|id| digest(id.as_bytes())),
        LookupSubject::Call { .. } => None,
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
