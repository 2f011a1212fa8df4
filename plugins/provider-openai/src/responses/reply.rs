//! Reads a server's stream: turns events into deltas, and finally into the completion.
//!
//! Pure. Pieces are shown as they arrive, but the history contains each item as it was when it was
//! done. A complete and a streamed answer therefore result in the same history. Items are
//! identified by their index in the output, because some gateways change ids within a stream.

use std::collections::BTreeMap;

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{Completion, Delta, FinishReason, Part, Usage};
use jaato_plugin_sdk_provider::chat::{CHECK_URL, reason_of_word};
use jaato_plugin_sdk_provider::exchange::wrong_form_error;
use jaato_plugin_sdk_provider::{
    ARGUMENTS_BYTES_MAX, AnswerReader, CALLS_MAX, EVENTS_MAX, ModelProtocol, PARTS_MAX,
    ServerEvent, StreamingAnswer, failure,
};

use super::items::{self, ItemCompleteness};
use super::report::reported_error;
use super::usage;

/// The event name with which servers report an error.
const ERROR_EVENT: &str = "error";

/// The data of a last event that some gateways add.
const DONE: &str = "[DONE]";

/// The separator between summaries that are shown as one thought.
const BETWEEN: &str = "\n\n";

/// An answer in progress.
#[derive(Debug)]
pub struct ResponsesReply {
    url: String,
    items: BTreeMap<u64, ResponsesOutputItem>,
    /// The index of the item in the last event.
    newest: u64,
    usage: Option<Usage>,
    /// The server's reason for the end of the answer.
    end: Option<String>,
    /// Total bytes of calls and of items that only the vendor understands.
    other_bytes: usize,
    events: usize,
    is_done: bool,
    has_begun: bool,
}

/// An item of the output.
#[derive(Debug, Default)]
struct ResponsesOutputItem {
    /// The item when it began.
    begun: Value,
    /// The item when it was done.
    done: Option<Value>,
    /// The pieces of a message by index, with their type and text so far.
    said: BTreeMap<u64, (&'static str, String)>,
    /// The pieces of reasoning: summaries, then the reasoning itself.
    summaries: BTreeMap<u64, String>,
    reasoning: String,
    arguments: String,
}

impl ResponsesOutputItem {
    /// Returns the item as far as it arrived, and if it is complete.
    fn current_value(&self) -> (Value, ItemCompleteness) {
        match &self.done {
            Some(done) if done["status"] == "incomplete" => {
                (done.clone(), ItemCompleteness::InPart)
            }
            Some(done) => (done.clone(), ItemCompleteness::Whole),
            None => (self.partial_item(), ItemCompleteness::InPart),
        }
    }

    fn partial_item(&self) -> Value {
        let mut item = self.begun.clone();
        if !item.is_object() {
            // Some gateways omit the start of an item.
            let kind = if self.arguments.is_empty() && !self.said.is_empty() {
                "message"
            } else if self.arguments.is_empty() {
                "reasoning"
            } else {
                "function_call"
            };
            item = json!({ "type": kind, "role": "assistant" });
        }
        match item["type"].as_str() {
            Some("message") => {
                let piece = |(kind, text): &(&str, String)| {
                    let key = if *kind == "refusal" { "refusal" } else { "text" };
                    json!({ "type": kind, (key): text })
                };
                item["content"] = self.said.values().map(piece).collect();
            }
            Some("reasoning") => {
                let texts = self.summaries.values().map(|text| json!({ "text": text }));
                item["summary"] = texts.collect();
                item["content"] = json!([{ "type": "reasoning_text", "text": self.reasoning }]);
            }
            Some("function_call") if !self.arguments.is_empty() => {
                item["arguments"] = json!(self.arguments);
            }
            _ => {}
        }
        item
    }

    fn shown_text(&self) -> String {
        self.said.values().map(|(_, text)| text.as_str()).collect()
    }

    fn shown_thought(&self) -> String {
        let summaries: Vec<&str> = self.summaries.values().map(String::as_str).collect();
        let joined = summaries.join(BETWEEN);
        if joined.is_empty() { self.reasoning.clone() } else { joined }
    }
}

impl ResponsesReply {
    /// Creates the reply for a request to this URL, which errors name.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            items: BTreeMap::new(),
            newest: 0,
            usage: None,
            end: None,
            other_bytes: 0,
            events: 0,
            is_done: false,
            has_begun: false,
        }
    }

    /// Reads one event.
    ///
    /// # Errors
    /// The error that the server reports inside its answer, or `limit_reached` beyond
    /// [`EVENTS_MAX`], [`PARTS_MAX`] and [`ARGUMENTS_BYTES_MAX`].
    pub fn read_event(&mut self, event: &Value) -> Result<Vec<Delta>> {
        self.has_begun = true;
        self.events += 1;
        if self.events > EVENTS_MAX {
            return Err(failure::answer_limit_error(&format!("{EVENTS_MAX} pieces")));
        }
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let number = |key: &str| event[key].as_u64().unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => {
                self.count_bytes(event["item"].to_string().len())?;
                self.item_for_event(event)?.begun = event["item"].clone();
            }
            "response.output_item.done" => {
                let at = self.item_index(event)?;
                return self.finish_item(at, &event["item"]);
            }
            "response.output_text.delta" => {
                return self.add_delta(
                    event,
                    "output_text",
                    number("content_index"),
                    text("delta"),
                );
            }
            "response.refusal.delta" => {
                return self.add_delta(event, "refusal", number("content_index"), text("delta"));
            }
            "response.reasoning_summary_text.delta" => {
                let (at, delta) = (number("summary_index"), text("delta"));
                let summaries = &mut self.item_for_event(event)?.summaries;
                let is_first = !summaries.contains_key(&at);
                let mut shown = String::new();
                if is_first && !summaries.is_empty() && !delta.is_empty() {
                    shown.push_str(BETWEEN);
                }
                summaries.entry(at).or_default().push_str(delta);
                shown.push_str(delta);
                return Ok(thought_deltas(shown));
            }
            "response.reasoning_text.delta" => {
                self.item_for_event(event)?.reasoning.push_str(text("delta"));
                return Ok(thought_deltas(text("delta").to_owned()));
            }
            "response.function_call_arguments.delta" => {
                self.count_bytes(text("delta").len())?;
                self.item_for_event(event)?.arguments.push_str(text("delta"));
                // Without this delta, the session would treat long arguments as silence.
                return Ok((!text("delta").is_empty())
                    .then(|| Delta::text(""))
                    .into_iter()
                    .collect());
            }
            "response.function_call_arguments.done" => {
                if let Some(whole) = event["arguments"].as_str() {
                    self.item_for_event(event)?.arguments = whole.to_owned();
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.read_final_response(&event["response"]);
            }
            ERROR_EVENT => return Err(reported_error(&self.url, event)),
            "" if !event["error"].is_null() => return Err(reported_error(&self.url, event)),
            // Keep-alives, repeated content and unknown events.
            _ => {}
        }
        Ok(Vec::new())
    }

    /// Returns the index of an event's item.
    fn item_index(&mut self, event: &Value) -> Result<u64> {
        let at = event["output_index"].as_u64().unwrap_or_else(|| self.index_by_id(event));
        self.newest = at;
        if self.items.len() >= PARTS_MAX && !self.items.contains_key(&at) {
            return Err(failure::answer_limit_error(&format!("{PARTS_MAX} items")));
        }
        Ok(at)
    }

    /// Finds the index if the server sends none: by the item's id, or else the open item.
    fn index_by_id(&self, event: &Value) -> u64 {
        let id = event["item_id"].as_str().or(event["item"]["id"].as_str());
        let mut known = self.items.iter().rev();
        let same = known.find(|(_, item)| id.is_some() && item.begun["id"].as_str() == id);
        if let Some((at, _)) = same {
            return *at;
        }
        let next = self.items.last_key_value().map_or(0, |(at, _)| at + 1);
        let is_begin = event["type"] == "response.output_item.added";
        match self.items.get(&self.newest) {
            Some(open) if open.done.is_none() && !is_begin => self.newest,
            Some(_) | None => next,
        }
    }

    fn item_for_event(&mut self, event: &Value) -> Result<&mut ResponsesOutputItem> {
        let at = self.item_index(event)?;
        Ok(self.items.entry(at).or_default())
    }

    fn add_delta(
        &mut self,
        event: &Value,
        kind: &'static str,
        at: u64,
        delta: &str,
    ) -> Result<Vec<Delta>> {
        let item = self.item_for_event(event)?;
        if item.said.len() >= PARTS_MAX && !item.said.contains_key(&at) {
            return Err(failure::answer_limit_error(&format!("{PARTS_MAX} pieces of text")));
        }
        item.said.entry(at).or_insert_with(|| (kind, String::new())).1.push_str(delta);
        Ok(text_deltas(delta.to_owned()))
    }

    /// Stores a finished item. Returns the content that was not shown yet.
    fn finish_item(&mut self, at: u64, value: &Value) -> Result<Vec<Delta>> {
        let is_text = matches!(value["type"].as_str(), Some("message"));
        if !is_text {
            self.count_bytes(value.to_string().len())?;
        }
        let item = self.items.entry(at).or_default();
        let rest = |whole: String, shown: String| {
            whole.strip_prefix(&shown).map(str::to_owned).unwrap_or_default()
        };
        let deltas = match value["type"].as_str() {
            Some("message") => text_deltas(rest(items::item_text(value), item.shown_text())),
            Some("reasoning") => {
                thought_deltas(rest(items::reasoning_text(value), item.shown_thought()))
            }
            Some("function_call") => vec![Delta::text("")],
            _ => Vec::new(),
        };
        item.done = Some(value.clone());
        Ok(deltas)
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<()> {
        self.other_bytes += bytes;
        // The item arrives three times: at its start, in pieces, and when it is done.
        if self.other_bytes > 3 * ARGUMENTS_BYTES_MAX {
            return Err(failure::answer_limit_error(&format!(
                "{ARGUMENTS_BYTES_MAX} bytes of items"
            )));
        }
        Ok(())
    }

    /// Reads the final response: its end, its usage, and items that no other event contained.
    fn read_final_response(&mut self, response: &Value) -> Result<Vec<Delta>> {
        if !response["error"].is_null() {
            return Err(reported_error(&self.url, response));
        }
        self.usage = usage::read_usage(response).or(self.usage);
        let mut deltas = Vec::new();
        let output = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
        if output.len() > PARTS_MAX {
            return Err(failure::answer_limit_error(&format!("{PARTS_MAX} items")));
        }
        for (at, item) in (0..).zip(output) {
            if self.items.get(&at).is_none_or(|known| known.done.is_none()) {
                deltas.extend(self.finish_item(at, item)?);
            }
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        let word = reason.or(response["status"].as_str()).unwrap_or("completed");
        self.end = Some(word.to_owned());
        self.is_done = true;
        Ok(deltas)
    }
}

fn text_deltas(text: String) -> Vec<Delta> {
    if text.is_empty() { Vec::new() } else { vec![Delta::text(text)] }
}

fn thought_deltas(text: String) -> Vec<Delta> {
    if text.is_empty() { Vec::new() } else { vec![Delta::thought(text)] }
}

impl AnswerReader for ResponsesReply {
    const CHECK_URL: &'static str = CHECK_URL;
    const PROTOCOL: Option<ModelProtocol> = Some(ModelProtocol::Responses);

    fn hint_for(other: ModelProtocol) -> &'static str {
        match other {
            ModelProtocol::ChatCompletions => "set `api = \"chat\"` in the provider's section",
            _ => CHECK_URL,
        }
    }

    fn handle_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        let data = event.data.trim();
        if data.is_empty() || data == DONE || self.is_done {
            return Ok(Vec::new());
        }
        match serde_json::from_str::<Value>(data) {
            Ok(read) if event.name == ERROR_EVENT => Err(reported_error(&self.url, &read)),
            Ok(read) => self.read_event(&read),
            Err(_) if event.name == ERROR_EVENT => Err(failure::event_error(&self.url, data)),
            Err(error) => Err(failure::invalid_event_error(&self.url, data, &error)),
        }
    }

    fn handle_last_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        let data = event.data.trim();
        let is_whole = data == DONE || serde_json::from_str::<Value>(data).is_ok();
        if is_whole || event.name == ERROR_EVENT {
            return self.handle_event(event);
        }
        self.has_begun = true;
        Ok(Vec::new())
    }

    fn handle_whole_body(&mut self, url: &str, body: &[u8]) -> Result<Vec<Delta>> {
        let response: Value = serde_json::from_slice(body)
            .map_err(|error| failure::invalid_json_error(url, &error))?;
        if !response["error"].is_null() {
            return Err(reported_error(url, &response));
        }
        if !response["output"].is_array() {
            return Err(wrong_form_error::<Self>(url, Some("application/json")));
        }
        self.has_begun = true;
        self.read_final_response(&response)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn finish(self) -> Result<(Vec<Delta>, Completion)> {
        let word = match self.end.as_deref() {
            Some("in_progress" | "queued") | None => {
                return Err(failure::truncated_answer_error(&self.url, self.has_begun));
            }
            Some(word) => word.to_owned(),
        };
        let items: Vec<(Value, ItemCompleteness)> =
            self.items.values().map(ResponsesOutputItem::current_value).collect();
        let is_refused = items.iter().any(|(item, _)| items::has_refusal(item));
        let reason = match reason_of_word(&word) {
            FinishReason::Stop if is_refused => FinishReason::Refused,
            // The status only says that the answer is incomplete.
            FinishReason::Unknown if word == "incomplete" => FinishReason::MaxTokens,
            reason => reason,
        };
        let has_calls = match reason {
            // A blocked answer may contain incomplete calls.
            FinishReason::Safety | FinishReason::Refused | FinishReason::Error => false,
            FinishReason::Stop
            | FinishReason::ToolUse
            | FinishReason::MaxTokens
            | FinishReason::ContextExceeded
            | FinishReason::Cancelled
            | FinishReason::Paused
            | FinishReason::Unknown => true,
        };
        let mut answer = StreamingAnswer::new();
        let mut deltas = Vec::new();
        let mut calls = 0;
        for part in items.iter().flat_map(|(item, came)| items::item_parts(item, *came)) {
            match part {
                Part::ToolCall(_) if !has_calls => {}
                Part::ToolCall(call) => {
                    calls += 1;
                    if calls > CALLS_MAX {
                        return Err(failure::answer_limit_error(&format!(
                            "{CALLS_MAX} tool calls"
                        )));
                    }
                    deltas.push(answer.add_call(call));
                }
                Part::Text { text, signature, .. } => {
                    answer.begin_text();
                    answer.add_text(&text);
                    if let Some(signature) = signature {
                        answer.sign_last_part(&signature);
                    }
                }
                Part::Thought { text, .. } => {
                    answer.begin_thought();
                    answer.add_thought(&text, None);
                }
                Part::Opaque(opaque) => answer.add_opaque(opaque.item),
                _ => {}
            }
        }
        answer.set_usage(self.usage.unwrap_or_default());
        let completion = match reason {
            FinishReason::Unknown => answer.finish_with_word(&failure::text_beginning(&word)),
            reason => answer.finish(reason),
        };
        Ok((deltas, completion))
    }
}
