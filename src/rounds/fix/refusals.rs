//! Rejected edits of an attempt, described for people and for the next attempt. Pure.

use crate::ai::Setback;
use crate::ai::ask::Cause;
use crate::rules::RuleSet;
use crate::text::{one_line, shortened};

/// Rejected edits that are listed, at most.
const MOST: usize = 5;
/// Characters of a model's message, at most.
const WORDS: usize = 400;

/// Rejected edits of a model, masked, each on one line.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Vec<String>);

impl Refusals {
    /// Masks the secrets in the reasons of refused edits.
    pub(super) fn new(rules: &RuleSet, refused: &[String]) -> Self {
        Self(
            refused
                .iter()
                .map(|why| short_line(&rules.masked(why)))
                .collect(),
        )
    }

    /// Returns the reasons for an attempt without a change. `words` is the model's masked message.
    pub(super) fn without_change(&self, words: &str) -> Vec<String> {
        let head = "the model changed no file";
        let mut reasons = match self.0.split_first() {
            None => vec![head.to_owned()],
            Some((first, rest)) => {
                let mut reasons = vec![format!("{head}; refused: {first}")];
                reasons.extend(rest.iter().take(MOST).map(|why| format!("refused: {why}")));
                reasons
            }
        };
        let words = short_line(words);
        match (words.is_empty(), self.0.is_empty()) {
            (true, _) => {}
            (false, true) => reasons[0].push_str(&format!("; it reports: {words}")),
            (false, false) => reasons.push(format!("the model reports: {words}")),
        }
        reasons
    }

    /// Adds the rejected edits to the reasons why an attempt failed.
    pub(super) fn added_to(&self, mut reasons: Vec<String>) -> Vec<String> {
        reasons.extend(
            self.0
                .iter()
                .take(MOST)
                .map(|why| format!("refused: {why}")),
        );
        reasons
    }
}

/// Adds a problem that a model reports to the reasons why its attempt failed.
pub(super) fn told(mut reasons: Vec<String>, problem: Option<&str>) -> Vec<String> {
    let words = problem.map(short_line).filter(|words| !words.is_empty());
    reasons.extend(words.map(|words| format!("the model reports: {words}")));
    reasons
}

/// Returns true if every backend failed permanently: a missing key, program or model. A rate limit
/// and a connection failure are temporary.
pub(super) fn is_for_good(setbacks: &[Setback]) -> bool {
    !setbacks.is_empty() && setbacks.iter().all(is_permanent)
}

/// Returns true if another request to the backend would fail too.
fn is_permanent(s: &Setback) -> bool {
    match s.cause {
        Cause::Setup => true,
        Cause::Refused => s.retry_after.is_none(),
        Cause::Unreachable
        | Cause::TooLarge
        | Cause::CutOff
        | Cause::Declined
        | Cause::Malformed
        | Cause::TimedOut
        | Cause::Stopped
        | Cause::Limit => false,
    }
}

/// Returns a text on one line, truncated.
fn short_line(text: &str) -> String {
    shortened(&one_line(text), WORDS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_refusal_names_what_was_refused_before_the_words_of_the_model() {
        let none = Refusals::default();
        assert_eq!(none.without_change(" "), ["the model changed no file"]);
        assert_eq!(
            none.without_change("It is\nright."),
            ["the model changed no file; it reports: It is right."]
        );
        let two = Refusals(vec![
            "edit of `a`: x".to_owned(),
            "edit of `b`: y".to_owned(),
        ]);
        let expected = [
            "the model changed no file; refused: edit of `a`: x",
            "refused: edit of `b`: y",
            "the model reports: z",
        ];
        assert_eq!(two.without_change("z"), expected);
        assert_eq!(two.added_to(vec!["F1 is still there".to_owned()]).len(), 3);
    }

    #[test]
    fn a_key_is_refused_for_good_and_a_rate_limit_is_not() {
        fn of(cause: Cause, retry_after: Option<Duration>) -> Setback {
            Setback {
                backend: "a".to_owned(),
                cause,
                retry_after,
            }
        }
        let (key, limit) = (
            of(Cause::Refused, None),
            of(Cause::Refused, Some(Duration::from_secs(1))),
        );
        assert!(
            is_for_good(std::slice::from_ref(&key))
                && is_for_good(&[of(Cause::Setup, None), key.clone()])
        );
        for all in [
            vec![],
            vec![limit.clone()],
            vec![key, limit],
            vec![of(Cause::Unreachable, None)],
        ] {
            assert!(!is_for_good(&all), "{all:?}");
        }
    }
}
