//! The five transactions of TPC-C (clause 2). A terminal belongs to one warehouse.

use crate::error::BenchError;

use super::client::{Client, Failure, Parameter, parameters};
use super::random::Input;
use super::schema::{CUSTOMERS, DISTRICTS, ITEMS, cents};

/// The transactions, in the order of the result tables.
pub const KINDS: [&str; 5] = [
    "new order",
    "payment",
    "order status",
    "delivery",
    "stock level",
];

/// The date of what happens now: the same for all, so that no time is spent on it.
const NOW: &str = "2026-06-01 12:00:00";

/// A client with its input.
pub struct Terminal {
    pub client: Client,
    pub input: Input,
    /// Its warehouse, from 1.
    pub warehouse: u64,
    pub warehouses: u64,
    /// Transactions that were done again because others were in the way.
    pub conflicts: u64,
}

impl Terminal {
    /// The terminal with this number of so many.
    pub fn new(client: Client, number: u64, terminals: u64, warehouses: u64) -> Terminal {
        Terminal {
            client,
            input: Input::new(terminals * 1_000 + number),
            warehouse: number % warehouses + 1,
            warehouses,
            conflicts: 0,
        }
    }

    /// Does one transaction of the mix (clause 5.2.3, as weights instead of a deck of cards), and returns its kind.
    pub fn work(&mut self) -> Result<usize, Failure> {
        let kind = match self.input.uniform(1, 100) {
            1..=45 => 0,
            46..=88 => 1,
            89..=92 => 2,
            93..=96 => 3,
            _ => 4,
        };
        loop {
            let outcome = match kind {
                0 => self.new_order(),
                1 => self.payment(),
                2 => self.order_status(),
                3 => self.delivery(),
                _ => self.stock_level(),
            };
            match outcome {
                Ok(()) => return Ok(kind),
                Err(Failure::Conflict) => {
                    self.conflicts += 1;
                    self.client.rollback()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn district(&mut self) -> u64 {
        self.input.uniform(1, DISTRICTS)
    }

    /// Another warehouse, if there is one.
    fn other_warehouse(&mut self) -> u64 {
        if self.warehouses == 1 {
            return self.warehouse;
        }
        let other = self.input.uniform(1, self.warehouses - 1);
        if other >= self.warehouse {
            other + 1
        } else {
            other
        }
    }

    /// Clause 2.4.
    fn new_order(&mut self) -> Result<(), Failure> {
        let (w, d) = (self.warehouse, self.district());
        let c = self.input.customer(CUSTOMERS);
        let mut lines = self.order_lines();
        // One order of a hundred names an item that does not exist, and is taken back (clause 2.4.1.4).
        let fails = self.input.uniform(1, 100) == 1;
        let all_local = lines.iter().all(|line| line.warehouse == w);
        let client = &mut self.client;
        let (discount, warehouse_tax) = client.row(
            "select c_discount, c_last, c_credit, w_tax from warehouse, customer \
             where w_id = ? and c_w_id = w_id and c_d_id = ? and c_id = ?",
            parameters![w, d, c],
            |row| (row.integer(0), row.integer(3)),
        )?;
        let (o, district_tax) = client.row(
            "select d_next_o_id, d_tax from district where d_w_id = ? and d_id = ? for update",
            parameters![w, d],
            |row| (row.integer(0), row.integer(1)),
        )?;
        client.execute(
            "update district set d_next_o_id = ? where d_w_id = ? and d_id = ?",
            parameters![o + 1, w, d],
        )?;
        client.execute(
            "insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) values (?, ?, ?, ?, ?, ?, ?)",
            parameters![o, d, w, c, NOW, lines.len(), all_local],
        )?;
        client.execute(
            "insert into new_orders (no_o_id, no_d_id, no_w_id) values (?, ?, ?)",
            parameters![o, d, w],
        )?;
        // In the order of items, so that two orders never wait for each other in a circle.
        lines.sort_by_key(|line| (line.warehouse, line.item));
        let mut total = 0;
        for (number, line) in lines.iter().enumerate() {
            let missing = fails && number + 1 == lines.len();
            let item = if missing { ITEMS + 1 } else { line.item };
            let price = client.first(
                "select i_price, i_name, i_data from item where i_id = ?",
                parameters![item],
                |row| row.integer(0),
            )?;
            let Some(price) = price else {
                return client.rollback();
            };
            let amount = price * line.quantity as i64;
            total += amount;
            let info = take_from_stock(client, w, d, line)?;
            client.execute(
                "insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
                 ol_dist_info) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                parameters![
                    o,
                    d,
                    w,
                    number + 1,
                    line.item,
                    line.warehouse,
                    line.quantity,
                    Parameter::Cents(amount.unsigned_abs()),
                    info.as_str(),
                ],
            )?;
        }
        let taxed = total * (10_000 - discount) * (10_000 + warehouse_tax + district_tax);
        debug_assert!(taxed >= 0, "the terminal shows this amount");
        client.commit()
    }

    /// 5 to 15 lines; one of a hundred is supplied by another warehouse.
    fn order_lines(&mut self) -> Vec<OrderLine> {
        let count = self.input.uniform(5, 15);
        (0..count)
            .map(|_| OrderLine {
                item: self.input.item(ITEMS),
                warehouse: if self.input.uniform(1, 100) == 1 {
                    self.other_warehouse()
                } else {
                    self.warehouse
                },
                quantity: self.input.uniform(1, 10),
            })
            .collect()
    }

    /// The customer's number. In 60 cases of 100 the customer is asked for by last name.
    fn find_customer(&mut self, w: u64, d: u64) -> Result<u64, Failure> {
        if self.input.uniform(1, 100) > 60 {
            return Ok(self.input.customer(CUSTOMERS));
        }
        let name = self.input.last_name_to_find();
        let mut found = Vec::new();
        self.client.query(
            "select c_id from customer where c_w_id = ? and c_d_id = ? and c_last = ? order by c_first",
            parameters![w, d, name.as_str()],
            |row| found.push(row.integer(0).unsigned_abs()),
        )?;
        // The one in the middle, rounded up (clause 2.5.2.2).
        match found.get(found.len().saturating_sub(1) / 2) {
            Some(customer) => Ok(*customer),
            None => Ok(self.input.customer(CUSTOMERS)),
        }
    }

    /// Clause 2.5.
    fn payment(&mut self) -> Result<(), Failure> {
        let (w, d) = (self.warehouse, self.district());
        // 15 of 100 customers pay at a warehouse that is not theirs.
        let (customer_w, customer_d) = if self.input.uniform(1, 100) <= 85 {
            (w, d)
        } else {
            (self.other_warehouse(), self.district())
        };
        let paid = self.input.uniform(100, 500_000);
        let amount = Parameter::Cents(paid);
        self.client.execute(
            "update warehouse set w_ytd = w_ytd + ? where w_id = ?",
            parameters![amount, w],
        )?;
        let warehouse_name = self.client.row(
            "select w_street_1, w_street_2, w_city, w_state, w_zip, w_name from warehouse where w_id = ?",
            parameters![w],
            |row| row.text(5),
        )?;
        self.client.execute(
            "update district set d_ytd = d_ytd + ? where d_w_id = ? and d_id = ?",
            parameters![amount, w, d],
        )?;
        let district_name = self.client.row(
            "select d_street_1, d_street_2, d_city, d_state, d_zip, d_name from district where d_w_id = ? and d_id = ?",
            parameters![w, d],
            |row| row.text(5),
        )?;
        let c = self.find_customer(customer_w, customer_d)?;
        let client = &mut self.client;
        let has_bad_credit = client.row(
            "select c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, \
             c_discount, c_balance, c_since from customer where c_w_id = ? and c_d_id = ? and c_id = ? for update",
            parameters![customer_w, customer_d, c],
            |row| row.bytes(9) == b"BC",
        )?;
        if has_bad_credit {
            let data = client.row(
                "select c_data from customer where c_w_id = ? and c_d_id = ? and c_id = ?",
                parameters![customer_w, customer_d, c],
                |row| row.text(0),
            )?;
            let mut data = format!(
                "|{c} {customer_d} {customer_w} {d} {w} {}{data}",
                cents(paid)
            );
            data.truncate(500);
            client.execute(
                "update customer set c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, \
                 c_data = ? where c_w_id = ? and c_d_id = ? and c_id = ?",
                parameters![amount, amount, data.as_str(), customer_w, customer_d, c],
            )?;
        } else {
            client.execute(
                "update customer set c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 \
                 where c_w_id = ? and c_d_id = ? and c_id = ?",
                parameters![amount, amount, customer_w, customer_d, c],
            )?;
        }
        let data = format!("{warehouse_name}    {district_name}");
        client.execute(
            "insert into history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) values (?, ?, ?, ?, ?, ?, ?, ?)",
            parameters![customer_d, customer_w, c, d, w, NOW, amount, data.as_str()],
        )?;
        client.commit()
    }

    /// Clause 2.6.
    fn order_status(&mut self) -> Result<(), Failure> {
        let (w, d) = (self.warehouse, self.district());
        let c = self.find_customer(w, d)?;
        let client = &mut self.client;
        client.row(
            "select c_balance, c_first, c_middle, c_last from customer where c_w_id = ? and c_d_id = ? and c_id = ?",
            parameters![w, d, c],
            |row| row.integer(0),
        )?;
        let order = client.first(
            "select o_id, o_carrier_id, o_entry_d from orders where o_w_id = ? and o_d_id = ? and o_c_id = ? order by o_id desc limit 1",
            parameters![w, d, c],
            |row| row.integer(0),
        )?;
        if let Some(o) = order {
            client.query(
                "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line \
                 where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
                parameters![w, d, o],
                |_| (),
            )?;
        }
        client.commit()
    }

    /// Clause 2.7, in one transaction for all districts.
    fn delivery(&mut self) -> Result<(), Failure> {
        let w = self.warehouse;
        let carrier = self.input.uniform(1, 10);
        let client = &mut self.client;
        for d in 1..=DISTRICTS {
            let oldest = client.first(
                "select no_o_id from new_orders where no_w_id = ? and no_d_id = ? order by no_o_id limit 1 for update",
                parameters![w, d],
                |row| row.integer(0),
            )?;
            let Some(o) = oldest else {
                continue;
            };
            client.execute(
                "delete from new_orders where no_w_id = ? and no_d_id = ? and no_o_id = ?",
                parameters![w, d, o],
            )?;
            let c = client.row(
                "select o_c_id from orders where o_w_id = ? and o_d_id = ? and o_id = ?",
                parameters![w, d, o],
                |row| row.integer(0),
            )?;
            client.execute(
                "update orders set o_carrier_id = ? where o_w_id = ? and o_d_id = ? and o_id = ?",
                parameters![carrier, w, d, o],
            )?;
            client.execute(
                "update order_line set ol_delivery_d = ? where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
                parameters![NOW, w, d, o],
            )?;
            let total = client.row(
                "select sum(ol_amount) from order_line where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
                parameters![w, d, o],
                |row| row.integer(0),
            )?;
            // Every line of an order that was not delivered has an amount.
            let total = u64::try_from(total).unwrap_or(0);
            if total == 0 {
                let message = format!("order {o} of district {w}/{d} has lost its lines");
                return Err(BenchError::server("TPC-C", message).into());
            }
            client.execute(
                "update customer set c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 where c_w_id = ? and c_d_id = ? and c_id = ?",
                parameters![Parameter::Cents(total), w, d, c],
            )?;
        }
        client.commit()
    }

    /// Clause 2.8.
    fn stock_level(&mut self) -> Result<(), Failure> {
        let (w, d) = (self.warehouse, self.district());
        let threshold = self.input.uniform(10, 20);
        let client = &mut self.client;
        let next = client.row(
            "select d_next_o_id from district where d_w_id = ? and d_id = ?",
            parameters![w, d],
            |row| row.integer(0),
        )?;
        client.row(
            "select count(distinct s_i_id) from order_line, stock where ol_w_id = ? and ol_d_id = ? and ol_o_id < ? and ol_o_id >= ? \
             and s_w_id = ol_w_id and s_i_id = ol_i_id and s_quantity < ?",
            parameters![w, d, next, next - 20, threshold],
            |row| row.integer(0),
        )?;
        client.commit()
    }
}

struct OrderLine {
    item: u64,
    /// The warehouse that supplies it.
    warehouse: u64,
    quantity: u64,
}

/// Takes the line's items from the stock, and returns the district's text.
fn take_from_stock(
    client: &mut Client,
    warehouse: u64,
    district: u64,
    line: &OrderLine,
) -> Result<String, Failure> {
    let (quantity, info) = client.row(
        STOCK_OF_DISTRICT[district as usize - 1],
        parameters![line.item, line.warehouse],
        |row| (row.integer(0), row.text(2)),
    )?;
    let wanted = line.quantity as i64;
    let left = if quantity >= wanted + 10 {
        quantity - wanted
    } else {
        quantity - wanted + 91
    };
    client.execute(
        "update stock set s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
         where s_i_id = ? and s_w_id = ?",
        parameters![
            left,
            wanted,
            line.warehouse != warehouse,
            line.item,
            line.warehouse,
        ],
    )?;
    Ok(info)
}

const STOCK_OF_DISTRICT: [&str; 10] = [
    "select s_quantity, s_data, s_dist_01 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_02 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_03 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_04 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_05 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_06 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_07 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_08 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_09 from stock where s_i_id = ? and s_w_id = ? for update",
    "select s_quantity, s_data, s_dist_10 from stock where s_i_id = ? and s_w_id = ? for update",
];
