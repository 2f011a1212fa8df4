//! Names files in the history so that sessions in different environments can share it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A file of a workspace or of one environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FilePath {
    /// The path, relative to the environment's working directory if it is inside, otherwise
    /// absolute.
    path: String,
    /// The environment of an absolute path. `None` for a path in the working directory, which a
    /// container and this machine may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
}

impl FilePath {
    /// Creates the name of a file from its absolute, normalized path. The working directory must be
    /// absolute too.
    pub fn new(absolute: &str, working_directory: &str, environment: &str) -> Self {
        let folder = working_directory.trim_end_matches('/');
        let below = absolute.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        match below {
            Some(path) if !path.is_empty() => Self { path: path.to_owned(), environment: None },
            _ => Self { path: absolute.to_owned(), environment: Some(environment.to_owned()) },
        }
    }

    /// Returns the path for the environment: relative to its working directory, or absolute.
    pub fn as_str(&self) -> &str {
        &self.path
    }

    /// Returns true if the path refers to a file of this environment. Always true for a relative
    /// path.
    pub fn is_in_environment(&self, environment: &str) -> bool {
        self.environment.as_deref().is_none_or(|own| own == environment)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_file_path(absolute: &str, folder: &str, expected: &str, environment: Option<&str>) {
        let path = FilePath::new(absolute, folder, "docker");
        assert_eq!((path.as_str(), path.environment.as_deref()), (expected, environment));
    }

    #[test]
    fn paths_in_the_working_directory_are_stored_as_relative() {
        check_file_path("/home/ann/a/b.txt", "/home/ann", "a/b.txt", None);
        check_file_path("/srv/a/b.txt", "/srv/", "a/b.txt", None);
        check_file_path("/srvshop/b.txt", "/srv", "/srvshop/b.txt", Some("docker"));
        check_file_path("/etc/b.txt", "/srv", "/etc/b.txt", Some("docker"));
        check_file_path("/b.txt", "/", "b.txt", None);
        check_file_path("/srv", "/srv", "/srv", Some("docker"));
        check_file_path("/srv/", "/srv", "/srv/", Some("docker"));
    }

    #[test]
    fn an_absolute_path_belongs_to_one_environment() {
        let outside = FilePath::new("/etc/b.txt", "/srv", "docker");
        assert!(outside.is_in_environment("docker") && !outside.is_in_environment("local"));
        assert!(FilePath::new("/srv/b.txt", "/srv", "docker").is_in_environment("local"));
    }
}
