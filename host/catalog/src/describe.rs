//! Describes plugins in short-lived children.

use std::path::Path;
use std::time::Duration;

use jaato_process::Supervisor;
use jaato_types::{Description, Error};
use jaato_worker::DESCRIBE_ARGUMENTS;

use crate::one_answer_child::{ChildTask, child_folder};

/// How long a description may take. It only lists what the plugin offers.
pub const DESCRIBE_DEADLINE: Duration = Duration::from_secs(5);

/// Address space of the describing child. A plugin with a model runtime maps much code but no data.
const DESCRIBE_MEMORY_BYTES: u64 = 1024 * 1024 * 1024;

/// Descriptor limit of the describing child.
const DESCRIBE_OPEN_FILES: u64 = 64;

/// Describes one plugin file.
///
/// # Errors
/// One line about the failure: the loader refused it, or it panicked, crashed or hung.
pub async fn describe_plugin_file(
    supervisor: &Supervisor,
    executable: &Path,
    plugin: &Path,
) -> Result<Description, Error> {
    let errand = ChildTask {
        what: "describing it",
        arguments: &DESCRIBE_ARGUMENTS,
        folder: &child_folder(),
        deadline: DESCRIBE_DEADLINE,
        memory_bytes: DESCRIBE_MEMORY_BYTES,
        open_files: DESCRIBE_OPEN_FILES,
    };
    errand.run(supervisor, executable, plugin).await
}
