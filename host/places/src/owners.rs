//! The users who may own safe files.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use nix::unistd::{Group, Uid, User};

/// The user id that the system shows for a user of another user namespace.
const UNMAPPED: u32 = 65_534;

/// The mode bit that lets a group write.
pub(crate) const GROUP_WRITES: u32 = 0o020;

/// The users and the group that may write to trusted files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedOwners {
    users: Vec<u32>,
    /// The group that may write to them too.
    group: Option<u32>,
}

impl TrustedOwners {
    /// Returns this user and root, who can act as this user anyway.
    pub fn this_user_and_root() -> Self {
        Self { users: vec![this_user(), 0], group: None }
    }

    /// Adds the owner of a program, and its group if that may write to the program. Anyone who can
    /// change the running program can already act as this user. With a umask of 002, which many
    /// systems have, installers let the user's group write to everything that they install.
    #[must_use]
    pub fn with_writers_of(mut self, program: &Path) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        if let Ok(metadata) = fs::metadata(program) {
            self.users.push(metadata.uid());
            self.group = (metadata.mode() & GROUP_WRITES != 0).then(|| metadata.gid());
        }
        self
    }

    /// Returns true if a user is one of them.
    pub fn contains_user(&self, user: u32) -> bool {
        self.users.contains(&user)
    }

    /// Returns true if a group may write to trusted files.
    pub(crate) fn contains_group(&self, group: u32) -> bool {
        self.group == Some(group)
    }
}

/// Returns the effective user of this process.
pub(crate) fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns true for a user that this user namespace does not know. In a rootless container, the
/// folders above a home belong to the machine's root and are shown this way.
pub(crate) fn is_unmapped(user: u32) -> bool {
    user == UNMAPPED && fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !is_full_map(&map))
}

/// Returns true for the map of the machine's own namespace, which maps every user to itself.
fn is_full_map(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Returns true if the group contains only this user. Many systems give each user a group of the
/// same name, which can write to the user's files. Looked up once, and only if the group can write
/// to a folder above one of ours.
pub(crate) fn is_own_group(group: u32) -> bool {
    static OWN: OnceLock<Option<u32>> = OnceLock::new();
    let own = *OWN.get_or_init(|| {
        let user = User::from_uid(Uid::from_raw(this_user())).ok()??;
        let group = Group::from_gid(user.gid).ok()??;
        is_private(&user.name, group.gid.as_raw(), &group.name, &group.mem)
            .then(|| group.gid.as_raw())
    });
    own == Some(group)
}

/// Returns true for a group with the user's name and no other member. Never root's, because
/// containers add other users to it.
fn is_private(user: &str, group: u32, name: &str, members: &[String]) -> bool {
    group != 0 && name == user && members.iter().all(|member| member == user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_full_identity_uid_map_maps_every_user() {
        assert!(is_full_map("         0          0 4294967295\n"));
        assert!(!is_full_map("         0       1000          1\n"));
        assert!(!is_full_map("0 1000 1\n1 100000 65536\n"));
    }

    #[test]
    fn private_group_has_the_name_of_its_user_and_no_other_members() {
        let ann = ["ann".to_owned()];
        assert!(is_private("ann", 1000, "ann", &[]));
        assert!(is_private("ann", 1000, "ann", &ann));
        assert!(!is_private("ann", 100, "users", &ann));
        assert!(!is_private("ann", 1000, "ann", &["ann".to_owned(), "bob".to_owned()]));
        assert!(!is_private("root", 0, "root", &[]));
    }

    #[test]
    fn current_user_root_and_program_owner_are_trusted_owners() {
        use std::os::unix::fs::MetadataExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        let owner = file.as_file().metadata().unwrap().uid();
        let owners = TrustedOwners::this_user_and_root().with_writers_of(file.path());
        assert!(
            owners.contains_user(0)
                && owners.contains_user(this_user())
                && owners.contains_user(owner)
        );
        assert!(!owners.contains_user(4711));
    }

    #[test]
    fn group_of_the_program_counts_only_if_it_can_write_to_the_program() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let file = tempfile::NamedTempFile::new().unwrap();
        let group = file.as_file().metadata().unwrap().gid();
        for (mode, counts) in [(0o755, false), (0o757, false), (0o775, true)] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            let owners = TrustedOwners::this_user_and_root().with_writers_of(file.path());
            assert_eq!(owners.contains_group(group), counts, "{mode:o}");
            assert!(!owners.contains_group(group + 1), "{mode:o}");
        }
        assert!(!TrustedOwners::this_user_and_root().contains_group(group));
    }
}
