//! `tool-notes`: notes that persist across sessions, for the user or for one workspace.
//!
//! Shows the store, a command, and a hook: before a prompt, it adds the titles of related notes.
#![forbid(unsafe_code)]

mod notes;
mod owner;

use jaato_plugin_sdk::hooks::{BeforePrompt, Hook, Hooks, PromptAddition};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;

pub use notes::{check_note, has_shared_word};
pub use owner::NoteOwner;
use owner::note_key;

/// The maximum number of notes of the user, and of each workspace. Reading all of them takes only
/// milliseconds.
pub const NOTES_MAX: usize = 200;

/// The maximum number of notes that one search returns in full.
pub const FOUND_MAX: usize = 10;

/// The maximum number of titles before a prompt.
pub const TITLES_MAX: usize = 8;

/// The instructions for the model while one of the tools is active.
const INSTRUCTIONS: &str = "Keep what should be known in later sessions with `keep_note`: decisions, preferences, where things are. Read a note with `find_notes` before you rely on its title.";

/// Keeps a note, and replaces an earlier one with that title. Later sessions can read it too.
#[tool_fn(
    destructive = false,
    idempotent,
    open_world = false,
    example("remember how we release", title = "release", text = "tag first, then publish")
)]
async fn keep_note(
    cx: &Cx<Notes>,
    /// A few words to find it by. If a prompt contains one of them, the model sees the title.
    title: String,
    /// The text to remember, at most 4 KiB.
    text: String,
    /// The owner: this workspace, or the user in all workspaces.
    #[serde(default)]
    of: NoteOwner,
) -> Result<Output> {
    let title = check_note(&title, &text)?;
    let titles = of.titles(cx).await?;
    if titles.len() >= NOTES_MAX && !titles.iter().any(|kept| kept == title) {
        let text = format!("there are already {NOTES_MAX} notes");
        return Err(
            Error::new(ErrorKind::LimitReached, text).with_hint("remove one with `forget_note`")
        );
    }
    of.store(cx).set(&note_key(title), &text).await?;
    Ok(Output::json(json!({ "kept": title })))
}

/// Finds notes by words in their titles and texts, and gives them whole.
#[tool_fn(
    read_only,
    idempotent,
    open_world = false,
    example("what do we know about releases?", words = "release")
)]
async fn find_notes(
    cx: &Cx<Notes>,
    /// Words, of which a note has at least one. Without words all notes are found.
    #[serde(default)]
    words: String,
) -> Result<Output> {
    let (mut found, mut more) = (Vec::new(), Vec::new());
    for of in NoteOwner::BOTH {
        for title in of.titles(cx).await? {
            // Skip a note that was forgotten since it was listed.
            let text: Option<String> = of.store(cx).get(&note_key(&title)).await?;
            let Some(text) = text else { continue };
            if !words.trim().is_empty() && !has_shared_word(&format!("{title} {text}"), &words) {
                continue;
            }
            match found.len() < FOUND_MAX {
                true => found.push(json!({ "title": title, "text": text, "of": of })),
                false => more.push(title),
            }
        }
    }
    Ok(Output::json(json!({ "notes": found, "more_titles": more })))
}

/// Forgets a note for good.
#[tool_fn(open_world = false, example("forget how we release", title = "release"))]
async fn forget_note(
    cx: &Cx<Notes>,
    /// Its whole title.
    title: String,
    /// Who has it.
    #[serde(default)]
    of: NoteOwner,
) -> Result<Output> {
    let forgotten = of.store(cx).delete(&note_key(title.trim())).await?;
    Ok(Output::json(json!({ "forgotten": forgotten })))
}

/// The state is empty, because everything is in the store.
pub struct Notes;

impl State for Notes {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(description: &mut Description) {
        description.instructions = Some(INSTRUCTIONS.to_owned());
        description.commands = vec![CommandSpec {
            name: "notes".to_owned(),
            description: "Lists the titles of your notes".to_owned(),
            ..CommandSpec::default()
        }];
    }

    async fn command(cx: &Cx<Self>, name: &str, _arguments: Value) -> Result<Output> {
        if name != "notes" {
            let text = format!("there is no command `{name}`");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        }
        let mut lines = Vec::new();
        for (of, heading) in NoteOwner::BOTH.into_iter().zip(["of this workspace:", "yours:"]) {
            let titles = of.titles(cx).await?;
            lines.extend((!titles.is_empty()).then(|| heading.to_owned()));
            lines.extend(titles.iter().map(|title| format!("  {title}")));
        }
        Ok(Output::text(if lines.is_empty() { "no notes".to_owned() } else { lines.join("\n") }))
    }
}

impl Hooks for Notes {
    type State = Self;

    const ASKED: &'static [Hook] = &[Hook::BeforePrompt];

    /// Adds only titles. Listing them opens no note, which is fast enough for a user who has just
    /// pressed Enter.
    async fn before_prompt(cx: &Cx<Self>, asked: BeforePrompt) -> Result<PromptAddition> {
        let mut titles = Vec::new();
        for of in NoteOwner::BOTH {
            titles.extend(of.titles(cx).await?);
        }
        titles.retain(|title| has_shared_word(title, &asked.prompt));
        titles.truncate(TITLES_MAX);
        if titles.is_empty() {
            return Ok(PromptAddition::nothing());
        }
        Ok(PromptAddition::text(format!(
            "There are notes, for `find_notes`: {}",
            titles.join("; ")
        )))
    }
}

export_plugin! { state: Notes, tools, hook: Notes }
