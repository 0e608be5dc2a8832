//! Statements of database migrations that destroy data, fail on a table with rows, or block a table
//! that is in use.
//!
//! Reads SQL files, and the SQL in strings of migrations in other languages. Statements on a table
//! that the same file creates are harmless, because it has no rows and no running process uses it.

mod hazard;
mod host;
mod sql;

use super::report::{Reporter, Sighting};
use super::role::{self, FileRole};
use crate::diff::{FileChange, LineNo, TextChange};
use crate::finding::{LineSpan, Severity};
use hazard::{Dialect, Hazard};
use std::collections::HashSet;
use std::ops::Range;

/// Folders of migrations.
const FOLDERS: [&str; 8] = [
    "migrations",
    "migration",
    "migrate",
    "alembic",
    "flyway",
    "db-migrations",
    "evolutions",
    "changelogs",
];

/// Words in the name of a file that undoes a migration.
const UNDOES: [&str; 6] = [
    "down",
    "rollback",
    "undo",
    "revert",
    "downgrade",
    "uninstall",
];

/// Programs that migrations are written in.
const PROGRAMS: [&str; 12] = [
    "py", "rb", "js", "cjs", "mjs", "ts", "php", "java", "kt", "go", "cs", "exs",
];

/// Reports the statements of a migration that the change adds.
pub(super) fn scan(file: &FileChange, out: &mut Reporter<'_>) {
    let path = file.path();
    let Some(form) = form(path.as_bytes()) else {
        return;
    };
    let Some(text) = file.text() else { return };
    let Some(whole) = text.new.whole().map(String::from_utf8_lossy) else {
        return;
    };
    let migration = Migration::read(&whole, form, path.as_bytes());
    let hazards = migration.hazards();
    if hazards.is_empty() {
        return;
    }
    let lines = MigrationLines::of(&whole, text);
    for (hazard, anchor) in hazards {
        let (Some(first), Some(last)) = (lines.number(anchor), lines.number(hazard.at)) else {
            continue;
        };
        if !lines.is_added(hazard.at) {
            continue;
        }
        let last = last.max(first);
        let quote = lines.line(hazard.at);
        // A statement can be far below the start of the call that runs it.
        let detail = if last == first {
            hazard.detail.map(str::to_owned)
        } else {
            let statement = format!("the statement is on line {last}");
            Some(match hazard.detail {
                Some(detail) => format!("{detail}; {statement}"),
                None => statement,
            })
        };
        let sighting = Sighting {
            file: Some(path),
            lines: Some(LineSpan {
                first,
                last,
                columns: None,
            }),
            quote: quote.as_bytes(),
            detail: detail.as_deref(),
            severity_max: hazard.is_weak.then_some(Severity::Suggestion),
            ..Sighting::default()
        };
        out.report(hazard.rule, sighting);
    }
}

/// The form of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MigrationForm {
    Sql,
    Program {
        is_hash_comment: bool,
        is_python: bool,
    },
}

/// Returns the form of the migration at a path. `None`: the file is not a migration, or undoes one.
fn form(path: &[u8]) -> Option<MigrationForm> {
    let path = std::str::from_utf8(path).ok()?;
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, extension) = name.rsplit_once('.')?;
    let is_sql = extension.eq_ignore_ascii_case("sql");
    if !is_sql && !PROGRAMS.contains(&extension) {
        return None;
    }
    let mut folders = folder.split('/').rev().take(6);
    let is_migration = folders.any(|f| FOLDERS.iter().any(|known| f.eq_ignore_ascii_case(known)))
        || (is_sql && is_versioned(stem))
        || (extension == "py" && folder.ends_with("/versions"));
    if !is_migration || role::of(path.as_bytes()) == FileRole::Test {
        return None;
    }
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric());
    let is_undo = words.any(|w| UNDOES.iter().any(|known| w.eq_ignore_ascii_case(known)))
        || stem.strip_prefix('U').is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains("__")
        });
    let is_hash_comment = matches!(extension, "py" | "rb" | "php" | "exs");
    let form = if is_sql {
        MigrationForm::Sql
    } else {
        MigrationForm::Program {
            is_hash_comment,
            is_python: extension == "py",
        }
    };
    (!is_undo).then_some(form)
}

/// Returns true if a file has a name of Flyway: `V7__orders.sql`.
fn is_versioned(stem: &str) -> bool {
    let rest = stem
        .strip_prefix(['V', 'R'])
        .and_then(|rest| rest.split_once("__"));
    rest.is_some_and(|(version, _)| {
        version
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'))
    })
}

/// A migration with its statements.
struct Migration<'a> {
    /// Each with the offset of its text, and where a finding is shown if that is elsewhere.
    statements: Vec<(Vec<sql::SqlToken<'a>>, usize, Option<usize>)>,
    /// Tables that the file creates, by a call of a program or by SQL.
    created: HashSet<String>,
    dialect: Dialect,
}

impl<'a> Migration<'a> {
    fn read(text: &'a str, form: MigrationForm, path: &[u8]) -> Self {
        let mut statements = Vec::new();
        let mut created = HashSet::new();
        match form {
            MigrationForm::Sql => {
                let applied = applied(sql::parts(text));
                statements.extend(applied.into_iter().map(|tokens| (tokens, 0, None)));
            }
            MigrationForm::Program {
                is_hash_comment,
                is_python,
            } => {
                for found in host::strings(text, is_hash_comment, is_python) {
                    let parts = applied(sql::parts(&text[found.range.clone()])).into_iter();
                    statements.extend(parts.enumerate().map(|(i, tokens)| {
                        let anchor = (i == 0).then_some(found.anchor);
                        (tokens, found.range.start, anchor)
                    }));
                }
                if !statements.is_empty() {
                    created = created_by_calls(text);
                }
            }
        }
        let created_by_sql = statements
            .iter()
            .filter_map(|(tokens, ..)| hazard::created(tokens));
        created.extend(created_by_sql);
        let mut tokens = statements.iter().flat_map(|(tokens, ..)| tokens.iter());
        let has_backticks =
            tokens.any(|token| token.kind == sql::TokenKind::Quoted && token.text.starts_with('`'));
        let dialect = if statements.is_empty() {
            Dialect::Unknown
        } else {
            Dialect::of(text, path, has_backticks)
        };
        Self {
            statements,
            created,
            dialect,
        }
    }

    /// Returns the dangers of all statements, each with the offset that a finding is shown at.
    fn hazards(&self) -> Vec<(Hazard, usize)> {
        let all: Vec<&[sql::SqlToken<'_>]> = self
            .statements
            .iter()
            .map(|(tokens, ..)| tokens.as_slice())
            .collect();
        let known = hazard::KnownTables::of(&all, &self.created, self.dialect);
        let mut out = Vec::new();
        let mut is_in_transaction = false;
        for (tokens, base, anchor) in &self.statements {
            is_in_transaction = hazard::is_in_transaction(tokens, is_in_transaction);
            for mut hazard in known.of_statement(tokens, is_in_transaction) {
                hazard.at += base;
                let anchor = anchor.unwrap_or(hazard.at);
                out.push((hazard, anchor));
            }
        }
        out
    }
}

/// Returns the statements outside of the parts that a comment marks as the way back:
/// `-- +goose Down`, `-- migrate:down`.
fn applied(parts: Vec<sql::SqlPart<'_>>) -> Vec<Vec<sql::SqlToken<'_>>> {
    let mut is_undone = false;
    let mut out = Vec::new();
    for part in parts {
        match part {
            sql::SqlPart::Comment(text) => is_undone = direction(text).unwrap_or(is_undone),
            sql::SqlPart::Statement(tokens) if !is_undone => out.push(tokens),
            sql::SqlPart::Statement(_) => {}
        }
    }
    out
}

/// Returns true if a comment starts the way back of a migration, and false if it starts the way
/// forward.
fn direction(comment: &str) -> Option<bool> {
    let words = comment
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty());
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    match words.len() {
        1..=4 if has_any(&words, &["down", "downs", "undo", "rollback", "downgrade"]) => Some(true),
        1..=4 if has_any(&words, &["up", "ups", "upgrade", "changeset"]) => Some(false),
        _ if words.first().is_some_and(|w| w == "changeset") => Some(false),
        _ => None,
    }
}

fn has_any(words: &[String], known: &[&str]) -> bool {
    words.iter().any(|w| known.contains(&w.as_str()))
}

/// Calls that create a table, whose name is their first argument.
const CREATES: [&str; 7] = [
    "create_table",
    "createTable",
    "create_join_table",
    "Schema::create",
    "createTableIfNotExists",
    "CreateModel",
    "create table(",
];

/// Bytes behind a call that creates a table in which its name is, and around a statement that a
/// finding quotes, at most.
const NEAR: usize = 512;

/// Returns the names of the tables that calls of a program create.
fn created_by_calls(text: &str) -> HashSet<String> {
    let mut out = HashSet::new();
    for call in CREATES {
        for (at, _) in text.match_indices(call) {
            let rest = &text[at + call.len()..];
            let rest = rest[..rest.floor_char_boundary(NEAR)]
                .trim_start_matches(|c: char| !matches!(c, '\'' | '"' | ':' | '\n'));
            let rest = if rest.starts_with('\n') {
                rest.trim_start()
            } else {
                rest
            };
            let rest = rest
                .trim_start_matches("name=")
                .trim_start_matches(['\'', '"', ':', '`']);
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            if end > 0 {
                out.insert(rest[..end].to_ascii_lowercase());
            }
        }
    }
    out
}

/// The lines of a file and the added ones.
struct MigrationLines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    added: Vec<Range<u32>>,
}

impl<'a> MigrationLines<'a> {
    fn of(text: &'a str, change: &TextChange) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        let edits = change
            .hunks
            .iter()
            .flat_map(|hunk| &hunk.edits)
            .map(|edit| &edit.new);
        let added = edits
            .filter(|new| new.count > 0)
            .map(|new| new.start..new.start + new.count);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
            added: added.collect(),
        }
    }

    /// Returns the number of the line of an offset, counted from 1.
    fn index(&self, at: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    fn number(&self, at: usize) -> Option<LineNo> {
        LineNo::new(self.index(at))
    }

    /// Returns true if the change adds the line of an offset.
    fn is_added(&self, at: usize) -> bool {
        let line = self.index(at);
        let next = self.added.partition_point(|range| range.end <= line);
        self.added
            .get(next)
            .is_some_and(|range| range.start <= line)
    }

    /// Returns the line of an offset, or the part of a long line around it.
    fn line(&self, at: usize) -> &'a str {
        let from = self.text.floor_char_boundary(at.saturating_sub(NEAR));
        let start =
            memchr::memrchr(b'\n', &self.text.as_bytes()[from..at]).map_or(from, |n| from + n + 1);
        let end = self.text.floor_char_boundary(at + NEAR);
        self.text[start..end].lines().next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules of a file and the lines that they mark, weak ones in parentheses.
    fn found(path: &str, text: &str) -> Vec<String> {
        let Some(form) = form(path.as_bytes()) else {
            return vec!["no migration".to_owned()];
        };
        let hazards = Migration::read(text, form, path.as_bytes()).hazards();
        hazards
            .into_iter()
            .map(|(h, at)| {
                let line = text[..at].matches('\n').count() + 1;
                let rule = h.rule.trim_start_matches("sql-migration-");
                if h.is_weak {
                    format!("({line}:{rule})")
                } else {
                    format!("{line}:{rule}")
                }
            })
            .collect()
    }

    #[test]
    fn files_of_migrations_are_known_by_their_path() {
        fn is(path: &str) -> bool {
            form(path.as_bytes()).is_some()
        }
        for path in [
            "db/migrations/1.sql",
            "migrations/a/migration.sql",
            "sql/V7__a.sql",
            "a/versions/1.py",
            "db/migrate/1_a.rb",
        ] {
            assert!(is(path), "{path}");
        }
        for path in [
            "db/schema.sql",
            "db/migrations/1_a.down.sql",
            "db/down/1.sql",
            "migrations/a.txt",
            "sql/U7__a.sql",
            "src/a.py",
        ] {
            assert!(!is(path), "{path}");
        }
    }

    #[test]
    fn statements_on_new_tables_are_harmless() {
        let text = "CREATE TABLE a (id int);\nCREATE INDEX i ON a (id);\nALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES c (id);\nUPDATE a SET b = 1;\nDROP TABLE a;\n";
        assert_eq!(found("db/migrations/1.sql", text), [""; 0]);
        let text = "CREATE TABLE new_a (id int);\nINSERT INTO new_a SELECT * FROM a;\nDROP TABLE a;\nALTER TABLE new_a RENAME TO a;\n";
        assert_eq!(found("db/migrations/1.sql", text), [""; 0]);
        let text = "exports.up = async (k) => {\n  await k.schema.createTable('a', (t) => {});\n  await k.raw('CREATE INDEX i ON a (b)');\n};";
        assert_eq!(found("migrations/1.js", text), [""; 0]);
    }

    #[test]
    fn the_way_back_is_not_reported() {
        let text = "-- +goose Up\nALTER TABLE a ADD b text;\n-- +goose Down\nALTER TABLE a DROP COLUMN b;\n";
        assert_eq!(found("migrations/1.sql", text), [""; 0]);
        assert_eq!(
            found(
                "migrations/1.sql",
                "-- migrate:up\nDROP TABLE a;\n-- migrate:down\nDROP TABLE b;"
            ),
            ["2:drops-data"]
        );
    }

    #[test]
    fn each_action_of_a_statement_is_judged() {
        let text =
            "ALTER TABLE a\n  ADD COLUMN b text,\n  DROP COLUMN c,\n  ALTER COLUMN d SET NOT NULL;";
        assert_eq!(
            found("migrations/1.sql", text),
            ["3:drops-data", "4:locks-for-constraint"]
        );
        let text = "BEGIN;\nCREATE INDEX CONCURRENTLY i ON a (b);\nCOMMIT;\nCREATE INDEX CONCURRENTLY j ON a (b);";
        assert_eq!(
            found("migrations/1.sql", text),
            ["2:sql-concurrent-index-in-transaction"]
        );
    }

    #[test]
    fn what_depends_on_the_database_is_weak_or_left_out() {
        assert_eq!(
            found("migrations/1.sql", "CREATE INDEX i ON a (b);"),
            ["(1:blocks-writes)"]
        );
        assert_eq!(
            found("migrations/pg/1.sql", "CREATE INDEX i ON a (b);"),
            ["1:blocks-writes"]
        );
        assert_eq!(
            found("migrations/mysql/1.sql", "CREATE INDEX i ON a (b);"),
            [""; 0]
        );
        assert_eq!(
            found("migrations/sqlite/1.sql", "CREATE INDEX i ON a (b);"),
            [""; 0]
        );
    }
}
