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
pub(crate) fn report(
    aspect: ReportAspect,
    facts: &MachineFacts,
) -> Result<Map<String, Value>, Error> {
    Ok(match aspect {
        ReportAspect::Os => location_aspect(facts, other_environment::os, machine::os)?,
        ReportAspect::Shell => location_aspect(facts, other_environment::shell, shell::shell)?,
        ReportAspect::Arch => location_aspect(facts, other_environment::arch, machine::arch)?,
        ReportAspect::Cwd => cwd(facts)?,
        ReportAspect::Terminal => terminal::terminal(facts),
        ReportAspect::Context => {
            session::context(&facts.session).ok_or_else(|| no_session_error("Context"))?
        }
        ReportAspect::Session => {
            session::session(&facts.session).ok_or_else(|| no_session_error("Session"))?
        }
        ReportAspect::Datetime => clock::datetime(&facts.moment),
        ReportAspect::Network => network::network(&facts.variables),
        ReportAspect::All => all_aspects(facts),
    })
}

/// Returns every aspect by name. Unknown ones are null and not an error.
fn all_aspects(facts: &MachineFacts) -> Map<String, Value> {
    Map::from_iter([
        ("os".to_owned(), json!(location_aspect(facts, other_environment::os, machine::os).ok())),
        (
            "shell".to_owned(),
            json!(location_aspect(facts, other_environment::shell, shell::shell).ok()),
        ),
        (
            "arch".to_owned(),
            json!(location_aspect(facts, other_environment::arch, machine::arch).ok()),
        ),
        ("cwd".to_owned(), json!(working_directory(facts))),
        ("terminal".to_owned(), json!(terminal::terminal(facts))),
        ("context".to_owned(), json!(session::context(&facts.session))),
        ("session".to_owned(), json!(session::session(&facts.session))),
        ("datetime".to_owned(), json!(clock::datetime(&facts.moment))),
        ("network".to_owned(), json!(network::network(&facts.variables))),
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
fn cwd(facts: &MachineFacts) -> Result<Map<String, Value>, Error> {
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
    use crate::testing::{lines, linux, session_with_model, without_model};

    #[track_caller]
    fn check(aspect: ReportAspect, facts: MachineFacts, expected: Expect) {
        let told = report(aspect, &facts).map_or_else(
            |error| format!("{}: {error}\n", error.kind.name()),
            |report| lines(&report),
        );
        expected.assert_eq(&told);
    }

    fn with_model() -> MachineFacts {
        MachineFacts { session: session_with_model(), ..linux() }
    }

    #[test]
    fn aspect_all_reports_every_aspect_under_its_name() {
        check(
            ReportAspect::All,
            with_model(),
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
        let whole = report(ReportAspect::All, &with_model()).unwrap();
        for aspect in ReportAspect::EACH {
            let alone = Value::Object(report(aspect, &with_model()).unwrap());
            let part = &whole[&format!("{aspect:?}").to_lowercase()];
            let expected =
                if aspect == ReportAspect::Cwd { json!({ "cwd": part }) } else { part.clone() };
            assert_eq!(alone, expected, "{aspect:?}");
        }
        assert_eq!(whole.len(), ReportAspect::EACH.len());
    }

    #[test]
    fn working_directory_is_reported_under_the_key_cwd() {
        check(
            ReportAspect::Cwd,
            linux(),
            expect![[r#"
                cwd = "/home/user/project"
            "#]],
        );
    }

    #[test]
    fn context_and_session_aspects_fail_without_a_model_and_are_null_in_all() {
        check(
            ReportAspect::Context,
            without_model(),
            expect![[r#"
                unavailable: Session not available. Context info requires session injection.
                hint: ask in a session with a model: `jaato run "how many tokens are used?"`
            "#]],
        );
        check(
            ReportAspect::Session,
            without_model(),
            expect![[r#"
                unavailable: Session not available. Session info requires session injection.
                hint: ask in a session with a model: `jaato run "how many tokens are used?"`
            "#]],
        );
        let whole = report(ReportAspect::All, &without_model()).unwrap();
        assert_eq!((&whole["context"], &whole["session"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn unknown_working_directory_is_an_error_for_cwd_and_null_in_all() {
        let mut facts = linux();
        facts.session.working_directory.clear();
        assert_eq!(report(ReportAspect::All, &facts).unwrap()["cwd"], Value::Null);
        check(
            ReportAspect::Cwd,
            facts,
            expect![[r#"
                unavailable: the working directory is unknown
                hint: start jaato in a directory that exists and that you may read
            "#]],
        );
    }
}
