//! Forms for the user.

use jaato_types::Result;
use jaato_types::ask::{ASK, FieldKind, FieldOption, Form, FormAnswer, FormField};

use crate::context::Reporter;

impl Reporter {
    /// Shows the user a form and waits for the answer without a time limit. The call's deadline
    /// pauses during the wait. If no user can answer, this returns immediately and reports it.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// use jaato_plugin_sdk::form::{FormOutcome, form};
    ///
    /// # async fn colour(cx: &Cx) -> Result<Output> {
    /// let form = form("A new page")
    ///     .text("title", "What is it called?")
    ///     .choice("colour", "Which colour?", ["red", "blue"]);
    /// let answer = cx.ask(&form).await?;
    /// if answer.outcome != FormOutcome::Answered {
    ///     return Ok(Output::text("no answer"));
    /// }
    /// Ok(Output::json(json!({ "colour": answer.values["colour"] })))
    /// # }
    /// ```
    ///
    /// # Errors
    /// `permission_denied` without a grant for `ask`; `invalid_arguments` for a form that cannot be
    /// shown; `limit_reached` if 8 forms are already waiting.
    pub async fn ask(&self, form: &Form) -> Result<FormAnswer> {
        self.service(ASK, form).await
    }
}

/// Starts building a form. The title describes it in one line.
pub fn form(title: impl Into<String>) -> FormBuilder {
    FormBuilder(Form { title: title.into(), ..Form::default() })
}

/// A builder for a form. [`Reporter::ask`] accepts it directly.
#[derive(Debug, Clone, Default)]
pub struct FormBuilder(Form);

impl FormBuilder {
    /// Adds a text field.
    #[must_use]
    pub fn text(self, name: &str, text: &str) -> Self {
        self.field(FormField { kind: FieldKind::Text, ..form_field(name, text) })
    }

    /// Adds a text field whose input is hidden while the user types it and absent from all events.
    #[must_use]
    pub fn secret(self, name: &str, text: &str) -> Self {
        self.field(FormField { kind: FieldKind::Secret, ..form_field(name, text) })
    }

    /// Adds a field to choose one of several values.
    #[must_use]
    pub fn choice(
        self,
        name: &str,
        text: &str,
        of: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let options = field_options(of);
        self.field(FormField { kind: FieldKind::Choice, options, ..form_field(name, text) })
    }

    /// Adds a field to choose any number of values.
    #[must_use]
    pub fn several(
        self,
        name: &str,
        text: &str,
        of: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let options = field_options(of);
        self.field(FormField { kind: FieldKind::Several, options, ..form_field(name, text) })
    }

    /// Adds a field of any kind.
    #[must_use]
    pub fn field(mut self, field: FormField) -> Self {
        self.0.fields.push(field);
        self
    }
}

impl std::ops::Deref for FormBuilder {
    type Target = Form;

    fn deref(&self) -> &Form {
        &self.0
    }
}

fn form_field(name: &str, text: &str) -> FormField {
    FormField { name: name.to_owned(), text: text.to_owned(), ..FormField::default() }
}

fn field_options(values: impl IntoIterator<Item = &'static str>) -> Vec<FieldOption> {
    let option = |value: &str| FieldOption { value: value.to_owned(), ..FieldOption::default() };
    values.into_iter().map(option).collect()
}
