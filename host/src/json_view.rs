//! Draws a JSON value for users: a line for each value, a table for a list of similar objects.
//! Pure.
//!
//! Programs read JSON instead. This output is not meant to be parsed.

use jaato_runtime::visible;
use serde_json::{Map, Value};

use crate::columns;

/// The indent of values that belong to a name.
const INDENT: usize = 2;

/// The columns that are left for a value, however deep it is nested.
const ROOM_MIN: usize = 20;

/// The maximum number of columns of a table. Wider objects are drawn one below the other.
const TABLE_COLUMNS_MAX: usize = 8;

/// Draws an object so that no line is wider than the terminal.
pub fn draw_object(content: &Map<String, Value>, columns: usize) -> Vec<String> {
    if content.is_empty() {
        return vec!["nothing".to_owned()];
    }
    draw_fields(content, columns)
}

fn draw_fields(content: &Map<String, Value>, columns: usize) -> Vec<String> {
    content
        .iter()
        .flat_map(|(name, value)| draw_entry(&readable_name(name), value, columns))
        .collect()
}

/// Returns a name as users read it: `messages_removed` is a program's form.
fn readable_name(name: &str) -> String {
    exact_text(&name.replace('_', " "))
}

fn exact_text(text: &str) -> String {
    visible::escape_lines(text).into_owned()
}

fn draw_entry(name: &str, value: &Value, columns: usize) -> Vec<String> {
    if let Some(text) = short_value(value) {
        return columns::format_named_value(name, &text, columns.saturating_sub(1));
    }
    let room = columns.saturating_sub(INDENT).max(ROOM_MIN);
    let mut drawn = vec![format!("{name}:")];
    let inner = match value {
        Value::Object(content) => draw_fields(content, room),
        Value::Array(items) => draw_list(items, room),
        Value::String(text) => {
            let lines = visible::visible_text(text);
            lines
                .lines()
                .flat_map(|line| columns::wrap_lines(line, room.saturating_sub(1)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    drawn.extend(inner.into_iter().map(|line| indent_line(&line)));
    drawn
}

fn indent_line(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("{:INDENT$}{line}", "") }
}

/// Returns a value that fits on one line. Returns `None` for others.
fn short_value(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::Bool(is) => Some(if *is { "yes" } else { "no" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if text.is_empty() => Some("-".to_owned()),
        Value::String(text) => (!text.contains('\n')).then(|| exact_text(text)),
        Value::Object(content) if content.is_empty() => Some("none".to_owned()),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Array(items) => {
            let scalar = |item: &Value| !matches!(item, Value::Array(_) | Value::Object(_));
            let texts = items.iter().filter(|item| scalar(item)).map(short_value);
            let texts: Option<Vec<String>> = texts.collect();
            texts.filter(|texts| texts.len() == items.len()).map(|texts| texts.join(", "))
        }
        Value::Object(_) => None,
    }
}

fn draw_list(items: &[Value], columns: usize) -> Vec<String> {
    if let Some((head, rows)) = list_as_table(items) {
        return columns::lay_out_fitting(&head, &rows, columns).lines;
    }
    let room = columns.saturating_sub(INDENT).max(ROOM_MIN);
    let mut drawn = Vec::new();
    for item in items {
        let lines = match (item, short_value(item)) {
            (Value::Object(content), None) => draw_fields(content, room),
            (Value::Array(items), None) => draw_list(items, room),
            (_, Some(text)) => columns::wrap_lines(&text, room.saturating_sub(1)),
            (_, None) => draw_entry("text", item, room),
        };
        let marked = lines.into_iter().enumerate().map(|(at, line)| match at {
            0 => format!("- {line}"),
            _ => indent_line(&line),
        });
        drawn.extend(marked);
    }
    drawn
}

/// Converts a list of objects with only short values to a table.
fn list_as_table(items: &[Value]) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let objects: Vec<&Map<String, Value>> =
        items.iter().map(Value::as_object).collect::<Option<_>>()?;
    let mut keys: Vec<&String> = Vec::new();
    for key in objects.iter().flat_map(|object| object.keys()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() || keys.len() > TABLE_COLUMNS_MAX {
        return None;
    }
    let cell = |object: &Map<String, Value>, key: &String| match object.get(key) {
        Some(value) => short_value(value),
        None => Some("-".to_owned()),
    };
    let rows = objects.iter().map(|object| keys.iter().map(|key| cell(object, key)).collect());
    let rows: Option<Vec<Vec<String>>> = rows.collect();
    let head = keys.iter().map(|key| readable_name(key).to_uppercase()).collect();
    rows.map(|rows| (head, rows))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_drawing(value: Value, columns: usize, expected: Expect) {
        let Value::Object(content) = value else { panic!("no object") };
        let lines = draw_object(&content, columns);
        for line in &lines {
            assert!(console::measure_text_width(line) < columns, "{line:?}");
        }
        expected.assert_eq(&(lines.join("\n") + "\n"));
    }

    fn sample_objects() -> Value {
        json!({ "tools": [{
            "tool": "search",
            "items": [{
                "name": null,
                "metadata": { "query": "moons of mars" },
                "objects": [
                    { "title": "Phobos, which comes nearer each year", "km": 22, "found": true },
                    { "title": "Deimos\u{202e}", "km": 12 },
                ],
            }],
        }], "hidden": {} })
    }

    #[test]
    fn each_number_is_on_its_own_line() {
        let gc = json!({ "messages_removed": 4, "tokens_before": 900, "note": null });
        check_drawing(
            gc,
            40,
            expect![[r#"
            messages removed: 4
            tokens before: 900
            note: -
        "#]],
        );
    }

    #[test]
    fn objects_are_shown_as_lists_at_forty_columns() {
        check_drawing(
            sample_objects(),
            40,
            expect![[r#"
            tools:
              - tool: search
                items:
                  - name: -
                    metadata:
                      query: moons of mars
                    objects:
                      title: Phobos, which comes
                        nearer each year
                      km: 22
                      found: yes

                      title: Deimos<U+202E>
                      km: 12
                      found: -
            hidden: none
        "#]],
        );
    }

    #[test]
    fn objects_are_shown_as_tables_at_eighty_columns() {
        check_drawing(
            sample_objects(),
            80,
            expect![[r#"
            tools:
              - tool: search
                items:
                  - name: -
                    metadata:
                      query: moons of mars
                    objects:
                      TITLE                                 KM  FOUND
                      Phobos, which comes nearer each year  22  yes
                      Deimos<U+202E>                        12  -
            hidden: none
        "#]],
        );
    }

    #[test]
    fn texts_of_several_lines_and_lists_keep_their_shape() {
        let value =
            json!({ "text": "one\ntwo", "tags": ["a", "b"], "deep": [[1, [2]], "x"], "none": [] });
        check_drawing(
            value,
            100,
            expect![[r#"
            text:
              one
              two
            tags: a, b
            deep:
              - - 1
                - 2
              - x
            none: none
        "#]],
        );
    }

    #[test]
    fn control_characters_are_removed_from_drawn_values() {
        let value = json!({ "a\u{1b}[2J": "b\u{1b}]0;evil\u{7}", "c": ["d\u{200b}\n\u{1b}[1m"] });
        let Value::Object(content) = value else { panic!("no object") };
        let drawn = draw_object(&content, 80).concat();
        assert!(!drawn.contains(['\u{1b}', '\u{7}', '\u{200b}']), "{drawn:?}");
    }

    #[test]
    fn empty_answer_is_drawn_as_nothing() {
        check_drawing(
            json!({}),
            40,
            expect![[r#"
            nothing
        "#]],
        );
    }
}
