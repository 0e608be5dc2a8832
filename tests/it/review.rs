//! Tests of `review`.
