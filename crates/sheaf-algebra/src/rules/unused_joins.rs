//! `A left join B  =  A`, where nothing above names a column of `B` and no row of `A` has two partners, and its
//! relatives.
//!
//! ```text
//!   project a (A left join B on a = b)      project a A                       b is a key of B
//!   distinct a (A left join B on c)         distinct a A
//!   distinct a (A join B on a = b)          distinct a (A semijoin B on a = b)
//! ```
//!
//! Below a distinct it does not matter how often a row comes, so that there is no need of a key. An inner join by a key
//! stays what it is: it has the rows of the semijoin, and may be computed in any order.
//!
//! Which columns are needed is told from the top down. A list and a group lose what nobody needs on the way.

use crate::column_set::ColumnSet;
use crate::properties::keys::equal_columns;
use crate::relation::{
    DependentJoin, Filter, Group, Join, JoinKind, Operator, Project, Relation, Sort, Window,
};
use crate::scalar::Scalar;

pub fn apply(relation: Relation) -> Relation {
    as_root(relation)
}

/// A relation all of whose columns are needed, and each row.
fn as_root(relation: Relation) -> Relation {
    let needed = relation.column_set();
    let needed = Needed {
        columns: needed,
        repeated: true,
    };
    without_unused(relation, needed)
}

/// What is needed of a relation.
struct Needed {
    columns: ColumnSet,
    /// Whether it matters how often a row comes.
    repeated: bool,
}

impl Needed {
    fn with<'a>(mut self, scalars: impl IntoIterator<Item = &'a Scalar>) -> Needed {
        for scalar in scalars {
            scalar.add_columns(&mut self.columns);
            // It is computed as often as there are rows.
            self.repeated |= scalar.is_volatile();
        }
        self
    }
}

fn without_unused(relation: Relation, needed: Needed) -> Relation {
    match relation.into_operator() {
        Operator::Filter(Filter { input, condition }) => {
            let needed = needed.with([&condition]);
            without_unused(*input, needed).filter(condition)
        }
        Operator::Project(project) => projected(project, needed),
        Operator::Join(join) => joined(join, needed),
        Operator::DependentJoin(DependentJoin {
            kind,
            left,
            right,
            condition,
        }) => {
            let mut needed = needed.with(&condition);
            needed.columns.union_with(right.free_columns());
            needed.repeated |= right.contains_volatile();
            let left = without_unused(*left, needed);
            left.dependent_join(kind, as_root(*right), condition)
        }
        Operator::Group(group) => grouped(group, needed),
        Operator::Expand(mut expand) => {
            expand
                .kept
                .retain(|column| needed.columns.contains(*column));
            let needed = needed.with([&expand.document]);
            expand.input = Box::new(without_unused(*expand.input, needed));
            expand.relation()
        }
        Operator::Window(Window { input, functions }) => {
            let mut needed = Needed {
                repeated: true,
                ..needed
            };
            for (_, function) in &functions {
                function.for_each_operand(&mut |operand| operand.add_columns(&mut needed.columns));
            }
            without_unused(*input, needed).window(functions)
        }
        Operator::Sort(Sort { input, keys }) => {
            let needed = needed.with(keys.iter().map(|key| &key.value));
            without_unused(*input, needed).sort(keys)
        }
        Operator::Limit(limit) => {
            let needed = Needed {
                repeated: true,
                ..needed
            };
            without_unused(*limit.input, needed).limit(limit.skip, limit.fetch)
        }
        operator @ (Operator::Scan(_)
        | Operator::Values(_)
        | Operator::Recursive(_)
        | Operator::SetOperation(_)) => Relation::from(operator).map_inputs(&mut as_root),
    }
}

fn projected(project: Project, needed: Needed) -> Relation {
    let has_variables = project.has_variables();
    let Project {
        input,
        mut items,
        derived,
    } = project;
    if !has_variables {
        let is_needed = |column| needed.columns.contains(column);
        match items.iter().any(|item| is_needed(item.column)) {
            true => items.retain(|item| is_needed(item.column)),
            false => items.truncate(1),
        }
    }
    let needed = Needed {
        columns: ColumnSet::new(),
        repeated: needed.repeated || has_variables,
    };
    let needed = needed.with(items.iter().map(|item| &item.value));
    let input = Box::new(without_unused(*input, needed));
    Operator::Project(Project {
        input,
        items,
        derived,
    })
    .into()
}

fn grouped(mut group: Group, needed: Needed) -> Relation {
    if !group.keys.is_empty() && group.rollup.is_none() {
        let is_needed = |column| needed.columns.contains(column);
        group.carried.retain(|column| is_needed(*column));
        group.aggregates.retain(|(column, _)| is_needed(*column));
    }
    let columns = group.keys.iter().chain(&group.carried).copied();
    let below = Needed {
        columns: columns.collect(),
        repeated: group.keys.is_empty() || !group.aggregates.is_empty() || group.rollup.is_some(),
    };
    let operands = group.aggregates.iter();
    let below = below.with(operands.flat_map(|(_, aggregate)| aggregate.operands()));
    let input = Box::new(without_unused(*group.input, below));
    Operator::Group(Group { input, ..group }).into()
}

fn joined(join: Join, needed: Needed) -> Relation {
    let is_equality = join.pairs().iter().any(|pair| !pair.null_safe);
    let Join {
        kind,
        left,
        right,
        condition,
    } = join;
    let (of_left, of_right) = (left.column_set(), right.column_set());
    let shows = |side: &ColumnSet| needed.columns.intersects(side);
    let is_volatile = condition.as_ref().is_some_and(Scalar::is_volatile);
    let is_hidden = |shown: &ColumnSet, side: &Relation| {
        !shows(shown) && !is_volatile && !side.contains_volatile()
    };
    let (kind, left, right) = match kind {
        JoinKind::Inner | JoinKind::LeftOuter => {
            let hides_right = is_hidden(&of_right, &right);
            let has_one_partner = || {
                let (_, equal) = equal_columns(condition.as_ref(), &left, &right);
                right.properties().has_key_among(&equal)
            };
            match kind {
                JoinKind::LeftOuter if hides_right && (!needed.repeated || has_one_partner()) => {
                    return without_unused(*left, needed);
                }
                JoinKind::Inner if needed.repeated || !is_equality => (kind, left, right),
                JoinKind::Inner if hides_right => (JoinKind::Semi, left, right),
                JoinKind::Inner if is_hidden(&of_left, &left) => (JoinKind::Semi, right, left),
                kind => (kind, left, right),
            }
        }
        kind => (kind, left, right),
    };
    let tests = matches!(kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark(_));
    let needed = needed.with(&condition);
    let of = |side: &Relation, repeated: bool| Needed {
        columns: needed.columns.clone().intersection(&side.column_set()),
        repeated,
    };
    let (of_left, of_right) = (
        of(&left, needed.repeated),
        of(&right, needed.repeated && !tests),
    );
    let left = without_unused(*left, of_left);
    let right = without_unused(*right, of_right);
    left.join(kind, right, condition)
}
