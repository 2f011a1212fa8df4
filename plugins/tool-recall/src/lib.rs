//! `tool-recall`: finds messages of the conversation that a gc has left out of requests, by words,
//! turn or path, and returns their original text.
//!
//! [`passage`] splits messages into passages, [`words`] normalises text, [`search`] ranks passages,
//! and [`page`] limits the size of an answer. The session's record has the messages, so the plugin
//! stores nothing.
#![forbid(unsafe_code)]

mod page;
mod passage;
mod search;
mod words;

use jaato_plugin_sdk::model::HistoryRead;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;

use page::passage_page;
use passage::split_into_passages;
use search::{PassageQuery, search_passages};

/// The tool's name. Its own calls and results are not found again.
const RECALL: &str = "recall";

/// Find what was said or done earlier in this conversation and was removed to save room. Returns
/// the original text.
#[tool_fn(
    name = "recall",
    category = "memory",
    core,
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    available_if(messages_collected, reason = "once earlier messages were removed to save room"),
    example("which port did I say the database uses?", query = "port database"),
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "query": { "type": "string", TOUCHES: { "text": "words to search by" }, "description": "Words to find, for example a question. Best matches first." },
            "turn": { "type": "integer", "minimum": 1, "description": "Only this turn, in order if there is no query." },
            "path": { "type": "string", TOUCHES: { "text": "a path that messages mention" }, "description": "Only what concerns this file, newest first if there is no query." },
            "page": { "type": "integer", "minimum": 1, "default": 1, "description": "Which page of the answer." },
        },
    })
)]
async fn recall(
    cx: &Cx<Recall>,
    #[serde(default)] query: String,
    #[serde(default)] turn: u64,
    #[serde(default)] path: String,
    #[serde(default = "default_page")] page: u64,
) -> Result<Output> {
    let turn = Some(turn).filter(|turn| *turn > 0);
    let wanted = PassageQuery { query, turn, path: path.trim().to_owned() };
    if wanted.is_empty() {
        let text = "name what to find: `query`, `turn` or `path`";
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    let read = HistoryRead { only_collected: true, ..HistoryRead::default() };
    let messages = cx.history(read).await?.rest().await?;
    let found = cx.blocking(move |_| {
        let passages = split_into_passages(&messages);
        let found = search_passages(&passages, &wanted);
        passage_page(&passages, &found, page)
    });
    Ok(Output::json(found.await?))
}

/// The plugin's state: none, because the session has the record.
struct Recall;

impl State for Recall {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(description: &mut Description) {
        description.services = vec!["session.history".to_owned()];
    }
}

fn default_page() -> u64 {
    1
}

export_plugin! { state: Recall, tools }
