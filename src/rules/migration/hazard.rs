//! Which statements of a migration are dangerous, and why.
//!
//! PostgreSQL: <https://www.postgresql.org/docs/current/explicit-locking.html>,
//! <https://www.postgresql.org/docs/current/sql-altertable.html>. MySQL:
//! <https://dev.mysql.com/doc/refman/8.4/en/innodb-online-ddl-operations.html>.

use super::sql::{SqlToken, TokenKind, find, has, name, skip, split, starts};
use std::collections::HashSet;

const DROPS: &str = "sql-migration-drops-data";
const RENAMES: &str = "sql-migration-renames";
const REWRITES: &str = "sql-migration-rewrites-table";
const BLOCKS_WRITES: &str = "sql-migration-blocks-writes";
const CONSTRAINT: &str = "sql-migration-locks-for-constraint";
const LOCKS: &str = "sql-migration-locks-table";
const ALL_ROWS: &str = "sql-migration-changes-all-rows";
const REQUIRED: &str = "sql-migration-required-column";
const IN_TRANSACTION: &str = "sql-concurrent-index-in-transaction";

/// The database that runs a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Postgres,
    MySql,
    /// SQLite, SQL Server, Oracle and others: their locks are not known here.
    Other,
    Unknown,
}

/// Words in the path of a migration that name its database.
const NAMES: [(Dialect, &[&str]); 3] = [
    (
        Dialect::Postgres,
        &["postgres", "postgresql", "pg", "psql", "supabase", "pgsql"],
    ),
    (Dialect::MySql, &["mysql", "mariadb"]),
    (
        Dialect::Other,
        &[
            "sqlite",
            "sqlite3",
            "mssql",
            "sqlserver",
            "oracle",
            "h2",
            "db2",
            "clickhouse",
            "derby",
            "hsqldb",
            "d1",
            "duckdb",
        ],
    ),
];

/// Words that only one database has, in lower case.
const SIGNS: [(Dialect, &[&str]); 3] = [
    (
        Dialect::Other,
        &[
            "autoincrement",
            "pragma ",
            "nvarchar",
            "varchar2",
            "number(",
            "[dbo]",
            "\ngo\n",
            "without rowid",
            "sqlite",
            "datetime",
        ],
    ),
    (
        Dialect::MySql,
        &[
            "engine=",
            "engine =",
            "auto_increment",
            "algorithm=",
            "unsigned",
            "mysql",
            "mediumtext",
            "tinyint",
            "longtext",
        ],
    ),
    (
        Dialect::Postgres,
        &[
            "concurrently",
            "serial",
            "timestamptz",
            "jsonb",
            "using gin",
            "using gist",
            "using btree",
            "gen_random_uuid",
            "uuid_generate",
            "plpgsql",
            "lock_timeout",
            "statement_timeout",
            "as identity",
            "not valid",
            "validate constraint",
            "ilike",
            "text[]",
            "create extension",
            "bytea",
            "time zone",
            "::text",
            "::jsonb",
            "::int",
            "postgres",
            "to_tsvector",
            "set not null",
            " type numeric",
            "vacuum",
            "access exclusive",
            "interval '",
            " uuid",
            "on conflict",
        ],
    ),
];

impl Dialect {
    /// Guesses the database of a migration from its path and its text.
    pub(super) fn of(text: &str, path: &[u8], has_backticks: bool) -> Self {
        let path = String::from_utf8_lossy(path).to_ascii_lowercase();
        let words: Vec<&str> = path.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        if let Some((dialect, _)) = NAMES
            .iter()
            .find(|(_, names)| names.iter().any(|n| words.contains(n)))
        {
            return *dialect;
        }
        let lower = text.to_ascii_lowercase();
        if has_backticks {
            return Self::MySql;
        }
        let sign = SIGNS
            .iter()
            .find(|(_, signs)| signs.iter().any(|sign| lower.contains(sign)));
        match sign {
            Some((dialect, _)) => *dialect,
            None if lower.contains(" on \"") || lower.contains("table \"") => Self::Postgres,
            None => Self::Unknown,
        }
    }
}

/// A danger of a statement.
#[derive(Debug)]
pub(super) struct Hazard {
    pub(super) rule: &'static str,
    pub(super) at: usize,
    pub(super) detail: Option<&'static str>,
    /// It depends on something that the file does not show.
    pub(super) is_weak: bool,
}

/// Returns the table that a statement creates.
pub(super) fn created(tokens: &[SqlToken<'_>]) -> Option<String> {
    let rest = tokens
        .first()
        .filter(|t| t.is("create"))
        .map(|_| &tokens[1..])?;
    let rest = skip(
        rest,
        &[
            "or",
            "replace",
            "global",
            "local",
            "temp",
            "temporary",
            "unlogged",
            "foreign",
        ],
    );
    let rest = rest.first().filter(|t| t.is("table")).map(|_| &rest[1..])?;
    name(skip(rest, &["if", "not", "exists"])).map(|(table, _)| table)
}

/// Returns true if a transaction is open behind a statement.
pub(super) fn is_in_transaction(tokens: &[SqlToken<'_>], before: bool) -> bool {
    match tokens.first() {
        Some(first) if first.is("begin") && tokens.len() <= 3 => true,
        Some(first) if first.is("start") && has(tokens, &["start", "transaction"]) => true,
        Some(first)
            if ["commit", "rollback", "end"]
                .iter()
                .any(|word| first.is(word)) =>
        {
            false
        }
        _ => before,
    }
}

/// Facts that the other statements of a migration show.
pub(super) struct KnownTables<'s> {
    created: &'s HashSet<String>,
    /// Tables that are renamed to these names, so that dropping and creating one of them keeps its
    /// rows.
    targets: HashSet<String>,
    /// Tables whose rows are copied to another one.
    copied: HashSet<String>,
    /// Columns that the file adds: another name for one of them breaks nothing.
    added: HashSet<String>,
    /// Columns that are named in statements that copy or fill.
    filled: HashSet<String>,
    dialect: Dialect,
}

impl<'s> KnownTables<'s> {
    pub(super) fn of(
        statements: &[&[SqlToken<'_>]],
        created: &'s HashSet<String>,
        dialect: Dialect,
    ) -> Self {
        let mut known = Self {
            created,
            targets: HashSet::new(),
            copied: HashSet::new(),
            added: HashSet::new(),
            filled: HashSet::new(),
            dialect,
        };
        for tokens in statements {
            if let Some(range) = find(tokens, &["rename", "to"]) {
                known
                    .targets
                    .extend(name(&tokens[range.end..]).map(|(n, _)| n));
            }
            if starts(tokens, &["alter", "table"])
                && let Some(range) = find(tokens, &["add", "column"])
            {
                let column = name(skip(&tokens[range.end..], &["if", "not", "exists"]));
                known.added.extend(column.map(|(n, _)| n));
            }
            let is_copy =
                starts(tokens, &["insert", "into"]) && tokens.iter().any(|t| t.is("select"));
            let is_fill = tokens.first().is_some_and(|t| t.is("update"));
            if is_copy {
                let from = tokens
                    .iter()
                    .enumerate()
                    .filter(|(_, t)| t.is("from") || t.is("join"));
                known.copied.extend(
                    from.filter_map(|(i, _)| name(&tokens[i + 1..]))
                        .map(|(n, _)| n),
                );
            }
            if is_copy || is_fill {
                known
                    .filled
                    .extend(tokens.iter().filter_map(SqlToken::name));
            }
        }
        known
    }

    /// Returns the dangers of a statement.
    pub(super) fn of_statement(
        &self,
        tokens: &[SqlToken<'_>],
        is_in_transaction: bool,
    ) -> Vec<Hazard> {
        let mut out = Vec::new();
        let Some(first) = tokens.first() else {
            return out;
        };
        let verb = first.text.to_ascii_lowercase();
        match verb.as_str() {
            "create" | "drop" | "reindex" => self.index(tokens, is_in_transaction, &mut out),
            "alter" => self.alter(tokens, &mut out),
            "truncate" => {
                let rest = skip(&tokens[1..], &["table", "only"]);
                self.drops_table(first.at, rest, "`TRUNCATE` deletes all rows", &mut out);
            }
            "rename" if starts(tokens, &["rename", "table"]) => {
                out.extend(self.renamed(first.at, &tokens[2..], "the table has another name"));
            }
            "update" | "delete" => out.extend(self.all_rows(tokens)),
            "lock" | "vacuum" | "cluster" => out.extend(self.locks(tokens)),
            _ => {}
        }
        if verb == "drop" && starts(tokens, &["drop", "table"]) {
            self.drops_table(
                first.at,
                skip(&tokens[2..], &["if", "exists"]),
                "the table is deleted",
                &mut out,
            );
        }
        out
    }

    fn is_new(&self, table: &str) -> bool {
        self.created.contains(table)
    }

    /// Returns a danger that only PostgreSQL has, or none.
    fn of_postgres(&self, rule: &'static str, at: usize, detail: &'static str) -> Option<Hazard> {
        let is_weak = match self.dialect {
            Dialect::Postgres => false,
            Dialect::Unknown => true,
            Dialect::MySql | Dialect::Other => return None,
        };
        Some(Hazard {
            rule,
            at,
            detail: Some(detail),
            is_weak,
        })
    }

    /// Reports tables that are deleted or emptied, by the names that follow.
    fn drops_table(
        &self,
        at: usize,
        names: &[SqlToken<'_>],
        detail: &'static str,
        out: &mut Vec<Hazard>,
    ) {
        let tables: Vec<String> = split(names)
            .into_iter()
            .filter_map(name)
            .map(|(table, _)| table)
            .collect();
        if tables.iter().any(|table| !self.is_kept(table)) {
            let is_weak = tables
                .iter()
                .all(|table| self.copied.contains(table) || self.is_kept(table));
            out.push(Hazard {
                rule: DROPS,
                at,
                detail: Some(detail),
                is_weak,
            });
        }
    }

    /// Returns true if the rows of a table are not lost when it is dropped.
    fn is_kept(&self, table: &str) -> bool {
        self.is_new(table) || self.targets.contains(table) || is_scratch(table)
    }

    /// Returns the danger of another name for an object.
    fn renamed(&self, at: usize, from: &[SqlToken<'_>], detail: &'static str) -> Option<Hazard> {
        let (old, _) = name(from)?;
        let is_harmless = self.is_new(&old)
            || self.targets.contains(&old)
            || self.added.contains(&old)
            || is_scratch(&old);
        (!is_harmless).then_some(Hazard {
            rule: RENAMES,
            at,
            detail: Some(detail),
            is_weak: false,
        })
    }

    /// Reports indexes that are built or deleted while writes are blocked.
    fn index(&self, tokens: &[SqlToken<'_>], is_in_transaction: bool, out: &mut Vec<Hazard>) {
        let at = tokens[0].at;
        let is_reindex = tokens[0].is("reindex");
        let head = &tokens[..tokens.len().min(8)];
        let Some(range) = find(head, &["index"]).or_else(|| is_reindex.then_some(0..1)) else {
            return;
        };
        let is_create = tokens[0].is("create");
        if is_create && !tokens[1..range.start].iter().all(|t| t.is("unique"))
            || !is_create && range.start > 1 && !is_reindex
        {
            return;
        }
        if head.iter().any(|t| t.is("concurrently")) {
            if is_in_transaction {
                out.push(Hazard {
                    rule: IN_TRANSACTION,
                    at,
                    detail: None,
                    is_weak: false,
                });
            }
            return;
        }
        if is_reindex {
            let detail = "`REINDEX` blocks writes to the table until it ends";
            let is_for_table = head.iter().any(|t| {
                ["table", "index", "schema", "database"]
                    .iter()
                    .any(|w| t.is(w))
            });
            out.extend(
                is_for_table
                    .then(|| self.of_postgres(LOCKS, at, detail))
                    .flatten(),
            );
        } else if is_create {
            let on = tokens.iter().position(|t| t.is("on"));
            let table = on.and_then(|i| name(skip(&tokens[i + 1..], &["only"])));
            if table.is_some_and(|(table, _)| !self.is_new(&table) && !is_scratch(&table)) {
                out.extend(self.of_postgres(
                    BLOCKS_WRITES,
                    at,
                    "the index is built without `CONCURRENTLY`",
                ));
            }
        } else if !tokens.iter().any(|t| t.is("on")) {
            let detail = "`DROP INDEX` waits for an exclusive lock, and all queries on the table wait behind it";
            out.extend(self.of_postgres(BLOCKS_WRITES, at, detail));
        }
    }

    /// Reports updates and deletions of all rows.
    fn all_rows(&self, tokens: &[SqlToken<'_>]) -> Option<Hazard> {
        let is_delete = tokens[0].is("delete");
        let rest = if is_delete {
            skip(&tokens[1..], &["from", "only"])
        } else {
            skip(&tokens[1..], &["only"])
        };
        let (table, rest) = name(rest)?;
        let is_statement = if is_delete {
            starts(tokens, &["delete", "from"])
        } else {
            rest.iter().take(3).any(|t| t.is("set"))
        };
        if !is_statement {
            return None;
        }
        let limits = ["where", "limit", "join", "using", "from", "using", "on"];
        let is_limited = rest.iter().any(|t| limits.iter().any(|word| t.is(word)));
        let is_harmless = is_limited
            || self.is_new(&table)
            || is_scratch(&table)
            || rest.iter().any(|t| t.is("?"));
        let detail = if is_delete {
            "`DELETE` without `WHERE`"
        } else {
            "`UPDATE` without `WHERE`"
        };
        (!is_harmless).then_some(Hazard {
            rule: ALL_ROWS,
            at: tokens[0].at,
            detail: Some(detail),
            is_weak: false,
        })
    }

    /// Reports statements that lock a whole table.
    fn locks(&self, tokens: &[SqlToken<'_>]) -> Option<Hazard> {
        let at = tokens[0].at;
        if tokens[0].is("lock") {
            let is_table =
                starts(tokens, &["lock", "table"]) || starts(tokens, &["lock", "tables"]);
            let is_shared = has(tokens, &["access", "share"]) || has(tokens, &["row", "share"]);
            let is_exclusive = !is_shared && self.dialect != Dialect::Other;
            let detail = "`LOCK TABLE` blocks the queries of the running version";
            return (is_table && is_exclusive).then_some(Hazard {
                rule: LOCKS,
                at,
                detail: Some(detail),
                is_weak: false,
            });
        }
        if tokens[0].is("vacuum") && tokens[1..].iter().take(5).any(|t| t.is("full")) {
            return self.of_postgres(
                LOCKS,
                at,
                "`VACUUM FULL` copies the table under an exclusive lock",
            );
        }
        let is_cluster = tokens[0].is("cluster") && tokens.iter().any(|t| t.is("using"));
        let detail = "`CLUSTER` copies the table under an exclusive lock";
        is_cluster
            .then(|| self.of_postgres(LOCKS, at, detail))
            .flatten()
    }

    /// Reports the actions of `ALTER TABLE`.
    fn alter(&self, tokens: &[SqlToken<'_>], out: &mut Vec<Hazard>) {
        if !starts(tokens, &["alter", "table"]) {
            return;
        }
        let Some((table, actions)) = name(skip(&tokens[2..], &["if", "exists", "only"])) else {
            return;
        };
        if self.is_new(&table) || is_scratch(&table) {
            return;
        }
        let actions = skip(actions, &["*"]);
        // MySQL refuses a statement that cannot keep to the algorithm or the lock.
        let is_online = has(tokens, &["lock", "=", "none"])
            || ["inplace", "instant"]
                .iter()
                .any(|w| tokens.iter().any(|t| t.is(w)));
        for (i, action) in split(actions).into_iter().enumerate() {
            // In SQL Server and Oracle, the items of a list share its verb.
            let is_first_rename = i == 0 && starts(action, &["rename"]);
            if is_first_rename && starts(action, &["rename", "to"])
                || starts(action, &["rename", "as"])
            {
                let is_kept = self.targets.contains(&table);
                let detail = Some("the table has another name");
                out.extend((!is_kept).then_some(Hazard {
                    rule: RENAMES,
                    at: action[0].at,
                    detail,
                    is_weak: false,
                }));
            } else if let Some(first) = action.first() {
                let hazard = self.action(action, first.at);
                out.extend(
                    hazard.filter(|h| !is_online || !matches!(h.rule, REWRITES | CONSTRAINT)),
                );
            }
        }
    }

    /// Returns the danger of an action of `ALTER TABLE`.
    fn action(&self, action: &[SqlToken<'_>], at: usize) -> Option<Hazard> {
        let first = action.first()?.text.to_ascii_lowercase();
        match first.as_str() {
            "drop" => self.drops_column(&action[1..], at),
            "rename" => {
                let is_column = !["to", "as", "index", "key", "constraint"]
                    .iter()
                    .any(|w| action.get(1).is_some_and(|t| t.is(w)));
                let from = skip(&action[1..], &["column"]);
                is_column
                    .then(|| self.renamed(at, from, "the column has another name"))
                    .flatten()
            }
            "change" => self.changes(skip(&action[1..], &["column"]), at),
            "modify" if self.dialect != Dialect::Other => {
                Some(rewrites(at, "the type of the column changes"))
            }
            "convert" => Some(rewrites(
                at,
                "MySQL copies the table to convert its text, and blocks writes",
            )),
            "algorithm" if action.iter().any(|t| t.is("copy")) => None,
            "alter" => self.alters_column(skip(&action[1..], &["column"]), at),
            "add" => self.adds(&action[1..], at),
            "set"
                if has(action, &["set", "tablespace"])
                    || has(action, &["set", "logged"])
                    || has(action, &["set", "unlogged"]) =>
            {
                self.of_postgres(
                    REWRITES,
                    at,
                    "PostgreSQL writes the table anew under an exclusive lock",
                )
            }
            _ => None,
        }
    }

    fn drops_column(&self, rest: &[SqlToken<'_>], at: usize) -> Option<Hazard> {
        let is_column = rest.first().is_some_and(|t| t.is("column"));
        let others = [
            "constraint",
            "index",
            "key",
            "foreign",
            "primary",
            "check",
            "partition",
            "default",
            "not",
            "unique",
            "if",
        ];
        let is_other = rest
            .first()
            .is_none_or(|t| others.iter().any(|word| t.is(word)) && t.kind == TokenKind::Word);
        let (column, _) = name(skip(rest, &["column", "if", "exists"]))?;
        let is_weak = self.filled.contains(&column) || !is_column && self.dialect != Dialect::MySql;
        let hazard = Hazard {
            rule: DROPS,
            at,
            detail: Some("the column is deleted"),
            is_weak,
        };
        (is_column || !is_other).then_some(hazard)
    }

    /// Judges `CHANGE old new type` of MySQL.
    fn changes(&self, rest: &[SqlToken<'_>], at: usize) -> Option<Hazard> {
        let (old, rest) = name(rest)?;
        let (new, _) = name(rest)?;
        if old == new {
            Some(rewrites(at, "the type of the column can change"))
        } else {
            self.renamed_column(at)
        }
    }

    fn renamed_column(&self, at: usize) -> Option<Hazard> {
        Some(Hazard {
            rule: RENAMES,
            at,
            detail: Some("the column has another name"),
            is_weak: false,
        })
    }

    fn alters_column(&self, rest: &[SqlToken<'_>], at: usize) -> Option<Hazard> {
        let (column, rest) = name(rest)?;
        if starts(rest, &["set", "not", "null"]) {
            let detail = "PostgreSQL reads all rows under an exclusive lock";
            return self.of_postgres(CONSTRAINT, at, detail).map(|h| Hazard {
                is_weak: self.filled.contains(&column),
                ..h
            });
        }
        let position = rest.iter().take(3).position(|t| t.is("type"))?;
        let kind = &rest[position + 1..];
        // PostgreSQL builds only indexes anew for another collation.
        let is_plain = kind.len() == 1 || kind.get(1..).is_some_and(is_collation);
        let is_text = is_plain && (kind[0].is("text") || kind[0].is("varchar"));
        (!is_text && self.dialect != Dialect::Other)
            .then(|| rewrites(at, "the type of the column changes"))
    }

    /// Judges what an action adds.
    fn adds(&self, rest: &[SqlToken<'_>], at: usize) -> Option<Hazard> {
        let first = rest.first()?;
        let is_not_valid = has(rest, &["not", "valid"]);
        let body = if first.is("constraint") {
            &rest[2.min(rest.len())..]
        } else {
            rest
        };
        if starts_with(body, "foreign") || starts_with(body, "check") {
            let detail = if starts_with(body, "foreign") {
                "the rows of both tables are checked while they are locked"
            } else {
                "all rows are checked while the table is locked"
            };
            let is_open =
                !is_not_valid && !has(rest, &["not", "enforced"]) && self.dialect != Dialect::Other;
            return is_open.then(|| locks(at, detail));
        }
        if starts_with(body, "unique")
            || starts_with(body, "exclude")
            || starts_with(body, "primary")
        {
            let uses_index = has(body, &["using", "index"]);
            let is_key = starts_with(body, "unique")
                && body.get(1).is_some_and(|t| t.is("index") || t.is("key"));
            let detail = "PostgreSQL builds the index while the table is locked";
            let is_open = !uses_index && !is_key;
            return is_open
                .then(|| self.of_postgres(CONSTRAINT, at, detail))
                .flatten();
        }
        let others = [
            "index",
            "key",
            "fulltext",
            "spatial",
            "partition",
            "constraint",
            "period",
            "value",
        ];
        if others.iter().any(|w| first.is(w)) || first.is("(") {
            return None;
        }
        let (_, column) = name(skip(rest, &["column", "if", "not", "exists"]))?;
        self.adds_column(column, at)
    }

    /// Judges the definition of a new column behind its name.
    fn adds_column(&self, definition: &[SqlToken<'_>], at: usize) -> Option<Hazard> {
        const VOLATILE: [&str; 9] = [
            "gen_random_uuid",
            "uuid_generate_v4",
            "uuid_generate_v1",
            "random",
            "clock_timestamp",
            "uuidv7",
            "uuidv4",
            "nextval",
            "timeofday",
        ];
        let default = definition.iter().position(|t| t.is("default"));
        let is_volatile = default.is_some_and(|i| {
            definition[i + 1..]
                .iter()
                .take(4)
                .any(|t| VOLATILE.iter().any(|word| t.is(word)))
        });
        let is_serial = definition.iter().take(1).any(|t| {
            ["serial", "bigserial", "smallserial"]
                .iter()
                .any(|w| t.is(w))
        });
        if self.dialect == Dialect::Postgres
            && (is_volatile || is_serial || has(definition, &["stored"]))
        {
            return self.of_postgres(
                REWRITES,
                at,
                "PostgreSQL writes the table anew to compute a value for each row",
            );
        }
        let has_value = [
            "default",
            "generated",
            "identity",
            "auto_increment",
            "as",
            "serial",
            "bigserial",
            "smallserial",
        ];
        let is_required = has(definition, &["not", "null"]) || has(definition, &["primary", "key"]);
        let is_open = is_required
            && !definition
                .iter()
                .any(|t| has_value.iter().any(|word| t.is(word)));
        (is_open && self.dialect != Dialect::MySql).then_some(Hazard {
            rule: REQUIRED,
            at,
            detail: None,
            is_weak: false,
        })
    }
}

/// Returns true if the first token is this keyword.
fn starts_with(tokens: &[SqlToken<'_>], word: &str) -> bool {
    tokens.first().is_some_and(|t| t.is(word))
}

/// Returns the hazard of a constraint that locks its table.
fn locks(at: usize, detail: &'static str) -> Hazard {
    Hazard {
        rule: CONSTRAINT,
        at,
        detail: Some(detail),
        is_weak: false,
    }
}

fn rewrites(at: usize, detail: &'static str) -> Hazard {
    Hazard {
        rule: REWRITES,
        at,
        detail: Some(detail),
        is_weak: false,
    }
}

/// Returns true if a table has the name of a copy that a migration works with.
fn is_scratch(table: &str) -> bool {
    let starts = ["tmp_", "temp_", "new_", "_new", "#", "_tmp", "__new"];
    let ends = ["_tmp", "_temp", "_new"];
    starts.iter().any(|s| table.starts_with(s)) || ends.iter().any(|s| table.ends_with(s))
}
/// Returns true if the tokens are `COLLATE` and the name of a collation, and nothing else.
fn is_collation(tokens: &[SqlToken<'_>]) -> bool {
    let named = tokens
        .split_first()
        .filter(|(first, _)| first.is("collate"));
    named
        .and_then(|(_, rest)| name(rest))
        .is_some_and(|(_, rest)| rest.is_empty())
}
