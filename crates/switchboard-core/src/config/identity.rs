//! The identity with which a server is used: a hash of all values that its entry refers to. Two
//! credentials have different identities, so they never share a cached listing.

use super::canonical::{Canon, Canonical};
use super::secrecy::names_a_secret;
use super::server::ServerEntry;
use super::trust::{definition_hash, reach};

/// The identity of a server, computed from its entry and the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub hash: [u8; 32],
    pub certainty: Certainty,
}

/// Whether servers with equal identities certainly have the same credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    Known,
    /// The credential may differ, because a program prints it or any environment variable may hold
    /// it.
    Unknown,
}

/// The environment and paths that replace the variables of an entry.
pub struct Values<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// All environment variables, for servers with `inheritEnv`.
    pub inherited: &'a [(&'a str, &'a str)],
    /// Whether a project's file defines the server.
    pub of_project: bool,
}

pub fn identity(definition: &ServerEntry, values: &Values<'_>) -> Identity {
    let mut canon = Canon::new("switchboard identity 1");
    values.of_project.encode(&mut canon);
    definition_hash(definition).to_string().encode(&mut canon);
    // The definition hash has only the names of `env` and `headers`. The identity also has their
    // values.
    definition.env.encode(&mut canon);
    definition.headers.encode(&mut canon);
    definition.auth.encode(&mut canon);
    definition.bearer_token.encode(&mut canon);
    definition.bearer_token_env.encode(&mut canon);
    definition.bearer_token_store.encode(&mut canon);
    definition.account.encode(&mut canon);
    definition.oauth.encode(&mut canon);
    definition.request_headers_command.encode(&mut canon);
    definition.inherit_env.encode(&mut canon);
    let reach = reach(definition);
    canon.count(reach.variables.len());
    for name in &reach.variables {
        (name, (values.variable)(name)).encode(&mut canon);
    }
    let inherits = definition.inherit_env == Some(true);
    let secrets = values.inherited.iter().filter(|(name, _)| inherits && names_a_secret(name));
    secrets.for_each(|secret| secret.encode(&mut canon));
    let is_printed_by_program =
        !reach.commands.is_empty() || definition.request_headers_command.is_some();
    let certainty =
        if is_printed_by_program || inherits { Certainty::Unknown } else { Certainty::Known };
    Identity { hash: canon.finish(), certainty }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::tests::entry;

    fn of(text: &str, variables: &[(&str, &str)]) -> Identity {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let values = Values { variable: &variable, inherited: variables, of_project: false };
        identity(&entry(text), &values)
    }

    /// Entries with a credential in the variable `T`, or as literal text in place of `{}`.
    const ENTRIES: [&str; 18] = [
        r#"{ "url": "http://h/mcp", "bearerToken": "${T}" }"#,
        r#"{ "url": "http://h/mcp", "bearerToken": "pre-$env:T-post" }"#,
        r#"{ "url": "http://h/mcp", "bearerTokenEnv": "T" }"#,
        r#"{ "url": "http://h/mcp", "headers": { "X-Key": "${T}" } }"#,
        r#"{ "url": "http://h/mcp", "headers": { "Authorization": "Basic ${T:-none}" } }"#,
        r#"{ "url": "http://h/mcp?key=${T}" }"#,
        r#"{ "url": "http://${T}@h/mcp" }"#,
        r#"{ "url": "http://h/${T}/mcp" }"#,
        r#"{ "url": "http://h/", "auth": { "type": "basic", "username": "${T}", "password": "p" } }"#,
        r#"{ "url": "http://h/", "auth": { "type": "basic", "username": "u", "password": "${T}" } }"#,
        r#"{ "url": "http://h/", "auth": { "type": "basic", "username": "u", "passwordEnv": "T" } }"#,
        r#"{ "url": "http://h/", "auth": { "type": "api-key", "key": "${T}" } }"#,
        r#"{ "url": "http://h/", "auth": { "type": "api-key", "keyEnv": "T" } }"#,
        r#"{ "url": "http://h/", "oauth": { "clientId": "c", "clientSecret": "${T}" } }"#,
        r#"{ "url": "http://h/", "oauth": { "clientId": "${T}" } }"#,
        r#"{ "command": "x", "env": { "TOKEN": "${T}" } }"#,
        r#"{ "command": "x", "args": ["--token", "${T}"] }"#,
        r#"{ "command": "x", "env": { "TOKEN": "!pass show ${T}" } }"#,
    ];

    #[test]
    fn changed_variable_value_changes_the_server_identity() {
        for text in ENTRIES {
            let [alice, bob] = ["alice", "bob"].map(|value| of(text, &[("T", value)]));
            assert_ne!(alice.hash, bob.hash, "{text}");
            assert_ne!(of(text, &[]).hash, alice.hash, "{text}");
            let same = of(text, &[("T", "alice"), ("OTHER_TOKEN", "changed")]);
            assert_eq!(same, alice, "{text}");
            // A literal value in the file is part of the identity too.
            let literal = text.replace("${T}", "alice").replace("$env:T", "alice");
            if literal != text {
                assert_ne!(of(&literal, &[]).hash, of(&literal.replace("alice", "bob"), &[]).hash);
            }
        }
    }

    #[test]
    fn server_identity_depends_on_account_but_not_tool_filters() {
        let entry = |account: &str| format!("{{ \"url\": \"http://h/\" {account} }}");
        let plain = of(&entry(""), &[]);
        assert_ne!(plain.hash, of(&entry(", \"account\": \"work\""), &[]).hash);
        assert_eq!(plain, of(&entry(", \"includeTools\": [\"a\"], \"debug\": true"), &[]));
    }

    #[test]
    fn command_output_and_inherited_environment_make_identity_uncertain() {
        let unknown = [
            r#"{ "url": "http://h/", "bearerToken": "!pass show a" }"#,
            r#"{ "url": "http://h/", "headers": { "A": "!pass show a" } }"#,
            r#"{ "url": "http://h/", "requestHeadersCommand": { "command": "sign" } }"#,
            r#"{ "url": "http://h/", "oauth": { "clientSecret": "!pass show a" } }"#,
            r#"{ "command": "x", "env": { "A": "!pass show a" } }"#,
            r#"{ "command": "x", "inheritEnv": true }"#,
        ];
        for text in unknown {
            assert_eq!(of(text, &[]).certainty, Certainty::Unknown, "{text}");
        }
        let inheriting = unknown[5];
        assert_ne!(of(inheriting, &[("GH_TOKEN", "a")]), of(inheriting, &[("GH_TOKEN", "b")]));
        assert_eq!(of(inheriting, &[("SHLVL", "1")]), of(inheriting, &[("SHLVL", "2")]));
        for text in [r#"{ "url": "http://h/" }"#, r#"{ "command": "x", "args": ["!x"] }"#] {
            assert_eq!(of(text, &[]).certainty, Certainty::Known, "{text}");
        }
    }

    proptest! {
        /// Different credentials have different identities, in every field and form of an entry.
        #[test]
        fn server_identities_differ_exactly_if_credentials_differ(
            entry in 0..ENTRIES.len(), one in "[ -~]{0,12}", other in "[ -~]{0,12}",
        ) {
            let [a, b] = [&one, &other].map(|value| of(ENTRIES[entry], &[("T", value)]));
            prop_assert_eq!(a.hash == b.hash, one == other);
        }

        #[test]
        fn different_server_entries_have_different_identities(one in 0..ENTRIES.len(), other in 0..ENTRIES.len()) {
            let [a, b] = [one, other].map(|entry| of(ENTRIES[entry], &[("T", "same")]));
            prop_assert_eq!(a.hash == b.hash, one == other);
        }
    }
}
