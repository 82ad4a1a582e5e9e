//! Large results as Arrow batches, as they are found.
//!
//! `cargo run --release -p sheaf --example arrow`

use sheaf::arrow::array::AsArray;
use sheaf::arrow::datatypes::Int64Type;
use sheaf::{Database, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let database = Database::open(
        folder.path(),
        Options::default().with_memory_bytes(64 << 20),
    )?;
    let mut connection = database.connect()?;
    connection.execute("CREATE DATABASE numbers")?;
    connection.execute("USE numbers")?;
    connection.execute("CREATE TABLE t (n BIGINT PRIMARY KEY, square BIGINT)")?;
    connection.execute("SET cte_max_recursion_depth = 100000")?;
    connection.execute(
        "INSERT INTO t WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 50000)
         SELECT n, n * n FROM s",
    )?;
    let (mut batches, mut sum) = (0, 0);
    connection.query_each("SELECT square FROM t WHERE n % 2 = 0", |batch| {
        batches += 1;
        let squares = batch.column(0).as_primitive::<Int64Type>();
        sum += squares.values().iter().sum::<i64>();
        Ok(())
    })?;
    println!("{batches} batches, and the squares of even numbers make {sum}");
    assert_eq!(sum, (1..=25_000_i64).map(|n| 4 * n * n).sum::<i64>());
    Ok(())
}
