//! Checks the README against the tool's answers.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::service::{GcFacts, SessionFacts};

use crate::aspect::ReportAspect;
use crate::facts::MachineFacts;
use crate::report::report;
use crate::testing::{linux, moment, msys2, session_with_model, variables, without_model};

const README: &str = include_str!("../README.md");

/// Returns the Linux machine of the README.
fn machine() -> MachineFacts {
    let gc = GcFacts {
        threshold_percent: 80.0,
        auto_trigger: true,
        preserve_recent_turns: 5,
        max_turns: None,
    };
    let mut session: SessionFacts = session_with_model();
    session.context.as_mut().unwrap().gc = Some(gc);
    MachineFacts {
        variables: variables(&[
            ("SHELL", "/bin/bash"),
            ("HTTPS_PROXY", "http://user:password@proxy.corp.com:8080"),
            ("SSL_CERT_FILE", "/etc/ssl/custom-ca.pem"),
            ("NO_PROXY", "localhost,.corp.com"),
        ]),
        moment: moment(3600, "Europe/Berlin"),
        session,
        ..linux()
    }
}

fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    README.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn readme_shows_the_actual_answers_of_the_tool() {
    let shown = blocks("json").into_iter().map(|block| serde_json::from_str(block).unwrap());
    let answers = [
        report(ReportAspect::All, &machine()),
        report(ReportAspect::Os, &msys2()),
        report(ReportAspect::Cwd, &machine()),
    ];
    let answers = answers.map(|answer| Value::Object(answer.unwrap()));
    assert_eq!(shown.collect::<Vec<Value>>(), answers);
}

#[test]
fn readme_shows_the_actual_error_of_the_tool() {
    let error = report(ReportAspect::Context, &without_model()).unwrap_err();
    assert_eq!(blocks("text"), [format!("{error}\n")]);
}

#[test]
fn readme_names_every_aspect_and_jaato_variable() {
    for aspect in ReportAspect::EACH {
        let name = format!("`{}`", format!("{aspect:?}").to_lowercase());
        assert!(README.contains(&name), "{name}");
    }
    for name in
        ["JAATO_GRAPHICS_PROTOCOL", "JAATO_SESSION_ID", "JAATO_KERBEROS_PROXY", "JAATO_SSL_VERIFY"]
    {
        assert!(README.contains(name), "{name}");
    }
}
