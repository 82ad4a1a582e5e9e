//! The step of a join that looks keys up in an index of the table that is added.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion_common::{Column, Result, internal_err};
use datafusion_expr::Expr;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Literal;
use sheaf_access::{Fetch, IndexRef, KeyedLookupSpec};
use sheaf_exec::SheafTableSource;
use sheaf_exec::keyed_join::exec::{KeyBound, KeyColumn, KeyedJoin, KeyedJoinExec, KeyedJoinType};

use super::{Builder, JoinCondition, Joined};
use crate::access::keyed_access::{KeySource, LookupPath, outer_value};
use crate::access::table_reference::{TableReference, table_column};
use crate::adaptive::lookup_regret::DoubtedLookups;
use crate::estimate::statistics::layout as key_layout;
use crate::explain::table_detail::TableDetail;
use crate::explain::{ExplainRow, ExtraNote};
use crate::join::first_rows::FirstRows;
use crate::join::order::Step;
use crate::logical::equality::Equality;
use crate::logical::inequality::Inequality;
use crate::logical::join_graph::{RelationKind, plain_scan};
use crate::logical::semantics;

impl Builder<'_, '_, '_> {
    /// A join that looks keys up.
    pub(super) fn keyed(
        &self,
        before: Joined,
        step: &Step,
        table: &TableReference<'_>,
        path: &LookupPath,
        condition: JoinCondition,
        needed: &BTreeSet<Column>,
    ) -> Result<Joined> {
        let (planner, block) = (self.planner, self.block);
        let context = planner.context;
        let relation = &self.graph.relations[step.relation];
        let outer_schema = before.schema()?;
        let definition = &table.table.definition;
        let layout = key_layout(table.table, path.index);
        let mut keys = Vec::with_capacity(path.key.len());
        let mut in_key = BTreeSet::new();
        for (source, part) in path.key.iter().zip(&layout.parts) {
            let Some(column) = part.column else {
                return internal_err!("a row id in a join key");
            };
            let expr: Arc<dyn PhysicalExpr> = match source {
                KeySource::Join(position) => {
                    in_key.insert(*position);
                    planner.expr(
                        outer_value(&condition.equalities[*position].outer),
                        &outer_schema,
                        block,
                    )?
                }
                KeySource::Constant(value) => Arc::new(Literal::new(value.clone())),
            };
            keys.push(KeyColumn::new(expr, &definition.columns[column].ty));
        }
        let mut bounds = Vec::with_capacity(path.bounds.len());
        for bound in &path.bounds {
            let part = layout.parts.get(path.key.len());
            let Some(column) = part.and_then(|part| part.column) else {
                return internal_err!("a row id between bounds");
            };
            bounds.push(KeyBound {
                column: KeyColumn::new(
                    planner.expr(outer_value(&bound.outer), &outer_schema, block)?,
                    &definition.columns[column].ty,
                ),
                side: bound.side(),
                included: bound.is_inclusive(),
            });
        }
        // What the key does not say is tested on the joined row, and so are the bounds.
        let open = condition
            .equalities
            .iter()
            .enumerate()
            .filter(|(position, _)| !in_key.contains(position));
        let residual: Vec<Expr> = open
            .map(|(_, equality)| equality.condition())
            .chain(condition.rest)
            .collect();

        let join_type = match relation.kind {
            RelationKind::Inner => KeyedJoinType::Inner,
            RelationKind::Outer => KeyedJoinType::LeftOuter,
            RelationKind::Semi => KeyedJoinType::Semi,
            RelationKind::Anti { .. } => KeyedJoinType::Anti,
            RelationKind::Mark => KeyedJoinType::Mark,
        };
        let delivers_inner = matches!(join_type, KeyedJoinType::Inner | KeyedJoinType::LeftOuter);
        // Columns of the table that are looked up: delivered, or read by the residual condition.
        let mut inner_columns: Vec<Column> = Vec::new();
        for column in &relation.columns {
            let in_residual = residual
                .iter()
                .any(|expr| expr.column_refs().contains(column));
            if in_residual || (delivers_inner && needed.contains(column)) {
                inner_columns.push(column.clone());
            }
        }
        let mut projection = Vec::with_capacity(inner_columns.len());
        let mut inner_fields = Vec::with_capacity(inner_columns.len());
        for column in &inner_columns {
            let Some(position) = table_column(relation, table, column) else {
                return internal_err!("column {column} is not in its table");
            };
            projection.push(position);
            let field = sheaf_access::field_at(definition, position).with_name(column.name());
            let nullable = field.is_nullable() || join_type == KeyedJoinType::LeftOuter;
            inner_fields.push(Arc::new(field.with_nullable(nullable)));
        }
        let switch = match context.settings.switch.bounded_regret
            && self.hints.methods(step.relation).hash
            && path.looks_up_values()
        {
            true => planner.lookup_switch(
                block,
                &DoubtedLookups {
                    table,
                    path,
                    keys: &keys,
                    projection: &projection,
                    rows: before.rows,
                    most_rows: before.most_rows,
                    workers: step.workers,
                    row_bytes: relation.row_bytes,
                    max_bytes: self.switch_bytes,
                },
            )?,
            false => None,
        };
        let spec = KeyedLookupSpec {
            table: Arc::clone(table.table),
            view: context.view_of(table.source),
            index: path.index,
            key_parts: path.key.len(),
            ranged: !bounds.is_empty(),
            index_condition: table.condition(planner, block, &path.index_filters)?,
            row_condition: table.condition(planner, block, &path.row_filters)?,
            projection,
            fetch: path.fetch,
            batched: path.batched,
            sort_keys: path.sort_keys,
            buffer_bytes: path.buffer_bytes,
            batch: context.settings.batch(),
        };
        let inner_fields = Fields::from(inner_fields);
        let mut row = self.explain_lookup(table, path, &condition.equalities, &residual, join_type);
        if let Some(switch) = &switch {
            row.may_switch_to_hash_join(switch.limit_us);
        }
        let filter = self.join_filter(
            residual,
            &before.layout,
            before.plan.schema().fields(),
            &inner_columns,
            &inner_fields,
        )?;

        let outer_fields = before.plan.schema();
        let mut both: Vec<(Column, Arc<Field>)> = before
            .layout
            .iter()
            .cloned()
            .zip(outer_fields.fields().iter().cloned())
            .collect();
        if delivers_inner {
            both.extend(inner_columns.into_iter().zip(inner_fields.iter().cloned()));
        } else if let Some(mark) = &relation.mark {
            both.push((
                mark.clone(),
                Arc::new(Field::new(mark.name(), DataType::Boolean, false)),
            ));
        }
        let kept: Vec<usize> = (0..both.len())
            .filter(|position| needed.contains(&both[*position].0))
            .collect();
        let fields: Vec<_> = kept
            .iter()
            .map(|position| Arc::clone(&both[*position].1))
            .collect();
        let mut explain = before.explain;
        explain.push(row);
        let budget = match &planner.budget {
            Some(budget) => {
                let prices = path.prices(table, before.rows, &context.settings.costs)?;
                Some((budget.clone(), prices))
            }
            None => None,
        };
        let plan = KeyedJoinExec::new(KeyedJoin {
            outer: before.plan,
            spec: Arc::new(spec),
            keys,
            bounds,
            join_type,
            filter,
            schema: Arc::new(Schema::new(fields)),
            alias: table.source.alias.clone(),
            counters: Arc::clone(&context.counters),
            cancel: context.cancel.clone(),
            projection: kept.clone(),
            in_order: self.first_rows.as_ref().is_some_and(FirstRows::is_ordered),
            starts_small: self.first_rows.is_some(),
            budget,
            switch,
        })?;
        let layout = kept
            .into_iter()
            .map(|position| both[position].0.clone())
            .collect();
        Ok(Joined {
            plan: Arc::new(plan),
            layout,
            rows: before.rows,
            cost_us: before.cost_us,
            unstopped_us: before.unstopped_us,
            most_rows: before.most_rows,
            explain,
        })
    }

    fn explain_lookup(
        &self,
        table: &TableReference<'_>,
        path: &LookupPath,
        equalities: &[Equality],
        residual: &[Expr],
        join_type: KeyedJoinType,
    ) -> ExplainRow {
        let type_ = path.access_type(table);
        let mut row = self.block.row(&table.source.alias, type_);
        let layout = key_layout(table.table, path.index);
        let columns: Vec<usize> = layout.parts[..path.parts()]
            .iter()
            .filter_map(|part| part.column)
            .collect();
        row.possible_keys = table.possible_keys(&columns);
        row.key = Some(table.index_name(path.index).to_string());
        row.key_len = Some(layout.mysql_key_len(path.parts()).to_string());
        let sources = path.key.iter().map(|source| match source {
            KeySource::Constant(_) => "const".to_string(),
            KeySource::Join(position) => self.column_name(&equalities[*position].outer),
        });
        let mut sources: Vec<String> = sources.collect();
        if !path.bounds.is_empty() {
            sources.push("func".to_string());
        }
        row.ref_ = Some(sources.join(","));
        let tested: Vec<usize> = [path.index_filters.as_slice(), &path.row_filters].concat();
        let kept = table.shares.kept(&tested, &path.implied);
        row.estimate(path.entries_per_key, path.entries_per_key * kept);
        if !path.index_filters.is_empty() {
            row.add(ExtraNote::UsingIndexCondition);
        }
        if !path.row_filters.is_empty() || !residual.is_empty() {
            row.add(ExtraNote::UsingWhere);
        }
        match path.fetch {
            Fetch::MultiRange { .. } => row.add(ExtraNote::UsingMrr),
            Fetch::Covering if path.index != IndexRef::Clustered => row.add(ExtraNote::UsingIndex),
            _ => {}
        }
        match join_type {
            KeyedJoinType::Semi => row.add(ExtraNote::FirstMatch),
            KeyedJoinType::Anti => row.add(ExtraNote::NotExists),
            _ => {}
        }
        if path.batched {
            row.add(ExtraNote::BatchedKeyAccess);
        }
        row.detail = Some(Arc::new(TableDetail {
            fetch: path.fetch,
            key_parts: path.parts(),
            bounds: path.bounds.iter().map(Inequality::condition).collect(),
            residual: residual.to_vec(),
            ..table.detail(path.index, &path.index_filters, &path.row_filters)
        }));
        row
    }

    /// What EXPLAIN's `ref` says for a value of a join key: a column with its database and table, or "func".
    fn column_name(&self, expr: &Expr) -> String {
        let named = semantics::compared_column(expr).and_then(|column| {
            let number = self.graph.relation_of(column).ok()?;
            let (scan, _) = plain_scan(self.graph.relations[number].plan)?;
            let source = scan.source.downcast_ref::<SheafTableSource>()?;
            Some(format!(
                "{}.{}.{}",
                source.table.definition.database,
                source.alias,
                column.name()
            ))
        });
        named.unwrap_or_else(|| "func".to_string())
    }
}
