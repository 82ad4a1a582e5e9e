//! The five transactions of TPC-C (clause 2). A terminal belongs to one warehouse.

use mysql_common::value::Value;

use crate::error::BenchError;

use super::client::{Client, Failure, integer, text};
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
        let found = client.row(
            "select c_discount, c_last, c_credit, w_tax from warehouse, customer \
             where w_id = ? and c_w_id = w_id and c_d_id = ? and c_id = ?",
            (w, d, c),
        )?;
        let (discount, warehouse_tax) = (integer(&found, 0), integer(&found, 3));
        let found = client.row(
            "select d_next_o_id, d_tax from district where d_w_id = ? and d_id = ? for update",
            (w, d),
        )?;
        let (o, district_tax) = (integer(&found, 0), integer(&found, 1));
        client.execute(
            "update district set d_next_o_id = ? where d_w_id = ? and d_id = ?",
            (o + 1, w, d),
        )?;
        client.execute(
            "insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) values (?, ?, ?, ?, ?, ?, ?)",
            (o, d, w, c, NOW, lines.len(), u8::from(all_local)),
        )?;
        client.execute(
            "insert into new_orders (no_o_id, no_d_id, no_w_id) values (?, ?, ?)",
            (o, d, w),
        )?;
        // In the order of items, so that two orders never wait for each other in a circle.
        lines.sort_by_key(|line| (line.warehouse, line.item));
        let mut total = 0;
        for (number, line) in lines.iter().enumerate() {
            let missing = fails && number + 1 == lines.len();
            let item = if missing { ITEMS + 1 } else { line.item };
            let found = client.query(
                "select i_price, i_name, i_data from item where i_id = ?",
                (item,),
            )?;
            let Some(found) = found.first() else {
                return client.rollback();
            };
            let amount = integer(found, 0) * line.quantity as i64;
            total += amount;
            let info = take_from_stock(client, w, d, line)?;
            client.execute(
                "insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
                 ol_dist_info) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                vec![
                    Value::from(o),
                    Value::from(d),
                    Value::from(w),
                    Value::from(number + 1),
                    Value::from(line.item),
                    Value::from(line.warehouse),
                    Value::from(line.quantity),
                    Value::from(cents(amount.unsigned_abs())),
                    Value::from(info),
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

    /// The customer's number, for one who gives a last name in 60 cases of 100.
    fn find_customer(&mut self, w: u64, d: u64) -> Result<u64, Failure> {
        if self.input.uniform(1, 100) > 60 {
            return Ok(self.input.customer(CUSTOMERS));
        }
        let name = self.input.last_name_to_find();
        let found = self.client.query(
            "select c_id from customer where c_w_id = ? and c_d_id = ? and c_last = ? order by c_first",
            (w, d, name),
        )?;
        // The one in the middle, rounded up (clause 2.5.2.2).
        match found.get(found.len().saturating_sub(1) / 2) {
            Some(row) => Ok(integer(row, 0).unsigned_abs()),
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
        let amount = cents(self.input.uniform(100, 500_000));
        self.client.execute(
            "update warehouse set w_ytd = w_ytd + ? where w_id = ?",
            (&amount, w),
        )?;
        let warehouse = self.client.row(
            "select w_street_1, w_street_2, w_city, w_state, w_zip, w_name from warehouse where w_id = ?",
            (w,),
        )?;
        self.client.execute(
            "update district set d_ytd = d_ytd + ? where d_w_id = ? and d_id = ?",
            (&amount, w, d),
        )?;
        let district = self.client.row(
            "select d_street_1, d_street_2, d_city, d_state, d_zip, d_name from district where d_w_id = ? and d_id = ?",
            (w, d),
        )?;
        let c = self.find_customer(customer_w, customer_d)?;
        let client = &mut self.client;
        let customer = client.row(
            "select c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, \
             c_discount, c_balance, c_since from customer where c_w_id = ? and c_d_id = ? and c_id = ? for update",
            (customer_w, customer_d, c),
        )?;
        if text(&customer, 9) == "BC" {
            let data = client.row(
                "select c_data from customer where c_w_id = ? and c_d_id = ? and c_id = ?",
                (customer_w, customer_d, c),
            )?;
            let mut data = format!(
                "|{c} {customer_d} {customer_w} {d} {w} {amount}{}",
                text(&data, 0)
            );
            data.truncate(500);
            client.execute(
                "update customer set c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, \
                 c_data = ? where c_w_id = ? and c_d_id = ? and c_id = ?",
                (&amount, &amount, data, customer_w, customer_d, c),
            )?;
        } else {
            client.execute(
                "update customer set c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 \
                 where c_w_id = ? and c_d_id = ? and c_id = ?",
                (&amount, &amount, customer_w, customer_d, c),
            )?;
        }
        let data = format!("{}    {}", text(&warehouse, 5), text(&district, 5));
        client.execute(
            "insert into history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) values (?, ?, ?, ?, ?, ?, ?, ?)",
            (customer_d, customer_w, c, d, w, NOW, amount, data),
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
            (w, d, c),
        )?;
        let orders = client.query(
            "select o_id, o_carrier_id, o_entry_d from orders where o_w_id = ? and o_d_id = ? and o_c_id = ? order by o_id desc limit 1",
            (w, d, c),
        )?;
        if let Some(order) = orders.first() {
            client.query(
                "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line \
                 where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
                (w, d, integer(order, 0)),
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
            let oldest = client.query(
                "select no_o_id from new_orders where no_w_id = ? and no_d_id = ? order by no_o_id limit 1 for update",
                (w, d),
            )?;
            let Some(o) = oldest.first().map(|row| integer(row, 0)) else {
                continue;
            };
            client.execute(
                "delete from new_orders where no_w_id = ? and no_d_id = ? and no_o_id = ?",
                (w, d, o),
            )?;
            let order = client.row(
                "select o_c_id from orders where o_w_id = ? and o_d_id = ? and o_id = ?",
                (w, d, o),
            )?;
            client.execute(
                "update orders set o_carrier_id = ? where o_w_id = ? and o_d_id = ? and o_id = ?",
                (carrier, w, d, o),
            )?;
            client.execute(
                "update order_line set ol_delivery_d = ? where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
                (NOW, w, d, o),
            )?;
            let total = client.row(
                "select sum(ol_amount) from order_line where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?",
                (w, d, o),
            )?;
            // Every line of an order that was not delivered has an amount.
            let total = u64::try_from(integer(&total, 0)).unwrap_or(0);
            if total == 0 {
                let message = format!("order {o} of district {w}/{d} has lost its lines");
                return Err(BenchError::server("TPC-C", message).into());
            }
            client.execute(
                "update customer set c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 where c_w_id = ? and c_d_id = ? and c_id = ?",
                (cents(total), w, d, integer(&order, 0)),
            )?;
        }
        client.commit()
    }

    /// Clause 2.8.
    fn stock_level(&mut self) -> Result<(), Failure> {
        let (w, d) = (self.warehouse, self.district());
        let threshold = self.input.uniform(10, 20);
        let client = &mut self.client;
        let district = client.row(
            "select d_next_o_id from district where d_w_id = ? and d_id = ?",
            (w, d),
        )?;
        let next = integer(&district, 0);
        client.row(
            "select count(distinct s_i_id) from order_line, stock where ol_w_id = ? and ol_d_id = ? and ol_o_id < ? and ol_o_id >= ? \
             and s_w_id = ol_w_id and s_i_id = ol_i_id and s_quantity < ?",
            (w, d, next, next - 20, threshold),
        )?;
        client.commit()
    }
}

struct OrderLine {
    item: u64,
    /// Who supplies it.
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
    let stock = client.row(
        STOCK_OF_DISTRICT[district as usize - 1],
        (line.item, line.warehouse),
    )?;
    let (quantity, wanted) = (integer(&stock, 0), line.quantity as i64);
    let left = if quantity >= wanted + 10 {
        quantity - wanted
    } else {
        quantity - wanted + 91
    };
    client.execute(
        "update stock set s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
         where s_i_id = ? and s_w_id = ?",
        (
            left,
            wanted,
            u8::from(line.warehouse != warehouse),
            line.item,
            line.warehouse,
        ),
    )?;
    Ok(text(&stock, 2))
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
