//! The command `/model` of a conversation: shows the model or switches to another one.

use std::time::Duration;

use jaato_runtime::session_loop::Session;
use jaato_runtime::types::ModelId;
use jaato_runtime::{Runtime, visible};

use crate::args::SessionArgs;
use crate::exit::{CommandFailure, Exit};
use crate::report;
use crate::view::View;

/// How long a provider may take to list its models.
const LIST_WAIT: Duration = Duration::from_secs(5);

/// Changes the model, or shows the current one. A note says if the model's provider does not list
/// it, or if that cannot be checked, because a list may lack models that the provider has.
///
/// # Errors
/// For a name without a model, and for a model that cannot be used.
pub async fn change(
    runtime: &Runtime,
    session: &mut Session,
    (args, view): (&SessionArgs, &View),
    name: &str,
) -> Result<Exit, CommandFailure> {
    if name.is_empty() {
        let model = session.facts().model;
        report::print_remark(&format!(
            "{}; `/model NAME` changes it",
            visible::visible_name(&model)
        ));
        return Ok(Exit::Done);
    }
    runtime.change_model(session, name, &args.request.request_options()?)?;
    let model = runtime.model_by_name(name)?.model;
    view.settle().await;
    report::print_problems(unlisted_model_warning(runtime, &model).await.as_slice());
    Ok(Exit::Done)
}

async fn unlisted_model_warning(runtime: &Runtime, model: &ModelId) -> Option<String> {
    let shown = visible::visible_name(model.as_str());
    let provider = visible::visible_name(model.split()?.0);
    match runtime.is_model_listed(model, LIST_WAIT).await {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "`{provider}` does not list `{shown}`, so the next request may fail\n\
             hint: `jaato provider models {provider}` lists its models"
        )),
        Err(error) => Some(format!("`{shown}` is not checked: {error}")),
    }
}
