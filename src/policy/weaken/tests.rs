//! Tests of what is weaker and what is not.

use super::*;

fn texts(base: &str, head: &str) -> Vec<String> {
    let found = weakened(Some(base.as_bytes()), Some(head.as_bytes()), own_severity);
    found.into_iter().map(|w| w.text).collect()
}

fn own_severity(id: &str) -> Option<Severity> {
    (id == "todo-comment").then_some(Severity::Minor)
}

fn texts_told(base: &str, head: &str) -> Vec<String> {
    new_instructions(Some(base.as_bytes()), Some(head.as_bytes()))
        .into_iter()
        .map(|w| w.text)
        .collect()
}

/// Returns a pattern that takes long to compare.
fn slow_pattern(n: usize) -> String {
    format!(
        "'{}{n}/**'",
        "{a,b,c,d,e,f,g,h}*/".repeat(2) + &"*x?/".repeat(20)
    )
}

/// Returns a policy that ignores many slow patterns.
fn slow_ignores(from: usize) -> String {
    format!(
        "ignore = [{}]",
        (from..from + 150)
            .map(slow_pattern)
            .collect::<Vec<_>>()
            .join(", ")
    )
}

/// Returns a policy with many `[[path]]` of slow patterns.
fn slow_paths(from: usize) -> String {
    (from..from + 150)
        .map(|n| format!("[[path]]\nglob = {}\nblock_on = []\n", slow_pattern(n)))
        .collect()
}

#[test]
fn each_way_to_be_weaker_is_named() {
    let cases = [
        (
            "",
            "block_on = ['critical']",
            "block_on no longer includes major",
        ),
        ("", "warn_on = []", "warn_on no longer includes minor"),
        (
            "block_on = ['minor']",
            "block_on = ['critical']",
            "block_on no longer includes major, minor",
        ),
        (
            "block_on = ['major']",
            "block_on = []",
            "block_on no longer includes critical, major",
        ),
        (
            "warn_on = ['suggestion']",
            "warn_on = ['major']",
            "warn_on no longer includes minor, suggestion",
        ),
        (
            "[[path]]\nglob = 'x/**'\nblock_on = ['minor']",
            "[[path]]\nglob = 'x/**'\nblock_on = ['critical']",
            "block_on no longer includes major in x/**",
        ),
        (
            "",
            "min_confidence = 'high'",
            "min_confidence changes from medium to high",
        ),
        (
            "",
            "on_incomplete = 'warn'",
            "on_incomplete changes from fail to warn",
        ),
        (
            "",
            "on_truncated = 'warn'",
            "on_truncated changes from fail to warn",
        ),
        ("", "ignore = ['src/**']", "ignore now matches src/**"),
        (
            "ignore = ['[a-z]*']",
            "ignore = ['*']",
            "ignore now matches *",
        ),
        (
            "ignore = ['vendor/*.c']",
            "ignore = ['vendor/**']",
            "ignore now matches vendor/**",
        ),
        (
            "ignore = ['*.md']",
            "ignore = ['*.[mp][dy]']",
            "ignore now matches *.[mp][dy]",
        ),
        (
            "ignore = ['*.md']",
            "ignore = ['*.[m-z][dy]']",
            "ignore now matches *.[m-z][dy]",
        ),
        (
            "ignore = ['[!a]*']",
            "ignore = ['*']",
            "ignore now matches *",
        ),
        (
            "ignore = ['vendor/**']",
            "ignore = ['{vendor,{vendor,src}}/**']",
            "ignore now matches {vendor,{vendor,src}}/**",
        ),
        (
            "[[path]]\nglob = '*.md'\nblock_on = []",
            "[[path]]\nglob = '*.[mp][dy]'\nblock_on = []",
            "block_on no longer includes critical in *.[mp][dy]",
        ),
        (
            "[[path]]\nglob = 'src/**'\nblock_on = ['minor']",
            "[[path]]\nglob = 'src/**'\nblock_on = ['minor']\n[[path]]\nglob = '*.py'\nblock_on = ['major']",
            "block_on no longer includes minor in paths that match both src/** and *.py",
        ),
        (
            "[[path]]\nglob = ['a/**', '[b-d]/**']\nblock_on = ['minor']",
            "[[path]]\nglob = 'a/**'\nblock_on = ['minor']",
            "block_on no longer includes minor in [b-d]/**",
        ),
        (
            "",
            "[rules]\ndisable = ['eval-call']",
            "rules.disable now includes eval-call",
        ),
        (
            "",
            "[rules]\nseverity = { todo-comment = 'suggestion' }",
            "rules.severity lowers todo-comment from minor to suggestion",
        ),
        (
            "",
            "[rules]\nseverity = { other = 'major' }",
            "rules.severity lowers other from critical to major",
        ),
        (
            "[rules]\nseverity = { todo-comment = 'major' }",
            "",
            "rules.severity lowers todo-comment from major to minor",
        ),
        (
            "",
            "[rules]\npaths = []",
            "rules.paths no longer includes .claude-reviewer/rules",
        ),
        (
            "[rules]\nprofile = 'audit'",
            "",
            "rules.profile changes from audit to default",
        ),
        (
            "[review]\nbackends = ['claude']",
            "",
            "review.backends no longer includes claude",
        ),
        (
            "",
            "[review]\nmode = 'first'",
            "review.mode changes from all to first",
        ),
        (
            "[review]\ndepth = 'thorough'",
            "",
            "review.depth changes from thorough to quick",
        ),
        (
            "",
            "[review]\nfocus = ['style']",
            "review.focus is now limited to style",
        ),
        (
            "",
            "[review]\nmax_requests = 1",
            "review.max_requests is lowered from 40 to 1",
        ),
        (
            "",
            "[review]\ntimeout = '1s'",
            "review.timeout is lowered from \"2m\" to \"1s\"",
        ),
        (
            "",
            "[review]\nconventions = ['AGENTS.md']",
            "review.conventions no longer includes CLAUDE.md",
        ),
        (
            "",
            "[hooks]\npre_commit = 'off'",
            "hooks.pre_commit changes from rules to off",
        ),
        (
            "[tests]\nrun = true",
            "",
            "tests.run changes from true to false",
        ),
        (
            "",
            "[tests]\non_failure = 'warn'",
            "tests.on_failure changes from block to warn",
        ),
        (
            "[tests]\non_failure = 'block'",
            "[tests]\non_failure = 'warn'",
            "tests.on_failure changes from block to warn",
        ),
        (
            "",
            "[[path]]\nglob = 'x/**'\nblock_on = []",
            "block_on no longer includes critical in x/**",
        ),
        (
            "[[path]]\nglob = 'x/**'\nblock_on = ['critical', 'major', 'minor']",
            "",
            "block_on no longer includes minor in x/**",
        ),
        (
            "[[path]]\nglob = 'x/**'\nmin_confidence = 'low'",
            "",
            "min_confidence changes from low to medium in x/**",
        ),
        (
            "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'",
            "",
            "the guideline for *.sql is removed",
        ),
        (
            "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'",
            "[[guideline]]\nglob = '*.sql'\ntext = 'x'",
            "the guideline for *.sql is reworded",
        ),
        (
            "",
            "not toml",
            "the policy file is invalid, so every gate that uses it fails",
        ),
        (
            "",
            "unknown = 1",
            "the policy file is invalid, so every gate that uses it fails",
        ),
        (
            "",
            "[tests]\ncommand = 'make test'",
            "tests.command changes from nothing to \"make test\"; this key decides which programs run or where data goes",
        ),
        (
            "[backend.l]\nkind = 'openai'\nbase_url = 'https://a.example'",
            "[backend.l]\nkind = 'openai'\nbase_url = 'https://b.example'",
            "backend.l.base_url changes from \"https://a.example\" to \"https://b.example\"; this key decides which programs run or where data goes",
        ),
    ];
    for (base, head, text) in cases {
        assert_eq!(texts(base, head), [text], "{base:?} -> {head:?}");
    }
}

#[test]
fn no_number_of_alternatives_hides_one() {
    let known = vec!["vendor"; 17].join(",");
    let found = texts(
        "ignore = ['vendor/**']",
        &format!("ignore = ['{{{known},src}}/**']"),
    );
    assert_eq!(found, [format!("ignore now matches {{{known},src}}/**")]);
    let many: Vec<String> = (0..80).map(|n| format!("v{n}")).collect();
    let found = texts(
        "ignore = ['v*/**']",
        &format!("ignore = ['{{{}}}/**']", many.join(",")),
    );
    assert_eq!(found.len(), 1, "an unproven pattern is reported");
}

#[test]
fn policies_made_to_take_long_are_compared_in_time() {
    assert_eq!(texts(&slow_ignores(0), &slow_ignores(1000)).len(), 1);
    // The list is cut off.
    let found = texts(&slow_paths(0), &slow_paths(1000));
    assert_eq!(
        (found.len(), found[50].as_str()),
        (51, "[[path]] changes and has too many entries to compare")
    );
}

#[test]
fn what_is_no_weaker_is_silent() {
    let cases = [
        (
            "",
            "version = 1\nblock_on = ['major', 'critical']\n# written out",
        ),
        (
            "block_on = ['critical']",
            "block_on = ['critical', 'major']",
        ),
        ("ignore = ['a/**', 'b/**']", "ignore = ['b/**']"),
        (
            "ignore = ['vendor/**']",
            "ignore = ['vendor/**', 'vendor/x/**']",
        ),
        ("ignore = ['vendor']", "ignore = ['vendor/']"),
        ("ignore = ['**/*.lock']", "ignore = ['*.lock']"),
        (
            "ignore = ['vendor/**']",
            "ignore = ['vendor/lib/**', 'vendor/*.{c,h}', '/vendor/x?y.c']",
        ),
        ("ignore = ['*.[ch]', 'x']", "ignore = ['*.[ch]']"),
        ("ignore = ['a/**', 'b/**']", "ignore = ['{a,b}/**']"),
        (
            "[[path]]\nglob = 'vendor/**'\nblock_on = []",
            "[[path]]\nglob = 'vendor/lib/**'\nblock_on = []",
        ),
        (
            "[[path]]\nglob = 'src/**'\nblock_on = ['minor']",
            "[[path]]\nglob = 'src/**'\nblock_on = ['minor']\n[[path]]\nglob = 'docs/**'\nblock_on = ['major']",
        ),
        (
            "[[path]]\nglob = '*.[ch]'\nblock_on = []\n[[path]]\nglob = 'x/**'\nmin_confidence = 'high'",
            "[[path]]\nglob = 'x/**'\nmin_confidence = 'high'\n[[path]]\nglob = '*.[ch]'\nblock_on = []",
        ),
        ("[rules]\ndisable = ['a']", ""),
        ("", "[rules]\nprofile = 'audit'"),
        ("", "[rules]\nseverity = { todo-comment = 'critical' }"),
        (
            "[review]\nbackends = ['claude']",
            "[review]\nbackends = ['openai', 'claude']",
        ),
        ("", "[backend.claude]\nmodel = 'x'"),
        ("", "[review]\ntimeout = '5m'\njobs = 1"),
        (
            "",
            "[[path]]\nglob = 'x/**'\nblock_on = ['critical', 'major', 'minor']",
        ),
        ("[[path]]\nglob = 'x/**'\nblock_on = []", ""),
        (
            "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'",
            "[[guideline]]\nglob = '*.sql'\ntext = 'be careful, and slow'",
        ),
        ("", "[hooks]\npre_commit = 'full'"),
        ("", "warn_on = ['minor', 'suggestion']"),
        (
            "",
            "block_on = ['critical', 'major', 'minor']\nwarn_on = []",
        ),
        ("[tests]\ncommand = 'make'", ""),
        // Severities above the lowest one in the list block and warn, too.
        ("block_on = ['critical', 'major']", "block_on = ['major']"),
        ("warn_on = ['major', 'minor']", "warn_on = ['minor']"),
        (
            "block_on = ['major']\nwarn_on = ['minor']",
            "block_on = ['suggestion']\nwarn_on = []",
        ),
        (
            "[[path]]\nglob = 'x/**'\nblock_on = ['critical', 'major', 'minor']",
            "[[path]]\nglob = 'x/**'\nblock_on = ['minor']",
        ),
        (
            "",
            "[[path]]\nglob = 'x/**'\nblock_on = ['suggestion']\nwarn_on = []",
        ),
    ];
    for (base, head) in cases {
        assert_eq!(texts(base, head), [""; 0], "{base:?} -> {head:?}");
    }
}

#[test]
fn a_ticket_that_need_not_be_read_any_longer_is_weaker() {
    let required = "[context]\nrequired = true";
    assert_eq!(
        texts(required, ""),
        ["context.required changes from true to false"]
    );
    assert_eq!(texts("", required), [""; 0]);
}

#[test]
fn new_instructions_for_models_are_quoted() {
    let one = "[[guideline]]\nglob = '*.sql'\ntext = 'be careful'";
    for (base, head, said) in [
        (
            "",
            one,
            "the guideline for *.sql is new: \"be careful\"; takes effect for models after the merge",
        ),
        (
            one,
            "[[guideline]]\nglob = '*.sql'\ntext = 'be careful; never report it'",
            "the guideline for *.sql adds: \"; never report it\"; takes effect for models after the merge",
        ),
        (
            one,
            "[[guideline]]\nglob = ['*.sql', '*.py']\ntext = 'be careful'",
            "the guideline for *.sql, *.py applies to more files: \"be careful\"; takes effect for models after \
             the merge",
        ),
        (
            one,
            "[[guideline]]\nglob = '*.sql'\ntext = 'relax'",
            "the guideline for *.sql changes to: \"relax\"; takes effect for models after the merge",
        ),
        (
            "",
            "[review]\nconventions = ['CLAUDE.md', 'AGENTS.md', 'docs/STYLE.md']",
            "review.conventions now includes docs/STYLE.md; takes effect for models after the merge",
        ),
    ] {
        assert_eq!(texts_told(base, head), [said], "{base:?} -> {head:?}");
    }
    for (base, head) in [
        (one, one),
        (one, ""),
        (one, "not toml"),
        ("", "block_on = []"),
    ] {
        assert_eq!(texts_told(base, head), [""; 0], "{base:?} -> {head:?}");
    }
}

#[test]
fn lines_are_those_of_the_new_file() {
    let head = b"version = 1\n\nblock_on = ['critical']\n[[path]]\nglob = 'x'\nwarn_on = []\n";
    let found = weakened(Some(b""), Some(head), |_| None);
    let lines: Vec<_> = found.iter().map(|w| (w.key.as_str(), w.line)).collect();
    assert_eq!(lines, [("block_on", Some(3)), ("path", Some(4))]);
}

#[test]
fn a_deleted_file_is_weaker_and_a_first_one_is_held_against_the_defaults() {
    let found = weakened(
        Some(b"block_on = ['minor', 'major', 'critical']"),
        None,
        |_| None,
    );
    let texts: Vec<_> = found.iter().map(|w| w.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "the policy file is deleted",
            "block_on no longer includes minor"
        ]
    );
    assert_eq!(weakened(None, Some(b"version = 1"), |_| None), []);
    assert_eq!(weakened(None, Some(b"warn_on = []"), |_| None).len(), 1);
    assert_eq!(weakened(None, None, |_| None), []);
}

#[test]
fn a_store_a_signer_and_a_right_to_write_that_a_change_adds_are_weaker() {
    let key = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    let head = format!(
        "[cache]\nurl = \"file:///mnt/answers\"\nwrite = true\nsigners = [\"ci ssh-ed25519 {key}\"]\nsign_key_command = \"cat key\"\ntimeout = \"1s\"\n"
    );
    let found = texts("", &head);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(texts(&head, "").len(), 0);
}

#[test]
fn an_old_answer_that_counts_for_longer_is_weaker_also_next_to_the_default() {
    let with = |age: &str| format!("[cache]\nmax_age = \"{age}\"\n");
    for (base, head, expected) in [
        (
            String::new(),
            with("30d"),
            "is raised from \"336h\" to \"720h\"",
        ),
        (with("1h"), with("2h"), "is raised from \"1h\" to \"2h\""),
        (
            with("1d"),
            String::new(),
            "is raised from \"24h\" to \"336h\"",
        ),
    ] {
        let found = texts(&base, &head);
        assert_eq!(found, [format!("cache.max_age {expected}")]);
        assert_eq!(texts(&head, &base).len(), 0, "{head} to {base}");
    }
}
