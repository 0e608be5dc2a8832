//! The ledger of costs of background reviews, by day. Pure.
//!
//! Before a review starts, it reserves its maximum cost. When it ends, the actual cost replaces the
//! reservation. A killed review leaves its reservation, so that the cost of a day is never counted
//! too low.

use crate::wire::background::{Day, Spending, VERSION};

/// Days that are kept, at most.
const DAYS: usize = 31;
/// USD below which a review is not worth starting.
const LEAST: f64 = 0.001;

/// Returns an empty ledger.
pub(super) fn empty() -> Spending {
    Spending {
        version: VERSION,
        ..Spending::default()
    }
}

/// Returns the cost and the reservations of a day.
pub(super) fn of(spending: &Spending, day: &str) -> (f64, f64) {
    // The sum of no numbers is -0.0.
    spending.days.get(day).map_or((0.0, 0.0), |d| {
        (d.spent, d.reserved.values().sum::<f64>() + 0.0)
    })
}

/// Reserves up to `want` USD of the rest of `max`, under a name; `None` if nothing is left.
pub(super) fn reserve(
    spending: &mut Spending,
    day: &str,
    name: &str,
    want: f64,
    max: f64,
) -> Option<f64> {
    let (spent, reserved) = of(spending, day);
    let left = max - spent - reserved;
    if left < LEAST {
        return None;
    }
    let amount = want.min(left).max(0.0);
    entry(spending, day)
        .reserved
        .insert(name.to_owned(), amount);
    while spending.days.len() > DAYS {
        spending.days.pop_first();
    }
    Some(amount)
}

/// Replaces a reservation by the cost.
pub(super) fn settle(spending: &mut Spending, day: &str, name: &str, cost: f64) {
    let entry = entry(spending, day);
    if entry.reserved.remove(name).is_some() {
        entry.spent += cost;
    }
}

fn entry<'s>(spending: &'s mut Spending, day: &str) -> &'s mut Day {
    spending.days.entry(day.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: &str = "2026-01-31";

    #[test]
    fn a_review_gets_what_the_day_leaves() {
        let mut ledger = empty();
        assert_eq!(reserve(&mut ledger, TODAY, "a", 1.0, 1.5), Some(1.0));
        assert_eq!(reserve(&mut ledger, TODAY, "b", 1.0, 1.5), Some(0.5));
        assert_eq!(reserve(&mut ledger, TODAY, "c", 1.0, 1.5), None);
        settle(&mut ledger, TODAY, "a", 0.25);
        assert_eq!(of(&ledger, TODAY), (0.25, 0.5));
        assert_eq!(reserve(&mut ledger, TODAY, "c", 1.0, 1.5), Some(0.75));
    }

    #[test]
    fn a_review_that_was_killed_counts_with_all_that_it_might_have_cost() {
        let mut ledger = empty();
        reserve(&mut ledger, TODAY, "killed", 1.0, 1.0);
        assert_eq!(reserve(&mut ledger, TODAY, "next", 1.0, 1.0), None);
        assert_eq!(
            reserve(&mut ledger, "2026-02-01", "next", 1.0, 1.0),
            Some(1.0),
            "a day has its own limit"
        );
    }

    #[test]
    fn a_limit_of_nothing_lets_nothing_run() {
        assert_eq!(reserve(&mut empty(), TODAY, "a", 1.0, 0.0), None);
    }

    #[test]
    fn a_cost_is_counted_once() {
        let mut ledger = empty();
        reserve(&mut ledger, TODAY, "a", 1.0, 5.0);
        settle(&mut ledger, TODAY, "a", 0.5);
        settle(&mut ledger, TODAY, "a", 0.5);
        assert_eq!(of(&ledger, TODAY), (0.5, 0.0));
    }

    #[test]
    fn old_days_are_dropped() {
        let mut ledger = empty();
        for day in 1..=40 {
            reserve(&mut ledger, &format!("2026-02-{day:02}"), "a", 1.0, 1.0);
        }
        assert_eq!(ledger.days.len(), DAYS);
        assert!(ledger.days.contains_key("2026-02-40"));
    }
}
