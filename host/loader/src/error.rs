//! Why a file that has a manifest cannot be opened: one line for a person and a hint.

use std::fmt;
use std::path::PathBuf;

use jaato_plugin_api::{API_VERSION, EXPORT_NAME, EXPORT_NAME_C1};

use crate::layout::Mismatch;
use crate::manifest::{FileError, FileProblem};

/// Why a plugin could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: LoadProblem,
}

/// What is wrong with a plugin that is to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadProblem {
    /// Found without running a line of it.
    File(FileProblem),
    /// The dynamic linker refused it; its own words.
    Linker(String),
    /// It does not export what a plugin exports.
    NoSymbol,
    /// What it exports was made by something that this host does not understand.
    ForeignHeader(String),
    /// It was built against another major version of the boundary.
    Api {
        /// The plugin's.
        has: String,
    },
    /// The layouts differ although the versions say that they agree.
    Layout {
        /// The version that the plugin was built against.
        api: String,
        /// The first difference.
        mismatch: Mismatch,
    },
    /// Its table of functions, where it is not written in Rust, cannot be used; the text says why.
    CTable(String),
    /// Its root module could not be made; its own words.
    Root(String),
}

impl LoadProblem {
    /// Returns what to do about it, where there is something.
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
            Self::Root(_) => Some("tell the plugin's author".into()),
        }
    }
}

impl From<FileError> for LoadError {
    fn from(error: FileError) -> Self {
        Self { path: error.path, problem: LoadProblem::File(error.problem) }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot load plugin `{}`: {}", self.path.display(), self.problem)
    }
}

impl fmt::Display for LoadProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::Linker(text) => write!(f, "the system's linker refused it: {text}"),
            Self::NoSymbol => write!(f, "it does not export `{EXPORT_NAME}`"),
            Self::ForeignHeader(text) => {
                write!(f, "what it exports as `{EXPORT_NAME}` cannot be read: {text}")
            }
            Self::Api { has } => FileProblem::Api { has: has.clone() }.fmt(f),
            Self::Layout { api, mismatch } => {
                write!(f, "its plugin-api {api} differs from this host's {API_VERSION}: {mismatch}")
            }
            Self::CTable(text) => {
                write!(f, "what it exports as `{EXPORT_NAME_C1}` cannot be used: {text}")
            }
            Self::Root(text) => write!(f, "it failed to start: {text}"),
        }
    }
}

impl std::error::Error for LoadError {}
