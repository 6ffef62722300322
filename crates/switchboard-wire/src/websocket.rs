//! Servers over WebSocket: an HTTP upgrade, then a text frame for each message.
//!
//! [`connect`] returns a [`Peer`] and the [`Carrier`] that the owner runs, once the server has
//! accepted the upgrade.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Client, Method, Response, StatusCode, Upgraded, Url};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::envelope::on_one_line;
use crate::http_client::{Ended, HttpError, Signer, refusal, send_signed};
use crate::outbox::{Outlet, Parcel};
use crate::peer::{Handler, Inlet, Peer, PeerLimits, detached};

/// The name of MCP as a WebSocket subprotocol.
const MCP: &str = "mcp";

/// How long closing a connection may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The URL of a server, and the headers of the upgrade request.
pub struct Endpoint {
    /// The URL of the server with an HTTP scheme, because the upgrade is an HTTP request.
    pub url: Url,
    /// The HTTP client. It must use HTTP/1.1 and follow no redirects.
    pub client: Client,
    pub headers: HeaderMap,
    /// Creates headers for the upgrade request, which replace other headers of the same name.
    pub signer: Option<Arc<dyn Signer>>,
}

impl fmt::Debug for Endpoint {
    /// Shows neither URL nor headers, because they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// Connects to a server; sends no MCP message yet.
pub async fn connect(endpoint: Endpoint, limits: PeerLimits) -> Result<(Peer, Carrier), HttpError> {
    let socket = upgrade(endpoint).await?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits.max_frame_bytes))
        .max_frame_size(Some(limits.max_frame_bytes));
    let socket = WebSocketStream::from_raw_socket(socket, Role::Client, Some(config)).await;
    let (peer, outlet, inlet) = detached(limits);
    Ok((peer, Carrier { socket, limits, outlet, inlet }))
}

async fn upgrade(endpoint: Endpoint) -> Result<Upgraded, HttpError> {
    let Endpoint { url, client, mut headers, signer } = endpoint;
    let key = generate_key();
    let plain = HeaderValue::from_static;
    headers.insert(CONNECTION, plain("Upgrade"));
    headers.insert(UPGRADE, plain("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, plain("13"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, plain(MCP));
    headers.extend(HeaderValue::from_str(&key).map(|key| (SEC_WEBSOCKET_KEY, key)));
    let response = send_signed(signer.as_deref(), (&Method::GET, &url, &[]), headers, |headers| {
        client.get(url.clone()).headers(headers)
    })
    .await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(response).await);
    }
    agreed(&response, &key)?;
    response.upgrade().await.map_err(|cause| {
        // The error must not show the URL, which may contain secrets.
        HttpError::Broken { cause: Some(Arc::new(cause.without_url())) }
    })
}

/// Checks the server's response to the upgrade (RFC 6455, 4.1). A response that names no
/// subprotocol is accepted.
fn agreed(response: &Response, key: &str) -> Result<(), HttpError> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if header(SEC_WEBSOCKET_ACCEPT) != Some(&derive_accept_key(key.as_bytes())) {
        return Err(HttpError::Handshake);
    }
    match header(SEC_WEBSOCKET_PROTOCOL) {
        None | Some(MCP) => Ok(()),
        Some(_) => Err(HttpError::OtherProtocol),
    }
}

type Socket = WebSocketStream<Upgraded>;

/// Transfers the messages of a connection over WebSocket.
#[derive(Debug)]
pub struct Carrier {
    socket: Socket,
    limits: PeerLimits,
    outlet: Outlet,
    inlet: Inlet,
}

/// A connection that is being closed.
pub struct Closing {
    inlet: Inlet,
    sink: SplitSink<Socket, Message>,
}

impl Carrier {
    /// Transfers messages until the connection ends or `stop` completes. Requests in flight then
    /// fail in [`Closing::finish`].
    pub async fn run(
        self,
        mut handler: impl Handler,
        stop: impl Future<Output = ()>,
    ) -> (Ended, Closing) {
        let Carrier { socket, limits, mut outlet, inlet } = self;
        let (mut sink, mut stream) = socket.split();
        let reading = async {
            loop {
                match stream.next().await {
                    Some(Ok(Message::Text(text))) => {
                        inlet.take(&on_one_line(&text.into()), None, &mut handler);
                    }
                    // The library responds to pings.
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Err(Error::Capacity(_))) => {
                        // The stream cannot be resynchronised after an over-long message.
                        inlet.too_large_for_all();
                        return Ended::StreamClosed;
                    }
                    // MCP uses text frames only, so any other frame ends the connection.
                    Some(Ok(Message::Binary(_) | Message::Close(_) | Message::Frame(_)))
                    | Some(Err(_))
                    | None => return Ended::StreamClosed,
                }
            }
        };
        let writing = async {
            while let Some(parcel) = outlet.next().await {
                let sent = sink.send(text_of(&parcel));
                let sent = match limits.write_deadline {
                    None => sent.await.is_ok(),
                    Some(limit) => matches!(tokio::time::timeout(limit, sent).await, Ok(Ok(()))),
                };
                if !sent {
                    return Ended::Unreachable;
                }
            }
            Ended::Stopped
        };
        let ended = tokio::select! {
            ended = reading => ended,
            ended = writing => ended,
            () = inlet.watch_deadlines() => Ended::Stopped,
            () = stop => Ended::Stopped,
        };
        (ended, Closing { inlet, sink })
    }
}

impl Closing {
    /// Fails the requests in flight, and closes the connection.
    pub async fn finish(self) {
        let Closing { inlet, mut sink } = self;
        inlet.close();
        let _best_effort = tokio::time::timeout(CLOSE_TIMEOUT, sink.close()).await;
    }
}

/// A WebSocket message with the JSON of a frame, without its line ending.
fn text_of(Parcel { frame, .. }: &Parcel) -> Message {
    let message = frame.strip_suffix(b"\n").map_or(frame.clone(), |text| frame.slice_ref(text));
    Message::Text(Utf8Bytes::try_from(message).expect("a frame of ours is JSON"))
}
