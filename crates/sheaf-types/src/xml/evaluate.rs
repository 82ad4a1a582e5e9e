//! What an XPath finds in a document, and a document with a part of it replaced.
//!
//! Values are compared and computed as MySQL does it everywhere: texts by a collation, a text beside a number as a
//! number. A set of nodes is compared by each of the texts right inside of its nodes.

use std::cmp::Ordering;
use std::ops::Range;

use super::document::{Document, Kind};
use super::path::{Axis, Comparison, Expression, Function, Operator, Path};
use crate::number::{push_double, text_to_double, text_to_int};
use crate::text::collation::Collation;

/// The most nodes that are looked at.
const MAX_STEPS: u64 = 10_000_000;

/// A node in a set.
#[derive(Clone, Copy, Debug)]
struct Found {
    node: usize,
    /// Among those that were found with it, from 0 on.
    position: usize,
    /// How many there are where a predicate is about it; else 0.
    size: usize,
}

#[derive(Clone, Debug)]
enum Value {
    Set(Vec<Found>),
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    Null,
}

/// It takes too long, or was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

struct Evaluation<'a> {
    document: &'a Document<'a>,
    collation: Collation,
    steps: u64,
    is_over: &'a dyn Fn() -> bool,
}

impl Path {
    /// The texts that are right inside of the nodes that are found, with blanks between, or the value that the path is.
    /// `None` is NULL.
    ///
    /// # Errors
    /// The search takes too long.
    pub fn extract(
        &self,
        document: &Document<'_>,
        collation: Collation,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<String>, Stopped> {
        let mut evaluation = Evaluation {
            document,
            collation,
            steps: 0,
            is_over,
        };
        let value = evaluation.value(&self.0, None)?;
        Ok(evaluation.text(&value))
    }

    /// The place in the document of the only node that is found, all of it. `None` if there is none or several; the
    /// root is the whole document.
    ///
    /// # Errors
    /// The search takes too long.
    pub fn only_node(
        &self,
        document: &Document<'_>,
        collation: Collation,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Range<usize>>, Stopped> {
        let mut evaluation = Evaluation {
            document,
            collation,
            steps: 0,
            is_over,
        };
        let Value::Set(set) = evaluation.value(&self.0, None)? else {
            return Ok(None);
        };
        Ok(match set.as_slice() {
            [only] if only.node == 0 => Some(0..document.text.len()),
            [only] => Some(document.nodes[only.node].whole.clone()),
            _ => None,
        })
    }

    /// Whether it is a set of nodes.
    pub fn is_set(&self) -> bool {
        self.0.is_set()
    }
}

impl Evaluation<'_> {
    fn step(&mut self) -> Result<(), Stopped> {
        self.steps += 1;
        match self.steps > MAX_STEPS || self.steps.is_multiple_of(1024) && (self.is_over)() {
            true => Err(Stopped),
            false => Ok(()),
        }
    }

    fn set(
        &mut self,
        expression: &Expression,
        context: Option<Found>,
    ) -> Result<Vec<Found>, Stopped> {
        Ok(match self.value(expression, context)? {
            Value::Set(set) => set,
            _ => Vec::new(),
        })
    }

    fn value(&mut self, expression: &Expression, context: Option<Found>) -> Result<Value, Stopped> {
        self.step()?;
        let root = Found {
            node: 0,
            position: 0,
            size: 0,
        };
        Ok(match expression {
            Expression::Root => Value::Set(vec![root]),
            Expression::Context => Value::Set(vec![context.unwrap_or(root)]),
            Expression::Step { from, axis, name } => {
                let from = self.set(from, context)?;
                Value::Set(self.nodes_on(*axis, name, &from)?)
            }
            Expression::Filter { from, predicate } => {
                let from = self.set(from, context)?;
                Value::Set(self.filtered(&from, predicate)?)
            }
            Expression::Union(left, right) => {
                let mut nodes = self.set(left, context)?;
                nodes.extend(self.set(right, context)?);
                nodes.sort_by_key(|found| found.node);
                nodes.dedup_by_key(|found| found.node);
                let numbered = nodes.iter().enumerate().map(|(position, found)| Found {
                    node: found.node,
                    position,
                    size: 0,
                });
                Value::Set(numbered.collect())
            }
            Expression::Compare(comparison, left, right) => {
                let left = self.value(left, context)?;
                let right = self.value(right, context)?;
                Value::Boolean(self.compared(*comparison, &left, &right)?)
            }
            Expression::And(left, right) => {
                let left = self.value(left, context)?;
                let is_true = self.is_true(&left) && {
                    let right = self.value(right, context)?;
                    self.is_true(&right)
                };
                Value::Boolean(is_true)
            }
            Expression::Or(left, right) => {
                let left = self.value(left, context)?;
                let is_true = self.is_true(&left) || {
                    let right = self.value(right, context)?;
                    self.is_true(&right)
                };
                Value::Boolean(is_true)
            }
            Expression::Compute(operator, left, right) => {
                let left = self.value(left, context)?;
                let right = self.value(right, context)?;
                self.computed(*operator, &left, &right)
            }
            Expression::Negate(operand) => match self.value(operand, context)? {
                Value::Integer(number) => match number.checked_neg() {
                    Some(negated) => Value::Integer(negated),
                    None => Value::Double(-(number as f64)),
                },
                Value::Boolean(is_true) => Value::Integer(-i64::from(is_true)),
                Value::Null => Value::Null,
                other => Value::Double(-self.double(&other)),
            },
            Expression::Integer(number) => Value::Integer(*number),
            Expression::Double(number) => Value::Double(*number),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Call(function, arguments) => self.call(*function, arguments, context)?,
        })
    }

    /// The nodes that lie on an axis of others.
    fn nodes_on(&mut self, axis: Axis, name: &str, from: &[Found]) -> Result<Vec<Found>, Stopped> {
        let document = self.document;
        let nodes = document.nodes.as_slice();
        let is_called =
            |node: usize| name == "*" || document.text[nodes[node].place.clone()] == *name;
        let mut found: Vec<Found> = Vec::new();
        let mut add = |node: usize, position: &mut usize| {
            found.push(Found {
                node,
                position: *position,
                size: 0,
            });
            *position += 1;
        };
        if let Axis::Parent | Axis::Ancestor { .. } = axis {
            let mut is_active = vec![false; nodes.len()];
            for from in from {
                self.step()?;
                let mut node = from.node;
                if matches!(axis, Axis::Ancestor { or_self: true }) && is_called(node) {
                    is_active[node] = true;
                }
                while nodes[node].parent != node {
                    node = nodes[node].parent;
                    if is_called(node) {
                        is_active[node] = true;
                    }
                    if axis == Axis::Parent {
                        break;
                    }
                }
            }
            let mut position = 0;
            for node in (0..nodes.len()).filter(|node| is_active[*node]) {
                add(node, &mut position);
            }
            return Ok(found);
        }
        for from in from {
            let mut position = 0;
            let level = nodes[from.node].level;
            if matches!(axis, Axis::Own | Axis::Descendant { or_self: true })
                && is_called(from.node)
            {
                add(from.node, &mut position);
            }
            if axis == Axis::Own {
                continue;
            }
            let wanted = match axis {
                Axis::Attribute => Kind::Attribute,
                _ => Kind::Element,
            };
            for (number, node) in nodes.iter().enumerate().skip(from.node + 1) {
                self.step()?;
                if node.level <= level {
                    break;
                }
                let is_near = matches!(axis, Axis::Descendant { .. }) || node.parent == from.node;
                if is_near && node.kind == wanted && is_called(number) {
                    add(number, &mut position);
                }
            }
        }
        Ok(found)
    }

    /// The nodes for which a predicate is true, or whose position it is.
    fn filtered(&mut self, from: &[Found], predicate: &Expression) -> Result<Vec<Found>, Stopped> {
        let mut kept = Vec::new();
        for found in from {
            let context = Found {
                size: from.len(),
                ..*found
            };
            let value = self.value(predicate, Some(context))?;
            let is_kept = match predicate.is_boolean() || predicate.is_set() {
                true => self.is_true(&value),
                false => usize::try_from(self.integer(&value) - 1)
                    .is_ok_and(|position| position == found.position),
            };
            if is_kept {
                kept.push(Found {
                    node: found.node,
                    position: kept.len(),
                    size: 0,
                });
            }
        }
        Ok(kept)
    }

    /// The texts right inside of a node.
    fn texts_in(&self, node: usize) -> impl Iterator<Item = &str> {
        let nodes = &self.document.nodes;
        let level = nodes[node].level;
        let below = nodes[node + 1..].iter();
        let below = below.take_while(move |inner| inner.level > level);
        let texts = below.filter(move |inner| inner.kind == Kind::Text && inner.parent == node);
        texts.map(|inner| &self.document.text[inner.place.clone()])
    }

    fn compared(
        &mut self,
        comparison: Comparison,
        left: &Value,
        right: &Value,
    ) -> Result<bool, Stopped> {
        let (set, other, is_left) = match (left, right) {
            (Value::Set(set), other) => (set, other, true),
            (other, Value::Set(set)) => (set, other, false),
            (left, right) => return Ok(self.holds(comparison, left, right)),
        };
        for found in set {
            let texts: Vec<Value> = self
                .texts_in(found.node)
                .map(|text| Value::Text(text.to_string()))
                .collect();
            for text in texts {
                self.step()?;
                let holds = match is_left {
                    true => self.holds(comparison, &text, other),
                    false => self.holds(comparison, other, &text),
                };
                if holds {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn holds(&self, comparison: Comparison, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Null, _) | (_, Value::Null) => return false,
            (Value::Text(left), Value::Text(right)) => Some(self.collation.compare(left, right)),
            (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
            _ => self.double(left).partial_cmp(&self.double(right)),
        };
        match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::Unequal => order.is_some_and(Ordering::is_ne),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }

    fn computed(&self, operator: Operator, left: &Value, right: &Value) -> Value {
        if let (Value::Null, _) | (_, Value::Null) = (left, right) {
            return Value::Null;
        }
        let is_whole = |value: &Value| matches!(value, Value::Integer(_) | Value::Boolean(_));
        if is_whole(left) && is_whole(right) {
            let (left, right) = (self.integer(left), self.integer(right));
            let exact = match operator {
                Operator::Add => left.checked_add(right),
                Operator::Subtract => left.checked_sub(right),
                Operator::Multiply => left.checked_mul(right),
                Operator::Divide | Operator::Modulo if right == 0 => return Value::Null,
                Operator::Divide => left.checked_div(right),
                Operator::Modulo => left.checked_rem(right),
            };
            if let Some(exact) = exact {
                return Value::Integer(exact);
            }
        }
        let (left, right) = (self.double(left), self.double(right));
        match operator {
            Operator::Add => Value::Double(left + right),
            Operator::Subtract => Value::Double(left - right),
            Operator::Multiply => Value::Double(left * right),
            Operator::Divide | Operator::Modulo if right == 0.0 => Value::Null,
            Operator::Divide => Value::Integer((left / right).trunc() as i64),
            Operator::Modulo => Value::Double(left % right),
        }
    }

    fn call(
        &mut self,
        function: Function,
        arguments: &[Expression],
        context: Option<Found>,
    ) -> Result<Value, Stopped> {
        match function {
            Function::True => return Ok(Value::Boolean(true)),
            Function::False => return Ok(Value::Boolean(false)),
            Function::Position => {
                let position = context.map_or(0, |context| context.position);
                return Ok(Value::Integer(position as i64 + 1));
            }
            Function::Last => {
                let size = context.map_or(0, |context| context.size);
                return Ok(Value::Integer(size as i64));
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument, context)?);
        }
        if values.is_empty() {
            values.push(Value::Set(context.into_iter().collect()));
        }
        let first = &values[0];
        Ok(match (function, first) {
            (Function::Boolean, first) => Value::Boolean(self.is_true(first)),
            (Function::Not, first) => Value::Boolean(!self.is_true(first)),
            (Function::Count, Value::Set(set)) => Value::Integer(match set.as_slice() {
                // Of what a predicate is about, how many there are.
                [only] if only.size > 0 => only.size as i64,
                set => set.len() as i64,
            }),
            (Function::Sum, Value::Set(set)) => {
                let texts = set.iter().flat_map(|found| self.texts_in(found.node));
                Value::Double(texts.map(text_to_double).sum())
            }
            (Function::Ceiling | Function::Floor | Function::Round, Value::Integer(number)) => {
                Value::Integer(*number)
            }
            (Function::Ceiling, first) => Value::Double(self.double(first).ceil()),
            (Function::Floor, first) => Value::Double(self.double(first).floor()),
            (Function::Round, first) => Value::Double(self.double(first).round()),
            (Function::Number, first) => Value::Double(self.double(first)),
            (Function::StringLength, first) => match self.text(first) {
                Some(text) => Value::Integer(text.chars().count() as i64),
                None => Value::Null,
            },
            (Function::Concat, _) => {
                let texts: Option<Vec<String>> =
                    values.iter().map(|value| self.text(value)).collect();
                texts.map_or(Value::Null, |texts| Value::Text(texts.concat()))
            }
            (Function::Contains, first) => match (self.text(first), self.text(&values[1])) {
                (Some(text), Some(part)) => Value::Boolean(self.contains(&text, &part)),
                _ => Value::Null,
            },
            (Function::Substring, first) => match self.text(first) {
                Some(text) => {
                    let start = self.integer(&values[1]);
                    let length = values.get(2).map(|length| self.integer(length));
                    Value::Text(substring(&text, start, length))
                }
                None => Value::Null,
            },
            _ => Value::Null,
        })
    }

    fn contains(&self, text: &str, part: &str) -> bool {
        if part.is_empty() {
            return true;
        }
        let length = part.chars().count();
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        starts.iter().enumerate().any(|(number, start)| {
            let end = starts.get(number + length).copied().unwrap_or(text.len());
            number + length <= starts.len()
                && self.collation.compare(&text[*start..end], part).is_eq()
        })
    }

    fn is_true(&self, value: &Value) -> bool {
        match value {
            Value::Set(set) => !set.is_empty(),
            Value::Boolean(is_true) => *is_true,
            Value::Null => false,
            other => self.double(other) != 0.0,
        }
    }

    fn double(&self, value: &Value) -> f64 {
        match value {
            Value::Boolean(is_true) => f64::from(u8::from(*is_true)),
            Value::Integer(number) => *number as f64,
            Value::Double(number) => *number,
            other => text_to_double(&self.text(other).unwrap_or_default()),
        }
    }

    fn integer(&self, value: &Value) -> i64 {
        match value {
            Value::Boolean(is_true) => i64::from(*is_true),
            Value::Integer(number) => *number,
            Value::Double(number) => number.round() as i64,
            other => text_to_int(&self.text(other).unwrap_or_default()),
        }
    }

    /// `None` is NULL.
    fn text(&self, value: &Value) -> Option<String> {
        Some(match value {
            Value::Set(set) => self.text_of(set),
            Value::Boolean(is_true) => i64::from(*is_true).to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Double(number) => {
                let mut text = String::new();
                push_double(*number, &mut text);
                text
            }
            Value::Text(text) => text.clone(),
            Value::Null => return None,
        })
    }

    /// The texts right inside of nodes, in the order of the document.
    fn text_of(&self, set: &[Found]) -> String {
        let nodes = &self.document.nodes;
        let mut is_active = vec![false; nodes.len()];
        for found in set {
            is_active[found.node] = true;
        }
        let mut text = String::new();
        for node in nodes {
            if node.kind == Kind::Text && is_active[node.parent] {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(&self.document.text[node.place.clone()]);
            }
        }
        text
    }
}

/// As SUBSTRING does it: from a position, from the end if it is negative.
fn substring(text: &str, start: i64, length: Option<i64>) -> String {
    let count = text.chars().count() as i64;
    let first = match start {
        0 => return String::new(),
        start if start > 0 => start - 1,
        start if -start > count => return String::new(),
        start => count + start,
    };
    let length = length.unwrap_or(count).max(0);
    let skipped = usize::try_from(first).unwrap_or(usize::MAX);
    let taken = usize::try_from(length).unwrap_or(0);
    text.chars().skip(skipped).take(taken).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extracted(text: &str, path: &str) -> Option<String> {
        let path = Path::parse(path).expect(path);
        let document = Document::parse(text).expect(text);
        let found = path.extract(&document, Collation::Utf8mb4_general_ci, &|| false);
        found.expect("a short search")
    }

    /// MySQL 9.7's answers.
    #[test]
    fn paths_find_what_they_find_in_mysql() {
        let nested = r#"<a aa1="aa1" aa2="aa2">a1<b ba1="ba1">b1<c>c1</c>b2</b>a2</a>"#;
        let siblings = "<a><b>b1</b><b>b2</b><c><b>c1b1</b><b>c1b2</b></c></a>";
        let entries = "<e><id>x</id><pt>10</pt></e><e><id>y</id><pt>50</pt></e>";
        for (text, path, expected) in [
            (nested, "/a", "a1 a2"),
            (nested, "//*", "a1 b1 c1 b2 a2"),
            (nested, "/a/@*", "aa1 aa2"),
            (nested, "/a/b/c/ancestor::*", "a1 b1 b2 a2"),
            (nested, "/a/b/../@aa1", "aa1"),
            (siblings, "//b[1]", "b1 c1b1"),
            (siblings, "/descendant::b[1]", "b1"),
            (siblings, "/a/b[last()]", "b2"),
            (siblings, "/a/b[position()=2]", "b2"),
            (siblings, "count(//b)", "4"),
            (entries, "/e[pt>10]/id", "y"),
            (entries, "/e[(50>=pt)]/id", "x y"),
            ("<a>Jack</a>", r#"/a[contains(../a,"j")]"#, "Jack"),
            ("<a/>", "1+1", "2"),
            ("<t><![CDATA[a<b]]></t>", "/t", "a<b"),
        ] {
            assert_eq!(extracted(text, path).as_deref(), Some(expected), "{path}");
        }
        assert!(Document::parse("<a>a</b>").is_err());
        assert!(Document::parse("<a").is_err());
    }

    #[test]
    fn one_node_is_replaced_with_all_that_is_in_it() {
        let text = r#"<a x="1"><b>c</b><d/></a>"#;
        let place = |path: &str| {
            let path = Path::parse(path).expect(path);
            let document = Document::parse(text).expect(text);
            let found = path.only_node(&document, Collation::Utf8mb4_bin, &|| false);
            found.expect("a short search").map(|place| &text[place])
        };
        assert_eq!(place("/a/b"), Some("<b>c</b>"));
        assert_eq!(place("/a/d"), Some("<d/>"));
        assert_eq!(place("/a/@x"), Some(r#"x="1""#));
        assert_eq!(place("/a/*"), None);
        assert_eq!(place("/"), Some(text));
    }
}
