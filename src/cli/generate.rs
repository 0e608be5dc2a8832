//! `completions SHELL` and `man`: generated from the clap types.

use crate::error::{Error, ExitStatus};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Completions {}

pub(super) fn completions(_args: &Completions) -> Result<ExitStatus, Error> {
    todo!()
}

pub(super) fn man() -> Result<ExitStatus, Error> {
    todo!()
}
