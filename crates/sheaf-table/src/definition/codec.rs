//! Table definitions as bytes, as docs/catalog-format.md specifies them.
//!
//! Numbers are LEB128 varints (signed ones zigzag), strings have their length in front, types are their text. The first
//! number is the format's version. A definition does not contain its own database and table name: they are the key.

use sheaf_storage::TreeId;
use sheaf_types::value::{TaggedContent, ValueRef};
use sheaf_types::{Collation, ColumnType, Value, number::Wide, temporal::TimeZone};

use crate::definition::row_shape::{RowField, RowShape};
use crate::definition::schema::{
    CheckConstraint, Column, DefaultExpression, DefaultValue, ForeignKey, GeneratedColumn,
    GeneratedKind, Index, IndexPart, ReferentialAction, TableDefinition,
};
use crate::error::{Result, TableError};

/// The newest format this program writes and reads.
pub(crate) const FORMAT: u64 = 10;
/// The newest format without wide DECIMALs. Definitions that have none are written in it.
const FORMAT_WITHOUT_WIDE_DECIMALS: u64 = 9;
/// The newest format without shapes of rows. Definitions that have none are written in it.
const FORMAT_WITHOUT_SHAPES: u64 = 8;
/// The newest format without key expressions. Definitions that have none are written in it.
const FORMAT_WITHOUT_KEY_EXPRESSIONS: u64 = 7;
/// The newest format without invisible columns and indexes. Definitions that have none are written in it.
const FORMAT_WITHOUT_INVISIBLE: u64 = 6;
/// The newest format without [later types](has_later_types). Definitions that have none are written in it.
const FORMAT_WITHOUT_LATER_TYPES: u64 = 5;
/// The newest format without generated columns. Definitions that have none are written in it.
const FORMAT_WITHOUT_GENERATED: u64 = 4;
/// The newest format without expressions as defaults. Definitions that have none are written in it.
const FORMAT_WITHOUT_EXPRESSIONS: u64 = 3;

const NULLABLE: u64 = 1;
const AUTO_INCREMENT: u64 = 2;
const ON_UPDATE_CURRENT_TIMESTAMP: u64 = 4;
const DEFAULT_VALUE: u64 = 8;
const DEFAULT_CURRENT_TIMESTAMP: u64 = 16;
const DEFAULT_EXPRESSION: u64 = 32;
const GENERATED_VIRTUAL: u64 = 64;
const GENERATED_STORED: u64 = 128;
const INVISIBLE_COLUMN: u64 = 256;
const HIDDEN_COLUMN: u64 = 512;

const UNIQUE: u64 = 1;
const PRIMARY: u64 = 2;
const INVISIBLE_INDEX: u64 = 4;

/// Appends numbers, texts and what is made of them.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)) as u64);
    }

    /// IEEE, little-endian.
    pub(crate) fn double(&mut self, value: f64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        self.number(value.tag().into());
        match ValueRef::from(value) {
            ValueRef::Null => {}
            ValueRef::Int(number) => self.signed(number),
            ValueRef::UInt(number) => self.number(number),
            ValueRef::Decimal(unscaled) => self.0.extend_from_slice(&unscaled.to_le_bytes()),
            ValueRef::WideDecimal(unscaled) => self.0.extend_from_slice(unscaled.bytes()),
            ValueRef::Float(number) => self.0.extend_from_slice(&number.to_le_bytes()),
            ValueRef::Double(number) => self.double(number),
            ValueRef::Bytes(bytes) => self.bytes(bytes),
        }
        if let Some((_, scale)) = value.as_decimal() {
            self.number(scale.into());
        }
    }

    pub(crate) fn column(&mut self, column: &Column) {
        self.text(&column.name);
        self.text(&column.ty.descriptor());
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        self.number(
            flag(column.nullable, NULLABLE)
                | flag(column.auto_increment, AUTO_INCREMENT)
                | flag(
                    column.on_update_current_timestamp,
                    ON_UPDATE_CURRENT_TIMESTAMP,
                )
                | match &column.default {
                    None => 0,
                    Some(DefaultValue::Value(_)) => DEFAULT_VALUE,
                    Some(DefaultValue::CurrentTimestamp) => DEFAULT_CURRENT_TIMESTAMP,
                    Some(DefaultValue::Expression(_)) => DEFAULT_EXPRESSION,
                }
                | match column.generated.as_ref().map(|generated| generated.kind) {
                    None => 0,
                    Some(GeneratedKind::Virtual) => GENERATED_VIRTUAL,
                    Some(GeneratedKind::Stored) => GENERATED_STORED,
                }
                | flag(column.invisible, INVISIBLE_COLUMN)
                | flag(column.hidden, HIDDEN_COLUMN),
        );
        match &column.default {
            Some(DefaultValue::Value(value)) => self.value(value),
            Some(DefaultValue::Expression(DefaultExpression { text, columns })) => {
                self.expression(text, columns);
            }
            Some(DefaultValue::CurrentTimestamp) | None => {}
        }
        if let Some(generated) = &column.generated {
            self.expression(&generated.expression, &generated.columns);
        }
        self.text(&column.comment);
    }

    /// An expression and the columns that it names.
    fn expression(&mut self, text: &str, columns: &[String]) {
        self.text(text);
        self.number(columns.len() as u64);
        columns.iter().for_each(|column| self.text(column));
    }

    fn index(&mut self, index: &Index) {
        self.number(u64::from(index.id));
        self.text(&index.name);
        self.number(
            (u64::from(index.unique) * UNIQUE)
                | (u64::from(index.primary) * PRIMARY)
                | (u64::from(index.invisible) * INVISIBLE_INDEX),
        );
        self.number(index.tree.0);
        self.text(&index.comment);
        self.number(index.parts.len() as u64);
        for part in &index.parts {
            self.number(part.column as u64);
            self.number(part.prefix_length.map_or(0, |length| u64::from(length) + 1));
            self.number(u64::from(part.descending));
        }
    }
}

impl Writer {
    fn foreign_key(&mut self, foreign_key: &ForeignKey) {
        self.text(&foreign_key.name);
        self.text(&foreign_key.referenced_database);
        self.text(&foreign_key.referenced_table);
        self.number(action_number(foreign_key.on_delete));
        self.number(action_number(foreign_key.on_update));
        self.number(foreign_key.columns.len() as u64);
        for (column, referenced) in foreign_key
            .columns
            .iter()
            .zip(&foreign_key.referenced_columns)
        {
            self.number(*column as u64);
            self.text(referenced);
        }
    }
}

impl Writer {
    fn shape(&mut self, shape: &RowShape) {
        self.number(shape.segments.len() as u64);
        for segment in &shape.segments {
            self.number(segment.len() as u64);
            for field in segment {
                match field {
                    RowField::Column { position, initial } => {
                        self.number(*position as u64 + 1);
                        self.value(initial);
                    }
                    RowField::Dropped { ty, nullable } => {
                        self.number(0);
                        self.text(&ty.descriptor());
                        self.number(u64::from(*nullable));
                    }
                }
            }
        }
    }
}

fn write_check(writer: &mut Writer, check: &CheckConstraint) {
    writer.text(&check.name);
    writer.text(&check.expression);
    writer.number(u64::from(check.enforced));
    writer.number(check.columns.len() as u64);
    check.columns.iter().for_each(|column| writer.text(column));
}

fn action_number(action: ReferentialAction) -> u64 {
    match action {
        ReferentialAction::NoAction => 0,
        ReferentialAction::Restrict => 1,
        ReferentialAction::Cascade => 2,
        ReferentialAction::SetNull => 3,
    }
}

/// Reads what a [`Writer`] wrote. Whatever the bytes are, it does not panic.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    object: &'a str,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, the entry of the object of this name.
    pub(crate) fn new(bytes: &'a [u8], object: &'a str) -> Reader<'a> {
        Reader {
            rest: bytes,
            object,
        }
    }

    pub(crate) fn corrupt(&self) -> TableError {
        TableError::corrupt(self.object, "its entry in the catalog cannot be read")
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| self.corrupt())
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.corrupt())
    }

    pub(crate) fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T> {
        T::try_from(self.number()?).map_err(|_| self.corrupt())
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A count of things that take at least a byte each.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count: usize = self.narrow()?;
        if count <= self.rest.len() {
            Ok(count)
        } else {
            Err(self.corrupt())
        }
    }

    pub(crate) fn double(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.narrow()?;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.corrupt())
    }

    fn value(&mut self) -> Result<Value> {
        let tag = self.narrow()?;
        let content = TaggedContent::of_tag(tag).ok_or_else(|| self.corrupt())?;
        let value = match content {
            TaggedContent::Nothing => Some(Value::Null),
            TaggedContent::Signed => TaggedContent::signed(tag, self.signed()?),
            TaggedContent::Unsigned => TaggedContent::unsigned(tag, self.number()?),
            TaggedContent::Decimal => Some(Value::Decimal {
                unscaled: i128::from_le_bytes(self.array()?),
                scale: self.narrow()?,
            }),
            TaggedContent::WideDecimal => Some(Value::WideDecimal {
                unscaled: Wide::of_bytes(self.array()?),
                scale: self.narrow()?,
            }),
            TaggedContent::Float => Some(Value::Float(f32::from_le_bytes(self.array()?))),
            TaggedContent::Double => Some(Value::Double(self.double()?)),
            TaggedContent::String => TaggedContent::string(tag, self.bytes()?.to_vec()),
        };
        value.ok_or_else(|| self.corrupt())
    }

    pub(crate) fn column(&mut self) -> Result<Column> {
        let name = self.text()?;
        let ty = ColumnType::parse(&self.text()?).map_err(|_| self.corrupt())?;
        let flags = self.number()?;
        let default = if flags & DEFAULT_VALUE != 0 {
            Some(DefaultValue::Value(self.value()?))
        } else if flags & DEFAULT_EXPRESSION != 0 {
            let (text, columns) = self.expression()?;
            let expression = DefaultExpression { text, columns };
            Some(DefaultValue::Expression(expression))
        } else {
            (flags & DEFAULT_CURRENT_TIMESTAMP != 0).then_some(DefaultValue::CurrentTimestamp)
        };
        let kind = match (flags & GENERATED_VIRTUAL, flags & GENERATED_STORED) {
            (0, 0) => None,
            (0, _) => Some(GeneratedKind::Stored),
            (_, 0) => Some(GeneratedKind::Virtual),
            _ => return Err(self.corrupt()),
        };
        let generated = match kind {
            Some(kind) => {
                let (expression, columns) = self.expression()?;
                Some(GeneratedColumn {
                    expression,
                    columns,
                    kind,
                })
            }
            None => None,
        };
        Ok(Column {
            name,
            ty,
            nullable: flags & NULLABLE != 0,
            default,
            auto_increment: flags & AUTO_INCREMENT != 0,
            on_update_current_timestamp: flags & ON_UPDATE_CURRENT_TIMESTAMP != 0,
            generated,
            invisible: flags & INVISIBLE_COLUMN != 0,
            hidden: flags & HIDDEN_COLUMN != 0,
            comment: self.text()?,
            time_zone: TimeZone::UTC,
        })
    }

    /// An expression and the columns that it names.
    fn expression(&mut self) -> Result<(String, Vec<String>)> {
        let text = self.text()?;
        let columns = (0..self.count()?).map(|_| self.text());
        Ok((text, columns.collect::<Result<_>>()?))
    }

    fn index(&mut self, columns: usize) -> Result<Index> {
        let id = self.narrow()?;
        let name = self.text()?;
        let flags = self.number()?;
        let tree = TreeId(self.number()?);
        let comment = self.text()?;
        let parts = (0..self.count()?)
            .map(|_| {
                let column: usize = self.narrow()?;
                if column >= columns {
                    return Err(self.corrupt());
                }
                let prefix: u32 = self.narrow()?;
                let descending = self.number()? != 0;
                Ok(IndexPart {
                    column,
                    prefix_length: prefix.checked_sub(1),
                    descending,
                })
            })
            .collect::<Result<_>>()?;
        let (unique, primary) = (flags & UNIQUE != 0, flags & PRIMARY != 0);
        Ok(Index {
            id,
            name,
            parts,
            unique,
            primary,
            tree,
            comment,
            invisible: flags & INVISIBLE_INDEX != 0,
        })
    }

    fn action(&mut self) -> Result<ReferentialAction> {
        Ok(match self.number()? {
            0 => ReferentialAction::NoAction,
            1 => ReferentialAction::Restrict,
            2 => ReferentialAction::Cascade,
            3 => ReferentialAction::SetNull,
            _ => return Err(self.corrupt()),
        })
    }

    fn foreign_key(&mut self, columns: usize) -> Result<ForeignKey> {
        let mut foreign_key = ForeignKey {
            name: self.text()?,
            referenced_database: self.text()?,
            referenced_table: self.text()?,
            on_delete: self.action()?,
            on_update: self.action()?,
            columns: Vec::new(),
            referenced_columns: Vec::new(),
        };
        for _ in 0..self.count()? {
            let column: usize = self.narrow()?;
            if column >= columns {
                return Err(self.corrupt());
            }
            foreign_key.columns.push(column);
            foreign_key.referenced_columns.push(self.text()?);
        }
        Ok(foreign_key)
    }

    fn check(&mut self) -> Result<CheckConstraint> {
        Ok(CheckConstraint {
            name: self.text()?,
            expression: self.text()?,
            enforced: self.number()? != 0,
            columns: (0..self.count()?)
                .map(|_| self.text())
                .collect::<Result<_>>()?,
        })
    }

    fn row_field(&mut self) -> Result<RowField> {
        Ok(match self.narrow::<usize>()?.checked_sub(1) {
            Some(position) => RowField::Column {
                position,
                initial: self.value()?,
            },
            None => {
                let ty = self.text()?;
                RowField::Dropped {
                    ty: ColumnType::parse(&ty).map_err(|_| self.corrupt())?,
                    nullable: self.number()? != 0,
                }
            }
        })
    }

    /// `None`, which formats with wide DECIMALs have: the columns in their order.
    fn shape(&mut self, columns: &[Column], version: u64) -> Result<Option<RowShape>> {
        let mut segments = Vec::new();
        for _ in 0..self.count()? {
            let fields = (0..self.count()?).map(|_| self.row_field());
            segments.push(fields.collect::<Result<_>>()?);
        }
        if segments.is_empty() && version > FORMAT_WITHOUT_WIDE_DECIMALS {
            return Ok(None);
        }
        let shape = RowShape { segments };
        let column = |position: usize| {
            let column: Option<&Column> = columns.get(position);
            column.map(|column| (&column.ty, column.nullable))
        };
        match shape.is_of(columns.len()) && shape.fits(column) {
            true => Ok(Some(shape)),
            false => Err(self.corrupt()),
        }
    }

    /// The format's version, of which `known` is the newest one.
    pub(crate) fn version(&mut self, known: u64) -> Result<u64> {
        match self.number()? {
            found if found > known => Err(TableError::CatalogTooNew { found, known }),
            found => Ok(found),
        }
    }
}

/// Whether columns have types that programs did not know before format 6.
pub(crate) fn has_later_types(columns: &[Column]) -> bool {
    let is_later = |column: &Column| {
        column.ty.bit_length().is_some()
            || column.ty.set_labels().is_some()
            || column.ty.is_json()
            || column.ty.float_digits().is_some()
            || column.ty.zerofill().is_some()
    };
    columns.iter().any(is_later)
}

/// Whether rows have wide DECIMALs, be it of columns that were dropped.
fn has_wide_decimals(definition: &TableDefinition) -> bool {
    let mut columns = definition.columns.iter();
    let shape = definition.shape.iter();
    let mut fields = shape.flat_map(|shape| shape.segments.iter().flatten());
    columns.any(|column| column.ty.is_wide_decimal())
        || fields.any(|field| matches!(field, RowField::Dropped { ty, .. } if ty.is_wide_decimal()))
}

/// The bytes of a definition.
pub(crate) fn encode_definition(definition: &TableDefinition) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(if has_wide_decimals(definition) {
        FORMAT
    } else if definition.shape.is_some() {
        FORMAT_WITHOUT_WIDE_DECIMALS
    } else if definition.has_key_expressions() {
        FORMAT_WITHOUT_SHAPES
    } else if definition.has_invisible_parts() {
        FORMAT_WITHOUT_KEY_EXPRESSIONS
    } else if has_later_types(&definition.columns) {
        FORMAT_WITHOUT_INVISIBLE
    } else if definition.has_generated_columns() {
        FORMAT_WITHOUT_LATER_TYPES
    } else if definition.has_computed_defaults() {
        FORMAT_WITHOUT_GENERATED
    } else {
        FORMAT_WITHOUT_EXPRESSIONS
    });
    writer.number(definition.id);
    writer.number(definition.columns.len() as u64);
    definition
        .columns
        .iter()
        .for_each(|column| writer.column(column));
    writer.index(&definition.primary);
    writer.number(definition.secondary.len() as u64);
    definition
        .secondary
        .iter()
        .for_each(|index| writer.index(index));
    writer.number(u64::from(definition.collation.id()));
    writer.text(&definition.comment);
    writer.number(definition.overflow.map_or(0, |tree| tree.0 + 1));
    writer.number(definition.auto_increment_start);
    writer.number(definition.foreign_keys.len() as u64);
    definition
        .foreign_keys
        .iter()
        .for_each(|foreign_key| writer.foreign_key(foreign_key));
    writer.number(definition.checks.len() as u64);
    let checks = definition.checks.iter();
    checks.for_each(|check| write_check(&mut writer, check));
    // Of the newest format all definitions have a shape: whether there is one is the number in front of it.
    match &definition.shape {
        Some(shape) => writer.shape(shape),
        None if has_wide_decimals(definition) => writer.number(0),
        None => {}
    }
    writer.0
}

/// Reads a definition.
///
/// # Errors
/// `CatalogTooNew`, or `Corrupt` if the bytes are not one.
pub(crate) fn decode_definition(
    bytes: &[u8],
    database: &str,
    name: &str,
) -> Result<TableDefinition> {
    let mut reader = Reader::new(bytes, name);
    let version = reader.version(FORMAT)?;
    let id = reader.number()?;
    let columns: Vec<Column> = (0..reader.count()?)
        .map(|_| reader.column())
        .collect::<Result<_>>()?;
    let primary = reader.index(columns.len())?;
    let secondary = (0..reader.count()?)
        .map(|_| reader.index(columns.len()))
        .collect::<Result<_>>()?;
    let collation = Collation::of_id(reader.number()?);
    let width = columns.len();
    let mut definition = TableDefinition {
        id,
        database: database.to_string(),
        name: name.to_string(),
        columns,
        primary,
        secondary,
        collation: collation.ok_or_else(|| reader.corrupt())?,
        comment: reader.text()?,
        overflow: reader.number()?.checked_sub(1).map(TreeId),
        auto_increment_start: reader.number()?,
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        shape: None,
    };
    // Definitions of format 1 end here.
    if version > 1 {
        definition.foreign_keys = (0..reader.count()?)
            .map(|_| reader.foreign_key(width))
            .collect::<Result<_>>()?;
    }
    // And those of format 2 here.
    if version > 2 {
        definition.checks = (0..reader.count()?)
            .map(|_| reader.check())
            .collect::<Result<_>>()?;
    }
    if version > FORMAT_WITHOUT_SHAPES {
        definition.shape = reader.shape(&definition.columns, version)?;
    }
    // Earlier versions kept them as declared.
    definition.order_indexes();
    Ok(definition)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> TableDefinition {
        let parse = |ty: &str| ColumnType::parse(ty).unwrap();
        let mut id = Column::new("id", parse("bigint unsigned"), false);
        id.auto_increment = true;
        let mut name = Column::new("Näme", parse("varchar(20) collate utf8mb4_bin"), true);
        name.default = Some(DefaultValue::Value(Value::Text("it's".into())));
        name.comment = "who".into();
        let mut price = Column::new("price", parse("decimal(38,2)"), false);
        price.default = Some(DefaultValue::Value(Value::Decimal {
            unscaled: -1,
            scale: 2,
        }));
        let mut at = Column::new("at", parse("timestamp(3)"), false);
        at.default = Some(DefaultValue::CurrentTimestamp);
        at.on_update_current_timestamp = true;
        let index = |id, name: &str, parts, primary| Index {
            id,
            name: name.into(),
            parts,
            unique: primary,
            primary,
            tree: TreeId(u64::from(id) + 100),
            comment: String::new(),
            invisible: false,
        };
        let part = |column, prefix_length| IndexPart {
            column,
            prefix_length,
            descending: column == 2,
        };
        TableDefinition {
            id: 7,
            database: "d".into(),
            name: "t".into(),
            columns: vec![id, name, price, at],
            primary: index(0, "PRIMARY", vec![part(0, None)], true),
            secondary: vec![index(3, "k", vec![part(1, Some(5)), part(2, None)], false)],
            collation: Collation::Utf8mb4_general_ci,
            comment: "a table".into(),
            overflow: Some(TreeId(0)),
            auto_increment_start: 10,
            foreign_keys: vec![ForeignKey {
                name: "fk".into(),
                columns: vec![0],
                referenced_database: "other".into(),
                referenced_table: "parent".into(),
                referenced_columns: vec!["id".into()],
                on_delete: ReferentialAction::Cascade,
                on_update: ReferentialAction::SetNull,
            }],
            checks: vec![CheckConstraint {
                name: "t_chk_1".into(),
                expression: "`price` > 0".into(),
                columns: vec!["price".into()],
                enforced: true,
            }],
            shape: None,
        }
    }

    #[test]
    fn definitions_read_back() {
        let mut definition = definition();
        let bytes = encode_definition(&definition);
        assert_eq!(u64::from(bytes[0]), FORMAT_WITHOUT_EXPRESSIONS);
        assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        definition.columns[1].default = Some(DefaultValue::Expression(DefaultExpression {
            text: "`id` + rand()".into(),
            columns: vec!["id".into()],
        }));
        let bytes = encode_definition(&definition);
        assert_eq!(u64::from(bytes[0]), FORMAT_WITHOUT_GENERATED);
        assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        for kind in [GeneratedKind::Virtual, GeneratedKind::Stored] {
            definition.columns[2].generated = Some(GeneratedColumn {
                expression: "(`id` + 1)".into(),
                columns: vec!["id".into()],
                kind,
            });
            let bytes = encode_definition(&definition);
            assert_eq!(u64::from(bytes[0]), FORMAT_WITHOUT_LATER_TYPES);
            assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        }
        for ty in [
            "float(7,2)",
            "double(10,3) unsigned",
            "int(5) zerofill",
            "bit(8)",
            "set('a','b')",
        ] {
            definition.columns[2].ty = ColumnType::parse(ty).unwrap();
            let bytes = encode_definition(&definition);
            assert_eq!(u64::from(bytes[0]), FORMAT_WITHOUT_INVISIBLE, "{ty}");
            assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        }
        for (column, index) in [(true, false), (false, true), (true, true)] {
            definition.columns[1].invisible = column;
            definition.secondary[0].invisible = index;
            let bytes = encode_definition(&definition);
            assert_eq!(u64::from(bytes[0]), FORMAT_WITHOUT_KEY_EXPRESSIONS);
            assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        }
        definition.columns[2].hidden = true;
        let bytes = encode_definition(&definition);
        assert_eq!(u64::from(bytes[0]), FORMAT_WITHOUT_SHAPES);
        assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
    }

    #[test]
    fn shapes_of_rows_read_back_if_they_are_of_the_columns() {
        let mut definition = definition();
        let mut shape = RowShape::plain(definition.columns.len() - 1);
        shape.segments[0].insert(
            1,
            RowField::Dropped {
                ty: ColumnType::parse("decimal(10,2)").unwrap(),
                nullable: true,
            },
        );
        let last = definition.columns.len() - 1;
        definition.columns[last].ty = ColumnType::parse("varchar(20)").unwrap();
        let later = |initial: Value| {
            let field = RowField::Column {
                position: last,
                initial,
            };
            vec![field]
        };
        shape.segments.push(later(Value::Text("later".into())));
        definition.shape = Some(shape);
        let bytes = encode_definition(&definition);
        assert_eq!(u64::from(bytes[0]), FORMAT_WITHOUT_WIDE_DECIMALS);
        assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        for length in 0..bytes.len() {
            assert!(decode_definition(&bytes[..length], "d", "t").is_err());
        }
        // Of another type, or of no column.
        let segments = &mut definition.shape.as_mut().unwrap().segments;
        segments[1] = later(Value::Int(7));
        let bytes = encode_definition(&definition);
        assert!(decode_definition(&bytes, "d", "t").is_err());
        definition.shape.as_mut().unwrap().segments.pop();
        let bytes = encode_definition(&definition);
        assert!(decode_definition(&bytes, "d", "t").is_err());
    }

    #[test]
    fn wide_decimals_are_of_the_newest_format() {
        let mut definition = definition();
        definition.columns[2].ty = ColumnType::parse("decimal(65,30)").unwrap();
        definition.columns[2].default = Some(DefaultValue::Value(Value::WideDecimal {
            unscaled: Wide::from(-12345),
            scale: 30,
        }));
        let bytes = encode_definition(&definition);
        assert_eq!(u64::from(bytes[0]), FORMAT);
        assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        definition.shape = Some(RowShape::plain(definition.columns.len()));
        let bytes = encode_definition(&definition);
        assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
        // A dropped column's values are still in the rows.
        definition.columns.pop();
        definition.columns[2].ty = ColumnType::parse("decimal(38,2)").unwrap();
        definition.columns[2].default = None;
        definition.secondary.clear();
        let mut shape = RowShape::plain(definition.columns.len());
        shape.segments[0].push(RowField::Dropped {
            ty: ColumnType::parse("decimal(40,2)").unwrap(),
            nullable: false,
        });
        definition.shape = Some(shape);
        let bytes = encode_definition(&definition);
        assert_eq!(u64::from(bytes[0]), FORMAT);
        assert_eq!(decode_definition(&bytes, "d", "t").unwrap(), definition);
    }

    #[test]
    fn cut_definitions_are_corrupt_and_newer_ones_are_named() {
        let mut bytes = encode_definition(&definition());
        for length in 0..bytes.len() {
            assert!(
                decode_definition(&bytes[..length], "d", "t").is_err(),
                "{length}"
            );
        }
        bytes[0] = FORMAT as u8 + 1;
        assert!(matches!(
            decode_definition(&bytes, "d", "t"),
            Err(TableError::CatalogTooNew {
                found: 11,
                known: 10
            })
        ));
    }
}
