//! Forms that request secrets, and forms that do not.

use serde_json::json;

use super::*;

fn field(name: &str, schema: Value) -> Option<String> {
    let form = json!({ "message": "Go on?", "requestedSchema": {
        "type": "object", "properties": { "other": { "type": "boolean" }, name: schema },
    } });
    asks_for_secret(form.as_object().unwrap())
}

fn text(name: &str) -> Option<String> {
    field(name, json!({ "type": "string" }))
}

#[test]
fn secret_fields_are_recognized_by_name_in_any_spelling() {
    let names = "password|Password|PASS_WORD|user-password|userPassword|pass word|passwd|pwd|\
         passphrase|passcode|p4ssw0rd|pa$$word|p@ssword|p\u{430}ssword|\
         pass\u{200b}word|ｐａｓｓｗｏｒｄ|token|accessToken|api_key|apiKey|\
         API-KEY|apikey|secret|client_secret|privateKey|ssh_key|card_number|\
         creditCard|cvv|CVC|pin|PIN code|ssn|social_security_number|otp|\
         one_time_code|oneTimeCode|verification code|2fa|mfa_code|seed_phrase|\
         recoveryPhrase|mnemonic|session_cookie|bearer|credentials|iban|passwort|\
         Kennwort|contraseña|contrasen\u{303}a|contrasena|mot_de_passe|motDePasse|\
         senha|palavra-passe|wachtwoord|hasło|пароль|密码|パスワード|\
         비밀번호|şifre|heslo|jelszó|salasana|lösenord|כתובת סיסמה|\
         كلمة المرور|mật khẩu|รหัสผ่าน|\
         पासवर्ड|κωδικός|Kreditkartennummer|numéro de carte|\
         código de verificación|验证码|暗証番号|Geheimzahl|助记词";
    for name in names.split('|') {
        assert!(text(name).is_some(), "{name}");
    }
}

#[test]
fn secret_fields_are_recognized_by_text_and_format() {
    let of = |key: &str, words: &str| field("value", json!({ "type": "string", key: words }));
    assert!(of("title", "Your API key").is_some());
    assert!(of("title", "PIN").is_some());
    assert!(of("description", "The one-time code from your phone, six digits long").is_some());
    assert!(of("description", "Geben Sie bitte hier Ihr Passwort für das Konto ein").is_some());
    assert!(of("format", "password").is_some());
    assert!(field("n", json!({ "type": "integer", "title": "PIN" })).is_some());
    assert!(field("n", json!({ "type": "integer", "title": "Card number" })).is_some());
    assert!(field("v", json!({ "title": "Password" })).is_some(), "no type is any type");
    let message = |message: &str, fields: Value| {
        let form = json!({ "message": message, "requestedSchema": { "properties": fields } });
        asks_for_secret(form.as_object().unwrap())
    };
    let typed = json!({ "value": { "type": "string" } });
    assert_eq!(message("Enter your GitHub password to go on.", typed.clone()).unwrap(), "value");
    assert!(message("請輸入您的密碼", typed.clone()).is_some());
    assert!(message("What is your favourite colour?", typed).is_none());
    assert!(message("Keep the password?", json!({ "ok": { "type": "boolean" } })).is_none());
}

#[test]
fn form_without_secret_fields_gets_no_warning() {
    let names = "name|email|title|branch|shipping_address|opinion|pinned_by|company|\
         next_page_token|pageToken|continuationToken|keyboard|key|card|cards|message|\
         description|compass|passenger|secretary|tokenizer|seeds|code|postal_code|\
         country code|路径|имя|spinner|mapping|authentic";
    for name in names.split('|') {
        assert_eq!(text(name), None, "{name}");
    }
    for (name, schema) in [
        ("maxTokens", json!({ "type": "integer" })),
        ("tokens", json!({ "type": "number" })),
        ("max_password_length", json!({ "type": "integer" })),
        ("keep_password", json!({ "type": "boolean" })),
        (
            "method",
            json!({ "type": "string", "enum": ["password", "token"], "title": "Token or password" }),
        ),
    ] {
        assert_eq!(field(name, schema), None, "{name}");
    }
    assert_eq!(asks_for_secret(&with_mode(json!("url"))), None);
}

/// A request for a password with a URL and the mode `mode`.
fn with_mode(mode: Value) -> Map<String, Value> {
    let fields = json!({ "properties": { "password": { "type": "string" } } });
    let url = "https://a.example/";
    let request = json!({ "message": "", "mode": mode, "url": url, "requestedSchema": fields });
    request.as_object().unwrap().clone()
}

#[test]
fn only_elicitation_mode_url_skips_the_secret_check() {
    for mode in [json!("form"), json!("FORM"), json!("Url"), json!(""), json!(null), json!(5)] {
        let expected = Some("password".to_owned());
        assert_eq!(asks_for_secret(&with_mode(mode.clone())), expected, "{mode}");
    }
    let mut without = with_mode(json!(null));
    without.remove("mode");
    assert_eq!(asks_for_secret(&without), Some("password".to_owned()));
}

/// Names of fields that request a secret. Lists of titles and of messages follow.
const SECRET_NAMES: &str = "cc_number|ccnum|pan|csc|dbpass|pswd|creds|jwt|pat|master_key|masterkey|wallet_key|k3y|ap1_k3y|\
     github_token|user_pwd|x-api-key|expiry_and_cvv|iban_pin|mysql_pwd|connection_string|t0ken|\
     s3cret|webhook_secret|id_token|atm_pin|unlock_code|keystore_pass|drivers_license|\
     routing_number|security_answer|mothers_maiden_name|aws_secret_access_key";

const SECRET_TITLES: &str = "P I N|P.I.N.|c v v|C.V.V.|o.t.p|S.S.N.|s s n|T O K E N|A P I  K E Y|P a s s w o r d|a P I N|\
     ᴘᴀssᴡᴏʀᴅ|🅿🅰🆂🆂🆆🅾🆁🅳|🄿🄸🄽|🇵🇮🇳|ⓟⓐⓢⓢⓦⓞⓡⓓ|ᵖᵃˢˢʷᵒʳᵈ|𝓹𝓪𝓼𝓼𝔀𝓸𝓻𝓭|P̶a̶s̶s̶w̶o̶r̶d̶|\
     Номер карты|Numero di carta|Código de seguridad|Código de un solo uso|Код из СМС|Clé d'API|\
     API 키|Zugangstoken|Privater Schlüssel|Clé privée|私钥|개인키|Мнемоника|복구 구문|\
     12 words of your wallet|СНИЛС|CPF|Codice fiscale|BSN|PESEL|Aadhaar number|Prüfnummer|\
     Cryptogramme|Kod SMS|Jeton d'accès|Private key (PEM)|秘密|🔑 key for the API|\
     رمز عبور|Kata laluan|Лозинка|Lozinka|Geslo|Parool|Slaptažodis|Parole|Fjalëkalimi|Գաղտնաբառ|\
     პაროლი|Құпия сөз|পাসওয়ার্ড|கடவுச்சொல்|Nenosiri|Lykilorð|Aðgangsorð|Haslo|Sifre|Пароля|\
     Contrasenya|Pasahitza|Cyfrinair|Wagwoord|گذرواژه|పాస్‌వర్డ్|ພາສາ ລະຫັດຜ່ານ|စကားဝှက်";

const SECRET_MESSAGES: &str = "Please paste your GitHub token below|Type the 6-digit code we sent to your phone|\
     Enter the code from your authenticator app|Write down the 12 words of your recovery phrase|\
     Please enter your PIN|Provide AWS credentials|What is your API key?|Digite sua senha|\
     Enter the last four digits of your SSN|It looks like ghp_xxxxxxxxxxxxxxxx";

/// Names of fields that request no secret. Lists of titles and of messages follow.
const OTHER_NAMES: &str = "num_tokens|pin_message|pass_rate|pass_fail|seed|random_seed|seed_value|bearer_of_news|\
     iban_country|cookie_recipe|pan_zoom|csc_file|primary_key|sort_key|issue_key|api_url|panel|\
     company|patch|path|pattern|span|expand|token_count|signature|otpional|hotpot|bank_holiday";

const OTHER_TITLES: &str = "Number of tokens to generate|Random seed|GPIO pin|Map pin colour|Pin version of the dependency|\
     Design tokens file|Cookie recipe|The secret ingredient of success|Password policy document title|\
     Pin a message to the channel|Pan and zoom level|The PIN number of the GPIO board|\
     Name of the parole officer|Parole d'une chanson|Clave de sol o de fa|Jira issue key|\
     SIN of the angle|Choose a card from the deck|Heslop (surname)|Source code language|\
     The code from the repository|Summary in 12 words";

#[test]
fn forms_requesting_secrets_are_recognized_in_every_language() {
    let titled = |title: &str| field("value", json!({ "type": "string", "title": title }));
    let message = |message: &str| {
        let fields = json!({ "value": { "type": "string" } });
        let form = json!({ "message": message, "requestedSchema": { "properties": fields } });
        asks_for_secret(form.as_object().unwrap())
    };
    let missed = |list: &str, asks: &dyn Fn(&str) -> Option<String>| -> Vec<String> {
        list.split('|').filter(|text| asks(text).is_none()).map(str::to_owned).collect()
    };
    assert_eq!(missed(SECRET_NAMES, &text), Vec::<String>::new());
    assert_eq!(missed(SECRET_TITLES, &titled), Vec::<String>::new());
    assert_eq!(missed(SECRET_MESSAGES, &message), Vec::<String>::new());
    let alarms = |list: &str, asks: &dyn Fn(&str) -> Option<String>| -> Vec<String> {
        list.split('|').filter(|text| asks(text).is_some()).map(str::to_owned).collect()
    };
    assert_eq!(alarms(OTHER_NAMES, &text), Vec::<String>::new());
    assert_eq!(alarms(OTHER_TITLES, &titled), Vec::<String>::new());
    assert_eq!(alarms(OTHER_TITLES, &message), Vec::<String>::new());
}

#[test]
fn secret_words_are_found_in_all_form_texts() {
    for schema in [
        json!({ "type": "string", "oneOf": [{ "const": "a", "title": "enter password" }] }),
        json!({ "type": "string", "enum": ["a"], "enumNames": ["Type your password"] }),
        json!({ "type": "string", "enum": ["my password is hunter2", "other"] }),
        json!({ "type": "string", "default": "your password here" }),
        json!({ "type": "string", "description": "e.g. AKIAIOSFODNN7EXAMPLE" }),
    ] {
        assert!(field("value", schema.clone()).is_some(), "{schema}");
    }
    for (key, text) in [("title", "Password form"), ("description", "Enter your password")] {
        let form = json!({ "message": "m", "requestedSchema": {
            key: text, "properties": { "v": { "type": "string" } } } });
        assert_eq!(asks_for_secret(form.as_object().unwrap()), Some("v".to_owned()), "{key}");
    }
}

#[test]
fn benign_phrase_does_not_hide_a_nearby_secret_word() {
    for title in ["Password (see password policy)", "GPIO pin and PIN", "Random seed, your token"] {
        assert!(field("v", json!({ "type": "string", "title": title })).is_some(), "{title}");
    }
}

#[test]
fn field_name_in_a_form_cannot_forge_warning_text() {
    let name = "x` is fine.\n\u{1b}[2JThe server `github` asks for a city (`password";
    let shown = text(name).unwrap();
    assert_eq!(shown, "x' is fine. The server 'github' asks for a city ('password");
    let long = text(&"password".repeat(100)).unwrap();
    assert_eq!(long.chars().count(), FIELD);
}

fn titled(title: &str) -> Option<String> {
    field("value", json!({ "type": "string", "title": title }))
}

fn asked_in_message(message: &str) -> Option<String> {
    let fields = json!({ "value": { "type": "string" } });
    let form = json!({ "message": message, "requestedSchema": { "properties": fields } });
    asks_for_secret(form.as_object().unwrap())
}

/// Words that an earlier version did not detect, with related words.
const MISSED_WORDS: &str = "2FA code|2FA|credenciales|credenciais|credenziali|identifiants|\
     учётные данные|секрет|Wiederherstellungscode|code de récupération|код восстановления|\
     Zugangscode|código de acceso|access code|llave secreta|geheimer Schlüssel|klucz prywatny|\
     mdp|salasõna|parolni|ಗುಪ್ತಪದ|രഹസ്യവാക്ക്|passwrd|pasword|passwrod|passsword|pword|\
     24-word recovery|BIP39 phrase|BIP-39|RSA key|id_rsa|id_ed25519|kubeconfig|\
     .env file content|postgres://user:pass@host|DATABASE_URL|license key|product key|\
     card expiry|Card expiration date|contents of ~/.netrc|.npmrc|service account key|\
     Lizenzschlüssel|fecha de caducidad de la tarjeta|認証情報|자격 증명|恢复代码";

const ENCODED_WORDS: &str = "ﾊﾟｽﾜｰﾄﾞ|Paßwort|paßword|PAẞWORT|mot\u{2011}de\u{2011}passe|\
     mot\u{2010}de\u{2013}passe|mot\u{2212}de\u{ad}-passe|كَلِمَةُ المُرُور|كلـمة المرور|סִיסְמָה|p&#97;ssword|p&#x61;ssword|\
     pass&shy;word|p%61ssword|p\\u0061ssword|pass<b></b>word|&lt;password&gt;|<password>|\
     ᏢᎪᏚᏚᎳᎾᎡᎠ|ΤΟΚΕΝ|ΡΙΝ|ΚΩΔΙΚΟΣ|ПАРОЛЬ|p\u{332}a\u{332}ssword|ｐａｓｓｗｏｒｄ|㎺ password";

const WRONGLY_MARKED: &str = "pin to board|tan color|token ring|secret santa group name|tokenizer|\
     pinned|pine tree|seedling|token count|max tokens|password length|Enter your pine tree|\
     Enter your pinned items|Enter your seedling|Enter your tokenizer|Enter your taxidermy shop|\
     Enter your token count|Enter your max tokens|Enter your password length|\
     password strength|token limit|cookie consent|language, e.g. sk-SK|login|\
     task-x|de deur is gesloten|passport|crossword|sword|24 words or fewer|env|environment|\
     Public RSA modulus size|https://h.example:80/a@b|ssh://git@h.example:22/a";

#[test]
fn uncommon_and_encoded_secret_words_are_found() {
    let missed: Vec<&str> = MISSED_WORDS
        .split('|')
        .chain(ENCODED_WORDS.split('|'))
        .filter(|text| titled(text).is_none())
        .collect();
    assert_eq!(missed, Vec::<&str>::new());
    assert!(
        asked_in_message("An address such as postgres://user:pass@host is what it is").is_some()
    );
}

#[test]
fn harmless_words_resembling_secret_words_get_no_warning() {
    let is_marked = |text: &&str| {
        self::text(text).is_some() || titled(text).is_some() || asked_in_message(text).is_some()
    };
    let marked: Vec<&str> = WRONGLY_MARKED.split('|').filter(is_marked).collect();
    assert_eq!(marked, Vec::<&str>::new());
}

#[test]
fn secret_words_are_found_at_every_place_of_schema() {
    let form = |schema: Value| {
        let params = json!({ "message": "Go on?", "requestedSchema": schema });
        asks_for_secret(params.as_object().unwrap())
    };
    let string = || json!({ "type": "string" });
    let places = [
        json!({ "type": "object", "properties": { "password": string() } }),
        json!({ "type": "array", "items": { "type": "string", "title": "Password" } }),
        json!({ "type": "array", "title": "Passwords", "items": string() }),
        json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "password" }] } }),
        json!({ "type": "array", "items": { "anyOf": [
            { "const": "a", "title": "your password" }, { "const": "b" }] } }),
        json!({ "type": "string", "oneOf": [{ "const": "a", "description": "password" }] }),
        json!({ "type": "string", "oneOf": [
            { "const": "a", "title": "b" }, { "const": "c", "description": "Type your password" }] }),
        json!({ "type": "string", "oneOf": [{ "const": "password" }, { "const": "x" }] }),
        json!({ "type": "string", "enum": ["password"] }),
        json!({ "type": "string", "enum": ["password", "other"] }),
        json!({ "type": "string", "const": "password" }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "title": "Password" }),
        json!({ "anyOf": [{ "type": "string", "title": "Password" }, { "type": "null" }] }),
        json!({ "allOf": [{ "title": "Password" }] }),
        json!({ "type": "object", "patternProperties": { "^password$": string() } }),
        json!({ "type": "object", "additionalProperties": { "title": "Password" } }),
        json!({ "type": "object", "required": ["password"] }),
        json!({ "type": "object", "properties": {}, "required": ["password"] }),
        json!({ "type": "string", "examples": ["your password"] }),
        json!({ "type": "string", "placeholder": "Password" }),
        json!({ "type": "string", "x-ui": { "label": ["Password"] } }),
        json!({ "type": "string", "x-password": true }),
        json!({ "type": "string", "writeOnly": true }),
        json!({ "type": "string", "pattern": "^ghp_[A-Za-z0-9]{36}$" }),
        json!({ "type": "string", "pattern": "^gh[pousr]_" }),
        json!({ "type": "string", "$ref": "#/$defs/password" }),
    ];
    let missed: Vec<&Value> =
        places.iter().filter(|schema| field("value", (*schema).clone()).is_none()).collect();
    assert_eq!(missed, Vec::<&Value>::new());
    let defs = json!({ "properties": { "v": { "$ref": "#/$defs/a" } },
        "$defs": { "a": { "type": "string", "title": "Password" } } });
    assert_eq!(form(defs), Some("a".to_owned()));
    let parts = json!({ "allOf": [{ "properties": { "password": { "type": "string" } } }] });
    assert_eq!(form(parts), Some("password".to_owned()));
}

#[test]
fn form_that_requests_no_secret_text_gets_no_warning() {
    for schema in [
        json!({ "type": "object", "title": "Password", "properties": { "keep": { "type": "boolean" } } }),
        json!({ "type": "object", "required": ["keep_password"],
            "properties": { "keep_password": { "type": "boolean" } } }),
        json!({ "type": "array", "title": "Tokens to revoke", "items": { "enum": ["a", "b"] } }),
        json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }], "title": "Tokens" }),
        json!({ "type": "string", "title": "Auth method",
            "oneOf": [{ "const": "password" }, { "const": "sso", "title": "SSO" }] }),
        json!({ "type": "string", "writeOnly": false, "pattern": "^[a-z]+$" }),
    ] {
        assert_eq!(field("value", schema.clone()), None, "{schema}");
    }
    let empty = json!({ "message": "Delete the token?", "requestedSchema": { "type": "object" } });
    assert_eq!(asks_for_secret(empty.as_object().unwrap()), None);
}

#[test]
fn form_too_large_to_check_gets_a_warning() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..=form::DEPTH {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    assert_eq!(field("deep", deep), Some("a".to_owned()));
    let many: Vec<String> = (0..form::NODES).map(|n| format!("c{n}")).collect();
    assert_eq!(field("many", json!({ "type": "string", "enum": many })), Some("many".to_owned()));
}

#[test]
fn form_mode_with_a_url_is_checked_for_secrets() {
    for (mode, url) in [("form", "https://a.example/"), ("", "")] {
        let form = json!({ "mode": mode, "url": url, "requestedSchema": {
            "properties": { "password": { "type": "string" } } } });
        assert!(asks_for_secret(form.as_object().unwrap()).is_some(), "{form}");
    }
}
