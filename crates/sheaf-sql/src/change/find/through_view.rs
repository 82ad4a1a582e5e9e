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
//!
//! A statement changes one table of a view that joins several: the one whose columns it names. The view delivers a key
//! of each of them. Its rows cannot be deleted (1395).
//!
//! ```text
//!   CREATE VIEW v AS SELECT t.a, u.b FROM t JOIN u ON t.id = u.t
//!
//!   UPDATE v SET b = 1       changes u, by the key "of u"        UPDATE v SET a = 1, b = 1       error 1393
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::CLUSTERED_KEY;
use sheaf_frontend::bind::view::{joined_tables, key_of_joined};
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression};
use sheaf_table::schema::Index;
use sheaf_table::view::{View, ViewCheck, ViewDefinition, ViewSecurity};
use sheaf_table::{AccountName, Privileges, QualifiedName, Table};
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::change::values::assigned::last_part;
use crate::dialect::SheafDialect;
use crate::engine::Engine;
use crate::error::{Result, SqlError};
use crate::parser::change::name_of;
use crate::parser::parse_statement;
use crate::parser::statement::Statement;
use crate::rights::Client;
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
    /// The view's columns, with their positions in the table; `None`: what is computed, or of another table.
    pub(crate) columns: Vec<(String, Option<usize>)>,
    /// For each column, whether it is one of another table that the view joins.
    of_others: Vec<bool>,
    /// The view, or one below it, joins several tables.
    pub(crate) joins: bool,
    /// The column of the view that delivers the key of the table's row.
    pub(crate) key: String,
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
    /// The position in the table of a column of the view; `None` if it has no such column. Error 1348 for one that is
    /// computed, 1393 for one of another table.
    pub(crate) fn column(&self, name: &str) -> Result<Option<usize>> {
        let mut columns = self.columns.iter().zip(&self.of_others);
        match columns.find(|((known, _), _)| known.eq_ignore_ascii_case(name)) {
            None => Ok(None),
            Some(((_, Some(position)), _)) => Ok(Some(*position)),
            Some(((_, None), true)) => Err(SqlError::new(
                codes::VIEW_MULTIUPDATE,
                format!(
                    "Can not modify more than one base table through a join view '{}.{}'",
                    self.database, self.name
                ),
            )),
            Some(((_, None), false)) => Err(SqlError::new(
                codes::NONUPDATEABLE_COLUMN,
                format!("Column '{name}' is not updatable"),
            )),
        }
    }

    /// Whether a column of the view is one of the table.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        matches!(self.column(name), Ok(Some(_)))
    }

    /// Whether it has all columns of a key of its table that names single rows, or all columns of the table.
    pub(crate) fn shows_a_key(&self) -> bool {
        let definition = &self.table.definition;
        let is_shown = |column: usize| {
            let mut shown = self.columns.iter();
            shown.any(|(_, position)| *position == Some(column))
        };
        let is_key = |index: &Index| {
            let mut parts = index.parts.iter();
            index.unique
                && !index.parts.is_empty()
                && parts
                    .all(|part| is_shown(part.column) && !definition.columns[part.column].nullable)
        };
        let mut keys = std::iter::once(&definition.primary).chain(&definition.secondary);
        keys.any(is_key) || (0..definition.columns.len()).all(is_shown)
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
            assignment.value = value.map_err(|wrong| {
                let column = match &wrong {
                    NotOfTable::Name(name) => self.column(name),
                    NotOfTable::Query => Ok(None),
                };
                match (wrong, column) {
                    (NotOfTable::Name(name), Ok(_)) => SqlError::bad_field(&name, "field list"),
                    (_, Err(error)) if error.code == codes::VIEW_MULTIUPDATE.number() => error,
                    _ => SqlError::not_supported_yet(
                        "a subquery, or what a view computes, in ON DUPLICATE KEY UPDATE of a view",
                    ),
                }
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

    /// The positions of all columns of the table. Error 1471 if rows cannot be inserted, 1348 if a column that gets
    /// values is computed: one of those that are listed, or of all. Where the view joins tables, errors 1393 for
    /// columns of several of them, and 1394 without a list.
    pub(crate) fn insertable(&self, listed: &[String]) -> Result<Vec<usize>> {
        for name in listed {
            self.column(name)?;
        }
        if self.joins && listed.is_empty() {
            return Err(SqlError::new(
                codes::VIEW_NO_INSERT_FIELD_LIST,
                format!(
                    "Can not insert into join view '{}.{}' without fields list",
                    self.database, self.name
                ),
            ));
        }
        let mut positions: Vec<usize> = Vec::with_capacity(self.columns.len());
        for ((name, position), of_other) in self.columns.iter().zip(&self.of_others) {
            if *of_other {
                continue;
            }
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

/// 1395.
pub(crate) fn no_deletes(database: &str, view: &str) -> SqlError {
    SqlError::new(
        codes::VIEW_DELETE_MERGE_VIEW,
        format!("Can not delete from join view '{database}.{view}'"),
    )
}

/// 1369.
pub(crate) fn check_failed(view: &str) -> SqlError {
    SqlError::new(
        codes::VIEW_CHECK_FAILED,
        format!("CHECK OPTION failed '{view}'"),
    )
}

/// The ways in which a view is changed: one for each of its tables. Error 1288 if its rows are not those of tables.
pub(crate) fn changed_views(
    session: &Session,
    view: &View,
    verb: &str,
) -> Result<Vec<ChangedView>> {
    changed_views_at(session, view, verb, 0)
}

fn changed_views_at(
    session: &Session,
    view: &View,
    verb: &str,
    depth: usize,
) -> Result<Vec<ChangedView>> {
    let definition = &view.definition;
    let refused = || SqlError::non_updatable_table(&definition.name, verb);
    if !definition.is_updatable || depth == MAX_VIEWS {
        return Err(refused());
    }
    let parsed = parse_statement(&definition.query, &SheafDialect::default())?;
    let Statement::Query(query) = parsed else {
        return Err(refused());
    };
    let tables = joined_tables(&query).ok_or_else(refused)?;
    let ast::SetExpr::Select(select) = query.body.as_ref() else {
        return Err(refused());
    };
    let mut joined = Vec::with_capacity(tables.len());
    for (name, alias) in tables {
        let name = name_of(name)?.resolve(Some(&definition.database))?;
        joined.push(table_below(session, name, alias, (verb, depth))?);
    }
    let reader = match definition.security {
        ViewSecurity::Definer => Some(&definition.definer),
        ViewSecurity::Invoker => None,
    };
    let mut changed = Vec::new();
    for (number, below) in joined.iter().enumerate() {
        for table in &below.tables {
            let mut table = table.clone();
            table.needs.insert(0, (reader.cloned(), below.name.clone()));
            if joined.len() > 1 {
                table.joins = true;
                table.key = key_of_joined(&table.key, &below.alias);
            }
            let query = (select.as_ref(), joined.as_slice());
            changed.push(seen_through(table, definition, query, number));
        }
    }
    Ok(changed)
}

/// What the query of a view calls `alias`.
fn table_below(
    session: &Session,
    (database, table): QualifiedName,
    alias: &str,
    (verb, depth): (&str, usize),
) -> Result<TableBelow> {
    let name = (database.clone(), table.clone());
    let tables = match session.engine.catalog().view(&database, &table) {
        Some(below) => changed_views_at(session, &below, verb, depth + 1)?,
        None => {
            let names = session.table_names().of_all_sessions();
            let opened = names.table(&database, &table)?;
            let columns = opened.definition.columns.iter().enumerate();
            let columns = columns.filter(|(_, column)| !column.hidden);
            let columns = columns.map(|(at, column)| (column.name.clone(), Some(at)));
            let columns: Vec<_> = columns.collect();
            vec![ChangedView {
                database,
                name: table,
                alias: alias.to_string(),
                of_others: vec![false; columns.len()],
                columns,
                table: opened,
                joins: false,
                key: CLUSTERED_KEY.to_string(),
                conditions: Vec::new(),
                all_conditions: Vec::new(),
                needs: Vec::new(),
            }]
        }
    };
    Ok(TableBelow {
        alias: alias.to_string(),
        name,
        tables,
    })
}

/// Whether a view has a column that can be changed.
pub(crate) fn has_changeable_columns(session: &Session, definition: &ViewDefinition) -> bool {
    let view = session
        .engine
        .catalog()
        .view(&definition.database, &definition.name);
    let changed = view.map(|view| changed_views(session, &view, "UPDATE"));
    match changed {
        Some(Ok(changed)) => {
            let mut columns = changed.iter().flat_map(|changed| &changed.columns);
            columns.any(|(_, position)| position.is_some())
        }
        _ => definition.is_updatable,
    }
}

/// Whether rows may be changed through a view. Errors 1142, 1356 and 1449.
pub(crate) fn check_change_of_view(
    client: &Client,
    engine: &Engine,
    view: &ChangedView,
    privilege: Privileges,
) -> Result<()> {
    // On which of its columns is checked with the statement's list of them.
    client.require_on_some_column(&view.database, &view.name, privilege)?;
    for (account, (database, table)) in &view.needs {
        let granted = client.check_allowed_to(
            engine.catalog(),
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

/// A table in the FROM of a view, or a view.
struct TableBelow {
    alias: String,
    name: QualifiedName,
    /// The ways in which it is changed.
    tables: Vec<ChangedView>,
}

impl TableBelow {
    /// Whether it has a column of this name.
    fn has_column(&self, name: &str) -> bool {
        let mut columns = self.tables.iter().flat_map(|table| &table.columns);
        columns.any(|(known, _)| known.eq_ignore_ascii_case(name))
    }
}

/// How a view is changed: as what its table with this `number` is changed, by the names of the view.
fn seen_through(
    below: ChangedView,
    definition: &ViewDefinition,
    (select, joined): (&ast::Select, &[TableBelow]),
    number: usize,
) -> ChangedView {
    // The table that a name is a column of. A name that joins make of two columns is none of either.
    let table_of = |expr: &ast::Expr| {
        let qualifier = table_name(expr);
        let name = column_name(expr)?;
        let mut having = (0..joined.len()).filter(|table| {
            let table = &joined[*table];
            qualifier.as_ref().is_none_or(|alias| *alias == table.alias) && table.has_column(&name)
        });
        having.next().filter(|_| having.next().is_none())
    };
    let inner = &below.columns;
    let position_of = |name: &str| {
        let mut inner = inner.iter();
        let found = inner.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.and_then(|(_, position)| *position)
    };
    let items = select.projection.iter().map(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            let (table, name) = (table_of(expr)?, column_name(expr)?);
            Some((table, name))
        }
        _ => None,
    });
    let items: Vec<Option<(usize, String)>> = items.collect();
    let own_position = |item: &Option<(usize, String)>| match item {
        Some((table, name)) if *table == number => position_of(name),
        _ => None,
    };
    let is_of_other = |item: &Option<(usize, String)>| match item {
        Some((table, name)) => {
            own_position(item).is_none()
                && joined[*table]
                    .tables
                    .iter()
                    .any(|table| table.has_column(name))
        }
        None => false,
    };
    let names = definition.columns.iter().map(|column| column.name.clone());
    let columns = names.zip(items.iter().map(own_position)).collect();
    let of_others = items.iter().map(is_of_other).collect();
    let full_name = format!("{}.{}", definition.database, definition.name);
    // What joins ask for is about rows of several tables.
    let is_only = joined.len() == 1;
    let condition = |condition: &ast::Expr| over_table(condition, &below.table, position_of).ok();
    let own = match (&select.selection, is_only) {
        (Some(selection), true) => Some(condition(selection)),
        (None, true) => None,
        (_, false) => Some(None),
    };
    let own = own.map(|expression| Condition {
        view: full_name.clone(),
        expression,
    });
    let mut all_conditions: Vec<Condition> = own.clone().into_iter().collect();
    all_conditions.extend(below.all_conditions.iter().cloned());
    let asked_below = below.conditions.iter();
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
    ChangedView {
        conditions,
        database: definition.database.clone(),
        name: definition.name.clone(),
        columns,
        of_others,
        all_conditions,
        ..below
    }
}

/// What a column's name is qualified with.
fn table_name(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::CompoundIdentifier(parts) => {
            let table = parts.len().checked_sub(2)?;
            Some(parts[table].value.clone())
        }
        ast::Expr::Nested(inner) => table_name(inner),
        _ => None,
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
