//! Quotas, blobs and expiry of stored results.

use std::fs;

use super::files::MOST_FILES;
use super::*;

#[test]
fn sessions_share_a_result_quota_and_never_exceed_it() {
    let home = tempfile::tempdir().unwrap();
    let session = || {
        let mut results = Results::new(Lifetime::Session, home.path(), TextLimits::default());
        results.quota_of_all = 10;
        results
    };
    let (one, other) = (session(), session());
    let first = one.save("a", "txt", &[b"four"], Parts::default()).unwrap();
    let second = one.save("b", "txt", &[b"seven"], Parts::default()).unwrap();
    assert!(first.exists() && second.exists());
    let third = one.save("c", "txt", &[b"four"], Parts::default()).unwrap();
    assert!(!first.exists() && third.exists(), "the oldest result is removed first");
    let refused = other.save("d", "txt", &[b"four"], Parts::default()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        1,
        "a refused result leaves no directory"
    );
    drop(one);
    other.save("d", "txt", &[b"four"], Parts::default()).unwrap();
}

#[test]
fn result_over_the_session_quota_replaces_the_oldest_file() {
    let home = tempfile::tempdir().unwrap();
    let mut results = Results::new(Lifetime::Session, home.path(), TextLimits::default());
    results.quota = 10;
    let saved = [("a", "txt"), ("b", "png"), ("c", "txt")].map(|(name, extension)| {
        results.save(name, extension, &[b"four"], Parts::default()).unwrap()
    });
    assert_eq!(saved.map(|path| path.exists()), [false, true, true]);
    let large = results.save("d", "bin", &[b"more than ten bytes"], Parts::default()).unwrap();
    assert!(large.exists(), "the newest stays, whatever its size");
    assert_eq!(fs::read_dir(large.parent().unwrap()).unwrap().count(), 1);
    drop(results);
    assert!(!large.exists());
}

#[test]
fn stored_files_are_bounded_per_result_and_session() {
    let home = tempfile::tempdir().unwrap();
    let results = Results::new(Lifetime::Session, home.path(), TextLimits::default());
    let files = || fs::read_dir(&results.directory).unwrap().count();
    let blob = r#"{"uri":"a:b","mimeType":"x/y","blob":"aGk="}"#;
    let answer = format!(r#"{{"contents":[{}]}}"#, vec![blob; MOST_BLOBS + 50].join(","));
    let form = ResultForm::default();
    let output = results.save_blobs(CallOutput::of_resource(answer.clone()), form);
    assert_eq!(files(), MOST_BLOBS);
    let text = output.text().into_owned();
    assert_eq!(text.matches("omitted: only 100 files").count(), 50, "{text}");
    for _ in 0..=MOST_FILES / MOST_BLOBS {
        results.save_blobs(CallOutput::of_resource(answer.clone()), form);
    }
    assert_eq!(files(), MOST_FILES);
}

#[tokio::test(start_paused = true)]
async fn shared_result_is_found_by_id_until_it_expires() {
    let home = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3_600);
    let limits = TextLimits { max_bytes: 1_000, ..TextLimits::default() };
    let results = Arc::new(Results::new(Lifetime::Limited(hour), home.path(), limits));
    let text = "words ".repeat(1_000);
    let answer = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let (_, id) = results.guard(CallOutput::of_call(answer), ResultForm::default()).await;
    let id = id.expect("the result is too large to be shown");
    assert!(id.len() >= 43, "{id}");
    tokio::time::advance(hour - Duration::from_secs(1)).await;
    assert!(results.read(&id, ResultView::default(), ResultForm::default()).await.is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    let read = results.read(&id, ResultView::default(), ResultForm::default()).await;
    assert!(matches!(read, Err(ResultError::Unknown { .. })), "{read:?}");
    let directory = results.directory.clone();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "the file is gone, too");
    drop(results);
    assert!(!directory.exists());
}
