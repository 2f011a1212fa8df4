//! The slash commands of a conversation, one row each. The parser, the help, the Tab completions
//! and the usage hints are derived from the rows.

use std::pin::Pin;

use jaato_runtime::session_loop::SessionHandle;
use jaato_runtime::types::Error;

use super::Chat;
use crate::exit::Exit;
use crate::{permissions, tasks};

/// A command of the conversation itself.
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: &'static str,
    /// The arguments as the help shows them. Empty if the command takes no arguments.
    pub arguments: &'static str,
    /// The description in one line.
    pub help: &'static str,
    /// When and how it runs.
    pub run: Run,
}

/// When a command runs, and the function that does it.
pub enum Run {
    /// At once, even while the model answers.
    AtOnce(fn(&SessionHandle, &str) -> Result<Exit, Error>),
    /// At once. Shows all commands.
    Help,
    /// After the running turn.
    AfterTurn(for<'a> fn(&'a mut Chat<'_>, &'a str) -> Running<'a>),
}

/// A running command. It records its own exit code.
type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// All commands, by their names.
pub static COMMANDS: [SlashCommand; 14] = [
    SlashCommand {
        name: "again",
        arguments: "",
        help: "sends the last request again, for another answer",
        run: Run::AfterTurn(|chat, _| Box::pin(chat.again())),
    },
    SlashCommand {
        name: "attach",
        arguments: "FILE…",
        help: "shows the model an image, a PDF or text with your next message, as `@FILE` in it does",
        run: Run::AfterTurn(|chat, files| Box::pin(chat.attach(files))),
    },
    SlashCommand {
        name: "export",
        arguments: "[FILE]",
        help: "writes this session to a new file: .md, .html or .jsonl",
        run: Run::AfterTurn(|chat, file| Box::pin(chat.export(file))),
    },
    SlashCommand {
        name: "fork",
        arguments: "[NUMBER]",
        help: "continues in a copy of this session, before your message with that number or as it is",
        run: Run::AfterTurn(|chat, words| Box::pin(chat.fork(words))),
    },
    SlashCommand { name: "help", arguments: "", help: "lists all this", run: Run::Help },
    SlashCommand {
        name: "mode",
        arguments: "[NAME]",
        help: "shows or changes the approval mode: ask, accept-edits, plan or read-only",
        run: Run::AtOnce(permissions::run_mode_command),
    },
    SlashCommand {
        name: "model",
        arguments: "[NAME]",
        help: "switches to another model; without a name, shows the current one",
        run: Run::AfterTurn(|chat, name| Box::pin(chat.model(name))),
    },
    SlashCommand {
        name: "permissions",
        arguments: "[remove NUMBER|all]",
        help: "lists your answers for later calls; `remove` removes them",
        run: Run::AtOnce(permissions::run_permissions_command),
    },
    SlashCommand {
        name: "plugin",
        arguments: "list|show NAME|reload [NAME]",
        help: "lists, shows or reloads plugins; jaato reloads a replaced file itself",
        run: Run::AfterTurn(|chat, words| Box::pin(chat.plugin(words))),
    },
    SlashCommand {
        name: "quit",
        arguments: "",
        help: "ends the conversation, as Ctrl-D does",
        run: Run::AfterTurn(|chat, _| Box::pin(chat.quit())),
    },
    SlashCommand {
        name: "rename",
        arguments: "NAME",
        help: "gives this session a name",
        run: Run::AfterTurn(|chat, name| Box::pin(chat.rename(name))),
    },
    SlashCommand {
        name: "resume",
        arguments: "[ID]",
        help: "continues another saved session",
        run: Run::AfterTurn(|chat, id| Box::pin(chat.resume(id))),
    },
    SlashCommand {
        name: "rewind",
        arguments: "[NUMBER] [files]",
        help: "takes back your message with that number and everything after it; `files` undoes edits too",
        run: Run::AfterTurn(|chat, words| Box::pin(chat.rewind(words))),
    },
    SlashCommand {
        name: "tasks",
        arguments: "[stop ID|all]",
        help: "lists what runs in the background; `stop` ends it",
        run: Run::AtOnce(tasks::run_tasks_command),
    },
];

/// Finds a command by its name.
pub fn find(name: &str) -> Option<&'static SlashCommand> {
    COMMANDS.iter().find(|command| command.name == name)
}

impl SlashCommand {
    /// Returns the syntax, without the slash.
    pub fn usage(&self) -> String {
        format!("{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

/// Returns the hint for a line that a command does not understand.
pub fn hint(name: &str) -> String {
    find(name).map(|command| format!("`/{}` {}", command.usage(), command.help)).unwrap_or_default()
}
