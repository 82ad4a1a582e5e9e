//! Which relations a query joins, and by which conditions, in any order in which it wrote them.
//!
//! A tree of joins, filters over joins, aliases and projections of plain columns is taken apart into a [`JoinGraph`]:
//! relations (tables, derived tables) and predicates. Inner joins leave no trace but their predicates. A left, semi,
//! anti or mark join is an edge with a constraint. Its inner side is one relation, which is joined by its own condition
//! once the relations that this condition reads are there. It commutes with every other join on its preserved side. A
//! semijoin with a table on a unique key of it becomes an inner join: it can match only once.
//!
//! Every relation gets a name of its own (`r0`, `r1`, ...), which qualifies its columns in all expressions of the
//! graph. So columns of two references to one table stay apart, and no alias or projection between them matters.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{
    Column, DFSchema, Dependency, NullEquality, Result, TableReference, internal_err, not_impl_err,
};
use datafusion_expr::utils::split_conjunction_owned;
use datafusion_expr::{BinaryExpr, Expr, Join, JoinType, LogicalPlan, Operator, TableScan};
use sheaf_exec::SheafTableSource;
use sheaf_exec::group_keys::has_doubtful_keys;

use crate::hints::{may_be_semijoin, stays_derived};
use crate::logical::inequality;
use crate::logical::semantics;
use crate::settings::OptimizerSwitch;

/// Relations of one graph, at most: the bits of a [`RelationSet`].
pub(crate) const MAX_RELATIONS: usize = 64;

/// A set of relations by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct RelationSet(u64);

impl RelationSet {
    pub(crate) fn one(relation: usize) -> RelationSet {
        RelationSet(1 << relation)
    }

    pub(crate) fn with(self, relation: usize) -> RelationSet {
        RelationSet(self.0 | 1 << relation)
    }

    pub(crate) fn union(self, other: RelationSet) -> RelationSet {
        RelationSet(self.0 | other.0)
    }

    pub(crate) fn contains(self, relation: usize) -> bool {
        self.0 & 1 << relation != 0
    }

    pub(crate) fn is_subset(self, other: RelationSet) -> bool {
        self.0 & !other.0 == 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> RelationSet {
        RelationSet(bits)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_RELATIONS).filter(move |relation| self.contains(*relation))
    }
}

/// How a relation is joined to the ones before it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RelationKind {
    Inner,
    /// Rows of the others are kept; this relation's columns are NULL where nothing matches.
    Outer,
    /// Rows of the others that have a match.
    Semi,
    /// Rows of the others that have none.
    Anti {
        null_aware: bool,
    },
    /// Rows of the others, with a column that says whether they have a match.
    Mark,
}

/// One relation of a graph.
pub(crate) struct Relation<'p> {
    pub plan: &'p LogicalPlan,
    pub kind: RelationKind,
    /// The condition by which a relation that is not Inner is joined; empty for Inner.
    pub on: Vec<Predicate>,
    /// Relations that must be joined before.
    pub needs: RelationSet,
    /// Names of its columns in the graph, by position in the plan's schema.
    pub columns: Vec<Column>,
    /// The name of a Mark's column.
    pub mark: Option<Column>,
    /// Estimated bytes of its rows.
    pub row_bytes: f64,
}

/// A condition between relations (or on one that could not be pushed into it).
#[derive(Debug, Clone)]
pub(crate) struct Predicate {
    pub expr: Expr,
    pub relations: RelationSet,
    /// For `left = right` and `left <=> right`, the relations of each side.
    pub sides: Option<(RelationSet, RelationSet)>,
    /// The same for `left < right` and the like.
    pub inequality_sides: Option<(RelationSet, RelationSet)>,
    /// It is `left <=> right`: NULL equals NULL. That is a matter of each pair of keys, also where a join has several.
    pub null_equals_null: bool,
}

/// A string in an Arrow array, on average: its view, what does not fit in it, and what buffers have to spare.
const STRING_BYTES: f64 = 48.0;

/// Estimated bytes of a plan's rows.
fn row_bytes(plan: &LogicalPlan) -> f64 {
    let widths = plan.schema().fields().iter().map(|field| {
        let width = field.data_type().primitive_width();
        width.map_or(STRING_BYTES, |width| width as f64)
    });
    widths.sum()
}

/// The relations and predicates of a tree of joins.
pub(crate) struct JoinGraph<'p> {
    pub relations: Vec<Relation<'p>>,
    pub predicates: Vec<Predicate>,
    /// The columns of the tree's root, by position.
    pub output: Vec<Column>,
    switch: &'p OptimizerSwitch,
}

/// Whether `plan` is the root of a tree of joins: a join that can be taken apart, or filters, aliases and column
/// projections above one.
pub(crate) fn is_join_tree(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(_) => true,
        LogicalPlan::Filter(filter) => is_join_tree(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => !stays_derived(alias) && is_join_tree(&alias.input),
        LogicalPlan::Projection(projection) => {
            projection
                .expr
                .iter()
                .all(|expr| plain_column(expr).is_some())
                && is_join_tree(&projection.input)
        }
        _ => false,
    }
}

/// The column that a projection passes on, under whatever name.
pub(crate) fn plain_column(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => plain_column(&alias.expr),
        _ => None,
    }
}

/// The scan under aliases and projections of plain columns, and which of the scan's columns come out.
pub(crate) fn plain_scan(plan: &LogicalPlan) -> Option<(&TableScan, Vec<usize>)> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            Some((scan, (0..scan.projected_schema.fields().len()).collect()))
        }
        LogicalPlan::SubqueryAlias(alias) if !stays_derived(alias) => plain_scan(&alias.input),
        LogicalPlan::Projection(projection) => {
            let (scan, columns) = plain_scan(&projection.input)?;
            let column = |expr: &Expr| {
                let column = plain_column(expr)?;
                let position = projection.input.schema().index_of_column(column).ok()?;
                Some(columns[position])
            };
            let columns = projection.expr.iter().map(column);
            Some((scan, columns.collect::<Option<Vec<_>>>()?))
        }
        _ => None,
    }
}

impl<'p> JoinGraph<'p> {
    /// Takes a tree of joins apart.
    pub(crate) fn new(plan: &'p LogicalPlan, switch: &'p OptimizerSwitch) -> Result<JoinGraph<'p>> {
        let mut graph = JoinGraph {
            relations: Vec::new(),
            predicates: Vec::new(),
            output: Vec::new(),
            switch,
        };
        graph.output = graph.flatten(plan)?;
        Ok(graph)
    }

    /// Adds what is below `plan`; returns the graph's names of its columns.
    fn flatten(&mut self, plan: &'p LogicalPlan) -> Result<Vec<Column>> {
        match plan {
            LogicalPlan::Join(join) => self.flatten_join(join),
            LogicalPlan::Filter(filter) if is_join_tree(&filter.input) => {
                let scope = self.flatten(&filter.input)?;
                self.add_predicate(&filter.predicate, filter.input.schema(), &scope)?;
                Ok(scope)
            }
            LogicalPlan::SubqueryAlias(alias) if is_join_tree(plan) => self.flatten(&alias.input),
            LogicalPlan::Projection(projection) if is_join_tree(plan) => {
                let scope = self.flatten(&projection.input)?;
                let schema = projection.input.schema();
                let position = |expr| match plain_column(expr) {
                    Some(column) => schema.index_of_column(column),
                    None => internal_err!("a projection of plain columns"),
                };
                projection
                    .expr
                    .iter()
                    .map(|expr| Ok(scope[position(expr)?].clone()))
                    .collect()
            }
            leaf => {
                let relation = self.add_relation(leaf, RelationKind::Inner)?;
                Ok(self.relations[relation].columns.clone())
            }
        }
    }

    fn flatten_join(&mut self, join: &'p Join) -> Result<Vec<Column>> {
        let Join {
            left,
            right,
            on,
            filter,
            join_type,
            null_equality,
            null_aware,
            ..
        } = join;
        // A key may have become a constant meanwhile. Then there is nothing to look up, and the join is one by a
        // condition, which says itself what NULL is.
        let is_constant = |key: &Expr| key.column_refs().is_empty();
        let has_constant = on.iter().any(|(a, b)| is_constant(a) || is_constant(b));
        let finds_nulls = *null_aware && has_constant;
        let null_aware = *null_aware && !has_constant;
        // (preserved side, other side, how the other is joined, whether the preserved side is the left one)
        let (outer, inner, kind, outer_is_left) = match join_type {
            JoinType::Inner => return self.flatten_inner(join),
            JoinType::Left => (left, right, RelationKind::Outer, true),
            JoinType::Right => (right, left, RelationKind::Outer, false),
            JoinType::LeftSemi => (left, right, RelationKind::Semi, true),
            JoinType::RightSemi => (right, left, RelationKind::Semi, false),
            JoinType::LeftAnti => (left, right, RelationKind::Anti { null_aware }, true),
            JoinType::RightAnti => (right, left, RelationKind::Anti { null_aware }, false),
            JoinType::LeftMark => (left, right, RelationKind::Mark, true),
            JoinType::RightMark => (right, left, RelationKind::Mark, false),
            JoinType::Full => return not_impl_err!("FULL JOIN"),
        };
        let outer_scope = self.flatten(outer)?;
        let relation = self.add_relation(inner, kind.clone())?;
        let inner_scope = self.relations[relation].columns.clone();
        let mut condition = Vec::new();
        for (left_key, right_key) in on {
            let (outer_key, inner_key) = if outer_is_left {
                (left_key, right_key)
            } else {
                (right_key, left_key)
            };
            let outer_key = rename(outer_key, outer.schema(), &outer_scope)?;
            let inner_key = rename(inner_key, inner.schema(), &inner_scope)?;
            condition.push(match finds_nulls {
                true => {
                    let nulls = outer_key.clone().is_null().or(inner_key.clone().is_null());
                    key_condition(outer_key, inner_key, *null_equality).or(nulls)
                }
                false => key_condition(outer_key, inner_key, *null_equality),
            });
        }
        if let Some(filter) = filter {
            let schema = outer.schema().join(inner.schema())?;
            let scope: Vec<Column> = outer_scope.iter().chain(&inner_scope).cloned().collect();
            condition.extend(split_conjunction_owned(rename(filter, &schema, &scope)?));
        }
        if kind == RelationKind::Semi
            && self.matches_once(relation, &condition)
            && may_be_semijoin(inner, self.switch)?
        {
            // Then it is an inner join whose columns are not read, and may come in any order.
            self.relations[relation].kind = RelationKind::Inner;
            self.predicates.extend(self.as_predicates(condition)?);
            return Ok(outer_scope);
        }
        let condition = self.as_predicates(condition)?;
        let needs = condition.iter().map(|predicate| predicate.relations);
        let needs = needs.fold(RelationSet::default(), RelationSet::union);
        let needs = RelationSet(needs.0 & !RelationSet::one(relation).0);
        let needs = if needs.is_empty() {
            RelationSet::one(0)
        } else {
            needs
        };
        let entry = &mut self.relations[relation];
        entry.on = condition;
        entry.needs = needs;
        let scope = match kind {
            RelationKind::Inner => return internal_err!("an inner join has no preserved side"),
            RelationKind::Outer if outer_is_left => {
                outer_scope.into_iter().chain(inner_scope).collect()
            }
            RelationKind::Outer => inner_scope.into_iter().chain(outer_scope).collect(),
            RelationKind::Semi | RelationKind::Anti { .. } => outer_scope,
            RelationKind::Mark => {
                let mark = Column::new(Some(TableReference::bare(format!("r{relation}"))), MARK);
                entry.mark = Some(mark.clone());
                outer_scope.into_iter().chain([mark]).collect()
            }
        };
        Ok(scope)
    }

    /// Whether `condition` equates all columns of a unique key of the relation with values of others: then no row of
    /// the others matches more than one of it.
    fn matches_once(&self, relation: usize, condition: &[Expr]) -> bool {
        let relation = &self.relations[relation];
        let Some((scan, columns)) = plain_scan(relation.plan) else {
            return derived_matches_once(relation, condition);
        };
        let Some(source) = scan.source.downcast_ref::<SheafTableSource>() else {
            return false;
        };
        let definition = &source.table.definition;
        let own_column = |column: &Column| {
            let position = relation.columns.iter().position(|own| own == column)?;
            let name = scan.projected_schema.field(columns[position]).name();
            definition.position_in_plan(name)
        };
        let bound_column = |expr: &Expr| {
            let Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Eq,
                right,
            }) = expr
            else {
                return None;
            };
            let reads_own = |side: &Expr| {
                let mut columns = side.column_refs().into_iter();
                columns.any(|column| relation.columns.contains(column))
            };
            let inner = match (reads_own(left), reads_own(right)) {
                (true, false) => left,
                (false, true) => right,
                _ => return None,
            };
            let column = own_column(
                semantics::key_argument(inner)
                    .unwrap_or(inner)
                    .try_as_col()?,
            )?;
            let collation = semantics::collation_of_key(inner);
            (definition.columns[column].ty.collation() == collation).then_some(column)
        };
        let bound: Vec<usize> = condition.iter().filter_map(bound_column).collect();
        let mut keys = std::iter::once(&definition.primary).chain(&definition.secondary);
        keys.any(|key| {
            (key.unique || key.primary)
                && !key.parts.is_empty()
                && key
                    .parts
                    .iter()
                    .all(|part| part.prefix_length.is_none() && bound.contains(&part.column))
        })
    }

    fn flatten_inner(&mut self, join: &'p Join) -> Result<Vec<Column>> {
        let left = self.flatten(&join.left)?;
        let right = self.flatten(&join.right)?;
        for (left_key, right_key) in &join.on {
            let left_key = rename(left_key, join.left.schema(), &left)?;
            let right_key = rename(right_key, join.right.schema(), &right)?;
            let expr = key_condition(left_key, right_key, join.null_equality);
            let predicate = self.as_predicate(expr)?;
            self.predicates.push(predicate);
        }
        let scope: Vec<Column> = left.into_iter().chain(right).collect();
        if let Some(filter) = &join.filter {
            let schema = join.left.schema().join(join.right.schema())?;
            self.add_predicate(filter, &schema, &scope)?;
        }
        Ok(scope)
    }

    fn add_predicate(&mut self, expr: &Expr, schema: &DFSchema, scope: &[Column]) -> Result<()> {
        let parts = split_conjunction_owned(rename(expr, schema, scope)?);
        self.predicates.extend(self.as_predicates(parts)?);
        Ok(())
    }

    fn as_predicates(&self, exprs: Vec<Expr>) -> Result<Vec<Predicate>> {
        let predicates = exprs.into_iter().map(|expr| self.as_predicate(expr));
        predicates.collect()
    }

    fn as_predicate(&self, expr: Expr) -> Result<Predicate> {
        let mut sides = None;
        let mut inequality_sides = None;
        let mut null_equals_null = false;
        if let Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::Eq | Operator::IsNotDistinctFrom),
            right,
        }) = &expr
        {
            sides = Some((self.relations_of(left)?, self.relations_of(right)?));
            null_equals_null = *op == Operator::IsNotDistinctFrom;
        }
        if let Some((left, _, right)) = inequality::sides(&expr)
            && !expr.is_volatile()
        {
            inequality_sides = Some((self.relations_of(left)?, self.relations_of(right)?));
        }
        Ok(Predicate {
            relations: self.relations_of(&expr)?,
            expr,
            sides,
            inequality_sides,
            null_equals_null,
        })
    }

    fn add_relation(&mut self, plan: &'p LogicalPlan, kind: RelationKind) -> Result<usize> {
        let number = self.relations.len();
        if number == MAX_RELATIONS {
            return not_impl_err!("a join of more than {MAX_RELATIONS} tables");
        }
        // (qualifier, name) is unique in a schema; the relation's name replaces or extends the qualifier.
        let columns = plan.schema().iter().map(|(qualifier, field)| {
            let relation = match qualifier {
                Some(qualifier) => format!("r{number}.{qualifier}"),
                None => format!("r{number}"),
            };
            Column::new(Some(TableReference::bare(relation)), field.name())
        });
        self.relations.push(Relation {
            plan,
            kind,
            on: Vec::new(),
            needs: RelationSet::default(),
            columns: columns.collect(),
            mark: None,
            row_bytes: row_bytes(plan),
        });
        Ok(number)
    }

    /// The relation that a column of the graph belongs to.
    pub(crate) fn relation_of(&self, column: &Column) -> Result<usize> {
        let found = self.relations.iter().position(|relation| {
            relation.columns.contains(column) || relation.mark.as_ref() == Some(column)
        });
        match found {
            Some(relation) => Ok(relation),
            None => internal_err!("column {column} belongs to no relation"),
        }
    }

    /// The relations whose columns `expr` reads.
    pub(crate) fn relations_of(&self, expr: &Expr) -> Result<RelationSet> {
        let mut set = RelationSet::default();
        for column in expr.column_refs() {
            set = set.with(self.relation_of(column)?);
        }
        Ok(set)
    }
}

/// The same for a relation that is no table: what a grouping groups by is a unique key of it, and a key of a table
/// may stay one above it.
fn derived_matches_once(relation: &Relation<'_>, condition: &[Expr]) -> bool {
    let position = |expr: &Expr| {
        let column = expr.try_as_col()?;
        relation.columns.iter().position(|own| own == column)
    };
    let is_other = |expr: &Expr| {
        let mut columns = expr.column_refs().into_iter();
        columns.all(|column| !relation.columns.contains(column))
    };
    let bound_column = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) => match (position(left), position(right)) {
            (Some(own), None) if is_other(right) => Some(own),
            (None, Some(own)) if is_other(left) => Some(own),
            _ => None,
        },
        _ => None,
    };
    let bound: Vec<usize> = condition.iter().filter_map(bound_column).collect();
    let dependencies = relation.plan.schema().functional_dependencies();
    let is_unique = dependencies.iter().any(|dependency| {
        let mut key = dependency.source_indices.iter();
        dependency.mode == Dependency::Single && key.all(|column| bound.contains(column))
    });
    is_unique && !has_doubtful_keys(relation.plan)
}

/// The name of the column that a mark join adds.
const MARK: &str = "mark";

/// What a pair of a join's keys must satisfy.
fn key_condition(left: Expr, right: Expr, null_equality: NullEquality) -> Expr {
    let op = match null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// `expr` over `schema` with each column under its name in the graph.
fn rename(expr: &Expr, schema: &DFSchema, scope: &[Column]) -> Result<Expr> {
    let renamed = expr.clone().transform(|expr| match &expr {
        Expr::Column(column) => {
            let position = schema.index_of_column(column)?;
            Ok(Transformed::yes(Expr::Column(scope[position].clone())))
        }
        _ => Ok(Transformed::no(expr)),
    })?;
    Ok(renamed.data)
}

/// The schema of a plan's output under names of the graph.
pub(crate) fn graph_schema(
    layout: &[Column],
    fields: &arrow::datatypes::Fields,
) -> Result<DFSchema> {
    let fields = layout
        .iter()
        .zip(fields)
        .map(|(column, field)| (column.relation.clone(), Arc::clone(field)));
    DFSchema::new_with_metadata(fields.collect(), Default::default())
}
