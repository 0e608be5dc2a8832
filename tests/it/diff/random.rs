//! Random edits, deterministic by their seed: patches that `git apply` accepts, and hunks as git
//! makes them.

use super::{git_bytes, load, open, same_patch, write};
use crate::support::Repo;
use claude_reviewer::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side, unified,
};

/// Returns numbers below `n`; deterministic.
fn random(state: &mut u64, n: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) as usize) % n.max(1)
}

#[test]
fn git_apply_turns_the_old_side_into_the_new_one() {
    const LINES: [&str; 10] = [
        "\n",
        "}\n",
        "fn a() {\n",
        "\tx\n",
        "\r\n",
        "-- a\n",
        "++ b\n",
        "é\u{2028}\u{c}\rz\n",
        "@@ -1 +1 @@\n",
        "  y  \n",
    ];
    let repo = Repo::new();
    let mut state = 42;
    let mut patch = Vec::new();
    let mut wanted = Vec::new();
    for i in 0..300 {
        let mut old: Vec<&str> = (0..random(&mut state, 80))
            .map(|_| LINES[random(&mut state, 10)])
            .collect();
        let mut new = old.clone();
        for _ in 0..=random(&mut state, 8) {
            let at = random(&mut state, new.len() + 1);
            let end = (at + random(&mut state, 5)).min(new.len());
            let insert: Vec<&str> = (0..random(&mut state, 4))
                .map(|_| LINES[random(&mut state, 10)])
                .collect();
            new.splice(at..end, insert);
        }
        for side in [&mut old, &mut new] {
            if random(&mut state, 3) == 0 {
                side.push("open");
            }
        }
        let (old, new) = (old.concat().into_bytes(), new.concat().into_bytes());
        let name = ["plain", "with space", "t\tab", "caf\u{e9}"][i % 4].to_owned() + &i.to_string();
        let exists = (i % 7 != 0, i % 11 != 0);
        if exists == (false, false) {
            continue;
        }
        if exists.0 {
            repo.write(&name, &old);
        }
        let side = Side {
            path: RepoPath::from(&*name),
            mode: FileMode::Regular,
            id: None,
        };
        let kind = match exists {
            (false, _) => ChangeKind::Added,
            (_, false) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        };
        let entry = Entry {
            kind,
            old: exists.0.then(|| side.clone()),
            new: exists.1.then_some(side),
        };
        let body = Body::between(
            exists.0.then_some(old),
            exists.1.then(|| new.clone()),
            Attribute::Unset,
        );
        if matches!(body, Body::Same) {
            continue;
        }
        unified::write(&FileChange { entry, body }, &mut patch);
        wanted.push((name, exists.1.then_some(new)));
    }
    assert!(wanted.len() > 200);
    repo.write("../all.patch", &patch);
    repo.git(&["apply", "--check", "--whitespace=nowarn", "../all.patch"]);
    repo.git(&["apply", "--whitespace=nowarn", "../all.patch"]);
    for (name, want) in wanted {
        assert_eq!(std::fs::read(repo.path().join(&name)).ok(), want, "{name}");
    }
}

#[test]
fn random_edits_have_gits_hunks() {
    const LINES: [&str; 16] = [
        "\n",
        "}\n",
        "    }\n",
        "\t}\n",
        "fn a() {\n",
        "\u{c}\n",
        "\u{b}\n",
        " \u{c}x\n",
        "        return;\n",
        "    if x {\n",
        "\r\n",
        "  \n",
        "# end\n",
        "static int y;\n",
        "    \tmixed();\n",
        "}\r\n",
    ];
    let repo = Repo::new();
    let mut state = 7;
    let mut pick = |random_unique: usize| match random(&mut state, random_unique) {
        0 => format!("    unique {};\n", random(&mut state, 1000)),
        _ => LINES[random(&mut state, 16)].to_owned(),
    };
    let mut texts: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let mut sizes = 99;
    for i in 0..240 {
        let length = random(&mut sizes, if i % 12 == 0 { 3000 } else { 120 });
        let old: Vec<String> = (0..length).map(|_| pick(1 + i % 5)).collect();
        let mut new = old.clone();
        for _ in 0..=random(&mut sizes, 1 + length / 12) {
            let at = random(&mut sizes, new.len() + 1);
            let end = (at + random(&mut sizes, 6)).min(new.len());
            let insert: Vec<String> = match random(&mut sizes, 4) {
                // A copy of existing lines, so that the edit can slide.
                0 => new[at..end].iter().chain(&new[at..end]).cloned().collect(),
                _ => (0..random(&mut sizes, 5))
                    .map(|_| pick(1 + i % 5))
                    .collect(),
            };
            new.splice(at..end, insert);
        }
        texts.push((old, new));
    }
    for (i, (old, _)) in texts.iter().enumerate() {
        repo.write(&format!("f{i:03}"), old.concat());
    }
    repo.git(&["add", "-A"]);
    for (i, (_, new)) in texts.iter().enumerate() {
        repo.write(&format!("f{i:03}"), new.concat());
    }
    let opened = open(&repo);
    let change = opened.unstaged(false).unwrap();
    let gits = git_bytes(&repo, &["diff", "--full-index"]);
    assert!(gits.len() > 100_000);
    same_patch(&write(&load(&mut opened.reader(), &change)), &gits);
}
