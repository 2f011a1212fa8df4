//! Asks at the terminal which model answers: a user who has configured none but has a provider's
//! key, or whose local model is not downloaded.

use jaato_runtime::config::{ConfigLayer, set_model};
use jaato_runtime::types::ModelId;
use jaato_runtime::{ModelState, Runtime, WeightsSource};

use crate::exit::{CommandFailure, Exit};
use crate::report;
use crate::terminal::{self, Dialog, Look, Text};

/// The user's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model that answers.
    pub model: ModelId,
    /// Whether its weights may be downloaded now.
    pub may_download: bool,
}

/// An offered answer.
#[derive(Debug, Clone)]
struct OfferedModel {
    text: String,
    choice: ModelChoice,
}

/// Asks which model answers, and remembers the answer of a user who has configured none. Asks
/// nothing without a terminal, or if the model can answer and is the only one to offer.
///
/// # Errors
/// If the terminal is gone, or if the user chooses none.
pub async fn ask_for_model(runtime: &Runtime) -> Result<Option<ModelChoice>, CommandFailure> {
    let config = &runtime.setup().config;
    if !terminal::can_choose() || config.offline {
        return Ok(None);
    }
    let is_default =
        config.origins_of_key("model").iter().all(|origin| origin.layer() == ConfigLayer::BuiltIn);
    let mut offered = if is_default { models_with_keys(runtime) } else { Vec::new() };
    let download = if config.local_download { None } else { pending_download(runtime) };
    if offered.is_empty() && download.is_none() {
        return Ok(None);
    }
    let local = runtime.model();
    match download {
        Some(offer) => offered.push(offer),
        None => offered.push(OfferedModel {
            text: format!("{local} on this machine, without a key"),
            choice: ModelChoice { model: local, may_download: false },
        }),
    }
    let answer =
        terminal::choose(model_question(&offered), |at| folded_answer(&offered[at])).await?;
    let Some(answer) = answer else { return Ok(None) };
    let choice = offered.swap_remove(answer.ok_or_else(no_model_chosen_failure)?).choice;
    if is_default {
        save_model_choice(runtime, &choice.model);
    }
    Ok(Some(choice))
}

/// Returns the models of providers whose keys were found.
fn models_with_keys(runtime: &Runtime) -> Vec<OfferedModel> {
    let mut offered = Vec::new();
    for provider in runtime.providers() {
        let found = provider.keys.iter().find_map(|key| key.found.as_deref());
        let (Some(found), false) = (found, provider.default_model.is_empty()) else { continue };
        let model = ModelId::new(format!("{}/{}", provider.name, provider.default_model));
        let text = format!("{model}, with the key of {found}");
        offered.push(OfferedModel { text, choice: ModelChoice { model, may_download: false } });
    }
    offered
}

/// Returns the download of the configured model's weights, if they are missing.
fn pending_download(runtime: &Runtime) -> Option<OfferedModel> {
    let model = runtime.model();
    let WeightsSource::Asset(asset) = runtime.weights_source(&model)? else { return None };
    let ModelState::Missing { bytes } = runtime.weights_state(&asset) else { return None };
    let text = format!(
        "{model} on this machine, without a key (small; downloads {:.2} GB)",
        bytes as f64 / 1e9
    );
    Some(OfferedModel { text, choice: ModelChoice { model, may_download: true } })
}

fn model_question(offered: &[OfferedModel]) -> Dialog {
    let answers = offered.iter().map(|one| one.text.clone());
    Dialog::choice(
        "Which model should answer?",
        answers.chain(["none: end jaato".to_owned()]).collect(),
    )
}

fn folded_answer(offered: &OfferedModel) -> Text {
    Text::new().with(Look::Green, "✓ model: ").plain(offered.choice.model.as_str())
}

/// Writes the model to the user's configuration, so that the question is asked only once.
fn save_model_choice(runtime: &Runtime, model: &ModelId) {
    let folders = &runtime.setup().folders;
    let Ok(path) = folders.config_file() else { return };
    let line = match set_model(&path, model.as_str()) {
        Ok(()) => format!("the model is saved in `{}`", path.display()),
        Err(error) => format!("the model is not saved, jaato will ask again: {error}"),
    };
    report::print_problems(&[line]);
}

fn no_model_chosen_failure() -> CommandFailure {
    CommandFailure::new(Exit::Configuration, "no model was chosen").hint(
        "choose one with `--model`; `jaato provider list` lists providers, `jaato model pull` downloads the local model",
    )
}
