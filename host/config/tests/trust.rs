//! The record of trust: what is trusted, what withdraws trust, and what is never trusted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::bench::ConfigFixture;
use expect_test::{Expect, expect};
use jaato_config::trust::{
    FILES_MAX, TrustError, TrustStore, TrustedWorkspace, Workspace, WorkspaceState,
};

const SHA: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn store(bench: &ConfigFixture) -> TrustStore {
    TrustStore::in_folder(bench.folders.data_folder().unwrap())
}

fn workspace(bench: &ConfigFixture) -> Workspace {
    Workspace::find_workspace(&bench.workspace_folder(), None).unwrap()
}

#[track_caller]
fn trusted_workspace(bench: &ConfigFixture) -> TrustedWorkspace {
    match store(bench).workspace_state(&workspace(bench)).unwrap() {
        WorkspaceState::Trusted(workspace) => workspace,
        other => panic!("not trusted: {other:?}"),
    }
}

fn format_state(bench: &ConfigFixture) -> String {
    match store(bench).workspace_state(&workspace(bench)) {
        Ok(WorkspaceState::Nothing) => "nothing".to_owned(),
        Ok(WorkspaceState::Trusted(_)) => "trusted".to_owned(),
        Ok(WorkspaceState::Untrusted { found }) => format!("untrusted: {}", found.join(" ")),
        Ok(WorkspaceState::Changed { files }) => {
            let files: Vec<_> = files.iter().map(ToString::to_string).collect();
            format!("changed: {}", files.join(", "))
        }
        Err(error) => format!("error: {error}"),
    }
}

#[track_caller]
fn check_error(bench: &ConfigFixture, error: &TrustError, expected: Expect) {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    expected.assert_eq(&bench.relative_text(&format!("{error}{hint}")));
}

#[test]
fn a_plugin_is_trusted_by_its_content_until_that_is_withdrawn() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    assert!(!store.is_plugin_trusted(SHA).unwrap());
    let now = NOW + Duration::from_secs(7);
    store.trust_plugin(&SHA.to_uppercase(), "tool-moon", Path::new("/p/libmoon.so"), now).unwrap();
    assert!(store.is_plugin_trusted(SHA).unwrap());
    assert!(store.is_plugin_trusted(&SHA.to_uppercase()).unwrap());
    assert!(!store.is_plugin_trusted(&SHA.replace('0', "1")).unwrap());
    expect![[r#"
        {
          "version": 1,
          "plugins": {
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": {
              "name": "tool-moon",
              "path": "/p/libmoon.so",
              "trusted_at_s": 7
            }
          },
          "workspaces": {}
        }
    "#]]
    .assert_eq(&fs::read_to_string(store.path()).unwrap());
    assert!(store.untrust_plugin(SHA).unwrap());
    assert!(!store.untrust_plugin(SHA).unwrap());
    assert!(!store.is_plugin_trusted(SHA).unwrap());
}

#[test]
fn invalid_plugin_digest_is_refused() {
    let bench = ConfigFixture::new();
    for bad in ["", "abc", &SHA[1..], &SHA.replace('0', "g"), &format!("{SHA}0")] {
        let error = store(&bench).trust_plugin(bad, "p", Path::new("/p"), NOW).unwrap_err();
        assert!(matches!(error, TrustError::BadDigest { .. }), "{bad}");
    }
    assert!(!store(&bench).path().exists());
}

#[test]
fn a_damaged_record_trusts_nothing_and_is_not_overwritten() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    store.trust_plugin(SHA, "p", Path::new("/p"), NOW).unwrap();
    for damage in
        ["", "{", "[]", r#"{"version":1}"#, r#"{"version":1,"plugins":{},"workspaces":{},"x":1}"#]
    {
        fs::write(store.path(), damage).unwrap();
        assert!(
            matches!(store.is_plugin_trusted(SHA), Err(TrustError::Corrupt { .. })),
            "{damage}"
        );
        assert!(store.trust_plugin(SHA, "p", Path::new("/p"), NOW).is_err(), "{damage}");
        assert!(store.untrust_plugin(SHA).is_err(), "{damage}");
        assert_eq!(fs::read_to_string(store.path()).unwrap(), damage);
    }
    fs::write(store.path(), "{").unwrap();
    check_error(
        &bench,
        &store.read_trust().unwrap_err(),
        expect![[r#"
            the record of trust `ROOT/user/data/trust.json` is damaged: EOF while parsing an object at line 1 column 1
            hint: nothing is trusted until this is fixed: run `mv ROOT/user/data/trust.json ROOT/user/data/trust.json.broken`, then trust what you need again"#]],
    );
}

#[test]
fn a_record_of_a_newer_host_is_left_alone() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    fs::create_dir_all(bench.folders.data_folder().unwrap()).unwrap();
    let newer = r#"{"version":2,"something":"else"}"#;
    fs::write(store.path(), newer).unwrap();
    check_error(
        &bench,
        &store.trust_plugin(SHA, "p", Path::new("/p"), NOW).unwrap_err(),
        expect![[r#"
            the record of trust `ROOT/user/data/trust.json` has version 2, this host knows 1
            hint: nothing is trusted until this is fixed: update jaato"#]],
    );
    assert_eq!(fs::read_to_string(store.path()).unwrap(), newer);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let bench = ConfigFixture::new();
    let store = store(&bench);
    let digest = |number: usize| format!("{number:064x}");
    std::thread::scope(|scope| {
        for number in 0..16 {
            let store = &store;
            scope.spawn(move || {
                store.trust_plugin(&digest(number), "p", Path::new("/p"), NOW).unwrap();
            });
        }
    });
    let trust = store.read_trust().unwrap();
    assert!((0..16).all(|number| trust.is_plugin_trusted(&digest(number))));
    let left: Vec<_> = fs::read_dir(bench.folders.data_folder().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "trust.json" && name != "trust.lock")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(unix)]
#[test]
fn trust_record_and_its_folder_are_private_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let bench = ConfigFixture::new();
    let store = store(&bench);
    let folder = bench.folders.data_folder().unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    store.trust_plugin(SHA, "p", Path::new("/p"), NOW).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder), mode(&store.path())), (0o700, 0o600));
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o660)).unwrap();
    check_error(
        &bench,
        &store.read_trust().unwrap_err(),
        expect![[r#"
            the record of trust cannot be used: `ROOT/user/data/trust.json` is not used: users other than its owner can write to it (mode 660)
            hint: nothing is trusted until this is fixed: check whether another user changed it; chmod go-w 'ROOT/user/data/trust.json'"#]],
    );
}

#[test]
fn workspace_root_is_the_nearest_folder_with_a_marker_or_the_directory() {
    let bench = ConfigFixture::new();
    let work = bench.workspace_folder();
    fs::create_dir_all(work.join("a/b")).unwrap();
    assert_eq!(Workspace::find_workspace(&work.join("a/b"), None).unwrap().root(), work);
    fs::create_dir_all(work.join("a/.jaato")).unwrap();
    let inner = Workspace::find_workspace(&work.join("a/b/../b"), None).unwrap();
    assert_eq!(inner.root(), work.join("a"));
    assert!(Workspace::find_workspace(&work.join("gone"), None).is_err());
}

#[test]
fn marker_in_home_or_world_writable_folder_does_not_apply_to_subfolders() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = ConfigFixture::new();
    let home = bench.workspace_folder();
    fs::create_dir_all(home.join("mine/sub")).unwrap();
    fs::create_dir_all(home.join(".jaato")).unwrap();
    let root_at = |folder: &Path, home: Option<&Path>| {
        Workspace::find_workspace(folder, home).unwrap().root().to_owned()
    };
    let (mine, sub) = (home.join("mine"), home.join("mine/sub"));
    assert_eq!(root_at(&mine, Some(&home)), mine);
    assert_eq!(root_at(&home, Some(&home)), home);
    // A mark above the home folder does not count for the home folder either.
    assert_eq!(root_at(&mine, Some(&mine)), mine);
    assert_eq!(root_at(&mine, Some(&home.join("mine/.."))), mine);
    assert_eq!(root_at(&mine, None), home);
    fs::create_dir_all(mine.join(".git")).unwrap();
    assert_eq!(root_at(&sub, Some(&home)), mine);
    for mode in [0o777, 0o1777] {
        fs::set_permissions(&mine, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(root_at(&sub, Some(&home)), sub);
        assert_eq!(root_at(&mine, Some(&home)), mine);
    }
}

#[test]
fn workspace_can_be_trusted_and_untrusted() {
    let bench = ConfigFixture::new();
    assert_eq!(format_state(&bench), "nothing");
    bench.write_workspace_file("src/main.rs", "not covered");
    assert_eq!(format_state(&bench), "nothing");
    bench.write_workspace_file(".jaato/plugins/libx.so", "x");
    bench.write_workspace_file(".env", "A=1");
    bench.write_workspace_file(".mcp.json", "{}");
    bench.write_workspace_file("AGENTS.md", "# hi");
    assert_eq!(format_state(&bench), "untrusted: .env .jaato/plugins/libx.so .mcp.json AGENTS.md");
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    assert_eq!(format_state(&bench), "trusted");
    assert!(store(&bench).untrust_workspace(&workspace(&bench)).unwrap());
    assert!(!store(&bench).untrust_workspace(&workspace(&bench)).unwrap());
    assert_eq!(format_state(&bench), "untrusted: .env .jaato/plugins/libx.so .mcp.json AGENTS.md");
}

#[test]
fn every_change_withdraws_trust_and_names_the_file() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".jaato/config.toml", "offline = true");
    bench.write_workspace_file(".env", "A=1");
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    bench.write_workspace_file(".jaato/config.toml", "offline = false");
    bench.write_workspace_file(".jaato/plugins/new.so", "x");
    fs::remove_file(bench.workspace_folder().join(".env")).unwrap();
    assert_eq!(
        format_state(&bench),
        "changed: `.env` was removed, `.jaato/config.toml` was changed, \
         `.jaato/plugins/new.so` was added"
    );
    bench.write_workspace_file(".env", "A=1");
    bench.write_workspace_file(".jaato/config.toml", "offline = true");
    fs::remove_file(bench.workspace_folder().join(".jaato/plugins/new.so")).unwrap();
    assert_eq!(format_state(&bench), "trusted");
}

#[test]
fn a_change_in_a_big_file_is_seen_too() {
    let bench = ConfigFixture::new();
    let name = ".jaato/plugins/big.so";
    bench.write_workspace_file(name, &"a".repeat(100_000));
    // Long after the file was written, so that its stamp counts.
    let later = SystemTime::now() + Duration::from_secs(3600);
    store(&bench).trust_workspace(&workspace(&bench), later).unwrap();
    let record = fs::read_to_string(store(&bench).path()).unwrap();
    assert_eq!(record.contains("changed_ns"), cfg!(unix), "{record}");
    assert_eq!(format_state(&bench), "trusted");
    // With the same size and time, like a file that an archive unpacks.
    let before = fs::metadata(bench.workspace_folder().join(name)).unwrap().modified().unwrap();
    bench.write_workspace_file("beside", &"b".repeat(100_000));
    let file =
        fs::OpenOptions::new().write(true).open(bench.workspace_folder().join("beside")).unwrap();
    file.set_modified(before).unwrap();
    fs::rename(bench.workspace_folder().join("beside"), bench.workspace_folder().join(name))
        .unwrap();
    assert_eq!(format_state(&bench), "changed: `.jaato/plugins/big.so` was changed");
}

#[test]
fn folders_of_other_clients_are_covered_by_trust() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".agents/skills/moon/SKILL.md", "a");
    bench.write_workspace_file(".agents/other", "not covered");
    bench.write_workspace_file(".claude/commands/a.md", "a");
    bench.write_workspace_file(".claude/notes.json", "not covered");
    assert_eq!(
        format_state(&bench),
        "untrusted: .agents/skills/moon/SKILL.md .claude/commands/a.md"
    );
    bench.write_workspace_file(".claude/agents/review/reviewer.md", "a");
    assert_eq!(
        format_state(&bench),
        "untrusted: .agents/skills/moon/SKILL.md .claude/agents/review/reviewer.md \
         .claude/commands/a.md"
    );
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    bench.write_workspace_file(".claude/notes.json", "{}");
    assert_eq!(format_state(&bench), "trusted");
    bench.write_workspace_file(".claude/skills/sun/SKILL.md", "a");
    bench.write_workspace_file(".agents/skills/moon/more.md", "a");
    bench.write_workspace_file(".claude/agents/new.md", "a");
    assert_eq!(
        format_state(&bench),
        "changed: `.agents/skills/moon/more.md` was added, `.claude/agents/new.md` was added, \
         `.claude/skills/sun/SKILL.md` was added"
    );
}

#[test]
fn hook_settings_and_scripts_are_covered_by_trust() {
    let bench = ConfigFixture::new();
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": ".claude/hooks/guard.sh"}, {"type": "http", "url": "x"}]}]}}"#;
    bench.write_workspace_file(".claude/settings.json", settings);
    bench.write_workspace_file(".claude/settings.local.json", "{ broken");
    bench.write_workspace_file(".claude/hooks/guard.sh", "exit 0");
    let names = ".claude/hooks/guard.sh .claude/settings.json .claude/settings.local.json";
    assert_eq!(format_state(&bench), format!("untrusted: {names}"));
    let seen = store(&bench).read_candidate(&workspace(&bench)).unwrap();
    assert_eq!(seen.hook_commands(), ["PreToolUse (Bash): .claude/hooks/guard.sh"]);
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    bench.write_workspace_file(".claude/hooks/guard.sh", "exit 2");
    assert_eq!(format_state(&bench), "changed: `.claude/hooks/guard.sh` was changed");
}

#[cfg(unix)]
#[test]
fn skill_folder_behind_a_symlink_is_not_part_of_the_workspace() {
    let bench = ConfigFixture::new();
    fs::create_dir_all(bench.path().join("outside/skills")).unwrap();
    fs::write(bench.path().join("outside/skills/a.md"), "a").unwrap();
    let outside = bench.path().canonicalize().unwrap().join("outside");
    std::os::unix::fs::symlink(&outside, bench.workspace_folder().join(".agents")).unwrap();
    assert_eq!(format_state(&bench), "nothing");
    fs::create_dir_all(bench.workspace_folder().join(".claude")).unwrap();
    std::os::unix::fs::symlink(
        outside.join("skills"),
        bench.workspace_folder().join(".claude/skills"),
    )
    .unwrap();
    assert_eq!(format_state(&bench), "untrusted: .claude/skills");
}

#[test]
fn change_of_an_uncovered_file_keeps_trust() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".env", "A=1");
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    bench.write_workspace_file("src/AGENTS.md", "elsewhere");
    bench.write_workspace_file("README.md", "x");
    fs::create_dir_all(bench.workspace_folder().join(".jaato/empty")).unwrap();
    assert_eq!(format_state(&bench), "trusted");
}

#[test]
fn agents_files_down_to_the_working_directory_are_covered() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file("AGENTS.md", "root");
    bench.write_workspace_file("a/b/AGENTS.md", "deep");
    let store = store(&bench);
    let deep = Workspace::find_workspace(&bench.workspace_folder().join("a/b"), None).unwrap();
    store.trust_workspace(&workspace(&bench), NOW).unwrap();
    let WorkspaceState::Changed { files } = store.workspace_state(&deep).unwrap() else {
        panic!("the file is not trusted yet")
    };
    assert_eq!(files[0].to_string(), "`a/b/AGENTS.md` was added");
    store.trust_workspace(&deep, NOW).unwrap();
    assert_eq!(format_state(&bench), "trusted");
    bench.write_workspace_file("a/b/AGENTS.md", "changed");
    assert_eq!(format_state(&bench), "changed: `a/b/AGENTS.md` was changed");
}

#[test]
fn worktree_belongs_to_the_workspace_around_it_with_the_same_agents_files() {
    let bench = ConfigFixture::new();
    for file in ["AGENTS.md", "a/AGENTS.md"] {
        bench.write_workspace_file(file, "trusted");
        bench.write_workspace_file(&format!(".worktrees/fix/{file}"), "a copy");
    }
    for name in ["fix", "of-the-user"] {
        bench.write_workspace_file(&format!(".worktrees/{name}/.git"), "gitdir: elsewhere");
    }
    bench.write_workspace_file(".worktrees/fix.base", "a commit");
    let root_of = |folder: &str| {
        Workspace::find_workspace(&bench.workspace_folder().join(folder), None).unwrap()
    };
    let other = bench.workspace_folder().join(".worktrees/of-the-user");
    assert_eq!(root_of(".worktrees/of-the-user").root(), other);
    assert_eq!(root_of(".worktrees/of-the-user").worktree(), None);
    let store = store(&bench);
    let copy = root_of(".worktrees/fix/a");
    assert_eq!(copy.root(), bench.workspace_folder());
    assert_eq!(copy.worktree(), Some((bench.workspace_folder().as_path(), "fix".as_ref())));
    let original = root_of("a");
    let trust = store.trust_workspace(&original, NOW).unwrap();
    assert_eq!(store.workspace_state(&copy).unwrap(), WorkspaceState::Trusted(trust.clone()));
    assert_eq!(copy.agents_files(&trust), ["AGENTS.md", "a/AGENTS.md"]);
}

#[test]
fn claude_md_counts_in_a_folder_without_agents_md() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file("CLAUDE.md", "root");
    bench.write_workspace_file("a/CLAUDE.md", "beside");
    bench.write_workspace_file("a/AGENTS.md", "chosen");
    bench.write_workspace_file("a/b/CLAUDE.md", "deep");
    bench.write_workspace_file("a/b/c/CLAUDE.md", "below");
    let store = store(&bench);
    let deep = Workspace::find_workspace(&bench.workspace_folder().join("a/b"), None).unwrap();
    let found = ["CLAUDE.md", "a/AGENTS.md", "a/b/CLAUDE.md"];
    let state = store.workspace_state(&deep).unwrap();
    assert_eq!(state, WorkspaceState::Untrusted { found: found.map(str::to_owned).to_vec() });
    let trust = store.trust_workspace(&deep, NOW).unwrap();
    assert_eq!(deep.agents_files(&trust), found);
    assert_eq!(trust.file_names().collect::<Vec<_>>(), found);
    assert_eq!(trust.read_file("a/CLAUDE.md").unwrap(), None);
    bench.write_workspace_file("a/CLAUDE.md", "neither read nor covered");
    assert_eq!(store.workspace_state(&deep).unwrap(), WorkspaceState::Trusted(trust.clone()));
    // A file that is added later is not trusted, and does not replace a trusted one.
    bench.write_workspace_file("AGENTS.md", "later");
    assert_eq!(deep.agents_files(&trust), found);
}

#[test]
fn added_or_removed_instructions_file_withdraws_trust() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".env", "A=1");
    let trust = || store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    trust();
    bench.write_workspace_file("CLAUDE.md", "claude");
    assert_eq!(format_state(&bench), "changed: `CLAUDE.md` was added");
    trust();
    bench.write_workspace_file("AGENTS.md", "agents");
    assert_eq!(format_state(&bench), "changed: `AGENTS.md` was added");
    assert_eq!(trust().file_names().collect::<Vec<_>>(), [".env", "AGENTS.md"]);
    bench.write_workspace_file("CLAUDE.md", "changed, but it does not count");
    assert_eq!(format_state(&bench), "trusted");
    fs::remove_file(bench.workspace_folder().join("AGENTS.md")).unwrap();
    assert_eq!(format_state(&bench), "changed: `AGENTS.md` was removed, `CLAUDE.md` was added");
    trust();
    bench.write_workspace_file("CLAUDE.md", "changed");
    assert_eq!(format_state(&bench), "changed: `CLAUDE.md` was changed");
    trust();
    fs::remove_file(bench.workspace_folder().join("CLAUDE.md")).unwrap();
    assert_eq!(format_state(&bench), "changed: `CLAUDE.md` was removed");
}

#[test]
fn every_file_in_the_jaato_folder_is_covered_by_trust() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".jaato/CLAUDE.md", "a");
    bench.write_workspace_file(".jaato/AGENTS.md", "b");
    let trust = || store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    trust();
    assert_eq!(trust().file_names().collect::<Vec<_>>(), [".jaato/AGENTS.md", ".jaato/CLAUDE.md"]);
}

#[test]
fn only_trusted_content_is_read() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".env", "A=1");
    bench.write_workspace_file("secret.txt", "not covered");
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    let workspace = trusted_workspace(&bench);
    assert_eq!(workspace.read_file(".env").unwrap().unwrap(), b"A=1");
    assert_eq!(workspace.read_file("secret.txt").unwrap(), None);
    assert_eq!(workspace.read_file("../user/config/config.toml").unwrap(), None);
    bench.write_workspace_file("AGENTS.md", "came later");
    assert_eq!(workspace.read_file("AGENTS.md").unwrap(), None);
    bench.write_workspace_file(".env", "A=2");
    check_error(
        &bench,
        &workspace.read_file(".env").unwrap_err(),
        expect![[r#"
            `ROOT/work/.env` has changed since it was trusted
            hint: look at it, then run `jaato trust`"#]],
    );
    fs::remove_file(bench.workspace_folder().join(".env")).unwrap();
    assert!(matches!(workspace.read_file(".env"), Err(TrustError::Changed { .. })));
}

#[cfg(unix)]
#[test]
fn links_are_never_followed_out_of_the_workspace() {
    use std::os::unix::fs::symlink;
    let bench = ConfigFixture::new();
    let work = bench.workspace_folder();
    let outside = bench.path().canonicalize().unwrap().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("evil.env"), "JAATO_OFFLINE=1").unwrap();
    fs::create_dir_all(work.join(".jaato")).unwrap();
    symlink(outside.join("evil.env"), work.join(".env")).unwrap();
    symlink(&outside, work.join(".jaato/plugins")).unwrap();
    symlink("loop", work.join(".jaato/loop")).unwrap();
    bench.write_workspace_file("docs/agents.md", "inside");
    symlink("docs/agents.md", work.join("AGENTS.md")).unwrap();
    assert_eq!(format_state(&bench), "untrusted: .env .jaato/loop .jaato/plugins AGENTS.md");
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    let trust = trusted_workspace(&bench);
    assert_eq!(trust.read_file(".env").unwrap(), None);
    assert_eq!(trust.read_file(".jaato/plugins/evil.env").unwrap(), None);
    assert_eq!(trust.content_sha256(".jaato/plugins"), None);
    assert_eq!(trust.content_sha256("AGENTS.md"), None, "a link");
    assert_eq!(trust.read_file("AGENTS.md").unwrap().unwrap(), b"inside");
    // Files outside may change, but the link's target and the files inside may not.
    fs::write(outside.join("evil.env"), "other").unwrap();
    assert_eq!(format_state(&bench), "trusted");
    bench.write_workspace_file("docs/agents.md", "changed");
    fs::remove_file(work.join(".env")).unwrap();
    symlink("/dev/zero", work.join(".env")).unwrap();
    assert_eq!(format_state(&bench), "changed: `.env` was changed, `AGENTS.md` was changed");
}

#[test]
fn only_covered_plain_files_have_a_known_content_digest() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".jaato/plugins/a.so", "a");
    bench.write_workspace_file(".jaato/plugins-old/b.so", "b");
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    let trust = trusted_workspace(&bench);
    let of_a = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    assert_eq!(trust.content_sha256(".jaato/plugins/a.so"), Some(of_a));
    assert_eq!(trust.content_sha256(".jaato/plugins/b.so"), None);
    bench.write_workspace_file(".jaato/plugins/b.so", "b");
    assert_eq!(trust.content_sha256(".jaato/plugins/b.so"), None);
}

#[test]
fn a_workspace_with_too_much_in_it_is_refused_at_one_past_the_limit() {
    let bench = ConfigFixture::new();
    for number in 0..FILES_MAX {
        bench.write_workspace_file(&format!(".jaato/{number}"), "");
    }
    assert!(format_state(&bench).starts_with("untrusted: "));
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    bench.write_workspace_file(".jaato/one-more", "");
    // It keeps no one from working. The workspace is just not trusted.
    assert_eq!(format_state(&bench), "changed: `.jaato` was changed");
    let error = store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap_err();
    assert_eq!(
        bench.relative_text(&error.to_string()),
        "cannot check the workspace `ROOT/work`: too many files \
         (at most 4096 files, 16 folders deep, 268435456 bytes)"
    );
    store(&bench).untrust_workspace(&workspace(&bench)).unwrap();
    assert_eq!(format_state(&bench).split(' ').count(), 1 + FILES_MAX, "all files up to the limit");
}

#[test]
fn trusting_a_workspace_with_too_deep_folders_is_refused() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(&format!(".jaato/{}x", "d/".repeat(15)), "");
    assert!(format_state(&bench).starts_with("untrusted: "));
    bench.write_workspace_file(&format!(".jaato/{}x", "d/".repeat(16)), "");
    assert!(format_state(&bench).starts_with("untrusted: "));
    let error = store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap_err();
    assert!(error.to_string().contains("folders too deep"), "{error}");
}

#[test]
fn a_file_too_big_to_check_is_refused() {
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".jaato/big", "");
    let file = fs::OpenOptions::new()
        .write(true)
        .open(bench.workspace_folder().join(".jaato/big"))
        .unwrap();
    file.set_len(jaato_config::trust::WORKSPACE_BYTES_MAX + 1).unwrap();
    let error = store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap_err();
    assert!(error.to_string().contains("too many bytes"), "{error}");
}

#[test]
fn file_names_that_are_not_utf8_are_shown_lossily_and_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = ConfigFixture::new();
    bench.write_workspace_file(".jaato/config.toml", "");
    let odd = std::ffi::OsStr::from_bytes(b"m\xffn");
    fs::write(bench.workspace_folder().join(".jaato").join(odd), "").unwrap();
    assert_eq!(format_state(&bench), "untrusted: .jaato/config.toml .jaato/m\u{fffd}n");
    let error = store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap_err();
    assert!(error.to_string().contains("its name is not utf-8"), "{error}");
}

#[test]
fn rewritten_file_stays_trusted_and_other_changed_files_do_not() {
    let bench = ConfigFixture::new();
    let (store, workspace) = (store(&bench), workspace(&bench));
    let error = store.rewrite_file(&workspace, ".mcp.json", b"{}", NOW).unwrap_err();
    assert!(matches!(error, TrustError::Changed { .. }), "{error}");
    assert!(!bench.workspace_folder().join(".mcp.json").exists());

    fs::write(bench.workspace_folder().join(".env"), "A=1").unwrap();
    store.trust_workspace(&workspace, NOW).unwrap();
    store.rewrite_file(&workspace, ".mcp.json", b"{}", NOW).unwrap();
    assert_eq!(trusted_workspace(&bench).read_file(".mcp.json").unwrap().unwrap(), b"{}");
    // It may contain keys, so its mode stays as restrictive as it is.
    let mode = |mode: u32| fs::Permissions::from_mode(mode);
    fs::set_permissions(bench.workspace_folder().join(".mcp.json"), mode(0o600)).unwrap();
    store.rewrite_file(&workspace, ".mcp.json", b"{ }", NOW).unwrap();
    assert_eq!(format_state(&bench), "trusted");
    let facts = fs::metadata(bench.workspace_folder().join(".mcp.json")).unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);

    // A change by another program does not become trusted with it.
    fs::write(bench.workspace_folder().join(".env"), "A=2").unwrap();
    assert!(store.rewrite_file(&workspace, ".mcp.json", b"{}", NOW).is_err());
    assert_eq!(fs::read(bench.workspace_folder().join(".mcp.json")).unwrap(), b"{ }");
    assert!(format_state(&bench).starts_with("changed: "), "{}", format_state(&bench));
}

#[test]
fn large_file_is_read_partially_but_checked_completely() {
    let bench = ConfigFixture::new();
    let path = bench.workspace_folder().join("AGENTS.md");
    let mut text = vec![b'a'; 200_000];
    fs::write(&path, &text).unwrap();
    store(&bench).trust_workspace(&workspace(&bench), NOW).unwrap();
    let trusted = trusted_workspace(&bench);
    let (bytes, size) = trusted.read_file_start("AGENTS.md", 70_000).unwrap().unwrap();
    assert_eq!((bytes.len(), size), (70_000, 200_000));
    let (bytes, size) = trusted.read_file_start("AGENTS.md", 200_001).unwrap().unwrap();
    assert_eq!((bytes.len(), size), (200_000, 200_000));
    assert_eq!(trusted.read_file("AGENTS.md").unwrap().unwrap(), text);
    // A change after the beginning is noticed.
    text[199_999] = b'b';
    fs::write(&path, &text).unwrap();
    assert!(trusted.read_file_start("AGENTS.md", 1).is_err());
}
