//! A server on loopback that answers each request with bytes, and records the requests.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use reqwest::Url;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::testdata;

/// A stub of an HTTP server, which stops when it is dropped.
pub(super) struct Stub {
    pub(super) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

/// What the stub does with a connection after its response.
#[derive(Clone, Copy)]
enum Then {
    Close,
    Hold,
}

/// The response to a path, with `PORT` replaced by the stub's own; `None` sends nothing.
trait Answer: Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static {}

impl<T: Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static> Answer for T {}

pub(super) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(super) fn redirect(status: u16, to: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} On\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

impl Stub {
    pub(super) async fn start(
        answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Stub {
        Stub::serve(answer, None, Then::Close).await
    }

    /// Starts a stub that keeps each connection open after its response, and sends nothing more.
    pub(super) async fn start_slow(
        answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Stub {
        Stub::serve(answer, None, Then::Hold).await
    }

    pub(super) async fn start_secure(
        answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Stub {
        let [certificate, key] =
            ["server.pem", "server.key"].map(|name| fs::read(testdata(name)).unwrap());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                CertificateDer::pem_slice_iter(&certificate).map(Result::unwrap).collect(),
                PrivateKeyDer::from_pem_slice(&key).unwrap(),
            )
            .unwrap();
        Stub::serve(answer, Some(TlsAcceptor::from(Arc::new(config))), Then::Close).await
    }

    async fn serve(answer: impl Answer, secure: Option<TlsAcceptor>, then: Then) -> Stub {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, ledger) = (Arc::new(answer), Arc::clone(&asked));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (answer, ledger, secure) =
                    (Arc::clone(&answer), Arc::clone(&ledger), secure.clone());
                connections.spawn(async move {
                    let answer = move |request: String| {
                        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                        ledger.lock().unwrap().push(request.replace(&port.to_string(), "PORT"));
                        answer(&path)
                    };
                    match secure {
                        None => converse(socket, port, answer, then).await,
                        Some(secure) => {
                            if let Ok(socket) = secure.accept(socket).await {
                                converse(socket, port, answer, then).await;
                            }
                        }
                    }
                });
            }
        });
        Stub { port, asked, _serving: serving }
    }

    /// The requests so far, with head and body.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn at(&self, path: &str) -> Url {
        Url::parse(&self.url(path)).unwrap()
    }
}

/// Reads one request and sends its response.
async fn converse(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    port: u16,
    answer: impl Fn(String) -> Option<Vec<u8>>,
    then: Then,
) {
    let mut request = Vec::new();
    while !is_whole(&request) {
        match socket.read_buf(&mut request).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let Some(bytes) = answer(String::from_utf8(request).unwrap()) else {
        return std::future::pending().await;
    };
    let bytes = match std::str::from_utf8(&bytes) {
        Ok(text) => text.replace("PORT", &port.to_string()).into_bytes(),
        Err(_) => bytes,
    };
    // A client may disconnect early.
    let _written = socket.write_all(&bytes).await;
    match then {
        Then::Close => drop(socket.shutdown().await),
        Then::Hold => std::future::pending().await,
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse().unwrap())
}
