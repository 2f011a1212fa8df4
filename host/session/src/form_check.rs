//! Checks forms and their answers.
//!
//! Pure, so that front ends and plugins check the same way.

use std::collections::BTreeSet;

use jaato_types::ask::{
    FORM_ANSWER_BYTES_MAX, FORM_FIELDS_MAX, FORM_OPTIONS_MAX, FORM_TEXT_BYTES_MAX, FieldKind, Form,
    FormAnswer, FormField, FormOutcome,
};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::Value;

fn invalid_form_error(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArguments, text.into())
}

/// Checks a plugin's form.
pub(crate) fn check_form(form: &Form) -> Result<()> {
    let count = form.fields.len();
    if !(1..=FORM_FIELDS_MAX).contains(&count) {
        return Err(invalid_form_error(format!(
            "a form needs 1 to {FORM_FIELDS_MAX} fields, but this one has {count}"
        )));
    }
    let mut names = BTreeSet::new();
    check_text(&form.title)?;
    for field in &form.fields {
        check_field(field)?;
        if !names.insert(&field.name) {
            return Err(invalid_form_error(format!(
                "the form has two fields named `{}`",
                field.name
            )));
        }
    }
    Ok(())
}

fn check_text(text: &str) -> Result<()> {
    if text.len() <= FORM_TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(invalid_form_error(format!(
        "a text in a form may have at most {FORM_TEXT_BYTES_MAX} bytes"
    )))
}

fn check_field(field: &FormField) -> Result<()> {
    let FormField { name, text, kind, options, default, .. } = field;
    if name.is_empty() || name.len() > FORM_TEXT_BYTES_MAX {
        return Err(invalid_form_error("a form field needs a name"));
    }
    check_text(text)?;
    match kind {
        FieldKind::Choice | FieldKind::Several => {
            let values: BTreeSet<&str> = options.iter().map(|it| it.value.as_str()).collect();
            if options.is_empty() || options.len() > FORM_OPTIONS_MAX {
                let text = format!("the field `{name}` has 1 to {FORM_OPTIONS_MAX} options");
                return Err(invalid_form_error(text));
            }
            if values.len() < options.len() || values.contains("") {
                let text = format!("two options of the field `{name}` have the same value");
                return Err(invalid_form_error(text));
            }
            for option in options {
                check_text(&option.value)?;
                check_text(&option.label)?;
                check_text(&option.description)?;
            }
        }
        FieldKind::Text | FieldKind::Secret if !options.is_empty() => {
            return Err(invalid_form_error(format!(
                "the field `{name}` is typed: it has no options"
            )));
        }
        FieldKind::Secret if default.is_some() => {
            return Err(invalid_form_error(format!("the secret `{name}` has no default")));
        }
        FieldKind::Text | FieldKind::Secret => {}
        FieldKind::Unknown => {
            let text = format!("the kind of the field `{name}` is not known to this host");
            return Err(
                invalid_form_error(text).with_hint("`text`, `choice`, `several` and `secret` are")
            );
        }
    }
    let fits = default.as_ref().is_none_or(|value| is_valid_value(field, value));
    if fits {
        Ok(())
    } else {
        Err(invalid_form_error(format!("the default of `{name}` is not a valid answer")))
    }
}

/// Returns true if a value is a valid answer to a field.
fn is_valid_value(field: &FormField, value: &Value) -> bool {
    let is_option = |value: &Value| {
        value.as_str().is_some_and(|value| field.options.iter().any(|it| it.value == value))
    };
    match field.kind {
        FieldKind::Text | FieldKind::Secret => {
            value.as_str().is_some_and(|text| text.len() <= FORM_ANSWER_BYTES_MAX)
        }
        FieldKind::Choice => is_option(value),
        FieldKind::Several => value.as_array().is_some_and(|it| it.iter().all(is_option)),
        FieldKind::Unknown => false,
    }
}

/// Checks a front end's answer, because any client may have sent it.
pub(crate) fn check_answer(form: &Form, answer: &FormAnswer) -> Result<()> {
    if answer.outcome != FormOutcome::Answered {
        return if answer.values.is_empty() {
            Ok(())
        } else {
            Err(invalid_form_error("unexpected values"))
        };
    }
    let is_known = |name: &String| form.fields.iter().any(|field| field.name == *name);
    if let Some(name) = answer.values.keys().find(|name| !is_known(name)) {
        return Err(invalid_form_error(format!("the form has no field `{name}`")));
    }
    for field in &form.fields {
        match answer.values.get(&field.name) {
            Some(value) if is_valid_value(field, value) => {}
            None if field.is_optional => {}
            _ => return Err(invalid_form_error(format!("`{}` is not answered", field.name))),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jaato_types::ask::FieldOption;
    use serde_json::json;

    use super::*;

    fn choice_form(default: Option<Value>) -> Form {
        let option =
            |value: &str| FieldOption { value: value.to_owned(), ..FieldOption::default() };
        let field = FormField {
            name: "colour".to_owned(),
            kind: FieldKind::Choice,
            options: vec![option("red"), option("blue")],
            default,
            ..FormField::default()
        };
        Form { title: "t".to_owned(), fields: vec![field] }
    }

    #[test]
    fn a_form_that_cannot_be_shown_is_refused() {
        assert!(check_form(&choice_form(None)).is_ok());
        assert!(check_form(&choice_form(Some(json!("blue")))).is_ok());
        let mut twice = choice_form(None);
        twice.fields.push(twice.fields[0].clone());
        let mut same = choice_form(None);
        same.fields[0].options[1].value = "red".to_owned();
        let mut secret = choice_form(None);
        (secret.fields[0].kind, secret.fields[0].options) = (FieldKind::Secret, Vec::new());
        secret.fields[0].default = Some(json!("x"));
        let mut long = choice_form(None);
        long.title = "x".repeat(FORM_TEXT_BYTES_MAX + 1);
        let mut many = choice_form(None);
        many.fields = vec![many.fields[0].clone(); FORM_FIELDS_MAX + 1];
        let bad =
            [Form::default(), choice_form(Some(json!("green"))), twice, same, secret, long, many];
        for form in bad {
            let error = check_form(&form).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{form:?}");
        }
    }

    #[test]
    fn an_answer_fits_its_form() {
        let form = choice_form(None);
        let answered = |json: Value| FormAnswer::answered(serde_json::from_value(json).unwrap());
        assert!(check_answer(&form, &answered(json!({ "colour": "red" }))).is_ok());
        assert!(check_answer(&form, &FormAnswer::declined()).is_ok());
        for bad in [json!({}), json!({ "colour": "green" }), json!({ "colour": "red", "x": 1 })] {
            assert!(check_answer(&form, &answered(bad)).is_err());
        }
    }
}
