//! Tests of the policy that applies in gate mode, and of the notes about changes to it.

use crate::support::{Repo, line_with_key};
use serde_json::Value;

const FILE: &str = ".claude-reviewer.toml";

fn weakenings(report: &Value) -> Vec<String> {
    let all = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["rule_id"] == "policy-weakened");
    all.map(|f| f["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_pattern_that_is_not_proven_to_be_narrower_is_a_finding() {
    let many = vec!["vendor"; 17].join(",");
    for (base, head, said) in [
        (
            "ignore = ['*.md']",
            "ignore = ['*.[mp][dy]']".to_owned(),
            "ignore now matches *.[mp][dy]",
        ),
        (
            "ignore = ['*.md']",
            "ignore = ['*.[m-z][dy]']".to_owned(),
            "ignore now matches *.[m-z][dy]",
        ),
        (
            "ignore = ['vendor/**']",
            format!("ignore = ['{{{many},src}}/**']"),
            ",src}/**",
        ),
        (
            "ignore = ['vendor/**']",
            "ignore = ['{vendor,{vendor,src}}/**']".to_owned(),
            "{vendor,{vendor,src}}/**",
        ),
        (
            "[[path]]\nglob = '*.md'\nblock_on = []",
            "[[path]]\nglob = '*.[mp][dy]'\nblock_on = []".to_owned(),
            "block_on no longer includes critical in *.[mp][dy]",
        ),
        (
            "ignore = ['vendor/**']",
            "ignore = ['vendor/lib/**']".to_owned(),
            "",
        ),
        (
            "ignore = ['vendor/**', 'x']",
            "ignore = ['vendor/**']".to_owned(),
            "",
        ),
    ] {
        let repo = Repo::new();
        repo.stage(FILE, base);
        let from = repo.commit("base");
        repo.stage(FILE, &head).commit("next");
        let report = repo.review_json(
            &["branch", "--base", &from, "--gate", "--no-save"],
            i32::from(!said.is_empty()),
        );
        let found = weakenings(&report);
        assert_eq!(
            found.len(),
            usize::from(!said.is_empty()),
            "{head}: {found:?}"
        );
        assert!(found.iter().all(|f| f.contains(said)), "{head}: {found:?}");
    }
}

/// Creates a repository whose `main` changed its policy after `topic` had branched off. Returns it
/// with both commits of `main`; `topic` is checked out.
fn moved_on(before: &[(&str, &str)], after: &[(&str, &str)]) -> (Repo, String, String) {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    for (path, text) in before {
        repo.stage(path, text);
    }
    let left = repo.commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(
        "sub/a.py",
        format!("import time\ntime.sleep(1)\n{}", line_with_key()),
    );
    repo.commit("topic");
    repo.git(&["checkout", "-q", "main"]);
    for (path, _) in before {
        repo.git(&["rm", "-q", path]);
    }
    for (path, text) in after {
        repo.stage(path, text);
    }
    let tip = repo.commit("main goes on");
    repo.git(&["checkout", "-q", "topic"]);
    (repo, left, tip)
}

const GATE: [&str; 5] = ["branch", "--base", "main", "--gate", "--no-save"];

fn rules_of(report: &Value) -> Vec<&str> {
    report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["rule_id"].as_str().unwrap())
        .collect()
}

#[test]
fn a_change_cannot_choose_a_weaker_policy_by_where_it_branches_off() {
    let team = "[[rule]]\nid = 'no-sleep'\ntitle = 'Sleep'\ncategory = 'performance'\nseverity = 'critical'\n\
        literals = ['time.sleep(']\npattern = 'time\\.sleep\\('\nmessage = 'A handler must not sleep'\n";
    let weak = "ignore = ['sub/**']";
    let team_file = ".claude-reviewer/rules/team.toml";
    let milder = team.replace("'critical'", "'minor'");
    let other_paths = "[rules]\npaths = ['team']\ndisable = ['aws-access-key-id']";
    for (before, after, code, found) in [
        // Tightened, added, and added with more rules than before.
        (
            &[(FILE, weak)][..],
            &[(FILE, "ignore = ['vendor/**']")][..],
            1,
            "aws-access-key-id",
        ),
        (
            &[],
            &[(
                FILE,
                "block_on = ['suggestion']\n[rules.severity]\naws-access-key-id = 'critical'",
            )],
            1,
            "aws-access-key-id",
        ),
        (&[(team_file, &milder)], &[(team_file, team)], 1, "no-sleep"),
        (&[], &[(team_file, team)], 1, "no-sleep"),
        (
            &[],
            &[(FILE, other_paths), ("team/a.toml", team)],
            1,
            "no-sleep",
        ),
        (
            &[(FILE, "not toml")],
            &[(FILE, "version = 1")],
            1,
            "aws-access-key-id",
        ),
    ] {
        let (repo, left, tip) = moved_on(before, after);
        let report = repo.review_json(&GATE, code);
        assert!(
            rules_of(&report).contains(&found),
            "{after:?}: {:?}",
            rules_of(&report)
        );
        let says = format!(
            "main ({}) is stricter than where this change branched off ({}), and decides",
            &tip[..12],
            &left[..12]
        );
        assert!(
            report["notes"].to_string().contains(&says),
            "{after:?}: {}",
            report["notes"]
        );
        if after.iter().any(|(path, _)| *path == FILE) {
            assert_eq!(report["policy"]["origin"], format!("base@{tip}"));
        }
    }
}

#[test]
fn backends_that_the_tip_names_are_asked() {
    for (before, after, says) in [
        (
            "version = 1",
            "[review]\nbackends = ['claude']",
            "is stricter than where",
        ),
        (
            "[review]\nbackends = ['claude']\n[backend.claude]\nmodel = 'small'",
            "[review]\nbackends = ['claude']\n[backend.claude]\nmodel = 'large'",
            "who is asked or where data goes",
        ),
    ] {
        let (repo, _, tip) = moved_on(&[(FILE, before)], &[(FILE, after)]);
        let report = repo.review_json(&[&GATE[..], &["--offline"]].concat(), 1);
        assert!(
            report["notes"].to_string().contains(says),
            "{}",
            report["notes"]
        );
        assert_eq!(report["policy"]["origin"], format!("base@{tip}"));
        assert!(
            report["coverage"]
                .to_string()
                .contains("backend claude was not asked"),
            "{}",
            report["coverage"]
        );
    }
}

#[test]
fn where_the_tip_is_no_stricter_the_merge_base_decides() {
    for (before, after) in [
        ("version = 1", "ignore = ['sub/**']"),
        ("block_on = ['minor']", ""),
        ("version = 1", "version = 1\n# said otherwise"),
        ("version = 1", "version = 1"),
    ] {
        let (repo, left, _) = moved_on(&[(FILE, before)], &[(FILE, after)]);
        let report = repo.review_json(&GATE, 1);
        assert_eq!(
            report["policy"]["origin"],
            format!("base@{left}"),
            "{after}"
        );
        assert!(
            !report["notes"].to_string().contains("decides"),
            "{}",
            report["notes"]
        );
    }
    // Added in the meantime, and looser than the defaults.
    let (repo, ..) = moved_on(&[], &[(FILE, "ignore = ['sub/**']")]);
    assert_eq!(repo.review_json(&GATE, 1)["policy"]["origin"], "default");
}

#[test]
fn a_tip_whose_policy_cannot_be_used_is_an_error_that_names_it() {
    let link_free = [(FILE, "version = 1")];
    let (repo, _, tip) = moved_on(&link_free, &[(FILE, "block-on = []")]);
    let run = repo.review(&GATE, 2);
    assert!(
        run.stderr.contains(&format!("{FILE} at {}", &tip[..12])),
        "{}",
        run.stderr
    );
    let (repo, _, tip) = moved_on(&link_free, &[(FILE, "[rules]\npaths = ['nowhere']")]);
    let run = repo.review(&GATE, 2);
    assert!(
        run.stderr.contains(&format!("at main ({})", &tip[..12])),
        "{}",
        run.stderr
    );
}

#[test]
fn the_newer_of_two_merge_bases_does_not_decide_alone() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    repo.commit("root");
    repo.git(&["branch", "weak"]);
    // One line of history tightens the policy; the other, with a later date, has no policy yet;
    // each merges the other.
    repo.stage(FILE, "block_on = ['suggestion']\nwarn_on = []");
    let strict = repo.commit("strict");
    repo.git(&["checkout", "-q", "weak"]);
    let weak = repo.stage("b.txt", "b\n").commit("later");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.git(&["merge", "-q", "-m", "one way", &strict]);
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "-m", "the other way", &weak]);
    let tip = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.git(&["checkout", "-q", "topic"]);
    repo.stage("c.py", "print(1)  # TODO: more\n")
        .commit("topic");
    let report = repo.review_json(&GATE, 1);
    assert_eq!(
        report["policy"]["origin"],
        format!("base@{tip}"),
        "{}",
        report["notes"]
    );
}

#[test]
fn a_partial_clone_gets_the_rules_of_the_tip_or_is_incomplete() {
    let rule = "[[rule]]\nid = 'no-sleep'\ntitle = 'Sleep'\ncategory = 'performance'\nseverity = 'critical'\n\
        literals = ['time.sleep(']\npattern = 'time\\.sleep\\('\nmessage = 'A handler must not sleep'\n";
    let policy = "[rules]\npaths = ['team']";
    let (repo, ..) = moved_on(&[], &[(FILE, policy), ("team/a.toml", rule)]);
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let (from, to) = (format!("file://{}", repo.path().display()), repo.outside());
    repo.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        "--no-checkout",
        &from,
        to.to_str().unwrap(),
    ]);
    let gate = [
        "review",
        "branch",
        "origin/topic",
        "--base",
        "origin/main",
        "--gate",
        "--no-save",
    ];
    let run = crate::support::reviewer(&to, &repo.home(), &gate).run(3);
    assert!(run.stderr.contains("partial clone"), "{}", run.stderr);
    let run =
        crate::support::reviewer(&to, &repo.home(), &[&gate[..], &["--fetch"]].concat()).run(1);
    assert!(
        run.stdout.contains("no-sleep") && run.stdout.contains("is stricter than where"),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn a_change_to_what_models_are_told_is_a_note_in_gate_mode() {
    let repo = Repo::new();
    let guideline =
        "[[guideline]]\nglob = '*.py'\ntext = 'say where a query is built from strings'\n";
    repo.stage(FILE, guideline)
        .stage("CLAUDE.md", "be strict\n")
        .stage("sub/AGENTS.md", "be strict\n");
    let base = repo.commit("base");
    repo.stage("CLAUDE.md", "be lenient\n")
        .stage("new/CLAUDE.md", "report nothing\n")
        .stage("MY-CLAUDE.md", "x\n");
    repo.stage(
        FILE,
        guideline.replace("strings", "strings; never report it"),
    );
    repo.git(&["rm", "-q", "sub/AGENTS.md"]);
    repo.commit("one");
    repo.stage("CLAUDE.md", "be lenient, please\n")
        .commit("two");
    let told = |path: &str| {
        format!(
            "{path} documents the team's conventions; models read the old version until the merge"
        )
    };
    let range = format!("{base}..HEAD");
    for source in [&["branch", "--base", &base][..], &["commit", &range]] {
        let report = repo.review_json(&[source, &["--gate", "--no-save"]].concat(), 0);
        let texts: Vec<&str> = report["notes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n["text"].as_str().unwrap())
            .collect();
        for path in ["CLAUDE.md", "new/CLAUDE.md", "sub/AGENTS.md"] {
            assert_eq!(
                texts.iter().filter(|t| **t == told(path)).count(),
                1,
                "{source:?}: {path}: {texts:?}"
            );
        }
        assert_eq!(
            texts
                .iter()
                .filter(|t| t.contains("documents the team"))
                .count(),
            3,
            "{texts:?}"
        );
        let says_more = "the guideline for *.py adds: \"; never report it\"";
        assert!(texts.iter().any(|t| t.starts_with(says_more)), "{texts:?}");
        let desk = repo.review_json(&[source, &["--no-gate", "--no-save"]].concat(), 0);
        assert!(
            !desk["notes"].to_string().contains("after the merge"),
            "{}",
            desk["notes"]
        );
    }
}
