//! TBD

use super::Context;
use crate::error::{Error, ExitStatus};

#[derive(Debug, clap::Args)]
pub struct Args {}

pub(super) fn run(_context: &Context, _args: &Args) -> Result<ExitStatus, Error> {
    todo!()
}
