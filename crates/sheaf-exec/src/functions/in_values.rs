//! `x IN (1, 5, 7, ...)` and `(x, y) IN ((1, 'a'), (5, 'b'), ...)` with a long list of constants.
//!
//! As an expression for each value such a list takes a hundred times the memory of the values, and every step of
//! planning goes through all of it. So the typing rule makes one function of it. The function has the values as arrays,
//! one for each operand, in the operands' own types. Its arguments are the operands alone:
//!
//! ```text
//!   x IN (7, 1, 5, ...)                  in {1, 5, 7, ...}(x)
//!   (x, y) IN ((5, 'b'), (1, 'a'), ...)  in {(1, ck 'a'), (5, ck 'b'), ...}(x, ck(y))
//! ```
//!
//! All steps share the arrays. The planner reads key ranges off them as it does off a list.
//!
//! The parser leaves a long list of whole numbers packed, as one text, which the typing rule reads:
//!
//! ```text
//!   x IN (7, 1, 5, ...)     $in_numbers(x, '7,1,5,...')     in {1, 5, 7, ...}(x)
//!   parser                  binder                          typing rule, if x is a whole number
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::call_name::name_of_call;

/// Members of a list from which on it is packed.
pub const MIN_PACKED: usize = 1_000;

/// Operands of a list that is packed, at most.
pub const MAX_OPERANDS: usize = 16;

/// The marker that the binder makes; its second argument is the list as text.
pub const IN_NUMBERS: &str = "$in_numbers";

/// Whether values of this type may be packed: equal ones have the same bytes.
pub fn is_packable(ty: &DataType) -> bool {
    ty.is_integer()
        || matches!(
            ty,
            DataType::Binary
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
                | DataType::Date32
                | DataType::Timestamp(..)
                | DataType::Duration(_)
        )
}

/// `(operands) IN (rows)`, as [`function_of`] makes it.
pub(crate) fn in_values(operands: Vec<Expr>, columns: &[ArrayRef]) -> Result<Expr> {
    Ok(function_of(columns)?.call(operands))
}

/// Whether operands are a row of a list. `columns` has the values of each operand, in its type, which [`is_packable`];
/// none is NULL.
pub fn function_of(columns: &[ArrayRef]) -> Result<ScalarUDF> {
    let values = Values::of(columns)?;
    Ok(ScalarUDF::from(InValues {
        name: format!("$in_{:016x}", values.hash),
        signature: Signature::any(columns.len(), Volatility::Immutable),
        values: Arc::new(values),
    }))
}

/// The operands of a packed list, and the values of each, without NULL. Rows of values ascend, and each comes once.
pub fn as_in_values(expr: &Expr) -> Option<(&[Expr], &[ArrayRef])> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let columns = values_of(&call.func)?;
    (call.args.len() == columns.len()).then_some((&call.args, columns))
}

/// The values of a function that [`function_of`] has made.
pub fn values_of(function: &ScalarUDF) -> Option<&[ArrayRef]> {
    let function = function.inner().downcast_ref::<InValues>()?;
    Some(&function.values.columns)
}

/// The numbers of a packed list; `None` if the text is not one.
pub(crate) fn unpacked(list: &str) -> Option<Vec<i64>> {
    list.split(',').map(|number| number.parse().ok()).collect()
}

/// The rows of a list.
#[derive(Debug)]
struct Values {
    columns: Vec<ArrayRef>,
    hash: u64,
    /// The rows of some operands, by a bit for each of these, once they are asked for.
    found_by: Mutex<HashMap<u16, Arc<RowSet>>>,
}

/// Sets of rows that a list keeps, besides that by all operands: one for each choice of operands that are not NULL.
const MAX_KEPT_SETS: usize = 8;

/// Rows to be found, as one run of bytes each.
#[derive(Debug)]
struct RowSet {
    converter: RowConverter,
    rows: HashSet<Box<[u8]>>,
}

fn converter_of(columns: &[ArrayRef]) -> Result<RowConverter> {
    let fields = columns.iter();
    let fields = fields.map(|column| SortField::new(column.data_type().clone()));
    Ok(RowConverter::new(fields.collect())?)
}

fn converted(columns: &[ArrayRef]) -> Result<(RowConverter, Rows)> {
    let converter = converter_of(columns)?;
    let rows = converter.convert_columns(columns)?;
    Ok((converter, rows))
}

impl RowSet {
    fn of(columns: &[ArrayRef]) -> Result<RowSet> {
        let (converter, rows) = converted(columns)?;
        let rows = rows.iter().map(|row| Box::from(row.data())).collect();
        Ok(RowSet { converter, rows })
    }
}

impl Values {
    fn of(columns: &[ArrayRef]) -> Result<Values> {
        let (_, rows) = converted(columns)?;
        let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
        order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
        order.dedup_by(|a, b| rows.row(*a as usize) == rows.row(*b as usize));
        let mut hasher = std::hash::DefaultHasher::new();
        for at in &order {
            hasher.write(rows.row(*at as usize).data());
        }
        let order = UInt32Array::from(order);
        let columns = columns.iter().map(|column| take(column, &order, None));
        Ok(Values {
            columns: columns.collect::<Result<_, _>>()?,
            hash: hasher.finish(),
            found_by: Mutex::default(),
        })
    }

    /// The rows by the operands that `mask` has a bit for. Of masks that come when [`MAX_KEPT_SETS`] are known, the
    /// rows are found out anew each time.
    fn by(&self, mask: u16) -> Result<Arc<RowSet>> {
        let lock = || self.found_by.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&mask) {
            return Ok(Arc::clone(known));
        }
        let set = Arc::new(RowSet::of(&chosen(&self.columns, mask))?);
        let mut found_by = lock();
        if found_by.len() < MAX_KEPT_SETS || mask == all_of(self.columns.len()) {
            found_by.insert(mask, Arc::clone(&set));
        }
        Ok(set)
    }

    /// Whether rows of operands are among these: unknown where one that is would be, if it was known what NULL stands
    /// for.
    fn contains(&self, operands: &[ArrayRef]) -> Result<BooleanArray> {
        let all = all_of(operands.len());
        let whole = self.by(all)?;
        // What is no value of the type is equal to none; the validity of the operand tells it apart from NULL.
        let cast_operands = operands.iter().zip(&self.columns);
        let values = cast_operands.map(|(operand, own)| match operand.data_type() {
            ty if ty == own.data_type() => Ok(Arc::clone(operand)),
            _ => cast(operand, own.data_type()),
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let is_complete = values.iter().all(|value| value.null_count() == 0);
        let rows = whole.converter.convert_columns(&values)?;
        let is_in = |row: usize| whole.rows.contains(rows.row(row).data());
        let count = rows.num_rows();
        if is_complete {
            return Ok((0..count).map(is_in).map(Some).collect());
        }
        let validity = operands.iter().map(|operand| operand.logical_nulls());
        let validity: Vec<Option<NullBuffer>> = validity.collect();
        let known = |row: usize| {
            let valid = validity.iter().map(|nulls| nulls.as_ref());
            let valid = valid.map(|nulls| nulls.is_none_or(|nulls| nulls.is_valid(row)));
            let bits = valid.enumerate();
            bits.fold(0u16, |mask, (at, valid)| mask | (u16::from(valid) << at))
        };
        let mut found = vec![None; count];
        let mut of_masks: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
        for (row, found) in found.iter_mut().enumerate() {
            match known(row) {
                mask if mask == all => *found = Some(is_in(row)),
                0 => {}
                mask => of_masks.entry(mask).or_default().push(row as u32),
            }
        }
        // One set after the other: there may be as many as there are choices of operands.
        for (mask, rows) in of_masks {
            let set = self.by(mask)?;
            let at = UInt32Array::from(rows);
            let values = chosen(&values, mask);
            let values = values.iter().map(|column| take(column, &at, None));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            let parts = set.converter.convert_columns(&values)?;
            for (row, part) in at.values().iter().zip(&parts) {
                if !set.rows.contains(part.data()) {
                    found[*row as usize] = Some(false);
                }
            }
        }
        Ok(BooleanArray::from(found))
    }
}

/// A bit for each of so many operands.
fn all_of(operands: usize) -> u16 {
    (0..operands).fold(0, |mask, at| mask | 1 << at)
}

fn chosen(columns: &[ArrayRef], mask: u16) -> Vec<ArrayRef> {
    let columns = columns.iter().enumerate();
    let columns = columns.filter(|(at, _)| mask & 1 << at != 0);
    columns.map(|(_, column)| Arc::clone(column)).collect()
}

#[derive(Debug)]
struct InValues {
    /// Tells functions with different values apart.
    name: String,
    values: Arc<Values>,
    signature: Signature,
}

impl PartialEq for InValues {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.values, &other.values)
            || self.name == other.name && self.values.columns == other.values.columns
    }
}

impl Eq for InValues {}

impl Hash for InValues {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The field of a result that may be unknown, and of one that may not.
static FIELDS: LazyLock<[FieldRef; 2]> = LazyLock::new(|| {
    [false, true].map(|nullable| Arc::new(Field::new("in", DataType::Boolean, nullable)))
});

impl ScalarUDFImpl for InValues {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::clone(&FIELDS[usize::from(nullable)]))
    }

    /// A row of which something else is in no row of the list is not in the list, NULL or not.
    fn is_strict(&self) -> bool {
        self.values.columns.len() == 1
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.args.len() != self.values.columns.len() {
            return exec_err!("{} with {} arguments", self.name, args.args.len());
        }
        let is_array = |value: &ColumnarValue| matches!(value, ColumnarValue::Array(_));
        let are_constant = !args.args.iter().any(is_array);
        let rows = if are_constant { 1 } else { args.number_rows };
        let operands = args.args.into_iter();
        let operands = operands.map(|operand| operand.into_array(rows));
        let found = self
            .values
            .contains(&operands.collect::<Result<Vec<_>>>()?)?;
        Ok(match are_constant {
            false => ColumnarValue::Array(Arc::new(found)),
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, BinaryArray, Int32Array, Int64Array, UInt64Array};
    use datafusion_common::config::ConfigOptions;
    use datafusion_expr::col;

    fn evaluate(expr: &Expr, arrays: Vec<ArrayRef>) -> Vec<Option<bool>> {
        let Expr::ScalarFunction(call) = expr else {
            panic!("{expr} is no call");
        };
        let rows = arrays[0].len();
        let fields = arrays
            .iter()
            .map(|array| Arc::new(Field::new("x", array.data_type().clone(), true)));
        let args = ScalarFunctionArgs {
            arg_fields: fields.collect(),
            args: arrays.into_iter().map(ColumnarValue::Array).collect(),
            number_rows: rows,
            return_field: Arc::new(Field::new("f", DataType::Boolean, true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let found = call.func.invoke_with_args(args).unwrap();
        let found = found.into_array(rows).unwrap();
        found.as_boolean().iter().collect()
    }

    fn numbers(numbers: &[i64]) -> Expr {
        let column = Arc::new(Int64Array::from(numbers.to_vec()));
        in_values(vec![col("x")], &[column]).unwrap()
    }

    #[test]
    fn numbers_are_found_and_null_is_unknown() {
        let expr = numbers(&unpacked("7,-1,5,7").unwrap());
        let (operands, values) = as_in_values(&expr).unwrap();
        let sorted: ArrayRef = Arc::new(Int64Array::from(vec![-1, 5, 7]));
        assert_eq!(
            (operands, values),
            ([col("x")].as_slice(), [sorted].as_slice())
        );
        let small = Int32Array::from(vec![Some(7), Some(6), None, Some(-1)]);
        assert_eq!(
            evaluate(&expr, vec![Arc::new(small)]),
            [Some(true), Some(false), None, Some(true)]
        );
        let large = UInt64Array::from(vec![Some(u64::MAX), Some(5), None]);
        assert_eq!(
            evaluate(&expr, vec![Arc::new(large)]),
            [Some(false), Some(true), None]
        );
        assert_eq!(unpacked("1,x"), None);
    }

    #[test]
    fn rows_with_null_are_unknown_where_the_rest_is_found() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![2, 1, 1])),
            Arc::new(BinaryArray::from(vec![b"b".as_slice(), b"a", b"c"])),
        ];
        let expr = in_values(vec![col("x"), col("y")], &columns).unwrap();
        let x = vec![Some(1), Some(2), Some(1), Some(3), None, None, None];
        let y: Vec<Option<&[u8]>> = vec![
            Some(b"c"),
            Some(b"a"),
            None,
            None,
            Some(b"b"),
            Some(b"d"),
            None,
        ];
        assert_eq!(
            evaluate(
                &expr,
                vec![
                    Arc::new(Int64Array::from(x)),
                    Arc::new(BinaryArray::from(y))
                ]
            ),
            [
                Some(true),
                Some(false),
                None,
                Some(false),
                None,
                Some(false),
                None
            ]
        );
    }

    #[test]
    fn lists_are_the_same_if_their_values_are() {
        assert_eq!(numbers(&[1, 2]), numbers(&[2, 1, 2]));
        assert_ne!(numbers(&[1, 2]), numbers(&[1, 3]));
        assert_ne!(
            numbers(&[1, 2]).schema_name().to_string(),
            numbers(&[1, 3]).schema_name().to_string()
        );
    }
}
