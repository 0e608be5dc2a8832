//! Removes the words of tickets from a review for a forge. Readers of the forge may not have access
//! to the tickets that the operator's token could read.

use crate::ai::UnmetRequirement;
use crate::context::{GatheredItem, Quotes};
use crate::finding::{Finding, Origin};
use crate::review::Review;
use std::borrow::Cow;

/// Returns the review for a forge. Only the keys of tickets remain: findings that cite a ticket
/// lose their texts, and other texts lose their quotes of a ticket.
pub fn for_forge(review: &Review) -> Cow<'_, Review> {
    if review.context.is_empty() {
        return Cow::Borrowed(review);
    }
    let quotes = Quotes::of(&review.context);
    let is_withheld = !unknown_tickets(review).is_empty();
    let mut out = review.clone();
    for finding in &mut out.findings {
        *finding = match finding.origin() {
            Origin::Backend(_) if is_withheld => without_texts(finding),
            _ => without_words(finding, &review.context, &quotes),
        };
        let waived = finding.waived.iter_mut().map(|w| &mut w.reason);
        for reason in waived.chain(finding.disposition.iter_mut().map(|d| &mut d.reason)) {
            *reason = reason_without_words(reason, &review.context, &quotes);
        }
    }
    if is_withheld {
        // Words of a ticket cannot be detected in these texts of models.
        out.models.missing.clear();
        out.models.compliance = None;
        out.models.opinions.clear();
        out.models.dropped.clear();
        for finding in &mut out.findings {
            finding.disputed = finding.disputed.take().map(|_| WITHHELD.to_owned());
        }
    }
    for missing in &mut out.models.missing {
        *missing = missing_without_words(missing, &review.context, &quotes);
    }
    for violation in out
        .models
        .compliance
        .iter_mut()
        .flat_map(|c| &mut c.violations)
    {
        violation.issue = quotes.remove(&violation.issue);
        violation.description = quotes.remove(&violation.description);
        violation.reference = violation
            .reference
            .as_deref()
            .map(|r| bare(r, &review.context));
        violation.recommendation = violation
            .recommendation
            .as_deref()
            .map(|r| quotes.remove(r));
    }
    for text in out.models.opinions.iter_mut().map(|o| &mut o.text) {
        *text = quotes.remove(text);
    }
    for text in out.models.dropped.iter_mut().map(|d| &mut d.claim) {
        *text = quotes.remove(text);
    }
    for text in out.notes.iter_mut().map(|n| &mut n.text) {
        *text = quotes.remove(text);
    }
    for item in &mut out.context {
        *item = GatheredItem {
            title: String::new(),
            text: String::new(),
            ..item.clone()
        };
    }
    Cow::Owned(out)
}

/// Replaces a text that may contain words of a ticket.
const WITHHELD: &str = "not shown here, because the review read tickets";

/// Returns the tickets of a review whose text is unknown. The texts of models are omitted for a
/// forge then, because words of the ticket cannot be detected in them.
pub fn unknown_tickets(review: &Review) -> Vec<&str> {
    review
        .context
        .iter()
        .filter(|item| item.is_unknown())
        .map(|item| item.reference.as_str())
        .collect()
}

/// Returns a finding of a model without the texts that the model wrote. The code and its position
/// stay.
fn without_texts(finding: &Finding) -> Finding {
    let title = format!("Finding of a model ({})", finding.rule_id());
    let message = format!(
        "The text is {WITHHELD} that are not known any more. Review the pull request again to show it."
    );
    // The title, the message, and then the other texts.
    let mut texts = [title, message].into_iter();
    let mut out = finding.with_texts(|_| texts.next().unwrap_or_default());
    out.disputed = None;
    out.drop_replacement();
    out
}

/// Returns the reason of a decision or waiver for a forge: without the words of the tickets of a
/// review.
pub fn reason_for_forge(reason: &str, review: &Review) -> String {
    reason_without_words(reason, &review.context, &Quotes::of(&review.context))
}

/// A stored review has no text of its tickets, so their words cannot be detected in a reason.
fn reason_without_words(reason: &str, items: &[GatheredItem], quotes: &Quotes<'_>) -> String {
    if !reason.trim().is_empty() && items.iter().any(GatheredItem::is_unknown) {
        return WITHHELD.to_owned();
    }
    quotes.remove(reason)
}

/// Returns the ticket that a citation names.
fn ticket_of<'i>(cited: &str, items: &'i [GatheredItem]) -> Option<&'i GatheredItem> {
    items.iter().find(|i| {
        cited
            .strip_prefix(&i.reference)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    })
}

/// Returns a citation without the heading of a ticket.
fn bare(cited: &str, items: &[GatheredItem]) -> String {
    ticket_of(cited, items).map_or_else(|| cited.to_owned(), |i| i.reference.clone())
}

/// Returns a finding without the words of private tickets. A finding about the whole change that
/// cites such a ticket gets a text that only names it.
fn without_words(finding: &Finding, items: &[GatheredItem], quotes: &Quotes<'_>) -> Finding {
    let ticket = finding
        .convention()
        .and_then(|cited| ticket_of(cited, items));
    let Some(ticket) = ticket.filter(|_| finding.file().is_none()) else {
        let mut out = finding.with_texts(|text| quotes.remove(text));
        out.disputed = finding.disputed.as_deref().map(|text| quotes.remove(text));
        // Code with replaced parts could not be applied.
        if finding
            .replacement()
            .is_some_and(|code| quotes.is_in_code(code))
        {
            out.drop_replacement();
        }
        return out;
    };
    let mut out = finding.with_texts(|_| String::new());
    out.disputed = finding.disputed.as_deref().map(|text| quotes.remove(text));
    out.retitle(
        format!("The change does not meet {}", ticket.reference),
        format!(
            "A requirement of {} is not met. The report of the review has its words.",
            ticket.reference
        ),
        ticket.reference.clone(),
    );
    out
}

/// Returns a missing requirement without the words of private tickets.
fn missing_without_words(
    missing: &UnmetRequirement,
    items: &[GatheredItem],
    quotes: &Quotes<'_>,
) -> UnmetRequirement {
    let ticket = missing
        .reference
        .as_deref()
        .and_then(|r| ticket_of(r, items));
    match ticket {
        Some(ticket) => UnmetRequirement {
            requirement: format!("a requirement of {}", ticket.reference),
            reference: Some(ticket.reference.clone()),
            severity: missing.severity,
        },
        None => UnmetRequirement {
            requirement: quotes.remove(&missing.requirement),
            ..missing.clone()
        },
    }
}
