//! Reaches the user and the model of an MCP client: with requests over the connection of a
//! session-based client, or inside the results for a stateless client.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use switchboard::approval::{ApprovalAnswer, Question};
use switchboard::catalog::Era;
use switchboard::connection::ConnectionRequest;
use switchboard::content::{ResultForm, Spacing};
use switchboard::exact::Args;
use switchboard::host::{Abilities, CannotAsk, Consent, Host, HostFuture, ServerQuestion, Topic};
use switchboard::host_profile::{HostProfile, UNKNOWN};
use switchboard::log_level::LogLevel;
use switchboard::name::ServerName;
use switchboard::nesting::plain;
use switchboard_wire::envelope::INTERNAL_ERROR;
use switchboard_wire::peer::Patience;
use switchboard_wire::{Notification, Peer, Raw, RequestError, RpcError};
use tokio::time::Instant;

use crate::bulletin::Bulletin;
use crate::lock::lock;
use crate::params::LevelParams;
use crate::question::{self, ElicitationMode, LongestApproval, Manner};
use crate::rounds::CallSender;

/// The time limit for an answer of the user.
const USER_ANSWER_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The user and the model behind one client, as the gateway reaches them.
#[derive(Clone)]
pub(crate) struct ClientHost {
    way: ClientLink,
    /// The capabilities that the client declared with `initialize` or with this request.
    abilities: Arc<OnceLock<Abilities>>,
    /// The capabilities that the first request of a stateless client declared. Servers are offered
    /// these capabilities.
    declared: Arc<OnceLock<Abilities>>,
    manner: Manner,
    longest: LongestApproval,
    log_threshold: Arc<Mutex<LogThreshold>>,
    /// Sends change notifications to clients that cannot receive unsolicited notifications.
    bulletin: Bulletin,
    spacing: Spacing,
    /// The profile of the client's host; empty until it is known.
    profile: Arc<OnceLock<&'static HostProfile>>,
    under_way: UnderWay,
}

/// The running requests of one stateless client. A server that requests roots while it connects
/// gets them from one of these requests. The lock is held briefly, never across an await.
type UnderWay = Arc<Mutex<Vec<Arc<ClientHost>>>>;

/// The registration of one running request; dropping it removes the registration.
pub(crate) struct RequestUnderWay {
    host: Arc<ClientHost>,
    under_way: UnderWay,
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        lock(&self.under_way).retain(|host| !Arc::ptr_eq(host, &self.host));
    }
}

/// How requests and notifications reach a client.
#[derive(Clone)]
enum ClientLink {
    /// A session-based client: messages reach it over its connection, at any time.
    Connection(Peer),
    /// A stateless client: messages reach it inside the results of its own requests.
    Results(CallSender),
    /// A client that no message can reach.
    Unreachable,
}

/// Which log messages a client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogThreshold {
    All,
    From(LogLevel),
    Nothing,
}

impl ClientHost {
    /// The host behind the client of one connection.
    pub(crate) fn new(peer: Peer, manner: Manner, spacing: Spacing) -> ClientHost {
        let log_threshold = Arc::new(Mutex::new(LogThreshold::All));
        let (way, longest) = (ClientLink::Connection(peer), LongestApproval::Session);
        ClientHost { way, longest, log_threshold, ..ClientHost::common(manner, spacing) }
    }

    /// The shared host behind all stateless HTTP clients.
    pub(crate) fn common(manner: Manner, spacing: Spacing) -> ClientHost {
        let (abilities, declared, bulletin, profile, under_way) = Default::default();
        ClientHost {
            way: ClientLink::Unreachable,
            abilities,
            declared,
            manner,
            longest: LongestApproval::Once,
            log_threshold: Arc::new(Mutex::new(LogThreshold::Nothing)),
            bulletin,
            spacing,
            profile,
            under_way,
        }
    }

    /// Records the capabilities that a stateless request declares, unless an earlier request
    /// declared capabilities.
    pub(crate) fn declare(&self, abilities: &Abilities) {
        let _declared_before = self.declared.set(abilities.clone());
    }

    /// Records the profile of the client's host, unless it is known already.
    pub(crate) fn set_profile(&self, profile: &'static HostProfile) {
        let _known_before = self.profile.set(profile);
    }

    pub(crate) fn profile(&self) -> &'static HostProfile {
        self.profile.get().copied().unwrap_or(&UNKNOWN)
    }

    /// The host of this client, whose requests and notifications are sent with `peer`.
    pub(crate) fn at(&self, peer: &Peer) -> ClientHost {
        ClientHost { way: ClientLink::Connection(peer.clone()), ..self.clone() }
    }

    /// The host of this client, whose requests and notifications are sent inside the results of one
    /// request, which declares these capabilities.
    pub(crate) fn within(
        &self,
        words: CallSender,
        abilities: Abilities,
        level: Option<LogLevel>,
        profile: &'static HostProfile,
    ) -> ClientHost {
        ClientHost {
            way: ClientLink::Results(words),
            profile: Arc::new(OnceLock::from(profile)),
            abilities: Arc::new(OnceLock::from(abilities)),
            log_threshold: Arc::new(Mutex::new(
                level.map_or(LogThreshold::Nothing, LogThreshold::From),
            )),
            ..self.clone()
        }
    }

    /// Registers a running request of this client as a source of roots, until the guard is dropped.
    pub(crate) fn begin(&self, request: &Arc<ClientHost>) -> RequestUnderWay {
        let (host, under_way) = (Arc::clone(request), Arc::clone(&self.under_way));
        // Stateless HTTP clients are indistinguishable, so none may provide roots for another.
        if let ClientLink::Connection(_) = self.way {
            lock(&under_way).push(Arc::clone(&host));
        }
        RequestUnderWay { host, under_way }
    }

    /// The newest running request whose client offers roots; `None` for a session-based client.
    fn request_with_roots(&self) -> Option<Arc<ClientHost>> {
        if self.abilities.get().is_some() {
            return None;
        }
        let under_way = lock(&self.under_way);
        under_way.iter().rev().find(|host| host.abilities().roots.is_some()).cloned()
    }

    pub(crate) fn bulletin(&self) -> &Bulletin {
        &self.bulletin
    }

    /// Records the log level of `logging/setLevel`.
    pub(crate) fn set_log_threshold(&self, params: Option<&Raw>) {
        if let Some(LevelParams { level }) = params.and_then(|params| params.parse().ok()) {
            *lock(&self.log_threshold) = LogThreshold::From(level);
        }
    }

    fn admits(&self, level: LogLevel) -> bool {
        match *lock(&self.log_threshold) {
            LogThreshold::All => true,
            LogThreshold::From(least) => level >= least,
            LogThreshold::Nothing => false,
        }
    }

    /// The log message as it is sent to the client, with the name of its server in `logger`; `None`
    /// if the level of the client excludes it.
    fn log_line(&self, server: &ServerName, params: &Raw) -> Option<String> {
        let LevelParams { level } = params.parse().ok()?;
        if !self.admits(level) {
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

    /// Sends a notice of the gateway itself to the client. Servers cannot use this method.
    pub(crate) fn notice(&self, level: LogLevel, text: &str) {
        let notice = json!({ "level": level.as_str(), "text": text });
        self.say("notifications/switchboard/notice", &notice.to_string());
    }

    /// Records the capabilities and the host's profile of `initialize`.
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

    /// Whether the client supports this mode of elicitation.
    fn takes(&self, mode: ElicitationMode) -> bool {
        let declared = self.abilities.get().and_then(|abilities| abilities.elicitation.as_ref());
        let modes = declared.and_then(|modes| modes.parse::<Map<String, Value>>().ok());
        modes.is_some_and(|modes| match mode {
            // Clients of older revisions declare no mode, and support forms.
            ElicitationMode::Form => modes.contains_key("form") || !modes.contains_key("url"),
            ElicitationMode::Url => modes.contains_key("url"),
        })
    }

    async fn ask(&self, question: &Question) -> Result<ApprovalAnswer, CannotAsk> {
        if !self.takes(ElicitationMode::Form) {
            return Err(CannotAsk::NoUser);
        }
        let params = question::of_approval(question, self.longest, self.profile());
        let (answer, thought) = self.ask_with_form(params).await?;
        question::decision(&answer, thought, (self.longest, self.profile()))
    }

    async fn ask_to_connect(&self, wanted: &ConnectionRequest) -> Result<Consent, CannotAsk> {
        if !self.takes(ElicitationMode::Form) {
            return Err(CannotAsk::NoUser);
        }
        let (answer, thought) = self.ask_with_form(question::of_connection(wanted)).await?;
        question::consent(&answer, thought)
    }

    /// Shows a form to the user; returns the response and the time that it took.
    async fn ask_with_form(&self, params: String) -> Result<(Raw, Duration), CannotAsk> {
        let begun = Instant::now();
        let answer = self.request(Topic::Elicitation, None, params).await;
        answer.map(|answer| (answer, begun.elapsed())).map_err(|_| CannotAsk::NoUser)
    }

    async fn relay(&self, question: ServerQuestion<'_>) -> Result<Raw, RpcError> {
        if question.topic == Topic::Roots
            && let Some(request) = self.request_with_roots()
        {
            return Box::pin(request.relay(question)).await;
        }
        if question.topic == Topic::Elicitation && !self.takes(ElicitationMode::of(&question)) {
            return Err(question.topic.refused());
        }
        let params = question::of_server(self.manner, &question)?;
        let response = self.request(question.topic, question.key, params).await;
        response.map_err(|error| match error {
            RequestError::Refused(error) => error,
            other => RpcError::new(INTERNAL_ERROR, format!("the client did not respond: {other}")),
        })
    }

    async fn request(
        &self,
        topic: Topic,
        key: Option<&str>,
        params: String,
    ) -> Result<Raw, RequestError> {
        match &self.way {
            ClientLink::Connection(peer) => {
                let patience = Patience { timeout: Some(USER_ANSWER_TIMEOUT), progress: None };
                peer.request(topic.method(), params, patience).await
            }
            ClientLink::Results(words) => words.ask(topic, key, params).await,
            ClientLink::Unreachable => Err(RequestError::NotSent),
        }
    }

    /// Sends a notification, which may be lost.
    fn say(&self, method: &str, params: &str) {
        match &self.way {
            // Change notifications are sent on subscriptions, because they belong to no request.
            ClientLink::Results(words) if method == "notifications/message" => {
                words.say(method, params)
            }
            // Only clients that sent `initialize` may receive unsolicited notifications.
            ClientLink::Connection(peer) if self.abilities.get().is_some() => {
                peer.try_notify(method, params);
            }
            ClientLink::Connection(_) | ClientLink::Results(_) | ClientLink::Unreachable => {
                self.bulletin.post(method, params)
            }
        }
    }
}

impl Host for ClientHost {
    fn approve<'a>(
        &'a self,
        question: &'a Question,
    ) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        Box::pin(self.ask(question))
    }

    fn approve_connection<'a>(
        &'a self,
        wanted: &'a ConnectionRequest,
    ) -> HostFuture<'a, Result<Consent, CannotAsk>> {
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

    /// The capabilities that servers are offered. A stateless client declares its capabilities with
    /// each request; those of its first request are used.
    fn declares(&self) -> Abilities {
        let declared = self.abilities.get().or_else(|| self.declared.get());
        declared.cloned().unwrap_or_else(Abilities::all)
    }

    fn era(&self) -> Option<Era> {
        let greeted =
            self.abilities.get().is_some() && matches!(self.way, ClientLink::Connection(_));
        (greeted && self.manner == Manner::Verbatim).then_some(Era::Legacy)
    }

    fn answer<'a>(&'a self, question: ServerQuestion<'a>) -> HostFuture<'a, Result<Raw, RpcError>> {
        Box::pin(self.relay(question))
    }

    fn tell(&self, server: &ServerName, notice: &Notification) {
        let params = notice.params.as_ref();
        let verbatim = || params.map_or("", Raw::as_str).to_owned();
        let params = match (self.manner, notice.method.as_str()) {
            (Manner::Verbatim, "notifications/message") => {
                let level = params.and_then(|params| params.parse::<LevelParams>().ok());
                level.is_none_or(|LevelParams { level }| self.admits(level)).then(verbatim)
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

/// The capabilities in the parameters of `initialize` that concern servers.
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

/// The declared capabilities that concern servers; `None` if `declared` is not a JSON object.
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
