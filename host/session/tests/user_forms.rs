//! Forms for the user, and events that wake a session.

use std::collections::BTreeMap;

use jaato_session::testing::{ScriptedProviderAction, TestStage};
use jaato_session::{Cancel, Session};
use jaato_types::ask::{FORMS_WAITING_MAX, Form, FormAnswer, FormField, FormOutcome};
use jaato_types::{ErrorKind, Event, Outcome, PluginName};
use serde_json::{Value, json};

fn sample_form() -> Form {
    let field = FormField { name: "drink".to_owned(), ..FormField::default() };
    Form { title: "You".to_owned(), fields: vec![field] }
}

fn form_answer(values: Value) -> FormAnswer {
    let values: BTreeMap<String, Value> = serde_json::from_value(values).unwrap();
    FormAnswer::answered(values)
}

fn session_with_user(forms: impl IntoIterator<Item = FormAnswer>) -> (TestStage, Session) {
    let stage = TestStage::new([]);
    stage.person.add_answers([]);
    stage.person.add_form_answers(forms);
    let session = stage.start(TestStage::setup()).unwrap();
    (stage, session)
}

fn sample_plugin_name() -> PluginName {
    PluginName::from("tool-x")
}

fn recorded_form_outcomes(stage: &TestStage) -> Vec<(String, FormOutcome)> {
    let end = |event| match event {
        Event::FormAnswered { form_id, outcome, .. } => Some((form_id, outcome)),
        _ => None,
    };
    stage.events.events().into_iter().filter_map(end).collect()
}

#[tokio::test(start_paused = true)]
async fn invalid_form_answer_is_asked_for_again_up_to_a_limit() {
    let unfit = || form_answer(json!({ "food": "cake" }));
    let fits = form_answer(json!({ "drink": "tea" }));
    let (stage, session) =
        session_with_user([unfit(), unfit(), fits.clone(), unfit(), unfit(), unfit()]);
    let (handle, cancel) = (session.handle(), Cancel::new());
    assert_eq!(handle.ask_form(&sample_plugin_name(), &sample_form(), &cancel).await, Ok(fits));
    let nobody = FormAnswer::without_user("3 answers did not fit the form");
    assert_eq!(handle.ask_form(&sample_plugin_name(), &sample_form(), &cancel).await, Ok(nobody));
    let expected = [("form_1", FormOutcome::Answered), ("form_2", FormOutcome::Nobody)];
    assert_eq!(recorded_form_outcomes(&stage), expected.map(|(id, end)| (id.to_owned(), end)));
}

#[tokio::test(start_paused = true)]
async fn waiting_forms_are_limited_and_cancelled_when_the_session_ends() {
    let (stage, session) = session_with_user([]);
    let handle = session.handle();
    let ask = || {
        let handle = handle.clone();
        tokio::spawn(async move {
            handle.ask_form(&sample_plugin_name(), &sample_form(), &Cancel::new()).await
        })
    };
    let waiting: Vec<_> = (0..=FORMS_WAITING_MAX).map(|_| ask()).collect();
    tokio::task::yield_now().await;
    assert_eq!(ask().await.unwrap().unwrap_err().kind, ErrorKind::LimitReached);
    session.end_forms().await;
    // Forms that were never shown cause no event.
    assert_eq!(recorded_form_outcomes(&stage), [("form_1".to_owned(), FormOutcome::Cancelled)]);
    for form in waiting {
        assert_eq!(form.await.unwrap().unwrap_err().kind, ErrorKind::Cancelled);
    }
    assert_eq!(ask().await.unwrap().unwrap_err().kind, ErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_notification_is_announced_and_wakes_an_idle_session() {
    let (stage, mut session) = session_with_user([]);
    let (wake, cancel) = (session.wake_waiter(), Cancel::new());
    let woken = tokio::spawn(async move { wake.wait_for_wake().await });
    session.handle().notify_model(&sample_plugin_name(), "the tea is ready".to_owned()).unwrap();
    woken.await.unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("drink it")]);
    let report = session.run_woken_turn(&cancel).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Done, "drink it"));
    let told = stage.events.events().into_iter().filter_map(|event| match event {
        Event::Notified { source, text } => Some((source, text)),
        Event::TurnStarted { woken_by, .. } => Some((woken_by.join(","), String::new())),
        _ => None,
    });
    let expected = [("tool-x", "the tea is ready"), ("tool-x", "")];
    let expected = expected.map(|(who, what)| (who.to_owned(), what.to_owned()));
    assert_eq!(told.collect::<Vec<_>>(), expected);
    // Nothing is left that could wake it.
    assert_eq!(session.run_woken_turn(&cancel).await.outcome, Outcome::Failed);
}

#[tokio::test(start_paused = true)]
async fn notification_beyond_the_limit_is_refused_and_not_announced() {
    let (stage, session) = session_with_user([]);
    let notify = || session.handle().notify_model(&sample_plugin_name(), "again".to_owned());
    let refused = (0..1000).filter_map(|_| notify().err()).next().unwrap();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    let announced = stage.events.events().into_iter();
    let announced = announced.filter(|event| matches!(event, Event::Notified { .. })).count();
    assert_eq!(announced, jaato_session::WAITING_MESSAGES_MAX);
}
