//! The output of `--json`, which programs read.

use serde_json::{Value, json};
use switchboard_it::program::Installed;

use super::{configured, transcript};

/// The servers of [`configured`], with `demo` listed.
async fn configured_and_listed() -> Installed {
    let installed = configured();
    assert_eq!(installed.run(["connect", "demo"]).await.code, Some(0));
    installed
}

#[tokio::test]
async fn status_json_matches_its_snapshot() {
    let installed = configured_and_listed().await;
    insta::assert_snapshot!(transcript(&installed, "status --json").await, @r#"
    exit 0
    --- stdout
    {
      "servers": [
        {
          "name": "all",
          "status": "not-connected",
          "tools": null,
          "resources": 0,
          "lifecycle": "lazy",
          "trust": "user"
        },
        {
          "name": "broken",
          "status": "not-connected",
          "tools": null,
          "resources": 0,
          "lifecycle": "lazy",
          "trust": "user"
        },
        {
          "name": "demo",
          "status": "cached",
          "tools": 5,
          "resources": 0,
          "lifecycle": "lazy",
          "trust": "user"
        }
      ],
      "tools": 5,
      "connected": 0,
      "stale": [],
      "mistakes": []
    }
    --- stderr
    "#);
}

#[tokio::test]
async fn tokens_option_estimates_token_costs_as_json_and_table() {
    let installed = configured_and_listed().await;
    let ran = installed.run(["status", "--tokens", "--json"]).await;
    let status: Value = serde_json::from_str(&ran.stdout).unwrap();
    let servers = status["servers"].as_array().unwrap();
    let costs = servers.iter().map(|server| server["tokens"].is_number());
    assert_eq!(costs.collect::<Vec<_>>(), [false, false, true], "{}", ran.stdout);
    let tokens = &status["tokens"];
    let number = |key: &str| tokens[key].as_i64().unwrap();
    assert_eq!(number("direct"), servers[2]["tokens"].as_i64().unwrap());
    assert_eq!(number("saved"), number("direct") - number("shown"));
    assert_eq!(number("card"), number("shown"));
    assert_eq!(tokens["notListed"], json!(["all", "broken"]));
    assert_eq!((&tokens["toolset"], &tokens["estimated"]), (&json!("auto"), &json!(true)));

    let ran = installed.run(["status", "--tokens"]).await;
    let lines = ran.stdout.lines().filter(|line| line.ends_with("?  not listed yet"));
    assert_eq!(lines.count(), 2, "{}", ran.stdout);
    insta::assert_snapshot!(ran.stderr, @r"
    tokens of o200k, estimated; usually within 3 %
    2 servers not listed yet: all and broken (try `switchboard connect all`)
    ");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one snapshot")]
async fn tools_json_matches_its_snapshot() {
    let installed = configured_and_listed().await;
    insta::assert_snapshot!(transcript(&installed, "tools demo --json").await, @r#"
    exit 0
    --- stdout
    {
      "tools": [
        {
          "name": "demo_echo",
          "server": "demo",
          "tool": "echo",
          "description": "Returns the text.",
          "title": null,
          "signature": "demo_echo(text?: string)",
          "inputSchema": {
            "type": "object",
            "properties": {
              "text": {
                "type": "string"
              }
            }
          },
          "outputSchema": null,
          "annotations": null
        },
        {
          "name": "demo_count",
          "server": "demo",
          "tool": "count",
          "description": "Returns how many calls this process saw.",
          "title": null,
          "signature": "demo_count()",
          "inputSchema": {
            "type": "object"
          },
          "outputSchema": null,
          "annotations": null
        },
        {
          "name": "demo_pid",
          "server": "demo",
          "tool": "pid",
          "description": "Returns the process id.",
          "title": null,
          "signature": "demo_pid()",
          "inputSchema": {
            "type": "object"
          },
          "outputSchema": null,
          "annotations": null
        },
        {
          "name": "demo_wait",
          "server": "demo",
          "tool": "wait",
          "description": "Waits, to be in flight when the server goes down.",
          "title": null,
          "signature": "demo_wait()",
          "inputSchema": {
            "type": "object"
          },
          "outputSchema": null,
          "annotations": null
        },
        {
          "name": "demo_crash",
          "server": "demo",
          "tool": "crash",
          "description": "Ends the server with last words.",
          "title": null,
          "signature": "demo_crash()",
          "inputSchema": {
            "type": "object"
          },
          "outputSchema": null,
          "annotations": null
        }
      ],
      "denied": 0,
      "total": 5,
      "offset": 0,
      "next": null,
      "notListed": [],
      "pending": []
    }
    --- stderr
    "#);
}

#[tokio::test]
async fn search_json_matches_its_snapshot() {
    let installed = configured_and_listed().await;
    insta::assert_snapshot!(transcript(&installed, "search process --json").await, @r#"
    exit 0
    --- stdout
    {
      "total": 2,
      "offset": 0,
      "next": null,
      "hits": [
        {
          "name": "demo_pid",
          "server": "demo",
          "tool": "pid",
          "score": [SCORE],
          "signature": "demo_pid()",
          "description": "Returns the process id."
        },
        {
          "name": "demo_count",
          "server": "demo",
          "tool": "count",
          "score": [SCORE],
          "signature": "demo_count()",
          "description": "Returns how many calls this process saw."
        }
      ],
      "denied": 0,
      "notListed": [
        "all",
        "broken"
      ],
      "pending": []
    }
    --- stderr
    "#);
}

#[tokio::test]
async fn describe_json_matches_its_snapshot() {
    let installed = configured_and_listed().await;
    insta::assert_snapshot!(transcript(&installed, "describe demo_echo --json").await, @r#"
    exit 0
    --- stdout
    {
      "name": "demo_echo",
      "server": "demo",
      "tool": "echo",
      "description": "Returns the text.",
      "title": null,
      "signature": "demo_echo(text?: string)",
      "inputSchema": {
        "type": "object",
        "properties": {
          "text": {
            "type": "string"
          }
        }
      },
      "outputSchema": null,
      "annotations": null
    }
    --- stderr
    "#);
}

#[tokio::test]
async fn call_json_matches_its_snapshot() {
    let installed = configured_and_listed().await;
    insta::assert_snapshot!(transcript(&installed, "call demo_echo text=hi --json").await, @r#"
    exit 0
    --- stdout
    {
      "content": [
        {
          "type": "text",
          "text": "hi"
        }
      ],
      "isError": false,
      "server": "demo",
      "tool": "echo"
    }
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "call all_weather --json").await, @r#"
    exit 0
    --- stdout
    {
      "content": [
        {
          "type": "text",
          "text": "{\"temperature\":21.5,\"conditions\":\"cloudy\"}"
        }
      ],
      "isError": false,
      "server": "all",
      "tool": "weather",
      "structuredContent": {
        "temperature": 21.5,
        "conditions": "cloudy"
      }
    }
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "call all_fail --json").await, @r#"
    exit 1
    --- stdout
    {
      "content": [
        {
          "type": "text",
          "text": "the disk is full"
        }
      ],
      "isError": true,
      "server": "all",
      "tool": "fail"
    }
    --- stderr
    "#);
}

#[tokio::test]
async fn failure_json_matches_its_snapshot() {
    let installed = configured_and_listed().await;
    insta::assert_snapshot!(transcript(&installed, "call demo_ecko --json").await, @r#"
    exit 2
    --- stdout
    {
      "error": {
        "code": "unknown_tool",
        "message": "no tool is named `demo_ecko`",
        "hints": [
          {
            "didYouMean": [
              "demo_echo"
            ]
          },
          {
            "notListed": [
              "all",
              "broken"
            ]
          },
          {
            "search": "demo ecko"
          }
        ]
      }
    }
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "connect broken --json").await, @r#"
    exit 5
    --- stdout
    {
      "error": {
        "code": "connect_failed",
        "message": "cannot use the server `broken`: cannot connect: the program `no-such-program-anywhere` was not found",
        "hints": [
          {
            "checkCommand": "no-such-program-anywhere"
          }
        ]
      }
    }
    --- stderr
    "#);
}
