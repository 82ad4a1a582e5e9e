//! Common table expressions that name themselves.
//!
//! ```text
//!   c AS (A UNION ALL B UNION ALL C ORDER BY .. LIMIT ..)      B and C name c
//!
//!   Limit
//!     Sort
//!       Recursive all c
//!         A                     the first part, which tells names and types
//!         Union all             a round, over the rows of the round before
//!           B over a scan of c
//!           C over a scan of c
//! ```

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema};
use datafusion_expr::TableSource;
use sheaf_algebra::relation::{Item, JoinKind, Operator, Recursive, SetKind};
use sheaf_algebra::{Relation, Scalar};
use sheaf_exec::WorkTableSource;
use sheaf_exec::functions::types::MOMENT_KEY;
use sheaf_types::error::codes;
use sqlparser::ast::{Expr, Query, SetExpr, SetOperator, SetQuantifier, TableFactor};
use std::ops::ControlFlow;

use super::common_table::Definition;
use super::from::check_names;
use super::ordered_query::OrderedQuery;
use super::query::{bare_header, order_items, other_columns};
use super::{Binder, Bound, Output};
use crate::error::SqlError;
use crate::locking::locks_tables;
use crate::syntax::is_same;
use crate::walk::{ExpressionVisitor, walk_query};

impl Binder<'_> {
    /// The query of a common table expression that may name itself.
    pub(super) fn recursive_query(
        &mut self,
        name: &str,
        names: &[String],
        query: &Query,
    ) -> Bound<(Relation, Vec<Output>)> {
        let Some(parts) = parts(name, query)? else {
            return self.query(query);
        };
        self.nested(|this| {
            let common_tables = this.common_tables.len();
            let bound = this.recursive(name, names, query, &parts);
            this.common_tables.truncate(common_tables);
            bound
        })
    }

    fn recursive(
        &mut self,
        name: &str,
        names: &[String],
        query: &Query,
        parts: &Parts<'_>,
    ) -> Bound<(Relation, Vec<Output>)> {
        self.common_tables_of(query)?;
        self.locking |= locks_tables(query);
        let (first, outputs) = self.nested(|this| this.set_expression(parts.first))?;
        check_names(names.len(), outputs.len())?;
        let (first, fields) = self.first_part(first, &outputs)?;
        let columns = fields.iter().zip(&outputs).enumerate();
        let columns = columns.map(|(at, (field, output))| {
            let name = names.get(at).unwrap_or(&output.header.name);
            field.as_ref().clone().with_name(name)
        });
        let columns: Vec<Field> = columns.collect();
        for (at, column) in columns.iter().enumerate() {
            let mut before = columns[..at].iter();
            if before.any(|known| is_same(known.name(), column.name())) {
                return Err(SqlError::duplicate_field_name(column.name()));
            }
        }
        let shown: Vec<String> = columns.iter().map(|column| column.name().clone()).collect();
        let source = WorkTableSource::new(name.to_string(), Arc::new(Schema::new(columns)));
        let source: Arc<dyn TableSource> = Arc::new(source);
        self.add_common_table(name, Vec::new(), Definition::Rows(Arc::clone(&source)));
        let mut rounds = Vec::with_capacity(parts.rounds.len());
        for round in &parts.rounds {
            check_clauses(round)?;
            let (round, of_round) = self.nested(|this| this.set_expression(round))?;
            check_rows(name, &round, &source)?;
            rounds.push(self.round(round, &of_round, &fields)?);
        }
        let round = match rounds.len() {
            1 => rounds.remove(0),
            _ => {
                let columns = fields.iter();
                let columns =
                    columns.map(|field| self.columns.add_computed("round", Arc::clone(field)));
                let columns = columns.collect();
                Relation::set_operation(SetKind::Union, rounds, columns)
            }
        };
        let outputs = outputs.into_iter().zip(&fields).zip(shown);
        let outputs = outputs.map(|((output, field), name)| Output {
            id: self.columns.add_computed(name, Arc::clone(field)),
            field: Arc::clone(field),
            header: bare_header(output.header),
        });
        let outputs: Vec<Output> = outputs.collect();
        let recursive = Recursive {
            name: name.to_string(),
            first: Box::new(first),
            round: Box::new(round),
            columns: outputs.iter().map(|output| output.id).collect(),
            is_distinct: parts.is_distinct,
        };
        let order_by = order_items(query.order_by.as_ref())?;
        let relation = self.ordered(
            recursive.relation(),
            &outputs,
            (order_by, OrderedQuery::SetOperation),
        )?;
        let relation = match &query.limit_clause {
            Some(limit) => self.limit(relation, limit)?,
            None => relation,
        };
        Ok((relation, outputs))
    }

    /// The first part, and what the columns of the table are. What is only NULL, as parameters are before their values
    /// are known, gets a type.
    fn first_part(
        &mut self,
        first: Relation,
        outputs: &[Output],
    ) -> Bound<(Relation, Vec<FieldRef>)> {
        let mut items = Vec::with_capacity(outputs.len());
        let mut fields = Vec::with_capacity(outputs.len());
        for output in outputs {
            let column = Scalar::column(output.id, Arc::clone(&output.field));
            let mut value = self.call("$first_part", vec![column])?;
            let mut field = value.field().as_ref().clone().with_nullable(true);
            // A column is a text alone, also where arithmetic has made the text of a date.
            if field.metadata_mut().remove(MOMENT_KEY).is_some() {
                value = self.typing().of_round(value, &field)?;
            }
            let column = match value.as_column() {
                Some(column) => column,
                None => self.new_column(&output.header.name, &value),
            };
            fields.push(Arc::new(field));
            items.push(Item { column, value });
        }
        let first = match items.iter().all(Item::is_passed_on) {
            true if first.columns().len() == items.len() => first,
            _ => first.project(items),
        };
        Ok((first, fields))
    }

    /// The rows of a round in the types of the first part.
    fn round(
        &mut self,
        round: Relation,
        outputs: &[Output],
        fields: &[FieldRef],
    ) -> Bound<Relation> {
        if outputs.len() != fields.len() {
            return Err(other_columns());
        }
        let mut items = Vec::with_capacity(outputs.len());
        for (output, to) in outputs.iter().zip(fields) {
            let column = Scalar::column(output.id, Arc::clone(&output.field));
            let value = self.typing().of_round(column, to)?;
            let column = match value.as_column() {
                Some(column) => column,
                None => self.new_column(&output.header.name, &value),
            };
            items.push(Item { column, value });
        }
        Ok(round.project(items))
    }
}

/// The parts of a query that names itself.
struct Parts<'q> {
    first: &'q SetExpr,
    /// In their order.
    rounds: Vec<&'q SetExpr>,
    is_distinct: bool,
}

/// `None` for a query that does not name itself. Error 3573 for one without a UNION, and 3574 for one without a first
/// part that does not.
fn parts<'q>(name: &str, query: &'q Query) -> Bound<Option<Parts<'q>>> {
    let names_itself = |body: &SetExpr| {
        let mut part = Query {
            body: Box::new(body.clone()),
            ..query.clone()
        };
        let mut found = Named { name, found: false };
        walk_query(&mut part, &mut found);
        found.found
    };
    let mut rounds = Vec::new();
    let mut quantifiers = Vec::new();
    let mut first = query.body.as_ref();
    while let SetExpr::SetOperation {
        left,
        op: SetOperator::Union,
        set_quantifier,
        right,
    } = first
    {
        if !names_itself(right) {
            break;
        }
        rounds.push(right.as_ref());
        quantifiers.push(!matches!(set_quantifier, SetQuantifier::All));
        first = left;
    }
    let is_named_first = names_itself(first);
    if rounds.is_empty() && !is_named_first {
        return Ok(None);
    }
    let is_union = matches!(
        query.body.as_ref(),
        SetExpr::SetOperation {
            op: SetOperator::Union,
            ..
        }
    );
    if !is_union {
        let text = format!("Recursive Common Table Expression '{name}' should contain a UNION");
        return Err(SqlError::new(codes::CTE_RECURSIVE_REQUIRES_UNION, text));
    }
    if rounds.is_empty() || is_named_first {
        return Err(SqlError::new(
            codes::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST,
            format!(
                "Recursive Common Table Expression '{name}' should have one or more non-recursive query blocks followed \
                 by one or more recursive ones"
            ),
        ));
    }
    // The last UNION without ALL is about all rows before it.
    let is_distinct = quantifiers[0];
    if !is_distinct && quantifiers.contains(&true) {
        let what = "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression";
        return Err(SqlError::not_supported_yet(what));
    }
    rounds.reverse();
    Ok(Some(Parts {
        first,
        rounds,
        is_distinct,
    }))
}

/// 1235 for what is about all rows of a round.
fn check_clauses(round: &SetExpr) -> Bound<()> {
    let is_of_all = match round {
        SetExpr::Select(select) => select.distinct.is_some(),
        SetExpr::Query(query) if query.order_by.is_none() && query.limit_clause.is_none() => {
            return check_clauses(&query.body);
        }
        SetExpr::Query(_) => true,
        _ => false,
    };
    match is_of_all {
        true => {
            let what = "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression";
            Err(SqlError::not_supported_yet(what))
        }
        false => Ok(()),
    }
}

/// Counts how often a part reads the rows of the round before. What it makes of a row must not depend on the others,
/// since a round need not be all rows of a level. So these are neither grouped (3575), nor on the side of an outer join
/// that may be missing (3576), nor in a subquery, nor there twice (3577).
fn check_rows(name: &str, relation: &Relation, rows: &Arc<dyn TableSource>) -> Bound<usize> {
    let mut counts = Vec::new();
    for input in relation.inputs() {
        counts.push(check_rows(name, input, rows)?);
    }
    let total: usize = counts.iter().sum();
    let in_right = || counts.get(1).is_some_and(|count| *count > 0);
    let wrong = |code, what: &str| {
        let text = format!("Recursive Common Table Expression '{name}' {what}");
        Err(SqlError::new(code, text))
    };
    let wrong_in_block = |code, what: &str| {
        let text = format!(
            "In recursive query block of Recursive Common Table Expression '{name}', the recursive table must {what}"
        );
        Err(SqlError::new(code, text))
    };
    let once = "be referenced only once, and not in any subquery";
    match relation.operator() {
        Operator::Scan(scan) => Ok(usize::from(Arc::ptr_eq(&scan.source, rows))),
        Operator::SetOperation(_) => Ok(counts.into_iter().max().unwrap_or(0)),
        Operator::Group(group)
            if total > 0 && !matches!(group.input.operator(), Operator::SetOperation(_)) =>
        {
            let what =
                "can contain neither aggregation nor window functions in recursive query block";
            wrong(codes::CTE_RECURSIVE_FORBIDS_AGGREGATION, what)
        }
        Operator::Window(_) if total > 0 => {
            let what =
                "can contain neither aggregation nor window functions in recursive query block";
            wrong(codes::CTE_RECURSIVE_FORBIDS_AGGREGATION, what)
        }
        Operator::Join(join) if join.kind == JoinKind::LeftOuter && in_right() => {
            let what = "neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints";
            wrong_in_block(codes::CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER, what)
        }
        Operator::Join(join) if join.kind != JoinKind::Inner && in_right() => {
            wrong_in_block(codes::CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE, once)
        }
        Operator::DependentJoin(_) if in_right() => {
            wrong_in_block(codes::CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE, once)
        }
        _ if total > 1 => wrong_in_block(codes::CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE, once),
        _ => Ok(total),
    }
}

/// Looks for a table of this name.
struct Named<'n> {
    name: &'n str,
    found: bool,
}

impl ExpressionVisitor for Named<'_> {
    fn enter_table(&mut self, table: &TableFactor) {
        if let TableFactor::Table { name, .. } = table
            && let [part] = name.0.as_slice()
        {
            let ident = part.as_ident();
            self.found |= ident.is_some_and(|ident| ident.value == self.name);
        }
    }

    fn leave_expression(&mut self, _expression: &mut Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
