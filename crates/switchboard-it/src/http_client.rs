//! An MCP client over HTTP on raw bytes and JSON values: it shares no code with the product.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::client::{User, text};

/// The limit for every operation; a test that reaches it fails.
const DEADLINE: Duration = Duration::from_secs(50);

/// One raw connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    headers: Vec<(String, String)>,
}

/// A whole response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub head: Head,
    pub body: String,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    pub id: Option<String>,
    pub retry: Option<String>,
    pub data: String,
}

/// A response that is read piece by piece.
#[derive(Debug)]
pub struct Stream {
    pub head: Head,
    connection: Connection,
    /// Bytes of an incomplete event.
    decoded: Vec<u8>,
    /// The number of keep-alive comments.
    pub comments: usize,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }
}

impl Response {
    /// The message in the body, or in the last of its events.
    pub fn json(&self) -> Value {
        let mut data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let message = data.next_back().unwrap_or(&self.body);
        serde_json::from_str(message).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Connection {
    pub async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("the socket option is supported");
        Self { stream: BufReader::new(stream) }
    }

    /// Sends raw bytes; `false` if the server closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).await.is_ok()
    }

    /// The head of the next response; `None` if the server closed the connection.
    pub async fn head(&mut self) -> Option<Head> {
        let status_line = self.line().await?;
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {status_line}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => return Some(Head { status, headers }),
            }
        }
    }

    /// The next whole response; `None` if the server closed the connection.
    pub async fn response(&mut self) -> Option<Response> {
        let head = self.head().await?;
        let body = self.body(&head).await;
        Some(Response { head, body })
    }

    /// The JSON-RPC response, from JSON or an event stream; `None` if there is none.
    pub async fn answer(self) -> Option<Value> {
        self.stream().await.answer().await
    }

    async fn body(&mut self, head: &Head) -> String {
        let mut body = Vec::new();
        if head.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        } else if let Some(length) = head.header("content-length") {
            body.resize(length.parse().expect("a length"), 0);
            within(self.stream.read_exact(&mut body)).await.expect("the whole body comes");
        }
        String::from_utf8(body).expect("a body is text")
    }

    /// The next response as a stream.
    pub async fn stream(mut self) -> Stream {
        let head = self.head().await.expect("a response");
        Stream { head, connection: self, decoded: Vec::new(), comments: 0 }
    }

    /// Waits until the server closes the connection.
    pub async fn hung_up(&mut self) {
        let mut rest = Vec::new();
        let _reset_or_closed = within(self.stream.read_to_end(&mut rest)).await;
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match within(self.stream.read_line(&mut line)).await {
            Ok(1..) => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
            Ok(_) | Err(_) => None,
        }
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let length = usize::from_str_radix(&self.line().await?, 16).expect("a length");
        let mut chunk = vec![0; length + 2];
        within(self.stream.read_exact(&mut chunk)).await.ok()?;
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }
}

impl Stream {
    /// The next event; `None` at the end of the stream.
    pub async fn event(&mut self) -> Option<SseEvent> {
        loop {
            let end = self.decoded.windows(2).position(|pair| pair == b"\n\n");
            let Some(end) = end else {
                let chunk = self.connection.chunk().await?;
                self.decoded.extend(chunk);
                continue;
            };
            let block: Vec<u8> = self.decoded.drain(..end + 2).collect();
            let block = String::from_utf8(block).expect("events are text");
            let field = |name: &str| {
                block.lines().find_map(|line| {
                    let value = line.strip_prefix(name)?.strip_prefix(':')?;
                    Some(value.strip_prefix(' ').unwrap_or(value).to_owned())
                })
            };
            match field("data") {
                Some(data) => {
                    return Some(SseEvent { id: field("id"), retry: field("retry"), data });
                }
                None => self.comments += 1,
            }
        }
    }

    /// Whether the response is one message rather than events.
    fn is_whole(&self) -> bool {
        self.head.header("content-type") == Some("application/json")
    }

    /// The JSON-RPC response, from JSON or an event stream; `None` if there is none.
    pub async fn answer(mut self) -> Option<Value> {
        if self.is_whole() {
            let body = self.connection.body(&self.head).await;
            return Some(serde_json::from_str(&body).expect("JSON"));
        }
        loop {
            let (_, message) = self.message().await?;
            if message.get("method").is_none() {
                return Some(message);
            }
        }
    }

    /// The next event that carries a message.
    pub async fn message(&mut self) -> Option<(SseEvent, Value)> {
        if self.is_whole() {
            panic!("no events: {}", self.connection.body(&self.head).await);
        }
        loop {
            let event = self.event().await?;
            if !event.data.is_empty() {
                let message = serde_json::from_str(&event.data).expect("data is a message");
                return Some((event, message));
            }
        }
    }
}

/// A client with its own session, on one kept connection.
#[derive(Debug)]
pub struct HttpClient {
    pub address: SocketAddr,
    pub token: String,
    pub session: Option<String>,
    connection: Connection,
    last_id: u64,
    pub user: User,
    /// Messages that arrived before a response.
    pub set_aside: VecDeque<Value>,
}

impl HttpClient {
    pub async fn new(address: SocketAddr, token: &str) -> Self {
        Self {
            address,
            token: token.to_owned(),
            session: None,
            connection: Connection::to(address).await,
            last_id: 0,
            user: User::default(),
            set_aside: VecDeque::new(),
        }
    }

    /// Sends `initialize` and returns the server's result.
    pub async fn initialize(&mut self, revision: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "kit", "version": "1" },
        });
        let response = self.post(&request(json!(0), "initialize", params)).await;
        assert_eq!(response.head.status, 200, "{response:?}");
        self.session = response.head.header("mcp-session-id").map(str::to_owned);
        assert!(self.session.is_some(), "{response:?}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&initialized).await.head.status, 202);
        response.json()["result"].clone()
    }

    /// The bytes of a request in this session.
    pub fn bytes(&self, method: &str, more: &[(&str, &str)], body: &str) -> Vec<u8> {
        let mut head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Accept: application/json, text/event-stream\r\n",
            self.address, self.token,
        );
        if method == "POST" {
            let length = body.len();
            head.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        let session = self.session.as_deref().map(|id| ("Mcp-Session-Id", id));
        for (name, value) in more.iter().copied().chain(session) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        format!("{head}\r\n{body}").into_bytes()
    }

    /// Posts on the kept connection, and waits for the whole response.
    pub async fn post(&mut self, message: &Value) -> Response {
        let bytes = self.bytes("POST", &[], &message.to_string());
        self.connection.send(&bytes).await;
        self.connection.response().await.expect("a response")
    }

    /// Sends a request on a new connection.
    pub async fn elsewhere(&self, method: &str, more: &[(&str, &str)], body: &str) -> Connection {
        let mut connection = Connection::to(self.address).await;
        connection.send(&self.bytes(method, more, body)).await;
        connection
    }

    /// Opens the GET stream, or resumes a stream after an event.
    pub async fn listen(&self, last_event_id: Option<&str>) -> Stream {
        let more: Vec<_> = last_event_id.map(|id| ("Last-Event-ID", id)).into_iter().collect();
        self.elsewhere("GET", &more, "").await.stream().await
    }

    /// Sends a request and waits for its response. Elicitations are answered meanwhile, and all
    /// other messages are set aside.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        let message = request(id.clone(), method, params).to_string();
        let mut stream = self.elsewhere("POST", &[], &message).await.stream().await;
        if stream.is_whole() {
            return stream.answer().await.expect("a body");
        }
        loop {
            let (_, message) = stream.message().await.expect("an answer before the end");
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            if message["method"] == "elicitation/create" {
                self.answer_question(&message).await;
            } else {
                self.set_aside.push_back(message);
            }
        }
    }

    async fn answer_question(&mut self, question: &Value) {
        self.user.asked.push(question["params"].clone());
        let answer = self.user.answers.pop_front().unwrap_or(json!({ "action": "cancel" }));
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        assert_eq!(self.post(&answer).await.head.status, 202);
    }

    /// Calls the `mcp` tool and returns its text.
    pub async fn mcp(&mut self, arguments: Value) -> String {
        text(&self.ask("tools/call", json!({ "name": "mcp", "arguments": arguments })).await)
    }
}

pub fn request(id: Value, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A call of the `mcp` tool.
pub fn mcp_call(id: Value, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": "mcp", "arguments": arguments }))
}

async fn within<T>(doing: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, doing).await.expect("the server responds in time")
}
