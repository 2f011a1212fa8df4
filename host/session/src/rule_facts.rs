//! What the rules know of the place in which a session's calls run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_policy::{Call, WorkspaceTrust};

/// Most paths of one call that are followed. A call with more has to be looked at by a person
/// anyway.
const FOLLOWED_MAX: usize = 64;

/// Follows links, for rules about paths.
pub trait FollowLinks: Send + Sync {
    /// Returns where a path leads, as far as it exists; nothing where that is the path itself, or
    /// nobody knows. Looks at the file system, and at nothing else.
    fn follow(&self, path: &Path) -> Option<PathBuf>;
}

/// What the rules know of the place in which a session's calls run. Clones share it.
#[derive(Clone)]
pub struct RuleFacts {
    /// Where relative paths start, without links; `None` where the host does not see the files.
    pub directory: Option<PathBuf>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// Whether the person trusts the workspace.
    pub workspace: WorkspaceTrust,
    /// Follows links; `None` where the host does not see the files.
    pub links: Option<Arc<dyn FollowLinks>>,
}

impl Default for RuleFacts {
    fn default() -> Self {
        let workspace = WorkspaceTrust::Untrusted;
        Self { directory: None, home: None, workspace, links: None }
    }
}

impl fmt::Debug for RuleFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleFacts").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl RuleFacts {
    /// Follows the paths that a call names.
    pub(crate) fn follow(&self, call: &Call<'_>) -> Vec<PathBuf> {
        let Some(links) = &self.links else { return Vec::new() };
        let paths = call.paths();
        paths.iter().take(FOLLOWED_MAX).filter_map(|path| links.follow(path)).collect()
    }
}
