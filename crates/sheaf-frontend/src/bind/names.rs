//! Functions about names: NAME_CONST, and the names of days and months in the session's locale (`lc_time_names`).

use sheaf_algebra::Scalar;
use sheaf_types::Value;
use sheaf_types::error::codes;
use sqlparser::ast::Expr;

use super::arguments::wrong_argument_count;
use super::{Binder, Bound};
use crate::error::SqlError;
use crate::syntax::is_literal;

impl Binder<'_> {
    /// NAME_CONST(name, value): a literal, whose column has the name. `None`: it is another function.
    pub(super) fn name_const(&mut self, function: &str, values: &[&Expr]) -> Bound<Option<Scalar>> {
        if function != "name_const" {
            return Ok(None);
        }
        let [name, value] = values else {
            return Err(wrong_argument_count(function));
        };
        if !is_literal(name) || !is_literal(value) {
            return Err(SqlError::new(
                codes::WRONG_ARGUMENTS,
                "Incorrect arguments to NAME_CONST",
            ));
        }
        self.value(value).map(Some)
    }

    /// DAYNAME, MONTHNAME and DATE_FORMAT, which have the locale as one more argument. `None`: it is another function,
    /// or the names are English.
    pub(super) fn names_of_dates(
        &mut self,
        function: &str,
        values: &[&Expr],
    ) -> Bound<Option<Scalar>> {
        let count = match function {
            "dayname" | "monthname" => 1,
            "date_format" => 2,
            _ => return Ok(None),
        };
        if values.len() != count {
            return Err(wrong_argument_count(function));
        }
        let Some(locale) = self.locale_of_names()? else {
            return Ok(None);
        };
        let mut arguments = self.operands(values.iter().copied())?;
        arguments.push(locale);
        self.call(function, arguments).map(Some)
    }

    /// The session's locale, if its names are not English. What a definition keeps has English ones.
    pub(super) fn locale_of_names(&mut self) -> Bound<Option<Scalar>> {
        if self.binds_kept {
            return Ok(None);
        }
        let session = self.context.session;
        match session.system_variable(false, "lc_time_names") {
            Some(Value::Text(locale)) if !locale.starts_with("en_") => self.text(locale).map(Some),
            _ => Ok(None),
        }
    }
}
