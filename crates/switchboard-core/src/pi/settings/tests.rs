//! Installing into realistic Pi settings, and uninstalling again.

use proptest::prelude::*;

use super::*;

const DIRECTORY: &str = "/data/pi-switchboard";

/// There is one checkout of our package, and one of another package.
fn look(path: &str) -> Found {
    match path {
        "../checkout" => Found::Ours,
        "/theirs" | "/src/pi-mcp-adapter" => Found::Other,
        _ => Found::Nothing,
    }
}

fn with() -> Surroundings<'static> {
    Surroundings { directory: DIRECTORY, look: &look }
}

#[test]
fn our_package_goes_in_and_comes_out_and_comments_stay() {
    let before = r#"{
  // mine
  "theme": "dark",
  "packages": [
    "npm:pi-mcp-adapter@2.36.0",
    { "source": "git:github.com/x/tools@v1", "skills": [] }
  ],
  "extensions": ["+builtin:mcp", "./a.ts"]
}
"#;
    let put = put_in(before, with()).unwrap();
    assert_eq!(put.displaced, ["npm:pi-mcp-adapter@2.36.0"]);
    assert!(put.in_our_directory);
    insta::assert_snapshot!(put.text, @r#"
    {
      // mine
      "theme": "dark",
      "packages": [
        { "source": "git:github.com/x/tools@v1", "skills": [] },
        "/data/pi-switchboard"
      ],
      "extensions": ["./a.ts", "-builtin:mcp"]
    }
    "#);
    assert_eq!(put_in(&put.text, with()).unwrap().text, put.text);
    let changed = put.text.replace("dark", "light").replace("\"./a.ts\", ", "");
    insta::assert_snapshot!(take_back(&changed, before, with()).unwrap(), @r#"
    {
      // mine
      "theme": "light",
      "packages": [
        { "source": "git:github.com/x/tools@v1", "skills": [] },
        "npm:pi-mcp-adapter@2.36.0"
      ],
      "extensions": ["+builtin:mcp"]
    }
    "#);
    insta::assert_snapshot!(take_out(&put.text, with()).unwrap(), @r#"
    {
      // mine
      "theme": "dark",
      "packages": [
        { "source": "git:github.com/x/tools@v1", "skills": [] }
      ],
      "extensions": ["./a.ts"]
    }
    "#);
}

#[test]
fn a_package_of_ours_that_is_declared_is_enough() {
    for (packages, in_our_directory) in [
        (r#"["npm:pi-switchboard"]"#, false),
        (r#"["npm:pi-switchboard@1.2.3"]"#, false),
        (r#"[{ "source": "npm:pi-switchboard", "skills": [] }]"#, false),
        (r#"["git:github.com/x/pi-switchboard.git@v1"]"#, false),
        (r#"["../checkout"]"#, false),
        (r#"["/data/pi-switchboard"]"#, true),
        (r#"["npm:pi-switchboard", "/data/pi-switchboard"]"#, true),
    ] {
        let text = format!(r#"{{ "packages": {packages}, "extensions": ["-builtin:mcp"] }}"#);
        let put = put_in(&text, with()).unwrap();
        assert_eq!((put.text, put.in_our_directory), (text, in_our_directory));
    }
    for packages in [r#"["npm:pi-switchboard-x", "npm:@x/switchboard", "/theirs"]"#, "[1, {}]"] {
        let text = format!(r#"{{ "packages": {packages} }}"#);
        let put = put_in(&text, with()).unwrap().text;
        assert!(put.contains(DIRECTORY), "{put}");
    }
}

#[test]
fn a_path_of_ours_that_leads_nowhere_is_replaced() {
    let text = r#"{ "packages": ["/old/pi-switchboard"], "extensions": ["!builtin:*"] }"#;
    assert_eq!(declared(text, with()).unwrap().lost, ["/old/pi-switchboard"]);
    let put = put_in(text, with()).unwrap().text;
    let expected = r#"{ "packages": ["/data/pi-switchboard"], "extensions": ["!builtin:*"] }"#;
    assert_eq!(put, expected);
}

#[test]
fn every_form_of_the_other_package_is_known() {
    for source in [
        "npm:pi-mcp-adapter",
        "npm:pi-mcp-adapter@^2",
        "git:github.com/x/pi-mcp-adapter",
        "https://github.com/x/pi-mcp-adapter.git#main",
        "/src/pi-mcp-adapter",
        "../gone/pi-mcp-adapter/",
    ] {
        let text = serde_json::json!({ "packages": [{ "source": source }] }).to_string();
        assert_eq!(declared(&text, with()).unwrap().rivals, [source]);
        let after = put_in(&text, with()).unwrap().text;
        assert_eq!(declared(&after, with()).unwrap().rivals, Vec::<String>::new());
    }
}

#[test]
fn the_built_in_mcp_is_off_as_pi_reads_it() {
    for (extensions, expected) in [
        ("[]", BuiltIn::On),
        (r#"["+builtin:mcp"]"#, BuiltIn::On),
        (r#"["-builtin:codemode", "builtin:mcp"]"#, BuiltIn::On),
        (r#"["-builtin:mcp"]"#, BuiltIn::Off),
        (r#"["+builtin:mcp", "-builtin:mcp"]"#, BuiltIn::Off),
        (r#"["!builtin:mcp"]"#, BuiltIn::Off),
        (r#"["!builtin:*", "+builtin:mcp"]"#, BuiltIn::On),
    ] {
        let text = format!(r#"{{ "extensions": {extensions} }}"#);
        assert_eq!(declared(&text, with()).unwrap().built_in, expected, "{extensions}");
        let after = put_in(&text, with()).unwrap().text;
        assert_eq!(declared(&after, with()).unwrap().built_in, BuiltIn::Off, "{after}");
    }
}

#[test]
fn a_list_of_a_wrong_type_is_refused() {
    let refusal = |text| put_in(text, with()).unwrap_err().to_string();
    insta::assert_snapshot!(refusal("[]"), @"`(root)` must be an object before it can be changed");
    insta::assert_snapshot!(refusal(r#"{ "packages": {} }"#), @"`packages` must be an array before it can be changed");
    insta::assert_snapshot!(refusal(r#"{ "extensions": "x" }"#), @"`extensions` must be an array before it can be changed");
    insta::assert_snapshot!(refusal("{ \"packages\": "), @"line 1, column 15: expected value after colon in object property");
}

#[test]
fn an_empty_file_gets_both_lists_and_loses_them_again() {
    let put = put_in("", with()).unwrap().text;
    insta::assert_snapshot!(put, @r#"
    {
      "packages": ["/data/pi-switchboard"],
      "extensions": ["-builtin:mcp"]
    }
    "#);
    let changed = put.replace("\n}", ",\n  \"theme\": \"dark\"\n}");
    insta::assert_snapshot!(take_back(&changed, "", with()).unwrap(), @r#"
    {
      "theme": "dark"
    }
    "#);
}

fn items() -> impl Strategy<Value = Vec<&'static str>> {
    let item = prop_oneof![
        Just("npm:a"),
        Just("npm:pi-mcp-adapter"),
        Just("npm:pi-switchboard"),
        Just("/old/pi-switchboard"),
        Just(DIRECTORY),
        Just("+builtin:mcp"),
        Just("-builtin:mcp"),
        Just("!builtin:*"),
    ];
    prop::collection::vec(item, 0..4)
}

proptest! {
    #[test]
    fn what_was_put_in_is_found_and_can_be_taken_back(packages in items(), extensions in items()) {
        let mut packages = packages;
        packages.dedup();
        let before = serde_json::json!({ "packages": packages, "extensions": extensions });
        let put = put_in(&before.to_string(), with()).unwrap();
        let after = declared(&put.text, with()).unwrap();
        prop_assert_eq!(after.built_in, BuiltIn::Off);
        prop_assert!(after.lost.iter().all(|path| path == DIRECTORY));
        prop_assert!(!after.ours.is_empty() || !after.lost.is_empty());
        prop_assert!(after.rivals.is_empty());
        let back = take_back(&put.text, &before.to_string(), with()).unwrap();
        let back: Json = serde_json::from_str(&back).unwrap();
        for key in ["packages", "extensions"] {
            let then = before[key].as_array().unwrap();
            let now = back[key].as_array().unwrap();
            prop_assert!(then.iter().all(|item| now.contains(item)), "{then:?} {now:?}");
            prop_assert!(now.iter().all(|item| then.contains(item)), "{then:?} {now:?}");
        }
    }

    #[test]
    fn no_settings_panic(text in "\\PC{0,40}|[\\[\\]{}\"=.,:a\n ]{0,40}") {
        let _ = (put_in(&text, with()), take_out(&text, with()), take_back(&text, &text, with()));
    }
}
