//! Whether the columns that operators read are there, with the declared types and nullability.
//!
//! Expressions of a physical plan name columns by position. A rule that moves an operator and forgets a position gives
//! wrong rows without an error. So each operator is compared with the schemas of its inputs. A column that it names has
//! the name and the type that are there. What may be NULL in an input is declared so in the output.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{JoinSide, JoinType, Result};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{LexOrdering, Partitioning, PhysicalExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::utils::JoinFilter;
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExec, JoinOn, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use sheaf_exec::keyed_join::exec::{KeyedJoinExec, KeyedJoinType};
use sheaf_exec::operator::expand_exec::ExpandExec;
use sheaf_exec::operator::first_rows_exec::sort_of;
use sheaf_exec::operator::regret_exec::RegretExec;

use sheaf_access::clustered_key_field;
use sheaf_exec::operator::grace_join::GraceJoinExec;
use sheaf_exec::operator::late_columns_exec::LateColumnsExec;

use super::contradiction;

pub(super) fn check(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let operator = Operator {
        plan,
        schema: plan.schema(),
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return operator.projection(projection);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return operator.filter(filter);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return operator.aggregate(aggregate);
    }
    if let Some(join) = plan.downcast_ref::<KeyedJoinExec>() {
        return operator.keyed_join(join);
    }
    if let Some(expand) = plan.downcast_ref::<ExpandExec>() {
        return operator.expand(expand);
    }
    if let Some(late) = plan.downcast_ref::<LateColumnsExec>() {
        return operator.late_columns(late);
    }
    if let Some(join) = Join::of(plan) {
        return operator.join(&join);
    }
    if let Some(sort) = sort_of(plan) {
        operator.order(sort.expr(), &sort.input().schema())?;
    } else if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        operator.order(merge.expr(), &merge.input().schema())?;
    } else if let Some(exchange) = plan.downcast_ref::<RepartitionExec>()
        && let Partitioning::Hash(keys, _) = exchange.partitioning()
    {
        let input = exchange.input().schema();
        for key in keys {
            operator.columns(key, &input)?;
        }
    }
    match plan.children().as_slice() {
        [child] => operator.handed_on(&child.schema()),
        children if plan.is::<UnionExec>() || plan.is::<RegretExec>() => {
            for child in children {
                operator.handed_on(&child.schema())?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn is_key(field: &Field) -> bool {
    field.metadata() == clustered_key_field().metadata()
}

/// An operator with its output.
struct Operator<'p> {
    plan: &'p Arc<dyn ExecutionPlan>,
    schema: Arc<Schema>,
}

impl Operator<'_> {
    /// Keys are in the places of the columns that are read, which are those of the table; the others are handed on.
    fn late_columns(&self, late: &LateColumnsExec) -> Result<()> {
        let mut fields = late.input().schema().fields().to_vec();
        for (place, read) in late.fields() {
            if !fields.get(place).is_some_and(|key| is_key(key)) {
                let what = format_args!("there is no key for its column {}", read.name());
                return Err(contradiction(self.plan, what));
            }
            fields[place] = Arc::new(read);
        }
        self.handed_on(&Schema::new(fields))
    }

    /// The columns that are handed on come first; those of the table are its own.
    fn expand(&self, expand: &ExpandExec) -> Result<()> {
        let input = expand.input().schema();
        self.columns(expand.document(), &input)?;
        for (position, kept) in expand.kept().iter().enumerate() {
            let Some(field) = input.fields().get(*kept) else {
                let what = format_args!("it hands on column {kept} of {}", names(&input));
                return Err(contradiction(self.plan, what));
            };
            self.output_field(position, field, false)?;
        }
        Ok(())
    }

    /// The columns that an expression reads are there, under the names that it knows.
    fn columns(&self, expr: &Arc<dyn PhysicalExpr>, input: &Schema) -> Result<()> {
        expr.apply(|part| {
            let Some(column) = part.downcast_ref::<Column>() else {
                return Ok(TreeNodeRecursion::Continue);
            };
            let field = input.fields().get(column.index());
            match field {
                // A name that is another one shows, while tests run, that a column has moved.
                Some(field) if !cfg!(debug_assertions) || field.name() == column.name() => {
                    Ok(TreeNodeRecursion::Continue)
                }
                _ => Err(contradiction(
                    self.plan,
                    format_args!("it reads the column {column} of {}", names(input)),
                )),
            }
        })?;
        Ok(())
    }

    fn order(&self, order: &LexOrdering, input: &Schema) -> Result<()> {
        let mut exprs = order.iter();
        exprs.try_for_each(|sort| self.columns(&sort.expr, input))
    }

    /// An output column has the type of what it is made of, and may be NULL if that may.
    fn output(&self, position: usize, data_type: &DataType, nullable: bool) -> Result<()> {
        let Some(field) = self.schema.fields().get(position) else {
            return Err(contradiction(
                self.plan,
                format_args!("it has no column {position} among {}", names(&self.schema)),
            ));
        };
        if field.data_type() != data_type {
            return Err(contradiction(
                self.plan,
                format_args!(
                    "its column {} is {}, and made of {data_type}",
                    field.name(),
                    field.data_type()
                ),
            ));
        }
        if nullable && !field.is_nullable() {
            return Err(contradiction(
                self.plan,
                format_args!(
                    "its column {} is never NULL, but what it is made of may be",
                    field.name()
                ),
            ));
        }
        Ok(())
    }

    fn output_field(&self, position: usize, input: &Field, nullable: bool) -> Result<()> {
        let nullable = nullable || input.is_nullable();
        self.output(position, input.data_type(), nullable)
    }

    /// The columns of an input come first, as they are, if the operator has at least as many.
    fn handed_on(&self, input: &Schema) -> Result<()> {
        if self.schema.fields().len() < input.fields().len() {
            return Ok(());
        }
        let mut fields = input.fields().iter().enumerate();
        fields.try_for_each(|(position, field)| self.output_field(position, field, false))
    }

    fn projection(&self, projection: &ProjectionExec) -> Result<()> {
        let input = projection.input().schema();
        for (position, output) in projection.expr().iter().enumerate() {
            self.columns(&output.expr, &input)?;
            let data_type = output.expr.data_type(&input)?;
            self.output(position, &data_type, output.expr.nullable(&input)?)?;
        }
        Ok(())
    }

    fn filter(&self, filter: &FilterExec) -> Result<()> {
        let input = filter.input().schema();
        self.columns(filter.predicate(), &input)?;
        match filter.projection() {
            None => self.handed_on(&input),
            Some(kept) => {
                for (position, column) in kept.iter().enumerate() {
                    self.output_field(position, input.field(*column), false)?;
                }
                Ok(())
            }
        }
    }

    fn aggregate(&self, aggregate: &AggregateExec) -> Result<()> {
        let groups = aggregate.group_expr();
        let input = aggregate.input().schema();
        let is_first = aggregate.mode().input_mode() == AggregateInputMode::Raw;
        for (position, (expr, _)) in groups.expr().iter().enumerate() {
            let left_out = groups.groups().iter().any(|set| set[position]);
            self.columns(expr, &input)?;
            let nullable = expr.nullable(&input)? || left_out;
            self.output(position, &expr.data_type(&input)?, nullable)?;
        }
        if !is_first {
            return Ok(());
        }
        for function in aggregate.aggr_expr() {
            for argument in function.expressions() {
                self.columns(&argument, &input)?;
            }
        }
        let mut filters = aggregate.filter_expr().iter().flatten();
        filters.try_for_each(|filter| self.columns(filter, &input))
    }

    fn keyed_join(&self, join: &KeyedJoinExec) -> Result<()> {
        let outer = join.outer().schema();
        for key in join.keys() {
            self.columns(&key.expr, &outer)?;
        }
        for bound in join.bounds() {
            self.columns(&bound.column.expr, &outer)?;
        }
        if let Some(filter) = join.join_filter() {
            self.join_filter(filter)?;
        }
        let is_padded = join.join_type() == KeyedJoinType::LeftOuter;
        for (position, column) in join.projection().iter().enumerate() {
            match outer.fields().get(*column) {
                Some(field) => self.output_field(position, field, false)?,
                None if is_padded => {
                    let data_type = self.schema.field(position).data_type().clone();
                    self.output(position, &data_type, true)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The condition of a join reads the columns that it is given.
    fn join_filter(&self, filter: &JoinFilter) -> Result<()> {
        if filter.column_indices().len() != filter.schema().fields().len() {
            return Err(contradiction(
                self.plan,
                "its condition is given other columns than it reads",
            ));
        }
        self.columns(filter.expression(), filter.schema())
    }

    fn join(&self, join: &Join<'_>) -> Result<()> {
        let (left, right) = (join.left.schema(), join.right.schema());
        for (left_key, right_key) in join.on {
            self.columns(left_key, &left)?;
            self.columns(right_key, &right)?;
            let (left_type, right_type) =
                (left_key.data_type(&left)?, right_key.data_type(&right)?);
            if left_type != right_type {
                return Err(contradiction(
                    self.plan,
                    format_args!(
                        "its key {left_key} = {right_key} is {left_type} and {right_type}"
                    ),
                ));
            }
        }
        if let Some(filter) = join.filter {
            self.join_filter(filter)?;
            for (given, field) in filter.column_indices().iter().zip(filter.schema().fields()) {
                let input = match given.side {
                    JoinSide::Left => left.fields().get(given.index),
                    JoinSide::Right => right.fields().get(given.index),
                    // The column of a mark join.
                    JoinSide::None => continue,
                };
                if input.is_none_or(|input| input.data_type() != field.data_type()) {
                    return Err(contradiction(
                        self.plan,
                        format_args!("its condition reads a column {field} that is another one"),
                    ));
                }
            }
        }
        for position in 0..self.schema.fields().len() {
            if let Some((input, source, nullable)) = join.output_source(position)
                && let Some(field) = input.schema().fields().get(source)
            {
                self.output_field(position, field, nullable)?;
            }
        }
        Ok(())
    }
}

/// What is compared of the left and of the right side.
type Key = (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>);

/// A join of two inputs, whichever way it is done.
pub(super) struct Join<'p> {
    left: &'p Arc<dyn ExecutionPlan>,
    right: &'p Arc<dyn ExecutionPlan>,
    on: &'p [Key],
    filter: Option<&'p JoinFilter>,
    join_type: JoinType,
    projection: Option<&'p [usize]>,
}

impl<'p> Join<'p> {
    pub(super) fn of(plan: &'p Arc<dyn ExecutionPlan>) -> Option<Join<'p>> {
        static NO_KEYS: JoinOn = Vec::new();
        let spills = plan.downcast_ref().map(GraceJoinExec::join);
        if let Some(join) = spills.or_else(|| plan.downcast_ref::<HashJoinExec>()) {
            return Some(Join {
                left: join.left(),
                right: join.right(),
                on: join.on(),
                filter: join.filter(),
                join_type: *join.join_type(),
                projection: join.projection.as_deref(),
            });
        }
        if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
            return Some(Join {
                left: join.left(),
                right: join.right(),
                on: join.on(),
                filter: join.filter().as_ref(),
                join_type: join.join_type(),
                projection: None,
            });
        }
        if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
            return Some(Join {
                left: join.left(),
                right: join.right(),
                on: &NO_KEYS,
                filter: join.filter(),
                join_type: *join.join_type(),
                projection: join.projection().as_deref(),
            });
        }
        let join = plan.downcast_ref::<CrossJoinExec>()?;
        Some(Join {
            left: join.left(),
            right: join.right(),
            on: &NO_KEYS,
            filter: None,
            join_type: JoinType::Inner,
            projection: None,
        })
    }

    /// What an expression over the output is over the rows of one input: the same of its columns, or what is compared
    /// with it as a key of an inner join.
    pub(super) fn over_input(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        expr: &Arc<dyn PhysicalExpr>,
    ) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let (mut of_left, mut of_right, mut is_known) = (true, true, true);
        let source = Arc::clone(expr).transform_up(|part| {
            let Some(column) = part.downcast_ref::<Column>() else {
                return Ok(Transformed::no(part));
            };
            let Some((from, position, false)) = self.output_source(column.index()) else {
                is_known = false;
                return Ok(Transformed::no(part));
            };
            of_left &= Arc::ptr_eq(from, self.left);
            of_right &= Arc::ptr_eq(from, self.right);
            let schema = from.schema();
            let name = schema.field(position).name();
            Ok(Transformed::yes(Arc::new(Column::new(name, position))))
        })?;
        let source = source.data;
        let is_left = Arc::ptr_eq(input, self.left);
        if !is_known {
            return Ok(None);
        }
        if is_left && of_left || !is_left && of_right {
            return Ok(Some(source));
        }
        if self.join_type != JoinType::Inner || !(of_left || of_right) {
            return Ok(None);
        }
        let mut pairs = self.on.iter().map(|(left, right)| match is_left {
            true => (left, right),
            false => (right, left),
        });
        let pair = pairs.find(|(_, other)| other.as_ref() == source.as_ref());
        Ok(pair.map(|(own, _)| Arc::clone(own)))
    }

    /// The input and the column of it that a column of the output is, and whether it is NULL where there is no match;
    /// `None`: it is a mark.
    pub(super) fn output_source(
        &self,
        position: usize,
    ) -> Option<(&'p Arc<dyn ExecutionPlan>, usize, bool)> {
        let position = match self.projection {
            Some(kept) => *kept.get(position)?,
            None => position,
        };
        let of = |input: &'p Arc<dyn ExecutionPlan>, position: usize, nullable: bool| {
            let is_there = position < input.schema().fields().len();
            is_there.then_some((input, position, nullable))
        };
        let (left_padded, right_padded) = match self.join_type {
            JoinType::Left => (false, true),
            JoinType::Right => (true, false),
            JoinType::Full => (true, true),
            JoinType::Inner => (false, false),
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                return of(self.left, position, false);
            }
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                return of(self.right, position, false);
            }
        };
        match position.checked_sub(self.left.schema().fields().len()) {
            None => of(self.left, position, left_padded),
            Some(position) => of(self.right, position, right_padded),
        }
    }
}

fn names(schema: &Schema) -> String {
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    format!("({})", names.join(", "))
}
