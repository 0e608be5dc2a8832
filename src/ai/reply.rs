//! The one parser of replies. Pure.
//!
//! A reply is one JSON document that repeats the nonce of its prompt; a code fence around it is taken off, and so is
//! the thinking that some open models put in front. Everything else is a [`Problem`]: prose, a second document, a
//! wrong nonce, a bound that was hit. Inside of the document the parser is as tolerant as it can be without losing
//! a claim, since a small model that writes `"line": "42"` may still be right about the line.
//!
//! What is not repaired: a document without the nonce, or with another one, and one after which a second follows.
//! Either may be an answer that the change itself dictates; asked to mend it, a model would put the right nonce
//! into what somebody else wrote.

mod consistent;
mod json;
mod read;

use super::anchor::path::Names;
use super::ask::Nonce;
use super::claim::{Rebuttal, Reply};
use super::material::Shown;
use crate::diff::RepoPath;
use json::{Fault, Json, Object};

/// Bytes of a reply.
pub const MAX_BYTES: usize = 16 << 20;
/// Findings of a reply; as many violations, and as many missing requirements.
pub const MAX_FINDINGS: usize = 1_000;

/// Why a reply is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A lowercase fragment for people and for the request to mend it; quotes nothing of the reply but keys.
    pub message: String,
    /// The model may mend it when it is told.
    pub repairable: bool,
}

impl Problem {
    fn repairable(message: impl Into<String>) -> Self {
        Self { message: message.into(), repairable: true }
    }

    fn final_(message: impl Into<String>) -> Self {
        Self { message: message.into(), repairable: false }
    }
}

/// Reads the reply to a review prompt.
pub fn parse(text: &str, nonce: &Nonce) -> Result<Reply, Problem> {
    let (reply, extras) = read::reply(document(text, nonce)?)?;
    match consistent::contradiction(&reply, &extras) {
        Some(why) => Err(Problem::repairable(format!("the reply is inconsistent: {why}"))),
        None => Ok(Reply { nonce: nonce.as_str().to_owned(), ..reply }),
    }
}

/// Reads the reply to a request to refute a claim.
pub fn rebuttal(text: &str, nonce: &Nonce) -> Result<Rebuttal, Problem> {
    let rebuttal = read::rebuttal(document(text, nonce)?)?;
    Ok(Rebuttal { nonce: nonce.as_str().to_owned(), ..rebuttal })
}

/// Returns which of the files that were shown a reply does not account for, in order.
pub fn unaccounted<'a>(reply: &Reply, shown: impl IntoIterator<Item = &'a Shown>) -> Vec<RepoPath> {
    let shown: Vec<&Shown> = shown.into_iter().collect();
    let names = Names::new(shown.iter().copied());
    let named: Vec<&RepoPath> =
        reply.files_reviewed.iter().filter_map(|name| names.find(name)).map(|i| shown[i].path()).collect();
    let left = shown.iter().map(|f| f.path()).filter(|path| !named.contains(path));
    let mut left: Vec<RepoPath> = left.cloned().collect();
    left.dedup();
    left
}

/// Takes the one document out of a reply and checks whose answer it is.
fn document(text: &str, nonce: &Nonce) -> Result<Object, Problem> {
    if text.len() > MAX_BYTES {
        return Err(Problem::final_("the reply is larger than 16 MiB"));
    }
    // Broken or not: what looks like a reply and does not carry the nonce is not mended.
    let may_mend = text.contains(nonce.as_str()) || !text.contains("\"findings\"");
    let mut object = match split(text) {
        Ok(document) => match json::read(document) {
            Ok(Json::Object(object)) => object,
            Ok(_) => return Err(Problem::repairable("the reply is not a JSON object")),
            Err(Fault::Bound(bound)) => return Err(Problem::final_(format!("the reply has {bound}"))),
            Err(Fault::Syntax(e)) => {
                let message = format!("the reply is not a JSON document: {e}");
                return Err(Problem { message, repairable: may_mend });
            }
        },
        Err(problem) => return Err(Problem { repairable: problem.repairable && may_mend, ..problem }),
    };
    match object.take("nonce") {
        Some(Json::Text(said)) if said.trim() == nonce.as_str() => Ok(object),
        Some(_) => Err(Problem::final_("the reply has another nonce than the prompt")),
        None => Err(Problem::final_("the reply does not repeat the nonce")),
    }
}

/// Cuts away what may stand around a document, and nothing else.
fn split(text: &str) -> Result<&str, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    let text = match text.strip_prefix("<think>").and_then(|t| t.split_once("</think>")) {
        Some((_, answer)) => answer.trim_start(),
        None => text,
    };
    let (body, fenced) = match text.strip_prefix("```").and_then(|t| t.split_once('\n')) {
        Some((info, body)) if matches!(info.trim().to_ascii_lowercase().as_str(), "" | "json") => {
            (body.trim_start(), true)
        }
        _ => (text, false),
    };
    if !body.starts_with('{') {
        return Err(Problem::repairable(match body {
            "" => "the reply is empty",
            _ => "the reply is not a JSON document: it begins with something else",
        }));
    }
    let Some(end) = json::end_of_object(body) else { return Ok(body) };
    let (document, rest) = body.split_at(end);
    let rest = rest.trim();
    let rest = if fenced { rest.strip_prefix("```").unwrap_or(rest).trim() } else { rest };
    if rest.is_empty() {
        Ok(document)
    } else if rest.contains(['{', '[']) {
        Err(Problem::final_("a second document follows the first"))
    } else {
        Err(Problem::repairable("something follows the JSON document"))
    }
}
