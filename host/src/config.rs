//! `jaato config`: the configuration, the origin of each value, and the configuration files.

use std::path::{Path, PathBuf};

use jaato_runtime::Setup;
use jaato_runtime::config::trust::{CONFIG_FILE, ENV_FILE, WorkspaceState};
use serde_json::json;

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, start};

/// Prints each value with its layer.
pub async fn show_config(global: GlobalArgs) -> CommandResult {
    // Plugins define which variables set their settings.
    let runtime = start::lasting_runtime(start::setup_arguments(global)).await?;
    let setup = runtime.setup();
    report::print_problems(&start::workspace_line(setup).into_iter().collect::<Vec<_>>());
    let warnings: Vec<_> =
        setup.config.warnings.iter().map(|warning| warning.text.clone()).collect();
    report::print_problems(&warnings);
    report::print_problems(runtime.setting_problems());
    report::print_line(setup.config.show_text_with(runtime.given_settings()).trim_end())?;
    Ok(Exit::Done)
}

/// A file that may contain configuration.
struct ConfigFileCandidate {
    layer: &'static str,
    path: PathBuf,
    state: &'static str,
}

/// Prints the files that may contain configuration, in the order of their layers, and whether each
/// is read.
pub fn show_config_paths(global: GlobalArgs, as_json: bool) -> CommandResult {
    let named = global.config.clone();
    let setup = start::read_setup(start::setup_arguments(global))?;
    let places = config_file_candidates(&setup, named)?;
    if as_json {
        let listed = places.iter().map(|place| {
            let path = place.path.display().to_string();
            json!({ "layer": place.layer, "path": path, "state": place.state })
        });
        return report::print_exact_json(&listed.collect());
    }
    let rows: Vec<_> = places
        .into_iter()
        .map(|place| {
            let path = place.path.display().to_string();
            vec![place.layer.to_owned(), place.state.to_owned(), path]
        })
        .collect();
    report::print_table(&["layer", "state", "file"], &rows)?;
    Ok(Exit::Done)
}

fn config_file_candidates(
    setup: &Setup,
    named: Option<PathBuf>,
) -> Result<Vec<ConfigFileCandidate>, CommandFailure> {
    let own = match named {
        Some(path) => std::path::absolute(path).map_err(|error| {
            CommandFailure::new(Exit::Failed, format!("cannot find the working directory: {error}"))
        })?,
        None => setup.folders.config_file()?,
    };
    let root = setup.workspace.root();
    let is_trusted = matches!(setup.workspace_state, WorkspaceState::Trusted(_));
    let in_workspace = |layer, name: &str| {
        let path = root.join(name);
        let state = if !path_exists(&path) {
            "not there"
        } else if is_trusted {
            "read"
        } else {
            "not trusted"
        };
        ConfigFileCandidate { layer, path, state }
    };
    Ok(vec![
        ConfigFileCandidate {
            layer: "user",
            state: if path_exists(&own) { "read" } else { "not there" },
            path: own,
        },
        in_workspace("workspace", CONFIG_FILE),
        in_workspace("variables file", ENV_FILE),
    ])
}

/// Returns true if the path exists. No file is opened, because an untrusted one may be a pipe.
fn path_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
