//! Tests of the lexer.

use super::*;
use crate::rules::language::Languages;

/// `C`, `S` or `#` for each byte.
fn places(path: &str, text: &str) -> String {
    let mut lexer = Readings::new(text.as_bytes(), Languages::of(path.as_bytes(), b""), true);
    (0..text.len())
        .map(|i| match lexer.place_at(i) {
            Place::Comment => '#',
            Place::String => 'S',
            _ => 'C',
        })
        .collect()
}

#[test]
fn tells_code_strings_and_comments_apart() {
    for (path, text, expected) in [
        ("a.py", "a = 'x#y' # z", "CCCCSSSSSC###"),
        ("a.py", "\"\"\"d\n'x\"\"\"b", "SSSSSSSSSSC"),
        ("a.js", "a=`x${b+'}'}y`;c", "CCSSSCCCSSSSSSCC"),
        ("a.js", "`${`${a}`}`+b", "SSCSSCCSSSSCC"),
        ("a.js", "return'x' // d", "CCCCCCSSSC####"),
        ("a.js", "a = 'x\nb // c'", "CCCCCCCCC#####"),
        ("a.jsx", "<p>don't</p> // d", "CCCCCCCCCCCCC####"),
        ("a.js", "a=/'\"/.t('x')", "CCSSSSCCCSSSC"),
        ("a.js", "a/b/c // d", "CCCCCC####"),
        ("a.tsx", "<a>it</a> // d", "CCCCCCCCCC####"),
        (
            "a.rs",
            "f::<'a>('b', r#\"x\"y\"#)",
            "CCCCCCCCSSSCCCCSSSSSSC",
        ),
        ("a.rs", "/* /* */ x */b", "#############C"),
        ("a.go", "a := `x\n//`+1", "CCCCCSSSSSSCC"),
        ("a.cpp", "a(R\"x(\")x\", 1'000)", "CCCSSSSSSSCCCCCCCC"),
        ("a.cs", "a(@\"\\\", 1)", "CCCSSSCCCC"),
        ("a.sh", "a=${b#c} # d", "CCCCCCCCC###"),
        ("a.sh", "cat <<EOF\n'x\nEOF\nb", "CCCCCCCCCSSSSSSSCC"),
        ("a.sh", "cat <<E\n'x\nE\nb", "CCCCCCCSSSSSCC"),
        ("a.sh", "$((1<<b))\n'x' # d", "CCCCCCCCCCSSSC###"),
        ("a.sh", "a <<EOF\nb # d", "CCCCCCCSCC###"),
        ("a.rb", "=begin\nx\n=end\nb", "#############CC"),
        ("a.yml", "a: don't # x", "CCCCCCCCC###"),
        ("a.yml", "a: 'x # y' # z", "CCCSSSSSSSC###"),
        ("a.sql", "'it''s' -- x", "SSSSSSSC####"),
        ("a.php", "#[A] 'x' # y", "CCCCCSSSC###"),
        ("a.html", "a<!-- b -->c", "C##########C"),
        ("a.json", "{\"//\": 1}", "CSSSSCCCC"),
        ("a.kt", "\"\"\"\\\"\"\" x", "SSSSSSSCC"),
        ("a.unknown", "# 'x'", "CCCCC"),
        ("a.c", "'\"' + \"\\\"\" /* */", "SSSCCCSSSSC#####"),
    ] {
        assert_eq!(places(path, text), expected, "{path}: {text}");
    }
}

#[test]
fn goes_back() {
    let text = "a = 'x' # y\n".repeat(5000);
    let mut lexer = Readings::new(text.as_bytes(), Languages::of(b"a.py", b""), true);
    assert_eq!(lexer.place_at(text.len() - 2), Place::Comment);
    assert_eq!(lexer.place_at(5), Place::String);
    assert_eq!(lexer.place_at(30_000 / 12 * 12 + 9), Place::Comment);
    assert_eq!(lexer.place_at(30_000 / 12 * 12 + 1), Place::Code);
}

#[test]
fn is_linear_in_open_quotes() {
    let text = "`${'\"/*<<A {".repeat(40_000);
    for path in ["a.js", "a.sh", "a.rb", "a.rs", "a.php"] {
        let mut lexer = Readings::new(text.as_bytes(), Languages::of(path.as_bytes(), b""), true);
        let visited = visits::during(|| {
            lexer.place_at(text.len() - 1);
        });
        // The opening of a string is found once ahead and once as a token, and up to 16 searches
        // for the end of a here document reach the end of the text. With a search for each opening,
        // each byte would be visited some 10,000 times.
        assert!(
            visited >= text.len() && visited <= 20 * text.len(),
            "{path}: {visited}"
        );
    }
}

#[test]
fn hid_01_code_inside_of_a_string_is_code() {
    for (path, text, expected) in [
        ("a.py", "f'a{b}c'+d", "CSSCCCSSCC"),
        ("a.py", "rf\"\"\"a\n{b}\"\"\"", "CCSSSSSCCCSSS"),
        ("a.py", "f'{{a}}{b}'", "CSSSSSSCCCS"),
        ("a.py", "f\"{a[\"b\"]}\"", "CSCCCCCSSSS"),
        ("a.py", "'{a}'", "SSSSS"),
        ("a.py", "self'{a}'", "CCCCSSSSS"),
        ("a.rb", "\"a#{b}c\"", "SSSCCCSS"),
        ("a.rb", "\"\\#{b}\"", "SSSSSSS"),
        ("a.rb", "'#{b}'", "SSSSSS"),
        ("a.kt", "\"${a(\"b\")}\"", "SSCCCCCSSSS"),
        ("a.kt", "\"\"\"${'}'}\"\"\"", "SSSSCCCCCSSS"),
        ("a.cs", "$\"{a}\" + \"{a}\"", "CSCCCSCCCSSSSS"),
        ("a.cs", "$@\"{a}\"", "CCSCCCS"),
        ("a.php", "<?php \"{$a->b()}\"", "CCCCCCSCCCCCCCCCS"),
        ("a.php", "<?php '{$a}'", "CCCCCCSSSSSS"),
        ("a.sh", "\"a$(b)c\"", "SSSCCCSS"),
        ("a.sh", "\"`b`\"", "SCCCS"),
        ("a.sh", "cat <<E\n$(b)\nE\nc", "CCCCCCCSSCCCSSCC"),
        ("a.sh", "cat <<'E'\n$(b)\nE\nc", "CCCCCCSSSSSSSSSSCC"),
        ("a.py", "if'{b}'", "CCSSSSS"),
        ("a.cs", "@\"{a}\"", "CSSSSS"),
        ("a.swift", "\"\\(a)\"", "SSCCCS"),
        ("a.ps1", "\"$(a)\"", "SSCCCS"),
        ("a.pl", "\"@{[a()]}\"", "SSCCCCCCCS"),
        ("a.groovy", "\"${a}\"", "SSCCCS"),
    ] {
        assert_eq!(places(path, text), expected, "{path}: {text}");
    }
}

#[test]
fn code_inside_of_strings_is_split_in_linear_time() {
    for (path, piece) in [
        ("a.rb", "#{'"),
        ("a.ex", "#{x "),
        ("a.sh", "$(' `"),
        ("a.rb", "#{x}"),
        ("a.php", "{$a"),
    ] {
        let text = ["\"", &piece.repeat(100_000)].concat();
        let mut lexer = Readings::new(text.as_bytes(), Languages::of(path.as_bytes(), b""), true);
        assert_eq!(
            lexer.place_at(text.len() - 1),
            Place::Code,
            "{path}: {piece}"
        );
        assert_eq!(lexer.place_at(0), Place::String, "{path}: {piece}");
    }
}
