//! MySQL's values: their types, their order, their text, and how one becomes another.
//!
//! The lowest floor of what MySQL means. It knows neither pages nor Arrow: tables store these values, expressions
//! compute with them, and the server sends them. So a text is read, and a value printed, in one way everywhere.
//!
//! | file | what it holds |
//! |---|---|
//! | [`column_type`] | column types: what a column may hold, and how MySQL spells it |
//! | [`labels`] | values of ENUM and SET: numbers that read as texts |
//! | [`value`] | one value of a column, or a literal on its way to one |
//! | [`number`] | numbers from text, and as text |
//! | [`mod@number_literal`] | numbers as statements write them |
//! | [`temporal`] | dates and times: the calendar, from text, and as text |
//! | [`json`] | JSON values: documents, paths, their order and functions of them |
//! | [`xml`] | XML: documents, and what an XPath finds in them |
//! | [`text`] | which texts are equal, and in which order they come |
//! | [`output`] | where the text of a value is appended |
//! | [`assignment`] | a value on its way into a column |
//! | [`error`] | what can be wrong with a type or a value |

pub mod assignment;
pub mod column_type;
pub mod error;
pub mod json;
pub mod labels;
pub mod number;
mod number_literal;
pub mod output;
pub mod temporal;
pub mod text;
pub mod value;
pub mod xml;

pub use column_type::ColumnType;
pub use error::{ColumnIssue, ColumnProblem};
pub use number_literal::number_literal;
pub use text::collation::Collation;
pub use value::{Value, column_text, zero_filled};
