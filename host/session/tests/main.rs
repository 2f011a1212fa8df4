//! Whole sessions with a scripted provider, tools and a person.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod calls;
mod cancel;
mod caps;
mod collecting;
mod command;
mod conditions;
mod cuts;
mod deltas;
mod gc;
mod gc_cut;
mod gc_plans;
mod gc_window;
mod handle;
mod history;
mod hooks;
mod introspection;
mod model_change;
mod objects;
mod random;
mod random_turns;
mod renewal;
mod sight;
mod silence;
mod tasks;
mod turn;
