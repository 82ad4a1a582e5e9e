//! WITH: common table expressions.
//!
//! One that is named once is bound where it is named, in the scopes of its definition, and becomes part of the query
//! there. One that is named several times is bound once, where it is defined, and computed once: each name is a scan of
//! its rows.
//!
//! ```text
//!   WITH c AS (SELECT k, count(*) n FROM t GROUP BY k) SELECT .. FROM c a JOIN c b ON a.n = b.n
//!
//!   Join, #5 = #7                c := Group by #1: #3 := count(1)
//!     Scan a #4 #5                      Scan t #0 #1 #2
//!     Scan b #6 #7
//! ```
//!
//! Reading the rows of a table where they are, by an index for example, is often better than keeping them. So a query
//! that does no more than filter, join and compute becomes part of each query that names it. The copies must stay small
//! ([`MAX_COPIED_OPERATORS`]) and give the same rows: not with RAND(). A query that takes something from a query around
//! it is bound anew wherever it is named, too.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_expr::TableSource;
use sheaf_algebra::Relation;
use sheaf_algebra::relation::Operator;
use sheaf_exec::{CommonTableSource, WorkTableSource};
use sqlparser::ast::{Query, TableAlias, TableFactor};

use super::from::{listed_names, scope_of_query};
use super::scope::{Scope, TableName};
use super::{Binder, Bound, BoundPart, Output};
use crate::error::SqlError;
use crate::walk::{ExpressionReader, read_query};

/// The most operators that all copies of a query may have that becomes part of those that name it.
const MAX_COPIED_OPERATORS: usize = 100;

/// A common table expression.
pub(super) struct CommonTable {
    name: String,
    columns: Vec<String>,
    definition: Definition,
    /// How many of those before it its query may name.
    known: usize,
    /// How many blocks were open around its definition.
    blocks: usize,
}

/// What stands behind the name of a common table expression.
pub(super) enum Definition {
    Query {
        query: Arc<Query>,
        /// It may name itself.
        is_recursive: bool,
        /// It is bound already, for the first that names it, with these references to tables.
        bound: Option<Box<(BoundPart, Range<usize>)>>,
    },
    /// Rows that are computed apart from the queries that name them: once in the statement, or, inside of the
    /// definition of a recursive one, in the round before.
    Rows(Arc<dyn TableSource>),
}

impl Binder<'_> {
    /// Makes the names of a query's WITH known.
    pub(super) fn common_tables_of(&mut self, query: &Query) -> Bound<()> {
        let Some(with) = &query.with else {
            return Ok(());
        };
        let first = self.common_tables.len();
        for (table, times) in with.cte_tables.iter().zip(times_named(query)) {
            let name = &table.alias.name.value;
            let mut before = self.common_tables[first..].iter();
            if before.any(|known| known.name == *name) {
                return Err(SqlError::non_unique_table(name));
            }
            let columns = listed_names(&table.alias);
            let definition = match times > 1 && !self.context.is_over_rows {
                true => self.named_twice(&table.query, (name, &columns), with.recursive, times)?,
                false => Definition::of(Arc::new(table.query.as_ref().clone()), with.recursive),
            };
            self.add_common_table(name, columns, definition);
        }
        Ok(())
    }

    pub(super) fn add_common_table(
        &mut self,
        name: &str,
        columns: Vec<String>,
        definition: Definition,
    ) {
        self.common_tables.push(CommonTable {
            name: name.to_string(),
            columns,
            definition,
            known: self.common_tables.len(),
            blocks: self.blocks.len(),
        });
    }

    /// A query that is named so many times.
    fn named_twice(
        &mut self,
        query: &Query,
        (name, columns): (&str, &[String]),
        is_recursive: bool,
        times: usize,
    ) -> Bound<Definition> {
        let first = self.tables.len();
        let (relation, outputs) = match is_recursive {
            true => self.recursive_query(name, columns, query)?,
            false => self.query(query)?,
        };
        let is_small = || relation.operators() * times <= MAX_COPIED_OPERATORS;
        if is_small() && is_plain(&relation) || !stands_alone(&relation) {
            let range = first..self.tables.len();
            return Ok(Definition::Query {
                query: Arc::new(query.clone()),
                is_recursive,
                bound: Some(Box::new(((relation, outputs), range))),
            });
        }
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let source = self.kept_rows(name, relation, &outputs, &columns)?;
        Ok(Definition::Rows(source))
    }

    /// The rows of a query as a table that is computed once in the statement.
    fn kept_rows(
        &mut self,
        name: &str,
        relation: Relation,
        outputs: &[Output],
        columns: &[&str],
    ) -> Bound<Arc<dyn TableSource>> {
        let scope = scope_of_query(name, outputs, columns)?;
        let fields = scope.shown.iter().map(|column| {
            let field = column.field.as_ref().clone();
            field.with_name(&column.name)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let number = self.computed_once.len() as u32;
        let source = CommonTableSource::new(number, name.to_string(), schema);
        let source: Arc<dyn TableSource> = Arc::new(source);
        self.computed_once.push((Arc::clone(&source), relation));
        Ok(source)
    }

    /// Whether a derived table is computed once, apart from the query that names it. That is a subquery, which is
    /// computed for each row if it gives something else each time. The derived table is the same for all of them.
    pub(super) fn is_kept(&self, relation: &Relation) -> bool {
        self.open_subqueries > 0
            && !self.context.is_over_rows
            && relation.varies()
            && stands_alone(relation)
    }

    /// A derived table that is computed once.
    pub(super) fn kept_derived(
        &mut self,
        alias: &str,
        relation: Relation,
        outputs: &[Output],
        columns: &[&str],
    ) -> Bound<(Relation, Scope)> {
        let source = self.kept_rows(alias, relation, outputs, columns)?;
        let name = TableName {
            alias: alias.to_string(),
            ..TableName::default()
        };
        self.scan(source, name)
    }

    /// The common table expression of this name, if there is one.
    pub(super) fn common_table(
        &mut self,
        name: &str,
        alias: Option<&TableAlias>,
    ) -> Bound<Option<(Relation, Scope)>> {
        let mut tables = self.common_tables.iter();
        let Some(at) = tables.rposition(|table| table.name == name) else {
            return Ok(None);
        };
        let alias = alias.map_or(name, |alias| alias.name.value.as_str());
        let table = &mut self.common_tables[at];
        let names = table.columns.clone();
        let (query, is_recursive) = match &mut table.definition {
            Definition::Query {
                query,
                is_recursive,
                bound,
            } => {
                if let Some(bound) = bound.take() {
                    let ((relation, outputs), references) = *bound;
                    self.hints.add_bound_derived(alias, references);
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    return self.derived(alias, relation, outputs, &names).map(Some);
                }
                (Arc::clone(query), *is_recursive)
            }
            Definition::Rows(source) => {
                let source = Arc::clone(source);
                let name = TableName {
                    alias: alias.to_string(),
                    ..TableName::default()
                };
                return self.scan(source, name).map(Some);
            }
        };
        let (known, blocks) = (table.known, table.blocks);
        // It sees what was known where it was defined.
        let first = self.tables.len();
        let later_tables = self.common_tables.split_off(known);
        let inner_blocks = self.blocks.split_off(blocks);
        // Aggregates that are open inside do not hear of what it names.
        let around = self
            .open_aggregates
            .partition_point(|open| open.block < blocks);
        let inside = self.open_aggregates.split_off(around);
        self.open_common_tables += 1;
        let bound = match is_recursive {
            true => self.recursive_query(name, &names, &query),
            false => self.query(&query),
        };
        self.open_common_tables -= 1;
        self.open_aggregates.extend(inside);
        self.blocks.truncate(blocks);
        self.blocks.extend(inner_blocks);
        self.common_tables.truncate(known);
        self.common_tables.extend(later_tables);
        let (relation, outputs) = bound?;
        self.hints.add_derived(alias, first);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.derived(alias, relation, outputs, &names).map(Some)
    }
}

impl Definition {
    fn of(query: Arc<Query>, is_recursive: bool) -> Definition {
        Definition::Query {
            query,
            is_recursive,
            bound: None,
        }
    }
}

/// Whether a query does no more than read tables, filter, join and compute, and gives the same rows each time. There
/// may be any subqueries in its conditions and its list.
fn is_plain(relation: &Relation) -> bool {
    let are_inputs_plain = match relation.operator() {
        Operator::Scan(_)
        | Operator::Values(_)
        | Operator::Filter(_)
        | Operator::Project(_)
        | Operator::Join(_) => relation.inputs().into_iter().all(is_plain),
        Operator::DependentJoin(join) => is_plain(&join.left) && is_repeatable(&join.right),
        _ => false,
    };
    are_inputs_plain && computes_the_same(relation)
}

/// Whether all that is computed is the same each time.
fn is_repeatable(relation: &Relation) -> bool {
    computes_the_same(relation) && relation.inputs().into_iter().all(is_repeatable)
}

fn computes_the_same(relation: &Relation) -> bool {
    let mut is_same = true;
    relation.for_each_scalar(&mut |scalar| {
        is_same &= !scalar.is_volatile() && !scalar.is_of_variables();
    });
    is_same
}

/// Whether a query takes nothing from the queries around it, or from the round of a recursive one.
fn stands_alone(relation: &Relation) -> bool {
    fn reads_round(relation: &Relation) -> bool {
        match relation.operator() {
            Operator::Scan(scan) => scan.source.downcast_ref::<WorkTableSource>().is_some(),
            // Its rounds are its own.
            Operator::Recursive(recursive) => reads_round(&recursive.first),
            _ => relation.inputs().into_iter().any(reads_round),
        }
    }
    relation.free_columns().is_empty() && !reads_round(relation)
}

/// How often each common table expression of a query is named behind its definition, as far as the text tells.
fn times_named(query: &Query) -> Vec<usize> {
    let mut names = Named::default();
    read_query(query, &mut names);
    names.leave = true;
    let tables = query.with.as_ref().map_or(&[][..], |with| &with.cte_tables);
    let behind = tables.iter().map(|table| {
        // What stands in it and before it does not count.
        read_query(&table.query, &mut names);
        let times = names.times.get(&table.alias.name.value);
        times.copied().unwrap_or(0)
    });
    behind.collect()
}

/// How often tables are named.
#[derive(Default)]
struct Named {
    times: HashMap<String, usize>,
    /// What is read now was counted before, and is not to be.
    leave: bool,
}

impl ExpressionReader for Named {
    fn enter_table(&mut self, table: &TableFactor) {
        if let TableFactor::Table { name, .. } = table
            && let [part] = name.0.as_slice()
            && let Some(name) = part.as_ident()
        {
            let times = self.times.entry(name.value.clone()).or_default();
            *times = match self.leave {
                true => times.saturating_sub(1),
                false => *times + 1,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::parse_statement;
    use crate::parser::statement::Statement;

    #[test]
    fn a_table_is_named_behind_its_definition() {
        for (text, times) in [
            ("WITH a AS (SELECT 1) SELECT 1", vec![0]),
            (
                "WITH a AS (SELECT 1), b AS (SELECT * FROM a JOIN a x), c AS (SELECT * FROM b) SELECT * FROM a, c",
                vec![3, 1, 1],
            ),
            (
                "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n FROM a) SELECT (SELECT MAX(n) FROM a)",
                vec![1],
            ),
            (
                "WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b",
                vec![1, 1],
            ),
        ] {
            let Ok(Statement::Query(query)) = parse_statement(text, &SheafDialect::default())
            else {
                panic!("{text}");
            };
            assert_eq!(times_named(&query), times, "{text}");
        }
    }
}
