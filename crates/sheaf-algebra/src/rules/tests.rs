//! Rules on trees made by hand, before and after.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{Constraint, Constraints, ScalarValue};
use datafusion_expr::TableSource;
use sheaf_exec::aggregates::aggregate_function;
use sheaf_exec::functions::truncated::TruncatedTexts;
use sheaf_exec::typing::{Purpose, Texts};

use crate::column::{Column, ColumnId, Columns, Origin};
use crate::relation::{DependentKind, Item, JoinKind, Relation, Scan, SetKind, SortKey};
use crate::scalar::typing::AggregateCall;
use crate::scalar::{Aggregate, Comparison, Scalar, Truth, Typing};

/// A table `(id INT PRIMARY KEY, k INT, s VARCHAR)`.
#[derive(Debug)]
struct Table {
    schema: SchemaRef,
    constraints: Constraints,
}

impl TableSource for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }
}

/// A statement that is made by hand.
struct Statement {
    columns: Columns,
    texts: Texts,
    tables: u32,
}

/// A table's columns.
struct Ids {
    id: ColumnId,
    k: ColumnId,
    s: ColumnId,
}

impl Statement {
    fn new() -> Statement {
        Statement {
            columns: Columns::default(),
            texts: Texts::of(Default::default(), TruncatedTexts::default()),
            tables: 0,
        }
    }

    fn typing(&self) -> Typing<'_> {
        Typing {
            texts: &self.texts,
            purpose: Purpose::Other,
        }
    }

    fn table(&mut self, name: &str) -> (Relation, Ids) {
        let schema = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int32, false),
            Field::new("k", DataType::Int32, true),
            Field::new("s", DataType::Utf8View, true),
        ]));
        let reference = self.tables;
        self.tables += 1;
        let ids: Vec<ColumnId> = (0..3)
            .map(|position| {
                self.columns.add(Column {
                    field: Arc::clone(&schema.fields()[position]),
                    name: schema.fields()[position].name().clone(),
                    origin: Some(Origin {
                        reference,
                        position: position as u32,
                    }),
                })
            })
            .collect();
        let source = Table {
            schema,
            constraints: Constraints::new_unverified(vec![Constraint::PrimaryKey(vec![0])]),
        };
        let scan = Scan {
            reference,
            name: name.to_string(),
            source: Arc::new(source),
            columns: ids.clone(),
        };
        let ids = Ids {
            id: ids[0],
            k: ids[1],
            s: ids[2],
        };
        (scan.relation(), ids)
    }

    fn column(&self, id: ColumnId) -> Scalar {
        Scalar::made(id, &self.columns)
    }

    fn compare(&self, left: ColumnId, operator: Comparison, right: ColumnId) -> Scalar {
        let (left, right) = (self.column(left), self.column(right));
        self.typing().comparison(operator, left, right).unwrap()
    }

    fn equal(&self, left: ColumnId, right: ColumnId) -> Scalar {
        self.compare(left, Comparison::Equal, right)
    }

    fn equal_to(&self, column: ColumnId, text: &str) -> Scalar {
        let typing = self.typing();
        let literal = typing
            .literal(ScalarValue::Utf8(Some(text.to_string())))
            .unwrap();
        typing
            .comparison(Comparison::Equal, self.column(column), literal)
            .unwrap()
    }

    fn count(&mut self) -> (ColumnId, Aggregate) {
        let aggregate = self
            .typing()
            .aggregate(AggregateCall {
                function: aggregate_function("count").unwrap(),
                arguments: vec![Scalar::literal(ScalarValue::Int64(Some(1)))],
                distinct: false,
            })
            .unwrap();
        let field = Arc::clone(aggregate.field());
        (self.columns.add_computed("count", field), aggregate)
    }

    fn mark(&mut self, nullable: bool) -> ColumnId {
        let field = Field::new("mark", DataType::Boolean, nullable);
        self.columns.add_computed("mark", Arc::new(field))
    }

    fn rewritten(&mut self, relation: Relation) -> String {
        let Statement { columns, texts, .. } = self;
        let typing = Typing {
            texts,
            purpose: Purpose::Other,
        };
        super::rewrite(relation, columns, &typing)
            .unwrap()
            .to_string()
    }
}

#[test]
fn an_expression_has_its_type_when_it_is_made() {
    let mut statement = Statement::new();
    let (_, t) = statement.table("t");
    // A constant goes to the column's type, and a text is compared by its sort key.
    assert_eq!(statement.equal_to(t.k, "7").to_string(), "#1 = 7");
    let equal = statement.equal_to(t.s, "x").to_string();
    assert!(equal.starts_with("ck(#2, utf8mb4_"), "{equal}");
    let sum = statement
        .typing()
        .call("$add", vec![statement.column(t.id), statement.column(t.k)]);
    let sum = sum.unwrap();
    assert!(sum.is_nullable());
    // An operand that is no column and no literal is what it was.
    let less = statement
        .typing()
        .comparison(Comparison::Less, sum, statement.column(t.k));
    assert_eq!(
        less.unwrap().to_string(),
        "$add(#0, #1) < CAST(#1 AS Int64)"
    );
}

#[test]
fn conditions_go_to_the_side_that_they_are_about() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let on = statement.equal(of_a.id, of_b.k);
    let condition = Scalar::and([
        on,
        statement.equal_to(of_a.k, "1"),
        statement.equal_to(of_b.id, "2"),
    ]);
    let relation = a.join(JoinKind::Inner, b, None).filter(condition);
    assert_eq!(
        statement.rewritten(relation),
        "\
Join inner, #0 = #4
  Filter #1 = 1
    Scan a #0 #1 #2
  Filter #3 = 2
    Scan b #3 #4 #5"
    );
}

#[test]
fn a_condition_that_refuses_null_makes_an_inner_join() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let on = statement.equal(of_a.id, of_b.k);
    let on_inner = Scalar::and([on, statement.equal_to(of_b.id, "2")]);
    let outer = a
        .clone()
        .join(JoinKind::LeftOuter, b.clone(), Some(on_inner.clone()));
    // IS NULL does not refuse it.
    let is_null = statement.column(of_b.k).is_null();
    assert_eq!(
        statement.rewritten(outer.filter(is_null)),
        "\
Filter #4 IS NULL
  Join left outer, #0 = #4
    Scan a #0 #1 #2
    Filter #3 = 2
      Scan b #3 #4 #5"
    );
    let outer = a.join(JoinKind::LeftOuter, b, Some(on_inner));
    let refuses = statement.equal_to(of_b.k, "3");
    assert_eq!(
        statement.rewritten(outer.filter(refuses)),
        "\
Join inner, #0 = #4
  Filter #0 = 3
    Scan a #0 #1 #2
  Filter #3 = 2 AND #4 = 3
    Scan b #3 #4 #5"
    );
}

#[test]
fn a_condition_refuses_null_whatever_it_is_computed_by() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let on = statement.equal(of_a.id, of_b.k);
    let typing = statement.typing();
    let number = |value| typing.literal(ScalarValue::Int64(Some(value))).unwrap();
    let above = |column: ColumnId| {
        let one_more = vec![statement.column(column), number(1)];
        let one_more = typing.call("$add", one_more).unwrap();
        typing
            .comparison(Comparison::Greater, one_more, number(3))
            .unwrap()
    };
    let both = || [above(of_b.k), above(of_b.id)];
    let cases = [
        (above(of_b.k), true),
        (above(of_b.k).not(), true),
        (Scalar::or(both()), true),
        (Scalar::and(both()).not(), true),
        (above(of_b.k).test(Truth::False, false), true),
        (Scalar::or([above(of_b.k), above(of_a.k)]), false),
        (above(of_b.k).test(Truth::True, true), false),
        (above(of_b.k).is_null(), false),
    ];
    let cases = cases.map(|(condition, is_inner)| {
        let outer = a
            .clone()
            .join(JoinKind::LeftOuter, b.clone(), Some(on.clone()));
        (outer.filter(condition), is_inner)
    });
    for (relation, is_inner) in cases {
        let rewritten = statement.rewritten(relation);
        assert_eq!(rewritten.contains("Join inner"), is_inner, "{rewritten}");
    }
}

#[test]
fn what_holds_of_one_side_of_a_join_holds_of_what_is_equal_to_it() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let (c, of_c) = statement.table("c");
    // Through two equalities, and from a filter that is below a join already.
    let a_is_5 = statement.equal_to(of_a.id, "5");
    let (a_b, b_c) = (
        statement.equal(of_a.id, of_b.k),
        statement.equal(of_b.k, of_c.id),
    );
    let relation = a
        .clone()
        .filter(a_is_5.clone())
        .join(JoinKind::Inner, b.clone(), Some(a_b.clone()))
        .join(JoinKind::LeftOuter, c, Some(b_c));
    assert_eq!(
        statement.rewritten(relation),
        "\
Join left outer, #4 = #6
  Join inner, #0 = #4
    Filter #0 = 5
      Scan a #0 #1 #2
    Filter #4 = 5
      Scan b #3 #4 #5
  Filter #6 = 5
    Scan c #6 #7 #8"
    );
    // Of the inner side of an outer join nothing follows for the outer one.
    let b_is_5 = statement.equal_to(of_b.k, "5");
    let outer = a.clone().join(
        JoinKind::LeftOuter,
        b.clone().filter(b_is_5),
        Some(a_b.clone()),
    );
    assert_eq!(
        statement.rewritten(outer),
        "\
Join left outer, #0 = #4
  Scan a #0 #1 #2
  Filter #4 = 5
    Scan b #3 #4 #5"
    );
    // Neither for what decides whether a mark is NULL.
    let field = Arc::new(Field::new("mark", DataType::Boolean, true));
    let mark = statement.columns.add_computed("mark", field);
    let marked = a.filter(a_is_5).join(JoinKind::Mark(mark), b, Some(a_b));
    assert_eq!(
        statement.rewritten(marked),
        "\
Join mark #9, #0 = #4
  Filter #0 = 5
    Scan a #0 #1 #2
  Scan b #3 #4 #5"
    );
}

#[test]
fn the_inner_side_of_an_outer_join_may_be_null_above_it() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let on = statement.equal(of_a.k, of_b.id);
    let outer = a.join(JoinKind::LeftOuter, b, Some(on));
    let properties = outer.properties();
    assert!(properties.not_null.contains(of_a.id) && !properties.not_null.contains(of_b.id));
    // A row of a finds at most one of b, so the key of a is one of both.
    assert!(
        properties
            .keys
            .iter()
            .any(|key| key.len() == 1 && key.contains(of_a.id))
    );
    // a.k decides which row of b it is, if any.
    let given = [of_a.k].into_iter().collect();
    assert!(properties.determined_by(&given).contains(of_b.s));
    assert!(!properties.determined_by(&given).contains(of_a.s));
}

#[test]
fn exists_is_a_semijoin_and_not_in_an_antijoin_by_what_may_be_equal() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let mark = statement.mark(false);
    let correlated = b.filter(statement.equal(of_b.k, of_a.id));
    let exists = a
        .clone()
        .dependent_join(DependentKind::Mark(mark), correlated, None)
        .filter(statement.column(mark));
    assert_eq!(
        statement.rewritten(exists),
        "\
Join semi, #4 = #0
  Scan a #0 #1 #2
  Scan b #3 #4 #5"
    );
    let (c, of_c) = statement.table("c");
    let mark = statement.mark(true);
    let equal = statement.equal(of_a.k, of_c.k);
    let not_in = a
        .dependent_join(DependentKind::Mark(mark), c, Some(equal))
        .filter(statement.column(mark).not());
    assert_eq!(
        statement.rewritten(not_in),
        "\
Join anti, #1 = #8 OR #1 IS NULL OR #8 IS NULL
  Scan a #0 #1 #2
  Scan c #7 #8 #9"
    );
}

#[test]
fn a_count_of_no_rows_is_0() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let (count, aggregate) = statement.count();
    let correlated = b.filter(statement.equal(of_b.k, of_a.id));
    let counted = correlated.group(Vec::new(), Vec::new(), vec![(count, aggregate)]);
    let shown = Item {
        column: count,
        value: statement.column(count),
    };
    let relation = a
        .dependent_join(DependentKind::Single(count), counted, None)
        .project(vec![shown]);
    assert_eq!(
        statement.rewritten(relation),
        "\
Project #6
  Project #6 := CASE WHEN #7 IS NOT NULL THEN #7 ELSE 0 END
    Join left outer, #0 = #4
      Scan a #0 #1 #2
      Group by #4: #7 := count(1)
        Scan b #3 #4 #5"
    );
}

#[test]
fn what_cannot_be_pulled_up_is_joined_with_the_distinct_values() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let (count, aggregate) = statement.count();
    // Not an equality: no key of groups.
    let less = statement.compare(of_b.k, Comparison::Less, of_a.id);
    let counted = b
        .filter(less)
        .group(Vec::new(), Vec::new(), vec![(count, aggregate)]);
    let shown = Item {
        column: count,
        value: statement.column(count),
    };
    let relation = a
        .dependent_join(DependentKind::Single(count), counted, None)
        .project(vec![shown]);
    let rewritten = statement.rewritten(relation);
    assert!(!rewritten.contains("Dependent"), "{rewritten}");
    assert!(rewritten.contains("Join inner, #4 < #"), "{rewritten}");
    // The values are those of a's key, once each.
    assert!(rewritten.contains("Group by #"), "{rewritten}");
    assert!(rewritten.contains("#0 <=> #"), "{rewritten}");
}

#[test]
fn a_text_is_taken_by_its_bytes() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let (count, aggregate) = statement.count();
    let less = statement.compare(of_b.s, Comparison::Less, of_a.s);
    let counted = b
        .filter(less)
        .group(Vec::new(), Vec::new(), vec![(count, aggregate)]);
    let relation = a.dependent_join(DependentKind::Single(count), counted, None);
    let rewritten = statement.rewritten(relation);
    // 'a' and 'A' are equal, and are two values.
    assert!(rewritten.contains("$cast_binary(#2) <=> #"), "{rewritten}");
    assert!(rewritten.contains(" carrying #"), "{rewritten}");
}

#[test]
fn the_first_of_several_rows_is_an_aggregate() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let by_k = statement.equal(of_b.k, of_a.id);
    let newest = SortKey {
        value: statement.column(of_b.id),
        descends: true,
    };
    let shown = Item {
        column: of_b.s,
        value: statement.column(of_b.s),
    };
    let first = b.filter(by_k).sort(vec![newest]).limit(0, Some(1));
    let first = first.project(vec![shown]);
    let relation = a.dependent_join(DependentKind::Single(of_b.s), first, None);
    let rewritten = statement.rewritten(relation);
    assert!(rewritten.contains("Join left outer"), "{rewritten}");
    assert!(rewritten.contains(":= first_value(#5)"), "{rewritten}");
}

#[test]
fn what_is_null_of_no_rows_is_computed_below_the_join() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let by_k = statement.equal(of_b.k, of_a.id);
    let aggregate = statement.typing().aggregate(AggregateCall {
        function: aggregate_function("max").unwrap(),
        arguments: vec![statement.column(of_b.id)],
        distinct: false,
    });
    let aggregate = aggregate.unwrap();
    let field = Arc::clone(aggregate.field());
    let largest = statement.columns.add_computed("max", field);
    let one = Scalar::literal(ScalarValue::Int64(Some(1)));
    let sum = statement
        .typing()
        .call("$add", vec![statement.column(largest), one]);
    let sum = sum.unwrap();
    let value = statement
        .columns
        .add_computed("sum", Arc::clone(sum.field()));
    let right = b.filter(by_k);
    let right = right.group(Vec::new(), Vec::new(), vec![(largest, aggregate)]);
    let right = right.project(vec![Item {
        column: value,
        value: sum,
    }]);
    let relation = a.dependent_join(DependentKind::Single(value), right, None);
    // So a condition on it makes an inner join.
    let condition = statement.compare(of_a.k, Comparison::Less, value);
    let rewritten = statement.rewritten(relation.filter(condition));
    assert!(rewritten.contains("Join inner"), "{rewritten}");
    assert!(!rewritten.contains("left outer"), "{rewritten}");
}

#[test]
fn what_cannot_be_taken_apart_is_counted_for_each_row() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let later = statement.compare(of_b.id, Comparison::Greater, of_a.id);
    let field = Arc::new(Field::new("level", DataType::UInt64, false));
    let level = statement.columns.add_computed("level", field);
    // The group of all rows is there, also of no rows.
    let right = b.filter(later);
    let right = right.rollup(vec![of_b.k], Vec::new(), Vec::new(), level);
    let mark = statement.mark(false);
    let relation = a.dependent_join(DependentKind::Mark(mark), right, None);
    let condition = statement.column(mark);
    let rewritten = statement.rewritten(relation.filter(condition));
    assert!(rewritten.contains("DependentJoin single"), "{rewritten}");
    assert!(rewritten.contains(":= max(2)"), "{rewritten}");
}

#[test]
fn limits_go_down_as_far_as_they_may() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let on = statement.equal(of_a.id, of_b.k);
    let outer = a.clone().join(JoinKind::LeftOuter, b.clone(), Some(on));
    let shown = outer.project(vec![Item {
        column: of_b.s,
        value: statement.column(of_b.s),
    }]);
    assert_eq!(
        statement.rewritten(shown.limit(2, Some(3))),
        "\
Project #5
  Limit 3 behind 2
    Join left outer, #0 = #4
      Limit 5
        Scan a #0 #1 #2
      Scan b #3 #4 #5"
    );
    let of_some = a.clone().limit(1, Some(10)).limit(4, Some(100));
    assert_eq!(
        statement.rewritten(of_some),
        "Limit 6 behind 5\n  Scan a #0 #1 #2"
    );
    let pairs = a.join(JoinKind::Inner, b, None).limit(0, Some(7));
    assert_eq!(
        statement.rewritten(pairs),
        "\
Limit 7
  Join inner
    Limit 7
      Scan a #0 #1 #2
    Limit 7
      Scan b #3 #4 #5"
    );
}

#[test]
fn what_has_no_rows_leaves_nothing_behind() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let one = || Scalar::literal(ScalarValue::Int64(Some(1)));
    let two = || Scalar::literal(ScalarValue::Int64(Some(2)));
    let never = || Scalar::comparison(Comparison::Equal, one(), two());
    let nothing = || b.clone().filter(never());
    let on = statement.equal(of_a.id, of_b.k);
    let joined = |kind| a.clone().join(kind, nothing(), Some(on.clone()));
    assert_eq!(
        statement.rewritten(joined(JoinKind::Inner)),
        "Values of 0 rows #0, #1, #2, #3, #4, #5"
    );
    assert_eq!(
        statement.rewritten(joined(JoinKind::Anti)),
        "Scan a #0 #1 #2"
    );
    assert_eq!(
        statement.rewritten(joined(JoinKind::LeftOuter)),
        "\
Project #0, #1, #2, #3 := NULL, #4 := NULL, #5 := NULL
  Scan a #0 #1 #2"
    );
    // A group of all rows is there without any.
    let (count, aggregate) = statement.count();
    let all = vec![(count, aggregate)];
    let of_all = nothing().group(Vec::new(), Vec::new(), all.clone());
    assert_eq!(
        statement.rewritten(of_all),
        "Group: #6 := count(1)\n  Values of 0 rows #3, #4, #5"
    );
    let of_keys = nothing().group(vec![of_b.k], Vec::new(), all);
    assert_eq!(statement.rewritten(of_keys), "Values of 0 rows #4, #6");
    // A key of a table is never NULL, so that all rows pass.
    let is_there = statement.column(of_a.id).test(Truth::Null, true);
    assert_eq!(
        statement.rewritten(a.clone().filter(is_there)),
        "Scan a #0 #1 #2"
    );
    assert_eq!(
        statement.rewritten(a.limit(3, Some(0))),
        "Values of 0 rows #0, #1, #2"
    );
}

#[test]
fn a_computed_column_of_a_missing_row_may_be_null() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let on = statement.equal(of_a.k, of_b.k);
    let outer = a.join(JoinKind::LeftOuter, b, Some(on));
    let typing = statement.typing();
    let one = typing.literal(ScalarValue::Int64(Some(1))).unwrap();
    let value = typing
        .call("$add", vec![statement.column(of_b.id), one])
        .unwrap();
    assert!(!value.is_nullable());
    let field = Arc::clone(value.field());
    let next = statement.columns.add_computed("next", field);
    let listed = outer
        .project(vec![Item {
            column: next,
            value,
        }])
        .limit(0, Some(9));
    assert!(!listed.properties().not_null.contains(next));
    let is_missing = statement.column(next).is_null();
    let rewritten = statement.rewritten(listed.filter(is_missing));
    assert!(rewritten.starts_with("Filter "), "{rewritten}");
}

#[test]
fn an_outer_join_that_nobody_needs_goes() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let shown = |statement: &Statement, relation: Relation, column: ColumnId| {
        relation.project(vec![Item {
            column,
            value: statement.column(column),
        }])
    };
    let by_key = statement.equal(of_a.k, of_b.id);
    let by_other = statement.equal(of_a.id, of_b.k);
    let outer = |condition: &Scalar| {
        let condition = Some(condition.clone());
        a.clone().join(JoinKind::LeftOuter, b.clone(), condition)
    };
    let relation = shown(&statement, outer(&by_key), of_a.k);
    assert_eq!(
        statement.rewritten(relation),
        "Project #1\n  Scan a #0 #1 #2"
    );
    // There may be several partners.
    let relation = shown(&statement, outer(&by_other), of_a.k);
    let joined = "\
Project #1
  Join left outer, #0 = #4
    Scan a #0 #1 #2
    Scan b #3 #4 #5";
    assert_eq!(statement.rewritten(relation), joined);
    // How many, does not matter below a distinct.
    let relation = outer(&by_other).distinct(vec![of_a.k]);
    assert_eq!(
        statement.rewritten(relation),
        "Group by #1\n  Scan a #0 #1 #2"
    );
    let inner = a.join(JoinKind::Inner, b, Some(by_other));
    assert_eq!(
        statement.rewritten(inner.distinct(vec![of_b.s])),
        "\
Group by #5
  Join semi, #0 = #4
    Scan b #3 #4 #5
    Scan a #0 #1 #2"
    );
}

#[test]
fn a_key_that_compares_otherwise_has_several_partners() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let texts = b.clone().distinct(vec![of_b.s]);
    let typing = statement.typing();
    let collated = |name: &str| {
        let name = typing
            .literal(ScalarValue::Utf8(Some(name.to_string())))
            .unwrap();
        let text = typing.call("$collate", vec![statement.column(of_a.s), name]);
        let of_b = statement.column(of_b.s);
        typing
            .comparison(Comparison::Equal, text.unwrap(), of_b)
            .unwrap()
    };
    let joined = |condition: Scalar| {
        let joined = a
            .clone()
            .join(JoinKind::LeftOuter, texts.clone(), Some(condition));
        joined.project(vec![Item {
            column: of_a.k,
            value: statement.column(of_a.k),
        }])
    };
    let (own, other) = (
        joined(collated("utf8mb4_0900_ai_ci")),
        joined(collated("utf8mb4_general_ci")),
    );
    assert_eq!(statement.rewritten(own), "Project #1\n  Scan a #0 #1 #2");
    assert!(statement.rewritten(other).contains("Join left outer"));
}

#[test]
fn orders_are_as_short_as_keys_allow() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let key = |statement: &Statement, column: ColumnId| SortKey {
        value: statement.column(column),
        descends: false,
    };
    let on = statement.equal(of_a.k, of_b.k);
    let joined = a.clone().join(JoinKind::Inner, b, Some(on));
    let keys = [of_a.k, of_b.k, of_a.id, of_a.k, of_b.id, of_b.s];
    let keys = keys.map(|column| key(&statement, column));
    assert_eq!(
        statement.rewritten(joined.sort(keys.to_vec())),
        "\
Sort #1, #4, #0, #3
  Join inner, #1 = #4
    Scan a #0 #1 #2
    Scan b #3 #4 #5"
    );
    // A text determines nothing: 'a' and 'A' are equal, and are not the same.
    let keys = [of_a.s, of_a.k].map(|column| key(&statement, column));
    assert_eq!(
        statement.rewritten(a.clone().sort(keys.to_vec())),
        "Sort #2, #1\n  Scan a #0 #1 #2"
    );
    let one = a.clone().limit(0, Some(1));
    let sorted = one.sort(vec![key(&statement, of_a.k)]);
    assert_eq!(statement.rewritten(sorted), "Limit 1\n  Scan a #0 #1 #2");
}

#[test]
fn constants_of_a_list_sort_nothing() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let (b, of_b) = statement.table("b");
    let never = || Scalar::constant(false);
    let keys = [of_b.s, of_a.k, of_b.id].map(|column| SortKey {
        value: statement.column(column),
        descends: false,
    });
    let joined = |b: Relation| {
        a.clone()
            .join(JoinKind::LeftOuter, b, None)
            .sort(keys.to_vec())
    };
    assert_eq!(
        statement.rewritten(joined(b.clone().filter(never()))),
        "\
Sort #1
  Project #0, #1, #2, #3 := NULL, #4 := NULL, #5 := NULL
    Scan a #0 #1 #2"
    );
    // Where a row of the list is missing, its constant is NULL.
    let listed = b.project(vec![
        Item {
            column: of_b.s,
            value: Scalar::literal(ScalarValue::Int64(Some(1))),
        },
        Item {
            column: of_b.id,
            value: statement.column(of_b.id),
        },
    ]);
    assert!(statement.rewritten(joined(listed)).starts_with("Sort #5, "));
}

#[test]
fn a_union_of_unions_is_one() {
    let mut statement = Statement::new();
    let mut tables = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let (table, ids) = statement.table(name);
        let items = vec![Item {
            column: ids.k,
            value: statement.column(ids.k),
        }];
        tables.push(table.project(items));
    }
    let [a, b, c, d] = tables.try_into().unwrap();
    let union = |statement: &mut Statement, inputs: Vec<Relation>| {
        let field = Field::new("k", DataType::Int32, true);
        let column = statement.columns.add_computed("k", Arc::new(field));
        let union = Relation::set_operation(SetKind::Union, inputs, vec![column]);
        (union, column)
    };
    // Distinct inside, but not outside.
    let (inner, of_inner) = union(&mut statement, vec![a.clone(), b.clone()]);
    let (outer, _) = union(
        &mut statement,
        vec![inner.distinct(vec![of_inner]), c.clone()],
    );
    assert_eq!(
        statement.rewritten(outer),
        "\
Union #13
  Group by #12
    Union #12
      Project #1
        Scan a #0 #1 #2
      Project #4
        Scan b #3 #4 #5
  Project #7
    Scan c #6 #7 #8"
    );
    // Outside, too.
    let (inner, of_inner) = union(&mut statement, vec![a.clone(), b.clone()]);
    let (outer, of_outer) = union(
        &mut statement,
        vec![inner.distinct(vec![of_inner]), c.clone()],
    );
    assert_eq!(
        statement.rewritten(outer.distinct(vec![of_outer])),
        "\
Group by #15
  Union #15
    Project #1
      Scan a #0 #1 #2
    Project #4
      Scan b #3 #4 #5
    Project #7
      Scan c #6 #7 #8"
    );
    // The list of a union, of each of its inputs.
    let (middle, of_middle) = union(&mut statement, vec![c, a]);
    let negated = {
        let typing = statement.typing();
        let middle = statement.column(of_middle);
        typing.call("$negate", vec![middle]).unwrap()
    };
    let field = Arc::clone(negated.field());
    let column = statement.columns.add_computed("-k", field);
    let listed = middle.project(vec![Item {
        column,
        value: negated,
    }]);
    let (outer, _) = union(&mut statement, vec![listed, b, d]);
    assert_eq!(
        statement.rewritten(outer),
        "\
Union #18
  Project #19 := $negate(#7)
    Project #7
      Scan c #6 #7 #8
  Project #20 := $negate(#1)
    Project #1
      Scan a #0 #1 #2
  Project #4
    Scan b #3 #4 #5
  Project #10
    Scan d #9 #10 #11"
    );
}

#[test]
fn rows_with_a_key_are_distinct() {
    let mut statement = Statement::new();
    let (a, of_a) = statement.table("a");
    let relation = a.clone().distinct(vec![of_a.s, of_a.id]);
    assert_eq!(
        statement.rewritten(relation),
        "Project #2, #0\n  Scan a #0 #1 #2"
    );
    let relation = a.distinct(vec![of_a.s, of_a.k]);
    assert_eq!(
        statement.rewritten(relation),
        "Group by #2, #1\n  Scan a #0 #1 #2"
    );
}
