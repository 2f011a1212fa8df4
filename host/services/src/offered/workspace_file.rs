//! The service `workspace_file.set`, which writes a trust-covered file of the workspace for a user.

use jaato_config::trust::TrustError;
use jaato_types::workspace_file::{
    WORKSPACE_FILE_BYTES_MAX, WORKSPACE_FILES, WorkspaceFileSet, WorkspaceFileSetAnswer,
};
use jaato_types::{Error, ErrorKind};

use super::ServiceFuture;
use crate::blobs::run_blocking;
use crate::call::ServiceCall;

jaato_types::workspace_file_operations!(bodies);

fn set(
    call: &ServiceCall,
    WorkspaceFileSet { name, .. }: WorkspaceFileSet,
    content: Vec<u8>,
) -> Result<ServiceFuture<WorkspaceFileSetAnswer>, Error> {
    let unavailable = |text: &str| Error::new(ErrorKind::Unavailable, text);
    // A tool call by the model must not change files that the user trusts. Only tool calls have a
    // place for attachments, commands do not.
    let is_command = call.site.call.is_some() && call.site.attachments.is_none();
    if !is_command {
        return Err(unavailable(
            "only a command that a user runs may write files of the workspace",
        ));
    }
    let trust = call.shared.workspace_trust.clone();
    let trust = trust.ok_or_else(|| unavailable("the workspace is not trusted"))?;
    Ok(Box::pin(run_blocking(move || {
        check_file_content(&name, &content)?;
        trust.rewrite_file(&name, &content).map_err(|error| explain_trust_error(&error))?;
        Ok(WorkspaceFileSetAnswer::default())
    })))
}

fn check_file_content(name: &str, content: &[u8]) -> Result<(), Error> {
    if !WORKSPACE_FILES.contains(&name) {
        let text = format!("`{name}` is not written: only {WORKSPACE_FILES:?} are");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    if content.len() > WORKSPACE_FILE_BYTES_MAX {
        let text = format!("a file of the workspace has at most {WORKSPACE_FILE_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::LimitReached, text));
    }
    Ok(())
}

fn explain_trust_error(error: &TrustError) -> Error {
    let kind = match error {
        TrustError::Changed { .. } | TrustError::InsideSession => ErrorKind::Unavailable,
        _ => ErrorKind::Io,
    };
    let text = Error::new(kind, error.to_string());
    match error.hint() {
        Some(hint) => text.with_hint(hint),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_listed_are_written_up_to_a_bound() {
        assert_eq!(check_file_content(".mcp.json", b"{}"), Ok(()));
        for name in ["", ".env", "../.mcp.json", ".jaato/config.toml", ".MCP.json"] {
            assert_eq!(
                check_file_content(name, b"").unwrap_err().kind,
                ErrorKind::InvalidArguments,
                "{name}"
            );
        }
        let long = vec![b' '; WORKSPACE_FILE_BYTES_MAX + 1];
        assert!(check_file_content(".mcp.json", &long[1..]).is_ok());
        assert_eq!(
            check_file_content(".mcp.json", &long).unwrap_err().kind,
            ErrorKind::LimitReached
        );
    }
}
