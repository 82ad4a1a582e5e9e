//! What names mean in a query: the columns of its FROM, the items of its select list, its windows.
//!
//! SqlToRel looks up names by itself, but for those that MySQL gives a meaning of their own. USING and NATURAL make one
//! column of two. It is shown once, in front of the others, and its name without a table is that of the table whose
//! rows the join keeps:
//!
//! ```text
//!   a (x, k, p)  b (k, q, p)
//!
//!   SELECT * FROM a JOIN b USING (k)           a.k, a.x, a.p, b.q, b.p
//!   SELECT * FROM a RIGHT JOIN b USING (k)     b.k, b.q, b.p, a.x, a.p
//!   SELECT k FROM a NATURAL RIGHT JOIN b       b.k
//! ```
//!
//! So such joins are written with ON, and where their columns are named, the table is named too. A plain FROM costs
//! nothing but a list of its tables.

use arrow::datatypes::SchemaRef;
use sheaf_access::CLUSTERED_KEY;
use sheaf_types::error::codes::{self, ErrorCode};
use sqlparser::ast::{Expr, Ident, NamedWindowExpr, WindowSpec};

use crate::error::{Result, SqlError};

/// The names of a table's columns.
pub enum ColumnNames {
    Schema(SchemaRef),
    List(Vec<String>),
}

impl ColumnNames {
    fn iter(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            // What a statement that changes rows reads besides is not there for names.
            ColumnNames::Schema(schema) => Box::new(
                schema
                    .fields()
                    .iter()
                    .map(|field| field.name().as_str())
                    .filter(|name| *name != CLUSTERED_KEY),
            ),
            ColumnNames::List(names) => Box::new(names.iter().map(String::as_str)),
        }
    }
}

struct ScopeTable {
    alias: String,
    /// `None`: a query, which is in none.
    database: Option<String>,
    columns: ColumnNames,
}

impl ScopeTable {
    fn scope_columns(&self) -> impl Iterator<Item = ScopeColumn> {
        self.columns.iter().map(|name| ScopeColumn {
            table: self.alias.clone(),
            name: name.to_string(),
            is_joined: false,
        })
    }
}

/// A column as `*` shows it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ScopeColumn {
    pub table: String,
    pub name: String,
    /// It stands for that of another table, too.
    is_joined: bool,
}

impl ScopeColumn {
    pub fn expr(&self) -> Expr {
        Expr::CompoundIdentifier(vec![
            Ident::with_quote('`', &self.table),
            Ident::with_quote('`', &self.name),
        ])
    }
}

/// An item of a select list as ORDER BY and HAVING name it.
pub struct ScopeItem {
    pub name: String,
    /// What takes the place of its name; `None`: the name stays.
    pub means: Option<Expr>,
}

/// The columns that make one of two tables.
pub enum JoinedBy<'a> {
    Using(&'a [String]),
    /// All that have the same name.
    Natural,
}

/// What a name without a table means.
enum Meaning {
    /// Nothing here: it may be a column of the query around.
    Unknown,
    /// What SqlToRel finds.
    Plain,
    Expr(Box<Expr>),
}

/// The names of one query block, or of the two sides of a join.
#[derive(Default)]
pub struct Scope {
    tables: Vec<ScopeTable>,
    /// All columns in the order of `*`, where that is not the order of the tables.
    joined: Option<Vec<ScopeColumn>>,
    /// The items that may be named. Filled where their names mean anything else than SqlToRel believes.
    pub items: Vec<ScopeItem>,
    /// What items mean to subqueries, if these may name them.
    pub items_outside: Vec<(String, Expr)>,
    /// The block has aggregates and no GROUP BY.
    pub is_one_row: bool,
    /// ORDER BY or HAVING is lowered, outside of aggregates.
    pub names_items: bool,
    windows: Vec<(String, WindowSpec)>,
}

pub fn is_same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

impl Scope {
    pub fn of_table(alias: &str, columns: ColumnNames) -> Scope {
        Scope {
            tables: vec![ScopeTable {
                alias: alias.to_string(),
                database: None,
                columns,
            }],
            ..Scope::default()
        }
    }

    /// Its tables are in this database.
    pub fn in_database(mut self, database: &str) -> Scope {
        for table in &mut self.tables {
            table.database = Some(database.to_string());
        }
        self
    }

    /// Whether a table of this name is in this database.
    pub fn has_table(&self, database: &str, alias: &str) -> bool {
        let of_database = |known: &Option<String>| known.as_deref() == Some(database);
        let mut tables = self.tables.iter();
        tables.any(|table| table.alias == alias && of_database(&table.database))
    }

    /// The table that has a column of this name.
    pub fn table_of(&self, table: Option<&str>, name: &str) -> Option<&str> {
        let tables = self.tables.iter();
        let mut tables = tables.filter(|known| table.is_none_or(|table| known.alias == table));
        let found = tables.find(|table| table.columns.iter().any(|known| is_same(known, name)));
        found.map(|table| table.alias.as_str())
    }

    /// Whether a table, or the one of this name, has a column of this name.
    pub fn has_column(&self, table: Option<&str>, name: &str) -> bool {
        let tables = self.tables.iter();
        let mut tables = tables.filter(|known| table.is_none_or(|table| known.alias == table));
        tables.any(|table| table.columns.iter().any(|known| is_same(known, name)))
    }

    /// The tables of both, one behind the other.
    pub fn append(&mut self, mut other: Scope) {
        if self.joined.is_some() || other.joined.is_some() {
            let mut columns = self.columns();
            columns.extend(other.columns());
            self.joined = Some(columns);
        }
        self.tables.append(&mut other.tables);
    }

    /// All columns in the order of `*`.
    pub fn columns(&self) -> Vec<ScopeColumn> {
        if let Some(joined) = &self.joined {
            return joined.clone();
        }
        let tables = self.tables.iter();
        tables.flat_map(ScopeTable::scope_columns).collect()
    }

    /// The column of this name, if only one table has one.
    pub fn only_column(&self, name: &str) -> Option<ScopeColumn> {
        one_of(&self.columns(), name).ok().cloned()
    }

    /// Whether `*` is another list than SqlToRel's.
    pub fn has_joined(&self) -> bool {
        self.joined.is_some()
    }

    /// The columns behind `table.*`.
    pub fn columns_of(&self, alias: &str) -> Vec<ScopeColumn> {
        let table = self.tables.iter().find(|table| table.alias == alias);
        table.map_or_else(Vec::new, |table| table.scope_columns().collect())
    }

    /// Joins with `right`, and returns the pairs of columns that have to be equal.
    ///
    /// # Errors
    /// 1054 and 1052 for a column that a side does not have, or has twice.
    pub fn join(
        &mut self,
        right: Scope,
        joined_by: &JoinedBy<'_>,
        keeps_right: bool,
    ) -> Result<Vec<(ScopeColumn, ScopeColumn)>> {
        let (mut first, mut second) = (self.columns(), right.columns());
        if keeps_right {
            std::mem::swap(&mut first, &mut second);
        }
        let is_common = |column: &ScopeColumn| match joined_by {
            JoinedBy::Using(names) => names.iter().any(|name| is_same(name, &column.name)),
            JoinedBy::Natural => second
                .iter()
                .any(|other| is_same(&other.name, &column.name)),
        };
        let (mut common, rest): (Vec<ScopeColumn>, Vec<ScopeColumn>) =
            first.into_iter().partition(is_common);
        let names: Vec<String> = match joined_by {
            JoinedBy::Using(names) => names.to_vec(),
            JoinedBy::Natural => common.iter().map(|column| column.name.clone()).collect(),
        };
        let mut pairs = Vec::with_capacity(common.len());
        for name in &names {
            // MySQL looks at the right side first.
            let (one, other) = match keeps_right {
                true => {
                    let one = one_of(&common, name)?;
                    (one, one_of(&second, name)?)
                }
                false => {
                    let other = one_of(&second, name)?;
                    (one_of(&common, name)?, other)
                }
            };
            pairs.push((one.clone(), other.clone()));
        }
        for column in &mut common {
            column.is_joined = true;
        }
        second.retain(|column| !names.iter().any(|name| is_same(name, &column.name)));
        common.extend(rest);
        common.extend(second);
        self.joined = Some(common);
        let mut tables = right.tables;
        self.tables.append(&mut tables);
        Ok(pairs)
    }

    /// Whether SqlToRel knows what all names mean.
    pub fn is_plain(&self) -> bool {
        self.joined.is_none() && self.items.is_empty()
    }

    fn meaning(&self, name: &str) -> Meaning {
        let item = self.items.iter().find(|item| is_same(&item.name, name));
        let of_item = |item: &ScopeItem| match &item.means {
            Some(means) => Meaning::Expr(Box::new(means.clone())),
            None => Meaning::Plain,
        };
        match item {
            Some(item) if self.names_items => of_item(item),
            item => match (self.column(name), item) {
                (Meaning::Unknown, Some(item)) => of_item(item),
                (meaning, _) => meaning,
            },
        }
    }

    fn column(&self, name: &str) -> Meaning {
        let Some(joined) = &self.joined else {
            let has = |table: &ScopeTable| table.columns.iter().any(|known| is_same(known, name));
            return match self.tables.iter().any(has) {
                true => Meaning::Plain,
                false => Meaning::Unknown,
            };
        };
        let mut found = joined.iter().filter(|column| is_same(&column.name, name));
        match (found.next(), found.next()) {
            (None, _) => Meaning::Unknown,
            (Some(column), None) if column.is_joined => Meaning::Expr(Box::new(column.expr())),
            _ => Meaning::Plain,
        }
    }

    /// Takes the windows of the query block, with all that they take over from each other.
    ///
    /// # Errors
    /// MySQL's for windows: 3591, 3579, 3580, and those of [`derived_window`].
    pub fn define_windows(&mut self, windows: Vec<(String, NamedWindowExpr)>) -> Result<()> {
        for (at, (name, _)) in windows.iter().enumerate() {
            if windows[..at].iter().any(|(other, _)| is_same(other, name)) {
                return Err(window_error(
                    codes::WINDOW_DUPLICATE_NAME,
                    format!("Window '{name}' is defined twice."),
                ));
            }
        }
        for (name, _) in &windows {
            let spec = resolved_window(name, &windows, 0)?;
            self.windows.push((name.clone(), spec));
        }
        Ok(())
    }

    /// The window of this name. Error 3579 if there is none.
    pub fn window(&self, name: &str) -> Result<&WindowSpec> {
        let mut windows = self.windows.iter();
        let found = windows.find(|(known, _)| is_same(known, name));
        Ok(&found.ok_or_else(|| no_such_window(name))?.1)
    }
}

/// The column of this name. Errors 1054 and 1052.
fn one_of<'c>(columns: &'c [ScopeColumn], name: &str) -> Result<&'c ScopeColumn> {
    let mut found = columns.iter().filter(|column| is_same(&column.name, name));
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (None, _) => Err(SqlError::bad_field(name, "from clause")),
        _ => Err(SqlError::non_unique_column(name, "from clause")),
    }
}

/// What a name without a table means in the innermost of these scopes that knows it; `None`: what SqlToRel finds.
pub fn meaning(scopes: &[Scope], name: &str) -> Option<Expr> {
    let (innermost, outside) = scopes.split_last()?;
    let has_items = outside.iter().any(|scope| !scope.items_outside.is_empty());
    if !has_items && scopes.iter().all(Scope::is_plain) {
        return None;
    }
    for scope in scopes.iter().rev() {
        match scope.meaning(name) {
            Meaning::Unknown if std::ptr::eq(scope, innermost) => {}
            Meaning::Unknown => {
                let mut items = scope.items_outside.iter();
                if let Some((_, item)) = items.find(|(known, _)| is_same(known, name)) {
                    return Some(item.clone());
                }
            }
            Meaning::Plain => return None,
            Meaning::Expr(expr) => return Some(*expr),
        }
    }
    None
}

/// How the innermost table that has a column of this name spells it.
///
/// # Errors
/// 1052 where tables of a block have it in different spellings, which SqlToRel takes for different names.
pub fn spelling(scopes: &[Scope], table: Option<&str>, name: &str) -> Result<Option<String>> {
    for scope in scopes.iter().rev() {
        let tables = scope.tables.iter();
        let tables = tables.filter(|known| table.is_none_or(|table| is_same(&known.alias, table)));
        let columns = tables.flat_map(|table| table.columns.iter());
        let mut columns = columns.filter(|known| is_same(known, name));
        if let Some(first) = columns.next() {
            return match columns.all(|other| other == first) {
                true => Ok(Some(first.to_string())),
                // It may be that of an item.
                false if scope.names_items => Ok(None),
                false => Err(SqlError::non_unique_column(name, "field list")),
            };
        }
    }
    Ok(None)
}

/// The database of a table of a block outside, where its alias alone would be misread. An alias has any database.
pub const OUTER: &str = "$outer";

/// Whether this is a table of a block outside, and a block inside has a column of its name. SqlToRel takes `o.id` for a
/// part of the column `o` then:
///
/// ```text
///   SELECT ... FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.o = o.id)
/// ```
pub fn is_behind_column(scopes: &[Scope], table: &str) -> bool {
    let mut is_column = false;
    for scope in scopes.iter().rev() {
        if scope
            .tables
            .iter()
            .any(|known| is_same(&known.alias, table))
        {
            return is_column;
        }
        let mut columns = scope.tables.iter().flat_map(|known| known.columns.iter());
        is_column |= columns.any(|name| is_same(name, table));
    }
    false
}

fn window_error(code: ErrorCode, message: String) -> SqlError {
    SqlError::new(code, message)
}

/// 3579.
pub fn no_such_window(name: &str) -> SqlError {
    window_error(
        codes::WINDOW_NO_SUCH_WINDOW,
        format!("Window name '{name}' is not defined."),
    )
}

/// A window of the WINDOW clause, without the names of others.
pub fn resolved_window(
    name: &str,
    windows: &[(String, NamedWindowExpr)],
    depth: usize,
) -> Result<WindowSpec> {
    let Some((_, window)) = windows.iter().find(|(known, _)| is_same(known, name)) else {
        return Err(no_such_window(name));
    };
    if depth > windows.len() {
        let text = "There is a circularity in the window dependency graph.";
        return Err(window_error(
            codes::WINDOW_CIRCULARITY_IN_WINDOW_GRAPH,
            text.to_string(),
        ));
    }
    match window {
        NamedWindowExpr::NamedWindow(other) => resolved_window(&other.value, windows, depth + 1),
        NamedWindowExpr::WindowSpec(spec) => match &spec.window_name {
            None => Ok(spec.clone()),
            Some(base) => {
                let resolved = resolved_window(&base.value, windows, depth + 1)?;
                derived_window(spec.clone(), name, &base.value, &resolved)
            }
        },
    }
}

/// `(base ORDER BY ...)`: what a window takes over from the one that it names.
///
/// # Errors
/// 3581, 3582 and 3583 for what it cannot add to the other.
pub fn derived_window(
    spec: WindowSpec,
    name: &str,
    base_name: &str,
    base: &WindowSpec,
) -> Result<WindowSpec> {
    if !spec.partition_by.is_empty() {
        let text = "A window which depends on another cannot define partitioning.";
        return Err(window_error(
            codes::WINDOW_NO_CHILD_PARTITIONING,
            text.to_string(),
        ));
    }
    if base.window_frame.is_some() {
        return Err(window_error(
            codes::WINDOW_NO_INHERIT_FRAME,
            format!(
                "Window '{base_name}' has a frame definition, so cannot be referenced by another window."
            ),
        ));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return Err(window_error(
            codes::WINDOW_NO_REDEFINE_ORDER_BY,
            format!(
                "Window '{name}' cannot inherit '{base_name}' since both contain an ORDER BY clause."
            ),
        ));
    }
    let order_by = match spec.order_by.is_empty() {
        true => base.order_by.clone(),
        false => spec.order_by,
    };
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by.clone(),
        order_by,
        window_frame: spec.window_frame,
    })
}
