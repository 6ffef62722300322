//! The user and the model behind an MCP client, asked in the way that its revision has for that.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use switchboard::approval::{Answer, Question};
use switchboard::catalog::Era;
use switchboard::connection::Wanted;
use switchboard::content::{ResultForm, Spacing};
use switchboard::exact::Args;
use switchboard::host::{Abilities, Asked, CannotAsk, Consent, Host, ServerQuestion, Topic};
use switchboard::host_profile::{HostProfile, UNKNOWN};
use switchboard::log_level::LogLevel;
use switchboard::name::ServerName;
use switchboard::nesting::plain;
use switchboard_wire::envelope::INTERNAL_ERROR;
use switchboard_wire::peer::Patience;
use switchboard_wire::{Notification, Peer, Raw, RequestError, RpcError};
use tokio::time::Instant;

use crate::bulletin::Bulletin;
use crate::levels::Levelled;
use crate::question::{self, Longest, Manner, Mode};
use crate::rounds::Words;

/// How long a person may think.
const THINKING: Duration = Duration::from_secs(10 * 60);

/// Asks through one client.
#[derive(Clone)]
pub(crate) struct ClientHost {
    way: Way,
    /// What the client can do, as soon as it has said so.
    abilities: Arc<OnceLock<Abilities>>,
    /// What the first request of a stateless client declared: servers are offered that.
    declared: Arc<OnceLock<Abilities>>,
    manner: Manner,
    longest: Longest,
    heard: Arc<Mutex<Heard>>,
    /// Where those hear of changes whom nothing can be told unasked.
    bulletin: Bulletin,
    spacing: Spacing,
    /// Which host it is part of, as soon as that is known.
    profile: Arc<OnceLock<&'static HostProfile>>,
    under_way: UnderWay,
}

/// The requests of one stateless client that are being answered. A server that asks for roots when
/// it connects asks on account of one of them. Held for a moment at a time, never across an await.
type UnderWay = Arc<Mutex<Vec<Arc<ClientHost>>>>;

/// One of these requests, until it is dropped.
pub(crate) struct RequestUnderWay {
    host: Arc<ClientHost>,
    under_way: UnderWay,
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|host| !Arc::ptr_eq(host, &self.host));
    }
}

/// How a client is reached.
#[derive(Clone)]
enum Way {
    /// By requests and notifications of ours.
    Unasked(Peer),
    /// By what it gets in answer to a request of its own.
    Rounds(Words),
    /// Not at all.
    Nowhere,
}

/// Which log lines a client hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    All,
    From(LogLevel),
    Nothing,
}

impl ClientHost {
    /// A client at the other end of a connection.
    pub(crate) fn new(peer: Peer, manner: Manner) -> ClientHost {
        ClientHost::reached(Way::Unasked(peer), manner, Longest::Session, Heard::All)
    }

    /// All clients that are not told apart.
    pub(crate) fn common(manner: Manner) -> ClientHost {
        ClientHost::reached(Way::Nowhere, manner, Longest::Once, Heard::Nothing)
    }

    fn reached(way: Way, manner: Manner, longest: Longest, heard: Heard) -> ClientHost {
        let heard = Arc::new(Mutex::new(heard));
        let (abilities, declared, bulletin, profile, under_way) = Default::default();
        let spacing = Spacing::Compact;
        ClientHost {
            way,
            abilities,
            declared,
            manner,
            longest,
            heard,
            bulletin,
            spacing,
            profile,
            under_way,
        }
    }

    /// Takes note of what a request of a stateless client declares; what came first holds.
    pub(crate) fn declare(&self, abilities: &Abilities) {
        let _declared_before = self.declared.set(abilities.clone());
    }

    /// Takes note of which host it is part of; what was known before holds.
    pub(crate) fn set_profile(&self, profile: &'static HostProfile) {
        let _known_before = self.profile.set(profile);
    }

    pub(crate) fn profile(&self) -> &'static HostProfile {
        self.profile.get().copied().unwrap_or(&UNKNOWN)
    }

    /// The same client, which gets JSON in this form.
    pub(crate) fn with_spacing(self, spacing: Spacing) -> ClientHost {
        ClientHost { spacing, ..self }
    }

    /// The same client, asked through this handle.
    pub(crate) fn at(&self, peer: &Peer) -> ClientHost {
        ClientHost { way: Way::Unasked(peer.clone()), ..self.clone() }
    }

    /// The same client, asked by answers to a request that says what it can do.
    pub(crate) fn within(
        &self,
        words: Words,
        abilities: Abilities,
        level: Option<LogLevel>,
        profile: &'static HostProfile,
    ) -> ClientHost {
        ClientHost {
            way: Way::Rounds(words),
            profile: Arc::new(OnceLock::from(profile)),
            abilities: Arc::new(OnceLock::from(abilities)),
            heard: Arc::new(Mutex::new(level.map_or(Heard::Nothing, Heard::From))),
            ..self.clone()
        }
    }

    /// Lets `request`, which is one of this client's, answer for it until the guard is dropped.
    pub(crate) fn begin(&self, request: &Arc<ClientHost>) -> RequestUnderWay {
        let (host, under_way) = (Arc::clone(request), Arc::clone(&self.under_way));
        // Of clients that are not told apart, none answers for another.
        if let Way::Unasked(_) = self.way {
            let mut hosts = under_way.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.push(Arc::clone(&host));
        }
        RequestUnderWay { host, under_way }
    }

    /// The newest request whose client offers roots; `None` for session-based clients.
    fn request_with_roots(&self) -> Option<Arc<ClientHost>> {
        if self.abilities.get().is_some() {
            return None;
        }
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.iter().rev().find(|host| host.abilities().roots.is_some()).cloned()
    }

    pub(crate) fn bulletin(&self) -> &Bulletin {
        &self.bulletin
    }

    /// Takes note of how much the client wants to hear of what servers log.
    pub(crate) fn heed(&self, params: Option<&Raw>) {
        if let Some(Levelled { level }) = params.and_then(|params| params.parse().ok()) {
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Heard::From(level);
        }
    }

    fn hears(&self, level: LogLevel) -> bool {
        match *self.heard.lock().unwrap_or_else(PoisonError::into_inner) {
            Heard::All => true,
            Heard::From(least) => level >= least,
            Heard::Nothing => false,
        }
    }

    /// A log line, if the client wants to hear it; as one of many servers it says whose it is.
    fn log_line(&self, server: &ServerName, params: &Raw) -> Option<String> {
        let Levelled { level } = params.parse().ok()?;
        if !self.hears(level) {
            return None;
        }
        let mut line: Args = params.parse().ok()?;
        let logger = match line.values().get("logger").and_then(Value::as_str) {
            Some(logger) => format!("{server}/{logger}"),
            None => server.to_string(),
        };
        line.insert("logger", Value::String(logger));
        Some(line.to_string())
    }

    /// Says something of our own; no server can say anything by this method.
    pub(crate) fn notice(&self, level: LogLevel, text: &str) {
        let notice = json!({ "level": level.as_str(), "text": text });
        self.say("notifications/switchboard/notice", &notice.to_string());
    }

    /// Takes note of what the client said it can do, and of which host it is part.
    pub(crate) fn learn(&self, params: Option<&Raw>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello {
            #[serde(default)]
            client_info: Value,
        }
        let hello = params.and_then(|params| params.parse::<Hello>().ok());
        let name = hello.as_ref().and_then(|hello| hello.client_info["name"].as_str());
        self.set_profile(name.map_or(&UNKNOWN, HostProfile::of_client));
        let _learnt_once = self.abilities.set(declared(params));
    }

    /// Whether the user can be shown a form, or sent to a page.
    fn takes(&self, mode: Mode) -> bool {
        let declared = self.abilities.get().and_then(|abilities| abilities.elicitation.as_ref());
        let modes = declared.and_then(|modes| modes.parse::<Map<String, Value>>().ok());
        modes.is_some_and(|modes| match mode {
            // Older clients name none, and mean this one.
            Mode::Form => modes.contains_key("form") || !modes.contains_key("url"),
            Mode::Url => modes.contains_key("url"),
        })
    }

    async fn ask(&self, question: &Question) -> Result<Answer, CannotAsk> {
        if !self.takes(Mode::Form) {
            return Err(CannotAsk::NobodyThere);
        }
        let params = question::of_approval(question, self.longest, self.profile());
        let (answer, thought) = self.put(params).await?;
        question::decision(&answer, thought, (self.longest, self.profile()))
    }

    async fn ask_to_connect(&self, wanted: &Wanted) -> Result<Consent, CannotAsk> {
        if !self.takes(Mode::Form) {
            return Err(CannotAsk::NobodyThere);
        }
        let (answer, thought) = self.put(question::of_connection(wanted)).await?;
        question::consent(&answer, thought)
    }

    /// Asks the user; the answer comes with how long it took.
    async fn put(&self, params: String) -> Result<(Raw, Duration), CannotAsk> {
        let asked = Instant::now();
        let answer = self.request(Topic::Elicitation, None, params).await;
        answer.map(|answer| (answer, asked.elapsed())).map_err(|_| CannotAsk::NobodyThere)
    }

    async fn relay(&self, question: ServerQuestion<'_>) -> Result<Raw, RpcError> {
        if question.topic == Topic::Roots
            && let Some(request) = self.request_with_roots()
        {
            return Box::pin(request.relay(question)).await;
        }
        if question.topic == Topic::Elicitation && !self.takes(Mode::of(&question)) {
            return Err(question.topic.refused());
        }
        let params = question::of_server(self.manner, &question)?;
        let asked = self.request(question.topic, question.key, params).await;
        asked.map_err(|error| match error {
            RequestError::Refused(error) => error,
            other => RpcError::new(INTERNAL_ERROR, format!("the client gave no answer: {other}")),
        })
    }

    async fn request(
        &self,
        topic: Topic,
        key: Option<&str>,
        params: String,
    ) -> Result<Raw, RequestError> {
        match &self.way {
            Way::Unasked(peer) => {
                let patience = Patience { timeout: Some(THINKING), progress: None };
                peer.request(topic.method(), params, patience).await
            }
            Way::Rounds(words) => words.ask(topic, key, params).await,
            Way::Nowhere => Err(RequestError::NotSent),
        }
    }

    /// Says something that may be lost.
    fn say(&self, method: &str, params: &str) {
        match &self.way {
            // Changes come to those who listen, and belong to no request.
            Way::Rounds(words) if method == "notifications/message" => words.say(method, params),
            // Only whoever opened with `initialize` hears what it did not ask for.
            Way::Unasked(peer) if self.abilities.get().is_some() => {
                peer.try_notify(method, params);
            }
            Way::Unasked(_) | Way::Rounds(_) | Way::Nowhere => self.bulletin.post(method, params),
        }
    }
}

impl Host for ClientHost {
    fn approve<'a>(&'a self, question: &'a Question) -> Asked<'a, Result<Answer, CannotAsk>> {
        Box::pin(self.ask(question))
    }

    fn approve_connection<'a>(
        &'a self,
        wanted: &'a Wanted,
    ) -> Asked<'a, Result<Consent, CannotAsk>> {
        Box::pin(self.ask_to_connect(wanted))
    }

    fn result_form(&self) -> ResultForm {
        let HostProfile { result_bytes, images, audio, .. } = *self.profile();
        ResultForm { max_bytes: result_bytes, images, audio, spacing: self.spacing }
    }

    fn abilities(&self) -> Abilities {
        let of_a_request = || {
            let roots = self.request_with_roots().and_then(|request| request.abilities().roots);
            Abilities { roots, ..Abilities::default() }
        };
        self.abilities.get().cloned().unwrap_or_else(of_a_request)
    }

    /// A stateless client declares its capabilities with each request; the first one counts.
    fn declares(&self) -> Abilities {
        let declared = self.abilities.get().or_else(|| self.declared.get());
        declared.cloned().unwrap_or_else(Abilities::all)
    }

    fn era(&self) -> Option<Era> {
        let greeted = self.abilities.get().is_some() && matches!(self.way, Way::Unasked(_));
        (greeted && self.manner == Manner::Verbatim).then_some(Era::Legacy)
    }

    fn answer<'a>(&'a self, question: ServerQuestion<'a>) -> Asked<'a, Result<Raw, RpcError>> {
        Box::pin(self.relay(question))
    }

    fn tell(&self, server: &ServerName, notice: &Notification) {
        let params = notice.params.as_ref();
        let verbatim = || params.map_or("", Raw::as_str).to_owned();
        let params = match (self.manner, notice.method.as_str()) {
            (Manner::Verbatim, "notifications/message") => {
                let level = params.and_then(|params| params.parse::<Levelled>().ok());
                level.is_none_or(|Levelled { level }| self.hears(level)).then(verbatim)
            }
            (Manner::Verbatim, _) => Some(verbatim()),
            (Manner::OneOfMany, "notifications/message") => {
                params.and_then(|params| self.log_line(server, params))
            }
            (Manner::OneOfMany, method) if method.ends_with("/list_changed") => None,
            (Manner::OneOfMany, _) => Some(verbatim()),
        };
        if let Some(params) = params {
            self.say(&notice.method, &plain(&params));
        }
    }
}

/// What a client declares with `initialize`, as far as it concerns servers.
pub(crate) fn declared(params: Option<&Raw>) -> Abilities {
    #[derive(Deserialize)]
    struct Hello<'a> {
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
    }
    let hello = params.and_then(|params| params.parse::<Hello<'_>>().ok());
    let declared = hello.and_then(|hello| hello.capabilities).map_or("{}", RawValue::get);
    abilities(declared).unwrap_or_default()
}

/// What a client declares, as far as it concerns servers; `None` if that is no object.
pub(crate) fn abilities(declared: &str) -> Option<Abilities> {
    #[derive(Default, Deserialize)]
    struct Capabilities<'a> {
        #[serde(borrow, default)]
        roots: Option<&'a RawValue>,
        #[serde(borrow, default)]
        sampling: Option<&'a RawValue>,
        #[serde(borrow, default)]
        elicitation: Option<&'a RawValue>,
    }
    let declared: Capabilities<'_> = serde_json::from_str(declared).ok()?;
    let given = |ability: Option<&RawValue>| {
        let declared = ability.map(RawValue::get).filter(|declared| declared.starts_with('{'));
        declared.map(|declared| Raw::from_json(declared.to_owned()))
    };
    Some(Abilities {
        roots: given(declared.roots),
        sampling: given(declared.sampling),
        elicitation: given(declared.elicitation),
    })
}
