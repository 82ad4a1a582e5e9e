//! One more column for each function over a window.

use super::{Operator, Relation};
use crate::column::ColumnId;
use crate::scalar::WindowFunction;

#[derive(Clone, Debug)]
pub struct Window {
    pub input: Box<Relation>,
    pub functions: Vec<(ColumnId, WindowFunction)>,
}

impl Relation {
    pub fn window(self, functions: Vec<(ColumnId, WindowFunction)>) -> Relation {
        match functions.is_empty() {
            true => self,
            false => Operator::Window(Window {
                input: Box::new(self),
                functions,
            })
            .into(),
        }
    }
}
