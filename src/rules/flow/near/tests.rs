//! Tests of the selection of functions and classes.
