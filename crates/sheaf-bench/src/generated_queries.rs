//! Tables whose columns are skewed and correlated, and queries over them, drawn from a seed.
//!
//! | column | its values |
//! |---|---|
//! | `skew` | small numbers are frequent: the square of a uniform one |
//! | `uniform` | evenly spread; a tenth NULL |
//! | `together` | goes with the primary key |
//! | `against` | goes against it, with some noise |
//! | `city`, `zip` | a zip code lies in one city |
//! | `note` | wide, so that rows are far apart |

use std::fmt::Write as _;

use crate::plans::Query;

/// The database with the tables `wide` and `narrow`.
pub const DATABASE: &str = "plans";

/// Rows of an INSERT.
const BATCH: u64 = 1_000;

/// Rows of `narrow` for each of `wide`.
const NARROW_FOR_WIDE: u64 = 3;

/// Values of `skew`, `city` and `zip`.
const SKEWED: u64 = 2_000;
const ZIPS: u64 = 4_000;
const ZIPS_OF_A_CITY: u64 = 20;

/// The xorshift generator of Marsaglia, good enough to draw rows.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn pick<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len() as u64) as usize]
    }

    fn skewed(&mut self) -> u64 {
        let uniform = self.below(SKEWED);
        uniform * uniform / SKEWED
    }
}

/// Rows of `wide`.
fn wide_rows(rows: u64) -> u64 {
    rows / NARROW_FOR_WIDE
}

/// The statements that make and fill the tables; `narrow` gets so many rows.
pub fn tables(rows: u64, seed: u64) -> impl Iterator<Item = String> {
    let wide = wide_rows(rows);
    let create = [
        "create table wide (id int primary key, skew int, uniform int, together int, against int, city int, zip int, \
         note varchar(400), key k_skew (skew), key k_uniform (uniform), key k_together (together), \
         key k_against (against), key k_place (city, zip), key k_skew_uniform (skew, uniform))"
            .to_string(),
        "create table narrow (id int primary key, wide_id int, skew int, amount int, key k_wide (wide_id), \
         key k_skew (skew, amount))"
            .to_string(),
    ];
    let fill = (0..wide.div_ceil(BATCH)).map(move |batch| {
        let mut random = Random((seed ^ ((batch + 1) << 20)) | 1);
        let mut sql = String::from("insert into wide values ");
        for id in batch * BATCH..((batch + 1) * BATCH).min(wide) {
            let comma = if id % BATCH == 0 { "" } else { "," };
            let uniform = match random.below(10) {
                0 => "null".to_string(),
                _ => random.below(wide).to_string(),
            };
            let zip = random.below(ZIPS);
            let against = wide - id + random.below(wide / 50 + 1);
            let note = format!("{:x}-", random.next()).repeat(8 + random.below(12) as usize);
            let _ = write!(
                sql,
                "{comma}({id},{},{uniform},{},{against},{},{zip},'{note}')",
                random.skewed(),
                id / 7,
                zip / ZIPS_OF_A_CITY
            );
        }
        sql
    });
    let fill_narrow = (0..rows.div_ceil(BATCH)).map(move |batch| {
        let mut random = Random((seed ^ ((batch + 1) << 40)) | 1);
        let mut sql = String::from("insert into narrow values ");
        for id in batch * BATCH..((batch + 1) * BATCH).min(rows) {
            let comma = if id % BATCH == 0 { "" } else { "," };
            let _ = write!(
                sql,
                "{comma}({id},{},{},{})",
                random.below(wide),
                random.skewed(),
                random.below(100_000)
            );
        }
        sql
    });
    let analyze = ["analyze table wide, narrow".to_string()];
    create
        .into_iter()
        .chain(fill)
        .chain(fill_narrow)
        .chain(analyze)
}

/// A condition on `wide`, whose columns are qualified by `alias`.
fn condition(random: &mut Random, alias: &str, wide: u64) -> String {
    let share = [1_000, 100, 10, 3][random.below(4) as usize];
    let column = random.pick(&["skew", "uniform", "together", "against", "place", "note"]);
    let of = match column {
        "skew" => SKEWED,
        "together" => wide / 7,
        _ => wide,
    };
    let low = random.below(of);
    let high = low + (of / share).max(1);
    match (column, random.below(4)) {
        ("place", kind) => {
            let zip = random.below(ZIPS);
            let city = zip / ZIPS_OF_A_CITY;
            match kind {
                0 => format!("{alias}city = {city}"),
                1 => format!("{alias}city = {city} and {alias}zip = {zip}"),
                _ => format!("{alias}city = {city} and {alias}zip >= {zip}"),
            }
        }
        ("note", _) => format!("{alias}note like '{:x}%'", random.below(256)),
        (_, 0) => format!("{alias}{column} in ({low}, {}, {high})", (low + high) / 2),
        (_, 1) if column == "skew" => format!("{alias}{column} = {}", random.below(50)),
        _ => format!("{alias}{column} between {low} and {high}"),
    }
}

fn conditions(random: &mut Random, alias: &str, wide: u64) -> String {
    let count = 1 + random.below(3);
    let all: Vec<String> = (0..count).map(|_| condition(random, alias, wide)).collect();
    all.join(" and ")
}

/// So many queries of one table and of two.
pub fn queries(count: usize, rows: u64, seed: u64) -> Vec<Query> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let wide = wide_rows(rows);
    let mut queries = vec![query(
        "point".to_string(),
        "select * from wide where id = 77".to_string(),
    )];
    for number in 1..count {
        let sql = match number % 4 {
            0 | 1 => format!(
                "select count(*), max(note), sum(uniform) from wide where {}",
                conditions(&mut random, "", wide)
            ),
            2 => {
                let order = random.pick(&["id", "id desc", "together", "against desc", "skew, id"]);
                let limit = [1, 20, 500][random.below(3) as usize];
                let conditions = conditions(&mut random, "", wide);
                format!("select * from wide where {conditions} order by {order} limit {limit}")
            }
            _ => {
                let of_wide = conditions(&mut random, "w.", wide);
                let of_narrow = match random.below(3) {
                    0 => format!(" and n.skew = {}", random.skewed()),
                    1 => format!(" and n.amount < {}", random.below(100_000)),
                    _ => String::new(),
                };
                format!(
                    "select count(*), sum(n.amount), max(w.note) from wide w join narrow n on n.wide_id = w.id \
                     where {of_wide}{of_narrow}"
                )
            }
        };
        queries.push(query(format!("{number:03}"), sql));
    }
    queries
}

fn query(name: String, sql: String) -> Query {
    Query {
        group: "generated",
        name,
        database: DATABASE,
        sql,
    }
}
