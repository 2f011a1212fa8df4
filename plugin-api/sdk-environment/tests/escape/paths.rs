//! Paths that lead outside by themselves, with every operation.

use jaato_types::ErrorKind;

use super::operations::{Link, OPERATIONS};
use super::trap::EscapeTrap;

/// A path that leads outside.
struct EscapeAttempt {
    path: String,
    /// Whether its last name is a link inside the allowed folders.
    ends_with_link: bool,
}

/// All attempts: `OUT` is the folder outside, `WORK` an allowed one, `TMP` the temporary one.
const ATTEMPTS: &[&str] = &[
    "../secret.txt",
    "../outside/secret.txt",
    "./../outside/secret.txt",
    "..//outside///secret.txt",
    "folder/../../outside/secret.txt",
    "folder/in/../../../outside/secret.txt",
    "missing/../../outside/secret.txt",
    "../../../../../../../../../../../../OUT/secret.txt",
    "../work/../outside/secret.txt",
    "../WORK-beside/secret.txt",
    "../work-beside/secret.txt",
    "OUT/secret.txt",
    "OUT",
    "OUT/",
    "/OUT/secret.txt",
    "OUT/./secret.txt",
    "OUT/../outside/secret.txt",
    "WORK/../outside/secret.txt",
    "WORK/./folder/../../outside/secret.txt",
    "TMP/../../outside/secret.txt",
    "TMP/../x",
    "TMP/absolute_folder/secret.txt",
    "TMP/relative_folder/secret.txt",
    "WORK/../second/absolute_folder/secret.txt",
    "/proc/self/root/OUT/secret.txt",
    "/proc/self/cwd/../secret.txt",
    "/dev/fd/0",
    "/dev/stdin",
    "/",
    "..",
    "../",
    "folder/../..",
    "absolute_folder/secret.txt",
    "absolute_folder/deep/secret.txt",
    "absolute_folder/..",
    "absolute_folder/../secret.txt",
    "relative_folder/secret.txt",
    "relative_folder/new.txt",
    "chain_1/secret.txt",
    "chain_2/deep/secret.txt",
    "folder/chain_3/secret.txt",
    "folder/in/up/secret.txt",
    "dangling_folder/secret.txt",
    "proc_root/OUT/secret.txt",
    "proc_root/etc/passwd",
    "proc_cwd/secret.txt",
    "descriptors/0",
    "top/OUT/secret.txt",
    "top/etc/passwd",
    "above/secret.txt",
    "above/outside/secret.txt",
    "through/secret.txt",
    "WORK/absolute_folder/secret.txt",
    "~/secret.txt/../../../outside/secret.txt",
];

/// The attempts whose last name is the link.
const LINKS: &[&str] = &[
    "absolute_file",
    "absolute_folder",
    "relative_file",
    "relative_folder",
    "chain_1",
    "folder/in/up",
    "dangling",
    "dangling_folder",
    "proc_root",
    "proc_cwd",
    "descriptors",
    "descriptor",
    "top",
    "above",
    "through",
    "absolute_folder/",
    "absolute_folder/.",
    "relative_file/",
    "dangling/",
    "TMP/absolute_folder",
    "folder/../absolute_file",
];

fn escape_attempts(trap: &EscapeTrap) -> Vec<EscapeAttempt> {
    let (out, work) = (trap.ground.shown_path("outside"), trap.ground.shown_path("work"));
    let fill = |path: &str| {
        let path = path.replace("TMP", &trap.temporary_path());
        path.replace("OUT", &out).replace("WORK-", "work-").replace("WORK", &work)
    };
    let plain =
        ATTEMPTS.iter().map(|path| EscapeAttempt { path: fill(path), ends_with_link: false });
    let links = LINKS.iter().map(|path| EscapeAttempt { path: fill(path), ends_with_link: true });
    plain.chain(links).collect()
}

#[test]
fn no_operation_leaves_the_allowed_folders_by_any_path() {
    let mut refused = 0;
    for operation in OPERATIONS {
        let mut trap = EscapeTrap::new();
        for at in 0..escape_attempts(&trap).len() {
            let attempt = &escape_attempts(&trap)[at];
            let what = format!("`{}` of `{}`", operation.name, attempt.path);
            let answer = (operation.run)(&trap.confined, &attempt.path);
            let told = answer.clone().unwrap_or_default();
            trap.check_untouched(&what, &told);
            let may_be_done = attempt.ends_with_link && operation.link == Link::Itself;
            match answer {
                Ok(told) => {
                    // A missing folder returns no content.
                    let is_missing = attempt.path.starts_with(['m', '~']) && told.is_empty();
                    assert!(may_be_done || is_missing, "{what} was done: {told}");
                    trap = EscapeTrap::new();
                }
                Err(error) => {
                    let is_outside = error.kind == ErrorKind::PermissionDenied
                        && error.message.contains("outside of the allowed folders");
                    // A missing folder is detected before the names after it.
                    let is_seen_before = error.kind == ErrorKind::NotFound
                        && (attempt.path.starts_with("missing") || attempt.path.starts_with('~'))
                        || error.kind == ErrorKind::InvalidArguments
                            && matches!(attempt.path.rsplit('/').next(), Some("" | "." | ".."));
                    assert!(is_outside || is_seen_before || may_be_done, "{what}: {error:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > OPERATIONS.len() * ATTEMPTS.len() * 9 / 10, "{refused}");
}

#[test]
fn outside_path_error_lists_allowed_folders_and_hides_existence() {
    let trap = EscapeTrap::new();
    let request = |path: String| jaato_types::files::FilePath { path, ..Default::default() };
    let there =
        trap.confined.stat(&request(trap.ground.shown_path("outside/secret.txt"))).unwrap_err();
    let missing =
        trap.confined.stat(&request(trap.ground.shown_path("outside/nothing"))).unwrap_err();
    assert_eq!(there.message.replace("secret.txt", "nothing"), missing.message);
    let folder = trap.ground.folder.path().display();
    let expected = format!(
        "`{folder}/outside/secret.txt` is outside of the allowed folders `{folder}/work`, \
         `{folder}/second`, `{folder}/fixed`, `{}`\nhint: use a path in one of them",
        trap.temporary_path()
    );
    assert_eq!(there.to_string(), expected);
}
