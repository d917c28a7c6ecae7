//! Sizes for people: `100MiB`, `1.5GB`, `2*2^20B`.

/// Powers of a thousand from 10^-30 to 10^30; the blank is one.
const PREFIXES: &[u8] = b"qryzafpnum KMGTPEZYRQ";
const PREFIX_OF_ONE: i32 = 10;

/// Reads a size in bytes.
///
/// # Errors
/// What Java says is wrong with it.
pub(super) fn size(text: &str) -> Result<f64, String> {
    let Some(body) = text.strip_suffix('B') else { return Err(format!("{text} does not end in unit B")) };
    let (mut value, mut rest, has_exponent) = number(body).ok_or("null")?;
    if !has_exponent && let Some(power) = rest.strip_prefix("*2^") {
        let (power, behind) = whole(power);
        if let Ok(power) = power.parse::<i32>() {
            value *= f64::powi(2.0, power);
            rest = behind;
        }
    }
    rest = rest.trim_start();
    let prefix = rest.bytes().next().and_then(|first| PREFIXES.iter().position(|prefix| *prefix == first));
    if let Some(power) = prefix.and_then(|index| i32::try_from(index).ok()).map(|index| index - PREFIX_OF_ONE)
    {
        rest = &rest[1..];
        match rest.strip_prefix('i') {
            Some(behind) => {
                rest = behind;
                value *= f64::powi(2.0, power * 10);
            }
            None => value *= f64::powi(1000.0, power),
        }
    }
    if rest.is_empty() {
        return Ok(value);
    }
    let (position, end) = (body.len() - rest.len(), body.len());
    Err(format!("Unexpected characters between pos {position} and {end} in {text}"))
}

/// The number a text begins with, what is behind it, and whether it has a decimal exponent.
fn number(text: &str) -> Option<(f64, &str, bool)> {
    let (_, after_whole) = whole(text);
    let mut end = text.len() - after_whole.len();
    if end == 0 || !text[..end].ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    if let Some(fraction) = after_whole.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        end += if digits > 0 { digits + 1 } else { 0 };
    }
    let mut has_exponent = false;
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']) {
        let (digits, _) = whole(exponent);
        if digits.ends_with(|last: char| last.is_ascii_digit()) {
            end += digits.len() + 1;
            has_exponent = true;
        }
    }
    text[..end].parse().ok().map(|value| (value, &text[end..], has_exponent))
}

/// An optional sign and digits, and what is behind them.
fn whole(text: &str) -> (&str, &str) {
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    text.split_at(sign + digits)
}

/// A size as `1.000MiB`.
pub(super) fn pretty(bytes: i64) -> String {
    let power = bytes.unsigned_abs().checked_ilog2().unwrap_or(0) / 10;
    let power = i32::try_from(power).unwrap_or(0);
    if power == 0 {
        return format!("{bytes}B");
    }
    let index = usize::try_from(PREFIX_OF_ONE + power).unwrap_or(0);
    let prefix = char::from(PREFIXES.get(index).copied().unwrap_or(b' '));
    format!("{:.3}{prefix}iB", bytes as f64 * f64::powi(2.0, -10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_either_kind_of_prefix() {
        for (text, bytes) in
            [("100MiB", 104_857_600.0), ("1.5 GB", 1.5e9), ("3*2^10B", 3072.0), ("2e3B", 2000.0), ("7B", 7.0)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        assert_eq!(size("100"), Err("100 does not end in unit B".to_owned()));
        assert_eq!(size("100XB"), Err("Unexpected characters between pos 3 and 4 in 100XB".to_owned()));
        assert_eq!(size("B"), Err("null".to_owned()));
        assert!(size("1µB").is_err());
    }

    #[test]
    fn sizes_are_shown_with_three_digits() {
        assert_eq!(pretty(1 << 20), "1.000MiB");
        assert_eq!(pretty(1000), "1000B");
        assert_eq!(pretty(0), "0B");
    }
}
