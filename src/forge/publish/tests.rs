//! Tests of plans, with generated reviews and comments.

use super::{
    Account, Comment, CommentPlace, MOST_INLINE, Parts, PublishPlan, Selection, Situation, plan,
};
use crate::finding::{Category, Decision, Disposition, Finding, Severity, Waiver};
use crate::forge::lines::ShownLines;
use crate::forge::mark::{By, CommentMark, MarkForm, MarkSubject};
use crate::report::sample;
use crate::review::{Record, Review};
use crate::verdict::Outcome;

const MANY: u32 = 60;

fn finding(line: u32, severity: Severity) -> Finding {
    let text = format!("+call({line})");
    let sketch = sample::sketch(
        "x",
        severity,
        Category::Bug,
        "Wrong call",
        "This call is wrong.",
    );
    sketch
        .code("new.rs", line, line, "call", &[text.as_bytes()])
        .done()
}

fn review(findings: Vec<Finding>) -> Review {
    Review {
        findings,
        ..sample::clean()
    }
}

/// Returns the lines of a new file.
fn lines() -> ShownLines {
    let mut text = format!(
        "diff --git a/new.rs b/new.rs\nnew file mode 100644\n--- /dev/null\n+++ b/new.rs\n@@ -0,0 +1,{MANY} @@\n"
    );
    (1..=MANY).for_each(|n| text.push_str(&format!("+call({n})\n")));
    ShownLines::of(&Record {
        text: text.into_bytes(),
        left_out: Vec::new(),
    })
}

fn me() -> Account {
    Account {
        id: "7".to_owned(),
        name: "robot".to_owned(),
    }
}

/// Plans comments on lines.
fn planned(
    review: &Review,
    there: &[Comment],
    change: impl FnOnce(&mut Situation<'_>),
) -> PublishPlan {
    let (lines, me, selection) = (lines(), me(), Selection::default());
    let mut now = Situation {
        review,
        lines: &lines,
        parts: Parts {
            comments: true,
            summary: false,
            status: false,
        },
        whole: true,
        own_account: &me,
        existing: there,
        has_all_comments: true,
        form: MarkForm::Html,
        flavor: super::Flavor::Github,
        selection: &selection,
    };
    change(&mut now);
    plan(&now)
}

/// Returns an own comment about a finding that is not in the review.
fn old(by: By) -> Comment {
    let about = MarkSubject::Finding {
        fingerprint: "ab".repeat(16),
        by,
        ended: false,
    };
    let body = CommentMark::of(about, "old").sign("old", MarkForm::Html);
    Comment {
        id: "1".to_owned(),
        author: me(),
        body,
        is_inline: true,
        ..Comment::default()
    }
}

/// Returns the position of a comment that was written on a spot.
fn stands(spot: &super::CommentSpot) -> CommentPlace {
    CommentPlace::Lines {
        path: spot.path.clone(),
        first: Some(spot.first.new),
        last: spot.last.new,
    }
}

/// Returns the comments that exist after a plan was carried out.
fn done(plan: &PublishPlan) -> Vec<Comment> {
    let comments = plan.inline.iter().enumerate().map(|(i, inline)| Comment {
        id: i.to_string(),
        author: me(),
        body: inline.body.clone(),
        is_inline: true,
        place: stands(&inline.spot),
        ..Comment::default()
    });
    comments.collect()
}

#[test]
fn the_worst_findings_get_the_comments() {
    let mut findings: Vec<_> = (1..MANY).map(|n| finding(n, Severity::Minor)).collect();
    findings.push(finding(MANY, Severity::Critical));
    let review = review(findings);
    let first = planned(&review, &[], |_| {});
    assert_eq!(
        (first.inline.len(), first.beyond),
        (MOST_INLINE, MANY as usize - MOST_INLINE)
    );
    assert_eq!(first.inline[0].spot.last.new, MANY);
    // Existing comments count.
    let second = planned(&review, &done(&first), |_| {});
    assert_eq!(
        (second.inline.len(), second.edits.len(), second.beyond),
        (0, 0, MANY as usize - MOST_INLINE)
    );
}

#[test]
fn only_who_looked_can_say_that_a_finding_is_gone() {
    let nothing = review(Vec::new());
    fn ends(review: &Review, by: By, whole: bool) -> usize {
        planned(review, &[old(by)], |now| now.whole = whole)
            .edits
            .len()
    }
    assert_eq!(ends(&nothing, By::Rules, true), 1);
    assert_eq!(ends(&nothing, By::Rules, false), 0);
    assert_eq!(ends(&nothing, By::Model, true), 0);
    let mut asked = review(Vec::new());
    asked.models.asked = vec!["m".to_owned()];
    assert_eq!(ends(&asked, By::Model, true), 1);
    asked.outcome = Outcome::Incomplete;
    assert_eq!(
        (ends(&asked, By::Model, true), ends(&asked, By::Rules, true)),
        (0, 0)
    );
}

#[test]
fn ci_08_a_mark_in_the_comment_of_another_account_is_no_mark() {
    let review = review(vec![finding(3, Severity::Major)]);
    let mut theirs = done(&planned(&review, &[], |_| {}));
    for author in [
        Account {
            id: "8".to_owned(),
            name: "robot".to_owned(),
        },
        Account {
            id: String::new(),
            name: "Robot".to_owned(),
        },
        Account::default(),
    ] {
        theirs[0].author = author;
        let plan = planned(&review, &theirs, |_| {});
        assert_eq!((plan.inline.len(), plan.edits.len()), (1, 0));
    }
}

#[test]
fn a_person_who_closed_a_conversation_has_the_last_word() {
    let review = review(vec![finding(3, Severity::Major)]);
    let mut there = done(&planned(&review, &[], |_| {}));
    let other = CommentMark::of(
        CommentMark::read(&there[0].body).unwrap().about,
        "other words",
    );
    there[0].body = other.sign("other words", MarkForm::Html);
    assert_eq!(planned(&review, &there, |_| {}).edits.len(), 1);
    there[0].resolved = true;
    assert_eq!(planned(&review, &there, |_| {}), PublishPlan::default());
}

#[test]
fn what_two_runs_wrote_at_the_same_time_is_one_comment_in_the_end() {
    let review = review(vec![finding(3, Severity::Major)]);
    let one = done(&planned(&review, &[], |_| {}));
    let both = [
        one[0].clone(),
        Comment {
            id: "2".to_owned(),
            ..one[0].clone()
        },
    ];
    let plan = planned(&review, &both, |_| {});
    assert_eq!((plan.inline.len(), plan.edits.len()), (0, 1));
    assert_eq!(
        (plan.edits[0].comment.id.as_str(), plan.edits[0].resolve),
        ("2", Some(true))
    );
}

#[test]
fn nothing_new_is_written_where_not_all_comments_were_read() {
    let review = review(vec![finding(3, Severity::Major)]);
    let plan = planned(&review, &[], |now| {
        now.has_all_comments = false;
        now.parts.summary = true;
    });
    assert_eq!(plan, PublishPlan::default());
}

#[test]
fn every_base_has_a_status_of_its_own() {
    let names = [
        "main",
        "release/1",
        "release-1",
        &"x".repeat(24),
        &"x".repeat(25),
        &"x".repeat(26),
        "é",
        "è",
    ];
    let keys: std::collections::BTreeSet<String> =
        names.iter().map(|n| super::context(n)).collect();
    assert_eq!(keys.len(), names.len(), "{keys:?}");
    assert!(keys.contains("claude-reviewer-main") && keys.contains("claude-reviewer-release-1"));
    assert!(
        keys.iter()
            .all(|k| k.is_ascii() && k.len() <= 40 && !k.contains('/')),
        "{keys:?}"
    );
}

#[test]
fn a_review_of_a_part_moves_no_comment_on_lines_that_it_does_not_know() {
    let review = review(vec![finding(3, Severity::Major)]);
    let there = done(&planned(&review, &[], |_| {}));
    let none: &'static ShownLines = Box::leak(Box::default());
    let of_a_part = planned(&review, &there, |now| {
        (now.whole, now.lines) = (false, none);
    });
    assert_eq!(of_a_part, PublishPlan::default());
    // The page of the whole change does not show them any longer.
    let plan = planned(&review, &there, |now| now.lines = none);
    assert_eq!(
        (plan.inline.len(), plan.edits.len(), plan.beyond),
        (0, 1, 1)
    );
    assert!(plan.edits[0].ends && plan.edits[0].body.contains("on other lines"));
}

fn decided(finding: &Finding, decision: Decision, reason: &str) -> (String, Disposition) {
    let expires = (decision == Decision::Deferred).then_some(jiff::civil::date(2027, 1, 31));
    let disposition = Disposition {
        decision,
        reason: reason.to_owned(),
        owner: "Ada <a@b>".to_owned(),
        expires,
    };
    (finding.fingerprint().as_str().to_owned(), disposition)
}

/// Plans comments and summary under decisions.
fn selected(review: &Review, there: &[Comment], selection: &Selection) -> PublishPlan {
    let (lines, me) = (lines(), me());
    plan(&Situation {
        review,
        lines: &lines,
        parts: Parts {
            comments: true,
            summary: true,
            status: false,
        },
        whole: true,
        own_account: &me,
        existing: there,
        has_all_comments: true,
        form: MarkForm::Html,
        flavor: super::Flavor::Github,
        selection,
    })
}

#[test]
fn only_accepted_findings_are_published_once_some_were_decided() {
    let review = review(vec![
        finding(1, Severity::Major),
        finding(2, Severity::Major),
        finding(3, Severity::Major),
    ]);
    let there = done(&planned(&review, &[], |_| {}));
    let mut selection = Selection {
        accepted_only: true,
        ..Selection::default()
    };
    let f = &review.findings;
    selection.decided.extend([
        decided(&f[0], Decision::Accepted, ""),
        decided(&f[1], Decision::Rejected, "x"),
    ]);
    let fresh = selected(&review, &[], &selection);
    assert_eq!(
        fresh
            .inline
            .iter()
            .map(|i| i.spot.last.new)
            .collect::<Vec<_>>(),
        [1]
    );
    let summary = fresh.summary.unwrap();
    assert!(
        summary.contains("Findings not listed: 1 without a decision, 1 rejected or deferred."),
        "{summary}"
    );
    // The comment about the finding without a decision is unchanged.
    let later = selected(&review, &there, &selection);
    assert_eq!((later.inline.len(), later.edits.len()), (0, 1));
    assert!(later.edits[0].ends && later.edits[0].resolve == Some(true));
    assert!(
        later.edits[0]
            .body
            .starts_with("**Rejected:** still found at "),
        "{}",
        later.edits[0].body
    );
    // Without `accepted_only`, only the rejected finding is left out.
    selection.accepted_only = false;
    assert_eq!(selected(&review, &[], &selection).inline.len(), 2);
}

#[test]
fn why_a_finding_was_set_aside_is_short_and_inert() {
    let review = review(vec![finding(1, Severity::Major)]);
    let there = done(&planned(&review, &[], |_| {}));
    let reason = format!("later\n<b>@ada</b> {}", "x".repeat(1000));
    let text = body_after(&review, &there, Decision::Deferred, &reason);
    assert!(
        text.starts_with("**Deferred until 2027-01-31:** still found at "),
        "{text}"
    );
    assert!(
        !text.contains("<b>") && !text.contains("Ada") && text.len() < 600,
        "{text}"
    );
    assert!(body_after(&review, &there, Decision::Rejected, " ").contains("no reason was given"));
}

#[test]
fn a_decision_of_the_review_is_named_if_the_person_has_accepted_the_finding() {
    let mut review = review(vec![finding(1, Severity::Major)]);
    let there = done(&planned(&review, &[], |_| {}));
    let (_, shared) = decided(&review.findings[0], Decision::Rejected, "not our code");
    review.findings[0].disposition = Some(shared);
    let text = body_after(&review, &there, Decision::Accepted, "right");
    assert!(
        text.starts_with("**Rejected:**") && text.contains("not our code"),
        "{text}"
    );
}

/// Returns the new text of the first finding's comment after a decision.
fn body_after(review: &Review, there: &[Comment], decision: Decision, reason: &str) -> String {
    let decided = [decided(&review.findings[0], decision, reason)]
        .into_iter()
        .collect();
    let edits = selected(
        review,
        there,
        &Selection {
            decided,
            ..Selection::default()
        },
    )
    .edits;
    edits
        .into_iter()
        .find(|e| e.comment.is_inline)
        .unwrap()
        .body
}

#[test]
fn a_finding_that_the_rounds_found_fixed_is_resolved_whoever_found_it() {
    let nothing = review(Vec::new());
    let mut selection = Selection::default();
    assert_eq!(
        selected(&nothing, &[old(By::Model)], &selection)
            .edits
            .len(),
        0
    );
    selection.fixed.insert("ab".repeat(16));
    let edits = selected(&nothing, &[old(By::Model)], &selection).edits;
    assert!(
        edits.len() == 1 && edits[0].body.starts_with("**Resolved:**"),
        "{edits:?}"
    );
}

#[test]
fn the_comment_that_a_reply_waives_stays_as_it_is() {
    let mut review = review(vec![finding(1, Severity::Major)]);
    let there = done(&planned(&review, &[], |_| {}));
    for (link, count) in [(None, 1), (Some("https://forge.example/r5".to_owned()), 0)] {
        review.findings[0].waived = Some(Waiver {
            reason: "x".to_owned(),
            actor: "@mara".to_owned(),
            link,
        });
        assert_eq!(planned(&review, &there, |_| {}).edits.len(), count);
    }
}
