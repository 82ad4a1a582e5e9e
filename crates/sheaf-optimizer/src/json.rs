//! JSON documents as EXPLAIN FORMAT=JSON and the optimizer trace print them.
//!
//! Members keep the order in which they were added, because people read these documents from top to bottom. The two
//! layouts are MySQL's: indented by two blanks, or on one line with a blank after each colon and comma.

use std::borrow::Cow;
use std::fmt::Write as _;

use sheaf_types::json::text::push_quoted;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// A number as it is printed.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Object),
}

/// Members in the order in which they are printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object(Vec<(Cow<'static, str>, Json)>);

/// How a document is laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// Everything on one line.
    pub one_line: bool,
    /// A comment with its name at the end of each list and object (`end_markers_in_json`).
    pub end_markers: bool,
}

impl Object {
    pub fn new() -> Object {
        Object::default()
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Json>) -> Object {
        self.add(name, value);
        self
    }

    /// Adds a member if there is a value.
    #[must_use]
    pub fn with_some(mut self, name: &'static str, value: Option<impl Into<Json>>) -> Object {
        if let Some(value) = value {
            self.add(name, value);
        }
        self
    }

    /// Adds `name: true` if it is.
    #[must_use]
    pub fn with_flag(self, name: &'static str, is_set: bool) -> Object {
        self.with_some(name, is_set.then_some(true))
    }

    /// The members of both, in this order.
    #[must_use]
    pub fn and(mut self, other: Object) -> Object {
        self.0.extend(other.0);
        self
    }

    pub fn add(&mut self, name: &'static str, value: impl Into<Json>) {
        self.0.push((Cow::Borrowed(name), value.into()));
    }

    /// Adds a member whose name is made at run time.
    pub fn add_named(&mut self, name: String, value: impl Into<Json>) {
        self.0.push((Cow::Owned(name), value.into()));
    }

    /// The object that is the value of the first member.
    pub(crate) fn first_object(&mut self) -> Option<&mut Object> {
        match self.0.first_mut() {
            Some((_, Json::Object(object))) => Some(object),
            _ => None,
        }
    }
}

impl Json {
    /// Calls a function for each text that is a value.
    pub(crate) fn for_each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
            Json::Text(text) => change(text),
            Json::List(values) => values
                .iter_mut()
                .for_each(|value| value.for_each_text(change)),
            Json::Object(Object(members)) => {
                members
                    .iter_mut()
                    .for_each(|(_, value)| value.for_each_text(change));
            }
        }
    }

    /// A number of rows or pages: whole from ten on, with two digits below.
    pub fn count(count: f64) -> Json {
        Json::Number(if count >= 10.0 || count.fract() == 0.0 {
            format!("{count:.0}")
        } else {
            format!("{count:.2}")
        })
    }

    /// A number with so many digits after the point.
    pub fn fixed(number: f64, digits: usize) -> Json {
        Json::Number(format!("{number:.digits$}"))
    }

    /// The document as text.
    pub fn print(&self, layout: Layout) -> String {
        let mut text = String::new();
        Printer {
            layout,
            text: &mut text,
        }
        .value(self, None, 0);
        text
    }

    /// Bytes of the document on one line.
    pub fn bytes(&self) -> usize {
        let one_line = Layout {
            one_line: true,
            end_markers: false,
        };
        self.print(one_line).len()
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Json {
        Json::Number(value.to_string())
    }
}

impl From<usize> for Json {
    fn from(value: usize) -> Json {
        Json::Number(value.to_string())
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Json {
        Json::Object(object)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(list: Vec<T>) -> Json {
        Json::List(list.into_iter().map(Into::into).collect())
    }
}

struct Printer<'t> {
    layout: Layout,
    text: &'t mut String,
}

impl Printer<'_> {
    /// `name` is the member's that the value belongs to.
    fn value(&mut self, value: &Json, name: Option<&str>, depth: usize) {
        match value {
            Json::Null => self.text.push_str("null"),
            Json::Bool(true) => self.text.push_str("true"),
            Json::Bool(false) => self.text.push_str("false"),
            Json::Number(number) => self.text.push_str(number),
            Json::Text(text) => push_quoted(text, self.text),
            Json::List(items) => {
                let items = items.iter().map(|item| (None, item));
                self.items(['[', ']'], items, name, depth);
            }
            Json::Object(Object(members)) => {
                let members = members
                    .iter()
                    .map(|(name, value)| (Some(name.as_ref()), value));
                self.items(['{', '}'], members, name, depth);
            }
        }
    }

    fn items<'j>(
        &mut self,
        brackets: [char; 2],
        items: impl Iterator<Item = (Option<&'j str>, &'j Json)>,
        name: Option<&str>,
        depth: usize,
    ) {
        self.text.push(brackets[0]);
        let mut any = false;
        for (member, value) in items {
            if any {
                self.text
                    .push_str(if self.layout.one_line { ", " } else { "," });
            }
            any = true;
            self.line(depth + 1);
            if let Some(member) = member {
                push_quoted(member, self.text);
                self.text.push_str(": ");
            }
            self.value(value, member, depth + 1);
        }
        if any {
            self.line(depth);
        }
        self.text.push(brackets[1]);
        if self.layout.end_markers
            && let Some(name) = name
        {
            let _ = write!(self.text, " /* {name} */");
        }
    }

    fn line(&mut self, depth: usize) {
        if !self.layout.one_line {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n("  ", depth));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Json {
        Object::new()
            .with("table", "t\"1\"\n\u{1}")
            .with("rows", Json::count(3.25))
            .with("steps", vec![Json::from(1u64), Json::from(true)])
            .with("nothing", Vec::<Json>::new())
            .into()
    }

    #[test]
    fn one_line_and_indented() {
        let one_line = Layout {
            one_line: true,
            end_markers: false,
        };
        assert_eq!(
            document().print(one_line),
            r#"{"table": "t\"1\"\n\u0001", "rows": 3.25, "steps": [1, true], "nothing": []}"#
        );
        assert_eq!(
            document().print(Layout::default()),
            "{\n  \"table\": \"t\\\"1\\\"\\n\\u0001\",\n  \"rows\": 3.25,\n  \"steps\": [\n    1,\n    true\n  ],\n  \
             \"nothing\": []\n}"
        );
    }

    #[test]
    fn end_markers_name_what_ends() {
        let layout = Layout {
            one_line: true,
            end_markers: true,
        };
        let text = document().print(layout);
        assert!(text.contains("[1, true] /* steps */"), "{text}");
    }

    #[test]
    fn counts_are_whole_from_ten_on() {
        let shown: Vec<_> = [0.126, 3.0, 9.5, 10.4, 1e6].map(Json::count).into();
        let texts = ["0.13", "3", "9.50", "10", "1000000"];
        assert_eq!(shown, texts.map(|text| Json::Number(text.to_string())));
    }
}
