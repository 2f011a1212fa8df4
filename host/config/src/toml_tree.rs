//! TOML text as an owned tree in which every value knows its line.

use std::path::Path;

use serde_json::{Number, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ConfigError;

/// A value and the line (from 1) of its key, or of the value itself inside a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TomlNode {
    pub line: usize,
    pub value: TomlValue,
}

/// A TOML value. A table keeps its keys in alphabetical order, each once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TomlValue {
    Text(String),
    /// If it does not fit 64 bits, the text is kept as written, so that an error can quote it.
    Integer(Result<i64, String>),
    Float(f64),
    Boolean(bool),
    Datetime(String),
    Array(Vec<TomlNode>),
    Table(Vec<(String, TomlNode)>),
}

/// Parses a document. `path` is used only in errors.
pub(crate) fn parse_toml(path: &Path, text: &str) -> Result<Vec<(String, TomlNode)>, ConfigError> {
    let lines = TomlLineStarts::find_line_starts(text);
    let table = DeTable::parse(text).map_err(|error| {
        let (line, column) = lines.line_and_column(text, error.span().map_or(0, |span| span.start));
        ConfigError::Syntax {
            path: path.to_owned(),
            line,
            column,
            message: error.message().to_owned(),
        }
    })?;
    Ok(table_entries(table.get_ref(), &lines))
}

impl TomlValue {
    /// Converts it to JSON, with dates as texts. Returns `None` if it contains a number that JSON
    /// does not have: more than 64 bits, `inf`, `nan`.
    pub(crate) fn to_json(&self) -> Option<Json> {
        Some(match self {
            Self::Text(text) | Self::Datetime(text) => Json::String(text.clone()),
            Self::Integer(number) => Json::from(*number.as_ref().ok()?),
            Self::Float(number) => Json::Number(Number::from_f64(*number)?),
            Self::Boolean(flag) => Json::Bool(*flag),
            Self::Array(items) => {
                Json::Array(items.iter().map(|item| item.value.to_json()).collect::<Option<_>>()?)
            }
            Self::Table(entries) => {
                let entries = entries.iter();
                let entries =
                    entries.map(|(name, node)| Some((name.clone(), node.value.to_json()?)));
                Json::Object(entries.collect::<Option<_>>()?)
            }
        })
    }

    /// Names the type and quotes the value, for errors.
    pub fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("the text `{text}`"),
            Self::Integer(Ok(number)) => format!("the number `{number}`"),
            Self::Integer(Err(written)) => format!("the number `{written}`"),
            Self::Float(number) => format!("the number `{number}`"),
            Self::Boolean(flag) => format!("`{flag}`"),
            Self::Datetime(date) => format!("the date `{date}`"),
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| item.value.describe()).collect();
                format!("the list [{}]", items.join(", "))
            }
            Self::Table(_) => "a section".to_owned(),
        }
    }
}

fn table_entries(table: &DeTable<'_>, lines: &TomlLineStarts) -> Vec<(String, TomlNode)> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| {
            let line = lines.line_of_byte(key.span().start);
            (key.get_ref().to_string(), TomlNode { line, value: convert_value(value, lines) })
        })
        .collect();
    // Whether the parser sorts depends on a feature that any crate in the build can enable.
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}

fn convert_value(value: &Spanned<DeValue<'_>>, lines: &TomlLineStarts) -> TomlValue {
    match value.get_ref() {
        DeValue::String(text) => TomlValue::Text(text.to_string()),
        DeValue::Integer(number) => TomlValue::Integer(
            i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| number.to_string()),
        ),
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(float) => TomlValue::Float(float),
            Err(_) => TomlValue::Integer(Err(number.to_string())),
        },
        DeValue::Boolean(flag) => TomlValue::Boolean(*flag),
        DeValue::Datetime(date) => TomlValue::Datetime(date.to_string()),
        DeValue::Array(items) => TomlValue::Array(
            items
                .iter()
                .map(|item| TomlNode {
                    line: lines.line_of_byte(item.span().start),
                    value: convert_value(item, lines),
                })
                .collect(),
        ),
        DeValue::Table(table) => TomlValue::Table(table_entries(table, lines)),
    }
}

/// Where the lines of a text begin.
struct TomlLineStarts {
    starts: Vec<usize>,
}

impl TomlLineStarts {
    fn find_line_starts(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect() }
    }

    /// Returns the line of a byte, from 1.
    fn line_of_byte(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Returns the line and column of a byte, both from 1. The column counts characters.
    fn line_and_column(&self, text: &str, at: usize) -> (usize, usize) {
        let line = self.line_of_byte(at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = text.get(start..at.min(text.len())).map_or(0, |part| part.chars().count());
        (line, column + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = parse_toml(Path::new("c.toml"), text).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn every_value_knows_its_line() {
        let text = "a = 1\n\n[b]\nc = [\n  'x',\n  'y',\n]\n[b.d]\ne = 0x1F\n";
        let tree = parse_toml(Path::new("c.toml"), text).unwrap();
        let lines = |node: &TomlNode| match &node.value {
            TomlValue::Array(items) => items.iter().map(|item| item.line).collect(),
            _ => vec![node.line],
        };
        let TomlValue::Table(b) = &tree[1].1.value else { panic!("{tree:?}") };
        let TomlValue::Table(d) = &b[1].1.value else { panic!("{b:?}") };
        assert_eq!((tree[0].1.line, tree[1].1.line, b[0].1.line, b[1].1.line), (1, 3, 4, 8));
        assert_eq!(lines(&b[0].1), [5, 6]);
        assert_eq!(d[0], ("e".to_owned(), TomlNode { line: 9, value: TomlValue::Integer(Ok(31)) }));
    }

    #[test]
    fn a_number_that_does_not_fit_is_kept_as_written() {
        let tree = parse_toml(Path::new("c.toml"), "a = 99999999999999999999").unwrap();
        assert_eq!(tree[0].1.value.describe(), "the number `99999999999999999999`");
    }

    #[test]
    fn a_syntax_error_tells_line_and_column() {
        let error = parse_toml(Path::new("c.toml"), "a = 1\nbé = = 2\n").unwrap_err();
        assert!(error.to_string().starts_with("`c.toml:2:"), "{error}");
        check_error("a = 1\na = 2\n", "`c.toml:2:1` is not valid toml: duplicate key");
    }
}
