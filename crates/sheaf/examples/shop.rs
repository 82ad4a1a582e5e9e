//! The library in a minute: a database in a folder, typed parameters, typed rows.
//!
//! `cargo run --release -p sheaf --example shop`

use sheaf::{Database, Options, params};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let database = Database::open(
        folder.path(),
        Options::default().with_memory_bytes(64 << 20),
    )?;
    let mut connection = database.connect()?;
    connection.execute("CREATE DATABASE shop")?;
    connection.execute("USE shop")?;
    connection.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, customer VARCHAR(40), cents INT, KEY (cents))",
    )?;
    let insert = connection.prepare("INSERT INTO orders VALUES (?, ?, ?)")?;
    for (id, customer, cents) in [(1, "Ada", 950), (2, "Grace", 12_000), (3, "Edsger", 7_525)] {
        connection.run(&insert, params![id, customer, cents], |_| Ok(()))?;
    }
    let dear = "SELECT id, customer, cents FROM orders WHERE cents > ? ORDER BY cents";
    for row in connection.rows(dear, params![5_000])? {
        let (id, customer): (i64, String) = (row.get("id")?, row.get("customer")?);
        println!("{id}: {customer} pays {} cents", row.get::<i64>("cents")?);
    }
    database.close()?;
    Ok(())
}
