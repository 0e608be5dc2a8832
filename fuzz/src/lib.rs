//! The properties that `tests/properties` checks on stable, for libFuzzer.

#[path = "../../tests/properties/check.rs"]
pub mod check;
