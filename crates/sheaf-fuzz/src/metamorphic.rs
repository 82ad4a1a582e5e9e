//! Sheaf against itself: statements whose answers follow from each other's.
//!
//! A statement that fails proves nothing, unless no statement may fail so.

use std::collections::BTreeMap;

use crate::answer::Answer;
use crate::query::{Generator, Parts};

/// A broken rule: the statements, and what is wrong with their answers.
pub struct Broken {
    pub statements: Vec<String>,
    pub what: String,
}

/// Ternary logic partitioning and NoREC on one random query. `ask` is how Sheaf is asked.
pub fn check<E>(
    generator: &mut Generator<'_>,
    ask: &mut impl FnMut(&str) -> Result<Answer, E>,
) -> Result<Option<Broken>, E> {
    let parts = generator.parts();
    match partitioned(&parts, ask)? {
        Some(broken) => Ok(Some(broken)),
        None => counted(&parts, ask),
    }
}

/// Answers to `statements`, or the first that is a fault by itself.
fn answers<E>(
    statements: &[String],
    ask: &mut impl FnMut(&str) -> Result<Answer, E>,
) -> Result<Result<Vec<Answer>, Broken>, E> {
    let mut answers = Vec::new();
    for sql in statements {
        let answer = ask(sql)?;
        if answer.fault().is_some() {
            return Ok(Err(Broken {
                what: answer.summary(),
                statements: vec![sql.clone()],
            }));
        }
        answers.push(answer);
    }
    Ok(Ok(answers))
}

/// Rows for which the condition is true, false and NULL are all rows.
fn partitioned<E>(
    parts: &Parts,
    ask: &mut impl FnMut(&str) -> Result<Answer, E>,
) -> Result<Option<Broken>, E> {
    let Parts {
        items,
        from,
        condition,
    } = parts;
    let all = format!("select {items}{from}");
    let statements = [
        all.clone(),
        format!("{all} where {condition}"),
        format!("{all} where not {condition}"),
        format!("{all} where ({condition}) is null"),
    ];
    let answers = match answers(&statements, ask)? {
        Ok(answers) => answers,
        Err(broken) => return Ok(Some(broken)),
    };
    let mut found: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for (number, answer) in answers.into_iter().enumerate() {
        let times = if number == 0 { 1 } else { -1 };
        if count(&mut found, answer, times).is_none() {
            return Ok(None);
        }
    }
    let wrong: Vec<String> = found
        .iter()
        .filter(|(_, n)| **n != 0)
        .take(4)
        .map(|(row, n)| format!("{n:+} {}", row.join(" | ")))
        .collect();
    if wrong.is_empty() {
        return Ok(None);
    }
    Ok(Some(Broken {
        what: format!(
            "rows that all have and the three parts lack: {}",
            wrong.join(" ; ")
        ),
        statements: statements.to_vec(),
    }))
}

/// Adds the rows of an answer; `None` when there are none because it failed.
fn count(found: &mut BTreeMap<Vec<String>, i64>, answer: Answer, times: i64) -> Option<()> {
    let Answer::Rows(rows) = answer else {
        return None;
    };
    for row in rows {
        *found.entry(row).or_default() += times;
    }
    Some(())
}

/// WHERE finds as many rows as the condition is true for in the select list.
fn counted<E>(
    parts: &Parts,
    ask: &mut impl FnMut(&str) -> Result<Answer, E>,
) -> Result<Option<Broken>, E> {
    let Parts {
        from, condition, ..
    } = parts;
    let statements = [
        format!("select count(*){from} where {condition}"),
        format!("select coalesce(sum(({condition}) is true), 0){from}"),
    ];
    let answers = match answers(&statements, ask)? {
        Ok(answers) => answers,
        Err(broken) => return Ok(Some(broken)),
    };
    Ok(match &answers[..] {
        [one @ Answer::Rows(rows), other @ Answer::Rows(others)] if rows != others => {
            Some(Broken {
                what: format!("{} against {}", one.summary(), other.summary()),
                statements: statements.to_vec(),
            })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use sheaf_storage::Random;

    use super::*;
    use crate::schema::Schema;

    /// What is found when the number of the statement, from 0, decides the answer.
    fn found(answer: impl Fn(usize) -> Answer) -> Option<Broken> {
        let mut random = Random::new(1);
        let schema = Schema::new(&mut random, true);
        let mut generator = Generator::new(&mut random, &schema);
        let mut asked = 0;
        let mut ask = |_: &str| -> Result<Answer, ()> {
            asked += 1;
            Ok(answer(asked - 1))
        };
        check(&mut generator, &mut ask).expect("it asks")
    }

    fn rows(rows: &[&str]) -> Answer {
        Answer::Rows(rows.iter().map(|row| vec![(*row).to_owned()]).collect())
    }

    #[test]
    fn a_row_that_no_part_has_is_found() {
        let broken = found(|number| match number {
            0 => rows(&["a", "b"]),
            1 => rows(&["a"]),
            _ => rows(&[]),
        });
        assert_eq!(broken.expect("found").statements.len(), 4);
    }

    #[test]
    fn a_fault_of_any_statement_is_found() {
        for at in 0..6 {
            let broken = found(|number| match number == at {
                true => Answer::Lost("gone".to_owned()),
                false => rows(&[]),
            });
            assert_eq!(broken.expect("found").what, "connection lost: gone");
        }
        assert!(found(|_| rows(&[])).is_none());
    }
}
