//! Tests of the semantics.
