//! Decides from the environment alone whether a report uses colour and hyperlinks.

use crate::env::Env;

/// Terminals that show OSC 8 hyperlinks, by `TERM_PROGRAM`.
const PROGRAMS: [&str; 6] = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Tabby", "rio"];
/// Terminals that show OSC 8 hyperlinks, by `TERM`.
const TERMS: [&str; 6] = [
    "xterm-kitty",
    "xterm-ghostty",
    "alacritty",
    "foot",
    "contour",
    "wezterm",
];
/// The first version of tmux that passes hyperlinks on.
const TMUX: (u32, u32) = (3, 4);

/// Returns true if the report is coloured. `choice` is the value of `--color always` or
/// `--color never`.
///
/// The flag has priority over `NO_COLOR`, which has priority over `FORCE_COLOR` and
/// `CLICOLOR_FORCE`. Without any of them, a terminal gets colour unless it is a dumb one.
pub fn has_color(env: &Env, choice: Option<bool>, is_terminal: bool) -> bool {
    match choice {
        Some(choice) => choice,
        None if env.var("NO_COLOR").is_some() => false,
        None if is_forced(env, "FORCE_COLOR") || is_forced(env, "CLICOLOR_FORCE") => true,
        None => is_terminal && !is_dumb(env),
    }
}

/// Returns true if the terminal shows OSC 8 hyperlinks. `FORCE_HYPERLINK` overrides the detection.
pub fn has_hyperlinks(env: &Env, is_terminal: bool) -> bool {
    match env.var("FORCE_HYPERLINK") {
        Some(forced) => forced != "0",
        None => is_terminal && !is_dumb(env) && !env.is_ci() && knows_hyperlinks(env),
    }
}

/// Returns true if a variable forces a feature: it is set, and not to `0`.
fn is_forced(env: &Env, name: &str) -> bool {
    env.var(name).is_some_and(|v| v != "0")
}

/// Returns true for a terminal without any control sequence.
fn is_dumb(env: &Env) -> bool {
    env.var("TERM") == Some("dumb")
}

/// Returns true if the terminal is known to support hyperlinks, by its name and version in the
/// environment.
fn knows_hyperlinks(env: &Env) -> bool {
    let term = env.var("TERM").unwrap_or_default();
    // A multiplexer inherits the variables of the terminal that it was started in.
    if env.var("TMUX").is_some() || term.starts_with("tmux") {
        return env.var("TERM_PROGRAM") == Some("tmux") && tmux_version(env) >= Some(TMUX);
    }
    if env.var("STY").is_some() || term.starts_with("screen") {
        return false;
    }
    let vte = env.var("VTE_VERSION").and_then(|v| v.parse::<u32>().ok());
    // VTE 0.50.0 announces hyperlinks and crashes on them.
    vte.is_some_and(|v| v > 5_000)
        || ["KITTY_WINDOW_ID", "WT_SESSION", "DOMTERM"]
            .iter()
            .any(|name| env.var(name).is_some())
        || env
            .var("TERM_PROGRAM")
            .is_some_and(|program| PROGRAMS.contains(&program))
        || TERMS.contains(&term)
}

/// Parses `3.4`, `3.5a` or `next-3.6`.
fn tmux_version(env: &Env) -> Option<(u32, u32)> {
    let version = env.var("TERM_PROGRAM_VERSION")?;
    let (major, minor) = version.trim_start_matches("next-").split_once('.')?;
    let digits = minor
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(minor.len());
    Some((major.parse().ok()?, minor[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn env(vars: &[(&str, &str)]) -> Env {
        Env::from_pairs(PathBuf::from("/"), vars.iter().copied())
    }

    #[test]
    fn the_flag_beats_no_color_which_beats_force_color_which_beats_the_terminal() {
        for (vars, choice, is_terminal, expected) in [
            (&[][..], None, true, true),
            (&[], None, false, false),
            (&[("TERM", "dumb")], None, true, false),
            (&[("FORCE_COLOR", "1")], None, false, true),
            (&[("FORCE_COLOR", "0")], None, false, false),
            (&[("FORCE_COLOR", "0")], None, true, true),
            (&[("FORCE_COLOR", "")], None, false, false),
            (&[("FORCE_COLOR", "1"), ("TERM", "dumb")], None, true, true),
            (&[("CLICOLOR_FORCE", "1")], None, false, true),
            (
                &[("NO_COLOR", "1"), ("FORCE_COLOR", "1")],
                None,
                true,
                false,
            ),
            (&[("NO_COLOR", "1")], Some(true), false, true),
            (&[("FORCE_COLOR", "1")], Some(false), true, false),
        ] {
            assert_eq!(
                has_color(&env(vars), choice, is_terminal),
                expected,
                "{vars:?} {choice:?} {is_terminal}"
            );
        }
    }

    #[test]
    fn hyperlinks_are_for_terminals_that_are_known_to_show_them() {
        for (vars, expected) in [
            (&[][..], false),
            (&[("TERM", "xterm-256color")], false),
            (&[("TERM_PROGRAM", "iTerm.app")], true),
            (&[("TERM_PROGRAM", "vscode")], true),
            (&[("TERM_PROGRAM", "Apple_Terminal")], false),
            (&[("VTE_VERSION", "5202")], true),
            (&[("VTE_VERSION", "4800")], false),
            (&[("VTE_VERSION", "x")], false),
            (&[("KITTY_WINDOW_ID", "1")], true),
            (&[("WT_SESSION", "a")], true),
            (&[("DOMTERM", "a")], true),
            (&[("KITTY_WINDOW_ID", "1"), ("TERM", "dumb")], false),
            (&[("KITTY_WINDOW_ID", "1"), ("CI", "true")], false),
            (&[("KITTY_WINDOW_ID", "1"), ("STY", "1.pts")], false),
            (&[("KITTY_WINDOW_ID", "1"), ("TMUX", "/tmp/t")], false),
            (
                &[
                    ("TMUX", "/tmp/t"),
                    ("TERM_PROGRAM", "tmux"),
                    ("TERM_PROGRAM_VERSION", "3.3a"),
                ],
                false,
            ),
            (
                &[
                    ("TMUX", "/tmp/t"),
                    ("TERM_PROGRAM", "tmux"),
                    ("TERM_PROGRAM_VERSION", "3.4"),
                ],
                true,
            ),
            (
                &[
                    ("TMUX", "/tmp/t"),
                    ("TERM_PROGRAM", "tmux"),
                    ("TERM_PROGRAM_VERSION", "next-3.10"),
                ],
                true,
            ),
            (&[("FORCE_HYPERLINK", "0"), ("KITTY_WINDOW_ID", "1")], false),
            (&[("FORCE_HYPERLINK", "1"), ("CI", "true")], true),
        ] {
            assert_eq!(has_hyperlinks(&env(vars), true), expected, "{vars:?}");
        }
        assert!(!has_hyperlinks(&env(&[("KITTY_WINDOW_ID", "1")]), false));
        assert!(has_hyperlinks(&env(&[("FORCE_HYPERLINK", "1")]), false));
    }
}
