//! Some rows of the input: `fetch` of them behind the first `skip`.

use super::{Operator, Relation};

#[derive(Clone, Debug)]
pub struct Limit {
    pub input: Box<Relation>,
    pub skip: u64,
    /// `None`: all the others.
    pub fetch: Option<u64>,
}

impl Relation {
    pub fn limit(self, skip: u64, fetch: Option<u64>) -> Relation {
        match (skip, fetch) {
            (0, None) => self,
            _ => Operator::Limit(Limit {
                input: Box::new(self),
                skip,
                fetch,
            })
            .into(),
        }
    }
}
