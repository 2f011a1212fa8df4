//! Calls the tool as a host does: through frames, with the session's facts as a service.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::service::{ContextFacts, SessionFacts, TerminalFacts};
use jaato_plugin_sdk::types::{Error, ErrorKind};
use jaato_plugin_testkit::FakeHost;

/// Returns the facts of a user at a terminal in a folder, without a model.
fn session_at_terminal() -> SessionFacts {
    SessionFacts {
        working_directory: "/home/user/project".to_owned(),
        parent_process: Some("fish".to_owned()),
        terminal: TerminalFacts {
            input_is_terminal: true,
            output_is_terminal: true,
            term: Some("xterm-256color".to_owned()),
            ..TerminalFacts::default()
        },
        ..SessionFacts::default()
    }
}

fn session_with_model() -> SessionFacts {
    let context = ContextFacts {
        model: "local/moon".to_owned(),
        context_limit: 1000,
        prompt_tokens: 200,
        output_tokens: 50,
        turns: 2,
        gc: None,
    };
    SessionFacts {
        session_id: "s1".to_owned(),
        agent_id: "main".to_owned(),
        context: Some(context),
        ..session_at_terminal()
    }
}

fn host_with_session() -> FakeHost {
    FakeHost::new(tool_environment::__jaato::MODULE)
}

fn call_tool(host: &FakeHost, arguments: Value) -> Result<Value, Error> {
    host.call("get_environment", arguments).map(|output| Value::Object(output.content))
}

fn object_keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn call_without_an_aspect_reports_everything() {
    let whole =
        call_tool(&host_with_session().with_session(session_with_model()), json!({})).unwrap();
    assert_eq!(
        object_keys(&whole),
        ["arch", "context", "cwd", "datetime", "network", "os", "session", "shell", "terminal"]
    );
    assert_eq!(whole["context"]["percent_used"], 25.0);
    assert_eq!(whole["session"], json!({ "session_id": "s1", "agent_id": "main" }));
    assert_eq!(whole["os"]["type"], std::env::consts::OS.replace("macos", "darwin"));
}

#[test]
fn terminal_shell_and_directory_are_read_from_the_session() {
    let host = host_with_session().with_session(session_at_terminal());
    let told = |aspect: &str| call_tool(&host, json!({ "aspect": aspect })).unwrap();
    assert_eq!(told("cwd"), json!({ "cwd": "/home/user/project" }));
    assert_eq!(told("shell")["current"], "fish");
    assert_eq!(told("terminal")["color_depth"], "256");
}

#[test]
fn context_and_session_queries_fail_without_a_model_and_are_null_in_all() {
    let host = host_with_session().with_session(session_at_terminal());
    for (aspect, what) in [("context", "Context"), ("session", "Session")] {
        let error = call_tool(&host, json!({ "aspect": aspect })).unwrap_err();
        let text = format!("Session not available. {what} info requires session injection.");
        assert_eq!((error.kind, error.message), (ErrorKind::Unavailable, text));
        assert!(error.hint.is_some_and(|hint| hint.contains("jaato run")));
    }
    let whole = call_tool(&host, json!({ "aspect": "all" })).unwrap();
    assert_eq!((&whole["context"], &whole["session"]), (&Value::Null, &Value::Null));
}

#[test]
fn machine_aspects_need_no_session() {
    let host = host_with_session();
    for aspect in ["os", "arch", "datetime", "network"] {
        assert!(!object_keys(&call_tool(&host, json!({ "aspect": aspect })).unwrap()).is_empty());
    }
    let asked: Vec<_> =
        host.service_requests().into_iter().map(|request| request.operation).collect();
    assert_eq!(asked, ["environment.describe"; 2]);
    let error = call_tool(&host, json!({ "aspect": "cwd" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[test]
fn an_unknown_aspect_never_reaches_the_plugin() {
    let host = host_with_session().with_session(session_with_model());
    for aspect in [json!("moon"), json!("o s"), json!("")] {
        let error = call_tool(&host, json!({ "aspect": aspect })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{aspect}");
    }
    assert_eq!(host.service_requests(), []);
}

jaato_plugin_testkit::conformance!(tool_environment: tool);
