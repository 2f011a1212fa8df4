//! Lines that consist of one link. They are written in full, so that the user can copy or click
//! them.

use super::writer;

/// Programs whose terminals make text with an address a link (OSC 8), as `TERM_PROGRAM` names them.
const PROGRAMS: [&str; 9] = [
    "ghostty",
    "Hyper",
    "iTerm.app",
    "mintty",
    "rio",
    "Tabby",
    "vscode",
    "WarpTerminal",
    "WezTerm",
];
/// Terminals that support links, as `TERM` names them. ssh passes on no other variable.
const TERMINALS: [&str; 5] = ["alacritty", "foot", "ghostty", "kitty", "wezterm"];
/// The first version of VTE, the library of GNOME's terminals, that supports links.
const VTE_VERSION_MIN: u32 = 5000;

/// Returns the link of a line that contains nothing else.
pub(super) fn alone(line: &str) -> Option<&str> {
    let link = line.strip_suffix('\n')?;
    let is_link = ["https://", "http://"]
        .iter()
        .any(|scheme| link.len() > scheme.len() && link.starts_with(scheme));
    (is_link && link.bytes().all(|byte| byte.is_ascii_graphic())).then_some(link)
}

/// Returns the line of a link for standard error. Its text is the address itself, so it cannot lead
/// elsewhere.
pub(super) fn shown(link: &str) -> String {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    match writer::errors_are_terminal() && are_shown(variable) {
        true => format!("\u{1b}]8;;{link}\u{1b}\\{link}\u{1b}]8;;\u{1b}\\\n"),
        false => format!("{link}\n"),
    }
}

/// Returns true if the terminal's variables say that it shows links.
fn are_shown(variable: impl Fn(&str) -> String) -> bool {
    let (term, program) = (variable("TERM"), variable("TERM_PROGRAM"));
    let is_vte =
        variable("VTE_VERSION").parse().is_ok_and(|version: u32| version >= VTE_VERSION_MIN);
    let is_named =
        ["DOMTERM", "KONSOLE_VERSION", "WT_SESSION"].iter().any(|name| !variable(name).is_empty());
    term != "dumb"
        && (is_vte
            || is_named
            || PROGRAMS.contains(&program.as_str())
            || TERMINALS.iter().any(|name| term.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_one_link_is_known() {
        assert_eq!(alone("https://a.example/x?y=z\n"), Some("https://a.example/x?y=z"));
        for other in [
            "https://a.example",
            "see http://a\n",
            "http://\n",
            "http://a b\n",
            "x\n",
            "http://ä\n",
        ] {
            assert_eq!(alone(other), None, "{other}");
        }
    }

    #[test]
    fn terminals_that_show_links_are_known_by_their_variables() {
        let shows = |name: &'static str, value: &'static str| {
            are_shown(|asked| if asked == name { value.to_owned() } else { String::new() })
        };
        assert!(shows("TERM", "xterm-kitty") && shows("TERM_PROGRAM", "WezTerm"));
        assert!(shows("VTE_VERSION", "7600") && shows("WT_SESSION", "1"));
        assert!(!shows("TERM", "xterm-256color") && !shows("TERM_PROGRAM", "Apple_Terminal"));
        assert!(!shows("VTE_VERSION", "4999") && !shows("TERM", "dumb"));
    }
}
