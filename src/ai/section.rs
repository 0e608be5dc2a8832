//! Finds the section line of a hunk: the function, type or heading that contains it.
//!
//! As in git, this is the nearest line above that matches a pattern for the type of the file. For
//! unknown types it is git's default: a letter in the first column. Only prompts use it.

use crate::diff::RepoPath;
use regex::bytes::{Regex, RegexBuilder};
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes of a section, at most; the same limit as git's.
const LIMIT: usize = 80;
/// Bytes of a line that are matched, at most.
const LOOKED_AT: usize = 400;

/// The section patterns of a language.
#[derive(Debug)]
pub(super) struct Language {
    extensions: &'static [&'static str],
    /// Pattern of lines that start a section. If it has a group, only the group is included.
    starts: &'static str,
    /// Pattern of lines that match `starts` but do not start a section; empty if there are none.
    never: &'static str,
    compiled: OnceLock<Option<(Regex, Option<Regex>)>>,
}

const fn language(
    extensions: &'static [&'static str],
    starts: &'static str,
    never: &'static str,
) -> Language {
    Language {
        extensions,
        starts,
        never,
        compiled: OnceLock::new(),
    }
}

/// Keywords of statements in languages with braces, to distinguish them from methods.
const STATEMENT: &str = r"^\s*(?:\}\s*)?(?:if|else|for|foreach|while|do|switch|case|default|catch|try|finally|return|throw|new|await|yield|using|lock|goto|super|this|delete|typeof|import|package|assert|synchronized|when|guard|repeat|defer)\b";

static LANGUAGES: [Language; 30] = [
    language(
        &["py", "pyi", "pyw", "pyx", "bzl", "star"],
        r"^\s*((?:async\s+)?def\s.*|class\s.*)",
        "",
    ),
    language(
        &["rs"],
        r#"^\s*((?:pub(?:\s*\([^)]*\))?\s+)?(?:(?:async|const|default|unsafe|extern(?:\s+"[^"]*")?)\s+)*(?:fn|struct|enum|union|trait|impl|mod|macro_rules!)(?:[\s<].*|$))"#,
        r";\s*(?://.*)?$",
    ),
    language(
        &["go"],
        r"^\s*(func\b.*|type\s+\w+(?:\[.*\])?\s+(?:struct|interface)\b.*)",
        r"^\s+func\s*\(",
    ),
    language(
        &[
            "c", "h", "cc", "cpp", "cxx", "c++", "hpp", "hh", "hxx", "ipp", "inl", "cu", "cuh",
            "ino", "m", "mm",
        ],
        r"^((?:::\s*)?[A-Za-z_].*|[-+]\s*\(.*|@(?:interface|implementation|protocol)\b.*)",
        r"^[A-Za-z_]\w*\s*:(?:[^:]|$)|^(?:public|private|protected)\s*:|^using\s|^extern\s+.*;",
    ),
    language(
        &["java", "groovy", "gradle", "dart", "jsp"],
        r"^\s*((?:[\w@]+(?:\([^)]*\))?\s+)*(?:class|interface|enum|record|@interface)\s+\w.*|(?:(?:[\w@.?]+(?:<[^;=()]*>)?(?:\[\])*)\s+)+\w+\s*\([^;]*)$",
        STATEMENT,
    ),
    language(
        &["cs", "csx"],
        r"^\s*((?:[\w\[\]]+\s+)*(?:class|interface|struct|record|enum|namespace)\s+[\w.].*|(?:(?:[\w.?]+(?:<[^;=()]*>)?(?:\[\])*)\s+)+[\w.<>]+\s*\([^;]*)$",
        STATEMENT,
    ),
    language(
        &[
            "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte", "astro",
        ],
        r"^\s*((?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\b|class\b|interface\s+\w|enum\s+\w|namespace\s+\w|type\s+\w+.*=).*|(?:export\s+)?(?:const|let|var)\s+\w+(?:\s*:[^=]*)?\s*=\s*(?:async\s*)?(?:function\b.*|(?:\([^)]*\)|\w+)[^=]*=>.*)|(?:(?:public|private|protected|static|readonly|override|async|get|set)\s+)*[#\w$]+\s*(?:<[^>]*>)?\([^;]*\)[^;=]*\{\s*|(?:describe|it|test)(?:\.\w+)*\(.*)$",
        STATEMENT,
    ),
    language(
        &["rb", "rake", "gemspec", "ru"],
        r"^\s*((?:class|module|def)\s.*|(?:describe|context|it)\s.*\bdo\b.*)",
        "",
    ),
    language(
        &["php", "phtml", "inc"],
        r"^\s*((?:(?:abstract|final|static|public|protected|private|readonly)\s+)*(?:function|class|interface|trait|enum|namespace)\s.*)",
        "",
    ),
    language(
        &["css", "scss", "sass", "less"],
        r"^\s*([@.#:\[*&A-Za-z_].*)",
        r"[:;]\s*$|^\s*[\w-]+\s*:\s*[^{]*;",
    ),
    language(
        &[
            "html", "htm", "xhtml", "hbs", "ejs", "twig", "j2", "razor", "cshtml",
        ],
        r"(?i)^\s*(<h[1-6](?:\s.*)?>.*|<(?:head|body|main|section|article|form|script|style|template)\b.*)",
        "",
    ),
    language(
        &["md", "markdown", "mdx", "mdown"],
        r"^ {0,3}(#{1,6}\s.*)",
        "",
    ),
    language(
        &["rst", "adoc", "asciidoc"],
        r"^(={1,6}\s.*|\.\.\s.*::.*)",
        "",
    ),
    language(
        &["tex"],
        r"^\s*(\\(?:part|chapter|(?:sub)*section|paragraph|begin\{(?:document|figure|table)\}).*)",
        "",
    ),
    language(
        &["sh", "bash", "zsh", "ksh", "bats"],
        r"^\s*(function\s+[^\s(]+.*|[\w:.-]+\s*\(\s*\).*|@test\s.*)",
        "",
    ),
    language(
        &["kt", "kts"],
        r"^\s*((?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)*(?:fun|class|interface|object)\b.*)",
        r"^\s*(?:return|val|var|if|else|when|for|import)\b|=\s*object\b",
    ),
    language(
        &["swift"],
        r"^\s*((?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|private|fileprivate|internal|open|final|static|class|override|mutating|nonisolated|indirect|convenience|required)(?:\(\w+\))?\s+)*(?:class|struct|enum|protocol|extension|actor|func|init|deinit|subscript)\b.*)",
        "",
    ),
    language(
        &["scala", "sc", "sbt"],
        r"^\s*((?:\w+(?:\[\w+\])?\s+)*(?:class|trait|object|def|enum|given)\s.*)",
        "",
    ),
    language(
        &["ex", "exs"],
        r"^\s*((?:def(?:p|module|macro|macrop|impl|protocol|guard|delegate)?|test|describe)\s.*)",
        "",
    ),
    language(
        &["pl", "pm", "t"],
        r"^\s*((?:sub|package)\s.*|=head[0-9]\s.*)",
        r";\s*$",
    ),
    language(
        &["lua"],
        r"^\s*((?:local\s+)?function\b.*|[\w.:]+\s*=\s*function\b.*)",
        "",
    ),
    language(
        &["sql", "psql", "pgsql", "ddl"],
        r"(?i)^\s*((?:create|alter|drop)\s.*)",
        "",
    ),
    language(
        &["tf", "hcl", "tofu"],
        r"^((?:resource|data|module|variable|output|provider|locals|terraform|moved|check)\b.*)",
        "",
    ),
    language(
        &["toml", "ini", "cfg", "conf", "cnf", "editorconfig"],
        r"^\s*(\[.*)",
        "",
    ),
    language(&["yml", "yaml"], r#"^([\w"'][^#:]*:.*)"#, ""),
    language(
        &["proto", "graphql", "gql"],
        r"^\s*((?:message|service|enum|rpc|oneof|type|interface|input|extend|query|mutation|fragment)\s.*)",
        r";\s*$",
    ),
    language(&["mk", "mak", "am"], r"^([^\s#=][^=]*:(?:[^=].*)?)$", ""),
    language(
        &["cmake"],
        r"(?i)^\s*((?:function|macro|if|foreach|while)\s*\(.*)",
        "",
    ),
    language(&["dockerfile", "containerfile"], r"(?i)^(from\s.*)", ""),
    language(&["r"], r"^\s*([\w.]+\s*(?:<-|=)\s*function\b.*)", ""),
];

/// All other types: a letter, `_` or `$` in the first column.
static OTHER: Language = language(&[], r"^[A-Za-z_$].*", "");
/// Data formats without sections.
static NONE: Language = language(
    &["json", "xml", "svg", "csv", "txt", "lock", "ipynb"],
    r"^\z.",
    "",
);

impl Language {
    /// Returns the language of a file, by its name.
    pub(super) fn of(path: &RepoPath) -> &'static Self {
        let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
        let extension = match name.as_str() {
            "makefile" | "gnumakefile" | "justfile" => "mk",
            "cmakelists.txt" => "cmake",
            "dockerfile" | "containerfile" => "dockerfile",
            "gemfile" | "rakefile" | "vagrantfile" => "rb",
            ".editorconfig" | ".gitconfig" => "ini",
            _ => name.rsplit_once('.').map_or("", |(_, e)| e),
        };
        let all = LANGUAGES.iter().chain([&NONE]);
        all.into_iter()
            .find(|l| l.extensions.contains(&extension))
            .unwrap_or(&OTHER)
    }

    /// Returns git's default: the nearest line above with a letter, `_` or `$` in the first column.
    pub(super) fn any() -> &'static Self {
        &OTHER
    }

    /// Returns the range of a line that is the section title. Returns `None` if the line does not
    /// start a section.
    pub(super) fn start(&self, line: &[u8]) -> Option<Range<usize>> {
        let line = &line[..line.len().min(LOOKED_AT)];
        let (starts, never) = self.compiled().as_ref()?;
        let found = starts.captures(line)?;
        if never.as_ref().is_some_and(|n| n.is_match(line)) {
            return None;
        }
        let span = found.get(1).or_else(|| found.get(0))?.range();
        let mut end = span.end.min(span.start + LIMIT);
        // Do not cut inside a character.
        while end > span.start && line.get(end).is_some_and(|b| b & 0xc0 == 0x80) {
            end -= 1;
        }
        let text = line[span.start..end].trim_ascii_end();
        Some(span.start..span.start + text.len())
    }

    /// Finds the nearest section that starts in a range of a text. Both ends of the range must be
    /// starts of lines.
    pub(super) fn find(&self, text: &[u8], within: Range<usize>) -> Option<Range<usize>> {
        let mut end = within.end;
        while end > within.start {
            let from = memchr::memrchr(b'\n', &text[within.start..end - 1])
                .map_or(within.start, |i| within.start + i + 1);
            if let Some(found) = self.start(crate::diff::trim_line_end(&text[from..end])) {
                return Some(from + found.start..from + found.end);
            }
            end = from;
        }
        None
    }

    fn compiled(&self) -> &Option<(Regex, Option<Regex>)> {
        self.compiled.get_or_init(|| {
            let never = if self.never.is_empty() {
                None
            } else {
                Some(bytes_regex(self.never)?)
            };
            Some((bytes_regex(self.starts)?, never))
        })
    }
}

/// Compiles a pattern for bytes that need not be UTF-8.
fn bytes_regex(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        for l in LANGUAGES.iter().chain([&OTHER, &NONE]) {
            assert!(l.compiled().is_some(), "{}", l.starts);
        }
    }

    #[test]
    fn the_nearest_start_above_is_found_by_type_of_file() {
        for (path, above, section) in [
            (
                "a.py",
                "class A:\n    def f(self):\n        x = 1\n",
                "def f(self):",
            ),
            ("a.py", "async def go():\n    pass\n", "async def go():"),
            (
                "a.rs",
                "impl<T> Foo<T> {\n    pub(crate) async fn go(&self) -> u8 {\n        let x = 1;\n",
                "pub(crate) async fn go(&self) -> u8 {",
            ),
            ("a.rs", "mod x;\nfn a() {}\nmod b;\n", "fn a() {}"),
            (
                "a.go",
                "func (s *S) Do(x int) error {\n\tgo func() {\n\t\tx()\n",
                "func (s *S) Do(x int) error {",
            ),
            (
                "a.c",
                "static int f(int a)\n{\nout:\n    return 1;\n",
                "static int f(int a)",
            ),
            (
                "a.cpp",
                "namespace a {\nclass B {\npublic:\n    int x;\n",
                "class B {",
            ),
            (
                "A.java",
                "class A {\n    public int f(int x) {\n        return g(x);\n        if (x) {\n",
                "public int f(int x) {",
            ),
            (
                "A.cs",
                "namespace N;\npublic class A\n{\n    public async Task<int> Go(string s)\n    {\n        await X();\n",
                "public async Task<int> Go(string s)",
            ),
            (
                "a.ts",
                "export class A {\n  async go(x: number): Promise<void> {\n    if (x) {\n      y();\n",
                "async go(x: number): Promise<void> {",
            ),
            (
                "a.js",
                "const f = async (x) => {\n  return 1\n",
                "const f = async (x) => {",
            ),
            (
                "a.tsx",
                "export default function App() {\n  const x = 1;\n",
                "export default function App() {",
            ),
            ("a.rb", "class A\n  def go\n    x = 1\n", "def go"),
            (
                "a.php",
                "<?php\nfinal class A {\n    public static function go() {\n        $x = 1;\n",
                "public static function go() {",
            ),
            ("a.css", ".a .b {\n  color: red;\n", ".a .b {"),
            (
                "a.html",
                "<h2 class=x>Title</h2>\n<p>text</p>\n",
                "<h2 class=x>Title</h2>",
            ),
            ("README.md", "# One\n\n## Two\ntext\n#hashtag\n", "## Two"),
            ("run.sh", "go() {\n  echo\n", "go() {"),
            (
                "a.kt",
                "class A {\n    override suspend fun go(x: Int): Int {\n        val y = 1\n",
                "override suspend fun go(x: Int): Int {",
            ),
            (
                "a.swift",
                "struct A {\n    private func go() {\n        let x = 1\n",
                "private func go() {",
            ),
            (
                "a.ex",
                "defmodule A do\n  def go(x) do\n    x\n",
                "def go(x) do",
            ),
            ("a.sql", "CREATE TABLE a (\n  x int\n", "CREATE TABLE a ("),
            (
                "a.tf",
                "resource \"a\" \"b\" {\n  x = 1\n",
                "resource \"a\" \"b\" {",
            ),
            ("Cargo.toml", "[dependencies]\nx = 1\n", "[dependencies]"),
            ("ci.yml", "on: push\njobs:\n  test:\n    x: 1\n", "jobs:"),
            ("Makefile", "CC := gcc\nall: a b\n\tcc a\n", "all: a b"),
            (
                "CMakeLists.txt",
                "function(go x)\n  set(A 1)\n",
                "function(go x)",
            ),
            ("Dockerfile", "FROM a AS b\nRUN x\n", "FROM a AS b"),
            ("a.json", "{\n  \"a\": 1\n", ""),
            ("a.unknown", "Start here\n  inside\n", "Start here"),
        ] {
            let found = Language::of(&RepoPath::from(path)).find(above.as_bytes(), 0..above.len());
            assert_eq!(found.map_or("", |r| &above[r]), section, "{path}");
        }
    }

    #[test]
    fn a_section_ends_with_a_whole_character() {
        for pad in 0..4 {
            let line = format!("# {}{}", "a".repeat(pad), "é".repeat(100));
            let found = Language::of(&RepoPath::from("a.md"))
                .start(line.as_bytes())
                .unwrap();
            assert!(line.get(found).is_some_and(|s| s.len() > 76), "{pad}");
        }
    }

    #[test]
    fn a_section_is_no_longer_than_gits() {
        let line = format!("fn f({}) {{\n", "a: u8, ".repeat(100));
        let found = Language::of(&RepoPath::from("a.rs"))
            .find(line.as_bytes(), 0..line.len())
            .unwrap();
        assert!(found.len() <= 80);
    }
}
