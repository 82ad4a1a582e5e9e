//! TPC-C's random input: non-uniform numbers, last names and texts (TPC Benchmark C, revision 5.11, clauses 2.1.6 and
//! 4.3.2).

use sheaf_storage::Random;

/// Constants of NURand for customer numbers, last names and items: C of clause 2.1.6.1. Those of the run differ from
/// those of the load by amounts that the clause permits.
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 7_911;
const C_LAST_LOAD: u64 = 157;
const C_LAST_RUN: u64 = 223;

/// Syllables of last names, clause 4.3.2.3.
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// Random input of one client.
pub struct Input(pub Random);

impl Input {
    pub fn new(seed: u64) -> Input {
        Input(Random::new(seed))
    }

    /// A number of `low..=high`.
    pub fn uniform(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// NURand(a, low, high) with constant `c`.
    fn non_uniform(&mut self, a: u64, c: u64, low: u64, high: u64) -> u64 {
        ((self.uniform(0, a) | self.uniform(low, high)) + c) % (high - low + 1) + low
    }

    pub fn customer(&mut self, customers: u64) -> u64 {
        self.non_uniform(1023, C_CUSTOMER, 1, customers)
    }

    pub fn item(&mut self, items: u64) -> u64 {
        self.non_uniform(8191, C_ITEM, 1, items)
    }

    /// A last name that customers have.
    pub fn last_name_to_find(&mut self) -> String {
        last_name(self.non_uniform(255, C_LAST_RUN, 0, 999))
    }

    /// The last name of a customer past the first thousand.
    pub fn last_name_to_load(&mut self) -> String {
        last_name(self.non_uniform(255, C_LAST_LOAD, 0, 999))
    }

    /// A text of `low..=high` letters.
    pub fn letters(&mut self, low: u64, high: u64) -> String {
        let length = self.uniform(low, high);
        (0..length)
            .map(|_| char::from(b'a' + self.0.below(26) as u8))
            .collect()
    }

    pub fn digits(&mut self, count: u64) -> String {
        (0..count)
            .map(|_| char::from(b'0' + self.0.below(10) as u8))
            .collect()
    }

    /// A text with "ORIGINAL" in one of ten (clause 4.3.3.1).
    pub fn data(&mut self) -> String {
        let mut text = self.letters(26, 50);
        if self.0.below(10) == 0 {
            let position = self.0.below(text.len() as u64 - 8) as usize;
            text.replace_range(position..position + 8, "ORIGINAL");
        }
        text
    }

    /// The numbers `1..=count` in random order.
    pub fn permutation(&mut self, count: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> = (1..=count).collect();
        self.0.shuffle(&mut numbers);
        numbers
    }
}

/// The last name of a number below 1,000.
pub fn last_name(number: u64) -> String {
    [number / 100 % 10, number / 10 % 10, number % 10]
        .iter()
        .map(|digit| SYLLABLES[*digit as usize])
        .collect()
}
