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
