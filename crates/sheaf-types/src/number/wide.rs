//! Exact numbers of more than [`MAX_DIGITS`](super::MAX_DIGITS) digits, on 256 bits.
//!
//! DECIMALs of up to 38 digits are `i128` wherever they go. Those of 39 to [`MAX_WIDE_DIGITS`] digits are *wide*: in
//! rows, keys and [values](crate::Value) they are a [`Wide`], and an [`Int256`] where something is computed of them.
//!
//! ```text
//!   Wide      28 bytes, little-endian, two's complement    10^65 is less than 2^216
//!   Int256    a sign and 256 bits                          sums, and products of up to 77 digits
//!   Limbs     512 bits without a sign                      what products and dividends are in between
//! ```
//!
//! What does not fit is `None`. Digits that are lost are rounded, halves away from zero, unless a function says that it
//! cuts them.

use std::cmp::Ordering;

use super::decimal::MAX_DIGITS;

/// Digits of the largest DECIMAL.
pub const MAX_WIDE_DIGITS: u8 = 65;
/// Bytes of a [`Wide`].
pub const WIDE_BYTES: usize = 28;
/// Zeros of the largest power of ten of 64 bits.
const ZEROS_OF_64_BITS: u8 = 19;

/// The unscaled value of a wide DECIMAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wide([u8; WIDE_BYTES]);

impl Wide {
    pub const ZERO: Wide = Wide([0; WIDE_BYTES]);
    /// Greater than all DECIMALs.
    pub const BEYOND: Wide = {
        let mut bytes = [0xFF; WIDE_BYTES];
        bytes[WIDE_BYTES - 1] = 0x7F;
        Wide(bytes)
    };

    /// Little-endian, two's complement.
    pub fn of_bytes(bytes: [u8; WIDE_BYTES]) -> Wide {
        Wide(bytes)
    }

    /// Little-endian, two's complement.
    pub fn bytes(&self) -> &[u8; WIDE_BYTES] {
        &self.0
    }

    /// Bytes that are in the order of the numbers: big-endian, with the sign bit flipped.
    pub fn ordered_bytes(&self) -> [u8; WIDE_BYTES] {
        let mut bytes = self.0;
        bytes.reverse();
        bytes[0] ^= 0x80;
        bytes
    }

    pub fn is_zero(&self) -> bool {
        self.0 == [0; WIDE_BYTES]
    }

    pub fn is_negative(&self) -> bool {
        self.0[WIDE_BYTES - 1] & 0x80 != 0
    }
}

impl From<i128> for Wide {
    fn from(value: i128) -> Wide {
        let mut bytes = [if value < 0 { 0xFF } else { 0 }; WIDE_BYTES];
        bytes[..16].copy_from_slice(&value.to_le_bytes());
        Wide(bytes)
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Wide) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Wide) -> Ordering {
        self.ordered_bytes().cmp(&other.ordered_bytes())
    }
}

/// A signed integer of 256 bits.
// The order of the fields is that of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Int256 {
    high: i128,
    low: u128,
}

impl From<i128> for Int256 {
    fn from(value: i128) -> Int256 {
        Int256 {
            high: if value < 0 { -1 } else { 0 },
            low: value as u128,
        }
    }
}

impl From<Wide> for Int256 {
    fn from(wide: Wide) -> Int256 {
        let mut bytes = [if wide.is_negative() { 0xFF } else { 0 }; 32];
        bytes[..WIDE_BYTES].copy_from_slice(&wide.0);
        let half = |at: usize| {
            let mut half = [0; 16];
            half.copy_from_slice(&bytes[at..at + 16]);
            u128::from_le_bytes(half)
        };
        Int256::of_parts(half(0), half(16) as i128)
    }
}

impl Int256 {
    pub const ZERO: Int256 = Int256 { high: 0, low: 0 };

    /// The lower and the upper half of the two's complement.
    pub const fn of_parts(low: u128, high: i128) -> Int256 {
        Int256 { high, low }
    }

    /// The lower and the upper half of the two's complement.
    pub const fn parts(self) -> (u128, i128) {
        (self.low, self.high)
    }

    pub fn is_zero(self) -> bool {
        self == Int256::ZERO
    }

    pub fn is_negative(self) -> bool {
        self.high < 0
    }

    /// -1, 0 or 1.
    pub fn signum(self) -> i128 {
        match (self.is_negative(), self.is_zero()) {
            (true, _) => -1,
            (_, true) => 0,
            _ => 1,
        }
    }

    pub fn to_i128(self) -> Option<i128> {
        let value = self.low as i128;
        (Int256::from(value) == self).then_some(value)
    }

    /// What rows hold; `None` beyond 224 bits.
    pub fn to_wide(self) -> Option<Wide> {
        let mut bytes = [0; WIDE_BYTES];
        bytes[..16].copy_from_slice(&self.low.to_le_bytes());
        bytes[16..].copy_from_slice(&self.high.to_le_bytes()[..WIDE_BYTES - 16]);
        let wide = Wide(bytes);
        (Int256::from(wide) == self).then_some(wide)
    }

    /// Two's complement, little-endian.
    pub fn to_le_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.low.to_le_bytes());
        bytes[16..].copy_from_slice(&self.high.to_le_bytes());
        bytes
    }

    /// The least number has no opposite and stays itself; no DECIMAL is as large.
    pub fn negated(self) -> Int256 {
        let (low, carry) = (!self.low).overflowing_add(1);
        Int256 {
            low,
            high: (!self.high).wrapping_add(i128::from(carry)),
        }
    }

    pub fn abs(self) -> Int256 {
        match self.is_negative() {
            true => self.negated(),
            false => self,
        }
    }

    pub fn checked_add(self, other: Int256) -> Option<Int256> {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high.wrapping_add(other.high);
        let high = high.wrapping_add(i128::from(carry));
        let sum = Int256 { high, low };
        // Numbers of different signs always have a sum.
        let is_within =
            self.is_negative() != other.is_negative() || sum.is_negative() == self.is_negative();
        is_within.then_some(sum)
    }

    pub fn checked_sub(self, other: Int256) -> Option<Int256> {
        self.checked_add(other.negated())
    }

    pub fn checked_mul(self, other: Int256) -> Option<Int256> {
        self.product(other, 0)
    }

    /// The product without its last `cut` digits, which are cut.
    pub fn product(self, other: Int256, cut: u8) -> Option<Int256> {
        let is_negative = self.is_negative() != other.is_negative();
        let mut product = Limbs::of(self).times(&Limbs::of(other))?;
        product.cut(cut);
        product.signed(is_negative)
    }

    /// `self` * 10^`zeros` / `divisor`, cut; `None` of 0.
    pub fn quotient(self, zeros: u8, divisor: Int256) -> Option<Int256> {
        self.parts_of_division(zeros, divisor)?.0
    }

    /// The remainder of `self` * 10^`zeros` by `divisor`, with the sign of `self`; `None` of 0.
    pub fn remainder(self, zeros: u8, divisor: Int256) -> Option<Int256> {
        Some(self.parts_of_division(zeros, divisor)?.1)
    }

    /// Quotient and remainder of `self` * 10^`zeros` by `divisor`. The remainder has the sign of the dividend. `None`
    /// of 0; of a quotient that does not fit, `None` stands in its place.
    fn parts_of_division(self, zeros: u8, divisor: Int256) -> Option<(Option<Int256>, Int256)> {
        if divisor.is_zero() {
            return None;
        }
        let mut dividend = Limbs::of(self);
        dividend.append_zeros(zeros)?;
        let (quotient, remainder) = dividend.divided(&Limbs::of(divisor));
        let is_negative = self.is_negative() != divisor.is_negative();
        Some((
            quotient.signed(is_negative),
            remainder.signed(self.is_negative())?,
        ))
    }

    /// Quotient, cut, and remainder; `None` of 0.
    pub fn checked_div_rem(self, divisor: Int256) -> Option<(Int256, Int256)> {
        let (quotient, remainder) = self.parts_of_division(0, divisor)?;
        Some((quotient?, remainder))
    }

    /// 10^`exponent`; `None`: it does not fit.
    pub fn power_of_ten(exponent: u8) -> Option<Int256> {
        let mut limbs = Limbs::of(Int256::from(1));
        limbs.append_zeros(exponent)?;
        limbs.signed(false)
    }

    /// The greatest number of so many digits.
    pub fn nines(digits: u8) -> Int256 {
        let power = Int256::power_of_ten(digits.min(MAX_WIDE_DIGITS)).unwrap_or_default();
        power.checked_sub(Int256::from(1)).unwrap_or_default()
    }

    /// `self` / 10^`from` as a number of `to` decimals, rounded; and whether digits were lost. `None`: it does not fit.
    pub fn rescaled_noting_loss(self, from: u8, to: u8) -> Option<(Int256, bool)> {
        if to >= from {
            let mut limbs = Limbs::of(self);
            limbs.append_zeros(to - from)?;
            return Some((limbs.signed(self.is_negative())?, false));
        }
        let lost = from - to;
        let mut limbs = Limbs::of(self);
        // All but the last of the lost digits are cut; that one decides.
        let mut is_inexact = limbs.cut(lost - 1);
        let last = limbs.divide_by(10);
        is_inexact |= last != 0;
        if last >= 5 {
            limbs.add_small(1);
        }
        Some((limbs.signed(self.is_negative())?, is_inexact))
    }

    /// `self` / 10^`from` as a number of `to` decimals, rounded. `None`: it does not fit.
    pub fn rescaled(self, from: u8, to: u8) -> Option<Int256> {
        self.rescaled_noting_loss(from, to)
            .map(|(number, _)| number)
    }

    /// `self` / 10^`from` as a number of `to` decimals, cut. `None`: it does not fit.
    pub fn truncated(self, from: u8, to: u8) -> Option<Int256> {
        if to >= from {
            return self.rescaled(from, to);
        }
        let mut limbs = Limbs::of(self);
        limbs.cut(from - to);
        limbs.signed(self.is_negative())
    }

    /// Ten times the number, and a digit that makes it larger in size. `None`: it does not fit.
    pub fn with_digit(self, digit: u8) -> Option<Int256> {
        let mut limbs = Limbs::of(self);
        limbs.multiply_by(10)?;
        limbs.add_small(u64::from(digit));
        limbs.signed(self.is_negative())
    }

    /// Its decimal digits without the sign, at least one.
    pub fn digits(self) -> String {
        let mut limbs = Limbs::of(self);
        let mut groups = Vec::new();
        loop {
            groups.push(limbs.divide_by(10u64.pow(u32::from(ZEROS_OF_64_BITS))));
            if limbs.is_zero() {
                break;
            }
        }
        let mut digits = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            digits.push_str(&format!("{group:019}"));
        }
        digits
    }

    /// How many decimal digits it has; 1 of zero.
    pub fn count_digits(self) -> usize {
        self.digits().len()
    }
}

/// The size of a number, the lowest 64 bits first.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Limbs([u64; 8]);

impl Limbs {
    fn of(number: Int256) -> Limbs {
        let number = number.abs();
        let (low, high) = (number.low, number.high as u128);
        let mut limbs = [0; 8];
        limbs[0] = low as u64;
        limbs[1] = (low >> 64) as u64;
        limbs[2] = high as u64;
        limbs[3] = (high >> 64) as u64;
        Limbs(limbs)
    }

    /// `None`: more than 255 bits.
    fn signed(&self, is_negative: bool) -> Option<Int256> {
        if self.0[4..].iter().any(|limb| *limb != 0) || self.0[3] >> 63 != 0 {
            return None;
        }
        let pair = |at: usize| u128::from(self.0[at]) | u128::from(self.0[at + 1]) << 64;
        let number = Int256::of_parts(pair(0), pair(2) as i128);
        Some(match is_negative {
            true => number.negated(),
            false => number,
        })
    }

    fn is_zero(&self) -> bool {
        self.0 == [0; 8]
    }

    /// How many of the limbs are in use.
    fn length(&self) -> usize {
        self.0
            .iter()
            .rposition(|limb| *limb != 0)
            .map_or(0, |last| last + 1)
    }

    fn multiply_by(&mut self, factor: u64) -> Option<()> {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = product as u64;
            carry = product >> 64;
        }
        (carry == 0).then_some(())
    }

    fn append_zeros(&mut self, zeros: u8) -> Option<()> {
        if self.is_zero() {
            return Some(());
        }
        let mut left = zeros;
        while left > 0 {
            let some = left.min(ZEROS_OF_64_BITS);
            self.multiply_by(10u64.pow(u32::from(some)))?;
            left -= some;
        }
        Some(())
    }

    /// Divides, and gives the remainder.
    fn divide_by(&mut self, divisor: u64) -> u64 {
        let mut rest = 0u128;
        for limb in self.0.iter_mut().rev() {
            let dividend = rest << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(divisor)) as u64;
            rest = dividend % u128::from(divisor);
        }
        rest as u64
    }

    /// Cuts so many digits, and says whether one of them was other than zero.
    fn cut(&mut self, digits: u8) -> bool {
        let mut left = digits;
        let mut is_inexact = false;
        while left > 0 && !self.is_zero() {
            let some = left.min(ZEROS_OF_64_BITS);
            is_inexact |= self.divide_by(10u64.pow(u32::from(some))) != 0;
            left -= some;
        }
        is_inexact
    }

    fn add_small(&mut self, number: u64) {
        let mut carry = number;
        for limb in &mut self.0 {
            let (sum, overflows) = limb.overflowing_add(carry);
            *limb = sum;
            carry = u64::from(overflows);
        }
    }

    fn times(&self, other: &Limbs) -> Option<Limbs> {
        let (own, others) = (self.length(), other.length());
        if own + others > 8 {
            return None;
        }
        let mut product = [0u64; 8];
        for (at, limb) in self.0[..own].iter().enumerate() {
            let mut carry = 0u128;
            for (by, factor) in other.0[..others].iter().enumerate() {
                let sum =
                    u128::from(*limb) * u128::from(*factor) + u128::from(product[at + by]) + carry;
                product[at + by] = sum as u64;
                carry = sum >> 64;
            }
            if let Some(next) = product.get_mut(at + others) {
                *next = carry as u64;
            }
        }
        Some(Limbs(product))
    }

    fn compare(&self, other: &Limbs) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }

    fn subtract(&mut self, other: &Limbs) {
        let mut borrow = false;
        for (limb, less) in self.0.iter_mut().zip(&other.0) {
            let (difference, first) = limb.overflowing_sub(*less);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
    }

    /// Twice the number and a bit.
    fn push_bit(&mut self, bit: u64) {
        let mut carry = bit;
        for limb in &mut self.0 {
            let top = *limb >> 63;
            *limb = *limb << 1 | carry;
            carry = top;
        }
    }

    /// Quotient and remainder; the divisor is not 0.
    fn divided(&self, divisor: &Limbs) -> (Limbs, Limbs) {
        if divisor.length() == 1 {
            let mut quotient = *self;
            let mut remainder = [0; 8];
            remainder[0] = quotient.divide_by(divisor.0[0]);
            return (quotient, Limbs(remainder));
        }
        let (mut quotient, mut remainder) = (Limbs([0; 8]), Limbs([0; 8]));
        for at in (0..64 * self.length()).rev() {
            remainder.push_bit(self.0[at / 64] >> (at % 64) & 1);
            if remainder.compare(divisor) != Ordering::Less {
                remainder.subtract(divisor);
                quotient.0[at / 64] |= 1 << (at % 64);
            }
        }
        (quotient, remainder)
    }
}

/// Whether a DECIMAL of so many digits is wide.
pub const fn is_wide(precision: u8) -> bool {
    precision > MAX_DIGITS
}

/// Bytes of a signed integer that holds all numbers of so many digits.
pub fn signed_bytes_of_digits(digits: u8) -> u8 {
    if is_wide(digits) {
        let largest = Int256::nines(digits).to_le_bytes();
        let highest = largest.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        // The sign has a bit of its own.
        return highest as u8 + 1 + u8::from(largest[highest] >= 0x80);
    }
    let largest = 10u128.pow(u32::from(digits)) - 1;
    ((129 - largest.leading_zeros()).div_ceil(8)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Int256 {
        let digits = text.trim_start_matches('-').bytes();
        let size = digits.fold(Int256::ZERO, |number, digit| {
            number.with_digit(digit - b'0').unwrap()
        });
        match text.starts_with('-') {
            true => size.negated(),
            false => size,
        }
    }

    fn shown(number: Int256) -> String {
        let sign = if number.is_negative() { "-" } else { "" };
        format!("{sign}{}", number.digits())
    }

    #[test]
    fn numbers_are_their_digits() {
        let nines = "9".repeat(65);
        for text in [
            "0",
            "7",
            "-7",
            "10000000000000000000",
            &nines,
            &format!("-{nines}"),
        ] {
            assert_eq!(shown(number(text)), text);
        }
        assert_eq!(Int256::nines(65), number(&nines));
        assert_eq!(Int256::nines(65).count_digits(), 65);
        assert_eq!(number("-12").to_i128(), Some(-12));
        assert_eq!(Int256::from(i128::MIN).to_i128(), Some(i128::MIN));
        assert_eq!(number(&nines).to_i128(), None);
        assert_eq!(number(&"9".repeat(76)).with_digit(9), None);
    }

    #[test]
    fn rows_hold_what_decimals_have() {
        for text in ["0", "-1", &"9".repeat(65), &format!("-{}", "9".repeat(65))] {
            let wide = number(text).to_wide().unwrap();
            assert_eq!(shown(Int256::from(wide)), text);
            assert_eq!(wide.is_negative(), text.starts_with('-'));
        }
        assert_eq!(number(&"9".repeat(70)).to_wide(), None);
        assert_eq!(Wide::from(-5), Int256::from(-5).to_wide().unwrap());
        assert!(Wide::from(-5) < Wide::from(3) && Wide::from(3) < Wide::from(500));
    }

    #[test]
    fn sums_and_products_are_exact() {
        let (one, other) = (number(&"9".repeat(40)), number(&"8".repeat(36)));
        let product = one.checked_mul(other).unwrap();
        assert_eq!(
            shown(product),
            "8888888888888888888888888888888888879999111111111111111111111111111111111112"
        );
        assert_eq!(product.checked_div_rem(one), Some((other, Int256::ZERO)));
        assert_eq!(product.checked_div_rem(other), Some((one, Int256::ZERO)));
        let sum = product.checked_add(Int256::from(-3)).unwrap();
        assert_eq!(sum.checked_sub(product), Some(Int256::from(-3)));
        assert_eq!(one.checked_mul(one), None);
        assert_eq!(
            one.negated().product(one, 40),
            Some(number(&format!("-{}8", "9".repeat(39))))
        );
    }

    #[test]
    fn quotients_are_cut_and_remainders_have_the_dividends_sign() {
        let dividend = number("-1000000000000000000000000000000000000000000000007");
        let divisor = number("100000000000000000000000000000");
        let (quotient, remainder) = dividend.checked_div_rem(divisor).unwrap();
        assert_eq!(shown(quotient), "-10000000000000000000");
        assert_eq!(shown(remainder), "-7");
        assert_eq!(
            number("2").quotient(30, number("3")).map(shown).unwrap(),
            "6".repeat(30)
        );
        assert_eq!(number("2").quotient(30, Int256::ZERO), None);
        // The dividend has more digits than fit.
        assert_eq!(
            number(&"9".repeat(65)).remainder(18, number("7")),
            Some(number("4"))
        );
        assert_eq!(number("2").remainder(30, Int256::ZERO), None);
    }

    #[test]
    fn rescaling_rounds_half_away_from_zero() {
        let half = number(&format!("{}5", "1".repeat(45)));
        assert_eq!(
            half.rescaled_noting_loss(1, 0),
            Some((number(&format!("{}2", "1".repeat(44))), true))
        );
        assert_eq!(
            half.negated()
                .rescaled_noting_loss(1, 0)
                .map(|(number, _)| shown(number)),
            Some(format!("-{}2", "1".repeat(44)))
        );
        assert_eq!(half.truncated(1, 0), Some(number(&"1".repeat(45))));
        assert_eq!(number("1").rescaled(0, 64), Int256::power_of_ten(64));
        assert_eq!(
            number("149").rescaled_noting_loss(2, 0),
            Some((number("1"), true))
        );
        assert_eq!(
            number("100").rescaled_noting_loss(2, 0),
            Some((number("1"), false))
        );
        assert_eq!(
            number("4").rescaled_noting_loss(30, 0),
            Some((Int256::ZERO, true))
        );
    }
}
