//! The regular expressions of the tables, compiled once in each thread.
//!
//! A range of commits analyses thousands of files. Compiling the expressions again for each of them
//! took a sixth of the time.

use foldhash::fast::RandomState;
use regex::Regex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

thread_local! {
    /// By pattern; `None` for an invalid one. The tables bound the number of patterns.
    static COMPILED: RefCell<HashMap<&'static str, Option<Rc<Regex>>, RandomState>> =
        RefCell::default();
}

/// Returns a compiled expression of the tables; `None` if its pattern is invalid.
pub(super) fn expression(pattern: &'static str) -> Option<Rc<Regex>> {
    COMPILED.with_borrow_mut(|compiled| {
        compiled
            .entry(pattern)
            .or_insert_with(|| Regex::new(pattern).ok().map(Rc::new))
            .clone()
    })
}
