//! Servers over WebSocket: one connection that HTTP agrees on, and a text frame for each message.
//!
//! [`connect`] gives a [`Peer`] and the [`Carrier`] that the owner runs, once the server has agreed.

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

/// What is spoken over the connection.
const MCP: &str = "mcp";

/// How long the end of a connection may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// Where a server is, and what is said to it when it is connected.
pub struct Endpoint {
    /// With a scheme of HTTP, which is what is spoken until the server agrees.
    pub url: Url,
    /// Speaks HTTP/1.1, and follows no redirects.
    pub client: Client,
    pub headers: HeaderMap,
    /// Headers that are made for this connection; they win over all others.
    pub signer: Option<Arc<dyn Signer>>,
}

impl fmt::Debug for Endpoint {
    /// An address and headers can hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// Connects to a server; nothing of MCP is said yet.
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
        // An address can hold secrets.
        HttpError::Broken { cause: Some(Arc::new(cause.without_url())) }
    })
}

/// Whether the server has understood what we asked for (RFC 6455, 4.1). One that names no protocol
/// leaves it at ours.
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

/// The moving part of a connection over WebSocket.
#[derive(Debug)]
pub struct Carrier {
    socket: Socket,
    limits: PeerLimits,
    outlet: Outlet,
    inlet: Inlet,
}

/// A connection that carries nothing any more.
pub struct Closing {
    inlet: Inlet,
    sink: SplitSink<Socket, Message>,
}

impl Carrier {
    /// Carries until the connection is over or `stop` completes. Requests that still wait then fail in
    /// [`Closing::finish`].
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
                    // Answered by the library.
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Err(Error::Capacity(_))) => {
                        // What follows cannot be told from what is left of this one.
                        inlet.too_large_for_all();
                        return Ended::StreamClosed;
                    }
                    // MCP is text.
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
    /// Fails the requests that wait, and closes the connection.
    pub async fn finish(self) {
        let Closing { inlet, mut sink } = self;
        inlet.close();
        let _best_effort = tokio::time::timeout(GOODBYE, sink.close()).await;
    }
}

/// The message without the end of its line.
fn text_of(Parcel { frame, .. }: &Parcel) -> Message {
    let message = frame.strip_suffix(b"\n").map_or(frame.clone(), |text| frame.slice_ref(text));
    Message::Text(Utf8Bytes::try_from(message).expect("a frame of ours is JSON"))
}
