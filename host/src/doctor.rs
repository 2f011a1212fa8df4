//! `jaato doctor`: checks the installation and suggests fixes.

use std::time::Duration;

use jaato_runtime::registry::PluginStatus;
use jaato_runtime::types::{API_VERSION, Error};
use jaato_runtime::{ModelState, Runtime, list_search_folders, visible};
use serde_json::json;

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit, exit_for_error};
use crate::{command, grant, mcp, report, start};

/// The memory needed to load the default model, in bytes.
const MEMORY_WANTED_BYTES: u64 = 6 << 30;

/// The longest wait for a model's server. The user is waiting, and a working server is faster.
const SERVER_WAIT: Duration = Duration::from_secs(5);

/// The command of the shipped plugin that searches the web.
const WEB_SEARCH: &str = "web-search";

/// Reports what is found and what is missing. Fails if the configured model could not do a task.
pub async fn run_doctor(global: GlobalArgs) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    report::print_line(&format!("jaato {} (plugin-api {API_VERSION})", env!("CARGO_PKG_VERSION")))?;
    print_finding("executable", &runtime.setup().executable.display().to_string())?;
    check_folders(&runtime)?;
    check_plugins(&runtime)?;
    for (at, line) in mcp::server_states(&runtime).await?.iter().enumerate() {
        print_finding(if at == 0 { "mcp servers" } else { "" }, line.trim_start_matches("MCP: "))?;
    }
    for (at, line) in web_search_state(&runtime).await?.iter().enumerate() {
        print_finding(if at == 0 { "web search" } else { "" }, line)?;
    }
    let checked = check_models(&runtime).await?;
    check_programs()?;
    check_memory()?;
    report::print_problems(runtime.problems());
    let has_no_provider = runtime.registry().providers().next().is_none();
    let has_broken_settings = runtime.has_broken_settings();
    runtime.close().await;
    let Err(error) = checked else {
        if has_broken_settings {
            let text = "a plugin cannot be used because its settings are wrong (see above)";
            return Err(CommandFailure::new(Exit::Configuration, text));
        }
        report::print_line("\nready: jaato run \"What operating system am I running on?\"")?;
        return Ok(Exit::Done);
    };
    if has_no_provider {
        let failure = CommandFailure::new(Exit::Plugin, "no model is available to run a task");
        return Err(
            failure.hint("in a checkout, `cargo xtask build-plugins` builds the shipped plugins")
        );
    }
    // A model that cannot be asked would fail a task with the same exit code.
    let exit = match exit_for_error(error.kind) {
        Exit::Failed => Exit::Provider,
        other => other,
    };
    Err(CommandFailure { exit, message: format!("not ready: {}", error.message), hint: error.hint })
}

fn print_finding(what: &str, text: &str) -> Result<(), CommandFailure> {
    report::print_sentence(&format!("{what:<12} {}", visible::visible_name(text)))
}

fn check_folders(runtime: &Runtime) -> Result<(), CommandFailure> {
    let setup = runtime.setup();
    let folders = &setup.folders;
    match folders.config_file() {
        Ok(file) => {
            let state = if file.exists() { "" } else { " (does not exist, optional)" };
            print_finding("config", &format!("{}{state}", file.display()))?;
        }
        Err(error) => print_finding("config", &format!("none: {error}; {}", error.hint()))?,
    }
    if let Some(path) = runtime.log().path() {
        print_finding("log", &path.display().to_string())?;
    }
    print_finding("workspace", &setup.workspace.root().display().to_string())?;
    match start::workspace_line(setup) {
        Some(line) => print_finding("", &line),
        None => Ok(()),
    }
}

fn check_plugins(runtime: &Runtime) -> Result<(), CommandFailure> {
    for place in list_search_folders(runtime.setup()) {
        let state = if place.folder.is_dir() { "" } else { " (does not exist)" };
        print_finding(
            "plugins in",
            &format!("{} ({}){state}", place.folder.display(), place.kind.name()),
        )?;
    }
    let registry = runtime.registry();
    let entries = registry.plugins();
    let active = entries.iter().filter(|entry| entry.status == PluginStatus::Active).count();
    let tools = registry.tools().count();
    print_finding("plugins", &format!("{active} of {} available, {tools} tools", entries.len()))?;
    for entry in entries {
        if let Some((why, hint)) = entry.unusable_reason() {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            print_finding("", &format!("{}: {why}{hint}", entry.candidate.manifest.name))?;
        } else if let Some(lacking) = grant::missing_grants_line(runtime.setup(), entry) {
            let name = &entry.candidate.manifest.name;
            print_finding("", &format!("{name}: {lacking}; jaato plugin grant {name}"))?;
        }
    }
    Ok(())
}

/// Names the search service in use, and how to get a better one. Empty without the plugin.
async fn web_search_state(runtime: &Runtime) -> Result<Vec<String>, CommandFailure> {
    let text = match command::answer_text(runtime, WEB_SEARCH, json!({})).await? {
        None => return Ok(Vec::new()),
        Some(answer) => answer.unwrap_or_else(|error| format!("it failed: {}", error.message)),
    };
    Ok(text.lines().map(str::to_owned).collect())
}

/// Lists the models, and checks whether the configured one can be used.
async fn check_models(runtime: &Runtime) -> Result<Result<(), Error>, CommandFailure> {
    let default = &runtime.model();
    let (checked, (models, problems)) =
        tokio::join!(runtime.check_model(SERVER_WAIT), runtime.list_models_within(SERVER_WAIT));
    for model in &models {
        let state = match &model.state {
            ModelState::Remote => "".to_owned(),
            ModelState::Here => ", weights are downloaded".to_owned(),
            ModelState::Missing { bytes } => {
                format!(", weights are not downloaded ({:.2} GB)", *bytes as f64 / 1e9)
            }
        };
        let mark = if model.id == *default { " (default)" } else { "" };
        print_finding("model", &format!("{}{mark}{state}", model.id))?;
    }
    match &checked {
        Ok(model) if models.iter().any(|listed| listed.id == model.id) => {}
        Ok(model) => print_finding("model", &format!("{} (default)", model.id))?,
        Err(_) => print_finding("model", &format!("{default} (default) cannot be used"))?,
    }
    for line in problems.iter().flat_map(|problem| problem.lines()) {
        print_finding("", line)?;
    }
    Ok(checked.map(|_| ()))
}

fn check_programs() -> Result<(), CommandFailure> {
    let found = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    if found("python3") {
        print_finding("python3", "found; model weights can also come from pip")
    } else {
        print_finding(
            "python3",
            "missing; model weights cannot come from pip, but `jaato model import FILE` also works",
        )
    }
}

fn check_memory() -> Result<(), CommandFailure> {
    // Only Linux reports it in a file. Elsewhere the model's own check must be enough.
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return Ok(()) };
    let available = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse().ok()
        })
        .map(|kilobytes: u64| kilobytes * 1024);
    match available {
        Some(bytes) if bytes < MEMORY_WANTED_BYTES => print_finding(
            "memory",
            &format!(
                "{:.1} GiB free, low for the default model; MISTRALRS_FORCE_AVX2=1 saves 1.3 GiB",
                to_gib(bytes)
            ),
        ),
        Some(bytes) => print_finding("memory", &format!("{:.1} GiB free", to_gib(bytes))),
        None => Ok(()),
    }
}

fn to_gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
