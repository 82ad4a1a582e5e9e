//! TPC-C's tables and their first contents (clauses 1.3 and 4.3.3).

use std::fmt::Write as _;
use std::io::{self, Read};

use super::random::{Input, last_name};

pub const ITEMS: u64 = 100_000;
pub const DISTRICTS: u64 = 10;
/// Customers of a district, and orders that it begins with.
pub const CUSTOMERS: u64 = 3_000;
/// The first order of a district that is not delivered yet.
const FIRST_UNDELIVERED: u64 = 2_101;

/// The date of everything that was there first.
const LOAD_DATE: &str = "2026-01-01 00:00:00";

/// All tables, in an order in which they can be filled.
pub const TABLES: [&str; 9] = [
    "item",
    "warehouse",
    "stock",
    "district",
    "customer",
    "history",
    "orders",
    "new_orders",
    "order_line",
];

/// The statements that create the tables.
pub const SCHEMA: [&str; 9] = [
    "create table item (i_id int not null primary key, i_im_id int, i_name varchar(24), i_price decimal(5,2), i_data varchar(50))",
    "create table warehouse (w_id smallint not null primary key, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
     w_city varchar(20), w_state char(2), w_zip char(9), w_tax decimal(4,4), w_ytd decimal(12,2))",
    "create table stock (s_i_id int not null, s_w_id smallint not null, s_quantity smallint, s_dist_01 char(24), s_dist_02 char(24), \
     s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), \
     s_dist_09 char(24), s_dist_10 char(24), s_ytd decimal(8,0), s_order_cnt smallint, s_remote_cnt smallint, s_data varchar(50), \
     primary key (s_w_id, s_i_id))",
    "create table district (d_id tinyint not null, d_w_id smallint not null, d_name varchar(10), d_street_1 varchar(20), \
     d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), d_tax decimal(4,4), d_ytd decimal(12,2), \
     d_next_o_id int, primary key (d_w_id, d_id))",
    "create table customer (c_id int not null, c_d_id tinyint not null, c_w_id smallint not null, c_first varchar(16), c_middle char(2), \
     c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), \
     c_phone char(16), c_since datetime, c_credit char(2), c_credit_lim decimal(12,2), c_discount decimal(4,4), \
     c_balance decimal(12,2), c_ytd_payment decimal(12,2), c_payment_cnt smallint, c_delivery_cnt smallint, c_data varchar(500), \
     primary key (c_w_id, c_d_id, c_id), key by_name (c_w_id, c_d_id, c_last, c_first))",
    "create table history (h_c_id int, h_c_d_id tinyint, h_c_w_id smallint, h_d_id tinyint, h_w_id smallint, h_date datetime, \
     h_amount decimal(6,2), h_data varchar(24))",
    "create table orders (o_id int not null, o_d_id tinyint not null, o_w_id smallint not null, o_c_id int, o_entry_d datetime, \
     o_carrier_id tinyint, o_ol_cnt tinyint, o_all_local tinyint, primary key (o_w_id, o_d_id, o_id), \
     key by_customer (o_w_id, o_d_id, o_c_id, o_id))",
    "create table new_orders (no_o_id int not null, no_d_id tinyint not null, no_w_id smallint not null, \
     primary key (no_w_id, no_d_id, no_o_id))",
    "create table order_line (ol_o_id int not null, ol_d_id tinyint not null, ol_w_id smallint not null, ol_number tinyint not null, \
     ol_i_id int, ol_supply_w_id smallint, ol_delivery_d datetime, ol_quantity tinyint, ol_amount decimal(6,2), ol_dist_info char(24), \
     primary key (ol_w_id, ol_d_id, ol_o_id, ol_number))",
];

/// The rows of one table, as lines of fields between tabs, made as they are read.
pub struct Rows {
    table: &'static str,
    input: Input,
    /// Blocks of rows that are still to come, the next one last: (warehouse, district), as far as the table has them.
    blocks: Vec<(u64, u64)>,
    text: String,
    read: usize,
}

impl Rows {
    /// The rows of `table`, one of [`TABLES`], for so many warehouses.
    pub fn new(table: &'static str, warehouses: u64) -> Rows {
        let by_district = matches!(
            table,
            "district" | "customer" | "history" | "orders" | "new_orders" | "order_line"
        );
        let warehouses = if table == "item" { 1 } else { warehouses };
        let districts = if by_district { DISTRICTS } else { 1 };
        let mut blocks: Vec<(u64, u64)> = (1..=warehouses)
            .flat_map(|warehouse| (1..=districts).map(move |district| (warehouse, district)))
            .collect();
        blocks.reverse();
        Rows {
            table,
            // Orders and their lines must agree on the number of lines: they draw from the same numbers.
            input: Input::new(1),
            blocks,
            text: String::new(),
            read: 0,
        }
    }

    fn fill(&mut self, warehouse: u64, district: u64) {
        let (text, input) = (&mut self.text, &mut self.input);
        // Writing to a string cannot fail.
        match self.table {
            "item" => items(text, input),
            "warehouse" => warehouses(text, input, warehouse),
            "stock" => stock(text, input, warehouse),
            "district" => districts(text, input, warehouse, district),
            "customer" => customers(text, input, warehouse, district),
            "history" => history(text, input, warehouse, district),
            "new_orders" => {
                for order in FIRST_UNDELIVERED..=CUSTOMERS {
                    let _ = writeln!(text, "{order}\t{district}\t{warehouse}");
                }
            }
            "orders" => orders(text, warehouse, district, false),
            _ => orders(text, warehouse, district, true),
        }
    }
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.text.len() {
            self.text.clear();
            self.read = 0;
            let Some((warehouse, district)) = self.blocks.pop() else {
                return Ok(0);
            };
            self.fill(warehouse, district);
        }
        let bytes = &self.text.as_bytes()[self.read..];
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.read += count;
        Ok(count)
    }
}

fn items(text: &mut String, input: &mut Input) {
    for item in 1..=ITEMS {
        let (image, name) = (input.uniform(1, 10_000), input.letters(14, 24));
        let (price, data) = (cents(input.uniform(100, 10_000)), input.data());
        let _ = writeln!(text, "{item}\t{image}\t{name}\t{price}\t{data}");
    }
}

/// street_1, street_2, city, state, zip.
fn address(input: &mut Input) -> String {
    let (one, two, city) = (
        input.letters(10, 20),
        input.letters(10, 20),
        input.letters(10, 20),
    );
    format!("{one}\t{two}\t{city}\tST\t{}11111", input.digits(4))
}

fn warehouses(text: &mut String, input: &mut Input, warehouse: u64) {
    let (name, address, tax) = (
        input.letters(6, 10),
        address(input),
        input.uniform(0, 2_000),
    );
    let _ = writeln!(
        text,
        "{warehouse}\t{name}\t{address}\t0.{tax:04}\t300000.00"
    );
}

fn stock(text: &mut String, input: &mut Input, warehouse: u64) {
    for item in 1..=ITEMS {
        let _ = write!(text, "{item}\t{warehouse}\t{}", input.uniform(10, 100));
        for _ in 0..DISTRICTS {
            let _ = write!(text, "\t{}", input.letters(24, 24));
        }
        let _ = writeln!(text, "\t0\t0\t0\t{}", input.data());
    }
}

fn districts(text: &mut String, input: &mut Input, warehouse: u64, district: u64) {
    let (name, address, tax) = (
        input.letters(6, 10),
        address(input),
        input.uniform(0, 2_000),
    );
    let _ = writeln!(
        text,
        "{district}\t{warehouse}\t{name}\t{address}\t0.{tax:04}\t30000.00\t{}",
        CUSTOMERS + 1
    );
}

fn customers(text: &mut String, input: &mut Input, warehouse: u64, district: u64) {
    for customer in 1..=CUSTOMERS {
        let last = if customer <= 1_000 {
            last_name(customer - 1)
        } else {
            input.last_name_to_load()
        };
        let (first, address, phone) = (input.letters(8, 16), address(input), input.digits(16));
        let credit = if input.uniform(1, 10) == 1 {
            "BC"
        } else {
            "GC"
        };
        let (discount, data) = (input.uniform(0, 5_000), input.letters(300, 500));
        let _ = writeln!(
            text,
            "{customer}\t{district}\t{warehouse}\t{first}\tOE\t{last}\t{address}\t{phone}\t{LOAD_DATE}\t{credit}\t50000.00\t\
             0.{discount:04}\t-10.00\t10.00\t1\t0\t{data}"
        );
    }
}

fn history(text: &mut String, input: &mut Input, warehouse: u64, district: u64) {
    for customer in 1..=CUSTOMERS {
        let data = input.letters(12, 24);
        let _ = writeln!(
            text,
            "{customer}\t{district}\t{warehouse}\t{district}\t{warehouse}\t{LOAD_DATE}\t10.00\t{data}"
        );
    }
}

/// The orders of a district, or their lines.
fn orders(text: &mut String, warehouse: u64, district: u64, lines: bool) {
    let mut input = Input::new(warehouse * 100 + district);
    let customers = input.permutation(CUSTOMERS);
    for (order, customer) in (1..=CUSTOMERS).zip(customers) {
        let delivered = order < FIRST_UNDELIVERED;
        let (carrier, count) = (input.uniform(1, 10), input.uniform(5, 15));
        if !lines {
            let carrier = if delivered {
                carrier.to_string()
            } else {
                "\\N".into()
            };
            let _ = writeln!(
                text,
                "{order}\t{district}\t{warehouse}\t{customer}\t{LOAD_DATE}\t{carrier}\t{count}\t1"
            );
            continue;
        }
        // What only lines have comes from another sequence.
        let mut of_line = Input::new((warehouse * 100 + district) * 10_000 + order);
        for number in 1..=count {
            let (item, info) = (of_line.uniform(1, ITEMS), of_line.letters(24, 24));
            let (date, amount) = if delivered {
                (LOAD_DATE, "0.00".to_string())
            } else {
                ("\\N", cents(of_line.uniform(1, 999_999)))
            };
            let _ = writeln!(
                text,
                "{order}\t{district}\t{warehouse}\t{number}\t{item}\t{warehouse}\t{date}\t5\t{amount}\t{info}"
            );
        }
    }
}

/// An amount of cents as a decimal number.
pub fn cents(amount: u64) -> String {
    format!("{}.{:02}", amount / 100, amount % 100)
}
