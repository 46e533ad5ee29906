// The one translation unit with Boost in it. Asio's loop, Beast's parser; the rest is ours, in files that know neither.
#include "server/http.h"

#include <array>
#include <cerrno>
#include <mutex>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/strand.hpp>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "server/http_connection.h"
#include "server/http_floor.h"
#include "server/listen_socket.h"

namespace ebb {

namespace {

namespace asio = boost::asio;

// After a failed accept. Shorter spins while descriptors are short; longer lets clients wait after they are free.
constexpr std::chrono::milliseconds kAcceptRetry{50};
// Others get their turn on the io thread after this many.
constexpr int kAcceptsAtOnce = 64;
// What the kernel may hold of a stream that its client does not read, so that slow readers have a price that can be said;
// lower, and a fast client far away waits for acknowledgements.
constexpr int kSendBufferBytes = 256 << 10;

std::string address_text(const sockaddr_storage& address, socklen_t size) {
  if (address.ss_family == AF_UNIX) return "unix";
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown";
  }
  return address.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
                                       : fmt::format("{}:{}", host.data(), port.data());
}

void set_option(int descriptor, int level, int name, int value) {
  ::setsockopt(descriptor, level, name, &value, sizeof value);
}

// A request with fewer is hardly one; more, and many clients could fill the memory with headers alone.
constexpr std::size_t kLeastHeaderBytes = 256;
constexpr std::size_t kMostHeaderBytes = std::size_t{16} << 20;
// Bytes that nobody acknowledges may stay so for this long after write_timeout, so that our own limit comes first and tells
// slow readers from peers that are gone.
constexpr std::chrono::milliseconds kUnacknowledged{10'000};

// A peer whose machine is gone sends nothing, not even an end: probes find it after about a minute.
void prepare_socket(int descriptor, int family, const HttpOptions& options) {
  set_option(descriptor, SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  if (family == AF_UNIX) return;
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>((options.write_timeout + kUnacknowledged).count()));
}

class HttpListener : public std::enable_shared_from_this<HttpListener> {
 public:
  // Owns the descriptor.
  HttpListener(asio::io_context& io, int descriptor, HttpFloor& floor)
      : io_(io), descriptor_(asio::make_strand(io), descriptor), retry_(descriptor_.get_executor()), floor_(floor) {}

  void start() {
    asio::post(descriptor_.get_executor(), [self = shared_from_this()] { self->wait(); });
  }
  void close() {
    asio::post(descriptor_.get_executor(), [self = shared_from_this()] {
      boost::system::error_code ignored;
      self->descriptor_.close(ignored);
      self->retry_.cancel();
    });
  }

 private:
  void wait() {
    if (!descriptor_.is_open()) return;
    descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                           [self = shared_from_this()](boost::system::error_code code) {
                             if (!code) self->accept_all();
                           });
  }

  void accept_all() {
    try {
      accept_several();
    } catch (const std::exception&) {  // memory is short
      wait_for_resources();
    }
  }

  void accept_several() {
    for (int i = 0; i < kAcceptsAtOnce && descriptor_.is_open(); ++i) {
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      const int client = ::accept4(descriptor_.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (client >= 0) {
        prepare_socket(client, address.ss_family, *floor_.options);
        admit(client, address, size);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return wait_for_resources();
      }  // other errors are of that one client (accept(2))
    }
    wait();
  }

  // The client stays in the backlog, and readable: to wait for it again at once would spin.
  void wait_for_resources() {
    ++floor_.tally.n_accept_failures;
    retry_.expires_after(kAcceptRetry);
    retry_.async_wait([self = shared_from_this()](boost::system::error_code) { self->wait(); });
  }

  void admit(int client, const sockaddr_storage& address, socklen_t size) {
    ++floor_.tally.n_accepted;
    HttpConnection::Socket socket(asio::make_strand(io_));
    boost::system::error_code failed;
    socket.assign(asio::generic::stream_protocol(address.ss_family, 0), client, failed);
    if (failed) {
      ::close(client);
      return;
    }
    socket.non_blocking(true, failed);
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), floor_, address_text(address, size));
    switch (floor_.enter(connection)) {
      case HttpFloor::Seat::kServed: return connection->start();
      case HttpFloor::Seat::kTurnedAway: return connection->turn_away();
      case HttpFloor::Seat::kNone: return;
    }
  }

  asio::io_context& io_;
  asio::posix::stream_descriptor descriptor_;
  asio::steady_timer retry_;
  HttpFloor& floor_;
};

}  // namespace

HttpAnswer plain_error_answer(int status, std::string_view message) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::string(message) + "\n"};
}

class HttpServer::Impl {
 public:
  Impl(HttpOptions options, HttpHandler handler, ListenSockets sockets)
      : sockets_(std::move(sockets)),
        floor_(std::move(options), std::move(handler)),
        io_(floor_.options->n_io_threads),
        guard_(io_.get_executor()) {
    for (const int descriptor : sockets_.release()) {
      listeners_.push_back(std::make_shared<HttpListener>(io_, descriptor, floor_));
      listeners_.back()->start();
    }
  }
  void run() {
    for (int i = 0; i < floor_.options->n_io_threads; ++i) threads_.emplace_back([this] { run_loop(); });
  }
  ~Impl() { stop(std::chrono::milliseconds(0)); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void stop(std::chrono::milliseconds grace) {
    const std::lock_guard lock(stop_mutex_);
    for (const std::thread& thread : threads_) {
      EBB_CHECK(thread.get_id() != std::this_thread::get_id(), "an io thread cannot wait for its own end");
    }
    sockets_.remove_file();
    for (const auto& listener : listeners_) listener->close();
    floor_.empty(grace);
    guard_.reset();
    // The loop ends by itself: nothing is pending any more, and a closed exchange posts nothing.
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    listeners_.clear();
  }

  [[nodiscard]] const ListenSockets& sockets() const { return sockets_; }
  [[nodiscard]] const HttpFloor& floor() const { return floor_; }

 private:
  // What is thrown past a connection, when there is not even the memory to close it, ends neither thread nor process.
  void run_loop() {
    while (true) {
      try {
        io_.run();
        return;
      } catch (const std::exception&) {
        ++floor_.tally.n_failures;
      }
    }
  }

  ListenSockets sockets_;
  HttpFloor floor_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::vector<std::shared_ptr<HttpListener>> listeners_;
  std::vector<std::thread> threads_;
  std::mutex stop_mutex_;
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options, HttpHandler handler) {
  EBB_CHECK(handler && options.error_answer, "a server needs a handler and a maker of error answers");
  if (options.n_io_threads < 1 || options.n_io_threads > 64) {
    return error(Code::kInvalidArgument, "{} io threads; expected 1 to 64", options.n_io_threads);
  }
  if (options.max_header_bytes < kLeastHeaderBytes || options.max_header_bytes > kMostHeaderBytes) {
    return error(Code::kInvalidArgument, "headers of at most {} bytes; expected a limit from {} to {}",
                 options.max_header_bytes, kLeastHeaderBytes, kMostHeaderBytes);
  }
  EBB_ASSIGN_OR_RETURN(ListenSockets sockets, ListenSockets::open(options.host, options.port));
  try {
    auto impl = std::make_unique<Impl>(std::move(options), std::move(handler), std::move(sockets));
    impl->run();
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
  } catch (const std::exception& failure) {  // no descriptor for epoll, no thread
    return error(Code::kIo, "the HTTP server cannot start: {}", failure.what());
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return impl_->sockets().port(); }
const std::string& HttpServer::address() const { return impl_->sockets().address(); }
void HttpServer::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

HttpCounters HttpServer::counters() const {
  const HttpTally& tally = impl_->floor().tally;
  return {.n_connections = impl_->floor().n_guests(),
          .n_accepted = tally.n_accepted,
          .n_turned_away = tally.n_turned_away,
          .n_accept_failures = tally.n_accept_failures,
          .n_requests = tally.n_requests,
          .n_refused = tally.n_refused,
          .n_left = tally.n_left,
          .n_too_slow = tally.n_too_slow,
          .n_failures = tally.n_failures,
          .body_bytes = tally.body_bytes};
}

}  // namespace ebb
