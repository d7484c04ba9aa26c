/*
 * poll: a server for one directory in C++17, with pagewise.hpp, in a loop of poll(2).  Usage: poll
 * DIRECTORY PORT.  The server sends each client one file by HTTP/1.1, then closes the connection.
 */
#include <sys/socket.h>

#include <netinet/in.h>
#include <pagewise.hpp>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <list>
#include <vector>

static pagewise::loop events;
static pagewise::root directory;

/* Owns a socket, which the library may need longer than its client. */
struct socket_owner {
	const int fd;
	explicit socket_owner(int sock) : fd(sock) {}
	socket_owner(const socket_owner &) = delete;
	~socket_owner() { close(fd); }
};

class client {
public:
	explicit client(int sock)
	    : owner(std::make_shared<socket_owner>(sock)),
	      open([this](int error, pagewise::file file) { answer(error, file); }), send(owner)
	{
	}
	pollfd wants() const { return {owner->fd, wanted, 0}; }
	bool left() const { return gone; }

	void run()
	{
		if (sends)
			step();
		else
			read();
	}

private:
	std::shared_ptr<socket_owner> owner;
	std::string request;
	short wanted = POLLIN;
	bool sends = false, gone = false;
	pagewise::opening open;
	pagewise::sending send;

	void read()
	{
		char data[4096];
		ssize_t n = recv(owner->fd, data, sizeof(data), 0);
		pagewise::file file;
		int error;

		gone = n == 0 || (n == -1 && errno != EAGAIN) || request.size() > sizeof(data);
		if (n > 0)
			request.append(data, static_cast<std::size_t>(n));
		if (gone || request.find("\r\n\r\n") == request.npos)
			return;
		if (request.compare(0, 5, "GET /") != 0)
			request = "GET /index.html ";
		std::string path = request.substr(5, request.find_first_of(" ?\r", 5) - 5);
		wanted = 0; /* polls only for errors until the open has ended */
		error = open.open(events, directory, path.c_str(), file);
		if (error != -EINPROGRESS)
			answer(error, file);
	}

	void answer(int error, const pagewise::file &file)
	{
		bool found = error == 0 && file->fil_type == PW_FILE_REGULAR;
		off_t size = found ? file->fil_size : 0;

		sends = true;
		send.start(events, owner->fd,
		    std::string("HTTP/1.1 ") + (found ? "200 OK" : "404 Not Found") +
			"\r\nConnection: close\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n",
		    file, 0, size, [this] { step(); });
		step();
	}

	void step()
	{
		if (send.pending()) { /* poll(2) reported that the client has left */
			gone = true;
			return;
		}
		pw_send_status status = send.step();
		/* A writable socket runs the client again after other clients. */
		wanted = status == PW_SEND_PENDING ? 0 : POLLOUT;
		gone = status == PW_SEND_DONE || status == PW_SEND_ERROR;
	}
};

static int
listen_at(const char *port)
{
	sockaddr_in sin{};
	int on = 1, sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	sin.sin_family = AF_INET;
	sin.sin_port = htons(static_cast<in_port_t>(std::atoi(port)));
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(sock, reinterpret_cast<sockaddr *>(&sin), sizeof(sin)) != 0 || listen(sock, 128) != 0 ? -1 : sock;
}

static volatile sig_atomic_t stopped;

int
main(int argc, char **argv)
{
	pagewise::pool disks;
	std::list<client> clients;
	uint64_t ticked = 0;
	int listener;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, [](int) { stopped = 1; });
	if (argc != 3 || disks.create() != 0 || events.create(disks) != 0 || directory.open(argv[1]) != 0 ||
	    (listener = listen_at(argv[2])) == -1) {
		std::fprintf(stderr, "usage: poll DIRECTORY PORT\n");
		return 1;
	}
	while (!stopped) {
		std::vector<pollfd> fds{{listener, POLLIN, 0}, {events.fd(), POLLIN, 0}};
		for (const client &c : clients)
			fds.push_back(c.wants());
		poll(fds.data(), fds.size(), 250);
		auto fd = fds.begin() + 2;
		for (client &c : clients)
			if ((fd++)->revents != 0)
				c.run();
		if (fds[1].revents != 0)
			events.drain();
		clients.remove_if([](const client &c) { return c.left(); });
		if (fds[0].revents != 0) {
			int sock = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
			if (sock != -1)
				clients.emplace_back(sock);
		}
		if (pw_now() >= ticked + 250000) {
			ticked = pw_now();
			events.tick();
		}
	}
	clients.clear();
	directory = pagewise::root();
	events = pagewise::loop();
	close(listener);
}
