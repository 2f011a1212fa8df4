//! The aspects `context` and `session`: the use of the context window, and the session's ids.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::service::{ContextFacts, GcFacts, SessionFacts};

/// Returns model, tokens, turns and gc settings, or `None` if the session has no model.
pub(crate) fn context_fields(facts: &SessionFacts) -> Option<Map<String, Value>> {
    facts.context.as_ref().map(usage_fields)
}

/// Returns the known ids, or `None` if the session has no model.
pub(crate) fn session_fields(facts: &SessionFacts) -> Option<Map<String, Value>> {
    facts.context.as_ref()?;
    let ids = [
        ("session_id", &facts.session_id),
        ("agent_id", &facts.agent_id),
        ("agent_type", &facts.agent_type),
        ("agent_name", &facts.agent_name),
        ("env_session_id", &facts.env_session_id),
    ];
    let known = ids.into_iter().filter(|(_, id)| !id.is_empty());
    Some(known.map(|(field, id)| (field.to_owned(), json!(id))).collect())
}

fn usage_fields(facts: &ContextFacts) -> Map<String, Value> {
    let total = facts.prompt_tokens.saturating_add(facts.output_tokens);
    // A name without a provider is whole.
    let (provider, model) = facts.model.split_once('/').unwrap_or(("", &facts.model));
    Map::from_iter([
        ("model".to_owned(), json!(model)),
        ("provider".to_owned(), json!(provider)),
        ("context_limit".to_owned(), json!(facts.context_limit)),
        ("total_tokens".to_owned(), json!(total)),
        ("prompt_tokens".to_owned(), json!(facts.prompt_tokens)),
        ("output_tokens".to_owned(), json!(facts.output_tokens)),
        ("tokens_remaining".to_owned(), json!(facts.context_limit.saturating_sub(total))),
        ("percent_used".to_owned(), json!(percentage(total, facts.context_limit))),
        ("turns".to_owned(), json!(facts.turns)),
        ("gc".to_owned(), facts.gc.as_ref().map_or(Value::Null, gc_json)),
    ])
}

/// Rounds to two decimals. Returns 0 if the model's window is unknown.
fn percentage(used: u64, limit: u64) -> f64 {
    if limit == 0 {
        return 0.0;
    }
    let hundredths = u128::from(used) * 10_000;
    let limit = u128::from(limit);
    ((hundredths + limit / 2) / limit) as f64 / 100.0
}

fn gc_json(facts: &GcFacts) -> Value {
    let mut report = Map::from_iter([
        ("threshold_percent".to_owned(), json!(facts.threshold_percent)),
        ("auto_trigger".to_owned(), json!(facts.auto_trigger)),
        ("preserve_recent_turns".to_owned(), json!(facts.preserve_recent_turns)),
    ]);
    if let Some(max_turns) = facts.max_turns {
        report.insert("max_turns".to_owned(), json!(max_turns));
    }
    Value::Object(report)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::{report_lines, session_with_model};

    #[track_caller]
    fn check_fields(report: Option<Map<String, Value>>, expected: Expect) {
        expected.assert_eq(
            &report.map_or_else(|| "nothing".to_owned(), |report| report_lines(&report)),
        );
    }

    fn session_with_gc(max_turns: Option<u64>) -> SessionFacts {
        let gc = GcFacts {
            threshold_percent: 80.0,
            auto_trigger: true,
            preserve_recent_turns: 5,
            max_turns,
        };
        let mut facts = session_with_model();
        facts.context.as_mut().unwrap().gc = Some(gc);
        facts
    }

    #[test]
    fn context_reports_used_and_remaining_tokens() {
        check_fields(
            context_fields(&session_with_model()),
            expect![[r#"
                context_limit = 1048576
                gc = null
                model = "gemini-2.5-flash"
                output_tokens = 3234
                percent_used = 1.45
                prompt_tokens = 12000
                provider = "gemini"
                tokens_remaining = 1033342
                total_tokens = 15234
                turns = 5
            "#]],
        );
    }

    #[test]
    fn gc_settings_are_reported_and_max_turns_only_if_set() {
        let told = |facts: SessionFacts| context_fields(&facts).unwrap().remove("gc").unwrap();
        assert_eq!(
            told(session_with_gc(None)),
            json!({"threshold_percent": 80.0, "auto_trigger": true, "preserve_recent_turns": 5})
        );
        assert_eq!(told(session_with_gc(Some(100)))["max_turns"], 100);
    }

    #[test]
    fn session_reports_only_known_ids() {
        check_fields(
            session_fields(&session_with_model()),
            expect![[r#"
                agent_id = "main"
                agent_type = "main"
                session_id = "20251207_143022"
            "#]],
        );
        let all = SessionFacts {
            agent_name: "researcher".to_owned(),
            env_session_id: "env-1".to_owned(),
            ..session_with_model()
        };
        check_fields(
            session_fields(&all),
            expect![[r#"
                agent_id = "main"
                agent_name = "researcher"
                agent_type = "main"
                env_session_id = "env-1"
                session_id = "20251207_143022"
            "#]],
        );
    }

    #[test]
    fn context_and_session_are_empty_without_a_model() {
        let facts = SessionFacts { context: None, ..session_with_model() };
        check_fields(context_fields(&facts), expect!["nothing"]);
        check_fields(session_fields(&facts), expect!["nothing"]);
    }

    #[test]
    fn percent_is_rounded_to_two_decimals_and_never_divides_by_zero() {
        for (used, limit, expected) in [
            (0, 0, 0.0),
            (7, 0, 0.0),
            (1, 3, 33.33),
            (2, 3, 66.67),
            (5, 100_000, 0.01),
            (150, 100, 150.0),
            (u64::MAX, u64::MAX, 100.0),
        ] {
            assert_eq!(percentage(used, limit), expected, "{used} of {limit}");
        }
    }

    #[test]
    fn overfull_context_window_has_zero_tokens_remaining() {
        let mut facts = session_with_model();
        facts.context.as_mut().unwrap().context_limit = 100;
        assert_eq!(context_fields(&facts).unwrap()["tokens_remaining"], 0);
    }
}
