//! Tests of fetches over HTTP from a server with authentication: the credential, and the secrets
//! that must not leave.

use super::fetch::{Clone, Remote, remote, script, wanted};
use crate::loopback::{Reply, Request, Server};
use claude_reviewer::request::{Credential, Fetch};
use claude_reviewer::stop::Stop;
use std::io::Write as _;
use std::path::Path;

/// Serves a repository like `git http-backend`, to clients that send this header.
fn serve(top: &Path, wants: &str) -> Server {
    let (top, wants) = (top.to_owned(), wants.to_owned());
    Server::start(
        move |request| match request.header("authorization") == Some(&wants) {
            true => backend(&top, request),
            false => Reply::with(401, &[("WWW-Authenticate", "Basic realm=\"git\"")], b"no"),
        },
    )
}

fn backend(top: &Path, request: &Request) -> Reply {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut git = std::process::Command::new(crate::support::git_program());
    git.env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_HTTP_EXPORT_ALL", "1");
    git.env("GIT_PROJECT_ROOT", top)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query);
    git.env("REQUEST_METHOD", &request.method)
        .env("CONTENT_LENGTH", request.body.len().to_string());
    git.env("CONTENT_TYPE", request.header("content-type").unwrap_or(""));
    git.env("GIT_PROTOCOL", request.header("git-protocol").unwrap_or(""));
    git.env(
        "HTTP_CONTENT_ENCODING",
        request.header("content-encoding").unwrap_or(""),
    );
    git.arg("http-backend")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut git = git.spawn().unwrap();
    let (mut stdin, body) = (git.stdin.take().unwrap(), request.body.clone());
    let feeder = std::thread::spawn(move || stdin.write_all(&body));
    let out = git.wait_with_output().unwrap().stdout;
    let _ = feeder.join();
    let end = out.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&out[..end]).into_owned();
    let headers: Vec<(&str, &str)> = head.lines().filter_map(|l| l.split_once(": ")).collect();
    let status = headers
        .iter()
        .find(|(n, _)| *n == "Status")
        .and_then(|(_, v)| v[..3].parse().ok())
        .unwrap_or(200);
    Reply::with(status, &headers, &out[end + 4..])
}

fn bearer(word: &str) -> String {
    format!("Bearer {word}")
}

/// Returns a remote behind the server, a clone whose `origin` it is, the server, and its address.
fn served(wants: &str) -> (Remote, Clone, Server, String) {
    let remote = remote(3, 1);
    let clone = Clone::of(&remote, &["--single-branch"]);
    let server = serve(remote.repo.path().parent().unwrap(), wants);
    let url = format!("{}/repo/.git", server.url());
    clone.git(&["remote", "set-url", "origin", &url]);
    (remote, clone, server, url)
}

fn with(server: &Server, header: &str) -> Fetch {
    let credential = Credential {
        url: format!("{}/", server.url()),
        header: header.to_owned().into(),
    };
    Fetch {
        credential: Some(credential),
        ..wanted("origin", &["refs/heads/topic"])
    }
}

#[test]
fn a_token_of_the_caller_is_on_no_command_line_and_in_no_file() {
    let token = ["made", "up", "word"].concat();
    let (remote, mut clone, server, _) = served(&bearer(&token));
    let (bin, seen) = (clone.dir.path().join("bin"), clone.dir.path().join("seen"));
    std::fs::create_dir(&bin).unwrap();
    // Returns its arguments, and the files that exist while it runs.
    let text = format!(
        "#!/bin/sh\necho \"$*\" >> {seen}\ngrep -rl {token} {dir}/clone {dir}/home >> {seen}\nexec {git} \"$@\"\n",
        seen = seen.display(),
        dir = clone.dir.path().display(),
        git = real_git().display(),
    );
    script(&bin.join("git"), &text);
    clone.set(
        "PATH",
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    let header = format!("Authorization: {}", bearer(&token));
    let fetched = clone
        .try_fetch(&with(&server, &header), &Stop::default())
        .unwrap();
    assert_eq!(fetched.ids()[0].to_string(), remote.topic);
    let said = std::fs::read_to_string(&seen).unwrap();
    // A line that begins with a path is a file that contains it.
    let is_found = said.lines().any(|l| l.starts_with('/'));
    assert!(
        said.contains("fetch") && !said.contains(&token) && !is_found,
        "{said}"
    );
    assert!(!format!("{fetched:?}").contains(&token));
    // The token of another host is not sent.
    let other = Credential {
        url: "http://127.0.0.2/".to_owned(),
        header: header.into(),
    };
    let fetch = Fetch {
        credential: Some(other),
        ..wanted("origin", &["refs/heads/topic"])
    };
    let before = server.requests().len();
    assert!(clone.try_fetch(&fetch, &Stop::default()).is_err());
    assert!(
        server.requests()[before..]
            .iter()
            .all(|r| r.header("authorization").is_none())
    );
}

fn real_git() -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|d| d.join("git"))
        .find(|p| p.is_file())
        .unwrap()
}

#[test]
fn the_header_that_a_checkout_left_counts_also_from_a_file_that_is_included() {
    let (remote, clone, server, _) = served("basic made-up");
    assert!(clone.fetch("origin", &["refs/heads/topic"]).is_err());
    let key = format!("http.{}/.extraheader", server.url());
    clone.git(&["config", &key, "AUTHORIZATION: basic made-up"]);
    assert_eq!(
        clone.fetch("origin", &["refs/heads/topic"]).unwrap().ids()[0].to_string(),
        remote.topic
    );
    // As newer checkouts do it: a separate file, included only in the right folder.
    clone.git(&["config", "--unset", &key]);
    let file = clone
        .dir
        .path()
        .join("credentials.config")
        .display()
        .to_string();
    clone.git(&[
        "config",
        "--file",
        &file,
        &key,
        "AUTHORIZATION: basic made-up",
    ]);
    let git_dir = clone
        .path()
        .canonicalize()
        .unwrap()
        .join(".git")
        .display()
        .to_string();
    clone.git(&["config", &format!("includeIf.gitdir:{git_dir}.path"), &file]);
    assert_eq!(
        clone.fetch("origin", &["refs/heads/topic"]).unwrap().ids()[0].to_string(),
        remote.topic
    );
}

#[test]
fn a_helper_of_the_user_counts_and_one_of_the_repository_does_not() {
    let pair = "Basic bWU6bWFkZS11cA=="; // me:made-up
    let (remote, clone, _server, _) = served(pair);
    let own = "!f() { touch ran; echo username=me; echo password=made-up; }; f";
    clone.git(&["config", "credential.helper", own]);
    let e = clone.fetch("origin", &["refs/heads/topic"]).unwrap_err();
    assert!(
        e.hints
            .iter()
            .any(|h| h.contains("credential.helper is not run")),
        "{e:?}"
    );
    clone.git(&["config", "--global", "credential.helper", own]);
    assert_eq!(
        clone.fetch("origin", &["refs/heads/topic"]).unwrap().ids()[0].to_string(),
        remote.topic
    );
}

#[test]
fn a_password_in_an_address_proves_who_asks_and_is_in_no_message() {
    let (remote, clone, server, url) = served("Basic bWU6bWFkZS11cA==");
    let with = url.replace("http://", "http://me:made-up@");
    clone.git(&["remote", "set-url", "origin", &with]);
    assert_eq!(
        clone.fetch("origin", &["refs/heads/topic"]).unwrap().ids()[0].to_string(),
        remote.topic
    );
    for e in [
        clone.fetch("origin", &["refs/heads/nope"]),
        clone.fetch(&with, &["refs/heads/nope"]),
    ] {
        let said = format!("{:?}", e.unwrap_err());
        assert!(!said.contains("made-up") && said.contains("nope"), "{said}");
    }
    let wrong = url.replace("http://", "http://me:wrong-word@");
    clone.git(&["remote", "set-url", "origin", &wrong]);
    let e = clone.fetch("origin", &["refs/heads/topic"]).unwrap_err();
    assert!(
        !format!("{e:?}").contains("wrong-word") && !e.hints.is_empty(),
        "{e:?}"
    );
    assert!(server.saw("git-upload-pack"));
}

#[test]
fn a_credential_for_another_server_takes_no_others_place() {
    let header = "Authorization: Bearer made-up-for-a-test";
    let (remote, clone, server, url) = served("Basic bWU6bWFkZS11cA==");
    let elsewhere = [
        "http://127.0.0.2/".to_owned(),
        format!("{}/rep", server.url()),
        format!("{}0/", server.url()),
    ];
    let fetch = |address: &str| {
        let credential = Credential {
            url: address.to_owned(),
            header: header.to_owned().into(),
        };
        let fetch = Fetch {
            credential: Some(credential),
            ..wanted("origin", &["refs/heads/topic"])
        };
        clone
            .try_fetch(&fetch, &Stop::default())
            .map(|fetched| fetched.ids()[0].to_string())
    };
    // A password in the address.
    clone.git(&[
        "remote",
        "set-url",
        "origin",
        &url.replace("http://", "http://me:made-up@"),
    ]);
    for address in &elsewhere {
        assert_eq!(fetch(address).unwrap(), remote.topic, "{address}");
    }
    // The header that a checkout left behind.
    clone.git(&["remote", "set-url", "origin", &url]);
    assert!(fetch(&elsewhere[0]).is_err());
    let key = format!("http.{}/.extraheader", server.url());
    clone.git(&["config", &key, "AUTHORIZATION: Basic bWU6bWFkZS11cA=="]);
    for address in &elsewhere {
        assert_eq!(fetch(address).unwrap(), remote.topic, "{address}");
    }
    assert!(server.requests().iter().all(|r| {
        r.header("authorization")
            .is_none_or(|h| !h.contains("Bearer"))
    }));
    // A credential for this server takes precedence over both.
    assert!(fetch(&format!("{}/repo/", server.url())).is_err());
}

#[test]
fn a_program_of_the_operators_environment_answers_and_one_in_the_repository_does_not() {
    let (remote, mut clone, server, _) = served("Basic bWU6bWFkZS11cA==");
    let text = "#!/bin/sh\ncase \"$1\" in\nUsername*) echo \"$GIT_USERNAME\" ;;\nPassword*) echo \"$GIT_PASSWORD\" ;;\n\
                esac\n";
    let outside = clone.dir.path().join("clone@tmp");
    std::fs::create_dir(&outside).unwrap();
    script(&outside.join("auth.sh"), text);
    clone.set("GIT_USERNAME", "me");
    clone.set("GIT_PASSWORD", "made-up");
    // Files that the change can write, links to and from them, and settings that depend on the
    // folder.
    script(&clone.path().join("auth.sh"), &format!("{text}touch ran\n"));
    script(&clone.path().join(".git/auth.sh"), text);
    std::os::unix::fs::symlink(clone.path().join("auth.sh"), outside.join("link.sh")).unwrap();
    std::os::unix::fs::symlink(outside.join("auth.sh"), clone.path().join("link.sh")).unwrap();
    let refused = [
        clone.path().join("auth.sh"),
        clone.path().join(".git/auth.sh"),
        outside.join("link.sh"),
        clone.path().join("link.sh"),
        "auth.sh".into(),
        "../clone@tmp/auth.sh".into(),
        outside.join("none.sh"),
    ];
    for program in refused {
        clone.set("GIT_ASKPASS", program.display().to_string());
        assert!(
            clone.fetch("origin", &["refs/heads/topic"]).is_err(),
            "{}",
            program.display()
        );
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|r| r.header("authorization").is_none())
    );
    clone.set("GIT_ASKPASS", outside.join("auth.sh").display().to_string());
    assert_eq!(
        clone.fetch("origin", &["refs/heads/topic"]).unwrap().ids()[0].to_string(),
        remote.topic
    );
    // After a wrong password, no other source is asked.
    clone.set("GIT_PASSWORD", "other-word");
    let e = clone.fetch("origin", &["refs/heads/topic"]).unwrap_err();
    assert!(
        !format!("{e:?}").contains("other-word") && !e.hints.is_empty(),
        "{e:?}"
    );
}

#[test]
fn net_17_a_redirect_is_not_followed_and_takes_no_credential_along() {
    let elsewhere = Server::start(|_| Reply::with(200, &[], b""));
    let to = elsewhere.url();
    let server =
        Server::start(move |r| Reply::with(302, &[("Location", &format!("{to}{}", r.path))], b""));
    let remote = remote(1, 1);
    let clone = Clone::of(&remote, &[]);
    clone.git(&[
        "remote",
        "set-url",
        "origin",
        &format!("{}/repo", server.url()),
    ]);
    let e = clone
        .try_fetch(
            &with(&server, "Authorization: Bearer made-up"),
            &Stop::default(),
        )
        .unwrap_err();
    assert_eq!(elsewhere.connections(), 0, "{e:?}");
    assert!(e.hints.iter().any(|h| h.contains("has moved")), "{e:?}");
}

#[test]
fn a_proxy_of_the_repository_counts_only_on_this_machine() {
    let proxy = Server::start(|_| Reply::with(502, &[], b""));
    let remote = remote(1, 1);
    let clone = Clone::of(&remote, &[]);
    clone.git(&["remote", "set-url", "origin", "http://forge.invalid/repo"]);
    clone.git(&["config", "http.http://forge.invalid/.proxy", &proxy.url()]);
    assert!(clone.fetch("origin", &["refs/heads/topic"]).is_err());
    assert_eq!(proxy.connections(), 1);
    for elsewhere in [
        "http://proxy.invalid:1/",
        "http://127.0.0.1.invalid:1/",
        "http://127.0.0.1@proxy.invalid/",
    ] {
        clone.git(&["config", "http.http://forge.invalid/.proxy", elsewhere]);
        let e = clone.fetch("origin", &["refs/heads/topic"]).unwrap_err();
        assert!(!format!("{e:?}").contains("proxy.invalid"), "{e:?}");
    }
}
