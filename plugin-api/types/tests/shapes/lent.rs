//! The JSON of the session's services: tools, models, the conversation, the user, child sessions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jaato_types::ask::{ASK, FieldKind, FieldOption, Form, FormAnswer, FormField, FormOutcome};
use jaato_types::child::*;
use jaato_types::history::{HistoryAnswer, HistoryMessage, HistoryRead, SESSION_HISTORY};
use jaato_types::model::{
    MODEL_COMPLETE, ModelAnswer, ModelComplete, ModelPiece, ObjectVisibility,
};
use jaato_types::notify::{NOTIFY, NotifyAnswer, NotifyRequest};
use jaato_types::tasks::*;
use jaato_types::tool_calls::{TOOLS_CALL, ToolsCall, ToolsCallAnswer};
use jaato_types::tools_list::{TOOLS_LIST, ToolFacts, ToolsListAnswer};
use jaato_types::tools_set::{
    AWAIT_TOOLS, RefusedTool, TOOLS_SET, ToolSource, ToolsAwaited, ToolsMissing, ToolsSet,
    ToolsSetAnswer,
};
use jaato_types::{
    CommandSpec, Completion, DataPart, Delta, Error, ErrorKind, Message, Outcome, Part,
    RequestOptions, ToolSpec,
};
use serde_json::{Map, json};

use super::ShapeList;

pub fn add_shapes(shapes: &mut ShapeList) {
    add_tool_shapes(shapes);
    add_task_shapes(shapes);
    add_model_shapes(shapes);
    add_user_shapes(shapes);
    add_child_shapes(shapes);
}

fn sample_result() -> Map<String, serde_json::Value> {
    Map::from_iter([("phase".to_owned(), json!("full"))])
}

fn add_tool_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: other tools, tools that change");
    writeln!(shapes.text, "{TOOLS_CALL} {TOOLS_LIST} {TOOLS_SET}").unwrap();
    shapes.add(&ToolsCall { name: "phase".into(), arguments: json!({ "day": 1 }) });
    shapes.add(&ToolsCallAnswer::new(sample_result(), vec![DataPart::blob("image/png", "00ff")]));
    let mut facts = ToolFacts::default();
    (facts.name, facts.source) = ("phase".into(), "moon".to_owned());
    facts.description = "Tells the phase".to_owned();
    (facts.is_active, facts.auto_background) = (true, true);
    shapes.add(&facts);
    shapes.add(&ToolsListAnswer::new(vec![facts]));
    shapes.add(&ToolsSet {
        tools: vec![ToolSpec { name: "phase".into(), foreign: true, ..ToolSpec::default() }],
        instructions: Some("ask for the day".to_owned()),
        commands: vec![CommandSpec { name: "moon".to_owned(), ..CommandSpec::default() }],
        notices: vec!["the sky is cloudy".to_owned()],
    });
    writeln!(shapes.text, "{AWAIT_TOOLS}").unwrap();
    shapes.add(&ToolsAwaited::new(vec!["sky__*".to_owned()], 300));
    shapes.add(&ToolsAwaited::before_exit(300));
    let source = ToolSource {
        label: "the sky".to_owned(),
        prefix: "sky__".to_owned(),
        note: "is cloudy".to_owned(),
        hint: Some("wait for the wind".to_owned()),
    };
    shapes.add(&ToolsMissing::new(vec![source.clone()], vec![source]));
    let refused = RefusedTool::new("cli_based_tool", "plugin `tool-cli` has a tool with that name");
    shapes.add(&refused);
    shapes.add(&ToolsSetAnswer::new(1, vec![refused]));
}

fn add_task_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: tasks");
    writeln!(shapes.text, "{TASKS_START} {TASKS_LIST} {TASKS_READ} {TASKS_CANCEL}").unwrap();
    shapes.add(&TaskStart {
        name: "phase".into(),
        arguments: json!({ "day": 1 }),
        timeout_ms: 1000,
    });
    shapes.add(&TaskStartAnswer::new("task_1"));
    let task_id = "task_1".to_owned();
    shapes.add(&TaskRead { task_id: task_id.clone(), offset: 3, bytes_max: 100, wait_ms: 5 });
    shapes.add(&TaskCancel { task_id: task_id.clone() });
    let mut facts = TaskFacts::default();
    (facts.task_id, facts.tool, facts.source) = (task_id, "phase".into(), "moon".to_owned());
    (facts.by, facts.status) = (Some("tool-later".to_owned()), TaskStatus::Completed);
    (facts.is_detached, facts.duration_ms, facts.output_bytes) = (true, 7, 4);
    facts.result = Some(sample_result());
    shapes.add(&TasksAnswer::new(vec![facts.clone()]));
    let mut answer = TaskReadAnswer::default();
    (answer.task, answer.output) = (facts, "full".to_owned());
    (answer.offset, answer.lost_bytes) = (7, 1);
    shapes.add(&answer);
    shapes.add_all(&[
        TaskStatus::Running,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
        TaskStatus::Timeout,
        TaskStatus::Unknown,
    ]);
}

fn add_model_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: models, the conversation");
    writeln!(shapes.text, "{MODEL_COMPLETE} {SESSION_HISTORY} {NOTIFY}").unwrap();
    let mut options = RequestOptions::default();
    options.max_output_tokens = Some(9);
    shapes.add(&ModelComplete {
        model: Some("moon/full".to_owned()),
        system: "be kind".to_owned(),
        messages: vec![Message::user("is it full?")],
        options,
        objects: ObjectVisibility::Full,
        stream: true,
    });
    shapes.add_all(&[ObjectVisibility::Contents, ObjectVisibility::Full, ObjectVisibility::None]);
    let parts = vec![Part::text("yes")];
    let answer = ModelAnswer::new("moon/full", Completion { parts, ..Completion::default() });
    shapes.add(&answer);
    shapes.add(&ModelPiece::delta(Delta::text("yes")));
    shapes.add(&ModelPiece::answer(answer));
    shapes.add(&HistoryRead { from: 2, last: Some(3), only_collected: true });
    shapes.add(&HistoryAnswer::default());
    let mut message = HistoryMessage::new(2, Message::user("is it full?"));
    (message.is_collected, message.is_unsent) = (true, true);
    (message.is_shortened, message.turn) = (true, 1);
    shapes.add(&message);
    shapes.add(&NotifyRequest { text: "it rises".to_owned() });
    shapes.add(&NotifyAnswer::default());
}

fn add_user_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: forms");
    writeln!(shapes.text, "{ASK}").unwrap();
    let option = FieldOption {
        value: "full".to_owned(),
        label: "Full moon".to_owned(),
        description: "bright nights".to_owned(),
    };
    let field = FormField {
        name: "phase".to_owned(),
        text: "Which phase?".to_owned(),
        kind: FieldKind::Choice,
        options: vec![option],
        default: Some(json!("full")),
        is_optional: true,
    };
    shapes.add(&Form { title: "The moon".to_owned(), fields: vec![field] });
    let values = BTreeMap::from([("phase".to_owned(), json!("full"))]);
    shapes.add(&FormAnswer::answered(values));
    shapes.add(&FormAnswer::without_user("no user is there"));
    shapes.add_all(&[
        FieldKind::Text,
        FieldKind::Choice,
        FieldKind::Several,
        FieldKind::Secret,
        FieldKind::Unknown,
    ]);
    shapes.add_all(&[
        FormOutcome::Answered,
        FormOutcome::Declined,
        FormOutcome::Cancelled,
        FormOutcome::Nobody,
        FormOutcome::Unknown,
    ]);
}

fn add_child_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: child sessions");
    writeln!(
        shapes.text,
        "{SESSION_OPEN} {SESSION_SEND} {SESSION_WAIT} {SESSION_EVENTS} {SESSION_CANCEL} {SESSION_CLOSE}"
    )
    .unwrap();
    let open = ChildOpen {
        name: "helper".to_owned(),
        model: Some("moon/full".to_owned()),
        tools: Some(vec!["phase".into()]),
        instructions: Some("be brief".to_owned()),
        steps_max: Some(3),
        objects: ObjectSharing::Copy,
        ..ChildOpen::default()
    };
    shapes.add(&open);
    shapes.add(&ChildOpen {
        resume: Some("c".to_owned()),
        tokens_max: Some(9),
        cost_max: Some(0.5),
        turn_ms_max: Some(1_000),
        directory: Some("crater".to_owned()),
        gc: Some("truncate".to_owned()),
        ..open
    });
    shapes.add_all(&[ObjectSharing::Share, ObjectSharing::Copy, ObjectSharing::None]);
    shapes.add(&OpenedChild::new(1, "c", "moon/full"));
    shapes.add(&ChildRef { session: 1 });
    shapes.add(&ChildSend { session: 1, text: "is it full?".to_owned() });
    shapes.add(&ChildWait { session: 1, wait_ms: 5 });
    shapes.add(&ChildEmptyAnswer::default());
    let mut turn = ChildTurn::new(Outcome::Done, "yes");
    (turn.steps, turn.error) = (2, Some(Error::new(ErrorKind::Io, "clouds")));
    shapes.add(&turn);
    let mut state = ChildState::default();
    (state.is_running, state.turns, state.last) = (true, 1, Some(turn));
    shapes.add(&state);
}
