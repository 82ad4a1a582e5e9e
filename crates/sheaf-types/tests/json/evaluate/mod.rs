//! A little of SQL: enough to evaluate the recorded expressions with the functions of the crate.

use std::iter::Peekable;
use std::str::Chars;

use sheaf_types::Collation;
use sheaf_types::json::functions::coerce::{self, Coerced, CoercionProblem};
use sheaf_types::json::functions::contains_path::{OneOrAll, contains_path};
use sheaf_types::json::functions::modify::{Change, change, remove};
use sheaf_types::json::functions::{
    contains, extract, merge, overlaps, quote, search, structure, value as json_value,
};
use sheaf_types::json::text::{is_json, read, to_pretty, to_text};
use sheaf_types::json::{Builder, Document, JsonError, Path, Tree};
use sheaf_types::number::{decimal_text, push_double, rescale, text_to_decimal};
use sheaf_types::temporal::{
    DAY, push_date, push_datetime, push_time, read_datetime, read_time, round_datetime, round_time,
};
use sheaf_types::text::like::Pattern;

/// A value of SQL.
#[derive(Debug, Clone)]
pub enum Sql {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Decimal(i128, u8),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Date(i32),
    Time(i64, u8),
    DateTime(i64, u8),
    Json(Document),
}

type Answer = Result<Sql, JsonError>;

impl Sql {
    /// As the client shows it; `None` of NULL.
    pub fn text(&self) -> Option<String> {
        let mut out = String::new();
        match self {
            Sql::Null => return None,
            Sql::Bool(value) => out.push_str(if *value { "1" } else { "0" }),
            Sql::Int(value) => out = value.to_string(),
            Sql::UInt(value) => out = value.to_string(),
            Sql::Decimal(unscaled, scale) => out = decimal_text(*unscaled, *scale),
            Sql::Double(value) => push_double(*value, &mut out),
            Sql::Text(text) => out.push_str(text),
            Sql::Bytes(bytes) => out = String::from_utf8_lossy(bytes).into_owned(),
            Sql::Date(days) => push_date(*days, &mut out),
            Sql::Time(micros, digits) => push_time(*micros, *digits, &mut out),
            Sql::DateTime(micros, digits) => push_datetime(*micros, *digits, &mut out),
            Sql::Json(document) => out = to_text(document.as_json()),
        }
        Some(out)
    }

    fn is_null(&self) -> bool {
        matches!(self, Sql::Null)
    }

    /// An argument that must be JSON, or a text of it.
    pub fn document(&self, argument: usize, function: &str) -> Result<Option<Document>, JsonError> {
        match self {
            Sql::Null => Ok(None),
            Sql::Json(document) => Ok(Some(document.clone())),
            Sql::Text(text) => match read(text) {
                Ok(document) => Ok(Some(document)),
                Err(problem) => Err(problem.in_argument(argument, function)),
            },
            Sql::Bytes(_) => Err(JsonError::CharacterSet {
                character_set: "binary".to_string(),
            }),
            _ => Err(JsonError::Type {
                argument,
                function: function.to_string(),
            }),
        }
    }

    /// An argument that becomes a value of a document.
    fn as_value(&self, builder: &mut Builder) -> Result<(), JsonError> {
        match self {
            Sql::Null => builder.null(),
            Sql::Bool(value) => builder.bool(*value),
            Sql::Int(value) => builder.int(*value),
            Sql::UInt(value) => builder.uint(*value),
            Sql::Decimal(unscaled, scale) => builder.decimal(*unscaled, *scale),
            Sql::Double(value) => builder.double(*value),
            Sql::Text(text) => builder.string(text),
            Sql::Bytes(bytes) => builder.opaque(15, bytes),
            Sql::Date(days) => builder.date(*days),
            Sql::Time(micros, _) => builder.time(*micros),
            Sql::DateTime(micros, _) => builder.datetime(*micros),
            Sql::Json(document) => builder.json(document.as_json()),
        }
    }

    fn to_value(&self) -> Result<Document, JsonError> {
        let mut builder = Builder::new();
        self.as_value(&mut builder)?;
        builder.finish()
    }

    fn path(&self) -> Result<Option<Path>, JsonError> {
        self.text().map(|text| Path::parse(&text)).transpose()
    }
}

fn json_or_null(document: Option<Document>) -> Sql {
    document.map_or(Sql::Null, Sql::Json)
}

#[derive(Default)]
pub struct Evaluator {
    pub warnings: Vec<String>,
}

impl Evaluator {
    pub fn evaluate(&mut self, expression: &str) -> Answer {
        let mut parser = Parser {
            characters: expression.chars().peekable(),
            evaluator: self,
        };
        let value = parser.comparison()?;
        parser.spaces();
        let rest: String = parser.characters.collect();
        assert!(rest.is_empty(), "{rest} is left of {expression}");
        Ok(value)
    }

    fn warn<T>(&mut self, coerced: Coerced<T>, to: &'static str, source: &Sql) -> T {
        match coerced.problem {
            None => {}
            Some(CoercionProblem::DecimalOutOfRange) => {
                let digits = source.text().expect("a number");
                self.warnings.push(format!(
                    "1292 Truncated incorrect DECIMAL value: '{digits}'"
                ));
            }
            Some(problem) => {
                let error = problem.error(to, "cast_as_json", 1);
                self.warnings
                    .push(format!("{} {error}", error.code().number()));
            }
        }
        coerced.value
    }

    fn cast(&mut self, source: Sql, to: &str, arguments: &[u8], expression: &str) -> Answer {
        if to == "JSON" {
            return Ok(match &source {
                Sql::Null => Sql::Null,
                Sql::Text(_) => json_or_null(source.document(1, "cast_as_json")?),
                value => Sql::Json(value.to_value()?),
            });
        }
        let digits = arguments.first().copied().unwrap_or(0);
        let Sql::Json(document) = &source else {
            let text = source.text().unwrap_or_default();
            return Ok(match to {
                "DATE" => {
                    Sql::Date((read_datetime(&text).unwrap().micros(0).unwrap() / DAY) as i32)
                }
                "TIME" => Sql::Time(read_time(&text).unwrap().micros(digits), digits),
                "DATETIME" => Sql::DateTime(
                    read_datetime(&text).unwrap().micros(digits).unwrap(),
                    digits,
                ),
                "BINARY" => Sql::Bytes(text.into_bytes()),
                "UNSIGNED" | "YEAR" => Sql::UInt(text.parse().unwrap()),
                _ => panic!("CAST AS {to}"),
            });
        };
        let json = document.as_json();
        Ok(match to {
            "SIGNED" => Sql::Int(self.warn(coerce::to_integer(json), "INTEGER", &source) as i64),
            "UNSIGNED" => Sql::UInt(self.warn(coerce::to_integer(json), "INTEGER", &source) as u64),
            "DOUBLE" | "FLOAT" => {
                Sql::Double(self.warn(coerce::to_double(json), "DOUBLE", &source))
            }
            "DECIMAL" => {
                let [precision, scale] = *arguments else {
                    panic!("DECIMAL")
                };
                let (unscaled, from) = self.warn(coerce::to_decimal(json), "DECIMAL", &source);
                let limit = 10i128.pow(precision.into());
                match rescale(unscaled, from, scale).filter(|number| number.abs() < limit) {
                    Some(number) => Sql::Decimal(number, scale),
                    None => {
                        self.warnings.push(format!(
                            "1264 Out of range value for column '{expression}' at row 1"
                        ));
                        Sql::Decimal((limit - 1) * unscaled.signum(), scale)
                    }
                }
            }
            "CHAR" | "BINARY" => {
                let text = coerce::to_char(json).into_owned();
                match arguments {
                    [room] if text.len() > usize::from(*room) => {
                        self.warnings.push(format!(
                            "1292 Truncated incorrect CHAR({room}) value: '{text}'"
                        ));
                        Sql::Text(text[..usize::from(*room)].to_string())
                    }
                    _ => Sql::Text(text),
                }
            }
            "DATE" => self
                .warn(coerce::to_date(json), "DATE", &source)
                .map_or(Sql::Null, Sql::Date),
            "DATETIME" => {
                let micros = self.warn(coerce::to_datetime(json), "DATETIME/TIMESTAMP", &source);
                micros.map_or(Sql::Null, |micros| {
                    Sql::DateTime(round_datetime(micros, digits).unwrap(), digits)
                })
            }
            "TIME" => {
                let micros = self.warn(coerce::to_time(json), "TIME", &source);
                micros.map_or(Sql::Null, |micros| {
                    Sql::Time(round_time(micros, digits), digits)
                })
            }
            _ => panic!("CAST AS {to}"),
        })
    }

    fn call(&mut self, name: &str, arguments: Vec<Sql>) -> Answer {
        let function = name.to_ascii_lowercase();
        let document = |at: usize| match arguments.get(at) {
            Some(argument) => argument.document(at + 1, &function),
            None => Ok(None),
        };
        let has_null = arguments.iter().any(Sql::is_null);
        let change_all = |kind: Change| -> Answer {
            let Some(target) = document(0)? else {
                return Ok(Sql::Null);
            };
            let mut changes = Vec::new();
            for pair in arguments[1..].chunks(2) {
                let Some(path) = pair[0].path()? else {
                    return Ok(Sql::Null);
                };
                changes.push((path, pair[1].to_value()?));
            }
            let mut tree = Tree::Stored(target.as_json());
            for (path, value) in &changes {
                change(&mut tree, kind, path, Tree::Stored(value.as_json()))?;
            }
            tree.to_document().map(Sql::Json)
        };
        match name {
            "REPEAT" | "CONCAT" => {
                let texts: Vec<String> = arguments.iter().filter_map(Sql::text).collect();
                return Ok(Sql::Text(match name {
                    "CONCAT" => texts.concat(),
                    _ => texts[0].repeat(texts[1].parse().unwrap()),
                }));
            }
            "JSON_VALID" => {
                return Ok(match &arguments[0] {
                    Sql::Null => Sql::Null,
                    Sql::Json(_) => Sql::Bool(true),
                    Sql::Text(text) => Sql::Bool(is_json(text)?),
                    _ => Sql::Bool(false),
                });
            }
            "JSON_PRETTY" => {
                let document = document(0)?;
                return Ok(document.map_or(Sql::Null, |document| {
                    Sql::Text(to_pretty(document.as_json()))
                }));
            }
            "JSON_SET" => return change_all(Change::Set),
            "JSON_INSERT" => return change_all(Change::Insert),
            "JSON_REPLACE" => return change_all(Change::Replace),
            "JSON_ARRAY_APPEND" => return change_all(Change::ArrayAppend),
            "JSON_ARRAY_INSERT" => return change_all(Change::ArrayInsert),
            "JSON_REMOVE" => {
                let Some(target) = document(0)?.filter(|_| !has_null) else {
                    return Ok(Sql::Null);
                };
                let mut tree = Tree::Stored(target.as_json());
                for path in &arguments[1..] {
                    remove(&mut tree, &path.path()?.unwrap())?;
                }
                return tree.to_document().map(Sql::Json);
            }
            "JSON_MERGE_PATCH" | "JSON_MERGE_PRESERVE" => {
                let mut documents = Vec::new();
                for at in 0..arguments.len() {
                    documents.push(document(at)?);
                }
                let values: Vec<_> = documents
                    .iter()
                    .map(|document| document.as_ref().map(Document::as_json))
                    .collect();
                let tree = match name {
                    "JSON_MERGE_PATCH" => merge::merge_patch(&values),
                    _ if has_null => None,
                    _ => merge::merge_preserve(values.into_iter().flatten()),
                };
                return Ok(json_or_null(
                    tree.map(|tree| tree.to_document()).transpose()?,
                ));
            }
            "JSON_ARRAY" | "JSON_OBJECT" => {
                let mut builder = Builder::new();
                if name == "JSON_ARRAY" {
                    builder.begin_array()?;
                    for argument in &arguments {
                        argument.as_value(&mut builder)?;
                    }
                } else {
                    builder.begin_object()?;
                    for pair in arguments.chunks(2) {
                        builder.key(&pair[0].text().ok_or(JsonError::NullKey)?)?;
                        pair[1].as_value(&mut builder)?;
                    }
                }
                builder.end()?;
                return builder.finish().map(Sql::Json);
            }
            "JSON_CONTAINS_PATH" => {
                let (Some(target), Some(mode)) = (document(0)?, arguments[1].text()) else {
                    return Ok(Sql::Null);
                };
                let mode = OneOrAll::parse(&mode, &function)?;
                let paths: Vec<_> = arguments[2..]
                    .iter()
                    .map(|path| path.path().unwrap())
                    .collect();
                let found = contains_path(target.as_json(), mode, paths.iter().map(Option::as_ref));
                return Ok(found.map_or(Sql::Null, Sql::Bool));
            }
            "MEMBER OF" => {
                let Some(array) = document(1)?.filter(|_| !has_null) else {
                    return Ok(Sql::Null);
                };
                let value = arguments[0].to_value()?;
                return Ok(Sql::Bool(overlaps::is_member(
                    value.as_json(),
                    array.as_json(),
                )));
            }
            "JSON_SEARCH" => return self.search(&arguments, &function),
            _ => {}
        }
        if name.ends_with("QUOTE") {
            return Ok(match (name, &arguments[0]) {
                (_, Sql::Null) => Sql::Null,
                ("JSON_QUOTE", text) => Sql::Text(quote::quote(&text.text().unwrap())),
                (_, Sql::Json(document)) => {
                    Sql::Text(quote::unquote(document.as_json()).into_owned())
                }
                (_, text) => {
                    let text = text.text().unwrap();
                    let text = quote::unquote_text(&text)
                        .map_err(|problem| problem.in_argument(1, &function))?;
                    Sql::Text(text.into_owned())
                }
            });
        }
        let Some(first) = document(0)? else {
            return Ok(Sql::Null);
        };
        let json = first.as_json();
        let paths = |from: usize| -> Result<Option<Vec<Path>>, JsonError> {
            arguments.iter().skip(from).map(Sql::path).collect()
        };
        Ok(match name {
            "JSON_EXTRACT" => match paths(1)? {
                Some(paths) => {
                    json_or_null(extract::extract(json, &paths.iter().collect::<Vec<_>>())?)
                }
                None => Sql::Null,
            },
            "JSON_KEYS" => match paths(1)? {
                Some(paths) => json_or_null(structure::keys(json, paths.first())?),
                None => Sql::Null,
            },
            "JSON_LENGTH" => match paths(1)?.as_deref() {
                Some([path]) => structure::length_at(json, path)
                    .map_or(Sql::Null, |length| Sql::Int(length as i64)),
                Some(_) => Sql::Int(structure::length(json) as i64),
                None => Sql::Null,
            },
            "JSON_DEPTH" => Sql::Int(structure::depth(json) as i64),
            "JSON_TYPE" => Sql::Text(structure::type_name(json).to_string()),
            "JSON_CONTAINS" | "JSON_OVERLAPS" => {
                let (Some(second), Some(paths)) = (document(1)?, paths(2)?) else {
                    return Ok(Sql::Null);
                };
                let second = second.as_json();
                match name {
                    "JSON_OVERLAPS" => Sql::Bool(overlaps::overlaps(json, second)),
                    _ => contains::contains(json, second, paths.first())?
                        .map_or(Sql::Null, Sql::Bool),
                }
            }
            _ => panic!("{name}"),
        })
    }

    fn search(&mut self, arguments: &[Sql], function: &str) -> Answer {
        let document = arguments[0].document(1, function)?;
        let (Some(document), Some(mode)) = (document, arguments[1].text()) else {
            return Ok(Sql::Null);
        };
        let mode = OneOrAll::parse(&mode, function)?;
        let escape = arguments.get(3).and_then(Sql::text).unwrap_or_default();
        let escape = escape.chars().next().or(Some('\\'));
        let paths: Option<Vec<Path>> = arguments
            .iter()
            .skip(4)
            .map(Sql::path)
            .collect::<Result<_, _>>()?;
        let (Some(pattern), Some(paths)) = (arguments[2].text(), paths) else {
            return Ok(Sql::Null);
        };
        let pattern = Pattern::new(&pattern, escape, Collation::Utf8mb4_bin);
        let paths: Vec<_> = paths.iter().collect();
        let found = search::search(document.as_json(), mode, &paths, &|text| {
            pattern.matches(text)
        });
        found.map(json_or_null)
    }

    /// JSON_VALUE, of which `clauses` is what follows the path.
    fn json_value(&mut self, source: Sql, path: Sql, clauses: &str) -> Answer {
        let function = "json_value";
        let default = |when: &str| {
            let position = clauses.find(when)?;
            let before = clauses[..position].trim_end();
            let word = before.rsplit_once(' ').map_or(before, |(_, word)| word);
            Some(word.trim_matches('\'').to_string())
        };
        let on = |when: &str, error: JsonError| match default(when).as_deref() {
            None | Some("NULL") => Ok(Sql::Null),
            Some("ERROR") => Err(error),
            Some(text) => Ok(Sql::Text(text.to_string())),
        };
        let document = match source.document(1, function) {
            Ok(None) => return Ok(Sql::Null),
            Ok(Some(document)) => document,
            Err(error) => {
                let answer = on("ON ERROR", error.clone());
                if answer.is_ok() {
                    self.warnings
                        .push(format!("{} {error}", error.code().number()));
                }
                return answer;
            }
        };
        let path = path.path()?.expect("a path");
        let found = json_value::find(document.as_json(), &path);
        if let Some(error) = json_value::problem(found, function) {
            let when = match found {
                json_value::Found::Nothing => "ON EMPTY",
                _ => "ON ERROR",
            };
            return on(when, error);
        }
        let json_value::Found::One(json) = found else {
            return Ok(Sql::Null);
        };
        let to = clauses
            .split_once("RETURNING ")
            .map_or("CHAR", |(_, to)| to);
        let end = to.find(' ').unwrap_or(to.len());
        let (to, arguments) = type_of(&to[..end]);
        let returned = match to.as_str() {
            "SIGNED" => {
                json_value::without_problem(json_value::to_signed(json), "SIGNED", function)
                    .map(Sql::Int)
            }
            "UNSIGNED" => {
                json_value::without_problem(json_value::to_unsigned(json), "UNSIGNED", function)
                    .map(Sql::UInt)
            }
            "DOUBLE" => json_value::without_problem(coerce::to_double(json), "DOUBLE", function)
                .map(Sql::Double),
            "DECIMAL" => {
                let decimal =
                    json_value::without_problem(coerce::to_decimal(json), "DECIMAL", function);
                decimal.and_then(|(unscaled, from)| {
                    let limit = 10i128.pow(arguments[0].into());
                    let number =
                        rescale(unscaled, from, arguments[1]).filter(|number| number.abs() < limit);
                    let number = number.ok_or(JsonError::NotOfType {
                        to: "DECIMAL",
                        function: function.into(),
                    });
                    number.map(|number| Sql::Decimal(number, arguments[1]))
                })
            }
            "DATE" => json_value::without_problem(coerce::to_date(json), "DATE", function)
                .map(|days| Sql::Date(days.unwrap())),
            "TIME" => json_value::without_problem(coerce::to_time(json), "TIME", function)
                .map(|micros| Sql::Time(micros.unwrap(), 0)),
            "DATETIME" => {
                json_value::without_problem(coerce::to_datetime(json), "DATETIME", function)
                    .map(|micros| Sql::DateTime(micros.unwrap(), 0))
            }
            "JSON" => Ok(Sql::Json(json.to_document())),
            "CHAR" => {
                let text = quote::unquote(json).into_owned();
                match arguments.first() {
                    Some(room) if text.chars().count() > usize::from(*room) => {
                        Err(JsonError::NotOfType {
                            to: "STRING",
                            function: function.into(),
                        })
                    }
                    _ => Ok(Sql::Text(text)),
                }
            }
            _ => panic!("RETURNING {to}"),
        };
        returned.or_else(|error| on("ON ERROR", error))
    }
}

/// `DECIMAL(4,2)` as its name and numbers.
fn type_of(text: &str) -> (String, Vec<u8>) {
    let (name, numbers) = text.split_once('(').unwrap_or((text, ""));
    let numbers = numbers
        .trim_end_matches(')')
        .split(',')
        .filter(|number| !number.is_empty());
    (
        name.to_string(),
        numbers.map(|number| number.parse().unwrap()).collect(),
    )
}

struct Parser<'e, 't> {
    characters: Peekable<Chars<'t>>,
    evaluator: &'e mut Evaluator,
}

impl Parser<'_, '_> {
    fn spaces(&mut self) {
        while self.characters.next_if_eq(&' ').is_some() {}
    }

    fn take(&mut self, character: char) -> bool {
        self.spaces();
        self.characters.next_if_eq(&character).is_some()
    }

    fn expect(&mut self, character: char) {
        assert!(
            self.take(character),
            "{character} before {:?}",
            self.characters.clone().collect::<String>()
        );
    }

    fn word(&mut self) -> String {
        self.spaces();
        let mut word = String::new();
        while let Some(character) = self
            .characters
            .next_if(|c| c.is_alphanumeric() || *c == '_')
        {
            word.push(character);
        }
        word
    }

    fn rest(&self) -> String {
        self.characters.clone().collect()
    }

    /// A value, perhaps `= value` or MEMBER OF.
    fn comparison(&mut self) -> Answer {
        let left = self.value();
        if self.take('=') {
            let (left, right) = (left?, self.value()?);
            return Ok(Sql::Bool(left.text() == right.text()));
        }
        if self.rest().starts_with("MEMBER OF") {
            self.word();
            self.word();
            self.expect('(');
            let array = self.value()?;
            self.expect(')');
            return self.evaluator.call("MEMBER OF", vec![left?, array]);
        }
        left
    }

    fn value(&mut self) -> Answer {
        self.spaces();
        let rest = self.rest();
        match self.characters.peek() {
            Some('\'') => Ok(Sql::Text(self.string())),
            Some('-' | '0'..='9') => Ok(self.number()),
            Some('x' | 'b') if rest[1..].starts_with('\'') => {
                let is_hexadecimal = self.characters.next() == Some('x');
                let digits = self.string();
                let radix = if is_hexadecimal { 16 } else { 2 };
                let width = if is_hexadecimal { 2 } else { 8 };
                let bytes = digits.as_bytes().chunks(width);
                let byte = |digits: &[u8]| {
                    u8::from_str_radix(std::str::from_utf8(digits).unwrap(), radix).unwrap()
                };
                Ok(Sql::Bytes(bytes.map(byte).collect()))
            }
            _ => self.name(),
        }
    }

    fn string(&mut self) -> String {
        self.expect('\'');
        let mut text = String::new();
        loop {
            match self.characters.next().expect("a quote") {
                '\'' => return text,
                '\\' => text.push(match self.characters.next().expect("an escape") {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\x08',
                    '0' => '\0',
                    other => other,
                }),
                other => text.push(other),
            }
        }
    }

    fn number(&mut self) -> Sql {
        let mut text = String::new();
        while let Some(character) = self
            .characters
            .next_if(|c| c.is_ascii_digit() || "-.e".contains(*c))
        {
            text.push(character);
        }
        if text.contains('e') {
            return Sql::Double(text.parse().unwrap());
        }
        match text.parse() {
            Ok(integer) => Sql::Int(integer),
            Err(_) => {
                let (unscaled, scale) = text_to_decimal(&text).unwrap();
                Sql::Decimal(unscaled, scale)
            }
        }
    }

    fn name(&mut self) -> Answer {
        let before = self.rest();
        let name = self.word();
        match name.as_str() {
            "NULL" => return Ok(Sql::Null),
            "TRUE" => return Ok(Sql::Bool(true)),
            "FALSE" => return Ok(Sql::Bool(false)),
            "TIMESTAMP" => {
                let text = self.string();
                return Ok(Sql::DateTime(
                    read_datetime(&text).unwrap().micros(6).unwrap(),
                    0,
                ));
            }
            _ => {}
        }
        self.expect('(');
        if name == "CAST" {
            let source = self.value();
            assert_eq!(self.word(), "AS");
            let to = self.word();
            let mut numbers = Vec::new();
            if self.take('(') {
                while !self.take(')') {
                    self.take(',');
                    numbers.push(self.word().parse().unwrap());
                }
            }
            self.expect(')');
            let length = before.len() - self.rest().len();
            return self
                .evaluator
                .cast(source?, &to, &numbers, &before[..length]);
        }
        if name == "JSON_VALUE" {
            let source = self.value()?;
            self.expect(',');
            let path = self.value()?;
            let clauses = self.rest();
            self.characters = "".chars().peekable();
            let clauses = clauses.strip_suffix(')').expect("a parenthesis");
            return self.evaluator.json_value(source, path, clauses.trim());
        }
        let mut arguments = Vec::new();
        while !self.take(')') {
            self.take(',');
            arguments.push(self.comparison()?);
        }
        self.evaluator.call(&name, arguments)
    }
}
