//! Tests of content that an author can try to hide from the rules: binary marks, attributes,
//! encodings (HID-01 to HID-05).

use crate::support::{Repo, line_with_key};
use serde_json::Value;

/// Returns bytes that look compressed; deterministic.
fn junk(n: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    };
    (0..n).map(|_| next()).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Creates a repository with a first commit on `main`, on branch `t`.
fn repo(base: &[(&str, &[u8])]) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "a project\n");
    for (path, content) in base {
        repo.stage(path, content);
    }
    repo.commit("start");
    repo.git(&["checkout", "-q", "-b", "t"]);
    repo
}

/// Reviews the branch in gate mode.
fn gate(repo: &Repo) -> (i32, Value) {
    repo.commit("change");
    let args = [
        "review",
        "branch",
        "t",
        "--base",
        "main",
        "--gate",
        "--no-save",
        "--format",
        "json",
    ];
    let run = repo.reviewer(&args).run_any();
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

fn files(report: &Value, list: &str) -> Vec<String> {
    let entries = report["coverage"][list].as_array().unwrap().iter();
    entries
        .map(|e| e["file"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn rules_at(report: &Value, file: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |f: &Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    findings
        .filter(|f| f["file"] == file)
        .map(|f| text(f, "rule_id"))
        .collect()
}

#[track_caller]
fn assert_rule(report: &Value, file: &str, rule: &str) {
    let found = rules_at(report, file);
    assert!(
        found.iter().any(|r| r == rule),
        "no {rule} at {file}: {found:?} {:?}",
        report["coverage"]
    );
}

#[test]
fn hid_01_a_nul_hides_nothing_in_a_file_of_a_known_name() {
    let repo = repo(&[]);
    let key = line_with_key();
    let named = [
        (".env", format!("bplist00=1\n{key}#\0\n").into_bytes()),
        ("Main.java", format!("/*\0*/\n// {key}").into_bytes()),
        ("a.yaml", format!("a: \0\n{key}").into_bytes()),
        (
            "a.properties",
            format!("#\0\0\0\0\0\0\0\0\0\0\n{key}").into_bytes(),
        ),
        (
            "a.lua",
            [&junk(3000)[..], b"\n-- ", key.as_bytes()].concat(),
        ),
        ("a.pl", [&[0; 9000][..], b"\n# ", key.as_bytes()].concat()),
        (
            "Makefile",
            [&b"#\0"[..], &junk(9000), b"\n# ", key.as_bytes()].concat(),
        ),
        ("deploy", [&b"bplist00\n#\0\n"[..], key.as_bytes()].concat()),
        (
            ".tool",
            [
                &junk(6000)[..],
                b"\nfirst line of it\nsecond = 1\n",
                key.as_bytes(),
            ]
            .concat(),
        ),
        ("split.sh", key.replace("AKIA", "AK\0IA").into_bytes()),
        (
            "data.unknown",
            [
                &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n"[..],
                key.as_bytes(),
                b"more = 1\n",
            ]
            .concat(),
        ),
    ];
    for (path, content) in &named {
        repo.stage(path, content);
    }
    let (code, report) = gate(&repo);
    assert_eq!(code, 1);
    for (path, _) in &named {
        assert_rule(&report, path, "aws-access-key-id");
    }
    assert_eq!(files(&report, "skipped"), [""; 0]);
}

#[test]
fn hid_01_code_behind_a_comment_of_junk_is_read() {
    let repo = repo(&[]);
    let code = b"*/\nint main(int c, char **v) { char b[9]; gets(b); system(v[1]); }\n";
    repo.stage("x.c", [&b"/*\0"[..], &junk(9000), code].concat());
    let (code, report) = gate(&repo);
    assert_eq!(code, 1, "{report}");
    assert!(!rules_at(&report, "x.c").is_empty());
}

#[test]
fn hid_01_bytes_that_cannot_be_decoded_under_a_known_name_are_incomplete() {
    let repo = repo(&[]);
    repo.stage("x.c", junk(9000));
    repo.stage(
        "conf/app.yaml",
        [&b"\x89PNG\r\n\x1a\n"[..], &junk(900)].concat(),
    );
    // EBCDIC, which no interpreter reads as ASCII.
    repo.stage(
        "a.jsp",
        b"\x4c\x6c\x7c\x40\x97\x81\x87\x85\x40\x6c\x6e\x15".repeat(30),
    );
    let (code, report) = gate(&repo);
    assert_eq!(code, 3, "{report}");
    assert_eq!(files(&report, "failed"), ["a.jsp", "conf/app.yaml", "x.c"]);
}

#[test]
fn hid_02_pages_behind_the_head_of_a_picture_are_read() {
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0";
    for (path, code) in [
        (
            "a.jsp",
            "<% Runtime.getRuntime().exec(request.getParameter(\"c\")); %>\n",
        ),
        ("a.php", "<?php system($_GET[\"c\"]); ?>\n"),
        (
            "a.py",
            "import os\nfrom flask import request\nos.system('x ' + request.args['c'])\n",
        ),
    ] {
        let repo = repo(&[]);
        repo.stage(path, [&head[..], b"\n", code.as_bytes()].concat());
        let (exit, report) = gate(&repo);
        assert_eq!(exit, 1, "{path}: {report}");
        assert!(
            rules_at(&report, path)
                .iter()
                .any(|r| r != "nul-in-text-file"),
            "{path}: {report}"
        );
    }
}

#[test]
fn hid_02_secrets_are_found_in_binary_files_of_every_type() {
    let repo = repo(&[]);
    let key = line_with_key();
    let wide = utf16(&key);
    for (path, content) in [
        (
            "logo.png",
            [
                &b"\x89PNG\r\n\x1a\n"[..],
                &junk(5000),
                b"\0",
                key.as_bytes(),
                b"\0",
                &junk(50),
            ]
            .concat(),
        ),
        (
            "lib.dll",
            [&b"MZ\0\0"[..], &junk(999), &[0xff, 0xff], &wide, &junk(99)].concat(),
        ),
        (
            "weights.safetensors",
            [&[0; 4000][..], key.as_bytes(), &[0; 4000]].concat(),
        ),
        (
            "cache.pyc",
            [
                &b"\x6f\x0d\x0d\x0a\0\0\0\0"[..],
                &junk(80),
                b"\0",
                key.as_bytes(),
                &[0; 20],
            ]
            .concat(),
        ),
    ] {
        repo.stage(path, content);
    }
    let (code, report) = gate(&repo);
    assert_eq!(code, 1);
    for path in ["logo.png", "lib.dll", "weights.safetensors", "cache.pyc"] {
        assert_rule(&report, path, "aws-access-key-id");
    }
    // Content of the base is not reported again.
    let repo = Repo::new();
    let picture = |end: &[u8]| {
        [
            &b"\x89PNG\r\n\x1a\n\0\0\0"[..],
            &junk(500),
            b"\0",
            key.as_bytes(),
            b"\0",
            end,
        ]
        .concat()
    };
    repo.stage("logo.png", picture(b"a")).commit("start");
    repo.git(&["checkout", "-q", "-b", "t"]);
    repo.stage("logo.png", picture(b"b"));
    let (code, report) = gate(&repo);
    assert_eq!(
        (code, files(&report, "skipped")),
        (0, vec!["logo.png".to_owned()]),
        "{report}"
    );
}

#[test]
fn dif_04_real_binary_files_stay_skipped() {
    let repo = repo(&[]);
    let chunk = |kind: &[u8], data: &[u8]| {
        [&(data.len() as u32).to_be_bytes()[..], kind, data, &[0; 4]].concat()
    };
    let text = b"Copyright of this picture\nand who made it, in lines\nof plain text\n";
    let png = [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", &[0; 13]),
        &chunk(b"tEXt", text),
        &chunk(b"IEND", b""),
    ]
    .concat();
    let mut stream: Vec<u8> = Vec::new();
    for packet in junk(187 * 8).chunks(187) {
        stream.push(0x47);
        stream.extend(packet);
    }
    let binary = [
        (".DS_Store", [&b"\0\0\0\x01Bud1\0\0\x10\0"[..], &[0; 4000]].concat()),
        ("Icon", [&[0; 400][..], &junk(600)].concat()),
        ("a.golden", [&[0; 40][..], &junk(4000)].concat()),
        (
            "data.npy",
            [&b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n"[..], &junk(90)].concat(),
        ),
        ("model.onnx", [&b"\x08\x07\x12\x07pytorch\0"[..], &junk(4000)].concat()),
        ("model.safetensors", [&b"\x40\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\"}}\n"[..], &[0; 4000]].concat()),
        ("messages.mo", [&b"\xde\x12\x04\x95\0\0\0\0"[..], text].concat()),
        ("thing", png),
        ("video.ts", stream),
        ("x.sqlite", [&b"SQLite format 3\0"[..], text, &[0; 4000]].concat()),
    ];
    for (path, content) in &binary {
        repo.stage(path, content);
    }
    let (code, report) = gate(&repo);
    assert_eq!(code, 0, "{report}");
    let mut expected: Vec<_> = binary.iter().map(|(path, _)| (*path).to_owned()).collect();
    expected.sort();
    let mut skipped = files(&report, "skipped");
    skipped.sort();
    assert_eq!(skipped, expected);
    assert_eq!(
        (&report["findings"], files(&report, "failed").len()),
        (&serde_json::json!([]), 0)
    );
}

#[test]
fn hid_03_attributes_decide_nothing_that_the_rules_read() {
    let key = line_with_key();
    for attributes in [
        "[attr]x -diff\n*.yml x\nJenkinsfil? x\n",
        "* binary\n",
        "** -text -diff\n",
        "*.y[a-m]l diff=false\nJ?nkinsfile -diff\n",
        "\"Jenkinsfile\" -diff\n*.yml diff\n",
    ] {
        let repo = repo(&[]);
        repo.stage(".gitattributes", attributes);
        repo.stage("Jenkinsfile", format!("bplist00\n// {key}"));
        repo.stage("a.yml", format!("bplist00: 1\na: {key}"));
        repo.stage("b.txt", format!("bplist00 {key}"));
        let (code, report) = gate(&repo);
        assert_eq!(code, 1);
        for path in ["Jenkinsfile", "a.yml", "b.txt"] {
            assert_rule(&report, path, "aws-access-key-id");
        }
        assert_rule(&report, ".gitattributes", "attributes-hide-text");
        assert_eq!(files(&report, "skipped"), [""; 0], "{attributes}");
    }
}

#[test]
fn hid_03_a_macro_of_the_base_counts_where_the_head_uses_it() {
    let repo = repo(&[(".gitattributes", b"[attr]quiet -diff\n*.png quiet\n")]);
    repo.stage(
        ".gitattributes",
        "[attr]quiet -diff\n*.png quiet\nsrc/*.p? quiet\n",
    );
    let (code, report) = gate(&repo);
    assert_eq!(code, 1);
    assert_eq!(
        rules_at(&report, ".gitattributes"),
        ["attributes-hide-text"]
    );
}

#[test]
fn hid_04_what_a_checkout_writes_is_read_too() {
    // In UTF-16, these characters consist of two ASCII bytes each.
    let code = "import os\nfrom flask import request\nos.system('x ' + request.args['c'])\n";
    let blob: String = code
        .as_bytes()
        .chunks(2)
        .map(|c| char::from_u32(u32::from(c[0]) | u32::from(c[1]) << 8).unwrap())
        .collect();
    for (encoding, is_at_base) in [
        ("UTF-16LE", false),
        ("utf-16le-bom", true),
        ("UTF-16", true),
    ] {
        let attributes = format!("*.py working-tree-encoding={encoding}\n");
        let base: &[(&str, &[u8])] = if is_at_base {
            &[(".gitattributes", attributes.as_bytes())]
        } else {
            &[]
        };
        let repo = repo(base);
        // Git would convert the staged file, so the blob is created directly.
        if !is_at_base {
            stage_raw(&repo, ".gitattributes", attributes.as_bytes());
        }
        stage_raw(&repo, "a.py", blob.as_bytes());
        let (exit, report) = gate(&repo);
        assert_eq!(exit, 1, "{encoding}: {report}");
        assert_rule(&report, "a.py", "python-shell-request");
    }
}

#[test]
fn hid_04_an_encoding_that_cannot_be_produced_is_incomplete() {
    for name in ["IBM037", "UTF-7", "ASCII//TRANSLIT"] {
        let attributes = format!("[attr]enc working-tree-encoding={name}\n*.sh enc\n");
        let repo = repo(&[(".gitattributes", attributes.as_bytes())]);
        stage_raw(&repo, "a.sh", "\u{e9}\u{e8} plain\n".as_bytes());
        stage_raw(&repo, "b.txt", b"other\n");
        let (exit, report) = gate(&repo);
        assert_eq!(
            (exit, files(&report, "failed")),
            (3, vec!["a.sh".to_owned()]),
            "{name}: {report}"
        );
        assert!(
            report["coverage"]["failed"][0].to_string().contains(name),
            "{report}"
        );
    }
}

#[test]
fn hid_04_a_change_of_the_attribute_is_a_finding() {
    let old = b"*.txt text\n*.cs working-tree-encoding=UTF-16LE\n";
    for (new, rules) in [
        (
            "*.txt text\n*.cs working-tree-encoding=UTF-16BE\n",
            vec!["attributes-checkout-encoding"],
        ),
        ("*.txt text\n", vec!["attributes-checkout-encoding"]),
        (
            "*.txt working-tree-encoding=IBM037\n*.cs working-tree-encoding=UTF-16LE\n",
            vec!["attributes-checkout-encoding"],
        ),
        (
            "*.txt text\n*.cs working-tree-encoding=UTF-16LE\n*.png -diff\n",
            vec![],
        ),
        (
            "*.txt text\n*.cs working-tree-encoding=UTF-16LE\n*.py ident\n",
            vec!["attributes-change-checkout"],
        ),
    ] {
        let repo = repo(&[(".gitattributes", old)]);
        repo.stage(".gitattributes", new);
        let (code, report) = gate(&repo);
        assert_eq!(
            code,
            i32::from(rules == ["attributes-checkout-encoding"]),
            "{new}: {report}"
        );
        let mut found = rules_at(&report, ".gitattributes");
        found.dedup();
        assert_eq!(found, rules, "{new}");
    }
}

#[test]
fn hid_04_honest_text_in_another_encoding_is_complete() {
    let repo = repo(&[(
        ".gitattributes",
        b"*.ps1 working-tree-encoding=UTF-16LE-BOM eol=crlf\n*.txt working-tree-encoding=Shift_JIS\n",
    )]);
    stage_raw(
        &repo,
        "a.ps1",
        "Write-Output 'gr\u{fc}n \u{65e5}\u{672c}'\n".as_bytes(),
    );
    stage_raw(&repo, "b.txt", "\u{65e5}\u{672c}\u{8a9e}\n".as_bytes());
    let (code, report) = gate(&repo);
    assert_eq!(
        (code, files(&report, "failed").len(), &report["findings"]),
        (0, 0, &serde_json::json!([])),
        "{report}"
    );
}

#[test]
fn hid_05_every_encoding_is_decoded() {
    let key = line_with_key();
    let cs = format!("using System;\n// {key}class A {{}}\n");
    let surrogates: Vec<u8> = utf16(&format!("\u{feff}{}", "\u{4e2d}".repeat(400)))
        .into_iter()
        .chain([0, 0xd8].repeat(60))
        .collect();
    let big: Vec<u8> = cs.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let wide = |big: bool| -> Vec<u8> {
        cs.chars()
            .flat_map(|c| {
                if big {
                    u32::from(c).to_be_bytes()
                } else {
                    u32::from(c).to_le_bytes()
                }
            })
            .collect()
    };
    let repo = repo(&[]);
    let texts = [
        (
            "a.cs",
            [&surrogates[..], &utf16(&format!("\n{cs}"))].concat(),
        ),
        ("b.cs", big),
        ("c.cs", wide(false)),
        ("d.cs", wide(true)),
        (
            "e.py",
            [&b"import os\n# plain text first\n"[..], &utf16(&cs)].concat(),
        ),
        (
            "f.cs",
            [
                &utf16("\u{feff}using System;\r\n".repeat(40).as_str())[..],
                b"\n// ",
                key.as_bytes(),
            ]
            .concat(),
        ),
        ("g.html", cs.replace(" = ", " +AD0- ").into_bytes()),
    ];
    for (path, content) in &texts {
        repo.stage(path, content);
    }
    let (code, report) = gate(&repo);
    assert_eq!(code, 1, "{report}");
    for (path, _) in &texts {
        assert_rule(&report, path, "aws-access-key-id");
    }
}

#[test]
fn hid_05_utf7_is_decoded_and_other_declared_encodings_are_incomplete() {
    let repo = repo(&[]);
    let code = "import os\nfrom flask import request\nos.system+ACgAJw-x +ACcAKwByAGUAcQB1AGUAcwB0AC4AYQByAGcAcwBbACcAYwAnAF0AKQ-\n";
    repo.stage("a.py", format!("# coding: utf-7\n{code}"));
    let (exit, report) = gate(&repo);
    assert_eq!(exit, 1, "{report}");
    assert_rule(&report, "a.py", "python-shell-request");
    for (path, text) in [
        ("b.py", "# coding: cp037\nx\n"),
        (
            "c.py",
            "#!/usr/bin/python\n# -*- coding: unicode_escape -*-\n",
        ),
        ("d.jsp", "<%@ page pageEncoding=\"IBM037\" %>\n"),
        ("e.xml", "<?xml version=\"1.0\" encoding=\"cp500\"?>\n"),
    ] {
        let repo = self::repo(&[]);
        repo.stage(path, text);
        let (exit, report) = gate(&repo);
        assert_eq!(
            (exit, files(&report, "failed")),
            (3, vec![path.to_owned()]),
            "{report}"
        );
    }
}

/// Stages an unconverted blob, independent of attributes.
fn stage_raw(repo: &Repo, path: &str, content: &[u8]) {
    let file = repo.home().join("blob");
    std::fs::write(&file, content).unwrap();
    let id = repo.git(&["hash-object", "-w", "--no-filters", file.to_str().unwrap()]);
    repo.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("100644,{},{path}", id.trim()),
    ]);
}

#[test]
fn hid_01_every_extension_of_a_language_that_rules_know_is_that_of_a_text() {
    use claude_reviewer::{diff, rules};
    const PROSE: &[&str] = &[
        "md", "mdx", "txt", "rst", "adoc", "asc", "org", "tex", "text", "log",
    ];
    let letters = || b'a'..=b'z';
    let three =
        letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| vec![a, b, c])));
    let two = letters().flat_map(|a| letters().map(move |b| vec![a, b]));
    let one = letters().map(|a| vec![a]);
    let longer = [
        "java",
        "html",
        "json",
        "yaml",
        "toml",
        "scala",
        "swift",
        "gradle",
        "groovy",
        "svelte",
        "properties",
    ];
    let all = one
        .chain(two)
        .chain(three)
        .chain(longer.iter().map(|e| e.as_bytes().to_vec()));
    let missing = all.filter_map(|extension| {
        let extension = String::from_utf8(extension).unwrap();
        let path = diff::RepoPath::from(format!("src/x.{extension}").as_str());
        let is_missing = rules::is_code(&path)
            && !diff::is_text_name(&path)
            && !PROSE.contains(&extension.as_str());
        is_missing.then_some(extension)
    });
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}
