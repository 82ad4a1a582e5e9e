//! Expressions that make JSON, and that read it.
//!
//! They are MySQL's, in which JSON is a type of its own. Numbers and texts read from it stand wherever others do.

use crate::expression::either;
use crate::query::Generator;
use crate::schema::{Kind, pick};
use crate::sequence;
use crate::tree::Tree;

const PATHS: [&str; 7] = [
    "'$.a'", "'$.a'", "'$.b'", "'$[0]'", "'$.b[1]'", "'$.*'", "'$.a.a'",
];

impl Generator<'_> {
    fn path(&mut self) -> &'static str {
        pick::<&str>(self.random, &PATHS)
    }

    /// A column and a path with an operator, or a function where there is no column.
    fn at_path(&mut self, operator: &str, function: &str, end: &str) -> Tree {
        let path = self.path();
        match self.column(Kind::Json) {
            Some(column) => sequence![column, operator, path],
            None => sequence![function, self.leaf(Kind::Json), ", ", path, end],
        }
    }

    /// JSON of JSON.
    pub fn json(&mut self, depth: u32) -> Tree {
        let one = self.scalar(Kind::Json, depth);
        let whole = match self.random.below(8) {
            0 => self.at_path("->", "json_extract(", ")"),
            1 => sequence!["json_extract(", one.clone(), ", ", self.path(), ")"],
            2 => {
                let kind = *pick(self.random, &[Kind::Integer, Kind::Decimal, Kind::Text]);
                sequence!["json_array(", one.clone(), ", ", self.leaf(kind), ")"]
            }
            3 => {
                let kind = *pick(self.random, &[Kind::Unsigned, Kind::Double, Kind::DateTime]);
                sequence![
                    "json_object('a', ",
                    self.leaf(kind),
                    ", 'b', ",
                    one.clone(),
                    ")"
                ]
            }
            4 => sequence![
                "json_merge_patch(",
                one.clone(),
                ", ",
                self.leaf(Kind::Json),
                ")"
            ],
            5 => {
                let function = *pick(self.random, &["json_set(", "json_insert(", "json_replace("]);
                let kind = *pick(self.random, &[Kind::Integer, Kind::Text, Kind::Json]);
                sequence![function, one.clone(), ", '$.a', ", self.leaf(kind), ")"]
            }
            6 => sequence!["json_remove(", one.clone(), ", '$.a')"],
            _ => {
                let kind = *pick(self.random, &[Kind::Integer, Kind::Decimal, Kind::Date]);
                sequence!["cast(", self.leaf(kind), " as json)"]
            }
        };
        either(whole, [one])
    }

    /// A number that a document has, or has of something.
    pub fn number_of_json(&mut self) -> Tree {
        let one = self.scalar(Kind::Json, 1);
        match self.random.below(8) {
            6..=7 => self.number_of_document(),
            0 => sequence!["json_length(", one, ")"],
            1 => sequence!["json_depth(", one, ")"],
            2 => sequence!["json_contains(", one, ", ", self.leaf(Kind::Json), ")"],
            3 => sequence!["(", self.leaf(Kind::Integer), " member of(", one, "))"],
            4 => sequence!["json_value(", one, ", '$.a' returning signed)"],
            // MySQL rounds the fraction of a document, and cuts that of what IF, CASE or COALESCE chooses.
            _ => sequence!["cast(", self.leaf(Kind::Json), " as signed)"],
        }
    }

    /// A text that a document has, or its own.
    pub fn text_of_json(&mut self) -> Tree {
        match self.random.below(6) {
            0..=1 => self.at_path("->>", "json_unquote(json_extract(", "))"),
            2 => sequence!["json_unquote(", self.scalar(Kind::Json, 1), ")"],
            3 => sequence!["json_type(", self.scalar(Kind::Json, 1), ")"],
            4 => {
                let path = self.path();
                sequence!["json_value(", self.scalar(Kind::Json, 0), ", ", path, ")"]
            }
            _ => sequence!["cast(", self.scalar(Kind::Json, 1), " as char)"],
        }
    }
}
