//! `models`: creates the snapshot of facts about vendors' models, from the `api.json` of models.dev
//! (`curl -o api.json https://models.dev/api.json`).
//!
//! Review its diff before you commit it, because it contains prices.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::workspace::CargoWorkspace;

/// The path of the snapshot.
const SNAPSHOT: &str = "host/model-facts/snapshot.jsonl";

/// The vendors to include: the name of the provider or preset here, and the vendor's name there.
const VENDORS: [(&str, &str); 10] = [
    ("anthropic", "anthropic"),
    ("cerebras", "cerebras"),
    ("deepseek", "deepseek"),
    ("google", "google"),
    ("groq", "groq"),
    ("mistral", "mistral"),
    ("moonshotai", "moonshotai"),
    ("openai", "openai"),
    ("together", "togetherai"),
    ("xai", "xai"),
];

/// Writes the snapshot.
pub fn run_models(words: Vec<OsString>) -> Result<ExitCode> {
    let [file, date] = <[OsString; 2]>::try_from(words).map_err(|_| {
        anyhow::anyhow!("usage: `cargo xtask models FILE DATE`, for example `cargo xtask models api.json 2026-11-23`")
    })?;
    let date = date.to_str().context("the day is not valid UTF-8")?;
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let api: Value = serde_json::from_str(&text).context("the file is not valid JSON")?;
    let snapshot = snapshot_lines(&api, date)?;
    let path = CargoWorkspace::load()?.root.join(SNAPSHOT);
    let lines = snapshot.lines().count() - 1;
    fs::write(&path, snapshot)?;
    println!("{lines} models are in {SNAPSHOT}: read its diff before you commit it");
    Ok(ExitCode::SUCCESS)
}

/// Creates the lines of the snapshot.
fn snapshot_lines(api: &Value, date: &str) -> Result<String> {
    let mut lines = BTreeMap::new();
    for (ours, theirs) in VENDORS {
        let Some(models) = api[theirs]["models"].as_object() else {
            bail!("the file has no vendor `{theirs}`");
        };
        for (name, model) in models {
            let id = format!("{ours}/{name}");
            if let Some(facts) = model_facts(&id, model)? {
                lines.insert(id, facts);
            }
        }
    }
    let head = json!({ "source": "models.dev", "licence": "MIT", "date": date });
    let lines = lines.into_values().map(|line| line.to_string());
    Ok(std::iter::once(head.to_string()).chain(lines).map(|line| line + "\n").collect())
}

/// Returns the facts of a model, or `None` if it does not answer with text.
fn model_facts(id: &str, model: &Value) -> Result<Option<Value>> {
    let texts = |value: &Value| -> Vec<String> {
        let values = value.as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let output = texts(&model["modalities"]["output"]);
    let answers = output.iter().any(|kind| kind == "text");
    if !answers || id.contains("embed") || model["limit"]["output"] == 0 {
        return Ok(None);
    }
    // The id comes first, because lines are found by it.
    let mut facts = Map::new();
    facts.insert("id".to_owned(), id.into());
    for key in ["context", "output"] {
        if let Some(tokens) = model["limit"][key].as_u64().filter(|tokens| *tokens > 0) {
            facts.insert(key.to_owned(), tokens.into());
        }
    }
    let mut input = texts(&model["modalities"]["input"]);
    input.retain(|kind| kind != "text");
    if !input.is_empty() {
        facts.insert("input".to_owned(), input.into());
    }
    for (key, theirs) in [("tools", "tool_call"), ("reasoning", "reasoning")] {
        if model[theirs] == true {
            facts.insert(key.to_owned(), true.into());
        }
    }
    if let Some(price) =
        model_price(&model["cost"]).with_context(|| format!("the price of {id}"))?
    {
        facts.insert("price".to_owned(), price);
    }
    Ok(Some(Value::Object(facts)))
}

/// Returns a price in US dollars per million tokens, or `None` if one of the two main prices is
/// unknown.
fn model_price(cost: &Value) -> Result<Option<Value>> {
    if cost["input"].is_null() || cost["output"].is_null() {
        return Ok(None);
    }
    let mut price = parse_rates(cost)?;
    let tiers = cost["tiers"].as_array().into_iter().flatten().map(|tier| {
        let above = tier["tier"]["size"].as_u64().context("a tier without a size")?;
        let mut rates = parse_rates(tier)?;
        rates.insert("above".to_owned(), above.into());
        Ok(Value::Object(rates))
    });
    let tiers: Vec<Value> = tiers.collect::<Result<_>>()?;
    if !tiers.is_empty() {
        price.insert("tiers".to_owned(), tiers.into());
    }
    Ok(Some(Value::Object(price)))
}

fn parse_rates(cost: &Value) -> Result<Map<String, Value>> {
    let mut rates = Map::new();
    for key in ["input", "output", "cache_read", "cache_write"] {
        let Some(rate) = cost.get(key).filter(|rate| !rate.is_null()) else { continue };
        let dollars = rate.as_f64().filter(|dollars| (0.0..=10_000.0).contains(dollars));
        rates.insert(key.to_owned(), json!(dollars.with_context(|| format!("`{key}` is {rate}"))?));
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models_api(models: &Value) -> Value {
        let vendors = VENDORS.map(|(_, theirs)| (theirs.to_owned(), json!({ "models": {} })));
        let mut api = Value::Object(vendors.into_iter().collect());
        api["togetherai"]["models"] = models.clone();
        api
    }

    #[test]
    fn model_snapshot_line_contains_only_the_needed_facts() {
        let text = json!({ "input": ["text", "image"], "output": ["text"] });
        let models = json!({
            "b": { "modalities": text, "limit": { "context": 8, "output": 4 }, "tool_call": true,
                "cost": { "input": 1, "output": 2.5, "cache_read": 0.1,
                    "tiers": [{ "tier": { "size": 200_000 }, "input": 2, "output": 5 }] } },
            "a": { "modalities": { "input": ["text"], "output": ["text"] }, "reasoning": true,
                "limit": { "context": 0 }, "cost": { "input": 1 } },
            "picture": { "modalities": { "output": ["image"] } },
            "embedding": { "modalities": text },
        });
        let made = snapshot_lines(&models_api(&models), "2026-07-02").unwrap();
        let expected = "{\"source\":\"models.dev\",\"licence\":\"MIT\",\"date\":\"2026-07-02\"}\n\
             {\"id\":\"together/a\",\"reasoning\":true}\n\
             {\"id\":\"together/b\",\"context\":8,\"output\":4,\"input\":[\"image\"],\"tools\":true,\
             \"price\":{\"input\":1.0,\"output\":2.5,\"cache_read\":0.1,\"tiers\":[{\"input\":2.0,\
             \"output\":5.0,\"above\":200000}]}}\n";
        assert_eq!(made, expected);
    }

    #[test]
    fn invalid_price_is_an_error() {
        for cost in [json!({ "input": -1, "output": 1 }), json!({ "input": "x", "output": 1 })] {
            let models = json!({ "a": { "modalities": { "output": ["text"] }, "cost": cost } });
            let error = snapshot_lines(&models_api(&models), "d").unwrap_err();
            assert_eq!(error.to_string(), "the price of together/a");
        }
        assert!(snapshot_lines(&json!({}), "d").is_err());
    }
}
