//! `filter false A  =  nothing`, and what follows of it.
//!
//! ```text
//!   filter true A               A
//!   limit 0 A                   nothing
//!   project nothing             nothing          and so of all operators, but for a group of all rows
//!   A join nothing              nothing
//!   A left join nothing         project A, with NULL in the columns of nothing
//!   A antijoin nothing          A
//!   A union nothing             A
//!   A left join B on true       A join B         B has a row, whatever the tables hold
//! ```
//!
//! Nothing is [`Values`] without rows. A condition that is always unknown is as good as a false one. What is computed
//! from constants alone is computed here, and whether a column is NULL that never is.

use datafusion_common::ScalarValue;

use crate::column::{ColumnId, Columns};
use crate::relation::{
    DependentJoin, DependentKind, Filter, Item, Join, JoinKind, Limit, Operator, Relation, SetKind,
    SetOperation, Values,
};
use crate::scalar::{Scalar, ScalarKind, Truth};

pub fn apply(relation: Relation, columns: &Columns) -> Relation {
    let relation = relation.map_inputs(&mut |input| apply(input, columns));
    let relation = match relation.into_operator() {
        Operator::Filter(Filter { input, condition }) => match decided(condition, &[&input]) {
            Decided::Never => nothing(input.columns().to_vec()),
            Decided::Always => *input,
            Decided::By(condition) => input.filter(condition),
        },
        Operator::Join(join) => joined(join),
        Operator::Limit(Limit {
            input,
            fetch: Some(0),
            ..
        }) => nothing(input.columns().to_vec()),
        operator => operator.into(),
    };
    match relation.inputs().into_iter().any(is_nothing) {
        true => over_nothing(relation, columns),
        false => relation,
    }
}

fn nothing(columns: Vec<ColumnId>) -> Relation {
    let rows = Vec::new();
    Operator::Values(Values { columns, rows }).into()
}

fn is_nothing(relation: &Relation) -> bool {
    matches!(relation.operator(), Operator::Values(values) if values.rows.is_empty())
}

/// What constants make of a condition.
enum Decided {
    Always,
    Never,
    By(Scalar),
}

/// `inputs`: what the condition is about.
fn decided(condition: Scalar, inputs: &[&Relation]) -> Decided {
    let constant = |condition: &Scalar| match condition.as_literal() {
        Some(ScalarValue::Boolean(value)) => Some(value.unwrap_or(false)),
        Some(ScalarValue::Null) => Some(false),
        _ => None,
    };
    let is_not_null = |column| {
        let mut inputs = inputs.iter();
        inputs.any(|input| input.properties().not_null.contains(column))
    };
    let tested = |part: &Scalar| match part.kind() {
        ScalarKind::Test {
            operand,
            is: Truth::Null,
            negated,
        } if operand.as_column().is_some_and(is_not_null) => Some(Scalar::constant(*negated)),
        _ => None,
    };
    // Most have no such test, and some have ten thousand terms, which would be put together anew.
    let tested = match condition.contains(&|part| tested(part).is_some()) {
        true => condition.replace(&tested),
        false => condition,
    };
    let mut conditions = tested.folded().decided().into_conjuncts();
    if conditions.iter().any(|one| constant(one) == Some(false)) {
        return Decided::Never;
    }
    conditions.retain(|one| constant(one) != Some(true));
    match conditions.is_empty() {
        true => Decided::Always,
        false => Decided::By(Scalar::and(conditions)),
    }
}

/// A join whose right side is nothing if no pair of rows meets the condition.
fn joined(mut join: Join) -> Relation {
    let sides = [join.left.as_ref(), join.right.as_ref()];
    match join.condition.take().map(|one| decided(one, &sides)) {
        None | Some(Decided::Always) => {
            if join.kind == JoinKind::LeftOuter && join.right.gives_a_row() {
                join.kind = JoinKind::Inner;
            }
        }
        Some(Decided::Never) => join.right = Box::new(nothing(join.right.columns().to_vec())),
        Some(Decided::By(condition)) => join.condition = Some(condition),
    }
    Operator::Join(join).into()
}

/// An operator one of whose inputs is nothing.
fn over_nothing(relation: Relation, columns: &Columns) -> Relation {
    let shown = relation.columns().to_vec();
    match relation.into_operator() {
        Operator::Group(group) if group.keys.is_empty() || group.rollup.is_some() => {
            Operator::Group(group).into()
        }
        Operator::Recursive(recursive) => recursive.relation(),
        Operator::Join(Join {
            kind, left, right, ..
        }) => match kind {
            _ if is_nothing(&left) => nothing(shown),
            JoinKind::Inner | JoinKind::Semi => nothing(shown),
            JoinKind::LeftOuter => with_null(*left, right.columns(), columns),
            JoinKind::Anti => *left,
            JoinKind::Mark(mark) => with_constant(*left, mark, columns),
        },
        Operator::DependentJoin(DependentJoin {
            kind, left, right, ..
        }) => match kind {
            _ if is_nothing(&left) => nothing(shown),
            DependentKind::Inner | DependentKind::Semi => nothing(shown),
            DependentKind::LeftOuter => with_null(*left, right.columns(), columns),
            DependentKind::Single(value) => with_null(*left, &[value], columns),
            DependentKind::Anti => *left,
            DependentKind::Mark(mark) | DependentKind::Found(mark) => {
                with_constant(*left, mark, columns)
            }
        },
        Operator::SetOperation(operation) => set_operation(operation, columns),
        _ => nothing(shown),
    }
}

fn set_operation(operation: SetOperation, columns: &Columns) -> Relation {
    let SetOperation {
        kind,
        mut inputs,
        columns: shown,
    } = operation;
    match kind {
        SetKind::Union => inputs.retain(|input| !is_nothing(input)),
        SetKind::Intersect => inputs.clear(),
        SetKind::Except if is_nothing(&inputs[0]) => inputs.clear(),
        SetKind::Except => inputs.truncate(1),
    }
    match inputs.len() {
        0 => nothing(shown),
        1 => {
            let input = inputs.remove(0);
            let items = shown.iter().zip(input.columns().to_vec());
            let items = items.map(|(column, of_input)| Item {
                column: *column,
                value: Scalar::made(of_input, columns),
            });
            let items = items.collect();
            input.project(items)
        }
        _ => Relation::set_operation(kind, inputs, shown),
    }
}

fn with_items(relation: Relation, others: Vec<Item>, columns: &Columns) -> Relation {
    let passed_on = relation.columns().iter().map(|column| Item {
        column: *column,
        value: Scalar::made(*column, columns),
    });
    let items = passed_on.chain(others).collect();
    relation.project(items)
}

fn with_null(relation: Relation, missing: &[ColumnId], columns: &Columns) -> Relation {
    let items = missing.iter().map(|column| {
        let field = &columns.get(*column).field;
        // Each type of a column has a NULL.
        let null = ScalarValue::try_new_null(field.data_type()).unwrap_or(ScalarValue::Null);
        Item {
            column: *column,
            value: Scalar::typed_literal(null, field.metadata().clone()),
        }
    });
    with_items(relation, items.collect(), columns)
}

/// The mark of a subquery without rows.
fn with_constant(relation: Relation, mark: ColumnId, columns: &Columns) -> Relation {
    let item = Item {
        column: mark,
        value: Scalar::constant(false),
    };
    with_items(relation, vec![item], columns)
}
