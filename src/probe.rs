//! `uptake probe`: asks a page of a running operator. The image has no shell and no other client.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    thread::sleep,
    time::{Duration, Instant},
};

use http::Uri;

use crate::args::ProbeArgs;

/// For one try: connecting, and each read and write.
const TRY: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);
/// Reasons why it isn't ready are a few lines.
const ANSWER_LIMIT: u64 = 16 << 10;

/// The last answer wasn't the one that was waited for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{url} isn't ready: {last}")]
pub struct ProbeError {
    url: String,
    last: String,
}

/// Asks until the page answers with success.
///
/// # Errors
/// It doesn't within the time.
pub fn run(args: &ProbeArgs) -> Result<(), ProbeError> {
    let end = Instant::now() + args.timeout;
    loop {
        let last = match ask(&args.url) {
            Ok(()) => return Ok(()),
            Err(last) => last,
        };
        if Instant::now() + PAUSE > end {
            return Err(ProbeError { url: args.url.to_string(), last });
        }
        sleep(PAUSE);
    }
}

fn ask(url: &Uri) -> Result<(), String> {
    let host = url.host().ok_or("the URL names no host")?;
    let port = url.port_u16().unwrap_or(80);
    let text = |error: std::io::Error| error.to_string();
    let addresses = (host.trim_matches(['[', ']']), port).to_socket_addrs().map_err(text)?;
    let mut last = format!("{host} has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, TRY) {
            Ok(stream) => return read(stream, host, url.path()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

fn read(mut stream: TcpStream, host: &str, path: &str) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    stream.set_read_timeout(Some(TRY)).map_err(text)?;
    stream.set_write_timeout(Some(TRY)).map_err(text)?;
    // With HTTP/1.0 the answer ends with the connection and has no chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_LIMIT).read_to_end(&mut answer).map_err(text)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or("no HTTP");
    if status.starts_with('2') {
        Ok(())
    } else {
        Err(format!("{status} {}", body.trim().replace('\n', "; ")))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers once with each of these, then not at all.
    fn serve(answers: &'static [&'static str]) -> Uri {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                let _ = stream.read(&mut request).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        format!("http://127.0.0.1:{port}/readyz").parse().unwrap()
    }

    fn probe(url: &Uri, timeout: Duration) -> Result<(), String> {
        run(&ProbeArgs { url: url.clone(), timeout }).map_err(|error| error.to_string())
    }

    #[test]
    fn it_asks_until_the_page_says_yes() {
        let url =
            serve(&["HTTP/1.1 503 Service Unavailable\r\n\r\nledger: no\n", "HTTP/1.1 200 OK\r\n\r\nok\n"]);
        assert_eq!(probe(&url, Duration::from_secs(30)), Ok(()));
    }

    #[test]
    fn it_says_why_it_gives_up() {
        let url = serve(&["HTTP/1.1 503 Service Unavailable\r\n\r\nledger: no\nSecret: forbidden\n"]);
        let said = probe(&url, Duration::ZERO).unwrap_err();
        assert_eq!(said, format!("{url} isn't ready: 503 ledger: no; Secret: forbidden"));
    }
}
