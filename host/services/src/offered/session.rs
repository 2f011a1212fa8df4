//! The service `session`: what a plugin may know of the session and the process.

use jaato_session::SharedFacts;
use jaato_types::service::{SESSION, SessionFacts};

use super::{Answer, Service, frame, ready};
use crate::blobs::blocking;
use crate::call::Call;

/// Session facts.
pub struct Session;

impl Service for Session {
    fn has(&self, operation: &str) -> bool {
        operation == SESSION
    }

    fn call(&self, call: &Call, _operation: &str, _request: Vec<u8>) -> Answer {
        // A plugin that asks as its session begins would else be told of a trust that is over.
        let Some(trust) = call.shared.workspace_trust.clone() else {
            return ready(frame(&facts(call)));
        };
        let facts = facts(call);
        Box::pin(async move {
            let Some(trusted) = blocking(move || Ok(trust.now())).await? else {
                return frame(&facts);
            };
            let trusted_workspace = Some(trusted.root().display().to_string());
            let agreed_variables = trusted.agreed_variables().to_vec();
            frame(&SessionFacts { trusted_workspace, agreed_variables, ..facts })
        })
    }
}

fn facts(call: &Call) -> SessionFacts {
    let shared = &call.shared;
    let name = shared.sessions.agent_of(&call.site.session);
    let has_session = call.site.facts.is_some();
    let agent = |text: &str| if has_session { text.to_owned() } else { String::new() };
    SessionFacts {
        session_id: agent(call.site.session.as_str()),
        agent_id: agent(name.as_deref().unwrap_or("main")),
        agent_type: agent(if name.is_some() { "subagent" } else { "main" }),
        agent_name: name.unwrap_or_default(),
        env_session_id: shared.env_session_id.clone(),
        context: call.site.facts.as_ref().map(SharedFacts::read),
        working_directory: shared.working_directory.display().to_string(),
        trusted_workspace: None,
        agreed_variables: Vec::new(),
        terminal: shared.terminal.clone(),
        parent_process: shared.parent_process.clone(),
        output_bytes_max: Some(shared.output_bytes_max),
    }
}
