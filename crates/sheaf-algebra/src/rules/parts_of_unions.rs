//! `limit n of (B union C)  =  limit n of (sort part of (B, 1) union (C, 2))`, for each row that the limit is for.
//!
//! Without ORDER BY, a limit of a union takes the rows of its first part before those of the others, in MySQL and
//! MariaDB. Statements count on it to say what is shown where there is nothing else:
//!
//! ```text
//!   SELECT (SELECT name FROM names WHERE names.id = t.id UNION ALL SELECT 'none' LIMIT 1) FROM t
//! ```
//!
//! Each row of the union gets the number of its part, and one that is in several parts the lowest. A union that depends
//! on nothing and has no distinct rows brings its parts one behind the other anyhow.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, ScalarValue};

use super::unnest::{Unnesting, ordered_input};
use crate::column::ColumnId;
use crate::relation::{
    Group, Item, Limit, Operator, Project, Relation, SetKind, SetOperation, SortKey,
};
use crate::scalar::Scalar;

impl Unnesting<'_> {
    /// A limit that depends on the row around it, of a union without an order, takes the rows of its first part first.
    pub(super) fn limit_by_parts(&mut self, limit: Limit) -> Result<Relation> {
        let is_dependent = !limit.input.free_columns().is_empty();
        if !is_dependent || !ordered_input(limit.input.as_ref().clone()).1.is_empty() {
            return Ok(Operator::Limit(limit).into());
        }
        let shown = limit.input.columns().iter().map(|id| self.passed_on(*id));
        let shown: Vec<Item> = shown.collect();
        let (relation, part) = self.with_parts(*limit.input)?;
        let relation = match part {
            Some(part) => {
                let value = self.passed_on(part).value;
                let descends = false;
                relation
                    .sort(vec![SortKey { value, descends }])
                    .project(shown)
            }
            None => relation,
        };
        Ok(relation.limit(limit.skip, limit.fetch))
    }

    /// A union with the number of each row's part in a column of its own.
    fn with_parts(&mut self, relation: Relation) -> Result<(Relation, Option<ColumnId>)> {
        match relation.into_operator() {
            Operator::SetOperation(SetOperation {
                kind: SetKind::Union,
                inputs,
                mut columns,
            }) => {
                let field = Arc::new(Field::new("part", DataType::Int64, false));
                let inputs = (0i64..).zip(inputs).map(|(number, input)| {
                    let own = input.columns().iter().map(|id| self.passed_on(*id));
                    let mut items: Vec<Item> = own.collect();
                    items.push(Item {
                        column: self.columns.add_computed("part", Arc::clone(&field)),
                        value: Scalar::literal(ScalarValue::Int64(Some(number))),
                    });
                    input.project(items)
                });
                let inputs = inputs.collect();
                let part = self.columns.add_computed("part", field);
                columns.push(part);
                let union = Relation::set_operation(SetKind::Union, inputs, columns);
                Ok((union, Some(part)))
            }
            Operator::Group(group) if group.is_distinct() => {
                let (input, part) = self.with_parts(*group.input)?;
                let Group {
                    keys,
                    carried,
                    mut aggregates,
                    ..
                } = group;
                let part = match part {
                    Some(part) => {
                        let part = self.passed_on(part).value;
                        let (lowest, aggregate) = self.add_aggregate("min", part)?;
                        aggregates.push((lowest, aggregate));
                        Some(lowest)
                    }
                    None => None,
                };
                Ok((input.group(keys, carried, aggregates), part))
            }
            Operator::Project(Project {
                input,
                mut items,
                derived: None,
            }) => {
                let (input, part) = self.with_parts(*input)?;
                items.extend(part.map(|part| self.passed_on(part)));
                Ok((input.project(items), part))
            }
            other => Ok((other.into(), None)),
        }
    }
}
