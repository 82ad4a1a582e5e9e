//! Foreign keys that rows come to keep [while others change rows](crate::build::build_beside) of child and parents.
//!
//! A foreign key holds at a snapshot if each of the child's rows finds a parent there. Nobody is kept from breaking it
//! before it is entered. So it is looked for at each snapshot of the build:
//!
//! ```text
//!   S0: all rows of the child            -> each has a parent at S0
//!   S1: values that rows of the child got,
//!       and values that parents lost    -> each has a parent at S1, or no child
//!   the last moment: the same for what came last, while nobody changes child or parents -> the key is entered
//! ```
//!
//! If it held at S0, it can only be broken at S1 by a row of the child with other values, or by a row of the parent
//! that has lost its values. All of these rows are noted. A value is judged when the whole round has been brought, by
//! the entries of both indexes at S1: child and parent may have come, or gone, in any order between two snapshots.
//!
//! Only what committed is judged. A missing parent that is reported was missing at one of the snapshots, also if it has
//! come since.
//!
//! Entries of an index that is there are read at the snapshot. A new index has no past: its newest entries are those
//! of the snapshot that the build has brought it to.

use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, ReadAhead, ReadView, Tree, TreeId};
use sheaf_types::Value;

use crate::build::build_beside::{RowChange, SeenRow};
use crate::build::external_sort::ExternalSort;
use crate::definition::foreign_key::referenced_positions;
use crate::definition::schema::ForeignKey;
use crate::error::{Result, TableError};
use crate::progress::Progress;
use crate::table::Table;
use crate::table::reference_lookup::Lookup;

/// Leaves that the look at all rows reads ahead.
const READ_AHEAD_PAGES: usize = 64;

/// A foreign key that is new to rows.
pub(crate) struct NewReference {
    pub(crate) key: ForeignKey,
    /// With the indexes that are built for it. It is its own parent where the key refers to its own table.
    pub(crate) child: Arc<Table>,
    pub(crate) parent: Arc<Table>,
    /// The parent's number among the tables that are watched; 0: the child.
    pub(crate) parent_number: usize,
}

/// All of a statement.
pub(crate) struct NewReferences {
    references: Vec<Reference>,
    /// Trees that the build makes.
    new_trees: Vec<TreeId>,
}

struct Reference {
    new: NewReference,
    parent_columns: Vec<usize>,
    /// Columns of either table that the key does not have.
    left_out_of_child: Vec<usize>,
    left_out_of_parent: Vec<usize>,
}

impl NewReferences {
    pub(crate) fn new(references: Vec<NewReference>, new_trees: &[TreeId]) -> NewReferences {
        let without = |table: &Table, columns: &[usize]| {
            let all = 0..table.definition.columns.len();
            all.filter(|column| !columns.contains(column)).collect()
        };
        let reference = |new: NewReference| {
            let columns = referenced_positions(&new.key, &new.parent.definition);
            let parent_columns = columns.unwrap_or_default();
            Reference {
                left_out_of_child: without(&new.child, &new.key.columns),
                left_out_of_parent: without(&new.parent, &parent_columns),
                parent_columns,
                new,
            }
        };
        NewReferences {
            references: references.into_iter().map(reference).collect(),
            new_trees: new_trees.to_vec(),
        }
    }

    /// Looks up the parents of all rows that a view sees. Returns how many rows there are, if there are such keys.
    ///
    /// # Errors
    /// `NoParentRow`, `Interrupted`.
    pub(crate) fn check_all(&self, view: &ReadView, progress: &dyn Progress) -> Result<u64> {
        let mut rows = 0;
        for reference in &self.references {
            rows = self.check_rows(reference, view, progress)?;
        }
        Ok(rows)
    }

    fn check_rows(
        &self,
        reference: &Reference,
        view: &ReadView,
        progress: &dyn Progress,
    ) -> Result<u64> {
        let child = &reference.new.child;
        progress.begin(
            &format!("testing {}", child.definition.name),
            Some(child.row_count_estimate()),
        );
        let mut cursor = child.clustered.scan_at(
            view.clone(),
            KeyRange::all(),
            Direction::Forward,
            ReadAhead::Pages(READ_AHEAD_PAGES),
        );
        let mut rows = 0;
        while let Some(leaf) = cursor.next_leaf()? {
            if progress.is_cancelled() {
                return Err(TableError::Interrupted);
            }
            rows += leaf.len() as u64;
            for entry in 0..leaf.len() {
                let row = SeenRow {
                    view,
                    bytes: leaf.value(entry),
                };
                let Some(values) = reference.child_values(row)? else {
                    continue;
                };
                let parent = reference.parent_of(&values);
                let found = match parent {
                    Some(parent) => self.finds(parent.tree, &parent.prefix, view)?,
                    None => false,
                };
                if !found {
                    return Err(reference.violated());
                }
            }
        }
        Ok(rows)
    }

    /// A row of a watched table has changed: values that are to be judged when the round ends go to `later`. Keys of
    /// the sort begin with numbers from `first_number` on.
    ///
    /// # Errors
    /// `NoParentRow` for a value that no parent can have.
    pub(crate) fn note(
        &self,
        change: &RowChange<'_>,
        first_number: usize,
        later: &mut ExternalSort,
    ) -> Result<()> {
        for (number, reference) in (first_number..).zip(&self.references) {
            let mut suspects = Vec::new();
            if change.table == 0
                && let Some(after) = change.after
            {
                let before = change.before.map(|row| reference.child_values(row));
                let after = reference.child_values(after)?;
                if before.transpose()?.flatten() != after {
                    suspects.extend(after.map(|values| (values, true)));
                }
            }
            if change.table == reference.new.parent_number
                && let Some(before) = change.before
            {
                let after = change.after.map(|row| reference.parent_values(row));
                let before = reference.parent_values(before)?;
                if after.transpose()?.flatten() != before {
                    suspects.extend(before.map(|values| (values, false)));
                }
            }
            for (values, is_of_child) in suspects {
                let (parent, child) = (reference.parent_of(&values), reference.child_of(&values));
                match (parent, child) {
                    (Some(parent), Some(child)) => {
                        let mut suspect = (number as u16).to_be_bytes().to_vec();
                        suspect.extend_from_slice(&parent.prefix);
                        later.push(&suspect, &child.prefix)?;
                    }
                    (None, _) if is_of_child => return Err(reference.violated()),
                    // The other table cannot have such a value.
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Judges a value that was noted, by what a view sees. `number`: as it was noted, without `first_number`.
    ///
    /// # Errors
    /// `NoParentRow`.
    pub(crate) fn judge(
        &self,
        number: usize,
        (parent_prefix, child_prefix): (&[u8], &[u8]),
        view: &ReadView,
    ) -> Result<()> {
        let Some(reference) = self.references.get(number) else {
            return Ok(());
        };
        let parents = reference.parent_tree();
        let children = reference.child_tree();
        let has_parent = match parents {
            Some(parents) => self.finds(parents, parent_prefix, view)?,
            None => false,
        };
        if has_parent {
            return Ok(());
        }
        let has_child = match children {
            Some(children) => self.finds(children, child_prefix, view)?,
            None => false,
        };
        match has_child {
            true => Err(reference.violated()),
            false => Ok(()),
        }
    }

    /// Whether a tree has an entry that begins so.
    fn finds(&self, tree: &Arc<Tree>, prefix: &[u8], view: &ReadView) -> Result<bool> {
        let view = match self.new_trees.contains(&tree.id()) {
            true => ReadView::newest(),
            false => view.clone(),
        };
        let range = KeyRange::prefix(prefix);
        let mut entries = tree.scan_at(view, range, Direction::Forward, ReadAhead::Off);
        Ok(entries.next_leaf()?.is_some())
    }
}

impl Reference {
    /// The values of a row that refer to a parent; `None`: one of them is NULL, so it refers to none.
    fn child_values(&self, row: SeenRow<'_>) -> Result<Option<Vec<Value>>> {
        let NewReference { child, key, .. } = &self.new;
        values_of(child, row, &key.columns, &self.left_out_of_child)
    }

    /// The values of a row that children may refer to.
    fn parent_values(&self, row: SeenRow<'_>) -> Result<Option<Vec<Value>>> {
        let columns = &self.parent_columns;
        values_of(&self.new.parent, row, columns, &self.left_out_of_parent)
    }

    fn parent_of(&self, values: &[Value]) -> Option<Lookup<'_>> {
        Lookup::new(&self.new.parent, &self.parent_columns, values.iter())
    }

    fn child_of(&self, values: &[Value]) -> Option<Lookup<'_>> {
        Lookup::new(&self.new.child, &self.new.key.columns, values.iter())
    }

    fn parent_tree(&self) -> Option<&Arc<Tree>> {
        let lookup = Lookup::new(&self.new.parent, &self.parent_columns, std::iter::empty());
        lookup.map(|lookup| lookup.tree)
    }

    fn child_tree(&self) -> Option<&Arc<Tree>> {
        let lookup = Lookup::new(&self.new.child, &self.new.key.columns, std::iter::empty());
        lookup.map(|lookup| lookup.tree)
    }

    fn violated(&self) -> TableError {
        TableError::NoParentRow {
            constraint: self.new.key.described(&self.new.child.definition),
        }
    }
}

fn values_of(
    table: &Table,
    row: SeenRow<'_>,
    columns: &[usize],
    left_out: &[usize],
) -> Result<Option<Vec<Value>>> {
    let values = table.decode_row_without(row.view, &table.view(row.bytes)?, left_out)?;
    let values: Vec<Value> = columns
        .iter()
        .map(|column| values[*column].clone())
        .collect();
    Ok((!values.iter().any(Value::is_null)).then_some(values))
}
