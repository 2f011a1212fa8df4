//! An example of a resource: a turnstile that stays open across calls, and that other plugins may
//! read.
#![forbid(unsafe_code)]
use std::sync::atomic::{AtomicU64, Ordering};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::resources::{Resource, Resources};

/// A counter that must be read before it closes.
#[derive(Default)]
struct Turnstile {
    passed: AtomicU64,
}

impl Resource for Turnstile {
    const KIND: &'static str = "turnstile";

    // The host calls this once and waits 2 s. The session's files and commands are still available.
    async fn close(&self) -> Result<()> {
        Ok(())
    }

    // For other plugins: `cx.resources().call("turnstile", "passed", json!({}))`.
    async fn call(&self, operation: &str, _arguments: Value) -> Result<Value> {
        match operation {
            "passed" => Ok(json!(self.passed.load(Ordering::SeqCst))),
            other => Err(self.unknown_operation(other)),
        }
    }
}

#[derive(Default)]
struct TurnstileState {
    resources: Resources,
}

impl State for TurnstileState {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn resources(&self) -> Option<&Resources> {
        Some(&self.resources)
    }
}

/// Lets one visitor pass. Returns how many have passed in this session.
#[tool_fn(destructive = false, open_world = false)]
async fn pass(cx: &Cx<TurnstileState>) -> Result<Output> {
    // Created once, however many calls ask at the same time.
    let make = async { Ok(Turnstile::default()) };
    let turnstile = cx.state().resources.get_or_create(cx, "turnstile", make).await?;
    let passed = turnstile.passed.fetch_add(1, Ordering::SeqCst) + 1;
    Ok(Output::json(json!({ "passed": passed })))
}

export_plugin! { state: TurnstileState, tools }
