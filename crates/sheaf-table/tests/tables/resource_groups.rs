//! Resource groups in the catalog: durable, and changed as a whole or not at all.

use std::sync::Arc;

use sheaf_table::{Catalog, CpuSet, ResourceGroup, ResourceGroupKind, TableError};

use crate::fixture::{open, scratch};

fn group(name: &str) -> Arc<ResourceGroup> {
    Arc::new(ResourceGroup {
        name: name.into(),
        kind: ResourceGroupKind::User,
        enabled: true,
        cpus: CpuSet::from_ranges([(0, 1)]),
        thread_priority: 5,
    })
}

fn names(catalog: &Catalog) -> Vec<String> {
    let groups = catalog.resource_groups();
    groups.values().map(|group| group.name.clone()).collect()
}

#[test]
fn resource_groups_are_there_after_a_restart() {
    let (directory, catalog) = scratch();
    catalog
        .change_resource_groups(|groups| {
            for name in ["Night", "day"] {
                groups.insert(ResourceGroup::key(name), group(name));
            }
            Ok::<(), TableError>(())
        })
        .unwrap();
    catalog.storage().close().unwrap();
    drop(catalog);
    let catalog = open(directory.path());
    assert_eq!(names(&catalog), ["day", "Night"]);
    assert_eq!(catalog.resource_groups()["night"], group("Night"));

    catalog
        .change_resource_groups(|groups| {
            groups.remove("day");
            Ok::<(), TableError>(())
        })
        .unwrap();
    let refused = catalog.change_resource_groups(|groups| {
        groups.clear();
        Err(TableError::Interrupted)
    });
    assert!(refused.is_err());
    catalog.storage().close().unwrap();
    drop(catalog);
    assert_eq!(names(&open(directory.path())), ["Night"]);
}
