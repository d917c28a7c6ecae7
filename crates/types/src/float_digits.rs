//! The decimal digits of a floating-point number, as Java (up to 18) chooses them.
//!
//! Digits are generated from the exact value until what is left is below half the distance to the
//! neighbouring numbers, after Steele and White. Java's routine is not quite that: it takes the
//! same distance on both sides, insists on two digits in scientific notation, rounds large
//! integers another way, and compares with "less" or "not greater" depending on how many bits it
//! works with. So the `float` 3.4E10 prints as 3.3999999E10. People compare what they export, so
//! the choices are kept, each where it is made.

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use std::cmp::Ordering;

/// Digits and the place of the point among them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// ASCII digits; the first is not zero.
    pub(crate) digits: Vec<u8>,
    /// How many stand before the point; zero or less puts zeros behind it.
    pub(crate) point: i32,
}

/// Bits of a double's fraction.
const FRACTION_BITS: i32 = 52;
/// Powers of five whose bit count is looked up and not estimated.
const EXACT_POWERS: usize = 27;

/// A positive, finite number: 1.fraction × 2^exponent.
struct Binary {
    exponent: i32,
    /// 53 bits, the first of them set.
    fraction: u64,
    /// How many of them the number can tell apart.
    precision: i32,
}

/// Digits of a positive, finite `double`.
pub(crate) fn of_double(number: f64) -> Digits {
    let bits = number.to_bits();
    let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52) as i32 & 0x7ff);
    digits(&binary(fraction, biased, 1023, 52))
}

/// Digits of a positive, finite `float`.
pub(crate) fn of_float(number: f32) -> Digits {
    let bits = number.to_bits();
    let (fraction, biased) = (bits & ((1 << 23) - 1), (bits >> 23) as i32 & 0xff);
    let mut binary = binary(fraction.into(), biased, 127, 23);
    binary.fraction <<= FRACTION_BITS - 23;
    digits(&binary)
}

fn binary(fraction: u64, biased: i32, bias: i32, fraction_bits: i32) -> Binary {
    if biased == 0 {
        // Subnormal: as many bits as there are.
        let precision = 64 - fraction.leading_zeros() as i32;
        let shift = fraction_bits + 1 - precision;
        Binary { exponent: 1 - shift - bias, fraction: fraction << shift, precision }
    } else {
        let fraction = fraction | 1 << fraction_bits;
        Binary { exponent: biased - bias, fraction, precision: fraction_bits + 1 }
    }
}

fn digits(number: &Binary) -> Digits {
    let zeros = number.fraction.trailing_zeros() as i32;
    let significant = FRACTION_BITS + 1 - zeros;
    let behind_point = (significant - number.exponent - 1).max(0);
    if behind_point == 0 && (-21..=62).contains(&number.exponent) && significant < 64 {
        return integer_digits(number);
    }
    let scaled = Scaled::new(number, zeros, significant, behind_point);
    let bits = |power: i32| match usize::try_from(power) {
        Ok(power) if power < EXACT_POWERS => bits_of_power_of_5(power),
        _ => power * 3,
    };
    let value_bits = significant + scaled.value_2 + bits(scaled.value_5);
    let unit_bits = scaled.unit_2 + 1 + bits(scaled.unit_5 + 1);
    let width = match (value_bits, unit_bits) {
        (..32, ..32) => Width::Int,
        (..64, ..64) => Width::Long,
        _ => Width::Big,
    };
    scaled.generate(width)
}

/// Numbers without fraction: their digits, without those that a number of this size cannot mean.
fn integer_digits(number: &Binary) -> Digits {
    let spare_bits = number.exponent - number.precision - 1;
    let dropped = if number.exponent > number.precision && spare_bits > 1 {
        // floor(log10(2^spare_bits))
        (f64::from(spare_bits) * std::f64::consts::LOG10_2) as u32
    } else {
        0
    };
    let shift = number.exponent - FRACTION_BITS;
    let mut value = if shift >= 0 { number.fraction << shift } else { number.fraction >> -shift };
    if dropped > 0 {
        let unit = 10u64.pow(dropped);
        value = value / unit + u64::from(value % unit >= unit / 2);
    }
    let text = value.to_string();
    let point = text.len() as i32 + dropped as i32;
    Digits { digits: text.trim_end_matches('0').as_bytes().to_vec(), point }
}

fn bits_of_power_of_5(power: usize) -> i32 {
    // 5^26 is the last that is asked for, and fits.
    if power == 0 { 0 } else { 64 - 5u64.pow(power as u32).leading_zeros() as i32 }
}

/// How many bits Java would compute with, which decides how it breaks some ties.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Int,
    Long,
    Big,
}

/// The number as value / unit × 10^exponent, and half the distance to its neighbours as
/// 5^value_5 × 2^half_2, all whole numbers by their powers of two and five.
struct Scaled {
    fraction: u64,
    exponent: i32,
    value_2: i32,
    value_5: i32,
    unit_2: i32,
    unit_5: i32,
    half_2: i32,
}

impl Scaled {
    fn new(number: &Binary, zeros: i32, significant: i32, behind_point: i32) -> Scaled {
        let exponent = estimate_exponent(number);
        let value_5 = (-exponent).max(0);
        let unit_5 = exponent.max(0);
        let mut value_2 = value_5 + behind_point + number.exponent;
        let mut unit_2 = unit_5 + behind_point;
        let mut half_2 = value_2 - number.precision;
        value_2 -= significant - 1;
        let common = value_2.min(unit_2);
        value_2 -= common;
        unit_2 -= common;
        half_2 -= common;
        if significant == 1 {
            // Below a power of two the numbers stand twice as close.
            half_2 -= 1;
        }
        if half_2 < 0 {
            value_2 -= half_2;
            unit_2 -= half_2;
            half_2 = 0;
        }
        Scaled { fraction: number.fraction >> zeros, exponent, value_2, value_5, unit_2, unit_5, half_2 }
    }

    fn generate(&self, width: Width) -> Digits {
        match width {
            Width::Int => self.run(&mut self.narrow(|wide| i64::from(wide as i32))),
            Width::Long => self.run(&mut self.narrow(|wide| wide as i64)),
            Width::Big => self.run(&mut self.wide()),
        }
    }

    fn narrow(&self, wrap: fn(i128) -> i64) -> Narrow {
        let power = |five: i32, two: i32| 5i128.pow(five as u32) << two;
        let unit = power(self.unit_5, self.unit_2);
        Narrow {
            value: wrap(i128::from(self.fraction) * power(self.value_5, self.value_2)),
            half: wrap(power(self.value_5, self.half_2)),
            unit: wrap(unit),
            tens: wrap(unit * 10),
            wrap,
        }
    }

    fn wide(&self) -> Wide {
        let power = |five: i32, two: i32| BigUint::from(5u8).pow(five as u32) << two;
        let unit = power(self.unit_5, self.unit_2);
        Wide {
            value: BigUint::from(self.fraction) * power(self.value_5, self.value_2),
            half: power(self.value_5, self.half_2),
            tens: &unit * 10u8,
            unit,
        }
    }

    fn run(&self, numbers: &mut impl Numbers) -> Digits {
        let mut exponent = self.exponent;
        let mut digits = Vec::new();
        let mut stop = Stop { low: false, high: false };
        let first = numbers.next_digit(&mut stop);
        if first == 0 && !stop.high {
            exponent -= 1;
        } else {
            digits.push(first);
        }
        if !(-3..8).contains(&exponent) {
            // Scientific notation shows at least two digits.
            stop = Stop { low: false, high: false };
        }
        while !stop.low && !stop.high {
            digits.push(numbers.next_digit(&mut stop));
        }
        let last_is_odd = digits.last().is_some_and(|digit| digit % 2 == 1);
        let rounds_up = match (stop.high, stop.low) {
            (false, _) => false,
            (true, false) => true,
            (true, true) => match numbers.compare_rest_with_half_a_digit() {
                Ordering::Greater => true,
                Ordering::Equal => last_is_odd,
                Ordering::Less => false,
            },
        };
        let mut point = exponent + 1;
        if rounds_up {
            round_up(&mut digits, &mut point);
        }
        Digits { digits: digits.into_iter().map(|digit| b'0' + digit).collect(), point }
    }
}

/// At most one above the power of ten of the first digit.
#[expect(clippy::approx_constant, reason = "Java's own constant, a little below the true one")]
fn estimate_exponent(number: &Binary) -> i32 {
    let mantissa = f64::from_bits(0x3ff0_0000_0000_0000 | (number.fraction & ((1 << 52) - 1)));
    let estimate =
        (mantissa - 1.5) * 0.289_529_654 + 0.176_091_259 + f64::from(number.exponent) * 0.301_029_995_663_981;
    estimate.floor() as i32
}

/// Why no further digit is needed.
struct Stop {
    /// What is left is too little to matter.
    low: bool,
    /// What is missing to the next digit is too little to matter.
    high: bool,
}

/// What is left of the number (ten times it after each digit), half the distance to the next
/// numbers (grown the same way), one unit of the first digit, and ten.
trait Numbers {
    fn next_digit(&mut self, stop: &mut Stop) -> u8;
    fn compare_rest_with_half_a_digit(&self) -> Ordering;
}

/// In 32 or 64 bits, wrapping where Java's would.
struct Narrow {
    value: i64,
    half: i64,
    unit: i64,
    tens: i64,
    wrap: fn(i128) -> i64,
}

impl Numbers for Narrow {
    fn next_digit(&mut self, stop: &mut Stop) -> u8 {
        let digit = self.value.checked_div(self.unit).unwrap_or(0);
        let rest = self.value.checked_rem(self.unit).unwrap_or(0);
        self.value = (self.wrap)(i128::from(rest) * 10);
        self.half = (self.wrap)(i128::from(self.half) * 10);
        // Java sees an overflow only where it turns the sign.
        let overflowed = self.half <= 0;
        stop.low = overflowed || self.value < self.half;
        let sum = (self.wrap)(i128::from(self.value) + i128::from(self.half));
        stop.high = overflowed || sum > self.tens;
        digit as u8
    }

    fn compare_rest_with_half_a_digit(&self) -> Ordering {
        (self.wrap)(i128::from(self.value) * 2 - i128::from(self.tens)).cmp(&0)
    }
}

/// As exact as it takes.
struct Wide {
    value: BigUint,
    half: BigUint,
    unit: BigUint,
    tens: BigUint,
}

impl Numbers for Wide {
    fn next_digit(&mut self, stop: &mut Stop) -> u8 {
        let digit = &self.value / &self.unit;
        self.value = (&self.value % &self.unit) * 10u8;
        self.half *= 10u8;
        stop.low = self.value < self.half;
        stop.high = &self.value + &self.half >= self.tens;
        digit.to_u8().unwrap_or(0)
    }

    fn compare_rest_with_half_a_digit(&self) -> Ordering {
        (&self.value << 1u8).cmp(&self.tens)
    }
}

fn round_up(digits: &mut [u8], point: &mut i32) {
    let Some(at) = digits.iter().rposition(|digit| *digit != 9) else {
        digits.fill(0);
        if let Some(first) = digits.first_mut() {
            *first = 1;
        }
        *point += 1;
        return;
    };
    digits[at] += 1;
    digits[at + 1..].fill(0);
}
