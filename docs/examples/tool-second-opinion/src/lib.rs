//! `tool-second-opinion`: lets another model review a change.
//!
//! Shows a call of another tool, a request to another model, and a setting from a variable.
#![forbid(unsafe_code)]

mod review;

use jaato_plugin_sdk::model::{ModelComplete, ask};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

pub use review::{CHANGE_BYTES_MAX, review_prompt, truncate_change};

/// The tool that runs commands. The user's rules apply to its calls, as for the model.
const SHELL: &str = "cli_based_tool";

/// `[plugins.tool-second-opinion]` of the user's configuration.
#[tool_type]
#[serde(default)]
struct Config {
    /// The model to ask, by any name that `--model` takes. Without one the tool returns an error,
    /// because the session's own model would only agree with itself.
    #[schemars(extend("x-jaato-variables" = ["SECOND_OPINION_MODEL"]))]
    model: Option<String>,
    /// The command that shows the change.
    command: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { model: None, command: "git diff HEAD".to_owned() }
    }
}

/// Lets another model review a change before you finish the task. Returns that model's findings.
#[tool_fn(example(
    "ask another model to review my change",
    intent = "a pause of the timer must not lose its time"
))]
async fn second_opinion(
    cx: &Cx<SecondOpinion>,
    /// What the change should do, in a few sentences.
    intent: String,
    /// The command that shows the change. The default is the user's setting (`git diff HEAD`).
    command: Option<String>,
) -> Result<Output> {
    let settings = &cx.state().settings;
    let Some(model) = settings.model.clone().filter(|model| !model.trim().is_empty()) else {
        return Err(Error::new(ErrorKind::Configuration, "no model is set for second opinions")
            .with_hint("set `model` in `[plugins.tool-second-opinion]`, or, for a plugin that is trusted, the variable `SECOND_OPINION_MODEL`; `jaato model list` shows the names"));
    };
    let command = command.unwrap_or_else(|| settings.command.clone());
    cx.notice(format!("looks at the change: {command}"));
    let change = run_change_command(cx, &command).await?;
    if change.trim().is_empty() {
        let text = format!("`{command}` shows no change");
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    let (shown, is_cut) = truncate_change(&change);
    cx.notice(format!("asks {model}"));
    let request = ModelComplete {
        model: Some(model),
        system: review::SYSTEM.to_owned(),
        ..ask(review_prompt(&intent, shown))
    };
    let answer =
        cx.model(&request).await.map_err(|error| explain_error("no model was asked", error))?;
    let opinion = answer.text();
    Ok(Output::json(json!({
        "model": answer.model,
        "opinion": opinion,
        "saw_the_beginning_only": is_cut,
    })))
}

/// Runs the command for the change with another tool, under the user's rules.
async fn run_change_command(cx: &Cx<SecondOpinion>, command: &str) -> Result<String> {
    let output = cx.call_tool(SHELL, json!({ "command": command })).await;
    let output =
        output.map_err(|error| explain_error("the change was not looked at", error))?.content;
    let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match output.get("returncode").and_then(Value::as_i64) {
        Some(0) => Ok(text("stdout")),
        code => {
            let code = code.map_or_else(|| "no code".to_owned(), |code| format!("code {code}"));
            let why = format!("`{command}` ended with {code}: {}", text("stderr").trim());
            Err(Error::failed(why))
        }
    }
}

/// Adds the action that failed. Keeps the kind and the hint, which for a missing grant contains the
/// command that grants it.
fn explain_error(what: &str, error: Error) -> Error {
    Error { message: format!("{what}: {}", error.message), ..error }
}

/// The settings of one session.
pub struct SecondOpinion {
    settings: Config,
}

impl State for SecondOpinion {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { settings: home.config().await? })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.services = vec!["model.complete".to_owned(), "tools.call".to_owned()];
    }
}

export_plugin! { state: SecondOpinion, tools }
