//! The frozen sources of the boundary are there, whole. What stands in them is nobody's business
//! any more.

use super::{Finding, TextFile};
use crate::freeze::{CRATES, FOLDER, PLUGIN};

/// Takes the frozen files out, which no other rule looks at.
pub fn take(files: Vec<TextFile>) -> (Vec<TextFile>, Vec<TextFile>) {
    let below = format!("{FOLDER}/");
    files.into_iter().partition(|file| file.path.starts_with(&below))
}

/// Finds what is missing among them.
pub fn check(frozen: &[TextFile]) -> Vec<Finding> {
    let members = CRATES.iter().chain([&PLUGIN]);
    let sources =
        members.flat_map(|member| [format!("{member}/Cargo.toml"), format!("{member}/src/lib.rs")]);
    ["Cargo.toml", "Cargo.lock"]
        .map(str::to_owned)
        .into_iter()
        .chain(sources)
        .map(|path| format!("{FOLDER}/{path}"))
        .filter(|path| frozen.iter().all(|file| file.path != *path))
        .map(|path| {
            let remedy = "`cargo xtask freeze` writes it; after the tag `abi-1` git has it";
            Finding::error(path, 0, "it is part of the frozen boundary and missing", remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, lines};

    #[test]
    fn a_copy_that_is_missing_or_torn_is_found() {
        assert_eq!(check(&[]).len(), 2 * CRATES.len() + 4);
        let path = |finding: &Finding| file(&finding.path, "");
        let mut files: Vec<TextFile> = check(&[]).iter().map(path).collect();
        assert_eq!(check(&files), Vec::new());
        files.retain(|file| !file.path.ends_with("types/src/lib.rs"));
        assert_eq!(
            lines(&check(&files)),
            [
                "plugin-api/testkit/fixtures/abi-1/plugin-api/types/src/lib.rs: it is part of the frozen \
              boundary and missing, `cargo xtask freeze` writes it; after the tag `abi-1` git has it"
            ]
        );
    }

    #[test]
    fn nothing_else_is_taken_out() {
        let files =
            ["plugin-api/src/lib.rs", "plugin-api/testkit/fixtures/abi-1/plugin-api/src/lib.rs"];
        let (frozen, others) = take(files.map(|path| file(path, "")).to_vec());
        assert_eq!((frozen.len(), others.len()), (1, 1));
        assert_eq!(others[0].path, files[0]);
    }
}
