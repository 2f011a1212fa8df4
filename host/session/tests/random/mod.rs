//! Random beats, tools and answers for `random_turns`.

use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool};
use jaato_session::{GcSettings, NoAnswer, Random, SeededRandom, ToolState};
use jaato_types::objects::ObjectsAdd;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision as Is};
use jaato_types::{
    CallId, Condition, Delta, Error, ErrorKind, FinishReason, GcChange, GcEdit, GcPlan, GcRequest,
    Message, Output, Part, Usage,
};
use serde_json::{Map, Value, json};

/// The tool that must run alone.
pub const WRITER: &str = "write";

/// One tool of each kind that matters to the loop.
pub fn random_tools() -> Vec<ScriptedTool> {
    let schema = json!({
        "type": "object",
        "properties": { "ms": { "type": "integer", "minimum": 0 } },
    });
    vec![
        ScriptedTool::sleeping("read").with_schema(schema.clone()),
        ScriptedTool::sleeping("linger").with_schema(schema.clone()).background(),
        ScriptedTool::new("stay", |_, _| std::future::pending()).background(),
        ScriptedTool::sleeping(WRITER).writing().with_schema(schema),
        ScriptedTool::new("fail", |_, _| async {
            Err::<Output, _>(Error::failed("it did not work"))
        }),
        ScriptedTool::new("loud", |_, scope| async move {
            scope.output.write("one");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            scope.output.write("two");
            let objects = vec![Map::from_iter([("loud".to_owned(), json!(true))])];
            let found = ObjectsAdd { objects, include_duplicates: true, ..ObjectsAdd::default() };
            scope.objects.add_result("loud", "loud", found)?;
            Ok(Output::text("x".repeat(40_000)))
        }),
        ScriptedTool::new("hang", |_, _| std::future::pending()),
        ScriptedTool::sleeping("itself").run_if(Condition::ObjectsPresent),
        ScriptedTool::sleeping("at_first").background().run_if(Condition::NoObjects),
        ScriptedTool::echo("later").available_if(Condition::ObjectsPresent, "once it was loud"),
        ScriptedTool::echo("hidden").with_state(ToolState::Inactive),
        ScriptedTool::echo("off").with_state(ToolState::Disabled { by: "by the test".to_owned() }),
    ]
}

/// Creates a few answers of a user, who is then silent. Some were not offered.
pub fn random_answers(random: &SeededRandom) -> Vec<Result<PermissionAnswer, NoAnswer>> {
    const ALLOW: [Is; 4] = [Is::AllowOnce, Is::AllowInTurn, Is::AllowInSession, Is::AllowAlways];
    const DENY: [Is; 4] = [Is::Deny, Is::DenyInTurn, Is::DenyInSession, Is::DenyAlways];
    // In rotation, so that they use no random numbers.
    let one = |at: usize| {
        let once = PermissionAnswer::once;
        let arguments = Some(json!({ "ms": 10 * at }));
        match random.number_below(5) {
            0 if at % 3 == 2 => Ok(PermissionAnswer { arguments, ..once(Is::Edit) }),
            0 => Ok(once(Is::AllowOnce)),
            1 => Ok(PermissionAnswer { pattern: Some(at % 3), ..once(ALLOW[at % 4]) }),
            2 => Ok(PermissionAnswer { comment: Some("no".to_owned()), ..once(Is::Deny) }),
            3 => Ok(once(DENY[at % 4])),
            _ => Err(NoAnswer::new("the terminal is gone")),
        }
    };
    (0..random.number_below(12) as usize).map(one).collect()
}

/// Creates the beats of one answer, often valid, sometimes arbitrary.
pub fn random_actions(random: &SeededRandom) -> Vec<ScriptedProviderAction> {
    let mut beats: Vec<ScriptedProviderAction> =
        (0..random.number_below(7)).map(|_| random_action(random)).collect();
    match random.number_below(24) {
        0 => beats.push(ScriptedProviderAction::Fail(
            Error::new(ErrorKind::Provider, "overloaded").temporary(),
        )),
        1 | 4 => beats
            .push(ScriptedProviderAction::Fail(Error::new(ErrorKind::ContextOverflow, "too much"))),
        2 => beats.push(ScriptedProviderAction::Hang),
        3 => beats.push(ScriptedProviderAction::Finish(random_finish_reason(random))),
        _ => {}
    }
    beats
}

/// Creates a gc that is often sensible and sometimes arbitrary, but always the same for a seed.
pub fn random_gc_actions(seed: u64) -> Vec<ScriptedGcAction> {
    let random = SeededRandom::new(seed);
    let mut beats = vec![];
    for _ in 0..random.number_below(4) {
        beats.push(match random.number_below(6) {
            0 => ScriptedGcAction::Hang,
            1 => ScriptedGcAction::Fail(Error::failed("no plan")),
            2 | 3 => {
                let seed = random.next_u64();
                ScriptedGcAction::plan_of(move |request| {
                    random_gc_plan(&SeededRandom::new(seed), request)
                })
            }
            _ => ScriptedGcAction::keep_last_turns(1 + random_index(&random, 3)),
        });
    }
    let random = SeededRandom::new(seed.wrapping_add(1));
    beats.push(ScriptedGcAction::plan_of(move |request| match random.number_below(3) {
        0 => random_gc_plan(&random, request),
        _ => random_whole_turns(&random, request),
    }));
    beats
}

/// Creates an arbitrary plan.
pub fn random_gc_plan(random: &SeededRandom, request: &GcRequest) -> GcPlan {
    let count = request.messages.len();
    let mut drop: Vec<usize> =
        (0..random.number_below(8)).map(|_| random_index(random, count + 2)).collect();
    if random.number_below(4) > 0 {
        drop.sort_unstable();
        drop.dedup();
    }
    let summary = match random.number_below(4) {
        0 => Some(Message::user("what was said before")),
        1 => Some(Message::model(vec![Part::text("what was said before")])),
        _ => None,
    };
    GcPlan { drop, summary, edits: random_edits(random, request), ..GcPlan::default() }
}

/// Creates arbitrary edits, mostly none.
fn random_edits(random: &SeededRandom, request: &GcRequest) -> Vec<GcEdit> {
    let count = if random.number_below(3) == 0 { random.number_below(3) } else { 0 };
    let edit = |_| {
        let change = match random.number_below(4) {
            0 => GcChange::Shorten { bytes_max: random.number_below(2_000) },
            1 => GcChange::Repeated { by: CallId::from("1") },
            2 => GcChange::Describe { attachment: None, text: "an image".to_owned() },
            _ => GcChange::Remove,
        };
        GcEdit::new(
            random_index(random, request.messages.len() + 1),
            random_index(random, 2),
            change,
        )
    };
    (0..count).map(edit).collect()
}

/// Creates edits that shorten some results of finished turns that stay.
fn random_fitting_edits(random: &SeededRandom, request: &GcRequest, kept: usize) -> Vec<GcEdit> {
    let starts = request.messages.iter().enumerate().filter(|(_, message)| message.is_prompt());
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let from = starts.get(kept).copied().unwrap_or(0);
    let to = starts.last().copied().unwrap_or(0);
    let mut edits = Vec::new();
    for at in from..to {
        for (part, one) in request.messages[at].parts.iter().enumerate() {
            if matches!(one, Part::ToolResult(_)) && random.number_below(2) == 0 {
                edits.push(GcEdit::new(at, part, GcChange::Shorten { bytes_max: 600 }));
            }
        }
    }
    edits
}

/// Creates a plan that drops some of the first turns completely.
fn random_whole_turns(random: &SeededRandom, request: &GcRequest) -> GcPlan {
    let is_prompt = |at: &usize| request.messages[*at].is_prompt();
    let starts: Vec<usize> = (0..request.messages.len()).filter(is_prompt).collect();
    let kept = random_index(random, starts.len().max(1));
    let drop = (0..starts.get(kept).copied().unwrap_or(0)).collect();
    let summary = (random.number_below(3) == 0).then(|| Message::user("before: much"));
    let note = Some("cleaned".to_owned());
    GcPlan {
        drop,
        summary,
        edits: random_fitting_edits(random, request, kept),
        note,
        ..GcPlan::default()
    }
}

/// Creates random gc settings.
pub fn random_gc_settings(random: &SeededRandom) -> GcSettings {
    GcSettings {
        threshold_percent: (20 + random.number_below(80)).into(),
        auto_trigger: random.number_below(6) > 0,
        check_before_send: random.number_below(4) > 0,
        pinned_turn_indices: (0..random.number_below(2)).map(|_| random.number_below(4)).collect(),
        max_turns: random.number_below(4),
        deadline_ms: 1_000,
        ..GcSettings::default()
    }
}

fn random_action(random: &SeededRandom) -> ScriptedProviderAction {
    match random.number_below(18) {
        0..=3 => ScriptedProviderAction::Text(format!("piece {} ", random.number_below(100))),
        4 => ScriptedProviderAction::Thought("hm".to_owned()),
        5..=8 => random_call(random),
        9 => ScriptedProviderAction::Wait(random.number_below(900)),
        10 => ScriptedProviderAction::Shown(Delta::text("shown alone ")),
        11 => ScriptedProviderAction::Unseen(Part::text("never streamed ")),
        12 => ScriptedProviderAction::Shown(Delta::notice("loading")),
        13 => ScriptedProviderAction::Unseen(Part::text("signed ").with_signature("s")),
        14 => ScriptedProviderAction::Unseen(Part::text("").with_signature("end")),
        15 => ScriptedProviderAction::Unseen(Part::thought("").with_signature("t")),
        16 => ScriptedProviderAction::Unseen(Part::opaque(json!({ "id": random.number_below(9) }))),
        _ => ScriptedProviderAction::Usage(Usage {
            prompt_tokens: random.number_below(900),
            ..Usage::default()
        }),
    }
}

fn random_call(random: &SeededRandom) -> ScriptedProviderAction {
    const NAMES: [&str; 15] = [
        "read",
        "read",
        "linger",
        "stay",
        "read",
        WRITER,
        WRITER,
        "fail",
        "loud",
        "hang",
        "hidden",
        "later",
        "off",
        "unknown",
        "not a name",
    ];
    let name = NAMES[random_index(random, NAMES.len())];
    let id = match random.number_below(4) {
        0 => String::new(),
        1 => "same".to_owned(),
        _ => format!("id-{}", random.number_below(1_000)),
    };
    ScriptedProviderAction::call(&id, name, random_arguments(random))
}

fn random_arguments(random: &SeededRandom) -> Value {
    match random.number_below(8) {
        0 => json!("not an object"),
        1 => json!({ "ms": "soon" }),
        2 => json!({}),
        _ => json!({ "ms": random.number_below(1_500) }),
    }
}

fn random_finish_reason(random: &SeededRandom) -> FinishReason {
    const REASONS: [FinishReason; 10] = [
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
    ];
    REASONS[random_index(random, REASONS.len())]
}

fn random_index(random: &SeededRandom, len: usize) -> usize {
    usize::try_from(random.number_below(len as u64)).unwrap()
}
