//! The tool `get_environment`: gets the session's facts from the host, and all others from the
//! machine.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::service::SessionFacts;

use crate::aspect::ReportAspect;
use crate::gather::gather_facts;
use crate::other_environment::CommandLocation;
use crate::report::build_report;

/// Get facts about this computer, its terminal and this session. Do not guess them.
#[derive(ToolInput)]
#[tool(
    read_only,
    idempotent,
    open_world = false,
    core,
    auto_approval,
    category = "system",
    example("Which folder are we in?", aspect = "cwd"),
    example("What day is it today?", aspect = "datetime"),
    example("Can my terminal show colours?", aspect = "terminal"),
    example("How many tokens are left?", aspect = "context")
)]
struct GetEnvironment {
    /// os: system and version; context: tokens used; datetime: date, time, zone.
    #[serde(default)]
    aspect: ReportAspect,
}

impl Tool for GetEnvironment {
    type State = ();

    async fn call(self, cx: &Cx) -> Result<Output> {
        let session =
            if self.aspect.needs_session() { cx.session().await? } else { SessionFacts::default() };
        let place = if self.aspect.needs_place() {
            CommandLocation::from_host_answer(cx.environment().await)
        } else {
            CommandLocation::default()
        };
        // The clock's time zone and the programs on `PATH` are read from disk.
        let facts = cx.blocking(move |_| gather_facts(session, place)).await?;
        Ok(Output::json(build_report(self.aspect, &facts)?.into()))
    }
}

tool!(GetEnvironment);

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json;
    use jaato_plugin_sdk::types::{Annotations, Availability, Manifest};

    use super::*;
    use crate::facts::ReadableVariables;

    /// About 160 tokens. Every request contains this text, so each word has a repeated cost.
    #[test]
    fn get_environment_spec_stays_within_its_size_limit() {
        let spec = GetEnvironment::spec();
        let aspect = json!({
            "type": "string",
            "enum": [
                "os", "shell", "arch", "cwd", "terminal", "context", "session", "datetime",
                "network", "all",
            ],
            "description": spec.parameters["properties"]["aspect"]["description"],
            "default": "all",
        });
        let parameters = json!({
            "type": "object",
            "properties": { "aspect": aspect },
            "additionalProperties": false,
        });
        assert_eq!(spec.parameters, parameters);
        let bytes = spec.description.len() + spec.parameters.to_string().len();
        assert!(bytes <= 560, "{bytes}");
    }

    #[test]
    fn get_environment_is_read_only_and_auto_approved() {
        let spec = GetEnvironment::spec();
        let promised = Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
            parallel_safe: true,
        };
        assert_eq!((spec.name.as_str(), spec.category.as_str()), ("get_environment", "system"));
        assert_eq!((spec.annotations, spec.availability), (promised, Availability::Core));
        assert!(spec.auto_approval);
    }

    #[test]
    fn missing_arguments_default_to_all_and_examples_parse() {
        assert_eq!(GetEnvironment::parse(b"{}").unwrap().aspect, ReportAspect::All);
        let read = |example: jaato_plugin_sdk::types::Example| {
            let json = serde_json::to_vec(&example.arguments).unwrap();
            GetEnvironment::parse(&json).unwrap().aspect
        };
        let aspects: Vec<_> = GetEnvironment::spec().examples.into_iter().map(read).collect();
        assert_eq!(
            aspects,
            [
                ReportAspect::Cwd,
                ReportAspect::Datetime,
                ReportAspect::Terminal,
                ReportAspect::Context
            ]
        );
        let error = GetEnvironment::parse(br#"{"aspect":"moon"}"#).err().unwrap();
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
    }

    #[test]
    fn manifest_lists_exactly_the_variables_that_are_read() {
        let manifest = Manifest::parse(crate::__jaato::MODULE.manifest).unwrap();
        let mut expected = ReadableVariables::NAMES.to_vec();
        expected.extend(["TZ", "TZDIR"]);
        assert_eq!(manifest.variables, expected);
    }
}
