//! Replaces pieces of a text in a file.

use jaato_types::Result;
use jaato_types::files::{FileEdit, FileEditAnswer};

use super::confined::ConfinedFiles;
use super::steps::MissingFolderPolicy;
use crate::engine::{EDIT_BYTES_MAX, apply_edits};
use crate::errors::{self, FileOperationVerb};

impl ConfinedFiles {
    /// Replaces pieces of a text. Until it is done, other edits and writes of the file through this
    /// environment wait.
    pub fn edit(&self, request: &FileEdit) -> Result<FileEditAnswer> {
        let asked = self.parse_file_path(&request.path, FileOperationVerb::Edit)?;
        let shown = asked.display_path();
        let place = self
            .resolve_write_target(&asked, MissingFolderPolicy::Fail, FileOperationVerb::Edit)?
            .place;
        let _one_at_a_time = self.write_lock(place.entry_name(FileOperationVerb::Edit)?);
        let target =
            self.resolve_write_target(&asked, MissingFolderPolicy::Fail, FileOperationVerb::Edit)?;
        let Some(old) = &target.old else {
            return Err(errors::operation_error(
                FileOperationVerb::Edit,
                &shown,
                rustix::io::Errno::NOENT,
            ));
        };
        if old.size > EDIT_BYTES_MAX {
            let size = old.size;
            let what = format!("it has {size} bytes, but the limit is {EDIT_BYTES_MAX}");
            return Err(errors::too_large_error(FileOperationVerb::Edit, &shown, &what));
        }
        target.check_version(request.expected.as_deref())?;
        let content = target.read_old_content(FileOperationVerb::Edit)?;
        let (edited, replaced) = apply_edits(&shown, &content, &request.edits)?;
        let facts = if edited == content {
            old.file_facts(&shown)
        } else {
            target.replace_content(&edited, None, FileOperationVerb::Edit)?
        };
        Ok(FileEditAnswer { replaced, facts, ..FileEditAnswer::default() })
    }
}
