//! `new-plugin`: creates a plugin crate outside this checkout that builds against its sdk.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error, Result, bail};
use jaato_template::{SdkSources, TemplateError, TemplateKind, next_steps, write_crate};

use crate::workspace::CargoWorkspace;

struct NewPluginOptions {
    name: String,
    folder: Option<PathBuf>,
    /// Another sdk instead of this checkout's crates.
    sdk: Option<PathBuf>,
    kind: TemplateKind,
}

/// Runs the chore.
pub fn run_new_plugin(words: Vec<OsString>) -> Result<ExitCode> {
    let options = parse_options(words)?;
    let workspace = CargoWorkspace::load()?;
    let current = std::env::current_dir().context("finding the current folder")?;
    let folder = current.join(options.folder.unwrap_or_else(|| PathBuf::from(&options.name)));
    refuse_shipped_folder(&workspace.root, &folder)?;
    let sdk = SdkSources::in_folder(options.sdk.as_deref().unwrap_or(&workspace.root))
        .map_err(template_error)?;
    write_crate(&folder, &options.name, options.kind, &sdk).map_err(template_error)?;
    let jaato =
        workspace.target.join("release").join(format!("jaato{}", std::env::consts::EXE_SUFFIX));
    println!("written to `{}`; next:\n", folder.display());
    println!("{}", next_steps(&folder, &options.name, options.kind, &jaato.to_string_lossy()));
    println!("\n(`jaato` is there after the first `cargo xtask run`.)");
    Ok(ExitCode::SUCCESS)
}

fn parse_options(words: Vec<OsString>) -> Result<NewPluginOptions> {
    use lexopt::prelude::*;

    let (mut name, mut folder, mut sdk, mut kind) = (None, None, None, TemplateKind::Tool);
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("path") => folder = Some(PathBuf::from(parser.value()?)),
            Long("sdk") => sdk = Some(PathBuf::from(parser.value()?)),
            Long("kind") => {
                kind = parser.value()?.parse_with(parse_kind)?;
            }
            Value(word) if name.is_none() => name = Some(word.string()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let name = name.context("a plugin needs a name: `cargo xtask new-plugin moon-phase`")?;
    Ok(NewPluginOptions { name, folder, sdk, kind })
}

fn parse_kind(word: &str) -> Result<TemplateKind, String> {
    let kind = TemplateKind::ALL.into_iter().find(|kind| kind.kind_name() == word);
    kind.ok_or_else(|| {
        let kinds = TemplateKind::ALL.map(TemplateKind::kind_name).join("`, `");
        format!("unknown kind `{word}`; the kinds are `{kinds}`")
    })
}

fn refuse_shipped_folder(root: &Path, folder: &Path) -> Result<()> {
    let shipped = root.join("plugins");
    if folder.starts_with(&shipped) {
        bail!(
            "`{}` is for the plugins that jaato ships, which are members of its workspace; \
             name another folder with `--path`",
            shipped.display()
        );
    }
    Ok(())
}

fn template_error(error: TemplateError) -> Error {
    match error.hint() {
        Some(hint) => Error::msg(format!("{error}; {hint}")),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_new_plugin_arguments_are_refused_with_a_reason() {
        let error = |words: &[&str]| {
            parse_options(words.iter().map(OsString::from).collect()).err().unwrap().to_string()
        };
        assert!(error(&[]).starts_with("a plugin needs a name"));
        assert!(error(&["a", "--kind", "modul"]).contains("unknown kind `modul`"));
        assert!(error(&["a", "b"]).contains("b"));
        assert!(parse_options(vec!["a".into(), "--kind".into(), "gc".into()]).is_ok());
    }

    #[test]
    fn new_plugin_in_the_plugins_folder_is_refused() {
        let root = Path::new("/checkout");
        let error = refuse_shipped_folder(root, &root.join("plugins").join("a")).unwrap_err();
        assert!(error.to_string().contains("members of its workspace"), "{error}");
        refuse_shipped_folder(root, Path::new("/elsewhere/plugins/a")).unwrap();
    }
}
