//! The aspect `shell`: the shell and its path separators.

use jaato_plugin_sdk::serde_json::{Map, Value, json};

use crate::facts::MachineFacts;

/// Known shells. A parent process with any other name is not a shell.
const KNOWN: [&str; 19] = [
    "ash",
    "bash",
    "cmd",
    "csh",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "osh",
    "powershell",
    "pwsh",
    "rc",
    "sh",
    "tcsh",
    "xonsh",
    "yash",
    "zsh",
];

/// Returns the default and current shell, the separators, and the available PowerShells on Windows.
pub(crate) fn shell_fields(facts: &MachineFacts) -> Map<String, Value> {
    let path = shell_path(facts);
    let default = path.map_or_else(|| default_windows_shell(facts), program_name);
    let current = facts.session.parent_process.as_deref().map(program_name);
    // If a service or a build tool started jaato, the current shell is unknown. Commands use the
    // default.
    let current = current.filter(|name| KNOWN.contains(&name.as_str())).unwrap_or(default.clone());
    let (path_separator, dir_separator) = if facts.is_windows() { (";", "\\") } else { (":", "/") };

    let mut report = Map::from_iter([
        ("default".to_owned(), json!(default)),
        ("current".to_owned(), json!(current)),
        ("path_separator".to_owned(), json!(path_separator)),
        ("dir_separator".to_owned(), json!(dir_separator)),
    ]);
    if let Some(path) = path {
        report.insert("path".to_owned(), json!(path));
    }
    if facts.is_windows() {
        report.insert("powershell_available".to_owned(), json!(facts.programs.powershell));
        report.insert("pwsh_available".to_owned(), json!(facts.programs.pwsh));
    }
    report
}

/// Returns the shell's full path. Windows has one only inside MSYS2.
fn shell_path(facts: &MachineFacts) -> Option<&str> {
    let shell = facts.variables.get("SHELL");
    if facts.is_windows() {
        return shell.filter(|_| facts.variables.get("MSYSTEM").is_some());
    }
    // The shell that runs commands: bash, or else sh.
    Some(shell.unwrap_or(if facts.programs.bash { "/bin/bash" } else { "/bin/sh" }))
}

fn default_windows_shell(facts: &MachineFacts) -> String {
    match facts.variables.get("COMSPEC") {
        Some(path) => program_name(path),
        None if facts.programs.powershell => "powershell".to_owned(),
        None => "cmd".to_owned(),
    }
}

/// Returns `bash` for `/bin/bash`, `-bash` (a login shell) and `C:\msys64\usr\bin\BASH.EXE`.
fn program_name(path: &str) -> String {
    let file = path.trim().rsplit(['/', '\\']).next().unwrap_or(path);
    let name = file.strip_prefix('-').unwrap_or(file);
    let lower = name.to_ascii_lowercase();
    lower.strip_suffix(".exe").map_or_else(|| name.to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::facts::ProgramPresence;
    use crate::testing::{
        linux_machine, macos_machine, msys2_machine, readable_variables, report_lines,
        windows_machine,
    };

    #[track_caller]
    fn check_shell(facts: MachineFacts, expected: Expect) {
        expected.assert_eq(&report_lines(&shell_fields(&facts)));
    }

    fn with_parent_process(name: &str, mut facts: MachineFacts) -> MachineFacts {
        facts.session.parent_process = Some(name.to_owned());
        facts
    }

    #[test]
    fn default_shell_without_a_user_shell_is_the_one_that_runs_commands() {
        for (bash, default) in [(true, "bash"), (false, "sh")] {
            let programs = ProgramPresence { bash, ..ProgramPresence::default() };
            let facts =
                MachineFacts { programs, variables: readable_variables(&[]), ..linux_machine() };
            assert_eq!(shell_fields(&facts)["default"], default);
        }
    }

    #[test]
    fn unix_reports_the_user_shell_and_the_running_shell() {
        check_shell(
            linux_machine(),
            expect![[r#"
                current = "bash"
                default = "bash"
                dir_separator = "/"
                path = "/bin/bash"
                path_separator = ":"
            "#]],
        );
        check_shell(
            with_parent_process("/opt/homebrew/bin/fish", macos_machine()),
            expect![[r#"
                current = "fish"
                default = "zsh"
                dir_separator = "/"
                path = "/bin/zsh"
                path_separator = ":"
            "#]],
        );
    }

    #[test]
    fn windows_reports_its_separators_and_powershells() {
        check_shell(
            with_parent_process("powershell.exe", windows_machine()),
            expect![[r#"
                current = "powershell"
                default = "cmd"
                dir_separator = "\\"
                path_separator = ";"
                powershell_available = true
                pwsh_available = false
            "#]],
        );
        let bare = MachineFacts {
            variables: readable_variables(&[]),
            programs: ProgramPresence { powershell: true, pwsh: true, bash: false },
            ..windows_machine()
        };
        let bare = with_parent_process("explorer.exe", bare);
        check_shell(
            bare.clone(),
            expect![[r#"
                current = "powershell"
                default = "powershell"
                dir_separator = "\\"
                path_separator = ";"
                powershell_available = true
                pwsh_available = true
            "#]],
        );
        check_shell(
            MachineFacts { programs: ProgramPresence::default(), ..bare },
            expect![[r#"
                current = "cmd"
                default = "cmd"
                dir_separator = "\\"
                path_separator = ";"
                powershell_available = false
                pwsh_available = false
            "#]],
        );
    }

    #[test]
    fn msys2_reports_its_unix_shell() {
        check_shell(
            with_parent_process("BASH.EXE", msys2_machine()),
            expect![[r#"
                current = "bash"
                default = "bash"
                dir_separator = "\\"
                path = "/usr/bin/bash"
                path_separator = ";"
                powershell_available = true
                pwsh_available = false
            "#]],
        );
    }

    #[test]
    fn unix_shell_defaults_to_bin_sh() {
        check_shell(
            MachineFacts { variables: readable_variables(&[]), ..linux_machine() },
            expect![[r#"
                current = "bash"
                default = "sh"
                dir_separator = "/"
                path = "/bin/sh"
                path_separator = ":"
            "#]],
        );
    }

    #[test]
    fn only_a_shell_parent_process_counts_as_the_current_shell() {
        for (process, current) in
            [("-zsh", "zsh"), ("cargo", "bash"), ("", "bash"), ("dash ", "dash"), ("pwsh", "pwsh")]
        {
            assert_eq!(
                shell_fields(&with_parent_process(process, linux_machine()))["current"],
                current,
                "{process}"
            );
        }
        let mut facts = linux_machine();
        facts.session.parent_process = None;
        assert_eq!(shell_fields(&facts)["current"], "bash");
    }
}
