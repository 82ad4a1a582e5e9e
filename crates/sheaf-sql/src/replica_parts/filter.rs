//! Which changes of the source are applied (CHANGE REPLICATION FILTER).
//!
//! Rules about databases come first, and those about tables after them, in this order:
//!
//! ```text
//!   REPLICATE_DO_DB given?            not named: left out
//!   else REPLICATE_IGNORE_DB          named: left out
//!   REPLICATE_DO_TABLE                named: applied
//!   REPLICATE_IGNORE_TABLE            named: left out
//!   REPLICATE_WILD_DO_TABLE           like one: applied
//!   REPLICATE_WILD_IGNORE_TABLE       like one: left out
//!   REPLICATE_DO_TABLE or REPLICATE_WILD_DO_TABLE given?     left out
//! ```
//!
//! The database of rows is their table's. That of a statement is the session's, and that of CREATE DATABASE and the
//! like the one that it names. What is left out counts as executed.
//!
//! Reference: MySQL manual, "How Servers Evaluate Replication Filtering Rules".

use sheaf_frontend::parser::replication::FilterRule;
use sheaf_table::QualifiedName;
use sheaf_types::text::like::Pattern;

use super::kept_lines::{escaped, unescaped};
use crate::parser::statement::{Statement, TableName};

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) do_databases: Vec<String>,
    pub(crate) ignore_databases: Vec<String>,
    pub(crate) do_tables: Vec<QualifiedName>,
    pub(crate) ignore_tables: Vec<QualifiedName>,
    /// Patterns of `database.table`.
    pub(crate) do_patterns: Vec<String>,
    pub(crate) ignore_patterns: Vec<String>,
}

/// What a statement changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// A database itself.
    Database(String),
    Tables(Vec<QualifiedName>),
    /// Rows, or what no table is.
    Other,
}

/// Where a name stands in a list of rules.
const NAMES: [&str; 6] = [
    "do_db",
    "ignore_db",
    "do_table",
    "ignore_table",
    "wild_do_table",
    "wild_ignore_table",
];

impl Filter {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// The same with a rule in the place of those of its kind.
    pub(crate) fn with(mut self, rule: FilterRule) -> Filter {
        match rule {
            FilterRule::DoDatabases(names) => self.do_databases = names,
            FilterRule::IgnoreDatabases(names) => self.ignore_databases = names,
            FilterRule::DoTables(names) => self.do_tables = names,
            FilterRule::IgnoreTables(names) => self.ignore_tables = names,
            FilterRule::DoPatterns(patterns) => self.do_patterns = patterns,
            FilterRule::IgnorePatterns(patterns) => self.ignore_patterns = patterns,
        }
        self
    }

    /// Whether rows of a table are applied.
    pub(crate) fn takes_rows(&self, database: &str, table: &str) -> bool {
        self.takes_database(database) && self.takes_table(database, table)
    }

    /// Whether a statement is applied that ran in a database, empty if in none.
    pub(crate) fn takes_statement(&self, database: &str, changed: &Changed) -> bool {
        match changed {
            Changed::Database(name) => self.takes_database(name) && self.takes_whole(name),
            Changed::Other => self.takes_database(database),
            Changed::Tables(tables) => {
                let mut tables = tables.iter();
                self.takes_database(database)
                    && tables.all(|(database, table)| self.takes_table(database, table))
            }
        }
    }

    /// There are rules about tables.
    pub(crate) fn names_tables(&self) -> bool {
        let names = [&self.do_tables, &self.ignore_tables];
        let patterns = [&self.do_patterns, &self.ignore_patterns];
        names.iter().any(|names| !names.is_empty())
            || patterns.iter().any(|patterns| !patterns.is_empty())
    }

    fn takes_database(&self, name: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|known| known == name);
        match self.do_databases.is_empty() {
            false => is_in(&self.do_databases),
            true => !is_in(&self.ignore_databases),
        }
    }

    fn takes_table(&self, database: &str, table: &str) -> bool {
        let is_in = |names: &[QualifiedName]| {
            let mut names = names.iter();
            names.any(|(known, name)| known == database && name == table)
        };
        let full = format!("{database}.{table}");
        match () {
            () if is_in(&self.do_tables) => true,
            () if is_in(&self.ignore_tables) => false,
            () if is_like(&self.do_patterns, &full) => true,
            () if is_like(&self.ignore_patterns, &full) => false,
            () => self.do_tables.is_empty() && self.do_patterns.is_empty(),
        }
    }

    /// Whether the patterns of tables mean a whole database.
    fn takes_whole(&self, database: &str) -> bool {
        let full = format!("{database}.");
        match () {
            () if is_like(&self.do_patterns, &full) => true,
            () if is_like(&self.ignore_patterns, &full) => false,
            () => self.do_patterns.is_empty(),
        }
    }

    /// As lines `name=value`.
    pub(crate) fn to_lines(&self) -> String {
        let names = |names: &[QualifiedName]| -> Vec<String> {
            let names = names.iter();
            // The length tells where the name of the database ends.
            let text =
                |(database, table): &QualifiedName| format!("{}:{database}{table}", database.len());
            names.map(text).collect()
        };
        let lists = [
            self.do_databases.clone(),
            self.ignore_databases.clone(),
            names(&self.do_tables),
            names(&self.ignore_tables),
            self.do_patterns.clone(),
            self.ignore_patterns.clone(),
        ];
        let lines = NAMES.iter().zip(&lists).flat_map(|(name, list)| {
            let line = move |value: &String| format!("{name}={}\n", escaped(value));
            list.iter().map(line)
        });
        lines.collect()
    }

    /// Takes such a line. `None`: it is none.
    pub(crate) fn read_line(&mut self, name: &str, value: &str) -> Option<()> {
        let value = unescaped(value);
        let table = || {
            let (length, names) = value.split_once(':')?;
            let (database, table) = names.split_at_checked(length.parse().ok()?)?;
            Some((database.to_string(), table.to_string()))
        };
        match NAMES.iter().position(|known| *known == name)? {
            0 => self.do_databases.push(value),
            1 => self.ignore_databases.push(value),
            2 => self.do_tables.push(table()?),
            3 => self.ignore_tables.push(table()?),
            4 => self.do_patterns.push(value),
            _ => self.ignore_patterns.push(value),
        }
        Some(())
    }
}

fn is_like(patterns: &[String], name: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| Pattern::of_names_by_case(pattern).matches(name))
}

/// What a statement that ran in a database changes. Statements about accounts change the tables of `mysql`.
pub(crate) fn changed_by(statement: &Statement, database: &str) -> Changed {
    let full = |name: &TableName| {
        let own = name.database.as_deref().unwrap_or(database);
        (own.to_string(), name.table.clone())
    };
    let all = |names: &[TableName]| Changed::Tables(names.iter().map(full).collect());
    match statement {
        Statement::CreateDatabase { name, .. } | Statement::DropDatabase { name, .. } => {
            Changed::Database(name.clone())
        }
        Statement::AlterDatabase { name, .. } => {
            Changed::Database(name.clone().unwrap_or_else(|| database.to_string()))
        }
        Statement::CreateTable(create) => Changed::Tables(vec![full(&create.name)]),
        Statement::CreateView(create) => Changed::Tables(vec![full(&create.name)]),
        Statement::AlterTable { name, .. } | Statement::TruncateTable(name) => {
            Changed::Tables(vec![full(name)])
        }
        Statement::DropViews { names, .. }
        | Statement::DropTables { names, .. }
        | Statement::Maintain { names, .. } => all(names),
        Statement::RenameTables(renames) => {
            Changed::Tables(renames.iter().map(|(old, _)| full(old)).collect())
        }
        Statement::Account(_) => Changed::Tables(vec![("mysql".to_string(), "user".to_string())]),
        Statement::Within { statement, .. } | Statement::SetStatement { statement, .. } => {
            changed_by(statement, database)
        }
        _ => Changed::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| name.to_string()).collect()
    }

    fn tables(all: &[(&str, &str)]) -> Vec<QualifiedName> {
        let all = all.iter();
        all.map(|(database, table)| (database.to_string(), table.to_string()))
            .collect()
    }

    #[test]
    fn rules_of_databases_come_before_those_of_tables() {
        let filter = Filter::default()
            .with(FilterRule::DoDatabases(names(&["a", "b"])))
            .with(FilterRule::IgnoreDatabases(names(&["a"])))
            .with(FilterRule::IgnoreTables(tables(&[("a", "t")])))
            .with(FilterRule::DoPatterns(names(&["a.%", "b\\_.%"])));
        for (database, table, is_taken) in [
            ("a", "t", false),
            ("a", "u", true),
            ("b", "t", false),
            ("c", "t", false),
        ] {
            assert_eq!(
                filter.takes_rows(database, table),
                is_taken,
                "{database}.{table}"
            );
        }
        let of = |name: &str| Changed::Database(name.to_string());
        assert!(filter.takes_statement("", &of("a")));
        assert!(!filter.takes_statement("a", &of("b")) && !filter.takes_statement("a", &of("c")));
        // The database of a statement is the session's.
        let one = Changed::Tables(tables(&[("a", "u")]));
        assert!(filter.takes_statement("b", &one) && !filter.takes_statement("c", &one));
        let mixed = Changed::Tables(tables(&[("a", "u"), ("a", "t")]));
        assert!(!filter.takes_statement("a", &mixed));
        let ignoring = Filter::default().with(FilterRule::IgnoreDatabases(names(&["a"])));
        assert!(!ignoring.takes_rows("a", "t") && ignoring.takes_rows("b", "t"));
        assert!(!ignoring.names_tables() && filter.names_tables());
    }

    #[test]
    fn rules_read_as_they_were_written() {
        let filter = Filter {
            do_databases: names(&["a=b\nc", "d\\e"]),
            ignore_databases: names(&["f"]),
            do_tables: tables(&[("1:g", "h.i"), ("ä", "")]),
            ignore_tables: tables(&[("j", "k")]),
            do_patterns: names(&["l.m%"]),
            ignore_patterns: names(&["n.%"]),
        };
        let mut read = Filter::default();
        for line in filter.to_lines().lines() {
            let (name, value) = line.split_once('=').unwrap();
            read.read_line(name, value).unwrap();
        }
        assert_eq!(read, filter);
        assert_eq!(read.read_line("other", ""), None);
        assert_eq!(read.read_line("do_table", "9:a"), None);
    }
}
