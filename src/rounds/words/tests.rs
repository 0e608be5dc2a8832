//! Tests of rounds as text for a prompt.

use super::super::sample::{claim, explains, report, rule, stored};
use super::*;
use crate::wire::stored::Explanation;
use crate::wire::{Severity, Waiver};

#[test]
fn a_round_reads_as_it_went() {
    let small = Finding {
        severity: Severity::Minor,
        blocking: false,
        disputed: Some("why".to_owned()),
        ..claim(3, "Slow")
    };
    let whole = Finding {
        file: None,
        line: None,
        message: "No test\ncovers it.".to_owned(),
        blocking: false,
        ..claim(1, "No test")
    };
    let waived = Finding {
        waived: Some(Waiver {
            reason: "x".to_owned(),
            actor: "y".to_owned(),
            link: None,
        }),
        ..rule("py-eval", 9)
    };
    let before = stored(
        report(2, vec![whole, small, claim(21, "Off by one"), waived]),
        None,
    );
    let mut response = explains("F2", "it runs once,\nat start");
    response.addressed = vec!["F3".to_owned()];
    response.modified_files = vec!["a.rs".to_owned()];
    response.questions = vec!["is a list needed?".to_owned()];
    response.text = Some("thanks".to_owned());
    let told = round(&before, Some(&response), Some("The bound is right now."));
    assert_eq!(
        told.text,
        "Findings of round 2:\n\
         - F3 a.rs:21 major: Off by one\n  Off by one.\n\
         - F1 the change as a whole major: No test\n  No test covers it.\n\
         - F2 a.rs:3 minor, disputed: Slow\n  Slow.\n\
         Addressed according to the author:\n- F3\n\
         Explanations of the author:\n- F2: it runs once, at start\n\
         Files changed by the author:\n- a.rs\n\
         Questions of the author:\n- is a list needed?\n\
         Comment of the author:\n- thanks\n\
         Summary of round 3 by the author: The bound is right now.\n"
    );
    assert_eq!((told.explained, told.all), (vec!["a.rs".to_owned()], false));
    let nothing = round(&stored(report(1, vec![]), None), None, None);
    assert_eq!(nothing.text, "Findings of round 1:\nnone\n");
}

#[test]
fn what_is_about_no_file_is_asked_about_everywhere() {
    fn before() -> Review {
        let whole = Finding {
            file: None,
            line: None,
            ..claim(1, "No test")
        };
        stored(report(1, vec![whole, claim(2, "Slow")]), None)
    }
    fn ask(names: &[&str]) -> (Vec<String>, bool) {
        let explanations = names.iter().map(|n| Explanation {
            finding: Some((*n).to_owned()),
            text: "x".to_owned(),
        });
        let response = Response {
            explanations: explanations.collect(),
            ..Response::default()
        };
        let told = round(&before(), Some(&response), None);
        (told.explained, told.all)
    }
    let file = vec!["a.rs".to_owned()];
    assert_eq!(ask(&["F1"]), (vec![], true));
    assert_eq!(ask(&["f2", "F2", "F9"]), (file.clone(), false));
    assert_eq!(ask(&["F1", "F2"]), (file, true));
    let general = Explanation {
        finding: None,
        text: "all of it is right".to_owned(),
    };
    let told = round(
        &before(),
        Some(&Response {
            explanations: vec![general],
            ..Response::default()
        }),
        None,
    );
    assert_eq!((told.explained, told.all), (vec![], false));
}

#[test]
fn a_round_is_bounded_whatever_it_holds() {
    let long = "word ".repeat(10_000);
    let all = (0..500)
        .map(|n| Finding {
            message: long.clone(),
            title: long.clone(),
            ..claim(n + 1, "x")
        })
        .collect();
    let before = stored(report(1, all), None);
    let explanation = Explanation {
        finding: Some(long.clone()),
        text: long.clone(),
    };
    let response = Response {
        explanations: vec![explanation; 500],
        text: Some(long.clone()),
        ..Response::default()
    };
    let told = round(&before, Some(&response), Some(&long));
    assert!(told.text.len() < 14 << 10, "{}", told.text.len());
    assert!(
        told.text.contains("\nand 450 more\n")
            && told.text.contains("\nExplanations of the author:\n")
    );
    let few = round(
        &stored(report(1, vec![claim(1, &long)]), None),
        Some(&response),
        Some(&long),
    );
    assert!(
        few.text.contains("Summary of round 2 by the author"),
        "the author's response leaves room for the summary"
    );
}
