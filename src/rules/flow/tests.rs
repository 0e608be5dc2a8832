//! Tests of the engine's semantics, in Python because it is short. `fixtures/rules` tests languages
//! and tables.

use super::{
    Analysis, FlowCertainty, FlowLanguage, FlowSubject, PathStep, Proof, SinkKind, StepRole,
    Trigger, analyse,
};

fn may_match(language: FlowLanguage, text: &str) -> bool {
    Trigger::new(language, text.as_bytes()).may_match_file()
}

/// The lines of sinks with at least medium confidence.
fn lines(code: &str) -> Vec<u32> {
    let code = format!("from flask import request\nimport os, re\n{code}");
    let a = analyse(FlowLanguage::Python, code.as_bytes());
    assert!(a.is_complete);
    strong(code.as_bytes(), &a)
        .into_iter()
        .map(|l| l - 2)
        .collect()
}

/// Returns the line of a step, from 1.
fn line(code: &[u8], step: &PathStep) -> u32 {
    let before = code[..step.start].iter().filter(|b| **b == b'\n');
    1 + u32::try_from(before.count()).unwrap()
}

fn strong(code: &[u8], a: &Analysis) -> Vec<u32> {
    let flows = a
        .flows
        .iter()
        .filter(|f| f.confidence > FlowCertainty::Low && matches!(f.subject, FlowSubject::Flow(_)));
    flows
        .filter_map(|f| f.sink().map(|s| line(code, s)))
        .collect()
}

#[test]
fn data_reaches_a_sink_through_variables() {
    assert_eq!(
        lines("x = request.args['a']\ny = 'ls ' + x\nos.system(y)\n"),
        [3]
    );
    assert_eq!(
        lines("x = request.args['a']\nx = 'fixed'\nos.system('ls ' + x)\n"),
        [0_u32; 0]
    );
    assert_eq!(
        lines("a, b = request.args['a'], 'fixed'\nos.system(a)\nos.system(b)\n"),
        [2]
    );
}

#[test]
fn steps_lead_from_source_to_sink() {
    let code = b"from flask import request\nimport os\nx = request.args['a']\ny = 'ls ' + x\nos.system(y)\n";
    let a = analyse(FlowLanguage::Python, code);
    let flow = a
        .flows
        .iter()
        .find(|f| f.subject == FlowSubject::Flow(SinkKind::Command))
        .unwrap();
    let steps = flow.steps.iter().map(|s| (line(code, s), s.role));
    let steps: Vec<(u32, StepRole)> = steps.collect();
    assert_eq!(steps.first(), Some(&(3, StepRole::Source)));
    assert_eq!(steps.last(), Some(&(5, StepRole::Sink)));
    assert!(steps.contains(&(4, StepRole::Through)));
    assert_eq!(
        (flow.proof, flow.confidence),
        (Proof::Request, FlowCertainty::High)
    );
}

#[test]
fn branches_join_and_constants_choose() {
    assert_eq!(
        lines("x = 'a'\nif os.path.exists('f'):\n    x = request.args['a']\nos.system(x)\n"),
        [4]
    );
    assert_eq!(
        lines(
            "n = 5\nx = request.args['a']\nif n * 2 > 100:\n    y = x\nelse:\n    y = 'b'\nos.system(y)\n"
        ),
        [0_u32; 0]
    );
    assert_eq!(
        lines(
            "n = 60\nx = request.args['a']\nif n * 2 > 100:\n    y = x\nelse:\n    y = 'b'\nos.system(y)\n"
        ),
        [7]
    );
    assert_eq!(
        lines("x = request.args['a']\nos.system('b' if 2 > 1 else x)\n"),
        [0_u32; 0]
    );
}

#[test]
fn a_branch_that_ends_is_not_joined() {
    let code = "def f():\n    x = request.args['a']\n    if not x.isdigit():\n        return\n    os.system('ls ' + x)\n";
    assert_eq!(lines(code), [0_u32; 0]);
    let code = "def f():\n    x = request.args['a']\n    if not x.isdigit():\n        log(x)\n    os.system('ls ' + x)\n";
    assert_eq!(lines(code), [5]);
}

#[test]
fn checks_of_one_of_several_values_are_respected() {
    let code = "x = request.args['a']\nif x == 'a' or x == 'b':\n    os.system(x)\nelse:\n    os.system(x)\n";
    assert_eq!(lines(code), [5]);
    assert_eq!(
        lines("x = request.args['a']\nif x in ('a', 'b'):\n    os.system(x)\n"),
        [0_u32; 0]
    );
    assert_eq!(
        lines("x = request.args['a']\nif x != 'a':\n    os.system(x)\n"),
        [3]
    );
}

#[test]
fn a_check_of_one_thing_is_not_a_check_of_another() {
    let code =
        "x = request.args['a']\ny = request.args['b']\nif x in ('a', 'b'):\n    os.system(y)\n";
    assert_eq!(lines(code), [4]);
    assert_eq!(
        lines("k = request.args['k']\nx = lookup(k)\nif x == 'a':\n    os.system(k)\n"),
        [4]
    );
}

#[test]
fn anchored_strict_expressions_are_checks() {
    fn code(pattern: &str) -> String {
        format!("x = request.args['a']\nif re.fullmatch(r'{pattern}', x):\n    os.system(x)\n")
    }
    assert_eq!(lines(&code("[a-z0-9_]+")), [0_u32; 0]);
    assert_eq!(lines(&code(".*")), [3]);
    assert_eq!(
        lines("x = request.args['a']\nif re.search(r'[a-z]+', x):\n    os.system(x)\n"),
        [3]
    );
}

#[test]
fn loops_carry_data_around() {
    let code = "x = ''\ny = ''\nfor i in range(3):\n    os.system(x)\n    x = y\n    y = request.args['a']\n";
    assert_eq!(lines(code), [4]);
    assert_eq!(
        lines(
            "x = ''\nwhile True:\n    if os.path.exists('f'):\n        break\n    x = request.args['a']\nos.system(x)\n"
        ),
        [6]
    );
}

#[test]
fn collections_are_followed_by_key_and_position() {
    assert_eq!(
        lines("d = {'a': request.args['a'], 'b': 'fixed'}\nos.system(d['b'])\nos.system(d['a'])\n"),
        [3]
    );
    let code = "l = []\nl.append('x')\nl.append(request.args['a'])\nl.append('y')\nl.pop(0)\nos.system(l[0])\nos.system(l[1])\n";
    assert_eq!(lines(code), [6]);
    assert_eq!(
        lines("t = {'a': 'ls', 'b': 'df'}\nos.system(t[request.args['a']])\n"),
        [0_u32; 0]
    );
}

#[test]
fn functions_of_the_file_run_with_their_arguments() {
    assert_eq!(
        lines("def f(x):\n    return 'ls ' + x\n\nos.system(f(request.args['a']))\n"),
        [4]
    );
    assert_eq!(
        lines("def f(x):\n    return 'fixed'\n\nos.system(f(request.args['a']))\n"),
        [0_u32; 0]
    );
    assert_eq!(
        lines("def f(x):\n    os.system(x)\n\nf(request.args['a'])\nf('b')\n"),
        [2]
    );
}

#[test]
fn functions_that_check_are_checks() {
    let code = "def ok(x):\n    if x in ('a', 'b'):\n        return True\n    return False\n\ny = request.args['a']\nif ok(y):\n    os.system(y)\n";
    assert_eq!(lines(code), [0_u32; 0]);
    let code = "def check(x):\n    if x not in ('a', 'b'):\n        raise ValueError\n\ndef f():\n    y = request.args['a']\n    check(y)\n    os.system(y)\n";
    assert_eq!(lines(code), [0_u32; 0]);
}

#[test]
fn fields_carry_data_between_methods() {
    let code = "class A:\n    def __init__(self, x):\n        self.x = x\n        self.y = 'b'\n\n    def run(self):\n        os.system(self.x)\n        os.system(self.y)\n\nA(request.args['a']).run()\n";
    assert_eq!(lines(code), [7]);
}

#[test]
fn classes_that_create_objects_of_each_other_are_followed_completely() {
    for fields in [
        "static A one = new A();",
        "static A one = new A(); static A two = new A();",
        "B b = new B();",
        "B b = new B(new A()); A[] all = { new A(), new A() };",
    ] {
        let code = format!(
            "class A {{\n  {fields}\n  void f(HttpServletRequest r) {{\n    Runtime.getRuntime().exec(r.getParameter(\"x\"));\n  }}\n}}\nclass B {{\n  A a = new A();\n  B(A given) {{ a = given; }}\n}}\n"
        );
        let a = analyse(FlowLanguage::Java, code.as_bytes());
        assert!(a.is_complete, "{fields}");
        assert_eq!(strong(code.as_bytes(), &a), [4], "{fields}");
    }
}

#[test]
fn numbers_and_truth_values_are_harmless() {
    assert_eq!(
        lines("n = int(request.args['a'])\nos.system('ls %d' % n)\nos.system(f'ls {n}')\n"),
        [0_u32; 0]
    );
    assert_eq!(
        lines("os.system('ls ' + str(request.args['a'] == 'b'))\n"),
        [0_u32; 0]
    );
}

#[test]
fn parameters_of_unknown_origin_are_only_suggestions() {
    let code = b"import os\n\ndef f(x):\n    os.system(x)\n";
    let a = analyse(FlowLanguage::Python, code);
    assert_eq!(strong(code, &a), [0_u32; 0]);
    assert!(
        a.flows
            .iter()
            .any(|f| f.proof == Proof::Unknown && f.confidence == FlowCertainty::Low)
    );
}

/// The confidence of the only flow, whose data is of unknown origin.
fn of_unknown_origin(code: &str) -> Option<FlowCertainty> {
    let a = analyse(
        FlowLanguage::Python,
        format!("import os\ndef f(x, conn):\n    {code}\n").as_bytes(),
    );
    assert!(a.flows.iter().all(|f| f.proof == Proof::Unknown), "{code}");
    a.flows.first().map(|f| f.confidence)
}

#[test]
fn a_value_of_unknown_origin_has_low_confidence_also_where_most_values_do_harm() {
    for code in [
        "os.system('ls ' + x)",
        "os.system(x + ' --help')",
        "conn.execute(\"SELECT * FROM t WHERE a = '\" + x + \"'\")",
        "conn.execute('SELECT * FROM t ORDER BY ' + x)",
        "conn.execute(\"INSERT INTO t VALUES (1, '%s')\" % x)",
        "os.execvp('sh', ['sh', '-c', 'ls ' + x])",
    ] {
        assert_eq!(of_unknown_origin(code), Some(FlowCertainty::Low), "{code}");
    }
}

#[test]
fn the_code_after_a_counted_loop_is_reached() {
    fn after(language: FlowLanguage, code: &str) -> Vec<u32> {
        strong(code.as_bytes(), &analyse(language, code.as_bytes()))
    }
    let c = "int main(int argc, char **argv) {\n  for (int i = 0; i < 9; i++) { puts(\"x\"); }\n  system(argv[1]);\n}\n";
    assert_eq!(after(FlowLanguage::C, c), [3]);
    let php = "<?php\nfor ($i = 0; $i < 9; $i++) { echo $i; }\nsystem($_GET['c']);\n";
    assert_eq!(after(FlowLanguage::Php, php), [3]);
    let csharp = "class A : Controller {\n  public IActionResult Run(string c) {\n    for (int i = 0; i < 9; i++) { }\n    Process.Start(\"sh\", \"-c \" + c);\n    return Ok();\n  }\n}\n";
    assert_eq!(after(FlowLanguage::CSharp, csharp), [4]);
    assert_eq!(
        lines("while True:\n    pass\nos.system(request.args['a'])\n"),
        [0_u32; 0]
    );
}

#[test]
fn libc_builds_texts_step_by_step() {
    let code = "int main(int argc, char **argv) {\n  char q[99];\n  strcpy(q, \"SELECT * FROM t WHERE a = '\");\n  strcat(q, argv[1]);\n  strcat(q, \"'\");\n  mysql_query(db, q);\n  sprintf(q, \"SELECT * FROM t LIMIT %d\", atoi(argv[1]));\n  mysql_query(db, q);\n}\n";
    let a = analyse(FlowLanguage::C, code.as_bytes());
    let sql = a
        .flows
        .iter()
        .filter(|f| f.subject == FlowSubject::Flow(SinkKind::Sql));
    assert_eq!(
        sql.filter_map(|f| f.sink().map(|s| line(code.as_bytes(), s)))
            .collect::<Vec<_>>(),
        [6]
    );
}

#[test]
fn a_builder_that_is_changed_in_a_chain_keeps_its_data() {
    let code = "class A : Controller {\n  public IActionResult Run(string n) {\n    var b = new StringBuilder(\"SELECT * FROM t WHERE a = '\");\n    b.Append(n).Append(\"'\");\n    var c = new SqlCommand(b.ToString(), db);\n    return Ok();\n  }\n}\n";
    let a = analyse(FlowLanguage::CSharp, code.as_bytes());
    assert_eq!(strong(code.as_bytes(), &a), [5]);
}

#[test]
fn files_that_only_a_lowering_knows_are_read() {
    for (language, text) in [
        (FlowLanguage::C, "free(p);"),
        (FlowLanguage::C, "b[8] = 0;"),
        (FlowLanguage::Java, "@RestController"),
        (FlowLanguage::Python, "@app.route('/')"),
    ] {
        assert!(may_match(language, text), "{text}");
    }
}

#[test]
fn functions_of_other_files_leave_doubt_except_for_text_that_is_run() {
    let code = "from .helpers import make\nos.system(make(request.args['a']))\n";
    assert_eq!(lines(code), [2]);
    assert_eq!(
        lines("from .helpers import make\nopen(make(request.args['a']))\n"),
        [0_u32; 0]
    );
}

#[test]
fn broken_code_is_read_as_far_as_it_goes() {
    assert_eq!(lines("x = request.args['a']\nos.system(x)\nif (:\n"), [2]);
    let code = b"from flask import request\nimport os\ndef f(:\n    os.system(request.args['a'])\n";
    let _ = analyse(FlowLanguage::Python, code);
}

#[test]
fn deep_and_long_code_ends() {
    let deep = format!("x = {}1{}\n", "(".repeat(3000), ")".repeat(3000));
    let _ = analyse(FlowLanguage::Python, deep.as_bytes());
    let long = format!("x = 'a'{}\n", " + 'a'".repeat(5000));
    let _ = analyse(FlowLanguage::Python, long.as_bytes());
    let nested: String = (0..60)
        .map(|i| format!("{}if a{i}:\n", " ".repeat(i)))
        .collect();
    let _ = analyse(FlowLanguage::Python, nested.as_bytes());
    let big = vec![b' '; 2 << 20];
    assert!(!analyse(FlowLanguage::Python, &big).is_complete);
}

#[test]
fn the_result_is_the_same_every_time() {
    let code = "x = request.args['a']\nif x:\n    os.system(x)\n    open(x)\n    eval(x)\n";
    let code = format!("from flask import request\nimport os\n{code}");
    let first = analyse(FlowLanguage::Python, code.as_bytes()).flows;
    for _ in 0..5 {
        assert_eq!(analyse(FlowLanguage::Python, code.as_bytes()).flows, first);
    }
}

#[test]
fn files_without_sinks_are_not_parsed() {
    assert!(!may_match(FlowLanguage::Python, "total = price * 3\n"));
    assert!(may_match(FlowLanguage::Python, "os.system(x)\n"));
}

#[test]
fn kinds_are_in_the_order_of_the_tables() {
    assert_eq!(SinkKind::ALL.first().map(|k| k.name()), Some("sql"));
    assert_eq!(SinkKind::ALL.last().map(|k| k.name()), Some("cors"));
    assert_eq!(SinkKind::ALL.len(), 27);
}

#[test]
fn a_file_without_the_module_of_a_call_is_not_parsed() {
    assert!(may_match(
        FlowLanguage::Python,
        "import subprocess\nsubprocess.run(x, shell=True)\n"
    ));
    assert!(!may_match(
        FlowLanguage::Python,
        "import threading\nworker.run(x)\n"
    ));
    assert!(
        !may_match(FlowLanguage::Python, "import subprocess\nrun = x\n"),
        "no call"
    );
    // The module can have another name.
    assert!(may_match(
        FlowLanguage::Python,
        "import subprocess as sp\nsp.run(x, shell=True)\n"
    ));
}

#[test]
fn a_sink_that_needs_data_of_requests_counts_only_in_files_that_can_have_some() {
    assert!(!may_match(FlowLanguage::Python, "import os\nos.chdir(x)\n"));
    assert!(may_match(
        FlowLanguage::Python,
        "import os\nfrom flask import request\nos.chdir(request.args['x'])\n"
    ));
}

/// Code in which a check is asked about the same values by several calls.
const REPEATED_CHECK: &str = "
def check(name, folder):
    if not re.fullmatch('[a-z]+', name):
        raise ValueError(name)

def run():
    name = request.args['a']
    folder = request.args['b']
    check(name, folder)
    os.system('ls ' + name)
    check(name, folder)
    os.system('ls ' + folder)
    check(folder, name)
    os.system('ls ' + folder)
    check(name, folder)
    os.system('ls ' + folder)
";

#[test]
fn a_repeated_check_says_the_same_about_equal_values_and_not_about_others() {
    assert_eq!(lines(REPEATED_CHECK), [12]);
}

#[test]
fn what_a_check_says_in_one_file_does_not_hold_in_another() {
    let without = REPEATED_CHECK.replace("raise ValueError(name)", "pass");
    assert_eq!(lines(REPEATED_CHECK), [12]);
    assert_eq!(lines(&without), [10, 12, 14, 16]);
    assert_eq!(lines(REPEATED_CHECK), [12]);
}

#[test]
fn a_check_reads_the_variables_of_the_file_as_they_are_at_its_call() {
    let code = "
def check(name):
    if STRICT:
        if not re.fullmatch('[a-z]+', name):
            raise ValueError(name)

STRICT = False
a = request.args['a']
check(a)
os.system('ls ' + a)
STRICT = True
b = request.args['a']
check(b)
os.system('ls ' + b)
";
    assert_eq!(lines(code), [10]);
}

#[test]
fn a_check_does_not_change_what_variables_of_its_caller_are_derived_from() {
    let code = "
def check(part):
    host = part.strip()
    return len(host)

def run():
    url = request.args['a']
    host = url.strip()
    check(url)
    if host in ('a', 'b'):
        os.system('ls ' + url)
    os.system('ls ' + url)
";
    assert_eq!(lines(code), [12]);
}

#[test]
fn many_different_checks_are_all_answered() {
    let count = 5000;
    let mut code = "
def check(name, number):
    if not re.fullmatch('[a-z]+', name):
        raise ValueError(number)

def run():
    name = request.args['a']
"
    .to_owned();
    for number in 0..count {
        code.push_str(&format!("    check(name, {number})\n"));
    }
    code.push_str("    os.system('ls ' + name)\n");
    assert_eq!(lines(&code), [0_u32; 0]);
}
