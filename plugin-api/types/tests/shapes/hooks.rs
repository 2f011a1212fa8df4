//! The JSON of hooks.

use std::fmt::Write as _;

use jaato_types::file_change::*;
use jaato_types::hooks::*;
use jaato_types::permission_prompt::{
    AllowedAnswer, PermissionAnswer, PermissionDecision, PermissionPrompt, PromptSubject,
};
use jaato_types::service::ContextFacts;
use jaato_types::work_plan::*;
use jaato_types::{
    Annotations, Error, ErrorKind, Event, EventEnvelope, GcReason, Message, RequestOptions,
};
use serde_json::json;

use super::{ShapeList, to_map};

pub fn add_shapes(shapes: &mut ShapeList) {
    shapes.start_section("hooks");
    shapes.add_all(&[Hook::ALL, &[Hook::Unknown]].concat());
    shapes.add(&SessionStart::new(true, ContextFacts::default()));
    shapes.add(&SessionText { text: "the moon is full".to_owned() });
    shapes.add(&BeforePrompt::new("what moon is it?", ContextFacts::default()));
    shapes.add(&PromptAddition {
        text: "it is night".to_owned(),
        refusal: "not at night".to_owned(),
    });
    let may_change = vec!["temperature".to_owned()];
    let newest = Message::user("what moon is it?");
    shapes.add(&BeforeRequest::new(RequestOptions::default(), may_change, newest));
    shapes.add(&RequestChange {
        options: to_map(json!({ "temperature": 0.5 })),
        text: "be brief".to_owned(),
        refusal: "not at night".to_owned(),
    });
    shapes.add_all(&[
        ToolCallOrigin::Model,
        ToolCallOrigin::Person,
        ToolCallOrigin::Plugin,
        ToolCallOrigin::Itself,
        ToolCallOrigin::Unknown,
    ]);
    let called = BeforeTool::new("phase", json!({ "day": 1 }));
    let called = called.with_call("c1".into(), "tool-moon".into(), Annotations::default());
    shapes.add(&called.called_by(ToolCallOrigin::Plugin, "tool-sun".into()));
    for answer in [
        GuardAnswer::GoOn,
        GuardAnswer::rewrite(json!({ "day": 2 })),
        GuardAnswer::rewrite_and_ask(json!({ "day": 2 }), "it is night"),
        GuardAnswer::deny("not at night"),
        GuardAnswer::ask("it is night"),
        GuardAnswer::Unknown,
    ] {
        shapes.add(&answer);
    }
    let result = to_map(json!({ "phase": "full" }));
    let ended = AfterTool::new("phase", json!({ "day": 1 }), result.clone());
    shapes.add(&ended.with_call("c1".into(), "tool-moon".into(), true));
    shapes.add(&ResultChange { replace: Some(result), add: to_map(json!({ "seen": true })) });
    add_hook_end_shapes(shapes);
    let event = Event::Notice { source: "host".to_owned(), text: "it is night".to_owned() };
    let event = EventEnvelope { v: 1, seq: 7, session: "s".into(), event };
    shapes.add(&EventBatch::new(vec![event]).with_dropped(2));
    for operation in [PREVIEW, COMPLETE_WORDS] {
        writeln!(shapes.text, "{operation}").unwrap();
    }
    shapes.add(&PreviewRequest::new("phase", json!({ "day": 1 })));
    shapes.add(&Preview {
        text: "looks up".to_owned(),
        diff: "-a\n+b".to_owned(),
        command: "look up".to_owned(),
        typed_into: SHELL_PROMPT.to_owned(),
        reader: "python3 -q".to_owned(),
        changes: vec![sample_file_change()],
        files: vec!["moon.txt".to_owned()],
        refusal: Some(Error::new(ErrorKind::NotFound, "there is no moon")),
    });
    shapes.add(&sample_permission_prompt());
    shapes.add(&PermissionAnswer {
        pattern: Some(1),
        mode: Some("ask".to_owned()),
        comment: Some("not now".to_owned()),
        arguments: Some(json!({ "day": 2 })),
        ..PermissionAnswer::once(PermissionDecision::Edit)
    });
    shapes.add(&sample_work_plan());
    shapes.add(&CompleteWords::new("moon", vec!["show".to_owned()], "fu"));
    shapes.add(&WordChoices { choices: vec![WordChoice::new("full", "all of it")] });
}

/// The ends of turns and sessions.
fn add_hook_end_shapes(shapes: &mut ShapeList) {
    shapes.add(&TurnEnd::new("it is full", 1, ContextFacts::default()));
    shapes.add(&TurnEndAnswer { continue_with: "look again".to_owned() });
    shapes.add(&BeforeGc::new(GcReason::Manual, ContextFacts::default()));
    shapes.add(&BeforeGcAnswer { refusal: "the moon is still needed".to_owned() });
    shapes.add(&SessionEnd::new(ContextFacts::default()));
}

fn sample_permission_prompt() -> PermissionPrompt {
    let mut prompt = PermissionPrompt::default();
    prompt.subject = PromptSubject::Plan { steps: vec!["look up".to_owned()] };
    prompt.answers = vec![
        AllowedAnswer::for_pattern(PermissionDecision::AllowInSession, 0, "Yes, in this session"),
        AllowedAnswer::with_mode("accept-edits", "Yes, and edit files without asking"),
    ];
    prompt
}

fn sample_work_plan() -> WorkPlan {
    let step = PlanStep {
        id: "step_1".to_owned(),
        description: "look up".to_owned(),
        status: PlanStepStatus::Completed,
        result: Some("it is full".to_owned()),
    };
    WorkPlan {
        id: "plan_1".to_owned(),
        title: "the moon".to_owned(),
        status: PlanStatus::Completed,
        steps: vec![step],
        summary: Some("seen".to_owned()),
    }
}

fn sample_file_change() -> FileChange {
    let line = |kind, text: &str| HunkLine { kind, text: text.to_owned(), is_unended: false };
    let lines = vec![
        line(HunkLineKind::Same, "a"),
        line(HunkLineKind::Removed, "b"),
        HunkLine { is_unended: true, ..line(HunkLineKind::Added, "c") },
    ];
    FileChange {
        path: "moon.txt".to_owned(),
        kind: FileChangeKind::Moved,
        moved_from: Some("sun.txt".to_owned()),
        old: Some("a\nb\n".to_owned()),
        new: Some("a\nc".to_owned()),
        hunks: vec![FileHunk { old_start: 1, new_start: 1, lines }],
        lines_added: 1,
        lines_removed: 1,
        is_cut: true,
    }
}
