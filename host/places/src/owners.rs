//! The users who may own believed files.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use nix::unistd::{Group, Uid, User};

/// The user id that the system shows for a user of another user namespace.
const UNMAPPED: u32 = 65_534;

/// Users who may own believed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owners(Vec<u32>);

impl Owners {
    /// Returns this user and root, who can act as this user anyway.
    pub fn own() -> Self {
        Self(vec![this_user(), 0])
    }

    /// Adds the owner of a file, if that can be determined. The owner of the running program could
    /// have written anything into it.
    #[must_use]
    pub fn and_owner_of(mut self, file: &Path) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        self.0.extend(fs::metadata(file).map(|metadata| metadata.uid()));
        self
    }

    /// Returns true if a user is one of them.
    pub fn include(&self, user: u32) -> bool {
        self.0.contains(&user)
    }
}

/// Returns the effective user of this process.
pub(crate) fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns true for a user that this user namespace does not know. In a rootless container, the
/// folders above a home belong to the machine's root and are shown this way.
pub(crate) fn is_unmapped(user: u32) -> bool {
    user == UNMAPPED && fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !maps_all(&map))
}

/// Returns true for the map of the machine's own namespace, which maps every user to itself.
fn maps_all(map: &str) -> bool {
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
    fn only_the_map_of_the_machine_itself_maps_every_user() {
        assert!(maps_all("         0          0 4294967295\n"));
        assert!(!maps_all("         0       1000          1\n"));
        assert!(!maps_all("0 1000 1\n1 100000 65536\n"));
    }

    #[test]
    fn a_group_is_a_users_own_with_its_name_and_no_other_member() {
        let ann = ["ann".to_owned()];
        assert!(is_private("ann", 1000, "ann", &[]));
        assert!(is_private("ann", 1000, "ann", &ann));
        assert!(!is_private("ann", 100, "users", &ann));
        assert!(!is_private("ann", 1000, "ann", &["ann".to_owned(), "bob".to_owned()]));
        assert!(!is_private("root", 0, "root", &[]));
    }

    #[test]
    fn this_user_root_and_who_owns_the_program_count() {
        use std::os::unix::fs::MetadataExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        let owner = file.as_file().metadata().unwrap().uid();
        let owners = Owners::own().and_owner_of(file.path());
        assert!(owners.include(0) && owners.include(this_user()) && owners.include(owner));
        assert!(!owners.include(4711));
    }
}
