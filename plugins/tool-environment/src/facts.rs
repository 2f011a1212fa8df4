//! The raw facts that an environment report is made from, before anything is concluded from them.
//!
//! Plain data: `gather` fills it on a real machine, tests write it for machines that are not there.

use std::collections::BTreeMap;

use jaato_plugin_sdk::types::service::SessionFacts;

use crate::elsewhere::Place;

/// Everything that the aspects conclude from.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The system as Rust names it (`std::env::consts::OS`): `linux`, `macos`, `windows` …
    pub(crate) os: String,
    /// `5.15.0`; a build number on Windows.
    pub(crate) kernel_version: Option<String>,
    /// `12` on a Debian, `15.1` on a Mac, `10 (19045)` on Windows.
    pub(crate) os_version: Option<String>,
    /// What the kernel calls the machine.
    pub(crate) machine: String,
    /// The named operating-system variables.
    pub(crate) variables: Variables,
    /// Which programs are on `PATH`.
    pub(crate) programs: Programs,
    /// When, and in which time zone.
    pub(crate) moment: Moment,
    /// What the host knows of the session, its terminal and its working directory.
    pub(crate) session: SessionFacts,
    /// Where the session's files lie and its commands run.
    pub(crate) place: Place,
}

impl Facts {
    /// Whether the machine speaks Windows: its separators, its shells.
    pub(crate) fn is_windows(&self) -> bool {
        self.os == "windows"
    }
}

/// Programs whose presence is a field of the report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Programs {
    /// Windows PowerShell.
    pub(crate) powershell: bool,
    /// PowerShell Core.
    pub(crate) pwsh: bool,
    /// Bash, which runs the commands of `cli_based_tool` if it is there.
    pub(crate) bash: bool,
}

/// A point in time as the machine's clock and time zone tell it.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    /// The point in time.
    pub(crate) timestamp: jiff::Timestamp,
    /// What the time zone adds to UTC at that point.
    pub(crate) offset: jiff::tz::Offset,
    /// `Europe/Berlin` where the machine says so, else an abbreviation.
    pub(crate) zone: String,
}

/// The few variables that may be read; no other is ever looked at, so none can leak.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables(BTreeMap<&'static str, String>);

impl Variables {
    /// The names that may be read. Terminal variables are facts of the session instead.
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

    /// Asks `read` for each name that may be read. An empty value counts as none.
    pub(crate) fn read(read: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name| Some((name, read(name).filter(|value| !value.trim().is_empty())?));
        Self(Self::NAMES.into_iter().filter_map(value).collect())
    }

    /// Returns a value that is set and not blank.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the first of the names that is set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }
}
