//! Tests of unstored reviews over MCP, and of the paths that a client may name.

use super::client::{Client, text};
use crate::support::{Repo, line_with_key};
use serde_json::{Value, json};

/// Removes values that differ between two runs, and members that only MCP has.
fn comparable(mut report: Value) -> Value {
    let members = report.as_object_mut().unwrap();
    for name in ["timestamp", "duration_ms", "provider", "metadata"] {
        members.remove(name);
    }
    members["policy"].as_object_mut().unwrap().remove("origin");
    report
}

fn fixture() -> Repo {
    let repo = Repo::new();
    repo.stage("src/a.py", "import os\n").commit("first");
    repo.stage(
        "src/a.py",
        format!("import os\n{}os.system('rm ' + name)\n", line_with_key()),
    );
    repo.stage("docs/b.md", "<<<<<<< HEAD\nx\n");
    repo
}

#[test]
fn the_command_line_and_the_tool_say_the_same() {
    let repo = fixture();
    let mut client = Client::ready(&repo, &[]);
    let told = client.content("review_staged", json!({}));
    assert_eq!(told["provider"], "rules");
    let metadata = json!({"source_type": "staged", "file_count": 2, "line_count": 5, "lines_added": 4,
        "lines_removed": 0, "model": null});
    assert_eq!(told["metadata"], metadata);
    assert_eq!(
        comparable(told),
        comparable(repo.review_json(&["staged", "--no-save"], 1))
    );
    repo.git(&["commit", "-q", "-m", "second"]);
    let told = client.content("review_commit", json!({"commit_sha": "HEAD"}));
    assert_eq!(
        comparable(told),
        comparable(repo.review_json(&["commit", "HEAD", "--no-save"], 1))
    );
    repo.write("src/a.py", "import os\nos.system('rm ' + name)\nprint(1)\n");
    let told = client.content("review_unstaged", json!({"repository_path": "src"}));
    assert_eq!(told["metadata"]["lines_removed"], 1, "{}", told["metadata"]);
    // Files that are not shown to models have lines all the same.
    repo.stage(".env", "A=1\nB=2\n")
        .stage("data.txt", "line\n".repeat(1 << 20));
    let counted = client.content("review_staged", json!({}))["metadata"]["lines_added"].clone();
    assert_eq!(counted, (1 << 20) + 2);
    repo.git(&["rm", "-q", "-f", "--cached", ".env", "data.txt"]);
    std::fs::remove_file(repo.path().join(".env")).unwrap();
    std::fs::remove_file(repo.path().join("data.txt")).unwrap();
    assert_eq!(
        comparable(told),
        comparable(repo.review_json(&["unstaged", "--no-save"], 0))
    );
}

#[test]
fn a_branch_is_reviewed_file_by_file_where_that_is_asked() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage("[id].py", line_with_key())
        .stage("b.py", "y = 2\n")
        .commit("second");
    let mut client = Client::ready(&repo, &[]);
    let all = client.content(
        "review_branch",
        json!({"branch": "topic", "base_branch": "main"}),
    );
    assert_eq!(
        (&all["verdict"], &all["source"]["kind"]),
        (&json!("block"), &json!("branch"))
    );
    let one = json!({"branch": "topic", "base_branch": "main", "file_list": ["b.py"]});
    assert_eq!(client.content("review_branch", one)["verdict"], "pass");
    let other = json!({"base_branch": "main", "file_list": ["[id].py"]});
    assert_eq!(client.content("review_branch", other)["verdict"], "block");
}

#[test]
fn code_is_reviewed_in_and_outside_of_a_repository() {
    let repo = fixture();
    std::fs::create_dir_all(repo.outside()).unwrap();
    for dir in [repo.path(), repo.outside()] {
        let mut client = Client::start_in(&repo, &dir, &[], &[]);
        client.shake_hands(json!({}));
        let told = client.content(
            "review_code",
            json!({"code": line_with_key(), "language": "Python"}),
        );
        assert_eq!(told["verdict"], "block");
        assert_eq!(told["findings"][0]["file"], "code.py");
        assert_eq!(told["metadata"]["source_type"], "arbitrary");
        assert_eq!(
            (
                &told["metadata"]["line_count"],
                &told["metadata"]["lines_added"]
            ),
            (&json!(1), &json!(1))
        );
        let secret = line_with_key()
            .trim_end()
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned();
        assert!(
            !told.to_string().contains(&secret),
            "SEC-08: the key stands in the answer"
        );
        assert!(!dir.join(".reviews").exists());
    }
}

#[test]
fn nothing_to_review_is_no_approval() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    let mut client = Client::ready(&repo, &[]);
    let result = client.call("review_staged", json!({}));
    assert_eq!(result["structuredContent"]["outcome"], "nothing_to_review");
    assert_eq!(result["structuredContent"]["assessment"], Value::Null);
    assert!(
        text(&result).contains("not an approval"),
        "{}",
        text(&result)
    );
}

#[test]
fn a_finding_s_words_cannot_act_on_a_terminal() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n").commit("first");
    let name = "src/\u{202e}evil\u{1b}[31m.py";
    repo.stage(name, line_with_key());
    let mut client = Client::ready(&repo, &[]);
    let result = client.call("review_staged", json!({}));
    assert!(
        text(&result)
            .chars()
            .all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'),
        "{}",
        text(&result)
    );
}

#[test]
fn the_policy_at_head_rules_and_not_the_one_that_is_being_written() {
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n")
        .stage(".claude-reviewer.toml", "version = 1\n")
        .commit("first");
    repo.stage("a.py", line_with_key());
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\nignore = [\"**\"]\nblock_on = []\n",
    );
    let mut client = Client::ready(&repo, &[]);
    let told = client.content("review_staged", json!({}));
    assert_eq!(
        (&told["verdict"], &told["policy"]["origin"]),
        (&json!("block"), &json!("head"))
    );
}

#[test]
fn the_policy_narrows_the_menu() {
    let repo = Repo::new();
    let policy = "version = 1\n[mcp]\ntools = [\"review_staged\"]\n";
    repo.stage(".claude-reviewer.toml", policy).commit("first");
    let mut client = Client::ready(&repo, &[]);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .map(|t| &t["name"])
            .collect::<Vec<_>>(),
        ["review_staged"]
    );
    client.content("review_staged", json!({}));
    let result = client.refused("review_code", json!({"code": "x"}));
    assert!(
        text(&result).contains("does not offer"),
        "{}",
        text(&result)
    );
    // Without the tool for stored reviews, the reviews are not resources either; the schemas of
    // offered tools are.
    assert_eq!(
        client.request("resources/list", json!({}))["result"]["resources"],
        json!([])
    );
    let templates = client.request("resources/templates/list", json!({}));
    let templates = templates["result"]["resourceTemplates"].as_array().unwrap();
    assert_eq!(
        templates
            .iter()
            .map(|t| &t["uriTemplate"])
            .collect::<Vec<_>>(),
        ["schema://{tool}"]
    );
    for (uri, is_served) in [
        ("schema://review_staged", true),
        ("schema://review_commit", false),
        ("review://latest", false),
    ] {
        let read = client.request("resources/read", json!({"uri": uri}));
        assert_eq!(read["result"].is_object(), is_served, "{uri}: {read}");
        assert!(
            is_served || read["error"]["code"] == -32002,
            "{uri}: {read}"
        );
    }
    // A policy that is only in the worktree enables nothing.
    repo.write(".claude-reviewer.toml", "version = 1\n");
    client.refused("review_code", json!({"code": "x"}));
}

#[test]
fn a_project_offers_no_tool_that_the_users_file_withholds() {
    let repo = Repo::new();
    let tools = |names: &str| format!("version = 1\n[mcp]\ntools = [{names}]\n");
    repo.write(
        "../home/.config/claude-reviewer/config.toml",
        tools("\"review_staged\", \"review_commit\""),
    );
    let listed = |project: Option<&str>| {
        if let Some(names) = project {
            repo.stage(".claude-reviewer.toml", tools(names))
                .commit("policy");
        }
        let mut client = Client::ready(&repo, &[]);
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let names = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>(), client)
    };
    assert_eq!(listed(None).0, ["review_staged", "review_commit"]);
    let (names, mut client) = listed(Some("\"review_code\", \"review_commit\""));
    assert_eq!(names, ["review_commit"]);
    let refused = client.refused("review_code", json!({"code": "x"}));
    assert!(
        text(&refused).contains("does not offer review_code"),
        "{}",
        text(&refused)
    );
    let show = repo.reviewer(&["policy", "show", "--origin"]).run(0);
    let said = show.stdout + &show.stderr;
    assert!(
        said.contains("names review_code, which your own policy file does not allow"),
        "{said}"
    );
}

#[test]
fn the_complete_schema_of_an_answer_is_a_resource() {
    let repo = fixture();
    let mut client = Client::ready(&repo, &[]);
    let read = client.request("resources/read", json!({"uri": "schema://review_staged"}));
    let schema: serde_json::Value =
        serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    let content = client.content("review_staged", json!({}));
    assert!(
        jsonschema::draft202012::new(&schema)
            .unwrap()
            .is_valid(&content),
        "{content:#}"
    );
    assert!(schema["$defs"]["Finding"]["properties"]["severity"].is_object());
    let unknown = client.request("resources/read", json!({"uri": "schema://no_tool"}));
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
}

#[test]
fn mcp_06_nothing_outside_of_the_root_is_reviewed() {
    let repo = fixture();
    let outside = repo.outside();
    std::fs::create_dir_all(&outside).unwrap();
    repo.git(&["init", "-q", outside.to_str().unwrap()]);
    std::os::unix::fs::symlink(&outside, repo.path().join("way")).unwrap();
    std::fs::create_dir_all(repo.path().join("nested")).unwrap();
    std::fs::write(
        repo.path().join("nested/.git"),
        format!("gitdir: {}/.git\n", outside.display()),
    )
    .unwrap();
    let mut client = Client::ready(&repo, &[]);
    let long = "x".repeat(1 << 20);
    let outside = outside.to_str().unwrap();
    for path in [
        "/etc", "../..", "way", "~", "~/x", "a\0b", &long, outside, "nested", "", "no/such",
        "src/a.py",
    ] {
        let result = client.refused("review_staged", json!({"repository_path": path}));
        assert!(text(&result).len() < 2000, "{}", text(&result).len());
    }
    // The repository's own setting of its worktree does not count.
    repo.git(&["config", "core.worktree", outside]);
    client.refused("review_staged", json!({}));
}

/// Records which files in some folders are opened.
#[cfg(target_os = "linux")]
struct Watched(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Watched {
    fn new(folders: &[&std::path::Path]) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let watched = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for folder in folders {
            add_watch(&watched, *folder, WatchFlags::OPEN | WatchFlags::ACCESS).unwrap();
        }
        Self(watched)
    }

    /// Returns the files that were opened or read since the last call.
    fn opened(&self) -> Vec<String> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = rustix::fs::inotify::Reader::new(&self.0, &mut buffer);
        let mut all = Vec::new();
        while let Ok(event) = events.next() {
            let name = event
                .file_name()
                .map_or("the folder itself".into(), |n| n.to_string_lossy());
            all.push(format!("{name} {:?}", event.events()));
        }
        all
    }
}

#[test]
#[cfg(target_os = "linux")]
fn mcp_06_nothing_outside_of_the_root_is_so_much_as_opened() {
    let repo = fixture();
    let outside = repo.outside();
    std::fs::create_dir_all(&outside).unwrap();
    repo.git(&["init", "-q", outside.to_str().unwrap()]);
    std::fs::write(outside.join("x.md"), "words\n").unwrap();
    std::fs::write(outside.join(".git/config"), "[core]\nbare = false\n").unwrap();
    std::os::unix::fs::symlink(&outside, repo.path().join("way")).unwrap();
    std::os::unix::fs::symlink(outside.join("x.md"), repo.path().join("way.md")).unwrap();
    std::fs::create_dir_all(repo.path().join("nested")).unwrap();
    std::fs::write(
        repo.path().join("nested/.git"),
        format!("gitdir: {}/.git\n", outside.display()),
    )
    .unwrap();
    // A bare repository with an alternate there.
    repo.git(&["init", "-q", "--bare", "bare"]);
    let objects = outside.join(".git/objects");
    std::fs::write(
        repo.path().join("bare/objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    let (git, info) = (outside.join(".git"), objects.join("info"));
    let watched = Watched::new(&[&outside, &git, &objects, &info]);
    let mut client = Client::ready(&repo, &["--root", "."]);
    let file = outside.join("x.md").to_str().unwrap().to_owned();
    for path in [
        "../outside",
        "way",
        outside.to_str().unwrap(),
        "nested",
        "bare",
        "bare/objects",
    ] {
        client.refused("review_staged", json!({"repository_path": path}));
        client.refused(
            "claude_security_audit",
            json!({"files": ["x.md"], "working_directory": path}),
        );
    }
    // A review of new files checks whether a folder is a separate repository.
    std::fs::remove_dir_all(repo.path().join("nested")).unwrap();
    for path in ["way.md", "../outside/x.md", &file] {
        client.refused("claude_judge_review", json!({"contract_path": path}));
        client.refused("claude_validate_proposal", json!({"proposal_path": path}));
        client.refused("claude_security_audit", json!({"files": [path]}));
        client.call(
            "request_review",
            json!({"summary": "x", "relevant_docs": [path]}),
        );
    }
    client.call("review_code", json!({"code": "x = 1\n"}));
    client.call("claude_health", json!({}));
    client.request("resources/list", json!({}));
    client.request("tools/list", json!({}));
    assert_eq!(watched.opened(), [""; 0]);
    // If the served repository itself has an alternate there, nothing of it is read: neither for
    // listing tools nor for a policy.
    std::fs::write(
        repo.path().join(".git/objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    let mut client = Client::ready(&repo, &["--root", "."]);
    for (tool, arguments) in [
        ("review_code", json!({"code": "x = 1\n"})),
        ("review_staged", json!({})),
        ("claude_health", json!({})),
        ("get_review_history", json!({})),
        (
            "claude_validate_proposal",
            json!({"proposal_path": "README.md"}),
        ),
    ] {
        let result = client.refused(tool, arguments);
        assert!(
            text(&result).contains("leads out"),
            "{tool}: {}",
            text(&result)
        );
    }
    assert_eq!(
        client.request("resources/list", json!({}))["error"]["code"],
        -32603
    );
    assert!(client.request("tools/list", json!({}))["result"]["tools"].is_array());
    assert_eq!(watched.opened(), [""; 0]);
    // A read would be recorded like this.
    std::fs::read(outside.join("x.md")).unwrap();
    assert!(!watched.opened().is_empty());
}

#[test]
fn mcp_06_a_linked_worktree_is_served_where_its_repository_knows_it() {
    let repo = fixture();
    repo.git(&["commit", "-q", "-m", "second"]);
    let linked = repo.outside();
    repo.git(&[
        "worktree",
        "add",
        "-q",
        linked.to_str().unwrap(),
        "-b",
        "linked",
    ]);
    std::fs::write(linked.join("docs/b.md"), line_with_key()).unwrap();
    let mut client = Client::start_in(&repo, &linked, &["--root", "."], &[]);
    client.shake_hands(json!({}));
    assert_eq!(
        client.content("review_unstaged", json!({}))["verdict"],
        "block"
    );
}

#[test]
fn mcp_06_variables_of_git_point_nowhere_else() {
    let repo = fixture();
    let outside = repo.outside();
    std::fs::create_dir_all(&outside).unwrap();
    repo.git(&["init", "-q", outside.to_str().unwrap()]);
    let dir = outside.join(".git").to_str().unwrap().to_owned();
    let mut client = Client::start_in(&repo, &repo.path(), &[], &[("GIT_DIR", &dir)]);
    client.shake_hands(json!({}));
    assert_eq!(
        client.content("review_staged", json!({}))["verdict"],
        "block"
    );
}

/// Waits for the request for the client's roots and returns its ID.
fn asked_for_roots(client: &mut Client) -> Value {
    loop {
        let message = client
            .next_within(std::time::Duration::from_secs(20))
            .unwrap();
        if message["method"] == "roots/list" {
            return message["id"].clone();
        }
    }
}

#[test]
fn mcp_06_a_client_s_roots_never_widen_the_fence() {
    let repo = fixture();
    std::fs::create_dir_all(repo.outside()).unwrap();
    let outside = repo.outside().join("x.py");
    std::fs::write(&outside, line_with_key()).unwrap();
    let mut client = Client::start(&repo, &[]);
    client.shake_hands(json!({"roots": {}}));
    let arguments = json!({"files": [outside.to_str().unwrap()]});
    let id = client.ask(
        "tools/call",
        json!({"name": "claude_security_audit", "arguments": arguments}),
    );
    let asked = asked_for_roots(&mut client);
    client
        .send(&json!({"jsonrpc": "2.0", "id": asked, "result": {"roots": [{"uri": "file:///"}]}}));
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(
        answer["result"]["structuredContent"]["findings"].is_null(),
        "{answer}"
    );
    assert_eq!(
        client.content("review_staged", json!({}))["verdict"],
        "block"
    );
}

#[test]
fn mcp_06_a_client_that_does_not_name_its_roots_is_served_nothing() {
    let repo = fixture();
    let mut client = Client::start(&repo, &[]);
    client.shake_hands(json!({"roots": {"listChanged": true}}));
    let review = json!({"name": "review_staged", "arguments": {}});
    // No answer in time, and an error: the roots are unknown, and no result is stored.
    let id = client.ask("tools/call", review.clone());
    let late = asked_for_roots(&mut client);
    let told = client.answer(id)["result"].clone();
    assert_eq!(
        (&told["isError"], &told["structuredContent"]["retryable"]),
        (&json!(true), &json!(true)),
        "{told}"
    );
    assert!(text(&told).contains("within 2 s"), "{}", text(&told));
    let id = client.ask("tools/call", review.clone());
    let asked = asked_for_roots(&mut client);
    // A late answer has no effect.
    client.send(&json!({"jsonrpc": "2.0", "id": late, "result": {"roots": []}}));
    client
        .send(&json!({"jsonrpc": "2.0", "id": asked, "error": {"code": -32603, "message": "no"}}));
    let told = client.answer(id)["result"].clone();
    assert_eq!(
        (&told["isError"], &told["structuredContent"]["retryable"]),
        (&json!(true), &json!(true)),
        "{told}"
    );
    // An empty list, and a list of invalid folders, are answers.
    for roots in [
        json!([]),
        json!([{"uri": "file:///no/such/folder"}, {"uri": "https://example.com/"}]),
    ] {
        let id = client.ask("tools/call", review.clone());
        let asked = asked_for_roots(&mut client);
        client.send(&json!({"jsonrpc": "2.0", "id": asked, "result": {"roots": roots}}));
        let told = client.answer(id)["result"].clone();
        assert_eq!(
            (&told["isError"], &told["structuredContent"]["retryable"]),
            (&json!(true), &json!(false))
        );
        assert!(text(&told).contains("no folder open"), "{}", text(&told));
        // The client is not asked again until it announces new roots.
        client.refused("review_staged", json!({}));
        assert!(
            client.aside.iter().all(|m| m["method"] != "roots/list"),
            "{:?}",
            client.aside
        );
        client.notify("notifications/roots/list_changed", json!({}));
    }
    let id = client.ask("tools/call", review);
    let asked = asked_for_roots(&mut client);
    let roots = json!({"roots": [{"uri": format!("file://{}", repo.path().display())}]});
    client.send(&json!({"jsonrpc": "2.0", "id": asked, "result": roots}));
    assert_eq!(
        client.answer(id)["result"]["structuredContent"]["verdict"],
        "block"
    );
}

#[test]
fn mcp_06_a_client_s_roots_narrow_the_fence() {
    let repo = fixture();
    std::fs::create_dir_all(repo.path().join("part")).unwrap();
    repo.git(&["init", "-q", "part"]);
    let part = repo.path().join("part");
    let mut client = Client::start(&repo, &["--root", "."]);
    client.shake_hands(json!({"roots": {"listChanged": true}}));
    let id = client.ask(
        "tools/call",
        json!({"name": "review_staged", "arguments": {"repository_path": ".."}}),
    );
    let asked = loop {
        let message = client
            .next_within(std::time::Duration::from_secs(20))
            .unwrap();
        if message["method"] == "roots/list" {
            break message;
        }
    };
    let roots = json!({"roots": [{"uri": format!("file://{}", part.display())}]});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": roots}));
    assert_eq!(client.answer(id)["result"]["isError"], true);
    // The remaining folder is another repository, without staged changes.
    assert_eq!(
        client.content("review_staged", json!({}))["outcome"],
        "nothing_to_review"
    );
    client.refused("review_staged", json!({"repository_path": repo.path()}));
}

#[test]
fn mcp_07_a_revision_is_no_option_and_no_command() {
    let repo = fixture();
    let mut client = Client::ready(&repo, &[]);
    let target = repo.outside().join("written");
    for rev in [
        format!("--output={}", target.display()),
        "HEAD;id".to_owned(),
        "-p".to_owned(),
        "HEAD..HEAD".to_owned(),
    ] {
        client.refused("review_commit", json!({"commit_sha": rev}));
        client.refused("review_branch", json!({"branch": rev}));
        client.refused("review_branch", json!({"base_branch": rev}));
    }
    client.refused("review_commit", json!({"commit_sha": "no-such-revision"}));
    assert!(!target.exists());
}
