#![cfg(unix)]
//! Tests of the store of reviews as a library: rows STO-01 to STO-15, and the guarantees of the
//! hash chains.

mod broken;
mod chain;
mod concurrent;
mod faults;
mod foreign;
mod kill;
mod kit;
mod many;
mod names;
mod sessions;
