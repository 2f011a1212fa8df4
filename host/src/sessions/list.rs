//! `jaato session list` and `search`.

use std::collections::HashMap;

use clap::Args;
use jaato_runtime::sessions::{IndexedSession, SearchHit, SessionIndex};
use jaato_runtime::visible;
use serde_json::{Value, json};

use super::time::{format_age, format_utc};
use super::{SavedSessions, store_failure};
use crate::args::{GlobalArgs, OutputForm};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;

/// What `session list` takes.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// List the sessions of all workspaces
    #[arg(long)]
    pub all: bool,

    /// Show below each session the agents that it opened
    #[arg(long)]
    pub tree: bool,

    /// The number of sessions to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,

    /// The output format
    #[arg(long, value_enum, default_value_t = OutputForm::Text)]
    pub output: OutputForm,
}

/// What `session search` takes.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// The words; a word also finds longer words that begin with it
    #[arg(required = true)]
    pub words: Vec<String>,

    /// Search the sessions of all workspaces
    #[arg(long)]
    pub all: bool,

    /// The number of messages to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,

    /// The output format
    #[arg(long, value_enum, default_value_t = OutputForm::Text)]
    pub output: OutputForm,
}

/// Lists sessions, the last changed first.
pub fn list_sessions(global: GlobalArgs, args: &ListArgs) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let workspace = (!args.all).then_some(sessions.workspace.as_str());
    let index = sessions.open_index()?;
    let (mut listed, count, open) = match &index {
        Some(index) => (
            index.list_sessions(workspace, args.limit).map_err(store_failure)?,
            index.count_sessions(workspace).map_err(store_failure)?,
            sessions.store.open_sessions().map_err(store_failure)?,
        ),
        None => (Vec::new(), 0, Vec::new()),
    };
    let earlier = count.saturating_sub(listed.len() as u64);
    let mut levels = vec![0; listed.len()];
    if let Some(index) = index.as_ref().filter(|_| args.tree) {
        (listed, levels) = with_agents(index, listed)?;
    }
    let open: HashMap<String, Option<u32>> =
        open.into_iter().map(|(id, pid)| (id.as_str().to_owned(), pid)).collect();
    if args.output == OutputForm::Json {
        let listed = listed.iter().map(|session| session_to_json(session, open.get(&session.id)));
        return report::print_exact_json(&listed.collect());
    }
    if listed.is_empty() {
        report::print_line(match args.all {
            true => "no saved sessions yet: `jaato chat` starts one",
            false => {
                "no saved sessions in this workspace; `--all` lists sessions from other workspaces"
            }
        })?;
        return Ok(Exit::Done);
    }
    let row = |(session, level): (&IndexedSession, &usize)| {
        let mut row = vec![
            format!("{}{}", "  ".repeat(*level), session.id),
            format_age(session.changed_ms),
            session.prompts.to_string(),
            if open.contains_key(&session.id) { "open" } else { "" }.to_owned(),
            match &session.opener {
                Some(opener) => {
                    format!("{}: {}", visible::visible_name(&opener.agent), session_name(session))
                }
                None => session_name(session),
            },
        ];
        if args.all {
            row.push(visible::visible_name(&session.workspace).into_owned());
        }
        row
    };
    let mut head = vec!["session", "changed", "messages", "state", "name"];
    if args.all {
        head.push("workspace");
    }
    report::print_table(&head, &listed.iter().zip(&levels).map(row).collect::<Vec<_>>())?;
    if earlier > 0 {
        report::print_sentence(&format!("(and {earlier} earlier; `--limit N` lists more)"))?;
    }
    Ok(Exit::Done)
}

/// Adds below each session the agents that it opened, and those below them. Returns also the level
/// of each session in the tree.
fn with_agents(
    index: &SessionIndex,
    roots: Vec<IndexedSession>,
) -> Result<(Vec<IndexedSession>, Vec<usize>), CommandFailure> {
    let (mut tree, mut levels) = (Vec::new(), Vec::new());
    for root in roots {
        let below = index.opened_descendants(&root.id).map_err(store_failure)?;
        tree.push(root);
        levels.push(0);
        for (level, agent) in below {
            tree.push(agent);
            levels.push(level);
        }
    }
    Ok((tree, levels))
}

fn session_to_json(session: &IndexedSession, open: Option<&Option<u32>>) -> Value {
    json!({
        "id": session.id,
        "name": session.name,
        "workspace": session.workspace,
        "begun": format_utc(session.begun_ms),
        "changed": format_utc(session.changed_ms),
        "messages": session.prompts,
        "opener": session.opener.as_ref().map(|opener| &opener.session),
        "agent": session.opener.as_ref().map(|opener| &opener.agent),
        "is_open": open.is_some(),
        "pid": open.copied().flatten(),
    })
}

/// Finds messages that contain all words.
pub fn search_sessions(global: GlobalArgs, args: &SearchArgs) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let workspace = (!args.all).then_some(sessions.workspace.as_str());
    let words = args.words.join(" ");
    let hits = match sessions.open_index()? {
        Some(index) => {
            index.search_messages(&words, workspace, args.limit).map_err(store_failure)?
        }
        None => Vec::new(),
    };
    if args.output == OutputForm::Json {
        return report::print_exact_json(&hits.iter().map(hit_json).collect());
    }
    if hits.is_empty() {
        let place = if args.all { "any session" } else { "a session of this workspace" };
        let more = if args.all { "" } else { "; `--all` searches the others" };
        let words = visible::visible_name(&words);
        report::print_line(&format!("no message of {place} contains `{words}`{more}"))?;
        return Ok(Exit::Done);
    }
    for hit in &hits {
        let name = visible::visible_name(&hit.name);
        report::print_line(&format!("{}  {}  {name}", hit.session, format_age(hit.at_ms)))?;
        let excerpt = hit.excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
        report::print_sentence(&format!("  {}", visible::visible_name(&excerpt)))?;
    }
    if hits.len() == args.limit as usize {
        report::print_remark("there may be more; `--limit N` shows them");
    }
    Ok(Exit::Done)
}

fn hit_json(hit: &SearchHit) -> Value {
    json!({
        "session": hit.session,
        "name": hit.name,
        "record": hit.seq,
        "at": format_utc(hit.at_ms),
        "excerpt": hit.excerpt,
    })
}

/// Returns the name of a session for users. A session without messages has no name.
pub(super) fn session_name(session: &IndexedSession) -> String {
    match session.name.as_str() {
        "" => "(no messages)".to_owned(),
        name => visible::visible_name(name).into_owned(),
    }
}
