//! The service `tools.call`, with which a plugin calls another tool after the permission check.

use jaato_loader::EngineServiceAnswer;
use jaato_types::tool_calls::{TOOLS_CALL, ToolsCall, ToolsCallAnswer};
use jaato_types::{Error, ErrorKind, Frame, Output};

use super::{Body, ServiceAnswer, parse_request, ready_answer};
use crate::call::ServiceCall;
use crate::detached::DetachedWork;

// Handwritten, because a result that is too large has its own error.
pub(super) fn find_body(operation: &str) -> Option<Body> {
    (operation == TOOLS_CALL).then_some(answer_tool_call)
}

fn answer_tool_call(call: &ServiceCall, _operation: &str, request: Vec<u8>) -> ServiceAnswer {
    match begin_tool_call(call, &request) {
        Ok(running) => Box::pin(async move { serve_output(running.await?) }),
        Err(error) => ready_answer(Err(error)),
    }
}

fn begin_tool_call(call: &ServiceCall, request: &[u8]) -> Result<DetachedWork<Output>, Error> {
    let asked: ToolsCall = parse_request(request)?;
    let session = call.shared.sessions.find(&call.site.session)?;
    call.count_made_call()?;
    let origin = call.origin();
    let work = |cancel| async move {
        session.call_tool(&asked.name, asked.arguments, &origin, &cancel).await
    };
    Ok(DetachedWork::start(work))
}

fn serve_output(output: Output) -> Result<EngineServiceAnswer, Error> {
    let Output { content, bytes, attachments } = output;
    let answer = ToolsCallAnswer::new(content, attachments);
    let frame = Frame::write_with_bytes(&answer, &bytes).map_err(|error| {
        let text = format!("the tool's result does not fit into a frame: {error}");
        Error::new(ErrorKind::LimitReached, text)
    })?;
    Ok(EngineServiceAnswer::Frame(frame))
}
