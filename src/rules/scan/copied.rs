//! Files that no person wrote for the project: output of bundlers and copied libraries.

use super::hidden::UNREAD;
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

    /// Returns true for a script whose code is minified, and was before the change. A new one can be
    /// written by hand and padded.
    pub(super) fn was_minified(&mut self) -> bool {
        if let Some(known) = self.was_minified {
            return known;
        }
        let path = self.file.path().as_bytes();
        let was_minified = self
            .file
            .text()
            .is_some_and(|text| bundle::was_minified(path, text.old.known(), text.new.known()));
        self.was_minified = Some(was_minified);
        was_minified
    }

    /// Returns true if a rule about dangerous calls reads a line of minified code. A short line
    /// beside a long one can be written by hand. `line`: its length in bytes.
    pub(super) fn is_of_minified_line(&mut self, rule: &catalog::Rule, line: usize) -> bool {
        line >= UNREAD && !rule.in_bundles && !rule.secret && self.was_minified()
    }

    /// Returns true if a rule about dangerous calls reads the output of a bundler or a copied
    /// library that a web server sends. Its users do not edit it.
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
        self.is_library = Some(is_copied);
        is_copied
    }
}
