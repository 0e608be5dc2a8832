//! Tests of what the file does not show: the methods of services, schemas, records and forms that
//! other files define.

use super::scan_at;
use crate::finding::Severity;

/// Returns the severity of the worst finding in a new file.
fn weight(path: &str, code: &str) -> Option<Severity> {
    scan_at(path, None, code).iter().map(|f| f.severity()).max()
}

/// Returns true if a new file has a finding above a suggestion.
fn is_severe(path: &str, code: &str) -> bool {
    weight(path, code) > Some(Severity::Suggestion)
}

/// Returns a file of a language with a value at a sink.
type Code<'a> = &'a dyn Fn(&str) -> String;

/// Returns true if a new file has a flow of a rule, and all of them are suggestions.
fn is_suggested(path: &str, rule: &str, code: &str) -> bool {
    let found = scan_at(path, None, code);
    let mut flows = found.iter().filter(|f| f.rule_id() == rule).peekable();
    flows.peek().is_some() && flows.all(|f| f.severity() == Severity::Suggestion)
}

/// Returns a handler of FastAPI with a parameter and one statement.
fn fastapi(imports: &str, parameter: &str, statement: &str) -> String {
    format!(
        "from fastapi import APIRouter\n{imports}\nrouter = APIRouter()\n\nclass Kind(Enum):\n    A = 'a'\n\n@router.put('/items')\ndef update({parameter}):\n    {statement}\n"
    )
}

#[test]
fn methods_of_services_are_not_queries_of_a_document_database() {
    for statement in [
        "self.mixins.update_one(data, 1)",
        "self.repos.lists.update_many(data)",
        "self.mixins.delete_one(data)",
        "service.find_one(data)",
        "Item.objects.aggregate(data)",
        "self.dbx_repository.replace_one(data)",
    ] {
        let code = fastapi(
            "from app.items import Item, service",
            "self, data: dict",
            statement,
        );
        assert!(!is_severe("app/items.py", &code), "{statement}");
    }
}

#[test]
fn methods_of_collections_are_queries_of_a_document_database() {
    for (imports, statement) in [
        ("", "db.users.update_one(data, {})"),
        ("", "self.collection.delete_many(data)"),
        ("", "mongo.db.users.find_one(data)"),
        ("", "app.database['users'].count_documents(data)"),
        ("", "users_collection.find_one_and_delete(data)"),
        ("", "self.usersCollection.replace_one(data, {})"),
        ("", "users = get_db().users\n    users.find_one(data)"),
        ("", "users = db['users']\n    users.aggregate(data)"),
        (
            "from pymongo import MongoClient",
            "self.users.update_one(data, {})",
        ),
        (
            "import motor.motor_asyncio",
            "self.users.update_many(data, {})",
        ),
        (
            "from mongoengine import Document",
            "self.users.delete_one(data)",
        ),
        (
            "from beanie import Document as D",
            "self.users.find_one(data)",
        ),
        ("from bson import ObjectId", "self.users.find_one(data)"),
        ("from .mongo import users", "users.find_one(data)"),
    ] {
        let code = fastapi(imports, "self, data: dict", statement);
        assert!(is_severe("app/items.py", &code), "{imports} {statement}");
    }
}

#[test]
fn parameters_whose_type_has_no_fields_hold_no_operator() {
    let query = |parameter: &str, value: &str| {
        let statement = format!("db.users.find_one({value})");
        fastapi("import json\nfrom enum import Enum", parameter, &statement)
    };
    for ty in [
        "UUID4",
        "UUID",
        "uuid.UUID",
        "int",
        "datetime",
        "PositiveInt",
        "Optional[UUID4]",
        "UUID4 | None",
        "Annotated[UUID4, Path()]",
        "Kind",
        "str",
        "str | None",
    ] {
        let code = query(&format!("item: {ty}"), "item");
        assert!(!is_severe("app/items.py", &code), "{ty}");
    }
    let other = query("item: Kind", "item").replace("from enum import", "from models import");
    assert!(is_severe("app/items.py", &other));
    for ty in ["dict", "Filter", "Any", "dict[str, int]"] {
        let code = query(&format!("item: {ty}"), "item");
        assert!(is_severe("app/items.py", &code), "{ty}");
    }
    // A text can be the notation of an object.
    let code = query("item: str", "json.loads(item)");
    assert!(is_severe("app/items.py", &code));
}

#[test]
fn queries_of_mongoose_and_mongodb_with_bodies_are_found() {
    for (require, statement) in [
        (
            "const User = require('./user');",
            "User.updateOne(req.body.filter, {});",
        ),
        (
            "const User = require('./user');",
            "User.findOne({ name: req.body.name });",
        ),
        (
            "const { db } = require('./db');",
            "db.collection('users').deleteMany(req.body);",
        ),
        (
            "const users = require('./users');",
            "users.findOneAndUpdate({ id: req.body.id }, {});",
        ),
    ] {
        let code = format!(
            "const app = require('express')();\n{require}\napp.post('/a', (req, res) => {{\n  {statement}\n}});\n"
        );
        assert!(is_severe("src/a.js", &code), "{statement}");
    }
}

#[test]
fn arguments_of_graphql_have_the_fields_of_the_schema_only() {
    let resolvers = |statement: &str| {
        format!(
            "const cp = require('child_process');\nmodule.exports = {{\n  Mutation: {{\n    createFolder(obj, args) {{\n      {statement}\n    }}\n  }}\n}};\n"
        )
    };
    for statement in [
        "return wiki.db.Folder.create(args)",
        "return Folder.create(args)",
        "return Folder.update(args, { where: { id: 1 } })",
    ] {
        assert!(
            !is_severe("server/a.js", &resolvers(statement)),
            "{statement}"
        );
    }
    for statement in [
        "return db.query(`SELECT * FROM folders WHERE name = '${args.name}'`)",
        "cp.exec('mkdir ' + args.name)",
    ] {
        assert!(
            is_severe("server/a.js", &resolvers(statement)),
            "{statement}"
        );
    }
    let nest = |mark: &str| {
        format!(
            "import {{ Args, Mutation, Resolver }} from '@nestjs/graphql';\nimport {{ Body }} from '@nestjs/common';\n@Resolver()\nexport class Folders {{\n  @Mutation()\n  add({mark} input) {{\n    return Folder.create(input);\n  }}\n}}\n"
        )
    };
    assert!(!is_severe("server/a.ts", &nest("@Args('input')")));
    assert!(is_severe("server/a.ts", &nest("@Body()")));
    let express = "const app = require('express')();\napp.post('/a', (req, res) => {\n  Folder.create(req.body);\n});\n";
    assert!(is_severe("server/a.js", express));
}

#[test]
fn a_record_that_request_data_looks_up_is_not_that_data() {
    let python = |value: &str| {
        format!(
            "import subprocess\nfrom flask import request\nfrom store import data, cache, repo, Model\n\ndef run():\n    subprocess.run({value}, shell=True)\n"
        )
    };
    for value in [
        "data['all'].get(request.args['id']).line",
        "data['all'][request.args['id']].line",
        "cache.get(request.args['id'])",
        "Model.objects.get(pk=request.args['id']).line",
        "repo.find_by_id(request.args['id']).line",
        "repo.get_by_id(request.args['id']).line",
        "get_command_by_uuid(request.args['id']).line",
    ] {
        assert!(!is_severe("app/a.py", &python(value)), "{value}");
    }
    for value in [
        "cache.get('a', request.args['line'])",
        "cache.get(request.args['id'], request.args['line'])",
        "request.args.get('line')",
        "request.args.get(request.args['id'])",
        "repo.line_for(request.args['line'])",
        "get_command_by_line(request.args['line'])",
    ] {
        assert!(is_severe("app/a.py", &python(value)), "{value}");
    }
}

#[test]
fn lookups_by_request_data_return_records_in_all_languages() {
    let java = |value: &str| {
        format!(
            "package a;\nimport java.util.*;\nimport javax.servlet.http.*;\npublic class A extends HttpServlet {{\n  private Map<String, String> lines;\n  private Lines store;\n  public void doGet(HttpServletRequest request, HttpServletResponse response) throws Exception {{\n    String id = request.getParameter(\"id\");\n    String line = request.getParameter(\"line\");\n    Runtime.getRuntime().exec({value});\n  }}\n}}\n"
        )
    };
    let csharp = |value: &str| {
        format!(
            "using Microsoft.AspNetCore.Mvc;\nusing System.Diagnostics;\npublic class AController : Controller {{\n  private readonly ILines store;\n  public IActionResult A(string id, string line) {{\n    Process.Start({value});\n    return Ok();\n  }}\n}}\n"
        )
    };
    let php = |value: &str| {
        format!(
            "<?php\nclass A {{\n  function a() {{\n    $id = $_GET['id'];\n    $line = $_GET['line'];\n    system({value});\n  }}\n}}\n"
        )
    };
    let ruby = |value: &str| {
        format!(
            "class AController < ApplicationController\n  def a\n    id = params[:id]\n    line = params[:line]\n    system({value})\n  end\nend\n"
        )
    };
    let kotlin = |value: &str| {
        format!(
            "package a\nimport org.springframework.web.bind.annotation.*\n@RestController\nclass A(private val lines: Map<String, String>, private val store: Lines) {{\n  @GetMapping(\"/a\") fun a(@RequestParam id: String, @RequestParam line: String) {{\n    Runtime.getRuntime().exec({value})\n  }}\n}}\n"
        )
    };
    let javascript = |value: &str| {
        format!(
            "const cp = require('child_process');\nconst {{ lines, store, Line }} = require('./store');\nconst app = require('express')();\napp.get('/a', async (req, res) => {{\n  const {{ id, line }} = req.query;\n  cp.exec({value});\n}});\n"
        )
    };
    let cases: [(&str, Code<'_>, &[&str], &[&str]); 6] = [
        (
            "src/A.java",
            &java,
            &[
                "lines.get(id)",
                "lines.getOrDefault(id, \"ls\")",
                "store.get(id).getLine()",
                "store.findById(id).getLine()",
                "store.findLineByUuid(id)",
            ],
            &[
                "lines.getOrDefault(\"a\", line)",
                "store.lineFor(line)",
                "line",
            ],
        ),
        (
            "src/A.cs",
            &csharp,
            &[
                "store.Get(id).Line",
                "store.GetById(id).Line",
                "store.GetValueOrDefault(id)",
            ],
            &[
                "store.GetValueOrDefault(\"a\", line)",
                "store.LineFor(line)",
            ],
        ),
        (
            "src/a.php",
            &php,
            &[
                "$this->lines->get($id)",
                "$this->lines[$id]",
                "Line::find($id)->line",
                "$this->store->findOneById($id)->line",
            ],
            &["$this->lines->get('a', $line)", "Arr::get($_GET, 'line')"],
        ),
        (
            "app/a.rb",
            &ruby,
            &[
                "LINES.fetch(id)",
                "LINES[id]",
                "Line.find(id).line",
                "Line.find_by_id(id).line",
                "store.get(id)",
            ],
            &["LINES.fetch(:a, line)", "line"],
        ),
        (
            "src/A.kt",
            &kotlin,
            &["lines.get(id)", "lines.getOrDefault(id, \"ls\")"],
            &["lines.getOrDefault(\"a\", line)", "line"],
        ),
        (
            "src/a.js",
            &javascript,
            &[
                "lines.get(id)",
                "lines[id]",
                "(await Line.findById(id)).line",
                "(await store.getById(id)).line",
            ],
            &["lines.get(id) || line", "_.get(req.body, 'line')", "line"],
        ),
    ];
    for (path, code, records, data) in cases {
        for value in records {
            assert!(!is_severe(path, &code(value)), "{path} {value}");
        }
        for value in data {
            assert!(is_severe(path, &code(value)), "{path} {value}");
        }
    }
}

#[test]
fn a_handler_does_not_find_what_another_request_left_in_variables() {
    let views = |first: &str, second: &str| {
        format!(
            "import os\nimport subprocess\nfrom flask import request\n\ndef blueprint(bp, store, make):\n    @bp.route('/a/<uuid>')\n    def a(uuid):\n        {first}\n\n    @bp.route('/b/<uuid>')\n    def b(uuid):\n        {second}\n    return bp\n"
        )
    };
    let write = "store.data[uuid]['mode'] = request.args['mode']\n        store.data[uuid] = make(store.data[uuid])";
    let read = "watch = store.data.get(uuid)\n        open(os.path.join(watch.folder, 'a'))";
    assert!(!is_severe("app/a.py", &views(write, read)));
    assert!(is_severe(
        "app/a.py",
        &views(write, "open(os.path.join('a', request.args['f']))")
    ));
    // The same request writes and reads.
    let both = "store.data['a'] = request.args['folder']\n        open(os.path.join(store.data['a'], 'a'))";
    assert!(is_severe("app/a.py", &views(both, "pass")));
    // A command built from stored data is still reported.
    let stored = "store.line = request.args['line']";
    let run = "subprocess.run('ls ' + store.line, shell=True)";
    assert!(is_severe("app/a.py", &views(stored, run)));
}

#[test]
fn methods_of_a_form_elsewhere_are_suggestions() {
    let view = |form: &str, value: &str| {
        format!(
            "from flask import request\nfrom jinja2 import Environment\nfrom app.forms import EditForm, load\nimport forms\n\ndef edit(kind):\n    form_class = getattr(forms, kind)\n    form = {form}\n    return Environment().from_string({value}).render()\n"
        )
    };
    for form in [
        "EditForm(request.form)",
        "form_class(formdata=request.form if request.method == 'POST' else None)",
    ] {
        let code = view(form, "form.extra_form_content()");
        assert!(
            is_suggested("app/a.py", "template-injection-flow", &code),
            "{form}"
        );
        for value in ["form.name.data", "form.data['name']", "form.get_name()"] {
            let code = view(form, value);
            assert!(is_severe("app/a.py", &code), "{form} {value}");
        }
    }
    for (form, value) in [
        ("request.form", "form.get('name')"),
        ("request.form['name']", "form.title()"),
        ("request.form['name']", "form.extra()"),
    ] {
        assert!(is_severe("app/a.py", &view(form, value)), "{form} {value}");
    }
}

#[test]
fn a_redirect_helper_elsewhere_makes_no_severe_finding() {
    let php = |value: &str| {
        format!(
            "<?php\nnamespace App;\nuse App\\Helper\\Redirect;\nuse Symfony\\Component\\HttpFoundation\\Request;\nclass A extends AbstractController {{\n  private Redirect $redirectHelper;\n  public function a(Request $request) {{\n    $next = $request->query->get('next');\n    return $this->redirect({value});\n  }}\n}}\n"
        )
    };
    assert!(!is_severe(
        "src/A.php",
        &php("$this->redirectHelper->to($next)")
    ));
    assert!(!is_severe(
        "src/A.php",
        &php("$this->urlGuard->check($next)")
    ));
    assert!(is_severe("src/A.php", &php("$next")));
    assert!(is_severe("src/A.php", &php("trim($next)")));
    let facade = |import: &str, value: &str| {
        format!(
            "<?php\n{import}\nuse Illuminate\\Http\\Request;\nclass B extends Controller {{\n  public function a(Request $request) {{\n    return {value}->to($request->input('next'));\n  }}\n}}\n"
        )
    };
    let import = "use Illuminate\\Support\\Facades\\Redirect;";
    assert!(is_severe("src/B.php", &facade(import, "redirect()")));
    for (import, call) in [
        (import, "Redirect::to"),
        ("", "\\Redirect::to"),
        (
            "use October\\Rain\\Support\\Facades\\Redirect;",
            "Redirect::to",
        ),
    ] {
        let code = facade(import, "x").replace("x->to", call);
        assert!(is_severe("src/B.php", &code), "{import} {call}");
    }
}

#[test]
fn services_that_check_addresses_make_redirects_suggestions() {
    let java = |value: &str| {
        format!(
            "package a;\nimport javax.servlet.http.*;\npublic class A extends HttpServlet {{\n  private Redirects redirects;\n  private Other other;\n  public void doGet(HttpServletRequest request, HttpServletResponse response) throws Exception {{\n    String next = request.getParameter(\"next\");\n    response.sendRedirect({value});\n  }}\n}}\n"
        )
    };
    let kotlin = |value: &str| {
        format!(
            "package a\nimport javax.servlet.http.*\nclass A(private val redirects: Redirects, private val other: Other) : HttpServlet() {{\n  override fun doGet(request: HttpServletRequest, response: HttpServletResponse) {{\n    val next = request.getParameter(\"next\")\n    response.sendRedirect({value})\n  }}\n}}\n"
        )
    };
    let csharp = |value: &str| {
        format!(
            "using Microsoft.AspNetCore.Mvc;\npublic class AController : Controller {{\n  private readonly IRedirects redirects;\n  private readonly IOther other;\n  public IActionResult A(string next) {{\n    return Redirect({value});\n  }}\n}}\n"
        )
    };
    let go = |value: &str| {
        format!(
            "package a\n\nimport \"net/http\"\n\ntype S struct {{\n\tredirects *Redirects\n\tother *Other\n}}\n\nfunc (s *S) a(w http.ResponseWriter, r *http.Request) {{\n\tnext := r.FormValue(\"next\")\n\thttp.Redirect(w, r, {value}, 302)\n}}\n"
        )
    };
    let python = |value: &str| {
        format!(
            "from flask import request, redirect\nfrom lib.x import redirects, other\n\nclass A:\n    def a(self, url_guard):\n        next = request.args['next']\n        return redirect({value})\n"
        )
    };
    let cases: [(&str, Code<'_>, &[&str], &[&str]); 5] = [
        (
            "src/A.java",
            &java,
            &[
                "redirects.target(next)",
                "this.redirects.target(next)",
                "other.normalizeUrl(next)",
                "other.allowedTarget(next)",
            ],
            &["next", "next.trim()", "other.target(next)"],
        ),
        (
            "src/A.kt",
            &kotlin,
            &["redirects.target(next)", "other.normalized(next)"],
            &["next", "other.target(next)"],
        ),
        (
            "src/A.cs",
            &csharp,
            &["redirects.Target(next)", "other.ValidTarget(next)"],
            &["next", "other.Target(next)"],
        ),
        (
            "a.go",
            &go,
            &["s.redirects.Target(next)", "s.other.NormalizeTarget(next)"],
            &["next", "s.other.Target(next)"],
        ),
        (
            "app/a.py",
            &python,
            &["url_guard.target(next)"],
            &["next", "next.strip()"],
        ),
    ];
    for (path, code, services, data) in cases {
        for value in services {
            assert!(
                is_suggested(path, "open-redirect-flow", &code(value)),
                "{path} {value}"
            );
        }
        for value in data {
            assert!(is_severe(path, &code(value)), "{path} {value}");
        }
    }
}

#[test]
fn a_service_of_addresses_does_not_weaken_a_command() {
    let code = "package a;\nimport javax.servlet.http.*;\npublic class A extends HttpServlet {\n  private Urls urls;\n  public void doGet(HttpServletRequest request, HttpServletResponse response) throws Exception {\n    Runtime.getRuntime().exec(\"curl \" + urls.normalize(request.getParameter(\"url\")));\n  }\n}\n";
    assert!(is_severe("src/A.java", code));
}

#[test]
fn a_check_of_a_value_with_a_default_is_a_check_of_the_value() {
    let page = |test: &str| {
        format!(
            "const fs = require('fs');\nconst app = require('express')();\nfunction file(lang) {{\n  if (!{test}) return null;\n  return `data/${{lang}}.json`;\n}}\napp.get('/a', (req, res) => {{\n  const path = file(req.headers['accept-language'].split(',')[0]);\n  if (path) fs.promises.readFile(path);\n}});\n"
        )
    };
    for test in [
        "/^[A-Za-z_-]{2,12}$/.test(lang || '')",
        "/^[A-Za-z_-]{2,12}$/.test(lang ?? '')",
        "/^[A-Za-z_-]{2,12}$/.test(lang)",
        "/^[A-Za-z_-]{2,12}$/.test(String(lang || ''))",
    ] {
        assert!(!is_severe("src/a.js", &page(test)), "{test}");
    }
    for test in [
        "/[A-Za-z_-]{2,12}/.test(lang || '')",
        "/^[A-Za-z_./-]{2,12}$/.test(lang || '')",
        "/^[A-Za-z_-]{2,12}$/.test('' || lang.length)",
        "/^[A-Za-z_-]{2,12}$/.test(other || lang)",
        "(lang || '')",
    ] {
        assert!(is_severe("src/a.js", &page(test)), "{test}");
    }
    let python = |test: &str| {
        format!(
            "import re\nfrom flask import request\n\ndef a():\n    name = request.args.get('name')\n    if not {test}:\n        return None\n    return open('data/' + name)\n"
        )
    };
    assert!(!is_severe(
        "a.py",
        &python("re.fullmatch(r'[a-z]+', name or '')")
    ));
    assert!(is_severe(
        "a.py",
        &python("re.fullmatch(r'[a-z]+', other or name)")
    ));
}

#[test]
fn a_disjunction_of_php_is_not_its_operand() {
    let page = |value: &str| {
        format!(
            "<?php\n$c = $_GET['c'];\nif (!in_array({value}, ['ls', 'id'])) {{ exit; }}\nsystem($c);\n"
        )
    };
    assert!(is_severe("run.php", &page("$c || ''")));
    assert!(is_severe("run.php", &page("($c or '')")));
    assert!(!is_severe("run.php", &page("$c ?? ''")));
}

#[test]
fn a_helper_with_the_name_of_its_key_reads_its_first_argument() {
    let go = "package a\n\nimport (\n\t\"net/http\"\n\t\"os/exec\"\n\n\tjsoniter \"github.com/json-iterator/go\"\n)\n\nvar json = jsoniter.ConfigDefault\n\nfunc f(w http.ResponseWriter, r *http.Request) {\n\tc := json.Get([]byte(r.FormValue(\"b\")), \"cmd\").ToString()\n\texec.Command(\"sh\", \"-c\", c).Run()\n}\n";
    assert!(is_severe("a.go", go));
    let php = "<?php\nclass A {\n  function f() {\n    system($this->helper->get($_GET, 'cmd'));\n  }\n}\n";
    assert!(is_severe("A.php", php));
    let js = "const app = require('express')();\nconst cp = require('child_process');\nconst h = require('./h');\napp.get('/a', (req, res) => {\n  cp.exec(h.getParamByKey(req.query, 'cmd'));\n});\n";
    assert!(is_severe("a.js", js));
}

#[test]
fn a_filter_that_is_written_out_is_one_of_an_imported_collection() {
    for (statement, expected) in [
        ("users.find_one({'name': data['name']})", true),
        ("users.delete_many(data)", false),
    ] {
        let code = fastapi("from store import users", "data: dict", statement);
        assert_eq!(is_severe("app/items.py", &code), expected, "{statement}");
    }
}
