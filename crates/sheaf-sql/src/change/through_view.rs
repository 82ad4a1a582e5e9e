//! Changes through views.
//!
//! A view whose rows are those of one table is changed by changing the table. The binder delivers the clustered keys of
//! the table's rows with those of the view (`bind/view.rs` of the front end), so UPDATE and DELETE find what to change
//! as they find it in a table. What is needed besides is said here: which column of the table a column of the view is,
//! and what WITH CHECK OPTION asks of new rows.
//!
//! ```text
//!   CREATE VIEW v (n, x) AS SELECT id, a + 1 FROM t WHERE a > 5 WITH CHECK OPTION
//!
//!   n -> id      x -> nothing, error 1348      new rows: (a > 5) IS TRUE, error 1369
//! ```
//!
//! A view of a view has what its own query leaves of the other one. LOCAL asks for the condition of the view itself
//! and for what the views below ask for; CASCADED asks for the conditions of all of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_frontend::bind::view::only_table;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_table::view::{View, ViewCheck, ViewDefinition, ViewSecurity};
use sheaf_table::{AccountName, Privileges, QualifiedName, Table};
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::change::assigned::last_part;
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::change::name_of;
use crate::parser::parse_statement;
use crate::parser::statement::Statement;
use crate::session::Session;

/// The deepest nesting of views that are changed through.
const MAX_VIEWS: usize = 64;

/// A view, and the table whose rows it has.
#[derive(Clone)]
pub(crate) struct ChangedView {
    pub(crate) database: String,
    pub(crate) name: String,
    pub(crate) table: Arc<Table>,
    /// What the table is called in the query that reads it.
    pub(crate) alias: String,
    /// The view's columns, with their positions in the table; `None`: what is computed.
    pub(crate) columns: Vec<(String, Option<usize>)>,
    /// What new rows have to be.
    pub(crate) conditions: Vec<Condition>,
    /// All conditions of the view and of those below it.
    all_conditions: Vec<Condition>,
    /// Which account needs the privilege on which table, besides the session on the view itself. `None`: the session.
    needs: Vec<(Option<AccountName>, QualifiedName)>,
}

/// A condition of a view, over columns of the table.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// The view that error 1369 names.
    pub(crate) view: String,
    /// `None`: it is about more than one row.
    pub(crate) expression: Option<ast::Expr>,
}

impl ChangedView {
    /// The position in the table of a column of the view; `None` if it has no such column. Error 1348.
    pub(crate) fn column(&self, name: &str) -> Result<Option<usize>> {
        let mut columns = self.columns.iter();
        match columns.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            None => Ok(None),
            Some((_, Some(position))) => Ok(Some(*position)),
            Some((_, None)) => Err(SqlError::new(
                codes::NONUPDATEABLE_COLUMN,
                format!("Column '{name}' is not updatable"),
            )),
        }
    }

    /// What ON DUPLICATE KEY UPDATE assigns, over the columns of the table. Errors 1348 and 1054 for a target; 1054 for
    /// a value of what the view does not have, 1235 for one that has a subquery, or what the view computes.
    pub(crate) fn assignments(
        &self,
        mut assignments: Vec<ast::Assignment>,
    ) -> Result<Vec<ast::Assignment>> {
        let position_of = |name: &str| self.column(name).ok().flatten();
        for assignment in &mut assignments {
            if let ast::AssignmentTarget::ColumnName(target) = &mut assignment.target {
                let name = last_part(target);
                let position = self.column(&name)?;
                let position = position.ok_or_else(|| SqlError::bad_field(&name, "field list"))?;
                let column = &self.table.definition.columns[position].name;
                let column = ast::Ident::with_quote('`', column.as_str());
                *target = ast::ObjectName::from(vec![column]);
            }
            let value = over_table(&assignment.value, &self.table, position_of);
            assignment.value = value.map_err(|wrong| match wrong {
                NotOfTable::Name(name) if self.column(&name).is_ok() => {
                    SqlError::bad_field(&name, "field list")
                }
                NotOfTable::Name(_) | NotOfTable::Query => SqlError::not_supported_yet(
                    "a subquery, or what a view computes, in ON DUPLICATE KEY UPDATE of a view",
                ),
            })?;
        }
        Ok(assignments)
    }

    /// Whether it has the column of the ids that are generated for its rows, if there is one. LAST_INSERT_ID() does not
    /// tell of others.
    pub(crate) fn shows_generated_ids(&self) -> bool {
        let mut columns = self.table.definition.columns.iter();
        let generated = columns.position(|column| column.auto_increment);
        let mut shown = self.columns.iter().map(|(_, position)| *position);
        generated.is_none_or(|generated| shown.any(|position| position == Some(generated)))
    }

    /// The positions of all columns. Error 1471 if rows cannot be inserted, 1348 if a column that gets values is
    /// computed: one of those that are listed, or of all.
    pub(crate) fn insertable(&self, listed: &[String]) -> Result<Vec<usize>> {
        for name in listed {
            self.column(name)?;
        }
        let mut positions: Vec<usize> = Vec::with_capacity(self.columns.len());
        for (name, position) in &self.columns {
            if listed.is_empty() {
                self.column(name)?;
            }
            match position {
                Some(position) if !positions.contains(position) => positions.push(*position),
                _ => return Err(not_insertable(&self.name)),
            }
        }
        Ok(positions)
    }
}

/// 1471.
pub(crate) fn not_insertable(view: &str) -> SqlError {
    SqlError::new(
        codes::NON_INSERTABLE_TABLE,
        format!("The target table {view} of the INSERT is not insertable-into"),
    )
}

/// 1369.
pub(crate) fn check_failed(view: &str) -> SqlError {
    SqlError::new(
        codes::VIEW_CHECK_FAILED,
        format!("CHECK OPTION failed '{view}'"),
    )
}

impl Session {
    /// What a view is changed by. Error 1288 for one whose rows are not those of a table, 1235 for one of several
    /// tables.
    pub(crate) fn changed_view(&self, view: &View, verb: &str) -> Result<ChangedView> {
        self.changed_view_at(view, verb, 0)
    }

    fn changed_view_at(&self, view: &View, verb: &str, depth: usize) -> Result<ChangedView> {
        let definition = &view.definition;
        let refused = || SqlError::non_updatable_table(&definition.name, verb);
        if !definition.is_updatable || depth == MAX_VIEWS {
            return Err(refused());
        }
        let parsed = parse_statement(&definition.query, &SheafDialect::default())?;
        let Statement::Query(query) = parsed else {
            return Err(refused());
        };
        let Some((name, alias)) = only_table(&query) else {
            return Err(SqlError::not_supported_yet(format!(
                "{verb} of a view of several tables"
            )));
        };
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return Err(refused());
        };
        let (database, table) = name_of(name)?.resolve(Some(&definition.database))?;
        let reader = match definition.security {
            ViewSecurity::Definer => Some(definition.definer.clone()),
            ViewSecurity::Invoker => None,
        };
        let mut needs = vec![(reader, (database.clone(), table.clone()))];
        let catalog = self.engine.catalog();
        let (table, inner, below) = match catalog.view(&database, &table) {
            Some(below) => {
                let below = self.changed_view_at(&below, verb, depth + 1)?;
                needs.extend(below.needs.iter().cloned());
                (Arc::clone(&below.table), below.columns.clone(), Some(below))
            }
            None => {
                let names = self.table_names().of_all_sessions();
                let table = names.table(&database, &table)?;
                let columns = table.definition.columns.iter().enumerate();
                let columns = columns.filter(|(_, column)| !column.hidden);
                let columns = columns.map(|(at, column)| (column.name.clone(), Some(at)));
                let columns = columns.collect();
                (table, columns, None)
            }
        };
        let position_of = |name: &str| {
            let mut inner = inner.iter();
            let found = inner.find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.and_then(|(_, position)| *position)
        };
        let items = select.projection.iter().map(|item| match item {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                column_name(expr).and_then(|name| position_of(&name))
            }
            _ => None,
        });
        let names = definition.columns.iter().map(|column| column.name.clone());
        let columns: Vec<(String, Option<usize>)> = names.zip(items).collect();
        let full_name = format!("{}.{}", definition.database, definition.name);
        let own = select.selection.as_ref().map(|condition| Condition {
            view: full_name.clone(),
            expression: over_table(condition, &table, position_of).ok(),
        });
        let all_conditions: Vec<Condition> = own
            .iter()
            .chain(below.iter().flat_map(|below| &below.all_conditions))
            .cloned()
            .collect();
        let asked_below = below.iter().flat_map(|below| &below.conditions);
        let conditions: Vec<&Condition> = match definition.check {
            ViewCheck::None => asked_below.collect(),
            ViewCheck::Local => own.iter().chain(asked_below).collect(),
            ViewCheck::Cascaded => all_conditions.iter().collect(),
        };
        // The view that the statement names is told, whichever asks.
        let conditions = conditions.into_iter().map(|condition| Condition {
            view: full_name.clone(),
            expression: condition.expression.clone(),
        });
        let conditions = conditions.collect();
        let alias = below.map_or_else(|| alias.to_string(), |below| below.alias);
        Ok(ChangedView {
            alias,
            database: definition.database.clone(),
            name: definition.name.clone(),
            table,
            columns,
            conditions,
            all_conditions,
            needs,
        })
    }

    /// Whether a view has a column that can be changed. Of one of several tables nothing is known yet.
    pub(crate) fn has_changeable_columns(&self, definition: &ViewDefinition) -> bool {
        let view = self
            .engine
            .catalog()
            .view(&definition.database, &definition.name);
        let changed = view.map(|view| self.changed_view(&view, "UPDATE"));
        match changed {
            Some(Ok(changed)) => changed
                .columns
                .iter()
                .any(|(_, position)| position.is_some()),
            _ => definition.is_updatable,
        }
    }

    /// Whether rows may be changed through a view. Errors 1142, 1356 and 1449.
    pub(crate) fn check_change_of_view(
        &self,
        view: &ChangedView,
        privilege: Privileges,
    ) -> Result<()> {
        // On which of its columns is checked with the statement's list of them.
        self.client
            .require_on_some_column(&view.database, &view.name, privilege)?;
        for (account, (database, table)) in &view.needs {
            let granted = self.client.check_allowed_to(
                self.engine.catalog(),
                account.as_ref(),
                (database, table),
                privilege,
            );
            granted.map_err(|error| match error.code == codes::NO_SUCH_USER.number() {
                true => error,
                false => SqlError::invalid_view(&format!("{}.{}", view.database, view.name)),
            })?;
        }
        Ok(())
    }
}

/// The name of a column, if an expression is nothing else.
fn column_name(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Identifier(name) => Some(name.value.clone()),
        ast::Expr::CompoundIdentifier(parts) => parts.last().map(|part| part.value.clone()),
        ast::Expr::Nested(inner) => column_name(inner),
        _ => None,
    }
}

/// Why an expression over a view is none over its table.
enum NotOfTable {
    Query,
    /// It has no such column, or computes it.
    Name(String),
}

/// A condition over the names of a view's query as one over the columns of the table. An error if it has a subquery, or
/// names what is no column of the table.
fn over_table(
    condition: &ast::Expr,
    table: &Table,
    position_of: impl Fn(&str) -> Option<usize>,
) -> Result<ast::Expr, NotOfTable> {
    struct OverTable<'a> {
        table: &'a Table,
        position_of: &'a dyn Fn(&str) -> Option<usize>,
        wrong: Option<NotOfTable>,
    }

    impl ExpressionVisitor for OverTable<'_> {
        fn enter_query(&mut self, _query: &ast::Query) {
            self.wrong = Some(NotOfTable::Query);
        }

        fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
            let is_name = matches!(
                expression,
                ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)
            );
            if is_name {
                let name = column_name(expression).unwrap_or_default();
                match (self.position_of)(&name) {
                    Some(position) => {
                        let column = &self.table.definition.columns[position].name;
                        *expression =
                            ast::Expr::Identifier(ast::Ident::with_quote('`', column.as_str()));
                    }
                    None => _ = self.wrong.get_or_insert(NotOfTable::Name(name)),
                }
            }
            ControlFlow::Continue(())
        }
    }

    let mut expression = condition.clone();
    let mut over = OverTable {
        table,
        position_of: &position_of,
        wrong: None,
    };
    walk_expression(&mut expression, &mut over);
    match over.wrong {
        Some(wrong) => Err(wrong),
        None => Ok(expression),
    }
}
