//! The style of texts on standard output: colors, links and width of the terminal.

use super::{ColorChoice, Context};
use crate::env::Env;
use crate::report::{self, Links, Style};
use std::io::IsTerminal as _;

/// Returns the style that the flags, the environment and the terminal ask for.
pub(super) fn style(context: &Context, env: &Env) -> Style {
    let stdout = std::io::stdout().is_terminal();
    let choice = match context.global.color {
        ColorChoice::Always => Some(true),
        ColorChoice::Never => Some(false),
        ColorChoice::Auto => None,
    };
    // `--color never` asks for text without any escape sequence.
    let has_links = choice != Some(false) && report::terminal::has_hyperlinks(env, stdout);
    let width = env
        .var("COLUMNS")
        .and_then(|c| c.parse().ok())
        .or_else(|| terminal_size::terminal_size().map(|(w, _)| usize::from(w.0)))
        .unwrap_or(100);
    Style {
        color: report::terminal::has_color(env, choice, stdout),
        links: has_links.then(|| Links { host: host() }),
        unicode: env.is_utf8(),
        width: width.clamp(40, 200),
        quiet: context.global.quiet,
        verbose: context.global.verbose > 0,
        dispositioned: false,
        in_ci: env.is_ci(),
    }
}

/// Returns the name of this machine.
fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
