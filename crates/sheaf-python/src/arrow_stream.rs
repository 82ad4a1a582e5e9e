//! Results as an Arrow stream: the Arrow C data interface, and its C stream interface.
//!
//! The structures are those of the specification (arrow.apache.org/docs/format/CDataInterface.html). An array says
//! where its buffers lie, and holds them until the consumer calls its `release`. So pyarrow, pandas and polars use the
//! columns as the engine made them. Two things are converted before: a JSON value becomes its text, and a date that
//! is none (`0000-00-00`) becomes NULL.
//!
//! arrow-rs has the same behind its feature `ffi`. That would be on in every build of Sheaf, or the workspace would
//! build DataFusion twice. Results of Sheaf have flat types alone, so that little is needed.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, MutableArrayData, StringViewBuilder,
    TimestampMicrosecondArray, make_array,
};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use sheaf::{Error, Result, Value, arrow};
use sheaf_types::temporal::{ZERO_DATE, ZERO_DATETIME};

/// `ARROW_FLAG_NULLABLE`
const NULLABLE: i64 = 2;
/// Numbers of errno: what the C interface says went wrong.
const INVALID: c_int = 22;

/// `struct ArrowSchema`
#[repr(C)]
pub(crate) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`
#[repr(C)]
pub(crate) struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`
#[repr(C)]
pub(crate) struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

// SAFETY: the structures own what they point to, which is Send; nobody else has the pointers.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArrayStream {}

/// A result that is ready to be handed out.
pub(crate) struct Exported {
    columns: Vec<Column>,
    batches: std::vec::IntoIter<Batch>,
}

/// Name, format and whether NULL is possible.
struct Column {
    name: CString,
    format: CString,
    nullable: bool,
}

struct Batch {
    rows: usize,
    columns: Vec<ArrayRef>,
}

/// The specification's letters for a type; `None` for types that results do not have.
fn format_of(ty: &DataType) -> Option<String> {
    let letters = match ty {
        DataType::Null => "n",
        DataType::Boolean => "b",
        DataType::Int8 => "c",
        DataType::UInt8 => "C",
        DataType::Int16 => "s",
        DataType::UInt16 => "S",
        DataType::Int32 => "i",
        DataType::UInt32 => "I",
        DataType::Int64 => "l",
        DataType::UInt64 => "L",
        DataType::Float32 => "f",
        DataType::Float64 => "g",
        DataType::Binary => "z",
        DataType::LargeBinary => "Z",
        DataType::Utf8 => "u",
        DataType::LargeUtf8 => "U",
        DataType::Utf8View => "vu",
        DataType::BinaryView => "vz",
        DataType::Date32 => "tdD",
        DataType::Time64(TimeUnit::Microsecond) => "ttu",
        DataType::Time64(TimeUnit::Nanosecond) => "ttn",
        DataType::Timestamp(TimeUnit::Second, None) => "tss:",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "tsm:",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "tsu:",
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "tsn:",
        DataType::Duration(TimeUnit::Microsecond) => "tDu",
        DataType::FixedSizeBinary(bytes) => return Some(format!("w:{bytes}")),
        DataType::Decimal128(precision, scale) => return Some(format!("d:{precision},{scale}")),
        DataType::Decimal256(precision, scale) => {
            return Some(format!("d:{precision},{scale},256"));
        }
        _ => return None,
    };
    Some(letters.to_string())
}

/// A column as other libraries understand it, from the beginning of its buffers.
fn converted(array: &ArrayRef) -> Result<ArrayRef> {
    let converted: ArrayRef = match array.data_type() {
        DataType::BinaryView => {
            let mut texts = StringViewBuilder::new();
            for document in array.as_binary_view() {
                texts.append_option(document.map(|bytes| Value::Json(bytes.to_vec()).to_string()));
            }
            Arc::new(texts.finish())
        }
        DataType::Date32 => {
            let dates = array.as_primitive::<Date32Type>();
            match dates.values().contains(&ZERO_DATE) {
                true => {
                    let dates = dates
                        .iter()
                        .map(|date| date.filter(|days| *days != ZERO_DATE));
                    Arc::new(dates.collect::<Date32Array>())
                }
                false => Arc::clone(array),
            }
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            let points = array.as_primitive::<TimestampMicrosecondType>();
            match points.values().contains(&ZERO_DATETIME) {
                true => {
                    let points = points.iter();
                    let points =
                        points.map(|point| point.filter(|micros| *micros != ZERO_DATETIME));
                    Arc::new(points.collect::<TimestampMicrosecondArray>())
                }
                false => Arc::clone(array),
            }
        }
        // Its values may begin inside of a byte, its NULLs inside of another.
        DataType::Boolean => {
            let flags = array.as_boolean().iter();
            Arc::new(flags.collect::<BooleanArray>())
        }
        _ => Arc::clone(array),
    };
    if converted.offset() == 0 {
        return Ok(converted);
    }
    let data = converted.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    let copied = copy.try_extend(0, 0, data.len());
    copied.map_err(|error| Error::unknown(error.to_string()))?;
    Ok(make_array(copy.freeze()))
}

impl Exported {
    /// # Errors
    /// 1105: a column has a type that results do not have.
    pub(crate) fn new(answer: &sheaf::Answer) -> Result<Exported> {
        let batches = answer.batches.iter().map(|batch| {
            let columns = batch.columns().iter().map(converted);
            Ok(Batch {
                rows: batch.num_rows(),
                columns: columns.collect::<Result<_>>()?,
            })
        });
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let schema = answer.schema();
        let columns = schema.fields().iter().zip(&answer.columns).enumerate();
        let columns = columns.map(|(position, (field, meta))| {
            let ty = match (batches.first(), field.data_type()) {
                (Some(batch), _) => batch.columns[position].data_type(),
                (None, DataType::BinaryView) => &DataType::Utf8View,
                (None, ty) => ty,
            };
            let format = format_of(ty).and_then(|format| CString::new(format).ok());
            Ok(Column {
                name: CString::new(meta.name.replace('\0', "")).unwrap_or_default(),
                format: format.ok_or_else(|| {
                    Error::unknown(format!("column '{}' has the type {ty}", meta.name))
                })?,
                nullable: true,
            })
        });
        Ok(Exported {
            columns: columns.collect::<Result<_>>()?,
            batches: batches.into_iter(),
        })
    }
}

/// What an [`ArrowSchema`] holds until it is released.
struct HeldSchema {
    _format: CString,
    _name: CString,
    children: Vec<*mut ArrowSchema>,
}

fn schema_of(
    format: CString,
    name: CString,
    flags: i64,
    children: Vec<ArrowSchema>,
) -> ArrowSchema {
    let children = children
        .into_iter()
        .map(|child| Box::into_raw(Box::new(child)));
    let mut held = Box::new(HeldSchema {
        children: children.collect(),
        _format: format,
        _name: name,
    });
    ArrowSchema {
        format: held._format.as_ptr(),
        name: held._name.as_ptr(),
        metadata: ptr::null(),
        flags,
        n_children: held.children.len() as i64,
        children: held.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(held).cast(),
    }
}

/// The columns, as a structure of them.
pub(crate) fn schema(exported: &Exported) -> ArrowSchema {
    let columns = exported.columns.iter().map(|column| {
        let flags = if column.nullable { NULLABLE } else { 0 };
        schema_of(
            column.format.clone(),
            column.name.clone(),
            flags,
            Vec::new(),
        )
    });
    schema_of(c"+s".to_owned(), CString::default(), 0, columns.collect())
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the consumer passes a structure that `schema_of` has made, which it has not released: `release` is
    // cleared here. The children were boxed there; those that were moved out have no `release` any more.
    unsafe {
        let schema = &mut *schema;
        let held = Box::from_raw(schema.private_data.cast::<HeldSchema>());
        for child in &held.children {
            drop(Box::from_raw(*child));
        }
        schema.release = None;
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, and is not used after.
            unsafe { release(self) }
        }
    }
}

/// What an [`ArrowArray`] holds until it is released.
struct HeldArray {
    _buffers: Vec<Option<Buffer>>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

fn array_of(
    rows: usize,
    nulls: usize,
    buffers: Vec<Option<Buffer>>,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    let pointers = buffers.iter().map(|buffer| match buffer {
        Some(buffer) => buffer.as_ptr().cast::<c_void>(),
        None => ptr::null(),
    });
    let children = children
        .into_iter()
        .map(|child| Box::into_raw(Box::new(child)));
    let mut held = Box::new(HeldArray {
        pointers: pointers.collect(),
        children: children.collect(),
        _buffers: buffers,
    });
    ArrowArray {
        length: rows as i64,
        null_count: nulls as i64,
        offset: 0,
        n_buffers: held.pointers.len() as i64,
        n_children: held.children.len() as i64,
        buffers: held.pointers.as_mut_ptr(),
        children: held.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(held).cast(),
    }
}

fn column_array(column: &ArrayRef) -> ArrowArray {
    // Of offset 0: see `converted`.
    let data = column.to_data();
    let rows = data.len();
    if data.data_type() == &DataType::Null {
        return array_of(rows, rows, Vec::new(), Vec::new());
    }
    // A copy only where the bits begin inside of a byte.
    let validity = data.nulls().map(|nulls| nulls.inner().sliced());
    let mut buffers = vec![validity];
    buffers.extend(data.buffers().iter().cloned().map(Some));
    if matches!(data.data_type(), DataType::Utf8View | DataType::BinaryView) {
        // Views are followed by their variable buffers, and these by how long each of them is.
        let lengths = data
            .buffers()
            .iter()
            .skip(1)
            .map(|buffer| buffer.len() as i64);
        buffers.push(Some(Buffer::from_vec(lengths.collect::<Vec<_>>())));
    }
    array_of(rows, data.null_count(), buffers, Vec::new())
}

fn batch_array(batch: &Batch) -> ArrowArray {
    let columns = batch.columns.iter().map(column_array);
    array_of(batch.rows, 0, vec![None], columns.collect())
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`: made by `array_of`, not released before.
    unsafe {
        let array = &mut *array;
        let held = Box::from_raw(array.private_data.cast::<HeldArray>());
        for child in &held.children {
            drop(Box::from_raw(*child));
        }
        array.release = None;
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, and is not used after.
            unsafe { release(self) }
        }
    }
}

/// Hands out the batches one by one.
pub(crate) fn stream(exported: Exported) -> ArrowArrayStream {
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(Box::new(exported)).cast(),
    }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: a stream that `stream` has made and that is not released; `out` is room for a structure, which the
    // interface says holds nothing.
    unsafe {
        let Some(exported) = (*stream).private_data.cast::<Exported>().as_ref() else {
            return INVALID;
        };
        ptr::write(out, schema(exported));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`. One thread at a time uses a stream, says the interface.
    unsafe {
        let Some(exported) = (*stream).private_data.cast::<Exported>().as_mut() else {
            return INVALID;
        };
        match exported.batches.next() {
            Some(batch) => ptr::write(out, batch_array(&batch)),
            // An array that is released already says that there is no other.
            None => (*out).release = None,
        }
    }
    0
}

unsafe extern "C" fn get_last_error(_stream: *mut ArrowArrayStream) -> *const c_char {
    const MESSAGE: &CStr = c"the stream was released";
    MESSAGE.as_ptr()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: made by `stream`, not released before.
    unsafe {
        let stream = &mut *stream;
        drop(Box::from_raw(stream.private_data.cast::<Exported>()));
        stream.private_data = ptr::null_mut();
        stream.release = None;
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, and is not used after.
            unsafe { release(self) }
        }
    }
}
