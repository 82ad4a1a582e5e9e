//! What ADVISE INDEXES shows: one row for each index to make or to drop. docs/advisor.md lists the columns.

use sheaf_optimizer::json::{Json, Layout, Object};
use sheaf_table::{Index, TableDefinition};
use sheaf_types::text::quoting::quoted_name;

use super::candidates::Candidate;
use crate::query::rows::{Cell, Cells, Rows};

const CREATE: &str = "CREATE";

/// Statements that are listed with an index, at most.
const MAX_LISTED: usize = 5;

const ONE_LINE: Layout = Layout {
    one_line: true,
    end_markers: false,
};

/// A statement that an index helps.
#[derive(Clone)]
pub(super) struct Help {
    pub digest: Option<String>,
    pub text: String,
    /// The database that is current for it.
    pub database: Option<String>,
    pub executions: f64,
    /// What one execution costs as it is, and with the index alone.
    pub before_us: f64,
    pub after_us: f64,
}

/// What a statement reads of an index. There is none if the index only takes part in a merge of indexes, or tells the
/// optimizer something.
#[derive(Clone, Copy)]
pub(super) struct Used {
    /// Entries that are read.
    pub rows: u64,
    /// EXPLAIN's.
    pub key_len: u32,
    /// No rows are fetched, neither to read them nor to change them.
    pub fetches_none: bool,
}

/// What running statements with an index and without it has shown.
#[derive(Clone, Copy, Default)]
pub(super) struct Measured {
    pub(super) statements: u64,
    /// Microseconds of all of them, times their executions.
    pub(super) before_us: f64,
    pub(super) after_us: f64,
    /// What was predicted of these.
    pub(super) predicted_before_us: f64,
    pub(super) predicted_after_us: f64,
}

impl Help {
    pub(super) fn saved_us(&self) -> f64 {
        self.executions * (self.before_us - self.after_us)
    }
}

/// An index to make or to drop.
pub(super) struct Proposal {
    action: &'static str,
    database: String,
    table: String,
    index: String,
    statement: String,
    reason: String,
    size_bytes: u64,
    upkeep_us: Option<f64>,
    helps: Vec<Help>,
    used: Option<Used>,
    measured: Option<Measured>,
}

impl Proposal {
    /// `index`: the candidate's, with the name that it gets. `used`: what the statement that gains most reads of it.
    pub(super) fn create(
        candidate: &Candidate,
        index: &Index,
        helps: Vec<Help>,
        used: Option<Used>,
    ) -> Proposal {
        let definition = &candidate.table.definition;
        let reason = match used {
            Some(Used {
                rows,
                fetches_none: true,
                ..
            }) => format!("{rows} entries are read, and no rows are fetched"),
            Some(Used { rows, .. }) => format!("{rows} entries are read"),
            None => "indexes are merged".to_string(),
        };
        Proposal {
            action: CREATE,
            database: definition.database.clone(),
            table: definition.name.clone(),
            index: index.name.clone(),
            statement: create_statement(definition, index),
            reason,
            size_bytes: candidate.bytes,
            upkeep_us: Some(candidate.upkeep_us),
            helps,
            used,
            measured: None,
        }
    }

    pub(super) fn drop(
        definition: &TableDefinition,
        index: &str,
        size_bytes: u64,
        reason: String,
    ) -> Proposal {
        Proposal {
            action: "DROP",
            database: definition.database.clone(),
            table: definition.name.clone(),
            index: index.to_string(),
            statement: format!(
                "DROP INDEX {} ON {}",
                quoted_name(index),
                table_name(definition)
            ),
            reason,
            size_bytes,
            upkeep_us: None,
            helps: Vec::new(),
            used: None,
            measured: None,
        }
    }

    /// Of an index to make: the statement that makes it, and the one that drops it.
    pub(super) fn statements_of_index(&self) -> Option<(String, String)> {
        let drop = format!(
            "DROP INDEX {} ON {}.{}",
            quoted_name(&self.index),
            quoted_name(&self.database),
            quoted_name(&self.table)
        );
        (self.action == CREATE).then(|| (self.statement.clone(), drop))
    }

    /// The statements that are listed with it.
    pub(super) fn helps(&self) -> &[Help] {
        &self.helps[..self.helps.len().min(MAX_LISTED)]
    }

    pub(super) fn set_measured(&mut self, measured: Measured) {
        self.measured = Some(measured);
    }

    pub(super) fn saved_us(&self) -> f64 {
        self.helps.iter().map(Help::saved_us).sum()
    }

    fn cells(self, is_verified: bool) -> Vec<Cell> {
        let has_helps = !self.helps.is_empty();
        let sum = |of: &dyn Fn(&Help) -> f64| -> f64 {
            self.helps
                .iter()
                .map(|help| help.executions * of(help))
                .sum()
        };
        let cost = |us: f64| Cell::from(has_helps.then(|| whole(us)));
        let used = self.used;
        let executions: f64 = self.helps.iter().map(|help| help.executions).sum();
        let (before, after) = (sum(&|help| help.before_us), sum(&|help| help.after_us));
        let mut cells = vec![
            self.action.into(),
            self.database.into(),
            self.table.into(),
            self.index.into(),
            self.statement.into(),
            self.reason.into(),
            used.map(|used| used.rows).into(),
            used.map(|used| u64::from(used.key_len)).into(),
            self.size_bytes.into(),
            cost(before),
            cost(after),
            self.upkeep_us.map(whole).into(),
            cost(executions),
            has_helps
                .then(|| Json::List(listed(&self.helps)).print(ONE_LINE))
                .into(),
        ];
        if is_verified {
            cells.extend(measured_cells(self.measured));
        }
        cells
    }
}

fn measured_cells(measured: Option<Measured>) -> [Cell; 5] {
    let times = |before: f64, after: f64| Cell::Double(before / after.max(f64::MIN_POSITIVE));
    match measured {
        None => [const { Cell::Null }; 5],
        Some(measured) => [
            measured.statements.into(),
            whole(measured.before_us).into(),
            whole(measured.after_us).into(),
            times(measured.predicted_before_us, measured.predicted_after_us),
            times(measured.before_us, measured.after_us),
        ],
    }
}

fn listed(helps: &[Help]) -> Vec<Json> {
    let listed = helps.iter().take(MAX_LISTED).map(|help| {
        let object = Object::new()
            .with_some("digest", help.digest.clone())
            .with("statement", help.text.clone())
            .with("executions", Json::count(help.executions))
            .with("cost_before_us", Json::count(help.before_us))
            .with("cost_after_us", Json::count(help.after_us));
        Json::from(object)
    });
    listed.collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "microseconds and counts are not negative, and large ones need no precision"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn table_name(definition: &TableDefinition) -> String {
    format!(
        "{}.{}",
        quoted_name(&definition.database),
        quoted_name(&definition.name)
    )
}

fn create_statement(definition: &TableDefinition, index: &Index) -> String {
    let parts = index.parts.iter().map(|part| {
        let name = quoted_name(&definition.columns[part.column].name);
        match part.prefix_length {
            Some(length) => format!("{name}({length})"),
            None => name,
        }
    });
    format!(
        "CREATE INDEX {} ON {} ({})",
        quoted_name(&index.name),
        table_name(definition),
        parts.collect::<Vec<_>>().join(", ")
    )
}

/// The result of the statement. `is_verified`: with what was measured.
pub(super) fn shown(proposals: Vec<Proposal>, is_verified: bool) -> Rows {
    let mut columns = vec![
        ("action", Cells::Text(6)),
        ("object_schema", Cells::Name),
        ("object_name", Cells::Name),
        ("index_name", Cells::Name),
        ("statement", Cells::Text(u32::MAX)),
        ("reason", Cells::Text(1024)),
        ("predicted_rows", Cells::Unsigned),
        ("key_len", Cells::Unsigned),
        ("size_bytes", Cells::Unsigned),
        ("cost_before_us", Cells::Unsigned),
        ("cost_after_us", Cells::Unsigned),
        ("upkeep_us", Cells::Unsigned),
        ("executions", Cells::Unsigned),
        ("helps", Cells::Text(u32::MAX)),
    ];
    if is_verified {
        columns.extend([
            ("replayed_statements", Cells::Unsigned),
            ("measured_before_us", Cells::Unsigned),
            ("measured_after_us", Cells::Unsigned),
            ("predicted_speedup", Cells::Double),
            ("measured_speedup", Cells::Double),
        ]);
    }
    let mut rows = Rows::new(columns);
    for proposal in proposals {
        rows.push(proposal.cells(is_verified));
    }
    rows
}
