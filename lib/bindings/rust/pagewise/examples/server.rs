//! A server for one directory, in tokio. Usage: server DIRECTORY PORT. One thread serves all clients, and never
//! waits for a disk. Supports GET over HTTP/1.1.

use pagewise::{Loop, Pool, Root};
use std::{env, io, process, sync::Arc};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{spawn_local, LocalSet};

/// Reads until the end of a request's head, and returns the path of the file. Returns None if the client has left.
async fn read_request(socket: &TcpStream, input: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&input[..end]).into_owned();
            input.drain(..end + 4);
            let target = head.strip_prefix("GET /").unwrap_or("");
            let path = target.split([' ', '?']).next().unwrap_or("");
            return Ok(Some(if path.is_empty() { "index.html" } else { path }.to_string()));
        }
        if input.len() > 4096 {
            return Ok(None);
        }
        socket.readable().await?;
        let mut data = [0; 4096];
        match socket.try_read(&mut data) {
            Ok(0) => return Ok(None),
            Ok(n) => input.extend_from_slice(&data[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
            Err(error) => return Err(error),
        }
    }
}

async fn serve(pages: Loop, root: Root, socket: TcpStream) -> io::Result<()> {
    let socket = Arc::new(socket);
    let mut input = Vec::new();
    while let Some(path) = read_request(&socket, &mut input).await? {
        let file = pages.open(&root, path).await.ok().filter(|file| file.is_regular());
        let (status, size) = file.as_ref().map_or(("404 Not Found", 0), |file| ("200 OK", file.size()));
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n");
        pages.send(&socket, head.into_bytes(), file.as_ref().map(|file| (file, 0..size))).await?;
    }
    Ok(())
}

async fn accept(pages: Loop, root: Root, port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    spawn_local(pages.clone().run());
    loop {
        let (socket, _) = listener.accept().await?;
        spawn_local(serve(pages.clone(), root.clone(), socket)); // its error ends the client alone
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let [_, directory, port] = args.as_slice() else {
        eprintln!("usage: server DIRECTORY PORT");
        process::exit(2);
    };
    let pages = Loop::new(&Pool::new(0)?)?;
    let root = Root::open(directory)?;
    let port = port.parse().map_err(io::Error::other)?;
    LocalSet::new().run_until(accept(pages, root, port)).await
}
