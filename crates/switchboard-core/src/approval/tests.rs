//! Which approval rule takes precedence, and which later calls an approval covers.

use serde_json::value::RawValue;

use super::*;
use crate::config::values::Template;

fn target(name: &str, annotations: &str, description: &str) -> Resolved {
    let definition = format!(
        r#"{{"name":"{name}","description":"{description}","inputSchema":{{}},"annotations":{annotations}}}"#
    );
    let raw = RawValue::from_string(definition).unwrap();
    Resolved {
        server: ServerName::new("files").unwrap(),
        shown: Arc::from(format!("files_{name}")),
        entry: Arc::new(Entry::tool(&raw).unwrap()),
        pin: Pin::Same,
        claims: None,
    }
}

fn checked(name: &str, annotations: &str) -> Checked {
    Checked { target: target(name, annotations, ""), args: Args::default() }
}

fn asks(rules: &Rules, grants: &Grants, checked: Checked) -> bool {
    matches!(decide(rules, grants, Access::Full, checked), Decision::Ask(_))
}

fn patterns(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn matching(texts: &[&str]) -> Option<ToolRule> {
    Some(ToolRule::Matching(patterns(texts)))
}

/// Whether a read-only, a writing, a destructive and an unannotated tool need approval (`?`), run
/// (`+`) or are refused (`-`).
fn check(settings: Settings, server: ServerEntry, expected: &str) {
    let rules = Rules::new(&server, &settings);
    let seen = [
        ("read", r#"{"readOnlyHint":true}"#),
        ("write", r#"{"readOnlyHint":false}"#),
        ("delete", r#"{"destructiveHint":true}"#),
        ("silent", "{}"),
    ]
    .map(|(name, hints)| {
        match decide(&rules, &Grants::default(), Access::Full, checked(name, hints)) {
            Decision::Free(_) => '+',
            Decision::Ask(_) => '?',
            Decision::Refused(_) => '-',
        }
    });
    assert_eq!(String::from_iter(seen), expected, "{rules:?}");
}

fn policy(approve: ApprovePolicy) -> Settings {
    Settings { approve, ..Settings::default() }
}

fn asking(rule: ToolRule) -> ServerEntry {
    ServerEntry { approve_tools: Some(rule), ..ServerEntry::default() }
}

fn unasked(rule: ToolRule) -> ServerEntry {
    ServerEntry { auto_approve: Some(rule), ..ServerEntry::default() }
}

#[test]
fn allow_pattern_without_slash_matches_shown_names_only() {
    let destroys = r#"{"destructiveHint":true}"#;
    let own = || checked("delete", destroys);
    let other = || {
        let mut checked = checked("delete", destroys);
        checked.target.server = ServerName::new("files_x").unwrap();
        checked.target.shown = Arc::from("s12345678_files_x_delete");
        checked
    };
    for (pattern, asks_own, asks_other) in [
        ("files_*", false, true),
        ("files/*", false, true),
        ("files_x/*", true, false),
        ("files*/delete", false, false),
        ("*", false, false),
        ("delete", true, true),
    ] {
        let settings = Settings { allow: patterns(&[pattern]), ..Settings::default() };
        let rules = Rules::new(&ServerEntry::default(), &settings);
        let seen = [own(), other()].map(|call| asks(&rules, &Grants::default(), call));
        assert_eq!(seen, [asks_own, asks_other], "{pattern}");
    }
}

#[test]
fn project_tool_prefix_does_not_widen_allow_rules() {
    let destroys = || checked("delete", r#"{"destructiveHint":true}"#);
    for (pattern, mode, shown) in [
        ("mcp_*", ToolPrefix::Mcp, "mcp__files_delete"),
        ("mcp__*", ToolPrefix::Mcp, "mcp__files_delete"),
        ("files_*", ToolPrefix::Server, "files_delete"),
        ("files_delete", ToolPrefix::Server, "files_delete"),
    ] {
        let call = |shown: &str| {
            let mut call = destroys();
            call.target.shown = Arc::from(shown);
            call
        };
        let settings = |tool_prefix, own_tool_prefix| {
            let allow = patterns(&[pattern]);
            Settings { allow, tool_prefix, own_tool_prefix, ..Settings::default() }
        };
        let asks = |settings: &Settings| {
            let rules = Rules::new(&ServerEntry::default(), settings);
            asks(&rules, &Grants::default(), call(shown))
        };
        assert!(!asks(&settings(mode, mode)), "{pattern}: the user's own prefix");
        let own = if mode == ToolPrefix::Mcp { ToolPrefix::Server } else { ToolPrefix::Mcp };
        assert!(asks(&settings(mode, own)), "{pattern}: a project's prefix");
    }
}

#[test]
fn approve_setting_is_evaluated_against_declared_annotations() {
    let check = |approve, expected| check(policy(approve), ServerEntry::default(), expected);
    check(ApprovePolicy::Destructive, "++?+");
    check(ApprovePolicy::Writes, "+???");
    check(ApprovePolicy::All, "????");
    check(ApprovePolicy::None, "++++");
}

#[test]
fn server_approve_tools_overrides_the_approve_setting() {
    check(policy(ApprovePolicy::None), asking(ToolRule::All), "????");
    check(policy(ApprovePolicy::All), asking(ToolRule::None), "++++");
    let globs = ToolRule::Matching(patterns(&["w*", "files_sil*"]));
    check(policy(ApprovePolicy::None), asking(globs), "+?+?");
}

#[test]
fn server_approve_tools_overrides_approve_tools_of_settings() {
    let general = Settings { approve_tools: ToolRule::All, ..policy(ApprovePolicy::None) };
    check(general.clone(), ServerEntry::default(), "????");
    check(general.clone(), asking(ToolRule::None), "++++");
    check(general, asking(ToolRule::Matching(patterns(&["write"]))), "+?++");
}

#[test]
fn auto_approve_skips_approval_unless_approve_tools_matches() {
    check(policy(ApprovePolicy::All), unasked(ToolRule::All), "++++");
    check(policy(ApprovePolicy::All), unasked(ToolRule::None), "????");
    let globs = ToolRule::Matching(patterns(&["read", "delete"]));
    check(policy(ApprovePolicy::All), unasked(globs.clone()), "+?+?");
    let general = Settings { approve_tools: ToolRule::All, ..policy(ApprovePolicy::None) };
    check(general, unasked(globs.clone()), "+?+?");
    let both = ServerEntry { approve_tools: matching(&["delete"]), ..unasked(globs) };
    check(policy(ApprovePolicy::All), both, "+???");
}

#[test]
fn allow_rule_skips_approval_and_deny_rule_always_refuses() {
    let settings = |allow: &[&str], deny: &[&str]| Settings {
        allow: patterns(allow),
        deny: patterns(deny),
        ..policy(ApprovePolicy::All)
    };
    check(settings(&["files/*"], &[]), asking(ToolRule::All), "++++");
    let check = |allow: &[&str], deny: &[&str], expected: &str| {
        check(settings(allow, deny), ServerEntry::default(), expected);
    };
    check(&["files_delete"], &[], "??+?");
    check(&["files/*"], &[], "++++");
    check(&["file/*", "delete", "mcp__files_delete"], &[], "????");
    check(&["files/*"], &["files/delete"], "++-+");
    check(&[], &["files_*"], "----");
    check(&[], &["*"], "----");
    // A call finds the tool by each of these names.
    for spelling in ["delete", "mcp__files_delete", "files_delete"] {
        check(&["*"], &[spelling], "++-+");
    }
}

/// A project may set the prefix. The shown names that result must not match `allow`, and must still
/// match `approveTools`.
#[test]
fn tool_shown_without_prefix_bypasses_no_approval_rule() {
    let bare = || {
        let target = Resolved { shown: Arc::from("gh_wipe"), ..target("gh_wipe", "{}", "") };
        Checked { target, args: Args::default() }
    };
    let allowed = Settings { allow: patterns(&["gh_*"]), ..policy(ApprovePolicy::All) };
    let rules = Rules::new(&ServerEntry::default(), &allowed);
    assert!(asks(&rules, &Grants::default(), bare()));
    let asked = Settings {
        approve_tools: ToolRule::Matching(patterns(&["files_*"])),
        ..policy(ApprovePolicy::None)
    };
    assert!(asks(&Rules::new(&ServerEntry::default(), &asked), &Grants::default(), bare()));
}

#[test]
fn deny_rule_overrides_grants_and_is_named_in_refusal() {
    let settings = Settings { deny: patterns(&["x*", "*/a"]), ..policy(ApprovePolicy::All) };
    let free = Rules::new(&ServerEntry::default(), &policy(ApprovePolicy::All));
    let mut grants = Grants::default();
    question(&free, &grants, checked("a", "{}"))
        .settle(ApprovalAnswer::Server, &mut grants)
        .unwrap();
    let rules = Rules::new(&ServerEntry::default(), &settings);
    let Decision::Refused(refusal) = decide(&rules, &grants, Access::Full, checked("a", "{}"))
    else {
        panic!("a refusal");
    };
    assert_eq!(refusal.cause, RefusalCause::Denied { pattern: "*/a".to_owned() });
}

fn question(rules: &Rules, grants: &Grants, checked: Checked) -> Question {
    match decide(rules, grants, Access::Full, checked) {
        Decision::Ask(question) => question,
        other => panic!("a question, not {other:?}"),
    }
}

#[test]
fn approval_of_a_tool_ends_if_its_definition_changes() {
    let rules = Rules::new(&ServerEntry::default(), &policy(ApprovePolicy::All));
    let mut grants = Grants::default();
    let question = question(&rules, &grants, checked("a", "{}"));
    let approved = question.settle(ApprovalAnswer::Tool, &mut grants).unwrap();
    assert_eq!(approved.by(), By::User);
    assert!(!asks(&rules, &grants, checked("a", "{}")));
    assert!(asks(&rules, &grants, checked("b", "{}")));
    let changed = Checked { target: target("a", "{}", "now worse"), args: Args::default() };
    assert!(asks(&rules, &grants, changed));
}

#[test]
fn only_server_wide_approval_applies_to_other_tools() {
    let rules = Rules::new(&ServerEntry::default(), &policy(ApprovePolicy::All));
    let mut grants = Grants::default();
    for (answer, still_asks) in
        [(ApprovalAnswer::No, true), (ApprovalAnswer::Once, true), (ApprovalAnswer::Server, false)]
    {
        let question = question(&rules, &grants, checked("a", "{}"));
        assert_eq!(question.settle(answer, &mut grants).is_ok(), answer != ApprovalAnswer::No);
        assert_eq!(asks(&rules, &grants, checked("b", "{}")), still_asks);
    }
}

#[test]
fn approval_of_a_server_ends_if_its_definition_changes() {
    let of = |command: &str| {
        let server =
            ServerEntry { command: Some(Template::new(command)), ..ServerEntry::default() };
        Rules::new(&server, &policy(ApprovePolicy::All))
    };
    let mut grants = Grants::default();
    let asked = question(&of("one"), &grants, checked("a", "{}"));
    asked.settle(ApprovalAnswer::Server, &mut grants).unwrap();
    assert!(!asks(&of("one"), &grants, checked("b", "{}")));
    assert!(asks(&of("another"), &grants, checked("b", "{}")));
}

#[test]
fn suggested_allow_pattern_matches_only_the_approved_tool() {
    let odd = pattern_of(&target("a*", "{}", ""));
    let rules = Settings { allow: vec![odd], ..policy(ApprovePolicy::All) };
    let rules = Rules::new(&ServerEntry::default(), &rules);
    assert!(!asks(&rules, &Grants::default(), checked("a*", "{}")));
    assert!(asks(&rules, &Grants::default(), checked("ab", "{}")));
}

#[test]
fn pin_mismatch_is_refused_only_if_pins_is_block() {
    for pins in [Pins::Off, Pins::Warn, Pins::Block] {
        let settings = Settings { pins, allow: patterns(&["*"]), ..policy(ApprovePolicy::All) };
        let rules = Rules::new(&ServerEntry::default(), &settings);
        for pin in [Pin::Same, Pin::Changed, Pin::New, Pin::Unknown] {
            let mut checked = checked("a", "{}");
            checked.target.pin = pin;
            let refused = match decide(&rules, &Grants::default(), Access::Full, checked) {
                Decision::Refused(refusal) => Some(refusal.cause),
                Decision::Free(_) | Decision::Ask(_) => None,
            };
            let blocked = pins == Pins::Block && pin != Pin::Same;
            assert_eq!(refused, blocked.then_some(RefusalCause::NotAccepted(pin)));
        }
    }
}

#[test]
fn allow_pattern_of_a_server_ignores_similarly_named_servers() {
    let settings = Settings { allow: patterns(&["files/*"]), ..policy(ApprovePolicy::All) };
    let rules = Rules::new(&ServerEntry::default(), &settings);
    let mut other = checked("a", "{}");
    other.target.server = ServerName::new("files/evil").unwrap();
    other.target.shown = Arc::from("files_evil_a");
    assert!(asks(&rules, &Grants::default(), other.clone()));
    let settings = Settings { allow: vec![pattern_of(&other.target)], ..settings };
    let rules = Rules::new(&ServerEntry::default(), &settings);
    assert!(!asks(&rules, &Grants::default(), other));
}

/// Reads the annotations independently of the code under test.
mod read_only_access {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn hint() -> impl Strategy<Value = Value> {
        let odd = [json!(null), json!("true"), json!(1), json!([true]), json!({ "a": true })];
        prop_oneof![
            4 => Just(json!(true)),
            2 => Just(json!(false)),
            1 => proptest::sample::select(odd.to_vec()),
        ]
    }

    fn annotations() -> impl Strategy<Value = Value> {
        let names = ["readOnlyHint", "destructiveHint", "idempotentHint", "readonlyHint", "title"];
        let names = proptest::sample::select(names.to_vec());
        proptest::collection::btree_map(names, hint(), 0..5).prop_map(|members| json!(members))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn read_only_access_never_allows_a_write(
            declared in annotations(),
            policy in 0..4_usize,
            allow in any::<bool>(),
            granted in any::<bool>(),
        ) {
            let policies = [
                ApprovePolicy::None,
                ApprovePolicy::Destructive,
                ApprovePolicy::Writes,
                ApprovePolicy::All,
            ];
            let allow = if allow { vec!["*".to_owned()] } else { Vec::new() };
            let settings = Settings { approve: policies[policy], allow, ..Settings::default() };
            let rules = Rules::new(&ServerEntry::default(), &settings);
            let mut grants = Grants::default();
            if granted {
                grants.servers.insert(ServerName::new("files").unwrap(), rules.definition);
            }
            let reads = declared["readOnlyHint"] == true && declared["destructiveHint"] != true;
            let checked = checked("tool", &declared.to_string());
            match decide(&rules, &grants, Access::ReadOnly, checked) {
                Decision::Refused(refusal) => {
                    prop_assert_eq!(refusal.cause, RefusalCause::NotReadOnly);
                    prop_assert!(!reads);
                }
                Decision::Free(_) | Decision::Ask(_) => prop_assert!(reads),
            }
        }
    }
}
