//! Reads the facts of the machine that this process runs on, without interpreting them.

use std::env;
use std::ffi::OsStr;
use std::path::Path;

use jaato_plugin_sdk::types::service::SessionFacts;
use jiff::Zoned;
use sysinfo::System;

use crate::facts::{LocalMoment, MachineFacts, ProgramPresence, ReadableVariables};
use crate::other_environment::CommandLocation;

/// Gathers this machine's current facts, together with the host's facts about the session.
pub(crate) fn gather_facts(session: SessionFacts, place: CommandLocation) -> MachineFacts {
    MachineFacts {
        os: env::consts::OS.to_owned(),
        kernel_version: System::kernel_version().ok(),
        os_version: System::os_version().ok(),
        machine: System::cpu_arch(),
        variables: ReadableVariables::read_allowed(|name| {
            Some(env::var_os(name)?.to_string_lossy().into_owned())
        }),
        programs: find_programs(),
        moment: to_local_moment(&Zoned::now()),
        session,
        place,
    }
}

fn to_local_moment(now: &Zoned) -> LocalMoment {
    let zone =
        now.time_zone().iana_name().map_or_else(|| now.strftime("%Z").to_string(), str::to_owned);
    LocalMoment { timestamp: now.timestamp(), offset: now.offset(), zone }
}

/// Searches `PATH` for programs. This happens only if the report uses the result: on Windows, and
/// without `SHELL`.
fn find_programs() -> ProgramPresence {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = |file| is_on_path(&path, file);
    if cfg!(windows) {
        let (powershell, pwsh) = (is_there("powershell.exe"), is_there("pwsh.exe"));
        return ProgramPresence { powershell, pwsh, bash: false };
    }
    let bash = env::var_os("SHELL").is_none() && is_there("bash");
    ProgramPresence { bash, ..ProgramPresence::default() }
}

fn is_on_path(path: &OsStr, file: &str) -> bool {
    // An empty entry would mean the working directory, in which any user may have put such a file.
    env::split_paths(path).any(|folder| folder != Path::new("") && folder.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use jiff::tz::{Offset, TimeZone};

    use super::*;

    #[test]
    fn this_machine_has_a_kernel_a_name_and_a_clock() {
        let facts = gather_facts(SessionFacts::default(), CommandLocation::default());
        assert_eq!(facts.os, env::consts::OS);
        assert!(facts.kernel_version.is_some_and(|version| !version.is_empty()));
        assert!(!facts.machine.is_empty() && !facts.moment.zone.is_empty());
    }

    #[test]
    fn unnamed_time_zone_is_shown_by_its_abbreviation() {
        let now = |zone| Zoned::new(jiff::Timestamp::UNIX_EPOCH, zone);
        let posix = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(to_local_moment(&now(posix)).zone, "CET");
        assert_eq!(to_local_moment(&now(TimeZone::UTC)).zone, "UTC");
        let fixed = to_local_moment(&now(Offset::from_hours(-3).unwrap().to_time_zone()));
        assert_eq!((fixed.zone.as_str(), fixed.offset.seconds()), ("-03", -10_800));
    }

    #[test]
    fn a_program_is_found_on_the_path_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pwsh.exe"), "").unwrap();
        std::fs::create_dir(folder.path().join("powershell.exe")).unwrap();
        let path = env::join_paths([&folder.path().join("missing"), folder.path()]).unwrap();
        assert!(is_on_path(&path, "pwsh.exe"));
        assert!(!is_on_path(&path, "powershell.exe"), "a folder is not a program");
        assert!(
            !is_on_path(OsStr::new(""), "Cargo.toml"),
            "an empty entry is not the working directory"
        );
    }
}
