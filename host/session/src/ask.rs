//! Asking the user for forms and secrets; permission prompts are [`jaato_approval`]'s.

use std::fmt;

use futures_util::future::BoxFuture;
use jaato_approval::PermissionAsker;
use jaato_types::ask::{Form, FormAnswer};
use jaato_types::{PluginName, Result, SessionId};
use zeroize::Zeroizing;

use crate::form_check::check_answer;

/// A front end that asks the user: permission prompts, forms, secrets.
///
/// A program that embeds jaato shows them in its own way:
///
/// ```
/// use std::collections::BTreeMap;
///
/// use futures_util::future::BoxFuture;
/// use jaato_session::{Asker, FormQuestion, NoAnswer, PermissionAsker};
/// use jaato_types::SessionId;
/// use jaato_types::ask::{FieldKind, FormAnswer};
/// use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision, PermissionPrompt};
/// use serde_json::Value;
///
/// /// Asks in a window of the program. Here everything is answered at once.
/// struct Window;
///
/// impl PermissionAsker for Window {
///     fn unavailable(&self) -> Option<String> {
///         None
///     }
///
///     fn ask<'a>(
///         &'a self,
///         _session: &'a SessionId,
///         prompt: &'a PermissionPrompt,
///     ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>> {
///         // A window shows `prompt.title`, `prompt.subject` and a button for each of
///         // `prompt.answers`; `AllowedAnswer::chosen` is the answer of a button.
///         let comment = Some(format!("{} is not wanted here", prompt.tool));
///         let denied = PermissionAnswer {
///             comment,
///             ..PermissionAnswer::once(PermissionDecision::Deny)
///         };
///         Box::pin(async move { Ok(denied) })
///     }
/// }
///
/// impl Asker for Window {
///     fn form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
///         Box::pin(async move {
///             let mut values = BTreeMap::new();
///             for field in &question.form.fields {
///                 // A field without a default is shown here, and the person's answer taken.
///                 let given = match (field.kind, &field.default) {
///                     (_, Some(default)) => default.clone(),
///                     (FieldKind::Choice, None) => field.options[0].value.as_str().into(),
///                     (FieldKind::Several, None) => Value::Array(Vec::new()),
///                     _ => "what was typed".into(),
///                 };
///                 values.insert(field.name.clone(), given);
///             }
///             let answer = FormAnswer::answered(values);
///             // One that does not fit would be asked for again: say what is wrong first.
///             match question.check(&answer) {
///                 Ok(()) => answer,
///                 Err(_) => FormAnswer::declined(),
///             }
///         })
///     }
/// }
/// ```
pub trait Asker: PermissionAsker {
    /// Asks for something that nobody but a program may see; it is not shown while it is typed.
    /// Comes while calls run and between turns, from any of them. Dropping the future withdraws the
    /// question.
    fn secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        let _ = question;
        let reason = "who watches over this session takes no secrets".to_owned();
        Box::pin(std::future::ready(SecretAnswer::Nobody { reason }))
    }

    /// Shows a form of a plugin. Comes while calls run and between turns, one at a time. An answer
    /// that does not fit the form is asked for again by the session. Dropping the future withdraws
    /// the form.
    fn form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        let _ = question;
        let reason = "who watches over this session shows no forms";
        Box::pin(std::future::ready(FormAnswer::nobody(reason)))
    }
}

/// A form of a plugin.
#[derive(Debug, Clone, Copy)]
pub struct FormQuestion<'a> {
    /// The session in which it asks.
    pub session: &'a SessionId,
    /// What people see that session called, where another one opened it.
    pub agent: Option<&'a str>,
    /// The plugin that asks.
    pub plugin: &'a PluginName,
    /// Its number within the session: `form_1`.
    pub id: &'a str,
    /// What is asked, checked.
    pub form: &'a Form,
}

impl FormQuestion<'_> {
    /// Checks an answer before it is given: one that does not fit is asked for again, and in the
    /// end counts as none.
    ///
    /// # Errors
    /// Says which field it does not answer; no value of the answer stands in it.
    pub fn check(&self, answer: &FormAnswer) -> Result<()> {
        check_answer(self.form, answer)
    }
}

/// What a person is to type for a program on a terminal.
#[derive(Debug, Clone, Copy)]
pub struct SecretQuestion<'a> {
    /// The plugin that has the terminal.
    pub plugin: &'a PluginName,
    /// What the plugin calls the terminal.
    pub name: &'a str,
    /// What runs on it.
    pub command: &'a str,
    /// What the program asks for. Written by the program: it may say anything.
    pub prompt: &'a str,
}

/// What a person says to that.
#[derive(Debug)]
pub enum SecretAnswer {
    /// What was typed.
    Typed(Secret),
    /// The person would not.
    Declined,
    /// There is nobody to ask, and why.
    Nobody {
        /// Why.
        reason: String,
    },
}

/// What a person typed and nobody may see. It is overwritten when it is dropped.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Makes an empty one. Its place in memory is made once, so that it leaves no copy behind as it
    /// grows.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    /// Adds to it; false where that has no room any more.
    pub fn push(&mut self, byte: u8) -> bool {
        let has_room = self.0.len() < self.0.capacity();
        if has_room {
            self.0.push(byte);
        }
        has_room
    }

    /// Takes the last byte away.
    pub fn pop(&mut self) -> Option<u8> {
        self.0.pop()
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed_and_does_not_outgrow_its_place() {
        let mut secret = Secret::with_capacity(2);
        assert_eq!([b'a', b'b', b'c'].map(|byte| secret.push(byte)), [true, true, false]);
        assert_eq!(secret.bytes(), b"ab");
        assert_eq!(format!("{:?}", SecretAnswer::Typed(secret)), "Typed(Secret(…))");
    }
}
