//! The aspects of an execution environment that is not this machine: a container's system, shell
//! and folder.
//!
//! Facts that such an environment does not report are null, because this machine's facts may not
//! apply there.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::execution::{EnvironmentFacts, OsFacts};
use jaato_plugin_sdk::types::{Error, ErrorKind};

use crate::machine::normalize_architecture;

/// The place where the session's files are and its commands run.
#[derive(Debug, Clone, Default)]
pub(crate) enum CommandLocation {
    /// This machine.
    #[default]
    Here,
    /// An environment that reported its facts.
    Environment(Box<EnvironmentFacts>),
    /// An environment that cannot report its facts.
    Unknown(Error),
}

impl CommandLocation {
    /// Converts the host's answer.
    pub(crate) fn from_host_answer(asked: Result<EnvironmentFacts, Error>) -> Self {
        match asked {
            Ok(facts) => Self::Environment(Box::new(facts)),
            // The session has no environment, so commands can only run here.
            Err(error) if error.kind == ErrorKind::UnknownOperation => Self::Here,
            Err(error) => Self::Unknown(error),
        }
    }

    /// Returns the environment if it is not this machine.
    ///
    /// # Errors
    /// An error if the environment cannot report its facts.
    pub(crate) fn remote_environment(&self) -> Result<Option<&EnvironmentFacts>, Error> {
        match self {
            Self::Here => Ok(None),
            Self::Environment(facts) => Ok(Some(&**facts).filter(|facts| !facts.is_host)),
            Self::Unknown(error) => Err(error.clone()),
        }
    }

    /// Returns the folder in which commands start, if the environment reports it.
    pub(crate) fn working_directory(&self) -> Option<&str> {
        match self {
            Self::Here | Self::Unknown(_) => None,
            Self::Environment(facts) => Some(facts.working_directory.as_str()),
        }
    }
}

/// Returns the aspect like [`machine::os_fields`](crate::machine::os_fields).
pub(crate) fn os_fields(facts: &EnvironmentFacts) -> Map<String, Value> {
    let os = facts.os.as_ref();
    let value = |read: fn(&OsFacts) -> &String| json!(os.map(read).filter(|text| !text.is_empty()));
    Map::from_iter([
        ("type".to_owned(), value(|os| &os.kind)),
        ("name".to_owned(), value(|os| &os.name)),
        ("release".to_owned(), value(|os| &os.release)),
        ("friendly_name".to_owned(), value(|os| &os.friendly_name)),
    ])
}

/// Returns the aspect like [`machine::arch_fields`](crate::machine::arch_fields).
pub(crate) fn arch_fields(facts: &EnvironmentFacts) -> Map<String, Value> {
    let machine = facts.machine.as_deref();
    Map::from_iter([
        ("machine".to_owned(), json!(machine)),
        ("processor".to_owned(), json!(machine)),
        ("normalized".to_owned(), json!(machine.map(normalize_architecture))),
    ])
}

/// Returns the aspect like [`shell::shell_fields`](crate::shell::shell_fields). All existing
/// environments use Unix separators.
pub(crate) fn shell_fields(facts: &EnvironmentFacts) -> Map<String, Value> {
    let shell = facts.shell.as_ref();
    let name = json!(shell.map(|shell| &shell.name));
    Map::from_iter([
        ("default".to_owned(), name.clone()),
        ("current".to_owned(), name),
        ("path".to_owned(), json!(shell.map(|shell| &shell.path))),
        ("path_separator".to_owned(), json!(":")),
        ("dir_separator".to_owned(), json!("/")),
    ])
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::execution::ShellFacts;

    use super::*;

    #[test]
    fn container_facts_are_reported_and_unknown_facts_are_null() {
        let container = EnvironmentFacts {
            working_directory: "/workspace".into(),
            os: Some(OsFacts { kind: "linux".into(), name: "Linux".into(), ..OsFacts::default() }),
            shell: Some(ShellFacts { name: "sh".into(), path: "/bin/sh".into() }),
            machine: Some("aarch64".into()),
            ..EnvironmentFacts::default()
        };
        let expected =
            json!({ "type": "linux", "name": "Linux", "release": null, "friendly_name": null });
        assert_eq!(json!(os_fields(&container)), expected);
        assert_eq!(arch_fields(&container)["normalized"], "arm64");
        assert_eq!(shell_fields(&container)["path"], "/bin/sh");
        assert_eq!(json!(os_fields(&EnvironmentFacts::default()))["type"], Value::Null);
    }

    #[test]
    fn failed_environment_query_is_an_error_unless_the_operation_is_unknown() {
        let of = |kind| CommandLocation::from_host_answer(Err(Error::new(kind, "why")));
        assert!(of(ErrorKind::UnknownOperation).remote_environment().unwrap().is_none());
        assert!(of(ErrorKind::Unavailable).remote_environment().is_err());
        let here = EnvironmentFacts { is_host: true, ..EnvironmentFacts::default() };
        assert!(
            CommandLocation::from_host_answer(Ok(here)).remote_environment().unwrap().is_none()
        );
    }
}
