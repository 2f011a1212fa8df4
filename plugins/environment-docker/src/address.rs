//! Finds the engine's address: from the settings, from `DOCKER_HOST`, or the first known socket.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};

/// The system's engine, if no other is found.
const SYSTEM_SOCKET: &str = "/var/run/docker.sock";

/// The address of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineAddress {
    /// A socket on this machine.
    Unix(PathBuf),
    /// `HOST:PORT`, unencrypted.
    Tcp(String),
}

impl EngineAddress {
    /// Returns the configured address, that of `DOCKER_HOST`, or the first known socket that
    /// exists.
    ///
    /// # Errors
    /// The errors of [`EngineAddress::parse`].
    pub fn find_engine(
        configured: Option<&str>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self> {
        Self::find_engine_below(Path::new(SYSTEM_SOCKET), configured, variable)
    }

    fn find_engine_below(
        system: &Path,
        configured: Option<&str>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self> {
        if let Some(text) = configured {
            return Self::parse(text);
        }
        if let Some(text) = variable("DOCKER_HOST").filter(|text| !text.is_empty()) {
            return Self::parse(&text.to_string_lossy());
        }
        let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let home = variable("HOME").map(PathBuf::from);
        let known = [
            Some(system.to_owned()),
            runtime.as_ref().map(|folder| folder.join("docker.sock")),
            home.map(|folder| folder.join(".docker/run/docker.sock")),
            runtime.as_ref().map(|folder| folder.join("podman/podman.sock")),
        ];
        let found = known.into_iter().flatten().find(|socket| socket.exists());
        Ok(Self::Unix(found.unwrap_or_else(|| system.to_owned())))
    }

    /// Parses `unix://PATH`, `tcp://HOST:PORT` or `http://HOST:PORT`.
    ///
    /// # Errors
    /// `configuration` for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("unix://")
            && Path::new(path).is_absolute()
        {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let host = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://"));
        if let Some(host) = host.map(|host| host.trim_end_matches('/'))
            && !host.is_empty()
            && !host.contains('/')
        {
            let port = if host.contains(':') { "" } else { ":2375" };
            return Ok(Self::Tcp(format!("{host}{port}")));
        }
        let text = format!("invalid engine address `{text}`");
        let hint = "`unix:///PATH` or `tcp://HOST:PORT`; for `ssh://` and TLS make a tunnel: \
                    `ssh -L /tmp/engine.sock:/var/run/docker.sock HOST`";
        Err(Error::new(ErrorKind::Configuration, text).with_hint(hint))
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(host) => write!(f, "tcp://{host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_address(text: &str, expected: &str) {
        let shown = match EngineAddress::parse(text) {
            Ok(address) => address.to_string(),
            Err(error) => error.message,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn unix_sockets_and_tcp_hosts_are_parsed() {
        check_address("unix:///run/d.sock", "unix:///run/d.sock");
        check_address("tcp://127.0.0.1:2375", "tcp://127.0.0.1:2375");
        check_address("http://engine/", "tcp://engine:2375");
    }

    #[test]
    fn unsupported_engine_address_is_refused() {
        check_address("ssh://me@host", "invalid engine address `ssh://me@host`");
        check_address("unix://d.sock", "invalid engine address `unix://d.sock`");
        check_address("tcp://", "invalid engine address `tcp://`");
    }

    #[test]
    fn address_setting_overrides_the_docker_host_variable() {
        let variable =
            |name: &str| (name == "DOCKER_HOST").then(|| OsString::from("unix:///variable"));
        let found =
            |configured| EngineAddress::find_engine(configured, variable).unwrap().to_string();
        assert_eq!(found(Some("unix:///setting")), "unix:///setting");
        assert_eq!(found(None), "unix:///variable");
    }

    #[test]
    fn socket_in_the_users_runtime_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (system, socket) = (folder.path().join("system"), folder.path().join("docker.sock"));
        let runtime = folder.path().as_os_str().to_owned();
        let variable = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone());
        let found = || EngineAddress::find_engine_below(&system, None, variable).unwrap();
        assert_eq!(found(), EngineAddress::Unix(system.clone()), "without a user socket");
        std::fs::write(&socket, "").unwrap();
        assert_eq!(found(), EngineAddress::Unix(socket));
    }
}
