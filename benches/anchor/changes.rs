//! Generated changes, and changes of real files with a duplicated line.

use claude_reviewer::ai::material::{Group, Shown};
use claude_reviewer::ai::plan::{Chunk, FilePiece, HunkPart};
use claude_reviewer::ai::related::Related;
use claude_reviewer::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, LineKind, RepoPath, Side,
};
use claude_reviewer::policy::Policy;
use claude_reviewer::rules::RuleSet;

/// Distance of the two equal lines of [`with_twin`].
const APART: usize = 40;

/// Generates a change of a few files whose lines are often similar.
pub fn made_up(random: &mut fastrand::Rng, rules: &RuleSet) -> Group {
    let mut files = Vec::new();
    for number in 0..random.usize(2..6) {
        let old: Vec<String> = (0..random.usize(20..300))
            .map(|_| made_up_line(random))
            .collect();
        let mut new = old.clone();
        for _ in 0..random.usize(2..10) {
            let at = random.usize(..=new.len());
            let end = (at + random.usize(..4)).min(new.len());
            let added: Vec<String> = (0..random.usize(1..8))
                .map(|_| made_up_line(random))
                .collect();
            new.splice(at..end, added);
        }
        let path = RepoPath::new(format!("src/part_{number}/{}.rs", made_up_word(random)));
        files.extend(shown(
            &path,
            old.concat().into_bytes(),
            new.concat().into_bytes(),
            rules,
        ));
    }
    group_of(files)
}

fn made_up_word(random: &mut fastrand::Rng) -> &'static str {
    [
        "index", "buffer", "count", "entry", "limit", "parser", "offset", "handle", "reader",
        "cache",
    ][random.usize(..10)]
}

fn made_up_line(random: &mut fastrand::Rng) -> String {
    let word = made_up_word;
    match random.usize(..10) {
        0 => "    }\n".to_owned(),
        1 => "        return None;\n".to_owned(),
        2 => format!("    {}.push({});\n", word(random), word(random)),
        3 => format!("    if {} > {} {{\n", word(random), random.usize(..1_000)),
        n => {
            let (name, id) = (word(random), random.usize(..10_000));
            format!(
                "    let {name}_{id} = {}({}, {n});\n",
                word(random),
                word(random)
            )
        }
    }
}

fn group_of(files: Vec<Shown>) -> Group {
    Group {
        commit: None,
        tree: None,
        messages: Vec::new(),
        files,
        related: Related::default(),
    }
}

fn shown(path: &RepoPath, old: Vec<u8>, new: Vec<u8>, rules: &RuleSet) -> Option<Shown> {
    let side = || {
        Some(Side {
            path: path.clone(),
            mode: FileMode::Regular,
            id: None,
        })
    };
    let change = FileChange {
        entry: Entry {
            kind: ChangeKind::Modified,
            old: side(),
            new: side(),
        },
        body: Body::between(Some(old), Some(new), Attribute::Unset),
    };
    Shown::new(change, rules, &Policy::default()).ok().flatten()
}

/// Inserts a copy of an added line [`APART`] lines after it. `None` if the line or its copy would
/// not be shown as added.
pub fn with_twin(file: &Shown, number: u32, rules: &RuleSet) -> Option<(Group, Chunk)> {
    let change = file.change.text()?;
    let new = String::from_utf8_lossy(change.new.whole()?).into_owned();
    let old = change.old.whole().unwrap_or_default().to_vec();
    let mut lines: Vec<String> = new.lines().map(|line| format!("{line}\n")).collect();
    let at = usize::try_from(number).ok()?.checked_sub(1)?;
    let twin = lines.get(at)?.clone();
    for n in lines.len()..at + APART {
        lines.push(format!("appended line {n}\n"));
    }
    lines.insert(at + APART, twin);
    let file = shown(file.path(), old, lines.concat().into_bytes(), rules)?;
    let is_added = |n: u32| {
        let mut all = file.hunks.iter().flat_map(|h| &h.lines);
        all.any(|l| l.kind == LineKind::Added && l.new.is_some_and(|m| m.get() == n))
    };
    if !is_added(number) || !is_added(number + APART as u32) {
        return None;
    }
    Some(whole(file))
}

/// Returns a change that consists of a single file.
pub fn alone(file: &Shown, rules: &RuleSet) -> Option<(Group, Chunk)> {
    Some(whole(
        Shown::new(file.change.clone(), rules, &Policy::default()).ok()??,
    ))
}

fn whole(file: Shown) -> (Group, Chunk) {
    let lengths = file.hunks.iter().map(|h| h.lines.len()).enumerate();
    let hunks = lengths
        .map(|(hunk, length)| HunkPart {
            hunk,
            lines: 0..length,
        })
        .collect();
    let chunk = Chunk {
        group: 0,
        pieces: vec![FilePiece {
            file: 0,
            hunks,
            split: false,
        }],
        room: 0,
    };
    (group_of(vec![file]), chunk)
}
