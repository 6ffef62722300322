//! Findings from the configuration alone.

use super::configuration::examine;
use super::*;
use crate::config::expand::Surroundings;
use crate::config::layers::{Approvals, Config, ConfigSource, Layer, Tier, merge};
use crate::config::parse::parse;

fn config(user: &str, project: &str) -> Config {
    let files = [("user.json", Tier::User, user), (".mcp.json", Tier::Project, project)];
    let layers = files.map(|(path, tier, text)| {
        let source = ConfigSource { path: path.into(), tier };
        Layer { file: parse(text, &source), source }
    });
    let approvals = Approvals {
        project_root: "/p",
        file_hashes: &|_| Vec::new(),
        is_approved: &|_| false,
        was_approved: &|_| false,
    };
    merge(&layers, &approvals)
}

/// The level, code, server and message of every finding, as text.
fn findings(user: &str, project: &str) -> String {
    let variable = |name: &str| (name == "SET").then(|| "secret-value".to_owned());
    let with = Surroundings { variable: &variable, home: None, project: None };
    let found = examine(&config(user, project), &with);
    let lines = found.iter().map(|finding| {
        let Finding { server, fault } = finding;
        assert!(!finding.hints().is_empty(), "{fault} has no remedy");
        let server = server.as_deref().unwrap_or("-");
        format!("{} {} {server}: {fault}\n", fault.level().as_str(), fault.code())
    });
    lines.collect()
}

#[test]
fn doctor_finds_nothing_in_a_valid_configuration() {
    let sound =
        r#"{ "mcpServers": { "a": { "command": "${SET}", "env": { "X": "${NOT:-x}" } } } }"#;
    assert_eq!(findings(sound, "{}"), "");
}

#[test]
fn doctor_finding_names_its_server_but_shows_no_value() {
    let user = r#"{ "mcpServers": {
        "two": { "command": "x", "url": "https://example.com" },
        "none": { "args": ["x"] },
        "strange": { "url": "gopher://example.com" },
        "off": { "command": "x", "disabled": true, "env": { "A": "${GONE}" } },
        "my-server": { "command": "x" },
        "my_server": { "command": "x" },
        "unset": { "command": "${SET}", "args": ["${GONE}", "--key=${GONE}"],
            "env": { "KEY": "${ALSO_GONE}", "BAD": "!'open" }, "bearerTokenEnv": "NO_TOKEN" },
    } }"#;
    let project = r#"{ "mcpServers": {
        "theirs": { "command": "${GONE}" },
        "greedy": { "command": "x", "autoApprove": true } } }"#;
    insta::assert_snapshot!(findings(user, project), @r#"
    error several_endpoints two: user.json:2:9: server `two` must have only one of `command`, `url` and `socket`
    error forbidden_key -: .mcp.json:3:37: `mcpServers.greedy.autoApprove` is not allowed in a project file
    error no_endpoint none: user.json:3:9: server `none` needs one of `command`, `url` and `socket`
    error unsupported_scheme strange: user.json:4:22: the `url` of server `strange` must begin with http://, https://, sse://, ws:// or wss://
    warning no_effect unset: user.json:9:64: `bearerTokenEnv` of server `unset` has no effect beside `command`
    warning colliding_names my_server: the server name looks like `my-server`
    warning untrusted theirs: the server comes from this project and was not approved
    note disabled off: the entry disables this server
    error missing_variable unset: `args` needs the environment variable `GONE`, which is not set
    error missing_variable unset: `env.KEY` needs the environment variable `ALSO_GONE`, which is not set
    error bad_value unset: `env.BAD` cannot be expanded
    error missing_variable unset: `bearerTokenEnv` needs the environment variable `NO_TOKEN`, which is not set
    "#);
}

#[test]
fn doctor_finding_about_malformed_file_has_line_and_column() {
    insta::assert_snapshot!(findings("{\n  oops", "{}"), @r#"
    error config_syntax -: user.json:2:3: expected string for object property
    "#);
}

#[test]
fn doctor_suggests_installation_or_correction_for_missing_program() {
    let on_path = || ["git", "nginx", "node-gyp", "fixture-server"].map(str::to_owned).into_iter();
    let check = |command: &str, expected: &str| {
        let finding = Finding::of("a", not_found(command, on_path()));
        let seen = format!("{} {:?}", finding.fault.code(), finding.hints());
        assert_eq!(seen, expected);
    };
    check("npx", r#"launcher_missing [Install("Node.js")]"#);
    let slip =
        r#"command_not_found [DidYouMean(["fixture-server"]), CheckCommand("fixtrue-server")]"#;
    check("fixtrue-server", slip);
    check("something-else", r#"command_not_found [CheckCommand("something-else")]"#);
}
