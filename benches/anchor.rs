//! Measures how well claims are anchored to the change:
//! `cargo bench --bench anchor -- [REPOSITORY] [COMMITS]`.
//!
//! Takes the newest commits of a history (default: 300 of this repository), makes true claims about
//! lines that they add, distorts them in every way that models do, and prints how many are anchored
//! to the true line. [`Figures::check`] has the requirement for each way: of claims with enough
//! information, at least 95 in 100 are on the true line, and can block if they name the right file.
//! No claim is trusted on another line, although every line counts as read. Claims that are equally
//! true of another line are excluded and counted. The seed is fixed.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when it cannot go on"
)]

#[path = "anchor/perturb.rs"]
#[expect(unreachable_pub, reason = "a test has the same file")]
mod perturb;

use claude_reviewer::ai::material::{Group, Shown};
use claude_reviewer::ai::plan::{self, Limits};
use claude_reviewer::ai::related::Related;
use claude_reviewer::diff::ObjectId;
use claude_reviewer::env::Env;
use claude_reviewer::git::Repo;
use claude_reviewer::policy::{Policy, RulesPolicy};
use claude_reviewer::rules::RuleSet;
use perturb::{Figures, Way};
use std::path::PathBuf;
use std::time::Instant;

/// Claims about each chunk of a commit, each distorted in every way.
const CLAIMS: usize = 20;
/// Number of generated changes.
const MADE_UP: usize = 60;

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let path = args
        .next()
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let most: usize = args
        .next()
        .map_or(300, |n| n.parse().expect("a number of commits"));
    let repo = Repo::open(&path, &Env::default()).expect("a repository");
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).expect("the built-in rules");
    let mut random = fastrand::Rng::with_seed(3);
    let mut figures = [Figures::default(); Way::ALL.len()];
    let started = Instant::now();
    let mut chunks = 0;
    let mut groups = 0;
    let commits = history(&repo, most);
    let real = commits.iter().map(|c| group(&repo, *c, &rules));
    for group in real {
        groups += 1;
        chunks += measure(group, &rules, &mut random, &mut figures);
    }
    println!(
        "{groups} commits, {chunks} chunks, {:.1} s",
        started.elapsed().as_secs_f64()
    );
    conclude(&figures);
    let mut figures = [Figures::default(); Way::ALL.len()];
    for _ in 0..MADE_UP {
        let group = perturb::made_up(&mut random, &rules);
        measure(group, &rules, &mut random, &mut figures);
    }
    println!("\n{MADE_UP} made-up changes of lines that are often alike");
    conclude(&figures);
}

/// Measures one commit; returns the number of its chunks.
fn measure(
    group: Group,
    rules: &RuleSet,
    random: &mut fastrand::Rng,
    figures: &mut [Figures; Way::ALL.len()],
) -> usize {
    let groups = [group];
    let chunks = plan::plan(&groups, &limits()).chunks;
    for chunk in &chunks {
        perturb::measure(&groups[0], chunk, rules, random, CLAIMS, figures);
    }
    chunks.len()
}

/// Prints the figures, and fails if they are not good enough.
fn conclude(figures: &[Figures; Way::ALL.len()]) {
    println!(
        "{:24} {:>5} {:>9} | {:>5} {:>10} {:>9} | {:>6} {:>10} | {:>4} {:>9} {:>6} {:>4}",
        "",
        "told",
        "undecided",
        "clear",
        "right line",
        "can block",
        "others",
        "right line",
        "lost",
        "elsewhere",
        "medium",
        "high"
    );
    let mut total = Figures::default();
    for (way, f) in Way::ALL.iter().zip(figures) {
        print(way.name(), f);
        total.add(f);
    }
    print("total", &total);
    let failed: Vec<String> = Way::ALL
        .iter()
        .zip(figures)
        .filter_map(|(way, f)| f.check(*way).err())
        .collect();
    assert!(
        failed.is_empty(),
        "claims land in the wrong place, or are not believed:\n{}",
        failed.join("\n")
    );
}

fn print(name: &str, f: &Figures) {
    let percent = |part: u32, all: u32| 100.0 * f64::from(part) / f64::from(all.max(1));
    println!(
        "{name:24} {:>5} {:>9} | {:>5} {:>9.2}% {:>8.2}% | {:>6} {:>9.2}% | {:>4} {:>9} {:>6} {:>4}",
        f.told,
        f.undecided,
        f.clear,
        percent(f.right, f.clear),
        percent(f.blocking, f.clear),
        f.others,
        percent(f.others_right, f.others),
        f.lost,
        f.elsewhere,
        f.medium,
        f.high
    );
}

/// Returns the newest commits, at most `most`.
fn history(repo: &Repo, most: usize) -> Vec<ObjectId> {
    let base = (1..=most)
        .rev()
        .find(|n| repo.resolve(&format!("HEAD~{n}")).is_ok());
    base.map_or_else(Vec::new, |n| {
        repo.range(&format!("HEAD~{n}"), "HEAD").expect("a history")
    })
    .into_iter()
    .rev()
    .take(most)
    .collect()
}

/// Returns the material that a model gets for a commit.
fn group(repo: &Repo, commit: ObjectId, rules: &RuleSet) -> Group {
    let mut reader = repo.reader();
    let mut files = Vec::new();
    if let Ok(change) = reader.alone(commit) {
        for index in 0..change.entries.len() {
            let file = reader.load(&change, index).ok();
            files
                .extend(file.and_then(|f| Shown::new(f, rules, &Policy::default()).ok().flatten()));
        }
    }
    Group {
        commit: Some(commit),
        tree: None,
        messages: Vec::new(),
        files,
        related: Related::default(),
    }
}

fn limits() -> Limits {
    Limits {
        files: 50,
        lines: 2_000,
        bytes: 400_000,
        requests: 1_000,
    }
}
