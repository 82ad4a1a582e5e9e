//! How the locales of FORMAT write numbers: the point, and what stands between groups of digits.
//!
//! Reference: MySQL manual, "MySQL Server Locale Support".

/// How a locale writes a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberStyle {
    pub point: char,
    /// `None`: digits are not grouped.
    pub separator: Option<char>,
    /// Digits of the groups but the last, which has three.
    pub group: usize,
}

const fn style(point: char, separator: Option<char>) -> NumberStyle {
    NumberStyle {
        point,
        separator,
        group: 3,
    }
}

/// That of `en_US`, and of what is no locale.
const ENGLISH: NumberStyle = style('.', Some(','));

/// Styles other than the English one, with their locales.
const STYLES: [(NumberStyle, &str); 7] = [
    (style('.', None), "ar_SA sr_RS sr_YU"),
    (
        style(',', Some('.')),
        "be_BY da_DK de_BE de_DE de_LU es_AR es_BO es_CL es_CO es_EC es_ES es_PY es_UY es_VE fo_FO hu_HU id_ID is_IS lt_LT \
         mn_MN nb_NO no_NO ro_RO ru_UA sq_AL tr_TR uk_UA vi_VN",
    ),
    (
        style(',', None),
        "ca_ES de_AT el_GR eu_ES fr_BE fr_CA fr_CH fr_FR fr_LU gl_ES hr_HR it_IT nl_BE nl_NL pl_PL pt_BR pt_PT sl_SI",
    ),
    (
        style(',', Some(' ')),
        "bg_BG cs_CZ es_CR et_EE fi_FI lv_LV mk_MK ru_RU sk_SK sv_FI sv_SE",
    ),
    (style('.', Some('\'')), "de_CH"),
    (style(',', Some('\'')), "it_CH rm_CH"),
    (
        NumberStyle {
            point: '.',
            separator: Some(','),
            group: 2,
        },
        "en_IN ta_IN te_IN",
    ),
];

/// The style of a locale by its name.
pub fn number_style(locale: Option<&str>) -> NumberStyle {
    let Some(locale) = locale else {
        return ENGLISH;
    };
    let has = |names: &str| {
        let mut names = names.split_ascii_whitespace();
        names.any(|name| name.eq_ignore_ascii_case(locale))
    };
    STYLES
        .iter()
        .find(|(_, names)| has(names))
        .map_or(ENGLISH, |(style, _)| *style)
}

impl NumberStyle {
    /// Appends the digits of a whole number in groups.
    pub fn push_whole(self, digits: &str, out: &mut String) {
        let length = digits.len();
        for (at, digit) in digits.chars().enumerate() {
            let left = length - at;
            let begins_group = left == 3 || (left > 3 && (left - 3).is_multiple_of(self.group));
            if at > 0
                && begins_group
                && let Some(separator) = self.separator
            {
                out.push(separator);
            }
            out.push(digit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_as_the_locale_has_it() {
        for (locale, expected) in [
            (None, "1,234,567"),
            (Some("de_de"), "1.234.567"),
            (Some("fr_FR"), "1234567"),
            (Some("en_IN"), "12,34,567"),
            (Some("xx"), "1,234,567"),
        ] {
            let mut out = String::new();
            number_style(locale).push_whole("1234567", &mut out);
            assert_eq!(out, expected);
        }
    }
}
