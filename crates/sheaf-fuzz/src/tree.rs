//! A statement as a tree of text, which knows how it may become smaller.
//!
//! The generator writes SQL, and nobody else needs to understand it. But a statement that finds a difference is too
//! long to read. So the tree keeps what a reader would try to leave out: items of lists, optional clauses, and
//! expressions that a part of themselves could replace. A smaller statement need not be valid. Both servers refuse one
//! that is not, which is no difference, so the reducer goes on with another.

/// SQL text with the ways in which it may shrink.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Text that stays.
    Text(String),
    /// Parts, one after the other.
    Sequence(Vec<Tree>),
    /// Items that may go, as long as `least` of them stay.
    List {
        separator: &'static str,
        items: Vec<Tree>,
        least: usize,
    },
    /// A clause that may go as a whole.
    Optional(Box<Tree>),
    /// An expression, and others that could stand in its place.
    Choice(Box<Tree>, Vec<Tree>),
}

/// Text that stays.
pub fn text(text: impl Into<String>) -> Tree {
    Tree::Text(text.into())
}

/// Builds a sequence of parts that are texts or trees.
#[macro_export]
macro_rules! sequence {
    ($($part:expr),* $(,)?) => {
        $crate::tree::Tree::Sequence(vec![$($crate::tree::Tree::from($part)),*])
    };
}

impl From<&str> for Tree {
    fn from(value: &str) -> Tree {
        text(value)
    }
}

impl From<String> for Tree {
    fn from(value: String) -> Tree {
        text(value)
    }
}

impl Tree {
    /// The statement as SQL.
    pub fn sql(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Tree::Text(text) => out.push_str(text),
            Tree::Sequence(parts) => parts.iter().for_each(|part| part.write(out)),
            Tree::List {
                separator, items, ..
            } => {
                for (number, item) in items.iter().enumerate() {
                    if number > 0 {
                        out.push_str(separator);
                    }
                    item.write(out);
                }
            }
            Tree::Optional(inner) | Tree::Choice(inner, _) => inner.write(out),
        }
    }

    /// The trees that are one step smaller, the smallest first.
    pub fn reductions(&self) -> Vec<Tree> {
        match self {
            Tree::Text(_) => Vec::new(),
            Tree::Sequence(parts) => in_one_of(parts, Tree::Sequence),
            Tree::List {
                separator,
                items,
                least,
            } => {
                let list = |items: Vec<Tree>| Tree::List {
                    separator,
                    items,
                    least: *least,
                };
                let mut smaller = Vec::new();
                if items.len() > *least {
                    for number in 0..items.len() {
                        let mut left = items.clone();
                        left.remove(number);
                        smaller.push(list(left));
                    }
                }
                smaller.extend(in_one_of(items, list));
                smaller
            }
            Tree::Optional(inner) => {
                let mut smaller = vec![text("")];
                smaller.extend(
                    inner
                        .reductions()
                        .into_iter()
                        .map(|inner| Tree::Optional(Box::new(inner))),
                );
                smaller
            }
            Tree::Choice(inner, simpler) => {
                let mut smaller = simpler.clone();
                smaller.extend(
                    inner
                        .reductions()
                        .into_iter()
                        .map(|inner| Tree::Choice(Box::new(inner), simpler.clone())),
                );
                smaller
            }
        }
    }
}

/// The lists in which one of `parts` is a step smaller, made into trees by `make`.
fn in_one_of(parts: &[Tree], make: impl Fn(Vec<Tree>) -> Tree) -> Vec<Tree> {
    let mut smaller = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        for reduced in part.reductions() {
            let mut parts = parts.to_vec();
            parts[number] = reduced;
            smaller.push(make(parts));
        }
    }
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_drop_items_clauses_and_operators() {
        let sum = Tree::Choice(Box::new(text("a+1")), vec![text("a")]);
        let tree = sequence![
            "select ",
            Tree::List {
                separator: ", ",
                items: vec![sum, text("b")],
                least: 1,
            },
            " from t",
            Tree::Optional(Box::new(text(" where a"))),
        ];
        assert_eq!(tree.sql(), "select a+1, b from t where a");
        let smaller: Vec<String> = tree.reductions().iter().map(Tree::sql).collect();
        assert_eq!(
            smaller,
            [
                "select b from t where a",
                "select a+1 from t where a",
                "select a, b from t where a",
                "select a+1, b from t",
            ]
        );
    }
}
