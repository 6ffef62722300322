//! Streams in chunks of any size, against the rules of the standard.

use proptest::prelude::*;

use super::*;

const LIMIT: usize = 64;

/// The events of a stream that arrives in chunks of `size` bytes, one per line.
fn read(stream: &[u8], size: usize) -> Vec<String> {
    let mut parser = Parser::new(LIMIT);
    let mut seen = Vec::new();
    for piece in stream.chunks(size.max(1)) {
        let mut chunk = Bytes::copy_from_slice(piece);
        while let Some(event) = parser.next(&mut chunk) {
            seen.push(shown(&event));
        }
        assert!(chunk.is_empty());
        assert!(parser.line.len() <= LIMIT + KEPT_OF_OVERLONG + size, "a line is bounded");
    }
    seen.extend(parser.last_event_id().map(|id| format!("from {id}")));
    seen.extend(parser.retry().map(|retry| format!("in {} ms", retry.as_millis())));
    seen
}

fn shown(event: &Event) -> String {
    match event {
        Event::Whole { name, data } => {
            format!("{name}={}", String::from_utf8_lossy(data).replace('\n', "|"))
        }
        Event::TooLong { head } => format!("too long: {}", head.len()),
    }
}

fn check(stream: &str, expected: &[&str]) {
    for size in [1, 2, 3, 7, 4096] {
        assert_eq!(read(stream.as_bytes(), size), expected, "in pieces of {size} bytes");
    }
}

#[test]
fn lf_cr_or_crlf_ends_an_event_line() {
    check("data: a\n\ndata: b\r\rdata: c\r\n\r\n", &["=a", "=b", "=c"]);
    check("data: a\r\ndata: b\r\n\r\n", &["=a|b"]);
    check("data: a\r\n\ndata: b\n\n", &["=a", "=b"]);
}

#[test]
fn event_with_name_id_retry_and_data_is_parsed() {
    check(
        ": hello\nevent: endpoint\nid: 7\nretry: 500\nunknown: x\ndata:a\ndata:  b\ndata\n\n",
        &["endpoint=a| b|", "from 7", "in 500 ms"],
    );
}

#[test]
fn leading_byte_order_mark_of_sse_stream_is_ignored() {
    check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["=a"]);
}

#[test]
fn unterminated_sse_event_is_discarded() {
    check("id: 1\ndata: a\n\nid: 2\ndata: b\n", &["=a", "from 1"]);
}

#[test]
fn event_without_data_still_sets_the_last_id() {
    check("id: 1\n\nevent: x\n\ndata: a\n\n", &["=a", "from 1"]);
    check("id: 1\ndata: \n\n", &["=", "from 1"]);
}

#[test]
fn malformed_sse_fields_are_ignored() {
    check("id: 1\ndata: a\n\nid: 2\0\nretry: 1e3\nretry: \ndata: b\n\n", &["=a", "=b", "from 1"]);
    check("id: 1\n\nid\n\n", &[]);
}

#[test]
fn oversized_event_is_drained_and_next_one_read() {
    for length in [LIMIT + 1, LIMIT + KEPT_OF_OVERLONG, 20_000] {
        let long = "x".repeat(length);
        let kept = length.min(KEPT_OF_OVERLONG);
        let stream = format!("data: {long}\ndata: more\n\ndata: b\n\n");
        check(&stream, &[&format!("too long: {kept}"), "=b"]);
    }
    let lines = format!("data: {}\n", "x".repeat(30)).repeat(5);
    check(&format!("{lines}\ndata: b\n\n"), &["too long: 61", "=b"]);
}

#[test]
fn oversized_sse_comment_is_ignored() {
    let comment = format!(":{}\n", "x".repeat(20_000));
    check(&format!("data: a\n{comment}data: b\n\n"), &["=a|b"]);
}

#[test]
fn overlong_event_id_clears_the_last_id() {
    check(&format!("id: 1\n\nid: {}\n\n", "x".repeat(LONGEST_NAME + 1)), &[]);
}

/// A reference implementation of the HTML standard's rules, over the whole text.
fn oracle(stream: &str) -> Vec<String> {
    let text = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    // Text after the last line ending is ignored.
    let Some((lines, _)) = text.rsplit_once('\n') else { return Vec::new() };
    let (mut name, mut id, mut from) = (String::new(), String::new(), String::new());
    let (mut data, mut retry, mut seen) = (None::<String>, None::<u64>, Vec::new());
    for line in lines.split('\n') {
        if line.is_empty() {
            from.clone_from(&id);
            let name = std::mem::take(&mut name);
            let whole = data.take();
            seen.extend(whole.map(|data| format!("{name}={}", data.replace('\n', "|"))));
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut data {
                Some(data) => data.extend(["\n", value]),
                None => data = Some(value.to_owned()),
            },
            "event" => name = value.to_owned(),
            "id" if !value.contains('\0') => id = value.to_owned(),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                retry = value.parse().ok().or(retry);
            }
            _ => {}
        }
    }
    seen.extend(Some(from).filter(|id| !id.is_empty()).map(|id| format!("from {id}")));
    seen.extend(retry.map(|retry| format!("in {retry} ms")));
    seen
}

proptest! {
    #[test]
    fn events_in_any_chunks_parse_as_html_standard_requires(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "data", "event", "id", "retry", ":", ": ", " ", "a", "1", "é", "\0", "\u{feff}",
                "\n", "\n", "\r", "\r\n", "\n\n",
            ]),
            0..40,
        ),
        size in 1_usize..9,
    ) {
        let stream = parts.concat();
        prop_assume!(stream.len() <= LIMIT);
        prop_assert_eq!(read(stream.as_bytes(), size), oracle(&stream));
    }

    #[test]
    fn chunk_boundaries_do_not_change_the_events(
        stream in prop::collection::vec(any::<u8>(), 0..300),
        sizes in (1_usize..50, 1_usize..50),
    ) {
        prop_assert_eq!(read(&stream, sizes.0), read(&stream, sizes.1));
    }
}
