//! What is valid in a policy and yet probably a mistake.

use super::Policy;
use crate::diff::RepoPath;

impl Policy {
    /// Returns what its author should look at again, as lowercase fragments with their places.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let place = |key: &str| format!("{key:?} ({})", self.origin_of(key));
        if self.block_on.is_empty() {
            doubts.push(format!("{} is empty: nothing blocks", place("block_on")));
        }
        for (i, rule) in self.paths.iter().enumerate() {
            let n = i + 1;
            if rule.block_on.is_none() && rule.warn_on.is_none() && rule.min_confidence.is_none() {
                doubts.push(format!("[[path]] {n} ({}) sets nothing", rule.origin));
            }
        }
        // Names that nothing narrower is likely to be about.
        let anything = ["zq0.rs", "src/zq0/qz1.rs", "zq0/qz1/qz2.py"];
        if !self.ignore.is_empty() && anything.iter().all(|p| self.ignores(&RepoPath::from(*p))) {
            doubts.push(format!("{} leaves out every file: nothing is reviewed", place("ignore")));
        }
        if self.review.backends.is_empty() {
            if !self.guidelines.is_empty() {
                doubts.push("[[guideline]] is for models, and \"review.backends\" names none".to_owned());
            }
        } else if self.review.max_cost_usd == 0.0 {
            doubts.push(format!("{} is 0: a backend that costs anything cannot answer", place("review.max_cost_usd")));
        }
        if self.tests.run && self.tests.command.is_none() {
            doubts.push(format!("{} is true, and \"tests.command\" says nothing to run", place("tests.run")));
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::policy::{File, Policy, Sources, load};
    use crate::request::Overrides;

    fn doubts(text: &str) -> Vec<String> {
        let user = File { name: "p".to_owned(), bytes: text.as_bytes().to_vec() };
        let env = Env::default();
        load(&Sources { user: Some(&user), project: None, env: &env, overrides: &Overrides::default() })
            .unwrap()
            .policy
            .doubts()
    }

    #[test]
    fn likely_mistakes_are_told() {
        for (text, expected) in [
            ("block_on = []", "\"block_on\" (p:1) is empty: nothing blocks"),
            ("ignore = ['*']", "\"ignore\" (p:1) leaves out every file: nothing is reviewed"),
            ("[[path]]\nglob = 'x'", "[[path]] 1 (p:1) sets nothing"),
            ("[tests]\nrun = true", "\"tests.run\" (p:2) is true, and \"tests.command\" says nothing to run"),
        ] {
            assert_eq!(doubts(text), [expected], "{text}");
        }
        assert_eq!(doubts("ignore = ['vendor/', '*.lock']\nblock_on = ['critical']"), [""; 0]);
        assert_eq!(Policy::default().doubts(), [""; 0]);
    }
}
