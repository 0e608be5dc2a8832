//! The model reviewer: the change in, claims that were checked against it out.
//!
//! Models make claims; this module asks them well, and believes nothing. `material` is what may be shown,
//! `plan` cuts it into chunks, `prompt` puts a chunk into words, `backend` asks, `reply` reads the answer,
//! `anchor` finds each claim again in the change. Nothing of a provider is known outside of `backend`.

pub mod anchor;
pub mod ask;
pub mod claim;
pub mod material;
pub mod plan;
