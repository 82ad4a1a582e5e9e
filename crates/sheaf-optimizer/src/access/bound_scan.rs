//! Scans whose conditions have places for values ([`sheaf_exec::operator::bound_values`]).
//!
//! The scan is planned for the values of the first run, as if they were literals. For those of each other run only what
//! follows from values is computed again: the ranges of its index, and the conditions on encoded bytes. Conditions that
//! are expressions read the values themselves.
//!
//! ```text
//!   planned with 10          run with 20                run with 2.5, or without a range
//!   lo <= ?0  lo: (-, 10]    the same parts of lo       other parts of lo, or another
//!                            bound: lo: (-, 20]         condition tested: planned anew
//! ```
//!
//! What else the plan relies on follows from the *shape* of the ranges: which parts of the index they bind, which of
//! these to one value, and which conditions they leave to be tested. Values with another shape need another plan. So do
//! values whose ranges hold much more than those that the plan was chosen for.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::FieldRef;
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchemaRef, Result, ScalarValue, not_impl_err};
use datafusion_expr::Expr;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_optimizer::simplify_expressions::ExprSimplifier;
use sheaf_access::{ColumnsCondition, Condition, IndexRef};
use sheaf_exec::operator::bound_values::{BoundParts, BoundRead, BoundValues};
use sheaf_exec::runtime::planning_options;
use sheaf_table::Table;

use crate::access::path::{AccessPath, condition_of};
use crate::access::ranges::{IndexRanges, index_ranges};
use crate::access::table_reference::TableReference;
use crate::estimate::condition::{Term, analyze};
use crate::estimate::statistics::{self, layout};
use crate::logical::apply::literal_on_the_right;
use crate::logical::places::number_of;

/// Ranges that hold this many times what the plan was chosen for are much more.
const MUCH_MORE: f64 = 10.0;

/// Entries that are never much.
const FEW_ENTRIES: f64 = 100.0;

/// The places of a plan, and what of it has to be bound before each run.
#[derive(Clone)]
pub struct Places {
    values: BoundValues,
    /// What each place is of.
    fields: Arc<[FieldRef]>,
    scans: Arc<Mutex<Vec<BoundScan>>>,
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places")
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

impl Places {
    /// Places of which the first run has these values.
    pub(crate) fn new(values: &[ScalarValue], fields: Arc<[FieldRef]>) -> Places {
        Places {
            values: BoundValues::new(values),
            fields,
            scans: Arc::default(),
        }
    }

    /// The expression with reads of the bound values in its places.
    pub(crate) fn read_in(&self, expr: Expr) -> Result<Transformed<Expr>> {
        expr.transform(|expr| {
            let place = number_of(&expr);
            let known = place.and_then(|number| Some((number, self.fields.get(number)?)));
            Ok(match known {
                Some((number, field)) => Transformed::yes(self.values.call(number, field)),
                None => Transformed::no(expr),
            })
        })
    }

    /// A condition on a table as its indexes see it, with the values that are bound now.
    pub(crate) fn term(&self, expr: &Expr, schema: &DFSchemaRef, table: &Table) -> Result<Term> {
        let literal = expr.clone().transform(|expr| {
            let place = number_of(&expr);
            let known = place.and_then(|number| Some((number, self.fields.get(number)?)));
            let Some((number, field)) = known else {
                return Ok(Transformed::no(expr));
            };
            let metadata = FieldMetadata::from(field.metadata());
            let metadata = (!metadata.is_empty()).then_some(metadata);
            let value = self.values.get(number)?;
            Ok(Transformed::yes(Expr::Literal(value, metadata)))
        })?;
        let literal = literal.data.transform_up(literal_on_the_right)?.data;
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(schema))
            .with_config_options(Arc::clone(planning_options()))
            .build();
        let simple = ExprSimplifier::new(context).simplify(literal)?;
        Ok(analyze(&simple, &table.definition))
    }

    /// Binds the plan to the values of its next run. False: it is no plan for them.
    ///
    /// # Errors
    /// Errors of index dives, and of memory.
    pub(crate) fn bind(&self, values: &[ScalarValue]) -> Result<bool> {
        self.values.bind(values);
        let scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        for scan in scans.iter() {
            if !scan.bind(self)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a scan by a path reads before each run. `condition` makes one of some of the table's filters.
    ///
    /// # Errors
    /// `NotImplemented`: paths that do more than walk over ranges. Such a plan is made for each run.
    pub(crate) fn add_scan(
        &self,
        table: &TableReference<'_>,
        path: &AccessPath,
        condition: impl Fn(&[usize]) -> Result<Option<Condition>>,
    ) -> Result<Arc<BoundRead>> {
        if path.merge.is_some() || path.jumps.is_some() {
            return not_impl_err!("an access by values that a run has of its own");
        }
        let depends = |index: IndexRef| table.depends_on_places(index);
        if !depends(path.index) && table.indexes().any(depends) {
            // Other values may have few rows in an index that these make no use of.
            return not_impl_err!("an access that another value would make otherwise");
        }
        let rest = |filters: &[usize]| -> Result<Option<ColumnsCondition>> {
            Ok(condition(filters)?.and_then(|condition| condition.rest))
        };
        let filters = table.filters.iter().map(|filter| BoundFilter {
            expr: filter.expr.clone(),
            term: (!filter.has_places).then(|| filter.term.clone()),
            is_encoded: table.encoded(filter).is_some(),
        });
        let read = Arc::new(BoundRead::default());
        let scan = BoundScan {
            table: Arc::clone(table.table),
            schema: Arc::new(table.qualified.clone()),
            index: path.index,
            filters: filters.collect(),
            shape: path.ranges.clone(),
            index_filters: (path.index_filters.clone(), rest(&path.index_filters)?),
            row_filters: (path.row_filters.clone(), rest(&path.row_filters)?),
            most_entries: MUCH_MORE * (table.bound(path.index)?.entries + FEW_ENTRIES),
            dive_limit: table.dive_limit,
            read: Arc::clone(&read),
        };
        let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        scans.push(scan);
        Ok(read)
    }
}

/// A condition on a scan.
struct BoundFilter {
    expr: Expr,
    /// Of one without places.
    term: Option<Term>,
    /// Whether it is tested on encoded bytes, if it is tested.
    is_encoded: bool,
}

/// A scan, and what it was planned for.
struct BoundScan {
    table: Arc<Table>,
    /// All columns of the table as the conditions name them.
    schema: DFSchemaRef,
    index: IndexRef,
    filters: Vec<BoundFilter>,
    shape: IndexRanges,
    /// Positions of the filters that are tested on entries, and those of them that are expressions.
    index_filters: (Vec<usize>, Option<ColumnsCondition>),
    /// The same of rows.
    row_filters: (Vec<usize>, Option<ColumnsCondition>),
    /// Entries from which on another plan may be better.
    most_entries: f64,
    dive_limit: usize,
    read: Arc<BoundRead>,
}

impl BoundScan {
    fn bind(&self, places: &Places) -> Result<bool> {
        let filters = self.filters.iter();
        let terms: Vec<Cow<'_, Term>> = filters
            .map(|filter| match &filter.term {
                Some(term) => Ok(Cow::Borrowed(term)),
                None => {
                    let term = places.term(&filter.expr, &self.schema, &self.table)?;
                    Ok(Cow::Owned(term))
                }
            })
            .collect::<Result<_>>()?;
        let ranges = index_ranges(&terms, layout(&self.table, self.index));
        if !ranges.has_shape_of(&self.shape) {
            return Ok(false);
        }
        let entries = match ranges.is_full() {
            true => 0.0,
            false => statistics::entries_in(&self.table, self.index, &ranges, self.dive_limit)?,
        };
        if entries > self.most_entries {
            return Ok(false);
        }
        let Some(index_condition) = self.condition(&self.index_filters, &terms) else {
            return Ok(false);
        };
        let Some(row_condition) = self.condition(&self.row_filters, &terms) else {
            return Ok(false);
        };
        self.read.bind(BoundParts {
            ranges: ranges.ranges.as_ref().clone(),
            index_condition,
            row_condition,
        });
        Ok(true)
    }

    /// A condition of the access method; `None` if it takes other parts than the planned one.
    fn condition(
        &self,
        (filters, rest): &(Vec<usize>, Option<ColumnsCondition>),
        terms: &[Cow<'_, Term>],
    ) -> Option<Option<Condition>> {
        let mut encoded = Vec::new();
        for at in filters {
            if self.filters.get(*at)?.is_encoded {
                encoded.push(terms.get(*at)?.encoded(&self.table.definition)?);
            }
        }
        Some(condition_of(encoded, rest.clone()))
    }
}
