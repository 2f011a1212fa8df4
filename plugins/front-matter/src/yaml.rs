//! Reads YAML into JSON values. Aliases are refused, so that a small text cannot expand.

use jaato_plugin_sdk::serde_json::{Map, Number, Value};
use jaato_plugin_sdk::types::text::one_line;
use saphyr_parser::{Event, Parser, ScalarStyle};

/// The deepest nesting of lists and maps.
pub const DEPTH_MAX: usize = 32;

pub(crate) const HAS_ALIAS: &str = "it has an alias (`*`)";

/// How scalars are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarTypes {
    /// Each scalar is a text exactly as written, also a number.
    Text,
    /// Unquoted scalars are numbers and booleans if YAML's core schema says so.
    Core,
}

/// Reads a YAML file with one document.
///
/// # Errors
/// An error of one line if it is not valid YAML, has an alias, a key twice or a key that is not a
/// text, or is nested too deeply.
pub fn parse_yaml(text: &str) -> Result<Value, String> {
    YamlReader::new(text, "it", ScalarTypes::Core).read_document()
}

/// Reads the events of one document. The errors are about `subject`.
pub(crate) struct YamlReader<I> {
    events: I,
    subject: &'static str,
    scalars: ScalarTypes,
}

impl<'a> YamlReader<()> {
    /// Starts to read a text.
    pub(crate) fn new(
        text: &'a str,
        subject: &'static str,
        scalars: ScalarTypes,
    ) -> YamlReader<impl Iterator<Item = Result<Event<'a>, String>>> {
        let events = Parser::new_from_str(text).map(move |event| match event {
            Ok((Event::Alias(_), _)) => Err(HAS_ALIAS.to_owned()),
            Ok((event, _)) => Ok(event),
            Err(error) => {
                Err(format!("{subject} is not valid YAML: {}", one_line(&error.to_string())))
            }
        });
        YamlReader { events, subject, scalars }
    }
}

impl<'a, I: Iterator<Item = Result<Event<'a>, String>>> YamlReader<I> {
    /// Reads the document. An empty one is null.
    pub(crate) fn read_document(&mut self) -> Result<Value, String> {
        let mut document = None;
        loop {
            match self.next_event()? {
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
                Event::Nothing => {}
                Event::StreamEnd => return Ok(document.unwrap_or(Value::Null)),
                _ if document.is_some() => {
                    return Err(format!("{} has more than one document", self.subject));
                }
                event => document = Some(self.read_value(event, 0)?),
            }
        }
    }

    fn next_event(&mut self) -> Result<Event<'a>, String> {
        self.events.next().unwrap_or(Ok(Event::StreamEnd))
    }

    fn read_value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err(format!("{} is nested deeper than {DEPTH_MAX} levels", self.subject));
        }
        match event {
            Event::Scalar(text, style, _, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                Ok(parse_scalar(&text, if is_plain { Some(self.scalars) } else { None }))
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next_event()? {
                        Event::SequenceEnd => return Ok(Value::Array(items)),
                        event => items.push(self.read_value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => self.read_map(depth),
            _ => Err(format!("{} ends too early", self.subject)),
        }
    }

    fn read_map(&mut self, depth: usize) -> Result<Value, String> {
        let mut fields = Map::new();
        loop {
            let key = match self.next_event()? {
                Event::MappingEnd => return Ok(Value::Object(fields)),
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(format!("{} has a key that is not a text", self.subject)),
            };
            let event = self.next_event()?;
            let value = self.read_value(event, depth + 1)?;
            if fields.contains_key(&key) {
                return Err(format!("{} has the key `{}` twice", self.subject, one_line(&key)));
            }
            fields.insert(key, value);
        }
    }
}

/// Reads a scalar. Quoted ones have no `types`.
pub(crate) fn parse_scalar(text: &str, types: Option<ScalarTypes>) -> Value {
    let trimmed = text.trim();
    let as_text = || Value::String(trimmed.to_owned());
    match (types, trimmed) {
        (None, _) => as_text(),
        (Some(_), "" | "~" | "null") => Value::Null,
        (Some(ScalarTypes::Text), _) => as_text(),
        (Some(ScalarTypes::Core), "true" | "True" | "TRUE") => Value::Bool(true),
        (Some(ScalarTypes::Core), "false" | "False" | "FALSE") => Value::Bool(false),
        (Some(ScalarTypes::Core), text) => parse_number(text).map_or_else(as_text, Value::Number),
    }
}

/// Reads a decimal number.
fn parse_number(text: &str) -> Option<Number> {
    let is_number = text.starts_with(|sign: char| sign.is_ascii_digit() || "+-.".contains(sign))
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_number {
        return None;
    }
    let integer = text.parse::<i64>().ok().map(Number::from);
    integer.or_else(|| Number::from_f64(text.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::prelude::json;

    use super::*;

    #[test]
    fn yaml_file_is_read_with_the_types_of_the_core_schema() {
        let text = "name: 'a'\nturns: 10\nhalf: 0.5\nlow: -3\nyes: true\nno: False\nnone:\nold: ~\n\
                    quoted: \"10\"\ntagged: !!str 10\nversion: 1.2.3\nlist: [a, 1]\nmap:\n  b: c\n\
                    text: |\n  one\n  two\n";
        let expected = json!({
            "name": "a", "turns": 10, "half": 0.5, "low": -3, "yes": true, "no": false,
            "none": null, "old": null, "quoted": "10", "tagged": "10", "version": "1.2.3",
            "list": ["a", 1], "map": { "b": "c" }, "text": "one\ntwo",
        });
        assert_eq!(parse_yaml(text), Ok(expected));
        assert_eq!(parse_yaml(""), Ok(Value::Null));
        assert_eq!(parse_yaml("- a\n"), Ok(json!(["a"])));
    }

    #[test]
    fn hostile_yaml_is_refused_in_one_line() {
        let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        assert!(parse_yaml(&deep(DEPTH_MAX + 1)).is_ok());
        for (text, expected) in [
            (deep(DEPTH_MAX + 2), "it is nested deeper than 32 levels"),
            ("[".repeat(64 * 1024), "it is not valid YAML: "),
            ("a: &a\n  b: *a\n".to_owned(), HAS_ALIAS),
            ("a: &a [x]\nb: [*a, *a]\n".to_owned(), HAS_ALIAS),
            ("a: 1\na: 2\n".to_owned(), "it has the key `a` twice"),
            ("? [a]\n: b\n".to_owned(), "it has a key that is not a text"),
            ("a: b\n---\nc: d\n".to_owned(), "it has more than one document"),
            ("a: [b\n".to_owned(), "it is not valid YAML: "),
            ("a: \"b\n".to_owned(), "it is not valid YAML: "),
        ] {
            let why = parse_yaml(&text).unwrap_err();
            assert!(why.starts_with(expected) && !why.contains('\n'), "{why}");
        }
    }
}
