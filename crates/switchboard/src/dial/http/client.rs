//! The HTTP clients of a gateway: connections that are kept, TLS, proxies. Built when first needed.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, NoProxy, Proxy};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use switchboard_wire::http_client::{Client, Quiet, Url};
use tokio::sync::OnceCell;

use crate::env::Environment;
use crate::upstream::DialError;

const CONNECT: Duration = Duration::from_secs(10);

/// Servers and what stands before them close idle connections after a minute or so.
const KEPT_IDLE: Duration = Duration::from_secs(50);

/// A connection that is dead, because the network changed or the machine slept, is noticed in
/// about this time.
const DEAD: Duration = Duration::from_secs(10);

/// One client for each way to trust, shared by all servers.
#[derive(Default)]
pub(crate) struct Clients {
    environment: Environment,
    /// Without encryption, so the roots of the system need not be read.
    plain: OnceCell<Client>,
    secure: OnceCell<Client>,
    secure_http1: OnceCell<Client>,
    /// By origin: as many as the configuration has.
    quiet: Mutex<HashMap<String, Quiet>>,
}

/// What a client offers to speak over a secure connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    Newest,
    /// For a connection that is to become something else.
    Http1,
}

/// A name that stands for no address.
#[derive(Debug, thiserror::Error)]
#[error("the name `{host}` is not known")]
pub(crate) struct NoSuchHost {
    pub(crate) host: String,
    #[source]
    cause: io::Error,
}

impl Clients {
    pub(crate) fn new(environment: Environment) -> Clients {
        Clients { environment, ..Clients::default() }
    }

    /// Until when the origin wants nothing, for all servers that are there.
    pub(crate) fn quiet_of(&self, url: &Url) -> Quiet {
        let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        quiet.entry(url.origin().ascii_serialization()).or_default().clone()
    }

    pub(super) async fn client_for(
        &self,
        url: &Url,
        versions: Versions,
    ) -> Result<Client, DialError> {
        let client = match (url.scheme(), versions) {
            ("https", Versions::Newest) => {
                self.secure.get_or_try_init(|| self.build(versions, roots_of_the_system)).await
            }
            ("https", Versions::Http1) => {
                let client = &self.secure_http1;
                client.get_or_try_init(|| self.build(versions, roots_of_the_system)).await
            }
            (_, _) => {
                self.plain.get_or_try_init(|| self.build(versions, || trusting(Vec::new()))).await
            }
        };
        client.cloned()
    }

    /// A client that trusts the certificates of a file and no others.
    pub(super) async fn client_trusting(
        &self,
        path: PathBuf,
        versions: Versions,
    ) -> Result<Client, DialError> {
        self.build(versions, move || {
            let failed = |cause: io::Error| DialError::CaFile { path: path.clone(), cause };
            let invalid = |_| failed(io::ErrorKind::InvalidData.into());
            let text = std::fs::read(&path).map_err(failed)?;
            let certificates = CertificateDer::pem_slice_iter(&text);
            let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
            if certificates.is_empty() {
                return Err(failed(io::ErrorKind::InvalidData.into()));
            }
            trusting(certificates)
        })
        .await
    }

    async fn build(
        &self,
        versions: Versions,
        tls: impl FnOnce() -> Result<ClientConfig, DialError> + Send + 'static,
    ) -> Result<Client, DialError> {
        let builder = proxied(base(), &self.environment);
        // Reads files.
        let building = tokio::task::spawn_blocking(move || {
            let mut tls = tls()?;
            let offered: &[&[u8]] = match versions {
                Versions::Newest => &[b"h2", b"http/1.1"],
                Versions::Http1 => &[b"http/1.1"],
            };
            tls.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
            builder.tls_backend_preconfigured(tls).build().map_err(DialError::Client)
        });
        building.await.map_err(|_| DialError::Unchecked)?
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that makes them")]
fn base() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        // Where a server sends us is judged by the transport.
        .redirect(Policy::none())
        .referer(false)
        .dns_resolver(Arc::new(Names))
        .connect_timeout(CONNECT)
        .pool_idle_timeout(KEPT_IDLE)
        .tcp_nodelay(true)
        .tcp_keepalive(DEAD)
        .tcp_keepalive_interval(DEAD / 2)
        .tcp_keepalive_retries(2)
        .tcp_user_timeout(DEAD)
        .http2_keep_alive_interval(DEAD)
        .http2_keep_alive_timeout(DEAD)
}

/// The usual variables, as they are in our environment. What is on this machine needs no proxy.
fn proxied(builder: ClientBuilder, environment: &Environment) -> ClientBuilder {
    let variable = |names: [&str; 2]| names.into_iter().find_map(|name| environment.variable(name));
    let exempt = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let exempt = NoProxy::from_string(&format!("localhost,127.0.0.0/8,::1,{exempt}"));
    let all = variable(["ALL_PROXY", "all_proxy"]);
    let http = variable(["HTTP_PROXY", "http_proxy"]).or(all).map(Proxy::http);
    let https = variable(["HTTPS_PROXY", "https_proxy"]).or(all).map(Proxy::https);
    let proxies = [http, https].into_iter().flatten().flatten();
    proxies.fold(builder.no_proxy(), |builder, proxy| builder.proxy(proxy.no_proxy(exempt.clone())))
}

fn roots_of_the_system() -> Result<ClientConfig, DialError> {
    let config = tls()?.with_platform_verifier().map_err(DialError::Tls)?;
    Ok(config.with_no_client_auth())
}

fn trusting(certificates: Vec<CertificateDer<'static>>) -> Result<ClientConfig, DialError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(DialError::Tls)?;
    }
    Ok(tls()?.with_root_certificates(roots).with_no_client_auth())
}

fn tls() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, DialError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    builder.with_safe_default_protocol_versions().map_err(DialError::Tls)
}

/// Looks names up as the system does, and says which one is not known.
struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await.map(Vec::from_iter);
            let addresses = found.map_err(|cause| NoSuchHost { host, cause })?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
