//! What hints say about joins: how each relation may be joined, and which relations come before it.
//!
//! A method that hints exclude is still taken if there is no other.
//!
//! **Join order.** JOIN_ORDER, JOIN_PREFIX, JOIN_SUFFIX and STRAIGHT_JOIN become sets of relations that must come
//! before others, on top of what outer joins and semijoins need:
//!
//! ```text
//!   JOIN_ORDER(b, c)    b -> c                    a, d anywhere
//!   JOIN_PREFIX(b, c)   b -> c -> a, d
//!   JOIN_SUFFIX(b, c)   a, d -> b -> c
//! ```
//!
//! A hint after which no order is left is ignored with a warning.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion_common::Result;
use sheaf_exec::SheafTableSource;
use sheaf_exec::hints::{
    BlockHints, JoinOrderHint, JoinOrderKind, SemijoinStrategy, SubqueryHint, TableHints,
};

use crate::hints::{block_of, is_semijoin, references_of};
use crate::join::method::Method;
use crate::logical::join_graph::{JoinGraph, Relation, RelationKind, RelationSet, plain_scan};
use crate::settings::OptimizerSwitch;

/// How a relation may be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JoinMethods {
    pub keyed: bool,
    pub hash: bool,
    /// Nested loops and sort-merge joins. Not if a hint asks for one of the others.
    pub rest: bool,
}

impl JoinMethods {
    pub(crate) fn allow(self, method: &Method) -> bool {
        match method {
            Method::Keyed(_) => self.keyed,
            Method::Hash { .. } => self.hash,
            _ => self.rest,
        }
    }

    fn of(
        relation: &Relation<'_>,
        block: Option<&BlockHints>,
        switch: &OptimizerSwitch,
    ) -> JoinMethods {
        let mut methods = JoinMethods {
            keyed: true,
            hash: switch.hash_join,
            rest: true,
        };
        if let Some(hints) = table_hints(relation) {
            if let Some(hash) = hints.hash_join {
                methods = JoinMethods {
                    keyed: !hash,
                    hash,
                    rest: !hash,
                };
            }
            if hints.batched_key_access == Some(true) {
                methods = JoinMethods {
                    keyed: true,
                    hash: false,
                    rest: false,
                };
            }
        }
        if matches!(
            relation.kind,
            RelationKind::Semi | RelationKind::Anti { .. } | RelationKind::Mark
        ) {
            let none = SubqueryHint::default();
            let hint = block.map_or(&none, |block| &block.subquery);
            // What a hint names overrides the switches.
            let by_switch = |on: bool| on || !hint.only.is_empty();
            methods.keyed &=
                hint.allows(SemijoinStrategy::FirstMatch) && by_switch(switch.firstmatch);
            methods.hash &=
                hint.allows(SemijoinStrategy::Materialization) && by_switch(switch.materialization);
            methods.rest &= hint.only.is_empty() && hint.never.is_empty();
        }
        methods
    }
}

/// The hints on a relation that is a table.
fn table_hints<'p>(relation: &Relation<'p>) -> Option<&'p TableHints> {
    let (scan, _) = plain_scan(relation.plan)?;
    let source = scan.source.downcast_ref::<SheafTableSource>()?;
    Some(&source.hints)
}

/// What hints say about the relations of a graph.
pub(crate) struct JoinHints {
    /// By relation: those that come before it.
    before: Vec<RelationSet>,
    /// By relation: whether hints on the order of joins put others before it.
    ordered: Vec<bool>,
    methods: Vec<JoinMethods>,
    /// Hints that no order can obey.
    pub conflicts: Vec<String>,
}

impl JoinHints {
    pub(crate) fn new(graph: &JoinGraph<'_>, switch: &OptimizerSwitch) -> Result<JoinHints> {
        let count = graph.relations.len();
        let mut references = Vec::with_capacity(count);
        let mut methods = Vec::with_capacity(count);
        let mut blocks: BTreeMap<u32, Arc<BlockHints>> = BTreeMap::new();
        for relation in &graph.relations {
            let below = references_of(relation.plan)?;
            let block = block_of(&below).map(Arc::as_ref);
            methods.push(JoinMethods::of(relation, block, switch));
            for (_, block) in &below {
                blocks.insert(block.number, Arc::clone(block));
            }
            references.push(below);
        }
        let mut hints = JoinHints {
            before: vec![RelationSet::default(); count],
            ordered: Vec::new(),
            methods,
            conflicts: Vec::new(),
        };
        for hint in blocks.values().flat_map(|block| &block.join_orders) {
            let items = items_of(hint, &references);
            if !hints.add(graph, order_of(hint.kind, &items, count)) {
                hints.conflicts.push(hint.text.clone());
            }
        }
        hints.ordered = hints.before.iter().map(|set| !set.is_empty()).collect();
        hints.add_tests(graph, &references, switch);
        Ok(hints)
    }

    /// Subqueries that are not to be semijoins come after all tables around them.
    fn add_tests(
        &mut self,
        graph: &JoinGraph<'_>,
        references: &[Vec<(u32, Arc<BlockHints>)>],
        switch: &OptimizerSwitch,
    ) {
        let joined =
            |kind: &RelationKind| matches!(kind, RelationKind::Inner | RelationKind::Outer);
        let kinds = graph.relations.iter().enumerate();
        let tables = kinds
            .filter(|(_, relation)| joined(&relation.kind))
            .fold(RelationSet::default(), |set, (number, _)| set.with(number));
        for (number, relation) in graph.relations.iter().enumerate() {
            if !joined(&relation.kind) && !is_semijoin(&references[number], switch) {
                let mut before = vec![RelationSet::default(); graph.relations.len()];
                before[number] = tables;
                self.add(graph, before);
            }
        }
    }

    /// Adds what comes before what. False, with nothing added, if no order is left then.
    fn add(&mut self, graph: &JoinGraph<'_>, before: Vec<RelationSet>) -> bool {
        let both: Vec<RelationSet> = self
            .before
            .iter()
            .zip(&before)
            .map(|(known, new)| known.union(*new))
            .collect();
        let is_possible = has_order(graph, &both);
        if is_possible {
            self.before = both;
        }
        is_possible
    }

    /// Relations that hints want before this one.
    pub(crate) fn before(&self, relation: usize) -> RelationSet {
        self.before[relation]
    }

    /// Whether hints on the order of joins put others before the relation: then it is also read after them.
    pub(crate) fn comes_after(&self, relation: usize) -> bool {
        self.ordered[relation]
    }

    pub(crate) fn methods(&self, relation: usize) -> JoinMethods {
        self.methods[relation]
    }
}

/// The relations that a hint's tables are in; each only once.
fn items_of(hint: &JoinOrderHint, references: &[Vec<(u32, Arc<BlockHints>)>]) -> Vec<RelationSet> {
    let mut seen = RelationSet::default();
    let mut items = Vec::new();
    for tables in &hint.tables {
        let mut item = RelationSet::default();
        for (relation, below) in references.iter().enumerate() {
            let is_meant = below.iter().any(|(number, _)| tables.contains(number));
            if is_meant && !seen.contains(relation) {
                item = item.with(relation);
            }
        }
        seen = seen.union(item);
        if !item.is_empty() {
            items.push(item);
        }
    }
    items
}

/// What comes before each of `count` relations if the items of a hint are in order.
fn order_of(kind: JoinOrderKind, items: &[RelationSet], count: usize) -> Vec<RelationSet> {
    let mut before = vec![RelationSet::default(); count];
    let mut so_far = RelationSet::default();
    for item in items {
        for relation in item.iter() {
            before[relation] = so_far;
        }
        so_far = so_far.union(*item);
    }
    let others = (0..count).filter(|relation| !so_far.contains(*relation));
    let others = others.fold(RelationSet::default(), RelationSet::with);
    match kind {
        JoinOrderKind::Order => {}
        JoinOrderKind::Prefix => others.iter().for_each(|other| before[other] = so_far),
        JoinOrderKind::Suffix => so_far
            .iter()
            .for_each(|relation| before[relation] = before[relation].union(others)),
    }
    before
}

/// Whether the relations can be joined one after the other with what each needs before it.
fn has_order(graph: &JoinGraph<'_>, before: &[RelationSet]) -> bool {
    let count = graph.relations.len();
    let mut set = RelationSet::default();
    for _ in 0..count {
        let next = (0..count).find(|relation| {
            let entry = &graph.relations[*relation];
            !set.contains(*relation)
                && before[*relation].is_subset(set)
                && if set.is_empty() {
                    entry.kind == RelationKind::Inner
                } else {
                    entry.needs.is_subset(set)
                }
        });
        match next {
            Some(relation) => set = set.with(relation),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(relations: &[usize]) -> RelationSet {
        let relations = relations.iter().copied();
        relations.fold(RelationSet::default(), RelationSet::with)
    }

    #[test]
    fn prefixes_come_before_the_others_and_suffixes_after() {
        let items = [set(&[2]), set(&[0])];
        let order = |kind| order_of(kind, &items, 4);
        let nothing = set(&[]);
        assert_eq!(
            order(JoinOrderKind::Order),
            [set(&[2]), nothing, nothing, nothing]
        );
        assert_eq!(
            order(JoinOrderKind::Prefix),
            [set(&[2]), set(&[0, 2]), nothing, set(&[0, 2])]
        );
        assert_eq!(
            order(JoinOrderKind::Suffix),
            [set(&[1, 2, 3]), nothing, set(&[1, 3]), nothing]
        );
    }
}
