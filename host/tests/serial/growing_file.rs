//! Tests a file that grows during a search.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::json;

use crate::house;
use crate::support::{fixtures, library_name};

#[test]
fn search_of_a_growing_file_ends() {
    let house = house!();
    let plugins = fixtures::test_house().unwrap().join("plugins");
    for plugin in ["tool_filesystem_query", "environment_local"] {
        house.ship(&plugins.join(library_name(plugin)));
    }
    let path = house.write("workspace/log", "moon\n");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = File::options().append(true).open(&path).unwrap();
            let lines = "moon\n".repeat(1000);
            // As fast as possible, up to a limit that a search does not reach.
            for _ in 0..20_000 {
                if is_over.load(Relaxed) {
                    break;
                }
                log.write_all(lines.as_bytes()).unwrap();
            }
        });
        let arguments = json!({ "pattern": "moon", "path": "log", "max_results": 1 }).to_string();
        let told = house.run(&["call", "grep_content", &arguments]).code(0).json();
        is_over.store(true, Relaxed);
        assert!(told["total_matches"].as_u64().unwrap() >= 1, "{told}");
    });
}
