//! Declarations of `<pagewise.h>`, for 64-bit systems: pools, loops, roots, files, transmissions and fetches.
//! libpagewise(3) describes them. The crate `pagewise` is the safe interface.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

macro_rules! opaque {
    ($($name:ident)*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
opaque! { pw_pool pw_loop pw_root pw_send_path pw_sink stat }

pub const PW_FETCH_PAGES: c_uint = 0;
pub const PW_FETCH_MEMORY: c_uint = 1;
pub const PW_CACHE_KEEP: c_uint = 0;
pub const PW_CACHE_DROP: c_uint = 1;
pub const PW_CACHE_AUTO: c_uint = 2;
pub const PW_SEND_DONE: c_uint = 0;
pub const PW_SEND_WANT_WRITE: c_uint = 1;
pub const PW_SEND_AGAIN: c_uint = 2;
pub const PW_SEND_PENDING: c_uint = 3;
pub const PW_SEND_ERROR: c_uint = 4;
pub const PW_FILE_REGULAR: c_uint = 0;

#[repr(C)]
pub struct pw_pool_conf {
    pub ppc_threads: c_uint,
    pub ppc_queue: c_uint,
}

#[repr(C)]
pub struct pw_loop_conf {
    pub plc_open_files: c_uint,
    pub plc_device: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    pub plc_arg: *mut c_void,
    pub plc_attribute: *const c_char,
    pub plc_client: Option<unsafe extern "C" fn(*mut c_void, *const pw_send) -> c_uint>,
}

#[repr(C)]
pub struct pw_waiter {
    pub wt_done: Option<unsafe extern "C" fn(*mut pw_waiter)>,
    pub wt_loop: *mut pw_loop,
    pub wt_next: *mut pw_waiter,
    pub wt_error: c_int,
    pub wt_client: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct timespec {
    pub tv_sec: i64,
    pub tv_nsec: c_long,
}

#[repr(C)]
pub struct pw_file {
    pub fil_fd: c_int,
    pub fil_type: c_uint,
    pub fil_size: i64,
    pub fil_mtime: timespec,
    pub fil_ctime: timespec,
    pub fil_ino: u64,
    pub fil_dev: u64,
    pub fil_checked: u64,
    pub fil_attribute: *const c_char,
    pub fil_attribute_len: usize,
    pub fil_user: *mut c_void,
    pub fil_user_free: Option<unsafe extern "C" fn(*mut c_void)>,
    pub fil_stale: bool,
}

#[repr(C)]
pub struct pw_open {
    pub op_waiter: pw_waiter,
    pub op_attribute: bool,
    pub op_file: *mut pw_file,
    pub op_link: [*mut c_void; 2],
    pub op_others: *mut c_void,
}

#[repr(C)]
pub struct pw_fetch {
    pub ft_waiter: pw_waiter,
    pub ft_file: *mut pw_file,
    pub ft_off: i64,
    pub ft_len: usize,
    pub ft_want: c_uint,
    pub ft_cache: c_uint,
    pub ft_begun: bool,
    pub ft_mem: *const c_char,
    pub ft_have: usize,
    pub ft_private: [u64; 14],
}

#[repr(C)]
pub struct pw_send {
    pub snd_path: *const pw_send_path,
    pub snd_loop: *mut pw_loop,
    pub snd_sock: c_int,
    pub snd_sink: *mut pw_sink,
    pub snd_more: bool,
    pub snd_begun: bool,
    pub snd_index: bool,
    pub snd_grows: bool,
    pub snd_mem: *const c_char,
    pub snd_mem_len: usize,
    pub snd_file: *mut pw_file,
    pub snd_off: i64,
    pub snd_len: i64,
    pub snd_readahead: u64,
    pub snd_cache: c_uint,
    pub snd_rate: u64,
    pub snd_pace: u64,
    pub snd_limit: u64,
    pub snd_done: Option<unsafe extern "C" fn(*mut pw_send)>,
    pub snd_sent: u64,
    pub snd_wait: u64,
    pub snd_pending: bool,
    pub snd_error: c_int,
    pub snd_private: [u64; 30],
}

extern "C" {
    pub fn pw_version() -> *const c_char;
    pub fn pw_now() -> u64;
    pub fn pw_process_prepare() -> c_int;
    pub fn pw_pool_create(conf: *const pw_pool_conf, pool: *mut *mut pw_pool) -> c_int;
    pub fn pw_pool_destroy(pool: *mut *mut pw_pool, timeout_us: u64) -> c_int;
    pub fn pw_loop_create(pool: *mut pw_pool, conf: *const pw_loop_conf, l: *mut *mut pw_loop) -> c_int;
    pub fn pw_loop_fd(l: *const pw_loop) -> c_int;
    pub fn pw_loop_drain(l: *mut pw_loop);
    pub fn pw_loop_tick(l: *mut pw_loop, now_us: u64);
    pub fn pw_loop_pending(l: *const pw_loop) -> c_uint;
    pub fn pw_loop_destroy(l: *mut *mut pw_loop) -> c_int;
    pub fn pw_root_open_with(path: *const c_char, flags: c_uint, root: *mut *mut pw_root) -> c_int;
    pub fn pw_root_close(root: *mut *mut pw_root);
    pub fn pw_file_open(l: *mut pw_loop, root: *mut pw_root, path: *const c_char, now_us: u64, op: *mut pw_open) -> c_int;
    pub fn pw_file_from_fd(l: *mut pw_loop, fd: c_int, st: *const stat, op: *mut pw_open) -> c_int;
    pub fn pw_open_cancel(op: *mut pw_open) -> c_int;
    pub fn pw_file_ref(file: *mut pw_file);
    pub fn pw_file_unref(file: *mut *mut pw_file);
    pub fn pw_file_copy(file: *mut pw_file, off: i64, to: *mut c_void, len: usize) -> c_int;
    pub fn pw_resident(file: *mut pw_file, off: i64, len: usize) -> c_int;
    pub fn pw_fetch(fetch: *mut pw_fetch) -> c_int;
    pub fn pw_unpin(fetch: *mut pw_fetch);
    pub fn pw_send_path(name: *const c_char) -> *const pw_send_path;
    pub fn pw_send_default() -> *const pw_send_path;
    pub fn pw_send_start(send: *mut pw_send) -> c_int;
    pub fn pw_send_step(send: *mut pw_send) -> c_uint;
    pub fn pw_send_cancel(send: *mut pw_send);
    pub fn pw_send_finish(send: *mut pw_send);
}
