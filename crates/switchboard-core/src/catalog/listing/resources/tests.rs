//! Which resources `includeTools` and `excludeTools` exclude, and the names with which rules match
//! the rest.

use super::super::{Listing, RawListing};
use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn listing(include: Option<&[&str]>, exclude: &[&str]) -> Listing {
    let listed = RawListing {
        resources: vec![
            raw(r#"{"uri":"file:///notes.md","name":"notes"}"#),
            raw(r#"{"uri":"file:///secret.txt","name":"secret"}"#),
        ],
        resource_templates: vec![
            raw(r#"{"uriTemplate":"file:///{+path}","name":"any file"}"#),
            raw(r#"{"uriTemplate":"user://{id}/key","name":"keys"}"#),
        ],
        ..RawListing::default()
    };
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let policy = ListingPolicy {
        include: include.map(texts),
        exclude: texts(exclude),
        max_tools: 100,
        ..ListingPolicy::default()
    };
    Listing::build(ServerName::new("files").unwrap(), &listed, &policy)
}

/// URIs that a server may treat as `file:///secret.txt`.
const SECRETS: [&str; 26] = [
    "file:///secret.txt",
    "FILE:///secret.txt",
    "file:///./secret.txt",
    "file:///x/../secret.txt",
    "file:////secret.txt",
    "file:///%73ecret.txt",
    "file:///secret%2etxt",
    "file:///%2573ecret.txt",
    "file:///SECRET.TXT",
    "file:///secret.txt?x=1",
    "file:///secret.txt#top",
    "file:\\\\\\secret.txt",
    "file:secret.txt",
    " file:///secret.txt",
    "file://localhost/secret.txt",
    "file://LOCALHOST/secret.txt",
    "file://\u{ff4c}ocalhost/secret.txt",
    "file:///sec\tret.txt",
    "fi\rle:///secret.txt",
    "file:///sec\nret.txt",
    "file:///secret.txt\0",
    "\u{1f}file:///secret.txt",
    "file:///z/.\r./secret.txt",
    "file:///z/%2\re%2e/secret.txt",
    "file:///\u{ff53}ecret.txt",
    "file:///secret.txt/.",
];

#[test]
fn excluded_resource_is_unreadable_in_any_uri_spelling() {
    for exclude in ["read_secret", "files/read_secret", "*secret*", "read_file_secret_txt"] {
        let listing = listing(None, &[exclude]);
        for uri in SECRETS {
            assert!(listing.hides(uri), "{exclude} {uri}");
        }
        for uri in ["file:///notes.md", "file:///other.txt", "user://1/key"] {
            assert!(!listing.hides(uri), "{exclude} {uri}");
        }
        // A URI that is not listed, or an unusual spelling of a template's URI, can mean any
        // resource.
        for uri in ["x:y", "file:///a/../x", "file:///a%20b", "user://1/key?x"] {
            assert!(listing.hides(uri), "{exclude} {uri}");
        }
    }
}

#[test]
fn excluded_resource_template_is_neither_listed_nor_readable() {
    let excluding = listing(None, &["read_keys"]);
    assert_eq!(excluding.templates.len(), 1);
    for uri in ["user://1/key", "USER://1/KEY", "user://a%2Fb/key", "user://1/key?x"] {
        assert!(excluding.hides(uri), "{uri}");
    }
    let including = listing(Some(&["search", "read_notes"]), &[]);
    assert_eq!(including.templates, []);
    assert!(!including.hides("file:///notes.md"));
    for uri in SECRETS.into_iter().chain(["file:///etc/passwd", "user://1/key", "x:y"]) {
        assert!(including.hides(uri), "{uri}");
    }
    let template = listing(Some(&["read_any_file"]), &[]);
    assert!(!template.hides("file:///etc/hosts"));
    for uri in SECRETS.into_iter().chain(["user://1/key"]) {
        assert!(template.hides(uri), "{uri}");
    }
}

#[test]
fn rules_match_a_resource_in_any_uri_spelling() {
    let listing = listing(None, &[]);
    for uri in SECRETS {
        let names = listing.names_of_resource(uri).own;
        assert!(names.iter().any(|name| name.as_str() == "read_secret"), "{uri} {names:?}");
    }
    let names = |name: &str| {
        let json = serde_json::json!({ "uri": "a:b", "name": name }).to_string();
        let entry = Resource::read(&raw(&json)).unwrap().entry().unwrap();
        entry.names().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for look_alike in ["secret", "s\u{435}cret", "se\u{200b}cret", "\u{ff53}ecret", "SECRET"] {
        let names = names(look_alike);
        assert_eq!(names.first().unwrap(), "read_secret", "{look_alike:?}");
        assert_eq!(names.last().unwrap(), "read_a_b", "{look_alike:?}");
    }
    assert_eq!(names("a/B (c)"), ["read_a_b_c", "read_a/B (c)", "read_a_b"]);
}

#[test]
fn uri_matching_a_template_belongs_to_the_templates_server() {
    let listing = listing(None, &[]);
    for uri in ["file:///x", "FILE:///x", "user://7/key", "file:///notes.md"] {
        assert!(listing.claims(&Address::of(uri)), "{uri}");
    }
    for uri in ["user://7", "other:x", ""] {
        assert!(!listing.claims(&Address::of(uri)), "{uri}");
    }
    let anything = ResourceTemplate::read(&raw(r#"{"uriTemplate":"{+uri}"}"#)).unwrap();
    assert!(anything.admits("other:x") && !anything.has_literal_scheme());
}
