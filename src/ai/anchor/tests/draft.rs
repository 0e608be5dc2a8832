//! Tests of the draft of a claim: columns, severity, fingerprint, replacement, citations and masked
//! secrets.

use super::*;

#[test]
fn columns_are_those_of_the_quote_in_the_file() {
    let case = case();
    for (quote, expected) in [
        ("20+    let total = sum(&values[1..]);", Some((4, 34))),
        ("sum(&values[1..])", Some((16, 33))),
        ("let total = sum( &values[1..] );", None),
        ("", None),
        ("let total = sum(&values[1..]);\nfree(buffer);", None),
    ] {
        assert_eq!(
            columns(&case, claim("src/a.rs", 20, quote)),
            expected,
            "{quote}"
        );
    }
}

fn columns(case: &ClaimCase, claim: Claim) -> Option<(u32, u32)> {
    case.candidate(claim)
        .draft
        .location
        .unwrap()
        .lines
        .unwrap()
        .columns
}

#[test]
fn a_quote_may_start_with_a_character_of_several_bytes() {
    let case = ClaimCase::new(&[("a.md", "", "é = „x“ und é\nö\n„Zitat“\n")]);
    assert_eq!(
        columns(&case, claim("a.md", 1, "é = „x“ und é")),
        Some((0, 19))
    );
    assert_eq!(columns(&case, claim("a.md", 2, "ö")), Some((0, 2)));
    assert_eq!(columns(&case, claim("a.md", 3, "„Zitat“")), Some((0, 11)));
}

#[test]
fn out_06_an_unknown_severity_is_major_and_said() {
    let case = case();
    for (said, severity, noted) in [
        ("blocker!!", Severity::Major, true),
        ("", Severity::Major, true),
        ("CRITICAL", Severity::Critical, false),
        ("nit", Severity::Suggestion, false),
    ] {
        let c = case.candidate(Claim {
            severity: said.to_owned(),
            ..claim("src/a.rs", 20, "")
        });
        assert_eq!(
            (
                c.draft.severity,
                c.notes.iter().any(|n| n.contains("taken as major"))
            ),
            (severity, noted),
            "{said}"
        );
    }
    let c = case.candidate(Claim {
        category: "wibble".to_owned(),
        ..claim("src/a.rs", 20, "")
    });
    assert_eq!(
        (c.draft.category, c.draft.rule_id.as_str()),
        (Category::Bug, "ai-bug")
    );
    assert_eq!(c.notes, ["category `wibble` is unknown; taken as bug"]);
    let c = case.candidate(Claim {
        category: "best_practices".to_owned(),
        ..claim("src/a.rs", 20, "")
    });
    assert_eq!(c.draft.rule_id, "ai-best-practice");
}

#[test]
fn the_same_problem_in_other_words_has_the_same_fingerprint() {
    let case = case();
    let first = fingerprint(
        &case,
        claim("src/a.rs", 20, "let total = sum(&values[1..]);"),
    );
    for (line, quote) in [
        (24, "+ let total = sum(&values[1..]);"),
        (20, "sum(&values[1..])"),
        (20, ""),
    ] {
        let other = Claim {
            title: "Skips one".into(),
            message: "Off by one.".into(),
            ..claim("src/a.rs", line, quote)
        };
        assert_eq!(fingerprint(&case, other), first, "{quote}");
    }
    let on_another_line = fingerprint(&case, claim("src/a.rs", 21, "free(buffer);"));
    assert_ne!(on_another_line, first);
}

/// Returns the fingerprint of the finding of a claim.
fn fingerprint(case: &ClaimCase, claim: Claim) -> crate::finding::Fingerprint {
    let merged = merge_claims(vec![case.candidate(claim)], &[], &case.rules);
    merged.findings[0].fingerprint().clone()
}

#[test]
fn a_replacement_is_kept_where_it_can_be_applied() {
    let case = case();
    let total = "    let total = sum(&values[1..]);";
    let fixed = "    let total = sum(&values[..]);";
    assert_eq!(
        replacement_of(&case, (20, None), total, fixed).as_deref(),
        Some(fixed)
    );
    assert_eq!(
        replacement_of(
            &case,
            (20, Some(20)),
            total,
            &format!("```rust\n{fixed}\n```")
        )
        .as_deref(),
        Some(fixed)
    );
    assert_eq!(
        replacement_of(&case, (24, None), total, &format!("{fixed}\n")).as_deref(),
        Some(fixed),
        "the quote knows the line"
    );
    assert_eq!(
        replacement_of(&case, (20, None), "sum(&values[1..])", fixed).as_deref(),
        Some(fixed),
        "a part of the line knows it"
    );
    let two = "    let total = sum(&values[..]);\n    drop(buffer);";
    assert_eq!(
        replacement_of(
            &case,
            (20, Some(21)),
            "let total = sum(&values[1..]);\nfree(buffer);",
            two
        )
        .as_deref(),
        Some(two)
    );
    for (line, end, quote, replacement) in [
        (20, None, total, "    let total = sum(&values[1..]);"),
        (20, None, total, "let total = sum(&values[..]);"),
        (20, None, total, "\t\tlet total = sum(&values[..]);"),
        (20, None, total, "    // ... the rest stays"),
        (20, None, total, "+    let total = sum(&values[..]);"),
        (20, None, total, "20 let total = sum(&values[..]);"),
        (
            20,
            None,
            total,
            "    let total = sum(&values[..]);\n    free(buffer);",
        ),
        (20, None, total, "    let total = {\n"),
        (20, None, total, "    let total = \"<secret:token:40>\";"),
        (20, Some(4_000), total, fixed),
        // Without a quote, or with a similar one, the lines are not certain.
        (20, None, "", fixed),
        (20, None, "let sum = total(&values[1..]);", fixed),
    ] {
        assert_eq!(
            replacement_of(&case, (line, end), quote, replacement),
            None,
            "{replacement}"
        );
    }
}

/// Returns the replacement of a claim about lines. A replacement that cannot be applied is in the
/// suggestion.
#[track_caller]
fn replacement_of(
    case: &ClaimCase,
    (line, end_line): (i64, Option<i64>),
    quote: &str,
    replacement: &str,
) -> Option<String> {
    let claim = Claim {
        end_line,
        replacement: Some(replacement.to_owned()),
        ..claim("src/a.rs", line, quote)
    };
    let c = case.candidate(claim);
    let text = c.draft.suggestion.unwrap_or_default();
    assert!(
        c.draft.replacement.is_some() || text.ends_with(replacement.trim()),
        "nothing is lost: {text}"
    );
    c.draft.replacement
}

#[test]
fn a_convention_counts_as_far_as_its_citation_exists() {
    let case = case().convention(
        "CLAUDE.md",
        "# Memory\n\nNever call `free` twice.\n\n# Style\n\nFour spaces.\n",
    );
    let label = Some("CLAUDE.md#Memory".to_owned());
    for (convention, expected) in [
        (
            "CLAUDE.md#Memory: \"Never call `free` twice.\"",
            (Severity::Major, label.clone(), 0),
        ),
        ("CLAUDE.md#Memory", (Severity::Minor, label, 1)),
        (
            "CLAUDE.md#Threads: \"Never spawn one\"",
            (Severity::Minor, None, 1),
        ),
        ("null", (Severity::Major, None, 0)),
    ] {
        let total = claim("src/a.rs", 20, "let total = sum(&values[1..]);");
        let c = case.candidate(Claim {
            convention: Some(convention.to_owned()),
            ..total
        });
        assert_eq!(
            (c.draft.severity, c.draft.convention, c.notes.len()),
            expected,
            "{convention}"
        );
    }
    let mut case = self::case();
    case.group.files[0]
        .guidelines
        .push("Every sum must cover the whole slice.".to_owned());
    let total = claim("src/a.rs", 20, "let total = sum(&values[1..]);");
    let by_policy = Some("guidelines: \"Every sum must cover the whole slice\"".to_owned());
    let c = case.candidate(Claim {
        convention: by_policy,
        ..total
    });
    assert_eq!(
        (c.draft.severity, c.draft.convention.as_deref()),
        (Severity::Major, Some("guidelines"))
    );
}

#[test]
fn violations_and_requirements_need_a_place_in_a_document() {
    let case = case().convention("docs/design.md", "# Pools\nPools have a display_name.\n");
    let violation = claim::ViolationClaim {
        issue: "Pools know exercises".to_owned(),
        description: "A pool has an exercise id.".to_owned(),
        impact: "critical".to_owned(),
        reference: Some("design.md#pools".to_owned()),
        recommendation: Some("Remove it.".to_owned()),
    };
    let reply = Reply {
        design_compliance: Some(claim::ComplianceClaim {
            follows_architecture: true,
            violations: vec![violation],
        }),
        missing_requirements: [Some("docs/design.md#Pools"), Some("design.md#Cases"), None]
            .map(|reference| claim::RequirementClaim {
                requirement: "Pools have a display_name. The change adds pools without.".to_owned(),
                reference: reference.map(str::to_owned),
                severity: "major".to_owned(),
            })
            .to_vec(),
        ..Reply::default()
    };
    let all = claims(&reply, &case.context());
    assert_eq!(
        all.iter().map(place).collect::<Vec<_>>(),
        ["change exactly", "change exactly", "remark -", "remark -"]
    );
    let Anchored::Candidate(c) = &all[0] else {
        unreachable!()
    };
    assert_eq!(
        (c.draft.rule_id.as_str(), c.draft.convention.as_deref()),
        ("ai-architecture", Some("docs/design.md#Pools"))
    );
    let Anchored::Candidate(c) = &all[1] else {
        unreachable!()
    };
    assert_eq!(
        (c.draft.rule_id.as_str(), c.draft.title.as_str()),
        ("ai-missing-requirement", "Pools have a display_name")
    );
    let (compliance, missing) = documented(&reply, &case.context());
    let compliance = compliance.unwrap();
    assert!(!compliance.follows, "it lists a violation");
    assert_eq!((compliance.violations.len(), missing.len()), (1, 1));
}

#[test]
fn sec_08_secrets_in_what_a_claim_says_are_masked() {
    let case = case();
    let key = format!("{}{}", "AKIA", "Q3EGRNDLK5V2TW7A");
    let text = format!("The key {key} is in the code");
    let claim = Claim {
        title: text.clone(),
        message: text.clone(),
        failure: Some(text.clone()),
        suggestion: Some(text.clone()),
        replacement: Some(format!("    let total = \"{key}\";")),
        notes: vec![text],
        ..claim("src/a.rs", 20, "let total = sum(&values[1..]);")
    };
    let c = case.candidate(claim.clone());
    assert!(!format!("{c:?}").contains(&key[8..]), "{c:?}");
    assert!(c.draft.title.contains("AKIA****"), "{}", c.draft.title);
    let path = format!("lib/{key}/callers.rs");
    let named = case_with(&path);
    let tied = named.candidate(claim_at_caller());
    assert!(
        !tied.draft.message.contains(&key[8..]) && tied.draft.message.contains("unchanged code"),
        "{tied:?}"
    );
    let remark = case.anchor(Claim {
        file: Some(key.clone()),
        ..claim
    });
    assert!(!format!("{remark:?}").contains(&key[8..]), "{remark:?}");
}
