//! Tests that a correct plugin of every kind passes all checks.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;
use parking_lot::Mutex;

/// The notes of the tools.
struct ShelfState(Mutex<Vec<String>>);

impl State for ShelfState {
    async fn create(_home: &Home, saved: Option<Value>) -> Result<Self> {
        let notes = match saved {
            None => Vec::new(),
            Some(Value::Array(notes)) => {
                notes.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(other) => return Err(Error::failed(format!("`{other}` is not a list of notes"))),
        };
        Ok(Self(Mutex::new(notes)))
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(Some(json!(*self.0.lock())))
    }

    fn describe(description: &mut Description) {
        description.instructions = Some("Keep notes on the shelf.".into());
        description.commands = vec![CommandSpec {
            name: "shelf".into(),
            description: "Shows the shelf".into(),
            parameters: Value::Null,
            share_with_model: false,
            ..CommandSpec::default()
        }];
    }

    async fn command(cx: &Cx<Self>, name: &str, _arguments: Value) -> Result<Output> {
        match name {
            "shelf" => Ok(Output::json(json!(*cx.state().0.lock()))),
            _ => Err(Error::new(ErrorKind::UnknownOperation, format!("no command `{name}`"))),
        }
    }
}

/// Puts a note on the shelf.
#[derive(ToolInput)]
#[tool(destructive = false, open_world = false, example("remember the moon", text = "moon"))]
struct KeepNote {
    /// The note.
    text: String,
    /// How often, at most 9.
    times: Option<u8>,
}

impl Tool for KeepNote {
    type State = ShelfState;

    async fn call(self, cx: &Cx<ShelfState>) -> Result<Output> {
        let times = usize::from(self.times.unwrap_or(1).min(9));
        cx.state().0.lock().extend(std::iter::repeat_n(self.text, times));
        Ok(Output::default())
    }
}

tool!(KeepNote);

/// Lists the notes on the shelf, slowly.
#[derive(ToolInput)]
#[tool(read_only, idempotent, example("what is on the shelf?"), example("and now?", wait_s = 9))]
struct ListNotes {
    /// Seconds to wait before.
    #[serde(default)]
    wait_s: u32,
}

impl Tool for ListNotes {
    type State = ShelfState;

    async fn call(self, cx: &Cx<ShelfState>) -> Result<Output> {
        cx.sleep(Duration::from_secs(self.wait_s.into())).await?;
        Ok(Output::json(json!(*cx.state().0.lock())))
    }
}

tool!(ListNotes);

/// Counts notes where it may block.
#[derive(ToolInput)]
#[tool(read_only, example("how many?"))]
struct CountNotes;

impl SyncTool for CountNotes {
    type State = ShelfState;

    fn call(self, state: &ShelfState, _host: &Reporter) -> Result<Output> {
        Ok(Output::json(json!(state.0.lock().len())))
    }
}

sync_tool!(CountNotes);

struct ParrotProvider;

impl Provider for ParrotProvider {
    type State = ShelfState;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "parrot".into(),
            title: String::new(),
            default_model: "grey".into(),
            models: vec![ModelInfo {
                name: "grey".into(),
                title: String::new(),
                context_limit: Some(100),
                asset: None,
                ..ModelInfo::default()
            }],
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<ShelfState>, request: CompletionRequest) -> Result<Completion> {
        let text = request.messages.last().map(Message::text).unwrap_or_default();
        for word in text.split_inclusive(' ') {
            cx.sleep(Duration::from_millis(10)).await?;
            cx.emit(&Delta::text(word.to_owned()));
        }
        Ok(Completion::new(vec![Part::text(text)], FinishReason::Stop, Usage::default()))
    }
}

struct OldestTurnGc;

impl Gc for OldestTurnGc {
    type State = ShelfState;

    async fn plan(_cx: &Cx<ShelfState>, request: GcRequest) -> Result<GcPlan> {
        let prompts = request.messages.iter().enumerate();
        let mut prompts =
            prompts.filter(|(_, message)| message.role == Role::User).map(|(at, _)| at);
        let keep = prompts.next_back().unwrap_or(0);
        Ok(GcPlan { v: 1, drop: (0..keep).collect(), ..GcPlan::default() })
    }
}

export_plugin! { state: ShelfState, tools, provider: ParrotProvider, gc: OldestTurnGc }

jaato_plugin_testkit::conformance!(crate: tool, provider, gc; |suite| suite.with_all_examples());
