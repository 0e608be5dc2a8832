//! Files that no person wrote for the project: output of bundlers and copied libraries.

use super::{FileScan, bundle, catalog};
use crate::diff::ChangeKind;

impl FileScan<'_> {
    /// Returns true for a script that a bundler wrote for a web server.
    pub(super) fn is_served(&mut self) -> bool {
        let (path, text) = (self.file.path().as_bytes(), self.file.text());
        *self
            .is_served
            .get_or_insert_with(|| text.is_some_and(|t| bundle::is_served(path, t.new.known())))
    }

    /// Returns true for a script whose code is minified, and was before the change.
    pub(super) fn is_minified(&self) -> bool {
        let path = self.file.path().as_bytes();
        let is_new = matches!(self.file.entry.kind, ChangeKind::Added);
        self.file.text().is_some_and(|text| {
            let old = (!is_new).then(|| text.old.known());
            bundle::is_minified(path, text.new.known(), old)
        })
    }

    /// Returns true for a script that existed, and whose code is minified and was before.
    pub(super) fn was_minified(&self) -> bool {
        !matches!(self.file.entry.kind, ChangeKind::Added) && self.is_minified()
    }

    /// Returns true if a rule about dangerous calls reads minified code, the output of a bundler,
    /// or a copied library that a web server sends. Its users do not edit it.
    pub(super) fn is_of_library(&mut self, rule: &catalog::Rule) -> bool {
        if rule.in_bundles || rule.secret {
            return false;
        }
        if let Some(known) = self.is_library {
            return known;
        }
        let path = self.file.path().as_bytes();
        // A renamed file can be one of the program.
        let is_new = !matches!(self.file.entry.kind, ChangeKind::Modified);
        let is_copied = self.file.text().is_some_and(|text| {
            let new = text.new.known();
            bundle::is_served_library(path, new, is_new) || bundle::is_built(path, new)
        });
        let is_library = is_copied || self.is_minified();
        self.is_library = Some(is_library);
        is_library
    }
}
