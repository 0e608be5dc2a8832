//! The generated reference pages (`docs/cli.md`, `docs/rules.md`), the schema of the policy, and the
//! structure of the help from which the pages are made.

use crate::support::Repo;
use std::path::Path;

/// Compares a document with the generated one, or rewrites it with `UPDATE=1`.
#[track_caller]
fn document(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is out of date: UPDATE=1 cargo test --test it docs_",
        path.display()
    );
}

/// Returns the subcommands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let lines = help
        .lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| !l.is_empty());
    let names = lines.filter_map(|l| l.strip_prefix("  ")?.split(' ').next());
    names
        .filter(|n| !n.is_empty() && *n != "help")
        .map(str::to_owned)
        .collect()
}

/// A part of a help text: its heading, or the usage before all headings, and its lines.
#[derive(Clone, Debug)]
struct Part {
    heading: String,
    lines: Vec<String>,
}

impl Part {
    /// Returns the names of the options, or the lines of a part without options.
    fn entries(&self) -> Vec<&str> {
        let options: Vec<_> = self
            .lines
            .iter()
            .map(|l| l.trim())
            .filter(|l| l.starts_with('-'))
            .collect();
        let names: Vec<_> = options
            .iter()
            .map(|l| l.split("  ").next().unwrap_or(l))
            .collect();
        if names.is_empty() {
            self.lines.iter().map(String::as_str).collect()
        } else {
            names
        }
    }
}

fn parts(help: &str) -> Vec<Part> {
    let mut parts = vec![Part {
        heading: String::new(),
        lines: Vec::new(),
    }];
    for line in help.lines().map(str::trim_end) {
        if line.ends_with(':') && !line.starts_with(' ') {
            parts.push(Part {
                heading: line.to_owned(),
                lines: Vec::new(),
            });
        } else {
            parts.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    parts
}

/// Removes the parts of a help text that the page of a parent command already has.
fn without_repeats(help: &[Part], shown: &[Part]) -> String {
    let is_new = |part: &&Part| {
        let earlier = shown
            .iter()
            .filter(|s| !part.heading.is_empty() && s.heading == part.heading);
        let known: Vec<&str> = earlier.flat_map(Part::entries).collect();
        !part.entries().iter().all(|e| known.contains(e))
    };
    let kept = help.iter().filter(is_new).map(|p| {
        [vec![p.heading.clone()], p.lines.clone()]
            .concat()
            .join("\n")
    });
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
fn docs_the_command_line() {
    let repo = Repo::new();
    let mut text = "# Command line\n\nThis page lists every command with its options, as `claude-reviewer COMMAND \
                    --help` prints them. The global options work with every command, and the options of `review` with \
                    every source of a review: the page lists them once.\n\nThe page is generated: \
                    `UPDATE=1 cargo test --test it docs_`.\n"
        .to_owned();
    let mut rest = vec![(Vec::<String>::new(), Vec::<Part>::new())];
    while let Some((command, shown)) = rest.pop() {
        let words: Vec<_> = command
            .iter()
            .map(String::as_str)
            .chain(["--help"])
            .collect();
        let help = repo.reviewer(&words).run(0).stdout;
        let title = std::iter::once("claude-reviewer").chain(command.iter().map(String::as_str));
        let title = title.collect::<Vec<_>>().join(" ");
        let own = parts(&help);
        text.push_str(&format!(
            "\n## {title}\n\n```text\n{}\n```\n",
            without_repeats(&own, &shown)
        ));
        let shown = [shown, own].concat();
        let children = listed(&help).into_iter().rev();
        rest.extend(children.map(|n| ([command.clone(), vec![n]].concat(), shown.clone())));
    }
    document("docs/cli.md", &text);
}

#[test]
fn help_groups_the_options_of_a_review_and_the_short_help_has_ten() {
    let repo = Repo::new();
    let headings = [
        "Source:",
        "AI:",
        "Policy:",
        "Output:",
        "History:",
        "Global options:",
    ];
    for (flag, has_pulls) in [("-h", false), ("--help", true)] {
        let help = parts(&repo.reviewer(&["review", flag]).run(0).stdout);
        let found: Vec<_> = help.iter().map(|p| p.heading.as_str()).collect();
        for heading in headings {
            assert!(found.contains(&heading), "{flag}: {found:?}");
        }
        assert_eq!(found.contains(&"Pull requests:"), has_pulls, "{found:?}");
        let own = help.iter().find(|p| p.heading == "Options:").unwrap();
        assert_eq!(
            own.entries(),
            ["-h, --help"],
            "{flag}: every option has a heading"
        );
    }
    let short = repo.reviewer(&["review", "-h"]).run(0).stdout;
    let of_review = parts(&short)
        .into_iter()
        .filter(|p| headings[..5].contains(&p.heading.as_str()));
    assert_eq!(
        of_review.map(|p| p.entries().len()).sum::<usize>(),
        10,
        "{short}"
    );
    assert!(short.contains("`--help` lists all options"), "{short}");
}

#[test]
fn docs_the_schema_of_the_policy() {
    document(
        "schemas/policy.schema.json",
        &Repo::new().reviewer(&["policy", "schema"]).run(0).stdout,
    );
}

/// Escapes Markdown markup, except between backticks.
fn markdown(text: &str) -> String {
    let escape = |part: &str| {
        let part = part.replace('&', "&amp;").replace('<', "&lt;");
        ["*", "[", "]", "|"]
            .iter()
            .fold(part, |p, c| p.replace(c, &format!("\\{c}")))
    };
    let parts = text.trim().split('`').enumerate();
    // A bar ends a table cell, also between backticks.
    let parts = parts.map(|(i, part)| {
        if i % 2 == 0 {
            escape(part)
        } else {
            part.replace('|', "\\|")
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Describes a rule under a heading with its ID, so that the heading's anchor is the ID.
fn rule_section(rule: &serde_json::Value) -> String {
    let text = |key: &str| rule[key].as_str().map(markdown).filter(|t| !t.is_empty());
    let list = |key: &str| {
        rule[key]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|v| v.as_str())
            .collect::<Vec<_>>()
    };
    let mut facts = vec![
        text("severity").unwrap(),
        format!("confidence {}", text("confidence").unwrap()),
    ];
    facts.push(text("category").unwrap());
    if let Some(cwe) = rule["cwe"].as_u64() {
        facts.push(format!(
            "[CWE-{cwe}](https://cwe.mitre.org/data/definitions/{cwe}.html)"
        ));
    }
    if !list("languages").is_empty() {
        facts.push(list("languages").join(", "));
    }
    let mut paragraphs = vec![format!("### {}", rule["id"].as_str().unwrap())];
    paragraphs.push(format!(
        "{}. *{}*",
        text("title").unwrap(),
        facts.join("; ")
    ));
    if rule["profile"] == "audit" {
        paragraphs.push("The rule runs only with `[rules] profile = \"audit\"`.".to_owned());
    }
    if let Some(severity) = text("audit_severity") {
        paragraphs.push(format!(
            "With `[rules] profile = \"audit\"`, the severity is {severity}."
        ));
    }
    if rule["judges_origin"] == true {
        paragraphs
            .push("A value of unknown origin gives a suggestion with low confidence.".to_owned());
    }
    paragraphs.extend(text("message").map(|m| format!("{}.", m.trim_end_matches('.'))));
    paragraphs.extend(text("why"));
    paragraphs.extend(text("suggestion").map(|s| format!("Fix: {s}")));
    let is_linked = |r: &&&str| r.starts_with("https://cwe.mitre.org/");
    let links: Vec<_> = list("references")
        .iter()
        .filter(|r| !is_linked(r))
        .map(|r| format!("<{r}>"))
        .collect();
    if !links.is_empty() {
        paragraphs.push(format!("See {}.", links.join(", ")));
    }
    paragraphs.join("\n\n")
}

#[test]
fn docs_the_rules() {
    let repo = Repo::new();
    let list = repo
        .reviewer(&["rules", "list", "--format", "json"])
        .run(0)
        .stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let rules = list["rules"].as_array().unwrap();
    let mut sections: Vec<(String, Vec<&serde_json::Value>)> = Vec::new();
    for rule in rules {
        let languages: Vec<_> = rule["languages"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|l| l.as_str())
            .collect();
        let title = match languages.len() {
            _ if rule["secret"] == true => "Exposed secrets".to_owned(),
            0 => "Any file, and the change itself".to_owned(),
            1..=4 => languages.join(", "),
            _ => "Several languages".to_owned(),
        };
        match sections.iter_mut().find(|(t, _)| *t == title) {
            Some((_, found)) => found.push(rule),
            None => sections.push((title, vec![rule])),
        }
    }
    sections.sort_by(|a, b| a.0.cmp(&b.0));
    let mut text = format!(
        "# Rules\n\nThere are {} built-in rules. This page lists them by language. `claude-reviewer rules explain ID` \
         shows examples of bad and good code, and the exact scope of a rule.\n\nTo suppress a finding, write \
         `claude-reviewer: ignore[ID] reason` in a comment on the line or above it. A comment does not suppress an \
         exposed secret. To turn a rule off, add its ID to `[rules] disable` in the policy. See \
         [Suppressions and waivers](configuration.md#suppressions-and-waivers).\n\nRules whose ID ends with `-flow` \
         follow a value from its source to the dangerous call; their findings show the path. What they do not see is in \
         [Limitations](limitations.md#data-flow).\n\nThe rules are measured on labelled cases: \
         `claude-reviewer rules eval fixtures/rules` prints which expected lines are found and which safe lines are \
         flagged. [Development](development/README.md#measure-the-rules) describes the cases.\n\nThe page is generated: \
         `UPDATE=1 cargo test --test it docs_`.\n",
        rules.len()
    );
    let id = |r: &serde_json::Value| r["id"].as_str().unwrap().to_owned();
    for (title, mut found) in sections {
        found.sort_by_key(|r| id(r));
        text.push_str(&format!(
            "\n## {title}\n\n| rule | title | severity | CWE |\n|---|---|---|---|\n"
        ));
        for rule in &found {
            let title = markdown(rule["title"].as_str().unwrap());
            let cwe = rule["cwe"]
                .as_u64()
                .map(|n| n.to_string())
                .unwrap_or_default();
            let severity = rule["severity"].as_str().unwrap();
            let unknown = if rule["judges_origin"] == true && severity != "suggestion" {
                ", or suggestion"
            } else {
                ""
            };
            let audit = if rule["profile"] == "audit" {
                ", only with profile `audit`"
            } else {
                ""
            };
            let unknown = format!("{unknown}{audit}");
            text.push_str(&format!(
                "| [`{0}`](#{0}) | {title} | {severity}{unknown} | {cwe} |\n",
                id(rule)
            ));
        }
        for rule in found {
            text.push_str(&format!("\n{}\n", rule_section(rule)));
        }
    }
    document("docs/rules.md", &text);
}
