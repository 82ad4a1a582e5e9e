//! Variables that are lists of flags, as `enabled=on,one_line=off`.

/// Applies `new`, a list of `flag=on|off|default` or `default` alone, to `current`.
///
/// # Errors
/// The part that is not understood (error 1231).
pub(super) fn merge(
    flags: &[&str],
    default: &str,
    current: &str,
    new: &str,
) -> Result<String, String> {
    let mut values: Vec<bool> = flags.iter().map(|flag| is_on(current, flag)).collect();
    let parts = new.split(',').map(str::trim);
    for part in parts.filter(|part| !part.is_empty()) {
        let wrong = || part.to_string();
        if part.eq_ignore_ascii_case("default") {
            for (value, flag) in values.iter_mut().zip(flags) {
                *value = is_on(default, flag);
            }
            continue;
        }
        let (name, word) = part.split_once('=').ok_or_else(wrong)?;
        let position = flags
            .iter()
            .position(|flag| flag.eq_ignore_ascii_case(name.trim()))
            .ok_or_else(wrong)?;
        values[position] = match word.trim().to_ascii_lowercase().as_str() {
            "on" => true,
            "off" => false,
            "default" => is_on(default, flags[position]),
            _ => return Err(wrong()),
        };
    }
    let texts = flags.iter().zip(values).map(|(flag, value)| match value {
        true => format!("{flag}=on"),
        false => format!("{flag}=off"),
    });
    Ok(texts.collect::<Vec<_>>().join(","))
}

/// The list that a number stands for: its lowest bit is the first flag. `None`: it has bits of no flag.
pub(super) fn of_bits(flags: &[&str], bits: i128) -> Option<String> {
    let bits = u64::try_from(bits)
        .ok()
        .filter(|bits| bits >> flags.len() == 0)?;
    let texts = flags
        .iter()
        .enumerate()
        .map(|(bit, flag)| match bits >> bit & 1 {
            1 => format!("{flag}=on"),
            _ => format!("{flag}=off"),
        });
    Some(texts.collect::<Vec<_>>().join(","))
}

/// Whether a list of flags has this one on.
pub(super) fn is_on(list: &str, flag: &str) -> bool {
    list.split(',')
        .filter_map(|part| part.split_once('='))
        .any(|(name, value)| name == flag && value == "on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_flag_for_each_bit() {
        let flags = ["enabled", "one_line"];
        let on = Some("enabled=on,one_line=off".to_string());
        assert_eq!(of_bits(&flags, 1), on);
        assert_eq!(of_bits(&flags, 4), None);
        assert_eq!(of_bits(&flags, -1), None);
    }

    #[test]
    fn flags_that_are_not_named_keep_their_values() {
        let flags = ["enabled", "one_line"];
        let merge = |current, new| merge(&flags, "enabled=off,one_line=off", current, new);
        let on = merge("enabled=off,one_line=on", "ENABLED=on");
        assert_eq!(on, Ok("enabled=on,one_line=on".to_string()));
        let default = merge("enabled=on,one_line=on", "default, one_line = on");
        assert_eq!(default, Ok("enabled=off,one_line=on".to_string()));
        assert_eq!(merge("", "enabled=1"), Err("enabled=1".to_string()));
        assert_eq!(merge("", "loud=on"), Err("loud=on".to_string()));
        assert_eq!(merge("", "enabled"), Err("enabled".to_string()));
    }
}
