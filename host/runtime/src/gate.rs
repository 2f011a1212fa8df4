//! What rules may know of the place where a session's calls run, and the files with rules.

use std::path::{Path, PathBuf};

use jaato_catalog::Setup;
use jaato_config::Endpoint;
use jaato_config::permissions::{
    ENTERPRISE_FOLDER, ORIGINAL_VARIABLE, RuleFiles, RuleSources, load_rules,
};
use jaato_config::trust::{TrustedWorkspace, WorkspaceState};
use jaato_policy::WorkspaceTrust;
use jaato_session::{CallPlace, Gate};

use crate::ledger::ledger_path;

/// The execution environment that is this machine: paths mean there what they mean here.
const LOCAL: &str = "local";

/// Links to nothing that are followed on the way of one path.
const LINKS_MAX: usize = 40;

/// The gate of the host: rules, and a place to which they apply.
pub(crate) struct HostGate {
    place: CallPlace,
    is_local: bool,
}

impl HostGate {
    /// Looks at a host's setup. Of an environment that somebody else made it is not known where
    /// its files lie.
    pub(crate) fn of(setup: &Setup, is_anothers: bool) -> Self {
        let place = call_place(setup);
        if is_anothers {
            let environment = Some("the program's own environment".to_owned());
            let place = CallPlace { directory: None, home: None, environment, ..place };
            return Self { place, is_local: false };
        }
        Self { place, is_local: setup.config.environment == LOCAL }
    }
}

impl Gate for HostGate {
    fn place(&self) -> CallPlace {
        self.place.clone()
    }

    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        if !self.is_local || !path.is_absolute() {
            return None;
        }
        leads_to(path).filter(|whole| whole != path)
    }
}

/// Returns where a path leads: what of it exists without links, and the rest as it is written.
fn leads_to(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // A file that is to be made has no links yet, but the folders above it may.
        let known = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
        let (part, resolved) = known?;
        let mut rest = path.strip_prefix(part).ok()?.components();
        let Some(first) = rest.next() else { return Some(resolved) };
        let next = resolved.join(first);
        // A link to what is not there: what is written through it appears there.
        let Ok(target) = next.read_link() else { return Some(next.join(rest.as_path())) };
        path = resolved.join(target).join(rest.as_path());
    }
    None
}

/// Returns where calls of a host run, as rules see it.
pub fn call_place(setup: &Setup) -> CallPlace {
    let is_local = setup.config.environment == LOCAL;
    let workspace = match &setup.workspace_state {
        WorkspaceState::Trusted(_) => WorkspaceTrust::Trusted,
        // Nothing to trust is no trust: what lies there is still anybody's code.
        WorkspaceState::Nothing
        | WorkspaceState::Untrusted { .. }
        | WorkspaceState::Changed { .. } => WorkspaceTrust::Untrusted,
    };
    CallPlace {
        directory: is_local.then(|| setup.workspace.working_directory().to_owned()),
        home: home(setup).filter(|_| is_local),
        workspace,
        root: Some(setup.workspace.root().to_owned()),
        own_folders: own_folders(setup),
        environment: (!is_local).then(|| setup.config.environment.clone()),
    }
}

/// Returns jaato's own folders and files, as they are written and where links lead.
fn own_folders(setup: &Setup) -> Vec<PathBuf> {
    let config = &setup.config;
    let mut own: Vec<PathBuf> = setup.folders.all().into_iter().map(Path::to_owned).collect();
    own.push(ENTERPRISE_FOLDER.into());
    own.extend(named_rules(setup));
    own.extend(ledger_path(setup));
    own.extend(setup.plugin_dirs.iter().chain(&config.plugin_dirs).cloned());
    if let Some(Endpoint::Folder(folder)) = &config.permissions.endpoint {
        own.push(folder.clone());
    }
    let resolved: Vec<PathBuf> = own.iter().filter_map(|path| leads_to(path)).collect();
    own.extend(resolved);
    own.sort();
    own.dedup();
    own
}

/// Returns the file with rules that [`ORIGINAL_VARIABLE`] names.
fn named_rules(setup: &Setup) -> Option<PathBuf> {
    let named = setup.variables.get(ORIGINAL_VARIABLE).filter(|path| !path.is_empty())?;
    Some(setup.workspace.working_directory().join(named))
}

/// Returns where links on a path lead, as the gate of this host sees it.
pub(crate) fn resolve(setup: &Setup, path: &Path) -> Option<PathBuf> {
    HostGate::of(setup, false).resolve(path)
}

/// Reads the files with rules that hold for a host.
pub fn rule_files(setup: &Setup) -> RuleFiles {
    read_rules(setup, setup.trusted_workspace())
}

/// The same without those of a workspace.
pub(crate) fn own_rule_files(setup: &Setup) -> RuleFiles {
    read_rules(setup, None)
}

fn read_rules(setup: &Setup, workspace: Option<&TrustedWorkspace>) -> RuleFiles {
    let home = home(setup);
    let named = named_rules(setup);
    load_rules(&RuleSources {
        enterprise: Path::new(ENTERPRISE_FOLDER),
        user: setup.folders.config().ok(),
        home: home.as_deref(),
        named: named.as_deref(),
        workspace,
        root: setup.workspace.root(),
    })
}

fn home(setup: &Setup) -> Option<PathBuf> {
    let home = setup.variables.get("HOME")?;
    Some(PathBuf::from(home)).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_followed_as_far_as_it_exists_and_through_links_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink("real/hook", root.join("to_nothing")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let leads = |path: &str| leads_to(&root.join(path)).filter(|to| *to != root.join(path));
        assert_eq!(leads("link/deep"), Some(root.join("real/deep")));
        assert_eq!(leads("link/new/file"), Some(root.join("real/new/file")));
        assert_eq!(leads("to_nothing"), Some(root.join("real/hook")));
        assert_eq!(leads("real/deep"), None);
        assert_eq!(leads("new"), None);
        assert_eq!(leads("round"), None);
    }
}
