//! Asks at the terminal which model answers: a user who has configured none but has a provider's
//! key, or whose local model is not downloaded.

use std::io;
use std::sync::Arc;

use jaato_runtime::config::{ConfigLayer, set_model};
use jaato_runtime::types::ModelId;
use jaato_runtime::{ModelState, Runtime, WeightsSource};

use crate::exit::{CommandFailure, Exit};
use crate::terminal::{self, Before, Dialog, Look, Reply, Text};
use crate::{report, signals};

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
pub async fn ask(runtime: &Runtime) -> Result<Option<ModelChoice>, CommandFailure> {
    let config = &runtime.setup().config;
    let can_ask = terminal::nobody_types().is_none() && terminal::errors_are_terminal();
    if !can_ask || config.offline {
        return Ok(None);
    }
    let is_default =
        config.origins("model").iter().all(|origin| origin.layer() == ConfigLayer::BuiltIn);
    let mut offered = if is_default { with_keys(runtime) } else { Vec::new() };
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
    let said = |error: io::Error| CommandFailure::new(Exit::Failed, format!("cannot ask: {error}"));
    // If it were killed during the question, jaato would leave the terminal raw.
    let ending = signals::end_on_signals();
    let open = Arc::new(terminal::open_question());
    let read = |line: &str| read_answer(line, offered.len());
    let fold = |at: &Option<usize>| at.map(|at| folded_answer(&offered[at]));
    let answer = terminal::ask(open, model_question(&offered), Before::Dropped, read, fold).await;
    drop(ending);
    let choice = match answer.map_err(said)? {
        Reply::Answer(Some(at)) => offered.swap_remove(at).choice,
        Reply::Answer(None) => return Err(none_chosen()),
        Reply::Nobody(_) => return Ok(None),
    };
    if is_default {
        save_model_choice(runtime, &choice.model);
    }
    Ok(Some(choice))
}

/// Returns the models of providers whose keys were found.
fn with_keys(runtime: &Runtime) -> Vec<OfferedModel> {
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

/// Parses the number of an answer. The one after the offers chooses none.
pub fn read_answer(line: &str, offers: usize) -> Result<Option<usize>, String> {
    match line.to_ascii_lowercase().as_str() {
        "" => Err(String::new()),
        "y" | "yes" => Ok(Some(0)),
        "n" | "no" => Ok(None),
        line => match line.parse::<usize>() {
            Ok(number @ 1..) if number <= offers => Ok(Some(number - 1)),
            Ok(number) if number == offers + 1 => Ok(None),
            _ => Err(format!("type a number from 1 to {}", offers + 1)),
        },
    }
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
    report::problems(&[line]);
}

fn none_chosen() -> CommandFailure {
    CommandFailure::new(Exit::Configuration, "no model was chosen").hint(
        "`--model` names one, `jaato provider list` lists providers, `jaato model pull` downloads the local one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_start_accepts_only_an_offered_number_or_yes_or_no() {
        let read = |line| read_answer(line, 2);
        assert_eq!([read("1"), read("2"), read("y")], [Ok(Some(0)), Ok(Some(1)), Ok(Some(0))]);
        assert_eq!([read("3"), read("n")], [Ok(None), Ok(None)]);
        for line in ["", "0", "4", "sure", "-1"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
