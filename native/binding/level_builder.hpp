// A level under construction.
// In:  children, inputs, samples, accounts and programs, one after the other
// Out: the Level
#pragma once

#include <memory>

#include "engine/level.hpp"

namespace hocket {

// Level.add_level and Engine take the level over.
struct LevelBuilder {
    std::shared_ptr<Level> level;
};

}  // namespace hocket
