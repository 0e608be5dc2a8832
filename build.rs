//! Checks the rule catalogue and the knowledge about data flow, and turns them into static tables,
//! so that a run neither parses nor builds rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

#[path = "src/rules/structural/ascii.rs"]
mod ascii;
#[path = "src/rules/calibration.rs"]
mod calibration;
#[path = "src/rules/expression/decode.rs"]
mod decode;
#[path = "src/rules/expression/encode.rs"]
mod encode;
#[path = "src/rules/format.rs"]
#[expect(dead_code, reason = "the build script uses a part of it")]
mod format;
#[path = "src/rules/flow/format.rs"]
#[expect(dead_code, reason = "the build script uses a part of it")]
mod knowledge;
#[path = "src/rules/needs/derive.rs"]
mod needs;
#[path = "src/rules/prefilter.rs"]
#[expect(dead_code, reason = "the build script uses a part of it")]
mod prefilter;
#[path = "src/rules/settings/format.rs"]
mod settings;
#[path = "src/rules/flow/slot.rs"]
mod slot;
#[path = "src/rules/needs/token.rs"]
mod token;

/// Shorter runs of bytes of tokens are in many lines, so they do not filter.
const LEAST_RUN: usize = 14;

/// A file of the catalogue.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<format::Rule>,
}

const CATALOG: &str = "src/rules/catalog";
const KNOWLEDGE: &str = "src/rules/knowledge";
const SETTINGS: &str = "src/rules/knowledge/terraform";

/// Links the binary to a fixed address if the platform allows it.
///
/// A small review takes about three milliseconds. Relocation of code that the review never runs
/// took a tenth of that. In return, the program's code has a known address, which is acceptable
/// because the program has no `unsafe`.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes values to build scripts in the environment"
)]
fn link_in_place() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={CATALOG}");
    println!("cargo::rerun-if-changed={KNOWLEDGE}");
    println!("cargo::rerun-if-changed=src/rules/calibration.rs");
    println!("cargo::rerun-if-changed=src/rules/expression");
    println!("cargo::rerun-if-changed=src/rules/flow/format.rs");
    println!("cargo::rerun-if-changed=src/rules/flow/format");
    println!("cargo::rerun-if-changed=src/rules/flow/slot.rs");
    println!("cargo::rerun-if-changed=src/rules/format.rs");
    println!("cargo::rerun-if-changed=src/rules/needs/derive.rs");
    println!("cargo::rerun-if-changed=src/rules/needs/token.rs");
    println!("cargo::rerun-if-changed=src/rules/prefilter.rs");
    println!("cargo::rerun-if-changed=src/rules/prefilter/pairs.txt");
    println!("cargo::rerun-if-changed=src/rules/settings/format.rs");
    println!("cargo::rerun-if-changed=src/rules/structural/ascii.rs");
    println!("cargo::rerun-if-changed=build.rs");
    link_in_place();
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            for f in faults {
                println!("cargo::error={}", f.replace('\n', " "));
            }
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes values to build scripts in the environment"
)]
fn build() -> Result<(), Vec<String>> {
    let (rules, hash) = read()?;
    let knowledge = knowledge::tables(KNOWLEDGE)?;
    let known: Vec<_> = rules
        .iter()
        .map(|r| (&*r.id, r.matcher.as_deref(), r.cwe))
        .collect();
    let settings = settings::tables(SETTINGS, &known)?;
    let hash = add(add(hash, knowledge.as_bytes()), settings.as_bytes());
    let mut catalog = tables(&rules, hash).map_err(|e| vec![e.to_string()])?;
    let parsed = parsed_patterns(&mut catalog, &rules).map_err(|e| vec![e.to_string()])?;
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| vec!["OUT_DIR is not set".to_owned()])?;
    let files = [
        ("catalog.rs", catalog.as_bytes()),
        ("patterns.bin", &parsed),
        ("knowledge.rs", knowledge.as_bytes()),
        ("settings.rs", settings.as_bytes()),
    ];
    for (name, bytes) in files {
        let out = Path::new(&out).join(name);
        std::fs::write(&out, bytes).map_err(|e| vec![format!("{}: {e}", out.display())])?;
    }
    Ok(())
}

/// Adds bytes to a hash (FNV-1a).
fn add(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, b| {
        (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Reads and checks every rule, in the order of file names. The second value is a hash of all
/// bytes.
fn read() -> Result<(Vec<format::Rule>, u64), Vec<String>> {
    let mut names = Vec::new();
    let dir = std::fs::read_dir(CATALOG).map_err(|e| vec![format!("{CATALOG}: {e}")])?;
    for entry in dir {
        let path = entry.map_err(|e| vec![format!("{CATALOG}: {e}")])?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            names.push(path);
        }
    }
    names.sort();
    let mut faults = Vec::new();
    let mut rules: Vec<format::Rule> = Vec::new();
    let mut homes: BTreeMap<String, String> = BTreeMap::new();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for path in names {
        let name = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Ok(t) => t,
            Err(e) => {
                faults.push(format!("{name}: {e}"));
                continue;
            }
        };
        hash = add(hash, text.as_bytes());
        let file: File = match toml::from_str(&text) {
            Ok(f) => f,
            Err(e) => {
                faults.push(format!("{name}: {e}"));
                continue;
            }
        };
        for rule in file.rule {
            let wrong = rule
                .faults()
                .into_iter()
                .chain(rule.sample_faults())
                .map(|f| f.to_string());
            let wrong = wrong.chain(calibration::fault(&rule));
            faults.extend(wrong.map(|f| format!("{name}: rule {:?}: {f}", rule.id)));
            if let Some(other) = homes.insert(rule.id.clone(), name.clone()) {
                faults.push(format!(
                    "{name}: rule {:?}: id: already used in {other}",
                    rule.id
                ));
            }
            rules.push(rule);
        }
    }
    for rule in &rules {
        for other in rule.samples.iter().flat_map(|s| &s.also) {
            if !homes.contains_key(other) {
                faults.push(format!(
                    "rule {:?}: sample: also: rule {other:?} not found",
                    rule.id
                ));
            }
        }
    }
    if faults.is_empty() {
        Ok((rules, hash))
    } else {
        Err(faults)
    }
}

/// Returns the tables as Rust source.
fn tables(rules: &[format::Rule], hash: u64) -> Result<String, std::fmt::Error> {
    let mut literals: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, rule) in rules.iter().enumerate() {
        for l in rule
            .literals
            .iter()
            .cloned()
            .chain(matcher_literals(rule.matcher.as_deref()))
        {
            let users = literals.entry(l.to_ascii_lowercase()).or_default();
            if users.last() != Some(&i) {
                users.push(i);
            }
        }
    }
    let bytes: Vec<&[u8]> = literals.keys().map(|l| l.as_bytes()).collect();
    let filter = prefilter::Tables::new(&bytes);

    let mut out = String::new();
    writeln!(
        out,
        "/// Over the bytes of the whole catalogue and of the knowledge about data flow."
    )?;
    writeln!(out, "pub(super) const HASH: &str = \"{hash:016x}\";")?;
    writeln!(out, "pub(super) static RULES: [Rule; {}] = [", rules.len())?;
    for r in rules {
        rule(&mut out, r)?;
    }
    writeln!(out, "];")?;
    let mut by_id: Vec<usize> = (0..rules.len()).collect();
    by_id.sort_by_key(|&i| &rules[i].id);
    writeln!(
        out,
        "/// The indices of the rules, in the order of their IDs."
    )?;
    writeln!(out, "static BY_ID: [u16; {}] = {by_id:?};", rules.len())?;
    writeln!(out, "/// The rules that each literal belongs to.")?;
    writeln!(out, "static USERS: [&[u16]; {}] = [", literals.len())?;
    for users in literals.values() {
        writeln!(out, "&{users:?},")?;
    }
    writeln!(out, "];")?;
    writeln!(out, "static LITERALS: [&[u8]; {}] = [", literals.len())?;
    for l in &bytes {
        writeln!(out, "&{l:?},")?;
    }
    writeln!(out, "];")?;
    writeln!(
        out,
        "static BITMAP: [u64; {}] = {:?};",
        filter.bitmap.len(),
        filter.bitmap
    )?;
    writeln!(
        out,
        "static SLOTS: [(u32, u16, u16); {}] = {:?};",
        filter.slots.len(),
        filter.slots
    )?;
    writeln!(
        out,
        "static CANDIDATES: [LiteralWindow; {}] = [",
        filter.candidates.len()
    )?;
    for c in &filter.candidates {
        writeln!(
            out,
            "LiteralWindow {{ literal: {}, offset: {} }},",
            c.literal, c.offset
        )?;
    }
    writeln!(out, "];")?;
    Ok(out)
}

/// Returns the patterns of all rules as parsed bytes, and adds the table that finds them by their
/// text and by whether `^` and `$` are about lines.
fn parsed_patterns(out: &mut String, rules: &[format::Rule]) -> Result<Vec<u8>, std::fmt::Error> {
    let mut patterns: BTreeSet<(bool, &str)> = BTreeSet::new();
    for r in rules {
        let single = [&r.not_pattern, &r.harmless, &r.guarded_by, &r.weak_if];
        let lines = [&r.file_has, &r.file_lacks, &r.near_has, &r.near_lacks];
        patterns.insert((false, &r.pattern));
        patterns.extend(single.into_iter().flatten().map(|p| (false, p.as_str())));
        patterns.extend(lines.into_iter().flatten().map(|p| (true, p.as_str())));
    }
    let mut bytes = Vec::new();
    let mut table = Vec::new();
    for (lines, pattern) in patterns {
        if let Some(parsed) = encode::encode(pattern, lines) {
            let start = bytes.len();
            bytes.extend(parsed);
            table.push(format!("({lines}, {pattern:?}, {start}, {}),", bytes.len()));
        }
    }
    writeln!(
        out,
        "/// For each pattern: true if `^` and `$` are about lines, its text, and its bytes."
    )?;
    writeln!(
        out,
        "static PATTERNS: [(bool, &str, usize, usize); {}] = [\n{}\n];",
        table.len(),
        table.join("\n")
    )?;
    Ok(bytes)
}

/// Returns the literals that trigger a matcher that is code. A matcher without literals searches
/// the text itself.
fn matcher_literals(matcher: Option<&str>) -> impl Iterator<Item = String> + use<> {
    match matcher {
        Some("conflict-markers") => &["<<<<<<<", ">>>>>>>"][..],
        _ => &[],
    }
    .iter()
    .map(|l| (*l).to_owned())
}

/// Returns byte strings as a Rust slice.
fn group_of(texts: &[Vec<u8>]) -> String {
    let items: Vec<String> = texts
        .iter()
        .map(|t| format!("b\"{}\"", t.escape_ascii()))
        .collect();
    format!("&[{}]", items.join(", "))
}

fn rule(out: &mut String, r: &format::Rule) -> std::fmt::Result {
    let text = |s: &str| format!("Cow::Borrowed({s:?})");
    let optional = |s: &Option<String>| {
        s.as_deref()
            .map_or("None".to_owned(), |s| format!("Some({})", text(s)))
    };
    let list = |l: &[String]| {
        let items: Vec<String> = l.iter().map(|s| text(s)).collect();
        format!("Cow::Borrowed(&[{}])", items.join(", "))
    };
    let name = |s: &str| {
        let mut name = String::new();
        for word in s.split('-') {
            let mut chars = word.chars();
            name.extend(chars.next().map(|c| c.to_ascii_uppercase()));
            name.push_str(chars.as_str());
        }
        name
    };
    let own = |l: &String| {
        if l == format::TSX {
            "typescript".to_owned()
        } else {
            l.clone()
        }
    };
    let languages = r
        .languages
        .iter()
        .map(own)
        .filter_map(|l| format::LANGUAGES.iter().position(|k| *k == l));
    let languages = languages.fold(0u64, |bits, i| bits | 1 << i);
    writeln!(out, "Rule {{")?;
    writeln!(out, "id: {}, title: {},", text(&r.id), text(&r.title))?;
    writeln!(
        out,
        "category: Category::{}, severity: Severity::{},",
        name(&r.category),
        name(&r.severity)
    )?;
    writeln!(
        out,
        "confidence: Confidence::{}, languages: Languages::from_bits({languages}),",
        name(&r.confidence)
    )?;
    writeln!(
        out,
        "paths: {}, not_paths: {},",
        list(&r.paths),
        list(&r.not_paths)
    )?;
    writeln!(out, "weak_paths: {},", list(&r.weak_paths))?;
    writeln!(
        out,
        "in_tests: {}, in_bundles: {}, place: Place::{},",
        r.in_tests,
        r.in_bundles,
        name(&r.place)
    )?;
    writeln!(
        out,
        "matcher: Matcher::{},",
        r.matcher.as_deref().map_or("Pattern".to_owned(), name)
    )?;
    let trees = if r.tree.is_empty() {
        &[][..]
    } else {
        &r.languages[..]
    };
    writeln!(
        out,
        "tree: {}, tree_languages: {},",
        text(&ascii::with_ascii_classes(&r.tree)),
        list(trees)
    )?;
    let severity = r.audit_severity.as_deref().map_or("None".to_owned(), |s| {
        format!("Some(Severity::{})", name(s))
    });
    writeln!(
        out,
        "is_audit: {}, audit_severity: {severity},",
        r.profile == format::AUDIT_PROFILE
    )?;
    writeln!(
        out,
        "pattern: {}, not_pattern: {},",
        text(&r.pattern),
        list(&r.not_pattern)
    )?;
    // Rules that replace harmless values before they match run on different text.
    let (needs, run) = match r.harmless.is_empty() {
        true => (needs::needs(&r.pattern), needs::run(&r.pattern)),
        false => (Vec::new(), 0),
    };
    let words: Vec<String> = needs.iter().map(|group| group_of(group)).collect();
    let run = if run < LEAST_RUN { 0 } else { run };
    writeln!(
        out,
        "needs: Needs {{ words: &[{}], run: {run} }},",
        words.join(", ")
    )?;
    writeln!(
        out,
        "file_has: {}, file_lacks: {},",
        list(&r.file_has),
        list(&r.file_lacks)
    )?;
    writeln!(
        out,
        "harmless: {}, guarded_by: {}, weak_if: {},",
        list(&r.harmless),
        list(&r.guarded_by),
        list(&r.weak_if)
    )?;
    writeln!(
        out,
        "near_has: {}, near_lacks: {},",
        list(&r.near_has),
        list(&r.near_lacks)
    )?;
    writeln!(
        out,
        "checks: {}, secret: {}, decoded: {},",
        list(&r.checks),
        r.secret,
        r.decoded
    )?;
    writeln!(
        out,
        "judges_origin: {}, line_has: {},",
        r.judges_origin,
        list(&r.line_has)
    )?;
    writeln!(
        out,
        "message: {}, why: {},",
        text(&r.message),
        optional(&r.why)
    )?;
    let fix = |f: &format::Fix| {
        format!(
            "RuleFix {{ find: {}, replace: {} }}",
            text(&f.find),
            text(&f.replace)
        )
    };
    let fixes: Vec<String> = r.fixes.iter().map(fix).collect();
    writeln!(
        out,
        "suggestion: {}, fixes: Cow::Borrowed(&[{}]),",
        optional(&r.suggestion),
        fixes.join(", ")
    )?;
    writeln!(out, "cwe: {:?},", r.cwe)?;
    writeln!(out, "references: {},", list(&r.references))?;
    writeln!(
        out,
        "bad: {}, good: {},",
        optional(&r.bad),
        optional(&r.good)
    )?;
    writeln!(out, "}},")
}
