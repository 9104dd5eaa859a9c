// A simulator in a process of its own, as its level sees it.
// In:  shared memory and the id of a process that serves it (server.hpp)
// Out: the same numbers; a process that crashes or hangs is a failure, not the end
// Needs POSIX (platform.hpp).
#pragma once

#include <algorithm>

#include "isolation/channel.hpp"
#include "isolation/platform.hpp"

namespace hocket {

class Isolated final : public Simulator {
  public:
    // How the process ended.
    enum class End : int { none, exited, signalled, vanished, late, interrupted, closed, malformed };

    Isolated(int fd, int inputs, int outputs, double limit);
    ~Isolated() override;
    Isolated(const Isolated&) = delete;
    Isolated& operator=(const Isolated&) = delete;

    bool put(const std::string& payload) { return memory_.put(payload); }
    bool quiet = false;  // what it logs is for nobody but its last words
    void attach(ProcessId process);
    void detach();  // it is gone, and reaped

    bool step(const Span& span, const double* u) override;
    bool output(std::int64_t tick, const double* u, double* y) override;
    bool slope(std::int64_t tick, const double* u, double* dy) override;
    StepOutput step_output() const override {
        return [](Simulator& self, const Span& span, const double* u, double* y) {
            return static_cast<Isolated&>(self).both(span, u, y);
        };
    }
    void set_rows(int rows) override { rows_ = rows; }
    bool checks_itself() const override { return true; }
    bool get_text(int port, std::string& value) override;
    bool set_text(int port, const std::string& value) override;
    Failure failure() const override { return failure_; }

    // What Python asks for and Python answers; false: the process is gone, or what it says is in the payload.
    bool wait_opened(double limit) { return wait("open", limit); }
    bool call(const char* name, const std::string& question, double limit);
    bool call(Ask ask, double t, double h, const double* u, int rows, double* answer, int count);
    std::string payload();  // the last answer; empty, and the end of the process, if its length cannot be
    void reject();          // what it has answered is not well formed: its process is ended
    bool has_words() const { return end_ == End::none && memory_->worded != 0; }
    bool ended() const { return ended_; }  // it has asked to end the simulation
    bool failed_by_end() const { return end_ == End::none && memory_->failure.kind == Failure::Kind::ended; }

    std::size_t payload_at() const { return memory_.payload_at(); }
    int inputs() const { return inputs_; }
    int outputs() const { return outputs_; }
    // why it is gone: how, the exit code or signal, the function of the FMU if known, what was asked
    End end() const { return end_; }
    int code() const { return code_; }
    std::string function() const;
    // Rolled back through Python; a whole tree is, too, where compiled code runs it.
    bool save(Snapshot& to) override { return to.whole; }
    bool restore(Snapshot& from) override { return from.whole; }
    const std::string& question() const { return asked_; }
    const std::string& said() const { return said_; }  // its complaint during that
    const std::string& problem() const { return problem_; }
    // of a call that took too long, in seconds: all, and that without a processor
    double took() const { return took_; }
    double starved() const { return starved_; }

    // Set by the module, for threads that no run looks after: runs the handlers of pending signals; true if
    // one of them raised.
    static bool (*interrupted)();
    static void give_up();  // all that wait, on whichever thread, as after Ctrl-C

  private:
    bool both(const Span& span, const double* u, double* y);
    bool ask(Ask ask, const char* name) {
        const bool good = raise(ask) && wait(name, limit_);
        note_request(end_ == End::none && memory_->ended != 0);
        return good;
    }
    void note_request(bool ended) {
        if (ended && !ended_) ++end_requests.ever;
        ended_ = ended;
    }
    bool raise(Ask ask);
    bool wait(const char* name, double limit);
    bool wait_long(const char* name, double limit);
    bool look(End& end);  // false: it has ended
    bool is_late(Nanoseconds begin, Nanoseconds starved, Nanoseconds& worked, double limit);
    static bool is_wanted();  // whether anybody still waits for the answer
    void note_end(End how, const char* name);
    void kill();
    bool listen();  // false: what it says is not well formed
    void take(double* y) const { std::copy(memory_.y(), memory_.y() + outputs_, y); }
    void give(const double* u, int rows) {
        std::copy(u, u + static_cast<std::size_t>(rows) * inputs_, memory_.u());
    }
    bool can_be(const Failure& failure) const;
    bool report_failure(Call call, std::int64_t tick, std::int64_t ticks);

    Memory memory_;
    ProcessId process_ = 0;
    int inputs_, outputs_, rows_ = 1;
    double limit_;
    std::uint32_t number_ = 1;  // of the question; the first is to open
    Nanoseconds since_ = 0;     // when the last answer came
    Patience patience_;
    bool crowded_ = false;  // there are more sides than cores
    bool ended_ = false;
    Failure failure_;
    End end_ = End::none;
    int code_ = 0;
    double took_ = 0.0, starved_ = 0.0;
    std::string asked_, said_, problem_;
};

}  // namespace hocket
