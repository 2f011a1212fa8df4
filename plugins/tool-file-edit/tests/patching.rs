//! Tests of `apply_patch`.

use jaato_plugin_sdk::serde_json::json;

use crate::support::EditFixture;

#[test]
fn a_patch_lists_only_files_that_it_changes() {
    let desk = EditFixture::new().with_file("a", "1\n").with_file("b", "2\n").with_file("c", "3\n");
    let texts = || ["a", "b", "c", "d"].map(|name| desk.file_text(name));
    let patch = |inside: &str| {
        let input = format!("*** Begin Patch\n{inside}\n*** End Patch");
        let mut result = desk.call_tool("apply_patch", json!({ "input": input }));
        result.as_object_mut().unwrap().remove("diff");
        result
    };
    let same = "*** Update File: a\n@@\n-1\n+1";
    assert_eq!(patch(same), json!({ "success": true, "unchanged": true }));
    let result = patch(&format!("{same}\n*** Update File: b\n@@\n-2\n+two"));
    assert_eq!(result, json!({ "success": true, "modified": ["b"] }));
    let result = patch("*** Update File: b\n*** Move to: d");
    assert_eq!(result, json!({ "success": true, "moved": [{ "from": "b", "to": "d" }] }));
    assert_eq!(texts(), ["1\n", "-", "3\n", "two\n"]);
    // Adding a file that exists modifies it.
    let result = patch("*** Add File: a\n+one\n*** Add File: e\n+new");
    assert_eq!(result, json!({ "success": true, "added": ["e"], "modified": ["a"] }));
    let result = patch("*** Delete File: a\n*** Add File: a\n+uno");
    assert_eq!(result, json!({ "success": true, "modified": ["a"] }));
    let result = patch("*** Add File: c\n+3");
    assert_eq!(result, json!({ "success": true, "unchanged": true }));
    assert_eq!(texts(), ["uno\n", "-", "3\n", "two\n"]);
}

#[test]
fn a_patch_changes_the_place_at_its_line_number_or_notes_the_others() {
    let class = |name: &str| format!("class {name}:\n    def f(self):\n        return 1\n\n");
    let desk = EditFixture::new().with_file("a.py", class("A") + &class("B"));
    let patch = |header: &str| {
        let chunk = format!("{header}\n-        return 1\n+        return 2");
        let input = format!("*** Begin Patch\n*** Update File: a.py\n{chunk}\n*** End Patch");
        desk.call_tool("apply_patch", json!({ "input": input }))
    };
    let result = patch("@@ -7,1 +7,1 @@");
    assert_eq!(desk.file_text("a.py"), class("A") + &class("B").replace('1', "2"));
    assert_eq!(result.get("notes"), None);
    desk.write_file("a.py", class("A") + &class("B"));
    desk.read_file_text("a.py");
    let result = patch("@@");
    assert_eq!(desk.file_text("a.py"), class("A").replace('1', "2") + &class("B"));
    let note = "a.py: chunk 1 was applied at line 3 of the old file, but also fits at line 7";
    assert_eq!(result["notes"], json!([note]));
}
