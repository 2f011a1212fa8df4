//! Checks of plugins with hooks.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jaato_types::hooks::{
    AfterTool, BeforeGc, BeforePrompt, BeforeRequest, BeforeTool, EventBatch, Hook, SessionEnd,
    SessionStart, TurnEnd,
};
use jaato_types::service::ContextFacts;
use jaato_types::{
    Error, ErrorKind, Event, EventEnvelope, Frame, GcReason, Message, RequestOptions, Result,
};
use serde_json::{Map, json};

use super::{ConformanceSuite, ConformanceVerdict, check_error_text, ensure, fuzz, prefix_error};
use crate::{FakeHost, FakeInstance};

/// The error kinds that a plugin may return if the bare host lacks something that it needs.
const WANTING: [ErrorKind; 4] = [
    ErrorKind::Configuration,
    ErrorKind::Unavailable,
    ErrorKind::UnknownOperation,
    ErrorKind::PermissionDenied,
];

fn list_hooks(host: &FakeHost) -> std::result::Result<Vec<Hook>, String> {
    Ok(host.description().map_err(prefix_error("description"))?.hooks.clone())
}

/// The description lists the plugin's hooks, each once.
pub fn hooks_are_listed(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let hooks = list_hooks(host)?;
    ensure(!hooks.is_empty(), || "the plugin has the kind `hook` but lists no hooks".into())?;
    let once: BTreeSet<_> = hooks.iter().collect();
    ensure(once.len() == hooks.len(), || format!("a hook is listed twice: {hooks:?}"))?;
    ensure(!hooks.contains(&Hook::Unknown), || "it lists a hook that this host lacks".into())
}

/// Each hook is answered in the right form and in time. A plugin that lacks a service or a setting
/// may say so instead.
pub fn each_hook_is_answered_in_time(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let deadlines =
        host.description().map_err(prefix_error("description"))?.hook_deadlines_ms.clone();
    for hook in list_hooks(host)? {
        let began = Instant::now();
        let answer = call_hook(instance, hook);
        let took = began.elapsed();
        let name = hook.name();
        match answer {
            Err(error) if WANTING.contains(&error.kind) => check_error_text(name, &error)?,
            answer => answer.map_err(prefix_error(name))?,
        }
        let ms_max = hook.deadline_ms(deadlines.get(&hook).copied(), u64::MAX);
        ensure(took <= Duration::from_millis(ms_max), || {
            format!("`{name}` was answered after {took:?}, but the limit is {ms_max} ms")
        })?;
    }
    Ok(())
}

/// A hook that the plugin does not list is answered with `unknown_operation`.
pub fn unknown_hooks_are_refused(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let listed = list_hooks(host)?;
    for hook in Hook::ALL.iter().copied().filter(|hook| !listed.contains(hook)) {
        let kind = call_hook(instance, hook).map_err(|error| error.kind);
        ensure(kind == Err(ErrorKind::UnknownOperation), || {
            format!("`{}`, which is not listed, was answered with {kind:?}", hook.name())
        })?;
    }
    Ok(())
}

/// A malformed frame is answered with an error.
pub fn bad_frames_are_refused(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    for hook in list_hooks(host)? {
        fuzz::check_bad_frames_refused(hook.name(), |frame| {
            instance.operation(hook.name(), frame).wait().result
        })?;
    }
    Ok(())
}

fn call_hook(instance: &FakeInstance, hook: Hook) -> Result<()> {
    let arguments = || json!({ "command": "echo moon", "text": "moon" });
    match hook {
        Hook::SessionStart => {
            let asked = SessionStart::new(false, ContextFacts::default());
            instance.session_start(&asked).map(drop)
        }
        Hook::TurnEnd => {
            instance.turn_end(&TurnEnd::new("moon", 0, ContextFacts::default())).map(drop)
        }
        Hook::BeforeGc => {
            let asked = BeforeGc::new(GcReason::Threshold, ContextFacts::default());
            instance.before_gc(&asked).map(drop)
        }
        Hook::SessionEnd => instance.session_end(&SessionEnd::new(ContextFacts::default())),
        Hook::BeforePrompt => {
            let asked = BeforePrompt::new("what moon is it?", ContextFacts::default());
            instance.before_prompt(&asked).map(drop)
        }
        Hook::BeforeRequest => {
            let newest = Message::user("what moon is it?");
            let may_change = vec!["temperature".to_owned()];
            let asked = BeforeRequest::new(RequestOptions::default(), may_change, newest);
            instance.before_request(&asked).map(drop)
        }
        Hook::BeforeTool => {
            instance.before_tool(&BeforeTool::new("conformance_tool", arguments())).map(drop)
        }
        Hook::AfterTool => {
            let result = Map::from_iter([("result".to_owned(), "moon".into())]);
            let asked = AfterTool::new("conformance_tool", arguments(), result);
            instance.after_tool(&asked).map(drop)
        }
        Hook::Event => {
            let event = Event::Notice { source: "host".to_owned(), text: "moon".to_owned() };
            let told = EventEnvelope::new(1, "conformance".into(), event);
            instance.events(&EventBatch::new(vec![told]))
        }
        Hook::Unknown => {
            let frame = Frame::write(&json!({}))
                .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
            instance.operation(hook.name(), frame).wait().result.map(drop)
        }
    }
}
