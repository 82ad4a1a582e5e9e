//! Sizes as people write and read them: `64M`, `1.5G`, `4096`.

/// Bytes of a size with an optional unit: K, M, G or T are powers of 1024, in either case, and `iB` or `B` may
/// follow.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit
        .strip_suffix("ib")
        .or_else(|| unit.strip_suffix('b'))
        .unwrap_or(&unit);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => {
            return Err(format!(
                "'{text}' is not a size; write a number with K, M, G or T, such as 512M"
            ));
        }
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is not a size; write a number first, such as 512M"))?;
    let bytes = number
        * f64::from(1_u32 << (shift % 30))
        * if shift >= 30 { f64::from(1 << 30) } else { 1.0 };
    if bytes > usize::MAX as f64 / 2.0 {
        return Err(format!("'{text}' is more than this machine can address"));
    }
    Ok(bytes as usize)
}

/// A size with the largest unit that keeps it readable.
pub fn format_size(bytes: usize) -> String {
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift {
            let value = bytes as f64 / (1_u64 << shift) as f64;
            return if value.fract() == 0.0 {
                format!("{value} {unit}")
            } else {
                format!("{value:.1} {unit}")
            };
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::{format_size, parse_size};

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("64k", 64 << 10),
            ("512M", 512 << 20),
            ("512MiB", 512 << 20),
            ("512 mb", 512 << 20),
            ("1.5G", 3 << 29),
            ("2T", 2 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        for (bytes, text) in [
            (64 << 20, "64 MiB"),
            (1536, "1.5 KiB"),
            (12, "12 bytes"),
            (5 << 29, "2.5 GiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "M", "12X", "-1", "1..5M", "99999999999T", "1M2"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
