//! Prints sizes and offsets, which a test compares with those of `<pagewise.h>`.

use pagewise_sys::*;
use std::mem::{offset_of, size_of};

macro_rules! layout {
    ($($name:ident: $($field:ident)*;)*) => {
        $(println!("{} {}", stringify!($name), size_of::<$name>());
        $(println!("{}.{} {}", stringify!($name), stringify!($field), offset_of!($name, $field));)*)*
    };
}

fn main() {
    layout! {
        pw_pool_conf: ppc_threads ppc_queue;
        pw_loop_conf: plc_open_files plc_device plc_arg plc_attribute plc_client;
        pw_waiter: wt_done wt_loop wt_next wt_error wt_client;
        pw_open: op_waiter op_attribute op_file op_link op_others;
        pw_fetch: ft_waiter ft_file ft_off ft_len ft_want ft_cache ft_begun ft_mem ft_have ft_private;
        pw_send: snd_path snd_loop snd_sock snd_sink snd_more snd_begun snd_index snd_grows snd_mem snd_mem_len snd_file snd_off
            snd_len snd_readahead snd_cache snd_rate snd_pace snd_limit snd_done snd_sent snd_wait snd_pending snd_error
            snd_private;
        pw_file: fil_fd fil_type fil_size fil_mtime fil_ctime fil_ino fil_dev fil_checked fil_attribute
            fil_attribute_len fil_user fil_user_free fil_stale;
    }
}
