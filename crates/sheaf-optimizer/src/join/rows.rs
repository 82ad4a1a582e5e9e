//! How many rows a join leaves.
//!
//! | join | rows |
//! |---|---|
//! | inner | outer rows x inner rows x selectivity |
//! | left outer | the same, at least the outer rows |
//! | semi | outer rows x share of the outer keys that the inner side has x chance that one of its rows passes the rest |
//! | anti | what a semijoin leaves out |
//!
//! An equality selects `(1 - NULLs of both sides) / (the larger number of distinct values)`: each value of the side
//! with fewer is taken to be among those of the other (Selinger et al., "Access Path Selection in a Relational Database
//! Management System", SIGMOD 1979). The numbers are those of the whole tables, unless a condition bounds the column
//! itself: other conditions thin out the rows of each value, not the values.
//!
//! Several equalities with one relation are one on several columns. Their distinct values are counted together where an
//! index starts with them. Without such an index there are at most as many as rows.

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, Result};
use datafusion_expr::utils::{split_binary, split_conjunction};
use datafusion_expr::{BinaryExpr, Expr, Operator};

use crate::access::table_reference::table_column;
use crate::cost::pages::distinct_pages;
use crate::estimate::selectivity::guess;
use crate::join::edge::JoinEdge;
use crate::join::order::{Chooser, Input};
use crate::logical::equality::Equality;
use crate::logical::join_graph::{RelationKind, RelationSet};
use crate::logical::semantics;

/// Rows after a join, at least: estimates are never certain that nothing is there.
const LEAST_ROWS: f64 = 0.1;

/// Share of the outer rows that a semijoin or antijoin is taken to leave, at least.
const LEAST_SHARE: f64 = 0.01;

/// Distinct keys of the two sides of a join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    /// Of the rows so far.
    outer: f64,
    /// Of the new relation.
    inner: f64,
    /// Share of the pairs of rows in which no key is NULL.
    not_null: f64,
    /// The same for the rows so far alone.
    outer_not_null: f64,
}

impl Chooser<'_, '_> {
    /// Estimated rows after joining `relation`, with `new_rows` rows, to `before` rows of `set`.
    pub(crate) fn joined_rows(
        &self,
        before: f64,
        new_rows: f64,
        edge: &JoinEdge,
        set: RelationSet,
        relation: usize,
    ) -> Result<f64> {
        let keys = &edge.keys;
        let rest = self.rest_share(edge, set, relation)?;
        let matches = new_rows * keys.not_null / keys.outer.max(keys.inner) * rest;
        let rows = match self.graph.relations[relation].kind {
            RelationKind::Inner => before * matches,
            RelationKind::Outer => before * matches.max(1.0),
            RelationKind::Semi => before * matching_share(keys, new_rows, rest).max(LEAST_SHARE),
            RelationKind::Anti { .. } => {
                let share = 1.0 - matching_share(keys, new_rows, rest);
                before * share.max(LEAST_SHARE)
            }
            RelationKind::Mark => before,
        };
        Ok(rows.max(LEAST_ROWS))
    }

    /// What is known of the keys of a join.
    pub(crate) fn keys(&self, equalities: &[Equality], relation: usize) -> Result<Keys> {
        let mut keys = Keys {
            outer: 1.0,
            inner: 1.0,
            not_null: 1.0,
            outer_not_null: 1.0,
        };
        let mut outer_relations = RelationSet::default();
        for equality in equalities {
            let (outer, outer_nulls) = self.distinct(&equality.outer)?;
            let (inner, inner_nulls) = self.distinct(&equality.inner)?;
            keys.outer *= outer;
            keys.inner *= inner;
            if !equality.null_equals_null {
                keys.outer_not_null *= 1.0 - outer_nulls;
                keys.not_null *= (1.0 - outer_nulls) * (1.0 - inner_nulls);
            }
            outer_relations = outer_relations.union(self.graph.relations_of(&equality.outer)?);
        }
        if equalities.len() < 2 {
            return Ok(keys);
        }
        let mut outer_rows = 1.0;
        for relation in outer_relations.iter() {
            outer_rows *= self.whole_rows(relation);
        }
        let inner = self.together(equalities.iter().map(|equality| &equality.inner))?;
        let outer = self.together(equalities.iter().map(|equality| &equality.outer))?;
        keys.inner = keys
            .inner
            .min(inner.unwrap_or(f64::MAX))
            .min(self.whole_rows(relation));
        keys.outer = keys.outer.min(outer.unwrap_or(f64::MAX)).min(outer_rows);
        match (inner, outer) {
            // What an index has counted is better than what columns that may be correlated would have together.
            (Some(_), None) => keys.outer = keys.outer.min(keys.inner),
            (None, Some(_)) => keys.inner = keys.inner.min(keys.outer),
            _ => {}
        }
        Ok(keys)
    }

    /// Rows of a relation before its conditions.
    fn whole_rows(&self, relation: usize) -> f64 {
        match &self.inputs[relation] {
            Input::Table(table) => table.table_rows,
            Input::Derived(planned) => planned.rows.max(1.0),
        }
    }

    /// The table and column behind an expression.
    fn column(&self, expr: &Expr) -> Result<Option<(usize, usize)>> {
        let Some(column) = semantics::compared_column(expr) else {
            return Ok(None);
        };
        let relation = self.graph.relation_of(column)?;
        Ok(self
            .table_column(relation, column)
            .map(|position| (relation, position)))
    }

    fn table_column(&self, relation: usize, column: &Column) -> Option<usize> {
        match &self.inputs[relation] {
            Input::Table(table) => table_column(&self.graph.relations[relation], table, column),
            Input::Derived(_) => None,
        }
    }

    /// Estimated distinct values of a side of an equality, and the share of rows in which it is NULL.
    fn distinct(&self, expr: &Expr) -> Result<(f64, f64)> {
        if let Some((relation, column)) = self.column(expr)?
            && let Input::Table(table) = &self.inputs[relation]
        {
            return Ok((table.distinct(column)?, table.nulls(column)));
        }
        let relations = self.graph.relations_of(expr)?;
        let rows: f64 = relations
            .iter()
            .map(|relation| self.whole_rows(relation))
            .product();
        Ok((rows.max(1.0), 0.0))
    }

    /// Distinct values of several columns of one table together, where an index has counted them.
    fn together<'e>(&self, sides: impl Iterator<Item = &'e Expr>) -> Result<Option<f64>> {
        let mut columns = Vec::new();
        let mut relations = Vec::new();
        for side in sides {
            let Some((relation, column)) = self.column(side)? else {
                return Ok(None);
            };
            relations.push(relation);
            columns.push(column);
        }
        relations.dedup();
        match (
            relations.as_slice(),
            relations.first().map(|relation| &self.inputs[*relation]),
        ) {
            ([_], Some(Input::Table(table))) => table.distinct_together(&columns),
            _ => Ok(None),
        }
    }

    /// Share of the joined rows that pass the conditions which are not among the edge's equalities.
    fn rest_share(&self, edge: &JoinEdge, set: RelationSet, relation: usize) -> Result<f64> {
        let JoinEdge {
            equalities, ranges, ..
        } = edge;
        let bounds = ranges.iter().flat_map(|range| &range.bounds);
        let is_known = |position| {
            let mut equalities = equalities.iter();
            equalities.any(|equality| equality.origin == position)
                || bounds.clone().any(|bound| bound.origin == position)
        };
        let entry = &self.graph.relations[relation];
        let mut share: f64 = ranges.iter().map(|range| range.share).product();
        if entry.kind != RelationKind::Inner {
            for position in 0..entry.on.len() {
                if !is_known(position) {
                    share *= self.known_share(Some(relation), position)?;
                }
            }
            return Ok(share);
        }
        for (position, predicate) in self.graph.predicates.iter().enumerate() {
            let now = predicate.relations.contains(relation)
                && predicate.relations.is_subset(set.with(relation));
            if now && !is_known(position) {
                share *= self.known_share(None, position)?;
            }
        }
        Ok(share)
    }

    /// Share of the rows, of all combinations of its relations, that satisfy a predicate.
    pub(crate) fn predicate_share(&self, expr: &Expr) -> Result<f64> {
        let relations: Vec<usize> = self.graph.relations_of(expr)?.iter().collect();
        if let [relation] = relations.as_slice() {
            return self.share_in(*relation, expr);
        }
        match expr {
            Expr::Alias(alias) => self.predicate_share(&alias.expr),
            Expr::IsTrue(inner) => self.predicate_share(inner),
            Expr::Not(inner) => Ok(1.0 - self.predicate_share(inner)?),
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::And, ..
            }) => {
                let mut share = 1.0;
                for part in split_conjunction(expr) {
                    share *= self.predicate_share(part)?;
                }
                Ok(share)
            }
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::Or, ..
            }) => self.alternatives_share(expr, &relations),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (left, right) = (self.distinct(left)?, self.distinct(right)?);
                let not_null = (1.0 - left.1) * (1.0 - right.1);
                let equal = not_null / left.0.max(right.0);
                Ok(match op {
                    Operator::Eq => equal,
                    Operator::NotEq => not_null - equal,
                    _ => not_null * guess(expr),
                })
            }
            _ => Ok(guess(expr)),
        }
    }

    /// An OR over several relations. What its branches say of one relation has been pushed down to it as an OR of its
    /// own and is counted there, so it is taken out here.
    fn alternatives_share(&self, expr: &Expr, relations: &[usize]) -> Result<f64> {
        let branches = split_binary(expr, Operator::Or);
        let mut none = 1.0;
        for branch in &branches {
            none *= 1.0 - self.predicate_share(branch)?;
        }
        let mut share = 1.0 - none;
        for relation in relations {
            let own = RelationSet::one(*relation);
            let mut none_here = 1.0;
            for branch in &branches {
                let mut here = 1.0;
                for part in split_conjunction(branch) {
                    if self.graph.relations_of(part)? == own {
                        here *= self.share_in(*relation, part)?;
                    }
                }
                none_here *= 1.0 - here;
            }
            // A branch that says nothing of the relation makes this 1.
            let pushed = 1.0 - none_here;
            if pushed > 0.0 {
                share /= pushed;
            }
        }
        Ok(share.min(1.0))
    }

    /// Share of a relation's rows that satisfy a condition on it alone.
    fn share_in(&self, relation: usize, expr: &Expr) -> Result<f64> {
        let Input::Table(table) = &self.inputs[relation] else {
            return Ok(guess(expr));
        };
        let named = expr.clone().transform(|expr| match &expr {
            Expr::Column(column) => Ok(match self.table_column(relation, column) {
                Some(position) => {
                    let name = &table.table.definition.columns[position].name;
                    Transformed::yes(Expr::Column(Column::new_unqualified(name)))
                }
                None => Transformed::no(expr),
            }),
            _ => Ok(Transformed::no(expr)),
        })?;
        table.share_of_condition(&named.data)
    }
}

/// Share of the rows so far that have a match among `new_rows` rows, each of which passes the rest of the condition
/// with the chance `rest`.
fn matching_share(keys: &Keys, new_rows: f64, rest: f64) -> f64 {
    // Keys that are left on the inner side after its conditions.
    let left = distinct_pages(new_rows, keys.inner).max(1.0);
    let has_key = (left / keys.outer).min(1.0) * keys.outer_not_null;
    let rows_per_key = (new_rows / left).max(1.0);
    has_key * (1.0 - (1.0 - rest.min(1.0)).powf(rows_per_key))
}
