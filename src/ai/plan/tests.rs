//! Tests of the plan: which files are grouped, split or left out.

use super::*;
use crate::ai::material::{ShownLine, SideSymbols};
use crate::ai::related::Related;
use crate::ai::risk::{FileRisk, RiskBand};
use crate::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, LineKind, LineNo, RepoPath, Side,
};

/// Builds a file with one hunk of added lines for each number.
pub(super) fn file(path: &str, hunks: &[usize]) -> Shown {
    let side = Side {
        path: RepoPath::from(path),
        mode: FileMode::Regular,
        id: None,
    };
    let mut numbers = (1..).map(LineNo::new);
    let hunks = hunks.iter().map(|count| {
        let lines = numbers.by_ref().take(*count).map(|new| ShownLine {
            kind: LineKind::Added,
            old: None,
            new,
            text: "x = 1".to_owned(),
        });
        ShownHunk {
            section: String::new(),
            lines: lines.collect(),
        }
    });
    Shown {
        name: path.to_owned(),
        old_name: None,
        hunks: hunks.collect(),
        change: FileChange {
            entry: Entry {
                kind: ChangeKind::Added,
                old: None,
                new: Some(side),
            },
            body: Body::between(None, Some(b"x\n".to_vec()), Attribute::Unset),
        },
        guidelines: Vec::new(),
        redacted: Vec::new(),
        cut: Vec::new(),
        symbols: SideSymbols::default(),
    }
}

fn group(files: Vec<Shown>) -> Group {
    Group {
        commit: None,
        tree: None,
        messages: Vec::new(),
        files,
        related: Related::default(),
    }
}

const WIDE: Limits = Limits {
    files: 50,
    lines: 2_000,
    bytes: 1_000_000,
    requests: 40,
};

/// Lists the files of each chunk, and the lines of split files.
fn shape(groups: &[Group], plan: &ReviewPlan) -> Vec<String> {
    let chunks = plan.chunks.iter();
    chunks
        .map(|c| {
            c.pieces
                .iter()
                .map(|p| name(&groups[c.group], p))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

/// Returns the path of a piece, and the lines of a split file.
fn name(group: &Group, piece: &FilePiece) -> String {
    let path = group.files[piece.file].path().to_wire();
    if !piece.split {
        return path;
    }
    let parts: Vec<_> = piece
        .hunks
        .iter()
        .map(|h| format!("{}:{}-{}", h.hunk, h.lines.start, h.lines.end))
        .collect();
    format!("{path}[{}]", parts.join(" "))
}

/// Asserts that every line is in exactly one chunk, or its file is listed as left out.
fn assert_complete(groups: &[Group], plan: &ReviewPlan) {
    for (g, group) in groups.iter().enumerate() {
        for (f, file) in group.files.iter().enumerate() {
            let pieces = plan
                .chunks
                .iter()
                .filter(|c| c.group == g)
                .flat_map(|c| &c.pieces)
                .filter(|p| p.file == f);
            let mut seen: Vec<_> = pieces
                .flat_map(|p| &p.hunks)
                .flat_map(|h| h.lines.clone().map(|l| (h.hunk, l)))
                .collect();
            let all: Vec<_> = file
                .hunks
                .iter()
                .enumerate()
                .flat_map(|(h, x)| (0..x.lines.len()).map(move |l| (h, l)))
                .collect();
            seen.sort_unstable();
            let left = plan.left_out.iter().find(|l| l.group == g && l.file == f);
            match left {
                None => assert_eq!(seen, all, "{:?}", file.path()),
                Some(left) => assert_eq!(left.partly, !seen.is_empty()),
            }
        }
    }
}

fn planned(files: Vec<Shown>, limits: Limits) -> Vec<String> {
    let groups = [group(files)];
    let plan = plan(&groups, &limits);
    assert_complete(&groups, &plan);
    assert!(plan.left_out.is_empty());
    shape(&groups, &plan)
}

#[test]
fn what_fits_is_one_request() {
    assert_eq!(
        planned(vec![file("a.rs", &[3]), file("b.rs", &[3, 4])], WIDE),
        ["a.rs b.rs"]
    );
    assert_eq!(planned(Vec::new(), WIDE), Vec::<String>::new());
}

#[test]
fn each_limit_holds() {
    for (limits, most) in [
        (Limits { files: 3, ..WIDE }, 3),
        (Limits { lines: 25, ..WIDE }, 2),
        (Limits { bytes: 500, ..WIDE }, 3),
    ] {
        let groups = [group(
            (0..7).map(|i| file(&format!("f{i}.rs"), &[10])).collect(),
        )];
        let plan = plan(&groups, &limits);
        assert_complete(&groups, &plan);
        assert!(
            plan.chunks.iter().all(|c| c.pieces.len() <= most),
            "{limits:?}: {:?}",
            shape(&groups, &plan)
        );
        assert!(plan.chunks.iter().flat_map(|c| &c.pieces).all(|p| !p.split));
    }
}

/// Returns true if one request contains all the files, among others of the same size.
fn are_together(paths: &[&str]) -> bool {
    let mut files: Vec<_> = (0..3)
        .map(|i| file(&format!("a{i}/filler.rs"), &[8]))
        .collect();
    files.extend(paths.iter().map(|p| file(p, &[8])));
    files.extend((0..3).map(|i| file(&format!("z{i}/filler.rs"), &[8])));
    files.sort_by(|a, b| a.path().cmp(b.path()));
    planned(
        files,
        Limits {
            lines: 8 * paths.len(),
            ..WIDE
        },
    )
    .iter()
    .any(|chunk| paths.iter().all(|p| chunk.split(' ').any(|c| c == *p)))
}

#[test]
fn what_belongs_together_stays_together() {
    for paths in [
        &["src/foo.py", "tests/test_foo.py"][..],
        &["pkg/foo.go", "pkg/foo_test.go"],
        &["src/main/java/a/Foo.java", "src/test/java/a/FooTest.java"],
        &["src/app/user.ts", "src/app/user.spec.ts"],
        &["src/app/user.ts", "src/zoo/__tests__/user.test.tsx"],
        &["lib/foo.rb", "spec/lib/foo_spec.rb"],
        &["src/parse.rs", "tests/parse.rs"],
        &["include/app/net.h", "src/app/net.cpp"],
        &["locales/de.json", "locales/en.json", "locales/pt-BR.json"],
        &["res/values-de/strings.xml", "res/values/strings.xml"],
        &["src/messages.properties", "src/messages_de.properties"],
        &[
            "locale/de/LC_MESSAGES/app.po",
            "locale/fr/LC_MESSAGES/app.po",
        ],
        &[
            "app/models/user.rb",
            "db/migrate/20240101_add_email_to_users.rb",
        ],
        &["shop/migrations/0002_auto.py", "shop/models.py"],
    ] {
        assert!(are_together(paths), "{paths:?}");
    }
    // Only the file names are similar.
    for paths in [
        &["b/x.json", "y/x.json"][..],
        &["b/de.rs", "y/en.rs"],
        &["b/foo.py", "y/test_foo.js"],
    ] {
        assert!(!are_together(paths), "{paths:?}");
    }
}

#[test]
fn a_large_file_is_split_between_hunks_and_a_large_hunk_between_lines() {
    let limits = Limits { lines: 10, ..WIDE };
    assert_eq!(
        planned(vec![file("a.rs", &[6, 4, 5])], limits),
        ["a.rs[0:0-6 1:0-4]", "a.rs[2:0-5]"]
    );
    let shapes = planned(vec![file("a.rs", &[25, 2]), file("b.rs", &[3])], limits);
    assert_eq!(
        shapes,
        ["a.rs[0:0-10]", "a.rs[0:10-20]", "a.rs[0:20-25 1:0-2] b.rs"]
    );
}

#[test]
fn a_cut_prefers_an_empty_line_and_never_parts_what_replaces_from_what_is_replaced() {
    let mut f = file("a.rs", &[14]);
    f.hunks[0].lines[6].text.clear();
    let shapes = planned(vec![f], Limits { lines: 10, ..WIDE });
    assert_eq!(shapes, ["a.rs[0:0-7]", "a.rs[0:7-14]"]);
    let mut f = file("a.rs", &[14]);
    for line in &mut f.hunks[0].lines[..10] {
        line.kind = LineKind::Removed;
    }
    let shapes = planned(vec![f], Limits { lines: 10, ..WIDE });
    assert!(!shapes.iter().any(|s| s.contains("0-10]")), "{shapes:?}");
}

#[test]
fn groups_never_share_a_request() {
    let groups = [
        group(vec![file("a.rs", &[1])]),
        group(vec![file("a.rs", &[1])]),
    ];
    assert_eq!(plan(&groups, &WIDE).chunks.len(), 2);
}

#[test]
fn what_more_requests_would_take_is_named() {
    let groups = [
        group(vec![file("a.rs", &[5]), file("b.rs", &[25])]),
        group(vec![file("c.rs", &[5])]),
    ];
    let plan = plan(
        &groups,
        &Limits {
            lines: 10,
            requests: 2,
            ..WIDE
        },
    );
    assert_eq!(plan.chunks.len(), 2);
    let expected = [
        LeftOut {
            group: 0,
            file: 1,
            partly: true,
        },
        LeftOut {
            group: 1,
            file: 0,
            partly: false,
        },
    ];
    assert_eq!(plan.left_out, expected);
    assert_complete(&groups, &plan);
}

/// Builds 200 files, of which one has more lines than the others.
fn many_files(longer: usize) -> Vec<Shown> {
    (0..200)
        .map(|i| {
            file(
                &format!("src/m{i:03}/x{i}.rs"),
                &[if i == longer { 19 } else { 10 }],
            )
        })
        .collect()
}

#[test]
fn an_edit_moves_few_chunks() {
    let limits = Limits { lines: 200, ..WIDE };
    let (before, after) = (
        planned(many_files(999), limits),
        planned(many_files(20), limits),
    );
    let kept = after.iter().filter(|c| before.contains(c)).count();
    assert!(kept + 3 >= after.len(), "{kept} of {}", after.len());
}

#[test]
fn halving_ends_and_loses_nothing() {
    let groups = [group(vec![
        file("a.rs", &[9]),
        file("b.rs", &[1, 30]),
        file("c.rs", &[2]),
    ])];
    let mut whole = plan(&groups, &WIDE).chunks;
    let mut done = Vec::new();
    while let Some(chunk) = whole.pop() {
        match halve(&chunk, &groups) {
            Some((a, b)) => whole.extend([a, b]),
            None => done.push(chunk),
        }
    }
    assert_eq!(done.len(), 42);
    assert_complete(
        &groups,
        &ReviewPlan {
            chunks: done,
            left_out: Vec::new(),
        },
    );
}

#[test]
fn thousands_of_files_of_one_name_are_joined_by_their_folders() {
    let files: Vec<_> = (0..5_000)
        .flat_map(|i| {
            [
                file(&format!("m{i}/src/index.ts"), &[1]),
                file(&format!("m{i}/tests/index.test.ts"), &[1]),
            ]
        })
        .chain((0..5_000).flat_map(|i| {
            [
                file(&format!("db/models/m{i}a.rb"), &[1]),
                file(&format!("db/migrate/2024_add{i}.rb"), &[1]),
            ]
        }))
        .collect();
    let all = affinity::clusters(&files);
    let pairs = (0..5_000).filter(|i| all.contains(&vec![i * 2, i * 2 + 1]));
    assert_eq!(pairs.take(50).count(), 50);
}

/// Returns the risk of a file in a band, with a score.
fn risk(band: RiskBand, score: u32) -> FileRisk {
    FileRisk { band, score }
}

/// Returns the paths of each chunk of one group of files, in the order of their requests.
fn ordered(files: &[(&str, FileRisk)], limits: &Limits) -> Vec<Vec<String>> {
    let shown = files.iter().map(|(path, _)| file(path, &[1])).collect();
    let groups = [group(shown)];
    let risks = [files.iter().map(|(_, risk)| *risk).collect()];
    let chunks = by_risk(&groups, &risks, (&crate::symbols::Cache::default(), limits));
    let paths = |chunk: &Chunk| {
        let pieces = chunk.pieces.iter();
        let names = pieces.map(|piece| groups[0].files[piece.file].name.clone());
        names.collect()
    };
    chunks.iter().map(paths).collect()
}

#[test]
fn a_tree_is_asked_about_in_the_order_of_risk_and_tests_come_last() {
    let files = [
        ("a.rs", risk(RiskBand::Code, 3)),
        ("b.rs", risk(RiskBand::Entry, 30)),
        ("c.rs", risk(RiskBand::Code, 40)),
        ("d.rs", risk(RiskBand::Code, 3)),
        ("tests/b.rs", risk(RiskBand::Last, 90)),
    ];
    let one = Limits { files: 1, ..WIDE };
    assert_eq!(
        ordered(&files, &one),
        [["c.rs"], ["b.rs"], ["a.rs"], ["d.rs"], ["tests/b.rs"]]
    );
    // Files of one band share a request, which is as urgent as the riskiest of them.
    assert_eq!(
        ordered(&files, &WIDE),
        [
            vec!["a.rs", "c.rs", "d.rs"],
            vec!["b.rs"],
            vec!["tests/b.rs"]
        ]
    );
}

#[test]
fn scores_change_the_order_of_chunks_and_not_the_chunks() {
    let names = ["x/a.rs", "x/b.rs", "y/c.rs", "y/d.rs", "z/e.rs", "z/f.rs"];
    let chunks = |scores: [u32; 6]| {
        let files: Vec<_> = names
            .into_iter()
            .zip(scores.map(|score| risk(RiskBand::Code, score)))
            .collect();
        let mut chunks = ordered(&files, &Limits { files: 2, ..WIDE });
        let first = chunks[0].clone();
        chunks.sort();
        (first, chunks)
    };
    let (first, even) = chunks([0; 6]);
    let (other, raised) = chunks([0, 0, 0, 0, 0, 9]);
    assert_eq!(even, raised);
    assert!(first.contains(&"x/a.rs".to_owned()));
    assert!(other.contains(&"z/f.rs".to_owned()));
}
