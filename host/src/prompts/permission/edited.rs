//! Asks for different arguments of a call.

use std::io;
use std::sync::Arc;

use jaato_runtime::visible;
use serde_json::Value;

use super::dialog::argument_values;
use crate::terminal::{
    self, Before, CTRL_C, Dialog, Manner, NAME_COLUMNS, OpenQuestion, Reply, exact_line,
};

/// The expected input.
const PROMPT: &str =
    "NAME = VALUE changes one, a JSON object all of them; an empty line leaves them as they are:";

/// Asks for different arguments. Returns `None` if the user leaves them as they are.
///
/// # Errors
/// If the terminal is gone.
pub async fn ask_for_edit(
    open: &Arc<OpenQuestion>,
    arguments: &Value,
) -> io::Result<Reply<Option<Value>>> {
    let question = Dialog {
        title: "Change the arguments".to_owned(),
        subject: String::new(),
        values: argument_values(arguments),
        details: Vec::new(),
        notes: Vec::new(),
        answers: Vec::new(),
        prompt: PROMPT.to_owned(),
        begun: editable_line(arguments),
        manner: Manner::Words,
    };
    let read = |line: &str| read_edit(arguments, line);
    let fold = |_: &Option<Value>| None;
    terminal::ask(Arc::clone(open), question, Before::Dropped, read, fold).await
}

/// Returns the arguments as an editable line.
fn editable_line(arguments: &Value) -> String {
    let mut named = arguments.as_object().into_iter().flatten();
    match (named.next(), named.next()) {
        (Some((name, Value::String(text))), None) if !text.contains(char::is_control) => {
            format!("{name} = {text}")
        }
        _ => arguments.to_string(),
    }
}

/// Parses different arguments: one by its name, or all of them.
fn read_edit(arguments: &Value, line: &str) -> Result<Option<Value>, String> {
    if line.ends_with(CTRL_C) || line.is_empty() {
        return Ok(None);
    }
    if line.starts_with('{') {
        let read = serde_json::from_str::<Value>(line);
        let read = read.map_err(|error| format!("this is not valid JSON: {error}"))?;
        return Ok(Some(read).filter(|read| read != arguments));
    }
    let Some((name, text)) = line.split_once('=') else {
        let names = arguments.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let name = exact_line(
            &visible::visible_name(names.take(1).next().unwrap_or("name")),
            NAME_COLUMNS,
        );
        return Err(format!("type `{name} = ` and the new value; an empty line changes nothing"));
    };
    let (name, text) = (name.trim(), text.trim());
    let mut edited = arguments.clone();
    let Some(fields) = edited.as_object_mut() else {
        return Err("these arguments have no names: type all of them as JSON".to_owned());
    };
    // Text stays text, whatever it looks like.
    let value = match fields.get(name) {
        Some(Value::String(_)) => Value::from(text),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    };
    fields.insert(name.to_owned(), value);
    Ok(Some(edited).filter(|edited| edited != arguments))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_argument_is_changed_by_its_name_or_all_of_them_as_json() {
        let arguments = json!({ "command": "ls", "n": 1 });
        let read = |line: &str| read_edit(&arguments, line);
        assert_eq!(
            read("command = echo a=b 1"),
            Ok(Some(json!({ "command": "echo a=b 1", "n": 1 })))
        );
        assert_eq!(read("n = 2"), Ok(Some(json!({ "command": "ls", "n": 2 }))));
        assert_eq!(read("command=7"), Ok(Some(json!({ "command": "7", "n": 1 }))));
        assert_eq!(read("new = [1]"), Ok(Some(json!({ "command": "ls", "n": 1, "new": [1] }))));
        assert_eq!(read(r#"{"n": 3}"#), Ok(Some(json!({ "n": 3 }))));
        assert!(read("{").unwrap_err().starts_with("this is not valid JSON"));
        assert!(read("what?").unwrap_err().starts_with("type `command = `"));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read(&format!("command = x{CTRL_C}")), Ok(None));
        assert!(read_edit(&json!(1), "a = 2").is_err());
    }

    #[test]
    fn unchanged_edit_line_keeps_the_arguments() {
        for (arguments, expected) in [
            (json!({ "command": "ls  -la" }), "command = ls  -la"),
            (json!({ "command": "ls\nls" }), r#"{"command":"ls\nls"}"#),
            (json!({ "a": 1, "b": "c" }), r#"{"a":1,"b":"c"}"#),
        ] {
            assert_eq!(editable_line(&arguments), expected);
            assert_eq!(read_edit(&arguments, expected), Ok(None));
        }
    }
}
