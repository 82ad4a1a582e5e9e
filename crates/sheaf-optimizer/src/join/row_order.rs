//! In which order the rows of a join come, as far as the lookups after it gain by it.
//!
//! Keys in the order of the tree that they are looked up in lead to each of its pages once, and to neighbours together.
//! Keys in another order lead all over the tree, once for each buffer-full of them:
//!
//! ```text
//!   orders, hash join with customer    -> lineitem.PRIMARY by o_orderkey: from one end to the other
//!   customer, hash join with orders    -> lineitem.PRIMARY by o_orderkey: all over
//! ```
//!
//! Rows come in the order of the relation that they stream from. That is the first one, until a hash join or nested
//! loops keep the rows so far in memory and stream those of the new relation. A keyed join sorts a buffer-full of keys
//! at a time, and the keyed join after it does so again. So it disturbs no order that reaches further than that.

use datafusion_common::{Column, Result};
use datafusion_expr::Expr;
use sheaf_access::{Fetch, IndexRef};

use crate::access::keyed_access::{KeySource, LookupPath, outer_value};
use crate::access::path::AccessPath;
use crate::access::table_reference::TableReference;
use crate::access::table_reference::table_column;
use crate::cost::keyed_join::KeyOrder;
use crate::estimate::statistics::{layout, tree};
use crate::join::edge::JoinEdge;
use crate::join::method::Method;
use crate::join::order::{Chooser, Input, Step};
use crate::logical::join_graph::RelationSet;

/// The order in which rows come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowOrder {
    /// The relation that they stream from.
    pub relation: usize,
    key: OrderKey,
    /// They are so many runs, each of them in order.
    runs: f64,
}

/// By what rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
enum OrderKey {
    /// The clustered key of the relation.
    Clustered,
    /// This column of it.
    Column(usize),
}

/// Shares of an order (the square of the correlation) below which no plan is kept for its sake.
const LEAST_ORDER: f64 = 0.1;

impl RowOrder {
    /// The order of what `path` delivers; `None` if there is none to speak of.
    fn of_path(table: &TableReference<'_>, relation: usize, path: &AccessPath) -> Option<RowOrder> {
        let order = |key, runs: f64| {
            Some(RowOrder {
                relation,
                key,
                runs: runs.ceil().max(1.0),
            })
        };
        if path.index == IndexRef::Clustered {
            return order(OrderKey::Clustered, 1.0);
        }
        if let Fetch::MultiRange { buffer_bytes, .. } = path.fetch {
            let turns = path.lookups / table.keys_per_turn(buffer_bytes);
            return order(OrderKey::Clustered, turns);
        }
        if path.merge.is_some() {
            return None;
        }
        let declared = path.index.definition(table.table).parts.len();
        if path.ranges.equal_parts >= declared {
            return order(OrderKey::Clustered, path.ranges.ranges.len() as f64);
        }
        let parts = &layout(table.table, path.index).parts;
        let column = parts.get(path.ranges.constant_parts)?.column?;
        order(OrderKey::Column(column), 1.0)
    }

    /// How well values of `column` of its relation, `table`, are in order.
    fn correlation(&self, table: &TableReference<'_>, column: usize) -> f64 {
        match self.key {
            OrderKey::Clustered => {
                let first = table.table.clustered_layout.parts.first();
                match first.is_some_and(|part| part.column == Some(column)) {
                    true => 1.0,
                    false => table.correlation(column),
                }
            }
            OrderKey::Column(by) => f64::from(u8::from(by == column)),
        }
    }
}

impl Chooser<'_, '_> {
    /// The order of a relation that is read by itself.
    pub(crate) fn order_of(&self, relation: usize) -> Result<Option<RowOrder>> {
        Ok(match &self.inputs[relation] {
            Input::Table(table) => {
                let scan = table.chosen_scan(self.context)?;
                RowOrder::of_path(table, relation, &scan.path)
            }
            Input::Derived(_) => None,
        })
    }

    /// The same for a path of its own.
    pub(crate) fn order_of_path(&self, relation: usize, path: &AccessPath) -> Option<RowOrder> {
        match &self.inputs[relation] {
            Input::Table(table) => RowOrder::of_path(table, relation, path),
            Input::Derived(_) => None,
        }
    }

    /// The order after `relation` is joined to rows that come in `before`.
    pub(crate) fn joined_order(
        &self,
        before: Option<RowOrder>,
        method: &Method,
        relation: usize,
    ) -> Result<Option<RowOrder>> {
        Ok(match method {
            Method::First | Method::Keyed(_) => before,
            Method::Hash { build_new: true } | Method::NestedLoop { build_new: true } => before,
            Method::Hash { build_new: false } | Method::NestedLoop { build_new: false } => {
                self.order_of(relation)?
            }
            Method::Merge => None,
        })
    }

    /// In which order rows that come in `order` give the keys of a lookup.
    pub(crate) fn key_order(
        &self,
        order: Option<RowOrder>,
        edge: &JoinEdge,
        path: &LookupPath,
    ) -> KeyOrder {
        let first = path.key.iter().find_map(|source| match source {
            KeySource::Join(equality) => Some(&edge.equalities[*equality].outer),
            KeySource::Constant(_) => None,
        });
        let first = first.or(path.bounds.first().map(|bound| &bound.outer));
        let first = first.map(outer_value);
        let (Some(order), Some(Expr::Column(column))) = (order, first) else {
            return KeyOrder::NONE;
        };
        let Input::Table(table) = &self.inputs[order.relation] else {
            return KeyOrder::NONE;
        };
        match self.column_of(order.relation, table, column) {
            Some(column) => KeyOrder {
                correlation: order.correlation(table, column),
                runs: order.runs,
            },
            None => KeyOrder::NONE,
        }
    }

    /// The column of a table that has the values of `column`: itself, or one that an equality makes equal.
    fn column_of(
        &self,
        relation: usize,
        table: &TableReference<'_>,
        column: &Column,
    ) -> Option<usize> {
        let entry = &self.graph.relations[relation];
        if let Some(own) = table_column(entry, table, column) {
            return Some(own);
        }
        let predicates = self.graph.predicates.iter();
        let mut equal = predicates.filter(|predicate| predicate.sides.is_some());
        equal.find_map(|predicate| {
            let Expr::BinaryExpr(equality) = &predicate.expr else {
                return None;
            };
            match (equality.left.as_ref(), equality.right.as_ref()) {
                (Expr::Column(left), Expr::Column(right)) if left == column => {
                    table_column(entry, table, right)
                }
                (Expr::Column(left), Expr::Column(right)) if right == column => {
                    table_column(entry, table, left)
                }
                _ => None,
            }
        })
    }

    /// Whether a tree of the relations does not fit in its pool: orders matter to its lookups.
    pub(crate) fn has_large_trees(&self) -> bool {
        self.inputs.iter().any(|input| match input {
            Input::Table(table) => is_large(table, IndexRef::Clustered),
            Input::Derived(_) => false,
        })
    }

    /// Whether the order of `step`, the last one of `set`, is worth a plan of its own: lookups in large trees that are
    /// still to come gain by it.
    pub(crate) fn serves_later(&self, set: RelationSet, step: &Step) -> Result<bool> {
        if step.order.is_none() {
            return Ok(false);
        }
        for (relation, input) in self.inputs.iter().enumerate() {
            let Input::Table(table) = input else {
                continue;
            };
            if set.contains(relation) {
                continue;
            }
            let edge = self.edge(set, relation)?;
            let gains = |path: &LookupPath| {
                let order = self.key_order(step.order, &edge, path);
                is_large(table, path.index) && order.correlation.powi(2) >= LEAST_ORDER
            };
            if edge.lookups.iter().any(|path| gains(path)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_large(table: &TableReference<'_>, index: IndexRef) -> bool {
    let tree = tree(table.table, index);
    tree.statistics().leaf_pages as f64 > tree.pool_pages() as f64
}
