//! Probable mistakes in a valid policy.

use super::Policy;
use crate::diff::RepoPath;

impl Policy {
    /// Returns probable mistakes, as lowercase fragments with their positions.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.block_on.is_empty() {
            doubts.push(format!(
                "{} is empty: no finding blocks",
                self.key_with_origin("block_on")
            ));
        }
        for (i, rule) in self.paths.iter().enumerate() {
            let n = i + 1;
            if rule.block_on.is_none() && rule.warn_on.is_none() && rule.min_confidence.is_none() {
                doubts.push(format!("[[path]] {n} ({}) sets no threshold", rule.origin));
            }
        }
        // Only a pattern for everything is likely to match all of these names.
        let anything = ["zq0.rs", "src/zq0/qz1.rs", "zq0/qz1/qz2.py"];
        if !self.ignore.is_empty() && anything.iter().all(|p| self.ignores(&RepoPath::from(*p))) {
            doubts.push(format!(
                "{} matches every file, so no file is reviewed",
                self.key_with_origin("ignore")
            ));
        }
        if self.review.backends.is_empty() {
            if !self.guidelines.is_empty() {
                doubts.push("[[guideline]] has no effect: \"review.backends\" is empty".to_owned());
            }
        } else if self.review.max_cost_usd == 0.0 {
            let key = self.key_with_origin("review.max_cost_usd");
            doubts.push(format!("{key} is 0: only backends without cost can answer"));
        }
        if self.tests.run && self.tests.command.is_none() {
            let key = self.key_with_origin("tests.run");
            doubts.push(format!("{key} is true, but \"tests.command\" is not set"));
        }
        doubts
    }

    /// Returns a full key in quotation marks, with the origin of its value.
    fn key_with_origin(&self, key: &str) -> String {
        format!("{key:?} ({})", self.origin_of(key))
    }
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::policy::{Policy, PolicyFile, Sources, load};
    use crate::request::Overrides;

    fn doubts(text: &str) -> Vec<String> {
        let user = PolicyFile {
            name: "p".to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let env = Env::default();
        load(&Sources {
            user: Some(&user),
            project: None,
            env: &env,
            overrides: &Overrides::default(),
        })
        .unwrap()
        .policy
        .doubts()
    }

    #[test]
    fn likely_mistakes_are_reported() {
        for (text, expected) in [
            (
                "block_on = []",
                "\"block_on\" (p:1) is empty: no finding blocks",
            ),
            (
                "ignore = ['*']",
                "\"ignore\" (p:1) matches every file, so no file is reviewed",
            ),
            ("[[path]]\nglob = 'x'", "[[path]] 1 (p:1) sets no threshold"),
            (
                "[tests]\nrun = true",
                "\"tests.run\" (p:2) is true, but \"tests.command\" is not set",
            ),
        ] {
            assert_eq!(doubts(text), [expected], "{text}");
        }
        assert_eq!(
            doubts("ignore = ['vendor/', '*.lock']\nblock_on = ['critical']"),
            [""; 0]
        );
        assert_eq!(Policy::default().doubts(), [""; 0]);
    }
}
