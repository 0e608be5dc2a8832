//! Executes the console examples of the documents, and parses their policies, rules and JSON.
//!
//! A comment before each console block names the fixture in which its commands run:
//! `<!-- example: NAME; exit: 1; through: TEXT; output not shown -->`. `NAME` is a row of
//! `fixtures::FIXTURES`, or `continued`. A block that cannot be executed has a reason:
//! `<!-- not executed: REASON -->`. If the output of the program has changed,
//! `UPDATE=1 cargo test --test it docs_` rewrites the pages.

mod fixtures;
mod output;
mod page;

use crate::support::{binary, reviewer};
use fixtures::{FIXTURES, World};
use page::{Block, Command, Example, Mark, blocks, commands};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The folder and the home that pages show.
const SHOWN_DIR: &str = "/home/dana/shop";
const SHOWN_HOME: &str = "/home/dana";

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the README and every page of the book, by their paths in the repository.
fn pages() -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "AGENTS.md"]
        .map(|n| top().join(n))
        .into();
    let mut folders = vec![top().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|p| {
            (
                p.strip_prefix(top()).unwrap().to_owned(),
                std::fs::read_to_string(&p).unwrap(),
            )
        })
        .collect()
}

fn is_console(block: &Block) -> bool {
    matches!(block.language.as_str(), "console" | "sh" | "bash" | "")
}

/// Runs one command without a terminal. Returns both streams in the order they were written, and
/// the exit code.
fn run(world: &World, command: &str) -> (Vec<String>, i32) {
    let folder = Path::new(binary()).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = std::process::Command::new("bash");
    shell
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(&world.dir)
        .stdin(std::process::Stdio::null());
    shell
        .env_clear()
        .env("HOME", world.repo.home())
        .env("LC_ALL", "C.UTF-8")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    shell.env(
        "PATH",
        format!("{}:{}:{path}", world.programs().display(), folder.display()),
    );
    shell.envs(world.env.iter().map(|(name, value)| (name, value)));
    let out = shell.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut text = text
        .replace(&world.dir.display().to_string(), SHOWN_DIR)
        .replace(&world.repo.home().display().to_string(), SHOWN_HOME);
    for (actual, shown) in &world.shown {
        text = text.replace(actual, shown);
    }
    let mut lines: Vec<String> = text.lines().map(|l| l.trim_end().to_owned()).collect();
    // On a terminal, a review that exits with 0 does not print this line. Pages show the output of
    // a terminal.
    lines.retain(|l| !(l.starts_with("review: ") && l.ends_with(" exit=0")));
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    (lines, out.status.code().unwrap_or(-1))
}

/// The result of executing a block.
struct Outcome {
    /// The expected block.
    body: Vec<String>,
    errors: Vec<String>,
}

fn execute(world: &World, example: &Example, body: &[String]) -> Outcome {
    let mut outcome = Outcome {
        body: Vec::new(),
        errors: Vec::new(),
    };
    let commands = commands(body);
    for (i, command) in commands.iter().enumerate() {
        let expected = if i + 1 == commands.len() {
            example.exit
        } else {
            0
        };
        let (mut actual, code) = run(world, &command.text);
        if code != expected {
            outcome.errors.push(format!(
                "`{}` exits with {code}, not {expected}:\n{}",
                command.text,
                actual.join("\n")
            ));
        }
        outcome.body.extend(command.lines.iter().cloned());
        if example.is_hidden {
            actual.clear();
        }
        if let Some(text) = &example.through {
            match actual.iter().position(|l| l.contains(text.as_str())) {
                Some(last) => actual.truncate(last + 1),
                None => outcome
                    .errors
                    .push(format!("`{}` prints no line with {text:?}", command.text)),
            }
        }
        compare(command, &actual, &mut outcome);
    }
    outcome
}

/// Returns true if changed output is written to the pages. A changed exit code always fails.
fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

fn compare(command: &Command, actual: &[String], outcome: &mut Outcome) {
    let mut shown = command.output.clone();
    while shown.last().is_some_and(String::is_empty) {
        shown.pop();
    }
    let updated = output::updated(&shown, actual);
    if updated != shown && !is_update() {
        let (shown, actual) = (shown.join("\n"), actual.join("\n"));
        outcome.errors.push(format!(
            "`{}`\n--- the page shows\n{shown}\n--- it prints\n{actual}",
            command.text
        ));
    }
    outcome.body.extend(updated);
    outcome.body.extend(
        command
            .output
            .iter()
            .rev()
            .take_while(|l| l.is_empty())
            .cloned(),
    );
}

/// Executes the examples of a page in order. Returns the expected page, and the errors.
fn check(path: &Path, text: &str) -> (String, Vec<String>) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut errors = Vec::new();
    let mut changes = Vec::new();
    let mut world: Option<World> = None;
    for block in blocks(text) {
        let Mark::Example(example) = &block.mark else {
            continue;
        };
        if example.fixture != "continued" {
            let Some((_, fixture)) = FIXTURES.iter().find(|(name, _)| *name == example.fixture)
            else {
                continue;
            };
            world = Some(fixture());
        }
        let Some(world) = &world else { continue };
        let outcome = execute(world, example, &block.body);
        let at = |error| format!("{}:{}: {error}", path.display(), block.line + 1);
        errors.extend(outcome.errors.into_iter().map(at));
        changes.push((block, outcome.body));
    }
    for (block, body) in changes.into_iter().rev() {
        let body = body.iter().map(|l| {
            if l.is_empty() {
                String::new()
            } else {
                format!("{}{l}", block.indent)
            }
        });
        lines.splice(block.line + 1..block.line + 1 + block.body.len(), body);
    }
    (lines.join("\n") + "\n", errors)
}

#[test]
fn examples_print_what_their_pages_show() {
    let pages = pages();
    let checked: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = pages
            .iter()
            .map(|(path, text)| scope.spawn(|| check(path, text)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut report = String::new();
    for ((path, text), (updated, errors)) in pages.iter().zip(checked) {
        if is_update() && *text != updated {
            std::fs::write(top().join(path), updated).unwrap();
        }
        for error in errors {
            writeln!(report, "{error}\n").unwrap();
        }
    }
    assert!(
        report.is_empty(),
        "{report}UPDATE=1 cargo test --test it docs_ rewrites the output on the pages"
    );
}

#[test]
fn every_console_block_is_executed_or_says_why_not() {
    let mut errors = Vec::new();
    let mut used = BTreeSet::new();
    for (path, text) in pages() {
        let mut has_world = false;
        for block in blocks(&text) {
            let at = format!("{}:{}", path.display(), block.line + 1);
            match &block.mark {
                Mark::None if is_console(&block) => {
                    errors.push(format!("{at}: the block has no mark"));
                }
                Mark::None => {}
                Mark::NotExecuted(reason) if reason.is_empty() => {
                    errors.push(format!("{at}: no reason"));
                }
                Mark::NotExecuted(_) => {}
                Mark::Invalid(attribute) => {
                    errors.push(format!("{at}: unknown attribute {attribute:?}"));
                }
                Mark::Example(e) if e.fixture == "continued" && !has_world => {
                    errors.push(format!("{at}: nothing to continue"));
                }
                Mark::Example(e) if e.fixture == "continued" => {}
                Mark::Example(e) if FIXTURES.iter().any(|(name, _)| *name == e.fixture) => {
                    has_world = true;
                    used.insert(e.fixture.clone());
                }
                Mark::Example(e) => errors.push(format!("{at}: unknown fixture {}", e.fixture)),
            }
        }
    }
    let unused = FIXTURES.iter().filter(|(name, _)| !used.contains(*name));
    errors.extend(unused.map(|(name, _)| format!("no page uses the fixture {name}")));
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn policies_and_rules_on_pages_are_valid() {
    let dir = crate::support::temp_dir();
    let mut errors = Vec::new();
    for (path, text) in pages() {
        for block in blocks(&text).into_iter().filter(|b| b.language == "toml") {
            if matches!(block.mark, Mark::NotExecuted(_)) {
                continue;
            }
            let body = block.body.join("\n");
            let is_rule = body.contains("[[rule]]");
            // A page may show a part of a policy.
            let head = if is_rule || body.contains("version = ") {
                ""
            } else {
                "version = 1\n"
            };
            let file = dir.path().join("page.toml");
            std::fs::write(&file, format!("{head}{body}\n")).unwrap();
            let command: &[&str] = if is_rule {
                &["rules", "test"]
            } else {
                &["policy", "check"]
            };
            let run =
                reviewer(dir.path(), dir.path(), &[command, &["page.toml"]].concat()).run_any();
            if run.code != 0 {
                errors.push(format!(
                    "{}:{}: {}{}",
                    path.display(),
                    block.line + 1,
                    run.stdout,
                    run.stderr
                ));
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn json_on_pages_is_valid() {
    for (path, text) in pages() {
        for block in blocks(&text).into_iter().filter(|b| b.language == "json") {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&block.body.join("\n"));
            assert!(
                parsed.is_ok(),
                "{}:{}: {}",
                path.display(),
                block.line + 1,
                parsed.unwrap_err()
            );
        }
    }
}
