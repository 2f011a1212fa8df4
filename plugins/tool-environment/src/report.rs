//! Combines the aspects: a single one flattened, or all of them by name.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::execution::EnvironmentFacts;
use jaato_plugin_sdk::types::{Error, ErrorKind};

use crate::aspect::ReportAspect;
use crate::facts::MachineFacts;
use crate::{clock, machine, network, other_environment, session, shell, terminal};

/// Reports one aspect or all.
///
/// # Errors
/// An error for `context` or `session` alone in a session without a model, or for `cwd` if the host
/// knows no working directory.
pub(crate) fn build_report(
    aspect: ReportAspect,
    facts: &MachineFacts,
) -> Result<Map<String, Value>, Error> {
    Ok(match aspect {
        ReportAspect::Os => {
            location_aspect(facts, other_environment::os_fields, machine::os_fields)?
        }
        ReportAspect::Shell => {
            location_aspect(facts, other_environment::shell_fields, shell::shell_fields)?
        }
        ReportAspect::Arch => {
            location_aspect(facts, other_environment::arch_fields, machine::arch_fields)?
        }
        ReportAspect::Cwd => working_directory_fields(facts)?,
        ReportAspect::Terminal => terminal::terminal_fields(facts),
        ReportAspect::Context => {
            session::context_fields(&facts.session).ok_or_else(|| no_session_error("Context"))?
        }
        ReportAspect::Session => {
            session::session_fields(&facts.session).ok_or_else(|| no_session_error("Session"))?
        }
        ReportAspect::Datetime => clock::datetime_fields(&facts.moment),
        ReportAspect::Network => network::network_fields(&facts.variables),
        ReportAspect::All => all_aspects(facts),
    })
}

/// Returns every aspect by name. Unknown ones are null and not an error.
fn all_aspects(facts: &MachineFacts) -> Map<String, Value> {
    Map::from_iter([
        (
            "os".to_owned(),
            json!(location_aspect(facts, other_environment::os_fields, machine::os_fields).ok()),
        ),
        (
            "shell".to_owned(),
            json!(
                location_aspect(facts, other_environment::shell_fields, shell::shell_fields).ok()
            ),
        ),
        (
            "arch".to_owned(),
            json!(
                location_aspect(facts, other_environment::arch_fields, machine::arch_fields).ok()
            ),
        ),
        ("cwd".to_owned(), json!(working_directory(facts))),
        ("terminal".to_owned(), json!(terminal::terminal_fields(facts))),
        ("context".to_owned(), json!(session::context_fields(&facts.session))),
        ("session".to_owned(), json!(session::session_fields(&facts.session))),
        ("datetime".to_owned(), json!(clock::datetime_fields(&facts.moment))),
        ("network".to_owned(), json!(network::network_fields(&facts.variables))),
    ])
}

/// Reports an aspect of the place where commands run.
///
/// # Errors
/// An error if the environment cannot report its facts.
fn location_aspect(
    facts: &MachineFacts,
    there: fn(&EnvironmentFacts) -> Map<String, Value>,
    here: fn(&MachineFacts) -> Map<String, Value>,
) -> Result<Map<String, Value>, Error> {
    Ok(facts.place.remote_environment()?.map_or_else(|| here(facts), there))
}

/// Returns the working directory in an object, because a tool result is an object.
fn working_directory_fields(facts: &MachineFacts) -> Result<Map<String, Value>, Error> {
    facts.place.remote_environment()?;
    let directory = working_directory(facts).ok_or_else(|| {
        Error::new(ErrorKind::Unavailable, "the working directory is unknown")
            .with_hint("start jaato in a directory that exists and that you may read")
    })?;
    Ok(Map::from_iter([("cwd".to_owned(), json!(directory))]))
}

fn working_directory(facts: &MachineFacts) -> Option<&str> {
    // If the environment cannot report its facts, this machine's directory is not an answer.
    facts.place.remote_environment().ok()?;
    let own = || facts.session.working_directory.as_str();
    let directory = facts.place.working_directory().unwrap_or_else(own);
    Some(directory).filter(|directory| !directory.is_empty())
}

/// Returns the error for a missing session. Its text is part of the tool's contract, including the
/// capital and the period.
fn no_session_error(what: &str) -> Error {
    let message = format!("Session not available. {what} info requires session injection.");
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("ask in a session with a model: `jaato run \"how many tokens are used?\"`")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::{linux_machine, machine_without_model, report_lines, session_with_model};

    #[track_caller]
    fn check_report(aspect: ReportAspect, facts: MachineFacts, expected: Expect) {
        let told = build_report(aspect, &facts).map_or_else(
            |error| format!("{}: {error}\n", error.kind.name()),
            |report| report_lines(&report),
        );
        expected.assert_eq(&told);
    }

    fn machine_with_model() -> MachineFacts {
        MachineFacts { session: session_with_model(), ..linux_machine() }
    }

    #[test]
    fn aspect_all_reports_every_aspect_under_its_name() {
        check_report(
            ReportAspect::All,
            machine_with_model(),
            expect![[r#"
                arch.machine = "x86_64"
                arch.normalized = "x86_64"
                arch.processor = "x86_64"
                context.context_limit = 1048576
                context.gc = null
                context.model = "gemini-2.5-flash"
                context.output_tokens = 3234
                context.percent_used = 1.45
                context.prompt_tokens = 12000
                context.provider = "gemini"
                context.tokens_remaining = 1033342
                context.total_tokens = 15234
                context.turns = 5
                cwd = "/home/user/project"
                datetime.iso_local = "2025-12-31T23:30:15.123456"
                datetime.iso_utc = "2025-12-31T23:30:15Z"
                datetime.local = "2025-12-31 23:30:15"
                datetime.timezone = "UTC"
                datetime.utc = "2025-12-31 23:30:15"
                datetime.utc_offset = "+00:00"
                network.no_proxy = null
                network.proxy.configured = false
                network.proxy.http_proxy = null
                network.proxy.https_proxy = null
                network.proxy_auth.type = "none"
                network.ssl.verify = true
                os.friendly_name = "Linux"
                os.name = "Linux"
                os.release = "5.15.0"
                os.type = "linux"
                session.agent_id = "main"
                session.agent_type = "main"
                session.session_id = "20251207_143022"
                shell.current = "bash"
                shell.default = "bash"
                shell.dir_separator = "/"
                shell.path = "/bin/bash"
                shell.path_separator = ":"
                terminal.color_depth = "256"
                terminal.colorterm = null
                terminal.emulator = "xterm-compatible"
                terminal.graphics = null
                terminal.interactive = true
                terminal.multiplexer = null
                terminal.term = "xterm-256color"
                terminal.term_program = null
            "#]],
        );
    }

    #[test]
    fn single_aspect_equals_its_part_of_all() {
        let whole = build_report(ReportAspect::All, &machine_with_model()).unwrap();
        for aspect in ReportAspect::EACH {
            let alone = Value::Object(build_report(aspect, &machine_with_model()).unwrap());
            let part = &whole[&format!("{aspect:?}").to_lowercase()];
            let expected =
                if aspect == ReportAspect::Cwd { json!({ "cwd": part }) } else { part.clone() };
            assert_eq!(alone, expected, "{aspect:?}");
        }
        assert_eq!(whole.len(), ReportAspect::EACH.len());
    }

    #[test]
    fn working_directory_is_reported_under_the_key_cwd() {
        check_report(
            ReportAspect::Cwd,
            linux_machine(),
            expect![[r#"
                cwd = "/home/user/project"
            "#]],
        );
    }

    #[test]
    fn context_and_session_aspects_fail_without_a_model_and_are_null_in_all() {
        check_report(
            ReportAspect::Context,
            machine_without_model(),
            expect![[r#"
                unavailable: Session not available. Context info requires session injection.
                hint: ask in a session with a model: `jaato run "how many tokens are used?"`
            "#]],
        );
        check_report(
            ReportAspect::Session,
            machine_without_model(),
            expect![[r#"
                unavailable: Session not available. Session info requires session injection.
                hint: ask in a session with a model: `jaato run "how many tokens are used?"`
            "#]],
        );
        let whole = build_report(ReportAspect::All, &machine_without_model()).unwrap();
        assert_eq!((&whole["context"], &whole["session"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn unknown_working_directory_is_an_error_for_cwd_and_null_in_all() {
        let mut facts = linux_machine();
        facts.session.working_directory.clear();
        assert_eq!(build_report(ReportAspect::All, &facts).unwrap()["cwd"], Value::Null);
        check_report(
            ReportAspect::Cwd,
            facts,
            expect![[r#"
                unavailable: the working directory is unknown
                hint: start jaato in a directory that exists and that you may read
            "#]],
        );
    }
}
