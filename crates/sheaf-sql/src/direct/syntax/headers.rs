//! What the columns of a result are called.
//!
//! A header is the name that the statement gives, or the expression as it is written. A literal in it may be another
//! one in each execution of a cached plan, so such headers are put together for each run ([`Spelled`]).

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use sheaf_frontend::{bare, header_of_literal, is_plain_column, shown_in_header};
use sheaf_types::Value;
use sqlparser::ast;

use crate::parser::parameter_number;
use crate::session::result::ColumnMeta;

/// How the literals of a statement are written, where its plan has places for them: result headers show them.
#[derive(Clone, Copy)]
pub(crate) enum Spelled<'a> {
    /// The plan was made of the statement's own text.
    AsWritten,
    /// They were taken out of this text, in which they have these places.
    TakenOut(&'a str, &'a [Range<usize>]),
    /// Comments were taken out with them.
    Changed,
}

/// The header of a computed item.
#[derive(Debug)]
pub(in crate::direct) enum HeaderName {
    Fixed(String),
    /// A text with `?`, the first of which is this parameter of the statement.
    Written {
        text: String,
        first: usize,
    },
    /// A parameter alone. Where it is a literal that was taken out, a text is its own header.
    Parameter {
        number: usize,
        text: String,
    },
}

impl HeaderName {
    pub(in crate::direct) fn of(expr: &ast::Expr, written: &str, text: &str) -> HeaderName {
        let before = written.as_ptr() as usize - text.as_ptr() as usize;
        let first = text[..before].matches('?').count();
        // A literal in the place of a `?` is no shorter, so no more than that is shown.
        let written = shown_in_header(written).to_string();
        let inner = bare(expr);
        if let Some(column) = is_plain_column(inner) {
            return HeaderName::Fixed(column.value.clone());
        }
        if let Some(header) = header_of_literal(inner) {
            return HeaderName::Fixed(header);
        }
        let literal = match inner {
            ast::Expr::Prefixed { value, .. } => value,
            inner => inner,
        };
        match literal {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(place) => match parameter_number(place) {
                    Some(number) => HeaderName::Parameter {
                        number,
                        text: "?".to_string(),
                    },
                    None => HeaderName::Fixed(written),
                },
                ast::Value::Number(..) if inner != expr => HeaderName::Fixed(value.to_string()),
                _ => HeaderName::Written {
                    text: written,
                    first,
                },
            },
            _ => HeaderName::Written {
                text: written,
                first,
            },
        }
    }

    /// `None` if it cannot be told.
    pub(in crate::direct) fn name(
        &self,
        parameters: &[Value],
        spelled: Spelled<'_>,
    ) -> Option<String> {
        let (text, first) = match self {
            HeaderName::Fixed(name) => return Some(name.clone()),
            HeaderName::Parameter { number, text } => match (&parameters[*number], spelled) {
                (_, Spelled::AsWritten) => return Some(text.clone()),
                (Value::Text(text), _) => return Some(shown_in_header(text).to_string()),
                (Value::Null, _) => return Some("NULL".into()),
                _ => (text, *number),
            },
            HeaderName::Written { text, first } => (text, *first),
        };
        match spelled {
            Spelled::AsWritten => Some(text.clone()),
            Spelled::Changed => None,
            Spelled::TakenOut(sql, spans) => {
                let mut name = String::with_capacity(text.len());
                let mut spans = spans[first..].iter();
                for (number, piece) in text.split('?').enumerate() {
                    if number > 0 {
                        name.push_str(shown_in_header(&sql[spans.next()?.clone()]));
                    }
                    name.push_str(piece);
                }
                name.truncate(shown_in_header(&name).len());
                Some(name)
            }
        }
    }
}

/// Of each computed item of a select list its place in the list, and its header.
#[derive(Debug)]
pub(in crate::direct) struct ComputedHeaders(pub(in crate::direct) Vec<(usize, HeaderName)>);

impl ComputedHeaders {
    /// The headers in a run with these parameters; `None` if they cannot be told.
    pub(in crate::direct) fn names(
        &self,
        parameters: &[Value],
        spelled: Spelled<'_>,
    ) -> Option<Vec<String>> {
        let items = self.0.iter();
        items
            .map(|(_, header)| header.name(parameters, spelled))
            .collect()
    }
}

/// How the columns of a result are described some of which are computed.
#[derive(Debug)]
pub(in crate::direct) struct ShownColumns {
    /// Of the computed ones.
    pub(in crate::direct) names: Vec<String>,
    pub(in crate::direct) columns: Vec<ColumnMeta>,
    pub(in crate::direct) schema: SchemaRef,
}

impl ShownColumns {
    /// `list` describes the other columns, and has places for these.
    pub(in crate::direct) fn new(
        (columns, schema): (&[ColumnMeta], &SchemaRef),
        computed: &ComputedHeaders,
        names: Vec<String>,
        (metas, made): (&[ColumnMeta], &[FieldRef]),
    ) -> ShownColumns {
        let mut columns = columns.to_vec();
        let mut fields = schema.fields().to_vec();
        for (number, ((place, _), name)) in computed.0.iter().zip(&names).enumerate() {
            // It comes from no table, even if it is a value that was given.
            columns[*place] = ColumnMeta {
                name: name.clone(),
                org_name: String::new(),
                table: String::new(),
                org_table: String::new(),
                database: String::new(),
                ..metas[number].clone()
            };
            fields[*place] = Arc::new(made[number].as_ref().clone().with_name(name));
        }
        ShownColumns {
            names,
            columns,
            schema: Arc::new(Schema::new(fields)),
        }
    }

    pub(in crate::direct) fn has_names(&self, names: &[String]) -> bool {
        self.names == names
    }
}
