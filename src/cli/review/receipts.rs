//! Receipts: checks one in place of asking models, and signs one for a review.

use super::{eprint_line, in_world};
use crate::cli::{Context, print_error};
use crate::error::{ExitStatus, Result};
use crate::receipt::{self, Issued, Standing};
use crate::request::ReviewRequest;
use crate::review::Review;
use crate::rounds::Done;
use crate::stop::Stop;
use crate::untrusted::Inert;

/// Use of receipts in place of model requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiptUse {
    /// No receipt is read.
    Own,
    /// Models are asked if no receipt is valid.
    ReceiptFirst,
    /// No model is asked.
    ReceiptOnly,
}

/// Verifies the receipt of the change. Returns the review if it takes the place of one with models:
/// the receipt is valid, or no model may be asked.
///
/// # Errors
///
/// As [`receipt::verify`].
pub(super) fn accepted(
    context: &Context,
    receipts: ReceiptUse,
    request: &ReviewRequest,
    stop: &Stop,
) -> Result<Option<Review>> {
    if receipts == ReceiptUse::Own {
        return Ok(None);
    }
    let (review, standing) = in_world(context, stop, |world| receipt::verify(request, world))?;
    if let (Standing::Refused(reasons), ReceiptUse::ReceiptFirst) = (standing, receipts) {
        for why in reasons {
            eprint_line(&format!("note: receipt: {}", Inert::new(why)));
        }
        return Ok(None);
    }
    Ok(Some(review))
}

/// Signs a receipt, and reports its path or why there is none.
pub(super) fn sign(context: &Context, asked: &ReviewRequest, done: &mut Done, stop: &Stop) {
    match receipt::issue(&done.review, asked, &context.env, stop) {
        Ok(Issued::Signed { key, apart }) => {
            let key = Inert::new(key.display().to_string());
            eprint_line(&format!(
                "receipt: signed with {key}, in {}",
                receipt::NOTES
            ));
            if let Some(why) = apart {
                eprint_line(&format!(
                    "note: receipt: the remote's receipts were not merged: {}",
                    Inert::new(why)
                ));
            }
            let [push, after] = receipt::recipe(asked);
            eprint_line(&format!("hint: {push}"));
            eprint_line(&format!("hint: if the push is rejected: {after}"));
        }
        Ok(Issued::NotNeeded(why)) => eprint_line(&format!("receipt: not needed: {why}")),
        Err(e) => {
            print_error(&e);
            // The requested receipt is missing. A worse exit code of the review stays.
            if done.review.exit == ExitStatus::Pass {
                done.review.exit = e.status();
            }
        }
    }
}
