//! Asks the user for forms and secrets. Permission prompts belong to [`jaato_approval`].

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
/// use jaato_session::{UserAsker, FormQuestion, NoAnswer, PermissionAsker};
/// use jaato_types::SessionId;
/// use jaato_types::ask::{FieldKind, FormAnswer};
/// use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision, PermissionPrompt};
/// use serde_json::Value;
///
/// /// Asks in a window of the program. Here everything is answered at once.
/// struct Window;
///
/// impl PermissionAsker for Window {
///     fn unavailable_reason(&self) -> Option<String> {
///         None
///     }
///
///     fn ask_permission<'a>(
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
/// impl UserAsker for Window {
///     fn ask_form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
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
///             match question.check_answer(&answer) {
///                 Ok(()) => answer,
///                 Err(_) => FormAnswer::declined(),
///             }
///         })
///     }
/// }
/// ```
pub trait UserAsker: PermissionAsker {
    /// Asks for a secret that only a program may see. The front end does not show it while the user
    /// types. Calls and turns may ask at any time. Dropping the future withdraws the question.
    fn ask_secret<'a>(&'a self, question: SecretQuestion<'a>) -> BoxFuture<'a, SecretAnswer> {
        let _ = question;
        let reason = "this session's front end does not ask for secrets".to_owned();
        Box::pin(std::future::ready(SecretAnswer::Nobody { reason }))
    }

    /// Shows a plugin's form. Forms come one at a time, while calls run and between turns. If an
    /// answer does not fit the form, the session asks again. Dropping the future withdraws the
    /// form.
    fn ask_form<'a>(&'a self, question: FormQuestion<'a>) -> BoxFuture<'a, FormAnswer> {
        let _ = question;
        let reason = "this session's front end does not show forms";
        Box::pin(std::future::ready(FormAnswer::without_user(reason)))
    }
}

/// A plugin's form.
#[derive(Debug, Clone, Copy)]
pub struct FormQuestion<'a> {
    /// The session in which the plugin asks.
    pub session: &'a SessionId,
    /// The name that users see for that session, if another session opened it.
    pub agent: Option<&'a str>,
    /// The plugin that asks.
    pub plugin: &'a PluginName,
    /// The form's number within the session: `form_1`.
    pub id: &'a str,
    /// The checked form.
    pub form: &'a Form,
}

impl FormQuestion<'_> {
    /// Checks an answer before it is given. The session asks again for an answer that does not fit,
    /// and finally counts it as no answer.
    ///
    /// # Errors
    /// Names the field that the answer does not fit. The error contains none of the answer's
    /// values.
    pub fn check_answer(&self, answer: &FormAnswer) -> Result<()> {
        check_answer(self.form, answer)
    }
}

/// A secret that the user has to type for a program on a terminal.
#[derive(Debug, Clone, Copy)]
pub struct SecretQuestion<'a> {
    /// The plugin that has the terminal.
    pub plugin: &'a PluginName,
    /// The plugin's name for the terminal.
    pub name: &'a str,
    /// The command that runs on the terminal.
    pub command: &'a str,
    /// The program's prompt. The program wrote it, so it may say anything.
    pub prompt: &'a str,
}

/// The user's response to a [`SecretQuestion`].
#[derive(Debug)]
pub enum SecretAnswer {
    /// The secret that the user typed.
    Typed(TypedSecret),
    /// The user declined.
    Declined,
    /// No user can be asked.
    Nobody {
        /// The reason.
        reason: String,
    },
}

/// A secret that the user typed. Its memory is overwritten when it is dropped.
pub struct TypedSecret(Zeroizing<Vec<u8>>);

impl TypedSecret {
    /// Creates an empty secret. Its memory is allocated once, so that growing it leaves no copy
    /// behind.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Zeroizing::new(Vec::with_capacity(bytes)))
    }

    /// Adds a byte. Returns false if the buffer is full.
    pub fn push(&mut self, byte: u8) -> bool {
        let has_room = self.0.len() < self.0.capacity();
        if has_room {
            self.0.push(byte);
        }
        has_room
    }

    /// Removes the last byte.
    pub fn pop(&mut self) -> Option<u8> {
        self.0.pop()
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for TypedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_secret_is_never_printed_and_does_not_exceed_its_capacity() {
        let mut secret = TypedSecret::with_capacity(2);
        assert_eq!([b'a', b'b', b'c'].map(|byte| secret.push(byte)), [true, true, false]);
        assert_eq!(secret.bytes(), b"ab");
        assert_eq!(format!("{:?}", SecretAnswer::Typed(secret)), "Typed(Secret(…))");
    }
}
