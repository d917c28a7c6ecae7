//! Floating point numbers as C's `%g` prints them, which is what cqlsh shows.

/// Digits cqlsh shows of a `float`.
pub(crate) const FLOAT_PRECISION: usize = 5;
/// Digits cqlsh shows of a `double`.
pub(crate) const DOUBLE_PRECISION: usize = 12;

/// A number as cqlsh shows it: `precision` digits, behind the point where that is readable.
pub(crate) fn display(value: f64, precision: usize) -> String {
    if let Some(name) = not_a_number(value) {
        return name.to_owned();
    }
    let magnitude = value.abs();
    // cqlsh truncates towards zero; numbers next to zero have no exponent.
    let exponent = if magnitude > f64::EPSILON { magnitude.log10() as i64 } else { i64::MIN };
    let readable = (-4..precision as i64).contains(&exponent);
    let precision = if readable { (precision as i64 + exponent + 1) as usize } else { precision };
    general(value, precision)
}

/// The shortest text that reads back as the same number, as Java and CQL spell the special ones.
pub(crate) fn exact(value: f64, is_single: bool) -> String {
    match not_a_number(value) {
        Some(name) => name.to_owned(),
        None if is_single => format!("{:?}", value as f32),
        None => format!("{value:?}"),
    }
}

fn not_a_number(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// C's `%.Ng`.
fn general(value: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.unsigned_abs());
    }
    let decimals = (precision as i32 - 1 - exponent) as usize;
    without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_cqlsh() {
        assert_eq!(display(0.0, FLOAT_PRECISION), "0");
        assert_eq!(display(f64::from(0.1f32), FLOAT_PRECISION), "0.1");
        assert_eq!(display(1013.2, DOUBLE_PRECISION), "1013.2");
        assert_eq!(display(41.130_472_2, DOUBLE_PRECISION), "41.1304722");
        assert_eq!(display(1e20, DOUBLE_PRECISION), "1e+20");
        assert_eq!(display(-1.5e-7, DOUBLE_PRECISION), "-1.5e-07");
        assert_eq!(display(123_456.789, FLOAT_PRECISION), "1.2346e+05");
        assert_eq!(display(f64::NAN, FLOAT_PRECISION), "NaN");
        assert_eq!(display(f64::NEG_INFINITY, FLOAT_PRECISION), "-Infinity");
    }

    #[test]
    fn exact_numbers_read_back() {
        assert_eq!(exact(10.357_019_999_999_999, false), "10.357019999999999");
        assert_eq!(exact(f64::from(0.1f32), true), "0.1");
    }
}
