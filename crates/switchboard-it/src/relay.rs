//! A relay for clients that cannot send the gateway's bearer token: adds the token, and changes
//! nothing else that the gateway checks.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The size limit of the head of a request, larger than any head that the suite sends.
const HEAD_LIMIT: usize = 64 * 1024;

/// The address of the relay, the address of the gateway, and its bearer token.
#[derive(Debug, Clone)]
pub struct Relay {
    pub own: SocketAddr,
    pub gateway: SocketAddr,
    pub token: String,
}

impl Relay {
    /// Forwards connections until dropped.
    pub async fn run(self, listener: TcpListener) -> io::Result<()> {
        let mut connections = JoinSet::new();
        loop {
            let (client, _) = listener.accept().await?;
            let relay = self.clone();
            // Client and gateway notice a broken connection themselves.
            connections.spawn(async move { relay.pass(client).await });
            while connections.try_join_next().is_some() {}
        }
    }

    /// Forwards one request per connection; all bytes after its head are unchanged, both ways.
    async fn pass(&self, mut client: TcpStream) -> io::Result<()> {
        let Some((head, rest)) = read_head(&mut client).await? else { return Ok(()) };
        let mut gateway = TcpStream::connect(self.gateway).await?;
        gateway.write_all(self.admit(&head).as_bytes()).await?;
        gateway.write_all(&rest).await?;
        tokio::io::copy_bidirectional(&mut client, &mut gateway).await?;
        Ok(())
    }

    /// Replaces the relay's address in `Host` and `Origin` by the gateway's; the gateway refuses
    /// any other.
    fn admit(&self, head: &str) -> String {
        let mut lines = head.split_terminator("\r\n");
        let mut admitted = vec![lines.next().unwrap_or_default().to_owned()];
        let mut carries_token = false;
        for line in lines {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let own = match &*name.to_ascii_lowercase() {
                "host" => value.trim() == self.own.to_string(),
                "origin" => value.trim() == format!("http://{}", self.own),
                // The next request uses a new connection.
                "connection" => continue,
                "authorization" => {
                    carries_token = true;
                    false
                }
                _ => false,
            };
            admitted.push(match own {
                true => line.replace(&self.own.to_string(), &self.gateway.to_string()),
                false => line.to_owned(),
            });
        }
        admitted.push("Connection: close".to_owned());
        if !carries_token {
            admitted.push(format!("Authorization: Bearer {}", self.token));
        }
        admitted.join("\r\n") + "\r\n\r\n"
    }
}

/// The head without its empty line, and the bytes read after it; `None` if there is no request.
async fn read_head(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut bytes = Vec::new();
    while bytes.len() < HEAD_LIMIT {
        if client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
        if let Some(end) = bytes.windows(END.len()).position(|window| window == END) {
            let rest = bytes.split_off(end + END.len());
            bytes.truncate(end);
            return Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), rest)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay() -> Relay {
        Relay {
            own: "127.0.0.1:1000".parse().unwrap(),
            gateway: "127.0.0.1:2000".parse().unwrap(),
            token: "secret".to_owned(),
        }
    }

    fn check(header: &str, expected: &str) {
        let admitted = relay().admit(&format!("POST /mcp HTTP/1.1\r\n{header}"));
        let expected = format!("POST /mcp HTTP/1.1\r\n{expected}\r\n\r\n");
        assert_eq!(admitted, expected);
    }

    #[test]
    fn host_header_is_rewritten_only_for_the_relay_itself() {
        for (sent, arrives) in [
            ("Host: 127.0.0.1:1000", "Host: 127.0.0.1:2000"),
            ("host: 127.0.0.1:1000", "host: 127.0.0.1:2000"),
            ("Host: evil.example.com", "Host: evil.example.com"),
            ("Host: 127.0.0.1:1001", "Host: 127.0.0.1:1001"),
            ("Host: 127.0.0.1:1000.example.com", "Host: 127.0.0.1:1000.example.com"),
            ("Origin: http://127.0.0.1:1000", "Origin: http://127.0.0.1:2000"),
            ("Origin: https://127.0.0.1:1000", "Origin: https://127.0.0.1:1000"),
            ("Origin: http://evil.example.com", "Origin: http://evil.example.com"),
            ("Mcp-Name:  a: 127.0.0.1:1000 ", "Mcp-Name:  a: 127.0.0.1:1000 "),
        ] {
            check(sent, &format!("{arrives}\r\nConnection: close\r\nAuthorization: Bearer secret"));
        }
    }

    #[test]
    fn relay_keeps_an_authorization_header_of_the_client() {
        check("authorization: Bearer wrong", "authorization: Bearer wrong\r\nConnection: close");
    }

    #[test]
    fn relay_closes_each_connection_after_one_request() {
        let expected = "Connection: close\r\nAuthorization: Bearer secret";
        check("Connection: keep-alive", expected);
    }

    #[tokio::test]
    async fn relay_forwards_single_bytes_and_closes_both_ends() {
        let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap();
        let relay = Relay { own, gateway: gateway.local_addr().unwrap(), ..relay() };
        let relay = tokio::spawn(relay.run(listener));

        let mut client = TcpStream::connect(own).await.unwrap();
        client.write_all(b"POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n{").await.unwrap();
        let (mut gateway, _) = gateway.accept().await.unwrap();
        let (head, rest) = read_head(&mut gateway).await.unwrap().unwrap();
        assert!(head.ends_with("\r\nAuthorization: Bearer secret"), "{head}");
        let mut byte = rest;
        if byte.is_empty() {
            gateway.read_buf(&mut byte).await.unwrap();
        }
        assert_eq!(byte, b"{");
        client.write_all(b"}").await.unwrap();
        assert_eq!(gateway.read_u8().await.unwrap(), b'}');
        for byte in *b"HTTP/1.1 200 OK\r\n\r\ndata: one\n\n" {
            gateway.write_all(&[byte]).await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), byte);
        }
        drop(client);
        assert_eq!(gateway.read(&mut [0; 1]).await.unwrap(), 0);
        relay.abort();
    }
}
