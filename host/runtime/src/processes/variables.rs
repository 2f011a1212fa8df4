//! Which of the host's variables a program gets: all that neither hold nor look like a secret. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use jaato_config::Variables;

/// What makes a variable look like a secret, wherever it stands in its name.
pub const SECRET_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Returns the variables that programs get.
///
/// `credentials` are the names that providers declare; `pass` are the person's exceptions.
pub fn cleaned(
    variables: &Variables,
    credentials: &BTreeSet<String>,
    pass: &[String],
) -> BTreeMap<OsString, OsString> {
    let is_kept = |name: &str| {
        let is_secret = credentials.contains(name) || looks_secret(name);
        !is_secret || pass.iter().any(|passed| passed == name)
    };
    let kept = variables.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.into(), value.clone())).collect()
}

fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &[&str], pass: &[&str], expected: &[&str]) {
        let variables: Variables = given.iter().map(|name| (*name, "value")).collect();
        let credentials = BTreeSet::from(["MOON_ACCESS".to_owned()]);
        let pass: Vec<_> = pass.iter().map(|name| (*name).to_owned()).collect();
        let kept = cleaned(&variables, &credentials, &pass);
        let names: Vec<_> = kept.keys().map(|name| name.to_string_lossy()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn names_that_look_like_secrets_are_left_out_in_any_case() {
        let secrets = [
            "OPENAI_API_KEY",
            "github_token",
            "MySecretThing",
            "PGPASSWORD",
            "ROOT_PASSWD",
            "AWS_CREDENTIALS_FILE",
        ];
        check(&secrets, &[], &[]);
        check(
            &["HOME", "PATH", "LC_ALL", "SSH_AUTH_SOCK"],
            &[],
            &["HOME", "LC_ALL", "PATH", "SSH_AUTH_SOCK"],
        );
    }

    #[test]
    fn what_a_provider_declares_is_left_out_whatever_its_name() {
        check(&["MOON_ACCESS", "MOON"], &[], &["MOON"]);
    }

    #[test]
    fn a_person_can_pass_a_variable_by_its_exact_name() {
        check(
            &["A_KEY", "B_KEY", "MOON_ACCESS"],
            &["A_KEY", "MOON_ACCESS"],
            &["A_KEY", "MOON_ACCESS"],
        );
        check(&["A_KEY"], &["a_key", "KEY"], &[]);
    }

    #[test]
    fn an_empty_variable_stays_empty() {
        let variables: Variables = [("EMPTY", "")].into_iter().collect();
        assert_eq!(cleaned(&variables, &BTreeSet::new(), &[])[&OsString::from("EMPTY")], "");
    }
}
