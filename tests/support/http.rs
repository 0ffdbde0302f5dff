//! One plain HTTP request to a local port.

use super::Result;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub async fn send(address: &str, mut request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    request.headers_mut().insert("host", address.parse()?);
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    Ok((status, answer.into_body().collect().await?.to_bytes()))
}

pub async fn get(address: &str, path: &str) -> Result<(StatusCode, String)> {
    let (status, body) = send(address, Request::get(path).body(Full::default())?).await?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
