// What FMUs say: kept until Python takes it, between two steps.
// In:  the loggers of FMUs, on any thread
// Out: messages in order, with their format arguments filled in
#pragma once

#include <string>
#include <vector>

namespace hocket {

struct Message {
    std::string name;  // of the instance
    int status = 0;
    std::string category;
    std::string text;
};

void log(Message message);
// From now on messages go there instead of being kept; one at a time.
void redirect_log(void (*sink)(const Message& message));
std::vector<Message> take_log();
// The newest complaints of an instance, taken already or not.
std::string complaints(const std::string& name);
void forget_complaints(const std::string& name);

}  // namespace hocket
