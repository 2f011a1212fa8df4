//! Killed hosts, whose containers are removed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptions, CreateContainerOptionsBuilder};
use environment_docker::{
    Container, DockerEngine, DockerSettings, remove_folders_left_behind, remove_leftover_containers,
};

use super::support::{
    DEADLINE, EngineLab, IMAGE, engine_address, run_future, shell_command, temporary_workspace,
    test_settings, with_engine,
};

/// The variable that makes this program a host that waits to be killed.
const HOST: &str = "JAATO_TEST_IS_HOST";

/// The variable with that host's workspace.
const WORKSPACE: &str = "JAATO_TEST_WORKSPACE";

/// The label of a container's owner.
const LABEL: &str = "io.jaato.owner";

/// Not a test, but the host that other tests kill. Does nothing without the variable.
#[test]
fn host_to_be_killed() {
    let Some(name) = std::env::var_os(HOST).and_then(|name| name.into_string().ok()) else {
        return;
    };
    run_future(async {
        let engine = DockerEngine::connect_to_engine(engine_address(), DEADLINE).await.unwrap();
        let folder = PathBuf::from(std::env::var_os(WORKSPACE).unwrap());
        let settings = match name.as_str() {
            "" => DockerSettings { tmp_base_dir: Some(folder.clone()), ..test_settings() },
            name => {
                DockerSettings { container_id: Some(name.to_owned()), ..DockerSettings::default() }
            }
        };
        let container = Container::open_container(engine, &settings, &folder).await.unwrap();
        let command =
            container.start_command(shell_command("trap '' TERM HUP; sleep 1000")).await.unwrap();
        println!("\ncontainer {} {}", container.id(), command.session());
        std::future::pending::<()>().await;
    });
}

/// Starts a process with a container and a command in it. Returns the process and the container's
/// ID.
fn start_host(name: &str, folder: &Path) -> (Child, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "left_behind::host_to_be_killed", "--nocapture"]).env(HOST, name);
    let mut child = command.env(WORKSPACE, folder).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let line = lines.find_map(|line| Some(line.strip_prefix("container ")?.to_owned()));
    let (id, _) = line.as_deref().and_then(|line| line.split_once(' ')).expect("a container");
    (child, id.to_owned())
}

#[test]
fn created_container_ends_when_its_host_is_killed() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let (mut child, id) = start_host("", folder.path());
        assert!(lab.is_running(&id).await);
        child.kill().unwrap();
        child.wait().unwrap();
        lab.wait_until_gone(&id).await;
        // The killed host could not remove its folder.
        assert_eq!(count_folders(folder.path()), 1);
        assert_eq!(remove_folders_left_behind(folder.path()).len(), 1);
        assert_eq!(count_folders(folder.path()), 0);
    });
}

#[test]
fn killed_host_ends_its_commands_but_leaves_the_existing_container() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let body = ContainerCreateBody {
            image: Some(IMAGE.to_owned()),
            cmd: Some(["sleep", "1000000"].map(str::to_owned).into()),
            host_config: Some(bollard::models::HostConfig {
                binds: Some(vec![format!("{}:/w", folder.path().display())]),
                ..Default::default()
            }),
            ..ContainerCreateBody::default()
        };
        let id =
            lab.docker.create_container(None::<CreateContainerOptions>, body).await.unwrap().id;
        let start = None::<bollard::query_parameters::StartContainerOptions>;
        lab.docker.start_container(&id, start).await.unwrap();
        let (mut child, _) = start_host(&id, folder.path());
        assert!(lab.list_programs(&id).await.len() > 1);
        child.kill().unwrap();
        child.wait().unwrap();
        while lab.list_programs(&id).await != ["sleep 1000000"] {}
        assert!(lab.is_running(&id).await);
        assert_eq!(remove_folders_left_behind(folder.path()).len(), 1);
        assert_eq!(count_folders(folder.path()), 0);
        lab.remove_container(&id).await;
    });
}

fn count_folders(base: &Path) -> usize {
    std::fs::read_dir(base).unwrap().count()
}

/// Creates a container with this owner that nothing ends.
async fn start_labelled_container(lab: &EngineLab, name: &str, owner: &str) {
    let body = ContainerCreateBody {
        image: Some(IMAGE.to_owned()),
        cmd: Some(["sleep", "1000000"].map(str::to_owned).into()),
        labels: Some([(LABEL.to_owned(), owner.to_owned())].into()),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(name).build();
    lab.docker.create_container(Some(options), body).await.unwrap();
}

#[test]
fn next_start_removes_only_containers_of_dead_hosts() {
    with_engine(async |lab| {
        let folder = temporary_workspace();
        let mine = lab.make_container(folder.path()).await;
        let label = inspect_label(&lab, &mine.id()).await;
        let (rest, _) = label.rsplit_once(' ').unwrap();
        let (place, _) = rest.rsplit_once(' ').unwrap();
        let names = ["dead", "other", "nonsense"];
        let names = names.map(|name| format!("jaato-test-{}-{name}", std::process::id()));
        // The number of this process, with another start time.
        start_labelled_container(&lab, &names[0], &format!("{rest} 1")).await;
        let elsewhere = place.replacen(place.split(' ').nth(1).unwrap(), "another-boot", 1);
        let elsewhere = format!("another-machine {}", elsewhere.split_once(' ').unwrap().1);
        start_labelled_container(&lab, &names[1], &format!("{elsewhere} 1 1")).await;
        start_labelled_container(&lab, &names[2], "what is this").await;
        remove_leftover_containers(&lab.engine).await.unwrap();
        // Another test that starts an environment may remove it at the same time.
        lab.wait_until_gone(&names[0]).await;
        for name in &names[1..] {
            assert!(lab.container_exists(name).await, "{name}");
            lab.remove_container(name).await;
        }
        assert!(lab.is_running(&mine.id()).await);
        mine.close().await.unwrap();
    });
}

async fn inspect_label(lab: &EngineLab, id: &str) -> String {
    use bollard::query_parameters::InspectContainerOptions;
    let seen = lab.docker.inspect_container(id, None::<InspectContainerOptions>).await.unwrap();
    seen.config.unwrap().labels.unwrap()[LABEL].clone()
}
