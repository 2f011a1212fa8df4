//! Asking a person whether a call may run, and for what nobody but a program may see.

use std::fmt;

use futures_util::future::BoxFuture;
use jaato_policy::{Decision, Scope};
use jaato_types::ask::{Form, FormAnswer};
use jaato_types::hooks::Preview;
use jaato_types::{PluginName, Result, SessionId, ToolCall};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::KnownTool;
use crate::form_check::check_answer;

/// Asks a person, or says that nobody can be asked.
///
/// A program that embeds jaato shows questions and forms in its own way:
///
/// ```
/// use std::collections::BTreeMap;
///
/// use futures_util::future::BoxFuture;
/// use jaato_session::{Answer, Asker, FormQuestion, Question};
/// use jaato_types::ask::{FieldKind, FormAnswer};
/// use serde_json::Value;
///
/// /// Asks in a window of the program. Here everything is answered at once.
/// struct Window;
///
/// impl Asker for Window {
///     fn nobody(&self) -> Option<String> {
///         None
///     }
///
///     fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
///         let comment = Some(format!("{} is not wanted here", question.call.name));
///         Box::pin(async move { Answer::Deny { comment } })
///     }
///
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
pub trait Asker: Send + Sync {
    /// Tells why nobody can be asked (`standard input is not a terminal`); nothing if somebody can.
    fn nobody(&self) -> Option<String>;

    /// Names the way on which it asks, for events and records: `terminal`.
    fn channel(&self) -> &str {
        "host"
    }

    /// Returns how long an answer is waited for where the session's setup does not say; without
    /// one as long as it takes. A question that nobody answers in time is denied.
    fn patience_ms(&self) -> Option<u64> {
        None
    }

    /// Asks, one question at a time. Dropping the future withdraws the question.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer>;

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

/// What a person is asked.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The session in which it is made.
    pub session: &'a SessionId,
    /// The call, with the arguments that it would run with.
    pub call: &'a ToolCall,
    /// The tool.
    pub tool: &'a KnownTool,
    /// The plugin that makes the call, where neither the model nor a person does.
    pub by: Option<&'a PluginName>,
    /// What people see the session called, where another one opened it.
    pub agent: Option<&'a str>,
    /// The execution environment in which the session works, where that is not this machine.
    pub environment: Option<String>,
    /// The decision that a person must be asked.
    pub decision: Decision,
    /// The decision in words.
    pub why: String,
    /// What [`Answer::AllowLike`] and [`Answer::DenyLike`] can hold for, from narrow to wide, in
    /// words; empty where a plugin wants each such call to be asked, so that an answer holds for
    /// this call alone.
    pub patterns: Vec<String>,
    /// How many calls of the model's answer are exactly this one. All of them get the answer.
    pub times: usize,
    /// What the rules read in the arguments.
    pub reading: Reading,
    /// Whether the person changed the arguments before.
    pub was_edited: bool,
    /// What the call would change, as the tool's own plugin shows it.
    pub preview: Option<Preview>,
    /// How long the answer is waited for.
    pub patience_ms: Option<u64>,
}

/// What the rules read in the arguments of a call, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The commands of a command line, those inside of others too.
    pub commands: Vec<String>,
    /// What in a command line can do more than these commands say: what it is, and the piece.
    pub risks: Vec<String>,
    /// The hosts that URLs among the arguments name.
    pub hosts: Vec<String>,
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This call may run.
    AllowOnce,
    /// This call may run, and later ones that a pattern of the question covers.
    AllowLike {
        /// How long that holds.
        scope: Scope,
        /// The pattern's index in [`Question::patterns`]. One that is not there allows this call
        /// alone.
        pattern: usize,
    },
    /// The call should have other arguments. It is looked at anew with these, by the guards, the
    /// rules and, where these say so, the person.
    Edit {
        /// The arguments.
        arguments: Value,
    },
    /// It must not run.
    Deny {
        /// What the model is told about it.
        comment: Option<String>,
    },
    /// It must not run, and later ones neither.
    DenyLike {
        /// How long that holds.
        scope: Scope,
        /// The index of the pattern that later calls must have; `None` for every call of the tool.
        pattern: Option<usize>,
        /// What the model is told about it.
        comment: Option<String>,
    },
    /// There was nobody to answer after all (the terminal is gone), and why.
    Nobody {
        /// Why.
        reason: String,
    },
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
