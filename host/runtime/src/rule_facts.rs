//! What the rules know of the place in which a session's calls run.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_catalog::Setup;
use jaato_config::DEFAULT_ENVIRONMENT;
use jaato_config::trust::WorkspaceState;
use jaato_policy::WorkspaceTrust;
use jaato_session::{FollowLinks, RuleFacts};

/// Follows links on this machine.
struct LinksHere;

impl FollowLinks for LinksHere {
    fn follow(&self, path: &Path) -> Option<PathBuf> {
        follow(path).filter(|leads_to| leads_to != path)
    }
}

/// Looks at a host's setup. Of an environment that somebody else made it is not known where its
/// files lie.
pub(crate) fn of(setup: &Setup, is_anothers: bool) -> RuleFacts {
    let workspace = match setup.workspace_state {
        WorkspaceState::Nothing | WorkspaceState::Trusted(_) => WorkspaceTrust::Trusted,
        WorkspaceState::Untrusted { .. } | WorkspaceState::Changed { .. } => {
            WorkspaceTrust::Untrusted
        }
    };
    let home = setup.variables.get("HOME").map(PathBuf::from);
    let is_here = !is_anothers && setup.config.environment == DEFAULT_ENVIRONMENT;
    if !is_here {
        return RuleFacts { home, workspace, ..RuleFacts::default() };
    }
    let directory = fs::canonicalize(setup.workspace.working_directory()).ok();
    RuleFacts { directory, home, workspace, links: Some(Arc::new(LinksHere)) }
}

/// Returns where a path leads: what of it exists without links, and the rest as it is written.
fn follow(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut rest: Vec<OsString> = Vec::new();
    for above in path.ancestors() {
        match fs::canonicalize(above) {
            Ok(there) => {
                return Some(rest.iter().rev().fold(there, |path, name| path.join(name)));
            }
            // A link to what is not there yet: a file that is written through it appears there.
            Err(_) => match fs::read_link(above) {
                Ok(target) => {
                    let target = above.parent().unwrap_or(Path::new("/")).join(target);
                    let whole = rest.iter().rev().fold(target, |path, name| path.join(name));
                    // As written where it leads nowhere either: rules see that beside the link.
                    return Some(followed_once(&whole));
                }
                Err(_) => rest.extend(above.file_name().map(OsString::from)),
            },
        }
    }
    None
}

/// Follows what exists above a file that does not.
fn followed_once(path: &Path) -> PathBuf {
    let there = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (there, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_followed_as_far_as_it_exists_and_through_links_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink("real/hook", root.join("to_nothing")).unwrap();
        let leads = |path: &str| LinksHere.follow(&root.join(path));
        assert_eq!(leads("link/deep"), Some(root.join("real/deep")));
        assert_eq!(leads("link/new/file"), Some(root.join("real/new/file")));
        assert_eq!(leads("to_nothing"), Some(root.join("real/hook")));
        assert_eq!(leads("real/deep"), None);
        assert_eq!(leads("new"), None);
        assert_eq!(LinksHere.follow(Path::new("relative")), None);
    }
}
