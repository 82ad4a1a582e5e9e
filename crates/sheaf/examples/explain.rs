//! How a query is answered with an index and without, and what it cost.
//!
//! `cargo run --release -p sheaf --example explain`

use sheaf::{Connection, Database, Error, Options, params};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let database = Database::open(
        folder.path(),
        Options::default().with_memory_bytes(64 << 20),
    )?;
    let mut connection = database.connect()?;
    connection.execute("CREATE DATABASE log")?;
    connection.execute("USE log")?;
    connection.execute("CREATE TABLE events (id INT PRIMARY KEY, kind INT, at INT)")?;
    connection.execute("SET cte_max_recursion_depth = 100000")?;
    connection.execute(
        "INSERT INTO events WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 20000)
         SELECT n, n % 200, n * 3 FROM s",
    )?;
    explain(&mut connection)?;
    connection.execute("ALTER TABLE events ADD KEY by_kind (kind, at)")?;
    explain(&mut connection)?;
    Ok(())
}

fn explain(connection: &mut Connection) -> Result<(), Error> {
    let query = "SELECT COUNT(*) AS n FROM events WHERE kind = 7 AND at < 30000";
    for row in connection.rows(&format!("EXPLAIN {query}"), params![])? {
        let (access, key): (String, Option<String>) = (row.get("type")?, row.get("key")?);
        println!(
            "access: {access}, index: {}",
            key.as_deref().unwrap_or("none")
        );
    }
    connection.execute("FLUSH STATUS")?;
    for row in connection.rows(query, params![])? {
        println!("  rows that match: {}", row.get::<i64>("n")?);
    }
    for row in connection.rows("SHOW STATUS LIKE 'Handler_read%next'", params![])? {
        println!("  {}: {}", row.get::<String>(0)?, row.get::<String>(1)?);
    }
    Ok(())
}
