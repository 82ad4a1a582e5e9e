//! The types of columns that CREATE TABLE … SELECT makes of expressions.
//!
//! A column of a table keeps its type. Of an expression the plan knows a kind of type, but not how long its texts can
//! be, and whole numbers are 64 bits wide. Both are found out here from the expression, as far as it is simple:
//!
//! ```text
//!   'abc'  varchar(3)     1  int     concat(v, 'x')  varchar(11)     coalesce(i, 0)  int     left(v, 3)  varchar(3)
//! ```
//!
//! What is not known keeps the widest type of its kind.

use datafusion_common::ScalarValue;
use datafusion_expr::{Case, Expr, LogicalPlan};
use sheaf_types::ColumnType;

/// The longest text that becomes a VARCHAR.
const MAX_LENGTH: u32 = 16_383;
/// Numbers of more digits do not become an INT.
const MAX_INT_DIGITS: usize = 9;
/// Subqueries and functions inside of each other that are looked into.
const MAX_DEPTH: usize = 32;

/// What is known of an expression's values.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// Texts of at most so many characters.
    Text(u32),
    /// Whole numbers that fit an INT.
    Int,
    /// NULL, which goes with everything.
    Null,
    /// Whatever a column of this type holds.
    Column(ColumnType),
}

/// The type of a column of the query's result, of which `general` is known: the general one, or a narrower one.
pub(crate) fn made_type(plan: &LogicalPlan, column: usize, general: ColumnType) -> ColumnType {
    match (shape(plan, column, 0), &general) {
        (Some(Shape::Text(length)), ColumnType::VarChar { collation, .. })
        | (Some(Shape::Text(length)), ColumnType::Text { collation, .. })
            if length <= MAX_LENGTH =>
        {
            ColumnType::VarChar {
                length,
                collation: *collation,
            }
        }
        (Some(Shape::Int), ColumnType::BigInt { unsigned: false }) => {
            ColumnType::Int { unsigned: false }
        }
        _ => general,
    }
}

fn shape(plan: &LogicalPlan, column: usize, depth: usize) -> Option<Shape> {
    if depth > MAX_DEPTH {
        return None;
    }
    match plan {
        LogicalPlan::Projection(projection) => {
            shape_of(projection.expr.get(column)?, &projection.input, depth + 1)
        }
        LogicalPlan::SubqueryAlias(alias) => shape(&alias.input, column, depth + 1),
        LogicalPlan::Sort(sort) => shape(&sort.input, column, depth + 1),
        LogicalPlan::Limit(limit) => shape(&limit.input, column, depth + 1),
        LogicalPlan::Filter(filter) => shape(&filter.input, column, depth + 1),
        LogicalPlan::Union(union) => {
            let shapes = union.inputs.iter();
            all(shapes.map(|input| shape(input, column, depth + 1)))
        }
        LogicalPlan::TableScan(scan) => {
            let field = scan.projected_schema.field(column);
            let ty = field.metadata().get(sheaf_access::TYPE_KEY)?;
            ColumnType::parse(ty).ok().map(Shape::Column)
        }
        _ => None,
    }
}

fn shape_of(expr: &Expr, input: &LogicalPlan, depth: usize) -> Option<Shape> {
    if depth > MAX_DEPTH {
        return None;
    }
    match expr {
        Expr::Alias(alias) => shape_of(&alias.expr, input, depth + 1),
        Expr::Column(column) => {
            let position = input.schema().maybe_index_of_column(column)?;
            shape(input, position, depth + 1)
        }
        Expr::Literal(value, _) => shape_of_literal(value),
        Expr::Cast(cast) => match shape_of(&cast.expr, input, depth + 1)? {
            Shape::Column(_) => None,
            shape => Some(shape),
        },
        Expr::Case(Case {
            when_then_expr,
            else_expr,
            ..
        }) => {
            let results = when_then_expr.iter().map(|(_, then)| then).chain(else_expr);
            all(results.map(|result| shape_of(result, input, depth + 1)))
        }
        Expr::ScalarFunction(function) => {
            let arguments = Arguments {
                args: &function.args,
                input,
                depth: depth + 1,
            };
            arguments.shape_of(function.func.name())
        }
        _ => None,
    }
}

fn shape_of_literal(value: &ScalarValue) -> Option<Shape> {
    if value.is_null() {
        return Some(Shape::Null);
    }
    match value {
        ScalarValue::Int64(Some(number)) => {
            (number.to_string().len() <= MAX_INT_DIGITS).then_some(Shape::Int)
        }
        value => {
            let text = value.try_as_str()??;
            Some(Shape::Text(u32::try_from(text.chars().count()).ok()?))
        }
    }
}

/// The shape of what is one of several; `None` if one of them is not known.
fn all(shapes: impl Iterator<Item = Option<Shape>>) -> Option<Shape> {
    let mut common = Shape::Null;
    for shape in shapes {
        common = match (common, shape?) {
            (Shape::Null, shape) | (shape, Shape::Null) => shape,
            (left, right) if left == right => left,
            (left, right) if is_int(&left) && is_int(&right) => Shape::Int,
            (left, right) => Shape::Text(width(&left)?.max(width(&right)?)),
        };
    }
    Some(common)
}

fn is_int(shape: &Shape) -> bool {
    match shape {
        Shape::Int => true,
        Shape::Column(ty) => matches!(
            ty,
            ColumnType::Bool
                | ColumnType::TinyInt { .. }
                | ColumnType::SmallInt { .. }
                | ColumnType::MediumInt { .. }
                | ColumnType::Int { unsigned: false }
        ),
        _ => false,
    }
}

/// The most characters of a text, of a literal or a column.
fn width(shape: &Shape) -> Option<u32> {
    match shape {
        Shape::Text(length) => Some(*length),
        Shape::Null => Some(0),
        Shape::Column(ColumnType::Char { length, .. } | ColumnType::VarChar { length, .. }) => {
            Some(*length)
        }
        Shape::Column(ColumnType::Enum { labels, .. }) => {
            let longest = labels.iter().map(|label| label.chars().count()).max();
            u32::try_from(longest.unwrap_or(0)).ok()
        }
        Shape::Int | Shape::Column(_) => None,
    }
}

/// Arguments of a function.
struct Arguments<'a> {
    args: &'a [Expr],
    input: &'a LogicalPlan,
    depth: usize,
}

impl Arguments<'_> {
    fn shape(&self, argument: usize) -> Option<Shape> {
        shape_of(self.args.get(argument)?, self.input, self.depth)
    }

    fn width(&self, argument: usize) -> Option<u32> {
        width(&self.shape(argument)?)
    }

    /// A literal count, which is 0 if it is below.
    fn count(&self, argument: usize) -> Option<u32> {
        match self.args.get(argument)? {
            Expr::Literal(ScalarValue::Int64(Some(count)), _) => {
                u32::try_from((*count).max(0)).ok()
            }
            _ => None,
        }
    }

    fn shape_of(&self, function: &str) -> Option<Shape> {
        let length = match function {
            "$result" | "$collate" | "$again" => return self.shape(0),
            "coalesce" | "ifnull" | "$case" => {
                return all((0..self.args.len()).map(|argument| self.shape(argument)));
            }
            "upper" | "lower" | "reverse" | "trim" | "ltrim" | "rtrim" => self.width(0)?,
            "concat" => (0..self.args.len())
                .map(|argument| self.width(argument))
                .try_fold(0u32, |sum, width| sum.checked_add(width?))?,
            "left" | "right" => self.count(1)?.min(self.width(0)?),
            "substring" | "substr" => match (self.count(2), self.width(0)?) {
                (Some(count), width) => count.min(width),
                (None, width) => width,
            },
            "lpad" | "rpad" => self.count(1)?,
            "$cast_char" if self.args.len() == 2 => self.count(1)?,
            "$cast_char" => self.width(0)?,
            "repeat" => self.width(0)?.checked_mul(self.count(1)?)?,
            "md5" => 32,
            "sha1" => 40,
            _ => return None,
        };
        Some(Shape::Text(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_several_has_room_for_each() {
        let column = |ty: &str| Shape::Column(ColumnType::parse(ty).expect("a type"));
        let common = |shapes: &[Shape]| all(shapes.iter().cloned().map(Some));
        assert_eq!(
            common(&[Shape::Text(3), Shape::Null, column("varchar(10)")]),
            Some(Shape::Text(10))
        );
        assert_eq!(common(&[Shape::Int, column("int")]), Some(Shape::Int));
        assert_eq!(common(&[Shape::Int, column("bigint")]), None);
        assert_eq!(common(&[Shape::Int, Shape::Text(1)]), None);
    }
}
