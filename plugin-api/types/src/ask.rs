//! The service `ask`: shows the user a form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

crate::operations::service_operations! { $ ask_operations, Some("ask"), answered;
    /// Shows the user a form and waits for the answer. If no user can be asked, the answer says so
    /// immediately.
    ask ASK "ask": Form => FormAnswer;
}

/// The maximum number of fields in a form.
pub const FORM_FIELDS_MAX: usize = 20;
/// The maximum number of options of one field.
pub const FORM_OPTIONS_MAX: usize = 100;
/// The maximum length of a title, text, label or description, in bytes of UTF-8.
pub const FORM_TEXT_BYTES_MAX: usize = 4 * 1024;
/// The maximum length of the answer to one field, in bytes of UTF-8.
pub const FORM_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of a session's forms that wait while the user answers another one.
pub const FORMS_WAITING_MAX: usize = 8;

/// A form for the user. The host shows which plugin asks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Form {
    /// The title, in one line.
    pub title: String,
    /// The fields, in order. There must be at least one.
    pub fields: Vec<FormField>,
}

/// One field of a form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormField {
    /// The key of the field in the answer: not empty, and unique within the form.
    pub name: String,
    /// The question.
    pub text: String,
    /// The kind of answer.
    pub kind: FieldKind,
    /// The options to choose from, for `choice` and `several`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<FieldOption>,
    /// The value to use if the user enters nothing: a text, or a list of values for `several`. Not
    /// allowed for a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether the user may leave the field empty if it has no default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_optional: bool,
}

/// The kind of answer that a field expects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// Free text.
    #[default]
    Text,
    /// One of the options; the answer is its value.
    Choice,
    /// Any number of the options; the answer is a list of their values.
    Several,
    /// Text that is hidden while the user types it, and that no event contains.
    Secret,
    /// A kind from a newer version. The host refuses the form, because it would ask something else.
    #[serde(other)]
    Unknown,
}

/// An option to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FieldOption {
    /// The value in the answer, unique within the field.
    pub value: String,
    /// The label that the user reads. If it is empty, the user sees the value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// An explanation in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The result of a form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FormAnswer {
    /// How the form ended.
    pub outcome: FormOutcome,
    /// The user's answers, by field name. Empty unless the outcome is [`FormOutcome::Answered`].
    /// Optional fields that the user left empty are absent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// Why no user could be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a form ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormOutcome {
    /// The user answered.
    Answered,
    /// The user declined to answer.
    Declined,
    /// The form was withdrawn because the call that showed it was cancelled.
    Cancelled,
    /// No user could be asked.
    Nobody,
    /// An outcome from a newer version. Treat it as not answered.
    #[default]
    #[serde(other)]
    Unknown,
}

impl FormAnswer {
    /// Creates the answer of a user.
    pub fn answered(values: BTreeMap<String, Value>) -> Self {
        Self { outcome: FormOutcome::Answered, values, reason: None }
    }

    /// Creates the answer for a user who declined.
    pub fn declined() -> Self {
        Self { outcome: FormOutcome::Declined, ..Self::default() }
    }

    /// Creates the answer for a form that no user could see, with the reason.
    pub fn without_user(reason: impl Into<String>) -> Self {
        Self { outcome: FormOutcome::Nobody, reason: Some(reason.into()), ..Self::default() }
    }
}
