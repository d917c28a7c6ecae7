//! Numbers as Java prints them.

/// `8 MiB`, `221.77 KiB`, `0 bytes`: at most two digits behind the point.
pub(super) fn file_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (value, unit) = match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => (bytes as f64 / *size as f64, *unit),
        None => (bytes as f64, "bytes"),
    };
    let text = format!("{value:.2}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `8.000MiB`, `12B`: three digits behind the point from a kibibyte on.
pub(super) fn memory(bytes: u64) -> String {
    let step = bytes.checked_ilog2().unwrap_or(0) / 10;
    match step {
        0 => format!("{bytes}B"),
        step => {
            let unit = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][step as usize % 7];
            format!("{:.3}{unit}B", bytes as f64 / (1u64 << (10 * step)) as f64)
        }
    }
}

/// Java's `Double.toString`: the shortest digits, with an exponent outside of 0.001 to 10,000,000.
pub(super) fn double(value: f64) -> String {
    let magnitude = value.abs();
    if value.is_nan() {
        "NaN".to_owned()
    } else if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        format!("{value:?}")
    } else {
        let text = format!("{value:E}");
        match text.split_once('E') {
            Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0E{exponent}"),
            _ => text,
        }
    }
}

/// A mean in milliseconds of a total in microseconds; NaN when nothing happened.
pub(super) fn mean_ms(total_us: u64, count: u64) -> f64 {
    if count > 0 && total_us > 0 { total_us as f64 / count as f64 / 1000.0 } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_look_as_in_java() {
        assert_eq!(file_size(0), "0 bytes");
        assert_eq!(file_size(8 << 20), "8 MiB");
        assert_eq!(file_size(227_092), "221.77 KiB");
        assert_eq!(memory(0), "0B");
        assert_eq!(memory(1023), "1023B");
        assert_eq!(memory(5120), "5.000KiB");
    }

    #[test]
    fn doubles_look_as_in_java() {
        assert_eq!(double(100.0), "100.0");
        assert_eq!(double(1e-5), "1.0E-5");
        assert_eq!(double(f64::NAN), "NaN");
        assert_eq!(double(1.231_082_304_526_749), "1.231082304526749");
    }
}
