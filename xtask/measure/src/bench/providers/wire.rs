//! What each vendor's server answers, in its own words: a text in many pieces, a call, a beginning
//! that nothing follows.

use serde_json::{Value, json};

/// What a model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saying {
    /// A text, in so many pieces.
    Text { pieces: usize },
    /// One call of [`TOOL`].
    Call,
    /// The first piece of a text; the stream goes on for ever.
    Beginning,
}

/// A protocol in which a model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    ChatCompletions,
    Responses,
    Messages,
    GenerateContent,
    OllamaChat,
}

/// One piece of a text: a token, as most models cut them.
pub const PIECE: &str = "word ";

/// The tool that is called: one that does next to nothing.
pub const TOOL: &str = "get_environment";

/// Its arguments.
const ARGUMENTS: &str = r#"{"aspect":"cwd"}"#;

impl Protocol {
    /// The type of a stream.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OllamaChat => "application/x-ndjson",
            Self::ChatCompletions | Self::Responses | Self::Messages | Self::GenerateContent => {
                "text/event-stream"
            }
        }
    }

    /// The end of the path by which an answer is asked for.
    pub fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/chat/completions",
            Self::Responses => "/responses",
            Self::Messages => "/v1/messages",
            Self::GenerateContent => ":streamGenerateContent",
            Self::OllamaChat => "/api/chat",
        }
    }

    /// Writes an answer: each entry is what a server sends at once.
    pub fn written(self, saying: Saying) -> Vec<String> {
        let mut events = match self {
            Self::ChatCompletions => chat_completions(saying),
            Self::Responses => responses(saying),
            Self::Messages => messages(saying),
            Self::GenerateContent => generate_content(saying),
            Self::OllamaChat => ollama_chat(saying),
        };
        if saying == Saying::Beginning {
            let first = events.iter().position(|event| event.contains(PIECE));
            events.truncate(first.map_or(0, |at| at + 1));
        }
        events
    }
}

impl Saying {
    fn pieces(self) -> usize {
        match self {
            Self::Text { pieces } => pieces,
            Self::Call => 0,
            Self::Beginning => 1,
        }
    }
}

fn named_events(events: Vec<Value>) -> Vec<String> {
    let written = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.iter().map(written).collect()
}

fn chat_completions(saying: Saying) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({ "id": "chatcmpl-CHxWkVqVn3iYpFq0jUv2cM6o5bYtn",
            "object": "chat.completion.chunk", "created": 1_767_225_600, "model": "gpt-5.2-2026-08-07",
            "service_tier": "default", "system_fingerprint": "fp_3f58d112f7", "choices": choices,
            "usage": usage });
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, reason: Value| {
        let choice =
            json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason });
        chunk(json!([choice]), Value::Null)
    };
    let begun = json!({ "role": "assistant", "content": "", "refusal": null });
    let mut events = vec![delta(begun, Value::Null)];
    let reason = if saying == Saying::Call {
        let function = json!({ "name": TOOL, "arguments": ARGUMENTS });
        let call = json!({ "index": 0, "id": "call_0", "type": "function", "function": function });
        events.push(delta(json!({ "tool_calls": [call] }), Value::Null));
        "tool_calls"
    } else {
        let piece = delta(json!({ "content": PIECE }), Value::Null);
        events.extend(std::iter::repeat_n(piece, saying.pieces()));
        "stop"
    };
    events.push(delta(json!({}), json!(reason)));
    let usage = json!({ "prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25 });
    events.push(chunk(json!([]), usage));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn responses(saying: Saying) -> Vec<String> {
    let response = |status: &str, output: Value, usage: Value| {
        json!({ "id": "resp_1", "object": "response", "created_at": 1_767_225_600, "status": status,
            "error": null, "incomplete_details": null, "model": "gpt-5.2", "output": output,
            "store": false, "usage": usage })
    };
    let begun = response("in_progress", json!([]), Value::Null);
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    let item = if saying == Saying::Call {
        json!({ "type": "function_call", "id": "fc_1", "call_id": "call_0", "name": TOOL,
            "arguments": ARGUMENTS, "status": "completed" })
    } else {
        let text = PIECE.repeat(saying.pieces());
        let content =
            json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
        json!({ "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [content] })
    };
    let at = |kind: &str, more: Value| {
        let mut event =
            json!({ "type": format!("response.{kind}"), "item_id": item["id"], "output_index": 0 });
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        event
    };
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    if saying == Saying::Call {
        begun["arguments"] = json!("");
        events.push(at("output_item.added", json!({ "item": begun })));
        events.push(at("function_call_arguments.delta", json!({ "delta": ARGUMENTS })));
        events.push(at("function_call_arguments.done", json!({ "arguments": ARGUMENTS })));
    } else {
        begun["content"] = json!([]);
        let empty = json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] });
        events.push(at("output_item.added", json!({ "item": begun })));
        events.push(at("content_part.added", json!({ "content_index": 0, "part": empty })));
        let piece = json!({ "content_index": 0, "delta": PIECE, "logprobs": [],
            "obfuscation": "7Kqv2h1xYwE" });
        let piece = at("output_text.delta", piece);
        events.extend(std::iter::repeat_n(piece, saying.pieces()));
        let part = &item["content"][0];
        let done = json!({ "content_index": 0, "text": part["text"], "logprobs": [] });
        events.push(at("output_text.done", done));
        events.push(at("content_part.done", json!({ "content_index": 0, "part": part })));
    }
    events.push(at("output_item.done", json!({ "item": item })));
    let usage = json!({ "input_tokens": 20, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 25 });
    let whole = response("completed", json!([item]), usage);
    events.push(json!({ "type": "response.completed", "response": whole }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    named_events(events)
}

fn messages(saying: Saying) -> Vec<String> {
    let usage = json!({ "input_tokens": 20, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-opus-5-5", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": usage });
    let (block, reason) = match saying {
        Saying::Call => {
            (json!({ "type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {} }), "tool_use")
        }
        Saying::Text { .. } | Saying::Beginning => {
            (json!({ "type": "text", "text": "" }), "end_turn")
        }
    };
    let delta = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    let mut events = vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "ping" }),
    ];
    if saying == Saying::Call {
        events.push(delta(json!({ "type": "input_json_delta", "partial_json": ARGUMENTS })));
    }
    let piece = delta(json!({ "type": "text_delta", "text": PIECE }));
    events.extend(std::iter::repeat_n(piece, saying.pieces()));
    events.extend([
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ]);
    named_events(events)
}

fn generate_content(saying: Saying) -> Vec<String> {
    let chunk = |parts: Value, reason: Value| {
        let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
        if !reason.is_null() {
            candidate["finishReason"] = reason;
        }
        let counted = json!([{ "modality": "TEXT", "tokenCount": 20 }]);
        let usage = json!({ "promptTokenCount": 20, "candidatesTokenCount": 5,
            "totalTokenCount": 25, "promptTokensDetails": counted });
        let chunk = json!({ "candidates": [candidate], "usageMetadata": usage,
            "modelVersion": "gemini-3.8-flash", "responseId": "mA7oaKvJHsOGjMcPqcbk2AU" });
        format!("data: {chunk}\r\n\r\n")
    };
    let mut events = Vec::new();
    if saying == Saying::Call {
        let arguments: Value = serde_json::from_str(ARGUMENTS).unwrap_or_default();
        let call = json!({ "name": TOOL, "args": arguments });
        let part = json!({ "functionCall": call, "thoughtSignature": "c2lnbmVk" });
        events.push(chunk(json!([part]), Value::Null));
    }
    let piece = chunk(json!([{ "text": PIECE }]), Value::Null);
    events.extend(std::iter::repeat_n(piece, saying.pieces()));
    events.push(chunk(json!([{ "text": "" }]), json!("STOP")));
    events
}

fn ollama_chat(saying: Saying) -> Vec<String> {
    let line = |message: Value, more: Value| {
        let mut line = json!({ "model": "qwen3:8b", "created_at": "2026-11-23T13:00:00.123456789Z",
            "message": message, "done": !more.is_null() });
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        format!("{line}\n")
    };
    let says = |text: &str| json!({ "role": "assistant", "content": text });
    let mut events = Vec::new();
    if saying == Saying::Call {
        let arguments: Value = serde_json::from_str(ARGUMENTS).unwrap_or_default();
        let mut message = says("");
        let function = json!({ "index": 0, "name": TOOL, "arguments": arguments });
        message["tool_calls"] = json!([{ "id": "call_0", "function": function }]);
        events.push(line(message, Value::Null));
    }
    events.extend(std::iter::repeat_n(line(says(PIECE), Value::Null), saying.pieces()));
    let counted = json!({ "done_reason": "stop", "total_duration": 4_883_583_458_u64,
        "load_duration": 1_334_875, "prompt_eval_count": 20, "prompt_eval_duration": 342_546_000,
        "eval_count": 5, "eval_duration": 4_535_599_000_u64 });
    events.push(line(says(""), counted));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Protocol; 5] = [
        Protocol::ChatCompletions,
        Protocol::Responses,
        Protocol::Messages,
        Protocol::GenerateContent,
        Protocol::OllamaChat,
    ];

    #[test]
    fn a_text_has_its_pieces_and_an_end() {
        for protocol in ALL {
            let written = protocol.written(Saying::Text { pieces: 7 });
            let pieces = written.iter().filter(|event| event.matches(PIECE).count() == 1);
            assert_eq!(pieces.count(), 7, "{protocol:?}: {written:?}");
            assert!(!written.last().unwrap().contains(PIECE) || protocol == Protocol::Responses);
        }
    }

    #[test]
    fn a_beginning_is_a_text_up_to_its_first_piece() {
        for protocol in ALL {
            let written = protocol.written(Saying::Beginning);
            assert!(written.last().unwrap().contains(PIECE), "{protocol:?}: {written:?}");
            assert_eq!(written.concat().matches(PIECE).count(), 1, "{protocol:?}: {written:?}");
        }
    }

    #[test]
    fn a_call_names_the_tool_and_says_nothing() {
        for protocol in ALL {
            let written = protocol.written(Saying::Call).concat();
            assert!(written.contains(TOOL) && written.contains("cwd"), "{protocol:?}: {written}");
            assert!(!written.contains(PIECE), "{protocol:?}: {written}");
        }
    }
}
