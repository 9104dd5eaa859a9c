// Messages between hosts in the steps of a level: the twin of plan/messages.py.
// In:  the operations of a level, one after the other
// Out: messages and values per pair of hosts
#pragma once

#include <cstdint>
#include <vector>

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
        bool news;
    };
    struct Output {
        int signal;
        std::vector<int> reacts;  // inputs
    };
    struct Member {
        std::vector<Input> inputs;
        std::vector<Output> outputs;
        bool moved = false;
    };
    std::vector<std::int64_t> versions;
    std::vector<Link> links;
    std::vector<Member> members;

    void feed(int child) {
        for (Input& input : members[child].inputs) {
            if (input.link < 0 || links[input.link].known[input.place] == versions[input.signal]) continue;
            Link& link = links[input.link];
            ++link.messages;
            link.values += static_cast<std::int64_t>(link.signals.size());
            for (std::size_t k = 0; k < link.signals.size(); ++k) link.known[k] = versions[link.signals[k]];
        }
        for (Input& input : members[child].inputs) {
            input.news = input.news || input.given != versions[input.signal];
            input.given = versions[input.signal];
        }
    }

    void feed(const std::vector<int>& children) {
        for (int child : children) feed(child);
    }
    void step(const std::vector<int>& children) {
        for (int child : children) members[child].moved = true;
    }
    void read(const std::vector<int>& children) {
        for (int child : children) read(child);
    }

    void read(int child) {
        Member& member = members[child];
        for (const Output& output : member.outputs) {
            bool fresh = member.moved;
            for (int input : output.reacts) fresh = fresh || member.inputs[input].news;
            if (fresh) ++versions[output.signal];
        }
        for (Input& input : member.inputs) input.news = false;
        member.moved = false;
    }

    void renew(const std::vector<int>& signals) {
        for (int signal : signals) ++versions[signal];
    }
};

}  // namespace hocket
