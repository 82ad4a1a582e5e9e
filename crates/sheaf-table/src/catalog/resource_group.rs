//! Resource groups: which CPUs the threads of a session run on, and how readily they leave them to others.
//!
//! Names and limits are those of MySQL's manual, "Resource Groups". What a group does to a thread is decided above.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use sheaf_storage::sync::RwLock;

use crate::catalog::cpu_set::{CpuSet, MAX_CPUS};
use crate::definition::codec::{Reader, Writer};
use crate::error::{Result, TableError};

/// The newest format of a resource group that this program writes and reads.
const FORMAT: u64 = 1;

/// The most resource groups of a data directory: each that is used has worker threads of its own.
pub const MAX_RESOURCE_GROUPS: usize = 32;
/// The most ranges of CPUs of a group, so that it fits in one entry of the catalog.
pub const MAX_CPU_RANGES: usize = MAX_CPUS as usize / 2;

/// Resource groups by their names in lower case.
pub type ResourceGroups = BTreeMap<String, Arc<ResourceGroup>>;

/// Which threads may be in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceGroupKind {
    /// Those of sessions.
    User,
    /// Those of the server itself.
    System,
}

impl ResourceGroupKind {
    /// `USER`, `SYSTEM`
    pub fn name(self) -> &'static str {
        match self {
            ResourceGroupKind::User => "USER",
            ResourceGroupKind::System => "SYSTEM",
        }
    }

    /// What a thread's priority may be, as nice values: 19 yields to all others.
    pub fn priorities(self) -> RangeInclusive<i8> {
        match self {
            ResourceGroupKind::User => 0..=19,
            ResourceGroupKind::System => -20..=0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroup {
    /// As it was written; letter case does not tell groups apart.
    pub name: String,
    pub kind: ResourceGroupKind,
    /// Threads may be put into it.
    pub enabled: bool,
    /// Empty: all.
    pub cpus: CpuSet,
    /// A nice value.
    pub thread_priority: i8,
}

impl ResourceGroup {
    /// What tells groups apart.
    pub fn key(name: &str) -> String {
        name.to_lowercase()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(FORMAT);
        out.text(&self.name);
        out.number(match self.kind {
            ResourceGroupKind::User => 0,
            ResourceGroupKind::System => 1,
        });
        out.number(u64::from(self.enabled));
        out.signed(self.thread_priority.into());
        out.number(self.cpus.ranges().len() as u64);
        for (first, last) in self.cpus.ranges() {
            out.number(u64::from(*first));
            out.number(u64::from(*last));
        }
        out.into_bytes()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<ResourceGroup> {
        let mut read = Reader::new(bytes, "resource group");
        read.version(FORMAT)?;
        let name = read.text()?;
        let kind = match read.number()? {
            0 => ResourceGroupKind::User,
            1 => ResourceGroupKind::System,
            _ => return Err(read.corrupt()),
        };
        let enabled = read.number()? != 0;
        let priority = i8::try_from(read.signed()?).ok();
        let thread_priority = priority
            .filter(|priority| kind.priorities().contains(priority))
            .ok_or_else(|| read.corrupt())?;
        let mut ranges = Vec::new();
        for _ in 0..read.count()? {
            let mut cpu = || -> Result<u16> {
                let number = u16::try_from(read.number()?).ok();
                number
                    .filter(|number| *number < MAX_CPUS)
                    .ok_or_else(|| read.corrupt())
            };
            let (first, last) = (cpu()?, cpu()?);
            if first > last {
                return Err(read.corrupt());
            }
            ranges.push((first, last));
        }
        Ok(ResourceGroup {
            name,
            kind,
            enabled,
            cpus: CpuSet::from_ranges(ranges),
            thread_priority,
        })
    }
}

/// The resource groups of a catalog.
pub(crate) struct ResourceGroupState(pub(super) RwLock<Arc<ResourceGroups>>);

impl ResourceGroupState {
    pub(crate) fn new(stored: ResourceGroups) -> ResourceGroupState {
        ResourceGroupState(RwLock::new(Arc::new(stored)))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn night() -> ResourceGroup {
        ResourceGroup {
            name: "Night".into(),
            kind: ResourceGroupKind::User,
            enabled: false,
            cpus: CpuSet::from_ranges([(1, 3), (1023, 1023)]),
            thread_priority: 19,
        }
    }

    #[test]
    fn groups_come_back_as_they_were() {
        let urgent = ResourceGroup {
            kind: ResourceGroupKind::System,
            enabled: true,
            cpus: CpuSet::default(),
            thread_priority: -20,
            ..night()
        };
        for group in [night(), urgent] {
            let read = ResourceGroup::decode(&group.encode());
            assert_eq!(read.expect("it was encoded"), group);
        }
    }

    #[test]
    fn the_longest_group_fits_in_an_entry() {
        let group = ResourceGroup {
            name: "x".repeat(64),
            cpus: (0..MAX_CPUS).step_by(2).collect(),
            ..night()
        };
        assert_eq!(group.cpus.ranges().len(), MAX_CPU_RANGES);
        assert!(group.encode().len() < crate::catalog::records::CHUNK_BYTES);
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let bytes = night().encode();
        for end in 0..bytes.len() {
            assert!(ResourceGroup::decode(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                // Whatever it is read as, reading it ends, and it can be written again.
                if let Ok(read) = ResourceGroup::decode(&damaged) {
                    read.encode();
                }
            }
        }
    }
}
