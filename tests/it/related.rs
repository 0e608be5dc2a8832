//! Tests of the context that models get in addition to a change: functions around hunks,
//! definitions, callers, tests, the list of files.

mod claims;
mod foreign;
mod hostile;
mod names;
mod uses;

use crate::loopback::Server;
use crate::support::Repo;
use serde_json::json;

/// Returns lines of Python without effect.
fn filler(name: &str, lines: usize) -> String {
    (0..lines)
        .map(|i| format!("    {name}_{i} = {i}\n"))
        .collect()
}

struct Project {
    repo: Repo,
    server: Server,
}

impl Project {
    fn new() -> Self {
        let server = Server::start(|r| r.review(&[]));
        let repo = Repo::new();
        repo.stage(".claude-reviewer.toml", server.policy("openai"));
        Self { repo, server }
    }

    /// Reviews the staged change and returns the prompts.
    fn prompts(&self, args: &[&str]) -> Vec<String> {
        let before = self.server.questions().len();
        self.repo
            .reviewer(&[&["review", "staged", "--no-save"], args].concat())
            .run(0);
        self.server.questions()[before..]
            .iter()
            .map(|r| r.prompt())
            .collect()
    }

    fn prompt(&self) -> String {
        let prompts = self.prompts(&["--no-cache"]);
        assert_eq!(prompts.len(), 1);
        prompts.concat()
    }
}

#[test]
fn the_function_around_a_hunk_is_shown_whole() {
    let project = Project::new();
    let one = format!("def one(a):\n{}    return a\n\n\n", filler("x", 50));
    let two = format!("def two(b):\n{}    return b\n", filler("y", 60));
    project
        .repo
        .stage("src/a.py", format!("{one}{two}"))
        .commit("one");
    project.repo.stage(
        "src/a.py",
        format!("{one}{two}").replace("    y_30 = 30\n", "    y_30 = 31\n"),
    );
    let prompt = project.prompt();
    assert!(
        prompt.contains("\n55 def two(b):\n56     y_0 = 0\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains("\n86+    y_30 = 31\n") && prompt.contains("\n116     return b\n"),
        "{prompt}"
    );
    assert_eq!(
        prompt.matches("y_30 = 3").count(),
        2,
        "no line is shown twice"
    );
    assert!(
        !prompt.contains("x_3 = 3"),
        "the other function is not shown"
    );
}

#[test]
fn of_a_long_function_the_signature_and_the_nearest_lines_are_shown() {
    let project = Project::new();
    let text = format!("def long(\n    a,\n):\n{}    return a\n", filler("x", 200));
    project.repo.stage("src/a.py", &text).commit("one");
    project.repo.stage(
        "src/a.py",
        text.replace("    x_150 = 150\n", "    x_150 = 151\n"),
    );
    let prompt = project.prompt();
    assert!(
        prompt.contains("\n1 def long(\n2     a,\n3 ):\n…\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains("x_125 = 125") && prompt.contains("x_175 = 175"),
        "{prompt}"
    );
    assert!(
        !prompt.contains("x_124 = 124") && !prompt.contains("x_176 = 176"),
        "{prompt}"
    );
}

#[test]
fn a_short_file_is_shown_whole_in_every_language() {
    let project = Project::new();
    let text = (0..60)
        .map(|i| format!("key{i}: {i}\n"))
        .collect::<String>();
    project.repo.stage("config/a.yml", &text).commit("one");
    project
        .repo
        .stage("config/a.yml", text.replace("key30: 30", "key30: 31"));
    let prompt = project.prompt();
    assert!(
        prompt.contains("\n1 key0: 0\n") && prompt.contains("\n60 key59: 59\n"),
        "{prompt}"
    );
}

#[test]
fn definitions_of_what_added_lines_call_are_shown_with_their_places() {
    let project = Project::new();
    let body = filler("x", 120);
    let library = format!(
        "import os\n\n\ndef load(\n    path,\n    strict=False,\n):\n{body}    return path\n"
    );
    let class =
        format!("class Store:\n    \"\"\"Text.\"\"\"\n\n    def __init__(self, root):\n{body}\n");
    project
        .repo
        .stage("lib/store.py", format!("{library}\n\n{class}"));
    project
        .repo
        .stage("app/main.py", "def main():\n    pass\n")
        .commit("one");
    project
        .repo
        .stage("app/main.py", "def main():\n    return Store(load('a'))\n");
    let prompt = project.prompt();
    assert!(
        prompt.contains("lib/store.py:4-7: definition of load\n4 def load(\n5     path,\n"),
        "{prompt}"
    );
    let store = "definition of Store\n131 class Store:\n…\n134     def __init__(self, root):\n";
    assert!(prompt.contains(store), "{prompt}");
}

#[test]
fn the_type_of_a_changed_method_is_shown_with_the_fields_that_added_lines_name() {
    let fields: String = (0..40).map(|i| format!("\tField{i} int\n")).collect();
    let rest: String = (0..60)
        .map(|i| format!("func Other{i}() int {{\n\treturn {i}\n}}\n\n"))
        .collect();
    let context =
        format!("type Context struct {{\n{fields}\tmu sync.RWMutex\n\tKeys map[string]any\n}}\n");
    let set = |body: &str| format!("func (c *Context) Set(key string, value any) {{\n{body}}}\n");
    let project = Project::new();
    // In the same file, and in another one.
    let here = |body: &str| format!("package gin\n\n{context}\n{rest}{}", set(body));
    let there = |body: &str| format!("package gin\n\n{rest}{}", set(body));
    project.repo.stage("here/context.go", here("\treturn\n"));
    project
        .repo
        .stage("there/context.go", format!("package gin\n\n{context}"))
        .stage("there/set.go", there("\treturn\n"));
    project.repo.commit("one");
    let owner = "context.go:3-45: definition of Context\n3 type Context struct {\n…\n44 \tmu sync.RWMutex\n45 \tKeys map[string]any\n";
    project.repo.stage(
        "here/context.go",
        here("\tc.mu.Lock()\n\tc.Keys[key] = value\n"),
    );
    let prompt = project.prompt();
    assert!(prompt.contains(&format!("here/{owner}")), "{prompt}");
    project.repo.git(&["reset", "-q", "--hard"]);
    project.repo.stage(
        "there/set.go",
        there("\tc.mu.Lock()\n\tc.Keys[key] = value\n"),
    );
    let prompt = project.prompt();
    assert!(prompt.contains(&format!("there/{owner}")), "{prompt}");
}

#[test]
fn constants_that_added_lines_name_are_shown_with_their_values() {
    let project = Project::new();
    let rest = format!("def other():\n{}", filler("x", 120));
    project.repo.stage(
        "app/limits.py",
        "LIMITS = {\n    \"upload\": 10,\n}\nLIMITS_OFF = 1\n",
    );
    project
        .repo
        .stage(
            "app/main.py",
            format!("RETRIES: int = 3\n\n\n{rest}\n\ndef main():\n    pass\n"),
        )
        .commit("one");
    let body = "    for _ in range(RETRIES):\n        send(LIMITS[\"upload\"])\n";
    project.repo.stage(
        "app/main.py",
        format!("RETRIES: int = 3\n\n\n{rest}\n\ndef main():\n{body}"),
    );
    let prompt = project.prompt();
    assert!(
        prompt.contains("app/main.py:1-1: definition of RETRIES\n1 RETRIES: int = 3\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains("app/limits.py:1-3: definition of LIMITS\n1 LIMITS = {\n"),
        "{prompt}"
    );
    assert!(!prompt.contains("LIMITS_OFF"), "{prompt}");
}

#[test]
fn every_part_lists_the_files_of_the_whole_change() {
    let project = Project::new();
    let policy = project
        .server
        .policy("openai")
        .replace("[review]\n", "[review]\nmax_files = 1\n");
    project.repo.stage(".claude-reviewer.toml", policy);
    project
        .repo
        .stage("a/one.py", "def one():\n    pass\n")
        .stage("b/two.py", "def two():\n    pass\n")
        .commit("one");
    project
        .repo
        .stage("a/one.py", "def one():\n    return 1\n")
        .stage("b/two.py", "def two():\n    return 2\n");
    let prompts = project.prompts(&[]);
    assert_eq!(prompts.len(), 2);
    for prompt in &prompts {
        assert!(
            prompt.contains("\na/one.py +1 -1: one\n")
                && prompt.contains("\nb/two.py +1 -1: two\n"),
            "{prompt}"
        );
    }
    // The counts of another file have no effect, but another file does.
    project
        .repo
        .stage("a/one.py", "def one():\n    x = 1\n    return x\n");
    let again = project.prompts(&[]);
    assert_eq!(again.len(), 1, "{again:?}");
    assert!(again[0].contains("file: a/one.py"), "{again:?}");
    project.repo.stage("c/three.py", "three = 3\n");
    assert_eq!(project.prompts(&[]).len(), 3);
}

#[test]
fn hunks_have_the_heading_of_their_definition() {
    for (path, before, end, heading) in [
        (
            "lib/a.js",
            "app.use = function use(fn) {\n",
            "}\n",
            "@@ app.use = function use(fn) {",
        ),
        (
            "lib/b.js",
            "module.exports = {\n  load: async (path) => {\n",
            "}}\n",
            "@@ load: async (path) => {",
        ),
        (
            "lib/c.test.ts",
            "describe('a', () => {\n  it('works', async () => {\n",
            "})\n})\n",
            "@@ it('works', async () => {",
        ),
        (
            "A.java",
            "class A {\n    @Override\n    public int f(int x) {\n",
            "}\n}\n",
            "@@ public int f(int x) {",
        ),
    ] {
        let project = Project::new();
        let body: String = (0..130)
            .map(|i| format!("    call{i}(function () {{ return {i} }})\n"))
            .collect();
        let text = format!("{before}{body}{end}");
        project.repo.stage(path, &text).commit("one");
        project
            .repo
            .stage(path, text.replace("return 60 ", "return 61 "));
        let prompt = project.prompt();
        assert!(
            prompt.contains(&format!("\n{heading}\n")),
            "{path}: {prompt}"
        );
    }
}

#[test]
fn a_reviewer_of_one_part_can_read_the_change_of_another() {
    let server = Server::start(|r| {
        let has_read = String::from_utf8_lossy(&r.body).contains("1+B = 2");
        match r.files() == ["src/a.py"] && !has_read && !r.is_refutation() {
            true => r.calls(&[
                ("diff_of", json!({ "path": "src/b.py" })),
                ("diff_of", json!({ "path": "src/c.py" })),
            ]),
            false => r.review(&[]),
        }
    });
    let repo = Repo::new();
    repo.stage(
        ".claude-reviewer.toml",
        server
            .policy("openai")
            .replace("[review]\n", "[review]\nmax_files = 1\n"),
    );
    repo.commit("seed");
    repo.stage("src/a.py", "A = 1\n")
        .stage("src/b.py", "B = 2\n");
    repo.reviewer(&["review", "staged", "--no-save", "--depth", "thorough"])
        .run(0);
    let answers: Vec<String> = server
        .questions()
        .iter()
        .map(|r| String::from_utf8_lossy(&r.body).into_owned())
        .filter(|b| b.contains("\"tool\""))
        .collect();
    assert!(!answers.is_empty());
    for body in answers {
        assert!(body.contains("file: src/b.py\\n@@\\n1+B = 2"), "{body}");
        assert!(
            body.contains("`src/c.py` is not part of the change; its files: src/a.py, src/b.py"),
            "{body}"
        );
    }
}

/// Returns lines of Python with separate functions, longer than a file that is shown whole.
fn padding(name: &str) -> String {
    (0..50)
        .map(|i| format!("def {name}_{i}():\n    return {i}\n\n\n"))
        .collect()
}

#[test]
fn each_part_that_uses_a_name_gets_its_definition() {
    let project = Project::new();
    let policy = project
        .server
        .policy("openai")
        .replace("[review]\n", "[review]\nmax_files = 1\n");
    project.repo.stage(".claude-reviewer.toml", policy);
    project
        .repo
        .stage("lib.py", "def helper_fn(a):\n    return a\n");
    project
        .repo
        .stage("a.py", "A = 1\n")
        .stage("b.py", "B = 1\n")
        .commit("one");
    project
        .repo
        .stage("a.py", "A = helper_fn(1)\n")
        .stage("b.py", "B = helper_fn(2)\n");
    let prompts = project.prompts(&[]);
    assert_eq!(prompts.len(), 2);
    for prompt in prompts {
        assert!(
            prompt.contains("lib.py:1-2: definition of helper_fn\n1 def helper_fn(a):\n"),
            "{prompt}"
        );
    }
}

#[test]
fn lines_that_continue_a_hunk_stand_before_the_heading_of_the_next_one() {
    let body =
        |name: &str, n: u32| format!("def {name}():\n{}    return {n}\n\n\n", filler(name, 30));
    let text = |n: u32| {
        format!("{}{}{}", padding("top"), body("one", n), body("two", n)) + &padding("end")
    };
    let project = Project::new();
    project.repo.stage("a.py", text(1)).commit("one");
    project.repo.stage(
        "a.py",
        text(1)
            .replace("one_2 = 2", "one_2 = 3")
            .replace("two_20 = 20", "two_20 = 21"),
    );
    let prompt = project.prompt();
    assert!(
        prompt.contains("\n@@ def one():\n201 def one():\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains("\n232     return 1\n@@ def two():\n235 def two():\n"),
        "{prompt}"
    );
    // Two hunks of one function belong together.
    project.repo.git(&["reset", "-q", "--hard"]);
    project.repo.stage(
        "a.py",
        text(1)
            .replace("one_2 = 2", "one_2 = 3")
            .replace("one_20 = 20", "one_20 = 21"),
    );
    let prompt = project.prompt();
    assert_eq!(prompt.matches("\n@@").count(), 1, "{prompt}");
    assert!(
        prompt.contains("\n211     one_9 = 9\n212     one_10 = 10\n"),
        "{prompt}"
    );
}

#[test]
fn the_statement_around_a_hunk_is_shown_and_names_it() {
    let many = |line: &str| {
        (0..30)
            .map(|i| line.replace("%d", &i.to_string()))
            .collect::<String>()
    };
    for (path, pad, head, line, end) in [
        (
            "a.js",
            "var pad%d = 1;\n",
            "app.get('/marker', function (req, res) {\n",
            "  use(%d);\n",
            "});\n",
        ),
        (
            "a.js",
            "var pad%d = 1;\n",
            "module.exports = {\n",
            "  key%d: %d,\n",
            "};\n",
        ),
        (
            "a.ts",
            "var pad%d = 1;\n",
            "export const marker = memo((a) => {\n",
            "  use(%d);\n",
            "});\n",
        ),
        (
            "a.rb",
            "PAD%d = 1\n",
            "get '/marker' do\n",
            "  use(%d)\n",
            "end\n",
        ),
        (
            "a.py",
            "PAD_%d = 1\n",
            "TABLE = {\n",
            "    'k%d': %d,\n",
            "}\n",
        ),
        (
            "a.cpp",
            "int pad%d = 1;\n",
            "Foo& Foo::get(int marker) {\n",
            "  use(%d);\n",
            "}\n",
        ),
    ] {
        let pads = |n: u32| {
            many(pad)
                .replace("pad", &format!("p{n}_"))
                .replace("PAD", &format!("P{n}_"))
        };
        let text = [
            pads(0),
            pads(1),
            pads(2),
            head.to_owned(),
            many(line),
            end.to_owned(),
            pads(3),
        ]
        .concat();
        let old = line.replace("%d", "20");
        let new = old
            .replacen("20", "20 + 999", 2)
            .replace("k20 + 999", "k20")
            .replace("key20 + 999", "key20");
        let project = Project::new();
        project.repo.stage(path, &text).commit("one");
        project.repo.stage(path, text.replace(&old, &new));
        let prompt = project.prompt();
        let head = head.trim_end();
        assert!(
            prompt.contains(&format!("\n@@ {head}\n91 {head}\n")),
            "{path}: {prompt}"
        );
    }
}

#[test]
fn no_line_of_a_prompt_is_shown_twice_and_what_is_left_out_is_counted() {
    let project = Project::new();
    let text = |n: u32| format!("def charge(a):\n    return a + {n}\n\n\n{}", padding("pad"));
    let users: String = (0..20)
        .map(|i| format!("def user_{i}():\n    return charge({i})\n\n\n"))
        .collect();
    project.repo.stage("a.py", text(1) + &users).commit("one");
    project
        .repo
        .stage("a.py", text(2) + &users.replace("user_3()", "user_three()"));
    let prompt = project.prompt();
    assert_eq!(prompt.matches("1 def charge(a):\n").count(), 1, "{prompt}");
    assert_eq!(prompt.matches("return charge(3)").count(), 1, "{prompt}");
    assert!(
        prompt.contains("(not shown: 8 more uses of charge)"),
        "{prompt}"
    );
}

/// Returns the lines of a prompt after a heading.
fn behind<'p>(prompt: &'p str, heading: &str) -> &'p str {
    prompt
        .split_once(heading)
        .unwrap_or_else(|| panic!("no {heading:?} in {prompt}"))
        .1
}

#[test]
fn signatures_of_functions_that_only_unchanged_lines_call_come_behind_those_of_added_lines() {
    let body = filler("x", 40);
    let library = |names: [&str; 3]| -> String {
        names
            .map(|name| {
                format!(
                    "def {name}(\n    path,\n    strict=False,\n):\n{body}    return path\n\n\n"
                )
            })
            .concat()
    };
    let main = |new: &str| {
        format!(
            "def main(a):\n    check_input(a)\n    {new}\n    close_output(a)\n    return a\n\n\n{}",
            padding("pad")
        )
    };
    let project = Project::new();
    project.repo.stage(
        "lib/io.py",
        library(["load_all", "check_input", "close_output"]),
    );
    project
        .repo
        .stage("app/main.py", main("pass"))
        .commit("one");
    project.repo.stage("app/main.py", main("load_all(a)"));
    let prompt = project.prompt();
    let related = behind(&prompt, ": definition of load_all\n");
    for (name, line) in [("check_input", 48), ("close_output", 95)] {
        let expected = format!(
            "lib/io.py:{line}-{}: signature of {name}\n{line} def {name}(\n",
            line + 3
        );
        assert!(related.contains(&expected), "{name}: {prompt}");
    }
    // Their bodies are not shown, and a function of the file itself has its signature too.
    assert!(!related.contains("x_3 = 3"), "{prompt}");
    let own = |new: &str| main(new) + &library(["load_all", "check_input", "close_output"]);
    project.repo.stage("app/own.py", own("pass")).commit("two");
    project.repo.stage("app/own.py", own("load_all(a)"));
    let prompt = project.prompt();
    assert!(prompt.contains(": signature of check_input\n"), "{prompt}");
}

#[test]
fn the_signatures_around_a_change_are_shown_even_if_the_functions_do_not_fit() {
    // A long function inside of a long test, in each of the languages with nested functions.
    let inner: String = (0..130).map(|i| format!("      step({i})\n")).collect();
    let text = format!(
        "describe('store',\n  () => {{\n  it('loads', () => {{\n    const run = () => {{\n{inner}    }}\n  }})\n}})\n"
    );
    let project = Project::new();
    project.repo.stage("test/a.test.js", &text).commit("one");
    project
        .repo
        .stage("test/a.test.js", text.replace("step(60)", "step(61)"));
    let prompt = project.prompt();
    assert!(
        prompt.contains("\n1 describe('store',\n2   () => {\n3   it('loads', () => {\n4     const run = () => {\n…\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains("step(36)") && prompt.contains("step(85)") && !prompt.contains("step(34)"),
        "{prompt}"
    );
    assert!(!prompt.contains("step(0)"), "{prompt}");
    // Functions of 100 long lines each, in a request without room for them.
    let line = "word ".repeat(40);
    let function = |n: usize, value: usize| {
        let body: String = (0..100).map(|i| format!("    # {i} {line}\n")).collect();
        format!("def compute_{n}(\n    total,\n):\n{body}    return {value}\n\n\n")
    };
    let many = |value: usize| (0..4).map(|n| function(n, value)).collect::<String>();
    let policy = project.server.policy("openai") + "context_tokens = 12000\n";
    project
        .repo
        .stage(".claude-reviewer.toml", policy)
        .stage("src/a.py", many(1))
        .commit("two");
    project.repo.stage("src/a.py", many(2));
    let prompts = project.prompts(&["--no-cache"]);
    let all = prompts.concat();
    for n in 0..4 {
        assert!(all.contains(&format!(" def compute_{n}(\n")), "{n}: {all}");
    }
    assert!(all.contains("functions around hunks"), "{all}");
}

#[test]
fn a_file_that_is_only_renamed_is_listed_with_both_names() {
    let project = Project::new();
    let text = |n: usize| format!("def one():\n    return {n}\n{}", padding("pad"));
    project
        .repo
        .stage("src/a.py", text(1))
        .stage("lib/old.py", padding("other"))
        .commit("one");
    project.repo.git(&["mv", "lib/old.py", "lib/new.py"]);
    project.repo.stage("src/a.py", text(2));
    let prompt = project.prompt();
    assert!(
        prompt.contains("\nlib/new.py +0 -0 (renamed from lib/old.py)\n"),
        "{prompt}"
    );
    // Another rename makes another question.
    assert_eq!(
        [project.prompts(&[]).len(), project.prompts(&[]).len()],
        [1, 0]
    );
    project.repo.git(&["mv", "lib/new.py", "lib/newer.py"]);
    assert_eq!(project.prompts(&[]).len(), 1);
}
