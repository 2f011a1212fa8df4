//! Tool calls that come in fragments: by number, by id, or by neither.
//!
//! Servers differ: some number each call, some give all calls the number 0 and ids of their own, some
//! give neither, some repeat id and name with each fragment, some send a call whole. All of that ends
//! as one list of calls, in the order in which they began.

use jaato_plugin_sdk::serde::de::IgnoredAny;
use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::ToolCall;
use jaato_plugin_sdk::{Error, ErrorKind, Result};

/// Most calls of one answer. A session runs far fewer; more is a server that does not stop.
pub const CALLS_MAX: usize = 256;

/// Most bytes of names and arguments of one answer: half of what may cross to the host in one frame.
pub const ARGUMENTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A piece of a call. Whatever the server did not say is absent or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The call's number.
    pub index: Option<u64>,
    /// The call's id.
    pub id: &'a str,
    /// The tool's name, or a piece of it.
    pub name: &'a str,
    /// A piece of the arguments' JSON.
    pub arguments: &'a str,
}

/// The calls so far.
#[derive(Debug, Default)]
pub struct Fragments {
    calls: Vec<Growing>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Growing {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Fragments {
    /// Begins with no call.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells whether no call has begun.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a piece to the call that it belongs to; tells whether it began a call.
    ///
    /// # Errors
    /// `limit_reached` beyond [`CALLS_MAX`] and [`ARGUMENTS_BYTES_MAX`].
    pub fn push(&mut self, fragment: &Fragment<'_>) -> Result<bool> {
        self.bytes += fragment.id.len() + fragment.name.len() + fragment.arguments.len();
        let known = self.place_of(fragment);
        if self.bytes > ARGUMENTS_BYTES_MAX {
            return Err(too_much(&format!("{ARGUMENTS_BYTES_MAX} bytes of tool calls")));
        }
        if known.is_none() && self.calls.len() == CALLS_MAX {
            return Err(too_much(&format!("{CALLS_MAX} tool calls")));
        }
        let place = known.unwrap_or_else(|| {
            self.calls.push(Growing { index: fragment.index, ..Growing::default() });
            self.calls.len() - 1
        });
        self.calls[place].add(fragment);
        Ok(known.is_none())
    }

    /// The call that a fragment goes on with; none when it begins one.
    fn place_of(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let place = match fragment.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == fragment.index),
            None if !fragment.id.is_empty() => {
                self.calls.iter().rposition(|call| call.id == fragment.id)
            }
            None => self.calls.len().checked_sub(1),
        }?;
        let call = &self.calls[place];
        let is_other_id = !fragment.id.is_empty() && !call.id.is_empty() && call.id != fragment.id;
        // Without ids a name tells that the next call begins, once this one is whole.
        let is_next_name = fragment.id.is_empty() && !fragment.name.is_empty() && call.is_whole();
        (!is_other_id && !is_next_name).then_some(place)
    }

    /// Ends the answer: the calls in order. A call without an id gets one that is unique in this answer;
    /// arguments that are no JSON stay the text that they are, for the session to refuse.
    pub fn finish(self) -> Vec<ToolCall> {
        let taken: Vec<String> = self.calls.iter().map(|call| call.id.clone()).collect();
        let mut seen: Vec<String> = Vec::new();
        let mut calls = Vec::new();
        for (number, call) in self.calls.into_iter().enumerate() {
            let mut id = call.id;
            if id.is_empty() || seen.contains(&id) {
                let mut made = format!("call-{number}");
                while taken.contains(&made) {
                    made.push('x');
                }
                id = made;
            }
            seen.push(id.clone());
            let arguments = arguments_of(call.arguments);
            calls.push(ToolCall { id: id.into(), name: call.name.into(), arguments });
        }
        calls
    }
}

impl Growing {
    fn add(&mut self, fragment: &Fragment<'_>) {
        if self.id.is_empty() {
            self.id.push_str(fragment.id);
        }
        // A name that comes again is the same name; one that differs is the rest of it.
        if self.name != fragment.name && self.arguments.is_empty() {
            self.name.push_str(fragment.name);
        }
        self.arguments.push_str(fragment.arguments);
    }

    fn is_whole(&self) -> bool {
        !self.name.is_empty() && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }
}

/// Reads arguments; none at all mean that there are none to give.
fn arguments_of(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn too_much(what: &str) -> Error {
    Error::new(ErrorKind::LimitReached, format!("the model's answer has more than {what}"))
}
