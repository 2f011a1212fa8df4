//! Offline facts about vendors' models: context windows, answer limits, prices, abilities.
//!
//! The snapshot comes from [models.dev](https://models.dev) (MIT licence), by `cargo xtask models`,
//! and is as old as its date. A provider's answer takes precedence over it, and the user's
//! configuration over both. Models that are not in it are unknown.
//!
//! It has a line of JSON for each model, sorted, so that a new snapshot has a readable diff. A
//! look-up parses only one line, so that a start does not parse the others.
//!
//! ```
//! let facts = jaato_model_facts::find_facts("anthropic", "claude-opus-4-7").unwrap();
//! assert!(facts.context_limit.unwrap() >= 200_000 && facts.price.is_some());
//! assert_eq!(jaato_model_facts::find_facts("anthropic", "claude-nobody-made"), None);
//! ```

use jaato_types::Price;
use serde::Deserialize;

/// The snapshot. Its first line describes it.
const SNAPSHOT: &str = include_str!("../snapshot.jsonl");

/// The facts about a model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    /// The vendor's name, a slash, and the model.
    pub id: String,
    /// Its context window in tokens.
    #[serde(rename = "context")]
    pub context_limit: Option<u64>,
    /// The maximum number of tokens of an answer.
    #[serde(rename = "output")]
    pub output_limit: Option<u64>,
    /// What it accepts besides text: `image`, `pdf`, `audio`, `video`.
    pub input: Vec<String>,
    /// Whether it calls tools.
    pub tools: bool,
    /// Whether it reasons before it answers.
    pub reasoning: bool,
    /// Its price.
    pub price: Option<Price>,
}

/// The source of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SnapshotSource {
    /// The owner of the data.
    pub source: String,
    /// The licence of the data.
    pub licence: String,
    /// The date of the data: `2026-07-02`.
    pub date: String,
}

/// Returns the facts about a vendor's model.
pub fn find_facts(vendor: &str, model: &str) -> Option<ModelFacts> {
    let id = serde_json::to_string(&format!("{vendor}/{model}")).ok()?;
    let begin = format!("\n{{\"id\":{id},");
    let at = SNAPSHOT.find(&begin)?;
    parse_facts(SNAPSHOT[at + 1..].lines().next()?)
}

/// Returns true if a model was trained to edit files with patches that begin with `*** Begin
/// Patch`: OpenAI's models since GPT-4.1. All others replace texts.
///
/// ```
/// assert!(jaato_model_facts::edits_by_patch("openai/gpt-5.1-codex"));
/// assert!(!jaato_model_facts::edits_by_patch("claude-opus-4-7"));
/// ```
pub fn edits_by_patch(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    // Bedrock and Azure use such names: `openai.gpt-oss-120b`.
    let name = name.strip_prefix("openai.").unwrap_or(&name);
    if let Some(version) = name.strip_prefix("gpt-") {
        let digits = version.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(version.len());
        let is_new = version[..digits].parse::<u32>().is_ok_and(|number| number >= 5);
        return is_new || version.starts_with("4.1") || version.starts_with("oss");
    }
    let is_of = |series: &str| {
        name.strip_prefix(series).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    ["o3", "o4", "codex"].into_iter().any(is_of)
}

/// Lists the vendors that have a model of this name, sorted.
pub fn vendors_of(model: &str) -> Vec<String> {
    let is_it = |facts: &ModelFacts| facts.id.split_once('/').is_some_and(|it| it.1 == model);
    let vendor = |facts: ModelFacts| facts.id.split_once('/').map(|it| it.0.to_owned());
    all_models().filter(is_it).filter_map(vendor).collect()
}

/// Lists all facts, sorted by vendor and model.
pub fn all_models() -> impl Iterator<Item = ModelFacts> {
    SNAPSHOT.lines().skip(1).filter_map(parse_facts)
}

/// Returns the source of the snapshot.
pub fn snapshot_source() -> SnapshotSource {
    let first = SNAPSHOT.lines().next().and_then(|line| serde_json::from_str(line).ok());
    let Some(source) = first else { unreachable!("a test reads the first line") };
    source
}

fn parse_facts(line: &str) -> Option<ModelFacts> {
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_snapshot_line_is_parsed_and_found_by_its_model_name() {
        let lines = SNAPSHOT.lines().count() - 1;
        let all: Vec<_> = all_models().collect();
        assert_eq!(all.len(), lines);
        for facts in &all {
            let (vendor, model) = facts.id.split_once('/').unwrap();
            assert_eq!(find_facts(vendor, model).as_ref(), Some(facts));
            assert!(facts.context_limit.is_none_or(|tokens| tokens > 0), "{}", facts.id);
        }
        assert!(all.is_sorted_by(|one, next| one.id < next.id));
        assert!(all.iter().filter(|facts| facts.price.is_some()).count() > lines / 2);
    }

    #[test]
    fn the_snapshot_says_where_it_is_from() {
        let source = snapshot_source();
        assert_eq!((source.source.as_str(), source.licence.as_str()), ("models.dev", "MIT"));
        assert_eq!(source.date.len(), "2026-07-02".len());
    }

    #[test]
    fn model_name_gives_the_vendors_that_offer_it() {
        assert_eq!(vendors_of("gemini-2.5-flash"), ["google"]);
        assert_eq!(vendors_of("nobody"), Vec::<String>::new());
    }

    #[test]
    fn newer_openai_models_are_known_to_edit_by_patches() {
        let patching = ["gpt-5", "GPT-5.1-codex-max", "openai/gpt-4.1-mini", "o3", "o4-mini"];
        let more = ["codex-mini-latest", "gpt-12", "openai.gpt-oss-20b-1:0", "gpt-oss:20b"];
        for model in patching.into_iter().chain(more) {
            assert!(edits_by_patch(model), "{model}");
        }
        for model in
            ["gpt-4o", "gpt-4", "gpt-3.5-turbo", "o1", "o365", "claude-opus-4-7", "my-gpt-5", ""]
        {
            assert!(!edits_by_patch(model), "{model}");
        }
    }

    #[test]
    fn partial_model_name_is_not_found() {
        assert_eq!(find_facts("anthropic", "claude"), None);
        assert_eq!(find_facts("anthropic", "claude-opus-4-7\",\"x"), None);
        assert_eq!(find_facts("nobody", "claude-opus-4-7"), None);
    }
}
