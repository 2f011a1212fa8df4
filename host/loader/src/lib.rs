//! Finds plugin files, reads and checks them, opens them and creates instances.
//!
//! [`find_plugin_files`](find_plugin_files()) returns a plugin's file, and [`read_manifest`] reads
//! its manifest without running it. [`PluginLibrary::open`] loads and checks the file.
//! [`StartedPlugin`] holds its factory and creates [`PluginInstance`]s, in this process or in a
//! worker. `jaato_plugin_engine` runs opened plugins, and this crate adapts it to tokio.
//!
//! Not here: which plugins are trusted and enabled (the registry and the runtime), and starting
//! child processes.

mod c_entry;
mod cache;
mod call;
mod error;
mod executor;
mod find;
mod instance;
mod last_words;
mod layout;
mod manifest;
mod open;
mod platform;
mod plugin;
pub mod remote;
#[cfg(feature = "testing")]
pub mod testing;

pub use c_entry::factory_of_table;
pub use cache::{DescribeOutcome, DescriptionCache, DescriptionEntry, PluginFileStamp};
pub use call::{CallCanceller, RunningCall};
pub use error::{LoadError, LoadProblem};
pub use executor::Executor;
pub use find::{
    FILES_PER_FOLDER_MAX, FoundFile, PlaceKind, PlaceProblem, PluginSearchFolder,
    PluginSearchResult, find_plugin_files, shipped_plugin_folders,
};
pub use instance::Instance;
pub use jaato_plugin_engine::{
    ABLE_TO_RUN_MAX, ByteStream, CLOSE_STEP_MAX, CallResultSink, CallerKind, EMITTED_BYTES_MAX,
    EngineObserver, EngineServiceAnswer, EngineServices, Facet, FacetSet, FrameBytes, FrameStream,
    JOB_OVERDUE_MAX, JOBS_LOST_MAX, JOBS_PER_PLUGIN_MAX, JOBS_WAITING_MAX, JSON_VALUES_MAX,
    LONG_BLOCK, LiveObjectCounts as LiveCounts, Misbehavior, MisbehaviorReport, NoServices,
    PIECE_BYTES_MAX, QUESTION_BYTES_MAX, QUESTIONS_MAX, QUESTIONS_PER_PLUGIN_MAX,
    REPOLLS_PER_SECOND_MAX, STREAMS_MAX, STREAMS_PER_PLUGIN_MAX, STRIKES_MAX, ServiceCaller,
    TASKS_MAX, THREADS, WAITING_MAX, WALL_CLOCK_MAX, check_json, json_values_bound,
};
pub use last_words::{install_crash_reports, mark_work_done};
pub use manifest::{FILE_BYTES_MAX, FileError, FileProblem, read_manifest};
pub use open::{OpenedPlugin, PluginLibrary, describe_plugin};
pub use plugin::StartedPlugin;
