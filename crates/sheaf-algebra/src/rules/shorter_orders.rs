//! `sort by x, y of A  =  sort by x of A`, where no two rows agree on `x`, or `y` is `x`, or is the same in all rows.
//!
//! ```text
//!   ORDER BY t.id, t.name          t.id           no two rows have one id
//!   ORDER BY t.k, t.s, t.k         t.k, t.s
//!   ORDER BY d.n, t.k              t.k            d is a list that has a constant as n
//!   .. LIMIT 1 ORDER BY t.k        nothing        there is one row
//! ```
//!
//! Dependencies are not asked. That `s` determines what is computed of it is true of rows that have the same `s`, and
//! not of rows whose `s` are equal to a collation: these may have another `HEX(s)`. A key that a condition makes the
//! same in all rows is left, since an index may have the order with it and not without.

use crate::column_set::ColumnSet;
use crate::relation::{JoinKind, Operator, Relation, Sort, SortKey};
use crate::scalar::Scalar;

pub fn apply(relation: Relation) -> Relation {
    let relation = relation.map_inputs(&mut apply);
    match relation.into_operator() {
        Operator::Sort(Sort { input, keys }) => {
            let keys = match input.properties().has_at_most_one_row() {
                true => Vec::new(),
                false => needed(&input, keys),
            };
            match keys.is_empty() {
                true => *input,
                false => input.sort(keys),
            }
        }
        operator => operator.into(),
    }
}

/// The keys that those before them do not settle.
fn needed(input: &Relation, keys: Vec<SortKey>) -> Vec<SortKey> {
    let properties = input.properties();
    let constants = constants(input);
    let mut needed: Vec<SortKey> = Vec::with_capacity(keys.len());
    let mut known = ColumnSet::new();
    for key in keys {
        let repeats = needed.iter().any(|before| before.value == key.value);
        let is_unique = || !needed.is_empty() && properties.has_key_among(&known);
        if (repeats || is_unique() || is_constant(&key.value, &constants))
            && !key.value.is_volatile()
        {
            continue;
        }
        known.extend(key.value.as_column());
        needed.push(key);
    }
    needed
}

/// Columns of a relation that lists compute of nothing.
fn constants(relation: &Relation) -> ColumnSet {
    match relation.operator() {
        Operator::Project(project) => {
            let mut found = constants(&project.input);
            for item in &project.items {
                if is_constant(&item.value, &found) {
                    found.insert(item.column);
                }
            }
            found
        }
        Operator::Filter(filter) => constants(&filter.input),
        Operator::Sort(sort) => constants(&sort.input),
        Operator::Limit(limit) => constants(&limit.input),
        Operator::Expand(expand) => constants(&expand.input),
        Operator::Window(window) => constants(&window.input),
        Operator::DependentJoin(join) => constants(&join.left),
        Operator::Join(join) => {
            let found = constants(&join.left);
            match join.kind {
                JoinKind::Inner => found.union(&constants(&join.right)),
                // NULL besides where there is no partner.
                JoinKind::LeftOuter | JoinKind::Semi | JoinKind::Anti | JoinKind::Mark(_) => found,
            }
        }
        Operator::Group(group) if group.rollup.is_none() => {
            let shown = group.keys.iter().chain(&group.carried).copied().collect();
            constants(&group.input).intersection(&shown)
        }
        Operator::Scan(_)
        | Operator::Values(_)
        | Operator::Group(_)
        | Operator::SetOperation(_)
        | Operator::Recursive(_) => ColumnSet::new(),
    }
}

fn is_constant(value: &Scalar, constants: &ColumnSet) -> bool {
    value.columns().is_subset(constants) && !value.is_volatile() && !value.is_of_variables()
}
