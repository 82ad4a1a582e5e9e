//! Privileges, and sets of them.
//!
//! A privilege is a bit, and its number is part of the catalog's format: bits are added, never moved. MySQL grants
//! privileges at three levels, and a privilege that makes no sense for a table cannot be granted on one:
//!
//! ```text
//!   *.*            all of them
//!   db.*           those that mean a database or its tables
//!   db.table       those that mean a table
//! ```
//!
//! Names and levels are those of MySQL's manual, "Privileges Provided by MySQL".

use std::fmt;
use std::ops::BitOr;

/// The widest thing that a privilege can be granted on, from the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrivilegeLevel {
    Table,
    Database,
    Global,
    /// Global, and not part of ALL PRIVILEGES in MySQL's static sense: a dynamic privilege.
    Dynamic,
}

/// A set of privileges.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Privileges(u64);

macro_rules! privileges {
    ($($name:ident = $bit:literal, $text:literal, $level:ident;)*) => {
        impl Privileges {
            $(pub const $name: Privileges = Privileges(1 << $bit);)*

            /// Each privilege with its name and the narrowest level that it can be granted at, in the order in which
            /// SHOW GRANTS lists them.
            pub const ALL_BY_NAME: &'static [(Privileges, &'static str, PrivilegeLevel)] = &[
                $((Privileges::$name, $text, PrivilegeLevel::$level),)*
            ];
        }
    };
}

privileges! {
    SELECT = 0, "SELECT", Table;
    INSERT = 1, "INSERT", Table;
    UPDATE = 2, "UPDATE", Table;
    DELETE = 3, "DELETE", Table;
    CREATE = 4, "CREATE", Table;
    DROP = 5, "DROP", Table;
    RELOAD = 6, "RELOAD", Global;
    SHUTDOWN = 7, "SHUTDOWN", Global;
    PROCESS = 8, "PROCESS", Global;
    FILE = 9, "FILE", Global;
    REFERENCES = 10, "REFERENCES", Table;
    INDEX = 11, "INDEX", Table;
    ALTER = 12, "ALTER", Table;
    SHOW_DATABASES = 13, "SHOW DATABASES", Global;
    SUPER = 14, "SUPER", Global;
    CREATE_TEMPORARY_TABLES = 15, "CREATE TEMPORARY TABLES", Database;
    LOCK_TABLES = 16, "LOCK TABLES", Database;
    EXECUTE = 17, "EXECUTE", Database;
    REPLICATION_SLAVE = 18, "REPLICATION SLAVE", Global;
    REPLICATION_CLIENT = 19, "REPLICATION CLIENT", Global;
    CREATE_VIEW = 20, "CREATE VIEW", Table;
    SHOW_VIEW = 21, "SHOW VIEW", Table;
    CREATE_ROUTINE = 22, "CREATE ROUTINE", Database;
    ALTER_ROUTINE = 23, "ALTER ROUTINE", Database;
    CREATE_USER = 24, "CREATE USER", Global;
    EVENT = 25, "EVENT", Database;
    TRIGGER = 26, "TRIGGER", Table;
    CREATE_TABLESPACE = 27, "CREATE TABLESPACE", Global;
    CREATE_ROLE = 28, "CREATE ROLE", Global;
    DROP_ROLE = 29, "DROP ROLE", Global;
    BACKUP_ADMIN = 32, "BACKUP_ADMIN", Dynamic;
    CONNECTION_ADMIN = 33, "CONNECTION_ADMIN", Dynamic;
    RESOURCE_GROUP_ADMIN = 34, "RESOURCE_GROUP_ADMIN", Dynamic;
    RESOURCE_GROUP_USER = 35, "RESOURCE_GROUP_USER", Dynamic;
    SYSTEM_VARIABLES_ADMIN = 36, "SYSTEM_VARIABLES_ADMIN", Dynamic;
    REPLICATION_SLAVE_ADMIN = 37, "REPLICATION_SLAVE_ADMIN", Dynamic;
}

impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    /// The right to grant the others that one has.
    pub const GRANT_OPTION: Privileges = Privileges(1 << 63);

    /// Those that may be granted on single columns.
    pub const ON_COLUMNS: Privileges = Privileges::from_all(&[
        Privileges::SELECT,
        Privileges::INSERT,
        Privileges::UPDATE,
        Privileges::REFERENCES,
    ]);

    /// The set of all of these.
    pub const fn from_all(sets: &[Privileges]) -> Privileges {
        let (mut all, mut n) = (0, 0);
        while n < sets.len() {
            all |= sets[n].0;
            n += 1;
        }
        Privileges(all)
    }

    /// What ALL PRIVILEGES means at a level; GRANT OPTION is not part of it.
    pub fn all_at(level: PrivilegeLevel) -> Privileges {
        Self::ALL_BY_NAME
            .iter()
            .filter(|(_, _, narrowest)| *narrowest <= level)
            .fold(Privileges::NONE, |all, (privilege, _, _)| all | *privilege)
    }

    /// The set with these bits; those that this program does not know are left out.
    pub fn from_bits(bits: u64) -> Privileges {
        let known = Self::all_at(PrivilegeLevel::Dynamic) | Self::GRANT_OPTION;
        Privileges(bits & known.0)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `others` are in the set.
    pub fn contains(self, others: Privileges) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether some of `others` are in the set.
    pub fn intersects(self, others: Privileges) -> bool {
        self.0 & others.0 != 0
    }

    pub fn without(self, others: Privileges) -> Privileges {
        Privileges(self.0 & !others.0)
    }

    pub fn and(self, others: Privileges) -> Privileges {
        Privileges(self.0 & others.0)
    }

    /// The names of the privileges in the set, in MySQL's order; GRANT OPTION comes last.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let grant_option = (Self::GRANT_OPTION, "GRANT OPTION", PrivilegeLevel::Table);
        Self::ALL_BY_NAME
            .iter()
            .copied()
            .chain([grant_option])
            .filter(move |(privilege, _, _)| self.contains(*privilege))
            .map(|(_, name, _)| name)
    }
}

impl BitOr for Privileges {
    type Output = Privileges;

    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
}

impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, name) in self.names().enumerate() {
            f.write_str(if n > 0 { ", " } else { "" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_privilege_has_a_bit_and_a_name_of_its_own() {
        let mut seen = Privileges::GRANT_OPTION;
        let mut names = Vec::new();
        for (privilege, name, _) in Privileges::ALL_BY_NAME {
            assert!(!seen.intersects(*privilege), "{name}");
            seen = seen | *privilege;
            names.push(*name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Privileges::ALL_BY_NAME.len());
    }

    #[test]
    fn a_narrow_level_has_fewer_privileges() {
        let table = Privileges::all_at(PrivilegeLevel::Table);
        let database = Privileges::all_at(PrivilegeLevel::Database);
        assert!(database.contains(table) && !table.contains(database));
        assert!(table.contains(Privileges::SELECT) && !database.contains(Privileges::FILE));
        let shown =
            (Privileges::DELETE | Privileges::SELECT | Privileges::GRANT_OPTION).to_string();
        assert_eq!(shown, "SELECT, DELETE, GRANT OPTION");
    }
}
