//! The candidates of each table: column lists with prefix lengths, as hypothetical indexes.
//!
//! **Prefixes.** A column that LIKE 'text%' searches gets a prefix no longer than the shortest text of the workload:
//! with a longer one, some engines cannot use the index at all, and none finds more by it. It gets the shortest one
//! that keeps the selectivity: no search finds more than a twentieth of entries more. A long text that is compared with
//! `=` gets the prefix that tells nearly all values apart.
//!
//! **What is left out.** Candidates that make no statement cheaper, each by itself. Lists that an index of the table
//! has already, lists that the primary key begins with, and columns of the primary key at the end, where every index
//! has them anyway.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_optimizer::advisor::{TableNeed, column_lists, merged_lists, upkeep_us};
use sheaf_storage::KeyRange;
use sheaf_table::schema::same_name;
use sheaf_table::{
    HypotheticalIndex, Index, IndexPart, MAX_DECLARED_KEY_BYTES, PartBounds, RowSample,
    SampleLimits, Table, TableDefinition,
};

use super::study::{Studied, Study};
use super::{
    LEAST_SAMPLE_ROWS, Limits, MAX_CANDIDATES_OF_TABLE, SAMPLE_BYTES, SAMPLE_ROWS,
    SAMPLE_ROWS_OF_ALL, check_advice,
};
use crate::error::Result;
use crate::rights::Client;
use crate::session::Session;

/// Tables of so few leaves are read as fast without an index.
const LEAST_LEAVES: u64 = 4;
/// Characters of a prefix, at most.
const MAX_PREFIX: u32 = 64;
/// A prefix is short enough if it loses no more than this share of what the longest one tells apart.
const LOST_SHARE: f64 = 0.05;
/// Values of a text are long from so many bytes on, on average.
const LONG_TEXT_BYTES: f64 = 32.0;
/// The most bytes of a column that is in an index just to be read from it, on average.
const MAX_COVERED_BYTES: f64 = 64.0;
/// ORs of a table that indexes are merged for.
const MAX_MERGES_OF_TABLE: usize = 10;
/// Rows of a sample by which is seen whether a candidate helps.
const FIRST_LOOK_ROWS: usize = 2_000;
/// Characters of a name.
const MAX_NAME_CHARACTERS: usize = 56;

/// An index that might be made.
pub(super) struct Candidate {
    pub table: Arc<Table>,
    pub table_id: u64,
    pub index: Arc<HypotheticalIndex>,
    pub bytes: u64,
    /// Bytes of its entries, those that leaves have once counted each time.
    pub whole_bytes: f64,
    /// Microseconds that the workload's changes take to keep it.
    pub upkeep_us: f64,
}

impl Candidate {
    /// Whether a plan of a statement may have any use of it.
    pub(super) fn may_serve(&self, studied: &Studied) -> bool {
        studied.may_use(self.table_id, &self.index.definition.parts)
    }
}

/// All candidates, by number.
pub(super) struct Candidates {
    all: Vec<Candidate>,
    /// Candidates that help together, and perhaps not one by one: their indexes are merged.
    merged: Vec<Vec<usize>>,
}

/// What a hypothetical index is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sampled {
    FirstLook,
    All,
}

/// A table while its candidates are made.
struct Candidacy<'s> {
    table: &'s Arc<Table>,
    sample: RowSample,
    /// A part of it, by which is seen which candidates help at all.
    first_look: Option<RowSample>,
    /// Average bytes of each column's values, and whether some are outside of their rows; as far as it was asked for.
    bytes: BTreeMap<usize, (f64, bool)>,
    /// Estimated values of columns, as far as they were asked for.
    distinct: BTreeMap<usize, f64>,
    /// The prefix of each column that gets one.
    prefixes: BTreeMap<usize, Option<u32>>,
    made: u32,
    interrupt: &'s (dyn Fn() -> bool + Sync),
}

impl Candidates {
    /// The candidates of all tables that the statements read.
    pub(super) fn of(
        study: &mut Study,
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<Candidates> {
        let cancel = session.handle.cancel_flag().clone();
        let interrupt = move || cancel.is_cancelled();
        let mut all: Vec<Candidate> = Vec::new();
        let mut merged: Vec<Vec<usize>> = Vec::new();
        let mut tables = study.tables();
        tables.retain(|table| {
            !table.definition.is_temporary()
                && table.clustered.statistics().leaf_pages >= LEAST_LEAVES
                && may_advise(&session.client, table)
        });
        let rows = SAMPLE_ROWS_OF_ALL / tables.len().max(1);
        let sample_limits = |table: &Table| SampleLimits {
            rows: rows.clamp(LEAST_SAMPLE_ROWS, SAMPLE_ROWS),
            bytes: SAMPLE_BYTES,
            seed: table.definition.id,
        };
        // To sample a table brings it into memory, and plans know that. So this comes first, and all plans that are
        // compared know the same.
        let mut has_read = false;
        for table in &tables {
            check_advice(&session.handle)?;
            if !limits.go_on() {
                break;
            }
            let guard = session.lock_for_read(table, session.holds_no_table())?;
            if guard.is_version_of(table) && table.clustered.resident_share(&KeyRange::all())? < 1.0
            {
                RowSample::read(table, sample_limits(table), Some(&interrupt))?;
                has_read = true;
            }
        }
        if has_read {
            study.plan_again(session, limits)?;
        }
        for table in tables {
            check_advice(&session.handle)?;
            let statistics = table.clustered.statistics();
            // Its rows, and the entries of one index that is made of them.
            let sample_bytes = 2 * SAMPLE_BYTES.min(statistics.bytes as usize);
            if !limits.go_on() || !limits.take(sample_bytes) {
                break;
            }
            let guard = session.lock_for_read(&table, session.holds_no_table())?;
            if !guard.is_version_of(&table) {
                // It has another definition by now.
                limits.give_back(sample_bytes);
                continue;
            }
            let sample = RowSample::read(&table, sample_limits(&table), Some(&interrupt))?;
            // To plan over it takes a lock of its own.
            drop(guard);
            let mut candidacy = Candidacy {
                table: &table,
                first_look: sample.thinned(FIRST_LOOK_ROWS),
                sample,
                bytes: BTreeMap::new(),
                distinct: BTreeMap::new(),
                prefixes: BTreeMap::new(),
                made: 0,
                interrupt: &interrupt,
            };
            let resident = candidacy.sample.resident();
            let costs = session.engine.costs();
            let singles = candidacy.part_lists(study)?.into_iter();
            let singles = singles.map(|parts| vec![parts]);
            let groups = singles.chain(candidacy.merged_part_lists(study)?);
            for group in groups {
                check_advice(&session.handle)?;
                if !limits.go_on() {
                    break;
                }
                let known = |parts: &Vec<IndexPart>| {
                    all.iter().position(|candidate| {
                        candidate.table_id == table.definition.id
                            && candidate.index.definition.parts == *parts
                    })
                };
                let known: Vec<Option<usize>> = group.iter().map(known).collect();
                let mut indexes = Vec::new();
                let mut numbers = Vec::new();
                let mut next = all.len();
                for (parts, known) in group.iter().zip(&known) {
                    match known {
                        Some(number) => {
                            indexes.push(Arc::clone(&all[*number].index));
                            numbers.push(*number);
                        }
                        None => {
                            let index = candidacy.index(parts.clone(), Sampled::FirstLook)?;
                            indexes.push(Arc::new(index));
                            numbers.push(next);
                            next += 1;
                        }
                    }
                }
                let together = Arc::new(table.with_hypothetical_indexes(indexes.clone()));
                let parts: Vec<&[IndexPart]> = group.iter().map(Vec::as_slice).collect();
                numbers.sort_unstable();
                if !study.is_helped((&together, &parts), session, limits)? {
                    continue;
                }
                let mut new = Vec::new();
                for (parts, _) in group
                    .iter()
                    .zip(&known)
                    .filter(|(_, known)| known.is_none())
                {
                    new.push(Arc::new(candidacy.index(parts.clone(), Sampled::All)?));
                }
                let bytes: usize = new.iter().map(|index| index.memory_bytes()).sum();
                if !limits.take(bytes) {
                    break;
                }
                for index in new {
                    let entry_us = upkeep_us(&costs, index.statistics(), resident);
                    let entries = changed_entries(study, &table, &index.definition.parts);
                    all.push(Candidate {
                        table: Arc::clone(&table),
                        table_id: table.definition.id,
                        bytes: index.statistics().bytes,
                        whole_bytes: index.whole_bytes(),
                        upkeep_us: entries * entry_us,
                        index,
                    });
                }
                if numbers.len() > 1 {
                    merged.push(numbers);
                }
            }
            limits.give_back(sample_bytes);
        }
        Ok(Candidates { all, merged })
    }

    /// What may be taken at once: each candidate, and those that are merged.
    pub(super) fn groups(&self) -> impl Iterator<Item = Vec<usize>> {
        let singles = (0..self.all.len()).map(|number| vec![number]);
        singles.chain(self.merged.iter().cloned())
    }

    /// The candidates that one is merged with, if all of them are among those that are chosen.
    pub(super) fn merged_with(&self, number: usize, chosen: &[usize]) -> Option<&[usize]> {
        let mut merged = self.merged.iter();
        let group = merged.find(|group| {
            let mut others = group.iter();
            group.contains(&number) && others.all(|other| chosen.contains(other))
        });
        group.map(Vec::as_slice)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Candidate> {
        self.all.iter()
    }

    pub(super) fn get(&self, number: usize) -> &Candidate {
        &self.all[number]
    }

    /// The indexes of some candidates, with their tables. No two of a table have one name, however much of their
    /// columns they have in common.
    pub(super) fn named(&self, chosen: &[usize]) -> Vec<(u64, Index)> {
        let mut named: Vec<(u64, Index)> = Vec::new();
        for candidate in chosen.iter().map(|number| &self.all[*number]) {
            let mut index = candidate.index.definition.clone();
            index.name = free_name(index.name, |name| {
                let mut own = named.iter().filter(|(of, _)| *of == candidate.table_id);
                let is_taken = own.any(|(_, known)| same_name(&known.name, name));
                !is_taken && candidate.table.definition.index(name).is_none()
            });
            named.push((candidate.table_id, index));
        }
        named
    }

    /// The tables of some candidates, with these as indexes.
    pub(super) fn tables_with(&self, chosen: &[usize]) -> Vec<Arc<Table>> {
        let mut by_table: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for number in chosen {
            let table = self.all[*number].table_id;
            by_table.entry(table).or_default().push(*number);
        }
        let tables = by_table.into_values().map(|numbers| {
            let table = &self.all[numbers[0]].table;
            let indexes = numbers.iter();
            let indexes = indexes.map(|number| Arc::clone(&self.all[*number].index));
            Arc::new(table.with_hypothetical_indexes(indexes.collect()))
        });
        tables.collect()
    }
}

/// A name, with a number behind it if it is not free.
fn free_name(name: String, is_free: impl Fn(&str) -> bool) -> String {
    if is_free(&name) {
        return name;
    }
    let mut numbered = (2_u32..).map(|number| format!("{name}_{number}"));
    numbered.find(|name| is_free(name)).unwrap_or(name)
}

/// Entries of an index of these parts that the workload takes out and puts in.
fn changed_entries(study: &Study, table: &Table, parts: &[IndexPart]) -> f64 {
    let of_statement = |studied: &Studied| {
        let changes = studied.changes.iter();
        let own = changes.filter(|change| change.table_id == table.definition.id);
        let touching = own.filter(|change| match &change.columns {
            None => true,
            Some(columns) => parts.iter().any(|part| columns.contains(&part.column)),
        });
        let entries: f64 = touching.map(|change| change.rows * change.entries).sum();
        entries * studied.statement.executions
    };
    study.statements.iter().map(of_statement).sum()
}

impl Candidacy<'_> {
    fn definition(&self) -> &TableDefinition {
        &self.table.definition
    }

    /// What the statements could use of the table.
    fn needs(&self, study: &Study) -> Vec<TableNeed> {
        let id = self.definition().id;
        let needs = study.statements.iter().flat_map(|studied| &studied.needs);
        needs
            .filter(|need| need.table.definition.id == id)
            .cloned()
            .collect()
    }

    /// The parts of indexes that are to be merged, as far as they are not there.
    fn merged_part_lists(&mut self, study: &Study) -> Result<Vec<Vec<Vec<IndexPart>>>> {
        let needs = self.needs(study);
        let mut groups: Vec<Vec<Vec<IndexPart>>> = Vec::new();
        for need in &needs {
            let mut distinct = BTreeMap::new();
            for column in need.alternatives.iter().flatten().flat_map(|of| &of.equal) {
                distinct.insert(*column, self.distinct(*column)?);
            }
            let distinct = |column| distinct.get(&column).copied().unwrap_or(1.0);
            for lists in merged_lists(need, distinct) {
                let mut group = Vec::new();
                let mut is_possible = true;
                for columns in &lists {
                    // A prefix, where it serves.
                    let parts = match self.parts(columns, true, &needs)? {
                        Some(parts) => Some(parts),
                        None => self.parts(columns, false, &needs)?,
                    };
                    match parts {
                        Some(parts) if self.is_there(&parts) => {}
                        Some(parts) => group.push(parts),
                        None => is_possible = false,
                    }
                }
                if is_possible && !group.is_empty() && !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
        groups.truncate(MAX_MERGES_OF_TABLE);
        Ok(groups)
    }

    /// The parts of all candidates, the most promising first.
    fn part_lists(&mut self, study: &Study) -> Result<Vec<Vec<IndexPart>>> {
        let needs = self.needs(study);
        let mut of_each = Vec::new();
        for need in &needs {
            let mut distinct = BTreeMap::new();
            for column in &need.equal {
                distinct.insert(*column, self.distinct(*column)?);
            }
            let mut may_cover = BTreeMap::new();
            for column in &need.read {
                may_cover.insert(*column, self.may_cover(*column)?);
            }
            of_each.push(column_lists(
                need,
                |column| distinct.get(&column).copied().unwrap_or(1.0),
                |column| may_cover.get(&column).copied().unwrap_or(false),
            ));
        }
        let mut lists: Vec<Vec<IndexPart>> = Vec::new();
        // One of each need in turn, so that no need takes all places.
        let most = of_each.iter().map(Vec::len).max().unwrap_or(0);
        for turn in 0..most {
            for columns in of_each.iter().filter_map(|lists| lists.get(turn)) {
                for has_prefixes in [true, false] {
                    let Some(parts) = self.parts(columns, has_prefixes, &needs)? else {
                        continue;
                    };
                    if lists.len() < MAX_CANDIDATES_OF_TABLE
                        && !lists.contains(&parts)
                        && !self.is_there(&parts)
                    {
                        lists.push(parts);
                    }
                }
            }
        }
        Ok(lists)
    }

    /// An index of these parts, with a name that is free.
    fn index(&mut self, parts: Vec<IndexPart>, sampled: Sampled) -> Result<HypotheticalIndex> {
        self.made += 1;
        let definition = self.definition();
        let mut name = String::from("idx");
        for part in &parts {
            name.push('_');
            name.push_str(&definition.columns[part.column].name);
        }
        let name: String = name.chars().take(MAX_NAME_CHARACTERS).collect();
        let free = free_name(name, |name| definition.index(name).is_none());
        let named = (free, self.made);
        let interrupt = Some(self.interrupt);
        let sample = match (sampled, &self.first_look) {
            (Sampled::FirstLook, Some(first_look)) => first_look,
            _ => &self.sample,
        };
        Ok(HypotheticalIndex::new(
            self.table, named, parts, sample, interrupt,
        )?)
    }

    /// An index of one column, only to ask.
    fn asked(&mut self, column: usize, prefix_length: Option<u32>) -> Result<HypotheticalIndex> {
        let part = IndexPart {
            column,
            prefix_length,
            descending: false,
        };
        self.index(vec![part], Sampled::All)
    }

    fn distinct(&mut self, column: usize) -> Result<f64> {
        if !self.may_index(column) {
            return Ok(1.0);
        }
        if let Some(known) = self.distinct.get(&column) {
            return Ok(*known);
        }
        let prefix = self.needs_prefix(column).then_some(MAX_PREFIX);
        let prefix = self.resolved(column, prefix);
        let found = self.asked(column, prefix)?.distinct_keys(1);
        self.distinct.insert(column, found);
        Ok(found)
    }

    fn column_bytes(&mut self, column: usize) -> Result<(f64, bool)> {
        if let Some(known) = self.bytes.get(&column) {
            return Ok(*known);
        }
        let found = self.sample.column_bytes(self.table, column)?;
        self.bytes.insert(column, found);
        Ok(found)
    }

    /// Whether an index may have a column at all.
    fn may_index(&self, column: usize) -> bool {
        let columns = &self.definition().columns;
        columns
            .get(column)
            .is_some_and(|column| !column.hidden && !column.is_virtual() && !column.ty.is_json())
    }

    fn needs_prefix(&self, column: usize) -> bool {
        self.definition().columns[column].ty.is_long()
    }

    fn may_cover(&mut self, column: usize) -> Result<bool> {
        if !self.may_index(column) || self.needs_prefix(column) {
            return Ok(false);
        }
        Ok(self.column_bytes(column)?.0 <= MAX_COVERED_BYTES)
    }

    /// A prefix that is as long as the column is none.
    fn resolved(&self, column: usize, prefix: Option<u32>) -> Option<u32> {
        let length = self.definition().columns[column].ty.declared_length();
        prefix.filter(|prefix| *prefix < length.unwrap_or(u32::MAX))
    }

    /// The parts of an index on these columns. `has_prefixes`: texts that could be whole have prefixes where these
    /// serve. `None`: there can be no such index, or it is another one's.
    fn parts(
        &mut self,
        columns: &[usize],
        has_prefixes: bool,
        needs: &[TableNeed],
    ) -> Result<Option<Vec<IndexPart>>> {
        if !columns.iter().all(|column| self.may_index(*column)) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        let mut has_any = false;
        for column in columns {
            let prefix_length = match has_prefixes || self.needs_prefix(*column) {
                true => self.prefix(*column, needs)?,
                false => None,
            };
            has_any |= prefix_length.is_some();
            parts.push(IndexPart {
                column: *column,
                prefix_length,
                descending: false,
            });
        }
        if has_prefixes && !has_any {
            // The same as without.
            return Ok(None);
        }
        self.cut_primary(&mut parts);
        let layout = self.layout_of(&parts);
        let fits = !parts.is_empty()
            && layout.mysql_key_len(layout.declared) as usize <= MAX_DECLARED_KEY_BYTES;
        Ok(fits.then_some(parts))
    }

    fn layout_of(&self, parts: &[IndexPart]) -> sheaf_table::KeyLayout {
        let index = Index {
            parts: parts.to_vec(),
            primary: false,
            unique: false,
            ..self.definition().primary.clone()
        };
        sheaf_table::KeyLayout::secondary(self.definition(), &index)
    }

    /// Takes columns of the primary key away from the end where every index has them in this order.
    fn cut_primary(&self, parts: &mut Vec<IndexPart>) {
        let whole = self.key_columns(parts);
        while let Some(last) = parts.last() {
            let shorter = &parts[..parts.len() - 1];
            if last.prefix_length.is_some() || self.key_columns(shorter) != whole {
                break;
            }
            parts.pop();
        }
    }

    /// The columns of an index's keys, those of the primary key behind its own included.
    fn key_columns(&self, parts: &[IndexPart]) -> Vec<(Option<usize>, Option<u32>)> {
        let layout = self.layout_of(parts);
        let parts = layout.parts.iter();
        parts
            .map(|part| (part.column, part.prefix_length))
            .collect()
    }

    /// Whether an index that plans use begins with these parts, or the primary key does.
    fn is_there(&self, parts: &[IndexPart]) -> bool {
        let definition = self.definition();
        let visible = definition.indexes().filter(|index| !index.invisible);
        let mut visible = visible.map(|index| index.parts.iter().map(place).collect::<Vec<_>>());
        let parts: Vec<_> = parts.iter().map(place).collect();
        visible.any(|known| known.starts_with(&parts))
    }

    /// The prefix of a column that serves the workload; `None`: the whole column does.
    fn prefix(&mut self, column: usize, needs: &[TableNeed]) -> Result<Option<u32>> {
        if let Some(known) = self.prefixes.get(&column) {
            return Ok(*known);
        }
        let found = self.found_prefix(column, needs)?;
        let found = self.resolved(column, found);
        self.prefixes.insert(column, found);
        Ok(found)
    }

    fn found_prefix(&mut self, column: usize, needs: &[TableNeed]) -> Result<Option<u32>> {
        let ty = self.definition().columns[column].ty.clone();
        if !ty.is_character() && !ty.is_binary() {
            return Ok(None);
        }
        let branches = || {
            needs
                .iter()
                .flat_map(|need| need.alternatives.iter().flatten())
        };
        let searches = needs.iter().flat_map(|need| &need.ranged);
        let searches = searches.chain(branches().flat_map(|branch| &branch.ranged));
        let searches = searches.filter(|range| range.column == column);
        let texts: Vec<String> = searches
            .filter_map(|range| range.begins_with.clone())
            .collect();
        let is_compared = branches().any(|branch| branch.equal.contains(&column))
            || needs
                .iter()
                .any(|need| need.equal.contains(&column) || need.joined.contains(&column));
        let shortest = texts.iter().map(|text| text.chars().count()).min();
        let (average, has_long) = self.column_bytes(column)?;
        match shortest {
            Some(characters) => {
                let most = u32::try_from(characters).unwrap_or(MAX_PREFIX);
                let most = most.clamp(1, MAX_PREFIX);
                self.shortest_prefix(column, most, (&texts, is_compared))
                    .map(Some)
            }
            None if self.needs_prefix(column) || has_long || average >= LONG_TEXT_BYTES => self
                .shortest_prefix(column, MAX_PREFIX, (&texts, true))
                .map(Some),
            None => Ok(None),
        }
    }

    /// The shortest prefix by which searches for beginnings find hardly more than by one of `most` characters, and that
    /// tells nearly as many values apart if they are compared.
    fn shortest_prefix(
        &mut self,
        column: usize,
        most: u32,
        (texts, is_compared): (&[String], bool),
    ) -> Result<u32> {
        let mut told = |length: u32| -> Result<(f64, Vec<f64>)> {
            let prefix = self.resolved(column, Some(length));
            let index = self.asked(column, prefix)?;
            let found = texts.iter().map(|text| {
                let beginning: String = text.chars().take(length as usize).collect();
                let bounds = PartBounds::StartsWith(beginning);
                let range = index.layout().range(&[], Some(&bounds)).range;
                index.estimate_entries(&range) as f64
            });
            Ok((index.distinct_keys(1), found.collect()))
        };
        let (distinct, found) = told(most)?;
        let (mut too_short, mut enough) = (0, most);
        while enough - too_short > 1 {
            let middle = too_short + (enough - too_short) / 2;
            let (of_middle, finds) = told(middle)?;
            let tells = !is_compared || of_middle >= distinct * (1.0 - LOST_SHARE);
            let mut pairs = finds.iter().zip(&found);
            let finds_no_more =
                pairs.all(|(finds, found)| *finds <= (found * (1.0 + LOST_SHARE)).max(found + 1.0));
            match tells && finds_no_more {
                true => enough = middle,
                false => too_short = middle,
            }
        }
        Ok(enough)
    }
}

/// Whether a client may be told of a table's indexes.
pub(super) fn may_advise(client: &Client, table: &Table) -> bool {
    let definition = &table.definition;
    let (database, name) = (&definition.database, &definition.name);
    client.check_sees_table(database, name).is_ok()
}

/// What tells the parts of two indexes apart.
pub(super) fn place(part: &IndexPart) -> (usize, Option<u32>) {
    (part.column, part.prefix_length)
}
