//! Which definitions of a server are used, and which are skipped.

use serde_json::json;

use super::*;

#[test]
fn uri_template_matches_exactly_its_expansions() {
    let check = |template: &str, uri: &str, expected: bool| {
        let template = ResourceTemplate {
            uri_template: template.to_owned(),
            name: String::new(),
            raw: Box::default(),
        };
        assert_eq!(template.admits(uri), expected, "{} {uri}", template.uri_template);
    };
    check("note://{id}", "note://1", true);
    check("note://{id}", "notes://1", false);
    check("test://template/{id}/data", "test://template/7/data", true);
    check("test://template/{id}/data", "test://template/7/date", false);
    check("test://template/{id}/data", "test://template/7", false);
    check("a://{x}/{y}", "a://1/2", true);
    check("a://{x}/{y}", "a://1", false);
    check("plain://here", "plain://here", true);
    check("plain://here", "plain://here/and/there", false);
    check("a://{unclosed", "a://b", false);
    check("", "", true);
    check("{", "é", false);
}

#[test]
fn duplicate_tool_name_is_skipped_and_reported() {
    let tool = |name: &str| {
        let text = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        RawValue::from_string(text).unwrap()
    };
    let prompt = |name: &str| RawValue::from_string(format!(r#"{{"name":"{name}"}}"#)).unwrap();
    let raw = RawListing {
        tools: vec![tool("re\u{200b}ad"), tool("read"), tool("\u{200b}"), tool("x\u{200b}")],
        prompts: vec![prompt("p"), prompt("\\u200bp")],
        resources: vec![RawValue::from_string(r#"{"uri":"a:\u001bb"}"#.to_owned()).unwrap()],
        ..RawListing::default()
    };
    let policy = ListingPolicy { max_tools: 9, ..ListingPolicy::default() };
    let listing = Listing::build(ServerName::new("s").unwrap(), &raw, &policy);
    let names: Vec<&str> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["read", "x\u{200b}", "read_a_b"]);
    assert_eq!(listing.prompts.len(), 1);
    assert_eq!(listing.shadowed.len(), 3);
    assert_eq!(listing.skipped, listing.shadowed);
    assert_eq!(listing.resources[0].uri, "a:b");
    assert_eq!(listing.hidden_in_resources[0].0, "a:b");
}

#[test]
fn oversized_prompts_and_resources_are_not_parsed() {
    let padded = |key: &str, size: usize| {
        let text = json!({ "name": "n", key: "a:b", "title": "x".repeat(size) }).to_string();
        RawValue::from_string(text).unwrap()
    };
    for (size, expected) in [(10, 1), (LARGEST_DEFINITION, 0)] {
        let raw = RawListing {
            prompts: vec![padded("description", size)],
            resources: vec![padded("uri", size)],
            resource_templates: vec![padded("uriTemplate", size)],
            ..RawListing::default()
        };
        let listing =
            Listing::build(ServerName::new("s").unwrap(), &raw, &ListingPolicy::default());
        let counts = [listing.prompts.len(), listing.resources.len(), listing.templates.len()];
        assert_eq!(counts, [expected; 3], "{size}");
    }
}

#[test]
fn tools_over_the_limit_are_skipped_and_counted() {
    let tool = |number: usize| {
        let text = format!(r#"{{"name":"t{number}","inputSchema":{{"type":"object"}}}}"#);
        RawValue::from_string(text).unwrap()
    };
    let raw = RawListing { tools: (0..5).map(tool).collect(), ..RawListing::default() };
    let policy = ListingPolicy { max_tools: 3, ..ListingPolicy::default() };
    let listing = Listing::build(ServerName::new("s").unwrap(), &raw, &policy);
    let names: Vec<&str> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["t0", "t1", "t2"]);
    assert_eq!(listing.skipped, ["2 tools beyond `maxTools`"]);
}
