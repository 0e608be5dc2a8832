//! Checks of the text around the line with the literal of a structural rule: most files need no
//! parser then.

mod blocks;
mod calls;
mod lines;
mod names;
mod repeated;

/// A line, and the text before and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSurroundings<'a> {
    pub(super) before: &'a [u8],
    pub(super) line: &'a [u8],
    /// Starts with the line end.
    pub(super) after: &'a [u8],
}

/// Returns true if the text around a literal can have a match.
type AroundCheck = fn(&LineSurroundings<'_>) -> bool;

/// The checks of names and texts.
const TEXT_CHECKS: &[(&str, AroundCheck)] = &[
    // A key of the line is a key of a later line at the same depth, or once more on the line.
    ("key-repeated", repeated::key),
    // The same block defines the name of the line once more.
    ("definition-repeated", repeated::definition),
    // Both sides of `||` or `&&` compare the same operand.
    ("operand-repeated", repeated::operand),
    // The pointer that the line frees is freed once more.
    ("freed-twice", repeated::free),
    // The line ends the block, and there is code of the block below.
    ("code-after", blocks::has_code_after),
    // The block that the line opens has no statement.
    ("block-empty", blocks::is_block_empty),
    // Nothing on the line makes its statement conditional.
    ("unconditional", blocks::is_unconditional),
    // A string of the line has a placeholder with the name of a variable.
    ("placeholder-known", names::has_known_placeholder),
    // The line passes a function by the name of a local definition.
    ("passes-local-function", names::passes_local_function),
    // The line declares a constant, and a later line of the block starts with its name and an
    // assignment.
    ("constant-assigned", names::constant_is_assigned),
    // The condition names a local function without calling it.
    ("condition-names-function", names::condition_names_function),
    // The line calls an asynchronous function of the file.
    ("calls-async-function", names::calls_async_function),
    // The receiver is declared as an array.
    ("receiver-is-array", names::receiver_is_array),
    // The second argument of the call is a constant.
    ("second-argument-constant", calls::second_is_constant),
    // Both sides of a comparison are the same path of names.
    ("compared-with-itself", names::is_compared_with_itself),
    // A format operation follows the call.
    ("format-count-differs", calls::count_differs),
    ("coroutine-used", names::coroutine_is_used),
    ("call-formatted", calls::is_formatted),
    // The mode of the call of `open` is invalid.
    ("mode-invalid", calls::has_invalid_mode),
];

/// The checks of the blocks around a line, which are known by the indentation of the lines.
const BLOCK_CHECKS: &[(&str, AroundCheck)] = &[
    // A value of the label is a value of another label of the block.
    ("label-repeated", repeated::label),
    // An earlier branch has the same condition.
    ("condition-above", repeated::condition),
    // The same statement has another handler above or below.
    ("handler-beside", blocks::has_handler_beside),
    // The statement is the first one in a loop.
    ("first-in-loop", blocks::is_first_in_loop),
    ("accessor-names-property", names::accessor_names_property),
    ("statement-starts", blocks::starts_statement),
    ("block-formats", blocks::block_formats),
    ("in-loop", blocks::is_in_loop),
    // The constructor uses its object above the line.
    ("this-above-super", names::object_is_used_above_super),
    // The innermost block is that of an `if` that does not name `err`.
    ("in-if-without-error", blocks::is_if_without_error),
    ("in-goroutine", blocks::is_in_goroutine),
    ("in-coroutine", blocks::is_in_coroutine),
    ("in-static-method", blocks::is_in_static_method),
    ("in-optional-method", blocks::is_in_optional_method),
    // A block around the line can be left out at runtime.
    ("in-branch", blocks::is_in_branch),
    // The line is in a value of an attribute of markup.
    ("in-attribute", blocks::is_in_attribute),
    // An earlier statement of the block can return.
    ("after-return", blocks::is_after_return),
    // The block below returns a value.
    ("block-returns", blocks::block_returns),
    // The block below leaves the function or the loop.
    ("block-leaves", blocks::block_leaves),
    // The function below has no statement that gives a value or fails.
    ("function-lacks-return", blocks::function_lacks_return),
    // The constructor of a subclass does not call the one of its parent.
    ("constructor-without-super", blocks::lacks_super),
    // The branch of a `switch` has no statement that ends it.
    ("falls-through", blocks::falls_through),
    // The next line opens a block.
    ("block-next", blocks::is_block_next),
    // The body of the loop is empty or waits for nothing.
    ("busy", blocks::is_busy),
    // Both sides of a comparison are declared with a class of values.
    ("objects-compared", names::objects_are_compared),
    // The receiver is declared with a class whose values do not change.
    ("receiver-is-immutable", names::receiver_is_immutable),
    // The receiver is the state of a component.
    ("receiver-is-state", names::receiver_is_state),
    // A loop around the line goes over the receiver.
    ("receiver-in-loop", names::receiver_is_in_loop),
    // The returned array is declared in the function.
    ("returns-local-array", names::returns_local_array),
    // The variable that a `using` declaration disposes of is returned.
    ("disposed-returned", names::disposed_is_returned),
    // A block around the line has the name that the line returns or assigns.
    ("name-around", names::is_around),
    // The next statement reads a member of the freed pointer.
    ("freed-used", names::freed_is_used),
    // A line above goes on to the next element from the freed one.
    ("freed-advanced", names::freed_is_advanced),
    // A value that is `None` is dereferenced on the line or in the block below.
    ("none-dereferenced", names::none_is_dereferenced),
    // The function that sets a state is called where the state is declared.
    ("setter-called", names::setter_is_called),
    // The deferred call is between an assignment and the check of its error.
    ("error-unchecked", names::error_is_unchecked),
];

/// Returns true if a check has that name.
#[cfg(test)]
pub(super) fn is_known(name: &str) -> bool {
    TEXT_CHECKS
        .iter()
        .chain(BLOCK_CHECKS)
        .any(|(known, _)| *known == name)
}

/// Runs the check of that name; `None`: it has another kind.
pub(super) fn passes(name: &str, around: &LineSurroundings<'_>) -> Option<bool> {
    let is_long = around.line.len() > MOST_LINE;
    if let Some(check) = find_check(TEXT_CHECKS, name) {
        return Some(is_long || check(around));
    }
    find_check(BLOCK_CHECKS, name)
        .map(|check| is_long || has_statements(around.line) || check(around))
}

fn find_check(checks: &[(&str, AroundCheck)], name: &str) -> Option<AroundCheck> {
    checks
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, check)| *check)
}

/// Bytes of a line that is checked, at most. Longer lines pass: they are rare, and the checks of
/// their words cost more than a parser.
const MOST_LINE: usize = 2 << 10;

/// Returns true if a line has more than one statement: its blocks are not known by indentation.
fn has_statements(line: &[u8]) -> bool {
    lines::has(line, b"; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str) -> bool {
        let at = if text.starts_with('>') {
            0
        } else {
            text.find("\n>").unwrap() + 1
        };
        let (before, rest) = (&text.as_bytes()[..at], &text.as_bytes()[at + 1..]);
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        passes(
            name,
            &LineSurroundings {
                before,
                line: &rest[..end],
                after: &rest[end..],
            },
        )
        .unwrap()
    }

    #[test]
    fn keys_are_repeated_at_the_same_depth() {
        assert!(check("key-repeated", ">  'a': 1,\n  'b': 2,\n  'a': 3,"));
        assert!(check("key-repeated", ">  a: 1,\n  b: 2,\n  a: 3,"));
        assert!(check("key-repeated", ">x = { a: 1, b: 2, a: 3 }"));
        assert!(!check("key-repeated", ">  a: 1,\n    a: 2,\n  b: 3,"));
        assert!(!check("key-repeated", ">x = { a: 1, b: { c: 2 } }"));
        assert!(!check("key-repeated", ">  url: 'a:b',\n  urls: 1"));
    }

    #[test]
    fn code_follows_at_the_same_depth() {
        assert!(check("code-after", ">    return a\n    b()"));
        assert!(check(
            "code-after",
            ">    return f(\n      a\n    );\n    b();\n  }"
        ));
        assert!(!check("code-after", ">    return a\n  b()"));
        assert!(!check("code-after", ">    return a;\n  }\n  b();"));
        assert!(!check("code-after", ">    return a;\n    case 1:"));
    }

    #[test]
    fn definitions_are_repeated() {
        assert!(check(
            "definition-repeated",
            ">def f(a):\n    pass\n\ndef f(b):\n    pass"
        ));
        assert!(check(
            "definition-repeated",
            "\n  def f\n  end\n>  def f\n  end"
        ));
        assert!(!check(
            "definition-repeated",
            ">def f(a):\n    pass\n\ndef fg(b):\n    pass"
        ));
    }

    #[test]
    fn a_wrapped_error_is_in_a_condition_without_it() {
        let name = "in-if-without-error";
        let line = "\n>\t\treturn fmt.Errorf(\"%w\", err)";
        assert!(check(name, &format!("func f() {{\n\tif x == nil {{{line}")));
        assert!(!check(
            name,
            &format!("func f() {{\n\tif err != nil {{{line}")
        ));
        assert!(!check(name, &format!("func f() {{\n\tfor x {{{line}")));
    }

    #[test]
    fn placeholders_are_known_in_their_function() {
        assert!(check(
            "placeholder-known",
            "function f(user) {\n>  return 'a ${user}';"
        ));
        assert!(check(
            "placeholder-known",
            "def f(self, user):\n    if a:\n>        raise E('no {user.name}')"
        ));
        assert!(!check(
            "placeholder-known",
            "function f(user) {\n  a();\n}\nfunction g() {\n>  return 'a ${user}';"
        ));
        assert!(!check(
            "placeholder-known",
            "function f(user) {\n>  return 'a ${name}';"
        ));
    }

    #[test]
    fn local_functions_are_passed() {
        assert!(check(
            "passes-local-function",
            "def f(x):\n    pass\n>a.append(f)"
        ));
        assert!(!check(
            "passes-local-function",
            "def f(x):\n    pass\n>a.append(g)"
        ));
    }

    #[test]
    fn only_what_stands_in_the_same_block_is_repeated() {
        assert!(!check(
            "key-repeated",
            "a = {\n>  a: 1,\n}\nb = {\n  a: 2,\n}"
        ));
        assert!(!check(
            "definition-repeated",
            "class A:\n>    def f(self):\n        pass\nclass B:\n    def f(self):\n"
        ));
        assert!(!check(
            "definition-repeated",
            "  if (a) {\n  }\n>  if (a) {\n  }"
        ));
        assert!(check(
            "label-repeated",
            "switch (a) {\n  case 1:\n    f();\n>  case 1:\n    g();\n}"
        ));
        assert!(!check(
            "label-repeated",
            "switch (a) {\n  case 1:\n  }\nswitch (b) {\n>  case 1:\n}"
        ));
        assert!(check(
            "condition-above",
            "if (a == 1) {\n>} else if (a == 1) {"
        ));
        assert!(check(
            "condition-above",
            "if a == 1:\n    b()\n>elif a == 1:"
        ));
        assert!(!check(
            "condition-above",
            "if (a == 1) {\n>} else if (a == 2) {"
        ));
        assert!(check("operand-repeated", ">if (a.b != 1 || a.b != 2) {"));
        assert!(!check("operand-repeated", ">if (a.b != 1 || a.c != 2) {"));
        assert!(check("operand-repeated", ">if n < 0 && n >= 9 {"));
        assert!(!check("operand-repeated", ">if n < 0 && m >= 9 {"));
        assert!(check("block-empty", ">if err != nil {\n\n\t}"));
        assert!(check("block-empty", ">if err != nil {}"));
        assert!(!check("block-empty", ">if err != nil {\n\treturn\n}"));
        assert!(check("freed-twice", "free(p);\nq();\n>free(p);"));
        assert!(!check("freed-twice", "free(q);\n>free(p);"));
    }

    #[test]
    fn the_blocks_around_a_line_are_known_by_its_indentation() {
        assert!(check(
            "in-coroutine",
            "async def f():\n    with a:\n>        b()"
        ));
        assert!(!check(
            "in-coroutine",
            "async def f():\n    def g():\n>        b()"
        ));
        assert!(check("in-loop", "foreach (var a in b)\n{\n>    c();\n}"));
        assert!(!check("in-loop", "for a in b:\n    c()\n>d()"));
        assert!(check(
            "in-goroutine",
            "\tgo func() {\n\t\tif a {\n>\t\t\tt.Fatal(b)"
        ));
        assert!(!check(
            "in-goroutine",
            "\tgo func() {\n\t}()\n>\tt.Fatal(b)"
        ));
        assert!(check(
            "in-static-method",
            "  public static function f()\n  {\n>    $this->a();"
        ));
        assert!(!check(
            "in-static-method",
            "  public function f()\n  {\n>    $this->a();"
        ));
        assert!(check("in-branch", "  if (a) {\n>    useEffect(f)\n  }"));
        assert!(!check("in-branch", "function A() {\n>  useEffect(f)\n"));
        assert!(check(
            "after-return",
            "  if (a) {\n    return b;\n  }\n>  useEffect(f)"
        ));
        assert!(!check(
            "after-return",
            "  useEffect(() => {\n    return b;\n  });\n>  useEffect(f)"
        ));
        assert!(check(
            "in-attribute",
            "  <a\n    onClick={() => {\n>      useEffect(f)"
        ));
        assert!(check(
            "handler-beside",
            "try:\n    a()\nexcept E:\n    b()\n>except F:"
        ));
        assert!(!check(
            "handler-beside",
            "try:\n    a()\n>except E:\n    b()\nc()\ntry:\n    d()\nexcept E:"
        ));
        assert!(check(
            "first-in-loop",
            "    for a in b {\n        // c\n>        return d;"
        ));
        assert!(!check(
            "first-in-loop",
            "    for a in b {\n        c();\n>        return d;"
        ));
    }

    #[test]
    fn the_block_below_a_line_is_known_by_its_indentation() {
        assert!(check(
            "block-returns",
            ">    def __init__(\n        self,\n    ):\n        return 1"
        ));
        assert!(!check(
            "block-returns",
            ">    def __init__(self):\n        a()\n    def f(self):\n        return 1"
        ));
        assert!(check("block-leaves", ">    finally:\n        return 1"));
        assert!(!check(
            "block-leaves",
            ">    finally:\n        a()\n    return 1"
        ));
        assert!(check(
            "function-lacks-return",
            ">    @property\n    def a(self):\n        b()\n    def c(self):\n        return 1"
        ));
        assert!(!check(
            "function-lacks-return",
            ">    @property\n    def a(self):\n        return 1"
        ));
        assert!(check(
            "constructor-without-super",
            "class A extends B {\n>  constructor() {\n    c();\n  }"
        ));
        assert!(!check(
            "constructor-without-super",
            "class A extends B {\n>  constructor() {\n    super();\n  }"
        ));
        assert!(!check(
            "constructor-without-super",
            "class A {\n>  constructor() {\n    c();\n  }"
        ));
        assert!(check(
            "falls-through",
            ">  case 1:\n    a = 1;\n  case 2:\n    break;"
        ));
        assert!(!check(
            "falls-through",
            ">  case 1:\n    a = 1;\n    break;\n  case 2:"
        ));
        assert!(check("busy", ">\tfor {\n\t\tselect {"));
        assert!(!check("busy", ">\tfor {\n\t\ta()"));
        assert!(check("none-dereferenced", ">if a.b is None:\n    a.b.c()"));
        assert!(!check(
            "none-dereferenced",
            ">if a.b is None:\n    return\na.b.c()"
        ));
        assert!(check(
            "setter-called",
            ">  const [a, setA] = useState();\n  setA(1);"
        ));
        assert!(!check(
            "setter-called",
            ">  const [a, setA] = useState();\n  f(() => {\n    setA(1);"
        ));
    }

    #[test]
    fn names_are_known_by_their_declarations() {
        assert!(check(
            "condition-names-function",
            "def is_a():\n    pass\n>if not is_a:"
        ));
        assert!(!check(
            "condition-names-function",
            "def is_a():\n    pass\n>if not is_a():"
        ));
        assert!(check(
            "calls-async-function",
            "async function f() {}\n>if (f()) {"
        ));
        assert!(!check(
            "calls-async-function",
            "function f() {}\n>if (f()) {"
        ));
        assert!(check(
            "objects-compared",
            "  int f(Long a, Long b) {\n>    if (a == b) {"
        ));
        assert!(!check(
            "objects-compared",
            "  int f(Long a, long b) {\n>    if (a == b) {"
        ));
        assert!(check(
            "receiver-is-array",
            "  int[] ids;\n>  s = ids.toString();"
        ));
        assert!(!check(
            "receiver-is-array",
            "  int ids;\n>  s = ids.toString();"
        ));
        assert!(check(
            "receiver-in-loop",
            "for (User u : users) {\n>  users.remove(u);"
        ));
        assert!(!check(
            "receiver-in-loop",
            "for (User u : users) {\n>  others.remove(u);"
        ));
        assert!(check(
            "returns-local-array",
            "  char buf[9];\n>  return buf;"
        ));
        assert!(!check(
            "returns-local-array",
            "  char *buf;\n>  return buf;"
        ));
        assert!(check(
            "disposed-returned",
            ">  using var a = F();\n  a.B();\n  return a;"
        ));
        assert!(!check(
            "disposed-returned",
            ">  using var a = F();\n  return b;"
        ));
        assert!(check("freed-used", ">  free(p);\n  n = p->next;"));
        assert!(!check("freed-used", ">  free(p);\n  n = q->next;"));
        assert!(check(
            "error-unchecked",
            "\ta, err := f()\n>\tdefer a.Close()\n\tif err != nil {"
        ));
        assert!(!check(
            "error-unchecked",
            "\tif err != nil {\n\t}\n>\tdefer a.Close()\n\tif b {"
        ));
    }

    #[test]
    fn the_arguments_of_a_call_can_stand_on_several_lines() {
        assert!(check(
            "second-argument-constant",
            ">self.assertTrue(\n    f(a, b),\n    True)"
        ));
        assert!(!check(
            "second-argument-constant",
            ">self.assertTrue(f(a, 1), message)"
        ));
        assert!(check("call-formatted", ">print('a %s',\n  b) % c"));
        assert!(!check("call-formatted", ">print('a % b)' % c)"));
        assert!(check("mode-invalid", ">open(a, 'rwb')"));
        assert!(!check("mode-invalid", ">open(a, 'rb+')"));
        assert!(!check("mode-invalid", ">open(a)"));
    }

    #[test]
    fn a_format_string_has_as_many_placeholders_as_the_call_has_arguments() {
        assert!(check("format-count-differs", ">a = '{} {}'.format(b)"));
        assert!(!check(
            "format-count-differs",
            ">a = '{} {}'.format(b, c(d, e))"
        ));
        assert!(check("format-count-differs", ">string.Format(\"{1}\", a)"));
        assert!(!check("format-count-differs", ">string.Format(\"{0}\", a)"));
        assert!(!check("format-count-differs", ">string.Format(Texts.A, a)"));
    }

    #[test]
    fn a_coroutine_is_used_where_it_is_called_without_await() {
        assert!(check("coroutine-used", ">async def f():\n    pass\nf()"));
        assert!(check(
            "coroutine-used",
            "x = self.f()\n>    async def f(self):\n        pass"
        ));
        assert!(!check(
            "coroutine-used",
            ">async def f():\n    pass\nawait f()\nawait self.f()"
        ));
    }

    #[test]
    fn a_statement_starts_unless_the_line_above_goes_on() {
        assert!(check("statement-starts", "if a:\n>    b == c"));
        assert!(!check("statement-starts", "a = f(\n>    b == c"));
        assert!(!check("statement-starts", "a = b and\n>    b == c"));
        assert!(check(
            "accessor-names-property",
            "val a: Int\n>  get() = a + 1"
        ));
        assert!(!check(
            "accessor-names-property",
            "val a: Int\n>  get() = b + 1"
        ));
    }

    #[test]
    fn a_long_line_passes() {
        let long = format!(">  return buf; // {}", "a".repeat(3 << 10));
        assert!(check("returns-local-array", &long) && check("in-loop", &long));
    }

    #[test]
    fn formatters_break_lines_inside_of_statements() {
        assert!(check(
            "after-return",
            "  if (\n    !a ||\n    b\n  ) {\n    return null;\n  }\n>  useState(f)"
        ));
        assert!(check(
            "falls-through",
            ">  case 1:\n    if (a) {\n      break;\n    }\n    b = 1;\n  case 2:"
        ));
        assert!(check(
            "error-unchecked",
            "\ta, err := f(\n\t\tb,\n\t)\n>\tdefer a.Close()\n\tif err != nil {"
        ));
        assert!(check(
            "placeholder-known",
            "  format(user: string) {\n>    return 'a ${user}';"
        ));
        assert!(check(
            "disposed-returned",
            ">  using var a =\n    F();\n  return a;"
        ));
        assert!(check("statement-starts", "if a:\n    # b, c,\n>    b == c"));
    }
}
