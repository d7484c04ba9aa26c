//! Sends a file that is in memory COUNT times, to count what a request costs beside the same in C (bench/calls.c).
//! Usage: calls crate|tokio DIRECTORY NAME COUNT. With `tokio` only the socket is tokio's: the calls are those of C.

use pagewise::{Loop, Pool, Root};
use pagewise_sys as sys;
use std::ffi::{c_int, CString};
use std::io::{self, Error, Read};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::{env, mem::zeroed, process, time::Duration};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::task::{spawn_local, LocalSet};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: calls\r\n\r\n";
const EINPROGRESS: c_int = if cfg!(target_os = "freebsd") { 36 } else { 115 };
static DONE: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn on_open(_: *mut sys::pw_waiter) {
    DONE.store(true, Relaxed);
}

unsafe extern "C" fn on_sent(_: *mut sys::pw_send) {
    DONE.store(true, Relaxed);
}

fn check(error: c_int) -> io::Result<()> {
    if error < 0 { Err(Error::from_raw_os_error(-error)) } else { Ok(()) }
}

/// What bench/calls.c has.
struct Plain {
    lp: *mut sys::pw_loop,
    root: *mut sys::pw_root,
    name: CString,
}

impl Plain {
    unsafe fn new(directory: &str, name: &str) -> io::Result<Plain> {
        let (mut pool, mut lp, mut root) = (null_mut(), null_mut(), null_mut());
        check(sys::pw_pool_create(null(), &mut pool))?;
        check(sys::pw_loop_create(pool, null(), &mut lp))?;
        check(sys::pw_root_open_with(CString::new(directory)?.as_ptr(), 0, &mut root))?;
        Ok(Plain { lp, root, name: CString::new(name)? })
    }

    async unsafe fn wait(&self) {
        while !DONE.swap(false, Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            sys::pw_loop_drain(self.lp);
        }
    }

    async unsafe fn request(&self, socket: &TcpStream) -> io::Result<u64> {
        let mut op: sys::pw_open = zeroed();
        op.op_waiter.wt_done = Some(on_open);
        let error = sys::pw_file_open(self.lp, self.root, self.name.as_ptr(), sys::pw_now(), &mut op);
        if error == -EINPROGRESS {
            self.wait().await;
            check(op.op_waiter.wt_error)?;
        } else {
            check(error)?;
        }
        let mut send: sys::pw_send = zeroed();
        send.snd_path = sys::pw_send_default();
        send.snd_loop = self.lp;
        send.snd_sock = socket.as_raw_fd();
        send.snd_mem = HEAD.as_ptr().cast();
        send.snd_mem_len = HEAD.len();
        send.snd_file = op.op_file;
        send.snd_len = (*op.op_file).fil_size;
        send.snd_done = Some(on_sent);
        check(sys::pw_send_start(&mut send))?;
        loop {
            match socket.async_io(Interest::WRITABLE, || Ok(sys::pw_send_step(&mut send))).await? {
                sys::PW_SEND_DONE => break,
                sys::PW_SEND_AGAIN => (),
                sys::PW_SEND_PENDING => self.wait().await,
                _ => return Err(Error::other("the file does not fit into the socket")),
            }
        }
        sys::pw_send_finish(&mut send);
        sys::pw_file_unref(&mut op.op_file);
        Ok(send.snd_sent)
    }
}

async fn request(pages: &Loop, root: &Root, name: &str, socket: &Arc<TcpStream>) -> io::Result<u64> {
    let file = pages.open(root, name).await?;
    pages.send(socket, HEAD.to_vec(), Some((&file, 0..file.size()))).await
}

async fn run(what: &str, directory: &str, name: &str, count: u32) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
    let socket = listener.accept()?.0;
    socket.set_nonblocking(true)?;
    let socket = Arc::new(TcpStream::from_std(socket)?);
    let mut bytes = vec![0; 1 << 20];
    if what == "tokio" {
        let plain = unsafe { Plain::new(directory, name)? };
        for _ in 0..count {
            let sent = unsafe { plain.request(&socket).await? };
            client.read_exact(&mut bytes[..sent as usize])?;
        }
        return Ok(());
    }
    let (pages, root) = (Loop::new(&Pool::new(0)?)?, Root::open(directory)?);
    spawn_local(pages.clone().run());
    for _ in 0..count {
        let sent = request(&pages, &root, name, &socket).await?;
        client.read_exact(&mut bytes[..sent as usize])?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().collect();
    let [_, what, directory, name, count] = args.as_slice() else {
        eprintln!("usage: calls crate|tokio DIRECTORY NAME COUNT");
        process::exit(2);
    };
    LocalSet::new().run_until(run(what, directory, name, count.parse().map_err(Error::other)?)).await
}
