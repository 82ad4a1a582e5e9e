//! `sort by x, y of A  =  sort by x of A`, where no two rows agree on `x`, or `y` is `x`.
//!
//! ```text
//!   ORDER BY t.id, t.name          t.id           no two rows have one id
//!   ORDER BY t.k, t.s, t.k         t.k, t.s
//!   .. LIMIT 1 ORDER BY t.k        nothing        there is one row
//! ```
//!
//! Dependencies are not asked. That `s` determines what is computed of it is true of rows that have the same `s`, and
//! not of rows whose `s` are equal to a collation: these may have another `HEX(s)`. A key that is a constant of each row
//! is left, since an index may have the order with it and not without.

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
        let repeats = needed.iter().any(|before| before.value == key.value);
        let is_settled = !needed.is_empty()
            && (repeats || properties.has_key_among(&known))
            && !key.value.is_volatile();
        if is_settled {
            continue;
        }
        known.extend(key.value.as_column());
        needed.push(key);
    }
    needed
}
