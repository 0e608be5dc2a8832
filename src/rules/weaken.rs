//! Ways in which a change weakens a team's rule files: compares the rules of both versions by ID.

use super::format::{self, Rule};
use super::team::{self, Team};
use crate::diff::{LineNo, RepoPath};
use crate::finding::Severity;
use crate::policy::RulesPolicy;

/// A rule file of a team, in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    pub path: RepoPath,
    /// `None`: it is not a regular file, or not UTF-8.
    pub text: Option<String>,
}

/// One way in which a team's rules became weaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleWeakening {
    pub path: RepoPath,
    /// Line of the rule in the new version. `None`: the new version lacks the rule.
    pub line: Option<LineNo>,
    /// A lowercase fragment: `rule no-sleep is removed`.
    pub text: String,
}

/// One version of a team's rules.
#[derive(Clone, Copy, Debug)]
pub struct RulesVersion<'a> {
    pub files: &'a [RuleFile],
    pub policy: &'a RulesPolicy,
}

/// Compares the rules in the `changed` files of the old version with all rules of the new one.
///
/// An unreadable file of the old version counts as missing. An unreadable file of the new version
/// counts as weaker, because after the merge every gate would stop. A new rule is not a weakening,
/// and neither is a change of a rule that policy disabled.
pub fn weakened(
    old: RulesVersion<'_>,
    new: RulesVersion<'_>,
    changed: &[RepoPath],
) -> Vec<RuleWeakening> {
    let mut found = unreadable(new.files, changed);
    let broken: Vec<RepoPath> = found.iter().map(|w| w.path.clone()).collect();
    let now = parsed(new.files);
    for (path, _, was) in parsed(old.files) {
        if !changed.contains(path) || broken.contains(path) || old.policy.disable.contains(&was.id)
        {
            continue;
        }
        let Some((path, text, is)) = now.iter().find(|(.., r)| r.id == was.id) else {
            let text = format!("rule {} is removed", was.id);
            found.push(RuleWeakening {
                path: path.clone(),
                line: None,
                text,
            });
            continue;
        };
        let mut ways = ways(&was, is);
        let before = severity(&was, old.policy);
        let after = severity(is, new.policy);
        // Settings of the policy file are compared with the policy file.
        if after < before && set(&was.id, new.policy).is_none() {
            ways.insert(
                0,
                format!(
                    "severity is lowered from {} to {}",
                    name(before),
                    name(after)
                ),
            );
        }
        if !ways.is_empty() {
            let text_of = format!("rule {} may let more through: {}", was.id, ways.join("; "));
            found.push(RuleWeakening {
                path: (*path).clone(),
                line: line_of(text, &was.id),
                text: text_of,
            });
        }
    }
    found
}

/// Reports the changed files of the new version that no review could use.
fn unreadable(files: &[RuleFile], changed: &[RepoPath]) -> Vec<RuleWeakening> {
    let mut found = Vec::new();
    for f in files.iter().filter(|f| changed.contains(&f.path)) {
        match named_text(f) {
            None => found.push(stops(&f.path, "the file is not UTF-8 text")),
            Some(file) => found.extend(
                Team::parse(&[file])
                    .err()
                    .map(|e| stops(&f.path, &e.on_one_line())),
            ),
        }
    }
    let all: Vec<_> = files.iter().filter_map(named_text).collect();
    let last = files.iter().rev().find(|f| changed.contains(&f.path));
    // Each file is valid by itself, but an ID is used twice.
    if let (true, Some(last), Err(e)) = (found.is_empty(), last, Team::parse(&all)) {
        found.push(stops(&last.path, &e.on_one_line()));
    }
    found
}

/// Returns the path and the text of a file. `None`: the text is not UTF-8.
fn named_text(file: &RuleFile) -> Option<(String, String)> {
    Some((file.path.to_wire(), file.text.clone()?))
}

fn stops(path: &RepoPath, why: &str) -> RuleWeakening {
    let text =
        format!("the rules cannot be read any more, so every gate that uses them stops: {why}");
    RuleWeakening {
        path: path.clone(),
        line: None,
        text,
    }
}

/// Returns every rule of the readable files, with its file.
fn parsed(files: &[RuleFile]) -> Vec<(&RepoPath, &str, Rule)> {
    let mut rules = Vec::new();
    for f in files {
        let Some(text) = &f.text else { continue };
        let read = team::read(&f.path.to_wire(), text).unwrap_or_default();
        rules.extend(read.into_iter().map(|r| (&f.path, text.as_str(), r)));
    }
    rules
}

/// Returns the ways in which the new version of a rule may find less.
fn ways(was: &Rule, is: &Rule) -> Vec<String> {
    let mut out = Vec::new();
    if was.pattern != is.pattern {
        out.push(format!(
            "pattern changes from {:?} to {:?}",
            was.pattern, is.pattern
        ));
    }
    if was.place != is.place && is.place != "any" {
        out.push(format!("place changes from {} to {}", was.place, is.place));
    }
    // A rule requires one of these texts. An empty list requires none.
    for (key, was, is) in [
        ("languages", &was.languages, &is.languages),
        ("paths", &was.paths, &is.paths),
        ("literals", &was.literals, &is.literals),
    ] {
        let gone = without(was, is);
        if was.is_empty() && !is.is_empty() {
            out.push(format!("{key} is now {} only", is.join(", ")));
        } else if !is.is_empty() && !gone.is_empty() {
            out.push(format!("{key} no longer holds {}", gone.join(", ")));
        }
    }
    // Each of these texts exempts matches.
    for (key, was, is) in [
        ("not_paths", &was.not_paths, &is.not_paths),
        ("weak_paths", &was.weak_paths, &is.weak_paths),
        ("not_pattern", &was.not_pattern, &is.not_pattern),
        ("harmless", &was.harmless, &is.harmless),
        ("guarded_by", &was.guarded_by, &is.guarded_by),
        ("weak_if", &was.weak_if, &is.weak_if),
        ("file_has", &was.file_has, &is.file_has),
        ("file_lacks", &was.file_lacks, &is.file_lacks),
        ("near_has", &was.near_has, &is.near_has),
        ("near_lacks", &was.near_lacks, &is.near_lacks),
        ("checks", &was.checks, &is.checks),
    ] {
        let added = without(is, was);
        if !added.is_empty() {
            out.push(format!("{key} now holds {}", added.join(", ")));
        }
    }
    for (key, was, is) in [
        ("in_tests", was.in_tests, is.in_tests),
        ("in_bundles", was.in_bundles, is.in_bundles),
        ("secret", was.secret, is.secret),
        (
            "decoded",
            was.decoded || was.secret,
            is.decoded || is.secret,
        ),
    ] {
        if was && !is {
            out.push(format!("{key} changes from true to false"));
        }
    }
    if is.profile != was.profile && is.profile == format::AUDIT_PROFILE {
        out.push(format!(
            "profile changes from {} to {}",
            was.profile, is.profile
        ));
    }
    if is.judges_origin && !was.judges_origin {
        out.push("judges_origin changes from false to true".to_owned());
    }
    out
}

/// Returns the items that only the first list has.
fn without<'a>(list: &'a [String], other: &[String]) -> Vec<&'a str> {
    list.iter()
        .filter(|s| !other.contains(s))
        .map(String::as_str)
        .collect()
}

fn severity(rule: &Rule, policy: &RulesPolicy) -> Option<Severity> {
    set(&rule.id, policy).or_else(|| Severity::parse(&rule.severity))
}

fn set(id: &str, policy: &RulesPolicy) -> Option<Severity> {
    policy
        .severity
        .iter()
        .rev()
        .find(|(known, _)| known == id)
        .map(|(_, s)| *s)
}

fn name(severity: Option<Severity>) -> &'static str {
    severity.map_or("unknown", Severity::name)
}

/// Returns the line that names the rule.
fn line_of(text: &str, id: &str) -> Option<LineNo> {
    let at = text.lines().position(|line| sets_id(line, id))?;
    LineNo::new(u32::try_from(at).ok()?.saturating_add(1))
}

/// Returns true if a line sets the key `id` to a value that starts with an ID.
fn sets_id(line: &str, id: &str) -> bool {
    let value = line
        .trim_start()
        .strip_prefix("id")
        .map(str::trim_start)
        .and_then(|l| l.strip_prefix(['=', ':']));
    value.is_some_and(|v| {
        v.trim_start()
            .trim_start_matches(['"', '\''])
            .starts_with(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "[[rule]]\nid = 'no-sleep'\ntitle = 'Sleep'\ncategory = 'performance'\nseverity = 'major'\n\
        literals = ['sleep(', 'pause(']\npattern = 'sleep|pause'\nmessage = 'A handler must not sleep'\n\
        languages = ['python', 'go']\nnot_paths = ['a/**']\ndecoded = true\n";

    fn rule_file(path: &str, text: &str) -> RuleFile {
        RuleFile {
            path: RepoPath::from(path),
            text: Some(text.to_owned()),
        }
    }

    fn compare(
        old: &str,
        new: &[(&str, &str)],
        policies: [&RulesPolicy; 2],
    ) -> Vec<(String, Option<u32>, String)> {
        let old = [rule_file("r/a.toml", old)];
        let new: Vec<_> = new
            .iter()
            .map(|(path, text)| rule_file(path, text))
            .collect();
        let changed: Vec<_> = old.iter().chain(&new).map(|f| f.path.clone()).collect();
        let [before, after] = policies;
        let found = weakened(
            RulesVersion {
                files: &old,
                policy: before,
            },
            RulesVersion {
                files: &new,
                policy: after,
            },
            &changed,
        );
        found
            .into_iter()
            .map(|w| (w.path.to_wire(), w.line.map(LineNo::get), w.text))
            .collect()
    }

    fn edited(from: &str, to: &str) -> Vec<(String, Option<u32>, String)> {
        let policy = RulesPolicy::default();
        let new = RULE.replacen(from, to, 1);
        assert_ne!(new, RULE, "{from}");
        compare(RULE, &[("r/a.toml", &new)], [&policy, &policy])
    }

    #[test]
    fn each_way_to_find_less_is_named() {
        for (from, to, way) in [
            (
                "'major'",
                "'minor'",
                "severity is lowered from major to minor",
            ),
            (
                "'sleep|pause'",
                "'sleep'",
                "pattern changes from \"sleep|pause\" to \"sleep\"",
            ),
            (", 'pause('", "", "literals no longer holds pause("),
            (", 'go'", "", "languages no longer holds go"),
            ("'a/**'", "'a/**', 'b/**'", "not_paths now holds b/**"),
            ("decoded = true\n", "", "decoded changes from true to false"),
            (
                "decoded = true\n",
                "decoded = true\npaths = ['b/**']",
                "paths is now b/** only",
            ),
            (
                "decoded = true\n",
                "decoded = true\nplace = 'code'",
                "place changes from any to code",
            ),
            (
                "decoded = true\n",
                "decoded = true\nin_tests = false",
                "in_tests changes from true to false",
            ),
            (
                "decoded = true\n",
                "decoded = true\nin_bundles = false",
                "in_bundles changes from true to false",
            ),
            (
                "decoded = true\n",
                "decoded = true\nweak_paths = ['x/**']",
                "weak_paths now holds x/**",
            ),
            (
                "decoded = true\n",
                "decoded = true\nnot_pattern = ['x']",
                "not_pattern now holds x",
            ),
            (
                "decoded = true\n",
                "decoded = true\nfile_has = ['x']",
                "file_has now holds x",
            ),
            (
                "decoded = true\n",
                "decoded = true\nfile_lacks = ['x']",
                "file_lacks now holds x",
            ),
            (
                "decoded = true\n",
                "decoded = true\nchecks = ['entropy:3']",
                "checks now holds entropy:3",
            ),
        ] {
            let text = format!("rule no-sleep may let more through: {way}");
            assert_eq!(
                edited(from, to),
                [("r/a.toml".to_owned(), Some(2), text)],
                "{from} -> {to}"
            );
        }
        let policy = RulesPolicy::default();
        let removed = [(
            "r/a.toml".to_owned(),
            None,
            "rule no-sleep is removed".to_owned(),
        )];
        assert_eq!(compare(RULE, &[], [&policy; 2]), removed);
        assert_eq!(
            compare(
                RULE,
                &[("r/b.toml", &RULE.replace("no-sleep", "other"))],
                [&policy; 2]
            ),
            removed
        );
        for broken in [
            "not toml",
            &RULE.replace("'sleep|", "'(sleep|"),
            &[RULE, RULE].concat(),
        ] {
            let found = compare(RULE, &[("r/a.toml", broken)], [&policy; 2]);
            assert!(
                found.len() == 1 && found[0].2.contains("every gate that uses them stops"),
                "{found:?}"
            );
        }
        let twice = compare(
            RULE,
            &[("r/a.toml", RULE), ("r/b.toml", RULE)],
            [&policy; 2],
        );
        assert!(
            twice.len() == 1 && twice[0].2.contains("id: is already used at r/a.toml:1"),
            "{twice:?}"
        );
    }

    #[test]
    fn what_finds_as_much_is_silent() {
        for (from, to) in [
            ("'major'", "'critical'"),
            ("'Sleep'", "'Sleeping'"),
            ("['python', 'go']", "[]"),
            ("['python', 'go']", "['go', 'rust', 'python']"),
            ("'pause('", "'pause(', 'wait('"),
            ("['a/**']", "[]"),
            ("[[rule]]", "# a comment\n[[rule]]"),
        ] {
            assert_eq!(edited(from, to), [], "{from} -> {to}");
        }
        let policy = RulesPolicy::default();
        assert_eq!(compare(RULE, &[("r/moved.toml", RULE)], [&policy; 2]), []);
        let more = RULE.replace("no-sleep", "another");
        assert_eq!(
            compare(RULE, &[("r/a.toml", &[RULE, &more].concat())], [&policy; 2]),
            []
        );
        assert_eq!(compare("not toml", &[("r/a.toml", RULE)], [&policy; 2]), []);
    }

    #[test]
    fn policy_has_a_say_in_what_a_rule_was_worth() {
        let own = RulesPolicy::default();
        let off = RulesPolicy {
            disable: vec!["no-sleep".to_owned()],
            ..RulesPolicy::default()
        };
        fn set(s: Severity) -> RulesPolicy {
            RulesPolicy {
                severity: vec![("no-sleep".to_owned(), s)],
                ..RulesPolicy::default()
            }
        }
        let low = RULE.replace("'major'", "'suggestion'");
        let low = [("r/a.toml", low.as_str())];
        assert_eq!(compare(RULE, &[], [&off, &own]), []);
        assert_eq!(compare(RULE, &low, [&own, &set(Severity::Critical)]), []);
        let found = compare(RULE, &low, [&set(Severity::Minor), &own]);
        assert!(
            found[0]
                .2
                .ends_with("severity is lowered from minor to suggestion"),
            "{found:?}"
        );
    }
}
