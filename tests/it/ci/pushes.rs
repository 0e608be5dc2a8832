//! Tests of pushes and requests whose ends are not named by two full IDs.

use super::{Forge, ZEROS};
use crate::support::line_with_key;
use serde_json::Value;

#[test]
fn ci_03_bitbucket_names_both_ends_by_their_first_digits() {
    for (forge, code) in [(Forge::good(), 0), (Forge::bad(), 1)] {
        let request = |checked_out: &str, head: &str, base: &str| {
            forge
                .job(checked_out)
                .var("BITBUCKET_BUILD_NUMBER", "1")
                .var("BITBUCKET_COMMIT", &head[..12])
                .var("BITBUCKET_BRANCH", "topic")
                .var("BITBUCKET_PR_ID", "7")
                .var("BITBUCKET_PR_DESTINATION_BRANCH", "main")
                .var("BITBUCKET_PR_DESTINATION_COMMIT", &base[..12])
        };
        // In the clone, and only in the commits of the remote branch: at its tip, and below it.
        for (checked_out, head) in [(&forge.head, &forge.head), (&forge.merge, &forge.head)] {
            let report = request(checked_out, head, &forge.base).report(&["--fetch"], code);
            assert_eq!(report["source"]["head"], **head);
            assert_eq!(report["source"]["base"], *forge.fork);
        }
        let first = forge.first();
        assert_eq!(
            request(&forge.merge, &first, &forge.base).report(&["--fetch"], code)["source"]["head"],
            *first
        );
        // Missing everywhere, or on another branch: nothing else is reviewed instead.
        for head in ["12".repeat(20), forge.base.clone()] {
            let run = request(&forge.merge, &head, &forge.base).run(&["--fetch"], 3);
            assert!(
                run.stderr.contains("neither here nor at origin"),
                "{}",
                run.stderr
            );
        }
        // As Bitbucket does it: the source, with the destination's commit merged into it, and no
        // branch of the remote.
        let job = request(&forge.merge, &forge.head, &forge.base);
        assert!(job.run(&[], 2).stderr.contains("--fetch"));
        job.git(&["fetch", "-q", "--unshallow", "origin", &forge.merge]);
        assert_eq!(job.git(&["for-each-ref"]), "");
        let report = job.report(&[], code);
        assert_eq!(report["source"]["base"], *forge.fork, "{report:#}");
    }
}

#[test]
fn ci_01_the_first_push_of_all_to_gitlab_is_all_new() {
    let forge = Forge::new("", &[], &[]);
    forge.repo.stage("key.txt", line_with_key());
    forge.repo.commit("a key");
    forge.repo.stage("key.txt", "none\n");
    let head = forge.repo.commit("no key");
    let job = forge
        .job(&head)
        .var("GITLAB_CI", "true")
        .var("CI_PIPELINE_SOURCE", "push")
        .var("CI_COMMIT_BRANCH", "main")
        .var("CI_COMMIT_SHA", &head)
        .var("CI_COMMIT_BEFORE_SHA", ZEROS)
        .var("CI_DEFAULT_BRANCH", "main");
    job.run(&[], 3);
    assert_eq!(job.report(&["--fetch"], 1)["source"]["base"], Value::Null);
}

#[test]
fn ci_03_a_push_that_takes_the_default_branch_back_is_no_pass() {
    // It has no new commits, and the old commit may have been blocked before.
    let forge = Forge::good();
    let back = forge.push("refs/heads/main", &forge.base, &forge.fork);
    let run = forge
        .job(&forge.fork)
        .on("push", &back)
        .run(&["--fetch"], 2);
    assert!(run.stderr.contains("has no commits that"), "{}", run.stderr);
}

#[test]
fn cfg_08_a_tag_that_somebody_pushed_is_no_base() {
    let forge = Forge::bad();
    let first = forge.first();
    // Only the first commit has the key: against it, no finding would be reported.
    let whole = |tags: &[&str]| {
        let job = forge.job(&forge.head);
        job.git(&[
            "fetch",
            "-q",
            "--unshallow",
            "origin",
            "+refs/heads/*:refs/remotes/origin/*",
        ]);
        tags.iter().for_each(|t| drop(job.git(&["tag", t, &first])));
        job
    };
    let shallow = |tags: &[&str]| {
        let job = forge.job(&forge.head);
        job.git(&["fetch", "-q", "--depth=1", "origin", &first]);
        tags.iter().for_each(|t| drop(job.git(&["tag", t, &first])));
        job
    };
    let args = |base| ["branch", "HEAD", "--base", base];
    let run = whole(&["origin/main"]).run(&args("origin/main"), 2);
    assert!(
        run.stderr.contains("ambiguous") && run.stderr.contains("--base refs/remotes/origin/main"),
        "{}",
        run.stderr
    );
    let job = whole(&["origin/main"]);
    assert_eq!(
        job.report(&args("refs/remotes/origin/main"), 1)["source"]["base"],
        *forge.fork
    );
    // With the flag, the remote decides what its branch is, although the clone only has the tag of
    // that name.
    let fetching = |base| [&args(base)[..], &["--fetch"]].concat();
    for job in [whole(&["origin/main"]), shallow(&["origin/main"])] {
        for base in ["origin/main", "refs/remotes/origin/main"] {
            assert_eq!(
                job.report(&fetching(base), 1)["source"]["base"],
                *forge.fork
            );
        }
    }
    for job in [whole(&["main"]), shallow(&["main"])] {
        let run = job.run(&fetching("main"), 2);
        assert!(
            run.stderr.contains("refs/heads/main") && run.stderr.contains("refs/tags/main"),
            "{}",
            run.stderr
        );
        assert_eq!(
            job.report(&fetching("refs/heads/main"), 1)["source"]["base"],
            *forge.fork
        );
    }
    let run = shallow(&["origin/gone"]).run(&fetching("origin/gone"), 2);
    assert!(
        run.stderr.contains("refs/tags/origin/gone"),
        "{}",
        run.stderr
    );
    // A release tag still works, from the clone and from the remote, and a pushed branch does not
    // hide it.
    assert_eq!(
        shallow(&["v1"]).report(&fetching("v1"), 0)["source"]["base"],
        *first
    );
    forge.repo.git(&["tag", "v2", &forge.fork]);
    assert_eq!(
        shallow(&[]).report(&fetching("v2"), 1)["source"]["base"],
        *forge.fork
    );
    forge.repo.git(&["branch", "v2", &first]);
    assert!(
        shallow(&[])
            .run(&fetching("v2"), 2)
            .stderr
            .contains("ambiguous")
    );
}
