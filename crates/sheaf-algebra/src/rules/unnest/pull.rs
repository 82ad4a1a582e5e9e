//! Conditions that take columns of the left side, pulled up through the operators of the right side.

use std::sync::Arc;

use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{WindowFrame, WindowFunctionDefinition};

use super::Unnesting;
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::relation::{
    Filter, Group, Item, Join, JoinKind, Limit, Operator, Project, Relation, Sort, SortKey,
};
use crate::scalar::typing::WindowCall;
use crate::scalar::{Comparison, Scalar, ScalarKind};

/// A right side from which conditions with columns of the left were taken.
pub(in crate::rules) struct Pulled {
    pub(in crate::rules) relation: Relation,
    pub(in crate::rules) conditions: Vec<Scalar>,
}

impl Unnesting<'_> {
    /// Takes the conditions with columns of `outer` out of a relation; `None` if that is not all that it takes from
    /// there. What they name besides is among the columns of what is left.
    pub(super) fn pull(&mut self, relation: Relation, outer: &ColumnSet) -> Result<Option<Pulled>> {
        if !relation.free_columns().intersects(outer) {
            let conditions = Vec::new();
            return Ok(Some(Pulled {
                relation,
                conditions,
            }));
        }
        match relation.into_operator() {
            Operator::Filter(Filter { input, condition }) => {
                let Some(mut pulled) = self.pull(*input, outer)? else {
                    return Ok(None);
                };
                let (moves, stays): (Vec<_>, Vec<_>) = condition
                    .into_conjuncts()
                    .into_iter()
                    .partition(|conjunct| conjunct.columns().intersects(outer));
                if moves.iter().any(Scalar::is_volatile) {
                    return Ok(None);
                }
                pulled.conditions.extend(moves);
                if !stays.is_empty() {
                    pulled.relation = pulled.relation.filter(Scalar::and(stays));
                }
                Ok(Some(pulled))
            }
            Operator::Project(Project {
                input, mut items, ..
            }) => {
                if items
                    .iter()
                    .any(|item| item.value.columns().intersects(outer))
                {
                    return Ok(None);
                }
                let Some(mut pulled) = self.pull(*input, outer)? else {
                    return Ok(None);
                };
                for column in inner_columns(&pulled.conditions, &pulled.relation).iter() {
                    if !items.iter().any(|item| item.column == column) {
                        items.push(self.passed_on(column));
                    }
                }
                pulled.relation = pulled.relation.project(items);
                Ok(Some(pulled))
            }
            Operator::Sort(Sort { input, .. }) => self.pull(*input, outer),
            Operator::Group(group) if !group.keys.is_empty() && group.rollup.is_none() => {
                match takes(&group, outer) {
                    true => Ok(None),
                    false => self.pull_group(group, outer),
                }
            }
            Operator::Limit(limit) => self.pull_limit(limit, outer),
            Operator::Window(window) => {
                let mut takes_there = false;
                for (_, function) in &window.functions {
                    function.for_each_operand(&mut |operand| {
                        takes_there |= operand.columns().intersects(outer);
                    });
                }
                if takes_there {
                    return Ok(None);
                }
                let Some(pulled) = self.pull(*window.input, outer)? else {
                    return Ok(None);
                };
                let Some((pulled, keys)) = self.with_keys(pulled)? else {
                    return Ok(None);
                };
                let mut functions = window.functions;
                for (_, function) in &mut functions {
                    let mut partition_by = function.partition_by().to_vec();
                    partition_by.extend(keys.iter().map(|key| self.column(*key)));
                    *function = function.clone().with_partition_by(partition_by);
                }
                let relation = pulled.relation.window(functions);
                Ok(Some(Pulled { relation, ..pulled }))
            }
            Operator::Expand(mut expand) => {
                if expand.document.columns().intersects(outer) {
                    return Ok(None);
                }
                let Some(pulled) = self.pull(*expand.input, outer)? else {
                    return Ok(None);
                };
                let taken = inner_columns(&pulled.conditions, &pulled.relation);
                let kept = expand.kept.clone();
                expand
                    .kept
                    .extend(taken.iter().filter(|column| !kept.contains(column)));
                expand.input = Box::new(pulled.relation);
                let relation = expand.relation();
                Ok(Some(Pulled { relation, ..pulled }))
            }
            Operator::Join(join) => self.pull_join(join, outer),
            Operator::Scan(_)
            | Operator::Values(_)
            | Operator::Group(_)
            | Operator::DependentJoin(_)
            | Operator::Recursive(_)
            | Operator::SetOperation(_) => Ok(None),
        }
    }

    /// A group for each value of what the conditions compare with the left side.
    pub(super) fn pull_group(&mut self, group: Group, outer: &ColumnSet) -> Result<Option<Pulled>> {
        let Some(pulled) = self.pull(*group.input, outer)? else {
            return Ok(None);
        };
        let Some((pulled, keys)) = self.with_keys(pulled)? else {
            return Ok(None);
        };
        let mut by = group.keys;
        for key in keys {
            if !by.contains(&key) {
                by.push(key);
            }
        }
        let mut carried = group.carried;
        carried.retain(|column| !by.contains(column));
        let relation = pulled.relation.group(by, carried, group.aggregates);
        Ok(Some(Pulled { relation, ..pulled }))
    }

    /// The first rows for each value of what the conditions compare with the left side.
    fn pull_limit(&mut self, limit: Limit, outer: &ColumnSet) -> Result<Option<Pulled>> {
        let (input, order) = ordered_input(*limit.input);
        if order
            .iter()
            .any(|key| key.value.columns().intersects(outer))
        {
            return Ok(None);
        }
        let Some(pulled) = self.pull(input, outer)? else {
            return Ok(None);
        };
        let Some((pulled, keys)) = self.with_keys(pulled)? else {
            return Ok(None);
        };
        let keys = keys.iter().map(|key| self.column(*key)).collect();
        let (skip, fetch) = (limit.skip, limit.fetch);
        let relation = self.first_rows(pulled.relation, keys, order, skip, fetch)?;
        Ok(Some(Pulled { relation, ..pulled }))
    }

    /// Of the rows with the same keys, `fetch` behind the first `skip` of an order.
    pub(in crate::rules) fn first_rows(
        &mut self,
        relation: Relation,
        keys: Vec<Scalar>,
        order: Vec<SortKey>,
        skip: u64,
        fetch: Option<u64>,
    ) -> Result<Relation> {
        let number = self.row_number(keys, order)?;
        let field = Arc::clone(number.field());
        let id = self.columns.add_computed("number", Arc::clone(&field));
        let compared = |operator: Comparison, rows: u64| {
            let number = Scalar::column(id, Arc::clone(&field));
            let rows = Scalar::literal(ScalarValue::UInt64(Some(rows)));
            Scalar::comparison(operator, number, rows)
        };
        let mut conditions = Vec::new();
        if skip > 0 {
            conditions.push(compared(Comparison::Greater, skip));
        }
        if let Some(fetch) = fetch {
            let last = skip.saturating_add(fetch);
            conditions.push(compared(Comparison::LessOrEqual, last));
        }
        Ok(relation
            .window(vec![(id, number)])
            .filter(Scalar::and(conditions)))
    }

    fn row_number(
        &self,
        partition_by: Vec<Scalar>,
        order: Vec<SortKey>,
    ) -> Result<crate::scalar::WindowFunction> {
        let order_by: Vec<_> = order
            .into_iter()
            .map(|key| (key.value, key.descends))
            .collect();
        let frame = WindowFrame::new((!order_by.is_empty()).then_some(false));
        let function = datafusion_functions_window::row_number::row_number_udwf();
        self.typing.window(WindowCall {
            function: WindowFunctionDefinition::WindowUDF(function),
            arguments: Vec::new(),
            partition_by,
            order_by,
            frame,
            null_treatment: None,
            distinct: false,
        })
    }

    fn pull_join(&mut self, join: Join, outer: &ColumnSet) -> Result<Option<Pulled>> {
        let depends = |relation: &Relation| relation.free_columns().intersects(outer);
        let condition_depends = |join: &Join| {
            let condition = join.condition.as_ref();
            condition.is_some_and(|condition| condition.columns().intersects(outer))
        };
        if join.kind != JoinKind::Inner {
            if depends(&join.right) || condition_depends(&join) {
                return Ok(None);
            }
            let Some(mut pulled) = self.pull(*join.left, outer)? else {
                return Ok(None);
            };
            pulled.relation = pulled.relation.join(join.kind, *join.right, join.condition);
            return Ok(Some(pulled));
        }
        let (Some(left), Some(right)) = (
            self.pull(*join.left, outer)?,
            self.pull(*join.right, outer)?,
        ) else {
            return Ok(None);
        };
        let conjuncts = join.condition.map_or_else(Vec::new, Scalar::into_conjuncts);
        let (moves, stays): (Vec<_>, Vec<_>) = conjuncts
            .into_iter()
            .partition(|conjunct| conjunct.columns().intersects(outer));
        let mut conditions = left.conditions;
        conditions.extend(right.conditions);
        conditions.extend(moves);
        let condition = (!stays.is_empty()).then(|| Scalar::and(stays));
        let relation = Operator::Join(Join {
            kind: JoinKind::Inner,
            left: Box::new(left.relation),
            right: Box::new(right.relation),
            condition,
        });
        Ok(Some(Pulled {
            relation: relation.into(),
            conditions,
        }))
    }

    /// Where all conditions are equalities between something of the left side and something of the relation, the latter
    /// as columns of the relation. What a condition names besides may be of queries further out. A condition that names
    /// nothing of the relation is true of all its rows or of none, and needs no key.
    pub(super) fn with_keys(&mut self, pulled: Pulled) -> Result<Option<(Pulled, Vec<ColumnId>)>> {
        let own = pulled.relation.column_set();
        let mut keys = Vec::new();
        let mut computed = Vec::new();
        let mut conditions = Vec::new();
        for condition in pulled.conditions {
            if !condition.columns().intersects(&own) {
                conditions.push(condition);
                continue;
            }
            let ScalarKind::Comparison {
                operator: operator @ (Comparison::Equal | Comparison::NullSafeEqual),
                left,
                right,
            } = condition.kind()
            else {
                return Ok(None);
            };
            let is_outer = |scalar: &Scalar| !scalar.columns().intersects(&own);
            let is_inner = |scalar: &Scalar| scalar.columns().is_subset(&own);
            let (of_outer, of_inner) = match (left, right) {
                (left, right) if is_outer(left) && is_inner(right) => (left, right),
                (left, right) if is_inner(left) && is_outer(right) => (right, left),
                _ => return Ok(None),
            };
            let key = match of_inner.as_column() {
                Some(column) => column,
                None => {
                    let field = Arc::clone(of_inner.field());
                    let column = self.columns.add_computed("key", field);
                    computed.push(Item {
                        column,
                        value: of_inner.as_ref().clone(),
                    });
                    column
                }
            };
            let field = Arc::clone(of_inner.field());
            let key_column = Scalar::column(key, field);
            conditions.push(Scalar::comparison(
                *operator,
                of_outer.as_ref().clone(),
                key_column,
            ));
            // Two conditions may compare the same column.
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut relation = pulled.relation;
        if !computed.is_empty() {
            let passed_on = relation.columns().iter().map(|id| self.passed_on(*id));
            let items = passed_on.chain(computed).collect();
            relation = relation.project(items);
        }
        let pulled = Pulled {
            relation,
            conditions,
        };
        Ok(Some((pulled, keys)))
    }
}

/// The rows below a limit, and the order in which it takes them. A list may be above the order; then the rows have what
/// the order is by, too.
pub(in crate::rules) fn ordered_input(input: Relation) -> (Relation, Vec<SortKey>) {
    match input.into_operator() {
        Operator::Sort(Sort { input, keys }) => (*input, keys),
        Operator::Project(Project { input, items, .. }) => match input.into_operator() {
            Operator::Sort(Sort { input, keys }) if items.iter().all(Item::is_passed_on) => {
                (*input, keys)
            }
            other => (Relation::from(other).project(items), Vec::new()),
        },
        other => (other.into(), Vec::new()),
    }
}

/// A semijoin that takes something from the left side in its condition, or in its right side, as a join, from which
/// conditions can be pulled up. Rows come more often then: that is for a right side of which one row is enough.
pub(super) fn repeated(relation: Relation, outer: &ColumnSet) -> Relation {
    match relation.into_operator() {
        Operator::Filter(Filter { input, condition }) if !condition.is_volatile() => {
            repeated(*input, outer).filter(condition)
        }
        Operator::Project(mut project) if !project.has_variables() => {
            project.input = Box::new(repeated(*project.input, outer));
            Operator::Project(project).into()
        }
        Operator::Join(mut join) if matches!(join.kind, JoinKind::Inner | JoinKind::Semi) => {
            let condition = join.condition.as_ref();
            let takes = join.right.free_columns().intersects(outer)
                || condition.is_some_and(|condition| condition.columns().intersects(outer));
            if join.kind == JoinKind::Semi && takes {
                join.kind = JoinKind::Inner;
            }
            join.left = Box::new(repeated(*join.left, outer));
            if join.kind == JoinKind::Inner {
                join.right = Box::new(repeated(*join.right, outer));
            }
            Operator::Join(join).into()
        }
        operator => operator.into(),
    }
}

/// Whether aggregates are computed of columns of the left side.
pub(super) fn takes(group: &Group, outer: &ColumnSet) -> bool {
    let mut operands = group.aggregates.iter().flat_map(|(_, of)| of.operands());
    operands.any(|operand| operand.columns().intersects(outer))
}

/// Columns of a relation that conditions name. Others are of the left side, or of queries further out.
pub(super) fn inner_columns(conditions: &[Scalar], relation: &Relation) -> ColumnSet {
    let mut columns = ColumnSet::new();
    conditions
        .iter()
        .for_each(|condition| condition.add_columns(&mut columns));
    columns.intersection(&relation.column_set())
}
