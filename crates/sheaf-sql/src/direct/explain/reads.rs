//! How direct plans read the tables that they begin with, for `Select_scan` and `Select_range`. All others are found by
//! their keys.

use sheaf_optimizer::Reads;

use crate::direct::access::Access;
use crate::direct::join::{Join, JoinedWay};
use crate::direct::rows::row_source::Derived;
use crate::direct::{Action, DirectPlan};

impl DirectPlan {
    /// Of the statement and its subqueries, each as often as it is written.
    pub(in crate::direct) fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        self.add_reads(&mut reads);
        reads
    }

    fn add_reads(&self, reads: &mut Reads) {
        self.action.add_reads(reads);
        for subquery in self.subqueries.iter().chain(&self.list) {
            subquery.plan.add_reads(reads);
        }
    }
}

impl Action {
    fn add_reads(&self, reads: &mut Reads) {
        match self {
            Action::Read(read, _) => read.access.add_read(reads),
            Action::Join(join) => join.add_reads(reads),
            Action::OverRows(query) => query.rows.add_reads(reads),
            Action::Union(union) => union.derived.add_reads(reads),
            Action::InsertSelect(insert) => insert.query.add_reads(reads),
            Action::IntoVariables(into) => into.query.add_reads(reads),
            Action::SetVariable(set) => set.query.add_reads(reads),
            Action::LockFound(lock) => lock.find.add_reads(reads),
            Action::Constants(_)
            | Action::Update(..)
            | Action::Delete(..)
            | Action::ChangeFound(_)
            | Action::Insert(_) => {}
        }
    }
}

impl Derived {
    fn add_reads(&self, reads: &mut Reads) {
        for part in &self.parts {
            part.action.add_reads(reads);
        }
    }
}

impl Join {
    fn add_reads(&self, reads: &mut Reads) {
        for derived in self.derived() {
            derived.add_reads(reads);
        }
        match self.tables.first().map(|first| &first.way) {
            // Which of several is taken is the same but for ranges of the same kind.
            Some(JoinedWay::Keys(_, accesses)) => {
                if let Some(access) = accesses.first() {
                    access.add_read(reads);
                }
            }
            Some(JoinedWay::Walk(_, access, _) | JoinedWay::Small(_, access)) => {
                access.add_read(reads);
            }
            Some(JoinedWay::First(..)) => reads.ranges += 1,
            Some(JoinedWay::Rows(_)) => reads.scans += 1,
            None => {}
        }
    }
}

impl Access {
    fn add_read(&self, reads: &mut Reads) {
        if self.is_whole() {
            reads.scans += 1;
        } else if self.is_range() {
            reads.ranges += 1;
        }
    }
}
