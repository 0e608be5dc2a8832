//! Samples of rules: expands templates to text, turns the text into a change, and runs the real
//! engine on it.

use super::{RuleSet, Scope, Tree, format, secret};
use crate::diff::{RepoPath, code, patch};
use crate::error::Result;
use crate::finding::{Finding, Severity};
use crate::policy::RuleProfile;

/// Expands `${alnum:36}` and similar templates into generated text, which is the same for the same
/// seed.
///
/// Forms with a length: `alnum` (also `base62`), `letters`, `lower` (letters and digits), `upper`
/// (letters and digits), `digits`, `hex`, `HEX`, `base32`, `base64`, `base64url`. Forms with a
/// structure or a checksum, such as `${github-token:ghp}`, come from [`secret::generate`]. Any
/// other text with the form of a template is unchanged: `${TOKEN}` is code.
pub fn expand(template: &str, seed: &str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    let mut random = Random::seeded(seed);
    while let Some(open) = rest.find("${") {
        let (before, tail) = rest.split_at(open);
        out.push_str(before);
        let expansion = tail
            .find('}')
            .and_then(|close| Some((close, form(&tail[2..close], &mut random)?)));
        match expansion {
            Some((close, text)) => {
                out.push_str(&text);
                rest = &tail[close + 1..];
            }
            None => {
                out.push_str("${");
                rest = &tail[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

const DIGITS: &str = "0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn form(form: &str, random: &mut Random) -> Option<String> {
    if let Some(secret) =
        secret::generate::generate(form, &mut |bound| random.below(bound as usize) as u32)
    {
        return Some(secret);
    }
    let (kind, length) = form.split_once(':')?;
    let length: usize = length.parse().ok().filter(|n| *n <= 10_000)?;
    let alphabet = match kind {
        "alnum" | "base62" => [DIGITS, LOWER, UPPER].concat(),
        "letters" => [LOWER, UPPER].concat(),
        "lower" => [DIGITS, LOWER].concat(),
        "upper" => [DIGITS, UPPER].concat(),
        "digits" => DIGITS.to_owned(),
        "hex" => "0123456789abcdef".to_owned(),
        "HEX" => "0123456789ABCDEF".to_owned(),
        "base32" => [UPPER, "234567"].concat(),
        "base64" => [DIGITS, LOWER, UPPER, "+/"].concat(),
        "base64url" => [DIGITS, LOWER, UPPER, "-_"].concat(),
        _ => return None,
    };
    Some(random.text(alphabet.as_bytes(), length))
}

/// A small generator of the xorshift family. No secret depends on it, because samples only have to
/// appear random.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator with a text as its seed.
    pub(crate) fn seeded(seed: &str) -> Self {
        let mut state = 0xcbf2_9ce4_8422_2325u64;
        for b in seed.bytes() {
            state = (state ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(state | 1)
    }

    /// Returns the next number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize) % bound.max(1)
    }

    /// Returns a text over an alphabet.
    pub(crate) fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length)
            .map(|_| alphabet[self.below(alphabet.len())] as char)
            .collect()
    }
}

/// Results of the samples of rule files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub rules: usize,
    pub samples: usize,
    /// Failed samples, each with the rule's name.
    pub failures: Vec<String>,
}

/// Runs every sample of the rules through the engine, in the profile of its rule.
pub(super) fn test(rules: &mut RuleSet, written: &[format::Rule]) -> Report {
    let mut report = Report {
        rules: written.len(),
        ..Report::default()
    };
    for rule in written {
        let is_audit = rule.profile == format::AUDIT_PROFILE;
        rules.profile = if is_audit {
            RuleProfile::Audit
        } else {
            RuleProfile::Default
        };
        report.failures.extend(
            rule.sample_faults()
                .into_iter()
                .map(|f| format!("{}: {f}", rule.id)),
        );
        for (i, sample) in rule.samples.iter().enumerate() {
            report.samples += 1;
            let name = format!("{}: sample {} ({})", rule.id, i + 1, sample.path);
            let text = expand(&sample.text, &format!("{} {i}", rule.id));
            let found = match findings(rules, &sample.path, &text) {
                Ok(found) => found,
                Err(e) => {
                    report.failures.push(format!("{name}: {}", e.message));
                    continue;
                }
            };
            let mut failures = Vec::new();
            let own = found
                .iter()
                .filter(|f| f.rule_id() == rule.id)
                .collect::<Vec<_>>();
            if own.is_empty() == sample.matches {
                let failure = if sample.matches {
                    "must match and does not"
                } else {
                    "must not match and does"
                };
                failures.push(failure.to_owned());
            }
            for f in found
                .iter()
                .filter(|f| f.rule_id() != rule.id && !sample.matches)
            {
                if f.severity() >= Severity::Minor
                    && !sample.also.iter().any(|id| id == f.rule_id())
                {
                    failures.push(format!("{} matches too", f.rule_id()));
                }
            }
            if let Some(expected) = &sample.fixed {
                let fixed = own.iter().find_map(|f| replaced(&text, f));
                if fixed.as_deref() != Some(expected.as_str()) {
                    failures.push(format!("must be fixed to {expected:?}, not to {fixed:?}"));
                }
            }
            let failures = failures
                .into_iter()
                .map(|what| format!("{name}: {what}: {}", first_line(&text)));
            report.failures.extend(failures);
        }
    }
    report
}

fn first_line(text: &str) -> String {
    text.lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or_default()
        .chars()
        .take(160)
        .collect()
}

/// Returns the text with the replacement of a finding, with line feeds as line ends and without a
/// byte order mark.
fn replaced(text: &str, finding: &Finding) -> Option<String> {
    let (new, span) = (finding.replacement()?, finding.lines()?);
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    let (first, last) = (span.first.get() as usize - 1, span.last.get() as usize);
    lines.splice(first..last.min(lines.len()), new.lines());
    Some(lines.join("\n"))
}

/// Returns the findings in a text, as if a file with this path were added. A text with the start of
/// a git patch is a patch.
fn findings(rules: &RuleSet, path: &str, text: &str) -> Result<Vec<Finding>> {
    let changes = if text.starts_with("diff --git ") {
        patch::parse(text.as_bytes())?
    } else {
        vec![code::added(RepoPath::from(path), text.as_bytes().to_vec())]
    };
    let mut out = Vec::new();
    for change in &changes {
        rules.scan(change, Scope::All, &mut out);
    }
    let entries: Vec<_> = changes.iter().map(|c| c.entry.clone()).collect();
    rules.scan_entries(
        &entries,
        &Tree::of_entries(&|i| changes.get(i).cloned(), &|_| false),
        &mut out,
    );
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;
    use crate::rules::structural::{StructuralRule, TreeLanguage};
    use crate::rules::{around, catalog, check, team, walk};

    fn written() -> Vec<format::Rule> {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules/catalog");
        let mut files: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
        files.sort();
        files
            .iter()
            .flat_map(|f| {
                team::read(
                    &f.display().to_string(),
                    &std::fs::read_to_string(f).unwrap(),
                )
                .unwrap()
            })
            .collect()
    }

    #[test]
    fn every_pattern_compiles_and_every_check_is_known() {
        let mut wrong = Vec::new();
        for rule in catalog::RULES.iter() {
            if rule.matcher != catalog::Matcher::Pattern && rule.tree.is_empty() {
                continue;
            }
            if let Err((key, e)) = walk::RulePatterns::check(rule) {
                wrong.push(format!("{}: {key}: {e}", rule.id));
            }
            for c in rule.checks.iter() {
                let is_known =
                    check::is_for_patterns(c) || !rule.tree.is_empty() && around::is_known(c);
                if !is_known {
                    wrong.push(format!("{}: checks: unknown check {c:?}", rule.id));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_tree_compiles_for_each_of_its_languages() {
        let mut wrong = Vec::new();
        for rule in catalog::RULES.iter().filter(|r| !r.tree.is_empty()) {
            let languages: Vec<_> = TreeLanguage::of_rule(&rule.tree_languages).collect();
            let unknown = rule.tree_languages.iter().filter(|name| {
                let one = [(*name).clone()];
                TreeLanguage::of_rule(&one).next().is_none()
            });
            wrong.extend(
                unknown.map(|name| format!("{}: languages: {name:?} has no grammar", rule.id)),
            );
            for language in languages {
                if let Err(e) = StructuralRule::of_catalogue(rule, language) {
                    wrong.push(format!("{}: {}: {e}", rule.id, language.name()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_sample_matches_as_it_says() {
        let mut rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let report = test(&mut rules, &written());
        assert!(
            report.failures.is_empty(),
            "{} samples are wrong:\n{}",
            report.failures.len(),
            report.failures.join("\n")
        );
    }

    /// Editors on Windows start a file with a byte order mark and end its lines with two
    /// characters.
    #[test]
    fn every_sample_matches_alike_as_windows_writes_it() {
        let mut rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let mut written = written();
        for sample in written
            .iter_mut()
            .flat_map(|r| &mut r.samples)
            .filter(|s| !s.text.starts_with("diff --git "))
        {
            sample.text = format!("\u{feff}{}", sample.text.replace('\n', "\r\n"));
        }
        let report = test(&mut rules, &written);
        let failures = report.failures;
        assert!(
            failures.is_empty(),
            "{} samples are wrong:\n{}",
            failures.len(),
            failures.join("\n")
        );
    }

    #[test]
    fn templates_become_text_of_their_form() {
        let text = expand("key=${alnum:36} ${HEX:4} ${TOKEN} ${x", "seed");
        assert_eq!(text.len(), "key= ${TOKEN} ${x".len() + 36 + 4 + 1);
        assert!(text.ends_with(" ${TOKEN} ${x"));
        assert_eq!(
            text,
            expand("key=${alnum:36} ${HEX:4} ${TOKEN} ${x", "seed")
        );
        assert_ne!(
            text,
            expand("key=${alnum:36} ${HEX:4} ${TOKEN} ${x", "other")
        );
    }
}
