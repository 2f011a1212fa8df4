//! Tool calls that come in fragments: by number, by id, or by neither.
//!
//! Servers differ: some number each call, some give all calls the number 0 and ids of their own,
//! some give neither, some repeat id and name with each fragment, some send a call whole. All of
//! that ends as one list of calls, in the order in which they began.
//!
//! What tells calls apart, the strongest first: an id, a number, a name. Entries of one list are
//! always different calls. A fragment without a name goes on with a call and begins none, unless no
//! call is open.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::ToolCall;

use crate::failure::of_too_much as too_much;
use crate::read_arguments;

/// Most calls of one answer. A session runs far fewer; more is a server that does not stop.
pub const CALLS_MAX: usize = 256;

/// Most bytes of names and arguments of one answer: half of what may cross to the host in one
/// frame.
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
    /// What the provider wants back with the call, whole.
    pub signature: &'a str,
}

impl Fragment<'_> {
    /// Tells whether it is a whole call: a name, and arguments that begin and end in it.
    fn is_whole(&self) -> bool {
        let mut progress = Progress::default();
        progress.follow(self.arguments);
        !self.name.is_empty() && self.arguments.trim_start().starts_with('{') && progress.is_whole
    }
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
    signature: String,
    progress: Progress,
}

/// Where a fragment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It goes on with this call.
    In(usize),
    /// It begins a call.
    New,
    /// It says nothing.
    Nowhere,
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
        let before = self.calls.len();
        self.push_list(std::slice::from_ref(fragment))?;
        Ok(self.calls.len() > before)
    }

    /// Adds the pieces of one list, each to a call of its own.
    ///
    /// # Errors
    /// `limit_reached` beyond [`CALLS_MAX`] and [`ARGUMENTS_BYTES_MAX`].
    pub fn push_list(&mut self, list: &[Fragment<'_>]) -> Result<()> {
        if list.len() > CALLS_MAX {
            return Err(too_much(&format!("{CALLS_MAX} tool calls")));
        }
        let mut taken = Vec::new();
        for (number, fragment) in list.iter().enumerate() {
            let Fragment { id, name, arguments, signature, .. } = fragment;
            self.bytes += id.len() + name.len() + arguments.len() + signature.len();
            if self.bytes > ARGUMENTS_BYTES_MAX {
                return Err(too_much(&format!("{ARGUMENTS_BYTES_MAX} bytes of tool calls")));
            }
            let same_index = |other: &&Fragment<'_>| other.index == fragment.index;
            let later = list[number + 1..].iter().filter(same_index).count();
            let place = match self.place_of(fragment, later, &taken) {
                Place::In(place) => place,
                Place::New => self.begin(fragment.index)?,
                Place::Nowhere => continue,
            };
            self.calls[place].add(fragment);
            taken.push(place);
        }
        Ok(())
    }

    fn begin(&mut self, index: Option<u64>) -> Result<usize> {
        if self.calls.len() == CALLS_MAX {
            return Err(too_much(&format!("{CALLS_MAX} tool calls")));
        }
        self.calls.push(Growing { index, ..Growing::default() });
        Ok(self.calls.len() - 1)
    }

    /// Finds the call of a fragment, among those that no entry of the same list has `taken`.
    /// `later` entries of the list have the same number.
    fn place_of(&self, fragment: &Fragment<'_>, later: usize, taken: &[usize]) -> Place {
        let free = || (0..self.calls.len()).rev().filter(|place| !taken.contains(place));
        let by_id = || {
            let mut same = free().filter(|place| self.calls[*place].id == fragment.id);
            if fragment.id.is_empty() { None } else { same.next() }
        };
        if let Some(place) = by_id() {
            let call = &self.calls[place];
            // A server that repeats a call repeats it as it was.
            let is_other = fragment.name != call.name || fragment.arguments != call.arguments;
            let is_whole_again = fragment.is_whole() && is_other;
            let is_another =
                (call.index != fragment.index || is_whole_again) && call.is_before(fragment.name);
            if call.index == fragment.index && fragment.is_whole() && !is_whole_again {
                return Place::Nowhere;
            }
            return if is_another { Place::New } else { Place::In(place) };
        }
        let may_be = |place: &usize| match fragment.index {
            Some(_) => self.calls[*place].index == fragment.index,
            None => fragment.id.is_empty(),
        };
        match free().filter(may_be).nth(later) {
            Some(place) if self.calls[place].continues_with(fragment) => Place::In(place),
            Some(_) => Place::New,
            None if !fragment.name.is_empty() => Place::New,
            None => self.place_of_nameless(fragment, free().next()),
        }
    }

    /// Finds the call of a fragment of which nothing is known: the last one, as long as that is
    /// open.
    fn place_of_nameless(&self, fragment: &Fragment<'_>, last: Option<usize>) -> Place {
        match last {
            Some(last) if !self.calls[last].is_whole() => Place::In(last),
            Some(_) if fragment.arguments.trim().is_empty() => Place::Nowhere,
            None if fragment.id.is_empty() && fragment.arguments.trim().is_empty() => {
                Place::Nowhere
            }
            // Its name may come after its arguments.
            Some(_) | None => Place::New,
        }
    }

    /// Ends the answer: the calls in order. A call without an id gets one that is unique in this
    /// answer; arguments that are no JSON stay the text that they are, for the session to refuse.
    pub fn finish(mut self) -> Vec<ToolCall> {
        // What never got a name is the rest of something, unless it is all that there is.
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
            let arguments = arguments_of(call.arguments);
            let signature = (!call.signature.is_empty()).then_some(call.signature);
            calls.push(ToolCall { signature, ..ToolCall::new(id, call.name, arguments) });
        }
        calls
    }

    /// Ends an answer that reached the most tokens allowed. Where the last call's arguments had not
    /// begun, they are the empty text, which the session refuses, and not an empty object.
    pub fn finish_cut(self) -> Vec<ToolCall> {
        let is_cut = self.calls.last().is_some_and(|call| call.arguments.trim().is_empty());
        let mut calls = self.finish();
        if let Some(last) = calls.last_mut().filter(|_| is_cut) {
            last.arguments = Value::String(String::new());
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
        let may_grow = self.arguments.is_empty() || self.name.is_empty();
        if self.name != fragment.name && may_grow {
            self.name.push_str(fragment.name);
        }
        if self.signature.is_empty() {
            self.signature.push_str(fragment.signature);
        }
        self.arguments.push_str(fragment.arguments);
        self.progress.follow(fragment.arguments);
    }

    /// Tells whether a fragment that has no other call's id goes on with this call.
    fn continues_with(&self, fragment: &Fragment<'_>) -> bool {
        if fragment.name.is_empty() {
            return true;
        }
        let is_other_id = !fragment.id.is_empty() && !self.id.is_empty();
        // Servers that give neither ids nor numbers send names whole.
        let has_mark = fragment.index.is_some() || !fragment.id.is_empty();
        let is_other_name = !has_mark && !self.name.is_empty() && self.name != fragment.name;
        !is_other_id && !is_other_name && !self.is_before(fragment.name)
    }

    /// Tells whether a name begins the call after this one.
    fn is_before(&self, name: &str) -> bool {
        !name.is_empty() && !self.name.is_empty() && self.is_whole()
    }

    fn is_whole(&self) -> bool {
        self.progress.is_whole || self.arguments == NULL
    }
}

/// Follows the JSON of arguments, so that nobody has to read it again at each fragment.
#[derive(Debug, Default)]
struct Progress {
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    is_whole: bool,
}

impl Progress {
    fn follow(&mut self, piece: &str) {
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

/// What some servers give for no arguments, as a text.
const NULL: &str = "null";

/// Reads arguments; none at all mean that there are none to give.
fn arguments_of(text: String) -> Value {
    if text.trim().is_empty() || text.trim() == NULL {
        return Value::Object(serde_json::Map::new());
    }
    read_arguments(&text).unwrap_or(Value::String(text))
}
