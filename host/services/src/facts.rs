//! Facts about this process for plugins: the user's terminal, shell and directory.

use std::io::IsTerminal as _;

use jaato_config::EnvironmentVariables;
use jaato_types::service::TerminalFacts;

/// Reads terminal and variables once, at the start of the host.
pub fn read_terminal_facts(variables: &EnvironmentVariables) -> TerminalFacts {
    let text = |name: &str| {
        let value = variables.get(name)?.to_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    };
    TerminalFacts {
        input_is_terminal: std::io::stdin().is_terminal(),
        output_is_terminal: std::io::stdout().is_terminal(),
        term: text("TERM"),
        term_program: text("TERM_PROGRAM"),
        colorterm: text("COLORTERM"),
        tmux: text("TMUX").is_some(),
        screen: text("STY").is_some(),
        graphics: text("JAATO_GRAPHICS_PROTOCOL"),
    }
}

/// Returns the name of the process that started the host, which is the current shell if a user
/// started it.
pub fn parent_process() -> Option<String> {
    let parent = std::os::unix::process::parent_id();
    // Without `/proc` this would take a child process, so the shell's own variable must do.
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}
