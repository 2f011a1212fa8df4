//! The own folder of a subagent: a git worktree, or a copy of the working directory where there is
//! no git. Its changes come back as a diff.
//!
//! The folders are in `.worktrees` of the working directory, so the rules about the workspace apply
//! to them, and git ignores them. All programs run in the session's environment.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Spawn;
use serde::{Deserialize, Serialize};

/// The longest diff, in bytes.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long git, a copy or a diff may take, in milliseconds.
const DEADLINE_MS: u64 = 120_000;

/// The functions of each script. Git runs no program that the repository configures.
const FUNCTIONS: &str = r#"set -e
git() { command git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
"#;

/// Creates the folder `$1`. Prints the kind, the commit, and the working directory of the subagent.
const CREATE: &str = r#"
mkdir -p .worktrees
[ -e .worktrees/.gitignore ] || echo '*' > .worktrees/.gitignore
commit=$(git rev-parse --verify -q HEAD 2>/dev/null || :)
# A folder of which the commit has nothing, for example an ignored one, is copied.
if [ -n "$commit" ] && [ -n "$(git ls-tree --name-only HEAD)" ]; then
    git worktree add -q --detach ".worktrees/$1" HEAD
    printf 'git\n%s\n.worktrees/%s/%s' "$commit" "$1" "$(git rev-parse --show-prefix)"
else
    for folder in "$1" "$1.base"; do
        mkdir ".worktrees/$folder"
        tar -cf - --exclude=./.worktrees . | tar -xf - -C ".worktrees/$folder"
    done
    printf 'copy\n\n.worktrees/%s' "$1"
fi
"#;

/// Prints the changes in the worktree `$1` since the commit `$2`, also those of its own commits.
const GIT_DIFF: &str = r#"
git -C ".worktrees/$1" add -A
git -C ".worktrees/$1" diff --cached --binary --no-ext-diff --no-textconv "$2"
"#;

/// Applies them to the repository of the working directory.
const GIT_ACCEPT: &str = r#"
top=$(git rev-parse --show-toplevel)
git -C ".worktrees/$1" add -A
git -C ".worktrees/$1" diff --cached --binary --no-ext-diff --no-textconv "$2" |
    git -C "$top" apply --binary
git -C ".worktrees/$1" -c user.name=jaato -c user.email=jaato@localhost commit -q --allow-empty -m accepted
git -C ".worktrees/$1" rev-parse HEAD
"#;

/// Prints the changes in the copy `$1`.
const COPY_DIFF: &str = r#"
cd .worktrees
diff -ruN "$1.base" "$1" || [ $? -eq 1 ]
"#;

/// Applies them to the working directory.
const COPY_ACCEPT: &str = r#"
top=$PWD
cd .worktrees
{ diff -ruN "$1.base" "$1" || [ $? -eq 1 ]; } | patch -s -p1 -d "$top"
rm -rf "$1.base"
cp -a "$1" "$1.base"
"#;

const REMOVE: &str = r#"
git worktree remove --force ".worktrees/$1" 2>/dev/null || rm -rf ".worktrees/$1"
rm -rf ".worktrees/$1.base"
"#;

/// The folder of a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its name below `.worktrees`.
    name: String,
    kind: WorktreeKind,
    /// The commit at which the changes begin. Empty in a copy.
    commit: String,
    /// The working directory of the subagent, relative to that of the session.
    pub directory: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WorktreeKind {
    Git,
    Copy,
}

impl Worktree {
    /// Creates the folder of a subagent.
    ///
    /// # Errors
    /// If git or the copy fails.
    pub async fn create(host: &Reporter, name: &str) -> Result<Self> {
        let printed = run_script(host, CREATE, &[name]).await?;
        let mut lines = printed.split('\n');
        let mut next = || lines.next().unwrap_or_default().to_owned();
        let kind = if next() == "git" { WorktreeKind::Git } else { WorktreeKind::Copy };
        Ok(Self { name: name.to_owned(), kind, commit: next(), directory: next() })
    }

    /// Returns the changes as a diff. Empty if there are none.
    ///
    /// # Errors
    /// If git or `diff` fails, or the diff has more than 4 MiB.
    pub async fn diff(&self, host: &Reporter) -> Result<String> {
        match self.kind {
            WorktreeKind::Git => run_script(host, GIT_DIFF, &[&self.name, &self.commit]).await,
            WorktreeKind::Copy => run_script(host, COPY_DIFF, &[&self.name]).await,
        }
    }

    /// Applies the changes to the session's working directory. Later changes begin here.
    ///
    /// # Errors
    /// If they do not fit, because the same lines have changed there. Then nothing changes.
    pub async fn accept(&mut self, host: &Reporter) -> Result<()> {
        match self.kind {
            WorktreeKind::Git => {
                let commit = run_script(host, GIT_ACCEPT, &[&self.name, &self.commit]).await?;
                commit.trim().clone_into(&mut self.commit);
            }
            WorktreeKind::Copy => _ = run_script(host, COPY_ACCEPT, &[&self.name]).await?,
        }
        Ok(())
    }

    /// Removes the folder with all changes that were not accepted.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub async fn remove(&self, host: &Reporter) -> Result<()> {
        run_script(host, REMOVE, &[&self.name]).await.map(drop)
    }
}

async fn run_script(host: &Reporter, script: &str, args: &[&str]) -> Result<String> {
    let mut spawn = Spawn::shell(format!("{FUNCTIONS}{script}")).arg("sh");
    spawn = args.iter().fold(spawn, |spawn, arg| spawn.arg(*arg));
    let spawn = spawn.deadline_ms(DEADLINE_MS).label("the worktree of a subagent");
    let finished = host.process(&spawn).await?.finish(DIFF_BYTES_MAX).await?;
    if finished.exit.code != Some(0) {
        let said = String::from_utf8_lossy(&finished.stderr);
        let text = format!("the worktree of the subagent: {}", said.trim());
        return Err(Error::failed(text));
    }
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}
