//! Decides which changed files are excluded from prompts: binary files, generated files, files with
//! secrets.
//!
//! The rules scan all of them. In a gate, the change cannot exclude itself: a file that declares
//! itself generated is only excluded if it did so before the change.

use super::redact;
use crate::diff::{Body, FileChange, FileMode, RepoPath, Side, Text, TextChange};
use crate::rules::RuleSet;
use crate::verdict::Skip;

/// The treatment of a changed file in prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptTreatment {
    /// Its lines are sent.
    Shown,
    /// Only names or modes changed, so it has no lines to send.
    Nothing,
    Kept(Skip),
}

/// A changed file that is excluded from prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludedFile {
    pub path: RepoPath,
    /// Redacted path.
    pub name: String,
    pub why: Skip,
}

impl ExcludedFile {
    /// Builds the entry of an excluded file.
    pub fn new(path: RepoPath, why: Skip, rules: &RuleSet) -> Self {
        Self {
            name: redact::path(rules, &path),
            path,
            why,
        }
    }
}

/// Returns the treatment of a file. `generated` is the value of the attribute `linguist-generated`
/// for the path in a trusted state, or `None` if it is not set.
pub fn sight(change: &FileChange, rules: &RuleSet, generated: Option<bool>) -> PromptTreatment {
    let text = match &change.body {
        Body::Submodule { .. } => return PromptTreatment::Kept(Skip::Submodule),
        Body::Binary(_) => return PromptTreatment::Kept(Skip::Binary),
        Body::Same => return PromptTreatment::Nothing,
        Body::Text(text) => text,
    };
    if text.hunks.is_empty() {
        return PromptTreatment::Nothing;
    }
    let entry = &change.entry;
    let (side, shown) = if entry.new.is_some() {
        (&entry.new, &text.new)
    } else {
        (&entry.old, &text.old)
    };
    let is_sensitive = entry.sides().any(|s| redact::is_sensitive(&s.path));
    if is_sensitive && may_hide(rules, side.as_ref(), shown, is_secret) {
        return PromptTreatment::Kept(Skip::Sensitive);
    }
    if is_lockfile(change.path()) && may_hide(rules, side.as_ref(), shown, |_| false) {
        return PromptTreatment::Kept(Skip::Lockfile);
    }
    if is_catalog(change.path()) && may_hide(rules, side.as_ref(), shown, |_| false) {
        return PromptTreatment::Kept(Skip::Translations);
    }
    match generated {
        Some(true) => PromptTreatment::Kept(Skip::Generated),
        None if is_believed_generated(change, text, shown, rules) => {
            PromptTreatment::Kept(Skip::Generated)
        }
        _ => PromptTreatment::Shown,
    }
}

/// Returns true if the name of a file may exclude it. In a gate, a name must not exclude a program:
/// a script, or an executable file that `is_data` rejects. Secrets in it are still redacted.
fn may_hide(rules: &RuleSet, side: Option<&Side>, text: &Text, is_data: fn(&[u8]) -> bool) -> bool {
    let is_script = text.whole().is_some_and(|t| t.starts_with(b"#!"));
    let is_run = side.is_some_and(|s| s.mode == FileMode::Executable);
    let is_program = is_script || is_run && text.whole().is_some_and(|t| !is_data(t));
    rules.trusts_the_change() || !is_program
}

/// Returns true if `shown`, the current text of a file, is generated. In a gate, the text before
/// the change must be generated too.
fn is_believed_generated(
    change: &FileChange,
    text: &TextChange,
    shown: &Text,
    rules: &RuleSet,
) -> bool {
    is_generated(change.path(), shown)
        && (rules.trusts_the_change()
            || change
                .entry
                .old
                .as_ref()
                .is_some_and(|old| is_generated(&old.path, &text.old)))
}

/// Returns true if a program likely wrote a text.
fn is_generated(path: &RepoPath, text: &Text) -> bool {
    is_generated_name(path) || is_minified(path, text) || text.whole().is_some_and(says_generated)
}

/// Returns true if a text resembles a file of secrets: a key, binary content, or only settings.
fn is_secret(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return true;
    };
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    text.contains("-----BEGIN ") || lines.clone().all(is_setting) || lines.all(|l| !l.contains(' '))
}

/// Returns true if a line assigns a value to a name, as in `.env`.
fn is_setting(line: &str) -> bool {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let name = line.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// Returns true if the file name is one that a package manager writes.
fn is_lockfile(path: &RepoPath) -> bool {
    const NAMES: &[&[u8]] = &[
        b"package-lock.json",
        b"npm-shrinkwrap.json",
        b"yarn.lock",
        b"pnpm-lock.yaml",
        b"bun.lock",
        b"deno.lock",
        b"composer.lock",
        b"cargo.lock",
        b"poetry.lock",
        b"uv.lock",
        b"pdm.lock",
        b"pixi.lock",
        b"pipfile.lock",
        b"go.sum",
        b"go.work.sum",
        b"gemfile.lock",
        b"mix.lock",
        b"rebar.lock",
        b"pubspec.lock",
        b"podfile.lock",
        b"cartfile.resolved",
        b"package.resolved",
        b"packages.lock.json",
        b"paket.lock",
        b"gradle.lockfile",
        b"buildscript-gradle.lockfile",
        b"flake.lock",
        b"conan.lock",
        b"module.bazel.lock",
        b".terraform.lock.hcl",
        b"chart.lock",
        b"stack.yaml.lock",
        b"cabal.project.freeze",
        b"renv.lock",
        b"conda-lock.yml",
    ];
    NAMES.contains(&&path.file_name().to_ascii_lowercase()[..])
}

/// Returns true if a file is a catalog of translations by its name: no extension of it is one of
/// program text (`.ts` is also TypeScript), and folders count only for data.
fn is_catalog(path: &RepoPath) -> bool {
    const EXTENSIONS: &[&str] = &[
        "po",
        "pot",
        "xlf",
        "xliff",
        "arb",
        "resx",
        "resw",
        "strings",
        "stringsdict",
        "xcstrings",
        "ftl",
    ];
    const FOLDERS: &[&str] = &["locale", "locales", "_locales", "translations"];
    const DATA: &[&str] = &["json", "yml", "yaml", "properties"];
    let whole = String::from_utf8_lossy(path.as_bytes()).to_ascii_lowercase();
    let (folders, name) = whole.rsplit_once('/').unwrap_or(("", &whole));
    let Some((_, extension)) = name.rsplit_once('.') else {
        return false;
    };
    EXTENSIONS.contains(&extension)
        || DATA.contains(&extension) && folders.split('/').any(|f| FOLDERS.contains(&f))
}

/// Returns true if the file name is typical for a generator.
fn is_generated_name(path: &RepoPath) -> bool {
    const ENDS: &[&str] = &[
        ".pb.go",
        "_pb2.py",
        "_pb2_grpc.py",
        "_pb2.pyi",
        ".pb.cc",
        ".pb.h",
        ".pb.rs",
        ".pb.swift",
        "_pb.js",
        "_pb.d.ts",
        ".g.dart",
        ".freezed.dart",
        ".gr.dart",
        ".designer.cs",
        ".g.cs",
        ".g.i.cs",
        ".gen.go",
        "_gen.go",
        ".gen.ts",
        ".js.map",
        ".mjs.map",
        ".css.map",
        ".ts.map",
    ];
    let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
    ENDS.iter().any(|e| name.ends_with(e))
        || name.starts_with("zz_generated.")
        || name.contains(".generated.")
}

/// Bytes and lines at the start of a file that are searched for a generator's comment.
const HEAD: usize = 4096;
const HEAD_LINES: usize = 30;
/// Lines that one sentence can span, at most.
const SENTENCE: usize = 3;

/// Returns true if a comment at the start of a file states that it was generated.
fn says_generated(text: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&text[..text.len().min(HEAD)]).to_ascii_lowercase();
    const LEADERS: &[&str] = &[
        "//", "#", "/*", "*", "--", ";", "<!--", "%", "'", "\"\"\"", "rem ", "(*", "{-", "dnl ",
    ];
    let lines = head.lines().take(HEAD_LINES).map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| LEADERS.iter().any(|leader| line.starts_with(leader)))
        .collect();
    lines.iter().any(|line| has_generated_tag(line))
        || (0..lines.len()).any(|i| warns_of_edits(&lines[i..(i + SENTENCE).min(lines.len())]))
}

/// Returns true if a line contains the tag of a generator, as a whole word.
fn has_generated_tag(line: &str) -> bool {
    let word = line.find("@generated").is_some_and(|at| {
        let after = line[at + "@generated".len()..].chars().next();
        let before = line[..at].chars().next_back();
        after.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_')
            && before.is_none_or(|c| c.is_whitespace() || c == '*' || c == '/' || c == '#')
    });
    word || line.contains("<auto-generated") || line.contains("<autogenerated")
}

/// Returns true if the first line states that the file is generated, and one of the lines that it
/// must not be edited.
fn warns_of_edits(lines: &[&str]) -> bool {
    lines[0].contains("generated")
        && lines.iter().any(|l| {
            [
                "do not edit",
                "do not modify",
                "don't edit",
                "do not change",
                "not be edited",
            ]
            .iter()
            .any(|w| l.contains(w))
        })
}

/// Bytes of a minified file, and of its average line, at least.
const MINIFIED_FROM: usize = 4_000;
const MINIFIED_LINE: usize = 500;

/// Returns true if a file is minified code or CSS, by its name or its average line length.
fn is_minified(path: &RepoPath, text: &Text) -> bool {
    let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    if !["js", "mjs", "cjs", "css"].contains(&extension) {
        return false;
    }
    if stem.ends_with(".min") || stem.ends_with("-min") {
        return true;
    }
    text.whole().is_some_and(|t| {
        t.len() >= MINIFIED_FROM
            && t.len() / (memchr::memchr_iter(b'\n', t).count() + 1) >= MINIFIED_LINE
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Attribute, ChangeKind, Entry, code};
    use crate::policy::RulesPolicy;
    use crate::rules::Suppressions;

    fn rules(honour_added: bool) -> RuleSet {
        RuleSet::new(&RulesPolicy::default(), &[])
            .unwrap()
            .with_suppressions(Suppressions { honour_added })
    }

    fn added(path: &str, text: &str) -> FileChange {
        code::added(RepoPath::from(path), text.as_bytes().to_vec())
    }

    fn executable(path: &str, text: &str) -> FileChange {
        let mut change = added(path, text);
        change.entry.new.as_mut().unwrap().mode = FileMode::Executable;
        change
    }

    fn modified(path: &str, old: &str, new: &str) -> FileChange {
        let side = Some(Side {
            path: RepoPath::from(path),
            mode: FileMode::Regular,
            id: None,
        });
        FileChange {
            entry: Entry {
                kind: ChangeKind::Modified,
                old: side.clone(),
                new: side,
            },
            body: Body::between(
                Some(old.as_bytes().to_vec()),
                Some(new.as_bytes().to_vec()),
                Attribute::Unset,
            ),
        }
    }

    #[test]
    fn what_programs_write_and_what_is_secret_is_kept() {
        let rules = rules(true);
        let long = format!("var a={};", "f(1);".repeat(2_000));
        for (path, text, expected) in [
            ("src/a.rs", "fn main() {}\n", PromptTreatment::Shown),
            (
                "Cargo.lock",
                "version = 4\n",
                PromptTreatment::Kept(Skip::Lockfile),
            ),
            (
                "po/de.po",
                "msgid \"a\"\nmsgstr \"b\"\n",
                PromptTreatment::Kept(Skip::Translations),
            ),
            (
                "Resources/Strings.de.resx",
                "<root></root>\n",
                PromptTreatment::Kept(Skip::Translations),
            ),
            (
                "lib/l10n/app_de.arb",
                "{}\n",
                PromptTreatment::Kept(Skip::Translations),
            ),
            (
                "shared/i18n/locales/de_DE/translation.json",
                "{}\n",
                PromptTreatment::Kept(Skip::Translations),
            ),
            (
                "src/locales/index.js",
                "export default 1;\n",
                PromptTreatment::Shown,
            ),
            ("src/qt.ts", "let a = 1;\n", PromptTreatment::Shown),
            ("config/a.json", "{}\n", PromptTreatment::Shown),
            (
                "web/package-lock.json",
                "{}\n",
                PromptTreatment::Kept(Skip::Lockfile),
            ),
            (".env", "A=1\n", PromptTreatment::Kept(Skip::Sensitive)),
            (".env.example", "A=\n", PromptTreatment::Shown),
            ("a/id_rsa", "x\n", PromptTreatment::Kept(Skip::Sensitive)),
            (
                "a.go",
                "// Code generated by stringer; DO NOT EDIT.\n\npackage a\n",
                PromptTreatment::Kept(Skip::Generated),
            ),
            (
                "a.go",
                "// Package a says DO NOT EDIT by hand.\npackage a\n",
                PromptTreatment::Shown,
            ),
            (
                "a.rs",
                "// @generated by a tool\n",
                PromptTreatment::Kept(Skip::Generated),
            ),
            ("a.rs", "// @generated-by nobody\n", PromptTreatment::Shown),
            ("a.rs", "let s = \"@generated\";\n", PromptTreatment::Shown),
            (
                "a.cs",
                "// <auto-generated/>\n",
                PromptTreatment::Kept(Skip::Generated),
            ),
            (
                "a.py",
                "# This file was generated by foo.\n#\n# Please do not edit it.\n",
                PromptTreatment::Kept(Skip::Generated),
            ),
            (
                "0001_initial.py",
                "# Generated by Django 5.0 on 2024-01-01\n",
                PromptTreatment::Shown,
            ),
            (
                "a.pb.go",
                "package a\n",
                PromptTreatment::Kept(Skip::Generated),
            ),
            ("a.min.js", "x\n", PromptTreatment::Kept(Skip::Generated)),
            ("dist/app.js", &long, PromptTreatment::Kept(Skip::Generated)),
            (
                "dist/app.js.map",
                "{}\n",
                PromptTreatment::Kept(Skip::Generated),
            ),
            ("world.map", "x\n", PromptTreatment::Shown),
            ("data.json", &long, PromptTreatment::Shown),
        ] {
            assert_eq!(
                sight(&added(path, text), &rules, None),
                expected,
                "{path}: {}",
                &text[..text.len().min(60)]
            );
        }
        assert_eq!(
            sight(&added("a.rs", "fn main() {}\n"), &rules, Some(true)),
            PromptTreatment::Kept(Skip::Generated)
        );
        assert_eq!(
            sight(&added("a.rs", "// @generated\n"), &rules, Some(false)),
            PromptTreatment::Shown
        );
        assert_eq!(
            sight(&modified("a", "x\n", "x\n"), &rules, None),
            PromptTreatment::Nothing
        );
    }

    #[test]
    fn in_a_gate_a_change_cannot_make_itself_look_minified() {
        let (desk, gate) = (rules(true), rules(false));
        let code = "export function login(user) {\n  return check(user);\n}\n";
        let hidden = format!("{code}export const skip = true; // {}\n", "x".repeat(4_800));
        let generated = PromptTreatment::Kept(Skip::Generated);
        assert_eq!(
            sight(&modified("src/auth.js", code, &hidden), &gate, None),
            PromptTreatment::Shown
        );
        assert_eq!(
            sight(&added("src/auth.js", &hidden), &gate, None),
            PromptTreatment::Shown
        );
        assert_eq!(
            sight(&added("src/auth.min.js", code), &gate, None),
            PromptTreatment::Shown
        );
        assert_eq!(
            sight(&added("src/auth.min.js", code), &desk, None),
            generated
        );
        let small = format!("var a={};\n", "f(1);".repeat(2_000));
        assert_eq!(
            sight(
                &modified("dist/app.js", &small, &small.replace("1", "2")),
                &gate,
                None
            ),
            generated
        );
    }

    #[test]
    fn in_a_gate_no_name_hides_a_program() {
        let (desk, gate) = (rules(true), rules(false));
        let (script, code) = ("#!/bin/sh\nrm -rf /\n", "import os\nos.system('x')\n");
        for (change, kept) in [
            (added("boot.key", script), None),
            (added("go.sum", script), None),
            (executable("boot.key", code), None),
            (executable("go.sum", code), None),
            (added("run.env.sh", "rm -rf /\n"), None),
            (
                executable(".env", "A=1\nexport B=two words\n"),
                Some(Skip::Sensitive),
            ),
            (
                executable("boot.key", "0123456789abcdef\n"),
                Some(Skip::Sensitive),
            ),
            (
                added("go.sum", "example.com/a v1.0.0 h1:abc=\n"),
                Some(Skip::Lockfile),
            ),
        ] {
            let expected = kept.map_or(PromptTreatment::Shown, PromptTreatment::Kept);
            assert_eq!(sight(&change, &gate, None), expected, "{:?}", change.path());
        }
        assert_eq!(
            sight(&added(".envrc", script), &desk, None),
            PromptTreatment::Kept(Skip::Sensitive)
        );
    }

    #[test]
    fn in_a_gate_a_change_cannot_call_itself_generated() {
        let (gate, marked) = (rules(false), "// @generated\nfn a() {}\n");
        assert_eq!(
            sight(&added("a.rs", marked), &gate, None),
            PromptTreatment::Shown
        );
        assert_eq!(
            sight(&added("a.pb.go", "package a\n"), &gate, None),
            PromptTreatment::Shown
        );
        assert_eq!(
            sight(&modified("a.rs", "fn a() {}\n", marked), &gate, None),
            PromptTreatment::Shown
        );
        let again = modified("a.rs", marked, "// @generated\nfn b() {}\n");
        assert_eq!(
            sight(&again, &gate, None),
            PromptTreatment::Kept(Skip::Generated)
        );
        assert_eq!(
            sight(&added("a.rs", marked), &gate, Some(true)),
            PromptTreatment::Kept(Skip::Generated)
        );
    }
}
