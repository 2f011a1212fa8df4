//! Replaces pieces of a text in a file.

use jaato_types::Result;
use jaato_types::files::{FileEdit, FileEdited};

use super::confined::Confined;
use super::steps::Missing;
use crate::engine::{EDIT_BYTES_MAX, edited};
use crate::errors::{self, Verb};

impl Confined {
    /// Replaces pieces of a text. Until it is done, other edits and writes of the file through this
    /// environment wait.
    pub fn edit(&self, request: &FileEdit) -> Result<FileEdited> {
        let asked = self.asked_file(&request.path, Verb::Edit)?;
        let shown = asked.shown();
        let place = self.target(&asked, Missing::Fail, Verb::Edit)?.place;
        let _one_at_a_time = self.write_lock(place.name(Verb::Edit)?);
        let target = self.target(&asked, Missing::Fail, Verb::Edit)?;
        let Some(old) = &target.old else {
            return Err(errors::failed(Verb::Edit, &shown, rustix::io::Errno::NOENT));
        };
        if old.size > EDIT_BYTES_MAX {
            let size = old.size;
            let what = format!("it has {size} bytes, but the limit is {EDIT_BYTES_MAX}");
            return Err(errors::too_large(Verb::Edit, &shown, &what));
        }
        target.check_expected(request.expected.as_deref())?;
        let content = target.content(Verb::Edit)?;
        let (edited, replaced) = edited(&shown, &content, &request.edits)?;
        let facts = if edited == content {
            old.told(&shown)
        } else {
            target.replace(&edited, None, Verb::Edit)?
        };
        Ok(FileEdited { replaced, facts, ..FileEdited::default() })
    }
}
