// The process of an isolated FMU: it serves one simulator to a level in another process.
// In:  shared memory, a live simulator
// Out: answers; what only Python can answer is handed to Python
// Needs POSIX (platform.hpp).
#pragma once

#include "isolation/channel.hpp"

namespace hocket {

class Server {
  public:
    Server(int fd, int parent);
    // Answers what a level asks of the simulator; returns when something is for Python, with what that is.
    Ask serve(Simulator* simulator);
    std::string question() const { return memory_.payload().value_or(""); }
    const Channel& channel() const { return *memory_; }
    const double* u() const { return memory_.u(); }
    double* y() { return memory_.y(); }
    bool put(const std::string& payload) { return memory_.put(payload); }
    void answer(bool good, bool worded = false);
    void refuse(const std::string& words);  // what went wrong, as Python encodes it

  private:
    void await();
    bool serve_level(Simulator& simulator);
    Memory& memory_;  // never unmapped: the FMU may speak, or the process end, when this is gone
    Awake awake_;
    std::uint32_t number_ = 0;
    Nanoseconds since_ = 0;
    Patience patience_;
    Simulator::StepOutput both_ = nullptr;
    int rows_ = 0, core_ = Channel::anywhere;
    std::string text_;
};

}  // namespace hocket
