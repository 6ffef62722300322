//! Elicitation forms for the user or the model behind a client, and the parsing of their responses.

mod message;

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use switchboard::approval::{ApprovalAnswer, Question};
use switchboard::connection::ConnectionRequest;
use switchboard::elicitation::{is_web_page, signed_message};
use switchboard::exact::Args;
use switchboard::host::{CannotAsk, Consent, ServerQuestion, Topic};
use switchboard::host_profile::HostProfile;
use switchboard::name::ServerName;
use switchboard::nesting::plain;
use switchboard::render::words::visible;
use switchboard_wire::{Raw, RpcError};

use self::message::approval_message;
use crate::params::invalid_params;

/// The minimum time in which a user can read a form. A decline before that comes from the host, not
/// from the user.
const READING_TIME: Duration = Duration::from_secs(1);

/// The choice that is the default of a form, for hosts that preselect it and still wait for a key.
const PRESELECTED: &str = "once";

/// The value of the choice that connects a server.
const CONNECT: &str = "connect";

/// The member of `_meta` that names the server that sent a forwarded request.
const ASKER: &str = "switchboard/server";

/// How requests of a server are forwarded to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The client sees one of many servers: requests name their server, and lists are the gateway's
    /// own.
    OneOfMany,
    Verbatim,
}

/// The mode of an elicitation: a form in the client, or a web page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElicitationMode {
    Form,
    /// The user answers on a web page.
    Url,
}

impl ElicitationMode {
    pub(crate) fn of(question: &ServerQuestion<'_>) -> ElicitationMode {
        #[derive(Deserialize)]
        struct UrlParam {
            #[serde(default)]
            url: Value,
        }
        let param = question.params.and_then(|params| params.parse::<UrlParam>().ok());
        if param.is_some_and(|param| !param.url.is_null()) {
            ElicitationMode::Url
        } else {
            ElicitationMode::Form
        }
    }
}

/// The longest approval that may be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongestApproval {
    Session,
    /// One call, because stateless HTTP clients are indistinguishable.
    Once,
}

/// The choices of the user: value, label and meaning. The first choice must deny: many clients
/// preselect it, and the form may appear while the user types.
const CHOICES: [(&str, &str, ApprovalAnswer); 4] = [
    ("no", "Deny", ApprovalAnswer::No),
    ("once", "Allow once", ApprovalAnswer::Once),
    ("session", "Allow this tool for the session", ApprovalAnswer::Tool),
    ("server", "Allow this server for the session", ApprovalAnswer::Server),
];

/// The choices of the form. No choice outlasts the session, because a client may answer for its
/// user.
fn choices(
    longest: LongestApproval,
) -> impl Iterator<Item = (&'static str, &'static str, ApprovalAnswer)> {
    let short = |answer| matches!(answer, ApprovalAnswer::Once | ApprovalAnswer::No);
    CHOICES
        .into_iter()
        .filter(move |(_, _, answer)| longest == LongestApproval::Session || short(*answer))
}

/// The parameters of a server-to-client request in the form in which they are forwarded to the
/// client.
pub(crate) fn of_server(manner: Manner, question: &ServerQuestion<'_>) -> Result<String, RpcError> {
    let ServerQuestion { server, topic, params, .. } = *question;
    let secret = question.asks_for_secret.as_deref();
    let params = match (manner, topic, params) {
        (_, _, None) => return Ok(String::new()),
        (Manner::OneOfMany, Topic::Elicitation, Some(params)) => {
            marked(server, &signed(server, params, secret)?)?
        }
        (Manner::Verbatim, Topic::Elicitation, Some(params)) if secret.is_some() => {
            signed(server, params, secret)?
        }
        (Manner::OneOfMany, Topic::Sampling, Some(params)) => marked(server, params.as_str())?,
        (Manner::OneOfMany, Topic::Roots, Some(params)) | (Manner::Verbatim, _, Some(params)) => {
            params.as_str().to_owned()
        }
    };
    let params = plain(&params).into_owned();
    if topic == Topic::Elicitation {
        // The check follows the removal of hidden characters, because the removal can turn a
        // member's name into `url`.
        check_url(&Args::parse(&params).map_err(|_| unreadable())?)?;
    }
    Ok(params)
}

/// Refuses an elicitation whose URL must not be opened.
fn check_url(elicitation: &Args) -> Result<(), RpcError> {
    match elicitation.values().get("url").map(Value::as_str) {
        Some(Some(url)) if is_web_page(url) => Ok(()),
        None => Ok(()),
        Some(_) => Err(invalid_params("the URL must be `https` or lead to this machine")),
    }
}

/// Puts the server's name before the message of the elicitation, because the client shows the
/// gateway as the sender.
fn signed(server: &ServerName, params: &Raw, secret: Option<&str>) -> Result<String, RpcError> {
    let mut question: Args = params.parse().map_err(|_| unreadable())?;
    let message = question.values().get("message").and_then(Value::as_str).unwrap_or_default();
    let signed = signed_message(server, message, secret);
    question.insert("message", Value::String(signed));
    Ok(question.to_string())
}

/// The parameters of a server's request with the server's name in `_meta`. All other bytes are
/// unchanged; a name that the server itself put there is replaced.
fn marked(server: &ServerName, params: &str) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct About<'a> {
        #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
        meta: Option<&'a RawValue>,
    }
    let About { meta } = serde_json::from_str(params).map_err(|_| unreadable())?;
    let members = params.trim_start().strip_prefix('{').ok_or_else(unreadable)?;
    let about: Option<Map<String, Value>> = match meta {
        Some(meta) => serde_json::from_str(meta.get()).map_err(|_| unreadable())?,
        None => None,
    };
    let mut about = about.unwrap_or_default();
    about.insert(ASKER.to_owned(), Value::from(server.as_str()));
    let about = Value::Object(about);
    let Some(meta) = meta.map(RawValue::get) else {
        let comma = if members.trim_start().starts_with('}') { "" } else { "," };
        return Ok(format!("{{\"_meta\":{about}{comma}{members}"));
    };
    let start = meta.as_ptr().addr() - params.as_ptr().addr();
    let around = params.get(..start).zip(params.get(start + meta.len()..));
    let (before, after) = around.ok_or_else(unreadable)?;
    Ok(format!("{before}{about}{after}"))
}

/// Treats `null` as present, because the server's `null` would override the member that we add.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn unreadable() -> RpcError {
    invalid_params("malformed elicitation parameters")
}

/// The parameters of the form that requests approval of a call.
pub(crate) fn of_approval(
    question: &Question,
    longest: LongestApproval,
    host: &HostProfile,
) -> String {
    let preselected = host.preselects.then_some(PRESELECTED);
    let choices = choices(longest).map(|(name, words, _)| (name, words));
    form(&approval_message(question.target(), question.args()), choices, preselected)
}

/// The parameters of the form that requests approval of a connection. The form shows the whole
/// command line or URL.
pub(crate) fn of_connection(wanted: &ConnectionRequest) -> String {
    let quoted = |text: &str| visible(&format!("{text:?}"));
    let what = match wanted.command() {
        Some(words) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            format!("This program would be started, with your rights:\n{}", words.join(" "))
        }
        None => format!("It would be reached at:\n{}", quoted(&wanted.address)),
    };
    let message = format!(
        "Connect the server `{}`, which is in none of your configuration files?\n\n{what}",
        wanted.id
    );
    form(&message, [("no", "Deny"), (CONNECT, "Connect it for this session")].into_iter(), None)
}

/// A form for one decision, with its values, their labels, and the preselected value.
fn form(
    message: &str,
    choices: impl Iterator<Item = (&'static str, &'static str)>,
    preselected: Option<&str>,
) -> String {
    let (names, words): (Vec<&str>, Vec<&str>) = choices.unzip();
    let mut decision =
        json!({ "type": "string", "title": "Decision", "enum": names, "enumNames": words });
    if let Some(preselected) = preselected {
        decision["default"] = preselected.into();
    }
    json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": { "decision": decision },
            "required": ["decision"],
        },
    })
    .to_string()
}

/// The user's decision about a call. `thought` is the time until the response. A response that is
/// too fast for a user is an error.
pub(crate) fn decision(
    answer: &Raw,
    thought: Duration,
    (longest, host): (LongestApproval, &HostProfile),
) -> Result<ApprovalAnswer, CannotAsk> {
    // The key may have been typed for something else, and have accepted the preselected choice.
    if host.preselects && thought < READING_TIME {
        return Err(CannotAsk::Unanswered);
    }
    let chosen = chosen(answer, thought)?;
    let choice = choices(longest).find(|(name, _, _)| chosen.as_deref() == Some(*name));
    Ok(choice.map_or(ApprovalAnswer::No, |(_, _, answer)| answer))
}

/// The user's decision about a connection. `thought` is the time until the response.
pub(crate) fn consent(answer: &Raw, thought: Duration) -> Result<Consent, CannotAsk> {
    Ok(match chosen(answer, thought)?.as_deref() {
        Some(CONNECT) => Consent::Given,
        Some(_) | None => Consent::Refused,
    })
}

/// The user's choice; `None` if the user declined. A form that was cancelled, or declined at once,
/// is an error: hosts do that if no user is present.
fn chosen(answer: &Raw, thought: Duration) -> Result<Option<String>, CannotAsk> {
    #[derive(Deserialize)]
    struct Elicited {
        action: String,
        #[serde(default)]
        content: Value,
    }
    let Elicited { action, content } = answer.parse().map_err(|_| CannotAsk::Unanswered)?;
    match action.as_str() {
        "accept" => Ok(content["decision"].as_str().map(str::to_owned)),
        "decline" if thought >= READING_TIME => Ok(None),
        _ => Err(CannotAsk::Unanswered),
    }
}

#[cfg(test)]
mod tests {
    use switchboard::host_profile::UNKNOWN;
    use switchboard_wire::envelope::INVALID_PARAMS;

    use super::*;

    #[test]
    fn elicitation_names_its_server_and_allows_web_urls_only() {
        let server = ServerName::new("kit").unwrap();
        let ask = |question: Value| {
            let params = Raw::from_json(question.to_string());
            of_server(Manner::OneOfMany, &elicitation(&server, &params))
        };
        let sent =
            ask(json!({ "message": "\u{1b}[31mhi\u{202e}", "requestedSchema": {} })).unwrap();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(sent["message"], "The server `kit` asks: hi\\u{202e}");
        for good in
            ["https://example.com/sign-in?x=1", "http://localhost:8080/", "http://[::1]:1/x"]
        {
            assert!(ask(json!({ "message": "", "url": good })).is_ok(), "{good}");
        }
        for bad in BAD_PAGES {
            assert!(ask(json!({ "message": "", "url": bad })).is_err(), "{bad}");
        }
        assert!(ask(json!({ "message": "", "url": 5 })).is_err());
        assert!(ask(json!([])).is_err());
    }

    fn elicitation<'a>(server: &'a ServerName, params: &'a Raw) -> ServerQuestion<'a> {
        let (topic, params) = (Topic::Elicitation, Some(params));
        ServerQuestion { server, topic, key: None, params, asks_for_secret: None }
    }

    const BAD_PAGES: [&str; 9] = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "http://169.254.169.254/",
        "http://example.com/",
        "http://localhost.example.com/",
        "https://user:pw@example.com/",
        "https://ex\u{43c}mple.com/",
        "https://example.com/\n",
    ];

    #[test]
    fn transparent_elicitation_with_invalid_url_is_refused() {
        let server = ServerName::new("kit").unwrap();
        let pass_on = |params: &str| {
            let params = Raw::from_json(params.to_owned());
            of_server(Manner::Verbatim, &elicitation(&server, &params))
        };
        for good in [
            r#"{ "mode": "url", "url": "https://example.com/x", "elicitationId": "1" }"#,
            r#"{ "message": "Which?", "requestedSchema": { "maximum": 1.00 } }"#,
        ] {
            assert_eq!(pass_on(good).unwrap(), good);
        }
        let code_of = |url: Value| {
            let params = json!({ "mode": "url", "url": url, "message": "", "elicitationId": "1" });
            pass_on(&params.to_string()).unwrap_err().code
        };
        for bad in BAD_PAGES {
            assert_eq!(code_of(bad.into()), INVALID_PARAMS, "{bad}");
        }
        assert_eq!(code_of(json!(["https://example.com"])), INVALID_PARAMS);
        let twice = r#"{ "url": "https://example.com", "url": "file:///etc/passwd" }"#;
        assert_eq!(pass_on(twice).unwrap_err().code, INVALID_PARAMS);
        let disguised = "{\"u\u{200b}rl\":\"file:///etc/passwd\"}";
        assert_eq!(pass_on(disguised).unwrap_err().code, INVALID_PARAMS);
    }

    #[test]
    fn forwarded_request_names_its_server_and_is_otherwise_unchanged() {
        let server = ServerName::new("kit").unwrap();
        for (question, expected) in [
            ("{}", r#"{"_meta":{"switchboard/server":"kit"}}"#),
            (
                r#"{ "maxTokens": 1.00, "x": [1e400] }"#,
                r#"{"_meta":{"switchboard/server":"kit"}, "maxTokens": 1.00, "x": [1e400] }"#,
            ),
            (
                r#"{ "a": {}, "_meta": { "t": 1, "switchboard/server": "bank" }, "b": 2 }"#,
                r#"{ "a": {}, "_meta": {"t":1,"switchboard/server":"kit"}, "b": 2 }"#,
            ),
            (r#"{ "_meta": null }"#, r#"{ "_meta": {"switchboard/server":"kit"} }"#),
        ] {
            assert_eq!(marked(&server, question).unwrap(), expected);
        }
        for bad in ["[]", "", r#"{ "_meta": 5 }"#, r#"{ "_meta": {}, "_meta": {} }"#] {
            assert!(marked(&server, bad).is_err(), "{bad}");
        }
    }

    fn decided(answer: &str, seconds: f32) -> Result<ApprovalAnswer, CannotAsk> {
        let answer = Raw::from_json(answer.to_owned());
        decision(&answer, Duration::from_secs_f32(seconds), (LongestApproval::Session, &UNKNOWN))
    }

    fn accept(decision: &str) -> String {
        json!({ "action": "accept", "content": { "decision": decision } }).to_string()
    }

    #[test]
    fn only_an_accepted_form_choice_approves_the_call() {
        for (answer, expected) in [
            (accept("once"), ApprovalAnswer::Once),
            (accept("session"), ApprovalAnswer::Tool),
            (accept("server"), ApprovalAnswer::Server),
            (accept("no"), ApprovalAnswer::No),
            (accept("always"), ApprovalAnswer::No),
            (r#"{"action":"accept","content":{}}"#.to_owned(), ApprovalAnswer::No),
            (r#"{"action":"accept"}"#.to_owned(), ApprovalAnswer::No),
            (
                r#"{"action":"decline","content":{"decision":"once"}}"#.to_owned(),
                ApprovalAnswer::No,
            ),
        ] {
            assert_eq!(decided(&answer, 5.0), Ok(expected), "{answer}");
        }
        for (chosen, expected) in [
            ("once", ApprovalAnswer::Once),
            ("session", ApprovalAnswer::No),
            ("server", ApprovalAnswer::No),
        ] {
            let answer = Raw::from_json(accept(chosen));
            let thought = Duration::from_secs(5);
            assert_eq!(
                decision(&answer, thought, (LongestApproval::Once, &UNKNOWN)),
                Ok(expected),
                "{chosen}"
            );
        }
    }

    #[test]
    fn cancelled_or_instantly_declined_form_leaves_question_unanswered() {
        let unanswered = Err(CannotAsk::Unanswered);
        assert_eq!(decided(r#"{"action":"cancel"}"#, 60.0), unanswered);
        assert_eq!(decided(r#"{"action":"decline"}"#, 0.005), unanswered);
        assert_eq!(decided(r#"{"action":"decline"}"#, 1.0), Ok(ApprovalAnswer::No));
        assert_eq!(decided("[]", 5.0), unanswered);
        // An acceptance is valid however fast it arrives, unless it was preselected.
        assert_eq!(decided(&accept("once"), 0.005), Ok(ApprovalAnswer::Once));
        let claude_code = HostProfile::named("claude-code");
        let yes = Raw::from_json(accept("once"));
        let hasty = Duration::from_millis(300);
        let slow = Duration::from_secs(2);
        assert_eq!(decision(&yes, hasty, (LongestApproval::Session, claude_code)), unanswered);
        assert_eq!(
            decision(&yes, slow, (LongestApproval::Session, claude_code)),
            Ok(ApprovalAnswer::Once)
        );
    }
}
