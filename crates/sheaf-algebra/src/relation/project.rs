//! A list of columns: what is computed, and what is passed on.

use super::{Operator, Relation};
use crate::column::ColumnId;
use crate::scalar::Scalar;

#[derive(Clone, Debug)]
pub struct Project {
    pub input: Box<Relation>,
    pub items: Vec<Item>,
    /// It is a derived table that is planned by itself.
    pub derived: Option<Derived>,
}

/// A derived table by its name. Its columns have their origin in this reference.
#[derive(Clone, Debug)]
pub struct Derived {
    pub reference: u32,
    pub name: String,
}

/// A column of the list. One that is passed on has the id that it has below.
#[derive(Clone, Debug)]
pub struct Item {
    pub column: ColumnId,
    pub value: Scalar,
}

impl Item {
    pub fn is_passed_on(&self) -> bool {
        self.value.as_column() == Some(self.column)
    }
}

impl Project {
    /// Items read or assign user variables that the statement assigns.
    pub fn has_variables(&self) -> bool {
        self.items.iter().any(|item| item.value.is_of_variables())
    }
}

impl Relation {
    pub fn project(self, items: Vec<Item>) -> Relation {
        Operator::Project(Project {
            input: Box::new(self),
            items,
            derived: None,
        })
        .into()
    }
}
