//! What joins a relation to others: the equalities and inequalities between them, and what follows from these alone.
//!
//! The search for a join order asks for every relation how it joins every set of others, but a relation is connected to
//! most of these sets by the same few equalities:
//!
//! ```text
//!   customer -- orders -- lineitem -- part        {orders}, {orders, lineitem} and {orders, lineitem, part}
//!                                                 are joined to customer by one equality
//! ```
//!
//! So which indexes can be looked up and how many keys the sides have is worked out once for each choice of equalities.
//! A step of the search is left with what depends on the rows so far.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::{BinaryExpr, Expr};
use sheaf_access::arrow_type;

use crate::access::keyed_access::{LookedUp, LookupPath, RangeShare, bounded_column, lookup_paths};
use crate::access::table_reference::TableReference;
use crate::join::order::{Chooser, Input};
use crate::join::rows::Keys;
use crate::logical::equality::Equality;
use crate::logical::inequality::{self, Inequality};
use crate::logical::join_graph::{JoinGraph, Predicate, RelationKind, RelationSet};

/// Where an equality has the expression over the relations so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JoiningSide {
    OuterIsLeft,
    OuterIsRight,
}

/// The equalities of an edge: where they stand in the list they came from, and which way round they are.
type Connecting = Vec<(usize, JoiningSide)>;

/// The relation, the equalities that join it, and the inequalities.
type ConnectionKey = (usize, Connecting, Connecting);

/// See the module's comment.
pub(crate) struct JoinEdge {
    pub equalities: Vec<Equality>,
    /// What some inequalities leave of the relation together.
    pub ranges: Vec<RangeShare>,
    /// Lookups that all of them allow into the relation.
    pub lookups: Vec<Rc<LookupPath>>,
    /// A row so far has one match at most, because the equalities bind a unique key.
    pub is_unique: bool,
    pub keys: Keys,
}

/// What a search for a join order has found out.
#[derive(Default)]
pub(crate) struct JoinEdges {
    edges: RefCell<BTreeMap<ConnectionKey, Rc<JoinEdge>>>,
    /// Shares of rows that pass a predicate: of a relation's own condition, or of the graph, by position.
    predicate_shares: RefCell<BTreeMap<(Option<usize>, usize), f64>>,
}

impl Chooser<'_, '_> {
    /// What connects `relation` to `set`.
    pub(crate) fn edge(&self, set: RelationSet, relation: usize) -> Result<Rc<JoinEdge>> {
        let key = (
            relation,
            connecting(self.graph, set, relation, |predicate| predicate.sides),
            connecting(self.graph, set, relation, |predicate| {
                predicate.inequality_sides
            }),
        );
        if let Some(known) = self.known.edges.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let equalities = as_equalities(self.graph, relation, &key.1);
        let entry = &self.graph.relations[relation];
        let can_look_up = !matches!(entry.kind, RelationKind::Anti { null_aware: true });
        let (mut lookups, mut ranges) = (Vec::new(), Vec::new());
        if let Input::Table(table) = &self.inputs[relation]
            && can_look_up
        {
            let inequalities = as_inequalities(self.graph, relation, &key.2);
            ranges = self.range_shares(table, relation, inequalities)?;
            let looked_up = LookedUp {
                equalities: &equalities,
                ranges: &ranges,
            };
            lookups = lookup_paths(table, entry, looked_up, self.schema, self.context)?;
        }
        let is_unique = match &self.inputs[relation] {
            Input::Table(table) => lookups.iter().any(|lookup| lookup.is_unique(table)),
            Input::Derived(_) => false,
        };
        let edge = Rc::new(JoinEdge {
            is_unique,
            keys: self.keys(&equalities, relation)?,
            lookups: lookups.into_iter().map(Rc::new).collect(),
            equalities,
            ranges,
        });
        let mut edges = self.known.edges.borrow_mut();
        edges.insert(key, Rc::clone(&edge));
        Ok(edge)
    }

    /// What inequalities leave of a table, those of one column together.
    fn range_shares(
        &self,
        table: &TableReference<'_>,
        relation: usize,
        inequalities: Vec<Inequality>,
    ) -> Result<Vec<RangeShare>> {
        let entry = &self.graph.relations[relation];
        let own = (entry.kind != RelationKind::Inner).then_some(relation);
        let mut ranges: Vec<RangeShare> = Vec::new();
        for bound in inequalities {
            let Some(column) = bounded_column(table, entry, &bound, self.schema)? else {
                continue;
            };
            let share = self.known_share(own, bound.origin)?;
            match ranges.iter_mut().find(|range| range.column == column) {
                Some(range) => {
                    range.share *= share;
                    range.bounds.push(bound);
                }
                None => ranges.push(RangeShare {
                    column,
                    bounds: vec![bound],
                    share,
                }),
            }
        }
        for range in &mut ranges {
            let data_type = arrow_type(&table.table.definition.columns[range.column].ty);
            let has_steps = data_type.is_integer() || data_type == DataType::Date32;
            if has_steps && let Some(values) = range.most_values() {
                range.share = range.share.min(values / table.distinct(range.column)?);
            }
        }
        Ok(ranges)
    }

    /// Share of the rows, of all combinations of its relations, that satisfy the predicate at `position` of a
    /// relation's own condition, or of the graph's.
    pub(crate) fn known_share(&self, relation: Option<usize>, position: usize) -> Result<f64> {
        let key = (relation, position);
        if let Some(known) = self.known.predicate_shares.borrow().get(&key) {
            return Ok(*known);
        }
        let predicates = match relation {
            Some(relation) => &self.graph.relations[relation].on,
            None => &self.graph.predicates,
        };
        let share = self.predicate_share(&predicates[position].expr)?;
        let mut shares = self.known.predicate_shares.borrow_mut();
        shares.insert(key, share);
        Ok(share)
    }
}

/// The conditions that join a relation: its own, or for an inner relation the predicates.
fn conditions<'g>(graph: &'g JoinGraph<'_>, relation: usize) -> &'g [Predicate] {
    let entry = &graph.relations[relation];
    match entry.kind {
        RelationKind::Inner => &graph.predicates,
        _ => &entry.on,
    }
}

/// Which side of a comparison is over `set`, if the other one is over `relation`.
fn joining_side(
    (left, right): (RelationSet, RelationSet),
    set: RelationSet,
    relation: usize,
) -> Option<JoiningSide> {
    let new = RelationSet::one(relation);
    let joins = |outer: RelationSet, inner: RelationSet| {
        inner == new && !outer.is_empty() && outer.is_subset(set)
    };
    if joins(left, right) {
        Some(JoiningSide::OuterIsLeft)
    } else {
        joins(right, left).then_some(JoiningSide::OuterIsRight)
    }
}

/// Whether an equality joins `relation` to `set`.
pub(crate) fn is_connected(graph: &JoinGraph<'_>, set: RelationSet, relation: usize) -> bool {
    let mut conditions = conditions(graph, relation).iter();
    conditions.any(|predicate| {
        let sides = predicate.sides;
        sides.is_some_and(|sides| joining_side(sides, set, relation).is_some())
    })
}

/// The comparisons of one kind that join `relation` to `set`, by position.
fn connecting(
    graph: &JoinGraph<'_>,
    set: RelationSet,
    relation: usize,
    sides: impl Fn(&Predicate) -> Option<(RelationSet, RelationSet)>,
) -> Connecting {
    let conditions = conditions(graph, relation).iter().enumerate();
    conditions
        .filter_map(|(origin, predicate)| {
            Some((origin, joining_side(sides(predicate)?, set, relation)?))
        })
        .collect()
}

fn as_inequalities(
    graph: &JoinGraph<'_>,
    relation: usize,
    connecting: &Connecting,
) -> Vec<Inequality> {
    let conditions = conditions(graph, relation);
    let found = connecting.iter().filter_map(|(origin, side)| {
        let (left, operator, right) = inequality::sides(&conditions[*origin].expr)?;
        let (inner, operator, outer) = match side {
            JoiningSide::OuterIsLeft => (right, operator.swap()?, left),
            JoiningSide::OuterIsRight => (left, operator, right),
        };
        Some(Inequality {
            origin: *origin,
            inner: inner.clone(),
            operator,
            outer: outer.clone(),
        })
    });
    found.collect()
}

fn as_equalities(graph: &JoinGraph<'_>, relation: usize, connecting: &Connecting) -> Vec<Equality> {
    let conditions = conditions(graph, relation);
    let found = connecting.iter().filter_map(|(origin, side)| {
        let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = &conditions[*origin].expr else {
            return None;
        };
        let (outer, inner) = match side {
            JoiningSide::OuterIsLeft => (left, right),
            JoiningSide::OuterIsRight => (right, left),
        };
        Some(Equality {
            origin: *origin,
            outer: outer.as_ref().clone(),
            inner: inner.as_ref().clone(),
            null_equals_null: conditions[*origin].null_equals_null,
        })
    });
    found.collect()
}

/// The equalities that join `relation` to `set`: from its own condition, or for an inner relation from the predicates.
pub(crate) fn equalities(
    graph: &JoinGraph<'_>,
    set: RelationSet,
    relation: usize,
) -> Vec<Equality> {
    let connecting = connecting(graph, set, relation, |predicate| predicate.sides);
    as_equalities(graph, relation, &connecting)
}
