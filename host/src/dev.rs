//! `jaato plugin dev`: builds a plugin's crate, installs it, and does so again after each change.
//!
//! The user agrees once that builds from a folder are trusted. A build keeps the grants of the
//! previous one. The question comes again if the plugin has another name or asks for more.

mod build;
mod watch;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use jaato_install as install;
use jaato_runtime::config::trust::{
    DevelopmentFolder, GrantStore, TrustStore, refuse_inside_session,
};
use jaato_runtime::session_loop::Cancel;
use jaato_runtime::types::grant::requested_grants;
use jaato_runtime::{Runtime, Setup, forget_copy, visible};

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::install as installing;
use crate::signals::cancel_on_signals;
use crate::{grant, plugin, report, start, terminal, trust};

/// The options of a development run.
#[derive(Debug, Clone, Copy)]
pub struct DevOptions {
    /// Build and install once, and end.
    pub once: bool,
    /// Trust the builds without asking.
    pub yes: bool,
    /// Build with optimizations.
    pub release: bool,
}

/// Builds and installs the plugin of a folder, and again after each change until Ctrl-C.
pub async fn run_dev(global: GlobalArgs, folder: &Path, options: DevOptions) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global.clone()))?;
    refuse_inside_session(&setup.variables).map_err(trust::trust_failure)?;
    let folder = check_folder(folder)?;
    let cancel = Cancel::new();
    let run = DevelopmentRun { global, setup, folder, options };
    // Before the first question, which takes Ctrl-C itself.
    cancel_on_signals(cancel.clone());
    let mut sources = watch::SourceStamp::read(run.folder.path());
    let mut name = run.build_and_install(&cancel).await;
    if options.once {
        return name.map(|_| Exit::Done);
    }
    let mut log = watch::LogTail::at_end(run.setup.folders.cache_folder().ok());
    loop {
        if let Err(failure) = &name {
            if cancel.is_cancelled() {
                return Ok(Exit::Done);
            }
            report::print_failure(failure);
        }
        report::print_line("waiting for changes; Ctrl-C stops")?;
        let plugin = name.as_deref().ok();
        let Some(changed) = watch::next_change(&run, &sources, (&mut log, plugin), &cancel).await?
        else {
            return Ok(Exit::Done);
        };
        sources = changed;
        name = run.build_and_install(&cancel).await;
    }
}

fn check_folder(folder: &Path) -> Result<DevelopmentFolder, CommandFailure> {
    DevelopmentFolder::check_folder(folder).map_err(|error| {
        let hint = "builds are trusted only from a folder that you alone can write to";
        CommandFailure::new(Exit::Usage, &error).hint(hint)
    })
}

/// A run of `jaato plugin dev`.
pub struct DevelopmentRun {
    global: GlobalArgs,
    setup: Setup,
    folder: DevelopmentFolder,
    options: DevOptions,
}

impl DevelopmentRun {
    /// Returns the crate's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Builds and installs once. Returns the plugin's name.
    async fn build_and_install(&self, cancel: &Cancel) -> Result<String, CommandFailure> {
        let file = build::build_crate(self, cancel).await?;
        let runtime = start::start_runtime(start::setup_arguments(self.global.clone())).await?;
        let installed = self.install_build(&runtime, &file).await;
        start::close_runtime(runtime).await;
        installed
    }

    /// Trusts and installs a build. Returns the plugin's name.
    async fn install_build(
        &self,
        runtime: &Runtime,
        file: &Path,
    ) -> Result<String, CommandFailure> {
        let installing::CheckedPlugin { source, description, unusable, folder } =
            installing::check_install_source(runtime, file).await?;
        let name = source.manifest().name.as_str().to_owned();
        let requested = requested_grants(&description).into_iter().map(str::to_owned).collect();
        self.trust_build(&name, source.file(), requested).await?;
        // Trusted first, so that a running chat never opens the new file in a worker.
        let installed =
            install::install_plugin(&source, &folder).map_err(installing::install_failure)?;
        let offered = plugin::describe_offer(source.manifest(), &description);
        report::print_line(&format!(
            "installed `{name}` {}: {offered}",
            source.manifest().version
        ))?;
        report::print_line(&format!("  {}", installed.path.display()))?;
        for line in unusable {
            report::print_line(&format!("  cannot be used: {}", visible::visible_name(&line)))?;
        }
        Ok(name)
    }

    /// Trusts a build and gives it its grants. Asks the user if they have not agreed to that.
    async fn trust_build(
        &self,
        name: &str,
        file: &Path,
        requested: BTreeSet<String>,
    ) -> Result<(), CommandFailure> {
        // Its mode may have changed while jaato waited. cargo may build into another folder.
        check_folder(self.folder.path())?;
        check_folder(file.parent().unwrap_or(file))?;
        let data = self.setup.folders.data_folder()?;
        let (trusts, grants) = (TrustStore::in_folder(data), GrantStore::in_folder(data));
        let known = trusts.development_trust(&self.folder).map_err(trust::trust_failure)?;
        let known = known.filter(|known| known.plugin == name);
        let asked = known.as_ref().map(|known| known.asked.clone()).unwrap_or_default();
        let added: BTreeSet<String> = requested.difference(&asked).cloned().collect();
        if (known.is_none() || !added.is_empty()) && !self.options.yes {
            self.ask_for_trust(name, &added).await?;
        }
        let sha256 = installing::digest_file(file)?;
        let before = known.as_ref().map(|known| known.sha256.as_str());
        if before == Some(sha256.as_str()) && added.is_empty() {
            return Ok(());
        }
        let asked = asked.union(&requested).cloned().collect();
        let now = SystemTime::now();
        trusts
            .trust_build(&self.folder, (name, &sha256, file), asked, now)
            .and_then(|()| grants.move_grants(name, before, &sha256, added, now))
            .map_err(trust::trust_failure)?;
        match before {
            Some(before) if before != sha256 => self.forget_copy(before),
            Some(_) | None => Ok(()),
        }
    }

    /// Removes the private copy of the previous build, whose trust has ended.
    fn forget_copy(&self, before: &str) -> Result<(), CommandFailure> {
        let copies = self.setup.folders.trusted_plugins_folder()?;
        forget_copy(before, &copies).map_err(|error| {
            let text = format!("cannot remove the copy in `{}`: {error}", copies.display());
            CommandFailure::new(Exit::Plugin, text)
        })
    }

    /// Asks whether builds of the folder are trusted and get these grants.
    async fn ask_for_trust(
        &self,
        name: &str,
        grants: &BTreeSet<String>,
    ) -> Result<(), CommandFailure> {
        let refused = |text: &str| {
            CommandFailure::new(Exit::Usage, text).hint("`--yes` trusts the builds without asking")
        };
        if !terminal::can_choose() {
            return Err(refused("no user can be asked whether the builds are trusted"));
        }
        let title = format!(
            "Run each build of `{}` from this folder inside jaato?",
            visible::visible_name(name)
        );
        let folder = self.folder.path().display().to_string();
        let allows = |name: &String| format!("it may {} ({name})", grant::describe_grant(name));
        let notes = std::iter::once(visible::visible_name(&folder).into_owned());
        let notes = notes.chain(grants.iter().map(allows));
        match terminal::confirm(&title, notes, "✓ trusted").await? {
            true => Ok(()),
            false => Err(refused("the builds are not trusted, so nothing was installed")),
        }
    }
}
