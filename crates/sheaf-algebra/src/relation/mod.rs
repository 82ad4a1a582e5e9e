//! The operators, one a file.
//!
//! | file | rows | columns |
//! |---|---|---|
//! | [`scan`] | of a stored or virtual table | new ones |
//! | [`filter`] | those for which a condition is true | the input's |
//! | [`project`] | the input's | a list; what is computed is new |
//! | [`join`] | pairs | those of both sides, or of the left one |
//! | [`dependent_join`] | pairs, where the right side is computed for each row of the left | as a join's |
//! | [`expand`] | those of the document of each row | those of the input that are handed on, and new ones |
//! | [`group`] | one for each group | the keys, columns that are carried, and aggregates, which are new |
//! | [`window`] | the input's | the input's, and functions over windows, which are new |
//! | [`sort`], [`limit`] | the input's in order, some of them | the input's |
//! | [`recursive`] | those of the first part, and of rounds over them | new ones |
//! | [`set_operation`] | those of all inputs, of one without the other, of both | new ones |
//! | [`values`] | as written | new ones |

pub mod dependent_join;
pub mod expand;
pub mod filter;
pub mod group;
pub mod join;
pub mod limit;
pub mod project;
pub mod recursive;
pub mod scan;
pub mod set_operation;
pub mod sort;
pub mod values;
pub mod window;

use std::sync::OnceLock;

pub use dependent_join::{DependentJoin, DependentKind};
pub use expand::Expand;
pub use filter::Filter;
pub use group::Group;
pub use join::{Join, JoinKind};
pub use limit::Limit;
pub use project::{Derived, Item, Project};
pub use recursive::Recursive;
pub use scan::Scan;
pub use set_operation::{SetKind, SetOperation};
pub use sort::{Sort, SortKey};
pub use values::Values;
pub use window::Window;

use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::properties::Properties;
use crate::scalar::Scalar;

/// An operator and what follows from it.
#[derive(Clone, Debug)]
pub struct Relation {
    operator: Operator,
    properties: OnceLock<Box<Properties>>,
}

#[derive(Clone, Debug)]
pub enum Operator {
    Scan(Scan),
    Filter(Filter),
    Project(Project),
    Join(Join),
    DependentJoin(DependentJoin),
    Expand(Expand),
    Group(Group),
    Window(Window),
    Sort(Sort),
    Limit(Limit),
    Recursive(Recursive),
    SetOperation(SetOperation),
    Values(Values),
}

impl From<Operator> for Relation {
    fn from(operator: Operator) -> Relation {
        Relation {
            operator,
            properties: OnceLock::new(),
        }
    }
}

impl Relation {
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    pub fn into_operator(self) -> Operator {
        self.operator
    }

    /// Derived when they are first asked for.
    pub fn properties(&self) -> &Properties {
        let properties = &self.properties;
        properties.get_or_init(|| Box::new(Properties::of(&self.operator)))
    }

    /// Its columns, in order.
    pub fn columns(&self) -> &[ColumnId] {
        &self.properties().columns
    }

    pub fn column_set(&self) -> ColumnSet {
        self.columns().iter().copied().collect()
    }

    /// Columns of the queries around it.
    pub fn free_columns(&self) -> &ColumnSet {
        &self.properties().free
    }

    /// Whether there is a row, whatever the tables hold.
    pub fn gives_a_row(&self) -> bool {
        match &self.operator {
            Operator::Group(group) => group.keys.is_empty() || group.input.gives_a_row(),
            Operator::Values(values) => !values.rows.is_empty(),
            Operator::Project(project) => project.input.gives_a_row(),
            Operator::Sort(sort) => sort.input.gives_a_row(),
            Operator::Window(window) => window.input.gives_a_row(),
            Operator::Limit(limit) => {
                limit.skip == 0 && limit.fetch != Some(0) && limit.input.gives_a_row()
            }
            Operator::SetOperation(operation) => {
                let mut inputs = operation.inputs.iter();
                operation.kind == SetKind::Union && inputs.any(Relation::gives_a_row)
            }
            _ => false,
        }
    }

    /// Whether something in it is [volatile](Scalar::is_volatile).
    pub fn contains_volatile(&self) -> bool {
        let mut found = false;
        self.for_each_scalar(&mut |scalar| found = found || scalar.is_volatile());
        found || self.inputs().into_iter().any(Relation::contains_volatile)
    }

    /// Whether it may give other rows each time that it is computed: something in it [varies](Scalar::varies).
    pub fn varies(&self) -> bool {
        let mut found = false;
        self.for_each_scalar(&mut |scalar| found = found || scalar.varies());
        found || self.inputs().into_iter().any(Relation::varies)
    }

    /// How many operators it has.
    pub fn operators(&self) -> usize {
        let inputs = self.inputs().into_iter();
        1 + inputs.map(Relation::operators).sum::<usize>()
    }

    pub fn inputs(&self) -> Vec<&Relation> {
        match &self.operator {
            Operator::Scan(_) | Operator::Values(_) => Vec::new(),
            Operator::Filter(filter) => vec![&filter.input],
            Operator::Project(project) => vec![&project.input],
            Operator::Join(join) => vec![&join.left, &join.right],
            Operator::DependentJoin(join) => vec![&join.left, &join.right],
            Operator::Expand(expand) => vec![&expand.input],
            Operator::Group(group) => vec![&group.input],
            Operator::Window(window) => vec![&window.input],
            Operator::Sort(sort) => vec![&sort.input],
            Operator::Limit(limit) => vec![&limit.input],
            Operator::Recursive(node) => vec![&node.first, &node.round],
            Operator::SetOperation(operation) => operation.inputs.iter().collect(),
        }
    }

    /// The same operator over other inputs, which have the same columns.
    pub fn map_inputs(self, map: &mut dyn FnMut(Relation) -> Relation) -> Relation {
        let mut boxed = |input: Box<Relation>| Box::new(map(*input));
        let operator = match self.operator {
            operator @ (Operator::Scan(_) | Operator::Values(_)) => operator,
            Operator::Filter(node) => Operator::Filter(Filter {
                input: boxed(node.input),
                ..node
            }),
            Operator::Project(node) => Operator::Project(Project {
                input: boxed(node.input),
                ..node
            }),
            Operator::Join(node) => Operator::Join(Join {
                left: boxed(node.left),
                right: boxed(node.right),
                ..node
            }),
            Operator::DependentJoin(node) => Operator::DependentJoin(DependentJoin {
                left: boxed(node.left),
                right: boxed(node.right),
                ..node
            }),
            Operator::Expand(node) => Operator::Expand(Expand {
                input: boxed(node.input),
                ..node
            }),
            Operator::Group(node) => Operator::Group(Group {
                input: boxed(node.input),
                ..node
            }),
            Operator::Window(node) => Operator::Window(Window {
                input: boxed(node.input),
                ..node
            }),
            Operator::Sort(node) => Operator::Sort(Sort {
                input: boxed(node.input),
                ..node
            }),
            Operator::Limit(node) => Operator::Limit(Limit {
                input: boxed(node.input),
                ..node
            }),
            Operator::Recursive(node) => Operator::Recursive(Recursive {
                first: boxed(node.first),
                round: boxed(node.round),
                ..node
            }),
            Operator::SetOperation(node) => Operator::SetOperation(SetOperation {
                inputs: node.inputs.into_iter().map(map).collect(),
                ..node
            }),
        };
        Relation::from(operator)
    }

    /// The expressions of the operator itself.
    pub fn for_each_scalar(&self, visit: &mut dyn FnMut(&Scalar)) {
        self.operator.for_each_scalar(visit);
    }

    /// The same tree with other expressions, of the same types.
    pub fn map_scalars(self, map: &mut dyn FnMut(Scalar) -> Scalar) -> Relation {
        let relation = self.map_inputs(&mut |input| input.map_scalars(map));
        let operator = match relation.operator {
            operator @ (Operator::Scan(_)
            | Operator::Limit(_)
            | Operator::Recursive(_)
            | Operator::SetOperation(_)) => operator,
            Operator::Filter(node) => Operator::Filter(Filter {
                condition: map(node.condition),
                ..node
            }),
            Operator::Project(node) => {
                let items = node.items.into_iter().map(|item| Item {
                    value: map(item.value),
                    ..item
                });
                Operator::Project(Project {
                    items: items.collect(),
                    ..node
                })
            }
            Operator::Join(node) => Operator::Join(Join {
                condition: node.condition.map(map),
                ..node
            }),
            Operator::DependentJoin(node) => Operator::DependentJoin(DependentJoin {
                condition: node.condition.map(map),
                ..node
            }),
            Operator::Expand(node) => Operator::Expand(Expand {
                document: map(node.document),
                ..node
            }),
            Operator::Group(node) => {
                let aggregates = node.aggregates.into_iter();
                let aggregates =
                    aggregates.map(|(id, aggregate)| (id, aggregate.map_arguments(map)));
                Operator::Group(Group {
                    aggregates: aggregates.collect(),
                    ..node
                })
            }
            Operator::Window(node) => {
                let functions = node.functions.into_iter();
                let functions = functions.map(|(id, function)| (id, function.map_operands(map)));
                Operator::Window(Window {
                    functions: functions.collect(),
                    ..node
                })
            }
            Operator::Sort(node) => {
                let keys = node.keys.into_iter().map(|key| SortKey {
                    value: map(key.value),
                    ..key
                });
                Operator::Sort(Sort {
                    keys: keys.collect(),
                    ..node
                })
            }
            Operator::Values(node) => {
                let rows = node.rows.into_iter();
                let rows = rows.map(|row| row.into_iter().map(&mut *map).collect());
                Operator::Values(Values {
                    rows: rows.collect(),
                    ..node
                })
            }
        };
        Relation::from(operator)
    }
}

impl Operator {
    pub(crate) fn for_each_scalar(&self, visit: &mut dyn FnMut(&Scalar)) {
        match self {
            Operator::Scan(_)
            | Operator::Limit(_)
            | Operator::Recursive(_)
            | Operator::SetOperation(_) => {}
            Operator::Filter(filter) => visit(&filter.condition),
            Operator::Project(project) => project.items.iter().for_each(|item| visit(&item.value)),
            Operator::Join(join) => join.condition.iter().for_each(visit),
            Operator::DependentJoin(join) => join.condition.iter().for_each(visit),
            Operator::Expand(expand) => visit(&expand.document),
            Operator::Group(group) => {
                let aggregates = group.aggregates.iter();
                aggregates
                    .flat_map(|(_, aggregate)| aggregate.operands())
                    .for_each(visit);
            }
            Operator::Window(window) => {
                for (_, function) in &window.functions {
                    function.for_each_operand(visit);
                }
            }
            Operator::Sort(sort) => sort.keys.iter().for_each(|key| visit(&key.value)),
            Operator::Values(values) => values.rows.iter().flatten().for_each(visit),
        }
    }
}
