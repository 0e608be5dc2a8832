//! Tests of `architecture`.
