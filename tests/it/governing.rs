//! Tests of whose policy rules in gate mode, and of what a change to it is told.

use crate::support::Repo;
use serde_json::Value;

const FILE: &str = ".claude-reviewer.toml";

fn weakenings(report: &Value) -> Vec<String> {
    let all = report["findings"].as_array().unwrap().iter().filter(|f| f["rule_id"] == "policy-weakened");
    all.map(|f| f["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_pattern_that_is_not_proven_to_be_narrower_is_a_finding() {
    let many = vec!["vendor"; 17].join(",");
    for (base, head, said) in [
        ("ignore = ['*.md']", "ignore = ['*.[mp][dy]']".to_owned(), "ignore now leaves out *.[mp][dy]"),
        ("ignore = ['*.md']", "ignore = ['*.[m-z][dy]']".to_owned(), "ignore now leaves out *.[m-z][dy]"),
        ("ignore = ['vendor/**']", format!("ignore = ['{{{many},src}}/**']"), ",src}/**"),
        ("ignore = ['vendor/**']", "ignore = ['{vendor,{vendor,src}}/**']".to_owned(), "{vendor,{vendor,src}}/**"),
        (
            "[[path]]\nglob = '*.md'\nblock_on = []",
            "[[path]]\nglob = '*.[mp][dy]'\nblock_on = []".to_owned(),
            "block_on no longer holds critical in *.[mp][dy]",
        ),
        ("ignore = ['vendor/**']", "ignore = ['vendor/lib/**']".to_owned(), ""),
        ("ignore = ['vendor/**', 'x']", "ignore = ['vendor/**']".to_owned(), ""),
    ] {
        let repo = Repo::new();
        repo.stage(FILE, base);
        let from = repo.commit("base");
        repo.stage(FILE, &head).commit("next");
        let report = repo.review_json(&["branch", "--base", &from, "--gate", "--no-save"], i32::from(!said.is_empty()));
        let found = weakenings(&report);
        assert_eq!(found.len(), usize::from(!said.is_empty()), "{head}: {found:?}");
        assert!(found.iter().all(|f| f.contains(said)), "{head}: {found:?}");
    }
}
