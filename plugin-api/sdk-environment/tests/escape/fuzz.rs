//! Random paths of nasty names. None of them may touch a file outside.

use super::operations::OPERATIONS;
use super::trap::EscapeTrap;

/// The number of paths to try. The ground is created again after each [`TRIES_PER_GROUND`].
const TRIES: usize = 6_000;
const TRIES_PER_GROUND: usize = 60;

const NAMES: &[&str] = &[
    "..",
    "..",
    "..",
    ".",
    "",
    "/",
    "work",
    "second",
    "fixed",
    "outside",
    "secret.txt",
    "file.txt",
    "folder",
    "in",
    "up",
    "absolute_file",
    "absolute_folder",
    "relative_file",
    "relative_folder",
    "chain_1",
    "loop_1",
    "dangling",
    "dangling_folder",
    "proc_root",
    "proc_cwd",
    "top",
    "above",
    "through",
    "new",
    "moved",
    "copied",
    "...",
    ". .",
    "..\u{202e}",
    "~",
    "*",
    "**",
    "{a,..}",
    "[.][.]",
    "-rf",
    "\\..\\",
    "%2e%2e",
    "a b",
    "\u{fffd}",
    "\n",
    "NUL\0",
    "GROUND",
    "GROUND/outside",
    "GROUND/work",
    "TMP",
    "/proc/self/root",
    "/dev/fd",
];

/// A random number generator without dependencies, with the same numbers each time.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn random_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

#[test]
fn random_unusual_paths_touch_no_outside_file() {
    let mut numbers = RandomNumbers(0x9e37_79b9_7f4a_7c15);
    let (mut trap, mut done) = (EscapeTrap::new(), 0);
    for at in 0..TRIES {
        if at % TRIES_PER_GROUND == TRIES_PER_GROUND - 1 {
            trap = EscapeTrap::new();
        }
        let mut path = if numbers.random_below(4) == 0 { "GROUND" } else { "" }.to_owned();
        for _ in 0..=numbers.random_below(7) {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(NAMES[numbers.random_below(NAMES.len())]);
        }
        let ground = trap.ground.folder.path().display().to_string();
        let path = path.replace("GROUND", &ground).replace("TMP", &trap.temporary_path());
        let operation = &OPERATIONS[numbers.random_below(OPERATIONS.len())];
        let answer = (operation.run)(&trap.confined, &path);
        done += usize::from(answer.is_ok());
        let what = format!("`{}` of {path:?}", operation.name);
        trap.check_untouched(&what, &answer.unwrap_or_default());
    }
    // Otherwise the test would prove nothing.
    assert!(done > TRIES / 50, "{done}");
}
