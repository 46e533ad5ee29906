#include "server/listen_socket.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace ebb {

namespace {

// Connections that wait to be accepted. Fewer, and clients that all come at once are refused by the kernel.
constexpr int kBacklog = 1024;

std::string error_text(int number) { return std::generic_category().message(number); }

struct Bound {
  int descriptor = -1;
  int error = 0;
};

Bound bind_and_listen(int family, const sockaddr* address, socklen_t size) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return {.error = errno};
  if (family != AF_UNIX) {
    // Without it, a restarted server waits minutes for the old one's connections to be forgotten.
    const int on = 1;
    ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (::bind(descriptor, address, size) != 0 || ::listen(descriptor, kBacklog) != 0) {
    const int number = errno;
    ::close(descriptor);
    return {.error = number};
  }
  return {.descriptor = descriptor};
}

std::uint16_t port_of(int descriptor) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
}

void set_port(sockaddr* address, std::uint16_t port) {
  if (address->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  }
}

Status listen_error(const std::string& host, std::uint16_t port, int number) {
  if (number == EADDRINUSE) {
    return error(
        Code::kIo,
        "cannot listen on {}:{}: the port is in use. Stop the program that has it, or choose another with --port "
        "(0 takes any free one)",
        host, port);
  }
  if (number == EACCES) {
    return error(Code::kIo, "cannot listen on {}:{}: ports below 1024 need privileges. Choose another with --port",
                 host, port);
  }
  if (number == EADDRNOTAVAIL) {
    return error(
        Code::kIo,
        "cannot listen on {}:{}: this machine has no such address. Use --host 127.0.0.1 for this machine only, "
        "0.0.0.0 for all its addresses",
        host, port);
  }
  return error(Code::kIo, "cannot listen on {}:{}: {}", host, port, error_text(number));
}

// Whether somebody accepts connections there. A socket that cannot be asked counts as alive.
bool is_alive(const sockaddr_un& address) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return true;
  const bool refused =
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == ECONNREFUSED;
  ::close(descriptor);
  return !refused;
}

}  // namespace

bool is_unix_socket_path(const std::string& host) { return host.ends_with(".sock"); }

ListenSockets::ListenSockets(ListenSockets&& other) noexcept
    : descriptors_(std::exchange(other.descriptors_, {})),
      port_(other.port_),
      address_(std::move(other.address_)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

ListenSockets::~ListenSockets() {
  for (const int descriptor : descriptors_) ::close(descriptor);
  remove_file();
}

void ListenSockets::remove_file() {
  const std::string path = std::exchange(path_, {});
  struct stat now {};
  if (!path.empty() && ::lstat(path.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) {
    ::unlink(path.c_str());
  }
}

std::vector<int> ListenSockets::release() { return std::exchange(descriptors_, {}); }

Result<ListenSockets> ListenSockets::open(const std::string& host, std::uint16_t port) {
  ListenSockets sockets;
  EBB_RETURN_IF_ERROR(is_unix_socket_path(host) ? sockets.open_unix(host) : sockets.open_tcp(host, port));
  return sockets;
}

Status ListenSockets::open_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return error(Code::kInvalidArgument,
                 "{}: the path of a Unix socket has at most {} bytes, this one {}; choose a shorter", path,
                 sizeof address.sun_path - 1, path.size());
  }
  std::memcpy(static_cast<char*>(address.sun_path), path.data(), path.size());

  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      return error(Code::kInvalidArgument, "{}: is there already and is no socket; choose another path, or remove it",
                   path);
    }
    if (is_alive(address)) {
      return error(Code::kIo, "{}: another server listens on this socket; stop it, or choose another path", path);
    }
    ::unlink(path.c_str());  // what a server that was killed left behind
  }
  const Bound bound = bind_and_listen(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (bound.descriptor < 0) {
    return error(Code::kIo, "{}: cannot listen on this socket: {}", path, error_text(bound.error));
  }
  descriptors_.push_back(bound.descriptor);
  address_ = "unix:" + path;
  if (::lstat(path.c_str(), &found) == 0) {
    path_ = path;
    device_ = found.st_dev;
    inode_ = found.st_ino;
  }
  return {};
}

Status ListenSockets::open_tcp(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  if (const int failure = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), nullptr, &hints, &list); failure != 0) {
    return error(
        Code::kInvalidArgument,
        "host '{}': {}. Expected a name, an address such as 127.0.0.1, or the path of a Unix socket that ends in "
        ".sock",
        host, ::gai_strerror(failure));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);

  int last_error = EADDRNOTAVAIL;
  port_ = port;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    set_port(entry->ai_addr, port_);  // with port 0, that of the first address
    const Bound bound = bind_and_listen(entry->ai_family, entry->ai_addr, entry->ai_addrlen);
    if (bound.descriptor >= 0) {
      descriptors_.push_back(bound.descriptor);
      if (port_ == 0) port_ = port_of(bound.descriptor);
      continue;
    }
    last_error = bound.error;
    // A name may have an address of a kind that is switched off here; a port that another program has is no such case.
    if (last_error != EADDRNOTAVAIL && last_error != EAFNOSUPPORT) return listen_error(host, port, last_error);
  }
  if (descriptors_.empty()) return listen_error(host, port, last_error);
  address_ = fmt::format("http://{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port_);
  return {};
}

}  // namespace ebb
