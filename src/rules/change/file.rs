//! Properties of a changed path: its mode, its name, the first bytes of a binary file.

use super::{added, at_file, at_line};
use crate::diff::{Body, ChangeKind, FileChange, FileMode, LineNo, RepoPath};
use crate::rules::report::Reporter;
use crate::rules::role::is_test_path;

/// Checks modes, names and magic numbers.
pub(super) fn scan(file: &FileChange, out: &mut Reporter<'_>) {
    let Some(new) = &file.entry.new else { return };
    match new.mode {
        FileMode::Symlink => symlink(file, out),
        FileMode::Executable => executable(file, out),
        FileMode::Regular | FileMode::Submodule => {}
    }
    if file.entry.kind == ChangeKind::Added || matches!(file.entry.kind, ChangeKind::Copied { .. })
    {
        program(file, out);
        secret(file, out);
    }
    if file
        .entry
        .old
        .as_ref()
        .is_none_or(|old| old.path != new.path)
    {
        name(file.path(), out);
    }
}

fn symlink(file: &FileChange, out: &mut Reporter<'_>) {
    let Some(text) = file.text() else { return };
    let Some(line) = added(text).next() else {
        return;
    };
    if leaves(file.path(), line.text) {
        let target = String::from_utf8_lossy(line.text);
        at_line(
            out,
            "symlink-outside-tree",
            file.path(),
            line.number,
            line.text,
            Some(&format!("it points to {target}")),
        );
    }
}

/// Returns true if a link at a path points out of the tree.
fn leaves(path: &RepoPath, target: &[u8]) -> bool {
    let drive = target.len() > 2 && target[1] == b':' && matches!(target[2], b'/' | b'\\');
    if target.starts_with(b"/") || target.starts_with(b"\\") || target.starts_with(b"~/") || drive {
        return true;
    }
    let mut depth = path.as_bytes().iter().filter(|b| **b == b'/').count();
    for part in target.split(|b| matches!(b, b'/' | b'\\')) {
        match part {
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(d) => depth = d,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

fn executable(file: &FileChange, out: &mut Reporter<'_>) {
    let was = file.entry.old.as_ref().map(|s| s.mode);
    let fresh = file.entry.kind == ChangeKind::Added;
    if was == Some(FileMode::Executable) || !(fresh || was == Some(FileMode::Regular)) {
        return;
    }
    let shebang = match &file.body {
        Body::Text(t) => t
            .new
            .line(LineNo::FIRST)
            .is_some_and(|l| l.starts_with(b"#!")),
        // Unchanged content is unknown, and `program` reports executables.
        Body::Same | Body::Binary(_) | Body::Submodule { .. } => false,
    };
    let detail = match (&file.body, shebang) {
        (Body::Text(_), false) => "it has no `#!` line",
        (Body::Binary(b), _) if kind(file.path(), b.head()).is_none() => "it is not a program",
        (Body::Same, _) if !fresh => "its content did not change",
        (Body::Text(_), true) if !fresh => "it is a script",
        _ => return,
    };
    at_file(
        out,
        "executable-bit",
        file.path(),
        file.path().file_name(),
        Some(detail),
    );
}

/// Reports instructions to the reviewer in a name: `ignore-all-previous-instructions.md`.
fn name(path: &RepoPath, out: &mut Reporter<'_>) {
    const WORDS: &[&[u8]] = &[
        b"ignore",
        b"disregard",
        b"forget",
        b"reviewer",
        b"assistant",
        b"lgtm",
    ];
    let lower = path.as_bytes().to_ascii_lowercase();
    if !WORDS
        .iter()
        .any(|w| memchr::memmem::find(&lower, w).is_some())
    {
        return;
    }
    let words: Vec<u8> = lower
        .iter()
        .map(|b| {
            if matches!(b, b'-' | b'_' | b'.' | b'/' | b'+') {
                b' '
            } else {
                *b
            }
        })
        .collect();
    if out.matches("prompt-injection", &words) {
        at_file(
            out,
            "prompt-injection",
            path,
            path.as_bytes(),
            Some("in the name of the file"),
        );
    }
}

/// Archives that build tools require in the repository. Their publishers offer actions that verify
/// them.
const WRAPPERS: &[&str] = &[
    "gradle/wrapper/gradle-wrapper.jar",
    ".mvn/wrapper/maven-wrapper.jar",
];

fn program(file: &FileChange, out: &mut Reporter<'_>) {
    let Body::Binary(binary) = &file.body else {
        return;
    };
    if let Some(kind) = kind(file.path(), binary.head())
        && !is_test_path(file.path().as_bytes())
        && !WRAPPERS
            .iter()
            .any(|w| file.path().as_bytes().ends_with(w.as_bytes()))
    {
        at_file(
            out,
            "binary-executable-added",
            file.path(),
            file.path().file_name(),
            Some(kind),
        );
    }
}

/// Returns the format of a program by its first bytes. `None`: it is not a program.
fn kind(path: &RepoPath, head: &[u8]) -> Option<&'static str> {
    let extension = path
        .extension()
        .map(<[u8]>::to_ascii_lowercase)
        .unwrap_or_default();
    Some(match head {
        [0x7f, b'E', b'L', b'F', ..] => "an ELF program or library",
        [b'M', b'Z', ..] if may_be_pe(head) => "a Windows program or library",
        [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => {
            "a macOS program or library"
        }
        [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, n, ..] if *n < 20 => "a macOS program or library",
        [0xca, 0xfe, 0xba, 0xbe, ..] => "a Java class",
        [b'P', b'K', 3, 4, ..] if matches!(&extension[..], b"jar" | b"war" | b"ear" | b"aar") => {
            "a Java archive"
        }
        [b'P', b'K', 3, 4, ..]
            if matches!(
                &extension[..],
                b"apk" | b"whl" | b"xpi" | b"vsix" | b"nupkg"
            ) =>
        {
            "an installable package"
        }
        [b'd', b'e', b'x', b'\n', ..] => "an Android program",
        [_, _, b'\r', b'\n', ..] if matches!(&extension[..], b"pyc" | b"pyo") => "compiled Python",
        _ => return None,
    })
}

/// Returns true if a file that starts with `MZ` has the header of a Windows program, or is too
/// large to decide it.
fn may_be_pe(head: &[u8]) -> bool {
    let at = head
        .get(0x3c..0x40)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize);
    // The header may be after the stored bytes of the file.
    match at.and_then(|at| head.get(at..at + 4)) {
        Some(signature) => signature == b"PE\0\0",
        None => head.len() >= 256,
    }
}

fn secret(file: &FileChange, out: &mut Reporter<'_>) {
    let path = file.path();
    if is_test_path(path.as_bytes()) {
        return;
    }
    let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
    if let Some(what) = key_file(&name) {
        at_file(out, "secret-file-added", path, path.file_name(), Some(what));
    } else if is_env(&name)
        && let Some(text) = file.text()
    {
        let secret = added(text).find(|l| sets_secret(l.text));
        match secret {
            Some(line) => {
                let variable = line.text.split(|b| *b == b'=').next().unwrap_or_default();
                at_line(
                    out,
                    "secret-file-added",
                    path,
                    line.number,
                    variable,
                    Some("a file of the environment that sets a secret"),
                );
            }
            None if added(text).any(|l| is_assignment(l.text)) => {
                at_file(out, "env-file-added", path, path.file_name(), None);
            }
            None => {}
        }
    }
}

/// Returns the kind of secret in a file with a name. `None`: it contains no secret, or the rules
/// for secrets read it as text.
fn key_file(name: &str) -> Option<&'static str> {
    const PLAIN: &[&str] = &[
        "example",
        "sample",
        "template",
        "dist",
        "test",
        "debug",
        "dummy",
        "public",
        "truststore",
        "cacerts",
    ];
    if PLAIN.iter().any(|p| name.contains(p)) {
        return None;
    }
    Some(match name {
        "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519" | "id_ed25519_sk" | "id_ecdsa_sk" => {
            "a private SSH key"
        }
        ".htpasswd" => "a file of passwords",
        _ => match name.rsplit_once('.')?.1 {
            "p12" | "pfx" | "jks" | "keystore" | "bcfks" => "a store of private keys",
            "kdbx" | "kdb" | "agilekeychain" => "a store of passwords",
            _ => return None,
        },
    })
}

/// Returns true if a name is that of an environment file that is read at run time.
fn is_env(name: &str) -> bool {
    const PLAIN: &[&str] = &[
        "example",
        "sample",
        "template",
        "dist",
        "default",
        "test",
        "schema",
        "tpl",
        "ci",
        "vault",
        "keys",
        "dev",
        "development",
        "local.sample",
    ];
    match name.strip_prefix(".env") {
        Some("") => true,
        Some(rest) => {
            rest.starts_with('.') && !rest[1..].split(['.', '-', '_']).any(|p| PLAIN.contains(&p))
        }
        None => false,
    }
}

fn is_assignment(line: &[u8]) -> bool {
    memchr::memchr(b'=', line).is_some_and(|i| i > 0 && i + 1 < line.len() && line[0] != b'#')
}

/// Returns true if a line of an environment file sets a secret to a value that seems real.
fn sets_secret(line: &[u8]) -> bool {
    const NAMES: &[&str] = &[
        "SECRET",
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "API_KEY",
        "APIKEY",
        "PRIVATE_KEY",
        "ACCESS_KEY",
        "CREDENTIAL",
        "APP_KEY",
    ];
    const MADE_UP: &[&str] = &[
        "change",
        "your",
        "example",
        "dummy",
        "placeholder",
        "todo",
        "secret",
        "password",
        "passwd",
        "test",
        "xxx",
        "none",
        "null",
        "true",
        "false",
        "insert",
        "replace",
        "postgres",
        "root",
        "admin",
        "local",
        "${",
        "$(",
        "<",
        "...",
        "fixme",
        "default",
        "sample",
        "public",
        "guest",
        "1234",
        "foo",
    ];
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let line = line.trim().strip_prefix("export ").unwrap_or(line.trim());
    let Some((name, value)) = line.split_once('=') else {
        return false;
    };
    let name = name.trim().to_ascii_uppercase();
    let value = value.trim().trim_matches(['"', '\'']);
    let lower = value.to_ascii_lowercase();
    !name.starts_with('#')
        && NAMES.iter().any(|n| name.contains(n))
        && !name.ends_with("_FILE")
        && !name.ends_with("_PATH")
        && !name.contains("PUBLIC")
        && value.len() >= 8
        && value.bytes().any(|b| b.is_ascii_digit())
        && !MADE_UP.iter().any(|m| lower.contains(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave_the_tree_are_told() {
        for (path, target, out) in [
            ("a", "/etc/passwd", true),
            ("a/b", "../../x", true),
            ("a/b", "../x", false),
            ("a/b/c", "../../d/../../x", true),
            ("a", "b/../c", false),
            ("a", "C:\\Windows", true),
            ("a", "~/x", true),
            ("docs/a", "../README.md", false),
        ] {
            assert_eq!(
                leaves(&RepoPath::from(path), target.as_bytes()),
                out,
                "{path} -> {target}"
            );
        }
    }

    #[test]
    fn programs_are_known_by_their_first_bytes() {
        let mut pe = vec![0u8; 0x90];
        pe[..2].copy_from_slice(b"MZ");
        pe[0x3c] = 0x80;
        pe[0x80..0x84].copy_from_slice(b"PE\0\0");
        for (path, head, program) in [
            ("bin/tool", &b"\x7fELF\x02\x01"[..], true),
            ("a.exe", &pe, true),
            (
                "a.txt",
                b"MZ is how it starts, and what follows is prose that is long enough to hold an offset there.",
                false,
            ),
            ("a.jar", b"PK\x03\x04", true),
            ("a.zip", b"PK\x03\x04", false),
            ("A.class", b"\xca\xfe\xba\xbe\x00\x00\x00\x34", true),
            ("a.png", b"\x89PNG\r\n", false),
        ] {
            assert_eq!(kind(&RepoPath::from(path), head).is_some(), program, "{path}");
        }
    }

    #[test]
    fn environment_files_are_told_from_their_examples() {
        for name in [".env", ".env.production", ".env.local", ".env.prod"] {
            assert!(is_env(name), "{name}");
        }
        for name in [
            ".env.example",
            ".env.sample",
            ".env.test",
            ".envrc",
            "env",
            ".env.dist",
            ".env.development.template",
        ] {
            assert!(!is_env(name), "{name}");
        }
    }

    #[test]
    fn secrets_of_environment_files_are_told_from_defaults() {
        for line in [
            "API_KEY=f7Qz81mmPd02",
            "export DB_PASSWORD='tr0ub4dor-and-3'",
        ] {
            assert!(sets_secret(line.as_bytes()), "{line}");
        }
        for line in [
            "DB_PASSWORD=password",
            "API_KEY=",
            "PORT=8080",
            "SECRET_KEY=change-me-1",
            "TOKEN=${TOKEN}",
            "# API_KEY=f7Qz81mmPd02",
            "TOKEN_FILE=/run/secrets/t1",
        ] {
            assert!(!sets_secret(line.as_bytes()), "{line}");
        }
    }
}
