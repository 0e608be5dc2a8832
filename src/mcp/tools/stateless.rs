//! Reviews that are not stored: submitted code, staged or unstaged changes, a commit, a branch.

use super::answers::{kind, schema};
use super::review_words as words;
use super::{McpTool, ToolCall, ToolEffect, is_pattern};
use crate::ai::Retry;
use crate::error::{Error, Result};
use crate::finding::Category;
use crate::mcp::answer::{self, ToolAnswer, object};
use crate::mcp::args::{Arg, ArgType};
use crate::mcp::fence::{Served, revision};
use crate::report;
use crate::report::names::SecretNames;
use crate::request::{Depth, Input, ReviewRequest, Source};
use crate::review::{self, Review, SourceKind};
use crate::wire;
use crate::wire::answer::{Metadata, Reported};
use serde_json::Value;

/// Bytes of submitted code, at most.
const CODE: usize = 8 << 20;

pub(in crate::mcp) const FOCUS: ArgType = ArgType::Choices {
    of: AREAS,
    also: |s| Category::parse(s).is_some(),
};
const AREAS: &[&str] = &[
    "bugs",
    "security",
    "performance",
    "style",
    "best-practices",
    "architecture",
    "design",
    "missing-requirements",
    "tests",
];

const PROVIDER: Arg = Arg {
    name: "provider",
    about: "Backend that the policy enables. Default: all backends of the policy.",
    kind: ArgType::Text(128),
    required: false,
};
const DEPTH: Arg = Arg {
    name: "review_depth",
    about: "quick: one pass. thorough: several, with tools that read the repository. Default: the policy's.",
    kind: ArgType::Choice {
        of: &["quick", "thorough"],
        default: None,
    },
    required: false,
};
const AREAS_ARG: Arg = Arg {
    name: "focus_areas",
    about: "Categories to focus on. Default: all.",
    kind: FOCUS,
    required: false,
};
const PATH: Arg = Arg {
    name: "repository_path",
    about: "Folder of the git repository, at or below the served folder. Default: the served folder.",
    kind: ArgType::Text(4096),
    required: false,
};

/// Common fields of these tools: they read, ask the backends of the policy, and store nothing.
const LOOK: McpTool = McpTool {
    name: "",
    title: "",
    about: "",
    args: &[],
    answers,
    effect: ToolEffect::Reads,
    asks: true,
    run: |_| Err(Error::usage("this tool does nothing")),
    refused: None,
};

pub(super) const TOOLS: &[McpTool] = &[
    McpTool {
        name: "review_code",
        title: "Review code",
        about: "Reviews the code in the argument, every line. Stores nothing.",
        args: &[
            Arg {
                name: "code",
                about: "The code.",
                kind: ArgType::Text(CODE),
                required: true,
            },
            Arg {
                name: "language",
                about: "The language, such as python, go or rust.",
                kind: ArgType::Text(40),
                required: false,
            },
            PROVIDER,
            DEPTH,
            AREAS_ARG,
        ],
        run: code,
        ..LOOK
    },
    McpTool {
        name: "review_staged",
        title: "Review staged changes",
        about: "Reviews staged changes (HEAD against the index). Stores nothing; for several rounds, use request_review.",
        args: &[PATH, PROVIDER, DEPTH, AREAS_ARG],
        run: |call| in_repository(call, Source::Staged, Vec::new()),
        ..LOOK
    },
    McpTool {
        name: "review_unstaged",
        title: "Review unstaged changes",
        about: "Reviews unstaged changes (the index against the worktree), without untracked files. Stores nothing.",
        args: &[PATH, PROVIDER, DEPTH, AREAS_ARG],
        run: |call| in_repository(call, Source::Unstaged { untracked: false }, Vec::new()),
        ..LOOK
    },
    McpTool {
        name: "review_commit",
        title: "Review a commit",
        about: "Reviews one commit against its first parent. Stores nothing.",
        args: &[
            Arg {
                name: "commit_sha",
                about: "The commit: its ID, or a name such as HEAD, HEAD~1 or v1.2.",
                kind: ArgType::Text(1024),
                required: true,
            },
            PATH,
            PROVIDER,
            DEPTH,
            AREAS_ARG,
        ],
        run: commit,
        ..LOOK
    },
    McpTool {
        name: "review_branch",
        title: "Review a branch",
        about: "Reviews a branch against its merge base, and checks each of its commits for secrets. Stores nothing.",
        args: &[
            Arg {
                name: "branch",
                about: "The revision to review. Default: HEAD.",
                kind: ArgType::Text(1024),
                required: false,
            },
            Arg {
                name: "base_branch",
                about: "The base revision. Default: the upstream or the default branch.",
                kind: ArgType::Text(1024),
                required: false,
            },
            Arg {
                name: "file_list",
                about: "Only these files (paths from repository_path, or globs).",
                kind: ArgType::Texts {
                    most: 1000,
                    bytes: 4096,
                },
                required: false,
            },
            PATH,
            PROVIDER,
            DEPTH,
            AREAS_ARG,
        ],
        run: branch,
        ..LOOK
    },
];

fn code(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let text = call.given.text("code").unwrap_or_default();
    if text.trim().is_empty() {
        return Err(Error::usage("code is empty")
            .hint("hand over the code, or use review_staged for what is staged"));
    }
    let name = format!(
        "code.{}",
        extension(call.given.text("language").unwrap_or_default())
    );
    let source = Source::Code(vec![Input::Text {
        name,
        text: text.to_owned(),
    }]);
    let home = call.fence.home(call.env)?;
    answer(call, &asked(call, source, &home)?)
}

fn in_repository(call: &ToolCall<'_>, source: Source, files: Vec<String>) -> Result<ToolAnswer> {
    let named = call.given.text("repository_path");
    let served = call.fence.repository(named, call.env)?;
    // Globs are relative to the named folder.
    let served = if named.is_some() {
        served
    } else {
        served.whole()
    };
    let request = ReviewRequest {
        files,
        ..asked(call, source, &served)?
    };
    answer(call, &request)
}

fn commit(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let rev = revision(
        "commit_sha",
        call.given.text("commit_sha").unwrap_or_default(),
    )?
    .to_owned();
    in_repository(call, Source::Commit { rev, parent: None }, Vec::new())
}

fn branch(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let (head, base) = (
        named_revision(call, "branch")?,
        named_revision(call, "base_branch")?,
    );
    let files = call.given.texts("file_list");
    if let Some(bad) = files.iter().find(|f| !is_pattern(f)) {
        return Err(Error::usage(format!(
            "file_list: {} is not a path below repository_path",
            super::args::shown(bad)
        )));
    }
    let files = files.into_iter().map(str::to_owned).collect();
    in_repository(call, Source::Branch { head, base }, files)
}

/// Returns an argument that names a revision.
fn named_revision(call: &ToolCall<'_>, name: &str) -> Result<Option<String>> {
    call.given
        .text(name)
        .map(|r| revision(name, r).map(str::to_owned))
        .transpose()
}

/// Builds the request from the arguments that all these tools share.
fn asked(call: &ToolCall<'_>, source: Source, served: &Served) -> Result<ReviewRequest> {
    let mut request = call.request(source, served);
    request.backends = call.provider(served)?;
    request.overrides.depth = depth(call);
    request.overrides.focus = focus(call);
    Ok(request)
}

pub(super) fn depth(call: &ToolCall<'_>) -> Option<Depth> {
    call.given.text("review_depth").map(|d| {
        if d == "thorough" {
            Depth::Thorough
        } else {
            Depth::Quick
        }
    })
}

/// Returns the selected categories; `None` if the call selects none.
fn focus(call: &ToolCall<'_>) -> Option<Vec<Category>> {
    let areas: Vec<_> = call
        .given
        .texts("focus_areas")
        .into_iter()
        .filter_map(Category::parse)
        .collect();
    (!areas.is_empty()).then_some(areas)
}

fn answer(call: &ToolCall<'_>, request: &ReviewRequest) -> Result<ToolAnswer> {
    Ok(told(&review::run(request, &call.world())?))
}

/// Creates the answer for a review.
pub(super) fn told(review: &Review) -> ToolAnswer {
    let report = report::json::report(review);
    let (provider, metadata) = (provider(review), metadata(review));
    let whole = Reported {
        report,
        provider,
        metadata,
        status: None,
        retryable: None,
        retry_after_s: None,
    };
    let mut content = object(wire::value(&whole));
    let report = whole.report;
    let mut text = words::report(&report);
    if report.outcome == wire::Outcome::Incomplete || report.verdict == wire::Verdict::Incomplete {
        let retry = Retry::of(&review.models.setbacks);
        text = answer::partly(
            retry,
            report.verdict == wire::Verdict::Block,
            &mut content,
            &text,
        );
    }
    let names = SecretNames::of(review);
    content.values_mut().for_each(|member| names.mask(member));
    ToolAnswer::new(content, names.masked(&text))
}

/// Returns the backends that were asked, or `rules` if none was.
fn provider(review: &Review) -> String {
    let asked: Vec<&str> = review
        .models
        .usage
        .iter()
        .map(|u| u.backend.as_str())
        .collect();
    if asked.is_empty() {
        "rules".to_owned()
    } else {
        asked.join(", ")
    }
}

fn metadata(review: &Review) -> Metadata {
    let models: Vec<_> = review
        .models
        .usage
        .iter()
        .map(|u| u.model.as_str())
        .filter(|m| !m.is_empty())
        .collect();
    Metadata {
        source_type: match review.source.kind {
            SourceKind::Code => "arbitrary",
            kind => kind.name(),
        }
        .to_owned(),
        file_count: review.coverage.files_total,
        line_count: review.stat.shown,
        lines_added: review.stat.added,
        lines_removed: review.stat.removed,
        model: (!models.is_empty()).then(|| models.join(", ")),
    }
}

/// Returns the file extension of a language; an unknown language is plain text.
fn extension(language: &str) -> &'static str {
    const KNOWN: &[(&str, &[&str])] = &[
        ("c", &["c"]),
        ("cc", &["c++", "cpp", "cc", "cxx"]),
        ("clj", &["clojure", "clj"]),
        ("cs", &["c#", "csharp", "cs"]),
        ("css", &["css", "scss"]),
        ("dart", &["dart"]),
        ("Dockerfile", &["dockerfile", "docker"]),
        ("ex", &["elixir", "ex", "exs"]),
        ("go", &["go", "golang"]),
        ("groovy", &["groovy"]),
        ("hs", &["haskell", "hs"]),
        ("html", &["html"]),
        ("java", &["java"]),
        ("js", &["javascript", "js", "node", "nodejs"]),
        ("json", &["json"]),
        ("jsx", &["jsx"]),
        ("kt", &["kotlin", "kt"]),
        ("lua", &["lua"]),
        ("md", &["markdown", "md"]),
        ("php", &["php"]),
        ("pl", &["perl", "pl"]),
        ("ps1", &["powershell", "ps1"]),
        ("py", &["python", "py", "python3"]),
        ("r", &["r"]),
        ("rb", &["ruby", "rb"]),
        ("rs", &["rust", "rs"]),
        ("scala", &["scala"]),
        ("sh", &["shell", "bash", "sh", "zsh"]),
        ("sql", &["sql", "postgresql", "mysql"]),
        ("swift", &["swift"]),
        ("tf", &["terraform", "hcl", "tf"]),
        ("toml", &["toml"]),
        ("ts", &["typescript", "ts"]),
        ("tsx", &["tsx"]),
        ("vue", &["vue"]),
        ("xml", &["xml"]),
        ("yml", &["yaml", "yml"]),
    ];
    let language = language.trim().to_ascii_lowercase();
    KNOWN
        .iter()
        .find(|(_, names)| names.contains(&language.as_str()))
        .map_or("txt", |(end, _)| end)
}

/// Returns the schema of the answers: the JSON report with the name of the reviewer.
pub(super) fn answers() -> Value {
    schema(&[kind::<Reported>])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_becomes_the_end_of_a_name_and_nothing_else() {
        assert_eq!(
            ["Python", "c++", "../../x", "rs\n", ""].map(extension),
            ["py", "cc", "txt", "rs", "txt"]
        );
    }
}
