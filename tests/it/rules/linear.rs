//! Lines that are made against the rules: the time grows no faster than their length.

use crate::support::Repo;
use claude_reviewer::diff::{FileChange, RepoPath, code};
use claude_reviewer::policy::RulesPolicy;
use claude_reviewer::rules::{RuleSet, Scope, describe_all};

/// A rule of the catalogue, with the fields that are needed to generate a costly text for it.
#[derive(serde::Deserialize)]
struct Written {
    id: String,
    #[serde(default)]
    literals: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    sample: Vec<Sample>,
}

#[derive(serde::Deserialize)]
struct Sample {
    matches: bool,
    #[serde(default = "any_path")]
    path: String,
    text: String,
}

fn any_path() -> String {
    "deploy.conf".to_owned()
}

/// Reads the rules from their files.
fn catalogue() -> Vec<Written> {
    #[derive(serde::Deserialize)]
    struct File {
        rule: Vec<Written>,
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules/catalog");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    let texts = files
        .filter(|f| f.extension().is_some_and(|e| e == "toml"))
        .map(|f| std::fs::read_to_string(f).unwrap());
    texts
        .flat_map(|t| {
            toml::from_str::<File>(&t)
                .map_err(|e| e.message().to_owned())
                .unwrap()
                .rule
        })
        .collect()
}

impl Written {
    /// Returns the path and text of a matching sample.
    fn example(&self) -> (&str, &str) {
        self.sample
            .iter()
            .find(|s| s.matches)
            .map_or(("a.py", ""), |s| (&s.path, &s.text))
    }

    /// Returns a key that is equal for rules that may scan the same file: its extension, or for
    /// some rules the whole path.
    fn home(&self) -> String {
        let (path, _) = self.example();
        let kind = path.rsplit_once('.').map_or(path, |(_, kind)| kind);
        if self.paths.is_empty() {
            kind.to_owned()
        } else {
            path.to_owned()
        }
    }
}

/// Creates a file for some rules: matching samples, then one line of `size` bytes, full of the
/// rules' literals and of the samples.
fn bomb(rules: &[&Written], size: usize) -> FileChange {
    let mut unit = "a".repeat(64);
    let mut head = String::new();
    for rule in rules {
        let (_, text) = rule.example();
        unit.extend(rule.literals.iter().map(|l| format!("{l}{l} aaaa \"'=(1")));
        unit.extend([" ", &text.replace('\n', " ")]);
        head.extend([text, "\n"]);
    }
    let mut line = unit.repeat(size / unit.len() + 1).into_bytes();
    line.truncate(size);
    code::added(
        RepoPath::from(rules[0].example().0),
        [head.as_bytes(), &line].concat(),
    )
}

/// Returns the nanoseconds of processor time of this thread; the elapsed time on systems that do
/// not report it.
fn thread_time(since: std::time::Instant) -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = told.and_then(|t| t.split_whitespace().next()?.parse().ok());
    spent.unwrap_or_else(|| since.elapsed().as_nanos() as u64)
}

/// Twice the text may take three and a half times as long, because the machine is busy, but not
/// four times, as with quadratic work. Measured in processor time, so that other tests do not
/// count. Eight rules share a line.
#[test]
fn dif_16_every_rule_reads_a_line_made_against_it_in_linear_time() {
    // Without optimization, more would take a minute; this is still more than the scanned part of a
    // line.
    const SIZE: usize = if cfg!(debug_assertions) {
        40_000
    } else {
        500_000
    };
    const TOGETHER: usize = 8;
    const FLOOR: u64 = 20_000_000;
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let written = catalogue();
    assert_eq!(
        written.len(),
        describe_all().count(),
        "every rule of the program is written in the catalogue"
    );
    let mut homes = std::collections::BTreeMap::<String, Vec<&Written>>::new();
    for rule in &written {
        homes.entry(rule.home()).or_default().push(rule);
    }
    let groups: Vec<&[&Written]> = homes
        .values()
        .flat_map(|rules| rules.chunks(TOGETHER))
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let start = std::time::Instant::now();
        let time = |file: &FileChange| {
            let before = thread_time(start);
            rules.scan(file, Scope::All, &mut Vec::new());
            thread_time(start) - before
        };
        while let Some(group) = groups.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        {
            let (one, two) = (bomb(group, SIZE), bomb(group, 2 * SIZE));
            // Expressions are compiled on first use.
            time(&bomb(group, 2_000));
            let slow = |once: u64, twice: u64| twice * 2 > once.max(FLOOR) * 7;
            // A slow measurement may be an outlier, so it is repeated.
            let mut measured = Vec::new();
            while measured.last().is_none_or(|(a, b)| slow(*a, *b)) {
                let ids = || group.iter().map(|r| &*r.id).collect::<Vec<_>>();
                assert!(
                    measured.len() < 3,
                    "one of {:?}: n and 2n took {measured:?} ns",
                    ids()
                );
                measured.push((time(&one), time(&two)));
            }
        }
    };
    std::thread::scope(|s| {
        s.spawn(work);
        work();
    });
}

/// The bound is generous, because the tests run without optimization on a busy machine; superlinear
/// work takes minutes.
#[test]
fn dif_16_lines_of_a_million_bytes_are_read_to_their_end() {
    let repo = Repo::new();
    let started = std::time::Instant::now();
    repo.write("a.py", "a".repeat(1_000_000));
    repo.write("b.py", "eval".repeat(250_000));
    repo.write("c.js", "password = '".repeat(80_000));
    repo.write("d.php", "<<<A `${'\"%41\\x41/*".repeat(50_000));
    repo.review(&["code", "a.py", "b.py", "c.js", "d.php", "--no-save"], 0);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
