//! The trace of how a table may be read.

use sheaf_access::{Fetch, IndexRef, SortKeys};
use sheaf_storage::Direction;

use crate::PlannerSettings;
use crate::access::path::AccessPath;
use crate::access::range_text::range_texts;
use crate::access::table_reference::TableReference;
use crate::access::wanted::Wanted;
use crate::estimate::statistics::layout;
use crate::json::{Json, Object};
use crate::trace::{Lost, Trace, with_verdict};

/// Ranges of an index that are shown, at most.
const MAX_SHOWN_RANGES: usize = 20;

/// What was considered for one table; empty and without cost if the trace is off.
pub(crate) struct Alternatives<'t> {
    trace: &'t Trace,
    tried: Vec<Tried>,
}

enum Tried {
    Path(Box<AccessPath>),
    /// An index for which there is no path, or none by multi-range read.
    Without {
        index: IndexRef,
        by_mrr: bool,
        lost: Lost,
    },
}

impl<'t> Alternatives<'t> {
    pub(crate) fn new(trace: &'t Trace) -> Alternatives<'t> {
        Alternatives {
            trace,
            tried: Vec::new(),
        }
    }

    /// A way to read the table, whose cost will decide.
    pub(crate) fn consider(&mut self, path: &AccessPath) {
        if self.trace.is_on() {
            self.tried.push(Tried::Path(Box::new(path.clone())));
        }
    }

    /// There is no way through this index.
    pub(crate) fn without(&mut self, index: IndexRef, lost: Lost) {
        if self.trace.is_on() {
            self.tried.push(Tried::Without {
                index,
                by_mrr: false,
                lost,
            });
        }
    }

    /// There is no multi-range read through this index.
    pub(crate) fn without_multi_range(&mut self, index: IndexRef, settings: &PlannerSettings) {
        if self.trace.is_on() {
            let lost = match settings.switch.mrr {
                false => Lost::Switch("mrr"),
                true => Lost::NotApplicable("too few rows"),
            };
            self.tried.push(Tried::Without {
                index,
                by_mrr: true,
                lost,
            });
        }
    }

    /// Records all alternatives, `chosen` as the one that was taken.
    pub(crate) fn decide(self, table: &TableReference<'_>, wanted: &Wanted, chosen: &AccessPath) {
        let tried = self.tried;
        self.trace.step("rows_estimation", || {
            let paths: Vec<Json> = tried
                .iter()
                .map(|tried| match tried {
                    Tried::Path(path) => {
                        let lost = match is_same(path, chosen) {
                            true => None,
                            // A dearer one was taken only because a hint wants it.
                            false if path.cost_us < chosen.cost_us => Some(Lost::Hint),
                            false => Some(Lost::Cost),
                        };
                        with_verdict(describe(table, path), lost).into()
                    }
                    Tried::Without {
                        index,
                        by_mrr,
                        lost,
                    } => {
                        let object = Object::new()
                            .with("index", table.index_name(*index))
                            .with_flag("using_mrr", *by_mrr)
                            .with("usable", false);
                        with_verdict(object, Some(*lost)).into()
                    }
                })
                .collect();
            Object::new()
                .with("table", table.source.alias.as_str())
                .with("rows", Json::count(table.table_rows))
                .with("rows_after_conditions", Json::count(table.rows))
                .with_flag("order_wanted", !wanted.order.is_empty())
                .with_some("limit_wanted", wanted.limit)
                .with("considered_access_paths", paths)
                .into()
        });
    }
}

fn is_same(path: &AccessPath, chosen: &AccessPath) -> bool {
    path.index == chosen.index
        && path.fetch == chosen.fetch
        && path.direction == chosen.direction
        && path.ranges == chosen.ranges
        && path.jumps.is_some() == chosen.jumps.is_some()
        && path.first_of == chosen.first_of
        && path.merge.is_some() == chosen.merge.is_some()
}

fn describe(table: &TableReference<'_>, path: &AccessPath) -> Object {
    let index = path.index;
    let scans_all = path.ranges.is_full();
    let access_type = match (index, scans_all) {
        (IndexRef::Clustered, true) if !path.ordered => "table_scan",
        (_, true) => "index_scan",
        (_, false) => "range",
    };
    let mut object = Object::new()
        .with("access_type", access_type)
        .with("index", table.index_name(index));
    if !scans_all {
        let texts = range_texts(
            &table.terms(),
            layout(table.table, index),
            &table.table.definition,
            MAX_SHOWN_RANGES,
        );
        object.add("ranges", texts);
        object.add("range_count", path.ranges.ranges.len());
        object.add("used_key_parts", path.ranges.parts);
    }
    if let Some(merge) = &path.merge {
        let names: Vec<Json> = merge
            .inputs
            .iter()
            .map(|input| table.index_name(input.index).into())
            .collect();
        object.add("merged_indexes", names);
    }
    if path.jumps.is_some() || path.first_of.is_some() {
        object.add("rows_walked", Json::count(path.walked));
    }
    object.add("rows", Json::count(path.entries));
    object.add("pages", Json::count(path.pages));
    object.add("resident", Json::fixed(path.resident, 2));
    let conditions = [
        ("index_condition", &path.index_filters),
        ("attached_condition", &path.row_filters),
    ];
    for (name, filters) in conditions {
        let selectivity = table.shares.kept(filters, &path.ranges.consumed);
        if !filters.is_empty() {
            let condition = Object::new()
                .with("conditions", filters.len())
                .with("selectivity", Json::fixed(selectivity, 4));
            object.add(name, condition);
        }
    }
    if index != IndexRef::Clustered {
        object.add("index_only", matches!(path.fetch, Fetch::Covering));
        if !matches!(path.fetch, Fetch::Covering) {
            object.add("rows_fetched", Json::count(path.lookups));
            let resident = table.resident(IndexRef::Clustered).ok();
            object = object.with_some("rows_resident", resident.map(|share| Json::fixed(share, 2)));
        }
        if let Fetch::MultiRange { buffer_bytes, sort } = path.fetch {
            let mrr = Object::new().with("buffer_bytes", buffer_bytes).with(
                "sort",
                match sort {
                    SortKeys::Always => "always",
                    SortKeys::Auto => "unless resident",
                },
            );
            object.add("using_mrr", mrr);
        } else {
            object.add("using_mrr", false);
        }
    }
    object
        .with_flag("using_jumps", path.jumps.is_some())
        .with_flag("loose_scan", path.first_of.is_some())
        .with_flag("index_merge", path.merge.is_some())
        .with_flag("backward", path.direction == Direction::Backward)
        .with_flag("ordered", path.ordered)
        .with("cost", Json::fixed(path.cost_us, 2))
}
