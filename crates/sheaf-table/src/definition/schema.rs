//! What a table is: its columns, its indexes with the trees that hold them, its foreign keys and CHECKs.
//!
//! [`TableDefinition`] is immutable once a table is open; DDL makes a new one. Columns and indexes are found by name
//! without regard to case, as in MySQL. [`CreateTable`] and [`IndexSpec`] are what a statement asks for, before the
//! catalog has checked it and given out ids and trees.

use sheaf_storage::TreeId;
use sheaf_types::temporal::TimeZone;
use sheaf_types::{Collation, ColumnType, Value};

use crate::definition::row_shape::RowShape;

/// The name of every primary key.
pub const PRIMARY: &str = "PRIMARY";
/// The most characters of a name of a database, table, column or index.
pub const MAX_NAME_CHARACTERS: usize = 64;
/// The most columns of a table.
pub const MAX_COLUMNS: usize = 1017;
/// The most secondary indexes of a table.
pub const MAX_INDEXES: usize = 64;
/// The most parts of an index.
pub const MAX_INDEX_PARTS: usize = 16;

/// The value of a column that a statement does not give.
#[derive(Debug, Clone, PartialEq)]
pub enum DefaultValue {
    /// A constant, already of the column's type; `Value::Null` for DEFAULT NULL.
    Value(Value),
    /// DEFAULT CURRENT_TIMESTAMP (with the column's own fraction digits).
    CurrentTimestamp,
    /// `DEFAULT (expression)` whose value is another one for other rows, statements or sessions.
    Expression(DefaultExpression),
}

/// What a column gets is computed for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultExpression {
    /// Without parentheses around it; columns are in backticks and without a table.
    pub text: String,
    /// The columns that it names.
    pub columns: Vec<String>,
}

/// What computes the values of a generated column: see [`generated_column`](crate::definition::generated_column).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedColumn {
    /// As SHOW CREATE TABLE prints it between parentheses; columns are in backticks and without a table.
    pub expression: String,
    /// The columns that it names.
    pub columns: Vec<String>,
    pub kind: GeneratedKind,
}

/// What was written behind the expression. The values of both kinds are stored in the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeneratedKind {
    Virtual,
    Stored,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub ty: ColumnType,
    pub nullable: bool,
    /// `None`: a nullable column defaults to NULL, another must be given.
    pub default: Option<DefaultValue>,
    pub auto_increment: bool,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_current_timestamp: bool,
    /// Its values are computed of other columns, and no statement gives them.
    pub generated: Option<GeneratedColumn>,
    /// Only a statement that names it sees it: `*` does not stand for it, nor do INSERTs without a list give it.
    pub invisible: bool,
    /// It has the values of a [key expression](crate::definition::key_expression): no name finds it, and it is
    /// invisible.
    pub hidden: bool,
    pub comment: String,
    /// Of a TIMESTAMP: the zone of its values outside of rows and keys, its default among them. UTC in the catalog.
    pub time_zone: TimeZone,
}

impl Column {
    /// The column as a session of this time zone sees it.
    pub fn in_time_zone(mut self, zone: TimeZone) -> Column {
        if self.ty.follows_time_zone() {
            if let Some(DefaultValue::Value(Value::Timestamp(micros))) = &mut self.default {
                *micros = zone.local(self.time_zone.utc(*micros));
            }
            self.time_zone = zone;
        }
        self
    }

    /// A VIRTUAL generated column.
    pub fn is_virtual(&self) -> bool {
        let mut generated = self.generated.iter();
        generated.any(|generated| generated.kind == GeneratedKind::Virtual)
    }

    /// The expression that its default is, if it is one.
    pub fn default_expression(&self) -> Option<&DefaultExpression> {
        match &self.default {
            Some(DefaultValue::Expression(expression)) => Some(expression),
            _ => None,
        }
    }

    /// A column with a name, a type and nothing else.
    pub fn new(name: impl Into<String>, ty: ColumnType, nullable: bool) -> Column {
        Column {
            name: name.into(),
            ty,
            nullable,
            default: None,
            auto_increment: false,
            on_update_current_timestamp: false,
            generated: None,
            invisible: false,
            hidden: false,
            comment: String::new(),
            time_zone: TimeZone::UTC,
        }
    }
}

/// One column, or the start of one, in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPart {
    /// Position in [`TableDefinition::columns`].
    pub column: usize,
    /// Only this many characters (bytes for byte strings) are in the index; `None`: all.
    pub prefix_length: Option<u32>,
    /// Declared DESC. Accepted and printed; stored ascending, because every scan runs both ways.
    pub descending: bool,
}

/// An index: the primary key's clustered tree, or a secondary tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Unique in its table, also among the dropped indexes that statistics still know; 0 for the primary key.
    pub id: u32,
    pub name: String,
    /// In key order. Empty only for the primary index of a table with a hidden row id.
    pub parts: Vec<IndexPart>,
    pub unique: bool,
    pub primary: bool,
    pub tree: TreeId,
    pub comment: String,
    /// It is kept like any other, but no plan uses it unless `optimizer_switch` says `use_invisible_indexes=on`.
    pub invisible: bool,
}

/// The order of rows in InnoDB, by which it numbers them for a new AUTO_INCREMENT column: that of the primary key, else
/// of the unique key that stands for it, else that in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowOrder {
    /// Position of the key among the secondary indexes; `None`: rows are so in the clustered tree.
    pub secondary: Option<usize>,
    pub descending: bool,
    /// `false`: InnoDB's order may be another one, or has directions that no scan has.
    pub is_certain: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    /// Unique among all tables there ever were.
    pub id: u64,
    pub database: String,
    pub name: String,
    pub columns: Vec<Column>,
    /// Without parts: the table has a hidden row id.
    pub primary: Index,
    pub secondary: Vec<Index>,
    /// Collation of string columns that do not name one.
    pub collation: Collation,
    pub comment: String,
    /// The tree of long values; `None` if no row can be too long for a page.
    pub overflow: Option<TreeId>,
    /// AUTO_INCREMENT = n of the CREATE TABLE: the least value to give out.
    pub auto_increment_start: u64,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<CheckConstraint>,
    /// Where columns are in rows; `None`: in their order.
    pub shape: Option<RowShape>,
}

/// Ids from here on are those of temporary tables, which no catalog tree knows.
pub(crate) const FIRST_TEMPORARY_ID: u64 = 1 << 63;

impl TableDefinition {
    /// Whether it is a table of one session ([`Catalog::of_temporary_tables`](crate::Catalog::of_temporary_tables)).
    pub fn is_temporary(&self) -> bool {
        self.id >= FIRST_TEMPORARY_ID
    }

    /// Columns or indexes of it are invisible.
    pub fn has_invisible_parts(&self) -> bool {
        self.columns.iter().any(|column| column.invisible)
            || self.secondary.iter().any(|index| index.invisible)
    }

    /// Positions of the columns that `*` stands for.
    pub fn visible_columns(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.columns.len()).filter(|column| !self.columns[*column].invisible)
    }

    /// The primary key, or the key that MySQL takes for it in a table without one: the first unique key of whole
    /// columns that are NOT NULL, and no expressions. `None`: there is none.
    pub fn leading_key(&self) -> Option<&Index> {
        if !self.has_hidden_row_id() {
            return Some(&self.primary);
        }
        let is_whole = |part: &IndexPart| {
            let column = &self.columns[part.column];
            part.prefix_length.is_none() && !column.nullable && !column.hidden
        };
        let mut unique = self.secondary.iter().filter(|index| index.unique);
        unique.find(|index| index.parts.iter().all(is_whole))
    }

    /// Values of columns are computed of other columns.
    pub fn has_generated_columns(&self) -> bool {
        self.columns.iter().any(|column| column.generated.is_some())
    }

    /// Defaults of columns are computed for each row.
    pub fn has_computed_defaults(&self) -> bool {
        self.columns
            .iter()
            .any(|column| column.default_expression().is_some())
    }

    /// Position of a column by name, without regard to case. No name finds a hidden one.
    pub fn column_position(&self, name: &str) -> Option<usize> {
        // Planning asks many tables for names that most of them do not have, and nearly all names are ASCII.
        let is_it = |column: &Column| {
            column.name.len() == name.len()
                && column.name.eq_ignore_ascii_case(name)
                && !column.hidden
        };
        if let Some(found) = self.columns.iter().position(is_it) {
            return Some(found);
        }
        // What is no ASCII and is spelled so in the other case has more bytes.
        let mut others = self.columns.iter().map(|column| column.name.as_str());
        if name.is_ascii() && others.all(|other| other.len() <= name.len() || other.is_ascii()) {
            return None;
        }
        let is_it = |column: &Column| same_name(&column.name, name) && !column.hidden;
        self.columns.iter().position(is_it)
    }

    /// The columns that names find.
    pub fn named_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.hidden)
    }

    /// True if rows are keyed by a hidden 8-byte row id.
    pub fn has_hidden_row_id(&self) -> bool {
        self.primary.parts.is_empty()
    }

    /// Where InnoDB would have the rows one behind another. Where several unique keys could stand for a primary key, it
    /// is the one that could first, which nobody knows any more.
    pub fn row_order(&self) -> RowOrder {
        let is_whole = |part: &IndexPart| {
            let column = &self.columns[part.column];
            part.prefix_length.is_none() && !column.nullable && !column.is_virtual()
        };
        let mut stand_ins = self.secondary.iter().enumerate().filter(|(_, index)| {
            self.has_hidden_row_id() && index.unique && index.parts.iter().all(is_whole)
        });
        let (first, second) = (stand_ins.next(), stand_ins.next());
        let key = first.map_or(&self.primary, |(_, index)| index);
        let descending = key.parts.iter().any(|part| part.descending);
        RowOrder {
            secondary: first.map(|(position, _)| position),
            descending,
            is_certain: second.is_none()
                && key.parts.iter().all(|part| part.descending == descending),
        }
    }

    /// Position of a secondary index by name, without regard to case.
    pub fn secondary_position(&self, name: &str) -> Option<usize> {
        self.secondary
            .iter()
            .position(|index| same_name(&index.name, name))
    }

    /// Secondary indexes that have the same parts as one before them, and are unique like it.
    pub fn duplicate_indexes(&self) -> impl Iterator<Item = &Index> {
        let is_duplicate = |(position, index): &(usize, &Index)| {
            let mut before = self.secondary[..*position].iter();
            before.any(|other| other.parts == index.parts && other.unique == index.unique)
        };
        let indexes = self.secondary.iter().enumerate();
        indexes.filter(is_duplicate).map(|(_, index)| index)
    }

    /// The index of that name, PRIMARY included (only if it was declared).
    pub fn index(&self, name: &str) -> Option<&Index> {
        if same_name(name, PRIMARY) {
            return (!self.has_hidden_row_id()).then_some(&self.primary);
        }
        self.secondary_position(name)
            .map(|position| &self.secondary[position])
    }

    /// An index of this table as errors name it.
    pub(crate) fn key_name(&self, index: &Index) -> String {
        format!("{}.{}", self.name, index.name)
    }

    /// Declared indexes in MySQL's order: the primary key, unique indexes, the others.
    pub fn indexes(&self) -> impl Iterator<Item = &Index> {
        (!self.has_hidden_row_id())
            .then_some(&self.primary)
            .into_iter()
            .chain(&self.secondary)
    }

    /// Puts the secondary indexes in MySQL's order. A row that two unique indexes refuse is refused, or changes the
    /// other row, by the first of them:
    ///
    /// ```text
    ///   unique, of columns that are NOT NULL -> unique -> not unique
    ///   unique, of whole columns -> unique, of a prefix          within the first two
    ///   as declared                                              within each
    /// ```
    pub(crate) fn order_indexes(&mut self) {
        let columns = &self.columns;
        self.secondary.sort_by_key(|index| {
            let has =
                |what: &dyn Fn(&IndexPart) -> bool| index.unique && index.parts.iter().any(what);
            let has_null = has(&|part| columns[part.column].nullable);
            (
                !index.unique,
                has_null,
                has(&|part| part.prefix_length.is_some()),
            )
        });
    }

    /// The zone in which values of its TIMESTAMP columns are given; `None`: it has none of these.
    pub fn time_zone(&self) -> Option<TimeZone> {
        let is_timestamp = |column: &&Column| column.ty.follows_time_zone();
        Some(self.columns.iter().find(is_timestamp)?.time_zone)
    }

    /// The table as a session of this time zone sees it.
    pub fn in_time_zone(mut self, zone: TimeZone) -> TableDefinition {
        let columns = self.columns.into_iter();
        self.columns = columns.map(|column| column.in_time_zone(zone)).collect();
        self
    }

    /// A VIRTUAL column that shows something else in each time zone. Its values are stored, and are those of UTC.
    pub fn virtual_column_of_time_zone(&self) -> Option<&Column> {
        let is_timestamp = |column: &Column| column.ty.follows_time_zone();
        let timestamps = || (0..self.columns.len()).filter(|at| is_timestamp(&self.columns[*at]));
        let differs = |(at, column): &(usize, &Column)| {
            column.is_virtual()
                && (is_timestamp(column) || timestamps().any(|from| self.follows_from(*at, from)))
        };
        let found = self.columns.iter().enumerate().find(differs);
        found.map(|(_, column)| column)
    }

    /// True if rows must be tested before they are written.
    pub fn has_enforced_checks(&self) -> bool {
        self.checks.iter().any(|check| check.enforced)
    }

    /// Position of the AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.auto_increment)
    }
}

/// What happens to rows of the child when their row of the parent goes or changes its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// Not written: as RESTRICT.
    #[default]
    NoAction,
    /// The change of the parent fails.
    Restrict,
    /// They go or change with it.
    Cascade,
    /// Their columns become NULL.
    SetNull,
}

impl ReferentialAction {
    /// As `information_schema` writes it.
    pub fn name(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
        }
    }

    /// True if the change of the parent fails while the child has rows.
    pub fn restricts(self) -> bool {
        matches!(
            self,
            ReferentialAction::NoAction | ReferentialAction::Restrict
        )
    }
}

/// A foreign key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Unique in its database.
    pub name: String,
    /// Positions in the child's columns.
    pub columns: Vec<usize>,
    pub referenced_database: String,
    pub referenced_table: String,
    /// Names of the parent's columns, one for each of `columns`.
    pub referenced_columns: Vec<String>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

/// What FOREIGN KEY asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeySpec {
    /// `None`: the table's name, `_ibfk_` and a number.
    pub name: Option<String>,
    /// The name of the index that is made if there is none; `None`: the constraint's, or the first column's.
    pub index_name: Option<String>,
    pub columns: Vec<String>,
    pub referenced_database: String,
    pub referenced_table: String,
    pub referenced_columns: Vec<String>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

/// A CHECK of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckConstraint {
    /// Unique in its database.
    pub name: String,
    /// The expression, without parentheses around it.
    pub expression: String,
    /// The columns that it names.
    pub columns: Vec<String>,
    pub enforced: bool,
}

/// What CHECK asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSpec {
    /// `None`: the table's name, `_chk_` and a number.
    pub name: Option<String>,
    pub expression: String,
    pub columns: Vec<String>,
    pub enforced: bool,
    /// The column whose definition it is part of, and which it may name alone.
    pub of_column: Option<String>,
}

/// Names of columns and indexes are equal without regard to case.
pub fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

/// What CREATE TABLE asks for.
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub database: String,
    pub name: String,
    pub columns: Vec<Column>,
    pub primary_key: Option<Vec<IndexPartSpec>>,
    pub indexes: Vec<IndexSpec>,
    pub collation: Collation,
    pub comment: String,
    pub auto_increment_start: u64,
    pub foreign_keys: Vec<ForeignKeySpec>,
    /// Parents must be there and fit (the variable `foreign_key_checks`).
    pub check_foreign_keys: bool,
    pub checks: Vec<CheckSpec>,
}

impl CreateTable {
    /// A table of these columns without indexes and options.
    pub fn new(
        database: impl Into<String>,
        name: impl Into<String>,
        columns: Vec<Column>,
    ) -> CreateTable {
        CreateTable {
            database: database.into(),
            name: name.into(),
            columns,
            primary_key: None,
            indexes: Vec::new(),
            collation: Collation::default(),
            comment: String::new(),
            auto_increment_start: 1,
            foreign_keys: Vec::new(),
            check_foreign_keys: true,
            checks: Vec::new(),
        }
    }
}

/// What KEY, UNIQUE KEY or CREATE INDEX asks for.
#[derive(Debug, Clone)]
pub struct IndexSpec {
    /// `None`: named after the first column, with `_2`, `_3` ... if that is taken.
    pub name: Option<String>,
    pub parts: Vec<IndexPartSpec>,
    pub unique: bool,
    pub comment: String,
    pub invisible: bool,
}

/// One part of an index: a column by its name, or an expression.
#[derive(Debug, Clone)]
pub struct IndexPartSpec {
    /// Empty if the part is an expression.
    pub column: String,
    /// The generated column that is to have the values of an expression. It gets its name with the index.
    pub expression: Option<Box<Column>>,
    pub prefix_length: Option<u32>,
    pub descending: bool,
}

impl IndexPartSpec {
    /// A whole column, ascending.
    pub fn column(name: impl Into<String>) -> IndexPartSpec {
        IndexPartSpec {
            column: name.into(),
            expression: None,
            prefix_length: None,
            descending: false,
        }
    }
}
