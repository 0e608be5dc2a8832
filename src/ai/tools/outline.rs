//! `outline`: the definitions of a file, found line by line. The list is approximate, but its line
//! numbers are exact.

use super::argument;
use super::page::{ResultPage, cut};
use crate::ai::tree::Tree;
use crate::diff::{LineNo, RepoPath};
use regex::Regex;
use serde_json::Value;
use std::sync::OnceLock;

/// Bytes of a line, at most.
const MAX_LINE: usize = 180;
/// Lines of a result, at most.
const MAX_LINES: usize = 400;

/// The syntax of definitions in a kind of file.
struct OutlineLanguage {
    /// Extensions without the dot, or whole file names.
    files: &'static [&'static str],
    /// Pattern of a line that defines something.
    pattern: &'static str,
}

/// Keywords at the start of statements that resemble a definition.
const STATEMENTS: &[&str] = &[
    "if", "for", "while", "switch", "catch", "return", "else", "do", "try", "throw", "new",
    "await", "yield", "case", "using", "lock", "assert", "delete", "goto", "function", "sizeof",
    "elif", "until", "with", "super", "this",
];

const LANGUAGES: &[OutlineLanguage] = &[
    OutlineLanguage {
        files: &["rs"],
        pattern: r#"(?x) ^\s* (?:pub (?:\([^)]*\))? \s+)? (?:default\s+)? (?:(?:async|const|unsafe|safe|extern(?:\s+"[^"]*")?)\s+)*
            (?: (?:fn|struct|enum|union|trait|mod|type|static)\s+\w | impl\b | macro_rules!\s*\w ) | ^\s*(?:pub(?:\([^)]*\))?\s+)?const\s+[A-Z_] "#,
    },
    OutlineLanguage {
        files: &["py", "pyi", "pyx"],
        pattern: r"^\s*(?:async\s+)?(?:def|class)\s+\w|^[A-Z_][A-Z0-9_]+\s*(?::[^=]+)?=[^=]",
    },
    OutlineLanguage {
        files: &[
            "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte",
        ],
        pattern: r"(?x) ^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?
              (?:function\b|class\s+\w|interface\s+\w|(?:const\s+)?enum\s+\w|namespace\s+\w|type\s+\w+\s*(?:<[^=]*>)?\s*=)
            | ^(?:export\s+)?(?:const|let|var)\s+[\w${\[]
            | ^\s+(?:(?:public|private|protected|static|readonly|override|async|get|set)\s+)*[\w$\#]+\s*(?:<[^>(]*>)?\([^;]*\)\s*(?::[^{;]+)?\{\s*$
            | ^\s+(?:(?:public|private|protected|static|readonly)\s+)*[\w$\#]+\s*=\s*(?:async\s*)?\([^)]*\)\s*(?::[^=]+)?=>",
    },
    OutlineLanguage {
        files: &["go"],
        pattern: r"^(?:func|type|var|const)\b|^package\s",
    },
    OutlineLanguage {
        files: &[
            "java", "kt", "kts", "cs", "scala", "swift", "dart", "groovy", "gradle",
        ],
        pattern: r"(?x) ^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async|inline|data|partial|readonly|case|implicit|lazy|suspend|operator|unsafe|extern|native|synchronized|default|mutating|fileprivate|indirect|external)\s+)*
              (?:(?:class|interface|enum|record|struct|trait|object|protocol|extension|actor|namespace|mixin|fun|func|def|typealias|delegate)\s+[\w<`(]|init[?!]?\s*\()
            | ^\s+(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async|default|synchronized|native|extern)\s+)*[\w<>\[\],.?]+(?:\s+[\w<>\[\],.?]+)*\s+\w+\s*\([^;={]*\)?\s*(?:throws\s[\w.,\s]+)?(?:\{\s*|=>.*)?$
            | ^\s+(?:public|private|protected|internal)\s+\w+\s*\([^;]*$",
    },
    OutlineLanguage {
        files: &[
            "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "hxx", "m", "mm", "cu", "ino",
        ],
        pattern: r"(?x) ^(?:typedef|struct|union|enum|class|namespace|template|extern\s+.C.|\#\s*define|@interface|@implementation|@protocol|[-+]\s*\()
            | ^\s+(?:class|struct|enum|union)\s+\w+[^;]*\{?\s*$
            | ^[A-Za-z_][\w\s\*&:<>,~\[\]]*\([^;]*$",
    },
    OutlineLanguage {
        files: &["rb", "rake", "gemspec", "Rakefile"],
        pattern: r"^\s*(?:(?:private|protected|public)\s+)?(?:def|class|module)\s|^\s*(?:describe|context|task|namespace)\s|^\s*[A-Z][A-Z0-9_]+\s*=",
    },
    OutlineLanguage {
        files: &["php", "phtml"],
        pattern: r"^\s*(?:(?:public|private|protected|static|final|abstract|readonly)\s+)*(?:function\s|class\s|interface\s|trait\s|enum\s|const\s|namespace\s)",
    },
    OutlineLanguage {
        files: &["sh", "bash", "zsh", "ksh", "bats"],
        pattern: r"^\s*(?:function\s+[\w:.-]+|[\w:.-]+\s*\(\s*\))",
    },
    OutlineLanguage {
        files: &["ps1", "psm1"],
        pattern: r"(?i)^\s*(?:function|filter|class|enum|workflow)\s",
    },
    OutlineLanguage {
        files: &["sql", "ddl", "pgsql", "plsql"],
        pattern: r"(?i)^\s*(?:create|alter|drop|rename|grant|revoke)\s",
    },
    OutlineLanguage {
        files: &["md", "mdx", "markdown"],
        pattern: r"^#{1,6}\s",
    },
    OutlineLanguage {
        files: &["rst", "adoc", "asciidoc"],
        pattern: r"^={1,6}\s|^\.\.\s+_?\w",
    },
    OutlineLanguage {
        files: &["toml", "ini", "cfg", "conf", "properties", "editorconfig"],
        pattern: r"^\s*\[",
    },
    OutlineLanguage {
        files: &["yml", "yaml"],
        pattern: r#"^(?:  )?[\w"'./$-][\w"'./$ -]*:(?:\s|$)"#,
    },
    OutlineLanguage {
        files: &["json", "jsonc", "json5"],
        pattern: r#"^(?:  |\t| {4})"[^"]+"\s*:"#,
    },
    OutlineLanguage {
        files: &["proto"],
        pattern: r"^\s*(?:package|message|service|enum|rpc|extend|oneof)\s",
    },
    OutlineLanguage {
        files: &["graphql", "gql"],
        pattern: r"^(?:extend\s+)?(?:type|input|enum|interface|union|scalar|directive|query|mutation|fragment|schema)\b",
    },
    OutlineLanguage {
        files: &["tf", "tfvars", "hcl"],
        pattern: r#"^\w+(?:\s+"[^"]*")*\s*\{|^\w+\s*="#,
    },
    OutlineLanguage {
        files: &["mk", "Makefile", "GNUmakefile", "makefile"],
        pattern: r"^[\w./%$(){}-][^=#]*:(?:[^=]|$)|^define\s",
    },
    OutlineLanguage {
        files: &["Dockerfile", "dockerfile", "Containerfile"],
        pattern: r"(?i)^(?:from|entrypoint|cmd|expose|user)\s",
    },
    OutlineLanguage {
        files: &["css", "scss", "less", "sass"],
        pattern: r"^[^\s{}/*][^{;]*\{|^@\w",
    },
    OutlineLanguage {
        files: &["ex", "exs"],
        pattern: r"^\s*(?:defp?|defmodule|defmacrop?|defprotocol|defimpl|defstruct|test|describe)\s",
    },
    OutlineLanguage {
        files: &["erl", "hrl"],
        pattern: r"^-\w+\(|^[a-z]\w*\(.*->",
    },
    OutlineLanguage {
        files: &["lua"],
        pattern: r"^\s*(?:local\s+)?function\b|^\s*[\w.]+\s*=\s*function\b",
    },
    OutlineLanguage {
        files: &["pl", "pm", "t"],
        pattern: r"^\s*(?:sub|package)\s",
    },
    OutlineLanguage {
        files: &["hs"],
        pattern: r"^[a-z_][\w']*\s*::|^(?:data|newtype|class|instance|module|type)\s",
    },
    OutlineLanguage {
        files: &["ml", "mli", "fs", "fsi"],
        pattern: r"^\s*(?:let|module|type|val|exception|open|and)\s",
    },
    OutlineLanguage {
        files: &["zig"],
        pattern: r"^\s*(?:pub\s+)?(?:export\s+)?(?:inline\s+)?(?:fn|const|test)\s",
    },
    OutlineLanguage {
        files: &["r", "R"],
        pattern: r"^\s*[\w.]+\s*(?:<-|=)\s*function\b",
    },
    OutlineLanguage {
        files: &["jl"],
        pattern: r"^\s*(?:function|struct|mutable|abstract|module|macro|const)\s",
    },
    OutlineLanguage {
        files: &["clj", "cljs", "cljc", "lisp", "el", "scm"],
        pattern: r"^\((?:def|ns|cl-def)",
    },
    OutlineLanguage {
        files: &["html", "htm", "xml", "xaml"],
        pattern: r#"<(?:script|form|template|h[1-3]|section|main)\b|\sid=""#,
    },
    OutlineLanguage {
        files: &["sol"],
        pattern: r"^\s*(?:abstract\s+)?(?:contract|library|interface|function|modifier|event|struct|enum|error|constructor)\b",
    },
    OutlineLanguage {
        files: &["vb", "bas"],
        pattern: r"(?i)^\s*(?:(?:public|private|protected|friend|shared|overrides)\s+)*(?:sub|function|class|module|property|interface)\s",
    },
    OutlineLanguage {
        files: &["tex"],
        pattern: r"^\s*\\(?:part|chapter|(?:sub)*section|newcommand|begin\{document)",
    },
];

static COMPILED: [OnceLock<Option<Regex>>; LANGUAGES.len()] =
    [const { OnceLock::new() }; LANGUAGES.len()];

pub(super) fn call(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let path = argument::file(tree, arguments)?;
    let name = tree.name(path);
    let text = tree
        .text(path)
        .map_err(|why| format!("`{name}` is not shown: {why}"))?;
    let count = text.lines().count();
    let Some(pattern) = pattern_of(path) else {
        return Err(format!(
            "no outline for files like `{name}`: it has {count} lines, use read_lines or search"
        ));
    };
    let mut defined = definitions(pattern, &text).peekable();
    if defined.peek().is_none() {
        return Err(format!(
            "no definitions found in `{name}`; it has {count} lines, use read_lines"
        ));
    }
    let mut fits = page.say(&format!("{name}, {count} lines; definitions:"));
    for (shown, (n, line)) in defined.enumerate() {
        fits = fits && shown < MAX_LINES && page.show(path, n, &cut(line, MAX_LINE));
        if !fits {
            page.close(&format!(
                "(no room for definitions from line {n} on: use read_lines or search)"
            ));
            break;
        }
    }
    Ok(page)
}

fn pattern_of(path: &RepoPath) -> Option<&'static Regex> {
    let name = std::str::from_utf8(path.file_name()).ok()?;
    let extension = name
        .rsplit_once('.')
        .map(|(_, e)| e)
        .filter(|e| !e.is_empty());
    let lower = extension.map(str::to_ascii_lowercase);
    let names = [Some(name), extension, lower.as_deref()];
    // Match `Dockerfile.dev` by the part before the dot.
    let start = name
        .split_once('.')
        .map(|(first, _)| first)
        .filter(|first| first.len() > 6);
    let at = LANGUAGES
        .iter()
        .position(|l| l.files.iter().any(|known| names.contains(&Some(*known))))
        .or_else(|| {
            LANGUAGES
                .iter()
                .position(|l| l.files.iter().any(|known| start == Some(*known)))
        })?;
    COMPILED[at]
        .get_or_init(|| Regex::new(LANGUAGES[at].pattern).ok())
        .as_ref()
}

fn definitions<'t>(pattern: &'t Regex, text: &'t str) -> impl Iterator<Item = (LineNo, &'t str)> {
    let lines = (1u32..).zip(text.lines());
    let lines = lines
        .filter(|(_, line)| line.len() < 2_000 && pattern.is_match(line) && !is_statement(line));
    lines.filter_map(|(n, line)| Some((LineNo::new(n)?, line.trim_end())))
}

/// Returns true if a line starts with a keyword of a statement, such as `if (x) {`.
fn is_statement(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches('}').trim_start();
    let end = line
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    // `function name(` is a definition, and so are class members named like one of these keywords.
    match word {
        "function" => !rest.starts_with([' ', '*']),
        "with" | "case" | "do" => rest.starts_with([' ', '(', ':']),
        _ => STATEMENTS.contains(&word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(name: &str, text: &str) -> Vec<u32> {
        let pattern = pattern_of(&RepoPath::from(name))
            .unwrap_or_else(|| unreachable!("no language for {name}"));
        definitions(pattern, text).map(|(n, _)| n.get()).collect()
    }

    #[test]
    fn every_pattern_compiles() {
        for (at, language) in LANGUAGES.iter().enumerate() {
            let compiled = Regex::new(language.pattern);
            assert!(
                compiled.is_ok(),
                "{:?}: {:?}",
                language.files,
                compiled.err()
            );
            assert!(
                COMPILED[at].get().is_none() || COMPILED[at].get().is_some_and(Option::is_some)
            );
        }
    }

    #[test]
    fn finds_definitions_and_no_statements() {
        let cases: &[(&str, &str, &[u32])] = &[
            (
                "src/a.rs",
                "use x;\npub(crate) async fn go() {\n    let a = 1;\n}\nimpl<T> A for B<T> {\n    const MAX: u8 = 1;\n    fn f(&self) {}\n}\nconst fn c() {}\nmacro_rules! m {\n",
                &[2, 5, 6, 7, 9, 10],
            ),
            (
                "a.py",
                "import os\nLIMIT = 3\nclass A(B):\n    async def f(self):\n        if x == 1:\n            return f(x)\nx == 2\n",
                &[2, 3, 4],
            ),
            (
                "a.ts",
                "import x from 'y';\nexport const a = 1;\nexport default class A {\n  private async go(x: number): Promise<void> {\n    if (x) {\n      for (const y of z) {\n    call(x);\n  }\n  handler = async (e) => {\n}\ninterface B {\nfunction f() {\n  } else if (y) {\n    return go(x) {\n",
                &[2, 3, 4, 9, 11, 12],
            ),
            (
                "a.go",
                "package a\nimport \"x\"\nfunc (s *S) Go() error {\n\treturn nil\n}\ntype S struct {\n",
                &[1, 3, 6],
            ),
            (
                "A.java",
                "package a;\npublic final class A extends B {\n    @Override\n    public String name(int a) throws IOException {\n        if (a > 1) {\n        return go(a);\n        int x = call(a);\n    }\n    private A(int x) {\n",
                &[2, 4, 9],
            ),
            (
                "a.c",
                "#include <x.h>\n#define MAX 3\nstatic int\nf(int a)\n{\n    g(a);\n    return 1;\n}\nint x = 3;\nstruct s {\n",
                &[2, 4, 10],
            ),
            (
                "a.sql",
                "-- x\ncreate table a (\n  id int\n);\nALTER TABLE a ADD b;\nselect 1;\n",
                &[2, 5],
            ),
            ("README.md", "# A\ntext\n## B\n#no\n", &[1, 3]),
            (
                "ci.yml",
                "on: push\njobs:\n  test:\n    runs-on: x\n",
                &[1, 2, 3],
            ),
            ("Dockerfile.dev", "FROM a\nRUN x\nUSER b\n", &[1, 3]),
            ("x.sh", "go() {\n  echo $(x)\n}\nfunction b {\n", &[1, 4]),
            (
                "x.rb",
                "class A\n  def f\n    x = 1\n  private def g\n",
                &[1, 2, 4],
            ),
        ];
        for (name, text, lines) in cases {
            assert_eq!(outline(name, text), *lines, "{name}");
        }
    }

    #[test]
    fn a_file_of_no_known_kind_has_no_outline() {
        for name in ["a", "a.bin", ".env", "x."] {
            assert!(pattern_of(&RepoPath::from(name)).is_none(), "{name}");
        }
    }
}
