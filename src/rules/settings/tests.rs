//! Tests of the settings of Terraform resources.

use super::*;
use crate::diff::{Attribute, Body, ChangeKind, Entry, FileMode, Side};
use crate::finding::Finding;
use crate::policy::RulesPolicy;
use crate::rules::RuleSet;
use std::sync::LazyLock;

static RULES: LazyLock<RuleSet> =
    LazyLock::new(|| RuleSet::new(&RulesPolicy::default(), &[]).unwrap());

/// Returns a change of a Terraform file, which `None` adds.
fn changed(old: Option<&str>, new: &str) -> FileChange {
    let side = Side {
        path: RepoPath::from("main.tf"),
        mode: FileMode::Regular,
        id: None,
    };
    FileChange {
        entry: Entry {
            kind: old.map_or(ChangeKind::Added, |_| ChangeKind::Modified),
            old: old.map(|_| side.clone()),
            new: Some(side),
        },
        body: Body::between(
            old.map(|text| text.as_bytes().to_vec()),
            Some(new.as_bytes().to_vec()),
            Attribute::Unset,
        ),
    }
}

/// Returns the findings of a change of a Terraform file.
fn found(old: Option<&str>, new: &str) -> Vec<Finding> {
    let file = changed(old, new);
    let mut out = Vec::new();
    scan(&file, &mut Reporter::new(&RULES, Some(&file), &mut out));
    out
}

/// Returns the rules that a change breaks, with their lines.
fn broken_by(old: Option<&str>, new: &str) -> Vec<(&'static str, u32)> {
    found(old, new).iter().filter_map(rule_and_line).collect()
}

/// Returns the rule of a finding, and its line.
fn rule_and_line(finding: &Finding) -> Option<(&'static str, u32)> {
    let known = EXPECTED.iter().find(|e| e.rule == finding.rule_id())?;
    Some((known.rule, finding.lines()?.first.get()))
}

/// Returns the rules that a new file breaks, with their lines.
fn broken(text: &str) -> Vec<(&'static str, u32)> {
    broken_by(None, text)
}

/// Returns a security group whose networks are on line 4 and below.
fn group(networks: &str) -> String {
    format!(
        "resource \"aws_security_group\" \"a\" {{\n  ingress {{\n    from_port   = 80\n    \
         cidr_blocks = {networks}\n  }}\n}}\n"
    )
}

/// Returns a volume with settings on line 2 and below.
fn volume(body: &str) -> String {
    format!("resource \"aws_ebs_volume\" \"a\" {{\n{body}\n}}\n")
}

#[test]
fn types_are_in_the_order_that_the_search_needs() {
    assert!(BY_TYPE.is_sorted_by(|a, b| a.0 < b.0));
}

#[test]
fn a_condition_on_a_neighbour_is_about_the_same_block() {
    let rule = |port: u32, open: u32| {
        let ingress = |p: u32, range: &str| {
            format!("  ingress {{\n    from_port = {p}\n    cidr_blocks = [\"{range}\"]\n  }}\n")
        };
        let text = format!(
            "resource \"aws_security_group\" \"a\" {{\n{}{}}}\n",
            ingress(port, "10.0.0.0/8"),
            ingress(open, "0.0.0.0/0"),
        );
        broken(&text)
    };
    assert_eq!(rule(443, 80), [("terraform-exposed", 8)]);
    assert_eq!(rule(80, 443), []);
}

#[test]
fn what_an_expression_decides_is_silent() {
    assert_eq!(
        broken(&volume("size = 1")),
        [("terraform-encryption-missing", 1)]
    );
    assert_eq!(broken(&volume("# encrypted = true")).len(), 1);
    for body in [
        "encrypted = var.e",
        "encrypted = var.e ? true : null",
        "snapshot_id = \"s\"",
    ] {
        assert_eq!(broken(&volume(body)), [], "{body}");
    }
    assert_eq!(
        broken("resource \"aws_ebs_volume\" \"a\" {\n  size = 1\n"),
        []
    );
    assert_eq!(broken("module \"aws_ebs_volume\" {\n  size = 1\n}\n"), []);
}

#[test]
fn a_block_comment_hides_no_value() {
    for networks in [
        "[\"0.0.0.0/0\"] /* office */",
        "[/* office */ \"0.0.0.0/0\"]",
        "[\"0.0.0.0/0\" /* a, b] */]",
        "[\"10.0.0.0/8\", /* \" */ \"0.0.0.0/0\"]",
        "/* a */ [\"0.0.0.0/0\"] /* b */ // c",
    ] {
        assert_eq!(
            broken(&group(networks)),
            [("terraform-exposed", 4)],
            "{networks}"
        );
    }
    assert_eq!(
        broken(&group("[/* a\n b */ \"0.0.0.0/0\"]")),
        [("terraform-exposed", 5)]
    );
    for networks in [
        "[\"10.0.0.0/8\" /* \"0.0.0.0/0\" */]",
        "[\"10.0.0.0/8\", /*\n\"0.0.0.0/0\",\n*/]",
        "[\"10.0.0.0/8\"] /* [\"0.0.0.0/0\"] */",
    ] {
        assert_eq!(broken(&group(networks)), [], "{networks}");
    }
}

#[test]
fn an_escaped_template_does_not_open_one() {
    let second = "resource \"aws_ebs_volume\" \"b\" {\n}\n";
    for string in ["$${", "%%{", "$$${", "$${ %%{ }", "${\"$${\"}", "a $$ ${v}"] {
        let text = volume(&format!("  tags = {{ n = \"{string}\" }}")) + second;
        let expected = [1, 4].map(|line| ("terraform-encryption-missing", line));
        assert_eq!(broken(&text), expected, "{string}");
    }
}

#[test]
fn an_escaped_quote_does_not_end_a_string_of_a_list() {
    assert_eq!(
        broken(&group("[\"a\\\"\", \"0.0.0.0/0\"]")),
        [("terraform-exposed", 4)]
    );
    assert_eq!(
        broken(&group("[\"\\\\\", \"0.0.0.0/0\"]")),
        [("terraform-exposed", 4)]
    );
    assert_eq!(broken(&group("[\"a\\\", \\\"0.0.0.0/0\\\"\"]")), []);
}

#[test]
fn all_strings_of_a_long_list_are_read() {
    let list = format!("[{}\"0.0.0.0/0\"]", "\"10.0.0.0/8\", ".repeat(1000));
    assert_eq!(broken(&group(&list)), [("terraform-exposed", 4)]);
}

#[test]
fn a_wrong_value_in_a_list_is_reported_on_its_own_line() {
    let old = group("[\n      \"10.0.0.0/8\", # a\n    ]");
    let new = group("[\n      \"10.0.0.0/8\", # a\n      \"0.0.0.0/0\", # b\n    ]");
    assert_eq!(broken(&new), [("terraform-exposed", 6)]);
    assert_eq!(broken_by(Some(&old), &new), [("terraform-exposed", 6)]);
    let longer = new.replace("# b\n", "# b\n      \"10.1.0.0/16\",\n");
    assert_eq!(broken_by(Some(&new), &longer), []);
    let twice = group("[\n\"0.0.0.0/0\", \"0.0.0.0/0\",\n(\"0.0.0.0/0\")]");
    assert_eq!(
        broken(&twice),
        [5, 6].map(|line| ("terraform-exposed", line))
    );
}

#[test]
fn the_parts_of_an_expression_are_no_values() {
    for networks in [
        "[var.a ?\n\"10.0.0.0/8\" :\n\"0.0.0.0/0\"]",
        "[\"10.0.0.0/8\", \"0.0.0.0/0\"][0]",
        "[f(\"0.0.0.0/0\")\n, g(\n\"0.0.0.0/0\")]",
        "[[\"0.0.0.0/0\"], { a = \"0.0.0.0/0\" }]",
    ] {
        assert_eq!(broken(&group(networks)), [], "{networks}");
    }
}

#[test]
fn a_setting_that_is_null_is_missing() {
    let rule = "terraform-encryption-missing";
    let (with, without) = (volume("  encrypted = null"), volume("  size = 1"));
    assert_eq!(broken(&with), [(rule, 1)]);
    assert_eq!(broken_by(Some(&without), &with), [(rule, 2)]);
    assert_eq!(broken_by(Some(&with), &without), []);
    let other = volume("  encrypted = null\n  size = 1");
    assert_eq!(broken_by(Some(&with), &other), []);
}

#[test]
fn the_case_of_a_value_does_not_count() {
    let instance = |account: &str| {
        let text = format!(
            "resource \"google_compute_instance\" \"a\" {{\n  service_account {{\n    \
             email = \"{account}\"\n  }}\n}}\n"
        );
        broken(&text).contains(&("terraform-privilege-wide", 3))
    };
    assert!(instance("1-compute@developer.gserviceaccount.com"));
    assert!(instance("1-Compute@Developer.GServiceAccount.com"));
    assert!(!instance("\u{e9}ompute@developer.gserviceaccount.com"));
    let key = |spec: &str| {
        broken(&format!(
            "resource \"aws_kms_key\" \"a\" {{\n  customer_master_key_spec = \"{spec}\"\n}}\n"
        ))
        .contains(&("terraform-key-never-changes", 1))
    };
    assert!(!key("RSA_2048") && !key("rsa_2048"));
    assert!(key("SYMMETRIC_DEFAULT") && key("R\u{e9}"));
}

#[test]
fn the_work_is_linear_in_the_number_of_blocks() {
    let steps = |blocks: usize| {
        let text = format!(
            "resource \"google_sql_database_instance\" \"a\" {{\n{}}}\n",
            "settings{backup_configuration{}}\n".repeat(blocks)
        );
        PARTS.set(0);
        found(None, &text);
        PARTS.get()
    };
    let (few, many) = (steps(100), steps(200));
    assert!(few >= 100 && many <= 2 * few, "{few} {many}");
}
