// What passes from host to host, as a level runs.
// In:  operations
// Out: the post told of who is fed, stepped and read
#include "engine/level.hpp"

namespace hocket {

void Level::note(const Operation& operation) {
    using Kind = Operation::Kind;
    const Kind kind = operation.kind;
    for (int child : operation.children) {
        if (kind == Kind::feed) post->feed(child);
        if (kind == Kind::step || kind == Kind::step_read) post->step(child);
        if (kind == Kind::read || kind == Kind::step_read) post->read(child);
    }
}

}  // namespace hocket
