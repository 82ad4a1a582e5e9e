//! Views: CREATE, ALTER, DROP and SHOW CREATE.
//!
//! A view is kept as a text. It is the query as its user wrote it, but for what would mean something else later, or
//! somewhere else:
//!
//! ```text
//!   USE shop; CREATE VIEW v AS SELECT o.*, "x" FROM orders o, archive.people      with sql_mode = ANSI_QUOTES
//!   -->  SELECT `o`.`id`, `o`.`day`, `x` FROM orders o, archive.people
//! ```
//!
//! `*` stands for the columns that the tables have now. Tables of other databases than the view's are named with them,
//! and those of its own without, so that a dump can be loaded into another database. The columns of the view keep the
//! types that they have now; they are shown, and not used by queries.

use std::collections::HashSet;

use datafusion_expr::LogicalPlan;
use sheaf_exec::for_each_node;
use sheaf_frontend::edit::{Edit, edited};
use sheaf_frontend::function_names::{SpacesOfFunctions, needs_parenthesis};
use sheaf_frontend::query::{BoundQuery, ViewNotes};
use sheaf_frontend::walk::{ExpressionVisitor, walk_query};
use sheaf_table::view::{ViewAlgorithm, ViewCheck, ViewDefinition, ViewSecurity};
use sheaf_table::{AccountName, Column, Privileges, QualifiedName, TableError};
use sheaf_types::error::codes;
use sheaf_types::text::quoting::quoted_name;
use sqlparser::ast;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::ops::{ControlFlow, Range};

use crate::definition::standard_text::standard_text;
use crate::definition::view_names::{MAX_NAME_CHARACTERS, make_names, named_by_text};
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::account::UserName;
use crate::parser::change::name_of;
use crate::parser::statement::{Statement, TableName};
use crate::parser::view::{CreateView, ViewChange};
use crate::parser::{Parameters, Parsed, parse_with_parameters};
use crate::query::never_null::never_null;
use crate::query::rows::{Cells, Rows};
use crate::query::value_extent::extents;
use crate::session::Session;
use crate::session::result::ResultSink;

impl Session {
    /// CREATE VIEW and ALTER VIEW.
    pub(crate) fn create_view(
        &mut self,
        create: Parsed<'_, CreateView>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast: create, text } = create;
        let (database, name) = self.resolve_for_change(&create.name)?;
        let catalog = self.engine.catalog();
        match (create.change, catalog.table(&database, &name)) {
            (ViewChange::Alter, Ok(_)) => {
                let table = name;
                return Err(TableError::NotView { database, table }.into());
            }
            (ViewChange::Alter, Err(TableError::NotBaseTable { .. })) => {}
            (ViewChange::Alter, Err(error)) => return Err(error.into()),
            (
                ViewChange::Create {
                    if_not_exists: true,
                },
                Ok(_) | Err(TableError::NotBaseTable { .. }),
            ) => {
                let exists = SqlError::table_exists(&name);
                self.warnings
                    .note(codes::TABLE_EXISTS_ERROR, exists.message);
                return self.ok(sink, 0, String::new());
            }
            _ => {}
        }
        let definition = self.view_definition(Parsed::new(&create, text), (database, name))?;
        let replaces = !matches!(create.change, ViewChange::Create { .. });
        self.engine.catalog().put_view(definition, replaces)?;
        self.ok(sink, 0, String::new())
    }

    fn view_definition(
        &mut self,
        create: Parsed<'_, &CreateView>,
        (database, name): QualifiedName,
    ) -> Result<ViewDefinition> {
        let Parsed { ast: create, text } = create;
        check_is_constant(&create.query)?;
        if !self.engine.catalog().database_exists(&database) {
            return Err(TableError::UnknownDatabase { name: database }.into());
        }
        // ALTER VIEW keeps what it does not name.
        let old = match create.change {
            ViewChange::Alter => self.engine.catalog().view(&database, &name),
            ViewChange::Create { .. } | ViewChange::Replace => None,
        };
        let old = old.as_ref().map(|view| &view.definition);
        let options = &create.options;
        let algorithm = options.algorithm.or(old.map(|old| old.algorithm));
        let algorithm = algorithm.unwrap_or_default();
        let security = options.security.or(old.map(|old| old.security));
        let definer = match old {
            Some(old) => {
                let kept = self.allowed_definer(&old.definer)?;
                match &options.definer {
                    Some(named) => self.definer_of(Some(named))?,
                    None => kept,
                }
            }
            None => self.definer_of(options.definer.as_ref())?,
        };
        let notes = ViewNotes {
            database: database.clone(),
            name: name.clone(),
            ..ViewNotes::default()
        };
        let bound = self.lower_noting(Parsed::new(&create.query, text), &notes)?;
        let columns = self.columns_of_view((&create.query, &bound), &create.columns)?;
        let mut edits = notes.edits.into_inner();
        edits.extend(edits_of_columns(&create.query, &database));
        let dialect = self.dialect();
        edits.extend(edits_of_dialect(text, &create.place, dialect));
        let query = standard_text(edited(text, create.place.clone(), edits), dialect)?;
        // What is kept is read again without the statement around it.
        let parsed = parse_with_parameters(&query, &SheafDialect::default(), Parameters::Unknown);
        match parsed? {
            (Statement::Query(_), 0) => {}
            (Statement::Query(_), _) => return Err(contains_variable()),
            _ => return Err(SqlError::parse_error(&query, 1)),
        }
        let is_updatable =
            algorithm != ViewAlgorithm::TempTable && self.is_updatable(&create.query, &bound)?;
        let is_column = |header: &sheaf_frontend::query::Header| !header.org_name.is_empty();
        let has_columns = bound.headers.iter().any(is_column);
        if create.check != ViewCheck::None && !(is_updatable && has_columns) {
            return Err(SqlError::new(
                codes::VIEW_NONUPD_CHECK,
                format!("CHECK OPTION on non-updatable view '{database}.{name}'"),
            ));
        }
        let variable = |name: &str| {
            let value = self.variables.get(name);
            value.map_or_else(|_| String::new(), |value| value.to_string())
        };
        Ok(ViewDefinition {
            algorithm,
            definer,
            security: security.unwrap_or_default(),
            check: create.check,
            is_updatable,
            query,
            columns,
            character_set: variable("character_set_client"),
            collation: variable("collation_connection"),
            database,
            name,
        })
    }

    /// The account with whose privileges a view reads its tables. Error 1227 for another one than one's own.
    fn definer_of(&mut self, named: Option<&UserName>) -> Result<AccountName> {
        match named {
            None | Some(UserName::Current) => Ok(self.client.own_definer()),
            Some(UserName::Named(named)) => self.allowed_definer(named),
        }
    }

    /// An account that the session may name as a view's, or leave. Error 1227.
    fn allowed_definer(&mut self, named: &AccountName) -> Result<AccountName> {
        if *named == self.client.own_definer() {
            return Ok(named.clone());
        }
        self.client.check_one_of(Privileges::SUPER)?;
        if !self.engine.catalog().accounts().contains_key(named) {
            let error = SqlError::no_such_definer(named);
            self.warnings.note(codes::NO_SUCH_USER, error.message);
        }
        Ok(named.clone())
    }

    /// The columns of a view, under the names that it gives them or those of its query.
    fn columns_of_view(
        &self,
        (query, bound): (&ast::Query, &BoundQuery),
        names: &[String],
    ) -> Result<Vec<Column>> {
        let metas = self.columns_of(bound);
        if !names.is_empty() && names.len() != metas.len() {
            return Err(SqlError::new(
                codes::VIEW_WRONG_LIST,
                "In definition of view, derived table or common table expression, SELECT list and column names list \
                 have different column counts",
            ));
        }
        let mut names = names.to_vec();
        if names.is_empty() {
            names.extend(metas.iter().map(|meta| meta.name.clone()));
            make_names(&mut names, &named_by_text(query, &bound.headers));
        }
        let mut known = HashSet::with_capacity(metas.len());
        let mut columns = Vec::with_capacity(metas.len());
        let outputs = bound.shown.outputs.iter().zip(extents(bound));
        let outputs = outputs.zip(never_null(bound));
        let columns_of = metas.iter().zip(names).zip(outputs);
        for ((meta, name), (((_, field), extent), is_there)) in columns_of {
            if name.chars().count() > MAX_NAME_CHARACTERS {
                return Err(TableError::NameTooLong { name }.into());
            }
            if name.is_empty() || name.ends_with(' ') {
                return Err(TableError::IncorrectColumnName { name }.into());
            }
            if !known.insert(name.to_lowercase()) {
                return Err(SqlError::duplicate_field_name(&name));
            }
            let nullable = field.is_nullable() && !is_there;
            let field = field.as_ref().clone().with_nullable(nullable);
            let column = self.made_column(&field, meta, (extent, None));
            columns.push(Column { name, ..column });
        }
        Ok(columns)
    }

    /// Whether each row of a query is one of its tables, by the rules of MySQL's manual. Its columns may be computed.
    fn is_updatable(&self, query: &ast::Query, bound: &BoundQuery) -> Result<bool> {
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return Ok(false);
        };
        if query.with.is_some()
            || query.limit_clause.is_some()
            || select.distinct.is_some()
            || select.having.is_some()
            || select.from.is_empty()
        {
            return Ok(false);
        }
        let mut has_groups = false;
        for_each_node(&bound.plan, &mut |node| {
            has_groups |= matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_));
            Ok(())
        })?;
        Ok(!has_groups
            && select.from.iter().all(|tables| {
                let joined = tables.joins.iter().map(|join| &join.relation);
                std::iter::once(&tables.relation)
                    .chain(joined)
                    .all(|factor| self.has_changeable_rows(factor))
            }))
    }

    fn has_changeable_rows(&self, factor: &ast::TableFactor) -> bool {
        let ast::TableFactor::Table { name, .. } = factor else {
            return false;
        };
        let name = name_of(name).and_then(|name| self.resolve(&name));
        name.is_ok_and(|(database, table)| {
            let catalog = self.engine.catalog();
            match catalog.view(&database, &table) {
                Some(view) => view.definition.is_updatable,
                None => catalog.table(&database, &table).is_ok(),
            }
        })
    }

    pub(crate) fn drop_views(
        &mut self,
        names: &[TableName],
        if_exists: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let names = self.resolve_each_once(names)?;
        let catalog = self.engine.catalog();
        let is_missing = |name: &&QualifiedName| {
            matches!(
                catalog.table(&name.0, &name.1),
                Err(TableError::UnknownTable { .. } | TableError::UnknownDatabase { .. })
            )
        };
        let (missing, found): (Vec<_>, Vec<_>) = names.iter().partition(is_missing);
        // As with tables, a missing one keeps the others from being dropped.
        if !missing.is_empty() && !if_exists {
            let missing = missing
                .iter()
                .map(|(database, name)| format!("{database}.{name}"));
            let missing: Vec<String> = missing.collect();
            return Err(SqlError::bad_table(&missing.join(",")));
        }
        for (database, name) in missing {
            let message = SqlError::bad_table(&format!("{database}.{name}")).message;
            self.warnings.note(codes::BAD_TABLE_ERROR, message);
        }
        let is_table = |name: &&QualifiedName| catalog.table(&name.0, &name.1).is_ok();
        let (tables, views): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|name| if_exists && is_table(name));
        for (database, table) in tables.into_iter().cloned() {
            let message = TableError::NotView { database, table }.to_string();
            self.warnings.note(codes::WRONG_OBJECT, message);
        }
        let found: Vec<QualifiedName> = views.into_iter().cloned().collect();
        if !found.is_empty() {
            self.engine.catalog().drop_views(&found)?;
        }
        self.ok(sink, 0, String::new())
    }

    /// RENAME TABLE of a view, which stays in its database.
    pub(crate) fn rename_view(&self, old: &QualifiedName, new: &QualifiedName) -> Result<()> {
        if old.0 != new.0 {
            return Err(SqlError::new(
                codes::FORBID_SCHEMA_CHANGE,
                format!(
                    "Changing schema from '{}' to '{}' is not allowed.",
                    old.0, new.0
                ),
            ));
        }
        Ok(self.engine.catalog().rename_view(&old.0, &old.1, &new.1)?)
    }

    /// SHOW CREATE VIEW, and SHOW CREATE TABLE of a view.
    pub(crate) fn create_view_rows(&self, database: &str, name: &str) -> Result<Rows> {
        self.client
            .require_on_table(database, name, Privileges::SELECT | Privileges::SHOW_VIEW)?;
        let catalog = self.engine.catalog();
        let Some(view) = catalog.view(database, name) else {
            catalog.table(database, name)?;
            let (database, table) = (database.to_string(), name.to_string());
            return Err(TableError::NotView { database, table }.into());
        };
        let mut rows = Rows::new([
            ("View", Cells::Text(64)),
            ("Create View", Cells::Text(u32::MAX)),
            ("character_set_client", Cells::Text(32)),
            ("collation_connection", Cells::Text(32)),
        ]);
        let definition = &view.definition;
        rows.push(vec![
            name.into(),
            create_statement(definition).into(),
            definition.character_set.clone().into(),
            definition.collation.clone().into(),
        ]);
        Ok(rows)
    }
}

/// The statement that makes a view.
fn create_statement(view: &ViewDefinition) -> String {
    let algorithm = match view.algorithm {
        ViewAlgorithm::Undefined => "UNDEFINED",
        ViewAlgorithm::Merge => "MERGE",
        ViewAlgorithm::TempTable => "TEMPTABLE",
    };
    let columns: Vec<String> = view
        .columns
        .iter()
        .map(|column| quoted_name(&column.name))
        .collect();
    format!(
        "CREATE ALGORITHM={algorithm} DEFINER={}@{} SQL SECURITY {} VIEW {} ({}) AS {}{}",
        quoted_name(&view.definer.user),
        quoted_name(&view.definer.host),
        security_name(view.security),
        quoted_name(&view.name),
        columns.join(","),
        view.query,
        match view.check {
            ViewCheck::None => "",
            ViewCheck::Local => " WITH LOCAL CHECK OPTION",
            ViewCheck::Cascaded => " WITH CASCADED CHECK OPTION",
        }
    )
}

pub(crate) fn security_name(security: ViewSecurity) -> &'static str {
    match security {
        ViewSecurity::Definer => "DEFINER",
        ViewSecurity::Invoker => "INVOKER",
    }
}

/// 1351.
fn contains_variable() -> SqlError {
    SqlError::new(
        codes::VIEW_SELECT_VARIABLE,
        "View's SELECT contains a variable or parameter",
    )
}

/// Error 1351 for variables, whose values would be those of the session that uses the view.
fn check_is_constant(query: &ast::Query) -> Result<()> {
    struct Variables(bool);

    impl ExpressionVisitor for Variables {
        fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
            let first = match expression {
                ast::Expr::Identifier(name) => Some(&*name),
                ast::Expr::CompoundIdentifier(parts) => parts.first(),
                _ => None,
            };
            self.0 |= first.is_some_and(|name| name.value.starts_with('@'));
            ControlFlow::Continue(())
        }
    }

    let mut found = Variables(false);
    walk_query(&mut query.clone(), &mut found);
    match found.0 {
        true => Err(contains_variable()),
        false => Ok(()),
    }
}

/// Columns that are named with the view's own database lose it, as their tables do. Where several tables have one name,
/// they are told apart by it.
fn edits_of_columns(query: &ast::Query, database: &str) -> Vec<Edit> {
    #[derive(Default)]
    struct Named {
        tables: Vec<String>,
        columns: Vec<Vec<ast::Ident>>,
    }

    impl ExpressionVisitor for Named {
        fn enter_table(&mut self, table: &ast::TableFactor) {
            if let ast::TableFactor::Table { name, alias, .. } = table {
                let name = name.0.last().and_then(|part| part.as_ident());
                let alias = alias.as_ref().map(|alias| &alias.name);
                self.tables
                    .extend(alias.or(name).map(|name| name.value.clone()));
            }
        }

        fn leave_expression(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
            if let ast::Expr::CompoundIdentifier(parts) = expression
                && parts.len() == 3
            {
                self.columns.push(parts.clone());
            }
            ControlFlow::Continue(())
        }
    }

    let mut named = Named::default();
    walk_query(&mut query.clone(), &mut named);
    let Named { tables, columns } = named;
    let is_clear =
        |table: &ast::Ident| tables.iter().filter(|name| **name == table.value).count() < 2;
    let own = columns
        .iter()
        .filter(|parts| parts[0].value == database && is_clear(&parts[1]));
    own.map(|parts| Edit {
        place: parts[0].span.start..parts[1].span.start,
        words: String::new(),
    })
    .collect()
}

/// What has to be written in another way where `sql_mode` is not that of the view's user. Of operators this is
/// [`standard_text`].
fn edits_of_dialect(text: &str, place: &Range<Location>, dialect: SheafDialect) -> Vec<Edit> {
    if dialect == SheafDialect::default() {
        return Vec::new();
    }
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
    let tokens = tokens.unwrap_or_default();
    let mut edits = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.span.start < place.start || place.end < token.span.end {
            continue;
        }
        match &token.token {
            Token::Word(word) if word.quote_style == Some('"') => edits.push(Edit {
                place: token.span.start..token.span.end,
                words: quoted_name(&word.value),
            }),
            // Elsewhere the name of a function has its parenthesis next to it.
            Token::Word(word)
                if dialect.spaces_of_functions == SpacesOfFunctions::Ignored
                    && word.quote_style.is_none()
                    && needs_parenthesis(&word.value) =>
            {
                let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
                let next = tokens[at + 1..].iter().find(|token| !is_blank(token));
                if let Some(next) = next.filter(|next| next.token == Token::LParen) {
                    edits.push(Edit {
                        place: token.span.end..next.span.start,
                        words: String::new(),
                    });
                }
            }
            _ => {}
        }
    }
    edits
}
