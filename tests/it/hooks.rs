//! Tests of `hooks`.
