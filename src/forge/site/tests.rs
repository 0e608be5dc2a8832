//! Tests of known hosts: addresses of remotes, and which token belongs to which host.

use super::{Hosts, Operator, token};
use crate::env::Env;
use crate::forge::address::{ForgeProject, HostAddress, without_git_suffix};
use crate::forge::api::ForgeApi;
use crate::forge::bitbucket::{BitbucketCloud, BitbucketServer};
use crate::forge::github::Github;
use crate::forge::gitlab::Gitlab;
use crate::policy::ForgePolicy;
use std::path::PathBuf;

const GITHUB: &dyn ForgeApi = &Github;
const GITLAB: &dyn ForgeApi = &Gitlab;
const SERVER: &dyn ForgeApi = &BitbucketServer;
const CLOUD: &dyn ForgeApi = &BitbucketCloud;

/// Returns API, project and token variable of a remote's host under a policy and an
/// environment.
fn site(
    policy: &ForgePolicy,
    vars: &[(&str, &str)],
    remote: &str,
) -> Option<(String, String, String)> {
    let env = Env::from_pairs(PathBuf::new(), vars.iter().copied());
    let operator = Operator {
        policy,
        env: &env,
        top: None,
    };
    let hosts = Hosts::of(&operator).unwrap();
    let site = hosts.site_of_remote(remote)?;
    let (key, name) = token(&site.host, &hosts, &operator).unwrap();
    let name = if key.known().is_some() {
        name
    } else {
        format!("no {name}")
    };
    Some((site.host.api.to_string(), site.project.to_string(), name))
}

#[track_caller]
fn is(found: Option<(String, String, String)>, api: &str, project: &str, token: &str) {
    let (found_api, found_project, found_token) = found.unwrap();
    assert_eq!(
        (
            found_api.as_str(),
            found_project.as_str(),
            found_token.as_str()
        ),
        (api, project, token)
    );
}

const ALL: [(&str, &str); 6] = [
    ("GITHUB_TOKEN", "a"),
    ("GH_TOKEN", "b"),
    ("GH_ENTERPRISE_TOKEN", "c"),
    ("GITLAB_TOKEN", "d"),
    ("BB_TOKEN", "e"),
    ("OTHER", "f"),
];

#[test]
fn public_forges_are_known() {
    fn of(remote: &str) -> Option<(String, String, String)> {
        site(&ForgePolicy::default(), &ALL, remote)
    }
    is(
        of("git@github.com:o/r.git"),
        "https://api.github.com/",
        "o/r",
        "GITHUB_TOKEN",
    );
    is(
        of("ssh://git@ssh.github.com:443/o/r.git"),
        "https://api.github.com/",
        "o/r",
        "GITHUB_TOKEN",
    );
    is(
        of("https://gitlab.com/g/s/p.git"),
        "https://gitlab.com/api/v4/",
        "g/s/p",
        "GITLAB_TOKEN",
    );
    is(
        of("git@bitbucket.org:t/r.git"),
        "https://api.bitbucket.org/2.0/",
        "t/r",
        "BB_TOKEN",
    );
    // As Bitbucket Pipelines clones: requests to the API still use https.
    is(
        of("http://bitbucket.org/t/r"),
        "https://api.bitbucket.org/2.0/",
        "t/r",
        "BB_TOKEN",
    );
    is(
        of("http://github.com:80/o/r.git"),
        "https://api.github.com/",
        "o/r",
        "GITHUB_TOKEN",
    );
    for unknown in [
        "https://github.com.evil.example/o/r",
        "https://evilgithub.com/o/r",
        "https://github.com:8443/o/r",
        "http://github.com:8080/o/r",
        "https://evil.example/github.com/o/r",
        "https://github.com@evil.example/o/r",
        "/srv/github.com/o/r",
    ] {
        assert_eq!(of(unknown), None, "{unknown}");
    }
}

#[test]
fn a_forge_of_ones_own_is_what_the_operator_named() {
    let own = ForgePolicy {
        github_api: Some("https://ghe.example/api/v3".to_owned()),
        gitlab_api: Some("https://code.example:8443/git".to_owned()),
        bitbucket_api: Some("https://bb.example/stash/rest/api/1.0".to_owned()),
        ..ForgePolicy::default()
    };
    let of = |remote| site(&own, &ALL, remote);
    is(
        of("git@ghe.example:o/r"),
        "https://ghe.example/api/",
        "o/r",
        "GH_ENTERPRISE_TOKEN",
    );
    is(
        of("https://code.example:8443/git/g/p.git"),
        "https://code.example:8443/git/api/v4/",
        "g/p",
        "GITLAB_TOKEN",
    );
    is(
        of("ssh://git@code.example:22/g/p.git"),
        "https://code.example:8443/git/api/v4/",
        "g/p",
        "GITLAB_TOKEN",
    );
    is(
        of("https://bb.example/stash/scm/key/slug.git"),
        "https://bb.example/stash/rest/",
        "key/slug",
        "BB_TOKEN",
    );
    // Their tokens are for them alone, and tokens of the public forge stay there.
    is(
        of("git@github.com:o/r"),
        "https://api.github.com/",
        "o/r",
        "GITHUB_TOKEN",
    );
    is(
        of("git@gitlab.com:g/p"),
        "https://gitlab.com/api/v4/",
        "g/p",
        "no [forge] token_command",
    );
    is(
        of("git@bitbucket.org:t/r"),
        "https://api.bitbucket.org/2.0/",
        "t/r",
        "no [forge] token_command",
    );
    for unknown in [
        "https://code.example/git/g/p",
        "https://code.example:8443/g/p",
        "https://ghe.example.evil/o/r",
    ] {
        assert_eq!(of(unknown), None, "{unknown}");
    }
    let cloud = ForgePolicy {
        github_api: Some("https://api.corp.ghe.com".to_owned()),
        ..ForgePolicy::default()
    };
    is(
        site(&cloud, &ALL, "git@corp.ghe.com:o/r"),
        "https://api.corp.ghe.com/",
        "o/r",
        "GITHUB_TOKEN",
    );
}

#[test]
fn both_bitbuckets_are_told_apart_by_the_address_of_their_api() {
    for (api, remote, expected, project) in [
        (
            "https://bb.example/",
            "https://bb.example/scm/~me/r.git",
            "https://bb.example/rest/",
            "~me/r",
        ),
        (
            "https://bb.example/x/rest/api/latest/",
            "ssh://git@bb.example:7999/k/r.git",
            "https://bb.example/x/rest/",
            "k/r",
        ),
        (
            "https://gate.example/bb/2.0",
            "https://gate.example/bb/t/r.git",
            "https://gate.example/bb/2.0/",
            "t/r",
        ),
        (
            "https://api.bitbucket.org/2.0/",
            "git@bitbucket.org:t/r.git",
            "https://api.bitbucket.org/2.0/",
            "t/r",
        ),
    ] {
        let policy = ForgePolicy {
            bitbucket_api: Some(api.to_owned()),
            ..ForgePolicy::default()
        };
        is(site(&policy, &ALL, remote), expected, project, "BB_TOKEN");
    }
}

#[test]
fn in_a_workflow_the_usual_token_is_for_the_server_that_runs_it() {
    let none = ForgePolicy::default();
    let ci = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_API_URL", "https://ghe.example/api/v3"),
    ];
    let of = |remote| site(&none, &[&ALL[..], &ci].concat(), remote);
    is(
        of("https://ghe.example/o/r"),
        "https://ghe.example/api/",
        "o/r",
        "GITHUB_TOKEN",
    );
    is(
        of("https://github.com/o/r"),
        "https://api.github.com/",
        "o/r",
        "no [forge] token_command",
    );
    // The variable alone, outside of a workflow, does not add a host.
    assert_eq!(site(&none, &[ci[1]], "https://ghe.example/o/r"), None);
    let gitlab = [
        ("GITLAB_CI", "true"),
        ("CI_API_V4_URL", "https://gl.example/api/v4"),
        ("GITLAB_TOKEN", "x"),
    ];
    is(
        site(&none, &gitlab, "https://gl.example/g/p"),
        "https://gl.example/api/v4/",
        "g/p",
        "GITLAB_TOKEN",
    );
    is(
        site(&none, &gitlab, "https://gitlab.com/g/p"),
        "https://gitlab.com/api/v4/",
        "g/p",
        "no [forge] token_command",
    );
    // Without it the job's own token is used, on the server that issued it.
    let job = [gitlab[0], gitlab[1], ("CI_JOB_TOKEN", "y")];
    is(
        site(&none, &job, "https://gl.example/g/p"),
        "https://gl.example/api/v4/",
        "g/p",
        "CI_JOB_TOKEN",
    );
    is(
        site(&none, &job, "https://gitlab.com/g/p"),
        "https://gitlab.com/api/v4/",
        "g/p",
        "no [forge] token_command",
    );
    let outside = site(&none, &job[1..], "https://gitlab.com/g/p");
    is(
        outside,
        "https://gitlab.com/api/v4/",
        "g/p",
        "no GITLAB_TOKEN",
    );
}

#[test]
fn a_command_gives_its_token_to_the_host_it_is_meant_for() {
    fn with(command: &str, gitlab: Option<&str>) -> ForgePolicy {
        ForgePolicy {
            gitlab_api: gitlab.map(str::to_owned),
            token_command: Some(command.to_owned()),
            ..ForgePolicy::default()
        }
    }
    fn is_used(policy: &ForgePolicy, remote: &str) -> bool {
        let env = Env::from_pairs(PathBuf::new(), [("PATH", "/usr/bin:/bin")]);
        let operator = Operator {
            policy,
            env: &env,
            top: None,
        };
        let hosts = Hosts::of(&operator).unwrap();
        let site = hosts.site_of_remote(remote).unwrap();
        !matches!(
            token(&site.host, &hosts, &operator).unwrap().0,
            crate::http::key::KeySource::Keyless
        )
    }
    let asks = with("keyring $FORGE_HOST", None);
    assert!(is_used(&asks, "git@github.com:o/r") && is_used(&asks, "git@gitlab.com:g/p"));
    let own = with("keyring gitlab", Some("https://gl.example/api/v4"));
    assert!(is_used(&own, "git@gl.example:g/p"));
    assert!(!is_used(&own, "git@github.com:o/r") && !is_used(&own, "git@gitlab.com:g/p"));
    assert!(!is_used(&with("keyring x", None), "git@github.com:o/r"));
}

#[test]
fn an_address_that_would_show_a_token_to_the_network_is_refused() {
    let env = Env::default();
    for bad in [
        "http://ghe.example/api/v3",
        "ftp://ghe.example",
        "ghe.example",
        "https://u:p@ghe.example",
    ] {
        let policy = ForgePolicy {
            github_api: Some(bad.to_owned()),
            ..ForgePolicy::default()
        };
        assert!(
            Hosts::of(&Operator {
                policy: &policy,
                env: &env,
                top: None
            })
            .is_err(),
            "{bad}"
        );
    }
    let policy = ForgePolicy {
        github_api: Some("http://127.0.0.1:1/api/v3".to_owned()),
        ..ForgePolicy::default()
    };
    assert!(
        Hosts::of(&Operator {
            policy: &policy,
            env: &env,
            top: None
        })
        .is_ok()
    );
}

#[test]
fn projects_are_read_off_the_remotes_of_every_forge() {
    fn project(forge: &dyn ForgeApi, text: &str) -> Option<String> {
        let a = HostAddress::remote(text).unwrap();
        let parts = without_git_suffix(&a.path)?;
        let project = forge.project_of_remote(a.scheme, parts)?;
        Some(project.to_string())
    }
    for (forge, text, expected) in [
        (GITHUB, "git@github.com:o/r.git", Some("o/r")),
        (GITHUB, "https://github.com/o/r.git.git", Some("o/r.git")),
        (GITHUB, "https://github.com/o", None),
        (GITHUB, "https://github.com/o/r/x", None),
        (GITLAB, "git@gitlab.com:g/s1/s2/p.git", Some("g/s1/s2/p")),
        (GITLAB, "git@gitlab.com:p.git", None),
        (
            SERVER,
            "https://bb.example/scm/proj/slug.git",
            Some("proj/slug"),
        ),
        (
            SERVER,
            "https://bb.example/scm/~me/slug.git",
            Some("~me/slug"),
        ),
        (
            SERVER,
            "ssh://git@bb.example:7999/proj/slug.git",
            Some("proj/slug"),
        ),
        (SERVER, "https://bb.example/proj/slug.git", None),
        (CLOUD, "git@bitbucket.org:team/repo.git", Some("team/repo")),
        (GITHUB, "https://github.com/o/.git", None),
    ] {
        assert_eq!(project(forge, text).as_deref(), expected, "{text}");
    }
    let upper = ForgeProject::pair_of("PROJ/slug").unwrap();
    assert_eq!(upper, ForgeProject::pair_of("proj/Slug").unwrap());
    assert_eq!((upper.owner().as_str(), upper.name()), ("PROJ", "slug"));
}

#[test]
fn pull_requests_are_read_off_their_pages() {
    fn pull(forge: &dyn ForgeApi, text: &str) -> Option<(String, u64)> {
        let path = HostAddress::page(text)?.path;
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        forge
            .pull_of_page(&parts)
            .map(|(project, number)| (project.to_string(), number))
    }
    for (forge, text, expected) in [
        (GITHUB, "https://github.com/o/r/pull/12", Some(("o/r", 12))),
        (
            GITHUB,
            "https://github.com/o/r/pull/12/files?w=1#diff-1",
            Some(("o/r", 12)),
        ),
        (GITHUB, "https://github.com/o/r/issues/12", None),
        (GITHUB, "https://github.com/o/r/pull/0", None),
        (GITHUB, "https://github.com/o/r/pull/1x", None),
        (
            GITLAB,
            "https://gitlab.com/g/s/p/-/merge_requests/7/diffs",
            Some(("g/s/p", 7)),
        ),
        (
            GITLAB,
            "https://gitlab.com/g/p/merge_requests/7",
            Some(("g/p", 7)),
        ),
        (GITLAB, "https://gitlab.com/-/merge_requests/7", None),
        (
            SERVER,
            "https://bb.example/projects/PROJ/repos/slug/pull-requests/3/overview",
            Some(("PROJ/slug", 3)),
        ),
        (
            SERVER,
            "https://bb.example/users/me/repos/slug/pull-requests/3",
            Some(("~me/slug", 3)),
        ),
        (
            CLOUD,
            "https://bitbucket.org/team/repo/pull-requests/9/x",
            Some(("team/repo", 9)),
        ),
        (GITHUB, "ssh://git@github.com/o/r/pull/12", None),
    ] {
        assert_eq!(
            pull(forge, text),
            expected.map(|(p, n)| (p.to_owned(), n)),
            "{text}"
        );
    }
}
