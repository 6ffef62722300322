//! Adds our package to realistic settings of Pi, and removes it.

use proptest::prelude::*;

use super::*;

const DIRECTORY: &str = "/data/pi-switchboard";

/// The packages at the paths of the tests: a checkout of ours, and another package at two paths.
fn look(path: &str) -> LocalPackage {
    match path {
        "../checkout" => LocalPackage::Ours,
        "/theirs" | "/src/pi-mcp-adapter" => LocalPackage::Other,
        _ => LocalPackage::Nothing,
    }
}

fn with() -> Surroundings<'static> {
    Surroundings { directory: DIRECTORY, look: &look }
}

#[test]
fn pi_package_is_added_and_removed_keeping_comments() {
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
    let put = install(before, with()).unwrap();
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
    assert_eq!(install(&put.text, with()).unwrap().text, put.text);
    let changed = put.text.replace("dark", "light").replace("\"./a.ts\", ", "");
    insta::assert_snapshot!(undo(&changed, before, with()).unwrap(), @r#"
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
    insta::assert_snapshot!(uninstall(&put.text, with()).unwrap(), @r#"
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
fn declared_pi_package_is_not_added_again() {
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
        let put = install(&text, with()).unwrap();
        assert_eq!((put.text, put.in_our_directory), (text, in_our_directory));
    }
    for packages in [r#"["npm:pi-switchboard-x", "npm:@x/switchboard", "/theirs"]"#, "[1, {}]"] {
        let text = format!(r#"{{ "packages": {packages} }}"#);
        let put = install(&text, with()).unwrap().text;
        assert!(put.contains(DIRECTORY), "{put}");
    }
}

#[test]
fn stale_pi_package_path_is_replaced() {
    let text = r#"{ "packages": ["/old/pi-switchboard"], "extensions": ["!builtin:*"] }"#;
    assert_eq!(declared(text, with()).unwrap().lost, ["/old/pi-switchboard"]);
    let put = install(text, with()).unwrap().text;
    let expected = r#"{ "packages": ["/data/pi-switchboard"], "extensions": ["!builtin:*"] }"#;
    assert_eq!(put, expected);
}

#[test]
fn pi_mcp_adapter_is_recognized_in_every_source_form() {
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
        let after = install(&text, with()).unwrap().text;
        assert_eq!(declared(&after, with()).unwrap().rivals, Vec::<String>::new());
    }
}

#[test]
fn pi_extensions_list_decides_whether_builtin_mcp_is_enabled() {
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
        let after = install(&text, with()).unwrap().text;
        assert_eq!(declared(&after, with()).unwrap().built_in, BuiltIn::Off, "{after}");
    }
}

#[test]
fn pi_settings_list_of_wrong_type_is_refused() {
    let refusal = |text| install(text, with()).unwrap_err().to_string();
    insta::assert_snapshot!(refusal("[]"), @"`(root)` cannot be changed, because it is not an object");
    insta::assert_snapshot!(refusal(r#"{ "packages": {} }"#), @"`packages` cannot be changed, because it is not an array");
    insta::assert_snapshot!(refusal(r#"{ "extensions": "x" }"#), @"`extensions` cannot be changed, because it is not an array");
    insta::assert_snapshot!(refusal("{ \"packages\": "), @"line 1, column 15: expected value after colon in object property");
}

#[test]
fn pi_uninstall_removes_both_lists_that_install_added() {
    let put = install("", with()).unwrap().text;
    insta::assert_snapshot!(put, @r#"
    {
      "packages": ["/data/pi-switchboard"],
      "extensions": ["-builtin:mcp"]
    }
    "#);
    let changed = put.replace("\n}", ",\n  \"theme\": \"dark\"\n}");
    insta::assert_snapshot!(undo(&changed, "", with()).unwrap(), @r#"
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
    fn pi_install_of_any_settings_can_be_undone(packages in items(), extensions in items()) {
        let mut packages = packages;
        packages.dedup();
        let before = serde_json::json!({ "packages": packages, "extensions": extensions });
        let put = install(&before.to_string(), with()).unwrap();
        let after = declared(&put.text, with()).unwrap();
        prop_assert_eq!(after.built_in, BuiltIn::Off);
        prop_assert!(after.lost.iter().all(|path| path == DIRECTORY));
        prop_assert!(!after.ours.is_empty() || !after.lost.is_empty());
        prop_assert!(after.rivals.is_empty());
        let back = undo(&put.text, &before.to_string(), with()).unwrap();
        let back: Json = serde_json::from_str(&back).unwrap();
        for key in ["packages", "extensions"] {
            let then = before[key].as_array().unwrap();
            let now = back[key].as_array().unwrap();
            prop_assert!(then.iter().all(|item| now.contains(item)), "{then:?} {now:?}");
            prop_assert!(now.iter().all(|item| then.contains(item)), "{then:?} {now:?}");
        }
    }

    #[test]
    fn pi_settings_edit_never_panics(text in "\\PC{0,40}|[\\[\\]{}\"=.,:a\n ]{0,40}") {
        let _ = (install(&text, with()), uninstall(&text, with()), undo(&text, &text, with()));
    }
}
