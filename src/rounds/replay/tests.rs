//! Tests of stored rounds under other policies.

use super::super::sample::{claim, report, rule, stored};
use super::*;
use crate::finding::{Confidence, Severity};
use crate::policy::RulesPolicy;
use crate::verdict::CUT_OFF;
use crate::wire::{Verdict, Waiver};

fn rules() -> RuleSet {
    RuleSet::new(&RulesPolicy::default(), &[]).unwrap()
}

/// Returns a stored round, judged by the default policy.
fn known(findings: Vec<Finding>, change: impl Fn(&mut Report)) -> stored::Review {
    let mut report = report(1, findings);
    report.tool.rules_hash = rules().hash().to_owned();
    change(&mut report);
    stored(report, None)
}

fn policy(change: impl Fn(&mut Policy)) -> Policy {
    let mut policy = Policy::default();
    policy.review.backends = vec!["m".to_owned()];
    change(&mut policy);
    policy
}

/// Returns a policy that ignores a path.
fn ignores(glob: &str) -> Policy {
    let text = format!(
        "version = 1\nignore = ['{glob}']\n[review]\nbackends = ['m']\n[backend.m]\nkind = 'openai'\n"
    );
    let user = crate::policy::PolicyFile {
        name: "user".to_owned(),
        bytes: text.into_bytes(),
    };
    let env = crate::env::Env::from_pairs(std::path::PathBuf::from("/"), [] as [(&str, &str); 0]);
    let overrides = crate::request::Overrides::default();
    let sources = crate::policy::Sources {
        user: Some(&user),
        project: None,
        env: &env,
        overrides: &overrides,
    };
    crate::policy::load(&sources).unwrap().policy
}

fn replayed(stored: &stored::Review, policy: &Policy) -> Replayed {
    round(stored, policy, &rules(), &Decisions::new())
}

fn whats(r: &Replayed) -> Vec<String> {
    r.because
        .iter()
        .map(|b| format!("{} {}", b.id.as_deref().unwrap_or("-"), b.what))
        .collect()
}

/// Returns a finding of a built-in rule with default severity major.
fn builtin() -> Finding {
    let id = crate::rules::describe_all()
        .find(|d| d.severity == Severity::Major)
        .unwrap()
        .id
        .to_owned();
    rule(&id, 3)
}

#[test]
fn the_same_policy_changes_nothing() {
    let samples = [
        known(vec![claim(1, "x"), builtin()], |_| {}),
        known(vec![], |_| {}),
        known(vec![], |r| {
            (r.outcome, r.verdict, r.exit_code) =
                (wire::Outcome::Incomplete, Verdict::Incomplete, 3);
            r.coverage.failed = vec![Failed {
                file: None,
                reason: "m: refused".to_owned(),
            }];
        }),
        known(vec![], |r| r.outcome = wire::Outcome::NothingToReview),
    ];
    for s in samples {
        let r = replayed(&s, &policy(|_| {}));
        assert_eq!(
            (r.flips, r.because.len(), r.was.verdict),
            (false, 0, r.would_be.verdict)
        );
        assert_eq!(r.unknown, [] as [String; 0]);
    }
}

#[test]
fn each_key_that_judges_is_taken_into_account() {
    let one = known(vec![builtin()], |_| {});
    let id = one.report.findings[0].rule_id.clone();
    let model = known(
        vec![Finding {
            confidence: wire::Confidence::Medium,
            ..claim(1, "x")
        }],
        |_| {},
    );
    let minor = known(
        vec![Finding {
            severity: wire::Severity::Minor,
            blocking: false,
            ..claim(1, "x")
        }],
        |r| {
            r.verdict = Verdict::Warn;
        },
    );
    let cut = known(vec![], |r| {
        (r.outcome, r.verdict, r.exit_code) = (wire::Outcome::Incomplete, Verdict::Incomplete, 3);
        r.coverage.failed = vec![Failed {
            file: Some("b.rs".to_owned()),
            reason: format!("{CUT_OFF} max_requests = 1"),
        }];
    });
    let let_through = known(vec![], |r| {
        r.coverage.skipped = vec![Skipped {
            file: "b.rs".to_owned(),
            reason: "limit".to_owned(),
        }];
    });
    for (what, stored, new, verdict, exit, because) in [
        (
            "disabled",
            &one,
            policy(|p| p.rules.disable = vec![id.clone()]),
            Verdict::Pass,
            0,
            "F1 gone: the rule is disabled",
        ),
        (
            "milder",
            &one,
            policy(|p| p.rules.severity = vec![(id.clone(), Severity::Minor)]),
            Verdict::Warn,
            0,
            "F1 no longer blocks: severity minor instead of major",
        ),
        (
            "thresholds",
            &one,
            policy(|p| p.block_on = vec![Severity::Critical]),
            Verdict::Warn,
            0,
            "F1 no longer blocks: severity major",
        ),
        (
            "stricter",
            &minor,
            policy(|p| p.block_on = vec![Severity::Minor]),
            Verdict::Block,
            1,
            "F1 blocks: severity minor",
        ),
        (
            "confidence",
            &model,
            policy(|p| p.min_confidence = Confidence::High),
            Verdict::Warn,
            0,
            "F1 no longer blocks: confidence medium is below min_confidence",
        ),
        (
            "ignored",
            &one,
            ignores("a.*"),
            Verdict::Pass,
            0,
            "F1 gone: its file is ignored",
        ),
        (
            "truncated",
            &cut,
            policy(|p| p.on_truncated = OnIncomplete::Warn),
            Verdict::Warn,
            0,
            "- may be cut off: on_truncated = \"warn\"",
        ),
        (
            "not truncated",
            &let_through,
            policy(|_| {}),
            Verdict::Incomplete,
            3,
            "- was cut off: on_truncated = \"fail\"",
        ),
        (
            "need not be looked at",
            &cut,
            ignores("b.rs"),
            Verdict::Pass,
            0,
            "- not reviewed: ignored",
        ),
    ] {
        let r = replayed(stored, &new);
        assert_eq!(
            (r.would_be.verdict, r.would_be.exit_code, r.flips),
            (verdict, exit, true),
            "{what}: {r:?}"
        );
        assert_eq!(whats(&r), [because], "{what}");
    }
    // Another exit code of an incomplete review is not another verdict.
    let r = replayed(&cut, &policy(|p| p.on_incomplete = OnIncomplete::Warn));
    assert_eq!(
        (r.would_be.verdict, r.would_be.exit_code, r.flips),
        (Verdict::Incomplete, 0, false)
    );
}

#[test]
fn what_a_person_let_through_stays_let_through() {
    let waived = Finding {
        blocking: false,
        waived: Some(Waiver {
            reason: "x".to_owned(),
            actor: "y".to_owned(),
            link: None,
        }),
        ..builtin()
    };
    let r = replayed(
        &known(vec![waived], |_| {}),
        &policy(|p| p.block_on = vec![Severity::Suggestion]),
    );
    assert_eq!((r.would_be.verdict, r.flips), (Verdict::Pass, false));
}

#[test]
fn what_cannot_be_known_is_said() {
    let stored = known(vec![], |r| {
        r.tool.rules_hash = "0".repeat(16);
        r.coverage.skipped = vec![Skipped {
            file: "vendor/x.js".to_owned(),
            reason: "ignored".to_owned(),
        }];
    });
    let r = replayed(
        &stored,
        &policy(|p| p.review.backends = vec!["other".to_owned()]),
    );
    assert_eq!(
        r.unknown,
        [
            "findings of other, which did not run then",
            "findings of m count, although the policy does not name it",
            "findings in 1 file that were ignored then",
            "findings of rules that were not active then",
        ]
    );
}
