//! `jaato plugin install` and `remove`: the user's own plugins folder.

use std::path::{Path, PathBuf};

use jaato_install::{self as install, InstallSource, PlacedPlugin, placed_plugins};
use jaato_runtime::config::trust::TrustStore;
use jaato_runtime::loader::PlaceKind;
use jaato_runtime::registry::{PluginCandidate, PluginFileTrust};
use jaato_runtime::types::grant::requested_grants;
use jaato_runtime::types::{Description, Manifest};
use jaato_runtime::{
    Runtime, Setup, file_sha256, list_search_folders, registry_rules, trust_line, visible,
};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{plugin, report, start, trust};

/// Installs a plugin from this machine.
pub async fn install_plugin(global: GlobalArgs, what: &Path) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let setup = runtime.setup();
    let checked = check_install_source(&runtime, what).await?;
    let CheckedPlugin { source, description, unusable, folder } = checked;
    let manifest = source.manifest();
    let name = &manifest.name;
    let installed = install::install_plugin(&source, &folder).map_err(install_failure)?;
    let instead = match &installed.before {
        Some(before) => format!(", in place of {before}"),
        None => String::new(),
    };
    let offered = plugin::describe_offer(manifest, &description);
    report::print_line(&format!("installed `{name}` {}{instead}: {offered}", manifest.version))?;
    report::print_line(&format!("  {}", installed.path.display()))?;
    if !unusable.is_empty() {
        let lines: Vec<_> = unusable.iter().map(|line| visible::visible_name(line)).collect();
        report::print_line(&format!("some parts cannot be used:\n  {}", lines.join("\n  ")))?;
    }
    if setup.config.plugins_disabled.iter().any(|disabled| disabled == name.as_str()) {
        report::print_line(&format!("it is disabled: `jaato plugin enable {name}` enables it"))?;
    }
    report_missing_grants(setup, &source, &description, &installed.path)?;
    if is_trusted(setup, &installed.path)? {
        report::print_line("this content is already trusted: it runs inside jaato")?;
        return Ok(Exit::Done);
    }
    report::print_line(&format!(
        "it is not trusted: it runs in a worker without keys (a worker is not a sandbox). To have it run inside \
         jaato:\n  {}",
        trust_line(&installed.path, &digest_file(&installed.path)?)
    ))?;
    Ok(Exit::Done)
}

/// A plugin that may be installed.
pub struct CheckedPlugin {
    /// Its file.
    pub source: InstallSource,
    /// Its description.
    pub description: Description,
    /// A line for each part of it that cannot be used.
    pub unusable: Vec<String>,
    /// The folder for it.
    pub folder: PathBuf,
}

/// Finds a plugin on this machine, describes it, and checks its names.
///
/// # Errors
/// If it could not be used, or would take a name from a used plugin.
pub async fn check_install_source(
    runtime: &Runtime,
    what: &Path,
) -> Result<CheckedPlugin, CommandFailure> {
    let setup = runtime.setup();
    let folder = own_plugin_folder(setup)?;
    let source = InstallSource::find(what, &folder).map_err(install_failure)?;
    refuse_shipped_name(setup, source.manifest())?;
    let description = plugin::describe_plugin(setup, source.file()).await?;
    let unusable = refuse_conflict(runtime, &source, &description, &folder)?;
    Ok(CheckedPlugin { source, description, unusable, folder })
}

/// Refuses a plugin that has the name of a shipped one.
fn refuse_shipped_name(setup: &Setup, manifest: &Manifest) -> Result<(), CommandFailure> {
    let name = &manifest.name;
    let all = placed_plugins(&list_search_folders(setup));
    let is_it = |plugin: &&PlacedPlugin| {
        plugin.manifest.name == *name && plugin.file.place == PlaceKind::Shipped
    };
    let Some(shipped) = all.iter().find(is_it) else { return Ok(()) };
    let path = shipped.file.path.display();
    let text = format!("plugin `{name}` has the name of a shipped plugin: `{path}`");
    Err(CommandFailure::new(Exit::Plugin, text).hint("give your plugin another name"))
}

/// Reports the requested services that the plugin was not granted.
fn report_missing_grants(
    setup: &Setup,
    source: &InstallSource,
    description: &Description,
    path: &Path,
) -> Result<(), CommandFailure> {
    let asked = requested_grants(description);
    let (name, digest) = (source.manifest().name.as_str(), digest_file(path)?);
    let granted = setup.grants.granted_services(name, &digest);
    let lacking: Vec<_> = asked.into_iter().filter(|grant| !granted.contains(*grant)).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let lacking = lacking.join("`, `");
    report::print_line(&format!(
        "it asks for `{lacking}`; to grant it that:\n  jaato plugin grant {name}"
    ))
}

/// Refuses a plugin that could not be used at its path, or that would take a name from a used one.
/// Returns a line for each part of it that cannot be used.
fn refuse_conflict(
    runtime: &Runtime,
    source: &InstallSource,
    description: &Description,
    folder: &Path,
) -> Result<Vec<String>, CommandFailure> {
    let setup = runtime.setup();
    let name = &source.manifest().name;
    let (path, before) = install::find_plugin_path(name, folder);
    let digest = digest_file(source.file())?;
    let trust = if is_trusted(setup, source.file())? {
        PluginFileTrust::ByHash(digest)
    } else {
        PluginFileTrust::No(digest)
    };
    let newcomer = PluginCandidate {
        path: path.clone(),
        place: PlaceKind::User.name(),
        trust,
        manifest: source.manifest().clone(),
        description: Some(Ok(description.clone())),
    };
    let replaced = before.map_or(path, |plugin| plugin.file.path);
    let registry = runtime.registry();
    let text = match install::find_conflicts(&registry, newcomer, &replaced, &registry_rules(setup))
    {
        Ok(unusable) => return Ok(unusable),
        Err(install::PluginConflict::Refused(why)) => {
            format!("plugin `{name}` could not be used, so it is not installed: {why}")
        }
        Err(install::PluginConflict::Displaces(other, why)) => {
            format!("plugin `{name}` is not installed, because `{other}` would stop working: {why}")
        }
    };
    Err(CommandFailure::new(Exit::Plugin, text)
        .hint("give the plugin and its tools unique names, or remove the other plugin first"))
}

/// Removes a plugin from the user's own folder.
pub fn remove_plugin(global: GlobalArgs, name: &str) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    own_plugin_folder(&setup)?;
    let all = placed_plugins(&list_search_folders(&setup));
    let named: Vec<_> = all.iter().filter(|plugin| plugin.manifest.name.as_str() == name).collect();
    let is_own = |plugin: &&&PlacedPlugin| plugin.file.place == PlaceKind::User;
    let own: Vec<_> = named.iter().filter(is_own).collect();
    if own.is_empty() {
        return Err(match named.first() {
            Some(other) => placed_elsewhere_failure(name, other),
            None => unknown_plugin_failure(name, &all),
        });
    }
    for plugin in own {
        let path = &plugin.file.path;
        let trusted = if is_trusted(&setup, path)? { Some(digest_file(path)?) } else { None };
        std::fs::remove_file(path).map_err(|error| {
            CommandFailure::new(
                Exit::Plugin,
                format!("cannot remove `{}`: {error}", path.display()),
            )
        })?;
        let version = &plugin.manifest.version;
        report::print_line(&format!("removed `{name}` {version}: {}", path.display()))?;
        if let Some(digest) = trusted {
            report::print_line(&format!(
                "its content is still trusted if you install it again; to revoke that:\n  jaato plugin untrust {digest}"
            ))?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the failure for an unknown plugin name, with the most similar known name.
pub fn unknown_plugin_failure(name: &str, all: &[PlacedPlugin]) -> CommandFailure {
    CommandFailure::unknown("plugin", name, all.iter().map(|plugin| plugin.manifest.name.as_str()))
}

fn placed_elsewhere_failure(name: &str, plugin: &PlacedPlugin) -> CommandFailure {
    let path = plugin.file.path.display();
    let what = match plugin.file.place {
        PlaceKind::Shipped => "is shipped with jaato",
        PlaceKind::CommandLine | PlaceKind::Variable | PlaceKind::User | PlaceKind::Workspace => {
            "is not in your own plugins folder"
        }
    };
    CommandFailure::new(Exit::Plugin, format!("plugin `{name}` {what}: `{path}`"))
        .hint(format!("`jaato plugin disable {name}` disables it"))
}

fn own_plugin_folder(setup: &Setup) -> Result<PathBuf, CommandFailure> {
    Ok(setup.folders.plugins_folder()?)
}

fn is_trusted(setup: &Setup, file: &Path) -> Result<bool, CommandFailure> {
    let Ok(data) = setup.folders.data_folder() else { return Ok(false) };
    match TrustStore::in_folder(data).is_plugin_trusted(&digest_file(file)?) {
        Err(error) if error.is_record_error() => Ok(false),
        told => told.map_err(trust::trust_failure),
    }
}

pub fn digest_file(file: &Path) -> Result<String, CommandFailure> {
    file_sha256(file).map_err(|error| {
        CommandFailure::new(Exit::Plugin, format!("cannot read `{}`: {error}", file.display()))
    })
}

pub fn install_failure(error: install::InstallError) -> CommandFailure {
    let is_address = matches!(error, install::InstallError::Address(_));
    let exit = if is_address { Exit::Usage } else { Exit::Plugin };
    CommandFailure::new(exit, &error).maybe_hint(error.hint())
}
