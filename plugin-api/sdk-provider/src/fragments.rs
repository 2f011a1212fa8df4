//! Assembles tool calls from fragments: by number, by id, or by neither.
//!
//! Servers differ. Some number each call, some number all calls 0 and give them ids, some give
//! neither, some repeat id and name with each fragment, and some send a call whole. The result is
//! always one list of calls, in the order in which they started.
//!
//! Calls are distinguished by id, then by number, then by name. Entries of one list are always
//! different calls. A fragment without a name continues a call, and starts one only if no call is
//! open.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::ToolCall;

use crate::failure::answer_limit_error as too_much;
use crate::read_arguments;

/// The maximum number of calls of one answer. Sessions run far fewer, and a server that sends more
/// never stops.
pub const CALLS_MAX: usize = 256;

/// The maximum number of bytes of names and arguments of one answer: half of the largest frame to
/// the host.
pub const ARGUMENTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A piece of a call. Fields that the server did not send are absent or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFragment<'a> {
    /// The call's number.
    pub index: Option<u64>,
    /// The call's id.
    pub id: &'a str,
    /// The tool's name, or a piece of it.
    pub name: &'a str,
    /// A piece of the arguments' JSON.
    pub arguments: &'a str,
    /// The complete signature to send back with the call.
    pub signature: &'a str,
}

impl CallFragment<'_> {
    /// Returns true if this is a complete call: a name, and arguments that start and end here.
    fn is_whole(&self) -> bool {
        let mut progress = JsonProgress::default();
        progress.track_piece(self.arguments);
        !self.name.is_empty() && self.arguments.trim_start().starts_with('{') && progress.is_whole
    }
}

/// The calls so far.
#[derive(Debug, Default)]
pub struct CallFragments {
    calls: Vec<PartialCall>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    signature: String,
    progress: JsonProgress,
}

/// The place of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallFragmentPlace {
    /// It continues this call.
    In(usize),
    /// It starts a call.
    New,
    /// It is empty.
    Nowhere,
}

impl CallFragments {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if no call has started.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a fragment to its call. Returns true if it started a call.
    ///
    /// # Errors
    /// `limit_reached` beyond [`CALLS_MAX`] and [`ARGUMENTS_BYTES_MAX`].
    pub fn add_fragment(&mut self, fragment: &CallFragment<'_>) -> Result<bool> {
        let before = self.calls.len();
        self.add_fragments(std::slice::from_ref(fragment))?;
        Ok(self.calls.len() > before)
    }

    /// Adds the fragments of one list, each to a different call.
    ///
    /// # Errors
    /// `limit_reached` beyond [`CALLS_MAX`] and [`ARGUMENTS_BYTES_MAX`].
    pub fn add_fragments(&mut self, list: &[CallFragment<'_>]) -> Result<()> {
        if list.len() > CALLS_MAX {
            return Err(too_much(&format!("{CALLS_MAX} tool calls")));
        }
        let mut taken = Vec::new();
        for (number, fragment) in list.iter().enumerate() {
            let CallFragment { id, name, arguments, signature, .. } = fragment;
            self.bytes += id.len() + name.len() + arguments.len() + signature.len();
            if self.bytes > ARGUMENTS_BYTES_MAX {
                return Err(too_much(&format!("{ARGUMENTS_BYTES_MAX} bytes of tool calls")));
            }
            let same_index = |other: &&CallFragment<'_>| other.index == fragment.index;
            let later = list[number + 1..].iter().filter(same_index).count();
            let place = match self.find_call(fragment, later, &taken) {
                CallFragmentPlace::In(place) => place,
                CallFragmentPlace::New => self.begin_call(fragment.index)?,
                CallFragmentPlace::Nowhere => continue,
            };
            self.calls[place].append_fragment(fragment);
            taken.push(place);
        }
        Ok(())
    }

    fn begin_call(&mut self, index: Option<u64>) -> Result<usize> {
        if self.calls.len() == CALLS_MAX {
            return Err(too_much(&format!("{CALLS_MAX} tool calls")));
        }
        self.calls.push(PartialCall { index, ..PartialCall::default() });
        Ok(self.calls.len() - 1)
    }

    /// Finds the call of a fragment, except the calls that other entries of the same list have
    /// `taken`. `later` entries of the list have the same number.
    fn find_call(
        &self,
        fragment: &CallFragment<'_>,
        later: usize,
        taken: &[usize],
    ) -> CallFragmentPlace {
        let free = || (0..self.calls.len()).rev().filter(|place| !taken.contains(place));
        let by_id = || {
            let mut same = free().filter(|place| self.calls[*place].id == fragment.id);
            if fragment.id.is_empty() { None } else { same.next() }
        };
        if let Some(place) = by_id() {
            let call = &self.calls[place];
            // A server that repeats a call repeats it unchanged.
            let is_other = fragment.name != call.name || fragment.arguments != call.arguments;
            let is_whole_again = fragment.is_whole() && is_other;
            let is_another =
                (call.index != fragment.index || is_whole_again) && call.is_before(fragment.name);
            if call.index == fragment.index && fragment.is_whole() && !is_whole_again {
                return CallFragmentPlace::Nowhere;
            }
            return if is_another { CallFragmentPlace::New } else { CallFragmentPlace::In(place) };
        }
        let may_be = |place: &usize| match fragment.index {
            Some(_) => self.calls[*place].index == fragment.index,
            None => fragment.id.is_empty(),
        };
        match free().filter(may_be).nth(later) {
            Some(place) if self.calls[place].continues_with(fragment) => {
                CallFragmentPlace::In(place)
            }
            Some(_) => CallFragmentPlace::New,
            None if !fragment.name.is_empty() => CallFragmentPlace::New,
            None => self.find_call_without_name(fragment, free().next()),
        }
    }

    /// Finds the call of a fragment without any identification: the last one, while it is open.
    fn find_call_without_name(
        &self,
        fragment: &CallFragment<'_>,
        last: Option<usize>,
    ) -> CallFragmentPlace {
        match last {
            Some(last) if !self.calls[last].is_whole() => CallFragmentPlace::In(last),
            Some(_) if fragment.arguments.trim().is_empty() => CallFragmentPlace::Nowhere,
            None if fragment.id.is_empty() && fragment.arguments.trim().is_empty() => {
                CallFragmentPlace::Nowhere
            }
            // The name may follow the arguments.
            Some(_) | None => CallFragmentPlace::New,
        }
    }

    /// Ends the answer and returns the calls in order. A call without an id gets one that is unique
    /// in this answer. Arguments that are not valid JSON stay text, which the session rejects.
    pub fn finish(mut self) -> Vec<ToolCall> {
        // A call without a name is a leftover, unless it is the only one.
        if self.calls.iter().any(|call| !call.name.is_empty()) {
            self.calls.retain(|call| !call.name.is_empty());
        }
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
            let arguments = parse_arguments(call.arguments);
            let signature = (!call.signature.is_empty()).then_some(call.signature);
            calls.push(ToolCall { signature, ..ToolCall::new(id, call.name, arguments) });
        }
        calls
    }

    /// Ends an answer that reached the token limit. If the last call's arguments had not started,
    /// they become an empty text, which the session rejects, instead of an empty object.
    pub fn finish_truncated(self) -> Vec<ToolCall> {
        let is_cut = self.calls.last().is_some_and(|call| call.arguments.trim().is_empty());
        let mut calls = self.finish();
        if let Some(last) = calls.last_mut().filter(|_| is_cut) {
            last.arguments = Value::String(String::new());
        }
        calls
    }
}

impl PartialCall {
    fn append_fragment(&mut self, fragment: &CallFragment<'_>) {
        if self.id.is_empty() {
            self.id.push_str(fragment.id);
        }
        // A repeated name is the same name. A different one continues it.
        let may_grow = self.arguments.is_empty() || self.name.is_empty();
        if self.name != fragment.name && may_grow {
            self.name.push_str(fragment.name);
        }
        if self.signature.is_empty() {
            self.signature.push_str(fragment.signature);
        }
        self.arguments.push_str(fragment.arguments);
        self.progress.track_piece(fragment.arguments);
    }

    /// Returns true if a fragment without another call's id continues this call.
    fn continues_with(&self, fragment: &CallFragment<'_>) -> bool {
        if fragment.name.is_empty() {
            return true;
        }
        let is_other_id = !fragment.id.is_empty() && !self.id.is_empty();
        // Servers that send neither ids nor numbers send whole names.
        let has_mark = fragment.index.is_some() || !fragment.id.is_empty();
        let is_other_name = !has_mark && !self.name.is_empty() && self.name != fragment.name;
        !is_other_id && !is_other_name && !self.is_before(fragment.name)
    }

    /// Returns true if a name starts the call after this one.
    fn is_before(&self, name: &str) -> bool {
        !name.is_empty() && !self.name.is_empty() && self.is_whole()
    }

    fn is_whole(&self) -> bool {
        self.progress.is_whole || self.arguments == NULL
    }
}

/// Tracks the JSON of arguments, so that it does not have to be parsed again for each fragment.
#[derive(Debug, Default)]
struct JsonProgress {
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    is_whole: bool,
}

impl JsonProgress {
    fn track_piece(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_in_text,
                b'"' => self.is_in_text = !self.is_in_text,
                _ if self.is_in_text => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_whole |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

/// The text that some servers send for missing arguments.
const NULL: &str = "null";

/// Parses arguments. An empty text means no arguments.
fn parse_arguments(text: String) -> Value {
    if text.trim().is_empty() || text.trim() == NULL {
        return Value::Object(serde_json::Map::new());
    }
    read_arguments(&text).unwrap_or(Value::String(text))
}
