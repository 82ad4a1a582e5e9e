//! Numbers of 256 bits agree with those of 128, and with themselves.

use proptest::prelude::*;
use sheaf_types::json::compare::compare;
use sheaf_types::json::functions::coerce::to_wide_decimal;
use sheaf_types::json::sort_key::sort_key;
use sheaf_types::json::text::to_text;
use sheaf_types::json::{Builder, Document};
use sheaf_types::number::{
    Floor, Int256, NumberText, decimal_text, floor_of, rescale_noting_loss, text_floor,
    wide_decimal_text, wide_floor_of, wide_text_floor,
};

fn wide(value: i128) -> Int256 {
    value.into()
}

/// A number of up to 65 digits, of any length.
fn number() -> impl Strategy<Value = Int256> {
    (any::<i128>(), any::<i128>(), 0u8..66).prop_map(|(high, low, digits)| {
        let number = Int256::of_parts(low as u128, high >> 44);
        let (_, rest) = number
            .checked_div_rem(Int256::power_of_ten(digits).unwrap())
            .unwrap();
        rest
    })
}

/// A DECIMAL as a JSON value.
fn document(unscaled: Int256, scale: u8) -> Document {
    let mut builder = Builder::new();
    builder.wide_decimal(unscaled, scale).unwrap();
    builder.finish().unwrap()
}

proptest! {
    #[test]
    fn documents_hold_numbers_of_any_width(a in number(), b in number(), scale in 0u8..31) {
        let (one, other) = (document(a, scale), document(b, scale));
        let (one, other) = (one.as_json(), other.as_json());
        prop_assert_eq!(to_text(one), wide_decimal_text(a, scale));
        prop_assert_eq!(to_wide_decimal(one).value, (a, scale));
        prop_assert_eq!(compare(one, other), a.cmp(&b));
        prop_assert_eq!(sort_key(one).cmp(&sort_key(other)), a.cmp(&b));
    }

    #[test]
    fn what_fits_128_bits_is_computed_alike(a in any::<i64>(), b in any::<i64>(), zeros in 0u8..18) {
        let (a, b) = (i128::from(a) * i128::from(b), i128::from(b));
        prop_assert_eq!(wide(a).checked_add(wide(b)), Some(wide(a + b)));
        prop_assert_eq!(wide(a).checked_sub(wide(b)), Some(wide(a - b)));
        prop_assert_eq!(wide(a).cmp(&wide(b)), a.cmp(&b));
        if let Some(product) = a.checked_mul(b) {
            prop_assert_eq!(wide(a).checked_mul(wide(b)), Some(wide(product)));
        }
        if b != 0 {
            prop_assert_eq!(wide(a).checked_div_rem(wide(b)), Some((wide(a / b), wide(a % b))));
        }
        let rescaled = rescale_noting_loss(a, zeros, 0);
        let expected = rescaled.map(|(number, is_inexact)| (wide(number), is_inexact));
        prop_assert_eq!(wide(a).rescaled_noting_loss(zeros, 0), expected);
        prop_assert_eq!(wide_decimal_text(wide(a), zeros), decimal_text(a, zeros));
        let narrow = floor_of(a, zeros, 3);
        if !matches!(narrow, Floor::BelowAll | Floor::AboveAll) {
            prop_assert_eq!(wide_floor_of(wide(a), zeros, 3), narrow.into());
        }
    }

    #[test]
    fn divisions_are_products_again(a in number(), b in number()) {
        prop_assume!(!b.is_zero());
        let (quotient, remainder) = a.checked_div_rem(b).unwrap();
        let product = quotient.checked_mul(b).unwrap();
        prop_assert_eq!(product.checked_add(remainder), Some(a));
        prop_assert!(remainder.abs() < b.abs());
        prop_assert!(remainder.is_zero() || remainder.is_negative() == a.is_negative());
        prop_assert_eq!(a.quotient(0, b), Some(quotient));
    }

    #[test]
    fn texts_read_back(a in number(), scale in 0u8..31) {
        let text = wide_decimal_text(a, scale);
        prop_assert_eq!(NumberText::parse(&text).unwrap().scaled_wide(scale), Ok((a, false)));
        prop_assert_eq!(wide_text_floor(&text, scale), Floor::At(a));
        // With fewer decimals it is rounded, or lies above a floor.
        let (rounded, is_inexact) = a.rescaled_noting_loss(scale, 0).unwrap();
        prop_assert_eq!(NumberText::parse(&text).unwrap().scaled_wide(0), Ok((rounded, is_inexact)));
        prop_assert_eq!(wide_text_floor(&text, 0), wide_floor_of(a, scale, 0));
        let narrow = text_floor(&text, 0);
        if !matches!(narrow, Floor::BelowAll | Floor::AboveAll) {
            prop_assert_eq!(wide_text_floor(&text, 0), narrow.into());
        }
    }

    #[test]
    fn bytes_are_in_the_order_of_the_numbers(a in number(), b in number()) {
        let (one, other) = (a.to_wide().unwrap(), b.to_wide().unwrap());
        prop_assert_eq!(Int256::from(one), a);
        prop_assert_eq!(one.ordered_bytes().cmp(&other.ordered_bytes()), a.cmp(&b));
        prop_assert_eq!(one.cmp(&other), a.cmp(&b));
    }
}
