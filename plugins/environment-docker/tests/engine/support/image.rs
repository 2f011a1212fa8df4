//! Builds an image from this machine's busybox, without a registry.

use std::path::Path;

use bollard::Docker;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;

/// The image for tests.
pub const IMAGE: &str = "jaato-test:busybox";

/// An image with programs but without a shell.
pub const IMAGE_WITHOUT_SHELL: &str = "jaato-test:no-shell";

const RELEASE: &str = "ID=jaatotest\nVERSION_ID=\"1.0\"\nPRETTY_NAME=\"Test Image 1.0\"\n";
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\ntester:x:1234:4321::/nowhere:/bin/sh\n";

/// Imports the images. The same bytes give the same layer, so concurrent imports do no harm.
pub async fn import_images(docker: &Docker) -> Result<(), String> {
    for (image, has_shell) in [(IMAGE, true), (IMAGE_WITHOUT_SHELL, false)] {
        if docker.inspect_image(image).await.is_ok() {
            continue;
        }
        let tree = build_tree(has_shell)?;
        let (repo, tag) = image.split_once(':').unwrap();
        let options = CreateImageOptionsBuilder::new().from_src("-").repo(repo).tag(tag).build();
        let body = bollard::body_full(tree.into());
        let mut steps = docker.create_image(Some(options), Some(body), None);
        while let Some(step) = steps.next().await {
            step.map_err(|error| format!("the image of the tests is refused: {error}"))?;
        }
    }
    Ok(())
}

fn build_tree(has_shell: bool) -> Result<Vec<u8>, String> {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new).into_iter();
    let busybox =
        busybox.filter_map(|path| std::fs::read(path).ok()).find(|bytes| is_static_program(bytes));
    let Some(busybox) = busybox else {
        return Err("no static busybox: `apt-get install busybox-static`".to_owned());
    };
    let mut tar = tar::Builder::new(Vec::new());
    for folder in ["bin/", "etc/"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        tar.append_data(&mut header, folder, std::io::empty()).unwrap();
    }
    add_member(&mut tar, "bin/busybox", 0o755, &busybox);
    add_member(&mut tar, "etc/os-release", 0o644, RELEASE.as_bytes());
    add_member(&mut tar, "etc/passwd", 0o644, PASSWD.as_bytes());
    let programs = [
        "sh", "sleep", "cat", "ls", "stty", "id", "setsid", "head", "wc", "dd", "touch", "rm", "ln",
    ];
    for name in programs.into_iter().filter(|name| has_shell || *name != "sh") {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, format!("bin/{name}"), "busybox").unwrap();
    }
    Ok(tar.into_inner().unwrap())
}

fn add_member(tar: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(bytes.len().try_into().unwrap());
    tar.append_data(&mut header, path, bytes).unwrap();
}

/// Returns true for a static program. Others name their loader near the beginning.
fn is_static_program(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    !["/ld-linux", "/ld-musl", "/ld64"]
        .iter()
        .any(|loader| head.windows(loader.len()).any(|window| window == loader.as_bytes()))
}
