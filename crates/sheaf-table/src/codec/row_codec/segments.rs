//! Rows of several segments, as [`RowShape`] says: how they are written, and how a later segment is found.
//!
//! A column of the first segment is read as in any row. For another one the segments before it are walked, and then it
//! is a column of the segment as a row of its own.

use sheaf_types::number::Wide;
use sheaf_types::temporal::TimeZone;
use smallvec::SmallVec;

use super::{Physical, Place, RowLayout, RowView, Slot, ValueRef};
use crate::codec::overflow::OVERFLOW_REFERENCE_BYTES;
use crate::definition::row_shape::{RowField, RowShape, can_store};
use crate::definition::schema::{Column, TableDefinition};
use crate::error::Result;

/// Segments of a row behind the first one, each as a row of its own.
pub type LaterSegments<'a> = SmallVec<[RowView<'a>; 4]>;

/// A part of the rows of a [`RowShape`].
#[derive(Debug, Clone)]
pub(super) struct Segment {
    /// Of its fields alone.
    pub(super) layout: RowLayout,
    /// The column of each field; `None`: it was dropped.
    columns: Vec<Option<usize>>,
    /// What it is in rows that end before it.
    initial: Vec<u8>,
    /// The fields of strings that were dropped: rows may have long values in them.
    dropped_strings: Vec<usize>,
}

impl Segment {
    /// The value of a field in a new row.
    fn value<'v>(&self, field: usize, values: &impl Fn(usize) -> ValueRef<'v>) -> ValueRef<'v> {
        match self.columns[field] {
            Some(column) => values(column),
            None => self.layout.nothing(field),
        }
    }
}

impl RowLayout {
    /// The layout of a table's rows.
    pub fn of(definition: &TableDefinition) -> RowLayout {
        match &definition.shape {
            None => RowLayout::new(&definition.columns),
            Some(shape) => RowLayout::of_shape(&definition.columns, shape),
        }
    }

    /// The layout of rows of this shape, which [is of](RowShape::is_of) the columns.
    pub(crate) fn of_shape(columns: &[Column], shape: &RowShape) -> RowLayout {
        let segments: Vec<Segment> = shape
            .segments
            .iter()
            .map(|fields| Segment::new(columns, fields))
            .collect();
        let nowhere = Slot {
            segment: 0,
            field: 0,
            place: Place::Variable(0),
            null_byte: 0,
            null_mask: 0,
        };
        let mut slots = vec![nowhere; columns.len()];
        for (number, segment) in segments.iter().enumerate() {
            for (field, column) in segment.columns.iter().enumerate() {
                if let Some(column) = column {
                    slots[*column] = Slot {
                        segment: number as u16,
                        ..segment.layout.slots[field]
                    };
                }
            }
        }
        let first = segments.first().map(|segment| &segment.layout);
        let (ends, heap, variable) =
            first.map_or((0, 0, 0), |first| (first.ends, first.heap, first.variable));
        RowLayout {
            slots,
            ends,
            heap,
            variable,
            segments,
        }
    }

    /// What a field holds that was dropped.
    pub(super) fn nothing(&self, field: usize) -> ValueRef<'static> {
        let slot = &self.slots[field];
        match slot.place {
            _ if slot.null_mask != 0 => ValueRef::Null,
            Place::Variable(_) => ValueRef::Bytes(&[]),
            Place::Fixed { physical, .. } => match physical {
                Physical::Decimal32 | Physical::Decimal64 | Physical::Decimal128 => {
                    ValueRef::Decimal(0)
                }
                Physical::WideDecimal => ValueRef::WideDecimal(Wide::ZERO),
                Physical::F32 => ValueRef::Float(0.0),
                Physical::F64 => ValueRef::Double(0.0),
                _ => ValueRef::Int(0),
            },
        }
    }

    /// Whether rows are of more than their columns in order.
    pub(crate) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// The [segment](RowView::segment) that a column is in, and its number there. [`fixed`](Self::fixed) and
    /// [`null_bit`](Self::null_bit) count from the beginning of the segment.
    pub fn segment_of(&self, column: usize) -> (usize, usize) {
        let slot = &self.slots[column];
        match slot.segment {
            // The first one is read through the row itself.
            0 => (0, column),
            later => (usize::from(later), usize::from(slot.field)),
        }
    }

    /// Whether rows may end before some of the columns.
    pub fn has_later_segments(&self) -> bool {
        self.segments.len() > 1
    }

    /// Where rows have a column that end before it, [as a row](RowView::located); `None`: no row does.
    pub fn in_old_rows(&self, column: usize) -> Option<(RowView<'_>, usize)> {
        let slot = &self.slots[column];
        let instead = self.instead_of(usize::from(slot.segment))?;
        Some((instead, usize::from(slot.field)))
    }

    /// What rows have that end before a later segment; `None`: there is no such segment.
    #[inline]
    pub(super) fn instead_of(&self, number: usize) -> Option<RowView<'_>> {
        let segment = self.segments.get(number).filter(|_| number > 0)?;
        Some(RowView {
            layout: &segment.layout,
            bytes: &segment.initial,
        })
    }

    /// [`encode`](Self::encode) of a row of several segments.
    pub(super) fn encode_segments<'v>(
        &self,
        values: impl Fn(usize) -> ValueRef<'v>,
        references: &[(usize, [u8; OVERFLOW_REFERENCE_BYTES])],
        limit: usize,
        row: &mut Vec<u8>,
    ) -> Result<(), usize> {
        let start = row.len();
        // How long it would be, once it is too long.
        let (mut length, mut fits) = (0, true);
        for segment in &self.segments {
            let own = references.iter().filter_map(|(column, reference)| {
                let mut columns = segment.columns.iter();
                let field = columns.position(|of| *of == Some(*column))?;
                Some((field, *reference))
            });
            let own: Vec<_> = own.collect();
            let value = |field: usize| segment.value(field, &values);
            let room = if fits { limit - length } else { 0 };
            let before = row.len();
            match segment.layout.encode_segment(value, &own, room, row) {
                Ok(()) => length += row.len() - before,
                Err(bytes) => {
                    length += bytes;
                    fits = false;
                }
            }
        }
        if !fits {
            row.truncate(start);
            return Err(length);
        }
        Ok(())
    }

    /// [`encode_some`](Self::encode_some) of a row of several segments.
    pub(super) fn encode_some_of_segments(
        &self,
        values: &[(usize, ValueRef<'_>)],
        row: &mut Vec<u8>,
    ) {
        for segment in &self.segments {
            let of_field = |(field, column): (usize, &Option<usize>)| {
                let mut values = values.iter();
                let (_, value) = values.find(|(of, _)| Some(*of) == *column)?;
                Some((field, *value))
            };
            let fields = segment.columns.iter().enumerate();
            let values: Vec<_> = fields.filter_map(of_field).collect();
            segment.layout.encode_some(&values, row);
        }
    }

    /// How long a segment is that these bytes begin with; `None`: they are too short.
    fn length_in(&self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() < self.heap || bytes.is_empty() {
            return None;
        }
        let row = RowView {
            layout: self,
            bytes,
        };
        let length = self.heap + row.end(self.variable);
        (length <= bytes.len()).then_some(length)
    }
}

impl Segment {
    fn new(columns: &[Column], fields: &[RowField]) -> Segment {
        let of_row = fields.iter().map(|field| match field {
            RowField::Column { position, .. } => columns[*position].clone(),
            RowField::Dropped { ty, nullable } => Column::new("", ty.clone(), *nullable),
        });
        let mut of_row: Vec<Column> = of_row.collect();
        let layout = RowLayout::new(&of_row);
        // Initial values are those of the row, whichever zone it is read in.
        for column in &mut of_row {
            column.time_zone = TimeZone::UTC;
        }
        let stored = RowLayout::new(&of_row);
        let fits = |column: &Column, value| can_store(&column.ty, column.nullable, value);
        let value = |field: usize| match &fields[field] {
            RowField::Column { initial, .. } if fits(&of_row[field], initial) => initial.into(),
            _ => stored.nothing(field),
        };
        let mut initial = Vec::new();
        let encoded = stored.encode_segment(value, &[], usize::MAX, &mut initial);
        debug_assert!(encoded.is_ok(), "initial values are short");
        let columns = fields.iter().map(|field| match field {
            RowField::Column { position, .. } => Some(*position),
            RowField::Dropped { .. } => None,
        });
        let columns: Vec<Option<usize>> = columns.collect();
        let is_dropped_string =
            |field: &usize| columns[*field].is_none() && !layout.is_fixed(*field);
        Segment {
            dropped_strings: (0..columns.len()).filter(is_dropped_string).collect(),
            columns,
            layout,
            initial,
        }
    }
}

impl<'a> RowView<'a> {
    /// Error if the row does not end behind one of its segments.
    #[inline(never)]
    pub(super) fn check_segments(&self) -> Result<()> {
        self.each_segment_end(|_| {})
    }

    /// Whether the row ends where its first segment does.
    #[inline(always)]
    pub fn is_of_first_segment(&self) -> bool {
        let RowLayout { heap, variable, .. } = *self.layout;
        self.bytes.len() >= heap && heap + self.end(variable) == self.bytes.len()
    }

    /// Gives the end of each segment to `each`.
    ///
    /// # Errors
    /// `Corrupt` if the row does not end behind one of them.
    pub(super) fn each_segment_end(&self, mut each: impl FnMut(usize)) -> Result<()> {
        if self.layout.segments.is_empty() || self.bytes.len() < self.layout.heap {
            return Err(self.does_not_end());
        }
        let mut at = self.layout.heap + self.end(self.layout.variable);
        each(at);
        for segment in &self.layout.segments[1..] {
            let Some(rest) = self.bytes.get(at..) else {
                return Err(self.does_not_end());
            };
            if rest.is_empty() {
                return Ok(());
            }
            let length = segment.layout.length_in(rest);
            at += length.ok_or_else(|| self.does_not_end())?;
            each(at);
        }
        match at == self.bytes.len() {
            true => Ok(()),
            false => Err(self.does_not_end()),
        }
    }

    /// The row, or a later segment of it as a row of its own fields; that of rows which end before it is what they
    /// have instead.
    #[inline]
    pub fn segment(&self, number: usize) -> RowView<'a> {
        match self.layout.instead_of(number) {
            Some(instead) => self.segment_or(number, instead),
            None => *self,
        }
    }

    /// The later [segments](Self::segment) in their order, of one walk, for [`located_among`](Self::located_among).
    pub fn later_segments(&self) -> LaterSegments<'a> {
        let first = self.layout.heap + self.end(self.layout.variable);
        let mut rest = self.bytes.get(first..).unwrap_or_default();
        let later = self.layout.segments.iter().skip(1);
        let of_row = later.map(|segment| {
            let (layout, bytes) = (&segment.layout, segment.initial.as_slice());
            let length = layout.length_in(rest);
            let Some((bytes, behind)) = length.and_then(|length| rest.split_at_checked(length))
            else {
                rest = &[];
                return RowView { layout, bytes };
            };
            rest = behind;
            RowView { layout, bytes }
        });
        of_row.collect()
    }

    /// As [`located`](Self::located). `later`: the row's [later segments](Self::later_segments), or nothing.
    #[inline]
    pub fn located_among(&self, later: &[RowView<'a>], column: usize) -> (RowView<'a>, usize) {
        let slot = &self.layout.slots[column];
        let Some(number) = usize::from(slot.segment).checked_sub(1) else {
            return (*self, column);
        };
        match later.get(number) {
            Some(segment) => (*segment, usize::from(slot.field)),
            None => self.later(slot),
        }
    }

    #[inline]
    fn segment_or(&self, number: usize, instead: RowView<'a>) -> RowView<'a> {
        // All rows of a table that has just got a column end here.
        match self
            .bytes
            .get(self.layout.heap + self.end(self.layout.variable)..)
        {
            None | Some([]) => instead,
            Some(rest) => self.segment_in(rest, number, instead),
        }
    }

    /// Walks what is behind the first segment.
    fn segment_in(&self, mut rest: &'a [u8], number: usize, instead: RowView<'a>) -> RowView<'a> {
        let segments = &self.layout.segments;
        for before in &segments[1..number] {
            let length = before.layout.length_in(rest);
            match length.and_then(|length| rest.get(length..)) {
                Some(behind) => rest = behind,
                None => return instead,
            }
        }
        let own = match number + 1 == segments.len() && !rest.is_empty() {
            // A row ends where its last segment does.
            true => Some(rest).filter(|rest| rest.len() >= instead.layout.heap),
            false => instead
                .layout
                .length_in(rest)
                .and_then(|length| rest.get(..length)),
        };
        own.map_or(instead, |bytes| RowView { bytes, ..instead })
    }

    /// The references to long values of columns that were dropped after the row was written.
    pub(crate) fn dropped_references(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let view = *self;
        let segments = view.layout.segments.iter().enumerate();
        segments.flat_map(move |(number, segment)| {
            let row = match number {
                0 => RowView {
                    layout: &segment.layout,
                    bytes: view.bytes,
                },
                _ if segment.dropped_strings.is_empty() => view,
                later => view.segment(later),
            };
            let fields = segment.dropped_strings.iter();
            fields
                .filter(move |field| row.is_overflow(**field))
                .map(move |field| row.get_bytes(*field))
        })
    }

    /// The segment of a column that is not in the first one.
    #[inline(never)]
    pub(super) fn later(&self, slot: &Slot) -> (RowView<'a>, usize) {
        (
            self.segment(usize::from(slot.segment)),
            usize::from(slot.field),
        )
    }
}

#[cfg(test)]
mod tests {
    use sheaf_storage::Random;
    use sheaf_types::{ColumnType, Value};

    use super::*;
    use crate::codec::row_codec::{RowRun, SegmentRows};

    const TYPES: &[&str] = &[
        "int",
        "tinyint unsigned",
        "bigint",
        "varchar(20)",
        "decimal(20,2)",
        "decimal(5,1)",
        "double",
        "float",
        "date",
        "timestamp",
        "varbinary(9)",
        "enum('a','b')",
    ];

    fn any_column(random: &mut Random) -> Column {
        let ty = TYPES[random.below(TYPES.len() as u64) as usize];
        Column::new("c", ColumnType::parse(ty).unwrap(), random.below(2) == 0)
    }

    fn any_value(random: &mut Random, column: &Column) -> Value {
        if column.nullable && random.below(3) == 0 {
            return Value::Null;
        }
        let number = random.below(100) as i64;
        match &column.ty {
            ColumnType::VarChar { .. } => Value::Text("x".repeat(random.below(9) as usize)),
            ColumnType::VarBinary { .. } => Value::Bytes(vec![7; random.below(9) as usize]),
            ColumnType::Decimal { scale, .. } => Value::Decimal {
                unscaled: i128::from(number) - 50,
                scale: *scale,
            },
            ColumnType::Double { .. } => Value::Double(number as f64 / 4.0),
            ColumnType::Float { .. } => Value::Float(number as f32 / 4.0),
            ColumnType::Date => Value::Date(number as i32),
            ColumnType::Timestamp { .. } => Value::Timestamp(number),
            ColumnType::Enum { .. } => Value::Enum(1 + number as u16 % 2),
            ty if ty.is_unsigned() => Value::UInt(number as u64),
            _ => Value::Int(number - 50),
        }
    }

    /// A table whose columns come and go, and its rows: bytes, and the values that they stand for.
    struct Model {
        columns: Vec<Column>,
        shape: RowShape,
        rows: Vec<(Vec<u8>, Vec<Value>)>,
    }

    impl Model {
        fn layout(&self) -> RowLayout {
            RowLayout::of_shape(&self.columns, &self.shape)
        }

        fn insert(&mut self, random: &mut Random) {
            let values = self.columns.iter();
            let values: Vec<Value> = values.map(|column| any_value(random, column)).collect();
            let mut bytes = Vec::new();
            let value = |column: usize| ValueRef::from(&values[column]);
            let layout = self.layout();
            layout.encode(value, &[], 4_000, &mut bytes).unwrap();
            // How long a row is that does not fit is known without it.
            let short = layout.encode(value, &[], bytes.len() - 1, &mut Vec::new());
            assert_eq!(short, Err(bytes.len()));
            self.rows.push((bytes, values));
        }

        fn add(&mut self, random: &mut Random) {
            let mut segment = Vec::new();
            for _ in 0..1 + random.below(3) {
                let column = any_column(random);
                let initial = any_value(random, &column);
                let at = random.below(self.columns.len() as u64 + 1) as usize;
                let fields = self.shape.segments.iter_mut().flatten();
                for field in fields.chain(&mut segment) {
                    if let RowField::Column { position, .. } = field
                        && *position >= at
                    {
                        *position += 1;
                    }
                }
                self.columns.insert(at, column);
                for (_, values) in &mut self.rows {
                    values.insert(at, initial.clone());
                }
                segment.push(RowField::Column {
                    position: at,
                    initial,
                });
            }
            self.shape.segments.push(segment);
        }

        fn drop(&mut self, random: &mut Random) {
            let at = random.below(self.columns.len() as u64) as usize;
            let Column { ty, nullable, .. } = self.columns.remove(at);
            for field in self.shape.segments.iter_mut().flatten() {
                match field {
                    RowField::Column { position, .. } if *position == at => {
                        *field = RowField::Dropped {
                            ty: ty.clone(),
                            nullable,
                        };
                    }
                    RowField::Column { position, .. } if *position > at => *position -= 1,
                    _ => {}
                }
            }
            for (_, values) in &mut self.rows {
                values.remove(at);
            }
        }

        /// As [`verify`](Self::verify), of all rows and of some at a time.
        fn verify_runs(&self, layout: &RowLayout) {
            let mut run = RowRun::with_capacity(layout, self.rows.len());
            for (bytes, _) in &self.rows {
                run.push(bytes).unwrap();
            }
            let all: Vec<u32> = (0..self.rows.len() as u32).collect();
            let some: Vec<u32> = all.iter().rev().step_by(2).copied().collect();
            let selected = run.selected(&some);
            for (run, rows) in [(&run, &all), (&selected, &some)] {
                assert_eq!(run.len(), rows.len());
                for (column, definition) in self.columns.iter().enumerate() {
                    let (segment, field) = layout.segment_of(column);
                    for (at, row) in rows.iter().enumerate() {
                        let view = match run.segment(segment) {
                            SegmentRows::Each(views) => views[at],
                            SegmentRows::Same(view) => view,
                        };
                        let expected = &self.rows[*row as usize].1[column];
                        assert_eq!(view.value(field, &definition.ty), *expected);
                    }
                }
            }
        }

        fn verify(&self) {
            let column = |at: usize| self.columns.get(at).map(|of| (&of.ty, of.nullable));
            assert!(self.shape.is_of(self.columns.len()) && self.shape.fits(column));
            let layout = self.layout();
            self.verify_runs(&layout);
            for (bytes, values) in &self.rows {
                let row = layout.view(bytes).unwrap();
                for (column, value) in values.iter().enumerate() {
                    let ty = &self.columns[column].ty;
                    assert_eq!(row.value(column, ty), *value, "{ty}");
                    assert_eq!(row.is_null(column), *value == Value::Null);
                    let (segment, field) = layout.segment_of(column);
                    assert_eq!(row.segment(segment).value(field, ty), *value, "{ty}");
                    for later in [row.later_segments(), SmallVec::new()] {
                        let (part, field) = row.located_among(&later, column);
                        assert_eq!(part.value(field, ty), *value, "{ty}");
                    }
                }
                for length in 0..bytes.len() {
                    // A row that is cut between two segments is one that was written earlier.
                    if let Ok(cut) = layout.view(&bytes[..length]) {
                        assert!(!self.shape.segments[1..].is_empty());
                        for column in 0..values.len() {
                            let _ = cut.value_ref(column);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_are_read_whatever_columns_have_come_and_gone_since() {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let columns: Vec<Column> = (0..1 + random.below(6))
                .map(|_| any_column(&mut random))
                .collect();
            let mut model = Model {
                shape: RowShape::plain(columns.len()),
                columns,
                rows: Vec::new(),
            };
            for _ in 0..20 {
                match random.below(4) {
                    0 => model.add(&mut random),
                    1 if model.columns.len() > 1 => model.drop(&mut random),
                    _ => model.insert(&mut random),
                }
                model.verify();
            }
        }
    }

    #[test]
    fn rows_before_any_change_are_those_of_a_layout_without_segments() {
        let mut random = Random::new(7);
        let columns: Vec<Column> = (0..9).map(|_| any_column(&mut random)).collect();
        let values = columns.iter();
        let values: Vec<Value> = values
            .map(|column| any_value(&mut random, column))
            .collect();
        let mut rows = [Vec::new(), Vec::new()];
        let shape = RowShape::plain(columns.len());
        let layouts = [
            RowLayout::new(&columns),
            RowLayout::of_shape(&columns, &shape),
        ];
        for (layout, row) in layouts.iter().zip(&mut rows) {
            let value = |column: usize| ValueRef::from(&values[column]);
            layout.encode(value, &[], 4_000, row).unwrap();
        }
        assert_eq!(rows[0], rows[1]);
    }

    #[test]
    fn a_segment_that_no_row_of_a_run_has_is_one_for_all() {
        let int = |name: &str| Column::new(name, ColumnType::parse("int").unwrap(), true);
        let columns = ["a", "b"].map(int);
        let mut shape = RowShape::plain(1);
        let (position, initial) = (1, Value::Int(7));
        shape
            .segments
            .push(vec![RowField::Column { position, initial }]);
        let layout = RowLayout::of_shape(&columns, &shape);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let value = |_: usize| ValueRef::Int(1);
        RowLayout::new(&columns[..1])
            .encode(value, &[], 100, &mut old)
            .unwrap();
        layout.encode(value, &[], 100, &mut new).unwrap();
        let mut run = RowRun::with_capacity(&layout, 3);
        run.push(&old).unwrap();
        run.push(&old).unwrap();
        assert!(matches!(run.segment(1), SegmentRows::Same(row) if row.get_i64(0) == 7));
        run.push(&new).unwrap();
        let numbers = |run: &RowRun<'_>| match run.segment(1) {
            SegmentRows::Each(rows) => rows.iter().map(|row| row.get_i64(0)).collect(),
            SegmentRows::Same(_) => Vec::new(),
        };
        assert_eq!(numbers(&run), [7, 7, 1]);
        assert_eq!(numbers(&run.selected(&[2, 0])), [1, 7]);
        assert_eq!(numbers(&run.selected(&[1])), [7]);
        assert!(run.push(&new[..new.len() - 1]).is_err());
    }

    #[test]
    fn long_values_of_dropped_columns_are_found() {
        let text = |name: &str| Column::new(name, ColumnType::parse("text").unwrap(), false);
        let columns = ["a", "b", "c", "d"].map(text);
        let mut shape = RowShape::plain(2);
        for position in [2, 3] {
            let initial = Value::Text(String::new());
            shape
                .segments
                .push(vec![RowField::Column { position, initial }]);
        }
        let layout = RowLayout::of_shape(&columns, &shape);
        let reference = |number: u8| [number; OVERFLOW_REFERENCE_BYTES];
        let values = |_: usize| ValueRef::Bytes(b"short");
        let references = [(1, reference(1)), (2, reference(2)), (3, reference(3))];
        let (mut long, mut short) = (Vec::new(), Vec::new());
        layout
            .encode(values, &references, 4_000, &mut long)
            .unwrap();
        layout.encode(values, &[], 4_000, &mut short).unwrap();
        let earlier = {
            let layout = RowLayout::new(&columns[..2]);
            let mut row = Vec::new();
            layout
                .encode(values, &references[..1], 4_000, &mut row)
                .unwrap();
            row
        };
        // `b` and `d` are dropped.
        for (segment, field) in [(0, 1), (2, 0)] {
            shape.segments[segment][field] = RowField::Dropped {
                ty: columns[1].ty.clone(),
                nullable: false,
            };
        }
        if let RowField::Column { position, .. } = &mut shape.segments[1][0] {
            *position = 1;
        }
        let columns = [columns[0].clone(), columns[2].clone()];
        let layout = RowLayout::of_shape(&columns, &shape);
        let dropped = |row: &[u8]| {
            let row = layout.view(row).unwrap();
            let dropped: Vec<Vec<u8>> = row.dropped_references().map(<[u8]>::to_vec).collect();
            assert!(dropped.is_empty() || row.has_overflow());
            dropped
        };
        assert_eq!(dropped(&long), [reference(1), reference(3)]);
        assert_eq!(dropped(&earlier), [reference(1)]);
        assert!(dropped(&short).is_empty());
        assert!(layout.view(&long).unwrap().is_overflow(1));
        // A row that is written anew has none.
        let mut again = Vec::new();
        layout.encode(values, &[], 4_000, &mut again).unwrap();
        assert!(dropped(&again).is_empty() && !layout.view(&again).unwrap().has_overflow());
    }

    #[test]
    fn a_number_of_the_first_segment_is_changed_where_it_is() {
        let column = |ty: &str| Column::new("c", ColumnType::parse(ty).unwrap(), true);
        let columns = ["int", "varchar(9)", "int"].map(column);
        let earlier = {
            let mut row = Vec::new();
            let values = [Value::Int(1), Value::Text("text".into())];
            let layout = RowLayout::new(&columns[..2]);
            let value = |column: usize| ValueRef::from(&values[column]);
            layout.encode(value, &[], 4_000, &mut row).unwrap();
            row
        };
        let mut shape = RowShape::plain(2);
        let (position, initial) = (2, Value::Int(7));
        shape
            .segments
            .push(vec![RowField::Column { position, initial }]);
        let layout = RowLayout::of_shape(&columns, &shape);
        for (change, stays_short) in [
            ((0, Value::Int(5)), true),
            ((0, Value::Null), true),
            ((1, Value::Text("other".into())), false),
            ((2, Value::Int(9)), false),
        ] {
            let row = layout.view(&earlier).unwrap();
            let mut amended = Vec::new();
            let changes = [change];
            layout.amend(&row, &changes, 4_000, &mut amended).unwrap();
            assert_eq!(amended.len() == earlier.len(), stays_short, "{changes:?}");
            let amended = layout.view(&amended).unwrap();
            for (at, column) in columns.iter().enumerate() {
                let expected = match &changes[0] {
                    (changed, value) if *changed == at => value.clone(),
                    _ => row.value(at, &column.ty),
                };
                assert_eq!(amended.value(at, &column.ty), expected);
            }
        }
    }
}
