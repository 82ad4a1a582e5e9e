//! SHOW.
//!
//! Each SHOW makes its rows in memory ([`Rows`]). LIKE is applied to the column that MySQL applies it to; WHERE is an
//! ordinary query over the rows.

use std::sync::Arc;

use sheaf_exec::MemoryTableSource;
use sheaf_table::{Catalog, Column, Table, View, check_database_name};
use sheaf_types::ColumnType;
use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast;

use crate::accounts::show::{create_user_rows, grant_rows};
use crate::accounts::{Client, privilege_rows};
use crate::catalog_views::binary_log::{
    binary_log_rows, binary_log_status_rows, binlog_event_rows, replica_rows,
};
use crate::catalog_views::catalog_text::{column_default, column_key, generation_extra};
use crate::catalog_views::engine_status::engine_status;
use crate::catalog_views::information_schema::{
    self, collation_owner, collations_under, index_part_cells, push_sessions,
};
use crate::catalog_views::server_rows::{engine_rows, status_entries};
use crate::catalog_views::{performance_schema, sys};
use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::{EmptyList, Filter, Scope, Show, TableName};
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;
use crate::session::result::{ColumnMeta, ResultSink, table_flags};
use crate::session::warnings::Level;
use crate::variables::CHARACTER_SETS;
use crate::virtual_database::{is_for_everybody, is_virtual_database};
use sheaf_frontend::query::Header;

const TEXT: Cells = Cells::Text(64);
/// What the session may do with columns of its temporary tables.
const ALL_ON_COLUMNS: &str = "select,insert,update,references";
const LONG_TEXT: Cells = Cells::Text(u32::MAX);
const NUMBER: Cells = Cells::Unsigned;

/// The name under which a SHOW's rows are queried for its WHERE.
const SHOWN_ROWS: &str = "shown rows";

/// The statement's start that SHOW PROCESSLIST (without FULL) prints.
const SHORT_STATEMENT_CHARACTERS: usize = 100;

/// The statement that makes a database, as MySQL lays it out: the collation is named unless its character set implies
/// it, and that of utf8mb4 always, which other versions imply differently.
fn create_database_statement(name: &str, collation: &str, if_not_exists: bool) -> String {
    let condition = match if_not_exists {
        true => "/*!32312 IF NOT EXISTS*/ ",
        false => "",
    };
    let (character_set, is_default) = collation_owner(collation);
    let collate = match is_default && character_set != "utf8mb4" {
        true => String::new(),
        false => format!(" COLLATE {collation}"),
    };
    format!(
        "CREATE DATABASE {condition}{} /*!40100 DEFAULT CHARACTER SET {character_set}{collate} */",
        quoted_name(name)
    )
}

/// The name of a column of names, of which LIKE asks for some.
fn with_pattern(name: &str, filter: &Filter) -> String {
    match filter {
        Filter::Like(pattern) => format!("{name} ({pattern})"),
        Filter::None | Filter::Where(_) => name.to_string(),
    }
}

pub(crate) fn run_show(
    session: &mut Session,
    show: Parsed<'_, Show>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Parsed { ast: show, text } = show;
    let filtered = |filter| Parsed::new(filter, text);
    match show {
        Show::Databases(filter) => {
            let mut rows = Rows::new([(with_pattern("Database", &filter), Cells::Name)]);
            for name in session.client.database_names(session.engine.catalog()) {
                rows.push(vec![name.into()]);
            }
            send_filtered(session, rows, 0, filtered(filter), sink)
        }
        Show::Tables {
            full,
            database,
            filter,
        } => {
            let database = database_or_current(session, database)?;
            let rows = show_tables(session, full, &database, &filter)?;
            send_filtered(session, rows, 0, filtered(filter), sink)
        }
        Show::TableStatus { database, filter } => {
            let database = database_or_current(session, database)?;
            let rows = show_table_status(session, &database)?;
            send_filtered(session, rows, 0, filtered(filter), sink)
        }
        Show::Columns {
            full,
            table,
            filter,
        } => {
            let rows = show_columns(session, full, &table)?;
            send_filtered(session, rows, 0, filtered(filter), sink)
        }
        Show::Index { table, filter } => {
            let rows = show_index(session, &table)?;
            send_filtered(session, rows, 2, filtered(filter), sink)
        }
        Show::CreateTable(name) => {
            let (database, table) = session.resolve(&name)?;
            if !session.table_names().is_temporary(&database, &table) {
                session.client.check_sees_definition(&database, &table)?;
            }
            if session.table_names().view(&database, &table).is_some() {
                let rows = session.create_view_rows(&database, &table)?;
                return send(session, &rows, sink);
            }
            let table = session.table_names().table(&database, &table)?;
            let mut rows = Rows::new([("Table", TEXT), ("Create Table", LONG_TEXT)]);
            let next = table.shown_auto_increment()?;
            let create = sheaf_table::show_create::create_statement(&table.definition, next);
            rows.push(vec![table.definition.name.clone().into(), create.into()]);
            send(session, &rows, sink)
        }
        Show::CreateView(name) => {
            let (database, view) = session.resolve(&name)?;
            let rows = session.create_view_rows(&database, &view)?;
            send(session, &rows, sink)
        }
        Show::CreateDatabase {
            name,
            if_not_exists,
        } => {
            session.client.check_sees_database(&name)?;
            let collation = session.collation_of_database(&name)?;
            let mut rows = Rows::new([("Database", TEXT), ("Create Database", Cells::Text(1024))]);
            let create = create_database_statement(&name, collation, if_not_exists);
            rows.push(vec![name.into(), create.into()]);
            send(session, &rows, sink)
        }
        Show::Variables { scope, filter } => {
            session.engine.show_gtids();
            let entries = match scope == Scope::Global {
                true => session.engine.globals().all(true),
                false => session.shown_variables(),
            };
            send_filtered(session, name_values(entries), 0, filtered(filter), sink)
        }
        Show::Status { scope, filter } => {
            let entries = status_entries(session, scope == Scope::Global);
            send_filtered(session, name_values(entries), 0, filtered(filter), sink)
        }
        Show::Warnings {
            errors_only,
            count,
            limit,
        } => show_warnings(session, errors_only, count, limit, sink),
        Show::ProcessList { full } => {
            let rows = process_list(session, full);
            send(session, &rows, sink)
        }
        Show::EngineStatus(engine) => {
            let rows = engine_status(session, &engine)?;
            send(session, &rows, sink)
        }
        Show::Engines => {
            let rows = engine_rows();
            send(session, &rows, sink)
        }
        Show::Plugins => {
            let mut rows = Rows::new([
                ("Name", TEXT),
                ("Status", TEXT),
                ("Type", TEXT),
                ("Library", TEXT),
                ("License", TEXT),
            ]);
            rows.push(vec![
                "InnoDB".into(),
                "ACTIVE".into(),
                "STORAGE ENGINE".into(),
                Cell::Null,
                "Apache-2.0".into(),
            ]);
            send(session, &rows, sink)
        }
        Show::Privileges => send(session, &privilege_rows(), sink),
        Show::CharacterSet(filter) => {
            let mut rows = Rows::new([
                ("Charset", TEXT),
                ("Description", Cells::Text(1024)),
                ("Default collation", TEXT),
                ("Maxlen", NUMBER),
            ]);
            for (name, description, collation, bytes) in CHARACTER_SETS {
                rows.push(vec![
                    name.into(),
                    description.into(),
                    collation.into(),
                    u64::from(bytes).into(),
                ]);
            }
            send_filtered(session, rows, 0, filtered(filter), sink)
        }
        Show::Collation(filter) => {
            let rows = collations_under([
                "Collation",
                "Charset",
                "Id",
                "Default",
                "Compiled",
                "Sortlen",
                "Pad_attribute",
            ]);
            send_filtered(session, rows, 0, filtered(filter), sink)
        }
        Show::Grants { user, roles } => {
            let rows = grant_rows(&session.client, &session.engine, &user, &roles)?;
            send(session, &rows, sink)
        }
        Show::CreateUser(user) => {
            let rows = create_user_rows(&session.client, &session.engine, &user)?;
            send(session, &rows, sink)
        }
        Show::BinaryLogs => {
            let rows = binary_log_rows(&session.client, &session.engine)?;
            send(session, &rows, sink)
        }
        Show::BinaryLogStatus => {
            let rows = binary_log_status_rows(&session.client, &session.engine)?;
            send(session, &rows, sink)
        }
        Show::ReplicaStatus { old_names } => {
            let rows = session.replica_status_rows(old_names)?;
            send(session, &rows, sink)
        }
        Show::BinlogEvents { file, from, limit } => {
            let (client, engine) = (&session.client, &session.engine);
            let rows = binlog_event_rows(client, engine, file.as_deref(), from, limit)?;
            send(session, &rows, sink)
        }
        Show::Replicas => {
            let rows = replica_rows(&session.client, &session.engine)?;
            send(session, &rows, sink)
        }
        Show::Empty(list) => send(session, &empty_list(list), sink),
    }
}

fn send(session: &mut Session, rows: &Rows, sink: &mut dyn ResultSink) -> Result<()> {
    session.outcome.row_count = -1;
    rows.send(sink, session.result_collation_id(), session.end_of_rows())
}

/// Sends the rows that pass the filter; LIKE looks at one column.
fn send_filtered(
    session: &mut Session,
    mut rows: Rows,
    like_column: usize,
    filter: Parsed<'_, Filter>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Parsed { ast: filter, text } = filter;
    match filter {
        Filter::None => send(session, &rows, sink),
        Filter::Like(pattern) => {
            rows.retain_like(like_column, &pattern);
            send(session, &rows, sink)
        }
        Filter::Where(condition) => {
            let table =
                MemoryTableSource::new(SHOWN_ROWS.to_string(), rows.schema(), vec![rows.batch()?]);
            let query = rows_where(*condition)?;
            let planned = session.plan_query(Parsed::new(&query, text), Some(&Arc::new(table)))?;
            sink.columns(&planned.columns)?;
            session.run_planned(planned, |batch| sink.rows(batch))?;
            session.outcome.row_count = -1;
            sink.end_of_rows(session.end_of_rows())
        }
    }
}

impl Session {
    /// The columns of a table of the current database (COM_FIELD_LIST, which the command-line clients use to complete
    /// names).
    pub fn field_list(&self, table: &str) -> Result<Vec<ColumnMeta>> {
        let database = self.database().ok_or_else(SqlError::no_database_selected)?;
        let names = self.table_names();
        if !names.is_temporary(database, table) && !is_for_everybody(database, table) {
            self.client.check_sees_columns(database, table)?;
        }
        if let Some((schema, _)) =
            crate::catalog_views::information_schema::virtual_table(database, table, self)?
        {
            let header = |name: &String| Header {
                name: name.clone(),
                ..Header::default()
            };
            return Ok(schema
                .fields()
                .iter()
                .map(|field| {
                    ColumnMeta::new(field, &header(field.name()), self.result_collation_id())
                })
                .collect());
        }
        let column_of = |column: &Column| {
            let header = Header {
                name: column.name.clone(),
                org_name: column.name.clone(),
                table: table.to_string(),
                org_table: table.to_string(),
                database: database.to_string(),
                is_stored: false,
            };
            let field = sheaf_access::arrow_field(column);
            ColumnMeta::new(&field, &header, self.result_collation_id())
        };
        let is_own = names.is_temporary(database, table);
        let is_seen = |column: &Column| {
            let client = &self.client;
            is_own
                || !client
                    .column_privileges(database, table, &column.name)
                    .is_empty()
        };
        if let Some(view) = names.view(database, table) {
            let columns = view.definition.columns.iter();
            return Ok(columns
                .filter(|column| is_seen(column))
                .map(column_of)
                .collect());
        }
        let table = names.table(database, table)?;
        let definition = &table.definition;
        let columns = definition.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| is_seen(column) && !column.hidden);
        let columns = columns.map(|(position, column)| {
            let mut meta = column_of(column);
            meta.flags |= table_flags(definition, position);
            meta
        });
        Ok(columns.collect())
    }
}

fn database_or_current(session: &Session, database: Option<String>) -> Result<String> {
    let database = database
        .or_else(|| session.database.clone())
        .ok_or_else(SqlError::no_database_selected)?;
    session.client.check_sees_database(&database)?;
    if is_virtual_database(&database) || session.engine.catalog().database_exists(&database) {
        Ok(database)
    } else {
        check_database_name(&database)?;
        Err(SqlError::unknown_database(&database))
    }
}

fn show_tables(session: &Session, full: bool, database: &str, filter: &Filter) -> Result<Rows> {
    let name = with_pattern(&format!("Tables_in_{database}"), filter);
    let mut columns = vec![(name, Cells::Name)];
    if full {
        columns.push(("Table_type".to_string(), TEXT));
    }
    let mut rows = Rows::new(columns);
    let mut names: Vec<(String, &str)> = Vec::new();
    if database.eq_ignore_ascii_case(sys::NAME) {
        let views = sys::TABLES.iter().map(|view| view.name.to_string());
        names.extend(views.map(|name| (name, "VIEW")));
    } else if database.eq_ignore_ascii_case(performance_schema::NAME) {
        let tables = performance_schema::table_names();
        names.extend(
            tables
                .into_iter()
                .map(|name| (name.to_string(), "BASE TABLE")),
        );
    } else if is_virtual_database(database) {
        let virtual_tables = information_schema::table_names().into_iter();
        names.extend(virtual_tables.map(|name| (name.to_string(), "SYSTEM VIEW")));
    } else {
        for table in session
            .client
            .seen_tables(session.engine.catalog(), database)?
        {
            session.handle.cancel_flag().check()?;
            names.push((table.definition.name.clone(), "BASE TABLE"));
        }
        let views = session
            .client
            .seen_views(session.engine.catalog(), database)?;
        let views = views.iter();
        names.extend(views.map(|view| (view.definition.name.clone(), "VIEW")));
        names.sort_unstable();
    }
    for (name, kind) in names {
        let mut row = vec![name.into()];
        if full {
            row.push(kind.into());
        }
        rows.push(row);
    }
    Ok(rows)
}

fn show_table_status(session: &Session, database: &str) -> Result<Rows> {
    let mut rows = Rows::new([
        ("Name", Cells::Name),
        ("Engine", TEXT),
        ("Version", NUMBER),
        ("Row_format", TEXT),
        ("Rows", NUMBER),
        ("Avg_row_length", NUMBER),
        ("Data_length", NUMBER),
        ("Max_data_length", NUMBER),
        ("Index_length", NUMBER),
        ("Data_free", NUMBER),
        ("Auto_increment", NUMBER),
        ("Create_time", TEXT),
        ("Update_time", TEXT),
        ("Check_time", TEXT),
        ("Collation", TEXT),
        ("Checksum", NUMBER),
        ("Create_options", Cells::Text(256)),
        ("Comment", Cells::Text(1024)),
    ]);
    if is_virtual_database(database) {
        return Ok(rows);
    }
    let mut all: Vec<(String, Vec<Cell>)> = Vec::new();
    for table in session
        .client
        .seen_tables(session.engine.catalog(), database)?
    {
        session.handle.cancel_flag().check()?;
        let status = information_schema::table_status(&table)?;
        all.push((table.definition.name.clone(), status));
    }
    for view in session
        .client
        .seen_views(session.engine.catalog(), database)?
    {
        all.push((
            view.definition.name.clone(),
            information_schema::view_status(),
        ));
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, status) in all {
        let mut row = vec![name.into()];
        row.extend(status);
        rows.push(row);
    }
    Ok(rows)
}

fn show_columns(session: &Session, full: bool, name: &TableName) -> Result<Rows> {
    let (database, table) = session.resolve(name)?;
    let mut columns = vec![("Field", TEXT), ("Type", LONG_TEXT)];
    if full {
        columns.push(("Collation", TEXT));
    }
    columns.extend([
        ("Null", TEXT),
        ("Key", TEXT),
        ("Default", LONG_TEXT),
        ("Extra", Cells::Text(256)),
    ]);
    if full {
        columns.extend([
            ("Privileges", Cells::Text(154)),
            ("Comment", Cells::Text(1024)),
        ]);
    }
    let mut rows = Rows::new(columns);
    let names = session.table_names();
    let is_own = names.is_temporary(&database, &table);
    if !is_own && !is_for_everybody(&database, &table) {
        session.client.check_sees_columns(&database, &table)?;
    }
    if let Some((schema, _)) = information_schema::virtual_table(&database, &table, session)? {
        for field in schema.fields() {
            let ty = field
                .metadata()
                .get(sheaf_access::TYPE_KEY)
                .cloned()
                .unwrap_or_default();
            let parsed = ColumnType::parse(&ty);
            let ty = parsed.map_or(ty, |parsed| parsed.definition_text());
            let mut row: Vec<Cell> = vec![field.name().clone().into(), ty.into()];
            if full {
                row.push(Cell::Null);
            }
            row.extend(["YES".into(), "".into(), Cell::Null, "".into()]);
            if full {
                row.extend(["select".into(), "".into()]);
            }
            rows.push(row);
        }
        return Ok(rows);
    }
    let name = table;
    let (database, table) = (database.as_str(), name.as_str());
    let view = names.view(database, table);
    let table = match &view {
        Some(_) => None,
        None => Some(names.table(database, table)?),
    };
    let columns = match (&view, &table) {
        (Some(view), _) => &view.definition.columns[..],
        (None, Some(table)) => &table.definition.columns,
        (None, None) => &[],
    };
    for (position, column) in columns.iter().enumerate() {
        let privileges = match is_own {
            true => ALL_ON_COLUMNS.to_string(),
            false => session
                .client
                .column_privileges(database, &name, &column.name),
        };
        if privileges.is_empty() || column.hidden {
            continue;
        }
        let mut row: Vec<Cell> = vec![
            column.name.clone().into(),
            column.ty.definition_text().into(),
        ];
        if full {
            row.push(
                column
                    .ty
                    .collation()
                    .map(|collation| collation.name())
                    .into(),
            );
        }
        row.push(if column.nullable { "YES" } else { "NO" }.into());
        let key = |table: &Arc<Table>| column_key(&table.definition, position);
        row.push(table.as_ref().map_or("", key).into());
        row.push(column_default(column).into());
        row.push(generation_extra(column).into());
        if full {
            row.push(privileges.as_str().into());
            row.push(column.comment.clone().into());
        }
        rows.push(row);
    }
    Ok(rows)
}

fn show_index(session: &Session, name: &TableName) -> Result<Rows> {
    let (database, table) = session.resolve(name)?;
    if !session.table_names().is_temporary(&database, &table) {
        session.client.check_sees_columns(&database, &table)?;
    }
    let mut rows = Rows::new([
        ("Table", TEXT),
        ("Non_unique", NUMBER),
        ("Key_name", TEXT),
        ("Seq_in_index", NUMBER),
        ("Column_name", TEXT),
        ("Collation", TEXT),
        ("Cardinality", NUMBER),
        ("Sub_part", NUMBER),
        ("Packed", TEXT),
        ("Null", TEXT),
        ("Index_type", TEXT),
        ("Comment", TEXT),
        ("Index_comment", Cells::Text(1024)),
        ("Visible", TEXT),
        ("Expression", LONG_TEXT),
    ]);
    if session.table_names().view(&database, &table).is_some() {
        return Ok(rows);
    }
    let table = session.table_names().table(&database, &table)?;
    let definition = &table.definition;
    for index in definition.indexes() {
        for (n, part) in index.parts.iter().enumerate() {
            let mut row = vec![
                definition.name.clone().into(),
                u64::from(!(index.unique || index.primary)).into(),
            ];
            row.extend(index_part_cells(&table, index, (n, part)));
            rows.push(row);
        }
    }
    Ok(rows)
}

fn show_warnings(
    session: &mut Session,
    errors_only: bool,
    count: bool,
    limit: Option<(u64, u64)>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if count {
        let (name, number) = if errors_only {
            ("@@session.error_count", session.warnings.errors())
        } else {
            ("@@session.warning_count", session.warnings.count())
        };
        let mut rows = Rows::new([(name, NUMBER)]);
        rows.push(vec![number.into()]);
        return send(session, &rows, sink);
    }
    let (offset, most) = limit.unwrap_or((0, u64::MAX));
    let mut rows = Rows::new([
        ("Level", Cells::Text(7)),
        ("Code", NUMBER),
        ("Message", Cells::Text(512)),
    ]);
    let listed = session
        .warnings
        .kept()
        .iter()
        .filter(|warning| !errors_only || warning.level == Level::Error);
    for warning in listed
        .skip(usize::try_from(offset).unwrap_or(usize::MAX))
        .take(usize::try_from(most).unwrap_or(usize::MAX))
    {
        let code = u64::from(warning.code);
        rows.push(vec![
            warning.level.name().into(),
            code.into(),
            warning.message.clone().into(),
        ]);
    }
    send(session, &rows, sink)
}

fn process_list(session: &Session, full: bool) -> Rows {
    let mut rows = Rows::new([
        ("Id", NUMBER),
        ("User", TEXT),
        ("Host", Cells::Text(255)),
        ("db", TEXT),
        ("Command", TEXT),
        ("Time", NUMBER),
        ("State", TEXT),
        ("Info", LONG_TEXT),
    ]);
    let longest = if full {
        usize::MAX
    } else {
        SHORT_STATEMENT_CHARACTERS
    };
    push_sessions(&session.client, &session.engine, longest, &mut rows);
    rows
}

impl Client {
    fn seen_tables(&self, catalog: &Catalog, database: &str) -> Result<Vec<Arc<Table>>> {
        let mut tables = catalog.tables(database)?;
        tables.retain(|table| self.sees_table(database, &table.definition.name));
        Ok(tables)
    }

    fn seen_views(&self, catalog: &Catalog, database: &str) -> Result<Vec<Arc<View>>> {
        let mut views = catalog.views(database)?;
        views.retain(|view| self.sees_table(database, &view.definition.name));
        Ok(views)
    }

    pub(crate) fn database_names(&self, catalog: &Catalog) -> Vec<String> {
        let mut names = catalog.databases();
        names.retain(|name| self.sees_database(name));
        names.push(information_schema::NAME.to_string());
        for name in [performance_schema::NAME, sys::NAME] {
            if self.sees_database(name) {
                names.push(name.to_string());
            }
        }
        names.sort_unstable();
        names
    }
}

fn name_values(entries: Vec<(&'static str, String)>) -> Rows {
    let mut rows = Rows::new([("Variable_name", TEXT), ("Value", Cells::Text(1024))]);
    for (name, value) in entries {
        rows.push(vec![name.into(), value.into()]);
    }
    rows
}

/// The query that filters a SHOW's rows.
fn rows_where(condition: ast::Expr) -> Result<Box<ast::Query>> {
    let template = format!(
        "SELECT * FROM {}.`{SHOWN_ROWS}` WHERE 1",
        information_schema::NAME
    );
    let crate::parser::Statement::Query(mut query) =
        crate::parser::parse_statement(&template, &crate::dialect::SheafDialect::default())?
    else {
        return Err(SqlError::unknown("the query over a SHOW's rows"));
    };
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.selection = Some(condition);
    }
    Ok(query)
}

fn empty_list(list: EmptyList) -> Rows {
    let columns: &[&str] = match list {
        EmptyList::Triggers => &[
            "Trigger",
            "Event",
            "Table",
            "Statement",
            "Timing",
            "Created",
            "sql_mode",
            "Definer",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        EmptyList::Events => &[
            "Db",
            "Name",
            "Definer",
            "Time zone",
            "Type",
            "Execute at",
            "Interval value",
            "Status",
        ],
        EmptyList::ProcedureStatus | EmptyList::FunctionStatus => &[
            "Db",
            "Name",
            "Type",
            "Definer",
            "Modified",
            "Created",
            "Security_type",
            "Comment",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        EmptyList::OpenTables => &["Database", "Table", "In_use", "Name_locked"],
    };
    Rows::new(columns.iter().map(|name| (*name, TEXT)))
}
