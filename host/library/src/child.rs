//! The children that the program's own executable becomes: the guardian and the workers.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use jaato_runtime::{GUARDIAN_ARGUMENT, started_as_child};
use jaato_worker::{DESCRIBE_ARGUMENTS, SERVE_ARGUMENTS};

/// Does the work of a child if jaato started this process as one, and returns its exit code.
///
/// Call it first in `main`, before any thread starts, and return the code. A program that neither
/// uses plugin files nor runs programs in an environment needs no child.
///
/// ```
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = jaato_library::run_child_if_asked() {
///         return code;
///     }
///     // The program itself.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn run_child_if_asked() -> Option<ExitCode> {
    // It also looks at the descriptors, because a program may have a command with such a name.
    if started_as_child()? == GUARDIAN_ARGUMENT {
        return Some(jaato_process::guardian_main());
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let file = |count: usize| words.get(count).map(Path::new);
    if words.iter().take(DESCRIBE_ARGUMENTS.len()).eq(DESCRIBE_ARGUMENTS) {
        return Some(jaato_worker::describe_main(file(DESCRIBE_ARGUMENTS.len())?));
    }
    Some(jaato_worker::serve_main(file(SERVE_ARGUMENTS.len())?))
}
