//! The options of hosts and sessions, and what a program may replace.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_library::ports::{
    CallGate, SavedState, SessionClock, SessionSaver, SharedObjects, SharedRules,
};
use jaato_library::testing::ScriptedProviderAction as Say;
use jaato_library::types::permission_prompt::{PermissionAnswer, PermissionDecision};
use jaato_library::types::{Event, Part, RequestOptions, ToolCall, ToolName, ToolResult};
use jaato_library::{Configuration, ErrorKind, HistoryEntry, Jaato, PolicyMode, Tool, allow, deny};
use parking_lot::Mutex;
use serde_json::json;

use crate::support::{call_add, collect_events, host_builder, scripted_model, text_answer};

/// Sends a prompt that leads to a call to `add`, and returns whether it was allowed and which rule
/// decided.
async fn decide_add_call(session: &jaato_library::Session) -> (bool, String) {
    let mut turn = session.send("What is 2 + 40?");
    let events = collect_events(&mut turn).await;
    // Without a user, a turn whose call is denied fails.
    drop(turn);
    let decided = events.into_iter().find_map(|event| match event {
        Event::PermissionDecided { allowed, rule, .. } => Some((allowed, rule)),
        _ => None,
    });
    decided.unwrap()
}

#[tokio::test]
async fn tool_runs_only_if_a_rule_or_an_answer_allows_it() {
    let steps = || [call_add("1"), text_answer("Done.")];
    let jaato = host_builder(&scripted_model(steps())).start().await.unwrap();
    let session = jaato.session().open().unwrap();
    assert!(!decide_add_call(&session).await.0);

    let jaato = host_builder(&scripted_model(steps())).start().await.unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    let session = jaato.session().on_permission(move |prompt| {
        told.lock().push((prompt.tool, prompt.arguments["b"].clone()));
        async { allow() }
    });
    assert!(decide_add_call(&session.open().unwrap()).await.0);
    assert_eq!(*asked.lock(), [(ToolName::from("add"), json!(40))]);

    let jaato = host_builder(&scripted_model(steps())).start().await.unwrap();
    let session = jaato.session().on_permission(|_| async { deny("not today") }).open().unwrap();
    assert!(!decide_add_call(&session).await.0);
    let said = serde_json::to_string(&session.history()).unwrap();
    assert!(said.contains("not today"), "{said}");
}

#[tokio::test]
async fn prompt_is_answered_through_the_handle() {
    let jaato =
        host_builder(&scripted_model([call_add("1"), text_answer("Done.")])).start().await.unwrap();
    let session = jaato.session().answer_by_handle().open().unwrap();
    let handle = session.handle();
    let mut turn = session.send("What is 2 + 40?");
    let mut results = Vec::new();
    while let Some(event) = turn.next().await {
        match event {
            Event::PermissionAsked(prompt) => {
                assert!(handle.answer(&prompt.call_id, allow()));
                assert!(!handle.answer(&prompt.call_id, allow()));
            }
            Event::ToolCallFinished { result, .. } => results.push(result["sum"].clone()),
            _ => {}
        }
    }
    assert_eq!(results, [json!(42.0)]);
}

/// Denies everything.
struct DenyAllGate;

impl CallGate for DenyAllGate {
    fn decide(
        &self,
        rules: &jaato_library::policy::Rules,
        call: &jaato_library::policy::PolicyCall<'_>,
    ) -> jaato_library::policy::Decision {
        let mut closed = rules.clone();
        closed.disabled.insert(call.tool.clone());
        jaato_library::policy::decide(&closed, call)
    }
}

#[tokio::test]
async fn program_replaces_the_policy() {
    let jaato =
        host_builder(&scripted_model([call_add("1"), text_answer("Done.")])).start().await.unwrap();
    let session = jaato.session().allow_all().policy(Arc::new(DenyAllGate)).open().unwrap();
    assert!(!decide_add_call(&session).await.0);
}

#[tokio::test]
async fn tools_are_chosen_for_each_session() {
    let model = scripted_model([text_answer("A."), text_answer("B."), text_answer("C.")]);
    let other = Tool::new("other", "Does nothing.", json!({ "type": "object" }), |_, _| async {
        Ok::<_, String>(())
    });
    let jaato = host_builder(&model).tool(other).start().await.unwrap();
    jaato.session().open().unwrap().send("a").await.unwrap();
    jaato.session().tools(["oth*"]).open().unwrap().send("b").await.unwrap();
    jaato.session().tools([]).open().unwrap().send("c").await.unwrap();
    let names = |request: &jaato_library::types::CompletionRequest| -> Vec<String> {
        request.tools.iter().map(|tool| tool.name.to_string()).collect()
    };
    let requests: Vec<_> = model.requests().iter().map(names).collect();
    assert_eq!(requests, [vec!["add".to_owned(), "other".into()], vec!["other".into()], vec![]]);
    let error = jaato.session().tools(["subtract"]).open().err().unwrap();
    assert_eq!(error.message, "there is no tool `subtract`");
}

#[tokio::test]
async fn saved_session_continues_in_another_host() {
    let folder = tempfile::tempdir().unwrap();
    let model = scripted_model([text_answer("I will remember.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.session().save_in(folder.path().join("sessions")).open().unwrap();
    session.send("Remember 42.").await.unwrap();
    let id = session.id();
    session.close().await;
    jaato.close().await;

    let model = scripted_model([text_answer("It was 42.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.resume(folder.path().join("sessions"), id.as_str()).open().unwrap();
    assert_eq!(session.id(), id);
    assert_eq!(session.send("What was it?").await.unwrap().text, "It was 42.");
    assert_eq!(model.requests()[0].messages.len(), 3);
    session.close().await;
    let error = jaato.resume(folder.path(), "nothing").open().err().unwrap();
    assert!(error.message.contains("nothing"), "{error}");
}

#[tokio::test]
async fn closed_session_continues_at_once_in_the_same_host() {
    let folder = tempfile::tempdir().unwrap();
    let model = scripted_model([
        text_answer("A."),
        call_add("1"),
        text_answer("B."),
        call_add("2"),
        text_answer("C."),
    ]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.session().model("my/other").save_in(folder.path()).open().unwrap();
    session.send("a").await.unwrap();
    session.handle().set_mode(PolicyMode::ReadOnly).unwrap();
    let id = session.id();
    session.close().await;
    let session = jaato.resume(folder.path(), id.as_str()).allow_all().open().unwrap();
    // Lets a task run that would end the session again.
    tokio::task::yield_now().await;
    assert_eq!(decide_add_call(&session).await, (false, "mode.read_only".to_owned()));
    assert_eq!(session.handle().facts().model, "my/other");
    session.reset([]).await.unwrap();
    assert_eq!(decide_add_call(&session).await, (false, "mode.read_only".to_owned()));
    let models: Vec<_> = model.requests().iter().map(|request| request.model.clone()).collect();
    assert!(models.iter().all(|model| model == "other"), "{models:?}");
    session.close().await;
}

/// Notes that something was saved.
#[derive(Default)]
struct CountingSaver(Mutex<usize>);

impl SessionSaver for CountingSaver {
    fn save_record(&self, entries: &[Arc<HistoryEntry>]) {
        *self.0.lock() = entries.len();
    }

    fn save_rules(&self, _: &SharedRules) {}

    fn save_state(&self, _: SavedState, _: &SharedObjects) {}

    fn save_name(&self, _: &str) {}

    fn save_call_start<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, jaato_library::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn save_pending(&self) {}

    fn wait_until_written(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn is_saving(&self) -> bool {
        true
    }

    fn save_call_result(&self, _: &ToolResult) {}
}

#[tokio::test]
async fn session_is_saved_by_the_program_or_in_a_folder_but_not_both() {
    let folder = tempfile::tempdir().unwrap();
    let jaato = host_builder(&scripted_model([text_answer("A.")])).start().await.unwrap();
    let saver = Arc::new(CountingSaver::default());
    let session = jaato.session().saver(Arc::clone(&saver) as _).open().unwrap();
    session.send("a").await.unwrap();
    assert_eq!(*saver.0.lock(), 2);
    for builder in [jaato.session().save_in(folder.path()), jaato.resume(folder.path(), "id")] {
        let error = builder.saver(Arc::clone(&saver) as _).open().err().unwrap();
        assert!(error.message.contains("the program's own saver"), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn changed_model_gets_the_request_options_of_the_session() {
    let model = scripted_model([text_answer("A."), text_answer("B.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let mut options = RequestOptions::default();
    options.seed = Some(7);
    let session = jaato.session().request(options).open().unwrap();
    session.send("a").await.unwrap();
    session.change_model("my/other").await.unwrap();
    assert!(session.change_model("mi/other").await.is_err());
    session.send("b").await.unwrap();
    let requests = model.requests().into_iter();
    let asked: Vec<_> = requests.map(|request| (request.model, request.options.seed)).collect();
    assert_eq!(asked, [("default".to_owned(), Some(7)), ("other".to_owned(), Some(7))]);
    assert_eq!(session.handle().facts().model, "my/other");
}

#[tokio::test]
async fn caps_of_a_session_end_its_turns() {
    let model = scripted_model([call_add("1"), text_answer("Never.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let caps = jaato_library::config::Caps { steps: Some(1), ..Default::default() };
    let session = jaato.session().allow("add").caps(caps).open().unwrap();
    assert_eq!(session.send("a").await.unwrap_err().kind, ErrorKind::LimitReached);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn agent_of_the_program_has_a_name_in_prompts_and_answers_of_its_own_turns() {
    let [a, b, c] = ["1", "2", "3"].map(call_add);
    let model = scripted_model([a, text_answer("A."), b, text_answer("B."), c, text_answer("C.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&asked);
    let session = jaato.session().agent("scout", None).on_permission(move |prompt| {
        told.lock().push(format!("{} {}", prompt.agent_type, prompt.agent_name));
        let once = PermissionAnswer::once(PermissionDecision::AllowInTurn);
        async move { PermissionAnswer { pattern: Some(0), ..once } }
    });
    let session = session.open().unwrap();
    let id = session.id();
    for agent in [Some("scout"), Some("reviewer"), None] {
        session.set_agent(agent).unwrap();
        assert!(decide_add_call(&session).await.0);
    }
    assert_eq!(*asked.lock(), ["subagent scout", "subagent reviewer", "main "]);
    assert_eq!((session.id(), session.history().len()), (id, 12));
}

#[tokio::test]
async fn conversation_survives_as_json_and_resets_a_session() {
    let model = scripted_model([text_answer("One."), text_answer("Two."), text_answer("Three.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let session = jaato.session().open().unwrap();
    session.send("1").await.unwrap();
    let saved = serde_json::to_string(&session.history()).unwrap();
    let id = session.id();
    session.send("2").await.unwrap();
    let entries: Vec<HistoryEntry> = serde_json::from_str(&saved).unwrap();
    session.reset(entries).await.unwrap();
    assert_ne!(session.id(), id);
    assert_eq!(session.history().len(), 2);
    assert_eq!(session.send("3").await.unwrap().text, "Three.");
    assert_eq!(model.requests()[2].messages.len(), 3);
    session.reset([]).await.unwrap();
    assert_eq!(session.history(), []);
}

/// A clock that stands still.
struct StoppedClock;

impl SessionClock for StoppedClock {
    fn monotonic_ms(&self) -> u64 {
        7
    }

    fn wall_ms(&self) -> u64 {
        86_400_000
    }

    fn sleep(&self, _ms: u64) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn ledger_events_and_clock_are_the_programs_own() {
    let model = scripted_model([call_add("1"), text_answer("Done.")]);
    let jaato = host_builder(&model).start().await.unwrap();
    let records = Arc::new(Mutex::new(Vec::new()));
    let (kept, events) = (Arc::clone(&records), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&events);
    let session = jaato.session().clock(Arc::new(StoppedClock)).allow("add");
    let session = session.on_event(move |_| *counted.lock() += 1);
    let recorder = move |record: &jaato_library::LedgerRecord| {
        kept.lock().push(serde_json::to_value(record).unwrap());
    };
    let session = session.ledger(Arc::new(recorder)).open().unwrap();
    let report = session.send("What is 2 + 40?").await.unwrap();
    assert_eq!((report.started_at_ms, report.duration_ms), (86_400_000, 0));
    assert!(*events.lock() > 5);
    let records = records.lock();
    assert!(records.iter().any(|record| record.to_string().contains("add")), "{records:?}");
    assert!(!records.iter().any(|record| record.to_string().contains("What is")), "{records:?}");
}

#[tokio::test]
async fn streaming_changes_nothing_else_and_survives_a_reset() {
    let model = scripted_model([
        vec![Say::Thought("hm".to_owned()), Say::text("A.")],
        text_answer("B."),
        text_answer("C."),
        text_answer("D."),
    ]);
    let jaato = host_builder(&model).start().await.unwrap();
    let changes = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&changes);
    let session = jaato.session().on_event(move |envelope| {
        *counted.lock() += usize::from(matches!(envelope.event, Event::ModelChanged { .. }));
    });
    let session = session.open().unwrap();
    session.send("a").await.unwrap();
    session.handle().set_streaming(false);
    session.send("b").await.unwrap();
    let thought = &model.requests()[1].messages[1].parts[0];
    assert!(matches!(thought, Part::Thought { .. }), "{thought:?}");
    session.reset([]).await.unwrap();
    session.send("c").await.unwrap();
    session.handle().set_streaming(true);
    session.send("d").await.unwrap();
    let asked: Vec<_> = model.requests().iter().map(|request| request.options.stream).collect();
    assert_eq!(asked, [None, Some(false), Some(false), None]);
    assert_eq!(*changes.lock(), 0);
}

#[tokio::test]
async fn typed_tool_refuses_wrong_arguments_and_reports_its_error() {
    #[derive(serde::Deserialize, jaato_library::schemars::JsonSchema)]
    #[schemars(crate = "jaato_library::schemars")]
    struct CityInput {
        city: String,
    }
    let model = scripted_model([
        vec![Say::call("1", "weather", json!({ "city": 7 }))],
        vec![Say::call("2", "weather", json!({ "city": "Bonn" }))],
        text_answer("Done."),
    ]);
    let weather = Tool::typed("weather", "Tells the weather.", |place: CityInput, _| async move {
        Err::<(), _>(format!("no station in {}", place.city))
    });
    let jaato = Jaato::builder().shared_provider("my", model).tool(weather.allowed());
    let jaato = jaato.start().await.unwrap();
    let session = jaato.session().open().unwrap();
    let mut turn = session.send("How is the weather?");
    let events = collect_events(&mut turn).await;
    let failed: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCallFinished { result, is_error: true, .. } => {
                Some(serde_json::to_string(result).unwrap())
            }
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 2);
    assert!(failed[1].contains("no station in Bonn"), "{failed:?}");
}

#[tokio::test]
async fn key_of_a_provider_that_no_plugin_offers_is_refused() {
    let jaato = Jaato::builder().key("openai", "secret-key");
    let error = jaato.start().await.err().unwrap();
    assert!(error.message.contains("no plugin has a provider `openai`"), "{error}");
    assert!(!error.to_string().contains("secret-key"));
}

#[tokio::test]
async fn model_of_an_unknown_provider_is_refused_with_the_known_ones() {
    let jaato = host_builder(&scripted_model([])).start().await.unwrap();
    let error = jaato.session().model("mi/model").open().err().unwrap();
    let hint = error.hint.unwrap_or_default();
    assert!(hint.starts_with("plugin files are not searched"), "{hint}");
    assert!(hint.ends_with("known providers are: my"), "{hint}");
}

#[tokio::test]
async fn host_without_configuration_reads_and_writes_no_file_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.toml"), "nonsense =").unwrap();
    let model = scripted_model([text_answer("Hello.")]);
    let jaato = host_builder(&model).workspace(folder.path()).start().await.unwrap();
    jaato.session().open().unwrap().send("Hello.").await.unwrap();
    jaato.close().await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    std::fs::create_dir(folder.path().join("config")).unwrap();
    let broken = folder.path().join("config/config.toml");
    std::fs::write(broken, "nonsense =").unwrap();
    let configuration = Configuration::In(folder.path().to_owned());
    let refused =
        host_builder(&scripted_model([])).configuration(configuration).start().await.err().unwrap();
    assert!(refused.message.contains("config.toml"), "{refused}");
}

#[test]
fn denial_without_a_reason_has_no_comment() {
    assert_eq!(deny("").comment, None);
    let PermissionAnswer { comment, .. } = deny("why");
    assert_eq!(comment.as_deref(), Some("why"));
}

#[tokio::test]
async fn executable_without_a_folder_is_searched_on_path() {
    let jaato = Jaato::builder().executable("no-such-jaato").start().await;
    let error = jaato.err().unwrap();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert_eq!(error.message, "there is no program `no-such-jaato` on PATH");
    let jaato = Jaato::builder().executable("sh").start().await.unwrap();
    let found = &jaato.runtime().setup().executable;
    assert!(found.is_absolute() && found.is_file(), "{}", found.display());
}

#[tokio::test]
async fn env_file_sets_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("my.env"));
    std::fs::write(&file, "MODEL_NAME=my/moon\n").unwrap();
    let script = scripted_model([text_answer("Hello.")]);
    let start = |file| {
        let configuration = Configuration::In(home.clone());
        host_builder(&script)
            .configuration(configuration)
            .workspace(folder.path())
            .env_file(file)
            .start()
    };
    let jaato = start(file).await.unwrap();
    assert_eq!(jaato.runtime().model().as_str(), "my/moon");
    let error = start(folder.path().join("missing.env")).await.err().unwrap();
    assert!(error.message.contains("missing.env"), "{}", error.message);
}

#[tokio::test]
async fn program_runs_a_command_without_a_model() {
    let jaato = host_builder(&scripted_model([])).start().await.unwrap();
    let answer = jaato.command("objects", json!({})).await.unwrap();
    assert_eq!(answer["environment"], json!({}));
    let error = jaato.command("objects", json!({ "show": "moon" })).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    let error = jaato.command("moon", json!({})).await.unwrap_err();
    assert_eq!(error.message, "there is no command `moon`");
}
