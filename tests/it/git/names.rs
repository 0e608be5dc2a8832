//! Tests that a name means one commit or none: an account that can push a tag must not decide what
//! a branch is.

use super::open;
use crate::support::Repo;
use claude_reviewer::error::{Error, Kind};
use claude_reviewer::git;

/// Three commits on `main`, the first of which is `(0)`.
fn three(init: &[&str]) -> (Repo, [String; 3]) {
    let repo = if init.is_empty() {
        Repo::new()
    } else {
        Repo::init(init)
    };
    let ids =
        ["1\n", "2\n", "3\n"].map(|text| repo.stage("a", text).commit(text).trim().to_owned());
    (repo, ids)
}

#[track_caller]
fn refused(found: Result<impl std::fmt::Debug, Error>, names: &[&str]) -> Error {
    let e = found.unwrap_err();
    assert_eq!(e.kind, Kind::Usage, "{e:?}");
    assert!(
        names.iter().all(|n| e.message.contains(n)),
        "{names:?}: {e:?}"
    );
    e
}

fn id(repo: &git::Repo, rev: &str) -> String {
    repo.resolve(rev)
        .unwrap_or_else(|e| panic!("{rev}: {e:?}"))
        .to_string()
}

#[test]
fn cfg_08_a_tag_does_not_hide_a_branch_of_a_remote() {
    for init in [&[][..], &["--ref-format=reftable"]] {
        let (repo, [first, second, third]) = three(init);
        repo.git(&["update-ref", "refs/remotes/origin/main", &first]);
        repo.git(&[
            "symbolic-ref",
            "refs/remotes/origin/HEAD",
            "refs/remotes/origin/main",
        ]);
        repo.git(&["update-ref", "refs/remotes/upstream/HEAD", &first]);
        assert_eq!(id(&open(&repo), "origin/main"), first);
        for tag in ["origin/main", "remotes/origin/main", "upstream"] {
            repo.git(&["tag", tag, &second]);
        }
        for is_packed in [false, true] {
            if is_packed {
                repo.git(&["pack-refs", "--all"]);
            }
            let r = open(&repo);
            for rev in [
                "origin/main",
                "origin/main~0",
                "origin/main^{commit}",
                "origin/main^0",
            ] {
                refused(
                    r.resolve(rev),
                    &[
                        "refs/remotes/origin/main",
                        "refs/tags/origin/main",
                        "ambiguous",
                    ],
                );
            }
            refused(
                r.resolve("remotes/origin/main"),
                &["refs/tags/remotes/origin/main"],
            );
            refused(
                r.resolve("upstream"),
                &["refs/tags/upstream", "refs/remotes/upstream/HEAD"],
            );
            let hint = "--base refs/remotes/origin/main";
            for e in [
                r.branch(None, Some("origin/main")).map(drop),
                r.changes(Some("origin/main")).map(drop),
            ] {
                let e = refused(e, &["refs/tags/origin/main"]);
                assert!(e.hints.iter().any(|h| h.ends_with(hint)), "{e:?}");
                assert!(
                    e.for_agents
                        .iter()
                        .any(|h| h.ends_with("refs/remotes/origin/main") && !h.contains("--"))
                );
            }
            refused(r.range("origin/main", "HEAD"), &["refs/tags/origin/main"]);
            // A full name is unambiguous, and the default base is not searched by a short name.
            assert_eq!(id(&r, "refs/remotes/origin/main"), first);
            assert_eq!(id(&r, "refs/tags/origin/main"), second);
            assert_eq!(id(&r, "refs/remotes/origin/HEAD"), first);
            assert_eq!(r.branch(None, None).unwrap().merge_base.to_string(), first);
            assert_eq!(id(&r, "HEAD"), third);
        }
    }
}

#[test]
fn cfg_08_a_tag_does_not_hide_a_branch_of_the_clone() {
    for init in [&[][..], &["--ref-format=reftable"]] {
        let (repo, [first, second, third]) = three(init);
        repo.git(&["branch", "ok", &second]);
        repo.git(&["tag", "-a", "-m", "same", "ok", &second]);
        // Both names for the same commit are not ambiguous.
        assert_eq!(id(&open(&repo), "ok"), second);
        assert_eq!(id(&open(&repo), "ok~1"), first);
        repo.git(&["tag", "-f", "-a", "-m", "another", "ok", &first]);
        let r = open(&repo);
        let e = refused(r.resolve("ok"), &["refs/heads/ok", "refs/tags/ok"]);
        assert!(
            e.hints.iter().any(|h| h.ends_with(": refs/heads/ok")),
            "{e:?}"
        );
        let e = refused(r.resolve("ok~1"), &["refs/heads/ok"]);
        assert!(
            e.hints.iter().any(|h| h.ends_with(": refs/heads/ok~1")),
            "{e:?}"
        );
        refused(r.resolve("heads/../ok"), &[]);
        assert_eq!(id(&r, "heads/ok"), second);
        assert_eq!(id(&r, "tags/ok"), first);
        // HEAD and full IDs are unambiguous.
        repo.git(&["update-ref", "refs/tags/HEAD", &first]);
        repo.git(&["update-ref", &format!("refs/tags/{second}"), &first]);
        let r = open(&repo);
        assert_eq!(
            (id(&r, "HEAD"), id(&r, "@"), id(&r, &second)),
            (third.clone(), third, second.clone())
        );
        // Abbreviated IDs are names like others.
        assert_eq!(id(&r, &second[..12]), second);
        repo.git(&[
            "update-ref",
            &format!("refs/tags/{}", &second[..12]),
            &first,
        ]);
        repo.git(&[
            "update-ref",
            &format!("refs/heads/v1-1-g{}", &second[..12]),
            &first,
        ]);
        let r = open(&repo);
        refused(r.resolve(&second[..12]), &[&second]);
        refused(r.resolve(&format!("v1-1-g{}", &second[..12])), &[&second]);
    }
}

#[test]
fn cfg_08_a_full_name_is_that_one_reference() {
    for init in [&[][..], &["--ref-format=reftable"]] {
        let (repo, [first, ..]) = three(init);
        for name in [
            "refs/tags/refs/remotes/origin/main",
            "refs/heads/refs/remotes/origin/main",
            "refs/refs/heads/x",
        ] {
            repo.git(&["update-ref", name, &first]);
        }
        let r = open(&repo);
        for name in [
            "refs/remotes/origin/main",
            "refs/remotes/origin/main~0",
            "refs/heads/x",
        ] {
            refused(r.resolve(name), &["unknown revision"]);
        }
        // The default branch is not found there either: it is `main` here.
        assert_eq!(
            r.branch(None, None).unwrap().base_name,
            "default branch main"
        );
    }
}

#[test]
fn a_branch_that_was_left_is_not_the_tag_of_its_name() {
    let (repo, [first, second, _]) = three(&[]);
    repo.git(&["checkout", "-q", "-b", "left", &second]);
    repo.git(&["checkout", "-q", "main"]);
    assert_eq!(id(&open(&repo), "@{-1}"), second);
    repo.git(&["tag", "left", &first]);
    assert!(open(&repo).resolve("@{-1}").is_err());
}
