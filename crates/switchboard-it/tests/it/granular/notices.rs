//! Notification handlers: which session receives which notification, and how often.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::name::ServerName;
use switchboard::notice::{NoticeFilter, NotificationKind};
use switchboard::request::Request;
use switchboard_it::harness::{World, call, pass};
use switchboard_it::host::ScriptedHost;

use super::{Story, installed};

#[tokio::test]
async fn notification_handler_reports_events_in_next_tool_result() {
    let mut story = Story::begin(&installed(), 1).await;
    let url = "fixture-server everything";
    story.ask("mcp_connect", json!({ "id": "my-server", "url": url })).await;
    let handler = "mcp_register_notification_handler";
    let tools = json!({ "types": ["tools/list_changed"], "description": "Monitor tool changes" });
    story.tell(handler, tools).await;
    let resources =
        json!({ "connection_id": "my-server", "types": ["resources/list_changed", "progress"] });
    story.tell(handler, resources).await;
    story.tell(handler, json!({ "types": ["logging/setLevel"] })).await;
    insta::assert_snapshot!(story.told(), @r"
    mcp_register_notification_handler:
    Registered notification handler: handler-1
    Connection filter: all connections
    Type filter: tools/list_changed

    mcp_register_notification_handler:
    Registered notification handler: handler-2
    Connection filter: my-server
    Type filter: resources/list_changed, progress

    mcp_register_notification_handler:
    Registered notification handler: handler-3
    Connection filter: all connections
    Type filter: logging/setLevel
    ");
    let yes = json!({ "action": "accept", "content": { "decision": "server" } });
    story.client.user.answers.push_back(yes);
    let call = |tool: &str, arguments: Value| json!({ "connection_id": "my-server", "tool_name": tool, "arguments": arguments });
    for _ in 0..2 {
        story.tell("mcp_call_tool", call("change_tools", json!({}))).await;
    }
    story.tell("mcp_call_tool", call("slow", json!({ "ms": 1 }))).await;
    story.tell("mcp_call_tool", call("log", json!({}))).await;
    story.tell("mcp_call_tool", call("add", json!({ "a": 2, "b": 40 }))).await;
    insta::assert_snapshot!(story.told(), @r"
    mcp_call_tool:
    added added
    [Notifications: handler-1: tools/list_changed from 'my-server']

    mcp_call_tool:
    added added
    [Notifications: handler-1: tools/list_changed from 'my-server']

    mcp_call_tool:
    took 1 ms
    [Notifications: handler-2: progress from 'my-server', 3 times: 2/3]

    mcp_call_tool:
    logged
    [Notifications: handler-3: logging/setLevel from 'my-server': [info] something happened]

    mcp_call_tool:
    42
    ");
    // The client also gets the notification as a log message.
    loop {
        let frame = story.client.next().await;
        if frame["params"]["logger"] == "my-server/handler-1" {
            assert_eq!(frame["method"], "notifications/message");
            let data = frame["params"]["data"].as_str().unwrap();
            assert!(data.starts_with("handler-1: tools/list_changed from 'my-server'"), "{data}");
            break;
        }
    }
    let unknown = story.ask(handler, json!({ "types": ["weather"] })).await;
    assert!(unknown.starts_with("(error) Error: types: must be of tools/list_changed, "));
}

fn about(server: &str, kinds: &[NotificationKind]) -> NoticeFilter {
    NoticeFilter { server: ServerName::new(server).ok(), kinds: kinds.to_vec() }
}

#[tokio::test]
async fn log_message_reaches_only_its_caller_unlike_list_changes() {
    let world = World::of("kit", "everything").start();
    let (heard_one, heard_two) = (ScriptedHost::default(), ScriptedHost::default());
    let one = world.gateway.session(heard_one.clone());
    let two = world.gateway.session(heard_two.clone());
    for session in [&one, &two] {
        let kinds = [NotificationKind::ToolsChanged, NotificationKind::Log];
        session.register_handler(about("kit", &kinds)).unwrap();
    }
    let call = |tool: &str| Request::Call(call(tool, json!({})));
    one.handle(call("kit_log")).await.unwrap();
    assert!(one.take_notices().unwrap().contains("logging/setLevel from 'kit'"));
    assert_eq!(two.take_notices(), None);
    one.handle(call("kit_change_tools")).await.unwrap();
    let line = "[Notifications: handler-1: tools/list_changed from 'kit']";
    assert_eq!(one.take_notices().as_deref(), Some(line));
    assert_eq!(two.take_notices().as_deref(), Some(line));
    assert_eq!(two.take_notices(), None);
    assert!(heard_two.until_told().await.contains("handler-1"));
}

#[tokio::test(start_paused = true)]
async fn burst_of_notifications_is_coalesced_to_one_per_second() {
    let world = World::of("kit", "everything").start();
    let host = ScriptedHost::default();
    let session = world.gateway.session(host.clone());
    session.register_handler(about("kit", &[NotificationKind::ToolsChanged])).unwrap();
    for _ in 0..5 {
        let call = Request::Call(call("kit_change_tools", json!({})));
        session.handle(call).await.unwrap();
    }
    pass(Duration::from_secs(2)).await;
    let told: Vec<String> =
        host.told().into_iter().filter(|told| told.contains("handler-1: ")).collect();
    assert!(told.len() <= 2, "{told:?}");
    let line = session.take_notices().unwrap();
    assert_eq!(line, "[Notifications: handler-1: tools/list_changed from 'kit', 5 times]");
}

#[tokio::test]
async fn notification_handlers_are_bounded_and_end_with_their_session() {
    let world = World::of("kit", "everything").start();
    let session = world.gateway.session(ScriptedHost::default());
    for number in 1..=32 {
        let handler = session.register_handler(NoticeFilter::default()).unwrap();
        assert_eq!(handler.to_string(), format!("handler-{number}"));
    }
    assert!(session.register_handler(NoticeFilter::default()).is_err());
    drop(session);
    let next = world.gateway.session(ScriptedHost::default());
    let first = next.register_handler(NoticeFilter::default()).unwrap();
    assert_eq!(first.to_string(), "handler-1");
}
