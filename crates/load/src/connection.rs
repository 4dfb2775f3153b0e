//! One HTTP/1.1 connection over TLS. Sends prepared bytes, and parses responses only as far as needed
//! to find their end.

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::target::Target;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    /// Received bytes; those before `from` are consumed.
    held: Vec<u8>,
    from: usize,
}

/// Status and size of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseSummary {
    pub(crate) code: u16,
    /// Size of the body.
    pub(crate) bytes: usize,
}

/// How the end of a response body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    After(usize),
    Chunked,
}

const READ: usize = 256 << 10;

impl Connection {
    pub(crate) async fn open(target: &Target) -> Result<Self> {
        let socket = TcpStream::connect(target.address).await?;
        socket.set_nodelay(true)?;
        let connector = TlsConnector::from(std::sync::Arc::clone(&target.tls));
        let name = ServerName::try_from("localhost")?;
        let stream = connector.connect(name, socket).await.context("TLS handshake failed")?;
        Ok(Self { stream, held: Vec::new(), from: 0 })
    }

    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<ResponseSummary> {
        self.send(request).await?;
        let (code, end) = self.head().await?;
        let bytes = match end {
            End::After(length) => {
                self.skip(length).await?;
                length
            }
            End::Chunked => self.skip_chunks().await?,
        };
        Ok(ResponseSummary { code, bytes })
    }

    /// Sends a request with a streamed response, and reads its head.
    pub(crate) async fn follow(&mut self, request: &[u8]) -> Result<u16> {
        self.send(request).await?;
        Ok(self.head().await?.0)
    }

    /// Waits for more bytes and returns them; none at the end.
    pub(crate) async fn next_bytes(&mut self, into: &mut Vec<u8>) -> Result<Option<()>> {
        if self.from < self.held.len() {
            into.extend_from_slice(&self.held[self.from..]);
            self.from = self.held.len();
            return Ok(Some(()));
        }
        into.reserve(READ);
        let count = self.stream.read_buf(into).await?;
        Ok((count > 0).then_some(()))
    }

    async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        Ok(())
    }

    async fn head(&mut self) -> Result<(u16, End)> {
        loop {
            if let Some(length) = memmem::find(&self.held[self.from..], b"\r\n\r\n") {
                let head = &self.held[self.from..self.from + length];
                let read = read_head(head)?;
                self.from += length + 4;
                return Ok(read);
            }
            self.more().await?;
        }
    }

    async fn skip(&mut self, mut length: usize) -> Result<()> {
        loop {
            let there = self.held.len() - self.from;
            if there >= length {
                self.from += length;
                return Ok(());
            }
            length -= there;
            self.from = self.held.len();
            self.more().await?;
        }
    }

    async fn skip_chunks(&mut self) -> Result<usize> {
        let mut sum = 0;
        loop {
            let size = self.chunk_size().await?;
            self.skip(size + 2).await?; // with the end of line behind it
            if size == 0 {
                return Ok(sum);
            }
            sum += size;
        }
    }

    async fn chunk_size(&mut self) -> Result<usize> {
        loop {
            if let Some(length) = memmem::find(&self.held[self.from..], b"\r\n") {
                let line = std::str::from_utf8(&self.held[self.from..self.from + length])?;
                self.from += length + 2;
                return usize::from_str_radix(line, 16).context("invalid chunk size");
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<()> {
        if self.from == self.held.len() {
            self.held.clear();
            self.from = 0;
        }
        self.held.reserve(READ / 16);
        let count = self.stream.read_buf(&mut self.held).await?;
        ensure!(count > 0, "the server closed the connection");
        Ok(())
    }
}

fn read_head(head: &[u8]) -> Result<(u16, End)> {
    let code = head.get(9..12).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    let code = code.context("invalid status line")?;
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            return Ok((code, End::After(std::str::from_utf8(value)?.parse()?)));
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Ok((code, End::Chunked));
        }
    }
    bail!("the response has neither a length nor chunks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_say_where_bodies_end() {
        let cases: [(&str, (u16, End)); 2] = [
            ("HTTP/1.1 201 Created\r\nContent-Length: 12", (201, End::After(12))),
            ("HTTP/1.1 200 OK\r\ndate: now\r\ntransfer-encoding: chunked", (200, End::Chunked)),
        ];
        for (head, read) in cases {
            assert_eq!(read_head(head.as_bytes()).unwrap(), read);
        }
        assert!(read_head(b"HTTP/1.1 200 OK").is_err());
    }
}
