//! The own folder of a subagent or of a conversation: a git worktree, or a copy of the working
//! directory if it is not in git. Its changes come back as a diff.
//!
//! The folders are in `.worktrees` of the working directory, so the rules about the workspace apply
//! to them, and git ignores them. The changes in `NAME` begin at `NAME.base`: a file with a commit,
//! or a copy. It also distinguishes the folder from those of the user. All programs run in the
//! session's environment.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Spawn;
use jaato_plugin_sdk::types::CommandSpec;
use serde::{Deserialize, Serialize};

/// The name of the user's command.
pub const COMMAND: &str = "worktree";

/// The longest name that a user may give.
const NAME_BYTES_MAX: usize = 64;

/// The longest diff, in bytes.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long git, a copy or a diff may take, in milliseconds.
const DEADLINE_MS: u64 = 120_000;

/// The functions of each script. Git runs no program that the repository configures.
const FUNCTIONS: &str = r#"set -e
git() {
    command git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c commit.gpgsign=false "$@"
}
is_copy() { [ -d ".worktrees/$1.base" ]; }
git_diff() {
    git -C ".worktrees/$1" diff --cached --no-ext-diff --no-textconv "$2" \
        "$(cat ".worktrees/$1.base")"
}
copy_diff() { (cd .worktrees; diff -ruN "$1.base" "$1" || [ $? -eq 1 ]); }
"#;

/// Changes from a worktree to the folder around it, also if they are nested.
const LEAVE: &str = r#"
while :; do
    case $PWD/ in */.worktrees/*) ;; *) break ;; esac
    around=${PWD%/.worktrees/*}
    name=${PWD#"$around/.worktrees/"}
    [ -e "$around/.worktrees/${name%%/*}.base" ] || break
    cd "$around"
done
"#;

/// Fails if the folder `$1` exists.
const IS_NEW: &str = r#"
[ ! -e ".worktrees/$1" ] || { echo "\`.worktrees/$1\` already exists" >&2; exit 1; }
"#;

/// Creates the folder `$1` unless it exists. Prints the working directory in it.
const CREATE: &str = r#"
mkdir -p .worktrees
[ -e .worktrees/.gitignore ] || echo '*' > .worktrees/.gitignore
commit=$(git rev-parse --verify -q HEAD 2>/dev/null || :)
# A folder of which the commit has nothing, for example an ignored one, is copied.
if ! is_copy "$1" && [ -n "$commit" ] && [ -n "$(git ls-tree --name-only HEAD)" ]; then
    if [ ! -e ".worktrees/$1" ]; then
        echo "$commit" > ".worktrees/$1.base"
        git worktree add -q --detach ".worktrees/$1" "$commit"
    fi
    printf '.worktrees/%s/%s' "$1" "$(git rev-parse --show-prefix)"
else
    # A copy that was interrupted has another name, because its missing files would count as
    # removed.
    for folder in "$1.base" "$1"; do
        [ ! -e ".worktrees/$folder" ] || continue
        rm -rf ".worktrees/$1.part"
        mkdir ".worktrees/$1.part"
        tar -cf - --exclude=./.worktrees . | tar -xf - -C ".worktrees/$1.part"
        mv ".worktrees/$1.part" ".worktrees/$folder"
    done
    printf '.worktrees/%s' "$1"
fi
"#;

/// Fails unless the folder `$1` exists.
const EXISTS: &str = r#"
[ -d ".worktrees/$1" ] && [ -e ".worktrees/$1.base" ] ||
    { echo "\`$1\` is unknown; \`worktree\` lists the names" >&2; exit 1; }
"#;

/// Prints the changes in the folder `$1`, also those of its own commits.
const DIFF: &str = r#"
if is_copy "$1"; then
    copy_diff "$1"
else
    git -C ".worktrees/$1" add -A
    git_diff "$1" --binary
fi
"#;

/// Applies them to the repository of the working directory, or to the working directory.
const ACCEPT: &str = r#"
if is_copy "$1"; then
    copy_diff "$1" | patch -s -p1 --dry-run
    copy_diff "$1" | patch -s -p1
    rm -rf ".worktrees/$1.base"
    cp -a ".worktrees/$1" ".worktrees/$1.base"
else
    git -C ".worktrees/$1" add -A
    git_diff "$1" --quiet ||
        git_diff "$1" --binary | git -C "$(git rev-parse --show-toplevel)" apply --binary
    git -C ".worktrees/$1" -c user.name=jaato -c user.email=jaato@localhost \
        commit -q --allow-empty -m accepted
    git -C ".worktrees/$1" rev-parse HEAD > ".worktrees/$1.base"
fi
"#;

const REMOVE: &str = r#"
git worktree remove --force ".worktrees/$1" 2>/dev/null || rm -rf ".worktrees/$1"
rm -rf ".worktrees/$1.base"
"#;

/// Prints a line for each folder: its name and the number of changed files.
const LIST: &str = r#"
for base in .worktrees/*.base; do
    name=$(basename "$base" .base)
    [ -d ".worktrees/$name" ] || continue
    if is_copy "$name"; then
        count=$(cd .worktrees; diff -rqN "$name.base" "$name" | wc -l)
    else
        git -C ".worktrees/$name" add -A
        count=$(git_diff "$name" --name-only | wc -l)
    fi
    echo "$name: $((count)) changed files"
done
"#;

/// The own folder of a subagent or of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its name below `.worktrees`.
    name: String,
    /// The working directory in it, relative to the folder with `.worktrees`.
    pub directory: String,
}

impl Worktree {
    /// Creates the folder of a subagent.
    ///
    /// # Errors
    /// If it exists, or if git or the copy fails.
    pub async fn create_worktree(host: &Reporter, name: &str) -> Result<Self> {
        let directory = run_script(host, &[IS_NEW, CREATE], &[name]).await?;
        Ok(Self { name: name.to_owned(), directory })
    }

    /// Returns the changes as a diff. Empty if there are none.
    ///
    /// # Errors
    /// If git or `diff` fails, or the diff has more than 4 MiB.
    pub async fn diff_changes(&self, host: &Reporter) -> Result<String> {
        run_script(host, &[DIFF], &[&self.name]).await
    }

    /// Applies the changes to the session's working directory. Later changes begin here.
    ///
    /// # Errors
    /// If they do not fit, because the same lines have changed there. Then nothing changes.
    pub async fn accept_changes(&self, host: &Reporter) -> Result<()> {
        run_script(host, &[ACCEPT], &[&self.name]).await.map(drop)
    }

    /// Removes the folder with all changes that were not accepted.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub async fn remove_worktree(&self, host: &Reporter) -> Result<()> {
        run_script(host, &[REMOVE], &[&self.name]).await.map(drop)
    }
}

/// Runs the user's command `worktree` in the folder with `.worktrees`.
///
/// # Errors
/// If the action needs a name that is missing, invalid or unknown, or if its script fails.
pub async fn run_worktree_command(host: &Reporter, arguments: &Value) -> Result<Output> {
    let name = arguments["name"].as_str().unwrap_or_default();
    let action = arguments["action"].as_str().unwrap_or("list");
    if action != "list" && !is_valid_name(name) {
        let text = "a worktree needs a name of letters, digits, `-` and `_`";
        return Err(Error::new(ErrorKind::InvalidArguments, text)
            .with_hint(format!("write `worktree {action} NAME`; `worktree` lists the names")));
    }
    let script = match action {
        "create" => [LEAVE, CREATE].as_slice(),
        "diff" => &[LEAVE, EXISTS, DIFF],
        "accept" => &[LEAVE, EXISTS, ACCEPT],
        "remove" => &[LEAVE, EXISTS, REMOVE],
        _ => &[LEAVE, LIST],
    };
    let printed = run_script(host, script, &[name]).await?;
    Ok(match action {
        "create" => Output::json(json!({
            "result": format!("`{printed}` is the folder of worktree `{name}`"),
            "directory": printed,
        })),
        "diff" if printed.is_empty() => Output::text(format!("`{name}` has no changes")),
        "accept" => Output::text(format!("the changes of `{name}` are applied to your files")),
        "remove" => Output::text(format!("removed `{name}`")),
        "list" if printed.is_empty() => Output::text("no worktrees"),
        _ => Output::text(printed),
    })
}

/// Returns the spec of the user's command.
pub fn worktree_command() -> CommandSpec {
    CommandSpec {
        name: COMMAND.to_owned(),
        description: "Lists the worktrees of this folder, shows the changes in one as a diff, \
                      applies them to your files, or removes it: worktree accept NAME"
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "enum": ["list", "create", "diff", "accept", "remove"],
                    "default": "list",
                    "description": "What to do.",
                },
                "name": { "type": "string", "description": "Which worktree." },
            },
            "additionalProperties": false,
        }),
        ..CommandSpec::default()
    }
}

fn is_valid_name(name: &str) -> bool {
    let is_valid = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_valid)
}

async fn run_script(host: &Reporter, parts: &[&str], args: &[&str]) -> Result<String> {
    let mut spawn = Spawn::shell(format!("{FUNCTIONS}{}", parts.concat())).arg("sh");
    spawn = args.iter().fold(spawn, |spawn, arg| spawn.arg(*arg));
    let spawn = spawn.deadline_ms(DEADLINE_MS).label("a worktree");
    let finished = host.process(&spawn).await?.finish(DIFF_BYTES_MAX).await?;
    if finished.exit.code != Some(0) {
        let said = String::from_utf8_lossy(&finished.stderr);
        let text = format!("the worktree: {}", said.trim());
        return Err(Error::failed(text));
    }
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}
