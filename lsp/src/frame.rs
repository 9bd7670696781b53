//! Splits a stream of bytes into messages: headers, a blank line, a body of the declared length.
//!
//! The server cannot ask the client to send a message again, so a broken header must not end the session. The reader
//! skips everything up to the next valid `Content-Length` header, with bounded memory, and reports the fault once. JSON
//! has no line breaks inside strings, so no text inside a skipped body can look like a header.

use memchr::memchr;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// The longest body that is read. An open document arrives in one message.
pub const MAX_BODY: u64 = 256 << 20;

/// How many bytes of a header line are kept. Of a longer line, the last bytes are kept.
const MAX_LINE: usize = 8 << 10;

const CONTENT_LENGTH: &[u8] = b"content-length:";

#[derive(PartialEq, Eq, Debug)]
pub enum Frame {
    Body(Vec<u8>),
    /// Bytes that are not a message, and the reason. The reader skips everything up to the next message.
    Malformed(String),
}

pub struct Frames<R> {
    input: BufReader<R>,
    /// The last bytes of the current line.
    line: Vec<u8>,
    /// The length that the headers read so far declare.
    length: Option<u64>,
    /// Whether headers were read since the last message.
    in_headers: bool,
    /// The fault has been reported, and the reader is skipping to the next message.
    skipping: bool,
}

enum Line {
    Blank,
    Length(u64),
    Header,
    Fault(String),
    /// A `Content-Length` header that follows other text on the same line, for example a body that is longer than
    /// declared.
    LateLength(u64),
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub fn new(input: R) -> Self {
        let input = BufReader::with_capacity(64 << 10, input);
        Self { input, line: Vec::new(), length: None, in_headers: false, skipping: false }
    }

    /// The next message or fault. `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            self.read_line().await?;
            let fault = match classify(&self.line) {
                Line::Blank => match self.length.take() {
                    Some(length) => return self.body(length).await,
                    // Some clients send a line break after the body.
                    None if !self.in_headers => continue,
                    None => "header without Content-Length".to_owned(),
                },
                Line::Length(length) => {
                    self.length = Some(length);
                    continue;
                }
                Line::Header => {
                    self.in_headers = true;
                    continue;
                }
                Line::Fault(fault) => {
                    self.length = None;
                    fault
                }
                Line::LateLength(length) => {
                    self.length = Some(length);
                    "unexpected bytes between messages".to_owned()
                }
            };
            self.in_headers = false;
            if !std::mem::replace(&mut self.skipping, true) {
                return Some(Frame::Malformed(fault));
            }
        }
    }

    async fn body(&mut self, length: u64) -> Option<Frame> {
        (self.in_headers, self.skipping) = (false, false);
        let mut body = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut body).await.ok()?;
        (read as u64 == length).then_some(Frame::Body(body))
    }

    /// Reads up to the next line break.
    async fn read_line(&mut self) -> Option<()> {
        self.line.clear();
        loop {
            let bytes = self.input.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let (count, ended) = match memchr(b'\n', bytes) {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            };
            self.line.extend_from_slice(&bytes[..count]);
            self.input.consume(count);
            if self.line.len() > MAX_LINE {
                self.line.drain(..self.line.len() - MAX_LINE);
            }
            if ended {
                return Some(());
            }
        }
    }
}

fn classify(line: &[u8]) -> Line {
    let line = line.trim_ascii_end();
    if line.is_empty() {
        return Line::Blank;
    }
    let is_length = |bytes: &[u8]| bytes.eq_ignore_ascii_case(CONTENT_LENGTH);
    let Some(at) = line.windows(CONTENT_LENGTH.len()).rposition(is_length) else {
        return match is_header(line) {
            true => Line::Header,
            false => Line::Fault("unexpected bytes between messages".to_owned()),
        };
    };
    let value = line[at + CONTENT_LENGTH.len()..].trim_ascii();
    match str::from_utf8(value).ok().and_then(|value| value.parse::<u64>().ok()) {
        None => Line::Fault(format!("Content-Length is not a number: `{}`", value.escape_ascii())),
        Some(length) if length > MAX_BODY => {
            Line::Fault(format!("message of {length} bytes exceeds the limit of {MAX_BODY}"))
        }
        Some(length) if at == 0 => Line::Length(length),
        Some(length) => Line::LateLength(length),
    }
}

/// Whether a line is a name, a colon and a value.
fn is_header(line: &[u8]) -> bool {
    let name = memchr(b':', line).map_or(&[][..], |colon| &line[..colon]);
    !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies as text, with faults in angle brackets.
    async fn frames(input: &[u8]) -> Vec<String> {
        let mut frames = Frames::new(input);
        let mut all = Vec::new();
        while let Some(frame) = frames.next().await {
            all.push(match frame {
                Frame::Body(body) => String::from_utf8(body).unwrap(),
                Frame::Malformed(fault) => format!("<{fault}>"),
            });
        }
        all
    }

    #[tokio::test]
    async fn headers_come_in_any_case_and_with_company() {
        let input = b"Content-Length: 2\r\n\r\nab\
            content-length:2\r\nX-Other: 1\r\n\r\ncd\r\n\
            Content-Type: application/vscode-jsonrpc; charset=utf8\r\nCONTENT-LENGTH:  2 \r\n\r\nef\
            Content-Length: 0\n\n";
        assert_eq!(frames(input).await, ["ab", "cd", "ef", ""]);
    }

    #[tokio::test]
    async fn broken_headers_are_reported_once_and_skipped() {
        let good = "Content-Length: 2\r\n\r\nok";
        let cases = [
            ("X: 1\r\n\r\n{\"a\":1}", "header without Content-Length"),
            ("Content-Length: -1\r\n\r\n{\"a\":1}\r\n", "Content-Length is not a number: `-1`"),
            ("Content-Length: 1x\r\n\r\n", "Content-Length is not a number: `1x`"),
            ("noise\r\nmore noise", "unexpected bytes between messages"),
            ("\u{feff}", "unexpected bytes between messages"),
            (
                "Content-Length: 268435457\r\n\r\n{\"text\": \"Content-Length: 3\"}",
                "message of 268435457 bytes exceeds the limit of 268435456",
            ),
            (
                "Content-Length: 99999999999999999999\r\n\r\n",
                "Content-Length is not a number: `99999999999999999999`",
            ),
        ];
        for (bad, fault) in cases {
            let input = format!("{good}{bad}{good}{good}");
            assert_eq!(frames(input.as_bytes()).await, ["ok", &format!("<{fault}>"), "ok", "ok"], "{bad}");
        }
    }

    #[tokio::test]
    async fn a_line_without_end_takes_bounded_memory() {
        let mut input = vec![b'x'; 1 << 20];
        input.extend_from_slice(b"Content-Length: 2\r\n\r\nok");
        let mut frames = Frames::new(input.as_slice());
        assert!(matches!(frames.next().await, Some(Frame::Malformed(_))));
        assert_eq!(frames.next().await, Some(Frame::Body(b"ok".to_vec())));
        assert!(frames.line.capacity() <= 1 << 17);
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_none() {
        assert_eq!(frames(b"Content-Length: 100\r\n\r\nab").await, [""; 0]);
    }
}
