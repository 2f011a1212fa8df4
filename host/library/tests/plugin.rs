//! A plugin that is linked into the program: a tool, a provider, a gc, hooks, an environment.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use jaato_library::config::GcSettings;
use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction as Say};
use jaato_library::types::Event;
use jaato_library::{Jaato, allow};
use jaato_plugin_sdk::child::ChildOpen;
use jaato_plugin_sdk::hooks::{
    BeforePrompt, BeforeTool, GuardAnswer, Hook, Hooks, PromptAddition, SessionEnd,
};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessControl, ProcessEvents, Spawn};
use jaato_plugin_sdk::types::execution::{
    AllowedPath, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec,
};
use jaato_plugin_sdk_environment::files::{AllowedFolder, ConfinedFiles, ConfinedFilesSettings};
use jaato_plugin_sdk_environment::{ExecutionEnvironment, HostFiles, NoTerminals, Shell};
use tokio::sync::watch;

use crate::support::{call_add, collect_events, host_builder, scripted_model, text_answer};

/// The plugin's state: the host.
pub struct Plugin {
    home: Home,
}

impl State for Plugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { home: home.clone() })
    }

    fn describe(description: &mut Description) {
        description.services = vec!["session.open".to_owned()];
    }
}

/// Counts words.
#[tool_fn(read_only)]
pub async fn word_count(
    _cx: &Cx<Plugin>,
    /// The text.
    text: String,
) -> Result<Output> {
    Ok(Output::json(json!({ "words": text.split_whitespace().count() })))
}

/// Lets another session answer.
#[tool_fn]
pub async fn delegate(
    cx: &Cx<Plugin>,
    /// The question.
    question: String,
) -> Result<Output> {
    let open = ChildOpen { name: "helper".to_owned(), ..ChildOpen::default() };
    let turn = cx.open_session(&open).await?.ask(question).await?;
    Ok(Output::json(json!({ "answer": turn.text })))
}

/// The models of the sessions that have ended.
static ENDED: LazyLock<watch::Sender<Vec<String>>> = LazyLock::new(watch::Sender::default);

/// Says what the user says.
pub struct ParrotProvider;

impl Provider for ParrotProvider {
    type State = Plugin;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "parrot".to_owned(),
            models: vec![ModelInfo { context_limit: Some(400), ..ModelInfo::new("grey") }],
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<Plugin>, request: CompletionRequest) -> Result<Completion> {
        let last = request.messages.last();
        if let Some(call) =
            last.and_then(|message| message.text().strip_prefix("call ").map(str::to_owned))
        {
            let call = ToolCall::new("1", "word_count", json!({ "text": call }));
            return Ok(Completion::new(
                vec![Part::ToolCall(call)],
                FinishReason::ToolUse,
                Usage::default(),
            ));
        }
        let text = last.map(Message::text).unwrap_or_default();
        cx.emit(&Delta::text(text.clone()));
        Ok(Completion::new(vec![Part::text(text)], FinishReason::Stop, Usage::default()))
    }
}

/// Drops all turns but the last.
pub struct KeepLastGc;

impl Gc for KeepLastGc {
    type State = Plugin;

    async fn plan(_cx: &Cx<Plugin>, request: GcRequest) -> Result<GcPlan> {
        let last = request.messages.iter().rposition(Message::is_prompt);
        Ok(GcPlan { v: 1, drop: (0..last.unwrap_or(0)).collect(), ..GcPlan::default() })
    }
}

/// Adds to prompts about the moon, and counts no secret words.
pub struct CarefulHooks;

impl Hooks for CarefulHooks {
    type State = Plugin;

    const ASKED: &'static [Hook] = &[Hook::BeforePrompt, Hook::BeforeTool, Hook::SessionEnd];

    async fn before_prompt(_cx: &Cx<Plugin>, asked: BeforePrompt) -> Result<PromptAddition> {
        match asked.prompt.contains("moon") {
            true => Ok(PromptAddition::text("The moon is full.")),
            false => Ok(PromptAddition::nothing()),
        }
    }

    async fn before_tool(_cx: &Cx<Plugin>, asked: BeforeTool) -> Result<GuardAnswer> {
        match asked.arguments["text"].as_str() {
            Some(text) if text.contains("secret") => Ok(GuardAnswer::deny("it is secret")),
            _ => Ok(GuardAnswer::GoOn),
        }
    }

    async fn session_end(_cx: &Cx<Plugin>, asked: SessionEnd) -> Result<()> {
        ENDED.send_modify(|models| models.push(asked.context.model));
        Ok(())
    }
}

/// A folder of this machine.
pub struct FolderEnvironment {
    folder: PathBuf,
    files: HostFiles,
    shell: FolderShell,
}

/// Runs commands in the folder.
pub struct FolderShell {
    home: Home,
    folder: PathBuf,
}

impl ExecutionEnvironment for FolderEnvironment {
    type State = Plugin;
    type Files = HostFiles;
    type Shell = FolderShell;
    type Terminals = NoTerminals;

    fn spec() -> EnvironmentSpec {
        let (name, title) = ("folder".to_owned(), "a folder of this machine".to_owned());
        EnvironmentSpec { name, title, ..EnvironmentSpec::default() }
    }

    async fn setup(cx: &Cx<Plugin>, setup: EnvironmentSetup) -> Result<Self> {
        let folder = PathBuf::from(setup.workspace);
        let (folder, files) = cx.blocking(move |_| open_confined(&folder)).await??;
        let shell = FolderShell { home: cx.state().home.clone(), folder: folder.clone() };
        Ok(Self { folder, files, shell })
    }

    async fn teardown(&self, cx: &Cx<Plugin>) -> Result<()> {
        let files = self.files.clone();
        cx.blocking(move |_| files.confined().close()).await?
    }

    async fn facts(&self, _cx: &Cx<Plugin>) -> Result<EnvironmentFacts> {
        let folder = self.folder.to_string_lossy().into_owned();
        let allowed = AllowedPath { path: folder.clone(), ..AllowedPath::default() };
        Ok(EnvironmentFacts {
            name: "folder".to_owned(),
            is_host: true,
            working_directory: folder,
            allowed_paths: vec![allowed],
            ..EnvironmentFacts::default()
        })
    }

    fn files(&self) -> Option<&HostFiles> {
        Some(&self.files)
    }

    fn shell(&self) -> Option<&FolderShell> {
        Some(&self.shell)
    }
}

impl Shell for FolderShell {
    type Program = ProcessControl;
    type Events = ProcessEvents;

    async fn prepare(&self, _host: &Reporter, spawn: Spawn) -> Result<Option<Spawn>> {
        let directory = Some(self.folder.to_string_lossy().into_owned());
        Ok(Some(Spawn { directory, ..spawn }))
    }

    async fn start(
        &self,
        _host: &Reporter,
        spawn: Spawn,
    ) -> Result<(ProcessControl, ProcessEvents)> {
        Ok(self.home.process(&spawn).await?.split())
    }
}

fn open_confined(folder: &Path) -> Result<(PathBuf, HostFiles)> {
    let folder = folder.canonicalize().map_err(|error| Error::failed(error.to_string()))?;
    let confined = ConfinedFiles::open(&ConfinedFilesSettings {
        roots: vec![AllowedFolder::local(&folder)],
        default_folder: folder.clone(),
        temporary: None,
    })?;
    Ok((folder, HostFiles::new(confined)))
}

#[tokio::test]
async fn linked_plugin_offers_its_tool_and_its_hooks_guard_it() {
    let jaato = Jaato::builder().plugin(crate::__jaato::MODULE).model("parrot/grey");
    let jaato = jaato.start().await.unwrap();
    assert_eq!(jaato.problems(), Vec::<String>::new());
    assert_eq!(jaato.call("word_count", json!({ "text": "a b c" })).await.unwrap()["words"], 3);
    let session = jaato.session().allow_all().open().unwrap();
    for (prompt, expected) in [("call a b", "\"words\":2"), ("call a secret", "it is secret")] {
        let mut turn = session.send(prompt);
        let events = collect_events(&mut turn).await;
        let result = events.iter().find_map(|event| match event {
            Event::ToolCallFinished { result, .. } => Some(serde_json::to_string(result).unwrap()),
            _ => None,
        });
        assert!(result.unwrap().contains(expected), "{events:?}");
    }
    session.send("Look at the moon.").await.unwrap();
    let said = serde_json::to_string(&session.history()).unwrap();
    assert!(said.contains("The moon is full."), "{said}");
    session.close().await;
    jaato.close().await;
}

#[tokio::test]
async fn linked_gc_makes_room() {
    let jaato = Jaato::builder().plugin(crate::__jaato::MODULE).model("parrot/grey");
    let jaato = jaato.configure(|config| config.gc.plugin = "jaato-library".to_owned());
    let jaato = jaato.start().await.unwrap();
    let session = jaato.session().tools([]).system("Be brief.").open().unwrap();
    let mut collected = 0;
    for _ in 0..6 {
        let mut turn = session.send("words ".repeat(60));
        let events = collect_events(&mut turn).await;
        turn.await.unwrap();
        collected += events.iter().filter(|event| matches!(event, Event::Gc { .. })).count();
    }
    assert!(collected > 0);
}

#[tokio::test]
async fn program_changes_the_gc_collects_and_undoes() {
    let model = scripted_model([
        text_answer("One."),
        text_answer("Two."),
        text_answer("Three."),
        text_answer("Four."),
    ]);
    let jaato = host_builder(&model).plugin(crate::__jaato::MODULE).start().await.unwrap();
    let session = jaato.session().model("my/model").tools([]).open().unwrap();
    for prompt in ["first", "second"] {
        session.send(prompt).await.unwrap();
    }
    let missing = session.change_gc(Some(gc_named("nope"))).await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound, "{missing}");
    session.change_gc(Some(gc_named("jaato-library"))).await.unwrap();

    assert_eq!(session.preview_gc().await.unwrap().turns.len(), 1);
    assert_eq!(session.undo_gc().await.unwrap_err().message, "nothing to undo");
    assert_eq!(session.gc().await.unwrap().turns_removed, 1);
    session.send("third").await.unwrap();
    assert!(!last_request(&model).contains("first"), "{}", last_request(&model));
    assert_eq!(session.history().len(), 6);

    session.undo_gc().await.unwrap();
    session.send("fourth").await.unwrap();
    assert!(last_request(&model).contains("first"), "{}", last_request(&model));

    session.change_gc(None).await.unwrap();
    assert!(session.gc().await.is_err());
    session.reset([]).await.unwrap();
    assert!(session.gc().await.is_err(), "a reset keeps the choice");
}

fn gc_named(plugin: &str) -> GcSettings {
    GcSettings { plugin: plugin.to_owned(), ..GcSettings::default() }
}

fn last_request(model: &ScriptedProvider) -> String {
    serde_json::to_string(&model.requests().last().unwrap().messages).unwrap()
}

#[tokio::test]
async fn plugin_and_closure_answer_in_one_session() {
    let model = scripted_model([text_answer("Done.")]);
    let jaato = host_builder(&model).plugin(crate::__jaato::MODULE).start().await.unwrap();
    let session = jaato.session().tools(["add", "jaato-library:word*"]).open().unwrap();
    session.send("Hello.").await.unwrap();
    let names: Vec<_> = model.requests()[0].tools.iter().map(|it| it.name.to_string()).collect();
    assert_eq!(names, ["add", "word_count"]);
}

#[tokio::test]
async fn plugin_hears_about_the_end_of_a_dropped_session() {
    let jaato =
        host_builder(&scripted_model([text_answer("Hello.")])).plugin(crate::__jaato::MODULE);
    let jaato = jaato.start().await.unwrap();
    let session = jaato.session().model("my/dropped").open().unwrap();
    session.send("Hello.").await.unwrap();
    drop(session);
    let mut ended = ENDED.subscribe();
    let is_told = |models: &Vec<String>| models.iter().any(|model| model == "my/dropped");
    let told = tokio::time::timeout(Duration::from_secs(30), ended.wait_for(is_told));
    drop(told.await.unwrap().unwrap());
    jaato.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompt_of_a_session_that_a_plugin_opens_is_an_event_of_the_turn() {
    let delegate = Say::call("1", "delegate", json!({ "question": "What is 2 + 40?" }));
    let model = scripted_model([
        vec![delegate],
        call_add("2"),
        text_answer("42."),
        text_answer("It is 42."),
    ]);
    let jaato = host_builder(&model).plugin(crate::__jaato::MODULE);
    // Without an answer, the call is denied.
    let jaato = jaato.configure(|config| config.permissions.answer_ms = 10_000);
    let jaato = jaato.start().await.unwrap();
    let session = jaato.session().allow("delegate").answer_by_handle().open().unwrap();
    let (handle, mut turn, mut asked) = (session.handle(), session.send("Ask."), Vec::new());
    while let Some(event) = turn.next().await {
        if let Event::PermissionAsked(prompt) = event {
            assert!(handle.answer(&prompt.call_id, allow()));
            asked.push((prompt.tool.to_string(), prompt.agent_name));
        }
    }
    assert_eq!(asked, [("add".to_owned(), "helper".to_owned())]);
    assert_eq!(turn.await.unwrap().text, "It is 42.");
    session.close().await;
    jaato.close().await;
}
