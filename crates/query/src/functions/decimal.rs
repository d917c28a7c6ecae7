//! Arithmetic of decimals: exact, or with the scales and the rounding of Cassandra's `DecimalType`, which are those of
//! Java's `BigDecimal`.
//!
//! A scale of 32 bits makes numbers of a few bytes whose digits no memory holds. Whatever would write out their zeros
//! passes [`scaled_up`], which refuses more than twice the digits that a number may have: as many as there are between
//! the first digit and the last of two numbers that one result can depend on.

use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use types::digits::DIGITS_MAX;
use types::{TypeError, decimal};

use crate::QueryError;

/// Digits of a sum or product; more are rounded away.
const PRECISION_MAX: i64 = DIGITS_MAX as i64;
/// Most digits of what numbers are brought to before they are added or divided; the rest is for rounding.
const WORKING_DIGITS_MAX: i64 = 2 * PRECISION_MAX + 8;
/// Least digits behind the point, and of a quotient.
const QUOTIENT_DIGITS_MIN: i64 = 32;
/// Most digits behind the point of a quotient.
const QUOTIENT_SCALE_MAX: i64 = 1000;

/// Why there is no result; in Java's words, where Cassandra gives them to its clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArithmeticError {
    #[error("/ by zero")]
    IntegerByZero,
    #[error("BigInteger divide by zero")]
    BigIntegerByZero,
    #[error("Division by zero")]
    RemainderByZero,
    #[error("Division undefined")]
    RemainderOfZeroByZero,
    /// The scale of the result is below 32 bits.
    #[error("Overflow")]
    Overflow,
    /// It is above.
    #[error("Underflow")]
    Underflow,
    #[error("A NaN cannot be converted into a decimal")]
    NotANumber,
    #[error("An infinite number cannot be converted into a decimal")]
    Infinite,
    #[error(transparent)]
    Type(#[from] TypeError),
}

impl From<ArithmeticError> for QueryError {
    fn from(error: ArithmeticError) -> Self {
        QueryError::invalid(error.to_string())
    }
}

/// unscaled × 10^-scale
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    unscaled: BigInt,
    /// Invariant: an `i32`.
    scale: i64,
}

impl From<BigInt> for Decimal {
    fn from(unscaled: BigInt) -> Self {
        Decimal { unscaled, scale: 0 }
    }
}

impl Decimal {
    /// `None` for the empty value.
    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let (unscaled, scale) = decimal::to_parts(value)?;
        Some(Decimal { unscaled, scale: scale.into() })
    }

    /// Reads a literal.
    pub(super) fn parse(text: &str) -> Result<Self, ArithmeticError> {
        let value = decimal::parse(text)?;
        Ok(Decimal::decode(&value).unwrap_or_else(|| BigInt::ZERO.into()))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        decimal::from_parts(&self.unscaled, self.scale as i32)
    }

    /// A number of this scale, if there are such; zero has the nearest one.
    fn new(unscaled: BigInt, scale: i64) -> Result<Self, ArithmeticError> {
        let possible = scale.clamp(i32::MIN.into(), i32::MAX.into());
        match scale.cmp(&possible) {
            std::cmp::Ordering::Less if !unscaled.is_zero() => Err(ArithmeticError::Overflow),
            std::cmp::Ordering::Greater if !unscaled.is_zero() => Err(ArithmeticError::Underflow),
            _ => Ok(Decimal { unscaled, scale: possible }),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.unscaled.is_zero()
    }

    pub(super) fn negated(&self) -> Self {
        Decimal { unscaled: -&self.unscaled, scale: self.scale }
    }

    pub(super) fn magnitude(&self) -> Self {
        Decimal { unscaled: self.unscaled.abs(), scale: self.scale }
    }

    /// Power of ten of the first digit, plus one.
    fn exponent(&self) -> i64 {
        digit_count(&self.unscaled) - self.scale
    }

    /// The sum, rounded to 10,000 digits.
    pub(super) fn plus(&self, other: &Self) -> Result<Self, ArithmeticError> {
        if self.is_zero() || other.is_zero() {
            return self.plus_zero(other);
        }
        let (coarse, fine) = if self.scale <= other.scale { (self, other) } else { (other, self) };
        let fine = fine.seen_from(coarse);
        let coarse = scaled_up(&coarse.unscaled, fine.scale - coarse.scale)?;
        Decimal::new(coarse + fine.unscaled, fine.scale)?.rounded()
    }

    /// A sum of which one is zero is the other one, with zeros behind it up to the finer scale of the two or as far as
    /// 10,000 digits go.
    fn plus_zero(&self, zero: &Self) -> Result<Self, ArithmeticError> {
        if self.is_zero() && !zero.is_zero() {
            return zero.plus_zero(self);
        }
        let scale = self.scale.max(zero.scale);
        if self.is_zero() {
            return Ok(Decimal { unscaled: BigInt::ZERO, scale });
        }
        let sum = self.clone().rounded()?;
        let zeros = (scale - sum.scale).min(PRECISION_MAX - digit_count(&sum.unscaled));
        Decimal::new(scaled_up(&sum.unscaled, zeros)?, sum.scale + zeros)
    }

    /// This number, of the finer scale, as it shows in a rounded sum with another: if all of its digits stand behind
    /// those of the sum, a single one far enough behind tells as much of it, which is whether there is more or less
    /// than nothing.
    fn seen_from(&self, coarse: &Self) -> Self {
        let last_of_sum = coarse.scale - digit_count(&coarse.unscaled) + PRECISION_MAX;
        let behind = coarse.scale.max(last_of_sum) + 2;
        if self.scale - digit_count(&self.unscaled) < behind {
            return self.clone();
        }
        Decimal { unscaled: self.unscaled.signum(), scale: behind + 1 }
    }

    /// The product, rounded to 10,000 digits.
    pub(super) fn times(&self, other: &Self) -> Result<Self, ArithmeticError> {
        Decimal::new(&self.unscaled * &other.unscaled, self.scale + other.scale)?.rounded()
    }

    /// At most 10,000 digits, halves away from zero.
    fn rounded(mut self) -> Result<Self, ArithmeticError> {
        loop {
            // A number of nines becomes one digit longer, and is rounded once more.
            let dropped = digit_count(&self.unscaled) - PRECISION_MAX;
            if dropped <= 0 {
                return Ok(self);
            }
            let kept = divide(&self.unscaled, &power_of_ten(dropped), Halves::AwayFromZero);
            self = Decimal::new(kept, self.scale - dropped)?;
        }
    }

    /// The quotient with 32 digits or more, but not more than 1,000 behind the point; without zeros at its end.
    pub(super) fn divided_by(&self, divisor: &Self) -> Result<Self, ArithmeticError> {
        if divisor.is_zero() {
            return Err(ArithmeticError::BigIntegerByZero);
        }
        let exponent = self.exponent() - divisor.exponent();
        let scale = (QUOTIENT_DIGITS_MIN - exponent).max(self.scale).max(divisor.scale);
        let scale = scale.clamp(QUOTIENT_DIGITS_MIN, QUOTIENT_SCALE_MAX);
        if self.is_zero() || exponent + scale < -1 {
            return Ok(BigInt::ZERO.into());
        }
        let zeros = scale + divisor.scale - self.scale;
        let dividend = scaled_up(&self.unscaled, zeros.max(0))?;
        let divisor = scaled_up(&divisor.unscaled, (-zeros).max(0))?;
        let quotient = divide(&dividend, &divisor, Halves::AwayFromZero);
        let (stripped, zeros) = without_zeros(&quotient, u64::MAX);
        Ok(if stripped.is_zero() {
            BigInt::ZERO.into()
        } else {
            Decimal { unscaled: stripped, scale: scale - zeros }
        })
    }

    /// What is left of this number when the other is taken from it as often as it is in it.
    pub(super) fn modulo(&self, divisor: &Self) -> Result<Self, ArithmeticError> {
        if divisor.is_zero() {
            let is_zero = self.is_zero();
            return Err(if is_zero {
                ArithmeticError::RemainderOfZeroByZero
            } else {
                ArithmeticError::RemainderByZero
            });
        }
        if self.is_zero() || self.exponent() < divisor.exponent() {
            return Ok(self.clone());
        }
        let scale = self.scale.max(divisor.scale);
        let (a, b) = (self.at_scale(scale)?, divisor.at_scale(scale)?);
        let quotient = &a / &b;
        if quotient.is_zero() {
            return Ok(self.clone());
        }
        // Zeros at the end of the quotient are not written out again, down to the scale of the dividend.
        let (_, zeros) = without_zeros(&quotient, (scale - self.scale) as u64);
        let rest = a - quotient * b;
        Decimal::new(rest / power_of_ten(zeros), scale - zeros)
    }

    /// The sum without rounding.
    pub(super) fn plus_exactly(&self, other: &Self) -> Result<Self, ArithmeticError> {
        let scale = self.scale.max(other.scale);
        Ok(Decimal { unscaled: self.at_scale(scale)? + other.at_scale(scale)?, scale })
    }

    /// The quotient of the same scale, halves to the even neighbour.
    pub(super) fn divided_by_count(&self, count: i64) -> Self {
        let unscaled = divide(&self.unscaled, &count.into(), Halves::ToEven);
        Decimal { unscaled, scale: self.scale }
    }

    /// The nearest whole number, halves away from zero.
    pub(super) fn whole(&self) -> Result<Self, ArithmeticError> {
        Ok(Decimal::from(if self.scale <= 0 {
            self.at_scale(0)?
        } else if self.exponent() < 0 {
            BigInt::ZERO
        } else {
            divide(&self.unscaled, &power_of_ten(self.scale), Halves::AwayFromZero)
        }))
    }

    /// The low 64 bits of the whole part, as Java's `longValue`.
    pub(super) fn low_bits(&self) -> Result<i64, ArithmeticError> {
        // 10^64 ends in 64 zeros of base 2, too.
        if self.scale <= -64 || self.exponent() <= 0 {
            return Ok(0);
        }
        Ok(low_bits(&if self.scale <= 0 {
            self.at_scale(0)?
        } else {
            &self.unscaled / power_of_ten(self.scale)
        }))
    }

    /// The nearest double.
    pub(super) fn as_f64(&self) -> f64 {
        format!("{}e{}", self.unscaled, -self.scale).parse().unwrap_or(f64::NAN)
    }

    /// The integer that the number is at a scale not below its own.
    fn at_scale(&self, scale: i64) -> Result<BigInt, ArithmeticError> {
        scaled_up(&self.unscaled, scale - self.scale)
    }
}

/// An integer with zeros written out behind it.
///
/// # Errors
/// The result has too many digits.
fn scaled_up(integer: &BigInt, zeros: i64) -> Result<BigInt, ArithmeticError> {
    if integer.is_zero() || zeros == 0 {
        return Ok(integer.clone());
    }
    if digit_count(integer) + zeros > WORKING_DIGITS_MAX {
        return Err(TypeError::TooManyDigits.into());
    }
    Ok(integer * power_of_ten(zeros))
}

/// Of an exponent whose digits are known to be few.
fn power_of_ten(exponent: i64) -> BigInt {
    debug_assert!((0..=WORKING_DIGITS_MAX).contains(&exponent), "{exponent}");
    BigInt::from(10).pow(exponent as u32)
}

/// How many decimal digits; zero has one.
fn digit_count(integer: &BigInt) -> i64 {
    let magnitude = integer.magnitude();
    if let Ok(small) = u64::try_from(magnitude) {
        return small.checked_ilog10().map_or(1, |log| i64::from(log) + 1);
    }
    // A number of so many bits lies between these two powers of two. Nearer to a power of ten than a double can tell is
    // no power of two of any length that we have.
    let digits_of_power = |bits: u64| (bits as f64 * std::f64::consts::LOG10_2) as i64 + 1;
    let (least, most) = (digits_of_power(magnitude.bits() - 1), digits_of_power(magnitude.bits()));
    if least == most || magnitude < power_of_ten(least).magnitude() { least } else { most }
}

/// What becomes of halves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Halves {
    AwayFromZero,
    ToEven,
}

/// The quotient as a whole number.
fn divide(dividend: &BigInt, divisor: &BigInt, halves: Halves) -> BigInt {
    let quotient = dividend / divisor;
    let twice_rest = (dividend - &quotient * divisor).magnitude() * 2u32;
    let is_up = match twice_rest.cmp(divisor.magnitude()) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => halves == Halves::AwayFromZero || quotient.bit(0),
        std::cmp::Ordering::Greater => true,
    };
    if is_up { quotient + dividend.signum() * divisor.signum() } else { quotient }
}

/// The integer without the zeros at its end, at most so many of them; and how many these were.
fn without_zeros(integer: &BigInt, most: u64) -> (BigInt, i64) {
    // No more than in base 2. A power of two of them at a time, each once: their sum reaches any number below.
    let bound = integer.trailing_zeros().unwrap_or(0).min(digit_count(integer) as u64).min(most);
    let (mut rest, mut zeros) = (integer.clone(), 0);
    let steps = (0..u64::BITS - bound.leading_zeros()).rev().map(|power| 1i64 << power);
    for step in steps {
        let power = power_of_ten(step);
        let shorter = &rest / &power;
        if zeros + step <= bound as i64 && (&rest - &shorter * power).is_zero() {
            (rest, zeros) = (shorter, zeros + step);
        }
    }
    (rest, zeros)
}

/// The low 64 bits of two's complement.
pub(super) fn low_bits(value: &BigInt) -> i64 {
    let low = value.magnitude().iter_u64_digits().next().unwrap_or(0).cast_signed();
    if value.is_negative() { low.wrapping_neg() } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    type Operation = fn(&Decimal, &Decimal) -> Result<Decimal, ArithmeticError>;

    fn check(operation: Operation, cases: &[(&str, &str, &str)]) {
        for (a, b, expected) in cases {
            assert_eq!(operation(&number(a), &number(b)), Ok(number(expected)), "{a}, {b}");
        }
    }

    #[test]
    fn quotients_have_the_scale_of_cassandras() {
        check(
            Decimal::divided_by,
            &[
                ("1", "3", "0.33333333333333333333333333333333"),
                ("2", "3", "0.66666666666666666666666666666667"),
                ("-2", "3", "-0.66666666666666666666666666666667"),
                ("100", "0.5", "2e2"),
                ("1e-999999999", "1", "0"),
                ("0.00", "7", "0"),
                ("1", "1e999999999", "0"),
                ("5e-1001", "1", "1e-1000"),
                ("4e-1001", "1", "0"),
            ],
        );
        let nines = "9".repeat(10_000);
        check(Decimal::divided_by, &[(&nines, &nines, "1"), (&nines, &format!("-{nines}e-500"), "-1e500")]);
    }

    #[test]
    fn remainders_keep_the_zeros_that_cassandras_keep() {
        check(
            Decimal::modulo,
            &[
                ("100", "0.5", "0"),
                ("3", "1.5", "0.0"),
                ("-10", "0.3", "-0.1"),
                ("10", "-3", "1"),
                ("1.50", "1", "0.50"),
                ("1e-999999999", "2", "1e-999999999"),
                ("2", "1e999999999", "2"),
                ("12345678901234567890123e100", "7e90", "5e90"),
            ],
        );
        let too_long = Err(ArithmeticError::Type(TypeError::TooManyDigits));
        assert_eq!(number("1e999999999").modulo(&number("3")), too_long);
        assert_eq!(number("1e2147483647").modulo(&number("1e-2147483647")), too_long);
    }

    #[test]
    fn sums_of_numbers_far_apart_are_rounded_like_those_of_near_ones() {
        let zeros = "0".repeat(9_999);
        let nines = "9".repeat(10_000);
        check(
            Decimal::plus,
            &[
                ("1e999999999", "1", &format!("1{zeros}e999990000")),
                ("1", "-1e-999999999", &format!("1.{zeros}")),
                ("-1e999999999", "1e-999999999", &format!("-1{zeros}e999990000")),
                ("1e999999999", "0", &format!("1{zeros}e999990000")),
                ("0e-2147483647", "0", "0e-2147483647"),
                ("0.00", "1.5", "1.50"),
                // Behind the last digit: what is not seen decides a half.
                (&format!("1{zeros}"), "5e-1", &format!("1{}1", &zeros[1..])),
                (&format!("1{zeros}"), "4.9e-1", &format!("1{zeros}")),
                (&nines, "1", &format!("1{zeros}e1")),
            ],
        );
    }

    #[test]
    fn products_are_rounded_and_have_a_scale_of_32_bits() {
        let nines = "9".repeat(10_000);
        let eight = format!("{}8e10000", "9".repeat(9_999));
        check(
            Decimal::times,
            &[(&nines, &nines, &eight), ("1e2147483647", "1e-2147483647", "1"), ("1.50", "-2", "-3.00")],
        );
        let largest = number("1e2147483647");
        assert_eq!(largest.times(&largest), Err(ArithmeticError::Overflow));
        let least = number("1e-2147483647");
        assert_eq!(least.times(&least), Err(ArithmeticError::Underflow));
        let zero = Decimal { unscaled: BigInt::ZERO, scale: i64::from(i32::MIN) };
        assert_eq!(zero.times(&largest), Ok(zero));
    }

    #[test]
    fn whole_numbers_are_written_out_as_far_as_numbers_go() {
        for (text, expected) in [
            ("2.5", "3"),
            ("-2.5", "-3"),
            ("0.5", "1"),
            ("0.49", "0"),
            ("1e-999999999", "0"),
            ("12e3", "12000"),
        ] {
            assert_eq!(number(text).whole(), Ok(number(expected)), "{text}");
        }
        assert!(number("1e999999999").whole().is_err());
        for (text, expected) in
            [("-1.9", -1), ("0.9", 0), ("1e999999999", 0), ("1e-999999999", 0), ("18446744073709551617", 1)]
        {
            assert_eq!(number(text).low_bits(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn digits_are_counted_around_powers_of_ten() {
        for power in [0, 1, 18, 19, 20, 21, 100, 9_999, 10_000] {
            let round = power_of_ten(power);
            assert_eq!(digit_count(&round), power + 1);
            assert_eq!(digit_count(&(&round - 1)), power.max(1));
            assert_eq!(digit_count(&(-&round - 1)), power + 1);
        }
        let all = power_of_ten(10_000) * 7;
        assert_eq!(without_zeros(&all, u64::MAX), (7.into(), 10_000));
        assert_eq!(without_zeros(&all, 37).1, 37);
        assert_eq!(without_zeros(&(BigInt::from(1) << 30_000), u64::MAX).1, 0);
    }
}
