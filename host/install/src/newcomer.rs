//! Tells before a plugin is installed whether its names are free, and whose it would take.

use std::path::Path;

use jaato_loader::PlaceKind;
use jaato_registry::{Candidate, PluginEntry, Registry, Rules, Status};

/// What is wrong with a plugin that is to lie in the user's folder, beside all others that are
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// Its own names are taken.
    Refused(String),
    /// Its file would come before another's, and take a name of that: the other plugin, and why it
    /// would be refused.
    Displaces(String, String),
}

/// Looks for names that clash. `replaced` is the file that the newcomer takes the place of.
pub fn conflict(
    registry: &Registry,
    newcomer: Candidate,
    replaced: &Path,
    rules: &Rules,
) -> Option<Conflict> {
    let path = newcomer.path.clone();
    let others = registry.plugins().iter().map(|entry| &entry.candidate);
    let others = others.filter(|other| other.path != replaced && other.path != path);
    let mut all: Vec<Candidate> = others.cloned().chain([newcomer]).collect();
    all.sort_by(|one, other| key(one).cmp(&key(other)));
    let after = Registry::build(all, rules);
    let is_new = |entry: &&PluginEntry| entry.candidate.path == path;
    if let Some(Status::Refused(refusal)) = after.plugins().iter().find(is_new).map(|it| &it.status)
    {
        return Some(Conflict::Refused(refusal.to_string()));
    }
    let was_used = |entry: &PluginEntry| {
        let before = registry.plugins().iter().find(|it| it.candidate.path == entry.candidate.path);
        before.is_some_and(|before| before.status == Status::Active)
    };
    after.plugins().iter().find_map(|entry| match &entry.status {
        Status::Refused(refusal) if was_used(entry) => {
            let name = entry.candidate.manifest.name.to_string();
            Some(Conflict::Displaces(name, refusal.to_string()))
        }
        _ => None,
    })
}

/// How files are ordered when they are searched: by place, trusted ones first, then by name.
fn key(candidate: &Candidate) -> (usize, bool, &Path) {
    let places = [
        PlaceKind::Shipped,
        PlaceKind::CommandLine,
        PlaceKind::Variable,
        PlaceKind::User,
        PlaceKind::Workspace,
    ];
    let place = places.iter().position(|place| place.name() == candidate.place);
    // Of places given several times, all files of the first come first: their order among each
    // other does not matter here.
    (place.unwrap_or(places.len()), !candidate.trust.is_trusted(), &candidate.path)
}
