//! Whether a subquery finds its rows by an index or by a key: then it may run for each row.

use sheaf_exec::SheafTableSource;

use crate::column_set::ColumnSet;
use crate::relation::{Operator, Relation};
use crate::scalar::{Comparison, ScalarKind};

/// How the first columns of indexes are compared with what comes from outside.
#[derive(Default)]
pub(super) struct FoundByIndex {
    /// Columns with a lower bound that a join can look up, and with an upper one.
    lower: ColumnSet,
    upper: ColumnSet,
}

impl FoundByIndex {
    /// Whether an index has one value, or a range with both ends.
    pub(super) fn is_bounded(&self) -> bool {
        self.lower.intersects(&self.upper)
    }
}

/// Whether, and how, a subquery compares the first column of an index with what it takes from outside.
pub(super) fn found_by_index(relation: &Relation, outer: &ColumnSet) -> Option<FoundByIndex> {
    let indexed = first_of_indexes(relation);
    let mut found = None;
    add_compared(relation, &indexed, outer, &mut found);
    found
}

/// The columns that indexes of its tables begin with.
pub(in crate::rules) fn first_of_indexes(relation: &Relation) -> ColumnSet {
    let mut indexed = ColumnSet::new();
    add_indexed(relation, &mut indexed);
    indexed
}

fn add_indexed(relation: &Relation, indexed: &mut ColumnSet) {
    if let Operator::Scan(scan) = relation.operator()
        && let Some(source) = scan.source.downcast_ref::<SheafTableSource>()
    {
        let indexes = source.table.definition.indexes();
        let indexes = indexes.filter(|index| source.uses(index));
        let first = indexes.filter_map(|index| index.parts.first());
        indexed.extend(first.filter_map(|part| scan.columns.get(part.column).copied()));
    }
    for input in relation.inputs() {
        add_indexed(input, indexed);
    }
}

fn add_compared(
    relation: &Relation,
    indexed: &ColumnSet,
    outer: &ColumnSet,
    found: &mut Option<FoundByIndex>,
) {
    relation.for_each_scalar(&mut |scalar| {
        for conjunct in scalar.conjuncts() {
            let ScalarKind::Comparison {
                operator,
                left,
                right,
            } = conjunct.kind()
            else {
                continue;
            };
            let (is_lower, is_upper) = match operator {
                Comparison::Greater | Comparison::GreaterOrEqual => (true, false),
                Comparison::Less | Comparison::LessOrEqual => (false, true),
                Comparison::Equal | Comparison::NullSafeEqual => (true, true),
                Comparison::NotEqual => (false, false),
            };
            let sides = [
                (left, right, is_lower, is_upper),
                (right, left, is_upper, is_lower),
            ];
            for (column, of, is_lower, is_upper) in sides {
                let Some(id) = crate::properties::plain_column(column) else {
                    continue;
                };
                let of_outer = of.columns();
                if !indexed.contains(id)
                    || !of_outer.intersects(outer)
                    || !of_outer.is_subset(outer)
                {
                    continue;
                }
                let found = found.get_or_insert_default();
                // Under a cast it is compared as another type, for which the index may have no range.
                if column.as_column().is_some() || column.field().data_type().is_integer() {
                    if is_lower {
                        found.lower.insert(id);
                    }
                    if is_upper {
                        found.upper.insert(id);
                    }
                }
            }
        }
    });
    for input in relation.inputs() {
        add_compared(input, indexed, outer, found);
    }
}

/// Whether something ends with a number of rows, for which a join would find all.
pub(super) fn has_limit(relation: &Relation) -> bool {
    matches!(relation.operator(), Operator::Limit(_))
        || relation.inputs().into_iter().any(has_limit)
}

/// Whether it shows the first rows of something.
pub(super) fn is_cut(relation: &Relation) -> bool {
    match relation.operator() {
        Operator::Limit(_) => true,
        Operator::Project(project) => is_cut(&project.input),
        Operator::Filter(filter) => is_cut(&filter.input),
        Operator::Sort(sort) => is_cut(&sort.input),
        _ => false,
    }
}

/// Whether what a subquery takes from outside is equal to a key of its rows, of which there is at most one then.
pub(super) fn is_found_by_key(relation: &Relation) -> bool {
    match relation.operator() {
        Operator::Project(project) => is_found_by_key(&project.input),
        Operator::Sort(sort) => is_found_by_key(&sort.input),
        Operator::Filter(filter) => {
            let own = filter.input.column_set();
            let mut given = ColumnSet::new();
            for conjunct in filter.condition.conjuncts() {
                let Some((one, other)) = conjunct.as_equality() else {
                    continue;
                };
                for (side, of) in [(one, other), (other, one)] {
                    if let Some(column) = crate::properties::exact_column(side)
                        && !of.columns().intersects(&own)
                    {
                        given.insert(column);
                    }
                }
            }
            filter.input.properties().has_key_among(&given)
        }
        _ => false,
    }
}
