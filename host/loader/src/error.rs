//! Why a file with a manifest cannot be opened: one line for the user and a hint.

use std::path::PathBuf;

use jaato_plugin_api::{API_VERSION, EXPORT_NAME, EXPORT_NAME_C1};

use crate::layout::LayoutMismatch;
use crate::manifest::{FileError, FileProblem};

/// Why a plugin could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot load plugin `{path}`: {problem}")]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub problem: LoadProblem,
}

/// A problem with opening a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadProblem {
    /// Found without running any of its code.
    #[error("{0}")]
    File(FileProblem),
    /// The dynamic linker refused it, with this message.
    #[error("the system's linker refused it: {0}")]
    Linker(String),
    /// It lacks the export of a plugin.
    #[error("it does not export `{}`", EXPORT_NAME)]
    NoSymbol,
    /// Its export has a format that this host does not understand.
    #[error("its export `{name}` cannot be read: {0}", name = EXPORT_NAME)]
    ForeignHeader(String),
    /// It was built against another major version of the boundary.
    #[error("{}", FileProblem::Api { has: String::clone(.has) })]
    Api {
        /// The plugin's version.
        has: String,
    },
    /// The layouts differ although the versions match.
    #[error("its plugin-api {api} differs from this host's {}: {mismatch}", API_VERSION)]
    Layout {
        /// The version that the plugin was built against.
        api: String,
        /// The first difference.
        mismatch: LayoutMismatch,
    },
    /// The function table of a non-Rust plugin cannot be used. The text explains why.
    #[error("its export `{name}` cannot be used: {0}", name = EXPORT_NAME_C1)]
    CTable(String),
    /// Its root module could not be created. The text is its own message.
    #[error("it failed to start: {0}")]
    Root(String),
}

impl LoadProblem {
    /// Returns what the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File(problem) => problem.hint(),
            Self::Linker(_) => Some(
                "install the libraries that it names, or build the plugin on this machine".into(),
            ),
            Self::NoSymbol | Self::ForeignHeader(_) => {
                Some(format!("build the plugin with jaato-plugin-sdk {API_VERSION}"))
            }
            Self::Api { has } => FileProblem::Api { has: has.clone() }.hint(),
            Self::Layout { .. } => Some(format!(
                "rebuild the plugin with jaato-plugin-sdk {API_VERSION}, or update jaato"
            )),
            Self::CTable(_) => {
                Some("build the plugin with the `jaato_plugin.h` of this jaato's plugin-api".into())
            }
            Self::Root(_) => Some("report this to the plugin's author".into()),
        }
    }
}

impl From<FileError> for LoadError {
    fn from(error: FileError) -> Self {
        Self { path: error.path, problem: LoadProblem::File(error.problem) }
    }
}
