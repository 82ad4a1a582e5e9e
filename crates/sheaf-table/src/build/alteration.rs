//! The changes that ALTER TABLE makes of a table.

use sheaf_types::temporal::TimeZone;
use sheaf_types::{Collation, ColumnType};

use crate::codec::key_codec::KeyLayout;
use crate::codec::key_part::KeyPart;
use crate::definition::schema::{
    CheckSpec, Column, DefaultValue, ForeignKeySpec, Index, IndexPartSpec, IndexSpec,
    TableDefinition,
};

/// One change of a table.
#[derive(Debug, Clone)]
pub enum Alteration {
    AddColumn {
        column: Column,
        place: ColumnPlace,
    },
    /// MODIFY and CHANGE: the column becomes another one; `None`: where it is.
    ChangeColumn {
        name: String,
        new: Column,
        place: Option<ColumnPlace>,
    },
    RenameColumn {
        name: String,
        new: String,
    },
    /// SET DEFAULT, or DROP DEFAULT.
    SetDefault {
        column: String,
        default: Option<DefaultValue>,
    },
    /// SET VISIBLE, or SET INVISIBLE.
    ColumnVisibility {
        column: String,
        invisible: bool,
    },
    /// The hidden column of a key expression has values of another type, because columns have that it names.
    KeyExpressionType {
        /// Its position in the definition before.
        column: usize,
        ty: ColumnType,
        nullable: bool,
    },
    /// The column leaves the indexes too.
    DropColumn(String),
    AddPrimaryKey(Vec<IndexPartSpec>),
    DropPrimaryKey,
    AddIndex(IndexSpec),
    RenameIndex {
        name: String,
        new: String,
    },
    /// VISIBLE, or INVISIBLE.
    IndexVisibility {
        name: String,
        invisible: bool,
    },
    /// Also `PRIMARY`.
    DropIndex(String),
    /// An index comes with it, if none begins with its columns.
    AddForeignKey {
        spec: ForeignKeySpec,
        /// The parent must be there and fit, and each row must have one.
        check: bool,
    },
    /// Its index stays.
    DropForeignKey(String),
    AddCheck(CheckSpec),
    DropCheck(String),
    /// ALTER CHECK: whether rows must keep it.
    EnforceCheck {
        name: String,
        enforced: bool,
    },
    /// The next value to give out, unless there is a greater one.
    SetAutoIncrement(u64),
    SetComment(String),
    /// Of columns that are added later.
    SetCollation(Collation),
    /// Of all texts.
    ConvertTo(Collation),
    /// No row is written, where that [is possible](crate::build::instant_columns).
    Instantly(InitialValues),
    /// The rows are written into new trees.
    Rebuild,
    RenameTo {
        database: String,
        table: String,
    },
}

/// What the rows that are there have in a column that is added [without writing them](Alteration::Instantly).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialValues {
    /// What CURRENT_TIMESTAMP stands for, in the time zone.
    pub now_micros: i64,
    /// The session's.
    pub time_zone: TimeZone,
    /// A column without a default may hold the zero date.
    pub zero_date: bool,
}

/// Where a column goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnPlace {
    Last,
    First,
    After(String),
}

/// True if each value of the one type is one of the other type, the same number or text.
pub(crate) fn keeps_values(before: &ColumnType, after: &ColumnType) -> bool {
    let is_same_kind = before.is_same_kind(after);
    if let (true, Some(old), Some(new)) = (is_same_kind, before.labels(), after.labels()) {
        // Foreign keys compare the bytes of keys.
        return before.stored_bits() == after.stored_bits()
            && new.starts_with(old)
            && before.collation() == after.collation();
    }
    let lengths = before.declared_length().zip(after.declared_length());
    if let (true, Some((old, new))) = (is_same_kind && before.is_varying(), lengths) {
        return old <= new && before.collation() == after.collation();
    }
    // ZEROFILL only shows them otherwise.
    before == after || before.without_zerofill() == after.without_zerofill()
}

/// Whether rows and keys of a column that [keeps its values](keeps_values) stay as they are. Whether an index holds
/// originals depends on how long they can be.
pub(crate) fn keeps_bytes(
    old: &TableDefinition,
    next: &TableDefinition,
    column: usize,
    before: &ColumnType,
) -> bool {
    let ty = &next.columns[column].ty;
    let is_shown_otherwise = ty.zerofill() != before.zerofill();
    if ty == before || is_shown_otherwise || ty.has_labels() {
        return true;
    }
    let keeps_keys = |index: &Index| {
        let before = old.secondary.iter().find(|before| before.id == index.id);
        before.is_none_or(|before| written_parts(old, before) == written_parts(next, index))
    };
    next.secondary.iter().all(keeps_keys)
}

/// The parts of an index's entries, without the lengths that MySQL counts.
fn written_parts(definition: &TableDefinition, index: &Index) -> Vec<KeyPart> {
    let mut parts = KeyLayout::secondary(definition, index).parts;
    for part in &mut parts {
        (part.mysql_key_len, part.mysql_value_len) = (0, 0);
    }
    parts
}
