//! Lockfiles and their manifests.
//!
//! A lockfile may change alone, which is an update. It must not change facts that only the manifest
//! decides, start to download from another origin, or remain unchanged when the manifest requires
//! other packages.

use super::{Tree, added, at_file, at_line, config, folder, removed};
use crate::diff::{ChangeKind, Entry, FileChange, LineNo, RepoPath, TextChange};
use crate::rules::report::Reporter;
use crate::rules::role::is_test_path;
use std::collections::HashSet;

/// A manifest and the lockfiles that are generated from it.
struct Ecosystem {
    manifest: &'static str,
    locks: &'static [&'static str],
    /// Tables or keys of the manifest that determine the locked packages.
    sections: &'static [&'static str],
    form: ManifestForm,
}

/// The format of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ManifestForm {
    Json,
    Toml,
    GoMod,
    Gemfile,
}

static ECOSYSTEMS: &[Ecosystem] = &[
    Ecosystem {
        manifest: "package.json",
        locks: &[
            "package-lock.json",
            "npm-shrinkwrap.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "bun.lock",
            "bun.lockb",
        ],
        sections: &[
            "dependencies",
            "devDependencies",
            "optionalDependencies",
            "overrides",
            "resolutions",
        ],
        form: ManifestForm::Json,
    },
    Ecosystem {
        manifest: "composer.json",
        locks: &["composer.lock"],
        sections: &["require", "require-dev"],
        form: ManifestForm::Json,
    },
    Ecosystem {
        manifest: "Cargo.toml",
        locks: &["Cargo.lock"],
        sections: &[
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "workspace.dependencies",
        ],
        form: ManifestForm::Toml,
    },
    Ecosystem {
        manifest: "pyproject.toml",
        locks: &["poetry.lock", "uv.lock", "pdm.lock"],
        sections: &[
            "tool.poetry.dependencies",
            "tool.poetry.dev-dependencies",
            "dependency-groups",
        ],
        form: ManifestForm::Toml,
    },
    Ecosystem {
        manifest: "Pipfile",
        locks: &["Pipfile.lock"],
        sections: &["packages", "dev-packages"],
        form: ManifestForm::Toml,
    },
    Ecosystem {
        manifest: "go.mod",
        locks: &["go.sum"],
        sections: &["require"],
        form: ManifestForm::GoMod,
    },
    Ecosystem {
        manifest: "Gemfile",
        locks: &["Gemfile.lock"],
        sections: &["gem"],
        form: ManifestForm::Gemfile,
    },
];

/// Reports a lockfile that starts to download from another origin, or without protection.
pub(super) fn scan(path: &RepoPath, text: &TextChange, out: &mut Reporter<'_>) {
    let name = path.file_name();
    if !ECOSYSTEMS
        .iter()
        .flat_map(|e| e.locks)
        .any(|l| l.as_bytes() == name)
        || is_test_path(path.as_bytes())
    {
        return;
    }
    let mut known: HashSet<&str> = HashSet::new();
    let mut asked = false;
    let mut said: HashSet<&str> = HashSet::new();
    for line in added(text) {
        let Some(address) = download(line.text) else {
            continue;
        };
        if address.starts_with("http://") {
            if !has_checksum(text, line.number) {
                at_line(
                    out,
                    "lockfile-insecure-source",
                    path,
                    line.number,
                    line.text,
                    None,
                );
            }
            continue;
        }
        if !asked {
            asked = true;
            known = text
                .old
                .whole()
                .map(|w| {
                    w.split(|b| *b == b'\n')
                        .filter_map(download)
                        .filter_map(host)
                        .collect()
                })
                .unwrap_or_default();
        }
        let Some(host) = host(address) else { continue };
        if !known.is_empty() && !known.contains(host) && !is_usual(host) && said.insert(host) {
            at_line(
                out,
                "lockfile-new-source",
                path,
                line.number,
                line.text,
                Some(host),
            );
        }
    }
}

/// Returns true if the entry of a download address has a checksum, which the package manager
/// compares: `integrity` of npm, Yarn and pnpm in the same object, or the SHA-1 that Yarn 1 writes
/// behind the address.
fn has_checksum(text: &TextChange, number: LineNo) -> bool {
    /// Lines of an entry before and after the address.
    const NEAR: u32 = 6;
    if text.new.whole().is_none() {
        return false;
    }
    let at = number.get();
    let above = (at.saturating_sub(NEAR)..at)
        .rev()
        .map_while(|n| line_at(text, n));
    let below = (at + 1..at + NEAR).map_while(|n| line_at(text, n));
    line_at(text, at).is_some_and(|line| is_checksum(line) || has_sum_in_address(line))
        || above.take_while(|line| !ends_entry(line)).any(is_checksum)
        || below.take_while(|line| !ends_entry(line)).any(is_checksum)
}

/// Returns a line of the new text.
fn line_at(text: &TextChange, number: u32) -> Option<&[u8]> {
    LineNo::new(number).and_then(|number| text.new.line(number))
}

fn is_checksum(line: &[u8]) -> bool {
    let keys = ["integrity: sha", "integrity sha", "\"integrity\": \"sha"];
    keys.iter()
        .any(|key| memchr::memmem::find(line, key.as_bytes()).is_some())
}

/// Returns true if a line of a lockfile of Yarn 1 has a SHA-1 behind its address:
/// `resolved "http://host/a-1.0.0.tgz#40 hexadecimal digits"`. Yarn compares it with the package.
fn has_sum_in_address(line: &[u8]) -> bool {
    /// Digits of a SHA-1.
    const DIGITS: usize = 40;
    let line = line.trim_ascii();
    line.starts_with(b"resolved \"")
        && memchr::memchr(b'#', line).is_some_and(|at| {
            let sum = line[at + 1..].strip_suffix(b"\"").unwrap_or_default();
            sum.len() == DIGITS && sum.iter().all(u8::is_ascii_hexdigit)
        })
}

fn ends_entry(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || memchr::memchr2(b'{', b'}', line).is_some()
}

/// Returns true for a default host of packages.
fn is_usual(host: &str) -> bool {
    const USUAL: &[&str] = &[
        "registry.npmjs.org",
        "registry.yarnpkg.com",
        "codeload.github.com",
        "github.com",
        "api.github.com",
        "static.crates.io",
        "index.crates.io",
        "files.pythonhosted.org",
        "pypi.org",
        "rubygems.org",
        "proxy.golang.org",
        "npm.jsr.io",
        "gitlab.com",
        "bitbucket.org",
        "repo.packagist.org",
    ];
    USUAL.contains(&host)
}

/// Returns the download address in a line of a lockfile.
fn download(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?;
    let trimmed = line.trim_start();
    const KEYS: &[&str] = &[
        "\"resolved\":",
        "resolved ",
        "tarball:",
        "resolution:",
        "source =",
        "remote:",
        "url =",
        "{ url =",
    ];
    if !KEYS.iter().any(|k| trimmed.starts_with(k)) {
        return None;
    }
    let at = line.find("http://").or_else(|| line.find("https://"))?;
    let rest = &line[at..];
    Some(
        &rest[..rest
            .find(['"', '\'', ' ', ',', '}', '#'])
            .unwrap_or(rest.len())],
    )
}

fn host(address: &str) -> Option<&str> {
    let rest = address.split_once("://")?.1;
    let rest = &rest[..rest.find('/').unwrap_or(rest.len())];
    Some(rest.rsplit('@').next().unwrap_or(rest))
}

/// Reports manifests whose lockfile was not updated, and lockfiles that contradict their manifest.
pub(super) fn scan_change(entries: &[Entry], tree: &Tree<'_>, out: &mut Reporter<'_>) {
    let changed: HashSet<&[u8]> = entries
        .iter()
        .flat_map(Entry::sides)
        .map(|s| s.path.as_bytes())
        .collect();
    for (index, entry) in entries.iter().enumerate() {
        let path = entry.path();
        if entry.kind == ChangeKind::Deleted || is_test_path(path.as_bytes()) {
            continue;
        }
        for e in ECOSYSTEMS {
            if path.file_name() == e.manifest.as_bytes() {
                behind(e, path, index, &changed, tree, out);
            } else if e.locks.iter().any(|l| l.as_bytes() == path.file_name())
                && entry.kind == ChangeKind::Modified
            {
                ahead(e, path, index, entries, tree, out);
            }
        }
    }
}

/// Reports a manifest with changed requirements whose lockfile did not change.
fn behind(
    e: &Ecosystem,
    path: &RepoPath,
    index: usize,
    changed: &HashSet<&[u8]>,
    tree: &Tree<'_>,
    out: &mut Reporter<'_>,
) {
    if !out.wants("manifest-without-lockfile") {
        return;
    }
    // Files that a generator copies are not part of this project.
    if memchr::memmem::find(path.as_bytes(), b"template").is_some() {
        return;
    }
    // A workspace has its lockfile at the top, so every parent folder is checked.
    let mut at = folder(path.as_bytes());
    let lock = loop {
        if e.locks
            .iter()
            .any(|l| changed.contains(path_in(at, l).as_bytes()))
        {
            return;
        }
        if let Some(found) = e
            .locks
            .iter()
            .map(|l| path_in(at, l))
            .find(|p| (tree.exists)(p))
        {
            break found;
        }
        if at.is_empty() || e.form == ManifestForm::GoMod {
            return;
        }
        at = folder(&at[..at.len() - 1]);
    };
    let Some(file) = (tree.load)(index) else {
        return;
    };
    let Some(text) = file.text() else { return };
    // A new member of a workspace may have no new requirements, but an existing manifest with
    // additional requirements has.
    if file.entry.kind != ChangeKind::Modified {
        return;
    }
    if let Some(line) = asks_for_more(e, text) {
        let detail = format!(
            "`{}` stays as it was",
            String::from_utf8_lossy(lock.file_name())
        );
        at_line(
            out,
            "manifest-without-lockfile",
            path,
            line.0,
            line.1,
            Some(&detail),
        );
    }
}

/// Returns the path of a file in a folder, which is empty or ends with a slash.
fn path_in(folder: &[u8], name: &str) -> RepoPath {
    RepoPath::new([folder, name.as_bytes()].concat())
}

/// Returns the first added line that requires a package or a version that was not required before.
fn asks_for_more<'t>(
    e: &Ecosystem,
    text: &'t TextChange,
) -> Option<(crate::diff::LineNo, &'t [u8])> {
    let whole = text.new.whole()?;
    let wanted = requirement_lines(e, whole);
    let before: HashSet<Vec<u8>> = removed(text).map(|l| requirement(e.form, l.text)).collect();
    added(text)
        .find(|l| {
            wanted.contains(&l.number.get()) && !before.contains(&requirement(e.form, l.text))
        })
        .map(|l| (l.number, l.text))
}

/// Returns the part of a manifest's line that identifies its requirement.
fn requirement(form: ManifestForm, line: &[u8]) -> Vec<u8> {
    match form {
        // The sums of later versions may already exist. Only a module that was not required before
        // certainly lacks its sum.
        ManifestForm::GoMod => line
            .trim_ascii()
            .split(|b| *b == b' ')
            .find(|w| *w != b"require")
            .unwrap_or_default()
            .to_vec(),
        // A comment is not a requirement.
        ManifestForm::Toml | ManifestForm::Gemfile => {
            squeeze(line.split(|b| *b == b'#').next().unwrap_or_default())
        }
        ManifestForm::Json => squeeze(line),
    }
}

/// Removes white space and commas, which the change of an adjacent line may affect.
fn squeeze(line: &[u8]) -> Vec<u8> {
    line.iter()
        .copied()
        .filter(|b| !b.is_ascii_whitespace() && *b != b',')
        .collect()
}

/// Returns the numbers of the lines with requirements.
fn requirement_lines(e: &Ecosystem, whole: &[u8]) -> HashSet<u32> {
    let mut out = HashSet::new();
    let mut inside: Option<usize> = None;
    let mut depth = 0usize;
    for (line, number) in whole.split(|b| *b == b'\n').zip(1u32..) {
        let text = String::from_utf8_lossy(line);
        let trimmed = text.trim();
        match e.form {
            ManifestForm::Json => {
                if inside.is_some()
                    && depth == inside.unwrap_or_default()
                    && !trimmed.starts_with('}')
                    && config::key(line).is_some()
                {
                    // A path or a workspace is not locked by version.
                    if !["file:", "link:", "workspace:", "portal:"]
                        .iter()
                        .any(|p| trimmed.contains(p))
                    {
                        out.insert(number);
                    }
                }
                if depth == 1
                    && trimmed.ends_with('{')
                    && config::key(line).is_some_and(|k| e.sections.contains(&k))
                {
                    inside = Some(2);
                }
                depth = (depth + trimmed.matches('{').count())
                    .saturating_sub(trimmed.matches('}').count());
                if inside.is_some_and(|i| depth < i) {
                    inside = None;
                }
            }
            ManifestForm::Toml => {
                if let Some(header) = trimmed.strip_prefix('[') {
                    let header = header
                        .trim_matches(['[', ']'])
                        .split(']')
                        .next()
                        .unwrap_or_default();
                    let is_inside = e.sections.iter().any(|s| {
                        header == *s
                            || header.ends_with(&format!(".{s}"))
                            || header.starts_with(&format!("{s}."))
                    });
                    inside = is_inside.then_some(0);
                } else if inside.is_some()
                    && !trimmed.is_empty()
                    && !trimmed.starts_with('#')
                    && trimmed.contains('=')
                {
                    let local = trimmed.contains("path =")
                        || trimmed.contains("path=")
                        || trimmed.contains("workspace");
                    if !local && !trimmed.starts_with("python ") && !trimmed.starts_with("python=")
                    {
                        out.insert(number);
                    }
                }
            }
            ManifestForm::GoMod => {
                if trimmed == "require (" {
                    inside = Some(0);
                } else if trimmed == ")" {
                    inside = None;
                } else if (inside.is_some() && !trimmed.is_empty() && !trimmed.starts_with("//"))
                    || trimmed.starts_with("require ")
                {
                    out.insert(number);
                }
            }
            ManifestForm::Gemfile => {
                if trimmed.starts_with("gem ") && !trimmed.contains("path:") {
                    out.insert(number);
                }
            }
        }
    }
    out
}

/// Reports a lockfile whose change only a manifest can cause, if no manifest changed.
fn ahead(
    e: &Ecosystem,
    path: &RepoPath,
    index: usize,
    entries: &[Entry],
    tree: &Tree<'_>,
    out: &mut Reporter<'_>,
) {
    let below = folder(path.as_bytes());
    if entries
        .iter()
        .flat_map(Entry::sides)
        .map(|s| &s.path)
        .any(|p| p.as_bytes().starts_with(below) && is_manifest(e, p))
        || !out.wants("lockfile-without-manifest")
    {
        return;
    }
    let Some(file) = (tree.load)(index) else {
        return;
    };
    let Some((line, quote, detail)) = file.text().and_then(|t| decided_by_manifest(&file, t))
    else {
        return;
    };
    match line {
        Some(n) => at_line(
            out,
            "lockfile-without-manifest",
            path,
            n,
            &quote,
            Some(detail),
        ),
        None => at_file(out, "lockfile-without-manifest", path, &quote, Some(detail)),
    }
}

/// Returns true if a file determines the locked packages.
fn is_manifest(e: &Ecosystem, path: &RepoPath) -> bool {
    let name = path.file_name();
    name == e.manifest.as_bytes()
        || name == b"pnpm-workspace.yaml"
        || path.extension() == Some(b"gemspec")
        || name == b"package.json5"
}

type DecidedLine = (Option<crate::diff::LineNo>, Vec<u8>, &'static str);

/// Returns the first added line of a lockfile that repeats the manifest.
fn decided_by_manifest(file: &FileChange, text: &TextChange) -> Option<DecidedLine> {
    let name = file.path().file_name();
    match name {
        // A hash of the manifest's requirements.
        b"composer.lock" | b"poetry.lock" => {
            let line =
                added(text).find(|l| memchr::memmem::find(l.text, b"content-hash").is_some())?;
            let is_other_format =
                added(text).any(|l| memchr::memmem::find(l.text, b"generated by").is_some());
            (!is_other_format).then(|| {
                (
                    Some(line.number),
                    line.text.to_vec(),
                    "its hash is that of another manifest",
                )
            })
        }
        // The requirements of the top package are under `packages.""`.
        b"package-lock.json" | b"npm-shrinkwrap.json" => {
            let whole = text.new.whole()?;
            let wanted = root_requirements(whole);
            // A lockfile of version 1 has no such part. Then all of it is new and proves nothing.
            if text
                .old
                .whole()
                .is_some_and(|old| root_requirements(old).is_empty())
            {
                return None;
            }
            let gone: HashSet<Vec<u8>> = removed(text).map(|l| squeeze(l.text)).collect();
            let line = added(text)
                .find(|l| wanted.contains(&l.number.get()) && !gone.contains(&squeeze(l.text)))?;
            Some((
                Some(line.number),
                line.text.to_vec(),
                "the manifest does not ask for it",
            ))
        }
        // The list at the end repeats the Gemfile.
        b"Gemfile.lock" => {
            let whole = text.new.whole()?;
            let start = memchr::memmem::find(whole, b"\nDEPENDENCIES\n")? + 1;
            let first = memchr::memchr_iter(b'\n', &whole[..start]).count() as u32 + 2;
            let length =
                memchr::memmem::find(&whole[start..], b"\n\n").unwrap_or(whole.len() - start);
            let last =
                first + memchr::memchr_iter(b'\n', &whole[start..start + length]).count() as u32;
            let gone: HashSet<Vec<u8>> = removed(text).map(|l| squeeze(l.text)).collect();
            let line = added(text).find(|l| {
                (first..last).contains(&l.number.get()) && !gone.contains(&squeeze(l.text))
            })?;
            Some((
                Some(line.number),
                line.text.to_vec(),
                "the manifest does not ask for it",
            ))
        }
        _ => None,
    }
}

/// Returns the numbers of the lines inside the dependency tables of `packages.""`.
fn root_requirements(whole: &[u8]) -> HashSet<u32> {
    let mut out = HashSet::new();
    let (mut root, mut section) = (None, None);
    let mut depth = 0usize;
    for (line, number) in whole.split(|b| *b == b'\n').zip(1u32..) {
        let text = String::from_utf8_lossy(line);
        let trimmed = text.trim();
        if section.is_some_and(|s| depth == s) && !trimmed.starts_with('}') {
            out.insert(number);
        }
        if depth == 2 && trimmed.starts_with("\"\": {") {
            root = Some(3);
        } else if root.is_some_and(|r| depth == r)
            && trimmed.ends_with('{')
            && trimmed.contains("ependencies\":")
        {
            section = Some(4);
        }
        depth = (depth + trimmed.matches('{').count()).saturating_sub(trimmed.matches('}').count());
        if section.is_some_and(|s| depth < s) {
            section = None;
        }
        if root.is_some_and(|r| depth < r) {
            // Other packages follow, so the requirements of the root end here.
            return out;
        }
    }
    out
}
