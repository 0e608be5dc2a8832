//! `serve-mcp`: the server for coding agents.

use super::Context;
use crate::error::{ExitStatus, Result};
use crate::mcp::{self, Serve};
use std::path::PathBuf;

/// Arguments of `serve-mcp`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Speaks the Model Context Protocol over standard input and output, and exits with code 0 when \
    the client disconnects.\nIn an agent's configuration:\n  \
    {\"mcpServers\": {\"claude-reviewer\": {\"command\": \"claude-reviewer\", \"args\": [\"serve-mcp\"]}}}"
)]
pub(super) struct ServeArgs {
    /// Restrict requests to this folder [default: the repository of the current folder]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

pub(super) fn run(context: &Context, args: &ServeArgs) -> Result<ExitStatus> {
    mcp::serve(Serve {
        root: args.root.clone(),
        dir: context.dir.clone(),
        config: context.global.config.clone(),
        env: context.env.clone(),
        verbose: context.global.verbose,
    })?;
    Ok(ExitStatus::Pass)
}
