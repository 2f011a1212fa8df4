//! A plugin's form at the terminal: one field after the other, each as its own question.
//!
//! jaato names the plugin that asks. The plugin's own words follow labels and bars, in rows that
//! begin with the question's mark. They can say anything, but cannot be mistaken for anything else.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use jaato_runtime::session_loop::FormQuestion;
use jaato_runtime::types::ask::{FieldKind, FieldOption, FormAnswer, FormField};
use jaato_runtime::visible;
use serde_json::{Value, json};

use super::secret::{self, HiddenInput};
use crate::terminal::{
    self, Before, CTRL_C, Dialog, Look, Manner, NAME_COLUMNS, OpenQuestion, Reply, Text, exact_line,
};

/// The word that declines a form.
const DECLINE: &str = "/decline";
/// The word that goes back to the previous field.
const BACK: &str = "<";
/// The word that chooses nothing, if several may be chosen.
const NONE: &str = "none";

/// The answer to one field.
#[derive(Debug, Clone, PartialEq)]
enum FieldAnswer {
    /// A value.
    Value(Value),
    /// An optional field was left empty.
    Nothing,
    /// The user goes back to the previous field.
    Back,
    /// The user declined the form.
    Declined,
}

/// Asks field by field. Dropping the future withdraws the form.
///
/// # Errors
/// If the terminal is gone.
pub async fn ask_form(
    open: Arc<OpenQuestion>,
    asked: &FormQuestion<'_>,
    before: Before<'_>,
) -> io::Result<FormAnswer> {
    let (mut values, mut before) = (BTreeMap::new(), before);
    let mut at = 0;
    while let Some(field) = asked.form.fields.get(at) {
        // After the user has gone back, Enter keeps the previous answer.
        let default = values.get(&field.name).or(field.default.as_ref()).cloned();
        let field = &FormField { default, ..field.clone() };
        let question = form_question(asked, at, field);
        let reply = match field.kind {
            FieldKind::Secret => ask_secret(&open, question, before, field).await?,
            _ => {
                let read = |line: &str| parse_field_answer(field, at == 0, line);
                let fold = |given: &FieldAnswer| folded_answer(asked, field, given);
                terminal::ask(Arc::clone(&open), question, before, read, fold).await?
            }
        };
        // Text typed between two fields was meant for the form, and not for the next message.
        before = Before::Dropped;
        match reply {
            Reply::Answer(FieldAnswer::Value(value)) => {
                _ = values.insert(field.name.clone(), value)
            }
            Reply::Answer(FieldAnswer::Nothing) => _ = values.remove(&field.name),
            Reply::Answer(FieldAnswer::Back) => {
                at -= 1;
                continue;
            }
            Reply::Answer(FieldAnswer::Declined) => return Ok(FormAnswer::declined()),
            Reply::Nobody(reason) => return Ok(FormAnswer::without_user(reason)),
        }
        at += 1;
    }
    Ok(FormAnswer::answered(values))
}

/// Asks for a secret, which is not shown while it is typed.
async fn ask_secret(
    open: &Arc<OpenQuestion>,
    question: Dialog,
    mut before: Before<'_>,
    field: &FormField,
) -> io::Result<Reply<FieldAnswer>> {
    loop {
        let prompt = match terminal::show(Arc::clone(open), question.clone(), before).await? {
            Reply::Answer(prompt) => prompt,
            Reply::Nobody(reason) => return Ok(Reply::Nobody(reason)),
        };
        let typed = secret::ask_secret(open, &prompt).await?;
        open.end_row()?;
        let secret = match typed {
            HiddenInput::Typed(secret) => secret,
            HiddenInput::Declined => return Ok(Reply::Answer(FieldAnswer::Declined)),
        };
        match std::str::from_utf8(secret.bytes()) {
            Ok("") if field.is_optional => return Ok(Reply::Answer(FieldAnswer::Nothing)),
            // Asks again, because an answer is needed, and it must be text.
            Ok("") | Err(_) => {}
            Ok(text) => return Ok(Reply::Answer(FieldAnswer::Value(Value::from(text)))),
        }
        before = Before::Dropped;
    }
}

fn form_question(asked: &FormQuestion<'_>, at: usize, field: &FormField) -> Dialog {
    let plugin = exact_line(&visible::visible_name(asked.plugin.as_str()), NAME_COLUMNS);
    let agent = asked.agent.map(|agent| format!("[{agent}] ")).unwrap_or_default();
    let count = asked.form.fields.len();
    let of = if count > 1 { format!(", {} of {count}", at + 1) } else { String::new() };
    let labelled = |name: &str, text: &str| {
        let (name, text) = (Some(name.to_owned()), text.to_owned());
        (!text.trim().is_empty()).then(|| terminal::Value::new(name, text))
    };
    let about = labelled("about", &asked.form.title).filter(|_| at == 0);
    let asks = labelled("asks", if field.text.is_empty() { &field.name } else { &field.text });
    let default = field.default.as_ref().and_then(Value::as_str);
    let default = default.filter(|_| field.kind == FieldKind::Text);
    let default = default.and_then(|text| labelled("default", text));
    let options = field.options.iter().zip(1..);
    let options = options.filter_map(|(it, number)| {
        let number = number.to_string();
        labelled(&number, &format_option(it, &number))
    });
    let notes = match field.kind {
        FieldKind::Secret => {
            vec![(Look::Plain, format!("(what you type goes to {plugin} and is not shown)"))]
        }
        _ => Vec::new(),
    };
    Dialog {
        title: format!("{agent}{plugin} asks you{of}"),
        subject: String::new(),
        values: about.into_iter().chain(asks).chain(default).chain(options).collect(),
        details: Vec::new(),
        notes,
        answers: Vec::new(),
        prompt: input_prompt(field, at == 0),
        begun: String::new(),
        manner: Manner::Words,
    }
}

/// Builds the row that replaces an answered field. Returns `None` if the user goes back.
fn folded_answer(asked: &FormQuestion<'_>, field: &FormField, given: &FieldAnswer) -> Option<Text> {
    let text = if field.text.is_empty() { &field.name } else { &field.text };
    let answer = match given {
        FieldAnswer::Value(value) => value_labels(field, value),
        FieldAnswer::Nothing => "nothing".to_owned(),
        FieldAnswer::Back => return None,
        FieldAnswer::Declined => "declined".to_owned(),
    };
    let row = format!("{}: {} → {answer}", asked.plugin, text.trim());
    Some(Text::new().dim(&exact_line(&row, terminal::size().1.saturating_sub(1))))
}

/// Names a value as the user read it: options by their labels, other values as they are.
fn value_labels(field: &FormField, value: &Value) -> String {
    match value {
        Value::Array(values) if values.is_empty() => NONE.to_owned(),
        Value::Array(values) => {
            values.iter().map(|value| value_labels(field, value)).collect::<Vec<_>>().join(", ")
        }
        Value::String(text) => {
            let option = field.options.iter().find(|option| option.value == *text);
            let label = option.map(|option| option.label.trim()).filter(|label| !label.is_empty());
            label.unwrap_or(text).to_owned()
        }
        value => value.to_string(),
    }
}

/// Formats an option: its label, its value if that differs from label and number, and its
/// description.
fn format_option(option: &FieldOption, number: &str) -> String {
    let FieldOption { value, label, description } = option;
    let name = match label.trim() {
        "" => value.clone(),
        label if label == value || value == number => label.to_owned(),
        label => format!("{label} ({value})"),
    };
    if description.trim().is_empty() { name } else { format!("{name}: {description}") }
}

/// Describes the possible input, in jaato's own words.
fn input_prompt(field: &FormField, is_first: bool) -> String {
    let numbers = |value: &Value| {
        let is = |option: &FieldOption| value.as_str() == Some(&option.value);
        field.options.iter().position(is).map(|at| (at + 1).to_string())
    };
    let what = match field.kind {
        FieldKind::Secret => return "type it; Ctrl-C declines:".to_owned(),
        FieldKind::Choice => "a number or a value",
        FieldKind::Several => "numbers or values, with commas between",
        FieldKind::Text | FieldKind::Unknown => "your answer",
    };
    let enter = match (&field.default, field.kind) {
        (Some(Value::Array(values)), _) if !values.is_empty() => {
            let numbers: Vec<String> = values.iter().filter_map(numbers).collect();
            format!(" (Enter: {}; or `{NONE}`)", numbers.join(", "))
        }
        (_, FieldKind::Several) => " (Enter: none)".to_owned(),
        (Some(value), FieldKind::Choice) => {
            format!(" (Enter: {})", numbers(value).unwrap_or_default())
        }
        (Some(_), _) => " (Enter: the default)".to_owned(),
        (None, _) if field.is_optional => " (Enter skips it)".to_owned(),
        (None, _) => String::new(),
    };
    let back = if is_first { String::new() } else { format!("{BACK} goes back, ") };
    format!("{what}{enter}; {back}{DECLINE} declines:")
}

/// Parses the user's line for a field.
///
/// # Errors
/// Describes the expected input.
fn parse_field_answer(
    field: &FormField,
    is_first: bool,
    line: &str,
) -> Result<FieldAnswer, String> {
    if line.ends_with(CTRL_C) || line == DECLINE {
        return Ok(FieldAnswer::Declined);
    }
    if line == BACK {
        let wrong = || "this is the first field".to_owned();
        return if is_first { Err(wrong()) } else { Ok(FieldAnswer::Back) };
    }
    if line.is_empty() {
        return match (&field.default, field.kind) {
            (Some(default), _) => Ok(FieldAnswer::Value(default.clone())),
            (None, FieldKind::Several) => Ok(FieldAnswer::Value(json!([]))),
            (None, _) if field.is_optional => Ok(FieldAnswer::Nothing),
            (None, _) => Err(format!("it needs an answer; {DECLINE} declines")),
        };
    }
    match field.kind {
        FieldKind::Choice => find_option(&field.options, line)
            .map(|value| FieldAnswer::Value(Value::from(value)))
            .ok_or_else(|| expected_input(&field.options, "a number or a value, like 1")),
        FieldKind::Several => parse_several(&field.options, line)
            .map(|values| FieldAnswer::Value(Value::from(values)))
            .ok_or_else(|| expected_input(&field.options, "numbers or values, like 1,2")),
        FieldKind::Text | FieldKind::Secret | FieldKind::Unknown => {
            Ok(FieldAnswer::Value(Value::from(line)))
        }
    }
}

fn expected_input(options: &[FieldOption], what: &str) -> String {
    format!("not in the list: type {what}; the numbers go from 1 to {}", options.len())
}

/// Finds an option by its number in the list, else by its value or label. Their case counts only if
/// several differ in nothing else.
fn find_option<'a>(options: &'a [FieldOption], words: &str) -> Option<&'a str> {
    let number = words.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let names = |option: &FieldOption| [option.value.clone(), option.label.trim().to_owned()];
    let is_called = |option: &&FieldOption| names(option).contains(&words.to_owned());
    let lower = words.to_lowercase();
    let mut alike = options.iter().filter(|option| {
        !words.is_empty() && names(option).iter().any(|name| name.to_lowercase() == lower)
    });
    let alike = alike.next().filter(|_| alike.next().is_none());
    let listed = number.and_then(|at| options.get(at));
    let found = listed.or_else(|| options.iter().find(is_called)).or(alike);
    found.map(|option| option.value.as_str())
}

/// Parses numbers and values, without duplicates. Commas separate values that contain blanks.
fn parse_several<'a>(options: &'a [FieldOption], line: &str) -> Option<Vec<&'a str>> {
    if line == NONE && find_option(options, NONE).is_none() {
        return Some(Vec::new());
    }
    let mut values = Vec::new();
    for piece in line.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
        match find_option(options, piece) {
            Some(value) => values.push(value),
            None => {
                for word in piece.split_whitespace() {
                    values.push(find_option(options, word)?);
                }
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    values.retain(|value| seen.insert(*value));
    (!values.is_empty()).then_some(values)
}

#[cfg(test)]
mod tests {
    use jaato_runtime::types::ask::Form;
    use jaato_runtime::types::{PluginName, SessionId};

    use super::*;

    fn sample_field(kind: FieldKind, options: &[&str], default: Option<Value>) -> FormField {
        let option =
            |value: &&str| FieldOption { value: (*value).to_owned(), ..FieldOption::default() };
        let options = options.iter().map(option).collect();
        FormField { name: "f".to_owned(), kind, options, default, ..FormField::default() }
    }

    #[track_caller]
    fn check_answer(field: &FormField, line: &str, expected: Result<FieldAnswer, &str>) {
        assert_eq!(
            parse_field_answer(field, true, line),
            expected.map_err(str::to_owned),
            "{line:?}"
        );
    }

    fn value_answer(value: Value) -> Result<FieldAnswer, &'static str> {
        Ok(FieldAnswer::Value(value))
    }

    const NONE_OF_THREE: Result<FieldAnswer, &str> =
        Err("not in the list: type a number or a value, like 1; the numbers go from 1 to 3");

    #[test]
    fn choice_field_is_answered_by_number_or_value() {
        let colours = ["red", "dark blue", "7"];
        let choice = sample_field(FieldKind::Choice, &colours, None);
        check_answer(&choice, "1", value_answer(json!("red")));
        check_answer(&choice, "dark blue", value_answer(json!("dark blue")));
        check_answer(&choice, "7", value_answer(json!("7")));
        check_answer(&choice, "Red", value_answer(json!("red")));
        for wrong in ["0", "4", "-1", "green", "1 2", "99999999999999999999"] {
            check_answer(&choice, wrong, NONE_OF_THREE);
        }
        check_answer(&choice, "", Err("it needs an answer; /decline declines"));
        // The option that the list shows as 1 is meant, whatever the values are.
        check_answer(
            &sample_field(FieldKind::Choice, &["2", "1"], None),
            "1",
            value_answer(json!("2")),
        );
        check_answer(
            &sample_field(FieldKind::Choice, &colours, Some(json!("7"))),
            "",
            value_answer(json!("7")),
        );
        let mut labelled = sample_field(FieldKind::Choice, &["prod", "PROD", "x"], None);
        labelled.options[2].label = "The Last".to_owned();
        check_answer(&labelled, "PROD", value_answer(json!("PROD")));
        check_answer(&labelled, "the last", value_answer(json!("x")));
        check_answer(&labelled, "Prod", NONE_OF_THREE);
    }

    #[test]
    fn several_field_is_answered_by_numbers_and_values() {
        let colours = ["red", "dark blue", "none at all"];
        let several = sample_field(FieldKind::Several, &colours, None);
        check_answer(&several, "1,2", value_answer(json!(["red", "dark blue"])));
        check_answer(&several, " 2  1 2 ".trim(), value_answer(json!(["dark blue", "red"])));
        check_answer(&several, "dark blue, 1", value_answer(json!(["dark blue", "red"])));
        check_answer(&several, "Red,Dark Blue", value_answer(json!(["red", "dark blue"])));
        check_answer(&several, "", value_answer(json!([])));
        check_answer(&several, "none", value_answer(json!([])));
        for wrong in ["4", "1 blue", ",", "dark blue 1"] {
            let told =
                "not in the list: type numbers or values, like 1,2; the numbers go from 1 to 3";
            check_answer(&several, wrong, Err(told));
        }
        let with_default = sample_field(FieldKind::Several, &colours, Some(json!(["red"])));
        check_answer(&with_default, "", value_answer(json!(["red"])));
        check_answer(&with_default, "none", value_answer(json!([])));
    }

    #[test]
    fn text_field_takes_the_typed_line_or_is_declined_or_left_empty() {
        let mut text = sample_field(FieldKind::Text, &[], None);
        check_answer(&text, "s", value_answer(json!("s")));
        check_answer(&text, "/show me", value_answer(json!("/show me")));
        check_answer(&text, "/decline", Ok(FieldAnswer::Declined));
        check_answer(&text, "half\u{3}", Ok(FieldAnswer::Declined));
        check_answer(&text, "<", Err("this is the first field"));
        assert_eq!(parse_field_answer(&text, false, "<"), Ok(FieldAnswer::Back));
        check_answer(&text, "", Err("it needs an answer; /decline declines"));
        text.is_optional = true;
        check_answer(&text, "", Ok(FieldAnswer::Nothing));
        text.default = Some(json!("tea"));
        check_answer(&text, "", value_answer(json!("tea")));
    }

    #[test]
    fn form_names_its_plugin_first_and_labels_the_plugins_text() {
        let plugin = PluginName::from("tool-x");
        let mut field = sample_field(FieldKind::Choice, &["a"], Some(json!("a")));
        field.text = "run it? [y]es".to_owned();
        field.options[0].label = "A\u{1b}[2J".to_owned();
        field.options[0].description = "the first\nof all".to_owned();
        let form = Form { title: "question 2 kovami:".to_owned(), fields: vec![field.clone()] };
        let (session, id, agent) = (&SessionId::from("s"), "form_1", Some("helper"));
        let asked = FormQuestion { session, agent, plugin: &plugin, id, form: &form };
        let question = form_question(&asked, 0, &field);
        assert_eq!(question.title, "[helper] tool-x asks you");
        let values: Vec<_> = question.values.iter().map(terminal::Value::shown).collect();
        let option = "A\u{1b}[2J (a): the first\nof all";
        let expected = [("about", "question 2 kovami:"), ("asks", "run it? [y]es"), ("1", option)];
        assert_eq!(values, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
        assert_eq!(question.prompt, "a number or a value (Enter: 1); /decline declines:");
    }

    #[test]
    fn folded_row_names_the_chosen_options_by_their_labels() {
        let mut several = sample_field(FieldKind::Several, &["1", "2", "plain"], None);
        several.options[0].label = "linux".to_owned();
        several.options[1].label = " windows ".to_owned();
        assert_eq!(value_labels(&several, &json!(["1", "2", "plain"])), "linux, windows, plain");
        assert_eq!(value_labels(&several, &json!("2")), "windows");
        assert_eq!(value_labels(&several, &json!([])), "none");
        assert_eq!(value_labels(&sample_field(FieldKind::Text, &[], None), &json!("2")), "2");
    }
}
