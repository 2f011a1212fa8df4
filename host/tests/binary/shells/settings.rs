//! Tests that the user's settings for the shells take effect: silence for busy programs, typed
//! secrets, output limits, folders.

use serde_json::{Value, json};

use super::{ShellCalls, house_with_shell_settings, output_text};

/// A prompt that hides its input, by the shell's own means.
const HIDDEN: &str =
    "sh -c 'stty -echo; printf \"Password: \"; read word; stty echo; echo \"[$word]\"'";

#[test]
fn model_may_type_at_a_hidden_prompt_only_if_the_setting_allows_it() {
    for may in [false, true] {
        let set = format!("[plugins.tool-interactive-shell]\ntype_secrets = {may}\n");
        let Some(house) = house_with_shell_settings(&set) else { return };
        let mut calls = ShellCalls::in_house(&house);
        let (session, told) = calls.spawn(HIDDEN);
        assert_eq!(told["expects"], "hidden_line", "{told}");
        let asked = json!({ "session_id": session, "input": "thrown-away\n" });
        if may {
            let told = calls.call("shell_input", &asked);
            assert!(output_text(&told).contains("[thrown-away]"), "{told}");
        } else {
            let refused = calls.call_refused("shell_input", &asked);
            assert_eq!(refused["kind"], "permission_denied");
        }
        calls.end(&house);
    }
}

#[test]
fn returned_output_follows_the_sessions_output_limit() {
    for (bound, shown) in [(2048, 1500..2049), (65_536, 60_000..65_537)] {
        let Some(house) =
            house_with_shell_settings(&format!("[session]\noutput_bytes_max = {bound}\n"))
        else {
            return;
        };
        let mut calls = ShellCalls::in_house(&house);
        let (_, told) = calls.spawn("seq 1 40000");
        assert!(output_text(&told).starts_with("1\n2\n"), "{told}");
        assert!(output_text(&told).ends_with("\n40000\n"), "{told}");
        let bytes = told.to_string().len();
        assert!(shown.contains(&bytes), "{bytes} of {bound}");
        calls.end(&house);
    }
}

#[test]
fn tilde_in_a_configured_folder_is_the_users_home() {
    let set = "[plugins.tool-interactive-shell]\nworkspace_root = \"~/moon\"\n";
    let Some(house) = house_with_shell_settings(set) else { return };
    let folder = house.path().join("home/moon");
    std::fs::create_dir_all(&folder).unwrap();
    let mut calls = ShellCalls::in_house(&house);
    let (_, told): (_, Value) = calls.spawn("pwd");
    assert_eq!(output_text(&told).trim(), folder.canonicalize().unwrap().to_str().unwrap());
    calls.end(&house);
}
