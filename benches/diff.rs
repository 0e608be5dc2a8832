//! Measures how fast changes are computed and written: `cargo bench --bench diff`.
//!
//! Prints megabytes a second, best of several rounds on one core, for comparing two versions of
//! generated source code (with a few edits, and with every fourth line edited), for writing the
//! patch, and for parsing it again.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when it cannot go on"
)]

use claude_reviewer::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side, patch, unified,
};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 9;
const LINES: usize = 100_000;

fn main() {
    let old = source(|_| false);
    for (name, every) in [("one line in a thousand", 1_000), ("one line in four", 4)] {
        let new = source(|i| i % every == every / 2);
        let size = (old.len() + new.len()) as f64 / 1e6;
        let compare = || Body::between(Some(old.clone()), Some(new.clone()), Attribute::Unset);
        println!("{name}: {size:.1} MB on both sides");
        println!(
            "  compare {:7.0} MB/s",
            size / best(|| _ = black_box(compare()))
        );
        let change = FileChange {
            entry: entry(),
            body: compare(),
        };
        let mut text = Vec::new();
        unified::write(&change, &mut text);
        let patch_size = text.len() as f64 / 1e6;
        let mut out = Vec::new();
        let write = best(|| {
            out.clear();
            unified::write(&change, &mut out);
        });
        println!(
            "  write   {:7.0} MB/s of {patch_size:.1} MB patch",
            patch_size / write
        );
        let parse = best(|| _ = black_box(patch::parse(&text).expect("our own patch")));
        println!(
            "  parse   {:7.0} MB/s of {patch_size:.1} MB patch",
            patch_size / parse
        );
    }
}

fn entry() -> Entry {
    let side = Side {
        path: RepoPath::from("src/made_up.rs"),
        mode: FileMode::Regular,
        id: None,
    };
    Entry {
        kind: ChangeKind::Modified,
        old: Some(side.clone()),
        new: Some(side),
    }
}

fn source(edited: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut text = String::new();
    for i in 0..LINES {
        let word = ["render", "index", "parse", "merge", "flush"][i % 5];
        let call = if edited(i) { "replace" } else { "update" };
        writeln!(
            text,
            "    let value_{i} = {word}.{call}({}, &mut state);",
            i % 97
        )
        .expect("a string takes it");
    }
    text.into_bytes()
}

fn best(mut work: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}
