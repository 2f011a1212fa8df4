//! Caps on a session's usage, and the cost of its answers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use jaato_config::Dollars;
use jaato_session::testing::{ScriptedProvider, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{
    AnsweringModel, Cancel, Caps, MARK_CAP, ModelSetup, SessionSetup, SessionUsage, SharedBudget,
};
use jaato_types::{Error, ErrorKind, Event, ModelId, Outcome, Price, SessionId, Usage};
use serde_json::json;

fn usage_action(prompt_tokens: u64, output_tokens: u64) -> ScriptedProviderAction {
    ScriptedProviderAction::Usage(Usage { prompt_tokens, output_tokens, ..Usage::default() })
}

fn setup_with_caps(caps: Caps) -> SessionSetup {
    // A dollar per token, so that sums are visible.
    let price = Price { input: 1e6, output: 1e6, ..Price::default() };
    setup_with_price(caps, Some(price), false)
}

fn setup_with_price(caps: Caps, price: Option<Price>, is_price_configured: bool) -> SessionSetup {
    let mut setup = SessionSetup { caps, ..TestStage::setup() };
    (setup.model.price, setup.model.is_price_configured) = (price, is_price_configured);
    setup
}

fn recorded_usages(stage: &TestStage) -> Vec<Usage> {
    let usage = |event| match event {
        Event::Usage { usage } => Some(usage),
        _ => None,
    };
    stage.events.envelopes().into_iter().filter_map(|envelope| usage(envelope.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn cost_is_calculated_if_the_server_does_not_report_it() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::call("1", "look", json!({})), usage_action(2, 1)]);
    let said = Usage { prompt_tokens: 5, cost_micro_usd: Some(7), ..Usage::default() };
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("done"), ScriptedProviderAction::Usage(said)]);
    let mut session = stage.start(setup_with_caps(Caps::default())).unwrap();
    let report = session.run_turn("go", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Done);
    let told: Vec<_> =
        recorded_usages(&stage).iter().map(|it| (it.cost_micro_usd, it.cost_is_estimate)).collect();
    assert_eq!(told, [(Some(3_000_000), true), (Some(7), false)]);
    let expected =
        SessionUsage { steps: 2, tokens: 8, cost_micro_usd: 3_000_007, has_unknown_cost: false };
    assert_eq!(session.usage(), expected);
}

#[tokio::test(start_paused = true)]
async fn cap_ends_the_turn_before_the_next_request_and_blocks_later_turns() {
    for (caps, name) in [
        (Caps { cost: Dollars::new(3.0), ..Caps::default() }, "`--max-cost`"),
        (Caps { tokens: Some(3), ..Caps::default() }, "`--max-tokens`"),
        (Caps { steps: Some(1), ..Caps::default() }, "`--max-steps`"),
    ] {
        let stage = TestStage::new([ScriptedTool::echo("look")]);
        stage
            .provider
            .add_answer([ScriptedProviderAction::call("1", "look", json!({})), usage_action(2, 1)]);
        let mut session = stage.start(setup_with_caps(caps)).unwrap();
        let report = session.run_turn("go", &Cancel::new()).await;
        let error = report.error.unwrap();
        assert_eq!((report.outcome, error.kind), (Outcome::Limit, ErrorKind::LimitReached));
        assert!(error.message.contains(name), "{error}");
        assert_eq!(report.text, MARK_CAP);
        assert_eq!(
            stage.tools.recorded_calls().len(),
            0,
            "what no request could tell of is not run"
        );
        let again = session.run_turn("more", &Cancel::new()).await;
        assert_eq!((again.outcome, again.steps), (Outcome::Limit, 0));
        assert_eq!(stage.provider.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn cap_above_the_usage_has_no_effect() {
    let stage = TestStage::new([]);
    stage.provider.add_answer([ScriptedProviderAction::text("done"), usage_action(2, 1)]);
    let caps = Caps { cost: Dollars::new(3.1), tokens: Some(4), steps: Some(2) };
    let mut session = stage.start(setup_with_caps(caps)).unwrap();
    assert_eq!(session.run_turn("go", &Cancel::new()).await.outcome, Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn cost_cap_with_an_unknown_price_fails_the_turn() {
    let stage = TestStage::new([]);
    let caps = Caps { cost: Dollars::new(1.0), ..Caps::default() };
    let mut session = stage.start(setup_with_price(caps, None, false)).unwrap();
    let report = session.run_turn("go", &Cancel::new()).await;
    let error = report.error.unwrap();
    assert_eq!((report.outcome, error.kind), (Outcome::Failed, ErrorKind::Configuration));
    assert!(error.message.contains("the price of `test/model` is unknown"), "{error}");
    assert_eq!(stage.provider.requests().len(), 0);
    assert_eq!(session.usage(), SessionUsage::default());
}

#[tokio::test(start_paused = true)]
async fn provider_price_is_used_if_no_price_is_configured() {
    for (configured, expected) in [(None, 2), (Some(Price::zero()), 0)] {
        let stage = TestStage::new([]);
        stage.provider.set_price(Price { input: 1.0, output: 0.0, ..Price::default() });
        stage.provider.add_answer([ScriptedProviderAction::text("done"), usage_action(2, 1)]);
        let caps = Caps { cost: Dollars::new(1.0), ..Caps::default() };
        let is_configured = configured.is_some();
        let mut session = stage.start(setup_with_price(caps, configured, is_configured)).unwrap();
        assert_eq!(session.run_turn("go", &Cancel::new()).await.outcome, Outcome::Done);
        assert_eq!(session.usage().cost_micro_usd, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn fallback_model_needs_a_known_price_under_a_cost_cap() {
    let stage = TestStage::new([]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::Fail(Error::new(ErrorKind::Provider, "gone"))]);
    let next = Arc::<ScriptedProvider>::default();
    let model = ModelSetup::new(ModelId::from("other/big"), 20_000);
    let caps = Caps { cost: Dollars::new(1.0), ..Caps::default() };
    let mut setup = setup_with_caps(caps);
    setup.fallbacks = vec![AnsweringModel { model, provider: Arc::clone(&next) as _ }];
    let mut session = stage.start(setup).unwrap();
    let report = session.run_turn("go", &Cancel::new()).await;
    let error = report.error.unwrap();
    assert!(error.message.contains("the price of `other/big` is unknown"), "{error}");
    assert_eq!(next.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn responses_without_token_counts_are_estimated_by_length() {
    let long = "word ".repeat(400);
    let gone = || Error::new(ErrorKind::Provider, "gone");
    for beats in [
        vec![ScriptedProviderAction::text(&long)],
        vec![ScriptedProviderAction::text(&long), ScriptedProviderAction::Fail(gone())],
    ] {
        let stage = TestStage::new([]);
        stage.provider.add_answer(beats);
        let mut session = stage.start(setup_with_caps(Caps::default())).unwrap();
        session.run_turn("go", &Cancel::new()).await;
        let spent = session.usage();
        assert!(spent.tokens > 500 && spent.cost_micro_usd > 500_000_000, "{spent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn token_cap_uses_an_estimate_if_the_provider_reports_no_usage() {
    let stage = TestStage::new([ScriptedTool::echo("look")]);
    stage.provider.add_answer([ScriptedProviderAction::call("1", "look", json!({}))]);
    let caps = Caps { tokens: Some(1), ..Caps::default() };
    let mut session = stage.start(setup_with_caps(caps)).unwrap();
    let report = session.run_turn("go on and on and on", &Cancel::new()).await;
    assert_eq!(report.outcome, Outcome::Limit);
    assert_eq!(recorded_usages(&stage), [], "a guess is not told as the provider's word");
}

fn setup_with_budget(budget: &SharedBudget) -> SessionSetup {
    let mut setup = setup_with_caps(Caps::default());
    setup.budget = Some(budget.clone());
    setup.model.answer_tokens_max = Some(10);
    setup
}

fn budget_with_caps(caps: Caps) -> SharedBudget {
    SharedBudget::new(("batch", "--batch-max-"), caps, SessionUsage::default(), None)
}

#[tokio::test(start_paused = true)]
async fn sessions_with_one_budget_do_not_exceed_it_together() {
    let budget = budget_with_caps(Caps { steps: Some(3), ..Caps::default() });
    let stages = [(); 2].map(|()| TestStage::new([ScriptedTool::echo("look")]));
    for stage in &stages {
        let call = ScriptedProviderAction::call("1", "look", json!({}));
        stage.provider.add_answer([call, usage_action(2, 1)]);
        stage.provider.add_answer([ScriptedProviderAction::text("done"), usage_action(2, 1)]);
    }
    let start = |stage: &TestStage, id: &str| {
        let mut setup = setup_with_budget(&budget);
        setup.id = Some(SessionId::from(id));
        stage.start(setup).unwrap()
    };
    let (mut one, mut other) = (start(&stages[0], "one"), start(&stages[1], "other"));
    let cancel = Cancel::new();
    let (first, second) = tokio::join!(one.run_turn("go", &cancel), other.run_turn("go", &cancel));
    assert_eq!(stages.iter().map(|stage| stage.provider.requests().len()).sum::<usize>(), 3);
    let ids = [one.id(), other.id()];
    for (report, id) in [first, second].iter().zip(ids) {
        let is_refused = budget.has_refused(id);
        assert_eq!(report.outcome, if is_refused { Outcome::Limit } else { Outcome::Done });
    }
    assert_eq!(ids.iter().filter(|id| budget.has_refused(id)).count(), 1);
    let used = budget.usage();
    assert_eq!((used.steps, used.tokens), (3, 9));
    assert_eq!(one.usage().steps + other.usage().steps, 3);
}

#[tokio::test(start_paused = true)]
async fn request_that_a_budget_does_not_cover_is_not_sent() {
    let caps = [
        Caps { tokens: Some(10), ..Caps::default() },
        // The answer alone may cost 10 dollars.
        Caps { cost: Dollars::new(10.0), ..Caps::default() },
    ];
    for caps in caps {
        let (stage, budget) = (TestStage::new([]), budget_with_caps(caps));
        let mut session = stage.start(setup_with_budget(&budget)).unwrap();
        let report = session.run_turn("go", &Cancel::new()).await;
        let error = report.error.unwrap();
        assert_eq!((report.outcome, report.text.as_str()), (Outcome::Limit, MARK_CAP));
        assert!(
            error.message.starts_with("the batch has reached its cap `--batch-max-"),
            "{error}"
        );
        assert_eq!(stage.provider.requests().len(), 0);
        assert_eq!(session.usage(), SessionUsage::default());
        assert!(session.has_open_turn());
    }
}

#[tokio::test(start_paused = true)]
async fn budget_of_costs_needs_a_known_price() {
    let (stage, budget) =
        (TestStage::new([]), budget_with_caps(Caps { cost: Dollars::new(9.0), ..Caps::default() }));
    let mut setup = setup_with_budget(&budget);
    setup.model.price = None;
    let mut session = stage.start(setup).unwrap();
    let error = session.run_turn("go", &Cancel::new()).await.error.unwrap();
    assert!(error.message.ends_with("so `--batch-max-cost` cannot be enforced"), "{error}");
    assert!(error.hint.unwrap().ends_with("or use `--batch-max-tokens`"));
}

#[tokio::test(start_paused = true)]
async fn deadline_ends_a_turn_as_a_limit() {
    let stage = TestStage::new([]);
    stage
        .provider
        .add_answer([ScriptedProviderAction::text("so far"), ScriptedProviderAction::Hang]);
    let mut session = stage.start(setup_with_caps(Caps::default())).unwrap();
    let cancel = Cancel::new();
    let limit = Error::new(ErrorKind::LimitReached, "too late");
    let (until, reached) = (cancel.clone(), limit.clone());
    let deadline = async move {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        until.cancel_at_limit(reached);
    };
    let (report, ()) = tokio::join!(session.run_turn("go", &cancel), deadline);
    assert_eq!((report.outcome, report.error), (Outcome::Limit, Some(limit)));
    assert_eq!(report.text, "so far\n\n[Generation cancelled]");
}
