// Messages between hosts in the steps of a level: the twin of plan/messages.py.
// In:  the operations of a level, one after the other
// Out: messages and values per pair of hosts; carried where there is something that carries
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

struct MessageCounter {
    struct Link {
        std::vector<int> signals;  // the outputs that one host uses of another
        std::vector<std::int64_t> known;
        std::vector<std::int64_t> passed;  // of the samples stored so far, how many when it was sent last
        std::int64_t messages = 0, values = 0;
        std::vector<int> counts;  // room: how many samples of each output a message carries

        explicit Link(std::vector<int> used)
            : signals(std::move(used)),
              known(signals.size()),
              passed(signals.size()),
              counts(signals.size()) {}
    };
    struct Input {
        int signal;       // the output that drives it
        int link, place;  // where that comes from another host; -1: from the same
        std::int64_t given;
        int port;  // its number among all inputs of the child
    };
    struct Output {
        int signal;
        std::vector<int> reacts;  // inputs
        bool due = false;         // it will have another value when it is evaluated
        bool aged = false;        // time has passed since it was
    };
    struct Member {
        std::vector<Input> inputs;
        std::vector<Output> outputs;
    };
    std::vector<std::int64_t> versions;
    std::vector<std::int64_t> samples;  // stored so far, per signal
    std::vector<int> depths;            // how many of them are looked at
    std::vector<Link> links;
    std::vector<Member> members;
    // Hands the samples of a link over; false: they did not pass. None: all hosts are in this process.
    std::function<bool(int link)> carry;

    void list_state(SnapshotLine& line) {
        line(versions, samples);
        for (Link& link : links) line(link.known, link.passed, link.messages, link.values);
        for (Member& member : members) {
            for (Input& input : member.inputs) line(input.given);
            for (Output& output : member.outputs) line(output.due, output.aged);
        }
    }

    // `ports`: none means all. False: a message did not pass.
    bool feed(int child, const std::vector<int>* ports = nullptr) {
        Member& member = members[child];
        const auto fed = [&](const Input& input) { return !ports || contains(*ports, input.port); };
        for (Input& input : member.inputs)
            if (fed(input) && input.link >= 0 && is_new(input.link, input.place) && !send(input.link))
                return false;
        for (std::size_t number = 0; number < member.inputs.size(); ++number) {
            Input& input = member.inputs[number];
            if (!fed(input) || input.given == versions[input.signal]) continue;
            input.given = versions[input.signal];
            for (Output& output : member.outputs)
                output.due = output.due || contains(output.reacts, static_cast<int>(number));
        }
        return true;
    }

    bool feed(const std::vector<int>& children) {
        return std::all_of(children.begin(), children.end(), [this](int child) { return feed(child); });
    }
    // Sends what is new, before it is fed to anyone.
    bool flush() {
        for (int number = 0; number < static_cast<int>(links.size()); ++number)
            for (int place = 0; place < static_cast<int>(links[number].signals.size()); ++place)
                if (is_new(number, place) && !send(number)) return false;
        return true;
    }
    void step(const std::vector<int>& children) {
        for (int child : children)
            for (Output& output : members[child].outputs) output.due = output.aged = true;
    }
    void read(const std::vector<int>& children) {
        for (int child : children) read(child);
    }

    void read(int child, const std::vector<int>* ports = nullptr) {
        std::vector<Output>& outputs = members[child].outputs;
        for (std::size_t number = 0; number < outputs.size(); ++number) {
            Output& output = outputs[number];
            if (ports && !contains(*ports, static_cast<int>(number))) continue;
            const bool replaced = output.due && !output.aged;
            samples[output.signal] += output.aged;
            output.aged = false;
            if (!output.due) continue;
            if (replaced) send_again(output.signal);
            ++versions[output.signal];
            output.due = false;
        }
    }

  private:
    bool is_new(int link, int place) const {
        return links[link].known[place] != versions[links[link].signals[place]];
    }
    // A sample that has changed at the time it is of counts as not sent.
    void send_again(int signal) {
        for (Link& link : links)
            for (std::size_t k = 0; k < link.signals.size(); ++k)
                if (link.signals[k] == signal && link.passed[k] == samples[signal] && samples[signal] > 0)
                    --link.passed[k];
    }
    bool send(int number) {
        Link& link = links[number];
        ++link.messages;
        for (std::size_t k = 0; k < link.signals.size(); ++k) {
            const int signal = link.signals[k];
            const std::int64_t unsent = samples[signal] - link.passed[k];
            link.counts[k] = static_cast<int>(std::clamp<std::int64_t>(unsent, 1, depths[signal]));
            link.values += link.counts[k];
            link.known[k] = versions[signal];
            link.passed[k] = samples[signal];
        }
        return !carry || carry(number);
    }
    static bool contains(const std::vector<int>& numbers, int number) {
        return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
    }
};

}  // namespace hocket
