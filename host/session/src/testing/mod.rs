//! A stage for tests: scripted provider, tools and user, recorded events, simulated clock.
//!
//! Behind the feature `testing`, for the tests of this crate and of crates that depend on it. Under
//! tokio's paused clock (`start_paused = true`) nothing here waits in real time, and a run repeats
//! exactly.

mod gc;
mod hooks;
mod outside;
mod person;
mod provider;
mod stage;
mod tools;

pub use gc::{GcBeat, ScriptedGc};
pub use hooks::ScriptedHooks;
pub use outside::{CountingIds, KeptOutputs, RecordedEvents, SimulatedClock};
pub use person::ScriptedPerson;
pub use provider::{Beat, ScriptedProvider};
pub use stage::Stage;
pub use tools::{ScriptedTools, Seat, Tool};
