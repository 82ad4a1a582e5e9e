//! The order in which rows come, where an operator sees to it. Which order a scan has, depends on its index and is not
//! known here.

use crate::column::ColumnId;
use crate::relation::Operator;

/// A column that rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedColumn {
    pub column: ColumnId,
    pub descends: bool,
}

pub(super) fn of(operator: &Operator) -> Vec<OrderedColumn> {
    match operator {
        Operator::Sort(sort) => {
            // Behind what is no column, nothing is known.
            let keys = sort.keys.iter().map_while(|key| {
                Some(OrderedColumn {
                    column: key.value.as_column()?,
                    descends: key.descends,
                })
            });
            keys.collect()
        }
        Operator::Filter(filter) => filter.input.properties().order.clone(),
        Operator::Limit(limit) => limit.input.properties().order.clone(),
        Operator::Project(project) => {
            let order = project.input.properties().order.iter();
            let is_shown =
                |column: ColumnId| project.items.iter().any(|item| item.column == column);
            order
                .take_while(|ordered| is_shown(ordered.column))
                .copied()
                .collect()
        }
        _ => Vec::new(),
    }
}
