//! Tells rules about the place where a session's calls run, and loads the files with rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_catalog::Setup;
use jaato_config::PromptEndpoint;
use jaato_config::permissions::{
    ENTERPRISE_FOLDER, ORIGINAL_VARIABLE, RuleFiles, RuleSources, load_rules,
};
use jaato_config::trust::{TrustedWorkspace, WorkspaceState};
use jaato_environments::Environments;
use jaato_policy::WorkspaceTrust;
use jaato_session::{CallEnvironment, CallGate};
use jaato_types::SessionId;
use jaato_types::files::ResolvedPath;

use crate::host::RuntimeHost;
use crate::ledger::ledger_path;
use crate::patterns::expand_pattern;
use crate::repository;

/// The local execution environment, in which paths mean the same as for the host.
const LOCAL: &str = "local";

/// The host's gate: rules, and the place to which they apply.
pub(crate) struct HostPermissionCheck {
    place: CallEnvironment,
    environments: Arc<Environments>,
    session: SessionId,
}

impl HostPermissionCheck {
    /// Creates the gate of a session. If the embedding program created the environment, jaato does
    /// not know where its files are.
    pub(crate) fn for_session(host: &RuntimeHost, session: SessionId, is_anothers: bool) -> Self {
        let mut place = host.place.get_or_init(|| call_place(&host.setup)).clone();
        if is_anothers {
            let environment = Some("the program's own environment".to_owned());
            place = CallEnvironment { directory: None, home: None, environment, ..place };
        }
        Self { place, environments: Arc::clone(&host.environments), session }
    }

    /// Changes the working directory, if calls run on this machine.
    pub(crate) fn with_directory(mut self, directory: PathBuf) -> Self {
        self.place.directory = self.place.directory.map(|_| directory);
        self
    }
}

impl CallGate for HostPermissionCheck {
    fn call_environment(&self) -> CallEnvironment {
        self.place.clone()
    }

    fn resolve_paths<'a>(
        &'a self,
        paths: &'a [PathBuf],
    ) -> BoxFuture<'a, Option<Vec<Option<ResolvedPath>>>> {
        Box::pin(self.environments.resolve_paths(&self.session, paths))
    }

    fn expand_pattern(&self, pattern: &Path) -> Option<Vec<PathBuf>> {
        expand_pattern_in(&self.place, pattern)
    }

    fn is_plain_repository(&self) -> bool {
        is_repository_plain(&self.place)
    }
}

/// Returns the names that a pattern may match, if it refers to files of this machine.
pub(crate) fn expand_pattern_in(place: &CallEnvironment, pattern: &Path) -> Option<Vec<PathBuf>> {
    let is_local = place.directory.is_some() && pattern.is_absolute();
    if is_local { expand_pattern(pattern) } else { None }
}

/// Returns true if the working directory's repository configures nothing that a read-only `git`
/// command runs.
pub(crate) fn is_repository_plain(place: &CallEnvironment) -> bool {
    place.directory.as_deref().is_some_and(repository::is_plain)
}

/// Returns the place where a host's calls run, as rules see it.
pub fn call_place(setup: &Setup) -> CallEnvironment {
    let is_local = setup.config.environment == LOCAL;
    let workspace = match &setup.workspace_state {
        WorkspaceState::Trusted(_) => WorkspaceTrust::Trusted,
        // A workspace with nothing to trust is untrusted: anyone may have written its code.
        WorkspaceState::Nothing
        | WorkspaceState::Untrusted { .. }
        | WorkspaceState::Changed { .. } => WorkspaceTrust::Untrusted,
    };
    CallEnvironment {
        directory: is_local.then(|| setup.workspace.working_directory().to_owned()),
        home: home_folder(setup).filter(|_| is_local),
        workspace,
        root: Some(setup.workspace.root().to_owned()),
        own_folders: if is_local { own_folders(setup) } else { Vec::new() },
        environment: (!is_local).then(|| setup.config.environment.clone()),
    }
}

/// Returns jaato's own folders and files, both as written and with links resolved.
fn own_folders(setup: &Setup) -> Vec<PathBuf> {
    let config = &setup.config;
    let mut own: Vec<PathBuf> =
        setup.folders.all_folders().into_iter().map(Path::to_owned).collect();
    own.push(ENTERPRISE_FOLDER.into());
    own.extend(named_rules_file(setup));
    own.extend(ledger_path(setup));
    own.extend(setup.plugin_dirs.iter().chain(&config.plugin_dirs).cloned());
    if let Some(PromptEndpoint::Folder(folder)) = &config.permissions.endpoint {
        own.push(folder.clone());
    }
    let resolved: Vec<PathBuf> =
        own.iter().filter_map(|path| resolve_existing_path(path)).collect();
    own.extend(resolved);
    own.sort();
    own.dedup();
    own
}

/// Resolves the links in the existing part of a path.
fn resolve_existing_path(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    let (part, resolved) = there?;
    Some(resolved.join(path.strip_prefix(part).ok()?))
}

/// Returns the file with rules that [`ORIGINAL_VARIABLE`] names.
fn named_rules_file(setup: &Setup) -> Option<PathBuf> {
    let named = setup.variables.get(ORIGINAL_VARIABLE).filter(|path| !path.is_empty())?;
    Some(setup.workspace.working_directory().join(named))
}

/// Reads the files with rules that apply to a host.
pub fn rule_files(setup: &Setup) -> RuleFiles {
    read_rules(setup, setup.trusted_workspace())
}

/// Like [`rule_files`], without the workspace's files.
pub(crate) fn own_rule_files(setup: &Setup) -> RuleFiles {
    read_rules(setup, None)
}

fn read_rules(setup: &Setup, workspace: Option<&TrustedWorkspace>) -> RuleFiles {
    let home = home_folder(setup);
    let named = named_rules_file(setup);
    load_rules(&RuleSources {
        enterprise: Some(Path::new(ENTERPRISE_FOLDER)),
        user: setup.folders.config_folder().ok(),
        home: home.as_deref(),
        named: named.as_deref(),
        workspace,
        root: setup.workspace.root(),
    })
}

fn home_folder(setup: &Setup) -> Option<PathBuf> {
    let home = setup.variables.get("HOME")?;
    Some(PathBuf::from(home)).filter(|home| home.is_absolute())
}
