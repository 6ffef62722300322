//! Results of servers, and how hosts receive them.

mod compact;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::details::{self, CallTarget};
use super::guard::{Capped, Guarded, TextLimits, guard, line_count};
use super::{BlobError, CallOutput, MediaForm, Part, ResultForm, Settled};

/// The `content` array as text, one line per block.
fn shown(output: &CallOutput<'_>) -> String {
    let mut content = String::new();
    output.write_content(&mut content);
    let blocks: Vec<&serde_json::value::RawValue> = serde_json::from_str(&content).unwrap();
    blocks.iter().map(|block| block.get()).collect::<Vec<_>>().join("\n")
}

fn call(raw: &str) -> String {
    shown(&CallOutput::of_call(raw))
}

mod blocks {
    use super::*;

    #[test]
    fn text_and_image_blocks_are_returned_byte_for_byte() {
        let text =
            r#"{ "annotations":{"priority":0.50},"type":"text","text":"a\/bé\ud800", "_meta":{}}"#;
        let image = r#"{"data":"aGk=","mimeType":"image/webp","x":1,"type":"image"}"#;
        let raw = format!(r#"{{"content":[{text} , {image}],"isError":false}}"#);
        assert_eq!(call(&raw), format!("{text}\n{image}"));
    }

    #[test]
    fn image_without_a_type_defaults_to_png() {
        assert_snapshot!(
            call(r#"{"content":[{"type":"image","data":"aGk="}]}"#),
            @r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#
        );
    }

    #[test]
    fn invalid_base64_image_is_omitted() {
        for data in ["", "a", "aGk", "aGk*", "a===", "aG\\nk="] {
            let raw = format!(
                r#"{{"content":[{{"type":"image","data":"{data}","mimeType":"image/gif"}}]}}"#
            );
            assert_eq!(
                call(&raw),
                r#"{"type":"text","text":"[Image content: image/gif]\nOmitted: not valid base64"}"#
            );
        }
        let escaped = r#"{"content":[{"type":"image","data":"aG\/=","mimeType":"image/gif"}]}"#;
        assert!(call(escaped).contains(r#""type":"image""#));
    }

    #[test]
    fn surplus_images_of_a_result_are_omitted_and_counted() {
        let image = r#"{"type":"image","data":"aGk="}"#;
        let raw = format!(r#"{{"content":[{}]}}"#, vec![image; 35].join(","));
        let output = CallOutput::of_call(raw);
        let images = output.parts().filter(|part| matches!(part, Part::Image(_))).count();
        assert_eq!((images, output.text().as_ref()), (32, "[3 more images left out]"));
    }

    #[test]
    fn resources_links_and_unknown_blocks_become_text() {
        assert_snapshot!(call(r#"{"content":[
            {"type":"resource","resource":{"uri":"file:///a\nb","text":"one\ntwo"}},
            {"type":"resource_link","uri":"file:///c","name":"C \u001b[31mred","mimeType":"x/y"},
            {"type":"resource_link","uri":"file:///d"},
            {"type":"hologram","depth":3},
            {"type":"text"},
            {"type":"text","text":4},
            {"type":"resource","resource":{"uri":"file:///e"}},
            "loose"
        ]}"#), @r#"
        {"type":"text","text":"[Resource: file:///a b]\none\ntwo"}
        {"type":"text","text":"[Resource Link: C red]\nURI: file:///c"}
        {"type":"text","text":"[Resource Link: file:///d]\nURI: file:///d"}
        {"type":"text","text":"{\"type\":\"hologram\",\"depth\":3}"}
        {"type":"text","text":"{\"type\":\"text\"}"}
        {"type":"text","text":"{\"type\":\"text\",\"text\":4}"}
        {"type":"text","text":"{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///e\"}}"}
        {"type":"text","text":"\"loose\""}
        "#);
    }

    #[test]
    fn malformed_tool_result_is_shown_instead_of_refused() {
        let check = |raw: &str, text: &str| assert_eq!(CallOutput::of_call(raw).text(), text);
        check("{}", "(empty result)");
        check(r#"{"content":[]}"#, "(empty result)");
        check(r#"{"content":null}"#, "(empty result)");
        check(r#"{"content":[{"type":"text","text":""}]}"#, "(empty result)");
        check(r#"{"content":{"type":"text","text":"one"}}"#, "one");
        check(r#"{"content":"bare"}"#, r#""bare""#);
        check("[1,2]", "[1,2]");
        check("null", "null");
        check(r#"{"content":[],"content":[]}"#, r#"{"content":[],"content":[]}"#);
        check(
            r#"{"content":[{"type":"text","text":"a\ud83d\ude00\ud83d!\u00e9\"\\\b\f\n\r\t\/"}]}"#,
            "a😀\u{fffd}!é\"\\\u{8}\u{c}\n\r\t/",
        );
    }

    #[test]
    fn only_is_error_true_marks_an_error_result() {
        let check = |raw: &str, expected: bool| {
            assert_eq!(CallOutput::of_call(raw).is_error(), expected, "{raw}");
        };
        check(r#"{"content":[],"isError":true}"#, true);
        check(r#"{"content":7,"isError":true}"#, true);
        check(r#"{"content":[],"isError":false}"#, false);
        check(r#"{"content":[],"isError":"true"}"#, false);
        check("{}", false);
    }

    #[test]
    fn pretty_printed_result_is_written_on_one_line() {
        let output =
            CallOutput::of_call("{\"content\": [\r\n {\"type\":\"text\",\n\"text\":\"a\"}]}");
        assert_snapshot!(shown(&output), @r#"{"type":"text", "text":"a"}"#);
        assert!(!output.raw().contains(['\n', '\r']));
    }

    #[test]
    fn content_blocks_over_the_limit_are_merged() {
        let raw = format!(r#"{{"content":[{}]}}"#, vec!["1"; 20_000].join(","));
        let output = CallOutput::of_call(&raw);
        assert_eq!(output.parts().count(), 10_001);
        let text = output.text();
        assert_eq!(text.matches('1').count(), 20_000);
    }

    #[test]
    fn resource_result_is_shown_as_its_text() {
        let output = CallOutput::of_resource(
            r#"{"contents":[{"uri":"a:b","text":"x\ny"},{"uri":"a:c","blob":"aGk="},{"uri":"a:d"}]}"#,
        );
        assert_snapshot!(shown(&output), @r#"
        {"type":"text","text":"x\ny"}
        {"type":"text","text":"[Resource: a:c]\nBinary content omitted: it was not saved\nMIME type: application/octet-stream"}
        {"type":"text","text":"{\"uri\":\"a:d\"}"}
        "#);
    }

    #[test]
    fn several_prompt_messages_are_shown_with_their_roles() {
        let one = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#;
        assert_eq!(CallOutput::of_prompt(one).text(), "hi");
        let two = r#"{"messages":[
            {"role":"user","content":{"type":"text","text":"hi"}},
            {"role":"assistant","content":{"type":"resource","resource":{"uri":"a:b","text":"t"}}},
            {"role":"user","content":{"type":"image","data":"aGk=","mimeType":"image/png"}},
            {"content":1}]}"#;
        assert_snapshot!(shown(&CallOutput::of_prompt(two)), @r#"
        {"type":"text","text":"[user] hi"}
        {"type":"text","text":"[assistant] [Resource: a:b]\nt"}
        {"type":"image","data":"aGk=","mimeType":"image/png"}
        {"type":"text","text":"{\"content\":1}"}
        "#);
    }
}

mod structured {
    use super::*;

    fn check(text: &str, structured: &str, expected: &str) {
        let block = json!({"type": "text", "text": text});
        let raw = format!(r#"{{"content":[{block}],"structuredContent":{structured}}}"#);
        let output = CallOutput::of_call(raw);
        assert_eq!(output.text(), expected);
        assert_eq!(output.structured(), Some(structured));
    }

    #[test]
    fn structured_content_equal_to_the_text_is_omitted() {
        let once = r#"{"a":[1,2],"b":"x y"}"#;
        check(once, once, once);
        check(
            "{\n  \"a\": [1, 2],\n  \"b\": \"x y\"\n}",
            once,
            "{\n  \"a\": [1, 2],\n  \"b\": \"x y\"\n}",
        );
        check(r#"{"b":"x\u0020y","a":[1,2]}"#, once, r#"{"b":"x\u0020y","a":[1,2]}"#);
        check("sunny", r#"{"result":"sunny"}"#, "sunny");
        check("[1, 2]", r#"{"result":[1,2]}"#, "[1, 2]");
        check("the text", r#"{"content":"the text"}"#, "the text");
        check("plain", r#""plain""#, "plain");
    }

    #[test]
    fn structured_content_equal_to_several_text_blocks_is_omitted() {
        let check = |texts: &[&str], structured: &str, told: bool| {
            let blocks = texts.iter().map(|text| json!({"type": "text", "text": text}));
            let blocks: Vec<Value> = blocks.collect();
            let content = Value::from(blocks);
            let raw = format!(r#"{{"content":{content},"structuredContent":{structured}}}"#);
            let said = texts.join("\n");
            let expected = if told { said } else { format!("{said}\n{structured}") };
            assert_eq!(CallOutput::of_call(raw).text(), expected);
        };
        check(&["a", "b"], r#"{"result":["a","b"]}"#, true);
        check(&["a", "b"], r#"["a","b"]"#, true);
        check(&["{\n \"y\": 2, \"x\": 1\n}", "[ ]"], r#"{"result":[{"x":1,"y":2},[]]}"#, true);
        check(&["b", "a"], r#"{"result":["a","b"]}"#, false);
        check(&["a", "b"], r#"{"result":["a","b","c"]}"#, false);
        check(&["a", "b", "note"], r#"{"result":["a","b"]}"#, false);
        check(&["a", "b"], r#"{"names":["a","b"]}"#, false);
        check(&["{\"a\":1}", "a note"], r#"{"a":1}"#, true);
        check(&["{\"a\":1}"], r#"{"a":1,"b":2}"#, false);
    }

    #[test]
    fn structured_content_equal_except_key_order_is_omitted() {
        let items: Vec<String> =
            (0..5_000).map(|n| format!(r#"{{"id":{n},"name":"n{n}"}}"#)).collect();
        let turned: Vec<String> =
            (0..5_000).map(|n| format!(r#"{{"name":"n{n}","id":{n}}}"#)).collect();
        let structured = format!(r#"{{"items":[{}]}}"#, items.join(","));
        let text = format!(r#"{{"items":[{}]}}"#, turned.join(","));
        check(&text, &structured, &text);
    }

    #[test]
    fn structured_content_that_differs_from_text_is_appended() {
        check("done", r#"{"a": 1}"#, "done\n{\"a\":1}");
        check(r#"{"a":1}"#, r#"{"a":2}"#, "{\"a\":1}\n{\"a\":2}");
        check(r#"{"a":"x y"}"#, r#"{"a":"xy"}"#, "{\"a\":\"x y\"}\n{\"a\":\"xy\"}");
        check("5", r#"{"result":5,"unit":"m"}"#, "5\n{\"result\":5,\"unit\":\"m\"}");
        check("5", r#"{"count":5}"#, "5\n{\"count\":5}");
        check("{\"a\":1", r#"{"a":1}"#, "{\"a\":1\n{\"a\":1}");
    }

    #[test]
    fn structured_content_without_text_becomes_the_text() {
        assert_eq!(
            CallOutput::of_call(r#"{"structuredContent":{"a" : [ ]}}"#).text(),
            r#"{"a":[]}"#
        );
        assert_eq!(
            CallOutput::of_call(r#"{"content":[],"structuredContent":null}"#).text(),
            "(empty result)"
        );
    }
}

mod spills {
    use super::*;

    const BOTH: &str = r#"{"content":[{"type":"text","text":"see"},
        {"type":"resource","resource":{"uri":"a:b","blob":"aGk","mimeType":"application/pdf"}},
        {"type":"audio","data":"aGk=","mimeType":"audio/mpeg"}]}"#;

    #[test]
    fn blobs_and_unsupported_audio_are_written_to_files() {
        let mut output = CallOutput::of_call(BOTH);
        let plans = |output: &CallOutput<'_>, audio| {
            let spills = output.spills(&ResultForm { audio, ..ResultForm::default() });
            spills.iter().map(|s| (s.block, s.extension, s.decode().unwrap())).collect::<Vec<_>>()
        };
        let hi = || b"hi".to_vec();
        assert_eq!(plans(&output, MediaForm::Native), [(1, "pdf", hi())]);
        assert_eq!(plans(&output, MediaForm::Stored), [(1, "pdf", hi()), (2, "mp3", hi())]);

        output.settle(0, Settled::SavedTo("/never"));
        output.settle(1, Settled::SavedTo("/r/1.pdf"));
        output.settle(2, Settled::SavedTo("/r/2.mp3"));
        output.settle(9, Settled::SavedTo("/never"));
        assert_snapshot!(output.text(), @r"
        see
        [Resource: a:b]
        Binary content saved to /r/1.pdf
        MIME type: application/pdf
        [Audio content: audio/mpeg]
        Saved to /r/2.mp3
        ");
    }

    #[test]
    fn filter_output_keeps_images_and_blobs_of_the_result() {
        const SHOT: &str = r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},
            {"type":"text","text":"{\"width\": 7}"},
            {"type":"resource_link","uri":"a:c","name":"c"},
            {"type":"resource","resource":{"uri":"a:b","blob":"aGl","mimeType":"application/pdf"}}
            ]}"#;
        let mut output = CallOutput::of_call(SHOT);
        assert_eq!(
            output.spills(&ResultForm::default())[0].decode(),
            Ok(b"hi".to_vec()),
            "stray bits"
        );
        output.settle(3, Settled::SavedTo("/r/1.pdf"));
        let mut content = String::new();
        output.select("7\n".to_owned()).write_content(&mut content);
        assert_snapshot!(content, @r#"[{"type":"text","text":"7"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"[Resource: a:b]\nBinary content saved to /r/1.pdf\nMIME type: application/pdf"}]"#);
    }

    #[test]
    fn blob_that_cannot_be_stored_becomes_a_note() {
        let check = |data: &str, expected: Result<Vec<u8>, BlobError>| {
            let raw = format!(
                r#"{{"content":[{{"type":"resource","resource":{{"uri":"a:b","blob":"{data}"}}}}]}}"#
            );
            let output = CallOutput::of_call(raw);
            assert_eq!(output.spills(&ResultForm::default())[0].decode(), expected);
        };
        check("aG\\nk=", Ok(b"hi".to_vec()));
        check("a*", Err(BlobError::NotBase64));
        check(&"AAAA".repeat(10 << 20 >> 1), Err(BlobError::TooLarge));
        check(&"AAAA".repeat((10 << 20) / 3 + 1), Err(BlobError::TooLarge));

        let mut output = CallOutput::of_call(BOTH);
        output.settle(1, Settled::Omitted(&BlobError::NotBase64));
        output.settle(2, Settled::Omitted(&BlobError::TooLarge));
        assert_snapshot!(output.text(), @r"
        see
        [Resource: a:b]
        Binary content omitted: not valid base64
        MIME type: application/pdf
        [Audio content: audio/mpeg]
        Omitted: larger than 10 MiB
        ");
    }
}

mod guarding {
    use super::*;

    fn texts(texts: &[String]) -> CallOutput<'static> {
        let blocks: Vec<Value> =
            texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        CallOutput::of_call(json!({"content": blocks}).to_string())
    }

    fn over<'a>(output: CallOutput<'a>, limits: &TextLimits) -> Capped<'a> {
        match guard(output, limits) {
            Guarded::Over(capped) => capped,
            Guarded::Within(_) => panic!("expected a text over the limits"),
        }
    }

    fn is_within(text: String, limits: &TextLimits) -> bool {
        matches!(guard(texts(&[text]), limits), Guarded::Within(_))
    }

    #[test]
    fn output_with_many_lines_keeps_head_and_tail() {
        let text: Vec<String> = (1..=5_000).map(|n| format!("line {n}")).collect();
        let limits = TextLimits { max_lines: 12, ..TextLimits::DEFAULT };
        let output = over(texts(&[text.join("\n")]), &limits).with_id("r7");
        assert_snapshot!(output.text(), @r"
        [result: r7 · 5,000 lines · 47.7 KiB]
        line 1
        line 2
        line 3
        line 4
        line 5
        line 6
        [… 4,991 lines, 47.7 KiB left out, from offset 6 …]
        line 4998
        line 4999
        line 5000
        [result: r7 · 5,000 lines · 47.7 KiB · read more with result, offset, limit or grep]
        ");
    }

    #[test]
    fn oversized_output_is_cut_between_lines() {
        let line = "x".repeat(99);
        let output = over(texts(&[vec![line.as_str(); 1_000].join("\n")]), &TextLimits::DEFAULT);
        let text = output.with_id("r1").text().into_owned();
        let (ours, whole): (Vec<&str>, Vec<&str>) = text.lines().partition(|l| l.starts_with('['));
        assert_eq!(ours.len(), 3);
        assert!(whole.len() > 500 && whole.iter().all(|shown| *shown == line));
    }

    #[test]
    fn giant_line_of_a_result_is_cut_by_bytes() {
        let output = over(texts(&["é".repeat(60_000)]), &TextLimits::DEFAULT).with_id("r1");
        let text = output.text();
        assert!(text.len() <= 51_200 && text.len() > 50_000, "{}", text.len());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0], "[result: r1 · 60 lines · 117.2 KiB]");
        assert_eq!(lines[2], "[… 67.4 KiB left out, from within the line at offset 17 …]");
        assert!(lines[1].len() > 2 * lines[3].len());
    }

    #[test]
    fn truncated_giant_line_keeps_its_beginning_and_end() {
        let output =
            over(texts(&[format!("ok\nBEGIN{}END\nok", "x".repeat(90_000))]), &TextLimits::DEFAULT);
        let text = output.with_id("r1").text().into_owned();
        assert!(text.contains("]\nok\nBEGINxxx") && text.contains("xxxEND\nok\n[result: r1 "));
        assert!(text.contains("within the line at offset 18 "));
    }

    #[test]
    fn output_exactly_at_a_limit_is_not_cut() {
        let lines = |count: usize| "a\n".repeat(count);
        assert!(is_within("x".repeat(51_200), &TextLimits::DEFAULT));
        assert!(!is_within("x".repeat(51_201), &TextLimits::DEFAULT));
        assert!(is_within("\"".repeat(51_200), &TextLimits::DEFAULT));
        assert!(is_within(lines(2_000), &TextLimits::DEFAULT));
        assert!(!is_within(lines(2_001), &TextLimits::DEFAULT));
        assert!(is_within(lines(200_000), &TextLimits::OFF));
    }

    #[test]
    fn images_keep_their_position_if_structured_content_is_cut() {
        let big = "x".repeat(60_000);
        let raw = json!({"content": [
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "text", "text": "a"},
            {"type": "image", "data": "aGk=", "mimeType": "image/gif"},
        ], "structuredContent": {"big": big}});
        let output = over(CallOutput::of_call(raw.to_string()), &TextLimits::DEFAULT).with_id("r1");
        let kinds: Vec<&str> = output
            .parts()
            .map(|part| match part {
                Part::Text(_) => "text",
                Part::Image(media) if media.mime == "image/png" => "png",
                Part::Image(_) => "gif",
                Part::Audio(_) => "audio",
            })
            .collect();
        assert_eq!(kinds, ["png", "text", "gif"]);
        assert!(output.text().starts_with("[result: r1 "));
        assert!(output.text().contains("]\na\n{\"big\":\"xxx"));
    }

    #[test]
    fn shortened_output_suggests_a_filter_only_for_json() {
        let numbers = format!("[{}1]", "1,".repeat(40_000));
        let foot = |output: CallOutput<'_>| {
            let text = over(output, &TextLimits::DEFAULT).with_id("r1").text().into_owned();
            text.lines().last().unwrap().to_owned()
        };
        assert_snapshot!(
            foot(texts(std::slice::from_ref(&numbers))),
            @"[result: r1 · 41 lines · 78.1 KiB · read more with result and select, offset, limit or grep]"
        );
        assert_snapshot!(
            foot(texts(&["1 ".repeat(3)]).select(numbers.clone())),
            @"[result: r1 · 41 lines · 78.1 KiB · read more with result, the same select, offset, limit or grep]"
        );
        assert_snapshot!(
            foot(texts(&[format!("so: {numbers}")])),
            @"[result: r1 · 41 lines · 78.1 KiB · read more with result, offset, limit or grep]"
        );
    }

    #[test]
    fn json_for_filters_is_stored_if_text_differs() {
        let whole = |raw: &str| {
            let whole = super::super::guard::Whole::of(&CallOutput::of_call(raw));
            (whole.json().map(str::to_owned), whole.json_beside().map(str::to_owned))
        };
        let check = |raw: &str, json: Option<&str>, beside: Option<&str>| {
            assert_eq!(whole(raw), (json.map(str::to_owned), beside.map(str::to_owned)), "{raw}");
        };
        check(r#"{"content":[{"type":"text","text":"[1]"}]}"#, Some("[1]"), None);
        check(r#"{"structuredContent":{"a":1}}"#, Some("{\"a\":1}"), None);
        let both = r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"a":1}}"#;
        check(both, Some("{\"a\":1}"), Some("{\"a\":1}"));
        let wrapped =
            r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]}}"#;
        check(wrapped, Some("{\"result\":[1]}"), Some("{\"result\":[1]}"));
        let image = r#"{"content":[{"type":"text","text":"[1]"},{"type":"image","data":"aGk="},
            {"type":"resource_link","uri":"a:b"}]}"#;
        check(image, Some("[1]"), Some("[1]"));
        check(r#"{"content":[{"type":"text","text":"words"}]}"#, None, None);
        check(r#"{"content":[]}"#, None, None);
    }

    fn any_text() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            6 => "[a-z]{0,9}",
            6 => Just("\n".to_owned()),
            2 => "[\\PC\\n\\t\"\\\\]{0,12}",
            1 => (0usize..900).prop_map(|count| "ü漢".repeat(count)),
            1 => (0usize..90).prop_map(|count| "\n".repeat(count)),
        ];
        proptest::collection::vec(word, 0..60).prop_map(|words| words.concat())
    }

    /// A regression: a short block before a long one was not counted.
    #[test]
    fn line_limit_applies_to_all_blocks_together() {
        let output = texts(&["\n".repeat(7), format!("{}a", "\n".repeat(43))]);
        let limits = TextLimits { max_bytes: 4_000, max_lines: 45 };
        assert!(matches!(guard(output, &limits), Guarded::Over(_)));
    }

    proptest! {
        #[test]
        fn shown_text_fits_limits_and_full_text_is_stored(
            blocks in proptest::collection::vec(any_text(), 1..4),
            max_bytes in 0usize..4_000,
            max_lines in 0usize..60,
            id in "[a-z0-9-]{1,64}",
        ) {
            let output = texts(&blocks);
            let original = output.text().into_owned();
            if !blocks.iter().all(String::is_empty) {
                prop_assert_eq!(&original, &blocks.join("\n"));
            }
            let bytes = max_bytes.max(TextLimits::LEAST.max_bytes);
            let lines = max_lines.max(TextLimits::LEAST.max_lines);
            let fits = original.len() <= bytes && line_count(&original) <= lines;
            let before = shown(&output);
            match guard(output, &TextLimits { max_bytes, max_lines }) {
                Guarded::Within(output) => {
                    prop_assert!(fits);
                    prop_assert_eq!(shown(&output), before);
                }
                Guarded::Over(capped) => {
                    prop_assert!(!fits);
                    prop_assert_eq!(&capped.whole().text, &original);
                    let output = capped.with_id(&id);
                    let text = output.text();
                    prop_assert!(text.len() <= bytes, "{} > {}", text.len(), bytes);
                    prop_assert!(line_count(&text) <= lines, "{} > {}", line_count(&text), lines);
                    let (body, foot) = text.rsplit_once('\n').unwrap();
                    let id_is_last = foot.starts_with(&format!("[result: {id} "));
                    prop_assert!(id_is_last, "{}", foot);
                    let (top, body) = body.split_once('\n').unwrap();
                    let id_is_first = top.starts_with(&format!("[result: {id} "));
                    prop_assert!(id_is_first, "{}", top);
                    let (head, rest) = body.split_once("\n[… ").unwrap();
                    let (_, tail) = rest.split_once(" …]\n").unwrap();
                    prop_assert!(original.starts_with(head));
                    prop_assert!(original.trim_end_matches('\n').ends_with(tail.trim_end_matches('\n')));
                }
            }
        }

        #[test]
        fn any_json_result_becomes_valid_content_and_json_details(raw in any_result()) {
            let text = raw.to_string();
            for output in [
                CallOutput::of_call(&text),
                CallOutput::of_resource(&text),
                CallOutput::of_prompt(&text),
            ] {
                shown(&output);
                let asked = CallTarget { mode: "call", server: "s", tool: "t" };
                let mut details = String::new();
                details::of_output(&mut details, &asked, &output);
                prop_assert!(serde_json::from_str::<Value>(&details).is_ok(), "{}", details);
            }
        }

        #[test]
        fn rendering_arbitrary_results_never_panics(raw in any::<String>()) {
            shown(&CallOutput::of_call(&raw));
            shown(&CallOutput::of_resource(&raw));
            shown(&CallOutput::of_prompt(&raw));
        }
    }

    fn any_result() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop_oneof!["text", "image", "resource", "user", "aGk=", "\\PC{0,8}"]
                .prop_map(Value::from),
        ];
        let key = prop_oneof![
            "content",
            "contents",
            "messages",
            "structuredContent",
            "isError",
            "type",
            "text",
            "data",
            "mimeType",
            "resource",
            "uri",
            "blob",
            "role",
            "result",
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((key.clone(), inner), 0..7)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }
}
