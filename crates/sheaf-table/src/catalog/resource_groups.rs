//! Resource groups in the catalog.
//!
//! They are few; all of them are in memory, as one value that is replaced whole.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::catalog::records::{header, kind, put};
use crate::catalog::resource_group::ResourceGroups;
use crate::error::TableError;

impl Catalog {
    /// All resource groups, as of now. The default ones are not among them.
    pub fn resource_groups(&self) -> Arc<ResourceGroups> {
        Arc::clone(&self.resource_groups.0.read())
    }

    /// Changes resource groups: what `change` leaves is what there is, durably. Changes come one after the other.
    ///
    /// # Errors
    /// What `change` reports, and then nothing has changed; whatever the storage reports.
    pub fn change_resource_groups<E: From<TableError>>(
        &self,
        change: impl FnOnce(&mut ResourceGroups) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let definitions = self.definitions.lock();
        let before = self.resource_groups();
        let mut after = ResourceGroups::clone(&before);
        change(&mut after)?;
        self.change(|tree, transaction| {
            put(
                tree,
                transaction,
                &[kind::HEADER],
                &header(definitions.next_table_id),
            )?;
            for name in before.keys().filter(|name| !after.contains_key(*name)) {
                tree.delete(transaction, &resource_group_key(name))?;
            }
            for (name, group) in &after {
                put(
                    tree,
                    transaction,
                    &resource_group_key(name),
                    &group.encode(),
                )?;
            }
            Ok(())
        })?;
        *self.resource_groups.0.write() = Arc::new(after);
        Ok(())
    }
}

fn resource_group_key(name: &str) -> Vec<u8> {
    [&[kind::RESOURCE_GROUP], name.as_bytes()].concat()
}
