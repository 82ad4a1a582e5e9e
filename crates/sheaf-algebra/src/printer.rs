//! A tree as text, for tests and for people: an operator a line, inputs indented below it.
//!
//! ```text
//!   Project #0, #3 := $add(#1, 1)
//!     Filter #1 > 5
//!       Scan t #0 #1 #2
//! ```

use std::fmt::{self, Write};

use crate::column::ColumnId;
use crate::relation::{Operator, Relation};
use crate::scalar::{Scalar, ScalarKind, Truth};

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self, 0, f)
    }
}

fn print(relation: &Relation, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if depth > 0 {
        f.write_char('\n')?;
    }
    write!(f, "{:indent$}", "", indent = 2 * depth)?;
    match relation.operator() {
        Operator::Scan(scan) => {
            write!(f, "Scan {}", scan.name)?;
            for column in &scan.columns {
                write!(f, " {column}")?;
            }
        }
        Operator::Filter(filter) => write!(f, "Filter {}", filter.condition)?,
        Operator::Project(project) => {
            f.write_str("Project ")?;
            list(f, &project.items, |f, item| match item.is_passed_on() {
                true => write!(f, "{}", item.column),
                false => write!(f, "{} := {}", item.column, item.value),
            })?;
        }
        Operator::Join(join) => {
            write!(f, "Join {}", kind_text(&format!("{:?}", join.kind)))?;
            condition(f, join.condition.as_ref())?;
        }
        Operator::DependentJoin(join) => {
            write!(
                f,
                "DependentJoin {}",
                kind_text(&format!("{:?}", join.kind))
            )?;
            condition(f, join.condition.as_ref())?;
        }
        Operator::Group(group) => {
            f.write_str("Group")?;
            ids(f, " by ", &group.keys)?;
            if let Some(level) = group.rollup {
                write!(f, " with rollup {level}")?;
            }
            ids(f, " carrying ", &group.carried)?;
            if !group.aggregates.is_empty() {
                f.write_str(": ")?;
                list(f, &group.aggregates, |f, (id, aggregate)| {
                    let distinct = if aggregate.is_distinct() {
                        "DISTINCT "
                    } else {
                        ""
                    };
                    write!(f, "{id} := {}({distinct}", aggregate.name())?;
                    list(f, aggregate.arguments(), |f, argument| {
                        write!(f, "{argument}")
                    })?;
                    f.write_char(')')
                })?;
            }
        }
        Operator::Expand(expand) => {
            let outer = if expand.keeps_rows { " outer" } else { "" };
            write!(
                f,
                "Expand{outer} {} of {}",
                expand.table.name, expand.document
            )?;
            ids(f, " keeping ", &expand.kept)?;
            ids(f, ": ", &expand.columns)?;
        }
        Operator::Window(window) => {
            f.write_str("Window ")?;
            list(f, &window.functions, |f, (id, function)| {
                write!(f, "{id} := {}(", function.name())?;
                list(f, function.arguments(), |f, argument| {
                    write!(f, "{argument}")
                })?;
                f.write_char(')')?;
                if !function.partition_by().is_empty() {
                    f.write_str(" by ")?;
                    list(f, function.partition_by(), |f, value| write!(f, "{value}"))?;
                }
                if !function.order_by().is_empty() {
                    f.write_str(" ordered by ")?;
                    list(f, function.order_by(), |f, order| {
                        let direction = if order.ascending { "" } else { " DESC" };
                        write!(f, "{}{direction}", order.value)
                    })?;
                }
                Ok(())
            })?;
        }
        Operator::Sort(sort) => {
            f.write_str("Sort ")?;
            list(f, &sort.keys, |f, key| {
                let direction = if key.descends { " DESC" } else { "" };
                write!(f, "{}{direction}", key.value)
            })?;
        }
        Operator::Limit(limit) => {
            f.write_str("Limit")?;
            if let Some(fetch) = limit.fetch {
                write!(f, " {fetch}")?;
            }
            if limit.skip > 0 {
                write!(f, " behind {}", limit.skip)?;
            }
        }
        Operator::Recursive(recursive) => {
            let all = if recursive.is_distinct { "" } else { " all" };
            write!(f, "Recursive{all} {}", recursive.name)?;
            ids(f, " ", &recursive.columns)?;
        }
        Operator::SetOperation(operation) => {
            write!(f, "{:?}", operation.kind)?;
            ids(f, " ", &operation.columns)?;
        }
        Operator::Values(values) => {
            write!(f, "Values of {} rows", values.rows.len())?;
            ids(f, " ", &values.columns)?;
        }
    }
    for input in relation.inputs() {
        print(input, depth + 1, f)?;
    }
    Ok(())
}

/// `LeftOuter`, `Mark(#4)` in small letters.
fn kind_text(kind: &str) -> String {
    let mut text = String::new();
    for letter in kind.chars() {
        match letter {
            '(' => text.push(' '),
            ')' => {}
            letter if letter.is_ascii_uppercase() && !text.is_empty() => {
                text.push(' ');
                text.push(letter.to_ascii_lowercase());
            }
            letter => text.push(letter.to_ascii_lowercase()),
        }
    }
    text
}

fn condition(f: &mut fmt::Formatter<'_>, condition: Option<&Scalar>) -> fmt::Result {
    match condition {
        Some(condition) => write!(f, ", {condition}"),
        None => Ok(()),
    }
}

fn ids(f: &mut fmt::Formatter<'_>, before: &str, ids: &[ColumnId]) -> fmt::Result {
    if ids.is_empty() {
        return Ok(());
    }
    f.write_str(before)?;
    list(f, ids, |f, id| write!(f, "{id}"))
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    print: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        print(f, item)?;
    }
    Ok(())
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            ScalarKind::Column(id) => write!(f, "{id}"),
            ScalarKind::Literal(value) => write!(f, "{value}"),
            ScalarKind::Call {
                function,
                arguments,
            } => {
                write!(f, "{}(", function.name())?;
                list(f, arguments, |f, argument| write!(f, "{argument}"))?;
                f.write_char(')')
            }
            ScalarKind::Cast(operand) => {
                write!(f, "CAST({operand} AS {})", self.field().data_type())
            }
            ScalarKind::Comparison {
                operator,
                left,
                right,
            } => write!(f, "{left} {} {right}", operator.symbol()),
            ScalarKind::And(conditions) => separated(f, conditions, " AND ", |operand| {
                matches!(operand.kind(), ScalarKind::Or(_))
            }),
            ScalarKind::Or(conditions) => separated(f, conditions, " OR ", |_| false),
            ScalarKind::Not(operand) => write!(f, "NOT ({operand})"),
            ScalarKind::Test {
                operand,
                is,
                negated,
            } => {
                let not = if *negated { "NOT " } else { "" };
                let is = match is {
                    Truth::Null => "NULL",
                    Truth::True => "TRUE",
                    Truth::False => "FALSE",
                    Truth::Unknown => "UNKNOWN",
                };
                match operand.kind() {
                    ScalarKind::Column(_) | ScalarKind::Call { .. } => {
                        write!(f, "{operand} IS {not}{is}")
                    }
                    _ => write!(f, "({operand}) IS {not}{is}"),
                }
            }
            ScalarKind::InList {
                operand,
                list: members,
                negated,
            } => {
                let not = if *negated { "NOT " } else { "" };
                write!(f, "{operand} {not}IN (")?;
                list(f, members, |f, member| write!(f, "{member}"))?;
                f.write_char(')')
            }
            ScalarKind::Case {
                branches,
                otherwise,
            } => {
                f.write_str("CASE")?;
                for (condition, value) in branches {
                    write!(f, " WHEN {condition} THEN {value}")?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " ELSE {otherwise}")?;
                }
                f.write_str(" END")
            }
        }
    }
}

fn separated(
    f: &mut fmt::Formatter<'_>,
    conditions: &[Scalar],
    separator: &str,
    in_parentheses: impl Fn(&Scalar) -> bool,
) -> fmt::Result {
    for (at, condition) in conditions.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        match in_parentheses(condition) {
            true => write!(f, "({condition})")?,
            false => write!(f, "{condition}")?,
        }
    }
    Ok(())
}
