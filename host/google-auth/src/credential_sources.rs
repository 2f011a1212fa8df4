//! The places of credentials. Pure.

use std::path::{Path, PathBuf};

/// The file that `gcloud auth application-default login` writes.
const GCLOUD_FILE: &str = "application_default_credentials.json";

/// The token server of Google's machines.
const METADATA_HOST: &str = "metadata.google.internal";

/// A file, and the setting or program that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialsFile {
    /// The file.
    pub path: PathBuf,
    /// Its name, for users: `variable GOOGLE_APPLICATION_CREDENTIALS`.
    pub place: String,
}

/// The places of credentials, in search order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoogleCredentialSources {
    /// The file that the user names. If there is one, no other place is searched.
    pub named: Option<CredentialsFile>,
    /// The path of the `gcloud` file.
    pub gcloud: Option<PathBuf>,
    /// The machine's token server: `HOST` or `HOST:PORT`. `None` if no server may be asked.
    pub metadata: Option<String>,
    /// The project that requests are billed to. Takes precedence over a file's.
    pub quota_project: Option<String>,
    /// The scope of requested tokens.
    pub scope: String,
}

impl GoogleCredentialSources {
    /// Reads them from the variables of Google's own libraries: `CLOUDSDK_CONFIG`, `HOME`,
    /// `GCE_METADATA_HOST`, `NO_GCE_CHECK`, `GOOGLE_CLOUD_QUOTA_PROJECT`.
    pub fn from_variables(
        named: Option<CredentialsFile>,
        scope: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let given = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
        let below = |name: &str, folder: &str| {
            given(name).map(|home| Path::new(&home).join(folder)).filter(|it| it.is_absolute())
        };
        let folder = below("CLOUDSDK_CONFIG", "").or_else(|| below("HOME", ".config/gcloud"));
        let is_off = given("NO_GCE_CHECK").is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let host = given("GCE_METADATA_HOST").unwrap_or_else(|| METADATA_HOST.to_owned());
        Self {
            named,
            gcloud: folder.map(|folder| folder.join(GCLOUD_FILE)),
            metadata: Some(host).filter(|_| !is_off),
            quota_project: given("GOOGLE_CLOUD_QUOTA_PROJECT"),
            scope: scope.to_owned(),
        }
    }

    /// Returns the file that is used, and the setting or program that names it.
    pub(crate) fn file(&self) -> Option<CredentialsFile> {
        let gcloud = self.gcloud.as_ref().filter(|path| path.is_file());
        let of_gcloud = gcloud.map(|path| CredentialsFile {
            path: path.clone(),
            place: format!("gcloud's file {}", path.display()),
        });
        self.named.clone().or(of_gcloud)
    }

    /// Describes the searched places besides the file that the user names.
    pub(crate) fn searched_places(&self) -> String {
        let gcloud = self.gcloud.as_ref().map(|path| format!("`{}`", path.display()));
        let metadata = self.metadata.as_ref().map(|_| "the machine's metadata server".to_owned());
        gcloud.into_iter().chain(metadata).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_sources(variables: &[(&str, &str)]) -> GoogleCredentialSources {
        let found = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        };
        GoogleCredentialSources::from_variables(None, "", found)
    }

    #[test]
    fn google_client_variables_are_respected() {
        let plain = read_sources(&[("HOME", "/home/ada")]);
        let file = "/home/ada/.config/gcloud/application_default_credentials.json";
        assert_eq!(plain.gcloud.as_deref(), Some(Path::new(file)));
        assert_eq!(plain.metadata.as_deref(), Some(METADATA_HOST));
        let other = read_sources(&[
            ("HOME", "/home/ada"),
            ("CLOUDSDK_CONFIG", "/etc/gcloud"),
            ("GCE_METADATA_HOST", "127.0.0.1:1"),
            ("GOOGLE_CLOUD_QUOTA_PROJECT", "billed"),
        ]);
        let file = "/etc/gcloud/application_default_credentials.json";
        assert_eq!(other.gcloud.as_deref(), Some(Path::new(file)));
        assert_eq!(other.metadata.as_deref(), Some("127.0.0.1:1"));
        assert_eq!(other.quota_project.as_deref(), Some("billed"));
        let none = read_sources(&[("HOME", "relative"), ("NO_GCE_CHECK", "True")]);
        assert_eq!(none, GoogleCredentialSources::default());
    }
}
