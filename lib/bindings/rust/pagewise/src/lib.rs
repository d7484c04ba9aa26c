//! libpagewise for tokio: sends files over sockets, and never waits for a disk.
//!
//! A [`Loop`] belongs to one thread, as do its files and futures; use it in a `LocalSet`, where [`Loop::run`] must
//! run as a task. libpagewise(3) describes what the library does.
//!
//! A future may be dropped at any time. Memory and sockets that a disk thread still uses stay until it has
//! finished, if [`Loop::run`] runs until then.

use pagewise_sys as sys;
use std::cell::Cell;
use std::ffi::{c_char, c_int, CStr, CString};
use std::future::poll_fn;
use std::io::{self, Error};
use std::marker::PhantomData;
use std::mem::{zeroed, MaybeUninit};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{addr_of, addr_of_mut, drop_in_place, null, null_mut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{unix::AsyncFd, Interest};
use tokio::net::TcpStream;

const EINPROGRESS: c_int = if cfg!(target_os = "freebsd") { 36 } else { 115 };

fn check(error: c_int) -> io::Result<()> {
    if error < 0 { Err(Error::from_raw_os_error(-error)) } else { Ok(()) }
}

/// Calls `f` with the path as a C string. Allocates no memory for a short path.
fn with_c_path<R>(path: &Path, f: impl FnOnce(*const c_char) -> R) -> io::Result<R> {
    let invalid = || Error::from(io::ErrorKind::InvalidInput);
    let path = path.as_os_str().as_bytes();
    let mut short = [0; 256];
    if path.len() < short.len() {
        short[..path.len()].copy_from_slice(path);
        let path = CStr::from_bytes_with_nul(&short[..=path.len()]).map_err(|_| invalid())?;
        return Ok(f(path.as_ptr()));
    }
    Ok(f(CString::new(path).map_err(|_| invalid())?.as_ptr()))
}

struct PoolHandle(*mut sys::pw_pool);
// Any thread may use a pool.
unsafe impl Send for PoolHandle {}
unsafe impl Sync for PoolHandle {}

impl Drop for PoolHandle {
    fn drop(&mut self) {
        unsafe { sys::pw_pool_destroy(&mut self.0, 1_000_000) };
    }
}

/// Threads that wait for disks. A pool lives as long as its loops.
#[derive(Clone)]
pub struct Pool(Arc<PoolHandle>);

impl Pool {
    /// `threads` is the maximum for each queue of a device; 0 means the library's default.
    pub fn new(threads: u32) -> io::Result<Pool> {
        let conf = sys::pw_pool_conf { ppc_threads: threads, ppc_queue: 0 };
        let mut pool = null_mut();
        check(unsafe { sys::pw_pool_create(&conf, &mut pool) })?;
        Ok(Pool(Arc::new(PoolHandle(pool))))
    }
}

struct RootHandle(*mut sys::pw_root);
// Any thread may use a root, whose reference count is atomic.
unsafe impl Send for RootHandle {}
unsafe impl Sync for RootHandle {}

impl Drop for RootHandle {
    fn drop(&mut self) {
        unsafe { sys::pw_root_close(&mut self.0) };
    }
}

/// A directory; nothing outside it is opened.
#[derive(Clone)]
pub struct Root(Arc<RootHandle>);

impl Root {
    /// May wait for the disk.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Root> {
        let mut root = null_mut();
        check(with_c_path(path.as_ref(), |path| unsafe { sys::pw_root_open_with(path, 0, &mut root) })?)?;
        Ok(Root(Arc::new(RootHandle(root))))
    }
}

struct LoopHandle {
    raw: *mut sys::pw_loop,
    spare: Cell<Option<Box<MaybeUninit<SendState>>>>, // memory for the next transmission
    _pool: Pool,
}

impl Drop for LoopHandle {
    /// Waits two seconds for disk threads that look up cancelled opens. A loop that waits for a hung disk stays.
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(2);
        unsafe {
            while sys::pw_loop_pending(self.raw) > 0 && Instant::now() < end {
                sys::pw_loop_drain(self.raw);
                std::thread::sleep(Duration::from_millis(1));
            }
            sys::pw_loop_destroy(&mut self.raw);
        }
    }
}

/// The library's side of an event loop.
#[derive(Clone)]
pub struct Loop(Rc<LoopHandle>);

struct Fd(RawFd);

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl Loop {
    pub fn new(pool: &Pool) -> io::Result<Loop> {
        let mut raw = null_mut();
        check(unsafe { sys::pw_loop_create(pool.0 .0, null(), &mut raw) })?;
        Ok(Loop(Rc::new(LoopHandle { raw, spare: Cell::new(None), _pool: pool.clone() })))
    }

    /// Delivers completions. Must run as a task of its own; returns only if the reactor fails.
    #[allow(deprecated)] // with_interest: the loop, which has the descriptor, lives longer than `fd`
    pub async fn run(self) -> io::Result<()> {
        let fd = AsyncFd::with_interest(Fd(unsafe { sys::pw_loop_fd(self.0.raw) }), Interest::READABLE)?;
        let mut tick = tokio::time::interval(Duration::from_millis(250));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let ready = poll_fn(|cx| {
                if tick.poll_tick(cx).is_ready() {
                    unsafe { sys::pw_loop_tick(self.0.raw, sys::pw_now()) };
                    let _ = tick.poll_tick(cx); // registers the task for the next tick
                }
                fd.poll_read_ready(cx)
            });
            let mut guard = ready.await?;
            guard.clear_ready(); // before the drain, which reads the descriptor first
            unsafe { sys::pw_loop_drain(self.0.raw) };
        }
    }

    /// Opens `path`, which is relative to the root.
    pub async fn open(&self, root: &Root, path: impl AsRef<Path>) -> io::Result<File> {
        // The state does not move, since it is part of a future that is pinned.
        let mut state = OpenState { op: unsafe { zeroed() }, wait: Wait::default() };
        let state = addr_of_mut!(state);
        let _opening = Opening(state);
        let error = with_c_path(path.as_ref(), |path| unsafe {
            (*state).op.op_waiter.wt_done = Some(on_open);
            sys::pw_file_open(self.0.raw, root.0 .0, path, sys::pw_now(), addr_of_mut!((*state).op))
        })?;
        if error == -EINPROGRESS {
            unsafe { (*state).wait.begin() };
            poll_fn(|cx| unsafe { (*state).wait.poll(cx) }).await;
            check(unsafe { (*state).op.op_waiter.wt_error })?;
        } else {
            check(error)?;
        }
        // Takes the reference to the file, which the drop of `_opening` would release.
        let raw = unsafe { std::mem::replace(&mut (*state).op.op_file, null_mut()) };
        Ok(File { raw, of: self.clone() })
    }

    /// Sends `head`, then the range of the file, and returns the number of bytes.
    ///
    /// After an error close the socket. The future shares the ownership of the socket, since the
    /// library may need the socket after the future was dropped.
    pub async fn send(&self, socket: &Arc<TcpStream>, head: Vec<u8>, file: Option<(&File, Range<u64>)>) -> io::Result<u64> {
        let (raw, range) = file.map_or((null_mut(), 0..0), |(file, range)| (file.raw, range));
        let memory = self.0.spare.take().unwrap_or_else(|| Box::new(MaybeUninit::uninit()));
        let state = Box::into_raw(memory).cast::<SendState>();
        unsafe {
            addr_of_mut!((*state).send).write(zeroed());
            addr_of_mut!((*state).wait).write(Wait::default());
            addr_of_mut!((*state).left).write(Cell::new(false));
            addr_of_mut!((*state).head).write(head);
            addr_of_mut!((*state)._socket).write(socket.clone());
            addr_of_mut!((*state).of).write(self.clone());
        }
        let _sending = Sending(state);
        let send = unsafe {
            let send = addr_of_mut!((*state).send);
            (*send).snd_path = sys::pw_send_default();
            (*send).snd_loop = self.0.raw;
            (*send).snd_sock = socket.as_raw_fd();
            (*send).snd_mem = (*state).head.as_ptr().cast();
            (*send).snd_mem_len = (*state).head.len();
            (*send).snd_file = if range.is_empty() { null_mut() } else { raw };
            (*send).snd_off = range.start as i64;
            (*send).snd_len = range.end.saturating_sub(range.start) as i64;
            (*send).snd_done = Some(on_sent);
            check(sys::pw_send_start(send))?;
            send
        };
        loop {
            let step = || match unsafe { sys::pw_send_step(send) } {
                sys::PW_SEND_WANT_WRITE => Err(Error::from(io::ErrorKind::WouldBlock)),
                status => {
                    if status == sys::PW_SEND_PENDING {
                        unsafe { (*state).wait.begin() };
                    }
                    Ok(status)
                }
            };
            match socket.async_io(Interest::WRITABLE, step).await? {
                sys::PW_SEND_DONE => return Ok(unsafe { (*send).snd_sent }),
                sys::PW_SEND_AGAIN => tokio::task::yield_now().await,
                sys::PW_SEND_PENDING => poll_fn(|cx| unsafe { (*state).wait.poll(cx) }).await,
                _ => return Err(Error::from_raw_os_error(unsafe { -(*send).snd_error })),
            }
        }
    }
}

/// An open file. The loop caches a dropped file for 10 s after its last use.
pub struct File {
    raw: *mut sys::pw_file,
    of: Loop,
}

impl File {
    pub fn is_regular(&self) -> bool {
        unsafe { (*self.raw).fil_type == sys::PW_FILE_REGULAR }
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        unsafe { (*self.raw).fil_size as u64 }
    }

    pub fn modified(&self) -> SystemTime {
        let at = unsafe { (*self.raw).fil_mtime };
        let (whole, part) = (Duration::from_secs(at.tv_sec.unsigned_abs()), Duration::from_nanos(at.tv_nsec as u64));
        if at.tv_sec < 0 { UNIX_EPOCH - whole + part } else { UNIX_EPOCH + whole + part }
    }

    pub fn inode(&self) -> u64 {
        unsafe { (*self.raw).fil_ino }
    }
}

impl Clone for File {
    fn clone(&self) -> File {
        unsafe { sys::pw_file_ref(self.raw) };
        File { raw: self.raw, of: self.of.clone() }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        unsafe { sys::pw_file_unref(&mut self.raw) };
    }
}

/// The state of a wait, and the task that awaits its end. Only the loop's thread uses this struct.
#[derive(Default)]
struct Wait {
    waits: Cell<bool>,
    waker: Cell<Option<Waker>>,
    _thread: PhantomData<*const ()>,
}

impl Wait {
    fn begin(&self) {
        self.waits.set(true);
    }

    fn end(&self) {
        self.waits.set(false);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.waits.get() {
            return Poll::Ready(());
        }
        self.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

#[repr(C)]
struct OpenState {
    op: sys::pw_open, // first, since it is cast
    wait: Wait,
}

unsafe extern "C" fn on_open(waiter: *mut sys::pw_waiter) {
    let state = waiter.cast::<OpenState>();
    (*addr_of!((*state).wait)).end();
}

/// Dropping it while the open waits cancels the open; then the library no longer uses the state.
struct Opening(*mut OpenState);

impl Drop for Opening {
    fn drop(&mut self) {
        unsafe {
            if (*self.0).wait.waits.get() {
                sys::pw_open_cancel(addr_of_mut!((*self.0).op));
            } else {
                sys::pw_file_unref(addr_of_mut!((*self.0).op.op_file));
            }
        }
    }
}

#[repr(C)]
struct SendState {
    send: sys::pw_send, // first, since it is cast
    wait: Wait,
    left: Cell<bool>, // true if the future was dropped
    head: Vec<u8>,
    _socket: Arc<TcpStream>,
    of: Loop,
}

impl SendState {
    unsafe fn free(state: *mut SendState) {
        sys::pw_send_finish(addr_of_mut!((*state).send));
        let of = (*state).of.clone();
        drop_in_place(state);
        of.0.spare.set(Some(Box::from_raw(state.cast())));
    }
}

unsafe extern "C" fn on_sent(send: *mut sys::pw_send) {
    let state = send.cast::<SendState>();
    if (*addr_of!((*state).left)).get() {
        SendState::free(state);
    } else {
        (*addr_of!((*state).wait)).end();
    }
}

/// Owns the state, or leaves it to on_sent.
struct Sending(*mut SendState);

impl Drop for Sending {
    fn drop(&mut self) {
        unsafe {
            let send = addr_of_mut!((*self.0).send);
            if (*send).snd_pending {
                (*self.0).left.set(true);
                sys::pw_send_cancel(send);
            } else {
                SendState::free(self.0);
            }
        }
    }
}
