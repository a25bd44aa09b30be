// A client of `abers serve`: connections that send predictions and labels in turns, and wait for
// each.
//
//   serve_client HOST PORT CONNECTIONS REQUESTS_A_SECOND EVENTS SECONDS
//
// Without a rate (0) every connection sends as soon as it has the response. Prints the number of
// requests that were answered in the second half of the time, and their median and 99 % latency in
// milliseconds; any status but 200 ends it.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

std::mutex together;
std::vector<double> latencies;  // milliseconds

int connected(const char* host, int port) {
  int made = socket(AF_INET, SOCK_STREAM, 0);
  int one = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host, &address.sin_addr);
  if (connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::perror("connect");
    std::exit(1);
  }
  return made;
}

std::string request(const char* path, const std::string& body) {
  return std::string("POST ") + path +
         " HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Rows of ids from `first` on, which a thread alone uses.
std::string rows(int thread, long first, int events, bool labels) {
  std::string body = "[";
  for (int i = 0; i < events; ++i) {
    std::string id = std::to_string(thread) + "-" + std::to_string(first + i);
    unsigned mixed = static_cast<unsigned>(first + i) * 2654435761u;
    body += i ? ",{\"id\":\"" : "{\"id\":\"";
    body += id + (labels ? "\",\"label\":" + std::to_string(mixed >> 31)
                         : "\",\"score\":0." + std::to_string(100000 + mixed % 900000));
    body += "}";
  }
  return body + "]";
}

void exchange(int server, const std::string& sent) {
  for (size_t at = 0; at < sent.size();) {
    ssize_t n = write(server, sent.data() + at, sent.size() - at);
    if (n <= 0) std::exit(1);
    at += static_cast<size_t>(n);
  }
  std::string found;
  size_t whole = 0;
  char piece[1 << 16];
  while (whole == 0 || found.size() < whole) {
    ssize_t n = read(server, piece, sizeof piece);
    if (n <= 0) std::exit(1);
    found.append(piece, static_cast<size_t>(n));
    size_t end = found.find("\r\n\r\n");
    if (whole == 0 && end != std::string::npos) {
      size_t at = found.find("content-length: ");
      whole = end + 4 + std::strtoul(found.c_str() + at + 16, nullptr, 10);
    }
  }
  if (found.compare(9, 3, "200") != 0) {
    std::fprintf(stderr, "%s\n", found.c_str());
    std::exit(1);
  }
}

void client(const char* host, int port, int thread, double every, int events, double seconds) {
  int server = connected(host, port);
  std::vector<double> mine;
  auto begin = Clock::now();
  auto next = begin + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(every * (thread % 97) / 97));
  for (long turn = 0;; ++turn) {
    if (every > 0) {
      std::this_thread::sleep_until(next);
      next += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(every));
    }
    auto sent = Clock::now();
    double age = std::chrono::duration<double>(sent - begin).count();
    if (age > seconds) break;
    bool labels = turn % 2 == 1;
    std::string body = rows(thread, turn / 2 * events, events, labels);
    exchange(server, request(labels ? "/v1/labels" : "/v1/predict", body));
    if (age > seconds / 2) {
      mine.push_back(std::chrono::duration<double, std::milli>(Clock::now() - sent).count());
    }
  }
  close(server);
  std::lock_guard<std::mutex> held(together);
  latencies.insert(latencies.end(), mine.begin(), mine.end());
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) return 2;
  int connections = std::atoi(words[3]);
  double rate = std::atof(words[4]), every = rate > 0 ? connections / rate : 0;
  std::vector<std::thread> threads;
  for (int one = 0; one < connections; ++one) {
    threads.emplace_back(client, words[1], std::atoi(words[2]), one, every, std::atoi(words[5]),
                         std::atof(words[6]));
  }
  for (auto& one : threads) one.join();
  std::sort(latencies.begin(), latencies.end());
  size_t n = latencies.size();
  std::printf("%zu %.3f %.3f\n", n, n ? latencies[n / 2] : 0.0, n ? latencies[n * 99 / 100] : 0.0);
}
