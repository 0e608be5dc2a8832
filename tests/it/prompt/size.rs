//! Tests of the size of requests: the share of the diff, the limits, and the list of files.

use super::{WIDE, added, asked, full_brief, group, modified, rules, shown, whole};
use crate::fences;
use claude_reviewer::ai::kept::ExcludedFile;
use claude_reviewer::ai::plan::Limits;
use claude_reviewer::ai::prompt::{self, Brief, Lens};
use claude_reviewer::diff::{RepoPath, unified};
use claude_reviewer::verdict::Skip;

/// Edits a source file like a person: some changed lines, an added block, a removed block.
fn edited(text: &str, every: usize) -> String {
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        match i % every {
            3 => out.push_str(&format!("{}// seen\n", line.replace("self", "this"))),
            9 => out.push_str(&format!(
                "{line}\n    let before = after.len();\n    check(before)?;\n"
            )),
            17 => {}
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

#[test]
fn a_request_without_related_code_is_little_more_than_its_diff() {
    let sources = [
        ("src/rules.rs", include_str!("../../../src/rules.rs")),
        (
            "src/diff/hunks.rs",
            include_str!("../../../src/diff/hunks.rs"),
        ),
        ("tests/it/cli.rs", include_str!("../cli.rs")),
        ("ARCHITECTURE.md", include_str!("../../../ARCHITECTURE.md")),
        ("Cargo.toml", include_str!("../../../Cargo.toml")),
    ];
    let change = |every: usize| {
        sources
            .map(|(path, text)| modified(path, text, edited(text, every)))
            .to_vec()
    };
    let new = sources.map(|(path, text)| added(path, text)).to_vec();
    let small = vec![modified(
        "src/rules.rs",
        sources[0].1,
        sources[0].1.replacen("team", "Team", 1),
    )];
    let empty = Brief::default();
    for (name, files) in [
        ("scattered", change(60)),
        ("dense", change(20)),
        ("new", new),
        ("small", small),
    ] {
        let mut diff = Vec::new();
        for f in &files {
            unified::write(f, &mut diff);
        }
        let shown = files.into_iter().map(shown).collect();
        let prompts = asked(&empty, group(shown), Lens::Whole, &WIDE);
        let sent: usize = prompts.iter().map(|p| whole(p).len()).sum();
        let most = diff.len() * 12 / 10 + prompts.len() * 4_400;
        assert!(
            sent <= most,
            "{name}: {sent} bytes for a diff of {}, {} requests",
            diff.len(),
            prompts.len()
        );
        assert!(
            whole(&prompts[0]).len() < prompt::fixed_bytes(&empty, 0) + diff.len() * 12 / 10 + 500
        );
    }
}

#[test]
fn a_request_is_no_larger_than_its_limit() {
    let text: String = (0..900)
        .map(|i| format!("def part{i}(a, b):\n    return a * {i} + b\n\n"))
        .collect();
    let files = || {
        (0..5)
            .map(|i| shown(added(&format!("src/{i}.py"), &text)))
            .collect::<Vec<_>>()
    };
    for bytes in [3_000, 10_000, 50_000] {
        let all = asked(
            &Brief::default(),
            group(files()),
            Lens::Whole,
            &Limits { bytes, ..WIDE },
        );
        for p in &all {
            assert!(
                whole(p).len() <= prompt::fixed_bytes(&Brief::default(), 0) + bytes,
                "{bytes}: {}",
                whole(p).len()
            );
        }
        let lines: usize = all
            .iter()
            .map(|p| p.chunk.matches("+def part").count())
            .sum();
        assert!(lines == 4_500 || all.len() == WIDE.requests, "{bytes}");
    }
}

#[test]
fn a_context_that_does_not_fit_is_cut_and_that_is_said() {
    let mut brief = full_brief();
    brief.documents[0].text = "A line of the design.\n".repeat(2_000);
    let notes = brief.fit(24_000);
    assert!(prompt::fixed_bytes(&brief, 24_000) <= 12_000);
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].ends_with(" bytes of docs/design.md were not sent to a model: too long"),
        "{notes:?}"
    );
    assert!(brief.fit(24_000).is_empty());
}

#[test]
fn the_list_of_files_stays_within_4_kib_names_the_nearest_first_and_counts_the_rest() {
    let long = |folder: &str, n: usize| format!("{folder}/{}_{n}.py", "long_name".repeat(9));
    let change = |path: &str| shown(modified(path, "a = 1\n", "a = 2\n"));
    let mut files = vec![change("src/api/own.py")];
    files.extend((0..12).map(|n| change(&long("src/api", n))));
    files.extend((0..40).map(|n| change(&long("docs/other/deep", n))));
    let kept: Vec<ExcludedFile> = (0..60)
        .map(|n| format!("src/api/{}_{n}.lock", "kept".repeat(20)))
        .chain(["x".repeat(3_000)])
        .map(|path| ExcludedFile::new(RepoPath::from(path.as_str()), Skip::Lockfile, &rules()))
        .collect();
    let brief = Brief {
        kept,
        ..Brief::default()
    };
    let limits = Limits { files: 1, ..WIDE };
    let prompts = asked(
        &brief,
        group(files),
        Lens::Whole,
        &Limits {
            requests: 100,
            ..limits
        },
    );
    let own = prompts
        .iter()
        .find(|p| p.chunk.contains("file: src/api/own.py"))
        .unwrap();
    for prompt in &prompts {
        assert!(
            prompt.manifest.text.len() <= 4 << 10,
            "{}",
            prompt.manifest.text.len()
        );
    }
    let text = fences::only(&own.manifest.text, "files of the whole change");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("src/api/own.py +1 -1"), "{text}");
    // First those of its folder, then the kept ones of its folder, then the others.
    assert!(
        lines[1..13]
            .iter()
            .all(|l| l.starts_with("src/api/long_name")),
        "{text}"
    );
    let listed = &lines[13..lines.len() - 2];
    assert!(
        listed.len() > 5 && listed.iter().all(|l| l.starts_with("src/api/kept")),
        "{text}"
    );
    let left = 61 - listed.len();
    assert_eq!(
        lines[lines.len() - 2..],
        [
            "and 40 more files",
            &format!("and {left} more that are not shown")
        ]
    );
    // A removed path asks again, although it is not listed.
    assert_eq!(own.manifest.key.lines().count(), 53 + 61);
}

#[test]
fn a_path_that_is_too_long_for_the_list_is_counted_and_others_are_listed() {
    let change = |path: &str| shown(modified(path, "a = 1\n", "a = 2\n"));
    let files = vec![
        change("src/own.py"),
        change(&format!("src/{}.py", "x".repeat(3_000))),
        change("src/b.py"),
    ];
    let prompts = asked(
        &Brief::default(),
        group(files),
        Lens::Whole,
        &Limits { files: 1, ..WIDE },
    );
    let text = fences::only(&prompts[0].manifest.text, "files of the whole change");
    assert!(
        text.starts_with("src/own.py +1 -1\n") && text.ends_with("and 1 more files\n"),
        "{text}"
    );
}
