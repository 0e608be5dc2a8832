//! Reports how a change to the policy file weakens it, by the effective values of both versions.
//!
//! Spelling, order and written-out defaults make no difference. A pattern counts as covered by
//! earlier patterns only if that is proven: see `cover`, and `parts` for `[[path]]`.

use super::cover::{Area, Effort};
use super::keys::{self, BACKEND, PolicyKey, TABLES, Weaker};
use super::merge::{self, ParsedFile};
use super::parse::{ParsedPolicy, parse};
use super::value::PolicyValue;
use super::{
    FILE_NAME, Guideline, Layer, Policy, PolicyFile, ProjectFile, ProjectOrigin, RulesPolicy, parts,
};
use crate::finding::Severity;

/// One way in which a policy is weaker than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakening {
    /// The full key (`block_on`, `backend.local.base_url`, `path`); empty: the file as a whole.
    pub key: String,
    /// The 1-based line in the new file; `None`: the old line was removed.
    pub line: Option<u32>,
    /// A lowercase fragment: `block_on no longer includes major`.
    pub text: String,
}

/// Compares two versions of the project's file; `None`: the file does not exist.
///
/// `severity` returns the built-in severity of a rule, if it is known. An invalid old version
/// counts as no file. An invalid new version counts as weaker: after the merge, every gate would
/// fail.
pub fn weakened(
    base: Option<&[u8]>,
    head: Option<&[u8]>,
    severity: impl Fn(&str) -> Option<Severity>,
) -> Vec<Weakening> {
    if base == head {
        return Vec::new();
    }
    let old = base.and_then(|b| policy(b).ok()).unwrap_or_default();
    let new = match head.map(policy) {
        None => Policy::default(),
        Some(Ok(new)) => new,
        Some(Err(line)) => {
            let text = "the policy file is invalid, so every gate that uses it fails".to_owned();
            return vec![Weakening {
                key: String::new(),
                line,
                text,
            }];
        }
    };
    let mut found = Vec::new();
    if head.is_none() {
        let text = "the policy file is deleted".to_owned();
        found.push(Weakening {
            key: String::new(),
            line: None,
            text,
        });
    }
    for table in TABLES {
        for key in table.keys {
            let full = keys::full(table.name, key.name);
            compare(key, &full, &old, &new, (&old, &new), &severity, &mut found);
        }
    }
    for b in &new.backends {
        let fresh = super::Backend::new(&b.name);
        for key in BACKEND {
            let full = format!("backend.{}.{}", b.name, key.name);
            compare(
                key,
                &full,
                old.backend(&b.name).unwrap_or(&fresh),
                b,
                (&old, &new),
                &severity,
                &mut found,
            );
        }
    }
    parts::compare(&old, &new, &mut found);
    guidelines(&old, &new, &mut found);
    found
}

/// Returns the instructions for models that the new version adds: new or longer guidelines, and
/// further documents. They do not weaken the policy by themselves. An invalid version has no
/// instructions.
pub fn told(base: Option<&[u8]>, head: Option<&[u8]>) -> Vec<Weakening> {
    let (old, new) = (policy_or_default(base), policy_or_default(head));
    let mut all = Vec::new();
    for g in &new.guidelines {
        let text = g.text.trim();
        if old
            .guidelines
            .iter()
            .filter(|o| has_globs_of(o, g))
            .any(|o| o.text.trim() == text)
        {
            continue;
        }
        let within = old.guidelines.iter().filter(|o| has_globs_of(g, o));
        let before = within.clone().find_map(|o| text.split_once(o.text.trim()));
        let what = match before {
            Some(("", "")) => format!("applies to more files: {text:?}"),
            Some((start, end)) => {
                let added = [start.trim(), end.trim()]
                    .into_iter()
                    .filter(|t| !t.is_empty())
                    .collect::<Vec<_>>();
                format!("adds: {:?}", added.join(" … "))
            }
            None if within.into_iter().next().is_some() => format!("changes to: {text:?}"),
            None => format!("is new: {text:?}"),
        };
        let text = format!(
            "the guideline for {} {what}; takes effect for models after the merge",
            g.glob.join(", ")
        );
        all.push(Weakening {
            key: "guideline".to_owned(),
            line: g.origin.line,
            text,
        });
    }
    let (was, is) = (&old.review.conventions, &new.review.conventions);
    let added: Vec<&str> = is
        .iter()
        .filter(|d| !was.contains(d))
        .map(String::as_str)
        .collect();
    if !added.is_empty() {
        let key = "review.conventions";
        let text = format!(
            "{key} now includes {}; takes effect for models after the merge",
            added.join(", ")
        );
        all.push(Weakening {
            key: key.to_owned(),
            line: new.origin_of(key).line,
            text,
        });
    }
    all
}

/// Returns true if the current version sets a key that decides which programs run, where data goes,
/// or which model the enabled backends ask, and the earlier version does not set the same value.
/// `None`: the file does not exist. An invalid version sets nothing.
pub fn asks_otherwise(now: Option<&[u8]>, earlier: Option<&[u8]>) -> bool {
    let (now, earlier) = (policy_or_default(now), policy_or_default(earlier));
    let keys = TABLES
        .iter()
        .flat_map(|t| t.keys)
        .filter(|k| matches!(k.weaker, Weaker::Changes));
    keys.into_iter().any(|k| sets_otherwise(k, &now, &earlier))
        || now
            .review
            .backends
            .iter()
            .filter_map(|name| now.backend(name))
            .any(|b| {
                let old = earlier
                    .backend(&b.name)
                    .cloned()
                    .unwrap_or_else(|| super::Backend::new(&b.name));
                let keys = BACKEND
                    .iter()
                    .filter(|k| matches!(k.weaker, Weaker::Changes) || k.name == "model");
                keys.into_iter().any(|k| sets_otherwise(k, b, &old))
            })
}

/// Returns true if a key is set now, and earlier had another value.
fn sets_otherwise<T>(key: &PolicyKey<T>, now: &T, earlier: &T) -> bool {
    let value = (key.get)(now);
    value != PolicyValue::Unset && value != (key.get)(earlier)
}

/// Returns the `[rules]` of one version of the project's file; `None` if the version is invalid.
/// Without a file, these are the defaults.
pub fn rules_of(bytes: Option<&[u8]>) -> Option<RulesPolicy> {
    bytes
        .map_or_else(|| Some(Policy::default()), |b| policy(b).ok())
        .map(|p| p.rules)
}

/// Parses one version. A missing or invalid one has the default values.
fn policy_or_default(bytes: Option<&[u8]>) -> Policy {
    bytes.and_then(|b| policy(b).ok()).unwrap_or_default()
}

/// Parses one version. The error is the line of the first problem.
fn policy(bytes: &[u8]) -> Result<Policy, Option<u32>> {
    let file = PolicyFile {
        name: FILE_NAME.to_owned(),
        bytes: bytes.to_vec(),
    };
    let parsed: ParsedPolicy =
        parse(&file, Layer::Project).map_err(|problems| problems.first().and_then(|p| p.line))?;
    let project = ProjectFile {
        from: ProjectOrigin::Worktree,
        file,
        trusted: true,
    };
    let merge = merge::files(
        None,
        Some((
            &project,
            ParsedFile {
                file: &project.file,
                parsed: &parsed,
            },
        )),
    );
    Ok(merge.finish().0)
}

fn compare<T>(
    key: &PolicyKey<T>,
    full: &str,
    old: &T,
    new: &T,
    (old_policy, policy): (&Policy, &Policy),
    severity: &impl Fn(&str) -> Option<Severity>,
    found: &mut Vec<Weakening>,
) {
    let (was, is) = ((key.get)(old), (key.get)(new));
    // A default that follows another key is lowered by that key, which is reported.
    let follows = key.name == "max_requests"
        && old_policy.layer_of(full) == Layer::Default
        && policy.layer_of(full) == Layer::Default;
    if was == is || follows {
        return;
    }
    let mut texts = Vec::new();
    match key.weaker {
        Weaker::Never => {}
        Weaker::Shrinks => {
            let gone = missing(&was, &is);
            if !gone.is_empty() {
                texts.push(format!("{full} no longer includes {}", gone.join(", ")));
            }
        }
        Weaker::Blocks | Weaker::Warns => {
            let (was, is) = (was.to_severities(), is.to_severities());
            let gone: Vec<Severity> = match key.weaker {
                Weaker::Blocks => unreached(&was, &is).collect(),
                _ => unwarned((&was, &old_policy.block_on), (&is, &policy.block_on)).collect(),
            };
            let gone: Vec<&str> = gone.into_iter().map(Severity::name).collect();
            if !gone.is_empty() {
                texts.push(format!("{full} no longer includes {}", gone.join(", ")));
            }
        }
        Weaker::Grows => {
            let added = missing(&is, &was);
            if !added.is_empty() {
                texts.push(format!("{full} now includes {}", added.join(", ")));
            }
        }
        Weaker::Ignores => {
            let before: Vec<Area> = was.list().iter().map(|p| Area::of(p)).collect();
            let mut effort = Effort::default();
            // A pattern is new unless earlier patterns provably cover it.
            let mut added = missing(&is, &was);
            added.retain(|p| !Area::of(p).is_within_any(&before, &mut effort));
            if !added.is_empty() {
                texts.push(format!("{full} now matches {}", added.join(", ")));
            }
        }
        Weaker::Lowers => {
            let lower = match (&was, &is) {
                (PolicyValue::Count(a), PolicyValue::Count(b)) => b < a,
                (PolicyValue::Number(a), PolicyValue::Number(b)) => b < a,
                (PolicyValue::Span(a), PolicyValue::Span(b)) => b < a,
                _ => false,
            };
            if lower {
                texts.push(format!(
                    "{full} is lowered from {} to {}",
                    was.to_toml(),
                    is.to_toml()
                ));
            }
        }
        Weaker::Steps(names) => {
            let (was, is) = (was.to_toml(), is.to_toml());
            let (was, is) = (was.trim_matches('"'), is.trim_matches('"'));
            if names.iter().position(|n| *n == is) > names.iter().position(|n| *n == was) {
                texts.push(format!("{full} changes from {was} to {is}"));
            }
        }
        Weaker::Narrows => {
            let gone = missing(&was, &is);
            if was.list().is_empty() {
                texts.push(format!("{full} is now limited to {}", is.list().join(", ")));
            } else if !gone.is_empty() && !is.list().is_empty() {
                texts.push(format!("{full} no longer includes {}", gone.join(", ")));
            }
        }
        Weaker::Severities => {
            let mut ids: Vec<&String> = was
                .table()
                .iter()
                .chain(is.table())
                .map(|(id, _)| id)
                .collect();
            ids.sort();
            ids.dedup();
            for id in ids {
                let (before, after) = (
                    severity_in(&was, id, severity),
                    severity_in(&is, id, severity),
                );
                if after < before {
                    texts.push(format!("{full} lowers {id} from {before} to {after}"));
                }
            }
        }
        Weaker::Changes => {
            // A removed value falls back to the default of this program.
            if is != PolicyValue::Unset {
                let was = if was == PolicyValue::Unset {
                    "nothing".to_owned()
                } else {
                    was.to_toml()
                };
                texts.push(format!(
                    "{full} changes from {was} to {}; this key decides which programs run or where data goes",
                    is.to_toml()
                ));
            }
        }
    }
    let line = policy.origin_of(full).line;
    found.extend(texts.into_iter().map(|text| Weakening {
        key: full.to_owned(),
        line,
        text,
    }));
}

/// Returns the entries of a list that another list does not have.
fn missing(from: &PolicyValue, other: &PolicyValue) -> Vec<String> {
    from.list()
        .iter()
        .filter(|s| !other.list().contains(s))
        .cloned()
        .collect()
}

/// Returns the severity of a rule with a table of severities. That of an unknown rule counts as the
/// highest.
fn severity_in(
    table: &PolicyValue,
    id: &str,
    built_in: &impl Fn(&str) -> Option<Severity>,
) -> Severity {
    let set = table.row(id).and_then(|v| Severity::parse(v.text()));
    set.or_else(|| built_in(id)).unwrap_or(Severity::Critical)
}

/// Returns the severities that one list includes and another does not, worst first. A list includes
/// the lowest severity that it names and all above it.
pub(super) fn unreached<'a>(
    old: &'a [Severity],
    new: &'a [Severity],
) -> impl Iterator<Item = Severity> + 'a {
    Severity::ALL
        .into_iter()
        .filter(|s| reaches(old, *s) && !reaches(new, *s))
}

/// Returns the severities that warned before and neither warn nor block now, given `warn_on` and
/// `block_on` of both sides. Severities that blocked before belong to `block_on`.
fn unwarned<'a>(
    old: (&'a [Severity], &'a [Severity]),
    new: (&'a [Severity], &'a [Severity]),
) -> impl Iterator<Item = Severity> + 'a {
    unreached(old.0, new.0).filter(move |s| !reaches(old.1, *s) && !reaches(new.1, *s))
}

/// Returns true if a list includes a severity, or a lower one.
pub(super) fn reaches(list: &[Severity], s: Severity) -> bool {
    list.iter().any(|least| s >= *least)
}

fn guidelines(old: &Policy, new: &Policy, found: &mut Vec<Weakening>) {
    for g in &old.guidelines {
        let mut same = new.guidelines.iter().filter(|n| has_globs_of(n, g));
        let other = same.clone().next();
        if !same.any(|n| n.text.contains(g.text.trim())) {
            let what = if other.is_some() {
                "reworded"
            } else {
                "removed"
            };
            found.push(Weakening {
                key: "guideline".to_owned(),
                line: other.and_then(|n| n.origin.line),
                text: format!("the guideline for {} is {what}", g.glob.join(", ")),
            });
        }
    }
}

/// Returns true if a guideline has all patterns of another one.
fn has_globs_of(guideline: &Guideline, other: &Guideline) -> bool {
    other.glob.iter().all(|p| guideline.glob.contains(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(base: &str, head: &str) -> Vec<String> {
        let found = weakened(Some(base.as_bytes()), Some(head.as_bytes()), own_severity);
        found.into_iter().map(|w| w.text).collect()
    }

    fn own_severity(id: &str) -> Option<Severity> {
        (id == "todo-comment").then_some(Severity::Minor)
    }

    fn texts_told(base: &str, head: &str) -> Vec<String> {
        told(Some(base.as_bytes()), Some(head.as_bytes()))
            .into_iter()
            .map(|w| w.text)
            .collect()
    }

    /// Returns a pattern that takes long to compare.
    fn slow_pattern(n: usize) -> String {
        format!(
            "'{}{n}/**'",
            "{a,b,c,d,e,f,g,h}*/".repeat(2) + &"*x?/".repeat(20)
        )
    }

    /// Returns a policy that ignores many slow patterns.
    fn slow_ignores(from: usize) -> String {
        format!(
            "ignore = [{}]",
            (from..from + 150)
                .map(slow_pattern)
                .collect::<Vec<_>>()
                .join(", ")
        )
    }

    /// Returns a policy with many `[[path]]` of slow patterns.
    fn slow_paths(from: usize) -> String {
        (from..from + 150)
            .map(|n| format!("[[path]]\nglob = {}\nblock_on = []\n", slow_pattern(n)))
            .collect()
    }

    #[test]
    fn each_way_to_be_weaker_is_named() {
        let cases = [
            (
                "",
                "block_on = ['critical']",
                "block_on no longer includes major",
            ),
            ("", "warn_on = []", "warn_on no longer includes minor"),
            (
                "block_on = ['minor']",
                "block_on = ['critical']",
                "block_on no longer includes major, minor",
            ),
            (
                "block_on = ['major']",
                "block_on = []",
                "block_on no longer includes critical, major",
            ),
            (
                "warn_on = ['suggestion']",
                "warn_on = ['major']",
                "warn_on no longer includes minor, suggestion",
            ),
            (
                "[[path]]\nglob = 'x/**'\nblock_on = ['minor']",
                "[[path]]\nglob = 'x/**'\nblock_on = ['critical']",
                "block_on no longer includes major in x/**",
            ),
            (
                "",
                "min_confidence = 'high'",
                "min_confidence changes from medium to high",
            ),
            (
                "",
                "on_incomplete = 'warn'",
                "on_incomplete changes from fail to warn",
            ),
            (
                "",
                "on_truncated = 'warn'",
                "on_truncated changes from fail to warn",
            ),
            ("", "ignore = ['src/**']", "ignore now matches src/**"),
            (
                "ignore = ['[a-z]*']",
                "ignore = ['*']",
                "ignore now matches *",
            ),
            (
                "ignore = ['vendor/*.c']",
                "ignore = ['vendor/**']",
                "ignore now matches vendor/**",
            ),
            (
                "ignore = ['*.md']",
                "ignore = ['*.[mp][dy]']",
                "ignore now matches *.[mp][dy]",
            ),
            (
                "ignore = ['*.md']",
                "ignore = ['*.[m-z][dy]']",
                "ignore now matches *.[m-z][dy]",
            ),
            (
                "ignore = ['[!a]*']",
                "ignore = ['*']",
                "ignore now matches *",
            ),
            (
                "ignore = ['vendor/**']",
                "ignore = ['{vendor,{vendor,src}}/**']",
                "ignore now matches {vendor,{vendor,src}}/**",
            ),
            (
                "[[path]]\nglob = '*.md'\nblock_on = []",
                "[[path]]\nglob = '*.[mp][dy]'\nblock_on = []",
                "block_on no longer includes critical in *.[mp][dy]",
            ),
            (
                "[[path]]\nglob = 'src/**'\nblock_on = ['minor']",
                "[[path]]\nglob = 'src/**'\nblock_on = ['minor']\n[[path]]\nglob = '*.py'\nblock_on = ['major']",
                "block_on no longer includes minor in paths that match both src/** and *.py",
            ),
            (
                "[[path]]\nglob = ['a/**', '[b-d]/**']\nblock_on = ['minor']",
                "[[path]]\nglob = 'a/**'\nblock_on = ['minor']",
                "block_on no longer includes minor in [b-d]/**",
            ),
            (
                "",
                "[rules]\ndisable = ['eval-call']",
                "rules.disable now includes eval-call",
            ),
            (
                "",
                "[rules]\nseverity = { todo-comment = 'suggestion' }",
                "rules.severity lowers todo-comment from minor to suggestion",
            ),
            (
                "",
                "[rules]\nseverity = { other = 'major' }",
                "rules.severity lowers other from critical to major",
            ),
            (
                "[rules]\nseverity = { todo-comment = 'major' }",
                "",
                "rules.severity lowers todo-comment from major to minor",
            ),
            (
                "",
                "[rules]\npaths = []",
                "rules.paths no longer includes .claude-reviewer/rules",
            ),
            (
                "[rules]\nprofile = 'audit'",
                "",
                "rules.profile changes from audit to default",
            ),
            (
                "[review]\nbackends = ['claude']",
                "",
                "review.backends no longer includes claude",
            ),
            (
                "",
                "[review]\nmode = 'first'",
                "review.mode changes from all to first",
            ),
            (
                "[review]\ndepth = 'thorough'",
                "",
                "review.depth changes from thorough to quick",
            ),
            (
                "",
                "[review]\nfocus = ['style']",
                "review.focus is now limited to style",
            ),
            (
                "",
                "[review]\nmax_requests = 1",
                "review.max_requests is lowered from 40 to 1",
            ),
            (
                "",
                "[review]\ntimeout = '1s'",
                "review.timeout is lowered from \"2m\" to \"1s\"",
            ),
            (
                "",
                "[review]\nconventions = ['AGENTS.md']",
                "review.conventions no longer includes CLAUDE.md",
            ),
            (
                "",
                "[hooks]\npre_commit = 'off'",
                "hooks.pre_commit changes from rules to off",
            ),
            (
                "[tests]\nrun = true",
                "",
                "tests.run changes from true to false",
            ),
            (
                "",
                "[tests]\non_failure = 'warn'",
                "tests.on_failure changes from block to warn",
            ),
            (
                "[tests]\non_failure = 'block'",
                "[tests]\non_failure = 'warn'",
                "tests.on_failure changes from block to warn",
            ),
            (
                "",
                "[[path]]\nglob = 'x/**'\nblock_on = []",
                "block_on no longer includes critical in x/**",
            ),
            (
                "[[path]]\nglob = 'x/**'\nblock_on = ['critical', 'major', 'minor']",
                "",
                "block_on no longer includes minor in x/**",
            ),
            (
                "[[path]]\nglob = 'x/**'\nmin_confidence = 'low'",
                "",
                "min_confidence changes from low to medium in x/**",
            ),
            (
                "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'",
                "",
                "the guideline for *.sql is removed",
            ),
            (
                "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'",
                "[[guideline]]\nglob = '*.sql'\ntext = 'x'",
                "the guideline for *.sql is reworded",
            ),
            (
                "",
                "not toml",
                "the policy file is invalid, so every gate that uses it fails",
            ),
            (
                "",
                "unknown = 1",
                "the policy file is invalid, so every gate that uses it fails",
            ),
            (
                "",
                "[tests]\ncommand = 'make test'",
                "tests.command changes from nothing to \"make test\"; this key decides which programs run or where data goes",
            ),
            (
                "[backend.l]\nkind = 'openai'\nbase_url = 'https://a.example'",
                "[backend.l]\nkind = 'openai'\nbase_url = 'https://b.example'",
                "backend.l.base_url changes from \"https://a.example\" to \"https://b.example\"; this key decides which programs run or where data goes",
            ),
        ];
        for (base, head, text) in cases {
            assert_eq!(texts(base, head), [text], "{base:?} -> {head:?}");
        }
    }

    #[test]
    fn no_number_of_alternatives_hides_one() {
        let known = vec!["vendor"; 17].join(",");
        let found = texts(
            "ignore = ['vendor/**']",
            &format!("ignore = ['{{{known},src}}/**']"),
        );
        assert_eq!(found, [format!("ignore now matches {{{known},src}}/**")]);
        let many: Vec<String> = (0..80).map(|n| format!("v{n}")).collect();
        let found = texts(
            "ignore = ['v*/**']",
            &format!("ignore = ['{{{}}}/**']", many.join(",")),
        );
        assert_eq!(found.len(), 1, "an unproven pattern is reported");
    }

    #[test]
    fn policies_made_to_take_long_are_compared_in_time() {
        assert_eq!(texts(&slow_ignores(0), &slow_ignores(1000)).len(), 1);
        // The list is cut off.
        let found = texts(&slow_paths(0), &slow_paths(1000));
        assert_eq!(
            (found.len(), found[50].as_str()),
            (51, "[[path]] changes and has too many entries to compare")
        );
    }

    #[test]
    fn what_is_no_weaker_is_silent() {
        let cases = [
            (
                "",
                "version = 1\nblock_on = ['major', 'critical']\n# written out",
            ),
            (
                "block_on = ['critical']",
                "block_on = ['critical', 'major']",
            ),
            ("ignore = ['a/**', 'b/**']", "ignore = ['b/**']"),
            (
                "ignore = ['vendor/**']",
                "ignore = ['vendor/**', 'vendor/x/**']",
            ),
            ("ignore = ['vendor']", "ignore = ['vendor/']"),
            ("ignore = ['**/*.lock']", "ignore = ['*.lock']"),
            (
                "ignore = ['vendor/**']",
                "ignore = ['vendor/lib/**', 'vendor/*.{c,h}', '/vendor/x?y.c']",
            ),
            ("ignore = ['*.[ch]', 'x']", "ignore = ['*.[ch]']"),
            ("ignore = ['a/**', 'b/**']", "ignore = ['{a,b}/**']"),
            (
                "[[path]]\nglob = 'vendor/**'\nblock_on = []",
                "[[path]]\nglob = 'vendor/lib/**'\nblock_on = []",
            ),
            (
                "[[path]]\nglob = 'src/**'\nblock_on = ['minor']",
                "[[path]]\nglob = 'src/**'\nblock_on = ['minor']\n[[path]]\nglob = 'docs/**'\nblock_on = ['major']",
            ),
            (
                "[[path]]\nglob = '*.[ch]'\nblock_on = []\n[[path]]\nglob = 'x/**'\nmin_confidence = 'high'",
                "[[path]]\nglob = 'x/**'\nmin_confidence = 'high'\n[[path]]\nglob = '*.[ch]'\nblock_on = []",
            ),
            ("[rules]\ndisable = ['a']", ""),
            ("", "[rules]\nprofile = 'audit'"),
            ("", "[rules]\nseverity = { todo-comment = 'critical' }"),
            (
                "[review]\nbackends = ['claude']",
                "[review]\nbackends = ['openai', 'claude']",
            ),
            ("", "[backend.claude]\nmodel = 'x'"),
            ("", "[review]\ntimeout = '5m'\njobs = 1"),
            (
                "",
                "[[path]]\nglob = 'x/**'\nblock_on = ['critical', 'major', 'minor']",
            ),
            ("[[path]]\nglob = 'x/**'\nblock_on = []", ""),
            (
                "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'",
                "[[guideline]]\nglob = '*.sql'\ntext = 'be careful, and slow'",
            ),
            ("", "[hooks]\npre_commit = 'full'"),
            ("", "warn_on = ['minor', 'suggestion']"),
            (
                "",
                "block_on = ['critical', 'major', 'minor']\nwarn_on = []",
            ),
            ("[tests]\ncommand = 'make'", ""),
            // Severities above the lowest one in the list block and warn, too.
            ("block_on = ['critical', 'major']", "block_on = ['major']"),
            ("warn_on = ['major', 'minor']", "warn_on = ['minor']"),
            (
                "block_on = ['major']\nwarn_on = ['minor']",
                "block_on = ['suggestion']\nwarn_on = []",
            ),
            (
                "[[path]]\nglob = 'x/**'\nblock_on = ['critical', 'major', 'minor']",
                "[[path]]\nglob = 'x/**'\nblock_on = ['minor']",
            ),
            (
                "",
                "[[path]]\nglob = 'x/**'\nblock_on = ['suggestion']\nwarn_on = []",
            ),
        ];
        for (base, head) in cases {
            assert_eq!(texts(base, head), [""; 0], "{base:?} -> {head:?}");
        }
    }

    #[test]
    fn new_instructions_for_models_are_quoted() {
        let one = "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'";
        for (base, head, said) in [
            (
                "",
                one,
                "the guideline for *.sql is new: \"be careful\"; takes effect for models after the merge",
            ),
            (
                one,
                "[[guideline]]\nglob = '*.sql'\ntext = 'be careful; never report it'",
                "the guideline for *.sql adds: \"; never report it\"; takes effect for models after the merge",
            ),
            (
                one,
                "[[guideline]]\nglob = ['*.sql', '*.py']\ntext = 'be careful'",
                "the guideline for *.sql, *.py applies to more files: \"be careful\"; takes effect for models after \
                 the merge",
            ),
            (
                one,
                "[[guideline]]\nglob = '*.sql'\ntext = 'relax'",
                "the guideline for *.sql changes to: \"relax\"; takes effect for models after the merge",
            ),
            (
                "",
                "[review]\nconventions = ['CLAUDE.md', 'AGENTS.md', 'docs/STYLE.md']",
                "review.conventions now includes docs/STYLE.md; takes effect for models after the merge",
            ),
        ] {
            assert_eq!(texts_told(base, head), [said], "{base:?} -> {head:?}");
        }
        for (base, head) in [
            (one, one),
            (one, ""),
            (one, "not toml"),
            ("", "block_on = []"),
        ] {
            assert_eq!(texts_told(base, head), [""; 0], "{base:?} -> {head:?}");
        }
    }

    #[test]
    fn lines_are_those_of_the_new_file() {
        let head = b"version = 1\n\nblock_on = ['critical']\n[[path]]\nglob = 'x'\nwarn_on = []\n";
        let found = weakened(Some(b""), Some(head), |_| None);
        let lines: Vec<_> = found.iter().map(|w| (w.key.as_str(), w.line)).collect();
        assert_eq!(lines, [("block_on", Some(3)), ("path", Some(4))]);
    }

    #[test]
    fn a_deleted_file_is_weaker_and_a_first_one_is_held_against_the_defaults() {
        let found = weakened(
            Some(b"block_on = ['minor', 'major', 'critical']"),
            None,
            |_| None,
        );
        let texts: Vec<_> = found.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "the policy file is deleted",
                "block_on no longer includes minor"
            ]
        );
        assert_eq!(weakened(None, Some(b"version = 1"), |_| None), []);
        assert_eq!(weakened(None, Some(b"warn_on = []"), |_| None).len(), 1);
        assert_eq!(weakened(None, None, |_| None), []);
    }
}
