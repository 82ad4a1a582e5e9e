//! What SqlToRel asks about tables and functions, answered for a lowered query.
//!
//! Tables are looked up by the number that the pass over the syntax tree gave to their reference. Functions are looked
//! up among Sheaf's own and the few of DataFusion's that mean what MySQL means.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, TableReference, plan_err};
use datafusion_expr::planner::{ContextProvider, ExprPlanner};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use sheaf_access::CancelFlag;
use sheaf_exec::WorkTableSource;
use sheaf_exec::aggregates::{aggregate_function, aggregate_names};
use sheaf_exec::functions::{function_names, scalar_function};

use crate::any_row::AnyRowPlanner;
use crate::last_insert_id::{InsertIdCell, SET_LAST_INSERT_ID};
use crate::lower;
use crate::sleep::{SLEEP, sleep_function};

/// The window function (not aggregate) of this name. MySQL's windows are standard SQL, and so are DataFusion's.
pub fn window_function(name: &str) -> Option<Arc<WindowUDF>> {
    static FUNCTIONS: LazyLock<Vec<Arc<WindowUDF>>> =
        LazyLock::new(datafusion_functions_window::all_default_window_functions);
    FUNCTIONS
        .iter()
        .find(|function| function.name() == name)
        .cloned()
}

/// The tables and functions of one statement.
pub struct StatementContext<'a> {
    tables: &'a [lower::TableReference],
    options: &'a ConfigOptions,
    insert_id: InsertIdCell,
    cancel: CancelFlag,
}

impl<'a> StatementContext<'a> {
    pub fn new(
        tables: &'a [lower::TableReference],
        options: &'a ConfigOptions,
        insert_id: InsertIdCell,
        cancel: CancelFlag,
    ) -> StatementContext<'a> {
        StatementContext {
            tables,
            options,
            insert_id,
            cancel,
        }
    }
}

impl ContextProvider for StatementContext<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let number = name
            .table()
            .strip_prefix('#')
            .and_then(|number| number.parse::<usize>().ok());
        match number.and_then(|number| self.tables.get(number)) {
            Some(table) => Ok(Arc::clone(&table.source)),
            None => plan_err!("no table {name}"),
        }
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(Arc::new(WorkTableSource::new(name.to_string(), schema)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        static PLANNERS: LazyLock<[Arc<dyn ExprPlanner>; 1]> =
            LazyLock::new(|| [Arc::new(AnyRowPlanner) as Arc<dyn ExprPlanner>]);
        PLANNERS.as_slice()
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if name == SET_LAST_INSERT_ID {
            return Some(self.insert_id.function());
        }
        if name == SLEEP {
            return Some(sleep_function(self.cancel.clone()));
        }
        scalar_function(name)
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        aggregate_function(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        window_function(name)
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.options
    }

    fn udf_names(&self) -> Vec<String> {
        function_names().map(str::to_string).collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        aggregate_names().map(str::to_string).collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}
