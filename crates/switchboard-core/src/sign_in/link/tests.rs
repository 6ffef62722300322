//! Validation of links and endpoints.

use super::*;

fn reach(server: &str) -> Reach {
    Reach::of(&Url::parse(server).unwrap())
}

/// The result for each text, one per line.
fn outcomes(texts: &[&str], server: &str) -> String {
    let reach = reach(server);
    let lines = texts.iter().map(|text| {
        let verdict = match Link::of(text, &reach) {
            Ok(link) => format!("opens {link}"),
            Err(bad) => bad.to_string(),
        };
        format!("{} → {verdict}", visible(text))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn url_without_http_scheme_or_host_is_not_opened() {
    insta::assert_snapshot!(outcomes(&[
        "",
        " ",
        "-flag",
        "--new-window=https://auth.example/",
        "auth.example/authorize",
        "//auth.example/authorize",
        "/authorize",
        "http:",
        "https://",
        "https://?x",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)//https://auth.example",
        "data:text/html,hello",
        "file:///etc/passwd",
        "file://auth.example/share",
        "vbscript:msgbox",
        "ftp://auth.example/",
        "ws://auth.example/",
        "ssh://auth.example/",
        "mailto:me@auth.example",
        "ms-settings:privacy",
        "x-apple.systempreferences:",
        "view-source:https://auth.example/",
        "blob:https://auth.example/1",
        "about:blank",
        "httpss://auth.example/",
        "https://auth.example:99999/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://a..b:x/",
        "https://exa%00mple/",
        "https://xn--a/",
    ], "https://mcp.example/mcp"), @r#"
     → `` is not a valid URL
      → the URL contains ` `, which is not allowed
    -flag → `-flag` is not a valid URL
    --new-window=https://auth.example/ → `--new-window=https://auth.example/` is not a valid URL
    auth.example/authorize → `auth.example/authorize` is not a valid URL
    //auth.example/authorize → `//auth.example/authorize` is not a valid URL
    /authorize → `/authorize` is not a valid URL
    http: → `http:` is not a valid URL
    https:// → `https://` is not a valid URL
    https://?x → `https://?x` is not a valid URL
    javascript:alert(1) → `javascript:` URLs are not allowed for sign-in, only `https:`
    JaVaScRiPt:alert(1)//https://auth.example → `javascript:` URLs are not allowed for sign-in, only `https:`
    data:text/html,hello → `data:` URLs are not allowed for sign-in, only `https:`
    file:///etc/passwd → `file:` URLs are not allowed for sign-in, only `https:`
    file://auth.example/share → `file:` URLs are not allowed for sign-in, only `https:`
    vbscript:msgbox → `vbscript:` URLs are not allowed for sign-in, only `https:`
    ftp://auth.example/ → `ftp:` URLs are not allowed for sign-in, only `https:`
    ws://auth.example/ → `ws:` URLs are not allowed for sign-in, only `https:`
    ssh://auth.example/ → `ssh:` URLs are not allowed for sign-in, only `https:`
    mailto:me@auth.example → `mailto:` URLs are not allowed for sign-in, only `https:`
    ms-settings:privacy → `ms-settings:` URLs are not allowed for sign-in, only `https:`
    x-apple.systempreferences: → `x-apple.systempreferences:` URLs are not allowed for sign-in, only `https:`
    view-source:https://auth.example/ → `view-source:` URLs are not allowed for sign-in, only `https:`
    blob:https://auth.example/1 → `blob:` URLs are not allowed for sign-in, only `https:`
    about:blank → `about:` URLs are not allowed for sign-in, only `https:`
    httpss://auth.example/ → `httpss:` URLs are not allowed for sign-in, only `https:`
    https://auth.example:99999/ → `https://auth.example:99999/` is not a valid URL
    https://[::1/ → `https://[::1/` is not a valid URL
    https://[fe80::1%25eth0]/ → `https://[fe80::1%25eth0]/` is not a valid URL
    https://a..b:x/ → `https://a..b:x/` is not a valid URL
    https://exa%00mple/ → `https://exa%00mple/` is not a valid URL
    https://xn--a/ → `https://xn--a/` is not a valid URL
    "#);
}

#[test]
fn url_that_needs_normalization_is_not_opened() {
    insta::assert_snapshot!(outcomes(&[
        "HTTPS:as.example",
        "https:as.example/authorize",
        "https:/as.example",
        "https:///as.example",
        "https:////as.example",
        "https://%61s.example/",
        "https://%24%28calc%29.example/",
        "https://151587081/",
        "https://9.9.9.011/",
        "https://0x9.9.9.9/",
    ], "https://mcp.example/mcp"), @r#"
    HTTPS:as.example → `HTTPS:as.example` is not a valid URL
    https:as.example/authorize → `https:as.example/authorize` is not a valid URL
    https:/as.example → `https:/as.example` is not a valid URL
    https:///as.example → `https:///as.example` is not a valid URL
    https:////as.example → `https:////as.example` is not a valid URL
    https://%61s.example/ → `https://%61s.example/` is not a valid URL
    https://%24%28calc%29.example/ → the URL contains `$`, which is not allowed
    https://151587081/ → `https://151587081/` is not a valid URL
    https://9.9.9.011/ → `https://9.9.9.011/` is not a valid URL
    https://0x9.9.9.9/ → `https://0x9.9.9.9/` is not a valid URL
    "#);
}

#[test]
fn url_with_shell_or_terminal_characters_is_not_opened() {
    insta::assert_snapshot!(outcomes(&[
        "http://user$(calc)r:pass@auth.example/",
        "https://user$(calc)r:pass@auth.example/",
        "https://user@auth.example/",
        "https://:secret@auth.example/",
        "https://auth.example%40evil.example@10.0.0.1/",
        "https://auth.example/\"&calc&\"",
        "https://auth.example/?a=\"&calc&\"",
        "https://auth.example/a b",
        " https://auth.example/",
        "https://auth.example/\n",
        "https://auth.example/\r\nHost: evil",
        "java\tscript:alert(1)",
        "https://auth.example/\u{0}",
        "https://auth.example/\u{1b}[2J",
        "https://auth.example/\u{7f}",
        "https://auth.example/\u{202e}",
        "https://auth.example\\@evil.example/",
        "https:\\\\auth.example\\",
        "https://auth.example/?a=\\",
        "https://auth.example/`id`",
        "https://auth.example/?a=`id`",
        "https://auth.example/?a=|calc",
        "https://auth.example/?a=^calc",
        "https://auth.example/?a={1,2}",
        "https://auth.example/$(calc)",
        "https://auth.example/$IFS",
        "https://auth.example/?a=(calc)",
        "https://auth.example/?a=1)",
        "https://auth.example/;calc",
        "https://auth.example/?a='calc'",
        "https://auth.example/#!calc",
        "https://a$(calc).example/",
        "https://auth.example/<script>",
        "https://bücher.example/",
        "https://１２７.0.0.1/",
    ], "https://mcp.example/mcp"), @r#"
    http://user$(calc)r:pass@auth.example/ → the URL contains a user name or a password for `auth.example`
    https://user$(calc)r:pass@auth.example/ → the URL contains a user name or a password for `auth.example`
    https://user@auth.example/ → the URL contains a user name or a password for `auth.example`
    https://:secret@auth.example/ → the URL contains a user name or a password for `auth.example`
    https://auth.example%40evil.example@10.0.0.1/ → the URL contains a user name or a password for `10.0.0.1`
    https://auth.example/"&calc&" → the URL contains `"`, which is not allowed
    https://auth.example/?a="&calc&" → the URL contains `"`, which is not allowed
    https://auth.example/a b → the URL contains ` `, which is not allowed
     https://auth.example/ → the URL contains ` `, which is not allowed
    https://auth.example/\u{a} → the URL contains `\u{a}`, which is not allowed
    https://auth.example/\u{d}\u{a}Host: evil → the URL contains `\u{d}`, which is not allowed
    java\u{9}script:alert(1) → the URL contains `\u{9}`, which is not allowed
    https://auth.example/\0 → the URL contains `\0`, which is not allowed
    https://auth.example/\u{1b}[2J → the URL contains `\u{1b}`, which is not allowed
    https://auth.example/\u{7f} → the URL contains `\u{7f}`, which is not allowed
    https://auth.example/\u{202e} → the URL contains `\u{202e}`, which is not allowed
    https://auth.example\@evil.example/ → the URL contains `\`, which is not allowed
    https:\\auth.example\ → the URL contains `\`, which is not allowed
    https://auth.example/?a=\ → the URL contains `\`, which is not allowed
    https://auth.example/`id` → the URL contains ```, which is not allowed
    https://auth.example/?a=`id` → the URL contains ```, which is not allowed
    https://auth.example/?a=|calc → the URL contains `|`, which is not allowed
    https://auth.example/?a=^calc → the URL contains `^`, which is not allowed
    https://auth.example/?a={1,2} → the URL contains `{`, which is not allowed
    https://auth.example/$(calc) → the URL contains `$`, which is not allowed
    https://auth.example/$IFS → the URL contains `$`, which is not allowed
    https://auth.example/?a=(calc) → the URL contains `(`, which is not allowed
    https://auth.example/?a=1) → the URL contains `)`, which is not allowed
    https://auth.example/;calc → the URL contains `;`, which is not allowed
    https://auth.example/?a='calc' → the URL contains `'`, which is not allowed
    https://auth.example/#!calc → the URL contains `!`, which is not allowed
    https://a$(calc).example/ → the URL contains `$`, which is not allowed
    https://auth.example/<script> → the URL contains `<`, which is not allowed
    https://bücher.example/ → the URL contains `ü`, which is not allowed
    https://１２７.0.0.1/ → the URL contains `１`, which is not allowed
    "#);
}

#[test]
fn internal_url_is_not_opened_in_any_spelling() {
    insta::assert_snapshot!(outcomes(&[
        "https://127.0.0.1/",
        "http://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.0.0.1./",
        "https://%31%32%37.0.0.1/",
        "https://localhost/",
        "https://LocalHost./",
        "https://a.localhost/",
        "https://[::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://0/",
        "https://0.0.0.0/",
        "https://[::]/",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://172.16.0.1/",
        "https://100.64.0.1/",
        "https://[fd00::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://2852039166/",
        "https://[::ffff:169.254.169.254]/",
        "https://[fe80::1]/",
        "https://[fd00:ec2::254]/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://203.0.113.1/",
        "http://auth.example/",
        "http://9.9.9.9/",
    ], "https://mcp.example/mcp"), @r#"
    https://127.0.0.1/ → `127.0.0.1` is an internal or reserved address
    http://127.0.0.1/ → `127.0.0.1` is an internal or reserved address
    https://127.1/ → `127.0.0.1` is an internal or reserved address
    https://2130706433/ → `127.0.0.1` is an internal or reserved address
    https://0x7f.1/ → `127.0.0.1` is an internal or reserved address
    https://0x7f000001/ → `127.0.0.1` is an internal or reserved address
    https://0177.0.0.1/ → `127.0.0.1` is an internal or reserved address
    https://127.0.0.1./ → `127.0.0.1` is an internal or reserved address
    https://%31%32%37.0.0.1/ → `127.0.0.1` is an internal or reserved address
    https://localhost/ → `localhost` is an internal or reserved address
    https://LocalHost./ → `localhost.` is an internal or reserved address
    https://a.localhost/ → `a.localhost` is an internal or reserved address
    https://[::1]/ → `[::1]` is an internal or reserved address
    https://[0:0:0:0:0:0:0:1]/ → `[::1]` is an internal or reserved address
    https://[::ffff:127.0.0.1]/ → `[::ffff:7f00:1]` is an internal or reserved address
    https://[::ffff:7f00:1]/ → `[::ffff:7f00:1]` is an internal or reserved address
    https://[::127.0.0.1]/ → `[::7f00:1]` is an internal or reserved address
    https://[64:ff9b::7f00:1]/ → `[64:ff9b::7f00:1]` is an internal or reserved address
    https://[2002:7f00:1::]/ → `[2002:7f00:1::]` is an internal or reserved address
    https://0/ → `0.0.0.0` is an internal or reserved address
    https://0.0.0.0/ → `0.0.0.0` is an internal or reserved address
    https://[::]/ → `[::]` is an internal or reserved address
    https://10.0.0.1/ → `10.0.0.1` is an internal or reserved address
    https://192.168.1.1/ → `192.168.1.1` is an internal or reserved address
    https://172.16.0.1/ → `172.16.0.1` is an internal or reserved address
    https://100.64.0.1/ → `100.64.0.1` is an internal or reserved address
    https://[fd00::1]/ → `[fd00::1]` is an internal or reserved address
    https://169.254.169.254/latest/meta-data → `169.254.169.254` is an internal or reserved address
    https://2852039166/ → `169.254.169.254` is an internal or reserved address
    https://[::ffff:169.254.169.254]/ → `[::ffff:a9fe:a9fe]` is an internal or reserved address
    https://[fe80::1]/ → `[fe80::1]` is an internal or reserved address
    https://[fd00:ec2::254]/ → `[fd00:ec2::254]` is an internal or reserved address
    https://224.0.0.1/ → `224.0.0.1` is an internal or reserved address
    https://255.255.255.255/ → `255.255.255.255` is an internal or reserved address
    https://203.0.113.1/ → `203.0.113.1` is an internal or reserved address
    http://auth.example/ → the connection to `auth.example` would not be encrypted
    http://9.9.9.9/ → the connection to `9.9.9.9` would not be encrypted
    "#);
}

#[test]
fn valid_url_is_opened_unchanged() {
    insta::assert_snapshot!(outcomes(&[
        "https://auth.example",
        "HTTPS://Auth.Example:443/a/../authorize?x=1&y=*~,+%24%27#top",
        "https://auth.example:8443/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%2F",
        "https://xn--bcher-kva.example/%C3%A9",
        "https://9.9.9.9/",
        "https://[2606:4700:4700::1111]/",
    ], "https://mcp.example/mcp"), @r#"
    https://auth.example → opens https://auth.example/
    HTTPS://Auth.Example:443/a/../authorize?x=1&y=*~,+%24%27#top → opens https://auth.example/authorize?x=1&y=*~,+%24%27#top
    https://auth.example:8443/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%2F → opens https://auth.example:8443/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%2F
    https://xn--bcher-kva.example/%C3%A9 → opens https://xn--bcher-kva.example/%C3%A9
    https://9.9.9.9/ → opens https://9.9.9.9/
    https://[2606:4700:4700::1111]/ → opens https://[2606:4700:4700::1111]/
    "#);
    insta::assert_snapshot!(outcomes(&[
        "http://127.0.0.1:8080/authorize",
        "http://localhost:8080/authorize",
        "http://[::1]:8080/authorize",
        "https://localhost/",
        "https://auth.example/",
        "http://auth.example/",
        "http://10.0.0.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/",
    ], "http://127.0.0.1:9000/mcp"), @r#"
    http://127.0.0.1:8080/authorize → opens http://127.0.0.1:8080/authorize
    http://localhost:8080/authorize → opens http://localhost:8080/authorize
    http://[::1]:8080/authorize → opens http://[::1]:8080/authorize
    https://localhost/ → opens https://localhost/
    https://auth.example/ → opens https://auth.example/
    http://auth.example/ → the connection to `auth.example` would not be encrypted
    http://10.0.0.1/ → `10.0.0.1` is an internal or reserved address
    https://10.0.0.1/ → `10.0.0.1` is an internal or reserved address
    https://169.254.169.254/ → `169.254.169.254` is an internal or reserved address
    "#);
}

#[test]
fn endpoint_url_with_fragment_or_without_tls_is_refused() {
    let reach = reach("https://mcp.example/mcp");
    let cases = [
        ("https://auth.example/token?tenant=1", Ok("https://auth.example/token?tenant=1")),
        ("https://auth.example/token#", Err(BadLink::Fragment)),
        ("https://auth.example/token#top", Err(BadLink::Fragment)),
        ("http://auth.example/", Err(BadLink::Unencrypted { host: "auth.example".to_owned() })),
        ("https://a@auth.example/", Err(BadLink::UserInfo { host: "auth.example".to_owned() })),
        ("https://0x7f.1/token", Err(BadLink::Internal { host: "127.0.0.1".to_owned() })),
    ];
    for (text, expected) in cases {
        let found = endpoint(text, &reach);
        assert_eq!(found.as_ref().map(Url::as_str).map_err(Clone::clone), expected, "{text}");
    }
}

#[test]
fn long_url_is_refused_and_its_error_is_short() {
    let reach = reach("https://mcp.example/mcp");
    let long = |length: usize| format!("https://auth.example/{:a>1$}", "", length - 21);
    assert_eq!(Link::of(&long(LONGEST), &reach).unwrap().as_str().len(), LONGEST);
    assert_eq!(Link::of(&long(LONGEST + 1), &reach), Err(BadLink::TooLong));
    // Parsing adds a slash after the hostname.
    let query = format!("https://auth.example?{:a>1$}", "", LONGEST - 21);
    assert_eq!(Link::of(&query, &reach), Err(BadLink::TooLong));
    for text in ["a".repeat(5_000), format!("{}:x", "s".repeat(5_000))] {
        let message = Link::of(&text, &reach).unwrap_err().to_string();
        assert!(message.chars().count() < 200, "{message}");
    }
}
