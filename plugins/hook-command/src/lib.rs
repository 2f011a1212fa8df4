//! `hook-command`: runs the user's commands around sessions, prompts and tool calls, as other
//! programs do: JSON on standard input, a decision by exit code or JSON on standard output.
//!
//! [`settings`] finds the hooks, [`matcher`] chooses them, [`tool_input`] translates tool calls,
//! [`run`] runs one command, [`outcome`] reads its decision, [`session`] combines those of a
//! session, [`moments`] answers the host, and [`user_command`] is `jaato hook`.
#![forbid(unsafe_code)]

mod matcher;
mod moments;
mod outcome;
mod run;
mod session;
mod settings;
mod tool_input;
mod transcript;
mod user_command;

use jaato_plugin_sdk::prelude::*;

use moments::CommandHooks;

export_plugin! { state: CommandHooks, hook: CommandHooks }
