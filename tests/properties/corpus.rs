//! Well-formed inputs of each property, and the tokens of their formats, which a generator of
//! random bytes never reaches.

use super::check::{EVENTS, NONCE, shared_sample};
use super::random::{Random, mutate};
use claude_reviewer::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, ObjectId, RepoPath, Side, unified,
};
use serde_json::json;

/// Generates an input of the property of that name.
pub fn input(property: &str, random: &mut Random) -> Vec<u8> {
    let (mut data, tokens): (Vec<u8>, &[&[u8]]) = match property {
        "patch" => (patch(random), PATCH_TOKENS),
        "policy" => (policy(random), POLICY_TOKENS),
        "event" => (event(random), EVENT_TOKENS),
        "reply" => (reply(random).into_bytes(), REPLY_TOKENS),
        "suppression" => (suppression(random), SUPPRESSION_TOKENS),
        "content" => (content(random), CONTENT_TOKENS),
        "shared" => (shared_sample(), SHARED_TOKENS),
        other => panic!("no corpus for {other}"),
    };
    if !random.one_in(8) {
        mutate(random, &mut data, tokens);
    }
    data
}

const SHARED_TOKENS: &[&[u8]] = &[
    b"\"version\":1,",
    b"\"version\":2,",
    b"\"time\":1800000000,",
    b"\"time\":1800000060,",
    b"\"model\":\"m-2\",",
    b"\"reply\":\"no findings at all\",",
    b"\"signature\":\"\",",
    b"\"signer\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",",
    b"\"holder\":\"a\",\"beat\":1,",
    b"\\u006e",
    b"[[[[[[[[[[[[[[[[",
    b"null",
    b"\0",
];

const PATCH_TOKENS: &[&[u8]] = &[
    b"diff --git a/x b/x\n",
    b"--- a/x\n+++ b/x\n",
    b"--- /dev/null\n",
    b"+++ /dev/null\n",
    b"@@ -1 +1 @@\n",
    b"@@ -0,0 +1,2 @@\n",
    b"@@ -1,3 +0,0 @@ fn a()\n",
    b"\\ No newline at end of file\n",
    b"new file mode 100644\n",
    b"deleted file mode 100755\n",
    b"old mode 100644\n",
    b"new mode 120000\n",
    b"new file mode 160000\n",
    b"similarity index 90%\n",
    b"rename from x\n",
    b"rename to y\n",
    b"copy from x\n",
    b"index 0000000..1111111 100644\n",
    b"Binary files a/x and b/x differ\n",
    b"GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n",
    b"Index: x\n",
    b"Subproject commit 5555555555555555555555555555555555555555\n",
    b"Submodule sub 1234567..89abcde:\n",
    b"Only in a: x\n",
    b"-- \n2.47.3\n",
    b"\"a/caf\\303\\251\"",
    b"../",
    b"/etc/passwd",
    b"\t2024-01-01 00:00:00 +0000",
    b"\r\n",
    b"+\n",
    b"-\n",
    b" \n",
    b",4294967295",
    b",0",
];

fn patch(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    if random.one_in(6) {
        out.extend_from_slice(
            b"From 5555555555555555555555555555555555555555 Mon Sep 17 00:00:00 2001\nSubject: x\n\n",
        );
    }
    for i in 0..=random.below(3) {
        let (old, new) = (text(random), text(random));
        let name = *random.pick(&["src/a.rs", "b c.py", "caf\u{e9}.txt", "x b/x", "\t\"q", "a"]);
        let side = |name: &str, mode| Side {
            path: RepoPath::from(name),
            mode,
            id: ObjectId::from_raw(&[7; 20]),
        };
        let (kind, old_side, new_side) = match random.below(5) {
            0 => (ChangeKind::Added, None, Some(side(name, FileMode::Regular))),
            1 => (
                ChangeKind::Deleted,
                Some(side(name, FileMode::Regular)),
                None,
            ),
            2 => {
                let to = format!("{name}{i}");
                let renamed = ChangeKind::Renamed { similarity: 60 };
                (
                    renamed,
                    Some(side(name, FileMode::Regular)),
                    Some(side(&to, FileMode::Executable)),
                )
            }
            _ => (
                ChangeKind::Modified,
                Some(side(name, FileMode::Regular)),
                Some(side(name, FileMode::Regular)),
            ),
        };
        let body = Body::between(
            old_side.as_ref().map(|_| old),
            new_side.as_ref().map(|_| new),
            Attribute::Text,
        );
        unified::write(
            &FileChange {
                entry: Entry {
                    kind,
                    old: old_side,
                    new: new_side,
                },
                body,
            },
            &mut out,
        );
    }
    if random.one_in(12) {
        let text = String::from_utf8_lossy(&out).into_owned();
        return "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
    }
    if random.one_in(8) {
        return String::from_utf8_lossy(&out)
            .replace('\n', "\r\n")
            .into_bytes();
    }
    out
}

/// Returns lines in the form of a patch, among others.
fn text(random: &mut Random) -> Vec<u8> {
    const LINES: [&str; 12] = [
        "\n",
        "}\n",
        "fn a() {\n",
        "\tx = 1;\n",
        "\r\n",
        "-- a/x\n",
        "++ b/x\n",
        "@@ -1 +1 @@\n",
        "diff --git a/y b/y\n",
        "caf\u{e9}\u{2028}\n",
        "\\ No newline at end of file\n",
        "-\n",
    ];
    let mut out: String = (0..random.below(20))
        .map(|_| *random.pick(&LINES))
        .collect();
    if random.one_in(3) {
        out.push_str("open end");
    }
    out.into_bytes()
}

const POLICY_TOKENS: &[&[u8]] = &[
    b"version = 1\n",
    b"[review]\n",
    b"[rules]\n",
    b"[tests]\nrun = true\n",
    b"[[path]]\n",
    b"glob = \"src/**\"\n",
    b"[[guideline]]\n",
    b"[backend.x]\n",
    b"block_on = [\"critical\"]\n",
    b"ignore = [\"**/*.lock\"]\n",
    b"severity = { conflict-marker = \"minor\" }\n",
    b"timeout = \"5m\"\n",
    b"jobs = 99999999999999999999\n",
    b"on_incomplete = \"warn\"\n",
    b"\"\"\"",
    b"'''",
    b"\\u0000",
    b"[a.",
    b"= -1",
    b"= 1e999",
    b"= 1979-05-27T07:32:00Z",
    b"{",
    b"]]",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\0",
];

fn policy(random: &mut Random) -> Vec<u8> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/policy");
    let name = random.pick(&[
        "valid/everything.toml",
        "valid/everything.toml",
        "invalid/two-keys.toml",
    ]);
    let whole = std::fs::read(dir.join(name)).unwrap();
    // A part of the file, so that the effect of one mutation is not hidden behind another error.
    let mut parts: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    let from = random.below(parts.len());
    let parts = parts.split_off(from);
    parts[..random.below(parts.len() + 1)].concat()
}

const EVENT_TOKENS: &[&[u8]] = &[
    b"null",
    b"true",
    b"\"\"",
    b"{}",
    b"[]",
    b"\"refs/heads/main\"",
    b"\"refs/tags/v1\"",
    b"\"-x\"",
    b"\"..\"",
    b"\"0000000000000000000000000000000000000000\"",
    b"\"5555555555555555555555555555555555555555\"",
    b"\"0123456\"",
    b"18446744073709551616",
    b"\\u0000",
    b"\\ud800",
    b"\"sha\":",
    b"\"ref\":",
    b"\"before\":",
    b"\"default_branch\":",
];

fn event(random: &mut Random) -> Vec<u8> {
    let mut id = || {
        (0..40)
            .map(|_| char::from(*random.pick(b"0123456789abcdef")))
            .collect::<String>()
    };
    let (head, base) = (id(), id());
    let repo = json!({"full_name": "o/r", "default_branch": "main"});
    let name = |random: &mut Random| {
        *random.pick(&["main", "topic", "refs/heads/topic", "refs/tags/v1", "-x"])
    };
    let title = "t".repeat(random.below(3) * 700);
    let payload = match random.below(5) {
        0 => {
            json!({"number": 7, "repository": repo, "pull_request": {"number": 7, "title": title, "body": "b",
            "head": {"sha": head, "ref": name(random), "repo": repo}, "base": {"sha": base, "ref": "main", "repo": repo}}})
        }
        1 => {
            json!({"ref": name(random), "before": base, "after": head, "deleted": false, "repository": repo})
        }
        2 => json!({"merge_group": {"head_sha": head, "head_ref": "refs/heads/q", "base_sha": base,
            "base_ref": "refs/heads/main"}, "repository": repo}),
        3 => {
            json!({"repository": repo, "workflow_run": {"head_sha": head, "head_branch": name(random),
            "event": "pull_request", "head_repository": {"full_name": "f/r", "owner": {"login": "f"}},
            "pull_requests": [{"number": 7, "head": {"sha": head}, "base": {"sha": base, "ref": "main"}}]}})
        }
        _ => json!({"repository": repo, "ref": name(random)}),
    };
    let mut out = vec![random.below(EVENTS.len()) as u8];
    out.extend(payload.to_string().into_bytes());
    out
}

const REPLY_TOKENS: &[&[u8]] = &[
    b"\"findings\": []",
    b"\"findings\": [{}]",
    b"\"files_reviewed\": []",
    b"\"nonce\": \"000102030405060708090a0b0c0d0e0f\"",
    b"\"nonce\": null",
    b"\"issues\": [1]",
    b"\"verdict\": \"fail\"",
    b"\"truncated\": true",
    b"\"line\": \"42-45\"",
    b"```json\n",
    b"\n```",
    b"<think>",
    b"</think>",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b"\\u0000",
    b"\\ud800",
    b"NaN",
    b"1e999",
];

fn reply(random: &mut Random) -> String {
    let finding = |random: &mut Random| {
        json!({"file": random.pick(&["src/a.rs", "b", "../c"]), "line": random.below(50), "quote": "x }{ \" y",
            "severity": random.pick(&["critical", "High", "none", ""]), "category": "bug", "title": "t",
            "message": "m }", "cwe": random.pick(&["CWE-89", "79", "x"])})
    };
    let findings: Vec<_> = (0..random.below(4)).map(|_| finding(random)).collect();
    let mut document = json!({"nonce": NONCE, "summary": "a } ] ``` b", "findings": findings,
        "files_reviewed": ["src/a.rs"], "design_compliance": null, "missing_requirements": []});
    if random.one_in(4) {
        // Models end with the least or the most important part.
        let list = document["findings"].take();
        document.as_object_mut().unwrap().shift_remove("findings");
        document["findings"] = list;
    }
    let text = if random.one_in(2) {
        document.to_string()
    } else {
        format!("{document:#}")
    };
    match random.below(6) {
        0 => format!("```json\n{text}\n```\n"),
        1 => format!("<think>{{\"findings\": []}}</think>\n{text}"),
        2 => format!("\u{feff}{text}\n\n"),
        _ => text,
    }
}

const SUPPRESSION_TOKENS: &[&[u8]] = &[
    b"claude-reviewer: ignore[",
    b"claude-reviewer: ignore[python-eval-input] because",
    b"claude-reviewer: ignore[] all",
    b"claude-reviewer: ignore[*] all",
    b"claude-reviewer: ignore[python-*] all",
    b"claude-reviewer: ignore[all] all",
    b"] reason",
    b",",
    b"\\",
    b"*/",
    b"/*",
    b"\"\"\"",
    b"'",
    b"\"",
    b"\xe2\x80\xa8",
    b"\x0c",
    b"\x0b",
    b"\x85",
];

fn suppression(random: &mut Random) -> Vec<u8> {
    let mut out = vec![random.below(256) as u8];
    let ids = (0..random.below(6))
        .map(|_| *random.pick(&["a", "python-exec", "ai-security", "", "c-gets", "x-y-z"]));
    let ids = ids.collect::<Vec<_>>().join(",");
    let reason = *random.pick(&["", " because", ": known", " - *", "x"]);
    out.extend(
        format!("claude-reviewer: ignore[{ids}]{reason}")
            .repeat(1 + random.below(3))
            .into_bytes(),
    );
    out
}

/// First bytes of well-known formats, which [`content`] and the metamorphic cases put before text.
pub const MAGIC: &[(&str, &[u8])] = &[
    (
        "png",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06",
    ),
    ("pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
    ("zip", b"PK\x03\x04\x14\0\0\0\x08\0"),
    ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03"),
    ("elf", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0"),
    ("bplist", b"bplist00\xd1\x01\x02"),
    ("bplist-bare", b"bplist00"),
    ("sqlite", b"SQLite format 3\0\x10\0\x01\x01\0@  "),
    ("mach-o", b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0"),
    ("class", b"\xca\xfe\xba\xbe\0\0\0\x41"),
    ("jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0"),
    ("gif", b"GIF89a\x10\0\x10\0\xf0\0\0"),
    ("pe", b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0"),
    ("wasm", b"\0asm\x01\0\0\0"),
    ("lua", b"\x1bLuaT\0\x19\x93\r\n\x1a\n"),
    ("zstd", b"\x28\xb5\x2f\xfd\x24\0"),
    ("xz", b"\xfd7zXZ\0\0\x04"),
    ("pack", b"PACK\0\0\0\x02\0\0\0\x01"),
    ("ds-store", b"\0\0\0\x01Bud1\0\0"),
    ("numpy", b"\x93NUMPY\x01\0v\0"),
    ("ar", b"!<arch>\n"),
    ("ico", b"\0\0\x01\0\x01\0\x10\x10"),
    ("utf-16", b"\xff\xfe"),
    ("utf-32", b"\xff\xfe\0\0"),
];

const CONTENT_TOKENS: &[&[u8]] = &[
    b"\0",
    b"\0\0\0\0",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\x00\xd8",
    b"\x1a",
    b"\x04",
    b"PK\x03\x04",
];

fn content(random: &mut Random) -> Vec<u8> {
    let mut out = vec![random.below(256) as u8, random.below(3) as u8];
    if random.one_in(2) {
        out.extend_from_slice(random.pick(MAGIC).1);
    }
    let count = *random.pick(&[0, 3, 40, 600, 9_000]);
    let noise = match random.below(4) {
        0 => vec![0; count],
        1 => random.bytes(count),
        2 => (0..count).map(|_| *random.pick(b"abc def \0")).collect(),
        _ => (0..count)
            .map(|_| *random.pick(b"\0\x01\x02\xff"))
            .collect(),
    };
    out.extend(noise);
    out
}
