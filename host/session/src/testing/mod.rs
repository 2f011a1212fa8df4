//! A stage for tests: scripted provider, tools and user, recorded events, simulated clock.
//!
//! Behind the feature `testing`, for the tests of this crate and of crates that depend on it. Under
//! tokio's paused clock (`start_paused = true`) nothing here waits in real time, and a run repeats
//! exactly.

mod gc;
mod hooks;
mod outside;
mod provider;
mod scripted_user;
mod stage;
mod tools;

pub use gc::{ScriptedGc, ScriptedGcAction};
pub use hooks::ScriptedHooks;
pub use outside::{CountingIds, MemoryOutputStore, RecordedEvents, SimulatedClock};
pub use provider::{ScriptedProvider, ScriptedProviderAction};
pub use scripted_user::ScriptedUser;
pub use stage::TestStage;
pub use tools::{ConcurrentCallRecord, ScriptedTool, ScriptedTools};
