//! A tree as DataFusion's logical plan, for today's optimizer and physical planner.
//!
//! Names of the plan are unique, so that nothing is captured. A column of a table is qualified by the table's alias,
//! with the reference's number behind it if another table has the same alias: `t.name`, `t#3.name`. The column has its
//! own name, by which access paths find it in the table. Every other column has the name that the query gives it, if no
//! other column is called so, and otherwise this name with its id behind it: `total#17`.
//!
//! What the algebra means by equality and order is spelled out here: texts are grouped and sorted by their sort keys.
//! That is done by functions of the typing rule (`sheaf_exec::typing`).
//!
//! A condition on the rows of a table is part of the scan, if the scan tests all of it.
//!
//! A subquery that is a value and takes nothing from outside is computed once, before the rest. Today's planner knows
//! it as an expression, so the column of a single join is replaced by that expression where it is used.
//!
//! The same holds for a value that is an error where there were several rows (`$only_row`): only those that ask for it
//! may hear of that. The columns that it is computed of are passed on with the rows.
//!
//! # Errors
//! `DataFusionError::NotImplemented` for dependent joins that the rules have left.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{
    Column as PlanColumn, DFSchema, NullEquality, Result, Spans, TableReference, internal_err,
    not_impl_err,
};
use datafusion_expr::logical_plan::{
    Aggregate, EmptyRelation, Filter, Join, JoinConstraint, JoinType, Limit, LogicalPlanBuilder,
    Projection, RecursiveQuery, Sort, Subquery, SubqueryAlias, TableScan, TableScanBuilder, Union,
};
use datafusion_expr::{
    Expr, ExprSchemable, GroupingSet, LogicalPlan, SortExpr, TableProviderFilterPushDown, cast, lit,
};
use sheaf_access::cancel;
use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::functions::types::TYPE_KEY;
use sheaf_exec::functions::{SqlType, scalar_function};
use sheaf_exec::json_table::Expand;
use sheaf_exec::lateral::Lateral;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::plan_size::check_room_for_list;
use sheaf_exec::row_by_row::{RowByRow, Step};
use sheaf_exec::typing::{group_by_key, key_of, typed, with_shown_digits};

use crate::column::{Column, ColumnId, Columns};
use crate::column_set::ColumnSet;
use crate::relation::{self, DependentKind, Item, JoinKind, Operator, Relation, SetKind};
use crate::rules::calls_only_row;
use crate::scalar::{Scalar, ScalarKind, Truth};

/// What marks are called.
const MARK: &str = "mark";

/// The plan, whose columns are those of the relation in their order.
pub fn to_logical_plan(relation: &Relation, columns: &Columns) -> Result<LogicalPlan> {
    match to_logical_plans(std::slice::from_ref(relation), columns)?.pop() {
        Some(plan) => Ok(plan),
        None => internal_err!("no plan"),
    }
}

/// The plans of several relations of one statement, whose columns are named once.
pub fn to_logical_plans(relations: &[Relation], columns: &Columns) -> Result<Vec<LogicalPlan>> {
    let mut used = HashSet::new();
    let tables = relations.iter().map(|relation| {
        let mut tables = HashMap::new();
        name_tables(relation, &mut tables, &mut used);
        Rc::new(tables)
    });
    let tables: Vec<_> = tables.collect();
    let names = Rc::new(name_columns(columns, used));
    let plans = relations.iter().zip(tables).map(|(relation, tables)| {
        let translation = Translation {
            columns,
            tables,
            names: Rc::clone(&names),
            outer: ColumnSet::new(),
        };
        translation.materialized(relation)
    });
    plans.collect()
}

struct Translation<'a> {
    columns: &'a Columns,
    /// What each reference to a table is called.
    tables: Rc<HashMap<u32, TableReference>>,
    /// What columns are called that are computed; those that have no name are called by their ids.
    names: Rc<HashMap<ColumnId, String>>,
    /// Columns of the queries around.
    outer: ColumnSet,
}

/// Columns by names that no other column has, neither one of a table. EXPLAIN shows them. Those that are made last come
/// first, because they are nearer to the result.
fn name_columns(columns: &Columns, mut used: HashSet<String>) -> HashMap<ColumnId, String> {
    let mut names = HashMap::new();
    // Columns of derived tables have a qualifier as well.
    let of_tables = columns.newest_first().map(|(_, column)| column);
    let of_tables = of_tables.filter(|column| column.origin.is_some());
    used.extend(of_tables.map(|column| column.field.name().to_lowercase()));
    // A mark join calls its own mark so, until it has a name of its own. The mark of another one may be below it.
    let is_mark = |(_, column): &(ColumnId, &Column)| column.name == MARK;
    if columns.newest_first().filter(is_mark).nth(1).is_some() {
        used.insert(MARK.to_string());
    }
    // Names of calls are those that aggregates have in a plan.
    let is_word = |name: &str| {
        let mut letters = name.chars();
        !name.is_empty() && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    for (id, column) in columns.newest_first() {
        let name = &column.name;
        if column.origin.is_some() || name.is_empty() {
            continue;
        }
        let name = match is_word(name) && used.insert(name.to_lowercase()) {
            true => name.clone(),
            false => format!("{name}{id}"),
        };
        names.insert(id, name);
    }
    names
}

/// Gives each reference a name that no other has. EXPLAIN shows it. `used`: the names of all columns of tables.
fn name_tables(
    relation: &Relation,
    tables: &mut HashMap<u32, TableReference>,
    used: &mut HashSet<String>,
) {
    if let Operator::Scan(scan) = relation.operator() {
        let schema = scan.source.schema();
        used.extend(
            schema
                .fields()
                .iter()
                .map(|field| field.name().to_lowercase()),
        );
    }
    if let Operator::Recursive(recursive) = relation.operator() {
        used.insert(recursive.name.to_lowercase());
    }
    let named = match relation.operator() {
        Operator::Scan(scan) => Some((scan.reference, &scan.name)),
        Operator::Project(project) => {
            let derived = project.derived.as_ref();
            derived.map(|derived| (derived.reference, &derived.name))
        }
        _ => None,
    };
    if let Some((reference, name)) = named
        && !tables.contains_key(&reference)
    {
        let is_taken = tables.values().any(|known| known.table() == name);
        let name = match is_taken {
            true => format!("{name}#{reference}"),
            false => name.clone(),
        };
        tables.insert(reference, TableReference::bare(name));
    }
    for input in relation.inputs() {
        name_tables(input, tables, used);
    }
}

/// A plan, and columns that are not in it but values of subqueries.
struct Translated {
    plan: LogicalPlan,
    values: HashMap<ColumnId, Expr>,
}

impl From<LogicalPlan> for Translated {
    fn from(plan: LogicalPlan) -> Translated {
        let values = HashMap::new();
        Translated { plan, values }
    }
}

impl Translation<'_> {
    fn name(&self, id: ColumnId) -> PlanColumn {
        let column = self.columns.get(id);
        let table = column
            .origin
            .and_then(|origin| self.tables.get(&origin.reference));
        match table {
            Some(table) => PlanColumn::new(Some(table.clone()), column.field.name()),
            None => PlanColumn::new_unqualified(match self.names.get(&id) {
                Some(name) => name.clone(),
                // Its table is not read.
                None => format!("{}{id}", column.name),
            }),
        }
    }

    fn column(&self, id: ColumnId) -> Expr {
        match self.outer.contains(id) {
            true => {
                let field = self.columns.get(id).field.as_ref().clone();
                let field = Arc::new(field.with_nullable(true));
                Expr::OuterReferenceColumn(field, self.name(id))
            }
            false => Expr::Column(self.name(id)),
        }
    }

    /// An expression under the name of a column.
    fn named(&self, expr: Expr, id: ColumnId) -> Expr {
        let name = self.name(id);
        match &expr {
            Expr::Column(column) if *column == name => expr,
            // An alias that repeats the expression's own name is dropped with its table when projections are merged.
            // One with metadata stays, even with nothing in it.
            _ if name.relation.is_some() && expr.schema_name().to_string() == name.name => {
                let stays = Some(FieldMetadata::new_empty());
                expr.alias_qualified_with_metadata(name.relation, name.name, stays)
            }
            _ => expr.alias_qualified(name.relation, name.name),
        }
    }

    fn expr(&self, scalar: &Scalar, values: &HashMap<ColumnId, Expr>) -> Result<Expr> {
        scalar.to_plan_expr(&|id, _: &FieldRef| {
            values.get(&id).cloned().unwrap_or_else(|| self.column(id))
        })
    }

    /// The plan with all columns in it.
    fn materialized(&self, relation: &Relation) -> Result<LogicalPlan> {
        self.materialized_where(relation, |_| true)
    }

    /// The plan with its columns in it, and those values that are needed.
    fn materialized_where(
        &self,
        relation: &Relation,
        is_needed: impl Fn(ColumnId) -> bool,
    ) -> Result<LogicalPlan> {
        let translated = self.relation(relation)?;
        self.with_values(relation, translated, is_needed)
    }

    fn with_values(
        &self,
        relation: &Relation,
        Translated { plan, values }: Translated,
        is_needed: impl Fn(ColumnId) -> bool,
    ) -> Result<LogicalPlan> {
        if values.is_empty() {
            return Ok(plan);
        }
        let columns = relation.columns().iter();
        let columns = columns.filter(|id| !values.contains_key(id) || is_needed(**id));
        let columns = columns.map(|id| match values.get(id) {
            Some(value) => self.named(value.clone(), *id),
            None => self.column(*id),
        });
        let projection = Projection::try_new(columns.collect(), Arc::new(plan))?;
        Ok(LogicalPlan::Projection(projection))
    }

    fn relation(&self, relation: &Relation) -> Result<Translated> {
        cancel::check_statement().map_err(access_error)?;
        match relation.operator() {
            Operator::Scan(scan) => {
                let Some(name) = self.tables.get(&scan.reference) else {
                    return internal_err!("a table without a name");
                };
                let scan = TableScanBuilder::new(name.clone(), Arc::clone(&scan.source));
                let scan = scan.build()?;
                Ok(LogicalPlan::TableScan(scan).into())
            }
            Operator::Filter(filter) => {
                let Translated { plan, values } = self.relation(&filter.input)?;
                let plan = match plan {
                    LogicalPlan::TableScan(scan) => {
                        match self.filtered_scan(scan, &filter.condition, &values)? {
                            Ok(scan) => {
                                let plan = LogicalPlan::TableScan(scan);
                                return Ok(Translated { plan, values });
                            }
                            Err(scan) => LogicalPlan::TableScan(scan),
                        }
                    }
                    plan => plan,
                };
                let condition = self.expr(&filter.condition, &values)?;
                let plan = match filter.condition.is_of_variables() {
                    true => RowByRow::plan(plan, Step::OneRow),
                    false => plan,
                };
                let plan = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?);
                Ok(Translated { plan, values })
            }
            Operator::Project(project) => {
                let Translated { plan, values } = self.relation(&project.input)?;
                check_room_for_list(project.items.len())?;
                let items = project.items.iter();
                let row_by_row = project.has_variables();
                let plan = match row_by_row {
                    true => RowByRow::plan(plan, Step::OneRow),
                    false => plan,
                };
                let with_all = |plan| match row_by_row {
                    true => RowByRow::plan(plan, Step::AllColumns),
                    false => plan,
                };
                if let Some(derived) = &project.derived
                    && let Some(name) = self.tables.get(&derived.reference)
                {
                    let items = items.map(|item| {
                        let value = self.expr(&item.value, &values)?;
                        Ok(value.unalias().alias(self.name(item.column).name))
                    });
                    let items = items.collect::<Result<_>>()?;
                    let projection = Projection::try_new(items, Arc::new(plan))?;
                    let rows = Arc::new(with_all(LogicalPlan::Projection(projection)));
                    let rows = SubqueryAlias::try_new(rows, name.clone())?;
                    return Ok(LogicalPlan::SubqueryAlias(rows).into());
                }
                let is_lazy = |item: &Item| !row_by_row && calls_only_row(&item.value);
                let mut lazy = HashMap::new();
                let mut shown = Vec::with_capacity(project.items.len());
                for item in items {
                    let value = self.expr(&item.value, &values)?;
                    match is_lazy(item) {
                        true => {
                            lazy.insert(item.column, value);
                        }
                        false => shown.push(self.named(value, item.column)),
                    }
                }
                add_operands(&lazy, &mut shown);
                let projection = Projection::try_new(shown, Arc::new(plan))?;
                Ok(Translated {
                    plan: with_all(LogicalPlan::Projection(projection)),
                    values: lazy,
                })
            }
            Operator::Join(join) => self.join(join),
            Operator::DependentJoin(join) => self.single(join),
            Operator::Expand(expand) => self.expand(expand),
            Operator::Group(group) => self.group(group),
            Operator::Window(window) => {
                let plan = self.materialized(&window.input)?;
                let functions = window.functions.iter();
                let column = |id: ColumnId, _: &FieldRef| self.column(id);
                let exprs = functions
                    .map(|(_, function)| function.to_expr(&column))
                    .collect::<Result<Vec<Expr>>>()?;
                let names: Vec<String> = exprs
                    .iter()
                    .map(|expr| expr.schema_name().to_string())
                    .collect();
                let mut known = HashSet::new();
                let mut distinct = exprs;
                distinct.retain(|expr| known.insert(expr.clone()));
                let plan = LogicalPlanBuilder::window_plan(plan, distinct)?;
                let below = window.input.columns().iter().map(|id| self.column(*id));
                let functions = window.functions.iter().zip(names).map(|((id, _), name)| {
                    self.named(Expr::Column(PlanColumn::new_unqualified(name)), *id)
                });
                let columns = below.chain(functions).collect();
                let projection = Projection::try_new(columns, Arc::new(plan))?;
                Ok(LogicalPlan::Projection(projection).into())
            }
            Operator::Sort(sort) => {
                let plan = self.materialized(&sort.input)?;
                let schema = Arc::clone(plan.schema());
                let keys = sort.keys.iter().map(|key| {
                    let value = self.expr(&key.value, &HashMap::new())?;
                    Ok(SortExpr {
                        expr: key_of(value, &schema)?,
                        asc: !key.descends,
                        nulls_first: !key.descends,
                    })
                });
                let expr = keys.collect::<Result<_>>()?;
                let input = Arc::new(plan);
                let fetch = None;
                Ok(LogicalPlan::Sort(Sort { expr, input, fetch }).into())
            }
            Operator::Limit(limit) => {
                let Translated { plan, values } = self.relation(&limit.input)?;
                let rows = |rows: u64| Box::new(lit(i64::try_from(rows).unwrap_or(i64::MAX)));
                let most = limit.fetch.and_then(|fetch| limit.skip.checked_add(fetch));
                let most = most.and_then(|most| usize::try_from(most).ok());
                let most = most.filter(|most| *most > 0);
                let plan = match (plan, most) {
                    (LogicalPlan::Sort(sort), Some(most)) => {
                        let fetch = Some(sort.fetch.map_or(most, |fetch| fetch.min(most)));
                        let sort = LogicalPlan::Sort(Sort { fetch, ..sort });
                        if limit.skip == 0 {
                            return Ok(Translated { plan: sort, values });
                        }
                        sort
                    }
                    (LogicalPlan::TableScan(mut scan), Some(most)) => {
                        scan.fetch = Some(scan.fetch.map_or(most, |fetch| fetch.min(most)));
                        LogicalPlan::TableScan(scan)
                    }
                    (plan, _) => plan,
                };
                let plan = LogicalPlan::Limit(Limit {
                    skip: (limit.skip > 0).then(|| rows(limit.skip)),
                    fetch: limit.fetch.map(rows),
                    input: Arc::new(plan),
                });
                Ok(Translated { plan, values })
            }
            Operator::SetOperation(operation) => self.set_operation(operation),
            Operator::Recursive(recursive) => self.recursive(recursive),
            Operator::Values(values) => self.values(values),
        }
    }

    /// The rows of a table that meet a condition, if all of it is tested by the scan. It is one expression, so that
    /// constants and what is written twice are seen.
    fn filtered_scan(
        &self,
        scan: TableScan,
        condition: &Scalar,
        values: &HashMap<ColumnId, Expr>,
    ) -> Result<std::result::Result<TableScan, TableScan>> {
        let columns = condition.columns();
        let takes_value = values.keys().any(|value| columns.contains(*value));
        if takes_value || condition.is_volatile() || scan.fetch.is_some() {
            return Ok(Err(scan));
        }
        let filter = self.expr(&cheap_first(condition), values)?;
        let taken = scan.source.supports_filters_pushdown(&[&filter])?;
        if taken != [TableProviderFilterPushDown::Exact] {
            return Ok(Err(scan));
        }
        let mut filters = scan.filters;
        filters.push(filter);
        let scan = TableScanBuilder::new(scan.table_name, scan.source);
        Ok(Ok(scan.with_filters(filters).build()?))
    }

    fn values(&self, values: &relation::Values) -> Result<Translated> {
        if values.columns.is_empty() {
            return Ok(LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row: !values.rows.is_empty(),
                schema: Arc::new(DFSchema::empty()),
            })
            .into());
        }
        if values.rows.is_empty() {
            return Ok(self.nothing(&values.columns)?.into());
        }
        let row = |row: &Vec<Scalar>| -> Result<Vec<Expr>> {
            row.iter()
                .map(|value| self.expr(value, &HashMap::new()))
                .collect()
        };
        let rows = values.rows.iter().map(row).collect::<Result<_>>()?;
        let plan = LogicalPlanBuilder::values(rows)?.build()?;
        let columns = plan.schema().columns().into_iter().zip(&values.columns);
        let columns = columns.map(|(column, id)| self.named(Expr::Column(column), *id));
        let projection = Projection::try_new(columns.collect(), Arc::new(plan))?;
        Ok(LogicalPlan::Projection(projection).into())
    }

    /// No rows, of these columns.
    fn nothing(&self, columns: &[ColumnId]) -> Result<LogicalPlan> {
        let fields = columns.iter().map(|id| {
            let PlanColumn { relation, name, .. } = self.name(*id);
            let field = self.columns.get(*id).field.as_ref().clone();
            (relation, Arc::new(field.with_name(name)))
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), HashMap::new())?;
        Ok(LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: false,
            schema: Arc::new(schema),
        }))
    }

    fn join(&self, join: &relation::Join) -> Result<Translated> {
        let Translated { plan, values } = self.relation(&join.left)?;
        // Of an inner join the values of both sides are those of the join.
        let (right, mut values_of_both) = match join.kind {
            JoinKind::Inner => {
                let Translated { plan, values } = self.relation(&join.right)?;
                (plan, values)
            }
            JoinKind::Mark(mark) => self.marked(join, mark)?,
            _ => (self.materialized(&join.right)?, HashMap::new()),
        };
        values_of_both.extend(values);
        let values = values_of_both;
        let left_values: Vec<ColumnId> = values.keys().copied().collect();
        let join_type = match join.kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::LeftOuter => JoinType::Left,
            JoinKind::Semi => JoinType::LeftSemi,
            JoinKind::Anti => JoinType::LeftAnti,
            JoinKind::Mark(_) => JoinType::LeftMark,
        };
        let null_aware = match join.kind {
            // Its key is a column.
            JoinKind::Anti => null_aware_pair(join).filter(|(left, _)| {
                let columns = left.columns();
                !values.keys().any(|value| columns.contains(*value))
            }),
            _ => None,
        };
        let (on, filter, is_null_aware) = match null_aware {
            Some((left, right)) => {
                let pair = (self.expr(left, &values)?, self.expr(right, &values)?);
                (vec![pair], None, true)
            }
            None => {
                let filter = join.condition.as_ref();
                let filter = filter.map(|condition| self.expr(condition, &values));
                (Vec::new(), filter.transpose()?, false)
            }
        };
        let plan = LogicalPlan::Join(Join::try_new(
            Arc::new(plan),
            Arc::new(right),
            on,
            filter,
            join_type,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            is_null_aware,
        )?);
        let JoinKind::Mark(mark) = join.kind else {
            return Ok(Translated { plan, values });
        };
        let Some(found) = plan.schema().columns().pop() else {
            return internal_err!("a mark join without its mark");
        };
        let left = join.left.columns().iter();
        let left = left.filter(|id| !left_values.contains(id));
        let columns = left.map(|id| self.column(*id));
        let mut columns: Vec<Expr> = columns
            .chain([self.named(Expr::Column(found), mark)])
            .collect();
        let mut values = values;
        values.retain(|id, _| join.left.columns().contains(id));
        add_operands(&values, &mut columns);
        let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
        Ok(Translated { plan, values })
    }

    /// The right side of a mark join, and what its columns are called. The mark is qualified as all columns of the
    /// right side are, if they agree in that. So these have one table, whatever other rules make of them.
    fn marked(
        &self,
        join: &relation::Join,
        mark: ColumnId,
    ) -> Result<(LogicalPlan, HashMap<ColumnId, Expr>)> {
        let plan = self.materialized(&join.right)?;
        let table = TableReference::bare(format!("marked {mark}"));
        let mut named = join
            .condition
            .as_ref()
            .map(Scalar::columns)
            .unwrap_or_default();
        named = named.intersection(&join.right.column_set());
        let mut items = Vec::new();
        let mut values = HashMap::new();
        for id in named.iter() {
            items.push(self.column(id).alias(id.to_string()));
            let column = PlanColumn::new(Some(table.clone()), id.to_string());
            values.insert(id, Expr::Column(column));
        }
        if items.is_empty() {
            items.push(lit(1i64).alias("row"));
        }
        let rows = LogicalPlan::Projection(Projection::try_new(items, Arc::new(plan))?);
        let rows = SubqueryAlias::try_new(Arc::new(rows), table)?;
        Ok((LogicalPlan::SubqueryAlias(rows), values))
    }

    /// The dependent joins that the rules leave, but for what cannot be run.
    fn single(&self, join: &relation::DependentJoin) -> Result<Translated> {
        let column = match join.kind {
            DependentKind::Single(column) => column,
            DependentKind::Inner => return self.lateral(join, false),
            DependentKind::LeftOuter => return self.lateral(join, true),
            _ => return not_impl_err!("a subquery that depends on rows around it in this form"),
        };
        if !join.right.free_columns().is_empty() || join.right.varies() {
            return self.applied(join, column);
        }
        let Translated { plan, mut values } = self.relation(&join.left)?;
        let subquery = self.materialized(&join.right)?;
        let value = value_of(subquery, Vec::new(), &join.right);
        values.insert(column, value);
        Ok(Translated { plan, values })
    }

    /// A value that is computed for each row. The planner knows it as a correlated subquery in a select list.
    fn applied(&self, join: &relation::DependentJoin, value: ColumnId) -> Result<Translated> {
        let plan = self.materialized(&join.left)?;
        let (subquery, outer_ref_columns) = self.correlated(&join.right)?;
        let subquery = value_of(subquery, outer_ref_columns, &join.right);
        let left = join.left.columns().iter().map(|id| self.column(*id));
        let items = left.chain([self.named(subquery, value)]).collect();
        let projection = Projection::try_new(items, Arc::new(plan))?;
        Ok(LogicalPlan::Projection(projection).into())
    }

    /// A query, and the columns of queries around that it names.
    fn correlated(&self, relation: &Relation) -> Result<(LogicalPlan, Vec<Expr>)> {
        let free = relation.free_columns().clone();
        let inner = Translation {
            columns: self.columns,
            tables: Rc::clone(&self.tables),
            names: Rc::clone(&self.names),
            outer: free.union(&self.outer),
        };
        let query = inner.materialized(relation)?;
        let outer = relation.free_columns().iter();
        let outer = outer.map(|id| inner.column(id)).collect();
        Ok((query, outer))
    }

    /// Rows that are computed for each row.
    fn lateral(&self, join: &relation::DependentJoin, keeps_rows: bool) -> Result<Translated> {
        let plan = self.materialized(&join.left)?;
        let mut right = join.right.as_ref().clone();
        if let Some(condition) = &join.condition {
            right = right.filter(condition.clone());
        }
        let (query, outer) = self.correlated(&right)?;
        let query = subquery_of(query, outer);
        let node = Lateral::try_new(Arc::new(plan), query, keeps_rows)?;
        Ok(node.into_plan().into())
    }

    fn group(&self, group: &relation::Group) -> Result<Translated> {
        let mut needed: ColumnSet = group.keys.iter().chain(&group.carried).copied().collect();
        for (_, aggregate) in &group.aggregates {
            let operands = aggregate.operands();
            operands.for_each(|operand| operand.add_columns(&mut needed));
        }
        let Translated { plan, values } = self.relation(&group.input)?;
        let mut by = group.keys.iter().chain(&group.carried);
        let is_lazy =
            !values.values().any(has_subquery) && !by.any(|column| values.contains_key(column));
        let (plan, values) = match is_lazy {
            true => (plan, values),
            false => {
                let translated = Translated { plan, values };
                let needed = |id| needed.contains(id);
                let plan = self.with_values(&group.input, translated, needed)?;
                (plan, HashMap::new())
            }
        };
        let keys: Vec<Expr> = group.keys.iter().map(|id| self.column(*id)).collect();
        let column = |id: ColumnId, _: &FieldRef| {
            let value = values.get(&id).cloned();
            value.unwrap_or_else(|| self.column(id))
        };
        let mut outputs = Vec::new();
        let mut aggregates: Vec<Expr> = Vec::new();
        let (mut known, mut names) = (HashMap::new(), HashSet::new());
        let mut add = |aggregate: Expr, id: ColumnId| {
            let name = known.entry(aggregate).or_insert_with_key(|aggregate| {
                let name = aggregate.schema_name().to_string();
                // Two may look alike: of NULLs of different types, for example.
                let is_taken = !names.insert(name.clone());
                let name = match is_taken {
                    true => format!("{name} {id}"),
                    false => name,
                };
                aggregates.push(match is_taken {
                    true => aggregate.clone().alias(name.clone()),
                    false => aggregate.clone(),
                });
                name
            });
            let column = PlanColumn::new_unqualified(name.clone());
            outputs.push(self.named(Expr::Column(column), id));
        };
        for id in &group.carried {
            let Some(any_value) = aggregate_function("any_value") else {
                return internal_err!("there is no any_value");
            };
            add(any_value.call(vec![self.column(*id)]), *id);
        }
        for (id, aggregate) in &group.aggregates {
            add(aggregate.to_expr(&column)?, *id);
        }
        let mut columns: Vec<Expr> = keys.iter().cloned().chain(outputs).collect();
        let keys = match group.rollup {
            None => keys,
            Some(level) => {
                let told = PlanColumn::new_unqualified(Aggregate::INTERNAL_GROUPING_ID);
                // Its width is that of as many bits as there are keys.
                let told = cast(Expr::Column(told), DataType::UInt64);
                columns.push(self.named(told, level));
                vec![Expr::GroupingSet(GroupingSet::Rollup(keys))]
            }
        };
        let aggregate = Aggregate::try_new(Arc::new(plan), keys, aggregates)?;
        let grouped = group_by_key(aggregate)?;
        let projection = Projection::try_new(columns, Arc::new(grouped))?;
        Ok(LogicalPlan::Projection(projection).into())
    }

    fn expand(&self, expand: &relation::Expand) -> Result<Translated> {
        let plan = self.materialized(&expand.input)?;
        let document = self.expr(&expand.document, &HashMap::new())?;
        let names = expand.columns.iter().map(|id| self.name(*id)).collect();
        let table = (Arc::clone(&expand.table), names);
        let kept = expand.kept.iter().map(|id| self.name(*id)).collect();
        let node = Expand::try_new(Arc::new(plan), document, kept, table, expand.keeps_rows)?;
        Ok(node.into_plan().into())
    }

    fn recursive(&self, recursive: &relation::Recursive) -> Result<Translated> {
        // A column has the name of the item that shows it, which may be that of another column.
        let mut used = HashSet::new();
        let names = recursive.columns.iter().map(|id| {
            let name = &self.columns.get(*id).name;
            match used.insert(name.to_lowercase()) {
                true => name.clone(),
                false => format!("{name}{id}"),
            }
        });
        let names: Vec<String> = names.collect();
        let part = |input: &Relation| {
            let plan = self.materialized(input)?;
            let columns = input.columns().iter().zip(&names);
            let columns = columns.map(|(of_input, name)| self.column(*of_input).alias(name));
            let projection = Projection::try_new(columns.collect(), Arc::new(plan))?;
            Ok::<_, datafusion_common::DataFusionError>(Arc::new(LogicalPlan::Projection(
                projection,
            )))
        };
        let (first, round) = (part(&recursive.first)?, part(&recursive.round)?);
        let name = recursive.name.clone();
        let query = RecursiveQuery::try_new(name, first, round, recursive.is_distinct)?;
        let query = LogicalPlan::RecursiveQuery(query);
        let columns = recursive.columns.iter().zip(names).map(|(id, name)| {
            let column = PlanColumn::new_unqualified(name);
            self.named(Expr::Column(column), *id)
        });
        let projection = Projection::try_new(columns.collect(), Arc::new(query))?;
        Ok(LogicalPlan::Projection(projection).into())
    }

    fn set_operation(&self, operation: &relation::SetOperation) -> Result<Translated> {
        if operation.kind != SetKind::Union {
            return not_impl_err!("{:?}", operation.kind);
        }
        // A union in DataFusion forgets which tables its columns are of.
        let of_union = |id: ColumnId| match self.name(id) {
            name if name.relation.is_none() => name,
            _ => PlanColumn::new_unqualified(id.to_string()),
        };
        let inputs = operation.inputs.iter().map(|input| {
            let plan = self.materialized(input)?;
            let columns = input.columns().iter().zip(&operation.columns);
            let columns = columns.map(|(of_input, id)| {
                let (column, name) = (self.column(*of_input), of_union(*id));
                // A union keeps what the types of its inputs have in common. A column that stands for an expression is
                // declared otherwise than the expression is.
                let (_, field) = column.to_field(plan.schema())?;
                let declared = &self.columns.get(*id).field;
                let is_declared = match SqlType::of(declared) {
                    SqlType::Text { .. } if field.data_type() == declared.data_type() => {
                        let ty = declared.metadata().get(TYPE_KEY);
                        ty.is_none() || ty == field.metadata().get(TYPE_KEY)
                    }
                    _ => true,
                };
                Ok(match &column {
                    _ if !is_declared => typed(column, declared).alias(name.name),
                    Expr::Column(same) if *same == name => column,
                    _ => column.alias(name.name),
                })
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let projection = Projection::try_new(columns, Arc::new(plan))?;
            Ok(Arc::new(LogicalPlan::Projection(projection)))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let union = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        let mut columns = operation.columns.iter();
        if columns.all(|id| self.name(*id).relation.is_none()) {
            return Ok(union.into());
        }
        let columns = operation.columns.iter();
        let columns = columns.map(|id| self.named(Expr::Column(of_union(*id)), *id));
        let projection = Projection::try_new(columns.collect(), Arc::new(union))?;
        Ok(LogicalPlan::Projection(projection).into())
    }
}

/// Adds the columns that values are computed of to those of a projection.
fn add_operands(values: &HashMap<ColumnId, Expr>, columns: &mut Vec<Expr>) {
    for value in values.values() {
        for operand in value.column_refs() {
            let operand = Expr::Column(operand.clone());
            if !columns.contains(&operand) {
                columns.push(operand);
            }
        }
    }
}

fn has_subquery(value: &Expr) -> bool {
    let found = value.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))));
    found.unwrap_or(true)
}

/// A condition whose parts without calls come first: fewer rows come to the others. Where something notes what it
/// meets, the order is the statement's.
fn cheap_first(condition: &Scalar) -> Cow<'_, Scalar> {
    let conjuncts = condition.conjuncts();
    let calls = |part: &Scalar| matches!(part.kind(), ScalarKind::Call { .. });
    let costs = |conjunct: &Scalar| conjunct.contains(&calls);
    if condition.notes() || conjuncts.is_sorted_by_key(costs) {
        return Cow::Borrowed(condition);
    }
    let mut conjuncts = conjuncts.to_vec();
    conjuncts.sort_by_key(costs);
    Cow::Owned(Scalar::and(conjuncts))
}

/// The operands of NOT IN: an antijoin by all pairs that may be equal, and by nothing else.
fn null_aware_pair(join: &relation::Join) -> Option<(&Scalar, &Scalar)> {
    let ScalarKind::Or(alternatives) = join.condition.as_ref()?.kind() else {
        return None;
    };
    let (equality, nulls) = alternatives.split_first()?;
    let (one, other) = equality.as_equality()?;
    let tested = |scalar: &Scalar| match scalar.kind() {
        ScalarKind::Test {
            operand,
            is: Truth::Null,
            negated: false,
        } => [one, other]
            .into_iter()
            .find(|one| *one == operand.as_ref()),
        _ => None,
    };
    let tested: Vec<&Scalar> = nulls.iter().map(tested).collect::<Option<_>>()?;
    let never_null = [&join.left, &join.right].map(|side| &side.properties().not_null);
    let may_be_null = |operand: &Scalar| {
        let is_known = |column| never_null.iter().any(|known| known.contains(column));
        operand.is_nullable() && !operand.as_column().is_some_and(is_known)
    };
    let mut operands = [one, other].into_iter();
    if operands.any(|operand| may_be_null(operand) && !tested.contains(&operand)) {
        return None;
    }
    debug_assert_eq!(equality.field().data_type(), &DataType::Boolean);
    let (left, right) = (join.left.column_set(), join.right.column_set());
    let (of_one, of_other) = (one.columns(), other.columns());
    if of_one.is_empty() || of_other.is_empty() {
        return None;
    }
    match (of_one.is_subset(&left), of_other.is_subset(&right)) {
        (true, true) => Some((one, other)),
        _ if of_one.is_subset(&right) && of_other.is_subset(&left) => Some((other, one)),
        _ => None,
    }
}

fn subquery_of(query: LogicalPlan, outer_ref_columns: Vec<Expr>) -> Subquery {
    Subquery {
        subquery: Arc::new(query),
        outer_ref_columns,
        spans: Spans::new(),
    }
}

/// The value of a subquery, which is NULL where it finds no row, whatever its column is.
fn value_of(subquery: LogicalPlan, outer_ref_columns: Vec<Expr>, rows: &Relation) -> Expr {
    let field = Arc::clone(subquery.schema().field(0));
    let value = Expr::ScalarSubquery(subquery_of(subquery, outer_ref_columns));
    let value = match scalar_function("$or_null") {
        Some(or_null) if !rows.gives_a_row() => or_null.call(vec![value]),
        _ => value,
    };
    with_shown_digits(value, &field)
}
