//! The text of the hook file that git runs. Pure.
//!
//! It is POSIX sh, because the sh of Git for Windows runs it too, and starts no program except
//! `cat`. A previous hook is in the same folder as `<hook>.chained` and runs first, so that its
//! changes are reviewed too.

use super::{Hook, SKIP};

/// Version of the text. It rises with every change of behaviour; `install-hooks` replaces an
/// installed shim of a lower version.
pub const VERSION: u32 = 1;

/// Suffix of the name of a previous hook.
pub const CHAINED: &str = "chained";

/// Start of the line that identifies a shim.
const MARKER: &str = "# claude-reviewer hook ";

/// Returns the shim of a hook.
///
/// `program` is the absolute path of the binary in the encoding of the system, with forward
/// slashes; empty if the hook must be found through `PATH`, because others share the file.
pub fn text(hook: Hook, program: &[u8]) -> Vec<u8> {
    let (name, command) = (hook.name(), hook.command());
    let (read, kept, run) = match hook {
        Hook::PreCommit => (
            "",
            r#""$0.chained" "$@""#,
            format!(r#"exec "$bin" review --hook {name}"#),
        ),
        // Both hooks need git's standard input.
        Hook::PrePush => (
            "refs=$(cat) || exit 3\nrefs() { printf '%s' \"${refs:+$refs\n}\"; }\n",
            r#"refs | "$0.chained" "$@""#,
            format!(r#"refs | "$bin" review --hook {name} --hook-args "$@"; exit"#),
        ),
        // git ignores the exit code of this hook, and the commit exists already.
        Hook::PostCommit => (
            "",
            r#""$0.chained" "$@""#,
            format!(r#"exec "$bin" review --hook {name}"#),
        ),
    };
    let otherwise = if hook == Hook::PostCommit {
        ":"
    } else {
        "exit"
    };
    let head = format!(
        "#!/bin/sh\n\
         {MARKER}{VERSION}: made by `claude-reviewer install-hooks`; add --uninstall to take it away.\n\
         # To pass once without a review: {SKIP}=1 {command}, or {command} --no-verify.\n\
         {read}\
         if [ -x \"$0.{CHAINED}\" ]; then {kept} || {otherwise}; fi\n\
         bin="
    );
    let tail = format!(
        "\n[ -x \"$bin\" ] || bin=$(PATH=\"$PATH:$HOME/.cargo/bin:/usr/local/bin:/opt/homebrew/bin\"; command -v claude-reviewer)\n\
         case $bin in /* | [A-Za-z]:*) {run} ;; esac\n\
         case ${{{SKIP}:-0}} in 0 | false) ;; *) exit 0 ;; esac\n\
         echo \"claude-reviewer is gone, so nothing was reviewed: install it again or delete $0 ({SKIP}=1 skips once)\" >&2\n\
         exit 3\n"
    );
    [head.as_bytes(), &quote(program), tail.as_bytes()].concat()
}

/// Returns the version of a shim; `None` for any other hook.
pub fn version(hook: &[u8]) -> Option<u32> {
    let line = hook
        .split(|&b| b == b'\n')
        .take(3)
        .find_map(|l| l.strip_prefix(MARKER.as_bytes()))?;
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&line[..digits]).ok()?.parse().ok()
}

/// Quotes a word for sh.
fn quote(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for &b in word {
        match b {
            b'\'' => out.extend_from_slice(br"'\''"),
            b => out.push(b),
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_carries_the_version() {
        for hook in Hook::ALL {
            assert_eq!(version(&text(hook, b"/x/claude-reviewer")), Some(VERSION));
        }
        assert_eq!(
            version(b"#!/bin/sh\n# claude-reviewer hook 41: old\n"),
            Some(41)
        );
        assert_eq!(
            version(b"#!/bin/sh\nexec claude-reviewer review staged\n"),
            None
        );
        assert_eq!(
            version(b"#!/bin/sh\n\n\n\n# claude-reviewer hook 1\n"),
            None
        );
        assert_eq!(version(b"# claude-reviewer hook \n"), None);
        assert_eq!(version(b""), None);
    }

    #[test]
    fn the_path_of_the_binary_cannot_leave_its_quotes() {
        assert_eq!(quote(b"/a b/$(x)/it's"), br"'/a b/$(x)/it'\''s'");
        let text = text(Hook::PreCommit, b"/it's; rm -rf x\n");
        assert!(
            String::from_utf8(text)
                .unwrap()
                .contains("bin='/it'\\''s; rm -rf x\n'\n")
        );
    }

    #[test]
    fn the_shim_is_a_few_lines() {
        for hook in Hook::ALL {
            let text = String::from_utf8(text(hook, b"/usr/bin/claude-reviewer")).unwrap();
            assert!(text.lines().count() <= 15, "{text}");
            assert!(text.is_ascii() && text.ends_with("exit 3\n"), "{text}");
        }
    }
}
