//! Exact decimal arithmetic with numbers of limited length.

use std::num::NonZeroU64;

use bigdecimal::num_bigint::{BigInt, Sign};
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive as _, Zero as _};

/// The maximum number of digits in a number, before and after the decimal point together.
pub const DIGITS_MAX: u64 = 1000;

/// Significant digits of a quotient whose decimals do not end.
pub const QUOTIENT_DIGITS: NonZeroU64 = NonZeroU64::new(50).unwrap();

/// The reason for a missing result, as a text for the model.
pub type CalculationError = String;

const BY_ZERO: &str = "division by zero";
const NOT_WHOLE: &str = "the exponent or the number of places is not a whole number";

/// Reads a number in the notation of JSON and programming languages.
pub fn parse_number(text: &str) -> Result<BigDecimal, CalculationError> {
    if text.len() as u64 > DIGITS_MAX {
        return Err(too_large_error());
    }
    check_length(text.parse().map_err(|_| format!("`{text}` is not a number"))?)
}

/// Writes a number without an exponent and without trailing zeros.
pub fn format_number(number: &BigDecimal) -> String {
    number.normalized().to_plain_string()
}

/// Returns `a + b`.
pub fn add(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, CalculationError> {
    check_length(a + b)
}

/// Returns `a - b`.
pub fn subtract(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, CalculationError> {
    check_length(a - b)
}

/// Returns `a * b`.
pub fn multiply(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, CalculationError> {
    check_length(a * b)
}

/// Returns `a / b`: exact if the decimals end, otherwise rounded to [`QUOTIENT_DIGITS`] digits.
pub fn divide(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, CalculationError> {
    if b.is_zero() {
        return Err(BY_ZERO.to_owned());
    }
    let ((above, above_scale), (below, below_scale)) =
        (a.as_bigint_and_exponent(), b.as_bigint_and_exponent());
    let places = i64::try_from(DIGITS_MAX).unwrap_or(i64::MAX);
    let above = above * BigInt::from(10).pow(u32::try_from(DIGITS_MAX).unwrap_or(u32::MAX));
    let (quotient, is_exact) = (&above / &below, (&above % &below).is_zero());
    let quotient = BigDecimal::new(quotient, places + above_scale - below_scale);
    if is_exact {
        return check_length(quotient.normalized());
    }
    if quotient.digits() < QUOTIENT_DIGITS.get() {
        return Err(too_large_error());
    }
    check_length(quotient.with_precision_round(QUOTIENT_DIGITS, RoundingMode::HalfEven))
}

/// Returns the largest whole number that is not above `a / b`.
pub fn floor_divide(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, CalculationError> {
    if b.is_zero() {
        return Err(BY_ZERO.to_owned());
    }
    // Uses the remainder, which is exact even if the quotient is not.
    let rest = remainder(a, b)?;
    divide(&(a - rest), b)
}

/// Returns the remainder of [`floor_divide`], which has the sign of `b`.
pub fn remainder(a: &BigDecimal, b: &BigDecimal) -> Result<BigDecimal, CalculationError> {
    if b.is_zero() {
        return Err(BY_ZERO.to_owned());
    }
    let rest = a % b;
    let is_across = !rest.is_zero() && rest.sign() != b.sign();
    check_length(if is_across { rest + b } else { rest })
}

/// Returns `base ** exponent` for a whole exponent.
pub fn raise_to_power(
    base: &BigDecimal,
    exponent: &BigDecimal,
) -> Result<BigDecimal, CalculationError> {
    if !exponent.is_integer() {
        return Err(NOT_WHOLE.to_owned());
    }
    let is_below_zero = exponent.sign() == Sign::Minus;
    let mut times = exponent.abs().to_u64().unwrap_or(u64::MAX);
    let (mut result, mut factor) = (BigDecimal::from(1), base.normalized());
    // Powers of 0, 1 and -1 do not grow, so the exponent can be reduced.
    if factor.is_zero() || factor.abs() == result {
        times = times.min(2 - times % 2);
    }
    while times > 0 {
        if times % 2 == 1 {
            result = multiply(&result, &factor)?;
        }
        times /= 2;
        if times > 0 {
            factor = multiply(&factor, &factor)?.normalized();
        }
    }
    if is_below_zero { divide(&BigDecimal::from(1), &result) } else { Ok(result) }
}

/// Rounds to this many decimal places. Ties round to even.
pub fn round_to_places(
    number: &BigDecimal,
    places: &BigDecimal,
) -> Result<BigDecimal, CalculationError> {
    let places = places.to_i64().filter(|_| places.is_integer()).ok_or(NOT_WHOLE)?;
    let bound = i64::try_from(DIGITS_MAX).unwrap_or(i64::MAX);
    check_length(number.with_scale_round(places.clamp(-bound, bound), RoundingMode::HalfEven))
}

/// Refuses a number that is too long when written out.
fn check_length(number: BigDecimal) -> Result<BigDecimal, CalculationError> {
    let (_, scale) = number.as_bigint_and_exponent();
    let is_bounded = number.digits() <= DIGITS_MAX && scale.unsigned_abs() <= DIGITS_MAX;
    if is_bounded { Ok(number) } else { Err(too_large_error()) }
}

fn too_large_error() -> CalculationError {
    format!("a number has more than {DIGITS_MAX} digits")
}
