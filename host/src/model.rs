//! `jaato model`: models, and the weights of local ones.

use std::path::Path;
use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, EventSink};
use jaato_runtime::types::{
    Asset, Delta, Error, ErrorKind, Event, EventEnvelope, ModelId, SessionId,
};
use jaato_runtime::{
    Assets, DeltaCallback, ModelState, Runtime, WeightsSource, asset_progress_delta,
};
use serde_json::json;

use crate::args::{GlobalArgs, OutputForm};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::signals::cancel_on_signals;
use crate::view::View;
use crate::{report, start};

/// The architecture of models that can be imported under a name.
const IMPORTED_ARCHITECTURE: &str = "qwen2";

/// Lists the models that can be used.
pub async fn list_models(global: GlobalArgs, as_json: bool) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let (models, problems) = runtime.list_models().await;
    let default = runtime.model();
    if as_json {
        let models: Vec<_> = models
            .iter()
            .map(|model| {
                let missing = match model.state {
                    ModelState::Missing { bytes } => Some(bytes),
                    ModelState::Remote | ModelState::Here => None,
                };
                json!({
                    "model": model.id,
                    "title": model.info.title,
                    "context_limit": model.info.context_limit,
                    "default": model.id == default,
                    "bytes_to_fetch": missing,
                })
            })
            .collect();
        runtime.close().await;
        return report::print_exact_json(&json!({ "models": models, "problems": problems }));
    }
    report::print_problems(&start::list_problems(&runtime));
    report::print_problems(&problems);
    let rows: Vec<_> = models
        .iter()
        .map(|model| {
            let weights = match model.state {
                ModelState::Remote => String::new(),
                ModelState::Here => "here".to_owned(),
                ModelState::Missing { bytes } => format!("to fetch, {}", format_size(bytes)),
            };
            let mark = if model.id == default { "*" } else { "" };
            vec![mark.to_owned(), model.id.to_string(), weights, model.info.title.clone()]
        })
        .collect();
    runtime.close().await;
    if rows.is_empty() {
        report::print_line("no models")?;
    } else {
        report::print_table(&["", "model", "weights", "about"], &rows)?;
    }
    Ok(Exit::Done)
}

/// Fetches a model's weights, or lets its provider's server fetch them.
pub async fn pull_model(global: GlobalArgs, model: Option<String>) -> CommandResult {
    let mut setup = start::read_setup(start::setup_arguments(global))?;
    // The command asks for exactly that.
    setup.config.local_download = true;
    let runtime = start::start_runtime_with(setup).await;
    let wanted = model.map_or_else(|| runtime.model(), ModelId::new);
    match runtime.weights_source(&wanted) {
        Some(WeightsSource::Asset(asset)) => fetch_weights(runtime, asset).await,
        Some(WeightsSource::Provider(model)) => pull_to_server(runtime, model).await,
        None => Err(no_weights_failure(&wanted, &runtime.declared_assets())),
    }
}

async fn pull_to_server(runtime: Runtime, model: ModelId) -> CommandResult {
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let view = View::start(OutputForm::Text, cancel.clone());
    let pulled = runtime.pull_model(&model, &delta_printer(&view), &cancel).await;
    let shown = view.finish(&cancel).await;
    let declared = runtime.declared_assets();
    runtime.close().await;
    shown?;
    match pulled {
        Ok(()) => {
            report::print_sentence(&format!("{model} is on its server"))?;
            Ok(Exit::Done)
        }
        Err(error) if error.kind == ErrorKind::Cancelled => Ok(Exit::Cancelled),
        Err(error) if error.kind == ErrorKind::UnknownOperation => {
            Err(no_weights_failure(&model, &declared))
        }
        Err(Error { kind, message, hint, .. }) => {
            let exit = match kind {
                ErrorKind::InvalidArguments => Exit::Usage,
                ErrorKind::Configuration => Exit::Configuration,
                ErrorKind::Provider => Exit::Provider,
                _ => Exit::Failed,
            };
            Err(CommandFailure { exit, message, hint })
        }
    }
}

async fn fetch_weights(runtime: Runtime, asset: Asset) -> CommandResult {
    let assets = require_assets(&runtime)?;
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let view = View::start(OutputForm::Text, cancel.clone());
    let report = asset_reporter(&view);
    let fetched = tokio::select! {
        () = cancel.cancelled() => None,
        fetched = assets.get(&asset.id, std::slice::from_ref(&asset), &report) => Some(fetched),
    };
    let shown = view.finish(&cancel).await;
    runtime.close().await;
    shown?;
    match fetched {
        None => Ok(Exit::Cancelled),
        Some(Err(error)) => {
            Err(CommandFailure { exit: Exit::Failed, message: error.message, hint: error.hint })
        }
        Some(Ok(found)) => {
            report::print_sentence(&format!(
                "{} is on this machine: {}",
                asset.id,
                found.path.display()
            ))?;
            Ok(Exit::Done)
        }
    }
}

/// Imports weights from a file.
pub async fn import_weights(
    global: GlobalArgs,
    file: &Path,
    name: Option<String>,
) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let (declared, assets) = (runtime.declared_assets(), require_assets(&runtime)?.clone());
    let cancel = Cancel::new();
    let view = View::start(OutputForm::Text, cancel.clone());
    let report = asset_reporter(&view);
    let file = file.to_owned();
    let imported = tokio::task::spawn_blocking(move || match name {
        Some(name) => {
            let reserved: Vec<_> = declared.iter().map(|asset| asset.id.as_str()).collect();
            assets
                .import_custom(&file, &name, IMPORTED_ARCHITECTURE, &reserved, &report)
                .map(|found| (name, found))
        }
        None => import_declared(&assets, &file, &declared, &report),
    })
    .await;
    let shown = view.finish(&cancel).await;
    runtime.close().await;
    shown?;
    let imported = imported.map_err(|error| CommandFailure::new(Exit::Failed, error))?;
    let (name, found) = imported.map_err(|error| CommandFailure {
        exit: Exit::Failed,
        message: error.message,
        hint: error.hint,
    })?;
    report::print_sentence(&format!("{name} is on this machine: {}", found.path.display()))?;
    Ok(Exit::Done)
}

/// Imports a declared file. The size determines which one is meant, and the digest decides.
fn import_declared(
    assets: &Assets,
    file: &Path,
    declared: &[Asset],
    report: &jaato_runtime::AssetReport,
) -> Result<(String, jaato_runtime::FoundAsset), Error> {
    let bytes = std::fs::metadata(file).map(|metadata| metadata.len()).unwrap_or(0);
    let known = declared.iter().find(|asset| asset.bytes == bytes);
    if let Some(asset) = known {
        return Ok((asset.id.clone(), assets.import_asset(file, asset, report)?));
    }
    // The import reports any problem with the path itself.
    if let Some(asset) = declared.first().filter(|_| bytes == 0) {
        return Ok((asset.id.clone(), assets.import_asset(file, asset, report)?));
    }
    let text = format!(
        "jaato does not know the model in `{}`: no known file has {bytes} bytes",
        file.display()
    );
    Err(Error::new(ErrorKind::Failed, text)
        .with_hint("`--name NAME` imports it under your own name"))
}

fn require_assets(runtime: &Runtime) -> Result<&Assets, CommandFailure> {
    runtime.assets().ok_or_else(|| {
        CommandFailure::new(
            Exit::Configuration,
            "cannot find your home folder, so there is no cache",
        )
        .hint("set HOME, or XDG_CACHE_HOME and XDG_DATA_HOME")
    })
}

fn no_weights_failure(wanted: &ModelId, declared: &[Asset]) -> CommandFailure {
    let known: Vec<_> = declared.iter().map(|asset| asset.id.as_str()).collect();
    let failure =
        CommandFailure::new(Exit::Usage, format!("no weights to download for `{wanted}`"));
    match known.as_slice() {
        [] => failure.hint("no plugin declares a model; `jaato plugin list` lists the plugins"),
        known => failure.hint(format!("there are some for {}", known.join(", "))),
    }
}

/// Shows the events of a fetch or an import as a session would.
fn asset_reporter(view: &Arc<View>) -> jaato_runtime::AssetReport {
    let tell = delta_printer(view);
    Arc::new(move |event| tell(asset_progress_delta(&event)))
}

/// Shows deltas while models are fetched.
fn delta_printer(view: &Arc<View>) -> DeltaCallback {
    let view = Arc::clone(view);
    Arc::new(move |delta| {
        let source = "models".to_owned();
        let event = match delta {
            Delta::Progress { label, done, total, .. } => {
                Event::Progress { source, label, done, total }
            }
            Delta::Notice { text, .. } => Event::Notice { source, text },
            Delta::Text { .. }
            | Delta::Thought { .. }
            | Delta::ToolCall(_)
            | Delta::Output { .. }
            | Delta::FileChanged(_)
            | Delta::PlanChanged(_)
            | Delta::Alive
            | Delta::Unknown => return,
        };
        let session = SessionId::from("");
        view.receive_event(EventEnvelope { v: EventEnvelope::VERSION, seq: 0, session, event });
    })
}

fn format_size(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}
