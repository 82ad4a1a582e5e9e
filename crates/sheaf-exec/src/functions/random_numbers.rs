//! RAND: MySQL's generator of two congruential sequences.
//!
//! RAND(n) begins anew with the same numbers for the same n. RAND() of a session that has set `rand_seed1` or
//! `rand_seed2` goes on where its last call stopped: the same seeds give the same numbers. Without seeds each batch
//! begins where nobody knows, so that threads share nothing.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, Float64Array};

#[derive(Clone, Debug)]
struct Generator {
    first: u64,
    second: u64,
}

impl Generator {
    const MODULUS: u64 = 0x3FFF_FFFF;

    fn new(seed: u32) -> Generator {
        let first = seed.wrapping_mul(0x10001).wrapping_add(55_555_555);
        let second = seed.wrapping_mul(0x1000_0001);
        Generator {
            first: u64::from(first) % Self::MODULUS,
            second: u64::from(second) % Self::MODULUS,
        }
    }

    fn unforeseeable() -> Generator {
        Self::new(RandomState::new().build_hasher().finish() as u32)
    }

    /// Seeds may be any numbers. They wrap, as MySQL's do.
    fn next(&mut self) -> f64 {
        let (first, second) = (self.first, self.second);
        self.first = first.wrapping_mul(3).wrapping_add(second) % Self::MODULUS;
        self.second = self.first.wrapping_add(second).wrapping_add(33) % Self::MODULUS;
        self.first as f64 / Self::MODULUS as f64
    }

    fn numbers(&mut self, rows: usize) -> ArrayRef {
        let numbers = (0..rows).map(|_| self.next());
        Arc::new(Float64Array::from_iter_values(numbers))
    }
}

/// The numbers of a session that has set seeds. Copies are the same numbers.
#[derive(Clone, Debug, Default)]
pub struct SeededNumbers(Arc<Mutex<Option<Generator>>>);

/// Where the numbers of a session have come to.
#[derive(Debug)]
pub struct PlaceInNumbers(Option<Generator>);

impl SeededNumbers {
    fn generator(&self) -> MutexGuard<'_, Option<Generator>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `rand_seed1`.
    pub fn set_first(&self, seed: u64) {
        self.generator()
            .get_or_insert_with(Generator::unforeseeable)
            .first = seed;
    }

    /// `rand_seed2`.
    pub fn set_second(&self, seed: u64) {
        self.generator()
            .get_or_insert_with(Generator::unforeseeable)
            .second = seed;
    }

    /// The session has set no seeds.
    pub fn forget(&self) {
        *self.generator() = None;
    }

    /// To go [back](Self::restore) to.
    pub fn place(&self) -> PlaceInNumbers {
        PlaceInNumbers(self.generator().clone())
    }

    /// The next numbers. Without seeds they begin where nobody knows.
    pub(super) fn draw(&self, rows: usize) -> ArrayRef {
        match self.generator().as_mut() {
            Some(generator) => generator.numbers(rows),
            None => Generator::unforeseeable().numbers(rows),
        }
    }

    pub fn restore(&self, place: PlaceInNumbers) {
        *self.generator() = place.0;
    }
}

/// The numbers that a seed begins.
pub(super) fn numbers_of_seed(seed: u32, rows: usize) -> ArrayRef {
    Generator::new(seed).numbers(rows)
}

/// The first number of each seed.
pub(super) fn first_numbers(seeds: impl Iterator<Item = u32>) -> ArrayRef {
    let numbers = seeds.map(|seed| Generator::new(seed).next());
    Arc::new(Float64Array::from_iter_values(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers are MySQL's, after `SET rand_seed1 = 10, rand_seed2 = 20`.
    #[test]
    fn seeds_give_the_numbers_of_mysql() {
        let numbers = SeededNumbers::default();
        numbers.set_first(10);
        numbers.set_second(20);
        let mut generator = numbers.generator().clone().unwrap();
        assert_eq!(generator.next(), 0.00000004656612877414201);
        assert_eq!(generator.next(), 0.00000023562461159715858);
        // Any seed is one.
        let (first, second) = (4_294_967_295, 4_294_967_296);
        assert_eq!(
            Generator { first, second }.next(),
            0.000000012107193481276923
        );
        assert_eq!(Generator::new(5).next(), 0.40613597483014313);
    }

    #[test]
    fn a_place_is_gone_back_to() {
        let numbers = SeededNumbers::default();
        let before = numbers.place();
        numbers.set_first(1);
        assert!(numbers.generator().is_some());
        numbers.restore(before);
        assert!(numbers.generator().is_none());
    }
}
