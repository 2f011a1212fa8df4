//! Helpers for several tests.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction};
use jaato_library::types::Event;
use jaato_library::{Jaato, JaatoBuilder, Tool, Turn};
use serde_json::json;

/// A host with a scripted model and the tool `add`.
pub fn host_builder(script: &Arc<ScriptedProvider>) -> JaatoBuilder {
    Jaato::builder().shared_provider("my", Arc::clone(script) as _).tool(add_tool())
}

pub fn scripted_model<const N: usize>(
    steps: [Vec<ScriptedProviderAction>; N],
) -> Arc<ScriptedProvider> {
    let script = ScriptedProvider::default();
    for step in steps {
        script.add_answer(step);
    }
    Arc::new(script)
}

pub fn text_answer(text: &str) -> Vec<ScriptedProviderAction> {
    vec![ScriptedProviderAction::text(text)]
}

pub fn call_add(id: &str) -> Vec<ScriptedProviderAction> {
    vec![ScriptedProviderAction::call(id, "add", json!({ "a": 2, "b": 40 }))]
}

/// Adds two numbers.
pub fn add_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
        "required": ["a", "b"],
    });
    Tool::new("add", "Adds two numbers.", schema, |input, cx| async move {
        cx.print("adding\n");
        // Works only on the program's own runtime.
        tokio::time::sleep(std::time::Duration::ZERO).await;
        let [a, b] = ["a", "b"].map(|name| input[name].as_f64().unwrap_or_default());
        Ok::<_, String>(json!({ "sum": a + b }))
    })
}

/// Runs a turn and returns its events.
pub async fn collect_events(turn: &mut Turn) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    events
}

/// The example that becomes its own children.
pub fn child_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/child")
}
