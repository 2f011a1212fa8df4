//! Probes a container with a single command.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::types::text::one_line;
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};

use crate::command::{CommandEvent, CommandExit, ContainerCommand, ContainerCommandSpec};
use crate::container_context::ContainerContext;

/// Needs only a shell, because a container may contain nothing else.
const SCRIPT: &str = r#"r(){ v=; { IFS= read -r v <"$1"; } 2>/dev/null; }
echo "cwd=$PWD"
r /proc/sys/kernel/ostype; echo "kernel=$v"
r /proc/sys/kernel/osrelease; echo "release=$v"
m=$(uname -m 2>/dev/null); echo "machine=$m"
if [ -r /etc/os-release ]; then while IFS= read -r l || [ -n "$l" ]; do case $l in [A-Z]*=*) echo "os.$l";; esac; done </etc/os-release; fi
while read -r k u e x; do case $k in Uid:) echo "uid=$e"; n=$e;; Gid:) echo "gid=$e";; esac; done </proc/self/status
if [ -r /etc/passwd ]; then while IFS=: read -r a _ i _; do [ "$i" = "$n" ] && { echo "user=$a"; break; }; done </etc/passwd; fi
echo "home=$HOME"; [ -d "$HOME" ] && [ -w "$HOME" ] && echo "home_writable=1"
s=
for n in bash sh; do for d in /bin /usr/bin /usr/local/bin; do [ -z "$s" ] && [ -x "$d/$n" ] && s=$d/$n; done; done
echo "shell=${s:-sh}"
[ -e "$1" ] && echo "shared=1"
[ -w "$2" ] && echo "writable=1"
:"#;

/// Facts about a container, as its commands see them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerFacts {
    /// The kernel's name, such as `Linux`.
    pub kernel: String,
    /// The kernel's release.
    pub release: String,
    /// The distribution's ID, such as `debian`. Empty if the image does not set it.
    pub distribution: String,
    /// The distribution's version, such as `12`.
    pub version: String,
    /// The distribution's full name.
    pub pretty_name: String,
    /// The processor architecture, as `uname -m` names it.
    pub machine: String,
    /// The path of the best available shell.
    pub shell: String,
    /// The folder in which commands run.
    pub cwd: PathBuf,
    /// The user's name, if there is one.
    pub user: Option<String>,
    /// The user's ID.
    pub uid: u32,
    /// The group's ID.
    pub gid: u32,
    /// The home folder, if it is writable.
    pub home: Option<PathBuf>,
    /// Whether the workspace is writable.
    pub workspace_is_writable: bool,
}

/// Probes a container. `shared` is a path that exists if both sides see the same files.
///
/// # Errors
/// The errors of [`ContainerCommand::start`], or `failed` if the container does not see this
/// machine's files.
pub async fn probe_container(
    place: &ContainerContext,
    shared: &Path,
    workspace: &Path,
) -> Result<ContainerFacts> {
    let words = [
        "sh".to_owned(),
        "-c".to_owned(),
        SCRIPT.to_owned(),
        "sh".to_owned(),
        shared.to_string_lossy().into_owned(),
        workspace.to_string_lossy().into_owned(),
    ];
    let spec = ContainerCommandSpec { words: words.into(), ..ContainerCommandSpec::default() };
    let command = ContainerCommand::start(place.clone(), spec).await?;
    let (mut text, mut complaints) = (Vec::new(), Vec::new());
    while let Some(piece) = command.next().await? {
        match piece {
            CommandEvent::Stdout(bytes) => text.extend(bytes),
            CommandEvent::Stderr(bytes) => complaints.extend(bytes),
            CommandEvent::Exit(CommandExit { code: 0, .. }) => {}
            CommandEvent::Exit(CommandExit { code, .. }) => {
                let said = one_line(&String::from_utf8_lossy(&complaints));
                return Err(Error::failed(format!(
                    "cannot inspect the container (code {code}): {said}"
                )));
            }
        }
    }
    let text = String::from_utf8_lossy(&text);
    let values = parse_values(&text);
    if !values.contains_key("shared") {
        let text = format!(
            "the container `{}` does not see this machine's files (`{}` does not exist)",
            place.name,
            shared.display()
        );
        let hint = "the engine must run on this machine, or share its folders";
        return Err(Error::new(ErrorKind::Failed, text).with_hint(hint));
    }
    Ok(container_facts(&values, place))
}

fn parse_values(text: &str) -> HashMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

fn container_facts(values: &HashMap<&str, &str>, place: &ContainerContext) -> ContainerFacts {
    let get = |key: &str| values.get(key).copied().unwrap_or_default();
    let unquoted = |key: &str| get(key).trim_matches(['"', '\'']).to_owned();
    let machine = match get("machine") {
        "" => place.engine.architecture(),
        machine => machine,
    };
    ContainerFacts {
        kernel: get("kernel").to_owned(),
        release: get("release").to_owned(),
        distribution: unquoted("os.ID"),
        version: unquoted("os.VERSION_ID"),
        pretty_name: unquoted("os.PRETTY_NAME"),
        machine: machine.to_owned(),
        shell: get("shell").to_owned(),
        cwd: get("cwd").into(),
        user: values.get("user").map(|user| (*user).to_owned()),
        uid: get("uid").parse().unwrap_or_default(),
        gid: get("gid").parse().unwrap_or_default(),
        home: find_user_home(values),
        workspace_is_writable: values.contains_key("writable"),
    }
}

/// Returns the user's home. For a user that the image does not know, Podman sets the working
/// directory as home and the ID as name. That home is ignored, because programs would store their
/// data in the workspace.
fn find_user_home(values: &HashMap<&str, &str>) -> Option<PathBuf> {
    let home = *values.get("home")?;
    let is_strange = values.get("user").is_none_or(|user| values.get("uid") == Some(user));
    let is_lent = is_strange && values.get("cwd") == Some(&home);
    (values.contains_key("home_writable") && !is_lent).then(|| home.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_home(told: &str, expected: Option<&str>) {
        assert_eq!(find_user_home(&parse_values(told)), expected.map(PathBuf::from), "{told}");
    }

    #[test]
    fn working_directory_is_not_the_home_of_an_unknown_user() {
        let podman = "cwd=/workspace\nuid=77\nuser=77\nhome=/workspace\nhome_writable=1";
        check_home(podman, None);
        check_home("cwd=/workspace\nuid=77\nhome=/workspace\nhome_writable=1", None);
        let root = "cwd=/root\nuid=0\nuser=root\nhome=/root\nhome_writable=1";
        check_home(root, Some("/root"));
        check_home("cwd=/workspace\nuid=77\nhome=/home/x\nhome_writable=1", Some("/home/x"));
        check_home("cwd=/workspace\nuid=77\nhome=/", None);
    }
}
