//! Machines, sessions and report formatting for the tests.

use jaato_plugin_sdk::serde_json::{Map, Value};
use jaato_plugin_sdk::types::service::{ContextFacts, SessionFacts, TerminalFacts};
use jiff::Timestamp;
use jiff::tz::Offset;

use crate::facts::{LocalMoment, MachineFacts, ProgramPresence, ReadableVariables};
use crate::other_environment::CommandLocation;

/// Writes one `path = value` per line, sorted, so that the order of maps does not matter.
pub(crate) fn report_lines(report: &Map<String, Value>) -> String {
    let mut lines = Vec::new();
    for (key, value) in report {
        write_lines(key, value, &mut lines);
    }
    lines.sort_unstable();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn write_lines(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                write_lines(&format!("{path}.{key}"), value, lines);
            }
        }
        _ => lines.push(format!("{path} = {value}")),
    }
}

pub(crate) fn readable_variables(set: &[(&str, &str)]) -> ReadableVariables {
    let find = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    ReadableVariables::read_allowed(|name| find(name).map(str::to_owned))
}

/// Returns the time half an hour before a new year in UTC.
pub(crate) fn local_moment(offset_seconds: i32, zone: &str) -> LocalMoment {
    LocalMoment {
        timestamp: "2025-12-31T23:30:15.123456Z".parse::<Timestamp>().unwrap(),
        offset: Offset::from_seconds(offset_seconds).unwrap(),
        zone: zone.to_owned(),
    }
}

/// Returns the session facts of an interactive terminal.
fn session_at_terminal(term: Option<&str>, parent: &str, directory: &str) -> SessionFacts {
    SessionFacts {
        working_directory: directory.to_owned(),
        parent_process: Some(parent.to_owned()),
        terminal: TerminalFacts {
            input_is_terminal: true,
            output_is_terminal: true,
            term: term.map(str::to_owned),
            ..TerminalFacts::default()
        },
        ..SessionFacts::default()
    }
}

pub(crate) fn linux_machine() -> MachineFacts {
    MachineFacts {
        os: "linux".to_owned(),
        kernel_version: Some("5.15.0".to_owned()),
        os_version: Some("12".to_owned()),
        machine: "x86_64".to_owned(),
        variables: readable_variables(&[("SHELL", "/bin/bash")]),
        programs: ProgramPresence::default(),
        moment: local_moment(0, "UTC"),
        session: session_at_terminal(Some("xterm-256color"), "bash", "/home/user/project"),
        place: CommandLocation::Here,
    }
}

pub(crate) fn macos_machine() -> MachineFacts {
    let mut session = session_at_terminal(Some("xterm-256color"), "-zsh", "/Users/user/project");
    session.terminal.term_program = Some("iTerm.app".to_owned());
    session.terminal.colorterm = Some("truecolor".to_owned());
    MachineFacts {
        os: "macos".to_owned(),
        kernel_version: Some("22.1.0".to_owned()),
        os_version: Some("13.0".to_owned()),
        machine: "arm64".to_owned(),
        variables: readable_variables(&[("SHELL", "/bin/zsh")]),
        session,
        ..linux_machine()
    }
}

pub(crate) fn windows_machine() -> MachineFacts {
    MachineFacts {
        os: "windows".to_owned(),
        kernel_version: Some("19045".to_owned()),
        os_version: Some("10 (19045)".to_owned()),
        machine: "x86_64".to_owned(),
        variables: readable_variables(&[
            ("COMSPEC", r"C:\WINDOWS\system32\cmd.exe"),
            ("PROCESSOR_ARCHITECTURE", "AMD64"),
            ("PROCESSOR_IDENTIFIER", "Intel64 Family 6 Model 158 Stepping 10, GenuineIntel"),
        ]),
        programs: ProgramPresence { powershell: true, pwsh: false, bash: false },
        session: session_at_terminal(None, "cmd.exe", r"C:\Users\user\project"),
        place: CommandLocation::Here,
        ..linux_machine()
    }
}

pub(crate) fn msys2_machine() -> MachineFacts {
    MachineFacts {
        variables: readable_variables(&[
            ("COMSPEC", r"C:\WINDOWS\system32\cmd.exe"),
            ("MSYSTEM", "UCRT64"),
            ("SHELL", "/usr/bin/bash"),
        ]),
        ..windows_machine()
    }
}

pub(crate) fn machine_without_model() -> MachineFacts {
    MachineFacts {
        session: SessionFacts { context: None, ..session_with_model() },
        ..linux_machine()
    }
}

pub(crate) fn session_with_model() -> SessionFacts {
    SessionFacts {
        session_id: "20251207_143022".to_owned(),
        agent_id: "main".to_owned(),
        agent_type: "main".to_owned(),
        context: Some(ContextFacts {
            model: "gemini/gemini-2.5-flash".to_owned(),
            context_limit: 1_048_576,
            prompt_tokens: 12_000,
            output_tokens: 3_234,
            turns: 5,
            gc: None,
        }),
        ..linux_machine().session
    }
}
