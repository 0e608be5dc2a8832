#![cfg(unix)]
//! The store of reviews, called as a library: rows STO-01 to STO-15, and what the hash chains promise.

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
