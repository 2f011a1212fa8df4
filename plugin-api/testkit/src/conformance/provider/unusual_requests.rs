//! Checks with unusual requests: histories with every kind of part, and options.

use jaato_types::{
    Completion, CompletionRequest, DataPart, Delta, Effort, ErrorKind, Message, OpaqueData, Part,
    ProviderSpec, Role, TOOLS_CHANGED, ToolCall, ToolChoice, ToolName, ToolResult, ToolSpec,
    ToolsChanged,
};
use serde_json::{Map, json};

use super::{check_completion, check_finished, provider_spec, simple_request};
use crate::conformance::{ConformanceSuite, ConformanceVerdict, check_error_text, ensure};
use crate::{FakeHost, FinishedCall};

/// The tool in the histories.
const TOOL: &str = "look";

/// A history with signatures, opaque parts of this and of another provider, attachments, data and
/// unknown parts is answered, or clearly refused.
pub fn a_history_of_every_kind_is_answered_or_refused(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let spec = provider_spec(host)?;
    let request = request_with_history(spec);
    check_finished(&request, &host.complete(&request))?;
    // Also without each single part, because one refused part must not hide another.
    for (at, message) in request.messages.iter().enumerate() {
        for part in 0..message.parts.len() {
            let mut less = request.clone();
            let removed = less.messages[at].parts.remove(part);
            let pairs = matches!(removed, Part::ToolCall(_) | Part::ToolResult(_));
            if !pairs && !less.messages[at].parts.is_empty() {
                check_finished(&less, &host.complete(&less))?;
            }
        }
    }
    Ok(())
}

/// A history that is larger than a frame reaches the provider, which may refuse it as too long for
/// its model. A provider that does not know the operation `large` is only old.
pub fn a_history_larger_than_a_frame_is_answered_or_refused(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let mut request = simple_request(provider_spec(host)?);
    let filler = "words that fill a window ".repeat(40_000);
    let turn = |_| [Message::user(filler.clone()), Message::model(vec![Part::text("Continue.")])];
    let before = std::mem::take(&mut request.messages);
    request.messages = (0..10).flat_map(turn).chain(before).collect();
    let finished = host.complete(&request);
    let kind =
        |finished: &FinishedCall<Completion>| finished.result.as_ref().err().map(|it| it.kind);
    // A provider that is older than the operation `large` works, and hosts send it less.
    if kind(&finished) == Some(ErrorKind::UnknownOperation) {
        return Ok(());
    }
    check_finished(&request, &finished)
}

/// Each listed option exists, and is accepted with an ordinary value whenever a simple request is.
pub fn listed_options_are_accepted(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let spec = provider_spec(host)?;
    let plain = add_tool(simple_request(spec));
    let is_answered = host.complete(&plain).result.is_ok();
    for name in &spec.options {
        let Some(request) = request_with_option(spec, name) else {
            return Err(format!("it lists the unknown option `{name}`"));
        };
        let finished = host.complete(&request);
        match &finished.result {
            Ok(completion) => {
                let deltas = shown_deltas(&request, &finished, completion);
                check_completion(&request, &deltas, completion)
                    .map_err(|what| format!("with the option `{name}`: {what}"))?;
            }
            Err(error) => {
                check_error_text(&format!("a request with the option `{name}`"), error)?;
                ensure(!is_answered, || {
                    format!("the option `{name}` is listed but refused: {error}")
                })?;
            }
        }
    }
    Ok(())
}

/// Returns the deltas of a completion. Without streaming, a provider may omit them or send them at
/// the end.
fn shown_deltas(
    request: &CompletionRequest,
    finished: &FinishedCall<Completion>,
    completion: &Completion,
) -> Vec<Delta> {
    let is_shown = |delta: &Delta| {
        matches!(delta, Delta::Text { .. } | Delta::Thought { .. } | Delta::ToolCall(_))
    };
    if request.options.stream != Some(false) || finished.deltas.iter().any(is_shown) {
        return finished.deltas.clone();
    }
    let shown = completion.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(Delta::text(text)),
        Part::Thought { text, .. } => Some(Delta::thought(text)),
        Part::ToolCall(call) => Some(Delta::ToolCall(call.clone())),
        _ => None,
    });
    shown.collect()
}

fn request_with_option(spec: &ProviderSpec, name: &str) -> Option<CompletionRequest> {
    let mut request = add_tool(simple_request(spec));
    let options = &mut request.options;
    match name {
        "max_output_tokens" => options.max_output_tokens = Some(16),
        "temperature" => options.temperature = Some(0.5),
        "stream" => options.stream = Some(false),
        "effort" => options.effort = Some(Effort::Medium),
        "tool_choice" => options.tool_choice = Some(ToolChoice::Auto),
        "output_schema" => {
            let properties = json!({ "word": { "type": "string" } });
            options.output_schema = Some(json!({ "type": "object", "properties": properties,
                "required": ["word"], "additionalProperties": false }));
        }
        "stop" => options.stop = vec!["END".to_owned()],
        "seed" => options.seed = Some(7),
        "session_key" => options.session_key = Some("conformance".to_owned()),
        "service_tier" => options.service_tier = Some("auto".to_owned()),
        // Servers differ in which fields they accept, so this is empty.
        "extra_body" => options.extra_body = Map::new(),
        "extra_headers" => {
            options.extra_headers.insert("x-conformance".to_owned(), "1".to_owned());
        }
        TOOLS_CHANGED => {
            let (added, removed) = (vec![sample_tool_spec()], vec![ToolName::from("listen")]);
            let changed = ToolsChanged { added, removed, ..ToolsChanged::default() };
            request.tools = vec![ToolSpec { name: "listen".into(), ..sample_tool_spec() }];
            request.messages[0].parts.insert(0, Part::ToolsChanged(changed));
        }
        _ => return None,
    }
    Some(request)
}

fn sample_tool_spec() -> ToolSpec {
    ToolSpec {
        name: TOOL.into(),
        description: "Looks at something.".to_owned(),
        parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        ..ToolSpec::default()
    }
}

fn add_tool(mut request: CompletionRequest) -> CompletionRequest {
    request.tools = vec![sample_tool_spec()];
    request
}

/// Returns a request whose history contains everything that a history may contain.
fn request_with_history(spec: &ProviderSpec) -> CompletionRequest {
    let mut request = add_tool(simple_request(spec));
    let opaque = |provider: &str| {
        let (provider, model) = (provider.to_owned(), request.model.clone());
        let item = json!({ "id": "rs_1", "encrypted_content": "…", "list": [1, null] });
        Part::Opaque(OpaqueData { provider, model, item, ..OpaqueData::default() })
    };
    let from_the_future = json!({ "type": "smell", "of": "roses" });
    let unknown = Part::Unknown(from_the_future.as_object().cloned().unwrap_or_default());
    let image = DataPart::blob("image/png", "b-that-is-gone");
    let signed =
        |id: &str| Part::ToolCall(ToolCall::new(id, TOOL, json!({}))).with_signature("signature");
    let result = |id: &str, attachments| ToolResult {
        attachments,
        ..ToolResult::new(id, TOOL, Map::from_iter([("seen".to_owned(), json!(true))]))
    };
    let user = |parts| Message { role: Role::User, parts, ..Message::default() };
    request.messages = vec![
        user(vec![Part::text("Look."), Part::Data(image.clone()), unknown.clone()]),
        Message::model(vec![
            opaque(&spec.name),
            Part::thought("hm").with_signature("signature"),
            Part::thought("").with_signature("signature"),
            opaque("another-maker"),
            Part::text("I look."),
            Part::text("").with_signature("signature"),
            unknown,
            signed("call-1"),
            signed("call-2"),
        ]),
        Message::tool([
            result("call-1", vec![image, DataPart::json(json!({ "n": 1 }))]),
            result("call-2", Vec::new()),
        ]),
        Message::model(vec![
            Part::text("I looked.").with_signature("signature"),
            opaque(&spec.name),
        ]),
        user(vec![Part::json(json!({ "task": "done" })), Part::text("Say hello.")]),
    ];
    request
}
