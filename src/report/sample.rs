//! Sample reviews with every kind of content that a report can have; deterministic.

mod change;

use crate::ai::ask::Spent;
use crate::ai::{
    BackendUsage, Compliance, DesignViolation, Dropped, Models, Opinion, UnmetRequirement,
};
use crate::diff::{LineNo, ObjectId, RepoPath};
use crate::error::ExitStatus;
use crate::finding::listing::Unlisted;
use crate::finding::{
    Also, Category, Confidence, Decision, Disposition, Draft, Finding, FlowRole, FlowStep, Frame,
    FrameLine, LineSpan, Location, Severity, Suppression, Waiver, arrange,
};
use crate::request::Shard;
use crate::review::{Note, PolicyInfo, Review, SourceInfo, SourceKind, Stat, TestResults};
use crate::verdict::{
    Coverage, CoverageFailure, FailureCause, Outcome, Share, Skip, TestOutcome, Verdict,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// A finding under construction.
pub(crate) struct Sketch {
    draft: Draft,
    confidence: Confidence,
    frame: Option<Frame>,
}

/// Starts a finding.
pub(crate) fn sketch(
    rule: &str,
    severity: Severity,
    category: Category,
    title: &str,
    message: &str,
) -> Sketch {
    let draft = Draft {
        // IDs that no rule has, so that the catalogue can change.
        rule_id: format!("sample-{rule}"),
        location: None,
        severity,
        category,
        title: title.to_owned(),
        message: message.to_owned(),
        failure: None,
        suggestion: None,
        replacement: None,
        quote: String::new(),
        cwe: None,
        convention: None,
        also: Vec::new(),
        flow: Vec::new(),
        references: Vec::new(),
    };
    Sketch {
        draft,
        confidence: Confidence::High,
        frame: None,
    }
}

impl Sketch {
    /// Uses the ID of a real rule.
    pub(crate) fn rule(mut self, id: &str) -> Self {
        self.draft.rule_id = id.to_owned();
        self
    }

    /// Places the finding on a whole file.
    pub(crate) fn file(mut self, path: impl Into<Vec<u8>>) -> Self {
        self.draft.location = Some(Location {
            file: RepoPath::new(path),
            lines: None,
        });
        self
    }

    /// Places the finding on lines of a file. `lines` start with `+` or a space, as in a diff;
    /// `mark` is the text that the carets mark in line `at`.
    pub(crate) fn code(
        mut self,
        path: impl Into<Vec<u8>>,
        first: u32,
        at: u32,
        mark: &str,
        lines: &[&[u8]],
    ) -> Self {
        let line = &lines[(at - first) as usize][1..];
        let columns = memchr::memmem::find(line, mark.as_bytes())
            .filter(|_| !mark.is_empty())
            .map(|start| (start as u32, (start + mark.len()) as u32));
        let no = LineNo::new(at).unwrap();
        let span = LineSpan {
            first: no,
            last: no,
            columns,
        };
        self.draft.location = Some(Location {
            file: RepoPath::new(path),
            lines: Some(span),
        });
        self.draft.quote = String::from_utf8_lossy(line).trim().to_owned();
        let lines = lines
            .iter()
            .map(|l| FrameLine {
                text: l[1..].to_vec(),
                skipped: 0,
                added: l[0] == b'+',
            })
            .collect();
        self.frame = Some(Frame {
            first: LineNo::new(first).unwrap(),
            lines,
        });
        self
    }

    /// Extends the finding over further lines.
    pub(crate) fn until(mut self, last: u32) -> Self {
        if let Some(span) = self.draft.location.as_mut().and_then(|l| l.lines.as_mut()) {
            span.last = LineNo::new(last).unwrap();
        }
        self
    }

    /// Removes bytes from the start of the frame's lines, as for lines that are too long to keep.
    pub(crate) fn skipped(mut self, bytes: u32) -> Self {
        for l in self.frame.iter_mut().flat_map(|f| &mut f.lines) {
            l.skipped = bytes;
        }
        if let Some((start, end)) = self
            .draft
            .location
            .as_mut()
            .and_then(|l| l.lines.as_mut())
            .and_then(|s| s.columns.as_mut())
        {
            *start += bytes;
            *end += bytes;
        }
        self
    }

    /// Adds another line that the finding involves.
    pub(crate) fn also(mut self, path: &str, line: u32, quote: &str) -> Self {
        let line = LineNo::new(line).unwrap();
        self.draft.also.push(Also {
            file: RepoPath::from(path),
            line,
            quote: quote.to_owned(),
        });
        self
    }

    /// Adds a step of the path of a value.
    pub(crate) fn step(mut self, role: FlowRole, line: u32, quote: &str) -> Self {
        self.draft.flow.push(FlowStep {
            line: LineNo::new(line).unwrap(),
            role,
            quote: quote.to_owned(),
        });
        self
    }

    pub(crate) fn suggest(mut self, text: &str) -> Self {
        self.draft.suggestion = Some(text.to_owned());
        self
    }

    /// Adds a replacement for the finding's lines.
    pub(crate) fn replace(mut self, code: &str) -> Self {
        self.draft.replacement = Some(code.to_owned());
        self
    }

    pub(crate) fn cwe(mut self, cwe: u32) -> Self {
        self.draft.cwe = Some(cwe);
        self.draft.references = vec![format!("https://cwe.mitre.org/data/definitions/{cwe}.html")];
        self
    }

    pub(crate) fn done(self) -> Finding {
        let mut f = Finding::sample(self.draft, self.confidence);
        f.frame = self.frame;
        f
    }
}

/// A complete review of an empty change, by the rules alone.
pub(crate) fn empty() -> Review {
    Review {
        decisions: Default::default(),
        source: SourceInfo {
            kind: SourceKind::Staged,
            label: "staged changes".to_owned(),
            ..SourceInfo::default()
        },
        outcome: Outcome::NothingToReview,
        verdict: Verdict::Pass,
        exit: ExitStatus::Pass,
        findings: Vec::new(),
        unlisted: Unlisted::default(),
        notes: Vec::new(),
        coverage: Coverage::default(),
        stat: Stat::default(),
        first_change: None,
        policy: PolicyInfo {
            origin: "default".to_owned(),
            hash: "0123456789abcdef".to_owned(),
        },
        rules_hash: "fedcba9876543210".to_owned(),
        rules_only: true,
        models: Models::default(),
        context: Vec::new(),
        tests: None,
        timestamp: jiff::Timestamp::from_second(1_700_000_000).unwrap(),
        duration: Duration::from_micros(700),
        judged_by: Box::default(),
        place: None,
        is_elsewhere: false,
        merge_inputs: Default::default(),
        record: None,
        unrecorded: Vec::new(),
        session: None,
    }
}

/// A review of three files without findings.
pub(crate) fn clean() -> Review {
    Review {
        outcome: Outcome::Reviewed,
        coverage: Coverage {
            files_total: 3,
            files_reviewed: 3,
            hunks_total: 7,
            hunks_reviewed: 7,
            ..Coverage::default()
        },
        duration: Duration::from_millis(12),
        ..empty()
    }
}

/// A review of the second of four parts of a tree.
pub(crate) fn sharded() -> Review {
    let mut review = clean();
    review.source = SourceInfo {
        kind: SourceKind::Tree,
        head: Some("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned()),
        tree: Some("ffeeddccbbaa99887766554433221100ffeeddcc".to_owned()),
        label: "the tree of commit 1a2b3c4d5e6f".to_owned(),
        shard: Shard::new(2, 4),
        ..SourceInfo::default()
    };
    review
}

/// An incomplete review without findings.
pub(crate) fn incomplete(exit: ExitStatus) -> Review {
    let mut review = clean();
    review.outcome = Outcome::Incomplete;
    review.verdict = Verdict::Incomplete;
    review.exit = exit;
    review.coverage.files_reviewed = 2;
    review.coverage.failed = vec![CoverageFailure::in_file(
        RepoPath::from("data/dump.sql"),
        FailureCause::Other("the object is damaged".to_owned()),
    )];
    review
}

/// A review with warnings only.
pub(crate) fn warned() -> Review {
    let mut review = clean();
    review.verdict = Verdict::Warn;
    review.findings = vec![debugger()];
    review
}

/// Returns a minor finding on one line.
fn debugger() -> Finding {
    sketch(
        "js-debugger",
        Severity::Minor,
        Category::BestPractice,
        "Debugger statement",
        "The browser pauses here if its developer tools are open.",
    )
    .code(
        "web/cart.ts",
        7,
        8,
        "debugger",
        &[
            b" export function total(cart: Cart) {",
            b"+  debugger;",
            b"   return sum(cart);",
        ],
    )
    .suggest("Remove the statement.")
    .done()
}

/// A review with every kind of content.
pub(crate) fn full() -> Review {
    let mut findings = vec![debugger()];
    findings.push(
        sketch(
            "lockfile-drift",
            Severity::Minor,
            Category::BestPractice,
            "Lock file changed without its manifest",
            "package-lock.json changed and package.json did not, so the installed versions differ from the declared ones.",
        )
        .done(),
    );
    findings.push(
        sketch(
            "attributes-hide-files",
            Severity::Major,
            Category::Security,
            "Git attributes hide files from review",
            "`*.py -diff` makes git and forges show these files as binary.",
        )
        .file(".gitattributes")
        .suggest("Remove the attribute.")
        .done(),
    );
    findings.push(
        sketch(
            "aws-access-key-id",
            Severity::Critical,
            Category::Security,
            "AWS access key ID in source code",
            "Anyone who can read the repository, or a copy of it, can use the key that belongs to this ID.",
        )
        .code(
            "src/pay/client.py",
            11,
            12,
            "AKIA****************",
            &[b" def connect():", b"+    key = \"AKIA****************\"", b"     return client(\"s3\", key)"],
        )
        .suggest("Revoke the key, then read its replacement from the environment or a secret store.")
        .cwe(798)
        .done(),
    );
    let padding = "x=1;".repeat(60);
    let long = format!("+{padding}eval(location.hash);{padding}");
    findings.push(
        sketch(
            "js-eval",
            Severity::Major,
            Category::Security,
            "eval of a variable",
            "Runs the fragment of the URL as code.",
        )
        .code(
            "dist/app.min.js",
            1,
            1,
            "eval(location.hash)",
            &[long.as_bytes()],
        )
        .skipped(4_000)
        .cwe(95)
        .done(),
    );
    findings.push(
        sketch(
            "py-yaml-load",
            Severity::Major,
            Category::Security,
            "yaml.load constructs arbitrary objects",
            "A document can run code while it is parsed.",
        )
        .code(
            b"caf\xe9/na\xc3\xafve.py",
            3,
            4,
            "yaml.load(text)",
            &[b" text = b\"\xff\xfe\".decode()", b"+doc = yaml.load(text)"],
        )
        .suggest("Use `yaml.safe_load`.")
        .replace("doc = yaml.safe_load(text)")
        .cwe(502)
        .done(),
    );
    findings.push(
        sketch(
            "go-exec-shell",
            Severity::Major,
            Category::Security,
            "Shell command built from a variable",
            "A value that contains `;` or `$(…)` runs another command.",
        )
        .code(
            "cmd/serve/main.go",
            41,
            42,
            "exec.Command(\"sh\", \"-c\", \"ls \"+dir)",
            &[
                "\tdir := \"日本語/\" + name".as_bytes(),
                "+\tlabel := \"日本\"; out := exec.Command(\"sh\", \"-c\", \"ls \"+dir)".as_bytes(),
                b" \treturn out.Run()",
            ],
        )
        .step(FlowRole::Source, 36, "r.URL.Query().Get(\"dir\")")
        .step(FlowRole::Through, 41, "dir")
        .step(
            FlowRole::Sink,
            42,
            "exec.Command(\"sh\", \"-c\", \"ls \"+dir)",
        )
        .also("cmd/serve/route.go", 7, "go list(r.URL.Path)")
        .cwe(78)
        .done(),
    );
    findings.push(
        sketch(
            "hidden-bidi",
            Severity::Critical,
            Category::Security,
            "Bidirectional control characters",
            "The code runs in another order than it is displayed.\u{1b}]0;owned\u{7}",
        )
        .code(
            "::error file=x::y\n::set-output name=a::b.c",
            2,
            3,
            "\u{202e}",
            &[
                b" int ok = 1;",
                "+/* \u{202e} } if (admin) { \u{2066} */ \x1b[2K ##[error]x".as_bytes(),
                b" ::std::move(x);",
            ],
        )
        .done(),
    );
    findings.push(
        sketch(
            "conflict-marker",
            Severity::Critical,
            Category::Bug,
            "Conflict markers",
            "The file contains both sides of a merge.",
        )
        .code(
            "src/lib.rs",
            8,
            9,
            "",
            &[
                b" fn a() {}",
                b"+<<<<<<< HEAD",
                b"+fn b() {}",
                b"+=======",
                b"+fn c() {}",
                b"+>>>>>>> topic",
                b" fn d() {}",
            ],
        )
        .until(13)
        .done(),
    );
    for n in [10, 20, 30, 40, 50, 60] {
        findings.push(
            sketch(
                "todo-comment",
                Severity::Suggestion,
                Category::BestPractice,
                "TODO comment",
                "The comment announces unfinished work.",
            )
            .code("src/notes.rs", n, n, "TODO", &[b"+    // TODO: later"])
            .done(),
        );
    }
    let mut suppressed = sketch(
        "weak-hash",
        Severity::Minor,
        Category::Security,
        "MD5 digest",
        "MD5 collisions can be constructed.",
    )
    .code("src/etag.rs", 5, 5, "md5", &[b"+let tag = md5(body);"])
    .done();
    suppressed.suppressed = Some(Suppression {
        by: "inline",
        reason: "an ETag is not a secret".to_owned(),
    });
    findings.push(suppressed);
    let mut deferred = sketch(
        "weak-digest",
        Severity::Minor,
        Category::Security,
        "SHA-1 digest",
        "SHA-1 collisions can be constructed.",
    )
    .code("src/cache.rs", 7, 7, "sha1", &[b"+let key = sha1(body);"])
    .done();
    deferred.disposition = Some(Disposition {
        decision: Decision::Deferred,
        reason: "after the migration".to_owned(),
        owner: "a.thor".to_owned(),
        expires: Some(jiff::civil::date(2026, 4, 1)),
    });
    findings.push(deferred);
    let mut waived = sketch(
        "tls-verify-off",
        Severity::Major,
        Category::Security,
        "Certificate verification disabled",
        "Anyone on the network path can impersonate the server.",
    )
    .code(
        "tests/probe.py",
        9,
        9,
        "verify=False",
        &[b"+requests.get(url, verify=False)"],
    )
    .cwe(295)
    .done();
    waived.waived = Some(Waiver {
        reason: "loopback only, INC-7".to_owned(),
        actor: "a.thor".to_owned(),
        link: None,
    });
    findings.push(waived);
    let mut old = sketch(
        "generic-password",
        Severity::Major,
        Category::Security,
        "Password in source code",
        "A later commit removes it, but this commit stays readable.",
    )
    .code("deploy.sh", 2, 2, "********", &[b"+PASSWORD=********"])
    .done();
    old.commit = ObjectId::from_hex("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d");
    old.frame = None;
    findings.push(old);

    let mut findings = arrange(findings);
    for f in &mut findings {
        f.blocking = f.counts() && f.severity() >= Severity::Major;
    }
    Review {
        decisions: Default::default(),
        source: SourceInfo {
            kind: SourceKind::Branch,
            base: Some("00112233445566778899aabbccddeeff00112233".to_owned()),
            head: Some("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned()),
            tree: Some("ffeeddccbbaa99887766554433221100ffeeddcc".to_owned()),
            base_tree: None,
            label: "branch HEAD against origin/main".to_owned(),
            is_history: false,
            checked_out: None,
            shard: None,
            repository: None,
        },
        outcome: Outcome::Incomplete,
        verdict: Verdict::Block,
        exit: ExitStatus::Block,
        findings,
        unlisted: Unlisted::default(),
        notes: vec![
            Note {
                file: None,
                line: None,
                text: "no conventions file (CLAUDE.md, AGENTS.md)".to_owned(),
                origin: "policy".to_owned(),
            },
            Note {
                file: Some(RepoPath::from("src/etag.rs")),
                line: LineNo::new(5),
                text: "the suppression was added by this change and would not count in gate mode"
                    .to_owned(),
                origin: "rules".to_owned(),
            },
        ],
        coverage: Coverage {
            cached: 0,
            records: 2,
            files_total: 14,
            files_reviewed: 11,
            by_reviewer: BTreeMap::from([
                (
                    "local".to_owned(),
                    Share {
                        files_reviewed: 11,
                        files_total: 12,
                    },
                ),
                (
                    "rules".to_owned(),
                    Share {
                        files_reviewed: 11,
                        files_total: 14,
                    },
                ),
            ]),
            hunks_total: 20,
            hunks_reviewed: 18,
            hunks_by_rules: 18,
            skipped: vec![
                (RepoPath::from("assets/logo.png"), Skip::Binary),
                (RepoPath::from("vendor/a.js"), Skip::Ignored),
                (RepoPath::from("vendor/b.js"), Skip::Ignored),
            ],
            failed: vec![
                CoverageFailure::in_file(
                    RepoPath::from("data/dump.sql"),
                    FailureCause::Other("the object is damaged: bad header\u{1b}[31m".to_owned()),
                ),
                CoverageFailure::whole(FailureCause::Other(
                    "backend claude did not answer".to_owned(),
                )),
            ],
        },
        stat: Stat::default(),
        first_change: Some(Location {
            file: RepoPath::from("cmd/serve/main.go"),
            lines: LineNo::new(42).map(|n| LineSpan {
                first: n,
                last: n,
                columns: None,
            }),
        }),
        policy: PolicyInfo {
            origin: "base@001122334455".to_owned(),
            hash: "0123456789abcdef".to_owned(),
        },
        rules_hash: "fedcba9876543210".to_owned(),
        rules_only: false,
        models: models(),
        context: Vec::new(),
        tests: Some(TestResults {
            outcome: TestOutcome::Failed,
            summary: "41 passed, 1 failed".to_owned(),
            failing: vec!["etag::weak_tags_compare".to_owned()],
            coverage: Some("92%".to_owned()),
        }),
        timestamp: jiff::Timestamp::from_second(1_700_000_000).unwrap(),
        duration: Duration::from_millis(3_420),
        judged_by: Box::default(),
        place: None,
        is_elsewhere: false,
        merge_inputs: Default::default(),
        record: Some(change::record()),
        unrecorded: Vec::new(),
        session: None,
    }
}

/// Returns the results of two models, with everything that reports show of them.
fn models() -> Models {
    Models {
        asked: vec!["claude".to_owned(), "local".to_owned()],
        owed: true,
        usage: vec![BackendUsage {
            backend: "local".to_owned(),
            model: "small-coder".to_owned(),
            spent: Spent {
                requests: 3,
                input_tokens: 12_034,
                cached_tokens: 8_000,
                output_tokens: 540,
                cost_usd: Some(0.031),
                ..Spent::default()
            },
            from_cache: 0,
            failed: 0,
            batch: false,
            earlier_usd: None,
            duration: Duration::from_millis(8_200),
        }],
        dropped: vec![Dropped {
            backend: "local".to_owned(),
            claim: "the cache is never\u{1b}[2J cleared".to_owned(),
            why: "its quote is not in the change".into(),
        }],
        compliance: Some(Compliance {
            follows: false,
            violations: vec![DesignViolation {
                issue: "pools refer to exercises".to_owned(),
                description: "the design keeps them independent".to_owned(),
                impact: Severity::Major,
                reference: Some("docs/design.md#Pools".to_owned()),
                recommendation: Some("drop the field".to_owned()),
            }],
        }),
        setbacks: Vec::new(),
        no_conventions: None,
        criteria: Vec::new(),
        opinions: vec![Opinion {
            backend: "local".to_owned(),
            text: "The change adds pools. Two handlers lack an authorization check.".to_owned(),
        }],
        missing: vec![UnmetRequirement {
            requirement: "pools have a display name".to_owned(),
            reference: Some("docs/design.md#Pools".to_owned()),
            severity: Severity::Minor,
        }],
    }
}
