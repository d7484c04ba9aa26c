//! Drops futures that wait for a disk which hangs. Usage: leave DIRECTORY COLD. The file must be new to the loop.

use pagewise::{Loop, Pool, Root};
use std::{env, io, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{spawn_local, LocalSet};
use tokio::time::{sleep, timeout};

const SHORT: Duration = Duration::from_millis(300);

async fn leave(directory: &str, name: &str) -> io::Result<()> {
    let (pages, root) = (Loop::new(&Pool::new(0)?)?, Root::open(directory)?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let _client = TcpStream::connect(listener.local_addr()?).await?;
    let socket = Arc::new(listener.accept().await?.0);
    spawn_local(pages.clone().run());

    let Ok(file) = timeout(SHORT, pages.open(&root, name)).await else {
        println!("the open was dropped");
        return Ok(());
    };
    let file = file?;
    let sent = timeout(SHORT, pages.send(&socket, b"head".to_vec(), Some((&file, 0..file.size())))).await;
    assert!(sent.is_err(), "the disk does not hang");
    let last = Arc::downgrade(&socket);
    drop((socket, file));
    println!("the transmission was dropped, its socket is {}", if last.strong_count() > 0 { "kept" } else { "gone" });
    while last.strong_count() > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    println!("the socket is gone");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    LocalSet::new().run_until(leave(&args[1], &args[2])).await
}
