//! Rendering of each content type, and truncation of large results.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use switchboard_it::harness::{World, stored_id};

/// The paths of the stored results.
pub(crate) fn stored(world: &World) -> Vec<PathBuf> {
    let results = world.home().path().join("switchboard/cache/results");
    let sessions = fs::read_dir(results).into_iter().flatten().flatten();
    let files = sessions.flat_map(|session| fs::read_dir(session.path()).into_iter().flatten());
    files.flatten().map(|file| file.path()).collect()
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(start_paused = true)]
async fn every_content_type_is_rendered_as_text() {
    let world = World::of("demo", "everything").start();
    let mut seen = String::new();
    for tool in [
        "echo",
        "image",
        "audio",
        "resource",
        "resource_link",
        "weather",
        "weather_structured_only",
        "unknown_content",
        "fail",
        "read_readme",
    ] {
        let answer = world.call(&format!("demo_{tool}"), json!({ "text": "hi" })).await.unwrap();
        seen.push_str(&format!("--- {tool}\n{answer}\n"));
    }
    insta::assert_snapshot!(seen);
}

#[tokio::test(start_paused = true)]
async fn blob_resource_is_stored_in_a_private_file() {
    let world = World::of("demo", "everything").start();
    let answer = world.call("demo_read_logo", json!({})).await.unwrap();
    let files = stored(&world);
    assert_eq!(files.len(), 1);
    assert!(answer.contains(&*files[0].to_string_lossy()), "{answer}");
    assert_eq!(mode(&files[0]), 0o600);
    assert!(fs::read(&files[0]).unwrap().starts_with(b"\x89PNG"));
}

#[tokio::test(start_paused = true)]
async fn large_result_is_truncated_and_readable_by_id() {
    let world = World::of("demo", "everything").start();
    let shown = world.call("demo_big", json!({ "bytes": 200_000 })).await.unwrap();
    assert!(shown.len() <= 51 * 1024, "{} bytes", shown.len());
    assert!(shown.starts_with("[result: "), "{shown:.100}");
    assert!(
        shown.contains("]\nline 1 of a long answer\nline 2 "),
        "the beginning of the result is kept"
    );
    let id = stored_id(&shown).unwrap().to_owned();
    let files = stored(&world);
    assert_eq!(files.iter().map(|file| mode(file)).collect::<Vec<_>>(), [0o600]);
    assert_eq!(fs::metadata(&files[0]).unwrap().len(), 200_000);
    assert_eq!(mode(files[0].parent().unwrap()), 0o700);

    let page = world.ask(&json!({ "result": id, "offset": 3000, "limit": 2 }).to_string()).await;
    assert_eq!(
        page,
        "line 3001 of a long answer
line 3002 of a long answer
\
         [lines 3,001-3,002 of 7,449 · next offset: 3002]"
    );
    let found = world.ask(&json!({ "result": id, "grep": "^line 50[01]\\d of" }).to_string()).await;
    assert!(found.contains("line 5000 of") && found.contains("line 5019 of"), "{found}");
    assert!(!found.contains("line 5020 of"), "{found}");
    assert_eq!(world.fixture("demo").ledger().calls.len(), 1, "the tool was not called again");
}

#[tokio::test(start_paused = true)]
async fn stored_result_is_readable_only_in_its_session() {
    let world = World::of("demo", "everything").start();
    let shown = world.call("demo_big", json!({ "bytes": 200_000 })).await.unwrap();
    let id = stored_id(&shown).unwrap().to_owned();
    let files = stored(&world);
    let World { gateway, session, .. } = world;
    let other = gateway.session(switchboard::Headless);
    let view = switchboard::request::ResultView::default();
    let request = switchboard::request::Request::Result { id, view };
    let failure = other.handle(request).await.unwrap_err();
    assert_eq!(failure.code, switchboard::failure::Code::UnknownResult);
    drop(session);
    assert!(!files[0].exists(), "{files:?}");
}

#[tokio::test(start_paused = true)]
async fn output_guard_setting_changes_or_disables_truncation() {
    let world = World::with(
        r#"{ "settings": { "outputGuard": { "maxLines": 10 } }, "mcpServers": {
            "demo": { "command": "fixture-server", "args": ["everything"] } } }"#,
    )
    .start();
    let shown = world.call("demo_big", json!({ "bytes": 2_000 })).await.unwrap();
    assert!(shown.lines().count() <= 14 && shown.contains("result: "), "{shown}");
    let whole = World::with(
        r#"{ "settings": { "outputGuard": false }, "mcpServers": {
            "demo": { "command": "fixture-server", "args": ["everything"] } } }"#,
    )
    .start();
    let shown = whole.call("demo_big", json!({ "bytes": 200_000 })).await.unwrap();
    assert!(shown.len() > 199_000 && !shown.contains("result: "));
}

#[tokio::test(start_paused = true)]
async fn oversized_response_error_states_limit_and_connection_stays_open() {
    let world = World::with(
        r#"{ "settings": { "maxFrameBytes": 100000 }, "mcpServers": {
            "demo": { "command": "fixture-server", "args": ["big"] } } }"#,
    )
    .start();
    for tool in ["huge_line", "huge_line_id_last", "huge_line_smuggled"] {
        let args = json!({ "bytes": 1_000_000 });
        let failure = world.call(&format!("demo_{tool}"), args).await.unwrap_err();
        assert_eq!(failure.code, switchboard::failure::Code::AnswerTooLarge, "{tool}");
        assert!(failure.to_string().contains("100000 bytes"), "{failure}");
        assert_eq!(world.call("demo_echo", json!({ "text": "hi" })).await.unwrap(), "hi", "{tool}");
    }
    assert_eq!(world.fixture("demo").ledger().connections, 1);
}
