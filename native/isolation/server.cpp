#include "isolation/server.hpp"

#include <cstdlib>

#include "isolation/crash_report.hpp"

namespace hocket {

namespace {

constexpr Nanoseconds idle = 1'000'000'000;
Memory* heard_by = nullptr;

}  // namespace

Server::Server(int fd, int parent) : memory_(*new Memory(fd)), number_(memory_->asked.number.load()) {
    watch_crashes(&*memory_, parent);
    heard_by = &memory_;
    redirect_log([](const Message& message) { heard_by->say(message); });
}

void Server::await() {
    ++number_;
    if (!memory_->asked.await(number_, awake_, patience_))
        while (!memory_->asked.sleep(number_, idle))
            if (is_orphaned()) std::_Exit(1);
    awake_ = memory_->awake;
    if (memory_->core != core_) move_to(core_ = memory_->core);
    since_ = now();
}

void Server::answer(bool good, bool worded) {
    memory_->good = good;
    memory_->worded = worded;
    memory_->ended = end_requests.now.load(std::memory_order_relaxed) > 0;
    if (since_) memory_->answered.note_time(now() - since_);
    memory_->answered.raise(number_);
}

void Server::refuse(const std::string& words) {
    Channel& c = *memory_;
    const bool reads = c.ask == Ask::output || c.ask == Ask::get_text;
    c.failure = {};
    const bool ends = c.ask == Ask::python_step && end_requests.now.load() > 0;
    c.failure.kind = ends ? Failure::Kind::ended : Failure::Kind::reported;
    c.failure.call = c.ask == Ask::slope ? Call::slope : reads ? Call::output : Call::step;
    c.failure.tick = c.span.tick;
    c.failure.ticks = c.span.ticks;
    answer(false, memory_.put(words));
}

Ask Server::serve(Simulator* simulator) {
    rows_ = 0;  // Python may have told it otherwise
    for (;;) {
        await();
        const Ask ask = memory_->ask;
        if (ask == Ask::open || ask >= Ask::call || !simulator) return ask;
        const bool good = serve_level(*simulator);
        if (good && ask == Ask::get_text && !memory_.put(text_))
            refuse("[\"a text of " + std::to_string(text_.size()) +
                   " bytes is too long for an isolated FMU\", \"\", \"\", \"\"]");
        else
            answer(good);
    }
}

bool Server::serve_level(Simulator& simulator) {
    Channel& c = *memory_;
    if (c.rows != rows_) {
        rows_ = c.rows;
        simulator.set_rows(rows_);
        both_ = simulator.step_output();
    }
    bool good = false;
    switch (c.ask) {
        case Ask::step: good = simulator.step(c.span, memory_.u()); break;
        case Ask::output: good = simulator.output(c.span.tick, memory_.u(), memory_.y()); break;
        case Ask::step_output: good = both_(simulator, c.span, memory_.u(), memory_.y()); break;
        case Ask::slope: good = simulator.slope(c.span.tick, memory_.u(), memory_.y()); break;
        case Ask::get_text: good = simulator.get_text(c.port, text_); break;
        case Ask::set_text: good = simulator.set_text(c.port, question()); break;
        default: break;
    }
    if (!good) c.failure = simulator.failure();
    return good;
}

}  // namespace hocket
