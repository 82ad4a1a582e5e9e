//! Resource groups in the catalog.
//!
//! They are few; all of them are in memory, as one value that is replaced whole.

use std::sync::Arc;

use sheaf_storage::sync::RwLock;

use crate::catalog::Catalog;
use crate::catalog::records::{header, kind, put};
use crate::catalog::resource_group::{ResourceGroup, ResourceGroups};
use crate::error::{Result, TableError};

/// The resource groups of a catalog.
pub(crate) struct ResourceGroupState(RwLock<Arc<ResourceGroups>>);

impl ResourceGroupState {
    pub(crate) fn new(stored: ResourceGroups) -> ResourceGroupState {
        ResourceGroupState(RwLock::new(Arc::new(stored)))
    }
}

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

/// Takes an entry of the catalog tree; `rest` is its key after the first byte.
pub(crate) fn read_resource_group(
    groups: &mut ResourceGroups,
    rest: &[u8],
    value: &[u8],
) -> Result<()> {
    let group = ResourceGroup::decode(value)?;
    let key = ResourceGroup::key(&group.name);
    if key.as_bytes() != rest {
        let detail = format!("resource group {} has the key {rest:?}", group.name);
        return Err(TableError::corrupt("catalog", detail));
    }
    groups.insert(key, Arc::new(group));
    Ok(())
}

fn resource_group_key(name: &str) -> Vec<u8> {
    [&[kind::RESOURCE_GROUP], name.as_bytes()].concat()
}
