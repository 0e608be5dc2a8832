//! Determines whether a value in a dangerous call comes from outside the program.
//!
//! A rule with `judges_origin` matches the call. The value comes from outside if the statement
//! itself reads a request, an argument of the command line or the standard input, or if a line
//! above in the same function assigns such a value to one of its names. Otherwise the origin is
//! unknown, and the finding is a suggestion.

use super::MARK;
use super::expression::Expression;
use super::language::Languages;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::OnceLock;

/// Lines above a match that are searched for the origin of its names.
const LINES_ABOVE: usize = 80;
/// Lines above a function that may contain its decorators or annotations.
const DECORATORS: usize = 4;
/// Longer lines are cut, because a person writes short assignments.
const LINE_MAX: usize = 2_000;

/// Expressions for the input of a language.
struct Sources {
    languages: &'static [&'static str],
    /// Matches code that reads a value from outside.
    reads: &'static str,
    /// Matches the start of a function.
    function: &'static str,
    /// Matches a line, above or in the head of a function, that makes its parameters come from
    /// outside.
    handler: &'static str,
}

/// Marks a language in which no line makes a function a handler.
const NO_HANDLER: &str = r"\x00\x00";

static SOURCES: &[Sources] = &[
    Sources {
        languages: &["python"],
        reads: r"\b(?:self\.)?(?:flask\.)?req(?:uest)?\.(?:args|form|values|json|data|files|headers|cookies|params|query|query_params|path_params|query_string|match_info|rel_url|body|stream|GET|POST|COOKIES|META|FILES|get_json|get_data|url|path|environ|media|get_param)\b|\bself\.get_(?:query_|body_)?arguments?\(|(?:^|[^\w.])(?:raw_)?input\(|\bsys\.(?:argv|stdin)\b|\bcgi\.FieldStorage\b|\bevent\[",
        function: r"^\s*(?:async\s+)?def\s+\w+",
        handler: r"@\w+(?:\.\w+)*\.(?:route|get|post|put|delete|patch|websocket|api_route)\(|\bdef\s+\w+\(\s*(?:self\s*,\s*)?request\b",
    },
    Sources {
        languages: &["javascript", "typescript", "vue"],
        reads: r"\b(?:req|request|ctx|ctx\.request|context\.request|event\.request)\.(?:body|query|params|headers|cookies|url|originalUrl|param|files?|rawBody|formData)\b|\blocation\.(?:search|hash|href|pathname)\b|\bdocument\.(?:cookie|referrer|URL)\b|\bURLSearchParams\(|\bsearchParams\b|\bevent\.(?:queryStringParameters|pathParameters|body)\b|\bprocess\.(?:argv|stdin)\b|@(?:Query|Param|Body|Headers)\(",
        function: r"\bfunction\b|=>\s*\{\s*$|^\s*(?:(?:public|private|protected|static|async|override|export)\s+)*\w+\([^;]*\)\s*(?::[^;{]+)?\{\s*$",
        handler: NO_HANDLER,
    },
    Sources {
        languages: &["go"],
        reads: r"\b(?:r|req|request)\.(?:FormValue|PostFormValue|URL|Form|PostForm|MultipartForm|Header|Body|PathValue|Cookie|Host|RequestURI|Referer|UserAgent)\b|\b(?:c|ctx|e)\.(?:Query|Param|Params|PostForm|DefaultQuery|DefaultPostForm|GetHeader|FormValue|QueryParam|PathParam|GetQuery|Cookie|BodyParser|Bind|BindJSON|ShouldBind|ShouldBindJSON|QueryArray)\(|\bmux\.Vars\(|\bchi\.URLParam\(|\bos\.(?:Args|Stdin)\b|\bflag\.Args?\(",
        function: r"^func\b|\bfunc\([^)]*\)[^{]*\{\s*$",
        handler: NO_HANDLER,
    },
    Sources {
        languages: &["java", "kotlin", "scala", "groovy"],
        reads: r"\.getParameter(?:Values|Map)?\(|\.getQueryString\(|\.getHeaders?\(|\.getCookies\(|\.getInputStream\(|\.getReader\(|\.getPathInfo\(|\.getRequestURI\(|@(?:Request(?:Param|Body|Header)|PathVariable|CookieValue|QueryParam|PathParam|FormParam|HeaderParam|CookieParam|ModelAttribute|MatrixParam)\b|\b(?:readLine|readln)\(|\bargs\[|\.pathParam\(|\.queryParam\(|\.formParam\(|\bcall\.(?:parameters|request|receive)|\bSystem\.in\b",
        function: r"^\s*(?:public|private|protected|override|suspend|static|final|abstract|def|fun|@\w)[^;=]*\(",
        handler: NO_HANDLER,
    },
    Sources {
        languages: &["scala"],
        reads: r"\b(?:request|req)\.(?:body|queryString|getQueryString|headers|cookies|uri|path|rawQueryString)\b|\bparams\(|\bmultiParams\(|\bparameter(?:Map)?\(",
        function: r"^\s*(?:(?:override|private|protected|final|implicit)\s+)*def\s+\w+",
        handler: r"\bdef\s+\w+[^=]*=\s*(?:\w+\.)*\w*Action(?:\.async)?\b",
    },
    Sources {
        languages: &["php"],
        reads: r"\$_(?:GET|POST|REQUEST|COOKIE|FILES|SERVER)\b|\$(?:this->)?(?:request|req)->|\bRequest::(?:input|get|query|all|post)\(|\brequest\(|\bInput::|php://input|\$argv\b|\bfilter_input\s*\(",
        function: r"\bfunction\b",
        handler: NO_HANDLER,
    },
    Sources {
        languages: &["ruby"],
        reads: r"\bparams\b|\bcookies\[|\brequest\.(?:params|headers|body|env|query_string|path|url|referer|user_agent|raw_post|fullpath|GET|POST|query_parameters|request_parameters)\b|\bARGV\b|\b(?:STDIN|\$stdin)\b|(?:^|[^\w.])gets\b",
        function: r"^\s*def\s",
        handler: NO_HANDLER,
    },
    Sources {
        languages: &["rust"],
        reads: r"\b(?:Query|Path|Form|Json|web::Query|web::Path|web::Form|web::Json)(?:\(|<)|\benv::args|\bstdin\(\)|\.(?:query_string|match_info|uri|headers|into_body)\(\)",
        function: r"\bfn\s+\w+",
        handler: r"#\[(?:get|post|put|delete|patch|route)\(",
    },
    Sources {
        languages: &["csharp"],
        reads: r"\bRequest\.(?:Query|Form|Headers|Cookies|Params|QueryString|Path|Body|RouteValues|RawUrl|Url|InputStream|Files)\b|\bRequest\[|\[From(?:Query|Body|Route|Form|Header)\b|\bConsole\.Read(?:Line)?\(|\bargs\[|\bHttpContext\.(?:Current\.)?Request\b",
        function: r"^\s*(?:public|private|protected|internal)[^;=]*\(",
        handler: r"\[(?:Http(?:Get|Post|Put|Delete|Patch)|Route)\b",
    },
];

/// Matches a conversion of input to a number or another value that contains no text of the sender:
/// a comparison, or the page that a browser fetches from the address that it shows.
const CONVERTS: &str = r"\(\s*(?:int|long|float|double|bool)\s*\)|\b(?:intval|floatval|absint)\s*\(|(?:^|[^\w.])(?:int|float|len|bool|uuid\.UUID|UUID|Number|parseInt|parseFloat|isset|empty|count)\(|\bparse(?:Int|Long|Short|Double|Boolean)\(|\b(?:Integer|Long|UUID)\.(?:valueOf|fromString)\(|\bstrconv\.(?:Atoi|Parse\w+)\(|\.to_i\b|\.to_f\b|\b(?:int|long|Guid|Int32|Int64)\.(?:Try)?Parse|\bConvert\.ToInt|\btype\s*=\s*int\b|<(?:int|uuid|float):|\.parse::<[iuf]\d|\.toInt\(|\.toLong\(|\b(?:int|long|Integer|Long|UUID|Int|Guid)\s+\w+\s*[,)]|\bfetch\(\s*(?:new URL\(\s*)?(?:window\.|document\.)?location\b|[=!]==?\s*(?:window\.|document\.)?location\.\w+|\blocation\.\w+(?:\s*[=!]==?|\.(?:startsWith|endsWith|includes|indexOf)\()|\.test\(\s*(?:window\.|document\.)?location\.";

/// Matches code that loads objects from a file. The person who runs the program names that file, so
/// the command line and the standard input are not an attacker's there.
const LOADS_FILE: &str = r"\b(?:c?[pP]ickle|_pickle|dill|cloudpickle)\.(?:load|Unpickler)\(|\bMarshal\.(?:load|restore)\b";
/// Matches code that reads input of the person who runs the program.
const OPERATOR: &str = r"\bsys\.(?:argv|stdin)\b|\bARGV\b|\bSTDIN\b|\$stdin\b";

/// The expressions of one entry of [`SOURCES`].
#[derive(Debug)]
struct SourceExpressions {
    loads_file: Expression,
    operator: Expression,
    converts: Expression,
    reads: Expression,
    function: Expression,
    handler: Expression,
}

static COMPILED: [OnceLock<Option<SourceExpressions>>; SOURCES.len()] =
    [const { OnceLock::new() }; SOURCES.len()];

/// Returns the expressions of every language of a file. A Jenkinsfile may also be Ruby.
fn sources(languages: Languages) -> Vec<&'static SourceExpressions> {
    SOURCES
        .iter()
        .zip(&COMPILED)
        .filter(|(s, _)| languages.any_of(s.languages))
        .filter_map(|(s, compiled)| compiled.get_or_init(|| SourceExpressions::new(s)).as_ref())
        .collect()
}

/// Facts about origins in a line.
#[derive(Clone, Debug)]
struct Facts {
    /// Start of the line in the text.
    start: usize,
    /// The part of the line that reads from outside, in bytes of the text.
    read: Option<Range<usize>>,
    /// True if that part reads input of the person who runs the program.
    is_operators: bool,
    starts_function: bool,
    makes_handler: bool,
}

/// The origins of values in one text. Each line is searched once, regardless of the number of
/// matches below it.
#[derive(Debug)]
pub(super) struct Origins<'t> {
    text: &'t [u8],
    languages: Languages,
    /// With the facts about lines by the offset of their end. `None` before the first use: most
    /// texts have no match whose origin matters, and the expressions take a millisecond to compile.
    sources: Option<Vec<(&'static SourceExpressions, HashMap<usize, Facts>)>>,
}

impl<'t> Origins<'t> {
    pub(super) fn new(text: &'t [u8], languages: Languages) -> Self {
        Self {
            text,
            languages,
            sources: None,
        }
    }

    /// Returns true if the line of a match uses a value from outside, in one of the languages of
    /// the file.
    pub(super) fn is_outside(&mut self, line: &Range<usize>) -> bool {
        let (text, statement) = (self.text, &self.text[line.clone()]);
        let sources = self.sources.get_or_insert_with(|| {
            sources(self.languages)
                .into_iter()
                .map(|s| (s, HashMap::new()))
                .collect()
        });
        if sources.iter().any(|(s, _)| s.reads_outside(statement)) {
            return true;
        }
        let names = names(used_part(statement));
        for (s, known) in sources {
            let search = OriginSearch {
                before: line.start,
                loads_file: s.loads_file.is_match(statement),
                names: &names,
            };
            if is_given(text, s, known, &search) {
                return true;
            }
        }
        false
    }
}

impl SourceExpressions {
    fn new(s: &Sources) -> Option<Self> {
        Some(Self {
            loads_file: Expression::new(LOADS_FILE, false)?,
            operator: Expression::new(OPERATOR, false)?,
            converts: Expression::new(CONVERTS, false)?,
            reads: Expression::new(s.reads, false)?,
            function: Expression::new(s.function, false)?,
            handler: Expression::new(s.handler, false)?,
        })
    }

    /// Returns true if a statement itself reads from outside.
    fn reads_outside(&self, statement: &[u8]) -> bool {
        let loads_file = self.loads_file.is_match(statement);
        let mut from = 0;
        while let Some(read) = self.reads.find_at(statement, from) {
            from = read.end;
            if !loads_file || !self.operator.is_match(&statement[read]) {
                return true;
            }
        }
        false
    }
}

/// The names whose origin is searched, and the position of the search.
struct OriginSearch<'n> {
    /// Start of a line. The lines above it are searched.
    before: usize,
    /// True if the statement loads objects from a file.
    loads_file: bool,
    names: &'n BTreeSet<&'n [u8]>,
}

/// Returns true if a line above assigns a value from outside to one of the names.
fn is_given(
    text: &[u8],
    sources: &SourceExpressions,
    known: &mut HashMap<usize, Facts>,
    search: &OriginSearch<'_>,
) -> bool {
    let names = search.names;
    let mut decorators = None;
    let mut next = search.before;
    for _ in 0..LINES_ABOVE {
        if next <= first_byte(text) {
            return false;
        }
        let end = end_of_line_above(text, next);
        let facts = known
            .entry(end)
            .or_insert_with(|| Facts::of(text, end, sources));
        let line = &text[facts.start..end.min(facts.start + LINE_MAX)];
        next = facts.start;
        if let Some(left) = &mut decorators {
            if facts.makes_handler {
                return true;
            }
            *left -= 1;
            if *left == 0 {
                return false;
            }
            continue;
        }
        let (start, length) = (facts.start, line.len());
        let read = facts
            .read
            .as_ref()
            .filter(|_| !(search.loads_file && facts.is_operators));
        let sides = read.map(|r| {
            (
                &line[..r.start - start],
                &line[(r.end - start).min(length)..],
            )
        });
        if sides.is_some_and(|(before, after)| assigns(before, after, names)) {
            return true;
        }
        if facts.starts_function {
            if !has_name(line, names) {
                return false;
            }
            if facts.makes_handler {
                return true;
            }
            decorators = Some(DECORATORS);
        }
    }
    false
}

/// Returns the first byte of the first line, after a byte order mark.
fn first_byte(text: &[u8]) -> usize {
    if text.starts_with(MARK) {
        MARK.len()
    } else {
        0
    }
}

/// Returns the end of the line above the one that starts at `next`, without its line end.
fn end_of_line_above(text: &[u8], next: usize) -> usize {
    let above = &text[..next];
    let above = above.strip_suffix(b"\n").unwrap_or(above);
    let without_return = above.strip_suffix(b"\r");
    without_return.unwrap_or(above).len()
}

impl Facts {
    /// Searches the line that ends at `end`.
    fn of(text: &[u8], end: usize, sources: &SourceExpressions) -> Self {
        let start =
            memchr::memrchr2(b'\n', b'\r', &text[..end]).map_or(first_byte(text), |i| i + 1);
        let line = &text[start..end.min(start + LINE_MAX)];
        let read = sources
            .reads
            .find_at(line, 0)
            .filter(|_| !sources.converts.is_match(line));
        Self {
            start,
            is_operators: read
                .as_ref()
                .is_some_and(|r| sources.operator.is_match(&line[r.clone()])),
            read: read.map(|r| start + r.start..start + r.end),
            starts_function: sources.function.is_match(line),
            makes_handler: sources.handler.is_match(line),
        }
    }
}

/// Returns true if a line that reads input assigns it to one of the names: `name = …`, `{ name } =
/// …`, `if (name := …)`, `@Param("x") String name`.
fn assigns(before: &[u8], after: &[u8], names: &BTreeSet<&[u8]>) -> bool {
    match memchr::memchr(b'=', before) {
        Some(at) => has_name(&before[..at], names),
        // `for name in …`, `Scan(&name)`, or a parameter with its annotation.
        None => has_name(before, names) || has_name(after, names),
    }
}

fn has_name(text: &[u8], names: &BTreeSet<&[u8]>) -> bool {
    words(text).any(|w| names.contains(w))
}

/// Words of an assignment's target, at most: `final String name`. A call without parentheses and
/// with a condition, such as Ruby's `eval code if x = 1`, has more.
const TARGET_WORDS: usize = 3;

/// Returns the part of a statement that uses values: the text after the `=` of an assignment.
/// Without this, `if (location.hash) box.focus()` would make the value in `box.innerHTML = html`
/// come from outside.
fn used_part(statement: &[u8]) -> &[u8] {
    let Some(at) = memchr::memchr(b'=', statement) else {
        return statement;
    };
    let (target, value) = (&statement[..at], &statement[at + 1..]);
    let words = target
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty())
        .count();
    let assigns = !value.starts_with(b"=") && !value.starts_with(b">");
    if assigns && words <= TARGET_WORDS && target.iter().all(is_part_of_target) {
        value
    } else {
        statement
    }
}

/// Returns true for a byte of an assignment's target or of a compound operator.
fn is_part_of_target(b: &u8) -> bool {
    is_word(*b)
        || matches!(
            b,
            b' ' | b'\t' | b'.' | b'$' | b'@' | b'[' | b']' | b'+' | b'-' | b'>'
        )
}

/// Returns the names that a statement uses, without those that it calls. Of a string, only
/// interpolated parts count: the text in braces, and names after `$`.
fn names(statement: &[u8]) -> BTreeSet<&[u8]> {
    const COMMON: &[&[u8]] = &[
        b"self", b"this", b"await", b"return", b"new", b"var", b"let", b"const", b"None", b"True",
        b"False", b"true", b"false", b"null", b"nil", b"err", b"ctx", b"req", b"res", b"request",
        b"db", b"conn", b"cursor", b"cur", b"if", b"in", b"for", b"and", b"or", b"not", b"shell",
        b"check", b"f", b"w", b"r", b"c", b"rows", b"_",
    ];
    let mut out = BTreeSet::new();
    let (mut quote, mut depth, mut at) = (None, 0u32, 0);
    while let Some(b) = statement.get(at).copied() {
        let length = statement[at..].iter().take_while(|b| is_word(**b)).count();
        if length > 0 {
            let word = &statement[at..at + length];
            let variable = at.checked_sub(1).is_some_and(|i| statement[i] == b'$');
            let called = statement.get(at + length) == Some(&b'(');
            let counts =
                (quote.is_none() || depth > 0 || variable) && !called && !b.is_ascii_digit();
            if counts && !COMMON.contains(&word) {
                out.insert(word);
            }
            at += length;
            continue;
        }
        match (b, quote) {
            (b'\\', Some(_)) => at += 1,
            (b'{', Some(_)) => depth += 1,
            (b'}', Some(_)) => depth = depth.saturating_sub(1),
            (b'"' | b'\'' | b'`', None) => quote = Some(b),
            (_, Some(q)) if q == b && depth == 0 => quote = None,
            _ => {}
        }
        at += 1;
    }
    out
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Returns the words of a text: runs of letters, digits and `_`.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| !is_word(*b)).filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(path: &str, text: &str) -> bool {
        let at = text.rfind('\n').map_or(0, |i| i + 1);
        let languages = Languages::of(path.as_bytes(), b"");
        Origins::new(text.as_bytes(), languages).is_outside(&(at..text.len()))
    }

    #[test]
    fn every_expression_compiles() {
        for s in SOURCES {
            let language = Languages::named(s.languages[0]).unwrap();
            assert!(!sources(language).is_empty(), "{:?}", s.languages);
        }
    }

    #[test]
    fn a_value_from_a_request_is_known_in_its_statement_and_in_the_lines_above() {
        for (path, text) in [
            (
                "a.py",
                "cur.execute(\"SELECT 1 WHERE a = '%s'\" % request.args['a'])",
            ),
            (
                "a.py",
                "name = request.args.get('name')\ncur.execute(f\"SELECT 1 WHERE a = '{name}'\")",
            ),
            (
                "a.py",
                "@app.get('/u/{name}')\ndef show(name: str):\n    cur.execute(f\"SELECT 1 WHERE a = '{name}'\")",
            ),
            (
                "a.py",
                "def show(request, name):\n    cur.execute(f\"SELECT 1 WHERE a = '{name}'\")",
            ),
            ("a.py", "path = sys.argv[1]\nos.system('ls ' + path)"),
            (
                "A.scala",
                "\u{feff}def ping(host: String) = Action {\n  val out = s\"ping $host\".!!",
            ),
            (
                "a.js",
                "const { id, name } = req.body;\ndb.query(`SELECT 1 WHERE a = '${name}'`)",
            ),
            ("a.js", "db.query('SELECT 1 WHERE a = ' + req.params.id)"),
            (
                "a.go",
                "name := r.URL.Query().Get(\"name\")\ndb.Query(\"SELECT 1 WHERE a = '\" + name + \"'\")",
            ),
            (
                "A.java",
                "public String f(@RequestParam(\"n\") String name) {\n  s.executeQuery(\"SELECT 1 WHERE a = '\" + name);",
            ),
            (
                "a.php",
                "$id = $_GET['id'];\n$db->query(\"SELECT 1 WHERE a = $id\");",
            ),
            (
                "a.rb",
                "name = params[:name]\nUser.where(\"a = '#{name}'\")",
            ),
            (
                "a.rb",
                "name = params[:name]\rUser.where(\"a = '#{name}'\")",
            ),
            ("Jenkinsfile.rb", "User.order(\"#{params[:sort]} asc\")"),
            (
                "a.py",
                "command = request.args['c']\nout = subprocess.run(command, shell=True)",
            ),
            (
                "a.js",
                "const name = new URLSearchParams(location.search).get('n');\nbox.innerHTML = 'Hello ' + name;",
            ),
            (
                "a.js",
                "const text = location.hash.slice(1);\nthis.box.innerHTML += text;",
            ),
            (
                "a.py",
                "value = pickle.load(open(sys.argv[1], 'rb')), pickle.load(request.files['a'])",
            ),
            ("a.rb", "code = params[:code]\nMarshal.load code if x = 1"),
            (
                "A.cs",
                "[HttpGet]\npublic IActionResult F(string name) {\n  db.Execute($\"SELECT 1 WHERE a = '{name}'\");",
            ),
        ] {
            assert!(outside(path, text), "{text}");
        }
    }

    #[test]
    fn a_value_of_another_function_or_of_nowhere_is_unknown() {
        for (path, text) in [
            ("a.py", "cur.execute(f\"SELECT 1 WHERE a = '{name}'\")"),
            (
                "a.py",
                "def a():\n    name = request.args['a']\n\ndef b(name):\n    cur.execute(f\"SELECT 1 WHERE a = '{name}'\")",
            ),
            (
                "a.py",
                "n = request.args['n']\ncur.execute(f\"SELECT n FROM t WHERE n = '{name}'\")",
            ),
            (
                "a.py",
                "page = request.args['page']\ncur.execute(f\"SELECT 1 WHERE a = '{name}'\")",
            ),
            ("a.js", "db.query(`SELECT 1 WHERE a = '${name}'`)"),
            (
                "a.go",
                "func f(name string) {\n\tdb.Query(\"SELECT 1 WHERE a = '\" + name + \"'\")",
            ),
            ("a.zig", "x(request.args)"),
            (
                "a.py",
                "id = int(request.args['id'])\ncur.execute(f\"SELECT 1 WHERE a = {id}\")",
            ),
            (
                "a.php",
                "$id = (int) $_GET['id'];\n$db->query(\"SELECT 1 WHERE a = $id\");",
            ),
            ("a.py", "value = pickle.load(open(sys.argv[1], 'rb'))"),
            ("a.py", "value = pickle.load(sys.stdin.buffer)"),
            (
                "a.py",
                "path = sys.argv[1]\nvalue = pickle.load(open(path, 'rb'))",
            ),
            (
                "a.rb",
                "path = ARGV[0]\nvalue = Marshal.load(File.binread(path))",
            ),
            (
                "a.js",
                "if (location.hash) box.focus();\nbox.innerHTML = html;",
            ),
            (
                "a.js",
                "const html = await (await fetch(location.href)).text();\nbox.innerHTML = html;",
            ),
            (
                "a.js",
                "const state = link.href === location.pathname ? 'on' : '';\nbox.innerHTML = `<a class=\"${state}\">`;",
            ),
            (
                "a.js",
                "const isAdmin = location.pathname.startsWith('/admin');\nbox.innerHTML = isAdmin ? menu : '';",
            ),
        ] {
            assert!(!outside(path, text), "{text}");
        }
    }
}
