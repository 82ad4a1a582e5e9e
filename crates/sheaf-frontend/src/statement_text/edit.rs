//! A part of a statement's text with other words in some places: the query of a view as it is kept.

use std::ops::Range;

use sqlparser::tokenizer::Location;

use super::Place;

/// Other words in the place of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub place: Range<Location>,
    pub words: String,
}

/// The part of `text` at `place`, with the edits that lie in it. Of edits of one place, the first counts.
pub fn edited(text: &str, place: Range<Location>, mut edits: Vec<Edit>) -> String {
    let mut here = Place {
        rest: text.chars(),
        length: text.len(),
        location: Location { line: 1, column: 1 },
    };
    let mut from = here.move_to(place.start);
    let mut out = String::new();
    edits.sort_by_key(|edit| edit.place.start);
    edits.dedup_by(|later, edit| later.place == edit.place);
    for edit in edits {
        if edit.place.start < here.location || place.end < edit.place.end {
            continue;
        }
        let start = here.move_to(edit.place.start);
        out.push_str(&text[from..start]);
        out.push_str(&edit.words);
        from = here.move_to(edit.place.end);
    }
    let end = here.move_to(place.end);
    out.push_str(&text[from..end]);
    out.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64, from: u64, to: u64) -> Range<Location> {
        Location { line, column: from }..Location { line, column: to }
    }

    #[test]
    fn words_take_the_places_of_others() {
        let text = "CREATE VIEW v AS SELECT *,\n é FROM t;";
        let edit = |place, words: &str| Edit {
            place,
            words: words.to_string(),
        };
        let whole = Location {
            line: 1,
            column: 18,
        }..Location {
            line: 2,
            column: 10,
        };
        let edits = vec![edit(at(2, 9, 9), "`d`."), edit(at(1, 25, 26), "`t`.`a`")];
        assert_eq!(
            edited(text, whole.clone(), edits),
            "SELECT `t`.`a`,\n é FROM `d`.t"
        );
        let twice = vec![edit(at(1, 25, 26), "a"), edit(at(1, 25, 26), "a")];
        assert_eq!(edited(text, whole, twice), "SELECT a,\n é FROM t");
    }
}
