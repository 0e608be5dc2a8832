//! Tests of the budget: no order of questions, retries and answers exceeds a limit.

use super::*;

const PRICE: Price = Price {
    input: 100.0,
    cached: 10.0,
    output: 100.0,
};

fn limits(requests: u32, usd: f64, tokens: Option<u64>) -> BudgetLimits {
    BudgetLimits {
        requests,
        usd,
        usd_is_set: true,
        tokens,
    }
}

fn want(bytes: usize, price: Option<&Price>) -> Want<'_> {
    Want {
        backend: "b",
        price,
        bytes,
        longest: LONGEST,
    }
}

#[track_caller]
fn granted(budget: &mut Budget, want: &Want<'_>) -> Ticket {
    match budget.reserve(want) {
        Reservation::Granted(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(budget: &mut Budget, want: &Want<'_>) -> String {
    match budget.reserve(want) {
        Reservation::Refused(limit) => limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mod_05_every_request_of_every_question_is_counted_before_it_is_sent() {
    let mut budget = Budget::new(limits(5, 1.0, None));
    budget.plan(2);
    let mut first = budget.open(13).unwrap();
    let mut second = budget.open(13).unwrap();
    assert_eq!((first, second), (2, 3));
    let mut sent = 0;
    while budget.take(&mut first).is_ok() {
        sent += 1;
    }
    // The other question still has its promised requests.
    assert_eq!(sent, 2);
    while budget.take(&mut second).is_ok() {
        sent += 1;
    }
    assert_eq!(sent, 5);
    assert_eq!(budget.open(1).unwrap_err(), "max_requests = 5");
}

#[test]
fn what_a_question_does_not_use_goes_to_others() {
    let mut budget = Budget::new(limits(4, 1.0, None));
    budget.plan(2);
    let mut first = budget.open(3).unwrap();
    budget.take(&mut first).unwrap();
    budget.close(first);
    assert_eq!(budget.open(13).unwrap(), 3);
}

#[test]
fn a_planned_question_keeps_its_request_whatever_others_retry() {
    let mut budget = Budget::new(limits(3, 1.0, None));
    budget.plan(3);
    let mut first = budget.open(13).unwrap();
    budget.take(&mut first).unwrap();
    assert_eq!(budget.take(&mut first).unwrap_err(), "max_requests = 3");
    assert_eq!((budget.open(13).unwrap(), budget.open(13).unwrap()), (1, 1));
}

#[test]
fn mod_05_the_answer_of_a_request_is_limited_to_what_is_left() {
    let mut budget = Budget::new(limits(10, 1.0, Some(3_000)));
    let ticket = granted(&mut budget, &want(3_000, None));
    assert_eq!(ticket.output, Some(2_000));
    assert!(matches!(
        budget.reserve(&want(300, None)),
        Reservation::Later
    ));
    budget.settle(
        ticket,
        &want(3_000, None),
        &Spent {
            input_tokens: 900,
            output_tokens: 100,
            ..Spent::default()
        },
    );
    assert_eq!(granted(&mut budget, &want(3_000, None)).output, Some(1_000));
    let mut small = Budget::new(limits(10, 1.0, Some(1_200)));
    assert_eq!(refused(&mut small, &want(3_000, None)), "--max-tokens 1200");
}

#[test]
fn mod_05_a_cost_by_the_price_of_the_policy_is_reserved() {
    // 1,000 input tokens cost $0.10, and so do 1,000 output tokens.
    let mut budget = Budget::new(limits(10, 1.0, None));
    let ticket = granted(&mut budget, &want(3_000, Some(&PRICE)));
    assert_eq!(ticket.output, Some(9_000));
    assert!(matches!(
        budget.reserve(&want(3_000, Some(&PRICE))),
        Reservation::Later
    ));
    let spent = Spent {
        input_tokens: 1_000,
        output_tokens: 7_500,
        ..Spent::default()
    };
    budget.settle(
        ticket,
        &want(3_000, Some(&PRICE)),
        &Spent {
            cost_usd: cost(&spent, Some(&PRICE)),
            ..spent
        },
    );
    assert!((budget.usd().unwrap() - 0.85).abs() < 1e-9);
    assert_eq!(
        granted(&mut budget, &want(3_000, Some(&PRICE))).output,
        Some(500)
    );
    assert_eq!(
        refused(
            &mut Budget::new(limits(10, 0.0, None)),
            &want(3, Some(&PRICE))
        ),
        "max_cost_usd = 0"
    );
    let free = Price::default();
    assert_eq!(
        granted(
            &mut Budget::new(limits(10, 0.0, None)),
            &want(3, Some(&free))
        )
        .output,
        None
    );
}

#[test]
fn mod_05_a_cost_that_the_provider_names_is_the_estimate_for_what_follows() {
    let mut budget = Budget::new(limits(10, 0.02, None));
    let first = granted(&mut budget, &want(3_000, None));
    // The price is still unknown, so the second request waits for the first.
    assert!(matches!(
        budget.reserve(&want(3_000, None)),
        Reservation::Later
    ));
    let spent = Spent {
        input_tokens: 900,
        output_tokens: 100,
        cost_usd: Some(0.015),
        ..Spent::default()
    };
    budget.settle(first, &want(3_000, None), &spent);
    assert_eq!(
        refused(&mut budget, &want(3_000, None)),
        "max_cost_usd = 0.02"
    );
    assert!(budget.usd_left() < 0.006);
}

#[test]
fn a_backend_without_a_price_does_not_wait_once_that_is_known() {
    let mut budget = Budget::new(limits(10, 0.02, None));
    let first = granted(&mut budget, &want(300, None));
    budget.settle(
        first,
        &want(300, None),
        &Spent {
            input_tokens: 100,
            output_tokens: 10,
            ..Spent::default()
        },
    );
    let _second = granted(&mut budget, &want(300, None));
    let _third = granted(&mut budget, &want(300, None));
    assert_eq!(budget.usd(), None);
}

#[test]
fn where_nothing_is_counted_the_estimate_stands() {
    let mut budget = Budget::new(limits(10, 1.0, Some(10_000)));
    let ticket = granted(&mut budget, &want(12_000, None));
    budget.settle(ticket, &want(12_000, None), &Spent::default());
    assert_eq!(
        granted(&mut budget, &want(3_000, None)).output,
        Some(10_000 - 5_500 - 1_000)
    );
}

#[test]
fn tools_are_offered_only_while_their_answers_can_be_paid() {
    let mut budget = Budget::new(limits(10, 1.0, Some(30_000)));
    budget.plan(1);
    let _ = budget.open(13).unwrap();
    assert!(budget.affords_tools(&want(6_000, None)));
    assert!(!budget.affords_tools(&want(60_000, None)));
    budget.plan(3);
    assert!(!budget.affords_tools(&want(6_000, None)));
}

#[test]
fn cached_tokens_have_their_own_price() {
    let price = Price {
        input: 3.0,
        cached: 0.3,
        output: 15.0,
    };
    let spent = Spent {
        input_tokens: 1_000_000,
        cached_tokens: 900_000,
        output_tokens: 100_000,
        ..Spent::default()
    };
    assert!((cost(&spent, Some(&price)).unwrap() - (0.3 + 0.27 + 1.5)).abs() < 1e-9);
    // Tokens written to the cache cost a quarter more.
    let written = Spent {
        written_tokens: 100_000,
        ..spent
    };
    assert!((cost(&written, Some(&price)).unwrap() - (0.375 + 0.27 + 1.5)).abs() < 1e-9);
    assert_eq!(
        cost(
            &Spent {
                cost_usd: Some(2.0),
                ..spent
            },
            Some(&price)
        ),
        Some(2.0)
    );
    assert_eq!(cost(&spent, None), None);
}
