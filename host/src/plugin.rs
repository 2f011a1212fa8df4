//! `jaato plugin`: lists plugins, and manages the user's trust in them.

use std::path::Path;
use std::time::SystemTime;

use jaato_runtime::config::trust::{TrustStore, refuse_inside_session};
use jaato_runtime::registry::{PluginEntry, PluginFileTrust, PluginStatus};
use jaato_runtime::types::hooks::Hook;
use jaato_runtime::types::{API_VERSION, CredentialSpec, Description, Manifest, PluginKind};
use jaato_runtime::{
    Runtime, Setup, describe_plugin_file, file_sha256, forget_copy, loader, supervisor,
    trust_command, visible,
};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{find, grant, report, start, trust as workspace_trust};

/// The warning before the user trusts code.
const TRUST_WARNING: &str = "an untrusted plugin runs in a worker: it cannot crash jaato and gets no API key, \
but it can do what you can; a trusted plugin runs inside jaato. Keep only plugins that you know";

/// Up to this many tools of a plugin, one line names all.
const TOOLS_NAMED_MAX: usize = 20;
/// How many tools it names if there are more.
const TOOLS_NAMED_OF_MANY: usize = 5;

/// Lists the plugins, including those that could not be used.
pub async fn list_plugins(global: GlobalArgs, as_json: bool) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    if as_json {
        let registry = runtime.registry();
        let plugins = registry.plugins().iter();
        let plugins: Vec<_> = plugins.map(|entry| plugin_to_json(&runtime, entry)).collect();
        return report::print_exact_json(
            &json!({ "plugins": plugins, "problems": runtime.problems() }),
        );
    }
    report::print_problems(&start::workspace_line(runtime.setup()).into_iter().collect::<Vec<_>>());
    report::print_problems(runtime.problems());
    print_list(&runtime)
}

/// Prints the list of the current plugins.
pub fn print_list(runtime: &Runtime) -> CommandResult {
    let registry = runtime.registry();
    let plugins = registry.plugins();
    if plugins.is_empty() {
        report::print_line("no plugins")?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = plugins.iter().map(|entry| plugin_row(runtime, entry)).collect();
    report::print_table(&["plugin", "version", "from", "status", "runs", "offers"], &rows)?;
    let mut hints = Vec::new();
    for entry in plugins {
        if let Some((why, hint)) = entry.unusable_reason() {
            let (name, path) = (&entry.candidate.manifest.name, plugin_path(entry));
            hints.push(visible::visible_name(&format!("{name} ({path}): {why}")).into_owned());
            hints.extend(hint.map(|hint| format!("  {}", visible::visible_name(&hint))));
        } else if let Some(command) = trust_command(entry) {
            let name = &entry.candidate.manifest.name;
            let path = plugin_path(entry);
            hints.push(format!("{name} ({}): not trusted", visible::visible_name(&path)));
            hints.push(format!("  {}", visible::visible_name(&command)));
        }
        if let Some(lacking) =
            grant::missing_grants_line(runtime.setup(), entry).filter(|_| is_used(entry))
        {
            let name = &entry.candidate.manifest.name;
            hints.push(format!("{name}: {lacking}\n  jaato plugin grant {name}"));
        }
        hints.extend(kept_version_reason(runtime, entry));
    }
    if !hints.is_empty() {
        report::print_sentence(&format!("\n{}", hints.join("\n")))?;
    }
    if plugins.iter().any(|entry| trust_command(entry).is_some()) {
        report::print_sentence(&format!("\n{TRUST_WARNING}"))?;
    }
    Ok(Exit::Done)
}

/// Shows one plugin.
pub async fn show_plugin(global: GlobalArgs, name: &str, as_json: bool) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    if as_json {
        let registry = runtime.registry();
        return report::print_exact_json(&plugin_to_json(
            &runtime,
            find::find_plugin(&runtime, &registry, name)?,
        ));
    }
    print_plugin(&runtime, name)
}

/// Prints the current facts about one plugin.
pub fn print_plugin(runtime: &Runtime, name: &str) -> CommandResult {
    let registry = runtime.registry();
    let entry = find::find_plugin(runtime, &registry, name)?;
    let manifest = &entry.candidate.manifest;
    report::print_line(&format!("{} {}", manifest.name, visible::visible_name(&manifest.version)))?;
    report::print_line(&format!("  file        {}", visible::visible_name(&plugin_path(entry))))?;
    report::print_line(&format!("  from        {}", entry.candidate.place))?;
    report::print_line(&format!(
        "  plugin-api  {} (this host speaks {API_VERSION})",
        manifest.api
    ))?;
    report::print_line(&format!("  trusted     {}", trust_text(entry)))?;
    report::print_line(&format!("  runs        {}", run_location(runtime, entry)))?;
    if let Some(command) = trust_command(entry) {
        report::print_line(&format!("              {}", visible::visible_name(&command)))?;
    }
    if let Some(why) = runtime.kept_edition_reason(name) {
        report::print_line(&format!(
            "  kept        its file was replaced by one that cannot be used: {why}"
        ))?;
    }
    if let Some((why, hint)) = entry.unusable_reason() {
        report::print_line(&format!("  not used    {}", visible::visible_name(&why)))?;
        if let Some(hint) = hint {
            report::print_line(&format!("              {}", visible::visible_name(&hint)))?;
        }
    }
    let Some(description) = entry.description() else { return Ok(Exit::Done) };
    for tool in &description.tools {
        report::print_line(&format!(
            "  tool        {}",
            visible::visible_name(tool.name.as_str())
        ))?;
    }
    for OfferedFacet { kind, name, title } in other_facets(manifest, description) {
        report::print_line(format!("  {kind:<11} {name} {title}").trim_end())?;
    }
    for left_out in &entry.left_out {
        report::print_line(&format!("  left out    {}: {}", left_out.what, left_out.why))?;
    }
    for credential in &description.credentials {
        let CredentialSpec { variable, origin, base_url_variable, .. } = credential;
        let or = if base_url_variable.is_empty() {
            String::new()
        } else {
            format!(", or for the server that `{base_url_variable}` names")
        };
        let server = if origin.is_empty() { "the `base_url` that you set" } else { origin };
        report::print_line(&format!("  key         {variable} for {server}{or}"))?;
    }
    for asset in &description.assets {
        report::print_line(&format!(
            "  asset       {} ({} bytes, {})",
            asset.id, asset.bytes, asset.license
        ))?;
    }
    for command in &description.commands {
        report::print_line(&format!("  command     {}: {}", command.name, command.description))?;
    }
    grant::print_grants(runtime, entry)?;
    if let Some(schema) = &description.config_schema {
        report::print_line(&format!("  settings of [plugins.{}]:\n{schema:#}", manifest.name))?;
    }
    Ok(Exit::Done)
}

/// Trusts a plugin file by its content.
pub fn trust_plugin_file(global: GlobalArgs, file: &Path, sha256: &str) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    refuse_inside_session(&setup.variables).map_err(workspace_trust::trust_failure)?;
    let manifest = read_manifest(file)?;
    let has = file_sha256(file).map_err(|error| {
        CommandFailure::new(Exit::Plugin, format!("cannot read `{}`: {error}", file.display()))
    })?;
    if !has.eq_ignore_ascii_case(sha256.trim()) {
        let text =
            format!("checksum mismatch for `{}`: expected {sha256}, found {has}", file.display());
        return Err(CommandFailure::new(Exit::Plugin, text)
            .hint("check `jaato plugin list` again before you trust it"));
    }
    let data = setup.folders.data_folder()?;
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    TrustStore::in_folder(data)
        .trust_plugin(&has, manifest.name.as_str(), &file, SystemTime::now())
        .map_err(workspace_trust::trust_failure)?;
    report::print_sentence(&format!(
        "plugin `{}` is trusted with this content: {has}",
        manifest.name
    ))?;
    grant::carry_over_grants(data, manifest.name.as_str(), &has)?;
    Ok(Exit::Done)
}

/// Revokes the trust in a plugin's content: by a file, a digest, or the name of an existing plugin.
pub async fn untrust_plugin(global: GlobalArgs, what: &str) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let (setup, registry) = (runtime.setup(), runtime.registry());
    refuse_inside_session(&setup.variables).map_err(workspace_trust::trust_failure)?;
    let is_digest = what.len() == 64 && what.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digest = if is_digest {
        what.to_ascii_lowercase()
    } else if let Some(entry) = registry.plugin(what) {
        match &entry.candidate.trust {
            PluginFileTrust::ByHash(digest) | PluginFileTrust::No(digest) => digest.clone(),
            PluginFileTrust::Shipped | PluginFileTrust::WorkspaceNot => {
                let text = format!("plugin `{what}` is not trusted by its content");
                return Err(CommandFailure::new(Exit::Plugin, text)
                    .hint(format!("`jaato plugin disable {what}` disables it")));
            }
        }
    } else {
        file_sha256(Path::new(what)).map_err(|error| {
            CommandFailure::new(
                Exit::Usage,
                format!("there is no plugin and no file `{what}`: {error}"),
            )
            .hint("`jaato plugin list` lists the plugins")
        })?
    };
    let data = setup.folders.data_folder()?;
    let was_trusted = TrustStore::in_folder(data)
        .untrust_plugin(&digest)
        .map_err(workspace_trust::trust_failure)?;
    let copies = setup.folders.trusted_plugins_folder()?;
    forget_copy(&digest, &copies).map_err(|error| {
        let text = format!("cannot remove the copy in `{}`: {error}", copies.display());
        CommandFailure::new(Exit::Plugin, text)
    })?;
    let text = if was_trusted { "is no longer trusted" } else { "was not trusted" };
    report::print_sentence(&format!("the content {digest} {text}"))?;
    Ok(Exit::Done)
}

/// Lets a plugin describe itself, in a child process.
pub async fn describe_plugin(setup: &Setup, file: &Path) -> Result<Description, CommandFailure> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let described = describe_plugin_file(&supervisor(setup), &setup.executable, &file).await;
    described.map_err(|error| CommandFailure {
        exit: Exit::Plugin,
        message: format!("cannot use `{}` as a plugin: {}", file.display(), error.message),
        hint: error.hint,
    })
}

/// Describes what a plugin offers.
pub fn describe_offer(manifest: &Manifest, description: &Description) -> String {
    let tools = shorten_tool_names(description.tools.iter().map(|tool| tool.name.to_string()));
    let tools = (!tools.is_empty()).then(|| format!("tools {}", tools.join(", ")));
    let others = other_facets(manifest, description);
    let others = others.map(|OfferedFacet { kind, name, .. }| format!("{kind} {name}"));
    let offered: Vec<_> = tools.into_iter().chain(others).collect();
    if offered.is_empty() { "no tools".to_owned() } else { offered.join("; ") }
}

/// Something that a plugin offers besides tools and commands.
struct OfferedFacet<'a> {
    kind: &'static str,
    name: &'a str,
    /// Empty if the name is enough.
    title: &'a str,
}

/// Lists what a plugin offers besides tools and commands, one row per kind.
fn other_facets<'a>(
    manifest: &'a Manifest,
    description: &'a Description,
) -> impl Iterator<Item = OfferedFacet<'a>> {
    let gc = manifest.kinds.contains(&PluginKind::Gc).then(|| manifest.name.source());
    let provider = description.provider.as_ref();
    let environment = description.environment.as_ref();
    let rows = [
        ("provider", provider.map(|it| (it.name.as_str(), it.title.as_str()))),
        ("gc", gc.map(|name| (name, ""))),
        ("environment", environment.map(|it| (it.name.as_str(), ""))),
    ];
    let named = rows.into_iter().filter_map(|(kind, named)| {
        let (name, title) = named?;
        Some(OfferedFacet { kind, name, title })
    });
    let hooks = description.hooks.iter().filter(|hook| **hook != Hook::Unknown);
    named.chain(hooks.map(|hook| OfferedFacet { kind: "hook", name: hook.name(), title: "" }))
}

/// Reads the manifest of a plugin file, without running it.
pub fn read_manifest(file: &Path) -> Result<Manifest, CommandFailure> {
    loader::read_manifest(file).map_err(|error| {
        let failure = CommandFailure::new(Exit::Plugin, &error);
        if file.exists() {
            return failure.maybe_hint(error.problem.hint());
        }
        failure.hint("name a file; `jaato plugin list` and `show` print the file of each plugin")
    })
}

/// Explains why a running plugin differs from its file, if it does.
fn kept_version_reason(runtime: &Runtime, entry: &PluginEntry) -> Option<String> {
    let name = &entry.candidate.manifest.name;
    let why = runtime.kept_edition_reason(name.as_str())?.replace("\nhint: ", "\n  ");
    let path = plugin_path(entry);
    let path = visible::visible_name(&path);
    Some(format!("{name} ({path}): stays as it was, its file can no longer be used: {why}"))
}

fn is_used(entry: &PluginEntry) -> bool {
    entry.status == PluginStatus::Active
}

fn plugin_path(entry: &PluginEntry) -> String {
    entry.candidate.path.display().to_string()
}

fn plugin_row(runtime: &Runtime, entry: &PluginEntry) -> Vec<String> {
    let manifest = &entry.candidate.manifest;
    let runs = match (&entry.status, runtime.worker_reason(entry)) {
        (PluginStatus::Active, None) => "inside jaato",
        (PluginStatus::Active, Some(_)) => "in a worker",
        (_, _) => "-",
    };
    vec![
        manifest.name.to_string(),
        manifest.version.clone(),
        entry.candidate.place.to_owned(),
        plugin_status(entry).to_owned(),
        runs.to_owned(),
        describe_offers(entry),
    ]
}

fn plugin_status(entry: &PluginEntry) -> &'static str {
    match &entry.status {
        PluginStatus::Active if matches!(entry.candidate.trust, PluginFileTrust::No(_)) => {
            "not trusted"
        }
        PluginStatus::Active => "active",
        PluginStatus::Disabled => "disabled",
        PluginStatus::NotTrusted => "not trusted",
        PluginStatus::Refused(_) => "refused",
        PluginStatus::Failed(_) => "failed",
    }
}

fn describe_offers(entry: &PluginEntry) -> String {
    let Some(description) = entry.description() else { return String::new() };
    let tools = description.tools.iter().map(|tool| tool.name.to_string());
    let others = other_facets(&entry.candidate.manifest, description);
    let others = others.map(|OfferedFacet { kind, name, .. }| format!("{kind} {name}"));
    shorten_tool_names(tools).into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// Lists the names of tools. If there are many, only the first ones and the number of the others.
fn shorten_tool_names(tools: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = tools.collect();
    if names.len() > TOOLS_NAMED_MAX {
        let more = names.split_off(TOOLS_NAMED_OF_MANY).len();
        names.push(format!("{more} more tools"));
    }
    names
}

fn trust_text(entry: &PluginEntry) -> String {
    match &entry.candidate.trust {
        PluginFileTrust::Shipped => "as the executable: it is shipped next to it".to_owned(),
        PluginFileTrust::ByHash(digest) => format!("by its content, sha256 {digest}"),
        PluginFileTrust::No(digest) => format!("no; its sha256 is {digest}"),
        PluginFileTrust::WorkspaceNot => {
            "no; its workspace is not trusted, so jaato did not read it".to_owned()
        }
    }
}

fn run_location(runtime: &Runtime, entry: &PluginEntry) -> String {
    match (&entry.status, runtime.worker_reason(entry), &entry.candidate.trust) {
        (PluginStatus::Active, Some(why), _) => format!("in a worker, because {why}"),
        (PluginStatus::Active, None, PluginFileTrust::ByHash(_)) => {
            "inside jaato, from a private copy".to_owned()
        }
        (PluginStatus::Active, None, _) => "inside jaato".to_owned(),
        (_, _, _) => "not at all".to_owned(),
    }
}

fn plugin_to_json(runtime: &Runtime, entry: &PluginEntry) -> Value {
    let (why, hint) = entry.unusable_reason().unzip();
    let digest = match &entry.candidate.trust {
        PluginFileTrust::ByHash(digest) | PluginFileTrust::No(digest) => Some(digest),
        PluginFileTrust::Shipped | PluginFileTrust::WorkspaceNot => None,
    };
    json!({
        "name": entry.candidate.manifest.name,
        "version": entry.candidate.manifest.version,
        "api": entry.candidate.manifest.api,
        "path": plugin_path(entry),
        "from": entry.candidate.place,
        "status": plugin_status(entry).replace(' ', "_"),
        "why": why,
        "hint": hint.flatten().or_else(|| trust_command(entry)),
        "runs": run_location(runtime, entry),
        "sha256": digest,
        "trusted": matches!(entry.candidate.trust, PluginFileTrust::Shipped | PluginFileTrust::ByHash(_)),
        "asks_for": grant::grants_to_json(runtime, entry),
        "manifest": entry.candidate.manifest,
        "description": entry.description(),
        "left_out": entry.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
