//! Recognizes declared encodings that are not supersets of ASCII.
//!
//! Python reads `# coding: cp037` in the first two lines and decodes the rest with it. Parsers of
//! XML, HTML and JSP do the same with `encoding`, `charset` and `pageEncoding`. Almost all
//! encodings are supersets of ASCII, so the rules read such files without decoding; UTF-7 is
//! decoded in [`super::reading`].

use super::Undecoded;

/// Bytes at the start of a file that parsers search for a declaration.
const START: usize = 1024;

/// Returns the declared encoding if the file is unreadable without decoding.
pub(in crate::diff) fn opaque(bytes: &[u8], extension: &str) -> Option<Undecoded> {
    let start = &bytes[..bytes.len().min(START)];
    let name = match extension {
        "py" | "pyw" | "pyi" | "pyx" => {
            return python(start)
                .filter(|name| is_opaque(name) || hides_quotes(name))
                .map(Undecoded::Declared);
        }
        "xml" | "xsd" | "xsl" | "xslt" | "svg" | "wsdl" | "xhtml" | "html" | "htm" | "jsp"
        | "jspx" | "jspf" | "tag" | "aspx" | "plist" | "pom" | "config" | "xaml" => markup(start),
        _ => None,
    }?;
    is_opaque(&name).then_some(Undecoded::Declared(name))
}

/// Finds the comment of PEP 263 in the first two lines.
fn python(start: &[u8]) -> Option<String> {
    let comments = start.split(|b| matches!(b, b'\n' | b'\r')).take(2);
    comments
        .filter(|l| l.trim_ascii_start().starts_with(b"#"))
        .find_map(|line| {
            let after = &line[memchr::memmem::find(line, b"coding")? + b"coding".len()..];
            let value = after
                .strip_prefix(b":")
                .or_else(|| after.strip_prefix(b"="))?;
            name_at(value)
        })
}

/// Finds the first declaration within a tag.
fn markup(start: &[u8]) -> Option<String> {
    let lower = start.to_ascii_lowercase();
    [&b"encoding"[..], b"charset"].into_iter().find_map(|key| {
        let at = memchr::memmem::find(&lower, key)?;
        let is_in_tag = memchr::memrchr(b'<', &lower[..at]) > memchr::memrchr(b'>', &lower[..at]);
        let value = lower[at + key.len()..]
            .trim_ascii_start()
            .strip_prefix(b"=")?;
        name_at(value).filter(|_| is_in_tag)
    })
}

/// Reads a name after blanks and quotes.
fn name_at(value: &[u8]) -> Option<String> {
    let start = value
        .iter()
        .position(|b| !matches!(b, b' ' | b'\t' | b'"' | b'\''))?;
    let bytes = value[start..].iter().copied();
    let name = bytes.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let name: Vec<u8> = name.take(64).collect();
    (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned())
}

/// Code pages of EBCDIC.
const EBCDIC: &[u32] = &[
    37, 273, 277, 278, 280, 284, 285, 290, 297, 420, 423, 424, 500, 833, 838, 870, 871, 875, 880,
    905, 918, 924, 930, 933, 935, 937, 939, 1025, 1026, 1047, 1112, 1122, 1123, 1140, 1141, 1142,
    1143, 1144, 1145, 1146, 1147, 1148, 1149,
];

/// Returns true for an encoding in which the second byte of a character can be a backslash, so that
/// the quote that ends a string looks escaped.
fn hides_quotes(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "shiftjis",
        "sjis",
        "shiftjisx0213",
        "sjisx0213",
        "shiftjis2004",
        "sjis2004",
        "csshiftjis",
        "mskanji",
        "cp932",
        "932",
        "ms932",
        "windows31j",
        "gbk",
        "cp936",
        "936",
        "ms936",
        "gb18030",
        "gb180302000",
        "big5",
        "big5tw",
        "csbig5",
        "cp950",
        "950",
        "ms950",
        "big5hkscs",
        "hkscs",
        "johab",
        "cp1361",
        "ms1361",
    ];
    let name: String = name
        .to_ascii_lowercase()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    NAMES.contains(&name.as_str())
}

/// Returns true for an encoding in which ASCII text does not have the bytes of ASCII.
fn is_opaque(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "unicodeescape",
        "rawunicodeescape",
        "stringescape",
        "rot13",
        "hex",
        "hexcodec",
        "base64",
        "base64codec",
        "zlib",
        "zlibcodec",
        "zip",
        "bz2",
        "bz2codec",
        "uu",
        "uucodec",
        "quopri",
        "quopricodec",
        "quotedprintable",
        "punycode",
        "idna",
        "hz",
        "hzgb2312",
        "scsu",
        "bocu1",
    ];
    let name: String = name
        .to_ascii_lowercase()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let page = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let family = &name[..name.len() - page.len()];
    let is_page = matches!(
        family,
        "ibm" | "cp" | "csibm" | "xibm" | "cpibm" | "ebcdiccp" | ""
    );
    NAMES.contains(&name.as_str())
        || name.contains("ebcdic")
        || (is_page && page.parse().is_ok_and(|n: u32| EBCDIC.contains(&n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_without_ascii_are_named() {
        for (extension, text, name) in [
            ("py", "# -*- coding: cp037 -*-\n", Some("cp037")),
            (
                "py",
                "#!/usr/bin/python\n# vim: set fileencoding=unicode_escape :\n",
                Some("unicode_escape"),
            ),
            ("py", "# coding=rot13\n", Some("rot13")),
            ("py", "x = 1\ny = 2\n# coding: cp037\n", None),
            ("py", "coding = 'cp037'\n", None),
            ("py", "# coding: shift_jis\n", Some("shift_jis")),
            ("py", "# coding: euc_jp\n", None),
            ("html", "<meta charset=shift_jis>\n", None),
            ("py", "# coding: latin-1\n", None),
            ("py", "# coding: cp437\n", None),
            (
                "xml",
                "<?xml version='1.0' encoding='IBM037'?>\n",
                Some("ibm037"),
            ),
            ("xml", "<?xml version=\"1.0\" encoding=\"utf-16\"?>\n", None),
            (
                "jsp",
                "<%@ page contentType=\"text/html; charset=IBM-1047\" %>",
                Some("ibm-1047"),
            ),
            ("jsp", "<%@ page pageEncoding = \"cp500\" %>", Some("cp500")),
            ("html", "<p>charset=cp500</p>", None),
            ("c", "// coding: cp037\n", None),
        ] {
            let expected = name.map(|n| Undecoded::Declared(n.to_owned()));
            assert_eq!(opaque(text.as_bytes(), extension), expected, "{text}");
        }
    }
}
