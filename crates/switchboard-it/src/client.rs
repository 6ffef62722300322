//! An MCP client over pipes on raw bytes and JSON values: it shares no code with the product.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The limit for every operation; a test that reaches it fails.
const DEADLINE: Duration = Duration::from_secs(50);

/// The limit on a paused clock, which jumps to the next timer.
const PAUSED_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// A client of a program on its standard streams, which is killed when the client is dropped, or of
/// a face in this process, which ends with the streams.
pub struct Client {
    child: Option<Child>,
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    lines: mpsc::UnboundedReceiver<Vec<u8>>,
    said: watch::Receiver<String>,
    stderr: Option<JoinHandle<()>>,
    deadline: Duration,
    /// Frames that arrived while the client waited for another one.
    set_aside: VecDeque<Value>,
    last_id: u64,
    pub user: User,
}

/// The user who answers elicitations and other server-to-client requests.
#[derive(Debug, Default)]
pub struct User {
    /// The results of the next requests, in order.
    pub answers: VecDeque<Value>,
    /// The params of each request so far.
    pub asked: Vec<Value>,
}

/// The exit code, unread frames and standard error of a client that ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` after a signal, or for a face in this process.
    pub code: Option<i32>,
    /// Frames that were not read before.
    pub frames: Vec<Value>,
    pub stderr: String,
}

impl Client {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut words = child.stderr.take().expect("stderr is piped");
        let (saying, said) = watch::channel(String::new());
        // Ends when the child closes the pipe.
        let stderr = tokio::spawn(async move {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = words.read(&mut part).await {
                let words = String::from_utf8_lossy(&part[..length]);
                saying.send_modify(|text| text.push_str(&words));
            }
        });
        let client = Self::over(stdout, stdin);
        Self { child: Some(child), said, stderr: Some(stderr), deadline: DEADLINE, ..client }
    }

    /// A client of a face in this process.
    pub fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let mut reader = BufReader::new(reader);
        let (sender, lines) = mpsc::unbounded_channel();
        // Ends at the end of `reader`.
        tokio::spawn(async move {
            loop {
                let mut line = Vec::new();
                match reader.read_until(b'\n', &mut line).await {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    Ok(_) | Err(_) => return,
                }
            }
        });
        Self {
            child: None,
            stdin: Some(Box::new(writer)),
            lines,
            said: watch::channel(String::new()).1,
            stderr: None,
            deadline: PAUSED_DEADLINE,
            set_aside: VecDeque::new(),
            last_id: 0,
            user: User::default(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).expect("the program runs")
    }

    /// Waits until the standard error contains `words`.
    pub async fn has_said(&mut self, words: &str) {
        let said = self.said.wait_for(|text| text.contains(words));
        let said = tokio::time::timeout(DEADLINE, said).await;
        said.expect("the program writes it in time").expect("the program writes it before it ends");
    }

    /// Sends `initialize` and returns the server's result.
    pub async fn initialize(&mut self, revision: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "kit", "version": "1" },
        });
        let answer = self.ask("initialize", params).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer["result"].clone()
    }

    /// Sends raw bytes.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(bytes).await.expect("the program reads");
        stdin.flush().await.expect("the program reads");
    }

    pub async fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    /// Sends a request and returns its id.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Sends a request and waits for the whole response, with `result` or `error`.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer_to(&id).await
    }

    /// Sends a call of the `mcp` tool and returns its id.
    pub async fn call(&mut self, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": "mcp", "arguments": arguments })).await
    }

    /// Calls the `mcp` tool and returns its text.
    pub async fn mcp(&mut self, arguments: Value) -> String {
        let id = self.call(arguments).await;
        text(&self.answer_to(&id).await)
    }

    /// Waits for the response with this id. Server-to-client requests are answered meanwhile, and
    /// all other frames are set aside.
    pub async fn answer_to(&mut self, id: &Value) -> Value {
        let is_answer = |frame: &Value| frame.get("method").is_none() && frame["id"] == *id;
        if let Some(at) = self.set_aside.iter().position(is_answer) {
            return self.set_aside.remove(at).expect("it was just found");
        }
        loop {
            let frame = self.read().await.expect("an answer before the end of the output");
            if is_answer(&frame) {
                return frame;
            }
            let question = frame.get("method").is_some() && frame.get("id").is_some();
            if question {
                self.answer_question(&frame).await;
            } else {
                self.set_aside.push_back(frame);
            }
        }
    }

    /// The next frame of any kind.
    pub async fn next(&mut self) -> Value {
        match self.set_aside.pop_front() {
            Some(frame) => frame,
            None => self.read().await.expect("a frame before the end of the output"),
        }
    }

    async fn answer_question(&mut self, question: &Value) {
        self.user.asked.push(question["params"].clone());
        let answer = self.user.answers.pop_front().unwrap_or(json!({ "action": "cancel" }));
        self.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    }

    /// The next line, unparsed.
    pub async fn line(&mut self) -> String {
        let line = self.read_line().await.expect("a line before the end of the output");
        String::from_utf8(line).expect("a frame is text")
    }

    /// The next line; `None` if `words` appear on the standard error first.
    pub async fn line_unless_said(&mut self, words: &str) -> Option<String> {
        let Self { lines, said, .. } = self;
        let waiting = async {
            tokio::select! {
                line = lines.recv() => line,
                said = said.wait_for(|text| text.contains(words)) => {
                    said.expect("the program writes it before it ends");
                    None
                }
            }
        };
        let line =
            tokio::time::timeout(DEADLINE, waiting).await.expect("a line or the words in time");
        line.map(|line| String::from_utf8(line).expect("a frame is text"))
    }

    async fn read(&mut self) -> Option<Value> {
        self.read_line().await.map(|line| {
            let frame: Value = serde_json::from_slice(&line).unwrap_or_else(|error| {
                panic!("no frame: {error}: {}", String::from_utf8_lossy(&line))
            });
            assert_eq!(frame["jsonrpc"], "2.0", "no frame: {frame}");
            frame
        })
    }

    async fn read_line(&mut self) -> Option<Vec<u8>> {
        let line = tokio::time::timeout(self.deadline, self.lines.recv()).await;
        line.expect("the program writes in time")
    }

    /// Closes the program's input and waits for its end.
    pub async fn end(mut self) -> Ended {
        if let Some(mut stdin) = self.stdin.take() {
            // The program may have ended already.
            let _closed = stdin.shutdown().await;
        }
        self.ended().await
    }

    /// Waits for the end of the program without closing its input.
    pub async fn ended(mut self) -> Ended {
        let mut frames: Vec<Value> = self.set_aside.drain(..).collect();
        while let Some(frame) = self.read().await {
            frames.push(frame);
        }
        let code = match &mut self.child {
            Some(child) => {
                let status = tokio::time::timeout(DEADLINE, child.wait()).await;
                status.expect("the program ends").expect("a child can be waited for").code()
            }
            None => None,
        };
        if let Some(stderr) = self.stderr {
            stderr.await.expect("reading cannot panic");
        }
        let stderr = self.said.borrow().clone();
        Ended { code, frames, stderr }
    }
}

/// The text of all content blocks of a `tools/call` result.
pub fn text(answer: &Value) -> String {
    let blocks = answer["result"]["content"].as_array();
    let blocks = blocks.unwrap_or_else(|| panic!("no result of a tool: {answer}"));
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}
