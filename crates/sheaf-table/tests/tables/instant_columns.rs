//! Columns that are added and dropped without writing a row.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, Random, ReadAhead, Storage, StorageOptions, TreeId,
};
use sheaf_table::{
    AlterWork, Alteration, Catalog, Column, ColumnPlace, CreateTable, DefaultValue, InitialValues,
    NoProgress, TableError, check,
};
use sheaf_types::Value;
use sheaf_types::assignment::zero_value;
use sheaf_types::temporal::TimeZone;

use crate::fixture::*;

type Row = Vec<Value>;

/// The time of all statements, in microseconds.
const NOW: i64 = 1_700_000_000_000_000;

fn instantly() -> Alteration {
    Alteration::Instantly(InitialValues {
        now_micros: NOW,
        time_zone: TimeZone::UTC,
        zero_date: true,
    })
}

/// What rows have that were there before the column.
fn initial_of(column: &Column) -> Value {
    match &column.default {
        Some(DefaultValue::Value(value)) => value.clone(),
        Some(DefaultValue::CurrentTimestamp) => Value::DateTime(NOW),
        _ if column.nullable => Value::Null,
        _ => zero_value(&column.ty),
    }
}

/// `t (id INT PRIMARY KEY, number INT, name VARCHAR(30), KEY by_name (name))`
fn table(with_long_values: bool) -> CreateTable {
    let mut columns = vec![
        column("id", "int", false),
        column("number", "int", true),
        column("name", "varchar(30)", true),
    ];
    if with_long_values {
        columns.push(column("note", "text", true));
    }
    let mut request = CreateTable::new("d", "t", columns);
    request.primary_key = Some(parts(&["id"]));
    request.indexes = vec![index("by_name", &["name"], false)];
    request
}

fn with_default(name: &str, ty: &str, nullable: bool, default: Value) -> Column {
    let mut column = column(name, ty, nullable);
    column.default = Some(DefaultValue::Value(default));
    column
}

fn any_column(random: &mut Random, name: &str) -> Column {
    let price = Value::Decimal {
        unscaled: 150,
        scale: 2,
    };
    match random.below(14) {
        9 => column(name, "int", false),
        10 => column(name, "text", false),
        11 => column(name, "json", false),
        12 => column(name, "date", false),
        13 => {
            let mut now = column(name, "datetime(6)", false);
            now.default = Some(DefaultValue::CurrentTimestamp);
            now
        }
        0 => with_default(name, "int", false, Value::Int(7)),
        1 => with_default(name, "varchar(20)", true, text("later")),
        2 => with_default(name, "decimal(10,2)", false, price),
        3 => column(name, "double", true),
        4 => column(name, "date", true),
        5 => with_default(name, "varchar(10)", false, text("")),
        6 => with_default(name, "bigint", true, Value::Int(-1)),
        7 => with_default(name, "enum('a','b')", false, Value::Enum(2)),
        _ => column(name, "text", true),
    }
}

fn any_value(random: &mut Random, column: &Column) -> Value {
    if column.nullable && random.below(4) == 0 {
        return Value::Null;
    }
    let number = random.below(1_000) as i64;
    match column.ty.to_string().split('(').next().unwrap() {
        "int" | "bigint" => Value::Int(number),
        "varchar" => text(&"v".repeat(number as usize % 10)),
        "text" if number % 5 == 0 => text(&"long ".repeat(2_000 + number as usize)),
        "text" => text(&format!("note {number}")),
        "decimal" => price(i128::from(number)),
        "double" => Value::Double(number as f64),
        "date" => Value::Date(number as i32),
        "enum" => Value::Enum(1 + number as u16 % 2),
        "datetime" => Value::DateTime(number * 1_000_003),
        "json" => zero_value(&column.ty),
        other => panic!("{other}"),
    }
}

#[derive(Clone)]
struct Model {
    columns: Vec<Column>,
    rows: BTreeMap<i64, Row>,
}

impl Model {
    fn of(catalog: &Catalog) -> Model {
        Model {
            columns: catalog.table("d", "t").unwrap().definition.columns.clone(),
            rows: BTreeMap::new(),
        }
    }

    fn is_that_of(&self, catalog: &Catalog) -> bool {
        let table = catalog.table("d", "t").unwrap();
        let names = |columns: &[Column]| -> Vec<String> {
            columns.iter().map(|column| column.name.clone()).collect()
        };
        names(&self.columns) == names(&table.definition.columns)
            && values(&table).into_iter().eq(self.rows.values().cloned())
    }

    fn id(&self) -> usize {
        let id = |column: &Column| column.name == "id";
        self.columns.iter().position(id).unwrap()
    }
}

/// A change of the table, and what is there after it.
enum Step {
    Write(i64, Option<Row>),
    Alter(Vec<Alteration>),
}

fn any_step(random: &mut Random, model: &Model, number: u64) -> (Step, Model) {
    let mut next = model.clone();
    let step = match random.below(10) {
        0 | 1 => {
            let column = any_column(random, &format!("c{number}"));
            let at = random.below(1 + model.columns.len() as u64) as usize;
            let place = match at {
                0 => ColumnPlace::First,
                _ if at == model.columns.len() => ColumnPlace::Last,
                _ => ColumnPlace::After(model.columns[at - 1].name.clone()),
            };
            let initial = initial_of(&column);
            next.columns.insert(at, column.clone());
            let rows = next.rows.values_mut();
            rows.for_each(|row| row.insert(at, initial.clone()));
            Step::Alter(vec![instantly(), Alteration::AddColumn { column, place }])
        }
        2 => {
            let at = random.below(model.columns.len() as u64) as usize;
            let name = model.columns[at].name.clone();
            if name == "id" || model.columns.len() < 3 {
                return any_step(random, model, number);
            }
            next.columns.remove(at);
            next.rows.values_mut().for_each(|row| drop(row.remove(at)));
            Step::Alter(vec![instantly(), Alteration::DropColumn(name)])
        }
        3 if random.below(4) == 0 => Step::Alter(vec![Alteration::Rebuild]),
        3 | 4 if !model.rows.is_empty() => {
            let keys: Vec<&i64> = model.rows.keys().collect();
            let id = *keys[random.below(keys.len() as u64) as usize];
            next.rows.remove(&id);
            Step::Write(id, None)
        }
        _ => {
            let id = random.below(30) as i64;
            let columns = model.columns.iter();
            let mut row: Row = columns.map(|column| any_value(random, column)).collect();
            row[model.id()] = Value::Int(id);
            next.rows.insert(id, row.clone());
            Step::Write(id, Some(row))
        }
    };
    (step, next)
}

fn write(catalog: &Catalog, model: &Model, id: i64, row: Option<&Row>) -> Result<(), TableError> {
    let guard = catalog.open_for_row_writes("d", "t", NO_WAIT)?;
    let mut transaction = catalog.storage().begin_transaction();
    let mut of_key = vec![Value::Null; model.columns.len()];
    of_key[model.id()] = Value::Int(id);
    let key = guard.encode_primary_key(&of_key);
    let (mode, wait) = (LockMode::Exclusive, LockWait::No);
    let old = guard.lock_row(&mut transaction, &key, mode, wait)?;
    match (old, row) {
        (Some(old), Some(row)) => {
            guard.replace(&mut transaction, &key, &old, row)?;
        }
        (Some(_), None) => assert!(guard.delete(&mut transaction, &key)?),
        (None, Some(row)) => {
            guard.insert(&mut transaction, row)?;
        }
        (None, None) => {}
    }
    transaction.commit()?;
    Ok(())
}

fn make(catalog: &Catalog, model: &Model, step: &Step) -> Result<(), TableError> {
    match step {
        Step::Write(id, row) => write(catalog, model, *id, row.as_ref()),
        Step::Alter(changes) => alter(catalog, "t", changes),
    }
}

fn is_sound(catalog: &Catalog) {
    let report = check::check(catalog, 1 << 20, &NoProgress).unwrap();
    assert_eq!(report.found, 0, "{:?}", report.findings);
    let definition = &catalog.table("d", "t").unwrap().definition;
    let trees = 2 + definition.secondary.len() + usize::from(definition.overflow.is_some());
    assert_eq!(catalog.storage().tree_ids().unwrap().len(), trees);
}

fn definition_of(catalog: &Catalog) -> sheaf_table::TableDefinition {
    catalog.table("d", "t").unwrap().definition.clone()
}

fn entries_of(catalog: &Catalog, tree: TreeId) -> usize {
    let tree = catalog.storage().tree(tree).unwrap();
    let mut entries = tree.scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
    let mut count = 0;
    while let Some(leaf) = entries.next_leaf().unwrap() {
        count += leaf.len();
    }
    count
}

/// Long values go with their rows, those of columns that were dropped, too.
fn delete_all(catalog: &Catalog, model: &mut Model) {
    for id in model.rows.keys() {
        write(catalog, model, *id, None).unwrap();
    }
    model.rows.clear();
    assert!(model.is_that_of(catalog));
    if let Some(overflow) = definition_of(catalog).overflow {
        assert_eq!(entries_of(catalog, overflow), 0);
    }
}

#[test]
fn columns_come_and_go_and_survive_crashes() {
    let (mut instantly, mut anew) = (0, 0);
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut disk = SimulatedDisk::new(SimulationOptions::new(random.next()));
        let options = || StorageOptions {
            pool_bytes: 2 << 20,
            background_writer: false,
            log_segment_bytes: 512 << 10,
            log_limit_bytes: 1 << 20,
            ..StorageOptions::default()
        };
        let open = |disk: &Arc<SimulatedDisk>| {
            Catalog::open(Storage::open_on(disk.clone(), options()).unwrap()).unwrap()
        };
        let mut catalog = open(&disk);
        catalog.create_database("d").unwrap();
        catalog.create_table(table(seed % 2 == 0)).unwrap();
        let mut model = Model::of(&catalog);
        for round in 0..3 {
            if round > 0 {
                disk.crash_after(Some(random.below(200)));
            }
            for number in 0..60 {
                let (step, next) = any_step(&mut random, &model, round * 100 + number);
                let before = definition_of(&catalog);
                let mut leaves_rows = false;
                if let Step::Alter(changes) = &step {
                    let table = catalog.table("d", "t").unwrap();
                    match Catalog::alter_work(&table, changes).unwrap() {
                        AlterWork::Definition => (leaves_rows, instantly) = (true, instantly + 1),
                        _ => anew += 1,
                    }
                }
                match make(&catalog, &model, &step) {
                    Ok(()) => {
                        model = next;
                        // The rows are in the tree in which they were.
                        let now = definition_of(&catalog);
                        let is_same = now.primary.tree == before.primary.tree;
                        let keeps_long =
                            before.overflow.is_none() || before.overflow == now.overflow;
                        assert!(!leaves_rows || is_same && keeps_long);
                        // Else the disk may crash meanwhile.
                        assert!(round > 0 || model.is_that_of(&catalog), "seed {seed}");
                    }
                    Err(error) => {
                        assert!(disk.is_crashed(), "seed {seed}: {error}");
                        drop(catalog);
                        disk = disk.power_loss(SimulationOptions::new(random.next()));
                        catalog = open(&disk);
                        if !model.is_that_of(&catalog) {
                            assert!(next.is_that_of(&catalog), "seed {seed}");
                            model = next;
                        }
                        break;
                    }
                }
            }
            if disk.is_crashed() {
                drop(catalog);
                disk = disk.power_loss(SimulationOptions::new(random.next()));
                catalog = open(&disk);
                assert!(model.is_that_of(&catalog), "seed {seed}");
            } else {
                disk.crash_after(None);
            }
            is_sound(&catalog);
        }
        delete_all(&catalog, &mut model);
    }
    assert!(instantly > 100 && anew > 10, "{instantly} and {anew}");
}

#[test]
fn statistics_follow_their_columns() {
    let (_directory, catalog) = scratch();
    catalog.create_table(table(false)).unwrap();
    let rows: Vec<Row> = (0..100)
        .map(|id| vec![Value::Int(id), Value::Int(id % 10), text("name")])
        .collect();
    insert(&catalog, &rows).unwrap();
    catalog.analyze("d", "t", NO_WAIT).unwrap();
    let before = catalog.table("d", "t").unwrap().statistics().unwrap();
    let add = Alteration::AddColumn {
        column: column("first", "int", true),
        place: ColumnPlace::First,
    };
    let changes = [
        instantly(),
        add,
        Alteration::DropColumn("name".into()),
        Alteration::DropIndex("by_name".into()),
    ];
    alter(&catalog, "t", &changes).unwrap();
    let table = catalog.table("d", "t").unwrap();
    let after = table.statistics().unwrap();
    assert_eq!(after.columns.len(), 3);
    assert_eq!(after.columns[1..], before.columns[..2]);
    assert_eq!(
        values(&table)[5],
        [Value::Null, Value::Int(5), Value::Int(5)]
    );
}

#[test]
fn what_rows_cannot_be_read_as_is_written_anew() {
    let (_directory, catalog) = scratch();
    catalog.create_table(table(true)).unwrap();
    let table = catalog.table("d", "t").unwrap();
    let work = |change: Alteration| Catalog::alter_work(&table, &[instantly(), change]).unwrap();
    let add = |column: Column| Alteration::AddColumn {
        column,
        place: ColumnPlace::Last,
    };
    let mut now = column("at", "datetime", true);
    now.default = Some(DefaultValue::CurrentTimestamp);
    let mut numbered = column("c", "int", false);
    numbered.auto_increment = true;
    for (change, expected) in [
        (add(column("c", "int", true)), AlterWork::Definition),
        (
            Alteration::DropColumn("number".into()),
            AlterWork::Definition,
        ),
        // A string, and one with its index.
        (Alteration::DropColumn("note".into()), AlterWork::Definition),
        (Alteration::DropColumn("name".into()), AlterWork::Definition),
        (add(column("c", "int", false)), AlterWork::Definition),
        (add(column("c", "blob", false)), AlterWork::Definition),
        (add(now), AlterWork::Definition),
        (
            add(with_default(
                "c",
                "varchar(2000)",
                true,
                text(&"x".repeat(1_025)),
            )),
            AlterWork::Rebuild,
        ),
        (Alteration::Rebuild, AlterWork::Rebuild),
    ] {
        let text = format!("{change:?}");
        assert_eq!(work(change), expected, "{text}");
    }
    let by_number = Alteration::AddIndex(index("by_number", &["c"], false));
    let keyed = [instantly(), add(numbered), by_number];
    assert_eq!(
        Catalog::alter_work(&table, &keyed).unwrap(),
        AlterWork::Rebuild
    );
    let strict = Alteration::Instantly(InitialValues {
        now_micros: NOW,
        time_zone: TimeZone::UTC,
        zero_date: false,
    });
    let dated = [strict, add(column("c", "date", false))];
    assert_eq!(
        Catalog::alter_work(&table, &dated).unwrap(),
        AlterWork::Rebuild
    );
}

/// A table without long values gets a tree for them when it may have some.
#[test]
fn long_values_get_a_tree_when_they_may_come() {
    let (_directory, catalog) = scratch();
    catalog.create_table(table(false)).unwrap();
    let rows: Vec<Row> = (0..50)
        .map(|id| vec![Value::Int(id), Value::Int(id), text("name")])
        .collect();
    insert(&catalog, &rows).unwrap();
    let before = definition_of(&catalog);
    assert_eq!(before.overflow, None);
    let note = Alteration::AddColumn {
        column: column("note", "text", false),
        place: ColumnPlace::Last,
    };
    alter(&catalog, "t", &[instantly(), note]).unwrap();
    let after = definition_of(&catalog);
    assert_eq!(after.primary.tree, before.primary.tree);
    let overflow = after.overflow.unwrap();
    assert_eq!(entries_of(&catalog, overflow), 0);
    let mut model = Model::of(&catalog);
    for mut row in rows {
        let id = row[0].clone();
        row.push(text(""));
        if let Value::Int(id) = id {
            if id % 2 == 0 {
                row[3] = text(&"long ".repeat(3_000));
                write(&catalog, &model, id, Some(&row)).unwrap();
            }
            model.rows.insert(id, row);
        }
    }
    assert!(model.is_that_of(&catalog) && entries_of(&catalog, overflow) > 0);
    is_sound(&catalog);
    // They go with the next change of the row.
    let changes = [instantly(), Alteration::DropColumn("note".into())];
    alter(&catalog, "t", &changes).unwrap();
    let shorter = Model::of(&catalog);
    let rows = model.rows.into_iter().map(|(id, mut row)| {
        row.truncate(3);
        (id, row)
    });
    let mut model = Model {
        rows: rows.collect(),
        ..shorter
    };
    let long = entries_of(&catalog, overflow);
    assert!(model.is_that_of(&catalog) && long > 0);
    for id in [0, 1] {
        let row = model.rows.get_mut(&id).unwrap();
        row[1] = Value::Int(-1);
        let row = row.clone();
        write(&catalog, &model, id, Some(&row)).unwrap();
    }
    assert_eq!(entries_of(&catalog, overflow), long - long / 25);
    is_sound(&catalog);
    delete_all(&catalog, &mut model);
}
