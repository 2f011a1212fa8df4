//! The raw facts from which an environment report is made.
//!
//! Plain data. `gather` fills it on a real machine, and tests write it for other machines.

use std::collections::BTreeMap;

use jaato_plugin_sdk::types::service::SessionFacts;

use crate::other_environment::CommandLocation;

/// All facts that the aspects use.
#[derive(Debug, Clone)]
pub(crate) struct MachineFacts {
    /// The system's name in Rust (`std::env::consts::OS`): `linux`, `macos`, `windows` …
    pub(crate) os: String,
    /// `5.15.0`, or a build number on Windows.
    pub(crate) kernel_version: Option<String>,
    /// `12` on Debian, `15.1` on a Mac, `10 (19045)` on Windows.
    pub(crate) os_version: Option<String>,
    /// The kernel's name of the machine.
    pub(crate) machine: String,
    /// The environment variables that may be read.
    pub(crate) variables: ReadableVariables,
    /// The programs that are on `PATH`.
    pub(crate) programs: ProgramPresence,
    /// The current time and time zone.
    pub(crate) moment: LocalMoment,
    /// The host's facts about the session, its terminal and its working directory.
    pub(crate) session: SessionFacts,
    /// The place where the session's files are and its commands run.
    pub(crate) place: CommandLocation,
}

impl MachineFacts {
    /// Returns true if the machine uses Windows' separators and shells.
    pub(crate) fn is_windows(&self) -> bool {
        self.os == "windows"
    }
}

/// Programs whose presence is a field of the report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProgramPresence {
    /// Windows PowerShell.
    pub(crate) powershell: bool,
    /// PowerShell Core.
    pub(crate) pwsh: bool,
    /// Bash, which runs the commands of `cli_based_tool` if it is there.
    pub(crate) bash: bool,
}

/// A point in time, with the machine's time zone.
#[derive(Debug, Clone)]
pub(crate) struct LocalMoment {
    /// The point in time.
    pub(crate) timestamp: jiff::Timestamp,
    /// The time zone's offset from UTC at that point.
    pub(crate) offset: jiff::tz::Offset,
    /// `Europe/Berlin` if the machine reports it, otherwise an abbreviation.
    pub(crate) zone: String,
}

/// The variables that may be read. No other variable is ever read, so none can leak.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadableVariables(BTreeMap<&'static str, String>);

impl ReadableVariables {
    /// The names that may be read. Terminal variables are part of the session's facts instead.
    pub(crate) const NAMES: [&'static str; 21] = [
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
    ];

    /// Calls `read` for each name that may be read. An empty value counts as unset.
    pub(crate) fn read_allowed(read: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name| Some((name, read(name).filter(|value| !value.trim().is_empty())?));
        Self(Self::NAMES.into_iter().filter_map(value).collect())
    }

    /// Returns a value that is set and not blank.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the value of the first name that is set.
    pub(crate) fn first_set(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }
}
