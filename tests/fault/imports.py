"""What the server's objects import and the fault layer leaves alone, with the reason.

Everything else is wrapped in inject_libc.c and inject_libs.c: test_inject_layer.py
compares.  A name that is new in the server belongs into one of them.
"""

LEFT = {
    "libevent: has its memory from event_memory.c then, whose malloc is wrapped": "event_set_mem_functions",
    "libevent: sets a pointer": "event_set_log_callback",
    "the language's, and what reads or writes nothing but memory": """
        _GLOBAL_OFFSET_TABLE_ __tls_get_addr __assert_fail __ctype_b_loc __ctype_tolower_loc
        __ctype_toupper_loc __errno_location __sched_cpucount free in6addr_any inet_ntop
        inet_pton memchr memcmp memcpy memmem memmove memrchr memset optarg opterr optind optopt
        getopt_long qsort snprintf stderr stdout stpcpy strcasecmp strchr strcmp strcspn
        strcasestr strpbrk
        strerror strftime strlen strncasecmp timegm strncmp strnlen strrchr strsep strspn strstr
        CRYPTO_memcmp OSSL_PARAM_construct_end OSSL_PARAM_construct_utf8_string explicit_bzero
        fileno strtok_r strcpy strsignal __isoc99_sscanf getenv sigdelset strtol strtoul strtoull strtoumax vsnprintf gmtime_r localtime_r tzset
        __isoc23_strtol __isoc23_strtoul __isoc23_strtoull __isoc23_strtoumax
        dl_iterate_phdr sigaddset sigemptyset sigfillset""",
    "does not fail, or only for arguments that are wrong": """
        abort dup2 kill lseek pthread_detach pthread_timedjoin_np event_pending
         sigaction sigprocmask sleep unsetenv waitid waitpid exit
        clock_gettime time getpid getppid geteuid sysconf umask sched_getcpu sched_getaffinity
        sched_setscheduler sched_yield setpgid getsockname munmap close closedir dirfd fclose ferror signal
        pthread_attr_destroy pthread_attr_init pthread_attr_setdetachstate
        pthread_attr_setstacksize pthread_cond_broadcast pthread_cond_destroy
        pthread_cond_init pthread_cond_signal pthread_cond_timedwait pthread_cond_wait
        pthread_condattr_destroy pthread_condattr_init pthread_condattr_setclock
        pthread_join pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock
        pthread_mutex_trylock pthread_mutex_unlock pthread_self pthread_setname_np pthread_sigmask
        pthread_rwlock_destroy pthread_rwlock_init pthread_rwlock_tryrdlock
        pthread_rwlock_trywrlock pthread_rwlock_unlock sem_clockwait sem_destroy sem_init sem_post sem_timedwait sem_trywait
        sem_wait
        getpriority setpriority malloc_trim mallopt pthread_clockjoin_np sigwait sigtimedwait nanosleep _exit event_base_get_features""",
    "libcrypto: allocates inside; a context is made at the start, and without one there is none": """
        EVP_MAC_CTX_free EVP_MAC_CTX_new EVP_MAC_fetch EVP_MAC_final EVP_MAC_free EVP_MAC_init
        EVP_MAC_update OPENSSL_init_crypto""",
    "OpenSSL: reads or writes what is there, or frees it": """
        AUTHORITY_INFO_ACCESS_free BIO_clear_flags BIO_ctrl BIO_free BIO_get_data
        BIO_get_new_index BIO_meth_free BIO_meth_set_ctrl BIO_meth_set_read BIO_meth_set_write
        BIO_s_mem BIO_set_data BIO_set_flags BIO_set_init ERR_clear_error ERR_peek_error
        ERR_peek_last_error ERR_reason_error_string EVP_CIPHER_CTX_ctrl EVP_CIPHER_CTX_free
        EVP_CIPHER_CTX_get0_cipher EVP_CIPHER_get_key_length EVP_CIPHER_get_nid EVP_KDF_CTX_free
        EVP_KDF_free EVP_KDF_get0_provider EVP_MD_CTX_free EVP_MD_get0_name OSSL_PROVIDER_get0_name
        EVP_MD_get_block_size EVP_MD_get_size EVP_MD_is_a
        EVP_PKEY_free EVP_PKEY_get_base_id EVP_PKEY_get_group_name EVP_aes_256_cbc EVP_sha256 OBJ_obj2nid
        OPENSSL_cleanse OPENSSL_sk_num OPENSSL_sk_pop_free OPENSSL_sk_value OPENSSL_thread_stop
        OSSL_PARAM_construct_octet_string OSSL_PARAM_get_int OSSL_PARAM_locate_const PKCS12_free
        SSL_CIPHER_get_cipher_nid
        SSL_CIPHER_get_handshake_digest SSL_CIPHER_get_name SSL_CTX_callback_ctrl SSL_CTX_free
        SSL_CTX_get_ex_data SSL_CTX_get_num_tickets SSL_CTX_get_options SSL_CTX_get_verify_mode
        SSL_CTX_set_alpn_select_cb SSL_CTX_set_cert_cb SSL_CTX_set_client_CA_list SSL_CTX_set_client_hello_cb
        SSL_CTX_set_num_tickets SSL_CTX_set_options
        SSL_CTX_set_session_id_context SSL_CTX_set_timeout SSL_CTX_set_tlsext_ticket_key_evp_cb
        SSL_CTX_set_verify SSL_SESSION_get_master_key SSL_clear_options SSL_client_hello_get0_ext
        SSL_free SSL_get0_alpn_selected SSL_get0_peer_certificate SSL_get_SSL_CTX SSL_get_client_random
        SSL_get_current_cipher SSL_get_error SSL_get_ex_data SSL_get_server_random
        SSL_get_servername SSL_get_session SSL_get_verify_mode SSL_get_version SSL_get_wbio
        SSL_has_pending SSL_select_next_proto SSL_session_reused SSL_set_accept_state SSL_set_bio
        SSL_set_msg_callback SSL_set_num_tickets SSL_set_options SSL_set_read_ahead
        SSL_SESSION_get_max_fragment_length SSL_set_verify SSL_version TLS_server_method X509_NAME_cmp X509_NAME_get_text_by_NID
        X509_check_issued X509_check_private_key X509_check_purpose X509_free X509_get0_notAfter
        X509_get0_notBefore X509_get_extended_key_usage X509_get_issuer_name X509_get_subject_name""",
    "OpenSSL: fails for what a file says: test_certificates.py; or for want of memory": """
        ASN1_TIME_to_tm PEM_read_bio_PrivateKey PEM_read_bio_X509 PEM_read_bio_X509_AUX
        SSL_CTX_load_verify_file SSL_load_client_CA_file
        X509_get_ext_d2i d2i_AutoPrivateKey d2i_PKCS12 d2i_X509""",
    "OpenSSL: fails for what a client sends, which tests do; or for want of memory": """
        X509_NAME_print_ex X509_check_host
        X509_check_ip_asc""",
    "OpenSSL: fails for want of memory, or of random bytes; not injected yet": """
        BIO_meth_new BIO_new_mem_buf BIO_read CRYPTO_get_ex_new_index
        EVP_CIPHER_CTX_new EVP_CIPHER_fetch EVP_CipherInit_ex EVP_DecryptInit_ex EVP_Digest
        EVP_DigestFinal_ex EVP_DigestInit_ex EVP_DigestUpdate EVP_EncryptInit_ex EVP_KDF_CTX_new
        EVP_KDF_derive EVP_KDF_fetch EVP_MAC_CTX_set_params EVP_MD_CTX_new EVP_MD_fetch
        OPENSSL_init_ssl OPENSSL_sk_new_null OPENSSL_sk_push OSSL_PROVIDER_add_builtin
        OSSL_PROVIDER_try_load RAND_bytes
        SSL_CTX_ctrl SSL_CTX_set_cipher_list SSL_CTX_set_ciphersuites
        SSL_CTX_set_ex_data SSL_ctrl SSL_set_SSL_CTX X509_NAME_oneline""",
    "libcrypt: reads and writes the caller's memory; yescrypt allocates, see test_basic.py": "crypt_r",
    "reads a stream that fopen, which is wrapped, has opened": "fgets fread ftello setvbuf",
    "with -t alone, where nobody is served: test_config.py": "access",
    "writes what a user reads at the start; nobody is served": """
        dprintf fflush fprintf fputc fputs fwrite printf putc puts vfprintf""",
    "say a version": "OpenSSL_version nghttp2_version",
    "http-parser: has no memory and calls nobody": """
        http_parser_execute http_parser_init http_parser_set_max_header_size
        http_parser_version http_should_keep_alive""",
    "libnghttp2: reads or writes what is there, or frees it": """
        nghttp2_option_del nghttp2_option_set_builtin_recv_extension_type
        nghttp2_option_set_max_outbound_ack nghttp2_option_set_no_auto_window_update
        nghttp2_option_set_no_closed_streams nghttp2_option_set_stream_reset_rate_limit
        nghttp2_rcbuf_get_buf nghttp2_session_callbacks_del
        nghttp2_session_callbacks_set_data_source_read_length_callback
        nghttp2_session_callbacks_set_on_begin_headers_callback
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback
        nghttp2_session_callbacks_set_on_frame_recv_callback
        nghttp2_session_callbacks_set_on_frame_send_callback
        nghttp2_session_callbacks_set_on_header_callback2
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback
        nghttp2_session_callbacks_set_on_stream_close_callback
        nghttp2_session_callbacks_set_send_data_callback
        nghttp2_session_change_extpri_stream_priority nghttp2_session_del
        nghttp2_session_get_last_proc_stream_id nghttp2_session_get_outbound_queue_size
        nghttp2_session_get_remote_window_size
        nghttp2_session_get_stream_remote_close nghttp2_session_get_stream_remote_window_size
        nghttp2_session_get_stream_user_data nghttp2_session_set_stream_user_data
        nghttp2_session_want_read nghttp2_session_want_write""",
    "libnghttp2: fails for what a client has sent: test_http2_floods.py; or for want of memory, which nghttp2_malloc stands for": """
        nghttp2_session_consume_connection
        nghttp2_session_mem_recv nghttp2_session_mem_send
        nghttp2_session_terminate_session nghttp2_submit_goaway
        nghttp2_submit_response nghttp2_submit_rst_stream nghttp2_submit_settings
        nghttp2_submit_shutdown_notice""",
    "libevent: fails for want of memory alone, which event_malloc stands for": """
        bufferevent_enable bufferevent_socket_new bufferevent_write evbuffer_add
        evbuffer_add_printf event_config_new event_config_set_flag evhttp_send_reply""",
    "libevent: does not fail": """
        bufferevent_decref bufferevent_free bufferevent_get_input bufferevent_get_output bufferevent_getcb
        bufferevent_getfd bufferevent_incref bufferevent_set_timeouts event_active
        bufferevent_setcb evhttp_connection_get_bufferevent evhttp_request_get_connection
        evbuffer_drain evbuffer_get_length evconnlistener_disable evconnlistener_enable evconnlistener_free
        evconnlistener_get_base evconnlistener_set_error_cb event_assign
        event_base_dispatch event_base_free event_base_got_break event_base_loop
        event_base_loopbreak event_config_free event_free event_get_version
        event_initialized evhttp_find_header evhttp_free evhttp_request_get_command
        evhttp_request_get_evhttp_uri evhttp_request_get_input_headers
        evhttp_request_get_output_buffer evhttp_request_get_output_headers
        evhttp_set_allowed_methods evhttp_set_bevcb evhttp_set_gencb evhttp_set_max_body_size
        evhttp_set_max_headers_size evhttp_set_timeout evhttp_uri_get_path""",
    "liburing: reads the ring in memory; what io_uring_submit spoils comes by it": """
        __io_uring_get_cqe io_uring_queue_exit""",
    "users: read from files by libc, or asked of the kernel, which always answers": """
        getegid getgrnam getgrouplist getpwnam getpwuid getresgid getresuid""",
    "tried because it has to fail": "setuid fchmod",
    "libseccomp: reads and writes memory": "seccomp_release seccomp_syscall_resolve_name",
    "disks in /sys: without them windows are smaller; of the configuration at the start":
        "glob globfree",
    "a directory that is open": "rewinddir",
    "names at the start: without it there is no warning": "fstatat",
}
