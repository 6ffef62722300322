//! Unit tests of the guard; integration tests cover all cases over real sockets.

use hyper::Request;
use switchboard::Environment;
use switchboard::paths::Paths;

use super::*;

fn guard(address: &str) -> (tempfile::TempDir, Guard) {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().to_str().unwrap();
    let paths = Paths::of(&Environment::made_of([("SWITCHBOARD_HOME", root)], "/"));
    let token = Token::of(&paths).unwrap();
    (home, Guard::new(address.parse().unwrap(), token))
}

fn head(host: &str) -> Parts {
    let request = Request::get("/healthz").header(HOST, host).body(()).unwrap();
    request.into_parts().0
}

#[test]
fn host_header_must_name_loopback_or_the_bound_address() {
    let check = |bound: &str, host: &str, ours: bool| {
        let (_home, guard) = guard(bound);
        assert_eq!(guard.admit(&head(host)).is_ok(), ours, "{host} at {bound}");
    };
    for bound in ["127.0.0.1:9000", "[::1]:9000", "192.0.2.7:9000", "0.0.0.0:9000"] {
        for host in ["localhost:9000", "127.0.0.1:9000", "[::1]:9000"] {
            check(bound, host, true);
        }
        for host in ["localhost", "localhost:9001", "evil.example:9000", "evil.example"] {
            check(bound, host, false);
        }
    }
    check("127.0.0.1:9000", "192.0.2.7:9000", false);
    check("192.0.2.7:9000", "192.0.2.7:9000", true);
    check("192.0.2.7:9000", "192.0.2.8:9000", false);
    // On all addresses any IP is accepted, but no hostname, because of DNS rebinding.
    check("0.0.0.0:9000", "192.0.2.8:9000", true);
    check("[::]:9000", "[2001:db8::1]:9000", true);
    check("0.0.0.0:9000", "192.0.2.8.nip.io:9000", false);
    // The default port may be left out.
    check("127.0.0.1:80", "localhost", true);
    check("127.0.0.1:80", "[::1]", true);
    check("127.0.0.1:80", "localhost:80", true);
}

#[test]
fn accept_header_is_parsed_as_media_ranges() {
    let check = |accept: &str, expected: Result<ResponseForm, HttpRefusal>| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert(ACCEPT, accept.parse().unwrap());
        assert_eq!(form(&headers), expected, "{accept}");
    };
    check("application/json, text/event-stream", Ok(ResponseForm::Any));
    check("text/event-stream;q=0.9,application/json;q=1", Ok(ResponseForm::Any));
    check("*/*", Ok(ResponseForm::Any));
    check("application/*, text/*", Ok(ResponseForm::Any));
    check("TEXT/Event-Stream", Ok(ResponseForm::Events));
    check("application/json", Err(HttpRefusal::Accept));
    check("application/json, text/event-stream;q=0", Err(HttpRefusal::Accept));
    check("text", Err(HttpRefusal::Accept));
    check("", Err(HttpRefusal::Accept));
}
