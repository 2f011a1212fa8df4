//! `jaato plugin grant` and `revoke`: what plugins may do on the user's behalf.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use jaato_runtime::config::trust::{GrantStore, refuse_inside_session};
use jaato_runtime::registry::{PluginEntry, nearest_name};
use jaato_runtime::types::grant::{GRANTS, grant_named};
use jaato_runtime::{GrantHolder, GrantStanding, Runtime, Setup};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{find, report, start, trust};

/// Grants a plugin requested services, or all of them if none are named.
pub async fn grant_services(global: GlobalArgs, name: &str, services: &[String]) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let (setup, registry) = (runtime.setup(), runtime.registry());
    refuse_inside_session(&setup.variables).map_err(trust::trust_failure)?;
    let entry = find::find_plugin(&runtime, &registry, name)?;
    if entry.description().is_none() {
        let (why, hint) = entry.unusable_reason().unwrap_or_default();
        let text = format!("cannot ask plugin `{name}` for its grants: {why}");
        return Err(CommandFailure::new(Exit::Plugin, text).maybe_hint(hint));
    }
    let asked = setup.grants.requested_grants(entry);
    let wanted = check_requested(entry, &asked, services)?;
    if wanted.is_empty() {
        report::print_sentence(&format!("plugin `{name}` asks for nothing that needs a grant"))?;
        return Ok(Exit::Done);
    }
    let holder = GrantHolder::from_entry(entry);
    let Some(digest) = holder.digest() else {
        report::print_sentence(&format!(
            "plugin `{name}` is shipped with jaato, so it already has its grants"
        ))?;
        return Ok(Exit::Done);
    };
    grant_store(setup)?
        .grant_services(name, digest, wanted.iter().copied(), SystemTime::now())
        .map_err(trust::trust_failure)?;
    report::print_sentence(&format!("plugin `{name}` may now:"))?;
    print_services(wanted.iter().copied())?;
    report::print_sentence(&format!(
        "the grant applies to this content of its file, sha256 {digest}; to revoke it:\n  jaato plugin revoke {name}"
    ))?;
    Ok(Exit::Done)
}

/// Revokes a plugin's services, or all of them if none are named. The plugin does not have to exist
/// any longer.
pub async fn revoke_services(global: GlobalArgs, name: &str, services: &[String]) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let setup = runtime.setup();
    refuse_inside_session(&setup.variables).map_err(trust::trust_failure)?;
    for service in services {
        check_grant_name(service)?;
    }
    let names: Vec<_> = services.iter().map(String::as_str).collect();
    let taken = grant_store(setup)?.revoke_services(name, &names).map_err(trust::trust_failure)?;
    if !taken.is_empty() {
        report::print_sentence(&format!("plugin `{name}` may no longer:"))?;
        print_services(taken.iter().map(String::as_str))?;
        return Ok(Exit::Done);
    }
    let registry = runtime.registry();
    let entry = find::find_plugin(&runtime, &registry, name)?;
    let asked = setup.grants.requested_grants(entry);
    if asked.iter().any(|(_, standing)| *standing == GrantStanding::Shipped) {
        let text = format!("plugin `{name}` is shipped with jaato and always has its grants");
        return Err(CommandFailure::new(Exit::Plugin, text)
            .hint(format!("`jaato plugin disable {name}` disables it")));
    }
    report::print_sentence(&format!("plugin `{name}` had none of these grants"))?;
    Ok(Exit::Done)
}

/// Gives a trusted file the grants of an earlier one with the same name, and reports them.
pub fn carry_over_grants(data: &Path, name: &str, digest: &str) -> Result<(), CommandFailure> {
    let carried = GrantStore::in_folder(data).carry_over_grants(name, digest, SystemTime::now());
    let carried: BTreeSet<String> = carried.map_err(trust::trust_failure)?;
    if carried.is_empty() {
        return Ok(());
    }
    report::print_sentence("it keeps the grants of its earlier file and may:")?;
    print_services(carried.iter().map(String::as_str))?;
    report::print_line(&format!("to revoke them:\n  jaato plugin revoke {name}"))
}

/// Prints the services that a plugin requests, in `plugin show`.
pub fn print_grants(runtime: &Runtime, entry: &PluginEntry) -> Result<(), CommandFailure> {
    for (name, standing) in runtime.setup().grants.requested_grants(entry) {
        let allows = describe_grant(name);
        report::print_line(&format!("  asks for    {name}: {allows} ({})", standing.name()))?;
    }
    match runtime.setup().grants.grant_command(entry) {
        Some(command) => report::print_line(&format!("              {command}")),
        None => Ok(()),
    }
}

/// Returns the services that a plugin requests as JSON.
pub fn grants_to_json(runtime: &Runtime, entry: &PluginEntry) -> Value {
    let asked = runtime.setup().grants.requested_grants(entry).into_iter();
    let asked = asked.map(|(name, standing)| {
        json!({
            "name": name,
            "allows": describe_grant(name),
            "standing": standing.name().replace(' ', "_"),
        })
    });
    asked.collect()
}

/// Lists in one line the requested services that a plugin was not granted. Returns `None` if there
/// are none.
pub fn missing_grants_line(setup: &Setup, entry: &PluginEntry) -> Option<String> {
    let asked = setup.grants.requested_grants(entry).into_iter();
    let lacking = asked.filter(|(_, standing)| *standing == GrantStanding::NotGranted);
    let lacking: Vec<_> = lacking.map(|(name, _)| format!("`{name}`")).collect();
    (!lacking.is_empty()).then(|| format!("not granted {}", lacking.join(", ")))
}

/// Checks which services are meant. A plugin is granted nothing that it does not request.
fn check_requested<'a>(
    entry: &PluginEntry,
    asked: &[(&'a str, GrantStanding)],
    services: &[String],
) -> Result<Vec<&'a str>, CommandFailure> {
    let asked: Vec<_> = asked.iter().map(|(name, _)| *name).collect();
    if services.is_empty() {
        return Ok(asked);
    }
    let find = |service: &String| {
        check_grant_name(service)?;
        let found = asked.iter().find(|name| **name == service.as_str()).copied();
        found.ok_or_else(|| {
            let name = &entry.candidate.manifest.name;
            let text = format!("plugin `{name}` does not ask for `{service}`");
            let list = match asked.is_empty() {
                true => "it asks for nothing that needs a grant".to_owned(),
                false => format!("it asks for {}", asked.join(", ")),
            };
            CommandFailure::new(Exit::Plugin, text).hint(list)
        })
    };
    services.iter().map(find).collect()
}

/// Refuses a name that is not a grant.
fn check_grant_name(service: &str) -> Result<(), CommandFailure> {
    if grant_named(service).is_some() {
        return Ok(());
    }
    let names = || GRANTS.iter().map(|grant| grant.name);
    let hint = match nearest_name(service, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    let text = format!("nothing called `{service}` needs a grant");
    Err(CommandFailure::new(Exit::Usage, text).hint(hint))
}

fn print_services<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), CommandFailure> {
    for name in names {
        report::print_line(&format!("  {name:<16} {}", describe_grant(name)))?;
    }
    Ok(())
}

pub fn describe_grant(name: &str) -> &'static str {
    grant_named(name).map_or("(unknown to this version of jaato)", |grant| grant.allows)
}

fn grant_store(setup: &Setup) -> Result<GrantStore, CommandFailure> {
    Ok(GrantStore::in_folder(setup.folders.data_folder()?))
}
