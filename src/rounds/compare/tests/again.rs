//! Findings that come back, and findings at the position of fixed ones.

use super::*;

#[test]
fn what_comes_back_is_reopened() {
    let case = SessionCase::first(BAD, vec![off_by_one(21)]).then(&[(20, "good")], vec![]);
    let (since, _, now) = case.compare(BAD, vec![off_by_one(21)]);
    assert_eq!(told(&since), ["reopened F1 F1"]);
    assert_eq!((since.round, since.reopened), (2, 1));
    // Also in other words. Another issue at the position is not reopened, but it is reported.
    let (since, ..) = case.compare(
        BAD,
        vec![Finding {
            quote: "bad".to_owned(),
            ..claim(21, "Loop is off by one")
        }],
    );
    assert_eq!(told(&since), ["reopened F1 F1"]);
    let (since, _, other) = case.compare(&[(20, "worse")], vec![claim(21, "Reads a freed buffer")]);
    assert_eq!(told(&since), ["introduced_by_fix - F1"]);
    for (report, with) in [(now, BAD), (other, &[(20, "worse")][..])] {
        let again = again(&case, with, &report);
        assert_eq!(again.len(), 1, "{with:?}");
        assert_eq!(
            (again[0].line, again[0].previous_id.as_str(), again[0].round),
            (Some(21), "F1", 1)
        );
    }
    let (_, _, far) = case.compare(
        &[(20, "good"), (30, "x")],
        vec![claim(32, "Leaks a handle")],
    );
    assert_eq!(again(&case, &[(20, "good"), (30, "x")], &far), []);
}

fn again(case: &SessionCase, with: &[(u32, &str)], report: &Report) -> Vec<Again> {
    let base = text(&[]);
    let stored: Vec<_> = case
        .rounds
        .iter()
        .map(|(t, r, s)| {
            let mut r = r.clone();
            r.source = report.source.clone();
            (stored(r, s.clone()), change("a.rs", &base, t))
        })
        .collect();
    let earlier: Vec<_> = stored
        .iter()
        .map(|(review, change)| Earlier {
            review,
            response: None,
            change,
            cover: Cover::Whole,
        })
        .collect();
    let now = change("a.rs", &base, &text(with));
    let current = Current {
        change: RoundChange {
            text: &now,
            left_out: &[],
        },
        source: &report.source,
        look: &case.beside,
    };
    let comparison = Comparison::new(&earlier, &current);
    comparison.again(report, &comparison.since(report))
}
