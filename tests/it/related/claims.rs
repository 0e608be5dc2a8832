//! Tests of claims about related code: where their findings are placed, and the code that the judge
//! of a claim gets.

use super::{filler, padding};
use crate::loopback::{Server, finding};
use crate::support::Repo;
use serde_json::{Value, json};

#[test]
fn the_judge_of_a_claim_sees_the_function_and_its_callers() {
    let server = Server::start(|r| match r.is_refutation() {
        true => r.verdict(false),
        false => r.review(&[finding("src/a.py", 31, "x_29 = 30")]),
    });
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"));
    let text = format!("def charge(total):\n{}    return total\n", filler("x", 110));
    repo.stage("src/a.py", &text)
        .stage("web/view.py", "def show():\n    return charge(2)\n")
        .commit("one");
    repo.stage(
        "src/a.py",
        text.replace("    x_29 = 29\n", "    x_29 = 30\n"),
    );
    repo.reviewer(&["review", "staged", "--no-save", "--depth", "thorough"])
        .run_any();
    let prompts: Vec<String> = server
        .questions()
        .iter()
        .filter(|r| r.is_refutation())
        .map(|r| r.prompt())
        .collect();
    assert!(!prompts.is_empty());
    for prompt in prompts {
        assert!(
            prompt.contains("\n1 def charge(total):\n2     x_0 = 0\n"),
            "{prompt}"
        );
        assert!(
            prompt.contains("\n31+    x_29 = 30\n") && prompt.contains("use of charge in show"),
            "{prompt}"
        );
    }
}

#[test]
fn a_claim_about_the_caller_that_a_change_breaks_is_a_finding_at_the_change_with_both_places() {
    let quote = "    return charge(2)";
    let at_caller = finding("web/view.py", 3, quote);
    let mut at_change = finding("src/a.py", 1, "def charge(total, fee):");
    at_change["also"] = json!([{ "file": "web/view.py", "line": 3, "quote": quote },
        { "file": "web/view.py", "line": 2, "quote": "not there at all" }]);
    for claim in [at_caller, at_change] {
        let server =
            Server::start(move |r| r.text(&r.document(std::slice::from_ref(&claim)).to_string()));
        let repo = Repo::new();
        repo.stage(".claude-reviewer.toml", server.policy("openai"));
        repo.stage("src/a.py", "def charge(total):\n    return total\n");
        repo.stage(
            "web/view.py",
            "def show():\n    x = 1\n    return charge(2)\n",
        )
        .commit("one");
        repo.stage(
            "src/a.py",
            "def charge(total, fee):\n    return total + fee\n",
        );
        let review = |format: &str| {
            repo.reviewer(&["review", "staged", "--format", format])
                .run(1)
                .stdout
        };
        let report: Value = serde_json::from_str(&review("json")).unwrap();
        let found = &report["findings"][0];
        assert_eq!(
            (&found["file"], &found["line"]),
            (&json!("src/a.py"), &json!(1)),
            "{report}"
        );
        assert_eq!(found["confidence"], "medium");
        assert_eq!(found["blocking"], true);
        let also = json!([{ "file": "web/view.py", "line": 3, "quote": "return charge(2)" }]);
        assert_eq!(found["also"], also, "{report}");
        assert!(review("human").contains("also: web/view.py:3: return charge(2)"));
        let sarif: Value = serde_json::from_str(&review("sarif")).unwrap();
        let related = &sarif["runs"][0]["results"][0]["relatedLocations"][0]["physicalLocation"];
        assert_eq!(related["artifactLocation"]["uri"], "web/view.py");
        assert_eq!(related["region"]["startLine"], 3);
        let shown = repo
            .reviewer(&["history", "show", "latest", "--format", "json"])
            .run(0)
            .stdout;
        let stored: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(stored["findings"][0]["also"], also);
    }
}

/// Reviews a change of `src/a.py`, and returns the line and the confidence of a claim about the
/// caller of `charge` in `web/view.py`.
fn claim_about_the_caller(before: &str, after: &str, others: &[(&str, &str)]) -> (Value, Value) {
    let claim = finding("web/view.py", 4, "    return charge(2)");
    let server =
        Server::start(move |r| r.text(&r.document(std::slice::from_ref(&claim)).to_string()));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"));
    for (path, text) in others {
        repo.stage(path, format!("{text}# end\n"));
    }
    repo.stage(
        "web/view.py",
        "from a import charge\ndef show():\n    x = 1\n    return charge(2)\n",
    );
    repo.stage("src/a.py", before).commit("one");
    for (path, text) in others {
        repo.stage(path, format!("{text}    # more\n"));
    }
    repo.stage("src/a.py", after);
    let report = repo
        .reviewer(&["review", "staged", "--no-save", "--format", "json"])
        .run_any()
        .json();
    let found = &report["findings"][0];
    assert_eq!(found["also"][0]["file"], "web/view.py", "{report}");
    (found["line"].clone(), found["confidence"].clone())
}

#[test]
fn a_claim_about_a_caller_stands_at_a_changed_line_of_the_function_itself() {
    let steps = |name: &str| filler(name, 12);
    let code = |first: &str, middle: &str, last: &str| {
        let (one, two) = (steps("one"), steps("two"));
        format!(
            "def zero(a):\n    return a\n\ndef charge(a):\n{first}{one}    return x\n\ndef retry(n):\n{middle}{two}\ndef rest(n):\n{last}    return n\n"
        )
    };
    let plain = code("    x = a\n", "", "    y = n\n");
    for (name, after) in [
        ("its first line", code("    x = a * 2\n", "", "    y = n\n")),
        (
            "a later function, too",
            code("    x = a * 2\n", "", "    y = -n\n"),
        ),
        (
            "a call in another function",
            code("    x = a * 2\n", "    charge(n)\n", "    y = n\n"),
        ),
        (
            "a comment in another function",
            code("    x = a * 2\n", "    # as charge does\n", "    y = n\n"),
        ),
    ] {
        assert_eq!(
            claim_about_the_caller(&plain, &after, &[]),
            (json!(5), json!("medium")),
            "{name}"
        );
    }
    // A comment above the function has the name; the function changes below it.
    let above =
        code("    x = a * 2\n", "", "    y = n\n").replace("def zero", "# see charge\ndef zero");
    assert_eq!(
        claim_about_the_caller(&plain, &above, &[]),
        (json!(6), json!("medium"))
    );
    // Of two functions of that name, the caller imports this one.
    let other = ("src/b.py", "def charge(b):\n    y = b\n");
    let after = code("    x = a * 2\n", "", "    y = n\n");
    assert_eq!(
        claim_about_the_caller(&plain, &after, &[other]),
        (json!(5), json!("medium"))
    );
    // It is unknown which of two functions of one file is called.
    let twice = |x: &str| {
        format!(
            "class A:\n    def charge(self):\n{x}\nclass B:\n    def charge(self):\n        pass\n"
        )
    };
    assert_eq!(
        claim_about_the_caller(&twice("        x = 1\n"), &twice("        x = 2\n"), &[]).1,
        "low"
    );
}

#[test]
fn the_judge_of_a_claim_about_a_later_hunk_sees_what_that_hunk_uses_and_the_other_files() {
    let text = |value: &str| {
        let one = padding("one");
        format!("def f():\n    return {value}\n\n\n{one}def g():\n    return {value}\n")
    };
    let server = Server::start(|r| match r.is_refutation() {
        true => r.verdict(false),
        false => {
            let mut claim = finding("a.py", 206, "return helper_fn(1)");
            claim["also"] = json!([{ "file": "lib.py", "line": 2, "quote": "return a" }]);
            r.review(&[claim])
        }
    });
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"));
    repo.stage("lib.py", "def helper_fn(a):\n    return a\n");
    repo.stage("a.py", text("0"))
        .stage("c.py", "C = 1\n")
        .commit("one");
    repo.stage("a.py", text("helper_fn(1)"))
        .stage("c.py", "C = 2\n");
    repo.reviewer(&["review", "staged", "--no-save"]).run_any();
    let prompts: Vec<String> = server
        .questions()
        .iter()
        .filter(|r| r.is_refutation())
        .map(|r| r.prompt())
        .collect();
    assert!(!prompts.is_empty());
    for prompt in prompts {
        assert!(
            prompt.contains("lib.py:1-2: definition of helper_fn\n"),
            "{prompt}"
        );
        assert!(prompt.contains("\nc.py +1 -1"), "{prompt}");
        assert!(prompt.contains("\nalso: lib.py:2: return a\n"), "{prompt}");
    }
}
