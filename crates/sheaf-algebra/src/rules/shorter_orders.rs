//! `sort by x, y of A  =  sort by x of A`, where rows that agree on `x` agree on `y`.
//!
//! ```text
//!   ORDER BY t.id, t.name          t.id           a key determines all columns of its table
//!   ORDER BY t.k, u.k, t.k         t.k            joined by t.k = u.k
//!   .. LIMIT 1 ORDER BY t.k        nothing        there is one row
//! ```
//!
//! A key that is a constant of each row is left, since an index may have the order with it and not without.

use crate::column_set::ColumnSet;
use crate::relation::{Operator, Relation, Sort, SortKey};

pub fn apply(relation: Relation) -> Relation {
    let relation = relation.map_inputs(&mut apply);
    match relation.into_operator() {
        Operator::Sort(Sort { input, keys }) => {
            if input.properties().has_at_most_one_row() {
                return *input;
            }
            let keys = needed(&input, keys);
            input.sort(keys)
        }
        operator => operator.into(),
    }
}

/// The keys that those before them do not determine.
fn needed(input: &Relation, keys: Vec<SortKey>) -> Vec<SortKey> {
    let properties = input.properties();
    let mut needed: Vec<SortKey> = Vec::with_capacity(keys.len());
    let mut known = ColumnSet::new();
    for key in keys {
        let columns = key.value.columns();
        let repeats = needed.iter().any(|before| before.value == key.value);
        let is_settled = !needed.is_empty()
            && (repeats
                || columns.is_subset(&properties.determined_by(&known))
                || properties.has_key_in(&known))
            && !key.value.is_volatile();
        if is_settled {
            continue;
        }
        known.extend(key.value.as_column());
        needed.push(key);
    }
    needed
}
