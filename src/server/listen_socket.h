// ListenSockets: the file descriptors a server listens on, for one host and port or one Unix socket.
//
// Knows no HTTP and accepts nothing. A Unix socket's file that nobody listens on is replaced; one that somebody listens
// on, and a file of another kind, is left alone and an error. The file goes with this object, if it is still ours.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/status.h"

namespace ebb {

class ListenSockets {
 public:
  // All addresses of the host ("localhost" has two). Non-blocking, closed on exec. Port 0 takes a free one.
  [[nodiscard]] static Result<ListenSockets> open(const std::string& host, std::uint16_t port);
  ~ListenSockets();
  ListenSockets(ListenSockets&& other) noexcept;
  ListenSockets& operator=(ListenSockets&&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }  // 0 for a Unix socket
  [[nodiscard]] const std::string& address() const { return address_; }
  // Gives the descriptors away; the caller closes them. The Unix socket's file stays this object's.
  [[nodiscard]] std::vector<int> release();
  // Takes the file away before the end: whoever comes later finds nobody there, and a successor may have the path.
  void remove_file();

 private:
  ListenSockets() = default;
  Status open_unix(const std::string& path);
  Status open_tcp(const std::string& host, std::uint16_t port);

  std::vector<int> descriptors_;
  std::uint16_t port_ = 0;
  std::string address_;
  std::string path_;  // of the Unix socket's file, while it is ours
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Whether a host names a Unix socket.
[[nodiscard]] bool is_unix_socket_path(const std::string& host);

}  // namespace ebb
