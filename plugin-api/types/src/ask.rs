//! The service `ask`: a form for the person.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

crate::operations::service_operations! { $ ask_operations, Some("ask"), answered;
    /// Shows the user a form and waits for the answer. If no one can be asked, the answer says so
    /// at once.
    ask ASK "ask": Form => FormAnswer;
}

/// Most fields of a form.
pub const FORM_FIELDS_MAX: usize = 20;
/// Most options of one field.
pub const FORM_OPTIONS_MAX: usize = 100;
/// Longest title, text, label or description, in bytes of UTF-8.
pub const FORM_TEXT_BYTES_MAX: usize = 4 * 1024;
/// Longest answer to one field, in bytes of UTF-8.
pub const FORM_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Forms of a session that wait for the one that the person has in front of them.
pub const FORMS_WAITING_MAX: usize = 8;

/// What a person is asked. The host says which plugin asks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Form {
    /// What it is about, in one line.
    pub title: String,
    /// The fields, in order; at least one.
    pub fields: Vec<FormField>,
}

/// One field of a form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormField {
    /// Its key in the answer; unique within the form, not empty.
    pub name: String,
    /// What is asked.
    pub text: String,
    /// What the person gives.
    pub kind: FieldKind,
    /// What may be chosen, for `choice` and `several`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<FieldOption>,
    /// What counts where the person gives nothing: a text, or a list of values for `several`. Never
    /// for a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether it may be left empty where there is no default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_optional: bool,
}

/// What a person gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A text.
    #[default]
    Text,
    /// One of the options; the answer is its value.
    Choice,
    /// Any number of the options; the answer is a list of their values.
    Several,
    /// A text that is not shown while it is typed and stands in no event.
    Secret,
    /// One that this side does not know: refused, as something else would be asked.
    #[serde(other)]
    Unknown,
}

/// Something that may be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FieldOption {
    /// What the answer holds; unique within the field.
    pub value: String,
    /// What the person reads; the value where this is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// What it means, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// What came of a form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FormAnswer {
    /// How it ended.
    pub outcome: FormOutcome,
    /// What the person gave, by the fields' names; empty unless it was answered. An optional field
    /// that was left empty is not there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// Why nobody could be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a form ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormOutcome {
    /// The person answered.
    Answered,
    /// The person would not.
    Declined,
    /// It was taken back: the call that asked was cancelled.
    Cancelled,
    /// There was nobody to ask.
    Nobody,
    /// In a way that this side does not know: not answered.
    #[default]
    #[serde(other)]
    Unknown,
}

impl FormAnswer {
    /// Makes the answer of a person.
    pub fn answered(values: BTreeMap<String, Value>) -> Self {
        Self { outcome: FormOutcome::Answered, values, reason: None }
    }

    /// Makes the answer where the person would not.
    pub fn declined() -> Self {
        Self { outcome: FormOutcome::Declined, ..Self::default() }
    }

    /// Makes the answer where nobody can be asked, and why.
    pub fn nobody(reason: impl Into<String>) -> Self {
        Self { outcome: FormOutcome::Nobody, reason: Some(reason.into()), ..Self::default() }
    }
}
