//! From the command line to a runtime, for every command.

use jaato_runtime::config::Overrides;
use jaato_runtime::config::trust::{TrustedFileChange, WorkspaceState};
use jaato_runtime::loader::install_crash_reports;
use jaato_runtime::registry::PluginStatus;
use jaato_runtime::types::Error;
use jaato_runtime::{Runtime, Setup, SetupArguments, problem_line, visible};
use serde_json::{Map, Value};

use crate::args::{EnvironmentArgs, GlobalArgs};
use crate::exit::{CommandFailure, Exit};
use crate::{report, terminal};

/// Converts the options that every command takes.
pub fn setup_arguments(global: GlobalArgs) -> SetupArguments {
    let mut overrides = Overrides::default();
    if global.offline {
        overrides.offline = Some(true);
    }
    SetupArguments {
        overrides,
        plugin_dirs: global.plugin_dir,
        config_file: global.config,
        env_file: global.env_file,
        ..SetupArguments::default()
    }
}

/// Adds the execution environment that the command line names, or selects by one of its options.
pub fn add_environment(arguments: &mut SetupArguments, environment: &EnvironmentArgs) {
    let chosen = environment.environment.clone();
    let option = short_options(environment).next().map(|(name, _)| name.to_owned());
    arguments.environment_option = option.filter(|_| chosen.is_none());
    arguments.overrides.environment = chosen;
}

/// Returns the command line's settings for the execution environment. Its description defines the
/// settings of `--image` and `--container`.
pub fn environment_options(
    runtime: &Runtime,
    environment: &EnvironmentArgs,
) -> Result<Map<String, Value>, Error> {
    let name = &runtime.setup().config.environment;
    let listed = runtime.list_environments().into_iter().find(|listed| listed.spec.name == *name);
    let settings = listed.map(|listed| listed.spec.options).unwrap_or_default();
    let short = short_options(environment).map(|(option, value)| {
        let setting = settings.get(option).map_or(option, String::as_str);
        (setting.to_owned(), value.to_owned())
    });
    let given: Vec<_> = short.chain(environment.environment_option.iter().cloned()).collect();
    if given.is_empty() {
        return Ok(Map::new());
    }
    runtime.environment_options(name, &given)
}

/// Returns true if a session with these options works in a container that exists only for it.
pub fn has_own_container(runtime: &Runtime, options: &Map<String, Value>) -> bool {
    let config = &runtime.setup().config;
    let mut environments = runtime.list_environments().into_iter();
    let listed = environments.find(|listed| listed.spec.name == config.environment);
    let Some(listed) = listed else { return false };
    let [container, image] = ["container", "image"].map(|name| listed.spec.options.get(name));
    let Some(container) = container else { return false };
    let configured = config.plugin_settings.get(listed.plugin.as_str());
    let is_named = options.contains_key(container);
    let has_image = image.is_some_and(|image| options.contains_key(image));
    let is_configured = configured.is_some_and(|it| it.values().contains_key(container));
    !is_named && (has_image || !is_configured)
}

fn short_options(environment: &EnvironmentArgs) -> impl Iterator<Item = (&'static str, &str)> {
    let EnvironmentArgs { image, container, .. } = environment;
    let options = [("image", image), ("container", container)];
    options.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
}

/// Reads folders, trust and configuration.
pub fn read_setup(arguments: SetupArguments) -> Result<Setup, CommandFailure> {
    Setup::from_process(arguments)
        .map_err(|error| CommandFailure::new(Exit::Configuration, &error).maybe_hint(error.hint()))
}

/// Finds the plugins.
pub async fn start_runtime(arguments: SetupArguments) -> Result<Runtime, CommandFailure> {
    Ok(start_runtime_with(read_setup(arguments)?).await)
}

/// Finds the plugins of a setup, and prepares for plugins that misbehave inside this process.
pub async fn start_runtime_with(setup: Setup) -> Runtime {
    let runtime = Runtime::start(setup).await;
    install_crash_reports(runtime.log().path());
    terminal::log_what_is_printed(runtime.log());
    // Threads that have run a plugin's code run its destructors when they end. A crash there would
    // lose the exit code of the work. So they end with the process.
    std::mem::forget(runtime.hold_plugin_threads());
    runtime
}

/// Finds the plugins for a command that prints its result and ends the process. Freeing the facts
/// about many plugins would take longer than printing them.
pub async fn lasting_runtime(
    arguments: SetupArguments,
) -> Result<&'static Runtime, CommandFailure> {
    Ok(Box::leak(Box::new(start_runtime(arguments).await?)))
}

/// Ends everything that runs, and reports processes that commands had left running, and an
/// incomplete ledger.
pub async fn close_runtime(runtime: Runtime) {
    let told = |line: String| report::print_problems(&[line]);
    tokio::select! {
        () = runtime.finish_plugin_work(&told) => {}
        // A user who presses Ctrl-C now does not want to wait longer.
        _ = tokio::signal::ctrl_c() => {}
    }
    let ending = runtime.close().await;
    report::print_problems(&ending.processes.iter().map(ToString::to_string).collect::<Vec<_>>());
    report::print_problems(&ending.orphans.iter().map(ToString::to_string).collect::<Vec<_>>());
    report::print_problems(&ending.resources);
    report::print_problems(&ending.ledger);
}

/// Lists the problems, for commands that do not list the plugins themselves: that the workspace is
/// not trusted, and a line for each plugin file that failed or whose names are taken. A plugin that
/// only waits for trust is not a problem.
pub fn list_problems(runtime: &Runtime) -> Vec<String> {
    let mut problems = Vec::from_iter(workspace_line(runtime.setup()));
    problems.extend_from_slice(runtime.problems());
    for entry in runtime.registry().plugins() {
        if !matches!(entry.status, PluginStatus::Refused(_) | PluginStatus::Failed(_)) {
            continue;
        }
        if let Some((why, hint)) = entry.unusable_reason() {
            let path = entry.candidate.path.display();
            let text = format!("cannot use `{path}` as a plugin: {why}");
            problems.push(problem_line(&text, hint.as_deref()));
        }
    }
    problems
}

/// Describes the workspace's state of trust in one line, if there is something to report.
pub fn workspace_line(setup: &Setup) -> Option<String> {
    let root = setup.workspace.root().display().to_string();
    let root = visible::visible_name(&root);
    match &setup.workspace_state {
        WorkspaceState::Nothing | WorkspaceState::Trusted(_) => None,
        WorkspaceState::Untrusted { found } => Some(format!(
            "workspace `{root}` is not trusted, so jaato ignores {}; run `jaato trust` to trust it",
            join_names(found)
        )),
        WorkspaceState::Changed { files } => {
            let changes: Vec<_> = files
                .iter()
                .map(|file| {
                    let what = match file.kind {
                        TrustedFileChange::Added => "was added",
                        TrustedFileChange::Changed => "changed",
                        TrustedFileChange::Removed => "was removed",
                    };
                    format!("`{}` {what}", visible::visible_name(&file.name))
                })
                .collect();
            Some(format!(
                "workspace `{root}` is no longer trusted: {}; run `jaato trust` to trust it again",
                first_names(&changes).join(", ")
            ))
        }
    }
}

fn join_names(names: &[String]) -> String {
    let quoted: Vec<_> =
        names.iter().map(|name| format!("`{}`", visible::visible_name(name))).collect();
    first_names(&quoted).join(", ")
}

/// Names the first few and counts the rest.
fn first_names(names: &[String]) -> Vec<String> {
    const SHOWN_MAX: usize = 4;
    let mut shown: Vec<_> = names.iter().take(SHOWN_MAX).cloned().collect();
    if names.len() > SHOWN_MAX {
        shown.push(format!("{} more", names.len() - SHOWN_MAX));
    }
    shown
}
