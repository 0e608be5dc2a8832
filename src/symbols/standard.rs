//! Names that a file imports from the standard library of its language. Their definitions are not
//! in the repository.

use tree_sitter::Node;

/// Modules of the Python standard library that export names which repositories also define
/// (<https://docs.python.org/3/py-modindex.html>).
const PYTHON: &str = "\
    __future__ abc argparse array ast asyncio base64 bisect bz2 calendar cmd code codecs collections colorsys \
    concurrent configparser contextlib contextvars copy csv ctypes curses dataclasses datetime dbm decimal \
    difflib dis doctest email enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
    functools gc getopt getpass gettext glob graphlib gzip hashlib heapq hmac html http imaplib importlib \
    inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox marshal math mimetypes \
    mmap multiprocessing netrc numbers operator os pathlib pdb pickle pkgutil platform plistlib poplib \
    posixpath pprint profile pty pwd queue random re readline reprlib sched secrets select selectors shelve \
    shlex shutil signal smtplib socket socketserver sqlite3 ssl stat statistics string stringprep struct \
    subprocess sys sysconfig syslog tarfile tempfile termios textwrap threading time timeit tkinter token \
    tokenize tomllib trace traceback tracemalloc tty types typing unicodedata unittest urllib uuid venv \
    warnings wave weakref webbrowser wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// The modules of Node.js (<https://nodejs.org/api/module.html#modulebuiltinmodules>). They take
/// precedence over packages of the same name.
const NODE: &str = "\
    assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns \
    domain events fs http http2 https inspector module net os path perf_hooks process querystring readline repl \
    stream string_decoder timers tls trace_events tty url util v8 vm wasi worker_threads zlib";

/// Returns the first byte of the names that an import takes from the standard library; `None` for
/// other imports. `import` is the whole statement, or the declaration of a variable with the value
/// `require("…")`.
pub(super) fn names_from(import: Node<'_>, text: &[u8]) -> Option<usize> {
    let path = import.named_child(0);
    // The last name of a path is the imported one.
    let last = path.and_then(last_child).map(|name| name.start_byte());
    match import.kind() {
        // Python.
        "import_from_statement" => {
            let module = import.child_by_field_name("module_name")?;
            if !starts_with(module, text, PYTHON) {
                return None;
            }
            Some(module.end_byte())
        }
        // JavaScript and TypeScript.
        "import_statement" => import
            .child_by_field_name("source")
            .filter(|source| is_of_node(*source, text))
            .map(|_| 0),
        "variable_declarator" => required(import)
            .filter(|source| is_of_node(*source, text))
            .map(|_| 0),
        // Java. Packages of `javax` may be from other vendors.
        "import_declaration" => {
            last.filter(|_| path.is_some_and(|path| starts_with(path, text, "java")))
        }
        // Kotlin.
        "import" => {
            last.filter(|_| path.is_some_and(|path| starts_with(path, text, "java kotlin")))
        }
        // Rust.
        "use_declaration" => import
            .child_by_field_name("argument")
            .filter(|path| starts_with(*path, text, "std core alloc"))
            .map(|_| 0),
        _ => None,
    }
}

/// Returns the names that a declaration with the value `require("…")` takes from its module, as
/// defined there: `join` and `sep` of `const { join, sep: separator } = require("path")`.
pub(super) fn required_names(declaration: Node<'_>) -> Vec<Node<'_>> {
    let value = declaration.child_by_field_name("value");
    let property = value.and_then(|value| value.child_by_field_name("property"));
    let name = declaration.child_by_field_name("name");
    let Some(pattern) = name.filter(|name| name.kind() == "object_pattern") else {
        return property.into_iter().collect();
    };
    let mut cursor = pattern.walk();
    let names = pattern
        .named_children(&mut cursor)
        .map(|child| child.child_by_field_name("key").unwrap_or(child));
    names.filter(|name| name.child_count() == 0).collect()
}

fn last_child(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).last()
}

/// Returns true if the first name of a path such as `os.path` or `std::path` is one of some words.
fn starts_with(path: Node<'_>, text: &[u8], words: &str) -> bool {
    let path = text.get(path.byte_range()).unwrap_or_default();
    let end = path
        .iter()
        .position(|b| !b.is_ascii_alphanumeric() && *b != b'_')
        .unwrap_or(path.len());
    end > 0 && words.split(' ').any(|word| word.as_bytes() == &path[..end])
}

/// Returns true for a quoted name of a Node.js module.
fn is_of_node(source: Node<'_>, text: &[u8]) -> bool {
    let source = text.get(source.byte_range()).unwrap_or_default();
    is_module_of_node(String::from_utf8_lossy(source).trim_matches(['"', '\'', '`']))
}

/// Returns true for the name of a Node.js module, such as `fs/promises` and `node:path`.
pub(crate) fn is_module_of_node(source: &str) -> bool {
    let module = source.split('/').next().unwrap_or_default();
    source.starts_with("node:") || NODE.split(' ').any(|name| name == module)
}

/// Returns the argument of `require("…")` in the value of a declaration:
/// `const { join } = require("path")`, `const join = require("path").join`.
pub(super) fn required(declaration: Node<'_>) -> Option<Node<'_>> {
    let value = declaration.child_by_field_name("value")?;
    let call = if value.kind() == "member_expression" {
        value.child_by_field_name("object")?
    } else {
        value
    };
    call.child_by_field_name("arguments")?
        .named_child(0)
        .filter(|argument| argument.kind() == "string")
}
