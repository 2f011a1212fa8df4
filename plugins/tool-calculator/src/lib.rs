//! `tool-calculator`: exact decimal arithmetic, so that a model does not have to guess.
//!
//! [`arithmetic`] calculates within limits, and [`expression`] parses expressions. This module
//! contains the tools, which have the names and answers of the original plugin.
#![forbid(unsafe_code)]

mod arithmetic;
mod expression;

use bigdecimal::BigDecimal;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Number;

use arithmetic::CalculationError;
pub use expression::calculate as calculated;

/// Calculate an expression exactly: + - * / // % ** ( ), abs, round, min, max, pow. `1/3` is
/// rounded to 50 digits.
#[tool_fn(
    category = "code",
    read_only,
    idempotent,
    open_world = false,
    parallel_safe,
    example("what is 2 to the power of 100, divided by 3?", expression = "2**100 / 3")
)]
async fn calculate(
    _cx: &Cx,
    /// Such as `(19.99 * 3 + 4.5) * 1.19`.
    #[schemars(extend("x-jaato-touches" = { "text": "an expression of numbers" }))]
    expression: String,
) -> Result<Output> {
    let result = calculated(&expression).map_err(to_tool_error)?;
    Ok(Output::json(json!({ "expression": expression, "result": result })))
}

/// Add two numbers exactly.
#[tool_fn(category = "code", read_only, idempotent, open_world = false, parallel_safe)]
async fn add(
    _cx: &Cx,
    /// A number.
    a: Operand,
    /// Another.
    b: Operand,
) -> Result<Output> {
    calculation_output("addition", &a, &b, arithmetic::add)
}

/// Subtract b from a exactly.
#[tool_fn(category = "code", read_only, idempotent, open_world = false, parallel_safe)]
async fn subtract(
    _cx: &Cx,
    /// A number.
    a: Operand,
    /// Another.
    b: Operand,
) -> Result<Output> {
    calculation_output("subtraction", &a, &b, arithmetic::subtract)
}

/// Multiply two numbers exactly.
#[tool_fn(category = "code", read_only, idempotent, open_world = false, parallel_safe)]
async fn multiply(
    _cx: &Cx,
    /// A number.
    a: Operand,
    /// Another.
    b: Operand,
) -> Result<Output> {
    calculation_output("multiplication", &a, &b, arithmetic::multiply)
}

/// Divide a by b. Longer results are rounded to 50 digits.
#[tool_fn(category = "code", read_only, idempotent, open_world = false, parallel_safe)]
async fn divide(
    _cx: &Cx,
    /// A number.
    a: Operand,
    /// Another.
    b: Operand,
) -> Result<Output> {
    calculation_output("division", &a, &b, arithmetic::divide)
}

type ArithmeticOperation = fn(&BigDecimal, &BigDecimal) -> Result<BigDecimal, CalculationError>;

/// A number, or a string if JSON would lose digits.
#[tool_type]
#[serde(untagged)]
#[schemars(extend("x-jaato-touches" = { "text": "a number" }))]
enum Operand {
    Number(Number),
    Text(String),
}

impl Operand {
    fn to_number(&self) -> Result<BigDecimal> {
        let text = match self {
            Self::Text(text) => text.trim().to_owned(),
            Self::Number(number) => number.to_string(),
        };
        let digits = text.split(['e', 'E']).next().unwrap_or_default();
        let digits = digits.trim_start_matches(['-', '0', '.']);
        let digits = digits.bytes().filter(u8::is_ascii_digit).count();
        // A floating-point number with this many digits may only be the nearest one to the original
        // text.
        if matches!(self, Self::Number(number) if number.is_f64()) && digits > DIGITS_KEPT {
            let text = format!("`{text}` may differ from the number that you wrote");
            let hint = format!(
                "give a number with more than {DIGITS_KEPT} digits as text, as in \
                 \"18446744073709551617\""
            );
            return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
        }
        arithmetic::parse_number(&text).map_err(to_tool_error)
    }
}

/// The number of decimal digits that every floating-point number preserves.
const DIGITS_KEPT: usize = 15;

fn calculation_output(
    name: &str,
    a: &Operand,
    b: &Operand,
    operation: ArithmeticOperation,
) -> Result<Output> {
    let result = operation(&a.to_number()?, &b.to_number()?);
    let result = arithmetic::format_number(&result.map_err(to_tool_error)?);
    Ok(Output::json(json!({ "operation": name, "operands": [a, b], "result": result })))
}

fn to_tool_error(refused: CalculationError) -> Error {
    Error::new(ErrorKind::InvalidArguments, refused)
}

export_plugin! { state: (), tools }
