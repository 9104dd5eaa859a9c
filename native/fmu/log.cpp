#include "fmu/log.hpp"

#include <deque>
#include <map>
#include <mutex>

namespace hocket {

namespace {

constexpr std::size_t most = 10000;    // a chatty FMU must not fill the memory between two looks
constexpr std::size_t remembered = 3;  // complaints of one instance

struct Log {
    std::mutex lock;
    std::vector<Message> waiting;
    std::map<std::string, std::deque<std::string>> complaints;
    std::size_t dropped = 0;
    void (*sink)(const Message&) = nullptr;
};

Log& the_log() {
    static Log* log = new Log;  // never destroyed: FMUs may speak while the process ends
    return *log;
}

}  // namespace

void log(Message message) {
    Log& log = the_log();
    std::lock_guard guard(log.lock);
    if (message.status > 0) {
        auto& own = log.complaints[message.name];
        own.push_back(message.text);
        if (own.size() > remembered) own.pop_front();
    }
    if (log.sink)
        log.sink(message);
    else if (log.waiting.size() < most)
        log.waiting.push_back(std::move(message));
    else
        ++log.dropped;
}

void redirect_log(void (*sink)(const Message&)) {
    Log& log = the_log();
    std::lock_guard guard(log.lock);
    log.sink = sink;
}

std::vector<Message> take_log() {
    Log& log = the_log();
    std::lock_guard guard(log.lock);
    std::vector<Message> taken;
    taken.swap(log.waiting);
    if (log.dropped > 0) {
        taken.push_back(
            {"", 1, "", std::to_string(log.dropped) + " more messages were dropped: too many at once"});
        log.dropped = 0;
    }
    return taken;
}

std::string complaints(const std::string& name) {
    Log& log = the_log();
    std::lock_guard guard(log.lock);
    std::string joined;
    const auto found = log.complaints.find(name);
    if (found == log.complaints.end()) return joined;
    for (const std::string& text : found->second) joined += (joined.empty() ? "" : "; ") + text;
    return joined;
}

void forget_complaints(const std::string& name) {
    Log& log = the_log();
    std::lock_guard guard(log.lock);
    log.complaints.erase(name);
}

}  // namespace hocket
