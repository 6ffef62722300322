//! Which changes of definitions are detected, and which pin files are rejected.

use proptest::prelude::*;

use super::*;

fn raw(definition: &str) -> Box<RawValue> {
    RawValue::from_string(definition.to_owned()).unwrap()
}

fn listing(definitions: &[&str]) -> RawListing {
    let tools = definitions.iter().map(|definition| raw(definition)).collect();
    RawListing { tools, ..RawListing::default() }
}

const SAVE: &str = r#"{"name":"save","description":"Saves.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":false}}"#;

fn pin_of(definition: &str, baseline: &Baseline) -> Pin {
    baseline.compare_entry(&Entry::tool(&raw(definition)).unwrap())
}

fn check(definition: &str, expected: Pin) {
    let baseline = PinRecord::of(&listing(&[SAVE])).baseline();
    assert_eq!(pin_of(definition, &baseline), expected, "{definition}");
}

#[test]
fn changed_description_schema_or_annotation_causes_pin_mismatch() {
    check(SAVE, Pin::Same);
    check(&SAVE.replace("Saves.", "Saves all."), Pin::Changed);
    check(&SAVE.replace(r#""string""#, r#""number""#), Pin::Changed);
    check(&SAVE.replace("false", "true"), Pin::Changed);
    check(&SAVE.replace(r#""name":"save""#, r#""name":"save","title":"Save""#), Pin::Changed);
    let output = r#""name":"save","outputSchema":{"type":"object"}"#;
    check(&SAVE.replace(r#""name":"save""#, output), Pin::Changed);
    check(&SAVE.replace(r#","annotations":{"readOnlyHint":false}"#, ""), Pin::Changed);
    check(&SAVE.replace(r#""name":"save""#, r#""name":"store""#), Pin::New);
}

#[test]
fn reordered_tool_definition_matches_its_pin() {
    let reordered = r#"{ "annotations": {"readOnlyHint": false}, "inputSchema": {"properties":{"text":{"type":"string"}}, "type":"object"}, "description":"Saves.", "title": null, "name":"save", "_meta": {"build": 7}, "icons": [] }"#;
    check(reordered, Pin::Same);
}

#[test]
fn pin_state_is_unknown_only_with_damaged_pin_file() {
    assert_eq!(pin_of(SAVE, &Baseline::Off), Pin::Same);
    assert_eq!(pin_of(SAVE, &Records::default().baseline(0)), Pin::Same);
    assert_eq!(pin_of(SAVE, &Baseline::Damaged), Pin::Unknown);
}

#[test]
fn accepting_one_changed_tool_leaves_other_pins_unchanged() {
    let mut record = PinRecord::of(&listing(&[SAVE]));
    let (other, changed) = (SAVE.replace("save", "other"), SAVE.replace("Saves.", "Saves all."));
    assert_eq!(pin_of(&other, &record.baseline()), Pin::New);
    record.accept(Entry::tool(&raw(&other)).unwrap().pinned());
    assert_eq!(pin_of(&other, &record.baseline()), Pin::Same);
    assert_eq!(pin_of(&changed, &record.baseline()), Pin::Changed);
    assert_eq!(pin_of(SAVE, &record.baseline()), Pin::Same);
}

#[test]
fn duplicate_tool_name_does_not_replace_the_first_pin() {
    let second = SAVE.replace("Saves.", "Saves all.");
    let baseline = PinRecord::of(&listing(&[SAVE, &second])).baseline();
    assert_eq!(pin_of(SAVE, &baseline), Pin::Same);
    assert_eq!(pin_of(&second, &baseline), Pin::Changed);
}

fn diff_of(old: &str, new: &str) -> String {
    let changes =
        PinRecord::of(&listing(&[old])).changes(&Entry::tool(&raw(new)).unwrap().pinned());
    let lines = changes.iter().flat_map(|change| {
        let line = |sign, text: &Option<String>| {
            text.as_ref().map(|text| format!("{sign} {}: {text}\n", change.field))
        };
        [line('-', &change.old), line('+', &change.new)]
    });
    lines.flatten().collect()
}

#[test]
fn pin_diff_names_the_field_and_both_values() {
    let new = r#"{"name":"save","description":"Saves \u001b[31m all.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"path":{"type":"string"}}}}"#;
    insta::assert_snapshot!(diff_of(SAVE, new), @r#"
    - description: "Saves."
    + description: "Saves \u001b[31m all."
    + inputSchema.properties.path: {"type":"string"}
    - annotations: {"readOnlyHint":false}
    "#);
}

#[test]
fn long_text_diff_starts_at_the_difference() {
    let long = |end: &str| SAVE.replace("Saves.", &format!("{}{end}", "so ".repeat(2_000)));
    let diff = diff_of(&long("good"), &long("bad"));
    assert!(diff.len() < 1_000 && diff.contains("good") && diff.contains("bad"), "{diff}");
}

#[test]
fn pin_diff_of_many_changes_is_limited_in_length() {
    let properties: Vec<String> = (0..500).map(|n| format!(r#""p{n}":{{}}"#)).collect();
    let new = SAVE.replace(r#""text":{"type":"string"}"#, &properties.join(","));
    let diff = diff_of(SAVE, &new);
    assert!(diff.len() < 8_000 && diff.contains("more"), "{} bytes", diff.len());
}

#[test]
fn truncated_pin_file_or_mismatched_key_is_rejected() {
    let file = stored();
    let read = Records::decode(&file, "abc").unwrap();
    assert_eq!(pin_of(SAVE, &read.baseline(0)), Pin::Same);
    assert!(Records::decode(&file, "abd").is_none());
    for end in 0..file.len() {
        assert!(Records::decode(&file[..end], "abc").is_none(), "cut at {end}");
    }
}

/// A pin file with the key `abc`.
fn stored() -> Vec<u8> {
    let mut records = Records::default();
    records.take_first(0, &listing(&[SAVE]));
    records.encode("abc")
}

#[test]
fn pin_keys_differ_by_server_project_and_definition() {
    let name = |name| ServerName::new(name).unwrap();
    let keys = [
        key(&name("a"), None, "1"),
        key(&name("b"), None, "1"),
        key(&name("a"), None, "2"),
        key(&name("a"), Some("/p"), "1"),
        key(&name("a"), Some("/q"), "1"),
        key(&name("pa"), Some("/"), "1"),
    ];
    let different: std::collections::HashSet<&String> = keys.iter().collect();
    assert_eq!(different.len(), keys.len());
}

proptest! {
    #[test]
    fn pin_file_with_a_flipped_bit_is_invalid(at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut damaged = stored();
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        prop_assert!(Records::decode(&damaged, "abc").is_none());
    }

    /// A tool matches its pin exactly if its definition equals the one accepted last.
    #[test]
    fn pin_matches_exactly_the_last_accepted_definition(
        steps in prop::collection::vec((0..4usize, any::<bool>()), 1..40),
    ) {
        let versions: Vec<String> =
            (0..4).map(|n| SAVE.replace("Saves.", &format!("Saves {n}."))).collect();
        let mut record = PinRecord::of(&listing(&[&versions[0]]));
        let mut accepted = 0;
        for (version, accept) in steps {
            if accept {
                record.accept(Entry::tool(&raw(&versions[version])).unwrap().pinned());
                accepted = version;
            }
            for (n, definition) in versions.iter().enumerate() {
                let expected = if n == accepted { Pin::Same } else { Pin::Changed };
                prop_assert_eq!(pin_of(definition, &record.baseline()), expected);
            }
        }
    }

    #[test]
    fn pin_fingerprint_and_diff_never_panic(text in ".{0,200}") {
        let _ = (Fingerprint::of(&text), diff::changes(&Value::from(text.as_str()), &Value::Null));
    }
}

const NO_CAPABILITIES: u8 = 0;
const ALL_CAPABILITIES: u8 = 21;

#[test]
fn each_client_capability_set_has_its_own_pins() {
    let ask = SAVE.replace("save", "ask");
    let mut records = Records::default();
    records.take_first(NO_CAPABILITIES, &listing(&[SAVE]));
    records.take_first(ALL_CAPABILITIES, &listing(&[SAVE, &ask]));
    let pins = |set| [SAVE, &ask].map(|tool| pin_of(tool, &records.baseline(set)));
    assert_eq!(pins(ALL_CAPABILITIES), [Pin::Same, Pin::Same]);
    assert_eq!(pins(NO_CAPABILITIES), [Pin::Same, Pin::New]);
    let again = Records::decode(&records.encode("key"), "key").unwrap();
    assert_eq!(again.sets().collect::<Vec<_>>(), [NO_CAPABILITIES, ALL_CAPABILITIES]);
}

#[test]
fn changed_tool_is_not_auto_accepted_for_other_capabilities() {
    let changed = SAVE.replace("Saves.", "Saves all.");
    let mut records = Records::default();
    records.take_first(NO_CAPABILITIES, &listing(&[SAVE]));
    records.take_first(ALL_CAPABILITIES, &listing(&[&changed]));
    let pin = |records: &Records, tool: &str| pin_of(tool, &records.baseline(ALL_CAPABILITIES));
    assert_eq!(pin(&records, &changed), Pin::Changed);
    assert_eq!(pin(&records, SAVE), Pin::Same);
    records.of_set_mut(ALL_CAPABILITIES).accept(Entry::tool(&raw(&changed)).unwrap().pinned());
    assert_eq!(pin(&records, &changed), Pin::Same);
    // A definition that was accepted for one set of capabilities is accepted for other sets too.
    records.take_first(1, &listing(&[&changed]));
    assert_eq!(pin_of(&changed, &records.baseline(1)), Pin::Same);
}

#[test]
fn definitions_are_not_pinned_automatically_after_pin_file_damage() {
    let mut records = Records::after_damage();
    let entry = Entry::tool(&raw(SAVE)).unwrap();
    records.of_set_mut(NO_CAPABILITIES).accept(entry.pinned());
    let mut records = Records::decode(&records.encode("key"), "key").unwrap();
    assert_eq!(pin_of(SAVE, &records.baseline(NO_CAPABILITIES)), Pin::Same);
    assert_eq!(pin_of(SAVE, &records.baseline(ALL_CAPABILITIES)), Pin::New);
    records.take_first(ALL_CAPABILITIES, &listing(&[SAVE]));
    assert_eq!(pin_of(SAVE, &records.baseline(ALL_CAPABILITIES)), Pin::New);
}

#[test]
fn prompts_and_instructions_are_pinned_like_tools() {
    let words = |instructions: &str, prompt: &str| RawListing {
        instructions: Some(instructions.to_owned()),
        prompts: vec![raw(prompt)],
        ..listing(&[SAVE])
    };
    let (greet, changed) = (r#"{"name":"greet"}"#, r#"{"name":"greet","description":"Obeys."}"#);
    let pins = |record: &PinRecord, listing: &RawListing| {
        let baseline = record.baseline();
        let prompt = read_prompt(&listing.prompts[0]).unwrap();
        let instructions = Instructions::of(listing.instructions.as_deref().unwrap());
        (baseline.compare(&instructions.pinned()), baseline.compare(&prompt.pinned()))
    };
    let record = PinRecord::of(&words("a", greet));
    assert_eq!(pins(&record, &words("a", greet)), (Pin::Same, Pin::Same));
    assert_eq!(pins(&record, &words("b", changed)), (Pin::Changed, Pin::Changed));
    assert_eq!(pins(&PinRecord::of(&listing(&[SAVE])), &words("a", greet)), (Pin::New, Pin::New));
}
