//! What rules may know of the place where a session's calls run, and the files with rules.

use std::path::{Path, PathBuf};

use jaato_catalog::Setup;
use jaato_config::permissions::{ENTERPRISE_FOLDER, RuleFiles, RuleSources, load_rules};
use jaato_config::trust::WorkspaceState;
use jaato_policy::WorkspaceTrust;
use jaato_session::{CallPlace, Gate};

/// The execution environment that is this machine: paths mean there what they mean here.
const LOCAL: &str = "local";

/// The gate of the host: rules, and a place to which they apply.
pub(crate) struct HostGate {
    place: CallPlace,
    is_local: bool,
}

impl HostGate {
    pub(crate) fn of(setup: &Setup) -> Self {
        Self { place: call_place(setup), is_local: setup.config.environment == LOCAL }
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
        // A file that is to be made has no links yet, but the folders above it may.
        let known = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
        let (part, resolved) = known?;
        let rest = path.strip_prefix(part).ok()?;
        let whole = if rest.as_os_str().is_empty() { resolved } else { resolved.join(rest) };
        (whole != path).then_some(whole)
    }
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
    }
}

/// Returns where links on a path lead, as the gate of this host sees it.
pub(crate) fn resolve(setup: &Setup, path: &Path) -> Option<PathBuf> {
    HostGate::of(setup).resolve(path)
}

/// Reads the files with rules that hold for a host.
pub fn rule_files(setup: &Setup) -> RuleFiles {
    let home = home(setup);
    load_rules(&RuleSources {
        enterprise: Path::new(ENTERPRISE_FOLDER),
        user: setup.folders.config().ok(),
        home: home.as_deref(),
        workspace: setup.trusted_workspace(),
        root: setup.workspace.root(),
    })
}

fn home(setup: &Setup) -> Option<PathBuf> {
    let home = setup.variables.get("HOME")?;
    Some(PathBuf::from(home)).filter(|home| home.is_absolute())
}
