// Messages between hosts in the steps of a level: the twin of plan/messages.py.
// In:  the operations of a level, one after the other
// Out: messages and values per pair of hosts
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

struct MessageCounter {
    struct Link {
        std::vector<int> signals;  // the outputs that one host uses of another
        std::vector<std::int64_t> known;
        std::int64_t messages = 0, values = 0;
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
    };
    struct Member {
        std::vector<Input> inputs;
        std::vector<Output> outputs;
    };
    std::vector<std::int64_t> versions;
    std::vector<Link> links;
    std::vector<Member> members;

    void list_state(SnapshotLine& line) {
        line(versions);
        for (Link& link : links) line(link.known, link.messages, link.values);
        for (Member& member : members) {
            for (Input& input : member.inputs) line(input.given);
            for (Output& output : member.outputs) line(output.due);
        }
    }

    // `ports`: none means all.
    void feed(int child, const std::vector<int>* ports = nullptr) {
        Member& member = members[child];
        const auto fed = [&](const Input& input) { return !ports || contains(*ports, input.port); };
        for (Input& input : member.inputs) {
            if (!fed(input) || input.link < 0) continue;
            if (links[input.link].known[input.place] == versions[input.signal]) continue;
            Link& link = links[input.link];
            ++link.messages;
            link.values += static_cast<std::int64_t>(link.signals.size());
            for (std::size_t k = 0; k < link.signals.size(); ++k) link.known[k] = versions[link.signals[k]];
        }
        for (std::size_t number = 0; number < member.inputs.size(); ++number) {
            Input& input = member.inputs[number];
            if (!fed(input) || input.given == versions[input.signal]) continue;
            input.given = versions[input.signal];
            for (Output& output : member.outputs)
                output.due = output.due || contains(output.reacts, static_cast<int>(number));
        }
    }

    void feed(const std::vector<int>& children) {
        for (int child : children) feed(child);
    }
    void step(const std::vector<int>& children) {
        for (int child : children)
            for (Output& output : members[child].outputs) output.due = true;
    }
    void read(const std::vector<int>& children) {
        for (int child : children) read(child);
    }

    void read(int child, const std::vector<int>* ports = nullptr) {
        std::vector<Output>& outputs = members[child].outputs;
        for (std::size_t number = 0; number < outputs.size(); ++number) {
            Output& output = outputs[number];
            if (!output.due || (ports && !contains(*ports, static_cast<int>(number)))) continue;
            ++versions[output.signal];
            output.due = false;
        }
    }

    void renew(const std::vector<int>& signals) {
        for (int signal : signals) ++versions[signal];
    }

  private:
    static bool contains(const std::vector<int>& numbers, int number) {
        return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
    }
};

}  // namespace hocket
