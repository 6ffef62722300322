//! The HTTP clients of a gateway: connection pools, TLS and proxies. Each is built when it is first
//! needed.

use std::io;
use std::path::{Path, PathBuf};
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

use crate::dial::names::{Names, look_up};
use crate::env::Environment;
use crate::paths;
use crate::upstream::DialError;

const CONNECT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept: less than the idle timeout of most servers and proxies,
/// which is about a minute.
const KEPT_IDLE: Duration = Duration::from_secs(50);

/// How soon a dead connection is detected, after a network change or a suspend.
const DEAD: Duration = Duration::from_secs(10);

/// One client for each set of trusted certificates, shared by all servers.
pub(crate) struct Clients {
    environment: Environment,
    names: Arc<dyn Names>,
    /// The client without TLS, for which the system's root certificates need not be loaded.
    plain: OnceCell<Client>,
    secure: OnceCell<Client>,
    secure_http1: OnceCell<Client>,
    /// The pauses that servers requested (`Retry-After`), by origin. The number of configured
    /// origins bounds the number of pauses.
    quiet: Mutex<HashMap<String, Quiet>>,
}

/// The HTTP versions that a client offers by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    Newest,
    /// Only HTTP/1.1, for a connection that is upgraded to another protocol.
    Http1,
}

impl Clients {
    pub(crate) fn new(environment: Environment, names: Arc<dyn Names>) -> Clients {
        Clients {
            environment,
            names,
            plain: OnceCell::new(),
            secure: OnceCell::new(),
            secure_http1: OnceCell::new(),
            quiet: Mutex::default(),
        }
    }

    pub(crate) fn names(&self) -> &Arc<dyn Names> {
        &self.names
    }

    /// The hostnames of the configured proxies.
    pub(crate) fn proxy_hosts(&self) -> Vec<String> {
        let host = |proxy: &str| {
            let bare = || Url::parse(&format!("http://{proxy}"));
            let url = Url::parse(proxy).ok().filter(Url::has_host).or_else(|| bare().ok())?;
            url.host_str().map(str::to_owned)
        };
        proxies(&self.environment).into_iter().flatten().filter_map(host).collect()
    }

    /// The pause that the origin requested (`Retry-After`), shared by all servers at the origin.
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
            ("https", Versions::Newest) => &self.secure,
            ("https", Versions::Http1) => &self.secure_http1,
            (_, _) => {
                let building = || self.build(versions, || trusting(Vec::new()));
                return self.plain.get_or_try_init(building).await.cloned();
            }
        };
        client.get_or_try_init(|| self.build(versions, roots_of_the_system)).await.cloned()
    }

    /// A client that trusts only the certificates of a file.
    pub(super) async fn client_trusting(
        &self,
        path: PathBuf,
        versions: Versions,
    ) -> Result<Client, DialError> {
        self.build(versions, move || roots_of_a_file(&path)).await
    }

    /// A separate client that resolves hostnames with `names`. With a certificate file, the client
    /// trusts the certificates in that file instead of the system's.
    pub(crate) async fn client_looking_up(
        &self,
        names: impl Resolve + 'static,
        ca_file: Option<PathBuf>,
    ) -> Result<Client, DialError> {
        let tls = move || match ca_file {
            Some(path) => roots_of_a_file(&path),
            // If the system's certificates cannot be loaded, the client trusts no TLS server, but
            // it can still connect to a server over plain HTTP.
            None => roots_of_the_system().or_else(|_| trusting(Vec::new())),
        };
        self.build_with(Arc::new(names), Versions::Newest, tls).await
    }

    async fn build(
        &self,
        versions: Versions,
        tls: impl FnOnce() -> Result<ClientConfig, DialError> + Send + 'static,
    ) -> Result<Client, DialError> {
        self.build_with(Arc::new(Lookup(Arc::clone(&self.names))), versions, tls).await
    }

    async fn build_with(
        &self,
        names: Arc<dyn Resolve>,
        versions: Versions,
        tls: impl FnOnce() -> Result<ClientConfig, DialError> + Send + 'static,
    ) -> Result<Client, DialError> {
        let builder = proxied(base(), &self.environment).dns_resolver(names);
        // Building a client reads certificate files, so it blocks.
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

#[expect(clippy::disallowed_methods, reason = "HTTP clients are created here alone")]
fn base() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        // Redirects are followed by the transport, not by the client.
        .redirect(Policy::none())
        .referer(false)
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

/// Sets the proxies of the usual environment variables. Requests to loopback addresses use no
/// proxy.
fn proxied(builder: ClientBuilder, environment: &Environment) -> ClientBuilder {
    let exempt = either(environment, ["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let exempt = NoProxy::from_string(&format!("localhost,127.0.0.0/8,::1,{exempt}"));
    let [http, https] = proxies(environment);
    let proxies = [http.map(Proxy::http), https.map(Proxy::https)].into_iter().flatten().flatten();
    proxies.fold(builder.no_proxy(), |builder, proxy| builder.proxy(proxy.no_proxy(exempt.clone())))
}

/// The proxies for `http` and `https` URLs.
fn proxies(environment: &Environment) -> [Option<&str>; 2] {
    let all = either(environment, ["ALL_PROXY", "all_proxy"]);
    let names = [["HTTP_PROXY", "http_proxy"], ["HTTPS_PROXY", "https_proxy"]];
    names.map(|names| either(environment, names).or(all))
}

fn either<'a>(environment: &'a Environment, names: [&str; 2]) -> Option<&'a str> {
    names.into_iter().find_map(|name| environment.variable(name))
}

fn roots_of_the_system() -> Result<ClientConfig, DialError> {
    let config = tls()?.with_platform_verifier().map_err(DialError::Tls)?;
    Ok(config.with_no_client_auth())
}

fn roots_of_a_file(path: &Path) -> Result<ClientConfig, DialError> {
    let failed = |cause: io::Error| DialError::CaFile { path: path.to_owned(), cause };
    let text = paths::read(path).and_then(|text| text.ok_or(io::ErrorKind::NotFound.into()));
    let text = text.map_err(failed)?;
    let certificates: Option<Vec<_>> =
        CertificateDer::pem_slice_iter(&text).map(Result::ok).collect();
    let certificates = certificates.filter(|certificates| !certificates.is_empty());
    trusting(certificates.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?)
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

/// Lets an HTTP client resolve hostnames with [`Names`].
struct Lookup(Arc<dyn Names>);

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        let names = Arc::clone(&self.0);
        Box::pin(async move {
            let addresses = look_up(&*names, name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
