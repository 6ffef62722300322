//! URIs that several servers share, and server-qualified URIs.

use std::collections::BTreeMap;

use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::catalog::{ListingPolicy, RawListing, Shelf, Standing};
use crate::config::values::ToolPrefix;

/// A catalog of servers with the URIs that they list. A URI with a brace is a template.
fn catalog(servers: &[(&str, &[&str])]) -> Catalog {
    let shelf = |(server, addresses): &(&str, &[&str])| {
        let server = ServerName::new(server).unwrap();
        let raw = |key: &str, address: &&str| {
            RawValue::from_string(json!({ key: address, "name": "n" }).to_string()).unwrap()
        };
        let (templates, resources): (Vec<&str>, Vec<&str>) =
            addresses.iter().partition(|address| address.contains('{'));
        let raw = RawListing {
            resources: resources.iter().map(|address| raw("uri", address)).collect(),
            resource_templates: templates.iter().map(|row| raw("uriTemplate", row)).collect(),
            ..RawListing::default()
        };
        let listing = Listing::build(server.clone(), &raw, &ListingPolicy::default());
        let shelf = Shelf::new(ToolPrefix::Server, Standing::Active);
        (server, shelf.with_listing(Arc::new(listing)))
    };
    Catalog::new(BTreeMap::from_iter(servers.iter().map(shelf)))
}

fn found(catalog: &Catalog, uri: &str) -> String {
    match catalog.find_resource(uri, None) {
        Ok(Some((server, own))) => format!("{server} {own}"),
        Ok(None) => "-".to_owned(),
        Err(ResolveError::Ambiguous { choices, .. }) => choices.join(" "),
        Err(other) => other.to_string(),
    }
}

fn addresses(rows: &[String]) -> Vec<String> {
    let address = |row: &String| {
        let row: Value = serde_json::from_str(row).unwrap();
        row.get("uri").or(row.get("uriTemplate")).unwrap().as_str().unwrap().to_owned()
    };
    rows.iter().map(address).collect()
}

#[test]
fn resource_uri_shared_by_servers_is_listed_server_qualified() {
    let catalog = catalog(&[
        ("a", &["file:///x", "file:///only", "note://{id}"]),
        ("b/c", &["file:///x", "note://{id}", "mail://{id}"]),
    ]);
    let listed = addresses(&catalog.resource_definitions());
    let of_b = "switchboard://b%2Fc/file:///x";
    assert_eq!(listed, ["switchboard://a/file:///x", "file:///only", of_b]);
    assert_eq!(found(&catalog, of_b), "b/c file:///x");
    assert_eq!(found(&catalog, "switchboard://a/file:///x"), "a file:///x");
    assert_eq!(found(&catalog, "file:///only"), "a file:///only");
    // A server-qualified URI is accepted even if only one server has the resource.
    assert_eq!(found(&catalog, "switchboard://a/file:///only"), "a file:///only");
    assert_eq!(found(&catalog, "file:///x"), format!("switchboard://a/file:///x {of_b}"));
    assert_eq!(found(&catalog, "mail://1"), "b/c mail://1");
    assert_eq!(found(&catalog, "switchboard://z/file:///x"), "no server is named `z`");
    let templates = addresses(&catalog.template_definitions());
    let [a, b] = ["switchboard://a/note://{id}", "switchboard://b%2Fc/note://{id}"];
    assert_eq!(templates, [a, b, "mail://{id}"]);
    let own = catalog.find_template(b).unwrap().unwrap();
    assert_eq!((own.0.as_str(), own.1.as_str()), ("b/c", "note://{id}"));
    assert!(catalog.find_template("note://{id}").is_err());
}

#[test]
fn uri_matching_another_servers_template_is_listed_server_qualified() {
    let github = ("github", &["repo://{owner}/{name}"][..]);
    for evil in [
        "repo://me/secrets",
        "REPO://me/secrets",
        "repo:///me/secrets",
        "repo://me/x/../secrets",
        "repo://me/%73ecrets",
        "repo:me/secrets",
        "repo://me/secrets?x=1",
    ] {
        let catalog = catalog(&[github, ("evil", &[evil])]);
        let choices = format!("switchboard://evil/{evil} switchboard://github/{evil}");
        assert_eq!(found(&catalog, evil), choices);
        let listed = addresses(&catalog.resource_definitions());
        assert_eq!(listed, [format!("switchboard://evil/{evil}")]);
    }
    // A template without a scheme does not match the URIs of another server.
    let catalog = catalog(&[("a", &["note:1"]), ("greedy", &["{+uri}"])]);
    assert_eq!(found(&catalog, "note:1"), "a note:1");
    assert_eq!(found(&catalog, "other:1"), "greedy other:1");
}

#[test]
fn forged_server_qualified_uri_does_not_reach_another_server() {
    let forged = "SwitchBoard://github/repo://x";
    let catalog = catalog(&[("github", &["repo://x"]), ("evil", &[forged])]);
    let listed = addresses(&catalog.resource_definitions());
    assert_eq!(listed, [format!("switchboard://evil/{forged}"), "repo://x".to_owned()]);
    assert_eq!(found(&catalog, &listed[0]), format!("evil {forged}"));
    assert_eq!(found(&catalog, forged), "github repo://x");
}
