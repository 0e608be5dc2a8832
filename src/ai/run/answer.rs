//! A question to a backend, and the ways in which it can end.

use crate::ai::ask::{Begun, Failure, Nonce, Prompt, Read, Schema};
use crate::ai::cache::{KeptReply, ReplyKey};
use crate::ai::reply::ReplyProblem;
use crate::ai::shared::HeldLease;
use crate::ai::tree::Tree;
use tokio::sync::SemaphorePermit;

/// A question to a backend.
#[derive(Clone, Copy)]
pub(super) struct Query<'q, 'a> {
    pub(super) prompt: &'q Prompt,
    /// Earlier prompts whose cached answers are also accepted.
    pub(super) earlier: &'q [Prompt],
    pub(super) schema: &'static Schema,
    /// The tree that the model may read through tools.
    pub(super) around: Option<&'q Tree<'a>>,
    /// Set when the answer begins.
    pub(super) begun: Option<&'q Begun>,
}

impl<'q, 'a> Query<'q, 'a> {
    /// Builds a question without earlier prompts.
    pub(super) fn new(
        prompt: &'q Prompt,
        schema: &'static Schema,
        around: Option<&'q Tree<'a>>,
    ) -> Self {
        Self {
            prompt,
            earlier: &[],
            schema,
            around,
            begun: None,
        }
    }
}

/// The reason why a question has no valid answer.
pub(super) enum NoAnswer {
    Failed(Failure),
    /// The limit that it would have exceeded.
    Limit(String),
}

/// A parsed answer.
pub(super) struct ParsedAnswer<T> {
    pub(super) value: T,
    /// Model name from the provider.
    pub(super) model: String,
    pub(super) read: Vec<Read>,
    pub(super) cached: bool,
    /// Cache entry to store if the answer turns out to be complete.
    pub(super) keep: Option<AnswerToKeep>,
}

/// An answer to store if it turns out to be complete.
pub(super) struct AnswerToKeep {
    pub(super) key: ReplyKey,
    pub(super) kept: KeptReply,
    /// Lease of the question; given back when the answer is stored.
    pub(super) lease: Option<HeldLease>,
    /// True if only the journal of the audit may have the answer, and no cache.
    pub(super) is_for_this_audit: bool,
}

/// The right to send one request.
pub(super) enum Admission<'s, T> {
    /// Ask, and hold these until the answer is there.
    Ask(Option<SemaphorePermit<'s>>, Option<HeldLease>),
    /// Another run asked in the meantime.
    Answered(ParsedAnswer<T>),
}

/// Parses a reply.
pub(super) type ReplyParser<T> = fn(&str, &Nonce) -> Result<T, ReplyProblem>;
