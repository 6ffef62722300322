//! The MCP client of the benchmarks: blocking, and as cheap as possible.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::BenchResult;

pub(crate) struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
    line: String,
}

impl Client {
    pub(crate) fn start(command: &mut Command) -> BenchResult<Client> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = child.stdout.take().ok_or("no stdout")?;
        let output = BufReader::with_capacity(1 << 20, output);
        Ok(Client { child, input, output, next_id: 0, line: String::new() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn initialize(&mut self) -> BenchResult<()> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        self.ask("initialize", &params)?;
        self.input
            .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok(())
    }

    /// Sends a request and waits for its response.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> BenchResult<Value> {
        self.send(method, &params.to_string())?;
        self.read_line()?;
        Ok(serde_json::from_str(&self.line)?)
    }

    /// Calls the `mcp` tool.
    pub(crate) fn mcp(&mut self, arguments: &Value) -> BenchResult<Value> {
        self.ask("tools/call", &json!({ "name": "mcp", "arguments": arguments }))
    }

    /// Sends a request without waiting.
    pub(crate) fn send(&mut self, method: &str, params: &str) -> BenchResult<()> {
        self.next_id += 1;
        let id = self.next_id;
        let frame = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        );
        self.input.write_all(frame.as_bytes())?;
        Ok(())
    }

    /// Waits for a line and does not parse it. Returns its length.
    pub(crate) fn read_line(&mut self) -> BenchResult<usize> {
        self.line.clear();
        match self.output.read_line(&mut self.line)? {
            0 => Err("the program ended".into()),
            count => Ok(count),
        }
    }

    /// Times `count` consecutive calls.
    pub(crate) fn sequential(&mut self, params: &str, count: usize) -> BenchResult<Vec<Duration>> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let started = Instant::now();
            self.send("tools/call", params)?;
            self.read_line()?;
            times.push(started.elapsed());
        }
        Ok(times)
    }

    /// Keeps `window` calls in flight until `count` are answered. Returns the calls per second.
    pub(crate) fn pipelined(
        &mut self,
        params: &str,
        count: usize,
        window: usize,
    ) -> BenchResult<f64> {
        let started = Instant::now();
        let mut sent = 0;
        let mut answered = 0;
        while answered < count {
            let room = window - (sent - answered);
            let burst = room.min(count - sent);
            let mut frames = String::new();
            for _ in 0..burst {
                self.next_id += 1;
                let id = self.next_id;
                frames.push_str(&format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n"
                ));
            }
            self.input.write_all(frames.as_bytes())?;
            sent += burst;
            self.read_line()?;
            answered += 1;
            while answered < sent && self.output.buffer().contains(&b'\n') {
                self.read_line()?;
                answered += 1;
            }
        }
        Ok(count as f64 / started.elapsed().as_secs_f64())
    }

    pub(crate) fn last_line(&self) -> &str {
        &self.line
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}
