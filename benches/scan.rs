//! Measures how fast the rules scan: `cargo bench --bench scan [-- PATH…]`.
//!
//! Prints megabytes a second of processor time, best of several rounds on one core, for the
//! prefilter alone and for a scan with every rule, over generated source text and over the files
//! below each PATH. Uses wall-clock time on systems that do not report processor time.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when it cannot go on"
)]

use claude_reviewer::diff::{FileChange, RepoPath, code};
use claude_reviewer::policy::RulesPolicy;
use claude_reviewer::rules::{RuleSet, Scope};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const ROUNDS: u32 = 7;

fn main() {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).expect("the catalogue is sound");
    let started = Instant::now();
    black_box(RuleSet::new(&RulesPolicy::default(), &[]).expect("the catalogue is sound"));
    println!("making the rule set: {:?}", started.elapsed());
    measure(
        &rules,
        "made-up source",
        &[("src/sample.py", made_up(8 << 20))].map(|(p, t)| code::added(RepoPath::from(p), t)),
    );
    for path in std::env::args().skip(1).filter(|a| !a.starts_with('-')) {
        let mut files = Vec::new();
        collect(Path::new(&path), Path::new(&path), &mut files);
        measure(&rules, &path, &files);
    }
}

fn measure(rules: &RuleSet, name: &str, files: &[FileChange]) {
    let bytes: usize = files
        .iter()
        .filter_map(FileChange::text)
        .flat_map(|t| t.added())
        .map(|b| b.text.len())
        .sum();
    let literals = || -> usize {
        files
            .iter()
            .filter_map(FileChange::text)
            .flat_map(|t| t.added())
            .map(|b| rules.count_literals(b.text))
            .sum()
    };
    let mut findings = Vec::new();
    let scan = |findings: &mut Vec<_>| {
        findings.clear();
        files
            .iter()
            .for_each(|f| drop(rules.scan(f, Scope::All, findings)));
    };
    let started = Instant::now();
    scan(&mut findings);
    let first = started.elapsed();
    let prefilter = best(|| _ = black_box(literals()));
    let full = best(|| scan(&mut findings));
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!(
        "{name}: {} files, {:.1} MB, {} literals, {} findings",
        files.len(),
        bytes as f64 / 1e6,
        literals(),
        findings.len()
    );
    println!("  prefilter {:7.0} MB/s", rate(prefilter));
    println!(
        "  scan      {:7.0} MB/s   (first time, with expressions to compile: {first:?})",
        rate(full)
    );
}

fn best(mut work: impl FnMut()) -> f64 {
    let time = |work: &mut dyn FnMut()| {
        let (clock, processor) = (Instant::now(), processor_seconds());
        work();
        match (processor, processor_seconds()) {
            (Some(from), Some(to)) if to > from => to - from,
            _ => clock.elapsed().as_secs_f64(),
        }
    };
    (0..ROUNDS)
        .map(|_| time(&mut work))
        .fold(f64::MAX, f64::min)
}

/// Returns the processor time of this thread on Linux.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = stat.split(' ').next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

/// Generates lines that look like a program; deterministic.
fn made_up(length: usize) -> Vec<u8> {
    const LINES: [&str; 12] = [
        "def handle_request(self, request, timeout=30):\n",
        "    value = self.config.get(\"retries\", 3)\n",
        "    # The caller has checked that the session is open.\n",
        "    for index, item in enumerate(values):\n",
        "        if item is None or item.state != State.READY:\n",
        "            continue\n",
        "        result.append(transform(item, index=index, strict=True))\n",
        "    return {\"status\": response.status, \"items\": result}\n",
        "\n",
        "class Connection(BaseConnection):\n",
        "    \"\"\"Keeps one connection to a server open.\"\"\"\n",
        "        raise ValueError(f\"unexpected token {token!r} at {position}\")\n",
    ];
    let mut state = 1u32;
    let mut out = Vec::with_capacity(length + 100);
    while out.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        out.extend_from_slice(LINES[(state >> 16) as usize % LINES.len()].as_bytes());
    }
    out
}

fn collect(root: &Path, dir: &Path, out: &mut Vec<FileChange>) {
    let mut entries: Vec<_> = match std::fs::read_dir(dir) {
        Ok(entries) => entries.flatten().map(|e| e.path()).collect(),
        Err(_) => vec![dir.to_owned()],
    };
    entries.sort();
    for path in entries {
        if path.is_symlink()
            || path
                .file_name()
                .is_some_and(|n| n == ".git" || n == "target")
        {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, out);
        } else if let Ok(content) = std::fs::read(&path) {
            let name = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            out.push(code::added(
                RepoPath::from(if name.is_empty() { "file" } else { &name }),
                content,
            ));
        }
    }
}
