//! Tests of the further lines of a claim, and of claims about unchanged code that the model read.

use super::*;

/// Formats the secondary locations of a candidate.
fn also(c: &ClaimCandidate) -> Vec<String> {
    c.draft
        .also
        .iter()
        .map(|a| format!("{}:{} {}", a.file.to_wire(), a.line, a.quote))
        .collect()
}

#[test]
fn other_places_of_a_claim_are_kept_where_their_quote_is_in_the_file() {
    let case = case()
        .unchanged("lib/callers.rs", CALLERS)
        .unchanged("src/a.rs", "fn unrelated() {}\n");
    for (said, expected) in [
        (
            elsewhere("lib/callers.rs", 4, "    let n = compute_20(v);"),
            "lib/callers.rs:4 let n = compute_20(v);",
        ),
        // Another spelling of the path, a wrong number, a part of the line, other white space.
        (
            elsewhere("./lib/callers.rs", 90, "let n = compute_20(v);"),
            "lib/callers.rs:4 let n = compute_20(v);",
        ),
        (
            elsewhere("callers.rs", 0, "compute_20(v)"),
            "lib/callers.rs:4 let n = compute_20(v);",
        ),
        (
            elsewhere("lib/callers.rs", 4, "let n=compute_20( v );"),
            "lib/callers.rs:4 let n = compute_20(v);",
        ),
        // The number distinguishes equal lines.
        (
            elsewhere("lib/callers.rs", 9, "n + 1;"),
            "lib/callers.rs:9 n + 1;",
        ),
    ] {
        assert_eq!(
            also(&candidate_with(&case, vec![said.clone()])),
            [expected],
            "{said:?}"
        );
    }
    for said in [
        elsewhere("lib/callers.rs", 4, "let n = compute_21(v);"),
        elsewhere("lib/missing.rs", 4, "let n = compute_20(v);"),
        elsewhere("../lib/callers.rs", 4, "let n = compute_20(v);"),
        elsewhere("lib/callers.rs", 4, ""),
        elsewhere("lib/callers.rs", 4, "v"),
        claim::Elsewhere::default(),
    ] {
        assert_eq!(
            also(&candidate_with(&case, vec![said.clone()])),
            [""; 0],
            "{said:?}"
        );
    }
    let place = elsewhere("lib/callers.rs", 4, "let n = compute_20(v);");
    assert_eq!(
        also(&candidate_with(&case, vec![place.clone(), place])).len(),
        1
    );
}

/// Returns the candidate of a claim with secondary locations.
#[track_caller]
fn candidate_with(case: &ClaimCase, also: Vec<claim::Elsewhere>) -> ClaimCandidate {
    case.candidate(Claim {
        also,
        ..claim("src/a.rs", 20, "let total = sum(&values[1..]);")
    })
}

#[test]
fn other_places_of_a_patch_are_looked_up_in_its_lines() {
    for (said, expected) in [
        (
            elsewhere("new.rs", 2, "loop_forever(1, 2);"),
            &["new.rs:2 loop_forever(1, 2);"][..],
        ),
        (elsewhere("src/a.rs", 31, "free(buffer);"), &[][..]),
        (
            elsewhere("lib/callers.rs", 4, "let n = compute_20(v);"),
            &[][..],
        ),
    ] {
        let c = case().candidate(Claim {
            also: vec![said.clone()],
            ..claim("src/a.rs", 31, "free(buffer);")
        });
        assert_eq!(also(&c), expected, "{said:?}");
    }
}

#[test]
fn a_claim_about_an_unchanged_line_that_was_read_is_tied_to_the_change() {
    let call = claim("lib/callers.rs", 4, "let n = compute_20(v);");
    // The model did not see the line.
    assert_eq!(
        place(&case_with_callers(CALLERS).anchor(call.clone())),
        "remark -"
    );
    // The model read the line, and the line names a definition that the change touches.
    let case = case_with_callers(CALLERS).read("lib/callers.rs", 1, 6);
    let c = case.candidate(call);
    assert_eq!(also(&c), ["lib/callers.rs:4 let n = compute_20(v);"]);
    // The line that named it was removed, so the line that replaced it is shown.
    assert_eq!(
        place(&Anchored::Candidate(Box::new(c.clone()))),
        "src/a.rs:20 as numbered"
    );
    assert!(
        c.draft
            .message
            .contains("unchanged code at lib/callers.rs:4"),
        "{}",
        c.draft.message
    );
    assert_eq!(c.draft.replacement, None);
    // A line of the change names the definition.
    let mut case = case_with_callers(CALLERS).read("lib/callers.rs", 1, 6);
    case.group.related.changed[0] = vec!["sum".to_owned()];
    let c = case.candidate(claim("lib/callers.rs", 1, "use a::sum;"));
    assert_eq!(
        (
            place(&Anchored::Candidate(Box::new(c.clone()))).as_str(),
            also(&c).len()
        ),
        ("src/a.rs:20 as numbered", 1)
    );
    // A line that names nothing from the change is still a remark, and so is a line that the file
    // does not contain.
    assert_eq!(
        place(&case.anchor(claim("lib/callers.rs", 8, "fn other() {"))),
        "remark -"
    );
    assert_eq!(
        place(&case.anchor(claim("lib/callers.rs", 1, "use a::sum::total;"))),
        "remark -"
    );
}

#[test]
fn a_parameter_with_the_name_of_a_changed_definition_connects_with_low_confidence() {
    let callers = CALLERS.replace("v: &[u32]", "v: &[u32], compute_20: Total");
    let case = case_with_callers(&callers).read("lib/callers.rs", 1, 6);
    let call = claim("lib/callers.rs", 4, "let n = compute_20(v);");
    assert_eq!(place(&case.anchor(call)), "src/a.rs:20 loosely");
}

#[test]
fn a_claim_about_related_code_is_tied_to_the_change_that_uses_it() {
    let mut case = case().unchanged(
        "lib/open.rs",
        "pub fn open(path: &str, mode: u32) {\n    assert!(mode > 0);\n}\n",
    );
    let lines = [
        (1, "pub fn open(path: &str, mode: u32) {"),
        (2, "    assert!(mode > 0);"),
    ];
    case.group.related.excerpts.push(Excerpt {
        why: Why::Definition,
        file: 1,
        hunks: 0..=0,
        path: "lib/open.rs".to_owned(),
        name: "open".to_owned(),
        alias: String::new(),
        first: std::collections::BTreeSet::new(),
        inside: String::new(),
        lines: lines.map(|(n, text)| (n, text.to_owned())).to_vec(),
    });
    let c = case.candidate(claim("lib/open.rs", 2, "assert!(mode > 0);"));
    assert_eq!(also(&c), ["lib/open.rs:2 assert!(mode > 0);"]);
    assert_eq!(
        place(&Anchored::Candidate(Box::new(c))),
        "src/b.rs:2 as numbered"
    );
}

#[test]
fn an_unchanged_line_of_a_changed_file_that_was_read_is_tied_to_the_nearest_changed_line() {
    let case = case();
    let whole = case.group.files[0]
        .change
        .text()
        .unwrap()
        .new
        .whole()
        .unwrap()
        .to_vec();
    let case = case
        .unchanged("src/a.rs", &String::from_utf8(whole).unwrap())
        .read("src/a.rs", 50, 60);
    let c = case.candidate(claim("src/a.rs", 51, "let value_50 = compute_50(input);"));
    assert_eq!(
        place(&Anchored::Candidate(Box::new(c))),
        "src/a.rs:31 loosely"
    );
}

#[test]
fn a_line_number_in_the_name_of_a_file_chooses_one_of_several_equal_unchanged_lines() {
    let (_, old) =
        sixty(|i| matches!(i, 45 | 55).then(|| "    close(handle, input);\n".to_owned()));
    let new = old.replace(
        "let value_20 = compute_20(input);",
        "let total = sum(input);",
    );
    let case = ClaimCase::new(&[("src/a.rs", &old, &new)])
        .unchanged("src/a.rs", &new)
        .read("src/a.rs", 40, 60);
    for (named, line) in [
        ("src/a.rs", Some(55)),
        ("src/a.rs:55", None),
        ("src/a.rs:55", Some(0)),
        ("src/a.rs#L55", None),
        ("`src/a.rs:55`", None),
    ] {
        let c = case.candidate(Claim {
            line,
            ..claim(named, 0, "close(handle, input);")
        });
        assert_eq!(also(&c), ["src/a.rs:55 close(handle, input);"], "{named}");
        assert_eq!(
            place(&Anchored::Candidate(Box::new(c))),
            "src/a.rs:20 loosely",
            "{named}"
        );
    }
    let c = case.candidate(Claim {
        also: vec![elsewhere("src/a.rs:55", 0, "close(handle, input);")],
        ..claim("src/a.rs", 20, "let total = sum(input);")
    });
    assert_eq!(also(&c), ["src/a.rs:55 close(handle, input);"]);
}
