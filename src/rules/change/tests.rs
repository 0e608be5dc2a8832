//! Tests of the change rules.

use super::*;
use crate::diff::code;
use crate::finding::Finding;
use crate::policy::RulesPolicy;
use crate::rules::{RuleSet, Scope};

fn whole(rules: &RuleSet, files: &[FileChange], others: &[&str], out: &mut Vec<Finding>) {
    let entries: Vec<_> = files.iter().map(|f| f.entry.clone()).collect();
    let load = |i: usize| Some(files[i].clone());
    let exists = |p: &RepoPath| others.iter().any(|o| o.as_bytes() == p.as_bytes());
    scan_change(&entries, &Tree { load: &load, exists: &exists }, &mut Reporter::new(rules, None, out));
}

fn ids(found: &[Finding]) -> Vec<&str> {
    found.iter().map(Finding::rule_id).collect()
}

/// Runs every rule over files that the change adds.
fn adding(files: &[(&str, &str)]) -> Vec<Finding> {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let files: Vec<_> = files.iter().map(|(p, t)| code::added(RepoPath::from(*p), t.as_bytes().to_vec())).collect();
    let mut out = Vec::new();
    for f in &files {
        rules.scan(f, Scope::All, &mut out);
    }
    whole(&rules, &files, &[], &mut out);
    out
}

/// Makes the patch between two versions of files; no old version: the file is new.
fn between(files: &[(&str, Option<&str>, Option<&str>)]) -> Vec<FileChange> {
    use crate::diff::{Attribute, Body, ChangeKind, Entry, FileMode, Side};
    let side = |path: &str| Side { path: RepoPath::from(path), mode: FileMode::Regular, id: None };
    let of = |(path, old, new): &(&str, Option<&str>, Option<&str>)| FileChange {
        entry: Entry {
            kind: match (old, new) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            },
            old: old.map(|_| side(path)),
            new: new.map(|_| side(path)),
        },
        body: Body::between(old.map(|t| t.as_bytes().to_vec()), new.map(|t| t.as_bytes().to_vec()), Attribute::Unset),
    };
    files.iter().map(of).collect()
}

fn changing(files: &[(&str, Option<&str>, Option<&str>)], others: &[&str]) -> Vec<Finding> {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let files = between(files);
    let mut out = Vec::new();
    for f in &files {
        rules.scan(f, Scope::All, &mut out);
    }
    whole(&rules, &files, others, &mut out);
    out
}

#[test]
fn a_checkout_of_the_head_is_reported_when_only_the_trigger_is_new() {
    let steps = "jobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n        with:\n          ref: ${{ github.event.pull_request.head.sha }}\n";
    let old = format!("on: pull_request\n{steps}");
    let new = format!("on: pull_request_target\n{steps}");
    let path = ".github/workflows/a.yml";
    let found = changing(&[(path, Some(&old), Some(&new))], &[]);
    assert_eq!(ids(&found), ["workflow-pull-request-target-checkout"]);
    assert_eq!(found[0].lines().map(|l| l.first.get()), Some(7));
    let touched = new.replace("  a:", "  b:");
    assert_eq!(
        ids(&changing(&[(path, Some(&new), Some(&touched))], &[])),
        [""; 0],
        "neither trigger nor checkout is new"
    );
}

#[test]
fn an_expression_in_a_script_is_told_from_one_in_the_environment() {
    let workflow = |body: &str| format!("on:\n  issues:\n    types: [opened]\njobs:\n  a:\n    steps:\n{body}");
    let run = workflow(
        "      - name: x\n        run: |\n          echo start\n          echo \"${{ github.event.issue.title }}\"\n",
    );
    let found = adding(&[(".github/workflows/a.yml", &run)]);
    assert_eq!(ids(&found), ["workflow-script-injection"]);
    assert_eq!(found[0].lines().map(|l| l.first.get()), Some(10));
    let env =
        workflow("      - env:\n          TITLE: ${{ github.event.issue.title }}\n        run: echo \"$TITLE\"\n");
    assert_eq!(ids(&adding(&[(".github/workflows/a.yml", &env)])), [""; 0]);
    let number = workflow("      - run: echo ${{ github.event.issue.number }}\n");
    assert_eq!(ids(&adding(&[(".github/workflows/a.yml", &number)])), [""; 0]);
    let condition = workflow("      - run: echo ${{ contains(github.event.issue.title, 'x') }}\n");
    assert_eq!(ids(&adding(&[(".github/workflows/a.yml", &condition)])), [""; 0]);
}

#[test]
fn a_manifest_that_asks_for_more_needs_its_lockfile() {
    let old = "{\n  \"name\": \"a\",\n  \"dependencies\": {\n    \"left\": \"^1.0.0\"\n  }\n}\n";
    let new = old.replace("\"^1.0.0\"\n", "\"^1.0.0\",\n    \"right\": \"^2.0.0\"\n");
    let found = changing(&[("web/package.json", Some(old), Some(&new))], &["web/package-lock.json"]);
    assert_eq!(ids(&found), ["manifest-without-lockfile"]);
    assert_eq!(found[0].lines().map(|l| l.first.get()), Some(5));
    let at_the_top = changing(&[("web/package.json", Some(old), Some(&new))], &["yarn.lock"]);
    assert_eq!(ids(&at_the_top), ["manifest-without-lockfile"], "a workspace keeps its lockfile at the top");
    assert_eq!(ids(&changing(&[("web/package.json", Some(old), Some(&new))], &[])), [""; 0], "there is no lockfile");
    let scripts = old.replace("\"name\": \"a\",", "\"name\": \"a\",\n  \"version\": \"2.0.0\",");
    assert_eq!(ids(&changing(&[("package.json", Some(old), Some(&scripts))], &["yarn.lock"])), [""; 0]);
    let both = [("package.json", Some(old), Some(&new[..])), ("yarn.lock", Some("a\n"), Some("b\n"))];
    assert_eq!(ids(&changing(&both, &["yarn.lock"])), [""; 0]);
}

#[test]
fn cargo_and_go_manifests_are_read_too() {
    let old = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n\n[dependencies]\nserde = \"1\"\n";
    let more = old.replace("serde = \"1\"", "serde = \"1\"\nrand = \"0.9\"");
    assert_eq!(
        ids(&changing(&[("Cargo.toml", Some(old), Some(&more))], &["Cargo.lock"])),
        ["manifest-without-lockfile"]
    );
    let renamed = old.replace("\"1.0.0\"", "\"1.0.1\"");
    assert_eq!(ids(&changing(&[("Cargo.toml", Some(old), Some(&renamed))], &["Cargo.lock"])), [""; 0]);
    let old = "module a\n\ngo 1.24\n\nrequire (\n\tgithub.com/x/y v1.0.0\n)\n";
    let newer = old.replace("v1.0.0", "v1.1.0");
    assert_eq!(ids(&changing(&[("go.mod", Some(old), Some(&newer))], &["go.sum"])), [""; 0], "its sum may be there");
    let more = old.replace("v1.0.0", "v1.0.0\n\tgithub.com/x/z v1.0.0");
    assert_eq!(ids(&changing(&[("go.mod", Some(old), Some(&more))], &["go.sum"])), ["manifest-without-lockfile"]);
}

#[test]
fn a_lockfile_that_downloads_from_elsewhere_is_reported() {
    let entry = |host: &str| {
        format!(
            "{{\n  \"packages\": {{\n    \"node_modules/a\": {{\n      \"resolved\": \"https://{host}/a/-/a-1.0.0.tgz\"\n    }}\n  }}\n}}\n"
        )
    };
    let old = entry("registry.npmjs.org");
    let found = changing(&[("package-lock.json", Some(&old), Some(&entry("packages.example.net")))], &[]);
    assert_eq!(ids(&found), ["lockfile-new-source"]);
    let plain = old.replace("https://", "http://");
    assert_eq!(ids(&changing(&[("package-lock.json", Some(&old), Some(&plain))], &[])), ["lockfile-insecure-source"]);
    let update = old.replace("1.0.0", "1.0.1");
    assert_eq!(
        ids(&changing(&[("package-lock.json", Some(&old), Some(&update))], &[])),
        [""; 0],
        "an update is no finding"
    );
}

#[test]
fn tests_that_go_while_the_code_stays_are_reported() {
    let old = "def test_adds():\n    pass\n\n\ndef test_subtracts():\n    pass\n";
    let new = "def test_adds():\n    pass\n";
    assert_eq!(ids(&changing(&[("tests/test_sum.py", Some(old), Some(new))], &[])), ["test-deleted"]);
    assert_eq!(ids(&changing(&[("tests/test_sum.py", Some(old), None)], &[])), ["test-deleted"]);
    let moved = [("tests/test_sum.py", Some(old), None), ("tests/test_math.py", None, Some(old))];
    assert_eq!(ids(&changing(&moved, &[])), [""; 0], "a move is no loss");
    let with_code = [("tests/test_sum.py", Some(old), None), ("app/sum.py", Some("def add():\n    pass\n"), None)];
    assert_eq!(ids(&changing(&with_code, &[])), [""; 0], "what they tested goes too");
}
