//! Batches: the requests of a run that a provider answers together, within a day, at a lower price.
//!
//! `queue` holds the requests of questions that wait, `record` what is stored about a batch so that
//! a later run continues it, `drive` submits, polls and hands out the results, and `cancel` lists
//! and cancels for a person. Questions do not know about batches: an answer from a batch takes the
//! same path as any other.

pub(crate) mod cancel;
pub(crate) mod drive;
pub mod queue;
pub(crate) mod record;
