//! Random rows of [tables](crate::tables).

use sheaf_storage::Random;
use sheaf_types::Value;

/// Primary keys are numbers below this.
pub(crate) const IDS: u64 = 4_000;

pub(crate) type Row = Vec<Value>;

/// Positions of the columns `id INT PRIMARY KEY, number INT, name VARCHAR(80), note TEXT`. Behind them are those that
/// come and go.
pub(crate) mod column {
    pub(crate) const ID: usize = 0;
    pub(crate) const NUMBER: usize = 1;
    pub(crate) const FIRST_LATER: usize = 4;
}

pub(crate) fn any_row(random: &mut Random, id: Value, later: &[String]) -> Row {
    let mut row = vec![id, any_number(random), any_name(random), any_note(random)];
    row.extend(later.iter().map(|name| any_later(random, name)));
    row
}

fn any_later(random: &mut Random, name: &str) -> Value {
    match name.starts_with('n') {
        true => any_number(random),
        false => any_note(random),
    }
}

/// The row with some columns changed, the primary key not often.
pub(crate) fn changed_row(random: &mut Random, old: &Row, later: &[String]) -> Row {
    let mut row = old.clone();
    if random.below(4) == 0 {
        row[column::ID] = Value::Int(random.below(IDS) as i64);
    }
    let columns = [any_number, any_name, any_note];
    for (position, any) in columns.into_iter().enumerate() {
        if random.below(2) == 0 {
            row[column::NUMBER + position] = any(random);
        }
    }
    for (position, name) in later.iter().enumerate() {
        if random.below(3) == 0 {
            row[column::FIRST_LATER + position] = any_later(random, name);
        }
    }
    row
}

/// Mostly different, so that a unique index does not refuse all loads.
fn any_number(random: &mut Random) -> Value {
    match random.below(4) {
        0 => Value::Null,
        _ => Value::Int(random.below(1 << 24) as i64),
    }
}

fn any_name(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Null,
        _ => {
            let padding = "x".repeat(random.below(70) as usize);
            Value::Text(format!("{}{padding}", random.below(300)))
        }
    }
}

/// Some are too long for their row, and go to the tree of long values.
fn any_note(random: &mut Random) -> Value {
    let bytes = match random.below(20) {
        0..=13 => return Value::Null,
        14..=18 => random.below(300),
        _ => random.below(9_000),
    };
    let letter = (b'a' + random.below(26) as u8) as char;
    Value::Text(letter.to_string().repeat(bytes as usize))
}
