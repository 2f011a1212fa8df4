//! Forms for the person.

use jaato_types::Result;
use jaato_types::ask::{ASK, FieldKind, FieldOption, Form, FormAnswer, FormField};

use crate::context::Reporter;

impl Reporter {
    /// Shows the person a form and waits for the answer, as long as that takes: the deadline of the
    /// call stands still meanwhile. Where nobody can be asked, the answer says so at once.
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
    ///     return Ok(Output::text("nobody said"));
    /// }
    /// Ok(Output::json(json!({ "colour": answer.values["colour"] })))
    /// # }
    /// ```
    ///
    /// # Errors
    /// `permission_denied` without a grant for `ask`; `invalid_arguments` for a form that cannot be
    /// shown; `limit_reached` where 8 forms wait already.
    pub async fn ask(&self, form: &Form) -> Result<FormAnswer> {
        self.service(ASK, form).await
    }
}

/// Begins a form: what it is about, in one line.
pub fn form(title: impl Into<String>) -> FormBuilder {
    FormBuilder(Form { title: title.into(), ..Form::default() })
}

/// A form that is put together; [`Reporter::ask`] takes it as it is.
#[derive(Debug, Clone, Default)]
pub struct FormBuilder(Form);

impl FormBuilder {
    /// Asks for a text.
    #[must_use]
    pub fn text(self, name: &str, text: &str) -> Self {
        self.field(FormField { kind: FieldKind::Text, ..field(name, text) })
    }

    /// Asks for a text that is not shown while it is typed and stands in no event.
    #[must_use]
    pub fn secret(self, name: &str, text: &str) -> Self {
        self.field(FormField { kind: FieldKind::Secret, ..field(name, text) })
    }

    /// Asks for one of some values.
    #[must_use]
    pub fn choice(
        self,
        name: &str,
        text: &str,
        of: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let options = options(of);
        self.field(FormField { kind: FieldKind::Choice, options, ..field(name, text) })
    }

    /// Asks for any number of some values.
    #[must_use]
    pub fn several(
        self,
        name: &str,
        text: &str,
        of: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let options = options(of);
        self.field(FormField { kind: FieldKind::Several, options, ..field(name, text) })
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

fn field(name: &str, text: &str) -> FormField {
    FormField { name: name.to_owned(), text: text.to_owned(), ..FormField::default() }
}

fn options(values: impl IntoIterator<Item = &'static str>) -> Vec<FieldOption> {
    let option = |value: &str| FieldOption { value: value.to_owned(), ..FieldOption::default() };
    values.into_iter().map(option).collect()
}
