//! The texts of asset errors: lower case, both sides of a mismatch, the path.

use std::fmt;

use crate::{AssetError, ByteSize};

impl fmt::Display for AssetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { id, reason } => write!(f, "cannot use the asset `{id}`: {reason}"),
            Self::Offline { title, path } => {
                write!(f, "{title} is not at `{}`, and jaato is offline", path.display())
            }
            Self::DownloadOff { title, path } => {
                write!(f, "`{}` ({title}) is not downloaded", path.display())
            }
            Self::NoSource { title, failures, kept } => {
                write!(f, "cannot download {title}: all sources failed")?;
                failures.iter().try_for_each(|failure| write!(f, "\n- {failure}"))?;
                match kept {
                    0 => Ok(()),
                    kept => write!(f, "\n{} have arrived and are kept", ByteSize(*kept)),
                }
            }
            Self::WrongDigest { path, wants, has } => write!(
                f,
                "`{}` does not match the pinned file: sha-256 `{has}`, expected `{wants}`",
                path.display()
            ),
            Self::WrongSize { path, wants, has } => write!(
                f,
                "`{}` does not match the pinned file: {has} bytes, expected {wants}",
                path.display()
            ),
            Self::Changed { path } => {
                write!(f, "`{}` has changed since it was imported", path.display())
            }
            Self::NoSpace { path, needs, free } => {
                write!(f, "no space left to write `{}`", path.display())?;
                match (needs, free) {
                    (0, _) => Ok(()),
                    (needs, None) => write!(f, ": {} are still missing", ByteSize(*needs)),
                    (needs, Some(free)) => {
                        let (needs, free) = (ByteSize(*needs), ByteSize(*free));
                        write!(f, ": {needs} are still missing, {free} are free")
                    }
                }
            }
            Self::Busy { path, waited } => write!(
                f,
                "another jaato process uses `{}` and has made no progress for {} s",
                path.display(),
                waited.as_secs()
            ),
            Self::Missing { path } => write!(f, "file `{}` does not exist", path.display()),
            Self::NotAFile { path } => write!(f, "`{}` is not a regular file", path.display()),
            Self::Empty { path } => write!(f, "`{}` is empty", path.display()),
            Self::NotGguf { path, reason } => {
                write!(f, "cannot read `{}` as a model: {reason}", path.display())
            }
            Self::WrongArchitecture { path, wants, has } => write!(
                f,
                "`{}` has the architecture `{has}`, but jaato runs only `{wants}`",
                path.display()
            ),
            Self::BadName { name, reason } => {
                write!(f, "cannot use `{}` as the name of a model: {reason}", name.escape_debug())
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::Io { action, path, source } => {
                let reason = source.to_string();
                if jaato_places::io_error_hint(source).is_some() {
                    // The text contains a path, whose case must be kept.
                    return write!(f, "cannot {action} `{}`: {reason}", path.display());
                }
                let reason = reason.split(" (os error").next().unwrap_or_default().to_lowercase();
                write!(f, "cannot {action} `{}`: {reason}", path.display())
            }
        }
    }
}

impl std::error::Error for AssetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
