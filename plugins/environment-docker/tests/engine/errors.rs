//! Errors before anything runs.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use environment_docker::{Container, DockerEngine, DockerSettings, EngineAddress};
use jaato_plugin_sdk::types::{Error, ErrorKind, Retry};
use jaato_plugin_testkit::skip;
use tokio::net::{TcpListener, UnixListener};

use super::support::{
    DEADLINE, EngineLab, IMAGE_WITHOUT_SHELL, run_future, temporary_workspace, test_settings,
    with_engine,
};

async fn setup_error(lab: &EngineLab, settings: &DockerSettings) -> Error {
    let folder = temporary_workspace();
    let base = tempfile::tempdir().unwrap();
    let settings =
        DockerSettings { tmp_base_dir: Some(base.path().to_owned()), ..settings.clone() };
    let opened = Container::open_container(lab.engine.clone(), &settings, folder.path()).await;
    let error = opened.map(|_| ()).expect_err("refused");
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0, "a folder was left");
    error
}

#[test]
fn missing_image_error_hints_at_docker_pull() {
    with_engine(async |lab| {
        let image = "jaato-test:nowhere".to_owned();
        let error =
            setup_error(&lab, &DockerSettings { image: Some(image), ..test_settings() }).await;
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert_eq!(error.message, "no image `jaato-test:nowhere` at the engine");
        assert!(error.hint.unwrap().starts_with("`docker pull jaato-test:nowhere`"));
    });
}

#[test]
fn image_without_a_shell_is_refused_and_leaves_no_container() {
    with_engine(async |lab| {
        let image = Some(IMAGE_WITHOUT_SHELL.to_owned());
        let error = setup_error(&lab, &DockerSettings { image, ..test_settings() }).await;
        assert!(error.message.starts_with("the container has no `sh`"), "{error}");
    });
}

#[test]
fn image_names_with_path_or_query_characters_are_refused() {
    with_engine(async |lab| {
        for name in ["../info", "a?b", "a b", "/x"] {
            let settings = DockerSettings { image: Some(name.to_owned()), ..test_settings() };
            let error = setup_error(&lab, &settings).await;
            assert_eq!(error.kind, ErrorKind::Configuration, "{name}");
        }
    });
}

#[track_caller]
fn connect_error(address: &EngineAddress, deadline: Duration) -> Error {
    run_future(DockerEngine::connect_to_engine(address.clone(), deadline))
        .map(|_| ())
        .expect_err("no engine")
}

#[test]
fn missing_engine_socket_is_reported_with_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none.sock");
    let error = connect_error(&EngineAddress::Unix(socket.clone()), DEADLINE);
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(error.message, format!("no engine at `unix://{}`", socket.display()));
}

#[test]
fn socket_without_a_listener_differs_from_a_missing_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let error = connect_error(&EngineAddress::Unix(socket.clone()), DEADLINE);
    assert_eq!(
        error.message,
        format!("the engine at `unix://{}` does not listen", socket.display())
    );
    assert_eq!(error.retry, Retry::Temporary);
}

#[test]
fn socket_without_permission_is_reported_as_permission_denied() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("closed.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::os::unix::net::UnixStream::connect(&socket).is_ok() {
        return skip("root may connect to every socket");
    }
    let error = connect_error(&EngineAddress::Unix(socket), DEADLINE);
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
}

#[test]
fn engine_that_does_not_answer_times_out() {
    run_future(async {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("slow.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        let error =
            DockerEngine::connect_to_engine(EngineAddress::Unix(socket), Duration::from_millis(50))
                .await;
        let error = error.map(|_| ()).expect_err("no answer");
        assert_eq!((error.kind, error.retry), (ErrorKind::Timeout, Retry::Temporary));
        assert!(error.message.ends_with("did not answer in time"), "{error}");
    });
}

#[test]
fn server_that_is_not_an_engine_is_reported() {
    run_future(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = EngineAddress::Tcp(listener.local_addr().unwrap().to_string());
        let server = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            stream.write_all(text.as_bytes()).await.unwrap();
        });
        let error = DockerEngine::connect_to_engine(address, DEADLINE)
            .await
            .map(|_| ())
            .expect_err("no engine");
        assert!(error.message.contains("sent an unexpected answer"), "{error}");
        server.await.unwrap();
    });
}
