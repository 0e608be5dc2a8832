//! Converts a worktree file to the form that git would store: line endings, encoding, `$Id$`. Never
//! runs a filter program.

use crate::error::{Error, Result};
use gix::attrs::search::Outcome;
use gix::filter::plumbing::pipeline::convert::ToGitOutcome;
use gix::objs::Find as _;
use gix::worktree::stack::state::attributes::Source;
use std::io::Read as _;

/// Converts files of one worktree.
pub(super) struct Convert {
    pipeline: gix::filter::plumbing::Pipeline,
    attributes: gix::worktree::Stack,
    /// Names of filter drivers that would run a program.
    drivers: Vec<gix::bstr::BString>,
    wanted: Outcome,
}

/// The conversions that attributes request for a path's content, except line endings.
#[derive(Debug, Default)]
pub(super) struct RequestedConversions {
    /// The filter driver that git would run.
    pub(super) driver: Option<String>,
    /// Whether the encoding is not UTF-8.
    pub(super) encoding: bool,
}

impl Convert {
    pub(super) fn new(repo: &gix::Repository, index: &gix::index::State) -> Result<Self> {
        let mut options =
            gix::filter::Pipeline::options(repo).map_err(|e| invalid_configuration(&e))?;
        let drivers = std::mem::take(&mut options.drivers);
        let drivers = drivers
            .into_iter()
            .filter(|d| d.clean.is_some() || d.process.is_some());
        // This warning is for adding files, not for reading them.
        options.crlf_roundtrip_check = gix::filter::plumbing::pipeline::CrlfRoundTripCheck::Skip;
        let context = repo
            .command_context()
            .map_err(|e| invalid_configuration(&e))?;
        let attributes = repo
            .attributes_only(index, Source::WorktreeThenIdMapping)
            .map_err(|e| invalid_configuration(&e))?;
        let wanted = attributes.selected_attribute_matches(["filter", "working-tree-encoding"]);
        Ok(Self {
            pipeline: gix::filter::plumbing::Pipeline::new(context, repo.object_hash(), options),
            attributes: attributes.detach(),
            drivers: drivers.map(|d| d.name).collect(),
            wanted,
        })
    }

    /// Returns the filter driver that git would run for a path.
    pub(super) fn driver(&mut self, repo: &gix::Repository, path: &[u8]) -> Option<String> {
        if self.drivers.is_empty() {
            None
        } else {
            self.asked_of(repo, path).driver
        }
    }

    /// Returns the conversions that attributes request for a path's content.
    pub(super) fn asked_of(&mut self, repo: &gix::Repository, path: &[u8]) -> RequestedConversions {
        let mut asked = RequestedConversions::default();
        let Ok(entry) = self
            .attributes
            .at_entry(gix::bstr::BStr::new(path), None, &repo.objects)
        else {
            return asked;
        };
        if !entry.matching_attributes(&mut self.wanted) {
            return asked;
        }
        for found in self.wanted.iter_selected() {
            let Some(value) = found.assignment.state.as_bstr() else {
                continue;
            };
            if found.assignment.name.as_str() == "filter" {
                asked.driver = self
                    .drivers
                    .iter()
                    .any(|d| d == value)
                    .then(|| value.to_string());
            } else {
                asked.encoding = true;
            }
        }
        asked
    }

    /// Converts the content of a file. On failure, returns the original content and the reason.
    pub(super) fn clean(
        &mut self,
        repo: &gix::Repository,
        index: &gix::index::State,
        path: &[u8],
        bytes: Vec<u8>,
    ) -> std::result::Result<Vec<u8>, (Vec<u8>, String)> {
        let path = gix::bstr::BStr::new(path);
        let entry = match self.attributes.at_entry(path, None, &repo.objects) {
            Ok(entry) => entry,
            Err(e) => return Err((bytes, e.to_string())),
        };
        let Ok(file) = gix::path::from_bstr(path) else {
            return Ok(bytes);
        };
        let outcome = self.pipeline.convert_to_git(
            bytes.as_slice(),
            &file,
            &mut |_, out| {
                entry.matching_attributes(out);
            },
            &mut |buf| {
                let Some(e) = index.entry_by_path(path) else {
                    return Ok(None);
                };
                let found = repo.objects.try_find(&e.id, buf)?;
                Ok(found
                    .filter(|o| o.kind == gix::objs::Kind::Blob)
                    .map(|_| ()))
            },
        );
        match outcome {
            Ok(ToGitOutcome::Unchanged(_)) => Ok(bytes),
            Ok(ToGitOutcome::Buffer(converted)) => Ok(converted.to_vec()),
            Ok(ToGitOutcome::Process(mut stream)) => {
                // Unreachable: no drivers are configured.
                let mut out = Vec::new();
                match stream.read_to_end(&mut out) {
                    Ok(_) => Ok(out),
                    Err(e) => Err((bytes.clone(), e.to_string())),
                }
            }
            Err(e) => Err((bytes, e.to_string())),
        }
    }
}

/// Returns the error for a configuration of conversions that git does not accept.
fn invalid_configuration(e: &gix::Error) -> Error {
    Error::usage("invalid git configuration of line endings and filters").caused_by(e)
}
