//! Tests of `git`.
