//! TPC-H: the schema, the data and the reference queries that the demo, the benchmarks and the tests share.
//!
//! The data comes from `tpchgen`, which writes byte for byte what `dbgen` writes. It is never stored as a whole here.
//! [`TableReader`] is a `Read` that generates `.tbl` text (columns ended by `|`, rows by a newline) as it is read. So
//! `LOAD DATA LOCAL INFILE` can take a table of any scale straight from the generator.
//!
//! The schema is the DBT3 flavour: the primary keys of TPC-H and the secondary indexes that the published
//! measurements of multi-range read and index condition pushdown were made with.

use std::fmt::Display;
use std::io::{self, Read, Write};

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

/// `CREATE TABLE` statements, one per table, in an order that respects references between the tables.
pub const SCHEMA: &str = include_str!("tpch_schema.sql");

/// The eight tables in loading order.
pub const TABLES: [&str; 8] = [
    "region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem",
];

/// Rows of `table` at `scale`; lineitem's count is close, not exact, because orders have 1 to 7 lines.
///
/// Source: TPC-H specification, section 4.2.5.
pub fn expected_rows(table: &str, scale: f64) -> u64 {
    let scaled = |rows: f64| (rows * scale).round() as u64;
    match table {
        "region" => 5,
        "nation" => 25,
        "supplier" => scaled(10_000.0),
        "part" => scaled(200_000.0),
        "partsupp" => scaled(800_000.0),
        "customer" => scaled(150_000.0),
        "orders" => scaled(1_500_000.0),
        _ => scaled(6_001_215.0),
    }
}

/// The `CREATE TABLE` statements of [`SCHEMA`], one at a time, without the closing semicolon.
pub fn schema_statements() -> impl Iterator<Item = &'static str> {
    SCHEMA
        .split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
}

/// Generates one table as `.tbl` text while it is read.
pub struct TableReader {
    append_row: AppendRow,
    buffer: Vec<u8>,
    consumed: usize,
    rows_generated: u64,
    on_rows: Box<dyn FnMut(u64) + Send>,
}

/// Appends the next row as a line of text; false when there are no more rows.
type AppendRow = Box<dyn FnMut(&mut Vec<u8>) -> io::Result<bool> + Send>;

fn append_rows<T: Display>(mut rows: impl Iterator<Item = T> + Send + 'static) -> AppendRow {
    Box::new(move |buffer| match rows.next() {
        Some(row) => writeln!(buffer, "{row}").map(|()| true),
        None => Ok(false),
    })
}

/// Text generated ahead of the reader, in bytes.
const GENERATE_AHEAD_BYTES: usize = 64 * 1024;

impl TableReader {
    /// A reader over `table` at `scale`, or `None` when TPC-H has no such table.
    pub fn new(table: &str, scale: f64) -> Option<Self> {
        let append_row = match table {
            "region" => append_rows(RegionGenerator::new(scale, 1, 1).iter()),
            "nation" => append_rows(NationGenerator::new(scale, 1, 1).iter()),
            "supplier" => append_rows(SupplierGenerator::new(scale, 1, 1).iter()),
            "part" => append_rows(PartGenerator::new(scale, 1, 1).iter()),
            "partsupp" => append_rows(PartSuppGenerator::new(scale, 1, 1).iter()),
            "customer" => append_rows(CustomerGenerator::new(scale, 1, 1).iter()),
            "orders" => append_rows(OrderGenerator::new(scale, 1, 1).iter()),
            "lineitem" => append_rows(LineItemGenerator::new(scale, 1, 1).iter()),
            _ => return None,
        };
        Some(Self {
            append_row,
            buffer: Vec::with_capacity(GENERATE_AHEAD_BYTES + 1024),
            consumed: 0,
            rows_generated: 0,
            on_rows: Box::new(|_| ()),
        })
    }

    /// Calls `on_rows` with the number of rows generated so far, once per buffer: a progress bar hangs here.
    pub fn with_progress(mut self, on_rows: impl FnMut(u64) + Send + 'static) -> Self {
        self.on_rows = Box::new(on_rows);
        self
    }

    fn generate(&mut self) -> io::Result<()> {
        self.buffer.clear();
        self.consumed = 0;
        while self.buffer.len() < GENERATE_AHEAD_BYTES {
            if !(self.append_row)(&mut self.buffer)? {
                break;
            }
            self.rows_generated += 1;
        }
        (self.on_rows)(self.rows_generated);
        Ok(())
    }
}

impl Read for TableReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.consumed == self.buffer.len() {
            self.generate()?;
        }
        let available = &self.buffer[self.consumed..];
        let length = available.len().min(out.len());
        out[..length].copy_from_slice(&available[..length]);
        self.consumed += length;
        Ok(length)
    }
}

/// One reference query and the switch settings under which it is worth running.
pub struct ReferenceCase {
    /// Short name, as in the benchmark's tables.
    pub name: &'static str,
    /// What the case shows, in a few words.
    pub title: &'static str,
    /// The query in MySQL's dialect.
    pub sql: &'static str,
    /// The settings to run it under, each from a fresh session.
    pub variants: &'static [Variant],
}

/// Optimizer settings of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// The server's defaults.
    Default,
    /// Neither index condition pushdown nor multi-range read.
    Plain,
    /// Multi-range read with a 4 MiB buffer, without index condition pushdown.
    MultiRangeRead,
    /// Index condition pushdown without multi-range read.
    IndexCondition,
    /// Both.
    IndexConditionAndMultiRangeRead,
}

impl Variant {
    /// The name that the benchmark's tables print.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Default => "default",
            Variant::Plain => "both off",
            Variant::MultiRangeRead => "mrr on",
            Variant::IndexCondition => "icp on",
            Variant::IndexConditionAndMultiRangeRead => "icp, mrr on",
        }
    }

    /// `SET` statements that put a session into this variant. MySQL has no `mrr_sort_keys`; Sheaf and MariaDB do.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Variant::Default => &[],
            Variant::Plain => &["set optimizer_switch='index_condition_pushdown=off,mrr=off'"],
            Variant::MultiRangeRead => &[
                "set optimizer_switch='index_condition_pushdown=off,mrr=on,mrr_cost_based=off,mrr_sort_keys=on'",
                "set mrr_buffer_size=4*1024*1024",
            ],
            Variant::IndexCondition => {
                &["set optimizer_switch='index_condition_pushdown=on,mrr=off'"]
            }
            Variant::IndexConditionAndMultiRangeRead => &[
                "set optimizer_switch='index_condition_pushdown=on,mrr=on,mrr_cost_based=off,mrr_sort_keys=on'",
                "set mrr_buffer_size=4*1024*1024",
            ],
        }
    }
}

/// The reference queries: what multi-range read, index condition pushdown and early stops are for.
pub const REFERENCE_CASES: [ReferenceCase; 9] = [
    ReferenceCase {
        name: "q10",
        title: "TPC-H Q10: a range on an index, then joins by key",
        sql: "select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name, \
              c_address, c_phone, c_comment from customer, orders, lineitem, nation \
              where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= '1993-08-01' \
              and o_orderdate < date_add('1993-08-01', interval '3' month) and l_returnflag = 'R' \
              and c_nationkey = n_nationkey \
              group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment \
              order by revenue desc limit 20",
        variants: &[Variant::Default, Variant::Plain, Variant::MultiRangeRead],
    },
    ReferenceCase {
        name: "q19",
        title: "TPC-H Q19: a composite index whose last columns filter",
        sql: "select sum(l_extendedprice * (1 - l_discount)) as revenue \
              from lineitem force index (i_l_partkey), part \
              where (p_partkey = l_partkey and p_brand = 'Brand#45' and p_container in ('SM CASE','SM BOX','SM PACK','SM PKG') \
              and l_quantity >= 1 and l_quantity <= 1 + 10 and p_size between 1 and 5 \
              and l_shipmode in ('AIR','AIR REG') and l_shipinstruct = 'DELIVER IN PERSON') \
              or (p_partkey = l_partkey and p_brand = 'Brand#12' and p_container in ('MED BAG','MED BOX','MED PKG','MED PACK') \
              and l_quantity >= 10 and l_quantity <= 10 + 10 and p_size between 1 and 10 \
              and l_shipmode in ('AIR','AIR REG') and l_shipinstruct = 'DELIVER IN PERSON') \
              or (p_partkey = l_partkey and p_brand = 'Brand#33' and p_container in ('LG CASE','LG BOX','LG PACK','LG PKG') \
              and l_quantity >= 20 and l_quantity <= 20 + 10 and p_size between 1 and 15 \
              and l_shipmode in ('AIR','AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')",
        variants: &[Variant::Default, Variant::Plain, Variant::IndexCondition],
    },
    ReferenceCase {
        name: "icp",
        title: "A wide range of parts, filtered on the index entry",
        sql: "select sum(l_extendedprice * (1 - l_discount)) from lineitem force index (i_l_partkey) \
              where l_partkey between 1000 and 21000 and l_quantity >= 1 and l_quantity <= 11 \
              and l_shipmode in ('AIR','AIR REG') and l_shipinstruct = 'DELIVER IN PERSON'",
        variants: &[
            Variant::Default,
            Variant::Plain,
            Variant::IndexCondition,
            Variant::IndexConditionAndMultiRangeRead,
        ],
    },
    ReferenceCase {
        name: "mrr",
        title: "Three months of orders through the date index",
        sql: "select sum(o_totalprice), count(*), max(o_comment) from orders force index (i_o_orderdate) \
              where o_orderdate >= '1993-08-01' and o_orderdate < '1993-11-01'",
        variants: &[Variant::Default, Variant::Plain, Variant::MultiRangeRead],
    },
    ReferenceCase {
        name: "q6",
        title: "TPC-H Q6 over one month, through the index",
        sql: "select sum(l_extendedprice * l_discount) as revenue from lineitem \
              where l_shipdate >= '1997-01-01' and l_shipdate < date_add('1997-01-01', interval '1' month) \
              and l_discount between 0.05 - 0.01 and 0.05 + 0.01 and l_quantity < 25",
        variants: &[Variant::Default, Variant::MultiRangeRead],
    },
    ReferenceCase {
        name: "q6scan",
        title: "The same by a scan of the whole table",
        sql: "select sum(l_extendedprice * l_discount) as revenue from lineitem force index (PRIMARY) \
              where l_shipdate >= '1997-01-01' and l_shipdate < date_add('1997-01-01', interval '1' month) \
              and l_discount between 0.05 - 0.01 and 0.05 + 0.01 and l_quantity < 25",
        variants: &[Variant::Default],
    },
    ReferenceCase {
        name: "limit",
        title: "The newest 20 lines that pass an unselective filter",
        sql: "select * from lineitem where (l_suppkey < 5000 || l_suppkey > 9000) \
              order by l_orderkey desc, l_linenumber desc limit 20 offset 0",
        variants: &[Variant::Default],
    },
    ReferenceCase {
        name: "limit2",
        title: "The newest 20 orders of most customers",
        sql: "select * from orders where (o_custkey < 70000 || o_custkey > 100000) \
              order by o_orderkey desc limit 20 offset 0",
        variants: &[Variant::Default],
    },
    ReferenceCase {
        name: "trap",
        title: "The matches lie at the far end of the order",
        sql: "select o_orderkey, o_totalprice from orders where o_orderdate = '1992-01-01' \
              and o_orderstatus = 'F' and o_totalprice > 400000 order by o_orderkey desc limit 5",
        variants: &[Variant::Default],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_tbl_text() {
        let mut text = String::new();
        TableReader::new("region", 0.01)
            .expect("region is a table of TPC-H")
            .read_to_string(&mut text)
            .expect("generating never fails");
        assert_eq!(text.lines().count(), 5);
        assert!(text.starts_with("0|AFRICA|"));
        assert!(text.lines().all(|line| line.ends_with('|')));
    }

    #[test]
    fn the_schema_has_one_statement_per_table() {
        let statements: Vec<_> = schema_statements().collect();
        assert_eq!(statements.len(), TABLES.len());
        for table in TABLES {
            assert!(
                statements
                    .iter()
                    .any(|statement| statement.contains(&format!("CREATE TABLE {table} ("))),
                "no statement creates {table}"
            );
        }
        assert!(TableReader::new("nowhere", 1.0).is_none());
    }
}
