//! Judges recorded results.
