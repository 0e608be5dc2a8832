//! Tests of events of each system, in checkouts of one commit.

use super::{Forge, ZEROS, notes};
use crate::support::line_with_key;
use serde_json::{Value, json};

#[test]
fn ver_07_a_pull_request_in_a_clone_that_was_cut_off_later_is_not_passed() {
    let forge = Forge::bad();
    let full = |forge: &Forge| {
        let job = forge.job(&forge.merge);
        job.git(&[
            "fetch",
            "-q",
            "--unshallow",
            "origin",
            "+refs/heads/*:refs/remotes/origin/*",
        ]);
        job.on("pull_request", &forge.request())
    };
    full(&forge).run(&[], 1);
    let cut = full(&forge);
    cut.git(&["fetch", "-q", "--depth=1", "origin", "topic"]);
    let run = cut.run(&[], 3);
    assert!(
        run.stderr.contains("shallow clone") && run.stderr.contains("--fetch"),
        "{}",
        run.stderr
    );
    // With the full history fetched, the key in the first commit is found.
    cut.run(&["--fetch"], 1);
}

#[test]
fn ci_01_a_pull_request_is_reviewed_from_a_checkout_of_one_commit() {
    for (forge, code) in [(Forge::good(), 0), (Forge::bad(), 1)] {
        let job = forge.job(&forge.merge).on("pull_request", &forge.request());
        let shallow = std::fs::read(job.path().join(".git/shallow")).unwrap();
        for args in [&["--fetch"][..], &["branch", "--fetch"]] {
            let report = job.report(args, code);
            assert_eq!(
                report["source"]["head"], *forge.head,
                "the author's commit, not GitHub's merge"
            );
            assert_eq!(report["source"]["base"], *forge.fork);
            assert_eq!(report["coverage"]["files_total"], 1, "{report:#}");
            assert!(notes(&report).contains("is checked out"), "{report:#}");
        }
        assert_eq!(
            std::fs::read(job.path().join(".git/shallow")).unwrap(),
            shallow
        );
        assert_eq!(job.git(&["for-each-ref"]), "");
        assert!(!job.path().join(".git/claude-reviewer").exists());
        assert!(
            job.git(&["status", "--porcelain", "--ignored"])
                .lines()
                .all(|l| l.contains(".reviews"))
        );
    }
}

#[test]
fn ci_01_without_its_ends_a_checkout_is_refused_and_the_flag_is_named() {
    let forge = Forge::bad();
    let job = forge.job(&forge.merge).on("pull_request", &forge.request());
    for args in [&[][..], &["branch"]] {
        let run = job.run(args, 2);
        assert!(
            run.stderr.contains("--fetch") && run.stderr.contains("pull request 7"),
            "{}",
            run.stderr
        );
    }
    // A commit that the remote does not have either.
    let mut gone = forge.request();
    gone["pull_request"]["base"]["sha"] = json!("12".repeat(20));
    gone["pull_request"]["base"]["ref"] = json!("gone");
    let job = forge.job(&forge.merge).on("pull_request", &gone);
    assert!(
        job.run(&["--fetch"], 3)
            .stderr
            .contains("neither here nor at origin")
    );
}

#[test]
fn ci_01_a_full_clone_needs_no_flag() {
    for (forge, code) in [(Forge::good(), 0), (Forge::bad(), 1)] {
        let job = forge.job(&forge.merge).on("pull_request", &forge.request());
        job.git(&[
            "fetch",
            "-q",
            "--unshallow",
            "origin",
            "+refs/heads/*:refs/remotes/origin/*",
        ]);
        let report = job.report(&[], code);
        assert_eq!(report["source"]["head"], *forge.head);
        assert_eq!(report["source"]["base"], *forge.fork);
    }
}

#[test]
fn ci_01_pushes_merge_groups_and_jobs_by_hand() {
    let forge = Forge::bad();
    let (fork, head) = (&*forge.fork, &*forge.head);
    let group = json!({"merge_group": {
        "head_sha": forge.merge, "head_ref": "refs/pull/7/merge", "base_sha": forge.base, "base_ref": "refs/heads/main",
    }});
    let dispatch = json!({"repository": {"default_branch": "main"}});
    for (name, payload, code) in [
        ("push", forge.push("refs/heads/topic", fork, head), 1),
        ("push", forge.push("refs/heads/topic", ZEROS, head), 1),
        ("push", forge.push("refs/tags/v1", ZEROS, head), 1),
        ("push", forge.push("refs/heads/main", fork, &forge.base), 0),
        ("push", forge.push("refs/heads/topic", head, ZEROS), 0),
        ("merge_group", group, 1),
        ("workflow_dispatch", dispatch.clone(), 1),
        ("schedule", dispatch.clone(), 1),
    ] {
        let job = forge
            .job(head)
            .on(name, &payload)
            .var("GITHUB_REF", "refs/heads/topic")
            .var("GITHUB_SHA", head);
        let run = job.run(&["--fetch"], code);
        assert!(
            run.stderr.contains("review: complete"),
            "{name} {payload}: {}",
            run.stderr
        );
    }
    // On the default branch nothing changed, which is not a pass.
    for name in ["schedule", "workflow_dispatch", "release"] {
        let job = forge.job(&forge.base).on(name, &dispatch);
        let job = job
            .var("GITHUB_REF", "refs/heads/main")
            .var("GITHUB_SHA", &forge.base);
        assert!(job.run(&["--fetch"], 2).stderr.contains("--base"));
        job.run(&["branch", "--fetch", "--base", fork], 0);
    }
}

#[test]
fn ci_01_the_first_push_of_all_is_all_new() {
    let forge = Forge::new("", &[], &[]);
    forge.repo.stage("key.txt", line_with_key());
    let head = forge.repo.commit("a key");
    let job = forge
        .job(&head)
        .on("push", &forge.push("refs/heads/main", ZEROS, &head));
    job.git(&["fetch", "-q", "--unshallow", "origin"]);
    let report = job.report(&[], 1);
    assert_eq!(report["source"]["base"], Value::Null);
}

#[test]
fn ci_01_explicit_ends_go_before_the_event() {
    let forge = Forge::bad();
    let job = forge.job(&forge.merge).on("pull_request", &forge.request());
    let report = job.report(
        &["branch", &forge.base, "--base", &forge.fork, "--fetch"],
        0,
    );
    assert_eq!(report["source"]["head"], *forge.base);
    let report = job.report(&["branch", "--base", "main", "--fetch"], 1);
    assert_eq!(report["source"]["head"], *forge.head);
    assert!(
        job.run(&["staged", "--fetch"], 2)
            .stderr
            .contains("--fetch needs `review branch`")
    );
}

#[test]
fn fetch_works_outside_of_ci_too() {
    let forge = Forge::bad();
    let mut job = forge.job(&forge.base);
    job.vars.clear();
    let report = job.report(&["branch", "topic", "--base", "main", "--fetch"], 1);
    assert_eq!(report["source"]["head"], *forge.head);
    assert!(
        job.run(&["branch", "topic", "--base", "main"], 2)
            .stderr
            .contains("unknown revision")
    );
    assert!(job.run(&["branch", "--fetch"], 2).stderr.contains("--base"));
    let e = job.run(
        &["branch", "--base", "main", "--fetch", "--", "--output=x"],
        2,
    );
    assert!(!job.path().join("x").exists(), "{}", e.stderr);
    job.run(&["branch", "nope", "--base", "main", "--fetch"], 2);
}

#[test]
fn ci_01_a_partial_clone_gets_what_the_change_needs() {
    let forge = Forge::bad();
    forge
        .repo
        .git(&["config", "uploadpack.allowFilter", "true"]);
    let job = forge.job(&forge.base).on("pull_request", &forge.request());
    std::fs::remove_dir_all(job.path()).unwrap();
    let url = format!("file://{}", forge.repo.path().display());
    let to = job.path().display().to_string();
    std::fs::create_dir(job.path()).unwrap();
    job.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        "--no-checkout",
        &url,
        &to,
    ]);
    let run = job.run(&[], 3);
    assert!(
        run.stdout.contains("is missing from this partial"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let report = job.report(&["--fetch"], 1);
    assert_eq!(report["coverage"]["files_reviewed"], 1, "{report:#}");
}

#[test]
fn ci_02_an_event_that_cannot_be_read_is_named() {
    let forge = Forge::good();
    let job = forge.job(&forge.head).on("pull_request", &forge.request());
    let event = job.dir.path().join("event.json");
    let whole = std::fs::read(&event).unwrap();
    let refused = |what: &str| {
        let run = job.run(&["--fetch"], 2);
        assert!(run.stderr.contains("event.json"), "{what}: {}", run.stderr);
        assert!(
            run.stderr
                .trim_end()
                .lines()
                .last()
                .unwrap()
                .starts_with("review: incomplete"),
            "{}",
            run.stderr
        );
    };
    std::fs::write(&event, &whole[..whole.len() / 2]).unwrap();
    refused("cut off");
    std::fs::write(&event, "").unwrap();
    refused("empty");
    std::fs::File::create(&event)
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    refused("too large");
    std::fs::remove_file(&event).unwrap();
    refused("missing");
    std::fs::create_dir(&event).unwrap();
    refused("a folder");
    std::fs::remove_dir(&event).unwrap();
    crate::support::mkfifo(&event);
    refused("a pipe");
    let unnamed = forge.job(&forge.head).var("GITHUB_ACTIONS", "true");
    assert!(unnamed.run(&[], 2).stderr.contains("GITHUB_EVENT_PATH"));
}

#[test]
fn ci_03_gitlab_from_a_checkout_of_one_commit() {
    for (forge, code) in [(Forge::good(), 0), (Forge::bad(), 1)] {
        forge
            .repo
            .git(&["update-ref", "refs/merge-requests/7/head", &forge.head]);
        let request = |commit: &str| {
            forge
                .job(commit)
                .var("GITLAB_CI", "true")
                .var("CI_PIPELINE_SOURCE", "merge_request_event")
                .var("CI_MERGE_REQUEST_IID", "7")
                .var("CI_MERGE_REQUEST_TITLE", "Add b")
                .var("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
                .var("CI_MERGE_REQUEST_DIFF_BASE_SHA", &forge.fork)
                .var("CI_MERGE_REQUEST_REF_PATH", "refs/merge-requests/7/head")
                .var("CI_COMMIT_SHA", commit)
                .var("CI_COMMIT_BEFORE_SHA", ZEROS)
                .var("CI_DEFAULT_BRANCH", "main")
        };
        let detached = request(&forge.head).var("CI_MERGE_REQUEST_EVENT_TYPE", "detached");
        let merged = request(&forge.merge)
            .var("CI_MERGE_REQUEST_EVENT_TYPE", "merged_result")
            .var("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", &forge.head)
            .var("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &forge.base);
        for job in [detached, merged] {
            let report = job.report(&["--fetch"], code);
            assert_eq!(report["source"]["head"], *forge.head);
            assert_eq!(report["source"]["base"], *forge.fork);
        }
        let branch = forge
            .job(&forge.head)
            .var("GITLAB_CI", "true")
            .var("CI_PIPELINE_SOURCE", "push")
            .var("CI_COMMIT_BRANCH", "topic")
            .var("CI_COMMIT_SHA", &forge.head)
            .var("CI_COMMIT_BEFORE_SHA", ZEROS)
            .var("CI_DEFAULT_BRANCH", "main");
        branch.run(&["--fetch"], code);
    }
}

#[test]
fn ci_03_bitbucket_azure_and_jenkins_from_a_checkout_of_one_commit() {
    for (forge, code) in [(Forge::good(), 0), (Forge::bad(), 1)] {
        let head = &*forge.head;
        let bucket = forge
            .job(&forge.merge)
            .var("BITBUCKET_BUILD_NUMBER", "1")
            .var("BITBUCKET_COMMIT", head);
        let bucket = bucket
            .var("BITBUCKET_BRANCH", "topic")
            .var("BITBUCKET_PR_ID", "7");
        let azure = forge
            .job(&forge.merge)
            .var("TF_BUILD", "True")
            .var("BUILD_SOURCEVERSION", &forge.merge);
        let azure = azure.var("SYSTEM_PULLREQUEST_TARGETBRANCH", "refs/heads/main");
        let jenkins = forge
            .job(head)
            .var("JENKINS_URL", "https://j.example/")
            .var("GIT_COMMIT", head);
        for job in [
            bucket.var("BITBUCKET_PR_DESTINATION_BRANCH", "main"),
            azure.var("SYSTEM_PULLREQUEST_SOURCECOMMITID", head),
            jenkins.var("CHANGE_TARGET", "main").var("CHANGE_ID", "7"),
        ] {
            let report = job.report(&["--fetch"], code);
            assert_eq!(report["source"]["head"], *forge.head, "{:?}", job.vars);
        }
    }
}

#[test]
fn ci_03_where_nothing_says_what_changed_nothing_passes() {
    let forge = Forge::bad();
    let on = |vars: &[(&str, &str)]| {
        let mut job = forge.job(&forge.head);
        job.git(&[
            "fetch",
            "-q",
            "--unshallow",
            "origin",
            "+refs/heads/*:refs/remotes/origin/*",
        ]);
        job.vars
            .extend(vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        job
    };
    for vars in [
        &[][..],
        &[
            ("BITBUCKET_BUILD_NUMBER", "1"),
            ("BITBUCKET_COMMIT", &*forge.head),
        ],
        &[("TF_BUILD", "True"), ("BUILD_SOURCEVERSION", &*forge.head)],
        &[
            ("JENKINS_URL", "https://j.example/"),
            ("GIT_COMMIT", &*forge.head),
        ],
        &[
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_SHA", &*forge.head),
            ("CI_PIPELINE_SOURCE", "web"),
        ],
        &[("GITLAB_CI", "true")],
    ] {
        for args in [&[][..], &["branch"], &["--fetch"]] {
            let run = on(vars).run(args, 2);
            assert!(run.stderr.contains("--base"), "{vars:?}: {}", run.stderr);
        }
        on(vars).run(&["branch", "HEAD", "--base", "origin/main"], 1);
    }
    // A target that contains all commits already.
    let jenkins = [
        ("JENKINS_URL", "https://j.example/"),
        ("CHANGE_TARGET", "topic"),
    ];
    assert!(
        on(&jenkins)
            .run(&[], 2)
            .stderr
            .contains("has no commits that topic")
    );
}

#[test]
fn ci_03_an_empty_range_passes_only_where_the_event_says_so_and_loudly() {
    let forge = Forge::good();
    let job = forge
        .job(&forge.base)
        .on("push", &forge.push("refs/heads/new", ZEROS, &forge.base));
    let run = job.run(&["--fetch"], 0);
    assert!(
        run.stdout.contains("NOTHING WAS REVIEWED"),
        "{}",
        run.stdout
    );
    // There is no queue that merges nothing.
    let group = json!({"merge_group": {
        "head_sha": forge.base, "head_ref": "refs/heads/main", "base_sha": forge.base, "base_ref": "refs/heads/main",
    }});
    forge
        .job(&forge.base)
        .on("merge_group", &group)
        .run(&["--fetch"], 2);
}

#[test]
fn ci_03_with_the_flag_the_remote_says_where_its_branch_is() {
    let forge = Forge::bad();
    let job = forge
        .job(&forge.head)
        .on("push", &forge.push("refs/heads/topic", ZEROS, &forge.head));
    // An earlier job in the same folder may have left any reference.
    job.git(&["update-ref", "refs/remotes/origin/main", &forge.head]);
    assert_eq!(job.report(&["--fetch"], 1)["source"]["base"], *forge.fork);
}

#[test]
fn ci_04_after_a_forced_push_the_default_branch_stands_in() {
    let forge = Forge::bad();
    let gone = "ab".repeat(20);
    let job = forge
        .job(&forge.head)
        .on("push", &forge.push("refs/heads/topic", &gone, &forge.head));
    let report = job.report(&["--fetch"], 1);
    assert_eq!(report["source"]["base"], *forge.fork);
    // On the default branch there is no substitute.
    let job = forge
        .job(&forge.base)
        .on("push", &forge.push("refs/heads/main", &gone, &forge.base));
    assert!(
        job.run(&["--fetch"], 3)
            .stderr
            .contains("neither here nor at origin")
    );
    // In a shallow clone, only the remote knows whether it exists.
    let job = forge
        .job(&forge.head)
        .on("push", &forge.push("refs/heads/topic", &gone, &forge.head));
    assert!(job.run(&[], 2).stderr.contains("--fetch"));
    // In a complete clone it is gone.
    job.git(&[
        "fetch",
        "-q",
        "--unshallow",
        "origin",
        "+refs/heads/*:refs/remotes/origin/*",
    ]);
    assert_eq!(job.report(&[], 1)["source"]["base"], *forge.fork);
}

#[test]
fn ver_05_nothing_staged_in_ci_is_the_change_of_the_event() {
    let forge = Forge::bad();
    for args in [
        &["--hook", "auto"][..],
        &["--hook", "pre-commit"],
        &["staged"],
    ] {
        let job = forge.job(&forge.merge).on("pull_request", &forge.request());
        job.git(&["fetch", "-q", "--unshallow", "origin", "main", "topic"]);
        job.git(&[
            "fetch",
            "-q",
            "origin",
            "+refs/heads/*:refs/remotes/origin/*",
        ]);
        let run = job.run(&[args, &["--no-save"]].concat(), 1);
        assert!(
            run.stderr
                .trim_end()
                .lines()
                .last()
                .unwrap()
                .contains("files=1/1"),
            "{args:?}: {}",
            run.stderr
        );
    }
}
