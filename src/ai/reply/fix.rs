//! Parses the plan of a fix, and the report of a model on the fix.

use super::counsel::list;
use super::json::{Json, Object};
use super::read::text;
use super::{ReplyProblem, document};
use crate::ai::ask::Nonce;
use crate::ai::claim::fix::{FixPlan, FixReport, PlanStep};

/// Steps of a plan, and files of a step, at most.
const MOST: usize = 50;

/// Parses the plan of a fix.
pub fn fix_plan(reply: &str, nonce: &Nonce) -> Result<FixPlan, ReplyProblem> {
    let mut o = document(reply, nonce)?;
    let summary = text(&mut o, &["summary"]).unwrap_or_default();
    let mut steps = list(&mut o, "steps", |mut o| PlanStep {
        text: text(&mut o, &["text", "step", "description"]).unwrap_or_default(),
        files: files(&mut o),
    })?;
    steps.retain(|s| !s.text.is_empty());
    if steps.is_empty() {
        return Err(ReplyProblem::repairable("`steps` is empty"));
    }
    steps.truncate(MOST);
    Ok(FixPlan {
        nonce: nonce.as_str().to_owned(),
        summary,
        steps,
    })
}

fn files(o: &mut Object) -> Vec<String> {
    let Some(Json::List(list)) = o.take("files") else {
        return Vec::new();
    };
    list.into_iter()
        .filter_map(Json::into_text)
        .take(MOST)
        .collect()
}

/// Parses the report on a fix.
pub fn fix_report(reply: &str, nonce: &Nonce) -> Result<FixReport, ReplyProblem> {
    let mut o = document(reply, nonce)?;
    let summary = text(&mut o, &["summary"]).unwrap_or_default();
    Ok(FixReport {
        nonce: nonce.as_str().to_owned(),
        summary,
        problem: text(&mut o, &["problem"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(members: &str) -> (String, Nonce) {
        let nonce = Nonce::new([7; 16]);
        (
            format!("{{\"nonce\": \"{}\", {members}}}", nonce.as_str()),
            nonce,
        )
    }

    #[test]
    fn a_plan_has_steps() {
        let (reply, nonce) =
            whole(r#""summary": "s", "steps": [{"text": "do", "files": ["a.py"]}, {"text": " "}]"#);
        let plan = fix_plan(&reply, &nonce).unwrap();
        assert_eq!(
            plan.steps,
            [PlanStep {
                text: "do".to_owned(),
                files: vec!["a.py".to_owned()]
            }]
        );
        for wrong in [
            r#""summary": "s", "steps": []"#,
            r#""summary": "s""#,
            r#""steps": "do""#,
        ] {
            let (reply, nonce) = whole(wrong);
            assert!(fix_plan(&reply, &nonce).unwrap_err().repairable, "{wrong}");
        }
    }

    #[test]
    fn a_report_may_name_a_problem() {
        let (reply, nonce) = whole(r#""summary": "s", "problem": null"#);
        assert_eq!(fix_report(&reply, &nonce).unwrap().problem, None);
        let (reply, nonce) = whole(r#""summary": "s", "problem": "no"#);
        assert!(fix_report(&reply, &nonce).is_err());
    }
}
