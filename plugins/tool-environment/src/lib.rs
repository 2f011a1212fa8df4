//! `get_environment`: reports the system, shell, terminal, clock, network and session to a model.
//!
//! Facts are gathered in one module and interpreted in others, so that the tests for every system
//! run on any system. The report contains no variables except its own fields, and no credentials.
#![forbid(unsafe_code)]

mod aspect;
mod clock;
mod facts;
mod gather;
mod machine;
mod mask;
mod network;
mod other_environment;
#[cfg(test)]
mod readme;
mod report;
mod session;
mod shell;
mod terminal;
#[cfg(test)]
mod testing;
mod tool;

jaato_plugin_sdk::export_plugin! {
    state: (),
    tools,
    // `ReadableVariables::NAMES`, and the two with which the clock finds its time zone.
    variables: [
        "ALL_PROXY",
        "COMSPEC",
        "CURL_CA_BUNDLE",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "JAATO_KERBEROS_PROXY",
        "JAATO_NO_PROXY",
        "JAATO_SSL_VERIFY",
        "MSYSTEM",
        "NO_PROXY",
        "PROCESSOR_ARCHITECTURE",
        "PROCESSOR_ARCHITEW6432",
        "PROCESSOR_IDENTIFIER",
        "REQUESTS_CA_BUNDLE",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "all_proxy",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "TZ",
        "TZDIR",
    ]
}
