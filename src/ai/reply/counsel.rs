//! Parses answers outside a review: criteria, proposals, disagreements.

use super::json::{Json, Object};
use super::read::{boolean, entries, text};
use super::{ReplyProblem, document};
use crate::ai::ask::Nonce;
use crate::ai::claim::counsel::{Decision, Flaw, Passage, Proposal};
use crate::ai::claim::criteria::{Criteria, Stand};

/// Parses the reply about the criteria of a contract.
pub fn criteria(reply: &str, nonce: &Nonce) -> Result<Criteria, ReplyProblem> {
    let mut o = document(reply, nonce)?;
    let criteria = list(&mut o, "criteria", |mut o| Stand {
        id: text(&mut o, &["id", "criterion"]).unwrap_or_default(),
        standing: text(&mut o, &["standing", "status"]).unwrap_or_default(),
        file: text(&mut o, &["file", "path"]),
        quote: text(&mut o, &["quote"]),
        reason: text(&mut o, &["reason"]).unwrap_or_default(),
    })?;
    for (i, stand) in criteria.iter().enumerate() {
        if stand.met().is_none() {
            return Err(ReplyProblem::repairable(format!(
                "`criteria[{i}].standing` is not met, unmet or unknown"
            )));
        }
        if criteria[..i]
            .iter()
            .any(|earlier| earlier.id.trim() == stand.id.trim())
        {
            return Err(ReplyProblem::repairable(format!(
                "`criteria[{i}]` speaks of a criterion a second time"
            )));
        }
    }
    Ok(Criteria {
        nonce: nonce.as_str().to_owned(),
        criteria,
    })
}

impl Stand {
    /// Returns the state of the criterion. `Some(None)` is unknown, and `None` is an invalid
    /// answer.
    pub fn met(&self) -> Option<Option<bool>> {
        match self.standing.trim().to_ascii_lowercase().as_str() {
            "met" => Some(Some(true)),
            "unmet" | "not met" | "not_met" => Some(Some(false)),
            "unknown" => Some(None),
            _ => None,
        }
    }
}

/// Parses the reply that judges whether a proposal can be implemented.
pub fn proposal(reply: &str, nonce: &Nonce) -> Result<Proposal, ReplyProblem> {
    let mut o = document(reply, nonce)?;
    let valid = o.take("valid").as_ref().and_then(boolean);
    let valid =
        valid.ok_or_else(|| ReplyProblem::repairable("`valid` is neither true nor false"))?;
    let issues = list(&mut o, "issues", |mut o| Flaw {
        severity: text(&mut o, &["severity"]).unwrap_or_default(),
        issue: text(&mut o, &["issue", "description", "message", "title"]).unwrap_or_default(),
        suggestion: text(&mut o, &["suggestion"]),
        quote: text(&mut o, &["quote"]),
    })?;
    if let Some(i) = issues.iter().position(|f| f.issue.is_empty()) {
        return Err(ReplyProblem::repairable(format!(
            "`issues[{i}]` says nothing"
        )));
    }
    if !valid && issues.is_empty() {
        return Err(ReplyProblem::repairable(
            "the reply is inconsistent: not valid, and no issues",
        ));
    }
    Ok(Proposal {
        nonce: nonce.as_str().to_owned(),
        valid,
        issues,
    })
}

/// Parses the reply that decides a disagreement.
pub fn decision(reply: &str, nonce: &Nonce) -> Result<Decision, ReplyProblem> {
    let mut o = document(reply, nonce)?;
    let side = text(&mut o, &["side"])
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if !matches!(side.as_str(), "floor_manager" | "judge") {
        return Err(ReplyProblem::repairable(
            "`side` is neither floor_manager nor judge",
        ));
    }
    let reasoning = text(&mut o, &["reasoning", "reason"]);
    let reasoning = reasoning.ok_or_else(|| ReplyProblem::repairable("`reasoning` is missing"))?;
    let quotes = list(&mut o, "quotes", |mut o| Passage {
        document: text(&mut o, &["document"]).unwrap_or_default(),
        quote: text(&mut o, &["quote"]).unwrap_or_default(),
    })?;
    Ok(Decision {
        nonce: nonce.as_str().to_owned(),
        side,
        reasoning,
        quotes,
    })
}

/// Reads a required list of objects.
pub(super) fn list<T>(
    o: &mut Object,
    name: &'static str,
    read: fn(Object) -> T,
) -> Result<Vec<T>, ReplyProblem> {
    match o.take(name) {
        Some(Json::List(list)) => entries(list, name, read),
        Some(_) => Err(ReplyProblem::repairable(format!("`{name}` is not a list"))),
        None => Err(ReplyProblem::repairable(format!("`{name}` is missing"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "000102030405060708090a0b0c0d0e0f";

    fn nonce() -> Nonce {
        Nonce::new(std::array::from_fn(|i| i as u8))
    }

    fn with(members: &str) -> String {
        format!("{{\"nonce\": \"{NONCE}\", {members}}}")
    }

    #[test]
    fn criteria_are_read_strictly() {
        let one = with(
            r#""criteria": [{"id": "AC1", "standing": "Met", "file": "a.rs", "quote": "x", "reason": "r"}]"#,
        );
        let stand = criteria(&one, &nonce()).unwrap().criteria.remove(0);
        assert_eq!(
            (stand.id.as_str(), stand.met(), stand.quote.as_deref()),
            ("AC1", Some(Some(true)), Some("x"))
        );
        for members in [
            r#""criteria": [{"id": "AC1", "standing": "mostly"}]"#,
            r#""criteria": [{"id": "AC1"}]"#,
            r#""criteria": [{"id": "AC1", "standing": "met"}, {"id": " AC1", "standing": "unmet"}]"#,
            r#""criteria": ["AC1 is met"]"#,
            r#""criteria": {}"#,
            r#""verdict": "PASS""#,
        ] {
            assert!(
                criteria(&with(members), &nonce()).unwrap_err().repairable,
                "{members}"
            );
        }
    }

    #[test]
    fn out_12_an_answer_without_the_nonce_is_none() {
        for reply in [
            "{\"criteria\": []}",
            "{\"nonce\": \"0\", \"valid\": true, \"issues\": [], \"criteria\": []}",
        ] {
            assert!(criteria(reply, &nonce()).is_err());
            assert!(proposal(reply, &nonce()).is_err());
            assert!(decision(reply, &nonce()).is_err());
        }
    }

    #[test]
    fn a_proposal_that_is_not_valid_says_why() {
        assert!(
            proposal(&with(r#""valid": true, "issues": []"#), &nonce())
                .unwrap()
                .valid
        );
        let said = with(
            r#""valid": false, "issues": [{"severity": "major", "issue": "no goal", "quote": null}]"#,
        );
        assert_eq!(
            proposal(&said, &nonce()).unwrap().issues[0].issue,
            "no goal"
        );
        for members in [
            r#""valid": false, "issues": []"#,
            r#""valid": "perhaps", "issues": []"#,
            r#""valid": true"#,
            r#""valid": true, "issues": [{"severity": "major"}]"#,
        ] {
            assert!(
                proposal(&with(members), &nonce()).unwrap_err().repairable,
                "{members}"
            );
        }
    }

    #[test]
    fn a_decision_names_one_side() {
        let said = with(
            r#""side": "judge", "reasoning": "r", "quotes": [{"document": "contract", "quote": "q"}]"#,
        );
        assert_eq!(decision(&said, &nonce()).unwrap().side, "judge");
        for members in [
            r#""side": "both", "reasoning": "r", "quotes": []"#,
            r#""side": "judge", "quotes": []"#,
            r#""side": "judge", "reasoning": "r""#,
        ] {
            assert!(
                decision(&with(members), &nonce()).unwrap_err().repairable,
                "{members}"
            );
        }
    }
}
