//! SHOW CREATE TABLE: the statement that makes a table, in MySQL's layout.

use std::fmt::{self, Write};

use sheaf_types::Collation;
use sheaf_types::text::quoting::quoted_name;

use crate::definition::default_text::DefaultText;
use crate::definition::schema::{Column, Index, TableDefinition};

/// The CREATE TABLE statement of a table. `auto_increment`: the next value that it gives out, if that is to be said.
pub fn create_statement(definition: &TableDefinition, auto_increment: Option<u64>) -> String {
    let mut statement = String::new();
    // Writing to a String cannot fail.
    let _ = write_statement(&mut statement, definition, auto_increment);
    statement
}

fn write_statement(
    out: &mut String,
    definition: &TableDefinition,
    auto_increment: Option<u64>,
) -> fmt::Result {
    let kind = match definition.is_temporary() {
        true => "TEMPORARY TABLE",
        false => "TABLE",
    };
    writeln!(out, "CREATE {kind} {} (", quoted_name(&definition.name))?;
    for (i, column) in definition.named_columns().enumerate() {
        if i > 0 {
            out.push_str(",\n");
        }
        write_column(out, definition, column)?;
    }
    for index in definition.indexes() {
        out.push_str(",\n");
        write_index(out, definition, index)?;
    }
    for foreign_key in &definition.foreign_keys {
        write!(out, ",\n  {}", foreign_key.clause(definition))?;
    }
    for check in &definition.checks {
        write!(out, ",\n  {}", check.clause())?;
    }
    out.push_str("\n) ENGINE=Sheaf");
    // 1 is where every table begins.
    if let Some(next @ 2..) = auto_increment {
        write!(out, " AUTO_INCREMENT={next}")?;
    }
    write!(
        out,
        " DEFAULT CHARSET={}",
        definition.collation.character_set()
    )?;
    // The character set binary has no other collation.
    if definition.collation != Collation::Binary {
        write!(out, " COLLATE={}", definition.collation.name())?;
    }
    if !definition.comment.is_empty() {
        write!(out, " COMMENT={}", text_literal(&definition.comment))?;
    }
    Ok(())
}

fn write_column(out: &mut String, definition: &TableDefinition, column: &Column) -> fmt::Result {
    write!(
        out,
        "  {} {}",
        quoted_name(&column.name),
        column.ty.definition_text()
    )?;
    if let Some(collation) = column.ty.collation()
        && collation != definition.collation
    {
        match collation {
            Collation::Binary => out.push_str(" CHARACTER SET binary"),
            other => {
                let (set, collation) = (other.character_set(), other.name());
                write!(out, " CHARACTER SET {set} COLLATE {collation}")?;
            }
        }
    }
    if let Some(generated) = &column.generated {
        let (expression, kind) = (&generated.expression, generated.kind.name());
        write!(out, " GENERATED ALWAYS AS ({expression}) {kind}")?;
    }
    if !column.nullable {
        out.push_str(" NOT NULL");
    } else if column.ty.follows_time_zone() {
        out.push_str(" NULL");
    }
    match column.default_text() {
        Some(DefaultText::CurrentTimestamp(text) | DefaultText::Literal(text)) => {
            write!(out, " DEFAULT {text}")?;
        }
        Some(DefaultText::Expression(text)) => write!(out, " DEFAULT ({text})")?,
        Some(DefaultText::Value(text)) => write!(out, " DEFAULT {}", text_literal(&text))?,
        Some(DefaultText::Null) | None => {
            let silent =
                !column.nullable || column.ty.long_bytes().is_some() || column.generated.is_some();
            if !silent {
                out.push_str(" DEFAULT NULL");
            }
        }
    }
    if column.on_update_current_timestamp {
        write!(out, " ON UPDATE {}", column.current_timestamp())?;
    }
    if column.auto_increment {
        out.push_str(" AUTO_INCREMENT");
    }
    if column.invisible {
        out.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        write!(out, " COMMENT {}", text_literal(&column.comment))?;
    }
    Ok(())
}

fn write_index(out: &mut String, definition: &TableDefinition, index: &Index) -> fmt::Result {
    if index.primary {
        out.push_str("  PRIMARY KEY (");
    } else {
        let unique = if index.unique { "UNIQUE " } else { "" };
        write!(out, "  {unique}KEY {} (", quoted_name(&index.name))?;
    }
    for (i, part) in index.parts.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        match definition.key_expression(part) {
            Some(expression) => write!(out, "({expression})")?,
            None => out.push_str(&quoted_name(&definition.columns[part.column].name)),
        }
        if let Some(length) = part.prefix_length {
            write!(out, "({length})")?;
        }
        if part.descending {
            out.push_str(" DESC");
        }
    }
    out.push(')');
    if !index.comment.is_empty() {
        write!(out, " COMMENT {}", text_literal(&index.comment))?;
    }
    if index.invisible {
        out.push_str(" /*!80000 INVISIBLE */");
    }
    Ok(())
}

/// A text in quotes, with MySQL's escapes.
pub fn text_literal(text: &str) -> String {
    let mut literal = String::from("'");
    for character in text.chars() {
        match character {
            '\'' => literal.push_str("''"),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\0' => literal.push_str("\\0"),
            other => literal.push(other),
        }
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use sheaf_types::{ColumnType, Value};

    use super::*;
    use crate::catalog::definition_check::resolve_table;
    use crate::definition::schema::{CreateTable, DefaultValue, IndexPartSpec, IndexSpec};

    #[test]
    fn the_statement_is_laid_out_as_mysqls() {
        let column = |name: &str, ty: &str, nullable| {
            Column::new(name, ColumnType::parse(ty).unwrap(), nullable)
        };
        let mut id = column("id", "int unsigned", false);
        id.auto_increment = true;
        let mut kind = column("kind", "enum('a','it''s')", false);
        kind.default = Some(DefaultValue::Value(Value::Text("A".into())));
        let mut price = column("price", "decimal(15,2)", true);
        price.default = Some(DefaultValue::Value(Value::Int(1)));
        price.comment = "net".into();
        let mut at = column("at", "timestamp(3)", false);
        at.default = Some(DefaultValue::CurrentTimestamp);
        at.on_update_current_timestamp = true;
        let columns = vec![
            id,
            column("name", "varchar(25) collate utf8mb4_bin", true),
            kind,
            price,
            at,
            column("no`te", "text", true),
        ];
        let mut request = CreateTable::new("d", "t", columns);
        request.primary_key = Some(vec![IndexPartSpec::column("id")]);
        let part = |name: &str, prefix_length, descending| IndexPartSpec {
            prefix_length,
            descending,
            ..IndexPartSpec::column(name)
        };
        let spec = |name: &str, parts, unique| IndexSpec {
            name: Some(name.into()),
            parts,
            unique,
            comment: String::new(),
            invisible: false,
        };
        request.indexes = vec![
            spec(
                "by_note",
                vec![part("no`te", Some(5), false), part("price", None, true)],
                false,
            ),
            spec("by_name", vec![part("name", None, false)], true),
        ];
        let definition = resolve_table(1, request).unwrap();
        assert_eq!(
            create_statement(&definition, None),
            "CREATE TABLE `t` (\n  \
               `id` int unsigned NOT NULL AUTO_INCREMENT,\n  \
               `name` varchar(25) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,\n  \
               `kind` enum('a','it''s') NOT NULL DEFAULT 'a',\n  \
               `price` decimal(15,2) DEFAULT '1.00' COMMENT 'net',\n  \
               `at` timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),\n  \
               `no``te` text,\n  \
               PRIMARY KEY (`id`),\n  \
               UNIQUE KEY `by_name` (`name`),\n  \
               KEY `by_note` (`no``te`(5),`price` DESC)\n\
             ) ENGINE=Sheaf DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
        );
    }
}
