//! `completions SHELL` and `man`: generated from the clap types.

use crate::error::{Error, ExitStatus};
use clap::CommandFactory as _;
use std::io::{ErrorKind, Write as _};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "bash:  claude-reviewer completions bash > ~/.local/share/bash-completion/completions/claude-reviewer\n\
    zsh:   claude-reviewer completions zsh > \"${fpath[1]}/_claude-reviewer\"\n\
    fish:  claude-reviewer completions fish > ~/.config/fish/completions/claude-reviewer.fish"
)]
pub(super) struct Completions {
    /// Shell to complete in
    shell: clap_complete::Shell,
}

pub(super) fn completions(args: &Completions) -> Result<ExitStatus, Error> {
    let mut command = super::Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    print(&script)
}

pub(super) fn man() -> Result<ExitStatus, Error> {
    let mut command = super::Cli::command().disable_help_subcommand(true);
    command.build();
    let mut page = Vec::new();
    man_page(&command, &mut page)
        .map_err(|e| Error::usage("the manual page cannot be written").caused_by(&e))?;
    print(&page)
}

/// One page for everything: the program's own sections, then one for each subcommand.
fn man_page(command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let main = clap_mangen::Man::new(command.clone());
    main.render_title(page)?;
    main.render_name_section(page)?;
    main.render_synopsis_section(page)?;
    main.render_description_section(page)?;
    main.render_options_section(page)?;
    page.extend_from_slice(exit_section().as_bytes());
    let mut rest: Vec<_> = command.get_subcommands().collect();
    rest.reverse();
    while let Some(sub) = rest.pop() {
        if sub.is_hide_set() {
            continue;
        }
        let mut section = Vec::new();
        // The global options are listed once, in the main section.
        let own = sub.clone().mut_args(|a| {
            if a.is_global_set() || a.get_id() == "help" {
                a.hide(true)
            } else {
                a
            }
        });
        let man = clap_mangen::Man::new(own);
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        man.render_options_section(&mut section)?;
        if sub.get_after_help().is_some() || sub.get_after_long_help().is_some() {
            man.render_extra_section(&mut section)?;
        }
        let name = sub
            .get_bin_name()
            .unwrap_or(sub.get_name())
            .to_uppercase()
            .replace('-', "\\-");
        page.extend_from_slice(format!(".SH \"{name}\"\n").as_bytes());
        page.extend_from_slice(
            String::from_utf8_lossy(&section)
                .replace(".SH ", ".SS ")
                .as_bytes(),
        );
        let mut nested: Vec<_> = sub.get_subcommands().collect();
        nested.reverse();
        rest.extend(nested);
    }
    Ok(())
}

fn exit_section() -> String {
    let rows = ExitStatus::ALL.map(|s| format!(".TP\n.B {}\n{}\n", s.code(), s.meaning()));
    format!(".SH \"EXIT STATUS\"\n{}", rows.concat())
}

/// Writes to standard output. A closed pipe is not an error.
fn print(text: &[u8]) -> Result<ExitStatus, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::usage("the output cannot be written").caused_by(&e))
        }
        _ => Ok(ExitStatus::Pass),
    }
}
