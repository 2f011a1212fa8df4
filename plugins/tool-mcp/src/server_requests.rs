//! Forwards a server's requests to the session whose call runs on it: progress, questions for the
//! user, and questions for the model.
//!
//! Invariant: nothing is answered on the user's behalf. If no user can be asked, the server gets
//! `cancel`.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use jaato_plugin_sdk::form::{FieldKind, FieldOption, Form, FormField, FormOutcome};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::{Map, Number};
use jaato_plugin_sdk::types::text::truncate_bytes;
use parking_lot::Mutex;
use rmcp::model::{ErrorCode, ErrorData, ProgressNotificationParam};

use crate::call_context::McpCallContext;
use crate::names::tool_name;
use crate::server_description::plain_text;

/// The minimum time between two progress reports of a call.
const PROGRESS_PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of fields in a form. The host accepts 20.
const FIELDS_MAX: usize = 20;
/// The maximum number of options of one field. The host accepts 100.
const OPTIONS_MAX: usize = 100;
/// The maximum length of a form's text. The host accepts 4 KiB.
const TEXT_BYTES_MAX: usize = 2000;
/// The maximum number of times the user is asked after an invalid answer.
const ATTEMPTS_MAX: usize = 3;
/// Totals below this are shown in thousandths.
const FINE_TOTAL: f64 = 1000.0;

/// A session's tool call that runs on a server.
pub struct SessionCall {
    /// The reporter of the call.
    pub host: Reporter,
    /// The server's name.
    pub server: String,
    /// The name of the called tool, resource or prompt.
    pub what: String,
    shown: Mutex<Option<Instant>>,
}

impl SessionCall {
    /// Creates the call site of a call.
    pub fn new(host: Reporter, server: &str, what: &str) -> Self {
        let (server, what) = (server.to_owned(), what.to_owned());
        Self { host, server, what, shown: Mutex::new(None) }
    }
}

impl McpCallContext for SessionCall {
    fn show_progress(&self, progress: &ProgressNotificationParam) {
        let now = Instant::now();
        let is_done = progress.total.is_some_and(|total| progress.progress >= total);
        let mut shown = self.shown.lock();
        if !is_done && shown.is_some_and(|shown| now - shown < PROGRESS_PAUSE) {
            return;
        }
        *shown = Some(now);
        drop(shown);
        let label = match &progress.message {
            Some(message) => {
                format!(
                    "{}: {}",
                    self.what,
                    truncate_bytes(&plain_text(message).replace('\n', " "), 200)
                )
            }
            None => self.what.clone(),
        };
        let scale = match progress.total {
            Some(total) if total < FINE_TOTAL => 1000.0,
            _ => 1.0,
        };
        // The cast saturates at the bounds of the integer, and NaN becomes 0.
        let whole = |value: f64| (value * scale) as u64;
        let total = progress.total.map_or(0, whole);
        self.host.emit(&Delta::progress(label, whole(progress.progress), total));
    }

    fn workspace_roots(&self) -> BoxFuture<'static, Option<Vec<String>>> {
        let host = self.host.clone();
        Box::pin(async move { Some(vec![host.session().await.ok()?.working_directory]) })
    }

    fn elicit_from_user(&self, params: Value) -> BoxFuture<'static, Value> {
        let (host, server) = (self.host.clone(), self.server.clone());
        Box::pin(async move {
            match params["mode"].as_str() {
                Some("url") => ask_to_open(&host, &server, &params).await,
                _ => ask_fields(&host, &server, &params).await,
            }
        })
    }

    fn sample_from_model(
        &self,
        params: Value,
    ) -> BoxFuture<'static, std::result::Result<Value, ErrorData>> {
        let (host, tool) = (self.host.clone(), tool_name(&self.server, "sampling"));
        Box::pin(async move {
            // The user's rules apply to this tool call as to any other.
            let output = host.call_tool(&tool, params).await;
            output
                .map(|output| Value::Object(output.content))
                .map_err(|error| ErrorData::new(ErrorCode::INVALID_REQUEST, error.message, None))
        })
    }
}

fn action_result(name: &str) -> Value {
    json!({ "action": name })
}

/// Returns the result for a form that the user did not answer.
fn unanswered_result(outcome: FormOutcome) -> Value {
    match outcome {
        FormOutcome::Declined => action_result("decline"),
        _ => action_result("cancel"),
    }
}

fn form_title(server: &str, message: &Value) -> String {
    let message = plain_text(message.as_str().unwrap_or_default()).replace('\n', " ");
    truncate_bytes(&format!("MCP server `{server}` asks: {message}"), TEXT_BYTES_MAX)
}

/// Asks the user to open a page. The form shows the page's host separately, because the user
/// decides by it.
async fn ask_to_open(host: &Reporter, server: &str, params: &Value) -> Value {
    let url = plain_text(params["url"].as_str().unwrap_or_default());
    let Some(place) = url_host(&url) else { return action_result("decline") };
    let option = |value: &str, label: &str| FieldOption {
        value: value.to_owned(),
        label: label.to_owned(),
        ..FieldOption::default()
    };
    let text = format!("open this page of `{place}` in your browser, then confirm it:\n{url}");
    let form = Form {
        title: form_title(server, &params["message"]),
        fields: vec![FormField {
            name: "page".to_owned(),
            text: truncate_bytes(&text, TEXT_BYTES_MAX),
            kind: FieldKind::Choice,
            options: vec![option("done", "I have opened it"), option("no", "no")],
            ..FormField::default()
        }],
    };
    match host.ask(&form).await {
        Ok(answer) if answer.outcome == FormOutcome::Answered => match &answer.values.get("page") {
            Some(Value::String(given)) if given == "done" => action_result("accept"),
            _ => action_result("decline"),
        },
        Ok(answer) => unanswered_result(answer.outcome),
        Err(_) => action_result("cancel"),
    }
}

/// Returns the host of a URL that a browser may open.
fn url_host(url: &str) -> Option<&str> {
    let is_short = url.len() <= TEXT_BYTES_MAX - 200 && !url.contains(char::is_whitespace);
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let place = rest.split(['/', '?', '#', '\\']).next().filter(|it| !it.is_empty())?;
    // Text before an `@` only looks like the host.
    (is_short && !place.contains('@')).then_some(place)
}

/// Asks the user for values.
async fn ask_fields(host: &Reporter, server: &str, params: &Value) -> Value {
    let mut form = match build_form(server, params) {
        Ok(form) => form,
        Err(why) => {
            host.log(LogLevel::Warn, format!("a question of `{server}` cannot be shown: {why}"));
            return action_result("decline");
        }
    };
    let first = form.title.clone();
    for _ in 0..ATTEMPTS_MAX {
        let answer = match host.ask(&form).await {
            Ok(answer) if answer.outcome == FormOutcome::Answered => answer,
            Ok(answer) => return unanswered_result(answer.outcome),
            Err(_) => return action_result("cancel"),
        };
        let given = |name: &str| answer.values.get(name).cloned();
        match parse_form_values(&params["requestedSchema"], given) {
            Ok(None) => return action_result("decline"),
            Ok(Some(content)) => return json!({ "action": "accept", "content": content }),
            Err(why) => form.title = truncate_bytes(&format!("{why}. {first}"), TEXT_BYTES_MAX),
        }
    }
    action_result("cancel")
}

/// The name of the field of a question that only asks for confirmation.
const CONSENT: &str = "consent";

/// Builds a form from a server's request.
fn build_form(server: &str, params: &Value) -> std::result::Result<Form, String> {
    let schema = &params["requestedSchema"];
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    if properties.len() > FIELDS_MAX {
        return Err(format!("it has {} fields", properties.len()));
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = properties.iter().map(|(name, schema)| FormField {
        is_optional: !required.contains(&name.as_str()),
        ..build_field(name, schema)
    });
    let mut fields: Vec<FormField> = fields.collect();
    if fields.is_empty() {
        fields.push(FormField {
            name: CONSENT.to_owned(),
            text: "Continue?".to_owned(),
            kind: FieldKind::Choice,
            options: ["yes", "no"].map(|it| field_option(it, "")).to_vec(),
            ..FormField::default()
        });
    }
    Ok(Form { title: form_title(server, &params["message"]), fields })
}

fn field_option(value: &str, label: &str) -> FieldOption {
    let (value, label) =
        (truncate_bytes(value, TEXT_BYTES_MAX), truncate_bytes(&plain_text(label), TEXT_BYTES_MAX));
    FieldOption { value, label, ..FieldOption::default() }
}

fn build_field(name: &str, schema: &Value) -> FormField {
    let text = |key: &str| schema[key].as_str().map(plain_text).filter(|it| !it.trim().is_empty());
    let asked = match (text("title"), text("description")) {
        (Some(title), Some(description)) => format!("{title}: {description}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => plain_text(name),
    };
    let hint = match (schema["type"].as_str(), schema["format"].as_str()) {
        (_, Some(format)) => format!(" ({format})"),
        (Some(kind @ ("integer" | "number")), None) => format!(" ({kind})"),
        _ => String::new(),
    };
    let (kind, options) = match schema["type"].as_str() {
        Some("boolean") => {
            (FieldKind::Choice, ["true", "false"].map(|it| field_option(it, "")).to_vec())
        }
        Some("array") => (FieldKind::Several, choice_options(&schema["items"])),
        _ => match choice_options(schema) {
            options if options.is_empty() => (FieldKind::Text, options),
            options => (FieldKind::Choice, options),
        },
    };
    let default = match &schema["default"] {
        Value::Null => None,
        Value::Array(values) => Some(Value::Array(values.clone())),
        Value::String(text) => Some(Value::String(text.clone())),
        other => Some(Value::String(other.to_string())),
    };
    let text = truncate_bytes(&(asked + &hint), TEXT_BYTES_MAX);
    FormField { name: name.to_owned(), text, kind, options, default, ..FormField::default() }
}

/// Lists the options of a choice: `enum` with `enumNames`, or `oneOf` and `anyOf` of constants.
fn choice_options(schema: &Value) -> Vec<FieldOption> {
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(titled) = titled {
        let option = |it: &Value| {
            Some(field_option(it["const"].as_str()?, it["title"].as_str().unwrap_or_default()))
        };
        return titled.iter().filter_map(option).take(OPTIONS_MAX).collect();
    }
    let values = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let option = |(at, value): (usize, &str)| {
        field_option(value, schema["enumNames"][at].as_str().unwrap_or_default())
    };
    values.enumerate().map(option).take(OPTIONS_MAX).collect()
}

/// Reads the user's values. Returns `None` if the user withheld consent.
fn parse_form_values(
    schema: &Value,
    given: impl Fn(&str) -> Option<Value>,
) -> std::result::Result<Option<Map<String, Value>>, String> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    if properties.is_empty() {
        let is_yes = given(CONSENT).is_some_and(|it| it == "yes");
        return Ok(is_yes.then(Map::new));
    }
    let mut values = Map::new();
    for (name, schema) in properties {
        if let Some(given) = given(name) {
            values.insert(name.clone(), parse_field_value(name, schema, given)?);
        }
    }
    Ok(Some(values))
}

fn parse_field_value(
    name: &str,
    schema: &Value,
    given: Value,
) -> std::result::Result<Value, String> {
    let name = plain_text(name);
    let Value::String(text) = &given else { return Ok(given) };
    let number: Option<Number> = match schema["type"].as_str() {
        Some("boolean") => return Ok(Value::Bool(text == "true")),
        Some("integer") => match text.trim().parse::<i64>() {
            Ok(number) => Some(number.into()),
            Err(_) => return Err(format!("`{name}` must be a whole number")),
        },
        Some("number") => match text.trim().parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Some(number),
            None => return Err(format!("`{name}` must be a number")),
        },
        _ => None,
    };
    if let Some(number) = number {
        let value = number.as_f64().unwrap_or_default();
        let least = schema["minimum"].as_f64().filter(|&least| value < least);
        let most = schema["maximum"].as_f64().filter(|&most| value > most);
        return match (least, most) {
            (Some(least), _) => Err(format!("`{name}` must be at least {least}")),
            (_, Some(most)) => Err(format!("`{name}` must be at most {most}")),
            (None, None) => Ok(Value::Number(number)),
        };
    }
    let count = text.chars().count() as u64;
    let is_short = schema["minLength"].as_u64().is_some_and(|least| count < least);
    let is_long = schema["maxLength"].as_u64().is_some_and(|most| count > most);
    let is_odd = match schema["format"].as_str() {
        Some("email") => !text.trim_matches('@').contains('@'),
        Some("uri") => !text.contains(':'),
        Some("date") => text.len() != 10,
        _ => false,
    };
    match () {
        () if is_short => Err(format!("`{name}` is too short")),
        () if is_long => Err(format!("`{name}` is too long")),
        () if is_odd => Err(format!(
            "`{name}` must have the format `{}`",
            schema["format"].as_str().unwrap_or_default()
        )),
        () => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_field_type_is_shown_and_parsed() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "title": "Name", "description": "Yours.", "minLength": 2 },
                "age": { "type": "integer", "minimum": 0, "maximum": 150, "default": 30 },
                "size": { "type": "number" },
                "sure": { "type": "boolean", "default": true },
                "colour": { "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"] },
                "moon": { "type": "string", "oneOf": [{ "const": "f", "title": "Full" }] },
                "days": { "type": "array", "items": { "type": "string", "enum": ["mo", "tu"] }, "default": ["mo"] },
            },
            "required": ["name"],
        });
        let form = build_form("gh", &json!({ "message": "Who\u{1b}?", "requestedSchema": schema }))
            .unwrap();
        assert_eq!(form.title, "MCP server `gh` asks: Who?");
        let shown: Vec<_> = form
            .fields
            .iter()
            .map(|it| (it.text.as_str(), it.kind, it.options.len(), it.is_optional))
            .collect();
        let expected = [
            ("Name: Yours.", FieldKind::Text, 0, false),
            ("age (integer)", FieldKind::Text, 0, true),
            ("size (number)", FieldKind::Text, 0, true),
            ("sure", FieldKind::Choice, 2, true),
            ("colour", FieldKind::Choice, 2, true),
            ("moon", FieldKind::Choice, 1, true),
            ("days", FieldKind::Several, 2, true),
        ];
        assert_eq!(shown, expected);
        assert_eq!(form.fields[1].default, Some(json!("30")));

        let read = |given: Value| parse_form_values(&schema, |name| given.get(name).cloned());
        let given =
            json!({ "name": "Al", "age": "7", "size": "1.5", "sure": "false", "days": ["mo"] });
        let values = json!({ "name": "Al", "age": 7, "size": 1.5, "sure": false, "days": ["mo"] });
        assert_eq!(read(given).unwrap().map(Value::Object), Some(values));
        for (given, why) in [
            (json!({ "name": "A" }), "`name` is too short"),
            (json!({ "age": "x" }), "`age` must be a whole number"),
            (json!({ "age": "200" }), "`age` must be at most 150"),
            (json!({ "size": "NaN" }), "`size` must be a number"),
        ] {
            assert_eq!(read(given).unwrap_err(), why);
        }
    }

    #[test]
    fn question_without_fields_is_answered_with_yes_or_no() {
        let form = build_form("gh", &json!({ "message": "Delete?" })).unwrap();
        assert_eq!(form.fields.len(), 1);
        let read =
            |word: &str| parse_form_values(&Value::Null, |_| Some(word.into())).unwrap().is_some();
        assert!(read("yes") && !read("no"));
        let many: Map<String, Value> = (0..21).map(|it| (it.to_string(), json!({}))).collect();
        assert!(build_form("gh", &json!({ "requestedSchema": { "properties": many } })).is_err());
    }

    #[test]
    fn url_shows_its_host_and_misleading_urls_show_none() {
        assert_eq!(url_host("https://a.example/x?y"), Some("a.example"));
        assert_eq!(url_host("http://127.0.0.1:80"), Some("127.0.0.1:80"));
        for url in [
            "",
            "file:///etc",
            "javascript:x",
            "https://",
            "https://bank.example@evil.example/",
            "https://a b/",
        ] {
            assert_eq!(url_host(url), None, "{url}");
        }
    }
}
