//! `review tree --history`: each blob of a history once, with the commit that introduced it.

use crate::support::{Repo, files_below, line_with_another_key, line_with_key};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// The findings of a search of the whole history, as its JSON report has them.
fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().unwrap()
}

/// The message of the only finding.
#[track_caller]
fn only_message(report: &Value) -> String {
    assert_eq!(findings(report).len(), 1, "{report:#}");
    findings(report)[0]["message"].as_str().unwrap().to_owned()
}

/// The commit of the only finding.
#[track_caller]
fn only_commit(report: &Value) -> &str {
    assert_eq!(findings(report).len(), 1, "{report:#}");
    findings(report)[0]["commit"].as_str().unwrap()
}

/// The note with the totals.
fn totals(report: &Value) -> String {
    let notes = report["notes"].as_array().unwrap();
    let texts = notes.iter().filter_map(|n| n["text"].as_str());
    let mut totals = texts.filter(|t| t.contains(" blobs of "));
    totals.next().unwrap().to_owned()
}

/// A file of many lines, so that git stores its versions as deltas.
fn lines(count: usize, line: &str) -> String {
    let mut text: String = (0..count).map(|i| format!("value_{i} = {i}\n")).collect();
    text.push_str(line);
    text
}

#[test]
fn a_removed_secret_is_reported_with_the_commit_that_introduced_it() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    let introduced = {
        repo.stage("a.py", format!("x = 1\n{}", line_with_key()));
        repo.commit("second")
    };
    repo.stage("a.py", "x = 1\n").commit("third");
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), introduced);
    let finding = &findings(&report)[0];
    assert_eq!(finding["file"], "a.py");
    assert_eq!(finding["line"], 2, "{finding:#}");
    let message = only_message(&report);
    assert!(
        message.contains("The tree of HEAD does not have it"),
        "{message}"
    );
    assert_eq!(report["source"]["kind"], "tree");
    assert!(totals(&report).starts_with("2 blobs of 3 commits: 2 searched as text"));
}

#[test]
fn a_secret_that_is_still_there_is_reported_with_its_place_in_the_tree() {
    let repo = Repo::new();
    repo.stage("a.py", line_with_key());
    let introduced = repo.commit("first");
    repo.stage("a.py", format!("# a\n# b\n{}", line_with_key()));
    repo.commit("second");
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), introduced);
    let message = only_message(&report);
    assert!(message.contains("still has it, at a.py:3"), "{message}");
    assert!(
        message.contains("One more version of the file has it"),
        "{message}"
    );
}

#[test]
fn a_secret_in_many_versions_of_a_file_is_one_finding() {
    for packed in [false, true] {
        let repo = Repo::new();
        repo.stage("conf/a.py", lines(200, "")).commit("before");
        let mut introduced = String::new();
        for version in 0..30 {
            let text = format!("version = {version}\n{}", lines(200, &line_with_key()));
            repo.stage("conf/a.py", text);
            let commit = repo.commit("version");
            if version == 0 {
                introduced = commit;
            }
        }
        repo.stage("conf/a.py", lines(201, "")).commit("after");
        if packed {
            repo.git(&["repack", "-q", "-adf", "--window=50", "--depth=50"]);
        }
        let report = repo.review_json(&["tree", "--history"], 1);
        assert_eq!(only_commit(&report), introduced, "packed: {packed}");
        let message = only_message(&report);
        assert!(message.contains("29 more versions"), "{message}");
        assert!(message.contains("does not have it"), "{message}");
        assert!(totals(&report).starts_with("32 blobs of 32 commits: 32 searched"));
    }
}

#[test]
fn packed_and_loose_objects_give_the_same_report() {
    let repo = Repo::new();
    for version in 0..20 {
        let key = if version % 5 < 3 {
            line_with_key()
        } else {
            String::new()
        };
        let other = if version > 12 {
            line_with_another_key()
        } else {
            String::new()
        };
        repo.stage("a.py", format!("v = {version}\n{}{other}", lines(80, &key)));
        repo.stage(
            &format!("d/{}.py", version % 4),
            lines(60 + version, &other),
        );
        repo.commit("version");
    }
    let text = |report: &Value| format!("{:#}", report["findings"]);
    let loose = text(&repo.review_json(&["tree", "--history"], 1));
    repo.git(&["repack", "-q", "-adf", "--depth=20"]);
    assert_eq!(text(&repo.review_json(&["tree", "--history"], 1)), loose);
    assert_eq!(
        text(&repo.review_json(&["tree", "--history", "--jobs", "1"], 1)),
        loose
    );
    assert_eq!(
        text(&repo.review_json(&["tree", "--history", "--jobs", "3"], 1)),
        loose
    );
    repo.git(&["repack", "-q", "-ad", "-f", "--depth=0"]);
    assert_eq!(text(&repo.review_json(&["tree", "--history"], 1)), loose);
}

#[test]
fn the_first_commit_is_the_oldest_on_any_branch() {
    let repo = Repo::new();
    repo.stage("base.txt", "base\n").commit("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.stage("a.py", line_with_key());
    let introduced = repo.commit("on the side");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("other.txt", "x\n").commit("on main");
    // The same change again, and then a merge of both.
    repo.git(&["cherry-pick", "side"]);
    repo.git(&["merge", "-q", "-m", "merge", "side"]);
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), introduced);
}

#[test]
fn a_secret_that_only_a_merge_has_belongs_to_the_merge() {
    let repo = Repo::new();
    repo.stage("a.py", "a = 1\n").commit("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.stage("b.py", "b = 1\n").commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.stage("c.py", "c = 1\n").commit("main");
    repo.git(&["merge", "-q", "--no-commit", "side"]);
    repo.stage("a.py", line_with_key());
    let merge = repo.commit("merge");
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), merge);
}

#[test]
fn branches_tags_stashes_and_remote_branches_are_searched() {
    let repo = Repo::new();
    repo.stage("a.py", "a = 1\n").commit("base");
    for reference in [
        "refs/heads/b",
        "refs/tags/t",
        "refs/remotes/origin/r",
        "refs/stash",
    ] {
        repo.git(&["checkout", "-q", "--detach", "main"]);
        repo.stage("key.py", line_with_key());
        let commit = repo.commit("with a key");
        repo.git(&["update-ref", reference, &commit]);
        repo.git(&["checkout", "-q", "main"]);
        let report = repo.review_json(&["tree", "--history"], 1);
        assert_eq!(only_commit(&report), commit, "{reference}");
        repo.git(&["update-ref", "-d", reference]);
        repo.review_json(&["tree", "--history"], 0);
    }
}

#[test]
fn a_range_has_only_the_secrets_that_its_commits_introduced() {
    let repo = Repo::new();
    repo.stage("a.py", line_with_key());
    let old = repo.commit("old key");
    repo.stage("a.py", format!("x = 1\n{}", line_with_key()));
    repo.stage("b.py", line_with_another_key());
    let new = repo.commit("new key");
    let range = format!("--history={old}..{new}");
    let report = repo.review_json(&["tree", &range], 1);
    assert_eq!(only_commit(&report), new);
    assert_eq!(findings(&report)[0]["file"], "b.py");
    let empty = format!("--history={new}..{new}");
    repo.review_json(&["tree", &empty], 0);
    let run = repo.review(&["tree", "--history=nope..main"], 2);
    assert!(
        run.stderr.contains("unknown revision nope"),
        "{}",
        run.stderr
    );
    let run = repo.review(&["tree", "--history=main"], 2);
    assert!(run.stderr.contains("expected A..B"), "{}", run.stderr);
}

#[test]
fn git_05_a_shallow_clone_is_incomplete_and_still_searched() {
    let repo = Repo::new();
    repo.stage("a.py", "a = 1\n").commit("base");
    repo.stage("key.py", line_with_key()).commit("key");
    repo.stage("c.py", "c = 1\n").commit("last");
    let clone = repo.outside();
    let url = format!("file://{}", repo.path().display());
    repo.git(&["clone", "-q", "--depth=1", &url, clone.to_str().unwrap()]);
    let args = ["review", "tree", "--history", "--format", "json"];
    let run = crate::support::reviewer(&clone, &repo.home(), &args).run(1);
    let report = run.json();
    assert_eq!(findings(&report).len(), 1);
    let failed = report["coverage"]["failed"].to_string();
    assert!(failed.contains("git fetch --unshallow"), "{failed}");
}

#[test]
fn git_18_missing_blobs_of_a_partial_clone_are_named_and_not_fetched() {
    let repo = Repo::new();
    repo.stage("a.py", "a = 1\n").commit("base");
    repo.stage("b.py", "b = 1\n").commit("second");
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = repo.outside();
    let url = format!("file://{}", repo.path().display());
    let place = clone.to_str().unwrap();
    repo.git(&["clone", "-q", "--bare", "--filter=blob:none", &url, place]);
    let args = ["review", "tree", "--history", "--format", "json"];
    let report = crate::support::reviewer(&clone, &repo.home(), &args)
        .env("GIT_DIR", &clone)
        .run(3)
        .json();
    let failed = report["coverage"]["failed"].to_string();
    assert!(
        failed.contains("missing from this partial clone"),
        "{failed}"
    );
    assert!(
        failed.contains("a.py") && failed.contains("b.py"),
        "{failed}"
    );
}

#[test]
fn git_12_a_corrupt_object_makes_the_search_incomplete() {
    let repo = Repo::new();
    repo.stage("a.py", "a = 1\n");
    repo.stage("key.py", line_with_key()).commit("base");
    let id = repo.git(&["rev-parse", "HEAD:a.py"]).trim().to_owned();
    let file = repo
        .path()
        .join(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, b"not an object").unwrap();
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(findings(&report).len(), 1);
    let failed = report["coverage"]["failed"].to_string();
    assert!(failed.contains("a.py") && failed.contains(&id), "{failed}");
}

#[test]
fn git_19_a_sha256_repository_is_searched() {
    let repo = Repo::init(&["--object-format=sha256"]);
    for version in 0..8 {
        let key = if version == 2 {
            line_with_key()
        } else {
            String::new()
        };
        repo.stage("d/a.py", format!("v = {version}\n{}", lines(90, &key)));
        repo.commit("version");
    }
    repo.git(&["repack", "-q", "-adf", "--depth=20"]);
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report).len(), 64);
}

#[test]
fn alternates_and_bare_repositories_are_searched() {
    let repo = Repo::new();
    repo.stage("key.py", line_with_key());
    let introduced = repo.commit("key");
    let clone = repo.outside();
    let (from, to) = (repo.path(), clone.to_str().unwrap().to_owned());
    repo.git(&[
        "clone",
        "-q",
        "--bare",
        "--shared",
        from.to_str().unwrap(),
        &to,
    ]);
    let args = ["review", "tree", "--history", "--format", "json"];
    let report = crate::support::reviewer(&clone, &repo.home(), &args)
        .env("GIT_DIR", &clone)
        .run(1)
        .json();
    assert_eq!(only_commit(&report), introduced);
}

#[test]
fn a_replaced_object_hides_nothing() {
    let repo = Repo::new();
    repo.stage("key.py", line_with_key()).commit("key");
    let bad = repo.git(&["rev-parse", "HEAD:key.py"]).trim().to_owned();
    repo.stage("key.py", "x = 1\n").commit("removed");
    let good = repo.git(&["rev-parse", "HEAD:key.py"]).trim().to_owned();
    repo.git(&["replace", &bad, &good]);
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(findings(&report).len(), 1);
}

#[test]
fn ignored_paths_are_left_out_and_another_path_of_the_blob_counts() {
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", "ignore = [\"vendor/**\"]\n");
    repo.stage("vendor/key.py", line_with_key())
        .commit("vendored");
    let report = repo.review_json(&["tree", "--history"], 0);
    assert!(totals(&report).contains("1 ignored by the policy"));
    assert!(
        report["coverage"]["skipped"]
            .to_string()
            .contains("vendor/key.py")
    );
    repo.stage("src/key.py", line_with_key());
    let copied = repo.commit("copied");
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), copied);
    assert_eq!(findings(&report)[0]["file"], "src/key.py");
}

#[test]
fn two_keys_that_replace_each_other_in_one_line_are_two_findings() {
    let repo = Repo::new();
    repo.stage("a.py", lines(50, &line_with_key()))
        .commit("one");
    repo.stage("a.py", lines(50, &line_with_another_key()))
        .commit("other");
    repo.git(&["repack", "-q", "-adf"]);
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(findings(&report).len(), 2, "{report:#}");
}

#[test]
fn a_secret_that_is_split_over_lines_is_found_in_a_delta_with_one_of_the_lines() {
    let repo = Repo::new();
    let split = |end: &str| lines(200, &format!("key = (\"{}Q3EGRN\"\n  \"{end}\")\n", "AKIA"));
    repo.stage("a.py", split("DLK5V2TW7A"));
    let introduced = repo.commit("key");
    // The longer text is the base of the other one, which has one line of its own.
    repo.stage("a.py", split("from the environment, not from here"));
    repo.commit("removed");
    let loose = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&loose), introduced);
    repo.git(&["repack", "-q", "-adf"]);
    let packed = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&packed), introduced);
}

#[test]
fn nothing_is_said_about_a_tree_of_head_that_was_not_searched() {
    let repo = Repo::new();
    let old = repo.stage("x.py", "x = 1\n").commit("base");
    repo.stage("a.py", line_with_key());
    let introduced = repo.commit("key");
    repo.git(&["rm", "-q", "a.py"]);
    repo.stage("c.py", format!("# moved\n{}", line_with_key()));
    repo.commit("moved and edited");
    let range = format!("--history={old}..{introduced}");
    let message = only_message(&repo.review_json(&["tree", &range], 1));
    assert!(!message.contains("HEAD"), "{message}");
    let report = repo.review_json(&["tree", "--history"], 1);
    let mut of_both = findings(&report).iter();
    assert_eq!(of_both.len(), 2);
    assert!(of_both.all(|f| f["message"].to_string().contains("still has it, at c.py:2")));
}

#[test]
fn a_blob_is_judged_by_a_path_that_is_not_a_test() {
    let repo = Repo::new();
    repo.stage("tests/key.py", line_with_key()).commit("test");
    repo.stage("src/key.py", line_with_key());
    let copied = repo.commit("program");
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), copied);
    assert_eq!(findings(&report)[0]["file"], "src/key.py");
}

#[test]
fn git_12_a_delta_of_itself_makes_the_search_incomplete() {
    let repo = Repo::new();
    for version in 0..2 {
        let rest = "# a longer text\n".repeat(version);
        repo.stage("a.py", lines(200, &rest)).commit("version");
    }
    repo.git(&[
        "-c",
        "repack.useDeltaBaseOffset=false",
        "repack",
        "-q",
        "-adf",
    ]);
    let folder = repo.path().join(".git/objects/pack");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    let pack = files.filter(|p| p.extension().is_some_and(|e| e == "pack"));
    let pack = pack.last().unwrap();
    // "ID blob size packed-size offset depth base" for a delta.
    let list = repo.git(&["verify-pack", "-v", pack.to_str().unwrap()]);
    let mut deltas = list
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>());
    let delta = deltas.find(|l| l.len() == 7 && l[1] == "blob").unwrap();
    let raw = |id: &str| -> Vec<u8> {
        let digits = (0..id.len()).step_by(2);
        digits
            .map(|i| u8::from_str_radix(&id[i..i + 2], 16).unwrap())
            .collect()
    };
    let (own, base, offset) = (
        raw(delta[0]),
        raw(delta[6]),
        delta[4].parse::<usize>().unwrap(),
    );
    let mut data = std::fs::read(&pack).unwrap();
    let mut places = offset..offset + 8;
    let at = places.find(|at| data[*at..].starts_with(&base)).unwrap();
    data[at..at + own.len()].copy_from_slice(&own);
    std::fs::remove_file(&pack).unwrap();
    std::fs::write(&pack, data).unwrap();
    let report = repo.review_json(&["tree", "--history"], 3);
    let failed = report["coverage"]["failed"].to_string();
    assert!(
        failed.contains("a.py") && failed.contains(delta[0]),
        "{failed}"
    );
}

#[test]
fn a_secret_that_removed_lines_put_together_is_found_in_a_delta() {
    let repo = Repo::new();
    let split = |between: &str| {
        let end = "DLK5V2TW7A";
        let text = format!("key = (\"{}Q3EGRN\" +\n{between}  \"{end}\")\n", "AKIA");
        lines(200, &text) + &lines(200, "")
    };
    // The longer text is the base. The other one has no line of its own.
    repo.stage("a.py", split(&lines(40, ""))).commit("apart");
    repo.stage("a.py", split(""));
    let introduced = repo.commit("together");
    for packed in [false, true] {
        if packed {
            repo.git(&["repack", "-q", "-adf"]);
        }
        let report = repo.review_json(&["tree", "--history"], 1);
        assert_eq!(only_commit(&report), introduced, "packed: {packed}");
    }
}

#[test]
fn a_copy_of_a_secret_is_found_in_a_delta_without_the_other_copy() {
    let repo = Repo::new();
    let key = line_with_key();
    repo.stage("a.py", lines(200, &key));
    let introduced = repo.commit("one");
    repo.stage("a.py", format!("{key}{}", lines(200, &key)));
    repo.commit("two");
    repo.stage(
        "a.py",
        format!("{key}{}{key}", lines(200, &lines(20, &key))),
    );
    repo.commit("three");
    let loose = repo.review_json(&["tree", "--history"], 1);
    repo.git(&["repack", "-q", "-adf"]);
    let packed = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&packed), introduced);
    assert_eq!(packed["findings"], loose["findings"]);
}

#[test]
fn a_suppressed_copy_of_a_secret_hides_no_other_copy_of_the_file() {
    let repo = Repo::new();
    let comment = "# claude-reviewer: ignore[aws-access-key-id] sample of a test\n";
    let suppressed = format!("{comment}{}", line_with_key());
    repo.stage("a.py", &suppressed).commit("suppressed");
    repo.review_json(&["tree", "--history"], 0);
    let both = format!("{suppressed}{}{}", lines(10, ""), line_with_key());
    repo.stage("b.py", &both).commit("both");
    let report = repo.review_json(&["tree", "--history"], 1);
    let of_both = findings(&report).iter().find(|f| f["file"] == "b.py");
    assert_eq!(of_both.unwrap()["suppressed"], Value::Null);
    // The same holds for a secret that HEAD does not have.
    repo.git(&["rm", "-q", "a.py", "b.py"]);
    repo.commit("removed");
    repo.git(&["repack", "-q", "-adf"]);
    repo.review_json(&["tree", "--history"], 1);
}

#[test]
fn a_blob_is_judged_by_the_path_with_the_strictest_thresholds() {
    let repo = Repo::new();
    let policy = "[[path]]\nglob = [\"sandbox/**\"]\nblock_on = []\nwarn_on = []\n";
    repo.stage(".claude-reviewer.toml", policy);
    repo.stage("sandbox/key.py", line_with_key())
        .commit("sandbox");
    repo.review_json(&["tree", "--history"], 0);
    repo.stage("src/key.py", line_with_key());
    let copied = repo.commit("program");
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), copied);
    assert_eq!(findings(&report)[0]["file"], "src/key.py");
}

/// Writes a commit that git itself would not write, and returns its ID.
fn write_commit(repo: &Repo, text: &str) -> String {
    repo.write("commit.txt", text);
    let path = repo.path().join("commit.txt");
    let path = path.to_str().unwrap();
    let args = ["hash-object", "-t", "commit", "-w", "--literally", path];
    let id = repo.git(&args).trim().to_owned();
    std::fs::remove_file(path).unwrap();
    id
}

#[test]
fn git_12_a_commit_with_an_invalid_parent_makes_the_search_incomplete() {
    let repo = Repo::new();
    repo.stage("a.py", line_with_key()).commit("key");
    repo.git(&["rm", "-q", "a.py"]);
    repo.stage("b.py", "x = 1\n").commit("removed");
    let commit = repo.git(&["cat-file", "commit", "HEAD"]);
    let parent = commit.lines().find(|l| l.starts_with("parent ")).unwrap();
    let id = write_commit(&repo, &commit.replace(parent, &format!("{parent} ")));
    std::fs::write(repo.path().join(".git/refs/heads/main"), format!("{id}\n")).unwrap();
    let report = repo.review_json(&["tree", "--history"], 3);
    let failed = report["coverage"]["failed"].to_string();
    assert!(failed.contains(&id), "{failed}");
}

#[test]
fn a_commit_without_files_needs_no_tree_object() {
    let repo = Repo::new();
    let tree = repo.git(&["hash-object", "-t", "tree", "/dev/null"]);
    let empty = repo.git(&["commit-tree", "-m", "empty", tree.trim()]);
    repo.git(&["update-ref", "refs/heads/main", empty.trim()]);
    assert!(!repo.path().join(".git/objects/4b").exists());
    repo.stage("a.py", line_with_key());
    let introduced = repo.commit("key");
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(only_commit(&report), introduced);
    assert_eq!(report["coverage"]["failed"], serde_json::json!([]));
    assert!(totals(&report).starts_with("1 blobs of 2 commits"));
}

#[test]
fn git_12_broken_references_are_named_and_the_others_are_searched() {
    let repo = Repo::new();
    repo.stage("a.py", line_with_key()).commit("first");
    repo.git(&["rm", "-q", "a.py"]);
    repo.commit("second");
    let heads = repo.path().join(".git/refs/heads");
    std::fs::write(heads.join("garbage"), "not an ID\n").unwrap();
    std::fs::write(heads.join("missing"), format!("{}\n", "0123".repeat(10))).unwrap();
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(findings(&report).len(), 1, "{report:#}");
    let failed = report["coverage"]["failed"].as_array().unwrap();
    for name in ["refs/heads/garbage", "refs/heads/missing"] {
        let named = failed
            .iter()
            .filter(|f| f["reason"].as_str().unwrap().contains(name));
        assert_eq!(named.count(), 1, "{name}: {failed:#?}");
    }
}

#[test]
fn a_file_that_only_a_tag_names_is_searched() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    let key = repo.outside();
    std::fs::write(&key, line_with_key()).unwrap();
    let blob = repo.git(&["hash-object", "-w", key.to_str().unwrap()]);
    repo.git(&["tag", "key", blob.trim()]);
    let report = repo.review_json(&["tree", "--history"], 1);
    assert_eq!(findings(&report).len(), 1, "{report:#}");
    let found = &findings(&report)[0];
    assert_eq!(found["file"], "refs/tags/key");
    assert_eq!(found["commit"], Value::Null);
    let said = format!(
        "It is in the blob {} that the tag key names. No commit that was searched has it at this path.",
        &blob[..12]
    );
    let message = only_message(&report);
    assert!(message.contains(&said), "{message}");
    let text = repo.reviewer(&["review", "tree", "--history"]).run(1);
    let words: Vec<&str> = text.stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(
        text.contains(&said) && !text.contains("in commit "),
        "{text}"
    );
}

#[test]
fn a_file_of_a_tree_that_only_a_tag_names_is_searched_and_a_commit_with_it_counts_first() {
    let repo = Repo::new();
    let introduced = repo.stage("b.py", line_with_another_key()).commit("b");
    repo.stage("a.py", line_with_key());
    let tree = repo.git(&["write-tree"]);
    let tree = tree.trim();
    repo.git(&["tag", "release", tree]);
    repo.git(&["rm", "-q", "--cached", "a.py"]);
    let report = repo.review_json(&["tree", "--history"], 1);
    let [first, second] = findings(&report) else {
        panic!("{report:#}");
    };
    let of = |file: &str| if first["file"] == file { first } else { second };
    assert_eq!(of("b.py")["commit"], introduced.as_str());
    assert_eq!(of("a.py")["commit"], Value::Null);
    let message = of("a.py")["message"].as_str().unwrap();
    let said = format!(
        "It is in the tree {} that the tag release names",
        &tree[..12]
    );
    assert!(message.contains(&said), "{message}");
}

#[test]
fn a_large_blob_that_a_tag_names_is_not_read_and_named() {
    let repo = Repo::new();
    repo.stage("a.py", line_with_key()).commit("first");
    let large = repo.outside();
    let file = std::fs::File::create(&large).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    let blob = repo.git(&["hash-object", "-w", large.to_str().unwrap()]);
    repo.git(&["tag", "large", blob.trim()]);
    for is_packed in [false, true] {
        if is_packed {
            repo.git(&["repack", "-adq"]);
        }
        let report = repo.review_json(&["tree", "--history"], 1);
        assert_eq!(findings(&report).len(), 1, "{report:#}");
        let failed = report["coverage"]["failed"].to_string();
        assert!(
            failed.contains("larger than 64 MiB") && failed.contains("refs/tags/large"),
            "{is_packed} {failed}"
        );
    }
}

#[test]
fn git_12_a_broken_head_is_named_and_the_other_references_are_searched() {
    for head in [
        "ref: refs/heads/broken\n".to_owned(),
        format!("{}\n", "0123".repeat(10)),
    ] {
        let repo = Repo::new();
        let introduced = repo.stage("a.py", line_with_key()).commit("first");
        std::fs::write(repo.path().join(".git/refs/heads/broken"), "not an ID\n").unwrap();
        std::fs::write(repo.path().join(".git/HEAD"), &head).unwrap();
        let report = repo.review_json(&["tree", "--history"], 1);
        assert_eq!(only_commit(&report), introduced);
        let message = only_message(&report);
        assert!(!message.contains("The tree of HEAD"), "{message}");
        let failed = report["coverage"]["failed"].as_array().unwrap();
        let named = |f: &Value| {
            let reason = f["reason"].as_str().unwrap();
            reason.contains("HEAD") || reason.contains("01230123")
        };
        assert!(failed.iter().any(named), "{head}: {failed:#?}");
    }
}

/// Overwrites a part of an object in a pack, so that it cannot be inflated.
fn corrupt_in(repo: &Repo, pack: &Path, id: &str) {
    let index = pack.with_extension("idx");
    let listed = repo.git(&["verify-pack", "-v", index.to_str().unwrap()]);
    let line = listed.lines().find(|l| l.starts_with(id)).unwrap();
    let offset: usize = line.split_whitespace().nth(4).unwrap().parse().unwrap();
    let mut bytes = std::fs::read(pack).unwrap();
    bytes[offset + 6..offset + 12].fill(0xff);
    std::fs::remove_file(pack).unwrap();
    std::fs::write(pack, bytes).unwrap();
}

#[test]
fn git_12_an_object_that_is_corrupt_in_one_pack_is_read_from_another() {
    for corrupt in [&[0][..], &[1], &[0, 1]] {
        let repo = Repo::new();
        repo.stage("a.py", line_with_key()).commit("first");
        let id = repo.git(&["rev-parse", "HEAD:a.py"]).trim().to_owned();
        repo.git(&["repack", "-adq"]);
        let folder = repo.path().join(".git/objects/pack");
        let mut command = repo.git_command();
        command
            .args(["pack-objects", "-q"])
            .arg(folder.join("pack"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(format!("{id}\n").as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
        let mut packs = files_below(&folder);
        packs.retain(|f| f.extension().is_some_and(|e| e == "pack"));
        assert_eq!(packs.len(), 2);
        for pack in corrupt {
            corrupt_in(&repo, &packs[*pack], &id);
        }
        let is_lost = corrupt.len() == 2;
        let report = repo.review_json(&["tree", "--history"], if is_lost { 3 } else { 1 });
        assert_eq!(
            findings(&report).len(),
            usize::from(!is_lost),
            "{corrupt:?}"
        );
        let failed = report["coverage"]["failed"].to_string();
        assert_eq!(failed.contains(&id), is_lost, "{failed}");
    }
}
