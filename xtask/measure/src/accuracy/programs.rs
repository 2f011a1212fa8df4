//! The programs to run, and their steps.

use anyhow::{Context, Result};
use serde_json::Value;

/// The programs, by kind.
const FILES: [(&str, &str); 6] = [
    ("shells", include_str!("programs/shells.json")),
    ("work", include_str!("programs/work.json")),
    ("repls", include_str!("programs/repls.json")),
    ("databases", include_str!("programs/databases.json")),
    ("screens", include_str!("programs/screens.json")),
    ("others", include_str!("programs/others.json")),
];

/// One program. `@NAME@` in its texts is replaced with a value from the services.
#[derive(Debug)]
pub struct AccuracyProgram {
    pub name: String,
    /// Programs that must be installed.
    pub needs: Vec<String>,
    /// The command, as a user types it.
    pub command: String,
    /// The folder's name, where it is visible.
    pub folder: String,
    /// The names and contents of the folder's files.
    pub files: Vec<(String, String)>,
    /// The first and last commands of a shell there.
    pub setup: Option<String>,
    pub teardown: Option<String>,
    /// Whether only root can run it.
    pub is_for_root: bool,
    pub steps: Vec<ProgramStep>,
}

/// One step: its input, and how to recognize that it is done.
#[derive(Debug)]
pub struct ProgramStep {
    pub does: StepAction,
    /// The text on the screen when the step is done, and the text that must be absent.
    pub shows: String,
    pub lacks: Option<String>,
    pub ends: StepEndState,
    /// Whether the program then asks for a secret.
    pub asks_secret: bool,
}

/// The action of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum StepAction {
    /// Starts the program.
    Starts,
    /// Types this text.
    Types(String),
    /// Makes a shell with this name, inside a connection, mark its prompts.
    Marks(String),
}

/// The state at the end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEndState {
    /// The program waits for input.
    Waiting,
    /// The program waits for input, and keeps printing something, such as a clock.
    GoingOn,
    /// The program has ended.
    Exited,
    /// The program stays busy.
    Never,
}

/// Reads all programs.
pub fn read_programs() -> Result<Vec<AccuracyProgram>> {
    let mut programs = Vec::new();
    for (name, text) in FILES {
        let list: Vec<Value> =
            serde_json::from_str(text).with_context(|| format!("reading `{name}.json`"))?;
        programs.extend(list.iter().map(AccuracyProgram::from_json));
    }
    Ok(programs)
}

impl AccuracyProgram {
    fn from_json(json: &Value) -> Self {
        let list = |key: &str| json[key].as_array().into_iter().flatten();
        let files = json["files"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            name: text(&json["name"]),
            needs: list("needs").map(text).collect(),
            command: text(&json["command"]),
            folder: json["folder"].as_str().unwrap_or("work").to_owned(),
            files: files.map(|(name, content)| (name.clone(), text(content))).collect(),
            setup: json["setup"].as_str().map(str::to_owned),
            teardown: json["teardown"].as_str().map(str::to_owned),
            is_for_root: json["root"] == true,
            steps: list("steps").map(ProgramStep::from_json).collect(),
        }
    }
}

impl ProgramStep {
    fn from_json(json: &Value) -> Self {
        let is = |key: &str| json[key] == true;
        Self {
            does: match (json["type"].as_str(), json["mark"].as_str()) {
                (Some(text), _) => StepAction::Types(text.to_owned()),
                (None, Some(shell)) => StepAction::Marks(shell.to_owned()),
                (None, None) => StepAction::Starts,
            },
            shows: json["shows"].as_str().unwrap_or_default().to_owned(),
            lacks: json["lacks"].as_str().map(str::to_owned),
            ends: match () {
                () if is("never") => StepEndState::Never,
                () if is("exits") => StepEndState::Exited,
                () if is("goes_on") => StepEndState::GoingOn,
                () => StepEndState::Waiting,
            },
            asks_secret: is("secret"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_name_of_its_own_and_three_steps_or_more() {
        let programs = read_programs().unwrap();
        let mut names: Vec<&str> = programs.iter().map(|program| &*program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), programs.len());
        for program in &programs {
            assert!(program.steps.len() >= 3, "{}", program.name);
            assert!(!program.needs.is_empty() && !program.command.is_empty(), "{}", program.name);
            let starts = program.steps.iter().map(|step| step.does == StepAction::Starts);
            let first = std::iter::once(true).chain(std::iter::repeat(false));
            assert!(starts.eq(first.take(program.steps.len())), "{}", program.name);
        }
    }
}
