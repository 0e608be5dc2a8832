//! Tests of the uses of changed names: their callers, tests, other uses and overrides.

use super::{Project, behind, filler};

#[test]
fn callers_and_tests_of_what_changes_are_shown_and_those_of_a_removed_function_too() {
    for (path, old, new, caller, test, call) in [
        (
            "src/a.py",
            "def charge(total):\n    return total\n",
            "def charge(total, fee):\n    return total + fee\n",
            (
                "web/view.py",
                "def show():\n    x = 1\n    return charge(2)\n",
            ),
            (
                "tests/test_a.py",
                "def test_charge():\n    assert charge(1) == 1\n",
            ),
            "use of charge in show",
        ),
        (
            "src/a.js",
            "exports.charge = function (total) {\n  return total\n}\n",
            "exports.other = function () {}\n",
            (
                "web/view.ts",
                "export function show() {\n  return api.charge(2)\n}\n",
            ),
            ("test/a.test.js", "it('charges', () => {\n  charge(1)\n})\n"),
            "use of charge in show",
        ),
        (
            "pay/a.go",
            "package pay\n\nfunc Charge(total int) int {\n\treturn total\n}\n",
            "package pay\n\nfunc Charge(total int) int {\n\treturn total + 1\n}\n",
            (
                "web/view.go",
                "package web\n\nfunc Show() int {\n\treturn pay.Charge(2)\n}\n",
            ),
            (
                "pay/a_test.go",
                "package pay\n\nfunc TestCharge(t *testing.T) {\n\tCharge(1)\n}\n",
            ),
            "use of Charge in Show",
        ),
    ] {
        let project = Project::new();
        project
            .repo
            .stage(path, old)
            .stage(caller.0, caller.1)
            .stage(test.0, test.1)
            .commit("one");
        project.repo.stage(path, new);
        let prompt = project.prompt();
        assert!(
            prompt.contains(&format!("{}:", caller.0)) && prompt.contains(call),
            "{path}: {prompt}"
        );
        assert!(
            prompt.contains(&format!("{}:", test.0)) && prompt.contains(": test of "),
            "{path}: {prompt}"
        );
    }
}

#[test]
fn calls_beside_each_other_are_shown_once() {
    let project = Project::new();
    let caller = format!(
        "def page(style):\n{}    if style:\n        return load(1)\n    return save(2)\n",
        filler("x", 30)
    );
    project.repo.stage(
        "app/store.py",
        "def load(a):\n    return a\n\n\ndef save(a):\n    return a\n",
    );
    project.repo.stage("app/page.py", caller).commit("one");
    project.repo.stage(
        "app/store.py",
        "def load(a):\n    return a + 1\n\n\ndef save(a):\n    return a + 1\n",
    );
    let prompt = project.prompt();
    assert!(
        prompt.contains(
            "app/page.py:30-34: use of load, save in page\n30     x_28 = 28\n31     x_29 = 29\n32     if style:\n"
        ),
        "{prompt}"
    );
    assert_eq!(prompt.matches("return save(2)").count(), 1, "{prompt}");
}

#[test]
fn what_a_test_defines_is_not_looked_for_in_programs() {
    let project = Project::new();
    project
        .repo
        .stage("app/log.py", "def log(stream):\n    stream.flush_all()\n");
    let test = |n: u32| {
        format!(
            "class Stream:\n    def flush_all(self):\n        return {n}\n\n\ndef test_log():\n    Stream().flush_all()\n"
        )
    };
    project
        .repo
        .stage("tests/test_log.py", test(1))
        .commit("one");
    project.repo.stage("tests/test_log.py", test(2));
    let prompt = project.prompt();
    assert!(!prompt.contains("app/log.py"), "{prompt}");
}

#[test]
fn a_small_change_with_many_callers_stays_within_the_budget() {
    let project = Project::new();
    let body = filler("x", 100);
    for i in 0..40 {
        let calls: String = (0..30)
            .map(|n| format!("def use{n}_{i}():\n    return charge({n})\n"))
            .collect();
        project.repo.stage(&format!("web/view{i}.py"), calls);
    }
    let text = format!(
        "def charge(total):\n{body}    return total\n\n\ndef fee(total):\n{body}    return total\n"
    );
    project
        .repo
        .stage("src/a.py", &text)
        .stage("src/b.py", text.replace("charge", "refund"))
        .commit("one");
    project
        .repo
        .stage("src/a.py", text.replace("total):", "total, rate):"));
    project.repo.stage(
        "src/b.py",
        text.replace("charge", "refund")
            .replace("x_50 = 50", "x_50 = 51"),
    );
    let prompt = project.prompt();
    assert!(prompt.len() < 40_000, "{} bytes", prompt.len());
    let uses = prompt.matches(": use of charge in ").count();
    assert!((5..=10).contains(&uses), "{uses}: {prompt}");
}

#[test]
fn uses_that_are_no_calls_are_found() {
    for (path, definition, old, new, user, text) in [
        (
            "lib.py",
            "def handle_it(f):\n    return f\n",
            "return f",
            "return 1",
            "use.py",
            "@handle_it\ndef g():\n    pass\n",
        ),
        (
            "lib.py",
            "import os\n\nLIMIT_IT = 1\n",
            "= 1",
            "= 2",
            "use.py",
            "def g():\n    return LIMIT_IT\n",
        ),
        (
            "lib.js",
            "function handleIt(a) {\n  return a\n}\n",
            "return a",
            "return 1",
            "use.js",
            "app.get('/', handleIt)\n",
        ),
        (
            "src/lib.rs",
            "pub fn handle_it(a: u8) -> u8 {\n    a\n}\n",
            "    a\n",
            "    a + 1\n",
            "src/use.rs",
            "fn x() {\n    println!(\"{}\", handle_it(1));\n}\n",
        ),
        (
            "lib.rb",
            "def handle_it\n  1\nend\n",
            "  1",
            "  2",
            "use.rb",
            "class A\n  before :handle_it\nend\n",
        ),
        (
            "A.java",
            "class A {\n  int limitIt = 1;\n}\n",
            "= 1",
            "= 2",
            "B.java",
            "class B {\n  void x(A a) {\n    use(a.limitIt);\n  }\n}\n",
        ),
    ] {
        let project = Project::new();
        project
            .repo
            .stage(path, definition)
            .stage(user, text)
            .commit("one");
        project.repo.stage(path, definition.replace(old, new));
        let prompt = project.prompt();
        assert!(prompt.contains(&format!("\n{user}:")), "{path}: {prompt}");
    }
}

#[test]
fn common_names_are_only_looked_for_where_their_owner_is_named() {
    let project = Project::new();
    let class = |n: u32| format!("class Pager:\n    def close(self):\n        return {n}\n");
    project.repo.stage("pager.py", class(1));
    project
        .repo
        .stage("one.py", "def show(pager: Pager):\n    pager.close()\n");
    project
        .repo
        .stage("two.py", "def load(stream):\n    stream.close()\n")
        .commit("one");
    project.repo.stage("pager.py", class(2));
    let prompt = project.prompt();
    assert!(
        prompt.contains("one.py:1-2: use of close in show"),
        "{prompt}"
    );
    assert!(!prompt.contains("two.py"), "{prompt}");
}

#[test]
fn overrides_of_a_changed_method_are_shown_in_every_language_with_subtypes() {
    let cases = [
        (
            "src/base.py",
            "class Param:\n    def convert(self, value):\n        return 1\n",
            "src/types.py",
            "class Path(Param):\n    def convert(self, value):\n        return value\n",
        ),
        (
            "src/Base.java",
            "class Param {\n    int convert(int value) {\n        return 1;\n    }\n}\n",
            "lib/Path.java",
            "class Path extends Param {\n    @Override\n    int convert(int value) {\n        return value;\n    }\n}\n",
        ),
        (
            "src/Base.kt",
            "open class Param {\n    open fun convert(value: Int): Int {\n        return 1\n    }\n}\n",
            "lib/Path.kt",
            "class Path : Param() {\n    override fun convert(value: Int): Int {\n        return value\n    }\n}\n",
        ),
        (
            "lib/base.rb",
            "class Param\n  def convert(value)\n    return 1\n  end\nend\n",
            "lib/path.rb",
            "class Path < Param\n  def convert(value)\n    return value\n  end\nend\n",
        ),
        (
            "src/Base.php",
            "<?php\nclass Param {\n    function convert($value) {\n        return 1;\n    }\n}\n",
            "src/Path.php",
            "<?php\nclass Path extends Param {\n    function convert($value) {\n        return $value;\n    }\n}\n",
        ),
        (
            "src/Base.cs",
            "class Param {\n    virtual int Convert(int value) {\n        return 1;\n    }\n}\n",
            "src/Path.cs",
            "class Path : Param {\n    override int Convert(int value) {\n        return value;\n    }\n}\n",
        ),
        (
            "src/base.cpp",
            "int Param::convert(int value) {\n    return 1;\n}\n",
            "src/path.cpp",
            "struct Path : public Param {\n    int convert(int value) override {\n        return value;\n    }\n};\n",
        ),
        (
            "src/base.ts",
            "export class Param {\n  convert(value: number) {\n    return 1\n  }\n}\n",
            "web/path.tsx",
            "export class Path extends Param {\n  convert(value: number) {\n    return value\n  }\n}\n",
        ),
    ];
    for (path, base, other, subtype) in cases {
        let project = Project::new();
        // A method of an unrelated type with the same name is not shown.
        let stranger = subtype
            .replace("Param", "Unrelated")
            .replace("Path", "Stranger");
        let far = format!("far/{other}");
        project
            .repo
            .stage(path, base)
            .stage(other, subtype)
            .stage(&far, stranger)
            .commit("one");
        project
            .repo
            .stage(path, base.replace("return 1", "return 2"));
        let prompt = project.prompt();
        let name = if path.ends_with(".cs") {
            "Convert"
        } else {
            "convert"
        };
        let related = behind(&prompt, &format!(": override of {name} in Path\n"));
        assert!(related.contains("value"), "{path}: {prompt}");
        assert!(!prompt.contains("in Stranger"), "{path}: {prompt}");
    }
}

#[test]
fn overrides_of_a_subtype_of_a_subtype_are_shown_and_further_ones_are_counted() {
    let project = Project::new();
    let method = |n: usize| format!("    def run(self):\n        return {n}\n\n\n");
    let subtypes: String = (0..13)
        .map(|n| format!("class Sub{n}(Middle):\n{}", method(n)))
        .collect();
    project.repo.stage(
        "lib/subs.py",
        format!("class Middle(Base):\n{}{subtypes}", method(99)),
    );
    project
        .repo
        .stage("src/base.py", format!("class Base:\n{}", method(1)))
        .commit("one");
    project
        .repo
        .stage("src/base.py", format!("class Base:\n{}", method(2)));
    let prompt = project.prompt();
    assert_eq!(
        prompt.matches(": override of run in ").count(),
        10,
        "{prompt}"
    );
    assert!(prompt.contains("4 more overrides of run"), "{prompt}");
}
