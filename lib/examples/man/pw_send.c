/*
 * Sends a head and a file.  The event loop calls response_run when the socket is writable.
 */
#include <pagewise.h>

struct response {
	struct pw_send send; /* zero before response_start */
	void (*ended)(struct response *, bool close);
};

void
response_run(struct response *r)
{
	enum pw_send_status status;

	if (r->send.snd_pending)
		return;
	do
		/* A server with many clients serves other clients in between. */
		status = pw_send_step(&r->send);
	while (status == PW_SEND_AGAIN);
	if (status == PW_SEND_DONE || status == PW_SEND_ERROR) {
		pw_send_finish(&r->send);
		r->ended(r, status == PW_SEND_ERROR);
	}
}

/* After pw_send_cancel the step returns PW_SEND_ERROR. */
static void
on_sent(struct pw_send *s)
{
	response_run(
	    (struct response *)((char *)s - offsetof(struct response, send)));
}

/* Starts a response.  The head must stay valid until the response has ended. */
void
response_start(struct response *r, struct pw_loop *loop, int sock,
    const char *head, size_t head_len, struct pw_file *file)
{
	r->send = (struct pw_send){
	    .snd_path = pw_send_default(),
	    .snd_loop = loop,
	    .snd_sock = sock,
	    .snd_mem = head,
	    .snd_mem_len = head_len,
	    .snd_file = file,
	    .snd_len = file->fil_size,
	    .snd_done = on_sent,
	};
	pw_send_start(&r->send); /* if it fails, the first step fails too */
	response_run(r);
}

/*
 * Call when the client has left.  Socket and struct must stay valid while the transmission is
 * pending.
 */
void
response_cancel(struct response *r)
{
	bool pending = r->send.snd_pending;

	pw_send_cancel(&r->send);
	if (!pending)
		response_run(r);
}
