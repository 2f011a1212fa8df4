//! Makes shells print marks, with a line to type or with arguments and variables at their start.
//!
//! Each text may run twice without harm, keeps the user's own prompt and hooks, and leaves `$?`
//! unchanged.

use super::MarkNonce;

/// Shells that can print marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkableShell {
    /// bash. Versions before 4.4 lack [`super::MarkKind::CommandStart`].
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
    /// dash, the ash of busybox, and other plain shells. They cannot report when a command begins.
    Posix,
}

/// Arguments and variables for a shell's start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellInjection {
    /// Arguments, before all others.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub variables: Vec<(String, String)>,
}

impl MarkableShell {
    /// Returns the shell with a program's name or path, if it is known. `sh` may be any shell, so
    /// it counts as the plainest, whose text all except zsh and fish understand.
    pub fn from_program_name(program: &str) -> Option<Self> {
        let name = program.rsplit('/').next().unwrap_or(program).trim_start_matches('-');
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            "sh" | "dash" | "ash" | "busybox" => Some(Self::Posix),
            _ => None,
        }
    }

    /// Returns a line to type at the shell's prompt, without its line end. It begins with a blank,
    /// so that most shells leave it out of their history. The next prompt has marks.
    pub fn setup_line(self, nonce: &MarkNonce) -> String {
        let mark = nonce.mark_parameter();
        match self {
            Self::Bash => {
                let body = bash_setup(&mark).replace('\'', r"'\''");
                format!(" PROMPT_COMMAND='{body}'\"${{PROMPT_COMMAND:+$'\\n'$PROMPT_COMMAND}}\"")
            }
            Self::Zsh => format!(" {}", zsh_setup(&mark)),
            Self::Fish => format!(" {}", fish_setup(&mark)),
            Self::Posix => format!(" {}", posix_prompt(&mark)),
        }
    }

    /// Returns the arguments and variables for the shell's start, or `None` for zsh, where only
    /// [`MarkableShell::setup_line`] works.
    ///
    /// The user's startup files run as usual. A startup file that replaces `PROMPT_COMMAND` (bash)
    /// or `PS1` (plain shells) removes the marks. If the first prompt has no mark, the line helps.
    /// Plain shells use `prompt` instead of their own prompt.
    pub fn startup_injection(self, nonce: &MarkNonce, prompt: &str) -> Option<ShellInjection> {
        let mark = nonce.mark_parameter();
        match self {
            Self::Bash => Some(ShellInjection {
                variables: vec![("PROMPT_COMMAND".to_owned(), bash_setup(&mark))],
                ..ShellInjection::default()
            }),
            Self::Zsh => None,
            Self::Fish => Some(ShellInjection {
                arguments: vec!["--init-command".to_owned(), fish_setup(&mark)],
                ..ShellInjection::default()
            }),
            Self::Posix => {
                // The ash of busybox ignores the width of text between these brackets. Dash, which
                // has no `RANDOM`, would print them.
                let (open, close) = (r"${RANDOM:+\[}", r"${RANDOM:+\]}");
                let before = format!("{open}\x1b]133;D;$?;{mark}\x07\x1b]133;A;{mark}\x07{close}");
                let ps1 = format!("{before}{prompt}{open}\x1b]133;B;{mark}\x07{close}");
                let variables = vec![("PS1".to_owned(), ps1)];
                Some(ShellInjection { variables, ..ShellInjection::default() })
            }
        }
    }
}

/// Returns the text that runs before each prompt. It keeps `PROMPT_COMMAND` out of the environment
/// of child processes, which do not need the nonce.
fn bash_setup(mark: &str) -> String {
    let prompt_start = format!(r"'\[\e]133;A;{mark}\a\]'");
    let input_start = format!(r"'\[\e]133;B;{mark}\a\]'");
    [
        "__jaato_status=$?".to_owned(),
        format!(r#"printf '\e]133;D;%s;{mark}\a' "$__jaato_status""#),
        format!("case $PS1 in *{mark}*) ;; *) PS1={prompt_start}\"$PS1\"{input_start};; esac"),
        format!(r#"case $PS0 in *{mark}*) ;; *) PS0="$PS0"'\e]133;C;{mark}\a';; esac"#),
        "export -n PROMPT_COMMAND".to_owned(),
        r#"__jaato_keep() { return "$1"; }"#.to_owned(),
        r#"__jaato_keep "$__jaato_status""#.to_owned(),
    ]
    .join("; ")
}

fn zsh_setup(mark: &str) -> String {
    let prompt_start = format!(r"$'%{{\e]133;A;{mark}\a%}}'");
    let input_start = format!(r"$'%{{\e]133;B;{mark}\a%}}'");
    [
        format!(
            "__jaato_precmd() {{ local s=$?; printf '\\e]133;D;%s;{mark}\\a' $s; \
             [[ $PS1 == *{mark}* ]] || PS1={prompt_start}\"$PS1\"{input_start}; return $s; }}"
        ),
        format!(r"__jaato_preexec() {{ printf '\e]133;C;{mark}\a'; }}"),
        "precmd_functions=(${precmd_functions:#__jaato_precmd} __jaato_precmd)".to_owned(),
        "preexec_functions=(${preexec_functions:#__jaato_preexec} __jaato_preexec)".to_owned(),
    ]
    .join("; ")
}

fn fish_setup(mark: &str) -> String {
    [
        format!(
            r"function __jaato_preexec --on-event fish_preexec; printf '\e]133;C;{mark}\a'; end"
        ),
        format!(
            "function __jaato_postexec --on-event fish_postexec; \
             printf '\\e]133;D;%s;{mark}\\a' $status; end"
        ),
        "function __jaato_keep; return $argv[1]; end".to_owned(),
        "functions -q __jaato_prompt; or functions -c fish_prompt __jaato_prompt".to_owned(),
        format!(
            "function fish_prompt; set -l s $status; printf '\\e]133;A;{mark}\\a'; \
             __jaato_keep $s; __jaato_prompt; printf '\\e]133;B;{mark}\\a'; end"
        ),
    ]
    .join("; ")
}

/// Returns a prompt that contains the marks, with `$?` expanded each time, so that a prompt starts
/// no process. The ash of busybox needs brackets around text without width. `RANDOM` distinguishes
/// it from dash, because older versions have no version variable.
fn posix_prompt(mark: &str) -> String {
    [
        "case ${RANDOM-} in ?*) __jaato_o='\\[' __jaato_c='\\]';; *) __jaato_o= __jaato_c=;; esac"
            .to_owned(),
        format!(
            "case $PS1 in *{mark}*) ;; *) PS1=\"$__jaato_o$(printf '\\033]133;D;$?;{mark}\\007\
             \\033]133;A;{mark}\\007')$__jaato_c$PS1$__jaato_o\
             $(printf '\\033]133;B;{mark}\\007')$__jaato_c\";; esac"
        ),
    ]
    .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_recognised_by_their_program_name() {
        for (program, shell) in [
            ("/usr/bin/bash", Some(MarkableShell::Bash)),
            ("-zsh", Some(MarkableShell::Zsh)),
            ("zsh-5.9", None),
            ("fish", Some(MarkableShell::Fish)),
            ("/bin/sh", Some(MarkableShell::Posix)),
            ("bash5.2", Some(MarkableShell::Bash)),
            ("python3", None),
            ("", None),
        ] {
            assert_eq!(MarkableShell::from_program_name(program), shell, "{program}");
        }
    }

    #[test]
    fn setup_line_is_one_line_without_control_characters() {
        let nonce = MarkNonce::new("n0nce4tests").unwrap();
        for shell in
            [MarkableShell::Bash, MarkableShell::Zsh, MarkableShell::Fish, MarkableShell::Posix]
        {
            let line = shell.setup_line(&nonce);
            assert!(line.starts_with(' ') && !line.contains(char::is_control), "{line:?}");
            // A terminal in line mode accepts 4095 bytes per line.
            assert!(line.len() < 2048, "{}", line.len());
        }
    }
}
