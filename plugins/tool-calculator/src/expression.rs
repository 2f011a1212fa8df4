//! Parses an expression and calculates it in the same pass. The rules are Python's: `-2**2` is -4,
//! and `2**3**2` is 512.

use bigdecimal::BigDecimal;

use crate::arithmetic::{self, CalculationError};

/// The longest expression in bytes.
const EXPRESSION_BYTES_MAX: usize = 10_000;

/// The deepest nesting of brackets and signs.
const DEPTH_MAX: usize = 100;

/// Calculates an expression.
///
/// # Errors
/// A text if the expression is invalid or a number has too many digits.
pub fn calculate(expression: &str) -> Result<String, CalculationError> {
    if expression.len() > EXPRESSION_BYTES_MAX {
        return Err(format!("an expression has at most {EXPRESSION_BYTES_MAX} bytes"));
    }
    let mut reader = ExpressionParser { text: expression, place: 0, depth: 0 };
    let result = reader.parse_sum()?;
    if reader.peek_char().is_some() {
        return Err(reader.syntax_error("an operator (+ - * / // % **)"));
    }
    Ok(arithmetic::format_number(&result))
}

struct ExpressionParser<'a> {
    text: &'a str,
    /// The position of the next byte.
    place: usize,
    depth: usize,
}

impl ExpressionParser<'_> {
    fn parse_sum(&mut self) -> Result<BigDecimal, CalculationError> {
        let mut left = self.parse_product()?;
        while let Some(operator) = self.take_operator(&["+", "-"]) {
            let right = self.parse_product()?;
            let calculate = if operator == "+" { arithmetic::add } else { arithmetic::subtract };
            left = calculate(&left, &right)?;
        }
        Ok(left)
    }

    fn parse_product(&mut self) -> Result<BigDecimal, CalculationError> {
        let mut left = self.parse_signed()?;
        while let Some(operator) = self.take_operator(&["//", "/", "%", "*"]) {
            let right = self.parse_signed()?;
            let calculate = match operator {
                "//" => arithmetic::floor_divide,
                "/" => arithmetic::divide,
                "%" => arithmetic::remainder,
                _ => arithmetic::multiply,
            };
            left = calculate(&left, &right)?;
        }
        Ok(left)
    }

    /// Parses a signed value. A sign binds less tightly than a power: `-2**2` is -4.
    fn parse_signed(&mut self) -> Result<BigDecimal, CalculationError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} nested brackets and signs"));
        }
        let result = match self.take_operator(&["-", "+"]) {
            Some("-") => -self.parse_signed()?,
            Some(_) => self.parse_signed()?,
            None => self.parse_power()?,
        };
        self.depth -= 1;
        Ok(result)
    }

    fn parse_power(&mut self) -> Result<BigDecimal, CalculationError> {
        let base = self.parse_atom()?;
        match self.take_operator(&["**"]) {
            Some(_) => arithmetic::raise_to_power(&base, &self.parse_signed()?),
            None => Ok(base),
        }
    }

    fn parse_atom(&mut self) -> Result<BigDecimal, CalculationError> {
        match self.peek_char() {
            Some('(') => {
                self.place += 1;
                let inner = self.parse_sum()?;
                self.take_operator(&[")"]).ok_or_else(|| self.syntax_error("`)`"))?;
                Ok(inner)
            }
            Some(first) if first.is_ascii_digit() || first == '.' => self.parse_number(),
            Some(first) if first.is_ascii_alphabetic() => self.parse_function_call(),
            _ => Err(self.syntax_error("a number")),
        }
    }

    fn parse_number(&mut self) -> Result<BigDecimal, CalculationError> {
        let rest = &self.text[self.place..];
        let mut end = 0;
        for (index, letter) in rest.char_indices() {
            // The sign of an exponent belongs to the number: `1e-3`.
            let is_sign = matches!(letter, '+' | '-') && rest[..index].ends_with(['e', 'E']);
            if !(letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_') || is_sign) {
                break;
            }
            end = index + letter.len_utf8();
        }
        self.place += end;
        arithmetic::parse_number(&rest[..end].replace('_', ""))
    }

    fn parse_function_call(&mut self) -> Result<BigDecimal, CalculationError> {
        let rest = &self.text[self.place..];
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        self.place += end;
        if self.take_operator(&["("]).is_none() {
            return Err(unknown_function_error(&name));
        }
        let mut values = vec![self.parse_sum()?];
        while self.take_operator(&[","]).is_some() {
            values.push(self.parse_sum()?);
        }
        self.take_operator(&[")"]).ok_or_else(|| self.syntax_error("`,` or `)`"))?;
        match (name.as_str(), values.as_slice()) {
            ("abs", [value]) => Ok(value.abs()),
            ("round", [value]) => arithmetic::round_to_places(value, &BigDecimal::from(0)),
            ("round", [value, places]) => arithmetic::round_to_places(value, places),
            ("pow", [base, exponent]) => arithmetic::raise_to_power(base, exponent),
            ("min", [_, ..]) => Ok(values.into_iter().min().unwrap_or_default()),
            ("max", [_, ..]) => Ok(values.into_iter().max().unwrap_or_default()),
            ("abs" | "round" | "pow", values) => {
                let count = values.len();
                Err(format!("`{name}` does not take {count} numbers"))
            }
            _ => Err(unknown_function_error(&name)),
        }
    }

    /// Returns the next character that is not whitespace.
    fn peek_char(&mut self) -> Option<char> {
        let rest = self.text[self.place..].trim_start();
        self.place = self.text.len() - rest.len();
        rest.chars().next()
    }

    /// Consumes the first of these operators that comes next. `*` does not match the start of `**`.
    fn take_operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        self.peek_char()?;
        let rest = &self.text[self.place..];
        let comes = |operator: &&&str| {
            rest.starts_with(**operator) && !(**operator == "*" && rest.starts_with("**"))
        };
        let operator = operators.iter().find(comes)?;
        self.place += operator.len();
        Some(operator)
    }

    fn syntax_error(&mut self, expected: &str) -> CalculationError {
        let found = self.peek_char().map_or("nothing".to_owned(), |found| format!("`{found}`"));
        let place = self.text[..self.place].chars().count() + 1;
        format!("at character {place}: expected {expected}, found {found}")
    }
}

fn unknown_function_error(name: &str) -> CalculationError {
    format!("unknown function `{name}`, use abs, max, min, pow or round")
}
