//! `jaato plugin grant` and `revoke`: what plugins may do on the user's behalf.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use jaato_runtime::config::trust::{GrantStore, refuse_inside_session};
use jaato_runtime::registry::{PluginEntry, nearest};
use jaato_runtime::types::grant::{GRANTS, grant_named};
use jaato_runtime::{GrantHolder, GrantStanding, Runtime, Setup};
use serde_json::{Value, json};

use crate::args::Global;
use crate::exit::{Exit, Failure, Outcome};
use crate::{find, report, start, trust};

/// Grants a plugin requested services, or all of them if none are named.
pub async fn grant(global: Global, name: &str, services: &[String]) -> Outcome {
    let runtime = start::runtime(start::arguments(global)).await?;
    let (setup, registry) = (runtime.setup(), runtime.registry());
    refuse_inside_session(&setup.variables).map_err(trust::failed)?;
    let entry = find::plugin(&runtime, &registry, name)?;
    if entry.description().is_none() {
        let (why, hint) = entry.why_not().unwrap_or_default();
        let text = format!("cannot ask plugin `{name}` for its grants: {why}");
        return Err(Failure::new(Exit::Plugin, text).maybe_hint(hint));
    }
    let asked = setup.grants.asked(entry);
    let wanted = wanted(entry, &asked, services)?;
    if wanted.is_empty() {
        report::sentence(&format!("plugin `{name}` asks for nothing that needs a grant"))?;
        return Ok(Exit::Done);
    }
    let holder = GrantHolder::of(entry);
    let Some(digest) = holder.digest() else {
        report::sentence(&format!(
            "plugin `{name}` is shipped with jaato: it has what it asks for"
        ))?;
        return Ok(Exit::Done);
    };
    store(setup)?
        .grant(name, digest, wanted.iter().copied(), SystemTime::now())
        .map_err(trust::failed)?;
    report::sentence(&format!("plugin `{name}` may now:"))?;
    lines(wanted.iter().copied())?;
    report::sentence(&format!(
        "this holds for this content of its file, sha256 {digest}; to take it back:\n  jaato plugin revoke {name}"
    ))?;
    Ok(Exit::Done)
}

/// Revokes a plugin's services, or all of them if none are named. The plugin need not exist any
/// longer.
pub async fn revoke(global: Global, name: &str, services: &[String]) -> Outcome {
    let runtime = start::runtime(start::arguments(global)).await?;
    let setup = runtime.setup();
    refuse_inside_session(&setup.variables).map_err(trust::failed)?;
    for service in services {
        known(service)?;
    }
    let names: Vec<_> = services.iter().map(String::as_str).collect();
    let taken = store(setup)?.revoke(name, &names).map_err(trust::failed)?;
    if !taken.is_empty() {
        report::sentence(&format!("plugin `{name}` may no longer:"))?;
        lines(taken.iter().map(String::as_str))?;
        return Ok(Exit::Done);
    }
    let registry = runtime.registry();
    let entry = find::plugin(&runtime, &registry, name)?;
    let asked = setup.grants.asked(entry);
    if asked.iter().any(|(_, standing)| *standing == GrantStanding::Shipped) {
        let text = format!("plugin `{name}` is shipped with jaato and has what it asks for");
        return Err(Failure::new(Exit::Plugin, text)
            .hint(format!("`jaato plugin disable {name}` leaves it out")));
    }
    report::sentence(&format!("plugin `{name}` had none of these grants"))?;
    Ok(Exit::Done)
}

/// Gives a trusted file the grants of an earlier one with the same name, and reports them.
pub fn carry_over(data: &Path, name: &str, digest: &str) -> Result<(), Failure> {
    let carried = GrantStore::in_folder(data).carry_over(name, digest, SystemTime::now());
    let carried: BTreeSet<String> = carried.map_err(trust::failed)?;
    if carried.is_empty() {
        return Ok(());
    }
    report::sentence("it keeps the grants of its earlier file and may:")?;
    lines(carried.iter().map(String::as_str))?;
    report::line(&format!("to take that back:\n  jaato plugin revoke {name}"))
}

/// Prints the services that a plugin requests, in `plugin show`.
pub fn print(runtime: &Runtime, entry: &PluginEntry) -> Result<(), Failure> {
    for (name, standing) in runtime.setup().grants.asked(entry) {
        let allows = allows(name);
        report::line(&format!("  asks for    {name}: {allows} ({})", standing.name()))?;
    }
    match runtime.setup().grants.command(entry) {
        Some(command) => report::line(&format!("              {command}")),
        None => Ok(()),
    }
}

/// Returns the services that a plugin requests as JSON.
pub fn to_json(runtime: &Runtime, entry: &PluginEntry) -> Value {
    let asked = runtime.setup().grants.asked(entry).into_iter();
    let asked = asked.map(|(name, standing)| {
        json!({
            "name": name,
            "allows": allows(name),
            "standing": standing.name().replace(' ', "_"),
        })
    });
    asked.collect()
}

/// Lists in one line the requested services that a plugin was not granted. Returns `None` if there
/// are none.
pub fn lacking(setup: &Setup, entry: &PluginEntry) -> Option<String> {
    let asked = setup.grants.asked(entry).into_iter();
    let lacking = asked.filter(|(_, standing)| *standing == GrantStanding::NotGranted);
    let lacking: Vec<_> = lacking.map(|(name, _)| format!("`{name}`")).collect();
    (!lacking.is_empty()).then(|| format!("not granted {}", lacking.join(", ")))
}

/// Checks which services are meant. A plugin is granted nothing that it does not request.
fn wanted<'a>(
    entry: &PluginEntry,
    asked: &[(&'a str, GrantStanding)],
    services: &[String],
) -> Result<Vec<&'a str>, Failure> {
    let asked: Vec<_> = asked.iter().map(|(name, _)| *name).collect();
    if services.is_empty() {
        return Ok(asked);
    }
    let find = |service: &String| {
        known(service)?;
        let found = asked.iter().find(|name| **name == service.as_str()).copied();
        found.ok_or_else(|| {
            let name = &entry.candidate.manifest.name;
            let text = format!("plugin `{name}` does not ask for `{service}`");
            let list = match asked.is_empty() {
                true => "it asks for nothing that needs a grant".to_owned(),
                false => format!("it asks for {}", asked.join(", ")),
            };
            Failure::new(Exit::Plugin, text).hint(list)
        })
    };
    services.iter().map(find).collect()
}

/// Refuses a name that is not a grant.
fn known(service: &str) -> Result<(), Failure> {
    if grant_named(service).is_some() {
        return Ok(());
    }
    let names = || GRANTS.iter().map(|grant| grant.name);
    let hint = match nearest(service, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    };
    let text = format!("nothing called `{service}` needs a grant");
    Err(Failure::new(Exit::Usage, text).hint(hint))
}

fn lines<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    for name in names {
        report::line(&format!("  {name:<16} {}", allows(name)))?;
    }
    Ok(())
}

fn allows(name: &str) -> &'static str {
    grant_named(name).map_or("(unknown to this version of jaato)", |grant| grant.allows)
}

fn store(setup: &Setup) -> Result<GrantStore, Failure> {
    Ok(GrantStore::in_folder(setup.folders.data()?))
}
