#![cfg(unix)]
//! Tests of `history` and `complete`, through the real binary on reviews that it stored.

mod approval;
mod damage;

use crate::support::{Repo, Run};
use claude_reviewer::untrusted::is_active;
use serde_json::Value;

/// Creates a repository with a stored review that blocks, and a later one that passes.
fn with_two_reviews() -> (Repo, String, String) {
    let repo = Repo::new();
    repo.stage("a.py", "import yaml\ndoc = yaml.load(text)\n");
    repo.review(&["staged"], 1);
    repo.stage("a.py", "x = 1\n");
    repo.review(&["staged"], 0);
    let ids = listed(&repo);
    assert_eq!(ids.len(), 2);
    (repo, ids[1].clone(), ids[0].clone())
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {}", run.stdout))
}

/// Returns the IDs of stored reviews, newest first.
fn listed(repo: &Repo) -> Vec<String> {
    let history = json(&repo.reviewer(&["history", "--format", "json"]).run(0));
    let sessions = history["sessions"].as_array().unwrap();
    sessions
        .iter()
        .map(|s| s["review_id"].as_str().unwrap().to_owned())
        .collect()
}

fn history(repo: &Repo, args: &[&str], code: i32) -> Run {
    repo.reviewer(&[&["history"], args].concat()).run(code)
}

#[test]
fn a_place_without_reviews_says_so() {
    let repo = Repo::new();
    assert_eq!(
        history(&repo, &[], 0).stdout,
        "no review is stored here yet\n"
    );
    assert_eq!(
        json(&history(&repo, &["--format", "json"], 0))["sessions"],
        serde_json::json!([])
    );
    assert_eq!(
        history(&repo, &["verify"], 0).stdout,
        "no review is stored here yet\n"
    );
    history(&repo, &["prune", "--keep", "1"], 0);
    for args in [
        vec!["2026-01-31-001"],
        vec!["verify", "2026-01-31-001"],
        vec!["show", "2026-01-31-001"],
    ] {
        let run = history(&repo, &args, 2);
        assert!(
            run.stderr.contains("review 2026-01-31-001 not found"),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr
                .contains("hint: list stored reviews: claude-reviewer history"),
            "{}",
            run.stderr
        );
    }
    assert!(
        history(&repo, &["latest"], 2)
            .stderr
            .contains("no review is stored here yet")
    );
    assert!(
        !repo.path().join(".reviews").exists(),
        "looking makes nothing"
    );
    let run = repo
        .reviewer(&["history"])
        .dir(repo.outside().parent().unwrap())
        .run(2);
    assert!(!run.stderr.is_empty());
}

#[test]
fn stored_reviews_are_listed_with_the_newest_first() {
    let (repo, first, second) = with_two_reviews();
    let text = history(&repo, &[], 0).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("ID ") && lines[0].contains("VERDICT") && lines[0].contains("SOURCE"),
        "{text}"
    );
    assert!(
        lines[1].starts_with(&second)
            && lines[1].contains("in progress")
            && lines[1].contains("pass"),
        "{text}"
    );
    assert!(
        lines[2].starts_with(&first)
            && lines[2].contains("needs changes")
            && lines[2].contains("block"),
        "{text}"
    );
    assert!(
        lines[2].contains("1 critical") || lines[2].contains("1 major"),
        "{text}"
    );
    assert!(
        lines[1].contains("just now") && lines[1].contains("staged"),
        "{text}"
    );
    assert_eq!(
        history(&repo, &["--limit", "1"], 0).stdout.lines().count(),
        2
    );
    assert_eq!(
        history(&repo, &["--limit", "0", "--format", "json"], 0).code,
        0
    );
    assert_eq!(
        history(&repo, &["--limit", "0"], 0).stdout,
        "",
        "something is stored, and nobody asked for it"
    );
}

#[test]
fn a_list_fits_a_narrow_terminal_and_is_coloured_where_asked() {
    let (repo, first, _) = with_two_reviews();
    for columns in ["40", "60", "80", "100", "200"] {
        let run = repo.reviewer(&["history"]).env("COLUMNS", columns).run(0);
        let widest = run.stdout.lines().map(str::len).max().unwrap();
        assert!(
            widest <= columns.parse().unwrap(),
            "{columns}: {}",
            run.stdout
        );
        assert!(
            run.stdout.contains(&first) && run.stdout.contains("block"),
            "{}",
            run.stdout
        );
    }
    let run = repo.reviewer(&["--color", "always", "history"]).run(0);
    assert!(
        run.stdout.contains("\x1b[1m\x1b[31mblock\x1b[0m"),
        "{:?}",
        run.stdout
    );
}

#[test]
fn a_session_is_shown_with_every_round() {
    let (repo, first, _) = with_two_reviews();
    repo.stage("a.py", "import yaml\ndoc = yaml.safe_load(text)\n");
    repo.review(&["--follow-up", &first], 0);
    let text = history(&repo, &[&first], 0).stdout;
    for words in [
        &format!("review {first}: "),
        "round 1: block",
        "round 2: pass",
        "since      round 1: 1 fixed",
        "advice",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let session = json(&history(&repo, &[&first, "--format", "json"], 0));
    assert_eq!(session["rounds"].as_array().unwrap().len(), 2);
    assert!(text.contains(session["head"].as_str().unwrap()), "{text}");
}

#[test]
fn a_stored_review_is_shown_in_every_form_of_report() {
    let (repo, first, second) = with_two_reviews();
    let human = history(&repo, &["show", &first], 0).stdout;
    assert!(
        human.contains("yaml.load") && human.contains("a.py"),
        "{human}"
    );
    let report = json(&history(&repo, &["show", &first, "--format", "json"], 0));
    assert_eq!(
        (report["review_id"].as_str(), report["verdict"].as_str()),
        (Some(first.as_str()), Some("block"))
    );
    let sarif = json(&history(
        &repo,
        &["show", &first, "--round", "1", "--format", "sarif"],
        0,
    ));
    assert_eq!(
        sarif["runs"][0]["results"].as_array().unwrap().len(),
        report["findings"].as_array().unwrap().len()
    );
    assert_eq!(
        json(&history(&repo, &["show", "latest", "--format", "json"], 0))["review_id"],
        second.as_str()
    );
    let run = history(&repo, &["show", &first, "--round", "2"], 2);
    assert!(
        run.stderr.contains("has no round 2") && run.stderr.contains(&format!("history {first}")),
        "{}",
        run.stderr
    );
    history(&repo, &["show", &first, "--round", "0"], 2);
    history(&repo, &["show", &first, "--format", "pdf"], 2);
}

#[test]
fn an_edit_is_found_and_named() {
    let (repo, first, second) = with_two_reviews();
    let whole = history(&repo, &["verify"], 0).stdout;
    assert!(
        whole.contains("2 reviews checked, no modifications detected"),
        "{whole}"
    );
    let head = json(&history(&repo, &[&first, "--format", "json"], 0))["head"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        whole.contains(&format!("ok {first}  head {head}")),
        "{whole}"
    );
    history(&repo, &["verify", &first, "--head", &head], 0);
    let other = history(&repo, &["verify", &second, "--head", &head], 1).stdout;
    assert!(other.contains("it never had the head"), "{other}");

    let path = repo
        .path()
        .join(format!(".reviews/sessions/{first}/round-1/review.json"));
    let mut text = std::fs::read(&path).unwrap();
    let at = text.len() / 2;
    text[at] ^= 1;
    std::fs::write(&path, &text).unwrap();
    for args in [vec!["verify"], vec!["verify", &first]] {
        let run = history(&repo, &args, 1);
        assert!(
            run.stdout.contains(&format!("EDITED {first}")),
            "{}",
            run.stdout
        );
        assert!(
            run.stdout.contains("round 1: round-1/review.json: "),
            "{}",
            run.stdout
        );
    }
    history(&repo, &["verify", "latest"], 0);
    history(&repo, &["verify", "--head", &head], 2);
    history(&repo, &["verify", &first, "--head", "abc"], 2);
}

#[test]
fn pruning_says_what_it_removed() {
    let (repo, first, second) = with_two_reviews();
    let run = history(&repo, &["prune", "--keep", "1"], 0);
    assert_eq!(
        run.stdout,
        format!("removed {first}\n1 review removed, 1 kept\n")
    );
    assert_eq!(listed(&repo), [second]);
}

#[test]
fn completing_takes_force_where_something_blocks() {
    let (repo, first, second) = with_two_reviews();
    let complete =
        |args: &[&str], code: i32| repo.reviewer(&[&["complete"], args].concat()).run(code);
    let refused = complete(&[&first, "--status", "approved"], 2);
    assert!(
        refused.stderr.contains("1 finding blocks"),
        "{}",
        refused.stderr
    );
    assert!(
        refused
            .stderr
            .contains(&format!("complete {first} --status approved --force")),
        "{}",
        refused.stderr
    );
    let forced = complete(
        &[
            &first,
            "--status",
            "approved",
            "--force",
            "--notes",
            "a false alarm",
        ],
        0,
    )
    .stdout;
    assert!(
        forced.starts_with(&format!("review {first} is approved\n"))
            && forced.contains("1 finding"),
        "{forced}"
    );
    let session = json(&history(&repo, &[&first, "--format", "json"], 0));
    let entry = &session["completion"]["entries"][0];
    assert_eq!(
        (entry["forced"].as_bool(), entry["notes"].as_str()),
        (Some(true), Some("a false alarm"))
    );
    assert_eq!(entry["open"].as_array().unwrap().len(), 1);
    let text = history(&repo, &[&first], 0).stdout;
    assert!(
        text.contains("closed: approved") && text.contains("forced with 1 finding that blocked"),
        "{text}"
    );
    complete(&["latest", "--status", "merged"], 0);
    assert!(
        history(&repo, &[&second], 0)
            .stdout
            .contains(&format!("review {second}: merged"))
    );
    history(&repo, &["verify"], 0);
    let closed = repo.review(&["--follow-up", &first], 2);
    assert!(closed.stderr.contains("closed"), "{}", closed.stderr);
    complete(&["2020-01-01-001", "--status", "merged"], 2);
    complete(&["../../etc", "--status", "merged"], 2);
    complete(&[&first, "--status", "in_progress"], 2);
}

#[test]
fn sec_08_secrets_in_notes_are_masked() {
    let (repo, first, _) = with_two_reviews();
    let key = crate::support::line_with_key();
    repo.reviewer(&["complete", &first, "--status", "abandoned", "--notes", &key])
        .run(0);
    let secret = key.trim().rsplit(' ').next().unwrap();
    let stored = std::fs::read_to_string(
        repo.path()
            .join(format!(".reviews/sessions/{first}/complete.json")),
    )
    .unwrap();
    assert!(
        stored.contains("aws_access_key_id") && !stored.contains(secret),
        "{stored}"
    );
}

#[test]
fn inj_10_nothing_that_was_stored_reaches_the_terminal_alive() {
    let repo = Repo::new();
    repo.stage("a.py", "import yaml\ndoc = yaml.load(text)\n");
    let hostile = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\r\u{202e}\u{200b}";
    repo.review(
        &["staged", "--summary", &format!("{hostile}\n::error::x")],
        1,
    );
    let id = listed(&repo).remove(0);
    // As an attacker with write access would plant it.
    let path = repo
        .path()
        .join(format!(".reviews/sessions/{id}/request.json"));
    let mut request: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    request["label"] = format!("::error::{hostile}").into();
    request["author"] = hostile.into();
    std::fs::write(&path, request.to_string()).unwrap();
    repo.reviewer(&[
        "complete",
        &id,
        "--status",
        "abandoned",
        "--notes",
        &format!("::warning::{hostile}"),
    ])
    .run(0);
    for args in [
        vec![],
        vec![id.as_str()],
        vec!["show", &id],
        vec!["--format", "json"],
        vec![&id, "--format", "json"],
    ] {
        for columns in ["40", "160"] {
            let run = repo
                .reviewer(&[&["history"], args.as_slice()].concat())
                .env("COLUMNS", columns)
                .run(0);
            let alive: Vec<_> = run
                .stdout
                .chars()
                .filter(|c| *c != '\n' && is_active(*c))
                .collect();
            assert_eq!(alive, Vec::<char>::new(), "{args:?}: {}", run.stdout);
            assert!(
                !run.stdout.lines().any(|l| l.trim_start().starts_with("::")),
                "{args:?}: {}",
                run.stdout
            );
        }
    }
    let run = history(&repo, &["verify"], 1);
    assert!(run.stdout.contains("request.json"), "{}", run.stdout);
}

#[test]
fn sto_06_a_listing_warns_of_what_it_cannot_read() {
    let (repo, first, second) = with_two_reviews();
    std::fs::write(
        repo.path()
            .join(format!(".reviews/sessions/{first}/request.json")),
        "{",
    )
    .unwrap();
    let run = history(&repo, &[], 0);
    assert!(
        run.stdout.contains(&second) && !run.stdout.contains(&first),
        "{}",
        run.stdout
    );
    assert!(
        run.stderr
            .contains(&format!("warning: review {first} cannot be read")),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains(&format!(".reviews/.corrupt/{first}")),
        "{}",
        run.stderr
    );
    assert!(history(&repo, &[&first], 2).stderr.contains(".corrupt"));
}

#[test]
fn sto_09_a_file_in_the_way_of_the_store_does_not_change_how_a_review_ends() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n");
    std::fs::write(repo.path().join(".reviews"), "in the way").unwrap();
    let run = repo.review(&["staged"], 0);
    assert!(
        run.stderr.contains("history not saved") && run.stderr.contains(".reviews is a file"),
        "{}",
        run.stderr
    );
    let run = repo.review(&["staged", "--require-history"], 3);
    assert!(
        run.stdout.contains("could not be stored") || run.stderr.contains("could not be stored"),
        "{}",
        run.stdout
    );
    repo.stage("a.py", "import yaml\ndoc = yaml.load(text)\n");
    assert!(
        repo.review(&["staged"], 1)
            .stderr
            .contains("history not saved")
    );
    repo.review(&["staged", "--no-save"], 1);
    assert_eq!(
        std::fs::read_to_string(repo.path().join(".reviews")).unwrap(),
        "in the way"
    );
}

#[test]
fn sto_02_on_a_full_disk_the_verdict_stands() {
    for (content, code) in [("x = 1\n", 0), ("import yaml\ndoc = yaml.load(text)\n", 1)] {
        let repo = Repo::new();
        repo.stage("a.py", content);
        let limited = |args: &str| {
            // The signal of the limit is ignored, so that a write fails as on a full disk.
            let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" review staged {args}");
            let mut command = std::process::Command::new("sh");
            command
                .args(["-c", &script, crate::support::binary()])
                .current_dir(repo.path())
                .env("HOME", repo.home());
            command.output().unwrap()
        };
        let out = limited("");
        let told = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{told}");
        assert!(told.contains("history not saved"), "{told}");
        assert_eq!(
            limited("--require-history").status.code(),
            Some(if code == 1 { 1 } else { 3 }),
            "{told}"
        );
        assert_eq!(listed(&repo), Vec::<String>::new());
    }
}

#[test]
fn words_of_people_may_begin_with_dashes() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n")
        .review(&["staged", "--summary", "--- a list"], 0);
    let stored = json(&history(&repo, &["latest", "--format", "json"], 0));
    assert_eq!(stored["request"]["summary"], "--- a list");
}

#[test]
fn verify_says_no_more_than_the_seals_tell() {
    let (repo, first, _) = with_two_reviews();
    repo.reviewer(&[
        "complete",
        &first,
        "--status",
        "abandoned",
        "--notes",
        "--- as it is",
    ])
    .run(0);
    let session = repo.path().join(format!(".reviews/sessions/{first}"));
    let closed = json(&history(&repo, &[&first, "--format", "json"], 0));
    assert_eq!(closed["completion"]["entries"][0]["notes"], "--- as it is");
    std::fs::remove_file(session.join("complete.json")).unwrap();
    // A file without a seal records which sessions were closed since the newest review began.
    assert!(
        history(&repo, &["verify", &first], 1)
            .stdout
            .contains("latest.json recorded its head")
    );
    std::fs::remove_file(repo.path().join(".reviews/latest.json")).unwrap();
    let run = history(&repo, &["verify", &first], 0);
    assert!(
        run.stdout
            .contains("compare with a head noted elsewhere: --head"),
        "{}",
        run.stdout
    );
    assert!(
        history(
            &repo,
            &["verify", &first, "--head", closed["head"].as_str().unwrap()],
            1
        )
        .stdout
        .contains("EDITED")
    );

    std::fs::write(session.join("round-1/response.json"), "{}").unwrap();
    let run = history(&repo, &["verify", &first], 0);
    assert!(
        run.stdout
            .contains("round-1/response.json: no seal covers it"),
        "{}",
        run.stdout
    );

    let seal = session.join("round-1/seal.json");
    let text = std::fs::read_to_string(&seal).unwrap();
    std::fs::write(
        &seal,
        text.replace("\"schema_version\": 1", "\"schema_version\": 2"),
    )
    .unwrap();
    assert!(
        history(&repo, &["verify", &first], 1)
            .stdout
            .contains("EDITED"),
        "a newer program writes more than a seal"
    );
    let review = session.join("round-1/review.json");
    let reviewed = std::fs::read_to_string(&review).unwrap();
    std::fs::write(
        &review,
        reviewed.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1),
    )
    .unwrap();
    let run = history(&repo, &["verify", &first], 3);
    assert!(
        run.stdout.contains(&format!("NEWER {first}")) && !run.stdout.contains("EDITED"),
        "{}",
        run.stdout
    );
    std::fs::write(&seal, text).unwrap();
    assert!(
        history(&repo, &["verify", &first], 1)
            .stdout
            .contains("EDITED"),
        "the seal tells that it was rewritten"
    );
}

#[test]
fn an_edited_session_is_no_ground_for_an_approval_or_a_follow_up() {
    let repo = Repo::new();
    repo.stage("a.txt", "one\n").commit("base");
    repo.stage("a.py", "import os\nos.system(\"rm \" + input())\n");
    repo.review(&["staged"], 1);
    let sessions = repo.path().join(".reviews/sessions");
    let id = std::fs::read_dir(&sessions)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .file_name()
        .into_string()
        .unwrap();
    let file = sessions.join(&id).join("round-1/review.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let edited = text
        .replace("\"verdict\": \"block\"", "\"verdict\": \"pass\"")
        .replace("\"blocking\": true", "\"blocking\": false");
    assert_ne!(edited, text);
    std::fs::write(&file, edited).unwrap();
    let run = repo
        .reviewer(&["complete", &id, "--status", "approved"])
        .run(2);
    assert!(
        run.stderr.contains("it was modified: round-1/review.json"),
        "{}",
        run.stderr
    );
    let run = repo.reviewer(&["review", "--follow-up", &id]).run(2);
    assert!(
        run.stderr.contains("cannot be followed") && run.stderr.contains("history verify"),
        "{}",
        run.stderr
    );
    repo.reviewer(&["complete", &id, "--status", "approved", "--force"])
        .run(0);
    let run = repo.reviewer(&["history", &id, "--format", "json"]).run(0);
    let session: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        session["completion"]["entries"][0]["forced"], true,
        "{session:#}"
    );
}
