//! IN with a list. The constants of a long one are handed over as they are, without an expression for each.

use datafusion_common::ScalarValue;
use sheaf_algebra::Scalar;
use sheaf_exec::functions::in_values::IN_NUMBERS;
use sheaf_exec::functions::types::SqlType;
use sqlparser::ast::Expr;

use super::constant::{plain_constant, value_of_member};
use super::row::{is_row, taken_apart, width, with_row};
use crate::bind::block::Block;
use crate::bind::subquery::operand_columns;
use crate::bind::{Binder, Bound};
use crate::packed_list::{Members, PackedList, unpacked};

impl Binder<'_> {
    pub(super) fn in_list(&mut self, expr: &Expr, list: &[Expr]) -> Bound<Scalar> {
        let expr = with_row(expr);
        // A query with a `*` may have more; then it is refused.
        let width = width(&expr).unwrap_or(1);
        match PackedList::of(list) {
            Some(PackedList::Numbers(numbers)) => {
                if width > 1 || matches!(expr.as_ref(), Expr::Tuple(_)) {
                    return Err(operand_columns(width));
                }
                let value = self.value(&expr)?;
                let arguments = vec![self.compared(value)?, self.internal(numbers)?];
                return self.call(IN_NUMBERS, arguments);
            }
            Some(PackedList::Members { width: own, packed }) => {
                return self.in_packed(&expr, width, (own, packed));
            }
            None => {}
        }
        if let Expr::Tuple(values) = expr.as_ref()
            && values.iter().any(is_row)
        {
            let mut left = Vec::new();
            let rows = list.iter().map(|row| match with_row(row).as_ref() {
                Expr::Tuple(row) => {
                    let (one, other) = taken_apart(values, row)?;
                    left = one;
                    Ok(Expr::Tuple(other))
                }
                _ => Err(operand_columns(width)),
            });
            let rows = rows.collect::<Bound<Vec<_>>>()?;
            return self.in_list(&Expr::Tuple(left), &rows);
        }
        if width > 1 || matches!(expr.as_ref(), Expr::Tuple(_)) {
            let mut arguments = self.left_of_rows(&expr, width)?;
            let constants = self.constants(list.iter().flat_map(|row| match row {
                Expr::Tuple(items) if items.len() == width => items.as_slice(),
                _ => &[],
            }));
            if let Some(constants) = constants.filter(|all| all.len() == width * list.len()) {
                let typing = self.typing();
                return Ok(typing.call_on_constants("$row_in", arguments, constants)?);
            }
            for row in list {
                arguments.extend(self.row(&with_row(row), width)?);
            }
            return self.call("$row_in", arguments);
        }
        let value = self.value(&expr)?;
        if value.sql_type() == SqlType::Json {
            let mut arguments = vec![value];
            arguments.extend(self.json_operands(list)?);
            return self.call("$in", arguments);
        }
        let mut arguments = vec![self.compared(value)?];
        if let Some(constants) = self.constants(list) {
            let typing = self.typing();
            return Ok(typing.call_on_constants("$in", arguments, constants)?);
        }
        arguments.extend(self.values(list)?);
        self.call("$in", arguments)
    }

    /// An IN of `width` columns whose list the parser has packed as rows of `own` members.
    fn in_packed(
        &mut self,
        expr: &Expr,
        width: usize,
        (own, packed): (usize, &str),
    ) -> Bound<Scalar> {
        if width != own {
            return Err(operand_columns(width));
        }
        let values = || {
            Members::of(packed)
                .map(value_of_member)
                .collect::<Option<Vec<_>>>()
        };
        let Some(constants) = self.may_have_constants().then(values).flatten() else {
            return self.in_list(expr, &unpacked(own, packed));
        };
        let is_row = width > 1 || matches!(expr, Expr::Tuple(_));
        let (name, arguments) = match is_row {
            true => ("$row_in", self.left_of_rows(expr, width)?),
            false => {
                let value = self.value(expr)?;
                ("$in", vec![self.compared(value)?])
            }
        };
        let typing = self.typing();
        Ok(typing.call_on_constants(name, arguments, constants)?)
    }

    /// The first arguments of IN with rows: how many columns these have, and the row on the left.
    fn left_of_rows(&mut self, expr: &Expr, width: usize) -> Bound<Vec<Scalar>> {
        let left = self.row(expr, width)?.into_iter();
        let left = left.map(|value| self.in_row(value));
        let left = left.collect::<Bound<Vec<_>>>()?;
        Ok(std::iter::once(self.integer(width as i64))
            .chain(left)
            .collect())
    }

    /// Whether nothing else is to be found in the place of a constant.
    fn may_have_constants(&self) -> bool {
        let is_grouped = |block: &Block| !block.grouped.is_empty() && !block.in_aggregate;
        self.open_common_tables == 0 && !self.blocks.last().is_some_and(is_grouped)
    }

    /// The members of a list, if all are plain constants, and nothing else is to be found in their places.
    fn constants<'e>(&self, list: impl IntoIterator<Item = &'e Expr>) -> Option<Vec<ScalarValue>> {
        if !self.may_have_constants() {
            return None;
        }
        list.into_iter().map(plain_constant).collect()
    }
}
