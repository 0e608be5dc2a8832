//! Parses the arguments of `review` without building the other commands.
//!
//! Hooks and CI jobs run `review` for every change. Building all commands and copying the options
//! of `review` to each of its sources took a seventh of a small review (2.7 of 20 million
//! instructions). Arguments that this parser refuses go to the complete one, so errors and help are
//! the same.

use super::{Cli, Global, review};
use clap::{Args as _, Command as CommandParser, FromArgMatches as _};
use std::ffi::OsString;
use std::mem::ManuallyDrop;

/// Parses arguments that start with `review`, without the program's name. Returns `None` if the
/// complete parser has to parse them.
pub(super) fn parse(args: &[OsString]) -> Option<Cli> {
    let (first, rest) = args.split_first()?;
    if first != "review" {
        return None;
    }
    let source = rest.first().and_then(|source| source.to_str());
    let command = Global::augment_args(CommandParser::new("claude-reviewer"))
        .subcommand(review::command_with(source))
        .no_binary_name(true);
    // The process ends before the memory is needed again, and freeing it takes a fifth of the time.
    let mut command = ManuallyDrop::new(command);
    let matches = command.try_get_matches_from_mut(args).ok()?;
    Cli::from_arg_matches(&matches).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_arguments_of_a_review_are_parsed_as_by_the_complete_parser() {
        for line in [
            "review",
            "review staged",
            "review staged --no-save -q",
            "review unstaged --untracked",
            "review commit HEAD~2..HEAD --jobs 2 --block-on critical,major",
            "review commit HEAD --parent 2 -vv --color never",
            "review branch topic --base main --gate --no-gate",
            "review pr 12 --remote upstream --post summary comments --require-post",
            "review changes --base main --focus security --summary --text",
            "review patch",
            "review patch - --report sarif=a.sarif --report json=b.json",
            "review code a.rs b.rs --files *.rs staged",
            "review --files a staged --exit-zero",
            "review --hook pre-push --hook-args origin url",
            "review --hook post-commit --hook-args staged --config p.toml",
        ] {
            let args = words(line);
            let complete =
                Cli::try_parse_from(["claude-reviewer".into()].into_iter().chain(args.clone()));
            let complete = complete.unwrap_or_else(|e| panic!("{line}: {e}"));
            let quick = parse(&args);
            let quick = quick.unwrap_or_else(|| panic!("{line}: refused"));
            assert_eq!(format!("{quick:?}"), format!("{complete:?}"), "{line}");
        }
    }

    #[test]
    fn other_arguments_are_left_to_the_complete_parser() {
        for line in [
            "pr list",
            "-C dir review staged",
            "review --no-save staged --format json -C dir",
            "review --help",
            "review help staged",
            "review staged extra",
            "review stage",
            "review --base main",
            "review commit",
            "review --receipt --accept-receipt",
            "review staged --no-save --require-history",
        ] {
            assert!(parse(&words(line)).is_none(), "{line}");
        }
        assert!(parse(&[]).is_none());
    }
}
