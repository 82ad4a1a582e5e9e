//! `A union (B union C)  =  A union B union C`, and its relatives.
//!
//! ```text
//!   A union project e (B union C)       A union project e B union project e C
//!   distinct (A union distinct B)       distinct (A union B)
//!   distinct A                          A            some of the columns are a key of A
//! ```
//!
//! A union has as many inputs as were written then, and each of them may be read by another worker.

use std::collections::HashMap;
use std::sync::Arc;

use crate::column::{ColumnId, Columns};
use crate::relation::{Group, Item, Operator, Project, Relation, SetKind, SetOperation};
use crate::scalar::Scalar;

pub fn apply(relation: Relation, columns: &mut Columns) -> Relation {
    match relation.into_operator() {
        Operator::SetOperation(union) if union.kind == SetKind::Union => {
            flat(union, false, columns)
        }
        Operator::Group(group) if group.is_distinct() => distinct(group, columns),
        operator => Relation::from(operator).map_inputs(&mut |input| apply(input, columns)),
    }
}

fn distinct(group: Group, columns: &mut Columns) -> Relation {
    let Group { input, keys, .. } = group;
    let input = match input.into_operator() {
        Operator::SetOperation(union) if union.kind == SetKind::Union && union.columns == keys => {
            flat(union, true, columns)
        }
        operator => apply(operator.into(), columns),
    };
    let is_union = matches!(input.operator(), Operator::SetOperation(_));
    let shown = keys.iter().copied().collect();
    match !is_union && input.properties().has_key_among(&shown) {
        true => only(input, &keys, columns),
        false => input.distinct(keys),
    }
}

/// A union without inputs that are unions. `is_distinct`: equal rows become one above it.
fn flat(union: SetOperation, is_distinct: bool, columns: &mut Columns) -> Relation {
    let SetOperation {
        kind,
        inputs,
        columns: shown,
    } = union;
    let mut flattened = Vec::with_capacity(inputs.len());
    for input in inputs {
        add_input(input, (&shown, is_distinct), &mut flattened, columns);
    }
    Relation::set_operation(kind, flattened, shown)
}

/// Adds an input, or the inputs of a union that it is.
fn add_input(
    input: Relation,
    (shown, is_distinct): (&[ColumnId], bool),
    flattened: &mut Vec<Relation>,
    columns: &mut Columns,
) {
    let mut add = |input, columns: &mut Columns| {
        add_input(input, (shown, is_distinct), flattened, columns);
    };
    match input.into_operator() {
        Operator::SetOperation(union) if union.kind == SetKind::Union => {
            for input in union.inputs {
                add(input, columns);
            }
        }
        Operator::Group(group)
            if is_distinct && group.is_distinct() && compare_alike(&group.keys, shown, columns) =>
        {
            let input = only(*group.input, &group.keys, columns);
            add(input, columns);
        }
        Operator::Project(project) if is_over_union(&project) => {
            let Project { input, items, .. } = project;
            if let Operator::SetOperation(union) = input.into_operator() {
                for input in union.inputs {
                    let input = projected(&items, &union.columns, input, columns);
                    add(input, columns);
                }
            }
        }
        operator => {
            let input = apply(operator.into(), columns);
            flattened.push(input);
        }
    }
}

/// Whether columns are equal where those of a union are, one by one: texts are by a collation.
fn compare_alike(keys: &[ColumnId], of_union: &[ColumnId], columns: &Columns) -> bool {
    let mut pairs = keys.iter().zip(of_union);
    pairs.all(|(key, of_union)| {
        let (key, of_union) = (&columns.get(*key).field, &columns.get(*of_union).field);
        key.data_type() == of_union.data_type() && key.metadata() == of_union.metadata()
    })
}

/// Whether a list may as well be computed of each input of a union.
fn is_over_union(project: &Project) -> bool {
    let is_union = |operator: &Operator| matches!(operator, Operator::SetOperation(union) if union.kind == SetKind::Union);
    project.derived.is_none() && !project.has_variables() && is_union(project.input.operator())
}

/// The list of a union, of one of its inputs.
fn projected(
    items: &[Item],
    of_union: &[ColumnId],
    input: Relation,
    columns: &mut Columns,
) -> Relation {
    let of_input: HashMap<ColumnId, ColumnId> = {
        let pairs = of_union.iter().zip(input.columns());
        pairs.map(|(one, other)| (*one, *other)).collect()
    };
    let mut passed_on = Vec::new();
    let items = items.iter().map(|item| {
        let value = item.value.clone().replace(&|part| {
            let column = of_input.get(&part.as_column()?)?;
            Some(Scalar::made(*column, columns))
        });
        let column = match value.as_column() {
            Some(column) if item.is_passed_on() && !passed_on.contains(&column) => {
                passed_on.push(column);
                column
            }
            _ => {
                let name = columns.get(item.column).name.clone();
                columns.add_computed(name, Arc::clone(value.field()))
            }
        };
        Item { column, value }
    });
    let items = items.collect();
    input.project(items)
}

/// Some columns of a relation, in their order.
fn only(relation: Relation, shown: &[ColumnId], columns: &Columns) -> Relation {
    if let Operator::SetOperation(union) = relation.operator()
        && union.columns == shown
    {
        return relation;
    }
    if relation.columns() == shown {
        return relation;
    }
    let items = shown.iter().map(|column| Item {
        column: *column,
        value: Scalar::made(*column, columns),
    });
    let items = items.collect();
    relation.project(items)
}
