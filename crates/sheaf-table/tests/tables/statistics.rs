//! Statistics against exact counts: on skewed, uniform and correlated columns, from the whole table and from samples,
//! with the bounds that the documentation states.

use std::ops::Bound;
use std::sync::Arc;

use sheaf_storage::Random;
use sheaf_table::statistics::DEFAULT_BUCKETS;
use sheaf_table::{
    AnalyzeOptions, AutoAnalyze, Catalog, ColumnEstimator, CreateTable, HypotheticalIndex,
    IndexPart, LockRequest, NoProgress, PartBounds, RowSample, SampleLimits, Table, TableError,
};
use sheaf_types::Value;

use crate::fixture::{NO_WAIT, column, index, load, open, parts, scratch, text};

const ROWS: i64 = 100_000;

/// Columns of the example, by position.
const ID: usize = 0;
const SKEWED: usize = 1;
const UNIFORM: usize = 2;
const DAY: usize = 3;
const PRICE: usize = 4;
const RATIO: usize = 5;
const NAME: usize = 6;
const STATE: usize = 7;

const WORDS: [&str; 10] = [
    "apple",
    "Banana",
    "cherry",
    "date",
    "elderberry",
    "Fig",
    "grape",
    "lemon",
    "mango",
    "ZUCCHINI",
];

fn example() -> CreateTable {
    let mut request = CreateTable::new(
        "d",
        "t",
        vec![
            column("id", "int", false),
            column("skewed", "int", true),
            column("uniform", "bigint", true),
            column("day", "date", true),
            column("price", "decimal(15,2)", true),
            column("ratio", "double", true),
            column("name", "varchar(200)", true),
            column("state", "enum('new','open','closed')", true),
        ],
    );
    request.primary_key = Some(parts(&["id"]));
    request.indexes = vec![
        index("by_skewed", &["skewed", "uniform"], false),
        index("by_uniform", &["uniform"], false),
        index("by_day", &["day", "name"], false),
        index("by_state", &["state", "skewed"], false),
    ];
    request
}

/// Draws ranks 0, 1, ... by Zipf's law with exponent 1.
struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    fn new(values: usize) -> Zipf {
        let mut sum = 0.0;
        let next = (1..=values).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Zipf {
            cumulative: next.collect(),
        }
    }

    fn draw(&self, random: &mut Random) -> usize {
        let share = random.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let at = share * self.cumulative[self.cumulative.len() - 1];
        self.cumulative.partition_point(|&below| below < at)
    }
}

fn rows() -> Vec<Vec<Value>> {
    let mut random = Random::new(42);
    let zipf = Zipf::new(5_000);
    let words = Zipf::new(2_000);
    (0..ROWS)
        .map(|id| {
            let rank = zipf.draw(&mut random) as i64;
            let word = words.draw(&mut random);
            let uniform = match random.below(10) {
                0 => Value::Null,
                _ => Value::Int(random.below(50_000) as i64),
            };
            let x = random.below(1 << 20) as f64 / f64::from(1 << 20);
            vec![
                Value::Int(id),
                // Neighbouring values are not of neighbouring frequencies.
                Value::Int(rank * 7919 % 5_000),
                uniform,
                Value::Date(8_000 + (id / 50) as i32),
                Value::Decimal {
                    unscaled: i128::from(ROWS - id) * 3,
                    scale: 2,
                },
                Value::Double(x * x * 1e6 - 1e5),
                Value::Text(format!("{}{word}", WORDS[word % WORDS.len()])),
                Value::Enum([1, 1, 1, 1, 1, 1, 2, 2, 2, 3][random.below(10) as usize]),
            ]
        })
        .collect()
}

/// The example, filled, in a directory that is gone afterwards.
fn filled() -> (tempfile::TempDir, Arc<Catalog>, Vec<Vec<Value>>) {
    let (directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    let rows = rows();
    load(
        &catalog,
        rows.iter().cloned(),
        64 << 20,
        Arc::new(NoProgress),
    )
    .unwrap();
    (directory, catalog, rows)
}

fn table(catalog: &Catalog) -> Arc<Table> {
    catalog.table("d", "t").unwrap()
}

fn estimator(catalog: &Catalog, column: usize) -> ColumnEstimator {
    table(catalog).column_estimator(column).unwrap()
}

fn share(rows: &[Vec<Value>], accepts: impl Fn(&[Value]) -> bool) -> f64 {
    rows.iter().filter(|row| accepts(row)).count() as f64 / rows.len() as f64
}

/// Share of the rows whose value in a column lies within bounds that are values of the same kind.
fn share_within(
    rows: &[Vec<Value>],
    column: usize,
    lower: &Bound<Value>,
    upper: &Bound<Value>,
) -> f64 {
    share(rows, |row| {
        let value = &row[column];
        let compare = |bound: &Value| value.compare_same_type(bound).unwrap();
        !value.is_null()
            && match lower {
                Bound::Included(bound) => compare(bound).is_ge(),
                Bound::Excluded(bound) => compare(bound).is_gt(),
                Bound::Unbounded => true,
            }
            && match upper {
                Bound::Included(bound) => compare(bound).is_le(),
                Bound::Excluded(bound) => compare(bound).is_lt(),
                Bound::Unbounded => true,
            }
    })
}

fn distinct(rows: &[Vec<Value>], columns: &[usize]) -> u64 {
    let mut values: Vec<String> = rows
        .iter()
        .map(|row| {
            columns
                .iter()
                .map(|&column| format!("{:?}|", row[column]))
                .collect()
        })
        .collect();
    values.sort();
    values.dedup();
    values.len() as u64
}

/// The greatest error of ranges that begin and end at values of the column, and are open on one side or on none.
fn worst_range_error(catalog: &Catalog, rows: &[Vec<Value>], column: usize) -> f64 {
    let estimator = estimator(catalog, column);
    let mut random = Random::new(column as u64);
    let mut worst: f64 = 0.0;
    for round in 0..60 {
        let mut value = || loop {
            let value = &rows[random.below(rows.len() as u64) as usize][column];
            if !value.is_null() {
                return value.clone();
            }
        };
        let (mut low, mut high) = (value(), value());
        if low.compare_same_type(&high).unwrap().is_gt() {
            std::mem::swap(&mut low, &mut high);
        }
        let (lower, upper) = match round % 5 {
            0 => (Bound::Unbounded, Bound::Excluded(high)),
            1 => (Bound::Unbounded, Bound::Included(high)),
            2 => (Bound::Excluded(low), Bound::Unbounded),
            3 => (Bound::Included(low), Bound::Included(high)),
            _ => (Bound::Excluded(low), Bound::Excluded(high)),
        };
        let exact = share_within(rows, column, &lower, &upper);
        let estimate = estimator
            .within(&PartBounds::Between { lower, upper })
            .unwrap();
        worst = worst.max((estimate - exact).abs());
    }
    worst
}

/// Columns whose values compare as [`Value::compare_same_type`] compares.
const COMPARABLE: [usize; 7] = [ID, SKEWED, UNIFORM, DAY, PRICE, RATIO, STATE];

#[test]
fn a_whole_table_gives_exact_shares_and_ranges_within_two_buckets() {
    let (_directory, catalog, rows) = filled();
    let options = AnalyzeOptions {
        sample_leaves: usize::MAX,
        ..AnalyzeOptions::default()
    };
    let statistics = catalog.analyze_with("d", "t", &options, NO_WAIT).unwrap();
    assert_eq!(statistics.rows, ROWS as u64);
    for (column, found) in statistics.columns.iter().enumerate() {
        let nulls = share(&rows, |row| row[column].is_null());
        let exact = distinct(&rows, &[column]) - u64::from(nulls > 0.0);
        assert_eq!(found.distinct.value, exact, "column {column}");
        assert_eq!((found.distinct.low, found.distinct.high), (exact, exact));
        assert!((found.null_share - nulls).abs() < 1e-9, "column {column}");
    }
    // Histograms are made from 30,000 rows: two buckets of a hundredth, and three standard deviations of at most
    // 0.5 / sqrt(30,000).
    for column in COMPARABLE {
        let worst = worst_range_error(&catalog, &rows, column);
        assert!(worst < 0.02 + 0.009, "column {column}: {worst}");
    }
    for (position, index) in table(&catalog).definition.secondary.iter().enumerate() {
        let columns: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
        let exact: Vec<u64> = (1..=columns.len())
            .map(|parts| distinct(&rows, &columns[..parts]))
            .collect();
        let found = table(&catalog).distinct_prefixes(Some(position)).unwrap();
        assert_eq!(found, exact, "{}", index.name);
    }
}

#[test]
fn a_sample_of_leaves_gives_what_it_can() {
    let (_directory, catalog, rows) = filled();
    for seed in 0..3 {
        let options = AnalyzeOptions {
            seed,
            sample_leaves: 200,
            ..AnalyzeOptions::default()
        };
        let statistics = catalog.analyze_with("d", "t", &options, NO_WAIT).unwrap();
        assert!(statistics.columns[ID].sampling_rate < 0.6);
        for (column, found) in statistics.columns.iter().enumerate() {
            let nulls = share(&rows, |row| row[column].is_null());
            let exact = distinct(&rows, &[column]) - u64::from(nulls > 0.0);
            let estimate = found.distinct;
            assert!(
                estimate.low <= exact && exact <= estimate.high,
                "column {column}: {exact}, {estimate:?}"
            );
            let factor = estimate.value as f64 / exact as f64;
            assert!(
                (0.75..1.35).contains(&factor),
                "column {column}: {exact}, {estimate:?}"
            );
            assert!((found.null_share - nulls).abs() < 0.02, "column {column}");
        }
        for column in COMPARABLE {
            // Columns that follow the clustered order are sampled by leaves, not by rows: 200 of them.
            let bound = match column {
                ID | DAY | PRICE => 0.02 + 3.0 * 0.5 / 200f64.sqrt(),
                _ => 0.02 + 3.0 * 0.5 / 25_000f64.sqrt(),
            };
            let worst = worst_range_error(&catalog, &rows, column);
            assert!(worst < bound, "column {column}: {worst}");
        }
        for (position, index) in table(&catalog).definition.secondary.iter().enumerate() {
            let columns: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
            let found = table(&catalog).distinct_prefixes(Some(position)).unwrap();
            for parts in 1..=columns.len() {
                let exact = distinct(&rows, &columns[..parts]) as f64;
                let factor = found[parts - 1] as f64 / exact;
                assert!(
                    (0.75..1.35).contains(&factor),
                    "{} {parts}: {exact}, {found:?}",
                    index.name
                );
            }
        }
    }
}

#[test]
fn common_values_are_told_apart_from_rare_ones() {
    let (_directory, catalog, rows) = filled();
    let options = AnalyzeOptions {
        sample_leaves: 200,
        ..AnalyzeOptions::default()
    };
    catalog.analyze_with("d", "t", &options, NO_WAIT).unwrap();
    let skewed = estimator(&catalog, SKEWED);
    let exact = |value: i64| share(&rows, |row| row[SKEWED] == Value::Int(value));
    for rank in 0..20 {
        let value = rank * 7919 % 5_000;
        let (estimate, exact) = (skewed.equal(&Value::Int(value)), exact(value));
        // Seen some hundred times each.
        assert!(
            (estimate / exact - 1.0).abs() < 0.35,
            "rank {rank}: {estimate}, {exact}"
        );
    }
    let histogram = skewed.statistics().histogram.as_ref().unwrap();
    let rarest = histogram
        .common
        .iter()
        .map(|common| common.share)
        .fold(1.0, f64::min);
    for rank in (500..5_000).step_by(37) {
        let value = rank * 7919 % 5_000;
        let estimate = skewed.equal(&Value::Int(value));
        assert!(
            estimate <= rarest && (estimate - exact(value)).abs() <= rarest,
            "rank {rank}"
        );
    }
    let one_row = 1.0 / ROWS as f64;
    let list: Vec<Value> = [0, 7919 % 5_000, 0].map(Value::Int).into();
    let both = skewed.equal(&list[0]) + skewed.equal(&list[1]);
    assert!((skewed.one_of(&list) - both).abs() < 1e-9);
    assert_eq!(skewed.equal(&Value::Null), 0.0);

    let state = estimator(&catalog, STATE);
    assert!((state.equal(&Value::Enum(1)) - 0.6).abs() < 0.02);
    assert!((state.equal(&Value::Enum(3)) - 0.1).abs() < 0.02);
    assert_eq!(state.null(), 0.0);
    assert!(state.equal(&Value::Enum(0)) >= one_row);
}

/// What a sorted sample says of an index that is not there, against the rows and an index that is.
#[test]
fn a_sorted_sample_stands_for_an_index() {
    let (_directory, catalog, rows) = filled();
    let table = table(&catalog);
    let limits = SampleLimits {
        rows: 20_000,
        bytes: 64 << 20,
        seed: 7,
    };
    let sample = RowSample::read(&table, limits, None).unwrap();
    assert!(!sample.is_complete() && sample.len() > 10_000);
    let part = |column| IndexPart {
        column,
        prefix_length: None,
        descending: false,
    };
    let columns = vec![part(SKEWED), part(UNIFORM)];
    let named = ("thought_of".to_string(), 1);
    let index = HypotheticalIndex::new(&table, named, columns, &sample, None).unwrap();
    let within = |estimate: f64, exact: f64, factor: f64| {
        let ratio = estimate / exact;
        assert!(
            (1.0 / factor..=factor).contains(&ratio),
            "{estimate} {exact}"
        );
    };
    let bounds = PartBounds::Between {
        lower: Bound::Included(Value::Int(10_000)),
        upper: Bound::Excluded(Value::Int(20_000)),
    };
    for value in [0, 2_919, 838].map(Value::Int) {
        let has_value = |row: &[Value]| row[SKEWED] == value;
        let range = index
            .layout()
            .range(std::slice::from_ref(&value), None)
            .range;
        let exact = share(&rows, has_value) * ROWS as f64;
        within(index.estimate_entries(&range) as f64, exact, 1.3);
        let range = index
            .layout()
            .range(std::slice::from_ref(&value), Some(&bounds))
            .range;
        let exact = share(&rows, |row| {
            has_value(row) && matches!(row[UNIFORM], Value::Int(10_000..20_000))
        });
        within(
            index.estimate_entries(&range) as f64,
            exact * ROWS as f64,
            1.6,
        );
    }
    within(
        index.distinct_keys(1),
        distinct(&rows, &[SKEWED]) as f64,
        1.6,
    );
    // Fewer rows say about the same of what is frequent.
    let thinned = sample.thinned(2_000).unwrap();
    assert!(thinned.len() < sample.len() / 4 && thinned.table_rows() == sample.table_rows());
    let named = ("at_first_sight".to_string(), 2);
    let columns = vec![part(SKEWED)];
    let seen = HypotheticalIndex::new(&table, named, columns, &thinned, None).unwrap();
    let most = seen.layout().range(&[Value::Int(0)], None).range;
    let exact = share(&rows, |row| row[SKEWED] == Value::Int(0)) * ROWS as f64;
    within(seen.estimate_entries(&most) as f64, exact, 1.5);
    assert!(thinned.thinned(2_000).is_none());
    let real = table.secondary[0].statistics();
    within(
        index.statistics().leaf_pages as f64,
        real.leaf_pages as f64,
        1.5,
    );
    let supposed = table.with_hypothetical_indexes(vec![Arc::new(index)]);
    assert!(supposed.is_version_of(&table));
    assert!(supposed.is_hypothetical(4) && !supposed.is_hypothetical(3));
    assert_eq!(table.definition.secondary.len(), 4);
    let entries = supposed.secondary_tree(4).statistics().entries;
    assert_eq!(entries, table.row_count_estimate());
}

#[test]
fn an_analysis_that_is_told_to_stop_leaves_no_statistics() {
    let (_directory, catalog, _) = filled();
    let stop = || true;
    let request = LockRequest {
        interrupt: Some(&stop),
        ..LockRequest::from(NO_WAIT)
    };
    let options = AnalyzeOptions::default();
    let error = catalog.analyze_with("d", "t", &options, request);
    assert!(matches!(error, Err(TableError::Interrupted)));
    let histograms = catalog.update_histograms("d", "t", &[NAME], 8, &options, request);
    assert!(matches!(histograms, Err(TableError::Interrupted)));
    assert!(catalog.table("d", "t").unwrap().statistics().is_none());
}

#[test]
fn strings_are_counted_by_their_collation() {
    let (_directory, catalog, rows) = filled();
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let name = estimator(&catalog, NAME);
    let lower = |row: &[Value]| match &row[NAME] {
        Value::Text(text) => text.to_lowercase(),
        _ => String::new(),
    };
    for word in WORDS {
        let exact = share(&rows, |row| lower(row).starts_with(&word.to_lowercase()));
        let like = name
            .within(&PartBounds::StartsWith(word.to_lowercase()))
            .unwrap();
        assert!((like - exact).abs() < 0.03, "{word}%: {like}, {exact}");
    }
    let exact = share(&rows, |row| lower(row) == "apple0");
    for spelling in ["apple0", "APPLE0", "äpple0"] {
        let estimate = name.equal(&text(spelling));
        assert!(
            (estimate / exact - 1.0).abs() < 0.1,
            "{spelling}: {estimate}, {exact}"
        );
    }
    let up_to_date = PartBounds::Between {
        lower: Bound::Unbounded,
        upper: Bound::Excluded(text("date")),
    };
    let exact = share(&rows, |row| lower(row).as_str() < "date");
    assert!((name.within(&up_to_date).unwrap() - exact).abs() < 0.03);
}

#[test]
fn correlation_and_widths() {
    let (_directory, catalog, _) = filled();
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let statistics = table(&catalog).statistics().unwrap();
    let correlation = |column: usize| statistics.columns[column].correlation;
    assert!(correlation(ID) == 1.0 && correlation(DAY) > 0.999);
    assert!(correlation(PRICE) < -0.999);
    assert!(correlation(UNIFORM).abs() < 0.05 && correlation(RATIO).abs() < 0.05);
    assert_eq!(statistics.columns[ID].average_bytes, 4.0);
    assert_eq!(statistics.columns[PRICE].average_bytes, 8.0);
    let name = statistics.columns[NAME].average_bytes;
    assert!((4.0..13.0).contains(&name), "{name}");
    assert!(
        (45.0..80.0).contains(&statistics.row_bytes),
        "{}",
        statistics.row_bytes
    );
    let by_uniform = table(&catalog).definition.secondary[1].id;
    // NULL byte and BIGINT, and the primary key.
    let entry = statistics.indexes[&by_uniform].entry_bytes;
    assert!((12.0..=13.0).contains(&entry), "{entry}");
}

#[test]
fn the_same_seed_gives_the_same_statistics() {
    let (_directory, catalog, _) = filled();
    let analyze = |seed| {
        let options = AnalyzeOptions {
            seed,
            sample_leaves: 100,
            now: 5,
        };
        catalog.analyze_with("d", "t", &options, NO_WAIT).unwrap()
    };
    let first = analyze(1);
    assert_ne!(analyze(2), first);
    assert_eq!(analyze(1), first);
    assert_eq!(first.columns[ID].collected_at, 5);
}

#[test]
fn statistics_and_dropped_histograms_outlive_a_restart() {
    let (directory, catalog, _) = filled();
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let dropped = catalog
        .drop_histograms("d", "t", &[NAME, ID], NO_WAIT)
        .unwrap();
    assert_eq!(dropped, [true, true]);
    let options = AnalyzeOptions::default();
    catalog
        .update_histograms("d", "t", &[SKEWED], 500, &options, NO_WAIT)
        .unwrap();
    let before = table(&catalog).statistics().unwrap();
    catalog.storage().close().unwrap();
    drop(catalog);

    let catalog = open(directory.path());
    assert_eq!(table(&catalog).statistics().unwrap(), before);
    let dropped = catalog.drop_histograms("d", "t", &[NAME], NO_WAIT).unwrap();
    assert_eq!(dropped, [false]);
    assert_eq!(
        estimator(&catalog, NAME).within(&PartBounds::StartsWith("a".into())),
        None
    );

    // An analysis keeps to what was asked for.
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let statistics = table(&catalog).statistics().unwrap();
    let buckets = |column: usize| {
        let histogram = statistics.columns[column].histogram.as_ref();
        histogram.map(|histogram| histogram.requested_buckets)
    };
    assert_eq!((buckets(NAME), buckets(ID)), (None, None));
    assert_eq!(buckets(SKEWED), Some(500));
    assert_eq!(buckets(UNIFORM), Some(DEFAULT_BUCKETS));
    catalog.storage().close().unwrap();
}

#[test]
fn a_table_is_analyzed_again_when_enough_of_it_changed() {
    let (_directory, catalog, _) = filled();
    let due = AutoAnalyze::default();
    let options = AnalyzeOptions::default();
    let step = || catalog.analyze_step(&due, &options).unwrap();
    assert_eq!(table(&catalog).changed_rows(), ROWS as u64);
    assert!(step() && !step());
    assert_eq!(table(&catalog).changed_rows(), 0);

    let change = |ids: std::ops::Range<i64>| {
        let table = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
        let mut transaction = catalog.storage().begin_transaction();
        for id in ids {
            let key = table.encode_primary_key(&[Value::Int(id)]);
            let mut row = table.read_row(&key).unwrap().unwrap();
            row[STATE] = Value::Enum(3);
            assert!(table.update(&mut transaction, &key, &row).unwrap());
        }
        transaction.commit().unwrap();
    };
    change(0..5_000);
    assert_eq!(table(&catalog).changed_rows(), 5_000);
    assert!(!step());
    change(5_000..10_000);
    assert!(step() && !step());
    assert_eq!(table(&catalog).changed_rows(), 0);
    assert!(estimator(&catalog, STATE).equal(&Value::Enum(3)) > 0.18);
}

#[test]
fn a_table_is_analyzed_while_its_rows_change() {
    let (_directory, catalog, _) = filled();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let table = catalog.open_for_row_writes("d", "t", NO_WAIT).unwrap();
            let mut id = 0;
            while !is_over.load(relaxed) {
                let mut transaction = catalog.storage().begin_transaction();
                for _ in 0..50 {
                    id = (id + 7919) % ROWS;
                    let key = table.encode_primary_key(&[Value::Int(id)]);
                    if let Some(mut row) = table.read_row(&key).unwrap() {
                        if id % 3 == 0 {
                            table.delete(&mut transaction, &key).unwrap();
                        } else {
                            row[NAME] = text(&"longer than it was before".repeat(5));
                            table.update(&mut transaction, &key, &row).unwrap();
                        }
                    }
                }
                transaction.commit().unwrap();
            }
        });
        for seed in 0..20 {
            let options = AnalyzeOptions {
                seed,
                sample_leaves: 100,
                ..AnalyzeOptions::default()
            };
            let found = catalog.analyze_with("d", "t", &options, NO_WAIT).unwrap();
            let ids = found.columns[ID].distinct;
            let rows = found.rows as f64;
            assert!(
                (0.5..2.0).contains(&(ids.value as f64 / rows)),
                "{ids:?} of {rows}"
            );
        }
        is_over.store(true, relaxed);
    });
}

#[test]
fn empty_tables_and_tables_of_nothing_but_null() {
    let (_directory, catalog) = scratch();
    catalog.create_table(example()).unwrap();
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let name = estimator(&catalog, NAME);
    assert!(name.equal(&text("x")) <= 1.0);
    assert_eq!(name.within(&PartBounds::StartsWith("x".into())), None);

    let guard = catalog.open_for_write("d", "t", NO_WAIT).unwrap();
    let mut transaction = catalog.storage().begin_transaction();
    for id in 0..100 {
        let mut row = vec![Value::Null; 8];
        row[ID] = Value::Int(id);
        guard.insert(&mut transaction, &row).unwrap();
    }
    transaction.commit().unwrap();
    drop(guard);
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let name = estimator(&catalog, NAME);
    assert_eq!(name.null(), 1.0);
    assert_eq!(name.one_of(&[text("x")]), 0.0);
    assert_eq!(name.statistics().distinct.value, 0);
}
