//! Which candidates to take.
//!
//! Each round plans the statements with one more candidate, and takes the one that saves most, less what the workload's
//! changes pay for it. Of candidates that save nearly as much, the smallest is taken. The search ends when none is
//! worth its bytes, and then what became superfluous is put back:
//!
//! ```text
//!   {}  ->  (a)  ->  (a) (b, c)  ->  (a) (b, c) (a, d)  ->  (b, c) (a, d)
//! ```

use sheaf_table::Index;

use super::candidates::{Candidate, Candidates};
use super::proposal::{Help, Proposal, Used};
use super::study::Study;
use super::{Limits, MAX_PROPOSED};
use crate::error::Result;
use crate::session::Session;

/// A statement is helped if it costs no more than this share of what it costs without.
const HELPED_SHARE: f64 = 0.9;
/// Less than this is not worth an index, in microseconds for each execution.
const LEAST_SAVED_US: f64 = 20.0;
/// A smaller candidate is taken if it saves this share of what the best one does.
const NEARLY_AS_MUCH: f64 = 0.9;

/// An index that adds a share of the tables' bytes has to save this part of that share of the workload's cost. The
/// indexes that TPC-H has by rule are three quarters of its tables, and save a third.
const PRICE_OF_BYTES: f64 = 0.25;

/// See the module's comment.
pub(super) struct Search<'s> {
    candidates: &'s Candidates,
    study: &'s mut Study,
    limit_bytes: Option<u64>,
    /// What a byte of an index has to save, in microseconds.
    byte_us: f64,
    /// For each candidate, which statements may have any use of it.
    serves: Vec<Vec<bool>>,
    /// For each group of candidates, what it saves over those that are chosen, as far as it is known.
    savings: Vec<Option<f64>>,
}

impl<'s> Search<'s> {
    pub(super) fn new(
        candidates: &'s Candidates,
        study: &'s mut Study,
        limit_bytes: Option<u64>,
    ) -> Search<'s> {
        let statements = &study.statements;
        let of_each = statements.iter();
        let cost_us: f64 = of_each
            .map(|studied| studied.statement.executions * studied.cost_us)
            .sum();
        let tables = study.tables();
        let bytes = tables
            .iter()
            .map(|table| table.clustered.statistics().bytes);
        let bytes: u64 = bytes.sum();
        // One statement is asked about for its own sake.
        let byte_us = match statements.len() {
            0 | 1 => 0.0,
            _ => PRICE_OF_BYTES * cost_us / (bytes as f64).max(1.0),
        };
        let serves = candidates.all().map(|candidate| {
            let of_each = statements.iter();
            of_each
                .map(|studied| candidate.may_serve(studied))
                .collect()
        });
        Search {
            serves: serves.collect(),
            savings: vec![None; candidates.groups().count()],
            candidates,
            study,
            limit_bytes,
            byte_us,
        }
    }

    /// Whether a statement may have any use of one of these.
    fn may_use(&self, position: usize, numbers: &[usize]) -> bool {
        numbers.iter().any(|number| self.serves[*number][position])
    }

    /// What is known of groups does not hold any more if a statement of theirs has one more candidate.
    fn forget_savings(&mut self, chosen: &[usize]) {
        let groups = self.candidates.groups();
        for (known, group) in self.savings.iter_mut().zip(groups) {
            let of_both = |position: usize| {
                let serves = |number: &usize| self.serves[*number][position];
                group.iter().any(serves) && chosen.iter().any(serves)
            };
            if (0..self.study.statements.len()).any(of_both) {
                *known = None;
            }
        }
    }

    /// The candidates that are worth their upkeep.
    pub(super) fn choose(
        &mut self,
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<Vec<usize>> {
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < MAX_PROPOSED {
            match self.next(&chosen, session, limits)? {
                Some(next) => {
                    self.forget_savings(&next);
                    chosen.extend(next);
                }
                None => break,
            }
        }
        self.put_back(&mut chosen, session, limits)?;
        Ok(chosen)
    }

    fn sum(&self, numbers: &[usize], of: impl Fn(&Candidate) -> f64) -> f64 {
        let of_each = numbers.iter();
        of_each.map(|number| of(self.candidates.get(*number))).sum()
    }

    fn bytes(&self, numbers: &[usize]) -> u64 {
        let bytes = numbers.iter();
        bytes.map(|number| self.candidates.get(*number).bytes).sum()
    }

    /// The candidate that is best to be taken next, or several that are merged.
    fn next(
        &mut self,
        chosen: &[usize],
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<Option<Vec<usize>>> {
        let taken = self.bytes(chosen);
        let mut worth: Vec<(Vec<usize>, f64)> = Vec::new();
        let candidates = self.candidates;
        for (at, mut group) in candidates.groups().enumerate() {
            group.retain(|number| !chosen.contains(number));
            let bytes = self.bytes(&group);
            let fits = self.limit_bytes.is_none_or(|limit| taken + bytes <= limit);
            if group.is_empty() || !fits {
                continue;
            }
            if !limits.go_on() {
                break;
            }
            let mut more = chosen.to_vec();
            more.extend(&group);
            let saved = match self.savings[at] {
                Some(known) => known,
                None => self.saved(chosen, &more, session, limits)?,
            };
            self.savings[at] = Some(saved);
            let benefit = saved - self.sum(&group, |candidate| candidate.upkeep_us);
            if saved > 0.0 && benefit > bytes as f64 * self.byte_us {
                worth.push((group, benefit));
            }
        }
        let best = worth
            .iter()
            .map(|(_, benefit)| *benefit)
            .fold(0.0, f64::max);
        let good = worth.into_iter().enumerate();
        let good = good.filter(|(_, (_, benefit))| *benefit >= best * NEARLY_AS_MUCH);
        // The shortest keys, then the greatest benefit; of equal ones that which was thought of first.
        let order = |a: &(usize, (Vec<usize>, f64)), b: &(usize, (Vec<usize>, f64))| {
            let (one, other) = (&a.1.0, &b.1.0);
            let bytes = |group: &[usize]| self.sum(group, |candidate| candidate.whole_bytes);
            let parts = |group: &[usize]| {
                self.sum(group, |candidate| {
                    candidate.index.definition.parts.len() as f64
                })
            };
            let percent = |benefit: f64| (benefit / best * 100.0).round();
            bytes(one)
                .total_cmp(&bytes(other))
                .then(parts(one).total_cmp(&parts(other)))
                .then(percent(b.1.1).total_cmp(&percent(a.1.1)))
                .then(a.0.cmp(&b.0))
        };
        Ok(good.min_by(order).map(|(_, (group, _))| group))
    }

    /// Microseconds that the workload saves with `more` over `fewer`, which has a part of them.
    fn saved(
        &mut self,
        fewer: &[usize],
        more: &[usize],
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<f64> {
        let added = more.iter().copied();
        let added: Vec<usize> = added.filter(|number| !fewer.contains(number)).collect();
        let mut saved = 0.0;
        for position in 0..self.study.statements.len() {
            if !self.may_use(position, &added) {
                continue;
            }
            let executions = self.study.statements[position].statement.executions;
            let before = self.cost(position, fewer, session, limits)?;
            let after = self.cost(position, more, session, limits)?;
            if is_helped(before, after) {
                saved += executions * (before - after);
            }
        }
        Ok(saved)
    }

    fn cost(
        &mut self,
        position: usize,
        chosen: &[usize],
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<f64> {
        let candidates = self.candidates;
        // Those that it cannot use make no difference.
        let own = chosen.iter().copied();
        let own = own.filter(|number| self.serves[*number][position]);
        let mut own: Vec<usize> = own.collect();
        own.sort_unstable();
        let tables = |own: &[usize]| candidates.tables_with(own);
        self.study.cost((position, own), tables, session, limits)
    }

    /// Takes candidates out that later ones have made superfluous.
    fn put_back(
        &mut self,
        chosen: &mut Vec<usize>,
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<()> {
        let mut position = 0;
        while position < chosen.len() && limits.go_on() {
            let number = chosen[position];
            let mut without = chosen.clone();
            without.remove(position);
            let candidate = self.candidates.get(number);
            let price = candidate.upkeep_us + candidate.bytes as f64 * self.byte_us;
            let saved = self.saved(&without, chosen, session, limits)?;
            match saved > price {
                true => position += 1,
                false => *chosen = without,
            }
        }
        Ok(())
    }

    /// What is proposed to be made, the most useful first. `made`: the indexes of those that are chosen.
    pub(super) fn proposals(
        &mut self,
        session: &mut Session,
        (chosen, made): (&[usize], &[(u64, Index)]),
        limits: &mut Limits,
    ) -> Result<Vec<Proposal>> {
        let mut proposals = Vec::new();
        for (number, (_, index)) in chosen.iter().zip(made) {
            let candidate = self.candidates.get(*number);
            let alone = [*number];
            let mut with: &[usize] = &alone;
            let mut helps = self.helps(with, session, limits)?;
            if helps.is_empty()
                && let Some(merged) = self.candidates.merged_with(*number, chosen)
            {
                with = merged;
                helps = self.helps(with, session, limits)?;
            }
            let used = match helps.first() {
                Some((best, _)) => self.used(*best, with, session)?,
                None => None,
            };
            let helps = helps.into_iter().map(|(_, help)| help).collect();
            proposals.push(Proposal::create(candidate, index, helps, used));
        }
        proposals.sort_by(|a, b| b.saved_us().total_cmp(&a.saved_us()));
        Ok(proposals)
    }

    /// The statements that some candidates help without others, by position, those that gain most first.
    fn helps(
        &mut self,
        with: &[usize],
        session: &mut Session,
        limits: &mut Limits,
    ) -> Result<Vec<(usize, Help)>> {
        let mut helps = Vec::new();
        for position in 0..self.study.statements.len() {
            if !self.may_use(position, with) {
                continue;
            }
            let before = self.study.statements[position].cost_us;
            let after = self.cost(position, with, session, limits)?;
            if !is_helped(before, after) {
                continue;
            }
            let statement = &self.study.statements[position].statement;
            let help = Help {
                digest: statement.digest.clone(),
                text: statement.text.clone(),
                database: statement.database.clone(),
                executions: statement.executions,
                before_us: before,
                after_us: after,
            };
            helps.push((position, help));
        }
        helps.sort_by(|(_, a), (_, b)| b.saved_us().total_cmp(&a.saved_us()));
        Ok(helps)
    }

    /// What a statement reads of candidates of one table that it has without others.
    fn used(&self, position: usize, with: &[usize], session: &mut Session) -> Result<Option<Used>> {
        let studied = &self.study.statements[position];
        let Some(table_id) = with.first().map(|of| self.candidates.get(*of).table_id) else {
            return Ok(None);
        };
        let planned = studied.planned_over(self.candidates.tables_with(with), session)?;
        let mut uses = planned.uses.into_iter();
        let used = uses.find(|used| {
            let mut secondary = used.secondary.iter();
            used.table.definition.id == table_id
                && secondary.any(|at| used.table.is_hypothetical(*at))
        });
        Ok(used.map(|used| Used {
            rows: used.rows,
            key_len: used.key_len,
            fetches_none: used.is_covering && !studied.changes_rows_of(table_id),
        }))
    }
}

/// Whether a statement gains enough.
fn is_helped(before_us: f64, after_us: f64) -> bool {
    after_us <= before_us * HELPED_SHARE && before_us - after_us >= LEAST_SAVED_US
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_no_help() {
        assert!(is_helped(1_000.0, 100.0));
        assert!(!is_helped(1_000.0, 950.0), "a small share");
        assert!(!is_helped(15.0, 1.0), "a small time");
    }
}
