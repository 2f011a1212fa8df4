//! Whole turns whose permission prompts go over loopback and through a folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jaato_config::permissions::AskingChannel;
use jaato_config::{PermissionChannel, PromptEndpoint};
use jaato_http::{Client, HttpClientSettings, Proxies};
use jaato_session::testing::{ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, PermissionAsker, Session, SessionPorts};
use jaato_types::Event;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{ConfiguredChannel, FolderAsker, SplitAsker, WebhookAsker, channel_from_original};

#[test]
fn channel_of_the_json_permissions_file_is_understood() {
    let of = |kind: &str, endpoint: Option<&str>, timeout_s| {
        let (kind, endpoint) = (kind.to_owned(), endpoint.map(str::to_owned));
        channel_from_original(AskingChannel { kind, endpoint, timeout_s }, Path::new("/project"))
    };
    let chosen =
        |channel, endpoint, patience_ms| ConfiguredChannel { channel, endpoint, patience_ms };
    let url = "https://hooks.example/x";
    assert_eq!(
        of("webhook", Some(url), 30),
        chosen(PermissionChannel::Webhook, Some(PromptEndpoint::Url(url.to_owned())), Some(30_000))
    );
    // Zero and negative values wait forever.
    assert_eq!(
        of("file", Some("gate"), 0),
        chosen(PermissionChannel::File, Some(PromptEndpoint::Folder("/project/gate".into())), None)
    );
    for terminal in ["console", "queue"] {
        let channel = PermissionChannel::Terminal;
        assert_eq!(of(terminal, None, -1), chosen(channel, None, None));
    }
}

fn http_client() -> Client {
    Client::new(HttpClientSettings {
        proxies: Proxies::without_proxies(),
        ..HttpClientSettings::default()
    })
}

/// Plays one turn with a call to `write`. Returns the call's result and the decision about it.
async fn play_turn(asker: Arc<dyn PermissionAsker>, arguments: Value) -> (Value, String) {
    let stage = TestStage::new([ScriptedTool::echo("write").writing()]);
    let others = stage.person.clone();
    let patience_ms = asker.answer_timeout_ms();
    let asker = Arc::new(SplitAsker { calls: asker, patience_ms, others });
    let ports = SessionPorts { asker, ..stage.ports() };
    let mut session = Session::start(TestStage::setup(), ports).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call("0", "write", arguments)]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    session.run_turn("x", &Cancel::new()).await;
    let message = session.history().messages().rev().nth(1).unwrap();
    let result = Value::Object(message.tool_results().next().unwrap().content.clone());
    let decided = stage.events.events().into_iter().find_map(|event| match event {
        Event::PermissionDecided { rule, answered_by, scope, comment, .. } => {
            let comment = comment.unwrap_or_default();
            Some(format!("{rule} {answered_by} {scope} {comment}").trim_end().to_owned())
        }
        _ => None,
    });
    (result, decided.unwrap())
}

/// Starts a server that gives one request this answer. Returns its URL, and a task with the
/// received request.
async fn start_server(status: u16, answer: String) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ask", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = String::new();
        while !text.ends_with('}') {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            assert!(read > 0, "a request ended early: {text}");
            text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        let length = answer.len();
        let head =
            format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
        text
    });
    (url, asked)
}

async fn ask_by_webhook(status: u16, answer: Value) -> (Value, String, String) {
    let (url, asked) = start_server(status, answer.to_string()).await;
    let asker = WebhookAsker::new(http_client(), &url, Some("hunter2")).unwrap();
    let (result, decided) = play_turn(Arc::new(asker), json!({ "path": "a" })).await;
    (result, decided, asked.await.unwrap())
}

#[tokio::test]
async fn webhook_request_has_the_documented_form_and_its_answer_applies() {
    let (result, decided, asked) = ask_by_webhook(200, json!({ "decision": "allow" })).await;
    assert_eq!(result, json!({ "echo": { "path": "a" } }));
    assert_eq!(decided, "person.once webhook once");
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /ask HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains("authorization: bearer hunter2"), "{head}");
    let mut body: Value = serde_json::from_str(body).unwrap();
    let id = body["request_id"].take();
    let is_dash = |at: usize| id.as_str().unwrap().as_bytes()[at] == b'-';
    assert!([8, 13, 18, 23].into_iter().all(is_dash), "{id}");
    assert!(body["timestamp"].take().as_str().unwrap().ends_with('Z'));
    let options = body["response_options"].take();
    let decisions: Vec<_> = options.as_array().unwrap().iter().map(|it| &it["decision"]).collect();
    assert_eq!(decisions[0], "allow");
    let patterns = body["context"]["patterns"].take();
    assert_eq!(patterns[0], "exactly `write(path=a)`");
    assert_eq!(
        body,
        json!({
            "request_id": null, "timestamp": null, "tool_name": "write",
            "arguments": { "path": "a" }, "timeout_seconds": 300, "default_on_timeout": "deny",
            "was_edited": false, "response_options": null, "title": "Use `write`?", "warning": "",
            "context": {
                "session_id": "session-1", "call_id": "0", "plugin": "tool-write",
                "called_by": null, "agent_type": "main", "agent_name": null,
                "why": "", "times": 1, "patterns": null,
                "commands": [], "risks": [], "hosts": [], "display_info": null,
            },
        })
    );
}

#[tokio::test]
async fn whatever_is_wrong_with_a_webhook_denies_the_call() {
    let (result, decided, _) =
        ask_by_webhook(200, json!({ "decision": "deny", "reason": "not here" })).await;
    assert!(result["error"]["message"].as_str().unwrap().contains("not here"), "{result}");
    assert_eq!(decided, "person.denied webhook once not here");
    for (status, answer, why) in [
        (500, json!({ "decision": "allow" }), "the webhook answered with status 500"),
        (201, json!({ "decision": "allow" }), "the webhook answered with status 201"),
        (302, json!({ "decision": "allow" }), "redirects to"),
        (200, json!({ "allow": true }), "the answer is not a JSON object with a text `decision`"),
        (200, json!({ "decision": "all" }), "`decision` is not a known value"),
        (200, json!({ "decision": "x".repeat(70_000) }), "more than the 65536 bytes"),
    ] {
        let (result, decided, _) = ask_by_webhook(status, answer).await;
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
        assert!(!message.contains("hunter2") && decided.starts_with("ask.silence"), "{decided}");
    }
    // Nothing listens on this port.
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let asker = WebhookAsker::new(http_client(), &format!("http://{closed}/"), None).unwrap();
    let (result, _) = play_turn(Arc::new(asker), json!({})).await;
    assert_eq!(result["error"]["kind"], "permission_denied");
}

#[test]
fn webhook_url_must_be_https_or_loopback() {
    let refused =
        |url: &str| WebhookAsker::new(http_client(), url, None).err().map(|it| it.message);
    assert!(refused("http://hooks.example/x").unwrap().contains("https"));
    assert!(refused("http://127.0.0.1.evil.example/").is_some());
    assert!(refused("file:///etc/passwd").is_some());
    assert_eq!(refused("https://hooks.example/x"), None);
    assert_eq!(refused("http://localhost:1/"), None);
}

/// Answers the first question in a folder with the result of `answer`.
async fn answer_in_folder(folder: std::path::PathBuf, answer: impl Fn(&Value) -> Value) {
    let requests = folder.join("requests");
    loop {
        let found = fs::read_dir(&requests).ok().and_then(|mut files| {
            files.find_map(|file| {
                file.ok().filter(|file| file.path().extension() == Some("json".as_ref()))
            })
        });
        if let Some(file) = found {
            let asked: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
            let to = folder.join("responses").join(file.file_name());
            fs::write(to, answer(&asked).to_string()).unwrap();
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn folder_channel_exchanges_request_and_response_and_removes_both() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("gate");
    let answering = tokio::spawn(answer_in_folder(place.clone(), |asked| {
        let wide = asked["context"]["patterns"].as_array().unwrap().last().unwrap();
        json!({
            "request_id": asked["request_id"], "decision": "allow_session",
            "remember_pattern": wide,
        })
    }));
    let asker = Arc::new(FolderAsker::new(place.clone()));
    let (result, decided) = play_turn(asker, json!({ "path": "a" })).await;
    answering.await.unwrap();
    assert_eq!(result, json!({ "echo": { "path": "a" } }));
    assert_eq!(decided, "session.always file session");
    for name in ["requests", "responses"] {
        assert_eq!(fs::read_dir(place.join(name)).unwrap().count(), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_folder_request_is_denied_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("gate");
    let begun = tokio::time::Instant::now();
    let (result, decided) = play_turn(Arc::new(FolderAsker::new(place.clone())), json!({})).await;
    assert!(result["error"]["message"].as_str().unwrap().contains("within 300 s"), "{result}");
    assert_eq!(decided, "person.late   no answer within 300 s");
    assert!(begun.elapsed() >= Duration::from_secs(300));
    assert_eq!(fs::read_dir(place.join("requests")).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn response_folder_writable_by_others_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let responses = folder.path().join("responses");
    fs::create_dir(&responses).unwrap();
    fs::set_permissions(&responses, fs::Permissions::from_mode(0o777)).unwrap();
    let (result, decided) =
        play_turn(Arc::new(FolderAsker::new(folder.path().to_owned())), json!({})).await;
    assert_eq!(result["error"]["kind"], "permission_denied");
    assert!(decided.starts_with("ask.silence"), "{decided}");
}
