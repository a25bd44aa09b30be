// A timer that ends the process unless it is stopped in time.
//
// Its thread never takes the interpreter's lock, so it also ends a process that never gives it
// back. It counts the times that it woke up and reads no clock: after a process was stopped, it has
// woken up once, however long that took.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/uio.h>
#include <sysexits.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace abers {

class ExitTimer {
 public:
  explicit ExitTimer(double period) : state_(std::make_unique<State>()) {
    const SignalsBlocked blocked;  // which the thread inherits: signals are for those of Python
    state_->thread = std::thread([&state = *state_, period] { state.run(Seconds(period)); });
  }
  ExitTimer(const ExitTimer&) = delete;
  ExitTimer& operator=(const ExitTimer&) = delete;
  ~ExitTimer() { close(); }

  // Ends the process after so many whole periods, with a line that has the time between two parts.
  void start(std::size_t periods, std::string before, std::string after) {
    if (!state_) return;
    const std::lock_guard lock(state_->mutex);
    state_->left = periods + 1;  // the first to end has begun before
    state_->before = std::move(before);
    state_->after = std::move(after);
  }

  void stop() {
    if (!state_) return;
    const std::lock_guard lock(state_->mutex);
    state_->left = 0;
  }

  void close() {
    if (!state_) return;
    if (getpid() != owner_) {  // a copy of the process, in which no thread ends the wait of another
      static_cast<void>(state_.release());
      return;
    }
    {
      const std::lock_guard lock(state_->mutex);
      state_->closed = true;
    }
    state_->changed.notify_one();
    state_->thread.join();
    state_.reset();
  }

 private:
  using Seconds = std::chrono::duration<double>;

  class SignalsBlocked {
   public:
    SignalsBlocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_;
  };

  struct State {
    std::mutex mutex;  // of all below
    std::condition_variable changed;
    bool closed = false;
    std::size_t left = 0;  // wake-ups until the end; 0 if the timer is stopped
    std::string before, after;
    std::thread thread;  // of the owner

    void run(Seconds period) {
      std::unique_lock lock(mutex);
      while (!changed.wait_for(lock, period, [this] { return closed; })) {
        if (left > 0 && --left == 0) end();
      }
    }

    // Allocates nothing, and waits for no reader of the log: the process may hang in either.
    [[noreturn]] void end() {
      std::array<char, 32> time = now();
      std::array<iovec, 3> line{{{before.data(), before.size()},
                                 {time.data(), std::char_traits<char>::length(time.data())},
                                 {after.data(), after.size()}}};
      pollfd log{STDERR_FILENO, POLLOUT, 0};
      if (poll(&log, 1, kPatience) > 0) static_cast<void>(!writev(STDERR_FILENO, line.data(), 3));
      _exit(EX_TEMPFAIL);
    }
  };

  static constexpr int kPatience = 1000;  // ms

  static std::array<char, 32> now() {
    using namespace std::chrono;
    const auto time = floor<milliseconds>(system_clock::now());
    const auto day = floor<days>(time);
    const year_month_day date(day);
    const hh_mm_ss clock(time - day);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                  static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                  static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                  static_cast<int>(clock.minutes().count()),
                  static_cast<int>(clock.seconds().count()),
                  static_cast<int>(clock.subseconds().count()));
    return text;
  }

  const pid_t owner_ = getpid();
  std::unique_ptr<State> state_;  // null once closed
};

}  // namespace abers
