//! Bundles: code that a tool wrote or another project published, copied into a repository as a
//! whole.
//!
//! Rules about calls skip bundles: their findings are flaws of the library, which its users cannot
//! change. A name alone does not make a file a bundle, because the author of a change chooses the
//! names. The text must also have the form of a bundle.

/// Names of published libraries and of the output of bundlers.
const NAMES: &[&str] = &[
    "*.min.js",
    "*.bundle.js",
    "*.iife.js",
    "*.umd.js",
    "*.standalone.js",
    "*.pack.js",
    "jquery-{1,2,3,4}.*.js",
    "{jquery,jquery-ui}.js",
    "jquery-ui-*.js",
];
/// Output folders of bundlers. A file there is a bundle if it is large and has lines that no person
/// writes.
const FOLDERS: &[&str] = &[
    "**/{dist,build,public,static,assets,bundles,vendor}/**/*.js",
    "{dist,build,public,static}/**/*.js",
];
/// Bytes of such a file, at least. Its lines have a minimum average length, too.
const BUNDLED: usize = 20 << 10;
const BUNDLED_LINE: usize = 500;
/// Bytes of a line of a bundle that people do not read, and the number of such lines, at least.
const LONG_LINE: usize = 1000;
const LONG_LINES: usize = 5;
/// Bytes of a minified file, and average bytes of its lines, at least.
const MINIFIED: usize = 400;
const MINIFIED_LINE: usize = 160;
/// Bytes of a library that is not minified, at least.
const PUBLISHED: usize = 8 << 10;
/// Bytes at the start of a file that contain the comment with a library's licence.
const BANNER: usize = 2 << 10;

/// Libraries with a licence in a file that a bundler wrote, at least.
const LICENCES: usize = 3;

/// Folders of files that a web server sends.
const SERVED: &[&str] = &["static", "public", "assets", "wwwroot", "www", "resources"];
/// Folders below them into which bundlers write.
const BUILT: &[&str] = &["dist", "build"];
/// Folders below them that have copied libraries.
const LIBRARIES: &[&str] = &["vendor", "vendors", "third_party", "third-party"];
/// Letters and digits of a digest in a name, at least.
const DIGEST: usize = 8;

/// Returns true if a script is one that a bundler wrote for a web server: its path and its long
/// lines say so. People do not read such a file.
pub(super) fn is_served(path: &[u8], text: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path);
    let (folders, name) = path.rsplit_once('/').unwrap_or_default();
    is_script(name)
        && (is_below_served(folders, Some(BUILT))
            || is_below_served(folders, None) && has_digest(name))
        && is_bundled(text)
}

/// Returns true if a path is that of a copied library below a folder that a web server sends, and
/// the file is not new or has the long lines of a minified library.
pub(super) fn is_served_library(path: &[u8], text: &[u8], is_new: bool) -> bool {
    let path = String::from_utf8_lossy(path);
    let (folders, name) = path.rsplit_once('/').unwrap_or_default();
    is_script(name)
        && is_below_served(folders, Some(LIBRARIES))
        && (!is_new || is_long(text, MINIFIED, BUNDLED_LINE))
}

/// Returns true if a script has the long lines of minified code, and had them before the change,
/// whatever its path is.
pub(super) fn was_minified(path: &[u8], old: &[u8], new: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path);
    is_script(&path) && [old, new].into_iter().all(is_bundled)
}

/// Returns true if a script is one that a bundler wrote for a web server without minifying it: its
/// path and the names of the bundler's functions say so, or the licences of several libraries.
pub(super) fn is_built(path: &[u8], text: &[u8]) -> bool {
    let path = String::from_utf8_lossy(path);
    let (folders, name) = path.rsplit_once('/').unwrap_or_default();
    is_script(name)
        && is_below_served(folders, Some(BUILT))
        && text.len() >= BUNDLED
        && (memchr::memmem::find(text, b"function __webpack_require__(").is_some()
            || memchr::memmem::find_iter(text, b"@license")
                .nth(LICENCES - 1)
                .is_some())
}

/// Returns true if a text calls the function with which a bundle of webpack loads its parts.
fn has_loader(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"__webpack_require__").is_some()
}

/// Returns true if a file is a bundle by its name and its text. `text`: the known part of the new
/// side.
pub(super) fn is_one(path: &[u8], text: &[u8]) -> bool {
    matches_any(NAMES, path) && (is_long(text, MINIFIED, MINIFIED_LINE) || is_published(text))
        || matches_any(FOLDERS, path) && is_bundled(text)
}

fn is_script(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("js" | "mjs" | "cjs"))
}

/// Returns true if one of some folders is below a folder that a web server sends. `None`: any file
/// below it.
fn is_below_served(folders: &str, below: Option<&[&str]>) -> bool {
    let folders = folders.to_ascii_lowercase();
    let mut folders = folders.split('/');
    folders.any(|folder| SERVED.contains(&folder))
        && below.is_none_or(|below| folders.any(|folder| below.contains(&folder)))
}

/// Returns true if a name ends with the digest of the content, as bundlers write it:
/// `vendor-BS4xPthR.js`, `calendar.5a3f9b07.js`.
fn has_digest(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let Some((_, digest)) = stem.rsplit_once(['.', '-']) else {
        return false;
    };
    let has = |is: fn(&u8) -> bool| digest.bytes().any(|b| is(&b));
    let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_hexadecimal = digest.bytes().all(|b| b.is_ascii_hexdigit());
    digest.len() >= DIGEST
        && digest.bytes().all(|b| b.is_ascii_alphanumeric())
        && has(u8::is_ascii_digit)
        && (is_mixed || is_hexadecimal)
}

fn matches_any(globs: &[&str], path: &[u8]) -> bool {
    globs.iter().any(|glob| super::glob::matches(glob, path))
}

/// Returns true if a text has at least this many bytes, and its lines at least this average length.
fn is_long(text: &[u8], bytes: usize, line: usize) -> bool {
    text.len() >= bytes && text.len() / (memchr::memchr_iter(b'\n', text).count() + 1) >= line
}

/// Returns true if a text has the size and the lines of the output of a bundler: the average is
/// long, or most of the text is in several lines of code that people do not read. Templates with
/// line ends make the average short.
fn is_bundled(text: &[u8]) -> bool {
    text.len() >= BUNDLED && (is_long(text, BUNDLED, BUNDLED_LINE) || is_mostly_minified(text))
}

fn is_mostly_minified(text: &[u8]) -> bool {
    let lines = text.split(|b| *b == b'\n').filter(|line| is_minified(line));
    let (count, bytes) = lines.fold((0, 0), |(count, bytes), line| {
        (count + 1, bytes + line.len())
    });
    count >= LONG_LINES && bytes >= text.len() / 5 * 4
}

/// Returns true for a long line with the signs of code in all its parts. Data and padding have none.
fn is_minified(line: &[u8]) -> bool {
    let has_signs = |part: &[u8]| {
        let signs = part.iter().filter(|b| b"(){};=,".contains(b)).count();
        signs >= part.len() / 40
    };
    line.len() >= LONG_LINE && line.chunks(LONG_LINE / 2).all(has_signs)
}

fn is_published(text: &[u8]) -> bool {
    let head = text[..text.len().min(BANNER)]
        .trim_ascii_start()
        .to_ascii_lowercase();
    let has_banner = (head.starts_with(b"/*") || head.starts_with(b"//"))
        && [&b"license"[..], b"copyright", b"(c)"]
            .iter()
            .any(|word| memchr::memmem::find(&head, word).is_some());
    text.len() >= PUBLISHED && (has_banner || has_loader(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hid_06_a_name_alone_makes_no_bundle() {
        let library = format!(
            "/*!\n * jQuery UI 1.13\n * Copyright OpenJS\n */\n{}",
            "f(x);\n".repeat(2000)
        );
        let minified = "f(x);".repeat(200);
        for path in [
            "src/a.min.js",
            "jquery-ui-1.12.js",
            "lib/jquery-3.6.0.js",
            "js/app.bundle.js",
            "jquery.js",
        ] {
            assert!(is_one(path.as_bytes(), library.as_bytes()), "{path}");
            assert!(is_one(path.as_bytes(), minified.as_bytes()), "{path}");
            assert!(
                !is_one(path.as_bytes(), b"eval(location.hash);\n"),
                "{path}"
            );
            assert!(
                !is_one(path.as_bytes(), "f(x);\n".repeat(2000).as_bytes()),
                "{path}"
            );
        }
        for path in ["src/app.js", "src/jquery-login.js", "min.js"] {
            assert!(!is_one(path.as_bytes(), library.as_bytes()), "{path}");
        }
    }

    #[test]
    fn hid_06_a_large_file_of_a_bundler_is_a_bundle_in_its_folder_only() {
        let bundled = format!("{}\n", "f(x);".repeat(300)).repeat(20);
        for path in [
            "dist/app.js",
            "web/static/public/app.js",
            "a/build/chunks/1.js",
        ] {
            assert!(is_one(path.as_bytes(), bundled.as_bytes()), "{path}");
            assert!(
                !is_one(
                    path.as_bytes(),
                    "eval(location.hash);\n".repeat(2000).as_bytes()
                ),
                "{path}"
            );
        }
        for path in ["src/app.js", "distribution/app.js", "dist/app.py"] {
            assert!(!is_one(path.as_bytes(), bundled.as_bytes()), "{path}");
        }
    }

    #[test]
    fn a_script_of_a_bundler_is_known_by_its_path_and_its_long_lines() {
        let bundled = format!("{}\n", "f(x);".repeat(300)).repeat(20);
        for path in [
            "plugins/X/Assets/library/js/dist/builder.js",
            "a/web/static/vendor-BS4xPthR.js",
            "public/build/calendar.5a3f9b07.js",
        ] {
            assert!(is_served(path.as_bytes(), bundled.as_bytes()), "{path}");
            let padded = "eval(location.hash);\n".repeat(2000);
            assert!(!is_served(path.as_bytes(), padded.as_bytes()), "{path}");
        }
        for path in [
            "public/js/app.js",
            "dist/static/app.js",
            "static/user-controller2.js",
            "src/vendor-BS4xPthR.js",
            "static/dist/a.php",
        ] {
            assert!(!is_served(path.as_bytes(), bundled.as_bytes()), "{path}");
        }
    }

    #[test]
    fn a_library_that_a_server_sends_is_not_new_or_minified() {
        let (short, long) = ("f(x);\n".repeat(200), "f(x);".repeat(200));
        let path = b"src/webapp/assets/vendors/ace/worker.js";
        assert!(is_served_library(path, short.as_bytes(), false));
        assert!(!is_served_library(path, short.as_bytes(), true));
        assert!(is_served_library(path, long.as_bytes(), true));
        for path in [
            "src/vendors/ace/worker.js",
            "vendors/assets/a.js",
            "assets/vendors/a.py",
        ] {
            assert!(
                !is_served_library(path.as_bytes(), long.as_bytes(), false),
                "{path}"
            );
        }
    }

    #[test]
    fn minified_code_is_known_by_its_lines_before_and_after_the_change() {
        let (long, short) = ("f(x);".repeat(5000), "f(x);\n".repeat(5000));
        let (long, short) = (long.as_bytes(), short.as_bytes());
        assert!(was_minified(b"src/a.js", long, long));
        assert!(!was_minified(b"src/a.js", short, long));
        assert!(!was_minified(b"src/a.js", long, short));
        assert!(!was_minified(b"src/a.js", b"", long));
        assert!(!was_minified(b"src/a.php", long, long));
    }

    #[test]
    fn the_output_of_a_bundler_is_known_by_its_path_and_its_loader() {
        let built = "function __webpack_require__(id) {\n".repeat(1000);
        assert!(is_built(b"public/js/build/app.js", built.as_bytes()));
        for path in ["src/build/app.js", "public/app.js", "public/build/app.ts"] {
            assert!(!is_built(path.as_bytes(), built.as_bytes()), "{path}");
        }
        let named = "// __webpack_require__\n".repeat(1000);
        assert!(!is_built(b"public/build/app.js", named.as_bytes()));
    }

    #[test]
    fn the_output_of_a_bundler_is_known_by_the_licences_of_several_libraries() {
        let code = "function f() { return 1; }\n".repeat(500);
        let with =
            |licences: usize| format!("{}{code}{code}", "/** @license MIT */\n".repeat(licences));
        assert!(is_built(b"public/js/dist/app.js", with(3).as_bytes()));
        assert!(!is_built(b"public/js/dist/app.js", with(2).as_bytes()));
        assert!(!is_built(b"src/dist/app.js", with(3).as_bytes()));
    }
}
