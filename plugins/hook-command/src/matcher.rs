//! Matchers: which tools, or which other words of an event, a hook is for.

use regex::Regex;

/// A matcher of a settings file.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// Matches everything: no matcher, or `*`.
    All,
    /// Matches exactly these names: `Edit|Write`.
    Names(Vec<String>),
    /// Matches what the regular expression finds: `mcp__.*`.
    Pattern(Regex),
}

impl Matcher {
    /// Parses a matcher. A text of letters, digits, `_` and `|` is a list of names, and any other
    /// text is a regular expression, which may match a part of a name.
    ///
    /// # Errors
    /// A text for users, if the expression is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        if text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '|') {
            return Ok(Self::Names(text.split('|').map(str::to_owned).collect()));
        }
        Regex::new(text)
            .map(Self::Pattern)
            .map_err(|_| format!("its matcher `{text}` is not a valid regular expression"))
    }

    /// Returns true if one of the names matches.
    pub fn is_match(&self, names: &[&str]) -> bool {
        names.iter().any(|name| match self {
            Self::All => true,
            Self::Names(wanted) => wanted.iter().any(|wanted| wanted == name),
            Self::Pattern(pattern) => pattern.is_match(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_matcher(matcher: &str, matching: &[&str], others: &[&str]) {
        let parsed = Matcher::parse(matcher).unwrap();
        for name in matching {
            assert!(parsed.is_match(&[name]), "{matcher} {name}");
        }
        for name in others {
            assert!(!parsed.is_match(&[name]), "{matcher} {name}");
        }
    }

    #[test]
    fn matcher_is_a_list_of_names_or_an_expression() {
        check_matcher("", &["Bash", "Edit"], &[]);
        check_matcher(" * ", &["Bash"], &[]);
        check_matcher("Bash", &["Bash"], &["BashOutput", "bash"]);
        check_matcher("Edit|Write", &["Edit", "Write"], &["MultiEdit", "Read"]);
        check_matcher("mcp__git__.*", &["mcp__git__log"], &["mcp__github__log"]);
        check_matcher("^(Edit|Write)$", &["Edit"], &["MultiEdit"]);
        check_matcher("Edit.*", &["Edit", "MultiEdit"], &["Write"]);
    }

    #[test]
    fn invalid_expression_is_an_error() {
        let error = Matcher::parse("(Bash").unwrap_err();
        assert_eq!(error, "its matcher `(Bash` is not a valid regular expression");
    }
}
