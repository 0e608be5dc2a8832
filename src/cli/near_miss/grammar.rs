//! Splits the arguments of a command line into options and words, also if the parser rejected them.

/// An option of a command.
#[derive(Clone, Debug)]
struct KnownOption {
    /// The command's names, without the program: `review branch`; empty for an option of every
    /// command.
    command: String,
    /// Name with its dashes: `--base`, `-C`.
    name: String,
    values: Values,
}

/// Number of arguments that belong to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Values {
    None,
    One,
    /// All up to the next option.
    Many,
}

/// The options of all commands.
#[derive(Debug)]
pub(in crate::cli) struct Grammar {
    known: Vec<KnownOption>,
}

/// A part of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum CliPiece {
    /// A command, or an argument that is neither an option nor the value of one.
    Word(String),
    Option {
        /// Name with its dashes, without the value. A cluster of short options has the name of its
        /// last one.
        name: String,
        value: Option<String>,
        /// The arguments as written.
        written: Vec<String>,
    },
}

impl Grammar {
    /// Reads the options of a command and of its subcommands.
    pub(in crate::cli) fn of(program: &clap::Command) -> Self {
        let mut program = program.clone();
        program.build();
        let mut grammar = Self { known: Vec::new() };
        grammar.add(&program, "");
        grammar
    }

    fn add(&mut self, command: &clap::Command, name: &str) {
        for arg in command.get_arguments() {
            let values = match arg.get_num_args() {
                _ if !arg.get_action().takes_values() => Values::None,
                Some(range) if range.max_values() > 1 => Values::Many,
                _ => Values::One,
            };
            let names = [
                arg.get_long().map(|l| format!("--{l}")),
                arg.get_short().map(|s| format!("-{s}")),
            ];
            for written in names.into_iter().flatten() {
                self.known.push(KnownOption {
                    command: name.to_owned(),
                    name: written,
                    values,
                });
            }
        }
        for child in command
            .get_subcommands()
            .filter(|c| c.get_name() != "help" && !c.is_hide_set())
        {
            self.add(child, format!("{name} {}", child.get_name()).trim_start());
        }
    }

    /// Returns the commands that have the option, without the subcommands of these commands.
    pub(super) fn commands_with(&self, option: &str) -> Vec<&str> {
        let all: Vec<_> = self
            .known
            .iter()
            .filter(|k| k.name == option)
            .map(|k| k.command.as_str())
            .collect();
        all.iter()
            .copied()
            .filter(|name| !all.iter().any(|parent| is_below(name, parent)))
            .collect()
    }

    /// Returns true if the command, such as `review branch`, has the option.
    pub(super) fn has(&self, command: &str, option: &str) -> bool {
        self.known
            .iter()
            .any(|k| k.command == command && k.name == option)
    }

    fn values(&self, option: &str) -> Option<Values> {
        self.known
            .iter()
            .find(|k| k.name == option)
            .map(|k| k.values)
    }

    /// Splits arguments, without the program's name. `foreign` supplies the values of options that
    /// no command has.
    pub(in crate::cli) fn pieces(
        &self,
        args: &[String],
        foreign: impl Fn(&str) -> Values,
    ) -> Vec<CliPiece> {
        let mut pieces = Vec::new();
        let mut rest = args;
        while let [arg, behind @ ..] = rest {
            rest = behind;
            if arg == "--" {
                pieces.extend(rest.iter().cloned().map(CliPiece::Word));
                break;
            }
            let Some((name, joined)) = option(arg, |short| self.values(short)) else {
                pieces.push(CliPiece::Word(arg.clone()));
                continue;
            };
            let values = self.values(&name).unwrap_or_else(|| foreign(&name));
            let free = behind.iter().take_while(|a| !is_option(a)).count();
            let taken = match values {
                _ if joined.is_some() => 0,
                Values::None => 0,
                Values::One => free.min(1),
                Values::Many => free,
            };
            let value = joined.or_else(|| behind[..taken].first().cloned());
            let written = std::iter::once(arg)
                .chain(&behind[..taken])
                .cloned()
                .collect();
            pieces.push(CliPiece::Option {
                name,
                value,
                written,
            });
            rest = &behind[taken..];
        }
        pieces
    }
}

/// Returns true if a command is a subcommand of another one.
fn is_below(name: &str, parent: &str) -> bool {
    name.strip_prefix(parent)
        .is_some_and(|rest| rest.starts_with(' '))
}

/// A single dash means standard input.
fn is_option(arg: &str) -> bool {
    arg.starts_with('-') && arg != "-"
}

/// Returns the name of the option, and the value that is joined to it: `--base=main`, `-Cdir`.
fn option(arg: &str, values: impl Fn(&str) -> Option<Values>) -> Option<(String, Option<String>)> {
    if !is_option(arg) {
        return None;
    }
    if arg.starts_with("--") {
        return Some(match arg.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (arg.to_owned(), None),
        });
    }
    let mut name = arg.to_owned();
    for (at, letter) in arg.char_indices().skip(1) {
        name = format!("-{letter}");
        if values(&name).is_some_and(|v| v != Values::None) {
            let joined = arg[at + letter.len_utf8()..].trim_start_matches('=');
            return Some((name, (!joined.is_empty()).then(|| joined.to_owned())));
        }
    }
    Some((name, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn pieces(line: &str) -> Vec<String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let grammar = Grammar::of(&crate::cli::Cli::command());
        let pieces = grammar.pieces(&args, |name| {
            if name == "--against" {
                Values::One
            } else {
                Values::None
            }
        });
        pieces.into_iter().map(shown).collect()
    }

    /// Returns a word as it is, and an option with its value in brackets.
    fn shown(piece: CliPiece) -> String {
        match piece {
            CliPiece::Word(word) => word,
            CliPiece::Option { name, value, .. } => {
                format!("[{name} {}]", value.unwrap_or_default())
            }
        }
    }

    #[test]
    fn options_take_their_values() {
        for (line, expected) in [
            (
                "review staged --depth quick",
                &["review", "staged", "[--depth quick]"][..],
            ),
            ("-qC src review", &["[-C src]", "review"]),
            (
                "-Csrc -C=src -vv x",
                &["[-C src]", "[-C src]", "[-v ]", "x"],
            ),
            ("--files a b --gate c", &["[--files a]", "[--gate ]", "c"]),
            (
                "--base=main x --against main y",
                &["[--base main]", "x", "[--against main]", "y"],
            ),
            ("--base --gate", &["[--base ]", "[--gate ]"]),
            ("code - -- --base", &["code", "-", "--base"]),
            ("--unknown x", &["[--unknown ]", "x"]),
        ] {
            assert_eq!(pieces(line), expected, "{line}");
        }
    }

    #[test]
    fn options_know_their_commands() {
        let grammar = Grammar::of(&crate::cli::Cli::command());
        assert_eq!(
            grammar.commands_with("--untracked"),
            ["review unstaged", "review tree"]
        );
        assert!(grammar.has("review changes", "--base") && !grammar.has("review pr", "--base"));
        assert!(grammar.commands_with("--staged").is_empty());
        assert_eq!(grammar.commands_with("--gate"), ["review"]);
    }
}
