//! The services `tools.call` and `tools.list`: a plugin calls another tool of its session, by the
//! session's gate, and sees which there are.

use jaato_loader::Served;
use jaato_types::tool_calls::{TOOLS_CALL, ToolsCall, ToolsCallAnswer};
use jaato_types::tools_list::{TOOLS_LIST, ToolsListAnswer};
use jaato_types::{Error, ErrorKind, Frame, Output};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;
use crate::detached::Detached;

/// Calls of tools.
pub struct ToolCalls;

impl Service for ToolCalls {
    fn has(&self, operation: &str) -> bool {
        [TOOLS_CALL, TOOLS_LIST].contains(&operation)
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        if operation == TOOLS_LIST {
            let session = call.shared.sessions.find(&call.site.session);
            let tools = session.and_then(|session| session.list_tools());
            return ready(tools.and_then(|tools| frame(&ToolsListAnswer::new(tools))));
        }
        match begin(call, &request) {
            Ok(running) => Box::pin(async move { served(running.await?) }),
            Err(error) => ready(Err(error)),
        }
    }
}

fn begin(call: &Call, request: &[u8]) -> Result<Detached<Output>, Error> {
    let asked: ToolsCall = Frame::read(request).map_err(bad_request)?;
    let session = call.shared.sessions.find(&call.site.session)?;
    call.count_made_call()?;
    let origin = call.origin();
    let work = |cancel| async move {
        session.call_tool(&asked.name, asked.arguments, &origin, &cancel).await
    };
    Ok(Detached::start(work))
}

fn served(output: Output) -> Result<Served, Error> {
    let Output { content, bytes, attachments } = output;
    let answer = ToolsCallAnswer::new(content, attachments);
    let frame = Frame::write_with_bytes(&answer, &bytes).map_err(|error| {
        let text = format!("the tool's result does not fit into a frame: {error}");
        Error::new(ErrorKind::LimitReached, text)
    })?;
    Ok(Served::Frame(frame))
}
