//! Conclusions from the names of functions and types that neither the tables nor the file define.

use super::SinkKind;
use super::eval::map_taints;
use super::value::FlowValue;

/// Calls that look up an object by data, and do not return the data.
const LOOKUPS: [&str; 44] = [
    "find",
    "findone",
    "findbyid",
    "findall",
    "findfirst",
    "findunique",
    "findbypk",
    "fetch",
    "fetchall",
    "fetchone",
    "query",
    "execute",
    "save",
    "create",
    "insert",
    "insertone",
    "updateone",
    "deleteone",
    "update",
    "delete",
    "destroy",
    "count",
    "exists",
    "lookup",
    "load",
    "where",
    "find_by",
    "filter_by",
    "get_or_404",
    "get_object_or_404",
    "first_or_404",
    "findbyusername",
    "findbyemail",
    "executequery",
    "executeupdate",
    "exec",
    "select",
    "raw",
    "authenticate",
    "send",
    "post",
    "request",
    "saveall",
    "findoneby",
];

/// Prefixes of names of functions that get an object by data.
const GETTERS: [&str; 22] = [
    "get", "find", "load", "fetch", "list", "lookup", "export", "create", "update", "delete",
    "save", "search", "count", "resolve", "validate", "check", "parse", "build", "make", "dump",
    "render", "query",
];

/// Keys of records, as names of functions call them: `findUserById`, `get_by_slug`.
const KEYS: [&str; 9] = [
    "id", "ids", "key", "pk", "uuid", "guid", "slug", "email", "username",
];

/// Words of functions that read a value from a request, or that write the key into a text.
const TEXTS: [&str; 13] = [
    "param",
    "params",
    "parameter",
    "query",
    "sql",
    "command",
    "cmd",
    "script",
    "path",
    "arg",
    "header",
    "cookie",
    "field",
];

/// Returns true for calls that look up an object by data, and do not return the data.
pub(super) fn is_lookup(word: &str) -> bool {
    LOOKUPS.contains(&word.to_ascii_lowercase().as_str()) || is_lookup_by_key(word)
}

/// Returns true for names such as `findUserById`, `get_by_slug`.
fn is_lookup_by_key(word: &str) -> bool {
    let words = words_of(word);
    let verbs = [
        "get", "find", "load", "fetch", "lookup", "select", "retrieve",
    ];
    let is_verb = words.first().is_some_and(|w| verbs.contains(&w.as_str()));
    let returns_text = words.iter().any(|w| TEXTS.contains(&w.as_str()));
    match words.as_slice() {
        [.., by, key] => is_verb && !returns_text && by == "by" && KEYS.contains(&key.as_str()),
        _ => false,
    }
}

/// Returns the words of a name, in lower case: `get`, `by` and `id` of `getByID`.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_upper = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            words.push(String::new());
        } else if c.is_ascii_uppercase() && !was_upper {
            words.push(c.to_ascii_lowercase().to_string());
        } else if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        } else {
            words.push(c.to_string());
        }
        was_upper = c.is_ascii_uppercase();
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Returns true if a name has one of these words.
pub(super) fn has_word(name: &str, words: &[&str]) -> bool {
    words_of(name).iter().any(|w| words.contains(&w.as_str()))
}

/// Returns true for names of objects and methods that check or make addresses, or check values:
/// `redirects`, `urlGuard`, `normalizeTarget`.
pub(super) fn says_check(name: &str) -> bool {
    words_of(name).iter().any(|word| is_word_of_checks(word))
}

/// Returns true for a word of addresses or of checks.
fn is_word_of_checks(word: &str) -> bool {
    let starts = ["redirect", "safe", "saniti", "valid", "allow", "normali"];
    matches!(word, "url" | "urls" | "uri" | "uris") || starts.iter().any(|s| word.starts_with(s))
}

/// Returns true for methods that return the data of a form or of a mapping: `get_data`, `values`.
pub(super) fn reads_data(word: &str) -> bool {
    let starts = [
        "get",
        "pop",
        "to",
        "as",
        "read",
        "data",
        "value",
        "values",
        "item",
        "items",
        "key",
        "keys",
        "list",
        "lists",
        "copy",
        "dict",
        "json",
        "model",
        "field",
        "fields",
        "clean",
        "cleaned",
        "param",
        "params",
        "input",
        "raw",
        "text",
        "query",
        "body",
        "serialize",
        "dump",
        "dumps",
    ];
    let first = words_of(word).into_iter().next();
    first.is_none_or(|w| w.starts_with("get") || starts.contains(&w.as_str()))
}

/// Returns true for names of objects of other layers of the program: `userService`, `orderRepo`.
/// What they return is their own data as often as that of their arguments.
pub(super) fn is_service(object: &str) -> bool {
    const ENDS: [&str; 10] = [
        "service",
        "repository",
        "repo",
        "manager",
        "mapper",
        "dao",
        "facade",
        "provider",
        "gateway",
        "client",
    ];
    let lower = object.to_ascii_lowercase();
    ENDS.iter().any(|end| lower.ends_with(end))
}

/// Returns true for names such as `getUser`, `load_page`.
pub(super) fn is_getter(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    GETTERS.iter().any(|p| lower.starts_with(p))
}

/// Returns true for names of predicates: `is_open`, `hasNext`, `empty?`.
pub(super) fn is_question(word: &str) -> bool {
    let mut rests = ["is", "has"].iter().filter_map(|p| word.strip_prefix(p));
    ["is_", "has_", "can_"].iter().any(|p| word.starts_with(p))
        || rests.any(|r| r.starts_with(|c: char| c.is_ascii_uppercase()))
        || word.ends_with('?')
}

/// Returns true if a function's name indicates that it returns a number or a truth value.
pub(super) fn says_number(word: &str) -> bool {
    let mut words: Vec<String> = Vec::new();
    for c in word.chars() {
        match words.last_mut() {
            Some(w) if !c.is_ascii_uppercase() && c != '_' => w.push(c),
            _ if c == '_' => words.push(String::new()),
            _ => words.push(c.to_ascii_lowercase().to_string()),
        }
    }
    words.len() < 5 && words.iter().any(|w| names_number(w))
}

/// Returns true if the last word of a function's name is a date: `next_due_date`, `formatDate`.
/// A formatted date has no markup.
fn says_date(word: &str) -> bool {
    let Some(before) = word
        .strip_suffix("_date")
        .or_else(|| word.strip_suffix("Date"))
    else {
        return false;
    };
    before.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// Returns true for a word that names a number, a date or another value without text of its own.
fn names_number(word: &str) -> bool {
    matches!(
        word,
        "bool"
            | "boolean"
            | "int"
            | "integer"
            | "float"
            | "number"
            | "numeric"
            | "strtobool"
            | "timestamp"
            | "duration"
            | "timedelta"
            | "datetime"
            | "uuid"
    )
}

/// Returns the result of an unknown function whose name indicates that it sanitizes data.
pub(super) fn cleaned(word: &str, v: FlowValue) -> FlowValue {
    let lower = word.to_ascii_lowercase();
    let starts = [
        "sanitiz",
        "sanitis",
        "escape",
        "quote",
        "htmlescape",
        "encode",
        "purify",
        "clean",
        "strip_tags",
        "slugify",
        "whitelist",
        "normalize_and_check",
    ];
    if lower.starts_with("unescape")
        || lower.starts_with("decode")
        || lower == "encode"
        || lower == "normalize"
    {
        return v;
    }
    if lower.starts_with("encodeuri") || lower.contains("urlencode") {
        let kinds = SinkKind::Url.bit()
            | SinkKind::Redirect.bit()
            | SinkKind::Html.bit()
            | SinkKind::Header.bit()
            | SinkKind::Log.bit();
        return v.clean(kinds);
    }
    if lower.contains("safe") && !lower.contains("unsafe") || lower.starts_with("secure") {
        let kinds = SinkKind::Url.bit()
            | SinkKind::Redirect.bit()
            | SinkKind::Path.bit()
            | SinkKind::Html.bit()
            | SinkKind::ZipSlip.bit();
        return v.clean(kinds);
    }
    if says_date(word) {
        return v.clean(SinkKind::Html.bit());
    }
    if starts.iter().any(|s| lower.starts_with(s))
        || lower.contains("sanitize")
        || lower.contains("escape")
    {
        return FlowValue {
            taints: map_taints(&v.taints, u32::MAX, false),
            items: None,
            ..v
        };
    }
    v
}

/// Returns true for types whose values are harmless in any text.
pub(super) fn is_number(ty: &str) -> bool {
    let last = ty.rsplit(['.', ':']).next().unwrap_or(ty);
    matches!(
        last,
        "int"
            | "long"
            | "short"
            | "byte"
            | "float"
            | "double"
            | "boolean"
            | "bool"
            | "Integer"
            | "Long"
            | "Short"
            | "Byte"
            | "Float"
            | "Double"
            | "Boolean"
            | "Int"
            | "BigInteger"
            | "BigDecimal"
            | "Decimal"
            | "decimal"
            | "number"
            | "UUID"
            | "UUID1"
            | "UUID3"
            | "UUID4"
            | "UUID5"
            | "UUID6"
            | "UUID7"
            | "UUID8"
            | "PositiveInt"
            | "NegativeInt"
            | "NonNegativeInt"
            | "NonPositiveInt"
            | "StrictInt"
            | "StrictFloat"
            | "StrictBool"
            | "AwareDatetime"
            | "NaiveDatetime"
            | "PastDate"
            | "FutureDate"
            | "PastDatetime"
            | "FutureDatetime"
            | "timedelta"
            | "PydanticObjectId"
            | "Guid"
            | "date"
            | "datetime"
            | "Date"
            | "LocalDate"
            | "LocalDateTime"
            | "Instant"
            | "DateTime"
            | "DateTimeOffset"
            | "TimeSpan"
            | "Duration"
            | "int8"
            | "int16"
            | "int32"
            | "int64"
            | "uint"
            | "uint8"
            | "uint16"
            | "uint32"
            | "uint64"
            | "float32"
            | "float64"
            | "rune"
            | "size_t"
            | "ssize_t"
            | "ulong"
            | "ushort"
            | "uint8_t"
            | "uint16_t"
            | "uint32_t"
            | "uint64_t"
            | "int8_t"
            | "int16_t"
            | "int32_t"
            | "int64_t"
            | "IPv4Address"
            | "ObjectId"
            | "bigint"
            | "positive-int"
    )
}

/// Returns true for types of texts, which have no methods of interest.
pub(super) fn is_text(ty: &str) -> bool {
    matches!(
        ty,
        "String"
            | "string"
            | "str"
            | "var"
            | "val"
            | "let"
            | "auto"
            | "Object"
            | "object"
            | "any"
            | "dynamic"
            | "Any"
            | "char"
    )
}

/// Returns the kinds for which a check of the result of a function or member is a check of its
/// input.
pub(super) fn transparent(word: &str) -> u32 {
    let path = SinkKind::Path.bit() | SinkKind::ZipSlip.bit();
    let url = SinkKind::Url.bit() | SinkKind::Redirect.bit();
    match word {
        "lower" | "upper" | "toLowerCase" | "toUpperCase" | "trim" | "strip" | "toString"
        | "str" | "String" | "downcase" | "upcase" | "strtolower" | "strtoupper" | "ToLower"
        | "ToUpper" | "to_s" | "Trim" | "TrimSpace" | "casefold" | "to_sym" | "ToString"
        | "lowercase" | "uppercase" | "TrimRight" | "TrimLeft" | "rstrip" | "lstrip" | "chomp" => {
            u32::MAX
        }
        "realpath" | "abspath" | "normpath" | "resolve" | "getCanonicalPath"
        | "getAbsolutePath" | "toAbsolutePath" | "toRealPath" | "toPath" | "getCanonicalFile"
        | "Clean" | "Abs" | "EvalSymlinks" | "GetFullPath" | "join" | "commonpath"
        | "commonprefix" | "relative" | "relpath" | "Rel" | "realpathSync" | "expand_path"
        | "cleanpath" | "Path" | "File" | "Join" | "Combine" | "absolute" | "absolutePath"
        | "canonicalPath" | "canonicalFile" | "getPath" | "toFile" | "FileInfo" | "FullName"
        | "fullName" | "weakly_canonical" | "canonical" | "lexically_normal" | "parents"
        | "path" | "Paths" | "rootPath" | "as_posix" | "relative_to" => path,
        // A URL with the host of a list is not a path of this machine.
        "normalize" | "getHost" | "hostname" | "Hostname" | "netloc" | "parse_url"
        | "PHP_URL_HOST" | "getAuthority" | "getHostName" | "DnsSafeHost" => path | url,
        "urlparse"
        | "urlsplit"
        | "urljoin"
        | "URL"
        | "URI"
        | "host"
        | "create"
        | "Parse"
        | "Uri"
        | "origin"
        | "Host"
        | "authority"
        | "parse"
        | "scheme"
        | "url_parse"
        | "IsWellFormedUriString"
        | "Authority"
        | "ParseRequestURI"
        | "toURI"
        | "toURL" => url,
        _ => 0,
    }
}
