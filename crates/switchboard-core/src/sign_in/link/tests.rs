//! Tests of links and endpoints.

use super::*;

fn reach(server: &str) -> Reach {
    Reach::of(&Url::parse(server).unwrap())
}

/// What is said of each text, one a line.
fn said(texts: &[&str], server: &str) -> String {
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
fn what_is_no_web_address_is_not_opened() {
    insta::assert_snapshot!(said(&[
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
     → `` is not an address
      → the address has a ` `, which has no place in one
    -flag → `-flag` is not an address
    --new-window=https://auth.example/ → `--new-window=https://auth.example/` is not an address
    auth.example/authorize → `auth.example/authorize` is not an address
    //auth.example/authorize → `//auth.example/authorize` is not an address
    /authorize → `/authorize` is not an address
    http: → `http:` is not an address
    https:// → `https://` is not an address
    https://?x → `https://?x` is not an address
    javascript:alert(1) → `javascript:` is not a way to sign in, only `https:` is
    JaVaScRiPt:alert(1)//https://auth.example → `javascript:` is not a way to sign in, only `https:` is
    data:text/html,hello → `data:` is not a way to sign in, only `https:` is
    file:///etc/passwd → `file:` is not a way to sign in, only `https:` is
    file://auth.example/share → `file:` is not a way to sign in, only `https:` is
    vbscript:msgbox → `vbscript:` is not a way to sign in, only `https:` is
    ftp://auth.example/ → `ftp:` is not a way to sign in, only `https:` is
    ws://auth.example/ → `ws:` is not a way to sign in, only `https:` is
    ssh://auth.example/ → `ssh:` is not a way to sign in, only `https:` is
    mailto:me@auth.example → `mailto:` is not a way to sign in, only `https:` is
    ms-settings:privacy → `ms-settings:` is not a way to sign in, only `https:` is
    x-apple.systempreferences: → `x-apple.systempreferences:` is not a way to sign in, only `https:` is
    view-source:https://auth.example/ → `view-source:` is not a way to sign in, only `https:` is
    blob:https://auth.example/1 → `blob:` is not a way to sign in, only `https:` is
    about:blank → `about:` is not a way to sign in, only `https:` is
    httpss://auth.example/ → `httpss:` is not a way to sign in, only `https:` is
    https://auth.example:99999/ → `https://auth.example:99999/` is not an address
    https://[::1/ → `https://[::1/` is not an address
    https://[fe80::1%25eth0]/ → `https://[fe80::1%25eth0]/` is not an address
    https://a..b:x/ → `https://a..b:x/` is not an address
    https://exa%00mple/ → `https://exa%00mple/` is not an address
    https://xn--a/ → `https://xn--a/` is not an address
    "#);
}

#[test]
fn what_a_reader_would_have_to_mend_is_not_opened() {
    insta::assert_snapshot!(said(&[
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
    HTTPS:as.example → `HTTPS:as.example` is not an address
    https:as.example/authorize → `https:as.example/authorize` is not an address
    https:/as.example → `https:/as.example` is not an address
    https:///as.example → `https:///as.example` is not an address
    https:////as.example → `https:////as.example` is not an address
    https://%61s.example/ → `https://%61s.example/` is not an address
    https://%24%28calc%29.example/ → the address has a `$`, which has no place in one
    https://151587081/ → `https://151587081/` is not an address
    https://9.9.9.011/ → `https://9.9.9.011/` is not an address
    https://0x9.9.9.9/ → `https://0x9.9.9.9/` is not an address
    "#);
}

#[test]
fn what_only_a_shell_or_a_terminal_has_a_use_for_is_not_opened() {
    insta::assert_snapshot!(said(&[
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
    http://user$(calc)r:pass@auth.example/ → the address holds a user name or a password for `auth.example`
    https://user$(calc)r:pass@auth.example/ → the address holds a user name or a password for `auth.example`
    https://user@auth.example/ → the address holds a user name or a password for `auth.example`
    https://:secret@auth.example/ → the address holds a user name or a password for `auth.example`
    https://auth.example%40evil.example@10.0.0.1/ → the address holds a user name or a password for `10.0.0.1`
    https://auth.example/"&calc&" → the address has a `"`, which has no place in one
    https://auth.example/?a="&calc&" → the address has a `"`, which has no place in one
    https://auth.example/a b → the address has a ` `, which has no place in one
     https://auth.example/ → the address has a ` `, which has no place in one
    https://auth.example/\u{a} → the address has a `\u{a}`, which has no place in one
    https://auth.example/\u{d}\u{a}Host: evil → the address has a `\u{d}`, which has no place in one
    java\u{9}script:alert(1) → the address has a `\u{9}`, which has no place in one
    https://auth.example/\0 → the address has a `\0`, which has no place in one
    https://auth.example/\u{1b}[2J → the address has a `\u{1b}`, which has no place in one
    https://auth.example/\u{7f} → the address has a `\u{7f}`, which has no place in one
    https://auth.example/\u{202e} → the address has a `\u{202e}`, which has no place in one
    https://auth.example\@evil.example/ → the address has a `\`, which has no place in one
    https:\\auth.example\ → the address has a `\`, which has no place in one
    https://auth.example/?a=\ → the address has a `\`, which has no place in one
    https://auth.example/`id` → the address has a ```, which has no place in one
    https://auth.example/?a=`id` → the address has a ```, which has no place in one
    https://auth.example/?a=|calc → the address has a `|`, which has no place in one
    https://auth.example/?a=^calc → the address has a `^`, which has no place in one
    https://auth.example/?a={1,2} → the address has a `{`, which has no place in one
    https://auth.example/$(calc) → the address has a `$`, which has no place in one
    https://auth.example/$IFS → the address has a `$`, which has no place in one
    https://auth.example/?a=(calc) → the address has a `(`, which has no place in one
    https://auth.example/?a=1) → the address has a `)`, which has no place in one
    https://auth.example/;calc → the address has a `;`, which has no place in one
    https://auth.example/?a='calc' → the address has a `'`, which has no place in one
    https://auth.example/#!calc → the address has a `!`, which has no place in one
    https://a$(calc).example/ → the address has a `$`, which has no place in one
    https://auth.example/<script> → the address has a `<`, which has no place in one
    https://bücher.example/ → the address has a `ü`, which has no place in one
    https://１２７.0.0.1/ → the address has a `１`, which has no place in one
    "#);
}

#[test]
fn internal_addresses_are_not_opened_in_any_spelling() {
    insta::assert_snapshot!(said(&[
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
    http://auth.example/ → `auth.example` would be spoken to without encryption
    http://9.9.9.9/ → `9.9.9.9` would be spoken to without encryption
    "#);
}

#[test]
fn good_addresses_are_opened_as_they_are() {
    insta::assert_snapshot!(said(&[
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
    insta::assert_snapshot!(said(&[
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
    http://auth.example/ → `auth.example` would be spoken to without encryption
    http://10.0.0.1/ → `10.0.0.1` is an internal or reserved address
    https://10.0.0.1/ → `10.0.0.1` is an internal or reserved address
    https://169.254.169.254/ → `169.254.169.254` is an internal or reserved address
    "#);
}

#[test]
fn an_endpoint_is_judged_like_a_link_and_has_no_fragment() {
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
fn what_is_long_is_refused_and_what_is_shown_is_short() {
    let reach = reach("https://mcp.example/mcp");
    let long = |length: usize| format!("https://auth.example/{:a>1$}", "", length - 21);
    assert_eq!(Link::of(&long(LONGEST), &reach).unwrap().as_str().len(), LONGEST);
    assert_eq!(Link::of(&long(LONGEST + 1), &reach), Err(BadLink::TooLong));
    // The host gets a slash.
    let query = format!("https://auth.example?{:a>1$}", "", LONGEST - 21);
    assert_eq!(Link::of(&query, &reach), Err(BadLink::TooLong));
    for text in ["a".repeat(5_000), format!("{}:x", "s".repeat(5_000))] {
        let said = Link::of(&text, &reach).unwrap_err().to_string();
        assert!(said.chars().count() < 200, "{said}");
    }
}
