//! Hostnames that resolve to internal addresses, at once or from the second lookup on.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;

/// A resolver with fixed answers.
struct Book(Mutex<BTreeMap<&'static str, Answers>>);

/// The addresses of a hostname for each lookup; the last answer repeats.
type Answers = Vec<Vec<&'static str>>;

impl Book {
    fn new() -> Book {
        Book(Mutex::new(BTreeMap::from([
            ("private.example", vec![vec!["10.0.0.1"]]),
            ("metadata.example", vec![vec!["169.254.169.254"]]),
            ("mixed.example", vec![vec!["9.9.9.9", "10.0.0.1"]]),
            ("six.example", vec![vec!["::ffff:169.254.169.254"]]),
            ("nat.example", vec![vec!["2620:fe::fe", "64:ff9b::a00:1"]]),
            ("rebinding.example", vec![vec!["9.9.9.9"], vec!["169.254.169.254"]]),
        ])))
    }
}

impl Names for Book {
    fn addresses<'a>(&'a self, host: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>> {
        let mut book = self.0.lock().unwrap();
        let answer = match book.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers.concat()),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let address = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let answer = answer.map(|answer| answer.into_iter().map(address).collect());
        Box::pin(std::future::ready(answer))
    }
}

#[test]
fn hostname_that_resolves_to_an_internal_address_is_refused() {
    unseen(module_path!(), "hostname_that_resolves_to_an_internal_address_is_refused", || async {
        let mut lines = Vec::new();
        for name in ["private", "metadata", "mixed", "six", "nat"] {
            let address = format!("https://{name}.example");
            for (field, way, setup) in [
                ("issuer", SignInMethod::Page, resource("authorization_servers", json!([address]))),
                ("registration", SignInMethod::Page, metadata("registration_endpoint", &*address)),
                (
                    "device",
                    SignInMethod::Device,
                    metadata("device_authorization_endpoint", &*address),
                ),
                ("token", SignInMethod::Page, metadata("token_endpoint", &*address)),
            ] {
                let victim = Victim::of(&setup, Book::new()).await;
                let said = victim.refusal(victim.sign_in(way).await);
                lines.push(format!("{field} at {name}.example\n    {said}"));
            }
        }
        insta::assert_snapshot!("names", lines.join("\n"));
    });
}

#[test]
fn hostname_is_resolved_and_checked_for_each_request() {
    let test = "hostname_is_resolved_and_checked_for_each_request";
    within(module_path!(), test, || {
        let canaries = Canaries::start(|_, _| String::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let setup = resource("authorization_servers", json!(["https://rebinding.example"]));
            let victim = Victim::of(&setup, Book::new()).await;
            // The host at the first address closes the connection.
            let first = victim.refusal(victim.sign_in(SignInMethod::Page).await);
            assert!(first.contains("no response from `https://rebinding.example`"), "{first}");
            assert_eq!(canaries.seen(), [IpAddr::from([9, 9, 9, 9])]);
            let second = victim.refusal(victim.sign_in(SignInMethod::Page).await);
            assert!(second.ends_with("resolves to an internal or reserved address"), "{second}");
            assert_eq!(canaries.seen(), Vec::<IpAddr>::new());
        });
    });
}
