//! Prompts of servers as commands of Pi.

use serde_json::json;
use switchboard_it::client::Client;
use switchboard_it::program::Installed;

use super::{asked, indented, pi};
use crate::PROGRAMS;

const PROMPTS: &str = r#"
[[prompts]]
name = "re.view"
description = "Reviews \u001b[31ma topic\u202e."
arguments = [{ name = "topic", required = true }, { name = "style", required = false }]
messages = [
    { role = "user", text = "Review {topic}, {style}." },
    { role = "assistant", text = "\u001b]0;x\u0007Gladly\u202e." },
]
[[prompts]]
name = "re/view"
description = "Would have the same command."
messages = []
"#;

async fn connected(script: &str) -> (Client, Installed) {
    let installed = Installed::with_fixture(PROGRAMS, "wri ter", script);
    let mut client = pi(&installed, &[]).await;
    asked(&mut client, "connect", json!({ "server": "wri ter" })).await;
    (client, installed)
}

#[tokio::test]
async fn server_prompts_become_pi_commands_with_usage() {
    let (mut client, _home) = connected(PROMPTS).await;
    let answer = client.ask("switchboard/prompts", json!({})).await;
    insta::assert_snapshot!(format!("{:#}", answer["result"]), @r#"
    {
      "text": "/mcp__wri_ter__re_view <topic> [style]: (hidden text was left out of its definition) Reviews a topic.",
      "prompts": [
        {
          "command": "mcp__wri_ter__re_view",
          "server": "wri ter",
          "prompt": "re.view",
          "description": "(hidden text was left out of its definition) Reviews a topic.",
          "usage": "<topic> [style]"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn line_after_a_pi_command_fills_prompt_arguments() {
    let (mut client, _home) = connected(PROMPTS).await;
    let mut table = String::new();
    for line in ["cats", "'big cats' style=short", "", "cats short more", "\"cats", "style=x"] {
        let params = json!({ "server": "wri ter", "prompt": "re.view", "line": line });
        let said = asked(&mut client, "prompt", params).await;
        table.push_str(&format!("{line}\n{}\n", indented(&said)));
    }
    for params in [
        json!({ "server": "wri ter", "prompt": "nothing\u{1b}[2J", "line": "" }),
        json!({ "server": "nobody", "prompt": "re.view", "line": "" }),
        json!({ "server": "wri ter", "prompt": "re.view" }),
    ] {
        let said = asked(&mut client, "prompt", params.clone()).await;
        table.push_str(&format!("{params}\n{}\n", indented(&said)));
    }
    insta::assert_snapshot!(table, @r#"
    cats
        [user] Review cats, .
        [assistant] Gladly.

    'big cats' style=short
        [user] Review big cats, short.
        [assistant] Gladly.


        -32602 Missing required argument: topic.
        Usage: /mcp__wri_ter__re_view <topic> [style]

    cats short more
        -32602 Unexpected argument: more.
        Usage: /mcp__wri_ter__re_view <topic> [style]

    "cats
        -32602 A quote is not closed.
        Usage: /mcp__wri_ter__re_view <topic> [style]

    style=x
        -32602 Missing required argument: topic.
        Usage: /mcp__wri_ter__re_view <topic> [style]

    {"server":"wri ter","prompt":"nothing\u001b[2J","line":""}
        -32602 no server has the prompt `nothing[2J`
        hint: see the prompts with `/mcp prompts`

    {"server":"nobody","prompt":"re.view","line":""}
        -32602 no server is named `nobody`
        hint: see the servers with `/mcp status`

    {"server":"wri ter","prompt":"re.view"}
        -32602 cannot parse `params`: missing field `line` at line 1 column 39
    "#);
}
