//! Columns that are added and dropped without writing a row.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{LockMode, LockWait, Random, Storage, StorageOptions};
use sheaf_table::{
    AlterWork, Alteration, Catalog, Column, ColumnPlace, CreateTable, DefaultValue, NoProgress,
    TableError, check,
};
use sheaf_types::Value;

use crate::fixture::*;

type Row = Vec<Value>;

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
    match random.below(9) {
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
            let initial = match &column.default {
                Some(DefaultValue::Value(value)) => value.clone(),
                _ => Value::Null,
            };
            next.columns.insert(at, column.clone());
            let rows = next.rows.values_mut();
            rows.for_each(|row| row.insert(at, initial.clone()));
            Step::Alter(vec![
                Alteration::Instantly,
                Alteration::AddColumn { column, place },
            ])
        }
        2 => {
            let at = random.below(model.columns.len() as u64) as usize;
            let name = model.columns[at].name.clone();
            if name == "id" || model.columns.len() < 3 {
                return any_step(random, model, number);
            }
            next.columns.remove(at);
            next.rows.values_mut().for_each(|row| drop(row.remove(at)));
            Step::Alter(vec![Alteration::Instantly, Alteration::DropColumn(name)])
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
                if let Step::Alter(changes) = &step {
                    let table = catalog.table("d", "t").unwrap();
                    match Catalog::alter_work(&table, changes).unwrap() {
                        AlterWork::Definition => instantly += 1,
                        _ => anew += 1,
                    }
                }
                match make(&catalog, &model, &step) {
                    Ok(()) => {
                        model = next;
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
        Alteration::Instantly,
        add,
        Alteration::DropColumn("name".into()),
        Alteration::DropIndex("by_name".into()),
    ];
    let refused = Catalog::alter_work(&catalog.table("d", "t").unwrap(), &changes).unwrap();
    assert_eq!(refused, AlterWork::Rebuild);
    alter(&catalog, "t", &[Alteration::DropIndex("by_name".into())]).unwrap();
    alter(&catalog, "t", &changes[..3]).unwrap();
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
    let work =
        |change: Alteration| Catalog::alter_work(&table, &[Alteration::Instantly, change]).unwrap();
    let add = |column: Column| Alteration::AddColumn {
        column,
        place: ColumnPlace::Last,
    };
    let mut now = column("at", "datetime", true);
    now.default = Some(DefaultValue::CurrentTimestamp);
    for (change, expected) in [
        (add(column("c", "int", true)), AlterWork::Definition),
        (
            Alteration::DropColumn("number".into()),
            AlterWork::Definition,
        ),
        // Strings may be long.
        (Alteration::DropColumn("note".into()), AlterWork::Rebuild),
        (Alteration::DropColumn("name".into()), AlterWork::Rebuild),
        (add(column("c", "int", false)), AlterWork::Rebuild),
        (add(now), AlterWork::Rebuild),
        (Alteration::Rebuild, AlterWork::Rebuild),
    ] {
        let text = format!("{change:?}");
        assert_eq!(work(change), expected, "{text}");
    }
}
