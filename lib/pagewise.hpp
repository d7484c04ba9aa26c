/*
 * pagewise.hpp: libpagewise for C++17, in this header alone.
 *
 * Each class owns the object that its C function creates; the destructor of the class releases the
 * object.  pool, root, loop and file are handles that can be moved; a file can be copied, too.
 * opening, sending and lending are operations: destroy one at any time, and its callback is not
 * called any more.  The memory that the library still uses then lives until the library has
 * finished.
 *
 * Functions return 0 or -errno as those of <pagewise.h>, which describes them, and throw only
 * std::bad_alloc.  Callbacks must not throw, since an exception ends the program (std::terminate).
 * The rules for threads are those of libpagewise(3).
 */
#ifndef PAGEWISE_HPP
#define PAGEWISE_HPP

#include <pagewise.h>
#include <poll.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace pagewise {

/* A pool of disk threads.  Must outlive its loops. */
class pool {
public:
	pool() = default;
	pool(pool &&other) noexcept : p(std::exchange(other.p, nullptr)) {}
	pool &operator=(pool &&other) noexcept
	{
		std::swap(p, other.p);
		return *this;
	}
	/* Waits up to a second for running jobs; threads of a hung disk stay. */
	~pool()
	{
		if (p != nullptr)
			pw_pool_destroy(&p, 1000000);
	}
	int create(const pw_pool_conf *conf = nullptr)
	{
		return p != nullptr ? -EINVAL : pw_pool_create(conf, &p);
	}
	pw_pool *get() const { return p; }

private:
	pw_pool *p = nullptr;
};

/* A directory. */
class root {
public:
	root() = default;
	root(root &&other) noexcept : r(std::exchange(other.r, nullptr)) {}
	root &operator=(root &&other) noexcept
	{
		std::swap(r, other.r);
		return *this;
	}
	~root()
	{
		if (r != nullptr)
			pw_root_close(&r);
	}
	int open(const char *path, unsigned flags = 0)
	{
		return r != nullptr ? -EINVAL : pw_root_open_with(path, flags, &r);
	}
	pw_root *get() const { return r; }

private:
	pw_root *r = nullptr;
};

/* A loop.  Destroy files, openings, sendings and lendings of the loop before the loop. */
class loop {
public:
	loop() = default;
	loop(loop &&other) noexcept : l(std::exchange(other.l, nullptr)) {}
	loop &operator=(loop &&other) noexcept
	{
		std::swap(l, other.l);
		return *this;
	}
	/* Waits up to two seconds for each pending wait; a loop that waits for a hung disk stays. */
	~loop()
	{
		if (l == nullptr)
			return;
		pollfd readable{pw_loop_fd(l), POLLIN, 0};
		for (int n = 0; n < 8 && pw_loop_pending(l) > 0; n++) {
			pw_loop_tick(l, pw_now());
			if (poll(&readable, 1, 250) > 0) {
				pw_loop_drain(l);
				n = -1;
			}
		}
		pw_loop_destroy(&l);
	}
	int create(const pool &of, const pw_loop_conf *conf = nullptr)
	{
		return l != nullptr ? -EINVAL : pw_loop_create(of.get(), conf, &l);
	}
	int fd() const { return pw_loop_fd(l); }
	void drain() { pw_loop_drain(l); }
	void tick() { pw_loop_tick(l, pw_now()); }
	unsigned pending() const { return pw_loop_pending(l); }
	pw_loop *get() const { return l; }

private:
	pw_loop *l = nullptr;
};

/* A reference to an open file, or nothing. */
class file {
public:
	file() = default;
	/* Takes ownership of a reference. */
	explicit file(pw_file *owned) : f(owned) {}
	file(const file &other) : f(other.f)
	{
		if (f != nullptr)
			pw_file_ref(f);
	}
	file(file &&other) noexcept : f(std::exchange(other.f, nullptr)) {}
	file &operator=(file other) noexcept
	{
		std::swap(f, other.f);
		return *this;
	}
	~file() { pw_file_unref(&f); }
	explicit operator bool() const { return f != nullptr; }
	pw_file *operator->() const { return f; }
	pw_file *get() const { return f; }

private:
	pw_file *f = nullptr;
};

/* An open of a file.  A second call of open cancels the first if that is pending. */
class opening {
public:
	using callback = std::function<void(int error, file)>;

	/* The library calls `done` for each open that returned -EINPROGRESS. */
	explicit opening(callback done) : st(std::move(done)) {}
	opening(const opening &) = delete;
	opening &operator=(const opening &) = delete;
	~opening() { cancel(); }

	/* Returns 0 and sets `to`, or returns -EINPROGRESS, or -errno. */
	int open(const loop &on, const root &below, const char *path, file &to)
	{
		prepare();
		return result(pw_file_open(on.get(), below.get(), path, pw_now(), &st.op), to);
	}
	int open(const loop &on, int fd, const struct stat *stat, file &to)
	{
		prepare();
		return result(pw_file_from_fd(on.get(), fd, stat, &st.op), to);
	}
	void cancel()
	{
		if (st.op.op_others != nullptr)
			pw_open_cancel(&st.op);
	}

private:
	struct state {
		pw_open op{}; /* first member, since its waiter is cast */
		callback done;
		explicit state(callback f) : done(std::move(f)) {}
	} st;

	void prepare()
	{
		cancel();
		st.op = pw_open{};
		st.op.op_waiter.wt_done = on_done;
	}
	int result(int error, file &to)
	{
		if (error == 0)
			to = file(st.op.op_file);
		return error;
	}
	static void on_done(pw_waiter *w) noexcept
	{
		state *s = reinterpret_cast<state *>(w);
		callback done = s->done; /* a copy, since the callback may destroy the opening */

		done(w->wt_error, file(w->wt_error == 0 ? s->op.op_file : nullptr));
	}
};

/*
 * A transmission: a head, then a range of a file.  `keep` is an object that the library needs until
 * it has finished, such as the owner of the socket.  If the sending is destroyed earlier, `keep` is
 * released when the library has finished.
 */
class sending {
public:
	explicit sending(std::shared_ptr<void> keep = nullptr) : st(new state(std::move(keep))) {}
	sending(const sending &) = delete;
	sending &operator=(const sending &) = delete;
	~sending()
	{
		state *s = st.release();

		s->ready = nullptr;
		s->left = true;
		if (s->send.snd_pending)
			pw_send_cancel(&s->send); /* on_done frees the state */
		else
			delete s;
	}

	/* Options of <pagewise.h>, such as snd_cache and snd_sink.  Set them before start. */
	struct pw_send &options() { return st->send; }

	/*
	 * Starts a transmission; the options stay from one transmission to the next.  The last one
	 * must have ended.  `ready` is called after PW_SEND_PENDING; call step then.
	 */
	int start(const loop &on, int sock, std::string head, const file &body, off_t off, off_t len,
	    std::function<void()> ready)
	{
		struct pw_send &s = st->send, last = s;

		if (s.snd_pending)
			return -EINVAL;
		s = {};
		s.snd_path = last.snd_path;
		s.snd_sink = last.snd_sink;
		s.snd_more = last.snd_more;
		s.snd_begun = last.snd_begun;
		s.snd_index = last.snd_index;
		s.snd_grows = last.snd_grows;
		s.snd_readahead = last.snd_readahead;
		s.snd_cache = last.snd_cache;
		s.snd_rate = last.snd_rate;
		s.snd_pace = last.snd_pace;
		s.snd_limit = last.snd_limit;
		st->head = std::move(head);
		st->ready = std::move(ready);
		if (s.snd_path == nullptr)
			s.snd_path = pw_send_default();
		s.snd_loop = on.get();
		s.snd_sock = sock;
		s.snd_mem = st->head.data();
		s.snd_mem_len = st->head.size();
		s.snd_file = len > 0 ? body.get() : nullptr;
		s.snd_off = off;
		s.snd_len = len;
		s.snd_done = on_done;
		return pw_send_start(&s);
	}

	/*
	 * Sends a chunk as pw_send_step does.  Releases the file after PW_SEND_DONE and
	 * PW_SEND_ERROR.
	 */
	pw_send_status step()
	{
		pw_send_status status = pw_send_step(&st->send);

		if (status == PW_SEND_DONE || (status == PW_SEND_ERROR && !st->send.snd_pending))
			pw_send_finish(&st->send);
		return status;
	}
	bool pending() const { return st->send.snd_pending; }
	int error() const { return st->send.snd_error; }

private:
	struct state {
		struct pw_send send {}; /* first member, since it is cast */
		std::shared_ptr<void> keep;
		std::string head;
		std::function<void()> ready;
		bool left = false; /* true if the sending was destroyed */
		explicit state(std::shared_ptr<void> k) : keep(std::move(k)) {}
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state() { pw_send_finish(&send); }
	};
	std::unique_ptr<state> st;

	static void on_done(struct pw_send *send) noexcept
	{
		state *s = reinterpret_cast<state *>(send);

		if (s->left) {
			delete s;
			return;
		}
		auto ready = s->ready; /* a copy, since the callback may destroy the sending */
		ready();
	}
};

/* A window of a file that the library lends. */
class lending {
public:
	lending() : st(new state) {}
	lending(const lending &) = delete;
	lending &operator=(const lending &) = delete;
	~lending()
	{
		state *s = st.release();

		s->done = nullptr;
		s->left = true;
		if (!s->pending)
			delete s; /* else on_done frees the state */
	}

	/*
	 * Fetches a range.  Releases the window of an earlier call first.  Returns 0, -errno, or
	 * -EINPROGRESS if `done` will be called, which may call fetch again.
	 */
	int fetch(const file &of, off_t off, std::size_t len, pw_fetch_want want, std::function<void(int error)> done)
	{
		if (st->pending)
			return -EINVAL;
		unpin();
		st->fetch = {};
		st->fetch.ft_waiter.wt_done = on_done;
		st->fetch.ft_file = of.get();
		st->fetch.ft_off = off;
		st->fetch.ft_len = len;
		st->fetch.ft_want = want;
		st->done = std::move(done);
		int error = pw_fetch(&st->fetch);
		st->pending = error == -EINPROGRESS;
		return error;
	}
	/* Releases the window.  Must not be called while the fetch is pending. */
	void unpin() { pw_unpin(&st->fetch); }
	bool pending() const { return st->pending; }
	const char *data() const { return st->fetch.ft_mem; }
	std::size_t size() const { return st->fetch.ft_have; }

private:
	struct state {
		struct pw_fetch fetch {}; /* first member, since its waiter is cast */
		std::function<void(int error)> done;
		bool pending = false;
		bool left = false; /* true if the lending was destroyed */
		state() = default;
		state(const state &) = delete;
		state &operator=(const state &) = delete;
		~state() { pw_unpin(&fetch); }
	};
	std::unique_ptr<state> st;

	static void on_done(pw_waiter *w) noexcept
	{
		state *s = reinterpret_cast<state *>(w);

		s->pending = false;
		if (s->left) {
			delete s;
			return;
		}
		/* Moved, since the callback may destroy the lending, or fetch again. */
		auto done = std::move(s->done);
		done(w->wt_error);
	}
};

} // namespace pagewise

#endif
