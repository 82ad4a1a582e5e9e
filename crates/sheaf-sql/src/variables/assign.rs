//! Assignments to variables: by statements, by a configuration, and what follows from them.

use super::{
    DEFINITIONS, Kind, Lives, NewValue, Truncated, VariableValue, Variables, character_set_of,
    collation, default_collation, position, unheeded,
};
use crate::error::{Result, SqlError};
use crate::parser::statement::Scope;

/// Assigns to a session's or the global variables, as the scope of the SET and of the variable say.
///
/// # Errors
/// 1193, 1228, 1229, 1231, 1232, 1238.
pub fn assign(
    session: &mut Variables,
    global: &mut Variables,
    scope: Scope,
    name: &str,
    new: &NewValue,
) -> Result<Option<Truncated>> {
    let position = position(name)?;
    let definition = &DEFINITIONS[position];
    let to_global = match (scope, definition.lives) {
        (_, Lives::ReadOnly) => return Err(SqlError::read_only_variable(definition.name)),
        (Scope::Global, Lives::Session) => return Err(SqlError::local_variable(definition.name)),
        (Scope::Default | Scope::Session, Lives::Global) => {
            return Err(SqlError::global_variable(definition.name));
        }
        (Scope::Global, _) => true,
        (Scope::Default | Scope::Session, _) => false,
    };
    let target = if to_global {
        &mut *global
    } else {
        &mut *session
    };
    if *new == NewValue::Default {
        // A session's default is the global value; the global default is the compiled one.
        let value = if to_global || definition.lives == Lives::Session {
            definition.default_value()
        } else {
            global.values.at(position).clone()
        };
        let target = if to_global { global } else { session };
        target.assign(position, value);
        follow(target, definition.name);
        follow_read_only(target, definition.name);
        return Ok(None);
    }
    let (value, truncated) = definition.convert(new, target.values.at(position))?;
    unheeded::check(definition, &value)?;
    target.assign(position, value);
    follow(target, definition.name);
    follow_read_only(target, definition.name);
    Ok(truncated)
}

/// Assigns to the global variables.
///
/// # Errors
/// As [`assign`].
pub(crate) fn assign_global(
    session: &mut Variables,
    global: &mut Variables,
    name: &str,
    new: &NewValue,
) -> Result<()> {
    assign(session, global, Scope::Global, name, new).map(drop)
}

/// The name of a variable as the table has it, if there is one of this name.
pub(crate) fn known_name(name: &str) -> Option<&'static str> {
    position(name)
        .ok()
        .map(|position| DEFINITIONS[position].name)
}

/// Whether no statement can set a variable. Error 1193.
pub(crate) fn is_read_only(name: &str) -> Result<bool> {
    Ok(DEFINITIONS[position(name)?].lives == Lives::ReadOnly)
}

/// The value that a text of a configuration stands for, or one that SHOW VARIABLES prints: a number where the variable
/// may have one. Error 1193.
pub(crate) fn of_configuration(name: &str, text: &str) -> Result<NewValue> {
    let is_text = match DEFINITIONS[position(name)?].kind {
        Kind::Text | Kind::CharacterSet | Kind::Collation | Kind::TimeZone => true,
        Kind::OptimizerSwitch => true,
        Kind::Choice(words) => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
        Kind::Bool | Kind::Integer { .. } | Kind::Float { .. } => false,
        Kind::Flags(_) | Kind::SqlMode | Kind::Locale => false,
    };
    let as_text = || NewValue::Text(text.to_string());
    if is_text {
        return Ok(as_text());
    }
    Ok(match (text.parse::<i128>(), text.parse::<f64>()) {
        (Ok(number), _) => NewValue::Integer(number),
        (Err(_), Ok(number)) if number.is_finite() => NewValue::Float(number),
        _ => as_text(),
    })
}

/// Where not even privileges allow to write, their lack does not either.
fn follow_read_only(variables: &mut Variables, changed: &str) {
    if changed == "super_read_only" && variables.boolean("super_read_only") {
        variables.set_internally("read_only", VariableValue::Bool(true));
    } else if changed == "read_only" && !variables.boolean("read_only") {
        variables.set_internally("super_read_only", VariableValue::Bool(false));
    }
}

/// The character set of a connection and its collation follow each other, as do a database's.
fn follow(variables: &mut Variables, changed: &str) {
    for (set, collation_name) in [
        ("character_set_connection", "collation_connection"),
        ("character_set_database", "collation_database"),
        ("character_set_server", "collation_server"),
    ] {
        if changed == set {
            let default = default_collation(variables.text(set)).to_string();
            variables.set_internally(collation_name, VariableValue::Text(default));
        } else if changed == collation_name
            && let Ok((_, name)) = collation(variables.text(collation_name))
        {
            let character_set = character_set_of(name).to_string();
            variables.set_internally(set, VariableValue::Text(character_set));
        }
    }
}

/// A fault of a configuration, with what it is about.
pub(crate) fn said_of(name: &str, value: &str, error: &SqlError) -> String {
    format!("{name} = {value}: {error}")
}
