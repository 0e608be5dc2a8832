//! Tests of valid and invalid receipts.

use super::line::{self, MAX_LINE, MOST, NoteLine};
use super::{parse, ssh, weigh};
use crate::policy::Mode;
use crate::wire::Verdict;
use crate::wire::receipt::{RECEIPT_VERSION, Receipt, Reviewer, Signed, Terms};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::collections::BTreeMap;

fn terms() -> Terms {
    let policy = [
        ("block_on", "1"),
        ("[review] depth", "2"),
        ("[[guideline]] 2", "3"),
    ];
    Terms {
        base_tree: "a".to_owned(),
        head_tree: "b".to_owned(),
        change: "c".to_owned(),
        policy: policy.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        rules: "e".to_owned(),
    }
}

fn receipt() -> Receipt {
    let summary = json!({
        "text": "", "critical": 0, "major": 0, "minor": 1, "suggestion": 0, "suppressed": 0, "dropped": 0
    });
    Receipt {
        schema_version: RECEIPT_VERSION,
        tool: "claude-reviewer 0".to_owned(),
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
        terms: terms(),
        verdict: Verdict::Warn,
        summary: serde_json::from_value(summary).unwrap(),
        backends: vec![Reviewer {
            name: "local".to_owned(),
            model: "m".to_owned(),
        }],
    }
}

#[test]
fn a_receipt_counts_only_for_its_own_terms_verdict_and_backends() {
    let wanted = ["local".to_owned()];
    assert_eq!(weigh(&receipt(), &terms(), &wanted, Mode::All), Ok(()));
    let changes: [fn(&mut Terms); 5] = [
        |t| t.base_tree.push('x'),
        |t| t.head_tree.push('x'),
        |t| t.change.push('x'),
        |t| drop(t.policy.insert("block_on".to_owned(), "x".to_owned())),
        |t| t.rules.push('x'),
    ];
    let mut reasons: Vec<String> = changes
        .iter()
        .map(|change| {
            let mut other = terms();
            change(&mut other);
            weigh(&receipt(), &other, &wanted, Mode::All).unwrap_err()
        })
        .collect();
    reasons.sort();
    reasons.dedup();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    for verdict in [Verdict::Block, Verdict::Incomplete] {
        assert!(
            weigh(
                &Receipt {
                    verdict,
                    ..receipt()
                },
                &terms(),
                &wanted,
                Mode::All
            )
            .is_err()
        );
    }
    let two = ["local".to_owned(), "claude".to_owned()];
    assert!(
        weigh(&receipt(), &terms(), &two, Mode::All)
            .unwrap_err()
            .contains("claude")
    );
    assert_eq!(weigh(&receipt(), &terms(), &two, Mode::First), Ok(()));
    assert!(weigh(&receipt(), &terms(), &["claude".to_owned()], Mode::First).is_err());
}

/// Returns the text of a line with a receipt.
fn text_of(receipt: &serde_json::Value) -> Vec<u8> {
    serde_json::to_vec(&Signed {
        receipt: receipt.to_string(),
        signature: "s".to_owned(),
    })
    .unwrap()
}

#[test]
fn a_line_that_is_no_receipt_is_named_and_one_of_a_newer_version_by_it() {
    let good = serde_json::to_value(receipt()).unwrap();
    assert_eq!(parse(&text_of(&good)).unwrap().0, receipt());
    let mut newer = good.clone();
    newer["schema_version"] = json!(RECEIPT_VERSION + 1);
    newer["terms"] = json!("of another shape");
    assert!(
        parse(&text_of(&newer))
            .unwrap_err()
            .contains(&format!("version {}", RECEIPT_VERSION + 1))
    );
    for damaged in [
        &b"{"[..],
        b"null",
        b"\xff\xfe",
        b"{\"receipt\": \"{\", \"signature\": \"\"}",
    ] {
        assert!(
            parse(damaged).unwrap_err().contains("not a receipt"),
            "{damaged:?}"
        );
    }
    let mut large = good;
    large["tool"] = json!("x".repeat(MAX_LINE));
    assert!(parse(&text_of(&large)).unwrap_err().contains("KiB"));
}

/// Returns why a receipt with a changed policy does not count.
fn refusal(change: fn(&mut BTreeMap<String, String>)) -> String {
    let mut theirs = receipt();
    change(&mut theirs.terms.policy);
    weigh(&theirs, &terms(), &[], Mode::All).unwrap_err()
}

#[test]
fn a_policy_that_decides_otherwise_is_told_by_what_differs() {
    let why = refusal(|p| {
        p.remove("[review] depth");
        p.insert("[[guideline]] 2".to_owned(), "x".to_owned());
    });
    assert_eq!(why, "the policy differs in [[guideline]] 2, [review] depth");
    let why = refusal(|p| {
        p.extend((0..9).map(|n| (format!("{n}\u{1b}[2J{}", "x".repeat(500)), String::new())));
    });
    assert!(
        why.ends_with(" and 4 more") && !why.contains('\u{1b}') && why.len() < 600,
        "{why}"
    );
}

/// Returns a line for a receipt with this timestamp, whose signature names a key but is invalid.
fn line_of(at: Timestamp, key: &str) -> NoteLine {
    let receipt = serde_json::to_string(&Receipt {
        timestamp: at.to_string(),
        ..receipt()
    })
    .unwrap();
    let signed = Signed {
        receipt,
        signature: signature(key.as_bytes()),
    };
    let text = serde_json::to_vec(&signed).unwrap();
    NoteLine {
        read: parse(&text),
        text,
    }
}

fn signature(key: &[u8]) -> String {
    use base64::Engine as _;
    let length = u32::try_from(key.len()).unwrap().to_be_bytes();
    let blob = [&b"SSHSIG\0\0\0\x01"[..], &length, key, b"and the rest"].concat();
    let text = base64::engine::general_purpose::STANDARD.encode(blob);
    let (first, second) = text.split_at(9);
    format!("-----BEGIN SSH SIGNATURE-----\n{first}\n{second}\n-----END SSH SIGNATURE-----\n")
}

fn now() -> Timestamp {
    "2026-01-02T00:00:00Z".parse().unwrap()
}

/// Returns a line that was signed some hours before now.
fn line_before(hours: i64, key: &str) -> NoteLine {
    line_of(now() - SignedDuration::from_hours(hours), key)
}

#[test]
fn the_newest_receipt_is_the_one_that_says_so_wherever_it_lies_in_the_note() {
    let [old, new, ahead, never] = [9, 1, -1, -48].map(|hours| line_before(hours, "k").text);
    let mut texts = [
        b"no receipt".to_vec(),
        never.clone(),
        old.clone(),
        new.clone(),
        ahead.clone(),
    ];
    for _ in 0..texts.len() {
        texts.rotate_left(1);
        let note = texts.join(&b'\n');
        // Also if two notes have the same lines, as ours and the remote's can.
        let read = line::read([&note[..], &note], now());
        let order: Vec<&[u8]> = read.iter().map(|l| &l.text[..]).collect();
        assert_eq!(order, [&ahead[..], &new, &old, &never, b"no receipt"]);
    }
}

fn read(note: &[u8]) -> Vec<NoteLine> {
    line::read([note], now())
}

#[test]
fn a_receipt_takes_the_place_of_the_same_keys_alone_and_the_newest_are_kept() {
    let note = line::add(line_before(2, "alice"), Vec::new());
    let note = line::add(line_before(1, "bob"), read(&note));
    assert_eq!(read(&note).len(), 2);
    let note = line::add(line_before(0, "alice"), read(&note));
    let texts: Vec<Vec<u8>> = read(&note).into_iter().map(|l| l.text).collect();
    assert_eq!(
        texts,
        [line_before(0, "alice").text, line_before(1, "bob").text]
    );

    let many: Vec<NoteLine> = (0..50)
        .rev()
        .map(|n| line_before(50 + n, &format!("key {n}")))
        .collect();
    let note = many.into_iter().fold(b"no receipt".to_vec(), |note, line| {
        line::add(line, read(&note))
    });
    let kept = read(&note);
    assert_eq!(kept.len(), MOST);
    assert_eq!(kept[0].text, line_before(50, "key 0").text);
    assert!(kept.iter().all(|l| l.read.is_ok()));
    // Each receipt has its own line: a merge of notes sorts lines and does not change them.
    let mut sorted: Vec<&[u8]> = note.split(|b| *b == b'\n').collect();
    let as_written = sorted.clone();
    sorted.sort();
    assert_eq!(sorted, as_written);
}

fn signed(signature: &str) -> Signed {
    Signed {
        receipt: String::new(),
        signature: signature.to_owned(),
    }
}

#[test]
fn the_key_of_a_signature_is_read_and_what_is_none_has_none() {
    use base64::Engine as _;
    let good = signature(b"the key");
    let key = base64::engine::general_purpose::STANDARD.encode("the key");
    assert_eq!(ssh::signer(&signed(&good)), Some(key));
    for bad in [
        "",
        "x",
        &good.replace("BEGIN", "END"),
        &good.replace('U', "V"),
        &good[..40],
    ] {
        assert_eq!(ssh::signer(&signed(bad)), None, "{bad}");
    }
    let short = good
        .lines()
        .take(2)
        .chain(["-----END SSH SIGNATURE-----"])
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(ssh::signer(&signed(&short)), None);
}
