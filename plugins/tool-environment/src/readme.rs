//! Checks the README against the tool's answers.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::service::{GcFacts, SessionFacts};

use crate::aspect::ReportAspect;
use crate::facts::MachineFacts;
use crate::report::build_report;
use crate::testing::{
    linux_machine, local_moment, machine_without_model, msys2_machine, readable_variables,
    session_with_model,
};

const README: &str = include_str!("../README.md");

/// Returns the Linux machine of the README.
fn readme_machine() -> MachineFacts {
    let gc = GcFacts {
        threshold_percent: 80.0,
        auto_trigger: true,
        preserve_recent_turns: 5,
        max_turns: None,
    };
    let mut session: SessionFacts = session_with_model();
    session.context.as_mut().unwrap().gc = Some(gc);
    MachineFacts {
        variables: readable_variables(&[
            ("SHELL", "/bin/bash"),
            ("HTTPS_PROXY", "http://user:password@proxy.corp.com:8080"),
            ("SSL_CERT_FILE", "/etc/ssl/custom-ca.pem"),
            ("NO_PROXY", "localhost,.corp.com"),
        ]),
        moment: local_moment(3600, "Europe/Berlin"),
        session,
        ..linux_machine()
    }
}

fn code_blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    README.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn readme_shows_the_actual_answers_of_the_tool() {
    let shown = code_blocks("json").into_iter().map(|block| serde_json::from_str(block).unwrap());
    let answers = [
        build_report(ReportAspect::All, &readme_machine()),
        build_report(ReportAspect::Os, &msys2_machine()),
        build_report(ReportAspect::Cwd, &readme_machine()),
    ];
    let answers = answers.map(|answer| Value::Object(answer.unwrap()));
    assert_eq!(shown.collect::<Vec<Value>>(), answers);
}

#[test]
fn readme_shows_the_actual_error_of_the_tool() {
    let error = build_report(ReportAspect::Context, &machine_without_model()).unwrap_err();
    assert_eq!(code_blocks("text"), [format!("{error}\n")]);
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
