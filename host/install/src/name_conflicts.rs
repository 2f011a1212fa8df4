//! Checks before a plugin is installed whether its names are free, and which plugins it would
//! displace.

use std::path::Path;

use jaato_loader::PlaceKind;
use jaato_registry::{
    CommandStatus, PluginCandidate, PluginEntry, PluginStatus, Registry, RegistryRules,
};

/// A conflict of a plugin with the others in the user's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginConflict {
    /// Its own names are taken.
    Refused(String),
    /// Its file would come before another plugin's, and take one of its names. Contains the other
    /// plugin, and why it would be refused.
    Displaces(String, String),
}

/// Looks for conflicting names. `replaced` is the file that the new plugin replaces. If only some
/// parts of the plugin could not be used, returns a line for each of these parts.
///
/// # Errors
/// The conflict, if the whole plugin could not be used or would displace another.
pub fn find_conflicts(
    registry: &Registry,
    newcomer: PluginCandidate,
    replaced: &Path,
    rules: &RegistryRules,
) -> Result<Vec<String>, PluginConflict> {
    let path = newcomer.path.clone();
    let others = registry.plugins().iter().map(|entry| &entry.candidate);
    let others = others.filter(|other| other.path != replaced && other.path != path);
    let mut all: Vec<PluginCandidate> = others.cloned().chain([newcomer]).collect();
    all.sort_by(|one, other| search_order_key(one).cmp(&search_order_key(other)));
    let after = Registry::build(all, rules);
    let is_new = |entry: &&PluginEntry| entry.candidate.path == path;
    let entry = after.plugins().iter().find(is_new);
    if let Some(PluginStatus::Refused(refusal)) = entry.map(|entry| &entry.status) {
        return Err(PluginConflict::Refused(refusal.to_string()));
    }
    let was_used = |entry: &PluginEntry| {
        let before = registry.plugins().iter().find(|it| it.candidate.path == entry.candidate.path);
        before.is_some_and(|before| before.status == PluginStatus::Active)
    };
    let displaced = after.plugins().iter().find_map(|entry| match &entry.status {
        PluginStatus::Refused(refusal) if was_used(entry) => {
            let name = entry.candidate.manifest.name.to_string();
            Some(PluginConflict::Displaces(name, refusal.to_string()))
        }
        // The descriptions of other plugins no longer contain the names that they had lost before.
        _ if entry.candidate.path != path && was_used(entry) => {
            let name = entry.candidate.manifest.name.to_string();
            let lost = entry.left_out.first()?;
            Some(PluginConflict::Displaces(name, format!("its {}: {}", lost.what, lost.why)))
        }
        _ => None,
    });
    match displaced {
        Some(conflict) => Err(conflict),
        None => {
            Ok(entry.map(|entry| list_unusable_parts(entry, registry, &after)).unwrap_or_default())
        }
    }
}

/// Lists the parts of a plugin that cannot be used, and the commands that it takes from others.
fn list_unusable_parts(newcomer: &PluginEntry, before: &Registry, after: &Registry) -> Vec<String> {
    let name = &newcomer.candidate.manifest.name;
    let left_out = newcomer.left_out.iter().map(ToString::to_string);
    let refused = after.refused_commands().filter_map(|command| {
        let CommandStatus::Refused(why) = &command.status else { return None };
        let spec = &command.spec.name;
        if command.plugin == name {
            return Some(format!("command `{spec}` is refused: {why}"));
        }
        let had = before.command(spec).is_some_and(|it| it.plugin == command.plugin);
        had.then(|| format!("command `{spec}` of `{}` can no longer be run: {why}", command.plugin))
    });
    left_out.chain(refused).collect()
}

/// Returns the sort key of a searched file: by place, trusted ones first, then by name.
fn search_order_key(candidate: &PluginCandidate) -> (usize, bool, &Path) {
    let places = [
        PlaceKind::Shipped,
        PlaceKind::CommandLine,
        PlaceKind::Variable,
        PlaceKind::User,
        PlaceKind::Workspace,
    ];
    let place = places.iter().position(|place| place.name() == candidate.place);
    // If a kind of place is given several times, all files of the first place come first. Their
    // relative order does not matter here.
    (place.unwrap_or(places.len()), !candidate.trust.is_trusted(), &candidate.path)
}
