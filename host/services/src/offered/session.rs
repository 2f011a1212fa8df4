//! The services `session` and `config`: facts about the session and the process, and the plugin's
//! settings.

use jaato_session::SharedFacts;
use jaato_types::Error;
use jaato_types::service::SessionFacts;
use serde_json::Value;

use super::ServiceFuture;
use crate::blobs::run_blocking;
use crate::call::ServiceCall;

jaato_types::session_operations!(bodies);

fn session(call: &ServiceCall) -> Result<ServiceFuture<SessionFacts>, Error> {
    let (facts, trust) = (session_facts(call), call.shared.workspace_trust.clone());
    Ok(Box::pin(async move {
        // Read the trust again, because it may have been revoked since the session began.
        let Some(trust) = trust else { return Ok(facts) };
        let Some(trusted) = run_blocking(move || Ok(trust.current_trusted_workspace())).await?
        else {
            return Ok(facts);
        };
        let trusted_workspace = Some(trusted.root().display().to_string());
        let agreed_variables = trusted.agreed_variables().to_vec();
        Ok(SessionFacts { trusted_workspace, agreed_variables, ..facts })
    }))
}

/// Returns the plugin's settings, without the host's own keys.
fn config(call: &ServiceCall) -> Result<Value, Error> {
    Ok(Value::clone(&call.config))
}

fn session_facts(call: &ServiceCall) -> SessionFacts {
    let shared = &call.shared;
    let name = shared.sessions.agent_name(&call.site.session);
    let has_session = call.site.facts.is_some();
    let agent = |text: &str| if has_session { text.to_owned() } else { String::new() };
    SessionFacts {
        session_id: agent(call.site.session.as_str()),
        agent_id: agent(name.as_deref().unwrap_or("main")),
        agent_type: agent(if name.is_some() { "subagent" } else { "main" }),
        agent_name: name.unwrap_or_default(),
        env_session_id: shared.env_session_id.clone(),
        context: call.site.facts.as_ref().map(SharedFacts::snapshot),
        working_directory: shared.working_directory.display().to_string(),
        trusted_workspace: None,
        agreed_variables: Vec::new(),
        terminal: shared.terminal.clone(),
        parent_process: shared.parent_process.clone(),
        output_bytes_max: Some(shared.output_bytes_max),
        hook_deadline_ms: Some(shared.hook_deadline_ms),
        permission_mode: permission_mode(call),
    }
}

/// Returns the session's approval mode now, because the user may change it at any time.
fn permission_mode(call: &ServiceCall) -> Option<String> {
    let session = call.shared.sessions.find(&call.site.session).ok()?;
    let rules = session.rules().ok()?;
    let rules = rules.lock();
    Some(if rules.allow_all { "allow-all" } else { rules.mode.name() }.to_owned())
}
