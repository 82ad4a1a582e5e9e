//! What FOR UPDATE and FOR SHARE are about: the tables of the FROM that they stand behind, of a UNION those of the last
//! SELECT. What a query in that FROM reads, or a common table expression, is not locked unless it says so itself.

use sqlparser::ast::{
    LockClause, NonBlock, ObjectName, Query, SetExpr, TableFactor, TableWithJoins,
};

use crate::error::{Result, SqlError};
use crate::walk::{ExpressionReader, read_query};

/// Whether a query's own locking clauses are about any table.
pub fn locks_tables(query: &Query) -> bool {
    if query.locks.is_empty() {
        return false;
    }
    let SetExpr::Select(select) = query.body.as_ref() else {
        return true;
    };
    let common_tables = query.with.iter().flat_map(|with| &with.cte_tables);
    let common_tables: Vec<&str> = common_tables
        .map(|table| table.alias.name.value.as_str())
        .collect();
    let names_table = |factor: &TableFactor| match factor {
        TableFactor::Table { name, .. } => match name.0.as_slice() {
            [name] => {
                let name = name.as_ident().map(|ident| ident.value.as_str());
                !name.is_some_and(|name| common_tables.contains(&name))
            }
            _ => true,
        },
        _ => false,
    };
    any_factor(&select.from, &names_table)
}

/// Error 3568 if a locking clause of a query names something that is not in its FROM.
pub fn check_names(query: &Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Ok(());
    };
    for lock in &query.locks {
        let named = lock.of.as_ref().and_then(|name| name.0.last());
        let Some(named) = named.and_then(|name| name.as_ident()) else {
            continue;
        };
        let is_named = |factor: &TableFactor| match factor {
            TableFactor::Table {
                name, alias: None, ..
            } => {
                let name = name.0.last().and_then(|name| name.as_ident());
                name.is_some_and(|name| name.value == named.value)
            }
            TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } => alias
                .as_ref()
                .is_some_and(|alias| alias.name.value == named.value),
            // It has a name that is not looked for here.
            _ => true,
        };
        if !any_factor(&select.from, &is_named) {
            return Err(SqlError::unresolved_table_lock(&named.value));
        }
    }
    Ok(())
}

/// Whether a query's own locking clauses pass by rows that others have locked.
pub fn skips_locked(query: &Query) -> bool {
    let skips = |lock: &LockClause| lock.nonblock == Some(NonBlock::SkipLocked);
    query.locks.iter().any(skips)
}

/// Whether a query has a locking clause somewhere.
pub fn has_locking_clause(query: &Query) -> bool {
    let mut found = Clauses::default();
    read_query(query, &mut found);
    found.0
}

/// A query that says FOR UPDATE or FOR SHARE, of something that can be locked.
pub struct LockingQuery {
    /// It is the outermost one.
    pub is_whole: bool,
    /// Its FROM, a table after the other, without common table expressions.
    pub tables: Vec<TableWithJoins>,
    /// Without those that name a common table expression: MySQL answers, and locks nothing for them.
    pub clauses: Vec<LockClause>,
}

/// The queries that lock: this one, and those in its FROM, in expressions, and in its common table expressions.
pub fn locking_queries(query: &Query) -> Vec<LockingQuery> {
    let mut found = LockingQueries::default();
    read_query(query, &mut found);
    found.locking
}

/// Collects the queries that lock, with what the names in their FROM mean.
#[derive(Default)]
struct LockingQueries {
    /// The queries around the current one, and it.
    open: Vec<OpenQuery>,
    locking: Vec<LockingQuery>,
}

/// A query that is being walked.
struct OpenQuery {
    common_tables: Vec<String>,
    is_recursive: bool,
    /// How many of the common tables have been walked: those are known by name. All of them for the query's own FROM.
    walked: usize,
}

impl OpenQuery {
    fn of(query: &Query) -> Self {
        let with = query.with.as_ref();
        let tables = with.iter().flat_map(|with| &with.cte_tables);
        let tables = tables.map(|table| table.alias.name.value.clone());
        let common_tables: Vec<String> = tables.collect();
        Self {
            walked: common_tables.len(),
            is_recursive: with.is_some_and(|with| with.recursive),
            common_tables,
        }
    }

    fn has_common_table(&self, name: &str) -> bool {
        let number = self.walked + usize::from(self.is_recursive);
        let mut known = self.common_tables.iter().take(number);
        known.any(|table| table == name)
    }
}

/// The tables of a FROM.
#[derive(Default)]
struct Named {
    tables: Vec<TableWithJoins>,
    /// What common table expressions are called in it.
    common_tables: Vec<String>,
}

impl LockingQueries {
    fn add_tables(&self, from: &[TableWithJoins], named: &mut Named) {
        let factors = from.iter().flat_map(|table| {
            let joined = table.joins.iter().map(|join| &join.relation);
            std::iter::once(&table.relation).chain(joined)
        });
        for factor in factors {
            match factor {
                TableFactor::NestedJoin {
                    table_with_joins, ..
                } => self.add_tables(std::slice::from_ref(table_with_joins), named),
                TableFactor::Table { name, alias, .. } if self.is_common_table(name) => {
                    let name = name.0.last().and_then(|name| name.as_ident());
                    let called = alias.as_ref().map(|alias| &alias.name).or(name);
                    let called = called.map(|name| name.value.clone());
                    named.common_tables.extend(called);
                }
                // It has no rows that are locked.
                TableFactor::JsonTable { .. } => {}
                factor => named.tables.push(TableWithJoins {
                    relation: factor.clone(),
                    joins: Vec::new(),
                }),
            }
        }
    }

    fn is_common_table(&self, name: &ObjectName) -> bool {
        let [name] = name.0.as_slice() else {
            return false;
        };
        let mut around = self.open.iter();
        name.as_ident()
            .is_some_and(|name| around.any(|query| query.has_common_table(&name.value)))
    }

    /// Adds the tables of a query's SELECT, and of several in a UNION those of the last one, in parentheses or not.
    fn add_tables_of(&self, body: &SetExpr, named: &mut Named) {
        match body {
            SetExpr::Select(select) => self.add_tables(&select.from, named),
            SetExpr::SetOperation { right, .. } => self.add_tables_of(right, named),
            SetExpr::Query(query) if query.with.is_none() => {
                self.add_tables_of(&query.body, named);
            }
            _ => {}
        }
    }
}

impl ExpressionReader for LockingQueries {
    fn enter_query(&mut self, query: &Query) {
        let is_whole = self.open.is_empty();
        self.open.push(OpenQuery::of(query));
        if !query.locks.is_empty() {
            let mut named = Named::default();
            self.add_tables_of(&query.body, &mut named);
            let names_common_table = |clause: &&LockClause| {
                let name = clause
                    .of
                    .as_ref()
                    .and_then(|name| name.0.last()?.as_ident());
                name.is_some_and(|name| named.common_tables.contains(&name.value))
            };
            let clauses = query.locks.iter();
            let clauses: Vec<LockClause> = clauses
                .filter(|clause| !names_common_table(clause))
                .cloned()
                .collect();
            if !clauses.is_empty() {
                self.locking.push(LockingQuery {
                    is_whole,
                    tables: named.tables,
                    clauses,
                });
            }
        }
        if let Some(own) = self.open.last_mut() {
            own.walked = 0;
        }
    }

    fn leave_query(&mut self) {
        self.open.pop();
        if let Some(around) = self.open.last_mut() {
            around.walked += 1;
        }
    }
}

fn any_factor(tables: &[TableWithJoins], test: &dyn Fn(&TableFactor) -> bool) -> bool {
    tables.iter().any(|table| {
        let joined = table.joins.iter().map(|join| &join.relation);
        std::iter::once(&table.relation)
            .chain(joined)
            .any(|factor| match factor {
                TableFactor::NestedJoin {
                    table_with_joins, ..
                } => any_factor(std::slice::from_ref(table_with_joins), test),
                factor => test(factor),
            })
    })
}

#[derive(Default)]
struct Clauses(bool);

impl ExpressionReader for Clauses {
    fn enter_query(&mut self, query: &Query) {
        self.0 |= !query.locks.is_empty();
    }
}
