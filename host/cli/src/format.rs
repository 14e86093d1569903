//! Numbers for people: few digits, one unit per column.

/// A unit of time for a column or an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Seconds,
    Minutes,
    Hours,
    Days,
}

impl TimeUnit {
    /// The largest unit in which `max_s` is at least 3.
    pub(crate) fn for_max(max_s: f64) -> Self {
        match max_s {
            s if s >= 3.0 * 86_400.0 => Self::Days,
            s if s >= 3.0 * 3_600.0 => Self::Hours,
            s if s >= 3.0 * 60.0 => Self::Minutes,
            _ => Self::Seconds,
        }
    }

    /// Seconds in one unit.
    pub(crate) fn seconds(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::Minutes => 60.0,
            Self::Hours => 3_600.0,
            Self::Days => 86_400.0,
        }
    }

    /// Symbol for headers.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Minutes => "min",
            Self::Hours => "h",
            Self::Days => "d",
        }
    }

    /// `seconds` in this unit, without the symbol.
    pub(crate) fn show(self, seconds: f64) -> String {
        digits(seconds / self.seconds())
    }
}

/// About four significant digits, at most three decimals, thousands separated.
pub(crate) fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = value.abs();
    let decimals = match magnitude {
        0.0 => 0,
        m if m < 10.0 => 3,
        m if m < 100.0 => 2,
        m if m < 1_000.0 => 1,
        _ => 0,
    };
    separate(&format!("{value:.decimals$}"))
}

/// A setting as a person would write it: no needless zeros.
pub(crate) fn plain(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        return digits(value);
    }
    let shown = format!("{value:.3}");
    if shown.contains('.') { shown.trim_end_matches('0').trim_end_matches('.').to_owned() } else { shown }
}

/// A whole number with thousands separated.
pub(crate) fn count(value: u64) -> String {
    separate(&value.to_string())
}

/// A mean of counts: one decimal, thousands separated.
pub(crate) fn tenths(value: f64) -> String {
    if value.is_finite() { separate(&format!("{value:.1}")) } else { "–".to_owned() }
}

/// A ratio as a percentage with one decimal, without the sign `%`.
pub(crate) fn percent(ratio: f64) -> String {
    if ratio.is_finite() { format!("{:.1}", ratio * 100.0) } else { "–".to_owned() }
}

/// A relative difference in percent with its sign.
pub(crate) fn signed_percent(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "–".to_owned();
    }
    let shown = format!("{:+.1}", ratio * 100.0);
    if shown == "-0.0" { "+0.0".to_owned() } else { shown }
}

/// Bytes in binary units.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if value < 1_024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1_024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if scaled < 1_024.0 {
            break;
        }
        scaled /= 1_024.0;
        unit = next;
    }
    format!("{scaled:.1} {unit}")
}

fn separate(plain: &str) -> String {
    let (sign, rest) = match plain.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", plain),
    };
    let (whole, fraction) = match rest.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (rest, None),
    };
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_about_four_digits() {
        let check = |value: f64, expected: &str| assert_eq!(digits(value), expected);
        check(0.0, "0");
        check(0.123_456, "0.123");
        check(9.876_54, "9.877");
        check(98.765, "98.77");
        check(987.65, "987.6");
        check(9_876.5, "9,876");
        check(-1_234_567.0, "-1,234,567");
        check(f64::NAN, "–");
    }

    #[test]
    fn shows_settings_without_needless_zeros() {
        let check = |value: f64, expected: &str| assert_eq!(plain(value), expected);
        check(30.0, "30");
        check(0.5, "0.5");
        check(100.0, "100");
        check(1.0, "1");
        check(0.0, "0");
        check(12_345.0, "12,345");
    }

    #[test]
    fn separates_thousands() {
        let check = |value: u64, expected: &str| assert_eq!(count(value), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(82_247, "82,247");
        check(1_055_988_361, "1,055,988,361");
    }

    #[test]
    fn picks_the_unit_of_time() {
        let check = |max_s: f64, unit: &str, shown: &str| {
            let picked = TimeUnit::for_max(max_s);
            assert_eq!((picked.symbol(), picked.show(max_s).as_str()), (unit, shown));
        };
        check(0.0, "s", "0");
        check(179.0, "s", "179.0");
        check(180.0, "min", "3.000");
        check(10_800.0, "h", "3.000");
        check(864_000.0, "d", "10.00");
    }

    #[test]
    fn shows_differences_with_their_sign() {
        let check = |ratio: f64, expected: &str| assert_eq!(signed_percent(ratio), expected);
        check(0.123_4, "+12.3");
        check(-0.05, "-5.0");
        check(-0.000_01, "+0.0");
        check(f64::INFINITY, "–");
    }

    #[test]
    fn shows_bytes() {
        let check = |value: u64, expected: &str| assert_eq!(bytes(value), expected);
        check(1_023, "1023 B");
        check(1_536, "1.5 KiB");
        check(67_108_864, "64.0 MiB");
        check(3_298_534_883_328, "3.0 TiB");
    }
}
