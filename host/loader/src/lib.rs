//! Finds plugin files, reads and checks them, opens them and hands out instances.
//!
//! The way of a plugin: [`find`](find()) gives its file, [`read_manifest`] what it says of itself
//! without running; [`Library::open`] loads and checks it; [`Plugin`] holds its factory and makes
//! [`Instance`]s; an instance runs calls. Everything that a plugin made is polled and dropped by
//! the [`Executor`]; what a plugin may use of the host it reaches through a context, which lends
//! the host's [`Services`].
//!
//! Not here: which plugins are trusted and enabled (the registry and the runtime), children and
//! workers.

mod bounds;
mod bytes;
mod c_entry;
mod cache;
mod call;
mod context;
mod error;
mod executor;
mod facet;
mod fence;
mod find;
#[cfg(test)]
mod host_conformance;
mod instance;
mod last_words;
mod layout;
mod live;
mod local;
mod manifest;
mod open;
mod platform;
mod plugin;
pub mod remote;
mod running;
mod services;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use bounds::{
    JSON_VALUES_MAX, QUESTION_BYTES_MAX, QUESTIONS_MAX, QUESTIONS_PER_PLUGIN_MAX,
    STREAMS_PER_PLUGIN_MAX, check_json, values_of,
};
pub use bytes::Bytes;
pub use c_entry::factory_of_table;
pub use cache::{Described, DescriptionCache, Entry, Stamp};
pub use call::{Canceller, Outlet, RunningCall};
pub use context::{EMITTED_BYTES_MAX, PIECE_BYTES_MAX, STREAMS_MAX, TASKS_MAX, WAITING_MAX};
pub use error::{LoadError, LoadProblem};
pub use executor::{
    ABLE_TO_RUN_MAX, Executor, JOB_OVERDUE_MAX, JOBS_LOST_MAX, JOBS_PER_PLUGIN_MAX,
    JOBS_WAITING_MAX, REPOLLS_PER_SECOND_MAX, STRIKES_MAX, THREADS, WALL_CLOCK_MAX,
};
pub use facet::{Facet, Facets};
pub use find::{
    FILES_PER_FOLDER_MAX, Found, FoundFile, Place, PlaceKind, PlaceProblem, find, shipped_places,
};
pub use instance::{CLOSE_STEP_MAX, Instance};
pub use last_words::{tell_last_words, work_is_done};
pub use live::LiveCounts;
pub use manifest::{FILE_BYTES_MAX, FileError, FileProblem, read_manifest};
pub use open::{Library, Opened, describe};
pub use plugin::Plugin;
pub use services::{ByteStream, Caller, CallerKind, Frames, NoServices, Served, Services};
pub use watch::{Misdeed, Report, Watch};
