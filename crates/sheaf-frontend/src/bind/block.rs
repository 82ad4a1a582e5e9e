//! A query block while it is bound.

use sheaf_access::cancel;
use sheaf_algebra::relation::DependentKind;
use sheaf_algebra::scalar::{Aggregate, Places, WindowFunction};
use sheaf_algebra::{ColumnId, ColumnSet, Relation, Scalar};
use sqlparser::ast::{Expr, WindowSpec};

use super::Bound;
use super::scope::{Found, Scope, ScopeColumn, ScopeTable, one_of};
use crate::syntax::is_same;

/// The part of a block that is bound now: it decides what names mean, and what messages call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    TableFunction,
    On,
    Where,
    FieldList,
    GroupBy,
    Having,
    OrderBy,
}

impl Clause {
    /// As MySQL calls it.
    pub fn name(self) -> &'static str {
        match self {
            Clause::TableFunction => "a table function argument",
            Clause::On => "on clause",
            Clause::Where => "where clause",
            Clause::FieldList => "field list",
            Clause::GroupBy => "group statement",
            Clause::Having => "having clause",
            Clause::OrderBy => "order clause",
        }
    }

    /// Whether it is about groups where there are any.
    pub fn has_aggregates(self) -> bool {
        matches!(self, Clause::FieldList | Clause::Having | Clause::OrderBy)
    }
}

/// A dependent join that goes below the operator whose expression is bound now.
pub struct Pending {
    pub kind: DependentKind,
    pub right: Relation,
    pub condition: Option<Scalar>,
}

/// What a name means among the items of the select list ([`super::group::named_items`]).
pub struct NamedItem {
    /// The alias, or the name of a column, or the header of another expression.
    pub name: String,
    pub is_alias: bool,
    pub is_header: bool,
    /// A column that has another alias: only HAVING finds it by its own name.
    pub is_behind_alias: bool,
    /// Columns that are not the same have this name.
    pub is_ambiguous: bool,
    pub expr: Expr,
    /// Among the items, without wildcards.
    pub position: usize,
}

/// What a block groups by, for GROUPING().
#[derive(Clone)]
pub struct Grouping {
    /// WITH ROLLUP: the column that tells which keys are rolled up.
    pub level: Option<Scalar>,
    /// Of each key what it may be written as.
    pub keys: Vec<Vec<Scalar>>,
}

/// An expression that names a column.
#[derive(Clone, Copy)]
pub struct WrittenPlace {
    pub column: ColumnId,
    pub clause: Clause,
    /// Of the expression in its clause, from 1.
    pub number: usize,
}

/// A query block.
pub struct Block {
    pub scope: Scope,
    pub clause: Clause,
    /// Its list holds values of another statement, which has neither groups nor windows.
    pub lists_values: bool,
    /// The select list, for names that mean its items.
    pub items: Vec<NamedItem>,
    /// Names that the block groups by: in HAVING they hide those of items.
    pub grouped_names: Vec<String>,
    /// Columns of FROM that HAVING may name: those that the block groups by, and those that are shown.
    pub grouped_columns: Vec<ColumnId>,
    pub shown_columns: Vec<ColumnId>,
    /// Columns that the select list, HAVING and GROUP BY name as they are written. A fold may drop some.
    pub written_columns: ColumnSet,
    pub written_in_keys: ColumnSet,
    /// Where the select list, HAVING and ORDER BY name columns, in the order in which they were bound.
    pub written_places: Vec<WrittenPlace>,
    /// ORDER BY has so many expressions before the one that is bound.
    pub ordered_so_far: usize,
    /// The WINDOW clause.
    pub windows: Vec<NamedWindow>,
    pub aggregates: Vec<(ColumnId, Aggregate)>,
    /// Where these are, by their arguments.
    pub aggregate_places: Places,
    /// Columns that aggregates have become.
    pub aggregated: ColumnSet,
    pub functions: Vec<(ColumnId, WindowFunction)>,
    /// How many different windows these have.
    pub windows_of_functions: usize,
    /// Subqueries in expressions above the groups, or where there are none.
    pub pending: Vec<Pending>,
    /// Subqueries in arguments of aggregates.
    pub pending_in_aggregates: Vec<Pending>,
    /// The argument of an aggregate is bound.
    pub in_aggregate: bool,
    /// The operands of a window function are bound.
    pub in_window: bool,
    /// Those of PARTITION BY or ORDER BY are.
    pub in_window_specification: bool,
    /// What the block groups by that has subqueries: where it stands again, it is the column of the group.
    pub grouped: Vec<(Expr, Scalar)>,
    /// The position of an item that stands for its name while it is bound. Names in it are those of tables, and in its
    /// subqueries those of items before it, too.
    pub in_item: Option<usize>,
    /// The operands of GROUPING() are bound.
    pub in_grouping: bool,
    /// Items that ORDER BY names in expressions, and what they were bound to.
    pub ordered_items: Vec<(usize, Scalar)>,
    /// Items that are keys of WITH ROLLUP that come again, by their position, as they are above the group.
    pub repeated_items: Vec<(usize, Scalar)>,
    /// Items keep the digits of quotients that are not shown.
    pub keeps_digits: bool,
    /// What it lists is not asked for: `*` stands for what the reader may read.
    pub lists_nothing: bool,
    /// So many items have their meaning: subqueries in later ones may name them.
    pub items_so_far: usize,
    pub grouping: Option<Grouping>,
}

/// A window of the WINDOW clause.
pub struct NamedWindow {
    pub name: String,
    pub spec: WindowSpec,
    /// A function is computed over it, and its names have been looked up.
    pub is_used: bool,
}

impl Block {
    pub fn new(scope: Scope) -> Block {
        Block {
            scope,
            clause: Clause::Where,
            lists_values: false,
            items: Vec::new(),
            grouped_names: Vec::new(),
            grouped_columns: Vec::new(),
            shown_columns: Vec::new(),
            written_columns: ColumnSet::new(),
            written_in_keys: ColumnSet::new(),
            written_places: Vec::new(),
            ordered_so_far: 0,
            windows: Vec::new(),
            aggregates: Vec::new(),
            aggregate_places: Places::default(),
            aggregated: ColumnSet::new(),
            functions: Vec::new(),
            windows_of_functions: 0,
            pending: Vec::new(),
            pending_in_aggregates: Vec::new(),
            in_aggregate: false,
            in_window: false,
            in_window_specification: false,
            grouped: Vec::new(),
            in_item: None,
            in_grouping: false,
            ordered_items: Vec::new(),
            repeated_items: Vec::new(),
            keeps_digits: false,
            lists_nothing: false,
            items_so_far: 0,
            grouping: None,
        }
    }

    /// A column is named outside of aggregates, in the block or in a subquery of it.
    pub fn note_written(&mut self, column: ColumnId) {
        if self.clause.has_aggregates() && !self.in_grouping {
            let before = match self.clause {
                Clause::OrderBy => self.ordered_so_far,
                Clause::FieldList => self.items_so_far,
                _ => 0,
            };
            self.written_places.push(WrittenPlace {
                column,
                clause: self.clause,
                number: before + 1,
            });
        }
        match self.clause {
            Clause::GroupBy => self.written_in_keys.insert(column),
            Clause::FieldList | Clause::Having if !self.in_grouping => {
                self.written_columns.insert(column)
            }
            _ => {}
        }
    }

    /// Columns for which `*` stands.
    pub fn note_listed(&mut self, columns: &[ScopeColumn]) {
        let places = columns.iter().zip(self.items_so_far + 1..);
        self.written_places
            .extend(places.map(|(column, number)| WrittenPlace {
                column: column.id,
                clause: Clause::FieldList,
                number,
            }));
    }

    /// A column that HAVING names outside of aggregates: one that is shown or grouped by.
    pub fn column_above_groups(
        &self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Found<'_> {
        let is_table = |known: &ScopeTable| {
            table.is_none_or(|table| known.name.alias == table)
                && database.is_none_or(|database| known.name.database == database)
        };
        let tables = self.scope.tables.iter().filter(|known| is_table(known));
        let columns = tables.flat_map(|table| &table.columns);
        one_of(columns.filter(|column| {
            is_same(&column.name, name)
                && (self.grouped_columns.contains(&column.id)
                    || self.shown_columns.contains(&column.id))
        }))
    }

    /// Whether aggregates may stand in the clause that is bound.
    pub fn has_aggregates(&self) -> bool {
        !self.lists_values && self.clause.has_aggregates()
    }

    /// Where a subquery goes that is met now.
    pub fn add_pending(&mut self, pending: Pending) {
        match self.in_aggregate {
            true => self.pending_in_aggregates.push(pending),
            false => self.pending.push(pending),
        }
    }
}

/// The relation with dependent joins above it, in the order in which they were met.
///
/// # Errors
/// The statement shall stop.
pub fn with_subqueries(relation: Relation, pending: Vec<Pending>) -> Bound<Relation> {
    pending.into_iter().try_fold(relation, |relation, pending| {
        // Each join has the columns of all below, and may be the one of a thousand that is too much.
        cancel::check_statement()?;
        relation.properties();
        Ok(relation.dependent_join(pending.kind, pending.right, pending.condition))
    })
}
