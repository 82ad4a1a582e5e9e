//! A view: a query under the name of a table.
//!
//! The catalog keeps the text of the query, and nothing that could become wrong when its tables change. What the names
//! in the text mean is asked each time that the view is used. The columns are those that the query had when the view
//! was made. SHOW and information_schema list them, and their names are those of the view.

use sheaf_memory::Share;

use crate::catalog::account::AccountName;
use crate::definition::codec::{Reader, Writer, has_later_types};
use crate::definition::schema::Column;
use crate::error::Result;
use crate::table::catalog_memory::CatalogMemory;

/// The newest format of a view that this program writes and reads.
const FORMAT: u64 = 3;
/// The newest format without wide DECIMALs. Views that have none are written in it.
const FORMAT_WITHOUT_WIDE_DECIMALS: u64 = 2;
/// The newest format without [later types](has_later_types) of columns. Views that have none are written in it.
const FORMAT_WITHOUT_LATER_TYPES: u64 = 1;

/// A view's definition. Its database and name are the key of its entry.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewDefinition {
    pub database: String,
    pub name: String,
    pub algorithm: ViewAlgorithm,
    pub definer: AccountName,
    /// Whose privileges the tables of the query are read with.
    pub security: ViewSecurity,
    pub check: ViewCheck,
    /// Whether each of its rows is one of its tables, so that MySQL would let rows be changed through it.
    pub is_updatable: bool,
    /// What the names in it mean is asked in the view's database.
    pub query: String,
    pub columns: Vec<Column>,
    /// `character_set_client` and `collation_connection` of the session that made it.
    pub character_set: String,
    pub collation: String,
}

/// ALGORITHM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewAlgorithm {
    #[default]
    Undefined,
    Merge,
    TempTable,
}

/// SQL SECURITY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewSecurity {
    #[default]
    Definer,
    Invoker,
}

/// WITH CHECK OPTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewCheck {
    #[default]
    None,
    Local,
    Cascaded,
}

/// The values of each field, by the numbers that stand for them.
const ALGORITHMS: [ViewAlgorithm; 3] = [
    ViewAlgorithm::Undefined,
    ViewAlgorithm::Merge,
    ViewAlgorithm::TempTable,
];
const SECURITIES: [ViewSecurity; 2] = [ViewSecurity::Definer, ViewSecurity::Invoker];
const CHECKS: [ViewCheck; 3] = [ViewCheck::None, ViewCheck::Local, ViewCheck::Cascaded];

/// A view that the catalog has.
pub struct View {
    pub definition: ViewDefinition,
    _memory: Share,
}

impl View {
    /// A new one.
    ///
    /// # Errors
    /// `DefinitionsTooLarge`.
    pub(super) fn new(memory: &CatalogMemory, definition: ViewDefinition) -> Result<View> {
        Ok(View {
            _memory: memory.take(definition.memory_bytes())?,
            definition,
        })
    }

    /// One that is there already.
    pub(super) fn known(memory: &CatalogMemory, definition: ViewDefinition) -> View {
        View {
            _memory: memory.take_anyway(definition.memory_bytes()),
            definition,
        }
    }
}

impl ViewDefinition {
    /// About how much memory it takes.
    fn memory_bytes(&self) -> usize {
        let column = |column: &Column| size_of::<Column>() + column.name.len() + 64;
        let columns: usize = self.columns.iter().map(column).sum();
        size_of::<View>() + 512 + self.query.len() + columns
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        let mut columns = self.columns.iter();
        out.number(if columns.any(|column| column.ty.is_wide_decimal()) {
            FORMAT
        } else if has_later_types(&self.columns) {
            FORMAT_WITHOUT_WIDE_DECIMALS
        } else {
            FORMAT_WITHOUT_LATER_TYPES
        });
        out.number(number_of(&ALGORITHMS, self.algorithm));
        out.text(&self.definer.user);
        out.text(&self.definer.host);
        out.number(number_of(&SECURITIES, self.security));
        out.number(number_of(&CHECKS, self.check));
        out.number(u64::from(self.is_updatable));
        out.text(&self.query);
        out.text(&self.character_set);
        out.text(&self.collation);
        out.number(self.columns.len() as u64);
        self.columns.iter().for_each(|column| out.column(column));
        out.into_bytes()
    }

    /// A view from its entry in the catalog tree.
    ///
    /// # Errors
    /// `CatalogTooNew`, or `Corrupt` if the bytes are not one.
    pub(crate) fn decode(bytes: &[u8], database: &str, name: &str) -> Result<ViewDefinition> {
        let mut read = Reader::new(bytes, name);
        read.version(FORMAT)?;
        Ok(ViewDefinition {
            database: database.to_string(),
            name: name.to_string(),
            algorithm: value_of(&ALGORITHMS, &mut read)?,
            definer: AccountName {
                user: read.text()?,
                host: read.text()?,
            },
            security: value_of(&SECURITIES, &mut read)?,
            check: value_of(&CHECKS, &mut read)?,
            is_updatable: read.number()? != 0,
            query: read.text()?,
            character_set: read.text()?,
            collation: read.text()?,
            columns: (0..read.count()?)
                .map(|_| read.column())
                .collect::<Result<_>>()?,
        })
    }
}

fn number_of<T: PartialEq>(all: &[T], value: T) -> u64 {
    let number = all.iter().position(|known| *known == value);
    number.unwrap_or_default() as u64
}

fn value_of<T: Copy>(all: &[T], read: &mut Reader<'_>) -> Result<T> {
    let number: usize = read.narrow()?;
    all.get(number).copied().ok_or_else(|| read.corrupt())
}

#[cfg(test)]
mod tests {
    use sheaf_types::ColumnType;

    use super::*;
    use crate::error::TableError;

    fn view() -> ViewDefinition {
        ViewDefinition {
            database: "d".to_string(),
            name: "v".to_string(),
            algorithm: ViewAlgorithm::TempTable,
            definer: AccountName::new("Ada", "%"),
            security: ViewSecurity::Invoker,
            check: ViewCheck::Cascaded,
            is_updatable: true,
            query: "SELECT id FROM t".to_string(),
            columns: vec![Column::new(
                "id".to_string(),
                ColumnType::Int {
                    sign: sheaf_types::column_type::Sign::Unsigned,
                },
                false,
            )],
            character_set: "utf8mb4".to_string(),
            collation: "utf8mb4_bin".to_string(),
        }
    }

    #[test]
    fn a_view_comes_back() {
        for algorithm in ALGORITHMS {
            for check in CHECKS {
                let view = ViewDefinition {
                    algorithm,
                    check,
                    ..view()
                };
                let read = ViewDefinition::decode(&view.encode(), "d", "v");
                assert_eq!(read.expect("it was just written"), view);
            }
        }
    }

    #[test]
    fn a_view_of_a_later_type_is_kept_from_earlier_programs() {
        let mut view = view();
        for (ty, format) in [
            ("decimal(38,2)", FORMAT_WITHOUT_LATER_TYPES),
            ("float(7,2)", FORMAT_WITHOUT_WIDE_DECIMALS),
            ("decimal(39,2)", FORMAT),
        ] {
            view.columns[0].ty = ColumnType::parse(ty).unwrap();
            let bytes = view.encode();
            assert_eq!(u64::from(bytes[0]), format, "{ty}");
            let read = ViewDefinition::decode(&bytes, "d", "v");
            assert_eq!(read.expect("it was just written"), view);
        }
    }

    #[test]
    fn what_is_no_view_is_refused() {
        let bytes = view().encode();
        for length in 0..bytes.len() {
            let read = ViewDefinition::decode(&bytes[..length], "d", "v");
            assert!(matches!(read, Err(TableError::Corrupt { .. })), "{length}");
        }
        let newer = [&[4], &bytes[1..]].concat();
        assert!(matches!(
            ViewDefinition::decode(&newer, "d", "v"),
            Err(TableError::CatalogTooNew { found: 4, known: 3 })
        ));
        let other_algorithm = [&[1, 3], &bytes[2..]].concat();
        assert!(ViewDefinition::decode(&other_algorithm, "d", "v").is_err());
    }
}
