//! Finds plugin files, reads and checks them, opens them and hands out instances.
//!
//! The way of a plugin: [`find`](find()) gives its file, [`read_manifest`] what it says of itself
//! without running; [`Library::open`] loads and checks it; [`Plugin`] holds its factory and makes
//! [`Instance`]s, in this process or in a worker. What runs a plugin, once it is open, is
//! `jaato_plugin_engine`; here it stands on tokio.
//!
//! Not here: which plugins are trusted and enabled (the registry and the runtime), children and
//! workers.

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
pub use cache::{Described, DescriptionCache, Entry, Stamp};
pub use call::{Canceller, RunningCall};
pub use error::{LoadError, LoadProblem};
pub use executor::Executor;
pub use find::{
    FILES_PER_FOLDER_MAX, Found, FoundFile, Place, PlaceKind, PlaceProblem, find, shipped_places,
};
pub use instance::Instance;
pub use jaato_plugin_engine::{
    ABLE_TO_RUN_MAX, ByteStream, Bytes, CLOSE_STEP_MAX, Caller, CallerKind, EMITTED_BYTES_MAX,
    Facet, Facets, Frames, JOB_OVERDUE_MAX, JOBS_LOST_MAX, JOBS_PER_PLUGIN_MAX, JOBS_WAITING_MAX,
    JSON_VALUES_MAX, Live as LiveCounts, Misdeed, NoServices, Outlet, PIECE_BYTES_MAX,
    QUESTION_BYTES_MAX, QUESTIONS_MAX, QUESTIONS_PER_PLUGIN_MAX, REPOLLS_PER_SECOND_MAX, Report,
    STREAMS_MAX, STREAMS_PER_PLUGIN_MAX, STRIKES_MAX, Served, Services, TASKS_MAX, THREADS,
    WAITING_MAX, WALL_CLOCK_MAX, Watch, check_json, values_of,
};
pub use last_words::{tell_last_words, work_is_done};
pub use manifest::{FILE_BYTES_MAX, FileError, FileProblem, read_manifest};
pub use open::{Library, Opened, describe};
pub use plugin::Plugin;
