//! Tests of the private copy of the tree in which the program searches and reads.

use super::{AROUND, Fake, looking};
use crate::support::{Repo, line_with_key};
use claude_reviewer::ai::ask::{Cause, LookupSubject};
use claude_reviewer::git::State;
use claude_reviewer::stop::Signal;
use serde_json::json;

#[test]
fn the_snapshot_is_the_tree_under_review_and_nothing_else() {
    let repo = Repo::new();
    let line = line_with_key();
    let key = line.trim().rsplit(' ').next().unwrap().to_owned();
    repo.stage("src/a.rs", "staged\n")
        .stage("src/key.ini", format!("[default]\n{line}"));
    repo.stage("deep/er/b.txt", "two\nlines")
        .stage("run.sh", "#!/bin/sh\necho hi\n");
    repo.git(&["update-index", "--chmod=+x", "run.sh"]);
    repo.stage(".env", "KEY=value\n")
        .stage("id_rsa", "x\n")
        .stage("picture.bin", [0_u8, 1, 2, 255].repeat(99));
    for steering in [
        ".claude/settings.json",
        "sub/.claude/settings.json",
        ".mcp.json",
        "CLAUDE.md",
        "docs/AGENTS.md",
        ".cursor/rules",
        ".ignore",
        "src/.rgignore",
        ".gitignore",
        "GEMINI.md",
        ".Claude/x",
        "claude.local.md",
    ] {
        repo.stage(steering, "steering\n");
    }
    std::os::unix::fs::symlink("/etc/passwd", repo.path().join("link")).unwrap();
    repo.git(&["add", "link"]);
    repo.write("src/a.rs", "not staged\n")
        .write("untracked.txt", "x\n");
    let fake = Fake::new(&format!(
        "heard\npwd -P >\"$here/dir\"\nfind . -type f | sort >\"$here/files\"\nfind . ! -type f ! -type d >>\"$here/files\"\ncat src/a.rs src/key.ini >\"$here/text\"\nfind . -type f -perm /111 >\"$here/executable\"\nstat -c %a . >\"$here/mode\"\nready '{AROUND}'\nresult \"{{\\\"nonce\\\":\\\"$nonce\\\"}}\""
    ));
    looking(&fake, &repo, State::Index).unwrap();
    let files = fake.wrote("files");
    assert_eq!(
        files.lines().collect::<Vec<_>>(),
        ["./deep/er/b.txt", "./run.sh", "./src/a.rs", "./src/key.ini"]
    );
    let text = fake.wrote("text");
    assert!(
        text.starts_with("staged\n[default]\n")
            && text.contains("<secret:")
            && !text.contains(&key),
        "{text}"
    );
    assert_eq!(
        (fake.wrote("executable").as_str(), fake.wrote("mode").trim()),
        ("", "700")
    );
    let stdin = fake.wrote("stdin");
    let start = format!(
        "\n\nYour working folder, {}, holds 4 files",
        fake.wrote("dir").trim()
    );
    assert!(stdin.contains(&start), "{stdin}");
    assert!(stdin.contains("1 binary or too large files"), "{stdin}");
}

#[test]
fn lines_count_as_read_only_as_they_stand_in_the_tree() {
    let repo = Repo::new();
    let numbered: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    repo.stage("src/a.rs", &numbered)
        .stage("b:2:c.txt", "one\n-two\n3:three\n")
        .stage("c.txt", "x\n")
        .stage("d.txt", "x\ny\n");
    let use_ = |id: u32, name: &str, input: serde_json::Value| {
        json!({"type": "assistant", "message": {"id": format!("m{id}"), "model": "claude-test", "content":
            [{"type": "tool_use", "id": format!("t{id}"), "name": name, "input": input}]}, "parent_tool_use_id": null})
    };
    let told = |id: u32, more: serde_json::Value| {
        let mut block = json!({"type": "tool_result", "tool_use_id": format!("t{id}")});
        block
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"type": "user", "message": {"content": [block]}, "parent_tool_use_id": null})
    };
    let mut agent = told(9, json!({"content": "1\tx"}));
    agent["parent_tool_use_id"] = json!("t0");
    let events = [
        // A part of a file, in the formats of two versions, and text after its end that imitates
        // the format.
        use_(
            1,
            "Read",
            json!({"file_path": "DIR/src/a.rs", "offset": 10, "limit": 3}),
        ),
        told(
            1,
            json!({"content": "10\tline 10\n11\tline 11\n12\tline 12\n"}),
        ),
        use_(2, "Read", json!({"file_path": "src/a.rs"})),
        told(
            2,
            json!({"content": [{"type": "text", "text": "    20→line 20\n    21→line 21\n    22→another line\n31→\n99\tline 30"}]}),
        ),
        // Rejected, of another file, without a call, outside.
        use_(3, "Read", json!({"file_path": "DIR/src/a.rs"})),
        told(3, json!({"content": "1\tline 1", "is_error": true})),
        use_(4, "Read", json!({"file_path": "DIR/../../etc/passwd"})),
        told(4, json!({"content": "1\tline 1"})),
        told(77, json!({"content": "2\tline 2"})),
        // Searches: with paths that look like numbers, without numbers, in one file.
        use_(5, "Grep", json!({"pattern": "t", "output_mode": "content"})),
        told(
            5,
            json!({"content": "b:2:c.txt-1-one\nb:2:c.txt:2:-two\nb:2:c.txt:3:3:three\nsrc/a.rs:line 5\nsrc/a.rs:6:line 7\nc.txt:1:[Omitted long matching line]\n\n[Showing results with pagination = limit: 3]"}),
        ),
        use_(
            6,
            "Grep",
            json!({"pattern": "line", "path": "DIR/src/a.rs", "output_mode": "content"}),
        ),
        told(
            6,
            json!({"content": "29-line 29\n30:line 30\n--\n28:nothing of it"}),
        ),
        // A read of the model's own subagent, and the answer.
        use_(9, "Read", json!({"file_path": "DIR/d.txt"})),
        agent,
    ];
    let script: String = events.iter().map(|e| format!("{e}\n")).collect();
    let fake = Fake::new(&format!(
        "heard\nready '{AROUND}'\nsays \"$here/events\"\nresult \"{{\\\"nonce\\\":\\\"$nonce\\\"}}\""
    ));
    std::fs::write(fake.dir.path().join("events"), script).unwrap();
    let answer = looking(&fake, &repo, State::Index).unwrap();
    let read: Vec<_> = answer
        .read
        .iter()
        .map(|r| format!("{}:{}-{}", r.path.to_wire(), r.first.get(), r.last.get()))
        .collect();
    assert_eq!(
        read,
        [
            "b:2:c.txt:1-3",
            "src/a.rs:10-12",
            "src/a.rs:20-21",
            "src/a.rs:29-30"
        ]
    );
    // A search depends on the whole tree.
    let subjects: Vec<&LookupSubject> = answer.lookups.all.iter().map(|l| &l.subject).collect();
    assert_eq!(subjects, [&LookupSubject::Tree]);
}

#[test]
fn a_stopped_run_does_not_wait_for_the_snapshot() {
    let repo = Repo::new();
    repo.stage("a.txt", "x\n");
    let fake = Fake::good();
    fake.stop.now(Signal::Terminate);
    assert_eq!(
        looking(&fake, &repo, State::Index).unwrap_err().cause,
        Cause::Stopped
    );
    assert_eq!(fake.wrote("pids"), "");
}
