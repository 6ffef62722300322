//! What a person or a model behind a client is asked, as MCP words it, and what the answer says.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use switchboard::approval::{Answer, Question};
use switchboard::catalog::Kind;
use switchboard::connection::Wanted;
use switchboard::exact::Args;
use switchboard::host::{Consent, ServerQuestion, Topic};
use switchboard::name::ServerName;
use switchboard::render::text::about_pin;
use switchboard::render::words::{bytes, clean_block, clean_line, visible};
use switchboard_wire::envelope::INVALID_PARAMS;
use switchboard_wire::{Raw, RpcError};

/// How much of a server's message is shown.
const SHOWN_MESSAGE: usize = 4_000;

/// How much of a call's arguments is shown.
const SHOWN_ARGUMENTS: usize = 2_000;

/// The answer that connects a server.
const CONNECT: &str = "connect";

/// Where a question says which server asks; `_meta` of the request.
const ASKER: &str = "switchboard/server";

/// How what a server says reaches its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As one of many servers: the client sees us, so questions say who asks, and lists are ours.
    OneOfMany,
    Verbatim,
}

/// How a user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Form,
    /// On a page of the web.
    Url,
}

impl Mode {
    pub(crate) fn of(question: &ServerQuestion<'_>) -> Mode {
        #[derive(Deserialize)]
        struct Asked {
            #[serde(default)]
            url: Value,
        }
        let asked = question.params.and_then(|params| params.parse::<Asked>().ok());
        if asked.is_some_and(|asked| !asked.url.is_null()) { Mode::Url } else { Mode::Form }
    }
}

/// How long a yes may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Longest {
    Session,
    /// Nobody knows who asks next.
    Once,
}

/// What a person can decide: the word for it, how it reads, and what it means. The first is what
/// Enter takes in many clients, and a question may come up while its user types.
const CHOICES: [(&str, &str, Answer); 4] = [
    ("no", "Deny", Answer::No),
    ("once", "Allow once", Answer::Once),
    ("session", "Allow this tool for the session", Answer::Tool),
    ("server", "Allow this server for the session", Answer::Server),
];

/// What is offered. Nothing that holds beyond the session: a client may answer for its user.
fn choices(longest: Longest) -> impl Iterator<Item = (&'static str, &'static str, Answer)> {
    let short = |answer| matches!(answer, Answer::Once | Answer::No);
    CHOICES.into_iter().filter(move |(_, _, answer)| longest == Longest::Session || short(*answer))
}

/// The parameters of what a client is asked on behalf of a server.
pub(crate) fn of_server(manner: Manner, question: &ServerQuestion<'_>) -> Result<String, RpcError> {
    let ServerQuestion { server, topic, params, .. } = *question;
    Ok(match (manner, topic, params) {
        (_, _, None) => String::new(),
        (Manner::OneOfMany, Topic::Elicitation, Some(params)) => {
            marked(server, &signed(server, params)?)?
        }
        (Manner::OneOfMany, Topic::Sampling, Some(params)) => marked(server, params.as_str())?,
        (Manner::OneOfMany, Topic::Roots, Some(params)) | (Manner::Verbatim, _, Some(params)) => {
            params.as_str().to_owned()
        }
    })
}

/// The server's question with its name before the message, because the client shows ours as the
/// asker; nothing in it is more than text, and it leads to web pages only.
fn signed(server: &ServerName, params: &Raw) -> Result<String, RpcError> {
    let mut question: Args = params.parse().map_err(|_| unreadable())?;
    let message = question.values().get("message").and_then(Value::as_str).unwrap_or_default();
    let message = clean_block(message, SHOWN_MESSAGE);
    let signed = format!("The server `{}` asks: {message}", clean_line(server.as_str(), 200));
    question.insert("message", Value::String(signed));
    match question.values().get("url").map(Value::as_str) {
        Some(Some(url)) if is_web_page(url) => {}
        None => {}
        Some(_) => {
            let refused = "a question may lead to `https` and to this machine only";
            return Err(RpcError::new(INVALID_PARAMS, refused));
        }
    }
    Ok(question.to_string())
}

/// The same question, with the name of its server where programs find it. Nothing else of it
/// changes, and nothing that the server says about itself there stays.
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

/// Also `null` is there, and would come after our own.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn unreadable() -> RpcError {
    RpcError::new(INVALID_PARAMS, "the question does not read")
}

/// Over TLS, or on this machine, and without a name that hides the host.
fn is_web_page(url: &str) -> bool {
    let local = ["http://localhost", "http://127.0.0.1", "http://[::1]"];
    let rest = match url.strip_prefix("https://") {
        Some(rest) => Some(rest),
        None => local.iter().find_map(|host| {
            let rest = url.strip_prefix(host)?;
            (rest.is_empty() || rest.starts_with([':', '/', '?', '#'])).then_some(rest)
        }),
    };
    let Some(rest) = rest else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    url.is_ascii()
        && !authority.contains('@')
        && !url.contains(|c: char| c.is_ascii_control() || c == ' ')
}

/// The parameters of the question whether a call may be made.
pub(crate) fn of_approval(question: &Question, longest: Longest) -> String {
    let target = question.target();
    let arguments = serde_json::to_string_pretty(question.args()).unwrap_or_default();
    let mut message = format!(
        "Allow the tool `{}` of the server `{}` to run?",
        clean_line(target.entry.name.as_str(), 200),
        clean_line(target.server.as_str(), 200),
    );
    if let Kind::Resource { uri } = &target.entry.kind {
        message.push_str(&format!("\n\nIt reads {}", clean_line(uri, SHOWN_ARGUMENTS)));
    }
    let shown = clean_block(&arguments, SHOWN_ARGUMENTS);
    message.push_str(&format!("\n\nArguments:\n{shown}"));
    if arguments.len() > SHOWN_ARGUMENTS {
        message.push_str(&format!("\n({}, not all are shown)", bytes(arguments.len())));
    }
    if let Some(about) = about_pin(target.pin) {
        message.push_str(&format!("\n\nAttention: {about}."));
    }
    form(&message, choices(longest).map(|(name, words, _)| (name, words)))
}

/// Shows every character of what would run, or of where it leads.
pub(crate) fn of_connection(wanted: &Wanted) -> String {
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
    form(&message, [("no", "Deny"), (CONNECT, "Connect it for this session")].into_iter())
}

/// A form with one decision: what can be chosen, and how it reads.
fn form(message: &str, choices: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let (names, words): (Vec<&str>, Vec<&str>) = choices.unzip();
    json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "enum": names,
                    "enumNames": words,
                },
            },
            "required": ["decision"],
        },
    })
    .to_string()
}

/// Anything but a clear yes is a no.
pub(crate) fn decision(answer: &Raw, longest: Longest) -> Answer {
    let chosen = chosen(answer);
    let choice = choices(longest).find(|(name, _, _)| chosen.as_deref() == Some(*name));
    choice.map_or(Answer::No, |(_, _, answer)| answer)
}

/// The same for a connection.
pub(crate) fn consent(answer: &Raw) -> Consent {
    match chosen(answer).as_deref() {
        Some(CONNECT) => Consent::Given,
        Some(_) | None => Consent::Refused,
    }
}

/// What the user chose, if they sent the form.
fn chosen(answer: &Raw) -> Option<String> {
    #[derive(Deserialize)]
    struct Elicited {
        action: String,
        #[serde(default)]
        content: Value,
    }
    let Elicited { action, content } = answer.parse().ok()?;
    let chosen = content["decision"].as_str().filter(|_| action == "accept");
    chosen.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_a_server_is_signed_and_leads_to_web_pages_only() {
        let server = ServerName::new("kit").unwrap();
        let ask = |question: Value| signed(&server, &Raw::from_json(question.to_string()));
        let asked =
            ask(json!({ "message": "\u{1b}[31mhi\u{202e}", "requestedSchema": {} })).unwrap();
        let asked: Value = serde_json::from_str(&asked).unwrap();
        assert_eq!(asked["message"], "The server `kit` asks: hi\\u{202e}");
        for good in
            ["https://example.com/sign-in?x=1", "http://localhost:8080/", "http://[::1]:1/x"]
        {
            assert!(ask(json!({ "message": "", "url": good })).is_ok(), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http://example.com/",
            "http://localhost.example.com/",
            "https://user:pw@example.com/",
            "https://ex\u{43c}mple.com/",
            "https://example.com/\n",
        ] {
            assert!(ask(json!({ "message": "", "url": bad })).is_err(), "{bad}");
        }
        assert!(ask(json!({ "message": "", "url": 5 })).is_err());
        assert!(ask(json!([])).is_err());
    }

    #[test]
    fn a_question_is_marked_with_its_server_and_nothing_else_of_it_changes() {
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

    #[test]
    fn only_an_accepted_choice_of_the_form_is_a_yes() {
        let check = |answer: &str, expected| {
            let answer = Raw::from_json(answer.to_owned());
            assert_eq!(decision(&answer, Longest::Session), expected, "{answer:?}");
        };
        let accept = |decision: &str| {
            json!({ "action": "accept", "content": { "decision": decision } }).to_string()
        };
        check(&accept("once"), Answer::Once);
        check(&accept("session"), Answer::Tool);
        check(&accept("server"), Answer::Server);
        check(&accept("no"), Answer::No);
        check(&accept("always"), Answer::No);
        check(r#"{"action":"accept","content":{}}"#, Answer::No);
        check(r#"{"action":"accept"}"#, Answer::No);
        check(r#"{"action":"decline","content":{"decision":"once"}}"#, Answer::No);
        check(r#"{"action":"cancel"}"#, Answer::No);
        check("[]", Answer::No);
        for (chosen, expected) in
            [("once", Answer::Once), ("session", Answer::No), ("server", Answer::No)]
        {
            let answer = Raw::from_json(accept(chosen));
            assert_eq!(decision(&answer, Longest::Once), expected, "{chosen}");
        }
    }
}
