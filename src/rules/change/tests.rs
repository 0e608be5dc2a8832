//! Tests of the change rules.

use super::*;
use crate::diff::code;
use crate::finding::{Finding, Severity};
use crate::policy::RulesPolicy;
use crate::rules::{RuleSet, Scope};

fn whole(rules: &RuleSet, files: &[FileChange], others: &[&str], out: &mut Vec<Finding>) {
    let entries: Vec<_> = files.iter().map(|f| f.entry.clone()).collect();
    scan_change(
        &entries,
        &Tree::of_entries(&|i| Some(files[i].clone()), &|p| {
            others.iter().any(|o| o.as_bytes() == p.as_bytes())
        }),
        &mut Reporter::new(rules, None, out),
    );
}

fn ids(found: &[Finding]) -> Vec<&str> {
    found.iter().map(Finding::rule_id).collect()
}

/// Runs every rule over files that the change adds.
fn adding(files: &[(&str, &str)]) -> Vec<Finding> {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let files: Vec<_> = files
        .iter()
        .map(|(p, t)| code::added(RepoPath::from(*p), t.as_bytes().to_vec()))
        .collect();
    let mut out = Vec::new();
    for f in &files {
        rules.scan(f, Scope::All, &mut out);
    }
    whole(&rules, &files, &[], &mut out);
    out
}

/// Returns the patch between two versions of files. A file without an old version is new.
fn between(files: &[(&str, Option<&str>, Option<&str>)]) -> Vec<FileChange> {
    files
        .iter()
        .map(|(path, old, new)| file_between(path, *old, *new))
        .collect()
}

/// Returns the change of one file between two versions.
fn file_between(path: &str, old: Option<&str>, new: Option<&str>) -> FileChange {
    use crate::diff::{Attribute, Body, ChangeKind, Entry, FileMode, Side};
    let side = Side {
        path: RepoPath::from(path),
        mode: FileMode::Regular,
        id: None,
    };
    FileChange {
        entry: Entry {
            kind: match (old, new) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            },
            old: old.map(|_| side.clone()),
            new: new.map(|_| side.clone()),
        },
        body: Body::between(
            old.map(|t| t.as_bytes().to_vec()),
            new.map(|t| t.as_bytes().to_vec()),
            Attribute::Unset,
        ),
    }
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
    assert_eq!(found[0].lines().map(|l| l.first.get()), Some(1));
    let touched = new.replace("  a:", "  b:");
    assert_eq!(
        ids(&changing(&[(path, Some(&new), Some(&touched))], &[])),
        [""; 0],
        "neither trigger nor checkout is new"
    );
}

/// Returns the lines at which a workflow with these triggers and steps is reported for checking out
/// untrusted code.
fn checkouts(on: &str, steps: &str) -> Vec<u32> {
    let text = format!("on: {on}\njobs:\n  a:\n    steps:\n{steps}");
    let found = adding(&[(".github/workflows/a.yml", &text)]);
    let mut lines: Vec<u32> = found
        .iter()
        .filter(|f| f.rule_id() == "workflow-pull-request-target-checkout")
        .filter_map(|f| f.lines().map(|l| l.first.get()))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn fetching_the_objects_of_a_head_is_no_checkout_until_its_files_are_written() {
    fn run(script: &str) -> Vec<u32> {
        checkouts("pull_request_target", &format!("      - run: {script}\n"))
    }
    for script in [
        "git fetch origin \"refs/pull/${PR_NUMBER}/head:pr-head\"",
        "git fetch origin pull/${{ github.event.number }}/head:pr-head && git diff origin/main...pr-head",
        "git log ${{ github.event.pull_request.head.sha }}",
        "git fetch origin ${{ github.head_ref }}; git merge-base HEAD FETCH_HEAD; git reset --soft FETCH_HEAD",
        "git fetch origin refs/pull/1/head:pr; git checkout upstream/prod; git worktree list",
        "git checkout main; git fetch origin refs/pull/1/head",
        "echo 'use gh pr view'",
        "git show --stat --format=%h:%s ${{ github.event.pull_request.head.sha }}",
        "git show origin/main:build.sh > b.sh; git log ${{ github.event.pull_request.head.sha }}",
        "git show ${{ github.event.pull_request.head.sha }} -- a:b",
        "git fetch origin refs/pull/1/head:pr; git show pr; git show pr: ; git show main:build.sh; git show :/pr:x",
        "git fetch origin refs/pull/1/head:pr; git cat-file -e pr:build.sh && git cat-file commit pr",
        "git read-tree main; git checkout-index -a; git archive main; git restore -s main .",
    ] {
        assert_eq!(run(script), [0u32; 0], "{script}");
    }
    for script in [
        "gh pr checkout ${{ github.event.number }}",
        "git checkout ${{ github.event.pull_request.head.sha }}",
        "git -C src -c user.name=x checkout --detach ${{ inputs.ref || github.event.pull_request.head.sha }}",
        "git fetch origin \"refs/pull/${PR_NUMBER}/head:pr-head\" && git checkout pr-head",
        "git fetch origin +refs/pull/*/head:refs/remotes/origin/pr/*; git switch -d origin/pr/${PR_NUMBER}",
        "git fetch origin refs/pull/1/merge; git reset --hard FETCH_HEAD",
        "git fetch origin refs/pull/1/merge; git merge --no-edit FETCH_HEAD~0",
        "git fetch origin refs/pull/1/merge; git worktree add ../pr FETCH_HEAD",
        "git pull origin pull/${{ github.event.number }}/head",
        "git clone -b ${{ github.head_ref }} ${{ github.event.pull_request.head.repo.clone_url }}",
        "git show ${{ github.event.pull_request.head.sha }}:build.sh | bash",
        "git fetch origin pull/${{ github.event.number }}/head:pr; git show pr:build.sh > b.sh && sh b.sh",
        "git fetch origin refs/pull/1/head; bash -c \"$(git show 'FETCH_HEAD:build.sh')\"",
        "git fetch origin refs/pull/1/head; git show \"$(git rev-parse FETCH_HEAD):build.sh\" | sh",
        "git fetch origin refs/pull/1/head:pr; git cat-file blob pr~1:build.sh | sh",
        "git cat-file -p \"${{ github.event.pull_request.head.sha }}:${{ inputs.path }}\" > a",
        "git archive ${{ github.event.pull_request.head.sha }} | tar x",
        "git fetch origin refs/pull/1/head; git read-tree FETCH_HEAD; git checkout-index -a",
        "git restore --source=${{ github.event.pull_request.head.sha }} .",
    ] {
        assert_eq!(run(script), [5], "{script}");
    }
    let apart = "      - run: git fetch origin refs/pull/1/head:pr\n      - name: b\n        run: |\n          # git checkout pr\n          make\n          git checkout \\\n            pr\n";
    assert_eq!(
        checkouts("pull_request_target", apart),
        [10],
        "the next step works in the same folder"
    );
    let folded = "      - run: >\n          git fetch origin\n          refs/pull/1/head\n          && git checkout\n          FETCH_HEAD\n";
    assert_eq!(checkouts("pull_request_target", folded), [6]);
    let message = "      - uses: o/comment@v1\n        with:\n          body: |\n            To try it: gh pr checkout 1\n";
    assert_eq!(
        checkouts("pull_request_target", message),
        [0u32; 0],
        "a text is no script"
    );
    let jobs = "      - run: git fetch origin refs/pull/1/head:pr\n  b:\n    steps:\n      - run: git checkout pr\n";
    assert_eq!(
        checkouts("pull_request_target", jobs),
        [0u32; 0],
        "another job starts from an empty folder"
    );
}

#[test]
fn a_script_that_is_no_shell_calls_git_from_within_its_texts() {
    fn lines(step: &str, script: &str) -> Vec<u32> {
        let steps =
            format!("      - {step}\n        with:\n          script: |\n            {script}\n");
        checkouts("pull_request_target", &steps)
    }
    let github = "uses: actions/github-script@v7";
    for script in [
        "exec.exec(`git checkout ${{ github.head_ref }}`)",
        "await exec.exec('git', ['checkout', '${{ github.event.pull_request.head.sha }}']);",
        "execSync(\"git fetch origin refs/pull/1/head:pr && git checkout pr\")",
        "await exec.getExecOutput('git', [\"show\", \"${{ github.event.pull_request.head.sha }}:a.sh\"])",
        "exec.exec('gh', ['pr', 'checkout', '1'])",
    ] {
        assert_eq!(lines(github, script), [8], "{script}");
    }
    for script in [
        "exec.exec(`git fetch origin ${{ github.head_ref }}`)",
        "exec.exec('git', ['log', '${{ github.event.pull_request.head.sha }}'])",
        "// exec.exec(`git checkout ${{ github.head_ref }}`)",
        "exec.exec('git checkout main'); core.info('${{ github.head_ref }}')",
    ] {
        assert_eq!(lines(github, script), [0u32; 0], "{script}");
    }
    let python = "      - shell: python\n        run: |\n          subprocess.run(['git', 'checkout', '${{ github.head_ref }}'])\n";
    assert_eq!(checkouts("pull_request_target", python), [7]);
    assert_eq!(
        lines("uses: o/ssh@v1", "git checkout ${{ github.head_ref }}"),
        [8]
    );
}

#[test]
fn a_head_counts_only_under_the_triggers_that_give_it_a_value() {
    for (on, reference, is_head) in [
        ("workflow_run", "github.head_ref || github.ref", false),
        ("pull_request_target", "github.head_ref || github.ref", true),
        (
            "[pull_request, workflow_run]",
            "github.event.pull_request.head.sha",
            false,
        ),
        (
            "[workflow_run, pull_request_target]",
            "github.event.pull_request.head.sha",
            true,
        ),
        ("workflow_run", "github.event.workflow_run.head_sha", true),
        (
            "pull_request_target",
            "github.event.workflow_run.head_sha",
            false,
        ),
        (
            "issue_comment",
            "format('refs/pull/{0}/head', github.event.issue.number)",
            true,
        ),
    ] {
        let step = format!(
            "      - uses: actions/checkout@v4\n        with:\n          ref: ${{{{ {reference} }}}}\n"
        );
        assert_eq!(
            checkouts(on, &step).len(),
            usize::from(is_head),
            "{on}: {reference}"
        );
    }
}

#[test]
fn an_expression_in_a_script_is_told_from_one_in_the_environment() {
    fn workflow(body: &str) -> String {
        format!("on:\n  issues:\n    types: [opened]\njobs:\n  a:\n    steps:\n{body}")
    }
    let run = workflow(
        "      - name: x\n        run: |\n          echo start\n          echo \"${{ github.event.issue.title }}\"\n",
    );
    let found = adding(&[(".github/workflows/a.yml", &run)]);
    assert_eq!(ids(&found), ["workflow-script-injection"]);
    assert_eq!(found[0].lines().map(|l| l.first.get()), Some(10));
    let env = workflow(
        "      - env:\n          TITLE: ${{ github.event.issue.title }}\n        run: echo \"$TITLE\"\n",
    );
    assert_eq!(ids(&adding(&[(".github/workflows/a.yml", &env)])), [""; 0]);
    let number = workflow("      - run: echo ${{ github.event.issue.number }}\n");
    assert_eq!(
        ids(&adding(&[(".github/workflows/a.yml", &number)])),
        [""; 0]
    );
    let condition = workflow("      - run: echo ${{ contains(github.event.issue.title, 'x') }}\n");
    assert_eq!(
        ids(&adding(&[(".github/workflows/a.yml", &condition)])),
        [""; 0]
    );
}

#[test]
fn a_manifest_that_asks_for_more_needs_its_lockfile() {
    let old = "{\n  \"name\": \"a\",\n  \"dependencies\": {\n    \"left\": \"^1.0.0\"\n  }\n}\n";
    let new = old.replace("\"^1.0.0\"\n", "\"^1.0.0\",\n    \"right\": \"^2.0.0\"\n");
    let found = changing(
        &[("web/package.json", Some(old), Some(&new))],
        &["web/package-lock.json"],
    );
    assert_eq!(ids(&found), ["manifest-without-lockfile"]);
    assert_eq!(found[0].lines().map(|l| l.first.get()), Some(5));
    let at_the_top = changing(
        &[("web/package.json", Some(old), Some(&new))],
        &["yarn.lock"],
    );
    assert_eq!(
        ids(&at_the_top),
        ["manifest-without-lockfile"],
        "a workspace keeps its lockfile at the top"
    );
    assert_eq!(
        ids(&changing(
            &[("web/package.json", Some(old), Some(&new))],
            &[]
        )),
        [""; 0],
        "there is no lockfile"
    );
    let scripts = old.replace(
        "\"name\": \"a\",",
        "\"name\": \"a\",\n  \"version\": \"2.0.0\",",
    );
    assert_eq!(
        ids(&changing(
            &[("package.json", Some(old), Some(&scripts))],
            &["yarn.lock"]
        )),
        [""; 0]
    );
    let both = [
        ("package.json", Some(old), Some(&new[..])),
        ("yarn.lock", Some("a\n"), Some("b\n")),
    ];
    assert_eq!(ids(&changing(&both, &["yarn.lock"])), [""; 0]);
}

#[test]
fn cargo_and_go_manifests_are_read_too() {
    let old = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n\n[dependencies]\nserde = \"1\"\n";
    let more = old.replace("serde = \"1\"", "serde = \"1\"\nrand = \"0.9\"");
    assert_eq!(
        ids(&changing(
            &[("Cargo.toml", Some(old), Some(&more))],
            &["Cargo.lock"]
        )),
        ["manifest-without-lockfile"]
    );
    let renamed = old.replace("\"1.0.0\"", "\"1.0.1\"");
    assert_eq!(
        ids(&changing(
            &[("Cargo.toml", Some(old), Some(&renamed))],
            &["Cargo.lock"]
        )),
        [""; 0]
    );
    let old = "module a\n\ngo 1.24\n\nrequire (\n\tgithub.com/x/y v1.0.0\n)\n";
    let newer = old.replace("v1.0.0", "v1.1.0");
    assert_eq!(
        ids(&changing(
            &[("go.mod", Some(old), Some(&newer))],
            &["go.sum"]
        )),
        [""; 0],
        "its sum may be there"
    );
    let more = old.replace("v1.0.0", "v1.0.0\n\tgithub.com/x/z v1.0.0");
    assert_eq!(
        ids(&changing(
            &[("go.mod", Some(old), Some(&more))],
            &["go.sum"]
        )),
        ["manifest-without-lockfile"]
    );
}

#[test]
fn a_lockfile_that_downloads_from_elsewhere_is_reported() {
    fn entry(host: &str) -> String {
        format!(
            "{{\n  \"packages\": {{\n    \"node_modules/a\": {{\n      \"resolved\": \"https://{host}/a/-/a-1.0.0.tgz\"\n    }}\n  }}\n}}\n"
        )
    }
    let old = entry("registry.npmjs.org");
    let found = changing(
        &[(
            "package-lock.json",
            Some(&old),
            Some(&entry("packages.example.net")),
        )],
        &[],
    );
    assert_eq!(ids(&found), ["lockfile-new-source"]);
    let plain = old.replace("https://", "http://");
    assert_eq!(
        ids(&changing(
            &[("package-lock.json", Some(&old), Some(&plain))],
            &[]
        )),
        ["lockfile-insecure-source"]
    );
    let sum = plain.replace(".tgz\"\n", ".tgz\",\n      \"integrity\": \"sha1-AAAA\"\n");
    assert_eq!(
        ids(&changing(
            &[("package-lock.json", Some(&old), Some(&sum))],
            &[]
        )),
        [""; 0],
        "npm compares it"
    );
    let of_other = plain.replace(
        "    }\n  }\n",
        "    },\n    \"node_modules/b\": {\n      \"integrity\": \"sha1-AAAA\"\n    }\n  }\n",
    );
    let found = changing(&[("package-lock.json", Some(&old), Some(&of_other))], &[]);
    assert_eq!(
        ids(&found),
        ["lockfile-insecure-source"],
        "the checksum of another package"
    );
    let of_yarn = |sum: &str| {
        format!(
            "a@^1.0.0:\n  version \"1.0.0\"\n  resolved \"http://registry.npmjs.org/a/-/a-1.0.0.tgz{sum}\"\n"
        )
    };
    for (sum, expected) in [
        ("#5a2d2d1b2c8c1f2f8f9f6f5e4d3c2b1a09182736", None),
        ("#5a2d", Some("lockfile-insecure-source")),
        ("", Some("lockfile-insecure-source")),
    ] {
        let found = changing(&[("yarn.lock", Some("\n"), Some(&of_yarn(sum)))], &[]);
        assert_eq!(ids(&found), Vec::from_iter(expected), "{sum}");
    }
    let update = old.replace("1.0.0", "1.0.1");
    assert_eq!(
        ids(&changing(
            &[("package-lock.json", Some(&old), Some(&update))],
            &[]
        )),
        [""; 0],
        "an update is no finding"
    );
}

#[test]
fn tests_that_go_while_the_code_stays_are_reported() {
    let old = "def test_adds():\n    pass\n\n\ndef test_subtracts():\n    pass\n";
    let new = "def test_adds():\n    pass\n";
    assert_eq!(
        ids(&changing(
            &[("tests/test_sum.py", Some(old), Some(new))],
            &[]
        )),
        ["test-deleted"]
    );
    assert_eq!(
        ids(&changing(&[("tests/test_sum.py", Some(old), None)], &[])),
        ["test-deleted"]
    );
    let moved = [
        ("tests/test_sum.py", Some(old), None),
        ("tests/test_math.py", None, Some(old)),
    ];
    assert_eq!(ids(&changing(&moved, &[])), [""; 0], "a move is no loss");
    let with_code = [
        ("tests/test_sum.py", Some(old), None),
        ("app/sum.py", Some("def add():\n    pass\n"), None),
    ];
    assert_eq!(
        ids(&changing(&with_code, &[])),
        [""; 0],
        "what they tested goes too"
    );
}

/// Returns the severity of the only finding about an action on a branch.
fn branch(old: Option<&str>, new: &str) -> Severity {
    let path = ".github/workflows/a.yml";
    let found = changing(&[(path, old, Some(new))], &[]);
    let mut of_rule = found
        .iter()
        .filter(|f| f.rule_id() == "workflow-action-on-branch");
    let severity = of_rule.next().map(Finding::severity);
    assert!(of_rule.next().is_none(), "{found:?}");
    severity.unwrap_or_else(|| panic!("{new}"))
}

#[test]
fn a_branch_counts_in_a_workflow_that_pins_others_and_not_of_a_trusted_owner() {
    fn workflow(head: &str, steps: &[&str]) -> String {
        let steps: String = steps
            .iter()
            .map(|s| format!("      - uses: {s}\n"))
            .collect();
        format!("on: push\njobs:\n  a:\n{head}    steps:\n{steps}")
    }
    let pin = format!("other/action@{} # v1", "1".repeat(40));
    let new = "some-org/scan@main";
    let alone = workflow("", &[new]);
    assert_eq!(branch(None, &alone), Severity::Suggestion);
    let pinned = workflow("", &[&pin, new]);
    assert_eq!(branch(None, &pinned), Severity::Minor);
    let once = [pin.as_str(), "some-org/a@main", new];
    let old = workflow("", &once[..2]);
    assert_eq!(branch(Some(&old), &workflow("", &once)), Severity::Minor);
    let twice = [pin.as_str(), "some-org/a@main", "Some-Org/b@main", new];
    let old = workflow("", &twice[..3]);
    assert_eq!(
        branch(Some(&old), &workflow("", &twice)),
        Severity::Suggestion
    );
    let own = "    if: github.repository_owner == 'some-org'\n";
    let (old, new_file) = (workflow(own, &[&pin]), workflow(own, &[&pin, new]));
    assert_eq!(branch(Some(&old), &new_file), Severity::Suggestion);
    assert_eq!(
        branch(None, &new_file),
        Severity::Minor,
        "the change itself is not trusted"
    );
}

#[test]
fn an_added_trigger_of_an_old_checkout_is_the_line_of_the_finding() {
    fn workflow(trigger: &str) -> String {
        format!(
            "on: {trigger}\njobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n        with:\n          ref: ${{{{ github.event.pull_request.head.sha }}}}\n"
        )
    }
    let (old, new) = (workflow("pull_request"), workflow("pull_request_target"));
    let path = ".github/workflows/a.yml";
    let found = changing(&[(path, Some(&old), Some(&new))], &[]);
    let f = found
        .iter()
        .find(|f| f.rule_id() == "workflow-pull-request-target-checkout")
        .unwrap();
    assert_eq!(f.lines().map(|l| l.first.get()), Some(1));
    assert!(f.message().contains("line 7"), "{}", f.message());
    let found = changing(&[(path, None, Some(&new))], &[]);
    let f = found
        .iter()
        .find(|f| f.rule_id() == "workflow-pull-request-target-checkout")
        .unwrap();
    assert_eq!(f.lines().map(|l| l.first.get()), Some(7));
}

#[test]
fn statements_of_one_call_are_told_apart_and_no_text_is_repeated() {
    let migration = "from django.db import migrations\n\n\nclass Migration(migrations.Migration):\n    operations = [\n        migrations.RunSQL(\n            \"\"\"\n            ALTER TABLE site DROP COLUMN one;\n            ALTER TABLE site DROP COLUMN two;\n            \"\"\"\n        ),\n    ]\n";
    let found = adding(&[("shop/migrations/0002_drop.py", migration)]);
    let texts: Vec<_> = found
        .iter()
        .filter(|f| f.rule_id() == "sql-migration-drops-data")
        .map(|f| (f.quote(), f.message()))
        .collect();
    assert_eq!(texts.len(), 2, "{found:?}");
    assert!(
        texts[0].0.contains("one") && texts[0].1.contains("line 8"),
        "{texts:?}"
    );
    assert!(texts[1].0.contains("two"), "{texts:?}");
    let line = "ALTER TABLE site DROP COLUMN one, DROP COLUMN two;\n";
    let found = adding(&[("shop/migrations/0003_drop.sql", line)]);
    let count = found
        .iter()
        .filter(|f| f.rule_id() == "sql-migration-drops-data")
        .count();
    assert_eq!(count, 1, "{found:?}");
}

/// Returns the lines at which a step between two versions is reported as a syntax error.
fn broken(path: &str, old: &str, new: &str) -> Vec<u32> {
    let found = changing(&[(path, Some(old), Some(new))], &[]);
    let broken = found.iter().filter(|f| f.rule_id() == "syntax-broken");
    broken
        .filter_map(|f| f.lines().map(|l| l.first.get()))
        .collect()
}

#[test]
fn a_change_that_breaks_the_syntax_is_reported_at_an_added_line() {
    let cases = [
        (
            "a.py",
            "f(\n    a=1,\n    b=2,\n)\n",
            "f(\n    a=g(3,\n    b=2,\n)\n",
            2,
        ),
        ("a.js", "f({ a: 1 });\n", "f({ a: 1 };\n", 1),
        ("a.ts", "const a = [1];\n", "const a = [1;\n", 1),
        ("a.php", "<?php\n$a = f(1);\n", "<?php\n$a = f(1));\n", 2),
        (
            "a.go",
            "package a\n\nvar x = f(1)\n",
            "package a\n\nvar x = f(1\n",
            3,
        ),
        (
            "package.json",
            "{\n\"a\": 1,\n\"b\": 2\n}\n",
            "{\n\"a\": 3\n\"b\": 2\n}\n",
            2,
        ),
        ("a.yml", "a: b\n", "a: 'it's'\n", 1),
        ("a.js", "f(`${a} ${g({})}`);\n", "f(`${a} ${g({})}`;\n", 1),
        ("a.ts", "h(`${a}`);\nf(1);\n", "h(`${a}`);\nf((1);\n", 2),
        ("a.rb", "f(\"#{a}\")\n", "f([\"#{a}\")\n", 1),
        ("a.py", "f(f'{a}')\n", "f([f'{a}')\n", 1),
        (
            "a.cs",
            "class A { void F() { G($\"{a}\"); } }\n",
            "class A { void F() { G(($\"{a}\"); } }\n",
            1,
        ),
        (
            "a.php",
            "<?php\nf(\"{$a}\");\n",
            "<?php\nf([\"{$a}\");\n",
            2,
        ),
    ];
    for (path, old, new, line) in cases {
        assert_eq!(broken(path, old, new), [line], "{path}");
    }
}

#[test]
fn a_file_is_not_reported_as_broken_if_it_was_before_or_is_no_code() {
    let cases = [
        ("a.py", "f(a=1\n", "f(a=2, (\n"),
        // The lexer reads text of JSX as code.
        ("a.js", "x = <p>(</p>;\n", "x = <p>(</p>;\ny(;\n"),
        ("a.js", "f({ a: 1 });\n", "g({ a: ')' });\n"),
        ("a.js", "f(a);\n", "f(`${a} ${g({})} (`);\n"),
        (
            "tsconfig.json",
            "{\n\"a\": 1\n}\n",
            "{\n// b\n\"a\": 1,\n}\n",
        ),
        ("a.json", "{\"a\": 1}\n", "{\n// one\n\"a\": 1}\n"),
        ("a.json", "{\"a\": 1}\n", "{\"a\": {{ port }}}\n"),
        ("a.yml", "a: b\n", "a: {{ b }}c\n"),
        ("a.yml", "a: b\n", "a: [!tagged b, !Ref c]\n"),
        ("a.yml", "a: b\n", "{!a b: c}\n"),
        ("a.txt", "(a)\n", "(a\n"),
        ("a.py", "if a:\n    f()\n", "if a\n    f()\n"),
        ("a.py", "f(a)\n", "f(a)  # (\n"),
        (
            "a.rb",
            "a = 1\n",
            "d <<~MD\n  #{\n    f('t', <<~MD)\n      x\n    MD\n  }\nMD\n",
        ),
        (
            "a.cs",
            "class A { void F() { g(1); } }\n",
            "class A { void F() { g(\n#if X\n1\n#else\n2,\n#endif\n3); } }\n",
        ),
        ("a.blade.php", "<p>{{ $a }}</p>\n", "<p>{{ $a }</p>\n"),
    ];
    for (path, old, new) in cases {
        assert_eq!(broken(path, old, new), [0; 0], "{path}");
    }
    assert_eq!(
        adding(&[("a.json", "{")]).len(),
        0,
        "a new file has no old version"
    );
}
