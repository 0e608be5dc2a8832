//! The user's editor: the command line that opens a file at a line. Pure.

use std::ffi::OsString;
use std::path::Path;

/// Syntax of the line number on the command line of an editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syntax {
    /// `+12 FILE`
    Plus,
    /// `FILE:12`
    Colon,
    /// `--goto FILE:12`
    Goto,
    /// `--line 12 FILE`
    Line,
    /// Unknown.
    None,
}

impl Syntax {
    /// Returns the syntax of a program by its name.
    fn of(program: &str) -> Self {
        let name = Path::new(program)
            .file_stem()
            .map(|n| n.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        match name.as_str() {
            "vi" | "vim" | "nvim" | "gvim" | "mvim" | "view" | "nano" | "rnano" | "pico"
            | "emacs" | "emacsclient" | "micro" | "kak" | "mg" | "joe" | "jed" | "ne"
            | "mcedit" | "gedit" | "vis" | "elvis" | "nvi" | "ex" => Self::Plus,
            "hx" | "helix" | "subl" | "sublime_text" | "zed" | "zeditor" | "lapce" | "atom" => {
                Self::Colon
            }
            "code" | "code-insiders" | "code-oss" | "codium" | "vscodium" | "cursor"
            | "windsurf" | "positron" => Self::Goto,
            "kate" | "mate" | "idea" | "pycharm" | "clion" | "goland" | "rustrover"
            | "webstorm" | "phpstorm" => Self::Line,
            // `emacs-29.1` and `vim.basic` are vim and emacs too.
            other
                if other.starts_with("vim")
                    || other.starts_with("emacs")
                    || other.starts_with("nvim") =>
            {
                Self::Plus
            }
            _ => Self::None,
        }
    }
}

/// A command line of an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EditorCommand {
    pub(super) program: String,
    pub(super) args: Vec<OsString>,
}

/// Returns the command that opens a file at a line. `editor` is the value of `VISUAL` or `EDITOR`,
/// which may have options. `None` if it names no program, or if a quote is not closed.
pub(super) fn command(editor: &str, file: &Path, line: Option<u32>) -> Option<EditorCommand> {
    let mut words = words(editor)?.into_iter();
    let program = words.next()?;
    let mut args: Vec<OsString> = words.map(OsString::from).collect();
    match (Syntax::of(&program), line) {
        (Syntax::Plus, Some(line)) => args.extend([format!("+{line}").into(), file.into()]),
        (Syntax::Colon, Some(line)) => args.push(with_line(file, line)),
        (Syntax::Goto, Some(line)) => args.extend(["--goto".into(), with_line(file, line)]),
        (Syntax::Line, Some(line)) => {
            args.extend(["--line".into(), line.to_string().into(), file.into()]);
        }
        (_, None) | (Syntax::None, _) => args.push(file.into()),
    }
    Some(EditorCommand { program, args })
}

/// Returns the argument `file:line`.
fn with_line(file: &Path, line: u32) -> OsString {
    let mut argument = file.as_os_str().to_owned();
    argument.push(format!(":{line}"));
    argument
}

/// Splits a command line into words. Supports the quotes of a shell, but no other shell syntax.
fn words(text: &str) -> Option<Vec<String>> {
    let mut out: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => out.extend(word.take()),
            '\'' => {
                let (quoted, rest) = chars.as_str().split_once('\'')?;
                word.get_or_insert_default().push_str(quoted);
                chars = rest.chars();
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => word.push(chars.next()?),
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(editor: &str, line: Option<u32>) -> Option<Vec<String>> {
        let command = command(editor, Path::new("/r/a b.py"), line)?;
        let args = command
            .args
            .iter()
            .map(|a| a.to_string_lossy().into_owned());
        Some(std::iter::once(command.program).chain(args).collect())
    }

    #[test]
    fn editors_open_the_line_in_their_own_syntax() {
        for (editor, expected) in [
            ("vim", &["vim", "+7", "/r/a b.py"][..]),
            (
                "/usr/bin/nvim -u NONE",
                &["/usr/bin/nvim", "-u", "NONE", "+7", "/r/a b.py"],
            ),
            ("emacsclient -t", &["emacsclient", "-t", "+7", "/r/a b.py"]),
            ("vim.basic", &["vim.basic", "+7", "/r/a b.py"]),
            ("nano", &["nano", "+7", "/r/a b.py"]),
            ("code --wait", &["code", "--wait", "--goto", "/r/a b.py:7"]),
            ("hx", &["hx", "/r/a b.py:7"]),
            ("kate", &["kate", "--line", "7", "/r/a b.py"]),
            ("ed", &["ed", "/r/a b.py"]),
            (
                "'/opt/my editor/vim' -n",
                &["/opt/my editor/vim", "-n", "+7", "/r/a b.py"],
            ),
            (
                "\"/opt/a \\\"b\" x\\ y",
                &["/opt/a \"b", "x y", "/r/a b.py"],
            ),
        ] {
            assert_eq!(shown(editor, Some(7)).unwrap(), expected, "{editor}");
        }
        assert_eq!(shown("vim", None).unwrap(), ["vim", "/r/a b.py"]);
        for editor in ["", "  ", "'vim", "\"vim", "vim \\"] {
            assert_eq!(shown(editor, Some(7)), None, "{editor}");
        }
    }
}
